"""What the edge engine asks of a device: records of edges, and the kernels that count, scatter and place them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.buffers import Buffers

Ints = NDArray[np.int64]
Ids = NDArray[Any]  # int32, int64, uint32 or uint64
Records = NDArray[np.uint64]  # [n, words]

WORD_BITS = 64


@dataclass(frozen=True)
class Packing:
    """How an edge is packed into the first word of a record: from the top its row, its other end, its edge ID.

    So records sort as their edges do. Of the row there are the low bits that there is room for: at least those that tell the
    rows of a bucket. ``travels`` names the words behind the first. With ``id_bits`` 0 the edge ID, if there is one, travels
    first among these.
    """

    other_bits: int
    id_bits: int
    travels: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Return the number of words of a record."""
        return 1 + len(self.travels)

    def word(self, name: str) -> int:
        """Return which word of a record is the one of this name."""
        return 1 + self.travels.index(name)

    @property
    def row_bits(self) -> int:
        """Return how many low bits of the row there are."""
        return WORD_BITS - self.other_bits - self.id_bits


@dataclass(frozen=True)
class Segments:
    """Records in buckets of 2^``shift`` rows, segment after segment, where they lie.

    The records of segment k begin at word ``offsets[k]`` of the buffer ``numbers[k]`` (int64[k] both); those of bucket b are
    [starts[k, b], starts[k, b + 1]) (uint32 or int64) of these. ``bases[k]`` (int64) is to be added to their edge IDs;
    ``packings`` (int64[k, 3]) are other bits, ID bits and words.
    """

    buffers: Buffers
    numbers: Ints
    offsets: Ints
    starts: NDArray[Any]
    bases: Ints
    packings: Ints
    shift: int

    def sizes(self, first: int, stop: int) -> Ints:
        """Count the records of every bucket in [first, stop): int64[stop - first]."""
        borders: Ints = self.starts[:, first : stop + 1].sum(axis=0, dtype=np.int64)
        return np.diff(borders)


def pack_bits(packing: Packing, num_segments: int) -> Ints:
    """Return ``Segments.packings`` of segments that are packed alike."""
    return np.repeat(np.array([[packing.other_bits, packing.id_bits, packing.words]], np.int64), num_segments, axis=0)


def as_input(array: NDArray[Any]) -> NDArray[Any]:
    """Return an aligned, contiguous, read-only view (a copy where it must be): kernels compile once for all inputs."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def bits_below(count: int) -> int:
    """Return how many bits the integers 0..count-1 need."""
    return max(0, count - 1).bit_length()


@dataclass(frozen=True)
class Rows:
    """What is filled: ``indptr`` int64[n + 1], ``indices`` and ``edge_ids`` int32[m] or int64[m]; without IDs int32[0]."""

    indptr: Ints
    indices: NDArray[Any]
    edge_ids: NDArray[Any]
