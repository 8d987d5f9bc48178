"""Labels, splits and seeds from raw files to the store, against pandas and naive loops."""

from __future__ import annotations

import itertools
import json
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from golden.golden_cases import read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.hashes import hash_id, splitmix64

import graphprep
from graphprep.cli.stores.info import info_text
from graphprep.convert.roles import labels as label_stage
from graphprep.model.errors import DataError, GraphprepError, MemoryLimitError, UsageError
from graphprep.model.graph_config import EdgeTable, GraphConfig, TableConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

pytestmark = pytest.mark.usefixtures("flags_named")

EDGES = "_N:_E:_N"
NODES = "nodes/_N"
EDGE_FOLDER = "edges/_N___E___N"


def convert(path, out, **options):
    return graphprep.convert(str(path), str(out), overwrite=True, **options)


def metadata(out):
    return json.loads((Path(out) / "metadata.json").read_text())


def column_of(out, owner, name):
    value = metadata(out)
    schema = value["edge_schema"].get(owner) or value["node_schema"][owner]
    return next(column for column in schema["columns"] if column["name"] == name)


def joined(out, pattern):
    return np.concatenate([np.load(path) for path in sorted(Path(out).glob(f"part-*/{pattern}"))])


def edge_values(out, name, *, folder=EDGE_FOLDER):
    """Values of an edge column by edge ID, None where absent."""
    order = np.argsort(joined(out, f"{folder}/csc/edge_ids.npy"))
    values = joined(out, f"{folder}/data/{name}.npy")[order].tolist()
    present = list(Path(out).glob(f"part-*/{folder}/data/{name}.present.npy"))
    if not present:
        return values
    mask = joined(out, f"{folder}/data/{name}.present.npy")[order].tolist()
    return [value if there else None for value, there in zip(values, mask, strict=True)]


def node_values(out, name, *, folder=NODES):
    """Values of a node column by raw ID, None where absent."""
    values = joined(out, f"{folder}/data/{name}.npy").tolist()
    if list(Path(out).glob(f"part-*/{folder}/data/{name}.present.npy")):
        mask = joined(out, f"{folder}/data/{name}.present.npy").tolist()
        values = [value if there else None for value, there in zip(values, mask, strict=True)]
    has_ids = list(Path(out).glob(f"part-*/{folder}/raw_ids.npy"))
    ids = joined(out, f"{folder}/raw_ids.npy").tolist() if has_ids else range(len(values))
    return dict(zip(ids, values, strict=True))


def naive_part(hashed, text, seed):
    """docs/labels.md, word for word; None: in no part."""
    key = splitmix64(splitmix64(seed % 2**64) ^ hash_id("split"))
    mixed = splitmix64(hashed ^ key)
    end = Fraction(0)
    for part, fraction in enumerate(map(Fraction, text.split("/"))):
        end += fraction
        if mixed < end * 2**64 // 1:
            return part
    return None


def pair_hash(src, dst):
    return splitmix64(hash_id(src) ^ splitmix64(hash_id(dst)))


# ------------------------------------------------------------------------------------------------------ labels


def write_edges(path, labels, num_nodes=20):
    rng = random.Random(5)
    rows = [(rng.randrange(num_nodes), rng.randrange(num_nodes), label) for label in labels]
    path.write_text("src,dst,kind\n" + "".join(f"{src},{dst},{label or ''}\n" for src, dst, label in rows), "utf-8")
    return rows


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("run", [{}, {"block_bytes": 64, "run": RunOptions(threads=2)}])
def test_categories_are_those_of_pandas(tmp_path, partitions, run):
    pandas = pytest.importorskip("pandas", reason="pandas is the reference")
    rng = random.Random(1)
    words = ["Zürich", "zebra", "a", "aa", "日本", "\U0001f600", "￿x", "B b", "10", "9", None]
    labels = [rng.choice(words) for _ in range(400)]
    write_edges(tmp_path / "e.csv", labels)
    summary = convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:kind",), partitions=partitions, **run)
    # pandas sorts by code points, which is the order of UTF-8 bytes
    codes, names = pandas.factorize(np.array(labels, object), sort=True)
    column = column_of(tmp_path / "out", EDGES, "kind")
    assert column["categories"] == list(names)
    assert (column["kind"], column["dtype"], column["item_shape"], column["role"]) == ("dense", "int64", [], "label")
    assert edge_values(tmp_path / "out", "kind") == [None if code < 0 else code for code in codes.tolist()]
    assert f"edge type '{EDGES}': label 'kind' has 10 categories" in summary.notes
    assert graphprep.validate(str(tmp_path / "out")).sound


@settings(deadline=None, max_examples=15)
@given(
    labels=st.lists(
        st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters='",'), min_size=1, max_size=6).filter(
            lambda text: not text.isspace()
        ),
        min_size=1,
        max_size=30,
    ),
    block_bytes=st.sampled_from([1, 50, 0]),
)
def test_any_texts_become_categories(tmp_path_factory, labels, block_bytes):
    folder = tmp_path_factory.mktemp("labels")
    labels = ["x" + label for label in labels]  # text, also where all cells look like numbers
    write_edges(folder / "e.csv", labels)
    convert(folder / "e.csv", folder / "out", labels=(f"{EDGES}:kind",), block_bytes=block_bytes)
    names = column_of(folder / "out", EDGES, "kind")["categories"]
    assert names == sorted(set(labels), key=str.encode)
    assert [names[code] for code in edge_values(folder / "out", "kind")] == labels


def test_many_categories_spill_and_stay_exact(tmp_path):
    labels = [f"label-{i * 7919 % 5000:x}" for i in range(20_000)]
    write_edges(tmp_path / "e.csv", labels, 1000)
    stores = []
    for block_bytes in (0, 1 << 12):
        run = RunOptions(memory_limit="800MiB", threads=2)
        convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:kind",), run=run, block_bytes=block_bytes)
        stores.append(read_store(tmp_path / "out"))
    assert stores[0] == stores[1]
    assert edge_values(tmp_path / "out", "kind") == np.unique(labels, return_inverse=True)[1].tolist()


