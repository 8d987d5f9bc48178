"""Whole conversions of tables: every format of the same tables gives the same store, byte by byte."""

import csv
import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from golden.golden_cases import read_store

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage

USERS = {
    "id": ["ann", "bob", 'cy "c"', "dé\nlà", "e,f"],
    "age": [31, None, 7, 40, 2],
    "score": [0.5, 1.0, None, -2.25, 1e300],
    "town": ["ulm", None, "a\nb", 'say "x"', "é,è"],
    "born": ["2000-01-02", None, "1969-12-31", "1970-01-01", "2020-02-29"],
    "tags": [[1, 2], [], None, [3], [4, 5, 6]],
}
CITIES = {"id": [7, 3, 10**12], "size": [1, 2, 3]}
KNOWS = {"src": ["bob", "ann", "e,f", "ann"], "dst": ["ann", 'cy "c"', "dé\nlà", "bob"], "w": [0.5, None, 2.0, 1.0]}
LIVES = {"src": ["ann", "bob"], "dst": [3, 10**12]}
TYPES = {"users": (("born", "date"), ("tags", "list<int64>")), "cities": (), "knows": (), "lives": ()}


def arrow(name, columns):
    kinds = {"born": pa.date32(), "tags": pa.list_(pa.int64())}
    arrays = {}
    for column, values in columns.items():
        array = pa.array(values)
        arrays[column] = array.cast(kinds[column]) if column == "born" else pa.array(values, kinds.get(column, array.type))
    return pa.table(arrays)


