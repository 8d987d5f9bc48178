"""Neighbourhoods of seeds: a store's, drawn and written as files, against samplers that draw them in memory and drop them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from case import LIMITS, PEERS, Bar, Case, CheckError, Input, Peers, Side, graphprep_command

SAMPLERS = ("graphbolt", "pyg")
SCRIPT = "neighbor_samples.py"
_FANOUTS, _BATCH = "15,10,5", 1024
_MOST_SEEDS = 60_000
_NAMES = {"graphbolt": "sampling-graphbolt", "pyg": "sampling-pyg"}


def sample_case(given: Input, peers: Peers, python: dict[str, str]) -> Case:
    """Return the case; ``python`` are the interpreters of the libraries."""
    seeds = given.path.parent / "sample-seeds.txt"
    lines = (given.path.parent / "half.txt").read_text().splitlines(keepends=True)
    seeds.write_text("".join(lines[:: max(1, len(lines) // _MOST_SEEDS)]))
    flags = {"graphprep": (), f"graphprep {LIMITS[1]}": ("--memory-limit", LIMITS[1])}
    sides = [
        Side(name, partial(_sample, given, seeds, words), _check, given.num_edges, given.num_bytes)
        for name, words in flags.items()
    ]
    bars, missing = [], {}
    for one in SAMPLERS:
        name = _NAMES[one]
        if name in peers.versions:
            sides.append(Side(one, partial(_peer, python[name], one, given, seeds), _check, given.num_edges, given.num_bytes))
            bars.append(Bar("graphprep", one, "sampled_rate", least=1.0))
        else:
            missing[one] = peers.missing[name]
    title = f"flows around {len(lines[:: max(1, len(lines) // _MOST_SEEDS)]):,} seeds, fan-outs {_FANOUTS}"
    return Case("sample", title, tuple(sides), tuple(bars), missing, 3)


def _sample(given: Input, seeds: Path, flags: tuple[str, ...], out: Path) -> list[str]:
    """Return a command whose summary goes to a file beside the flows."""
    asked = ("--seeds", seeds, "--fanouts", _FANOUTS, "--batch-size", _BATCH)
    command = graphprep_command("sample", "-q", "--json", *flags, given.path, out / "flows", *asked)
    return ["sh", "-c", 'mkdir "$0" && exec "$@" > "$0/summary.json"', str(out), *command]


def _peer(python: str, peer: str, given: Input, seeds: Path, out: Path) -> list[str]:
    command = [python, str(PEERS / SCRIPT), peer, str(given.path), str(seeds), _FANOUTS, str(_BATCH)]
    return ["sh", "-c", 'mkdir "$0" && exec "$@" > "$0/summary.json"', str(out), *command]


def _check(out: Path) -> dict[str, float]:
    """Return millions of edges a second: of graphprep drawn and written, of the others drawn alone."""
    told = json.loads((out / "summary.json").read_text())
    if "sampled_edges_per_s" not in told:
        return {"sampled_rate": told["num_edges"] / told["sample_s"] / 1e6}
    found = json.loads((out / "flows" / "manifest.json").read_text())
    if sum(one["num_edges"] for one in found["shards"]) != told["num_sampled_edges"]:
        raise CheckError(f"{out}: the manifest counts other edges than the summary")
    return {"sampled_rate": told["sampled_edges_per_s"] / 1e6}
