"""``mtx``: SciPy's reader and our own decoder read what was exported; so does a loop over lines."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store

import graphprep
from graphprep.testing.export_contract import ExporterContract

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

NUMBERS = [name for name in GRAPHS if name != "string_ids"]
OF_MTX = """%%MatrixMarket matrix coordinate real general
4 4 6
3 1 0.1
1 2 -2.5
4 4 1e-07
1 2 3
2 3 16777216
1 1 0
"""


class TestMtxContract(ExporterContract):
    target = "mtx"


def store_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "provenance.json"
    }


@pytest.mark.parametrize("options", [{"partitions": 3, "partition_by": "hash"}, {"layout": "csr", "partitions": 2}], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_matrices_are_the_graph(name, options, tmp_path):
    graph, out = GRAPHS[name](**options), tmp_path / "out"
    graphprep.export(str(make_store(graph, tmp_path)), str(out), "mtx", drop_unsupported=True)
    for edge_type, edges in graph.edges.items():
        path = out / f"{'__'.join(edge_type)}.mtx"
        lines = path.read_text().splitlines()
        assert lines[0].split()[-2] == ("real" if edges.weight else "pattern")
        assert lines[1].split() == [str(len(graph.nodes[end].ids)) for end in edge_type[::2]] + [str(len(edges.src))]
        entries = [line.split() for line in lines[2:]]
        maps = [out / "id_map" / f"{end}.npy" for end in edge_type[::2]]
        raw = [np.load(one) if one.exists() else np.arange(10**4) for one in maps]
        src, dst = (raw[end][np.array([int(entry[end]) - 1 for entry in entries], np.int64)] for end in (0, 1))
        weights = {edges.weight: np.array([entry[2] for entry in entries], np.float32)} if edges.weight else {}
        wanted = graph_edges(graph, edge_type)
        assert checksum(edge_type, Rows(src, dst, np.arange(len(entries)), weights)) == checksum(
            edge_type, wanted.only(weights)
        )
        dense = np.zeros(tuple(len(graph.nodes[end].ids) for end in edge_type[::2]))
        np.add.at(
            dense,
            tuple(np.array([int(entry[end]) - 1 for entry in entries], np.int64) for end in (0, 1)),
            weights.get(edges.weight, 1.0),
        )
        np.testing.assert_allclose(scipy.io.mmread(path).toarray(), dense, rtol=1e-6)


@pytest.mark.parametrize("options", [{}, {"partitions": 2}, {"layout": "both", "neighbor_order": "weight"}], ids=str)
def test_a_store_of_a_matrix_comes_back(options, tmp_path):
    (tmp_path / "first.mtx").write_text(OF_MTX)
    first, again = tmp_path / "first", tmp_path / "again"
    graphprep.convert(str(tmp_path / "first.mtx"), str(first), **options)
    graphprep.export(str(first), str(tmp_path / "out"), "mtx")
    (path,) = (tmp_path / "out").glob("*.mtx")
    graphprep.convert(str(path), str(again), **options)
    assert store_files(again) == store_files(first)


def test_whole_numbers_make_an_integer_matrix(tmp_path):
    edges = Edges(
        [0, 1, 1], [1, 2, 0], {"calls": np.array([3, -1, 2**40]), "weight": np.array([0.5, 1, 2], np.float32)}, "weight"
    )
    graph = Graph({"n": Nodes([0, 1, 2])}, {("n", "to", "n"): edges})
    graphprep.export(str(make_store(graph, tmp_path)), str(tmp_path / "out"), "mtx", weight="calls", drop_unsupported=True)
    assert (tmp_path / "out" / "n__to__n.mtx").read_text().splitlines() == [
        "%%MatrixMarket matrix coordinate integer general",
        "3 3 3",
        "1 2 3",
        "2 3 -1",
        "2 1 1099511627776",
    ]
