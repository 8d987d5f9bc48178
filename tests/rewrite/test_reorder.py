"""Reordered stores: every byte against the slow reference, graphs against SciPy, and what must not change."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from itertools import pairwise
from pathlib import Path

import fsspec
import numpy as np
import pytest
from golden.golden_cases import FEW, load_cases, load_rewritten, read_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.build import add_manifests, encoded, file_bytes, part_folder
from reference.hashes import splitmix64
from reference.reorder import Store, read_files, reorder_reference

import graphprep
from graphprep.cli.main import run
from graphprep.edges import moves
from graphprep.edges.device.find import find_kernels
from graphprep.edges.moves import Workspace
from graphprep.ids.lookup import NODE_SPACES
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.rewrite import gaps as gaps_module
from graphprep.rewrite.keys import OrderRules
from graphprep.rewrite.reorder import StoreReorderer
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.publish import StoreWriter
from graphprep.store import room
from graphprep.store.single import WholeStore

pytestmark = pytest.mark.usefixtures("flags_named")

CASES = [case for case in load_cases() if (case.store / "metadata.json").exists()]
STORES = {case.name: case.store for case in CASES}
SHOP, KARATE = "shop_edgelist_both_parts", "karate_csv"
DEGREES = ("degree", "in-degree", "out-degree")
ORDERS = (*DEGREES, "hub-sort", "hub-cluster", "dbg", "random", "bfs", "rcm", "llp")


class Quiet:
    """A reporter that tells nothing."""

    def stage(self, name, *, total_bytes=None, total_records=None):
        pass

    def advance(self, *, records=0, num_bytes=0):
        pass

    def message(self, text):
        pass


def reorder_in(room_bytes, store, out, by, *, threads=1, held=0, **rules):
    """Reorder with so little room that everything goes through buckets, and through files."""
    with contextlib.ExitStack() as stack:
        storage = stack.enter_context(Storage())
        reader = StoreReader(storage, str(store))
        writer = stack.enter_context(StoreWriter(storage, str(out)))
        pool = stack.enter_context(SpillPool(room_bytes))
        scratch = stack.enter_context(Scratch(room_bytes))
        numbers = tuple(range(len(reader.metadata.edge_types)))
        room = Workspace(room_bytes, held, held, threads, pool, scratch, find_kernels())
        step = StoreReorderer(reader, writer, OrderRules(by, numbers, **rules), room, Quiet())
        step.order()
        step.measure()
        step.write_nodes()
        step.write_edges()
        step.finish(dict)
        return step.gaps


def assert_files(out, expected):
    got, wanted = read_store(out), {path: file_bytes(value) for path, value in expected.items()}
    assert sorted(got) == sorted(wanted)
    different = [path for path in wanted if got[path] != wanted[path]]
    assert not different


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_every_byte_is_that_of_the_reference(number, tmp_path):
    store, by = CASES[number].store, ORDERS[number % len(ORDERS)]
    graphprep.reorder(str(store), str(tmp_path / "out"), by=by)
    assert_files(tmp_path / "out", reorder_reference(read_files(store), by))
    report = graphprep.validate(str(tmp_path / "out"))
    assert report.sound, report.faults


REORDERED = load_rewritten("reordered")


@pytest.mark.parametrize("number", range(len(REORDERED)), ids=[store.parent.name for _, store, _ in REORDERED])
def test_golden_bytes(number, device, tmp_path):
    case, store, options = REORDERED[number]
    graphprep.reorder(str(case.store), str(tmp_path / "out"), **options, device=device)
    assert read_store(tmp_path / "out") == read_store(store)
    assert_files(store, reorder_reference(read_files(case.store), **options))


TIGHT = [
    name
    for name in STORES
    if name.startswith(("shop", "names", "edges_t", "edges_w", "town_c", "people_t", "dtypes_j", "karate_t"))
]


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one in FEW else pytest.mark.heavy) for one in TIGHT])
def test_little_room_gives_the_same_bytes(name, tmp_path):
    number = TIGHT.index(name)
    by, (room_bytes, threads) = ORDERS[number % len(ORDERS)], ((8, 1), (40, 2), (200, 4))[number % 3]
    reorder_in(room_bytes, STORES[name], tmp_path / "out", by, threads=threads)
    assert_files(tmp_path / "out", reorder_reference(read_files(STORES[name]), by))


@pytest.mark.parametrize("name", ["shop_chunked_parts", "shop_edgelist_both_parts", "shop_json_random"])
def test_little_room_for_what_is_far_away(name, tmp_path):
    fsspec.filesystem("memory").put(str(STORES[name]), f"/little-{name}", recursive=True)
    reorder_in(60, f"memory://little-{name}", tmp_path / "out", "degree", threads=2)
    assert_files(tmp_path / "out", reorder_reference(read_files(STORES[name]), "degree"))


@pytest.mark.parametrize(
    "name", ["shop_chunked_parts", "shop_json_random", "davis_bipartite", "edges_timed", "names_awkward_hash"]
)
def test_ranges_that_are_too_large_are_scattered_out_again(name, tmp_path, monkeypatch):
    monkeypatch.setattr(moves, "_FAN_OUT", 2)
    monkeypatch.setattr(moves, "_MOST_ROWS", 3)
    store = STORES[name]
    reorder_in(16, store, tmp_path / "out", "in-degree", threads=2)
    assert_files(tmp_path / "out", reorder_reference(read_files(store), "in-degree"))


@pytest.mark.parametrize("name", ["karate_partition_file", "shop_chunked_parts", "shop_json_random", "davis_bipartite"])
@pytest.mark.parametrize(("ratio", "seed"), [(0.3, 0), (0.5, 7), (1.0, 2**64 - 1)])
def test_the_first_of_every_partition_are_shuffled(name, ratio, seed, tmp_path):
    graphprep.reorder(str(STORES[name]), str(tmp_path / "out"), by="in-degree", shuffle_ratio=ratio, seed=seed)
    expected = reorder_reference(read_files(STORES[name]), "in-degree", shuffle_ratio=ratio, seed=seed)
    assert_files(tmp_path / "out", expected)


@pytest.mark.parametrize("types", [["0:0:1"], ["0:1:1", "1:1:2"]])
@pytest.mark.parametrize("by", (*DEGREES, "dbg", "bfs", "rcm"))
def test_chosen_edge_types_count(types, by, tmp_path):
    store = STORES["shop_edgelist_both_parts"]
    graphprep.reorder(str(store), str(tmp_path / "out"), by=by, edge_types=tuple(types))
    assert_files(tmp_path / "out", reorder_reference(read_files(store), by, types))


@pytest.mark.parametrize("name", ["karate_csv", "shop_edgelist_both_parts", "names_lesmis_random", "shop_scattered_hash"])
def test_a_store_is_reordered_again(name, tmp_path):
    """Raw IDs stay exact, previous IDs are those of the store that was never reordered, and lead back to it."""
    graphprep.reorder(str(STORES[name]), str(tmp_path / "one"), by="degree", shuffle_ratio=0.9, seed=3)
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "two"), by="out-degree")
    assert_files(tmp_path / "two", reorder_reference(read_files(tmp_path / "one"), "out-degree"))
    assert graphprep.validate(str(tmp_path / "two")).sound
    for node_type, rows in tables(tmp_path / "two").items():
        wanted = graphprep.ids(str(STORES[name]), [row["raw"] for row in rows], from_="raw", to="typed", type_=node_type)
        assert [row["previous"] for row in rows] == wanted.tolist()
    graphprep.reorder(str(tmp_path / "two"), str(tmp_path / "back"), by="previous")
    assert read_store(tmp_path / "back") == read_store(STORES[name])


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_previous_gives_back_every_byte(number, tmp_path):
    store, by = CASES[number].store, ORDERS[number % len(ORDERS)]
    graphprep.reorder(str(store), str(tmp_path / "out"), by=by, seed=number)
    room_bytes, threads = ((16, 1), (200, 2), (1 << 20, 4))[number % 3]
    first = json.loads((tmp_path / "out/metadata.json").read_text())["node_schema"]
    if any("node_order" in schema for schema in first.values()):
        reorder_in(room_bytes, tmp_path / "out", tmp_path / "back", None, threads=threads)
    else:
        shutil.copytree(tmp_path / "out", tmp_path / "back")
    assert read_store(tmp_path / "back") == read_store(store)


@pytest.mark.parametrize("scope", ["partition", "graph"])
@pytest.mark.parametrize("by", [*ORDERS, "score", "permutation"])
def test_every_order_after_another_leads_back(by, scope, tmp_path):
    """Of three partitions and types: the composed permutation is that of raw IDs, ``ids`` inverts it, ``previous`` undoes it."""
    store = STORES["shop_scattered_hash"]
    graphprep.reorder(str(store), str(tmp_path / "one"), by="random", scope="graph", seed=5)
    metadata = json.loads((tmp_path / "one/metadata.json").read_text())
    rng = np.random.default_rng(6)
    (tmp_path / "files").mkdir()
    for name, sizes in zip(metadata["node_type"], metadata["num_nodes_per_chunk"], strict=True):
        ranges = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]) if scope == "partition" else [np.arange(sum(sizes))]
        order = np.concatenate([rng.permutation(one) for one in ranges])
        np.save(tmp_path / f"files/{encoded(name)}.npy", order if by == "permutation" else rng.random(order.size))
    named = f"{by}:{tmp_path}/files" if by in ("score", "permutation") else by
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "two"), by=named, scope=scope, seed=7)
    for name, size in zip(metadata["node_type"], metadata["num_nodes_per_type"], strict=True):
        typed = np.arange(size)
        raw = graphprep.ids(str(tmp_path / "two"), typed, from_="typed", to="raw", type_=name)
        first = graphprep.ids(str(store), raw, from_="raw", to="typed", type_=name)
        previous = graphprep.ids(str(tmp_path / "two"), typed, from_="typed", to="previous", type_=name)
        assert previous.tolist() == first.tolist()
        assert sorted(previous.tolist()) == typed.tolist()
        back = graphprep.ids(str(tmp_path / "two"), previous, from_="previous", to="typed", type_=name)
        assert back.tolist() == typed.tolist()
        if by == "permutation":
            order = np.load(tmp_path / f"files/{encoded(name)}.npy")
            one = graphprep.ids(str(tmp_path / "one"), order, from_="typed", to="raw", type_=name)
            assert np.asarray(one).tolist() == np.asarray(raw).tolist()
    graphprep.reorder(str(tmp_path / "two"), str(tmp_path / "back"), by="previous")
    assert read_store(tmp_path / "back") == read_store(store)


@pytest.mark.parametrize("name", ["karate_csv", "karate_partition_file", "names_lesmis_random"])
def test_an_order_that_is_there_already_is_not_stored(name, tmp_path):
    store = STORES[name]
    size = sum(json.loads((store / "metadata.json").read_text())["num_nodes_per_type"])
    np.save(tmp_path / "same.npy", np.arange(size))
    np.save(tmp_path / "equal.npy", np.full(size, 0.5))
    for number, by in enumerate((f"permutation:{tmp_path}/same.npy", f"score:{tmp_path}/equal.npy")):
        summary = graphprep.reorder(str(store), str(tmp_path / f"out-{number}"), by=by)
        assert read_store(tmp_path / f"out-{number}") == read_store(store)
        assert all("which were partitioned by" in note for note in summary.notes)


def test_a_file_by_typed_ids_is_told_where_these_do_not_follow_raw_ids(tmp_path):
    store = tmp_path / "store"
    graphprep.convert(Path(__file__).parents[2] / "sample_data/karate/karate.csv", store)
    np.save(tmp_path / "scores.npy", np.arange(34))
    words = "score:FILE is read by STORE's typed IDs, which were {}: FILE must be of that order"
    by = f"score:{tmp_path}/scores.npy"
    assert not any("FILE" in note for note in graphprep.reorder(store, tmp_path / "one", by=by).notes)
    assert words.format("reordered by score") in graphprep.reorder(tmp_path / "one", tmp_path / "two", by=by).notes
    graphprep.partition(store, tmp_path / "hashed", by="hash", partitions=2)
    assert words.format("partitioned by hash") in graphprep.reorder(tmp_path / "hashed", tmp_path / "three", by=by).notes


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16", "float32", "float64"])
def test_nodes_by_scores(dtype, tmp_path):
    """Of several types those that have a file, in a folder."""
    store = STORES[SHOP]
    rng, scores = np.random.default_rng(3), {}
    (tmp_path / "scores").mkdir()
    for name, size in (("0", 6), ("2", 3)):
        values = rng.integers(0, 4, size) if dtype[0] != "f" else rng.choice([0.0, -0.0, 0.125, 2.5, np.inf], size)
        np.save(tmp_path / f"scores/{name}.npy", values.astype(dtype))
        scores[name] = values.astype(dtype).astype(float).tolist()
    graphprep.reorder(str(store), str(tmp_path / "out"), by=f"score:{tmp_path}/scores", shuffle_ratio=0.4, seed=5)
    assert_files(tmp_path / "out", reorder_reference(read_files(store), "score", (), 0.4, 5, scores))
    assert graphprep.validate(str(tmp_path / "out")).sound
    (tmp_path / "scores/0.npy").unlink()
    graphprep.reorder(str(tmp_path / "out"), str(tmp_path / "again"), by=f"score:{tmp_path}/scores")
    again = reorder_reference(read_files(tmp_path / "out"), "score", given={"2": scores["2"]})
    assert_files(tmp_path / "again", again)


def test_types_that_stay_keep_their_order(tmp_path):
    (tmp_path / "scores").mkdir()
    np.save(tmp_path / "scores/0.npy", [0, 2, 1, 0, 1, 2])
    graphprep.reorder(str(STORES[SHOP]), str(tmp_path / "one"), by="random", seed=4)
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "two"), by=f"score:{tmp_path}/scores")
    assert_files(tmp_path / "two", reorder_reference(read_files(tmp_path / "one"), "score", given={"0": [0, 2, 1, 0, 1, 2]}))
    orders = [one.node_order for one in graphprep.info(str(tmp_path / "two")).node_types]
    assert orders == ["score", "random", "random"]
    graphprep.reorder(str(tmp_path / "two"), str(tmp_path / "back"), by="previous")
    assert read_store(tmp_path / "back") == read_store(STORES[SHOP])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), room_bytes=st.sampled_from([8, 64, 1 << 20]))
def test_nodes_as_a_permutation_says(data, room_bytes, tmp_path_factory):
    """Its inverse leads back, to the byte."""
    folder = tmp_path_factory.mktemp("permutation")
    store, name = STORES["karate_partition_file"], "_N"
    sizes = json.loads((store / "metadata.json").read_text())["num_nodes_per_chunk"][0]
    borders = np.cumsum([0, *sizes])
    order = [node for low, high in pairwise(borders.tolist()) for node in data.draw(st.permutations(range(low, high)))]
    np.save(folder / "there.npy", np.array(order, np.int32))
    np.save(folder / "back.npy", np.argsort(order))
    graphprep.reorder(str(store), str(folder / "out"), by=f"permutation:{folder}/there.npy")
    assert_files(folder / "out", reorder_reference(read_files(store), "permutation", given={name: order}))
    graphprep.reorder(str(folder / "out"), str(folder / "back"), by=f"permutation:{folder}/back.npy")
    assert read_store(folder / "back") == read_store(store)


@pytest.mark.parametrize(
    ("by", "array", "message"),
    [
        ("score", np.r_[[1.0, np.nan], np.zeros(32)], "f.npy[1]: expected a score of 0 or more, found nan"),
        ("score", np.r_[[1, 2, -3], np.zeros(31, int)], "f.npy[2]: expected a score of 0 or more, found -3"),
        ("score", np.zeros(33), "f.npy: expected 34 numbers, found float64[33]"),
        ("score", np.zeros(34, complex), "f.npy: expected 34 numbers, found complex128[34]"),
        ("permutation", np.zeros(34), "f.npy: expected 34 integers, found float64[34]"),
        ("permutation", np.zeros(34, int), "f.npy[0]: typed ID 0 stands there again"),
        ("permutation", np.r_[[0, 1, 1], np.arange(3, 34)], "f.npy[1]: typed ID 1 stands there again"),
        ("permutation", np.r_[[33, 34], np.arange(32)], "f.npy[1]: expected a typed ID in [0, 34), found 34"),
    ],
)
def test_faulty_files_of_orders(by, array, message, tmp_path):
    np.save(tmp_path / "f.npy", array)
    with pytest.raises(DataError) as caught:
        graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "out"), by=f"{by}:{tmp_path}/f.npy")
    assert f"{tmp_path}/{message}" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["f.npy"]


def test_a_permutation_keeps_nodes_in_their_partitions(tmp_path):
    np.save(tmp_path / "f.npy", np.arange(34)[::-1])
    with pytest.raises(DataError) as caught:
        graphprep.reorder(str(STORES["karate_partition_file"]), str(tmp_path / "out"), by=f"permutation:{tmp_path}/f.npy")
    sizes = json.loads((STORES["karate_partition_file"] / "metadata.json").read_text())["num_nodes_per_chunk"][0]
    assert f"f.npy[0]: expected a typed ID in [0, {sizes[0]}), found 33" in str(caught.value)
    assert "each partition keeps its nodes" in str(caught.value)


def test_the_order_of_graphlearn(tmp_path):
    """The example of ``sort_by_in_degree``: in-degrees 1, 1, 3 of five rows."""
    (tmp_path / "edges.txt").write_text("4 0\n3 1\n4 2\n3 2\n0 2\n")
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"))
    graphprep.reorder(str(tmp_path / "store"), str(tmp_path / "out"), by="in-degree")
    previous = np.load(tmp_path / "out/part-00000/nodes/_N/previous_ids.npy")
    id2index = np.empty(5, np.int64)
    id2index[previous] = np.arange(5)
    assert (previous.tolist(), id2index.tolist()) == ([2, 0, 1, 3, 4], [1, 2, 0, 3, 4])


def node_arrays(store, name, file):
    """An array of a node type, that of all partitions as one."""
    return np.concatenate([np.load(part / f"nodes/{name}/{file}.npy") for part in sorted(store.glob("part-*"))])


def test_the_index_of_graphlearn(tmp_path):
    """The same example, and the hot rows that ``Feature`` makes of a split ratio: ``int(rows * split_ratio)``."""
    (tmp_path / "edges.txt").write_text("4 0\n3 1\n4 2\n3 2\n0 2\n")
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"))
    options = {"by": "in-degree", "split_ratio": 0.5, "id2index": True}
    summary = graphprep.reorder(str(tmp_path / "store"), str(tmp_path / "out"), **options)
    assert node_arrays(tmp_path / "out", "_N", "id2index").tolist() == [1, 2, 0, 3, 4]
    assert summary.num_hot == {"_N": 2}


@pytest.mark.parametrize("scope", ["partition", "graph"])
@pytest.mark.parametrize("name", ["karate_partition_file", SHOP, "names_lesmis_random", "davis_bipartite"])
def test_where_each_node_went(name, scope, tmp_path):
    options = {"scope": scope, "split_ratio": 0.5, "id2index": True}
    graphprep.reorder(str(STORES[name]), str(tmp_path / "one"), by="random", scope="graph", seed=2)
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "two"), by="degree", **options)
    report = graphprep.validate(str(tmp_path / "two"))
    assert report.sound, report.faults
    metadata = json.loads((tmp_path / "two/metadata.json").read_text())
    for number, (node_type, schema) in enumerate(metadata["node_schema"].items()):
        index, size = node_arrays(tmp_path / "two", encoded(node_type), "id2index"), metadata["num_nodes_per_type"][number]
        if "node_order" in schema:
            assert index[node_arrays(tmp_path / "two", encoded(node_type), "previous_ids")].tolist() == list(range(size))
        sizes = metadata["num_nodes_per_chunk"][number]
        borders = np.cumsum([0, *sizes])
        hot = np.minimum(borders, int(size * 0.5)) if scope == "graph" else [0, *np.cumsum([int(one * 0.5) for one in sizes])]
        assert schema["num_hot"] == np.diff(hot).tolist()
    graphprep.reorder(str(tmp_path / "two"), str(tmp_path / "back"), by="previous")
    assert read_store(tmp_path / "back") == read_store(STORES[name])


def test_validate_finds_what_is_wrong_with_the_index(tmp_path):
    graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "one"), by="degree", id2index=True, split_ratio=0.1)
    right = int(node_arrays(tmp_path / "one", "_N", "id2index")[4])
    spoil(tmp_path / "one", tmp_path / "bad", "nodes/_N/id2index.npy", put(4, 40))
    path = tmp_path / "bad/metadata.json"
    path.write_text(path.read_text().replace('"num_hot": [\n        3', '"num_hot": [\n        35'))
    found = [str(fault) for fault in graphprep.validate(str(tmp_path / "bad")).faults]
    assert "metadata.json: node_schema._N.num_hot: expected a number for each partition, at most [34], found [35]" in found
    assert f"part-00000/nodes/_N/id2index.npy[4]: expected {right}, whose previous ID this is, found 40" in found


# ----------------------------------------------------------------------------------------------- across partitions


def joined(store):
    """Every array of a store, those of all partitions as one."""
    with Storage() as storage:
        whole = WholeStore(StoreReader(storage, str(store)))
        paths = {path.split("/", 1)[1] for path in read_store(store) if path.endswith(".npy")}
        return {path: whole.array(0, path).read().tolist() for path in paths if not path.endswith("raw_order.npy")}


@pytest.mark.parametrize("room_bytes", [16, pytest.param(1 << 20, marks=pytest.mark.heavy)])
@pytest.mark.parametrize("by", ORDERS)
def test_nodes_across_partitions_stand_as_in_one(by, room_bytes, tmp_path):
    """Partitions by range change no typed ID; so the order of all nodes is that of a store of one partition, cut."""
    case = next(case for case in CASES if case.name == SHOP)
    for name, partitions in (("one", 1), ("two", 2)):
        options = case.resolved_options() | {"partitions": partitions, "partition_by": "range"}
        graphprep.convert([str(path) for path in case.input_paths], str(tmp_path / name), **options)
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "one-out"), by=by, seed=3)
    gaps = reorder_in(room_bytes, tmp_path / "two", tmp_path / "two-out", by, threads=2, seed=3, is_global=True)
    assert joined(tmp_path / "two-out") == joined(tmp_path / "one-out")
    report = graphprep.validate(str(tmp_path / "two-out"))
    assert report.sound, report.faults
    assert (gaps[1].mean_log2, gaps[1].bits_per_edge) == pytest.approx(gap_cost(tmp_path / "one-out"), abs=1e-4)
    old, new = (json.loads((tmp_path / name / "metadata.json").read_text()) for name in ("two", "two-out"))
    if by in ("random", "rcm"):  # by the others no node happens to leave its partition
        assert (new["partition_by"], new["previous_partition_by"]) == ("order", "range")
    assert new["num_nodes_per_chunk"] == old["num_nodes_per_chunk"]


MANY = ["karate_partition_file", "shop_scattered_hash", "names_lesmis_random", "names_signed_modulo", SHOP, "davis_bipartite"]


@pytest.mark.parametrize("name", [*MANY, "shop_chunked_parts", "shop_json_random", "names_awkward_hash"])
def test_nodes_come_back_to_their_partitions(name, tmp_path):
    """Whatever the function that partitioned them, and after a second reorder; raw IDs are found meanwhile."""
    store, number = STORES[name], len(name)
    graphprep.reorder(str(store), str(tmp_path / "one"), by="random", scope="graph", seed=number)
    report = graphprep.validate(str(tmp_path / "one"))
    assert report.sound, report.faults
    graphprep.reorder(str(tmp_path / "one"), str(tmp_path / "two"), by="dbg")
    assert graphprep.validate(str(tmp_path / "two")).sound
    for name, rows in tables(tmp_path / "two").items():
        for source, target in (("raw", "previous"), ("previous", "typed"), ("typed", "raw")):
            assert convert_ids(tmp_path / "two", rows, source, target, type_=name) == [row[target] for row in rows]
    graphprep.reorder(str(tmp_path / "two"), str(tmp_path / "back"), by="previous")
    assert read_store(tmp_path / "back") == read_store(store)


def test_a_permutation_of_the_graph_and_another_number_of_partitions(tmp_path):
    store = STORES["karate_partition_file"]
    np.save(tmp_path / "f.npy", np.arange(34)[::-1])
    graphprep.reorder(str(store), str(tmp_path / "out"), by=f"permutation:{tmp_path}/f.npy", scope="graph")
    assert joined(tmp_path / "out")["nodes/_N/previous_ids.npy"] == list(range(34))[::-1]
    graphprep.reorder(str(STORES["karate_json_random"]), str(tmp_path / "random"), by="random", scope="graph")
    graphprep.export(str(tmp_path / "random"), str(tmp_path / "parts"), "glt", partitions=3, drop_unsupported=True)
    assert len(list((tmp_path / "parts").glob("part?"))) == 3


@pytest.mark.parametrize("value", [0, 34])
def test_validate_finds_what_is_wrong_with_an_order_across_partitions(value, tmp_path):
    graphprep.reorder(str(STORES["karate_json_random"]), str(tmp_path / "one"), by="degree", scope="graph")
    first = np.load(tmp_path / "one/part-00000/nodes/0/previous_ids.npy")[0]
    value = value or int(np.load(tmp_path / "one/part-00001/nodes/0/previous_ids.npy")[0])
    spoil(tmp_path / "one", tmp_path / "bad", "nodes/0/previous_ids.npy", put(0, value))
    found = [str(fault) for fault in graphprep.validate(str(tmp_path / "bad")).faults]
    assert f"part-00000/nodes/0/previous_ids.npy: typed ID {first} is missing" in found, found


# ---------------------------------------------------------------------------------------------------- against SciPy

GRAPHS = st.fixed_dictionaries(
    {
        "edges": st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), min_size=1, max_size=40),
        "partitions": st.integers(1, 3),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "neighbor_order": st.sampled_from(["input", "id", "weight"]),
        "edge_ids": st.booleans(),
        "by": st.sampled_from(DEGREES),
        "room_bytes": st.sampled_from([8, 64, 1 << 20]),
        "threads": st.sampled_from([1, 2, 4]),
    }
)


SIMPLE = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 14)), min_size=1, max_size=30)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=SIMPLE, room_bytes=st.sampled_from([8, 1 << 20]), layout=st.sampled_from(["csc", "csr"]))
def test_walks_agree_with_scipy(edges, room_bytes, layout, scipy, tmp_path_factory):
    """Of graphs without loops and equal edges, where SciPy's sort of the degrees, which settles no ties, keeps them in order."""
    folder = tmp_path_factory.mktemp("walk")
    edges = sorted({(min(edge), max(edge)) for edge in edges} - {(node, node) for node in range(15)}) or [(0, 1)]
    (folder / "edges.txt").write_text("".join(f"{src} {dst}\n" for src, dst in edges))
    graphprep.convert(str(folder / "edges.txt"), str(folder / "store"), ids="dense", num_nodes=15, layout=layout)
    matrix = scipy.sparse.coo_matrix((np.ones(len(edges)), np.array(edges).T), (15, 15))
    matrix = scipy.sparse.csr_matrix(matrix + matrix.T)
    expected, left = [], np.ones(15, bool)
    while left.any():
        expected += scipy.sparse.csgraph.breadth_first_order(matrix, int(np.argmax(left)), return_predecessors=False).tolist()
        left[expected] = False
    orders = {"bfs": expected}
    degrees = np.diff(matrix.indptr)
    if (np.argsort(degrees) == np.argsort(degrees, kind="stable")).all():
        orders["rcm"] = scipy.sparse.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True).tolist()
    for by, order in orders.items():
        reorder_in(room_bytes, folder / "store", folder / by, by)
        path = folder / by / "part-00000/nodes/_N/previous_ids.npy"
        assert (np.load(path).tolist() if path.exists() else list(range(15))) == order


