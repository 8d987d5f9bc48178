"""Columns of texts that become numbers: ``--category``."""

import json

import numpy as np
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.convert.roles import labels

NODES = "id,city,grade,zip\n1,Zürich,2,12\n2,Oslo,NA,7\n3,,10,12\n4,aa,2,7\n"
EDGES = "src,dst,city\n1,2,Rome\n2,3,\n3,1,NA\n"


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.csv").write_text(NODES)
    (tmp_path / "e.csv").write_text(EDGES)
    return ["--nodes", "n=n.csv", "--edges", "n:e:n=e.csv"]


def schema_of(store, kind, name):
    columns = json.loads((store / "metadata.json").read_text())[f"{kind}_schema"].values()
    return next(column for columns_ in columns for column in columns_["columns"] if column["name"] == name)


def codes(store, folder, name):
    path = store / "part-00000" / folder / "data"
    values, present = np.load(path / f"{name}.npy"), path / f"{name}.present.npy"
    there = np.load(present) if present.exists() else np.ones(len(values), bool)
    return [value if ok else None for value, ok in zip(values.tolist(), there, strict=True)]


def test_codes_ascend_by_the_names_as_those_of_pandas_do(tmp_path, tables, capsys):
    pandas = pytest.importorskip("pandas", reason="pandas is the reference")
    assert run(["convert", "store", *tables, "--category", "city", "--category", "n:grade", "--json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert notes == [
        "node type 'n': column 'city' has 3 categories",
        "node type 'n': column 'grade' has 3 categories",
    ]
    frame = pandas.read_csv("n.csv", dtype=str, keep_default_na=False, na_values=[""])
    for name in ("city", "grade"):
        wanted, names = pandas.factorize(frame[name], sort=True)
        column = schema_of(tmp_path / "store", "node", name)
        assert column["categories"] == list(names)
        assert (column["kind"], column["dtype"], column["item_shape"], column.get("role")) == ("dense", "int64", [], None)
        assert codes(tmp_path / "store", "nodes/n", name) == [None if code < 0 else code for code in wanted.tolist()]
    assert "categories" not in schema_of(tmp_path / "store", "edge", "city")  # another type's column of that name
    assert graphprep.validate("store").sound
    assert run(["info", "store"]) == 0
    assert "  city   dense  int64  3 categories, optional" in capsys.readouterr().out


@pytest.mark.parametrize("options", [{}, {"block_bytes": 32, "partitions": 2}])
def test_edge_lists_and_tables_of_edges(tmp_path, tables, options):
    graphprep.convert("e.csv", "plain", categories=("_N:_E:_N:city",), **options)
    config = {"nodes": [{"type": "n", "files": "n.csv"}], "edges": [{"type": "n:e:n", "files": "e.csv"}],
              "categories": ["n:e:n:city"]}  # fmt: skip
    (tmp_path / "graph.yaml").write_text(json.dumps(config))
    graphprep.convert("graph.yaml", "tables", **options)
    for store in ("plain", "tables"):
        assert schema_of(tmp_path / store, "edge", "city")["categories"] == ["NA", "Rome"]
        with graphprep.load(store) as graph:
            src, dst = graph.find_edges(np.arange(3))
            assert len(src) == len(dst) == 3


def test_a_schema_keeps_the_codes(tmp_path, tables, capsys):
    assert run(["convert", "first", *tables, "--category", "n:city"]) == 0
    (tmp_path / "n.csv").write_text("id,city,grade,zip\n1,aa,2,12\n2,Oslo,3,7\n3,aa,10,12\n")
    assert run(["convert", "second", *tables, "--schema", "first/metadata.json"]) == 0
    assert schema_of(tmp_path / "second", "node", "city")["categories"] == ["Oslo", "Zürich", "aa"]
    assert codes(tmp_path / "second", "nodes/n", "city") == [2, 0, 2]
    (tmp_path / "n.csv").write_text("id,city,grade,zip\n1,Bern,2,12\n2,Oslo,3,7\n3,aa,10,12\n")
    assert run(["convert", "third", *tables, "--schema", "first/metadata.json"]) == 1
    assert "n.csv:2:1: column 'city': 'Bern' is none of the schema's 3 categories" in capsys.readouterr().err
    assert run(["convert", "third", *tables, "--schema", "first/metadata.json", "--category", "n:zip"]) == 1
    assert (
        "first/metadata.json: column 'zip' of node type 'n' has no categories of its own, but --category n:zip asks for them\n"
        '  fix: list the names as its "categories" in the schema, or leave out the flag'
    ) in capsys.readouterr().err


def test_mistakes(tmp_path, tables, capsys):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    pq.write_table(pa.table({"id": [1, 2, 3], "size": [1.5, 2, 3]}), tmp_path / "n.parquet")
    for flags, message in [
        (["--category", "n:town"], "--category n:town: node type 'n' has no column 'town'\n  fix: use one of city, grade, zip"),
        (
            ["--category", "m:city"],
            "--category m:city: there is no node type 'm'\n  fix: use one of n; or write TYPE:COL for nodes, ",
        ),
        (["--category", "city", "--label", "city"], "column 'city' of node type 'n' is asked for twice, also by --label city"),
    ]:
        assert run(["convert", "store", *tables, *flags]) == 2
        assert message in capsys.readouterr().err
    assert run(["convert", "store", "--nodes", "n=n.parquet", "--edges", "n:e:n=e.csv", "--category", "size"]) == 2
    assert (
        "--category size: column 'size' of node type 'n' holds no texts, but dense float64\n"
        "  fix: leave out the flag: trainers take numbers as they are"
    ) in capsys.readouterr().err


def test_too_many_names_are_refused(tables, capsys, monkeypatch):
    monkeypatch.setattr(labels, "_MOST_CATEGORIES", 2)
    assert run(["convert", "store", *tables, "--category", "city"]) == 1
    assert (
        "--category city: column 'city' of node type 'n' has more than 2 different texts, or 64 MiB of them\n"
        "  fix: number the categories in the data, or leave out the flag: then the column stays text"
    ) in capsys.readouterr().err


def test_trainers_get_the_codes(tmp_path, tables):
    torch = pytest.importorskip("torch")
    assert run(["convert", "store", *tables, "--category", "n:city", "--category", "n:e:n:city"]) == 0
    graphprep.export("store", "pyg", "pyg")
    data = torch.load(tmp_path / "pyg/data.pt", weights_only=False)
    assert data["x"].tolist() == [[2], [0], [10], [2]]  # grade; codes are no features
    assert data["city"].tolist() == [1, 0, 0, 2]
    assert data["zip"].tolist() == [12, 7, 12, 7]
    assert data["city_present"].tolist() == [True, True, False, True]
