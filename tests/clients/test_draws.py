"""How often each set of in-edges is drawn of a node: beside the exact shares, DGL's ``sample_neighbors`` and GraphBolt's."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from clients.dgl_environment import GRAPHBOLT

import graphprep

stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")

pytestmark = [pytest.mark.client("graphbolt"), pytest.mark.xdist_group("graphbolt")]
FANOUT, TIMES, MORE_TIMES = 3, 3500, 16_000  # of the trainers, which are slower, and of graphprep
DEGREES = (7, 5)  # of the nodes 0 and 1: 35 sets of three edges, and 10
SRC = np.array([1, 2, 3, 4, 5, 6, 7, 2, 3, 4, 5, 6])
DST = np.repeat([0, 1], DEGREES)


def ours(graph, **options):
    """Return edge IDs [MORE_TIMES, 2, FANOUT], ascending for each seed."""
    flows = graphprep.neighbor_sampling(
        graph, [0, 1], fanouts=[FANOUT], batch_size=2, epochs=MORE_TIMES, shuffle=False, **options
    )
    return np.stack([np.sort(flow.block_parent_eid(0).reshape(2, FANOUT), axis=1) for flow in flows])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """Return what each has drawn."""
    folder = tmp_path_factory.mktemp("draws")
    GRAPHBOLT.find_python()
    np.savez(folder / "edges.npz", src=SRC, dst=DST, num_nodes=8, seeds=np.array([0, 1]))
    GRAPHBOLT.run("draws_client.py", folder / "edges.npz", folder / "drawn.npz", str(FANOUT), str(TIMES))
    np.save(folder / "pairs.npy", np.stack([SRC, DST], axis=1))
    graphprep.convert(str(folder / "pairs.npy"), str(folder / "store"), num_nodes={"_N": 8})
    graph = graphprep.load(str(folder / "store"))
    with np.load(folder / "drawn.npz") as found:
        theirs = dict(found)
    return {"graphprep": ours(graph, seed=3), "graphprep_replace": ours(graph, seed=3, replace=True), **theirs}


def count_sets(ids, seed):
    """Count how often each set of edges of a seed was drawn."""
    low = sum(DEGREES[:seed])
    sets = {one: at for at, one in enumerate(combinations(range(low, low + DEGREES[seed]), FANOUT))}
    return np.bincount([sets[tuple(one)] for one in ids[:, seed].tolist()], minlength=len(sets))


@pytest.mark.parametrize("seed", [0, 1])
def test_every_set_of_edges_is_drawn_as_often(drawn, seed):
    counts = {name: count_sets(drawn[name], seed) for name in ("graphprep", "dgl", "graphbolt")}
    for name, found in counts.items():
        assert stats.chisquare(found).pvalue > (1e-3 if name == "graphprep" else 1e-7), name  # GraphBolt's seed cannot be set
    for name in ("dgl", "graphbolt"):
        assert stats.chi2_contingency([counts["graphprep"], counts[name]]).pvalue > 1e-7, name


@pytest.mark.parametrize("seed", [0, 1])
def test_with_replacement_every_edge_is_drawn_as_often(drawn, seed):
    low, counts = sum(DEGREES[:seed]), {}
    for name in ("graphprep", "dgl", "graphbolt"):
        ids = drawn[f"{name}_replace"][:, seed]
        counts[name] = np.bincount(ids.ravel() - low, minlength=DEGREES[seed])
        twice = (np.diff(ids, axis=1) == 0).any(axis=1).mean()
        exact = 1 - np.prod(1 - np.arange(FANOUT) / DEGREES[seed])  # that some edge is drawn twice
        assert abs(twice - exact) < 5 * np.sqrt(exact * (1 - exact) / len(ids)), name
        assert stats.chisquare(counts[name]).pvalue > (1e-3 if name == "graphprep" else 1e-7), name
    for name in ("dgl", "graphbolt"):
        assert stats.chi2_contingency([counts["graphprep"], counts[name]]).pvalue > 1e-7, name


def test_the_draws_of_two_seeds_and_of_two_epochs_are_independent(drawn):
    ids = drawn["graphprep"]
    for one, two in ((ids[:, 0], ids[:, 1]), (ids[:-1, 0], ids[1:, 0])):
        has = [(some == some.min()).any(axis=1) for some in (one, two)]
        table = [[np.sum((has[0] == a) & (has[1] == b)) for b in (False, True)] for a in (False, True)]
        assert stats.chi2_contingency(table).pvalue > 1e-3
