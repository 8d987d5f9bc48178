"""What a blank name is: nothing but spaces and tabs, and no name, in every reader of names."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphprep
from graphprep.model.errors import DataError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

READERS = ["edges", "triples", "edges.parquet", "csv", "parquet", "jsonl", "arrow", "npz", "type"]
BLANK = ["", " ", "\t", " \t "]
NAMES = ["\u00a0", "\u3000", " a ", "."]


def write_names(folder, reader, name):
    """Write a graph of the edge name -> b, and return the arguments that convert it."""
    folder.mkdir(exist_ok=True)
    path = folder / f"g.{reader.rpartition('.')[2]}"
    options = {"format": "edges", "decoder_options": {"id_type": "string", "header": "no"}}
    if reader in ("edges", "csv"):
        path.write_text(f'"{name}",b\n', "utf-8")
    elif reader == "triples":
        path.write_text(f'a,"{name}",b\n', "utf-8")
        options = {"format": "triples", "decoder_options": {"header": "no"}}
    elif reader == "jsonl":
        path.write_text(json.dumps({"src": name, "dst": "b"}) + "\n")
    elif reader == "npz":
        np.savez(path, id=np.array([name, "b"]))
    elif reader == "type":
        path.write_text(f'id,kind\na,"{name}"\n', "utf-8")
    elif reader == "arrow":
        table = pa.table({"src": [name], "dst": ["b"]})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        pq.write_table(pa.table({"src": [name], "dst": ["b"]}), path)
    if reader.startswith(("edges", "triples")):
        return [str(path)], {**options, **({"decoder_options": {}} if reader == "edges.parquet" else {})}
    file = TableConfig((str(path),), header="no" if reader == "csv" else "auto")
    if reader in ("npz", "type"):
        node = NodeTable("_N" if reader == "npz" else None, file, type_col=None if reader == "npz" else "kind", id_col="id")
        return [], {"graph": GraphConfig(nodes=(node,), id_type="string")}
    return [], {"graph": GraphConfig(edges=(EdgeTable("_N", "_E", "_N", file),), id_type="string")}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", BLANK)
def test_a_blank_name_is_empty(tmp_path, reader, name):
    inputs, options = write_names(tmp_path / "in", reader, name)
    with pytest.raises(DataError, match=r": field '\w+' is empty\n"):
        graphprep.convert(inputs, str(tmp_path / "out"), **options)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", NAMES)
def test_any_other_name_is_one(tmp_path, reader, name):
    inputs, options = write_names(tmp_path / "in", reader, name)
    summary = graphprep.convert(inputs, str(tmp_path / "out"), **options)
    assert sum(dict(summary.num_nodes).values()) == (1 if reader == "type" else 2)


@pytest.mark.parametrize(("kind", "ids"), [("numbers", ["1", "3"]), ("names", ["\u00a0", "b c"])])
def test_blank_lines_name_no_seed(tmp_path, kind, ids):
    (tmp_path / "e.csv").write_text("".join(f"{name},{name}\n" for name in (*ids, "2", "9")), "utf-8")
    (tmp_path / "seeds.txt").write_text(f"\n  \n{ids[0]}\n\t\n \t \r\n{ids[1]}\r\n  ", "utf-8")
    options = {"ids": "sparse"} if kind == "numbers" else {"decoder_options": {"id_type": "string", "header": "no"}}
    summary = graphprep.convert(
        str(tmp_path / "e.csv"), str(tmp_path / "out"), format="edges", seeds=(str(tmp_path / "seeds.txt"),), **options
    )
    assert "node type '_N': 2 seeds" in summary.notes


def test_a_blank_text_of_json_is_an_empty_seed(tmp_path):
    (tmp_path / "e.csv").write_text("a,b\n")
    (tmp_path / "seeds.json").write_text('"a"\n" "\n')
    options = {"decoder_options": {"id_type": "string", "header": "no"}, "format": "edges"}
    with pytest.raises(DataError, match=r"seeds\.json:2:1: field 'seed' is empty"):
        graphprep.convert(str(tmp_path / "e.csv"), str(tmp_path / "out"), seeds=(str(tmp_path / "seeds.json"),), **options)
