"""Options from a file: ``--config``."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import graphprep
from graphprep.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
KARATE = str(ROOT / "sample_data" / "karate" / "karate.csv")


def stored(folder):
    paths = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "provenance.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture
def config(tmp_path):
    def write(text, name="run.yaml"):
        (tmp_path / name).write_text(text if isinstance(text, str) else json.dumps(text))
        return str(tmp_path / name)

    return write


def test_a_file_gives_options_by_either_name(config, tmp_path):
    lines = ["partitions: 2", "layout: both", "weight-col: weight", "partition_by: hash", "num_nodes: {'': 40}", "quiet: true"]
    assert run(["convert", KARATE, str(tmp_path / "a"), "--config", config("\n".join(lines))]) == 0
    given = {"partitions": 2, "layout": "both", "partition_by": "hash", "num_nodes": 40}
    graphprep.convert(KARATE, tmp_path / "b", decoder_options={"weight_col": "weight"}, **given)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")


def test_the_command_line_wins(config, tmp_path):
    given = config({"partitions": 2, "layout": "both", "edge_ids": False})
    assert run(["convert", KARATE, str(tmp_path / "a"), f"--config={given}", "-p", "3", "--layout", "csr"]) == 0
    graphprep.convert(KARATE, tmp_path / "b", partitions=3, layout="csr", edge_ids=False)
    assert stored(tmp_path / "a") == stored(tmp_path / "b")


def test_arguments_and_what_must_be_given_may_stand_in_a_file(config, tmp_path):
    graphprep.convert(KARATE, tmp_path / "store")
    given = {"store": str(tmp_path / "store"), "out": str(tmp_path / "a"), "by": "degree"}
    assert run(["reorder", "--config", config(given)]) == 0
    graphprep.reorder(tmp_path / "store", tmp_path / "b", by="degree")
    assert stored(tmp_path / "a") == stored(tmp_path / "b")
    assert run(["reorder", str(tmp_path / "store"), str(tmp_path / "c"), "--config", config({"seed": 1})]) == 2
    assert run(["convert", str(tmp_path / "d"), "--config", config({"inputs": KARATE, "json": True})]) == 0
    assert stored(tmp_path / "d") == stored(tmp_path / "store")


@pytest.mark.parametrize(
    "words",
    [
        [
            KARATE,
            *["--weight-col", "weight", "--partitions", "2", "--partition-by", "hash", "--layout", "both", "--ids", "sparse"],
        ],
        [*["--nodes", "n=n.csv", "--edges", "n:e:n=e.csv", "--label", "n:y", "--column", "n:x=float32", "--undirected"]],
        [*["e.csv", "--src-col", "a", "--dst-col", "b", "--id-type", "int", "--drop-column", "w", "--no-edge-ids"]],
    ],
)
def test_a_provenance_repeats_its_run(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("n.csv").write_text("id,x,y\n0,1.5,a\n1,2,b\n2,3,a\n")
    Path("e.csv").write_text("a,b,w\n0,1,5\n1,2,6\n2,2,7\n")
    assert run(["convert", *words, "one"]) == 0
    assert run(["convert", "two", "--config", "one/provenance.json"]) == 0
    assert stored("one") == stored("two")
    told = [json.loads(Path(name, "provenance.json").read_text())["convert"] for name in ("one", "two")]
    assert told[0] == told[1]


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("laiout: both", 2, "run.yaml: graphprep convert has no option 'laiout'\n  fix: did you mean 'layout'?"),
        ("layout: cscc", 2, "run.yaml: layout: --layout must be one of csc, csr, both, found 'cscc'"),
        ("partitions: 0", 2, "run.yaml: partitions: --partitions must be 1 or more, found 0"),
        ("threads: many", 2, "run.yaml: threads: --threads must be an integer, found 'many'"),
        ("- layout", 1, "run.yaml: expected options, found ['layout']"),
        ("a: 1\na: 2", 1, "run.yaml:2"),
        ("help_all: true", 2, "no option 'help_all'"),
        ("fail_if_skipped: perhaps", 2, "run.yaml: fail_if_skipped: --fail-if-skipped must be true or false, found 'perhaps'"),
        ("graph: {nodes: 3}", 2, "run.yaml: graph: this is of another form than graphprep writes"),
        ("decoder_options: 3", 2, "run.yaml: decoder_options: this is of another form"),
    ],
)
def test_what_is_refused(text, code, words, config, tmp_path, capsys):
    assert run(["convert", KARATE, str(tmp_path / "out"), "--config", config(text)]) == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_no_file(tmp_path, capsys):
    assert run(["convert", KARATE, str(tmp_path / "out"), "--config", str(tmp_path / "none.yaml")]) == 3
    assert "none.yaml: no such file" in capsys.readouterr().err


def test_the_schema_tells_what_a_file_may_have():
    schema = json.loads((ROOT / "schemas" / "config.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load("layout: both\npartitions: 2\nlabels: [y]"), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"laiout": "both"}, schema)
