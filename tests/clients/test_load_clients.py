"""What ``graphprep.load(store)`` hands to DGL and GLT, as those libraries themselves read it, in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes
from clients.dgl_environment import DGL
from clients.gaps import BUYS, make_gaps
from clients.gaps import DGL as DGL_TENSORS
from clients.graphs import GRAPHS, make_store
from exporters.dgl_reader import read_tensors

ROOT = Path(__file__).resolve().parent.parent.parent
NAMES = ("homogeneous", "heterogeneous", "multi_edge", "empty_type", "empty_partition", "string_ids")

# DGL's environment lacks what graphprep needs: that is found behind its own packages.
DGL_SCRIPT = """
import sys, types
stub = types.ModuleType("dgl.graphbolt")
stub.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = stub
import dgl
import numpy as np
sys.path += sys.argv[1:3]
import graphprep

def edges_of(some, other, edge_type):  # as (source, destination, edge ID) in the whole graph's IDs: ours, DGL's
    ours = some.edges[edge_type]
    ours = (some.node_ids[edge_type[0]][ours.src], some.node_ids[edge_type[2]][ours.dst], ours.edge_ids)
    src, dst = other.edges(etype=edge_type, order="eid")
    names = [other.nodes[edge_type[side]].data.get(dgl.NID) for side in (0, 2)]
    src, dst = (ends if own is None else own[ends] for own, ends in zip(names, (src, dst)))
    theirs = (src, dst, other.edges[edge_type].data[dgl.EID])
    return [list(zip(*(end.tolist() for end in one))) for one in (ours, theirs)]

