"""No edge tells of one that is held out: edges and their reverses are split together, whoever has made these."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exporters.torch_reader import read_naively

import graphprep
from graphprep.model.errors import UsageError
from graphprep.rewrite.split import reverses as reverses_module

pytestmark = pytest.mark.usefixtures("flags_named")
SHARES = "0.6/0.2/0.2"


def convert(folder, edges, **options):
    """Convert edges by type: (source, destination) each, or with a time."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, rows in edges.items():
        files[name] = folder / f"{name.split(':')[1]}.csv"
        header = ("src", "dst", "day")[: len(rows[0])]
        files[name].write_text("".join(",".join(map(str, row)) + "\n" for row in [header, *rows]))
    given = {"decoder_options": {"time_col": "day"}} if len(next(iter(edges.values()))[0]) > 2 else {}
    graphprep.convert([], str(folder / "store"), edges={name: str(path) for name, path in files.items()}, **given, **options)
    return str(folder / "store")


def pairs(num, sources, destinations, seed=0):
    rng = np.random.default_rng(seed)
    found = {(int(u), int(v)) for u, v in zip(rng.integers(0, sources, num), rng.integers(0, destinations, num), strict=True)}
    return sorted(found)


def parts(store):
    """Return the part of every edge by type, as raw IDs: {(source, destination): parts}."""
    graph, found = graphprep.load(store), {}
    for edge_type in graph.edge_types:
        src, dst, _ = graph.edges(edge_type, order="rows")
        src, dst = graph.ids(edge_type[0])[src].tolist(), graph.ids(edge_type[2])[dst].tolist()
        has_split = any(column.role == "split" for column in graph.columns(edge_type))
        values = graph.column(edge_type, "split").tolist() if has_split else [0] * len(src)
        own = found.setdefault(edge_type, {})
        for u, v, part in zip(src, dst, values, strict=True):
            own.setdefault((u, v), set()).add(part)
    return found


def leaks(store):
    """Count held-out edges that stand among the edges of train, or whose reverses do, by brute force."""
    found = parts(store)
    train = {(one[0], one[2], edge) for one, edges in found.items() for edge, own in edges.items() if 0 in own}
    return sum(
        (one[2], one[0], edge[::-1]) in train or (one[0], one[2], edge) in train
        for one, edges in found.items()
        for edge, own in edges.items()
        if own != {0}
    )


def split(store, out, *of, **options):
    summary = graphprep.split(store, str(out), SHARES, of=of or ("edges",), **{"by": "random", **options})
    report = graphprep.validate(str(out))
    assert report.sound, report.faults
    return summary


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("of", ["user:buys:item", "edges", "item:rev_buys:user"])
def test_reverses_that_transform_added_are_held_out_with_their_edges(tmp_path, of, partitions):
    store = convert(tmp_path, {"user:buys:item": pairs(150, 30, 20)}, partitions=partitions)
    graphprep.transform(store, str(tmp_path / "both"), ["add-reverse"])
    summary = split(str(tmp_path / "both"), tmp_path / "out", of)
    assert leaks(str(tmp_path / "out")) == 0
    assert summary.edge_splits["user:buys:item"] == summary.edge_splits["item:rev_buys:user"]
    assert summary.edge_splits["user:buys:item"]["test"] > 20
    first, second = ("item:rev_buys:user", "user:buys:item") if "rev" in of else ("user:buys:item", "item:rev_buys:user")
    what = f"edge type {first!r}: {second!r} has its reverses, and both are split together"
    assert summary.notes == (f"{what} (--reverses apart: each by itself)",)
    split(str(tmp_path / "both"), tmp_path / "apart", of, reverses="apart")
    assert leaks(str(tmp_path / "apart")) > 20


