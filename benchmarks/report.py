"""Record a run: ``python benchmarks/report.py .benchmarks/full.json``.

It goes into results/, docs/images/speed.svg, and README.md, where what stands between the marks ``results`` is replaced.
Standard library only.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import plot  # noqa: E402

_README = HERE / "README.md"
_MARKS = re.compile(r"(<!-- results: begin -->\n).*?(<!-- results: end -->)", re.DOTALL)
_MIB = 1 << 20
_SMALL = 1 << 20  # edges below which a rate says nothing but start-up


def main() -> None:
    """Record the run that the command line names."""
    source = Path(sys.argv[1])
    results = json.loads(source.read_text())
    text = "\n".join(describe(results))
    _README.write_text(_MARKS.sub(lambda marks: f"{marks[1]}{text}\n{marks[2]}", _README.read_text()))
    kept = HERE / "results" / f"{results['size']}.json"
    if source.resolve() != kept:
        shutil.copy(source, kept)
    plot.draw_file(kept, plot.PLOT)


def describe(results: dict) -> Iterator[str]:
    """Yield the lines of the report."""
    machine = results["machine"]
    versions = {name: number for side in results["peers"].values() for name, number in side.items()} | machine["versions"]
    loads = [f"{results[when]['load'][0]:.1f}" for when in ("started", "ended") if when in results]
    yield (
        f"{results['started']['time'][:10]}, size `{results['size']}`: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_mib'] / 1024:.0f} GiB, Python {machine['python']}; load {' to '.join(loads)}; "
        + ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
        + "."
    )
    yield from ("", "### Whole processes", "")
    yield from _whole_processes(results["cases"])
    yield from ("", "### What was to be reached", "")
    yield from _bars(results["cases"])
    for run in results.get("arrays", []):
        yield from ("", f"### In process: arrays, R-MAT of 2^{run['scale']} nodes, {run['threads']} threads", "")
        yield from _rows(run["rows"])
    if "decoders" in results:
        yield from ("", "### In process: decoders, on one core", "")
        for run in results["decoders"]:
            yield from _decoders(run)


def _whole_processes(cases: list[dict]) -> Iterator[str]:
    yield "| case | side | edges | wall s | min..max | CPU s | M edges/s | peak MiB | wall x | CPU x |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for case in cases:
        for at, (name, side) in enumerate(case["sides"].items()):
            rate = f"{side['edges_per_s'] / 1e6:.2f}" if side["num_edges"] >= _SMALL else ""
            cells = (
                "" if at else f"**{case['name']}**: {case['title']}",
                name,
                f"{side['num_edges']:,}" if side["num_edges"] else "",
                f"{side['wall_s']:.2f}",
                f"{side['wall_min_s']:.2f}..{side['wall_max_s']:.2f}",
                f"{side['cpu_s']:.2f}",
                rate,
                f"{side['private_bytes'] / _MIB:.0f}",
                f"{side['wall_ratio']:.2f}",
                f"{side['cpu_ratio']:.2f}",
            )
            yield f"| {' | '.join(cells)} |"


def _bars(cases: list[dict]) -> Iterator[str]:
    yield "| case | what | wanted | found | |"
    yield "| --- | --- | ---: | ---: | --- |"
    for case in cases:
        for bar in case["bars"]:
            verdict = "reached" if bar["reached"] else "**missed**"
            yield f"| {case['name']} | {bar['of']}: {bar['what']} | {bar['wanted']} | {bar['found']} | {verdict} |"


def _rows(rows: dict[str, dict]) -> Iterator[str]:
    """Yield the table of arrays.py: medians, and how many times as long as graphprep each side takes."""
    yield "| row | side | wall s | CPU s | M/s | wall x | wanted |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: |"
    for row in rows.values():
        medians = {
            name: [statistics.median(column) for column in zip(*runs, strict=True)]
            for name, runs in row["runs"].items()
            if runs
        }
        base = medians["graphprep"][0]
        for name, (wall, cpu) in medians.items():
            is_ours = name == "graphprep"
            least = row["at_least"].get("M/s" if is_ours else name)
            wanted = "" if least is None else f">= {least}{' M/s' if is_ours else ''}"
            if is_ours and row["most_extra"] is not None:
                wanted += f"memory: {row['extra']:.2f} arrays, <= {row['most_extra']}"
            ratio = "1" if is_ours else f"{wall / base:.2f}"
            cells = (
                row["what"] if is_ours else "",
                name,
                f"{wall:.3f}",
                f"{cpu:.3f}",
                f"{row['count'] / wall / 1e6:.1f}",
                ratio,
            )
            yield f"| {' | '.join((*cells, wanted))} |"


def _decoders(run: list[dict]) -> Iterator[str]:
    """Yield the table of decoders.py."""
    yield "| input | side | MB/s | graphprep is faster by | wanted |"
    yield "| --- | --- | ---: | ---: | ---: |"
    for row in run:
        for at, (name, speed) in enumerate(row["MB/s"].items()):
            bar = f">= {row['bar'][name]}" if name in row["bar"] else ""
            yield f"| {'' if at else row['case']} | {name} | {speed:.1f} | {row['ratio'][name]:.1f} | {bar} |"


if __name__ == "__main__":
    main()
