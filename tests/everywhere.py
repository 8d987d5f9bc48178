"""Every command, as runs that read from one place and write to another: the table, the places, and what runs there give."""

from __future__ import annotations

import contextlib
import functools
import http.server
import itertools
import os
import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from remote_places import StubHdfs

import graphprep
from graphprep.cli.main import run as run_command

SAMPLE_DATA = Path(__file__).resolve().parent.parent / "sample_data"
_numbers = itertools.count()
_SECONDS = re.compile(r"[\d.]+ s$|\"elapsed_s\": [\s\S]*", re.MULTILINE)  # and what no two runs have in common


@dataclass(frozen=True)
class Run:
    """A command line: ``{in}`` is the folder of what is read, ``{out}`` that of what is written, none at first."""

    name: str
    arguments: str
    is_told: bool = False  # what it prints is compared
    lists: bool = False  # needs a listing of a folder

    def line(self, read: str, write: str) -> list[str]:
        """Return its arguments."""
        return [part.replace("{in}", read).replace("{out}", write) for part in self.arguments.split()]


_KARATE = "{in}/karate.csv"
_EXPORTS = {
    "deepgnn": "both",
    "deepgnn-edgelist": "both",
    "deepgnn-json": "both",
    "deepgnn-tsv": "both",
    "dgl-chunked": "both",
    "distdgl": "parts",
    "graphbolt": "both",
    "glt": "parts --option layout=CSC --option edge_assign=by_dst",
    "pyg": "both",
    "scipy": "both",
    "npy": "both",
    "parquet": "both",
    "edges": "both",
    "mtx": "both --option weight=weight",
    "metis": "both --option weight=weight",
}
_TRANSFORMS = {
    "to-bidirected": "{in}/both {out}/t to-bidirected self-loops drop",
    "subgraph of a file": "{in}/both {out}/t node-subgraph {in}/ids.npy --maps {out}/maps",
    "largest-component": "{in}/parts {out}/t largest-component",
    "layout": "{in}/parts {out}/t layout both sort-neighbors id",
}
RUNS = [
    Run("info: text", f"info {_KARATE} --json", is_told=True),
    Run("info: gz", "info {in}/plain.txt.gz --json", is_told=True),
    Run("info: parquet", "info {in}/columns.parquet --json", is_told=True),
    Run("info: chunked", "info {in}/chunked/metadata.json --json", is_told=True),
    Run("info: store", "info {in}/parts --json", is_told=True),
    Run("plan: text", f"plan {_KARATE} --format edges --partitions 2 --json", is_told=True),
    Run("validate: text", f"validate {_KARATE}", is_told=True),
    Run("validate: graph", "validate {in}/people/graph.json", is_told=True, lists=True),
    Run("validate: store", "validate {in}/parts", is_told=True),
    Run("stats: store", "stats {in}/parts --json", is_told=True),
    Run("stats: text", f"stats {_KARATE} --format edges --json", is_told=True),
    Run("stats: plot", "stats {in}/both --plot {out}/plots/karate.svg"),
    Run("ids: file", "ids {in}/parts --from raw --to local --file {in}/ids.txt", is_told=True),
    Run("ids: back", "ids {in}/parts 0 5 33 --from typed --to raw", is_told=True),
    Run("convert: text", f"convert {_KARATE} {{out}}/s --format edges --partitions 2"),
    Run("convert: gz", "convert {in}/plain.txt.gz {out}/s --format edges"),
    Run("convert: files", "convert {in}/plain.txt {in}/plain.txt.gz {out}/s --format edges --layout both"),
    Run("convert: folder", "convert {in}/split {out}/s --format edges", lists=True),
    Run("convert: glob", "convert {in}/split/* {out}/s --format edges", lists=True),
    Run("convert: parquet", "convert {in}/columns.parquet {out}/s"),
    Run("convert: json", "convert {in}/shop.jsonl {out}/s --format json"),
    Run("convert: tsv", "convert {in}/karate.tsv {out}/s --format tsv"),
    Run("convert: chunked", "convert {in}/chunked/metadata.json {out}/s"),
    Run("convert: graph file", "convert {in}/people/graph.json {out}/s", lists=True),
    Run("convert: matrix", "convert {in}/friends.mtx {out}/s"),
    Run("convert: archive", "convert {in}/graph.npz {out}/s"),
    Run("convert: metis", "convert {in}/town.graph {out}/s"),
    Run("convert: array", "convert {in}/pairs.npy {out}/s"),
    Run("convert: OGB", "convert {in}/papers {out}/s", lists=True),
    Run("convert: Neo4j", "convert {in}/film {out}/s --format neo4j", lists=True),
    Run(
        "convert: tables",
        "convert {out}/s --nodes person={in}/people/person.csv --edges person:knows:person={in}/people/knows",
        lists=True,
    ),
    Run("convert: file of partitions", f"convert {_KARATE} {{out}}/s --partition-by {{in}}/partitions.txt"),
    Run("convert: bad records", "convert {in}/bad.txt {out}/s --format edges --on-error skip --bad-records {out}/bad.jsonl"),
    Run("partition", "partition {in}/both {out}/s --partitions 3 --by hash"),
    Run("partition: file", "partition {in}/both {out}/s --by {in}/partitions.txt"),
    Run("partition: assignments", "partition {in}/both {out}/a --partitions 2 --by ldg --assignment-only"),
    Run("reorder", "reorder {in}/parts {out}/s --by in-degree"),
    Run("reorder: file", "reorder {in}/both {out}/s --by permutation:{in}/permutation.npy"),
    Run("sample", "sample {in}/parts {out}/f --seeds {in}/ids.txt --fanouts 4,3 --weight-column weight --copy-column weight"),
    Run("sample: parquet", "sample {in}/both {out}/f --seeds {in}/ids.txt --full 2 --direction both --format parquet"),
    Run("split: edges", "split {in}/both {out}/s 0.8/0.1/0.1 --by random --of edges --symmetric"),
    Run("split: nodes", "split {in}/parts {out}/s 20/5/5 --by nodes"),
    *(Run(f"transform: {name}", f"transform {rest}") for name, rest in _TRANSFORMS.items()),
    *(Run(f"export: {name}", f"export {{in}}/{rest} {{out}}/e --to {name}") for name, rest in _EXPORTS.items()),
    Run("clean", "clean {in}/parts {in}/split --json", is_told=True),
    Run("generate: arrays", "generate rmat {out}/a --format npy --scale 6 --edges 300 --seed 3"),
    Run("generate: csv", "generate grid {out}/grid.csv --rows 4 --cols 5"),
    Run("generate: parquet", "generate rmat {out}/r.parquet --scale 6 --weights"),
    Run("generate: chunked", "generate hetero {out}/c --format chunked --nodes 60 --edges 90"),
]
_INPUTS = {
    "karate.csv": "karate/karate.csv",
    "karate.tsv": "karate/karate.tsv",
    "partitions.txt": "karate/partitions.txt",
    "plain.txt": "edges/plain.txt",
    "plain.txt.gz": "edges/plain.txt.gz",
    "split": "edges/split",
    "columns.parquet": "edges/columns.parquet",
    "shop.jsonl": "shop/shop.jsonl",
    "chunked": "karate/chunked",
    "people": "people",
    "friends.mtx": "peers/friends.mtx",
    "graph.npz": "peers/graph.npz",
    "town.graph": "peers/town.graph",
    "pairs.npy": "peers/pairs.npy",
    "papers": "peers/papers",
    "film": "peers/film",
}