def test_numbers_stay_numbers(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,y,z\n0,1,7,0.5\n1,2,,nan\n")
    convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:y", f"{EDGES}:z"))
    y, z = column_of(tmp_path / "out", EDGES, "y"), column_of(tmp_path / "out", EDGES, "z")
    assert (y["dtype"], y["role"], y["optional"], "categories" in y) == ("int64", "label", True, False)
    assert (z["dtype"], z["role"], z["optional"]) == ("float64", "label", False)
    assert edge_values(tmp_path / "out", "y") == [7, None]


def write_json(path, features):
    lines = (
        json.dumps({"node_id": node, "node_type": 0, "node_weight": 1.0, **found, "edge": []})
        for node, found in features.items()
    )
    path.write_text("\n".join(lines))


def test_feature_slots_can_be_labels_and_splits(tmp_path):
    features = {
        5: {"binary_feature": {"0": "cat"}, "int64_feature": {"1": [2]}},
        1: {"binary_feature": {"0": "ant"}, "int64_feature": {"1": [0]}},
        9: {"int64_feature": {"1": [1]}},
    }
    write_json(tmp_path / "g.jsonl", features)
    convert(tmp_path / "g.jsonl", tmp_path / "out", format="json", labels=("0:feat_0",), splits=("0:feat_1",), partitions=2)
    columns = metadata(tmp_path / "out")["node_schema"]["0"]["columns"]
    base = {"kind": "dense", "item_shape": []}
    assert columns[1:] == [
        {
            "name": "feat_0",
            "dtype": "int64",
            "optional": True,
            "slot": 0,
            "role": "label",
            "categories": ["ant", "cat"],
            **base,
        },
        {"name": "feat_1", "dtype": "int8", "optional": False, "slot": 1, "role": "split", **base},
    ]
    assert node_values(tmp_path / "out", "feat_0", folder="nodes/0") == {1: 0, 5: 1, 9: None}
    assert node_values(tmp_path / "out", "feat_1", folder="nodes/0") == {1: 0, 5: 2, 9: 1}
    assert graphprep.validate(str(tmp_path / "out")).sound


def test_a_label_without_any_value_is_a_number(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,kind\n0,1,\n")
    convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:kind",))
    assert column_of(tmp_path / "out", EDGES, "kind")["dtype"] == "int64"


def test_too_many_categories_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(label_stage, "_MOST_CATEGORIES", 3)
    write_edges(tmp_path / "e.csv", ["a", "b", "c", "d"])
    with pytest.raises(DataError) as caught:
        convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:kind",))
    assert str(caught.value) == (
        f"--label {EDGES}:kind: label 'kind' of edge type '{EDGES}' has more than 3 different texts, or 64 MiB of them\n"
        "  fix: number the labels in the data, or leave out the flag: then the column stays text"
    )
    assert not (tmp_path / "out").exists()


def test_categories_beyond_the_memory_limit_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(label_stage, "_NAME_BYTES", 1 << 40)
    write_edges(tmp_path / "e.csv", ["a", "b"])
    with pytest.raises(MemoryLimitError) as caught:
        convert(tmp_path / "e.csv", tmp_path / "out", labels=(f"{EDGES}:kind",))
    assert str(caught.value) == (
        f"--label {EDGES}:kind: the 2 or more categories of label 'kind' of edge type '{EDGES}' do not fit the memory limit\n"
        "  fix: raise --memory-limit, or number the labels in the data"
    )


def test_a_label_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "g.edgelist").write_bytes(b"0,-1,0,1.0,binary,1,a\xff\n")
    with pytest.raises(GraphprepError) as caught:
        convert(tmp_path / "g.edgelist", tmp_path / "out", format="edgelist", labels=("0:feat_0",))
    assert "UTF-8" in str(caught.value)


# ------------------------------------------------------------------------------------------------------ splits


def test_columns_and_masks_become_one_split(tmp_path):
    (tmp_path / "e.csv").write_text(
        "src,dst,part,tr,va,te\n0,1,Train,1,0,false\n1,2,val,0,1,0\n2,0,,0,0,0\n0,1,TEST,0,0,TRUE\n"
    )
    summary = convert(tmp_path / "e.csv", tmp_path / "a", splits=(f"{EDGES}:part",))
    assert edge_values(tmp_path / "a", "part") == [0, 1, None, 2]
    assert summary.splits == {EDGES: (1, 1, 1, 1)}
    assert f"edge type '{EDGES}': split 'part': 1 train, 1 valid, 1 test, 1 in no part" in summary.notes
    convert(tmp_path / "e.csv", tmp_path / "b", splits=(f"{EDGES}:tr,va,te",))
    assert edge_values(tmp_path / "b", "split") == [0, 1, None, 2]
    assert [column["name"] for column in metadata(tmp_path / "b")["edge_schema"][EDGES]["columns"]] == ["part", "split"]
    convert(tmp_path / "e.csv", tmp_path / "c", splits=(f"{EDGES}:,,te",))
    assert edge_values(tmp_path / "c", "split") == [None, None, None, 2]
    for out in "abc":
        assert graphprep.validate(str(tmp_path / out)).sound


FRACTIONS = "0.5/0.2/0.2"


@pytest.mark.parametrize("layout", ["csc", "csr", "both"])
@pytest.mark.parametrize("ids", ["dense", "sparse"])
def test_random_splits_are_those_of_the_documented_rule(tmp_path, layout, ids):
    rng = random.Random(3)
    edges = [(rng.randrange(50), rng.randrange(50)) for _ in range(300)]
    (tmp_path / "e.txt").write_text("".join(f"{src} {dst}\n" for src, dst in edges))
    options = {"ids": ids, "layout": layout, "partitions": 3, "partition_by": "hash", "seed": 11}
    summary = convert(tmp_path / "e.txt", tmp_path / "out", splits=(FRACTIONS, f"{EDGES}:{FRACTIONS}"), **options)
    expected = {node: naive_part(hash_id(node), FRACTIONS, 11) for node in {end for edge in edges for end in edge} | set()}
    found = node_values(tmp_path / "out", "split")
    assert {node: found[node] for node in expected} == expected
    if layout != "csr":
        parts = [naive_part(pair_hash(*edge), FRACTIONS, 11) for edge in edges]
        assert edge_values(tmp_path / "out", "split") == parts
        assert summary.splits[EDGES] == tuple(parts.count(part) for part in (0, 1, 2, None))
    assert graphprep.validate(str(tmp_path / "out")).sound


@settings(deadline=None, max_examples=12)
@given(
    edges=st.lists(st.tuples(st.sampled_from([0, 1, 7, 2**40, 2**64 - 1]), st.integers(0, 8)), min_size=1, max_size=25),
    seed=st.integers(0, 5),
    method=st.sampled_from(["range", "hash", "random", "modulo"]),
    partitions=st.integers(1, 4),
    shuffle=st.randoms(use_true_random=False),
)
def test_a_node_and_an_edge_fall_into_the_same_part_wherever_they_stand(
    tmp_path_factory, edges, seed, method, partitions, shuffle
):
    folder = tmp_path_factory.mktemp("splits")
    found = []
    for name in ("a", "b"):
        mixed = list(edges)
        if name == "b":
            shuffle.shuffle(mixed)
        cut = shuffle.randint(0, len(mixed))
        (folder / name).mkdir()
        for number, part in enumerate((mixed[:cut], mixed[cut:])):
            (folder / name / f"{number}.txt").write_text("".join(f"{src} {dst}\n" for src, dst in part) or "# none\n")
        options = {"partition_by": method, "partitions": partitions} if name == "b" else {}
        convert(
            folder / name,
            folder / "out",
            format="edges",
            ids="sparse",
            seed=seed,
            splits=(f"_N:{FRACTIONS}", f"{EDGES}:{FRACTIONS}"),
            decoder_options={"header": "no"},
            **options,
        )
        parts = edge_values(folder / "out", "split")
        by_pair = {edge: {part for pair, part in zip(mixed, parts, strict=True) if pair == edge} for edge in mixed}
        assert all(len(own) == 1 for own in by_pair.values())
        found.append((node_values(folder / "out", "split"), by_pair))
    assert found[0] == found[1]


def test_splits_do_not_depend_on_threads_blocks_or_memory(tmp_path):
    rng = random.Random(8)
    lines = [f"{rng.randrange(5000)},{rng.randrange(5000)},{rng.choice('ABC')},{rng.randrange(3)}\n" for _ in range(30_000)]
    (tmp_path / "e.csv").write_text("src,dst,kind,part\n" + "".join(lines))
    stores = []
    for run, block_bytes in (({"threads": 1}, 0), ({"threads": 3}, 1 << 12), ({"memory_limit": "300MiB"}, 1 << 14)):
        convert(
            tmp_path / "e.csv",
            tmp_path / "out",
            labels=(f"{EDGES}:kind",),
            splits=(f"{EDGES}:part", "_N:0.8/0.1/0.1"),
            partitions=2,
            layout="both",
            run=RunOptions(**run),
            block_bytes=block_bytes,
        )
        stores.append(read_store(tmp_path / "out"))
    assert stores[0] == stores[1] == stores[2]


def text_ids(out, folder):
    """Raw IDs of a type of strings, in typed order."""
    found = []
    for part in sorted(Path(out).glob("part-*")):
        offsets = np.load(part / folder / "raw_ids.offsets.npy")
        data = np.load(part / folder / "raw_ids.values.npy").tobytes()
        found += [data[start:stop].decode() for start, stop in itertools.pairwise(offsets)]
    return found


@pytest.mark.parametrize(
    "options", [{}, {"partitions": 3, "partition_by": "hash"}, {"partitions": 2, "partition_by": "random"}]
)
def test_random_splits_of_names_go_by_their_hashes(tmp_path, options):
    rng = random.Random(4)
    names = ["ada", "bob", "a name of more than eight bytes", "zoë", "10", "x" * 16]
    edges = [(rng.choice(names), rng.choice(names)) for _ in range(60)]
    (tmp_path / "e.csv").write_text("src,dst\n" + "".join(f"{src},{dst}\n" for src, dst in edges), "utf-8")
    convert(
        tmp_path / "e.csv",
        tmp_path / "out",
        format="edges",
        decoder_options={"id_type": "string", "header": "yes"},
        splits=(FRACTIONS, f"{EDGES}:{FRACTIONS}"),
        seed=2,
        **options,
    )
    nodes = dict(zip(text_ids(tmp_path / "out", NODES), node_values(tmp_path / "out", "split").values(), strict=True))
    assert nodes == {name: naive_part(hash_id(name), FRACTIONS, 2) for name in set(itertools.chain(*edges))}
    assert edge_values(tmp_path / "out", "split") == [naive_part(pair_hash(*edge), FRACTIONS, 2) for edge in edges]


def write_tables(folder):
    """Write two node tables with columns, an edge table, seeds and a config of them."""
    (folder / "users.csv").write_text("id,country,tr,va,te\nada,UK,1,0,0\nbob,DE,0,0,1\neve,UK,0,1,0\nzoe,,0,0,0\n")
    (folder / "items.csv").write_text("id,kind,part\n20,toy,valid\n10,book,train\n30,book,\n")
    (folder / "buys.csv").write_text("src,dst,how\nada,10,web\nbob,20,shop\neve,10,\neve,30,web\n")
    (folder / "seeds.txt").write_text("30\n10\n")
    (folder / "graph.yaml").write_text(
        "nodes:\n"
        "- {type: user, files: users.csv, id_type: string}\n"
        "- {type: item, files: items.csv}\n"
        "edges:\n"
        "- {type: 'user:buys:item', files: buys.csv}\n"
        "labels: ['user:country', 'item:kind', 'user:buys:item:how']\n"
        "splits: ['user:tr,va,te', 'item:part', 'user:buys:item:0.5/0.5/0']\n"
        "seeds: item=seeds.txt\n"
    )


@pytest.mark.parametrize("partitions", [1, 2])
def test_tables_have_labels_splits_and_seeds(tmp_path, partitions):
    write_tables(tmp_path)
    summary = convert(tmp_path / "graph.yaml", tmp_path / "out", partitions=partitions, seed=1)
    names = text_ids(tmp_path / "out", "nodes/user")
    users = [list(node_values(tmp_path / "out", name, folder="nodes/user").values()) for name in ("country", "split")]
    assert dict(zip(names, zip(*users, strict=True), strict=True)) == {
        "ada": (1, 0),
        "bob": (0, 2),
        "eve": (1, 1),
        "zoe": (None, None),
    }
    assert column_of(tmp_path / "out", "user", "country")["categories"] == ["DE", "UK"]
    assert node_values(tmp_path / "out", "kind", folder="nodes/item") == {10: 0, 20: 1, 30: 0}
    assert node_values(tmp_path / "out", "part", folder="nodes/item") == {10: 0, 20: 1, 30: None}
    assert node_values(tmp_path / "out", "seeds", folder="nodes/item") == {10: True, 20: False, 30: True}
    folder = "edges/user__buys__item"
    assert edge_values(tmp_path / "out", "how", folder=folder) == [1, 0, None, 1]
    ends = [("ada", 10), ("bob", 20), ("eve", 10), ("eve", 30)]
    parts = [naive_part(pair_hash(*edge), "0.5/0.5/0", 1) for edge in ends]
    assert edge_values(tmp_path / "out", "split", folder=folder) == parts
    assert summary.splits["user"] == (1, 1, 1, 1)
    assert graphprep.validate(str(tmp_path / "out")).sound


# ------------------------------------------------------------------------------------------------------ mistakes

CSV = "src,dst,kind,part,tr,va,te,split,num\n10,11,a,train,1,0,0,x,1\n11,12,b,nope,1,1,0,x,2\n"


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (
            {"labels": ("_N:y",)},
            UsageError,
            "--label _N:y: node type '_N' has no column 'y'\n  fix: choose a type that has columns",
        ),
        (
            {"labels": ("kind",)},
            UsageError,
            f"--label kind: node type '_N' has no column 'kind'\n  fix: write {EDGES}:kind",
        ),
        (
            {"labels": (f"{EDGES}:y",)},
            UsageError,
            f"--label {EDGES}:y: edge type '{EDGES}' has no column 'y'\n  fix: use one of kind, part, tr, va, te, split, num",
        ),
        (
            {"splits": (f"{EDGES}:part",)},
            DataError,
            "e.csv:3:1: column 'part': a split must be 0, 1, 2, train, valid or test, found 'nope'\n"
            "  fix: correct the value, or leave it out where the row is in no part",
        ),
        (
            {"splits": (f"{EDGES}:tr,va,num",)},
            DataError,
            "e.csv:3:1: column 'num': a mask must be 0, 1, true or false, found 2\n"
            "  fix: correct the value, or leave it out where the row is in no part",
        ),
        (
            {"splits": (f"{EDGES}:tr,va,te",)},
            DataError,
            f"--split {EDGES}:tr,va,te: edge 1 of type '{EDGES}' is in two parts, train and valid\n"
            "  fix: keep it in one of them",
        ),
        (
            {"splits": (f"{EDGES}:0.5/0.5/0",)},
            UsageError,
            f"--split {EDGES}:0.5/0.5/0: edge type '{EDGES}' has a column 'split' already\n"
            "  fix: drop or rename that column, or use it: --split with its name",
        ),
        (
            {"splits": ("_N:_X:_N:part",)},
            UsageError,
            f"--split _N:_X:_N:part: there is no edge type '_N:_X:_N'\n  fix: did you mean {EDGES!r}?",
        ),
    ],
)
def test_mistakes_are_named_with_their_place_and_remedy(tmp_path, monkeypatch, flags, error, message):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(CSV)
    with pytest.raises(error) as caught:
        convert("e.csv", "out", **flags)
    assert str(caught.value) == message
    assert not Path("out").exists()


