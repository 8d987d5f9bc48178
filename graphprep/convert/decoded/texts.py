"""Raw IDs that are texts: the distinct ones of an ID space, ascending by their bytes, in memory or as sorted runs."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.text.texts import (
    SeenTexts,
    concat_texts,
    count_up_to,
    repeats_of_sorted,
    scatter_texts,
    sort_texts,
    take_texts,
)
from graphprep.storage.spill.runs import Runs, SpillPool

Ints = NDArray[np.int64]
_MOST_RUNS = 64  # merged at a time: each has a file open and a chunk in memory
_LEAST_CHUNK_BYTES = 1 << 14
_MOST_CHUNK_BYTES = 1 << 22
_ROW_BYTES = 40  # of a row beside its text: key, type, record, offset, and what sorting takes
_PART_ROWS = 1 << 15  # that are sorted at a time: with their texts they fit the cache
_LARGE_PART = 4 * _PART_ROWS  # and is scattered again: its texts have more in common
_MOST_SCATTERS = 4
UNKNOWN = -1  # the type of an end whose type is not known beforehand
_END = np.int64(1) << np.int64(62)  # ranks ends behind all records


class KeyCollisionError(Exception):
    """Two texts have one key: decoding must start again with other keys."""


@dataclass(frozen=True, eq=False)
class TextRows:
    """Raw IDs as texts, with their keys (uint64[n]), type codes (int32[n]) and records (int64[n], -1 for ends of edges)."""

    keys: NDArray[np.uint64]
    types: NDArray[np.int32]
    records: Ints
    offsets: Ints
    values: NDArray[np.uint8]

    @property
    def num_bytes(self) -> int:
        """Return what the rows hold, and what sorting them takes."""
        return int(self.values.nbytes) + _ROW_BYTES * self.keys.size

    def take(self, rows: Ints) -> TextRows:
        """Return chosen rows."""
        return TextRows(self.keys[rows], self.types[rows], self.records[rows], *take_texts(self.offsets, self.values, rows))

    def slice(self, start: int, stop: int) -> TextRows:
        """Return rows [start, stop)."""
        offsets = self.offsets[start : stop + 1]
        values = self.values[offsets[0] : offsets[-1]]
        return TextRows(self.keys[start:stop], self.types[start:stop], self.records[start:stop], offsets - offsets[0], values)

    def text(self, row: int) -> bytes:
        """Return one text."""
        return bytes(self.values[self.offsets[row] : self.offsets[row + 1]])

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter((self.keys, self.types, self.records, np.diff(self.offsets), self.values))

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> TextRows:
        keys, types, records, counts, values = arrays
        offsets = np.zeros(counts.size + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return cls(keys, types, records, offsets, values)

    @classmethod
    def drain(cls, parts: list[TextRows]) -> TextRows:
        """Return the rows of all parts, one after another, and forget each part as soon as it is copied."""
        num_rows, num_bytes = sum(part.keys.size for part in parts), sum(int(np.ptp(part.offsets[[0, -1]])) for part in parts)
        joined = cls(
            np.empty(num_rows, np.uint64),
            np.empty(num_rows, np.int32),
            np.empty(num_rows, np.int64),
            np.full(num_rows + 1, num_bytes),
            np.empty(num_bytes, np.uint8),
        )
        while parts:
            part = parts.pop()
            first, last = num_rows - part.keys.size, num_bytes
            num_bytes -= int(part.offsets[-1] - part.offsets[0])
            joined.keys[first:num_rows] = part.keys
            joined.types[first:num_rows] = part.types
            joined.records[first:num_rows] = part.records
            joined.offsets[first:num_rows] = part.offsets[:-1] + (num_bytes - part.offsets[0])
            joined.values[num_bytes:last] = part.values[part.offsets[0] : part.offsets[-1]]
            num_rows = first
        return joined

    @classmethod
    def concat(cls, parts: list[TextRows]) -> TextRows:
        """Return the rows of all parts, one after another."""
        offsets, values = concat_texts([(part.offsets, part.values) for part in parts])
        return cls(
            np.concatenate([part.keys for part in parts]),
            np.concatenate([part.types for part in parts]),
            np.concatenate([part.records for part in parts]),
            offsets,
            values,
        )


class _Part(NamedTuple):
    """Some rows that stand together in order: the ``chosen`` ones; None: all."""

    rows: TextRows
    chosen: Ints | None = None


class _Shard:
    """Some of the texts, in the hands of one thread at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen = SeenTexts()

    def take(self) -> tuple[NDArray[np.uint64], Ints, NDArray[np.uint8]]:
        """Return (keys, offsets, values) of all texts, and forget them."""
        with self.lock:
            texts = self.seen.texts()
            self.seen = SeenTexts()
        return texts


