"""GraphBolt's OnDiskDataset, before it is preprocessed."""

import numpy as np
import pytest

from graphprep.decoders.configs.graphbolt import GraphBoltDataset
from graphprep.decoders.registry import sniff
from graphprep.model.errors import GraphprepError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, PairFile, TableConfig
from graphprep.storage.read.urls import Storage

HETERO = """
dataset_name: shop
graph:
  nodes:
    - type: user
      num: 5
    - type: item
      num: 3
  edges:
    - type: "user:buys:item"
      format: csv
      path: edges/buys.csv
    - type: "user:likes:item"
      format: numpy
      path: edges/likes.npy
feature_data:
  - domain: node
    type: user
    name: feat
    format: numpy
    in_memory: false
    path: data/user.npy
  - {domain: edge, type: "user:buys:item", name: w, format: numpy, path: data/w.npy}
tasks:
  - name: node_classification
    num_classes: 2
    train_set:
      - type: user
        data:
          - {name: seeds, format: numpy, path: set/train_seeds.npy}
          - {name: labels, format: numpy, path: set/train_labels.npy}
    validation_set:
      - type: user
        data: [{name: seeds, format: numpy, path: set/valid.npy}]
"""


def read(tmp_path, text, name="") -> GraphConfig:
    (tmp_path / "metadata.yaml").write_text(text)
    with Storage() as storage:
        return GraphBoltDataset().read_config(storage, [str(tmp_path / name) if name else str(tmp_path)])


@pytest.mark.parametrize("name", ["", "metadata.yaml"])
def test_a_heterogeneous_dataset(tmp_path, name):
    place = str(tmp_path / "metadata.yaml")
    assert read(tmp_path, HETERO, name) == GraphConfig(
        nodes=(
            NodeTable("user", TableConfig(place=f"{place}: graph.nodes[0]"), num_nodes=5),
            NodeTable("item", TableConfig(place=f"{place}: graph.nodes[1]"), num_nodes=3),
        ),
        edges=(
            EdgeTable(
                "user",
                "buys",
                "item",
                TableConfig(("edges/buys.csv",), "csv", ",", "no", ("src", "dst"), place=f"{place}: graph.edges[0]"),
                src_col="0",
                dst_col="1",
            ),
            EdgeTable("user", "likes", "item", TableConfig(("edges/likes.npy",), "npy", place=f"{place}: graph.edges[1]")),
        ),
        node_data=(
            DataArray("user", "feat", "data/user.npy", place=f"{place}: feature_data[0]"),
            DataArray(
                "user", "label", "set/train_labels.npy", place=f"{place}: tasks[0].train_set[0]", ids_file="set/train_seeds.npy"
            ),
        ),
        edge_data=(DataArray("user:buys:item", "w", "data/w.npy", place=f"{place}: feature_data[1]"),),
        graph_name="shop",
        labels=("user:label",),
        splits=("user=set/train_seeds.npy,set/valid.npy,",),
        base=str(tmp_path),
        place=place,
        messages=(f"{place}: tasks[0]: 'num_classes' not stored",),
    )


def test_what_tasks_say_beside_nodes_is_told(tmp_path):
    np.save(tmp_path / "pairs.npy", np.zeros((3, 2), np.int64))
    np.save(tmp_path / "wide.npy", np.zeros((3, 3), np.int64))
    np.save(tmp_path / "nodes.npy", np.zeros((3, 1), np.int64))
    text = """
graph:
  nodes: [{num: 4}]
  edges: [{format: numpy, path: e.npy}]
feature_data: [{domain: node, name: label, format: numpy, path: l.npy}]
tasks:
  - name: link_prediction
    train_set: [{data: [{name: seeds, format: numpy, path: pairs.npy}]}]
    validation_set: [{type: "_N:_E:_N", data: [{name: seeds, format: numpy, path: wide.npy}]}]
    test_set:
      - data:
          - {name: seeds, format: numpy, path: nodes.npy}
          - {name: labels, format: numpy, path: y.npy}
          - {name: indexes, format: numpy, path: i.npy}
  - {name: more, train_set: [{data: [{name: seeds, format: numpy, path: pairs.npy}]}], num_classes: 3}
"""
    found = read(tmp_path, text)
    assert found.splits == ("_N=,,nodes.npy", "_N:_E:_N:split")
    place = f"{tmp_path / 'metadata.yaml'}: tasks[0].train_set[0]"
    assert found.edges[0].parts == (PairFile(str(tmp_path / "pairs.npy"), None, place), None, None)
    assert [(array.name, array.file, array.ids_file) for array in found.node_data] == [
        ("label", "l.npy", None),
        ("labels", "y.npy", "nodes.npy"),
    ]
    assert [message.partition("metadata.yaml: ")[2] for message in found.messages] == [
        "tasks[0].train_set[0]: pairs that are no edges of the graph are not stored",
        "tasks[0].validation_set[0] is not stored: no pairs of IDs",
        "tasks[0].test_set[0]: 'indexes' is not stored",
        "tasks[1] is not stored: only the first task is",
    ]


def test_a_homogeneous_dataset_has_no_types(tmp_path):
    text = """
graph:
  nodes: [{num: 4}]
  edges: [{format: numpy, path: e.npy}]
  feature_data: [{domain: node, name: time, format: numpy, path: t.npy}]
feature_data:
  - {domain: edge, type: null, name: w, format: numpy, path: w.npy}
"""
    found = read(tmp_path, text)
    assert [(node.type, node.num_nodes) for node in found.nodes] == [("_N", 4)]
    assert (found.edges[0].src_type, found.edges[0].relation, found.edges[0].dst_type) == ("_N", "_E", "_N")
    assert [(array.owner, array.name) for array in (*found.node_data, *found.edge_data)] == [("_N", "time"), ("_N:_E:_N", "w")]
    assert found.graph_name is None


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("num: 5", "num: x", 'PATH: graph.nodes[0].num: expected an integer >= 0, found "x"'),
        (
            "      format: csv",
            "      format: parquet",
            'PATH: graph.edges[0].format: expected one of csv, numpy, torch, found "parquet"',
        ),
        (
            "format: numpy\n    in_memory",
            "format: torch\n    in_memory",
            "PATH: feature_data[0].format: files of torch cannot be read\n"
            "  fix: write it as .npy: numpy.save(path, torch.load(path).numpy())",
        ),
        (
            '"user:buys:item"\n',
            "buys\n",
            "PATH: graph.edges[0].type: expected 'source:relation:destination', found 'buys'\n  fix: write src:rel:dst",
        ),
        (
            "graph:",
            "graph_topology:",
            "PATH: this is the metadata of a preprocessed dataset, whose graph is a torch file\n"
            "  fix: name the metadata.yaml of the folder above",
        ),
        ("graph:", "graphs:", "PATH: key 'graph' is missing"),
    ],
)
def test_faults(tmp_path, old, new, text):
    assert old in HETERO
    with pytest.raises(GraphprepError) as caught:
        read(tmp_path, HETERO.replace(old, new, 1))
    assert str(caught.value).replace(str(tmp_path / "metadata.yaml"), "PATH") == text


def test_sniff(tmp_path):
    read(tmp_path, HETERO)
    (tmp_path / "edges").mkdir()
    with Storage() as storage:
        for url in (tmp_path, tmp_path / "metadata.yaml"):
            assert sniff(storage, [str(url)]).decoder == "graphbolt"
