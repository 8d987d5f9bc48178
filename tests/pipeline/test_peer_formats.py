"""Stores of graph configs and of the formats of other tools, against pyarrow and NumPy reading the same files."""

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from graphprep import api
from graphprep.model.errors import GraphprepError
from graphprep.model.options.convert import ConvertOptions


def convert(path, out, **options):
    return api.convert([str(path)], str(out), ConvertOptions(**options))


def raw_ids(store: Path, name: str) -> list:
    folder = store / "part-00000" / "nodes" / name
    if (folder / "raw_ids.offsets.npy").exists():
        return texts(folder / "raw_ids")
    if (folder / "raw_ids.npy").exists():
        return np.load(folder / "raw_ids.npy").tolist()
    metadata = json.loads((store / "metadata.json").read_text())
    return list(range(metadata["num_nodes_per_type"][metadata["node_type"].index(name)]))


def texts(stem: Path) -> list[str]:
    offsets, values = np.load(f"{stem}.offsets.npy"), np.load(f"{stem}.values.npy").tobytes()
    return [values[start:stop].decode() for start, stop in itertools.pairwise(offsets)]


def node_column(store: Path, name: str, column: str) -> dict:
    """Return the values of a column by raw ID."""
    stem = store / "part-00000" / "nodes" / name / "data" / column
    values = np.load(f"{stem}.npy").tolist() if Path(f"{stem}.npy").exists() else texts(stem)
    return dict(zip(raw_ids(store, name), values, strict=True))


def edges(store: Path, src: str, relation: str, dst: str, column: str | None = None) -> list[tuple]:
    """Return raw ends, and a column, in the order of edge IDs."""
    folder = store / "part-00000" / "edges" / f"{src}__{relation}__{dst}"
    indptr, indices, ids = (np.load(folder / "csc" / f"{name}.npy") for name in ("indptr", "indices", "edge_ids"))
    rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    from_, to = raw_ids(store, src), raw_ids(store, dst)
    found = [(from_[i], to[j]) for i, j in zip(indices, rows, strict=True)]
    if column is not None:
        values = (
            np.load(folder / "data" / f"{column}.npy").tolist()
            if column != "weight"
            else np.load(folder / "weight.npy").tolist()
        )
        found = [(*pair, value) for pair, value in zip(found, values, strict=True)]
    return [found[i] for i in np.argsort(ids)]


def columns_of(path: Path, **options) -> dict[str, list]:
    return pc.read_csv(path, **options).to_pydict()


# ------------------------------------------------------------------------------------------------ graph.yaml

USERS = 'uid,name,age\nann,Ann,31\nbob,Bob,\ncy,"C, Y",40\n'
BUYS = "who,what,n\nann,7,1\ncy,8,2\nann,8,3\n"
CONFIG = """
id_type: auto
nodes:
  - {type: user, files: users.csv, columns: {age: float32}, rename: {name: label}}
edges:
  - {type: "user:buys:item", files: "buys*.csv", weight_col: n}
seeds: user=seeds.txt
"""


def write_shop(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"users.csv": USERS, "buys.csv": BUYS, "graph.yaml": CONFIG, "seeds.txt": "cy\n"}.items():
        (folder / name).write_text(text)


def check_shop(store):
    users = columns_of_text(USERS)
    assert node_column(store, "user", "label") == dict(zip(users["uid"], users["name"], strict=True))
    buys = columns_of_text(BUYS)
    assert edges(store, "user", "buys", "item", "weight") == list(zip(buys["who"], buys["what"], buys["n"], strict=True))
    assert node_column(store, "user", "seeds") == {"ann": False, "bob": False, "cy": True}


def columns_of_text(text: str) -> dict[str, list]:
    return pc.read_csv(pa.BufferReader(text.encode())).to_pydict()


