"""Compressed texts that are read several at a time: blocks in the order of the input, within the pool, and no thread left."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import lzma
import threading

import numpy as np
import pytest
import zstandard
from golden.golden_cases import read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import wait_for

import graphprep
from graphprep.convert import resume
from graphprep.convert.read import ahead
from graphprep.convert.read.ahead import num_readers, read_several
from graphprep.model.errors import DataError
from graphprep.model.protocols import QuietReporter, Span, TextBlock
from graphprep.storage.spill.journal import Journal
from graphprep.storage.spill.runs import Runs, SpillPool

COMPRESS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": lambda data: zstandard.compress(data, 1)}


def names():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("graphprep-read")]


@contextlib.contextmanager
def opened_pool(cap_bytes):
    """Open a pool with rows in it, as there are while an input is decoded."""
    with SpillPool(cap_bytes) as pool:
        Runs(pool)
        yield pool


def block(text, number, num_bytes=10):
    return TextBlock(b"%d" % (number % 10) * num_bytes, Span(f"text-{text}"), number + 1, number == 0)


@pytest.mark.parametrize("cap_bytes", [0, 200, 1 << 30])
@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(0, 9), max_size=8), readers=st.integers(1, 4))
def test_blocks_come_in_the_order_of_their_texts(cap_bytes, sizes, readers):
    """Whether later ones wait in memory, in spill files, or with their threads."""

    def source(at):
        yield from (block(at, number) for number in range(sizes[at]))

    with opened_pool(cap_bytes) as pool:
        sources = [lambda at=at: source(at) for at in range(len(sizes))]
        found = list(read_several(sources, pool, readers))
        assert found == [(at, block(at, number)) for at, size in enumerate(sizes) for number in range(size)]
        assert pool.in_memory_bytes == 0
    assert not names()


def test_a_text_is_read_whole_while_another_is_slow():
    read = threading.Event()

    def first():
        assert read.wait(60)
        yield block(0, 0)

    def second():
        yield from (block(1, number) for number in range(50))
        read.set()

    with opened_pool(1 << 30) as pool:
        assert [at for at, _ in read_several([first, second], pool, 2)] == [0] + [1] * 50


def test_what_waits_has_half_of_the_pool(monkeypatch):
    monkeypatch.setattr(ahead, "_READER_BYTES", 0)
    go, taken = threading.Event(), []

    def first():
        assert go.wait(60)
        yield block(0, 0)

    def second():
        for number in range(100):
            taken.append(number)
            yield block(1, number, 100)

    with opened_pool(4_000) as pool:
        blocks = read_several([first, second], pool, 2)
        consumer = threading.Thread(target=lambda: [next(blocks), blocks.close()])
        consumer.start()
        wait_for(lambda: len(taken) == 21)  # the last of them waits with its thread
        assert pool.in_memory_bytes <= 4_000
        go.set()
        consumer.join()
        assert len(taken) <= 22
        assert pool.in_memory_bytes == 0
    assert not names()


@pytest.mark.parametrize("readers", [1, 2, 4])
def test_the_first_failure_in_order_is_raised_behind_the_blocks_before_it(readers):
    failed = threading.Event()

    def failing(at):
        yield block(at, 0)
        if at == 0 and readers > 1:
            assert failed.wait(60)
        if at == 1:
            failed.set()
        if at > 0:
            raise ValueError(at)

    seen = []
    with opened_pool(1 << 30) as pool:
        with pytest.raises(ValueError, match="1"):
            seen.extend(at for at, _ in read_several([lambda at=at: failing(at) for at in range(4)], pool, readers))
        assert pool.in_memory_bytes == 0
    assert not names()


def test_each_reader_more_needs_room_for_what_it_holds():
    for cap_bytes, most in ((0, 1), (255 << 20, 1), (256 << 20, 2), (2 << 30, 9)):
        with SpillPool(cap_bytes) as pool:
            assert [num_readers(pool, threads) for threads in (1, 2, 99)] == [1, min(2, most), most]


@pytest.fixture
def texts(tmp_path):
    """Four files of edges, of very different sizes."""
    for at, size in enumerate((40_000, 10, 90_000, 60_000)):
        rows = np.random.default_rng(at).integers(0, 5_000, (size, 2)).tolist()
        (tmp_path / f"{at}.csv").write_text("src,dst\n" + "".join(f"{src},{dst}\n" for src, dst in rows))
    return sorted(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("suffix", ["gz", *(pytest.param(one, marks=pytest.mark.heavy) for one in ("bz2", "xz", "zst"))])
@pytest.mark.parametrize("id_type", ["auto", pytest.param("string", marks=pytest.mark.heavy)])
def test_any_number_of_threads_gives_the_bytes_of_plain_files(suffix, id_type, texts, tmp_path):
    packed = [path.with_suffix(f".csv.{suffix}") for path in texts]
    for path, plain in zip(packed, texts, strict=True):
        path.write_bytes(COMPRESS[suffix](plain.read_bytes()))
    given = {"decoder_options": {"id_type": id_type}}
    graphprep.convert(texts, tmp_path / "whole", **given)
    for threads, limit, block_bytes in ((1, "2GiB", 50_000), (2, "2GiB", 9_000), (4, "4GiB", 5_000), (3, "150MiB", 9_000)):
        out = tmp_path / f"out-{threads}"
        graphprep.convert(packed, out, threads=threads, memory_limit=limit, block_bytes=block_bytes, **given)
        assert read_store(out) == read_store(tmp_path / "whole")
    assert not names()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_fault_is_told_with_its_place(threads, texts, tmp_path):
    packed = [path.with_suffix(".csv.gz") for path in texts]
    for at, (path, plain) in enumerate(zip(packed, texts, strict=True)):
        lines = plain.read_bytes().splitlines(keepends=True)
        if at == 2:
            lines[70_000] = b"1,x\n"
        path.write_bytes(gzip.compress(b"".join(lines))[: -9 if at == 3 else None])
    with pytest.raises(DataError) as caught:
        graphprep.convert(packed, tmp_path / "out", threads=threads, memory_limit="2GiB", block_bytes=9_000, format="edges")
    assert caught.value.place == f"{packed[2]}:70001:3"
    assert not names()
    assert not (tmp_path / "out").exists()


def test_a_run_goes_on_in_the_middle_of_texts_that_were_read_ahead(texts, tmp_path, monkeypatch):
    packed = [path.with_suffix(".csv.bz2") for path in texts]
    for path, plain in zip(packed, texts, strict=True):
        path.write_bytes(bz2.compress(plain.read_bytes()))
    names_of_nodes = {"decoder_options": {"id_type": "string"}}  # else all is one group of edges
    graphprep.convert(texts, tmp_path / "whole", **names_of_nodes)
    monkeypatch.setattr(resume, "_PORTION_BYTES", 100_000)
    keep, left = Journal.keep, [3]

    def stopping(journal, name, *rest):
        keep(journal, name, *rest)
        left[0] -= 1
        if not left[0]:
            raise KeyboardInterrupt

    given = {"resume": True, "threads": 2, "memory_limit": "2GiB", "block_bytes": 9_000, **names_of_nodes}
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Journal, "keep", stopping)
        graphprep.convert(packed, tmp_path / "out", **given)
    assert not names()
    said = []
    reporter = QuietReporter()
    reporter.message = said.append
    graphprep.convert(packed, tmp_path / "out", reporter=reporter, **given)
    assert "resume: done before: decode in part" in said
    assert read_store(tmp_path / "out") == read_store(tmp_path / "whole")