def test_arrays_by_row_become_masks_and_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("0 1\n1 2\n4 3\n")
    masks = {"tr": [1, 1, 0, 0, 0], "va": [0, 0, 1, 0, 0], "te": [0, 0, 0, 1, 0]}
    for name, values in masks.items():
        np.save(f"{name}.npy", np.array(values, bool))
    np.save("y.npy", np.array([[0.5], [1], [np.nan], [2], [3]], np.float32))
    data = tuple(f"_N:{name}={name}.npy" for name in (*masks, "y"))
    convert("e.txt", "out", node_data=data, labels=("y",), splits=("tr,va,te",), partitions=2)
    assert node_values("out", "split") == {0: 0, 1: 0, 2: 1, 3: 2, 4: None}
    label = column_of("out", "_N", "y")
    assert (label["dtype"], label["item_shape"], label["role"], label["optional"]) == ("float32", [1], "label", False)
    np.save("va.npy", np.array([0, 1, 1, 0, 0], bool))
    for flags, error, message in (
        (
            {"splits": ("tr,va,te",)},
            DataError,
            "--split tr,va,te: node 1 of type '_N' is in two parts, train and valid\n  fix: keep it in one of them",
        ),
        (
            {"splits": ("tr",)},
            UsageError,
            "--split tr: column 'tr' of node type '_N' is bool, so a mask\n"
            "  fix: name three masks: TYPE:train_mask,valid_mask,test_mask",
        ),
        (
            {"splits": ("y",)},
            DataError,
            "--split y: node 0 of type '_N': column 'y': a split must be 0, 1, 2, train, valid or test, found 0.5\n"
            "  fix: correct the value, or leave it out where the row is in no part",
        ),
    ):
        with pytest.raises(error) as caught:
            convert("e.txt", "again", node_data=data, **flags)
        assert str(caught.value) == message