@functools.cache
def inputs() -> Mapping[str, bytes]:
    """Return what runs read, by path: samples, files of IDs, and stores."""
    import tempfile

    found = {path: data for name, sample in _INPUTS.items() for path, data in _files(SAMPLE_DATA / sample, name)}
    found["ids.txt"] = b"0\n33\n5\n"
    found["bad.txt"] = b"0 1\nx 2\n1 2\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        np.save(path / "ids.npy", np.arange(0, 30, 2))
        np.save(path / "permutation.npy", np.roll(np.arange(34), 3))
        graphprep.convert(SAMPLE_DATA / "karate/karate.csv", path / "both", layout="both")
        graphprep.convert(SAMPLE_DATA / "karate/karate.csv", path / "parts", partitions=2)
        found.update(_files(path))
    return found


def _files(path: Path, name: str = "") -> Iterator[tuple[str, bytes]]:
    if path.is_file():
        yield name, path.read_bytes()
    for one in sorted(path.rglob("*")):
        if one.is_file():
            yield "/".join(filter(None, (name, one.relative_to(path).as_posix()))), one.read_bytes()


# ---- places


class Place(Protocol):
    """Where files are put, and read by commands."""

    @property
    def url(self) -> str:
        """Return the URL of its folder."""

    def put_all(self, files: Mapping[str, bytes]) -> None:
        """Put files by their path."""

    def files(self) -> dict[str, bytes]:
        """Return all files by their path."""


