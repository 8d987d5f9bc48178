"""Resolve the ends of edges, find their types and scatter them, a few batches at a time. Threads may do it side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.observe import NUM_SLOTS
from graphprep.convert.columns.routes import batch_columns, highest_slots
from graphprep.convert.decoded.batch_rows import BatchCells, EndHashes, RawBatchEdges
from graphprep.convert.decoded.rows import Batch, BatchColumn, wide_ids
from graphprep.convert.index.resolve import Resolved
from graphprep.convert.shuffle.ends import Ends
from graphprep.convert.shuffle.route import Routing
from graphprep.decoders.cells.row_numbers import every_row
from graphprep.edges.buckets import EdgeRows, ScatteredRows, is_enough, scatter_rows
from graphprep.edges.order_keys import missing_order_key, order_role, time_keys, weight_keys
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.hash import edge_checksum, hash_ints, pair_checksum
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import NeighborOrder
from graphprep.store.assign import count_parts
from graphprep.store.columns.cells import Cells, scalar_cells

Ints = NDArray[np.int64]
Words = NDArray[Any]
TypeKey = tuple[int, int, int]  # relation, source type, destination type
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


@dataclass(frozen=True)
class BatchInput:
    """A batch as it was decoded.

    ``keep`` says which of its edges stand on records that are kept (None: all); ``resolved`` are its ends where only the
    consuming thread could look them up, in order.
    """

    batch: Batch
    chunk: RawBatchEdges
    columns: BatchCells
    hashes: EndHashes | None
    keep: NDArray[np.bool_] | None = None
    resolved: tuple[Resolved, Resolved] | None = None


@dataclass(frozen=True)
class TypeShare:
    """The edges of one canonical type in one batch: their positions in it (None: all), and owners.

    The first is number ``start`` among the edges of its type in the group.
    """

    key: TypeKey
    chosen: Ints | None
    owners: Words
    start: int


@dataclass(frozen=True)
class MissingEnds:
    """The edges of a batch whose ends are no nodes, or for ``wrong`` (of sources, of destinations) nodes of another type."""

    edges: NDArray[np.bool_]
    wrong: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]


@dataclass(frozen=True)
class ScatteredBatch:
    """A batch with the types of its edges."""

    edges: BatchEdges
    shares: tuple[TypeShare, ...]
    missing: MissingEnds | None


@dataclass
class TypeTotal:
    """What a group holds of one canonical type: its edges, scattered unless there are few, and sums over them.

    ``rows`` and ``scattered`` hold them for the primary layout and, where it does not wait for that one, for the second.
    """

    num_edges: int = 0
    checksum: int = 0
    rows: tuple[list[EdgeRows], list[EdgeRows]] = field(default_factory=lambda: ([], []))
    scattered: list[ScatteredRows | None] = field(default_factory=lambda: [None, None])
    dst_counts: Ints | int = 0
    src_counts: Ints | int = 0


@dataclass(frozen=True)
class ScatteredGroup:
    """Some batches, scattered."""

    batches: tuple[ScatteredBatch, ...]
    totals: dict[TypeKey, TypeTotal]


class EdgeScatterer:
    """Scatters groups of batches. ``scatter`` depends on nothing but its argument, so that threads can share it."""

    def __init__(self, routing: Routing, ends: Ends) -> None:
        self._routing = routing
        self._ends = ends
        self._csc = routing.rules.primary == "csc"
        self._order: NeighborOrder = routing.rules.neighbor_order

    def scatter(self, inputs: Sequence[BatchInput]) -> ScatteredGroup:
        """Resolve, sort by type and scatter the edges of some batches."""
        totals: dict[TypeKey, TypeTotal] = {}
        batches = tuple(self._scatter_batch(one, totals) for one in inputs)
        for key, total in totals.items():
            for number, rows in enumerate(total.rows):
                plan = self._routing.edge_plan(key, second=number == 1)
                if rows and is_enough(total.num_edges, plan) and len({one.travels for one in rows}) == 1:
                    num_others = self._routing.num_others(key, second=number == 1)
                    total.scattered[number] = scatter_rows(self._routing.kernels, rows, plan, num_others)
                    rows.clear()
        return ScatteredGroup(batches, totals)

    def _scatter_batch(self, one: BatchInput, totals: dict[TypeKey, TypeTotal]) -> ScatteredBatch:
        found = None if one.resolved or one.keep is not None else self._ends.find_both(one.batch, one.chunk)
        if found is not None:
            edges = BatchEdges(one.batch, one.chunk, one.columns, None, self._hashes(one))
            assert one.batch.relation is not None
            src, dst = found
            share = self._add(edges, (one.batch.relation, src.type_number, dst.type_number), None, src.typed, dst.typed, totals)
            return ScatteredBatch(edges, (share,), None)
        ends = one.resolved or self._ends.resolve_both(one.batch, one.chunk)
        edges = BatchEdges(one.batch, one.chunk, one.columns, ends, self._hashes(one))
        keep, missing = _kept(self._routing, edges, one.keep)
        dtype = self._routing.record_dtype
        num_relations, num_types = len(self._routing.decoded.relations), len(self._routing.index.type_names)
        shares = []
        for key, chosen in edges.by_type(keep, num_relations, num_types):
            pick = slice(None) if chosen is None else chosen
            src_typed, dst_typed = (end.typed[pick].astype(dtype) for end in ends)
            shares.append(self._add(edges, key, chosen, src_typed, dst_typed, totals))
        return ScatteredBatch(edges, tuple(shares), missing)

    def _hashes(self, one: BatchInput) -> EndHashes:
        return one.hashes or self._ends.text_keys(one.batch, one.chunk)

    def _add(
        self, edges: BatchEdges, key: TypeKey, chosen: Ints | None, src: Words, dst: Words, totals: dict[TypeKey, TypeTotal]
    ) -> TypeShare:
        total = totals.setdefault(key, TypeTotal())
        owners, others = (dst, src) if self._csc else (src, dst)
        start = total.num_edges
        total.rows[0].append(EdgeRows(owners, others, start, self._keys(edges, chosen)))
        if self._routing.scatters_second:
            total.rows[1].append(EdgeRows(others, owners, start))
        total.num_edges += owners.size
        total.checksum = (total.checksum + edges.checksum(chosen)) % 2**64
        offsets = self._routing.index.part_offsets
        total.src_counts = total.src_counts + count_parts(src, offsets[key[1]])
        total.dst_counts = total.dst_counts + count_parts(dst, offsets[key[2]])
        return TypeShare(key, chosen, owners, start)

    def _keys(self, edges: BatchEdges, chosen: Ints | None) -> NDArray[np.uint64] | None:
        order = order_keys(edges, self._order)
        if order is None:
            return None
        keys = order.full(edges.num_edges)
        return keys if chosen is None else keys[chosen]


def _kept(
    routing: Routing, edges: BatchEdges, keep: NDArray[np.bool_] | None
) -> tuple[NDArray[np.bool_] | None, MissingEnds | None]:
    """Return which edges of a batch are kept (None: all), and which are not because of an end."""
    found = (edges.src.typed >= 0) & (edges.dst.typed >= 0)
    wrong = (_wrong_types(routing, edges, 0), _wrong_types(routing, edges, 1))
    for mask in wrong:
        if mask is not None:
            found &= ~mask
    if found.all():
        return keep, None
    missing = ~found if keep is None else ~found & keep
    return found if keep is None else found & keep, MissingEnds(missing, wrong)


def _wrong_types(routing: Routing, edges: BatchEdges, side: int) -> NDArray[np.bool_] | None:
    """Return which ends are nodes of another type than their relation says; None: none can be."""
    decoded, index = routing.decoded, routing.index
    relations = [decoded.relations[code] for code in edges.batch.codes]
    names = [relation.dst_type if side else relation.src_type for relation in relations]
    spaces = {decoded.spaces.of_type(name) for name in names if name is not None}
    if not any(index.space_of_type.count(space) > 1 for space in spaces):
        return None
    wanted = np.full(len(decoded.relations), -1, np.int32)
    wanted[list(edges.batch.codes)] = [-1 if name is None else index.type_names.index(name) for name in names]
    expected = wanted[edges.batch.codes[0]] if edges.relations is None else wanted[edges.relations]
    ends = edges.dst if side else edges.src
    return np.asarray((ends.types != expected) & (expected >= 0) & (ends.typed >= 0))