def test_columns_that_are_something_else_are_no_labels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_json(Path("g.jsonl"), {5: {"sparse_float_feature": {"0": {"coordinates": [[1, 2]], "values": [0.5]}}}})
    for column, message in (
        ("feat_0", "column 'feat_0' of node type '0' is sparse\n  fix: choose a column of numbers or texts"),
        ("weight", "column 'weight' of node type '0' is its weight already\n  fix: use another one"),
        ("feat_1", "node type '0' has no column 'feat_1'\n  fix: did you mean 'feat_0'?"),
    ):
        with pytest.raises(UsageError) as caught:
            convert("g.jsonl", "out", format="json", labels=(column,))
        assert str(caught.value) == f"--label {column}: {message}"


class Stages:
    """Notes the stages that a run reached."""

    def __init__(self):
        self.names = []

    def stage(self, name, *, total_bytes=None, total_records=None):
        self.names.append(name)

    def advance(self, *, records=0, num_bytes=0): ...

    def message(self, text): ...


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            {"labels": ("usr:country",)},
            "--label usr:country: there is no node type 'usr'\n"
            "  fix: did you mean 'user'? use one of user, item; or write TYPE:COL for nodes, SRC:REL:DST:COL for edges",
        ),
        (
            {"splits": ("user:buys:user:0.8/0.1/0.1",)},
            "--split user:buys:user:0.8/0.1/0.1: there is no edge type 'user:buys:user'\n  fix: did you mean 'user:buys:item'?",
        ),
        (
            {"splits": ("0.8/0.1/0.1",)},
            "--split 0.8/0.1/0.1: there are 2 node types: user, item\n  fix: name one of them",
        ),
    ],
)
def test_types_that_are_not_there_are_refused_before_anything_is_read(tmp_path, flags, message):
    write_tables(tmp_path)
    stages = Stages()
    with pytest.raises(UsageError) as caught:
        convert(tmp_path / "graph.yaml", tmp_path / "out", reporter=stages, **flags)
    assert str(caught.value) == message
    assert stages.names == ["plan"]


