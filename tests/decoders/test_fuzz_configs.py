"""Damaged configs, headers and data of other tools' graphs: planned and read as convert does, or refused in words."""

import copy
import csv
import gzip
import io
import json
import random

import numpy as np
import pytest
import yaml

from graphprep.convert.read.plan import plan_input
from graphprep.model.errors import GraphprepError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows, mutations

_ODD = [None, True, -1, 0, 1.5, 2**70, "", "x", "a:b:c", "é\0", "../..", "*", "u.csv", [], {}, [1], ["x", None], {"a": 1}, [[]]]


class Quiet:
    """A reporter that says nothing."""

    def message(self, text):
        pass


def npy(values):
    file = io.BytesIO()
    np.save(file, np.asarray(values))
    return file.getvalue()


GRAPH = {
    "id_type": "auto",
    "nodes": [
        {"type": "u", "files": "u.csv", "id_col": "id", "columns": {"age": "int8"}, "null": ["NA"], "escape": "\\"},
        {"type": "v", "num_nodes": 3},
    ],
    "edges": [{"type": "u:r:v", "files": ["e.csv"], "src_col": 0, "dst_col": 1, "header": "no", "comment": "#"}],
    "node_data": [{"type": "v", "name": "x", "file": "x.npy"}],
    "labels": ["u:age"],
    "splits": "u:0.8/0.1/0.1",
}
GRAPHSTORM = {
    "version": "gconstruct-v0.1",
    "nodes": [
        {
            "node_type": "u",
            "node_id_col": "id",
            "format": {"name": "csv", "separator": ","},
            "files": "u.csv",
            "features": [{"feature_col": ["age"], "feature_name": "x", "transform": {"name": "max_min_norm"}}],
            "labels": [{"label_col": "age", "task_type": "classification", "split_pct": [0.8, 0.1, 0.1]}],
        }
    ],
    "edges": [
        {
            "relation": ["u", "r", "u"],
            "source_id_col": "src",
            "dest_id_col": "dst",
            "format": {"name": "csv"},
            "files": ["h.csv"],
            "labels": [{"task_type": "link_prediction", "split_pct": [1, 0, 0]}],
        }
    ],
}
GRAPHBOLT = {
    "dataset_name": "shop",
    "graph": {
        "nodes": [{"type": "u", "num": 4}, {"type": "v", "num": 3}],
        "edges": [
            {"type": "u:r:v", "format": "csv", "path": "e.csv"},
            {"type": "u:s:v", "format": "numpy", "path": "pairs.npy"},
        ],
    },
    "feature_data": [{"domain": "node", "type": "v", "name": "x", "format": "numpy", "in_memory": False, "path": "x.npy"}],
    "tasks": [
        {
            "name": "node_classification",
            "num_classes": 2,
            "train_set": [{"type": "u", "data": [{"name": "seeds", "format": "numpy", "path": "seeds.npy"}]}],
        }
    ],
}
DATA = {
    "u.csv": b'id,age\n1,30\n2,NA\n3,"4"\n',
    "e.csv": b"1,0\n2,1\n3,2\n",
    "h.csv": b"src,dst\n1,2\n3,1\n",
    "x.npy": npy(np.ones((3, 2), np.float32)),
    "pairs.npy": npy([[0, 1], [2, 2]]),
    "seeds.npy": npy([0, 2]),
}
NEO4J = {
    "movies.csv": b"movieId:ID(m),title,year:int,scores:double[],tags:string[],:LABEL\n1,A,1999,1;2,a;b,Film;Old\n",
    "actors-header.csv": b"personId:ID(p){id-type: string},name,:LABEL\n",
    "actors.csv": b'k,"K ""R""",Actor\n',
    "roles.csv": b":START_ID(p),role,:END_ID(m),:TYPE\nk,Neo,1,ACTED_IN\n",
}
OGB = {
    "raw/edge.csv.gz": b"0,1\n1,2\n",
    "raw/num-node-list.csv.gz": b"3\n",
    "raw/num-edge-list.csv.gz": b"2\n",
    "raw/node-feat.csv.gz": b"0.1,0.2\n0.3,0.4\n0.5,0.6\n",
    "raw/node-label.csv.gz": b"0\n1\n0\n",
    "raw/edge_weight.csv.gz": b"1.5\n2.5\n",
    "split/time/train.csv.gz": b"0\n",
    "split/time/valid.csv.gz": b"1\n",
    "split/time/test.csv.gz": b"2\n",
}
FORMATS = {
    "graph": (DATA | {"graph.yaml": json.dumps(GRAPH).encode()}, "graph.yaml"),
    "graphstorm": (DATA | {"config.json": json.dumps(GRAPHSTORM).encode()}, "config.json"),
    "graphbolt": (DATA | {"metadata.yaml": yaml.safe_dump(GRAPHBOLT).encode()}, ""),
    "neo4j": (NEO4J, ""),
    "ogb": (OGB, ""),
}


