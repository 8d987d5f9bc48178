"""Plain edge lists as Parquet: against pyarrow's own to_pylist, and every error to the letter."""

import dataclasses
import datetime
import io
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoders.chunked_graphs import null_vectors
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.decoders.cells.arrow import cast_numbers, scale_times
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.kernels.cpu.text import numbers
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.rows import Relation

relaxed = settings(deadline=None, max_examples=60)


class Files:
    """Just enough storage: files in a dict."""

    record_bytes = 1 << 28

    def __init__(self, files):
        self.files = files

    def head(self, url, num_bytes):
        return self.files[url][:num_bytes]

    def open(self, url):
        return io.BytesIO(self.files[url])


def parquet(table, row_group_size=None):
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=row_group_size)
    return sink.getvalue()


def edges(**columns):
    return pa.table({"s": pa.array([1, 2, 3]), "d": pa.array([4, 5, 6]), **columns})


def batches(table, max_rows=2, *, places=False, **options):
    data = parquet(table, row_group_size=3)
    files = Files({"e.parquet": data})
    decoder = EdgesDecoder(**options)
    (span,) = decoder.plan(files, ["e.parquet"]).spans
    assert (span.kind, span.start, span.stop) == ("table", 0, table.num_rows)
    return list(decoder.read(io.BytesIO(data), span, max_rows, places))


def values_of(found, name):
    """Return {row: value} and the dtypes and shapes of a column over all batches."""
    values, kinds, offset = {}, set(), 0
    for batch in found:
        for chunk in batch.edges.columns:
            if chunk.key.name != name:
                continue
            kinds.add((chunk.key.family, chunk.key.dtype, chunk.item_shape))
            assert chunk.counts.sum() == chunk.values.size and chunk.rows.size == chunk.counts.size
            stops = np.cumsum(chunk.counts)
            for row, stop, count in zip(chunk.rows, stops, chunk.counts, strict=True):
                part = chunk.values[stop - count : stop]
                if chunk.key.family == "binary":
                    values[offset + int(row)] = part.tobytes()
                else:
                    assert part.dtype.name == chunk.key.dtype
                    values[offset + int(row)] = part[0].item() if chunk.item_shape == () else part.tolist()
        offset += batch.num_records
    return values, kinds


CASES = [
    (pa.array([1, None, 3], pa.int8()), {0: 1, 2: 3}, ("numbers", "int8", ())),
    (pa.array([1, None, 2**64 - 1], pa.uint64()), {0: 1, 2: 2**64 - 1}, ("numbers", "uint64", ())),
    (pa.array([np.float16(0.5), None, np.float16(2)], pa.float16()), {0: 0.5, 2: 2.0}, ("numbers", "float16", ())),
    (pa.array([0.5, -math.inf, None]), {0: 0.5, 1: -math.inf}, ("numbers", "float64", ())),
    (pa.array([True, None, False]), {0: True, 2: False}, ("numbers", "bool", ())),
    (pa.array(["é", "", None]), {0: "é".encode(), 1: b""}, ("binary", "uint8", None)),
    (pa.array([b"\xff", None, b""], pa.large_binary()), {0: b"\xff", 2: b""}, ("binary", "uint8", None)),
    (pa.array([b"ab", None, b"cd"], pa.binary(2)), {0: b"ab", 2: b"cd"}, ("binary", "uint8", None)),
    (pa.array(["x", None, "x"]).dictionary_encode(), {0: b"x", 2: b"x"}, ("binary", "uint8", None)),
    (pa.array([1, None, 3], pa.timestamp("ms", "UTC")), {0: 1, 2: 3}, ("numbers", "int64", ())),
    (pa.array([datetime.date(1970, 1, 3), None, None], pa.date32()), {0: 2}, ("numbers", "int64", ())),
    (pa.array([datetime.date(1970, 1, 3), None, None], pa.date64()), {0: 2}, ("numbers", "int64", ())),  # so Parquet stores it
    (pa.array([[1, 2], None, [3, 4]]), {0: [1, 2], 2: [3, 4]}, ("numbers", "int64", (2,))),
    (pa.array([[1.5], [], None], pa.large_list(pa.float32())), {0: [1.5], 1: []}, ("numbers", "float32", None)),
    (
        pa.array([[1, 2], [5, 6], [3, 4]], pa.list_(pa.uint8(), 2)),
        {0: [1, 2], 1: [5, 6], 2: [3, 4]},
        ("numbers", "uint8", (2,)),
    ),
    pytest.param(
        *(pa.array([[1, 2], None, [3, 4]], pa.list_(pa.uint8(), 2)), {0: [1, 2], 2: [3, 4]}, ("numbers", "uint8", (2,))),
        marks=null_vectors,
    ),
    (
        pa.array([[[1, 2], [3, 4]], None, [[5, 6], [7, 8]]]),
        {0: [1, 2, 3, 4], 2: [5, 6, 7, 8]},
        ("numbers", "int64", (2, 2)),
    ),
    (pa.array([[[1], [3, 4]], [[]], None]), {0: [1, 3, 4], 1: []}, ("numbers", "int64", None)),
    (pa.nulls(3), {}, ("numbers", "int64", ())),
    (pa.nulls(3, pa.int16()), {}, ("numbers", "int16", ())),
]


