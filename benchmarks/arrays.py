"""Graphs in memory, in process: ``python benchmarks/arrays.py [--scale N] [--rounds N] [--rows NAME…]``; see README.md.

Each row is a process of its own with libraries and kernels loaded, in which graphprep and its peers take turns on the same
arrays or text, on two threads where they have threads. What they return is checked in the first round.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / ".benchmarks" / "arrays"
THREADS = 2
THREADED = ("pyarrow", "polars", "duckdb")  # all others work on one thread
NEEDS = {"scipy": "scipy", "pandas.factorize": "pandas", "duckdb": "duckdb", "polars": "polars"}  # what a side imports
_RANKED, _DISTINCT = 33_500_000, 1_000_000  # at scale 22; fewer below
_MIB = 1 << 20


@dataclass
class Row:
    """What is compared: sides by name, graphprep first, those that are installed.

    ``check`` gets all results; ``most_extra``: arrays of 4 bytes an edge.
    """

    what: str
    count: int
    sides: dict[str, Callable[[], Any]]
    check: Callable[[dict[str, Any]], None] = lambda results: None
    at_least: dict[str, float] = field(default_factory=dict)  # ratio to a side; "M/s": millions a second
    most_extra: float | None = None
    once: tuple[str, ...] = ()  # sides that are too slow for every round

    def __post_init__(self) -> None:
        self.sides = {name: side for name, side in self.sides.items() if is_there(name)}


def is_there(side: str) -> bool:
    """Return whether what a side needs is installed."""
    return importlib.util.find_spec(NEEDS.get(side, "numpy")) is not None


def ends(folder: Path, scale: int) -> tuple[Any, Any]:
    """Load both ends of R-MAT edges as int32: what SciPy works on."""
    return tuple(np.load(folder / f"r{scale}_{name}.npy").astype(np.int32) for name in ("src", "dst"))


def equal(results: dict[str, Any]) -> None:
    """Check that all sides return the same arrays."""
    first, *others = results.values()
    for other in others:
        for ours, theirs in zip(first, other, strict=True):
            assert np.array_equal(ours, theirs)


def csr(folder: Path, scale: int, *, ids: bool, ascending: bool) -> Row:
    """COO to CSR: SciPy's coo_tocsr, with edge IDs as its data, and its csr_sort_indices."""

    import graphprep

    src, dst = ends(folder, scale)
    num_nodes, count = 1 << scale, src.size
    data = np.arange(count, dtype=np.int32) if ids else np.zeros(count, np.int8)

    def ours() -> Any:
        built = graphprep.build_adjacency(src, dst, num_nodes, "csr", edge_ids=ids, sort_neighbors=ascending, threads=THREADS)
        return (built.indptr, built.indices, built.edge_ids) if ids else (built.indptr, built.indices)

    def theirs() -> Any:
        from scipy.sparse import _sparsetools as tools

        indptr, indices = np.empty(num_nodes + 1, np.int32), np.empty(count, np.int32)
        values = np.empty_like(data)
        tools.coo_tocsr(num_nodes, num_nodes, count, src, dst, data, indptr, indices, values)
        if ascending:
            tools.csr_sort_indices(num_nodes, indptr, indices, values)
        return (indptr, indices, values) if ids else (indptr, indices)

    def check(results: dict[str, Any]) -> None:
        found, expected = results["graphprep"], results.get("scipy", results["graphprep"])
        assert np.array_equal(found[0], expected[0])
        assert np.array_equal(found[1], expected[1])
        if ids and not ascending:  # SciPy's sort of a row is not stable
            assert np.array_equal(found[2], expected[2])
        if ids:
            assert np.array_equal(dst[found[2]], found[1])

    what = "COO to CSR" + ", edge IDs" * ids + ", rows sorted" * ascending
    return Row(what, count, {"graphprep": ours, "scipy": theirs}, check, {"scipy": 3 if ids else 4}, 3.2 if ids else 2.2)


