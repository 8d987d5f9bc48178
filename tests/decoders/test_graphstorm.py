"""GraphStorm's construction config."""

import json

import pytest

from graphprep.decoders.configs.graphstorm import GraphStormConfig
from graphprep.decoders.registry import sniff
from graphprep.model.errors import GraphprepError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.storage.read.urls import Storage

ACM = {
    "version": "gconstruct-v0.1",
    "nodes": [
        {
            "node_type": "paper",
            "node_id_col": "node_id",
            "format": {"name": "parquet"},
            "files": "nodes/paper*.parquet",
            "features": [
                {"feature_col": "feat", "feature_name": "x"},
                {"feature_col": ["a", "b"], "feature_name": "ab", "transform": {"name": "max_min_norm", "max_bound": 2}},
            ],
            "labels": [{"label_col": "label", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}],
        },
        {"node_type": "au:thor", "format": {"name": "CSV", "separator": "|"}, "files": ["a1.csv", "a2.csv"]},
    ],
    "edges": [
        {
            "relation": ["au:thor", "writing", "paper"],
            "source_id_col": "src",
            "dest_id_col": "dst",
            "format": {"name": "json"},
            "files": "e.json",
            "labels": [{"task_type": "link_prediction", "split_pct": [1, 0, 0]}],
        }
    ],
}


def read(tmp_path, value, **options) -> GraphConfig:
    path = tmp_path / "config.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    with Storage() as storage:
        return GraphStormConfig(**options).read_config(storage, [str(path)])


def test_what_the_config_says(tmp_path):
    place = str(tmp_path / "config.json")
    assert read(tmp_path, ACM) == GraphConfig(
        nodes=(
            NodeTable(
                "paper",
                TableConfig(
                    ("nodes/paper*.parquet",),
                    "parquet",
                    kept=("feat", "a", "b", "label"),
                    renamed=(("feat", "x"), ("a", "ab_a"), ("b", "ab_b")),
                    place=f"{place}: nodes[0]",
                ),
                id_col="node_id",
            ),
            NodeTable(
                "au:thor", TableConfig(("a1.csv", "a2.csv"), "csv", "|", kept=(), place=f"{place}: nodes[1]"), row_ids=True
            ),
        ),
        edges=(
            EdgeTable(
                "au:thor",
                "writing",
                "paper",
                TableConfig(("e.json",), "jsonl", kept=(), place=f"{place}: edges[0]"),
                src_col="src",
                dst_col="dst",
            ),
        ),
        id_type="auto",
        labels=("paper:label",),
        splits=("paper:0.8/0.1/0.1", "au%3Athor:writing:paper:1/0/0"),
        base=str(tmp_path),
        place=place,
        messages=(f"{place}: nodes[0].features[1]: 'a', 'b' is stored as it is, without the transform 'max_min_norm'",),
    )


def test_split_files_and_second_names_are_told(tmp_path):
    value = json.loads(json.dumps(ACM))
    value["nodes"][0]["features"][1] = {"feature_col": "feat", "feature_name": "y"}
    value["nodes"][0]["labels"][0]["custom_split_filenames"] = {"train": "t.parquet", "test": ["x,y.parquet"]}
    value["edges"][0]["labels"][0]["custom_split_filenames"] = {"train": "t.json"}
    found = read(tmp_path, value)
    assert found.splits == ("paper=t.parquet,,x%2Cy.parquet",)
    assert [text.partition("config.json: ")[2] for text in found.messages] == [
        "nodes[0]: column 'feat' is stored once, as 'x', not as 'y' too",
        "edges[0].labels[0]: custom_split_filenames is not read: only one file of node IDs a part is",
    ]


def test_paths_start_from_the_current_folder_where_they_are_there(tmp_path, monkeypatch):
    (tmp_path / "e.json").write_text("")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "c.json").write_text(json.dumps({"edges": ACM["edges"]}))
    monkeypatch.chdir(tmp_path)
    with Storage() as storage:
        assert GraphStormConfig().read_config(storage, ["conf/c.json"]).base == ""
        (tmp_path / "conf" / "e.json").write_text("")
        assert GraphStormConfig().read_config(storage, ["conf/c.json"]).base == "conf"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda v: v["nodes"][0].pop("node_type"), "PATH: nodes[0]: key 'node_type' is missing"),
        (
            lambda v: v["edges"][0].pop("dest_id_col"),
            "PATH: edges[0]: key 'dest_id_col' is missing\n  fix: name both columns of IDs, or none",
        ),
        (
            lambda v: v["edges"][0].update(relation=["a", "b"]),
            "PATH: edges[0].relation: expected a list of source type, relation and destination type, found a list",
        ),
        (
            lambda v: v["nodes"][0]["format"].update(name="hdf5"),
            "PATH: nodes[0].format.name: files of format 'hdf5' cannot be read\n  fix: write it as Parquet (pandas: to_parquet)",
        ),
        (
            lambda v: v["nodes"][0]["format"].update(name="orc"),
            "PATH: nodes[0].format.name: files of format 'orc' cannot be read\n  fix: use one of csv, parquet, json",
        ),
        (
            lambda v: v["nodes"][0]["features"][1].pop("feature_name"),
            "PATH: nodes[0].features[1]: several columns make one feature, which has no name\n  fix: add 'feature_name'",
        ),
        (
            lambda v: v["nodes"][1].update(node_type="paper"),
            "PATH: nodes[1]: node type 'paper' has IDs in nodes/paper*.parquet, and this table has no 'node_id_col'\n"
            "  fix: add the column of IDs to its files, and name it",
        ),
        (
            lambda v: [v["edges"][0].pop(key) for key in ("source_id_col", "dest_id_col")],
            "PATH: edges[0]: edges of 'au%3Athor:writing:paper' have 0 tables with IDs, and this one has no 'source_id_col' and "
            "'dest_id_col'\n  fix: put its columns into the files of the edges",
        ),
    ],
)
def test_faults(tmp_path, change, text):
    value = json.loads(json.dumps(ACM))
    change(value)
    with pytest.raises(GraphprepError) as caught:
        read(tmp_path, value)
    assert str(caught.value).replace(str(tmp_path / "config.json"), "PATH") == text


def test_sniff(tmp_path):
    read(tmp_path, json.dumps(ACM, indent=2))
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path / "config.json")]).decoder == "graphstorm"
