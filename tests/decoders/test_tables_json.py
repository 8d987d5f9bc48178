"""Tables of JSON lines: against the json module, and every error to the letter."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables_read import node_config, read

from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, NodeOwner, TableLayout
from graphprep.decoders.tables.json import JsonReader
from graphprep.model.errors import DataError
from graphprep.testing.contract import DecoderContract

relaxed = settings(deadline=None, max_examples=60)


class TestJsonReader(DecoderContract):
    lines = (
        b'{"id": 1, "text": "a\\"b", "list": [1, 2], "real": 0.5}',
        b'{"real": 1e3, "id": "22", "text": null, "late": true}',
        b' {"id":18446744073709551615,"list":[]}',
        b'{"id": 4, "list": null, "text": 7}',
        b'{"id": 5, "real": -2, "text": "\\u00e9"}',
    )
    bad_lines = (
        (b'{"id": "x"}', "field 'id' must be an integer, found 'x'"),
        (b'{"id": 1.0}', "field 'id' must be a string or an integer"),
        (b'{"id": true}', "field 'id' must be a string or an integer"),
        (b'{"id": null}', "field 'id' is empty"),
        (b'{"real": 1}', "field 'id' is empty"),
        (b'{"id": -1}', "field 'id' must not be negative, found '-1'"),
        (b'{"id": 1, "id": 2}', "key 'id' stands twice in one object"),
        (b'{"id": 1, "real": "x"}', "field 'real' must be a number, found 'x'"),
        (b'{"id": 1, "real": [1]}', "field 'real' must be one value, not a list or an object"),
        (b'{"id": 1, "real": {}}', "field 'real' must be one value, not a list or an object"),
        (b'{"id": 1, "list": [[1]]}', "field 'list' must be a list of numbers"),
        (b'{"id": 1, "list": [1, "x"]}', "field 'list' must be a list of numbers, found \"x\""),
        (b'{"id": 1, "list": [1.5]}', "field 'list' must be an integer, found 1.5"),
        (b'{"id": 1, "list": 3}', "field 'list' must be a list of numbers"),
        (b'{"id": 1, "text": "\\ud800"}', "a text holds a lone surrogate"),
        (b"[1]", "a record must be a JSON object"),
        (b'{"id": 1', "the line ends inside a JSON document"),
    )
    at_ids = False  # an ID may be a text

    def make(self):
        layout = TableLayout(
            owner=NodeOwner("user"),
            ids=(IdField("id", 0),),
            features=(
                FeatureColumn("text", "text", 1, ColumnType("binary")),
                FeatureColumn("list", "list", 2, ColumnType("int32", is_list=True)),
                FeatureColumn("real", "real", 3, ColumnType("float64")),
            ),
            names=("id", "text", "list", "real"),
        )
        return JsonReader(layout)


def write(tmp_path, records, name="t.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


SMALL = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
RECORDS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "text": st.none() | st.text(st.characters(exclude_categories=("Cs",)), max_size=5),
            "number": st.none() | SMALL,
            "flag": st.none() | st.booleans(),
            "list": st.none() | st.lists(st.integers(-9, 9) | st.floats(-1, 1), max_size=3),
            'é"\n': st.integers(0, 9),
        },
    ),
    max_size=8,
)


@relaxed
@given(records=RECORDS, block_bytes=st.integers(1, 120), names=st.booleans())
@example(records=[{"number": 9007199254740993}, {"number": 0.0}], block_bytes=1, names=False)
@example(records=[{"number": 9007199254740993}, {"number": 0.0}], block_bytes=120, names=False)
@example(records=[{"number": 9007199254740993}], block_bytes=120, names=False)
def test_values_are_those_that_the_json_module_reads(tmp_path_factory, records, block_bytes, names):
    # The first record settles which columns hold lists.
    first = {"id": "first" if names else 1000, "list": [0]}
    records = [first, *({"id": f"k{i}" if names else i, **record} for i, record in enumerate(records))]
    path = write(tmp_path_factory.mktemp("json"), records)
    found = read(node_config(path), block_bytes=block_bytes, places=True)
    expected = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(found.nodes) == len(expected)
    # A number that is no integer makes its column float64, in whatever block it stands: there, integers are rounded.
    floats = {name for record in expected for name, value in record.items() if holds_float(value)}
    for (_, key, cells), record in zip(found.nodes, expected, strict=True):
        assert key == record.pop("id")
        plain = {name: value.encode() if isinstance(value, str) else value for name, value in record.items()}
        wanted = {name: value for name, value in plain.items() if value is not None}
        for row in (cells, wanted):
            row.update({name: as_floats(value) for name, value in row.items() if name in floats})
        assert cells == wanted
    for (_, name), dtypes in found.dtypes.items():
        assert ("float64" in dtypes) == (name in floats)
        assert len(dtypes) == 1 or dtypes == {"int64", "float64"}


def holds_float(value):
    return any(isinstance(one, float) for one in (value if isinstance(value, list) else [value]))


def as_floats(value):
    return [float(one) for one in value] if isinstance(value, list) else float(value)


def test_many_keys_and_keys_with_escapes(tmp_path):
    path = tmp_path / "t.jsonl"
    many = [{"id": number, **{f"k{(7 * number + i) % 300}": i for i in range(150)}} for number in range(4)]
    path.write_text('{"id": 9, "é": 1}\n{"\\u00e9": 2, "\\u0069d": 8}\n' + "".join(json.dumps(row) + "\n" for row in many))
    found = read(node_config(path), block_bytes=1 << 20)
    assert found.nodes[:2] == [("user", 9, {"é": 1}), ("user", 8, {"é": 2})]
    for (_, key, cells), row in zip(found.nodes[2:], many, strict=True):
        assert {"id": key, **cells} == row


def test_mixed_scalars_are_text_over_the_whole_file(tmp_path):
    path = write(tmp_path, [{"id": 1, "a": 1}, {"id": 2, "a": True}, {"id": 3, "a": "x"}, {"id": 4, "a": -1.50}])
    for size in (1, 1 << 20):
        found = read(node_config(path), block_bytes=size)
        assert [cells["a"] for *_, cells in found.nodes] == [b"1", b"true", b"x", b"-1.5"]


def test_options(tmp_path):
    path = write(tmp_path, [{"id": 1, "a": "5", "b": 2}, {"id": 2, "c": 3, "d": "2020-01-02", "e": [1, 2]}])
    columns = (("a", "int8"), ("d", "date"), ("e", "list<float32>[2]"))
    found = read(node_config(path, columns=columns, dropped=("b",), renamed=(("c", "f"),)))
    assert found.nodes == [("user", 1, {"a": 5}), ("user", 2, {"f": 3, "d": 18263, "e": [1.0, 2.0]})]
    assert found.dtypes[("nodes user", "e")] == {"float32"}
    assert read(node_config(path, kept=("b",))).nodes == [("user", 1, {"b": 2}), ("user", 2, {})]


def test_lists_and_dates_are_written_as_text_or_not_beside_each_other(tmp_path):
    records = [
        {"id": 1, "list": [1, 2], "bools": [True, 0], "day": 5},
        {"id": 2, "list": "3,4,5", "bools": "false,1", "day": "2020-01-02"},
        {"id": 3, "list": "[]", "day": "1969-12-31"},
        {"id": 4, "list": "", "bools": [], "day": -7},
        {"id": 5, "list": [6], "bools": [1, False, True], "day": None},
    ]
    path = write(tmp_path, records)
    columns = (("list", "list<int16>"), ("bools", "list<bool>"), ("day", "date"))
    for size in (1, 90, 1 << 20):
        found = read(node_config(path, columns=columns), block_bytes=size)
        assert [cells for *_, cells in found.nodes] == [
            {"list": [1, 2], "bools": [True, False], "day": 5},
            {"list": [3, 4, 5], "bools": [False, True], "day": 18263},
            {"list": [], "day": -1},
            {"bools": [], "day": -7},
            {"list": [6], "bools": [True, False, True]},
        ]
        assert {name: dtypes for (_, name), dtypes in found.dtypes.items()} == {
            "list": {"int16"}, "bools": {"bool"}, "day": {"int64[day]"}
        }  # fmt: skip


def test_a_number_beyond_float64_beside_texts(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"id": 1, "a": "x"}\n{"id": 2, "a": -1e999}\n')
    for size in (1, 1 << 20):
        with pytest.raises(DataError, match=":2:16: field 'a' does not fit float64, found -1e999"):
            read(node_config(path), block_bytes=size)
        found = read(node_config(path, columns=(("a", "binary"),)), block_bytes=size)
        assert [cells["a"] for *_, cells in found.nodes] == [b"x", b"-1e999"]


def test_numbered_rows(tmp_path):
    one, two = write(tmp_path, [{"a": 1}, {"a": 2}], "1.jsonl"), write(tmp_path, [{"a": 3}], "2.jsonl")
    assert read(node_config(one, two, row_ids=True)).nodes == [("user", i, {"a": i + 1}) for i in range(3)]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            '{"id": 1, "a": 2}\n{"id": 2, "a": [3]}\n',
            {},
            ":2:16: field 'a' must be one value, not a list or an object\n"
            "  fix: declare lists with --column a=list<float64>, or leave the column out with --drop-column",
        ),
        (
            '{"id": 1, "a": [2]}\n{"id": 2, "a": 3}\n',
            {},
            ":2:16: field 'a' must be a list of numbers, as in the records before\n"
            "  fix: write one flat object a line; leave a column out with --drop-column",
        ),
        (
            '{"id": 1, "a": {"b": 2}}\n',
            {},
            ":1:16: field 'a' must be one value, not a list or an object\n"
            "  fix: declare lists with --column a=list<float64>, or leave the column out with --drop-column",
        ),
        (
            '{"id": 1}\n{"a": 2}\n',
            {},
            ":2:1: field 'id' is empty\n  fix: give every row its keys, or leave the row out",
        ),
        (
            '{"id": 1, "a": 300}\n',
            {"columns": (("a", "uint8"),)},
            ":1:16: field 'a' does not fit uint8, found '300'\n  fix: declare a wider dtype: --column a=…",
        ),
        (
            '{"id": 1, "a": [1]}\n',
            {"columns": (("a", "list<uint8>[2]"),)},
            ":1:16: field 'a' must hold 2 values, found 1\n  fix: repair the row, or declare list<dtype>",
        ),
        (
            '{"id": 1, "a": 9223372036854775808}\n',
            {"columns": (("a", "timestamp[ms]"),)},
            ":1:16: field 'a' does not fit int64 in ms, found '9223372036854775808'\n  fix: declare a coarser unit: us, ms or s",
        ),
        (
            '{"id": 1, "a": [true, 2]}\n',
            {"columns": (("a", "list<bool>"),)},
            ":1:23: field 'a' must be 0, 1, true or false, found 2\n"
            "  fix: repair the field, or declare another dtype with --column",
        ),
        ('[1, 2]\n', {"format": "jsonl"}, ":1:1: a record must be a JSON object\n"
         "  fix: write one flat object a line; leave a column out with --drop-column"),
        ('{"id": 1, }\n', {}, ":1:11: a comma stands before '}'\n"
         "  fix: leave the comma out"),
    ],
)  # fmt: skip
def test_bad_lines(tmp_path, text, options, message):
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        read(node_config(path, **options), block_bytes=10)
    assert str(caught.value) == f"{path}{message}"
