"""``NodeFlow``: what its names mean, against loops over all edges."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from clients.graphs import GRAPHS, shared_store

import graphprep
from graphprep.model.errors import DataError, InvalidIdError, UsageError
from graphprep.sample.arrays import FlowArrays, block_types
from graphprep.sample.flow.node_flow import NodeFlow

NAMES = ("homogeneous", "heterogeneous", "multi_edge", "empty_type", "no_edges")
SEEDS = {"homogeneous": {"paper": [7, 3, 20]}, "heterogeneous": {"user": [3, 5], "tag": [1]}}


def load(name, **options):
    return graphprep.load(str(shared_store(name, **options)[1]))


def naive_full(graph, hops, seeds):
    """Return layers as {type: nodes}, and blocks as {edge type: [(source, destination, edge ID)]}, outermost first."""
    edges = {kind: list(zip(*(end.tolist() for end in graph.edges(kind)), strict=True)) for kind in graph.edge_types}
    layer = {kind: list(seeds.get(kind, ())) for kind in graph.node_types}
    layers, blocks = [layer], []
    for _ in range(hops):
        block = {
            kind: [edge for node in layer[kind[2]] for edge in sorted(edges[kind], key=lambda e: e[2]) if edge[1] == node]
            for kind in graph.edge_types
        }
        layer = {kind: [] for kind in graph.node_types}
        for kind in graph.edge_types:
            for src, _, _ in block[kind]:
                if src not in layer[kind[0]]:
                    layer[kind[0]].append(src)
        layers.insert(0, layer)
        blocks.insert(0, block)
    return layers, blocks


def parent_edges(flow, block, kind):
    """Return a block's edges of a type in the parent's IDs, as ``naive_full`` has them."""
    src, dst, eid = flow.block_edges(block, edge_type=kind)
    ends = flow.map_to_parent_nid(src), flow.map_to_parent_nid(dst), flow.map_to_parent_eid(eid)
    return list(zip(*(end.tolist() for end in ends), strict=True))


def check_flow(flow, layers, blocks):
    assert flow.num_layers == len(layers)
    assert flow.layer_sizes == [sum(map(len, layer.values())) for layer in layers]
    assert flow.flow_sizes == [sum(map(len, block.values())) for block in blocks]
    for number, layer in enumerate(layers):
        for kind, nodes in layer.items():
            assert flow.layer_parent_nid(number, kind).tolist() == nodes
            assert flow.layer_size(number, kind) == len(nodes)
    for number, block in enumerate(blocks):
        for kind, edges in block.items():
            assert parent_edges(flow, number, kind) == edges
            assert flow.block_parent_eid(number, kind).tolist() == [one for _, _, one in edges]


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("name", NAMES)
def test_the_full_flow_is_that_of_a_loop(name, layout):
    graph = load(name, layout=layout)
    seeds = SEEDS.get(name, {kind: list(range(min(2, graph.num_nodes(kind)))) for kind in graph.node_types})
    check_flow(graphprep.create_full_node_flow(graph, 2, seeds), *naive_full(graph, 2, seeds))


def test_by_default_all_nodes_are_seeds():
    graph = load("heterogeneous")
    flow = graphprep.create_full_node_flow(graph, 1)
    assert flow.flow_sizes == [graph.num_edges()]
    for kind in graph.node_types:
        assert flow.layer_parent_nid(-1, kind).tolist() == list(range(graph.num_nodes(kind)))


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_every_layer_has_all_nodes_on_wish(name, direction):
    graph = load(name)
    flow = graphprep.create_full_node_flow(graph, 2, all_layers=True, direction=direction)
    assert flow.layer_sizes == [graph.num_nodes()] * 3
    for layer in range(3):
        for kind in graph.node_types:
            assert flow.layer_parent_nid(layer, kind).tolist() == list(range(graph.num_nodes(kind)))
    for block in range(2):
        for number, one in enumerate(flow.arrays.block_types):
            wanted = sorted(zip(*(end.tolist() for end in graph.edges(one.edge_type)), strict=True))
            ends = parent_edges(flow, block, number)
            assert sorted((dst, src, eid) if one.is_reversed else (src, dst, eid) for src, dst, eid in ends) == wanted
    assert graphprep.create_full_node_flow(graph, 2, direction=direction).layer_size(0) <= graph.num_nodes()
    with pytest.raises(UsageError, match="all_layers and seeds contradict each other"):
        graphprep.create_full_node_flow(graph, 2, {graph.node_types[0]: [0]}, all_layers=True)


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_a_flow_is_made_by_hand(name):
    """Of what another one tells of itself, its edges shuffled."""
    graph = load(name)
    flow = graphprep.create_full_node_flow(graph, 2, {graph.node_types[0]: [3, 1]})
    layers = [{kind: flow.layer_parent_nid(layer, kind) for kind in graph.node_types} for layer in range(3)]
    blocks = []
    for block in range(2):
        edges = {}
        for kind in graph.edge_types:
            src, dst, eid = flow.block_edges(block, remap_local=True, edge_type=kind)
            order = np.lexsort((eid, -dst))  # stable within a destination
            edges[kind] = (src[order], dst[order], flow.block_parent_eid(block, kind)[order])
        blocks.append(edges)
    made = graphprep.NodeFlow(graphprep.FlowArrays.from_edges(layers, blocks, graph.edge_types), graph)
    for field in ("layer_offsets", "node_mapping", "block_offsets", "sources", "indptr", "edge_mapping"):
        np.testing.assert_array_equal(getattr(made.arrays, field), getattr(flow.arrays, field), field)
    assert made.layers[0].data.keys() == flow.layers[0].data.keys()


@pytest.mark.parametrize(
    ("layers", "blocks", "words"),
    [
        ([{"n": [0]}], [{}], "1 layers and 1 blocks"),
        ([{"n": [0]}, {"m": [0]}], [{}], "layers have other node types"),
        ([{"n": [0]}, {"n": [0]}], [{("n", "x", "n"): ([], [], [])}], "block 0: there is no edge type"),
        ([{"n": [0]}, {"n": [0]}], [{("n", "e", "n"): ([1], [0], [0])}], "block 0: there is no source 1 of 1"),
        ([{"n": [0]}, {"n": [0]}], [{("n", "e", "n"): ([0], [-1], [0])}], "block 0: there is no destination -1 of 1"),
        ([{"n": [0]}, {"n": [0]}], [{("n", "e", "n"): ([0], [0, 0], [0])}], "block 0: 1 sources, 2 destinations, 1 edge IDs"),
    ],
)
def test_what_is_no_flow_is_told_by_hand(layers, blocks, words):
    with pytest.raises(UsageError, match=words):
        graphprep.FlowArrays.from_edges(layers, blocks, [("n", "e", "n")])


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_ids_and_positions(name):
    graph = load(name)
    flow = graphprep.create_full_node_flow(graph, 2, SEEDS[name])
    assert np.concatenate([flow.layers(layer) for layer in range(3)]).tolist() == list(range(flow.node_mapping.size))
    assert flow.layer_nid(-1).tolist() == flow.layers(2).tolist()
    assert flow.flows(-2, -1).tolist() == flow.flows(1, 2).tolist() == flow.block_eid(1).tolist() == flow.block_eid(-1).tolist()
    assert np.concatenate([flow.flows(0, 1), flow.flows(1, 2)]).tolist() == list(range(flow.edge_mapping.size))
    for block in range(2):
        src, dst, eid = flow.block_edges(block)
        own_src, own_dst, own_eid = flow.block_edges(block, remap_local=True)
        assert (flow.layers(block)[own_src].tolist(), flow.layers(block + 1)[own_dst].tolist()) == (src.tolist(), dst.tolist())
        assert (own_eid + flow.flows(block, block + 1)[0]).tolist() == eid.tolist()
        for kind in flow.edge_types:
            src, dst, _ = flow.block_edges(block, remap_local=True, edge_type=kind)
            ends = graph.find_edges(flow.block_parent_eid(block, kind), kind)
            assert flow.layer_parent_nid(block, kind[0])[src].tolist() == ends[0].tolist()
            assert flow.layer_parent_nid(block + 1, kind[2])[dst].tolist() == ends[1].tolist()
    kind = graph.node_types[0]
    nodes = flow.layer_parent_nid(0, kind)[::-1]
    found = flow.map_from_parent_nid(0, nodes, node_type=kind)
    assert flow.map_to_parent_nid(found).tolist() == nodes.tolist()
    assert flow.map_from_parent_nid(0, nodes, True, kind).tolist() == list(range(nodes.size))[::-1]
    assert flow.map_from_parent_nid(0, int(nodes[0]), True, kind) == nodes.size - 1


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_degrees_and_matrices(name):
    pytest.importorskip("scipy", reason="SciPy is not installed")
    flow = graphprep.create_full_node_flow(load(name), 2, SEEDS[name])
    assert flow.layer_in_degree(0).tolist() == [0] * flow.layer_size(0)
    assert flow.layer_out_degree(-1).tolist() == [0] * flow.layer_size(-1)
    for block in range(2):
        for kind in (None, *flow.edge_types):
            src, dst, eid = (end.tolist() for end in flow.block_edges(block, remap_local=True, edge_type=kind))
            ends = (None, None) if kind is None else (kind[0], kind[2])
            sizes = flow.layer_size(block, ends[0]), flow.layer_size(block + 1, ends[1])
            enters, leaves = np.zeros((sizes[1], len(eid))), np.zeros((sizes[0], len(eid)))
            adjacency = np.zeros(sizes[::-1])
            for u, v, e in zip(src, dst, eid, strict=True):
                enters[v, e] = leaves[u, e] = 1
                adjacency[v, u] += 1
            assert flow.block_incidence_matrix(block, "in", edge_type=kind).toarray().tolist() == enters.tolist()
            assert flow.block_incidence_matrix(block, "out", edge_type=kind).toarray().tolist() == leaves.tolist()
            assert flow.block_adjacency_matrix(block, edge_type=kind).toarray().tolist() == adjacency.tolist()
            assert flow.layer_in_degree(block + 1, kind).tolist() == enters.sum(axis=1).tolist()
            assert flow.layer_out_degree(block, kind).tolist() == leaves.sum(axis=1).tolist()


def test_torch_has_the_same_matrices():
    pytest.importorskip("torch", reason="torch is not installed")
    flow = graphprep.create_full_node_flow(load("multi_edge"), 1)
    for ask in (flow.block_adjacency_matrix, lambda *one: flow.block_incidence_matrix(0, "in", *one[1:])):
        assert ask(0, "torch").to_dense().tolist() == ask(0, "scipy").toarray().tolist()


@pytest.mark.parametrize("partitions", [1, 3])
def test_columns_are_those_of_the_parent(partitions):
    graph = load("heterogeneous", partitions=partitions)
    flow = graphprep.create_full_node_flow(graph, 2, SEEDS["heterogeneous"])
    for layer in range(3):
        found = flow.layers[layer].data["feat"]
        assert list(found) == ["user", "item"]
        for kind, values in found.items():
            assert values.tolist() == graph.column(kind, "feat")[flow.layer_parent_nid(layer, kind)].tolist()
    kind = ("user", "buys", "item")
    names = [one.name for one in graph.columns(kind)]
    assert set(names) <= set(flow.flows[0, 1].data)
    for name in names:
        wanted = graph.column(kind, name, order="ids")[flow.block_parent_eid(1, kind)]
        assert flow.flows[1, 2].data[name][kind].tolist() == wanted.tolist()
    assert list(flow.front.data) == list(flow.layers[0].data)
    assert flow.back.data["feat"]["user"].tolist() == flow.layers[-1].data["feat"]["user"].tolist()


def test_what_is_set_stays_and_can_be_taken_away():
    graph = load("homogeneous")
    flow = graphprep.create_full_node_flow(graph, 1, [3, 4])
    data = flow.back.data
    data["h"] = np.array([[1.0], [2.0]])
    assert (flow.layers[-1].data["h"].tolist(), "h" in flow.back.data, "h" in flow.front.data) == ([[1.0], [2.0]], True, False)
    del data["h"]
    with pytest.raises(KeyError):
        data["h"]
    with pytest.raises(UsageError, match="'h': 3 rows for 2 nodes"):
        data["h"] = [1, 2, 3]


def test_columns_are_copied_by_name_for_each_layer():
    graph = load("homogeneous")
    flow = NodeFlow(graphprep.create_full_node_flow(graph, 1, [3, 4]).arrays)
    assert list(flow.front.data) == []
    with pytest.raises(UsageError, match="the flow knows no parent"):
        flow.copy_from_parent()
    flow.copy_from_parent([["feat"], ["y"]], None, parent=graph)
    assert (list(flow.front.data), list(flow.back.data), list(flow.flows[0, 1].data)) == (["feat"], ["y"], [])
    assert flow.back.data["y"].tolist() == graph.column("paper", "y")[[3, 4]].tolist()
    with pytest.raises(UsageError, match="1 lists of names for 2 layers"):
        flow.copy_from_parent([["feat"]])
    with pytest.raises(DataError, match="the graph has no column 'nix'"):
        flow.copy_from_parent([["nix"], []])
    flow.copy_from_parent()
    assert list(flow.back.data) == ["y", *(one.name for one in graph.columns("paper") if one.name != "y")]


def test_loops_that_were_added_have_no_values():
    graph = load("homogeneous")
    kinds = block_types(graph.node_types, graph.edge_types, "in")
    nodes, ids = np.array([5, 9, 5]), np.array([3, -1])
    offsets = np.array([0, 2]), np.array([0, 2])
    arrays = FlowArrays(
        graph.node_types, kinds, "in", np.array([0, 2, 3]), nodes, *(offsets[0], np.array([1, 0], np.int32)), offsets[1], ids
    )
    flow = NodeFlow(arrays, graph)
    for column in graph.columns(graph.edge_types[0]):
        found = flow.flows[0, 1].data[column.name]
        assert len(found) == 2
        assert not np.any(found[1])
        assert np.array_equal(found[0], graph.take(graph.edge_types[0], column.name, [3])[0])
    assert flow.block_parent_eid(0).tolist() == [3, -1]


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_a_flow_grows_layer_by_layer(name):
    graph = load(name)
    whole, grown = graphprep.create_full_node_flow(graph, 3, SEEDS[name]), NodeFlow()
    seeds = SEEDS[name]
    for _ in range(3):
        hop = graphprep.create_full_node_flow(graph, 1, seeds)
        grown, seeds = hop.append(grown), {kind: hop.layer_parent_nid(0, kind) for kind in graph.node_types}
    for field in ("layer_offsets", "node_mapping", "block_offsets", "sources", "indptr", "edge_mapping"):
        assert getattr(grown.arrays, field).tolist() == getattr(whole.arrays, field).tolist(), field
    again = NodeFlow().append(whole).append(NodeFlow())
    assert again.layer_sizes == whole.layer_sizes
    hop.back.data["h"] = (
        {hop.node_types[0]: list(range(hop.layer_size(-1, 0)))} if name == "heterogeneous" else list(range(hop.layer_size(-1)))
    )
    assert "h" in NodeFlow().append(hop).append(graphprep.create_full_node_flow(graph, 2, SEEDS[name])).layers[1].data


def test_flows_that_do_not_meet_are_not_joined():
    graph = load("homogeneous")
    one, two = (graphprep.create_full_node_flow(graph, 1, [node]) for node in (3, 4))
    with pytest.raises(UsageError) as error:
        one.append(two)
    assert str(error.value) == (
        "the last layer of the flow and the first one of the other differ\n"
        "  fix: sample its hop from the seeds flow.layer_parent_nid(0)"
    )
    with pytest.raises(UsageError, match="the flows have other types"):
        one.append(graphprep.create_full_node_flow(load("heterogeneous"), 1, {"user": [0]}))


def test_what_is_not_there_is_refused():
    graph = load("heterogeneous")
    flow = graphprep.create_full_node_flow(graph, 2, {"user": [3]})
    cases = [
        (
            lambda: flow.flows(0, 2),
            UsageError,
            "there is no flow from layer 0 to layer 2: flows are between consecutive layers\n"
            "  fix: name a layer and the next one: flows[0, 1]",
        ),
        (
            lambda: flow.flows[1, 0],
            UsageError,
            "there is no flow from layer 1 to layer 0: flows are between consecutive layers\n"
            "  fix: name a layer and the next one: flows[1, 2]",
        ),
        (lambda: flow.layers[3], UsageError, "there is no layer 3: the flow has 3 layers\n  fix: count layers from 0"),
        (lambda: flow.layer_size(-4), UsageError, "there is no layer -4: the flow has 3 layers\n  fix: count layers from 0"),
        (lambda: flow.block_size(2), UsageError, "there is no block 2: the flow has 2 blocks\n  fix: count blocks from 0"),
        (
            lambda: flow.map_from_parent_nid(-1, 4, node_type="user"),
            DataError,
            "node 4 is not in layer -1\n  fix: layer_parent_nid tells which are",
        ),
        (
            lambda: flow.map_from_parent_nid(0, 4),
            UsageError,
            "there are several node types\n  fix: pass node_type, one of user, item, tag",
        ),
        (
            lambda: flow.map_to_parent_eid(-1),
            UsageError,
            f"there is no edge -1 in the flow, which has {flow.edge_mapping.size}",
        ),
        *(
            (ask, InvalidIdError, "ids must be integers, found float64\n  fix: convert them to int64 first")
            for ask in (
                lambda: flow.map_to_parent_nid([0.5]),
                lambda: flow.map_to_parent_eid(0.5),
                lambda: flow.map_from_parent_nid(-1, 3.5, node_type="user"),
            )
        ),
        (
            lambda: flow.block_incidence_matrix(0, "both"),
            UsageError,
            "there is no incidence matrix 'both' of a block\n  fix: use one of in, out",
        ),
        (
            lambda: graphprep.create_full_node_flow(graph, 0),
            UsageError,
            "num_layers must be at least 1, found 0\n  fix: count the layers of the model",
        ),
        (
            lambda: graphprep.create_full_node_flow(graph, 1, [3]),
            UsageError,
            "there are several node types\n  fix: pass a dict by node type",
        ),
    ]
    for ask, kind, message in cases:
        with pytest.raises(kind) as error:
            ask()
        assert str(error.value) == message


def test_a_flow_shows_itself_and_can_be_pickled():
    graph = load("homogeneous")
    flow = graphprep.create_full_node_flow(graph, 1, [7, 3])
    assert repr(flow) == f"NodeFlow: 2 layers\n  nodes  {flow.layer_size(0)} -> 2\n  edges  {flow.block_size(0)}"
    again = pickle.loads(pickle.dumps(flow))
    assert again.layer_parent_nid(-1).tolist() == [7, 3]
    assert again.back.data["y"].tolist() == flow.back.data["y"].tolist()


def test_taken_rows_are_those_of_the_column():
    for name in GRAPHS:
        graph = load(name, partitions=1 if name == "empty_partition" else 2)
        for kind in (*graph.node_types, *graph.edge_types):
            total = graph.num_nodes(kind) if isinstance(kind, str) else graph.num_edges(kind)
            ids = np.random.default_rng(3).permutation(total)[: total // 2 + 1]
            for column in graph.columns(kind):
                order = None if isinstance(kind, str) else "ids"
                every, present = graph.column(kind, column.name, order=order), graph.present(kind, column.name, order=order)
                taken, has = graph.take(kind, column.name, ids), graph.take_present(kind, column.name, ids)
                np.testing.assert_equal(list(taken), list(every[ids]))
                assert (None if has is None else has.tolist()) == (None if present is None else present[ids].tolist())


def test_reversed_edge_types_never_share_a_name():
    types = (("a", "r", "b"), ("b", "rev_r", "a"), ("a", "rev_r", "b"))
    kinds = block_types(("a", "b"), types, "both")
    none = np.zeros(0, np.int64)
    flow = NodeFlow(FlowArrays(("a", "b"), kinds, "both", np.zeros(5, np.int64), none, np.zeros(7, np.int64), none, none, none))
    reverses = (("b", "rev_rev_r", "a"), ("a", "rev_rev_r", "b"), ("b", "rev_rev_rev_r", "a"))
    assert flow.edge_types == (*types, *reverses)
    with pytest.raises(DataError) as error:
        flow.block_size(0, "rev_r")
    assert str(error.value) == "'rev_r' is several edge types\n  fix: use one of b:rev_r:a, a:rev_r:b"
