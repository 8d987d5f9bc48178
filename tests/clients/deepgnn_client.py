"""DeepGNN's own converter, decoders and engine, in a process of their own: jobs as JSON on stdin, answers as JSON on stdout.

A failed load aborts the process, and its dispatchers leave threads and processes behind. A job is a list: its name (one of
the functions below), then the arguments.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

import numpy as np

_DRAWS = 20_000  # of a few hundred elements: that one is missed is one in 10^30


def convert(
    name, source, out, parts=1, how="range", watermark=None, skip_node_sampler=False, skip_edge_sampler=False, **options
):
    """Convert with MultiWorkersConverter; ``how``: the partition of a line, by the ID with which it begins."""
    from deepgnn.graph_engine.snark.convert import MultiWorkersConverter
    from deepgnn.graph_engine.snark.dispatcher import QueueDispatcher

    Path(out).mkdir(parents=True)
    decoder = _decoder(name, options)
    rules = {"watermark": watermark, "skip_node_sampler": skip_node_sampler, "skip_edge_sampler": skip_edge_sampler}
    if parts > 1:
        dispatcher = QueueDispatcher(out, parts, _Partition(how, parts), decoder, use_threads=False, **rules)
        MultiWorkersConverter(source, out, decoder, partition_count=parts, dispatcher=dispatcher, watermark=watermark).convert()
        return
    debug = not (skip_node_sampler or skip_edge_sampler)  # without it, it waits for ever for a thread that died of a line
    MultiWorkersConverter(source, out, decoder, debug=debug, **rules).convert()


class _Partition:
    """The partition of a line of EdgeList, JSON or TSV."""

    def __init__(self, how, parts):
        self._how, self._parts = how, parts

    def __call__(self, line):
        node = json.loads(line)["node_id"] if line.startswith("{") else int(line.replace("\t", ",").split(",")[0])
        return (node if self._how == "modulo" else _splitmix(node)) % self._parts


def _splitmix(x):
    most = 2**64 - 1
    z = (x + 0x9E3779B97F4A7C15) & most
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & most
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & most
    return z ^ (z >> 31)


def _decoder(name, options):
    from deepgnn.graph_engine.snark import decoders

    return {"edgelist": decoders.EdgeListDecoder, "json": decoders.JsonDecoder, "tsv": decoders.TsvDecoder}[name](**options)


def decode(name, source, **options):
    """Return the records of a file as its decoder yields them, cut at line feeds alone."""
    found = []
    for line in Path(source).read_bytes().decode().split("\n"):
        if line:
            for src, dst, kind, weight, created, removed, features in _decoder(name, options).decode(line):
                found.append([src, dst, kind, repr(np.float32(weight)), created, removed, [_feature(one) for one in features]])
    return found


def _feature(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ["sparse", value[0].tolist(), value[1].dtype.name, value[1].tobytes().hex()]
    return ["dense", value.dtype.name, np.ravel(value).tobytes().hex()]


def ask(folder, parts, nodes, timestamps=None):
    """Return what the engine says of a graph, in an order of its own: of each node type and features, neighbours with theirs."""
    from deepgnn.graph_engine.snark.client import EdgeSampler, MemoryGraph, NodeSampler

    graph = MemoryGraph(folder, list(range(parts)))
    meta = json.loads((Path(folder) / "meta.json").read_text())
    slots, edge_slots = meta["node_feature_count"], meta["edge_feature_count"]
    types = list(range(meta["edge_type_count"]))
    found = {"types": graph.node_types(np.array(nodes), -1).tolist(), "features": [], "neighbors": [], "weights": []}
    for node in nodes:
        found["features"].append([_text(*graph.node_string_features([node], [slot], np.uint8)) for slot in range(slots)])
        ids, weights, kinds, _ = graph.neighbors(
            np.array([node]), types, timestamps=None if timestamps is None else [timestamps]
        )
        edges = []
        for dst, kind, weight in sorted(zip(ids.tolist(), kinds.tolist(), weights.tolist(), strict=True)):
            slot = [_text(*graph.edge_string_features([node], [dst], [kind], [one], np.uint8)) for one in range(edge_slots)]
            edges.append([dst, kind, weight, slot])
        found["neighbors"].append(edges)
    found["counts"] = graph.neighbor_counts(np.array(nodes), types).tolist()
    for what, sampler in (("node", NodeSampler), ("edge", EdgeSampler)):
        if meta[f"{what}_count"]:  # they fail where there is nothing to draw from
            found[f"{what}s drawn"] = _drawn(sampler(graph, -1, "uniform").sample(_DRAWS, 7))
            sampler(graph, -1, "weighted").sample(10, 7)
    return found


def _text(values, sizes):
    return [values.tobytes().hex(), sizes.ravel().tolist()]


def _drawn(columns):
    """Return what a sampler can draw, each once."""
    rows = np.concatenate([np.reshape(column, (_DRAWS, -1)) for column in columns], axis=1)
    return np.unique(rows, axis=0).tolist()


def vose(path):
    """Write their alias table of the weights (float32) in ``path``.npy to ``path``.npz."""
    from deepgnn.graph_engine.snark.alias import Vose

    weights = np.load(f"{path}.npy")
    table = Vose(range(weights.size), weights)
    np.savez(f"{path}.npz", prob=table.prob, alias=np.where(table.prob < 1, table.alias.astype(np.int64), -1))


def versions():
    """Return the versions of what is compared with."""
    from importlib.metadata import version

    return {name: version(name) for name in ("deepgnn-ge", "numpy")}


def main() -> None:
    jobs = {"convert": convert, "decode": decode, "ask": ask, "vose": vose, "versions": versions}
    answers = []
    out = os.dup(1)
    with contextlib.redirect_stdout(sys.stderr):
        os.dup2(2, 1)
        for name, *args in json.load(sys.stdin):
            options = args.pop() if args and isinstance(args[-1], dict) else {}
            answers.append(jobs[name](*args, **options))
    with os.fdopen(out, "w") as file:
        json.dump(answers, file)
        file.flush()
    os._exit(0)  # whatever its threads think


if __name__ == "__main__":
    main()
