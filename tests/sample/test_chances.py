"""What is drawn has the chances that it should have: chi-square against exact ones, with fixed seeds.

Counts of R draws of n of k things: cells are the sets (or, with replacement, the single things) that can be drawn.
"""

import itertools

import numpy as np
import pytest
from shards import blocks_of, read_flows

import graphprep

pd = pytest.importorskip("pandas", reason="pandas is not installed")
stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")

ROUNDS = 4000
LAYERS = 800
WEIGHTS = np.array([1.0, 2.0, 3.0, 5.0, 0.5, 1.5])


@pytest.fixture(scope="module")
def star(tmp_path_factory):
    """Many nodes, each with edges from nodes 1 to 6, of a weight and a time: those before 5 are the first four."""
    folder = tmp_path_factory.mktemp("star")
    rows = np.arange(7, 7 + ROUNDS)
    edges = pd.DataFrame(
        {"src": np.tile(np.arange(1, 7), ROUNDS), "dst": np.repeat(rows, 6), "weight": np.tile(WEIGHTS, ROUNDS)}
    )
    edges["time"] = np.tile([0, 1, 2, 3, 5, 9], ROUNDS)
    graphprep.convert([], folder / "store", edges={("n", "e", "n"): edges}, num_nodes={"n": 7 + ROUNDS})
    np.save(folder / "seeds.npy", rows)
    np.save(folder / "times.npy", np.full(ROUNDS, 5))
    return folder


def draws(star, tmp_path, **options):
    """Return the sources that are drawn of each row, ascending as they stand in it."""
    graphprep.sample(star / "store", tmp_path / "out", seeds=star / "seeds.npy", typed_ids=True, seed=11, **options)
    rows = {}
    for arrays in read_flows(tmp_path / "out"):
        for source, row, _ in blocks_of(arrays, ("n",), [("n", "n")])[0][0]:
            rows.setdefault(row[0], []).append(source[0])
    assert len(rows) == ROUNDS
    return [tuple(row) for row in rows.values()]


def agree(found, chances):
    """Raise where counts of things are not what their chances say, by a chi-square test."""
    assert sum(chances.values()) == pytest.approx(1.0)
    assert set(found) <= set(chances)
    counts = [found.count(one) for one in chances]
    expected = np.array(list(chances.values())) * len(found)
    assert expected.min() > 4
    assert stats.chisquare(counts, expected).pvalue > 0.001


def successive(weights, size):
    """Return the chance of every set of ``size`` things, drawn one after another in proportion to the weights of those left."""
    chances = {}
    for order in itertools.permutations(weights, size):
        chance, left = 1.0, sum(weights.values())
        for one in order:
            chance *= weights[one] / left
            left -= weights[one]
        key = tuple(sorted(order))
        chances[key] = chances.get(key, 0.0) + chance
    return chances


def test_uniform_without_replacement(star, tmp_path):
    found = draws(star, tmp_path, fanouts="3")
    sets = list(itertools.combinations(range(1, 7), 3))
    agree(found, dict.fromkeys(sets, 1 / len(sets)))


def test_uniform_with_replacement(star, tmp_path):
    found = draws(star, tmp_path, fanouts="2", replace=True)
    pairs = {}
    for pair in itertools.product(range(1, 7), repeat=2):
        pairs[tuple(sorted(pair))] = pairs.get(tuple(sorted(pair)), 0.0) + 1 / 36
    agree(found, pairs)


def test_weighted_without_replacement(star, tmp_path):
    found = draws(star, tmp_path, fanouts="2", weight_column="weight")
    agree(found, successive(dict(zip(range(1, 7), WEIGHTS, strict=True)), 2))


def test_weighted_with_replacement(star, tmp_path):
    found = [one for pair in draws(star, tmp_path, fanouts="2", weight_column="weight", replace=True) for one in pair]
    agree(found, dict(zip(range(1, 7), WEIGHTS / WEIGHTS.sum(), strict=True)))


def test_before_a_time(star, tmp_path):
    options = {"time_column": "time", "seed_times": star / "times.npy"}
    sets = list(itertools.combinations(range(1, 5), 2))
    agree(draws(star, tmp_path, fanouts="2", **options), dict.fromkeys(sets, 1 / len(sets)))


def test_weighted_before_a_time(star, tmp_path):
    options = {"time_column": "time", "seed_times": star / "times.npy", "weight_column": "weight"}
    agree(draws(star, tmp_path, fanouts="2", **options), successive(dict(zip(range(1, 5), WEIGHTS, strict=False)), 2))


# ---- layer-wise: two seeds, whose rows have three and two edges, of four sources; node 2 is a source of other edges, too


@pytest.fixture(scope="module")
def layer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layer")
    source, destination = [2, 3, 4, 3, 5, 2, 2, 2], [0, 0, 0, 1, 1, 6, 6, 6]
    graphprep.convert([], folder / "store", edges={("n", "e", "n"): pd.DataFrame({"src": source, "dst": destination})})
    (folder / "seeds.txt").write_text("0\n1\n")
    return folder


LADIES = {2: 1 / 9, 3: 1 / 9 + 1 / 4, 4: 1 / 9, 5: 1 / 4}
FASTGCN = {2: 4, 3: 2, 4: 1, 5: 1}
ROWS = {0: (2, 3, 4), 1: (3, 5)}


@pytest.mark.parametrize(("method", "wanted"), [("ladies", LADIES), ("fastgcn", FASTGCN)])
@pytest.mark.parametrize("replace", [False, True])
def test_layers_are_drawn_by_importance(layer, tmp_path, method, wanted, replace):
    options = {"layer_sizes": "2", "layer_method": method, "replace": replace, "seed": 3}
    graphprep.sample(layer / "store", tmp_path / "out", seeds=layer / "seeds.txt", epochs=LAYERS, shuffle=False, **options)
    chances = {node: weight / sum(wanted.values()) for node, weight in wanted.items()}
    found = []
    for arrays in read_flows(tmp_path / "out"):
        ((edges,),) = blocks_of(arrays, ("n",), [("n", "n")])
        drawn = sorted({source[0] for source, _, _ in edges})
        found.append(tuple(drawn))
        if len(drawn) == 2 and not replace:
            check_weights(edges, arrays["edge_weights"], chances, method)
        # every edge of the layer from a node that was drawn is there, and no other
        assert [(source[0], row[0]) for source, row, _ in edges] == [
            (one, row) for row in (0, 1) for one in ROWS[row] if one in drawn
        ]
    if replace:
        pairs = {}
        for pair in itertools.product(chances, repeat=2):
            key = tuple(sorted(set(pair)))
            pairs[key] = pairs.get(key, 0.0) + chances[pair[0]] * chances[pair[1]]
        agree(found, pairs)
    else:
        agree(found, successive(wanted, 2))


def check_weights(edges, weights, chances, method):
    expected = [1 / len(ROWS[row[0]]) / (2 * chances[source[0]]) for source, row, _ in edges]
    if method == "ladies":
        sums = {row: sum(w for w, (_, r, _) in zip(expected, edges, strict=True) if r == row) for _, row, _ in edges}
        expected = [w / sums[row] for w, (_, row, _) in zip(expected, edges, strict=True)]
    assert weights == pytest.approx(expected, rel=1e-6)