def csc(folder: Path, scale: int) -> Row:
    """CSR to CSC with edge IDs: SciPy's csr_tocsc with positions as data."""

    import graphprep

    adjacency = graphprep.build_adjacency(*ends(folder, scale), 1 << scale, "csr", edge_ids=False, threads=THREADS)
    num_nodes, count = adjacency.num_rows, adjacency.num_edges
    narrow = adjacency.indptr.astype(np.int32)
    data = np.arange(count, dtype=np.int32)

    def ours() -> Any:
        built = graphprep.transpose(adjacency, edge_ids="rows", threads=THREADS)
        return built.indptr, built.indices, built.edge_ids

    def theirs() -> Any:
        from scipy.sparse import _sparsetools as tools

        out = np.empty(num_nodes + 1, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
        tools.csr_tocsc(num_nodes, num_nodes, narrow, adjacency.indices, data, *out)
        return out

    return Row("CSR to CSC, edge IDs, columns sorted", count, {"graphprep": ours, "scipy": theirs}, equal, {"scipy": 5}, 3.2)


def degrees(folder: Path, scale: int) -> Row:
    """Degrees of both ends: two calls of np.bincount."""
    import graphprep

    src, dst = ends(folder, scale)
    sides = {
        "graphprep": lambda: graphprep.degrees(src, dst, 1 << scale, threads=THREADS),
        "np.bincount": lambda: tuple(np.bincount(end, minlength=1 << scale) for end in (src, dst)),
    }
    return Row("degrees of both ends", src.size, sides, equal, {"np.bincount": 2})


def reorder(folder: Path, scale: int, *, ascending: bool) -> Row:
    """Relabel by descending degree, and rebuild: no peer does it in one."""
    import graphprep

    src, dst = ends(folder, scale)
    adjacency = graphprep.build_adjacency(src, dst, 1 << scale, "csr", edge_ids=False, threads=THREADS)
    degree = np.bincount(src, minlength=1 << scale) + np.bincount(dst, minlength=1 << scale)

    def ours() -> Any:
        built, new_ids = graphprep.reorder_by_degree(adjacency, sort_neighbors=ascending, threads=THREADS)
        return built.indptr, built.indices, new_ids

    def check(results: dict[str, Any]) -> None:
        indptr, indices, new_ids = results["graphprep"]
        order = np.argsort(-degree, kind="stable")
        assert np.array_equal(new_ids[order], np.arange(order.size))
        edges = np.sort(new_ids[src] << scale | new_ids[dst])
        found = np.repeat(np.arange(order.size), np.diff(indptr)) << scale | indices
        assert np.array_equal(found if ascending else np.sort(found), edges)

    what = "relabel by degree, rebuild" + ", rows sorted" * ascending
    return Row(what, src.size, {"graphprep": ours}, check, {"M/s": 60 if ascending else 100})


def sort(folder: Path, scale: int) -> Row:
    """Packed (src, dst) keys in ascending order: np.sort, and duckdb's ORDER BY of two columns."""

    import graphprep

    src, dst = ends(folder, scale)
    keys = src.astype(np.uint64) << np.uint64(32) | dst.astype(np.uint64)
    base = _duckdb_table(src, dst) if is_there("duckdb") else None
    del src, dst

    def by_duckdb() -> None:
        base.execute("CREATE OR REPLACE TABLE ordered AS SELECT * FROM edges ORDER BY src, dst")

    def check(results: dict[str, Any]) -> None:
        assert np.array_equal(results["graphprep"], results["np.sort"])

    sides = {
        "graphprep": lambda: graphprep.sort_keys(keys, threads=THREADS),
        "np.sort": lambda: np.sort(keys),
        "duckdb": by_duckdb,
    }
    return Row("sort packed keys", keys.size, sides, check, {"np.sort": 2, "duckdb": 8})


def _duckdb_table(src: Any, dst: Any) -> Any:
    import duckdb

    base = duckdb.connect(config={"threads": THREADS})
    base.register("ends", {"src": src, "dst": dst})
    base.execute("CREATE TABLE edges AS SELECT * FROM ends")
    base.unregister("ends")
    return base


def rank(folder: Path, scale: int) -> Row:
    """Sparse 63-bit IDs to dense ones in ascending order; pandas numbers them as they come."""

    import graphprep

    rng = np.random.default_rng(7)
    share = min(1.0, 2.0 ** (scale - 22))
    distinct = rng.integers(0, 2**63, int(_DISTINCT * share))
    ids = distinct[rng.integers(0, distinct.size, int(_RANKED * share))]

    def check(results: dict[str, Any]) -> None:
        found, ranks = results["graphprep"]
        assert np.array_equal(found, results["np.unique"][0])
        assert np.array_equal(ranks, results["np.unique"][1])

    def by_pandas() -> Any:
        import pandas as pd

        return pd.factorize(ids)

    sides = {
        "graphprep": lambda: graphprep.rank_ids(ids, threads=THREADS),
        "pandas.factorize": by_pandas,
        "np.unique": lambda: np.unique(ids, return_inverse=True),
    }
    at_least = {"pandas.factorize": 2, "np.unique": 8}
    return Row("sparse 63-bit IDs to ranks", ids.size, sides, check, at_least, once=("np.unique",))


def text(folder: Path, scale: int, *, weighted: bool) -> Row:
    """Text to CSR with sorted rows, or with weights to columns, against merely reading it into columns."""
    os.environ["POLARS_MAX_THREADS"] = str(THREADS)
    import pyarrow as pa
    import pyarrow.csv

    import graphprep

    pa.set_cpu_count(THREADS)
    path = folder / (f"r{scale}_weighted.txt" if weighted else f"r{scale}.txt")
    names = ["src", "dst", "weight"] if weighted else ["src", "dst"]
    types = dict(zip(names, (pa.int32(), pa.int32(), pa.float64()), strict=False))
    read = pa.csv.ReadOptions(column_names=names)

    def ours() -> Any:
        if weighted:
            return graphprep.read_edges(path, weights=True, delimiter=" ", dtype="int32", threads=THREADS)
        built = graphprep.read_adjacency(path, layout="csr", edge_ids=False, sort_neighbors=True, threads=THREADS)
        return built.indptr, built.indices

    def by_pyarrow() -> Any:
        return pa.csv.read_csv(path, read, pa.csv.ParseOptions(delimiter=" "), pa.csv.ConvertOptions(column_types=types))

    def by_polars() -> Any:
        import polars as pl

        schema = dict(zip(names, (pl.Int32, pl.Int32, pl.Float64), strict=False))
        return pl.read_csv(path, has_header=False, separator=" ", schema=schema)

    def check(results: dict[str, Any]) -> None:
        columns = [results["pyarrow"][name].to_numpy() for name in names]
        if "polars" in results:
            assert all(np.array_equal(results["polars"][name].to_numpy(), columns[at]) for at, name in enumerate(names))
        if weighted:
            equal({"graphprep": results["graphprep"], "pyarrow": columns})
        else:
            built = graphprep.build_adjacency(*columns, layout="csr", sort_neighbors=True, edge_ids=False)
            equal({"graphprep": results["graphprep"], "built": (built.indptr, built.indices)})

    count = np.load(folder / f"r{scale}_src.npy", mmap_mode="r").size
    what = "weighted text to columns" if weighted else "text to CSR, rows sorted; the peers: to columns"
    at_least = {"pyarrow": 5, "polars": 4} if weighted else {"pyarrow": 5, "polars": 2.5, "M/s": 75}
    return Row(what, count, {"graphprep": ours, "pyarrow": by_pyarrow, "polars": by_polars}, check, at_least)


ROWS: dict[str, Callable[[Path, int], Row]] = {
    "text": lambda folder, scale: text(folder, scale, weighted=False),
    "text-weighted": lambda folder, scale: text(folder, scale, weighted=True),
    "csr": lambda folder, scale: csr(folder, scale, ids=False, ascending=False),
    "csr-sorted": lambda folder, scale: csr(folder, scale, ids=False, ascending=True),
    "csr-ids": lambda folder, scale: csr(folder, scale, ids=True, ascending=False),
    "csr-ids-sorted": lambda folder, scale: csr(folder, scale, ids=True, ascending=True),
    "csc": csc,
    "degrees": degrees,
    "reorder": lambda folder, scale: reorder(folder, scale, ascending=False),
    "reorder-sorted": lambda folder, scale: reorder(folder, scale, ascending=True),
    "sort": sort,
    "rank": rank,
}


def make_inputs(folder: Path, scale: int, rows: list[str]) -> None:
    """Make what is not there yet: ends as npy, and the same edges as text."""
    import graphprep

    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"r{scale}_dst.npy").exists():
        made = folder / f"r{scale}"
        graphprep.generate("rmat", str(made), scale=scale, format="npy", overwrite=True)
        for name in ("src", "dst"):
            (made / f"{name}.npy").replace(folder / f"r{scale}_{name}.npy")
    for row, name, weights in (("text", f"r{scale}.txt", False), ("text-weighted", f"r{scale}_weighted.txt", True)):
        if row in rows and not (folder / name).exists():
            graphprep.generate("rmat", str(folder / name), scale=scale, weights=weights)