def test_paths_are_relative_to_the_config(tmp_path, monkeypatch):
    write_shop(tmp_path / "far" / "away")
    monkeypatch.chdir(tmp_path)
    summary = convert("far/away/graph.yaml", "store")
    assert dict(summary.num_nodes) == {"user": 3, "item": 2}
    check_shop(tmp_path / "store")


def test_a_config_on_a_server(tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem

    write_shop(tmp_path / "in")
    memory = MemoryFileSystem()
    memory.put(str(tmp_path / "in"), "/graph-config-test", recursive=True)
    try:
        convert("memory://graph-config-test/graph.yaml", tmp_path / "store")
    finally:
        memory.rm("/graph-config-test", recursive=True)
    check_shop(tmp_path / "store")


def test_flags_make_the_same_bytes_as_the_config(tmp_path, monkeypatch):
    from graphprep.cli.main import run

    write_shop(tmp_path)
    monkeypatch.chdir(tmp_path)
    convert("graph.yaml", "one")
    args = ["--nodes", "user=users.csv", "--edges", "user:buys:item=buys.csv", "--id-type", "auto", "--weight-col", "n"]
    (tmp_path / "users.csv").write_text(USERS.replace("name", "label"))
    assert run(["convert", "two", *args, "--column", "user:age=float32", "--seeds", "user=seeds.txt", "--quiet"]) == 0
    files = sorted(
        path.relative_to("one") for path in Path("one").rglob("*") if path.is_file() and path.name != "provenance.json"
    )
    assert files == sorted(
        path.relative_to("two") for path in Path("two").rglob("*") if path.is_file() and path.name != "provenance.json"
    )
    assert all((Path("one") / file).read_bytes() == (Path("two") / file).read_bytes() for file in files)


def test_a_fault_leaves_no_store(tmp_path):
    write_shop(tmp_path)
    (tmp_path / "buys2.csv").write_text("who,what,n\nnobody,7,1\n")
    with pytest.raises(GraphprepError, match=r"buys2\.csv:2:1: "):
        convert(tmp_path / "graph.yaml", tmp_path / "store")
    assert not (tmp_path / "store").exists()


# ------------------------------------------------------------------------------------------------ other tools


def test_neo4j(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    movies = 'id:ID(M),title,year:int,ok:boolean,:LABEL\n1,"A, B",1999,true,Film;Old\n2,C,2003,false,Film\n'
    people = "pid:ID(P),born:date\n1,1964-09-02\n7,1990-01-01\n"
    (folder / "movies.csv").write_text(movies)
    (folder / "people-header.csv").write_text(people.splitlines()[0] + "\n")
    (folder / "people-part1.csv").write_text(people.splitlines()[1] + "\n")
    (folder / "people-part2.csv").write_text(people.splitlines()[2] + "\n")
    (folder / "roles.csv").write_text(":START_ID(P),:END_ID(M),:TYPE,pay:double\n1,1,IN,2.5\n7,2,IN,1\n7,1,MADE,0\n")
    summary = convert(folder, tmp_path / "store")
    assert dict(summary.num_nodes) == {"Film": 2, "people": 2}
    found = columns_of_text(movies)
    assert node_column(tmp_path / "store", "Film", "title") == dict(zip(found["id:ID(M)"], found["title"], strict=True))
    assert node_column(tmp_path / "store", "Film", "year") == dict(zip(found["id:ID(M)"], found["year:int"], strict=True))
    assert node_column(tmp_path / "store", "Film", "ok") == dict(zip(found["id:ID(M)"], found["ok:boolean"], strict=True))
    days = [date.toordinal() - 719163 for date in columns_of_text(people)["born:date"]]
    assert node_column(tmp_path / "store", "people", "born") == dict(zip([1, 7], days, strict=True))
    assert edges(tmp_path / "store", "people", "IN", "Film", "pay") == [(1, 1, 2.5), (7, 2, 1.0)]
    assert edges(tmp_path / "store", "people", "MADE", "Film", "pay") == [(7, 1, 0.0)]


def test_neo4j_groups_of_one_label_each_have_nodes(tmp_path):
    groups = {"a.csv": "pid:ID,name,age:int\n1,Ann,31\n2,Bob,\n", "b.csv": "key:ID,name,pay:double\n7,Cy,2.5\n"}
    for name, text in groups.items():
        (tmp_path / name).write_text(text)
    store = tmp_path / "store"
    options = ConvertOptions(format="neo4j")
    summary = api.convert([f"Person={tmp_path / name}" for name in groups], str(store), options)
    assert dict(summary.num_nodes) == {"Person": 3}
    first, second = map(columns_of_text, groups.values())
    names = dict(zip(first["pid:ID"] + second["key:ID"], first["name"] + second["name"], strict=True))
    assert node_column(store, "Person", "name") == names
    assert node_column(store, "Person", "age") == {1: 31, 2: 0, 7: 0}
    assert node_column(store, "Person", "pay") == {1: 0, 2: 0, 7: 2.5}
    present = {name: np.load(store / f"part-00000/nodes/Person/data/{name}.present.npy").tolist() for name in ("age", "pay")}
    assert present == {"age": [True, False, False], "pay": [False, False, True]}
    columns = json.loads((store / "metadata.json").read_text())["node_schema"]["Person"]["columns"]
    assert [column["name"] for column in columns] == ["name", "age", "pay"]  # the raw IDs hold pid and key


def test_neo4j_ids_of_one_space_are_unique_among_types(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.csv").write_text(":ID,x\na1,1\n")
    (folder / "b.csv").write_text(":ID,y\nb1,1\n")
    (folder / "r.csv").write_text(":START_ID,:END_ID,:TYPE\na1,b1,T\nb1,a1,T\nb1,b1,T\n")
    summary = convert(folder, tmp_path / "store")
    assert dict(summary.num_edges) == {"a:T:b": 1, "b:T:a": 1, "b:T:b": 1}
    (folder / "b.csv").write_text(":ID,y\na1,1\n")
    with pytest.raises(GraphprepError, match="a1"):
        convert(folder, tmp_path / "other")


def test_graphstorm(tmp_path):
    from pyarrow import parquet as pq

    table = pa.table({"nid": ["p1", "p2", "p3"], "feat": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "y": [0, 1, 0], "no": [1, 2, 3]})
    pq.write_table(table, tmp_path / "paper.parquet")
    (tmp_path / "cites.json").write_text('{"s": "p2", "d": "p1", "w": 1.5}\n{"s": "p3", "d": "p2", "w": 2.5}\n')
    config = {
        "version": "gconstruct-v0.1",
        "nodes": [
            {
                "node_type": "paper", "node_id_col": "nid", "format": {"name": "parquet"}, "files": "paper*.parquet",
                "features": [{"feature_col": "feat", "feature_name": "x"}],
                "labels": [{"label_col": "y", "task_type": "classification", "split_pct": [0.4, 0.3, 0.3]}],
            }
        ],
        "edges": [
            {
                "relation": ["paper", "cites", "paper"], "source_id_col": "s", "dest_id_col": "d", "format": {"name": "json"},
                "files": ["cites.json"], "features": [{"feature_col": ["w"], "feature_name": "w2"}],
            }
        ],
    }  # fmt: skip
    (tmp_path / "c.json").write_text(json.dumps(config))
    convert(tmp_path / "c.json", tmp_path / "store")
    rows = table.to_pydict()
    assert node_column(tmp_path / "store", "paper", "x") == dict(zip(rows["nid"], rows["feat"], strict=True))
    assert node_column(tmp_path / "store", "paper", "y") == dict(zip(rows["nid"], rows["y"], strict=True))
    assert edges(tmp_path / "store", "paper", "cites", "paper", "w2") == [("p2", "p1", 1.5), ("p3", "p2", 2.5)]
    schema = json.loads((tmp_path / "store" / "metadata.json").read_text())["node_schema"]["paper"]["columns"]
    assert [(column["name"], column.get("role")) for column in schema] == [("x", None), ("y", "label"), ("split", "split")]


def graphstorm_entry(folder, name, columns, **keys):
    """Write a table, and return an entry that reads all of it: the last column as the label where there is a task."""
    from pyarrow import parquet as pq

    pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    features = [{"feature_col": column} for column in columns if column not in (*keys.values(), keys.get("label"))]
    labels = (
        [{"label_col": keys.pop("label"), "task_type": "classification", **keys.pop("split", {})}] if "label" in keys else []
    )
    return {"files": f"{name}.parquet", "format": {"name": "parquet"}, "features": features, "labels": labels, **keys}


def test_graphstorm_tables_that_go_by_row(tmp_path):
    x, y, kinds = [1.5, 2.5, 3.5], [10, 20, 30], ["a", "b", "a"]
    weights, stars = [0.5, 0.25], [5, 4]
    pairs = {"s": [2, 0], "d": [1, 1]}
    relation = ["user", "likes", "user"]
    value = {
        "nodes": [
            graphstorm_entry(tmp_path, "one", {"x": x}, node_type="user"),
            graphstorm_entry(tmp_path, "two", {"y": y, "kind": kinds}, node_type="user", label="kind"),
        ],
        "edges": [
            graphstorm_entry(tmp_path, "pairs", pairs, relation=relation, source_id_col="s", dest_id_col="d"),
            graphstorm_entry(tmp_path, "more", {"w": weights, "stars": stars}, relation=relation, label="stars"),
        ],
    }
    value["edges"][0]["features"] = []
    (tmp_path / "c.json").write_text(json.dumps(value))
    store = tmp_path / "store"
    summary = api.convert([str(tmp_path / "c.json")], str(store), ConvertOptions(format="graphstorm"))
    assert dict(summary.num_nodes) == {"user": 3}
    assert node_column(store, "user", "x") == dict(enumerate(x))
    assert node_column(store, "user", "y") == dict(enumerate(y))
    assert node_column(store, "user", "kind") == {0: 0, 1: 1, 2: 0}
    assert edges(store, *relation, "w") == [(2, 1, 0.5), (0, 1, 0.25)]
    assert edges(store, *relation, "stars") == [(2, 1, 5), (0, 1, 4)]
    schema = json.loads((store / "metadata.json").read_text())["edge_schema"]["user:likes:user"]["columns"]
    assert [(column["name"], column.get("role")) for column in schema] == [("w", None), ("stars", "label"), ("split", "split")]


def test_graphstorm_files_of_a_split_hold_json(tmp_path):
    names = ["ann", 'b"b', "c\u00e9", "dan"]
    for part, own in {"train": names[:2], "test": names[2:3]}.items():
        (tmp_path / f"{part}.json").write_text("".join(json.dumps(name) + "\n" for name in own))
    split = {"custom_split_filenames": {"train": "train.json", "valid": None, "test": "test.json"}, "split_pct": [1, 0, 0]}
    columns = {"nid": names, "y": [0, 1, 0, 1]}
    entry = graphstorm_entry(tmp_path, "users", columns, node_type="user", node_id_col="nid", label="y", split=split)
    (tmp_path / "c.json").write_text(json.dumps({"nodes": [entry], "edges": []}))
    store = tmp_path / "store"
    api.convert([str(tmp_path / "c.json")], str(store), ConvertOptions(format="graphstorm"))
    present = np.load(store / "part-00000/nodes/user/data/split.present.npy").tolist()
    parts = {
        name: part for (name, part), there in zip(node_column(store, "user", "split").items(), present, strict=True) if there
    }
    assert parts == {names[0]: 0, names[1]: 0, names[2]: 2}


def test_graphbolt(tmp_path):
    rng = np.random.default_rng(0)
    pairs, feat, weight = rng.integers(0, 4, (2, 9)), rng.random((4, 3), np.float32), rng.random(9)
    np.save(tmp_path / "knows.npy", pairs)
    np.save(tmp_path / "feat.npy", feat)
    np.save(tmp_path / "w.npy", weight)
    np.save(tmp_path / "train.npy", np.array([3, 0]))
    (tmp_path / "joins.csv").write_text("0,1\n3,0\n")
    (tmp_path / "metadata.yaml").write_text(
        """
graph:
  nodes: [{type: person, num: 4}, {type: club, num: 2}]
  edges:
    - {type: "person:knows:person", format: numpy, path: knows.npy}
    - {type: "person:joins:club", format: csv, path: joins.csv}
feature_data:
  - {domain: node, type: person, name: feat, format: numpy, path: feat.npy}
  - {domain: edge, type: "person:knows:person", name: w, format: numpy, path: w.npy}
tasks:
  - train_set: [{type: person, data: [{name: seeds, format: numpy, path: train.npy}]}]
"""
    )
    convert(tmp_path, tmp_path.parent / "graphbolt-store", overwrite=True)
    store = tmp_path.parent / "graphbolt-store"
    assert edges(store, "person", "knows", "person", "w") == [
        (*pair, value) for pair, value in zip(pairs.T.tolist(), weight, strict=True)
    ]
    assert edges(store, "person", "joins", "club") == [(0, 1), (3, 0)]
    assert node_column(store, "person", "feat") == dict(enumerate(feat.tolist()))
    assert np.load(store / "part-00000/nodes/person/data/split.present.npy").tolist() == [True, False, False, True]
    (tmp_path / "joins.csv").write_text("0,1\n3,2\n")
    with pytest.raises(GraphprepError, match=r"joins\.csv:2:3"):
        convert(tmp_path, store, overwrite=True)


def write_gz(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())


def told(capsys) -> list[str]:
    return [line for line in capsys.readouterr().err.splitlines() if " is not stored: " in line]


def test_ogb_links_of_one_type(tmp_path, monkeypatch, capsys):
    """The layout of ogbl-collab."""
    from graphprep.cli.main import run

    monkeypatch.chdir(tmp_path)
    files = {
        "raw/edge.csv.gz": "0,1\n1,2\n2,0\n2,0\n",
        "raw/num-node-list.csv.gz": "4\n",
        "raw/num-edge-list.csv.gz": "4\n",
        "raw/node-feat.csv.gz": "0.5,1\n1.5,2\n2.5,3\n3.5,4\n",
        "raw/edge_weight.csv.gz": "1\n2\n1\n3\n",
        "raw/edge_year.csv.gz": "2004\n2005\n2004\n2006\n",
        "RELEASE_v1.txt": "",
        "mapping/nodeidx2authorid.csv.gz": "node idx,author id\n0,7\n",
    }
    write_gz(tmp_path / "collab", files | {f"split/time/{part}.pt": "x" for part in ("train", "valid", "test")})
    assert run(["convert", "collab", "store"]) == 0
    assert told(capsys) == ["collab/split/time is not stored: it holds files of torch"]
    store = tmp_path / "store"
    headerless = pc.ReadOptions(autogenerate_column_names=True)

    def columns(name):
        return list(columns_of(tmp_path / "collab/raw" / f"{name}.csv.gz", read_options=headerless).values())

    pairs = list(zip(*columns("edge"), strict=True))
    assert edges(store, "_N", "_E", "_N", "year") == [
        (*pair, year) for pair, year in zip(pairs, *columns("edge_year"), strict=True)
    ]
    data = np.load(store / "part-00000/edges/_N___E___N/data/weight.npy")
    ids = np.load(store / "part-00000/edges/_N___E___N/csc/edge_ids.npy")
    assert [data[ids.tolist().index(i)] for i in range(4)] == columns("edge_weight")[0]
    feat = zip(*columns("node-feat"), strict=True)
    assert node_column(store, "_N", "feat") == dict(enumerate(map(list, feat)))


def test_ogb_links_of_several_types(tmp_path, monkeypatch, capsys):
    """The layout of ogbl-biokg."""
    from graphprep.cli.main import run

    monkeypatch.chdir(tmp_path)
    kinds = {
        ("disease", "disease-protein", "protein"): ["0,1", "1,0", "0,0"],
        ("protein", "protein-protein_x", "protein"): ["1,1"],
    }
    files = {
        "raw/num-node-dict.csv.gz": "disease,protein\n2,3\n",
        "raw/triplet-type-list.csv.gz": "".join(",".join(kind) + "\n" for kind in kinds),
    }
    for number, (kind, rows) in enumerate(kinds.items()):
        folder = f"raw/relations/{'___'.join(kind)}"
        files[f"{folder}/edge.csv.gz"] = "\n".join(rows) + "\n"
        files[f"{folder}/num-edge-list.csv.gz"] = f"{len(rows)}\n"
        files[f"{folder}/edge_reltype.csv.gz"] = f"{number}\n" * len(rows)
    write_gz(tmp_path / "biokg", files | {f"split/random/{part}.pt": "x" for part in ("train", "valid", "test")})
    assert run(["convert", "biokg", "store"]) == 0
    assert told(capsys) == ["biokg/split/random is not stored: it holds files of torch"]
    metadata = json.loads((tmp_path / "store/metadata.json").read_text())
    assert dict(zip(metadata["node_type"], metadata["num_nodes_per_type"], strict=True)) == {"disease": 2, "protein": 3}
    for number, (kind, rows) in enumerate(kinds.items()):
        pairs = [tuple(map(int, row.split(","))) for row in rows]
        assert edges(tmp_path / "store", *kind, "reltype") == [(*pair, number) for pair in pairs]


def triples_of(store: Path) -> list[tuple]:
    """Return (head, relation, tail, split) of every edge of a store of triples."""
    found = []
    for triple in map(tuple, (name.split(":") for name in json.loads((store / "metadata.json").read_text())["edge_type"])):
        found += [(src, triple[1], dst, part) for src, dst, part in edges(store, *triple, "split")]
    return sorted(found)


def naive_triples(folder: Path) -> list[tuple]:
    return sorted(
        (*line.split("\t"), part)
        for part, name in enumerate(("train", "valid", "test"))
        for line in (folder / f"{name}.txt").read_text().splitlines()
    )


def test_triples_keep_the_parts_that_their_files_are(tmp_path):
    rng = np.random.default_rng(3)
    for name, count in (("train", 60), ("valid", 1), ("test", 20)):
        rows = rng.integers(0, [9, 3, 9], (count, 3)).tolist()
        (tmp_path / f"{name}.txt").write_text("".join(f"n{h}\tr{r}\tn{t}\n" for h, r, t in rows))
    store = tmp_path.parent / "triples-store"
    summary = convert(tmp_path, store, overwrite=True, format="triples")
    expected = naive_triples(tmp_path)
    assert triples_of(store) == expected
    totals = [sum(parts[k] for parts in summary.splits.values()) for k in range(4)]
    assert totals == [60, 1, 20, 0]
    metadata = json.loads((store / "metadata.json").read_text())
    assert all(schema["columns"][0]["role"] == "split" for schema in metadata["edge_schema"].values())
    again = tmp_path.parent / "triples-again"
    convert(tmp_path, again, overwrite=True, format="triples", schema=str(store / "metadata.json"))
    assert triples_of(again) == expected


def test_real_triples_keep_their_parts(real_samples, tmp_path):
    folder = real_samples / "kg_small" / "umls"
    convert(folder, tmp_path / "store")
    assert triples_of(tmp_path / "store") == naive_triples(folder)


GRAPHBOLT_TASK = """
graph:
  nodes: [{num: 6}]
  edges: [{format: numpy, path: e.npy}]
tasks:
  - name: node_classification
    train_set: [{data: [{name: seeds, format: numpy, path: a.npy}, {name: labels, format: numpy, path: ay.npy}]}]
    test_set: [{data: [{name: seeds, format: numpy, path: b.npy}, {name: labels, format: numpy, path: by.npy}]}]
"""


@pytest.mark.parametrize("shape", [(), (2,)])
def test_graphbolt_labels_of_sets(tmp_path, shape):
    rng = np.random.default_rng(1)
    sets = {"a": np.array([4, 0, 3]), "b": np.array([5], np.int32)}
    labels = {
        name: rng.random((seeds.size, *shape)) if shape else rng.integers(-5, 9, seeds.size) for name, seeds in sets.items()
    }
    for name, seeds in sets.items():
        np.save(tmp_path / f"{name}.npy", seeds)
        np.save(tmp_path / f"{name}y.npy", labels[name])
    np.save(tmp_path / "e.npy", np.array([[0, 1], [1, 2]]))
    (tmp_path / "metadata.yaml").write_text(GRAPHBOLT_TASK)
    store = tmp_path.parent / "graphbolt-labels"
    convert(tmp_path, store, overwrite=True)
    expected = np.zeros((6, *shape), labels["a"].dtype)
    for name, seeds in sets.items():
        expected[seeds] = labels[name]
    folder = store / "part-00000/nodes/_N/data"
    assert np.array_equal(np.load(folder / "label.npy"), expected)
    assert np.load(folder / "label.present.npy").tolist() == [True, False, False, True, True, True]
    assert np.load(folder / "split.npy")[[4, 0, 3, 5]].tolist() == [0, 0, 0, 2]
    columns = json.loads((store / "metadata.json").read_text())["node_schema"]["_N"]["columns"]
    assert [(column["name"], column.get("role")) for column in columns] == [("label", "label"), ("split", "split")]


@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        ("a", [4, 0, 4], "ay.npy: row 2: node 4 has two values of 'label'"),
        ("a", [4, 9, 3], "ay.npy: row 1: 9 is not a node of type '_N'"),
        ("a", [4, -1, 3], "ay.npy: row 1: field 'seed' must not be negative, found -1"),
        ("a", [4, 0], "a.npy: expected 3 integers, one for each row of ay.npy, found int64 [2]"),
        ("by", [0.5], "by.npy: float64 rows of shape (), but ay.npy has int64 rows of shape ()"),
    ],
)
def test_graphbolt_labels_that_do_not_fit(tmp_path, monkeypatch, name, values, text):
    monkeypatch.chdir(tmp_path)
    arrays = {"e": [[0, 1], [1, 2]], "a": [4, 0, 3], "ay": [1, 2, 3], "b": [5], "by": [0], name: values}
    for stem, array in arrays.items():
        np.save(f"{stem}.npy", np.array(array))
    Path("metadata.yaml").write_text(GRAPHBOLT_TASK)
    with pytest.raises(GraphprepError) as caught:
        convert("metadata.yaml", tmp_path / "out", format="graphbolt")
    assert str(caught.value).partition("\n")[0] == text


LINK_TASK = """
graph:
  nodes: [{type: a, num: 5}, {type: b, num: 4}]
  edges: [{type: "a:x:b", format: FORMAT, path: EDGES}, {type: "b:y:a", format: numpy, path: other.npy}]
tasks:
  - name: link_prediction
    train_set: [{type: "a:x:b", data: [{name: seeds, format: numpy, path: t.npy}]}]
    test_set:
      - type: "a:x:b"
        data:
          - {name: seeds, format: numpy, path: e.npy}
          - {name: labels, format: numpy, path: l.npy}
          - {name: indexes, format: numpy, path: i.npy}
"""


def write_links(folder: Path, kind: str, pairs, train, test, labels) -> None:
    name = {"csv": "edges.csv", "numpy": "edges.npy"}[kind]
    arrays = {"t": np.array(train), "e": np.array(test), "l": np.array(labels), "i": np.arange(len(labels))}
    for stem, array in arrays.items():
        np.save(folder / f"{stem}.npy", array)
    np.save(folder / "other.npy", np.array([[1, 2], [0, 4]]))
    np.save(folder / "edges.npy", np.array(pairs).T)
    (folder / "edges.csv").write_text("".join(f"{src},{dst}\n" for src, dst in pairs))
    (folder / "metadata.yaml").write_text(LINK_TASK.replace("FORMAT", kind).replace("EDGES", name))


@pytest.mark.parametrize("kind", ["csv", "numpy"])
def test_graphbolt_sets_of_edges(tmp_path, kind):
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, [5, 4], (30, 2)).tolist()
    distinct = sorted(set(map(tuple, pairs)))
    train, test = distinct[::3], distinct[1::3]
    negative = distinct[2::3] + [(0, 0)] * ((0, 0) not in distinct)  # edges that the labels call none, and no edge
    write_links(tmp_path, kind, pairs, train, test + negative, [1] * len(test) + [0] * len(negative))
    store = tmp_path.parent / f"links-{kind}"
    summary = convert(tmp_path, store, overwrite=True)
    parts = dict.fromkeys(train, 0) | dict.fromkeys(test, 2)
    expected = [parts.get(tuple(pair)) for pair in pairs]
    folder = store / "part-00000/edges/a__x__b/data"
    found = edges(store, "a", "x", "b", "split")
    assert [pair for *pair, _ in found] == pairs
    order = np.argsort(np.load(store / "part-00000/edges/a__x__b/csc/edge_ids.npy"))
    present = np.load(folder / "split.present.npy")[order].tolist()
    assert [part if there else None for (*_, part), there in zip(found, present, strict=True)] == expected
    assert summary.splits == {"a:x:b": tuple(expected.count(part) for part in (0, 1, 2, None))}


