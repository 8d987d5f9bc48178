"""Plain lines to columns, against regular expressions and Python's int() and float()."""

import math
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.bytes.words import MOST_DIGITS
from graphprep.kernels.cpu.text import pairs
from graphprep.kernels.cpu.text.numbers import OK
from graphprep.kernels.cpu.text.pairs import IS_FULL, NOT_PLAIN, TOO_WIDE, count_lines, parse_pairs, parse_weighted_pairs

DELIMITERS = [b"", b"\t", b",", b";", b" "]
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?(inf|infinity|nan)", re.IGNORECASE)


def naive(text: bytes, delimiter: bytes, weighted: bool, high: int, room: int):
    """Parse lines as the module says: (rows, code, position)."""
    blank = {b"\t": rb"[ ]", b" ": rb"\t"}.get(delimiter, rb"[ \t]")
    between = blank + rb"+" if not delimiter else blank + rb"*" + re.escape(delimiter) + blank + rb"*"
    digits = rb"(\d{1,%d})" % MOST_DIGITS
    end = between + rb"([^\n]*?)" if weighted else blank + rb"*"
    plain = re.compile(blank + rb"*" + digits + between + digits + rb"(?!\d)" + end + rb"\r?")
    rows, at = [], 0
    for line in text.splitlines(keepends=True) if b"\r" not in text else re.findall(rb"[^\n]*\n|[^\n]+\Z", text):
        content = line.removesuffix(b"\n")
        if not re.fullmatch(blank + rb"*(\r?|[#%].*)", content, re.DOTALL):
            if len(rows) == room:
                return rows, IS_FULL, at
            wide = re.match(blank + rb"*" + digits + rb"(?!\d)", content)
            match = plain.fullmatch(content)
            second = re.match(blank + rb"*" + digits + between + digits + rb"(?!\d)", content)
            if wide and int(wide[1]) > high:
                return rows, TOO_WIDE, at
            if second and int(second[2]) > high:
                return rows, TOO_WIDE, at
            row = match and as_row(match, delimiter, weighted)
            if not row:
                return rows, NOT_PLAIN, at
            rows.append(row)
        at += len(line)
    return rows, OK, at


def as_row(match, delimiter, weighted):
    if not weighted:
        return int(match[1]), int(match[2])
    field = match[3].strip(b" \t")
    if (delimiter and delimiter in match[3]) or not NUMBER.fullmatch(field):
        return None
    value = float(field)
    if math.isinf(value) and b"i" not in field.lower():
        return None
    return int(match[1]), int(match[2]), bits(abs(value) if math.isnan(value) else value)


def bits(value: float) -> int:
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def parse(text: bytes, delimiter: bytes, weighted: bool, dtype: type, room: int):
    """Parse a text from its beginning on, and from its beginning and its middle in turn: the same comes of both."""
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for least in () if weighted else (1, 1 << 60):
            patch.setattr(pairs, "_LEAST_HALVED", least)
            found.append(_parse(text, delimiter, weighted, dtype, room))
    assert not found or found[0] == found[1]
    return _parse(text, delimiter, weighted, dtype, room)


def _parse(text: bytes, delimiter: bytes, weighted: bool, dtype: type, room: int):
    buf = np.frombuffer(text, np.uint8)
    src, dst, weight = np.empty(room, dtype), np.empty(room, dtype), np.empty(room)
    if weighted:
        rows, code, at = parse_weighted_pairs(buf, 0, buf.size, delimiter, src, dst, weight)
        columns = [src[:rows].tolist(), dst[:rows].tolist(), weight[:rows].view(np.uint64).tolist()]
    else:
        rows, code, at = parse_pairs(buf, 0, buf.size, delimiter, src, dst)
        columns = [src[:rows].tolist(), dst[:rows].tolist()]
    return list(zip(*columns, strict=True)), code, at


IDS = st.one_of(
    st.integers(0, 10**7).map(str),
    st.integers(1, 21).flatmap(lambda size: st.integers(10 ** (size - 1), 10**size - 1)).map(str),
    st.sampled_from(["0", "00", "007", "4294967295", "4294967296", "9" * 8, "9" * 19, "18446744073709551615", "0" * 19]),
    st.sampled_from(["+1", "-0", "-1", "", "1.5", "x", '"1"', "1e3", "１"]),
)
FLOATS = st.one_of(
    st.floats(width=64).map(repr),
    st.floats(width=32).map(lambda value: f"{value:.9g}"),
    st.floats(-1e9, 1e9).flatmap(lambda value: st.integers(0, 20).map(lambda places: f"{value:.{places}f}")),
    st.floats(allow_nan=False, allow_infinity=False).flatmap(
        lambda v: st.integers(0, 25).map(lambda places: f"{v:.{places}e}")
    ),
    st.integers(-(10**21), 10**21).map(str),
    st.tuples(st.integers(0, 10**20), st.integers(-360, 340)).map(lambda pair: f"{pair[0]}e{pair[1]:+d}"),
    st.sampled_from(["1", "-0", "+2.5", ".5", "5.", "-.5e-3", "1E5", "inf", "-Infinity", "nan", "-NaN", "1e400", "4.9e-324"]),
    st.sampled_from(["", ".", "-", "e5", "1e", "1e+", "1_0", "1 2", "0x1", "1.5.2", "--1", "infi", "1,5"]),
)


