"""Compare graphprep with its peers: ``python benchmarks/run.py [--full] [--only FORMAT] …``; see README.md beside this file.

Every run is a fresh process; the sides of a case take turns, so that a busy moment of the machine meets all of them. Standard
library only: the runner's own size would show in its children's high-water marks.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from cases import Case, CheckError, Side, find_peers, graphprep_command, make_cases  # noqa: E402
from measure import Measured, measure, summarize  # noqa: E402

_QUICK = (20_000, 200_000)
_FULL = (200_000, 2_000_000)
_TINY = (200, 2_000)  # warms kernels and libraries up
_MIB = 1 << 20


def main() -> None:
    """Run the benchmarks that the command line asks for."""
    args = _arguments()
    peers = find_peers(args.peer_python)
    scratch = Path(tempfile.mkdtemp(prefix="graphprep-bench-", dir=args.folder))
    try:
        results = {"machine": _machine(), "started": _now(), "size": _size(args), "peers": peers.versions, "cases": []}
        results["start_up"] = [] if args.only else _start_up(scratch, args.rounds)
        graphs = _graphs(args, *_size(args).values())
        _warm_up(list(make_cases(_graphs(args, *_TINY, _TINY[1], 1), peers, args.only)), scratch)
        for case in make_cases(graphs, peers, args.only):
            results["cases"].append(_run_case(case, scratch, args.rounds))
        results["ended"] = _now()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(results, indent=2) + "\n")
    print(f"\nAll outputs were right. Results: {args.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare graphprep with its peers.")
    parser.add_argument("--full", action="store_true", help="200,000 nodes, 2,000,000 edges, 16,000,000 plain edges")
    parser.add_argument("--nodes", type=int, help="nodes of the graph with features")
    parser.add_argument("--edges", type=int, help="edges of the graph with features")
    parser.add_argument("--plain-edges", type=int, help="edges of the plain edge lists  [default: 8 x --edges]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], metavar="FORMAT", help="edgelist, json, tsv, chunked, edges …")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH", help="interpreter that has the peers")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where generated graphs and outputs lie")
    parser.add_argument("--json", type=Path, default=Path(".benchmarks/results.json"), help="where the results go")
    args = parser.parse_args()
    nodes, edges = _FULL if args.full else _QUICK
    args.nodes = args.nodes or nodes
    args.edges = args.edges or edges
    args.plain_edges = args.plain_edges or 8 * args.edges
    return args


def _size(args: argparse.Namespace) -> dict[str, int]:
    return {name: getattr(args, name) for name in ("nodes", "edges", "plain_edges", "seed")}


def _graphs(args: argparse.Namespace, *size: int) -> Path:
    """Generate the graphs, or find those of an earlier run."""
    folder = Path(args.folder) / "graphprep-bench" / "-".join(map(str, ("v1", *size)))
    subprocess.run([sys.executable, str(HERE / "graphs.py"), str(folder), *map(str, size)], check=True)
    return folder


# ---- running


def _warm_up(cases: list[Case], scratch: Path) -> None:
    """Run every side once on a tiny graph: kernels get compiled and cached, libraries come into the page cache."""
    for case in cases:
        for side in case.sides:
            _run_side(case, side, scratch)


def _run_side(case: Case, side: Side, scratch: Path) -> Measured:
    """Run one side once, check its output and remove it."""
    out = scratch / "out"
    done = measure(side.command(out))
    if done.exit_code:
        raise SystemExit(f"{case.name}: {side.name} ended with {done.exit_code}:\n{done.stderr}")
    try:
        side.check(out)
    except CheckError as error:
        raise SystemExit(f"{case.name}: {side.name}: {error}") from None
    shutil.rmtree(out)
    return done


def _run_case(case: Case, scratch: Path, rounds: int) -> dict:
    """Run all sides in turns and print the case's table."""
    runs: dict[str, list[Measured]] = {side.name: [] for side in case.sides}
    for _ in range(rounds):
        for side in case.sides:
            runs[side.name].append(_run_side(case, side, scratch))
    sides = {name: summarize(measured).to_json() for name, measured in runs.items()}
    first = sides[case.sides[0].name]
    for side in sides.values():
        side["edges_per_s"] = round(case.num_edges / side["wall_s"])
        side["mb_per_s"] = round(case.input_bytes / side["wall_s"] / 1e6, 2)
        side["edges_per_cpu_s"] = round(case.num_edges / side["cpu_s"])
        side["wall_ratio"] = round(side["wall_s"] / first["wall_s"], 2)
        side["cpu_ratio"] = round(side["cpu_s"] / first["cpu_s"], 2)
    _print_case(case, sides)
    result = {"name": case.name, "num_edges": case.num_edges, "input_bytes": case.input_bytes}
    return result | {"sides": sides, "missing": case.missing}


