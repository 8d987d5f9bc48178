"""Fourth part of ``validate``: the adjacency arrays: ranges, order inside rows, edge IDs, layouts, checksum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.ledger import Need
from graphprep.kernels.cpu.ids.check import add_edge_sums, choose_buckets, hash_pairs
from graphprep.kernels.cpu.ids.hash import pair_checksum
from graphprep.kernels.cpu.ids.part_graph import number_rows
from graphprep.model.metadata import METADATA_NAME
from graphprep.model.schema import EdgeType, EdgeTypeSchema, Layout, edge_type_text
from graphprep.store.paths import ColumnPaths, LayoutPaths, edge_folder
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray, CheckedStore, order_column
from graphprep.validate.nodes import read_hashes
from graphprep.validate.offsets import check_offsets
from graphprep.validate.permutation import check_permutation

_SLICE = 1 << 18  # edges looked at at once
_EDGE_BYTES = 128  # of an edge, with what is computed of it
_ROWS = 1 << 18  # rows of indptr read at once
_BUCKETS = 1 << 12  # sums that compare the layouts, so that a difference can be found among few edges
_COMPARED_BUCKETS = 8  # buckets with differences whose edges are compared one by one

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Keys = NDArray[Any]  # int64 or float


@dataclass(frozen=True)
class EdgeArrays:
    """One edge type's arrays of one layout in one partition; ``ids`` or ``edge_rows`` None: the store has none.

    ``row_offset`` is the typed ID of the partition's first row, ``num_others`` the number of nodes at the other end.
    """

    layout: Layout
    part: int
    row_offset: int
    row_type: int
    num_others: int
    indptr: CheckedArray
    indices: CheckedArray
    ids: CheckedArray | None
    edge_rows: CheckedArray | None

    def ends(self, piece: EdgeSlice) -> tuple[Ints, Ints]:
        """Return the sources and destinations of entries."""
        own = piece.rows + self.row_offset
        return (piece.others, own) if self.layout == "csc" else (own, piece.others)


@dataclass(frozen=True, eq=False)
class EdgeSlice:
    """Entries [start, stop) of one layout in one partition.

    ``rows`` are local; ``others``, ``ids`` and ``edge_rows`` int64[k]. Without edge IDs or edge rows theirs are zeros.
    """

    start: int
    rows: Ints
    others: Ints
    ids: Ints
    edge_rows: Ints


@dataclass(frozen=True)
class CheckedEdges:
    """An edge type and those of its arrays that can be read, by layout; a partition may be missing after a fault."""

    store: CheckedStore
    number: int
    edge_type: EdgeType
    schema: EdgeTypeSchema
    arrays: dict[Layout, list[EdgeArrays]]
    faulty: bool

    @property
    def num_edges(self) -> int:
        """Return the number of edges, by the metadata."""
        return self.store.metadata.num_edges_per_type[self.number]

    @property
    def place(self) -> str:
        """Return the edge type's place in metadata.json."""
        return f"{METADATA_NAME}: edge_schema.{edge_type_text(self.edge_type)}"


def edge_needs(num_nodes: int, num_edges: int, window_bytes: int) -> Iterator[Need]:
    """Declare what checking edge types takes, the largest of which has ``num_edges`` and ``num_nodes`` at an end."""
    yield Need("window", min(window_bytes, 8 * max(_SLICE, num_nodes)), "hashes of other ends, or marks of edge IDs")
    yield Need("slice", min(_SLICE, num_edges) * _EDGE_BYTES, f"{_SLICE} edges at a time, and what is computed of them")