@st.composite
def texts(draw, weighted):
    """Draw a delimiter and lines: most are of one kind, as in files, some are not."""
    delimiter = draw(st.sampled_from(DELIMITERS))
    between = draw(
        st.sampled_from([delimiter or b" ", delimiter or b"\t", delimiter or b"  ", b" " + (delimiter or b"\t") + b" "])
    )
    end = draw(st.sampled_from([b"\n", b"\n", b"\r\n", b" \n"]))
    lines = []
    plain = st.integers(0, 10**8).map(str)
    for _ in range(draw(st.integers(0, 25))):
        odd = draw(st.integers(0, 11)) == 0
        fields = [draw(IDS if odd else plain), draw(IDS if odd else plain)]
        if weighted:
            fields.append(draw(FLOATS))
        glue = draw(st.sampled_from([b"\t", b" ", b",", b"", b"\t "])) if odd and draw(st.booleans()) else between
        line = glue.join(field.encode() for field in fields)
        if odd:
            line = draw(st.sampled_from([b"", b"  ", b"\t", b"#", b" %", b"\n", b" \r\n", b"\r"])) + line
        lines.append(line + (draw(st.sampled_from([b"\n", b"\r\n", b"\r\r\n", b" 7\n"])) if odd else end))
    text = b"".join(lines)
    return delimiter, text[: len(text) - draw(st.integers(0, 2))]


def assert_agrees(drawn, weighted, dtype, room):
    delimiter, text = drawn
    room = count_lines(np.frombuffer(text, np.uint8), 0, len(text)) if room is None else room
    assert parse(text, delimiter, weighted, dtype, room) == naive(text, delimiter, weighted, int(np.iinfo(dtype).max), room)


@settings(deadline=None, max_examples=400)
@given(texts(weighted=False), st.sampled_from([np.uint32, np.uint64]), st.sampled_from([None, None, 0, 3]))
@example((b"", b"1 2\n" * 40), np.uint32, None)
@example((b"", b"1 2\r\n" * 40 + b"3 4\n" * 40 + b"5\t6\n" * 40), np.uint64, None)
@example((b",", b"12345678,9\n" * 20 + b"1,123456789\n" * 20), np.uint64, 30)
@example((b"", b"1 2\n" * 9 + b"# 3\n\n" + b"4 5\n" * 60), np.uint32, None)
@example((b"", b"1\t2\r\n" * 60 + b"\r\n" + b"4\t5\r\n" * 60), np.uint32, None)
@example((b"", b"1 2\n" + b"4 " + b"5" * 9), np.uint32, None)
@example((b"", b"1 2\n" * 40 + b"x\n" + b"1 2\n" * 90), np.uint32, None)
@example((b"", b"1 4294967295\n" * 9 + b"4294967296 1\n" * 9), np.uint32, None)
def test_pairs_agree_with_regular_expressions(drawn, dtype, room):
    assert_agrees(drawn, False, dtype, room)


@settings(deadline=None, max_examples=400)
@given(texts(weighted=True), st.sampled_from([np.uint32, np.uint64]), st.sampled_from([None, None, 0, 3]))
@example((b"", b"1 2 0.25\n" * 40), np.uint32, None)
@example((b"\t", b"1\t2\t-0.5e-3\r\n" * 40 + b"1\t2\t3\n" * 40), np.uint64, None)
@example((b",", b"1,2,3\n" * 40 + b"1,2,3,4\n" * 40), np.uint64, None)
@example((b"", b"1 2 \n" * 40), np.uint64, None)
@example((b",", b"1,2,\n" * 40), np.uint64, None)
def test_weights_agree_with_float(drawn, dtype, room):
    assert_agrees(drawn, True, dtype, room)


