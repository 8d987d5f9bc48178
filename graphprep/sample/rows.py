"""Rows of block types: drawn from where arrays are held or mapped, and by streaming them where they are beyond memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.store import DerivedStore
from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.kernels.cpu.sample.draw import draw_chosen, find_bounds, take_entries
from graphprep.model.errors import DataError, MemoryLimitError, UsageError
from graphprep.model.schema import ColumnSchema, Layout, edge_type_text
from graphprep.sample.arrays import BlockType
from graphprep.storage.faults import display_url
from graphprep.store.columns.times import DROP, FilledTimes, count_missing, stand_in
from graphprep.store.items import FIX, StoredArray, StoredItems, check_ids
from graphprep.store.paths import ColumnPaths, LayoutPaths
from graphprep.store.single import CountingArray, WholeStore

Ints = NDArray[np.int64]
Array = NDArray[Any]
ENTRY_BYTES = 48  # of an entry of a row that is looked at as a whole: weight, time, and four numbers of the kernel's
_SPARSE = 256  # of so many entries less than one: single ones are fetched


@dataclass(frozen=True)
class BlockArrays:
    """The stored arrays of a block type's rows, over all partitions. ``edge_ids``: where none are stored, edge rows."""

    indptr: StoredArray
    indices: StoredArray
    edge_ids: StoredArray
    weights: StoredArray | None
    times: StoredArray | None
    num_others: int

    @property
    def num_edges(self) -> int:
        """Return the number of entries."""
        return self.indices.shape[0]

    def every(self) -> list[StoredArray]:
        """Return all arrays."""
        return [one for one in (self.indptr, self.indices, self.edge_ids, self.weights, self.times) if one is not None]


class Requests(NamedTuple):
    """Nodes whose rows are drawn from, in the order of flows.

    ``nodes`` int64[n]; ``times`` int64[n] or None; ``flows`` int32[n], None where there is one; ``keys`` uint64[flows].
    """

    nodes: Ints
    times: Ints | None
    flows: NDArray[np.int32] | None
    keys: NDArray[np.uint64]


class Rows(Protocol):
    """Rows of one block type. Every method takes arrays in the order of requests, and gives such. Raises DataError."""

    arrays: BlockArrays

    def bounds(self, nodes: Ints) -> tuple[Ints, Ints]:
        """Return where rows begin among all entries, and how long they are: int64[n] each."""

    def choose(
        self, of: Requests, starts: Ints, degrees: Ints, offsets: Ints, fanout: int, *, replace: bool
    ) -> tuple[Ints, Ints]:
        """Draw by weights and times: positions of entries, those of a request from ``offsets`` on, and how many: int64[n]."""

    def take(self, positions: Ints) -> tuple[Ints, Ints]:
        """Return the other ends and the edge IDs of entries: int64[m] each."""


def layout_of(block_type: BlockType) -> Layout:
    """Return the layout whose rows are the block type's destinations."""
    return "csr" if block_type.is_reversed else "csc"


def open_rows(
    store: DerivedStore, block_type: BlockType, weight: ColumnSchema | None, time: ColumnSchema | None, missing_time: str = DROP
) -> BlockArrays:
    """Open the arrays of a block type, with the columns of its weights and times.

    Raises DataError where one is missing, and for edges without a time where ``missing_time`` refuses these.
    """
    whole, number, layout = WholeStore(store), block_type.number, layout_of(block_type)
    metadata = store.metadata
    paths = LayoutPaths(f"{store.edge_folder(number)}/{layout}")
    indices = whole.array(0, paths.indices)
    if metadata.edge_schemas[number].edge_id_dtype is not None:
        edge_ids = whole.array(0, paths.edge_ids)
    elif layout == metadata.primary_layout:
        edge_ids = CountingArray(paths.edge_ids, indices.shape[0])
    elif store.has(0, paths.edge_rows):
        edge_ids = whole.array(0, paths.edge_rows)
    else:
        raise UsageError(
            f"the {layout.upper()} rows of {edge_type_text(block_type.edge_type)!r} do not tell their edges",
            fix="convert without --no-edge-ids, or draw in the other --direction",
        )
    weights, times = (
        None if column is None else whole.array(0, f"{store.edge_column_stem(number, layout, column)}.npy")
        for column in (weight, time)
    )
    if time is not None and time.optional and times is not None:
        present = whole.array(0, ColumnPaths(store.edge_column_stem(number, layout, time)).present)
        if missing := count_missing(present):
            value = stand_in(missing_time, edge_type_text(block_type.edge_type), time, missing)
            times = FilledTimes(times, present, value, missing)
    num_others = metadata.num_nodes_per_type[block_type.source]
    return BlockArrays(whole.array(0, paths.indptr), indices, edge_ids, weights, times, num_others)