def check_edges(
    store: CheckedStore, number: int, faults: Faults, *, window_bytes: int, advance: Callable[[int], None] = lambda _: None
) -> None:
    """Check one edge type over all layouts and partitions. Where arrays are faulty, what depends on them is left out.

    ``advance`` is told of the entries of each layout as they are gone through.
    """
    before = faults.num
    edges = open_edges(store, number, faults)
    duplicates = False
    for layout in store.metadata.layouts:
        for arrays in edges.arrays[layout]:
            duplicates |= _check_rows(edges, arrays, faults, advance)
        if edges.schema.edge_id_dtype is not None and not edges.faulty:
            _check_edge_ids(edges, layout, faults, window_bytes)
    for arrays in (arrays for group in edges.arrays.values() for arrays in group if arrays.edge_rows is not None):
        _check_edge_row_range(edges, arrays, faults)
    if edges.faulty or faults.num > before:
        return
    if edges.schema.multigraph is not None and edges.schema.multigraph != duplicates:
        wanted, found = ("true", "false") if duplicates else ("false", "true")
        faults.add(f"{edges.place}.multigraph", f"expected {wanted}, found {found}")
    if len(store.metadata.layouts) > 1:
        _compare_layouts(edges, faults)
    _check_checksum(edges, faults, window_bytes, advance)


# ---------------------------------------------------------------------------------------------------- reading


def open_edges(store: CheckedStore, number: int, faults: Faults) -> CheckedEdges:
    """Collect the arrays of an edge type, each with a sound indptr."""
    metadata = store.metadata
    edge_type = metadata.edge_types[number]
    groups: dict[Layout, list[EdgeArrays]] = {}
    faulty = False
    for layout in metadata.layouts:
        found = [_open_arrays(store, number, layout, part, faults) for part in range(metadata.num_parts)]
        groups[layout] = [arrays for arrays in found if arrays is not None]
        faulty |= None in found
        total = sum(arrays.indices.num_rows for arrays in groups[layout])
        if None not in found and total != metadata.num_edges_per_type[number]:
            place = f"{edge_folder(edge_type)}/{layout}"
            faults.add(place, f"expected {metadata.num_edges_per_type[number]} edges over all partitions, found {total}")
            faulty = True
    return CheckedEdges(store, number, edge_type, metadata.edge_schemas[number], groups, faulty)


def _open_arrays(store: CheckedStore, number: int, layout: Layout, part: int, faults: Faults) -> EdgeArrays | None:
    metadata = store.metadata
    edge_type, schema = metadata.edge_types[number], metadata.edge_schemas[number]
    ends = (edge_type[2], edge_type[0]) if layout == "csc" else (edge_type[0], edge_type[2])
    if not set(ends) <= set(metadata.node_types):
        return None
    row_type, other_type = (metadata.node_types.index(end) for end in ends)
    paths = LayoutPaths(f"{edge_folder(edge_type)}/{layout}")
    indptr, indices, ids, edge_rows = (
        store.array(part, path) for path in (paths.indptr, paths.indices, paths.edge_ids, paths.edge_rows)
    )
    if indptr is None or indices is None or (ids is None and schema.edge_id_dtype is not None):
        return None
    for other in (ids, edge_rows):
        if other is not None and other.num_rows != indices.num_rows:
            faults.add(other.path, f"expected {indices.num_rows} numbers, as many as indices, found {other.num_rows}")
            return None
    if not check_offsets(indptr, indices.num_rows, faults):
        return None
    offset = sum(metadata.num_nodes_per_chunk[row_type][:part])
    num_others = metadata.num_nodes_per_type[other_type]
    return EdgeArrays(layout, part, offset, row_type, num_others, indptr, indices, ids, edge_rows)


def read_edges(arrays: EdgeArrays) -> Iterator[EdgeSlice]:
    """Yield all entries of one layout in one partition; rows with very many entries are cut, too."""
    num_rows = arrays.indptr.num_rows - 1
    for low in range(0, num_rows, _ROWS):
        high = min(low + _ROWS, num_rows)
        indptr = arrays.indptr.read(low, high + 1)
        for start in range(int(indptr[0]), int(indptr[-1]), _SLICE):
            stop = min(start + _SLICE, int(indptr[-1]))
            yield EdgeSlice(
                start,
                number_rows(indptr, low, start, stop),
                _as_ints(arrays.indices, start, stop),
                _as_ints(arrays.ids, start, stop),
                _as_ints(arrays.edge_rows, start, stop),
            )


def _as_ints(array: CheckedArray | None, start: int, stop: int) -> Ints:
    if array is None:
        return np.zeros(stop - start, np.int64)
    return array.read(start, stop).astype(np.int64, copy=False)


# ---------------------------------------------------------------------------------------------------- rows


