"""Dates, timestamps, lists and null spellings as text: against datetime and a naive reader."""

import datetime
import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text.dates import parse_dates
from graphprep.kernels.cpu.text.lists import blank_cells, split_lists
from graphprep.kernels.cpu.text.numbers import FRACTION, INVALID, OK, OVERFLOW

relaxed = settings(deadline=None, max_examples=200)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
SCALES = {"s": 10**0, "ms": 10**3, "us": 10**6, "ns": 10**9}


def cells(texts):
    """Lay texts out as a buffer, with a byte between two of them."""
    data = b"|".join(text.encode() for text in texts)
    stop = np.cumsum([len(text.encode()) + 1 for text in texts], dtype=np.int64) - 1
    start = np.concatenate([[0], stop[:-1] + 1]).astype(np.int64) if texts else stop
    return np.frombuffer(data, np.uint8), start, stop


@relaxed
@given(days=st.lists(st.none() | st.dates(), max_size=5))
def test_dates_are_days_since_1970(days):
    texts = ["" if day is None else f" {day.isoformat()}" for day in days]
    rows, values, codes = parse_dates(*cells(texts), "day")
    assert not codes.any()
    assert rows.tolist() == [row for row, day in enumerate(days) if day is not None]
    assert values.tolist() == [(day - datetime.date(1970, 1, 1)).days for day in days if day is not None]


ZONES = st.sampled_from(["", "Z", "+00:00", "-08", "+0530", "+05:30", "-23:59"])


@relaxed
@given(
    moment=st.datetimes(),
    unit=st.sampled_from(["s", "ms", "us", "ns"]),
    zone=ZONES,
    between=st.sampled_from("T t"),
)
@example(datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), "us", "+05:30", "T")
@example(datetime.datetime(1, 1, 1), "us", "+0530", "T")
def test_timestamps_are_units_since_1970(moment, unit, zone, between):
    moment = moment.replace(
        microsecond=moment.microsecond // (10**6 // min(SCALES[unit], 10**6)) * (10**6 // min(SCALES[unit], 10**6))
    )
    text = moment.isoformat(sep=between) + zone
    zone_minutes = 0
    if digits := re.fullmatch(r"([+-])(\d\d):?(\d\d)?", zone):
        zone_minutes = int(digits[1] + "1") * (60 * int(digits[2]) + int(digits[3] or 0))
    passed = moment.replace(tzinfo=datetime.UTC) - EPOCH
    microseconds = (passed.days * 86400 + passed.seconds - 60 * zone_minutes) * 10**6 + passed.microseconds
    expected = microseconds * SCALES[unit] // 10**6
    _, values, codes = parse_dates(*cells([text]), unit)
    if -(2**63) <= expected < 2**63:
        assert (values.tolist(), codes.tolist()) == ([expected], [OK])
    else:
        assert codes.tolist() == [OVERFLOW]


@pytest.mark.parametrize(
    "text",
    [
        *("2020", "2020-1-1", "20200101", "2020-13-01", "2020-00-01", "2021-02-29", "1900-02-29", "2020-01-00", "0000-01-01"),
        *("2020-01-01T", "2020-01-01T1", "2020-01-01T24:00", "2020-01-01T23:60", "2020-01-01T23:59:60", "2020-01-01T10:00:00."),
        *("2020-01-01T10:00.5", "2020-01-01T10:00+", "2020-01-01T10:00+24", "2020-01-01T10:00Z0", "2020-01-01+01:00", "x"),
        *("2020-01-01T10:00:00Z+00:00", "2020-01-01T10:00+1:00", "-2020-01-01"),
    ],
)
def test_what_is_no_timestamp(text):
    rows, _, codes = parse_dates(*cells(["2020-01-01", text, "x", ""]), "ms")
    assert (rows.tolist(), codes.tolist()) == ([0], [OK, INVALID, INVALID, OK])


def test_the_finest_and_the_farthest():
    texts = ["2262-04-11T23:47:16.854775807", "1677-09-21T00:12:43.145224192", "2020-01-01"]
    _, values, codes = parse_dates(*cells(texts), "ns")
    assert (values.tolist(), codes.any()) == ([2**63 - 1, -(2**63), 1577836800 * 10**9], False)
    assert parse_dates(*cells(["2262-04-11T23:47:16.854775808"]), "ns")[2].tolist() == [OVERFLOW]
    assert parse_dates(*cells(["1677-09-21T00:12:43.145224191"]), "ns")[2].tolist() == [OVERFLOW]
    assert parse_dates(*cells(["2020-01-01T00:00:00.1230"]), "ms")[1].tolist() == [1577836800123]
    assert parse_dates(*cells(["2020-01-01T00:00:00.1231"]), "ms")[2].tolist() == [FRACTION]
    assert parse_dates(*cells(["2020-01-01T00:00:00"]), "day")[2].tolist() == [INVALID]
    assert parse_dates(*cells(["2020-01-01 01:02:03,5"]), "ms")[1].tolist() == [1577840523500]


ITEMS = st.sampled_from(["", "1", " 22 ", "-3", "[", "x y"])


@relaxed
@given(
    texts=st.lists(
        st.tuples(st.lists(ITEMS, max_size=4), st.sampled_from(",;|"), st.booleans(), st.sampled_from(["", " "])), max_size=5
    ),
    separator=st.sampled_from([None, ",", ";", "|"]),
)
def test_lists_are_split_as_the_naive_reader_does(texts, separator):
    written = [f"{pad}[{by.join(items)}]{pad}" if bracketed else by.join(items) for items, by, bracketed, pad in texts]
    buf, start, stop = cells(written)
    rows, counts, starts, stops = split_lists(buf, start, stop, ord(separator) if separator else None)
    expected_rows, expected = [], []
    for row, text in enumerate(written):
        inner = text.strip(" \t")
        bracketed = len(inner) > 1 and inner[0] == "[" and inner[-1] == "]"
        inner = inner[1:-1].strip(" \t") if bracketed else inner
        if inner or bracketed:
            expected_rows.append(row)
            expected.append(re.split(f"[{re.escape(separator or ',;')}]", inner) if inner else [])
    assert rows.tolist() == expected_rows
    assert counts.tolist() == [len(items) for items in expected]
    found = [bytes(buf[low:high]).decode() for low, high in zip(starts, stops, strict=True)]
    assert found == [item for items in expected for item in items]


@relaxed
@given(
    texts=st.lists(st.sampled_from(["", "NA", "N", "NAN", "null", "x"]), max_size=6),
    spellings=st.sets(st.sampled_from(["NA", "null"])),
)
def test_cells_spelled_like_nothing_are_emptied(texts, spellings):
    buf, start, stop = cells(texts)
    out = blank_cells(buf, start, stop, tuple(text.encode() for text in sorted(spellings)))
    assert [bytes(buf[low:high]).decode() for low, high in zip(start, out, strict=True)] == [
        "" if text in spellings else text for text in texts
    ]
