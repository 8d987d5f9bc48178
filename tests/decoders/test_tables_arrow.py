"""Tables in Parquet and Arrow files: against pyarrow's own Python values, and every error to the letter."""

import datetime
import decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoders.chunked_graphs import NULL_VECTOR, parquet_keeps
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_read import node_config, read

from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

relaxed = settings(deadline=None, max_examples=40)
FORMATS = ("parquet", "file", "stream")


def write(path, table, how="parquet", rows=1 << 20):
    """Write a table as one of the formats, ``rows`` rows a row group or record batch."""
    if how == "parquet":
        pq.write_table(table, path, row_group_size=rows)
        return path
    opened = pa.ipc.new_file if how == "file" else pa.ipc.new_stream
    with opened(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def option(values, kind):
    return st.lists(st.none() | values, min_size=5, max_size=5).map(lambda items: pa.array(items, kind))


COLUMNS = st.one_of(
    option(st.integers(-128, 127), pa.int8()),
    option(st.integers(0, 2**64 - 1), pa.uint64()),
    option(st.floats(width=32, allow_nan=False), pa.float32()),
    option(st.booleans(), pa.bool_()),
    option(st.text(max_size=4), pa.string()),
    option(st.text(max_size=4), pa.large_string()),
    option(st.binary(max_size=4), pa.binary()),
    option(st.sampled_from(["x", "yy"]), pa.string()).map(lambda array: array.dictionary_encode()),
    option(st.lists(st.integers(-9, 9), max_size=3), pa.list_(pa.int16())),
    option(st.dates(), pa.date32()),
    option(st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)), pa.timestamp("us", "UTC")),
    option(st.times(), pa.time64("ns")),
    option(st.timedeltas(datetime.timedelta(-9), datetime.timedelta(9)), pa.duration("us")),
    option(st.none(), pa.null()),
    *([option(st.text(max_size=20), pa.string_view())] if parquet_keeps(pa.array(["x"], pa.string_view())) else []),
    *(
        [option(st.lists(st.floats(-1, 1, width=32), min_size=2, max_size=2), pa.list_(pa.float32(), 2))]
        if parquet_keeps(NULL_VECTOR)
        else []
    ),
)


def plain(array):
    """Return pyarrow's values as the store has them: dates and times as integers, strings as bytes."""
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_temporal(kind):
        array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return [value.encode() if isinstance(value, str) else value for value in array.to_pylist()]


@relaxed
@given(
    columns=st.lists(COLUMNS, min_size=1, max_size=3),
    how=st.sampled_from(FORMATS),
    rows=st.integers(1, 6),
    max_rows=st.integers(1, 6),
)
def test_values_are_those_that_pyarrow_reads(tmp_path_factory, columns, how, rows, max_rows):
    table = pa.table([pa.array(range(5)), *columns], names=["id", *(f"c{i}" for i in range(len(columns)))])
    path = write(tmp_path_factory.mktemp("arrow") / "t", table, how, rows)
    found = read(node_config(path), max_rows=max_rows, places=True)
    expected = [
        {f"c{i}": value for i, array in enumerate(columns) if (value := plain(array)[row]) is not None} for row in range(5)
    ]
    assert found.nodes == [("user", row, cells) for row, cells in enumerate(expected)]


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize(
    ("keys", "id_type", "expected"),
    [
        (pa.array([0, 2**64 - 1], pa.uint64()), None, [0, 2**64 - 1]),
        (pa.array([3, 4], pa.int8()), None, [3, 4]),
        (pa.array([-3, 4], pa.int8()), "int", [-3, 4]),
        (pa.array([-3, 4], pa.int8()), "string", ["-3", "4"]),
        (pa.array(["a", "é"]), None, ["a", "é"]),
        (pa.array(["a", "b"]).dictionary_encode(), None, ["a", "b"]),
        (pa.array([b"a", b"b"]), None, ["a", "b"]),
        (pa.array(["7", "8"]), "uint", [7, 8]),
        (pa.array(["7", "x"]), "auto", ["7", "x"]),
        (pa.array([7, -8]), "auto", [7, -8]),
    ],
)
def test_ids_are_what_the_column_holds(tmp_path, how, keys, id_type, expected):
    path = write(tmp_path / "t", pa.table({"id": keys}), how)
    assert [key for _, key, _ in read(node_config(path, id_type=id_type)).nodes] == expected


