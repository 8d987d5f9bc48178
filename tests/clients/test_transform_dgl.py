"""``graphprep transform`` against DGL's own operations on the same graphs, in a process of DGL's."""

import sysconfig

import numpy as np
import pytest
from clients.dgl_environment import DGL
from clients.graphs import GRAPHS, make_store
from clients.test_load_clients import ROOT, run

import graphprep

SCRIPT = """
import sys, types
stub = types.ModuleType("dgl.graphbolt")
stub.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = stub
import dgl, torch
import numpy as np
sys.path += sys.argv[1:3]
import graphprep

def ends(made, name):
    src, dst = made.edges(etype=name, order="eid")
    return list(zip(src.tolist(), dst.tolist()))

def same(ours, theirs, ordered=True):
    order = (lambda edges: edges) if ordered else sorted
    assert set(ours.canonical_etypes) == set(theirs.canonical_etypes)
    for name in ours.canonical_etypes:
        assert order(ends(ours, name)) == order(ends(theirs, name)), name
    for name in ours.ntypes:
        assert ours.num_nodes(name) == theirs.num_nodes(name), name

made = 0
for store in sys.argv[3:]:
    before, load = graphprep.load(store).to_dgl(), lambda kind: graphprep.load(f"{store}-{kind}").to_dgl()
    same(load("reverse"), dgl.reverse(before))
    simple = load("simple")
    theirs, maps = dgl.to_simple(before, return_counts="count", writeback_mapping=True, copy_ndata=False, copy_edata=False)
    same(simple, theirs, ordered=False)
    for name in before.canonical_etypes:
        own = dict(zip(ends(simple, name), simple.edges[name].data["count"].tolist()))
        assert own == dict(zip(ends(theirs, name), theirs.edges[name].data["count"].tolist()))
        kept = np.load(f"{store}-maps/edges/{'__'.join(name)}.npy").tolist()
        mapping = maps if len(before.canonical_etypes) == 1 and not isinstance(maps, dict) else maps[name]
        assert [ends(simple, name)[new] for new in kept] == [ends(theirs, name)[new] for new in mapping.tolist()]
    homo = dgl.to_homogeneous(before)
    ours = load("homo")
    if len(ours.canonical_etypes):
        graph = graphprep.load(f"{store}-homo")
        names = graph.columns("_N")[[column.name for column in graph.columns("_N")].index("node_type")].categories
        own = list(zip([names[code] for code in graph.column("_N", "node_type")], graph.column("_N", "node_id").tolist()))
        found = [(own[u], own[v]) for u, v in ends(ours, ours.canonical_etypes[0])]
        other = [(before.ntypes[code], one) for code, one in zip(homo.ndata[dgl.NTYPE].tolist(), homo.ndata[dgl.NID].tolist())]
        assert sorted(found) == sorted((other[u], other[v]) for u, v in zip(*(end.tolist() for end in homo.edges())))
        assert ours.num_nodes() == homo.num_nodes()
    if len(before.ntypes) == 1 and len(before.canonical_etypes) == 1:
        both = dgl.to_bidirected(before, copy_ndata=False)
        same(load("both"), both, ordered=False)
        same(load("loopless"), dgl.remove_self_loop(before))
        looped = dgl.AddSelfLoop(allow_duplicate=False)(dgl.remove_self_loop(before))
        same(load("looped"), looped)
        for kind, backtracking in (("line", True), ("path", False)):
            line = dgl.line_graph(dgl.graph(before.edges(order="eid"), num_nodes=before.num_nodes()), backtracking=backtracking)
            ours = load(kind)
            raw = graphprep.load(f"{store}-{kind}").ids()
            found = [(raw[u], raw[v]) for u, v in ends(ours, ours.canonical_etypes[0])]
            assert sorted(found) == sorted(zip(*(end.tolist() for end in line.edges())))
        seeds = [0, before.num_nodes() - 1]
        hood, _ = dgl.khop_in_subgraph(before, seeds, k=2)
        ids = graphprep.load(f"{store}-hood").column(before.ntypes[0], "parent_id") if hood.num_nodes() < before.num_nodes() else np.arange(before.num_nodes())
        assert sorted(hood.ndata[dgl.NID].tolist()) == sorted(np.asarray(ids).tolist())
        made += 1
print(made)
"""


@pytest.mark.client("dgl")
@pytest.mark.xdist_group("dgl")
def test_operations_are_those_of_dgl(tmp_path):
    python = DGL.find_python()
    stores = []
    for name in ("homogeneous", "heterogeneous", "multi_edge", "empty_type"):
        store = make_store(GRAPHS[name](), tmp_path / name)
        stores.append(store)
        graph = graphprep.load(str(store))
        kinds = {
            "reverse": ["reverse"],
            "simple": ["to-simple", "count"],
            "homo": ["to-homogeneous"],
            "loopless": ["self-loops", "drop"],
        }
        if len(graph.node_types) == len(graph.edge_types) == 1:
            (node_type,) = graph.node_types
            raw = np.asarray(graph.ids(node_type), object)[[0, graph.num_nodes() - 1]]
            (tmp_path / f"{name}.seeds").write_text("".join(f"{one}\n" for one in raw))
            kinds |= {
                "both": ["to-bidirected"],
                "looped": ["self-loops", "drop", "self-loops", "add"],
                "line": ["line-graph"],
                "path": ["line-graph", "no-backtracking"],
                "hood": ["khop-subgraph", str(tmp_path / f"{name}.seeds"), "2"],
            }
        for kind, words in kinds.items():
            maps = {"maps": f"{store}-maps"} if kind == "simple" else {}
            graphprep.transform(str(store), f"{store}-{kind}", words, **maps)
    assert int(run(python, SCRIPT, str(ROOT), sysconfig.get_paths()["purelib"], *map(str, stores))) >= 1