def test_communities_lie_together(tmp_path):
    """Sixteen cliques of sixteen nodes, whose numbers are shuffled, in a ring: each gets numbers in a row, and gaps are small."""
    names = np.random.default_rng(7).permutation(256).reshape(16, 16)
    edges = [(row[i], row[j]) for row in names for i in range(16) for j in range(i)]
    edges += [(names[i, 0], names[i - 1, 1]) for i in range(16)]
    (tmp_path / "edges.txt").write_text("".join(f"{src} {dst}\n" for src, dst in edges))
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"))
    summary = graphprep.reorder(str(tmp_path / "store"), str(tmp_path / "out"), by="llp")
    new = np.argsort(np.load(tmp_path / "out/part-00000/nodes/_N/previous_ids.npy"))
    assert [int(np.ptp(new[row])) for row in names] == [15] * 16
    assert summary.gaps_after.bits_per_edge < summary.gaps_before.bits_per_edge / 2


def read_matrix(scipy, store, layout):
    """The weighted adjacency matrix, rows are sources; parallel edges add up. Also the rows' lengths, as stored."""
    metadata = json.loads((store / "metadata.json").read_text())
    size, blocks, counts = metadata["num_nodes_per_type"][0], [], []
    for part in metadata["parts"]:
        folder = store / part["path"] / "edges" / "_N___E___N"
        indptr, indices = (np.load(folder / layout / f"{name}.npy") for name in ("indptr", "indices"))
        weights = np.load(folder / "weight.npy") if layout == metadata["layouts"][0] else np.ones(indices.size)
        blocks.append(scipy.sparse.csr_matrix((weights, indices, indptr), (len(indptr) - 1, size)))
        counts += np.diff(indptr).tolist()
    matrix = scipy.sparse.vstack(blocks)
    return (matrix.T if layout == "csc" else matrix).toarray(), counts


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=GRAPHS)
def test_the_graph_is_the_permuted_one(graph, scipy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    lines = [f"{src} {dst} {i % 5}\n" for i, (src, dst) in enumerate(graph["edges"])]
    (folder / "edges.txt").write_text("".join(lines))
    options = {key: graph[key] for key in ("partitions", "layout", "neighbor_order", "edge_ids")}
    options |= {"ids": "dense", "decoder_options": {"weight_col": "2"}}
    graphprep.convert(str(folder / "edges.txt"), str(folder / "old"), **options)
    reorder_in(graph["room_bytes"], folder / "old", folder / "new", graph["by"], threads=graph["threads"])
    report = graphprep.validate(str(folder / "new"))
    assert report.sound, report.faults
    metadata = json.loads((folder / "old/metadata.json").read_text())
    sizes = metadata["num_nodes_per_chunk"][0]
    files = [folder / "new" / part["path"] / "nodes/_N/previous_ids.npy" for part in metadata["parts"]]
    previous = np.concatenate([np.load(file) for file in files]) if files[0].exists() else np.arange(sum(sizes))
    for layout in metadata["layouts"]:
        old, new = (read_matrix(scipy, folder / name, layout)[0] for name in ("old", "new"))
        np.testing.assert_array_equal(new, old[np.ix_(previous, previous)])
    ones = scipy.sparse.coo_matrix((np.ones(len(graph["edges"])), np.array(graph["edges"]).T), (sum(sizes),) * 2)
    degrees = {"in-degree": ones.sum(0).A1, "out-degree": ones.sum(1).A1}
    degrees["degree"] = degrees["in-degree"] + degrees["out-degree"]
    for part in np.split(previous, np.cumsum(sizes)[:-1]):
        keys = [(-degrees[graph["by"]][node], node) for node in part]
        assert keys == sorted(keys)


# ---------------------------------------------------------------------------------------------------- IDs


def tables(store):
    """For each node type a row a node: its IDs in every space, straight from the files."""
    files = read_files(store)
    found, part_id = {name: [] for name in files["metadata.json"]["node_type"]}, 0
    for part, entry in enumerate(files["metadata.json"]["parts"]):
        for number, (name, rows) in enumerate(found.items()):
            stem = f"{entry['path']}/nodes/{encoded(name)}"
            if files["metadata.json"]["node_schema"][name]["raw_ids"] == "string":
                data, ends = files[f"{stem}/raw_ids.values.npy"].tobytes(), files[f"{stem}/raw_ids.offsets.npy"].tolist()
                raw = [data[low:high].decode() for low, high in pairwise(ends)]
            elif f"{stem}/raw_ids.npy" in files:
                raw = files[f"{stem}/raw_ids.npy"].tolist()
            else:
                raw = range(len(rows), len(rows) + files["metadata.json"]["num_nodes_per_chunk"][number][part])
            same = np.arange(len(rows), len(rows) + len(raw))  # not stored where nodes stand as they stood at first
            for local, previous in enumerate(files.get(f"{stem}/previous_ids.npy", same).tolist()):
                row = {"raw": raw[local], "typed": len(rows), "previous": previous, "part": part_id, "local": (part, local)}
                rows.append(row)
                part_id += 1
    homo = itertools.count()
    return {name: [row | {"homo": next(homo)} for row in rows] for name, rows in found.items()}


def gap_cost(store):
    """Mean log2 gap and mean length of the gaps' Elias gamma codes, the slow way."""
    reference = Store(read_files(store))
    gaps = []
    layout = reference.metadata["layouts"][0]
    for text in reference.metadata["edge_type"]:
        rows: dict[int, list[int]] = {}
        for edge in reference.edges(text):
            other, own = edge if layout == "csc" else edge[::-1]
            rows.setdefault(own, []).append(other)
        is_same = len(set(reference.ends(text))) == 1
        for own, others in rows.items():
            others.sort()
            first = others[0] - own if is_same else others[0]
            gaps += [1 + 2 * first if first >= 0 else -2 * first]
            gaps += [1 + high - low for low, high in pairwise(others)]
    codes = [2 * (gap.bit_length() - 1) + 1 for gap in gaps]
    return np.mean(np.log2(gaps)) if gaps else 0, np.mean(codes) if gaps else 0


@pytest.mark.parametrize("room_bytes", [8, 100, None])
@pytest.mark.parametrize("name", ["shop_edgelist_both_parts", "karate_csv", "names_lesmis_random", "davis_bipartite"])
def test_what_an_order_is_worth(name, room_bytes, tmp_path):
    if room_bytes is None:
        summary = graphprep.reorder(str(STORES[name]), str(tmp_path / "out"), by="random", seed=5)
        gaps = summary.gaps_before, summary.gaps_after
    else:
        gaps = reorder_in(room_bytes, STORES[name], tmp_path / "out", "random", threads=3, seed=5)
    for store, found in zip((STORES[name], tmp_path / "out"), gaps, strict=True):
        assert (found.mean_log2, found.bits_per_edge) == pytest.approx(gap_cost(store), abs=1e-4)


def test_what_an_order_of_many_edges_is_worth(tmp_path, monkeypatch):
    """Of 78 edges at most 20 are asked for: every fourth block, here each of one row."""
    monkeypatch.setattr(gaps_module, "_MOST_EDGES", 20)
    monkeypatch.setattr(gaps_module, "_BLOCK_ROWS", 1)
    summary = graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "out"), by="random", seed=5)
    folder = STORES[KARATE] / "part-00000" / CSC
    indptr, indices = (np.load(folder / f"{name}.npy") for name in ("indptr", "indices"))
    new_ids = np.argsort(np.load(tmp_path / "out/part-00000/nodes/_N/previous_ids.npy"))
    for ids, found in ((np.arange(34), summary.gaps_before), (new_ids, summary.gaps_after)):
        gaps = []
        for row in range(0, 34, 4):
            others = sorted(ids[indices[indptr[row] : indptr[row + 1]]].tolist())
            gaps += [1 + 2 * (others[0] - ids[row]) if others[0] >= ids[row] else 2 * (ids[row] - others[0])] if others else []
            gaps += [1 + high - low for low, high in pairwise(others)]
        assert found.mean_log2 == pytest.approx(np.mean(np.log2(gaps)), abs=1e-4)
        assert found.bits_per_edge == pytest.approx(np.mean(2 * np.floor(np.log2(gaps)) + 1), abs=1e-4)


