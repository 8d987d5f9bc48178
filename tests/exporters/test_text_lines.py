"""Lines of columns: Python's csv module reads back what was written, and floats are the shortest texts of their numbers."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.exporters.formats.text_lines import LineWriter, TextColumn
from graphprep.model.rows import RawTexts

few = settings(max_examples=60, deadline=None)
QUOTING = '[,"\r\n]|^[#%]|^$'


def lines(columns, separator=",", quoting=QUOTING) -> str:
    return bytes(LineWriter(separator, quoting).lines(columns)).decode()


@few
@given(st.lists(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 9), st.booleans()), max_size=20))
def test_counts_are_joined(rows):
    columns = [
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.uint8),
        np.array([row[2] for row in rows], bool),
    ]
    assert lines([TextColumn(column) for column in columns], " ") == "".join(f"{a} {b} {c:d}\n" for a, b, c in rows)


@few
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1), st.booleans()), max_size=20))
def test_integers_of_any_size_and_missing_ones(rows):
    signed, unsigned, present = (
        np.array([row[at] for row in rows], dtype) for at, dtype in enumerate((np.int64, np.uint64, bool))
    )
    found = lines([TextColumn(signed), TextColumn(unsigned, present)])
    assert found == "".join(f"{a},{b if has else ''}\n" for a, b, has in rows)


@few
@given(st.lists(st.floats(width=32), min_size=1, max_size=20), st.sampled_from(["float32", "float64", "float16"]))
def test_floats_read_back_the_same_and_never_look_like_integers(values, dtype):
    with np.errstate(over="ignore"):
        column = np.array(values, dtype)
    texts = lines([TextColumn(column)]).splitlines()
    found = np.array([float(text) for text in texts]).astype(dtype)
    np.testing.assert_array_equal(found, column)
    assert (np.signbit(found) == np.signbit(column))[~np.isnan(column)].all()
    assert not any(text.lstrip("-").isdigit() for text in texts)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats_are_shortest(dtype):
    rng = np.random.default_rng(0)
    column = np.ldexp(rng.random(500), rng.integers(-100, 100, 500)).astype(dtype)
    digits = [text.split("e")[0].replace(".", "").strip("0") for text in lines([TextColumn(column)]).splitlines()]
    wanted = [np.format_float_scientific(one, unique=True).split("e")[0].replace(".", "").strip("0") for one in column]
    assert list(map(len, digits)) == list(map(len, wanted))


texts_of = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@few
@given(st.lists(st.tuples(texts_of, st.booleans()), max_size=15), st.sampled_from([",", "\t"]))
def test_texts_read_back_through_quotes(rows, separator):
    column = TextColumn(RawTexts.of([text.encode() for text, _ in rows]), np.array([has for _, has in rows], bool))
    written = lines([TextColumn(np.arange(len(rows))), column], separator, QUOTING.replace(",", separator, 1))
    found = list(csv.reader(io.StringIO(written, newline=""), delimiter=separator))
    assert found == [[str(at), text if has else ""] for at, (text, has) in enumerate(rows)]


def test_what_stands_in_quotes():
    texts = [b"plain", b"a,b", b'say "hi"', b"#tag", b"a#b", b"%", b"", b" x ", b"two\nlines"]
    found = lines([TextColumn(RawTexts.of(texts))])
    assert found == 'plain\n"a,b"\n"say ""hi"""\n"#tag"\na#b\n"%"\n""\n x \n"two\nlines"\n'