def _start_up(scratch: Path, rounds: int) -> list[dict]:
    """Measure what every command costs before its work begins."""
    karate = HERE.parent / "sample_data" / "karate" / "karate.csv"
    store = scratch / "karate"
    converted = scratch / "converted"
    subprocess.run(graphprep_command("convert", "-q", karate, store), check=True, stdout=subprocess.DEVNULL)
    rows: list[tuple[str, list[str], Callable[[], None]]] = [
        ("python -c pass", [sys.executable, "-c", "pass"], lambda: None),
        ("graphprep --version", graphprep_command("--version"), lambda: None),
        ("graphprep --help", graphprep_command("--help"), lambda: None),
        ("graphprep info STORE", graphprep_command("info", store), lambda: None),
        (
            "graphprep convert (78 edges)",
            graphprep_command("convert", "-q", karate, converted),
            lambda: shutil.rmtree(converted),
        ),
    ]
    runs: dict[str, list[Measured]] = {name: [] for name, *_ in rows}
    for turn in range(rounds + 1):
        for name, command, clean in rows:
            done = measure(command)
            if done.exit_code:
                raise SystemExit(f"{name} ended with {done.exit_code}:\n{done.stderr}")
            clean()
            if turn:  # the first turn warms up
                runs[name].append(done)
    results = [{"name": name} | summarize(measured).to_json() for name, measured in runs.items()]
    _print_table(
        "Start-up",
        ("command", "wall s", "min..max", "CPU s", "peak MiB"),
        [
            (row["name"], _seconds(row["wall_s"]), _span(row), _seconds(row["cpu_s"]), _mib(row["private_bytes"]))
            for row in results
        ],
    )
    return results


# ---- printing


def _print_case(case: Case, sides: dict[str, dict]) -> None:
    rows = [
        (
            name,
            _seconds(side["wall_s"]),
            _span(side),
            _seconds(side["cpu_s"]),
            f"{side['edges_per_s']:,}",
            f"{side['mb_per_s']:.2f}",
            f"{side['edges_per_cpu_s']:,}",
            _mib(side["private_bytes"]),
            _mib(side["rss_bytes"]),
            f"{side['wall_ratio']:.2f}",
            f"{side['cpu_ratio']:.2f}",
        )
        for name, side in sides.items()
    ]
    head = ("", "wall s", "min..max", "CPU s", "edges/s", "MB/s", "edges/CPU s", "peak MiB", "max RSS", "wall x", "CPU x")
    _print_table(f"{case.name}: {case.num_edges:,} edges, {case.input_bytes / 1e6:.1f} MB", head, rows)
    for name, reason in case.missing.items():
        print(f"not compared: {name}: {reason}")


def _print_table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a Markdown table, also readable as it is."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    lines = [head, tuple("-" * width for width in widths), *rows]
    print(f"\n### {title}\n")
    for line in lines:
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f}"


def _span(row: dict) -> str:
    return f"{row['wall_min_s']:.2f}..{row['wall_max_s']:.2f}"


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / _MIB:.0f}"


# ---- the machine


def _machine() -> dict[str, object]:
    names = ("graphprep", "numpy", "numba", "pyarrow", "orjson", "fsspec")
    models = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": memory // _MIB,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def _now() -> dict[str, object]:
    return {"time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "load": os.getloadavg()}


if __name__ == "__main__":
    main()
