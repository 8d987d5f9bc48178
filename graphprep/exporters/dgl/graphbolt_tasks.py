"""Training, validation and test sets of a GraphBolt dataset: seeds, with their labels, of the parts of splits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.dgl.columns import Feature, dgl_edge_type, dgl_name
from graphprep.exporters.dgl.graphbolt_graph import fitting_dtype
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.edge_sets import EdgeSet, edge_sets
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.negatives import Negatives
from graphprep.model.export import Side
from graphprep.model.schema import ColumnSchema, edge_type_path, path_name
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.torch_rows import has_label
from graphprep.store.items import StoredItems

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Read = Callable[[int, int, int], NDArray[Any]]
SETS = ("train_set", "validation_set", "test_set")
_SHORT = ("train", "validation", "test")
_ROW_BYTES = 32  # of a row while it is looked at


@dataclass(frozen=True)
class _Owner:
    """A type with a split. Its rows come in ``runs``; ``seeds`` tells (run, low, high) as seeds: [k] nodes, or edges [k, 2]."""

    side: Side
    type_name: str
    path: str
    columns: tuple[ColumnSchema, ...]
    runs: tuple[Rows, ...]
    seeds: Callable[[int, int, int], Ints]
    seed_dtype: str
    edge_sets: tuple[EdgeSet, ...] = ()

    @property
    def labels(self) -> tuple[ColumnSchema | None, ...]:
        """Return the labels, each of which makes a task; None: seeds alone do, or with their negatives."""
        found = tuple(column for column in self.columns if column.role == "label" and column.kind == "dense")
        return found if found and not self.edge_sets else (*found, None)


@dataclass(frozen=True)
class _Set:
    """The seeds of a type that are in a part of its split (0, 1, 2), and have the label, if there is one."""

    owner: _Owner
    label: ColumnSchema | None
    part: int

    def counts(self) -> tuple[int, int]:
        """Return the number of seeds, and of those that are left out as they have no label."""
        found = [(int(kept.sum()), int(chosen.sum())) for *_, chosen, kept in self._rows()]
        kept = sum(one for one, _ in found)
        return kept, sum(one for _, one in found) - kept

    def write(self, out: FolderOutput, stem: str, size: int) -> list[dict[str, object]]:
        """Write seeds and labels; return what the list of sets says of them."""
        owner, pairs = self.owner, (2,) if self.owner.side == "edge" else ()
        files: list[tuple[str, str, tuple[int, ...], Read]] = [("seeds", owner.seed_dtype, pairs, owner.seeds)]
        if self.label is not None:
            label = Feature(self.label.name, self.label)
            files.append(("labels", label.dtype, label.item_shape, lambda run, *at: label.read(owner.runs[run], *at)))
        for name, dtype, shape, read in files:
            pieces = (read(*at)[kept].astype(dtype, copy=False) for *at, _, kept in self._rows())
            out.write_npy(f"{stem}-{name}.npy", dtype, (size, *shape), pieces)
        return [{"name": name, "format": "numpy", "path": f"{stem}-{name}.npy"} for name, *_ in files]

    def _rows(self) -> Iterator[tuple[int, int, int, Mask, Mask]]:
        """Yield (run, low, high, which rows are in the part, which of these have the label)."""
        split = next(column for column in self.owner.columns if column.role == "split")
        for run, rows in enumerate(self.owner.runs):
            for low, high in rows.slices(_ROW_BYTES):
                chosen = Feature("", split, self.part).read(rows, low, high) != 0
                kept = chosen if self.label is None else chosen & has_label(rows, self.label, low, high)
                yield run, low, high, chosen, kept


@dataclass(frozen=True)
class _QuerySet:
    """The edges of a part, each followed by its negatives: seeds, labels that say which are edges, and their numbers."""

    negatives: Negatives
    seed_dtype: str
    num_edges: int

    def write(self, out: FolderOutput, stem: str) -> list[dict[str, object]]:
        """Write them; return what the list of sets says of them."""
        size = self.num_edges + self.negatives.num_pairs()
        files: list[tuple[str, str, tuple[int, ...]]] = [
            ("seeds", self.seed_dtype, (2,)),
            ("labels", "bool", ()),
            ("indexes", "int64", ()),
        ]
        for at, (name, dtype, shape) in enumerate(files):
            out.write_npy(f"{stem}-{name}.npy", dtype, (size, *shape), (some[at].astype(dtype) for some in self._pieces()))
        return [{"name": name, "format": "numpy", "path": f"{stem}-{name}.npy"} for name, *_ in files]

    def _pieces(self) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
        first = 0
        for some in self.negatives.queries():
            pairs, there = some.pairs()
            pairs = np.concatenate([np.stack([some.src, some.dst], axis=1)[:, None], pairs], axis=1)
            there = np.concatenate([np.ones((some.src.size, 1), np.bool_), there], axis=1)
            labels = np.zeros(there.shape, np.bool_)
            labels[:, 0] = True
            numbers = np.broadcast_to(np.arange(first, first + some.src.size)[:, None], there.shape)
            yield pairs[there], labels[there], numbers[there]
            first += some.src.size


def write_tasks(graph: StoredGraph, out: FolderOutput, folder: str, *, is_typed: bool) -> list[dict[str, object]]:
    """Write the sets of all types with a split below ``folder``; return the tasks: one for each label, and side.

    A seed without a label is left out, with a message.
    """
    tasks: dict[tuple[Side, str | None], list[tuple[_Owner, ColumnSchema | None]]] = {}
    for owner in (*_node_owners(graph), *_edge_owners(graph)):
        for label in owner.labels:
            tasks.setdefault((owner.side, None if label is None else label.name), []).append((owner, label))
    kinds = [_kind(side, owners[0][1]) for (side, _), owners in tasks.items()]
    entries = []
    for kind, ((_, label_name), owners) in zip(kinds, tasks.items(), strict=True):
        name = kind if kinds.count(kind) == 1 else f"{kind}_{label_name}"
        entry: dict[str, object] = {"name": name}
        if (num_classes := _num_classes(owners)) is not None:
            entry["num_classes"] = num_classes
        for part, key in enumerate(SETS):
            if found := list(_write_sets(graph, out, f"{folder}/sets/{path_name(name)}", (part, owners), is_typed)):
                entry[key] = found
        entries.append(entry)
    return entries


def _write_sets(
    graph: StoredGraph,
    out: FolderOutput,
    folder: str,
    chosen: tuple[int, list[tuple[_Owner, ColumnSchema | None]]],
    is_typed: bool,
) -> Iterator[dict[str, object]]:
    part, owners = chosen
    for owner, label in owners:
        if label is None and owner.edge_sets and owner.edge_sets[part].size:
            edges = owner.edge_sets[part]
            negatives = Negatives(edges, lambda _, typed: typed)
            if negatives.per_edge:
                data = _QuerySet(negatives, owner.seed_dtype, edges.size).write(out, f"{folder}/{owner.path}-{_SHORT[part]}")
                yield {**({"type": owner.type_name} if is_typed else {}), "data": data}
                continue
        seeds = _Set(owner, label, part)
        size, left_out = seeds.counts()
        if left_out and label is not None:
            text = f"{left_out} {owner.side}s of the {_SHORT[part]} set have no label {label.name!r}: they are left out"
            graph.reporter.message(f"{owner.side} type {owner.type_name!r}: {text}")
        if size:
            data = seeds.write(out, f"{folder}/{owner.path}-{_SHORT[part]}", size)
            yield {**({"type": owner.type_name} if is_typed else {}), "data": data}


def _node_owners(graph: StoredGraph) -> Iterator[_Owner]:
    metadata = graph.metadata
    dtype = fitting_dtype(sum(metadata.num_nodes_per_type))
    for number, name in enumerate(metadata.node_types):
        columns = graph.node_columns(number)
        if any(column.role == "split" for column in columns):
            runs = tuple(Rows.of_nodes(graph, number, part) for part in range(metadata.num_parts))
            seeds = partial(_node_seeds, graph.node_offsets(number))
            yield _Owner("node", dgl_name(name), path_name(name), columns, runs, seeds, dtype)


def _node_seeds(offsets: Ints, part: int, low: int, high: int) -> Ints:
    return np.arange(low, high) + int(offsets[part])


def _edge_owners(graph: StoredGraph) -> Iterator[_Owner]:
    graph = graph.all_edges
    dtype = fitting_dtype(sum(graph.metadata.num_nodes_per_type))
    for edge, edge_type in enumerate(graph.metadata.edge_types):
        columns = graph.edge_columns(edge)
        if any(column.role == "split" for column in columns):
            runs = (Rows.of_edges(graph, edge, "input", 0),)
            src, dst = map(StoredItems, graph.store.input_ends(edge))
            seeds = partial(_edge_seeds, src, dst)
            sets = tuple(edge_sets(graph, edge)) if graph.negatives(edge) else ()
            yield _Owner("edge", dgl_edge_type(edge_type), edge_type_path(edge_type), columns, runs, seeds, dtype, sets)


def _edge_seeds(src: StoredItems, dst: StoredItems, _: int, low: int, high: int) -> Ints:
    return np.stack([src.read(low, high), dst.read(low, high)], axis=1).astype(np.int64)


def _kind(side: Side, label: ColumnSchema | None) -> str:
    if label is None:
        return "node_sets" if side == "node" else "link_prediction"
    return f"{side}_regression" if np.dtype(label.dtype).kind == "f" else f"{side}_classification"


def _num_classes(owners: list[tuple[_Owner, ColumnSchema | None]]) -> int | None:
    """Return the number of classes: of categories, else one more than the highest label; None where labels are no classes."""
    most = -1
    for owner, label in owners:
        if label is None or label.item_shape or np.dtype(label.dtype).kind == "f":
            return None
        if label.categories is not None:
            most = max(most, len(label.categories) - 1)
            continue
        for rows in owner.runs:
            pieces = Feature("", label).tensor(rows).pieces()
            most = max(most, max((int(piece.max()) for piece in pieces), default=-1))
    return most + 1 if most >= 0 else None
