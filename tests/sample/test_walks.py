"""Neighbours by random walks: against a loop over single steps with the same random numbers, and against exact chances."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import product

import numpy as np
import pytest
from clients.graphs import shared_store
from sample.naive import philox, stream
from sample.test_flows import digest, stream_all

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, UsageError

WALKS = {"sampler": "random-walk", "fanouts": [4, 3], "walks": 7, "walk_length": 3, "restart_prob": 0.25}
CASES = {
    "homogeneous": ("homogeneous", "paper", ["paper:cites:paper"]),
    "against": ("homogeneous", "paper", ["~paper:cites:paper"]),
    "bipartite": ("heterogeneous", "item", ["~user:buys:item", "user:buys:item"]),
    "three steps": ("heterogeneous", "user", ["user:knows:user", "user:buys:item", "~user:buys:item"]),
}


def rows_of(graph, step):
    """Return the other ends of each node's edges, in the order of edge IDs."""
    found = defaultdict(list)
    src, dst = graph.edges(edge_type=step.removeprefix("~"))[:2]
    for one, other in zip(src.tolist(), dst.tolist(), strict=True):
        found[other if step[0] == "~" else one].append(one if step[0] == "~" else other)
    return found


def word(key, counter, number):
    low, high = philox((counter & 0xFFFFFFFF, counter >> 32, number & 0xFFFFFFFF, number >> 32), key)[:2]
    return low | high << 32


def neighbours(tables, node, key, most, options):
    """Return the (node, visits) that walks from a node visit most."""
    visits, steps = Counter(), len(tables)
    for walk in range(options["walks"]):
        at, counter = node, node * options["walks"] + walk
        for step in range(steps * options["walk_length"]):
            if step and step % steps == 0 and word(key, counter, 2 * step) < int(options["restart_prob"] * 2**64):
                break
            row = tables[step % steps][at]
            if not row:
                break
            at = row[word(key, counter, 2 * step + 1) * len(row) >> 64]
            if (step + 1) % steps == 0:
                visits[at] += 1
    return sorted(visits.items(), key=lambda one: (-one[1], one[0]))[: None if most < 0 else most]


def naive_flow(graph, steps, seeds, options, batch=0, epoch=0):
    """Return the layers, the seeds' last, and for each block the (source, destination, visits)."""
    tables = [rows_of(graph, step) for step in steps]
    layers, blocks = [seeds], []
    for hop, most in enumerate(options["fanouts"]):
        key = stream(options.get("seed", 0), epoch, batch, hop, 0)
        edges = [(node, at, visits) for at in layers[0] for node, visits in neighbours(tables, at, key, most, options)]
        blocks.insert(0, edges)
        layers.insert(0, list(dict.fromkeys(source for source, _, _ in edges)))
    return layers, blocks


def found_flow(flow, kind):
    layers = [flow.layer_parent_nid(layer, kind).tolist() for layer in range(flow.num_layers)]
    blocks = []
    for block in range(flow.num_blocks):
        src, dst, eid = flow.block_edges(block)
        ends = (flow.map_to_parent_nid(one).tolist() for one in (src, dst))
        blocks.append(list(zip(*ends, flow.arrays.edge_weights[eid].astype(int).tolist(), strict=True)))
    return layers, blocks


