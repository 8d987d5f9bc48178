"""Closed streams, impatient users, odd names and options that would destroy what they name."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import started, wait_for

from graphprep import api
from graphprep.cli.main import run
from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.read.urls import Storage

pytestmark = pytest.mark.usefixtures("flags_named")

COMMAND = f"{shlex.quote(sys.executable)} -m graphprep"


@pytest.fixture
def edges(tmp_path, monkeypatch):
    """A folder of its own, with an edge list of two good lines and a bad one."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 x\n1 2\n")
    return path


def shell(line: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=120, check=False, **options)


# ---------------------------------------------------------------------------------------------- what would be lost


@pytest.mark.parametrize(
    ("inputs", "bad", "message"),
    [
        ("edges.txt", "edges.txt", "this file is an input, and would be lost"),
        ("edges.txt", "./link.txt", "this file is an input, and would be lost"),
        ("*.txt", "edges.txt", "this file is an input, and would be lost"),
        (".", "edges.txt", "this file is an input, and would be lost"),
        ("edges.txt", "store", "this is inside the store"),
        ("edges.txt", "store/bad.jsonl", "this is inside the store"),
        ("edges.txt", "-", "this is standard input, not a file"),
    ],
)
def test_bad_records_replace_nothing_that_is_needed(edges, inputs, bad, message):
    before = edges.read_bytes()
    (edges.parent / "link.txt").symlink_to(edges)
    with pytest.raises(UsageError) as caught:
        api.convert(inputs, "store", format="edges", on_error="skip", bad_records=bad)
    assert (caught.value.message, caught.value.place) == (message, f"--bad-records {bad}")
    assert edges.read_bytes() == before
    assert sorted(path.name for path in edges.parent.iterdir()) == ["edges.txt", "link.txt"]


def test_bad_records_replace_those_of_the_last_run(edges):
    for _ in range(2):
        api.convert("edges.txt", "store", format="edges", on_error="skip", bad_records="bad.jsonl", overwrite=True)
    assert json.loads(Path("bad.jsonl").read_text())["place"] == "edges.txt:2:3"


def test_bad_records_go_into_a_fifo(edges):
    """It is written, not read: reading it would wait for ever."""
    os.mkfifo("fifo")
    done = shell(f"cat fifo > got & {COMMAND} convert edges.txt store --format edges --on-error skip --bad-records fifo; wait")
    assert done.returncode == 0, done.stderr
    assert json.loads(Path("got").read_text())["place"] == "edges.txt:2:3"


# ---------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams(edges, closed):
    edges.write_text("0 1\n")
    done = shell(f"{COMMAND} convert edges.txt store {closed}")
    assert (done.returncode, "rror" in done.stderr) == (0, False)
    assert api.validate("store").num_faults == 0


def test_closed_stdin(edges):
    done = shell(f"{COMMAND} convert - store --format edges <&-")
    assert done.returncode == 3
    assert done.stderr.endswith("error: -: standard input is closed\n  fix: pipe the data in, or name a file\n")


def test_names_that_are_no_utf8(edges):
    name = os.fsdecode(b"ok\xff.txt")
    Path(name).write_text("0 1\n")
    assert shell(f"{COMMAND} convert $'ok\\xff.txt' $'out\\xff' --json").returncode == 0
    provenance = json.loads((Path(os.fsdecode(b"out\xff")) / "provenance.json").read_text())
    assert provenance["inputs"][0]["url"] == name
    assert shell(f"{COMMAND} info $'out\\xff'").returncode == 0


def test_stdout_that_knows_ascii_only(edges):
    edges.write_text("0 1\n")
    done = shell(f"PYTHONIOENCODING=ascii {COMMAND} convert edges.txt store --relation é")
    assert done.returncode == 0, done.stderr
    assert "_N:é:_N" in done.stdout


@pytest.mark.parametrize("flag", ["--relation", "--graph-name", "--src-col", "--column", "--missing-node-type"])
def test_words_that_are_no_utf8(edges, capfd, flag):
    assert run(["convert", "edges.txt", "store", "--format", "edges", flag, "a\udcff"]) == 2
    expected = f"error: {flag} 'a\\udcff' is not UTF-8\n  fix: use a UTF-8 locale, such as LANG=C.UTF-8\n"
    assert capfd.readouterr().err == expected


# ---------------------------------------------------------------------------------------------- the machine


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.usefixtures("hears_signals")
def test_an_impatient_user_does_not_break_the_clean_up(tmp_path, number):
    """While stdin is awaited: ten signals, as fast as they go."""
    (tmp_path / "tmp").mkdir()
    command = f"{COMMAND} convert - {tmp_path}/out --format edges --tmp-dir {tmp_path}/tmp"
    with started(shlex.split(command), stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: list((tmp_path / "tmp").iterdir()))
        for _ in range(10):
            process.send_signal(number)
        assert process.wait(30) == 128 + number
        assert process.stderr.read().endswith("error: interrupted\n" if number == signal.SIGINT else "error: terminated\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]


@pytest.mark.parametrize(
    ("folder", "message"),
    [("nowhere", "no such file or folder"), ("edges.txt", "a part of the path is a file, not a folder")],
)
def test_a_folder_of_temporary_files_is_checked_at_once(edges, folder, message):
    with pytest.raises(StorageError) as caught:
        Storage(tmp_dir=folder)
    assert (caught.value.message, caught.value.place) == (message, folder)


def test_no_memory_is_not_a_failed_disk(edges, capfd, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(12, "Cannot allocate memory", "some/file")

    monkeypatch.setattr(api, "validate", fail)
    assert run(["validate", "edges.txt"]) == 4
    assert capfd.readouterr().err.startswith("error: out of memory\n")


def test_a_nul_in_a_path_of_metadata(tmp_path):
    metadata = {"node_type": ["a"], "num_nodes_per_type": [1], "edge_type": [], "num_edges_per_chunk": [], "edges": {}}
    metadata["node_data"] = {"a": {"x": {"format": {"name": "numpy"}, "data": ["a\0b"]}}}
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph/metadata.json").write_text(json.dumps(metadata))
    with pytest.raises(StorageError):
        api.convert(str(tmp_path / "graph"), str(tmp_path / "store"))


def test_an_endless_id_is_not_repeated(edges, capfd):
    edges.write_text("0 1\n")
    api.convert("edges.txt", "store")
    capfd.readouterr()
    assert run(["ids", "store", "--from", "raw", "--to", "homo", "1" * 100_000]) == 1
    expected = f"error: argument 1: there is no raw node ID {'1' * 40}… of type '_N'\n"
    assert capfd.readouterr().err.startswith(expected)
