"""Tables, matrices and arrays in memory as input: written to the scratch folder, and read from there as files are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.ledger import Need
from graphprep.model.errors import DataError, UsageError
from graphprep.model.shown.texts import count
from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION

if TYPE_CHECKING:
    import pyarrow as pa

    from graphprep.storage.read.urls import Storage

_GROUP_BYTES = 4 << 20  # of a row group
_MOST_ROWS = 1 << 16  # of a row group
_OBJECT_BYTES = 256  # of a value whose size is not known beforehand
_SPARSE_FORMATS = ("coo", "csr", "csc")


class Source(Protocol):
    """Something in memory that can be written to a file."""

    @property
    def origin(self) -> str:
        """Say what it is, for provenance.json."""
        ...

    def write(self, file: BinaryIO, place: str, /) -> None:
        """Write it. Raises DataError or UsageError at ``place`` for what cannot be."""
        ...


@dataclass(frozen=True)
class InMemory:
    """What ``convert`` reads from memory: sources by the names that stand for their files, in messages, too."""

    sources: Mapping[str, Source] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def needs(self) -> Iterator[Need]:
        """Declare what ``spool`` takes."""
        yield Need("row group", 2 * max(_GROUP_BYTES, _MOST_ROWS * _OBJECT_BYTES), "as it comes, and as Arrow has it")

    def spool(self, storage: Storage) -> None:
        """Write every source to a file of its own that ``storage`` reads under its name.

        Raises DataError, UsageError, and StorageError where the folder for temporary files is full.
        """
        for name, source in self.sources.items():
            path = Path(storage.add_private(name, source.origin))
            with plain_words(str(path.parent), TMP_DIR_OPTION), path.open("xb") as file:
                source.write(file, name)


# ------------------------------------------------------------------------------------------------------------ tables


class Table(Protocol):
    """A table in memory. ``types`` are None where only the values tell; ``batches`` yields rows from the beginning."""

    @property
    def names(self) -> Sequence[str]:
        """Return the names of the columns."""
        ...

    @property
    def types(self) -> Sequence[pa.DataType | None]:
        """Return the types of the columns."""
        ...

    @property
    def row_bytes(self) -> int:
        """Return about how many bytes a row takes."""
        ...

    def batches(self, num_rows: int, /) -> Iterator[Sequence[Any]]:
        """Yield the columns of ``num_rows`` rows after another: arrays of Arrow, pandas or Python."""
        ...


@dataclass(frozen=True)
class TableSource:
    """A table, which is written as Parquet. ``make`` looks at it when it is asked for."""

    make: Callable[[str], Table]
    origin: str

    def write(self, file: BinaryIO, place: str, /) -> None:
        """See ``Source``."""
        import pyarrow as pa

        try:
            self._write(self.make(place), file, place)
        except pa.ArrowException as error:
            words = " ".join(str(error).split())
            raise DataError(
                f"this is no table that can be read: {words}", place=place, fix="convert its columns first"
            ) from None

    def _write(self, table: Table, file: BinaryIO, place: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        step = max(1, min(_MOST_ROWS, _GROUP_BYTES // max(1, table.row_bytes)))
        kinds = _settle(table, step, place)
        schema = pa.schema(list(zip(table.names, kinds, strict=True)))
        row = 0
        with pq.ParquetWriter(file, schema, compression="none", use_dictionary=False, write_statistics=False) as writer:
            for columns in table.batches(step):
                arrays = [
                    _array(values, kind, place, name, row)
                    for values, kind, name in zip(columns, kinds, table.names, strict=True)
                ]
                batch = pa.Table.from_arrays(arrays, schema=schema)
                writer.write_table(batch, row_group_size=max(1, batch.num_rows))
                row += batch.num_rows


def table_source(value: Any) -> TableSource | None:
    """Return a DataFrame, or whatever speaks Arrow (tables, readers, Polars …), as a source; None for all else."""
    origin = f"{_module_of(type(value))}.{type(value).__name__}"
    if any((_module_of(cls), cls.__name__) == ("pandas", "DataFrame") for cls in type(value).__mro__):
        rows, columns = value.shape
        return TableSource(
            lambda place: PandasTable(value, place), f"{origin}, {count(rows, 'row')}, {count(columns, 'column')}"
        )
    if hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__"):
        return TableSource(lambda place: ArrowTable(value, place), origin)
    return None


class PandasTable:
    """A DataFrame; a named index is its first columns. Raises UsageError for names twice, and for texts in a nameless index."""

    def __init__(self, frame: Any, place: str) -> None:
        self._num_rows, self._place = len(frame), place
        index = frame.index
        levels = [(name, index.get_level_values(at).to_series()) for at, name in enumerate(index.names) if name is not None]
        if not levels and getattr(index.dtype, "kind", "O") not in "iu":
            raise UsageError(
                f"the index holds {index.dtype}, and has no name",
                place=place,
                fix="frame.rename_axis('id') makes it the first column, frame.reset_index(drop=True) leaves it out",
            )
        self._columns = [series for _, series in levels] + [frame.iloc[:, at] for at in range(frame.shape[1])]
        self.names = _unique([str(name) for name, _ in levels] + [str(name) for name in frame.columns], place)

    @property
    def types(self) -> Sequence[pa.DataType | None]:
        """See ``Table``."""
        import pyarrow as pa

        found: list[pa.DataType | None] = []
        for name, series in zip(self.names, self._columns, strict=True):
            try:
                found.append(None if series.dtype == object else pa.Array.from_pandas(series.iloc[:0]).type)
            except (pa.ArrowException, TypeError, ValueError):
                place = f"{self._place}: column {name!r}"
                words = f"a column must hold numbers, texts, dates or lists of numbers, found {series.dtype}"
                raise DataError(words, place=place, fix="convert it, or leave it out") from None
        return found

    @property
    def row_bytes(self) -> int:
        """See ``Table``."""
        return sum(one.dtype.itemsize if is_plain else _OBJECT_BYTES for one, is_plain in map(_with_width, self._columns))

    def batches(self, num_rows: int, /) -> Iterator[Sequence[Any]]:
        """See ``Table``."""
        for start in range(0, self._num_rows, num_rows):
            yield [one.iloc[start : start + num_rows] for one in self._columns]


def _with_width(series: Any) -> tuple[Any, bool]:
    """Return a column, and whether its dtype tells how many bytes a value takes."""
    return series, getattr(series.dtype, "kind", "O") in "biufcmM" and hasattr(series.dtype, "itemsize")


class ArrowTable:
    """A table of Arrow, or of any library that exports one; its rows are read once."""

    def __init__(self, value: Any, place: str) -> None:
        import pyarrow as pa

        try:
            stream = value if hasattr(value, "__arrow_c_stream__") else pa.Table.from_batches([pa.record_batch(value)])
            self._reader = pa.RecordBatchReader.from_stream(stream)
        except (pa.ArrowException, TypeError) as error:
            words = " ".join(str(error).split())
            raise UsageError(f"this {type(value).__name__} is no table: {words}", place=place, fix="give a table") from None
        self.names = _unique(self._reader.schema.names, place)
        self.types: Sequence[pa.DataType | None] = self._reader.schema.types
        self.row_bytes = 0

    def batches(self, num_rows: int, /) -> Iterator[Sequence[Any]]:
        """See ``Table``."""
        for batch in self._reader:
            step = max(1, min(num_rows, _GROUP_BYTES * batch.num_rows // max(1, batch.nbytes)))
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step).columns


@dataclass(frozen=True)
class RowsTable:
    """Records of Python: ``rows`` yields the values of one after another, from the beginning at each call.

    ``empty_type`` is the type of the columns where there is no row.
    """

    names: Sequence[str]
    rows: Callable[[], Iterator[tuple[Any, ...]]]
    empty_type: str

    @property
    def types(self) -> Sequence[pa.DataType | None]:
        """See ``Table``."""
        import pyarrow as pa

        is_empty = next(self.rows(), None) is None
        return [pa.type_for_alias(self.empty_type) if is_empty else None] * len(self.names)

    @property
    def row_bytes(self) -> int:
        """See ``Table``."""
        return _OBJECT_BYTES * len(self.names)

    def batches(self, num_rows: int, /) -> Iterator[Sequence[Any]]:
        """See ``Table``."""
        from itertools import islice

        rows = self.rows()
        while some := list(islice(rows, num_rows)):
            yield list(zip(*some, strict=True))


def _unique(names: Sequence[str], place: str) -> list[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"two columns are called {name!r}", place=place, fix="give each column a name of its own")
        seen.add(name)
    return list(names)


# ------------------------------------------------------------------------------------------------------------- types


def _settle(table: Table, step: int, place: str) -> list[pa.DataType]:
    """Return the type of every column: of objects the one that holds all values, nulls where there is none.

    Raises DataError for a value that is no text, number or list as the others are.
    """
    import pyarrow as pa

    kinds = list(table.types)
    open_columns = [at for at, kind in enumerate(kinds) if kind is None]
    if open_columns:
        row = 0
        for columns in table.batches(step):
            for at in open_columns:
                kinds[at] = _widen(kinds[at], columns[at], place, table.names[at], row)
            row += len(columns[0])
    return [pa.null() if kind is None else kind for kind in kinds]


def _widen(known: pa.DataType | None, values: Any, place: str, name: str, row: int) -> pa.DataType:
    """Return the type that holds what was known and some more values."""
    found = _infer(values)
    common = None if found is None else _common(known, found)
    if common is not None:
        return common
    for at, value in enumerate(values):
        found = _infer([value])
        common = None if found is None else _common(known, found)
        if common is None:
            others = "" if known is None else f", but {known} above"
            raise DataError(
                f"found {_short(value)} ({type(value).__name__}){others}",
                place=f"{place}: row {row + at}, column {name!r}",
                fix="give all values of the column one type: numbers, texts, or lists of numbers",
            )
        known = common
    return known


def _infer(values: Any) -> pa.DataType | None:
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=hasattr(values, "iloc")).type
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _common(one: pa.DataType | None, other: pa.DataType) -> pa.DataType | None:
    """Return the type that holds both: what is null is anything, integers are floats, lists go by their values."""
    import pyarrow as pa

    if one is None or one == other or pa.types.is_null(one):
        return other
    if pa.types.is_null(other):
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        inner = _common(one.value_type, other.value_type)
        return None if inner is None else pa.list_(inner)
    numbers = [kind for kind in (one, other) if pa.types.is_integer(kind) or pa.types.is_floating(kind)]
    if len(numbers) == 2 and any(pa.types.is_floating(kind) for kind in numbers):
        return pa.float64()
    return None


def _array(values: Any, kind: pa.DataType, place: str, name: str, row: int) -> pa.Array:
    """Return some rows of a column as an array. Raises DataError for a value that its type does not hold."""
    import pyarrow as pa

    if isinstance(values, pa.Array):
        return values
    is_pandas = hasattr(values, "iloc")
    try:
        array = pa.array(values, type=kind, from_pandas=is_pandas)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        for at, value in enumerate(values):
            try:
                pa.array([value], type=kind, from_pandas=is_pandas)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                raise DataError(
                    f"{_short(value)} ({type(value).__name__}) is no {kind}, as the others are",
                    place=f"{place}: row {row + at}, column {name!r}",
                    fix="give all values of the column one type",
                ) from None
        words = " ".join(str(error).split())
        raise DataError(words, place=f"{place}: column {name!r}", fix="give all values of the column one type") from None


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else text[:39] + "…"


# ------------------------------------------------------------------------------------------------- matrices and arrays


@dataclass(frozen=True)
class MatrixSource:
    """A sparse matrix of SciPy, as ``scipy.sparse.save_npz`` writes it."""

    matrix: Any

    @property
    def origin(self) -> str:
        """See ``Source``."""
        shape = " x ".join(map(str, self.matrix.shape))
        return f"scipy.sparse.{type(self.matrix).__name__}, {shape}, {count(int(self.matrix.nnz), 'value')}"

    def write(self, file: BinaryIO, place: str, /) -> None:
        """See ``Source``."""
        matrix = self.matrix
        if len(matrix.shape) != 2:
            words = f"a matrix of edges has two dimensions, found {len(matrix.shape)}"
            raise UsageError(words, place=place, fix="give one of sources x destinations")
        if matrix.format not in _SPARSE_FORMATS:
            matrix = matrix.tocoo()
        arrays = {"format": np.array(matrix.format.encode()), "shape": np.array(matrix.shape), "data": matrix.data}
        if matrix.format == "coo":
            arrays |= {"row": matrix.row, "col": matrix.col}
        else:
            arrays |= {"indices": matrix.indices, "indptr": matrix.indptr}
        write_archive(file, arrays, place)


def matrix_source(value: Any) -> MatrixSource | None:
    """Return a sparse matrix of SciPy as a source; None for all else."""
    is_sparse = type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocoo")
    return MatrixSource(value) if is_sparse else None


@dataclass(frozen=True)
class ArraysSource:
    """Arrays by name, as ``numpy.savez`` writes them."""

    arrays: Mapping[str, NDArray[Any]]
    origin: str

    def write(self, file: BinaryIO, place: str, /) -> None:
        """See ``Source``."""
        write_archive(file, self.arrays, place)


@dataclass(frozen=True)
class ArraySource:
    """An array, as ``numpy.save`` writes it."""

    array: NDArray[Any]
    origin: str

    def write(self, file: BinaryIO, place: str, /) -> None:
        """See ``Source``."""
        np.lib.format.write_array(file, _checked(self.array, place), allow_pickle=False)


def array_source(value: Any) -> ArraySource | None:
    """Return an array of NumPy or a tensor of torch, the ends of edges, as a source; None for all else."""
    kind = type(value)
    is_tensor = _module_of(kind) == "torch" and hasattr(value, "detach")
    if not is_tensor and not isinstance(value, np.ndarray):
        return None
    array = value.detach().cpu().numpy() if is_tensor and str(value.layout) == "torch.strided" else value
    if not isinstance(array, np.ndarray):
        raise UsageError("the tensor is sparse", place=kind.__name__, fix="give its indices: tensor.coalesce().indices()")
    shape = " x ".join(map(str, array.shape))
    return ArraySource(array, f"{_module_of(kind)}.{kind.__name__}, {shape}")


def write_archive(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], place: str) -> None:
    """Write arrays as members of an ``.npz`` archive, a piece after another. Raises DataError for arrays of objects."""
    import zipfile

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                found = _checked(np.asarray(array), f"{place}: {name}")
                np.lib.format.write_array(member, found, allow_pickle=False)


def _checked(array: NDArray[Any], place: str) -> NDArray[Any]:
    if array.dtype.hasobject:
        raise DataError("the array holds objects", place=place, fix="convert it to a dtype of numbers")
    return array


def _module_of(cls: type) -> str:
    return cls.__module__.partition(".")[0]
