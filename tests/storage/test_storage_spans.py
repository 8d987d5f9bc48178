"""Text as blocks of whole lines: any block size gives the same lines."""

import gzip
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.protocols import Span, TextBlock
from graphprep.storage.read.spans import block_at, count_lines, place_of, text_blocks
from graphprep.storage.read.urls import Storage


class OneFile:
    """A storage that holds one text."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def open(self, url: str, ahead_bytes: int = 0) -> io.BytesIO:
        return io.BytesIO(self.content)


def blocks_of(content: bytes, block_bytes: int, limit: int | None = None) -> list[TextBlock]:
    return list(text_blocks(OneFile(content), Span("a.csv"), block_bytes, limit))


LINES = st.lists(
    st.sampled_from([b"", b"\r", b"1 2", b"3\t4\r", b"a longer line \xc3\xa9 than others", b"\xff\xfe"]), max_size=30
)


@settings(deadline=None, max_examples=200)
@given(lines=LINES, last=st.sampled_from([b"", b"\n", b"x", b"x\r\n"]), bom=st.booleans(), block_bytes=st.integers(1, 120))
def test_the_blocks_are_the_content(lines, last, bom, block_bytes):
    content = b"\n".join(lines) + last
    blocks = blocks_of(b"\xef\xbb\xbf" * bom + content, block_bytes)
    assert b"".join(block.data for block in blocks) == content
    assert all(block.data for block in blocks)
    assert all(block.data.endswith(b"\n") for block in blocks[:-1])
    line = 1
    for i, block in enumerate(blocks):
        assert block.first_line == line
        assert block.is_first == (i == 0)
        assert block == block_at(OneFile(b"\xef\xbb\xbf" * bom + content), Span("a.csv"), block_bytes, i)
        line += block.data.count(b"\n")


def test_blocks_are_about_as_large_as_asked():
    content = b"0123456789\n" * 100_000
    sizes = [len(block.data) for block in blocks_of(content, 65536)]
    assert max(sizes) <= 65536
    assert min(sizes[:-1]) > 65536 - 11


def test_only_the_first_bom_is_dropped():
    assert [block.data for block in blocks_of(b"\xef\xbb\xbf\xef\xbb\xbfa\n", 100)] == [b"\xef\xbb\xbfa\n"]
    assert blocks_of(b"\xef\xbb\xbf", 100) == []
    assert blocks_of(b"", 100) == []
    assert [block.data for block in blocks_of(b"\xef\xbb", 100)] == [b"\xef\xbb"]


def test_a_line_longer_than_a_block_makes_it_grow():
    content = b"a\n" + b"b" * 5000 + b"\nc\n" + b"d" * 5000
    blocks = blocks_of(content, 16)
    assert b"".join(block.data for block in blocks) == content
    assert [block.first_line for block in blocks][:2] == [1, 2]
    assert len(blocks_of(content, 16, 6000)) == len(blocks)


@pytest.mark.parametrize("end", [b"\n1 2\n", b""])
def test_a_line_longer_than_the_limit_is_measured_not_kept(end):
    content = b"1 2\n" * 8 + b"x" * 3_000_000 + end
    with pytest.raises(MemoryLimitError) as caught:
        blocks_of(content, 16, 65536)
    assert str(caught.value) == (
        "a.csv:9:1: the line has 3000000 bytes, and the memory limit leaves 65536 for a line\n"
        "  fix: raise --memory-limit 46-fold, or break the line"
    )
    assert caught.value.exit_code == 4


def test_place_counts_characters_and_bytes_where_there_are_none():
    block = TextBlock("a\nü,é,x\n".encode() + b"\xff\xff,y\n", Span("s3://k:pw@host/a.csv"), 7, False)
    at = block.data.index(b"x")
    assert place_of(block, 0) == "s3://k:…@host/a.csv:7:1"
    assert place_of(block, at) == "s3://k:…@host/a.csv:8:5"
    assert place_of(block, block.data.index(b"y")) == "s3://k:…@host/a.csv:9:4"
    assert place_of(block, len(block.data)) == "s3://k:…@host/a.csv:10:1"
    assert place_of(TextBlock(b"1 2\n", Span("-"), 1, True), 2) == "-:1:3"


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=500))
def test_count_lines_is_the_number_of_line_feeds(data):
    assert count_lines(data * 3) == (data * 3).count(b"\n")


def test_count_lines_across_pieces():
    assert count_lines(b"ab\n" * 400_000) == 400_000


def test_a_truncated_stream_gives_its_lines_first(tmp_path):
    import random

    chance = random.Random(1)
    path = tmp_path / "a.gz"
    content = b"".join(b"%d %d\n" % (chance.randrange(10**9), i) for i in range(200_000))
    path.write_bytes(gzip.compress(content)[:-2])
    got = b""
    with Storage() as storage, pytest.raises(DataError) as caught:
        for block in text_blocks(storage, Span(str(path)), 1 << 16):
            got += block.data
    assert caught.value.message == "the gzip stream is truncated"
    assert content.startswith(got)
    assert len(got) > 0


def test_a_block_that_is_no_longer_there():
    with pytest.raises(DataError) as caught:
        block_at(OneFile(b"1 2\n"), Span("a.csv"), 10, 3)
    assert str(caught.value) == "a.csv: the file became shorter while it was read\n  fix: run again when it is complete"
