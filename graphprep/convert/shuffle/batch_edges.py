"""The edges of one batch, with resolved ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.observe import NUM_SLOTS
from graphprep.convert.columns.routes import batch_columns, highest_slots
from graphprep.convert.decoded.batch_rows import BatchCells, EndHashes, RawBatchEdges
from graphprep.convert.decoded.rows import Batch, BatchColumn, wide_ids
from graphprep.convert.index.resolve import Resolved
from graphprep.decoders.cells.row_numbers import every_row
from graphprep.edges.order_keys import missing_order_key, order_role, time_keys, weight_keys
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.hash import edge_checksum, hash_ints, pair_checksum
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import NeighborOrder
from graphprep.store.columns.cells import Cells, scalar_cells

Ints = NDArray[np.int64]
_MOST_TYPE_CODES = 1 << 12  # with more canonical edge types than this, only those that occur in a batch are counted


class BatchEdges:
    """The edges of one batch, with resolved ends; ``ends`` is None where their types are known without looking.

    ``hashes`` are h of the sources and of the destinations where these are texts, None where they are numbers.
    """

    def __init__(
        self,
        batch: Batch,
        raw: RawBatchEdges,
        cells: BatchCells,
        ends: tuple[Resolved, Resolved] | None,
        hashes: EndHashes,
    ) -> None:
        self._hashes = hashes
        self.batch = batch
        self.num_edges = batch.num_edges
        self._raw = raw
        self.relations = raw.relations
        self.num_slots = raw.num_slots
        self._ends = ends
        self._cells = cells

    @property
    def src(self) -> Resolved:
        """Return the resolved sources."""
        assert self._ends is not None
        return self._ends[0]

    @property
    def dst(self) -> Resolved:
        """Return the resolved destinations."""
        assert self._ends is not None
        return self._ends[1]

    @property
    def raw_src(self) -> NDArray[np.uint64]:
        """Return the raw IDs of the sources."""
        return wide_ids(self._raw.src)

    @property
    def raw_dst(self) -> NDArray[np.uint64]:
        """Return the raw IDs of the destinations."""
        return wide_ids(self._raw.dst)

    def raw_hashes(self, side: int, chosen: Ints | None) -> NDArray[np.uint64]:
        """Return h of the raw IDs at one end (0: the source) of chosen edges (None: all)."""
        hashes = self._hashes[side]
        if hashes is not None:
            return hashes if chosen is None else hashes[chosen]
        raw = self.raw_dst if side else self.raw_src
        return np.asarray(hash_ints(raw if chosen is None else raw[chosen]))

    def checksum(self, chosen: Ints | None) -> int:
        """Return the checksum of chosen edges (None: all): docs/store.md, "Hashes"."""
        if all(hashes is None for hashes in self._hashes):
            pick = slice(None) if chosen is None else chosen
            return edge_checksum(self._raw.src[pick], self._raw.dst[pick])
        return pair_checksum(self.raw_hashes(0, chosen), self.raw_hashes(1, chosen))

    def columns(self) -> Iterator[tuple[BatchColumn, Ints, Cells]]:
        """Yield (column, rows in the batch, cells) of every column, the stated numbers of slots among them."""
        yield from batch_columns(self.batch.edge_columns, self._cells, self.num_edges)
        if self.num_slots is not None:
            yield slots_column(self.num_slots)

    def by_type(
        self, keep: NDArray[np.bool_] | None, num_relations: int, num_types: int
    ) -> Iterator[tuple[tuple[int, int, int], Ints | None]]:
        """Yield (relation, source type, destination type), ascending, and the positions of its edges; None stands for all."""
        types = (self.src.types, self.dst.types)
        relation = self.batch.relation
        uniform = relation is not None and all((side == side[0]).all() for side in types)
        if keep is None and uniform and relation is not None:
            yield (relation, int(types[0][0]), int(types[1][0])), None
            return
        kept = slice(None) if keep is None else np.flatnonzero(keep)
        codes = types[0][kept].astype(np.int64) * num_types + types[1][kept]
        codes += (relation or 0) * num_types**2 if self.relations is None else self.relations[kept] * np.int64(num_types**2)
        names: Ints | None = None
        num_codes = num_relations * num_types**2
        if num_codes > _MOST_TYPE_CODES:
            names, codes = np.unique(codes, return_inverse=True)
            num_codes = names.size
        indptr, order = group_by_key(codes, num_codes)
        for code in np.flatnonzero(np.diff(indptr)).tolist():
            rest, dst_type = divmod(code if names is None else int(names[code]), num_types)
            rel, src_type = divmod(rest, num_types)
            chosen = order[indptr[code] : indptr[code + 1]]
            yield (rel, src_type, dst_type), chosen if isinstance(kept, slice) else kept[chosen]


@dataclass(frozen=True)
class OrderKeys:
    """The neighbour order's keys of the rows that have them."""

    role: str
    rows: Ints
    keys: NDArray[np.uint64]

    def full(self, num_rows: int) -> NDArray[np.uint64]:
        """Return the keys of all rows of the batch."""
        out = np.full(num_rows, missing_order_key(self.role), np.uint64)
        out[self.rows] = self.keys
        return out


def order_keys(edges: BatchEdges, order: NeighborOrder) -> OrderKeys | None:
    """Return the keys by which a batch's edges are ordered; None where they have none."""
    columns: dict[str, tuple[Ints, Cells]] = {
        column.key.role: (rows, cells) for column, rows, cells in edges.columns() if column.key.role is not None
    }
    role = order_role(order, columns)
    if role is None:
        return None
    rows, cells = columns[role]
    return OrderKeys(role, rows, weight_keys(cells.flat) if role == "weight" else time_keys(cells.flat))


def slots_column(num_slots: NDArray[np.int32]) -> tuple[BatchColumn, Ints, Cells]:
    """Let the stated numbers of slots travel as a column of all rows."""
    return BatchColumn(NUM_SLOTS, 0, scalar=True, has_values=True), every_row(num_slots.size), scalar_cells(num_slots)


def excess_slots(
    columns: list[tuple[ColumnKey, Ints]], num_slots: NDArray[np.int32] | None, num_rows: int
) -> NDArray[np.bool_]:
    """Return which rows state more slots than their highest present one + 1."""
    if num_slots is None:
        return np.zeros(num_rows, bool)
    return np.asarray(num_slots > highest_slots(iter(columns), num_rows), np.bool_)
