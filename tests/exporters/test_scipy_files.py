"""``scipy``: what scipy.sparse.load_npz reads is the graph, whatever its IDs, partitions and layouts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes
from clients.graphs import GRAPHS, make_store

import graphprep
from graphprep.model.errors import UsageError
from graphprep.testing.export_contract import ExporterContract

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

NUMBERS = [name for name in GRAPHS if name != "string_ids"]


class TestScipyContract(ExporterContract):
    target = "scipy"


def raw_of(out: Path, name: str, count: int) -> np.ndarray:
    """The raw ID of every node: its own number, or what the map says."""
    path = out / "id_map" / f"{name}.npy"
    return np.load(path) if path.exists() else np.arange(count)


def read_edges(out: Path, edge_type, columns, weight) -> Rows:
    stem = "__".join(edge_type)
    matrix = scipy.sparse.load_npz(out / f"{stem}.npz")
    coo = matrix.tocoo()
    if matrix.format == "csc":
        assert coo.col.tolist() == np.repeat(np.arange(matrix.shape[1]), np.diff(matrix.indptr)).tolist()
    src, dst = (
        raw_of(out, end, size)[ids] for end, size, ids in zip(edge_type[::2], matrix.shape, (coo.row, coo.col), strict=True)
    )
    found = {name: np.load(out / "edges" / stem / f"{name}.npy") for name in columns if name != weight}
    if weight in columns:
        found[weight] = coo.data
    else:
        assert (coo.data == 1).all()
    return Rows(src, dst, np.load(out / "edges" / stem / "edge_ids.npy").astype(np.int64), found)


HASHED, BY_SOURCE = {"partitions": 3, "partition_by": "hash"}, {"layout": "csr", "partitions": 2}


@pytest.mark.parametrize(("format", "options"), [("csc", HASHED), ("csr", {}), ("coo", BY_SOURCE)], ids=str)
@pytest.mark.parametrize("name", NUMBERS)
def test_scipy_has_the_graph(name, format, options, tmp_path):
    graph = GRAPHS[name](**options)
    out = tmp_path / "out"
    graphprep.export(str(make_store(graph, tmp_path)), str(out), "scipy", format=format, drop_unsupported=True)
    assert json.loads((out / "export.json").read_text())["dropped"] == []
    for edge_type, edges in graph.edges.items():
        wanted = graph_edges(graph, edge_type)
        found = read_edges(out, edge_type, wanted.columns, edges.weight)
        assert scipy.sparse.load_npz(out / f"{'__'.join(edge_type)}.npz").format == format
        assert checksum(edge_type, found) == checksum(edge_type, wanted)
    for node_type, nodes in graph.nodes.items():
        wanted = graph_nodes(graph, node_type)
        names = [one for one in wanted.columns if one != nodes.split]
        columns = {one: np.load(out / "nodes" / node_type / f"{one}.npy") for one in names}
        found = Rows(raw_of(out, node_type, len(nodes.ids)), columns=columns)
        assert checksum(node_type, found) == checksum(node_type, wanted.only(names))


@pytest.mark.parametrize("format", ["csc", "csr", "coo"])
def test_the_layouts_of_a_store_change_no_file(format, tmp_path):
    found = []
    for layout in ("both", "csc", "csr"):
        out = tmp_path / layout / "out"
        store = make_store(GRAPHS["homogeneous"](layout=layout), tmp_path / layout)
        graphprep.export(str(store), str(out), "scipy", format=format)
        found.append({str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()})
    assert "paper__cites__paper.npz" in found[0]
    assert found[0] == found[1] == found[2]


def test_raw_ids_that_are_dense_stay(tmp_path):
    graph = GRAPHS["homogeneous"](partitions=3, partition_by="hash")
    store = make_store(graph, tmp_path)
    graphprep.export(str(store), str(tmp_path / "raw"), "scipy")
    assert not (tmp_path / "raw" / "id_map").exists()
    edges = graph.edges["paper", "cites", "paper"]
    dense = np.zeros((40, 40), np.float32)
    np.add.at(dense, (edges.src, edges.dst), edges.columns[edges.weight])
    np.testing.assert_allclose(scipy.sparse.load_npz(tmp_path / "raw" / "paper__cites__paper.npz").toarray(), dense, rtol=1e-5)
    graphprep.export(str(store), str(tmp_path / "typed"), "scipy", ids="typed")
    raw = np.load(tmp_path / "typed" / "id_map" / "paper.npy")
    assert sorted(raw.tolist()) == list(range(40)) != raw.tolist()


def test_another_weight_and_one_that_is_none(tmp_path):
    store = make_store(GRAPHS["heterogeneous"](), tmp_path)
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "scipy", weight="price")
    assert str(caught.value).startswith("option weight: there is no edge column 'price'\n  fix: use one of feat")
    with pytest.raises(UsageError, match="'feat' is not one number an edge"):
        graphprep.export(str(store), str(tmp_path / "out"), "scipy", weight="feat")


def test_compressed_archives_are_smaller_and_the_same(tmp_path):
    store = make_store(GRAPHS["homogeneous"](400, 3000), tmp_path)
    sizes = []
    for compressed in (False, True):
        out = tmp_path / str(compressed)
        graphprep.export(str(store), str(out), "scipy", compressed=compressed)
        sizes.append((out / "paper__cites__paper.npz").stat().st_size)
    found = [scipy.sparse.load_npz(tmp_path / str(one) / "paper__cites__paper.npz") for one in (False, True)]
    assert (found[0] != found[1]).nnz == 0
    assert sizes[1] < sizes[0]
