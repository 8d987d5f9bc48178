"""What is compared: for each case the commands of every side, how their outputs are checked, and what is to be reached."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from case import HERE, LIMITS, PEERS, Bar, Case, Check, CheckError, Input, Peers, Side, graphprep_command
from exports import deepgnn_case
from rewrites import ORDERS, PARTITIONERS, SCRIPT, SPLITS, STATISTICS, TRANSFORMS, rewrite_case
from samples import sample_case
from trainers import dispatch_case, peer_python, trainer_case

SOURCE_GB_PER_S = 0.4
_LARGEST_IN_MEMORY = 22  # scale of what table readers and SciPy hold in a few GB
_MIB = 1 << 20


@dataclass(frozen=True)
class Sizes:
    """How large the inputs are. Scales are those of R-MAT: 2^scale nodes, 16 edges a node."""

    name: str
    sweep: tuple[int, ...]  # text to store, by size
    scale: int  # partitions
    small_scale: int  # weights, graphs in memory, skew, numbers of partitions
    hetero: tuple[int, int]  # nodes, edges
    chunked: tuple[int, int]
    names: int  # edges
    start_up: int  # edges
    graph: tuple[int, int]  # transforms, orders, partitioners; line graphs

    def inputs(self) -> dict[str, str]:
        """Return the inputs by what they are for."""
        nodes, edges = self.hetero
        found = {f"edges-{scale}": f"rmat-{scale}" for scale in {*self.sweep, self.scale, self.small_scale}}
        found |= {f"deepgnn-{name}": f"hetero-{nodes}-{edges}-{name}" for name in ("edgelist", "json", "tsv")}
        found |= {"weighted": f"rmat-{self.small_scale}-weighted", "hub": f"hub-{self.small_scale}"}
        found |= {"chunked": f"chunked-{self.chunked[0]}-{self.chunked[1]}", "names": f"names-{self.names}"}
        found["stored"] = f"stored-{self.chunked[0]}-{self.chunked[1]}"
        found |= {f"dump-{name}": f"hetero-{self.chunked[0]}-{self.chunked[1]}-{name}" for name in ("edgelist", "json", "tsv")}
        found |= {"graph": f"graph-{self.graph[0]}", "line": f"graph-{self.graph[1]}"}
        return found | {"start": f"rmat-{self.start_up}"}


SIZES = {
    "tiny": Sizes("tiny", (8, 10), 10, 8, (200, 1000), (200, 1000), 2000, 8, (8, 6)),
    "quick": Sizes("quick", (16, 18, 20), 18, 18, (20_000, 200_000), (100_000, 1_000_000), 1_000_000, 16, (16, 8)),
    "full": Sizes(
        "full", (16, 18, 20, 22, 24), 22, 20, (200_000, 2_000_000), (1_000_000, 10_000_000), 10_000_000, 16, (18, 10)
    ),
}


_SCRIPTS = {
    "deepgnn-ge": ["deepgnn_ge.py"],
    "pyarrow + scipy, chunked": ["naive_chunked.py"],
    "polars + scipy": ["table_edges.py", "polars"],
    "pyarrow + scipy": ["table_edges.py", "pyarrow"],
    "polars, names": ["names_polars.py"],
    "duckdb": ["duckdb_sorted.py"],
    "networkit": ["graph_readers.py", "networkit"],
    "igraph": ["graph_readers.py", "igraph"],
    "torch-geometric": ["graph_readers.py", "pyg"],
    "glt": ["trainer_parts.py", "glt"],
    "pyg": ["trainer_parts.py", "pyg"],
    "distdgl": ["trainer_parts.py", "dgl"],
    "dispatch": ["dgl_dispatch.py"],
    "sampling-graphbolt": ["neighbor_samples.py", "graphbolt"],
    "sampling-pyg": ["neighbor_samples.py", "pyg"],
    **{name: [SCRIPT, name] for name in ("arrays", "scipy", "dgl", "pymetis")},
}


def find_peers(python: str) -> Peers:
    """Ask every peer script for its versions."""
    versions, missing = {}, {}
    for name, (script, *args) in _SCRIPTS.items():
        command = [sys.executable if name == "arrays" else peer_python(name, python), str(PEERS / script), *args, "versions"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            versions[name] = json.loads(done.stdout.splitlines()[-1])
        else:
            missing[name] = done.stderr.strip().splitlines()[-1]
    return Peers(python, versions, missing)


# ---- the cases


class Cases:
    """Makes the cases of one size."""

    def __init__(self, sizes: Sizes, folder: Path, peers: Peers) -> None:
        self._sizes = sizes
        self._peers = peers
        self._folder = folder

    def all(self, wanted: list[str]) -> Iterator[Case]:
        """Yield the cases whose names begin with one of ``wanted``; all without any."""
        for name, make in self._makers().items():
            if not wanted or any(name.startswith(one) for one in wanted):
                yield make()

    def names(self) -> list[str]:
        """Return the names of all cases."""
        return list(self._makers())

    def _makers(self) -> dict[str, Callable[[], Case]]:
        makers: dict[str, Callable[[], Case]] = {}
        for scale in self._sizes.sweep:
            makers[f"text-{scale}"] = partial(self._text, scale)
        makers |= {"weighted": self._weighted, "partitions": self._partitions, "readers": self._readers}
        for format in ("edgelist", "json", "tsv"):
            makers[f"deepgnn-{format}"] = partial(self._deepgnn, format)
        makers |= {"chunked": self._chunked, "names": self._names, "scale": self._scale, "parts": self._parts}
        makers |= {f"export-{target}": partial(self._trainer, target) for target in ("glt", "pyg", "distdgl")}
        makers["export-dispatch"] = self._dispatch
        for format in ("edgelist", "json", "tsv"):
            makers[f"export-deepgnn-{format}"] = partial(self._deepgnn_files, format)
        kinds = {"transform": TRANSFORMS, "order": ORDERS, "partitioner": PARTITIONERS, "split": SPLITS, "stats": STATISTICS}
        for kind, names in kinds.items():
            makers |= {f"{kind}-{name}": partial(self._rewrite, kind, name) for name in names}
        makers["sample"] = self._sample
        return makers | {"skew": self._skew, "slow-source": self._slow_source, "start-up": self._start_up}

    def _text(self, scale: int) -> Case:
        given = self._input(f"edges-{scale}")
        twins = Twins()
        sides = [self._convert("graphprep", given, twins)]
        if scale <= _LARGEST_IN_MEMORY:
            sides += self._tables(given, twins, "polars + scipy", "pyarrow + scipy")
        bars = []
        if scale == self._sizes.scale:
            bars.append(Bar("polars + scipy", "graphprep", "wall_s", least=3.0))
            bars.append(Bar("graphprep", "", "edges_per_s", least=20e6))
        return self._case(f"text-{scale}", "text to store", sides, bars, "polars + scipy", "pyarrow + scipy")

    def _weighted(self) -> Case:
        given = self._input("weighted")
        twins = Twins()
        sides = [self._convert("graphprep", given, twins, "--weight-col", "2")]
        sides += self._tables(given, twins, "polars + scipy", "pyarrow + scipy")
        return self._case("weighted", "text with weights to store", sides, [], "polars + scipy", "pyarrow + scipy")

    def _partitions(self) -> Case:
        """Sort text into 8 partitions under a memory limit, and beside it let duckdb sort it under 1 GB."""
        given = self._input(f"edges-{self._sizes.scale}")
        twins, ordered = Twins(), Twins()
        flags = ("--partitions", "8")
        sides = [self._convert("graphprep", given, twins, *flags)]
        sides += [self._convert(f"graphprep {limit}", given, twins, *flags, "--memory-limit", limit) for limit in LIMITS]
        by_id = (*flags, "--memory-limit", LIMITS[0], "--neighbor-order", "id")
        sides.append(self._convert(f"graphprep {LIMITS[0]}, by ID", given, ordered, *by_id))
        bars = []
        for limit, most in zip(LIMITS, (1 << 30, 256 * _MIB), strict=True):
            bars.append(Bar(f"graphprep {limit}", "graphprep", "wall_s", most=2.0))
            bars.append(Bar(f"graphprep {limit}", "", "private_bytes", most=most))
        if "duckdb" in self._peers.versions:
            bars += [Bar("duckdb 1GB", f"graphprep {limit}", "wall_s", least=3.0) for limit in LIMITS]
            sides.append(
                self._side(
                    "duckdb 1GB",
                    given,
                    lambda out: self._peers.command("duckdb_sorted.py", given.path, out, "1GB"),
                    partial(self._check_sorted, given),
                )
            )
        return self._case("partitions", "text to 8 partitions", sides, bars, "duckdb")

    def _readers(self) -> Case:
        """Convert text, and beside it read the same into graphs in memory, as libraries do."""
        given = self._input(f"edges-{self._sizes.small_scale}")
        sides = [self._convert("graphprep", given, Twins())]
        for name, reader in (("networkit", "networkit"), ("igraph", "igraph"), ("torch-geometric", "pyg")):
            if name in self._peers.versions:
                command = partial(self._peers.command, "graph_readers.py", reader, given.path)
                sides.append(self._side(name, given, command, partial(_check_counts, given)))
        return self._case("readers", "text to a graph", sides, [], "networkit", "igraph", "torch-geometric", rounds=3)

    def _deepgnn(self, format: str) -> Case:
        given = self._input(f"deepgnn-{format}")
        sides = [self._convert("graphprep", given, Twins(), "--format", format)]
        limit = f"graphprep {LIMITS[1]}"
        sides.append(self._convert(limit, given, Twins(), "--format", format, "--memory-limit", LIMITS[1]))
        bars = []
        if "deepgnn-ge" in self._peers.versions:
            for name, how in (("deepgnn-ge, decoder + writer", "direct"), ("deepgnn-ge converter", "converter")):
                command = partial(self._peers.command, "deepgnn_ge.py", how, format, given.path)
                sides.append(self._side(name, given, command, partial(_check_deepgnn, given)))
            bars.append(Bar("deepgnn-ge, decoder + writer", "graphprep", "cpu_s", least=20.0))
        return self._case(f"deepgnn-{format}", f"DeepGNN {format} to store", sides, bars, "deepgnn-ge", rounds=3)

    def _chunked(self) -> Case:
        given = self._input("chunked")
        twins = Twins()
        sides = [self._convert("graphprep", given, twins, "--partitions", "4")]
        peer = "pyarrow + scipy, chunked"
        bars = [Bar("graphprep", "", "wall_s", most=5.0), Bar("graphprep", "", "private_bytes", most=1 << 30)]
        if peer in self._peers.versions:
            command = lambda out: self._peers.command("naive_chunked.py", given.path, out, 4)  # noqa: E731
            sides.append(self._side(peer, given, command, twins.check))
            bars.append(Bar(peer, "graphprep", "wall_s", least=1.0))
        return self._case("chunked", "chunked graph to 4 partitions", sides, bars, peer)

    def _names(self) -> Case:
        given = self._input("names")
        twins = Twins("edges")
        sides = [self._convert("graphprep", given, twins, "--id-type", "string", "--header", "no")]
        peer, bars = "polars, names", []
        if peer in self._peers.versions:
            sides.append(self._side(peer, given, partial(self._peers.command, "names_polars.py", given.path), twins.check))
            bars.append(Bar(peer, "graphprep", "wall_s", least=3.0))
        return self._case("names", "edges between names to store", sides, bars, peer)

    def _trainer(self, target: str) -> Case:
        return trainer_case(target, self._input("stored"), self._peers)

    def _dispatch(self) -> Case:
        return dispatch_case(self._input("chunked"), self._peers)

    def _deepgnn_files(self, format: str) -> Case:
        return deepgnn_case(format, self._input(f"dump-{format}"), self._peers)

    def _rewrite(self, kind: str, name: str) -> Case:
        given = self._input("line" if name == "line-graph" else "graph")
        python = {one: peer_python(one, self._peers.python) for one in self._peers.versions} | {"arrays": sys.executable}
        return rewrite_case(kind, name, given, self._peers, python)

    def _sample(self) -> Case:
        python = {one: peer_python(one, self._peers.python) for one in self._peers.versions}
        return sample_case(self._input("graph"), self._peers, python)

    def _scale(self) -> Case:
        """Compare the rate of the smallest input that is large with that of the largest."""
        low, high = (20, 24) if 24 in self._sizes.sweep else (self._sizes.sweep[-2], self._sizes.sweep[-1])
        sides = [self._convert(f"2^{scale} nodes", self._input(f"edges-{scale}"), Twins()) for scale in (low, high)]
        bars = [Bar(sides[1].name, sides[0].name, "edges_per_s", least=0.6)]
        return self._case("scale", "cost of scale", sides, bars, rounds=3)

    def _parts(self) -> Case:
        given = self._input(f"edges-{self._sizes.small_scale}")
        numbers = (1, 8, 64)
        sides = [self._convert(f"{parts} partitions", given, Twins(), "--partitions", str(parts)) for parts in numbers]
        return self._case("parts", "number of partitions", sides, [], rounds=3)

    def _skew(self) -> Case:
        plain, hub = self._input(f"edges-{self._sizes.small_scale}"), self._input("hub")
        sides = [self._convert("R-MAT", plain, Twins()), self._convert("30 % in one node", hub, Twins())]
        return self._case("skew", "cost of skew", sides, [Bar(sides[1].name, sides[0].name, "wall_s", most=1.5)])

    def _slow_source(self) -> Case:
        """Convert stdin from a source that is as slow as a network; the other side takes what the source by itself takes."""
        given = self._input(f"edges-{self._sizes.scale}")
        source = shlex.join([sys.executable, str(HERE / "throttle.py"), str(given.path), str(SOURCE_GB_PER_S)])

        def convert(out: Path) -> list[str]:
            return ["bash", "-o", "pipefail", "-c", f"{source} | {shlex.join(graphprep_command('convert', '-q', '-', out))}"]

        sides = [
            self._side("graphprep", given, convert, partial(check_store, given)),
            self._side("the source", given, lambda out: ["bash", "-c", f"{source} > /dev/null"], lambda out: None),
        ]
        bars = [Bar("graphprep", "the source", "wall_s", most=1.15)]
        return self._case("slow-source", f"a source of {SOURCE_GB_PER_S} GB/s", sides, bars, rounds=3)

    def _start_up(self) -> Case:
        given = self._input("start")
        app = [sys.executable, str(PEERS / "typer_app.py")]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "typer app --help": [*app, "--help"],
            "typer app --version": [*app, "--version"],
            "graphprep --help": graphprep_command("--help"),
            "graphprep --version": graphprep_command("--version"),
        }
        sides = [Side(name, partial(_ignore, command), lambda out: None, 0, 0) for name, command in commands.items()]
        million = f"convert of {given.num_edges:,} edges"
        sides.append(self._convert(million, given, Twins()))
        bars = [Bar(f"graphprep {flag}", f"typer app {flag}", "wall_s", most=1.5) for flag in ("--help", "--version")]
        return self._case("start-up", "start-up", sides, [*bars, Bar(million, "", "wall_s", most=1.0)])

    # ---- their parts

    def _input(self, purpose: str) -> Input:
        """Return an input; make it where it is not there from an earlier run."""
        name = self._sizes.inputs()[purpose]
        if not (self._folder / name / "expected.json").exists():
            print(f"making {name} in {self._folder} ...", flush=True)
            subprocess.run([sys.executable, str(HERE / "inputs.py"), str(self._folder), name], check=True)
        return Input.find(self._folder, name)

    def _side(self, name: str, given: Input, command: Callable[[Path], list[str]], check: Check) -> Side:
        return Side(name, command, check, given.num_edges, given.num_bytes)

    def _convert(self, name: str, given: Input, twins: Twins, *flags: str) -> Side:
        """Return graphprep's side; its store is compared with the generator's counts, and its arrays with the other sides'."""

        def check(out: Path) -> None:
            check_store(given, out)
            twins.check(out)

        return self._side(name, given, lambda out: graphprep_command("convert", "-q", given.path, out, *flags), check)

    def _tables(self, given: Input, twins: Twins, *names: str) -> Iterator[Side]:
        for name in names:
            if name in self._peers.versions:
                command = partial(self._peers.command, "table_edges.py", name.split()[0], given.path)
                yield self._side(name, given, command, twins.check)

    def _case(self, name: str, title: str, sides: Iterable[Side], bars: Iterable[Bar], *peers: str, rounds: int = 100) -> Case:
        missing = {peer: self._peers.missing[peer] for peer in peers if peer in self._peers.missing}
        sides = tuple(sides)
        known = {side.name for side in sides} | {""}
        return Case(name, title, sides, tuple(bar for bar in bars if {bar.of, bar.over} <= known), missing, rounds)

    def _check_sorted(self, given: Input, out: Path) -> None:
        done = subprocess.run(self._peers.command("duckdb_sorted.py", "check", out), capture_output=True, text=True, check=True)
        expected = given.expected
        wanted = {"num_edges": given.num_edges, "checksum": expected["checksum"]["_N:_E:_N"], "sorted": True}
        if json.loads(done.stdout) != wanted:
            raise CheckError(f"{out}: expected {wanted}, found {done.stdout}")


