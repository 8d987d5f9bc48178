"""Runs that are interrupted and go on: the same bytes as an undisturbed run's, nothing done twice, nothing left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.convert import resume
from graphprep.convert.pipeline import convert
from graphprep.convert.read import decode
from graphprep.convert.resume import journal_folder
from graphprep.edges import build
from graphprep.engine import ledger
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import QuietReporter
from graphprep.model.run_options import RunOptions
from graphprep.storage.private import LocalClaim
from graphprep.storage.spill.journal import Journal, KeptFolder
from graphprep.storage.spill.segments import Appender
from graphprep.storage.write.publish import ArrayWriter

PART = "decode in part"
BUILD = "build in part"
TASKS = ("decode", "index", "count", "shuffle")
CASES = {case.name: case for case in load_cases()}
by_case = pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)


class StoppedError(Exception):
    """The run ends here."""


@pytest.fixture
def stop(monkeypatch):
    """Let runs end behind a task, the name of which is put in; collects the tasks that were done meanwhile."""
    wanted: dict[str, str] = {}
    done: list[str] = []
    keep = Journal.keep

    def stopping(self, name, made, known, ends=()):
        keep(self, name, made, known, ends)
        done.append(name)
        if wanted.get("behind") == name:
            raise StoppedError(name)

    monkeypatch.setattr(Journal, "keep", stopping)
    return wanted, done


@by_case
def test_a_run_goes_on_behind_every_task(case, tmp_path, stop):
    wanted, done = stop
    options = ConvertOptions(**case.resolved_options(), resume=True)
    inputs, golden = [str(path) for path in case.input_paths], read_store(case.store)
    for number, name in enumerate(TASKS):
        wanted["behind"] = name
        out = tmp_path / name
        with pytest.raises(StoppedError):
            convert(inputs, str(out), options)
        assert not out.exists()
        before = done.copy()
        wanted.clear()
        convert(inputs, str(out), options)
        assert read_store(out) == golden
        assert done == [*before, *TASKS[number + 1 :]]
        done.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(TASKS)


@by_case
def test_a_run_goes_on_behind_every_portion(case, tmp_path, stop, monkeypatch):
    """Some blocks at a time, each run decodes one portion and ends."""
    wanted, done = stop
    monkeypatch.setattr(resume, "_PORTION_BYTES", 150)
    options = ConvertOptions(**case.resolved_options() | {"block_bytes": 100}, resume=True)
    inputs, out = [str(path) for path in case.input_paths], tmp_path / "out"
    wanted["behind"] = PART
    for _ in range(5):
        with contextlib.suppress(StoppedError):
            convert(inputs, str(out), options)
        if out.exists():
            break
    wanted.clear()
    if not out.exists():
        convert(inputs, str(out), options)
    assert read_store(out) == read_store(case.store)
    assert [name for name in done if name not in (PART, BUILD)] == list(TASKS)


@by_case
def test_a_run_goes_on_behind_every_piece_of_the_store(case, tmp_path, stop, monkeypatch):
    """Each run writes a third of the store and ends; what was written is not written again."""
    wanted, done = stop
    golden, written, write = read_store(case.store), [], ArrayWriter._write
    arrays = sum(len(data) for path, data in golden.items() if path.endswith(".npy"))
    monkeypatch.setattr(ArrayWriter, "_write", lambda self, data: (written.append(len(data)), write(self, data)))
    options = ConvertOptions(**case.resolved_options(), resume=True, run=RunOptions(threads=1))
    inputs, out = [str(path) for path in case.input_paths], tmp_path / "out"
    wanted["behind"] = "shuffle"
    with pytest.raises(StoppedError):
        convert(inputs, str(out), options)
    monkeypatch.setattr(resume, "_PORTION_BYTES", arrays // 3)
    wanted["behind"] = BUILD
    for _ in range(4):
        with contextlib.suppress(StoppedError):
            summary = convert(inputs, str(out), options)
        if out.exists():
            break
    assert read_store(out) == golden
    assert sum(written) == arrays
    assert done.count(BUILD) >= (arrays > 2_000)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert summary.output_bytes == sum(map(len, golden.values())) + (out / "provenance.json").stat().st_size


@pytest.mark.parametrize("memory_limit", ["200MiB", "1GiB"])
def test_edges_that_are_scattered_at_once_go_on_too(tmp_path, stop, monkeypatch, memory_limit):
    wanted, done = stop
    monkeypatch.setattr(resume, "_PORTION_BYTES", 700_000)
    monkeypatch.setattr(decode, "_MOST_GROUP", 300_000)
    ends = np.random.default_rng(3).integers(0, 9_000, (400_000, 2))
    file, out = tmp_path / "edges.txt", tmp_path / "out"
    np.savetxt(file, ends, "%d")
    options = ConvertOptions(format="edges", block_bytes=1 << 16, resume=True, run=RunOptions(memory_limit, 2))
    convert([str(file)], str(tmp_path / "whole"), replace(options, resume=False))
    wanted["behind"] = PART
    for _ in range(3):
        with pytest.raises(StoppedError):
            convert([str(file)], str(out), options)
    wanted.clear()
    convert([str(file)], str(out), options)
    before = done[: done.index(BUILD)]
    assert before == [PART] * len(before[:-4]) + list(TASKS)
    assert len(before) > 6
    assert set(done[len(before) :]) == {BUILD}
    assert read_store(out) == read_store(tmp_path / "whole")


@pytest.mark.parametrize("behind", ["index", "shuffle"])
def test_partitions_that_look_at_edges_go_on_too(behind, tmp_path, stop):
    """Tasks are the same whatever partitions come of them, so that these may be others."""
    wanted, done = stop
    karate, out = CASES["edges_plain"].input_paths[0], tmp_path / "out"
    convert_to = partial(graphprep.convert, karate, format="edges", partitions=3)
    convert_to(tmp_path / "whole", partition_by="fennel")
    wanted["behind"] = behind
    with pytest.raises(StoppedError):
        convert_to(out, partition_by="ldg", resume=True)
    wanted.clear()
    before = done.copy()
    convert_to(out, partition_by="fennel", resume=True)
    assert [*before, *TASKS[TASKS.index(behind) + 1 :]] == done
    assert read_store(out) == read_store(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "whole"]


@pytest.fixture
def half_built(tmp_path, stop, monkeypatch):
    """A run that ended while it wrote the arrays of a store, in two partitions: its input, options and OUT."""
    monkeypatch.setattr(resume, "_PORTION_BYTES", 100_000)
    monkeypatch.setattr(build, "_MOST_JOINED", 5_000)
    monkeypatch.setattr(ledger, "_MOST_BUCKET", 1 << 16)
    file, out = tmp_path / "edges.csv", tmp_path / "out"
    ends = np.random.default_rng(4).integers(0, 3_000, (30_000, 2)).tolist()
    file.write_text("src,dst,weight\n" + "".join(f"n{src},n{dst},{src}\n" for src, dst in ends))
    options = ConvertOptions(partitions=2, resume=True, run=RunOptions("400MiB", 2), decoder_options={"id_type": "string"})
    convert([str(file)], str(tmp_path / "whole"), replace(options, resume=False))
    stop[0]["behind"] = BUILD
    for _ in range(2):
        with pytest.raises(StoppedError):
            convert([str(file)], str(out), options)
    stop[0].clear()
    assert not out.exists()
    return [str(file)], options, out


def test_a_place_without_links_gets_copies(half_built, monkeypatch, tmp_path):
    inputs, options, out = half_built
    monkeypatch.setattr(os, "link", lambda *_: exec("raise OSError"))
    convert(inputs, str(out), options)
    assert read_store(out) == read_store(tmp_path / "whole")


def test_less_memory_builds_from_the_beginning(half_built, tmp_path):
    inputs, options, out = half_built
    said = []
    reporter = QuietReporter()
    reporter.message = said.append
    convert(inputs, str(out), replace(options, run=RunOptions("300MiB", 2)), reporter)
    assert said[1:] == [
        "resume: done before: count, shuffle, build in part",
        "resume: under less memory than before the store is built from its beginning",
    ]
    assert read_store(out) == read_store(tmp_path / "whole")


@pytest.mark.parametrize("harm", ["flip", "shorten", "remove"])
def test_arrays_that_were_damaged_are_built_again(half_built, tmp_path, harm):
    inputs, options, out = half_built
    for segment in folder_of(out).glob("segment-*"):
        data = segment.read_bytes()
        if data.startswith(b"\x93NUMPY") and harm == "remove":
            segment.unlink()
        elif data.startswith(b"\x93NUMPY"):
            segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) * (harm == "flip"))
    convert(inputs, str(out), options)
    assert read_store(out) == read_store(tmp_path / "whole")


def test_a_store_that_is_there_keeps_its_arrays(half_built, tmp_path, monkeypatch):
    """A run that is killed behind its end leaves its journal, and arrays with two names; one more run must not change these."""
    inputs, options, out = half_built
    with monkeypatch.context() as patched:
        patched.setattr(KeptFolder, "remove", KeptFolder.release)
        patched.setattr(resume, "_PORTION_BYTES", 1 << 40)
        convert(inputs, str(out), options)
    with monkeypatch.context() as patched, pytest.raises((StoppedError, StorageError)):
        patched.setattr(Appender, "write", lambda *_: exec("raise StoppedError", globals()))
        convert(inputs, str(out), replace(options, overwrite=True))
    assert read_store(out) == read_store(tmp_path / "whole")
    convert(inputs, str(out), replace(options, overwrite=True))
    assert read_store(out) == read_store(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "out", "whole"]


LINES = "src,dst\n0,2\n3,1\n1,3\n3,0\n0,3\n"


@pytest.fixture
def stopped(tmp_path, stop):
    """A run of a small file that ended behind its index: the file, and OUT."""
    file, out = tmp_path / "edges.csv", tmp_path / "out"
    file.write_text(LINES)
    stop[0]["behind"] = "index"
    with pytest.raises(StoppedError):
        convert([str(file)], str(out), ConvertOptions(resume=True))
    stop[0].clear()
    return file, out


def folder_of(out: Path) -> Path:
    return journal_folder(str(out), str(out.parent)).path


def test_other_options_are_refused(stopped, stop):
    """And do no harm: the run with the first ones goes on."""
    file, out = stopped
    with pytest.raises(UsageError) as caught:
        convert([str(file)], str(out), ConvertOptions(partitions=2, resume=True))
    assert caught.value.message == "--resume: option partitions was None when the run began, and is 2 now"
    assert caught.value.fix == f"make it what it was, or remove {folder_of(out)} to begin anew"
    stop[1].clear()
    convert([str(file)], str(out), ConvertOptions(resume=True))
    assert stop[1] == ["count", "shuffle"]


def test_a_run_beside_one_that_is_alive_leaves_what_that_keeps(stopped, stop):
    file, out = stopped
    claim = LocalClaim(out)
    claim.take()
    for given in ({}, {"partition_by": "ldg", "partitions": 2}):
        with pytest.raises(UsageError, match="is writing this output"):
            graphprep.convert(file, out, resume=True, **given)
    claim.release()
    stop[1].clear()
    convert([str(file)], str(out), ConvertOptions(resume=True))
    assert stop[1] == ["count", "shuffle"]


def test_another_input_is_refused(stopped):
    file, out = stopped
    os.utime(file, ns=(1, 10**18 + 5))
    with pytest.raises(UsageError) as caught:
        convert([str(file)], str(out), ConvertOptions(resume=True))
    assert caught.value.message.startswith(f"--resume: {file} was 28 bytes (20")
    assert caught.value.message.endswith("when the run began, and is 28 bytes (2001-09-09 01:46:40.000000005 UTC) now")


@pytest.mark.parametrize(("threads", "memory_limit"), [(1, "300MiB"), (3, "1GiB")])
def test_threads_and_memory_may_be_others(stopped, threads, memory_limit):
    file, out = stopped
    convert([str(file)], str(out), ConvertOptions(resume=True, run=RunOptions(memory_limit, threads)))
    convert([str(file)], str(out.with_name("other")))
    assert read_store(out) == read_store(out.with_name("other"))


@pytest.mark.parametrize("harm", ["flip", "shorten", "remove"])
def test_what_was_damaged_is_made_again(stopped, stop, harm):
    file, out = stopped
    for segment in folder_of(out).glob("segment-*"):
        data = segment.read_bytes()
        if harm == "remove":
            segment.unlink()
        else:
            segment.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) * (harm == "flip"))
    stop[1].clear()
    said = []
    reporter = QuietReporter()
    reporter.message = said.append
    convert([str(file)], str(out), ConvertOptions(resume=True), reporter)
    assert stop[1] == list(TASKS)
    what = "is not there any more" if harm == "remove" else "is not what was written"
    assert any(re.fullmatch(rf"resume: {folder_of(out)}/segment-\d+ {what}, so that \w+ is done again", one) for one in said)
    convert([str(file)], str(out.with_name("other")))
    assert read_store(out) == read_store(out.with_name("other"))


def test_a_journal_that_was_cut_counts_for_nothing(stopped, stop):
    file, out = stopped
    journal = folder_of(out) / "journal.json"
    journal.write_text(journal.read_text()[:-9])
    stop[1].clear()
    convert([str(file)], str(out), ConvertOptions(resume=True))
    assert stop[1] == list(TASKS)
    assert not folder_of(out).exists()


def test_a_folder_that_others_can_write_to_is_not_trusted(stopped):
    file, out = stopped
    folder_of(out).chmod(0o770)
    with pytest.raises(UsageError, match="is not a folder of yours alone"):
        convert([str(file)], str(out), ConvertOptions(resume=True))


def test_a_run_without_the_flag_begins_anew_and_leaves_nothing(stopped, stop):
    file, out = stopped
    stop[1].clear()
    convert([str(file)], str(out))
    assert stop[1] == []
    assert not folder_of(out).exists()


def test_a_run_that_fails_before_any_task_is_done_leaves_nothing(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text(LINES + "x,y\n")
    with pytest.raises(DataError):
        convert([str(file)], str(tmp_path / "out"), ConvertOptions(format="edges", resume=True))
    assert [path.name for path in tmp_path.iterdir()] == ["edges.csv"]


def test_skipped_records_are_listed_once(tmp_path, stop):
    file, bad = tmp_path / "edges.csv", tmp_path / "bad.jsonl"
    file.write_text(LINES + "4,x\n")
    options = ConvertOptions(format="edges", resume=True, on_error="skip", bad_records=str(bad))
    stop[0]["behind"] = "shuffle"
    with pytest.raises(StoppedError):
        convert([str(file)], str(tmp_path / "out"), options)
    stop[0].clear()
    summary = convert([str(file)], str(tmp_path / "out"), options)
    assert summary.num_skipped == 1
    assert json.loads(bad.read_text()) == {"place": f"{file}:7:3", "reason": "field 'dst' must be an integer, found 'x'"}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.heavy) for seed in (1, 2))])
def test_killed_runs_go_on_to_the_same_bytes(tmp_path, seed):
    """Killed again and again, at moments that the seed chooses, until one run comes to its end."""
    rng = np.random.default_rng(seed)
    folder, file = tmp_path / "made", tmp_path / "edges.csv"
    ends = rng.integers(0, 5_000, (200_000, 2))
    file.write_text("src,dst,weight\n" + "".join(f"n{src},n{dst},{src % 7}.5\n" for src, dst in ends.tolist()))
    folder.mkdir()
    command = [sys.executable, "-m", "graphprep", "convert", str(file), "--id-type", "string", "--memory-limit", "200MiB"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    begin = time.monotonic()
    subprocess.run([*command, str(folder / "first"), "--resume"], check=True, capture_output=True)
    took = time.monotonic() - begin
    for most in [*[took] * 6, 1e3]:
        with subprocess.Popen([*command, str(folder / "out"), "--resume"], stderr=subprocess.PIPE) as going:
            try:
                _, said = going.communicate(timeout=float(rng.uniform(0, most)))
            except subprocess.TimeoutExpired:
                going.kill()
                continue
        assert going.returncode in (0, 2), said
        if going.returncode == 0:
            break
    assert b"the output exists" in said or going.returncode == 0, said
    assert read_store(folder / "out") == read_store(tmp_path / "whole")
    assert sorted(path.name for path in folder.iterdir() if "graphprep-lock" not in path.name) == ["first", "out"]


def test_a_pipe_is_refused(tmp_path):
    command = [sys.executable, "-m", "graphprep", "convert", "-", str(tmp_path / "out"), "--resume", "--format", "edges"]
    done = subprocess.run(command, input=LINES, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: -: --resume needs an input that can be read again" in done.stderr
