"""Formats that are not read are told by name, with what converts them."""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import networkx as nx
import pytest

import graphprep
from graphprep.decoders.looks.text_head import find_data_dict
from graphprep.decoders.registry import sniff, tell_foreign
from graphprep.model.errors import DataError
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
        b"<a> <b> <c> .\n",
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