@settings(deadline=None, max_examples=300)
@given(st.lists(FLOATS.filter(lambda text: NUMBER.fullmatch(text.encode())), min_size=1, max_size=12))
@example(["9007199254740993", "9007199254740992.5", "0.1", "2.2250738585072011e-308", "1.7976931348623157e308", "5e-324"])
@example([f"{2**60 + step}" for step in range(0, 257, 32)])  # halfway between two float64, and near to it
@example([f"{(2**53 + 1) * 2**7}e0", f"{(2**53 + 1) * 2**7 + 1}e0", f"{(2**53 + 1) * 2**7 - 1}e-0"])
def test_floats_are_correctly_rounded_wherever_they_stand(fields):
    fields = [field for field in fields if not math.isinf(float(field)) or "i" in field.lower()]
    line = b"".join(b"1 2 %s\n" % field.encode() for field in fields)
    expected = [bits(abs(value) if math.isnan(value) else value) for value in map(float, fields)]
    for text in (line, line + b"1 2 0\n" * 40):  # near the end of the text another way is taken
        rows, code, _ = parse(text, b"", True, np.uint64, len(fields) + 40)
        assert code == OK
        assert [row[2] for row in rows[: len(fields)]] == expected


@pytest.mark.parametrize("size", range(1, 22))
def test_all_counts_of_digits(size):
    for digits in ("9" * size, "1" + "0" * (size - 1), "0" * (size - 1) + "7", ("1234567890" * 3)[:size]):
        text = f"{digits} 1\n1 {digits}\n".encode()
        for padded in (text, text + b"3 4\n" * 40):
            rows, code, at = parse(padded, b"", False, np.uint64, 50)
            assert rows[:2] == ([(int(digits), 1), (1, int(digits))] if size <= 19 else [])
            assert (code, at) == ((OK, len(padded)) if size <= 19 else (NOT_PLAIN, 0))


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 2**63), st.integers(0, 10**6)), min_size=1, max_size=60), st.integers(1, 7), st.booleans()
)
def test_small_arrays_and_going_on_give_the_same_rows(edges, room, weighted):
    text = b"".join(b"%d %d%s\n" % (src, dst, b" %d" % src * weighted) for src, dst in edges)
    buf = np.frombuffer(b"#\n" + text, np.uint8)
    src, dst, weight = np.empty(room, np.uint64), np.empty(room, np.uint64), np.empty(room)
    found, at, code = [], 2, IS_FULL
    while code == IS_FULL:
        if weighted:
            rows, code, at = parse_weighted_pairs(buf, at, buf.size, b"", src, dst, weight)
        else:
            rows, code, at = parse_pairs(buf, at, buf.size, b"", src, dst)
        assert rows == room or code == OK
        found += list(zip(src[:rows].tolist(), dst[:rows].tolist(), strict=True))
    assert (found, code, at) == (edges, OK, buf.size)


def test_lines_can_be_counted_anywhere():
    buf = np.frombuffer(b"1 2\n3 4\n\n5 6", np.uint8)
    assert [count_lines(buf, start, stop) for start, stop in ((0, 12), (0, 9), (4, 8), (9, 9), (9, 12))] == [4, 4, 2, 1, 1]


_AT_THE_EDGE = """
import ctypes, mmap, sys
import numpy as np
from graphprep.kernels.cpu.text.pairs import parse_pairs, parse_weighted_pairs
page = mmap.PAGESIZE
pages = mmap.mmap(-1, 3 * page)
buf = np.frombuffer(pages, np.uint8)
for guarded in (0, 2):
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(buf.ctypes.data + guarded * page), page, 0) == 0
src, dst, weight = np.empty(page, np.uint64), np.empty(page, np.uint64), np.empty(page)
for line in (b"1 2\\n", b"12345678 12345678\\r\\n", b"1234567890123456789 1234567890123456789", b"# 1\\n", b" \\n", b"1 2 x\\n"):
    for size in range(150):
        text = (line * 100)[:size]
        stop = 2 * page if size % 2 else page + size
        part = buf[stop - size : stop]
        part[:] = np.frombuffer(text, np.uint8)
        parse_pairs(part, 0, size, b"", src, dst)
for weight_text in (b"0.5", b"-1.5e-300", b"1234567890123456789.5e-12", b"1" * 40, b"nan", b"", b"-", b"1e", b"1."):
    line = b"1 2 " + weight_text + b"\\n"
    for size in range(200):
        text = (line * 100)[:size]
        stop = 2 * page if size % 2 else page + size
        part = buf[stop - size : stop]
        part[:] = np.frombuffer(text, np.uint8)
        parse_weighted_pairs(part, 0, size, b"", src, dst, weight)
print("stayed inside")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="protects pages through libc")
def test_nothing_outside_the_text_is_read():
    done = subprocess.run([sys.executable, "-c", _AT_THE_EDGE], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "stayed inside\n", "")
