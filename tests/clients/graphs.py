"""Small graphs for the tests of exporters: what they hold as arrays, and the stores that ``graphprep.convert`` makes of them.

``from clients.graphs import GRAPHS, make_store``: ``GRAPHS`` maps names to functions that return a ``Graph``. Tests that only
read a store take that of ``shared_store``.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

EdgeType = tuple[str, str, str]


@dataclass(frozen=True)
class Nodes:
    """A node type: raw IDs (ints or texts, any order), the columns of each, and which of them are what."""

    ids: list[Any]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    label: str | None = None
    split: str | None = None
    seeds: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class Edges:
    """An edge type, in the order of edge IDs: raw ends, and columns; ``weight`` and ``time`` name two of them."""

    src: list[Any]
    dst: list[Any]
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    weight: str | None = None
    time: str | None = None


@dataclass(frozen=True)
class Graph:
    """A graph, and the options of ``convert`` that belong to it."""

    nodes: Mapping[str, Nodes]
    edges: Mapping[EdgeType, Edges]
    options: Mapping[str, Any] = field(default_factory=dict)


def homogeneous(num_nodes: int = 40, num_edges: int = 200, **options: Any) -> Graph:
    """One node type and one edge type, raw IDs 0..n-1 out of order; all kinds of columns that trainers know."""
    rng = np.random.default_rng(1)
    ids = rng.permutation(num_nodes)
    return Graph(
        {"paper": Nodes(ids.tolist(), _node_columns(rng, num_nodes, 4), "y", "part", ids[: num_nodes // 4].tolist())},
        {("paper", "cites", "paper"): _random_edges(rng, ids, ids, num_edges)},
        options,
    )


def heterogeneous(**options: Any) -> Graph:
    """Three node types of other widths and dtypes, four edge types; some have no columns, one type points at itself."""
    rng = np.random.default_rng(2)
    users, items, tags = rng.permutation(30), rng.permutation(20), np.arange(7)
    plain = _random_edges(rng, items, tags, 33)
    return Graph(
        {
            "user": Nodes(users.tolist(), _node_columns(rng, 30, 5), "y", "part"),
            "item": Nodes(items.tolist(), {"feat": rng.normal(size=(20, 8)).astype(np.float16)}),
            "tag": Nodes(tags.tolist()),
        },
        {
            ("user", "buys", "item"): _random_edges(rng, users, items, 120),
            ("item", "has", "tag"): Edges(plain.src, plain.dst),
            ("user", "knows", "user"): Edges(
                *_ends(rng, users, users, 50), {"feat": rng.integers(0, 9, (50, 2)).astype(np.float32)}
            ),
            ("tag", "rev_has", "item"): Edges(plain.dst, plain.src),
        },
        options,
    )


def multi_edge(**options: Any) -> Graph:
    """Four nodes with many parallel edges and loops: only edge IDs tell them apart."""
    rng = np.random.default_rng(3)
    ids = np.arange(4)
    return Graph(
        {"_N": Nodes(ids.tolist(), _node_columns(rng, 4, 2), "y", "part")},
        {("_N", "_E", "_N"): _random_edges(rng, ids, ids, 60)},
        options,
    )


def empty_type(**options: Any) -> Graph:
    """A node type without nodes and an edge type without edges beside ones that have some."""
    rng = np.random.default_rng(4)
    ids = rng.permutation(12)
    return Graph(
        {
            "a": Nodes(ids.tolist(), _node_columns(rng, 12, 3), "y", "part"),
            "none": Nodes([], _node_columns(rng, 0, 3)),
        },
        {
            ("a", "to", "a"): _random_edges(rng, ids, ids, 30),
            ("a", "nowhere", "none"): Edges([], [], {"weight": np.zeros(0, np.float32)}, "weight"),
            ("a", "never", "a"): Edges([], []),
        },
        options,
    )


def no_edges(**options: Any) -> Graph:
    """Nodes alone."""
    rng = np.random.default_rng(5)
    return Graph(
        {"a": Nodes(list(range(6)), _node_columns(rng, 6, 2), "y", "part")}, {("a", "to", "a"): Edges([], [])}, options
    )


def few_nodes(**options: Any) -> Graph:
    """Three nodes, for more partitions than nodes: most partitions are empty."""
    return homogeneous(3, 9, **{"partitions": 5, **options})


def empty_partition(**options: Any) -> Graph:
    """Even raw IDs, two partitions by modulo: the second is empty."""
    rng = np.random.default_rng(6)
    ids = rng.permutation(15) * 2
    return Graph(
        {"n": Nodes(ids.tolist(), _node_columns(rng, 15, 3), "y", "part")},
        {("n", "to", "n"): _random_edges(rng, ids, ids, 40)},
        {"partitions": 2, "partition_by": "modulo", **options},
    )


def sparse_ids(**options: Any) -> Graph:
    """Raw IDs far apart, negative and large, in two types."""
    rng = np.random.default_rng(7)
    left, right = (np.unique(rng.integers(low, 2**60, 25)) for low in (-(2**60), 0))
    return Graph(
        {"left": Nodes(left.tolist(), _node_columns(rng, left.size, 2), "y", "part"), "right": Nodes(right.tolist())},
        {("left", "to", "right"): _random_edges(rng, left, right, 70)},
        options,
    )


def string_ids(**options: Any) -> Graph:
    """Names as raw IDs, some not ASCII."""
    rng = np.random.default_rng(8)
    users = np.array([f"user-{k * k}" for k in range(18)] + ["Zoë", "名前"], dtype=object)
    shops = np.array(["a/b", "c:d", "e", "f g"], dtype=object)
    return Graph(
        {"user": Nodes(users.tolist(), _node_columns(rng, 20, 3), "y", "part"), "shop": Nodes(shops.tolist())},
        {
            ("user", "visits", "shop"): _random_edges(rng, users, shops, 60),
            ("user", "knows", "user"): _random_edges(rng, users, users, 45),
        },
        options,
    )


def temporal(**options: Any) -> Graph:
    """Edges with times, neighbours oldest first; many times are the same."""
    rng = np.random.default_rng(9)
    ids = rng.permutation(25)
    edges = _random_edges(rng, ids, ids, 150)
    columns = {**edges.columns, "time": rng.integers(0, 40, 150)}
    return Graph(
        {"n": Nodes(ids.tolist(), _node_columns(rng, 25, 3), "y", "part")},
        {("n", "to", "n"): Edges(edges.src, edges.dst, columns, "weight", "time")},
        {"neighbor_order": "time", **options},
    )


GRAPHS: dict[str, Callable[..., Graph]] = {
    "homogeneous": homogeneous,
    "heterogeneous": heterogeneous,
    "multi_edge": multi_edge,
    "empty_type": empty_type,
    "no_edges": no_edges,
    "few_nodes": few_nodes,
    "empty_partition": empty_partition,
    "sparse_ids": sparse_ids,
    "string_ids": string_ids,
    "temporal": temporal,
}


def make_store(graph: Graph, folder: Path, **options: Any) -> Path:
    """Write a graph as Parquet tables below ``folder``, convert them to a store there, and return its path."""
    import graphprep
    from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

    tables = folder / "tables"
    tables.mkdir(parents=True)

    def table(name: str, columns: Mapping[str, Any]) -> TableConfig:
        path = tables / f"{len(list(tables.iterdir()))}.parquet"
        _write_parquet(path, columns)
        return TableConfig((str(path),), place=name)

    nodes, edges, labels, splits, seeds = [], [], [], [], []
    for name, some in graph.nodes.items():
        nodes.append(NodeTable(name, table(name, {"id": _raw(some.ids), **some.columns})))
        labels += [f"{name}:{some.label}"] if some.label else []
        splits += [f"{name}:{some.split}"] if some.split else []
        if some.seeds:
            (tables / f"{name}.seeds").write_text("".join(f"{one}\n" for one in some.seeds))
            seeds.append(f"{name}={tables / f'{name}.seeds'}")
    for edge_type, rows in graph.edges.items():
        columns = {"src": _raw(rows.src), "dst": _raw(rows.dst), **rows.columns}
        edges.append(
            EdgeTable(*edge_type, table=table(":".join(edge_type), columns), weight_col=rows.weight, time_col=rows.time)
        )
    kinds = {type(one) for some in graph.nodes.values() for one in some.ids}
    config = GraphConfig(
        tuple(nodes), tuple(edges), id_type="string" if kinds == {str} else "int", labels=tuple(labels), splits=tuple(splits),
        seeds=tuple(seeds),
    )  # fmt: skip
    store = folder / "store"
    graphprep.convert([], str(store), graph=config, **{**graph.options, **options})
    return store


@functools.cache
def _shared_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="graphprep-test-stores-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def shared_store(name: str, **options: Any) -> tuple[Graph, Path]:
    """Return a graph of ``GRAPHS`` and its store, which is made once a process: it is only to be read.

    ``options`` of ``convert`` give way to those of the graph.
    """
    graph = GRAPHS[name]()
    folder = _shared_folder() / "-".join([name, *map(str, options.values())])
    shutil.rmtree(folder, ignore_errors=True)  # what a run that failed left
    return graph, make_store(graph, folder, **{**options, **graph.options})


def _node_columns(rng: np.random.Generator, size: int, width: int) -> dict[str, np.ndarray]:
    """Make a feature of some width, a feature of one number, a label 0..3, and a split in which some nodes have no part."""
    return {
        "feat": rng.normal(size=(size, width)).astype(np.float32),
        "age": rng.integers(0, 90, size).astype(np.float32),
        "y": rng.integers(0, 4, size),
        "part": np.ma.masked_equal(rng.integers(0, 4, size), 3),
    }


def _random_edges(rng: np.random.Generator, sources: np.ndarray, destinations: np.ndarray, size: int) -> Edges:
    src, dst = _ends(rng, sources, destinations, size)
    columns = {"weight": rng.random(size).astype(np.float32), "feat": rng.normal(size=(size, 3)).astype(np.float32)}
    return Edges(src, dst, columns, "weight")


def _ends(rng: np.random.Generator, sources: np.ndarray, destinations: np.ndarray, size: int) -> tuple[list[Any], list[Any]]:
    return rng.choice(sources, size).tolist(), rng.choice(destinations, size).tolist()


def _raw(ids: list[Any]) -> np.ndarray:
    return np.array(ids, dtype=object if ids and isinstance(ids[0], str) else np.int64)


def _write_parquet(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def array(values: np.ndarray) -> pa.Array:
        if values.ndim == 2:
            return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.filled(0), mask=np.ma.getmaskarray(values))
        return pa.array(values, pa.string() if values.dtype == object else None)

    pq.write_table(pa.table({name: array(values) for name, values in columns.items()}), path)
