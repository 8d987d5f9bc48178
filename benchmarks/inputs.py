"""Seeded inputs, made once and kept: ``inputs.py FOLDER NAME…``, where a NAME is a kind and its sizes.

rmat-20            R-MAT, 2^20 nodes, 16 edges a node: edges.txt
rmat-20-weighted   the same with a weight of six decimals
hub-20             the same with 30 % of all destinations turned into one node
names-1000000      so many edges between a fifth as many names of 21 bytes, early ones more often: edges.csv
hetero-1000-5000-json   users and items with 16 features a node, in one of graphprep's formats
chunked-1000-5000       the same, edges as csv, weights as Parquet, features as npy, four files each
stored-1000-5000        the same as a store, and as arrays: the ends of every edge type, and a feature of every node type
graph-20           R-MAT as a store, and beside it half.txt and seeds.txt, half of its nodes and ten of them

``graphprep generate`` makes them, its draws being defined in docs/generate.md. Beside each lies expected.json: the counts and
edge checksums of the store that comes of it, computed here from the arrays with NumPy.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

Ints = NDArray[np.int64]

PLAIN = "_N:_E:_N"
HUB_SHARE = 0.3
NAMES_SHARE = 5  # edges a name
_PIECE = 1 << 22
_LARGEST_COUNTED = 20
_IN_CACHE = 1 << 14  # edges whose numbers NumPy works on in cache
_SEED = 1


def main() -> None:
    """Make what is not there yet."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        make_input(folder / name, name)