def _check_rows(edges: CheckedEdges, arrays: EdgeArrays, faults: Faults, advance: Callable[[int], None]) -> bool:
    """Check ranges and the order inside rows. Returns whether two neighbours of a row are equal, under order by ID."""
    order = RowOrder(edges, arrays)
    duplicates = False
    last: RowKeys | None = None
    for piece in read_edges(arrays):
        advance(piece.others.size)
        bad = (piece.others < 0) | (piece.others >= arrays.num_others)
        words = "expected a typed ID in [0, {}), found {}"
        faults.add_rows(arrays.indices.path, bad, piece.start, words, arrays.num_others, piece.others)
        keys = order.keys(piece)
        if keys is None:
            continue
        all_keys = keys if last is None else last.join(keys)
        duplicates |= bool(all_keys.repeats().any())
        offset = piece.start - (last is not None)
        _add_disorder(edges, arrays, all_keys, offset, faults)
        last = keys.last()
    return duplicates and edges.schema.neighbor_order == "id"


def _add_disorder(edges: CheckedEdges, arrays: EdgeArrays, keys: RowKeys, offset: int, faults: Faults) -> None:
    order = edges.schema.neighbor_order
    words = {"input": "edge ID", "id": "ID", "time": "time", "weight": "weight"}[order]
    path = arrays.indices.path if order != "input" or arrays.ids is None else arrays.ids.path

    def say(i: int) -> str:
        pair = f"{keys.show(i)} stands before {keys.show(i + 1)}"
        return f"row {keys.rows[i + 1]} is not ordered by {words} (ties by edge ID): {pair}"

    faults.add_rows(path, keys.disorder(), offset + 1, "{}", say)


@dataclass(frozen=True, eq=False)
class RowKeys:
    """What consecutive entries are ordered by inside their rows: ``ranks``, then ``values``, then ``ids``; all ascend.

    ``values`` may be numbers of any dtype; where ``ids`` are all zero there are none.
    """

    rows: Ints
    ranks: NDArray[np.int8]
    values: Keys
    ids: Ints
    has_ids: bool
    names: tuple[str, ...] = ("", "NaN", "no value")
    negated: bool = False

    def join(self, after: RowKeys) -> RowKeys:
        """Return these keys and those that follow."""
        return RowKeys(
            np.concatenate([self.rows, after.rows]),
            np.concatenate([self.ranks, after.ranks]),
            np.concatenate([self.values, after.values]),
            np.concatenate([self.ids, after.ids]),
            self.has_ids,
            self.names,
            self.negated,
        )

    def last(self) -> RowKeys:
        """Return the last entry alone."""
        return RowKeys(self.rows[-1:], self.ranks[-1:], self.values[-1:], self.ids[-1:], self.has_ids, self.names, self.negated)

    def repeats(self) -> Flags:
        """Return bool[k - 1]: whether an entry and the one after it are in one row with equal values."""
        same = (self.rows[1:] == self.rows[:-1]) & (self.ranks[1:] == self.ranks[:-1])
        return np.asarray(same & (self.values[1:] == self.values[:-1]), np.bool_)

    def disorder(self) -> Flags:
        """Return bool[k - 1]: whether an entry must not stand before the one after it."""
        ranks, later_ranks = self.ranks[:-1], self.ranks[1:]
        both = (ranks == 0) & (later_ranks == 0)
        less = (ranks < later_ranks) | (both & np.less(self.values[:-1], self.values[1:]))
        more = (ranks > later_ranks) | (both & np.greater(self.values[:-1], self.values[1:]))
        tie = ~less & ~more
        wrong = more | (tie & (self.ids[:-1] >= self.ids[1:])) if self.has_ids else more
        return np.asarray(wrong & (self.rows[1:] == self.rows[:-1]), np.bool_)

    def show(self, i: int) -> str:
        """Return entry i's key in words."""
        value = self.names[self.ranks[i]] or str(-self.values[i] if self.negated else self.values[i])
        return f"{value} (edge ID {self.ids[i]})" if self.has_ids else value