@pytest.mark.parametrize(("array", "want", "kind"), CASES, ids=lambda value: str(getattr(value, "type", "")))
def test_further_columns(array, want, kind):
    found, kinds = values_of(batches(edges(x=array), max_rows=10), "x")
    assert (found, kinds) == (want, {kind})
    found, _ = values_of(batches(edges(x=array), max_rows=1), "x")
    assert found == want
    sliced = edges(x=array).slice(1)
    assert values_of(batches(sliced), "x")[0] == {row - 1: value for row, value in want.items() if row}


@relaxed
@given(
    st.lists(
        st.tuples(
            st.integers(0, 2**64 - 1),
            st.integers(0, 2**63 - 1),
            st.none() | st.floats(width=32, allow_nan=False),
            st.none() | st.text(max_size=4),
            st.none() | st.lists(st.integers(-5, 5), max_size=3),
        ),
        max_size=12,
    ),
    st.integers(1, 5),
)
def test_agrees_with_pyarrow_for_any_batch_size(rows, max_rows):
    types = [pa.uint64(), pa.int64(), pa.float32(), pa.string(), pa.list_(pa.int32())]
    columns = list(zip(*rows, strict=True)) or [()] * 5
    table = pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=list("sdwtl"))
    found = batches(table, max_rows, weight_col="w", places=True)
    assert [raw for batch in found for raw in batch.edges.src.tolist()] == [row[0] for row in rows]
    assert [raw for batch in found for raw in batch.edges.dst.tolist()] == [row[1] for row in rows]
    assert all(batch.edges.at_src.tolist() == list(range(batch.num_records)) for batch in found)
    assert all(batch.edges.relation_names == (Relation("_E", "_N", "_N"),) for batch in found)
    for name, position in (("weight", 2), ("t", 3), ("l", 4)):
        want = {i: row[position] for i, row in enumerate(rows) if row[position] is not None}
        values, kinds = values_of(found, name)
        if name == "t":
            want = {i: value.encode() for i, value in want.items()}
        if name == "l":  # a batch whose lists are all of one length is dense
            values = {i: value if isinstance(value, list) else [value] for i, value in values.items()}
        assert values == want
        assert len({kind[:2] for kind in kinds}) <= 1


