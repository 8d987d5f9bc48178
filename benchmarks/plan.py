"""What ``graphprep plan`` says, against what ``convert`` then takes: ``python benchmarks/plan.py [--scale N] [--rounds N]``.

See README.md beside this file. Plans and conversions take turns, each in a process of its own with kernels compiled; what is
compared is the median of the ratios of each pair. ``--folder`` may hold inputs of one's own, which are planned, too.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

_COMMAND = [sys.executable, "-m", "graphprep"]
_GOALS = {"edges": (0.9, 1.1), "peak memory": (0.8, 1.2), "time": (1 / 1.5, 1.5), "store": (0.9, 1.1)}
_SAMPLES = Path(__file__).parent.parent / "sample_data"
Input = tuple[str, list[str]]


def main() -> None:
    """Plan and convert ten inputs, and print how near the plans were."""
    args = _arguments()
    scratch = Path(tempfile.mkdtemp(prefix="graphprep-bench-plan-", dir=args.tmp))
    try:
        inputs = make_inputs(scratch, args.scale)
        for path in sorted(args.folder.iterdir()) if args.folder else ():
            inputs[path.name] = (str(path), [])
        results = {name: _compare(given, scratch / "store", args.rounds, args.memory_limit) for name, given in inputs.items()}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _print(results)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


def make_inputs(folder: Path, scale: int) -> dict[str, Input]:
    """Make inputs of 2^scale nodes: the path of each, and options."""
    made: dict[str, Input] = {"real: karate, CSV": (str(_SAMPLES / "karate/karate.csv"), [])}
    made["real: Les Miserables, JSON"] = (str(_SAMPLES / "lesmis/lesmis.jsonl"), [])
    rmat = ["rmat", "--scale", str(scale)]
    _generate(folder / "edges.txt", [*rmat, "--edge-factor", "20"])
    made["edge list"] = (str(folder / "edges.txt"), [])
    made["edge list, both layouts"] = (str(folder / "edges.txt"), ["--layout", "both"])
    _generate(folder / "weighted.csv", [*rmat, "--weights", "--times", "-f", "csv"])
    made["CSV, weights and times"] = (str(folder / "weighted.csv"), [])
    packed = folder / "weighted.csv.gz"
    packed.write_bytes(gzip.compress((folder / "weighted.csv").read_bytes(), 1))
    made["the same as .gz"] = (str(packed), [])
    _generate(folder / "edges.parquet", [*rmat, "--edge-factor", "32", "-f", "parquet"])
    made["Parquet"] = (str(folder / "edges.parquet"), [])
    _generate(folder / "npy", [*rmat, "--edge-factor", "32", "-f", "npy"])
    made[".npy"] = (str(folder / "npy"), [])
    hetero = ["hetero", "--nodes", str(3 << (scale - 2)), "--edges", str(6 << scale)]
    for kind, name in (("json", "DeepGNN JSON"), ("tsv", "DeepGNN TSV")):
        _generate(folder / f"hetero.{kind}", [*hetero, "-f", kind])
        made[name] = (str(folder / f"hetero.{kind}"), [])
    _generate(folder / "tables", [*hetero, "-f", "csv"])
    made["tables, CSV"] = (str(folder / "tables" / "graph.yaml"), [])
    write_names(folder / "names.csv", 8 << scale)
    made["edge list of names"] = (str(folder / "names.csv"), ["--format", "edges", "--id-type", "string"])
    return made


def write_names(path: Path, num_edges: int) -> None:
    """Write edges between names: sources of skewed frequencies, destinations of even ones."""
    rng, most = np.random.default_rng(1), num_edges // 7 + 1
    src, dst = (most * rng.random(num_edges) ** 2).astype(np.int64), rng.integers(0, most, num_edges)
    rows = zip((src * 7919 % 1_000_003).tolist(), (dst * 104_729 % 1_000_033).tolist(), strict=True)
    path.write_text("src,dst\n" + "".join(f"user-{a:07d},item/{b}\n" for a, b in rows))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=18, help="2^N nodes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory-limit", default="auto")
    parser.add_argument("--folder", type=Path, help="inputs of one's own")
    parser.add_argument("--tmp", help="where inputs and stores lie")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def _generate(out: Path, options: list[str]) -> None:
    subprocess.run(
        [*_COMMAND, "generate", options[0], str(out), *options[1:], "--quiet"], check=True, stdout=subprocess.DEVNULL
    )


def _compare(given: Input, store: Path, rounds: int, limit: str) -> dict[str, Any]:
    """Plan and convert in turns, after one conversion that compiles; return ratios: planned over done."""
    path, options = given
    common = [*options, "--memory-limit", limit, "--json", "--quiet"]
    ratios: dict[str, list[float]] = {name: [] for name in _GOALS}
    _run("convert", path, str(store), "--overwrite", *common)
    done: dict[str, Any] = {}
    for _ in range(rounds):
        planned = _run("plan", path, *common)
        done = _run("convert", path, str(store), "--overwrite", *common)
        ratios["edges"].append(planned["total_edges"] / sum(done["num_edges"].values()))
        ratios["peak memory"].append(planned["peak_memory_bytes"] / done["peak_memory_bytes"])
        ratios["time"].append(planned["convert_s"] / done["elapsed_s"])
        ratios["store"].append(planned["output_bytes"] / done["output_bytes"])
    found: dict[str, Any] = {name: statistics.median(values) for name, values in ratios.items()}
    shares = {"looked_at": planned["read_bytes"] / planned["input_bytes"], "plan_s": planned["elapsed_s"]}
    actual = {name: done[name] for name in ("elapsed_s", "peak_memory_bytes", "output_bytes")}
    return found | shares | actual | {"num_edges": sum(done["num_edges"].values())}


def _run(*command: str) -> dict[str, Any]:
    done = subprocess.run([*_COMMAND, *command], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _print(results: dict[str, dict[str, Any]]) -> None:
    print("| input | edges | looked at | edges, planned over found | peak memory | time | store |")
    print("|---|---|---|---|---|---|---|")
    for name, found in results.items():
        cells = []
        for goal, (least, most) in _GOALS.items():
            cells.append(f"{found[goal]:.2f}" + ("" if least <= found[goal] <= most else " (missed)"))
        edges, peak, took, store = cells
        peak += f" of {found['peak_memory_bytes'] / 1e6:.0f} MB"
        took += f" of {found['elapsed_s']:.2f} s"
        print(f"| {name} | {found['num_edges']:,} | {found['looked_at']:.0%} | {edges} | {peak} | {took} | {store} |")


if __name__ == "__main__":
    main()
