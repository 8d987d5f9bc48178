"""Blocks of text that processes decode: the same bytes and the same faults, also where workers are killed."""

from __future__ import annotations

import os
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from golden.golden_cases import load_cases, read_store

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

NAMES = (
    *("karate_csv", "lesmis_json", "davis_edgelist", "faulty_tsv", "names_codes_auto", "names_signed_modulo", "edges_roles"),
    *("edges_parquet", "people_tables", "shop_chunked"),
)
RUN = RunOptions(threads=2, memory_limit="1GiB")

PIPES = """
class PipeDecoder:
    def decode(self, line):
        first, *others = map(int, line.split("|"))
        yield first, -1, 0, 1.0, 0, -1, []
        for other in others:
            yield first, other, 0, 1.0, 0, -1, []
"""


@pytest.mark.parametrize("case", [one for one in load_cases() if one.name in NAMES], ids=lambda case: case.name)
def test_processes_write_the_golden_bytes(case, tmp_path):
    options = ConvertOptions(**case.resolved_options() | {"block_bytes": 64}, engine="processes", run=RUN)
    convert([str(path) for path in case.input_paths], str(tmp_path / "store"), options)
    assert read_store(tmp_path / "store") == read_store(case.store)


@pytest.fixture
def pipes(tmp_path, monkeypatch):
    """Lines that a decoder written in Python reads, which lies in the current folder."""
    (tmp_path / "piped.py").write_text(PIPES)
    (tmp_path / "pipes.txt").write_text("".join(f"{row}|{row * 7 % 2000}|{row * 13 % 2000}\n" for row in range(2000)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return ConvertOptions(decoder="piped:PipeDecoder", block_bytes=500, run=RUN)


def test_a_decoder_in_python_is_found_by_workers(pipes, tmp_path):
    convert(["pipes.txt"], "threads", pipes)
    convert(["pipes.txt"], "processes", replace(pipes, engine="processes"))
    assert read_store(tmp_path / "processes") == read_store(tmp_path / "threads")


def test_its_faults_are_the_same(pipes, tmp_path):
    with Path("pipes.txt").open("a") as file:
        file.write("17|x\n18|y\n")
    with pytest.raises(DataError) as caught:
        convert(["pipes.txt"], "out", replace(pipes, engine="processes"))
    assert str(caught.value).startswith("pipes.txt:2001:1: PipeDecoder failed: ValueError: invalid literal")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["piped.py", "pipes.txt"]


def children() -> list[int]:
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]


def test_killed_workers_change_nothing(pipes, tmp_path):
    convert(["pipes.txt"], "threads", pipes)
    others = set(children())  # a test before this one may have left its own
    killed: list[int] = []
    done = threading.Event()

    def kill() -> None:
        while len(killed) < 3 and not done.wait(0.1):  # one task may lose three
            for pid in sorted(set(children()) - others)[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        convert(["pipes.txt"], "processes", replace(pipes, engine="processes"))
    finally:
        done.set()
        killer.join()
    assert killed
    assert read_store(tmp_path / "processes") == read_store(tmp_path / "threads")
    assert set(children()) <= others
