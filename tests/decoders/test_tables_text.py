"""Tables of delimited text: against the csv module and pyarrow, and every error to the letter."""

import csv
import gzip
import io
import math

import numpy as np
import pyarrow.csv as pacsv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_read import node_config, read

from graphprep.decoders.looks.quoted_records import Dialect, FieldRecords
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, NodeOwner, TableLayout
from graphprep.decoders.tables.text import TextReader
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.protocols import Span
from graphprep.testing.contract import DecoderContract

relaxed = settings(deadline=None, max_examples=60)
UTF8_BOM = b"\xef\xbb\xbf"


class TestTextReader(DecoderContract):
    lines = (
        b'1,"a ""b""",2020-01-02,[1;2],0.5',
        b"22,plain,,[],",
        b" 3 ,,1969-12-31,7,1e3",
        b'"4","",2000-02-29,[ 1 ],-2',
        b"18446744073709551615,\xc3\xa9,1970-01-01,,nan",
    )
    bad_lines = (
        (b"x,a,,,", "field 'key' must be an integer, found 'x'"),
        (b",a,,,", "field 'key' is empty"),
        (b"-1,a,,,", "field 'key' must not be negative, found '-1'"),
        (b"1,a,2020-02-30,,", "field 'day' must be a date as YYYY-MM-DD, found '2020-02-30'"),
        (b"1,a,,[1;x],", "field 'list' must be a list of integers, found '[1;x]'"),
        (b"1,a,,1;;2,", "field 'list' must be a list of integers, found '1;;2'"),
        (b"1,a,,,x", "field 'real' must be a number, found 'x'"),
        (b"1,a,,", "expected 5 columns, found 4"),
        (b"1,a,,,,", "expected 5 columns, found 6"),
        (b'1,a"b,,,', "a quote inside an unquoted field"),
        (b'1,"a"b,,,', "text follows a closing quote"),
        (b"1,\xff,,,", "field 'text' is not UTF-8"),
    )

    def make(self):
        layout = TableLayout(
            owner=NodeOwner("user"),
            ids=(IdField("key", 0),),
            features=(
                FeatureColumn("text", "text", 1, ColumnType("binary")),
                FeatureColumn("day", "day", 2, ColumnType("int64", "day")),
                FeatureColumn("list", "list", 3, ColumnType("int32", is_list=True)),
                FeatureColumn("real", "real", 4, ColumnType("float64")),
            ),
            names=("key", "text", "day", "list", "real"),
        )
        return TextReader(layout, Dialect(b",", quoted=True, across_lines=True, comments=b"", keep_tabs=True))

    def span(self):
        return Span("input", record_ends=FieldRecords(Dialect(b",", quoted=True, across_lines=True, comments=b"")))


# ------------------------------------------------------------------------------------------------ differential

FIELDS = st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\0\r"), max_size=6) | st.sampled_from(
    ["", '"', '""', "\n", "\r\n", "a\nb", 'x"y', ",", "\t", " ", "1", "-2", "1.5", "é", "NA", "#", 'a,b\n"c"']
)


@relaxed
@given(
    rows=st.lists(st.lists(FIELDS, min_size=3, max_size=3), max_size=8),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 60),
    last=st.booleans(),
)
def test_any_strings_come_back_as_the_csv_module_reads_them(tmp_path_factory, rows, quoting, delimiter, end, block_bytes, last):
    rows = [[f"k{number}", *row[1:]] for number, row in enumerate(rows)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writerows([["id", "a", "b"], *rows])
    data = text.getvalue().encode()
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(data if last else data.removesuffix(end.encode()))
    columns = (("a", "binary"), ("b", "binary"))
    found = read(node_config(path, delimiter=delimiter, id_type="string", columns=columns), block_bytes=block_bytes)
    expected = list(csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=delimiter))[1:]
    assert expected == rows
    assert [(key, cells) for _, key, cells in found.nodes] == [
        (key, {name: value.encode() for name, value in zip("ab", rest, strict=True) if value.strip(" \t")})
        for key, *rest in expected
    ]


