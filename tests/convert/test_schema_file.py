"""``--schema``: what fits gives the same bytes, anything else is an error with its place."""

from __future__ import annotations

import json

import pytest
from golden.golden_cases import load_cases, read_store

from graphprep.convert.pipeline import convert
from graphprep.model.errors import DataError
from graphprep.model.options.convert import ConvertOptions

CASES = [case for case in load_cases() if case.name.startswith(("shop", "town", "edges_c", "dtypes"))]
NODE = '{{"node_id":{},"node_type":{},"node_weight":1.0,{}"edge":[]}}\n'


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_stores_own_metadata_is_a_schema_that_changes_nothing(case, tmp_path):
    options = ConvertOptions(**case.resolved_options(), schema=str(case.store / "metadata.json"))
    convert([str(path) for path in case.input_paths], str(tmp_path / "out"), options)
    assert read_store(tmp_path / "out") == read_store(case.store)


def column(**change):
    value = {"name": "feat_0", "kind": "dense", "dtype": "float32", "item_shape": [2], "optional": False, "slot": 0}
    return value | change


def schema(*columns, edge_types=(), node_types=("0",)):
    weight = {"name": "weight", "kind": "dense", "dtype": "float32", "item_shape": [], "optional": False, "role": "weight"}
    return {
        "node_type": list(node_types),
        "edge_type": list(edge_types),
        "node_schema": {name: {"columns": [weight, *columns]} for name in node_types},
        "edge_schema": {name: {"columns": [weight]} for name in edge_types},
    }


def run(tmp_path, text, value):
    (tmp_path / "in.jsonl").write_text(text)
    (tmp_path / "schema.json").write_text(json.dumps(value))
    options = ConvertOptions(format="json", schema=str(tmp_path / "schema.json"))
    convert([str(tmp_path / "in.jsonl")], str(tmp_path / "out"), options)
    return json.loads((tmp_path / "out" / "metadata.json").read_text())


FEATURE = '"float_feature":{{"0":[{}]}},'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            NODE.format(2, 0, FEATURE.format("1,2,3")),
            "in.jsonl:2:12: column 'feat_0' has 3 values, the schema says [2]\n  fix: correct the record, or the schema",
        ),
        (
            NODE.format(2, 0, '"double_feature":{"0":[1,2]},'),
            "in.jsonl:2:12: slot 0 with numbers of float64 is not in the schema of node type '0'\n"
            "  fix: correct the record, or the schema",
        ),
        (
            NODE.format(2, 0, '"binary_feature":{"4":"x"},'),
            "in.jsonl:2:12: slot 4 with text of uint8 is not in the schema of node type '0'\n"
            "  fix: correct the record, or the schema",
        ),
        (
            NODE.format(2, 0, ""),
            "schema.json: column 'feat_0' of node type '0' is missing from 1 of 2 rows\n"
            '  fix: add the values, or say "optional": true in the schema',
        ),
        (
            NODE.format(2, 1, ""),
            "node type '1' is not in the schema\n  fix: use one of 0, or add the type to the schema",
        ),
        (
            '{"node_id":2,"node_type":0,"node_weight":1,"float_feature":{"0":[1,2]},'
            '"edge":[{"src_id":2,"dst_id":1,"edge_type":5,"weight":1}]}\n',
            "in.jsonl:2:90: edge type '0:5:0' is not in the schema\n  fix: correct the edge, or add the type to the schema",
        ),
    ],
)
def test_what_is_not_in_the_schema_is_an_error(line, message, tmp_path):
    with pytest.raises(DataError) as caught:
        run(tmp_path, NODE.format(1, 0, FEATURE.format("1,2")) + line, schema(column()))
    assert str(caught.value).replace(f"{tmp_path}/", "") == message
    assert not (tmp_path / "out").exists()


def test_types_and_columns_that_do_not_occur_are_written(tmp_path):
    value = schema(column(optional=True), edge_types=["0:r:1"], node_types=("1", "0"))
    got = run(tmp_path, NODE.format(1, 0, ""), value)
    assert got["node_type"] == ["1", "0"]
    assert got["num_nodes_per_type"] == [0, 1]
    assert (got["edge_type"], got["num_edges_per_type"]) == (["0:r:1"], [0])
    assert got["node_schema"]["0"]["columns"] == value["node_schema"]["0"]["columns"]
    assert (tmp_path / "out/part-00000/nodes/0/data/feat_0.present.npy").exists()
    assert (tmp_path / "out/part-00000/edges/0__r__1/csc/indptr.npy").exists()


def test_a_schema_that_is_none_is_an_error(tmp_path):
    with pytest.raises(DataError) as caught:
        run(tmp_path, NODE.format(1, 0, ""), {"node_type": ["0"], "edge_type": [], "node_schema": {}})
    assert str(caught.value).startswith(f"{tmp_path}/schema.json: ")