def make_input(folder: Path, name: str) -> None:
    """Make one input in a folder of its own; what is whole stays."""
    if (folder / "expected.json").exists():
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kind, *sizes = name.split("-")
    makers = {
        "rmat": _rmat,
        "hub": _hub,
        "names": _names,
        "hetero": _hetero,
        "chunked": _chunked,
        "stored": _stored,
        "graph": _graph,
    }
    expected = makers[kind](folder, *sizes)
    (folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


# ---- one type


def _rmat(folder: Path, scale: str, *columns: str) -> dict[str, object]:
    flags = ["--weights"] if "weighted" in columns else []
    _generate("rmat", folder / "edges.txt", "--scale", scale, *flags)
    expected = _expected_of(_rmat_ends(folder, scale))
    if int(scale) <= _LARGEST_COUNTED:  # some readers drop repeated edges
        keys = np.concatenate([src << int(scale) | dst for src, dst in _rmat_ends(folder, scale)])
        keys.sort()
        expected["distinct_edges"] = int((np.diff(keys) != 0).sum()) + 1
    shutil.rmtree(folder / "ends")
    return expected


def _graph(folder: Path, scale: str) -> dict[str, object]:
    """Make a store, and lists of nodes."""
    _generate("rmat", folder / "edges.txt", "--scale", scale)
    command = [sys.executable, "-m", "graphprep", "convert", str(folder / "edges.txt"), str(folder / "graph"), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    expected = _expected_of(_rmat_ends(folder, scale))
    shutil.rmtree(folder / "ends")
    (folder / "edges.txt").unlink()
    nodes = np.random.default_rng(_SEED).permutation(1 << int(scale))
    for name, count in (("half", nodes.size // 2), ("seeds", 10)):
        np.savetxt(folder / f"{name}.txt", np.sort(nodes[:count]), fmt="%d")
    return expected


def _hub(folder: Path, scale: str) -> dict[str, object]:
    def ends() -> Iterator[tuple[Ints, Ints]]:
        at = 0
        for src, dst in _rmat_ends(folder, scale):
            drawn = _splitmix64(np.arange(at, at + src.size, dtype=np.uint64)) >> np.uint64(11)
            at += src.size
            yield src, np.where(drawn * 2.0**-53 < HUB_SHARE, (1 << int(scale)) // 3, dst)

    with (folder / "edges.txt").open("wb") as file:
        for src, dst in ends():
            _write_csv({"src": pa.array(src), "dst": pa.array(dst)}, file, " ")
    expected = _expected_of(ends())
    shutil.rmtree(folder / "ends")
    return expected


def _rmat_ends(folder: Path, scale: str) -> Iterator[tuple[Ints, Ints]]:
    if not (folder / "ends").exists():
        _generate("rmat", folder / "ends", "--scale", scale, "--format", "npy")
    src, dst = (np.load(folder / "ends" / f"{name}.npy", mmap_mode="r") for name in ("src", "dst"))
    for start in range(0, src.size, _PIECE):
        yield np.array(src[start : start + _PIECE]), np.array(dst[start : start + _PIECE])


def _expected_of(pieces: Iterator[tuple[Ints, Ints]]) -> dict[str, object]:
    num_nodes = num_edges = checksum = 0
    for src, dst in pieces:
        num_nodes = max(num_nodes, int(src.max()) + 1, int(dst.max()) + 1)
        num_edges += src.size
        checksum = (checksum + edge_checksum(src, dst)) % 2**64
    return {"num_nodes": num_nodes, "num_edges": {PLAIN: num_edges}, "checksum": {PLAIN: f"{checksum:016x}"}}


def _names(folder: Path, num_edges: str) -> dict[str, object]:
    """Write names that sort otherwise than they were numbered."""
    count = int(num_edges)
    rng = np.random.default_rng(_SEED)
    hashes = _splitmix64(np.arange(max(2, count // NAMES_SHARE), dtype=np.uint64))
    names = pa.array([f"user-{number:016x}" for number in hashes.tolist()])
    seen = np.zeros(len(names), np.bool_)
    with (folder / "edges.csv").open("wb") as file:
        for start in range(0, count, _PIECE):
            size = min(_PIECE, count - start)
            src, dst = ((rng.random(size) ** 2 * len(names)).astype(np.int64) for _ in range(2))
            seen[src] = seen[dst] = True
            _write_csv({"src": names.take(pa.array(src)), "dst": names.take(pa.array(dst))}, file, ",")
    return {"num_nodes": int(seen.sum()), "num_edges": {PLAIN: count}, "checksum": None}


def _write_csv(columns: dict[str, pa.Array], file: object, delimiter: str) -> None:
    options = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(pa.table(columns), file, options)


# ---- users and items


def _hetero(folder: Path, nodes: str, edges: str, format: str) -> dict[str, object]:
    _generate("hetero", folder / "graph", "--nodes", nodes, "--edges", edges, "--format", format)
    _generate("hetero", folder / "ends", "--nodes", nodes, "--edges", edges, "--format", "chunked")
    expected = _expected_of_chunks(folder / "ends", typed=False)
    shutil.rmtree(folder / "ends")
    return expected


def _chunked(folder: Path, nodes: str, edges: str) -> dict[str, object]:
    _generate("hetero", folder / "graph", "--nodes", nodes, "--edges", edges, "--format", "chunked")
    return _expected_of_chunks(folder / "graph", typed=True)


def _stored(folder: Path, nodes: str, edges: str) -> dict[str, object]:
    expected = _chunked(folder, nodes, edges)
    chunks, arrays = folder / "graph", folder / "arrays"
    chunks.rename(folder / "chunks")
    chunks = folder / "chunks"
    command = [sys.executable, "-m", "graphprep", "convert", str(chunks), str(folder / "graph"), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    arrays.mkdir()
    metadata = json.loads((chunks / "metadata.json").read_text())
    for name in metadata["edge_type"]:
        pieces = [_read_ends(chunks / path) for path in metadata["edges"][name]["data"]]
        for end, parts in zip(("src", "dst"), zip(*pieces, strict=True), strict=True):
            np.save(arrays / f"{name.replace(':', '-')}-{end}.npy", np.concatenate(parts))
    for name in metadata["node_type"]:
        feat = metadata["node_data"][name]["feat"]["data"]
        np.save(arrays / f"{name}-feat.npy", np.concatenate([np.load(chunks / path) for path in feat]))
    sizes = dict(zip(metadata["node_type"], map(sum, metadata["num_nodes_per_chunk"]), strict=True))
    (arrays / "counts.json").write_text(json.dumps({"nodes": sizes, "edges": metadata["edge_type"]}))
    shutil.rmtree(chunks)
    return expected


def _expected_of_chunks(folder: Path, *, typed: bool) -> dict[str, object]:
    """Return counts and checksums by edge type; not ``typed``: raw IDs count on over the types, which are numbers."""
    metadata = json.loads((folder / "metadata.json").read_text())
    counts = [sum(chunks) for chunks in metadata["num_nodes_per_chunk"]]
    num_edges, checksums = {}, {}
    for code, name in enumerate(metadata["edge_type"]):
        key = name if typed else f"0:{code}:{code}"
        pieces = [_read_ends(folder / path) for path in metadata["edges"][name]["data"]]
        shift = 0 if typed else code * counts[0]
        num_edges[key] = sum(src.size for src, _ in pieces)
        checksums[key] = f"{sum(edge_checksum(src, dst + shift) for src, dst in pieces) % 2**64:016x}"
    return {"num_nodes": sum(counts), "num_edges": num_edges, "checksum": checksums}


def _read_ends(path: Path) -> tuple[Ints, Ints]:
    if path.stat().st_size == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    options = pa.csv.ReadOptions(column_names=["src", "dst"])
    table = pa.csv.read_csv(path, options, pa.csv.ParseOptions(delimiter=" "))
    return table["src"].to_numpy(), table["dst"].to_numpy()


# ---- what they share


def _generate(kind: str, out: Path, *flags: str) -> None:
    command = [sys.executable, "-m", "graphprep", "generate", kind, str(out), *flags, "--seed", str(_SEED), "--quiet"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def edge_checksum(src: Ints, dst: Ints) -> int:
    """Return a store's edge checksum: the sum of splitmix64(h(src) xor splitmix64(h(dst))), with h = splitmix64."""
    total = 0
    for start in range(0, src.size, _IN_CACHE):
        one, other = (end[start : start + _IN_CACHE].astype(np.uint64) for end in (src, dst))
        total += int(_splitmix64(_splitmix64(one) ^ _splitmix64(_splitmix64(other))).sum(dtype=np.uint64))
    return total % 2**64


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


if __name__ == "__main__":
    main()
