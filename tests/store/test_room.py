"""Counts that metadata and options state pass one gate, before anything is allocated or decoded."""

from __future__ import annotations

import gzip
import json
import re
import shutil

import numpy as np
import pytest

import graphprep
from graphprep.model.errors import DataError, GraphprepError, MemoryLimitError, StorageError, UsageError
from graphprep.store import room

RUN = graphprep.RunOptions(memory_limit="256MiB")
LARGE = 10**18
MOST = 2**63 - 1


def refused(call, *args, **options) -> GraphprepError:
    with pytest.raises(GraphprepError) as caught:
        call(*map(str, args), **options)
    return caught.value


def write_edges(folder, name="e.csv", text="0,1\n1,2\n"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def write_chunked(folder, num_nodes):
    write_edges(folder)
    files = {"format": {"name": "csv", "delimiter": ","}, "data": ["e.csv"]}
    value = {
        "graph_name": "g",
        "node_type": ["a"],
        "num_nodes_per_type": [num_nodes],
        "edge_type": ["a:r:a"],
        "num_edges_per_type": [2],
        "edges": {"a:r:a": files},
    }
    (folder / "metadata.json").write_text(json.dumps(value))
    return folder, "metadata.json: num_nodes_per_type[0]", "a"


def write_mtx(folder, num_nodes):
    text = f"%%MatrixMarket matrix coordinate pattern general\n{num_nodes} {num_nodes} 1\n1 1\n"
    return write_edges(folder, "a.mtx", text), "a.mtx:2:1", "_N"


def write_yaml(folder, num_nodes):
    write_edges(folder, text="src,dst\n0,1\n1,2\n")
    text = f"nodes:\n- type: a\n  num_nodes: {num_nodes}\nedges:\n- type: a:r:a\n  files: e.csv\n"
    return write_edges(folder, "graph.yaml", text), "graph.yaml: nodes[0].num_nodes", "a"


def write_npz(folder, num_nodes):
    folder.mkdir()
    one = np.zeros(1, np.int64)
    shape = np.array([num_nodes, num_nodes], object if num_nodes > MOST else np.int64)
    np.savez(folder / "a.npz", data=one, row=one, col=one, shape=shape, format=b"coo")
    return folder / "a.npz", "a.npz: shape", "_N"


def write_graphbolt(folder, num_nodes):
    write_edges(folder)
    text = f"dataset_name: x\ngraph:\n  nodes:\n  - num: {num_nodes}\n  edges:\n  - format: csv\n    path: e.csv\n"
    write_edges(folder, "metadata.yaml", text)
    return folder, "metadata.yaml: graph.nodes[0].num", "_N"


def write_ogb(folder, num_nodes):
    (folder / "raw").mkdir(parents=True)
    for name, text in (("edge", "0,1\n1,2\n"), ("num-node-list", f"{num_nodes}\n"), ("num-edge-list", "2\n")):
        (folder / f"raw/{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    return folder, "raw/num-node-list.csv.gz", "_N"


WRITERS = [write_chunked, write_mtx, write_yaml, write_npz, write_graphbolt, write_ogb]


@pytest.mark.parametrize("num_nodes", [LARGE, MOST])
@pytest.mark.parametrize("write", WRITERS)
def test_more_nodes_than_the_memory_has_room_for(write, num_nodes, tmp_path):
    given, place, node_type = write(tmp_path / "in", num_nodes)
    options = graphprep.ConvertOptions(run=RUN)
    for call in (
        lambda path: graphprep.convert(path, tmp_path / "out", options),
        lambda path: graphprep.validate(path, options),
        lambda path: graphprep.info(path, options=options),
    ):
        error = refused(call, given)
        assert isinstance(error, MemoryLimitError), error
        assert error.exit_code == 4
        assert error.place.endswith(place)
        assert re.fullmatch(
            rf"{num_nodes} nodes of type '{node_type}' take at least [0-9.]+ [TP]iB of memory, and the limit leaves [0-9.]+ MiB",
            error.message,
        )
        assert error.fix == "correct the number, or raise memory_limit"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("write", [write_chunked, write_yaml, write_graphbolt])
@pytest.mark.parametrize("method", ["range", "hash"])
def test_more_nodes_than_the_disk_has_room_for(write, method, tmp_path, monkeypatch):
    monkeypatch.setattr(room, "free_bytes", lambda folder: 79 << 20)
    given, place, node_type = write(tmp_path / "in", 20 << 20)
    error = refused(graphprep.convert, given, tmp_path / "out", partitions=2, partition_by=method, run=RUN)
    assert isinstance(error, StorageError)
    assert error.exit_code == 3
    assert error.place.endswith(place)
    need = "160.0 MiB" if method == "range" else "320.0 MiB"  # indptr, and raw IDs where they are not 0..n-1
    assert error.message == f"20971520 nodes of type '{node_type}' take at least {need} in {tmp_path}, and 79.0 MiB are free"
    assert error.fix == "correct the number, or choose another disk"


@pytest.mark.parametrize("write", WRITERS)
def test_more_nodes_than_there_are_ids(write, tmp_path):
    given, place, _ = write(tmp_path / "in", MOST + 1)
    calls = [lambda path: graphprep.convert(path, tmp_path / "out"), graphprep.validate, graphprep.info]
    for call in calls:
        error = refused(call, given)
        assert isinstance(error, DataError), error
        assert error.exit_code == 1
        assert error.place.startswith(str(tmp_path / "in"))
        if write in (write_yaml, write_graphbolt):
            assert error.place.endswith(place)
            assert error.message == f"expected an integer <= {MOST}, found {MOST + 1}"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"num_nodes": {"": LARGE}},
            f"num_nodes: {LARGE} nodes of type '_N' take at least 222.0 PiB of memory, and the limit",
        ),
        ({"num_nodes": {"_N": MOST + 1}}, f"num_nodes: nodes of type '_N' are counted up to 2^63 - 1, found {MOST + 1}\n"),
        (
            {"num_nodes": {"": 3 << 30}, "index_dtype": "int32"},
            'num_nodes: index_dtype="int32" cannot hold IDs up to 3221225471\n',
        ),
        ({"partitions": 10**9}, "partitions: 1000000000 partitions take at least 4.4 TiB of memory, and the limit leaves "),
        ({"partitions": 10**30}, f"partitions must fit 64 bits, found {10**30}\n  fix: give a smaller number"),
    ],
)
def test_options_that_cannot_be_had(options, message, tmp_path):
    path = write_edges(tmp_path, "e.txt", "0 1\n1 2\n")
    error = refused(graphprep.convert, path, tmp_path / "out", format="edges", run=RUN, **options)
    assert isinstance(error, UsageError)
    assert str(error).startswith(message)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["e.txt"]