def test_nodes_in_two_parts_are_named_by_their_raw_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = {
        70: {"int64_feature": {"0": [1], "1": [0], "2": [0]}},
        50: {"int64_feature": {"0": [0], "1": [1], "2": [1]}},
        30: {"int64_feature": {"0": [1], "1": [0]}},
    }
    write_json(Path("g.jsonl"), features)
    with pytest.raises(DataError) as caught:
        convert("g.jsonl", "out", format="json", splits=("0:feat_0,feat_1,feat_2",))
    assert str(caught.value) == (
        "--split 0:feat_0,feat_1,feat_2: node 50 of type '0' is in two parts, valid and test\n  fix: keep it in one of them"
    )
    features[50]["int64_feature"]["2"] = [0]
    write_json(Path("g.jsonl"), features)
    convert("g.jsonl", "out", format="json", splits=("0:feat_0,feat_1,feat_2",))
    assert node_values("out", "split", folder="nodes/0") == {30: 0, 50: 1, 70: 0}


# ------------------------------------------------------------------------------------------------------ schema

FLAGS = {"labels": (f"{EDGES}:kind",), "splits": (f"{EDGES}:part", "_N:0.5/0.3/0.1")}
LINES = ("0,1,b,train", "1,2,a,2", "2,3,,", "3,0,c,Val", "3,4,a,1")


def write_lines(path, lines=LINES):
    path.write_text("src,dst,kind,part\n" + "".join(line + "\n" for line in lines))


def test_a_stores_own_metadata_is_a_schema_also_with_roles(tmp_path):
    write_lines(tmp_path / "e.csv")
    convert(tmp_path / "e.csv", tmp_path / "first", **FLAGS)
    schema = str(tmp_path / "first" / "metadata.json")
    convert(tmp_path / "e.csv", tmp_path / "all", schema=schema, **FLAGS)
    assert read_store(tmp_path / "all") == read_store(tmp_path / "first")
    # Labels and split columns follow from the schema; a random split needs its fractions.
    convert(tmp_path / "e.csv", tmp_path / "some", schema=schema, splits=("_N:0.5/0.3/0.1",))
    assert read_store(tmp_path / "some") == read_store(tmp_path / "first")


def test_a_schema_keeps_the_numbers_of_categories(tmp_path):
    write_lines(tmp_path / "e.csv")
    convert(tmp_path / "e.csv", tmp_path / "first", **FLAGS)
    write_lines(tmp_path / "f.csv", ("0,1,c,0", "1,2,a,test"))
    schema = str(tmp_path / "first" / "metadata.json")
    convert(tmp_path / "f.csv", tmp_path / "second", schema=schema, **FLAGS)
    assert column_of(tmp_path / "second", EDGES, "kind")["categories"] == ["a", "b", "c"]
    assert edge_values(tmp_path / "second", "kind") == [2, 0]
    assert edge_values(tmp_path / "second", "part") == [0, 2]


def test_a_label_that_only_the_schema_names_is_told_by_its_place_there(tmp_path, monkeypatch):
    write_lines(tmp_path / "e.csv")
    convert(tmp_path / "e.csv", tmp_path / "first", **FLAGS)
    schema = str(tmp_path / "first" / "metadata.json")
    monkeypatch.setattr(label_stage, "_MOST_CATEGORIES", 1)
    with pytest.raises(DataError) as caught:
        convert(tmp_path / "e.csv", tmp_path / "again", schema=schema, splits=FLAGS["splits"], seeds=FLAGS.get("seeds", ()))
    assert caught.value.place == f"{schema}: column 'kind' of edge type '{EDGES}'"