NUMBERS = st.one_of(
    st.just(""),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@relaxed
@given(
    cells=st.lists(
        st.tuples(NUMBERS, st.sampled_from(["", "0", "-7", "NA", "null"]), st.sampled_from(["", "true", "False", "N/A"]))
    ).map(lambda cells: [*cells, ("1", "12", "TRUE")]),
    block_bytes=st.sampled_from([1, 20, 1 << 20]),
)
def test_dtypes_are_found_over_the_whole_file_as_pyarrow_finds_them(tmp_path_factory, cells, block_bytes):
    lines = ["id,x,n,word"] + [f"{number},{','.join(row)}" for number, row in enumerate(cells)]
    data = ("\n".join(lines) + "\n").encode()
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(data)
    found = read(node_config(path), block_bytes=block_bytes)
    table = pacsv.read_csv(io.BytesIO(data))
    for position, row in enumerate(table.to_pylist()):
        cells_found = found.nodes[position][2]
        for name in ("x", "n"):
            value = cells_found.get(name)
            assert (value is None) == (row[name] is None)
            assert value is None or value == row[name] or math.isclose(value, row[name], rel_tol=0)
        assert cells_found.get("word") == row["word"]


@relaxed
@given(data=st.binary(max_size=80) | st.text('ab1,"\n\r \t;\\é#', max_size=80).map(str.encode), block_bytes=st.integers(1, 90))
def test_any_bytes_give_the_same_rows_or_fault_for_any_cut(tmp_path_factory, data, block_bytes):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(data)
    config = node_config(path, delimiter=",", header="no", id_type="string", columns=(("1", "binary"),))

    def outcome(size):
        try:
            return read(config, block_bytes=size).nodes
        except (DataError, UsageError) as error:
            return str(error)

    assert outcome(block_bytes) == outcome(1 << 20)


# ------------------------------------------------------------------------------------------------ rules


def write(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def rows_of(path, **options):
    return [(key, cells) for _, key, cells in read(node_config(path, **options)).nodes]


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (UTF8_BOM + b"id,a\r\n1,2\r\n", {}, [(1, {"a": 2})]),
        (b"1,2\n3,4\n", {}, [(1, {"col_1": 2}), (3, {"col_1": 4})]),
        (b"1,2\n", {"names": ("k", "v")}, [(1, {"v": 2})]),
        (b"k,v\n1,2\n", {"names": ("a", "b"), "header": "yes"}, [(1, {"b": 2})]),
        (b"a,id\n5,1\n", {}, [(1, {"a": 5})]),
        (b"id a\n1 2\n", {}, [(1, {"a": 2})]),
        (b"# note\nid  a\n1\t2\n", {}, [(1, {"a": 2})]),
        (b"id;a\n1;x,y\n", {}, [(1, {"a": b"x,y"})]),
        (b"id\ta\n1\tx, y\n", {}, [(1, {"a": b"x, y"})]),
        (b"id::a\n1::2\n", {"delimiter": "::"}, [(1, {"a": 2})]),
        (b'id,a\n1,"x"\n', {"quote": False}, [(1, {"a": b'"x"'})]),
        (b'"id","a\nb"\n1,2\n', {}, [(1, {"a\nb": 2})]),
        (b"id,a,b\n1,NA,-\n2,x,NA\n", {"nulls": ("NA", "-")}, [(1, {}), (2, {"a": b"x"})]),
        (b"id,a,b\n1,2,3\n", {"dropped": ("a",), "renamed": (("b", "c"),)}, [(1, {"c": 3})]),
        (b"id,a,b\n1,2,3\n", {"kept": ("b",)}, [(1, {"b": 3})]),
        (b"id,w,a\n1,2,3\n2,,4\n", {"weight_col": "w"}, [(1, {"<weight>": 2.0, "a": 3}), (2, {"a": 4})]),
        (b"#tag,a\nx,1\n#y,2\n", {"id_type": "string"}, [("x", {"a": 1}), ("#y", {"a": 2})]),
        (b"id\ta\tb\n1\t\t\n", {}, [(1, {})]),
        (b"id\n", {}, []),
        (b"", {}, []),
        (b"\n\n", {}, []),
    ],
)
def test_what_text_says(tmp_path, data, options, expected):
    assert rows_of(write(tmp_path, "t.txt", data), **options) == expected


def test_a_column_is_what_all_files_and_blocks_say(tmp_path):
    one = write(tmp_path, "1.csv", "id,a,b\n1,1,2\n2,3,4\n")
    two = write(tmp_path, "2.csv", "id,b,a\n3,1.5,x\n")
    found = read(node_config(one, two), block_bytes=4)
    assert found.nodes == [
        ("user", 1, {"a": b"1", "b": 2}),
        ("user", 2, {"a": b"3", "b": 4}),
        ("user", 3, {"a": b"x", "b": 1.5}),
    ]
    assert found.dtypes == {("nodes user", "a"): {"binary"}, ("nodes user", "b"): {"int64", "float64"}}