def test_columns_by_flags():
    table = pa.table({"t": pa.array([5.0, None]), "b": [1, 2], "a": pa.array([3, 4], pa.int8()), "w": [7, None], "x": [0, 0]})
    found = batches(table, src_col="a", dst_col="1", weight_col="w", time_col="t", drop_columns=["x"], index_base=1)
    assert (found[0].edges.src.tolist(), found[0].edges.dst.tolist()) == ([2, 3], [0, 1])
    assert [(c.key.name, c.key.dtype, c.key.role, c.values.tolist()) for c in found[0].edges.columns] == [
        ("weight", "float32", "weight", [7.0]),
        ("time", "int64", "time", [5]),
    ]


@pytest.mark.parametrize(
    ("array", "dtype", "want"),
    [
        (pa.array([1, None, 255]), "uint8", {0: 1, 2: 255}),
        (pa.array([1.0, None, -3.0]), "int16", {0: 1, 2: -3}),
        (pa.array([0.1, None, 2.0]), "float32", {0: float(np.float32(0.1)), 2: 2.0}),
        (pa.array([2**53 + 1, None, 0]), "float64", {0: float(2**53), 2: 0.0}),
        (pa.array([1, None, 0]), "bool", {0: True, 2: False}),
        (pa.array([True, None, False]), "int8", {0: 1, 2: 0}),
        (pa.array(["7", None, " "]), "int32", {0: 7}),
        (pa.array([[1, 2], None, [3]]), "uint8", {0: [1, 2], 2: [3]}),
        (pa.array(["7", None, ""]), "binary", {0: b"7", 2: b""}),
        (pa.nulls(3), "binary", {}),
        (pa.nulls(3), "int8", {}),
    ],
)
def test_declared_dtypes(array, dtype, want):
    values, kinds = values_of(batches(edges(x=array), max_rows=10, columns=(f"x={dtype}",)), "x")
    assert values == want
    assert {kind[1] for kind in kinds} == {"uint8" if dtype == "binary" else dtype}


REPAIR_TIP = "repair the field, or declare another dtype with --column"


@pytest.mark.parametrize(
    ("table", "options", "message", "place", "fix"),
    [
        (
            pa.table({"s": [1, None], "d": [1, 2]}),
            {},
            "field 'src' is empty",
            (1, "s"),
            "give every edge a source and a destination",
        ),
        (
            pa.table({"s": [1, 2], "d": [1, -2]}),
            {},
            "field 'dst' must not be negative, found -2",
            (1, "d"),
            "give every node an ID of 0 or more, or declare signed IDs with --id-type int",
        ),
        (
            pa.table({"s": pa.array([1, 0], pa.uint8()), "d": [1, 2]}),
            {"index_base": 1},
            "field 'src' must be at least 1, found 0",
            (1, "s"),
            "leave out --index-base where IDs count from 0",
        ),
        (
            edges(w=pa.array([1.0, None, 1e39])),
            {"weight_col": "w"},
            "field 'weight' is too large for float32, found 1e+39",
            (2, "w"),
            "pass --weight-dtype float64",
        ),
        (
            edges(t=pa.array([1.0, None, 1.5])),
            {"time_col": "t"},
            "field 'time' must be a whole number, found 1.5",
            (2, "t"),
            "pass --time-unit ms, us or ns to multiply times in seconds",
        ),
        (
            edges(t=pa.array([1, None, 2**62])),
            {"time_col": "t", "time_unit": "ms"},
            "field 'time' does not fit int64, found 4611686018427387904",
            (2, "t"),
            "take a coarser --time-unit, or repair the field",
        ),
        (
            edges(x=pa.array([1, None, 300])),
            {"columns": ("x=uint8",)},
            "field 'x' does not fit uint8, found 300",
            (2, "x"),
            "declare a wider dtype: --column x=…",
        ),
        (
            edges(x=pa.array([1.0, 2.5, None])),
            {"columns": ("x=int8",)},
            "field 'x' must be an integer, found 2.5",
            (1, "x"),
            REPAIR_TIP,
        ),
        (
            edges(x=pa.array([[1], None, [2, 300]])),
            {"columns": ("x=uint8",)},
            "field 'x' does not fit uint8, found 300",
            (2, "x"),
            "declare a wider dtype: --column x=…",
        ),
        (
            edges(x=pa.array(["1", None, "y"])),
            {"columns": ("x=int8",)},
            "field 'x' must be an integer, found 'y'",
            (2, "x"),
            REPAIR_TIP,
        ),
        (
            edges(x=pa.array([1, 2, 3])),
            {"columns": ("x=binary",)},
            "field 'x' must be text, found int64",
            (0, "x"),
            "declare a dtype of numbers with --column",
        ),
        (
            edges(x=pa.array([[1], None, [2, None]])),
            {},
            "a null inside a list",
            (2, "x"),
            "fill the value, or leave the whole list out",
        ),
        (
            edges(x=pa.array([b"a", None, b"\xff"]).view(pa.string())),
            {},
            "field 'x' is not UTF-8, found '\ufffd'",
            (2, "x"),
            "convert the file to UTF-8, or leave the column out",
        ),
    ],
)
def test_faulty_rows(table, options, message, place, fix):
    with pytest.raises(DecodeError) as caught:
        batches(table, max_rows=10, **options)
    assert (caught.value.message, (caught.value.at, caught.value.column), caught.value.fix) == (message, place, fix)


