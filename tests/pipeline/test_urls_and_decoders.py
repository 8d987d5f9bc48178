"""URLs in and out, stdin, and decoders of other people, end to end."""

from __future__ import annotations

import functools
import json
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import fsspec
import numpy as np
import pytest
from golden.golden_cases import GOLDEN, SAMPLE_DATA, read_store

from graphprep.cli.main import run
from graphprep.convert.pipeline import convert
from graphprep.decoders import registry
from graphprep.model.errors import DataError, DecodeError, GraphprepError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import DeclaredNodes, Sources, Span
from graphprep.model.rows import RawEdges, RawNodes, RawRows, RawTexts, Relation


@pytest.fixture
def memory():
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    yield fs
    fs.store.clear()


@pytest.fixture
def server():
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(SAMPLE_DATA))
    handler.log_message = lambda *_: None
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def stored(memory, url):
    prefix = url.removeprefix("memory:/").rstrip("/") + "/"
    files = {path.removeprefix(prefix): memory.cat(path) for path in memory.find(prefix)}
    files.pop("provenance.json")
    return files


def test_memory_urls_in_and_out_write_the_golden_bytes(memory):
    case = json.loads((GOLDEN / "dtypes_defaults/case.json").read_text())
    memory.pipe("/in/part.edgelist", (SAMPLE_DATA / case["inputs"][0]).read_bytes())
    memory.pipe("/options.json", json.dumps(case["options"].pop("decoder_options")).encode())
    options = ConvertOptions(**case["options"], decoder_options={"decoder_options_file": "memory://options.json"})
    convert(["memory://in"], "memory://out/store", options)
    assert stored(memory, "memory://out/store") == read_store(GOLDEN / "dtypes_defaults/store")


def test_memory_overwrite_and_refusal(memory):
    memory.pipe("/in", b"0 1\n")
    convert(["memory://in"], "memory://out", ConvertOptions(format="edges"))
    before = stored(memory, "memory://out")
    with pytest.raises(GraphprepError, match="the output exists"):
        convert(["memory://in"], "memory://out", ConvertOptions(format="edges"))
    memory.pipe("/bad", b"0 x\n")
    with pytest.raises(GraphprepError, match="must be an integer"):
        convert(["memory://bad"], "memory://out", ConvertOptions(format="edges", overwrite=True))
    assert stored(memory, "memory://out") == before
    memory.pipe("/in", b"0 1\n1 0\n")
    convert(["memory://in"], "memory://out", ConvertOptions(format="edges", overwrite=True))
    assert stored(memory, "memory://out") != before


@pytest.mark.parametrize(
    ("name", "inputs"),
    [
        ("shop_json", ["shop/shop.jsonl"]),
        ("edges_plain_gz", ["edges/plain.txt.gz"]),
        ("edges_parquet", ["edges/columns.parquet"]),
    ],
)
def test_http_input_writes_the_golden_bytes(name, inputs, server, tmp_path):
    case = json.loads((GOLDEN / name / "case.json").read_text())
    assert case["inputs"] == inputs
    convert([f"{server}/{one}" for one in inputs], str(tmp_path / "out"), ConvertOptions(**case["options"]))
    assert read_store(tmp_path / "out") == read_store(GOLDEN / name / "store")


def test_http_chunked_graph(server, tmp_path):
    case = json.loads((GOLDEN / "shop_chunked/case.json").read_text())
    convert([f"{server}/{case['inputs'][0]}/metadata.json"], str(tmp_path / "out"), ConvertOptions(**case["options"]))
    assert read_store(tmp_path / "out") == read_store(GOLDEN / "shop_chunked/store")


def test_http_that_is_not_there(server, tmp_path):
    with pytest.raises(GraphprepError) as caught:
        convert([f"{server}/none.txt"], str(tmp_path / "out"), ConvertOptions(format="edges"))
    assert (caught.value.exit_code, str(caught.value).startswith(f"{server}/none.txt: ")) == (3, True)
    assert list(tmp_path.iterdir()) == []


