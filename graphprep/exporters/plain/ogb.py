"""``ogb``: the edges of each part of a split with their negatives, as the dictionaries of OGB's link prediction.

Source: ogb 1.3.6, ``LinkPropPredDataset.get_edge_split``, of ``ogbl-collab``, ``ogbl-citation2`` and ``ogbl-wikikg2``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.need import has_split
from graphprep.exporters.formats.torch_files import write_pt
from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.edge_sets import EdgeSet, edge_sets
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.negatives import Negatives
from graphprep.exporters.view.torch_graph import concat
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.features import is_number
from graphprep.store.columns.torch_rows import read_values, torch_dtype
from graphprep.store.columns.trainers import Attribute

Array = NDArray[Any]
Form = Literal["collab", "citation2", "wikikg2"]
_PARTS = ("train", "valid", "test")
_ENDS = {"negative_src": "head_neg", "negative_dst": "tail_neg"}
_STEP = 1 << 18


@dataclass(frozen=True)
class OgbExporter:
    """Writes ``split/train``, ``valid`` and ``test``: of all edge types that have a split."""

    name: ClassVar[str] = "ogb"
    loads_in: ClassVar[str] = "torch.load, as OGB's get_edge_split; numpy.load"
    carries: ClassVar[str] = "edges of a split, with their negatives and dense columns; neither the graph nor nodes"
    needs: ClassVar[str] = "edges in the order of edge IDs"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    negatives: ClassVar[str] = "in split/train, valid and test"

    form: Annotated[
        Literal["auto", "collab", "citation2", "wikikg2"],
        "edge and edge_neg; source_node, target_node and target_node_neg; head, relation, tail, head_neg and tail_neg; auto: "
        "wikikg2 for several edge types or other heads, else citation2 where there are negatives, else collab",
    ] = "auto"
    files: Annotated[Literal["pt", "npy"], "of torch, a dictionary of tensors each, or folders of arrays"] = "pt"

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``. Raises UsageError where no edges have a split, or the form is not that of the graph."""
        split = [number for number in range(len(metadata.edge_types)) if has_split(metadata, number)]
        if not split:
            raise UsageError("no edge type has a split", fix="give it one with graphprep split")
        if len(split) > 1 and self.form not in ("auto", "wikikg2"):
            words = f"option form={self.form}: {len(split)} edge types have a split, and it tells of one"
            raise UsageError(words, fix="give form=wikikg2, or leave it out")
        return ExportPlan(StoreNeed(split_edges=True), dtypes="files")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        found = [(edge, edge_sets(graph, edge)) for edge in range(len(graph.metadata.edge_types))]
        for part, name in enumerate(_PARTS):
            sets = [_Set(graph, edge, some[part]) for edge, some in found if some]
            tensors = _Part(sets, name).tensors(self._form(graph, len(sets)))
            if self.files == "pt":
                write_pt(out, f"split/{name}.pt", tensors)
            else:
                for key, tensor in tensors.items():
                    out.write_npy(f"split/{name}/{key}.npy", tensor.dtype, tensor.shape, _whole_rows(tensor))
            graph.reporter.advance(records=sum(one.edges.size for one in sets))
            if missing := sum(one.missing() for one in sets):
                graph.notes.append(f"{name}: {missing:,} negatives are -1: there was no candidate")

    def _form(self, graph: StoredGraph, num_types: int) -> Form:
        if self.form != "auto":
            return self.form
        roles = {column.role for edge in range(len(graph.metadata.edge_types)) for column in graph.negatives(edge)}
        if num_types > 1 or "negative_src" in roles:
            return "wikikg2"
        return "citation2" if roles else "collab"


@dataclass(frozen=True)
class _Set:
    """The edges of one type that are in a part."""

    graph: StoredGraph
    number: int
    edges: EdgeSet

    @cached_property
    def negatives(self) -> Negatives:
        """Return their negatives."""
        return Negatives(self.edges, self.graph.to_ids)

    def ends(self, end: int) -> TensorPieces:
        """Return sources (0) or destinations (1)."""
        return TensorPieces(
            "int64", (self.edges.size,), lambda: ((some.src, some.dst)[end] for some in self.negatives.queries())
        )

    def missing(self) -> int:
        """Count the negatives that are not there."""
        return self.negatives.per_edge * self.edges.size - self.negatives.num_pairs()

    def columns(self) -> dict[str, TensorPieces]:
        """Return what edges have beside their ends."""
        columns = (column for column in self.graph.edge_columns(self.number) if is_number(column) and column.role != "split")
        return {
            column.name: self.edges.values(
                Attribute(column.name, torch_dtype(column), column.item_shape, partial(_read, column))
            )
            for column in columns
        }


def _read(column: Any, rows: Any, low: int, high: int) -> Array:
    return read_values(rows, column, low, high)


@dataclass(frozen=True)
class _Part:
    """The edges of all types that are in a part."""

    sets: list[_Set]
    name: str

    def tensors(self, form: Form) -> dict[str, TensorPieces]:
        """Return what its dictionary holds. Raises UsageError where edge types have not as many negatives."""
        own = {"collab": self._pairs, "citation2": self._queries, "wikikg2": self._triples}[form]()
        columns = self.sets[0].columns() if len(self.sets) == 1 else {}
        for name in columns:
            if name in own:
                fix = "leave the column out with --drop-column, or give another form"
                raise UsageError(f"a column is called {name!r}, as what OGB's dictionary of this form has", fix=fix)
        return {**own, **columns}

    def _pairs(self) -> dict[str, TensorPieces]:
        one = self.sets[0]
        found = {"edge": TensorPieces("int64", (one.edges.size, 2), lambda: _edges(one.negatives))}
        if one.negatives.per_edge:
            shape = (one.negatives.num_pairs(), 2)
            found["edge_neg"] = TensorPieces("int64", shape, lambda: (pairs for pairs, _ in one.negatives.pairs()))
        return found

    def _queries(self) -> dict[str, TensorPieces]:
        one = self.sets[0]
        found = {"source_node": one.ends(0), "target_node": one.ends(1)}
        names = {"negative_src": "source_node_neg", "negative_dst": "target_node_neg"}
        return found | {names[role]: one.negatives.matrix(role) for role, count in one.negatives.counts.items() if count}

    def _triples(self) -> dict[str, TensorPieces]:
        numbers = [TensorPieces("int64", (one.edges.size,), partial(_numbers, one.number, one.edges.size)) for one in self.sets]
        found = {
            "head": concat([one.ends(0) for one in self.sets]),
            "relation": concat(numbers),
            "tail": concat([one.ends(1) for one in self.sets]),
        }
        for role, name in _ENDS.items():
            counts = {one.negatives.counts.get(role, 0) for one in self.sets if one.edges.size}
            if len(counts) > 1:
                words = f"edge types have {' and '.join(map(str, sorted(counts)))} negatives of an edge of the part {self.name}"
                raise UsageError(words, fix="export a store of one of them, or draw as many for all with graphprep split")
            if counts - {0}:
                found[name] = concat([one.negatives.matrix(role) for one in self.sets if one.edges.size])
        return found


def _edges(negatives: Negatives) -> Iterator[Array]:
    return (np.stack([some.src, some.dst], axis=1) for some in negatives.queries())


def _numbers(number: int, size: int) -> Iterator[Array]:
    return (np.full(min(_STEP, size - start), number, np.int64) for start in range(0, size, _STEP))


def _whole_rows(tensor: TensorPieces) -> Iterator[Array]:
    return (piece.astype(tensor.dtype, copy=False).reshape(-1, *tensor.shape[1:]) for piece in tensor.pieces())
