"""``--label``, ``--split`` and ``--seeds`` as texts, the rule of random splits, and what names a part."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hashes import hash_id, splitmix64

import graphprep
from graphprep.convert.columns.roles import RoleFlag, check_edge_types, match_types, read_flags, split_rule
from graphprep.convert.columns.split_values import BAD, mask_codes, split_codes
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.model.errors import UsageError
from graphprep.model.rows import ColumnKey
from graphprep.store.columns.cells import Cells, scalar_cells


def read(role, text, place=""):
    texts = {"label": ((text,), (), ()), "split": ((), (text,), ()), "seeds": ((), (), (text,))}[role]
    (flag,) = read_flags(*texts, seed=0, place=place)
    return flag


@pytest.mark.parametrize(
    ("text", "owner", "column"),
    [
        ("y", None, "y"),
        ("user:y", "user", "y"),
        ("user:buys:item:y", ("user", "buys", "item"), "y"),
        ("a%3Ab:c%25%3Ad", "a:b", "c%:d"),
        ("50%:pct%2", "50%", "pct%2"),
    ],
)
def test_a_label_names_a_type_and_a_column(text, owner, column):
    flag = read("label", text)
    assert (flag.owner, flag.columns, flag.place) == (owner, (column,), f"--label {text}")


def test_a_config_is_the_place_of_its_flags():
    assert read("label", "user:y", "graph.yaml").place == "graph.yaml: label user:y"


def test_a_split_names_a_column_masks_or_fractions():
    assert read("split", "user:part").columns == ("part",)
    assert read("split", "user:a,b,c").columns == ("a", "b", "c")
    assert read("split", "user:a,,c").columns == ("a", "", "c")
    assert read("split", "user:a%2Cb").columns == ("a,b",)
    assert (read("split", "user=a:b,,c").owner, read("split", "user=a:b,,c").files) == ("user", ("a:b", "", "c"))
    assert read("split", "0.5/.25/0.25").rule.bounds == (2**63, 2**63 + 2**62, 2**64)
    assert read("split", "u:r:v:1/0/0").owner == ("u", "r", "v")


FRACTIONS = "write three fractions that add up to at most 1, such as 0.8/0.1/0.1"
COLUMNS = "write TYPE:COL for nodes, SRC:REL:DST:COL for edges"


@pytest.mark.parametrize(
    ("role", "text", "message", "fix"),
    [
        ("split", "user:0.8/0.2", "expected three fractions, found 2", FRACTIONS),
        ("split", "user:0.8/0.3/0.1", "the fractions add up to 1.2", FRACTIONS),
        ("split", "user:80/10/10", "a fraction lies outside 0..1", FRACTIONS),
        ("split", "user:-0.1/0.1/0.1", "a fraction lies outside 0..1", FRACTIONS),
        ("split", "0/0/0.0", "the fractions add up to 0", FRACTIONS),
        (
            "split",
            "user:a,b",
            "expected one column or three masks, found 2",
            "write train_mask,valid_mask,test_mask; leave a name empty where there is no such mask",
        ),
        (
            "split",
            "user:,,",
            "expected one column or three masks, found 3",
            "write train_mask,valid_mask,test_mask; leave a name empty where there is no such mask",
        ),
        (
            "split",
            "user=a,b",
            "these are no three files of a node type",
            "write TYPE=TRAIN_FILE,VALID_FILE,TEST_FILE; leave a path empty where there is no such file",
        ),
        ("label", "a:b:c", "this names no column", COLUMNS),
        ("label", "a:", "this names no column", COLUMNS),
        ("label", "", "this names no column", COLUMNS),
    ],
)
def test_a_text_that_is_no_flag_is_refused(role, text, message, fix):
    with pytest.raises(UsageError) as caught:
        read(role, text)
    assert str(caught.value) == f"--{role} {text}: {message}\n  fix: {fix}"


# ------------------------------------------------------------------------------------------------------ the rule


def naive_part(hashed, fractions, seed):
    """docs/labels.md, word for word."""
    key = splitmix64(splitmix64(seed % 2**64) ^ hash_id("split"))
    ends = [sum((Fraction(text) for text in fractions[: i + 1]), Fraction(0)) for i in range(3)]
    if abs(ends[2] - 1) <= Fraction(1, 1_000_000):
        ends[2] = Fraction(1)
    mixed = splitmix64(hashed ^ key)
    for part, end in enumerate(ends):
        if mixed < min(end, 1) * 2**64 // 1:
            return part
    return 3


fractions = st.lists(st.integers(0, 1000), min_size=3, max_size=3).map(
    lambda parts: [str(Decimal(part) / Decimal(max(1000, sum(parts)))) for part in parts]
)


@settings(deadline=None, max_examples=60)
@given(
    parts=fractions.filter(lambda parts: any(map(Decimal, parts))),
    seed=st.integers(-(2**63), 2**64 - 1),
    ids=st.lists(st.integers(0, 2**64 - 1), max_size=50),
)
def test_parts_are_those_of_the_naive_rule(parts, seed, ids):
    rule = split_rule([Fraction(part) for part in parts], seed)
    hashes = hash_ints(np.array(ids, np.uint64))
    assert rule.parts(hashes).tolist() == [naive_part(hash_id(one), parts, seed) for one in ids]


def test_parts_have_the_sizes_that_are_asked_for():
    n = 100_000
    for seed in (0, 1, -1, 2**70):
        parts = split_rule([Fraction("0.6"), Fraction("0.3"), Fraction("0.05")], seed).parts(hash_ints(np.arange(n)))
        assert np.abs(np.bincount(parts, minlength=4) / n - [0.6, 0.3, 0.05, 0.05]).max() < 0.005


def test_fractions_that_nearly_add_up_leave_nobody_out():
    rule = split_rule([Fraction("0.333333"), Fraction("0.333333"), Fraction("0.333333")], 0)
    assert rule.bounds[2] == 2**64
    assert split_rule([Fraction("0.333333"), Fraction("0.333333"), Fraction("0.33")], 0).bounds[2] < 2**64


def test_a_seed_and_an_id_do_not_change_places():
    thirds = [Fraction(1, 3)] * 3
    tables = np.array([split_rule(thirds, seed).parts(hash_ints(np.arange(300))) for seed in range(300)])
    assert (tables == tables.T).mean() < 0.5
    assert 0.2 < (np.diagonal(tables) == 0).mean() < 0.5


# ------------------------------------------------------------------------------------------------------ matching


def test_a_type_may_be_left_out_where_there_is_only_one():
    roles = match_types(read_flags(["y"], ["0.5/0.5/0"], ["ids.txt"], 0), ["user"])
    own = roles.of("user")
    assert (own.labels[0].columns, own.split.rule is not None, own.seeds[0].files) == (("y",), True, ("ids.txt",))
    assert roles.of("item").flags == ()


def test_seeds_may_be_paths_with_an_equals_sign():
    seeds = match_types(read_flags([], [], ["user=a=b.txt", "./a=b.txt"], 0), ["user"]).of("user").seeds
    assert [flag.files for flag in seeds] == [("a=b.txt",), ("./a=b.txt",)]


@pytest.mark.parametrize(
    ("labels", "splits", "seeds", "message"),
    [
        (["y"], [], [], "--label y: there are 2 node types: user, item\n  fix: name one of them"),
        (
            ["usr:y"],
            [],
            [],
            f"--label usr:y: there is no node type 'usr'\n  fix: did you mean 'user'? use one of user, item; or {COLUMNS}",
        ),
        (
            [],
            [],
            ["usr=ids.txt"],
            "--seeds usr=ids.txt: there is no node type 'usr'\n  fix: did you mean 'user'? use one of user, item; or write FILE or TYPE=FILE",
        ),
        (
            ["user:y"],
            ["user:y"],
            [],
            "--split user:y: column 'y' of node type 'user' is asked for twice, also by --label user:y\n"
            "  fix: give a column one role",
        ),
        (
            [],
            ["user:a", "user:0.5/0.5/0"],
            [],
            "--split user:0.5/0.5/0: node type 'user' has a split already, by --split user:a\n  fix: give a type one split",
        ),
    ],
)
def test_flags_that_fit_no_type_are_refused(labels, splits, seeds, message):
    with pytest.raises(UsageError) as caught:
        match_types(read_flags(labels, splits, seeds, 0), ["user", "item"])
    assert str(caught.value) == message


def test_an_edge_type_must_be_there():
    roles = match_types([RoleFlag("label", "--label a:b:c:y", ("a", "b", "c"), ("y",))], ["a"])
    with pytest.raises(UsageError) as caught:
        check_edge_types(roles, [("a", "b%", "a:")])
    assert str(caught.value) == "--label a:b:c:y: there is no edge type 'a:b:c'\n  fix: use one of a:b%25:a%3A"


# ---------------------------------------------------------------------------------------------------- the values

TEXT = ColumnKey("part", "binary", "uint8")


def texts(*values):
    encoded = [value.encode() for value in values]
    return Cells(np.array([len(value) for value in encoded], np.int64), np.frombuffer(b"".join(encoded), np.uint8))


def test_names_of_parts_are_read_in_any_case():
    names = ("train", "TRAIN", "Valid", "val", "VALIDATION", "Test", "0", "1", "2")
    assert split_codes(TEXT, texts(*names)).tolist() == [0, 0, 1, 1, 1, 2, 0, 1, 2]
    assert split_codes(TEXT, texts("", " train", "trainé", "3", "TESTS", "@est")).tolist() == [BAD] * 6
    assert mask_codes(TEXT, texts("True", "FALSE", "0", "1", "2", "yes")).tolist() == [1, 0, 0, 1, BAD, BAD]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "float32", "float64"])
def test_numbers_of_parts_are_whole(dtype):
    key = ColumnKey("part", "numbers", dtype)
    assert split_codes(key, scalar_cells(np.array([0, 1, 2, 3, 127], dtype))).tolist() == [0, 1, 2, BAD, BAD]
    if dtype.startswith("float"):
        found = split_codes(key, scalar_cells(np.array([0.5, -1, np.nan, np.inf, 2, -0.0], dtype)))
        assert found.tolist() == [BAD, BAD, BAD, BAD, 2, 0]
    elif dtype == "int64":
        assert split_codes(key, scalar_cells(np.array([-1, 2**62, 256], dtype))).tolist() == [BAD] * 3


def test_rows_of_other_than_one_value_have_no_part():
    key = ColumnKey("feat_0", "numbers", "int64", slot=0)
    cells = Cells(np.array([1, 2, 0, 1], np.int64), np.array([2, 0, 1, 1], np.int64))
    assert split_codes(key, cells).tolist() == [2, BAD, BAD, 1]
    assert split_codes(ColumnKey("x", "sparse", "int64"), cells).tolist() == [BAD] * 4


def test_masks_may_be_bool():
    key = ColumnKey("mask", "numbers", "bool")
    assert mask_codes(key, scalar_cells(np.array([True, False]))).tolist() == [1, 0]


def test_a_column_that_one_type_has_needs_no_type(tmp_path):
    (tmp_path / "user.csv").write_text("id,churned,age\n0,yes,4\n1,no,5\n")
    (tmp_path / "item.csv").write_text("id,price,age\n0,5,1\n1,6,2\n")
    (tmp_path / "buys.csv").write_text("src,dst,stars,price\n0,1,3,9\n1,0,4,8\n")
    tables = {
        "nodes": {name: str(tmp_path / f"{name}.csv") for name in ("user", "item")},
        "edges": {"user:buys:item": str(tmp_path / "buys.csv")},
    }
    graphprep.convert([], str(tmp_path / "out"), **tables, labels=["churned", "stars"])
    metadata = graphprep.load(str(tmp_path / "out")).metadata
    roles = {one.name: one.role for schema in (*metadata.node_schemas, *metadata.edge_schemas) for one in schema.columns}
    assert roles == {"churned": "label", "age": None, "price": None, "stars": "label"}
    graphprep.convert([], str(tmp_path / "price"), **tables, labels=["price"])  # of nodes, before those of edges
    assert graphprep.load(str(tmp_path / "price")).metadata.node_schemas[1].columns[0].role == "label"
    with pytest.raises(UsageError) as caught:
        graphprep.convert([], str(tmp_path / "two"), **tables, labels=["age"])
    assert caught.value.message == "several types have a column 'age': user, item"
    assert "user:age" in caught.value.fix