@pytest.mark.parametrize("how", FORMATS)
def test_numbered_rows_and_no_rows(tmp_path, how):
    one = write(tmp_path / "1", pa.table({"a": [5, 6, 7]}), how, rows=2)
    two = write(tmp_path / "2", pa.table({"a": [8]}), how)
    found = read(node_config(one, two, row_ids=True), max_rows=2)
    assert [(key, cells["a"]) for _, key, cells in found.nodes] == [(0, 5), (1, 6), (2, 7), (3, 8)]
    empty = write(tmp_path / "3", pa.table({"id": pa.array([], pa.int64()), "a": pa.array([], pa.string())}), how)
    assert read(node_config(empty)).nodes == []


def test_numbers_of_several_files_widen_without_loss(tmp_path):
    one = write(tmp_path / "1.parquet", pa.table({"id": [1], "a": pa.array([1], pa.int8()), "b": pa.array([1], pa.uint8())}))
    two = write(tmp_path / "2.parquet", pa.table({"id": [2], "a": pa.array([300], pa.int16()), "b": pa.array([-1], pa.int8())}))
    found = read(node_config(one, two))
    assert found.nodes == [("user", 1, {"a": 1, "b": 1}), ("user", 2, {"a": 300, "b": -1})]
    assert set(map(frozenset, found.dtypes.values())) == {frozenset({"int16"})}


def test_text_takes_the_types_of_typed_files(tmp_path):
    day = datetime.date(2020, 1, 2)
    one = write(tmp_path / "1.parquet", pa.table({"id": [1], "a": pa.array([1], pa.int8()), "d": [day], "s": ["7"]}))
    (tmp_path / "2.csv").write_text("id,a,d,s\n2,5,2020-01-03,8\n")
    found = read(node_config(one, tmp_path / "2.csv"))
    assert found.nodes[1] == ("user", 2, {"a": 5, "d": 18264, "s": b"8"})
    assert {name: seen for (_, name), seen in found.dtypes.items()} == {"a": {"int8"}, "d": {"int64[day]"}, "s": {"binary"}}


def test_text_takes_strings_as_ids_where_a_typed_file_of_the_space_has_them(tmp_path):
    nodes = write(tmp_path / "n.parquet", pa.table({"id": ["1", "2"]}))
    (tmp_path / "e.csv").write_text("1,2\n")
    config = GraphConfig(
        nodes=(NodeTable("u", TableConfig(files=(str(nodes),))),),
        edges=(EdgeTable("u", "r", "u", TableConfig(files=(str(tmp_path / "e.csv"),))),),
    )
    assert [edge[1:3] for edge in read(config).edges] == [("1", "2")]


def test_declared_types(tmp_path):
    table = pa.table({"id": [1, 2], "a": ["5", None], "t": [7, 8], "d": ["2020-01-02", ""], "l": ["1;2", "[]"]})
    columns = (("a", "int16"), ("t", "timestamp[s]"), ("d", "date"), ("l", "list<uint8>"))
    found = read(node_config(write(tmp_path / "t", table), columns=columns))
    assert found.nodes == [("user", 1, {"a": 5, "t": 7, "d": 18263, "l": [1, 2]}), ("user", 2, {"t": 8, "l": []})]
    assert found.dtypes[("nodes user", "t")] == {"int64[s]"}


