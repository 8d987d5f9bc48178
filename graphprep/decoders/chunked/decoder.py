"""The chunked graph format of DGL: a folder with metadata.json, and files of edges and features that it lists.

Source: DGL's user guide, chapter 7.1, and the tools that read it (``tools/distpartitioning``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.arrays_files import read_rows
from graphprep.decoders.cells.chunks import dense_chunk, read_parquet_edges, read_parquet_feature
from graphprep.decoders.cells.columns import Ints, edge_rows, parse_declared
from graphprep.decoders.chunked.plan import Chunk, plan_chunked
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawRows, Relation

if TYPE_CHECKING:
    from graphprep.kernels.cpu.text.csv_numbers import Fault

_SHOWN = 40  # characters of a faulty field in a message
_HIGH_32 = 1 << 32


@dataclass(frozen=True)
class ChunkedDecoder:
    """Decodes a folder with a metadata.json that lists csv, numpy and Parquet files of edges, node data and edge data.

    ``plan`` takes the folder or its metadata.json. Raw IDs are the typed IDs: rows of a type, in the order of its files.
    ``columns`` decides the dtype of csv features, ``NAME=dtype`` each; without it that is int64 where every value of a feature
    is an integer, else float64.
    """

    name: ClassVar[str] = "chunked"
    # The command line hands over the folder itself, not the files in it.
    takes_folder: ClassVar[bool] = True

    columns: tuple[str, ...] = ()

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Read metadata.json, look into every file, and compare.

        Raises DataError with the key path, or the file, for everything in the metadata that is wrong, and for row counts,
        dtypes and shapes that disagree; UsageError for a column that is no csv feature; StorageError for a file that is not
        there.
        """
        sources = plan_chunked(storage, urls)
        features = {span.detail.column for span in sources.spans if span.kind == "text"}
        for name, _ in map(parse_declared, self.columns):
            if name not in features:
                raise UsageError(f"--column {name}: there is no csv feature of that name", fix="name a csv feature, or drop it")
        return sources

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode lines of a csv file: ``src dst`` pairs, or rows of one feature.

        A feature's row number is its line number, so a blank line is an error there; behind the last row it is skipped.
        Raises DecodeError at the first field that is no number, an ID out of its type's range, a missing or surplus field.
        """
        chunk: Chunk = block.span.detail
        return _decode_edges(block, chunk, places) if chunk.column is None else self._decode_feature(block, chunk, chunk.column)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a numpy or Parquet file in batches of at most ``max_rows`` rows, fewer where rows are wide.

        Raises DecodeError with the row in the batch, and the column, for IDs out of range and nulls.
        """
        chunk: Chunk = span.detail
        return _read_edges(handle, chunk, max_rows, places) if chunk.column is None else _read_feature(handle, chunk, max_rows)

    def widen(self, columns: Mapping[str, str]) -> ChunkedDecoder:
        """Return the decoder with the dtypes of these csv features decided; other columns' files have theirs."""
        return replace(self, columns=(*self.columns, *(f"{name}={dtype}" for name, dtype in columns.items())))

    def _decode_feature(self, block: TextBlock, chunk: Chunk, column: str) -> RawRows:
        from graphprep.kernels.cpu.text.csv_numbers import Fault, parse_table

        first = block.first_line - 1
        most_rows = max(chunk.num_rows - first, 0)
        dtype = self._dtype_of(column)
        with block.held() as buf:
            values = parse_table(buf, chunk.delimiter, chunk.width, most_rows, dtype)
        if isinstance(values, Fault):
            raise _table_error(block, chunk, values, dtype or "float64")
        if not values.shape[0]:
            return RawRows()
        # One column is [rows], several are [rows, columns].
        shaped = values[:, 0] if chunk.width == 1 else values
        piece = dense_chunk(ColumnKey(column, "numbers", values.dtype.name), shaped)
        return RawRows(aligned=(_aligned(chunk, first, shaped.shape[0], piece),), num_records=shaped.shape[0])

    def _dtype_of(self, column: str) -> str | None:
        """Return the dtype that was decided for a csv feature; None: found in the data."""
        declared = next((text for text in reversed(self.columns) if text.rpartition("=")[0] == column), None)
        dtype = None if declared is None else parse_declared(declared)[1]
        return None if dtype == "binary" else dtype  # csv features are numbers


