"""What is handed over in memory in place of files, as a graph config: tables by type, NetworkX's graphs, PyG's data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.dataclass import dataclass
from graphprep.model.errors import UsageError, one_of
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.schema import EdgeType, edge_type_text, parse_edge_type
from graphprep.model.words import count
from graphprep.stages.in_memory import (
    ArraySource,
    ArraysSource,
    InMemory,
    RowsTable,
    Source,
    TableSource,
    matrix_source,
    table_source,
)

Owner = str | EdgeType
_INPUTS = "inputs"
_NODE, _EDGE = "_N", ("_N", "_E", "_N")  # the only types of a graph that names none
_MASKS = ("train_mask", "val_mask", "test_mask")
_TABLES = "a path, a DataFrame or an Arrow table"
_READABLE = (
    "paths, a DataFrame, an Arrow table, a scipy.sparse matrix, a dict of them, a networkx graph, or PyG's Data or HeteroData"
)
_NODE_OPTIONS = ("id_col", "weight_col", "id_type")
_EDGE_OPTIONS = ("src_col", "dst_col", "weight_col", "time_col", "time_unit", "id_type")
_TABLE_OPTIONS = ("columns", "drop_columns")


@dataclass(frozen=True)
class MemoryGraph:
    """An input in memory. ``inputs`` are names of sources that are read as files of their kind are; else ``graph`` has them."""

    in_memory: InMemory
    inputs: tuple[str, ...] = ()
    graph: GraphConfig | None = None


def read_memory(inputs: Any, options: Mapping[str, Any], num_nodes: Mapping[str, int]) -> MemoryGraph | None:
    """Return what is in memory; None where ``inputs`` are paths.

    ``options`` are ``decoder_options``, and ``num_nodes`` those of a dict of tables. Raises UsageError for objects that cannot
    be read.
    """
    if _is_of(inputs, "networkx") and hasattr(inputs, "adjacency"):
        _refuse_options(("num_nodes",) if num_nodes else (), "a graph of networkx, which has its nodes")
        return _from_networkx(inputs, options)
    if _is_of(inputs, "torch_geometric") and hasattr(inputs, "edge_stores"):
        given = {"num_nodes": num_nodes, "decoder_options": options}
        _refuse_options([name for name, value in given.items() if value], "data of PyG, which has its nodes and columns")
        return _PygGraph(inputs).read()
    if isinstance(inputs, Mapping):
        keys = {key: _owner(key) for key in inputs}
        nodes, edges = ({key: inputs[key] for key, owner in keys.items() if isinstance(owner, kind)} for kind in (str, tuple))
        return read_tables(nodes, edges, options, num_nodes, _INPUTS)
    if isinstance(inputs, str | bytes) or hasattr(inputs, "__fspath__"):
        return None
    is_list = isinstance(inputs, list | tuple)
    found = [_source(one) for one in (inputs if is_list else [inputs])]
    if not any(found) and is_list:
        return None
    sources = {}
    for at, source in enumerate(found):
        name = f"{_INPUTS}[{at}]" if is_list else _INPUTS
        if source is None:
            raise _unreadable(inputs[at] if is_list else inputs, name)
        sources[name] = source
    return MemoryGraph(InMemory(sources), tuple(sources))


def _source(value: Any) -> Source | None:
    return matrix_source(value) or table_source(value)


def _refuse_options(names: Sequence[str], what: str) -> None:
    if names:
        raise UsageError(f"{names[0]} does not go with {what}", fix=f"leave out {names[0]}")


def _unreadable(value: object, place: str, readable: str = _READABLE) -> UsageError:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return UsageError(f"cannot read {name}", place=place, fix=f"give {readable}")


def _is_of(value: object, package: str) -> bool:
    """Return whether an object's class is of a package, or inherits from one that is, without importing it."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


# ------------------------------------------------------------------------------------------------------------ tables


