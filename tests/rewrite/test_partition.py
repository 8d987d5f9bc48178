"""Stores in other partitions: every byte against ``convert`` with these partitions."""

from __future__ import annotations

import json

import pytest
from golden.golden_cases import SAMPLE_DATA, load_cases, read_store

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, UsageError

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
