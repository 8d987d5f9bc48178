"""When nodes and edges were created and removed: columns that DeepGNN has as times of lines and edges, not as features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from graphprep.model.export import Side, Unsupported
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.trainers import all_types

TIME_ROLES = frozenset({"created_at", "removed_at", "time"})


def time_columns(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema | None, ColumnSchema | None]:
    """Return the columns of when elements were created and removed; a ``time`` is the former where there is no other."""
    by_role = {column.role: column for column in columns if column.role in TIME_ROLES}
    return by_role.get("created_at", by_role.get("time")), by_role.get("removed_at")


def have_times(columns: Sequence[ColumnSchema]) -> bool:
    """Return whether elements have times."""
    return any(column.role in TIME_ROLES for column in columns)


def find_lost_times(metadata: GraphMetadata, why_not: Callable[[Side], str | None]) -> Iterator[Unsupported]:
    """List the columns of times that are not written: all of a side for which ``why_not`` gives a reason, and second ones."""
    for side, name, columns in all_types(metadata):
        for column in columns:
            if column.role in TIME_ROLES:
                second = None if column in time_columns(columns) else "created_at is the time that is written"
                reason = why_not(side) or second
                if reason is not None:
                    yield Unsupported(side, name, column.name, reason)