@pytest.mark.parametrize("most", [[4, 3], [-1], [2, -1, 1]], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_neighbours_are_those_of_a_loop_with_the_same_random_numbers(name, most):
    store, kind, steps = CASES[name]
    graph = graphprep.load(shared_store(store)[1])
    options = {**WALKS, "fanouts": most, "seed": 2**63 + 5}
    flows = graphprep.neighbor_sampling(
        graph, {kind: range(graph.num_nodes(kind))}, **options, metapath=steps, batch_size=9, shuffle=False, epochs=2
    )
    at = 0
    for epoch, start in product(range(2), range(0, graph.num_nodes(kind), 9)):
        seeds = list(range(graph.num_nodes(kind)))[start : start + 9]
        assert found_flow(flows[at], kind) == naive_flow(graph, steps, seeds, options, start // 9, epoch)
        assert flows[at].edge_types == ((kind, "visits", kind),)
        assert set(flows[at].edge_mapping.tolist()) <= {-1}
        at += 1
    assert at == len(flows)


@pytest.mark.parametrize("name", ["homogeneous", "bipartite"])
def test_bytes_do_not_depend_on_threads_memory_layouts_and_partitions(name, tmp_path, monkeypatch):
    store, kind, steps = CASES[name]
    np.save(tmp_path / "seeds.npy", np.arange(20))
    options = {**WALKS, "seeds": f"{kind}={tmp_path}/seeds.npy", "typed_ids": True, "metapath": steps, "batch_size": 6}
    wanted = None
    for at, (of_store, threads) in enumerate([({}, 1), ({}, 3), ({"layout": "csr"}, 2), ({"partitions": 3}, 2)]):
        graphprep.sample(shared_store(store, **of_store)[1], tmp_path / str(at), **options, threads=threads)
        wanted = wanted or digest(tmp_path / str(at))
        assert digest(tmp_path / str(at)) == wanted
    stream_all(monkeypatch)
    graphprep.sample(shared_store(store)[1], tmp_path / "streamed", **options)
    assert digest(tmp_path / "streamed") == wanted


def test_few_visits_at_a_time_are_counted_alike(monkeypatch):
    from graphprep.sample import walks

    graph = graphprep.load(shared_store("homogeneous")[1])
    wanted = [found_flow(flow, "paper") for flow in graphprep.neighbor_sampling(graph, **WALKS)]
    monkeypatch.setattr(walks, "_MOST_VISITS", 50)
    assert [found_flow(flow, "paper") for flow in graphprep.neighbor_sampling(graph, **WALKS)] == wanted


def test_files_and_their_store(tmp_path):
    graph = graphprep.load(shared_store("homogeneous")[1])
    np.save(tmp_path / "seeds.npy", np.arange(40))
    options = {**WALKS, "batch_size": 16, "epochs": 2}
    for file_format in ("npz", "parquet"):
        out = tmp_path / file_format
        files = {"seeds": str(tmp_path / "seeds.npy"), "typed_ids": True, "copy_columns": ["paper:feat"], "format": file_format}
        graphprep.sample(graph.url, out, **options, **files)
        drawn = graphprep.neighbor_sampling(graph, **options)
        for one, two in zip(graphprep.open_samples(out, graph=graph), drawn, strict=True):
            assert found_flow(one, "paper") == found_flow(two, "paper")
            assert dict(one.flows[0, 1].data) == {}
        alone = graphprep.open_samples(out)[0]
        assert np.array_equal(alone.back.data["feat"], graph.take("paper", "feat", alone.layer_parent_nid(-1)))
    graphprep.reorder(graph.url, tmp_path / "other", by="random")
    with pytest.raises(DataError, match="nodes of type 'paper' stand in another order"):
        graphprep.open_samples(tmp_path / "npz", graph=tmp_path / "other")


@pytest.mark.client("torch-geometric")
def test_pyg_has_the_visits_as_weights():
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    graph = graphprep.load(shared_store("homogeneous")[1])
    flow = graphprep.neighbor_sampling(graph, [3, 4], **{**WALKS, "fanouts": [5]})[0]
    for added in (True, False):  # visits are no loops
        data = flow.to_pyg(added_self_loops=added)
        ends = data.n_id[data.edge_index].tolist()
        assert list(zip(*ends, data.edge_weights.tolist(), strict=True)) == found_flow(flow, "paper")[1][0]


def test_visits_have_the_chances_of_walks(tmp_path):
    """Of a small graph, by adding up all ways; the statistic of chi-square over many walks stays below its 0.9999 quantile."""
    edges = [(0, 1), (0, 2), (0, 2), (1, 0), (2, 3), (3, 0), (3, 1)]
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{one},{other}\n" for one, other in edges))
    graphprep.convert(tmp_path / "edges.csv", tmp_path / "store")
    step = np.zeros((4, 4))
    for one, other in edges:
        step[one, other] += 1
    step /= step.sum(axis=1, keepdims=True)
    stay, length, walks = 0.6, 4, 20_000
    reached = [np.linalg.matrix_power(step, hop + 1)[0] * stay**hop for hop in range(length)]
    flow = graphprep.neighbor_sampling(
        graphprep.load(tmp_path / "store"),
        [0],
        sampler="random-walk",
        fanouts=[-1],
        walks=walks,
        walk_length=length,
        restart_prob=0.4,
    )[0]
    found = dict(zip(flow.layer_parent_nid(0).tolist(), flow.arrays.edge_weights.tolist(), strict=True))
    total = sum(found.values())
    wanted = sum(reached)
    assert abs(total / walks - wanted.sum()) < 4 * (1.3 / walks**0.5)
    expected = wanted / wanted.sum() * total
    assert sum((found[node] - expected[node]) ** 2 / expected[node] for node in range(4)) < 4 * 21.1  # visits of a walk depend


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--full", "2"], "--full and --sampler random-walk contradict each other"),
        (["--fanouts", "3", "--replace"], "--replace and --sampler random-walk contradict each other"),
        (["--fanouts", "3", "--direction", "out"], "--direction and --sampler random-walk contradict each other"),
        (
            ["--fanouts", "user:buys:item=3", "--metapath", "user:knows:user"],
            "--fanouts of random walks are numbers of neighbours, one a hop",
        ),
        (["--fanouts", "3"], "random walks over several types need a --metapath"),
        (["--fanouts", "3", "--metapath", "user:buys"], "--metapath: there is no edge type 'user:buys'"),
        (["--fanouts", "3", "--metapath", "user:buys:item"], "--metapath: 'user:buys:item' ends at 'item', and"),
        (
            ["--fanouts", "3", "--metapath", "~user:buys:item,user:buys:item"],
            "random walks begin at nodes of type 'item', found seeds of type 'user'",
        ),
        (["--fanouts", "3", "--walks", "0"], "--walks must be 1 or more, found 0"),
        (
            ["--fanouts", "3", "--walks", "2000", "--walk-length", "2000"],
            "--walks times --walk-length must be 1,000,000 or less",
        ),
        (["--fanouts", "3", "--restart-prob", "1.5"], "--restart-prob must lie between 0 and 1, found 1.5"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_random_walks_have_not_is_refused(flags, words, tmp_path, capsys):
    store = str(shared_store("heterogeneous")[1])
    (tmp_path / "seeds.txt").write_text("0\n")
    assert (
        run(
            [
                "sample",
                store,
                str(tmp_path / "out"),
                "--seeds",
                f"user={tmp_path}/seeds.txt",
                "--sampler",
                "random-walk",
                *flags,
            ]
        )
        == 2
    )
    assert capsys.readouterr().err.startswith(f"error: {words}")


def test_options_of_walks_are_refused_elsewhere():
    graph = graphprep.load(shared_store("homogeneous")[1])
    with pytest.raises(UsageError, match='walks does nothing without random walks\n  fix: add sampler="random-walk"'):
        graphprep.neighbor_sampling(graph, fanouts=[3], walks=5)
