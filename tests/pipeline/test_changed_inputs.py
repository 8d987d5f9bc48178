"""Inputs that change while a run reads them: it fails, wherever they lie, and leaves nothing."""

from __future__ import annotations

import os
import threading

import pytest
from everywhere import Folder, Remote, served, stub_hdfs

import graphprep
from graphprep.cli.main import run
from graphprep.convert import pipeline
from graphprep.model.errors import StorageError
from graphprep.storage.read.urls import Storage

OLD, NEW, LONGER = b"0 1\n1 2\n", b"0 1\n1 3\n", b"0 1\n1 2\n2 3\n"
KINDS = ["local", "memory", "s3", "hdfs", "http"]


@pytest.fixture
def place(request, tmp_path, monkeypatch):
    """Return a folder of a kind, and its URL."""
    kind = request.param
    if kind == "memory":
        import fsspec

        made = Remote(fsspec.filesystem("memory"), "/", "memory://")
    elif kind == "s3":
        bucket = request.getfixturevalue("bucket")
        made = Remote(bucket.fs, f"{bucket.name}/", f"{bucket.url}/")
    elif kind == "hdfs":
        made = stub_hdfs(request.getfixturevalue("hdfs"))
    else:
        made = Folder(tmp_path / "in")
    if kind != "http":
        yield made, made.url
        return
    with served(made) as url:
        yield made, url


def put(place, data, seconds):
    """Put the input, changed at a time of its own also where clocks are coarse."""
    place.put_all({"a.txt": data})
    if isinstance(place, Folder):
        os.utime(place.path / "a.txt", (seconds, seconds))


@pytest.mark.parametrize("place", KINDS, indirect=True)
@pytest.mark.parametrize("data", [NEW, LONGER], ids=["other bytes", "more bytes"])
@pytest.mark.parametrize("command", ["convert", "validate"])
def test_an_input_that_changes_after_it_was_read_fails_the_run(command, data, place, tmp_path, monkeypatch, capsys):
    place, url = place
    put(place, OLD, 1)
    whole = pipeline._prepare

    def prepare(*args):
        prepared = whole(*args)
        put(place, data, 2)
        return prepared

    monkeypatch.setattr(pipeline, "_prepare", prepare)
    out = tmp_path / "out"
    assert run([command, f"{url}/a.txt", *([str(out)] if command == "convert" else []), "--format", "edges"]) == 3
    sizes = f" ({len(OLD)} bytes, now {len(data)})" if len(data) != len(OLD) else ""
    expected = f"error: {url}/a.txt: the file changed while it was read{sizes}\n  fix: run again when it is complete\n"
    assert capsys.readouterr().err.endswith(expected)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("place", ["local", "memory", "s3", "hdfs"], indirect=True)
def test_a_file_that_is_opened_again_must_be_the_same(place):
    place, url = place
    put(place, OLD, 1)
    with Storage() as storage:
        storage.open(f"{url}/a.txt").close()
        put(place, LONGER, 2)
        with pytest.raises(StorageError, match=r"a\.txt: the file changed while it was read \(8 bytes, now 12\)"):
            storage.open(f"{url}/a.txt")


def test_what_was_removed_or_came_through_a_pipe_has_not_changed(tmp_path):
    path, pipe = tmp_path / "a.txt", tmp_path / "pipe"
    path.write_bytes(OLD)
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(OLD,))
    writer.start()
    with Storage(tmp_dir=str(tmp_path)) as storage:
        storage.open(str(path)).close()
        path.unlink()
        assert storage.read_bytes(str(pipe)) == storage.read_bytes(str(pipe)) == OLD
        storage.check_unchanged()
    writer.join()


@pytest.mark.parametrize("command", ["reorder", "export"])
def test_a_store_that_is_replaced_while_it_is_read_fails_the_run(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "a.txt").write_bytes(OLD)
    (tmp_path / "b.txt").write_bytes(LONGER)
    store = tmp_path / "store"
    graphprep.convert(tmp_path / "a.txt", store, format="edges")
    whole = Storage.check_unchanged

    def check(self):
        monkeypatch.setattr(Storage, "check_unchanged", whole)
        graphprep.convert(tmp_path / "b.txt", store, format="edges", overwrite=True)
        whole(self)

    monkeypatch.setattr(Storage, "check_unchanged", check)
    rest = {"reorder": ["--by", "in-degree"], "export": ["--to", "edges"]}[command]
    assert run([command, str(store), str(tmp_path / "out"), *rest]) == 3
    assert f"error: {store}/metadata.json: the file changed while it was read\n" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