def check_structure(graph, made):
    rng = np.random.default_rng(0)
    meta, theirs = graph.metagraph(), made.metagraph()
    assert sorted(meta.nodes) == sorted(theirs.nodes) and sorted(meta.edges(keys=True)) == sorted(theirs.edges(keys=True))
    assert graph.is_multigraph() == made.is_multigraph
    nodes = {name: rng.permutation(made.num_nodes(name))[: made.num_nodes(name) // 2 + 1] for name in made.ntypes}
    edges = {name: rng.permutation(made.num_edges(name))[: made.num_edges(name) // 2 + 1] for name in made.canonical_etypes}
    for name in made.ntypes:
        asked = np.arange(made.num_nodes(name) + 2)
        assert graph.has_nodes(asked, name).tolist() == made.has_nodes(asked, name).tolist()
    cases = [("in", graph.in_subgraph(nodes), dgl.in_subgraph(made, nodes))]
    cases += [("out", graph.out_subgraph(nodes), dgl.out_subgraph(made, nodes))]
    cases += [("node", graph.node_subgraph(nodes), dgl.node_subgraph(made, nodes))]
    cases += [("edge", graph.edge_subgraph(edges), dgl.edge_subgraph(made, edges))]
    cases += [("all", graph.edge_subgraph(edges, relabel_nodes=False), dgl.edge_subgraph(made, edges, relabel_nodes=False))]
    for kind, some, other in cases:
        for name in made.ntypes:
            ids = other.nodes[name].data[dgl.NID].tolist() if dgl.NID in other.nodes[name].data else list(range(other.num_nodes(name)))
            own = some.node_ids[name].tolist()
            assert (own == ids) if kind == "node" else (own == sorted(ids)), (kind, name)
        for name in made.canonical_etypes:
            ours, theirs = edges_of(some, other, name)
            assert (ours == theirs) if kind in ("edge", "all") else (sorted(ours) == sorted(theirs)), (kind, name)
    for name in made.canonical_etypes:
        for ask, theirs, side in ((graph.in_edges, made.in_edges, 2), (graph.out_edges, made.out_edges, 0)):
            found = zip(*(end.tolist() for end in ask(nodes[name[side]], name)))
            wanted = zip(*(end.tolist() for end in theirs(nodes[name[side]], form="all", etype=name)))
            assert sorted(found) == sorted(wanted)

for store in sys.argv[3:]:
    graph = graphprep.load(store)
    made = graph.to_dgl()
    found = {}
    for node_type in made.ntypes:
        found |= {f"{node_type}/{name}": values.numpy() for name, values in made.nodes[node_type].data.items()}
        found[f"{node_type}/count"] = made.num_nodes(node_type)
    for edge_type in made.canonical_etypes:
        text = ":".join(edge_type)
        found |= {f"{text}/{name}": values.numpy() for name, values in made.edges[edge_type].data.items()}
        src, dst = (end.numpy() for end in made.edges(etype=edge_type, order="eid"))
        found[f"{text}/src"], found[f"{text}/dst"] = src, dst
        if not src.size:
            continue
        ids = np.arange(src.size)[::-1].copy()
        ours, theirs = (one.find_edges(ids, edge_type) for one in (graph, made))
        assert [end.tolist() for end in ours] == [end.tolist() for end in theirs]
        assert made.in_degrees(etype=edge_type).tolist() == graph.in_degrees(edge_type=edge_type).tolist()
        assert made.out_degrees(etype=edge_type).tolist() == graph.out_degrees(edge_type=edge_type).tolist()
        pairs = np.unique(np.stack([src, dst]), axis=1)
        ours, theirs = (one.edge_ids(*pairs, return_uv=True, **which) for one, which in ((graph, {"edge_type": edge_type}), (made, {"etype": edge_type})))
        assert sorted(zip(*(end.tolist() for end in ours))) == sorted(zip(*(end.tolist() for end in theirs)))
        every = [end.ravel() for end in np.meshgrid(np.arange(made.num_nodes(edge_type[0])), np.arange(made.num_nodes(edge_type[2])))]
        assert graph.has_edges_between(*every, edge_type).tolist() == made.has_edges_between(*every, edge_type).tolist()
        for node in range(made.num_nodes(edge_type[2])):
            assert set(made.predecessors(node, edge_type).tolist()) == set(graph.predecessors(node, edge_type).tolist())
        for node in range(made.num_nodes(edge_type[0])):
            assert set(made.successors(node, edge_type).tolist()) == set(graph.successors(node, edge_type).tolist())
    check_structure(graph, made)
    np.savez(store + ".npz", **found)
"""

GLT_SCRIPT = """
import sys, types
class Stub(types.ModuleType):
    def __getattr__(self, name):  # the compiled parts: classes without anything
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__getattr__": lambda self, name: None})
for name in ("graphlearn_torch.py_graphlearn_torch", "torch_sparse"):
    sys.modules[name] = Stub(name)
package = sys.modules["graphlearn_torch"] = types.ModuleType("graphlearn_torch")  # without its loaders, which want a GPU
package.__path__ = [sys.argv[3] + "/graphlearn_torch"]
package.py_graphlearn_torch = sys.modules["graphlearn_torch.py_graphlearn_torch"]
import numpy as np
import graphprep
graph = graphprep.load(sys.argv[1])
for edge_type in graph.edge_types:
    rows, made = graph.adjacency(edge_type), graph.to_glt_topology(edge_type, weight=sys.argv[2])
    assert made._layout == rows.layout.upper()
    for name in ("indptr", "indices", "edge_ids"):
        assert getattr(made, name).tolist() == getattr(rows, name).tolist(), name
    assert made.edge_weights.tolist() == graph.column(edge_type, sys.argv[2]).tolist()
    assert made.degrees.tolist() == graph.in_degrees(edge_type=edge_type).tolist()
print(graph.num_edges())
"""


def run(python: Path | str, script: str, *arguments: str) -> str:
    done = subprocess.run([str(python), "-c", script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dgl_stores(tmp_path_factory):
    """Stores of all graphs; beside each, what DGL made of it."""
    python = DGL.find_python()
    stores = {name: make_store(GRAPHS[name](), tmp_path_factory.mktemp(name)) for name in NAMES}
    stores["gaps"] = make_gaps(tmp_path_factory.mktemp("gaps"), partitions=2)
    run(python, DGL_SCRIPT, str(ROOT), sysconfig.get_paths()["purelib"], *map(str, stores.values()))
    return stores


@pytest.mark.client("dgl")
@pytest.mark.xdist_group("dgl")
@pytest.mark.parametrize("name", NAMES)
def test_dgl_has_the_graph_and_answers_alike(name, dgl_stores):
    graph, store = GRAPHS[name](), dgl_stores[name]
    found = np.load(f"{store}.npz")
    raw = {node_type: raw_ids(store, node_type) for node_type in graph.nodes}
    for edge_type in graph.edges:
        wanted = graph_edges(graph, edge_type)
        text = ":".join(edge_type)
        src, dst = (raw[end][found[f"{text}/{side}"]] for end, side in zip(edge_type[::2], ("src", "dst"), strict=True))
        columns = {one: found[f"{text}/{one}"] for one in wanted.columns}
        assert checksum(edge_type, Rows(src, dst, np.arange(src.size), columns)) == checksum(edge_type, wanted.trained())
    for node_type, some in graph.nodes.items():
        assert found[f"{node_type}/count"] == len(some.ids)
        names = [one for one in graph_nodes(graph, node_type).columns if one != some.split]
        rows = Rows(raw[node_type], columns={one: found[f"{node_type}/{one}"] for one in names})
        assert checksum(node_type, rows) == checksum(node_type, graph_nodes(graph, node_type).only(names).trained())
        if some.split and some.ids:
            order = {one: at for at, one in enumerate(some.ids)}
            parts = np.asarray(some.columns[some.split])[[order[one] for one in raw[node_type].tolist()]]
            for number, mask in enumerate(("train_mask", "val_mask", "test_mask")):
                assert found[f"{node_type}/{mask}"].tolist() == (parts == number).tolist()


@pytest.mark.client("dgl")
@pytest.mark.xdist_group("dgl")
def test_dgl_has_no_class_where_a_label_is_missing(dgl_stores):
    found = np.load(f"{dgl_stores['gaps']}.npz")
    names = {
        f"{kind if isinstance(kind, str) else ':'.join(kind)}/{name}": one
        for kind, some in DGL_TENSORS.items()
        for name, one in some.items()
    }
    others = {f"{name}/count" for name in ("user", "item")} | {f"{':'.join(BUYS)}/{end}" for end in ("src", "dst")}
    assert set(found) == set(names) | others
    for name, (dtype, values) in names.items():
        assert found[name].dtype.name == dtype, name
        np.testing.assert_array_equal(found[name], values, name)


@pytest.mark.client("dgl")
@pytest.mark.xdist_group("dgl")
def test_dgl_has_what_its_partitions_have(dgl_stores, tmp_path):
    """The tensors of ``export --to distdgl`` by name; there bool is uint8, and a label that is missing is 0."""
    import graphprep

    found = np.load(f"{dgl_stores['gaps']}.npz")
    options = {"partitions": 1, "drop_unsupported": True, "message_edges": "all"}
    graphprep.export(str(dgl_stores["gaps"]), str(tmp_path / "out"), "distdgl", **options)
    part = tmp_path / "out/part0"
    order = read_tensors((part / "orig_eids.dgl").read_bytes())[":".join(BUYS)]
    tensors = {**read_tensors((part / "node_feat.dgl").read_bytes()), **read_tensors((part / "edge_feat.dgl").read_bytes())}
    assert set(tensors) == {name for name in found if name.rpartition("/")[2] not in ("count", "src", "dst")}
    for name, value in tensors.items():
        own = found[name][order] if name.startswith(":".join(BUYS)) else found[name]
        is_label = name.rpartition("/")[2] in ("country", "score", "how")
        rows = tensors[f"{name}_present"].astype(bool) if is_label else slice(None)
        np.testing.assert_array_equal(own[rows], value[rows], name)
        assert is_label or value.dtype == (np.uint8 if own.dtype == bool else own.dtype), name


def raw_ids(store: Path, node_type: str) -> np.ndarray:
    import graphprep

    found = graphprep.load(str(store)).ids(node_type)
    return found if isinstance(found, np.ndarray) else np.array(found.tolist(), object)


@pytest.mark.client("graphlearn-torch")
@pytest.mark.parametrize("name", ["homogeneous", "empty_partition"])
def test_glt_takes_the_topology(name, tmp_path):
    pytest.importorskip("torch", reason="torch is not installed")
    if not any(Path(sysconfig.get_paths()["purelib"]).glob("graphlearn_torch/data/graph.py")):
        pytest.skip("graphlearn-torch is not installed")
    graph = GRAPHS[name]()
    weight = next(iter(graph.edges.values())).weight
    assert (
        run(sys.executable, GLT_SCRIPT, str(make_store(graph, tmp_path)), weight, sysconfig.get_paths()["purelib"])
        == f"{sum(len(e.src) for e in graph.edges.values())}\n"
    )
