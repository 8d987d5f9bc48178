"""A table of nodes that is given as an edge list is refused, with what reads it; edges that look a little like one are read."""

from __future__ import annotations

import datetime

import pytest

import graphprep
from graphprep.decoders.looks.text_head import name_nodes
from graphprep.model.errors import DataError, UsageError

WORDS = "this looks like a table of nodes, not of edges: no 'id' stands twice, and 'age' is no end of an edge"
FIX = 'give nodes={{"people": "{}"}}; if these are edges, {} say between what, and format="edges" takes the first two columns'
ENDS = 'decoder_options["src_col"] and decoder_options["dst_col"]'
ROWS = {"id": [1, 2, 3], "age": [20, 21, 20], "city": ["a", "b", "a"]}


def write(path, rows):
    """Write a table as its name says."""
    if path.suffix == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.table(rows), path)
        return
    mark = "\t" if path.suffix == ".tsv" else ","
    path.write_text("".join(mark.join(map(str, row)) + "\n" for row in (rows.keys(), *zip(*rows.values(), strict=True))))


@pytest.mark.parametrize("name", ["people.parquet", "people.csv", "people.tsv"])
def test_nodes_are_no_edges(tmp_path, name):
    path = tmp_path / name
    write(path, ROWS)
    with pytest.raises(UsageError) as caught:
        graphprep.convert(path, tmp_path / "out")
    assert str(caught.value) == f"{path}: {WORDS}\n  fix: {FIX.format(path, ENDS)}"
    assert not (tmp_path / "out").exists()
    for number, options in enumerate(({"format": "edges"}, {"decoder_options": {"src_col": "id", "dst_col": "age"}})):
        assert graphprep.convert(path, tmp_path / f"edges{number}", **options).num_edges == {"_N:_E:_N": 3}
    made = graphprep.convert(edges={"a:is:b": str(path)}, out=tmp_path / "named")
    assert made.num_edges == {"a:is:b": 3}
    assert graphprep.convert(nodes={"person": str(path)}, out=tmp_path / "nodes").num_nodes == {"person": 3}


def test_names_that_are_ids(tmp_path):
    path = tmp_path / "people.csv"
    write(path, {"user_id": ["ann", "bob"], "name": ["Ann", "Bob"]})
    with pytest.raises(UsageError, match="'user_id' stands twice, and 'name' is no end"):
        graphprep.convert(path, tmp_path / "out", decoder_options={"id_type": "string"})


def test_edges_with_ids_of_their_own(tmp_path):
    path = tmp_path / "seen.csv"
    write(path, {"row_id": [1, 2], "day": [7, 8], "user_id": [1, 2], "item_id": [2, 3]})
    with pytest.raises(UsageError) as caught:
        graphprep.convert(path, tmp_path / "out")
    assert 'decoder_options["src_col"] user_id decoder_options["dst_col"] item_id say between what' in caught.value.fix


@pytest.mark.parametrize(
    "rows",
    [
        {"child": [2, 3, 4], "parent": [1, 1, 2]},  # a tree: no child stands twice
        {"id": [2, 3, 4], "parent_id": [1, 1, 2]},
        {"id": [2, 3, 4], "boss": [1, 1, 2]},
        {"id": [2, 2, 4], "age": [1, 2, 2]},  # an ID stands twice
        {"src": [2, 3], "dst": [1, 1], "weight": [5, 6]},
        {"user": [2, 3], "rank": [1, 1]},
    ],
)
@pytest.mark.parametrize("name", ["g.csv", "g.parquet"])
def test_edges_are_read(tmp_path, name, rows):
    path = tmp_path / name
    write(path, rows)
    assert sum(graphprep.convert(path, tmp_path / "out").num_edges.values()) == len(next(iter(rows.values())))


@pytest.mark.parametrize(
    ("names", "are"),
    [
        ("id,age", True),
        ("personId,birthYear", True),
        ("id,created_at_time", True),
        ("id,is_active", True),
        ("id,num_friends", True),
        ("id,city_id", False),
        ("id,friend", False),
        ("id,1", False),
        ("age,id", False),
        ("id", False),
        ("id,name,src,dst", False),
        ("from_id,to_name", False),
        ("FromNodeId,name", False),
        ("source_id,title", False),
        ("user_id,target_name", False),
        ("id,end_date", True),
        ("id,start_time", True),
    ],
)
def test_names_of_columns(names, are):
    assert name_nodes(names.split(",")) is are


DATES = {"date": ["2024-01-31", "2024-02-01"], "account": [7, 9], "payee": [9, 7]}


def test_a_first_column_of_dates_is_no_end(tmp_path):
    path = tmp_path / "pay.csv"
    write(path, DATES)
    for format in (None, "edges"):
        with pytest.raises((UsageError, DataError), match="src_col") as caught:
            graphprep.convert(path, tmp_path / "out", format=format)
        assert "dst_col" in caught.value.fix
    with pytest.raises(DataError, match="src_col"):
        graphprep.convert(edges={"a:pays:a": str(path)}, out=tmp_path / "out")
    made = graphprep.convert(path, tmp_path / "out", decoder_options={"src_col": "account", "dst_col": "payee"})
    assert made.num_edges == {"_N:_E:_N": 2}


def test_a_first_column_of_dates_in_parquet(tmp_path):
    path = tmp_path / "pay.parquet"
    write(path, DATES | {"date": [datetime.date(2024, 1, 31), datetime.date(2024, 2, 1)]})
    with pytest.raises(DataError) as caught:
        graphprep.convert(path, tmp_path / "out")
    assert str(caught.value) == (
        f"{path}: column 'date': IDs must be integers or strings, found date32[day]\n  fix: name the columns of both ends with "
        'decoder_options["src_col"] and decoder_options["dst_col"], of account, payee; or cast it to int64, uint64 or string'
    )
    with pytest.raises(DataError, match="src_col"):
        graphprep.convert(edges={"a:pays:a": str(path)}, out=tmp_path / "out")