def read_tables(
    nodes: Mapping[Any, Any],
    edges: Mapping[Any, Any],
    options: Mapping[str, Any],
    num_nodes: Mapping[str, int],
    place: str = "",
) -> MemoryGraph:
    """Return tables by type as a graph: ``nodes`` by name, ``edges`` by triple or ``src:rel:dst``; a list is several tables.

    ``place`` is what holds both, where that is one dict. Raises UsageError.
    """
    node_owners = {_owner(key): (f"{place or 'nodes'}[{key!r}]", value) for key, value in nodes.items()}
    edge_owners = {_owner(key): (f"{place or 'edges'}[{key!r}]", value) for key, value in edges.items()}
    wrong = [one for one in node_owners if isinstance(one, tuple)] + [one for one in edge_owners if isinstance(one, str)]
    if wrong:
        what = "an edge type" if isinstance(wrong[0], tuple) else "a node type"
        other = "edges" if isinstance(wrong[0], tuple) else "nodes"
        raise UsageError(f"{wrong[0]!r} is {what}", fix=f"put it into {other}")
    sources: dict[str, Source] = {}
    files = {owner: _add(sources, *named, owner) for owner, named in {**node_owners, **edge_owners}.items()}
    ends = [end for kind in edge_owners for end in (kind[0], kind[2])]
    names = tuple(dict.fromkeys(str(name) for name in (*node_owners, *ends)))
    types: tuple[Owner, ...] = (*names, *(kind for kind in edge_owners if isinstance(kind, tuple)))
    settings = _Settings(options, types)
    unknown = sorted(set(num_nodes) - set(names))
    if unknown:
        raise UsageError(f"num_nodes: there is no node type {unknown[0]!r}", fix=one_of(names))
    twice = [name for name in num_nodes if name in node_owners]
    if twice:
        raise UsageError(f"num_nodes is for types without a table, not for {twice[0]!r}", fix="leave out one of the two")
    node_tables = [
        NodeTable(
            name,
            settings.table(name, files.get(name, ()), node_owners.get(name, (f"node type {name!r}", None))[0]),
            id_col=settings.of("id_col", name) if name in files else None,
            num_nodes=num_nodes.get(name),
            weight_col=settings.of("weight_col", name, alone=True),
        )
        for name in names
    ]
    edge_tables = [
        EdgeTable(
            *kind,
            settings.table(kind, files[kind], edge_owners[kind][0]),
            src_col=settings.of("src_col", kind),
            dst_col=settings.of("dst_col", kind),
            weight_col=settings.of("weight_col", kind),
            time_col=settings.of("time_col", kind),
            time_unit=settings.of("time_unit", kind),
        )
        for kind in types
        if isinstance(kind, tuple)
    ]
    columns, dropped = settings.everywhere()
    config = GraphConfig(
        tuple(node_tables), tuple(edge_tables), id_type=settings.all("id_type"), columns=columns, dropped=dropped
    )
    return MemoryGraph(InMemory(sources), graph=config)


def _owner(key: object) -> Owner:
    """Return a node type's name, or an edge type: a triple of names, or ``src:rel:dst``. Raises UsageError."""
    if isinstance(key, tuple) and len(key) == 3 and all(isinstance(one, str) and one for one in key):
        return key
    if isinstance(key, str) and key:
        try:
            return parse_edge_type(key) if ":" in key else key
        except ValueError:
            pass
    raise UsageError(f"{key!r} is no type", fix="name a node type 'user', an edge type ('user', 'buys', 'item')")


def _add(sources: dict[str, Source], name: str, value: Any, owner: Owner) -> tuple[str, ...]:
    """Add a table, or several of one type; return their names, of files their paths."""
    several = isinstance(value, list | tuple)
    names = []
    for at, one in enumerate(value if several else [value]):
        own = f"{name}[{at}]" if several else name
        if isinstance(one, str | os.PathLike):
            names.append(os.fspath(one))
            continue
        is_node = isinstance(owner, str)
        source = table_source(one) if is_node else _source(one)
        if source is None:
            raise _unreadable(one, own, _TABLES if is_node else f"{_TABLES}, or a scipy.sparse matrix")
        sources[own] = source
        names.append(own)
    return tuple(names)


