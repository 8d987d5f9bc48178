"""Raw IDs to ranks: the sorted, unique raw IDs of an ID space, in memory or as sorted runs that are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.bitmap import members
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.kernels.cpu.ids.unique import SeenIds
from graphprep.storage.spill.runs import Runs, SpillPool

_CHUNK_ROWS = 1 << 16  # rows of a sorted run that a merge holds in memory at a time
_LEAST_CHUNK_ROWS = 1 << 10
_MOST_RUNS = 64  # merged at a time: each has a file open and a chunk in memory
_ROW_BYTES = 20
_SORT_FACTOR = 2  # sorting holds its input, its output and what it moves on the way
SORT_BYTES = _SORT_FACTOR * _ROW_BYTES  # of an ID while it is sorted
_BITS_SHARE = 4  # of what is held may be a bitmap
_PIECE_BYTES = 1 << 14  # of a bitmap that are taken apart at a time
_LEAST_MET = 1 << 16  # IDs after which it shows whether most are new
_Rows = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]
CREATED = np.int32(-1)  # the type of an ID that only occurs as an end, until it gets the type of created nodes


class SortedChunk(NamedTuple):
    """Consecutive IDs of an ID space, ascending, each once: uint64[k], the codes of their types, and which have a record."""

    ids: NDArray[np.uint64]
    types: NDArray[np.int32]
    declared: NDArray[np.bool_]


class _Ends:
    """Ends with one code that wait to be sorted.

    A bitmap holds them while they are small enough for one of ``bits_bytes``. Beyond, a hash table keeps out those that come
    again, as most do; where most are new, as in a list of unique IDs, it is only in the way, and sorting finds the few.
    """

    def __init__(self, bits_bytes: int) -> None:
        self._bits: NDArray[np.uint8] | None = np.zeros(8, np.uint8)
        self._most = bits_bytes
        self._ids: list[NDArray[np.uint64]] = []
        self._seen: SeenIds | None = SeenIds()
        self._num_met = 0
        self._num_new = 0

    @property
    def num_bytes(self) -> int:
        """Return what is held."""
        bits = 0 if self._bits is None else self._bits.nbytes
        return bits + 8 * self._num_new + (0 if self._seen is None else self._seen.num_bytes)

    def add(self, ids: NDArray[np.uint64]) -> None:
        """Add IDs."""
        if self._bits is None or not self._mark(ids):
            self._keep(ids)

    def _mark(self, ids: NDArray[np.uint64]) -> bool:
        """Set the IDs' bits; return False where they are too large, and let go of the bits."""
        assert self._bits is not None
        need = (int(ids.max()) >> 3) + 1 if ids.size else 0
        if need > self._most:
            for members_of_piece in self._members():
                self._keep(members_of_piece)
            self._bits = None
            return False
        if need > self._bits.size:
            grown = np.zeros(max(-(-need // 8) * 8, min(2 * self._bits.size, self._most // 8 * 8)), np.uint8)
            grown[: self._bits.size] = self._bits
            self._bits = grown
        mark_bits(self._bits, ids)
        return True

    def _members(self) -> Iterator[NDArray[np.uint64]]:
        assert self._bits is not None
        for start in range(0, self._bits.size, _PIECE_BYTES):
            yield members(self._bits, start, min(start + _PIECE_BYTES, self._bits.size))

    def _keep(self, ids: NDArray[np.uint64]) -> None:
        new = ids
        if self._seen is not None:
            new = self._seen.add(ids)
            self._num_met += ids.size
            if self._num_met >= _LEAST_MET and 2 * (self._num_new + new.size) > self._num_met:
                self._seen = None
        self._ids.append(new)
        self._num_new += new.size

    def sorted(self) -> Iterator[NDArray[np.uint64]]:
        """Yield the IDs, ascending, each once."""
        if self._bits is not None:
            yield from self._members()
        else:
            ids: NDArray[np.uint64] = np.sort(np.concatenate(self._ids))
            yield np.asarray(ids[np.concatenate([np.ones(min(1, ids.size), bool), ids[1:] != ids[:-1]])])


class _Run(NamedTuple):
    """A sorted run: chunks of (ids, types, rows), or of IDs alone, which are ends with a ``code``."""

    runs: Runs[Any]
    code: int | None = None

    def read(self) -> Iterator[_Rows]:
        """Yield its rows."""
        for chunk in self.runs.read(0):
            yield chunk if self.code is None else _end_rows(chunk[0], self.code)


def _end_rows(ids: NDArray[np.uint64], code: int) -> _Rows:
    return ids, np.broadcast_to(np.int32(code), ids.size), np.broadcast_to(np.int64(-1), ids.size)


class SpaceIndexer:
    """Collects the IDs of one ID space and yields them sorted.

    Declared nodes must all be added before ends are. ``duplicates`` afterwards holds the record numbers of declared nodes whose
    ID stood in an earlier record (int64, ascending).
    """

    def __init__(self, pool: SpillPool, cap_bytes: int) -> None:
        self._pool = pool
        self._cap = cap_bytes // _SORT_FACTOR
        self._declared: list[_Rows] = []
        self._declared_bytes = 0
        self._ends: dict[int, _Ends] = {}
        self._runs: list[_Run] = []
        self._duplicates: list[NDArray[np.int64]] = []

    def add_declared(self, ids: NDArray[np.uint64], types: NDArray[np.int32], first_row: int) -> None:
        """Add nodes that records declare; ``first_row`` is the record number of the first."""
        self.add_rows(ids, types, np.arange(first_row, first_row + ids.size, dtype=np.int64))

    def add_rows(self, ids: NDArray[np.uint64], types: NDArray[np.int32], rows: NDArray[np.int64]) -> None:
        """Add IDs that are to be sorted with what stands beside them."""
        self._declared.append((ids, types, rows))
        self._declared_bytes += ids.nbytes + types.nbytes + rows.nbytes
        if self._declared_bytes > self._cap:
            self._flush_declared()

    def add_ends(self, ids: NDArray[np.uint64], code: int = int(CREATED)) -> None:
        """Add IDs that occur as ends of edges, with the code of their type."""
        self._flush_declared()
        self._ends.setdefault(code, _Ends(self._cap // _BITS_SHARE)).add(ids)
        if sum(ends.num_bytes for ends in self._ends.values()) > self._cap:
            self._flush_ends()

    def _flush_declared(self) -> None:
        declared, self._declared, self._declared_bytes = self._declared, [], 0
        if not declared:
            return
        ids, types, rows = (np.concatenate([part[i] for part in declared]) for i in range(3))
        del declared
        self._runs.append(self._write([self._distinct(ids, types, rows)]))

    def _flush_ends(self) -> None:
        ends, self._ends = self._ends, {}
        for code in list(ends):
            run: Runs[tuple[NDArray[np.uint64]]] = Runs(self._pool, 1, coalesce=False)
            for ids in ends.pop(code).sorted():
                for start in range(0, ids.size, self._chunk_rows):
                    run.append(0, (ids[start : start + self._chunk_rows].copy(),))
            self._runs.append(_Run(run, code))

    def _distinct(self, ids: NDArray[np.uint64], types: NDArray[np.int32], rows: NDArray[np.int64]) -> _Rows:
        """Sort rows by ID, keep the first of each, and note repeated records."""
        if ids.size > 1 and not (ids[:-1] < ids[1:]).all():
            order = stable_order(ids)
            ids, types, rows = ids[order], types[order], rows[order]
            repeated = np.concatenate([np.zeros(1, bool), ids[1:] == ids[:-1]])
            if repeated.any():
                self._duplicates.append(rows[repeated & (rows >= 0)])
                ids, types, rows = ids[~repeated], types[~repeated], rows[~repeated]
        return ids, types, rows

    @property
    def _chunk_rows(self) -> int:
        """Return the rows of a chunk, of which a merge can hold one for each of its runs."""
        return max(_LEAST_CHUNK_ROWS, min(_CHUNK_ROWS, self._cap // (_ROW_BYTES * _MOST_RUNS)))

    def _write(self, chunks: Iterable[_Rows]) -> _Run:
        """Write a sorted run."""
        run: Runs[_Rows] = Runs(self._pool, 1, coalesce=False)
        size = self._chunk_rows
        for ids, types, rows in chunks:
            for start in range(0, ids.size, size):
                stop = start + size
                run.append(0, (ids[start:stop].copy(), types[start:stop].copy(), rows[start:stop].copy()))
        return _Run(run)

    def sorted(self) -> Iterator[SortedChunk]:
        """Yield all IDs, ascending, each once; a declared node wins over an end. Can be read once."""
        for ids, types, rows in self.sorted_rows():
            yield SortedChunk(ids, types, rows >= 0)

    def sorted_rows(self) -> Iterator[_Rows]:
        """Yield (ids, types, rows) of all IDs, as ``sorted`` does; the row of an end is -1."""
        self._flush_declared()
        self._flush_ends()
        while len(self._runs) > _MOST_RUNS:
            groups = [self._runs[at : at + _MOST_RUNS] for at in range(0, len(self._runs), _MOST_RUNS)]
            self._runs = [self._write(self._merge(group)) for group in groups]
        runs, self._runs = self._runs, []
        yield from self._merge(runs)

    def _merge(self, runs: list[_Run]) -> Iterator[_Rows]:
        """Merge runs, and close them: each round takes all IDs up to the smallest of the last IDs that are in memory."""
        if len(runs) == 1:
            yield from runs[0].read()
        else:
            yield from self._merge_several(runs)
        for run in runs:
            run.runs.close()

    def _merge_several(self, runs: list[_Run]) -> Iterator[_Rows]:
        codes = {run.code for run in runs}
        code = codes.pop() if len(codes) == 1 else None
        cursors = [_Cursor(run) for run in runs]
        while True:
            cursors = [cursor for cursor in cursors if cursor.fill()]
            if not cursors:
                return
            bound = min(cursor.last for cursor in cursors)
            parts = [cursor.take(bound) for cursor in cursors]
            ids = np.concatenate([part[0] for part in parts])
            if code is not None:
                ids.sort(kind="stable")  # a merge sort: it finds the runs
                yield _end_rows(ids[np.concatenate([np.ones(1, bool), ids[1:] != ids[:-1]])], code)
                continue
            types, rows = np.concatenate([part[1] for part in parts]), np.concatenate([part[2] for part in parts])
            yield self._distinct(ids, types, rows)

    @property
    def duplicates(self) -> NDArray[np.int64]:
        """Return the record numbers of repeated declarations; complete once ``sorted`` is exhausted."""
        if not self._duplicates:
            return np.zeros(0, np.int64)
        return np.sort(np.concatenate(self._duplicates))


class _Cursor:
    """Reads one sorted run."""

    def __init__(self, run: _Run) -> None:
        self._chunks = run.read()
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
