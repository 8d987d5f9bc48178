"""Arrays to raw rows, batch by batch: pairs of ends, CSR and CSC matrices, columns that lie beside them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.arrays_files import ArraySource, ItemStream, read_rows
from graphprep.decoders.cells.chunks import dense_chunk
from graphprep.decoders.cells.columns import edge_rows
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import InputStorage, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawIds, RawNodes, RawRows, RawTexts, Relation

Ints = NDArray[np.int64]
IdKind = Literal["uint", "int", "string"]
Form = Literal["two", "rows", "pairs"]


@dataclass(frozen=True)
class EndArrays:
    """What is known of one end of the edges.

    ``name`` is what messages call it (``src``). ``kind`` says how integers become raw IDs: as they are (``uint``), as the bits
    of an int64 (``int``), as decimal texts (``string``). ``num_nodes`` is the number of nodes that the file states, None where
    it states none; ``type`` is their type.
    """

    name: str
    type: str = ""
    num_nodes: int | None = None
    kind: IdKind = "uint"
    base: int = 0

    def ids(self, values: NDArray[Any]) -> RawIds | RawTexts:
        """Turn integers into raw IDs. Raises DecodeError for the first that is none."""
        if self.base:
            low = _first(values < self.base)
            if low is not None:
                raise self._fault(low, f"must be at least {self.base}, found {values[low]}", "leave out --index-base")
            values = values - values.dtype.type(self.base)
        self._check(values)
        if self.kind == "string":
            return decimal_texts(values)
        return values.astype(np.int64, copy=False).view(np.uint64) if values.dtype.kind == "i" else values.astype(np.uint64)

    def _check(self, values: NDArray[Any]) -> None:
        if values.dtype.kind == "i" and (self.kind == "uint" or self.num_nodes is not None):
            row = _first(values < 0)
            if row is not None:
                fix = "correct the index" if self.num_nodes is not None else "use --id-type int, or correct the ID"
                raise self._fault(row, f"must not be negative, found {values[row]}", fix)
        if self.num_nodes is not None:
            row = _first(values.astype(np.uint64) >= np.uint64(self.num_nodes))
            if row is not None:
                words = f"must be below {self.num_nodes}, the number of nodes of type {self.type!r}, found {values[row]}"
                raise self._fault(row, words, "correct the index, or the shape that the file states")
        elif self.kind == "int" and values.dtype == np.uint64:
            row = _first(values >= np.uint64(1 << 63))
            if row is not None:
                raise self._fault(row, f"must be below 2^63, found {values[row]}", "use --id-type uint")

    def _fault(self, row: int, words: str, fix: str) -> DecodeError:
        return DecodeError(f"field {self.name!r} {words}", at=row, fix=fix)


def _first(mask: NDArray[np.bool_]) -> int | None:
    return int(mask.argmax()) if mask.any() else None


def decimal_texts(values: NDArray[Any]) -> RawTexts:
    """Write integers as decimal digits, a sign before negative ones."""
    padded = values.astype("S20")
    texts = padded.view(np.uint8).reshape(values.size, padded.itemsize)
    offsets = np.zeros(values.size + 1, np.int64)
    np.cumsum(np.count_nonzero(texts, axis=1), out=offsets[1:])
    return RawTexts(offsets, texts[texts != 0])


def make_edges(
    relation: Relation,
    ends: tuple[EndArrays, EndArrays],
    values: tuple[NDArray[Any], NDArray[Any]],
    columns: tuple[ColumnChunk, ...],
    places: bool,
) -> RawRows:
    """Put a batch of edges together. Raises DecodeError for the first row whose source, then destination, is no ID."""
    faults: list[DecodeError] = []
    ids: list[RawIds | RawTexts] = []
    for end, found in zip(ends, values, strict=True):
        try:
            ids.append(end.ids(found))
        except DecodeError as error:
            faults.append(error)
    if faults:
        raise min(faults, key=lambda fault: fault.at)
    rows = np.arange(values[0].size, dtype=np.int64)
    return edge_rows(relation, ids[0], ids[1], columns, (rows, rows) if places else None)


@dataclass(frozen=True)
class Beside:
    """An array with one row an edge: its column, and where it lies. ``key.dtype`` may be another than the array's (weights)."""

    key: ColumnKey
    source: ArraySource