def test_graphbolt_a_pair_in_two_sets_is_refused(tmp_path):
    write_links(tmp_path, "csv", [(0, 1), (2, 3)], [(0, 1), (2, 3)], [(2, 3)], [1])
    with pytest.raises(GraphprepError) as caught:
        convert(tmp_path, tmp_path.parent / "links-twice")
    assert str(caught.value) == (
        f"{tmp_path / 'metadata.yaml'}: tasks[0].test_set[0]: the pair 2, 3 is in two parts, train and test\n"
        "  fix: keep it in one of them"
    )


def test_ogb(tmp_path):
    files = {
        "raw/num-node-dict.csv.gz": "paper,author\n2,3\n",
        "raw/triplet-type-list.csv.gz": "author,writes,paper\n",
        "raw/relations/author___writes___paper/edge.csv.gz": "0,1\n2,0\n2,1\n",
        "raw/relations/author___writes___paper/edge_reltype.csv.gz": "4\n5\n4\n",
        "raw/node-feat/paper/node-feat.csv.gz": "1.5,2\n3,4\n",
        "raw/node-feat/paper/node_year.csv.gz": "2001\n2002\n",
        "raw/node-label/paper/node-label.csv.gz": "1\n0\n",
        "split/time/paper/train.csv.gz": "1\n",
        "split/time/paper/test.csv.gz": "0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(text.encode()))
    store = tmp_path.parent / "ogb-store"
    summary = convert(tmp_path, store, overwrite=True)
    assert (dict(summary.num_nodes), dict(summary.num_edges)) == ({"paper": 2, "author": 3}, {"author:writes:paper": 3})
    assert edges(store, "author", "writes", "paper", "reltype") == [(0, 1, 4), (2, 0, 5), (2, 1, 4)]
    headerless = pc.ReadOptions(autogenerate_column_names=True)
    feat = columns_of(tmp_path / "raw/node-feat/paper/node-feat.csv.gz", read_options=headerless)
    assert node_column(store, "paper", "feat") == dict(enumerate(map(list, zip(*feat.values(), strict=True))))
    assert node_column(store, "paper", "label") == {0: 1, 1: 0}
    assert node_column(store, "paper", "split") == {0: 2, 1: 0}
