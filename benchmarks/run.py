"""Compare graphprep with its peers: ``python benchmarks/run.py [--size full] [--only CASE] …``; see README.md beside this file.

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
import statistics
import sys
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from case import Bar, Case, CheckError, Side  # noqa: E402
from cases import SIZES, Cases, find_peers  # noqa: E402
from in_process import SCRIPTS, run_script  # noqa: E402
from measure import Measured, measure, summarize  # noqa: E402
from rewrites import TOLD  # noqa: E402

_MIB = 1 << 20
_ROUNDS = {"tiny": 1, "quick": 3, "full": 5}
_UNITS = {
    "wall_s": ("wall time", " s", 1.0),
    "cpu_s": ("CPU time", " s", 1.0),
    "edges_per_s": ("edges a second", " M/s", 1e-6),
    "private_bytes": ("peak memory", " MiB", 1 / _MIB),
    "sampled_rate": ("sampled edges a second", " M/s", 1.0),
}
_PACKAGES = ("graphprep", "numpy", "numba", "pyarrow", "orjson", "fsspec")


def main() -> None:
    """Run the benchmarks that the command line asks for."""
    args = _arguments()
    sizes, rounds = SIZES[args.size], args.rounds or _ROUNDS[args.size]
    peers = find_peers(args.peer_python)
    for name, why in peers.missing.items():
        print(f"no {name}: {why}")
    scratch = Path(tempfile.mkdtemp(prefix="graphprep-bench-", dir=args.folder))
    results = {"machine": machine(), "started": _now(), "size": args.size, "peers": peers.versions, "cases": []}
    try:
        folder = Path(args.folder) / "graphprep-bench-inputs"
        _warm_up(Cases(SIZES["tiny"], folder, peers), args.only, scratch)
        for case in Cases(sizes, folder, peers).all(args.only):
            results["cases"].append(_run_case(case, scratch, min(rounds, case.rounds), is_full=args.size == "full"))
            _keep(args.json, results)
        for name in SCRIPTS:
            if not args.only or name in args.only:
                results[name] = run_script(name, args.size, rounds, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    results["ended"] = _now()
    _keep(args.json, results)
    print(f"\nAll outputs were right. Results: {args.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare graphprep with its peers.")
    parser.add_argument("--size", choices=SIZES, default="quick", help="how large the inputs are  [default: quick]")
    parser.add_argument("--rounds", type=int, help="runs of every side  [default: 3, full: 5]")
    parser.add_argument(
        "--only", action="append", default=[], metavar="CASE", help="run cases whose names begin so; repeatable"
    )
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH", help="interpreter that has the peers")
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="where inputs and outputs lie")
    parser.add_argument("--json", type=Path, default=Path(".benchmarks/results.json"), help="where the results go")
    return parser.parse_args()


def _keep(path: Path, results: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=2) + "\n")


# ---- running


def _warm_up(cases: Cases, wanted: list[str], scratch: Path) -> None:
    """Run every side once on a tiny graph: kernels get compiled and cached, libraries come into the page cache."""
    for case in cases.all(wanted):
        for side in case.sides:
            _run_side(case, side, scratch)


def _run_side(case: Case, side: Side, scratch: Path) -> tuple[Measured, dict[str, float]]:
    """Run one side once, check its output and remove it; return what it took, and what it and the check told besides."""
    out = scratch / "out"
    done = measure(side.command(out))
    if done.exit_code:
        raise SystemExit(f"{case.name}: {side.name} ended with {done.exit_code}:\n{done.stderr}")
    try:
        told = side.check(out) or {}
    except CheckError as error:
        raise SystemExit(f"{case.name}: {side.name}: {error}") from None
    shutil.rmtree(out, ignore_errors=True)
    for line in done.stdout.splitlines():  # METIS prints lines of its own
        if line.startswith('{"alone_s":'):
            told |= json.loads(line)
    return done, told


def _run_case(case: Case, scratch: Path, rounds: int, *, is_full: bool) -> dict:
    """Run all sides in turns and print the case's table."""
    runs: dict[str, list[tuple[Measured, dict[str, float]]]] = {side.name: [] for side in case.sides}
    os.sync()  # inputs and outputs of before are written now, not while somebody is timed
    for _ in range(rounds):
        for side in case.sides:
            runs[side.name].append(_run_side(case, side, scratch))
    sides: dict[str, dict] = {}
    for side in case.sides:
        found = sides[side.name] = summarize([run for run, _ in runs[side.name]]).to_json()
        found |= {name: statistics.median(told[name] for _, told in runs[side.name]) for name in runs[side.name][0][1]}
        found |= {"num_edges": side.num_edges, "input_bytes": side.input_bytes}
        found["edges_per_s"] = round(side.num_edges / found["wall_s"])
        found["mb_per_s"] = round(side.input_bytes / found["wall_s"] / 1e6, 2)
        found["ns_per_edge"] = round(1e9 * found["cpu_s"] / side.num_edges, 1) if side.num_edges else 0.0
    first = sides[case.sides[0].name]
    for found in sides.values():
        found["wall_ratio"] = round(found["wall_s"] / first["wall_s"], 2)
        found["cpu_ratio"] = round(found["cpu_s"] / first["cpu_s"], 2)
    bars = [_measure_bar(bar, sides) for bar in case.bars]
    _print_case(case, sides, bars, is_full=is_full)
    return {"name": case.name, "title": case.title, "sides": sides, "bars": bars, "missing": case.missing}


