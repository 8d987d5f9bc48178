"""What the tags of edge records say: what they carry, and how they are packed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.edges.records import Packing

Ints = NDArray[np.int64]

KEYED, WITH_ROWS, PACKED = 1, 2, 4  # tags of pieces: they carry order keys, edge rows; they are packed, see ``packed_tag``
_ROW_BITS, _OTHER_BITS, _MOST_BITS = 8, 16, 255  # where a tag says how they are packed


def packed_tag(packing: Packing) -> int:
    """Return the tag of packed records."""
    return PACKED | packing.row_bits << _ROW_BITS | packing.other_bits << _OTHER_BITS


def packing_of(tag: int, local_bits: int | None = None) -> Packing | None:
    """Return how records are packed; None where they are not."""
    return Packing(tag >> _ROW_BITS & _MOST_BITS, tag >> _OTHER_BITS & _MOST_BITS, local_bits) if tag & PACKED else None


def packings_of(tags: Ints) -> Ints:
    """Return (row bits, other bits) of packed records by segment: int64[k, 2]."""
    return np.stack([tags >> _ROW_BITS & _MOST_BITS, tags >> _OTHER_BITS & _MOST_BITS], axis=1)
