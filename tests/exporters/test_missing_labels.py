"""A missing label is -1, or NaN among floats, in every target that has no place for nothing; null and empty in those that have."""

import json

import numpy as np
import pytest

import graphprep

NODES = "id,y,z\n" + "".join(f"{i},{'' if i % 3 == 1 else i % 2},{'' if i % 3 == 1 else i / 2}\n" for i in range(6))
WHOLE, FLOATS = [0, -1, 0, 1, -1, 1], [0.0, np.nan, 1.0, 1.5, np.nan, 2.5]


@pytest.fixture(scope="module", params=[1, 2])
def store(request, tmp_path_factory):
    """Return a store of nodes and edges with labels of both kinds, of which each third is missing."""
    folder = tmp_path_factory.mktemp("labels")
    (folder / "n.csv").write_text(NODES)
    edges = [f"{i},{(i + 1) % 6},{line.partition(',')[2]}" for i, line in enumerate(NODES.splitlines()[1:])]
    (folder / "e.csv").write_text("src,dst,y,z\n" + "\n".join(edges) + "\n")
    graphprep.convert(
        nodes={"n": str(folder / "n.csv")},
        edges={"n:to:n": str(folder / "e.csv")},
        labels=["n:y", "n:z", "n:to:n:y", "n:to:n:z"],
        splits=["n:to:n:1/0/0"],
        out=folder / "store",
        partitions=request.param,
    )
    return folder / "store"


def test_npy(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "npy")
    for owner in ("nodes/n", "edges/n__to__n"):
        assert np.load(tmp_path / f"out/{owner}/data/y.npy").tolist() == WHOLE
        np.testing.assert_array_equal(np.load(tmp_path / f"out/{owner}/data/z.npy"), FLOATS)


def test_scipy(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "scipy")
    for owner in ("nodes/n", "edges/n__to__n"):
        ids = np.load(tmp_path / "out/edges/n__to__n/edge_ids.npy") if owner[0] == "e" else np.arange(6)
        assert np.load(tmp_path / f"out/{owner}/y.npy").tolist() == [WHOLE[i] for i in ids]
        np.testing.assert_array_equal(np.load(tmp_path / f"out/{owner}/z.npy"), [FLOATS[i] for i in ids])


def test_ogb(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "ogb", files="npy")
    edges, y, z = (np.load(tmp_path / f"out/split/train/{name}.npy") for name in ("edge", "y", "z"))
    assert edges[:, 0].tolist() == [0, 2, 3, 5], "without a label, an edge is in no set"
    assert y.tolist() == [WHOLE[src] for src in edges[:, 0]]
    np.testing.assert_array_equal(z, [FLOATS[src] for src in edges[:, 0]])


def test_parquet(store, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    graphprep.export(store, tmp_path / "out", "parquet")
    for path in ("nodes/n.parquet", "edges/n__to__n.parquet"):
        table = pq.read_table(tmp_path / "out" / path)
        assert table["y"].to_pylist() == [None if one == -1 else one for one in WHOLE]
        assert table["z"].to_pylist() == [None if one != one else one for one in FLOATS]


def test_edges(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "edges", header=True, drop_unsupported=True)
    (file,) = (tmp_path / "out").glob("n__to__n.*")
    head, *lines = (line.split(",") for line in file.read_text().splitlines())
    for line in lines:
        told = dict(zip(head, line, strict=True))
        assert (told["y"] == "", told["z"] == "") == (WHOLE[int(told["src"])] == -1,) * 2


def test_deepgnn_json(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "deepgnn-json")
    for line in (tmp_path / "out/graph.json").read_text().splitlines():
        node = json.loads(line)
        for one in (node, *node["edge"]):
            assert one["int64_feature"]["0"] == [WHOLE[node["node_id"]]]
            np.testing.assert_array_equal(one["double_feature"]["1"], [FLOATS[node["node_id"]]])


def test_deepgnn_tsv_and_edgelist(store, tmp_path):
    graphprep.export(store, tmp_path / "tsv", "deepgnn-tsv")
    graphprep.export(store, tmp_path / "list", "deepgnn-edgelist")
    rows = (tmp_path / "tsv/graph.tsv").read_text().splitlines()
    assert [row.count("i64:-1;d:nan") for row in rows] == [2 * (one == -1) for one in WHOLE]
    lines = (tmp_path / "list/graph.csv").read_text().splitlines()
    assert [line.count("int64,1,-1,float64,1,nan") for line in lines] == [one == -1 for one in WHOLE for _ in range(2)]


def test_deepgnn(store, tmp_path):
    graphprep.export(store, tmp_path / "out", "deepgnn")
    row = np.dtype([("y", "<i8"), ("z", "<f8")])
    found = [np.frombuffer(file.read_bytes(), row) for file in sorted((tmp_path / "out").glob("node_features_*.data"))]
    np.testing.assert_array_equal(np.concatenate(found)["y"], WHOLE)
    np.testing.assert_array_equal(np.concatenate(found)["z"], FLOATS)


@pytest.mark.parametrize("target", ["npy", "scipy"])
def test_labels_that_have_no_room_for_minus_one_are_int64(target, tmp_path):
    table = pytest.importorskip("pyarrow").table({"src": [0, 1], "dst": [1, 0], "ok": [True, None], "few": [None, 7]})
    table = table.set_column(3, "few", table["few"].cast("uint8"))
    graphprep.convert(edges={"n:to:n": table}, labels=["n:to:n:ok", "n:to:n:few"], out=tmp_path / "store")
    graphprep.export(tmp_path / "store", tmp_path / "out", target)
    ok, few = (np.load(next((tmp_path / "out").glob(f"edges/**/{name}.npy"))) for name in ("ok", "few"))
    assert (sorted(ok.tolist()), sorted(few.tolist()), ok.dtype, few.dtype) == ([-1, 1], [-1, 7], np.int64, np.int64)
