"""Options in provenance.json: what is written is read again."""

import json

from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, PairFile, TableConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.recorded import options_of, recorded
from graphprep.model.run_options import RunOptions

GRAPH = GraphConfig(
    nodes=(NodeTable("user", TableConfig(("u.csv",), header="yes", columns=(("age", "int8"),)), id_col="id", num_nodes=3),),
    edges=(
        EdgeTable("user", "buys", None, TableConfig(("b.csv",), names=("s", "d"), nulls=("NA",)), dst_space="item"),
        EdgeTable("user", "likes", "user", layout="csr", parts=(PairFile("train.npy"), None, PairFile("test.npy", "y.npy"))),
    ),
    node_data=(DataArray("user", "x", "x.npy", ids_file="ids.npy"),),
    id_type="string",
    columns=(("price", "float64"),),
    labels=("user:age",),
)


def test_options_are_read_as_they_were_written():
    options = ConvertOptions(
        format="edges",
        decoder_options={"weight_col": "w", "drop_columns": ["a", "b"], "quote": None},
        num_nodes={"user": 3},
        graph=GRAPH,
        max_errors="5%",
        on_error="skip",
        labels=("user:age",),
        undirected=True,
        seed=7,
    )
    told = recorded(["a.csv", "b.csv"], options)
    assert json.loads(json.dumps(told)) == told
    assert told["inputs"] == ["a.csv", "b.csv"]
    assert options_of(told["options"]) == options


def test_what_says_how_the_store_came_about_is_written():
    run = RunOptions(memory_limit="1GiB", storage_options={"secret": "s3cret"})
    options = ConvertOptions(run=run, partitions=4, partition_by="hash", overwrite=True, bad_records="b", resume=True, seed=1)
    assert recorded(["https://u:pass@host/a.csv?X-Amz-Signature=1"], options) == {
        "inputs": ["https://u:…@host/a.csv"],
        "options": {"partitions": 4, "partition_by": "hash", "seed": 1},
    }


def test_what_another_version_wrote_is_passed_over():
    assert options_of({"seed": 1, "later": {"a": 1}}) == ConvertOptions(seed=1)
