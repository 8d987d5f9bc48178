"""What is compared: for each format the commands of every side, and how their outputs are checked."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PEERS = Path(__file__).parent / "peers"
LIMIT = "256MiB"
_CHUNKED_PARTS = 4


class CheckError(Exception):
    """An output is not what the generated graph says."""


@dataclass(frozen=True)
class Side:
    """One way to do a case's work. ``check`` raises CheckError for a wrong output; it gets the output folder."""

    name: str
    command: Callable[[Path], list[str]]
    check: Callable[[Path], None]


@dataclass(frozen=True)
class Case:
    """One input and all that read it. ``missing`` says which peers are not compared, and why."""

    name: str
    num_edges: int
    input_bytes: int
    sides: tuple[Side, ...]
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Peers:
    """The peers that this machine has: name to versions, and the others with the reason."""

    python: str
    versions: dict[str, dict[str, str]]
    missing: dict[str, str]


def find_peers(python: str) -> Peers:
    """Ask every peer script for its versions."""
    scripts = {
        "deepgnn-ge": ["deepgnn_ge.py", "versions"],
        "numpy": ["naive_chunked.py", "versions"],
        "polars+scipy": ["table_edges.py", "polars", "versions"],
        "pyarrow+scipy": ["table_edges.py", "pyarrow", "versions"],
    }
    versions, missing = {}, {}
    for name, (script, *args) in scripts.items():
        done = subprocess.run([python, str(PEERS / script), *args], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            versions[name] = json.loads(done.stdout.splitlines()[-1])
        else:
            missing[name] = done.stderr.strip().splitlines()[-1]
    missing["dgl"] = (
        "its partition tools are scripts of its repository, not of its wheel, and need torch; numpy stands in for them"
    )
    return Peers(python, versions, missing)


def make_cases(folder: Path, peers: Peers, wanted: list[str]) -> Iterator[Case]:
    """Yield the cases whose name begins with one of ``wanted``; all without any."""
    expected = json.loads((folder / "expected.json").read_text())
    for name, file in (("edgelist", "graph.edgelist"), ("json", "graph.jsonl"), ("tsv", "graph.tsv")):
        if _is_wanted(name, wanted):
            yield _deepgnn_case(name, folder / file, expected["deepgnn"], peers)
    if _is_wanted("chunked", wanted):
        yield _chunked_case(folder / "chunked", expected["chunked"], peers)
    for name, file, flags in (("edges", "edges.txt", []), ("edges-weighted", "edges-weighted.txt", ["--weight-col", "2"])):
        if _is_wanted(name, wanted):
            yield _edges_case(name, folder / file, flags, expected["edges"], peers)


def _is_wanted(name: str, wanted: list[str]) -> bool:
    return not wanted or name in wanted


def _case(name: str, source: Path, expected: dict, sides: list[Side], missing: dict[str, str]) -> Case:
    files = [file for file in source.rglob("*") if file.is_file()] if source.is_dir() else [source]
    size = sum(file.stat().st_size for file in files)
    return Case(name, sum(expected["num_edges"].values()), size, tuple(sides), missing)


def graphprep_command(*args: object) -> list[str]:
    """Return the command line of a fresh graphprep process."""
    return [sys.executable, "-m", "graphprep", *map(str, args)]


def _graphprep_sides(source: Path, flags: list[str], expected: dict, against: Callable[[Path], None]) -> list[Side]:
    """Return graphprep with its default memory and with the limit."""

    def check(out: Path) -> None:
        check_store(out, expected)
        against(out)

    return [
        Side("graphprep", lambda out: graphprep_command("convert", "-q", source, out, *flags), check),
        Side(
            f"graphprep {LIMIT}",
            lambda out: graphprep_command("convert", "-q", source, out, *flags, "--memory-limit", LIMIT),
            check,
        ),
    ]


# ---- the cases


def _deepgnn_case(name: str, source: Path, expected: dict, peers: Peers) -> Case:
    def check(out: Path) -> None:
        meta = json.loads((out / "meta.json").read_text())
        found = (meta["node_count"], meta["edge_count"])
        if found != (expected["num_nodes"], sum(expected["num_edges"].values())):
            raise CheckError(f"{out}: {found[0]} nodes and {found[1]} edges")

    def command(how: str) -> Callable[[Path], list[str]]:
        return lambda out: [peers.python, str(PEERS / "deepgnn_ge.py"), how, name, str(source), str(out)]

    sides = _graphprep_sides(source, ["--format", name], expected, lambda out: None)
    if "deepgnn-ge" in peers.versions:
        sides += [Side("deepgnn-ge, decoder + writer", command("direct"), check)]
        sides += [Side("deepgnn-ge converter", command("converter"), check)]
    return _case(name, source, expected, sides, _only(peers, "deepgnn-ge"))


def _chunked_case(source: Path, expected: dict, peers: Peers) -> Case:
    twins = _Twins()
    flags = ["--partitions", str(_CHUNKED_PARTS)]
    sides = _graphprep_sides(source, flags, expected, twins.check)
    if "numpy" in peers.versions:
        script = str(PEERS / "naive_chunked.py")
        command = [peers.python, script, str(source)]
        sides.append(Side("numpy, in memory", lambda out: [*command, str(out), str(_CHUNKED_PARTS)], twins.check))
    return _case("chunked", source, expected, sides, _only(peers, "numpy", "dgl"))


def _edges_case(name: str, source: Path, flags: list[str], expected: dict, peers: Peers) -> Case:
    twins = _Twins()
    sides = _graphprep_sides(source, flags, expected, twins.check)
    for reader in ("polars", "pyarrow"):
        if f"{reader}+scipy" in peers.versions:
            sides.append(_table_side(reader, source, peers, twins))
    return _case(name, source, expected, sides, _only(peers, "polars+scipy", "pyarrow+scipy"))


def _table_side(reader: str, source: Path, peers: Peers, twins: _Twins) -> Side:
    command = [peers.python, str(PEERS / "table_edges.py"), reader, str(source)]
    return Side(f"{reader} + scipy, in memory", lambda out: [*command, str(out)], twins.check)


def _only(peers: Peers, *names: str) -> dict[str, str]:
    return {name: peers.missing[name] for name in names if name in peers.missing}


# ---- checks


def check_store(out: Path, expected: dict) -> None:
    """Compare a store's counts and edge checksums with those of the generator."""
    metadata = json.loads((out / "metadata.json").read_text())
    num_nodes = sum(metadata["num_nodes_per_type"])
    num_edges = dict(zip(metadata["edge_type"], metadata["num_edges_per_type"], strict=True))
    checksums = {name: schema["checksum"] for name, schema in metadata["edge_schema"].items()}
    found = {"num_edges": num_edges, "checksum": checksums, "num_nodes": num_nodes}
    if found != expected:
        raise CheckError(f"{out}: expected {expected}, found {found}")


class _Twins:
    """Compares the arrays of all sides, byte for byte, with those of the first output."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] | None = None

    def check(self, out: Path) -> None:
        """Raise CheckError where an array differs."""
        found = {}
        for path in sorted(out.rglob("*.npy")):
            with path.open("rb") as file:
                found[str(path.relative_to(out))] = hashlib.file_digest(file, "blake2b").digest()
        if self._files is None:
            self._files = found
        if found != self._files:
            differing = {name for name in found.keys() | self._files.keys() if found.get(name) != self._files.get(name)}
            raise CheckError(f"{out}: {', '.join(sorted(differing))} differ from those of graphprep")
