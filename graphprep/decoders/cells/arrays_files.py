"""Arrays in ``.npy`` and ``.npz`` files: where each of them lies, and its items front to back, never a whole array.

Nothing here trusts a header: sizes are compared with the file, pickles and object arrays are never loaded.
"""

from __future__ import annotations

import contextlib
import io
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.row_numbers import batch_rows
from graphprep.decoders.looks.formats import ZIP_MAGICS
from graphprep.model.errors import DataError
from graphprep.model.protocols import InputStorage, PlainArray
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.shown.texts import without_secrets
from graphprep.storage.faults import display_url
from graphprep.storage.read.npy import MAGIC, MAX_HEADER_BYTES, NpyHeader, parse_npy_header

_SMALL_BYTES = 1 << 16  # of a member that holds a word or a shape
_MOST_WHOLE_BYTES = 1 << 26  # of a deflated array in Fortran order, which cannot be read front to back
_LOCAL_HEADER = struct.Struct("<4s2B4HL2L2H")  # of a member: the last two numbers are the lengths of its name and extra field


@dataclass(frozen=True)
class ArraySource:
    """Where an array lies: a ``.npy`` file, or a member of an ``.npz`` archive.

    ``key`` is the array's name: the member's, or the file's without its folder and ending. ``member`` is empty for a file of
    its own.
    """

    url: str
    key: str
    header: NpyHeader
    member: str = ""

    @property
    def place(self) -> str:
        """Return what messages call the array."""
        return f"{display_url(self.url)}: {self.key}" if self.member else display_url(self.url)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the array's shape."""
        return self.header.shape

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """Return the array's dtype, native."""
        return self.header.dtype.newbyteorder("=")


def plain_arrays(owner: str | Relation, key: ColumnKey, headers: Sequence[NpyHeader | None]) -> list[PlainArray | None]:
    """Say where the rows of a column lie in each of its ``.npy`` files, which follow each other.

    None for a file that has no row, and for all of them where the values of one must be changed, or one (None) is no such file.
    """
    arrays: list[PlainArray | None] = []
    first = 0
    for header in headers:
        if header is None or (header.shape[0] and not _is_plain(header)):
            return [None] * len(headers)
        shape, num_rows = header.shape[1:], header.shape[0]
        arrays.append(PlainArray(owner, key, shape, first, num_rows, header.data_start, MAGIC) if num_rows else None)
        first += num_rows
    return arrays


def _is_plain(header: NpyHeader) -> bool:
    """Return whether values lie as a store has them."""
    return header.dtype.isnative and not (header.fortran_order and len(header.shape) > 1)


# What a file may hold under a name: an array, or why it cannot be read.
Arrays = Mapping[str, "ArraySource | DataError"]


def stem_of(url: str) -> str:
    """Return a file's name without its folder, its compression's ending and ``.npy``."""
    name = without_secrets(url).rpartition("/")[2]
    for ending in (".gz", ".zst", ".bz2", ".xz"):
        name = name.removesuffix(ending)
    return name.removesuffix(".npy")


def is_npz(head: bytes) -> bool:
    """Return whether a file that begins with ``head`` is a zip archive."""
    return head[:4] in ZIP_MAGICS


def find_arrays(storage: InputStorage, url: str, *, texts: bool = False) -> Arrays:
    """Read the headers of a file's arrays, and compare them with the sizes of what holds them.

    A ``.npy`` file has one array, called by the file's stem. Arrays of objects, and of texts unless an archive's ``texts`` are
    wanted, are there as the DataError that tells so. Raises DataError for other files, corrupt archives, truncated arrays, and
    bytes behind an array.
    """
    head = storage.head(url, len(MAGIC))
    if is_npz(head):
        return _find_members(storage, url, texts)
    if not head.startswith(MAGIC):
        raise DataError("neither a .npy nor a .npz file", place=display_url(url), fix="write it with numpy.save or numpy.savez")
    source = find_array(storage, url)
    return {source.key: source}