class RowOrder:
    """Makes the keys that order one layout's rows in one partition."""

    def __init__(self, edges: CheckedEdges, arrays: EdgeArrays) -> None:
        self._arrays = arrays
        self._order = edges.schema.neighbor_order
        self._column: EdgeColumn | None = None
        column = order_column(edges.schema)
        if column is not None:
            stem = f"{edge_folder(edges.edge_type)}/{column.path}"
            self._column = EdgeColumn.open(edges, stem, optional=column.optional)

    def keys(self, piece: EdgeSlice) -> RowKeys | None:
        """Return the keys of a slice; None where they cannot be known (no edge IDs, or a faulty column)."""
        has_ids = self._arrays.ids is not None
        zeros = np.zeros(piece.rows.size, np.int8)
        if self._order == "input":
            return RowKeys(piece.rows, zeros, piece.ids, piece.ids, has_ids=False) if has_ids else None
        if self._order == "id":
            return RowKeys(piece.rows, zeros, piece.others, piece.ids, has_ids)
        if self._column is None:
            return None
        return self._column_keys(piece, self._column, has_ids=has_ids)

    def _column_keys(self, piece: EdgeSlice, column: EdgeColumn, *, has_ids: bool) -> RowKeys | None:
        if self._arrays.layout == column.layout:
            first = column.offsets[self._arrays.part] + piece.start
            found = column.read_run(first, first + piece.rows.size)
        elif self._arrays.edge_rows is None:
            return None
        else:
            found = column.read_rows(piece.edge_rows)
        values, present = found
        ranks = np.where(present, 0, 2).astype(np.int8)
        if self._order == "time":
            return RowKeys(piece.rows, ranks, values, piece.ids, has_ids)
        ranks[present & np.isnan(values)] = 1
        return RowKeys(piece.rows, ranks, -values, piece.ids, has_ids, negated=True)


@dataclass(frozen=True, eq=False)
class EdgeColumn:
    """A scalar column of an edge type over all partitions, read by edge row."""

    layout: Layout
    offsets: Ints
    values: tuple[CheckedArray, ...]
    present: tuple[CheckedArray, ...]

    @classmethod
    def open(cls, edges: CheckedEdges, stem: str, *, optional: bool) -> EdgeColumn | None:
        """Open the column; None where one of its files is faulty."""
        metadata = edges.store.metadata
        parts = range(metadata.num_parts)
        values = [edges.store.array(part, f"{stem}.npy") for part in parts]
        present = [edges.store.array(part, ColumnPaths(stem).present) for part in parts] if optional else []
        sound_values = tuple(array for array in values if array is not None)
        sound_present = tuple(array for array in present if array is not None)
        if len(sound_values) + len(sound_present) < len(values) + len(present):
            return None
        offsets = np.concatenate([[0], np.cumsum(metadata.num_edges_per_chunk[edges.number])]).astype(np.int64)
        return cls(metadata.primary_layout, offsets, sound_values, sound_present)

    def read_run(self, first: int, stop: int) -> tuple[Keys, Flags]:
        """Return (values, present) of edge rows [first, stop), which lie in one partition or more."""
        values, present = [self.values[0].read(0, 0)], [np.empty(0, np.bool_)]
        for part, offset in enumerate(self.offsets[:-1].tolist()):
            low, high = max(first, offset) - offset, min(stop, int(self.offsets[part + 1])) - offset
            if low < high:
                values.append(self.values[part].read(low, high))
                present.append(self.present[part].read(low, high) if self.present else np.ones(high - low, np.bool_))
        return np.concatenate(values), np.concatenate(present)

    def read_rows(self, rows: Ints) -> tuple[Keys, Flags]:
        """Return (values, present) of edge rows in any order; rows that do not exist are absent."""
        values = np.zeros(rows.size, self.values[0].dtype)
        present = np.zeros(rows.size, np.bool_)
        order = np.argsort(rows, kind="stable")
        order = order[(rows[order] >= 0) & (rows[order] < self.offsets[-1])]
        at = 0
        while at < order.size:
            first = int(rows[order[at]])
            end = int(np.searchsorted(rows[order], first + _SLICE))
            last = int(rows[order[end - 1]])
            run_values, run_present = self.read_run(first, last + 1)
            chosen = order[at:end]
            values[chosen], present[chosen] = run_values[rows[chosen] - first], run_present[rows[chosen] - first]
            at = end
        return values, present


