"""Columns that lie in files as they will lie in the store: left where they are until they are written."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.protocols import PlainArray, Span
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.faults import display_url, plain_words
from graphprep.store.columns.cells import Cells

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_PIECE_BYTES = 1 << 20  # hashed and written from the cache
_CHUNK_BYTES = 1 << 22  # what readers get that keep it


class _File(NamedTuple):
    url: str
    open: Callable[[], BinaryIO]
    data_start: int


@dataclass(eq=False)
class FileColumn:
    """A dense column of which every row has a value: rows 0, 1 … in one file after another.

    ``shape_code`` is what ``Cells.shapes`` holds for all rows. ``is_left``: it was settled that it stays until it is written.
    """

    dtype: np.dtype[Any]
    item_shape: tuple[int, ...]
    shape_code: int = 0
    num_rows: int = 0
    is_left: bool = False
    _files: list[_File] = field(default_factory=list)
    _firsts: list[int] = field(default_factory=list)

    @property
    def num_files(self) -> int:
        """Return the number of files."""
        return len(self._files)

    @property
    def width(self) -> int:
        """Return the number of values of a row."""
        return prod(self.item_shape)

    @property
    def row_bytes(self) -> int:
        """Return the size of a row."""
        return self.width * self.dtype.itemsize

    def add(self, storage: Storage, span: Span, array: PlainArray) -> None:
        """Append the rows of a file."""
        self._files.append(_File(span.url, partial(storage.open_stored, span.url), array.data_start))
        self._firsts.append(self.num_rows)
        self.num_rows += array.num_rows

    def pieces(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Yield rows [start, stop) as arrays [k, width], each of which is overwritten by the next.

        Raises DataError where a file became shorter, StorageError where it cannot be read.
        """
        buffer = np.empty((max(1, _PIECE_BYTES // max(1, self.row_bytes)), self.width), self.dtype)
        yield from self._read(start, stop, lambda size: buffer[:size], len(buffer))

    def chunks(self, most_bytes: int = _CHUNK_BYTES) -> Iterator[NDArray[Any]]:
        """Yield all rows as arrays [k, width] of about ``most_bytes``. Raises what ``pieces`` raises.

        No file stays open meanwhile: there may be many such columns, all of which are read side by side.
        """
        most = max(1, most_bytes // max(1, self.row_bytes))
        for start in range(0, self.num_rows, most):
            stop = min(start + most, self.num_rows)
            yield from list(self._read(start, stop, lambda size: np.empty((size, self.width), self.dtype), most))

    def read(self, most_bytes: int = _CHUNK_BYTES) -> Iterator[tuple[NDArray[np.int64], Cells]]:
        """Yield (rows, cells), as ``AlignedRuns`` do."""
        row = 0
        for values in self.chunks(most_bytes):
            shapes = np.full(len(values), self.shape_code, np.int32) if self.shape_code else None
            yield np.arange(row, row + len(values)), Cells(None, values, shapes=shapes)
            row += len(values)

    def sample(self) -> Cells:
        """Return cells of one row that are like all others; of none where there are none."""
        size = min(1, self.num_rows)
        shapes = np.full(size, self.shape_code, np.int32) if self.shape_code else None
        return Cells(None, np.zeros((size, self.width), self.dtype), shapes=shapes)

    def close(self) -> None:
        """Do nothing: the files are the user's."""

    def _read(self, start: int, stop: int, place: Callable[[int], NDArray[Any]], most: int) -> Iterator[NDArray[Any]]:
        """Read rows into what ``place`` returns for a number of rows, at most ``most`` at a time."""
        number = bisect_right(self._firsts, start) - 1
        while start < stop:
            end = self._firsts[number + 1] if number + 1 < len(self._firsts) else self.num_rows
            if start < end:
                file = self._files[number]
                with plain_words(file.url), file.open() as handle:
                    handle.seek(file.data_start + (start - self._firsts[number]) * self.row_bytes)
                    while start < min(end, stop):
                        values = place(min(most, min(end, stop) - start))
                        _fill(handle, values, file.url)
                        yield values
                        start += len(values)
            number += 1


def _fill(handle: BinaryIO, values: NDArray[Any], url: str) -> None:
    view = values.reshape(-1).view(np.uint8).data
    while view.nbytes:
        count = handle.readinto(view)  # type: ignore[attr-defined]
        if not count:
            raise DataError(
                "the file became shorter while it was read", place=display_url(url), fix="run again when it is complete"
            )
        view = view[count:]


def find_plain(storage: Storage, spans: Sequence[Span]) -> dict[int, FileColumn]:
    """Return the columns that may stay where they are, by the numbers of the spans that hold their rows."""
    numbers: dict[tuple[str | Relation, ColumnKey], list[tuple[int, PlainArray]]] = {}
    for number, span in enumerate(spans):
        if span.array is not None:
            numbers.setdefault((span.array.owner, span.array.key), []).append((number, span.array))
    found: dict[int, FileColumn] = {}
    for (_, key), arrays in numbers.items():
        column = FileColumn(np.dtype(key.dtype), arrays[0][1].item_shape)
        for number, array in arrays:
            if array.first_row == column.num_rows and array.item_shape == column.item_shape:
                column.add(storage, spans[number], array)
        if column.num_files == len(arrays) and all(_can_stay(storage, spans[number], array) for number, array in arrays):
            found |= {number: column for number, _ in arrays}
    return found


def _can_stay(storage: Storage, span: Span, array: PlainArray) -> bool:
    """Return whether the rows lie in a local file as they are: neither compressed nor to be fetched."""
    if not storage.is_local(span.url):
        return False
    num_bytes = array.num_rows * prod(array.item_shape) * np.dtype(array.key.dtype).itemsize
    if storage.size(span.url) != array.data_start + num_bytes:
        return False
    with storage.open_stored(span.url) as handle:
        return handle.read(len(array.magic)) == array.magic