def find_array(storage: InputStorage, url: str, word: str = "array") -> ArraySource:
    """Read the header of a ``.npy`` file, and compare it with the file's size.

    Raises DataError; ``word`` is what that says is truncated.
    """
    place = display_url(url)
    header = parse_npy_header(storage.head(url, MAX_HEADER_BYTES + 12), place)
    if storage.size(url) != header.num_bytes:  # compressed, or wrong
        with storage.open(url) as handle:
            _check_size(handle.seek(0, io.SEEK_END), header, place, word)
    return ArraySource(url, stem_of(url), header)


def _check_size(found: int, header: NpyHeader, place: str, word: str = "array") -> None:
    if found < header.num_bytes:
        fix = "write the file again" if word != "file" else "write it again"
        raise DataError(f"the {word} is truncated: {found} bytes of {header.num_bytes}", place=place, fix=fix)
    if found > header.num_bytes:
        raise DataError(f"{found - header.num_bytes} bytes follow the array", place=place, fix="write the file again")


# --------------------------------------------------------------------------------------------------------- archives


@contextlib.contextmanager
def _zip_faults(place: str) -> Iterator[None]:
    """Turn complaints about an archive into DataErrors."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, struct.error) as error:
        words = " ".join(str(error).split()) or "it ends too early"
        raise DataError(
            f"the archive cannot be read: {words}", place=place, fix="write the file again, or copy it again"
        ) from None


def _find_members(storage: InputStorage, url: str, texts: bool) -> Arrays:
    place = display_url(url)
    found: dict[str, ArraySource | DataError] = {}
    with storage.open(url) as handle, _zip_faults(place), zipfile.ZipFile(handle) as archive:
        for info in archive.infolist():
            if not info.filename.endswith(".npy"):
                continue
            key = info.filename.removesuffix(".npy")
            if key in found:
                raise DataError(f"two arrays are called {key!r}", place=place, fix="write the file again with numpy.savez")
            found[key] = _look_at_member(archive, info, url, key, texts)
    if not found:
        raise DataError("the archive holds no array", place=place, fix="write it with numpy.savez")
    return found


def _look_at_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, url: str, key: str, texts: bool
) -> ArraySource | DataError:
    place = f"{display_url(url)}: {key}"
    with archive.open(info) as member:
        head = member.read(12)
        head += member.read(int.from_bytes(head[8 : 10 if head[6:7] == b"\x01" else 12], "little") % (MAX_HEADER_BYTES + 1))
    try:
        header = parse_npy_header(head, place, texts=texts)
    except DataError as error:
        return error
    _check_size(info.file_size, header, place)
    return ArraySource(url, key, header, info.filename)


def read_small(storage: InputStorage, url: str, key: str) -> NDArray[Any]:
    """Read a member of at most 64 KiB: a word, a shape. Raises DataError."""
    place = f"{display_url(url)}: {key}"
    with (
        storage.open(url) as handle,
        _zip_faults(place),
        zipfile.ZipFile(handle) as archive,
        archive.open(f"{key}.npy") as file,
    ):
        data = file.read(_SMALL_BYTES)
    header = parse_npy_header(data, place, texts=True)
    _check_size(len(data), header, place)
    order: Literal["C", "F"] = "F" if header.fortran_order else "C"
    return np.frombuffer(data[header.data_start :], header.dtype).reshape(header.shape, order=order)


class _Window(io.RawIOBase):
    """Bytes [start, …) of an open file, with a position of its own, so that several can read one handle in turn."""

    def __init__(self, handle: BinaryIO, start: int) -> None:
        super().__init__()
        self._handle = handle
        self._start = start
        self._at = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Read at most ``size`` bytes; none at the end."""
        if self._handle.tell() != self._start + self._at:
            self._handle.seek(self._start + self._at)
        data = self._handle.read(size)
        self._at += len(data)
        return data

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte from the beginning."""
        assert whence == io.SEEK_SET
        self._at = offset
        return offset

    def tell(self) -> int:
        """Return the current byte."""
        return self._at


def open_array(handle: BinaryIO, source: ArraySource) -> BinaryIO:
    """Open an array on the handle of its file: a stream of its own, at the beginning of what ``numpy.save`` wrote.

    A stored member is read in place, a deflated one front to back. Raises DataError.
    """
    if not source.member:
        return cast(BinaryIO, _Window(handle, 0))
    with _zip_faults(source.place):
        archive = zipfile.ZipFile(handle)
        info = archive.getinfo(source.member)
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            return cast(BinaryIO, archive.open(info))
        handle.seek(info.header_offset)
        *_, name_bytes, extra_bytes = _LOCAL_HEADER.unpack(handle.read(_LOCAL_HEADER.size))
        return cast(BinaryIO, _Window(handle, info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes))


class ItemStream:
    """Reads the items of an array in the order in which they lie, from item ``start`` on."""

    def __init__(self, handle: BinaryIO, source: ArraySource, start: int = 0) -> None:
        self._source = source
        self._file = open_array(handle, source)
        with _zip_faults(source.place):
            self._file.seek(source.header.data_start + start * source.header.dtype.itemsize)

    def take(self, count: int) -> NDArray[Any]:
        """Return the next ``count`` items, native. Raises DataError where the file ends before."""
        return _take(self._file, self._source, count)


def _take(file: BinaryIO, source: ArraySource, count: int) -> NDArray[Any]:
    wanted = count * source.header.dtype.itemsize
    pieces = []
    with _zip_faults(source.place):
        while wanted and (piece := file.read(wanted)):
            pieces.append(piece)
            wanted -= len(piece)
    if wanted:
        raise DataError("the file became shorter while it was read", place=source.place, fix="run again when it is complete")
    data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return np.frombuffer(data, source.header.dtype).astype(source.dtype, copy=False)


def read_rows(handle: BinaryIO, source: ArraySource, start: int, max_rows: int) -> Iterator[NDArray[Any]]:
    """Read an array from row ``start`` on in batches of at most ``max_rows`` rows, fewer where rows are wide.

    Each batch is native, in C order, of shape [k, *item_shape]. Raises DataError.
    """
    num_rows, item_shape = source.shape[0], source.shape[1:]
    width = math.prod(item_shape)
    step = batch_rows(max_rows, width * source.dtype.itemsize)
    if source.header.fortran_order and item_shape:
        columns = _seekable(open_array(handle, source), source)
        for at in range(start, num_rows, step):
            yield np.ascontiguousarray(_read_fortran_rows(columns, source, at, min(step, num_rows - at)))
        return
    stream = ItemStream(handle, source, start * width)
    for at in range(start, num_rows, step):
        count = min(step, num_rows - at)
        yield stream.take(count * width).reshape(count, *item_shape)


def _read_fortran_rows(file: BinaryIO, source: ArraySource, start: int, count: int) -> NDArray[Any]:
    """Read rows [start, start + count) of an array that lies column after column, a piece of each column."""
    header, item_shape = source.header, source.shape[1:]
    columns = []
    for column in range(math.prod(item_shape)):
        file.seek(header.data_start + (column * header.shape[0] + start) * header.dtype.itemsize)
        columns.append(_take(file, source, count))
    flat = np.stack(columns, axis=1) if columns else np.empty((count, 0), source.dtype)
    return flat.reshape(count, *item_shape[::-1]).transpose(0, *range(len(item_shape), 0, -1))


def _seekable(file: BinaryIO, source: ArraySource) -> BinaryIO:
    """Hold a deflated array in memory, where it is small enough: it cannot be read column by column."""
    if isinstance(file, _Window):
        return file
    if source.header.num_bytes > _MOST_WHOLE_BYTES:
        raise DataError(
            f"a compressed array of {source.header.num_bytes} bytes in Fortran order cannot be read row by row",
            place=source.place,
            fix="save it in C order (numpy.ascontiguousarray), or with numpy.savez",
        )
    with _zip_faults(source.place):
        return io.BytesIO(file.read())


__all__ = [
    "ArraySource",
    "Arrays",
    "ItemStream",
    "find_array",
    "find_arrays",
    "is_npz",
    "open_array",
    "read_rows",
    "read_small",
    "stem_of",
]
