"""Of two runs that write to one place the second is told at once, and a dead run's claim holds nobody up."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time

import fsspec
import pytest

from graphprep.cli.main import run
from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.private import LocalClaim
from graphprep.storage.read.urls import Storage
from graphprep.storage.write import claims
from graphprep.storage.write.publish import StoreWriter

METADATA = b'{"format": "graphprep-store", "parts": [{"path": "part-00000"}]}\n'
FILES = ["store/metadata.json", "store/part-00000/manifest.json", "store/part-00000/nodes/n/x.npy"]
MANIFEST = b'{"arrays": [{"path": "nodes/n/x.npy"}]}'
WRITER = """
import sys, time
from graphprep.storage.write.publish import StoreWriter
from graphprep.storage.read.urls import Storage
with Storage() as storage, StoreWriter(storage, sys.argv[1], True) as writer:
    writer.write_file("part-00000/nodes/n/x.npy", b"x")
    print("begun", flush=True)
    time.sleep(60)
"""


@pytest.fixture(params=["memory", "s3", "hdfs"])
def out(request):
    """Return a URL where nothing is."""
    if request.param == "s3":
        return request.getfixturevalue("bucket").url + "/claims/store"
    if request.param == "hdfs":
        request.getfixturevalue("hdfs")
        return "hdfs://namenode/claims/store"
    memory = fsspec.filesystem("memory")
    if memory.exists("/claims"):
        memory.rm("/claims", recursive=True)
    return "memory://claims/store"


def begin(out, overwrite=False):
    storage = Storage()
    writer = StoreWriter(storage, out, overwrite)
    writer.__enter__()
    writer.write_file("part-00000/nodes/n/x.npy", b"x")
    writer.write_file("part-00000/manifest.json", MANIFEST)
    return writer


def finish(writer):
    writer.publish(METADATA)
    writer.__exit__(None, None, None)


def files(out):
    fs, path = fsspec.core.url_to_fs(out)
    fs.invalidate_cache()
    prefix = path.removesuffix("store")
    return sorted(name.removeprefix(prefix) for name in fs.find(prefix))


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_local_output_is_claimed_from_the_start(tmp_path, overwrite):
    out = tmp_path / "made" / "store"
    first = begin(str(out))
    with pytest.raises(UsageError) as caught:
        begin(str(out), overwrite)
    assert str(caught.value) == (
        f"{out}: process {os.getpid()} is writing this output\n  fix: wait for it, or choose another name"
    )
    finish(first)
    assert [path.name for path in out.parent.iterdir()] == ["store"]
    finish(begin(str(out), overwrite=True))
    assert [path.name for path in out.parent.iterdir()] == ["store"]


def test_a_claim_goes_with_a_run_that_fails(tmp_path):
    writer = begin(str(tmp_path / "store"))
    writer.__exit__(ValueError, ValueError(), None)
    assert list(tmp_path.iterdir()) == []
    finish(begin(str(tmp_path / "store")))


def test_the_lock_of_a_killed_run_holds_nobody_up(tmp_path):
    out = tmp_path / "store"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(out)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        with pytest.raises(UsageError, match=f"process {process.pid} is writing this output"):
            begin(str(out))
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    finish(begin(str(out)))
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize(
    "command",
    [
        ["convert", "IN", "OUT", "--format", "edges"],
        ["reorder", "STORE", "OUT", "--by", "degree"],
        ["export", "STORE", "OUT", "--to", "npy"],
        ["generate", "hetero", "OUT", "--nodes", "9", "--edges", "9", "--format", "chunked"],
        ["generate", "grid", "OUT", "--rows", "2", "--cols", "2"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_every_command_that_writes_claims_its_output(command, tmp_path, capsys):
    (tmp_path / "in").write_text("0 1\n")
    assert run(["convert", str(tmp_path / "in"), str(tmp_path / "store"), "--format", "edges", "--quiet"]) == 0
    out = tmp_path / "out"
    claim = LocalClaim(out)
    claim.take()
    places = {"IN": str(tmp_path / "in"), "OUT": str(out), "STORE": str(tmp_path / "store")}
    args = [places.get(word, word) for word in command]
    capsys.readouterr()
    assert run([*args, "--quiet"]) == 2
    assert capsys.readouterr().err == (
        f"error: {out}: process {os.getpid()} is writing this output\n  fix: wait for it, or choose another name\n"
    )
    claim.release()
    assert run([*args, "--quiet"]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out", "store"]


@pytest.mark.usefixtures("hears_signals")
def test_the_second_of_two_processes_ends_at_once(tmp_path):
    """Its input would never end."""
    os.mkfifo(tmp_path / "fifo")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "graphprep", "convert", str(tmp_path / "fifo"), str(out), "--format", "edges"]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        lock = tmp_path / ".graphprep-lock-out"
        deadline = time.monotonic() + 60
        while not (lock.exists() and lock.read_text()) and time.monotonic() < deadline:
            time.sleep(0.01)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert f"error: {out}: process {first.pid} is writing this output\n" in done.stderr
    finally:
        first.send_signal(signal.SIGINT)
        assert first.wait(60) == 130
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    """Whoever may write beside the output could have us truncate any file of ours."""
    (tmp_path / "mine").write_text("1")
    (tmp_path / ".graphprep-lock-out").symlink_to("mine")
    with pytest.raises(StorageError):
        begin(str(tmp_path / "out"))
    assert (tmp_path / "mine").read_text() == "1"


def test_the_lock_that_another_user_left_is_taken(tmp_path, monkeypatch):
    """Only that one may write to it."""
    (tmp_path / ".graphprep-lock-out").write_text("1")
    real = os.open

    def open_theirs(path, flags, *mode):
        if flags & os.O_RDWR:
            raise PermissionError(13, "injected", path)
        return real(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_theirs)
    claim = LocalClaim(tmp_path / "out")
    claim.take()
    with pytest.raises(UsageError, match="process 1 is writing this output"):
        LocalClaim(tmp_path / "out").take()
    claim.release()
    assert list(tmp_path.iterdir()) == []
    claim.take()  # a folder that cannot be written to is told of by what writes to it
    assert list(tmp_path.iterdir()) == []


def test_where_there_are_no_locks_there_is_no_claim(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    first, second = LocalClaim(tmp_path / "out"), LocalClaim(tmp_path / "out")
    first.take()
    second.take()
    first.release()


# ------------------------------------------------------------------------------------------------ URLs


def test_a_remote_output_is_claimed_from_the_start(out):
    first = begin(out)
    with pytest.raises(UsageError) as caught:
        begin(out, overwrite=True)
    assert caught.value.message.startswith(f"process {os.getpid()} is writing this output since ")
    with pytest.raises(UsageError):
        begin(out)
    finish(first)
    assert files(out) == FILES
    finish(begin(out, overwrite=True))
    assert files(out) == FILES


def claim_of(out, **changes):
    """Put the claim of a run that never ended; return what it says."""
    writer = begin(out)
    path, fs = writer._target._claim.path, writer._target._claim._fs
    claim = json.loads(fs.cat_file(path)) | changes
    claims._held.clear()
    fs.pipe_file(path, json.dumps(claim).encode())
    return claim


def test_the_claim_of_a_dead_process_of_this_machine_is_void(out):
    child = subprocess.Popen(["true"])
    child.wait()
    claim_of(out, pid=child.pid)
    finish(begin(out, overwrite=True))
    assert [name for name in files(out) if name.startswith("store/")] == FILES
    assert not [name for name in files(out) if "claim" in name]


def test_another_machines_output_is_taken_over_on_demand_only(out):
    claim = claim_of(out, host="other")
    fs = fsspec.core.url_to_fs(out)[0]
    with pytest.raises(UsageError) as caught:
        begin(out)
    if "hdfs" in out:  # elsewhere there are files at OUT already
        assert str(caught.value) == (
            f"{out}: a run on other is writing this output since {claim['time']}, or was killed\n"
            "  fix: wait for it; where it is gone, --overwrite takes the output over"
        )
    fs.invalidate_cache()
    finish(begin(out, overwrite=True))
    assert not [name for name in files(out) if "claim" in name]


def test_the_run_that_was_taken_over_ends_and_removes_nothing_of_the_other(out):
    first = begin(out)
    path = first._target._claim.path
    claim = json.loads(first._target._claim._fs.cat_file(path)) | {"host": "other", "token": "theirs"}
    first._target._claim._fs.pipe_file(path, json.dumps(claim).encode())
    with pytest.raises(StorageError, match="another run has taken this output over"):
        first.publish(METADATA)
    first.__exit__(StorageError, None, None)
    assert [name for name in files(out) if "claim" in name]
    assert ("store/part-00000/nodes/n/x.npy" in files(out)) == ("hdfs" not in out)


def test_two_machines_that_begin_at_once(out, monkeypatch):
    """The other's claim appears after ours was looked for."""
    first = begin(out)
    claim = first._target._claim
    late = claims.RemoteClaim(claim._fs, claim.path, out, takes_over=False)
    answers = iter([None])
    real = late.read
    monkeypatch.setattr(late, "read", lambda: next(answers, None) or real())
    with pytest.raises(UsageError, match=f"process {os.getpid()} is writing"):
        late.take()
    assert socket.gethostname() in claim._fs.cat_file(claim.path).decode()
    finish(first)
