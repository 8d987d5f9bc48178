"""Node tables in ``.npz`` archives: each array a column, row r of all of them one node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphprep.decoders.cells.arrays_files import ArraySource, find_arrays, read_rows
from graphprep.decoders.cells.arrow import ArrowCells
from graphprep.decoders.cells.row_numbers import batch_rows
from graphprep.decoders.tables.arrow import ArrowBatch
from graphprep.decoders.tables.columns import TableLayout
from graphprep.decoders.tables.rows import table_rows
from graphprep.model.errors import DataError
from graphprep.model.protocols import InputStorage, Span
from graphprep.model.rows import RawRows
from graphprep.storage.faults import display_url


def find_columns(storage: InputStorage, url: str, dropped: tuple[str, ...]) -> dict[str, ArraySource]:
    """Read the headers of an archive's arrays, without those that are dropped.

    Raises DataError for arrays that cannot be read, and where they differ in length.
    """
    found: dict[str, ArraySource] = {}
    for key, source in find_arrays(storage, url, texts=True).items():
        if key in dropped:
            continue
        if isinstance(source, DataError):
            raise DataError(source.message, place=source.place, fix=f"{source.fix}, or pass --drop-column {key}")
        if not source.shape:
            raise DataError("the array is a scalar, not a column", place=source.place, fix=f"pass --drop-column {key}")
        found[key] = source
    sizes = {key: source.shape[0] for key, source in found.items()}
    first = next(iter(sizes), "")
    for key, size in sizes.items():
        if size != sizes[first]:
            raise DataError(
                f"array {key!r} has {size} rows, but {first!r} has {sizes[first]}",
                place=display_url(url),
                fix=f"give all columns one length, or pass --drop-column {key}",
            )
    return found


def schema_of(sources: Mapping[str, ArraySource]) -> pa.Schema:
    """Return the Arrow schema of some arrays.

    Raises DataError for numbers that Arrow has no type for.
    """
    fields = []
    for key, source in sources.items():
        try:
            kind = pa.from_numpy_dtype(source.dtype)
        except (pa.ArrowException, NotImplementedError):
            words = f"a column must hold integers, floats, bools or texts, found {source.dtype}"
            raise DataError(words, place=source.place, fix=f"pass --drop-column {key}") from None
        for size in reversed(source.shape[1:]):
            kind = pa.list_(kind, size)
        fields.append(pa.field(key, kind))
    return pa.schema(fields)


@dataclass(frozen=True)
class ArchiveReader:
    """Reads one archive. ``sources`` are the arrays that the layout uses, by name."""

    layout: TableLayout
    sources: tuple[tuple[str, ArraySource], ...]

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows [start, stop) in batches of at most ``max_rows`` rows. Raises DecodeError for the first faulty row."""
        names = {self.layout.names[position] for position in self.layout.used}
        used = [(name, source) for name, source in self.sources if name in names]
        row_bytes = sum(math.prod(source.shape[1:]) * source.dtype.itemsize for _, source in used)
        step = batch_rows(max_rows, row_bytes)
        row, stop = max(span.start, 0), self.num_rows if span.stop < 0 else span.stop
        streams = [read_rows(handle, source, row, step) for _, source in used]
        for start in range(row, max(stop, row + 1), step):
            count = min(step, stop - start)
            columns = [_column(next(stream, np.zeros((0, *source.shape[1:]), source.dtype))[:count], source)
                       for stream, (_, source) in zip(streams, used, strict=True)]  # fmt: skip
            batch = pa.RecordBatch.from_arrays(columns, names=[name for name, _ in used])
            yield table_rows(ArrowBatch(ArrowCells(batch, self.layout.names), self.layout, start), self.layout, places)

    def count(self, handle: BinaryIO, span: Span) -> int:
        """Return the number of rows."""
        return self.num_rows

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return self.sources[0][1].shape[0] if self.sources else 0


def _column(values: NDArray[Any], source: ArraySource) -> pa.Array:
    try:
        column = pa.array(np.ascontiguousarray(values).reshape(-1), pa.string() if source.dtype.kind == "U" else None)
    except (pa.ArrowException, UnicodeError, ValueError):
        raise DataError("the array holds bytes that are no text", place=source.place, fix="write the file again") from None
    for size in reversed(source.shape[1:]):
        column = pa.FixedSizeListArray.from_arrays(column, size)
    return column
