"""Standard input: converted while it comes, to the same bytes, and not waited for where there is no need."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from golden.golden_cases import GOLDEN, SAMPLE_DATA, read_store
from processes import started

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.options.convert import ConvertOptions


@pytest.fixture
def stdin(monkeypatch):
    """Give the process a pipe as standard input; returns what writes into it, piece by piece, from a thread."""
    threads = []

    def feed(pieces, pause=0.0):
        read_end, write_end = os.pipe()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(os.fdopen(read_end, "rb")))

        def write():
            with os.fdopen(write_end, "wb", buffering=0) as file:
                for piece in pieces:
                    time.sleep(pause)
                    try:
                        file.write(piece)
                    except BrokenPipeError:
                        return

        threads.append(threading.Thread(target=write, daemon=True))
        threads[-1].start()

    yield feed
    sys.stdin.close()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    "case", ["shop_json", "karate_csv", "edges_plain_gz", "edges_parquet", "names_parquet", "names_triples_auto", "edges_empty"]
)
def test_the_same_bytes_through_a_pipe(case, stdin, tmp_path):
    told = json.loads((GOLDEN / case / "case.json").read_text())
    (name,) = told["inputs"]
    data = (SAMPLE_DATA.parent / name if (SAMPLE_DATA.parent / name).exists() else SAMPLE_DATA / name).read_bytes()
    size = max(1, len(data) // 3)
    stdin([data[i : i + size] for i in range(0, len(data), size)], pause=0.02)
    convert(["-"], str(tmp_path / "out"), ConvertOptions(**told["options"]))
    assert read_store(tmp_path / "out") == read_store(GOLDEN / case / "store")


def test_a_fault_ends_the_run_before_the_stream_ends(stdin, tmp_path):
    told = threading.Event()
    ended = []

    def pieces():
        yield b"1 2\n" * 100_000 + b"1 x\n" + b"1 2\n" * 500_000
        for _ in range(1200):
            if told.wait(0.05):
                return
            yield b"1 2\n"
        ended.append(True)

    stdin(pieces())
    with pytest.raises(DataError) as caught:
        convert(["-"], str(tmp_path / "out"), ConvertOptions(format="edges", block_bytes=1 << 16))
    assert caught.value.place == "-:100001:3"
    assert not ended
    told.set()
    assert list(tmp_path.iterdir()) == []


def test_a_fault_that_is_found_late_has_its_place(stdin, tmp_path):
    """The place of an edge whose node is missing comes from reading the stream's copy again."""
    stdin([b"0,-1,0,1.0\n1,-1,0,1.0\n", b"0,0,1,1.0\n" * 30_000, b"1,0,7,1.0\n"])
    with pytest.raises(DataError) as caught:
        convert(["-"], str(tmp_path / "out"), ConvertOptions(format="edgelist"))
    assert caught.value.place == "-:30003:5"


def test_info_reads_only_the_beginning(tmp_path):
    """``graphprep info -`` tells what it sees, and lets the writer go."""
    command = [sys.executable, "-m", "graphprep", "info", "-"]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"src,dst\n" + b"1,2\n" * 1_000_000)
        process.stdin.flush()
        out = process.stdout.read()  # its end comes before that of stdin
        assert process.wait(30) == 0, process.stderr.read()
        assert b"edges" in out
        process.stdin.close()
