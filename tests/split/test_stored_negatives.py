"""``split --negatives``: what stands in stores, and what other commands make of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from split.stored import edges_of

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import UsageError
from graphprep.rewrite import run as store_run
from graphprep.rewrite.transform import recipe
from graphprep.storage.write.publish import npy_header

pytestmark = pytest.mark.usefixtures("flags_named")

FOLLOWS, BUYS = "user:follows:user", "user:buys:item"
NUM_USERS, NUM_ITEMS = 40, 15
K = {0: 1, 1: 3, 2: 5, None: 0}
ENDS = {"tail": ["negative_dst"], "head": ["negative_src"], "both": ["negative_src", "negative_dst"]}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """Make a store of two edge types, of nodes with raw IDs that are no typed ones."""
    out, rng = tmp_path_factory.mktemp("shop") / "shop", np.random.default_rng(5)
    users, items = (1000 - 7 * np.arange(NUM_USERS)), 3 * np.arange(NUM_ITEMS) + 1
    follows = pa.table({"src": users[rng.integers(0, NUM_USERS, 150)], "dst": users[rng.integers(0, NUM_USERS, 150)]})
    buys = pa.table({"src": users[rng.integers(0, NUM_USERS, 120)], "dst": items[rng.integers(0, NUM_ITEMS, 120)]})
    graphprep.convert(
        nodes={"user": pa.table({"id": users}), "item": pa.table({"id": items, "x": np.arange(NUM_ITEMS) / 2})},
        edges={FOLLOWS: follows, BUYS: buys},
        out=out,
        partitions=2,
    )
    return out


def split(store, out, shares="60/20/30", **options):
    given = {"of": ["edges"], "negatives": "train=1,val=3,test=5", **options}
    summary = graphprep.split(str(store), str(out), shares, **given)
    assert_sound(out)
    return summary


def assert_sound(store):
    report = graphprep.validate(str(store))
    assert report.sound, [str(fault) for fault in report.faults]


def check(store, roles):
    """Hold the negatives of both types against a set of all edges."""
    total = {}
    for name in (FOLLOWS, BUYS):
        edges = edges_of(store, name)
        pairs = {(src, dst) for src, dst, *_ in edges.values()}
        for src, dst, part, negatives in edges.values():
            assert list(negatives) == roles
            for role, nodes in negatives.items():
                assert len(nodes) == K[part]
                for node in nodes:
                    pair = (node, dst) if role == "negative_src" else (src, node)
                    assert pair not in pairs
                    assert name == BUYS or pair[0] != pair[1]
        total[name] = sum(len(nodes) for *_, negatives in edges.values() for nodes in negatives.values())
    return total


@pytest.mark.parametrize("corrupt", ENDS)
@pytest.mark.parametrize("by", ["uniform", "degree", "khop:3"])
def test_negatives_of_all_edge_types(shop, tmp_path, corrupt, by):
    summary = split(shop, tmp_path / "out", corrupt=corrupt, negatives_by=by, seed=3)
    assert check(tmp_path / "out", ENDS[corrupt]) == dict(summary.negatives)
    sizes = summary.edge_splits[BUYS]
    assert summary.negatives[BUYS] == len(ENDS[corrupt]) * (sizes["train"] + 3 * sizes["valid"] + 5 * sizes["test"]) > 200


def files(folder, *but):
    paths = (path for path in sorted(Path(folder).rglob("*")) if path.is_file() and path.name not in ("provenance.json", *but))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_same_bytes_for_any_threads_and_memory(shop, tmp_path, monkeypatch):
    split(shop, tmp_path / "wide", corrupt="both", negatives_by="degree")
    monkeypatch.setattr(store_run, "_MOST_PIECE", 1 << 10)
    monkeypatch.setattr(recipe, "STEP", 7)
    split(shop, tmp_path / "tight", corrupt="both", negatives_by="degree", memory_limit="200MiB", threads=3)
    assert files(tmp_path / "tight") == files(tmp_path / "wide")


def test_the_same_negatives_for_any_number_of_range_partitions(shop, tmp_path):
    graphprep.partition(str(shop), str(tmp_path / "parts"), partitions=5)
    for name, store in (("two", shop), ("five", tmp_path / "parts")):
        split(store, tmp_path / name, corrupt="both")
    for name in (FOLLOWS, BUYS):
        assert edges_of(tmp_path / "five", name) == edges_of(tmp_path / "two", name)


@pytest.mark.parametrize(
    "how", [{"by": "hash", "partitions": 3}, {"by": "random", "partitions": 1}, {"by": "range", "partitions": 4}]
)
def test_partition_takes_negatives_along(shop, tmp_path, how):
    split(shop, tmp_path / "split", corrupt="both")
    graphprep.partition(str(tmp_path / "split"), str(tmp_path / "out"), **how)
    assert_sound(tmp_path / "out")
    for name in (FOLLOWS, BUYS):
        assert edges_of(tmp_path / "out", name) == edges_of(tmp_path / "split", name)


@pytest.mark.parametrize("how", [{"by": "degree"}, {"by": "rcm", "scope": "graph"}])
def test_reorder_takes_negatives_along(shop, tmp_path, how):
    split(shop, tmp_path / "split", corrupt="both")
    graphprep.reorder(str(tmp_path / "split"), str(tmp_path / "out"), **how)
    assert_sound(tmp_path / "out")
    for name in (FOLLOWS, BUYS):
        assert edges_of(tmp_path / "out", name) == edges_of(tmp_path / "split", name)


NOTE = "edge type {!r}: the negatives of its edges are left out: graphprep split draws others"


@pytest.mark.parametrize(
    ("operations", "left_out"),
    [
        (["layout", "both"], ()),
        (["sort-neighbors", "id"], ()),
        (["reverse"], (FOLLOWS, BUYS)),
        (["add-reverse"], (FOLLOWS, BUYS)),
        (["to-simple"], (FOLLOWS, BUYS)),
        (["node-subgraph", "item:@x=1.5"], (FOLLOWS, BUYS)),  # users are not named: none stays
        (["filter", "item: x > 2"], (BUYS,)),
    ],
)
def test_transform_keeps_negatives_of_edges_that_stay(shop, tmp_path, operations, left_out):
    split(shop, tmp_path / "split", corrupt="both")
    summary = graphprep.transform(str(tmp_path / "split"), str(tmp_path / "out"), operations)
    assert_sound(tmp_path / "out")
    assert [note for note in summary.notes if "negatives" in note] == [NOTE.format(name) for name in left_out]
    for name in (FOLLOWS, BUYS):
        if name not in left_out:
            assert edges_of(tmp_path / "out", name) == edges_of(tmp_path / "split", name)
    schema = json.loads((tmp_path / "out/metadata.json").read_text())["edge_schema"]
    having = [name for name, one in schema.items() if any("negative" in column["name"] for column in one["columns"])]
    assert having == [name for name in (FOLLOWS, BUYS) if name not in left_out]


def test_transform_to_other_types_leaves_negatives_out(shop, tmp_path):
    split(shop, tmp_path / "split")
    summary = graphprep.transform(str(tmp_path / "split"), str(tmp_path / "out"), ["to-homogeneous"])
    assert_sound(tmp_path / "out")
    assert [note for note in summary.notes if "negatives" in note] == [NOTE.format(name) for name in (FOLLOWS, BUYS)]
    assert "negative" not in (tmp_path / "out/metadata.json").read_text()


def test_splits_that_are_there_get_negatives(shop, tmp_path):
    split(shop, tmp_path / "split", negatives=None)
    summary = split(tmp_path / "split", tmp_path / "out", "", by="keep", of=[BUYS])
    assert list(summary.negatives) == [BUYS]
    assert summary.edge_splits == {BUYS: {"train": 60, "valid": 20, "test": 30, "none": 10}}
    split(shop, tmp_path / "at-once")
    assert edges_of(tmp_path / "out", BUYS) == edges_of(tmp_path / "at-once", BUYS)
    assert edges_of(tmp_path / "out", FOLLOWS) == edges_of(tmp_path / "split", FOLLOWS)
    split(tmp_path / "out", tmp_path / "again", "", by="keep", of=[BUYS], seed=1, overwrite_column=True)
    assert edges_of(tmp_path / "again", BUYS) != edges_of(tmp_path / "out", BUYS)


def test_another_split_replaces_negatives(shop, tmp_path):
    split(shop, tmp_path / "split", corrupt="both")
    split(tmp_path / "split", tmp_path / "out", seed=9, negatives=None, overwrite_column=True)
    split(shop, tmp_path / "expected", seed=9, negatives=None)
    assert files(tmp_path / "out") == files(tmp_path / "expected")


def test_nodes_held_out_and_their_edges_have_negatives(shop, tmp_path):
    summary = graphprep.split(str(shop), str(tmp_path / "out"), "0.6/0.2/0.2", by="nodes", negatives=2)
    assert_sound(tmp_path / "out")
    assert dict(summary.negatives) == {FOLLOWS: 300, BUYS: 240}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": ["nodes"]}, "--negatives are those of edges, and nodes are split"),
        ({"negatives": None, "negatives_by": "degree"}, "--negatives-by degree does nothing without --negatives"),
        ({"negatives": None, "corrupt": "both"}, "--corrupt both does nothing without --negatives"),
        ({"negatives_by": "khop:2"}, f"khop:2: in {BUYS!r} two steps lead back to nodes of the first type"),
        ({"by": "keep"}, "SHARES does nothing with --by keep: splits stay as they are"),
        ({"by": "keep", "shares": "", "negatives": None}, "--by keep does nothing without --negatives"),
        ({"by": "keep", "shares": ""}, "no edge type has a split"),
    ],
)
def test_what_cannot_be(shop, tmp_path, options, words):
    with pytest.raises(UsageError) as caught:
        split(shop, tmp_path / "out", **options)
    assert caught.value.message == words
    assert not (tmp_path / "out").exists()


def test_negatives_that_are_there_are_kept_unless_told(shop, tmp_path):
    split(shop, tmp_path / "split")
    with pytest.raises(UsageError) as caught:
        split(tmp_path / "split", tmp_path / "out", "", by="keep")
    assert caught.value.message == f"edge type {FOLLOWS!r} has negatives already"
    assert caught.value.fix == "give --overwrite-column to replace them"


def test_the_command_says_what_was_drawn(shop, tmp_path, capsys):
    words = ["split", str(shop), str(tmp_path / "out"), "60/20/30", "--of", BUYS, "--by", "random", "--negatives", "2"]
    assert run(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"  note: edge type {BUYS!r}: 220 negatives"


# ------------------------------------------------------------------------------------------------ validate


def rewritten(store, out, path, change):
    """Copy a store, with an array of its first partition changed, and all checksums those of what is there."""
    shutil.copytree(store, out)
    manifest_path = out / "part-00000/manifest.json"
    array = np.load(out / "part-00000" / path)
    change(array)
    data = npy_header(array.dtype, array.shape) + array.tobytes()
    (out / "part-00000" / path).write_bytes(data)
    manifest = json.loads(manifest_path.read_text())
    next(one for one in manifest["arrays"] if one["path"] == path)["xxh3"] = xxhash.xxh3_64_hexdigest(data)
    data = (json.dumps(manifest, indent=2) + "\n").encode()
    manifest_path.write_bytes(data)
    metadata = json.loads((out / "metadata.json").read_text())
    metadata["parts"][0] |= {"manifest_bytes": len(data), "manifest_xxh3": xxhash.xxh3_64_hexdigest(data)}
    (out / "metadata.json").write_text(json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
    return [str(fault) for fault in graphprep.validate(str(out)).faults]


def test_validate_names_faulty_negatives(shop, tmp_path):
    split(shop, tmp_path / "split")
    folder = "edges/user__buys__item"
    path = f"{folder}/data/negative_dst.values.npy"

    def beyond(array):
        array[3], array[4] = NUM_ITEMS, -2

    assert rewritten(tmp_path / "split", tmp_path / "beyond", path, beyond) == [
        f"part-00000/{path}[3]: expected a typed ID in [0, {NUM_ITEMS}), or -1, found {NUM_ITEMS}",
        f"part-00000/{path}[4]: expected a typed ID in [0, {NUM_ITEMS}), or -1, found -2",
    ]
    part = tmp_path / "split/part-00000" / folder
    offsets, indptr = np.load(part / "data/negative_dst.offsets.npy"), np.load(part / "csc/indptr.npy")
    row = int(np.flatnonzero(np.diff(offsets))[0])
    node = int(np.searchsorted(indptr, row, side="right")) - 1
    source = int(np.load(part / "csc/indices.npy")[row])

    def edge(array):
        array[offsets[row]] = node

    assert rewritten(tmp_path / "split", tmp_path / "edge", path, edge) == [
        f"part-00000/{path}[{offsets[row]}]: expected no edge, found that from {source} to {node}"
    ]

    def fewer(array):
        array[row + 1 : row + 2] -= 1

    faults = rewritten(tmp_path / "split", tmp_path / "fewer", f"{folder}/data/negative_dst.offsets.npy", fewer)
    path = f"part-00000/{folder}/data/negative_dst.offsets.npy"
    assert faults
    assert all(fault.startswith(path) and "negatives, as other edges" in fault for fault in faults)


def test_validate_needs_little_memory(shop, tmp_path, monkeypatch):
    """Edges are compared window by window."""
    from graphprep.validate import negatives

    split(shop, tmp_path / "split", corrupt="both")
    monkeypatch.setattr(negatives, "_KEY_BYTES", 1 << 21)
    monkeypatch.setattr(negatives, "_MOST_VALUES", 3)
    report = graphprep.validate(str(tmp_path / "split"), memory_limit="200MiB")
    assert report.sound, [str(fault) for fault in report.faults]
