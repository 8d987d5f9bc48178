"""Edges of a split that messages do not pass over: graphs without them are those of an input without them, sets have them all."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from exporters.dgl_reader import read_graph, read_tensors
from exporters.graphbolt_reader import read_fused
from exporters.torch_reader import read_naively

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import UsageError
from graphprep.rewrite import run as store_run

pytestmark = pytest.mark.usefixtures("flags_named")

PARTS = ("train", "valid", "test", "")
HELD_OUT = {"train": (1, 2), "train+valid": (2,), "all": ()}
NUM_NODES, NUM_EDGES = 20, 90


@dataclasses.dataclass(frozen=True)
class Rows:
    """The edges of the input by edge ID: ends, the number of the part (3: none), and a feature that is unlike for all."""

    src: np.ndarray
    dst: np.ndarray
    part: np.ndarray
    feat: np.ndarray

    def kept(self, message_edges: str) -> np.ndarray:
        return np.flatnonzero(~np.isin(self.part, HELD_OUT[message_edges]))


def random_rows(seed: int = 0) -> Rows:
    rng = np.random.default_rng(seed)
    src, dst = (rng.integers(0, NUM_NODES, NUM_EDGES) for _ in range(2))
    part = np.where(rng.random(NUM_EDGES) < 0.5, 0, rng.integers(0, 4, NUM_EDGES))
    return Rows(src, dst, part, rng.permutation(NUM_EDGES) / 4)


def make_store(rows: Rows, folder: Path, keep: np.ndarray | None = None, **options: Any) -> Path:
    """Convert tables of nodes ``n`` and of edges of two types, of which the first has the split, or some of its edges."""
    folder.mkdir(parents=True)
    (folder / "n.csv").write_text("id,x\n" + "".join(f"{i},{i / 2}\n" for i in range(NUM_NODES)))
    lines = ["src,dst,w,t,f,tags,note,part\n"]
    for i in np.arange(NUM_EDGES) if keep is None else keep:
        tags, note = ";".join(str(i + k) for k in range(i % 4)), f"'{i}'" * (i % 3)
        lines.append(
            f"{rows.src[i]},{rows.dst[i]},{rows.feat[i] + 1},{int(rows.feat[i] * 4) % 7},{rows.feat[i]},[{tags}],{note},"
            f"{PARTS[rows.part[i]]}\n"
        )
    (folder / "to.csv").write_text("".join(lines))
    (folder / "plain.csv").write_text("src,dst\n" + "".join(f"{i},{NUM_NODES - 1 - i}\n" for i in range(NUM_NODES)))
    config = {
        "nodes": [{"type": "n", "files": "n.csv"}],
        "edges": [
            {"type": "n:to:n", "files": "to.csv", "weight_col": "w", "time_col": "t", "columns": {"tags": "list<int32>"}},
            {"type": "n:plain:n", "files": "plain.csv"},
        ],
        "splits": ["n:to:n:part"],
    }
    (folder / "graph.yaml").write_text(yaml.safe_dump(config))
    graphprep.convert(str(folder / "graph.yaml"), str(folder / "store"), **options)
    return folder / "store"


def export(store: Path, out: Path, target: str, **given: Any) -> graphprep.ExportSummary:
    return graphprep.export(str(store), str(out), target, drop_unsupported=True, **given)


def files(folder: Path, *but: str) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: data for name, data in found.items() if Path(name).name not in ("export.json", *but)}


# ---------------------------------------------------------------------------------------------------- the graph


@pytest.mark.parametrize("message_edges", ["train", "train+valid"])
@pytest.mark.parametrize("layout", ["csc", "csr", "both"])
def test_graphs_are_those_of_an_input_without_the_edges(tmp_path, layout, message_edges):
    """All kinds of columns, of which texts and lists have offsets, by any order and number of partitions."""
    rows = random_rows()
    options = {"layout": layout, "partitions": 3, "neighbor_order": "time", "partition_by": "modulo"}
    store = make_store(rows, tmp_path / "all", **options)
    other = make_store(rows, tmp_path / "some", rows.kept(message_edges), **options)
    for target in ("deepgnn", "scipy"):
        summary = export(store, tmp_path / target, target, message_edges=message_edges)
        export(other, tmp_path / f"{target}-wanted", target, message_edges="all")
        # edge IDs are those of the whole store
        assert files(tmp_path / target, "edge_ids.npy") == files(tmp_path / f"{target}-wanted", "edge_ids.npy")
        assert summary.num_edges == {"n:to:n": rows.kept(message_edges).size, "n:plain:n": NUM_NODES}


@pytest.mark.parametrize("target", ["deepgnn", "pyg", "graphbolt", "distdgl"])
def test_same_bytes_for_any_piece_and_layout(tmp_path, monkeypatch, target):
    store = make_store(random_rows(1), tmp_path / "csc", partitions=2)
    other = make_store(random_rows(1), tmp_path / "csr", partitions=2, layout="csr")
    export(store, tmp_path / "wanted", target)
    real = store_run.room_for

    def starved(*given: Any) -> Any:
        return dataclasses.replace(real(*given), piece_bytes=64, held_bytes=0, mapped_bytes=0)

    monkeypatch.setattr(store_run, "room_for", starved)
    export(store, tmp_path / "starved", target)
    export(other, tmp_path / "other", target)
    assert files(tmp_path / "starved") == files(tmp_path / "wanted") == files(tmp_path / "other")


def test_partitions_made_on_the_way_have_the_same_edges(tmp_path):
    rows = random_rows(2)
    made = make_store(rows, tmp_path / "made", partitions=3, partition_by="hash")
    export(made, tmp_path / "wanted", "deepgnn")
    export(make_store(rows, tmp_path / "one"), tmp_path / "found", "deepgnn", partitions=3, partition_by="hash")
    assert files(tmp_path / "found") == files(tmp_path / "wanted")


# ---------------------------------------------------------------------------------------------------- trainers


@pytest.mark.parametrize("message_edges", ["train", "train+valid", "all"])
def test_pyg_has_message_edges_and_the_edges_of_each_part(tmp_path, message_edges):
    rows = random_rows(3)
    export(make_store(rows, tmp_path / "in", layout="csr"), tmp_path / "out", "pyg", message_edges=message_edges)
    found = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")["n", "to", "n"]
    ids = found["edge_id"]
    assert sorted(ids.tolist()) == rows.kept(message_edges).tolist()
    assert found["edge_index"].tolist() == [rows.src[ids].tolist(), rows.dst[ids].tolist()]
    assert found["edge_attr"][:, 0].tolist() == rows.feat[ids].tolist()
    assert found["edge_train_mask"].tolist() == (rows.part[ids] == 0).tolist()
    found = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")["n", "to", "n"]
    for part, name in enumerate(("train", "val", "test")):
        wanted = np.flatnonzero(rows.part == part)
        assert found[f"{name}_edge_label_id"].tolist() == wanted.tolist()
        assert found[f"{name}_edge_label_index"].tolist() == [rows.src[wanted].tolist(), rows.dst[wanted].tolist()]
        assert found[f"{name}_edge_label_time"].tolist() == ((rows.feat[wanted] * 4).astype(int) % 7).tolist()


def test_pyg_partitions_have_the_sets_beside(tmp_path):
    rows = random_rows(4)
    store = make_store(rows, tmp_path / "in", partitions=2)
    export(store, tmp_path / "out", "pyg")
    sets = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")
    assert list(sets) == [("n", "to", "n")]
    wanted = np.flatnonzero(rows.part == 2)
    assert sets["n", "to", "n"]["test_edge_label_index"].tolist() == [rows.src[wanted].tolist(), rows.dst[wanted].tolist()]
    book = read_naively((tmp_path / "out/edge_map/n__to__n.pt").read_bytes(), "n__to__n")
    assert book.size == NUM_EDGES
    for part in range(2):
        graph = read_naively((tmp_path / f"out/part_{part}/graph.pt").read_bytes(), "graph")["n", "to", "n"]
        assert set(book[graph["edge_id"]].tolist()) <= {part}


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("edge_ids", [True, False])
def test_graphbolt_finds_features_by_the_ids_of_all_edges(tmp_path, layout, edge_ids):
    rows = random_rows(5)
    store = make_store(rows, tmp_path / "in", layout=layout, edge_ids=edge_ids)
    export(store, tmp_path / "out", "graphbolt")
    folder = tmp_path / "out/preprocessed"
    state = read_fused(folder / "fused_csc_sampling_graph.pt")
    tensors = state["independent_tensors"]
    features = np.load(next(folder.glob("edge_data/n__to__n/f.npy")))[:, 0]
    of_type = tensors["type_per_edge"] == int(state["edge_type_to_id"]["n:to:n"])
    ids = state["edge_attributes"]["_ORIGINAL_EDGE_ID"][of_type]
    dst = np.repeat(np.arange(NUM_NODES), np.diff(tensors["indptr"]))[of_type]
    found = sorted(zip(tensors["indices"][of_type].tolist(), dst.tolist(), features[ids].tolist(), strict=True))
    kept = rows.kept("train")
    assert found == sorted(zip(rows.src[kept].tolist(), rows.dst[kept].tolist(), rows.feat[kept].tolist(), strict=True))
    (task,) = yaml.safe_load((folder / "metadata.yaml").read_text())["tasks"]
    for part, key in enumerate(("train_set", "validation_set", "test_set")):
        seeds = np.load(tmp_path / "out" / task[key][0]["data"][0]["path"]).tolist()
        wanted = rows.part == part
        pairs = zip(rows.src[wanted].tolist(), rows.dst[wanted].tolist(), strict=True)
        assert sorted(map(tuple, seeds)) == sorted(pairs)


def test_distdgl_has_the_sets_in_its_own_ids(tmp_path):
    rows = random_rows(6)
    export(make_store(rows, tmp_path / "in", partitions=2, partition_by="hash"), tmp_path / "out", "distdgl")
    sets = read_tensors((tmp_path / "out/edge_sets.dgl").read_bytes())
    raw = np.concatenate([read_tensors((tmp_path / f"out/part{part}/orig_nids.dgl").read_bytes())["n"] for part in range(2)])
    for part, name in enumerate(("train", "val", "test")):
        wanted = np.flatnonzero(rows.part == part)
        assert raw[sets[f"n:to:n/{name}"]].tolist() == [rows.src[wanted].tolist(), rows.dst[wanted].tolist()]
    sizes = [read_graph((tmp_path / f"out/part{part}/graph.dgl").read_bytes()).edge_data["_ID"].size for part in range(2)]
    assert sum(sizes) == rows.kept("train").size + NUM_NODES


def test_glt_has_the_sets_by_type(tmp_path):
    rows = random_rows(7)
    export(make_store(rows, tmp_path / "in", partitions=2), tmp_path / "out", "glt", layout="CSR")
    for part, name in enumerate(("train", "val", "test")):
        found = read_naively((tmp_path / f"out/{name}-edges/n__to__n.pt").read_bytes(), "n__to__n")
        wanted = np.flatnonzero(rows.part == part)
        assert found.tolist() == [rows.src[wanted].tolist(), rows.dst[wanted].tolist()]
    ids = [read_naively((tmp_path / f"out/part{i}/graph/n__to__n/eids.pt").read_bytes(), "eids") for i in range(2)]
    assert sorted(np.concatenate(ids).tolist()) == rows.kept("train").tolist()


# ---------------------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("target", ["pyg", "graphbolt", "distdgl", "glt", "deepgnn", "deepgnn-json", "scipy", "npy", "parquet"])
def test_what_the_graph_is_without_is_said(tmp_path, target):
    rows = random_rows(8)
    options = {"layout": "CSR"} if target == "glt" else {}
    summary = export(make_store(rows, tmp_path / "in"), tmp_path / "out", target, **options)
    record = json.loads((tmp_path / "out/export.json").read_text())
    if target in ("scipy", "npy", "parquet"):
        told = " (--message-edges all)" if target == "scipy" else ""
        assert f"edge type 'n:to:n': the graph has its valid and test edges, too{told}" in summary.notes
        assert (summary.message_edges, summary.held_out, "held_out" in record) == ("all", {}, False)
        return
    counts = {name: int((rows.part == part).sum()) for part, name in ((1, "valid"), (2, "test"))}
    (note,) = [note for note in summary.notes if "the graph is without" in note]
    wanted = f"without {counts['valid']} valid and {counts['test']} test edges (--message-edges train); "
    assert wanted in note and ("take them from the store" in note) == target.startswith("deepgnn")
    assert summary.message_edges == record["message_edges"] == "train"
    assert summary.held_out == record["held_out"] == {"n:to:n": counts}
    assert list(record["edge_checksums"]) == ["n:plain:n"]


def test_convert_exports_message_edges_and_stores_all(tmp_path, capsys):
    lines = [f"{i},{(i + 1) % 6},{('train', 'valid', 'test')[i % 3]}\n" for i in range(6)]
    (tmp_path / "e.csv").write_text("src,dst,part\n" + "".join(lines))
    tables = ["--edges", f"n:to:n={tmp_path}/e.csv", "--split", "n:to:n:part"]
    for message_edges, kept in (("train", [0, 3]), ("train+valid", [0, 1, 3, 4]), ("all", list(range(6)))):
        store = tmp_path / f"{message_edges}-store"
        exports = ["--export", "pyg", "--message-edges", message_edges, "--json", "--quiet"]
        assert run(["convert", *tables, str(store), *exports]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["num_edges"] == {"n:to:n": 6}
        (exported,) = said["exports"]
        assert exported["num_edges"] == {"n:to:n": len(kept)}
        found = read_naively((tmp_path / f"{message_edges}-store-pyg/data.pt").read_bytes(), "data")
        assert sorted(found["edge_id"].tolist()) == kept
        sets = read_naively((tmp_path / f"{message_edges}-store-pyg/edge_sets.pt").read_bytes(), "edge_sets")
        assert sets["test_edge_label_id"].tolist() == [2, 5]


def test_a_split_that_is_left_out_still_tells_messages(tmp_path):
    """The graph is none that leaks, and the summary does not name sets that nobody wrote."""
    rows = random_rows(9)
    summary = export(make_store(rows, tmp_path / "in"), tmp_path / "out", "pyg", drop_columns=["part"])
    assert any(note.endswith("; nor are they anywhere else, as the split is left out") for note in summary.notes)
    found = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")["n", "to", "n"]
    assert sorted(found["edge_id"].tolist()) == rows.kept("train").tolist()
    assert not any("label" in name for name in found)


def test_labels_of_edges_go_with_the_sets(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,y,part\n" + "".join(f"{i},{i + 1},{i % 3},{'012'[i % 3]}\n" for i in range(9)))
    edges = {"type": "n:to:n", "files": "e.csv"}
    config = {"edges": [edges], "splits": ["n:to:n:part"], "labels": ["n:to:n:y"]}
    (tmp_path / "graph.yaml").write_text(yaml.safe_dump(config))
    graphprep.convert(str(tmp_path / "graph.yaml"), str(tmp_path / "store"))
    export(tmp_path / "store", tmp_path / "out", "pyg")
    found = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    assert found["edge_label"].tolist() == [0, 0, 0]
    sets = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")
    assert [sets[f"{name}_edge_label"].tolist() for name in ("train", "val", "test")] == [[0] * 3, [1] * 3, [2] * 3]


def test_targets_that_hold_all_edges_say_so(tmp_path):
    store = make_store(random_rows(), tmp_path / "in")
    with pytest.raises(UsageError) as caught:
        export(store, tmp_path / "out", "parquet", message_edges="train")
    assert caught.value.message == "--message-edges train: target 'parquet' holds all edges, by edge ID"
    assert caught.value.fix == "leave it out; where the target has columns, the split is one of them"


def test_a_graph_without_a_split_has_no_message_edges(tmp_path):
    (tmp_path / "e.csv").write_text("0,1\n1,2\n")
    graphprep.convert(str(tmp_path / "e.csv"), str(tmp_path / "store"))
    with pytest.raises(UsageError) as caught:
        export(tmp_path / "store", tmp_path / "out", "pyg", message_edges="train")
    assert caught.value.message == "--message-edges train: no edge type has a split"
    assert caught.value.fix == "leave it out, or make one: graphprep split"
    assert export(tmp_path / "store", tmp_path / "out", "pyg").message_edges == "all"


def test_what_the_graph_lacks_is_told_before_what_stands_where(tmp_path):
    """A terminal shows three lines of notes: those of edges and values that are not there come first."""
    text = "src,dst,time,w,part\n" + "".join(f"{i},{i + 1},{i},{i or ''},{part}\n" for i, part in enumerate(PARTS))
    (tmp_path / "e.csv").write_text(text)
    tables = ["--edges", f"n:to:n={tmp_path}/e.csv", "--time-col", "time", "--split", "n:to:n:part"]
    assert run(["convert", str(tmp_path / "store"), *tables, "--quiet"]) == 0
    notes = graphprep.export(tmp_path / "store", tmp_path / "out", "pyg").notes
    assert len(notes) > 2
    assert "values are missing" in notes[0]
    assert "the graph is without" in notes[1]