def test_columns_of_one_name_in_two_types_have_their_own_dtypes(tmp_path):
    one, two = write(tmp_path, "1.csv", "id,code\n1,7\n"), write(tmp_path, "2.csv", "id,code\n1,x\n")
    nodes = tuple(NodeTable(name, TableConfig(files=(str(path),))) for name, path in (("a", one), ("b", two)))
    assert read(GraphConfig(nodes=nodes)).nodes == [("a", 1, {"code": 7}), ("b", 1, {"code": b"x"})]


def test_folders_with_part_files_and_mixed_compression(tmp_path):
    write(tmp_path, "_SUCCESS", "")
    write(tmp_path, ".part-0.csv.crc", "x")
    write(tmp_path, "part-0.csv", "id,a\n1,2\n")
    write(tmp_path, "part-1.csv.gz", gzip.compress(b"id,a\n3,4\n"))
    found = read(node_config(tmp_path))
    assert found.nodes == [("user", 1, {"a": 2}), ("user", 3, {"a": 4})]
    assert found.sources.messages == (f"{tmp_path}: skipped 2 names that begin with '.' or '_'",)


def test_a_file_without_a_header_takes_the_names_of_the_others(tmp_path):
    one, two = write(tmp_path, "1.csv", "id,a\n1,2\n"), write(tmp_path, "2.csv", "3,4\n")
    assert rows_of_files(one, two) == [(1, {"a": 2}), (3, {"a": 4})]


def rows_of_files(*paths, **options):
    return [(key, cells) for _, key, cells in read(node_config(*paths, **options)).nodes]


def test_a_header_of_names_is_guessed_from_what_follows(tmp_path):
    named = write(tmp_path, "named.csv", "name,town\nann,ulm\nbob,bonn\n")
    found = read(node_config(named, id_type="string"))
    assert [key for _, key, _ in found.nodes] == ["ann", "bob"]
    assert found.sources.messages == (f"{named}:1: read as a header (name, town); where this line is data, pass --header no",)
    bare = write(tmp_path, "bare.csv", "ann,ulm\nbob,ulm\n")
    found = read(node_config(bare, id_type="string"))
    assert ([key for _, key, _ in found.nodes], found.sources.messages) == (["ann", "bob"], ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"7\t007"\n"8"\n', ["7\t007", "8"]),
        ('"ann lee"\n"bob"\n', ["ann lee", "bob"]),
        ('"a;b"\n"c|d"\n', ["a;b", "c|d"]),
        ('"a ""b"" c"\nd\n', ['a "b" c', "d"]),
    ],
)
def test_delimiters_in_quotes_do_not_count(tmp_path, text, names):
    path = write(tmp_path, "t.csv", text)
    assert [key for _, key, _ in read(node_config(path, id_type="string", header="no")).nodes] == names


def test_quotes_where_blanks_are_found_to_separate(tmp_path):
    path = write(tmp_path, "t.txt", '"7\t007" 5\n"8" 9\n')
    with pytest.raises(DataError) as caught:
        read(node_config(path, id_type="string", header="no"))
    assert str(caught.value) == (
        f'{path}:1:1: blanks separate the columns, but this field is quoted: "7 007"\n'
        "  fix: write tabs or commas between the columns, or take quotes as they are with --no-quote"
    )


def test_numbered_rows_go_on_from_file_to_file(tmp_path):
    one, two = write(tmp_path, "1.csv", 'a\n"x\ny"\n5\n'), write(tmp_path, "2.csv", "a\n6\n")
    found = read(node_config(one, two, row_ids=True))
    assert found.nodes == [("user", 0, {"a": b"x\ny"}), ("user", 1, {"a": b"5"}), ("user", 2, {"a": b"6"})]


def test_types_and_relations_in_columns(tmp_path):
    nodes = write(tmp_path, "n.csv", "id,kind,a\n1,cat,5\n2,dog;pet,6\n3,cat;old,7\n")
    edges = write(tmp_path, "e.tsv", "1\tlikes\t2\n2\tsees\t3\n")
    config = GraphConfig(
        nodes=(NodeTable(None, TableConfig(files=(str(nodes),)), type_col="kind", type_delimiter=";"),),
        edges=(EdgeTable(None, None, None, TableConfig(files=(str(edges),)), relation_col="1"),),
    )
    found = read(config)
    assert found.nodes == [("cat", 1, {"a": 5}), ("dog", 2, {"a": 6}), ("cat", 3, {"a": 7})]
    assert [(edge.name, edge.src_space, src, dst) for edge, src, dst, _ in found.edges] == [
        ("likes", "nodes", 1, 2),
        ("sees", "nodes", 2, 3),
    ]
    assert (found.sources.default_space, found.sources.node_types, found.sources.edge_types) == ("nodes", (), ())


