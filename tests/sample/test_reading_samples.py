"""Samples in files as flows: what a loaded store draws without files, with the columns that were copied; and damaged ones."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from clients.graphs import shared_store

import graphprep
from graphprep.model.errors import DataError, InvalidIdError, StorageError, UsageError

FIELDS = ("layer_offsets", "node_mapping", "block_offsets", "sources", "indptr", "edge_mapping", "node_times", "edge_weights")
SAMPLE_DATA = Path(__file__).resolve().parents[2] / "sample_data"
CASES = {
    "homogeneous": ("homogeneous", {"fanouts": [4, 3]}),
    "parquet": ("homogeneous", {"fanouts": [4, 3], "format": "parquet"}),
    "csr": ("homogeneous", {"fanouts": [2, -1]}, {"layout": "csr"}),
    "parts": ("heterogeneous", {"fanouts": [4, 3]}, {"partitions": 3}),
    "both": ("heterogeneous", {"fanouts": [3, 2], "direction": "both", "replace": True}),
    "out": ("heterogeneous", {"fanouts": ["user:buys:item=2,2", "user:knows:user=3,1"], "direction": "out"}),
    "full": ("heterogeneous", {"full": 2}),
    "loops": ("homogeneous", {"fanouts": [3, 2], "add_self_loop": True}),
    "layers": ("homogeneous", {"layer_sizes": [9, 6]}),
}


def make(name, folder, **more):
    """Sample all nodes; return (the graph, the samples, the same flows drawn in memory)."""
    kind, options, *of_store = CASES[name]
    store = shared_store(kind, **(of_store[0] if of_store else {}))[1]
    graph = graphprep.load(str(store))
    words = []
    for node_type in graph.node_types:
        np.save(folder / f"{node_type}.npy", np.arange(graph.num_nodes(node_type)))
        words.append(f"{node_type}={folder / node_type}.npy")
    options = {"batch_size": 16, "epochs": 2, "seed": 5, **options}
    copied = {"copy_columns": [f"{graph.node_types[0]}:feat"]} | more
    graphprep.sample(str(store), str(folder / "flows"), seeds=words, typed_ids=True, **options, **copied)
    options.pop("format", None)
    return graph, graphprep.open_samples(folder / "flows"), graphprep.neighbor_sampling(graph, **options)


def assert_same(one, two):
    for field in FIELDS:
        own, other = getattr(one.arrays, field), getattr(two.arrays, field)
        assert (own is None) == (other is None), field
        if own is not None:
            np.testing.assert_array_equal(own, other, field)
            assert own.dtype == other.dtype, field
    assert one.arrays.block_types == two.arrays.block_types


@pytest.mark.parametrize("name", CASES)
def test_files_hold_what_is_drawn_in_memory(name, tmp_path):
    graph, samples, drawn = make(name, tmp_path)
    assert len(samples) == len(drawn) == samples.num_epochs * samples.manifest.num_batches
    for one, two in zip(samples, drawn, strict=True):
        assert_same(one, two)
    assert_same(samples[-1], drawn[-1])
    assert_same(samples.epoch(1)[0], drawn[len(drawn) // 2])
    assert [flow.flow_sizes for flow in samples[2:4]] == [flow.flow_sizes for flow in drawn[2:4]]
    for flow in samples:  # every edge is one of the graph
        for block in range(flow.num_blocks):
            for number, block_type in enumerate(flow.arrays.block_types):
                src, dst, eid = flow.block_edges(block, edge_type=number)
                own = flow.edge_mapping[eid] >= 0
                ends = graph.find_edges(flow.edge_mapping[eid[own]], block_type.edge_type)
                wanted = ends[::-1] if block_type.is_reversed else ends
                found = [flow.map_to_parent_nid(end[own]) for end in (src, dst)]
                assert [end.tolist() for end in found] == [end.tolist() for end in wanted]
                assert flow.map_to_parent_nid(src[~own]).tolist() == flow.map_to_parent_nid(dst[~own]).tolist()


def test_reversed_edge_types_have_names_of_their_own(tmp_path):
    _, samples, _ = make("both", tmp_path)
    types = samples[0].edge_types
    assert types[:4] == (
        ("user", "buys", "item"),
        ("item", "has", "tag"),
        ("user", "knows", "user"),
        ("tag", "rev_has", "item"),
    )
    assert types[4:] == (
        ("item", "rev_buys", "user"),
        ("tag", "rev_rev_has", "item"),
        ("user", "rev_knows", "user"),
        ("item", "rev_rev_has", "tag"),
    )


@pytest.mark.parametrize("file_format", ["npz", "parquet"])
@pytest.mark.parametrize("name", ["parts", "both", "loops"])
def test_copied_columns_are_those_of_the_parent(name, file_format, tmp_path):
    kind = CASES[name][0]
    store = shared_store(kind, **(CASES[name][2] if len(CASES[name]) > 2 else {}))[1]
    graph = graphprep.load(str(store))
    edge_type = graph.edge_types[0]
    columns = [f"{graph.node_types[0]}:{one.name}" for one in graph.columns(graph.node_types[0]) if one.kind == "dense"]
    columns += [f"{':'.join(edge_type)}:{one.name}" for one in graph.columns(edge_type) if one.kind == "dense"]
    _, samples, _ = make(name, tmp_path, copy_columns=columns, format=file_format)
    with_graph = graphprep.open_samples(tmp_path / "flows", graph=store)
    for flow, whole in zip(samples, with_graph, strict=True):
        for layer in range(flow.num_layers):
            assert set(flow.layers[layer].data) == {one.partition(":")[2] for one in columns[: len(flow.layers[layer].data)]}
            for column, values in flow.layers[layer].data.items():
                wanted = whole.layers[layer].data[column]
                for kind in values if isinstance(values, dict) else [None]:
                    own, other = (some if kind is None else some[kind] for some in (values, wanted))
                    np.testing.assert_array_equal(own, other)
        for block in range(flow.num_blocks):
            for column, values in flow.flows[block, block + 1].data.items():
                wanted = whole.flows[block, block + 1].data[column]
                for kind in values if isinstance(values, dict) else [None]:
                    own, other = (some if kind is None else some[kind] for some in (values, wanted))
                    np.testing.assert_array_equal(own, other)


def test_samples_are_pickled_as_what_opens_them_again(tmp_path):
    graph, samples, _ = make("homogeneous", tmp_path)
    again = pickle.loads(pickle.dumps(graphprep.open_samples(tmp_path / "flows", graph=graph)[1:3]))
    assert len(again) == 2
    assert_same(again[0], samples[1])
    assert again[1].back.data["y"].tolist() == graph.take("paper", "y", samples[2].layer_parent_nid(-1)).tolist()
    assert repr(samples) == (f"Samples('{tmp_path}/flows'): 6 flows\n  3 layers; 3 batches in each of 2 epochs")


def test_samples_lie_in_memory_file_systems_too(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    _, samples, _ = make("homogeneous", tmp_path)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path / "flows"), "/sampled", recursive=True)
    try:
        for one, two in zip(graphprep.open_samples("memory://sampled"), samples, strict=True):
            assert_same(one, two)
    finally:
        memory.rm("/sampled", recursive=True)


def test_what_is_no_whole_folder_of_samples_is_told(tmp_path):
    graph, _, _ = make("homogeneous", tmp_path)
    flows, fix = tmp_path / "flows", "  fix: sample again, or copy the samples again"
    shard = flows / "samples-00000.npz"

    def error(kind, ask, *cut):
        with pytest.raises(kind) as raised:
            ask()
        return str(raised.value)

    good = shard.read_bytes()
    shard.write_bytes(good[:-7])
    message = f"{shard}: the file has {len(good) - 7} bytes, the manifest says {len(good)}\n{fix}"
    assert error(DataError, lambda: graphprep.open_samples(flows)[0]) == message
    shard.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    found = error(DataError, lambda: graphprep.open_samples(flows)[0])
    assert found.startswith(f"{shard}: the file has {len(good)} bytes and xxh3 ")
    assert found.endswith(f", the manifest says {len(good)} and {manifest(flows)['shards'][0]['xxh3']}\n{fix}")
    shard.unlink()
    assert error(StorageError, lambda: graphprep.open_samples(flows)[0]).startswith(f"{shard}: ")
    shard.write_bytes(good)

    other = shared_store("few_nodes")[1]
    assert error(DataError, lambda: graphprep.open_samples(flows, graph=other)).startswith(
        f"{other}: these are not samples of this store: num_nodes_per_type was [40], and is [3]"
    )
    assert error(StorageError, lambda: graphprep.open_samples(tmp_path)) == (
        f"{tmp_path}: there are no samples: manifest.json is missing\n"
        "  fix: name a folder that graphprep sample wrote; the manifest is written last"
    )
    place = flows / "manifest.json"
    whole = manifest(flows)
    for changes, words in (
        ({"format": "graphprep-store"}, "this is no manifest of samples\n  fix: name a folder that graphprep sample wrote"),
        ({"format_version": 2}, "samples of version 2, this graphprep reads 1\n  fix: sample again"),
        ({"num_flows": 7}, "the shards have 6 flows, num_flows says 7\n  fix: sample again"),
        ({"shards": 3}, f"the manifest is not whole: TypeError: 'int' object is not iterable\n{fix}"),
    ):
        place.write_text(json.dumps({**whole, **changes}))
        assert error(DataError, lambda: graphprep.open_samples(flows)) == f"{place}: {words}"
    place.write_text("{")
    assert error(DataError, lambda: graphprep.open_samples(flows)).startswith(f"{place}: this is no manifest of samples")
    assert graph.num_nodes() == 40


def manifest(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_epochs_and_numbers_that_are_not_there_are_refused(tmp_path):
    _, samples, drawn = make("homogeneous", tmp_path)
    with pytest.raises(UsageError, match="there is no epoch 2: there are 2"):
        samples.epoch(2)
    for some in (samples, drawn):
        with pytest.raises(IndexError, match="flow 6 of 6"):
            some[6]
    shutil.rmtree(tmp_path / "flows")


def test_seeds_that_are_not_there_are_refused():
    graph = graphprep.load(str(shared_store("heterogeneous")[1]))
    cases = [
        ({"user": [99]}, "there is no node 99 of type 'user'\n  fix: pass typed IDs"),
        ({"nix": [1]}, "there is no node type 'nix'\n  fix: use some of user, item, tag"),
        ({"user": []}, "there are no seeds\n  fix: pass IDs of nodes"),
        ([1], "there are several node types\n  fix: pass a dict by node type"),
    ]
    for seeds, message in cases:
        with pytest.raises(UsageError) as error:
            graphprep.neighbor_sampling(graph, seeds, fanouts=[2])
        assert str(error.value) == message
    integers = "must be integers, found"
    for seeds, message in [
        ([1.7], f"ids {integers} float64\n  fix: convert them to int64 first"),
        (["a"], f"ids {integers} <U1\n  fix: convert them to int64 first"),
        ([True], f"ids {integers} bool\n  fix: convert them to int64 first"),
        ([[1, 2]], "ids must be in one dimension, found shape (1, 2)\n  fix: pass a flat list"),
        ([[1], [1, 2]], f"ids {integers} nested lists"),
        ([0, 2**64], f"ids must fit int64, found {2**64}\n  fix: pass smaller ones"),
    ]:
        with pytest.raises(InvalidIdError) as error:
            graphprep.create_full_node_flow(graph, 1, seeds={"user": seeds})
        assert str(error.value) == message
        with pytest.raises(InvalidIdError) as error:
            graphprep.neighbor_sampling(graph, {"user": [1]}, seed_times={"user": seeds}, fanouts=[2], time_column="t")
        assert str(error.value) == message.replace("ids ", "seed_times ")
    with pytest.raises(UsageError) as error:
        graphprep.neighbor_sampling("store", [1], fanouts=[2])
    assert str(error.value) == "graph must be a loaded store, found 'store'\n  fix: pass graphprep.load(STORE)"
    with pytest.raises(UsageError) as error:
        graphprep.neighbor_sampling(graph, {"user": [1]}, fanouts=[2], overwrite=True)
    assert str(error.value) == "overwrite is an option of files\n  fix: leave out overwrite; seeds are the second argument"


def test_options_of_files_are_not_offered_to_flows_in_memory():
    graph = graphprep.load(str(shared_store("homogeneous")[1]))
    with pytest.raises(UsageError, match="there is no option 'nope'\n  fix: the options are: ") as error:
        graphprep.neighbor_sampling(graph, [1], nope=1)
    offered = set(error.value.fix.removeprefix("the options are: ").split(", "))
    assert {"fanouts", "batch_size", "threads"} <= offered
    for name in ("seeds", "seed_times", "typed_ids", "copy_columns", "format", "overwrite"):
        assert name not in offered


def test_a_temporal_flow_is_that_of_the_files(tmp_path):
    store = shared_store("temporal")[1]
    graph = graphprep.load(str(store))
    edge_type = graph.edge_types[0]
    time = next(one.name for one in graph.columns(edge_type) if one.role == "time")
    node_type = edge_type[2]
    nodes = np.arange(graph.num_nodes(node_type))
    times = np.resize(np.sort(graph.column(edge_type, time))[:: max(1, graph.num_edges(edge_type) // 7)], nodes.size).astype(
        np.int64
    )
    for name, values in (("nodes", nodes), ("times", times)):
        np.save(tmp_path / f"{name}.npy", values)
    options = {"fanouts": [3, 2], "time_column": time, "batch_size": 8}
    words = {"seeds": f"{node_type}={tmp_path / 'nodes.npy'}", "seed_times": str(tmp_path / "times.npy")}
    graphprep.sample(str(store), str(tmp_path / "flows"), **words, typed_ids=True, **options)
    drawn = graphprep.neighbor_sampling(graph, {node_type: nodes}, seed_times={node_type: times}, **options)
    for one, two in zip(graphprep.open_samples(tmp_path / "flows"), drawn, strict=True):
        assert one.arrays.node_times is not None
        assert_same(one, two)


@pytest.fixture(scope="module")
def karate(tmp_path_factory):
    """Return a folder with a store ``a``, samples of it, ``flows``, and what makes other stores of the same edges."""
    folder = tmp_path_factory.mktemp("karate")
    lines = (SAMPLE_DATA / "karate" / "karate.csv").read_text().splitlines()
    (folder / "turned.csv").write_text("\n".join([lines[0], *reversed(lines[1:])]) + "\n")

    def convert(out, path=SAMPLE_DATA / "karate" / "karate.csv", **options):
        graphprep.convert(path, folder / out, decoder_options={"weight_col": "weight"}, **options)
        return folder / out

    convert("a")
    (folder / "seeds.txt").write_text("5\n16\n")
    graphprep.sample(folder / "a", folder / "flows", seeds=f"{folder}/seeds.txt", full=2)
    return folder, convert


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (lambda a, b, _: graphprep.reorder(a, b, by="degree"), "nodes of type '_N'"),
        (lambda a, b, _: graphprep.partition(a, b, by="hash", partitions=2), "nodes of type '_N'"),
        (lambda a, b, convert: convert(b, a.parent / "turned.csv"), "edges of type '_N:_E:_N'"),
        (lambda a, b, convert: convert(b, a.parent / "turned.csv", partitions=2), "edges of type '_N:_E:_N'"),
    ],
    ids=["reordered", "hashed", "other edge IDs", "other edge IDs in parts"],
)
def test_a_graph_in_another_order_is_refused(karate, tmp_path, other, kind):
    folder, convert = karate
    other(folder / "a", tmp_path / "b", convert)
    words = f"{tmp_path}/b: these are not samples of this store: its {kind} stand in another order"
    with pytest.raises(DataError, match=re.escape(words)) as error:
        graphprep.open_samples(folder / "flows", graph=tmp_path / "b")
    assert error.value.fix == "name the store that was sampled, not one made of it or made anew, or sample this one"
    flow = graphprep.open_samples(folder / "flows")[0]
    with pytest.raises(DataError, match="in another order"):
        flow.copy_from_parent(parent=graphprep.load(tmp_path / "b"))
    of_a = graphprep.neighbor_sampling(graphprep.load(folder / "a"), [5], fanouts=[2])[0]
    with pytest.raises(DataError, match="in another order"):
        of_a.copy_from_parent(parent=graphprep.load(tmp_path / "b"))
    with pytest.raises(DataError, match="in another order"):
        graphprep.create_full_node_flow(graphprep.load(tmp_path / "b"), 1, of_a.layer_parent_nid(0)).append(of_a)


@pytest.mark.parametrize(
    "other",
    [
        lambda _, b, convert: convert(b),
        lambda _, b, convert: convert(b, partitions=3),
        lambda _, b, convert: convert(b, layout="csr"),
        lambda _, b, convert: convert(b, layout="both", partitions=2),
        lambda a, b, _: graphprep.split(a, b, "0.8/0.1/0.1", by="random"),
    ],
    ids=["again", "range partitions", "the other layout", "both", "with a split"],
)
def test_a_graph_in_the_same_order_is_taken(karate, tmp_path, other):
    folder, convert = karate
    other(folder / "a", tmp_path / "b", convert)
    one, two = (graphprep.open_samples(folder / "flows", graph=store)[0] for store in (folder / "a", tmp_path / "b"))
    assert one.flows[1, 2].data["weight"].tolist() == two.flows[1, 2].data["weight"].tolist()
    flow = graphprep.open_samples(folder / "flows")[0]
    flow.copy_from_parent(parent=graphprep.load(tmp_path / "b"))
    assert flow.flows[1, 2].data["weight"].tolist() == one.flows[1, 2].data["weight"].tolist()


def test_text_ids_are_bound_by_their_order(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\nann,bob\nbob,cid\ncid,dan\ndan,ann\n")
    (tmp_path / "seeds.txt").write_text("ann\n")
    names = {"format": "edges", "decoder_options": {"id_type": "string"}}
    graphprep.convert(tmp_path / "edges.csv", tmp_path / "a", **names)
    graphprep.sample(tmp_path / "a", tmp_path / "flows", seeds=f"{tmp_path}/seeds.txt", full=2, direction="both")
    graphprep.convert(tmp_path / "edges.csv", tmp_path / "parts", partitions=2, **names)
    graphprep.open_samples(tmp_path / "flows", graph=tmp_path / "parts")
    graphprep.reorder(tmp_path / "a", tmp_path / "b", by="random")
    with pytest.raises(DataError, match="nodes of type '_N' stand in another order"):
        graphprep.open_samples(tmp_path / "flows", graph=tmp_path / "b")


def test_samples_that_do_not_say_in_which_order_their_store_stood_are_opened_without_it(karate, tmp_path):
    folder, _ = karate
    shutil.copytree(folder / "flows", tmp_path / "flows")
    value = manifest(folder / "flows")
    del value["store"]["node_order"]
    (tmp_path / "flows" / "manifest.json").write_text(json.dumps(value))
    assert len(graphprep.open_samples(tmp_path / "flows")) == 1
    with pytest.raises(DataError, match="their manifest lacks node_order, which says how its nodes are numbered"):
        graphprep.open_samples(tmp_path / "flows", graph=folder / "a")