def _aligned(chunk: Chunk, first: int, num_rows: int, piece: ColumnChunk) -> AlignedColumn:
    """Say whose rows these are; ``first`` is their number in the file."""
    return AlignedColumn(chunk.owner, chunk.first_row + first, num_rows, piece)


def _edges(chunk: Chunk, src: NDArray[Any], dst: NDArray[Any], places: tuple[Ints, Ints] | None) -> RawRows:
    assert isinstance(chunk.owner, Relation)
    dtype = np.uint32 if src.dtype == dst.dtype == np.uint32 else np.uint64
    return edge_rows(chunk.owner, src.astype(dtype, copy=False), dst.astype(dtype, copy=False), places=places)


# -------------------------------------------------------------------------------------------------------------- text


def _decode_edges(block: TextBlock, chunk: Chunk, places: bool) -> RawRows:
    from graphprep.kernels.cpu.text.csv_numbers import Fault, parse_pairs, parse_plain_pairs

    if not places:
        with block.held() as buf:
            plain = parse_plain_pairs(buf, chunk.delimiter, *chunk.num_ends)
        if plain is not None:
            return _edges(chunk, *plain, None)
    found = parse_pairs(block.data, chunk.delimiter, *chunk.num_ends)
    if isinstance(found, Fault):
        raise _pair_error(block, chunk, found)
    src, dst, at_src, at_dst = found
    return _edges(chunk, src, dst, (at_src, at_dst) if places else None)


def _field(block: TextBlock, fault: Fault) -> str:
    text = block.data[fault.start : fault.stop].decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _delimiter_words(delimiter: bytes) -> str:
    return repr(delimiter.decode("utf-8", "replace")) if delimiter else "blanks"


def _pair_error(block: TextBlock, chunk: Chunk, fault: Fault) -> DecodeError:
    """Word the first fault of a csv file of edges."""
    from graphprep.kernels.cpu.text import csv_numbers, delimited, numbers

    field, fix = _field(block, fault), ""
    if fault.code in (delimited.TOO_FEW, delimited.TOO_MANY):
        message = _width_message(block, chunk, fault, 2)
        fix = "give every line a source and a destination, or set format.delimiter in the metadata"
    elif fault.code in (csv_numbers.OUT_OF_RANGE, numbers.NEGATIVE):
        message = _range_words(chunk, fault.column, field)
    elif fault.code == numbers.EMPTY:
        message = f"the {_END[fault.column]} id is empty"
    else:
        message = f"the {_END[fault.column]} id must be an integer, found {field!r}"
        fix = "write ids as decimal digits, without a header line, and set format.delimiter in the metadata"
    return DecodeError(message, at=fault.start, fix=fix)


_END = ("source", "destination")


def _width_message(block: TextBlock, chunk: Chunk, fault: Fault, width: int) -> str:
    from graphprep.kernels.cpu.text.delimited import TOO_FEW

    line = block.data[block.data.rfind(b"\n", 0, fault.start) + 1 :].split(b"\n", 1)[0].strip(b"\r")
    found = fault.column if fault.code == TOO_FEW else len(line.split(chunk.delimiter or None))
    return f"expected {width} columns separated by {_delimiter_words(chunk.delimiter)}, found {found}"


def _range_words(chunk: Chunk, end: int, found: object) -> str:
    num_nodes, type_name = chunk.num_ends[end], chunk.end_types[end]
    valid = f"valid ids are in [0, {num_nodes})" if num_nodes else "the type has no node"
    return f"{_END[end]} id {found} of type {type_name!r} is out of range: {valid}"


def _said(chunk: Chunk) -> str:
    return f"; {chunk.rows_by} says {chunk.num_rows} row{'' if chunk.num_rows == 1 else 's'}" if chunk.rows_by else ""