@pytest.mark.parametrize("operations", [["to-bidirected"], ["symmetrize", "max"], ["to-bidirected", "reorder"]])
def test_both_directions_of_a_type_are_held_out_together(tmp_path, operations):
    store = convert(tmp_path, {"n:to:n": [*pairs(300, 40, 40), (3, 3)]})
    graphprep.transform(store, str(tmp_path / "both"), [one for one in operations if one != "reorder"])
    if "reorder" in operations:
        graphprep.reorder(str(tmp_path / "both"), str(tmp_path / "other"), by="degree")
    store = str(tmp_path / ("other" if "reorder" in operations else "both"))
    assert json.loads((tmp_path / "both/metadata.json").read_text())["edge_schema"]["n:to:n"]["reverse_of"] == "n:to:n"
    summary = split(store, tmp_path / "out")
    assert leaks(str(tmp_path / "out")) == 0
    words = (
        "edge type 'n:to:n': its edges stand in both directions, which are split together (--reverses apart: each by itself)"
    )
    assert summary.notes == (words,)
    split(store, tmp_path / "apart", reverses="apart")
    assert leaks(str(tmp_path / "apart")) > 20


def test_reverses_that_nobody_has_recorded_are_found(tmp_path):
    """Of two types and of one, and where there are few of them only a note says it."""
    buys, knows = pairs(150, 30, 20), pairs(120, 25, 25)
    edges = {
        "user:buys:item": buys,
        "item:bought:user": [(v, u) for u, v in buys[:100]],
        "user:knows:user": [*knows, *((v, u) for u, v in knows)],
        "user:follows:user": [*pairs(60, 30, 30, 3), *((v, u) for u, v in pairs(60, 30, 30, 3)[:9])],
    }
    store = convert(tmp_path, edges)
    summary = split(store, tmp_path / "out", "user:buys:item", "user:knows:user")
    assert leaks(str(tmp_path / "out")) <= sum(  # but of what is not split
        (u, v) in edges["user:follows:user"] or (v, u) in edges["user:follows:user"] for u, v in edges["user:knows:user"]
    )
    assert [note for note in summary.notes if "together (" in note] == [
        "edge type 'user:buys:item': 'item:bought:user' has its reverses, and both are split together "
        "(--reverses apart: each by itself)",
        "edge type 'user:knows:user': its edges stand in both directions, which are split together "
        "(--reverses apart: each by itself)",
    ]
    summary = split(store, tmp_path / "two", "user:follows:user")
    both = {*edges["user:follows:user"]} & {(v, u) for u, v in edges["user:follows:user"]}
    share = (
        100 * len([one for one in both if one[0] != one[1]]) // len({(u, v) for u, v in edges["user:follows:user"] if u != v})
    )
    note = f"edge type 'user:follows:user': {share}% of its edges stand in both directions, and these are split apart"
    assert share < 50
    assert f"{note}: --symmetric keeps them together" in summary.notes


def test_large_types_are_compared_by_some_of_their_pairs(tmp_path, monkeypatch):
    monkeypatch.setattr(reverses_module, "_MOST", 64)
    edges = pairs(3000, 90, 80)
    store = convert(tmp_path, {"a:to:b": edges, "b:back:a": [(v, u) for u, v in edges[:-40]]}, partitions=2)
    summary = split(store, tmp_path / "out", "a:to:b")
    assert leaks(str(tmp_path / "out")) == 0
    assert len(summary.notes) == 1


@pytest.mark.parametrize("by", ["time", "label"])
def test_reverses_go_along_by_time_and_label(tmp_path, by):
    rng = np.random.default_rng(4)
    edges = [(u, v, int(rng.integers(0, 9))) for u, v in pairs(150, 30, 20)]
    store = convert(tmp_path, {"a:to:b": edges})
    graphprep.transform(store, str(tmp_path / "both"), ["add-reverse"])
    column = "time" if by == "time" else "label:time"
    summary = split(str(tmp_path / "both"), tmp_path / "out", "a:to:b", by=column)
    assert leaks(str(tmp_path / "out")) == 0
    assert summary.edge_splits["a:to:b"] == summary.edge_splits["b:rev_to:a"]
    graphprep.transform(str(tmp_path / "both"), str(tmp_path / "less"), ["drop-columns", "b:rev_to:a:time"])
    summary = split(str(tmp_path / "less"), tmp_path / "untold", "a:to:b", by=column)
    words = "edge type 'a:to:b': 'b:rev_to:a' has its reverses, and has no 'time' to be split by: leave it out of training"
    assert words in summary.notes


