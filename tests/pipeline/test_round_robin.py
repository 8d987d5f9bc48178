"""``--partition-by round-robin``: nodes are dealt out record by record, as DeepGNN's dispatcher deals lines out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import graphprep

SHOP = Path(__file__).resolve().parents[2] / "sample_data/shop/shop.jsonl"


def parts_of(store):
    """Return the partition of every node: {(type, raw ID): partition}."""
    graph = graphprep.load(str(store))
    found = {}
    for name, chunks in zip(graph.metadata.node_types, graph.metadata.num_nodes_per_chunk, strict=True):
        parts = np.repeat(np.arange(len(chunks)), chunks)
        found |= {(name, raw): part for raw, part in zip(graph.ids(name).tolist(), parts.tolist(), strict=True)}
    return found


@pytest.mark.parametrize("limit", [{}, {"memory_limit": "96MiB", "block_bytes": 700}])
@pytest.mark.parametrize("partitions", [2, 3, 5])
def test_lines_of_json_are_dealt_out(tmp_path, partitions, limit):
    lines = SHOP.read_text().splitlines()
    rng = np.random.default_rng(partitions)
    lines = [lines[at] for at in rng.permutation(len(lines))]
    (tmp_path / "shop.jsonl").write_text("\n".join(lines) + "\n")
    options = {"format": "json", "partitions": partitions, "partition_by": "round-robin", **limit}
    graphprep.convert(str(tmp_path / "shop.jsonl"), str(tmp_path / "store"), **options)
    nodes = map(json.loads, lines)
    assert parts_of(tmp_path / "store") == {
        (str(node["node_type"]), node["node_id"]): number % partitions for number, node in enumerate(nodes)
    }
    assert graphprep.validate(str(tmp_path / "store")).sound


@pytest.mark.parametrize("names", [False, True])
def test_rows_of_tables_are_dealt_out_over_all_types(tmp_path, names):
    rng, files, wanted, number = np.random.default_rng(3), {}, {}, 0
    for name, size in (("user", 23), ("item", 8)):
        ids = [f"{name}-{one}" if names else int(one) for one in rng.permutation(size) * 3]
        files[name] = tmp_path / f"{name}.csv"
        files[name].write_text("id\n" + "".join(f"{one}\n" for one in ids))
        for one in ids:
            wanted[name, one] = number % 4
            number += 1
    pairs = [(u, i) for (kind, u) in wanted for (other, i) in wanted if kind == "user" and other == "item"][::7]
    (tmp_path / "buys.csv").write_text("src,dst\n" + "".join(f"{u},{i}\n" for u, i in pairs))
    edges = {"user:buys:item": str(tmp_path / "buys.csv")}
    options = {"partitions": 4, "partition_by": "round-robin", "nodes": {name: str(path) for name, path in files.items()}}
    given = {"decoder_options": {"id_type": "string"}} if names else {}
    graphprep.convert([], str(tmp_path / "store"), edges=edges, **options, **given)
    assert parts_of(tmp_path / "store") == wanted


@pytest.mark.long
def test_nodes_without_records_go_by_their_rank(tmp_path):
    """Of edge lists; and a store is dealt out by ``partition`` and on the way of an export alike."""
    (tmp_path / "e.txt").write_text("70 10\n40 70\n10 90\n20 40\n")
    given = {"partitions": 2, "partition_by": "round-robin"}
    graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "store"), format="edges", ids="sparse", **given)
    wanted = {("_N", raw): rank % 2 for rank, raw in enumerate([10, 20, 40, 70, 90])}
    assert parts_of(tmp_path / "store") == wanted
    graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "one"), format="edges", ids="sparse")
    graphprep.partition(str(tmp_path / "one"), str(tmp_path / "two"), by="round-robin", partitions=2)
    assert parts_of(tmp_path / "two") == wanted
    graphprep.export(str(tmp_path / "one"), str(tmp_path / "direct"), "deepgnn", **given)
    graphprep.export(str(tmp_path / "two"), str(tmp_path / "stored"), "deepgnn")
    files = {path.name for path in (tmp_path / "stored").iterdir()}
    assert files == {path.name for path in (tmp_path / "direct").iterdir()}
    assert all((tmp_path / "direct" / one).read_bytes() == (tmp_path / "stored" / one).read_bytes() for one in files)