def test_info_shows_counts_that_there_is_room_for(tmp_path):
    for write in WRITERS:
        given, _, node_type = write(tmp_path / write.__name__, 5)
        assert {one.name: one.count for one in graphprep.info(given, run=RUN).node_types} == {node_type: 5}


def test_info_refuses_an_option_that_cannot_be_had(tmp_path):
    path = write_edges(tmp_path, "e.csv", "src,dst\n0,1\n1,2\n")
    error = refused(graphprep.info, path, num_nodes={"": LARGE}, run=RUN)
    assert isinstance(error, UsageError)
    assert str(error).startswith(f"num_nodes: {LARGE} nodes of type '_N' take at least 222.0 PiB of memory, and the limit")


def test_partitions_that_a_file_asks_for(tmp_path):
    path, file = write_edges(tmp_path, "e.txt", "0 1\n1 2\n"), write_edges(tmp_path, "parts.txt", "0\n1\n999999999\n")
    error = refused(graphprep.convert, path, tmp_path / "out", format="edges", partition_by=str(file), run=RUN)
    assert isinstance(error, MemoryLimitError)
    assert error.place == str(file)
    assert error.message.startswith("1000000000 partitions take at least 4.4 TiB of memory, and the limit leaves ")


def test_partitions_of_an_export(tmp_path):
    path, file = write_edges(tmp_path, "e.txt", "0 1\n1 2\n"), write_edges(tmp_path, "parts.txt", "0\n1\n999999999\n")
    graphprep.convert(path, tmp_path / "store", format="edges")
    error = refused(graphprep.export, tmp_path / "store", tmp_path / "out", "glt", partitions=10**9, run=RUN)
    assert isinstance(error, UsageError)
    assert str(error).startswith("partitions: 1000000000 partitions take at least 3.3 TiB of memory, and the limit leaves ")
    error = refused(graphprep.export, tmp_path / "store", tmp_path / "out", "glt", partition_by=str(file), run=RUN)
    assert isinstance(error, MemoryLimitError)
    assert error.place == str(file)
    assert not (tmp_path / "out").exists()


def test_partitions_take_disk_too(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "free_bytes", lambda folder: 1 << 20)
    path = write_edges(tmp_path, "e.txt", "0 1\n1 2\n")
    error = refused(graphprep.convert, path, tmp_path / "out", format="edges", partitions=100, run=RUN)
    assert isinstance(error, UsageError)
    assert error.message == f"100 partitions take at least 1.6 MiB in {tmp_path}, and 1.0 MiB are free"
    graphprep.convert(path, tmp_path / "out", format="edges", partitions=50, run=RUN)


def test_a_size_line_and_a_header_of_too_many_digits(tmp_path):
    for name, text in (
        ("a.mtx", f"%%MatrixMarket matrix coordinate pattern general\n3 3 {'9' * 5000}\n1 1\n"),
        ("a.graph", f"{'9' * 5000} 1\n2\n1\n"),
    ):
        path = write_edges(tmp_path, name, text)
        assert isinstance(
            refused(graphprep.convert, path, tmp_path / "out", format=name[2:].replace("graph", "metis")), DataError
        )


def test_a_store_whose_metadata_counts_more_nodes_than_its_arrays_hold(tmp_path):
    graphprep.convert(str(write_edges(tmp_path, "e.txt", "0 1\n1 2\n")), tmp_path / "store", format="edges")
    metadata = json.loads((tmp_path / "store/metadata.json").read_text())
    for key, word, array in (("nodes", f"int64[{LARGE + 1}]", "indptr"), ("edges", f"int32[{LARGE}]", "indices")):
        shutil.copytree(tmp_path / "store", tmp_path / key)
        changed = {**metadata, f"num_{key}_per_type": [LARGE], f"num_{key}_per_chunk": [[LARGE]]}
        (tmp_path / key / "metadata.json").write_text(json.dumps(changed))
        report = graphprep.validate(tmp_path / key, options=graphprep.ConvertOptions(run=RUN))
        assert any(word in fault.message for fault in report.faults)
        for call in (graphprep.info, lambda path: graphprep.export(path, str(tmp_path / "out"), "glt")):
            error = refused(call, tmp_path / key)
            assert isinstance(error, DataError)
            assert error.place.endswith(f"{array}.npy")
            assert error.message.startswith(f"expected {word}, by the metadata, found ")