def _measure_bar(bar: Bar, sides: dict[str, dict]) -> dict:
    """Return what was to be reached and what was."""
    found = sides[bar.of][bar.what] / (sides[bar.over][bar.what] if bar.over else 1)
    of = f"{bar.of} over {bar.over}" if bar.over else bar.of
    name, unit, factor = _UNITS[bar.what]
    unit, factor = (" x", 1.0) if bar.over else (unit, factor)
    wanted = f">= {bar.least * factor:g}{unit}" if bar.least else f"<= {bar.most * factor:g}{unit}"
    reached = bar.least <= found <= bar.most
    return {"of": of, "what": name, "wanted": wanted, "found": f"{found * factor:.2f}{unit}", "reached": reached}


# ---- printing


def _print_case(case: Case, sides: dict[str, dict], bars: list[dict], *, is_full: bool) -> None:
    told = [name for name in TOLD if any(name in side for side in sides.values())]
    rows = [
        (
            name,
            f"{side['num_edges']:,}",
            f"{side['wall_s']:.2f}",
            f"{side['wall_min_s']:.2f}..{side['wall_max_s']:.2f}",
            f"{side['cpu_s']:.2f}",
            f"{side['edges_per_s'] / 1e6:.2f}",
            f"{side['ns_per_edge']:.0f}",
            f"{side['private_bytes'] / _MIB:.0f}",
            f"{side['rss_bytes'] / _MIB:.0f}",
            f"{side['wall_ratio']:.2f}",
            f"{side['cpu_ratio']:.2f}",
            *(f"{side[name]:.2f}" if name in side else "" for name in told),
        )
        for name, side in sides.items()
    ]
    head = ("", "edges", "wall s", "min..max", "CPU s", "M edges/s", "CPU ns/edge", "peak MiB", "max RSS", "wall x", "CPU x")
    head += tuple(TOLD[name] for name in told)
    print_table(f"{case.name}: {case.title}", head, rows)
    for bar in bars:
        verdict = ("reached" if bar["reached"] else "missed") if is_full else "at full size"
        print(f"{bar['of']}, {bar['what']}: {bar['found']}; {verdict}: {bar['wanted']}", flush=True)
    for name, reason in case.missing.items():
        print(f"not compared: {name}: {reason}")


def print_table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """Print a Markdown table, also readable as it is."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    print(f"\n### {title}\n")
    for line in (head, tuple("-" * width for width in widths), *rows):
        cells = [
            cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


# ---- the machine


def machine() -> dict[str, object]:
    models = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    memory = int(Path("/proc/meminfo").read_text().split()[1]) * 1024
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": memory // _MIB,
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _now() -> dict[str, object]:
    return {"time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "load": os.getloadavg()}


if __name__ == "__main__":
    main()