def test_masks_fit_a_schema_too(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,x,tr,va,te\n0,1,5,1,0,0\n1,2,6,0,0,1\n")
    flags = {"splits": (f"{EDGES}:tr,va,te",)}
    convert(tmp_path / "e.csv", tmp_path / "a", **flags)
    convert(tmp_path / "e.csv", tmp_path / "b", schema=str(tmp_path / "a" / "metadata.json"), **flags)
    assert read_store(tmp_path / "a") == read_store(tmp_path / "b")


@pytest.mark.parametrize(
    ("lines", "change", "flags", "message"),
    [
        (
            ("0,1,a,0", "1,2,zebra,0"),
            {},
            FLAGS,
            "e.csv:3:1: column 'kind': 'zebra' is none of the schema's 3 categories\n  fix: correct the record, or the schema",
        ),
        (
            ("0,1,a,0", "1,2,b,9"),
            {},
            FLAGS,
            "e.csv:3:1: column 'part': a split must be 0, 1, 2, train, valid or test, found 9\n"
            "  fix: correct the value, or leave it out where the row is in no part",
        ),
        (
            ("0,1,a,0", "1,2,b,"),
            {"part": {"optional": False}},
            FLAGS,
            f"schema.json: column 'part' of edge type '{EDGES}' is missing from 1 of 2 rows\n"
            '  fix: add the values, or say "optional": true in the schema',
        ),
        (
            ("0,1,a,0",),
            {"kind": {"role": None, "categories": None, "kind": "binary", "dtype": "uint8"}},
            FLAGS,
            f"schema.json: column 'kind' of edge type '{EDGES}' has the role none, but --label {EDGES}:kind asks for the role "
            'label\n  fix: say "role": "label" in the schema, or leave out the flag',
        ),
        (
            ("0,1,a,0",),
            {},
            {"splits": ("_N:0.5/0.3/0.1",), "labels": (f"{EDGES}:sort",)},
            f"schema.json: column 'sort' of edge type '{EDGES}' is not there, but --label {EDGES}:sort asks for the role label\n"
            '  fix: say "role": "label" in the schema, or leave out the flag',
        ),
    ],
)
def test_data_and_flags_that_do_not_fit_the_schema_are_refused(tmp_path, monkeypatch, lines, change, flags, message):
    monkeypatch.chdir(tmp_path)
    write_lines(Path("e.csv"))
    convert("e.csv", "first", **FLAGS)
    value = metadata("first")
    for column in value["edge_schema"][EDGES]["columns"]:
        column.update(change.get(column["name"], {}))
        for key in [key for key, entry in column.items() if entry is None]:
            del column[key]
    Path("schema.json").write_text(json.dumps(value))
    write_lines(Path("e.csv"), lines)
    with pytest.raises(DataError) as caught:
        convert("e.csv", "out", schema="schema.json", **flags)
    assert str(caught.value) == message


# ------------------------------------------------------------------------------------------------------ validate


def spoil(path, index, value):
    array = np.load(path)
    array[index] = value
    np.save(path, array)


def faults(out):
    return [str(fault) for fault in graphprep.validate(str(out)).faults if "xxh3" not in str(fault)]


def test_validate_checks_parts_and_categories(tmp_path):
    write_lines(tmp_path / "e.csv")
    out = tmp_path / "out"
    convert(tmp_path / "e.csv", out, **FLAGS)
    assert faults(out) == []
    data = out / "part-00000" / EDGE_FOLDER / "data"
    spoil(data / "part.npy", 1, 3)
    spoil(data / "kind.npy", 1, 3)
    found = faults(out)
    prefix = f"part-00000/{EDGE_FOLDER}/data"
    assert f"{prefix}/part.npy[1]: expected a part (0, 1 or 2), found 3" in found
    assert f"{prefix}/kind.npy[1]: expected a category below 3, found 3" in found


def test_validate_checks_what_the_schema_says_of_roles(tmp_path):
    write_lines(tmp_path / "e.csv")
    out = tmp_path / "out"
    convert(tmp_path / "e.csv", out, **FLAGS)
    value = metadata(out)
    kind, part = value["edge_schema"][EDGES]["columns"]
    kind["categories"] = ["b", "a", "c"]
    part["dtype"] = "int16"
    (out / "metadata.json").write_text(json.dumps(value))
    place = f"metadata.json: edge_schema.{EDGES}"
    assert [fault for fault in faults(out) if fault.startswith("metadata")] == [
        f"{place}.columns[0].categories[1]: expected a name behind 'b', found 'a'",
        f"{place}.columns[1]: expected a dense scalar of int8 for role split, found dense int16 []",
    ]


def test_a_store_takes_no_roles(tmp_path):
    write_lines(tmp_path / "e.csv")
    convert(tmp_path / "e.csv", tmp_path / "out")
    options = ConvertOptions(labels=("x",), splits=("y",), seeds=("z",))
    with pytest.raises(UsageError) as caught:
        graphprep.validate(str(tmp_path / "out"), options)
    assert str(caught.value) == (
        "metadata.json says that this is a store: raw input only takes --label, --split, --seeds\n  fix: leave that out"
    )


def test_raw_input_is_validated_with_its_roles(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(Path("e.csv"))
    found = graphprep.validate("e.csv", ConvertOptions(labels=(f"{EDGES}:kind",)))
    assert f"edge type '{EDGES}': label 'kind' has 3 categories" in found.notes
    with pytest.raises(DataError):
        graphprep.validate("e.csv", ConvertOptions(splits=(f"{EDGES}:kind",)))


def test_info_shows_roles(tmp_path):
    write_lines(tmp_path / "e.csv")
    convert(tmp_path / "e.csv", tmp_path / "out", **FLAGS)
    lines = info_text(graphprep.info(str(tmp_path / "out"))).splitlines()
    assert "  split  dense  int8  split" in lines
    assert "  kind  dense  int64  label, 3 categories, optional" in lines
    assert "  part  dense  int8   split, optional" in lines


def test_a_label_that_is_no_utf8(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = pa.array([b"a", b"\xc3\xa9", b"caf\xe9", b"a"], pa.binary())
    pq.write_table(pa.table({"src": [0, 1, 2, 3], "dst": [1, 0, 0, 0], "kind": kinds}), tmp_path / "e.parquet")
    with pytest.raises(DataError) as caught:
        convert(tmp_path / "e.parquet", tmp_path / "out", labels=(f"{EDGES}:kind",))
    assert str(caught.value) == (
        f"--label {EDGES}:kind: label 'kind' of edge type '{EDGES}' has a text that is not UTF-8: b'caf\\xe9'\n"
        "  fix: write the labels in UTF-8, or as numbers"
    )
    assert not (tmp_path / "out").exists()


def test_info_shows_units(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    day = pa.array([1, 2], pa.int32()).cast(pa.date32())
    stamp = pa.array([5, None], pa.int64()).cast(pa.timestamp("ms"))
    pq.write_table(pa.table({"src": [0, 1], "dst": [1, 0], "day": day, "stamp": stamp}), tmp_path / "e.parquet")
    convert(tmp_path / "e.parquet", tmp_path / "out")
    day, stamp = (column_of(tmp_path / "out", EDGES, name) for name in ("day", "stamp"))
    assert (day["dtype"], day["unit"], day["optional"]) == ("int64", "day", False)
    assert (stamp["dtype"], stamp["unit"], stamp["optional"]) == ("int64", "ms", True)
    assert "  stamp  dense  int64  in ms, optional" in info_text(graphprep.info(str(tmp_path / "out"))).splitlines()
    assert graphprep.validate(str(tmp_path / "out")).sound
    convert(tmp_path / "e.parquet", tmp_path / "again", schema=str(tmp_path / "out" / "metadata.json"))
    assert read_store(tmp_path / "again") == read_store(tmp_path / "out")


# --------------------------------------------------------------------------------------------------------- seeds


def write_seeds(path, kind, seeds):
    """Write IDs in one of the forms in which seeds come."""
    if kind == "text":
        path.write_text("".join(f"{seed}\n" for seed in seeds), "utf-8")
    elif kind == "crlf":
        path.write_bytes("\r\n".join(map(str, seeds)).encode() + b"\r\n\r\n")
    elif kind == "npy":
        np.save(path, np.array(seeds, np.uint64 if any(seed >= 2**63 for seed in seeds) else np.int64))
    elif kind == "column":
        np.save(path, np.array(seeds, np.int64).reshape(-1, 1))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = {"id": pa.array(seeds), "x": pa.array([0.5] * len(seeds))} if kind == "table" else {"seed": pa.array(seeds)}
        pq.write_table(pa.table(table), path, row_group_size=3)
    return path if path.exists() else path.with_name(path.name + ".npy")


INTEGERS = [0, 1, 5, 7, 1000, 2**40]
NAMES = ["Ada", "a b", "10", "zoë", "Z" * 40, " x"]


@pytest.mark.parametrize("kind", ["text", "crlf", "npy", "column", "parquet", "table"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_seeds_mark_nodes(tmp_path, kind, partitions):
    (tmp_path / "e.txt").write_text("".join(f"{a} {b}\n" for a, b in itertools.pairwise(INTEGERS)))
    seeds = write_seeds(tmp_path / "seeds", kind, [1000, 5, 2**40, 5])
    summary = convert(
        tmp_path / "e.txt", tmp_path / "out", seeds=(str(seeds),), ids="sparse", partitions=partitions, partition_by="hash"
    )
    assert node_values(tmp_path / "out", "seeds") == {node: node in (1000, 5, 2**40) for node in INTEGERS}
    column = column_of(tmp_path / "out", "_N", "seeds")
    assert column == {
        "name": "seeds", "kind": "dense", "dtype": "bool", "item_shape": [], "optional": False, "role": "seeds"
    }  # fmt: skip
    assert "node type '_N': 3 seeds" in summary.notes
    assert graphprep.validate(str(tmp_path / "out")).sound


@pytest.mark.parametrize("kind", ["text", "parquet"])
@pytest.mark.parametrize("partitions", [1, 2])
def test_seeds_may_be_names(tmp_path, kind, partitions):
    names = NAMES
    (tmp_path / "e.csv").write_text("src,dst\n" + "".join(f"{a},{b}\n" for a, b in itertools.pairwise(names)), "utf-8")
    seeds = write_seeds(tmp_path / "seeds", kind, ["zoë", "10", " x"])
    options = {"decoder_options": {"id_type": "string", "header": "yes"}, "partitions": partitions, "partition_by": "hash"}
    convert(tmp_path / "e.csv", tmp_path / "out", format="edges", seeds=(f"_N={seeds}",), **options)
    marked = joined(tmp_path / "out", f"{NODES}/data/seeds.npy").tolist()
    found = text_ids(tmp_path / "out", NODES)
    assert sorted(found) == sorted(names)
    assert {name for name, mark in zip(found, marked, strict=True) if mark} == {"zoë", "10", " x"}


@settings(deadline=None, max_examples=10)
@given(data=st.data(), ascii_only=st.booleans())
def test_seeds_may_be_lines_of_json(tmp_path_factory, data, ascii_only):
    folder = tmp_path_factory.mktemp("seeds")
    texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)
    texts = texts.filter(lambda text: text.strip(" \t"))  # a blank name is none
    names = data.draw(st.lists(texts, min_size=1, max_size=12, unique=True))
    (folder / "e.jsonl").write_text("".join(json.dumps({"src": name, "dst": name}) + "\n" for name in names))
    seeds = data.draw(st.lists(st.sampled_from(names), max_size=8))
    (folder / "s.json").write_text("\n".join(json.dumps(name, ensure_ascii=ascii_only) for name in seeds), "utf-8")
    table = EdgeTable("_N", "_E", "_N", TableConfig((str(folder / "e.jsonl"),)))
    graph = GraphConfig(edges=(table,), id_type="string", seeds=(f"_N={folder / 's.json'}",))
    graphprep.convert([], str(folder / "out"), graph=graph)
    marked = np.load(folder / "out/part-00000" / NODES / "data/seeds.npy").tolist()
    found = text_ids(folder / "out", NODES)
    assert {name for name, mark in zip(found, marked, strict=True) if mark} == set(seeds)


@settings(deadline=None, max_examples=10)
@given(
    edges=st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 40)), min_size=1, max_size=20),
    data=st.data(),
    method=st.sampled_from(["range", "random"]),
)
def test_any_seeds_are_found(tmp_path_factory, edges, data, method):
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "e.txt").write_text("".join(f"{src} {dst}\n" for src, dst in edges))
    nodes = sorted({end for edge in edges for end in edge})
    seeds = data.draw(st.lists(st.sampled_from(nodes), max_size=10))
    (folder / "seeds.txt").write_text("\n".join(map(str, seeds)))
    convert(
        folder / "e.txt", folder / "out", seeds=(str(folder / "seeds.txt"),), ids="sparse", partitions=2, partition_by=method
    )
    assert node_values(folder / "out", "seeds") == {node: node in seeds for node in nodes}


def test_a_split_may_come_in_files(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 3\n3 4\n")
    (tmp_path / "train.csv").write_text("3\n1\n3\n")
    np.save(tmp_path / "test.npy", np.array([4]))
    text = f"_N={tmp_path / 'train.csv'},,{tmp_path / 'test.npy'}"
    for partitions in (1, 3):
        summary = convert(tmp_path / "e.txt", tmp_path / "out", splits=(text,), partitions=partitions, partition_by="hash")
        assert node_values(tmp_path / "out", "split") == {0: None, 1: 0, 2: None, 3: 0, 4: 2}
        assert summary.splits == {"_N": (2, 0, 1, 2)}
        assert graphprep.validate(str(tmp_path / "out")).sound
    schema = str(tmp_path / "out" / "metadata.json")
    convert(tmp_path / "e.txt", tmp_path / "again", splits=(text,), schema=schema, partitions=3, partition_by="hash")
    assert read_store(tmp_path / "again") == read_store(tmp_path / "out")


def test_a_node_in_two_files_of_a_split_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("10 11\n11 12\n")
    Path("a.txt").write_text("10\n11\n")
    Path("b.txt").write_text("12\n11\n")
    with pytest.raises(DataError) as caught:
        convert("e.txt", "out", splits=("_N=a.txt,,b.txt",), ids="sparse")
    assert str(caught.value) == (
        "--split _N=a.txt,,b.txt: node 11 of type '_N' is in two parts, train and test\n  fix: keep it in one of them"
    )


def test_several_files_of_seeds_add_up(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 3\n")
    (tmp_path / "seeds").mkdir()
    for number in (0, 2):
        (tmp_path / "seeds" / f"{number}.txt").write_text(f"{number}\n")
    (tmp_path / "more.txt").write_text("3\n0\n")
    convert(tmp_path / "e.txt", tmp_path / "out", seeds=(str(tmp_path / "seeds"), f"_N={tmp_path / 'more.txt'}"))
    assert node_values(tmp_path / "out", "seeds") == {0: True, 1: False, 2: True, 3: True}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\n\n5\n", "seeds.txt:3:1: seed 5 is no node of type '_N'\n  fix: correct the ID, or leave it out"),
        ("1\n2 3\n", "seeds.txt:2:1: field 'seed' must be an integer, found '2 3'\n  fix: write one raw ID a line"),
        ("-1\n", "seeds.txt:1:1: field 'seed' must not be negative, found '-1'\n  fix: write one raw ID a line"),
    ],
)
def test_seeds_that_are_no_nodes_are_refused(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("0 1\n1 2\n2 3\n")
    Path("seeds.txt").write_text(content)
    with pytest.raises(DataError) as caught:
        convert("e.txt", "out", seeds=("seeds.txt",))
    assert str(caught.value) == message
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: np.save("seeds.npy", np.array([0.5])),
            "seeds.npy: seeds must be one list of integers, found float64 [1]\n  fix: write one raw ID a line",
        ),
        (lambda: np.save("seeds.npy", np.array([1, -2])), "seeds.npy: row 1: field 'seed' must not be negative, found -2\n"
         "  fix: write raw IDs of the type"),
        (lambda: np.save("seeds.npy", np.array([1, 9])), "seeds.npy: row 1: seed 9 is no node of type '_N'\n"
         "  fix: correct the ID, or leave it out"),
        (
            lambda: write_seeds(Path("seeds.npy"), "parquet", [0.5]),
            "seeds.npy: no column of raw IDs among seed (double)\n  fix: give the file one column of raw IDs, or call it id",
        ),
        (
            lambda: write_seeds(Path("seeds.npy"), "table", [1, 2, 3, None]),
            "seeds.npy: row 3, column 'id': field 'seed' is empty\n  fix: write raw IDs of the type",
        ),
    ],
)  # fmt: skip
def test_arrays_and_tables_of_seeds_have_places_too(tmp_path, monkeypatch, make, message):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("0 1\n1 2\n2 3\n")
    make()
    with pytest.raises(DataError) as caught:
        convert("e.txt", "out", seeds=("seeds.npy",))
    assert str(caught.value) == message


def test_a_schema_with_seeds_asks_for_their_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("0 1\n1 2\n")
    Path("seeds.txt").write_text("2\n")
    convert("e.txt", "first", seeds=("seeds.txt",))
    convert("e.txt", "second", seeds=("seeds.txt",), schema="first/metadata.json")
    assert read_store(Path("first")) == read_store(Path("second"))
    with pytest.raises(DataError) as caught:
        convert("e.txt", "third", schema="first/metadata.json")
    assert str(caught.value) == (
        "first/metadata.json: node type '_N' has seeds, but no file of them is named\n"
        "  fix: add --seeds, or drop the column from the schema"
    )
