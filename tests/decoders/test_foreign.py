"""Formats that are not read are told by name, with what converts them."""

from __future__ import annotations

import json
import pickle
import shutil
import sqlite3
import subprocess
import time
import zipfile

import networkx as nx
import pytest

import graphprep
from graphprep.decoders.looks.text_head import find_data_dict, guess_header
from graphprep.decoders.registry import sniff, tell_foreign
from graphprep.model.errors import DataError, UsageError
from graphprep.model.protocols import SniffedFile
from graphprep.storage.read.urls import Storage

PYTHON = "convert it in Python: graphprep.convert(networkx.{}(FILE), OUT)"
IGRAPH = "; igraph.Graph.{}(FILE).to_networkx() reads it, too"


def small() -> nx.Graph:
    graph = nx.Graph()
    graph.add_edge("ann", "bob", weight=2.5)
    graph.add_edge("bob", "cy the third", weight=4.0)
    return graph


def check_remedy(fix: str, path: str, out: str) -> None:
    """Do what the message says, and look whether edges have both directions and their weights."""
    command = fix.partition("Python: ")[2].partition(";")[0]
    eval(command, {"graphprep": graphprep, "networkx": nx, "json": json, "FILE": path, "OUT": out})
    graph = graphprep.load(out)
    assert (graph.num_nodes(), graph.num_edges()) == (3, 4)
    assert sorted(graph.column(("_N", "_E", "_N"), "weight")) == [2.5, 2.5, 4.0, 4.0]


def written(path, write) -> str:
    write(small(), str(path))
    return str(path)


@pytest.mark.parametrize(
    ("write", "what", "fix"),
    [
        (nx.write_graphml_xml, "a GraphML file", PYTHON.format("read_graphml") + IGRAPH.format("Read_GraphML")),
        (nx.write_gml, "a GML file", PYTHON.format("read_gml") + IGRAPH.format("Read_GML")),
        (nx.write_gexf, "a GEXF file", PYTHON.format("read_gexf")),
        (nx.write_pajek, "a Pajek file", PYTHON.format("read_pajek") + IGRAPH.format("Read_Pajek")),
    ],
)
def test_files_that_networkx_writes_and_their_remedy(tmp_path, write, what, fix):
    path = written(tmp_path / "g", write)
    with Storage() as storage, pytest.raises(DataError) as caught:
        sniff(storage, [path])
    assert str(caught.value) == f"{path}: this is {what}, which is not read\n  fix: {fix}"
    check_remedy(caught.value.fix, path, str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("written", "name", "reader"),
    [
        (nx.node_link_data(small(), edges="links"), "node-link", "node_link_graph(json.load(open(FILE)), edges='links')"),
        (nx.node_link_data(small(), edges="edges"), "node-link", "node_link_graph(json.load(open(FILE)), edges='edges')"),
        (nx.adjacency_data(small()), "adjacency", "adjacency_graph(json.load(open(FILE)))"),
        (nx.cytoscape_data(small()), "Cytoscape", "cytoscape_graph(json.load(open(FILE)))"),
    ],
)
def test_json_that_networkx_writes_and_its_remedy(tmp_path, written, name, reader):
    path = tmp_path / "g.json"
    path.write_text(json.dumps(written))
    with Storage() as storage, pytest.raises(DataError) as caught:
        sniff(storage, [str(path)])
    assert str(caught.value) == (
        f"{path}: this is networkx's {name} JSON, one document with all of a graph, which is not read\n"
        f"  fix: convert it in Python: graphprep.convert(networkx.{reader}, OUT)"
    )
    check_remedy(caught.value.fix, str(path), str(tmp_path / "out"))


