"""Text in a local file gives the same blocks as the same text in a stream, read late, again, and on any thread."""

import io
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.protocols import Span
from graphprep.storage.read.spans import StoredBlock, StoredText, block_at, place_of, read_blocks, text_blocks
from graphprep.storage.read.urls import Storage

PIECES = st.lists(st.sampled_from([b"", b"1 2", b"3\t4\r", b"x" * 40, b"\xc3\xa9", b"y" * 9000]), max_size=12)


def stored(path: Path, content: bytes, block_bytes: int, limit: int | None = None) -> list[StoredBlock]:
    path.write_bytes(content)
    with Storage() as storage:
        return list(text_blocks(storage, Span(str(path)), block_bytes, limit))


@settings(deadline=None, max_examples=150)
@given(lines=PIECES, last=st.sampled_from([b"", b"\n", b"x"]), bom=st.booleans(), block_bytes=st.integers(3, 20_000))
def test_stored_blocks_are_those_of_a_stream(tmp_path_factory, lines, last, bom, block_bytes):
    path = tmp_path_factory.getbasetemp() / "stored.txt"
    content = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + last
    found = stored(path, content, block_bytes)
    expected = list(read_blocks(io.BytesIO(content), Span(str(path)), block_bytes))
    assert [(b.num_bytes, b.is_first) for b in found] == [(len(b.data), b.is_first) for b in expected]
    for one, other in reversed(list(zip(found, expected, strict=True))):  # the last first: nothing was read or counted before
        assert isinstance(one, StoredBlock)
        assert one.first_line == other.first_line
        with one.held() as buf:
            assert not buf.flags.writeable
            assert buf.tobytes() == other.data
        assert one.data == other.data
        assert place_of(one, one.num_bytes // 2) == place_of(other, len(other.data) // 2)
        assert all(one.begins_behind(line) == other.begins_behind(line) for line in range(14))


def test_every_block_can_be_found_again(tmp_path):
    path = tmp_path / "a.txt"
    blocks = stored(path, b"1 2\n33 44\n" * 50, 64)
    with Storage() as storage:
        assert [block_at(storage, Span(str(path)), 64, i) for i in range(len(blocks))] == blocks


def test_a_block_knows_whether_another_follows_soon(tmp_path):
    assert all(block.next_comes(0) for block in stored(tmp_path / "a.txt", b"1 2\n" * 1000, 400))
    waits = []
    with (tmp_path / "a.txt").open("rb") as file:

        def wait(stop: int, most_s: float | None) -> int:
            waits.append((stop, most_s))
            return 1500

        text = StoredText(file.fileno(), "a.txt", wait)
        assert [StoredBlock(text, Span("a.txt"), 0, start, start + 400).next_comes(0.5) for start in (0, 701)] == [True, False]
    assert waits == [(800, 0.5), (1501, 0.5)]


def test_buffers_are_used_again(tmp_path):
    blocks = stored(tmp_path / "a.txt", b"1 2\n" * 1000, 400)
    addresses = set()
    for block in blocks:
        with block.held() as buf:
            addresses.add(buf.ctypes.data)
    assert len(blocks) == 10
    assert len(addresses) == 1
    with blocks[0].held() as one, blocks[1].held() as other:
        assert not np.shares_memory(one, other)


def test_blocks_are_read_and_their_lines_counted_on_any_thread(tmp_path):
    content = b"".join(b"%d %d\n" % (i, i * i) for i in range(20_000))
    blocks = stored(tmp_path / "a.txt", content, 1000)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: (block.data, block.first_line), blocks))
    assert b"".join(data for data, _ in found) == content
    lines = np.cumsum([1, *(data.count(b"\n") for data, _ in found)])
    assert [line for _, line in found] == lines[:-1].tolist()


def test_a_line_beyond_the_limit(tmp_path):
    content = b"1 2\n" * 8 + b"x" * 3_000_000 + b"\n1 2\n"
    with pytest.raises(MemoryLimitError) as caught:
        stored(tmp_path / "a.txt", content, 16, 65536)
    with pytest.raises(MemoryLimitError) as other:
        list(read_blocks(io.BytesIO(content), Span(str(tmp_path / "a.txt")), 16, 65536))
    assert str(caught.value) == str(other.value)
    assert f"{tmp_path}/a.txt:9:1: the line has 3000000 bytes" in str(caught.value)


@pytest.mark.parametrize("how", ["data", "held"])
def test_a_file_that_became_shorter(tmp_path, how):
    path = tmp_path / "a.txt"
    block, last = stored(path, b"1 2\n" * 100, 200)
    path.write_bytes(b"1 2\n" * 60)
    assert len(block.data) == 200
    with pytest.raises(DataError) as caught:
        last.data if how == "data" else last.held().__enter__()
    assert str(caught.value) == f"{path}: the file became shorter while it was read\n  fix: run again when it is complete"


def test_what_is_no_plain_file_is_no_stored_text(tmp_path):
    (tmp_path / "empty.txt").touch()
    with (tmp_path / "empty.txt").open("rb") as handle:
        assert StoredText.of(handle, "empty.txt") is None
    assert StoredText.of(io.BytesIO(b"1 2\n"), "memory.txt") is None


@settings(deadline=None, max_examples=25)
@given(lines=PIECES, last=st.sampled_from([b"", b"\n", b"x"]), bom=st.booleans(), block_bytes=st.integers(3, 20_000))
def test_blocks_of_a_pipe_are_those_of_a_stream(tmp_path_factory, lines, last, bom, block_bytes):
    content = b"\xef\xbb\xbf" * bom + b"\n".join(lines) + last
    path = tmp_path_factory.mktemp("pipes") / "pipe"
    os.mkfifo(path)
    span = Span(str(path))
    with ThreadPoolExecutor(1) as pool, Storage() as storage:
        written = pool.submit(path.write_bytes, content)
        found = [(block.data, block.first_line, block.is_first) for block in text_blocks(storage, span, block_bytes)]
        written.result()
    expected = [(block.data, block.first_line, block.is_first) for block in read_blocks(io.BytesIO(content), span, block_bytes)]
    assert found == expected


def test_blocks_of_a_pipe_come_while_it_is_open(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(2) as pool, Storage() as storage:
        opened = pool.submit((tmp_path / "pipe").open, "wb", buffering=0)
        blocks = text_blocks(storage, Span(str(tmp_path / "pipe")), 24)
        first = pool.submit(next, blocks)
        with opened.result() as pipe:
            pipe.write(b"1 2\n3 4\n" * 3 + b"5")
            block = first.result(60)
            assert isinstance(block, StoredBlock)
            assert block.data == b"1 2\n3 4\n" * 3
            pipe.write(b" 6\n")
        assert [(later.data, later.first_line) for later in blocks] == [(b"5 6\n", 7)]
