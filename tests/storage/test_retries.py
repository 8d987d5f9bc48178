"""Requests that are tried again, and what is never taken for an answer."""

from __future__ import annotations

import errno

import pytest
from fsspec import AbstractFileSystem

from graphprep.storage import retries
from graphprep.storage.retries import Retrying, is_passing, retried


def answered(code):
    error = OSError(errno.EBUSY, "x")
    error.response = {"Error": {"Code": code}}
    return error


def failed_http(status):
    error, cause = FileNotFoundError("http://h/a"), OSError("x")
    cause.status = status
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionResetError("lost"), True),
        (TimeoutError(), True),
        (OSError(errno.EPIPE, "x"), True),
        (answered("SlowDown"), True),
        (answered("503"), True),
        (failed_http(503), True),
        (type("ServerDisconnectedError", (Exception,), {})(), True),
        (ConnectionRefusedError(), False),
        (FileNotFoundError("a"), False),
        (failed_http(404), False),
        (answered("AccessDenied"), False),
        (PermissionError(), False),
        (ValueError("x"), False),
    ],
)
def test_what_may_succeed_a_little_later(error, passes):
    assert is_passing(error) == passes


@pytest.mark.parametrize(("num_failures", "ends"), [(0, "done"), (4, "done"), (5, ConnectionResetError)])
def test_five_tries_each_after_a_longer_wait(num_failures, ends, monkeypatch):
    waits, failures = [], [ConnectionResetError("lost")] * num_failures
    monkeypatch.setattr(retries, "_WAITS_S", (1, 3, 9, 27))
    monkeypatch.setattr(retries.time, "sleep", waits.append)

    def work():
        if failures:
            raise failures.pop()
        return "done"

    if ends == "done":
        assert retried(work) == "done"
    else:
        with pytest.raises(ends):
            retried(work)
    assert waits == [1, 3, 9, 27][:num_failures]


class Flaky(AbstractFileSystem):
    """Holds ``objects``; a request that ``failures`` names fails as often as it says, puts after they had their effect."""

    protocol = "flaky"
    cachable = False

    def __init__(self, **failures):
        super().__init__()
        self.failures = failures
        self.objects = {"b/x/1": b"1", "b/y/2": b"2"}

    def _fail(self, name):
        self.failures[name] = self.failures.get(name, 0) - 1
        if self.failures[name] >= 0:
            raise ConnectionResetError("lost")

    def info(self, path, **_):
        self._fail("info")
        if path in self.objects:
            return {"name": path, "type": "file", "size": 1}
        if any(one.startswith(f"{path}/") for one in self.objects):
            return {"name": path, "type": "directory", "size": 0}
        raise FileNotFoundError(path)

    def ls(self, path, detail=True, **_):
        if path == "b/y":
            self._fail("ls")
        names = {"/".join(one.split("/")[: path.count("/") + 2]) for one in self.objects if one.startswith(f"{path}/")}
        if not names:
            raise FileNotFoundError(path)
        found = [{"name": one, "type": "file" if one in self.objects else "directory", "size": 1} for one in sorted(names)]
        return found if detail else [one["name"] for one in found]

    def cat_file(self, path, **_):
        return self.objects[path]

    def pipe_file(self, path, value, mode="overwrite", **_):
        if mode == "create" and path in self.objects:
            raise FileExistsError(path)
        self.objects[path] = value
        self._fail("put")


def test_a_folder_that_cannot_be_listed_is_not_left_out():
    assert Retrying(Flaky(ls=4)).find("b") == ["b/x/1", "b/y/2"]
    assert sorted(Retrying(Flaky(ls=4)).glob("b/*/*")) == ["b/x/1", "b/y/2"]
    assert Flaky(ls=1).find("b") == ["b/x/1"]  # which is what this is about
    for look in (lambda fs: fs.find("b"), lambda fs: fs.glob("b/*/*")):
        with pytest.raises(ConnectionResetError):
            look(Retrying(Flaky(ls=5)))
    assert Retrying(Flaky()).find("none") == []


def test_nobody_says_no_who_cannot_tell():
    assert Retrying(Flaky(info=4)).exists("b/x/1")
    assert not Retrying(Flaky()).exists("b/none")
    assert (Retrying(Flaky()).isdir("b/x"), Retrying(Flaky()).isfile("b/x"), Retrying(Flaky()).isfile("b/x/1")) == (
        True,
        False,
        True,
    )
    with pytest.raises(ConnectionResetError):
        Retrying(Flaky(info=5)).exists("b/x/1")


def test_an_object_that_was_put_before_the_answer_was_lost_is_ours():
    fs = Flaky(put=1)
    Retrying(fs).pipe_file("b/new", b"mine", mode="create")
    assert fs.objects["b/new"] == b"mine"
    with pytest.raises(FileExistsError):
        Retrying(Flaky()).pipe_file("b/x/1", b"1", mode="create")
