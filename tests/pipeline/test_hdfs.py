"""HDFS by a stub that is synchronous and shows files as soon as they are created. A real cluster is not part of these tests."""

from __future__ import annotations

import os

import pytest
from golden.golden_cases import SAMPLE_DATA, load_cases, read_store
from remote_places import StubHdfs

from graphprep.cli.main import run
from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError, StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read import ranges
from graphprep.storage.read.urls import Storage

HOST = "hdfs://namenode:8020"
CASES = {case.name: case for case in load_cases()}


def put(hdfs, path, data):
    target = hdfs / path
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name("beside")
    beside.write_bytes(data)
    beside.replace(target)  # who reads goes on with the old one
    return f"{HOST}/{path}"


@pytest.mark.parametrize("name", ["edges_plain", "edges_plain_gz", "shop_json", "shop_edgelist_both_parts"])
def test_from_hdfs_to_hdfs_writes_the_golden_bytes(name, hdfs):
    case = CASES[name]
    urls = [put(hdfs, f"in/{one}", (SAMPLE_DATA / one).read_bytes()) for one in case.inputs]
    convert(urls, f"{HOST}/out/store", ConvertOptions(**case.options))
    assert read_store(hdfs / "out/store") == read_store(case.store)
    assert [path.name for path in (hdfs / "out").iterdir()] == ["store"]


def test_every_command(hdfs, capsys):
    url = put(hdfs, "in/karate.csv", (SAMPLE_DATA / "karate/karate.csv").read_bytes())
    store = f"{HOST}/store"
    assert run(["info", f"{HOST}/in"]) == 0
    assert run(["convert", url, store]) == 0
    assert run(["convert", url, store]) == 2
    assert run(["convert", url, store, "--overwrite"]) == 0
    assert run(["validate", store]) == 0
    capsys.readouterr()
    assert run(["ids", store, "5", "--from", "raw", "--to", "typed"]) == 0
    assert capsys.readouterr().out == "5\n"
    assert sorted(path.name for path in hdfs.iterdir()) == ["in", "store"]


def test_nothing_is_seen_before_all_is_there(hdfs, monkeypatch):
    url = put(hdfs, "a.txt", b"0 1\n")
    seen = []
    whole = StubHdfs.mv

    def look(self, source, target, **_):
        seen.append(((hdfs / "deep/down/store").exists(), sorted(path.name for path in (hdfs / source.lstrip("/")).iterdir())))
        whole(self, source, target)

    monkeypatch.setattr(StubHdfs, "mv", look)
    convert([url], f"{HOST}/deep/down/store", ConvertOptions(format="edges"))
    assert seen == [(False, ["metadata.json", "part-00000", "provenance.json"])]


@pytest.mark.parametrize("data", [b"0 1\n", b"0 1\n0 x\n"], ids=["lost data nodes", "bad data"])
def test_failures_leave_nothing(data, hdfs, monkeypatch):
    url = put(hdfs, "a.txt", data)
    monkeypatch.setattr(StubHdfs, "fail_writes", 1 if data == b"0 1\n" else 0)
    with pytest.raises((StorageError, DataError)):
        convert([url], f"{HOST}/deep/store", ConvertOptions(format="edges"))
    assert [path.name for path in hdfs.rglob("*")] == ["a.txt"]


def test_a_file_that_does_not_hold_what_was_written_is_told(hdfs, monkeypatch):
    url = put(hdfs, "a.txt", b"0 1\n")
    monkeypatch.setattr("remote_places._StubWriter.write", lambda self, data: len(data))
    with pytest.raises(StorageError, match="bytes were written, and 0 are there"):
        convert([url], f"{HOST}/store", ConvertOptions(format="edges"))


def test_an_empty_file_is_refused(hdfs, capsys):
    url = put(hdfs, "a.txt", b"")
    assert run(["convert", url, f"{HOST}/store", "--format", "edges"]) == 3
    assert capsys.readouterr().err.endswith(
        f"error: {url}: the file is empty (0 bytes): writing it failed, or is still under way\n"
        "  fix: write it again, or run again when it is complete\n"
    )
    put(hdfs, "in/part-0", b"")  # as Spark writes them, beside others
    put(hdfs, "in/part-1", b"0 1\n")
    assert convert([f"{HOST}/in"], f"{HOST}/store", ConvertOptions(format="edges")).num_edges == {"_N:_E:_N": 1}


def test_bad_records_take_the_place_of_a_file_at_once(hdfs):
    url = put(hdfs, "a.txt", b"0 1\nx 1\n")
    put(hdfs, "out/bad.jsonl", b"old")
    options = ConvertOptions(format="edges", on_error="skip", bad_records=f"{HOST}/out/bad.jsonl", overwrite=True)
    convert([url], f"{HOST}/store", options)
    assert b'"place"' in (hdfs / "out/bad.jsonl").read_bytes()
    assert [path.name for path in (hdfs / "out").iterdir()] == ["bad.jsonl"]


def test_text_by_ranges_and_a_file_that_changes(hdfs, monkeypatch):
    monkeypatch.setattr(ranges, "_LEAST_PIECE", 1000)
    data = b"".join(b"%d %d\n" % (i, i + 1) for i in range(100_000))
    url = put(hdfs, "a.txt", data)
    with Storage() as storage, storage.open(url, 8000) as handle:
        assert handle.read() == data
    with Storage() as storage, storage.open(url, 8000) as handle:
        handle.read(10)
        put(hdfs, "a.txt", data + b"1 2\n")
        with pytest.raises(StorageError) as caught:
            handle.read()
        assert caught.value.message == f"the file changed while it was read ({len(data)} bytes, now {len(data) + 4})"
    put(hdfs, "a.txt", data)
    with Storage() as storage, storage.open(url, 8000) as handle:
        handle.read(10)
        os.truncate(hdfs / "a.txt", len(data) // 2)
        with pytest.raises(StorageError, match=f"the file ended after .* of {len(data)} bytes"):
            handle.read()
