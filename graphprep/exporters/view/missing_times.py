"""Edges without a time, of stores whose times a trainer's sampler draws by: which are left out, and what others get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import edge_type_text
from graphprep.store.columns.times import REFUSE, count_missing, edges_words, stand_in
from graphprep.store.items import StoredArrays
from graphprep.store.paths import ColumnPaths, edge_folder
from graphprep.store.single import WholeStore


@dataclass(frozen=True)
class MissingTimes:
    """``dropped``: numbers of the edge types of which edges are left out; ``stand_ins``: the times that those of others get."""

    dropped: tuple[int, ...] = ()
    stand_ins: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def find_missing_times(store: StoredArrays, kept: GraphMetadata, rule: str) -> MissingTimes:
    """Find the edges that have no time among the columns that are ``kept``, and do with them what the rule says.

    Raises DataError where it refuses them, UsageError for what is no time of a column.
    """
    dropped, stand_ins, notes = [], {}, []
    for number, (edge_type, schema) in enumerate(zip(kept.edge_types, kept.edge_schemas, strict=True)):
        column = next((one for one in schema.columns if one.role == "time" and one.optional), None)
        if column is None:
            continue
        missing = count_missing(WholeStore(store).array(0, ColumnPaths(f"{edge_folder(edge_type)}/{column.path}").present))
        if not missing:
            continue
        value = stand_in(rule, edge_type_text(edge_type), column, missing)
        what = "the graph is without, by" if value is None else "they get the one of"
        notes.append(f"{edges_words(missing, edge_type_text(edge_type))} no time: {what} --missing-time {rule}")
        if value is None:
            dropped.append(number)
        else:
            stand_ins[number] = value
    return MissingTimes(tuple(dropped), stand_ins, tuple(notes))


def leave_missing_times(store: StoredArrays, kept: GraphMetadata, rule: str) -> MissingTimes:
    """Leave all edges as they are, for a target whose samplers draw by no time, and say so where a rule was given."""
    said = f"--missing-time {rule} does nothing here: this target's samplers draw by no time, and such edges stay"
    return MissingTimes(notes=() if rule == REFUSE else (said,))