class _BesideStream:
    """Reads a column's values for consecutive edges."""

    def __init__(self, files: _Files, beside: Beside, start: int) -> None:
        self._key = beside.key
        self._source = beside.source
        self._shape = beside.source.shape[1:]
        self._width = int(np.prod(self._shape, dtype=np.int64))
        self._flat = beside.key.role == "weight"
        self._rows: Iterator[NDArray[Any]] | None = None
        self._stream: ItemStream | None = None
        if beside.source.header.fortran_order and self._width > 1:
            self._rows = read_rows(files.handle(beside.source.url), beside.source, start, 1 << 12)
            self._held = np.zeros((0, *self._shape), beside.source.dtype)
        else:
            self._stream = ItemStream(files.handle(beside.source.url), beside.source, start * self._width)

    def take(self, count: int) -> ColumnChunk:
        """Return the next ``count`` rows. Raises DecodeError for a weight that does not fit its dtype."""
        values = self._take(count)
        if self._flat:
            values = self._weights(values.reshape(-1))
        return dense_chunk(self._key, values)

    def _take(self, count: int) -> NDArray[Any]:
        if self._stream is not None:
            return self._stream.take(count * self._width).reshape(count, *self._shape)
        assert self._rows is not None
        while self._held.shape[0] < count:
            self._held = np.concatenate([self._held, next(self._rows)])
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def _weights(self, values: NDArray[Any]) -> NDArray[Any]:
        from graphprep.decoders.cells.faults import weight_words
        from graphprep.kernels.cpu.text import numbers

        rounded, bad = numbers.round_to(values.astype(np.float64), np.dtype(self._key.dtype))
        if bad >= 0:
            words = weight_words(numbers.OVERFLOW, str(values[bad]), self._key.dtype)
            raise DecodeError(words.message, at=bad, fix=words.fix)
        return np.asarray(rounded)


class _Files(contextlib.AbstractContextManager["_Files"]):
    """The open files of a span: the one that the decode stage opened, and those that lie beside it."""

    def __init__(self, handle: BinaryIO, url: str, storage: InputStorage | None) -> None:
        self._handles = {url: handle}
        self._storage = storage
        self._stack = contextlib.ExitStack()

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def handle(self, url: str) -> BinaryIO:
        """Return the open file of a URL."""
        if url not in self._handles:
            assert self._storage is not None
            self._handles[url] = self._stack.enter_context(self._storage.open(url))
        return self._handles[url]


class _Tables:
    """A reader of table spans."""

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Refuse text: arrays are tables."""
        raise NotImplementedError


@dataclass(frozen=True)
class PairsReader(_Tables):
    """Reads edges whose sources and destinations lie as they are.

    ``form``: two arrays (``two``), or one whose first half are the sources (``rows``), or whose items alternate (``pairs``).
    ``storage`` opens the files beside the span's own, None where there are none.
    """

    relation: Relation
    src: ArraySource
    dst: ArraySource
    form: Form
    ends: tuple[EndArrays, EndArrays]
    columns: tuple[Beside, ...] = ()
    storage: InputStorage | None = None

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read edges [span.start, span.stop) in batches of at most ``max_rows``. Raises DecodeError, DataError."""
        with _Files(handle, span.url, self.storage) as files:
            pairs = self._pairs(files, span.start, span.stop)
            columns = [_BesideStream(files, column, span.start) for column in self.columns]
            for start in range(span.start, span.stop, max_rows):
                count = min(max_rows, span.stop - start)
                src, dst = pairs(count)
                chunks = tuple(column.take(count) for column in columns)
                yield make_edges(self.relation, self.ends, (src, dst), chunks, places)

    def _pairs(self, files: _Files, start: int, stop: int) -> Any:
        """Return a function that takes the next sources and destinations."""
        if self.form == "pairs":
            both = ItemStream(files.handle(self.src.url), self.src, 2 * start)

            def take_pairs(count: int) -> tuple[NDArray[Any], NDArray[Any]]:
                pairs = both.take(2 * count).reshape(count, 2)
                return pairs[:, 0], pairs[:, 1]

            return take_pairs
        skipped = math.prod(self.src.shape) // 2 if self.form == "rows" else 0
        src = ItemStream(files.handle(self.src.url), self.src, start)
        dst = ItemStream(files.handle(self.dst.url), self.dst, skipped + start)
        return lambda count: (src.take(count), dst.take(count))