class _Settings:
    """``decoder_options`` of tables: a value for all types, or a dict of values by type."""

    def __init__(self, given: Mapping[str, Any], types: Sequence[Owner], without: Sequence[str] = ()) -> None:
        options = dict.fromkeys((*_NODE_OPTIONS, *_EDGE_OPTIONS, *_TABLE_OPTIONS))
        known = [name for name in options if name not in without]
        for name in given:
            if name not in known:
                raise UsageError(f"decoder_options: there is no option {name!r} for what is in memory", fix=one_of(known))
        self._types = types
        self._given = {name: self._by_type(name, given[name]) for name in given if name not in _TABLE_OPTIONS}
        self._columns = list(self._dtypes(given.get("columns", {})))
        dropped = given.get("drop_columns", ())
        self._dropped = [self._owned(name) for name in ([dropped] if isinstance(dropped, str) else dropped)]

    def of(self, option: str, owner: Owner, *, alone: bool = False) -> Any:
        """Return an option's value for a type; ``alone``: what holds for all does not count."""
        values = self._given.get(option, {})
        return values.get(owner, None if alone else values.get(None))

    def all(self, option: str) -> Any:
        """Return what holds for all types."""
        return self._given.get(option, {}).get(None)

    def table(self, owner: Owner, files: tuple[str, ...], place: str) -> TableConfig:
        """Return what is asked of the tables of a type."""
        return TableConfig(
            files,
            columns=tuple((name, dtype) for whose, name, dtype in self._columns if whose == owner),
            dropped=tuple(name for whose, name in self._dropped if whose == owner),
            id_type=self.of("id_type", owner, alone=True),
            place=place,
        )

    def everywhere(self) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return dtypes of columns, and columns to leave out, of every table that has them."""
        columns = tuple((name, dtype) for whose, name, dtype in self._columns if whose is None)
        return columns, tuple(name for whose, name in self._dropped if whose is None)

    def _by_type(self, option: str, value: Any) -> dict[Owner | None, Any]:
        if not isinstance(value, Mapping):
            return {None: value}
        found: dict[Owner | None, Any] = {}
        for key, one in value.items():
            owner = _owner(key)
            if owner not in self._types:
                listed = (edge_type_text(one) if isinstance(one, tuple) else one for one in self._types)
                raise UsageError(f"decoder_options: {option}: no table is of type {key!r}", fix=one_of(listed))
            found[owner] = one
        return found

    def _dtypes(self, given: Any) -> Iterator[tuple[Owner | None, str, str]]:
        """Read ``{NAME: dtype}``, or texts ``NAME=dtype``."""
        if isinstance(given, str):
            given = [given]
        pairs: Iterable[tuple[str, str]] = given.items() if isinstance(given, Mapping) else (_cut(text) for text in given)
        for name, dtype in pairs:
            yield *self._owned(name), dtype

    def _owned(self, text: str) -> tuple[Owner | None, str]:
        """Read ``[TYPE:]NAME``: a type in front counts where there is one of that name."""
        name, _, column = text.rpartition(":")
        owner = _owner(name) if name.count(":") in (0, 2) and name else None
        return (owner, column) if owner in self._types and column else (None, text)


def _cut(text: str) -> tuple[str, str]:
    name, _, dtype = text.rpartition("=")
    if not name or not dtype:
        raise UsageError(f"decoder_options: columns: expected NAME=dtype, found {text!r}", fix="write 'age=float32'")
    return name, dtype


# ---------------------------------------------------------------------------------------------------------- NetworkX


def _from_networkx(graph: Any, options: Mapping[str, Any]) -> MemoryGraph:
    """Return a graph's nodes and edges as two tables, with a column for each attribute; undirected edges in both directions."""
    settings = _Settings(options, (_NODE, _EDGE), without=("id_col", "src_col", "dst_col"))
    node_names = _attributes(data for _, data in graph.nodes(data=True))
    edge_names = _attributes(data for _, _, data in graph.edges(data=True))
    id_col, (src_col, dst_col) = _free(["id"], node_names)[0], _free(["src", "dst"], edge_names)
    is_text = any(isinstance(node, str) for node in graph)
    is_signed = any(isinstance(node, int) and node < 0 for node in graph)
    empty_type = "string" if is_text else "int64"
    nodes = RowsTable([id_col, *map(str, node_names)], partial(_node_rows, graph, node_names), empty_type)
    edges = RowsTable([src_col, dst_col, *map(str, edge_names)], partial(_edge_rows, graph, edge_names), empty_type)
    origin = f"networkx.{type(graph).__name__}"
    node_file, edge_file = f"{_INPUTS}.nodes", f"{_INPUTS}.edges"
    sources: dict[str, Source] = {
        node_file: TableSource(lambda _: nodes, f"{origin}, {count(len(graph), 'node')}"),
        edge_file: TableSource(lambda _: edges, f"{origin}, {count(graph.number_of_edges(), 'edge')}"),
    }
    edge_table = EdgeTable(
        *_EDGE,
        settings.table(_EDGE, (edge_file,), edge_file),
        src_col=src_col,
        dst_col=dst_col,
        weight_col=settings.of("weight_col", _EDGE),
        time_col=settings.of("time_col", _EDGE),
        time_unit=settings.of("time_unit", _EDGE),
    )
    node_table = settings.table(_NODE, (node_file,), node_file)
    weight_col = settings.of("weight_col", _NODE, alone=True)
    columns, dropped = settings.everywhere()
    config = GraphConfig(
        (NodeTable(_NODE, node_table, id_col=id_col, weight_col=weight_col),),
        (edge_table,),
        graph_name=str(graph.name) or None,
        id_type=settings.all("id_type") or ("int" if is_signed else None),
        columns=columns,
        dropped=dropped,
    )
    directions = () if graph.is_directed() else ("the networkx graph has no directions: each edge is there in both",)
    return MemoryGraph(InMemory(sources, directions), graph=config)


