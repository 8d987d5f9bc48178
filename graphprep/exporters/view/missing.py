"""What is said of rows that lack a value: trainers get a number there all the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import ExportPlan
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.torch_rows import has_label, read_present
from graphprep.store.columns.trainers import labels_of

_ROW_BYTES = 32  # of a row while it is looked at
_OWN_SAY = ("label", "split", "seeds", "created")


def tell_missing(graph: StoredGraph, plan: ExportPlan) -> Iterator[str]:
    """Say of each column how many rows lack a value, and how many rows of a split lack a label."""
    metadata = graph.metadata
    if plan.dtypes in ("stored", "files"):
        return
    for number, name in enumerate(metadata.node_types):
        parts = [Rows.of_nodes(graph, number, part) for part in range(metadata.num_parts)]
        yield from _tell(f"node type {name!r}", graph.node_columns(number), parts)
    order = plan.need.edge_columns
    if order is None:
        return
    for edge, name in enumerate(graph.edge_names):
        if order == "input":
            parts = [Rows.of_edges(graph.all_edges, edge, order, 0)]
        else:
            parts = [Rows.of_edges(graph, edge, order, part) for part in range(metadata.num_parts)]
        columns = [one for one in graph.edge_columns(edge) if not (plan.hands_times and one.role == "time")]
        yield from _tell(f"edge type {name!r}", columns, parts)


def _tell(owner: str, columns: Sequence[ColumnSchema], parts: Sequence[Rows]) -> Iterator[str]:
    total = sum(rows.size for rows in parts)
    counts = {one.name: _count_missing(parts, one) for one in columns if one.optional and one.role not in _OWN_SAY}
    if any(counts.values()):
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items() if count)
        yield f"{owner}: values are missing, and 0 stands there: {listed} of {total:,}"
    labels, split = labels_of(columns), next((one for one in columns if one.role == "split"), None)
    if labels and split is not None and (lost := _count_unlabelled(parts, split, labels)):
        yield f"{owner}: {lost:,} of its split lack the label, and are in no part: neither train, valid nor test"


def _count_missing(parts: Sequence[Rows], column: ColumnSchema) -> int:
    pieces = ((rows, *cut) for rows in parts for cut in rows.slices(_ROW_BYTES))
    return sum(int((~read_present(rows, column, low, high)).sum()) for rows, low, high in pieces)


def _count_unlabelled(parts: Sequence[Rows], split: ColumnSchema, labels: Sequence[ColumnSchema]) -> int:
    found = 0
    for rows in parts:
        for low, high in rows.slices(_ROW_BYTES):
            known = np.all([has_label(rows, label, low, high) for label in labels], axis=0)
            found += int((read_present(rows, split, low, high) & ~known).sum())
    return found