@dataclass(frozen=True)
class CompressedReader(_Tables):
    """Reads the entries of a CSR matrix (``by`` 0: rows are sources) or a CSC matrix (1: columns are destinations).

    Entries stand in the order of ``indices``. ``ends`` are those of sources and destinations.
    """

    relation: Relation
    indptr: ArraySource
    indices: ArraySource
    by: int
    ends: tuple[EndArrays, EndArrays]
    columns: tuple[Beside, ...] = ()
    storage: InputStorage | None = None

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read entries [span.start, span.stop) in batches of at most ``max_rows``. Raises DecodeError, DataError."""
        with _Files(handle, span.url, self.storage) as files:
            indices = ItemStream(files.handle(self.indices.url), self.indices, span.start)
            columns = [_BesideStream(files, column, span.start) for column in self.columns]
            for major in self._majors(files, span.start, span.stop, max_rows):
                minor = indices.take(major.size)
                chunks = tuple(column.take(major.size) for column in columns)
                values = (major, minor) if self.by == 0 else (minor, major)
                yield make_edges(self.relation, self.ends, values, chunks, places)

    def _majors(self, files: _Files, start: int, stop: int, max_rows: int) -> Iterator[Ints]:
        """Yield the row (CSR) of every entry in [start, stop), in batches."""
        base = self.ends[self.by].base
        for first, bounds in self.bounds(files, max_rows):
            low, high = max(int(bounds[0]), start), min(int(bounds[-1]), stop)
            for at in range(low, high, max_rows):
                end = min(at + max_rows, high)
                clipped = np.clip(bounds, at, end)
                counts = clipped[1:] - clipped[:-1]
                rows = np.flatnonzero(counts)
                yield np.repeat(rows + (first + base), counts[rows])

    def bounds(self, files: _Files, max_rows: int) -> Iterator[tuple[int, Ints]]:
        """Yield (number of the first row, int64[k + 1] bounds) for consecutive rows.

        Raises DataError where they do not ascend from 0 to the number of entries.
        """
        num_rows = self.indptr.shape[0] - 1
        stream = ItemStream(files.handle(self.indptr.url), self.indptr)
        last = self._checked(stream.take(1), 0)
        if last[0] != 0:
            raise self._fault(0, f"must be 0, found {last[0]}")
        for first in range(0, num_rows, max_rows):
            bounds = np.concatenate([last, self._checked(stream.take(min(max_rows, num_rows - first)), first + 1)])
            bad = np.flatnonzero(bounds[1:] < bounds[:-1])
            if bad.size:
                at = int(bad[0]) + 1
                raise self._fault(first + at, f"must not be below the one before it, {bounds[at - 1]}, found {bounds[at]}")
            if bounds[-1] > self.indices.shape[0]:
                at = int((bounds > self.indices.shape[0]).argmax())
                raise self._fault(
                    first + at, f"must not exceed {self.indices.shape[0]}, the number of entries, found {bounds[at]}"
                )
            yield first, bounds
            last = bounds[-1:]
        if last[0] != self.indices.shape[0]:
            raise self._fault(num_rows, f"must be {self.indices.shape[0]}, the number of entries, found {last[0]}")

    def _checked(self, values: NDArray[Any], first: int) -> Ints:
        """Return offsets as int64. Raises DataError for those beyond it."""
        if values.dtype == np.uint64:
            row = _first(values >= np.uint64(1 << 63))
            if row is not None:
                raise self._fault(
                    first + row, f"must not exceed {self.indices.shape[0]}, the number of entries, found {values[row]}"
                )
        return values.astype(np.int64, copy=False)

    def _fault(self, at: int, words: str) -> DataError:
        return DataError(f"offset {at} {words}", place=self.indptr.place, fix="write the matrix again")


@dataclass(frozen=True)
class ColumnReader(_Tables):
    """Reads an array whose row r belongs to node or edge ``first + r``; 1-D rows are scalars."""

    owner: str | Relation
    key: ColumnKey
    source: ArraySource
    first: int = 0

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows [span.start, …) in batches of at most ``max_rows`` rows. Raises DataError."""
        at = span.start
        for values in read_rows(handle, self.source, span.start, max_rows):
            chunk = dense_chunk(self.key, values)
            yield RawRows(
                aligned=(AlignedColumn(self.owner, self.first + at, values.shape[0], chunk),), num_records=values.shape[0]
            )
            at += values.shape[0]


