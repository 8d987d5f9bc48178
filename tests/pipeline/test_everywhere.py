"""Every command from and to memory://, s3://, hdfs://, http:// and local folders, mixed: what a local run gives."""

from __future__ import annotations

import contextlib

import pytest
from everywhere import RUNS, Folder, Remote, inputs, outcome, served, stub_hdfs

import graphprep

_local = {}  # what a run gives between local folders
_read = {}  # places that have all inputs
PAIRS = ["memory to hdfs", "hdfs to s3", "s3 to memory", "http to local"]


@pytest.fixture
def place(request, tmp_path_factory):
    """Return what makes a place of a kind."""

    def make(kind):
        if kind == "memory":
            import fsspec

            return Remote(fsspec.filesystem("memory"), "/", "memory://")
        if kind == "s3":
            bucket = request.getfixturevalue("bucket")
            return Remote(bucket.fs, f"{bucket.name}/", f"{bucket.url}/")
        if kind == "hdfs":
            return stub_hdfs(request.getfixturevalue("hdfs"))
        return Folder(tmp_path_factory.mktemp("place"))

    return make


def local_outcome(run, tmp_path_factory, out):
    """What the run gives between local folders, found out once."""
    if run.name not in _local:
        read, write = (Folder(tmp_path_factory.mktemp(name)) for name in ("in", "out"))
        read.put_all(inputs())
        _local[run.name] = outcome(run, read.url, write, out)
    return _local[run.name]


@pytest.mark.parametrize("pair", [*PAIRS[:-1], pytest.param(PAIRS[-1], marks=pytest.mark.heavy)])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_run_gives_what_a_local_one_gives(run, pair, place, tmp_path_factory, capsys):
    if "--plot" in run.arguments:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed: make test-all does")

    def out():
        return capsys.readouterr().out

    expected = local_outcome(run, tmp_path_factory, out)
    assert expected.code == 0
    assert expected.files or expected.told
    first, last = pair.split(" to ")
    if first == "http" and run.lists:
        pytest.skip("servers of HTTP list no folders")
    here = place(first)  # also where another is read: a test has its own credentials
    read = _read.get(first, here)
    if first not in _read:
        read.put_all(inputs())
    if first != "hdfs":  # whose folder goes with the test
        _read[first] = read
    write = place(last)
    if first == "http":
        with served(read) as url:
            assert outcome(run, url, write, out) == expected
    else:
        assert outcome(run, read.url, write, out) == expected


@pytest.mark.parametrize("kind", ["memory", "s3", "hdfs", "http"])
def test_a_store_is_loaded_from_everywhere(kind, place):
    read = place(kind)
    read.put_all({path: data for path, data in inputs().items() if path.startswith("parts/")})
    with served(read) if kind == "http" else contextlib.nullcontext(read.url) as url:
        graph = graphprep.load(f"{url}/parts")
        assert (graph.num_nodes(), graph.num_edges()) == (34, 78)
