"""Stated numbers of slots travel only from batches where an edge states some; the store is the same however it is cut."""

from __future__ import annotations

import json

import numpy as np
import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions


@pytest.mark.parametrize("mib", [None, 160])
def test_stated_slots_of_some_edges(tmp_path, mib):
    limit = "auto" if mib is None else f"{mib}MiB"
    stated = [0, 0, 0, 3, 0, 0, 1, 0]  # the last slot of each holds nothing, so that it is stated alone
    lines = []
    for number, slots in enumerate(stated):
        edge = {"src_id": number, "dst_id": 0, "edge_type": 0, "weight": 1.5}
        if slots:
            edge["float_feature"] = {"0": [0.5], str(slots): []}
        lines.append(json.dumps({"node_id": number, "node_type": 0, "node_weight": 1, "edge": [edge]}) + "\n")
    source = tmp_path / "graph.json"
    source.write_text("".join(lines))
    for block_bytes in (1, 200, 1 << 20):
        out = tmp_path / f"store-{block_bytes}"
        options = ConvertOptions(format="json", layout="csr", block_bytes=block_bytes, run=RunOptions(memory_limit=limit))
        convert([str(source)], str(out), options)
        (found,) = out.rglob("edges/**/num_slots.npy")
        assert np.load(found).tolist() == [slots + 1 if slots else 0 for slots in stated]
