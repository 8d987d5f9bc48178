"""A store whose files are cut short, or are no files, while commands read it: a message, exit code 3, and nothing left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from graphprep.cli.main import run

# Cuts every array right after it was mapped, which is what an rsync or a disk quota does to it at some time.
CUT = """
import os, sys
from graphprep.storage.read import arrays
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


# Cuts every array once it was found to be whole, for a library, which has no handler: it must not map what it reads in a row.
CUT_WHEN_CHECKED = """
import os
import sys
import graphprep
from graphprep.model.errors import StorageError
from graphprep.storage.read.arrays import ArrayReader

check = ArrayReader._check

def cut(reader):
    at = check(reader)
    if reader.url.endswith(sys.argv[3]):
        os.truncate(reader.url, os.path.getsize(reader.url) - 8)
    return at

ArrayReader._check = cut
store, out, _, command, *words = sys.argv[1:]
try:
    graphprep.export(store, out, *words) if command == "export" else graphprep.reorder(store, out, by="degree")
except StorageError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("command", "array"),
    [
        *((f"export {to}", "indices.npy") for to in ("pyg", "npy", "graphbolt", "edges")),
        ("export scipy", "indptr.npy"),
        ("export npy", "weight.npy"),
        ("export npy", "edge_ids.npy"),
        ("reorder", "indptr.npy"),
        ("reorder", "edge_ids.npy"),
    ],
)
def test_a_store_that_shrinks_under_a_call_from_python(command, array, store, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CUT_WHEN_CHECKED, str(store), str(tmp_path / "out"), array, *command.split()],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    place, said = done.stdout.split(": ", 1)
    assert place.startswith(str(store)) and place.endswith(array)
    assert said.removeprefix("a mapped").removeprefix("the") == (
        " file became shorter while it was read\n  fix: run again when nothing writes to it\n"
    )
    assert not (tmp_path / "out").exists()


# ---- what is no file, and what nobody may read

INDICES = "part-00000/edges/_N___E___N/csc/indices.npy"
STREAM = "is a pipe, a socket or a device, not a file"
READERS = (
    ["info", "{}", "--head", "2"],
    ["export", "{}", "{}-out", "--to", "npy"],
    ["reorder", "{}", "{}-out", "--by", "degree"],
)


def say(*words: str, before: Sequence[str] = ()) -> tuple[int, str]:
    """Run a command in a process of its own and return its exit code and the lines on stderr that tell of errors."""
    done = subprocess.run(
        [*before, sys.executable, "-m", "graphprep", *words], capture_output=True, timeout=60, check=False, text=True
    )
    return done.returncode, "".join(line for line in done.stderr.splitlines(True) if line.startswith(("error", "  fix")))


@pytest.mark.parametrize("name", ["metadata.json", "part-00000/manifest.json", INDICES])
def test_a_pipe_in_a_store_is_not_waited_for(name, store):
    (store / name).unlink()
    os.mkfifo(store / name)
    wanted = f"error: {store / name}: {STREAM}\n  fix: put the file back, or make the folder again\n"
    for command in READERS:
        assert say(*(word.format(store) for word in command)) == (3, wanted)
    validated = (3, wanted) if name == "metadata.json" else (1, f"error: {name}: {STREAM}\n")
    assert say("validate", str(store)) == validated
    if name == "metadata.json":
        code, said = say("convert", str(store.parent / "edges.txt"), str(store), "--overwrite", "--format", "edges")
        assert code == 2 and "is not a graphprep store" in said


@pytest.mark.parametrize("name", ["metadata.json", "part-00000/manifest.json", INDICES])
def test_a_loop_of_links_is_told(name, store):
    (store / name).unlink()
    (store / name).symlink_to(Path(name).name)
    words = "a loop of symbolic links, or too many of them"
    wanted = f"error: {store / name}: {words}\n  fix: check the links on the path\n"
    for command in READERS:
        assert say(*(word.format(store) for word in command)) == (3, wanted)
    assert say("validate", str(store)) == ((3, wanted) if name == "metadata.json" else (1, f"error: {name}: {words}\n"))


@pytest.mark.parametrize(
    "command",
    [
        "info loop",
        "validate loop",
        "convert loop out",
        "export loop out --to npy",
        "reorder loop out --by degree",
        "ids loop 0 --from raw --to typed",
    ],
)
def test_an_input_that_is_a_loop_of_links(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert run(command.split()) == 3
    assert ": a loop of symbolic links, or too many of them\n  fix: check the links on the path\n" in capsys.readouterr().err


@pytest.fixture
def as_others() -> list[str]:
    """What runs a command that may read what its user may read: root may read all."""
    if os.geteuid() != 0:
        return []
    powers = "-dac_override,-dac_read_search"
    words = ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"]
    if shutil.which("setpriv") is None or subprocess.run([*words, "true"], check=False, capture_output=True).returncode:
        pytest.skip("root's powers cannot be given up here")
    return words


@pytest.mark.parametrize("name", ["part-00000/manifest.json", INDICES])
def test_what_cannot_be_read_is_no_fault_of_the_store(name, store, as_others):
    (store / name).chmod(0)
    wanted = f"error: {store / name}: permission denied\n  fix: ask for access, or choose another place\n"
    assert say("validate", str(store), before=as_others) == (3, wanted)


def test_a_file_that_is_missing_is_a_fault_of_the_store(store):
    (store / INDICES).unlink()
    assert say("validate", str(store)) == (1, f"error: {INDICES}: no such file or folder\n")


# ---- numbers of edges that are none


@pytest.mark.parametrize(("layout", "name"), [("csc", "edge_ids"), ("csr", "edge_ids"), ("csr", "edge_rows")])
@pytest.mark.parametrize(("position", "number"), [(0, -1), (4999, 5000), (17, 2**30)])
def test_commands_that_copy_edge_ids_check_them(layout, name, position, number, store, tmp_path, capsys):
    path = store / f"part-00000/edges/_N___E___N/{layout}/{name}.npy"
    ids = np.load(path, mmap_mode="r+")
    ids[position] = number
    ids.flush()
    targets = ("scipy", "npy") if layout == "csc" else ()
    commands = [["reorder", "--by", "degree"], *(["export", "--to", target] for target in targets)]
    for command in commands:
        assert run([command[0], str(store), str(tmp_path / "out"), *command[1:]]) == 1
        said = capsys.readouterr().err
        what = "edge ID" if name == "edge_ids" else "edge row"
        assert f"error: {path}[{position}]: expected an {what} in [0, 5000), found {number}\n" in said
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", [["reorder", "--by", "degree"], ["export", "--to", "npy"]], ids=" ".join)
def test_an_edge_id_that_is_there_twice(command, store, tmp_path, capsys):
    path = store / "part-00000/edges/_N___E___N/csc/edge_ids.npy"
    ids = np.load(path, mmap_mode="r+")
    ids[17] = ids[4000]
    ids.flush()
    assert run([command[0], str(store), str(tmp_path / "out"), *command[1:]]) == 1
    wanted = f"error: {path}: expected every edge ID of 0 to 4999 once, in all partitions together\n"
    assert wanted in capsys.readouterr().err


def test_edge_ids_of_several_partitions_are_looked_at_together(store, tmp_path, capsys):
    given = [str(tmp_path / "edges.txt"), "--format", "edges", "--ids", "dense", "--partitions", "3", "-q"]
    assert run(["convert", given[0], str(tmp_path / "parts"), *given[1:]]) == 0
    assert run(["reorder", str(tmp_path / "parts"), str(tmp_path / "sound"), "--by", "degree"]) == 0
    folder = tmp_path / "parts"
    first, last = (np.load(folder / f"part-0000{at}/edges/_N___E___N/csc/edge_ids.npy", mmap_mode="r+") for at in (0, 2))
    first[3] = last[5]
    first.flush()
    capsys.readouterr()
    assert run(["reorder", str(folder), str(tmp_path / "out"), "--by", "degree"]) == 1
    assert "edge_ids.npy: expected every edge ID of 0 to 4999 once, in all partitions together\n" in capsys.readouterr().err


# ---- counts that metadata states and arrays do not have


@pytest.mark.parametrize("words", ["0 --from id --to row", "7 --from row --to id", "7 --from id --to row --type _N:_E:_N"])
def test_ids_of_edges_that_only_the_metadata_has(words, store, capsys):
    path = store / "metadata.json"
    metadata = json.loads(path.read_text()) | {"num_edges_per_type": [10**18], "num_edges_per_chunk": [[10**18]]}
    path.write_text(json.dumps(metadata))
    assert run(["ids", str(store), *words.split(), "--edge"]) == 1
    place = store / "part-00000/edges/_N___E___N/csc/edge_ids.npy"
    assert capsys.readouterr().err == (
        f"error: {place}: expected {10**18} rows, by the metadata, found int32[5000]\n"
        "  fix: graphprep validate tells more about the store\n"
    )


def test_ids_of_nodes_that_only_the_metadata_has(tmp_path, capsys):
    (tmp_path / "e.txt").write_text("b a\nc a\n")
    assert run(["convert", str(tmp_path / "e.txt"), str(tmp_path / "s"), "--format", "edges", "--id-type", "string"]) == 0
    path = tmp_path / "s" / "metadata.json"
    metadata = json.loads(path.read_text()) | {"num_nodes_per_type": [10**18], "num_nodes_per_chunk": [[10**18]]}
    path.write_text(json.dumps(metadata))
    for words in ("a --from raw --to typed", "5 --from typed --to raw"):
        capsys.readouterr()
        assert run(["ids", str(tmp_path / "s"), *words.split()]) == 1
        assert f"raw_ids.offsets.npy: expected {10**18 + 1} rows, by the metadata, found int64[4]\n" in capsys.readouterr().err
