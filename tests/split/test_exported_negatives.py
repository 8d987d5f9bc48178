"""Negatives as trainers get them, held against those of the store, by raw IDs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml
from exporters.torch_reader import read_naively
from split.stored import edges_of

import graphprep
from graphprep.model.errors import UsageError
from graphprep.rewrite import run as store_run

pytestmark = pytest.mark.usefixtures("flags_named")

BUYS, FOLLOWS = "user:buys:item", "user:follows:user"
PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
NUM_USERS, NUM_ITEMS = 30, 12


def make(out, *, several=True, **options):
    """Make a store with a split and negatives; user 0 buys every item, so that there is no other one for it."""
    rng = np.random.default_rng(2)
    users, items = 900 - 7 * np.arange(NUM_USERS), 3 * np.arange(NUM_ITEMS) + 1
    pairs = sorted({(int(u), int(i)) for u, i in zip(rng.integers(1, 30, 90), rng.integers(0, 12, 90), strict=True)})
    pairs += [(0, item) for item in range(NUM_ITEMS)]
    src, dst = (users[[u for u, _ in pairs]], items[[i for _, i in pairs]])
    buys = pa.table({"src": src, "dst": dst, "stars": np.arange(len(pairs)) % 5, "day": np.arange(len(pairs)) * 2})
    follows = {"src": users[rng.integers(0, 30, 50)], "dst": users[rng.integers(0, 30, 50)], "day": np.arange(50) * 2}
    tables = {BUYS: buys, FOLLOWS: pa.table(follows)} if several else {BUYS: buys}
    nodes = {"user": pa.table({"id": users, "x": np.arange(30) / 2}), "item": pa.table({"id": items, "x": np.arange(12) / 4})}
    given = {"partitions": 2, "partition_by": "hash", "decoder_options": {"time_col": "day"}, **options}
    graphprep.convert(nodes=nodes, edges=tables, out=out.with_name(f"{out.name}-raw"), **given)
    return out.with_name(f"{out.name}-raw")


def split(tmp_path, *, several=True, of=("edges",), labels=(), **options):
    raw = make(tmp_path / "store", several=several, labels=list(labels))
    given = {"negatives": "train=1,val=3,test=2", **options}
    graphprep.split(str(raw), str(tmp_path / "store"), "0.6/0.2/0.2", by="random", of=list(of), **given)
    return tmp_path / "store"


def export(store, target, **options):
    out = store.with_name(f"{store.name}-{target}")
    summary = graphprep.export(str(store), str(out), target, target_options=options)
    return out, summary


def id_map(out, name):
    """Return the raw IDs of what a trainer sees, where these are not raw IDs themselves."""
    return np.load(out / "id_map" / f"{name}.npy")


def expected(store, name, part):
    """Return [((raw source, raw destination), pairs of its negatives, destinations first)] by edge ID."""
    rows = [row for _, row in sorted(edges_of(store, name).items()) if row[2] == PARTS[part]]
    found = []
    for src, dst, _, negatives in rows:
        pairs = [(src, node) for node in negatives.get("negative_dst", ())]
        pairs += [(node, dst) for node in negatives.get("negative_src", ())]
        found.append(((src, dst), pairs))
    return found


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(store_run, "_MOST_PIECE", 1 << 10)


# ------------------------------------------------------------------------------------------------ GraphBolt


@pytest.mark.parametrize("corrupt", ["tail", "both"])
def test_sets_of_graphbolt(tmp_path, corrupt):
    store = split(tmp_path, corrupt=corrupt)
    out, summary = export(store, "graphbolt")
    where = "in the sets of the task link_prediction, behind each edge, with labels and indexes"
    assert f"edge type {BUYS!r}: its negatives are {where}" in summary.notes
    (task,) = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())["tasks"]
    assert task["name"] == "link_prediction"
    for name in (BUYS, FOLLOWS):
        src, dst = (id_map(out, name.split(":")[end]) for end in (0, 2))
        for part in ("train", "validation", "test"):
            (one,) = (one for one in task[f"{part}_set"] if one["type"] == name)
            seeds, labels, indexes = (np.load(out / data["path"]) for data in one["data"])
            assert [data["name"] for data in one["data"]] == ["seeds", "labels", "indexes"]
            assert (labels.dtype, indexes.dtype) == (np.bool_, np.int64)
            rows = []
            for number, (edge, pairs) in enumerate(expected(store, name, part)):
                rows.append((edge, True, number))
                rows += [(pair, False, number) for pair in pairs if None not in pair]
            pairs = zip(src[seeds[:, 0]].tolist(), dst[seeds[:, 1]].tolist(), strict=True)
            assert list(zip(pairs, labels.tolist(), indexes.tolist(), strict=True)) == rows


def test_a_part_without_negatives_has_seeds_alone(tmp_path):
    out, _ = export(split(tmp_path, negatives="test=4"), "graphbolt")
    (task,) = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())["tasks"]
    names = {part: [data["name"] for one in task[part] for data in one["data"]] for part in ("train_set", "test_set")}
    assert names == {"train_set": ["seeds"] * 2, "test_set": ["seeds", "labels", "indexes"] * 2}


def test_edges_with_labels_have_a_task_of_links_beside(tmp_path):
    out, _ = export(split(tmp_path, several=False, labels=[f"{BUYS}:stars"]), "graphbolt")
    tasks = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())["tasks"]
    assert [task["name"] for task in tasks] == ["edge_classification", "link_prediction"]


# ------------------------------------------------------------------------------------------------ PyG


@pytest.mark.parametrize("form", ["data", "parts"])
@pytest.mark.parametrize("labels", [(), (f"{BUYS}:stars",)])
def test_edges_to_label_of_pyg(tmp_path, form, labels):
    store = split(tmp_path, labels=labels, corrupt="both")
    out, _ = export(store, "pyg", form=form)
    values = read_naively((out / "edge_sets.pt").read_bytes(), "edge_sets")
    for name in (BUYS, FOLLOWS):
        one, rows = values[tuple(name.split(":"))], sorted(edges_of(store, name).items())
        src, dst = (id_map(out, name.split(":")[end]) for end in (0, 2))
        for part in ("train", "val", "test"):
            found = expected(store, name, part)
            pairs = [edge for edge, _ in found] + [pair for _, some in found for pair in some if None not in pair]
            ends, label = one[f"{part}_edge_label_index"], one[f"{part}_edge_label"]
            assert list(zip(src[ends[0]].tolist(), dst[ends[1]].tolist(), strict=True)) == pairs
            ids = [edge for edge, row in rows if row[2] == PARTS[part]]
            assert one[f"{part}_edge_label_id"].tolist() == ids
            is_labelled = bool(labels) and name == BUYS
            own = [edge % 5 + 1 if is_labelled else 1 for edge in ids]
            assert label.dtype == (np.int64 if is_labelled else np.float32)
            assert label.tolist() == own + [0] * (len(pairs) - len(ids))
            behind = [edge for edge, (_, some) in zip(ids, found, strict=True) for pair in some if None not in pair]
            assert one[f"{part}_edge_label_time"].tolist() == [2 * edge for edge in ids + behind]


# ------------------------------------------------------------------------------------------------ OGB


def read_split(out, part, files):
    if files == "pt":
        return read_naively((out / f"split/{part}.pt").read_bytes(), part)
    return {path.stem: np.load(path) for path in sorted((out / "split" / part).iterdir())}


@pytest.mark.parametrize("files", ["pt", "npy"])
def test_triples_of_ogb(tmp_path, files):
    store = split(tmp_path, corrupt="both")
    out, summary = export(store, "ogb", files=files)
    names = json.loads((out / "export.json").read_text())["edge_type"]
    missing = 0
    for part in ("train", "valid", "test"):
        found = read_split(out, part, files)
        assert sorted(found) == ["head", "head_neg", "relation", "tail", "tail_neg"]
        assert {str(one.dtype) for one in found.values()} == {"int64"}
        rows = []
        for head, relation, tail, heads, tails in zip(
            *(found[key].tolist() for key in ("head", "relation", "tail", "head_neg", "tail_neg")), strict=True
        ):
            name = names[relation]
            src, dst = (id_map(out, name.split(":")[end]).tolist() for end in (0, 2))
            pairs = [(src[head], None if node < 0 else dst[node]) for node in tails]
            pairs += [(None if node < 0 else src[node], dst[tail]) for node in heads]
            rows.append((name, (src[head], dst[tail]), pairs))
        wanted = [(name, *one) for name in names for one in expected(store, name, part)]
        assert rows == wanted
        count = sum(None in pair for *_, pairs in wanted for pair in pairs)
        missing += count
        assert (f"{part}: {count:,} negatives are -1: there was no candidate" in summary.notes) == (count > 0)
    assert missing


def test_queries_and_pairs_of_ogb(tmp_path):
    store = split(tmp_path, several=False)
    for form in ("citation2", "collab"):
        out, _ = export(store, "ogb", form=form) if form == "collab" else export(store, "ogb")
        src, dst = id_map(out, "user"), id_map(out, "item")
        for part, k in (("train", 1), ("valid", 3), ("test", 2)):
            found, wanted = read_split(out, part, "pt"), expected(store, BUYS, part)
            assert found.pop("stars").tolist() == [
                edge % 5 for edge, row in sorted(edges_of(store, BUYS).items()) if row[2] == PARTS[part]
            ]
            found.pop("time")
            if form == "citation2":
                assert sorted(found) == ["source_node", "target_node", "target_node_neg"]
                ends = zip(src[found["source_node"]].tolist(), dst[found["target_node"]].tolist(), strict=True)
                others = [[None if node < 0 else dst[node] for node in row] for row in found["target_node_neg"]]
                assert found["target_node_neg"].shape == (len(wanted), k)
                assert list(ends) == [edge for edge, _ in wanted]
                assert others == [[node for _, node in pairs] for _, pairs in wanted]
            else:
                assert sorted(found) == ["edge", "edge_neg"]
                pairs = [(src[u], dst[v]) for u, v in found["edge_neg"].tolist()]
                assert pairs == [pair for _, some in wanted for pair in some if None not in pair]
                assert [(src[u], dst[v]) for u, v in found["edge"].tolist()] == [edge for edge, _ in wanted]
        out.rename(out.with_name(form))


@pytest.mark.parametrize(
    ("given", "form", "words"),
    [
        ({"of": ("nodes",), "negatives": None}, "auto", "no edge type has a split"),
        ({}, "collab", "option form=collab: 2 edge types have a split, and it tells of one"),
    ],
)
def test_what_ogb_has_no_form_for(tmp_path, given, form, words):
    with pytest.raises(UsageError) as caught:
        export(split(tmp_path, **given), "ogb", form=form)
    assert caught.value.message == words


def test_edge_types_with_other_numbers_of_negatives(tmp_path):
    store = split(tmp_path, of=(BUYS,))
    graphprep.split(str(store), str(tmp_path / "both"), "0.6/0.2/0.2", by="random", of=[FOLLOWS], negatives=1)
    with pytest.raises(UsageError) as caught:
        export(tmp_path / "both", "ogb")
    assert caught.value.message == "edge types have 1 and 3 negatives of an edge of the part valid"


# ------------------------------------------------------------------------------------------------ all


def test_negatives_follow_another_partitioning(tmp_path):
    """Nodes that are numbered anew on the way are named anew."""
    store = split(tmp_path, several=False)
    out = tmp_path / "parts"
    graphprep.export(str(store), str(out), "pyg", partitions=3, partition_by="random", target_options={"form": "parts"})
    one = read_naively((out / "edge_sets.pt").read_bytes(), "edge_sets")["user", "buys", "item"]
    src, dst = id_map(out, "user"), id_map(out, "item")
    wanted = expected(store, BUYS, "test")
    pairs = [edge for edge, _ in wanted] + [pair for _, some in wanted for pair in some if None not in pair]
    assert [(src[u], dst[v]) for u, v in one["test_edge_label_index"].T.tolist()] == pairs


@pytest.mark.parametrize("target", ["npy", "parquet", "glt", "distdgl", "scipy", "edges"])
def test_targets_without_a_place_say_so(tmp_path, target):
    store = split(tmp_path)
    out = tmp_path / "out"
    summary = graphprep.export(str(store), str(out), target, drop_unsupported=True)
    for name in (BUYS, FOLLOWS):
        assert f"edge type {name!r}: its negatives are left out: {target} has no place for them" in summary.notes
    assert not [path for path in Path(out).rglob("*") if "negative" in path.name]


def test_negatives_are_left_out_as_asked(tmp_path):
    store = split(tmp_path, several=False)
    out = tmp_path / "out"
    summary = graphprep.export(str(store), str(out), "graphbolt", drop_columns=["negative_dst"])
    assert f"edge column {BUYS} 'negative_dst': left out as asked" in summary.dropped
    assert not any("negatives" in note for note in summary.notes)
    assert not list(out.rglob("*indexes*"))