@pytest.mark.parametrize(
    ("id_type", "expected", "signed", "open_spaces"),
    [
        (None, [7, 12], (), ()),
        ("uint", [7, 12], (), ()),
        ("int", [7, 12], ("user",), ()),
        ("string", ["007", "12"], (), ()),
        ("auto", ["007", "12"], (), ("user",)),
    ],
)
def test_id_types(tmp_path, id_type, expected, signed, open_spaces):
    found = read(node_config(write(tmp_path, "t.csv", "id,a\n007,1\n12,2\n"), id_type=id_type))
    assert [key for _, key, _ in found.nodes] == expected
    assert (found.sources.signed_ids, found.sources.auto_ids) == (signed, open_spaces)


def test_times_and_timestamps_of_edges(tmp_path):
    path = write(tmp_path, "e.csv", "src,dst,at,x\n1,2,2020-01-01T00:00:01Z,3\n2,1,,4\n")
    table = TableConfig(files=(str(path),), columns=(("at", "timestamp[ms]"),))
    found = read(GraphConfig(edges=(EdgeTable("u", "r", "u", table, time_col="at"),)))
    assert [cells for *_, cells in found.edges] == [{"<time>": 1577836801000, "x": 3}, {"x": 4}]
    assert found.dtypes[("edges u:r:u", "<time>")] == {"int64[ms]"}
    seconds = write(tmp_path, "s.csv", "src,dst,at\n1,2,1.5\n")
    config = GraphConfig(edges=(EdgeTable("u", "r", "u", TableConfig(files=(str(seconds),)), time_col="at", time_unit="ms"),))
    assert read(config).edges[0][3] == {"<time>": 1500}


def test_a_feature_beside_the_time_is_not_called_time(tmp_path):
    path = write(tmp_path, "e.csv", "src,dst,at,time\n1,2,3,4\n")
    table = EdgeTable("u", "r", "u", TableConfig(files=(str(path),)), time_col="at")
    with pytest.raises(DataError) as caught:
        read(GraphConfig(edges=(table,)))
    assert str(caught.value) == (
        f"{path}:1:1: two columns are called 'time'\n  fix: rename one, or pass --drop-column with its position"
    )


# ------------------------------------------------------------------------------------------------ faults

FAULTS = [
    (
        "id,a\n1,2\nx,3\n",
        {},
        "{p}:3:1: field 'id' must be an integer, found 'x'\n  fix: pass --id-type string where IDs are names",
    ),
    ("id,a\n1,2\n,3\n", {}, "{p}:3:1: field 'id' is empty\n  fix: give every row its keys, or leave the row out"),
    (
        "id,a\n-1,2\n",
        {},
        "{p}:2:1: field 'id' must not be negative, found '-1'\n  fix: pass --id-type int where IDs may be negative",
    ),
    (
        "id,a\n18446744073709551616,2\n",
        {},
        "{p}:2:1: field 'id' must be below 2^64, found '18446744073709551616'\n  fix: pass --id-type string where IDs are names",
    ),
    (
        "id,a\n9223372036854775808,2\n",
        {"id_type": "int"},
        "{p}:2:1: field 'id' must be from -2^63 to 2^63-1, found '9223372036854775808'\n"
        "  fix: pass --id-type uint where IDs are at least 0, or --id-type string where IDs are names",
    ),
    (
        'id,a\n1,"x\ny"\n2,3,4\n',
        {},
        "{p}:4:5: expected 2 columns, found 3\n"
        "  fix: give every line as many columns as the first, empty ones where there is no value",
    ),
    ('id,a\n1,"x\n2,3\n', {}, "{p}:2:3: a quote does not close\n  fix: close it; double the quotes inside a quoted field"),
    (
        "id,a\n1,2020-1-1\n",
        {"columns": (("a", "date"),)},
        "{p}:2:3: field 'a' must be a date as YYYY-MM-DD, found '2020-1-1'\n"
        "  fix: repair the field, or declare another dtype, such as --column a=binary",
    ),
    (
        "id,a\n1,2020-01-01 00:00:00.0001\n",
        {"columns": (("a", "timestamp[ms]"),)},
        "{p}:2:3: field 'a' is finer than one ms, found '2020-01-01 00:00:00.0001'\n  fix: declare a finer unit: ms, us or ns",
    ),
    (
        "id,a\n1,[1;2;3]\n",
        {"columns": (("a", "list<int8>[2]"),)},
        "{p}:2:3: field 'a' must hold 2 values, found 3\n  fix: repair the row, or declare list<dtype>",
    ),
    (
        "id,a\n1,300\n",
        {"columns": (("a", "uint8"),)},
        "{p}:2:3: field 'a' does not fit uint8, found '300'\n  fix: declare a wider dtype: --column a=…",
    ),
    ("a\0b\n", {}, "{p}:1:2: this is binary data, found byte 0x00\n  fix: give text, Parquet, Arrow or JSON lines"),
    ("id,a,a\n1,2,3\n", {}, "{p}:1:1: two columns are called 'a'\n  fix: rename one, or pass --drop-column with its position"),
    ("id,a,\n1,2,3\n", {}, "{p}:1:1: a column has no name\n  fix: name it, or pass --drop-column with its position"),
]


