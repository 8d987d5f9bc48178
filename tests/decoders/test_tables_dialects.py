"""Text with escapes and with lines of comments: against the csv module and pandas, for any cut into blocks."""

import ast
import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_read import node_config, read

from graphprep.decoders.configs.graph_file import dump_graph, load_graph
from graphprep.model.errors import DataError, UsageError
from graphprep.storage.read.urls import Storage

pd = pytest.importorskip("pandas", reason="pandas is not installed")

relaxed = settings(deadline=None, max_examples=80)
PARTS = ["\\", '"', "\n", ",", "\t", ";", " ", "a", "1", "é", "#", "\\n"]
FIELDS = st.lists(st.sampled_from(PARTS), max_size=5).map("".join)
ROWS = st.lists(st.tuples(FIELDS, FIELDS), max_size=8)
COLUMNS = (("a", "binary"), ("b", "binary"))


def cells_of(found):
    return [(key, cells) for _, key, cells in found.nodes]


def as_cells(rows):
    """Return what a store has of records of an ID, ``a`` and ``b``: cells of blanks are absent."""
    return [
        (key, {name: text.encode() for name, text in zip("ab", rest, strict=True) if text.strip(" \t")}) for key, *rest in rows
    ]


def escaped_text(rows, quoting, delimiter, end):
    text = io.StringIO()
    form = {"delimiter": delimiter, "lineterminator": end, "quoting": quoting}
    writer = csv.writer(text, **form, escapechar="\\", doublequote=False)
    writer.writerows([["id", "a", "b"], *([f"k{number}", *row] for number, row in enumerate(rows))])
    return text.getvalue()


@relaxed
@given(
    rows=ROWS,
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONE]),
    delimiter=st.sampled_from([",", "\t", ";"]),
    end=st.sampled_from(["\n", "\r\n"]),
    block_bytes=st.integers(1, 60),
    last=st.booleans(),
)
def test_escapes_are_read_as_by_the_csv_module_and_pandas(tmp_path_factory, rows, quoting, delimiter, end, block_bytes, last):
    text = escaped_text(rows, quoting, delimiter, end)
    text = text if last else text.removesuffix(end)
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.encode())
    config = node_config(path, delimiter=delimiter, header="yes", escape="\\", id_type="string", columns=COLUMNS)
    found = cells_of(read(config, block_bytes=block_bytes))
    form = {"delimiter": delimiter, "escapechar": "\\"}
    records = list(csv.reader(io.StringIO(text, newline=""), **form, doublequote=False))[1:]
    assert found == as_cells(records)
    frame = pd.read_csv(io.StringIO(text, newline=""), **form, dtype=str, keep_default_na=False, lineterminator=None)
    assert found == as_cells(frame.itertuples(index=False, name=None))


@relaxed
@given(rows=ROWS, block_bytes=st.integers(1, 60))
def test_doubled_quotes_and_escapes_go_together_as_in_pandas(tmp_path_factory, rows, block_bytes):
    lines = ["id,a,b"]
    for number, row in enumerate(rows):
        cells = [f'"{text}"' for text in (part.replace("\\", "\\\\").replace('"', ['""', '\\"'][number % 2]) for part in row)]
        lines.append(",".join([f"k{number}", *cells]))
    text = "\n".join(lines) + "\n"
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(text.encode())
    config = node_config(path, delimiter=",", header="yes", escape="\\", id_type="string", columns=COLUMNS)
    frame = pd.read_csv(io.StringIO(text), escapechar="\\", dtype=str, keep_default_na=False)
    assert cells_of(read(config, block_bytes=block_bytes)) == as_cells(frame.itertuples(index=False, name=None))


