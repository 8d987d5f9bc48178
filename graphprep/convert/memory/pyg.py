"""PyG's ``Data`` and ``HeteroData`` as arrays, and the config that reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.memory.folder import ArraySource, ArraysSource, InMemory, Source
from graphprep.convert.memory.tables import EDGE, INPUTS, NODE, MemoryGraph
from graphprep.model.errors import UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.schema import FLAG_ESCAPES, EdgeType, edge_type_text, escape_name
from graphprep.model.shown.texts import count

_MASKS = ("train_mask", "val_mask", "test_mask")


class PygGraph:
    """PyG's ``Data`` or ``HeteroData`` on its way: a row of a tensor is a node or an edge, by position."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.is_homo = not any(cls.__name__ == "HeteroData" for cls in type(data).__mro__)
        self.sources: dict[str, Source] = {}
        self.labels: list[str] = []
        self.splits: list[str] = []
        self.notes: list[str] = []
        self.num_used: dict[str, int] = {}  # by node type: one more than the highest index of an edge
        self.edge_data: list[DataArray] = []

    def read(self) -> MemoryGraph:
        """Return the graph."""
        data = self.data
        if self.is_homo:
            store = data._store
            taken = [name for name in store if name not in ("edge_index", "num_nodes")]
            edge_names = [name for name in taken if _is_edge_attribute(data, name)]
            nodes = [self._nodes(NODE, INPUTS, store, [name for name in taken if name not in edge_names], data.num_nodes)]
            edges = self._edges(EDGE, INPUTS, store, edge_names)
        else:
            nodes = []
            for name in data.node_types:
                store = data[name]
                taken = [one for one in store if one != "num_nodes"]
                nodes.append(self._nodes(name, f"{INPUTS}[{name!r}]", store, taken, store.num_nodes))
            edges = []
            for kind in data.edge_types:
                names = [one for one in data[kind] if one != "edge_index"]
                edges += self._edges(kind, f"{INPUTS}[{kind!r}]", data[kind], names)
            self.notes += [f"left out: {INPUTS}.{name}, which is the graph's own" for name in data._global_store]
        found = [one for one in nodes if one is not None]
        found += self._nodes_of_edges([one.type for one in found])
        config = GraphConfig(
            tuple(found), tuple(edges), edge_data=tuple(self.edge_data), labels=tuple(self.labels), splits=tuple(self.splits)
        )
        return MemoryGraph(InMemory(self.sources, tuple(self.notes)), graph=config)

    def _nodes_of_edges(self, known: Sequence[str | None]) -> list[NodeTable]:
        """Return the node types that only edges name: as many nodes as the indices need."""
        missing = {name: number for name, number in self.num_used.items() if name not in known}
        self.notes += [
            f"num_nodes of {name!r} is not set: taken as {one}, by the highest index" for name, one in missing.items()
        ]
        return [NodeTable(name, TableConfig(), num_nodes=number) for name, number in missing.items()]

    def _nodes(self, name: str, place: str, store: Any, names: Sequence[str], num_nodes: int | None) -> NodeTable | None:
        arrays = self._arrays(place, store, names, num_nodes)
        if num_nodes is None:
            return None
        if not arrays:
            return NodeTable(name, TableConfig(place=place), num_nodes=num_nodes)
        if "y" in arrays:
            self.labels.append(f"{escape_name(name, FLAG_ESCAPES)}:y")
        self._note_split(place, escape_name(name, FLAG_ESCAPES), arrays)
        self.sources[place] = ArraysSource(arrays, f"{_origin(self.data)}, {count(num_nodes, 'node')}")
        return NodeTable(name, TableConfig((place,), place=place), row_ids=True)

    def _note_split(self, place: str, owner: str, arrays: dict[str, NDArray[Any]]) -> None:
        """Make a split of masks of which none overlap, a missing one being empty; others stay columns."""
        masks = {name: arrays[name] for name in _MASKS if name in arrays}
        if "train_mask" not in masks:
            return
        if (
            any(mask.ndim != 1 for mask in masks.values())
            or np.sum([*masks.values()], axis=0, dtype=np.int8).max(initial=0) > 1
        ):
            self.notes.append(
                f"{place}: {', '.join(masks)} overlap or have several columns: they stay columns, and are no split"
            )
            return
        for name in _MASKS:
            arrays.setdefault(name, np.zeros_like(masks["train_mask"]))
        self.splits.append(f"{owner}:{','.join(_MASKS)}")

    def _labelled_pairs(self, kind: EdgeType, place: str, store: Any) -> EdgeTable | None:
        """Return the pairs of ``edge_label_index``, which are no edges, as an edge type of their own with their labels."""
        if "edge_label_index" not in store:
            return None
        ends = _as_array(store["edge_label_index"], f"{place}.edge_label_index")
        if ends.ndim != 2 or ends.shape[0] != 2:
            raise UsageError(f"edge_label_index has shape {ends.shape}", place=place, fix="give [2, number of pairs]")
        pairs = kind[0], f"{kind[1]}_label", kind[2]
        file = f"{place}.edge_label_index"
        of_pairs = f"{_origin(self.data)}, {count(ends.shape[1], 'pair')}"
        self.sources[file] = ArraysSource({"src": ends[0], "dst": ends[1]}, of_pairs)
        if "edge_label" in store and len(store["edge_label"]) == ends.shape[1]:
            own = f"{place}.edge_label"
            self.sources[own] = ArraySource(_as_array(store["edge_label"], own), of_pairs)
            self.edge_data.append(DataArray(edge_type_text(pairs), "label", own, place=own))
            self.labels.append(f"{edge_type_text(pairs)}:label")
        self.notes.append(f"{file}: its pairs, which are no edges, are edge type {edge_type_text(pairs)!r} with their labels")
        return EdgeTable(*pairs, TableConfig((file,), place=file))

    def _edges(self, kind: EdgeType, place: str, store: Any, names: Sequence[str]) -> list[EdgeTable]:
        if "edge_index" not in store:
            raise UsageError(
                "there is no edge_index", place=place, fix="set edge_index to a tensor [2, number of edges]; adj_t is not read"
            )
        ends = _as_array(store["edge_index"], f"{place}.edge_index")
        if ends.ndim != 2 or ends.shape[0] != 2:
            raise UsageError(f"edge_index has shape {ends.shape}", place=place, fix="give [2, number of edges]")
        for name, side in ((kind[0], ends[0]), (kind[2], ends[1])):
            self.num_used[name] = max(self.num_used.get(name, 0), int(side.max(initial=-1)) + 1)
        file = f"{place}.edge_index"
        self.sources[file] = ArraysSource(
            {"src": ends[0], "dst": ends[1]}, f"{_origin(self.data)}, {count(ends.shape[1], 'edge')}"
        )
        pairs = self._labelled_pairs(kind, place, store)
        if pairs is not None:
            names = [name for name in names if name not in ("edge_label", "edge_label_index")]
        arrays = self._arrays(place, store, names, ends.shape[1])
        self._note_split(place, edge_type_text(kind), arrays)
        for name, array in arrays.items():
            own = name.removeprefix("edge_") or name
            column = own if own not in names else name
            self.sources[f"{place}.{name}"] = ArraySource(array, f"{_origin(self.data)}: {name}")
            self.edge_data.append(DataArray(edge_type_text(kind), column, f"{place}.{name}", place=f"{place}.{name}"))
        return [EdgeTable(*kind, TableConfig((file,), place=place)), *filter(None, [pairs])]

    def _arrays(self, place: str, store: Any, names: Sequence[str], size: int | None) -> dict[str, NDArray[Any]]:
        """Return the tensors that have a row for each node or edge; note what has not."""
        found = {}
        for name in names:
            value = store[name]
            shape = getattr(value, "shape", None)
            fits = shape is not None and len(shape) > 0 and shape[0] == size and not name.endswith("index")
            if not fits or name == "edge_id":
                self.notes.append(f"left out: {place}.{name}, {_why_lost(name, value)}")
                continue
            found[name] = _as_array(value, f"{place}.{name}")
        return found


def _is_edge_attribute(data: Any, name: str) -> bool:
    return name.startswith("edge_") or bool(data.is_edge_attr(name))


def _why_lost(name: str, value: Any) -> str:
    if name == "edge_id":
        return "as edges are numbered in the order of edge_index"
    shape = getattr(value, "shape", None)
    what = type(value).__name__ if shape is None else f"of shape {tuple(shape)}"
    return f"{what}: not a row for each node or edge"


def _as_array(value: Any, place: str) -> NDArray[Any]:
    """Return a tensor as an array, without a copy where it is in memory. Raises UsageError for what NumPy has no type for."""
    try:
        return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    except (TypeError, ValueError, RuntimeError) as error:
        words = " ".join(str(error).split())
        fix = "give a dense one of a dtype that NumPy knows, such as tensor.to_dense() or tensor.float()"
        raise UsageError(f"the tensor cannot be read: {words}", place=place, fix=fix) from None


def _origin(data: Any) -> str:
    return f"torch_geometric.data.{type(data).__name__}"
