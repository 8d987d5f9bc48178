"""Edges without a time are not of 1970: exports for samplers that draw by times refuse them, leave them out, or give them one."""

from __future__ import annotations

import numpy as np
import pytest
from exporters.graphbolt_reader import read_fused
from exporters.torch_reader import read_naively

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("flags_named")
EDGES = [(0, 1, 5, "train"), (1, 2, None, "train"), (2, 0, 7, "valid"), (0, 2, None, "test"), (1, 0, 3, "train"), (2, 1, 9, "")]


@pytest.fixture(params=["csc", "csr"])
def store(request, tmp_path):
    lines = (f"{src},{dst},{'' if at is None else at},{part}\n" for src, dst, at, part in EDGES)
    (tmp_path / "e.csv").write_text("src,dst,at,part\n" + "".join(lines))
    tables = {"edges": {"n:to:n": str(tmp_path / "e.csv")}, "splits": ["n:to:n:part"], "decoder_options": {"time_col": "at"}}
    graphprep.convert([], str(tmp_path / "store"), **tables, layout=request.param)
    return tmp_path / "store"


def wanted_edges(rule, *, held_out=("valid", "test")):
    """Return the edges that messages pass over, with their times."""
    value = None if rule == "drop" else int(rule)
    edges = [(src, dst, value if at is None else at) for src, dst, at, part in EDGES if part not in held_out]
    return sorted(edge for edge in edges if edge[2] is not None)


@pytest.mark.parametrize("target", ["pyg", "graphbolt", "deepgnn-edgelist"])
def test_missing_times_are_refused(store, tmp_path, target):
    with pytest.raises(DataError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), target)
    assert caught.value.message == "2 edges of type 'n:to:n' have no time in 'time', and a sampler would take 0 for it"
    assert caught.value.fix == (
        "leave such edges out with --missing-time drop, or give the time that they get, as --missing-time 0"
    )
    assert not (tmp_path / "out").exists()
    graphprep.export(str(store), str(tmp_path / "out"), target, drop_columns=["time"])


@pytest.mark.parametrize("target", ["npy", "parquet", "distdgl"])
def test_targets_without_such_a_sampler_take_them(store, tmp_path, target):
    plain = graphprep.export(str(store), str(tmp_path / "out"), target, drop_unsupported=True)
    asked = graphprep.export(str(store), str(tmp_path / "asked"), target, drop_unsupported=True, missing_time="drop")
    said = "--missing-time drop does nothing here: this target's samplers draw by no time, and such edges stay"
    assert (asked.num_edges, said in asked.notes) == (plain.num_edges, True)


@pytest.mark.parametrize("rule", ["drop", "-4", "6"])
def test_pyg_has_no_edge_of_1970(store, tmp_path, rule):
    summary = graphprep.export(str(store), str(tmp_path / "out"), "pyg", missing_time=rule)
    found = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    edges = zip(*found["edge_index"].tolist(), found["edge_time"].tolist(), strict=True)
    assert sorted(edges) == wanted_edges(rule)
    ids = found["edge_id"].tolist()
    assert [EDGES[one][:2] for one in ids] == list(zip(*found["edge_index"].tolist(), strict=True))
    found = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")
    for name, part in (("train", "train"), ("val", "valid"), ("test", "test")):
        times = found[f"{name}_edge_label_time"].tolist()
        fill = None if rule == "drop" else int(rule)
        wanted = [fill if at is None else at for *_, at, own in EDGES if own == part]
        assert times == [one for one in wanted if one is not None]
        assert found[f"{name}_edge_label_index"].shape[1] == len(times)
    words = "the graph is without, by" if rule == "drop" else "they get the one of"
    assert f"2 edges of type 'n:to:n' have no time: {words} --missing-time {rule}" in summary.notes


@pytest.mark.parametrize("rule", ["drop", "6"])
@pytest.mark.parametrize("message_edges", ["train", "all"])
def test_graphbolt_has_no_edge_of_1970(store, tmp_path, rule, message_edges):
    graphprep.export(str(store), str(tmp_path / "out"), "graphbolt", missing_time=rule, message_edges=message_edges)
    state = read_fused(tmp_path / "out/preprocessed/fused_csc_sampling_graph.pt")
    tensors = state["independent_tensors"]
    dst = np.repeat(np.arange(3), np.diff(tensors["indptr"])).tolist()
    edges = sorted(zip(tensors["indices"].tolist(), dst, state["edge_attributes"]["time"].tolist(), strict=True))
    assert edges == wanted_edges(rule, held_out=() if message_edges == "all" else ("valid", "test"))


def test_deepgnn_lines_have_no_time_that_was_not_there(store, tmp_path):
    options = {"missing_time": "drop", "message_edges": "all", "drop_columns": ["part"]}
    graphprep.export(str(store), str(tmp_path / "out"), "deepgnn-edgelist", **options)
    lines = [line.split(",") for line in (tmp_path / "out/graph.csv").read_text().splitlines()]
    found = sorted((int(line[0]), int(line[2]), int(line[4])) for line in lines if line[1] != "-1")
    assert found == wanted_edges("drop", held_out=())


@pytest.mark.long
@pytest.mark.parametrize("rule", ["drop", "6"])
def test_to_pyg_has_no_edge_of_1970(store, rule):
    pytest.importorskip("torch_geometric", reason="PyG is not installed")
    loaded = graphprep.load(store)
    with pytest.raises(DataError, match="2 edges of type 'n:to:n' have no time in 'time'"):
        loaded.to_pyg()
    data = loaded.to_pyg(missing_time=rule)
    edges = zip(*data.edge_index.tolist(), data.edge_time.tolist(), strict=True)
    assert sorted(edges) == wanted_edges(rule, held_out=())
    assert data.edge_id.shape == data.edge_train_mask.shape == data.edge_time.shape


@pytest.mark.parametrize("rule", ["keep", "2019-01-01", ""])
def test_a_rule_that_is_none_is_refused(store, tmp_path, rule):
    with pytest.raises(UsageError, match="--missing-time"):
        graphprep.export(str(store), str(tmp_path / "out"), "pyg", missing_time=rule)


def test_dates_are_taken_where_times_are_dates(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,at\n0,1,2020-01-01\n1,0,\n")
    options = {"time_col": "at", "columns": ("at=date",)}
    graphprep.convert([], str(tmp_path / "store"), edges={"n:to:n": str(tmp_path / "e.csv")}, decoder_options=options)
    flags = ["--to", "pyg", "--missing-time", "2019-01-01"]
    assert run(["export", str(tmp_path / "store"), str(tmp_path / "out"), *flags]) == 0
    found = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    assert sorted(found["edge_time"].tolist()) == [17897, 18262]
