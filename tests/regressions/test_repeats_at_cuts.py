"""Whether an edge type is a multigraph does not depend on how a node's edges are cut into pieces."""

from __future__ import annotations

import json

import pytest

from graphprep import context
from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions


@pytest.mark.parametrize("layout", ["csc", "csr", "both"])
@pytest.mark.parametrize(("text", "is_multigraph"), [("0 1\n0 1\n0 1\n0 2\n", True), ("0 1\n1 2\n2 1\n0 2\n1 1\n", False)])
@pytest.mark.parametrize("bucket_bytes", [64, 1 << 20])
def test_repeats_are_seen_across_cuts(tmp_path, monkeypatch, layout, text, is_multigraph, bucket_bytes):
    original = context.plan_memory
    plan = lambda *given, **more: original(*given, **more)._replace(bucket_bytes=bucket_bytes)  # noqa: E731
    monkeypatch.setattr(context, "plan_memory", plan)
    (tmp_path / "e.txt").write_text(text)
    store = tmp_path / "store"
    options = ConvertOptions(format="edges", layout=layout, neighbor_order="id", decoder_options={"header": "no"})
    pipeline.convert([str(tmp_path / "e.txt")], str(store), options)
    schemas = json.loads((store / "metadata.json").read_text())["edge_schema"]
    assert [schema["multigraph"] for schema in schemas.values()] == [is_multigraph]