@relaxed
@given(
    rows=ROWS,
    comments=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["#", "# x", '#"a', "#,,\\", "  # y"])), max_size=5),
    delimiter=st.sampled_from([",", "\t"]),
    escape=st.sampled_from([None, "\\"]),
    block_bytes=st.integers(1, 60),
)
def test_lines_of_comments_are_as_if_they_were_not_there(tmp_path_factory, rows, comments, delimiter, escape, block_bytes):
    text = io.StringIO()
    form = {"escapechar": escape, "doublequote": escape is None}
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\0", quoting=csv.QUOTE_ALL, **form)
    writer.writerows([["id", "a", "b"], *([f"k{number}", *row] for number, row in enumerate(rows))])
    records = text.getvalue().split("\0")[:-1]
    plain = "\n".join(records) + "\n"
    for at, comment in comments:
        records.insert(min(at, len(records)), comment)
    folder = tmp_path_factory.mktemp("csv")
    found = []
    for name, data, mark in (("plain", plain, None), ("commented", "\n".join(records) + "\n", "#")):
        path = folder / name
        path.write_bytes(data.encode())
        options = {"delimiter": delimiter, "header": "yes", "escape": escape, "comment": mark}
        found.append(cells_of(read(node_config(path, id_type="string", columns=COLUMNS, **options), block_bytes=block_bytes)))
    assert found[0] == found[1]


BYTES = st.binary(max_size=60) | st.text('ab1,"\n\r \t;\\é#', max_size=60).map(str.encode)


@relaxed
@given(data=BYTES, block_bytes=st.integers(1, 70), quote=st.sampled_from([None, False]), tabs=st.booleans())
def test_any_bytes_give_the_same_rows_or_fault_for_any_cut(tmp_path_factory, data, block_bytes, quote, tabs):
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(data)
    options = {"delimiter": "\t" if tabs else ",", "escape": "\\", "comment": "#", "quote": quote}
    config = node_config(path, header="no", id_type="string", columns=(("1", "binary"),), **options)

    def outcome(size):
        try:
            return read(config, block_bytes=size).nodes
        except (DataError, UsageError) as error:
            return str(error)

    assert outcome(block_bytes) == outcome(1 << 20)


# ------------------------------------------------------------------------------------------------ rules

ESCAPE, COMMENT = {"escape": "\\"}, {"comment": "#"}


def write(tmp_path, data):
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (rb"id,a" + b"\n" + rb'1,"x \"y\", z"' + b"\n", ESCAPE, {"a": b'x "y", z'}),
        (rb"id,a" + b"\n" + rb"1,x\,y\\" + b"\n", ESCAPE, {"a": b"x,y\\"}),
        (b"id,a\n1,x\\\ny\n", ESCAPE, {"a": b"x\ny"}),
        (b"id,a\r\n1,x\\\r\ny\r\n", ESCAPE, {"a": b"x\r\ny"}),
        (b"id,a\n1,\\5\n", ESCAPE, {"a": 5}),
        (b"id,a\n1,\\ \n", ESCAPE, {}),
        (b"id,a\n1,N\\A\n", ESCAPE | {"nulls": ("NA",)}, {}),
        (b"i\\d,a\n1,2\n", ESCAPE, {"a": 2}),
        (b"id,a\\,b\n1,2\n", ESCAPE, {"a,b": 2}),
        (b'id,a\n1,"x"\\"\n', ESCAPE | {"quote": False}, {"a": b'"x""'}),
        (b"id|a\n1|x\\|y\n", ESCAPE, {"a": b"x|y"}),
        (b'id,a\n1,"x ""y"""\n', {"escape": '"'}, {"a": b'x "y"'}),
        (b"id,a\n1,x^,y\n", {"escape": "^"}, {"a": b"x,y"}),
        (b"id,a\n1,x\\\n", {}, {"a": b"x\\"}),
        (b"# Nodes: 1\n# id\ta\n1\t2\n", COMMENT, {"col_1": 2}),
        (b"id\ta\n1\t#2\n#\n", COMMENT, {"a": b"#2"}),
        (b"; x\nid a\n1 2\n", {"comment": ";"}, {"a": 2}),
        (b'#"\nid,a\n1,2\n#\\\n', ESCAPE | COMMENT, {"a": 2}),
    ],
)
def test_what_text_says(tmp_path, data, options, expected):
    assert cells_of(read(node_config(write(tmp_path, data), **options))) == [(1, expected)]


def test_a_tab_that_separates_is_no_blank_before_a_comment(tmp_path):
    path = write(tmp_path, b'id\ta\n\t#"\n')
    with pytest.raises(DataError) as caught:
        read(node_config(path, header="yes", comment="#"))
    assert str(caught.value).splitlines()[0] == f"{path}:2:3: a quote inside an unquoted field"