FAULTS = [
    (
        pa.table({"id": [1, None], "a": [1, 2]}),
        {},
        ": row 1, column 'id': field 'id' is empty\n  fix: give every row its keys, or leave the row out",
    ),
    (
        pa.table({"id": [1, -2]}),
        {},
        ": row 1, column 'id': field 'id' must not be negative, found -2\n  fix: pass --id-type int where IDs may be negative",
    ),
    (
        pa.table({"id": ["1", "x"]}),
        {"id_type": "int"},
        ": row 1, column 'id': field 'id' must be an integer, found 'x'\n  fix: pass --id-type string where IDs are names",
    ),
    (
        pa.table({"id": [1.0]}),
        {},
        ": column 'id': IDs must be integers or strings, found double\n  fix: cast it to int64 or string",
    ),
    (
        pa.table({"id": [1], "a": [[1, None]]}),
        {},
        ": row 0, column 'a': a null inside a list\n  fix: fill the value, or leave the whole list out",
    ),
    (
        pa.table({"id": [1], "a": [decimal.Decimal("1.5")]}),
        {},
        ": column 'a': a column must hold numbers, bools, texts, dates, times, or lists of numbers, found decimal128(2, 1)\n"
        "  fix: cast it, or pass --drop-column a",
    ),
    (
        pa.table({"id": [1], "a": [{"b": 1}]}),
        {},
        ": column 'a': a column must hold numbers, bools, texts, dates, times, or lists of numbers, found struct<b: int64>\n"
        "  fix: cast it, or pass --drop-column a",
    ),
    (
        pa.table({"id": [1], "a": [["x"]]}),
        {},
        ": column 'a': a column must hold numbers, bools, texts, dates, times, or lists of numbers, found list<{item}: string>\n"
        "  fix: join the texts of a row to one, or pass --drop-column a",
    ),
    (
        pa.table({"id": [1], "a": [300]}),
        {"columns": (("a", "uint8"),)},
        ": row 0, column 'a': field 'a' does not fit uint8, found 300\n  fix: declare a wider dtype: --column a=…",
    ),
    (
        pa.table({"id": [1], "a": [3]}),
        {"columns": (("a", "list<uint8>"),)},
        ": column 'a': column 'a' is declared otherwise, but holds int64\n"
        "  fix: leave out the declaration, or write the column in the declared type",
    ),
    (
        pa.table({"id": [1], "w": ["x"]}),
        {"weight_col": "w"},
        ": column 'w': weights must be numbers, found string\n  fix: cast it to float64",
    ),
]


@pytest.mark.parametrize("how", FORMATS)
@pytest.mark.parametrize(("table", "options", "message"), FAULTS)
def test_bad_tables(tmp_path, how, table, options, message):
    path = write(tmp_path / "t", table, how)
    with pytest.raises(DataError) as caught:
        read(node_config(path, **options))
    item = "element" if how == "parquet" else "item"
    assert str(caught.value) == f"{path}{message.replace('{item}', item)}"


def test_files_that_disagree(tmp_path):
    one = write(tmp_path / "1", pa.table({"id": [1], "a": [1]}))
    two = write(tmp_path / "2", pa.table({"id": [1], "a": ["x"]}))
    with pytest.raises(DataError) as caught:
        read(node_config(one, two))
    assert str(caught.value) == (
        f"{two}: column 'a' holds string, but int64 in {one}\n  fix: write it alike in all files, or pass --drop-column a"
    )
    three = write(tmp_path / "3", pa.table({"id": [1]}))
    with pytest.raises(DataError) as caught:
        read(node_config(one, three))
    assert str(caught.value) == (
        f"{three}: column 'a' is not here, but in {one}\n"
        "  fix: give all files of a table the same columns, or pass --drop-column a"
    )