def convert_ids(store, rows, source, target, **options):
    """Convert through the library; local IDs as pairs."""
    values, parts = [row[source] for row in rows], None
    if source == "local":
        parts, values = [part for part, _ in values], [local for _, local in values]
    found = graphprep.ids(str(store), values, from_=source, to=target, parts=parts, **options)
    return [tuple(pair) for pair in zip(*(one.tolist() for one in found), strict=True)] if target == "local" else found.tolist()


LOOKED_UP = ["karate_json_random", "shop_edgelist_both_parts", "names_awkward_hash", "names_lesmis", "names_signed_modulo"]


PAIRS = [(source, target) for source in NODE_SPACES for target in ("raw", "previous")]
PAIRS += [(source, target) for source in ("raw", "previous") for target in ("typed", "part", "local")]


@pytest.mark.parametrize("is_remote", [False, True])
@pytest.mark.parametrize("name", LOOKED_UP)
def test_raw_and_previous_ids_there_and_back(name, is_remote, tmp_path):
    store = tmp_path / "out"
    graphprep.reorder(str(STORES[name]), str(store), by="degree")
    url = store
    if is_remote:
        url = f"memory://reordered-{name}"
        fsspec.filesystem("memory").put(str(store), f"/reordered-{name}", recursive=True)
    type_name, rows = max(tables(store).items(), key=lambda item: len(item[1]))
    shuffled = [rows[i] for i in np.random.default_rng(0).permutation(len(rows))]
    for source, target in PAIRS:
        assert convert_ids(url, shuffled, source, target, type_=type_name) == [row[target] for row in shuffled]
    for row in (rows[-1], rows[0]):  # a search, where all of them are a scan
        assert convert_ids(url, [row], "raw", "typed", type_=type_name) == [row["typed"]]


