"""The memory ledger: how a limit is shared out."""

from __future__ import annotations

from graphprep.engine.budget import (
    DECODED_FACTOR,
    default_threads,
    memory_limit,
    used_bytes,
)
from graphprep.engine.heap import bound_heap, trim_heap
from graphprep.engine.scratch import release_scratch
from graphprep.model.dataclass import dataclass
from graphprep.model.errors import MemoryLimitError
from graphprep.model.options import ConvertOptions

_MIB = 1 << 20
_KERNEL_BYTES = 64 * _MIB
_LEAST_BYTES = 24 * _MIB  # what the stages need beside what Python and its modules hold
_MOST_BLOCK = 4 * _MIB
_LEAST_BLOCK = 64 << 10
_MOST_BUCKET = 32 * _MIB  # larger ones leave the cache: sorting a bucket then costs more than scattering to more of them
_LEAST_BUCKET = 64 << 10


@dataclass(frozen=True)
class MemoryPlan:
    """How a memory limit is shared out, in bytes.

    ``held_bytes`` were in use before. ``pool_bytes`` bounds all runs, ``working_bytes`` all work in progress, ``cap_bytes``
    what one sort or map holds. A bucket is planned to take ``bucket_bytes`` while it is built, and cut where it takes more than
    ``leaf_bytes``. Blocks of text have ``block_bytes``.
    """

    limit_bytes: int
    held_bytes: int
    pool_bytes: int
    working_bytes: int
    cap_bytes: int
    bucket_bytes: int
    leaf_bytes: int
    block_bytes: int
    threads: int


def plan_memory(options: ConvertOptions) -> MemoryPlan:
    """Share out the memory limit: of what is left of it, 30 % is for runs, half for work in progress.

    Raises MemoryLimitError where it leaves nothing to work with.
    """
    release_scratch()  # what functions over arrays kept in this process is free, too
    limit = memory_limit(options.run.memory_limit)
    threads = options.run.threads or default_threads()
    bound_heap(limit)
    trim_heap()  # what an earlier run in this process left is free
    held = used_bytes()
    room = limit - held - _KERNEL_BYTES
    if room < _LEAST_BYTES:
        raise _too_little(limit, held, room)
    working = room // 2
    leaf = max(_LEAST_BUCKET, working // (3 * threads + 2))
    return MemoryPlan(
        limit_bytes=limit,
        held_bytes=held,
        pool_bytes=room * 3 // 10,
        working_bytes=working,
        cap_bytes=working // 4,
        bucket_bytes=min(_MOST_BUCKET, leaf),
        leaf_bytes=leaf,
        block_bytes=options.block_bytes or max(_LEAST_BLOCK, min(_MOST_BLOCK, working // (DECODED_FACTOR * (2 * threads + 1)))),
        threads=threads,
    )


def _too_little(limit: int, held: int, room: int) -> MemoryLimitError:
    need = -(-(held + _KERNEL_BYTES + _LEAST_BYTES) // _MIB)
    can_have = memory_limit(f"{need}MiB") == need * _MIB
    return MemoryLimitError(
        f"the memory limit of {limit / _MIB:.3g} MiB leaves {max(0, room) // _MIB} MiB to work with",
        fix=f"raise --memory-limit to {need}MiB or more"
        if can_have
        else f"let the process have {need} MiB: raise its container's limit, or ulimit",
    )
