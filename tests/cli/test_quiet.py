"""What --quiet and --json leave on stdout and stderr, of every command."""

import json
import os
import shlex
from pathlib import Path

import pytest

from graphprep.cli.main import _COMMANDS, run

SAMPLES = Path(__file__).resolve().parents[2] / "sample_data"
_SESSION = """\
generate grid grid.txt --rows 2 --cols 2
convert sample_data/karate/karate.csv karate --weight-col weight --export npy
convert sample_data/karate/karate.csv planned --dry-run
convert sample_data/karate/karate.csv shared --worker-index 0 --worker-count 1
merge shared
plan sample_data/karate/karate.csv --export pyg
info karate --head 2
info sample_data/karate/karate.csv
validate karate
validate sample_data/karate/karate.csv
validate karate --against sample_data/karate/karate.csv
stats karate --triangles exact
partition karate parts --by hash --partitions 2
partition karate assigned --by hash --partitions 2 --assignment-only
reorder karate hot --by degree
transform karate simple to-bidirected self-loops drop
split karate split 0.8/0.1/0.1 --by random --of edges
sample karate flows --seeds seeds.txt --fanouts 2,2
export karate karate-glt --to glt --drop-unsupported
export --list
clean karate --dry-run
kernels list
"""
_LINES = _SESSION.splitlines()
_SPEAKS_ALONE = {"ids", "doctor"}  # they have nothing but what was asked for


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quiet")
    (folder / "sample_data").symlink_to(SAMPLES)
    (folder / "seeds.txt").write_text("0\n33\n")
    before = Path.cwd()
    os.chdir(folder)
    assert run(["convert", "sample_data/karate/karate.csv", "karate", "--weight-col", "weight", "--quiet"]) == 0
    yield folder
    os.chdir(before)


def _words(line):
    overwrites = line.split()[0] in {"generate", "convert", "partition", "reorder", "transform", "split", "sample", "export"}
    return [*shlex.split(line), *(["--overwrite"] if overwrites and "--list" not in line and "worker" not in line else [])]


def test_the_session_has_every_command():
    assert {line.split()[0] for line in _LINES} | _SPEAKS_ALONE == set(_COMMANDS)


@pytest.mark.heavy
def test_quiet_commands_print_nothing(place, capfd):
    for line in _LINES:
        assert run([*_words(line), "-q"]) == 0, (line, capfd.readouterr())
        assert capfd.readouterr() == ("", ""), line


@pytest.mark.heavy
def test_json_is_one_document_and_nothing_else(place, capfd):
    for line in [*_LINES, "doctor"]:
        for quiet in [[], ["-q"]]:
            if (quiet and line == "doctor") or "worker" in line or line.startswith("merge"):
                continue
            assert run([*_words(line), "--json", *quiet]) == 0, (line, capfd.readouterr())
            told = capfd.readouterr()
            assert json.loads(told.out) is not None, line
            assert not (quiet and told.err), line


def test_what_is_asked_for_on_stdout_is_there_nonetheless(place, capfd):
    assert run(["generate", "grid", "-", "--rows", "1", "--cols", "3", "-q"]) == 0
    assert capfd.readouterr() == ("0 1\n1 0\n1 2\n2 1\n", "")
    (place / "tables").mkdir()
    (place / "tables" / "user.csv").write_text("id,age\n1,2\n2,3\n")
    (place / "tables" / "user_knows_user.csv").write_text("src,dst\n1,2\n")
    assert run(["info", "tables", "-q"]) == 0
    assert "user:knows:user" in capfd.readouterr().out


def test_a_quiet_command_tells_what_is_wrong(place, capfd):
    assert run(["transform", "karate", "broken", "reverse", "-q"]) == 0
    next(Path("broken").rglob("indices.npy")).unlink()
    assert run(["validate", "broken", "-q"]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")


def test_lines_of_a_json_log_are_json_whatever_happens(place, capfd):
    assert run(["transform", "karate", "spoiled", "reverse", "-q"]) == 0
    next(Path("spoiled").rglob("indices.npy")).unlink()
    for line, code in [
        ("validate spoiled", 1),
        ("validate spoiled --quiet", 1),
        ("generate grid - --rows 1 --cols 3", 0),
        ("convert nothing.csv out", 3),
        ("convert --nonsense", 2),
        ("info karate -v", 0),
    ]:
        assert run([*shlex.split(line), "--log-format", "json"]) == code, line
        told = capfd.readouterr()
        events = [json.loads(one) for one in told.err.splitlines()]
        assert all({"time", "event"} <= one.keys() for one in events), line
        assert ("error" in {one["event"] for one in events}) == (code != 0), line


def test_the_summary_beside_edges_on_stdout_keeps_its_lines(place, capfd):
    assert run(["generate", "grid", "-", "--rows", "1", "--cols", "3"]) == 0
    assert "-: edges, 3 nodes, 4 edges\n  wrote 16 B in " in capfd.readouterr().err
    assert run(["generate", "grid", "-", "--rows", "1", "--cols", "3", "--json"]) == 0
    assert json.loads(capfd.readouterr().err)["num_nodes"] == {"_N": 3}