@pytest.mark.parametrize(
    ("text", "line", "weights"),
    [
        ("c roads\nc\np sp 3 2\na 1 2 7\na 2 3 9\n", "a", [7, 9]),
        ("c a queen\np edge 3 2\ne 1 2\ne 2 3\n", "e", None),
        ("p col 3 2\ne 1 2\ne 2 3\n", "e", None),
    ],
)
def test_dimacs_and_its_remedy(tmp_path, text, line, weights):
    path = tmp_path / "g.gr"
    path.write_text(text)
    with Storage() as storage, pytest.raises(DataError) as caught:
        sniff(storage, [str(path)])
    flag = "" if weights is None else " --weight-col 2"
    command = f"sed -n 's/^{line} //p' FILE"
    assert str(caught.value) == (
        f"{path}: this is a DIMACS file, whose edges begin with {line!r}, which is not read\n"
        f"  fix: give the edges alone: {command} | graphprep convert - OUT --format edges --index-base 1{flag}"
    )
    if shutil.which("sed") is None:
        return
    edges = tmp_path / "edges.txt"
    edges.write_bytes(
        subprocess.run(["/bin/sh", "-c", command.replace("FILE", str(path))], capture_output=True, check=True).stdout
    )
    options = {"index_base": 1} | ({"weight_col": "2"} if weights else {})
    graphprep.convert(str(edges), str(tmp_path / "out"), format="edges", decoder_options=options)
    graph = graphprep.load(tmp_path / "out")
    src, dst = graph.edges()[:2]
    assert (list(src), list(dst)) == ([0, 1], [1, 2])
    if weights:
        assert list(graph.column(("_N", "_E", "_N"), "weight")) == weights


@pytest.mark.parametrize(
    ("name", "head", "what"),
    [
        ("uk.graph", b"\x00\x12\xfe\x01" * 9, "a binary .graph of LAW or SNAP"),
        ("m.md", b"| node_id | node_type |\n| --------|-----------|\n| 1 | 0 |\n", "a table as Markdown has it"),
        ("g.gml", b'Creator "me"\nVersion 1\ngraph\n[\n directed 0\n', "a GML file"),
        ("g.net", b"% made by hand\n*vertices 3\n", "a Pajek file"),
    ],
)
def test_others(name, head, what):
    found = tell_foreign(SniffedFile(name, head, complete=True))
    assert found is not None
    assert found.what == what


@pytest.mark.parametrize(
    "head",
    [
        b"1 2\n",
        b"graph edge\n",
        b"p 1\n",
        b"c d\np q\n",
        b"a|b\nc|d\n",
        b'{"nodes": [], "edges": []}',
        b"<a> <b> <c>\n",
        b"",
        b"x [ 1\n",
    ],
)
def test_what_is_no_other_format(head):
    assert tell_foreign(SniffedFile("g", head, complete=True)) is None


@pytest.mark.parametrize(
    "head",
    [
        b"\n" * 60_000 + b"1 2\n",
        b"a b\n\n\n" * 20_000,
        b"a b \r\n \r\n" * 20_000,
        b"#  \t  \n" * 20_000 + b"x",
        b"# x\r\n" * 20_000 + b"x",
        b"c x\r\n" * 20_000 + b"x",
        b"c\r\n \r\n" * 20_000 + b"x",
        b"c " * 60_000,
        b"% \n\n" * 20_000 + b"x",
        b"|" * 120_000,
        b"a\n" * 60_000,
        b'a "b"\n' * 20_000,
    ],
)
def test_any_file_is_told_at_once(head):
    began = time.process_time()
    assert tell_foreign(SniffedFile("g", head, complete=True)) is None
    assert time.process_time() - began < 2


def test_a_long_line_of_dictionaries_is_told_at_once():
    began = time.process_time()
    assert find_data_dict(b'x, {"a": 1}' * 20_000 + b"]") == -1
    assert time.process_time() - began < 2


def test_the_header_of_many_columns_is_told_at_once():
    names = [f"{'ab'[at % 2] * 3}{at}" for at in range(6_000)]
    records = [names, *([str(at % 97 + row) for at in range(6_000)] for row in range(3))]
    began = time.process_time()
    assert guess_header(records, if_open=True, ends=range(6_000)).is_header
    assert time.process_time() - began < 2