def _attributes(rows: Iterable[Mapping[Any, Any]]) -> list[Any]:
    """Return the names of all attributes, in the order in which they occur first."""
    found: dict[Any, None] = {}
    for data in rows:
        for name in data:
            found.setdefault(name)
    return list(found)


def _free(wanted: Sequence[str], taken: Sequence[Any]) -> list[str]:
    """Return names that no attribute has."""
    names = []
    for name in wanted:
        while name in map(str, taken):
            name += "_"  # noqa: PLW2901 - until it is free
        names.append(name)
    return names


def _node_rows(graph: Any, names: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for node, data in graph.nodes(data=True):
        yield node, *(data.get(name) for name in names)


def _edge_rows(graph: Any, names: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for src, neighbors in graph.adjacency():
        for dst, found in neighbors.items():
            for data in found.values() if graph.is_multigraph() else [found]:
                yield src, dst, *(data.get(name) for name in names)


# --------------------------------------------------------------------------------------------------------------- PyG


class _PygGraph:
    """PyG's ``Data`` or ``HeteroData`` on its way: a row of a tensor is a node or an edge, by position."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.is_homo = not any(cls.__name__ == "HeteroData" for cls in type(data).__mro__)
        self.sources: dict[str, Source] = {}
        self.labels: list[str] = []
        self.splits: list[str] = []
        self.lost: list[str] = []
        self.edge_data: list[DataArray] = []

    def read(self) -> MemoryGraph:
        """Return the graph."""
        data = self.data
        if self.is_homo:
            store = data._store
            taken = [name for name in store if name not in ("edge_index", "num_nodes")]
            edge_names = [name for name in taken if _is_edge_attribute(data, name)]
            nodes = [self._nodes(_NODE, _INPUTS, store, [name for name in taken if name not in edge_names], data.num_nodes)]
            edges = [self._edges(_EDGE, _INPUTS, store, edge_names)]
        else:
            nodes = []
            for name in data.node_types:
                store = data[name]
                taken = [one for one in store if one != "num_nodes"]
                nodes.append(self._nodes(name, f"{_INPUTS}[{name!r}]", store, taken, store.num_nodes))
            edges = [
                self._edges(kind, f"{_INPUTS}[{kind!r}]", data[kind], [one for one in data[kind] if one != "edge_index"])
                for kind in data.edge_types
            ]
        config = GraphConfig(
            tuple(nodes), tuple(edges), edge_data=tuple(self.edge_data), labels=tuple(self.labels), splits=tuple(self.splits)
        )
        notes = tuple(f"left out: {one}" for one in self.lost)
        return MemoryGraph(InMemory(self.sources, notes), graph=config)

    def _nodes(self, name: str, place: str, store: Any, names: Sequence[str], num_nodes: int | None) -> NodeTable:
        arrays = self._arrays(place, store, names, num_nodes)
        if num_nodes is None:
            return NodeTable(name, TableConfig(place=place))
        if not arrays:
            return NodeTable(name, TableConfig(place=place), num_nodes=num_nodes)
        if "y" in arrays and arrays["y"].ndim == 1:
            self.labels.append(f"{_in_flag(name)}:y")
        masks = [arrays[mask] for mask in _MASKS if mask in arrays and arrays[mask].ndim == 1]
        if len(masks) == len(_MASKS) and np.sum(masks, axis=0, dtype=np.int8).max(initial=0) <= 1:
            self.splits.append(f"{_in_flag(name)}:{','.join(_MASKS)}")
        self.sources[place] = ArraysSource(arrays, f"{_origin(self.data)}, {count(num_nodes, 'node')}")
        return NodeTable(name, TableConfig((place,), place=place), row_ids=True)

    def _edges(self, kind: EdgeType, place: str, store: Any, names: Sequence[str]) -> EdgeTable:
        if "edge_index" not in store:
            raise UsageError(
                "there is no edge_index", place=place, fix="set edge_index to a tensor [2, number of edges]; adj_t is not read"
            )
        ends = _as_array(store["edge_index"], f"{place}.edge_index")
        if ends.ndim != 2 or ends.shape[0] != 2:
            raise UsageError(f"edge_index has shape {ends.shape}", place=place, fix="give [2, number of edges]")
        file = f"{place}.edge_index"
        self.sources[file] = ArraysSource(
            {"src": ends[0], "dst": ends[1]}, f"{_origin(self.data)}, {count(ends.shape[1], 'edge')}"
        )
        for name, array in self._arrays(place, store, names, ends.shape[1]).items():
            own = name.removeprefix("edge_") or name
            column = own if own not in names else name
            self.sources[f"{place}.{name}"] = ArraySource(array, f"{_origin(self.data)}: {name}")
            self.edge_data.append(DataArray(edge_type_text(kind), column, f"{place}.{name}", place=f"{place}.{name}"))
        return EdgeTable(*kind, TableConfig((file,), place=place))

    def _arrays(self, place: str, store: Any, names: Sequence[str], size: int | None) -> dict[str, NDArray[Any]]:
        """Return the tensors that have a row for each node or edge; note what has not."""
        found = {}
        for name in names:
            value = store[name]
            shape = getattr(value, "shape", None)
            fits = shape is not None and len(shape) > 0 and shape[0] == size and not name.endswith("index")
            if not fits or name == "edge_id":
                self.lost.append(f"{place}.{name}, {_why_lost(name, value)}")
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
        raise UsageError(f"the tensor cannot be read: {words}", place=place, fix="convert it to float32 first") from None


def _origin(data: Any) -> str:
    return f"torch_geometric.data.{type(data).__name__}"


def _in_flag(name: str) -> str:
    """Write a name as labels and splits take it."""
    return name.replace("%", "%25").replace(":", "%3A").replace(",", "%2C").replace("=", "%3D")


__all__ = ["MemoryGraph", "read_memory", "read_tables"]