def _table_error(block: TextBlock, chunk: Chunk, fault: Fault, dtype: str) -> DecodeError:
    """Word the first fault of a csv file of a feature."""
    from graphprep.kernels.cpu.text import csv_numbers, delimited, numbers

    fix = ""
    if fault.code in (delimited.TOO_FEW, delimited.TOO_MANY):
        message = _width_message(block, chunk, fault, chunk.width)
        fix = "give every line the same number of values, or set format.delimiter in the metadata"
    elif fault.code == csv_numbers.BLANK:
        message = f"a blank line where a row must stand{_said(chunk)}"
        fix = "remove the line, or supply the values"
    elif fault.code == csv_numbers.SURPLUS:
        message = f"a row too many{_said(chunk)}"
        fix = "correct the counts in the metadata, or remove the surplus rows"
    elif fault.code == numbers.EMPTY:
        message = f"value {fault.column} is empty"
    elif fault.code == numbers.OVERFLOW:
        message = f"value {fault.column} does not fit {dtype}: {_field(block, fault)!r}"
    else:
        what = {"b": "0, 1, true or false", "f": "a number"}.get(np.dtype(dtype).kind, "an integer")
        message = f"value {fault.column} must be {what}, found {_field(block, fault)!r}"
        fix = "write numbers only, without a header line, and set format.delimiter in the metadata"
    return DecodeError(message, at=fault.start, fix=fix)


# ------------------------------------------------------------------------------------------------------------ tables


def _read_edges(handle: BinaryIO, chunk: Chunk, max_rows: int, places: bool) -> Iterator[RawRows]:
    for src, dst, names in _edge_batches(handle, chunk, max_rows):
        ends = _checked_ends(chunk, (src, dst), names)
        rows = np.arange(src.size if places else 0, dtype=np.int64)
        yield _edges(chunk, *ends, (rows, rows) if places else None)


def _edge_batches(
    handle: BinaryIO, chunk: Chunk, max_rows: int
) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, str]]]:
    if chunk.array is None:
        yield from read_parquet_edges(handle, max_rows)
        return
    if chunk.array.shape[0]:
        for pairs in read_rows(handle, chunk.array, 0, max_rows):
            yield pairs[:, 0], pairs[:, 1], ("0", "1")


def _checked_ends(
    chunk: Chunk, ends: tuple[NDArray[Any], NDArray[Any]], names: tuple[str, str]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the ends as raw IDs: uint32 where the types have few enough nodes, else uint64.

    Raises DecodeError for the first edge, source before destination, whose end its type does not have.
    """
    faults = []
    wide = tuple((ids if ids.dtype.itemsize == 8 else ids.astype(np.int64)).view(np.uint64) for ids in ends)
    for end, ids in enumerate(wide):
        # Negative numbers become large ones.
        if ids.size and int(ids.max()) >= chunk.num_ends[end]:
            faults.append((int((ids >= np.uint64(chunk.num_ends[end])).argmax()), end))
    if faults:
        row, end = min(faults)
        raise DecodeError(_range_words(chunk, end, int(ends[end][row])), at=row, column=names[end])
    dtype = np.uint32 if max(chunk.num_ends) <= _HIGH_32 else np.uint64
    return wide[0].astype(dtype, copy=False), wide[1].astype(dtype, copy=False)


def _read_feature(handle: BinaryIO, chunk: Chunk, max_rows: int) -> Iterator[RawRows]:
    assert chunk.key is not None
    first = 0
    for num_rows, piece in _feature_batches(handle, chunk, chunk.key, max_rows):
        yield RawRows(aligned=(_aligned(chunk, first, num_rows, piece),), num_records=num_rows)
        first += num_rows


def _feature_batches(handle: BinaryIO, chunk: Chunk, key: ColumnKey, max_rows: int) -> Iterator[tuple[int, ColumnChunk]]:
    if chunk.array is None:
        yield from read_parquet_feature(handle, key, chunk.item_shape, max_rows)
        return
    for values in read_rows(handle, chunk.array, 0, max_rows):
        yield values.shape[0], dense_chunk(key, values)
