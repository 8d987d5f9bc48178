"""Looks at flows as DGL's blocks, in DGL's environment: arguments are the folders of graphprep and its packages, and stores."""

from __future__ import annotations

import json
import sys
import types

stub = types.ModuleType("dgl.graphbolt")
stub.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = stub

import dgl  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

sys.path += sys.argv[1:3]  # what graphprep needs is found behind DGL's own packages
import graphprep  # noqa: E402


def parent_edges(block, kind):
    """Return the edges of a block as (source, destination, edge ID) in the parent's IDs."""
    src, dst = block.edges(etype=kind)
    ends = (
        block.srcnodes[kind[0]].data[dgl.NID][src],
        block.dstnodes[kind[2]].data[dgl.NID][dst],
        block.edges[kind].data[dgl.EID],
    )
    return list(zip(*(end.tolist() for end in ends), strict=True))


def check_blocks(graph, flow):
    """Check the ends, IDs and columns of all blocks."""
    blocks, whole = flow.to_dgl_blocks(), graph.to_dgl()
    assert len(blocks) == flow.num_blocks
    for number, block in enumerate(blocks):
        for kind in flow.node_types:
            src, dst = (side[kind].data[dgl.NID].tolist() for side in (block.srcnodes, block.dstnodes))
            assert src[: len(dst)] == dst
            assert len(set(src)) == len(src)
            assert set(src) == set(dst) | set(flow.layer_parent_nid(number, kind).tolist())
            if number + 1 < len(blocks):
                assert dst == blocks[number + 1].srcnodes[kind].data[dgl.NID].tolist()
            else:
                assert dst == flow.layer_parent_nid(-1, kind).tolist()
        for kind in flow.edge_types:
            ours, ids = flow.block_edges(number, edge_type=kind), flow.block_parent_eid(number, kind).tolist()
            wanted = list(zip(*(flow.map_to_parent_nid(end).tolist() for end in ours[:2]), ids, strict=True))
            assert parent_edges(block, kind) == wanted
            nodes = torch.from_numpy(flow.layer_parent_nid(number + 1, kind[2]).copy())
            if len(nodes):  # the full flow has what DGL finds: all edges that enter the layer
                theirs = whole.in_edges(nodes, form="all", etype=kind)
                assert sorted(wanted) == sorted(zip(*(end.tolist() for end in theirs), strict=True))
            for name, values in whole.edges[kind].data.items():
                assert torch.equal(block.edges[kind].data[name], values[block.edges[kind].data[dgl.EID]]), name
    for side in (blocks[0].srcnodes, blocks[-1].dstnodes):
        for kind in flow.node_types:
            assert set(side[kind].data) == {dgl.NID, *whole.nodes[kind].data}
            for name, values in whole.nodes[kind].data.items():
                assert torch.equal(side[kind].data[name].nan_to_num(-7), values[side[kind].data[dgl.NID]].nan_to_num(-7)), name
    assert set(blocks[0].srcdata if len(flow.node_types) == 1 else {}) <= {dgl.NID, *whole.nodes[flow.node_types[0]].data}


for store in sys.argv[3:]:
    graph = graphprep.load(store)
    rng = np.random.default_rng(0)
    seeds = {kind: rng.permutation(graph.num_nodes(kind))[:4] for kind in graph.node_types}
    check_blocks(graph, graphprep.create_full_node_flow(graph, 3, seeds))
    few = graphprep.create_full_node_flow(graph, 1, seeds).to_dgl_blocks([])
    assert all(list(few[0].srcnodes[kind].data) == [dgl.NID] for kind in graph.node_types)
    print(json.dumps(store))
