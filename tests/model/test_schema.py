"""Names: in texts, in paths, one to one."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.schema import (
    ColumnSchema,
    EdgeTypeSchema,
    NodeTypeSchema,
    edge_type_path,
    edge_type_text,
    parse_edge_type,
    path_name,
)

NAMES = st.one_of(st.text(st.sampled_from("_.:%a/ é\0"), min_size=1, max_size=6), st.text(min_size=1, max_size=6)).filter(
    lambda name: not any("\ud800" <= char <= "\udfff" for char in name)
)


@settings(deadline=None, max_examples=200)
@given(edge_type=st.tuples(NAMES, NAMES, NAMES))
def test_edge_type_text_round_trips(edge_type):
    text = edge_type_text(edge_type)
    assert text.count(":") == 2
    assert parse_edge_type(text) == edge_type


@settings(deadline=None, max_examples=200)
@given(name=NAMES, column=st.booleans())
def test_path_name_round_trips_and_is_safe(name, column):
    path = path_name(name, column=column)
    assert unquote(path) == name
    assert re.fullmatch(r"[A-Za-z0-9._%-]+", path)
    assert not path.startswith(".")
    assert not path.endswith("_")
    assert "__" not in path
    assert not (column and "." in path)


@settings(deadline=None, max_examples=200)
@given(edge_type=st.tuples(NAMES, NAMES, NAMES))
def test_edge_type_path_splits_into_its_names(edge_type):
    # Names never end in "_" and hold no "__", so the first "__" from the left is the separator.
    src, rel, dst = edge_type_path(edge_type).split("__", 2)
    assert tuple(unquote(part) for part in (src, rel, dst)) == edge_type


@pytest.mark.parametrize(
    ("name", "column", "path"),
    [
        ("user", False, "user"),
        ("a b", False, "a%20b"),
        ("v1.2", False, "v1.2"),
        ("v1.2", True, "v1%2E2"),
        (".hidden", False, "%2Ehidden"),
        ("..", False, "%2E."),
        ("_N", False, "_N"),
        ("a_b", False, "a_b"),
        ("a__b", False, "a%5F%5Fb"),
        ("a_", False, "a%5F"),
        ("été", False, "%C3%A9t%C3%A9"),
        ("a/b", True, "a%2Fb"),
    ],
)
def test_paths_as_the_store_writes_them(name, column, path):
    assert path_name(name, column=column) == path


@pytest.mark.parametrize("text", ["", "a", "a:b", "a:b:c:d", ":b:c", "a::c", "a:b:"])
def test_edge_types_need_three_names(text):
    with pytest.raises(ValueError, match=re.escape(f"expected 'source:relation:destination', found {text!r}")):
        parse_edge_type(text)


def test_schemas_round_trip_through_json():
    columns = (
        ColumnSchema("weight", "dense", "float32", role="weight"),
        ColumnSchema("feat_0", "dense", "float32", (16,), optional=True, slot=0),
        ColumnSchema("history", "temporal", "int64", end=True),
    )
    node = NodeTypeSchema("uint64", columns, num_slots=True, node_order="in-degree")
    edge = EdgeTypeSchema("time", "int32", None, True, "0123456789abcdef", columns)
    assert NodeTypeSchema.from_json(node.to_json()) == node
    assert EdgeTypeSchema.from_json(edge.to_json()) == edge
    assert [column.path for column in columns] == ["weight", "data/feat_0", "data/history"]
