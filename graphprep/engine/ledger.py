"""The ledger: how a memory limit is shared out, what the stages of a command take of it and why, and how long they work.

Large scratch arrays are used again.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphprep.engine.budget import (
    DECODED_FACTOR,
    KEPT_SHARE,
    SMALL_LIMIT_BYTES,
    SPARE_SHARE,
    PeakSampler,
    bound_heap,
    default_threads,
    end_stage,
    format_size,
    memory_limit,
    private_bytes,
    trim_heap,
    used_bytes,
)
from graphprep.model.errors import MemoryLimitError
from graphprep.model.protocols import Reporter
from graphprep.model.run_options import RunOptions

WORKER_BYTES = 64 << 20  # what a worker process holds beside its task: the interpreter, NumPy, pyarrow and compiled code
EDGE_BYTES = 64  # of an edge while its bucket is put in order: row, other end, edge ID, key, and their sorted copies
RUNS_WHY = "rows on their way; what is more lies in spill files"
_CHECK = "GRAPHPREP_CHECK_MEMORY"  # the variable; 1: a stage that holds more than is declared ends the run
_MIB = 1 << 20
_SWAY_BYTES = 1 << 20  # by which what a process holds at first differs from run to run
_KERNEL_BYTES = 64 * _MIB
_LEAST_BYTES = 24 * _MIB  # what the stages need beside what Python and its modules hold
_MOST_BLOCK = 4 * _MIB
_LEAST_BLOCK = 64 << 10
_MOST_BUCKET = 32 * _MIB  # larger ones leave the cache: sorting a bucket then costs more than scattering to more of them
_LEAST_BUCKET = 64 << 10
_HOLES_SHARE = 4  # of what a stage takes, there may be as much in holes of the heap

# Large scratch arrays are used again: the first touch of fresh memory takes longer than what is then done with it.
_LEAST_SCRATCH = 16 << 20
_MOST_SCRATCH = 1 << 30

_lock = threading.Lock()
_kept: list[mmap.mmap] = []  # one at most


class Need(NamedTuple):
    """Memory that something takes at most, in bytes, and why so much: words with a ``{}`` for each of ``sizes``."""

    name: str
    num_bytes: int
    why: str
    sizes: tuple[int, ...] = ()


class MemoryPlan(NamedTuple):
    """How a memory limit is shared out, in bytes.

    ``held_bytes`` were in use before. ``pool_bytes`` bounds all runs, ``working_bytes`` all work in progress, ``cap_bytes``
    what one sort or map holds. A bucket is planned to take ``bucket_bytes`` while it is built, and cut where it takes more than
    ``task_bytes``. Blocks of text have ``block_bytes``.
    """

    limit_bytes: int
    held_bytes: int
    pool_bytes: int
    working_bytes: int
    cap_bytes: int
    bucket_bytes: int
    task_bytes: int
    block_bytes: int
    threads: int

    def runs(self, most_bytes: int = sys.maxsize) -> Need:
        """Declare runs of rows that take ``most_bytes`` at most."""
        return Need("runs", min(most_bytes, self.pool_bytes), RUNS_WHY)


def plan_memory(options: RunOptions, block_bytes: int = 0, *, apart: bool = False) -> MemoryPlan:
    """Share out the memory limit: of what is left of it, 30 % is for runs, half for work in progress.

    ``block_bytes`` are those of blocks of text (0: as many as fit); ``apart``: there will be a process beside each thread.
    Raises MemoryLimitError where it leaves nothing to work with.
    """
    release_scratch()  # what functions over arrays kept in this process is free, too
    limit = memory_limit(options.memory_limit)
    threads = options.threads or default_threads()
    bound_heap(limit)
    trim_heap()  # what an earlier run in this process left is free
    held = used_bytes() + (threads * WORKER_BYTES if apart else 0)
    room = limit - held - _KERNEL_BYTES
    if room < _LEAST_BYTES:
        raise _too_little(limit, held, room)
    working = room // 2
    task = max(_LEAST_BUCKET, working // (3 * threads + 2))
    return MemoryPlan(
        limit_bytes=limit,
        held_bytes=held,
        pool_bytes=room * 3 // 10,
        working_bytes=working,
        cap_bytes=working // 4,
        bucket_bytes=min(_MOST_BUCKET, task),
        task_bytes=task,
        block_bytes=block_bytes or max(_LEAST_BLOCK, min(_MOST_BLOCK, working // (DECODED_FACTOR * (2 * threads + 1)))),
        threads=threads,
    )


def _too_little(limit: int, held: int, room: int) -> MemoryLimitError:
    need = -(-(held + _SWAY_BYTES + _KERNEL_BYTES + _LEAST_BYTES) // _MIB)
    can_have = memory_limit(f"{need}MiB") == need * _MIB
    return MemoryLimitError(
        f"the memory limit of {limit / _MIB:.3g} MiB leaves {max(0, room) // _MIB} MiB to work with",
        fix=f"raise --memory-limit to {need}MiB or more"
        if can_have
        else f"let the process have {need} MiB: raise its container's limit, or ulimit",
    )


class Ledger:
    """What a command takes, stage after stage: memory, as each of them declares it when it begins, and seconds.

    Beside their own memory, all stages have what was held before, what is loaded on the way, and what is free and not given
    back. The reporter is told of each stage, and details if it wants them.
    """

    def __init__(self, limit_bytes: int, held_bytes: int, reporter: Reporter, sampler: PeakSampler) -> None:
        self.limit_bytes = limit_bytes
        self.always: tuple[Need, ...] = (
            Need("process", held_bytes, "what it holds when it begins"),
            Need("code", _KERNEL_BYTES, "kernels, pyarrow and other modules, as they are loaded"),
        )
        self.device: Need | None = None
        self._device_told: Callable[[], str] = str
        self.reporter = reporter
        self.stages: dict[str, tuple[Need, ...]] = {}
        self.seconds: dict[str, float] = {}
        self._most_kept = limit_bytes // (KEPT_SHARE if limit_bytes < SMALL_LIMIT_BYTES else SPARE_SHARE)
        self._tell = reporter.message if getattr(reporter, "details", False) else None
        self._sampler = sampler
        self._stage = ""
        self._start = 0.0
        if not private_bytes():
            reporter.message("this system does not tell what memory is in use: the limit bounds what is planned for")

    def take_device(self, device: Need, pinned: Need, told: Callable[[], str] = str) -> None:
        """Enter what a device holds in its own memory, and what of the process's all stages from now on hold for it.

        ``told`` says at the end of each stage what the device did in it.
        """
        self.device, self.always, self._device_told = device, (*self.always, pinned), told
        if self._tell is not None:
            self._tell(f"memory: on the device: {_words([device])}; all stages from now on: {_words([pinned])}")

    def begin(
        self, stage: str, needs: Iterable[Need], *, total_bytes: int | None = None, total_records: int | None = None
    ) -> None:
        """End the stage before, and open the next one with what it declares; the totals are what it has before it."""
        self.end()
        declared, own_bytes = [], 0
        for one in needs:
            if one.num_bytes:
                declared.append(one)
                own_bytes += one.num_bytes
        end_stage()
        left = max(0, used_bytes() - self.always[0].num_bytes) + own_bytes // _HOLES_SHARE
        heap = Need("heap", min(left, self._most_kept), "what stages left, and what is free between arrays")
        self.stages[stage] = (*declared, heap)
        self._stage, self._start = stage, time.perf_counter()
        self._sampler.lap()
        if self._tell is not None:
            if len(self.stages) == 1:
                self._tell(f"memory: all stages: {_words(self.always)}")
            self._tell(f"memory: {stage}: {format_size(self.peak_bytes(stage))} at most: {_words(self.stages[stage])}")
        self.reporter.stage(stage, total_bytes=total_bytes, total_records=total_records)

    def peak_bytes(self, stage: str) -> int:
        """Return what is held in a stage at most: the sum of all needs, and never more than the limit."""
        return min(self.limit_bytes, sum(one.num_bytes for one in self.always) + self.own_bytes(stage))

    def own_bytes(self, stage: str) -> int:
        """Return the sum of what a stage declares."""
        return sum(one.num_bytes for one in self.stages[stage])

    def end(self) -> None:
        """End the last stage.

        Raises AssertionError where it held more than it declares, if that is to be checked. Where kernels were compiled, it is
        not: nobody can bound what that takes.
        """
        stage, self._stage = self._stage, ""
        if stage:
            self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - self._start
        if stage and self._tell is not None and (done := self._device_told()):
            self._tell(f"device: {stage}: {done}")
        if not stage or os.environ.get(_CHECK, "0") in ("", "0") or "numba" in sys.modules:
            return
        held = self._sampler.lap()
        if held > self.peak_bytes(stage):
            words = _words((*self.stages[stage], *self.always))
            most = format_size(self.peak_bytes(stage))
            raise AssertionError(f"stage {stage!r} held {format_size(held)} of memory, and declares {most}: {words}")


def _words(needs: Iterable[Need]) -> str:
    words = "{} {} ({})".format
    return "; ".join(words(name, format_size(size), why.format(*map(format_size, sizes))) for name, size, why, sizes in needs)


# ---- scratch


@contextlib.contextmanager
def scratch_array(count: int, dtype: DTypeLike) -> Iterator[NDArray[Any]]:
    """Lend an array that holds anything. Nobody may keep it.

    The memory of the last one, up to 1 GiB, stays with the process for the next, but the system may take it back at any time
    (``MADV_FREE``). Small ones, and all where the system knows no such thing, come and go.
    """
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < _LEAST_SCRATCH or not hasattr(mmap, "MADV_FREE"):
        yield np.empty(count, kind)
        return
    block = _take(size)
    yield np.frombuffer(block, kind, count)
    _keep(block)  # not behind a failure: a thread may still write


def release_scratch() -> None:
    """Give back what is kept for the next array."""
    with _lock:
        _kept.clear()


def _take(size: int) -> mmap.mmap:
    """Return what is kept, if it is large enough, else fresh memory in huge pages."""
    with _lock:
        if _kept and len(_kept[0]) >= size:
            return _kept.pop()
        _kept.clear()
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from error
    with contextlib.suppress(OSError, AttributeError):
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _keep(block: mmap.mmap) -> None:
    """Keep a block that the system may empty."""
    if len(block) > _MOST_SCRATCH:
        return
    with contextlib.suppress(OSError), _lock:
        block.madvise(mmap.MADV_FREE)
        _kept[:] = [max([*_kept, block], key=len)]
