"""Options from Python are checked like those of the command line, and messages call them by their Python names."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import GraphprepError, UsageError
from graphprep.model.export import ExportOptions
from graphprep.model.options.checks import make_options
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.decoding import DECODER_OPTIONS
from graphprep.model.options.generate import GenerateOptions
from graphprep.model.options.partition import PartitionOptions
from graphprep.model.options.reorder import ReorderOptions
from graphprep.model.options.sample import SampleOptions
from graphprep.model.options.split import SplitOptions
from graphprep.model.options.stats import StatsOptions
from graphprep.model.options.transform import TransformOptions
from graphprep.model.options.words import flags_in_messages, parameter_words
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage


@pytest.fixture
def edges(tmp_path):
    (tmp_path / "in").write_text("0 1\n1 2\n")
    return tmp_path / "in"


@pytest.fixture
def store(edges, tmp_path):
    graphprep.convert(edges, tmp_path / "store", format="edges")
    return tmp_path / "store"


WRONG = [
    ({"layout": "coo"}, "layout must be one of csc, csr, both, found 'coo'\n  fix: use one of them"),
    ({"neighbor_order": "foo"}, "neighbor_order must be one of input, id, time, weight, found 'foo'\n  fix: use one of them"),
    ({"ids": "foo"}, "ids must be one of auto, dense, sparse, found 'foo'\n  fix: use one of them"),
    ({"on_error": "ignore"}, "on_error must be one of stop, skip, found 'ignore'\n  fix: use one of them"),
    ({"on_missing_node": None}, "on_missing_node must be one of error, create, drop, found None\n  fix: use one of them"),
    ({"index_dtype": "int16"}, "index_dtype must be one of auto, int32, int64, found 'int16'\n  fix: did you mean 'int64'?"),
    ({"weight_dtype": np.float32}, "weight_dtype must be one of float32, float64, found <class 'numpy.float32'>\n  fix: use"),
    ({"threads": -3}, "threads must be 0 or more, found -3\n  fix: use 0 for one thread a core"),
    ({"run": RunOptions(threads=-3)}, "threads must be 0 or more, found -3\n  fix: use 0 for one thread a core"),
    ({"threads": 1.5}, "threads must be an integer, found 1.5\n  fix: correct the value"),
    ({"run": {"threads": 1}}, "run must be RunOptions, found {'threads': 1}\n  fix: make one: graphprep.RunOptions()"),
    ({"partitions": 0}, "partitions must be 1 or more, found 0\n  fix: give the number of partitions"),
    ({"partitions": "two"}, "partitions must be an integer, found 'two'\n  fix: correct the value"),
    ({"edge_ids": "maybe"}, "edge_ids must be true or false, found 'maybe'\n  fix: correct the value"),
    ({"overwrite": 2}, "overwrite must be true or false, found 2\n  fix: correct the value"),
    ({"seed": None}, "seed must be an integer, found None\n  fix: correct the value"),
    ({"min_edges": -1}, "min_edges must be 0 or more, found -1\n  fix: give the least number of edges"),
    ({"max_errors": "5 %%"}, "max_errors must be a number >= 0 or a percentage, found '5 %%'\n  fix: write, for example, 100"),
    ({"num_nodes": {"a": -1}}, "num_nodes must be 0 or more, found -1\n  fix: give the number of nodes"),
    ({"num_nodes": "many"}, "num_nodes must be an integer, found 'many'\n  fix: correct the value"),
    ({"decoder_options": "x"}, "decoder_options must be a mapping, found 'x'\n  fix: pass a dict, such as decoder_options={}"),
    ({"graph": "graph.yaml"}, "graph must be GraphConfig, found 'graph.yaml'\n  fix: make one: graphprep.GraphConfig()"),
    ({"graph_name": ["a", 1.5, {}]}, None),
    ({"partition": 2}, "there is no option 'partition'\n  fix: did you mean 'partitions'?"),
    (
        {"weight_col": 2},
        "there is no option 'weight_col'\n  fix: it is an option of decoders: pass decoder_options={'weight_col'",
    ),
    (
        {"options": {"layout": "csr"}},
        "options must be ConvertOptions, found {'layout': 'csr'}\n  fix: make one: graphprep.Convert",
    ),
]


@pytest.mark.parametrize("function", ["convert", "validate", "info"])
@pytest.mark.parametrize(("given", "message"), [one for one in WRONG if one[1]])
def test_wrong_options_are_refused_by_their_python_names(function, given, message, edges, tmp_path):
    places = (edges, tmp_path / "out") if function == "convert" else (edges,)
    with pytest.raises(UsageError) as caught:
        getattr(graphprep, function)(*places, **given)
    assert str(caught.value).startswith(message)
    assert caught.value.args == (caught.value.message,)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s, o: graphprep.export(s, o, "npy", ids="foo"), "ids must be one of auto, raw, typed, found 'foo'"),
        (lambda s, o: graphprep.export(s, o, "npy", partitions=0), "partitions must be 1 or more, found 0"),
        (lambda s, o: graphprep.export(s, o, "npy", threads=-3), "threads must be 0 or more, found -3"),
        (lambda s, o: graphprep.export(s, o, "npy", feature_dtypes="f"), "feature_dtypes must be a mapping, found 'f'"),
        (lambda s, o: graphprep.export(s, o, "npy", link="x"), "link must be true or false, found 'x'"),
        (lambda s, o: graphprep.reorder(s, o, by="size"), "by: there is no order 'size'"),
        (lambda s, o: graphprep.reorder(s, o, shuffle_ratio=2), "shuffle_ratio must lie between 0 and 1, found 2"),
        (lambda s, o: graphprep.reorder(s, o, shuffle_ratio="x"), "shuffle_ratio must be a number, found 'x'"),
        (lambda s, o: graphprep.reorder(s, o, threads=-3), "threads must be 0 or more, found -3"),
        (lambda s, o: graphprep.generate("rmat", o, threads=-3), "threads must be 0 or more, found -3"),
        (lambda s, o: graphprep.generate("rmat", o, format="xml"), "format must be one of edges, csv, parquet, "),
        (lambda s, o: graphprep.generate("rmat", o, scale="x"), "scale must be an integer, found 'x'"),
        (lambda s, o: graphprep.generate("rmat", o, scales=3), "there is no option 'scales'"),
        (lambda s, o: graphprep.info(s, head=-1), "head must be 0 or more, found -1"),
        (lambda s, o: graphprep.info(s, head="x"), "head must be an integer, found 'x'"),
        (lambda s, o: graphprep.validate(s, max_faults=-1), "max_faults must be 0 or more, found -1"),
        (lambda s, o: graphprep.ids(s, [0], from_="raw", to="local", missing="skip"), "missing must be one of error, mark, "),
        (lambda s, o: graphprep.ids(s, [0], from_="raw", to="local", edges="x"), "edges must be true or false, found 'x'"),
        (
            lambda s, o: graphprep.validate(s, on_error="skip"),
            "metadata.json says that this is a store: raw input only takes on_e",
        ),
        (lambda s, o: graphprep.load(s, storage_options="x"), "storage_options must be a mapping, found 'x'"),
    ],
)
def test_every_function_checks(call, message, store, tmp_path):
    with pytest.raises(UsageError) as caught:
        call(store, tmp_path / "out")
    assert caught.value.message.startswith(message)
    assert not (tmp_path / "out").exists()


def test_one_text_stands_for_several(tmp_path):
    """``labels="col_2"`` was read letter by letter."""
    (tmp_path / "people.csv").write_text("id,col_2\n0,a\n1,b\n")
    (tmp_path / "knows.csv").write_text("src,dst\n0,1\n")
    config = tmp_path / "graph.yaml"
    config.write_text("nodes: [{type: p, files: people.csv}]\nedges: [{type: 'p:k:p', files: knows.csv}]\n")
    graphprep.convert(config, tmp_path / "out", labels="col_2")
    (column,) = StoreReader(Storage(), str(tmp_path / "out")).metadata.node_schemas[0].columns
    assert (column.name, column.role) == ("col_2", "label")
    graphprep.export(tmp_path / "out", tmp_path / "npy", "npy", drop_columns="col_2")
    for number, edge_types in enumerate(("p:k:p", ["p:k:p"], [("p", "k", "p")])):
        graphprep.reorder(tmp_path / "out", tmp_path / f"hot-{number}", edge_types=edge_types)


def test_values_that_mean_the_same_are_taken(edges, tmp_path):
    given = {"partitions": np.int64(2), "num_nodes": 5, "threads": 1, "tmp_dir": tmp_path, "bad_records": tmp_path / "bad"}
    summary = graphprep.convert(edges, tmp_path / "out", on_error="skip", **given)
    assert (summary.num_parts, summary.num_nodes) == (2, {"_N": 5})
    assert (tmp_path / "bad").exists()


def test_a_notebook_is_told_parameters_and_a_shell_flags(store, edges, capsys):
    with pytest.raises(UsageError) as caught:
        graphprep.convert(edges, store)
    assert caught.value.fix == "choose another name, or give overwrite=True"
    assert run(["convert", str(edges), str(store)]) == 2
    assert capsys.readouterr().err.endswith("  fix: choose another name, or give --overwrite\n")
    summary = graphprep.convert(edges, store, format="edges", overwrite=True)
    assert summary.notes == ('node type \'_N\': 0..2 are its nodes: ids="dense" (chosen by ids="auto")',)
    with flags_in_messages(), pytest.raises(GraphprepError, match="--layout must be one of"):
        graphprep.convert(edges, store, layout="coo")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("give --overwrite", "give overwrite=True"),
        ("--overwrite replaces nothing else", "overwrite=True replaces nothing else"),
        ("--max-errors belongs to --on-error skip", 'max_errors belongs to on_error="skip"'),
        ("add it, or use --on-missing-node create or drop", 'add it, or use on_missing_node="create" or "drop"'),
        ("raise --memory-limit to 200MiB or more", "raise memory_limit to 200MiB or more"),
        ("choose --format edges", 'choose format="edges"'),
        ("name it with --format: edges", "name it with format: edges"),
        ("--header now", 'decoder_options["header"] now'),
        ("add --id-type string", 'add decoder_options["id_type"]="string"'),
        ("with --as count=NAME, or", 'with as_="count=NAME", or'),
        ("or --no-quote", 'or decoder_options["quote"]=False'),
        ("leave out --no-edge-ids", "leave out edge_ids=False"),
        ("write the bytes as they are: --option texts=binary", "write the bytes as they are: texts=binary"),
        ("run graphprep clean 'a b' --all-dead", 'run graphprep.clean("a b", all_dead=True)'),
        ("found '--overwrite'", "found '--overwrite'"),
        ("s3://a--b/c", "s3://a--b/c"),
    ],
)
def test_flags_become_parameters(text, told):
    assert parameter_words(text, decoder=True) == told


def test_every_flag_of_a_message_is_an_option():
    """What the message names in Python is a field of the options, or a key of decoder_options."""
    kinds = (ConvertOptions, RunOptions, ExportOptions, PartitionOptions, ReorderOptions, TransformOptions, GenerateOptions)
    kinds += (StatsOptions, SplitOptions, SampleOptions)
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    parameters = {"against", "target", "from_", "type_", "edges", "missing", "head", "max_faults", "nodes", "node_data"}
    parameters |= {"all_dead"}
    known = fields | parameters | set(DECODER_OPTIONS) | {"decoder_options_file", "option", "list", "watermark"}
    package = Path(graphprep.__file__).parent
    sources = [path for path in package.rglob("*.py") if not path.is_relative_to(package / "cli")]
    flags = {flag for path in sources for flag in re.findall(r"[\"' ](--[a-z][a-z-]*[a-z])\b", _messages(path.read_text()))}
    flags -= {"--help", "--export", "--decoder-options", "--tmp", "--no"}
    words = {flag: re.sub(r"=.*", "", parameter_words(flag)) for flag in flags}
    assert {flag for flag, word in words.items() if word not in known} == set()


def _messages(text):
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("#", '"""')))


def test_the_method_of_partitioning_has_one_name():
    assert make_options(ConvertOptions, None, {"by": "hash"}).partition_by == "hash"
    assert make_options(PartitionOptions, None, {"partition_by": "hash"}).by == "hash"
    with pytest.raises(UsageError, match="partition_by and by are one option"):
        make_options(PartitionOptions, None, {"by": "hash", "partition_by": "hash"})
    with pytest.raises(UsageError, match="there is no option 'partition_by'"):
        make_options(ReorderOptions, None, {"partition_by": "hash"})
