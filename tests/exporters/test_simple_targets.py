"""What holds for all targets that are plain files: stores on servers, without edge IDs, other dtypes, other partitions."""

from __future__ import annotations

from pathlib import Path

import fsspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store

import graphprep
from graphprep.model.errors import DataError

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

TARGETS = ("scipy", "npy", "parquet", "edges", "mtx", "metis")
HASHED = {"partitions": 3, "partition_by": "hash"}


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("target", TARGETS)
def test_a_store_on_a_server_gives_the_same_files(target, tmp_path):
    name = "homogeneous" if target == "metis" else "string_ids"
    store = make_store(GRAPHS[name](**HASHED), tmp_path)
    memory, url = fsspec.filesystem("memory"), f"memory://{tmp_path.name}-{target}"
    for path, data in files_of(store).items():
        memory.pipe(f"/{tmp_path.name}-{target}/{path}", data)
    for place, out in ((str(store), "local"), (url, "remote")):
        graphprep.export(place, str(tmp_path / out), target, drop_unsupported=True)
    assert files_of(tmp_path / "remote") == files_of(tmp_path / "local")
    memory.rm(f"/{tmp_path.name}-{target}", recursive=True)


@pytest.mark.parametrize("options", [{}, {**HASHED, "layout": "both"}], ids=str)
@pytest.mark.parametrize("target", TARGETS)
def test_stores_without_edge_ids_are_written(target, options, tmp_path):
    graph = GRAPHS["homogeneous"](edge_ids=False, **options)
    (edges,) = graph.edges.values()
    out = tmp_path / "out"
    graphprep.export(str(make_store(graph, tmp_path)), str(out), target, drop_unsupported=True)
    wanted = sorted(zip(edges.src, edges.dst, edges.columns[edges.weight].tolist(), strict=True))
    if target in ("scipy", "mtx"):
        path = out / f"paper__cites__paper.{'npz' if target == 'scipy' else 'mtx'}"
        matrix = scipy.sparse.load_npz(path).tocoo() if target == "scipy" else scipy.io.mmread(path).tocoo()
        found = zip(matrix.row.tolist(), matrix.col.tolist(), matrix.data.astype(np.float32).tolist(), strict=True)
    elif target == "npy":
        stem = out / "edges" / "paper__cites__paper"
        found = zip(*(np.load(stem / f"{name}.npy").tolist() for name in ("src", "dst", "weight")), strict=True)
    elif target == "parquet":
        table = pq.read_table(out / "edges" / "paper__cites__paper.parquet")
        found = zip(*(table[name].to_pylist() for name in ("src", "dst", edges.weight)), strict=True)
    elif target == "edges":
        lines = (out / "paper__cites__paper.txt").read_text().splitlines()
        found = ((int(u), int(v), float(np.float32(w))) for u, v, w, *_ in map(str.split, lines))
    else:
        return
    assert sorted(found) == wanted


@pytest.mark.parametrize("options", [{}, HASHED], ids=str)
@pytest.mark.parametrize("target", ["scipy", "npy", "parquet"])
def test_columns_get_other_dtypes(target, options, tmp_path):
    graph, out = GRAPHS["homogeneous"](**options), tmp_path / "out"
    (nodes,) = graph.nodes.values()
    store = make_store(graph, tmp_path)
    graphprep.export(str(store), str(out), target, feature_dtypes={"feat": "float16"})
    wanted = np.asarray(nodes.columns["feat"])[np.argsort(nodes.ids)].astype(np.float16)
    if target == "parquet":
        table = pq.read_table(out / "nodes" / "paper.parquet").sort_by("id")
        assert table["feat"].type.value_type == "halffloat"
        found = np.array(table["feat"].to_pylist(), np.float16)
    else:
        found = np.load(out / "nodes" / "paper" / ("feat.npy" if target == "scipy" else "data/feat.npy"))
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, wanted)


def test_a_number_that_does_not_fit_is_told(tmp_path):
    edges = Edges([0, 1], [1, 0], {"calls": np.array([1, 300])})
    graph = Graph({"n": Nodes([0, 1])}, {("n", "to", "n"): edges})
    with pytest.raises(DataError, match="300 does not fit int8"):
        graphprep.export(str(make_store(graph, tmp_path)), str(tmp_path / "out"), "scipy", feature_dtypes={"calls": "int8"})


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "metis"])
def test_another_partitioning_changes_no_file_of_edges_by_id(target, tmp_path):
    store = str(make_store(GRAPHS["heterogeneous"](), tmp_path))
    for name, given in (("one", {}), ("three", HASHED)):
        graphprep.export(store, str(tmp_path / name), target, drop_unsupported=True, **given)
    one, three = files_of(tmp_path / "one"), files_of(tmp_path / "three")
    for files in (one, three):
        files.pop("export.json")
    if target == "parquet":  # nodes stand in typed order
        one, three = ({name: data for name, data in files.items() if "nodes/" not in name} for files in (one, three))
    assert one == three
