"""Fields of delimited lines, and columns of numbers, against str.split, the csv module, int() and float()."""

import csv
import io
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text import delimited
from graphprep.kernels.cpu.text.numbers import EMPTY, INVALID, NEGATIVE, OK, OVERFLOW

FIELDS = st.one_of(
    st.integers(0, 10**9).map(lambda value: str(value).encode()),
    st.sampled_from([b"", b"a", b" b ", b"x" * 31, b"y" * 40, b"\xc3\xa9", b"\r", b"7\r8", b"#", b"it's"]),
)


@st.composite
def texts(draw):
    """Draw lines of a delimiter, most of one width, and what columns there are."""
    delimiter = draw(st.sampled_from([b",", b"\t", b";", b"|"]))
    width = draw(st.integers(1, 5))
    lines = []
    for _ in range(draw(st.integers(0, 40))):
        count = draw(st.sampled_from([width] * 40 + [width - 1, width + 1]))
        lines.append(delimiter.join(draw(st.lists(FIELDS, min_size=count, max_size=count))))
        lines += draw(st.sampled_from([[]] * 12 + [[b""], [b"  "], [b"# 1"], [b" %"], [b"\r"]]))
    end = draw(st.sampled_from([b"\n", b"\r\n"]))
    text = b"".join(line + end for line in lines)
    return text[: len(text) - draw(st.sampled_from([0, 0, len(end)]))], delimiter, width


def naive(text, delimiter, width, skipped=b" \t"):
    """Split lines as the module says: rows of (start, stop), and (code, position, columns) of a fault."""
    rows, at = [], 0
    for whole in text.split(b"\n"):
        line = whole.removesuffix(b"\r")
        bare = line.lstrip(skipped)
        if bare and bare[:1] not in (b"#", b"%"):
            fields = line.split(delimiter)
            starts = [at + sum(len(field) + 1 for field in fields[:i]) for i in range(len(fields))]
            if len(fields) < width:
                return rows, (delimited.TOO_FEW, at + len(line), len(fields))
            if len(fields) > width:
                return rows, (delimited.TOO_MANY, starts[width], len(fields))
            rows.append([(start, start + len(field)) for start, field in zip(starts, fields, strict=True)])
        at += len(whole) + 1
    return rows, (OK, -1, 0)


def split(text, delimiter, slots, *, quoted=False):
    start, stop, bad = delimited.split_fields(
        np.frombuffer(text, np.uint8), 0, np.frombuffer(delimiter, np.uint8), quoted, np.array(slots, np.int64)
    )
    return start, stop, tuple(bad[0].tolist()) if bad.size else (OK, -1, 0)


@settings(deadline=None, max_examples=300)
@given(texts(), st.booleans(), st.data())
@example((b"1,2\n" * 40 + b"1,2,3\n" + b"1,2\n" * 40, b",", 2), False, None)
@example((b"1,2\n" * 40 + b"1\n" + b"1,2\n" * 40, b",", 2), True, None)
@example((b"1,\r\n" * 40 + b",\r\n" * 40, b",", 2), True, None)
def test_fields_are_where_split_finds_them(drawn, quoted, data):
    text, delimiter, width = drawn
    kept = [column for column in range(width) if data is None or data.draw(st.booleans())]
    slots = [kept.index(column) if column in kept else -1 for column in range(width)]
    start, stop, fault = split(text, delimiter, slots, quoted=quoted)
    rows, expected = naive(text, delimiter, width)
    assert fault == expected
    for slot, column in enumerate(kept):
        assert list(zip(start[slot].tolist(), stop[slot].tolist(), strict=True)) == [row[column] for row in rows]


BLANKS = st.sampled_from([b" "] * 8 + [b"\t", b"\t", b"  ", b" \t"])
WORDS = st.sampled_from([b"1", b"22", b"a,b", b'"', b"x" * 33, b"#", b"\xc3\xa9"])


@settings(deadline=None, max_examples=300)
@given(st.data(), st.integers(1, 4), st.sampled_from([b"\n", b"\r\n", b" \n"]))
def test_runs_of_blanks_separate(data, width, end):
    lines = []
    for _ in range(data.draw(st.integers(0, 40))):
        words = data.draw(st.lists(WORDS, min_size=width, max_size=width))
        line = b"".join(word + data.draw(BLANKS) for word in words)[: -1 if data.draw(st.integers(0, 9)) else None]
        lines.append(data.draw(st.sampled_from([b""] * 9 + [b" ", b"\t"])) + line + end)
    text = b"".join(lines)
    start, stop, fault = split(text, b"", range(width))
    expected = [line.split() for line in text.splitlines() if not line.split()[0].startswith(b"#")]
    wrong = next((row for row, fields in enumerate(expected) if len(fields) != width), len(expected))
    assert (fault[0] == OK) == (wrong == len(expected))
    found = [
        [text[low:high] for low, high in zip(*row, strict=True)] for row in zip(start.T.tolist(), stop.T.tolist(), strict=True)
    ]
    assert found == expected[:wrong]


@settings(deadline=None, max_examples=200)
@given(st.lists(st.lists(st.text(alphabet='ab1",; ', max_size=12), min_size=3, max_size=3), max_size=30), st.integers(0, 2))
def test_quotes_are_those_of_the_csv_module(rows, quoting):
    rows = [row for row in rows if row[0].strip()]
    out = io.StringIO()
    csv.writer(out, quoting=(csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC)[quoting], lineterminator="\n").writerows(
        rows
    )
    text = out.getvalue().encode()
    start, stop, fault = split(text, b",", [0, 1, 2], quoted=True)
    assert fault == (OK, -1, 0)
    found = [
        [
            text[low : ~high if high < 0 else high].decode().replace('""', '"' if high < 0 else '""')
            for low, high in zip(*ends, strict=True)
        ]
        for ends in zip(start.T.tolist(), stop.T.tolist(), strict=True)
    ]
    assert found == rows == list(csv.reader(io.StringIO(out.getvalue())))


NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 10**6).map(str),
    st.floats().map(repr),
    st.sampled_from(
        ["", " 7 ", "+5", "-0", "007", "1.5", "1e3", "x", "9" * 18, "9" * 19, "18446744073709551615", str(2**63), "-"]
    ),
)


def columns_of(fields):
    text = "".join(f"{field},\n" for field in fields).encode()
    start, stop, _ = split(text, b",", [0, -1])
    return np.frombuffer(text, np.uint8), start[0], stop[0]


def expected_ints(fields, low, high):
    """Return (rows, values, codes) as int() has them; the code of empty fields is EMPTY."""
    rows, values, codes = [], [], []
    for row, field in enumerate(fields):
        text = field.strip(" \t")
        if not text:
            codes.append(EMPTY)
        elif not text.lstrip("+-").isdigit() or len(text) - len(text.lstrip("+-")) > 1:
            codes.append(INVALID)
        elif not low <= int(text) <= high:
            codes.append(OVERFLOW)
        else:
            rows.append(row)
            values.append(int(text))
            codes.append(OK)
    return rows, values, codes


def without_empty(codes):
    return [OK if code == EMPTY else code for code in codes]


@settings(deadline=None, max_examples=300)
@given(st.lists(NUMBERS, max_size=30))
@example(["5"] * 30 + ["9" * 19, "-9", "12345678"])
def test_integers_are_those_of_int(fields):
    cells = columns_of(fields)
    for dtype in ("int64", "uint64", "int8", "uint8"):
        limits = np.iinfo(dtype)
        rows, values, codes = expected_ints(fields, int(limits.min), int(limits.max))
        found = delimited.parse_column(dtype, *cells)
        assert [column.tolist() for column in found] == [rows, values, without_empty(codes)]
        assert found[1].dtype == dtype
        dense, found_codes = delimited.parse_numbers(dtype, *cells)
        assert (dense[rows].tolist(), found_codes.tolist()) == (values, codes)


@settings(deadline=None, max_examples=200)
@given(st.lists(NUMBERS, max_size=30), st.integers(0, 1))
def test_ids_are_those_of_int(fields, base):
    cells = columns_of(fields)
    for signed, low, high in ((False, 0, 2**64 - 1), (True, -(2**63), 2**63 - 1)):
        ids, found = delimited.parse_ids(*cells, base, signed)
        rows, values, codes = expected_ints(fields, low, high)
        for row, value in zip(rows, values, strict=True):
            if base and value < base:
                codes[row] = delimited.BELOW_BASE
            else:
                assert ids[row].astype(np.int64 if signed else np.uint64) == value - base
        negative = [not signed and field.strip(" \t").startswith("-") for field in fields]
        codes = [NEGATIVE if code == OVERFLOW and is_low else code for code, is_low in zip(codes, negative, strict=True)]
        assert found.tolist() == codes


@settings(deadline=None, max_examples=300)
@given(st.lists(NUMBERS, max_size=30), st.sampled_from(["float64", "float32", "float16"]))
@example(["1e39", "65520", "65519"], "float32")
@example(["1e39", "65520", "65519"], "float16")
def test_floats_are_those_of_float(fields, dtype):
    rows, values, codes = delimited.parse_column(dtype, *columns_of(fields))
    expected, wanted = [], []
    for number, field in enumerate(fields):
        wanted.append(OK)
        if field.strip():
            try:
                with np.errstate(over="ignore"):
                    value = np.float64(float(field)).astype(dtype)
            except ValueError:
                wanted[-1] = INVALID
                continue
            if np.isinf(value) and "inf" not in field:
                wanted[-1] = OVERFLOW
            else:
                expected.append((number, value))
    assert codes.tolist() == wanted
    assert rows.tolist() == [number for number, _ in expected]
    for value, (_, other) in zip(values.tolist(), expected, strict=True):
        assert value == other or (math.isnan(value) and math.isnan(other))
        assert math.copysign(1, value) == math.copysign(1, other) or math.isnan(other)


def test_no_integer_keeps_the_sign_of_zero():
    cells = columns_of(["0", "-0", " -00", "-1", ""])
    assert delimited.parse_column("int64", *cells)[2].tolist() == [OK] * 5
    assert delimited.parse_column("int64", *cells, keep_sign=True)[2].tolist() == [OK, INVALID, INVALID, OK, OK]


def test_bools_are_words_and_digits():
    rows, values, codes = delimited.parse_column("bool", *columns_of(["0", "1", "TRUE", " false ", "2", "", "yes"]))
    assert (rows.tolist(), values.tolist()) == ([0, 1, 2, 3], [False, True, True, False])
    assert codes.tolist() == [OK, OK, OK, OK, INVALID, OK, INVALID]


@pytest.mark.parametrize("scale", [0, 3])
def test_times_are_scaled(scale):
    fields = ["0", "1700000000", "12.5" if scale else "12", "-3", " 4 "] * 8
    rows, values, codes = delimited.parse_times(*columns_of(fields), scale)
    assert (codes.any(), rows.size) == (False, 40)
    assert values.tolist() == [int(float(field) * 10**scale) for field in fields]
