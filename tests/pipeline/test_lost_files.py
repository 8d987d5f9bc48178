"""A store whose files are cut short, or are no files, while commands read it: a message, exit code 3, and nothing left behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from graphprep.cli.main import run

# Cuts every array right after it was mapped, which is what an rsync or a disk quota does to it at some time.
CUT = """
import os, sys
from graphprep.storage import arrays
from graphprep.cli.main import main

map_file = arrays.map_file

def cut(path, *given, **named):
    mapped = map_file(path, *given, **named)
    os.truncate(path, 128)
    return mapped

arrays.map_file = cut
main()
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    edges = tmp_path / "edges.txt"
    edges.write_text("".join(f"{i} {i * 7 % 5000} {i}.5\n" for i in range(5000)))
    given = ["--format", "edges", "--weight-col", "2", "--layout", "both", "--ids", "dense", "-q"]
    assert run(["convert", str(edges), str(tmp_path / "store"), *given]) == 0
    return tmp_path / "store"


@pytest.mark.parametrize("more", [[], ["--log-format", "json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    "command", [["export", "--to", "glt"], ["export", "--to", "scipy"], ["reorder", "--by", "degree"]], ids=" ".join
)
def test_a_store_that_shrinks_under_a_command(command, more, store, tmp_path):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    before = sorted(tmp_path.iterdir())
    words = [command[0], str(store), str(tmp_path / "out"), *command[1:], "--tmp-dir", str(tmp), *more]
    done = subprocess.run([sys.executable, "-c", CUT, *words], capture_output=True, timeout=120, check=False)
    assert done.returncode == 3, done.stderr.decode()
    said = done.stderr.decode().splitlines()
    place = str(store / "part-00000")
    if more:
        found = json.loads(said[-1])
        assert found["place"].startswith(place) and found["message"] == "the file became shorter while it was read"
    else:
        assert said[-2].startswith(f"error: {place}") and said[-2].endswith(".npy: the file became shorter while it was read")
        assert said[-1] == "  fix: run again when nothing writes to it"
    assert sorted(tmp_path.iterdir()) == before and not any(tmp.iterdir())
