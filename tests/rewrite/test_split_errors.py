"""What ``split`` refuses, in whole messages, and columns of all kinds that it takes."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, UsageError
from graphprep.rewrite.split import keys

pytestmark = pytest.mark.usefixtures("flags_named")

SHARES_FIX = (
    "write TRAIN/VALID/TEST or TRAIN/TEST: shares that add up to 1, such as 0.8/0.1/0.1, or counts, such as 140/500/1000"
)
RULES_FIX = "use one of random, time[:COL], label[:COL], nodes, keep"
EDGES = "'user:follows:user', 'user:buys:item', 'item:sold:user'"
FOLLOWS, BUYS, SOLD = "user:follows:user", "user:buys:item", "item:sold:user"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    users = "".join(f"{i},{i % 3},t{i},{i}.5,,{'nan' if i == 2 else i}\n" for i in range(6))
    (folder / "user.csv").write_text("id,y,bio,score,empty,nan\n" + users)
    (folder / "item.csv").write_text("id,y,at\n" + "".join(f"{i},{i % 3},{i}.5\n" for i in range(4)))
    follows = "".join(f"{i},{i + 1},2019-01-0{i + 1}\n" for i in range(3))
    (folder / "follows.csv").write_text("src,dst,at\n" + follows)
    (folder / "buys.csv").write_text("src,dst,at\n0,1,5\n1,2,6\n2,3,7\n")
    (folder / "sold.csv").write_text("src,dst\n1,0\n2,1\n3,2\n")
    config = {
        "nodes": [
            {"type": "user", "files": "user.csv", "columns": {"empty": "float64"}, "header": True},
            {"type": "item", "files": "item.csv", "header": True},
        ],
        "edges": [
            {"type": FOLLOWS, "files": "follows.csv", "columns": {"at": "timestamp[s]"}, "header": True},
            {"type": BUYS, "files": "buys.csv", "header": True},
            {"type": SOLD, "files": "sold.csv", "header": True},
        ],
        "labels": ["user:y"],
    }
    (folder / "graph.yaml").write_text(yaml.safe_dump(config))
    graphprep.convert(folder / "graph.yaml", folder / "store")
    return folder / "store"


REFUSED = [
    ("0.8/0.1", {}, "SHARES: the shares add up to 0.9, not to 1", SHARES_FIX),
    ("0.8/0.2/0.2", {}, "SHARES: the shares add up to 1.2, not to 1", SHARES_FIX),
    ("0.8", {}, "SHARES: expected two or three shares, found '0.8'", SHARES_FIX),
    ("0.8/x/0.2", {}, "SHARES: 'x' is no share", SHARES_FIX),
    ("-1/2", {}, "SHARES: '-1' is no share", SHARES_FIX),
    ("", {}, "SHARES are needed: how many rows go where", "write TRAIN/VALID/TEST, such as 0.8/0.1/0.1"),
    (None, {}, "SHARES are needed: how many rows go where", "write TRAIN/VALID/TEST, such as 0.8/0.1/0.1"),
    (0.8, {}, "SHARES: expected two or three shares, found '0.8'", SHARES_FIX),
    (
        "",
        {"by": "time:at"},
        "SHARES are needed: how many rows go where",
        "write TRAIN/VALID/TEST, such as 0.8/0.1/0.1, or --at with borders",
    ),
    ("9/9/9", {}, "SHARES: the counts add up to 27, and 'user' has 6 rows", "ask for fewer"),
    (
        "3/3/3",
        {"by": "time:at", "of": [BUYS]},
        f"SHARES: the counts add up to 9, and '{BUYS}' has 3 rows with a time",
        "ask for fewer",
    ),
    ("1/1", {"by": "age"}, "--by: nothing is split by 'age'", RULES_FIX),
    ("1/1", {"by": "random:x"}, "--by random is written random, found 'random:x'", RULES_FIX),
    ("1/1", {"by": "time:"}, "--by time is written time[:COL], found 'time:'", RULES_FIX),
    (
        "1/1",
        {"of": ["users"]},
        "--of: there is no type 'users'",
        f"did you mean 'user'? use one of nodes, edges, user, item, {FOLLOWS}, {BUYS}, {SOLD}",
    ),
    (
        "1/1",
        {"by": "nodes", "of": ["edges"]},
        f"--of: --by nodes holds out nodes, and '{FOLLOWS}' is an edge type",
        "name node types; edges follow",
    ),
    (
        "1/1",
        {"by": "time"},
        f"--by time: none of {EDGES} has a time",
        "name a column: --by time:COL; or other types by --of",
    ),
    (
        "1/1",
        {"by": "time:when"},
        f"--by time:when: none of {EDGES} has a column 'when'",
        "name another column, or other types by --of",
    ),
    (
        "1/1",
        {"by": "time:at", "of": ["user"]},
        "--by time:at: node type 'user' has no column 'at'",
        "name another column, or other types by --of",
    ),
    (
        "1/1",
        {"by": "label", "of": ["item"]},
        "--by label: node type 'item' has no label",
        "name a column: --by label:COL; or other types by --of",
    ),
    (
        "1/1",
        {"by": "time:bio", "of": ["user"]},
        "column 'bio' of 'user' has no single number a row",
        "name another column",
    ),
    (
        "1/1",
        {"by": "time:at"},
        f"--by time: the times of '{FOLLOWS}' ('at': s) and '{BUYS}' ('at': integer) cannot be compared",
        "split one type after another: --of TYPE",
    ),
    ("1/1", {"symmetric": True}, "--symmetric is for edges, and nodes are split", "give --of edges"),
    (
        "1/1",
        {"of": [BUYS], "symmetric": True},
        "--symmetric: no edge type leads from a node type to itself",
        "name reverse types: --reverse-types A:REL:B=B:REV:A",
    ),
    (
        "1/1",
        {"by": "time:at", "of": [FOLLOWS], "symmetric": True},
        "--symmetric does nothing with --by time: edges of one time are in one part",
        "leave it out",
    ),
    (
        "1/1",
        {"by": "nodes", "reverse_types": [f"{BUYS}={SOLD}"]},
        "--reverse-types does nothing with --by nodes: the parts of an edge's ends say its own",
        "leave it out",
    ),
    (
        "1/1",
        {"of": ["edges"], "reverse_types": [BUYS]},
        f"--reverse-types {BUYS}: this names no two edge types",
        "write SRC:REL:DST=DST:REV:SRC",
    ),
    (
        "1/1",
        {"of": ["edges"], "reverse_types": [f"{BUYS}={FOLLOWS}"]},
        f"--reverse-types {BUYS}={FOLLOWS}: '{FOLLOWS}' does not lead back",
        "name one from 'item' to 'user'",
    ),
    (
        "1/1",
        {"of": ["edges"], "reverse_types": [f"{FOLLOWS}={FOLLOWS}"]},
        f"--reverse-types {FOLLOWS}={FOLLOWS}: '{FOLLOWS}' is named twice",
        "name each type once; for a type that is its own reverse give --symmetric",
    ),
    (
        "1/1",
        {"of": [FOLLOWS], "reverse_types": [f"{BUYS}={SOLD}"]},
        f"--reverse-types {BUYS}={SOLD}: '{BUYS}' is not split",
        "name it by --of",
    ),
    (
        "",
        {"by": "time:at", "of": [FOLLOWS], "at": "x"},
        "--at: 'x' is no time of 'at'",
        "write a number, or a date such as 2019-01-01",
    ),
    ("", {"by": "time:at", "of": ["item"], "at": "nan"}, "--at: 'nan' is no time of 'at'", "write a number"),
    ("", {"by": "time:at", "of": [BUYS], "at": "5.5"}, "--at: '5.5' is no time of 'at'", "write a number"),
    (
        "",
        {"by": "time:at", "of": [FOLLOWS], "at": "2019-01-01T00:00:00.5"},
        "--at: 2019-01-01T00:00:00.5 is finer than the unit of 'at', s",
        "round it",
    ),
    (
        "",
        {"by": "time:at", "of": [FOLLOWS], "at": "2019-02-01/2019-01-01"},
        "--at: the borders descend: 2019-02-01/2019-01-01",
        "write the oldest first",
    ),
    (
        "",
        {"by": "time:at", "of": [BUYS], "at": "1/2/3"},
        "--at: '1/2/3' are no borders",
        "write one or two borders, oldest first, such as 2018-01-01/2019-01-01",
    ),
    ("", {"at": "3"}, "--at does nothing with --by random", "leave it out, or give --by time"),
    (
        "1/1",
        {"by": "time:at", "at": "3"},
        "--at gives the borders: there is nothing left for the shares '1/1'",
        "give one of them",
    ),
]


@pytest.mark.parametrize(("shares", "options", "message", "fix"), REFUSED)
def test_what_means_nothing_is_refused(store, tmp_path, shares, options, message, fix):
    with pytest.raises(UsageError) as caught:
        graphprep.split(store, tmp_path / "out", shares, **{"by": "random", **options})
    assert str(caught.value) == f"{message}\n  fix: {fix}"
    assert not list(tmp_path.iterdir())


FAULTY = [
    ("time:empty", "node type 'user': no row has a time, 'empty' is empty", "name another column: --by time:COL"),
    ("label:empty", "node type 'user': no row has a label, 'empty' is empty", "name another column: --by label:COL"),
    (
        "time:nan",
        "nodes/user/data/nan: node type 'user': the time 'nan' of row 2 is NaN",
        "leave the value out, or correct it",
    ),
    (
        "label:score",
        "nodes/user/data/score: node type 'user': label 'score' is not of whole numbers: row 0 has 0.5",
        "split by another column, or --by random",
    ),
]


@pytest.mark.parametrize(("by", "message", "fix"), FAULTY)
def test_columns_without_times_and_classes(store, tmp_path, by, message, fix):
    with pytest.raises(DataError) as caught:
        graphprep.split(store, tmp_path / "out", "0.5/0.5", by=by, of=["user"])
    assert str(caught.value) == f"{message}\n  fix: {fix}"
    assert not list(tmp_path.iterdir())


def test_too_many_classes(store, tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "_MOST_CLASSES", 2)
    with pytest.raises(DataError) as caught:
        graphprep.split(store, tmp_path / "out", "0.5/0.5", by="label", of=["user"])
    assert caught.value.message == "node type 'user': label 'y' has more than 2 classes"


def test_two_layouts_without_edge_ids_have_no_first_column(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n0 1\n")
    graphprep.convert(tmp_path / "e.txt", tmp_path / "s", layout="both", edge_ids=False)
    with pytest.raises(UsageError) as caught:
        graphprep.split(tmp_path / "s", tmp_path / "out", "0.5/0.5", by="random", of=["edges"])
    assert str(caught.value) == (
        "edge type '_N:_E:_N' has two layouts, and no edge IDs by which both could have a column\n"
        "  fix: make a store of one layout first: graphprep transform STORE OUT layout csc"
    )
    graphprep.transform(tmp_path / "s", tmp_path / "one", "layout csc")
    graphprep.split(tmp_path / "one", tmp_path / "out", "0.5/0.5", by="random", of=["edges"])
    assert graphprep.validate(tmp_path / "out").sound


def test_exit_codes(store, tmp_path, capsys):
    assert run(["split", str(store), str(tmp_path / "out"), "0.8/0.3", "--by", "random"]) == 2
    assert capsys.readouterr().err == f"error: SHARES: the shares add up to 1.1, not to 1\n  fix: {SHARES_FIX}\n"
    assert run(["split", str(store), str(tmp_path / "out"), "0.5/0.5", "--by", "time:nan", "--of", "user"]) == 1
    assert run(["split", str(tmp_path / "none"), str(tmp_path / "out"), "0.5/0.5", "--by", "random"]) == 3
    assert run(["split", str(store), str(store), "0.5/0.5", "--by", "random"]) == 2
    assert run(["split", str(store), str(tmp_path / "out"), "0.5/0.5"]) == 2
    capsys.readouterr()
    assert run(["split", str(store), str(tmp_path / "out"), "0.5/0.5", "--by", "random"]) == 0
    told = capsys.readouterr()
    assert "  split: node type 'user': 3 train, 0 valid, 3 test\n" in told.out
    assert told.err == ""


def test_python_names_parameters(store, tmp_path):
    from graphprep.model.options import words

    token = words._says_flags.set(False)
    try:
        with pytest.raises(UsageError) as caught:
            graphprep.split(store, tmp_path / "out", (0.5, 0.5), by="random", of=["users"])
        assert str(caught.value).startswith("of: there is no type 'users'")
        with pytest.raises(UsageError) as caught:
            graphprep.split(store, tmp_path / "out", (0.5, 0.5), by="random", symmetric=True)
        assert str(caught.value).startswith("symmetric=True is for edges")
    finally:
        words._says_flags.reset(token)


# ------------------------------------------------------------------------------------------------ kinds of columns


def split_array(tmp_path, values, shares="0.5/0.25/0.25", **options):
    """Split nodes by a column of an array; return their parts."""
    (tmp_path / "e.txt").write_text("".join(f"{i} {i}\n" for i in range(len(values))))
    np.save(tmp_path / "values.npy", values)
    graphprep.convert(tmp_path / "e.txt", tmp_path / "s", node_data=[f"v={tmp_path}/values.npy"], ids="dense")
    graphprep.split(tmp_path / "s", tmp_path / "out", shares, of=["nodes"], **options)
    column = graphprep.load(str(tmp_path / "out")).to_arrow("_N")["split"].to_pylist()
    return [3 if part is None else part for part in column]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64", "float32", "float64", "bool"])
def test_times_of_all_dtypes_ascend(tmp_path, dtype):
    info = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    low, high = (info.min, info.max) if info else (-2.5, 1e30) if dtype != "bool" else (False, True)
    values = np.array([high, low, 0, 1], dtype)
    parts = split_array(tmp_path, values, "2/1/1", by="time:v")
    ranks = [sorted(values.tolist()).index(value) for value in values.tolist()]  # of those that are equal the first
    assert parts == [0 if rank < 2 else rank - 1 for rank in ranks]


def test_no_number_is_no_label(tmp_path):
    parts = split_array(tmp_path, np.array([[1.0], [np.nan], [1.0], [2.0], [2.0]], np.float32), "0.5/0.5", by="label:v")
    assert parts[1] == 3
    assert sorted(parts[:1] + parts[2:3]) == sorted(parts[3:]) == [0, 2]


@pytest.mark.parametrize("at", ["3", "-1", "2.5"])
def test_borders_among_numbers(tmp_path, at):
    values = np.array([3.0, -2.0, 2.5, -1.0, -0.0, 9.0])
    assert split_array(tmp_path, values, "", by="time:v", at=at) == [2 if value >= float(at) else 0 for value in values]


def test_the_first_border_is_the_lowest_time(tmp_path):
    values = np.array([0, 5, 2**63 + 7], np.uint64)
    assert split_array(tmp_path, values, "", by="time:v", at=f"0/{2**63 + 7}") == [1, 1, 2]


def test_graphs_without_edges_are_split(tmp_path):
    (tmp_path / "n.csv").write_text("id,x\n")
    (tmp_path / "e.csv").write_text("src,dst\n")
    graphprep.convert(nodes={"n": tmp_path / "n.csv"}, edges={"n:to:n": tmp_path / "e.csv"}, out=tmp_path / "s")
    summary = graphprep.split(tmp_path / "s", tmp_path / "out", "0.5/0.5", by="nodes")
    assert summary.edge_splits == {"n:to:n": {"train": 0, "valid": 0, "test": 0, "none": 0}}
    assert graphprep.validate(tmp_path / "out").sound
