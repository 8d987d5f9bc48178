"""Stores in other partitions: every byte against ``convert`` with these partitions."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden.golden_cases import SAMPLE_DATA, load_cases, load_rewritten, read_store

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import path_name

pytestmark = pytest.mark.usefixtures("flags_named")

CASES = [case for case in load_cases() if (case.store / "metadata.json").exists()]
PARTITIONINGS = (("range", 3), ("hash", 4), ("modulo", 2), ("random", 3), ("range", 1), ("hash", 1), ("random", 9), ("hash", 7))
KARATE = SAMPLE_DATA / "karate" / "karate.csv"
SHOP = SAMPLE_DATA / "shop" / "shop.jsonl"


def convert(case, out, **options):
    graphprep.convert([str(path) for path in case.input_paths], str(out), **{**case.resolved_options(), **options})
    return out


def has_texts(case):
    metadata = json.loads((case.store / "metadata.json").read_text())
    return any(schema["raw_ids"] == "string" for schema in metadata["node_schema"].values())


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_the_bytes_are_those_of_convert(number, tmp_path):
    case, (by, parts) = CASES[number], PARTITIONINGS[number % len(PARTITIONINGS)]
    by = "hash" if by == "modulo" and has_texts(case) else by
    want, seed = convert(case, tmp_path / "want", partitions=parts, partition_by=by), case.options.get("seed", 0)
    summary = graphprep.partition(case.store, tmp_path / "out", by=by, partitions=parts, seed=seed)
    assert read_store(tmp_path / "out") == read_store(want)
    assert (summary.by, summary.num_parts) == (by, parts)
    assert sum(summary.num_nodes.values()) == sum(
        map(sum, json.loads((want / "metadata.json").read_text())["num_nodes_per_chunk"])
    )
    report = graphprep.validate(tmp_path / "out")
    assert report.sound, report.faults


PARTITIONED = load_rewritten("partitioned")


@pytest.mark.parametrize("number", range(len(PARTITIONED)), ids=[store.parent.name for _, store, _ in PARTITIONED])
def test_golden_bytes(number, device, tmp_path):
    case, store, options = PARTITIONED[number]
    graphprep.partition(case.store, tmp_path / "out", **options, device=device)
    assert read_store(tmp_path / "out") == read_store(store)


@pytest.mark.parametrize("by", ["range", "hash", "random"])
def test_a_reordered_store_is_in_the_order_of_raw_ids_again(by, tmp_path):
    graphprep.convert(SHOP, tmp_path / "store", partitions=2, partition_by="hash")
    graphprep.reorder(tmp_path / "store", tmp_path / "hot")
    graphprep.convert(SHOP, tmp_path / "want", partitions=3, partition_by=by)
    summary = graphprep.partition(tmp_path / "hot", tmp_path / "out", by=by, partitions=3)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")
    assert any("in the order of their raw IDs again, not by degree" in note for note in summary.notes)


@pytest.mark.parametrize("run_options", [{"memory_limit": "100MiB", "threads": 1}, {"threads": 3}])
def test_any_limit_and_any_number_of_threads_give_the_same_bytes(run_options, tmp_path):
    graphprep.generate("rmat", tmp_path / "rmat.txt", scale=12, seed=3)
    graphprep.convert(tmp_path / "rmat.txt", tmp_path / "store", layout="both")
    graphprep.convert(tmp_path / "rmat.txt", tmp_path / "want", layout="both", partitions=5, partition_by="hash")
    graphprep.partition(tmp_path / "store", tmp_path / "out", by="hash", partitions=5, **run_options)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")


def test_files_of_assignments(tmp_path):
    """The numbers of METIS and DGL, a line a node, and a table of raw IDs; P is the highest number and one more."""
    parts = [(7 * node) % 3 for node in range(34)]
    (tmp_path / "graph.part.3").write_text("".join(f"{part}\n" for part in parts))
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "_N.txt").write_text("".join(f"{part}\n" for part in parts))
    graphprep.convert(KARATE, tmp_path / "store")
    graphprep.convert(KARATE, tmp_path / "want", partition_by=tmp_path / "graph.part.3")
    for number, given in enumerate(("graph.part.3", "folder")):
        summary = graphprep.partition(tmp_path / "store", tmp_path / f"out{number}", by=tmp_path / given)
        assert (summary.by, summary.num_parts) == ("file", 3)
        assert read_store(tmp_path / f"out{number}") == read_store(tmp_path / "want")


def test_what_cannot_be_is_refused_and_leaves_nothing(tmp_path):
    store, out = tmp_path / "store", tmp_path / "out"
    graphprep.convert(KARATE, store)
    (tmp_path / "short.txt").write_text("0\n1\n")
    (tmp_path / "far.txt").write_text("0\n" * 33 + "5\n")
    for given, kind, message in (
        ({"by": "magic"}, UsageError, "--by 'magic' is neither a method nor a file"),
        ({"by": tmp_path / "short.txt"}, DataError, "2 assignments, but node type '_N' has 34 nodes"),
        ({"by": tmp_path / "far.txt", "partitions": 2}, DataError, "partition 5 is outside [0, 2)"),
        ({"by": "hash", "partitions": 0}, UsageError, "--partitions must be 1 or more, found 0"),
        ({"by": "hash", "partitions": 10**12}, UsageError, "1000000000000 partitions take at least"),
    ):
        with pytest.raises(kind) as error:
            graphprep.partition(store, out, **given)
        assert error.value.message.startswith(message)
        assert not out.exists()
    with pytest.raises(UsageError, match="the output is the store itself"):
        graphprep.partition(store, store, by="hash", overwrite=True)


def test_the_command_says_what_it_did(tmp_path, capsys):
    graphprep.convert(KARATE, tmp_path / "store")
    assert run(["partition", str(tmp_path / "store"), str(tmp_path / "out"), "--by", "hash", "-p", "2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["by"], told["num_parts"], told["num_nodes"], told["num_edges"]) == ("hash", 2, {"_N": 34}, {"_N:_E:_N": 78})
    assert told["notes"] == ["node type '_N': raw IDs are stored now"]
    assert list(told["stage_s"]) == ["assign", "report", "nodes", "edges", "publish"]
    assert run(["partition", str(tmp_path / "store"), str(tmp_path / "out"), "--by", "hash"]) == 2
    assert "--overwrite" in capsys.readouterr().err


FUNCTIONS = """
import numpy as np

