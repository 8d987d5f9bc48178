"""Columns that users name as the edges' own IDs: ``--edge-id-col`` of convert and export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from graphprep.model.errors import UsageError
from graphprep.model.schema import ColumnSchema


def check_edge_id_columns(columns: Mapping[str, Sequence[ColumnSchema]], wanted: Sequence[str], option: str) -> None:
    """Raise UsageError where a name (``COL``, or ``SRC:REL:DST:COL``) is that of no column of IDs.

    ``columns`` are those of each edge type, ``src:rel:dst``; ``option`` says where the names were given.
    """
    for key in wanted:
        found = [column for name, some in columns.items() for column in some if is_edge_id_column(name, column, (key,))]
        if not found:
            raise UsageError(f"{option}: there is no column {key!r} of edges", fix="write COL, or SRC:REL:DST:COL")
        for column in found:
            if column.kind != "dense" or column.item_shape or column.optional or np.dtype(column.dtype).kind not in "iu":
                shown = f"{'optional ' * column.optional}{column.kind} {column.dtype}{list(column.item_shape)}"
                words = f"{option}: {key!r} must hold an integer for each edge, found {shown}"
                raise UsageError(words, fix="name another")


def is_edge_id_column(name: str, column: ColumnSchema, wanted: Sequence[str]) -> bool:
    """Return whether a column of the edge type ``name`` is wanted as its edges' IDs."""
    return column.role is None and (column.name in wanted or f"{name}:{column.name}" in wanted)