def measure(row: Row, rounds: int) -> dict[str, Any]:
    """Run all sides in turns. Returns seconds of wall and CPU for each, and how much more memory graphprep held."""
    results = {name: side() for name, side in row.sides.items()}  # loads kernels and libraries, too
    row.check(results)
    output = sum(array.nbytes for array in _arrays(results["graphprep"]))
    results.clear()
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in row.sides}
    for number in range(rounds):
        for name, side in row.sides.items():
            if number and name in row.once:
                continue
            gc.collect()
            wall, cpu = time.perf_counter(), time.process_time()
            result = side()
            runs[name].append((time.perf_counter() - wall, time.process_time() - cpu))
            del result
    return {
        "what": row.what,
        "count": row.count,
        "runs": runs,
        "extra": _extra_bytes(row.sides["graphprep"], output) / (4 * row.count),
        "at_least": row.at_least,
        "most_extra": row.most_extra,
    }


def _arrays(result: Any) -> list[Any]:
    return [result] if isinstance(result, np.ndarray) else list(result)


def _extra_bytes(side: Callable[[], Any], output: int) -> int:
    """Return what a run holds beside its input and its output."""
    from graphprep.engine.budget import PeakSampler, private_bytes, trim_heap
    from graphprep.engine.ledger import release_scratch

    gc.collect()
    release_scratch()
    trim_heap()
    before = private_bytes()
    with PeakSampler() as sampler:
        result = side()
    del result
    return sampler.peak_bytes - before - output