def by_tens(ids, node_type):
    return ids // 10 % 3

def by_length(ids, node_type):
    return [len(one) % 3 for one in ids]

def by_type(ids, node_type):
    assert isinstance(ids, np.ndarray)
    return np.full(len(ids), len(node_type) % 2)

def too_few(ids, node_type):
    return [0]

def halves(ids, node_type):
    return ids / 2

def too_far(ids, node_type):
    return ids

def raises(ids, node_type):
    raise ValueError("no such group")

def leaves(ids, node_type):
    raise SystemExit(5)

class Asked:
    def __call__(self, ids, node_type):
        raise ValueError("no such group")

asked = Asked()
ten = 10
"""


@pytest.fixture
def functions(tmp_path, monkeypatch):
    """A module of partition functions in the current folder."""
    (tmp_path / "partitions_of_mine.py").write_text(FUNCTIONS)
    monkeypatch.chdir(tmp_path)
    yield "python:partitions_of_mine:"
    sys.modules.pop("partitions_of_mine", None)
    sys.path[:] = [one for one in sys.path if one != str(tmp_path)]


def test_a_function_of_ones_own(functions, tmp_path):
    """By raw ID: the same from convert, from any store, and on the way of an export."""
    graphprep.convert(KARATE, tmp_path / "store", partitions=2, partition_by="hash")
    graphprep.convert(KARATE, tmp_path / "want", partitions=3, partition_by=f"{functions}by_tens")
    summary = graphprep.partition(tmp_path / "store", tmp_path / "out", by=f"{functions}by_tens", partitions=3)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")
    assert summary.by == "python"
    for part in range(3):
        ids = np.load(tmp_path / "out" / f"part-{part:05d}" / "nodes" / "_N" / "raw_ids.npy").tolist()
        assert ids == [one for one in range(34) if one // 10 % 3 == part]
    graphprep.export(tmp_path / "store", tmp_path / "npy", "npy", partitions=3, partition_by=f"{functions}by_tens")
    graphprep.export(tmp_path / "want", tmp_path / "npy-want", "npy")
    assert read_store(tmp_path / "npy") == read_store(tmp_path / "npy-want")
    with pytest.raises(UsageError, match="partitioned by a function, which says nothing"):
        graphprep.export(tmp_path / "out", tmp_path / "no", "npy", partitions=2)


def test_a_function_gets_names_and_types(functions, tmp_path):
    (tmp_path / "names.txt").write_text("anna bob\nbob carla\ncarla anna\nd anna\n")
    words = {"header": "no", "id_type": "string"}
    graphprep.convert(tmp_path / "names.txt", tmp_path / "store", format="edges", decoder_options=words)
    graphprep.partition(tmp_path / "store", tmp_path / "out", by=f"{functions}by_length", partitions=3)
    metadata = json.loads((tmp_path / "out" / "metadata.json").read_text())
    assert metadata["num_nodes_per_chunk"] == [[1, 2, 1]]  # bob; anna and d; carla
    graphprep.convert(SHOP, tmp_path / "shop")
    summary = graphprep.partition(tmp_path / "shop", tmp_path / "by-type", by=f"{functions}by_type", partitions=2)
    for name, counts in summary.report.nodes.items():
        assert counts[len(name) % 2] == summary.num_nodes[name]


def test_functions_that_are_wrong(functions, tmp_path):
    graphprep.convert(KARATE, tmp_path / "store")
    for name, kind, message in (
        ("too_few", DataError, "expected 34 integers, found int64[1]"),
        ("halves", DataError, "expected 34 integers, found float64[34]"),
        ("too_far", DataError, "partition 2 of node 2 of type '_N' is outside [0, 2)"),
        ("raises", DataError, "the partition function raised ValueError: no such group"),
        ("leaves", DataError, "the partition function raised SystemExit: 5"),
        ("asked", DataError, "the partition function raised ValueError: no such group"),
        (
            "nothing",
            UsageError,
            "a partition function partitions_of_mine:nothing: module 'partitions_of_mine' has no function 'nothing'",
        ),
        ("ten", UsageError, "a partition function partitions_of_mine:ten: module 'partitions_of_mine' has no function 'ten'"),
    ):
        for call in (
            lambda name: graphprep.partition(tmp_path / "store", tmp_path / "out", by=f"{functions}{name}", partitions=2),
            lambda name: graphprep.convert(KARATE, tmp_path / "out", partition_by=f"{functions}{name}", partitions=2),
        ):
            with pytest.raises(kind) as error:
                call(name)
            assert error.value.message == message
            assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="a partition function must be python:module:function, found 'nowhere'"):
        graphprep.partition(tmp_path / "store", tmp_path / "out", by="python:nowhere", partitions=2)
    with pytest.raises(UsageError, match="module 'no_such_module' cannot be imported"):
        graphprep.partition(tmp_path / "store", tmp_path / "out", by="python:no_such_module:f", partitions=2)
    for text, message in (("def f(:", "SyntaxError: invalid syntax"), ("raise SystemExit(7)", "SystemExit: 7")):
        (tmp_path / "faulty_partitions.py").write_text(text)
        with pytest.raises(UsageError, match=f"module 'faulty_partitions' cannot be imported: {message}"):
            graphprep.partition(tmp_path / "store", tmp_path / "out", by="python:faulty_partitions:f", partitions=2)


HETEROGENEOUS = [case for case in CASES if len(json.loads((case.store / "metadata.json").read_text())["node_type"]) > 1]


@pytest.mark.parametrize("number", range(len(HETEROGENEOUS)), ids=[case.name for case in HETEROGENEOUS])
def test_one_file_assigns_homogeneous_ids(number, tmp_path):
    """Type after type by raw ID: what a folder of files says of each type, for convert and for partition."""
    case = HETEROGENEOUS[number]
    metadata = json.loads((case.store / "metadata.json").read_text())
    sizes = metadata["num_nodes_per_type"]
    parts = [(7 * node) % 3 for node in range(sum(sizes))]
    (tmp_path / "graph.part.3").write_text("".join(f"{part}\n" for part in parts))
    (tmp_path / "folder").mkdir()
    first = 0
    for name, size in zip(metadata["node_type"], sizes, strict=True):
        lines = "".join(f"{part}\n" for part in parts[first : first + size])
        (tmp_path / "folder" / f"{path_name(name)}.txt").write_text(lines)
        first += size
    for name in ("graph.part.3", "folder"):
        convert(case, tmp_path / f"by-{name}", partitions=3, partition_by=str(tmp_path / name))
    graphprep.partition(case.store, tmp_path / "out", by=tmp_path / "graph.part.3", partitions=3)
    assert read_store(tmp_path / "by-graph.part.3") == read_store(tmp_path / "by-folder") == read_store(tmp_path / "out")


def test_one_file_that_does_not_fit_several_types(tmp_path):
    graphprep.convert(SHOP, tmp_path / "store")
    (tmp_path / "short.txt").write_text("0\n1\n")
    pq.write_table(pa.table({"id": [0, 1], "part": [0, 1]}), tmp_path / "table.parquet")
    for name, message in (
        ("short.txt", "2 assignments, but the graph has 14 nodes"),
        ("table.parquet", "one table cannot assign 3 node types"),
    ):
        for call in (
            lambda name: graphprep.partition(tmp_path / "store", tmp_path / "out", by=tmp_path / name),
            lambda name: graphprep.convert(SHOP, tmp_path / "out", partition_by=tmp_path / name),
        ):
            with pytest.raises(DataError) as error:
                call(name)
            assert (error.value.message, error.value.place) == (message, str(tmp_path / name))
            assert not (tmp_path / "out").exists()