@dataclass(frozen=True)
class KeyedReader(_Tables):
    """Reads an array whose row r belongs to the node in row r of another array, ``ids``, which ``storage`` opens."""

    owner: str
    key: ColumnKey
    source: ArraySource
    ids: ArraySource
    storage: InputStorage

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows [span.start, span.stop) in batches of at most ``max_rows`` rows. Raises DecodeError, DataError."""
        with _Files(handle, span.url, self.storage) as files:
            stream = ItemStream(files.handle(self.ids.url), self.ids, span.start)
            left = span.stop - span.start
            for batch in read_rows(handle, self.source, span.start, max_rows):
                values = batch[:left]
                count = values.shape[0]
                if not count:
                    break
                left -= count
                ids = EndArrays("seed", self.owner).ids(stream.take(count))
                nodes = RawNodes(
                    ids,
                    np.zeros(count, np.int32),
                    (self.owner,),
                    (dense_chunk(self.key, values),),
                    at=np.arange(count, dtype=np.int64) if places else None,
                    declares=False,
                )
                yield RawRows(nodes=nodes, num_records=count)


@dataclass(frozen=True)
class SparseReader(_Tables):
    """Reads a CSR matrix as a sparse column: row r of the matrix are the values of node r, at their columns' numbers."""

    owner: str
    key: ColumnKey
    matrix: CompressedReader
    data: ArraySource

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read all rows in batches of about ``max_rows`` rows and values, at least one row. Raises DecodeError, DataError."""
        with _Files(handle, span.url, self.matrix.storage) as files:
            indices = ItemStream(files.handle(self.matrix.indices.url), self.matrix.indices)
            data = ItemStream(files.handle(self.data.url), self.data)
            for first, bounds in self.matrix.bounds(files, max(1, max_rows // 8)):
                at = 0
                while at < bounds.size - 1:
                    stop = max(at + 1, int(np.searchsorted(bounds, bounds[at] + max_rows, side="right")) - 1)
                    yield self._rows(first + at, bounds[at : stop + 1], indices, data)
                    at = stop

    def _rows(self, first: int, bounds: Ints, indices: ItemStream, data: ItemStream) -> RawRows:
        counts = np.diff(bounds)
        size, num_rows = int(counts.sum()), counts.size
        try:
            coords = self.matrix.ends[1].ids(indices.take(size))
        except DecodeError as error:  # its place is an entry's, not a row's
            raise DataError(error.message, place=self.matrix.indices.place, fix=error.fix) from None
        assert not isinstance(coords, RawTexts)
        chunk = ColumnChunk(self.key, np.arange(num_rows), counts, data.take(size), coords=coords.view(np.int64))
        return RawRows(aligned=(AlignedColumn(self.owner, first, num_rows, chunk),), num_records=num_rows)


__all__ = [
    "Beside",
    "ColumnReader",
    "CompressedReader",
    "EndArrays",
    "KeyedReader",
    "PairsReader",
    "SparseReader",
    "decimal_texts",
    "make_edges",
]
