"""Negatives of stored graphs against naive loops, and their distributions against the exact ones."""

from __future__ import annotations

import contextlib

import numpy as np
import pyarrow as pa
import pytest

import graphprep
from graphprep.model.errors import UsageError
from graphprep.model.options.negatives import NegativeRule, negative_rule
from graphprep.model.run_options import RunOptions
from graphprep.rewrite.run import StoreRun
from graphprep.rewrite.split.negatives import draw_negatives
from graphprep.rewrite.transform.recipe import read_edges

stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")


def draw(store, parts, rule, *, seed=0, run=None):
    """Return the columns of the only edge type by role, lists by edge ID, and how many draws had no candidate; so are ``parts``."""
    with contextlib.ExitStack() as stack:
        at_work = stack.enter_context(StoreRun(str(store), None, run or RunOptions(), None))
        source = at_work.open_store()
        room = at_work.room(source.metadata)
        at_work.ledger.begin("negatives", tuple(room.needs()))
        by_id = read_edges(source, 0, room, with_rows=True).rows
        by_row = np.zeros(len(parts), np.int8)
        by_row[by_id] = parts
        found = draw_negatives(source, 0, by_row, rule, seed, room)
        rows = {}
        for column in found.columns:
            split = np.split(column.values, column.offsets[1:-1])
            rows[column.schema.role] = [split[row].tolist() for row in by_id]
        at_work.finish()
    assert sum(len(row) for some in rows.values() for row in some) == found.total
    assert sum(row.count(-1) for some in rows.values() for row in some) == found.missing
    return rows, found.missing


def convert(tmp_path, pairs, name="graph", **options):
    path = tmp_path / f"{name}.txt"
    path.write_text("".join(f"{src} {dst}\n" for src, dst in pairs))
    graphprep.convert(str(path), str(tmp_path / name), format="edges", **options)
    return tmp_path / name


def random_pairs(num_nodes, num_edges, seed=0):
    rng = np.random.default_rng(seed)
    pairs = np.minimum(rng.geometric(4 / num_nodes, (num_edges, 2)) - 1, num_nodes - 1)
    return [*map(tuple, pairs.tolist()), (num_nodes - 1, num_nodes - 1)]


@pytest.mark.parametrize("by", ["uniform", "degree", "degree:2", "khop:2", "khop:4"])
@pytest.mark.parametrize("corrupt", ["tail", "head", "both"])
def test_no_negative_is_an_edge(tmp_path, by, corrupt):
    pairs = random_pairs(60, 400)
    store = convert(tmp_path, pairs)
    parts = [edge % 4 - 1 for edge in range(len(pairs))]
    rows, _ = draw(store, parts, negative_rule("train=1,val=4,test=6", by, corrupt))
    assert list(rows) == {"tail": ["negative_dst"], "head": ["negative_src"], "both": ["negative_src", "negative_dst"]}[corrupt]
    for role, found in rows.items():
        assert [len(row) for row in found] == [(1, 4, 6, 0)[part] for part in parts]
        for (src, dst), row in zip(pairs, found, strict=True):
            for node in row:
                pair = (node, dst) if role == "negative_src" else (src, node)
                assert node == -1 or (pair not in set(pairs) and pair[0] != pair[1] and 0 <= node < 60)


def reachable(pairs, start, most):
    """Return the nodes within so many steps, in either direction."""
    seen = {start}
    for _ in range(most):
        seen |= {v for u, v in pairs if u in seen} | {u for u, v in pairs if v in seen}
    return seen


def test_walks_stay_within_their_hops(tmp_path):
    pairs = [(node, (node + 1) % 40) for node in range(40)] + [(node, (node + 2) % 40) for node in range(0, 40, 5)]
    rows, _ = draw(convert(tmp_path, pairs), [0] * len(pairs), negative_rule("500", "khop:3", "tail"))
    for (src, _), row in zip(pairs, rows["negative_dst"], strict=True):
        own = {v for u, v in pairs if u == src}
        assert set(row) == reachable(pairs, src, 3) - own - {src}  # each of the few is drawn, and nothing else


@pytest.mark.parametrize(("by", "exponent"), [("uniform", 0), ("degree", 0.75), ("degree:1.5", 1.5)])
def test_candidates_are_as_likely_as_they_should_be(tmp_path, by, exponent):
    pairs = list(dict.fromkeys(random_pairs(30, 150, seed=3)))
    parts = [-1] * len(pairs)
    edge = next(i for i, (src, _) in enumerate(pairs) if src == 5)
    parts[edge] = 2
    rows, _ = draw(convert(tmp_path, pairs), parts, negative_rule("20000", by, "tail"), seed=7)
    degrees = np.bincount([dst for _, dst in pairs], minlength=30).astype(float)
    weights = np.ones(30) if by == "uniform" else np.where(degrees > 0, degrees**exponent, 0)
    weights[[5, *(dst for src, dst in pairs if src == 5)]] = 0
    counts = np.bincount(rows["negative_dst"][edge], minlength=30)
    assert not counts[weights == 0].any()
    expected = weights[weights > 0] / weights.sum() * 20000
    assert stats.chisquare(counts[weights > 0], expected).pvalue > 0.01


def test_the_same_whatever_the_threads_the_memory_and_the_partitions(tmp_path):
    pairs = random_pairs(3000, 60000)
    parts, rule = [edge % 3 for edge in range(len(pairs))], negative_rule("2", "degree", "both")
    expected = draw(convert(tmp_path, pairs), parts, rule)
    tight = RunOptions(threads=4, memory_limit="160MiB", tmp_dir=str(tmp_path))
    assert draw(tmp_path / "graph", parts, rule, run=tight) == expected
    parted = convert(tmp_path, pairs, "parted", partitions=3)
    assert draw(parted, parts, rule) == expected
    assert draw(parted, parts, rule, seed=1) != expected


