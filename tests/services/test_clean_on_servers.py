"""``clean`` on a real S3 server and a real HDFS: what killed conversions, workers and exports leave goes, and nothing else."""

from __future__ import annotations

import itertools
import subprocess
import sys

import pytest
from clean.test_clean import (  # noqa: F401 - with the fixture place of this file
    Place,
    test_a_remote_claim_of_another_machine_is_respected,
    test_a_run_that_replaced_a_store_leaves_the_store,
    test_a_whole_output_that_is_hidden_stays_while_it_is_the_only_one,
    test_objects_of_an_output_that_was_never_finished_go,
    test_objects_that_cannot_be_removed_keep_the_claim_that_tells_of_them,
    test_uploads_that_were_not_ended_are,
)

import graphprep

_numbers = itertools.count()
_KILLED = """
import os, signal, sys
from graphprep.cli.main import run
from graphprep.convert.units.folder import UnitFolder
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.publish import StoreWriter
def die(self, *_):
    if not isinstance(self, UnitFolder):
        self._target.url("part-00000")  # sends what waits
    os.kill(os.getpid(), signal.SIGKILL)
UnitFolder.add = StoreWriter.publish = die
write = FolderOutput.write
FolderOutput.write = lambda self, name, pieces: (die if name == "export.json" else write)(self, name, pieces)  # the last
run(sys.argv[1:])
"""


@pytest.fixture(
    params=[
        pytest.param("s3", marks=pytest.mark.xdist_group("s3 server")),
        pytest.param("hdfs", marks=pytest.mark.xdist_group("HDFS server")),
    ]
)
def place(request):
    """A folder of its own on a server."""
    if request.param == "s3":
        return Place(request.getfixturevalue("bucket").url + "/clean")
    return Place(f"{request.getfixturevalue('hdfs_url')}/clean-{next(_numbers)}")


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        ("convert IN OUT --format edges -p 2", {"unfinished output", "objects of an unfinished output", "claim"}),
        ("export STORE OUT --to metis", {"unfinished output", "objects of an unfinished output", "claim"}),
        ("convert IN OUT --format edges --worker-index 0 --worker-count 2", {"what workers decoded"}),
    ],
    ids=["convert", "export", "worker"],
)
def test_what_a_kill_left_goes(words, kinds, place, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    place.put({"edges.txt": b"0 1\n1 2\n2 0\n"})
    names = {"IN": f"{place.url}/edges.txt", "OUT": f"{place.url}/out", "STORE": f"{place.url}/store"}
    graphprep.convert(names["IN"], names["STORE"], format="edges", layout="both")
    before = place.files()
    line = [names.get(word, word) for word in words.split()]
    killed = subprocess.run([sys.executable, "-c", _KILLED, *line], capture_output=True, check=False)
    assert killed.returncode == -9, killed.stderr
    left = place.files()
    assert len(left) > len(before)
    told = graphprep.clean(place.url, dry_run=True, all_dead=True)
    assert told.removed
    assert {one.kind for one in told.removed} <= kinds
    assert place.files() == left
    if kinds == {"what workers decoded"}:  # of another machine's nobody knows whether they are alive
        assert graphprep.clean(place.url).removed == ()
    assert graphprep.clean(place.url, all_dead="worker" in words).removed == told.removed
    assert place.files() == before
    graphprep.clean(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_killed_workers_and_merges_go_on(place, tmp_path, monkeypatch):
    """Killed while a unit is noted, before publishing, and behind it; what the last one leaves goes with the output's name."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    place.put({"edges.txt": b"0 1\n1 2\n2 0\n"})
    out = f"{place.url}/out"
    worker = ["convert", f"{place.url}/edges.txt", out, "--format", "edges", "--worker-index", "0", "--worker-count", "1"]
    merge = ["merge", out]
    late = _KILLED.replace("UnitFolder.add = StoreWriter.publish = die", "UnitFolder.remove = die")
    for script, line in ((_KILLED, worker), (None, worker), (_KILLED, merge), (late, merge)):
        command = ["-m", "graphprep"] if script is None else ["-c", script]
        done = subprocess.run([sys.executable, *command, *line], capture_output=True, check=False)
        assert done.returncode == (0 if script is None else -9), done.stderr
    report = graphprep.clean(out)
    assert "what workers decoded" in {one.kind for one in report.removed}
    assert report.kept == ()
    (tmp_path / "edges.txt").write_bytes(b"0 1\n1 2\n2 0\n")
    graphprep.convert(tmp_path / "edges.txt", tmp_path / "whole", format="edges")
    whole = Place(str(tmp_path / "whole")).files()
    found = {name: data for name, data in place.files().items() if name != "edges.txt"}
    assert found.keys() == {f"out/{name}" for name in whole}
    assert all(found[f"out/{name}"] == data for name, data in whole.items() if name != "provenance.json")
    assert list((tmp_path / "scratch").iterdir()) == []
