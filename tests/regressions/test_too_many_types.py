"""A column taken for relations or node types by mistake would make a folder of every value."""

from __future__ import annotations

import pytest

from graphprep.convert.pipeline import convert
from graphprep.convert.read import decode
from graphprep.model.errors import DataError
from graphprep.model.graph_config import GraphConfig, NodeTable, TableConfig
from graphprep.model.options.convert import ConvertOptions


def test_a_column_of_ids_is_no_column_of_relations(tmp_path, monkeypatch):
    monkeypatch.setattr(decode, "_MOST_TYPES", 8)
    path = tmp_path / "edges.tsv"
    path.write_text("".join(f"{n}\t{n + 1}\trow {n}\n" for n in range(9)))
    options = ConvertOptions(format="edges", decoder_options={"relation_col": "2"})
    with pytest.raises(DataError) as caught:
        convert([str(path)], str(tmp_path / "out"), options)
    assert str(caught.value) == (
        "more than 8 relations; one too many is 'row 8'\n"
        "  fix: each becomes a type with files of its own: is this the right column (--relation-col), the right format?"
    )
    assert not (tmp_path / "out").exists()


def test_a_column_of_ids_is_no_column_of_node_types(tmp_path, monkeypatch):
    monkeypatch.setattr(decode, "_MOST_TYPES", 8)
    path = tmp_path / "nodes.csv"
    path.write_text("id,kind\n" + "".join(f"{n},row {n}\n" for n in range(9)))
    nodes = NodeTable(None, TableConfig(files=(str(path),)), id_col="id", type_col="kind")
    with pytest.raises(DataError) as caught:
        convert([], str(tmp_path / "out"), ConvertOptions(graph=GraphConfig(nodes=(nodes,))))
    assert str(caught.value) == (
        "more than 8 node types; one too many is 'row 8'\n"
        "  fix: each becomes a type with files of its own: is this the right column (--type-col), the right format?"
    )
    assert not (tmp_path / "out").exists()