def test_ids_that_are_not_there(tmp_path):
    graphprep.reorder(str(STORES["shop_scattered_hash"]), str(tmp_path / "out"), by="degree")
    for store in (str(tmp_path / "out"), "memory://scattered"):
        if store.startswith("memory"):
            fsspec.filesystem("memory").put(str(tmp_path / "out"), "/scattered", recursive=True)
        rows = next(iter(tables(tmp_path / "out").values()))
        raw = {row["raw"] for row in rows}
        missing = [one for one in (min(raw) - 1, min(raw) + 1, max(raw) + 1, 2**62) if one not in raw and one >= 0]
        name = next(iter(tables(tmp_path / "out")))
        for source, values in (("raw", missing), ("previous", [len(rows), 2**63])):
            found = graphprep.ids(store, values, from_=source, to="typed", type_=name, missing="mark")
            assert found.tolist() == [-1] * len(values)


def test_previous_ids_of_a_store_in_raw_order_are_refused():
    with pytest.raises(UsageError) as caught:
        graphprep.ids(str(STORES["karate_csv"]), [0], from_="previous", to="raw")
    assert str(caught.value).startswith("no nodes of the store were reordered, so there are no previous IDs")


# ---------------------------------------------------------------------------------------------------- what goes wrong


def spoil(source, target, path, change, part=0):
    """Copy a store with one array changed, and sealed again."""
    files = read_files(source)
    name = f"{part_folder(part, files['metadata.json']['num_parts'])}/{path}"
    files[name] = change(files[name].copy())
    metadata = files.pop("metadata.json")
    parts = add_manifests(files, metadata["num_parts"])
    for where, value in {**files, "metadata.json": {**metadata, "parts": parts}}.items():
        (target / where).parent.mkdir(parents=True, exist_ok=True)
        (target / where).write_bytes(file_bytes(value))
    return target


