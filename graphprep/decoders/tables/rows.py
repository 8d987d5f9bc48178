"""From the columns of a batch, whatever its file's format, to raw rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.faults import FieldFaults
from graphprep.decoders.cells.text import null_warnings
from graphprep.decoders.tables.columns import FeatureColumn, IdField, NodeOwner, TableLayout
from graphprep.kernels.cpu.text.dictionary import TextDictionary
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import TextBlock
from graphprep.model.rows import ColumnChunk, RawEdges, RawIds, RawNodes, RawRows, RawTexts, Relation
from graphprep.storage.read.spans import place_of

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
        rows = _edge_rows(layout.owner, (ids[0], ids[1]), labels, tuple(columns), at)
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


def _edge_rows(
    owner: Relation,
    ends: tuple[RawIds | RawTexts, RawIds | RawTexts],
    labels: RawTexts | None,
    columns: tuple[ColumnChunk, ...],
    at: list[Ints] | None,
) -> RawRows:
    src, dst = ends
    relations = np.zeros(src.size, np.int32)
    found: tuple[Relation, ...] = (owner,)
    if labels is not None:
        relations, names = _codes(labels, None)
        found = tuple(dataclasses.replace(owner, name=name) for name in names)
    edges = RawEdges(
        src=src,
        dst=dst,
        relations=relations,
        relation_names=found,
        columns=columns,
        at_src=at[0] if at else None,
        at_dst=at[1] if at else None,
        record=np.full(src.size, -1, np.int64) if at else None,
    )
    return RawRows(edges=edges, num_records=src.size)


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


def read_numbered(
    blocks: Iterable[TextBlock], first_row: int, rows_of: Callable[[TextBlock, int], RawRows]
) -> Iterator[RawRows]:
    """Read text whose records are numbered, block after block; ``rows_of`` decodes a block, given its first row's number.

    Raises DataError for the first faulty record, which cannot be skipped: the rows behind it would change their numbers.
    """
    row = first_row
    for block in blocks:
        try:
            rows = rows_of(block, row)
        except DecodeError as error:
            raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from None
        row += rows.num_records
        yield rows