RDF = b'# made by hand\n\n<http://a/1>\t<http://a/knows> _:b0 .\n<http://a/1> <http://a/name> "Ann \\"A\\" B"@en .\n_:b0<http://a/knows><http://a/1>.\n'
REMEDY = r"sed -nE 's/^\s*(<[^>]*>|_:\S+)\s*(<[^>]*>)\s*(<[^>]*>|_:\S+).*/\1\t\2\t\3/p' FILE > triples.tsv"
TO_NT = "rapper -i turtle FILE > OUT.nt, or rdflib's Graph().parse(FILE).serialize('OUT.nt', 'nt')"


@pytest.mark.parametrize("format", ["triples", "edges", "tsv", None])
@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (RDF, 3, "N-Triples"),
        (b'<http://a/1> <http://a/age> "7"^^<http://int> .\r\n', 1, "N-Triples"),
        (b'_:a <http://a/b> "it" <http://graph> . # why\n', 1, "N-Quads"),
        (b"<http://a/1> <http://a/knows> <http://a/2> <http://graph> .", 1, "N-Quads"),
        (b"@prefix a: <http://a/> .\na:x a:y a:z .\n", 1, "Turtle"),
        (b"#\nPREFIX a: <http://a/>\na:x a:y a:z .\n", 2, "Turtle"),
        (b"<http://a/1> <http://a/knows> <http://a/2> ;\n  <http://a/knows> <http://a/3> .\n", 1, "Turtle"),
    ],
)
def test_rdf_is_no_list_of_triples(tmp_path, format, text, line, what):
    path = tmp_path / "g.nt"
    path.write_bytes(text)
    with pytest.raises(DataError) as caught:
        graphprep.convert(path, tmp_path / "out", format=format)
    fix = (
        f"write it as N-Triples, whose message says how to go on: {TO_NT}"
        if what == "Turtle"
        else f'convert what this writes, without the literals, with format="triples": {REMEDY}'
    )
    assert str(caught.value) == f"{path}:{line}:1: this is {what} (RDF), which is not read\n  fix: {fix}"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text", [RDF, b'<http://a/1> <http://a/age> "7"^^<http://int> .\n', b"@prefix a: <http://a/> .\na:1 a:knows a:2 .\n"]
)
def test_rdf_is_no_table(tmp_path, text):
    path = tmp_path / "g.nt"
    path.write_bytes(text)
    for tables in ({"edges": {"n:e:n": path}}, {"nodes": {"n": path}}):
        with pytest.raises(DataError, match=r"g\.nt:\d:1: this is .* \(RDF\), which is not read"):
            graphprep.convert(out=tmp_path / "out", **tables)


def test_remedy_of_rdf(tmp_path):
    path = tmp_path / "g.nt"
    path.write_bytes(RDF.replace(b"_:b0 .", b"_:b0 <http://graph> ."))
    command = REMEDY.partition(" >")[0].replace("FILE", str(path))
    made = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True).stdout
    assert made == b"<http://a/1>\t<http://a/knows>\t_:b0\n_:b0\t<http://a/knows>\t<http://a/1>\n"


@pytest.mark.parametrize(
    "head",
    [
        b"<http://a/1>\t<http://a/knows>\t<http://a/2>\n",  # without the full stop: triples of names
        b"<a> <b>\n",
        b"prefix a\nbase b\n",
        b"_:a _:b .\n",
        b"ORC,ELF\nELF,MAN\n",
        b"DAFFY,A DUCK,pond\nDONALD,DUCK\n",
        b"n,m\n" * 64 + b"nustar,1\n" * 2,
    ],
)
def test_names_that_begin_like_other_formats(head):
    assert tell_foreign(SniffedFile("g", head, complete=True)) is None


def sqlite_file(path):
    with sqlite3.connect(path) as base:
        base.execute("create table edges (src, dst)")


