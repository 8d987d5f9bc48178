"""``split`` against splits row by row in Python, over tables with texts as IDs, repeated edges, loops and missing cells."""

from __future__ import annotations

import collections
import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from golden.golden_cases import load_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hashes import hash_id
from rewrite.split_reference import NONE, cut, edge_key, edge_part, ends_of, node_key, split_classes, split_keys

import graphprep
from graphprep.model.errors import UsageError
from graphprep.rewrite import run as store_run
from graphprep.rewrite.split import borders as borders_module
from graphprep.rewrite.split.borders import KeyedRows, count_classes, find_borders
from graphprep.rewrite.split.shares import parse_shares
from graphprep.rewrite.transform import recipe as recipe_module

pytestmark = pytest.mark.usefixtures("flags_named")

STORES = {case.name: case.store for case in load_cases() if (case.store / "metadata.json").exists()}
USERS, ITEMS = [f"u{i}" for i in range(30)], [f"item {i}" for i in range(11)]
FOLLOWS, BUYS, BOUGHT = ("user", "follows", "user"), ("user", "buys", "item"), ("item", "bought_by", "user")


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """Make tables: users and items with labels, follows in both directions, buys and their reverses, with times."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(1)
    lines = [
        f"{user},{'' if i % 7 == 3 else ['UK', 'DE', 'FR'][i * i % 3]},{i % 4 if i % 5 else ''}\n"
        for i, user in enumerate(USERS)
    ]
    (folder / "user.csv").write_text("id,country,level\n" + "".join(lines))
    (folder / "item.csv").write_text("id,topic\n" + "".join(f"{item},{i % 3}\n" for i, item in enumerate(ITEMS)))
    pairs = [(USERS[u], USERS[v]) for u, v in rng.integers(0, 30, (60, 2))]
    pairs += [(v, u) for u, v in pairs[:35]] + pairs[:9] + [("u4", "u4"), ("u4", "u4")]
    follows = [(u, v, "" if at % 11 == 5 else f"2019-01-{1 + at * at % 28:02d}") for at, (u, v) in enumerate(pairs)]
    (folder / "follows.csv").write_text("src,dst,day\n" + "".join(",".join(row) + "\n" for row in follows))
    pairs = [(USERS[u], ITEMS[i]) for u, i in zip(rng.integers(0, 30, 70), rng.integers(0, 11, 70), strict=True)]
    (folder / "buys.csv").write_text(
        "src,dst,day\n" + "".join(f"{u},{i},2019-02-{1 + at % 28:02d}\n" for at, (u, i) in enumerate(pairs))
    )
    (folder / "bought_by.csv").write_text("src,dst\n" + "".join(f"{i},{u}\n" for u, i in pairs[:60]))
    return folder


def convert(tables, out, **options):
    graphprep.convert(
        nodes={"user": tables / "user.csv", "item": tables / "item.csv"},
        edges={":".join(one): tables / f"{one[1]}.csv" for one in (FOLLOWS, BUYS, BOUGHT)},
        out=out,
        decoder_options={"id_type": "string", "columns": {"day": "date"}},
        labels=["user:country", "item:topic"],
        **options,
    )
    return out


@pytest.fixture(scope="session")
def store(tables, tmp_path_factory):
    return convert(tables, tmp_path_factory.mktemp("store") / "store", partitions=3)


def split(store, out, shares="", **options):
    summary = graphprep.split(str(store), str(out), shares, **options)
    report = graphprep.validate(str(out))
    assert report.sound, report.faults
    return summary


def rows_of(store, name):
    """Return the rows of a type as dicts; ``split`` is a part's number."""
    graph = graphprep.load(str(store))
    table = graph.to_arrow(name) if isinstance(name, str) else graph.to_arrow(name, order="ids")
    rows = table.to_pylist()
    for row in rows:
        row["split"] = NONE if row.get("split") is None else row["split"]
    return rows


