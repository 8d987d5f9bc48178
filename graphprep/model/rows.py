"""Rows on their way: raw (as written) nodes and edges with their columns, as structs of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.model.schema import Role

# Integer raw IDs in flight are uint64: the number itself, or the 64 bits of an int64 where a node type's IDs are signed.
RawIds = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class RawTexts:
    """Raw IDs that are strings, a row each, as a decoder hands them over.

    Row r is the UTF-8 bytes ``values[offsets[r]:offsets[r + 1]]``: int64[n + 1] offsets that begin at 0, uint8 values. The
    decode stage replaces them by 64-bit keys and keeps every distinct text once.
    """

    offsets: NDArray[np.int64]
    values: NDArray[np.uint8]

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> RawTexts:
        """Put texts together."""
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(texts), np.uint8))

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return self.offsets.size - 1

    def tolist(self) -> list[bytes]:
        """Return all rows."""
        data, ends = self.values.tobytes(), self.offsets.tolist()
        return [data[start:stop] for start, stop in pairwise(ends)]

    def text(self, row: int) -> str:
        """Return one row, for messages."""
        return bytes(self.values[self.offsets[row] : self.offsets[row + 1]]).decode(errors="replace")


Family = Literal["numbers", "sparse", "binary", "temporal"]
Guess = Literal["numbers", "bools", "nulls"]


@dataclass(frozen=True)
class ColumnKey:
    """Names a column while rows flow; the final column (dense or ragged, its name) is settled after decoding.

    ``slot`` is set in formats whose features have only numbers, ``name`` then is ``feat_<slot>``. ``dtype`` is NumPy's
    name (``uint8`` for binary). ``width`` is the number of coordinates of a sparse value, 0 when flat or not sparse. ``unit``
    is that of dates and times (``day``, ``s``, ``ms``, ``us``, ``ns``).
    """

    name: str
    family: Family
    dtype: str
    slot: int | None = None
    role: Role | None = None
    width: int = 0
    unit: str | None = None


@dataclass(frozen=True, eq=False)
class ColumnChunk:
    """The values of one column for some rows of a batch.

    ``rows`` (int64[k], ascending) says which of the batch's nodes or edges have it. What stands for row ``rows[i]``:

    - numbers: ``counts[i]`` values of ``values`` (dtype of the key). ``item_shape`` is the shape that all k rows share
      (() for a scalar, (3,) for three numbers, (2, 2) …), or None where they differ.
    - binary: ``counts[i]`` bytes of ``values`` (uint8).
    - sparse: ``counts[i]`` values, and the same number of coordinate tuples in ``coords`` (int64, ``counts[i] * max(width, 1)``
      numbers, row by row).
    - temporal: ``entry_counts[i]`` entries; entry j has ``start[j]``, ``end[j]`` (int64, -1 = none) and ``counts[j]`` values,
    so
      here ``counts`` has one number an entry. Entries stand in input order.

    ``counts`` is int64; it is always there, also when all are equal.

    ``guess`` is what the cells are of a column of text whose dtype is found in the data: the decode stage compares it with that
    of all other blocks. Numbers and bools of one column make it text, and so do nulls alone. ``nulls`` are the cells that are
    absent because they are spelled like nothing (``NA``): how often by spelling.
    """

    key: ColumnKey
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    values: NDArray[np.generic]
    item_shape: tuple[int, ...] | None = None
    coords: NDArray[np.int64] | None = None
    entry_counts: NDArray[np.int64] | None = None
    start: NDArray[np.int64] | None = None
    end: NDArray[np.int64] | None = None
    guess: Guess | None = None
    nulls: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Relation:
    """What an edge says of its type: the relation's name and, where the format knows them, the types of its ends.

    An end without a type names the ID space in which it is found (``src_space``, ``dst_space``); None stands for the only one.
    """

    name: str
    src_type: str | None = None
    dst_type: str | None = None
    src_space: str | None = None
    dst_space: str | None = None


@dataclass(frozen=True, eq=False)
class RawNodes:
    """Nodes as written.

    ``types`` (int32[n]) are codes into ``type_names``. ``num_slots`` (int32[n]) is every row's stated number of feature slots
    (highest slot mentioned + 1, empty ones included), None for formats without slots. ``at`` (int64[n], only when places were
    asked for) is the byte offset of the ID in the block, or the row. ``declares`` False: the rows bring columns of nodes that
    others declare, or that occur as ends; a node stands at most once in all such rows of one span.
    """

    ids: RawIds | RawTexts
    types: NDArray[np.int32]
    type_names: tuple[str, ...]
    columns: tuple[ColumnChunk, ...] = ()
    num_slots: NDArray[np.int32] | None = None
    at: NDArray[np.int64] | None = None
    declares: bool = True

    @property
    def num_rows(self) -> int:
        """Return the number of nodes."""
        return int(self.ids.size)


@dataclass(frozen=True, eq=False)
class RawEdges:
    """Edges as written, in input order.

    In formats with several ID spaces, the sources of all relations of a batch lie in one, and so do the destinations. Raw IDs
    that are integers may also be uint32, in ``src`` and ``dst`` alike, where all of a block fit.
    ``relations`` (int32[m]) are codes into ``relation_names``. ``at_src`` and ``at_dst`` (int64[m], only when places were
    asked for) are the byte offsets of the ends in the block, or the row. ``record`` (int64[m], only when places were asked
    for) is the number, in ``RawNodes``, of the node on whose record the edge stands; -1 where it is a record of its own.
    """

    src: RawIds | RawTexts
    dst: RawIds | RawTexts
    relations: NDArray[np.int32]
    relation_names: tuple[Relation, ...]
    columns: tuple[ColumnChunk, ...] = ()
    num_slots: NDArray[np.int32] | None = None
    at_src: NDArray[np.int64] | None = None
    at_dst: NDArray[np.int64] | None = None
    record: NDArray[np.int64] | None = None

    @property
    def num_rows(self) -> int:
        """Return the number of edges."""
        return int(self.src.size)


@dataclass(frozen=True)
class AlignedColumn:
    """Values of one column for consecutive owners, where a file holds a column apart from its nodes or edges.

    ``owner`` is a node type's name, or the canonical edge type. Row r of ``chunk`` belongs to the node with raw ID ``start +
    r``, or the edge with edge ID ``start + r`` (``chunk.rows`` holds r).
    """

    owner: str | Relation
    start: int
    num_rows: int
    chunk: ColumnChunk


@dataclass(frozen=True)
class RawRows:
    """What one block or row range decodes to. Either part may be None where the format or the block has none.

    ``warnings`` maps a message to how often it applies (``unknown key 'foo' ignored``); they are summed over the run and
    printed once each.
    """

    nodes: RawNodes | None = None
    edges: RawEdges | None = None
    aligned: tuple[AlignedColumn, ...] = ()
    num_records: int = 0
    warnings: dict[str, int] = field(default_factory=dict)
