"""Blocks of text whose quoted fields hold line breaks: cut by a naive reader's records, wherever pieces end."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.decoders.looks.quoted_records import Dialect, FieldRecords
from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.protocols import Span
from graphprep.storage.read.spans import block_at, place_of, record_ends_of, text_blocks
from graphprep.storage.read.urls import Storage

relaxed = settings(deadline=None, max_examples=300)
DELIMITERS = st.sampled_from([b",", b"\t", b";", "§".encode()])
PARTS = st.sampled_from([b'"', b'""', b"\n", b"\r\n", b"a", b" ", b"#", b"%", b",", b"\t", "§".encode(), b"\xc2"])
TEXTS = st.lists(PARTS, max_size=25).map(b"".join)


def records_of(delimiter, comments=False, escape=b"", *, quoted=True):
    return FieldRecords(Dialect(delimiter, quoted, True, b"#%" if comments else b"", escape=escape))


def naive_ends(data, delimiter, comments):
    """Find the ends of records, byte by byte as RFC 4180 reads."""
    ends, at = [], 0
    while at < len(data):
        first = at
        while data[first : first + 1] in (b" ", b"\t"):
            first += 1
        if comments and data[first : first + 1] in (b"#", b"%"):
            at = data.find(b"\n", at) + 1 or len(data)
        else:
            at = naive_record(data, delimiter, at)
        ends.append(at)
    return ends


def naive_record(data, delimiter, at):
    begins = True
    while at < len(data):
        if begins and data[at : at + 1] == b'"':
            at += 1
            while at < len(data) and (data[at : at + 1] != b'"' or data[at + 1 : at + 2] == b'"'):
                at += 2 if data[at : at + 1] == b'"' else 1
            at += 1
            begins = False
        elif data[at : at + 1] == b"\n":
            return at + 1
        elif data.startswith(delimiter, at):
            at += len(delimiter)
            begins = True
        else:
            at += 1
            begins = False
    return len(data)


def naive_escaped_ends(data, delimiter, quoted):
    """Find the ends of records of text with backslashes, by a pattern for a field."""
    escaped = rb"\\(?:\r\n|.)|\\\Z"
    plain = rb"(?:[^\\\n" + delimiter + rb"]|" + escaped + rb")*"
    in_quotes = rb'"(?:[^"\\]|""|' + escaped + rb')*(?:"|\Z)'
    field = rb"(?:" + in_quotes + rb")?" + plain if quoted else plain
    record = re.compile(field + rb"(?:" + delimiter + field + rb")*(?:\n|\Z)", re.DOTALL)
    return [match.end() for match in record.finditer(data) if match[0]]


@relaxed
@given(data=st.lists(PARTS | st.just(b"\\"), max_size=25).map(b"".join), quoted=st.booleans())
def test_ends_of_text_with_escapes(data, quoted):
    ends = records_of(b",", escape=b"\\", quoted=quoted).ends(data).tolist()
    assert ends == naive_escaped_ends(data, b",", quoted)


@relaxed
@given(data=TEXTS, delimiter=DELIMITERS, comments=st.booleans())
def test_ends_are_those_of_the_naive_reader(data, delimiter, comments):
    assert records_of(delimiter, comments).ends(data).tolist() == naive_ends(data, delimiter, comments)


@relaxed
@given(
    data=st.lists(PARTS | st.just(b"\\"), max_size=25).map(b"".join),
    records=st.builds(records_of, DELIMITERS, st.booleans())
    | st.builds(records_of, st.sampled_from([b",", b"\t"]), st.booleans(), st.just(b"\\"), quoted=st.booleans()),
    sizes=st.lists(st.integers(1, 7), min_size=1),
)
def test_pieces_are_read_on_from_their_states(data, records, sizes):
    state, at, last, number = 0, 0, 0, 0
    while at < len(data):
        piece = data[at : at + sizes[number % len(sizes)]]
        end, state = records.scan(piece, state)
        last = at + end if end else last
        at += len(piece)
        number += 1
    whole, _ = records.scan(data, 0)
    assert last == whole
    assert whole in [0, *records.ends(data).tolist()]


@relaxed
@given(data=TEXTS, delimiter=DELIMITERS, block_bytes=st.integers(1, 30))
def test_blocks_hold_whole_records_and_can_be_read_again(tmp_path_factory, data, delimiter, block_bytes):
    path = tmp_path_factory.mktemp("blocks") / "t"
    path.write_bytes(data)
    span = Span(str(path), record_ends=records_of(delimiter))
    blocks = list(text_blocks(Storage(), span, block_bytes))
    assert b"".join(block.data for block in blocks) == data
    stops = [sum(len(block.data) for block in blocks[: i + 1]) for i in range(len(blocks))]
    assert set(stops) <= set(naive_ends(data, delimiter, False))
    line = 1
    for number, block in enumerate(blocks):
        assert block_at(Storage(), span, block_bytes, number) == block
        assert (block.first_line, block.is_first) == (line, number == 0)
        assert record_ends_of(block).tolist() == naive_ends(block.data, delimiter, False)
        line += block.data.count(b"\n")


def test_places_count_the_lines_inside_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'a,"x\ny\nz"\nb,c\n')
    span = Span(str(path), record_ends=records_of(b","))
    blocks = list(text_blocks(Storage(), span, 4))
    assert [(block.data, block.first_line) for block in blocks] == [(b'a,"x\ny\nz"\n', 1), (b"b,c\n", 4)]
    assert place_of(blocks[0], 8) == f"{path}:3:2"
    assert place_of(blocks[1], 2) == f"{path}:4:3"


def test_a_quote_that_does_not_close_is_told_from_a_long_line(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b'c,"d\n' + b"e,f\n" * 100)
    span = Span(str(path), record_ends=records_of(b","))
    with pytest.raises(DataError) as caught:
        list(text_blocks(Storage(), span, 10, 50))
    assert str(caught.value) == (
        f"{path}:2:3: a quote does not close in the 50 bytes that the memory limit leaves for a record\n"
        "  fix: close it; double the quotes inside a quoted field"
    )
    path.write_bytes(b"a,b\n" + b"c,d" * 100)
    with pytest.raises(MemoryLimitError) as long:
        list(text_blocks(Storage(), span, 10, 50))
    assert str(long.value) == (
        f"{path}:2:1: the record has more than the 50 bytes that the memory limit leaves for one\n  fix: raise --memory-limit"
    )


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"a,b", -1),
        (b'a,"b"', -1),
        (b'"a""b,', 0),
        (b'a,"b""c",d"e,"f\n"",g', 13),
        (b'a,"b\n",c\nd,"e', 11),
    ],
)
def test_the_quote_that_is_open(data, at):
    assert records_of(b",").open_quote(data) == at