@pytest.mark.parametrize(
    ("table", "options", "kind", "text"),
    [
        (
            pa.table({"s": [1.0], "d": [1]}),
            {},
            DataError,
            "e.parquet: column 's': IDs must be integers or strings, found double\n  fix: cast it to int64, uint64 or string",
        ),
        (
            pa.table({"s": [1], "d": [True]}),
            {},
            DataError,
            "e.parquet: column 'd': IDs must be integers or strings, found bool\n  fix: cast it to int64, uint64 or string",
        ),
        (
            edges(w=pa.array(["1", "2", "3"])),
            {"weight_col": "w"},
            DataError,
            "e.parquet: column 'w': weights must be numbers, found string\n  fix: cast it to float64",
        ),
        (
            edges(t=pa.array(["1", "2", "3"])),
            {"time_col": "t"},
            DataError,
            "e.parquet: column 't': times must be numbers, timestamps or dates, found string\n"
            "  fix: cast it to int64 or timestamp; times that are text are read in tables: --edges SRC:REL:DST=FILE, with "
            "--time-col COL --column 'COL=timestamp[s]'",
        ),
        (
            edges(t=pa.array([1, 2, 3], pa.timestamp("ms"))),
            {"time_col": "t", "time_unit": "ms"},
            UsageError,
            "--time-unit is for times in seconds, but column 't' of e.parquet holds timestamp[ms]\n"
            "  fix: leave out --time-unit: timestamps and dates are stored as they are",
        ),
        (
            edges(x=pa.array([{"a": 1}] * 3)),
            {},
            DataError,
            "e.parquet: column 'x': features must be numbers, bools, texts, timestamps, dates, or lists of numbers, "
            "found struct<a: int64>\n  fix: cast it, or pass --drop-column x",
        ),
        (
            pa.table({"s": [1]}),
            {},
            DataError,
            "e.parquet: 1 column, found 's'; an edge needs two\n"
            "  fix: name the character between the columns with --delimiter, or the format with --format",
        ),
        (
            edges(),
            {"weight_col": "w"},
            UsageError,
            "--weight-col w: e.parquet has no such column\n  fix: its columns have positions 0 to 1, and s, d",
        ),
    ],
)
def test_faulty_files(table, options, kind, text):
    with pytest.raises(kind) as caught:
        batches(table, **options)
    assert str(caught.value) == text


def test_a_damaged_file():
    data = parquet(edges())
    with pytest.raises(DataError) as caught:
        EdgesDecoder().plan(Files({"e": data[:-6]}), ["e"])
    assert str(caught.value).startswith("e: this Parquet file cannot be read: ")
    assert str(caught.value).endswith("\n  fix: write the file again; it may be cut off")


