"""Stores to other stores, and to numbers: transforms, orders, partitioners, splits, statistics, against libraries in memory.

Each of them reads the arrays of the same store, and writes its result. What the operation takes by itself, from graph to graph
in memory, is told besides.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from case import LIMITS, PEERS, Case, CheckError, Input, Peers, Side, graphprep_command

SCRIPT = "graph_operations.py"
# Which libraries have an operation. Of networkit's undirected graphs removeMultiEdges takes more edges than it should.
TRANSFORMS = {
    "transpose": ("arrays", "scipy", "networkit", "igraph", "dgl"),
    "add-reverse": ("scipy", "dgl"),
    "to-simple": ("arrays", "scipy", "networkit", "igraph", "dgl"),
    "to-bidirected": ("scipy", "igraph", "dgl"),
    "node-subgraph": ("scipy", "networkit", "igraph", "dgl"),
    "khop-subgraph": ("scipy", "igraph", "dgl"),
    "largest-component": ("scipy", "networkit", "igraph"),
    "line-graph": ("scipy", "igraph", "dgl"),
}
ORDERS = {
    "degree": ("arrays", "scipy", "igraph", "dgl"),
    "dbg": ("scipy",),
    "bfs": ("scipy", "igraph"),
    "rcm": ("scipy", "dgl"),
    "llp": ("networkit",),
}
PARTITIONERS = {"ldg": (), "fennel": (), "metis": ("pymetis", "dgl")}
STATISTICS = {"edges": ("scipy", "networkit", "igraph"), "triangles": ("scipy", "networkit", "igraph")}
SPLITS = {"edges": ("torch-geometric",), "nodes": ()}
NUM_PARTS = 8
# What is told beside times and memory.
TOLD = {
    "sampled_rate": "M sampled edges/s",
    "alone_s": "alone CPU s",
    "bits": "bits an edge",
    "cut_share": "edges cut",
    "imbalance": "imbalance",
}


def rewrite_case(kind: str, name: str, given: Input, peers: Peers, python: dict[str, str]) -> Case:
    """Return the case of an operation; ``python`` are the interpreters of the libraries."""
    command, have = {
        "transform": (_transform, TRANSFORMS),
        "order": (_order, ORDERS),
        "partitioner": (_partition, PARTITIONERS),
        "split": (_split, SPLITS),
        "stats": (_stats, STATISTICS),
    }[kind]
    check = Checker(kind, given).check
    flags = {"graphprep": (), f"graphprep {LIMITS[1]}": ("--memory-limit", LIMITS[1])}
    if name == "metis":
        del flags[f"graphprep {LIMITS[1]}"]
    sides = [_side(side, given, partial(command, name, given, words), check) for side, words in flags.items()]
    for one in have[name]:
        if one in peers.versions:
            words = partial(_library, python[one], one, f"{kind}-{name}" if kind in ("split", "stats") else name, given)
            sides.append(_side("graphprep, arrays" if one == "arrays" else one, given, words, check))
    missing = {one: peers.missing[one] for one in have[name] if one in peers.missing}
    return Case(f"{kind}-{name}", f"{kind} {name} of a store", tuple(sides), (), missing, 3)


def _side(name: str, given: Input, command: object, check: object) -> Side:
    return Side(name, command, check, given.num_edges, given.num_bytes)


def _arguments(name: str, given: Input) -> tuple[object, ...]:
    beside = given.path.parent
    return {"node-subgraph": (beside / "half.txt",), "khop-subgraph": (beside / "seeds.txt", 2)}.get(name, ())


def _transform(name: str, given: Input, flags: tuple[str, ...], out: Path) -> list[str]:
    return graphprep_command("transform", "-q", *flags, given.path, out, name, *_arguments(name, given))


def _order(name: str, given: Input, flags: tuple[str, ...], out: Path) -> list[str]:
    return graphprep_command("reorder", "-q", *flags, given.path, out, "--by", name)


def _partition(name: str, given: Input, flags: tuple[str, ...], out: Path) -> list[str]:
    return graphprep_command("partition", "-q", *flags, given.path, out, "--by", name, "-p", NUM_PARTS, "--assignment-only")


def _split(name: str, given: Input, flags: tuple[str, ...], out: Path) -> list[str]:
    rule = ("--by", "nodes") if name == "nodes" else ("--by", "random", "--of", "edges")
    return graphprep_command("split", "-q", *flags, given.path, out, "0.8/0.1/0.1", *rule)


def _stats(name: str, given: Input, flags: tuple[str, ...], out: Path) -> list[str]:
    """Return a command whose report goes to a file."""
    flags = (*flags, "--triangles", "exact") if name == "triangles" else flags
    command = graphprep_command("stats", "-q", "--json", *flags, given.path)
    return ["sh", "-c", 'mkdir "$0" && exec "$@" > "$0/stats.json"', str(out), *command]


def _library(python: str, library: str, name: str, given: Input, out: Path) -> list[str]:
    return [python, str(PEERS / SCRIPT), library, name, str(given.path), str(out), *map(str, _arguments(name, given))]


class Checker:
    """Compares what all sides made: nodes, edges and their checksum; returns what is told of orders and assignments."""

    def __init__(self, kind: str, given: Input) -> None:
        self._kind = kind
        self._given = given
        self._first: dict[str, object] = {}

    def check(self, out: Path) -> dict[str, float]:
        """Raise CheckError where a side made something else than the first."""
        command = [sys.executable, str(PEERS / SCRIPT), "check", self._kind, str(out), str(self._given.path)]
        found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        told = {name: found.pop(name) for name in ("bits", "cut_share", "imbalance") if name in found}
        self._first = self._first or found
        for name, value in found.items():
            if value != self._first[name]:
                raise CheckError(f"{out}: expected {name} {self._first[name]}, found {value}")
        return told