def write_csv(path, columns, opened=open, delimiter=","):
    with opened(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow(["" if value is None else json.dumps(value) if isinstance(value, list) else value for value in row])


def write_jsonl(path, columns):
    rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_parts(path, columns):
    """Write a folder as Spark does: part files of different compression, and files that are none."""
    path.mkdir()
    (path / "_SUCCESS").touch()
    half = len(next(iter(columns.values()))) // 2
    write_csv(path / "part-00000.csv", {name: values[:half] for name, values in columns.items()})
    write_csv(path / "part-00001.csv.gz", {name: values[half:] for name, values in columns.items()}, gzip.open)


def write_arrow(path, columns, opened):
    table = arrow("", columns)
    with opened(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


FORMATS = {
    "csv": write_csv,
    "tsv": lambda path, columns: write_csv(path, columns, delimiter="\t"),
    "parts": write_parts,
    "jsonl": write_jsonl,
    "parquet": lambda path, columns: pq.write_table(arrow("", columns), path, row_group_size=2),
    "arrow": lambda path, columns: write_arrow(path, columns, pa.ipc.new_file),
    "stream": lambda path, columns: write_arrow(path, columns, pa.ipc.new_stream),
}


def graph_of(folder: Path) -> GraphConfig:
    def table(name, kind):
        return TableConfig(files=(str(folder / name),), columns=TYPES[name], id_type=kind)

    return GraphConfig(
        nodes=(NodeTable("user", table("users", "string")), NodeTable("city", table("cities", None))),
        edges=(
            EdgeTable("user", "knows", "user", table("knows", None), weight_col="w"),
            EdgeTable("user", "lives", "city", table("lives", None)),
        ),
    )


def store_of(tmp_path, name, **options):
    folder = tmp_path / name
    folder.mkdir()
    for table, columns in (("users", USERS), ("cities", CITIES), ("knows", KNOWS), ("lives", LIVES)):
        FORMATS[name](folder / table, columns)
    out = tmp_path / f"{name}-store"
    convert([], str(out), ConvertOptions(graph=graph_of(folder), partitions=2, **options))
    return out


def test_every_format_gives_the_same_store(tmp_path):
    stores = {name: read_store(store_of(tmp_path, name, block_bytes=16)) for name in FORMATS}
    for name, store in stores.items():
        assert store == stores["csv"], name


def test_the_store_holds_what_the_tables_say(tmp_path):
    metadata = StoreReader(Storage(), str(store_of(tmp_path, "parquet"))).metadata
    schemas = dict(zip(metadata.node_types, metadata.node_schemas, strict=True))
    schema = schemas["user"]
    columns = {column.name: column for column in schema.columns}
    assert schema.raw_ids == "string"
    assert (columns["born"].dtype, columns["born"].unit, columns["born"].optional) == ("int64", "day", True)
    assert (columns["tags"].kind, columns["town"].kind) == ("ragged", "binary")
    assert schemas["city"].raw_ids == "int64"
    assert metadata.num_edges_per_type == (4, 2)


BAD = [
    (("users", USERS | {"id": ["ann", "bob", "cy", "ann", "dan"]}), "ann"),
    (("lives", {"src": ["zoe"], "dst": [3]}), "zoe"),
    (("lives", {"src": ["ann"], "dst": [4]}), "4"),
]


@pytest.mark.parametrize("name", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(("change", "raw"), BAD)
def test_faults_that_only_the_whole_shows_have_their_places(tmp_path, name, change, raw):
    tables = {"users": USERS, "cities": CITIES, "knows": KNOWS, "lives": LIVES} | dict([change])
    for table, columns in tables.items():
        FORMATS[name](tmp_path / table, columns)
    with pytest.raises(DataError) as caught:
        convert([], str(tmp_path / "out"), ConvertOptions(graph=graph_of(tmp_path)))
    where = {"csv": ":", "jsonl": ":", "parquet": ": row "}[name]
    assert caught.value.place.startswith(str(tmp_path / change[0]) + where)
    assert raw in caught.value.message
    assert caught.value.fix
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("block_bytes", [1, 30, 1 << 20])
def test_faulty_records_that_span_lines_are_skipped(tmp_path, block_bytes):
    (tmp_path / "u.csv").write_text('id,a\n1,"x\ny"\nz,"p\nq"\n2,"b"c\n3,"d""\ne"\n4,f\n')
    bad = tmp_path / "bad.jsonl"
    graph = GraphConfig(nodes=(NodeTable("user", TableConfig(files=(str(tmp_path / "u.csv"),))),))
    options = ConvertOptions(graph=graph, on_error="skip", bad_records=str(bad), block_bytes=block_bytes)
    summary = convert([], str(tmp_path / "out"), options)
    assert summary.num_nodes == {"user": 3}
    assert [json.loads(line)["place"] for line in bad.read_text().splitlines()] == [
        f"{tmp_path / 'u.csv'}:4:1",
        f"{tmp_path / 'u.csv'}:6:6",
    ]


def test_real_triples_and_tables(real_samples, tmp_path):
    triples = real_samples / "kg_small" / "umls" / "train.txt"
    table = TableConfig(files=(str(triples),))
    graph = GraphConfig(edges=(EdgeTable("e", None, "e", table, relation_col="1"),), id_type="string")
    summary = convert([], str(tmp_path / "kg"), ConvertOptions(graph=graph))
    parsed = pacsv.ParseOptions(delimiter="\t", quote_char=False)
    names = pacsv.ReadOptions(column_names=["head", "relation", "tail"])
    expected = pacsv.read_csv(triples, parse_options=parsed, read_options=names)
    counts = expected.column("relation").value_counts().to_pylist()
    assert summary.num_edges == {f"e:{item['values']}:e": item["counts"] for item in counts}
    entities = np.union1d(expected.column("head").to_numpy(), expected.column("tail").to_numpy())
    assert summary.num_nodes == {"e": entities.size}


def table_file(path, text, **options):
    path.write_text(text)
    return TableConfig(files=(str(path),), **options)


def converted(tmp_path, graph):
    return convert([], str(tmp_path / "out"), ConvertOptions(graph=graph))


def array_of(tmp_path, path):
    return StoreReader(Storage(), str(tmp_path / "out")).array(0, path).read().tolist()


@pytest.mark.parametrize("id_type", [None, "string"])
def test_a_later_table_brings_columns_by_id(tmp_path, id_type):
    first = table_file(tmp_path / "a.csv", "id,x\n3,30\n1,10\n2,20\n", id_type=id_type)
    second = table_file(tmp_path / "b.csv", "id,y\n2,200\n3,300\n", id_type=id_type)
    graph = GraphConfig(nodes=(NodeTable("user", first), NodeTable("user", second)))
    assert converted(tmp_path, graph).num_nodes == {"user": 3}
    assert array_of(tmp_path, "nodes/user/data/x.npy") == [10, 20, 30]
    assert array_of(tmp_path, "nodes/user/data/y.npy") == [0, 200, 300]
    assert array_of(tmp_path, "nodes/user/data/y.present.npy") == [False, True, True]


def test_a_later_table_with_the_same_columns_brings_nodes(tmp_path):
    first = table_file(tmp_path / "a.csv", "id,x\n3,30\n1,10\n")
    second = table_file(tmp_path / "b.csv", "x,id\n20,2\n")
    graph = GraphConfig(nodes=(NodeTable("user", first), NodeTable("user", second)))
    assert converted(tmp_path, graph).num_nodes == {"user": 3}
    assert array_of(tmp_path, "nodes/user/data/x.npy") == [10, 20, 30]


def test_a_later_table_with_some_of_the_columns_is_refused(tmp_path):
    first = table_file(tmp_path / "a.csv", "id,x,y\n3,30,1\n")
    second = table_file(tmp_path / "b.csv", "id,x,z\n2,5,6\n")
    graph = GraphConfig(nodes=(NodeTable("user", first), NodeTable("user", second)))
    with pytest.raises(DataError) as caught:
        converted(tmp_path, graph)
    assert str(caught.value) == (
        f"{tmp_path / 'b.csv'}: column 'x' is in an earlier table of this type, but 'z' is not\n"
        "  fix: give both the same columns, or columns of their own; or say 'declares: yes' or 'no' in a graph config"
    )


FIRST, SECOND = {3: (30, 1), 1: (10, 2)}, {2: (5, 6), 9: (None, 8)}


@pytest.mark.parametrize("id_type", [None, "string"])
def test_tables_of_a_type_may_each_declare_nodes(tmp_path, id_type):
    def text(columns, rows):
        return f"id,{columns}\n" + "".join(f"{key},{'' if one is None else one},{two}\n" for key, (one, two) in rows.items())

    first = table_file(tmp_path / "a.csv", text("x,y", FIRST), id_type=id_type)
    second = table_file(tmp_path / "b.csv", text("x,z", SECOND), id_type=id_type)
    graph = GraphConfig(nodes=(NodeTable("user", first), NodeTable("user", second, declares=True)))
    assert converted(tmp_path, graph).num_nodes == {"user": 4}
    union = [(key, x, y, None) for key, (x, y) in FIRST.items()] + [(key, x, None, z) for key, (x, z) in SECOND.items()]
    for column, name in enumerate("xyz", 1):
        cells = [row[column] for row in sorted(union)]
        assert array_of(tmp_path, f"nodes/user/data/{name}.npy") == [cell or 0 for cell in cells]
        assert array_of(tmp_path, f"nodes/user/data/{name}.present.npy") == [cell is not None for cell in cells]


def test_tables_that_both_declare_a_node_are_refused(tmp_path):
    graph = GraphConfig(
        nodes=(
            NodeTable("user", table_file(tmp_path / "a.csv", "id,x\n3,30\n")),
            NodeTable("user", table_file(tmp_path / "b.csv", "id,y\n2,1\n3,5\n"), declares=True),
        )
    )
    with pytest.raises(DataError) as caught:
        converted(tmp_path, graph)
    assert f"{tmp_path / 'b.csv'}:3:1" in str(caught.value)


def test_a_table_may_share_columns_and_declare_nothing(tmp_path):
    first = table_file(tmp_path / "a.csv", "id,x\n3,\n1,10\n2,\n")
    second = table_file(tmp_path / "b.csv", "id,x,y\n3,30,7\n")
    graph = GraphConfig(nodes=(NodeTable("user", first), NodeTable("user", second, declares=False)))
    assert converted(tmp_path, graph).num_nodes == {"user": 3}
    assert array_of(tmp_path, "nodes/user/data/x.npy") == [10, 0, 30]
    assert array_of(tmp_path, "nodes/user/data/x.present.npy") == [True, False, True]
    assert array_of(tmp_path, "nodes/user/data/y.npy") == [0, 0, 7]


def test_where_no_table_declares_nodes_they_are_the_ids_that_occur(tmp_path):
    table = table_file(tmp_path / "a.csv", "id,x\n3,30\n5,50\n")
    edges = table_file(tmp_path / "e.csv", "src,dst\n3,4\n")
    graph = GraphConfig(nodes=(NodeTable("user", table, declares=False),), edges=(EdgeTable("user", "r", "user", edges),))
    assert converted(tmp_path, graph).num_nodes == {"user": 3}
    assert array_of(tmp_path, "nodes/user/raw_ids.npy") == [3, 4, 5]
    assert array_of(tmp_path, "nodes/user/data/x.npy") == [30, 0, 50]


@pytest.mark.parametrize(
    ("keys", "kind", "raw"),
    [(("7", "007", "-2"), None, None), (("7", "8", "-2"), "int64", [-2, 7, 8]), (("7", "x", "8"), "string", None)],
)
def test_auto_decides_over_the_whole_input(tmp_path, keys, kind, raw):
    nodes = table_file(tmp_path / "n.csv", "id,x\n" + "".join(f"{key},1\n" for key in keys))
    edges = table_file(tmp_path / "e.csv", f"src,dst\n{keys[0]},{keys[2]}\n")
    graph = GraphConfig(nodes=(NodeTable("u", nodes),), edges=(EdgeTable("u", "r", "u", edges),), id_type="auto")
    if kind is None:  # 7 and 007 are one integer
        with pytest.raises(DataError, match="7"):
            converted(tmp_path, graph)
        return
    assert converted(tmp_path, graph).num_edges == {"u:r:u": 1}
    metadata = StoreReader(Storage(), str(tmp_path / "out")).metadata
    assert metadata.node_schemas[0].raw_ids == kind
    if raw is not None:
        assert array_of(tmp_path, "nodes/u/raw_ids.npy") == raw


@pytest.mark.parametrize("id_type", [None, "string"])
def test_one_id_space_finds_the_types_of_ends(tmp_path, id_type):
    cats, dogs = table_file(tmp_path / "c.csv", "id,x\n1,5\n2,6\n"), table_file(tmp_path / "d.csv", "id,x\n3,7\n")
    edges = table_file(tmp_path / "e.csv", "src,dst,kind\n1,3,likes\n3,2,likes\n1,2,sees\n")
    graph = GraphConfig(
        nodes=(NodeTable("cat", cats), NodeTable("dog", dogs)),
        edges=(EdgeTable(None, None, None, edges, relation_col="kind"),),
        id_space="global",
        id_type=id_type,
    )
    assert converted(tmp_path, graph).num_edges == {"cat:likes:dog": 1, "dog:likes:cat": 1, "cat:sees:cat": 1}


def test_types_in_a_column(tmp_path):
    nodes = table_file(tmp_path / "n.csv", "id,kind,x\na,cat,5\nb,dog,6\nc,cat,\n", id_type="string")
    edges = table_file(tmp_path / "e.csv", "src,dst\na,b\nc,a\n")
    graph = GraphConfig(nodes=(NodeTable(None, nodes, type_col="kind"),), edges=(EdgeTable(None, "sees", None, edges),))
    summary = converted(tmp_path, graph)
    assert (summary.num_nodes, summary.num_edges) == ({"cat": 2, "dog": 1}, {"cat:sees:dog": 1, "cat:sees:cat": 1})
    assert array_of(tmp_path, "nodes/cat/data/x.present.npy") == [True, False]


def test_numbered_rows_and_numbers_of_nodes(tmp_path):
    users = table_file(tmp_path / "u.csv", "name\nann\nbob\n")
    edges = table_file(tmp_path / "e.csv", "src,dst\n0,4\n1,0\n")
    graph = GraphConfig(
        nodes=(NodeTable("user", users, row_ids=True), NodeTable("item", num_nodes=5)),
        edges=(EdgeTable("user", "buys", "item", edges),),
    )
    assert converted(tmp_path, graph).num_nodes == {"user": 2, "item": 5}
    metadata = StoreReader(Storage(), str(tmp_path / "out")).metadata
    assert [schema.raw_ids for schema in metadata.node_schemas] == ["identity", "identity"]


def test_the_unit_of_times_stands_in_the_schema(tmp_path):
    edges = table_file(tmp_path / "e.csv", "src,dst,at\n1,2,2020-01-01\n", columns=(("at", "timestamp[us]"),))
    converted(tmp_path, GraphConfig(edges=(EdgeTable("u", "r", "u", edges, time_col="at"),)))
    (column,) = StoreReader(Storage(), str(tmp_path / "out")).metadata.edge_schemas[0].columns
    assert (column.role, column.dtype, column.unit) == ("time", "int64", "us")


def test_times_of_several_units_are_refused(tmp_path):
    first = table_file(tmp_path / "1.csv", "src,dst,at\n1,2,2020-01-01\n", columns=(("at", "timestamp[us]"),))
    second = table_file(tmp_path / "2.csv", "src,dst,at\n1,2,5\n")
    edges = tuple(EdgeTable("u", "r", "u", table, time_col="at") for table in (first, second))
    with pytest.raises(DataError) as caught:
        converted(tmp_path, GraphConfig(edges=edges))
    assert str(caught.value) == (
        "column 'time' has several units: none, us\n  fix: write all its values in one unit, or drop the column"
    )


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_edge_lists_may_have_line_breaks_in_quotes(tmp_path, block_bytes):
    (tmp_path / "e.csv").write_text('src,"dst\n2",a\n# "odd\n"x\ny",z,1\nz,"x\ny",2\n"x\ny","p,""q""",\n')
    options = {"quote": True, "id_type": "string", "header": "yes"}
    convert([str(tmp_path / "e.csv")], str(tmp_path / "out"), ConvertOptions("edges", None, options, block_bytes=block_bytes))
    offsets, values = (array_of(tmp_path, f"nodes/_N/raw_ids.{part}.npy") for part in ("offsets", "values"))
    names = [bytes(values[start:stop]).decode() for start, stop in itertools.pairwise(offsets)]
    assert names == ['p,"q"', "x\ny", "z"]
    assert array_of(tmp_path, "edges/_N___E___N/data/a.present.npy").count(True) == 2
