"""What an export refuses is told before anything is decoded, by ``plan`` and ``convert --export``, as ``export`` tells it."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.convert import pipeline
from graphprep.plan.foresight import foresee

SAMPLES = Path(__file__).parents[2] / "sample_data"
RAGGED = pa.array([[1.0], [1.0, 2.0], []], pa.list_(pa.float64()))
FLOATS = pa.array([1.0, 2.0, 3.0])


def write_tables(folder, column, values, relation="buys"):
    folder.mkdir()
    pq.write_table(pa.table({"id": [0, 1, 2], column: values}), folder / "user.parquet")
    (folder / "item.csv").write_text("id\n0\n1\n")
    (folder / "buys.csv").write_text("src,dst\n0,1\n2,0\n")
    tables = ["--nodes", f"user={folder}/user.parquet", "--nodes", f"item={folder}/item.csv"]
    return [*tables, "--edges", f"user:{relation}:item={folder}/buys.csv"]


@pytest.mark.parametrize(
    ("target", "column", "values", "relation", "named"),
    [
        ("glt", "emb", RAGGED, "buys", "emb"),
        ("pyg", "emb", RAGGED, "buys", "emb"),
        ("distdgl", "emb", RAGGED, "buys", "emb"),
        ("mtx", "age", FLOATS, "buys", "age"),
        ("metis", "age", FLOATS, "buys", "age"),
        ("glt", "age", FLOATS, "a/b", "a/b"),
        ("ogb", "age", FLOATS, "buys", "split"),
    ],
)
def test_it_is_refused_before_decoding_as_export_refuses_it(
    target, column, values, relation, named, tmp_path, capsys, monkeypatch
):
    tables = write_tables(tmp_path / "in", column, values, relation)
    assert run(["convert", *tables, str(tmp_path / "store"), "-q"]) == 0
    assert run(["export", str(tmp_path / "store"), str(tmp_path / "out"), "--to", target]) == 2
    told = capsys.readouterr().err
    assert named in told
    monkeypatch.setattr(pipeline, "PREPARING", None)
    new = str(tmp_path / "new")
    for command in (["convert", *tables, new], ["convert", *tables, new, "--dry-run"], ["plan", *tables]):
        assert run([*command, "--export", target, "-q"]) == 2
        assert capsys.readouterr().err == told
    assert not [path.name for path in tmp_path.iterdir() if "new" in path.name]


def test_what_may_be_left_out_is_told_and_the_rest_goes_on(tmp_path, capsys):
    tables = write_tables(tmp_path / "in", "emb", RAGGED)
    assert run(["plan", *tables, "--export", "distdgl", "--drop-unsupported"]) == 0
    assert "leaves out node column user 'emb': rows differ in length" in capsys.readouterr().out
    assert run(["convert", *tables, str(tmp_path / "store"), "--export", "distdgl", "--drop-unsupported", "-q"]) == 0
    assert (tmp_path / "store-distdgl").is_dir()


def test_flags_for_columns_count(tmp_path):
    (tmp_path / "user.csv").write_text("id,kind,part\n0,a,train\n1,b,test\n")
    (tmp_path / "knows.csv").write_text("src,dst,train_mask\n0,1,1\n")
    tables = ["--nodes", f"user={tmp_path}/user.csv", "--edges", f"user:knows:user={tmp_path}/knows.csv"]
    flags = ["--label", "user:kind", "--split", "user:part"]
    assert run(["convert", *tables, str(tmp_path / "a"), *flags, "--export", "pyg,ogb", "-q"]) == 2
    assert run(["convert", *tables, str(tmp_path / "a"), *flags, "--export", "pyg", "-q"]) == 0
    split = ["--split", "user:knows:user:0.8/0.1/0.1"]
    assert run(["plan", *tables, *split, "--export", "ogb", "-q"]) == 0


def shown(metadata):
    """Return types and columns."""
    columns = [
        [replace(one, end=None) for one in schema.columns] for schema in (*metadata.node_schemas, *metadata.edge_schemas)
    ]
    return metadata.node_types, metadata.edge_types, columns


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("karate/karate.csv", {"decoder_options": {"weight_col": "weight"}}),
        ("lesmis/lesmis.jsonl", {}),
        ("karate/chunked", {}),
        ("shop/chunked", {}),
        ("karate/karate.edgelist", {}),
        ("dtypes/dtypes.edgelist", {"format": "edgelist"}),
        ("people/graph.json", {}),
        ("edges/columns.parquet", {}),
        ("names/awkward.csv", {"format": "edges", "decoder_options": {"id_type": "string"}}),
    ],
)
def test_samples_show_the_types_and_columns_of_the_store(path, options, tmp_path):
    found = []
    options = graphprep.ConvertOptions(**options)
    inputs, out = [str(SAMPLES / path)], str(tmp_path / "out")
    hooks = pipeline.Hooks(check=lambda *given: found.append(foresee(*given, 1)))
    pipeline.convert(inputs, out, options, hooks=hooks)
    with graphprep.open_store(tmp_path / "out") as store:
        assert shown(found[0]) == shown(store.metadata)


@pytest.mark.parametrize("path", ["shop/shop.jsonl", "shop/shop.tsv"])
def test_types_that_only_decoding_tells_are_left_to_the_end(path, tmp_path):
    found = []
    hooks = pipeline.Hooks(check=lambda *given: found.append(foresee(*given, 1)))
    pipeline.convert([str(SAMPLES / path)], str(tmp_path / "out"), hooks=hooks)
    assert found == [None]
