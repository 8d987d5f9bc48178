"""What the walkers of EdgeList and TSV share: how far they are, what is wrong with a line, and how they note a slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.slots import COUNT, GROUP, ROW, START, STOP, find_group

# What a walker answers: all read, out of room (grow and call again), or what is wrong with the line that it ended at: a field,
# or from FIRST_OWN on what each format has.
DONE, FULL, BAD_FIELD, FIRST_OWN = range(4)

# progress: where the line to read begins, what was found so far (*_BEFORE: before that line), and what is wrong, where: bytes
# [AT, END). SLOT: the feature slot; COUNT and WIDTH: its length, of TSV the fields of a neighbour; COLUMNS: how many there are.
POS, NODES, EDGES, SLOTS, EDGES_BEFORE, SLOTS_BEFORE, GROUPS = range(7)
FAULT, FAULT_FIELD, FAULT_AT, FAULT_END, FAULT_SLOT, FAULT_DTYPE, FAULT_COUNT, FAULT_WIDTH, FAULT_COLUMNS = range(7, 16)
NUM_PROGRESS = 16

MAX_TYPE = (1 << 31) - 1


class Slots(NamedTuple):
    """Where the slots go: see ``graphprep.kernels.cpu.deepgnn.slots``."""

    slots: NDArray[np.int64]
    groups: NDArray[np.int64]
    buckets: NDArray[np.int64]


class Words(NamedTuple):
    """A table of words for ``find_word``, and the dtype code of each."""

    words: NDArray[np.uint8]
    stops: NDArray[np.int64]
    dtypes: NDArray[np.int64]

    @classmethod
    def of(cls, table: Sequence[tuple[bytes, int]]) -> Words:
        """Lay out the words."""
        return cls(
            np.frombuffer(b"".join(word for word, _ in table), np.uint8),
            np.cumsum([len(word) for word, _ in table], dtype=np.int64),
            np.array([code for _, code in table], np.int64),
        )


@njit(cache=True, nogil=True)
def set_fault(progress, code, field, at, end):
    """Note what is wrong, and return the code."""
    progress[FAULT] = code
    progress[FAULT_FIELD] = field
    progress[FAULT_AT] = at
    progress[FAULT_END] = end
    return code


@njit(cache=True, nogil=True)
def note_slot(owner, row, slot, dtype, width, count, start, stop, slots, groups, buckets, progress):
    """Note where the values of a slot stand: DONE, or FULL."""
    k = progress[SLOTS]
    if k == slots.shape[0]:
        return FULL
    group = find_group(groups, progress[GROUPS], buckets, owner, slot, dtype, width)
    if group < 0:
        return FULL
    if group == progress[GROUPS]:
        progress[GROUPS] += 1
    slots[k, GROUP] = group
    slots[k, ROW] = row
    slots[k, COUNT] = count
    slots[k, START] = start
    slots[k, STOP] = stop
    progress[SLOTS] = k + 1
    return DONE