def test_an_edge_keeps_its_negatives_whatever_part_it_is_in(tmp_path):
    pairs = random_pairs(60, 200)
    store, rule = convert(tmp_path, pairs), negative_rule("3", "uniform", "tail")
    every, _ = draw(store, [0] * len(pairs), rule)
    some, _ = draw(store, [edge % 4 - 1 for edge in range(len(pairs))], rule)
    for edge, row in enumerate(some["negative_dst"]):
        assert row == (every["negative_dst"][edge] if edge % 4 else [])


def test_a_node_with_edges_to_all_has_no_negatives(tmp_path):
    pairs = [(0, node) for node in range(5)] + [(1, 2)]
    for by in ("uniform", "degree", "khop:2"):
        rows, missing = draw(convert(tmp_path, pairs, by[:4]), [0] * 6, negative_rule("3", by, "tail"))
        assert rows["negative_dst"][:5] == [[-1, -1, -1]] * 5
        assert missing == 15
        assert {*rows["negative_dst"][5]} <= {0, 3, 4}


def test_more_negatives_than_candidates_repeat(tmp_path):
    pairs = [(0, node) for node in range(1, 9)] + [(1, 0)]
    rows, missing = draw(convert(tmp_path, pairs), [0] * 9, negative_rule("50", "uniform", "head"))
    assert set(rows["negative_src"][0]) == {2, 3, 4, 5, 6, 7, 8}  # of 0 -> 1: all but 0, and 1 itself
    assert missing == 0


def shop(tmp_path, pairs, num_users, num_items):
    kind = ("user", "buys", "item")
    table = pa.table({"src": [src for src, _ in pairs], "dst": [dst for _, dst in pairs]})
    sizes = {"user": num_users, "item": num_items}
    graphprep.convert(edges={kind: table}, num_nodes=sizes, out=str(tmp_path / "shop"))
    return tmp_path / "shop"


@pytest.mark.parametrize("by", ["uniform", "degree", "khop:3", "khop:5"])
def test_negatives_are_of_the_types_of_their_relation(tmp_path, by):
    """Between two types a node may be its own number's negative, and walks end where edges do."""
    pairs = sorted({(src % 20, dst % 6) for src, dst in random_pairs(60, 60)})
    rows, _ = draw(shop(tmp_path, pairs, 20, 6), [0] * len(pairs), negative_rule("9", by, "both"))
    found = [(node, dst) for (_, dst), row in zip(pairs, rows["negative_src"], strict=True) for node in row if node >= 0]
    assert 6 < max(src for src, _ in found) < 20
    found += [(src, node) for (src, _), row in zip(pairs, rows["negative_dst"], strict=True) for node in row if node >= 0]
    assert any(src == dst for src, dst in found)
    assert max(dst for _, dst in found) < 6
    assert not set(found) & set(pairs)


def test_a_relation_to_a_single_node(tmp_path):
    rows, missing = draw(shop(tmp_path, [(0, 0), (2, 0)], 3, 1), [0, 0], negative_rule("2", "uniform", "both"))
    assert rows == {"negative_src": [[1, 1], [1, 1]], "negative_dst": [[-1, -1], [-1, -1]]}
    assert missing == 4


def test_two_hops_lead_back_between_two_types(tmp_path):
    with pytest.raises(UsageError) as caught:
        draw(shop(tmp_path, [(0, 0)], 2, 2), [0], negative_rule("1", "khop:2", "tail"))
    assert caught.value.message == "khop:2: in 'user:buys:item' two steps lead back to nodes of the first type"
    assert caught.value.fix == "use khop:3 or more, or another method"


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        (("5", "uniform", "tail"), NegativeRule((5, 5, 5), ("dst",))),
        (("train=1,val=50,test=2", "degree", "head"), NegativeRule((1, 50, 2), ("src",), 0.75)),
        (("validation=3", "degree:1", "both"), NegativeRule((0, 3, 0), ("src", "dst"), 1.0)),
        (("test=3", "khop:12", "tail"), NegativeRule((0, 0, 3), ("dst",), 0.0, 12)),
    ],
)
def test_rules(given, rule):
    assert negative_rule(*given) == rule


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("x", "uniform"), "--negatives: 'x' is no number from 0 to 1048576"),
        (("1048577", "uniform"), "--negatives: '1048577' is no number from 0 to 1048576"),
        (("train=", "uniform"), "--negatives: '' is no number from 0 to 1048576"),
        (("0", "uniform"), "--negatives '0': none are drawn"),
        (("val=0,test=0", "uniform"), "--negatives 'val=0,test=0': none are drawn"),
        (("dev=1", "uniform"), "--negatives 'dev=1': 'dev' is no part"),
        (("val=1,valid=2", "uniform"), "--negatives 'val=1,valid=2': 'valid' is there twice"),
        (("1", "random"), "--negatives-by: there is no 'random'"),
        (("1", "degree:x"), "--negatives-by 'degree:x': 'x' is no exponent from 0 to 4"),
        (("1", "degree:nan"), "--negatives-by 'degree:nan': 'nan' is no exponent from 0 to 4"),
        (("1", "khop:1"), "--negatives-by 'khop:1': '1' is no number of hops from 2 to 64"),
        (("1", "khop"), "--negatives-by 'khop': '' is no number of hops from 2 to 64"),
    ],
)
def test_rules_that_are_none(given, words):
    with pytest.raises(UsageError) as caught:
        negative_rule(*given, "tail")
    assert caught.value.message == words
