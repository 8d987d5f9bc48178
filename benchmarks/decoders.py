"""Text of DeepGNN's formats to arrays, in process and per core: ``python benchmarks/decoders.py [--rounds N] [--json FILE]``.

Sides: graphprep's decoders on blocks as a run has them; orjson and a Python loop that appends to arrays (JSON); the decoders of
deepgnn-ge, every line's result consumed. Kernels are compiled and libraries loaded before the first round. Sides take turns;
times are CPU seconds of the thread. What a side decodes is checked against graphprep's arrays before it is timed.
"""

from __future__ import annotations

import argparse
import array
import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import graphprep
from graphprep.decoders.registry import find_decoder, make_decoder
from graphprep.model.protocols import Decoder, Span, TextBlock

_BLOCK_BYTES = 4 << 20  # a run's blocks, where memory allows
_PEER_BYTES = 1 << 20  # what the slower sides read: every MB is like the next
_NODE_FLOATS, _EDGE_FLOATS = 16, 4


@dataclass(frozen=True)
class Case:
    """One file to decode, and the peers that can."""

    name: str
    format: str
    data: bytes
    bars: dict[str, float]  # how many times as fast as a peer is wanted


@dataclass(frozen=True)
class Arrays:
    """What both ends of a comparison must agree on; features are those of slot 0."""

    ids: NDArray[np.uint64]
    src: NDArray[np.uint64]
    dst: NDArray[np.uint64]
    weights: NDArray[np.float32]
    node_features: NDArray[np.float32]
    edge_features: NDArray[np.float32]

    def agrees_with(self, other: Arrays) -> bool:
        """Compare all of them."""
        return all(np.array_equal(mine, theirs) for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True))


