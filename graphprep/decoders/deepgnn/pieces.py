"""Join the rows of consecutive pieces of a block to those of the block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows, Relation

_Name = TypeVar("_Name", str, Relation)
_Columns = tuple[ColumnChunk, ...]


def join_rows(pieces: Sequence[RawRows]) -> RawRows:
    """Join pieces, one at least, of a format whose raw IDs and types are numbers; places are left out.

    Types ascend by number. Chunks of one column become one; those of nested features, one for each shape.
    """
    if len(pieces) == 1:
        return pieces[0]
    nodes = [piece.nodes for piece in pieces if piece.nodes is not None]
    edges = [piece.edges for piece in pieces if piece.edges is not None]
    warnings: dict[str, int] = {}
    for piece in pieces:
        for text, count in piece.warnings.items():
            warnings[text] = warnings.get(text, 0) + count
    return RawRows(
        nodes=_join_nodes(nodes) if nodes else None,
        edges=_join_edges(edges) if edges else None,
        num_records=sum(piece.num_records for piece in pieces),
        warnings=warnings,
    )


def _join_nodes(pieces: list[RawNodes]) -> RawNodes:
    types, names = _join_types([(piece.types, piece.type_names) for piece in pieces], int)
    return RawNodes(
        ids=_concatenate([piece.ids for piece in pieces]),
        types=types,
        type_names=names,
        columns=_join_columns([(piece.num_rows, piece.columns) for piece in pieces]),
        num_slots=_concatenate([piece.num_slots for piece in pieces]),
    )


def _join_edges(pieces: list[RawEdges]) -> RawEdges:
    relations, names = _join_types([(piece.relations, piece.relation_names) for piece in pieces], lambda one: int(one.name))
    return RawEdges(
        src=_concatenate([piece.src for piece in pieces]),
        dst=_concatenate([piece.dst for piece in pieces]),
        relations=relations,
        relation_names=names,
        columns=_join_columns([(piece.num_rows, piece.columns) for piece in pieces]),
        num_slots=_concatenate([piece.num_slots for piece in pieces]),
    )


def _join_types(
    pieces: list[tuple[NDArray[np.int32], tuple[_Name, ...]]], number_of: Callable[[_Name], int]
) -> tuple[NDArray[np.int32], tuple[_Name, ...]]:
    """Code the types of all pieces alike."""
    names = tuple(sorted({name for _, some in pieces for name in some}, key=number_of))
    codes = {name: code for code, name in enumerate(names)}
    recoded = [types if some == names else np.array([codes[name] for name in some], np.int32)[types] for types, some in pieces]
    return _concatenate(recoded), names


def _join_columns(pieces: list[tuple[int, _Columns]]) -> _Columns:
    """Join the chunks of each column; rows count on from piece to piece."""
    found: dict[tuple[ColumnKey, tuple[int, ...] | None], list[tuple[int, ColumnChunk]]] = {}
    first_row = 0
    for num_rows, columns in pieces:
        for chunk in columns:
            is_nested = chunk.item_shape is not None and len(chunk.item_shape) > 1
            found.setdefault((chunk.key, chunk.item_shape if is_nested else None), []).append((first_row, chunk))
        first_row += num_rows
    return tuple(_join_chunks(parts) for parts in found.values())


def _join_chunks(parts: list[tuple[int, ColumnChunk]]) -> ColumnChunk:
    chunks = [chunk for _, chunk in parts]
    first = chunks[0]
    return ColumnChunk(
        key=first.key,
        rows=np.concatenate([chunk.rows + first_row for first_row, chunk in parts]),
        counts=_concatenate([chunk.counts for chunk in chunks]),
        values=_concatenate([chunk.values for chunk in chunks]),
        item_shape=first.item_shape if all(chunk.item_shape == first.item_shape for chunk in chunks) else None,
        coords=_concatenate([chunk.coords for chunk in chunks]),
        entry_counts=_concatenate([chunk.entry_counts for chunk in chunks]),
        start=_concatenate([chunk.start for chunk in chunks]),
        end=_concatenate([chunk.end for chunk in chunks]),
    )


def _concatenate(arrays: Sequence[Any]) -> Any:
    """Put arrays together; None where they are."""
    return None if arrays[0] is None else np.concatenate(arrays)
