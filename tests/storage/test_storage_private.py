"""Private folders: locked while they are used, removed at the end, and after a kill by who comes next."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from graphprep.model.errors import StorageError
from graphprep.storage import private
from graphprep.storage.private import PrivateFolder, find_private, remove_leftovers


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def leave_one(tmp_path):
    """Make a folder in a process that is killed."""
    code = (
        "import os, signal\nfrom graphprep.storage.private import PrivateFolder\n"
        f"folder = PrivateFolder({str(tmp_path)!r}).make()\nopen(folder + '/runs-1', 'w').write('x')\n"
        "os.mkdir(folder + '/deep')\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert run.returncode == -signal.SIGKILL


def test_made_when_needed_and_removed(tmp_path):
    folder = PrivateFolder(str(tmp_path))
    folder.remove()
    assert names(tmp_path) == []
    path = Path(folder.make())
    assert folder.make() == str(path)
    assert path.parent == tmp_path
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "file").write_text("x")
    folder.remove()
    folder.remove()
    assert names(tmp_path) == []
    assert Path(folder.make()).is_dir()  # it can be used again
    folder.remove()


def test_the_next_one_removes_what_a_killed_process_left(tmp_path):
    leave_one(tmp_path)
    leave_one(tmp_path)  # removes the first
    assert len(names(tmp_path)) == 1
    assert list(find_private(str(tmp_path))) == [str(tmp_path / names(tmp_path)[0])]
    assert remove_leftovers(str(tmp_path)) == 1
    assert names(tmp_path) == []
    leave_one(tmp_path)
    folder = PrivateFolder(str(tmp_path))
    folder.make()
    assert len(names(tmp_path)) == 1
    folder.remove()
    assert names(tmp_path) == []


def test_what_is_used_stays(tmp_path):
    mine, other = PrivateFolder(str(tmp_path)), PrivateFolder(str(tmp_path))
    mine.make()
    other.make()
    assert remove_leftovers(str(tmp_path)) == 0
    code = f"from graphprep.storage.private import remove_leftovers; print(remove_leftovers({str(tmp_path)!r}))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "0\n"
    assert len(names(tmp_path)) == 2
    mine.remove()
    other.remove()


def test_what_is_not_ours_stays(tmp_path, monkeypatch):
    prefix = private._own(private._PREFIX)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / f"{prefix}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{prefix}file").write_text("x")
    (tmp_path / ".graphprep-tmp-01234567-abc").mkdir()  # of another machine
    (tmp_path / "graphprep-tmp").mkdir()
    (tmp_path / f"{prefix}whole").mkdir()
    (tmp_path / f"{prefix}whole/metadata.json").write_text("{}")
    before = names(tmp_path)
    assert remove_leftovers(str(tmp_path)) == 0
    (tmp_path / f"{prefix}dead").mkdir()
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        assert remove_leftovers(str(tmp_path)) == 0
    assert remove_leftovers(str(tmp_path)) == 1
    assert names(tmp_path) == before
    assert remove_leftovers(str(tmp_path / "nowhere")) == 0


def test_a_folder_that_is_taken_for_a_leftover_before_it_is_locked(tmp_path, monkeypatch):
    real, calls = private._lock, []

    def lock(path, *, wait):
        if wait:
            calls.append(path)
            if len(calls) <= 2:
                assert remove_leftovers(str(tmp_path)) == 1
        return real(path, wait=wait)

    monkeypatch.setattr(private, "_lock", lock)
    folder = PrivateFolder(str(tmp_path))
    assert Path(folder.make()).is_dir()
    assert len(set(calls)) == 3
    folder.remove()
    assert names(tmp_path) == []


def test_a_folder_that_is_removed_while_its_lock_is_awaited(tmp_path, monkeypatch):
    real, calls = private._lock, []

    def lock(path, *, wait):
        calls.append(path)
        locked = real(path, wait=wait)
        if len(calls) == 1:
            Path(path).rmdir()
        return locked

    held = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(private, "_lock", lock)
    folder = PrivateFolder(str(tmp_path))
    assert Path(folder.make()).is_dir()
    assert len(set(calls)) == 2
    folder.remove()
    assert len(list(Path("/proc/self/fd").iterdir())) == held


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(private, "_lock", lambda path, *, wait: None)
    folder = PrivateFolder(str(tmp_path))
    folder.make()
    assert remove_leftovers(str(tmp_path)) == 0
    assert len(names(tmp_path)) == 1
    folder.remove()
    assert names(tmp_path) == []


def test_a_place_that_does_not_take_it(tmp_path):
    folder = PrivateFolder(str(tmp_path / "none"))
    for _ in range(2):
        with pytest.raises(StorageError) as caught:
            folder.make()
        assert str(caught.value) == f"{tmp_path}/none: no such file or folder\n  fix: check the spelling of the path"
    folder.remove()


def test_many_at_once_never_lose_a_folder(tmp_path):
    faults = []

    def work():
        for _ in range(30):
            folder = PrivateFolder(str(tmp_path))
            path = Path(folder.make())
            try:
                (path / "file").write_text("x")
                if (path / "file").read_text() != "x":
                    faults.append(path)
            except OSError as error:
                faults.append(error)
            folder.remove()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == []
    assert names(tmp_path) == []
