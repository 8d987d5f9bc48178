"""How much faster more threads are: ``make bench-scaling``, or ``python benchmarks/scaling.py [--scale N] [--threads N…]``.

R-MAT text to CSR, its export and the functions over arrays, on 1, 2, 4, 8 and 16 threads, as many as this machine has cores
for; counts take turns. Outputs must be the same bytes for all of them. Commands are whole processes, functions run in this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from case import graphprep_command
from gpu.stores import compare_stores
from inputs import make_input
from measure import measure
from run import machine

THREADS = (1, 2, 4, 8, 16)
WANTED = ("text to CSR", 16, 10.0)  # times faster on so many threads than on one
Go = Callable[[int], float]  # does the work on so many threads, returns seconds


def main() -> int:
    """Measure all cases, print and keep what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=22, help="2^N nodes, 16 edges each  [default: 22]")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each count, after one that is not counted")
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS, help="how many  [default: 1 2 4 8 16]")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where inputs and outputs lie")
    parser.add_argument("--json", type=Path, default=Path(".benchmarks/scaling.json"), help="where the results go")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    counts = [count for count in options.threads if count <= cores]
    left_out = {count: f"there are {cores} cores" for count in options.threads if count > cores}
    source = options.folder / "graphprep-bench-inputs" / f"rmat-{options.scale}"
    make_input(source, source.name)
    about, cases = {"machine": machine(), "load": [os.getloadavg()], "scale": options.scale}, {}
    with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
        for name, go in (commands(source, Path(scratch)) | functions(source, options.scale)).items():
            cases[name] = measure_case(name, go, counts, options.rounds)
    about["load"].append(os.getloadavg())
    found = {**about, "cases": cases, "left_out": left_out, "target": verdict(cases)}
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1) + "\n")
    print(f"{found['target']}\nleft out: {left_out or 'nothing'}\nwritten: {options.json}")
    return 0


def measure_case(name: str, go: Go, counts: list[int], rounds: int) -> dict[int, dict[str, float]]:
    """Return seconds and speed-up, over the first count, by number of threads."""
    seconds: dict[int, list[float]] = {count: [] for count in counts}
    for number in range(1 + rounds):
        for count, runs in seconds.items():
            taken = go(count)
            if number:
                runs.append(taken)
    medians = {count: statistics.median(runs) for count, runs in seconds.items()}
    found = {count: {"seconds": one, "speed_up": medians[counts[0]] / one} for count, one in medians.items()}
    shown = "  ".join(f"{count}: {one['seconds']:.3f} s, {one['speed_up']:.2f} x" for count, one in found.items())
    print(f"{name:32} {shown}", flush=True)
    return found


def verdict(cases: dict[str, Any]) -> dict[str, object]:
    """Say whether what was to be reached was."""
    name, count, wanted = WANTED
    found = cases[name].get(count, {}).get("speed_up") if 1 in cases[name] else None
    reached = "not measured" if found is None else "reached" if found >= wanted else "missed"
    return {"case": name, "threads": count, "wanted": wanted, "found": found, "verdict": reached}


# ---- commands


def commands(source: Path, scratch: Path) -> dict[str, Go]:
    """Return the commands; each writes what it wrote at first."""
    store = scratch / "text to CSR"
    given = {
        store.name: ("convert", source / "edges.txt", "--layout", "csr"),
        "export to GraphBolt": ("export", store, "--to", "graphbolt"),
        "reorder by degree": ("reorder", store, "--by", "degree"),
    }
    return {name: partial(run_command, args, scratch / name) for name, args in given.items()}


def run_command(args: tuple[object, ...], first: Path, threads: int) -> float:
    """Run a command and compare what it wrote with what it wrote at first, which stays."""
    out = first.with_name("again") if first.exists() else first
    done = measure(graphprep_command(args[0], "-q", args[1], out, *args[2:], "--threads", threads))
    if done.exit_code:
        raise SystemExit(f"{args[0]} ended with {done.exit_code}:\n{done.stderr}")
    if out != first:
        compare_stores(first, out)
        shutil.rmtree(out)
    return done.wall_s


# ---- functions over arrays


def functions(source: Path, scale: int) -> dict[str, Go]:
    """Return the functions; each returns what it returned at first."""
    import numpy as np

    import graphprep

    src, dst = _ends(source)
    csr = graphprep.build_adjacency(src, dst)
    calls: dict[str, Callable[..., Any]] = {
        "COO to CSR, edge IDs": partial(graphprep.build_adjacency, src, dst, layout="csr"),
        "COO to CSR, rows sorted": partial(graphprep.build_adjacency, src, dst, layout="csr", sort_neighbors=True),
        "CSR to CSC": partial(graphprep.transpose, csr),
        "degrees": partial(graphprep.degrees, src, dst),
        "relabel by degree": partial(graphprep.reorder_by_degree, csr),
        "sort keys": partial(graphprep.sort_keys, src.astype(np.int64) << scale | dst),
        "distinct edges": partial(graphprep.dedup_edges, src, dst),
        "sparse IDs to ranks": partial(graphprep.rank_ids, dst.astype(np.int64) << 40),
    }
    first: dict[str, list[Any]] = {}

    def run(name: str, threads: int) -> float:
        begin = time.perf_counter()
        result = calls[name](threads=threads)
        taken = time.perf_counter() - begin
        arrays = list(_arrays_of(result))
        if not all(map(np.array_equal, first.setdefault(name, arrays), arrays)):
            raise AssertionError(f"{name} on {threads} threads returns other arrays")
        return taken

    return {name: partial(run, name) for name in calls}


def _ends(source: Path) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv

    columns = pa.csv.ReadOptions(column_names=["src", "dst"])
    table = pa.csv.read_csv(source / "edges.txt", columns, pa.csv.ParseOptions(delimiter=" "))
    return [table[name].to_numpy().astype(np.int32) for name in ("src", "dst")]


def _arrays_of(result: Any) -> Any:
    for one in result if isinstance(result, tuple) else (result,):
        yield from (one.indptr, one.indices, one.edge_ids) if hasattr(one, "indptr") else (one,)


if __name__ == "__main__":
    sys.exit(main())