def test_id_columns_that_disagree(tmp_path):
    nodes = write(tmp_path / "n", pa.table({"id": ["a"]}))
    edges = write(tmp_path / "e", pa.table({"src": [1], "dst": [2]}))
    tables = TableConfig(files=(str(nodes),)), TableConfig(files=(str(edges),))
    config = GraphConfig(nodes=(NodeTable("u", tables[0]),), edges=(EdgeTable("u", "r", "u", tables[1]),))
    with pytest.raises(DataError) as caught:
        read(config)
    assert str(caught.value) == (
        f"{nodes}: IDs of 'u' are strings here, but integers in {edges}\n  fix: write them alike, or pass --id-type string"
    )


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.date32()])
def test_a_unit_is_for_times_in_seconds(tmp_path, kind, unit):
    """Not for those that have one of their own; what a date counts, days, is none either."""
    edges = write(
        tmp_path / "e",
        pa.table({"src": [1], "dst": [2], "t": pa.array([86_400_000], pa.int64()).cast(pa.timestamp("ms")).cast(kind)}),
    )
    table = EdgeTable("u", "r", "u", TableConfig(files=(str(edges),)), time_col="t", time_unit=unit)
    with pytest.raises(UsageError) as caught:
        read(GraphConfig(edges=(table,)))
    shown = "timestamp[ms]" if kind == pa.timestamp("ms") else "date32[day]"
    assert str(caught.value) == (
        f"the time unit {unit} is for times in seconds, but column 't' of {edges} holds {shown}\n"
        "  fix: leave out the unit: timestamps and dates are stored as they are"
    )


def test_id_types_that_disagree(tmp_path):
    path = str(write(tmp_path / "n", pa.table({"src": [1], "dst": [2]})))
    edges = tuple(
        EdgeTable("u", name, "u", TableConfig(files=(path,), id_type=kind, place=f"edges[{name}]"))
        for name, kind in (("a", "int"), ("b", "string"))
    )
    with pytest.raises(UsageError) as caught:
        read(GraphConfig(edges=edges))
    assert str(caught.value) == (
        "edges[b]: IDs of 'u' are string here, but int in edges[a]\n  fix: give all tables of a node type one ID type"
    )


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (b"FEA1....", None, "this is a Feather file of version 1\n  fix: write it again as Feather version 2 or Parquet"),
        (b"a,b\n", "parquet", "the format is said to be parquet, but this file holds text\n"
         "  fix: correct the format, or leave it out: it is told from the content"),
        (b"PAR1....", None, "this Parquet file cannot be read: {reason}\n  fix: write the file again; it may be cut off"),
        (b"ARROW1\0\0....", None, "this Arrow file cannot be read: {reason}\n  fix: write the file again; it may be cut off"),
        (b"\x93NUMPY....", None, "this file holds an array, not a table\n  fix: attach arrays with "
         "--node-data TYPE:NAME=FILE or --edge-data SRC:REL:DST:NAME=FILE"),
    ],
)  # fmt: skip
def test_files_that_are_no_tables(tmp_path, data, name, message):
    path = tmp_path / "t"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        read(node_config(path, format=name))
    head, _, tail = message.partition("{reason}")
    assert str(caught.value).startswith(f"{path}: {head}")
    assert str(caught.value).endswith(tail)


@pytest.mark.parametrize("how", FORMATS)
def test_names_of_columns_that_are_not_utf8(tmp_path, how):
    path = write(tmp_path / "t", pa.table({"id": [1], "qqqqq": [2]}), how)
    path.write_bytes(path.read_bytes().replace(b"qqqqq", b"\xffqqqq"))
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert str(caught.value).startswith(
        f"{path}: this {'Parquet' if how == 'parquet' else 'Arrow'} file cannot be read: 'utf-8' codec"
    )


def test_real_tables(real_samples):
    folder = real_samples / "snb_person_parquet"
    found = read(node_config(folder / "person.parquet"), max_rows=7)
    table = pq.read_table(folder / "person.parquet")
    names = [name for name in table.column_names if name != "id"]
    columns = {name: plain(table.column(name).combine_chunks()) for name in names}
    assert [key for _, key, _ in found.nodes] == table.column("id").to_pylist()
    for row, (_, _, cells) in enumerate(found.nodes):
        assert cells == {name: columns[name][row] for name in names}