def test_text_and_parquet_go_together():
    text = b"1,2,3\n"
    decoder = EdgesDecoder(weight_col="w")
    files = Files({"e.csv": text, "e.parquet": parquet(edges(w=[0.5, 1.0, 2.0]))})
    spans = decoder.plan(files, ["e.csv", "e.parquet"]).spans
    assert [(span.kind, span.detail.weight) for span in spans] == [("text", 2), ("table", 2)]
    with pytest.raises(DataError) as caught:
        EdgesDecoder().plan(Files(files.files | {"e.csv": b"a,b,c\n1,2,3\n"}), ["e.parquet", "e.csv"])
    assert str(caught.value) == (
        "e.csv:1:1: its further columns are c, but those of e.parquet are w\n"
        "  fix: convert files with other columns on their own, or leave columns out with --drop-column"
    )


@relaxed
@given(
    st.lists(st.integers(-300, 300) | st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4)
    | st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4)
    | st.lists(st.floats() | st.integers(-300, 300).map(float), min_size=1, max_size=4),
    st.sampled_from(["bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"]),
)
@example([2.0**63], "int64")
@example([2.0**64], "uint64")
@example([-1.0], "uint64")
def test_casts_agree_with_the_naive_loop(values, dtype):
    array = np.array(values)
    with np.errstate(over="ignore"):
        found, code, at = cast_numbers(array, np.dtype(dtype))
    target = np.dtype(dtype)
    for i, value in enumerate(array.tolist()):
        if target.kind == "f":
            with np.errstate(over="ignore"):
                want = target.type(np.float64(value))
            fits = not (np.isinf(want) and math.isfinite(value))
        else:
            limits = (0, 1) if dtype == "bool" else (np.iinfo(target).min, np.iinfo(target).max)
            fits = math.isfinite(value) and value == int(value) and limits[0] <= int(value) <= limits[1]
            want = target.type(int(value)) if fits else None
        if not fits:
            broken = not math.isfinite(value) or value != int(value) or dtype == "bool"
            assert (code, at) == (numbers.INVALID if broken and target.kind != "f" else numbers.OVERFLOW, i)
            return
        if at < 0:
            np.testing.assert_array_equal(found[i], want)
    assert at == -1


@relaxed
@given(st.floats(-1e13, 1e13) | st.integers(-(10**15), 10**15).map(lambda i: i / 1000), st.sampled_from([0, 3, 6, 9]))
@example(1307526243.27345, 9)
@example(1700000000.1234567, 9)
@example(9007199254740993.0, 3)
@example(1e10, 9)
@example(math.nan, 3)
def test_float_times_stand_for_their_decimal_texts(value, scale):
    found, code, at = scale_times(np.array([value]), scale)
    if math.isnan(value):
        assert (code, at) == (numbers.INVALID, 0)
        return
    exact = Fraction(repr(value)) * 10**scale
    if exact.denominator != 1:
        assert (code, at) == (numbers.FRACTION, 0)
    elif not -(2**63) <= exact < 2**63:
        assert (code, at) == (numbers.OVERFLOW, 0)
    else:
        assert (found[0], at) == (exact, -1)


@relaxed
@given(st.integers(0, 10), st.integers(-1, 10), st.integers(1, 4), st.integers(1, 7))
def test_a_span_reads_its_rows_only(start, stop, max_rows, row_group_size):
    data = parquet(pa.table({"s": range(9), "d": range(9)}), row_group_size)
    decoder = EdgesDecoder()
    (span,) = decoder.plan(Files({"e": data}), ["e"]).spans
    part = dataclasses.replace(span, start=start, stop=stop)
    found = list(decoder.read(io.BytesIO(data), part, max_rows))
    assert [raw for batch in found for raw in batch.edges.src.tolist()] == list(range(9))[start : 9 if stop < 0 else stop]
    assert all(0 < batch.num_records <= max_rows for batch in found)