# ---- checks


def check_store(given: Input, out: Path) -> None:
    """Compare a store's counts and edge checksums with those of the generator."""
    metadata = json.loads((out / "metadata.json").read_text())
    found = {
        "num_nodes": sum(metadata["num_nodes_per_type"]),
        "num_edges": dict(zip(metadata["edge_type"], metadata["num_edges_per_type"], strict=True)),
        "checksum": {name: schema["checksum"] for name, schema in metadata["edge_schema"].items()},
    }
    if given.expected["checksum"] is None:  # those of names are not computed
        found["checksum"] = None
    if found != given.expected:
        raise CheckError(f"{out}: expected {given.expected}, found {found}")


def _check_deepgnn(given: Input, out: Path) -> None:
    meta = json.loads((out / "meta.json").read_text())
    found = (meta["node_count"], meta["edge_count"])
    if found != (given.expected["num_nodes"], given.num_edges):
        raise CheckError(f"{out}: {found[0]} nodes and {found[1]} edges")


def _check_counts(given: Input, out: Path) -> None:
    found = json.loads((out / "counts.json").read_text())["num_edges"]
    if found not in (given.num_edges, given.distinct_edges):
        raise CheckError(f"{out}: {found} edges")


def _ignore(command: list[str], out: Path) -> list[str]:
    return command


class Twins:
    """Compares the arrays of all sides, byte for byte, with those of the first output; of names only those of the edges."""

    def __init__(self, under: str = "") -> None:
        self._under = under
        self._files: dict[str, bytes] | None = None

    def check(self, out: Path) -> None:
        """Raise CheckError where an array differs."""
        found = {}
        for path in sorted(out.rglob("*.npy")):
            if self._under not in path.parts and self._under:
                continue
            with path.open("rb") as file:
                found[str(path.relative_to(out))] = hashlib.file_digest(file, "blake2b").digest()
        if self._files is None:
            self._files = found
        if found != self._files:
            differing = {name for name in found.keys() | self._files.keys() if found.get(name) != self._files.get(name)}
            raise CheckError(f"{out}: {', '.join(sorted(differing))} differ from those of graphprep")
