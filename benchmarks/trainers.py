"""Partitions for trainers, against the trainers' own partitioners: of a store theirs are of arrays in memory, of a chunked
graph DGL's tools."""

from __future__ import annotations

import json
import os
import subprocess
from functools import partial
from pathlib import Path

from case import Bar, Case, CheckError, Input, Peers, Side, graphprep_command

NUM_PARTS = 4
PEERS = {"glt": "graphlearn-torch", "pyg": "torch-geometric", "distdgl": "dgl"}
_SCRIPT = "trainer_parts.py"
_PYTHONS = {
    "distdgl": "GRAPHPREP_DGL_PYTHON",
    "dgl": "GRAPHPREP_DGL_PYTHON",
    "dispatch": "GRAPHPREP_GRAPHBOLT_PYTHON",
    "sampling-graphbolt": "GRAPHPREP_GRAPHBOLT_PYTHON",
}
_DISPATCH = "dgl, dispatch"
_HOW = {"glt": "RandomPartitioner", "pyg": "Partitioner, METIS replaced", "distdgl": "partition_graph, random"}


def peer_python(peer: str, default: str) -> str:
    """Return the Python that has a peer: DGL wants an older NumPy, its tools GraphBolt, which wants an older torch."""
    return os.environ.get(_PYTHONS.get(peer, ""), default)


def trainer_case(target: str, given: Input, peers: Peers) -> Case:
    """Return the case of a target: a store with features to partitions at random."""
    flags = ("--to", target, "--partitions", NUM_PARTS, "--partition-by", "random", "--drop-unsupported", "--quiet")
    check = partial(_check, target, given, peers)
    sides = [_side("graphprep", given, lambda out: graphprep_command("export", given.path, out, *flags), check)]
    sides.append(_side("graphprep 512MiB", given, lambda out: _limited(given, out, flags), check))
    missing, bars = {}, []
    name = f"{PEERS[target]}, {_HOW[target]}"
    if target in peers.versions:
        arrays = given.path.parent / "arrays"
        sides.append(_side(name, given, lambda out: _command(target, peers, arrays, out, NUM_PARTS), check))
        bars = [Bar(name, "graphprep", what, least=1.0) for what in ("wall_s", "private_bytes")]
    else:
        missing = {PEERS[target]: peers.missing[target]}
    return Case(
        f"export-{target}", f"store to {NUM_PARTS} partitions for {PEERS[target]}", tuple(sides), tuple(bars), missing, 3
    )


def dispatch_case(given: Input, peers: Peers) -> Case:
    """Return the case of a chunked graph to partitions for DGL, at random, which its own tools make of it, too."""

    def command(out: Path, *flags: str) -> list[str]:
        parts = ("--partitions", NUM_PARTS, "--partition-by", "random", "--export", f"distdgl={out / 'files'}")
        return graphprep_command("convert", "-q", given.path, out / "store", *parts, *flags)

    def check(out: Path) -> None:
        _check("distdgl", given, peers, out / "files")

    sides = [_side("graphprep", given, command, check)]
    sides.append(_side("graphprep 512MiB", given, lambda out: command(out, "--memory-limit", "512MiB"), check))
    missing, bars = {}, []
    if "dispatch" in peers.versions:
        script = [peer_python("dispatch", peers.python), *peers.command("dgl_dispatch.py", given.path)[1:]]
        sides.append(_side(_DISPATCH, given, lambda out: [*script, str(out / "files"), str(NUM_PARTS)], check))
        bars = [Bar(_DISPATCH, "graphprep", what, least=1.0) for what in ("wall_s", "private_bytes")]
    else:
        missing = {_DISPATCH: peers.missing["dispatch"]}
    title = f"chunked graph to {NUM_PARTS} partitions for dgl"
    return Case("export-dispatch", title, tuple(sides), tuple(bars), missing, 3)


def _limited(given: Input, out: Path, flags: tuple[object, ...]) -> list[str]:
    return graphprep_command("export", given.path, out, *flags, "--memory-limit", "512MiB")


def _side(name: str, given: Input, command: object, check: object) -> Side:
    return Side(name, command, check, given.num_edges, given.num_bytes)


def _command(target: str, peers: Peers, *args: object) -> list[str]:
    command = peers.command(_SCRIPT, "dgl" if target == "distdgl" else target, *args)
    return [peer_python(target, peers.python), *command[1:]]


def _check(target: str, given: Input, peers: Peers, out: Path) -> None:
    """Let the trainer's libraries read what was written, and compare edges with the generator's."""
    if target not in peers.versions:
        return
    done = subprocess.run(_command(target, peers, "check", out), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    for key, value in found.items():
        if value != given.expected[key]:
            raise CheckError(f"{out}: expected {key} {given.expected[key]}, found {value}")