# ---------------------------------------------------------------------------------------------------- over all partitions


def _check_edge_ids(edges: CheckedEdges, layout: Layout, faults: Faults, window_bytes: int) -> None:
    """Check that edge IDs over all partitions are 0..m-1, each once."""
    ids = [arrays.ids for arrays in edges.arrays[layout] if arrays.ids is not None]
    missing = f"{edge_folder(edges.edge_type)}/{layout}/edge_ids.npy", "{} is in no partition"
    check_permutation(ids, edges.num_edges, "edge ID", faults, window_bytes, missing=missing)


def _check_edge_row_range(edges: CheckedEdges, arrays: EdgeArrays, faults: Faults) -> None:
    array = arrays.edge_rows
    if array is None:
        return
    for start in range(0, array.num_rows, _SLICE):
        rows = array.read(start, min(start + _SLICE, array.num_rows))
        bad = (rows < 0) | (rows >= edges.num_edges)
        faults.add_rows(array.path, bad, start, "expected an edge row in [0, {}), found {}", edges.num_edges, rows)


@dataclass(frozen=True, eq=False)
class _Named:
    """A slice of edges as (source, destination, edge ID, edge row), and where it stands."""

    path: str
    start: int
    src: Ints
    dst: Ints
    ids: Ints
    rows: Ints


def _compare_layouts(edges: CheckedEdges, faults: Faults) -> None:
    """Check that CSR holds the edges of CSC, with their IDs and edge rows; names those that differ."""
    sums = {layout: _sum_edges(edges, layout) for layout in edges.store.metadata.layouts}
    differs = (sums["csc"] != sums["csr"]).any(axis=1)
    if not differs.any():
        return
    wanted = np.zeros(_BUCKETS, np.bool_)
    wanted[np.flatnonzero(differs)[:_COMPARED_BUCKETS]] = True
    csc, csr = (_collect_edges(edges, layout, wanted) for layout in ("csc", "csr"))
    for (edge, count), (here, places) in ((item, ("csc", csc)) for item in _surplus(csc, csr).items()):
        _add_surplus(edges, edge, count, here, places[edge], faults)
    for edge, count in _surplus(csr, csc).items():
        _add_surplus(edges, edge, count, "csr", csr[edge], faults)
    unnamed = int(np.count_nonzero(differs)) - int(np.count_nonzero(wanted))
    if unnamed > 0:
        faults.add(edge_folder(edges.edge_type), f"csc and csr differ in at least {unnamed} edges more")


Edge = tuple[int, int, int, int]


def _surplus(these: dict[Edge, list[str]], those: dict[Edge, list[str]]) -> dict[Edge, int]:
    """Return the edges that these have more often than those, and how much more often."""
    more = {edge: len(places) - len(those.get(edge, ())) for edge, places in these.items()}
    return {edge: count for edge, count in more.items() if count > 0}


def _add_surplus(edges: CheckedEdges, edge: Edge, count: int, layout: str, places: list[str], faults: Faults) -> None:
    src, dst, edge_id, edge_row = edge
    what = f"edge {src} -> {dst}"
    if edges.schema.edge_id_dtype is not None:
        what += f" with edge ID {edge_id}"
    if _has_edge_rows(edges):
        what += f" in edge row {edge_row}"
    other = "csr" if layout == "csc" else "csc"
    for place in places[-count:]:
        faults.add(place, f"{what} is not in {other}")


def _has_edge_rows(edges: CheckedEdges) -> bool:
    return any(arrays.edge_rows is not None for group in edges.arrays.values() for arrays in group)


def _sum_edges(edges: CheckedEdges, layout: Layout) -> NDArray[np.uint64]:
    sums = np.zeros((_BUCKETS, 2), np.uint64)
    for piece in _named_slices(edges, layout):
        add_edge_sums(_bucket_keys(edges, piece), piece.ids, piece.src, piece.dst, piece.rows, sums)
    return sums


def _bucket_keys(edges: CheckedEdges, piece: _Named) -> Ints:
    """Return what tells the buckets apart: what should differ between edges, so that a fault stays in few buckets."""
    if edges.schema.edge_id_dtype is not None:
        return piece.ids
    keys: Ints = hash_pairs(piece.src, piece.dst)
    return keys