class TextIndexer:
    """Collects the texts of one ID space, and yields them ascending, each once.

    Of equal texts, the record that came first wins; an end counts only where there is no record. ``duplicates`` afterwards
    holds the records whose text stood in an earlier one (int64, ascending). Raises KeyCollisionError where it meets two texts
    under one key; who reads ``sorted`` must look out for the others.
    """

    def __init__(self, pool: SpillPool, cap_bytes: int, shards: int = 1, threads: int = 1) -> None:
        """Make one without texts, which so many ``threads`` sort.

        With ``shards``, a power of two, so many threads can add ends without waiting.
        """
        self._pool = pool
        self._cap = cap_bytes
        self._threads = threads
        self._lock = threading.RLock()  # of all but what the shards hold
        self._shards = shards
        self._declared: list[TextRows] = []
        self._seen: dict[int, list[_Shard]] = {}  # ends by type code since the last flush: most of them come again and again
        self._num_bytes = 0
        self._runs: list[Runs[TextRows]] = []
        self._duplicates: list[Ints] = []

    def add_declared(
        self, keys: NDArray[np.uint64], offsets: Ints, values: NDArray[np.uint8], types: NDArray[np.int32], records: Ints
    ) -> None:
        """Add nodes that records declare."""
        rows = TextRows(keys, types, records, offsets, values)
        with self._lock:
            self._declared.append(rows)
            self._num_bytes += rows.num_bytes
            self._flush_if_full()

    def add_ends(
        self, keys: NDArray[np.uint64], offsets: Ints, values: NDArray[np.uint8], code: int, rows: Ints | None = None
    ) -> None:
        """Add texts that occur as ends of edges, with the code of their type (UNKNOWN where only a record tells it).

        ``rows`` says which of the texts (None: all). Threads may add some side by side.
        """
        with self._lock:
            shards = self._seen.get(code) or self._seen.setdefault(code, [_Shard() for _ in range(self._shards)])
        own = keys if rows is None else keys[rows]
        indptr, order = group_by_key((own & np.uint64(self._shards - 1)).astype(np.int32), self._shards)
        rows = order if rows is None else rows[order]
        for shard, start, stop in zip(shards, indptr[:-1].tolist(), indptr[1:].tolist(), strict=True):
            if start < stop:
                with shard.lock:
                    collision = shard.seen.add(keys, offsets, values, rows[start:stop])
                if collision >= 0:
                    raise KeyCollisionError
        with self._lock:
            self._flush_if_full()

    def _flush_if_full(self) -> None:
        held = sum(shard.seen.num_bytes for shards in self._seen.values() for shard in shards)
        if self._num_bytes + held > self._cap:
            self._flush()

    def _flush(self) -> None:
        held = self._take()
        if held is not None:
            self._runs.append(self._write(self._ascending(*held)))

    def _take(self) -> tuple[TextRows, bool] | None:
        """Return all that is held, and whether no text is there twice, and forget it; None where there is nothing."""
        parts, self._declared, self._num_bytes = self._declared, [], 0
        is_distinct = not parts and len(self._seen) == 1
        for code, shards in self._seen.items():
            for shard in shards:
                keys, offsets, values = shard.take()
                types, ends = (np.broadcast_to(np.array(one), keys.size) for one in (np.int32(code), np.int64(-1)))
                parts.append(TextRows(keys, types, ends, offsets, values))
        parts = [part for part in parts if part.keys.size]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else TextRows.drain(parts), is_distinct

    def _ascending(self, held: TextRows, is_distinct: bool) -> Iterator[TextRows]:
        """Yield rows in ascending order, one for each text."""

        def sort(part: _Part) -> TextRows:
            rows = part.rows if part.chosen is None else part.rows.take(part.chosen)
            return rows.take(sort_texts(rows.offsets, rows.values)) if is_distinct else self._distinct(rows)

        yield from map_ordered(sort, _scatter(held), self._threads)

    def _distinct(self, rows: TextRows) -> TextRows:
        """Sort rows by their texts, keep one of each, and note repeated records."""
        rows = rows.take(sort_texts(rows.offsets, rows.values))
        repeated = repeats_of_sorted(rows.offsets, rows.values)
        if not repeated.any():
            return rows
        # Of equal texts the first record wins, else the end of the lowest type that is known.
        rank = np.where(rows.records < 0, _END + rows.types.astype(np.uint32), rows.records)
        starts = np.flatnonzero(~repeated)
        best = np.repeat(np.minimum.reduceat(rank, starts), np.diff(np.append(starts, rank.size)))
        self._duplicates.append(rows.records[(rank > best) & (rows.records >= 0)])
        wins = np.flatnonzero(rank == best)
        group = np.cumsum(~repeated)[wins]
        return rows.take(wins[np.concatenate([np.ones(1, bool), group[1:] != group[:-1]])])

    def _write(self, parts: Iterable[TextRows]) -> Runs[TextRows]:
        """Write a sorted run, in chunks of which a merge can hold one for each of its runs."""
        run: Runs[TextRows] = Runs(self._pool, 1, coalesce=False)
        size = max(_LEAST_CHUNK_BYTES, min(_MOST_CHUNK_BYTES, self._cap // _MOST_RUNS))
        for rows in parts:
            ends = rows.offsets[1:] + _ROW_BYTES * np.arange(1, rows.keys.size + 1)
            start = 0
            while start < rows.keys.size:
                before = int(ends[start - 1]) if start else 0
                stop = max(start + 1, int(np.searchsorted(ends, before + size, side="right")))
                some = rows.slice(start, stop)
                run.append(0, some if stop - start == rows.keys.size else TextRows._make(array.copy() for array in some))
                start = stop
        return run

    def sorted(self) -> Iterator[TextRows]:
        """Yield all texts, ascending, each once. Can be read once."""
        if not self._runs:
            held = self._take()
            if held is not None:
                yield from self._ascending(*held)
            return
        self._flush()
        while len(self._runs) > _MOST_RUNS:
            groups = [self._runs[at : at + _MOST_RUNS] for at in range(0, len(self._runs), _MOST_RUNS)]
            self._runs = [self._write(self._merge(group)) for group in groups]
        yield from self._merge(self._runs)
        self._runs = []

    def _merge(self, runs: list[Runs[TextRows]]) -> Iterator[TextRows]:
        """Merge runs, and close them: each round takes all texts up to the smallest of the last ones that are in memory."""
        cursors = [_Cursor(run) for run in runs]
        while True:
            cursors = [cursor for cursor in cursors if cursor.fill()]
            if not cursors:
                break
            bound = min(cursor.last for cursor in cursors)
            parts = [cursor.take(bound) for cursor in cursors]
            yield parts[0] if len(runs) == 1 else self._distinct(TextRows.concat(parts))
        for run in runs:
            run.close()

    @property
    def duplicates(self) -> Ints:
        """Return the repeated records, ascending; complete once ``sorted`` is exhausted."""
        return np.sort(np.concatenate(self._duplicates)) if self._duplicates else np.zeros(0, np.int64)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is left to know once all texts lie in sorted runs."""
        with self._lock:
            self._flush()
            return self.__dict__.copy()

    def close(self) -> None:
        """Drop everything."""
        for run in self._runs:
            run.close()
        self._runs, self._declared, self._seen = [], [], {}


def _scatter(rows: TextRows, depth: int = 0) -> Iterator[_Part]:
    """Yield parts that are small enough for the cache, each behind the one before it in order."""
    if rows.keys.size <= _PART_ROWS:
        yield _Part(rows)
        return
    indptr, order = scatter_texts(rows.offsets, rows.values, _PART_ROWS)
    for start, stop in pairwise(indptr.tolist()):
        if stop - start > _LARGE_PART and depth < _MOST_SCATTERS and indptr.size > 2:
            yield from _scatter(rows.take(order[start:stop]), depth + 1)
        elif start < stop:
            yield _Part(rows, order[start:stop])


class _Cursor:
    """Reads one sorted run."""

    def __init__(self, run: Runs[TextRows]) -> None:
        self._chunks = run.read(0, consume=True)
        self._rows: TextRows | None = None

    def fill(self) -> bool:
        """Make sure that rows are in memory; return False at the end."""
        while self._rows is None or not self._rows.keys.size:
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._rows = chunk
        return True

    @property
    def last(self) -> bytes:
        """Return the last text in memory."""
        assert self._rows is not None
        return self._rows.text(self._rows.keys.size - 1)

    def take(self, bound: bytes) -> TextRows:
        """Take all rows up to ``bound`` out of memory."""
        assert self._rows is not None
        rows = self._rows
        cut = count_up_to(rows.offsets, rows.values, bound)
        self._rows = rows.slice(cut, rows.keys.size)
        return rows.slice(0, cut)