def test_stdin(monkeypatch, tmp_path):
    with (SAMPLE_DATA / "shop/shop.jsonl").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        convert(["-"], str(tmp_path / "out"), ConvertOptions(format="json"))
    assert read_store(tmp_path / "out") == read_store(GOLDEN / "shop_json/store")


# ---- decoders of other people


@dataclass(frozen=True)
class PairsDecoder:
    """Decodes ``src>dst`` lines between nodes of type ``kind``."""

    kind: str = "n"

    name: ClassVar[str] = "pairs"

    def plan(self, storage, urls: Sequence[str]) -> Sources:
        return Sources(tuple(Span(url) for url in urls), nodes="records")

    def decode(self, block, places: bool = False) -> RawRows:
        lines = block.data.decode().splitlines()
        at = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1]
        try:
            pairs = np.array([[int(one) for one in line.split(">")] for line in lines], np.uint64).reshape(-1, 2)
        except ValueError:
            raise DecodeError("expected SRC>DST", at=0, fix="write two numbers with > between") from None
        loops = pairs[:, 0] == pairs[:, 1]
        nodes = RawNodes(pairs[loops, 0], np.zeros(loops.sum(), np.int32), (self.kind,), at=at[loops] if places else None)
        relations = np.zeros((~loops).sum(), np.int32)
        ends = pairs[~loops]
        placed = {"at_src": at[~loops], "at_dst": at[~loops], "record": np.full(len(ends), -1)} if places else {}
        edges = RawEdges(ends[:, 0].copy(), ends[:, 1].copy(), relations, (Relation("to"),), **placed)
        return RawRows(nodes, edges, num_records=len(lines))

    def read(self, handle, span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        yield from ()

    def widen(self, columns: Mapping[str, str]) -> PairsDecoder:
        return self


class TripleDecoder:
    """A decoder as DeepGNN's manual has users write them."""

    def decode(self, line: str):
        node, *others = line.split()
        yield int(node), -1, 0, 1.0, -1, -1, [np.array([float(node)], np.float32), None, "text"]
        for other in others:
            yield int(node), int(other), 1, 0.5, -1, -1, []


def test_a_decoder_named_by_its_class(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("3>3\n5>5\n3>5\n")
    monkeypatch.setitem(sys.modules, "pairs_module", sys.modules[__name__])
    options = ConvertOptions(decoder="pairs_module:PairsDecoder", decoder_options={"kind": "k"})
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    assert (summary.num_nodes, summary.num_edges) == ({"k": 2}, {"k:to:k": 1})
    (tmp_path / "in").write_text("3>3\n3>9\n")
    with pytest.raises(GraphprepError) as caught:
        convert([str(tmp_path / "in")], str(tmp_path / "out2"), options)
    assert str(caught.value).startswith(f"{tmp_path}/in:2:1: the edge's destination 9 is not a node")


def test_a_decoder_found_by_its_entry_point(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("1>1\n")
    monkeypatch.setitem(sys.modules, "pairs_module", sys.modules[__name__])
    mine = EntryPoint("pairs", "pairs_module:PairsDecoder", "graphprep.decoders")
    real = registry._registered
    monkeypatch.setattr(registry, "_registered", lambda: [*real(), mine])
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="pairs"))
    assert summary.num_nodes == {"n": 1}


def test_a_decoder_written_for_deepgnn(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("4 2\n2 4 4\n")
    monkeypatch.setitem(sys.modules, "triple_module", sys.modules[__name__])
    convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(decoder="triple_module:TripleDecoder"))
    part = tmp_path / "out/part-00000"
    assert np.load(part / "nodes/0/raw_ids.npy").tolist() == [2, 4]
    assert np.load(part / "nodes/0/data/feat_0.npy").tolist() == [[2.0], [4.0]]
    assert np.load(part / "nodes/0/data/feat_2.values.npy").tobytes() == b"texttext"
    assert np.load(part / "edges/0__1__0/csc/indptr.npy").tolist() == [0, 1, 3]
    assert np.load(part / "edges/0__1__0/csc/edge_ids.npy").tolist() == [0, 1, 2]
    assert np.load(part / "edges/0__1__0/weight.npy").tolist() == [0.5, 0.5, 0.5]
    options = ConvertOptions(decoder="triple_module:TripleDecoder", weight_dtype="float64", overwrite=True)
    convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    assert np.load(part / "nodes/0/weight.npy").dtype == np.float64


def test_a_users_decoder_that_breaks_is_told_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "in").write_text("4 2\n2 x\n")
    monkeypatch.setitem(sys.modules, "triple_module", sys.modules[__name__])
    with pytest.raises(GraphprepError) as caught:
        convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(decoder="triple_module:TripleDecoder"))
    assert str(caught.value).startswith(f"{tmp_path}/in:2:1: ")
    assert "invalid literal for int()" in str(caught.value)
    assert list(Path(tmp_path).iterdir()) == [tmp_path / "in"]


