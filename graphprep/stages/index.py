"""Raw IDs to ranks: the sorted, unique raw IDs of an ID space, in memory or as sorted runs that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.sort import stable_order
from graphprep.kernels.cpu.unique import SeenIds
from graphprep.storage.runs import Runs, SpillPool

_CHUNK_ROWS = 1 << 16  # rows of a sorted run that a merge holds in memory at a time
_LEAST_CHUNK_ROWS = 1 << 10
_MOST_RUNS = 64  # merged at a time: each has a file open and a chunk in memory
_ROW_BYTES = 20
_Rows = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]
CREATED = np.int32(-1)  # the type of an ID that only occurs as an end, until it gets the type of created nodes


@dataclass(frozen=True)
class SortedChunk:
    """Consecutive IDs of an ID space, ascending, each once: uint64[k], the codes of their types, and which have a record."""

    ids: NDArray[np.uint64]
    types: NDArray[np.int32]
    declared: NDArray[np.bool_]


@dataclass
class _Group:
    """Rows that wait to be sorted: declared nodes (each must be unique) or ends (may repeat)."""

    declared: bool
    ids: list[NDArray[np.uint64]] = field(default_factory=list)
    types: list[NDArray[np.int32]] = field(default_factory=list)
    rows: list[NDArray[np.int64]] = field(default_factory=list)
    num_bytes: int = 0


class SpaceIndexer:
    """Collects the IDs of one ID space and yields them sorted.

    Declared nodes must all be added before ends are. ``duplicates`` afterwards holds the record numbers of declared nodes whose
    ID stood in an earlier record (int64, ascending).
    """

    def __init__(self, pool: SpillPool, cap_bytes: int) -> None:
        self._pool = pool
        self._cap = cap_bytes
        self._group = _Group(declared=True)
        self._seen: dict[int, SeenIds] = {}  # ends by code since the last flush: most of them come again and again
        self._runs: list[Runs] = []
        self._duplicates: list[NDArray[np.int64]] = []

    def add_declared(self, ids: NDArray[np.uint64], types: NDArray[np.int32], first_row: int) -> None:
        """Add nodes that records declare; ``first_row`` is the record number of the first."""
        self._add(True, ids, types, np.arange(first_row, first_row + ids.size, dtype=np.int64))

    def add_ends(self, ids: NDArray[np.uint64], code: int = int(CREATED)) -> None:
        """Add IDs that occur as ends of edges, with the code of their type."""
        new = self._seen.setdefault(code, SeenIds()).add(ids)
        self._add(False, new, np.full(new.size, code, np.int32), np.full(new.size, -1, np.int64))

    def add_rows(self, ids: NDArray[np.uint64], types: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Add IDs that are to be sorted with what stands beside them."""
        self._add(True, ids, types, rows)

    def _add(self, declared: bool, ids: NDArray[np.uint64], types: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        if declared != self._group.declared:
            self._flush()
            self._group = _Group(declared)
        group = self._group
        group.ids.append(ids)
        group.types.append(types)
        group.rows.append(rows)
        group.num_bytes += ids.nbytes + types.nbytes + rows.nbytes
        if group.num_bytes + sum(seen.num_bytes for seen in self._seen.values()) > self._cap:
            self._flush()

    def _flush(self) -> None:
        group, self._group = self._group, _Group(self._group.declared)
        self._seen = {}
        if not group.ids:
            return
        ids, types, rows = np.concatenate(group.ids), np.concatenate(group.types), np.concatenate(group.rows)
        if ids.size > 1 and not (ids[:-1] < ids[1:]).all():
            order = stable_order(ids)
            ids, types, rows = ids[order], types[order], rows[order]
            repeated = np.concatenate([np.zeros(1, bool), ids[1:] == ids[:-1]])
            if repeated.any():
                if group.declared:
                    self._duplicates.append(rows[repeated])
                ids, types, rows = ids[~repeated], types[~repeated], rows[~repeated]
        self._runs.append(self._write([(ids, types, rows)]))

    def _write(self, chunks: Iterable[_Rows]) -> Runs:
        """Write a sorted run, in chunks of which a merge can hold one for each of its runs."""
        run = Runs(self._pool, 1, coalesce=False)
        size = max(_LEAST_CHUNK_ROWS, min(_CHUNK_ROWS, self._cap // (_ROW_BYTES * _MOST_RUNS)))
        for ids, types, rows in chunks:
            for start in range(0, ids.size, size):
                stop = start + size
                run.append(0, (ids[start:stop].copy(), types[start:stop].copy(), rows[start:stop].copy()))
        return run

    def sorted(self) -> Iterator[SortedChunk]:
        """Yield all IDs, ascending, each once; a declared node wins over an end. Can be read once."""
        for ids, types, rows in self.sorted_rows():
            yield SortedChunk(ids, types, rows >= 0)

    def sorted_rows(self) -> Iterator[_Rows]:
        """Yield (ids, types, rows) of all IDs, as ``sorted`` does; the row of an end is -1."""
        self._flush()
        while len(self._runs) > _MOST_RUNS:
            groups = [self._runs[at : at + _MOST_RUNS] for at in range(0, len(self._runs), _MOST_RUNS)]
            self._runs = [self._write(self._merge(group)) for group in groups]
        yield from self._merge(self._runs)

    def _merge(self, runs: list[Runs]) -> Iterator[_Rows]:
        """Merge runs, and close them: each round takes all IDs up to the smallest of the last IDs that are in memory."""
        if len(runs) == 1:
            yield from runs[0].read(0)
        else:
            yield from self._merge_several(runs)
        for run in runs:
            run.close()

    def _merge_several(self, runs: list[Runs]) -> Iterator[_Rows]:
        cursors = [_Cursor(run) for run in runs]
        while True:
            cursors = [cursor for cursor in cursors if cursor.fill()]
            if not cursors:
                return
            bound = min(cursor.last for cursor in cursors)
            parts = [cursor.take(bound) for cursor in cursors]
            ids = np.concatenate([part[0] for part in parts])
            order = stable_order(ids)
            ids = ids[order]
            types = np.concatenate([part[1] for part in parts])[order]
            rows = np.concatenate([part[2] for part in parts])[order]
            repeated = np.concatenate([np.zeros(1, bool), ids[1:] == ids[:-1]])
            if repeated.any():
                self._duplicates.append(rows[repeated & (rows >= 0)])
                ids, types, rows = ids[~repeated], types[~repeated], rows[~repeated]
            yield ids, types, rows

    @property
    def duplicates(self) -> NDArray[np.int64]:
        """Return the record numbers of repeated declarations; complete once ``sorted`` is exhausted."""
        if not self._duplicates:
            return np.zeros(0, np.int64)
        return np.sort(np.concatenate(self._duplicates))


class _Cursor:
    """Reads one sorted run."""

    def __init__(self, run: Runs) -> None:
        self._chunks = run.read(0)
        self._chunk: _Rows | None = None

    def fill(self) -> bool:
        """Make sure that a chunk is in memory; return False at the end."""
        while self._chunk is None or not self._chunk[0].size:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._chunk = chunk
        return True

    @property
    def last(self) -> np.uint64:
        """Return the last ID in memory."""
        assert self._chunk is not None
        return np.uint64(self._chunk[0][-1])

    def take(self, bound: np.uint64) -> _Rows:
        """Take all rows with ID <= bound out of memory."""
        assert self._chunk is not None
        ids, types, rows = self._chunk
        cut = int(np.searchsorted(ids, bound, side="right"))
        self._chunk = (ids[cut:], types[cut:], rows[cut:])
        return ids[:cut], types[:cut], rows[:cut]