def put(at, value):
    def change(array):
        array[at] = value
        return array

    return change


EVEN = next(number for number in range(99) if splitmix64(number) % 2 == 0)
CSC = "edges/_N__knows___N/csc"


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        (f"{CSC}/indices.npy", put(5, 34), "indices.npy[5]: expected a typed ID in [0, 34), found 34"),
        (f"{CSC}/indices.npy", put(5, -1), "indices.npy[5]: expected a typed ID in [0, 34), found -1"),
        (f"{CSC}/indptr.npy", put(3, 70), "indptr.npy[4]: offsets must not descend"),
        (f"{CSC}/indptr.npy", put(34, 77), "indptr.npy: expected the last offset to be 78, found 77"),
        (f"{CSC}/indptr.npy", lambda array: array[:-1], "indptr.npy: expected int64[35], by the metadata, found int64[34]"),
        (f"{CSC}/edge_ids.npy", lambda array: array[:-1], "edge_ids.npy: expected int64[78], by the metadata, found int64[77]"),
        (f"{CSC}/indices.npy", lambda array: array.astype(float), "expected int64[78], by the metadata, found float64[78]"),
    ],
)
def test_faulty_arrays_are_told_with_their_place(path, change, message, tmp_path):
    """Nothing is left of the output."""
    spoil(STORES[KARATE], tmp_path / "bad", path, change)
    with pytest.raises(DataError) as caught:
        graphprep.reorder(str(tmp_path / "bad"), str(tmp_path / "out"), by="degree")
    assert message in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["bad"]


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("nodes/0/raw_order.npy", put(1, 3), "raw_order.npy[1]: expected a local ID in [0, 3), found 3"),
        ("edges/0__0__1/csc/indices.npy", put(0, 6), "indices.npy[0]: expected a typed ID in [0, 6), found 6"),
        ("edges/0__0__1/csr/edge_rows.npy", put(2, 18), "edge_rows.npy[2]: expected an edge row in [0, 18), found 18"),
        ("edges/0__0__1/csr/edge_rows.npy", lambda array: array[1:], "edge_rows.npy: expected 9 rows, found 8"),
    ],
)
def test_faulty_arrays_of_a_reordered_store(path, change, message, tmp_path):
    graphprep.reorder(str(STORES[SHOP]), str(tmp_path / "one"), by="random", seed=1)
    spoil(tmp_path / "one", tmp_path / "bad", path, change)
    with pytest.raises(DataError) as caught:
        graphprep.reorder(str(tmp_path / "bad"), str(tmp_path / "out"), by="out-degree", edge_types=("0:1:0",))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("path", "change", "faults"),
    [
        (
            "previous_ids.npy",
            put(0, 34),
            ["previous_ids.npy[0]: expected a typed ID in [0, 34), found 34", "previous_ids.npy: typed ID 33 is missing"],
        ),
        (
            "previous_ids.npy",
            put(1, 33),
            ["previous_ids.npy[1]: typed ID 33 was there before", "previous_ids.npy: typed ID 0 is missing"],
        ),
        (
            "raw_order.npy",
            put(5, -1),
            ["raw_order.npy[5]: expected a local ID in [0, 34), found -1", "raw_order.npy: local ID 10 is missing"],
        ),
        (
            "raw_order.npy",
            lambda array: array[[1, 0, *range(2, 34)]],
            ["raw_order.npy[1]: expected a raw ID above 1, the one before, found 0"],
        ),
        ("raw_ids.npy", put(3, 40), ["raw_order.npy[3]: expected a raw ID above 40, the one before, found 3"]),
    ],
)
def test_validate_finds_what_is_wrong_with_the_order(path, change, faults, tmp_path):
    graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "one"), by="degree")
    spoil(tmp_path / "one", tmp_path / "bad", f"nodes/_N/{path}", change)
    found = [str(fault) for fault in graphprep.validate(str(tmp_path / "bad")).faults if "checksum" not in str(fault)]
    assert found == [f"part-00000/nodes/_N/{fault}" for fault in faults]