def hold_or_stream(every: list[BlockArrays], room: Workspace) -> list[Rows]:
    """Return what draws: from maps and copies where these fit the memory limit, else by streaming."""
    arrays = [array for one in every for array in one.every() if not isinstance(array, CountingArray)]
    mapped, held = (sum(one.entry.num_bytes for one in arrays if one.is_local is is_local) for is_local in (True, False))
    if mapped <= room.mapped_bytes and held <= room.held_bytes:
        return [HeldRows(one) for one in every]
    return [StreamedRows(one, room) for one in every]


def _check_bounds(arrays: BlockArrays, bad: int, nodes: Ints) -> None:
    if bad >= 0:
        place = f"{display_url(arrays.indptr.url)}[{int(nodes[bad])}]"
        raise DataError("offsets must begin at 0 and not descend", place=place, fix=FIX)


def _check_weight(arrays: BlockArrays, bad: int) -> None:
    if bad >= 0 and arrays.weights is not None:
        found = arrays.weights.read(bad, bad + 1)[0]
        place = f"{display_url(arrays.weights.url)}[{bad}]"
        raise DataError(f"expected a weight of 0 or more, found {found}", place=place, fix="choose another --weight-column")


class HeldRows:
    """Rows of arrays that are mapped or held."""

    def __init__(self, arrays: BlockArrays) -> None:
        self.arrays = arrays
        self._indptr, self._indices = np.asarray(arrays.indptr.map()), np.asarray(arrays.indices.map())
        self._edge_ids = None if isinstance(arrays.edge_ids, CountingArray) else np.asarray(arrays.edge_ids.map())
        self._weights, self._times = (None if one is None else np.asarray(one.map()) for one in (arrays.weights, arrays.times))

    def bounds(self, nodes: Ints) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        starts, degrees = np.empty(nodes.size, np.int64), np.empty(nodes.size, np.int64)
        _check_bounds(self.arrays, find_bounds(None, nodes, self._indptr, 0, self.arrays.num_edges, starts, degrees), nodes)
        return starts, degrees

    def choose(
        self, of: Requests, starts: Ints, degrees: Ints, offsets: Ints, fanout: int, *, replace: bool
    ) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        positions, counts = np.empty(int(offsets[-1]), np.int64), np.zeros(of.nodes.size, np.int64)
        held = np.empty((4, int(degrees.max(initial=0))))
        bad = draw_chosen(
            None, starts, *of, starts, degrees, offsets, fanout, replace, self._weights, self._times, held, positions, counts
        )  # fmt: skip
        _check_weight(self.arrays, bad)
        return positions, counts

    def take(self, positions: Ints) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        sources = np.empty(positions.size, np.int64)
        take_entries(None, positions, self._indices, 0, sources)
        check_ids(StoredItems(self.arrays.indices), None, sources, self.arrays.num_others)
        if self._edge_ids is None:
            return sources, positions
        ids = np.empty(positions.size, np.int64)
        take_entries(None, positions, self._edge_ids, 0, ids)
        return sources, ids


