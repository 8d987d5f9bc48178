"""One grammar of numbers in every text reader: signs, -0, and digits that are none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphprep
from graphprep.model.errors import DataError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

Made = tuple[list[str], dict, str]  # inputs, options of convert, and the array that holds the token's value, without .npy
NODE, EDGES = "nodes/_N", "edges/_N___E___N"
CHUNKED = {"graph_name": "g", "node_type": ["_N"], "num_nodes_per_chunk": [[2]], "edge_type": ["_N:_E:_N"]}
CHUNKED |= {
    "num_edges_per_chunk": [[1]],
    "edges": {"_N:_E:_N": {"format": {"name": "csv", "delimiter": ","}, "data": ["e.csv"]}},
}


def file(folder: Path, text: str, name: str = "in.txt") -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return [str(folder / name)]


def edges(folder: Path, text: str, **options) -> Made:
    given = {"format": "edges", "decoder_options": {"header": "no", **options}}
    return file(folder, text), given, f"{EDGES}/{'weight' if 'weight_col' in options else 'data/col_2'}"


def table(folder: Path, text: str, name: str, **more) -> Made:
    config = TableConfig(tuple(file(folder, text, name)), **more)
    return [], {"graph": GraphConfig(nodes=(NodeTable("_N", config, id_col="id"),))}, f"{NODE}/data/a"


def chunked(folder: Path, token: str, other: str) -> Made:
    file(folder, "0,1\n", "e.csv")
    file(folder, f"{token}\n{other}\n", "a.csv")
    data = {"_N": {"a": {"format": {"name": "csv"}, "data": ["a.csv"]}}}
    file(folder, json.dumps({**CHUNKED, "node_data": data, "edge_data": {}}), "metadata.json")
    return [str(folder)], {"format": "chunked"}, f"{NODE}/data/a"


def ogb(folder: Path, token: str, other: str) -> Made:
    for name, text in {"edge": "0,1\n", "num-node-list": "2\n", "num-edge-list": "1\n"}.items():
        file(folder / "raw", text, f"{name}.csv")
    file(folder / "raw", f"{token}\n{other}\n", "node-feat.csv")
    return [str(folder)], {"format": "ogb"}, f"{NODE}/data/feat"


def neo4j(folder: Path, token: str, kind: str) -> Made:
    return file(folder, f"id:ID,a:{kind},:LABEL\nx,{token},_N\n", "n.csv"), {"format": "neo4j"}, f"{NODE}/data/a"


def mtx(folder: Path, token: str, field: str) -> Made:
    text = f"%%MatrixMarket matrix coordinate {field} general\n2 2 1\n1 2 {token}\n"
    return file(folder, text, "m.mtx"), {"format": "mtx"}, f"{EDGES}/weight"


# Each writes a graph with the token in a field of floats; where it is guessed, another row of the column has a fraction.
FLOATS: dict[str, Callable[[Path, str], Made]] = {
    "edgelist feature": lambda d, t: (file(d, f"0,-1,0,1,float32,1,{t}\n"), {"format": "edgelist"}, "nodes/0/data/feat_0"),
    "edgelist weight": lambda d, t: (file(d, f"0,-1,0,{t}\n"), {"format": "edgelist"}, "nodes/0/weight"),
    "edgelist odd line": lambda d, t: (
        file(d, f"0,-1,0, {t}, float16, 1, {t}\n"),
        {"format": "edgelist"},
        "nodes/0/data/feat_0",
    ),
    "tsv feature": lambda d, t: (file(d, f"0\t0\t1\tf:{t}\t\n"), {"format": "tsv"}, "nodes/0/data/feat_0"),
    "tsv weight": lambda d, t: (file(d, f'0\t0\t{t}\t\t\n"1"\t0\t{t}\n'), {"format": "tsv"}, "nodes/0/weight"),
    "edges weight": lambda d, t: edges(d, f"0 1 {t}\n", weight_col="2"),
    "edges weight, quoted": lambda d, t: edges(d, f'0,1,"{t}"\n', weight_col="2"),
    "edges declared": lambda d, t: edges(d, f"0,1,{t}\n", columns=["col_2=float32"]),
    "edges found": lambda d, t: edges(d, f"0\t1\t{t}\n0\t1\t0.5\n"),
    "edges found late": lambda d, t: edges(d, f"0,1,{t},\n0,2,7,\n0,3,0.5,\n"),
    "triples": lambda d, t: (
        file(d, f"0,r,1,{t}\n"),
        {"format": "triples", "decoder_options": {"header": "no", "weight_col": "3"}},
        "edges/_N__r___N/weight",
    ),
    "csv declared": lambda d, t: table(d, f"id,a\n0,{t}\n", "n.csv", columns=(("a", "float64"),)),
    "csv found": lambda d, t: table(d, f"id,a\n0,{t}\n1,7\n2,0.5\n", "n.csv"),
    "jsonl found": lambda d, t: table(d, f'{{"id": 0, "a": {t}}}\n{{"id": 1, "a": 0.5}}\n', "n.jsonl"),
    "jsonl declared": lambda d, t: table(d, f'{{"id": 0, "a": {t}}}\n', "n.jsonl", columns=(("a", "float32"),)),
    "json": lambda d, t: (
        file(d, f'{{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": [], "float_feature": {{"0": [{t}]}}}}\n'),
        {"format": "json"},
        "nodes/0/data/feat_0",
    ),
    "json weight": lambda d, t: (
        file(d, f'{{"node_id": 0, "node_type": 0, "node_weight": {t}, "edge": []}}\n'),
        {"format": "json"},
        "nodes/0/weight",
    ),
    "neo4j": lambda d, t: neo4j(d, t, "double"),
    "chunked": lambda d, t: chunked(d, t, "0.5"),
    "ogb found": lambda d, t: ogb(d, t, "0.5"),
    "mtx": lambda d, t: mtx(d, t, "real"),
    "metis": lambda d, t: (file(d, f"2 1 1\n2 {t}\n1 {t}\n"), {"format": "metis"}, f"{EDGES}/weight"),
}
INTEGERS: dict[str, Callable[[Path, str], Made]] = {
    "edgelist": lambda d, t: (file(d, f"0,-1,0,1,int32,1,{t}\n"), {"format": "edgelist"}, "nodes/0/data/feat_0"),
    "edgelist odd line": lambda d, t: (file(d, f"0,-1,0,1, int8,1, {t}\n"), {"format": "edgelist"}, "nodes/0/data/feat_0"),
    "tsv": lambda d, t: (file(d, f"0\t0\t1\ti32:{t}\t\n"), {"format": "tsv"}, "nodes/0/data/feat_0"),
    "edges": lambda d, t: edges(d, f"0,1,{t}\n", columns=["col_2=int16"]),
    "csv": lambda d, t: table(d, f"id,a\n0,{t}\n", "n.csv", columns=(("a", "int64"),)),
    "jsonl": lambda d, t: table(d, f'{{"id": 0, "a": {t}}}\n', "n.jsonl", columns=(("a", "int8"),)),
    "json": lambda d, t: (
        file(d, f'{{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": [], "int8_feature": {{"0": [{t}]}}}}\n'),
        {"format": "json"},
        "nodes/0/data/feat_0",
    ),
    "neo4j": lambda d, t: neo4j(d, t, "int"),
    "chunked": lambda d, t: chunked(d, t, "7"),
    "ogb found": lambda d, t: ogb(d, t, "7"),
    "mtx": lambda d, t: mtx(d, t, "integer"),
}
IDS: dict[str, Callable[[Path, str], Made]] = {
    "edgelist": lambda d, t: (file(d, f"{t},-1,0,1\n"), {"format": "edgelist"}, "nodes/0/raw_ids"),
    "tsv": lambda d, t: (file(d, f"{t}\t0\t1\n"), {"format": "tsv"}, "nodes/0/raw_ids"),
    "edges": lambda d, t: (file(d, f"{t} 5\n"), {"format": "edges", "ids": "sparse"}, f"{NODE}/raw_ids"),
    "edges, a relation each": lambda d, t: (
        file(d, f"{t},r,5\n"),
        {"format": "edges", "ids": "sparse", "decoder_options": {"relation_col": "1", "header": "no"}},
        f"{NODE}/raw_ids",
    ),
    "edges int": lambda d, t: (
        file(d, f"{t},5\n"), {"format": "edges", "decoder_options": {"id_type": "int"}}, f"{NODE}/raw_ids"
    ),
    "csv": lambda d, t: (*table(d, f"id\n{t}\n", "n.csv", header="yes")[:2], f"{NODE}/raw_ids"),
    "seeds": lambda d, t: (
        file(d, "5 5\n"),
        {"format": "edges", "ids": "sparse", "seeds": tuple(file(d, f"{t}\n", "seeds.txt"))},
        f"{NODE}/raw_ids",
    ),
}  # fmt: skip
JSON = ("json", "json weight", "jsonl", "jsonl found", "jsonl declared")
NO_DIGITS = ["0x1F", "1_0", "٣", "３", "0b1", "1e1_0", "1d3"]


def value_of(folder: Path, made: Made) -> np.generic:
    """Convert, and return the first value of the array."""
    inputs, options, array = made
    found = []
    for block_bytes in (0, 1):  # as one block, and line by line
        out = folder / f"out{block_bytes}"
        graphprep.convert(inputs, str(out), **options, block_bytes=block_bytes)
        found.append(np.load(out / "part-00000" / f"{array}.npy").reshape(-1)[0])
    assert str(found[0]) == str(found[1])
    return found[0]


@pytest.mark.parametrize("reader", FLOATS)
@pytest.mark.parametrize(("token", "value"), [("-0", "-0.0"), ("-0.0", "-0.0"), ("0", "0.0"), ("+5", "5.0"), ("+0", "0.0")])
def test_signs_of_floats(tmp_path, reader, token, value):
    made = FLOATS[reader](tmp_path / "in", token)
    if reader in JSON and token.startswith("+"):  # JSON has no such number
        with pytest.raises(DataError):
            value_of(tmp_path, made)
        return
    assert str(float(value_of(tmp_path, made))) == value


@pytest.mark.parametrize("reader", INTEGERS)
@pytest.mark.parametrize(("token", "value"), [("-0", 0), ("+5", 5), ("-7", -7), ("007", 7)])
def test_signs_of_integers(tmp_path, reader, token, value):
    made = INTEGERS[reader](tmp_path / "in", token)
    if reader in JSON and token in ("+5", "007"):
        with pytest.raises(DataError):
            value_of(tmp_path, made)
        return
    assert value_of(tmp_path, made) == value


@pytest.mark.parametrize("reader", IDS)
@pytest.mark.parametrize("token", ["+5", "5", "005"])
def test_signs_of_ids(tmp_path, reader, token):
    assert value_of(tmp_path, IDS[reader](tmp_path / "in", token)) == 5


@pytest.mark.parametrize("token", NO_DIGITS)
@pytest.mark.parametrize(
    ("readers", "reader"), [(side, name) for side in ("FLOATS", "INTEGERS", "IDS") for name in globals()[side]]
)
def test_what_is_no_digit_is_an_error(tmp_path, readers, reader, token):
    inputs, options, array = globals()[readers][reader](tmp_path / "in", token)
    try:
        graphprep.convert(inputs, str(tmp_path / "out"), **options)
    except DataError:
        return
    assert "found" in reader, "it was read as a number"
    assert (tmp_path / "out/part-00000" / f"{array}.offsets.npy").exists()  # a column that is guessed holds texts then


@pytest.mark.parametrize("token", ["+5", "05", "0x5", "1_0", "５"])
def test_indices(tmp_path, token):
    """Of formats whose IDs are positions: the edge from node 5 (counted from 1 where the format does) to itself."""
    texts = {
        "mtx": f"%%MatrixMarket matrix coordinate pattern general\n9 9 1\n{token} {token}\n",
        "metis": f"5 1\n\n\n\n{token}\n4\n",
        "graphbolt": "dataset_name: x\ngraph:\n  nodes: [{num: 9}]\n  edges: [{format: csv, path: e.csv}]\n",
    }
    ends = {"mtx": ([4], [4]), "metis": ([3, 4], [4, 3]), "graphbolt": ([5], [5])}
    file(tmp_path, f"{token},{token}\n", "e.csv")
    for name, text in texts.items():
        (path,) = file(tmp_path, text, "metadata.yaml" if name == "graphbolt" else name)
        if token in ("+5", "05"):
            graphprep.convert(path, str(tmp_path / f"{name}-out"), format=name)
            src, dst = graphprep.load(tmp_path / f"{name}-out").edges()[:2]
            assert (sorted(src.tolist()), sorted(dst.tolist())) == tuple(map(sorted, ends[name]))
        else:
            with pytest.raises(DataError):
                graphprep.convert(path, str(tmp_path / f"{name}-out"), format=name)


@pytest.mark.parametrize("ids", [None, "auto", "dense", "sparse"])
def test_negative_ids_are_an_error_unless_declared(tmp_path, ids):
    (tmp_path / "e.txt").write_text("-5 1\n1 2\n")
    with pytest.raises(DataError) as caught:
        graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "out"), format="edges", ids=ids)
    assert caught.value.message == "field 'src' must not be negative, found '-5'"
    signed = {"id_type": "int"}
    graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "out"), format="edges", decoder_options=signed)
    assert np.load(tmp_path / "out/part-00000/nodes/_N/raw_ids.npy").tolist() == [-5, 1, 2]


@pytest.mark.parametrize("temporal", [True, False])
def test_removed_at_zero_of_json_is_kept(tmp_path, temporal):
    node = {"node_id": 0, "node_type": 0, "node_weight": 1, "created_at": 0, "removed_at": 0}
    edge = {"src_id": 0, "dst_id": 0, "edge_type": 0, "weight": 1, **({"created_at": 3, "removed_at": 0} if temporal else {})}
    (tmp_path / "g.json").write_text(json.dumps({**node, "edge": [edge]}) + "\n")
    graphprep.convert(str(tmp_path / "g.json"), str(tmp_path / "out"), format="json")
    part = tmp_path / "out/part-00000"
    assert np.load(part / "nodes/0/removed_at.npy").tolist() == [0]
    assert np.load(part / "edges/0__0__0/removed_at.npy").tolist() == [0]


def test_one_numeric_column_of_a_chunked_parquet_feature_is_a_matrix(tmp_path):
    file(tmp_path, "0,1\n", "e.csv")
    pq.write_table(pa.table({"a": [1.5, 2.5]}), tmp_path / "a.parquet")
    data = {"_N": {"a": {"format": {"name": "parquet"}, "data": ["a.parquet"]}}}
    file(tmp_path, json.dumps({**CHUNKED, "node_data": data, "edge_data": {}}), "metadata.json")
    graphprep.convert([str(tmp_path / "metadata.json")], str(tmp_path / "out"), format="chunked")
    assert np.load(tmp_path / "out/part-00000/nodes/_N/data/a.npy").tolist() == [[1.5], [2.5]]


@pytest.mark.parametrize("rows", [0, 2])
def test_lists_without_a_present_row_are_dense_without_items(tmp_path, rows):
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "a": pa.array([None] * rows, pa.list_(pa.float32()))})
    pq.write_table(table, tmp_path / "n.parquet")
    (tmp_path / "e.csv").write_text("src,dst\n" + ("0,1\n" if rows else ""))
    nodes = NodeTable("_N", TableConfig((str(tmp_path / "n.parquet"),)))
    ends = EdgeTable("_N", "_E", "_N", TableConfig((str(tmp_path / "e.csv"),)))
    graphprep.convert([], str(tmp_path / "out"), graph=GraphConfig(nodes=(nodes,), edges=(ends,)))
    (column,) = graphprep.info(str(tmp_path / "out")).node_types[0].columns
    assert (column.name, column.kind, column.item_shape, column.dtype) == ("a", "dense", (0,), "float32")