def main() -> None:
    """Run all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--nodes", type=int, default=20_000, help="nodes of the inputs; ten edges each")
    parser.add_argument("--json", type=Path, help="file for the results")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graphprep-bench-") as folder:
        results = [_run(case, args.rounds) for case in make_cases(Path(folder), args.nodes)]
    _print(results)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


def make_cases(folder: Path, num_nodes: int) -> list[Case]:
    """Write the inputs: those that ``convert`` is timed on, and some with features on edges, too."""
    for name in ("edgelist", "json", "tsv"):
        graphprep.generate("hetero", str(folder / name), nodes=num_nodes, edges=10 * num_nodes, format=name)
    maps, edges, lines = _rich_texts(num_nodes // 4)
    return [
        Case("json, neighbour maps, 16 floats a node", "json", maps, {"orjson + Python": 10}),  # which deepgnn-ge cannot read
        Case("json, the same and edges of 4 floats", "json", edges, {"orjson + Python": 10, "deepgnn-ge": 25}),
        Case("json, as convert is timed on", "json", (folder / "json").read_bytes(), {"orjson + Python": 10, "deepgnn-ge": 25}),
        Case("edgelist, 16 floats a node, 4 an edge", "edgelist", lines, {"deepgnn-ge": 80}),
        Case("edgelist, as convert is timed on", "edgelist", _mixed((folder / "edgelist").read_bytes()), {"deepgnn-ge": 80}),
        Case("tsv, as convert is timed on", "tsv", (folder / "tsv").read_bytes(), {"deepgnn-ge": 80}),
    ]


def _mixed(text: bytes) -> bytes:
    """Shuffle lines, so that any megabyte is like the whole: sources of many edges come first."""
    lines = text.splitlines(keepends=True)
    return b"".join(lines[i] for i in np.random.default_rng(3).permutation(len(lines)))


def _rich_texts(num_nodes: int) -> tuple[bytes, bytes, bytes]:
    """Write a graph as neighbour maps, as these with edges, and as EdgeList; 1 to 23 neighbours a node."""
    rng = np.random.default_rng(2)
    maps, both, lines = [], [], []
    for node in range(num_nodes):
        dst = np.sort(rng.choice(num_nodes, int(rng.integers(1, 24)), replace=False)).tolist()
        kinds = [dict.fromkeys(dst[kind::3]) for kind in range(3)]
        features = ", ".join(f"{value:.7f}" for value in rng.random(_NODE_FLOATS))
        edges = []
        lines.append(f"{node},-1,{node % 3},1.5,float32,{_NODE_FLOATS},{features.replace(' ', '')}\n")
        for kind, ends in enumerate(kinds):
            for one in ends:
                ends[one] = round(rng.random(), 4)
                floats = ", ".join(f"{value:.7f}" for value in rng.random(_EDGE_FLOATS))
                edge = f'"src_id": {node}, "dst_id": {one}, "edge_type": {kind}, "weight": {ends[one]}'
                edges.append(f'{{{edge}, "float_feature": {{"0": [{floats}]}}}}')
                lines.append(f"{node},{kind},{one},{ends[one]},float32,{_EDGE_FLOATS},{floats.replace(' ', '')}\n")
        neighbors = json.dumps({str(kind): ends for kind, ends in enumerate(kinds) if ends})
        head = f'"node_id": {node}, "node_type": {node % 3}, "node_weight": 1.5, "neighbor": {neighbors}'
        record = f'{{{head}, "float_feature": {{"0": [{features}]}}'
        maps.append(record + "}\n")
        both.append(f'{record}, "edge": [{", ".join(edges)}]}}\n')
    return tuple("".join(some).encode() for some in (maps, both, lines))  # type: ignore[return-value]


# ---- sides: bytes to arrays


def graphprep_arrays(decoder: Decoder, data: bytes) -> Arrays:
    """Decode a block as a run does."""
    rows = decoder.decode(TextBlock(data, Span("input")))
    assert rows.nodes is not None and rows.edges is not None
    weights = [_column(part.columns, role="weight") for part in (rows.nodes, rows.edges)]
    features = [_column(part.columns, slot=0) for part in (rows.nodes, rows.edges)]
    return Arrays(rows.nodes.ids, rows.edges.src, rows.edges.dst, np.concatenate(weights), *features)


def _column(columns: Any, role: str | None = None, slot: int | None = None) -> NDArray[np.float32]:
    found = [one.values for one in columns if (one.key.role, one.key.slot) == (role, slot)]
    return found[0] if found else np.empty(0, np.float32)


def orjson_arrays(data: bytes) -> Arrays:
    """Parse line by line and append to arrays, each object dropped at once."""
    import orjson

    ids, src, dst = (array.array("Q") for _ in range(3))
    weights, edge_weights, features, edge_features = (array.array("f") for _ in range(4))
    for line in data.splitlines():
        record = orjson.loads(line)
        ids.append(record["node_id"])
        weights.append(record["node_weight"])
        features.extend(record["float_feature"]["0"])
        if "edge" in record:
            for edge in record["edge"]:
                src.append(edge["src_id"])
                dst.append(edge["dst_id"])
                edge_weights.append(edge["weight"])
                if "float_feature" in edge:
                    edge_features.extend(edge["float_feature"]["0"])
        else:
            for ends in record["neighbor"].values():
                for end, weight in ends.items():
                    src.append(record["node_id"])
                    dst.append(int(end))
                    edge_weights.append(weight)
    return _to_arrays(ids, src, dst, weights + edge_weights, features, edge_features)


def deepgnn_arrays(decoder: Any, data: bytes) -> Arrays:
    """Decode line by line and append what comes to arrays."""
    ids, src, dst = (array.array("Q") for _ in range(3))
    weights, edge_weights, features, edge_features = (array.array("f") for _ in range(4))
    for line in data.decode().splitlines():
        for source, target, _, weight, _, _, values in decoder.decode(line):
            if target == -1:
                ids.append(source)
                weights.append(weight)
            else:
                src.append(source)
                dst.append(target)
                edge_weights.append(weight)
            for value in values:
                (features if target == -1 else edge_features).frombytes(np.asarray(value, np.float32).tobytes())
    return _to_arrays(ids, src, dst, weights + edge_weights, features, edge_features)


def _to_arrays(ids: Any, src: Any, dst: Any, weights: Any, features: Any, edge_features: Any) -> Arrays:
    whole = [np.frombuffer(one, np.uint64) for one in (ids, src, dst)]
    return Arrays(*whole, *(np.frombuffer(one, np.float32) for one in (weights, features, edge_features)))


def consume(decoder: Any, lines: list[str]) -> None:
    """Decode lines and drop what comes: the decoder's own time."""
    for line in lines:
        for _ in decoder.decode(line):
            pass