class StreamedRows:
    """Rows of arrays that are read front to back, in pieces on threads, each piece once for all requests that want of it."""

    def __init__(self, arrays: BlockArrays, room: Workspace) -> None:
        self.arrays = arrays
        self._room = room

    def bounds(self, nodes: Ints) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        starts, degrees = np.empty(nodes.size, np.int64), np.empty(nodes.size, np.int64)
        order = stable_order(nodes)

        def find(span: tuple[int, int]) -> int:
            some = order[slice(*span)]
            low, high = int(nodes[some[0]]), int(nodes[some[-1]])
            indptr = self.arrays.indptr.read(low, high + 2)
            return find_bounds(some, nodes, indptr, low, self.arrays.num_edges, starts, degrees)

        for bad in map_ordered(find, _pieces(nodes[order], self._room.fit(8)), self._room.threads):
            _check_bounds(self.arrays, bad, nodes)
        return starts, degrees

    def choose(
        self, of: Requests, starts: Ints, degrees: Ints, offsets: Ints, fanout: int, *, replace: bool
    ) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        positions, counts = np.empty(int(offsets[-1]), np.int64), np.zeros(of.nodes.size, np.int64)
        order = stable_order(of.nodes)
        longest = int(degrees.max(initial=0)) * ENTRY_BYTES
        if longest > self._room.held_bytes:
            raise MemoryLimitError(
                f"the longest row takes {format_size(longest)} to draw from by weight or time",
                fix="raise --memory-limit, or draw without --weight-column and --time-column",
            )

        def draw(span: tuple[int, int]) -> int:
            some = order[slice(*span)]
            rows, inverse = np.unique(starts[some], return_inverse=True)
            stops = np.zeros(rows.size, np.int64)
            stops[inverse] = starts[some] + degrees[some]
            at = (np.cumsum(stops - rows) - (stops - rows))[inverse]
            weights, times = (
                None if one is None else one.gather(rows, stops) for one in (self.arrays.weights, self.arrays.times)
            )
            held = np.empty((4, int(degrees[some].max())))
            return draw_chosen(
                some, at, *of, starts, degrees, offsets, fanout, replace, weights, times, held, positions, counts
            )  # fmt: skip

        order = order[degrees[order] > 0]
        for bad in map_ordered(draw, _row_pieces(degrees[order], self._room.fit(ENTRY_BYTES)), self._room.threads):
            _check_weight(self.arrays, bad)
        return positions, counts

    def take(self, positions: Ints) -> tuple[Ints, Ints]:
        """See ``Rows``."""
        order = stable_order(positions)
        sources, ids = np.empty(positions.size, np.int64), np.empty(positions.size, np.int64)

        def fetch(span: tuple[int, int]) -> None:
            some = order[slice(*span)]
            low, high = int(positions[some[0]]), int(positions[some[-1]]) + 1
            for array, out in ((self.arrays.indices, sources), (self.arrays.edge_ids, ids)):
                if some.size * _SPARSE < high - low:
                    out[some] = array.take(positions[some])
                else:
                    take_entries(some, positions, array.read(low, high), low, out)

        for _ in map_ordered(fetch, _pieces(positions[order], self._room.fit(16)), self._room.threads):
            pass
        check_ids(StoredItems(self.arrays.indices), None, sources, self.arrays.num_others)
        return sources, ids


def _pieces(ascending: Ints, step: int) -> Iterator[tuple[int, int]]:
    """Cut what ascends where a multiple of ``step`` lies between."""
    cuts = np.flatnonzero(np.diff(ascending // step)) + 1
    yield from zip([0, *cuts.tolist()], [*cuts.tolist(), ascending.size], strict=True) if ascending.size else ()


def _row_pieces(degrees: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Cut requests into runs of at most so many entries, or of one."""
    ends, low = np.cumsum(degrees), 0
    while low < degrees.size:
        base = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, base + most, side="right")))
        yield low, high
        low = high
