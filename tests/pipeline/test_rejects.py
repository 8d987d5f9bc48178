"""What is left out of an input with many faults: which records, at which places, at what cost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError, UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage


def rejected(path: Path) -> list[tuple[str, str]]:
    return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("block_bytes", [1 << 6, 1 << 12, 1 << 22])
def test_places_after_faulty_lines_were_cut_out(block_bytes, tmp_path):
    """Faults found late, of lines that stand behind, between and before those cut out of their block."""
    lines = ["1,-1,0,1", "x,-1,0,1", "1,0,7,1", "1,-1,0,2", "", "y", "1,0,1,1", "z,", "8,0,1,1"]
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    bad = tmp_path / "bad.jsonl"
    options = ConvertOptions(format="edgelist", on_error="skip", bad_records=str(bad), block_bytes=block_bytes)
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    name = tmp_path / "in"
    assert [place for place, _ in rejected(bad)] == [f"{name}:{at}" for at in ("2:1", "6:1", "8:1", "4:1", "3:5", "9:1")]
    assert (summary.num_skipped, summary.num_nodes, summary.num_edges) == (6, {"0": 1}, {"0:0:0": 1})


def test_faulty_lines_leave_one_batch_a_block(monkeypatch, tmp_path):
    """A batch for each piece between faulty lines took 4 KB a fault, whatever the memory limit."""
    from graphprep.convert import pipeline

    made = []
    decode, *others = pipeline.PREPARING

    monkeypatch.setattr(pipeline, "PREPARING", (lambda *args: made.append(decode(*args)) or made[-1], *others))
    (tmp_path / "in").write_text("".join(f"{i} {i + 1}\nx {i}\n" for i in range(2000)))
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="edges", on_error="skip"))
    assert (summary.num_skipped, summary.num_edges) == (2000, {"_N:_E:_N": 2000})
    assert len(made[0].decoded.batches) == 1


def test_late_and_early_faults_count_once(tmp_path):
    (tmp_path / "in").write_text("1,-1,0,1\nx\n1,0,7,1\n")
    options = {"format": "edgelist", "on_error": "skip"}
    convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(**options, max_errors=2))
    with pytest.raises(DataError, match="more than 1 bad records; this one is one too many: the edge's destination 7"):
        convert([str(tmp_path / "in")], str(tmp_path / "other"), ConvertOptions(**options, max_errors=1))


@pytest.mark.parametrize(
    ("name", "text", "weights"),
    [
        ("json", '{"node_id": 1, "node_type": 0, "node_weight": 3, "edge": [EDGE]}\n', [3, 2.5]),
        ("tsv", "1\t0\t3\t\t9,0\n", [3, 2.5]),
        ("tsv", "1\t0\t\t\t9,0\n2\n3\t0\t0\n", [2.5, 2.5, 0, 2.5]),
        ("tsv", '"1"\t0\t\t\t9,0\n"2"\n3\t0\t0\n', [2.5, 2.5, 0, 2.5]),  # quotes are not plain
    ],
)
def test_nodes_that_state_no_weight_have_the_default(tmp_path, name, text, weights):
    edge = '{"src_id": 1, "dst_id": 9, "edge_type": 0, "weight": 1}'
    (tmp_path / "in").write_text(text.replace("EDGE", edge))
    created = {"on_missing_node": "create", "missing_node_type": "0"}
    for given, default in (({"default_node_weight": 2.5}, 2.5), ({}, 0)):
        options = ConvertOptions(format=name, decoder_options=given, **created)
        convert([str(tmp_path / "in")], str(tmp_path / f"out{default}"), options)
        with Storage() as storage:
            found = StoreReader(storage, str(tmp_path / f"out{default}")).array(0, "nodes/0/weight.npy").read()
        assert found.tolist() == [default if weight == 2.5 else weight for weight in weights]
    with pytest.raises(UsageError, match=r"--default-node-weight 1e\+39 does not fit float32"):
        options = ConvertOptions(format=name, decoder_options={"default_node_weight": 1e39})
        convert([str(tmp_path / "in")], str(tmp_path / "out"), options)


def test_created_nodes_have_the_default_weight_of_an_options_file(tmp_path):
    (tmp_path / "in").write_text("1,-1,0\n1,0,9,1\n")
    (tmp_path / "options.json").write_text('{"edgelist": {"default_node_weight": 2.5}}')
    options = ConvertOptions(
        format="edgelist",
        decoder_options={"decoder_options_file": str(tmp_path / "options.json")},
        on_missing_node="create",
        missing_node_type="0",
    )
    convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    with Storage() as storage:
        weights = StoreReader(storage, str(tmp_path / "out")).array(0, "nodes/0/weight.npy").read()
    np.testing.assert_array_equal(weights, np.array([2.5, 2.5], np.float32))


def test_int32_that_cannot_hold_the_ids_is_refused(tmp_path):
    (tmp_path / "in").write_text("3000000000 0\n")
    options = ConvertOptions(
        format="edges", ids="dense", index_dtype="int32", decoder_options={"relation": "a:r:b"}, run=RunOptions("8GiB")
    )
    with pytest.raises(UsageError, match="--index-dtype int32 cannot hold IDs up to 3000000000"):
        convert([str(tmp_path / "in")], str(tmp_path / "out"), options)
    assert not (tmp_path / "out").exists()


def test_provenance_holds_no_secrets(monkeypatch, tmp_path):
    command = ["graphprep", "convert", "--storage-option", "s3.secret=A", "--storage-option=key=B", "ftp://me:C@host/in", "out"]
    monkeypatch.setattr(sys, "argv", command)
    (tmp_path / "in").write_text("0 1\n")
    convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="edges"))
    assert json.loads((tmp_path / "out/provenance.json").read_text())["command"] == [
        "graphprep",
        "convert",
        "--storage-option",
        "s3.secret=***",
        "--storage-option=key=***",
        "ftp://me:…@host/in",
        "out",
    ]