@pytest.mark.parametrize(
    ("name", "part", "path", "change", "fault"),
    [
        ("shop_scattered_hash", 1, "raw_ids.npy", put(0, EVEN), "belongs to partition 0 (partition_by hash), found in 1"),
        ("names_lesmis_random", 0, "raw_order.npy", lambda array: array[::-1], "expected a raw ID above"),
        ("karate_json_random", 0, "raw_ids.npy", put(0, 33), "raw ID 33 stands in another partition too"),
    ],
)
def test_validate_follows_raw_ids_in_their_own_order(name, part, path, change, fault, tmp_path):
    graphprep.reorder(str(STORES[name]), str(tmp_path / "one"), by="in-degree" if name[0] == "k" else "random")
    folder = next(one.name for one in sorted((tmp_path / "one/part-00000/nodes").iterdir()))
    spoil(tmp_path / "one", tmp_path / "bad", f"nodes/{folder}/{path}", change, part)
    found = [str(one) for one in graphprep.validate(str(tmp_path / "bad")).faults]
    assert any(fault in one and "raw_order.npy[" in one for one in found), found


def test_validate_wants_raw_ids_where_nodes_have_another_order(tmp_path):
    graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "one"), by="degree")
    path = tmp_path / "one/metadata.json"
    path.write_text(path.read_text().replace('"raw_ids": "int64"', '"raw_ids": "identity"'))
    faults = [str(fault) for fault in graphprep.validate(str(tmp_path / "one")).faults]
    assert any("expected a file of raw IDs, as nodes are not in their order, found 'identity'" in fault for fault in faults)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "size"}, "--by: there is no order 'size'"),
        ({"by": "score"}, "--by score is written score:FILE, found 'score'"),
        ({"by": "score:"}, "--by score is written score:FILE, found 'score:'"),
        ({"by": "degree:x.npy"}, "--by degree is written degree, found 'degree:x.npy'"),
        ({"split_ratio": -0.5, "id2index": True}, "--split-ratio must lie between 0 and 1, found -0.5"),
        ({"split_ratio": 0.5}, "--split-ratio does nothing without --id2index"),
        ({"by": "previous"}, "--by previous: the nodes of the store were not reordered"),
        ({"shuffle_ratio": 1.5}, "--shuffle-ratio must lie between 0 and 1, found 1.5"),
        ({"shuffle_ratio": float("nan")}, "--shuffle-ratio must lie between 0 and 1, found nan"),
        ({"edge_types": ("a:b:c",)}, "--edge-type: unknown edge type 'a:b:c'"),
    ],
)
def test_options_are_checked(options, message, tmp_path):
    with pytest.raises(UsageError) as caught:
        graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "out"), **options)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_disk_that_is_too_small_is_told_before(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "free_bytes", lambda folder: 1000)
    with pytest.raises(StorageError) as caught:
        graphprep.reorder(str(STORES[SHOP]), str(tmp_path / "out"), by="degree")
    assert "the store takes at least" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_store_is_not_written_over_itself(tmp_path):
    shutil.copytree(STORES[KARATE], tmp_path / "store")
    before = read_store(tmp_path / "store")
    for out in (tmp_path / "store", tmp_path / "x/../store"):
        with pytest.raises(UsageError) as caught:
            graphprep.reorder(str(tmp_path / "store"), str(out), overwrite=True)
        assert "the output is the store itself" in str(caught.value)
    with pytest.raises(UsageError, match="the output lies in the store"):
        graphprep.reorder(str(tmp_path / "store"), str(tmp_path / "store" / "sub"))
    with pytest.raises(UsageError, match="the output lies in the store"):
        graphprep.reorder("memory://some/store", "memory://some/store/sub")
    assert read_store(tmp_path / "store") == before