class Folder:
    """A local folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = str(path)

    def put_all(self, files: Mapping[str, bytes]) -> None:
        for name, data in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def files(self) -> dict[str, bytes]:
        return dict(_files(self.path))


class Remote:
    """A folder of a file system of fsspec that no other test uses."""

    def __init__(self, fs: object, root: str, url: str) -> None:
        """Take a folder, as the file system calls it and as a URL, both with a slash at the end."""
        name = f"everywhere-{next(_numbers)}"
        self.fs, self.root, self.url = fs, root + name, url + name

    def put_all(self, files: Mapping[str, bytes]) -> None:
        for folder in sorted({f"{self.root}/{name}".rpartition("/")[0] for name in files}):
            self.fs.makedirs(folder, exist_ok=True)
        self.fs.pipe({f"{self.root}/{name}": data for name, data in files.items()})

    def files(self) -> dict[str, bytes]:
        self.fs.invalidate_cache()
        if not self.fs.exists(self.root):
            return {}
        found = self.fs.find(self.root)
        root = self.fs._strip_protocol(self.root).rstrip("/") + "/"
        return {name.removeprefix(root): self.fs.cat_file(name) for name in found}


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Folder) -> Iterator[str]:
    """Serve a local folder by HTTP, and give its URL."""
    handler = functools.partial(_Quiet, directory=folder.url)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def stub_hdfs(root: Path) -> Place:
    """Return a folder of the stub of HDFS."""
    return Remote(StubHdfs(), "/", "hdfs://namenode:8020/")


# ---- what a run gives


@dataclass(frozen=True)
class Outcome:
    """The exit code, what was printed where that is compared, and the files that were written."""

    code: int
    told: str
    files: dict[str, bytes]


def outcome(run: Run, read: str, write: Place, out: Callable[[], str]) -> Outcome:
    """Do a run; ``out`` gives what was printed since it was last called. Places are called by one name."""
    out()
    code = run_command(run.line(read, write.url))
    told = _SECONDS.sub("N s", out().replace(read, "IN").replace(write.url, "OUT"))
    files = {
        name: data.replace(read.encode(), b"IN").replace(write.url.encode(), b"OUT")
        for name, data in write.files().items()
        if name.rpartition("/")[2] != "provenance.json"
    }
    return Outcome(code, told if run.is_told or code else "", files)


def some(runs: list[Run]) -> list[Run]:
    """Return a tenth of the runs, the same each time: a server takes seconds for each. GRAPHPREP_SERVICE_RUNS=all: all of them."""
    if os.environ.get("GRAPHPREP_SERVICE_RUNS") == "all":
        return runs
    return random.Random(0).sample(runs, len(runs) // 10)
