"""From the columns of a batch, whatever its file's format, to raw rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import Relations, edge_rows
from graphprep.decoders.cells.text import FieldFaults, null_warnings
from graphprep.decoders.tables.columns import FeatureColumn, IdField, NodeOwner, TableLayout
from graphprep.kernels.cpu.text.dictionary import TextDictionary
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawIds, RawNodes, RawRows, RawTexts, Relation
from graphprep.storage.read.spans import BLOCK_BYTES, place_of, read_blocks

Ints = NDArray[np.int64]


class TableBatch(Protocol):
    """Some rows of a table. Every method notes what is wrong in ``faults``; what it returns then means nothing."""

    @property
    def faults(self) -> FieldFaults:
        """Return what is wrong so far."""

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""

    def ids(self, field: IdField) -> RawIds | RawTexts:
        """Read raw IDs."""

    def texts(self, position: int) -> RawTexts:
        """Read a column of names, none of them empty."""

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Read weights."""

    def times(self, column: FeatureColumn, unit: str | None) -> ColumnChunk:
        """Read times; those in seconds become multiples of ``unit``."""

    def feature(self, column: FeatureColumn) -> ColumnChunk:
        """Read a column that is stored."""

    def places(self, field: IdField) -> Ints:
        """Return where the IDs stand: int64[n], bytes in the block, or rows in the batch."""


def table_rows(batch: TableBatch, layout: TableLayout, places: bool) -> RawRows:
    """Make raw rows of a batch.

    Raises DecodeError for the first faulty row.
    """
    ids, labels, columns = parse_columns(batch, layout)
    batch.faults.raise_first()
    at = [batch.places(field) for field in layout.ids] if places else None
    if isinstance(layout.owner, NodeOwner):
        rows = _node_rows(layout.owner, ids[0], labels, tuple(columns), at[0] if at else None)
    else:
        relation = layout.owner if labels is None else Relations.named(labels, layout.owner)
        rows = edge_rows(relation, ids[0], ids[1], tuple(columns), (at[0], at[1]) if at else None)
    warnings = null_warnings(columns, _owner_words(layout.owner))
    return dataclasses.replace(rows, warnings=warnings) if warnings else rows


def parse_columns(batch: TableBatch, layout: TableLayout) -> tuple[list[RawIds | RawTexts], RawTexts | None, list[ColumnChunk]]:
    """Read the IDs, the names of types or relations, and the other columns; what is wrong is noted in the batch's faults."""
    ids = [batch.ids(field) for field in layout.ids]
    labels = None if layout.label is None else batch.texts(layout.label)
    columns = []
    if layout.weight is not None:
        columns.append(batch.weights(layout.weight, layout.weight_dtype))
    if layout.time is not None:
        columns.append(batch.times(layout.time, layout.time_unit))
    columns += [batch.feature(column) for column in layout.features]
    return ids, labels, columns


def _owner_words(owner: NodeOwner | Relation) -> str:
    """Name the type of a table's rows in front of a column's name; "" where rows name theirs."""
    if isinstance(owner, NodeOwner):
        return f"node type {owner.type!r}, " if owner.type else ""
    kind = (owner.src_type, owner.name, owner.dst_type)
    return f"edge type {':'.join(map(str, kind))!r}, " if all(kind) else ""


def _node_rows(
    owner: NodeOwner,
    ids: RawIds | RawTexts,
    labels: RawTexts | None,
    columns: tuple[ColumnChunk, ...],
    at: Ints | None,
) -> RawRows:
    types = np.zeros(ids.size, np.int32)
    names: tuple[str, ...] = (owner.type or "",)
    if labels is not None:
        types, names = _codes(labels, owner.type_delimiter)
    nodes = RawNodes(ids, types, names, columns, at=at, declares=owner.declares)
    return RawRows(nodes=nodes, num_records=ids.size)


def _codes(labels: RawTexts, delimiter: str | None) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Number the distinct names, or what stands in them before a delimiter."""
    found = TextDictionary()
    codes = found.add(labels.offsets, labels.values)
    names = [name.decode(errors="replace") for name in found.texts()]
    if delimiter is None:
        return codes, tuple(names)
    short = [name.split(delimiter)[0] for name in names]
    order = {name: number for number, name in enumerate(dict.fromkeys(short))}
    return np.array([order[name] for name in short], np.int32)[codes], tuple(order)


@dataclass(frozen=True)
class RecordReader:
    """Reads one file of text, whose records are rows of a table."""

    layout: TableLayout

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole records.

        Raises DecodeError for the first faulty record.
        """
        return self._rows(block, 0, places)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a table whose rows are numbered, block after block.

        Raises DataError for the first faulty record, which cannot be skipped: the rows behind it would change their numbers.
        """
        row = self.layout.ids[0].first
        for block in read_blocks(handle, span, min(BLOCK_BYTES, 2 * max_rows)):
            try:
                rows = self._rows(block, row, places)
            except DecodeError as error:
                raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from None
            row += rows.num_records
            yield rows

    def _rows(self, block: TextBlock, first_row: int, places: bool) -> RawRows:
        """Decode a block, given the number of its first row."""
        raise NotImplementedError