def test_stores_come_from_and_go_to_other_places(tmp_path):
    memory = fsspec.filesystem("memory")
    memory.put(str(STORES[SHOP]), "/far/store", recursive=True)
    graphprep.reorder("memory://far/store", "memory://far/out", by="degree")
    memory.get("/far/out", str(tmp_path / "out"), recursive=True)
    assert_files(tmp_path / "out", reorder_reference(read_files(STORES[SHOP]), "degree"))


# ---------------------------------------------------------------------------------------------------- the command


def test_the_command_prints_what_it_did(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "in-degree", "--edge-type", "0:0:1", "--json", "-q"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["out"], said["by"], said["num_parts"]) == (out, "in-degree", 2)
    assert said["num_nodes"] == {"0": 6, "1": 5, "2": 3}
    assert_files(tmp_path / "out", reorder_reference(read_files(STORES[SHOP]), "in-degree", ["0:0:1"]))
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "degree", "-q"]) == 2
    assert "the output exists" in capsys.readouterr().err
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "degree", "--overwrite", "--shuffle-ratio", "0.5"]) == 0
    assert capsys.readouterr().out.startswith(f"{out}: 14 nodes, 37 edges, 2 partitions, nodes by degree\n  nodes  0")
    assert_files(tmp_path / "out", reorder_reference(read_files(STORES[SHOP]), "degree", shuffle_ratio=0.5))


