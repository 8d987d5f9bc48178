"""Random graphs as DeepGNN's three text formats, sorted by node, edge type and destination, as its documentation asks."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
TSV_CODES = {"float16": "f16", "float32": "f", "float64": "d"} | {
    name: name.replace("uint", "u").replace("int", "i") for name in INTS
}
_JSON_GROUPS = {"float32": "float", "float64": "double"}


@dataclass
class Edge:
    dst: int
    type: int
    weight: float
    features: list[Any]
    times: tuple[int, int] = (0, -1)


@dataclass
class Node:
    """``is_missing``: no line declares it, only its edges are written. A feature is None, a text, or (dtype, values[, coordinates])."""

    id: int
    type: int
    weight: float
    features: list[Any]
    edges: list[Edge] = field(default_factory=list)
    is_missing: bool = False


def random_graph(
    seed: int, kinds: str, *, nodes: int = 30, missing: bool = False, dated: bool = False, dyadic: bool = True
) -> list[Node]:
    """Return nodes by ID. ``kinds``: of features, letters of dense, sparse, text, matrix (N-D) and history (temporal)."""
    rng = random.Random(f"{seed} {kinds}")
    ids = sorted(rng.sample([*range(50), 10**6, 2**40, 2**62, *(range(100, 200))], nodes))
    num_types, num_edge_types = rng.choice([(1, 1), (2, 3), (3, 2), (4, 1)])
    weight = (
        (lambda: rng.randint(0, 40) / 8)
        if dyadic
        else (lambda: float(np.float32(rng.random())) if rng.random() < 0.5 else rng.random())
    )
    node_slots = {kind: _slots(rng, kinds) for kind in range(num_types)}
    edge_slots = {kind: _slots(rng, kinds) for kind in range(num_edge_types)}
    graph = []
    for one in ids:
        kind = rng.choice([0, 0, *range(num_types)]) * (3 if seed % 4 == 3 else 1)
        node = Node(one, kind, weight(), _features(rng, node_slots[kind // (3 if seed % 4 == 3 else 1)]))
        node.is_missing = missing and rng.random() < 0.2
        if node.is_missing:
            node.type, node.weight, node.features = 0, 0, []
        for _ in range(rng.choice([0, 0, 1, 3, 20])):
            edge_type = rng.randrange(num_edge_types)
            created = rng.randint(0, 50)
            times = (created, rng.choice([-1, created + rng.randint(1, 50)])) if dated else (0, -1)
            node.edges.append(Edge(rng.choice(ids), edge_type, weight(), _features(rng, edge_slots[edge_type]), times))
        node.edges.sort(
            key=lambda edge: (edge.type, edge.dst) if not dated else (edge.type, edge.times[0], edge.times[1] % 2**64, edge.dst)
        )
        graph.append(node)
    return graph


def _slots(rng: random.Random, kinds: str) -> list[tuple[str, str]]:
    return [(rng.choice(kinds), rng.choice(INTS + FLOATS)) for _ in range(rng.randint(0, 4))] if kinds else []


def _features(rng: random.Random, slots: list[tuple[str, str]]) -> list[Any]:
    made = [None if rng.random() < 0.25 else _feature(rng, kind, dtype) for kind, dtype in slots]
    while made and made[-1] is None:
        made.pop()
    return made


def _feature(rng: random.Random, kind: str, dtype: str) -> Any:
    if kind == "t":
        return "".join(rng.choice("abc é名/-") for _ in range(rng.randint(1, 9)))
    if kind == "s":
        size, width = rng.randint(1, 4), rng.choice([0, 1, 3])
        coordinates = [
            [rng.randint(-9, 99) for _ in range(width)] if width else rng.randint(-(2**62), 2**62) for _ in range(size)
        ]
        return dtype, _values(rng, dtype, size), coordinates
    if kind == "m":
        return dtype, np.array(_values(rng, dtype, 6), dtype).reshape(2, 3).tolist()
    if kind == "h":
        starts = sorted(rng.sample(range(60), rng.randint(1, 3)))
        return dtype, [{"values": _values(rng, dtype, rng.randint(1, 3)), "created_at": start} for start in starts]
    return dtype, _values(rng, dtype, rng.choice([3, 3, 1]))


def _values(rng: random.Random, dtype: str, size: int) -> list[Any]:
    if dtype in INTS:
        bounds = np.iinfo(dtype)
        return [rng.choice([rng.randint(0, 9), int(bounds.min), int(bounds.max), 7]) for _ in range(size)]
    special = [0.0, -0.0, 1e-7, 6.5e4, 0.1, float("inf"), -float("inf"), float("nan")]
    return [float(np.array(rng.choice([rng.uniform(-9, 9), *special]), dtype)) for _ in range(size)]


# ---------------------------------------------------------------------------------------------------- lines


def edgelist(graph: list[Node], *, dated: bool = False) -> str:
    lines = []
    for node in graph:
        if not node.is_missing:
            lines.append([node.id, -1, node.type, node.weight, *((0, -1) if dated else ()), *_columns(node.features)])
        lines += [
            [node.id, edge.type, edge.dst, edge.weight, *(edge.times if dated else ()), *_columns(edge.features)]
            for edge in node.edges
        ]
    return "".join(",".join(map(str, line)) + "\n" for line in lines)


def _columns(features: list[Any]) -> list[Any]:
    found: list[Any] = []
    for one in features:
        if one is None:
            found += ["float32", 0]
        elif isinstance(one, str):
            found += ["binary", 1, one]
        elif len(one) == 3:
            dtype, values, coordinates = one
            width = len(coordinates[0]) if isinstance(coordinates[0], list) else 0
            found += [dtype, f"{len(values)}/{width}", *np.ravel(coordinates).tolist(), *values]
        else:
            found += [one[0], len(one[1]), *one[1]]
    return found


def json_lines(graph: list[Node], *, dated: bool = False) -> str:
    lines = []
    for node in graph:
        assert not node.is_missing, "a line of JSON declares its node"
        edges = [
            {"src_id": node.id, "dst_id": edge.dst, "edge_type": edge.type, "weight": edge.weight, **_groups(edge.features)}
            | ({"created_at": edge.times[0], "removed_at": edge.times[1]} if dated else {})
            for edge in node.edges
        ]
        one = {"node_id": node.id, "node_type": node.type, "node_weight": node.weight, **_groups(node.features), "edge": edges}
        lines.append(json.dumps(one, ensure_ascii=False))
    return "".join(line + "\n" for line in lines)


def _groups(features: list[Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for slot, one in enumerate(features):
        if isinstance(one, str):
            found.setdefault("binary_feature", {})[str(slot)] = one
        elif one is not None:
            name = _JSON_GROUPS.get(one[0], one[0])
            if len(one) == 3:
                found.setdefault(f"sparse_{name}_feature", {})[str(slot)] = {"coordinates": one[2], "values": one[1]}
            else:
                found.setdefault(f"{name}_feature", {})[str(slot)] = one[1]
    return found


def tsv(graph: list[Node]) -> str:
    lines = []
    for node in graph:
        assert not node.is_missing, "a line of TSV declares its node"
        edges = "|".join(f"{edge.dst},{edge.type},{edge.weight},{_entries(edge.features)}" for edge in node.edges)
        lines.append(f"{node.id}\t{node.type}\t{node.weight}\t{_entries(node.features)}\t{edges}\n")
    return "".join(lines)


def _entries(features: list[Any]) -> str:
    found = []
    for one in features:
        if one is None:
            found.append("")
        elif isinstance(one, str):
            found.append(f"b:{one}")
        else:
            found.append(f"{TSV_CODES[one[0]]}:{' '.join(map(str, one[1]))}")
    return ";".join(found)