def test_a_reverse_with_a_split_is_not_replaced_unasked(tmp_path):
    store = convert(tmp_path, {"a:to:b": pairs(50, 30, 20)})
    graphprep.transform(store, str(tmp_path / "both"), ["add-reverse"])
    split(str(tmp_path / "both"), tmp_path / "one", "b:rev_to:a", reverses="apart")
    with pytest.raises(UsageError) as caught:
        split(str(tmp_path / "one"), tmp_path / "two", "a:to:b")
    assert caught.value.message == "edge type 'b:rev_to:a' has a split already, 'split'"
    assert caught.value.fix == "give --overwrite-column to replace it, or --reverses apart"


@pytest.mark.long
def test_exports_pass_no_message_over_what_is_held_out(tmp_path):
    store = convert(tmp_path, {"user:buys:item": pairs(150, 30, 20)})
    graphprep.transform(store, str(tmp_path / "both"), ["add-reverse"])
    split(str(tmp_path / "both"), tmp_path / "out", "user:buys:item")
    graphprep.export(str(tmp_path / "out"), str(tmp_path / "pyg"), "pyg")
    data = read_naively((tmp_path / "pyg/data.pt").read_bytes(), "data")
    buys, back = data["user", "buys", "item"], data["item", "rev_buys", "user"]
    sets = read_naively((tmp_path / "pyg/edge_sets.pt").read_bytes(), "edge_sets")
    passed = {*zip(*buys["edge_index"].tolist(), strict=True)} | {*zip(*back["edge_index"][::-1].tolist(), strict=True)}
    for part in ("val", "test"):
        held_out = {*zip(*sets["user", "buys", "item"][f"{part}_edge_label_index"].tolist(), strict=True)}
        assert held_out
        assert not held_out & passed
        assert not {*zip(*sets["item", "rev_buys", "user"][f"{part}_edge_label_index"][::-1].tolist(), strict=True)} & passed


# ---------------------------------------------------------------------------------------------------- what a store says


def recorded(store):
    schema = json.loads((store / "metadata.json").read_text())["edge_schema"]
    return {name: value["reverse_of"] for name, value in schema.items() if "reverse_of" in value}


@pytest.mark.long
def test_what_is_known_of_reverses_goes_along_while_it_is_true(tmp_path):
    store = convert(tmp_path, {"user:buys:item": pairs(150, 30, 20)})
    graphprep.transform(store, str(tmp_path / "a"), ["add-reverse"])
    known = {"item:rev_buys:user": "user:buys:item"}
    assert recorded(tmp_path / "a") == known
    graphprep.reorder(str(tmp_path / "a"), str(tmp_path / "b"), by="degree")
    graphprep.partition(str(tmp_path / "b"), str(tmp_path / "c"), partitions=3, by="hash")
    graphprep.transform(str(tmp_path / "c"), str(tmp_path / "d"), ["sort-neighbors"])
    graphprep.split(str(tmp_path / "d"), str(tmp_path / "e"), SHARES, by="random", of=["edges"])
    for name in "bcde":
        assert recorded(tmp_path / name) == known
        assert graphprep.validate(str(tmp_path / name)).sound
    (tmp_path / "ids.txt").write_text("0\n1\n2\n")
    graphprep.transform(str(tmp_path / "a"), str(tmp_path / "f"), ["edge-subgraph", f"user:buys:item={tmp_path}/ids.txt"])
    graphprep.transform(str(tmp_path / "a"), str(tmp_path / "g"), ["reverse"])
    graphprep.transform(str(tmp_path / "a"), str(tmp_path / "h"), ["to-homogeneous"])
    assert recorded(tmp_path / "f") == recorded(tmp_path / "g") == recorded(tmp_path / "h") == {}


@pytest.mark.parametrize(
    ("name", "what"), [("user:buys:user", "there is no edge type"), ("item:rev_buys:user", "expected edges")]
)
def test_validate_finds_reverses_that_are_none(tmp_path, name, what):
    store = convert(tmp_path, {"user:buys:item": pairs(150, 30, 20)})
    graphprep.transform(store, str(tmp_path / "a"), ["add-reverse"])
    path = tmp_path / "a/metadata.json"
    metadata = json.loads(path.read_text())
    metadata["edge_schema"]["item:rev_buys:user"]["reverse_of"] = name
    path.write_text(json.dumps(metadata, indent=2, ensure_ascii=False) + "\n")
    report = graphprep.validate(str(tmp_path / "a"))
    assert any("reverse_of" in fault.place and what in fault.message for fault in report.faults), report.faults
