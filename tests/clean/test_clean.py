"""What dead runs left goes; whole stores, runs that are alive and files of others stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import fsspec
import numpy as np
import pytest
from golden.golden_cases import read_store

import graphprep
from graphprep.clean import local, remote
from graphprep.cli.main import run
from graphprep.convert.resume import journal_folder
from graphprep.convert.units.folder import UnitFolder
from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.private import LocalClaim, PrivateFolder, _own
from graphprep.storage.read.urls import Storage
from graphprep.storage.write import claims
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.publish import StoreWriter

KILLED = """
import os, signal, sys
from graphprep.storage.private import PrivateFolder
from graphprep.storage.write.publish import StoreWriter
from graphprep.storage.read.urls import Storage
out = sys.argv[1]
storage, spill = Storage(), PrivateFolder(os.path.dirname(out))
open(os.path.join(spill.make(), "runs-1"), "wb").write(bytes(100))
writer = StoreWriter(storage, out, True).__enter__()
writer.write_file("part-00000/nodes/n/x.npy", bytes(5000))
print("begun", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""
STRANGERS = {
    ".out.graphprep-notes": b"mine",
    ".graphprep-locks": b"1",
    ".graphprep-lock-list": b"not a number\n",
    "out.graphprep-0123abcd": b"x",
    ".graphprep-tmp-0123abcd-0123456789ab": b"a file",
    ".other/graphprep-claim": b"x",
    "part-00000/nodes/n/x.npy": b"somebody's",
    "raw/part-00000/nodes/n/x.npy": b"somebody's",
    "provenance.json": b"{}",
}
OLD = {
    "store/metadata.json": b'{"format": "graphprep-store", "parts": [{"path": "part-00000"}]}',
    "store/part-00000/nodes/n/x.npy": b"whole",
}
OLD["store/part-00000/manifest.json"] = b'{"arrays": [{"path": "nodes/n/x.npy"}]}'


class Place:
    """A folder of a file system of fsspec."""

    def __init__(self, url):
        self.fs, path = fsspec.core.url_to_fs(url)
        self.url, self.path = url, path.rstrip("/")

    def put(self, files):
        for name, data in files.items():
            self.fs.makedirs(f"{self.path}/{name}".rpartition("/")[0], exist_ok=True)
            with self.fs.open(f"{self.path}/{name}", "wb") as file:
                file.write(data)

    def files(self):
        self.fs.invalidate_cache()
        return {one.removeprefix(self.path + "/"): self.fs.cat_file(one) for one in self.fs.find(self.path)}


@pytest.fixture(params=["memory", "s3", "hdfs"])
def place(request):
    """Return a remote folder where nothing is."""
    if request.param == "s3":
        return Place(request.getfixturevalue("bucket").url + "/clean")
    if request.param == "hdfs":
        request.getfixturevalue("hdfs")
        return Place("hdfs://namenode/clean")
    memory = fsspec.filesystem("memory")
    if memory.exists("/clean"):
        memory.rm("/clean", recursive=True)
    return Place("memory://clean")


def begin(out, overwrite=False):
    writer = StoreWriter(Storage(), out, overwrite)
    writer.__enter__()
    writer.write_file("part-00000/nodes/n/x.npy", b"half")
    writer.url_of("")  # what was put together with others is there
    return writer


def die(writer, **changes):
    """Let the run of a claim be dead, or of another machine."""
    claims._held.clear()
    claim = writer._target._claim
    claim._fs.pipe_file(claim.path, json.dumps(claim.read() | changes).encode())


def removed(report):
    return [(one.place, one.kind) for one in report.removed]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------------------------------ local


def test_a_killed_run_leaves_nothing_after_it(tmp_path):
    out = tmp_path / "data" / "out"
    out.parent.mkdir()
    journal = journal_folder(str(out), str(out.parent))
    for name, data in STRANGERS.items():
        path = out.parent / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(data)
    before = names(out.parent)
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "begun\n"
        live = graphprep.clean(out)
        assert removed(live) == []
        assert sorted(one.reason for one in live.kept) == ["a run that is alive uses it"] * 3
        process.stdin.close()
        assert process.wait(60) == -signal.SIGKILL
    journal.make()
    (journal.path / "segment-000001").write_bytes(bytes(30))
    os.close(journal._lock)
    left = sorted(set(names(out.parent)) - set(before))
    kinds = ["lock", "journal of an interrupted run", "temporary files", "unfinished output"]
    told = graphprep.clean(out, dry_run=True)
    assert [place.rpartition("/")[2] for place, _ in removed(told)] == left
    assert [kind for _, kind in removed(told)] == kinds
    assert [(one.num_files, one.num_bytes) for one in told.removed][1:] == [(1, 30), (1, 100), (1, 5000)]
    assert names(out.parent) == sorted([*before, *left])
    assert removed(graphprep.clean(out)) == removed(told)
    assert names(out.parent) == before
    assert {name: (out.parent / name).read_bytes() for name in STRANGERS} == STRANGERS
    assert removed(graphprep.clean(out, out.parent)) == []


def test_a_folder_of_outputs_is_cleaned_whatever_their_names(tmp_path):
    for name in ("one", "two"):
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            process.stdin.close()
            assert process.wait(60) == -signal.SIGKILL
    (tmp_path / ".three.csv.graphprep-0123abcd").write_bytes(b"1 2\n")
    report = graphprep.clean(tmp_path)
    assert sorted(kind for _, kind in removed(report)) == [
        "lock", "lock", "temporary files", "unfinished file", "unfinished output", "unfinished output"
    ]  # fmt: skip
    assert names(tmp_path) == []


def test_the_file_of_a_run_that_is_alive_stays(tmp_path):
    (tmp_path / ".out.csv.graphprep-0123abcd").write_bytes(b"1 2\n")
    claim = LocalClaim(tmp_path / "out.csv")
    claim.take()
    before = names(tmp_path)
    assert [one.reason for one in graphprep.clean(tmp_path, all_dead=True).kept] == ["a run that is alive uses it"] * 2
    assert names(tmp_path) == before
    claim.release()
    graphprep.clean(tmp_path / "out.csv")
    assert names(tmp_path) == []


def test_what_another_machine_made_goes_on_demand_only(tmp_path):
    folder = tmp_path / ".out.graphprep-01234567-0123456789ab"
    folder.mkdir()
    (folder / "file").write_bytes(b"x")
    report = graphprep.clean(tmp_path / "out")
    assert [one.reason for one in report.kept] == ["a run on another machine made it, which may be alive (all_dead)"]
    assert names(tmp_path) == [folder.name]
    assert removed(graphprep.clean(tmp_path / "out", all_dead=True)) == [(str(folder), "unfinished output")]
    assert names(tmp_path) == []


def test_a_hidden_store_that_is_whole_stays_while_it_is_the_only_one(tmp_path):
    hidden = tmp_path / (_own(".out.graphprep-") + "0123456789ab")
    hidden.mkdir()
    (hidden / "metadata.json").write_text("{}")
    out = tmp_path / "out"
    (kept,) = graphprep.clean(tmp_path).kept
    assert kept.reason == f"it is a whole store, and there is none at {out}: move it there, or remove it by hand"
    out.mkdir()
    (out / "metadata.json").write_text("{}")
    assert removed(graphprep.clean(out)) == [(str(hidden), "unfinished output")]
    assert names(tmp_path) == ["out"]
    assert names(out) == ["metadata.json"]


def test_links_and_what_is_another_users_are_not_followed(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("x")
    (tmp_path / (_own(".out.graphprep-") + "0123456789ab")).symlink_to("mine")
    (tmp_path / ".graphprep-lock-out").symlink_to("mine/file")
    before = names(tmp_path)
    assert removed(graphprep.clean(tmp_path)) == []
    assert names(tmp_path) == before
    folder = PrivateFolder(str(tmp_path))
    folder.make()
    folder.release()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert removed(graphprep.clean(tmp_path)) == []
    assert [kind for _, kind in removed(graphprep.clean(tmp_path))] == ["temporary files"]


def test_where_there_are_no_locks_nobody_can_tell(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(95, "not supported")

    (tmp_path / (_own(".out.graphprep-") + "0123456789ab")).mkdir()
    monkeypatch.setattr(fcntl, "flock", refuse)
    (kept,) = graphprep.clean(tmp_path).kept
    assert kept.reason == "this disk knows no locks, so that nobody can tell whether its run is alive (all_dead)"
    assert len(graphprep.clean(tmp_path, all_dead=True).removed) == 1


def test_a_run_is_told_by_what_a_link_leads_to(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "links").mkdir()
    (tmp_path / "links/out").symlink_to(tmp_path / "disk/out")
    hidden = tmp_path / "disk" / (_own(".out.graphprep-") + "0123456789ab")
    hidden.mkdir()
    assert removed(graphprep.clean(tmp_path / "links/out")) == [(str(hidden), "unfinished output")]
    assert names(tmp_path / "disk") == []
    assert names(tmp_path / "links") == ["out"]


def test_the_folder_above_is_cleaned_under_its_name(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    hidden = _own(".out.graphprep-") + "0123456789ab"
    for folder in (tmp_path, tmp_path / "in"):
        (folder / hidden).mkdir()
    monkeypatch.chdir(tmp_path / "in")
    assert removed(graphprep.clean("..")) == [(str(tmp_path / hidden), "unfinished output")]
    assert names(tmp_path / "in") == [hidden]


def test_a_name_of_two_lines_is_a_name(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "two\nlines")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdin.close()
        assert process.wait(60) == -signal.SIGKILL
    assert len(graphprep.clean(tmp_path / "two\nlines").removed) == 3
    assert names(tmp_path) == []


def test_an_export_that_was_put_aside_stays_while_nothing_took_its_place(tmp_path):
    """Where two folders cannot be exchanged, the old one goes aside: a kill may come before the new one has its name."""
    aside, hidden = (tmp_path / (_own(".out.graphprep-") + end) for end in ("0123456789ab-old", "0123456789ab"))
    for folder in (aside, hidden):
        folder.mkdir()
        (folder / "model.bin").write_bytes(b"x")
    report = graphprep.clean(tmp_path, all_dead=True)
    assert removed(report) == [(str(hidden), "unfinished output")]
    out = tmp_path / "out"
    assert [one.reason for one in report.kept] == [
        f"it is what stood at {out}, where nothing is: move it there, or remove it by hand"
    ]
    out.mkdir()
    assert removed(graphprep.clean(tmp_path)) == [(str(aside), "unfinished output")]


def test_a_remote_export_that_was_put_aside_stays_while_nothing_took_its_place(hdfs):
    place = Place("hdfs://namenode/clean")
    place.put({".out.graphprep-0123abcd-old/model.bin": b"x"})
    (kept,) = graphprep.clean(place.url, all_dead=True).kept
    assert kept.reason.startswith(f"it is whole, and {place.url}/out is not: copy it there")
    place.put({"out/model.bin": b"y"})
    graphprep.clean(place.url)
    assert list(place.files()) == ["out/model.bin"]


def test_what_a_run_removes_while_it_is_looked_at_is_no_error(tmp_path, monkeypatch):
    folder = PrivateFolder(str(tmp_path))
    path = folder.make()
    walk = os.walk

    def late(top, *args, **kwargs):
        for found in walk(top, *args, **kwargs):
            folder.remove()
            yield found

    (tmp_path / path / "runs-1").write_bytes(b"x")
    monkeypatch.setattr(os, "walk", late)
    report = graphprep.clean(tmp_path)
    assert report.kept == ()
    assert names(tmp_path) == []


def test_a_lock_that_another_run_has_by_then_stays(tmp_path, monkeypatch):
    (tmp_path / ".graphprep-lock-out").write_text("1")
    hold = local.hold

    def late(path, **options):
        held = hold(path, **options)
        os.unlink(path)  # noqa: PTH108
        (tmp_path / ".graphprep-lock-out").write_text("2")
        return held

    monkeypatch.setattr(local, "hold", late)
    assert [one.reason for one in graphprep.clean(tmp_path).kept] == ["a run that is alive uses it"]
    assert (tmp_path / ".graphprep-lock-out").read_text() == "2"


def test_a_journal_that_is_in_use_stays(tmp_path):
    journal = journal_folder(str(tmp_path / "out"), str(tmp_path))
    journal.make()
    assert [one.reason for one in graphprep.clean(tmp_path).kept] == ["a run that is alive uses it"]
    journal.remove()
    assert names(tmp_path) == []


# ------------------------------------------------------------------------------------------------ URLs


def test_objects_of_an_output_that_was_never_finished_go(place):
    place.put({**STRANGERS, **OLD, "new/notes.txt": b"mine"} if "hdfs" not in place.url else STRANGERS | OLD)
    before = place.files()
    place.fs.invalidate_cache()
    if "hdfs" in place.url:
        writer = begin(f"{place.url}/new")
    else:  # what is not ours is put while the run is at it
        place.fs.rm(f"{place.path}/new/notes.txt")
        writer = begin(f"{place.url}/new")
        place.put({"new/notes.txt": b"mine"})
    (live,) = {one.reason.partition(" since")[0] for one in graphprep.clean(f"{place.url}/new").kept}
    assert live == f"process {os.getpid()} is writing this output"
    die(writer)
    told = graphprep.clean(place.url, dry_run=True)
    is_hdfs = "hdfs" in place.url
    assert sorted(kind for _, kind in removed(told)) == (
        ["claim", "unfinished output"] if is_hdfs else ["claim", "objects of an unfinished output"]
    )
    assert sum(one.num_bytes for one in told.removed) == 4
    assert place.files() != before
    report = graphprep.clean(place.url)
    assert removed(report) == removed(told)
    assert report.kept == ()
    assert place.files() == before
    assert removed(graphprep.clean(place.url, f"{place.url}/new", f"{place.url}/store")) == []
    assert place.files() == before


def test_a_run_that_replaced_a_store_leaves_the_store(place):
    place.put(OLD)
    writer = begin(f"{place.url}/store", overwrite=True)
    die(writer)
    assert place.files() != OLD
    assert "unfinished output" in [kind for _, kind in removed(graphprep.clean(f"{place.url}/store"))]
    assert place.files() == OLD


def test_a_remote_claim_of_another_machine_is_respected(place):
    place.put(OLD)
    writer = begin(f"{place.url}/store", overwrite=True)
    die(writer, host="other", time="2026-01-01T00:00:00+0000")
    before = place.files()
    report = graphprep.clean(f"{place.url}/store")
    assert report.removed == ()
    assert {one.reason for one in report.kept} == {
        "a run on other is writing this output since 2026-01-01T00:00:00+0000, or was killed (all_dead)"
    }
    assert place.files() == before
    graphprep.clean(f"{place.url}/store", all_dead=True)
    assert place.files() == OLD


def test_a_run_that_fails_leaves_the_claim_of_the_dead_one_whose_objects_are_there(place):
    """Else nobody could tell any more whose they are."""
    out = f"{place.url}/flows"
    dead = FolderOutput(Storage(), out, replaces=None, last="META").__enter__()
    dead.write("graph/edges.bin", b"x" * 10)
    dead._target.url("")
    die(dead, pid=0)
    before = place.files()
    with pytest.raises(RuntimeError), FolderOutput(Storage(), out, replaces=frozenset(), last="META") as another:
        another.write("graph/nodes.bin", b"y")
        raise RuntimeError
    if "hdfs" not in place.url:  # there a hidden folder tells it
        assert place.files() == before
    another = FolderOutput(Storage(), out, replaces=frozenset(), last="META").__enter__()
    another.write("graph/nodes.bin", b"y")
    another._target.url("")
    die(another)  # it is killed as well
    graphprep.clean(out)
    assert place.files() == {}


def test_an_export_leaves_what_it_did_not_write(place):
    folder = FolderOutput(Storage(), f"{place.url}/flows", replaces=None, last="META")
    folder.__enter__()
    folder.write("graph/edges.bin", b"x" * 10)
    folder._target.url("")
    place.put({"flows/other.bin": b"mine"} if "hdfs" not in place.url else {"other.bin": b"mine"})
    die(folder)
    graphprep.clean(f"{place.url}/flows")
    assert list(place.files().values()) == [b"mine"]


def test_a_whole_output_that_is_hidden_stays_while_it_is_the_only_one(place):
    writer = begin(f"{place.url}/new", overwrite=True) if "hdfs" in place.url else None
    if writer is None:
        place.put({"new/part-00000/nodes/n/x.npy": b"half", "new/.graphprep-claim": b"{}"})
        writer = begin_over(place)
    writer.write_file("metadata.json", b"{}")
    writer.url_of("")
    die(writer)
    whole = {name: data for name, data in place.files().items() if name.startswith(".new.") and "claim" not in name}
    assert len(whole) == 2
    for _ in range(2):  # the claim stays with it
        report = graphprep.clean(f"{place.url}/new")
        reasons = [one.reason for one in report.kept]
        assert "what it tells of stays" in reasons
        assert f"it is whole, and {place.url}/new is not: copy it there, metadata.json last, or remove it by hand" in reasons
    assert {name: data for name, data in place.files().items() if "claim" not in name} == whole
    place.put({"new/metadata.json": b"{}"})
    graphprep.clean(place.url)
    assert list(place.files()) == ["new/metadata.json"]


def begin_over(place):
    """Begin a run in the place of one that was killed on another machine."""
    return begin(f"{place.url}/new", overwrite=True)


def test_uploads_that_were_not_ended_are(bucket):
    writer = begin(f"{bucket.url}/deep/store")
    array = writer.open_array("part-00000", "nodes/n/big.npy", "u1", (12 << 20,))
    array.append(np.zeros(11 << 20, "u1"))
    call = bucket.fs.call_s3
    call("create_multipart_upload", Bucket=bucket.name, Key="deep/store/theirs.bin")
    call("create_multipart_upload", Bucket=bucket.name, Key="deep/other/part-00000/a.npy")
    call("create_multipart_upload", Bucket=bucket.name, Key="deep/edges.txt")
    assert len(bucket.uploads()) == 4
    die(writer)
    place = f"{bucket.url}/deep/store/part-00000/nodes/n/big.npy"
    assert (place, "1 unfinished upload") in removed(graphprep.clean(f"{bucket.url}/deep"))
    assert sorted(bucket.uploads()) == ["deep/edges.txt", "deep/other/part-00000/a.npy", "deep/store/theirs.bin"]
    (kept,) = graphprep.clean(f"{bucket.url}/deep/edges.txt").kept
    assert kept.reason == "nobody can tell whether its run is alive (all_dead)"
    graphprep.clean(f"{bucket.url}/deep/edges.txt", all_dead=True)
    assert sorted(bucket.uploads()) == ["deep/other/part-00000/a.npy", "deep/store/theirs.bin"]
    assert bucket.files() == {}


def test_a_file_on_hdfs_that_was_not_finished_has_no_claim(hdfs):
    place = Place("hdfs://namenode/clean")
    place.put({".out.csv.graphprep-0123abcd": b"1 2\n"})
    (kept,) = graphprep.clean(place.url).kept
    assert kept.reason == "nobody can tell whether its run is alive (all_dead)"
    graphprep.clean(place.url, all_dead=True)
    assert place.files() == {}


def test_what_workers_decoded_goes_on_demand_only(place, tmp_path):
    folder = tmp_path / "local"
    (folder / ".out.graphprep-workers").mkdir(parents=True)
    (folder / ".out.graphprep-workers/unit-000001-0123abcd-89abcdef").write_bytes(b"x")
    place.put({".out.graphprep-workers/unit-000001-0123abcd-89abcdef": b"x"})
    for where in (f"{place.url}/out", folder / "out"):
        (kept,) = graphprep.clean(where).kept
        assert kept.reason == "workers of other machines may still add to it, or merge read it (all_dead)"
        assert [kind for _, kind in removed(graphprep.clean(where, all_dead=True))] == ["what workers decoded"]
    assert place.files() == {}
    assert names(folder) == []


def decode(file, out, **given):
    for index in range(2):
        graphprep.convert(file, out, worker_index=index, worker_count=2, block_bytes=8, **given)


@pytest.fixture
def lines(tmp_path):
    file = tmp_path / "edges.csv"
    file.write_text("src,dst\n" + "".join(f"{row},{row * 7 % 300}\n" for row in range(300)))
    return file


def test_what_workers_decoded_goes_once_it_is_merged(place, lines, tmp_path, monkeypatch):
    """As a merge leaves it that is killed behind publishing; what workers decode anew stays."""
    monkeypatch.setattr(UnitFolder, "remove", lambda _: None)
    (tmp_path / "local").mkdir()
    for out in (f"{place.url}/out", str(tmp_path / "local/out")):
        decode(lines, out)
        assert [one.kind for one in graphprep.clean(out).kept] == ["what workers decoded"]
        graphprep.merge(out)
        for dry_run in (True, False):
            report = graphprep.clean(out, dry_run=dry_run)
            assert [kind for _, kind in removed(report)] == ["what workers decoded"]
            assert report.kept == ()
        assert graphprep.clean(out).removed == ()
        decode(lines, out, overwrite=True)
        assert graphprep.clean(out).removed == ()
        graphprep.merge(out)
        assert len(graphprep.clean(out).removed) == 1
        assert graphprep.validate(out).num_edges == {"_N:_E:_N": 300}
    assert all(name.startswith("out/") for name in place.files())
    assert names(tmp_path / "local") == ["out"]


MERGE_KILLED = """
import os, signal, sys
import graphprep
from graphprep.convert.units.folder import UnitFolder
UnitFolder.remove = lambda _: os.kill(os.getpid(), signal.SIGKILL)
graphprep.merge(sys.argv[1])
"""


@pytest.mark.parametrize("goes_on", ["clean", "merge"])
def test_a_merge_that_is_killed_behind_publishing(goes_on, lines, tmp_path):
    (tmp_path / "places").mkdir()
    out = tmp_path / "places/out"
    decode(lines, out)
    assert subprocess.run([sys.executable, "-c", MERGE_KILLED, out], check=False).returncode == -signal.SIGKILL
    assert names(out.parent) == [".out.graphprep-workers", "out"]
    assert run([goes_on, str(out)]) == 0
    assert names(out.parent) == ["out"]
    graphprep.convert(lines, tmp_path / "whole")
    assert read_store(out) == read_store(tmp_path / "whole")


def test_a_folder_with_the_name_of_the_workers_that_holds_something_else_stays(place, tmp_path):
    folder = tmp_path / ".out.graphprep-workers"
    folder.mkdir()
    (folder / "run.json").write_bytes(b"{}")
    (folder / "thesis.txt").write_bytes(b"mine")
    place.put({".out.graphprep-workers/run.json": b"{}", ".out.graphprep-workers/thesis.txt": b"mine"})
    for where in (f"{place.url}/out", tmp_path / "out"):
        report = graphprep.clean(where, all_dead=True)
        assert [one.reason for one in report.kept] == ["it holds thesis.txt, which no worker wrote"]
        assert report.removed == ()
    assert len(place.files()) == 2
    assert names(folder) == ["run.json", "thesis.txt"]


# ------------------------------------------------------------------------------------------------ the command


def test_the_command_tells_what_it_does(tmp_path, capsys):
    hidden = tmp_path / (_own(".out.graphprep-") + "0123456789ab")
    hidden.mkdir()
    for name in ("a", "b"):
        (hidden / name).write_bytes(bytes(600))
    assert run(["clean", str(tmp_path / "out"), "--dry-run"]) == 0
    assert capsys.readouterr().out == (
        f"would remove {hidden}: unfinished output, 2 files, 1.2 KB\nwould remove 1 leftover, 1.2 KB\n"
    )
    assert run(["clean", str(tmp_path / "out"), "--json"]) == 0
    told = {"place": str(hidden), "kind": "unfinished output", "num_files": 2, "num_bytes": 1200, "reason": ""}
    assert json.loads(capsys.readouterr().out) == {
        "removed": [told],
        "kept": [],
        "dry_run": False,
        "failures": [],
        "num_bytes": 1200,
    }
    assert run(["clean", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == "removed nothing\n"
    other = tmp_path / ".out.graphprep-01234567-0123456789ab"
    other.mkdir()
    assert run(["clean", str(tmp_path)]) == 0
    assert capsys.readouterr().out == (
        f"kept {other}: unfinished output\n"
        "  a run on another machine made it, which may be alive (--all-dead)\nremoved nothing\n"
    )


def test_what_cannot_be_removed_is_told_and_keeps_nothing_else(tmp_path, capsys, monkeypatch):
    folders = [tmp_path / (_own(f".{name}.graphprep-") + "0123456789ab") for name in "abc"]
    for folder in folders:
        folder.mkdir()
        (folder / "x").write_bytes(bytes(600))
    remove = local.shutil.rmtree

    def refuse(path):
        if path in folders[:2]:
            raise PermissionError(13, "Permission denied", str(path / "x"))
        remove(path)

    monkeypatch.setattr(local.shutil, "rmtree", refuse)
    words = [f"error: {one}: cannot be removed: permission denied\n  fix: ask for access\n" for one in folders[:2]]
    for flags in ([], ["--json"]):
        assert run(["clean", str(tmp_path), *flags]) == 3
        shown = capsys.readouterr()
        assert shown.err == "".join(words)
        if not flags:
            assert shown.out == (
                f"removed {folders[2]}: unfinished output, 1 file, 600 B\nremoved 1 leftover, 600 B, 2 could not be removed\n"
            )
    told = [{"place": str(one), "message": "cannot be removed: permission denied", "fix": "ask for access"} for one in folders]
    assert json.loads(shown.out)["failures"] == told[:2]
    assert not folders[2].exists()
    assert "error: " in graphprep.clean(tmp_path)._repr_html_()
    monkeypatch.undo()
    assert len(graphprep.clean(tmp_path).removed) == 2


def test_objects_that_cannot_be_removed_keep_the_claim_that_tells_of_them(place, monkeypatch):
    for name in ("one", "two"):
        die(begin(f"{place.url}/{name}"), pid=0)
    remove = remote._Output._remove

    def refuse(self, *files):
        if self.name == "one":
            raise PermissionError("not you")
        return remove(self, *files)

    with monkeypatch.context() as patched:
        patched.setattr(remote._Output, "_remove", refuse)
        report = graphprep.clean(place.url)
    assert [one.message for one in report.failures] == ["cannot be removed: permission denied"]
    assert [(one.kind, one.reason) for one in report.kept] == [("claim", "what it tells of stays")]
    assert place.files()
    assert not [name for name in place.files() if "two" in name]
    assert graphprep.clean(place.url).kept == ()
    assert place.files() == {}


def test_a_place_that_is_not_there_is_told(tmp_path, capsys):
    with pytest.raises(UsageError, match="the place has no name"):
        graphprep.clean("")
    with pytest.raises(UsageError, match="PATH is needed"):
        graphprep.clean()
    with pytest.raises(StorageError, match="no such file or folder"):
        graphprep.clean(tmp_path / "none/out")
    assert run(["clean"]) == 2
    assert capsys.readouterr().err == "error: missing argument 'PATH...'\n  fix: see graphprep clean --help\n"