def test_the_metadata_of_a_reordered_store_is_a_schema(tmp_path):
    case = next(case for case in CASES if case.name == SHOP)
    graphprep.reorder(str(case.store), str(tmp_path / "out"), by="degree")
    options = case.resolved_options() | {"schema": str(tmp_path / "out/metadata.json")}
    graphprep.convert([str(path) for path in case.input_paths], str(tmp_path / "again"), **options)
    assert read_store(tmp_path / "again") == read_store(case.store)


def test_info_tells_the_order(tmp_path, capsys):
    graphprep.reorder(str(STORES[KARATE]), str(tmp_path / "out"), by="in-degree")
    assert run(["info", str(tmp_path / "out")]) == 0
    assert "nodes _N: 34, raw IDs int64, ordered by in-degree" in capsys.readouterr().out
    assert [one.node_order for one in graphprep.info(str(STORES[KARATE])).node_types] == [None]


def test_the_command_fails_with_its_exit_codes(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert run(["reorder", str(tmp_path / "none"), out, "--by", "degree"]) == 3
    assert "there is no store" in capsys.readouterr().err
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "size"]) == 2
    assert run(["reorder", str(STORES[SHOP]), out]) == 2
    assert "missing option '--by'\n" in capsys.readouterr().err
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "score:none.npy"]) == 2
    assert "one file cannot order 3 node types" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert run(["reorder", str(STORES[SHOP]), out, "--by", f"score:{tmp_path}/folder"]) == 3
    assert "the folder has a file for none of the node types\n  fix: add 0.npy, 1.npy, 2.npy" in capsys.readouterr().err
    assert run(["reorder", str(STORES[SHOP]), "--by", "degree"]) == 2
    assert "missing argument 'OUT'" in capsys.readouterr().err
    assert run(["reorder", str(STORES[SHOP]), out, "--by", "degree", "--memory-limit", "1MiB"]) == 4
    assert "raise --memory-limit" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
