"""The edges that messages pass over: those of a type without the parts of its split that are held out, and with a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import PART_NAMES
from graphprep.derived.need import has_split
from graphprep.derived.store import DerivedFiles, DerivedStore
from graphprep.edges.build import settle_index_dtype
from graphprep.edges.moves import Workspace
from graphprep.model.export import HELD_OUT, StoreNeed
from graphprep.model.protocols import Reporter
from graphprep.model.schema import EdgeTypeSchema
from graphprep.rewrite.move_parts import OnePart
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.files import Chain, column_files
from graphprep.store.items import StoredArray, StoredCounts, StoredItems, read_offsets
from graphprep.store.paths import LayoutPaths
from graphprep.store.single import CountingArray

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
UNTIMED = "untimed"  # of an edge that has no time, among the parts that are counted
_STEP = 1 << 17  # rows looked at at once
_ITEM_BYTES = 32  # what is computed of an item that is copied


@dataclass(frozen=True)
class KeptRows:
    """Rows that stay, as runs [start, stop) that ascend; ``before`` are the kept rows before each run, and all of them.

    All int64: starts[k], stops[k], before[k + 1].
    """

    starts: Ints
    stops: Ints
    before: Ints

    @classmethod
    def of(cls, starts: Ints, stops: Ints, scratch: Scratch) -> KeptRows:
        """Count the rows of the runs."""
        before = scratch.zeros(starts.size + 1, np.int64)
        for low in range(0, starts.size, _STEP):
            ends = before[low + 1 : low + 1 + _STEP]
            np.cumsum(stops[low : low + _STEP] - starts[low : low + _STEP], out=ends)
            ends += before[low]
        return cls(starts, stops, before)

    @property
    def size(self) -> int:
        """Return the number of kept rows."""
        return int(self.before[-1])

    def ranks(self, rows: Ints) -> Ints:
        """Return how many kept rows lie before each of some rows."""
        if not self.starts.size:
            return np.zeros(rows.size, np.int64)
        at = np.searchsorted(self.starts, rows, side="right") - 1
        run = np.maximum(at, 0)
        inside = np.minimum(rows, self.stops[run]) - self.starts[run]
        return np.where(at < 0, 0, self.before[run] + inside)

    def pieces(self, most: int) -> Iterator[tuple[Ints, Ints]]:
        """Yield the runs, (starts, stops), in pieces of at most so many rows."""
        for low in range(0, self.size, most):
            high = min(low + most, self.size)
            first = int(np.searchsorted(self.before, low, side="right")) - 1
            last = int(np.searchsorted(self.before, high, side="left"))
            starts, stops = self.starts[first:last].copy(), self.stops[first:last].copy()
            starts[0] += low - int(self.before[first])
            stops[-1] -= int(self.before[last]) - high
            yield starts, stops

    def below(self, offsets: StoredArray, scratch: Scratch) -> KeptRows:
        """Return the items that the rows own, by stored offsets."""
        starts, stops = (scratch.zeros(self.starts.size, np.int64) for _ in range(2))
        for low in range(0, starts.size, _STEP):
            some = slice(low, low + _STEP)
            starts[some], stops[some] = offsets.take(self.starts[some]), offsets.take(self.stops[some])
        return KeptRows.of(starts, stops, scratch)


class MessageEdgeFilter:
    """Writes the primary layout of edge types again, and its columns, without the edges that are held out.

    The edges that stay keep their order and their edge IDs; in a store without these their edge rows become their IDs.
    Raises DataError where the store's arrays are faulty.
    """

    def __init__(self, ready: DerivedStore, files: DerivedFiles, need: StoreNeed, room: Workspace, reporter: Reporter) -> None:
        self._ready = ready
        self._files = files
        self._held_out = HELD_OUT[need.message_edges]
        self._timed = need.timed_edges
        self._room = room
        self._reporter = reporter
        self._counts: dict[int, dict[str, int]] = {}

    def write(self, numbers: Sequence[int]) -> DerivedStore:
        """Return the store with all types, of which those of these numbers have fewer edges."""
        metadata = self._ready.metadata
        counts, schemas = list(metadata.num_edges_per_chunk), list(metadata.edge_schemas)
        for number in numbers:
            parts = self._held_out if has_split(metadata, number) else ()
            self._counts[number] = {PART_NAMES[part]: 0 for part in parts} | ({UNTIMED: 0} if number in self._timed else {})
            schemas[number] = self._with_edge_ids(number)
            counts[number] = tuple(self._write_type(number, schemas[number]))
            self._reporter.advance(records=metadata.num_edges_per_type[number])
        kept = replace(metadata, num_edges_per_chunk=tuple(counts), edge_schemas=tuple(schemas))
        found = DerivedStore(kept, self._ready, all_edges=self._ready)
        found.held_out |= self._counts
        self._files.show(found)
        return found

    def _with_edge_ids(self, number: int) -> EdgeTypeSchema:
        schema, num_edges = self._ready.metadata.edge_schemas[number], self._ready.metadata.num_edges_per_type[number]
        return replace(schema, edge_id_dtype=schema.edge_id_dtype or settle_index_dtype("auto", num_edges))

    def _write_type(self, number: int, schema: EdgeTypeSchema) -> Iterator[int]:
        """Write an edge type; yield how many of its edges each partition keeps."""
        first_row, layout = 0, self._ready.metadata.primary_layout
        for part in range(self._ready.metadata.num_parts):
            with self._room.scratch.inner() as scratch:
                size = self._ready.array(part, LayoutPaths(f"{self._ready.edge_folder(number)}/{layout}").indices).shape[0]
                kept = _find_runs(partial(self._stays, number, part), size, scratch)
                self._write_layout(number, part, schema, kept, first_row, scratch)
                self._write_columns(number, part, kept, scratch)
                yield kept.size
                first_row += size

    def _stays(self, number: int, part: int, low: int, high: int) -> Mask:
        """Return which of the edges [low, high) of a partition have a time and are in no part that is held out."""
        ready, counts, stays = self._ready, self._counts[number], np.ones(high - low, np.bool_)
        for column in ready.metadata.edge_schemas[number].columns:
            if column.role not in ("split", "time"):
                continue
            stem = f"{ready.edge_folder(number)}/{column.path}"
            present = read_present(ready, part, stem, column, low, high)
            if column.role == "time" and UNTIMED in counts and present is not None:
                counts[UNTIMED] += int((stays & ~present).sum())
                stays &= present
            for value in self._held_out if column.role == "split" else ():
                out = read_cells(ready, part, stem, column, low, high).flat == value
                out = stays & (out if present is None else out & present)
                counts[PART_NAMES[value]] += int(out.sum())
                stays &= ~out
        return stays

    def _write_layout(
        self, number: int, part: int, schema: EdgeTypeSchema, kept: KeptRows, first_row: int, scratch: Scratch
    ) -> None:
        ready, out = self._ready, OnePart(self._files, part)
        folder = f"{ready.edge_folder(number)}/{ready.metadata.primary_layout}"
        indices = ready.array(part, LayoutPaths(folder).indices)
        indptr = read_offsets(ready.array(part, LayoutPaths(folder).indptr), indices.shape[0], scratch)
        ranks = (kept.ranks(np.asarray(indptr[low : low + _STEP])) for low in range(0, indptr.size, _STEP))
        out.write(LayoutPaths(folder).indptr, "int64", indptr.shape, ranks)
        self._copy(out, indices, LayoutPaths(folder).indices, kept)
        path = LayoutPaths(folder).edge_ids
        if ready.metadata.edge_schemas[number].edge_id_dtype is not None:
            self._copy(out, ready.array(part, path), path, kept)
            return
        dtype, rows = np.dtype(str(schema.edge_id_dtype)), CountingArray(path, indices.shape[0])
        pieces = ((rows.gather(*runs) + first_row).astype(dtype) for runs in kept.pieces(self._most(8)))
        out.write(path, dtype.name, (kept.size,), pieces)

    def _write_columns(self, number: int, part: int, kept: KeptRows, scratch: Scratch) -> None:
        ready, out = self._ready, OnePart(self._files, part)
        schema = ready.metadata.edge_schemas[number]
        owners: dict[Chain, KeptRows] = {(): kept}
        for file in column_files(ready.edge_folder(number), schema.columns, num_slots=schema.num_slots):
            array, rows = ready.array(part, file.path), owners[file.chain]
            if not file.is_offsets:
                self._copy(out, array, file.path, rows)
                continue
            counts = StoredCounts(array)
            out.write_offsets(file.path, rows.size, (counts.gather(*runs) for runs in rows.pieces(self._most(8))))
            owners[*file.chain, file.path] = rows.below(array, scratch)

    def _copy(self, out: OnePart, array: StoredArray, path: str, kept: KeptRows) -> None:
        items = StoredItems(array)
        pieces = (items.gather(*runs) for runs in kept.pieces(self._most(items.item_bytes)))
        out.write(path, array.dtype.name, (kept.size, *array.shape[1:]), pieces)

    def _most(self, item_bytes: int) -> int:
        return self._room.fit(max(item_bytes, _ITEM_BYTES))


def _find_runs(stays: Callable[[int, int], Mask], size: int, scratch: Scratch) -> KeptRows:
    """Find the runs of rows of which ``stays(low, high)`` says that they stay."""
    mask, num_runs, last = scratch.zeros(size, np.bool_), 0, False
    for low in range(0, size, _STEP):
        high = min(low + _STEP, size)
        mask[low:high] = stays(low, high)
        begins, _ = _borders(mask, low, high, is_kept_before=last)
        num_runs, last = num_runs + begins.size, bool(mask[high - 1])
    starts, stops = scratch.zeros(num_runs, np.int64), scratch.zeros(num_runs, np.int64)
    num_starts, num_stops, last = 0, 0, False
    for low in range(0, size, _STEP):
        high = min(low + _STEP, size)
        begins, ends = _borders(mask, low, high, is_kept_before=last)
        starts[num_starts : num_starts + begins.size] = begins
        stops[num_stops : num_stops + ends.size] = ends
        num_starts, num_stops, last = num_starts + begins.size, num_stops + ends.size, bool(mask[high - 1])
    stops[num_stops:] = size
    return KeptRows.of(starts, stops, scratch)


def _borders(mask: Mask, low: int, high: int, *, is_kept_before: bool) -> tuple[Ints, Ints]:
    """Return where runs begin and end among the rows [low, high)."""
    some = mask[low:high]
    before = np.concatenate([[is_kept_before], some[:-1]])
    return np.flatnonzero(some & ~before) + low, np.flatnonzero(before & ~some) + low