def _named_slices(edges: CheckedEdges, layout: Layout) -> Iterator[_Named]:
    """Yield all edges of a layout with both ends; edge rows where both layouts know them, else zeros."""
    has_rows, offset = _has_edge_rows(edges), 0
    for arrays in edges.arrays[layout]:
        for piece in read_edges(arrays):
            src, dst = arrays.ends(piece)
            rows = piece.edge_rows
            if has_rows and arrays.edge_rows is None:
                rows = np.arange(offset + piece.start, offset + piece.start + src.size, dtype=np.int64)
            yield _Named(arrays.indices.path, piece.start, src, dst, piece.ids, rows)
        offset += arrays.indices.num_rows


def _collect_edges(edges: CheckedEdges, layout: Layout, wanted: Flags) -> dict[Edge, list[str]]:
    """Return the edges of the wanted buckets, each with its places."""
    found: dict[Edge, list[str]] = {}
    for piece in _named_slices(edges, layout):
        for i in np.flatnonzero(choose_buckets(_bucket_keys(edges, piece), wanted)).tolist():
            edge = (int(piece.src[i]), int(piece.dst[i]), int(piece.ids[i]), int(piece.rows[i]))
            found.setdefault(edge, []).append(f"{piece.path}[{piece.start + i}]")
    return found


def _check_checksum(edges: CheckedEdges, faults: Faults, window_bytes: int, advance: Callable[[int], None]) -> None:
    """Compute the edge checksum again from h of raw IDs, for as many nodes of the other end at a time as fit."""
    store, primary = edges.store, edges.store.metadata.primary_layout
    other_end = edges.edge_type[0 if primary == "csc" else 2]
    other_type = store.metadata.node_types.index(other_end)
    num_others = store.metadata.num_nodes_per_type[other_type]
    window = max(_SLICE, window_bytes // 8)
    total = turned = 0
    for first in range(0, num_others, window):
        others = read_hashes(store, other_type, first, min(first + window, num_others))
        if others is None:
            return
        for arrays in edges.arrays[primary]:
            for piece in read_edges(arrays):
                advance(piece.others.size if first == 0 else 0)
                ends = _end_hashes(store, arrays, piece, first, others)
                if ends is None:
                    return
                total += pair_checksum(*ends)
                turned += 0 if edges.schema.reverse_of is None else pair_checksum(*ends[::-1])
    found = f"{total % 2**64:016x}"
    if found != edges.schema.checksum:
        faults.add(f"{edges.place}.checksum", f"expected {found}, the checksum of the edges, found {edges.schema.checksum}")
    _check_reverse(edges, f"{turned % 2**64:016x}", faults)


def _check_reverse(edges: CheckedEdges, turned: str, faults: Faults) -> None:
    """Check that the edges, of which ``turned`` is the checksum the other way round, are those of the type that is named."""
    metadata, known = edges.store.metadata, edges.schema.reverse_of
    if known is None:
        return
    name = edge_type_text(known)
    if known not in metadata.edge_types:
        faults.add(f"{edges.place}.reverse_of", f"there is no edge type {name!r}")
    elif (found := metadata.edge_schemas[metadata.edge_types.index(known)].checksum) != turned:
        what = f"expected edges whose reverses have the checksum {found} of {name!r}, found {turned}"
        faults.add(f"{edges.place}.reverse_of", what)


def _end_hashes(
    store: CheckedStore, arrays: EdgeArrays, piece: EdgeSlice, first: int, others: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
    """Return h of sources and destinations of a slice's edges whose other end lies in the window; None: they cannot be read."""
    low, high = int(piece.rows[0]), int(piece.rows[-1]) + 1
    own = read_hashes(store, arrays.row_type, arrays.row_offset + low, arrays.row_offset + high)
    if own is None:
        return None
    inside = (piece.others >= first) & (piece.others < first + others.size)
    own_hashes, other_hashes = own[piece.rows[inside] - low], others[piece.others[inside] - first]
    return (other_hashes, own_hashes) if arrays.layout == "csc" else (own_hashes, other_hashes)
