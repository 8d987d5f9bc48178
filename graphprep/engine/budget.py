"""How much memory and how many threads a run may use, and how much it does use.

The heap is kept close to what is in use, so that a limit means something.
"""

from __future__ import annotations

import contextlib
import functools
import io
import math
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from graphprep.model.errors import UsageError

if TYPE_CHECKING:
    import ctypes

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*|%)\s*")
_UNITS = {
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "pb": 10**15},
    **{"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50},
    **{"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40, "pib": 1 << 50},
}
_LEAST_AUTO = 256 << 20  # what auto is at least, also where others have taken nearly all memory: enough to work with
_UNTOLD_MEMORY = 4 << 30  # where a system does not say what it has
DECODED_FACTOR = 24  # decoded rows, their temporaries and the text itself, over the text's size
_SAMPLE_S = 0.02
_PROC = Path("/proc")
_CGROUP = Path("/sys/fs/cgroup")
# Of cgroups, version 2 and 1: the limits, what is used, and what of it is page cache, which the system takes back at need.
_CGROUP_FILES = (
    (("memory.max", "memory.high"), "memory.current", (b"inactive_file", b"active_file")),
    (("memory.limit_in_bytes",), "memory.usage_in_bytes", (b"total_inactive_file", b"total_active_file")),
)
_NO_LIMIT = 1 << 62  # version 1 has a number of at least this where there is no limit
SMALL_LIMIT_BYTES = 2 << 30
KEPT_SHARE = 16  # of a small limit may stay with the process as free memory: 16 MiB of 256
SPARE_SHARE = 4  # of a generous limit: who holds less keeps what is free of it
_HEAP_SHARE = 64  # larger arrays have pages of their own, which go when they go
_KEPT_BYTES = 256 << 20
_MOST_IN_HEAP = 32 << 20  # as much as glibc allows
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_COMPILER_BYTES = 400 << 20  # of memory, for a process with Numba and LLVM in it
_HARD_SHARE = 0.9  # of what a container leaves: the kernel's own tables and pages to be written count there, too


# ---- limits


@dataclass(frozen=True)
class MemoryLimit:
    """A limit of this process's memory: ``cgroup`` or ``ulimit -v``, the file that says so, what it is, and what it leaves."""

    name: str
    place: str
    most_bytes: int
    left_bytes: int


def parse_memory(text: str) -> int:
    """Read ``8GiB``, ``512MiB``, ``1GB``, ``1048576B``, ``50%`` of what is available, or ``auto``.

    ``auto`` is half of what is available, and 256 MiB at least. Returns bytes. Raises UsageError for anything else.
    """
    if text.strip().lower() == "auto":
        return max(_LEAST_AUTO, available_memory() // 2)
    return _parse_size(text, available_memory)


def parse_device_memory(text: str, free_bytes: int) -> int:
    """Read ``--device-memory-limit`` as bytes of a device that has ``free_bytes``: ``auto`` is 80 % of these.

    Returns no more than is free. Raises UsageError for what is neither a size, a share nor ``auto``.
    """
    if text.strip().lower() == "auto":
        return free_bytes * 8 // 10
    try:
        return min(free_bytes, _parse_size(text, lambda: free_bytes))
    except UsageError as error:
        raise UsageError(error.message, place="--device-memory-limit", fix=error.fix) from None


def _parse_size(text: str, available: Callable[[], int]) -> int:
    match = _SIZE.fullmatch(text)
    if match and not match[2] and float(match[1]):
        fix = f"write the unit: {match[1]}MiB, or {match[1]}B for bytes"
        raise UsageError(f"{text!r} has no unit", fix=fix)
    factor = _UNITS.get(match[2].lower()) if match else None
    if match and match[2] == "%" and 0 < float(match[1]) <= 100:
        return max(1, int(available() * float(match[1]) / 100))
    num_bytes = int(float(match[1]) * factor) if match and factor else 0
    if num_bytes < 1:
        raise UsageError(f"{text!r} is not an amount of memory", fix="write a size (8GiB, 512MiB), a share (50%) or auto")
    return num_bytes


def memory_limit(text: str) -> int:
    """Read ``--memory-limit`` as bytes, no more than containers and ``ulimit`` let this process have: beyond, it is killed.

    It bounds ``used_bytes``. Raises UsageError like ``parse_memory``.
    """
    hard = min((one.left_bytes for one in memory_limits()), default=None)
    wanted = parse_memory(text)
    return wanted if hard is None else max(1, min(wanted, used_bytes() + int(max(0, hard) * _HARD_SHARE)))


def record_bytes(limit_bytes: int) -> int:
    """Return what one record of text may have, as stored, under a limit."""
    return limit_bytes // DECODED_FACTOR


def format_size(num_bytes: float) -> str:
    """Write a number of bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if num_bytes < 1024:
            return f"{num_bytes:.0f} {unit}" if unit == "B" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1024
    return f"{num_bytes:.1f} EiB"


def available_memory() -> int:
    """Return the bytes that this process may still take: what the system has, and what cgroups and ``ulimit`` leave."""
    return max(0, min([_system_memory(), *(one.left_bytes for one in memory_limits())]))


def default_threads() -> int:
    """Return the number of cores that this process may use: no more than each CPU quota above it, rounded up."""
    counts = getattr(os, "process_cpu_count", None)
    cores = counts() if counts else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    most = cores or 1
    for folder in _cgroup_folders("cpu"):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (folder / "cpu.max").read_text().split()
            most = min(most, math.ceil(int(quota) / int(period)))
        quota_us, period_us = _read_number(folder / "cpu.cfs_quota_us"), _read_number(folder / "cpu.cfs_period_us")
        if quota_us is not None and period_us and quota_us > 0:
            most = min(most, math.ceil(quota_us / period_us))
    return max(1, most)


def compiling_jobs() -> int:
    """Return how many processes may compile kernels at once: one a core, as far as memory goes."""
    return max(1, min(default_threads(), available_memory() // _COMPILER_BYTES))


def total_memory() -> int:
    """Return the bytes of memory that the system has; 0 where it does not say."""
    fields = _read_fields(_PROC / "meminfo")
    if b"MemTotal:" in fields:
        return fields[b"MemTotal:"] * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError):
        return 0


def _system_memory() -> int:
    fields = _read_fields(_PROC / "meminfo")
    if b"MemAvailable:" in fields:
        return fields[b"MemAvailable:"] * 1024
    return total_memory() or _UNTOLD_MEMORY


def memory_limits() -> list[MemoryLimit]:
    """Return each limit of this process: those of the cgroups above it, ``ulimit -v`` and ``-d``.

    Page cache does not count as used.
    """
    found = []
    for folder in _cgroup_folders("memory"):
        for limits, used, cache in _CGROUP_FILES:
            now = _read_number(folder / used)
            if now is not None:
                fields = _read_fields(folder / "memory.stat")
                now -= sum(fields.get(name, 0) for name in cache)
                for name in limits:
                    most = _read_number(folder / name)
                    if most is not None and most < _NO_LIMIT:
                        found.append(MemoryLimit("cgroup", str(folder / name), most, most - now))
    with contextlib.suppress(ImportError):  # not on every system
        import resource

        fields = _read_fields(_PROC / "self" / "status")
        for name, kind, size in (("-v", resource.RLIMIT_AS, b"VmSize:"), ("-d", resource.RLIMIT_DATA, b"VmData:")):
            most, _ = resource.getrlimit(kind)
            if most != resource.RLIM_INFINITY and size in fields:
                found.append(MemoryLimit(f"ulimit {name}", "", most, most - fields[size] * 1024))
    return found


def _cgroup_folders(controller: str) -> Iterator[Path]:
    """Yield the folders of this process's cgroup and of all above it, versions 1 and 2.

    In a container the path may be that outside of it; then its last folders that exist are taken.
    """
    with contextlib.suppress(OSError):
        for line in (_PROC / "self" / "cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root = _CGROUP / (controller if controllers else "unified")
            root = root if root.is_dir() else _CGROUP
            folder = root / path.lstrip("/")
            for level in (folder, *folder.parents):
                if level.is_relative_to(root) and level.is_dir():
                    yield level


def _read_number(path: Path) -> int | None:
    """Return a file's number, None where there is no file or no limit in it (``max``)."""
    try:
        return int(_read(path))
    except (OSError, ValueError):
        return None


def _read_fields(path: Path | str) -> dict[bytes, int]:
    """Return the first two words of every line of a file of the system, where the second is a number."""
    fields: dict[bytes, int] = {}
    with contextlib.suppress(OSError):
        for line in _read(path).splitlines():
            words = line.split(maxsplit=2)
            if len(words) > 1 and words[1].isdigit():
                fields[words[0]] = int(words[1])
    return fields


def _read(path: Path | str) -> bytes:
    """Return what is in a small file of the system; many times a second, so without what ``open`` adds."""
    with io.FileIO(path) as file:
        return file.readall()


# ---- use

_counting = threading.Lock()
_counters = 0
_held_before = 0
_kept_below = 0


@contextlib.contextmanager
def count_memory(held_before: int | None = None) -> Iterator[None]:
    """Let ``used_bytes`` count what this process takes beyond ``held_before`` bytes; None: what it holds already.

    Of contexts inside each other, and side by side in threads, the first one says what is counted: a command counts all from
    its start, whatever it calls; a call from Python does not answer for what its caller holds.
    """
    global _counters, _held_before
    with _counting:
        if not _counters:
            _held_before = private_bytes() if held_before is None else held_before
        _counters += 1
    try:
        yield
    finally:
        with _counting:
            _counters -= 1
            _held_before = _held_before if _counters else 0


def used_bytes() -> int:
    """Return what of ``private_bytes`` counts against a memory limit."""
    return max(0, private_bytes() - _held_before)


def private_bytes() -> int:
    """Return the memory that only this process and its children hold: anonymous and shared, no file pages.

    0 where the system does not say.
    """
    total = 0
    waiting = ["self"]
    while waiting:
        folder = f"{_PROC}/{waiting.pop()}"
        fields = _read_fields(f"{folder}/status")
        total += (fields.get(b"RssAnon:", 0) + fields.get(b"RssShmem:", 0)) * 1024
        with contextlib.suppress(OSError):  # it ended meanwhile
            for thread in os.listdir(f"{folder}/task"):  # noqa: PTH208 - paths cost more than reading
                waiting += _read(f"{folder}/task/{thread}/children").decode().split()
    return total


def reset_peak() -> int:
    """Let ``peak_resident`` begin anew; return what is resident now, in bytes. Does nothing where the system cannot."""
    with contextlib.suppress(OSError):
        (_PROC / "self" / "clear_refs").write_text("5")
    return _read_fields(_PROC / "self" / "status").get(b"VmRSS:", 0) * 1024


def peak_resident() -> int:
    """Return the most that was resident since ``reset_peak``, or ever, in bytes."""
    return _read_fields(_PROC / "self" / "status").get(b"VmHWM:", 0) * 1024


class PeakSampler:
    """Watches ``used_bytes`` from a thread, every 20 ms, as a context manager or until ``stop``."""

    def __init__(self) -> None:
        self.peak_bytes = 0
        self._lap_bytes = 0
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="graphprep-memory", daemon=True)

    def __enter__(self) -> PeakSampler:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> int:
        """Stop watching, and return the peak in bytes."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._thread.join()
            self._sample()
        return self.peak_bytes

    def lap(self) -> int:
        """Return the peak since the last call, in bytes."""
        self._sample()
        peak, self._lap_bytes = self._lap_bytes, 0
        return peak

    def _run(self) -> None:
        self._sample()
        while not self._stopped.wait(_SAMPLE_S):
            self._sample()

    def _sample(self) -> None:
        now = used_bytes()
        self.peak_bytes, self._lap_bytes = max(self.peak_bytes, now), max(self._lap_bytes, now)


# ---- heap


def bound_heap(limit_bytes: int) -> None:
    """Keep some free memory for the next array; where the limit is small, little, and let all threads share one arena.

    What the system gives must be cleared, a page at a time, which was a fifth of all work. But every thread's own arena keeps
    what was freed in it: with a limit of 256 MiB that was 60 MiB of nothing. One arena costs lock traffic, which generous
    limits spare. Does nothing where the C library is another one. Arrow's own pool keeps 60 MiB of what was freed, too.
    """
    global _kept_below
    _kept_below = limit_bytes // SPARE_SHARE if limit_bytes >= SMALL_LIMIT_BYTES else 0
    if limit_bytes < SMALL_LIMIT_BYTES:
        _let_arrow_share()
    if not hasattr(_libc(), "mallopt"):
        return
    if limit_bytes < SMALL_LIMIT_BYTES:
        _libc().mallopt(_M_ARENA_MAX, 1)
        _libc().mallopt(_M_TRIM_THRESHOLD, limit_bytes // KEPT_SHARE)
        _libc().mallopt(_M_MMAP_THRESHOLD, min(_MOST_IN_HEAP, limit_bytes // _HEAP_SHARE))
    else:
        _libc().mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        _libc().mallopt(_M_MMAP_THRESHOLD, _MOST_IN_HEAP)


def end_stage() -> None:
    """Give free memory back to the system, unless the limit is far: then the next stage has a use for it."""
    if not _kept_below or used_bytes() >= _kept_below:
        trim_heap()


def trim_heap() -> None:
    """Give free memory back to the system; it takes milliseconds."""
    if hasattr(_libc(), "malloc_trim"):
        _libc().malloc_trim(0)


def _let_arrow_share() -> None:
    """Let Arrow take its memory from the heap, where it is imported and where it will be."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    else:
        arrow.set_memory_pool(arrow.system_memory_pool())


@functools.cache
def _libc() -> ctypes.CDLL:
    import ctypes

    return ctypes.CDLL(None)