def parts_of(store, name):
    return [row["split"] for row in rows_of(store, name)]


def node_keys(store, name, seed=0):
    return [node_key(hash_id(next(iter(row.values()))), seed) for row in rows_of(store, name)]


def ends(row):
    return [row[key] for key in list(row)[:3] if key not in ("edge_id",)][:2]


def edge_keys(store, name, seed=0, *, reverse=False, symmetric=False):
    found = []
    for row in rows_of(store, name):
        src, dst = ends(row)
        if reverse:
            src, dst = dst, src
        found.append(edge_key(hash_id(src), hash_id(dst), seed, symmetric=symmetric))
    return found


def files(folder, *but):
    paths = (path for path in sorted(Path(folder).rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.name not in ("provenance.json", *but)}


# ------------------------------------------------------------------------------------------------- by the rules


@pytest.mark.parametrize("shares", ["0.8/0.1/0.1", "0.5/0.5", "0.25/.5/0.25", "1.0/0.0/0.0", "0.0/0.0/1.0"])
@pytest.mark.parametrize("seed", [0, 7, -1])
def test_nodes_at_random(store, tmp_path, shares, seed):
    summary = split(store, tmp_path / "out", shares, by="random", seed=seed)
    for name in ("user", "item"):
        wanted = split_keys(node_keys(store, name, seed), shares)
        assert parts_of(tmp_path / "out", name) == wanted
        counts = collections.Counter(wanted)
        assert summary.node_splits[name] == {"train": counts[0], "valid": counts[1], "test": counts[2], "none": counts[3]}
        ends = [0, *ends_of(shares, len(wanted))]  # no two nodes have one key: sizes are exact
        assert [counts[part] for part in ((0, 1, 2) if len(ends) == 4 else (0, 2))] == np.diff(ends).tolist()
    assert summary.edge_splits == {}


@pytest.mark.parametrize("shares", ["0.8/0.1/0.1", "20/10/5", "0/30/0", "12/8", "0.5/0.5"])
def test_edges_at_random(store, tmp_path, shares):
    split(store, tmp_path / "out", shares, by="random", of=["edges"], reverses="apart")
    for name in (FOLLOWS, BUYS, BOUGHT):
        parts = parts_of(tmp_path / "out", name)
        assert parts == split_keys(edge_keys(store, name), shares)
        where = collections.defaultdict(set)
        for row, part in zip(rows_of(store, name), parts, strict=True):
            where[tuple(ends(row))].add(part)
        assert all(len(found) == 1 for found in where.values())  # copies of an edge stay together


@pytest.mark.parametrize("shares", ["0.6/0.2/0.2", "10/50/20"])
def test_both_directions_stay_together(store, tmp_path, shares):
    split(store, tmp_path / "out", shares, by="random", of=["user:follows:user"], symmetric=True)
    parts = parts_of(tmp_path / "out", FOLLOWS)
    assert parts == split_keys(edge_keys(store, FOLLOWS, symmetric=True), shares)
    where = {}
    for row, part in zip(rows_of(store, FOLLOWS), parts, strict=True):
        src, dst = ends(row)
        assert where.setdefault((dst, src), part) == part
        where[src, dst] = part
    assert len(set(parts)) >= 3


def test_reverse_types_have_the_parts_of_what_they_reverse(store, tmp_path):
    pair = "user:buys:item=item:bought_by:user"
    summary = split(store, tmp_path / "out", "0.5/0.25/0.25", by="random", of=["user:buys:item"], reverse_types=[pair])
    keys, back = edge_keys(store, BUYS), edge_keys(store, BOUGHT, reverse=True)
    assert parts_of(tmp_path / "out", BUYS) == split_keys(keys, "0.5/0.25/0.25")
    ordered = sorted(keys)
    last = [ordered[end - 1] for end in ends_of("0.5/0.25/0.25", len(keys))]
    assert parts_of(tmp_path / "out", BOUGHT) == [sum(key > one for one in last[:2]) for key in back]
    where = {tuple(ends(row)): row["split"] for row in rows_of(tmp_path / "out", BUYS)}
    reverses = [(where[tuple(ends(row)[::-1])], row["split"]) for row in rows_of(tmp_path / "out", BOUGHT)]
    assert all(one == other for one, other in reverses)
    assert list(summary.edge_splits) == ["user:buys:item", "item:bought_by:user"]


@pytest.mark.parametrize("shares", ["0.7/0.2/0.1", "0.5/0.5", "40/40/20"])
def test_edges_by_time(store, tmp_path, shares):
    """The borders are those of all rows of all types that have the column."""
    summary = split(store, tmp_path / "out", shares, by="time:day")
    times = [[row["day"] for row in rows_of(store, name)] for name in (FOLLOWS, BUYS)]
    wanted = split_keys([*times[0], *times[1]], shares)
    found = [*parts_of(tmp_path / "out", FOLLOWS), *parts_of(tmp_path / "out", BUYS)]
    assert found == wanted
    assert "edge type 'item:bought_by:user' has no day: it gets no split" in summary.notes
    missing = sum(time is None for time in times[0])
    assert f"edge type 'user:follows:user': {missing:,} rows have no 'day', and are in no part" in summary.notes
    together = sorted((time, part) for time, part in zip([*times[0], *times[1]], found, strict=True) if time is not None)
    order = [0, 1, 2, 3] if shares.count("/") == 2 else [0, 2, 3]
    assert [order.index(part) for _, part in together] == sorted(order.index(part) for _, part in together)
    assert parts_of(tmp_path / "out", BOUGHT) == [NONE] * 60


def test_borders_in_time(store, tmp_path):
    split(store, tmp_path / "out", by="time:day", at="2019-01-20/2019-02-05", of=["user:follows:user", "user:buys:item"])
    for name in (FOLLOWS, BUYS):
        rows = rows_of(tmp_path / "out", name)
        days = [None if row["day"] is None else str(row["day"]) for row in rows]
        wanted = [NONE if day is None else (day >= "2019-01-20") + (day >= "2019-02-05") for day in days]
        assert [row["split"] for row in rows] == wanted
    split(store, tmp_path / "two", by="time:day", at="2019-01-20", of=["user:follows:user"])
    assert collections.Counter(parts_of(tmp_path / "two", FOLLOWS))[1] == 0


@pytest.mark.parametrize("shares", ["0.8/0.1/0.1", "0.5/0.3/0.2", "0.75/0.25"])
def test_nodes_by_label(store, tmp_path, shares):
    summary = split(store, tmp_path / "out", shares, by="label")
    for name, label in (("user", "country"), ("item", "topic")):
        labels = [row[label] for row in rows_of(store, name)]
        parts = parts_of(tmp_path / "out", name)
        assert parts == split_classes(node_keys(store, name), labels, shares)
        fractions = list(map(float, shares.split("/")))
        codes = (0, 1, 2) if len(fractions) == 3 else (0, 2)
        for own in {label for label in labels if label is not None}:
            found = [part for part, one in zip(parts, labels, strict=True) if one == own]
            assert all(abs(found.count(code) - share * len(found)) <= 1 for code, share in zip(codes, fractions, strict=True))
    missing = sum(row["country"] is None for row in rows_of(store, "user"))
    assert summary.notes == (f"node type 'user': {missing} rows have no 'country', and are in no part",)


def test_counts_are_shared_out_over_classes(store, tmp_path):
    split(store, tmp_path / "out", "9/6/5", by="label:level", of=["user"])
    rows = rows_of(tmp_path / "out", "user")
    counts = collections.Counter((row["level"], row["split"]) for row in rows if row["level"] is not None)
    sizes = collections.Counter(row["level"] for row in rows if row["level"] is not None)
    assert [sum(counts[level, part] for level in sizes) for part in range(3)] == [9, 6, 5]
    assert all(abs(counts[level, 0] - 9 * size / sizes.total()) < 1 for level, size in sizes.items())
    assert all(row["split"] == NONE for row in rows if row["level"] is None)


def test_small_classes_are_told_of(store, tmp_path):
    graphprep.transform(str(store), str(tmp_path / "few"), ["filter", "user: country == 'UK' or country == 'DE'"])
    sizes = collections.Counter(row["country"] for row in rows_of(tmp_path / "few", "user"))
    assert min(sizes.values()) >= 3
    (tmp_path / "n.csv").write_text("id,kind\n0,a\n1,b\n2,b\n3,c\n4,c\n5,c\n")
    (tmp_path / "e.csv").write_text("src,dst\n0,1\n2,3\n4,5\n")
    graphprep.convert(
        nodes={"n": tmp_path / "n.csv"}, edges={"n:to:n": tmp_path / "e.csv"}, out=tmp_path / "s", labels=["n:kind"]
    )
    summary = split(tmp_path / "s", tmp_path / "out", "0.5/0.25/0.25", by="label")
    assert summary.notes == ("node type 'n': classes of 'kind' with fewer rows than there are parts: 'a' (1), 'b' (2)",)


@pytest.mark.parametrize("of", [[], ["user"], ["item"]])
@pytest.mark.parametrize("shares", ["0.5/0.2/0.3", "4/3/2", "0.5/0.5"])
def test_held_out_nodes(store, tmp_path, of, shares):
    split(store, tmp_path / "out", shares, by="nodes", of=of)
    chosen = of or ["user", "item"]
    parts = {"user": {}, "item": {}}
    for name in chosen:
        wanted = split_keys(node_keys(store, name), shares)
        assert parts_of(tmp_path / "out", name) == wanted
        raw = [next(iter(row.values())) for row in rows_of(store, name)]
        parts[name] = dict(zip(raw, wanted, strict=True))
    for name in (FOLLOWS, BUYS, BOUGHT):
        rows = rows_of(tmp_path / "out", name)
        if {name[0], name[2]} & {*chosen}:
            ends_parts = [(parts[name[0]].get(ends(row)[0], 0), parts[name[2]].get(ends(row)[1], 0)) for row in rows]
            assert [row["split"] for row in rows] == [edge_part(*pair) for pair in ends_parts]
            train = [pair for row, pair in zip(rows, ends_parts, strict=True) if row["split"] == 0]
            assert all(pair == (0, 0) for pair in train)
        else:
            assert {row["split"] for row in rows} == {NONE}


# ------------------------------------------------------------------------------------------- what stays the same


SPLITS = (
    ("0.8/0.1/0.1", {"by": "random", "of": ["nodes", "edges"]}),
    ("0.5/0.5", {"by": "nodes"}),
)


@pytest.mark.parametrize("name", sorted(STORES))
def test_everything_else_stays(name, tmp_path):
    """Arrays are byte for byte what they were, of stores of all kinds; and a split store is sound."""
    for number, (shares, options) in enumerate(SPLITS):
        out = tmp_path / str(number)
        try:
            split(STORES[name], out, shares, overwrite_column=True, **options)
        except UsageError as error:
            assert "two layouts, and no edge IDs" in str(error)
            continue
        old, new = files(STORES[name], "metadata.json", "manifest.json"), files(out, "metadata.json", "manifest.json")
        made = {path for path in new if "/data/split." in path or path.endswith("edge_rows.npy")}
        assert {path: data for path, data in old.items() if "/data/split." not in path} == {
            path: data for path, data in new.items() if path not in made or (path in old and "/data/split." not in path)
        }
        before, after = (json.loads((folder / "metadata.json").read_text()) for folder in (STORES[name], out))
        for schema in ("node_schema", "edge_schema"):
            for one in (*before[schema].values(), *after[schema].values()):
                one["columns"] = [column for column in one["columns"] if column["name"] != "split"]
        assert {**before, "parts": None} == {**after, "parts": None}


@pytest.mark.parametrize(("shares", "options"), [*SPLITS, ("0.6/0.4", {"by": "time:day"}), ("3/3/3", {"by": "label"})])
def test_same_bytes_for_any_threads_memory_and_pieces(store, tmp_path, monkeypatch, shares, options):
    split(store, tmp_path / "wanted", shares, threads=1, **options)
    split(store, tmp_path / "threads", shares, threads=4, **options)
    split(store, tmp_path / "limited", shares, memory_limit="200MiB", **options)
    real = store_run.room_for

    def starved(*given):
        return dataclasses.replace(real(*given), piece_bytes=64, held_bytes=0, mapped_bytes=0)

    monkeypatch.setattr(store_run, "room_for", starved)
    monkeypatch.setattr(recipe_module, "STEP", 7)
    monkeypatch.setattr(borders_module, "_MOST_COUNTS", 2)
    split(store, tmp_path / "starved", shares, **options)
    wanted = files(tmp_path / "wanted")
    assert all(files(tmp_path / name) == wanted for name in ("threads", "limited", "starved"))


@pytest.mark.parametrize("options", [{"partitions": 1}, {"partitions": 5}, {"partitions": 4, "partition_by": "hash"}])
@pytest.mark.parametrize(("shares", "rule"), [*SPLITS, ("0.6/0.4", {"by": "time:day"}), ("0.5/0.2/0.3", {"by": "label"})])
def test_same_parts_for_any_partitioning(store, tables, tmp_path, shares, rule, options):
    other = convert(tables, tmp_path / "other", layout="csr", **options)
    split(store, tmp_path / "a", shares, **rule)
    split(other, tmp_path / "b", shares, **rule)
    for name in ("user", "item"):
        named = [{next(iter(row.values())): row["split"] for row in rows_of(tmp_path / side, name)} for side in "ab"]
        assert named[0] == named[1]
    for name in (FOLLOWS, BUYS, BOUGHT):
        assert parts_of(tmp_path / "a", name) == parts_of(tmp_path / "b", name)


def test_the_second_layout_leads_to_the_new_column(tables, tmp_path):
    """An edge type without columns has none of the arrays that lead to them."""
    whole = convert(tables, tmp_path / "both", layout="both", partitions=2)
    assert not list(whole.rglob("item__bought_by__user/csr/edge_rows.npy"))
    split(whole, tmp_path / "out", "0.5/0.25/0.25", by="random", of=["edges"])
    for name in (FOLLOWS, BUYS, BOUGHT):

        def joined(path, name=name):
            paths = [tmp_path / "out" / f"part-0000{part}" / "edges" / "__".join(name) / path for part in range(2)]
            return np.concatenate(list(map(np.load, paths)))

        by_id = parts_of(tmp_path / "out", name)
        rows, ids = joined("csr/edge_rows.npy"), joined("csr/edge_ids.npy")
        assert joined("data/split.npy")[rows].tolist() == [by_id[at] for at in ids.tolist()]
        assert joined("csc/edge_ids.npy")[rows].tolist() == ids.tolist()


def test_a_split_is_replaced_where_it_stands(tables, tmp_path):
    graphprep.convert(
        nodes={"user": tables / "user.csv"},
        edges={"user:follows:user": tables / "follows.csv"},
        out=tmp_path / "old",
        decoder_options={"id_type": "string", "columns": {"day": "date"}},
        splits=["user:0.5/0.25/0.25"],
        seeds=[f"user={seed_file(tmp_path)}"],
    )
    with pytest.raises(UsageError) as refused:
        graphprep.split(str(tmp_path / "old"), str(tmp_path / "out"), "0.5/0.5", by="random")
    assert str(refused.value) == ("node type 'user' has a split already, 'split'\n  fix: give --overwrite-column to replace it")
    split(tmp_path / "old", tmp_path / "out", "0.5/0.5", by="random", overwrite_column=True)
    assert parts_of(tmp_path / "out", "user") == split_keys(node_keys(tmp_path / "old", "user"), "0.5/0.5")
    columns = json.loads((tmp_path / "out" / "metadata.json").read_text())["node_schema"]["user"]["columns"]
    assert [column["name"] for column in columns] == ["country", "level", "split", "seeds"]
    assert columns[2] == {
        "name": "split",
        "kind": "dense",
        "dtype": "int8",
        "item_shape": [],
        "optional": False,
        "role": "split",
    }


def seed_file(folder):
    (folder / "seeds.txt").write_text("u1\nu2\n")
    return folder / "seeds.txt"


# --------------------------------------------------------------------------------------------------------- borders


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(
        st.tuples(st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)), st.integers(-1, 3)), min_size=0, max_size=40
    ),
    shares=st.sampled_from(["0.8/0.1/0.1", "0.5/0.5", "0.0/0.5/0.5", "1.0/0.0"]),
    counts=st.sampled_from([2, 16, 1 << 20]),
    threads=st.sampled_from([1, 3]),
)
def test_borders_are_those_of_sorted_keys(rows, shares, counts, threads):
    keys = np.array([key for key, _ in rows], np.uint64)
    classes = np.array([own for _, own in rows], np.int32)
    keyed = KeyedRows(keys, classes)
    sizes = count_classes(keyed, 4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(borders_module, "_MOST_COUNTS", counts)
        read = parse_shares(shares)
        found = find_borders([keyed], read.ends(sizes), sizes, read.parts, threads)
    wanted = split_classes(keys.tolist(), [None if own < 0 else own for own in classes.tolist()], shares)
    assert found.parts(keyed, slice(0, len(rows))).tolist() == wanted


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=8), data=st.data())
def test_counts_add_up(sizes, data):
    total = sum(sizes)
    first = data.draw(st.integers(0, total))
    second = data.draw(st.integers(0, total - first))
    ends = parse_shares(f"{first}/{second}/0").ends(np.array(sizes, np.int64))
    assert ends.sum(axis=0).tolist() == [first, first + second, first + second]
    assert (np.diff(ends, axis=1, prepend=0) >= 0).all()
    assert (ends[:, -1] <= np.array(sizes)).all()
    assert all(abs(end * total - first * size) < max(1, total) for end, size in zip(ends[:, 0].tolist(), sizes, strict=True))


def test_shares_are_exact_beyond_64_bits():
    sizes = np.array([2**60, 3, 2**61 + 1, 0])
    share = Fraction("0.123456789012345678")
    ends = parse_shares("0.123456789012345678/0.876543210987654322").ends(sizes)
    assert ends[:, 0].tolist() == [int(share * size + Fraction(1, 2)) for size in sizes.tolist()]
    assert ends[:, 1].tolist() == sizes.tolist()


def test_counts_are_exact_beyond_64_bits():
    sizes = np.array([2**60, 3, 2**61 + 1, 0])
    counts = [5 * 10**17, 10**17, 5]
    ends = parse_shares("/".join(map(str, counts))).ends(sizes)
    assert ends.sum(axis=0).tolist() == np.cumsum(counts).tolist()
    wanted = [Fraction(counts[0] * size, int(sizes.sum())) for size in sizes.tolist()]
    assert all(abs(end - exact) < 1 for end, exact in zip(ends[:, 0].tolist(), wanted, strict=True))


def test_ties_go_to_the_part_of_the_first():
    assert cut([5, 5, 5, 1], [2, 3, 4]) == [0, 0, 0, 0]
    assert cut([5, 5, 1, 9], [1, 2, 4]) == [1, 1, 0, 2]