def write(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)


def read_all(url, format):
    """Plan and decode as convert does, without its further stages; count the records."""
    with Storage() as storage:
        planned = plan_input([url], ConvertOptions(format=format), storage, Quiet())
        total = 0
        for span in planned.sources.spans:
            if span.kind == "table":
                with storage.open(span.url) as handle:
                    batches = list(planned.decoder.read(handle, span, 1000))
            else:
                batches = [planned.decoder.decode(block) for block in text_blocks(storage, span, 1 << 16)]
            for rows in batches:
                check_rows(rows)
                total += rows.num_records
        return total


def expect_words(url, format):
    try:
        read_all(url, format)
    except GraphprepError as error:
        assert error.message


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(value, path, odd):
    if not path:
        return odd
    value = copy.deepcopy(value)
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = odd
    return value


@pytest.mark.parametrize("format", FORMATS)
def test_whole_graphs_are_read(tmp_path, format):
    files, name = FORMATS[format]
    write(tmp_path, files)
    assert read_all(str(tmp_path / name), format) > 0


@pytest.mark.parametrize("format", FORMATS)
def test_mutated_files(tmp_path, format):
    files, name = FORMATS[format]
    write(tmp_path, files)
    for number, (path, data) in enumerate(files.items()):
        for mutated in mutations(data, 25, seed=number):
            write(tmp_path, {path: mutated})
            expect_words(str(tmp_path / name), format)
        write(tmp_path, {path: data})


@pytest.mark.parametrize(("format", "config"), [("graph", GRAPH), ("graphstorm", GRAPHSTORM), ("graphbolt", GRAPHBOLT)])
def test_odd_values_in_configs(tmp_path, format, config):
    files, name = FORMATS[format]
    write(tmp_path, files)
    file = tmp_path / (name or "metadata.yaml")
    rng = random.Random(7)
    for path in places(config):
        for odd in rng.sample(_ODD, 4):
            value = replaced(config, path, odd)
            file.write_text(json.dumps(value) if format != "graphbolt" else yaml.safe_dump(value))
            expect_words(str(tmp_path / name), format)


@pytest.mark.parametrize("seed", range(2))
def test_odd_fields_in_headers(tmp_path, seed):
    rng = random.Random(seed)
    write(tmp_path, NEO4J)
    words = [
        "",
        ":",
        ":ID",
        ":ID(",
        "x:ID(m)",
        ":LABEL",
        ":TYPE",
        ":IGNORE",
        "a:nope",
        "a:int[]",
        "é",
        "a",
        ":START_ID",
        ":END_ID()",
    ]
    for _ in range(120):
        name = rng.choice(list(NEO4J))
        lines = NEO4J[name].decode().splitlines()
        header = next(csv.reader([lines[0]]))
        for _ in range(rng.randint(1, 2)):
            header[rng.randrange(len(header))] = rng.choice(words)
        write(tmp_path, {name: "\n".join([",".join(header), *lines[1:], ""]).encode()})
        expect_words(str(tmp_path), "neo4j")
        write(tmp_path, {name: NEO4J[name]})
