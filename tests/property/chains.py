"""Random stores and random operations of ``transform`` that fit a store: what the tests over chains of commands draw from."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import graphprep
from graphprep.model.errors import GraphprepError
from graphprep.model.schema import edge_type_text

TAG = "tag"  # a text that no other node or edge has
EDGE_TYPES = (("a", "x", "a"), ("a", "w", "a"), ("a", "y", "b"), ("b", "z", "b"))


def some(rng: np.random.Generator, values: np.ndarray, share: float = 0.7) -> pa.Array:
    """Make a column of which some values are missing."""
    found = [value if rng.random() < share else None for value in values.tolist()]
    return pa.array(found, pa.from_numpy_dtype(values.dtype))


def columns(rng: np.random.Generator, size: int) -> dict[str, Any]:
    """Make columns of every kind of table: integers, floats, bools, dates, texts, lists, vectors, some with gaps."""
    made: dict[str, Any] = {
        "k": rng.integers(0, 5, size),
        "gap": some(rng, rng.integers(-9, 9, size)),
        "f": some(rng, np.round(rng.random(size), 2).astype(np.float32)),
        "h": rng.integers(0, 3, size).astype(np.float16),
        "yes": rng.random(size) < 0.5,
        "day": some(rng, rng.integers(10**8, 10**9, size).astype("datetime64[s]")),
        "says": pa.array([["", "one", "two ü", None][i] for i in rng.integers(0, 4, size)]),
        "list": pa.array([[1] * int(n) if n else None for n in rng.integers(0, 4, size)], pa.list_(pa.int32())),
        "vec": pa.array(rng.random((size, 2)).tolist(), pa.list_(pa.float64(), 2)),
    }
    return {name: made[name] for name in made if rng.random() < 0.6}


def write_store(rng: np.random.Generator, folder: Path) -> Path:
    """Make a store of one or two node types, of one to four edge types, of any partitions, layout, order and columns."""
    sizes = {"a": int(rng.integers(1, 14)), "b": int(rng.integers(1, 9))}
    few = rng.random() < 0.35
    types = EDGE_TYPES[:1] if few else EDGE_TYPES
    texts = rng.random() < 0.3
    nodes, edges = {}, {}
    raw = {name: [f"n{i:02}" if texts else i * 3 + 1 for i in rng.permutation(size).tolist()] for name, size in sizes.items()}
    for name in ["a"] if few else ["a", "b"]:
        nodes[name] = folder / f"{name}.parquet"
        table = {"id": raw[name], **columns(rng, sizes[name]), "split": rng.choice(["train", "valid", "test"], sizes[name])}
        pq.write_table(pa.table(table | {TAG: [f"{name} {one}" for one in raw[name]]}), nodes[name])
    weighted = rng.random() < 0.6
    for edge_type in types:
        size = 0 if rng.random() < 0.15 else int(rng.integers(1, 30))
        ends = {side: rng.choice(raw[name], size) for side, name in (("src", edge_type[0]), ("dst", edge_type[2]))}
        ends = {side: pa.array(values.tolist(), pa.string() if texts else pa.int64()) for side, values in ends.items()}
        table = {**ends, **({"weight": some(rng, rng.integers(1, 9, size).astype(float), 0.9)} if weighted else {})}
        edges[edge_type] = folder / f"{edge_type[1]}.parquet"
        table |= columns(rng, size) | {TAG: pa.array([f"{edge_type[1]} {i}" for i in range(size)], pa.string())}
        pq.write_table(pa.table(table), edges[edge_type])
    options = {
        "partitions": int(rng.integers(1, 4)),
        "partition_by": str(rng.choice(["range", "hash", "random"])),
        "layout": str(rng.choice(["csc", "csr", "both"])),
        "neighbor_order": str(rng.choice(["input", "id", "weight"] if weighted else ["input", "id"])),
        "index_dtype": str(rng.choice(["auto", "int64"])),
        "edge_ids": bool(rng.random() < 0.85),
        "decoder_options": {"weight_col": "weight"} if weighted else {},
    }
    graphprep.convert(nodes=nodes, edges=edges, out=folder / "store", **options)
    return folder / "store"


PLAIN = re.compile(r"[\w.-]+")


class Drawer:
    """Draws an operation that fits a store, and writes the files that it reads."""

    def __init__(self, rng: np.random.Generator, folder: Path) -> None:
        self._rng, self._folder, self._count = rng, folder, 0

    def draw(self, store: Path) -> list[str]:
        """Return the words of an operation."""
        graph = graphprep.load(str(store))
        while True:
            name = str(self._rng.choice(list(self.KINDS)))
            words = self.KINDS[name](self, graph)
            if words is not None:
                return [name, *map(str, words)]

    def _file(self, lines: Any) -> str:
        self._count += 1
        path = self._folder / f"list-{self._count}"
        if isinstance(lines, np.ndarray) and self._rng.random() < 0.3:
            np.save(path.with_suffix(".npy"), lines)
            return str(path.with_suffix(".npy"))
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    def _pick(self, values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))] if len(values) else None

    def _of_nodes(self, graph: Any) -> str | None:
        name = self._pick(graph.node_types)
        raw = [one for one in graph.ids(name).tolist() if self._rng.random() < 0.7]
        if not raw or any(not PLAIN.fullmatch(str(one)) for one in (*raw, name)):
            return None
        return f"{name}={self._file(raw)}"

    def _column(self, graph: Any, owner: Any) -> Any:
        found = [
            one for one in graph.columns(owner) if one.kind == "dense" and not one.item_shape and PLAIN.fullmatch(one.name)
        ]
        return self._pick([one for one in found if not one.dtype.startswith("complex")])

    def _masked(self, graph: Any, owners: Any) -> str | None:
        owner = self._pick(owners)
        column = None if owner is None else self._column(graph, owner)
        name = owner if isinstance(owner, str) else owner and edge_type_text(owner)
        if column is None or not all(map(PLAIN.fullmatch, name.split(":"))):
            return None
        return f"{name}:@{column.name}{self._pick(['', '', '=1', '=2'])}"

    def _node_words(self, graph: Any) -> list[str] | None:
        found = [self._of_nodes(graph) if self._rng.random() < 0.6 else self._masked(graph, graph.node_types) for _ in range(2)]
        return [one for one in found if one] or None

    def _edge_words(self, graph: Any) -> list[str] | None:
        edge_type = self._pick(graph.edge_types)
        if self._rng.random() < 0.4 or edge_type is None or not all(map(PLAIN.fullmatch, edge_type)):
            found = self._masked(graph, graph.edge_types)
            return found and [found]
        size = graph.num_edges(edge_type)
        ids = self._rng.permutation(size)[: int(size * 0.7)]
        return [f"{edge_type_text(edge_type)}={self._file(ids)}"]

    def _khop(self, graph: Any) -> list[str] | None:
        found = self._of_nodes(graph)
        return found and [found, self._pick([0, 1, 2])]

    def _filter(self, graph: Any) -> list[str] | None:
        owner = self._pick([*graph.node_types, *graph.edge_types])
        column = self._column(graph, owner)
        name = owner if isinstance(owner, str) else edge_type_text(owner)
        if column is None or ": " in name or not column.name.isidentifier():
            return None
        test = self._pick(["{} > 1", "{} + 1 >= 2", "not {} < 2", "{} != 3", "{} in (0, 2, 4)", "-{} < 0 or {} == 0"])
        return [f"{name}: {test.replace('{}', column.name)}"]

    def _dropped(self, graph: Any) -> list[str] | None:
        names = {column.name for owner in (*graph.node_types, *graph.edge_types) for column in graph.columns(owner)}
        name = self._pick(sorted(name for name in names if name not in (TAG, "parent_id") and PLAIN.fullmatch(name)))
        return name and [name]

    def _relations(self, graph: Any) -> list[str] | None:
        names = sorted({relation for _, relation, _ in graph.edge_types if PLAIN.fullmatch(relation)})
        return [str(one) for one in self._rng.permutation(names)[: int(self._rng.integers(1, 4))]] if names else None

    def _line(self, graph: Any) -> list[str] | None:
        if len(graph.edge_types) != 1 or graph.num_edges() > 60:
            return None
        return self._pick([[], ["no-backtracking"]])

    def _one_of(*words: str) -> Any:
        return lambda self, graph: [one] if (one := self._pick(words)) else []

    KINDS = {  # noqa: RUF012
        "reverse": _one_of(""),
        "transpose": _one_of(""),
        "add-reverse": lambda self, graph: None if len(graph.edge_types) > 5 else [],
        "to-bidirected": _one_of(""),
        "symmetrize": _one_of("", "sum", "max", "keep"),
        "to-simple": _one_of("", "first", "last", "sum", "max", "count"),
        "self-loops": _one_of("drop", "add", "add", "keep"),
        "node-subgraph": _node_words,
        "edge-subgraph": _edge_words,
        "khop-subgraph": _khop,
        "filter": _filter,
        "filter-degree": _one_of("1:", "2:", ":3", "2:5"),
        "largest-component": _one_of(""),
        "to-homogeneous": _one_of(""),
        "flatten": _relations,
        "line-graph": _line,
        "metagraph": lambda self, graph: [] if self._rng.random() < 0.3 else None,
        "layout": _one_of("csc", "csr", "both"),
        "index-dtype": _one_of("auto", "int32", "int64"),
        "sort-neighbors": _one_of("", "id", "weight", "time", "input"),
        "drop-columns": _dropped,
    }


def attempt(store: Path, out: Path, words: list[str], **options: Any) -> str | None:
    """Run operations; return the error, None where there is none."""
    try:
        graphprep.transform(store, out, words, **options)
    except GraphprepError as error:
        return str(error)
    return None
