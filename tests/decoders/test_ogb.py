"""Folders of the Open Graph Benchmark."""

import gzip

import pytest

from graphprep.decoders.configs.ogb import OgbFolder
from graphprep.decoders.registry import sniff
from graphprep.model.errors import GraphprepError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.storage.read.urls import Storage


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


ARXIV = {
    "raw/edge.csv.gz": "0,1\n1,2\n",
    "raw/num-node-list.csv.gz": "3\n",
    "raw/num-edge-list.csv.gz": "2\n",
    "raw/node-feat.csv.gz": "0.1,0.2\n0.3,0.4\n0.5,0.6\n",
    "raw/node-label.csv.gz": "0\n1\n0\n",
    "raw/node_year.csv.gz": "2001\n2002\n2003\n",
    "raw/edge_weight.csv.gz": "1.5\n2.5\n",
    "split/time/train.csv.gz": "0\n",
    "split/time/valid.csv.gz": "1\n",
    "split/time/test.csv.gz": "2\n",
    "mapping/README.md": "x",
}
MAG = {
    "raw/num-node-dict.csv.gz": "paper,author\n2,3\n",
    "raw/triplet-type-list.csv.gz": "author,writes,paper\npaper,cites,paper\n",
    "raw/nodetype-has-feat.csv.gz": "paper,author\nTrue,False\n",
    "raw/relations/author___writes___paper/edge.csv.gz": "0,1\n",
    "raw/relations/author___writes___paper/edge_reltype.csv.gz": "4\n",
    "raw/relations/paper___cites___paper/edge.csv.gz": "0,1\n",
    "raw/relations/paper___cites___paper/edge-feat.csv.gz": "1,2\n",
    "raw/node-feat/paper/node-feat.csv.gz": "1,2\n3,4\n",
    "raw/node-feat/paper/node_year.csv.gz": "1\n2\n",
    "raw/node-label/paper/node-label.csv.gz": "0,1\n1,0\n",
    "split/time/nodetype-has-split.csv.gz": "paper,author\nTrue,False\n",
    "split/time/paper/train.csv.gz": "0\n",
}


def read(folder) -> GraphConfig:
    with Storage() as storage:
        return OgbFolder().read_config(storage, [str(folder)])


def table(folder, path) -> TableConfig:
    return TableConfig((path,), "csv", ",", "no", ("src", "dst"), place=f"{folder}/{path}")


def test_a_homogeneous_data_set(tmp_path):
    write(tmp_path, ARXIV)
    assert read(tmp_path) == GraphConfig(
        nodes=(NodeTable("_N", TableConfig(place=str(tmp_path)), num_nodes=3),),
        edges=(EdgeTable("_N", "_E", "_N", table(tmp_path, "raw/edge.csv.gz"), src_col="0", dst_col="1"),),
        node_data=(
            DataArray("_N", "feat", "raw/node-feat.csv.gz", place=f"{tmp_path}/raw/node-feat.csv.gz"),
            DataArray("_N", "year", "raw/node_year.csv.gz", place=f"{tmp_path}/raw/node_year.csv.gz"),
            DataArray("_N", "label", "raw/node-label.csv.gz", place=f"{tmp_path}/raw/node-label.csv.gz"),
        ),
        edge_data=(DataArray("_N:_E:_N", "weight", "raw/edge_weight.csv.gz", place=f"{tmp_path}/raw/edge_weight.csv.gz"),),
        labels=("_N:label",),
        splits=("_N=split/time/train.csv.gz,split/time/valid.csv.gz,split/time/test.csv.gz",),
        base=str(tmp_path),
        place=str(tmp_path),
    )


def test_the_raw_folder_alone(tmp_path):
    write(tmp_path, ARXIV)
    found = read(tmp_path / "raw")
    assert (found.edges[0].table.files, found.base, found.splits) == (("edge.csv.gz",), str(tmp_path / "raw"), ())
    assert [array.file for array in found.node_data] == ["node-feat.csv.gz", "node_year.csv.gz", "node-label.csv.gz"]


def test_the_species_of_proteins_are_a_column(tmp_path):
    write(tmp_path, ARXIV | {"raw/species.csv.gz": "7\n7\n9\n"})
    assert [(array.name, array.file) for array in read(tmp_path).node_data] == [
        ("feat", "raw/node-feat.csv.gz"),
        ("year", "raw/node_year.csv.gz"),
        ("species", "raw/species.csv.gz"),
        ("label", "raw/node-label.csv.gz"),
    ]


def test_a_heterogeneous_data_set(tmp_path):
    write(tmp_path, MAG)
    found = read(tmp_path)
    assert [(node.type, node.num_nodes) for node in found.nodes] == [("paper", 2), ("author", 3)]
    writes, cites = "raw/relations/author___writes___paper", "raw/relations/paper___cites___paper"
    assert found.edges == (
        EdgeTable("author", "writes", "paper", table(tmp_path, f"{writes}/edge.csv.gz"), src_col="0", dst_col="1"),
        EdgeTable("paper", "cites", "paper", table(tmp_path, f"{cites}/edge.csv.gz"), src_col="0", dst_col="1"),
    )
    assert [(array.owner, array.name, array.file) for array in (*found.node_data, *found.edge_data)] == [
        ("paper", "feat", "raw/node-feat/paper/node-feat.csv.gz"),
        ("paper", "year", "raw/node-feat/paper/node_year.csv.gz"),
        ("paper", "label", "raw/node-label/paper/node-label.csv.gz"),
        ("author:writes:paper", "reltype", f"{writes}/edge_reltype.csv.gz"),
        ("paper:cites:paper", "feat", f"{cites}/edge-feat.csv.gz"),
    ]
    assert found.labels == ()  # two tasks: no single label
    assert found.splits == ("paper=split/time/paper/train.csv.gz,,",)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        (ARXIV | {"raw/num-node-list.csv.gz": "3\n4\n"}, "DIR/raw/num-node-list.csv.gz: 2 graphs: a store holds one\n"
                                                         "  fix: convert data sets of one graph only"),
        (ARXIV | {"raw/num-node-list.csv.gz": "x\n"}, "DIR/raw/num-node-list.csv.gz: expected a number of nodes, found 'x'\n"
                                                      "  fix: correct it"),
        (MAG | {"raw/triplet-type-list.csv.gz": "a,b,c\nd,e\n"}, "DIR/raw/triplet-type-list.csv.gz:2:1: expected 3 columns, "
                                                                 "found 2\n  fix: correct it"),
        (MAG | {"raw/triplet-type-list.csv.gz": "paper,x,paper\n"}, "DIR/raw/relations/paper___x___paper/edge.csv.gz: "
                                                                    "there is no such file\n  fix: complete the data set"),
        ({"raw/data.npz": ""}, "DIR: this is OGB's binary form\n  fix: convert raw/data.npz with --format arrays"),
        ({"raw/x.csv": ""}, "DIR: this is no OGB folder: raw/edge.csv.gz is missing\n  fix: name the data set's folder"),
    ],
)  # fmt: skip
def test_faults(tmp_path, files, text):
    write(tmp_path, files)
    with pytest.raises(GraphprepError) as caught:
        read(tmp_path)
    assert str(caught.value).replace(str(tmp_path), "DIR") == text


@pytest.mark.parametrize("files", [ARXIV, MAG])
def test_sniff(tmp_path, files):
    write(tmp_path, files)
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path)]).decoder == "ogb"