@pytest.mark.parametrize(("data", "options", "message"), FAULTS)
def test_bad_text(tmp_path, data, options, message):
    path = write(tmp_path, "t.csv", data)
    with pytest.raises(DataError) as caught:
        read(node_config(path, **options), block_bytes=5)
    assert str(caught.value) == message.format(p=path)


def test_files_that_disagree(tmp_path):
    one, two = write(tmp_path, "1.csv", "id,a\n1,2\n"), write(tmp_path, "2.csv", "id,b\n1,2\n")
    with pytest.raises(DataError) as caught:
        read(node_config(one, two))
    assert str(caught.value) == (
        f"{two}:1:1: the first line is not the header of {one}\n"
        "  fix: give all files of a table the same columns, or say --header yes or no"
    )
    with pytest.raises(DataError) as caught:
        read(node_config(one, two, header="yes"))
    assert str(caught.value) == (
        f"{two}: column 'b' is here, but not in {one}\n"
        "  fix: give all files of a table the same columns, or pass --drop-column b"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"id_col": "key"},
            "--nodes user: --id-col key: {p} has no such column\n  fix: its columns are id, a",
        ),
        (
            {"columns": (("b", "int8"),)},
            "--nodes user: column b: {p} has no such column\n  fix: use one of id, a",
        ),
        (
            {"columns": (("a", "int7"),)},
            "--column a: no dtype named 'int7'\n  fix: use bool, int8 to int64, uint8 to uint64, float16 to float64, binary, date, "
            "timestamp[s|ms|us|ns], or list<dtype>",
        ),
        (
            {"id_col": "a", "weight_col": "a"},
            "--nodes user: --id-col a: this column of {p} is the weight already\n  fix: use each column once",
        ),
    ],
)
def test_bad_options(tmp_path, options, message):
    path = write(tmp_path, "t.csv", "id,a\n1,2\n")
    with pytest.raises(UsageError) as caught:
        read(node_config(path, place="--nodes user", **options))
    assert str(caught.value) == message.format(p=path)


def test_a_column_that_no_table_has(tmp_path):
    one, two = write(tmp_path, "1.csv", "id,a\n1,2\n"), write(tmp_path, "2.csv", "id,b\n1,2\n")
    nodes = tuple(NodeTable(name, TableConfig(files=(str(path),))) for name, path in (("x", one), ("y", two)))
    assert read(GraphConfig(nodes=nodes, columns=(("b", "int8"),))).dtypes[("nodes y", "b")] == {"int8"}
    with pytest.raises(UsageError) as caught:
        read(GraphConfig(nodes=nodes, columns=(("c", "int8"),)))
    assert str(caught.value) == "--column c: the tables have no such column\n  fix: use one of id, a, b"


def test_numbered_rows_name_the_line(tmp_path):
    path = write(tmp_path, "t.csv", 'a\n"x\ny"\n5,6\n')
    with pytest.raises(DataError) as caught:
        read(node_config(path, row_ids=True))
    assert str(caught.value).splitlines()[0] == f"{path}:4:3: expected 1 column, found 2"


def test_real_tables(real_samples):
    people = real_samples / "tinysnb_csv"
    found = read(
        node_config(people / "vPerson.csv.gz", people / "vPerson2.csv", columns=(("workedHours", "list<int64>"),)),
        block_bytes=300,
    )
    with gzip.open(people / "concat_vperson.csv.gz", "rt", newline="") as file:
        expected = list(csv.DictReader(file))
    assert [key for _, key, _ in found.nodes] == [int(row["id"]) for row in expected]
    for (_, _, cells), row in zip(found.nodes, expected, strict=True):
        assert cells["fname"].decode() == row["fname"]
        assert cells["eyeSight"] == float(row["eyeSight"])
        assert cells["workedHours"] == [int(text) for text in row["workedHours"].strip("[]").split(",")]
    assert np.unique([cells["age"] for *_, cells in found.nodes]).tolist() == [20, 25, 30, 35, 40, 45, 83]