class NamesOrNumbers(PairsDecoder):
    """Decodes ``src>dst`` lines: numbers as numbers, and other words as texts, block by block."""

    def plan(self, storage, urls: Sequence[str]) -> Sources:
        spans = tuple(Span(url) for url in urls)
        return Sources(spans, nodes="ends", node_types=(DeclaredNodes("n", None),), edge_types=(Relation("to", "n", "n"),))

    def decode(self, block, places: bool = False) -> RawRows:
        pairs = [line.split(b">") for line in block.data.splitlines()]
        src, dst = (
            np.array([int(one) for one in ends], np.uint32) if all(map(bytes.isdigit, ends)) else RawTexts.of(ends)
            for ends in zip(*pairs, strict=True)
        )
        edges = RawEdges(src, dst, np.zeros(len(pairs), np.int32), (Relation("to", "n", "n"),))
        return RawRows(edges=edges, num_records=len(pairs))


@pytest.mark.parametrize("names_first", [False, True])
def test_one_type_has_numbers_or_names_not_both(tmp_path, monkeypatch, names_first):
    """Also where the numbers' edges are scattered while they are decoded."""
    (tmp_path / "1").write_text("alice>bob\n" if names_first else "1>2\n")
    (tmp_path / "2").write_text("1>2\n" if names_first else "alice>bob\n")
    monkeypatch.setitem(sys.modules, "names_module", sys.modules[__name__])
    options = ConvertOptions(decoder="names_module:NamesOrNumbers")
    with pytest.raises(DataError) as caught:
        convert([str(tmp_path / "1"), str(tmp_path / "2")], str(tmp_path / "out"), options)
    words = ("numbers", "strings") if names_first else ("strings", "numbers")
    assert str(caught.value) == (
        f"{tmp_path}/2: raw IDs of node type 'n' are {words[0]} here, but {words[1]} in {tmp_path}/1\n"
        "  fix: read them all as strings with --id-type string, or make them alike in the files"
    )


@pytest.mark.parametrize(
    ("url", "modules", "packages"),
    [
        ("gs://b/a", ["gcsfs"], "gcsfs"),
        ("abfs://c@a/x", ["adlfs"], "adlfs"),
        ("az://c/x", ["adlfs"], "adlfs"),
        ("webhdfs://h:1/a", ["requests"], "requests"),
        ("http://127.0.0.1:9/a", ["aiohttp", "requests"], "aiohttp requests"),
        ("sftp://h/a", ["paramiko"], "paramiko"),
        ("ssh://h/a", ["paramiko"], "paramiko"),
        ("smb://h/a/b", ["smbclient"], "smbprotocol"),
    ],
)
def test_a_driver_that_is_missing_is_told_with_what_to_install(url, modules, packages, monkeypatch, capsys):
    scheme = url.partition("://")[0]
    registered = sys.modules["fsspec.registry"]
    monkeypatch.delitem(registered._registry, scheme, raising=False)
    for name in [one for one in sys.modules if one.startswith("fsspec.implementations.")]:
        monkeypatch.delitem(sys.modules, name)
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    assert run(["info", url]) == 2
    error = f"error: {url}: the driver for {scheme}:// is not installed\n  fix: pip install {packages}\n"
    assert capsys.readouterr().err == error
