"""A real HDFS, a NameNode and a DataNode: golden bytes, every kind of command, failures, inputs that change."""

from __future__ import annotations

import pytest
from everywhere import RUNS, SAMPLE_DATA, Folder, Remote, inputs, outcome, some
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.cli.main import run as run_command
from graphprep.model.errors import DataError, StorageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read.urls import Storage

pytestmark = pytest.mark.xdist_group("HDFS server")
# A file costs HDFS a third of a second: not all runs.
SHOWN = [
    *("info: gz", "info: store", "validate: text", "validate: store", "stats: store", "stats: plot", "ids: file", "ids: back"),
    *("convert: text", "convert: glob", "convert: parquet", "convert: chunked", "convert: graph file", "convert: bad records"),
    *("partition", "partition: assignments", "reorder", "transform: subgraph of a file", "generate: csv"),
    *("export: npy", "export: dgl-chunked", "export: parquet", "export: deepgnn-json"),
]
CASES = {case.name: case for case in load_cases()}
_read = {}


@pytest.fixture
def place(hdfs_url):
    """A folder of its own."""
    from fsspec.core import url_to_fs

    return Remote(url_to_fs(hdfs_url)[0], "/", f"{hdfs_url}/")


@pytest.mark.parametrize("name", ["edges_plain", "edges_plain_gz", "shop_json", "shop_edgelist_both_parts", "edges_parquet"])
def test_from_hdfs_to_hdfs_writes_the_golden_bytes(name, place, tmp_path):
    case = CASES[name]
    place.put_all({f"in/{one}": (SAMPLE_DATA / one).read_bytes() for one in case.inputs})
    graphprep.convert([f"{place.url}/in/{one}" for one in case.inputs], f"{place.url}/store", ConvertOptions(**case.options))
    (tmp_path / "got").mkdir()
    local = Folder(tmp_path / "got")
    files = place.files()
    local.put_all({name.removeprefix("store/"): data for name, data in files.items() if name.startswith("store/")})
    assert read_store(local.path) == read_store(case.store)
    assert {name.partition("/")[0] for name in files} == {"in", "store"}  # no claim, no hidden folder


@pytest.mark.parametrize("run", some([run for run in RUNS if run.name in SHOWN]), ids=lambda run: run.name)
def test_a_run_gives_what_a_local_one_gives(run, place, hdfs_url, tmp_path, capsys):
    def out():
        return capsys.readouterr().out

    local = Folder(tmp_path / "in")
    local.put_all(inputs())
    expected = outcome(run, local.url, Folder(tmp_path / "out"), out)
    assert expected.code == 0
    if not _read:
        _read["in"] = Remote(place.fs, "/", f"{hdfs_url}/")
        _read["in"].put_all(inputs())
    assert outcome(run, _read["in"].url, place, out) == expected


def test_what_exists_is_refused_and_replaced_on_demand(place, capsys):
    place.put_all({"1.txt": b"0 1\n", "2.txt": b"0 1\n1 0\n"})
    one, two, store = f"{place.url}/1.txt", f"{place.url}/2.txt", f"{place.url}/deep/down/store"
    assert run_command(["convert", one, store, "--format", "edges"]) == 0
    assert run_command(["convert", two, store, "--format", "edges"]) == 2
    expected = f"error: {store}: the output exists\n  fix: choose another name, or give --overwrite\n"
    assert capsys.readouterr().err.endswith(expected)
    assert run_command(["convert", two, store, "--format", "edges", "--overwrite"]) == 0
    assert graphprep.load(store).num_edges() == 2
    assert {name.rpartition("/part-")[0] for name in place.files() if "part-" in name} == {"deep/down/store"}


def test_bad_data_leaves_nothing(place):
    place.put_all({"a.txt": b"0 1\n0 x\n"})
    with pytest.raises(DataError):
        graphprep.convert(f"{place.url}/a.txt", f"{place.url}/deep/store", format="edges")
    assert list(place.files()) == ["a.txt"]
    assert not place.fs.exists(f"{place.root}/deep")


def test_an_input_that_changes_is_noticed(place):
    data = b"".join(b"%d %d\n" % (i, i + 1) for i in range(500_000))
    place.put_all({"a.txt": data})
    with Storage() as storage, storage.open(f"{place.url}/a.txt", 1 << 20) as handle:
        assert handle.read(1000) == data[:1000]
        place.put_all({"a.txt": data + b"1 2\n"})
        with pytest.raises(StorageError, match=r"the file (changed while it was read|ended after)|no such file"):
            handle.read()
    with Storage() as storage:
        assert storage.read_bytes(f"{place.url}/a.txt") == data + b"1 2\n"


def test_a_missing_file_and_a_server_that_is_not_there_are_told(place, hdfs_url, capsys, tmp_path):
    assert run_command(["info", f"{place.url}/none.txt"]) == 3
    assert capsys.readouterr().err == (
        f"error: {place.url}/none.txt: no such file or folder\n  fix: check the spelling of the path\n"
    )
    assert run_command(["info", "hdfs://127.0.0.1:9/none.txt"]) == 3
    err = capsys.readouterr().err
    assert err.splitlines()[1:] == ["  fix: check the address, and that the server runs"], err