def report(name: str, found: dict[str, Any]) -> None:
    """Print the lines of a row: medians, how many times as long as graphprep a side takes, and what is wanted."""
    medians = {side: [statistics.median(column) for column in zip(*runs, strict=True)] for side, runs in found["runs"].items()}
    ours = medians["graphprep"]
    for side, (wall, cpu) in medians.items():
        cells = [name if side == "graphprep" else "", side, f"{wall:.3f}", f"{cpu:.3f}", f"{found['count'] / wall / 1e6:.1f}"]
        if side == "graphprep":
            limit = "" if found["most_extra"] is None else f" (≤ {found['most_extra']})"
            wanted = f"≥ {found['at_least']['M/s']} M/s; " if "M/s" in found["at_least"] else ""
            cells += ["1", "1", f"{wanted}beside input and output {found['extra']:.2f} arrays{limit}"]
        else:
            threads = THREADS if side in THREADED else 1
            ratio = cpu / threads / (ours[1] / THREADS)
            cells += [
                f"{wall / ours[0]:.2f}",
                f"{ratio:.2f}",
                f"≥ {found['at_least'][side]}" if side in found["at_least"] else "",
            ]
        print("|", " | ".join(cells), "|", flush=True)


def main() -> None:
    """Run each row in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=20, help="2^N nodes, 16 edges a node")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS))
    parser.add_argument("--inputs", type=Path, default=FOLDER, help="rN_src.npy, rN_dst.npy and rN.txt; made where missing")
    parser.add_argument("--json", type=Path, help="write the results there")
    parser.add_argument("--worker", choices=ROWS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(measure(ROWS[args.worker](args.inputs, args.scale), args.rounds)))
        return
    make_inputs(args.inputs, args.scale, args.rows)
    print(f"R-MAT, 2^{args.scale} nodes, {THREADS} threads. x: over graphprep's; CPU x: of CPU seconds a thread\n")
    heads = ["row", "side", "wall s", "CPU s", "M/s", "wall x", "CPU x", "wanted"]
    print("|", " | ".join(heads), "|\n| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    results = {}
    for name in args.rows:
        command = [sys.executable, __file__, "--worker", name, "--scale", str(args.scale), "--rounds", str(args.rounds)]
        done = subprocess.run([*command, "--inputs", str(args.inputs)], check=True, stdout=subprocess.PIPE)
        results[name] = json.loads(done.stdout)
        report(name, results[name])
    if args.json:
        args.json.write_text(json.dumps({"scale": args.scale, "threads": THREADS, "rows": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