def _deepgnn_decoder(name: str) -> Any | None:
    """Load deepgnn-ge's decoder from its file: its package asks for telemetry, which need not be there. None without it."""
    package = importlib.util.find_spec("deepgnn")
    if package is None or not package.submodule_search_locations:
        return None
    path = Path(package.submodule_search_locations[0], "graph_engine", "snark", "decoders.py")
    spec = importlib.util.spec_from_file_location("deepgnn_decoders", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"edgelist": module.EdgeListDecoder, "json": module.JsonDecoder, "tsv": module.TsvDecoder}[name]()


# ---- rounds


def _run(case: Case, rounds: int) -> dict[str, Any]:
    """Check and time a case; MB are millions of bytes."""
    decoder = make_decoder(find_decoder(case.format), {})
    block, part = _cut(case.data, _BLOCK_BYTES), _cut(case.data, _PEER_BYTES)
    ours = graphprep_arrays(decoder, part)
    sides: dict[str, tuple[int, Callable[[], object]]] = {
        "graphprep": (len(block), lambda: decoder.decode(TextBlock(block, Span("input"))))
    }
    peer = _deepgnn_decoder(case.format)
    if peer is not None and (case.format != "json" or "deepgnn-ge" in case.bars):
        _check(case, "deepgnn-ge", ours, deepgnn_arrays(peer, part))
        lines = part.decode().splitlines()
        sides["deepgnn-ge"] = (len(part), lambda: consume(peer, lines))
    if case.format == "json":
        _check(case, "orjson + Python", ours, orjson_arrays(part))
        sides["orjson + Python"] = (len(part), lambda: orjson_arrays(part))
    decoder.decode(TextBlock(block, Span("input")))
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, (size, work) in sides.items():
            begin = time.thread_time()
            work()
            speeds[name].append(size / (time.thread_time() - begin) / 1e6)
    medians = {name: statistics.median(some) for name, some in speeds.items()}
    return {
        "case": case.name,
        "MB/s": {name: round(speed, 2) for name, speed in medians.items()},
        "ratio": {name: round(medians["graphprep"] / speed, 1) for name, speed in medians.items()},
        "bar": {name: bar for name, bar in case.bars.items() if name in medians},
        "rounds": rounds,
    }


def _cut(data: bytes, size: int) -> bytes:
    """Return whole lines, about ``size`` bytes of them."""
    return data if len(data) <= size else data[: data.rfind(b"\n", 0, size) + 1]


def _check(case: Case, side: str, ours: Arrays, theirs: Arrays) -> None:
    if not ours.agrees_with(theirs):
        raise SystemExit(f"{case.name}: {side} and graphprep differ")


def _print(results: list[dict[str, Any]]) -> None:
    print("| input | side | MB/s | graphprep is faster by | to reach |\n| --- | --- | ---: | ---: | ---: |")
    for result in results:
        for name, speed in result["MB/s"].items():
            bar = result["bar"].get(name)
            print(f"| {result['case']} | {name} | {speed:.1f} | {result['ratio'][name]:.1f} | {'' if bar is None else bar} |")


if __name__ == "__main__":
    main()
