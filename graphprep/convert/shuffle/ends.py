"""Streams that run beside the edges, batch after batch: their resolved ends, and columns that stand apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.aligned import AlignedRuns, column_share
from graphprep.convert.decoded.batch_rows import EndHashes, RawBatchEdges
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.rows import Batch, Decoded, wide_ids
from graphprep.convert.index.nodes import NodeIndex
from graphprep.convert.index.resolve import Finders, Found, Resolved
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.spill.runs import SpillPool
from graphprep.store.columns.cells import Cells, concat_cells, empty_cells

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]


class Ends:
    """Resolves the ends of all edges, batch after batch."""

    def __init__(self, decoded: Decoded, index: NodeIndex, pool: SpillPool, cap_bytes: int) -> None:
        self._decoded = decoded
        self._pool = pool
        self._maps = Finders(index.spaces, cap_bytes)
        self._quick: dict[str, Callable[[NDArray[Any]], Found | None] | None] = {}
        self._streams: dict[tuple[int, str], Iterator[Resolved]] = {}
        self._lock = threading.Lock()  # of ``_quick``: one thread makes a table, the others wait for it

    def resolve(self, side: int, batch: Batch, ids: RawIds) -> Resolved:
        """Resolve one end (0: the source) of a batch's edges; every batch with edges must be asked for, in order."""
        name = self._space_name(batch, side)
        find = self._maps.find(name)
        if find is not None:
            return find(ids)
        if (side, name) not in self._streams:
            self._streams[side, name] = self._maps.join(name, self._chunks(side, name), self._pool)
        return next(self._streams[side, name])

    def fit_in_memory(self) -> bool:
        """Return whether all maps fit in memory, so that edges are read but once."""
        kinds = {batch.codes: batch for batch in self._decoded.batches if batch.num_edges}
        names = {self._space_name(batch, side) for batch in kinds.values() for side in range(2)}
        return all(self._maps.find(name) is not None for name in names)

    def resolve_both(self, batch: Batch, chunk: RawBatchEdges) -> tuple[Resolved, Resolved]:
        """Resolve the ends of a batch whose maps fit in memory: in any order, on any thread."""
        src, dst = (self._maps.find(self._space_name(batch, side)) for side in range(2))
        assert src is not None
        assert dst is not None
        return src(wide_ids(chunk.src)), dst(wide_ids(chunk.dst))

    def resolve_in_order(self, batch: Batch, chunk: RawBatchEdges) -> tuple[Resolved, Resolved] | None:
        """Resolve the ends of a batch where a map does not fit in memory, else None; batches must come in order."""
        finders = [self._maps.find(self._space_name(batch, side)) for side in range(2)]
        if all(find is not None for find in finders):
            return None
        return self.resolve(0, batch, wide_ids(chunk.src)), self.resolve(1, batch, wide_ids(chunk.dst))

    def find_both(self, batch: Batch, chunk: RawBatchEdges) -> tuple[Found, Found] | None:
        """Look the ends up where that needs no more than arithmetic; None where it does, or an end is not there."""
        if batch.relation is None:
            return None
        found = []
        for side, ids in enumerate((chunk.src, chunk.dst)):
            quick = self._quick_finder(self._space_name(batch, side))
            one = None if quick is None else quick(ids)
            if one is None:
                return None
            found.append(one)
        return found[0], found[1]

    def _quick_finder(self, name: str) -> Callable[[NDArray[Any]], Found | None] | None:
        with self._lock:
            if name not in self._quick:
                self._quick[name] = self._maps.find_quickly(name)
            return self._quick[name]

    def text_keys(self, batch: Batch, chunk: RawBatchEdges) -> EndHashes:
        """Return the ends of a batch's edges where they are keys of texts, which are their hashes."""
        are_texts = [self._space_name(batch, side) in self._decoded.texts for side in range(2)]
        return EndHashes(wide_ids(chunk.src) if are_texts[0] else None, wide_ids(chunk.dst) if are_texts[1] else None)

    def _space_name(self, batch: Batch, side: int) -> str:
        return self._decoded.end_spaces(batch)[side][0]

    def _chunks(self, side: int, name: str) -> Iterator[RawIds]:
        """Yield the ends in one space: a map that does not fit is joined with all of them at once."""
        for batch, chunk in zip(self._decoded.batches, self._decoded.raw_edges(), strict=True):
            if batch.num_edges and self._space_name(batch, side) == name:
                yield wide_ids(chunk.dst if side else chunk.src)


def text_hashes(decoded: Decoded) -> Iterator[EndHashes | None]:
    """Yield h of the ends of every batch, None where keys are that already."""
    return iter([None] * len(decoded.batches)) if decoded.hashes is None else decoded.hashes.read(0)


class AlignedCursor:
    """Reads an edge column that stands apart from its edges, in the order of edge IDs."""

    def __init__(self, key: ColumnKey, runs: AlignedRuns | FileColumn, most_bytes: int) -> None:
        self.key = key
        self._chunks = runs.read(most_bytes)
        self._held: list[tuple[Ints, Cells]] = []

    def take(self, start: int, stop: int) -> tuple[Ints, Cells]:
        """Return the rows (edge IDs) in [start, stop) and their cells; calls go upwards."""
        while not self._held or self._held[-1][0][-1] < stop - 1:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            if chunk[0].size:
                self._held.append(chunk)
        taken = [(np.zeros(0, np.int64), empty_cells(self.key))]
        rest = []
        for rows, cells in self._held:
            cut = int(np.searchsorted(rows, stop))
            if cut:
                taken.append((rows[:cut], cells.slice(0, cut)))
            if cut < rows.size:
                rest.append((rows[cut:], cells.slice(cut, rows.size)))
        self._held = rest
        if len(taken) == 2:  # nearly always: no copy is made
            return taken[1]
        return np.concatenate([rows for rows, _ in taken]), concat_cells([cells for _, cells in taken])


class AlignedEdges:
    """All edge columns that stand apart from their edges, but for those that stay in their files.

    They are read side by side, and hold about ``cap_bytes`` together.
    """

    def __init__(self, decoded: Decoded, cap_bytes: int) -> None:
        self._cursors: dict[Relation, list[AlignedCursor]] = {}
        for (owner, key), runs in decoded.aligned.items():
            if isinstance(owner, Relation) and not (isinstance(runs, FileColumn) and runs.is_left):
                self._cursors.setdefault(owner, []).append(
                    AlignedCursor(key, runs, column_share(cap_bytes, len(decoded.aligned)))
                )

    def has(self, relation: Relation) -> bool:
        """Return whether a relation has any."""
        return relation in self._cursors

    def of(self, relation: Relation) -> Iterator[tuple[ColumnKey, AlignedCursor]]:
        """Yield the columns of one relation."""
        for cursor in self._cursors.get(relation, ()):
            yield cursor.key, cursor