def zip_file(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("g/edges.csv", "src,dst\n1,2\n")


def spreadsheet(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")


@pytest.mark.parametrize("format", [None, "edges", "json"])
@pytest.mark.parametrize(
    ("name", "content", "what", "remedy"),
    [
        ("g.db", sqlite_file, "a SQLite database", "sqlite3 -csv -header FILE"),
        ("g.pkl", pickle.dumps({1: [2]}), "a pickle of Python", "pickle.load"),
        ("g.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "a file of torch.save", "torch.load"),
        ("g.zip", zip_file, "a zip archive", "unzip FILE"),
        ("g.xlsx", spreadsheet, "an Excel file", "as CSV"),
        ("g.h5", b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file", "h5py.File(FILE)"),
        ("g.sg", b"\x01" + (4).to_bytes(8, "little") + (3).to_bytes(8, "little") + bytes(9), "a serialized graph", "-e OUT.el"),
        ("g.bin", 0xDD2E4FF046B4A13F.to_bytes(8, "little") + bytes(8), "a file of dgl.save_graphs", "dgl.load_graphs(FILE)"),
        ("g.orc", b"ORC\n\x06\x12\x04\x08\x02P\0", "an ORC file", "pyarrow.orc"),
        ("g.duckdb", bytes(8) + b"DUCK@" + bytes(7), "a DuckDB database", "COPY"),
        ("g.properties", b"graph.g.vertex-file = g.v\n", "the properties of a graph of LDBC Graphalytics", "the folder"),
        ("g.tar", b"edges.csv".ljust(257, b"\0") + b"ustar\x0000", "a tar archive", "tar -xf FILE"),
    ],
)
def test_binary_files_by_their_first_bytes(tmp_path, format, name, content, what, remedy):
    path = tmp_path / name
    path.write_bytes(content) if isinstance(content, bytes) else content(path)
    with pytest.raises(DataError) as caught:
        graphprep.convert(path, tmp_path / "out", format=format)
    assert str(caught.value).startswith(f"{path}: this is {what}")
    assert remedy in caught.value.fix
    if path.suffix != ".properties":  # text, which is a table as any
        with pytest.raises(DataError, match=what):
            graphprep.convert(nodes={"a": str(path)}, out=tmp_path / "out")


@pytest.mark.client("torch-geometric")
def test_files_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"a": torch.ones(2)}, tmp_path / "g.pt")
    with pytest.raises(DataError, match=r"g.pt: this is a file of torch.save"):
        graphprep.convert(tmp_path / "g.pt", tmp_path / "out")


def test_an_arrow_file_is_a_table(tmp_path):
    feather = pytest.importorskip("pyarrow.feather")
    arrow = pytest.importorskip("pyarrow")
    feather.write_feather(arrow.table({"src": [1], "dst": [2]}), tmp_path / "g.feather")
    with pytest.raises(UsageError, match="an Arrow file") as caught:
        graphprep.convert(tmp_path / "g.feather", tmp_path / "out")
    assert "SRC:REL:DST" in caught.value.fix


@pytest.mark.parametrize("format", ["tsv", "edgelist", "edges"])
def test_a_named_format_is_told_what_the_sniffer_tells(tmp_path, format):
    path = tmp_path / "m.tsv"
    path.write_text("| node_id | node_type |\n| --------|-----------|\n| 1 | 0 |\n")
    with pytest.raises(DataError, match="this is a table as Markdown has it, which is not read"):
        graphprep.convert(path, tmp_path / "out", format=format)


def test_long_lines_of_rdf_take_no_time():
    start = time.perf_counter()
    for head in (
        b"<a> <b> " + b"_:a" * 80_000,
        b"_:a" * 80_000,
        b'<a> <b> "' + b"\\a" * 80_000,
        b"<a> <b> _:a" + b".#" * 80_000,
    ):
        tell_foreign(SniffedFile("g", head, complete=False))
    assert time.perf_counter() - start < 2