QUOTES = "write the whole field in double quotes and double those inside it"


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"id,a\n1,2\n3,x\\", ESCAPE, "{p}:3:4: the file ends behind an escape\n  fix: take the escape off, or escape it"),
        (b'id,a\n1,2\n3,"x\\"\n', ESCAPE, "{p}:3:3: a quote does not close\n  fix: close it; double the quotes inside a quoted field"),
        (b'id,a\n1,2\n3,x"\n', ESCAPE, "{p}:3:4: a quote inside an unquoted field\n  fix: " + QUOTES),
        (b'id,a\n1,2\n3,"\\""x\n', ESCAPE, "{p}:3:7: text follows a closing quote\n  fix: " + QUOTES),
        (
            b'id,a\n1,2\n3,"x\\"y"\n',
            {},
            "{p}:3:7: text follows a closing quote\n  fix: " + QUOTES + "; or pass --escape '\\' where backslashes escape",
        ),
        (b"id,a\n1,2\n3,x\\,4,5\n", ESCAPE, "{p}:3:8: expected 2 columns, found 3\n  fix: give every line as many columns as the "
         "first, empty ones where there is no value"),
        (b'"a\\\nb"c,d\n', ESCAPE | {"delimiter": ","}, "{p}:2:3: text follows a closing quote\n  fix: " + QUOTES),
        (b"id,a\n1,\\x\n", ESCAPE | {"columns": (("a", "int8"),)}, "{p}:2:3: field 'a' must be an integer, found 'x'\n"
         "  fix: repair the field, or declare another dtype with --column"),
    ],
)  # fmt: skip
def test_faults(tmp_path, data, options, message):
    path = write(tmp_path, data)
    with pytest.raises(DataError) as caught:
        read(node_config(path, **options))
    assert str(caught.value) == message.format(p=path)


@pytest.mark.parametrize("given", ["", "ab", "é", "a", "5", "-", " ", "\n", ","])
@pytest.mark.parametrize(("option", "example"), [("escape", "\\"), ("comment", "#")])
def test_characters_that_mean_something_else(tmp_path, option, example, given):
    with pytest.raises(UsageError) as caught:
        read(node_config(write(tmp_path, b"id,a\n1,2\n"), delimiter=",", place="--nodes user", **{option: given}))
    assert str(caught.value) == (
        f"--nodes user: {option} {given!r} cannot be told from data, quotes or delimiters\n"
        f"  fix: give one character such as '{example}'"
    )


def test_escapes_need_a_delimiter_of_one_character(tmp_path):
    with pytest.raises(UsageError) as caught:
        read(node_config(write(tmp_path, b"id a\n1 2\n"), delimiter=" ", place="nodes[0]", escape="\\"))
    assert str(caught.value) == (
        "nodes[0]: an escape needs a delimiter of one ASCII character, found ' '\n"
        "  fix: give such a delimiter, or leave out escape"
    )


def test_a_graph_config_says_both(tmp_path):
    path = tmp_path / "graph.yaml"
    path.write_text('nodes:\n  - {type: user, files: u.csv, escape: "\\\\", comment: "#"}\n')
    with Storage() as storage:
        config = load_graph(storage, str(path))
        table = config.nodes[0].table
        assert (table.escape, table.comment) == ("\\", "#")
        path.write_text(dump_graph(config))
    with Storage() as storage:
        assert load_graph(storage, str(path)) == config


def test_real_text_with_escapes(real_samples):
    path = real_samples / "tinysnb_csv" / "vOrganisation.csv"
    found = read(node_config(path, escape="\\"), block_bytes=100)
    with path.open(newline="") as file:
        records = list(csv.reader(file, escapechar="\\", doublequote=False))
    assert [key for _, key, _ in found.nodes] == [int(row[0]) for row in records] == [1, 4, 6]
    assert [cells["col_8"].decode() for *_, cells in found.nodes] == [row[8] for row in records]
    names = re.search(r"location: (\[.*?\])", found.nodes[1][2]["col_8"].decode())
    assert ast.literal_eval(names[1]) == ["vanco,uver north area"]
