"""IDs of stores from every space to every other, against tables that a naive loop makes of the files."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_store import raw_store, sample_store

import graphprep
from graphprep.ids.lookup import EDGE_SPACES, NODE_SPACES
from graphprep.model.errors import DataError, UsageError

pytestmark = pytest.mark.usefixtures("flags_named")

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
NAMES = (
    "karate_csv",
    "karate_json_random",
    "karate_partition_file",
    "shop_edgelist_both_parts",
    "shop_scattered_hash",
    "shop_tsv_modulo",
    "shop_chunked_parts",
    "town_csr_parts",
    "davis_bipartite",
)
STORES = [GOLDEN / name / "store" for name in NAMES]

SPACES_OF_ALL = tuple(space for space in NODE_SPACES if space != "previous")  # that is for reordered stores


def edge_folder(name):
    return "__".join(name.split(":"))


def naive_tables(store, *, edges):
    """For each type, one dict a node or edge: its IDs in every space. ``local`` is (partition, local ID)."""
    metadata = json.loads((store / "metadata.json").read_text())
    kind = "edge" if edges else "node"
    names, counts = metadata[f"{kind}_type"], metadata[f"num_{kind}s_per_chunk"]
    tables = {name: [] for name in names}
    part_id = 0
    for p in range(metadata["num_parts"]):
        folder = store / metadata["parts"][p]["path"]
        for t, name in enumerate(names):
            if edges:
                layout = "csc" if "csc" in metadata["layouts"] else "csr"
                path = folder / "edges" / edge_folder(name) / layout / "edge_ids.npy"
            else:
                path = folder / "nodes" / name / "raw_ids.npy"
            stored = np.load(path).tolist() if path.exists() else None
            for local in range(counts[t][p]):
                typed = len(tables[name])
                own = typed if stored is None else stored[local]
                row = {"part": part_id, "local": (p, local)}
                row |= {"id": own, "row": typed} if edges else {"raw": own, "typed": typed}
                tables[name].append(row)
                part_id += 1
    homo = 0
    for name in names:
        for row in tables[name]:
            row["homo"] = homo
            homo += 1
    return tables


def convert(store, rows, source, target, **options):
    """Convert through the library; local IDs as pairs."""
    if source == "local":
        values, parts = [local for _, local in rows], [part for part, _ in rows]
    else:
        values, parts = rows, None
    found = graphprep.ids(str(store), np.array(values, np.uint64), from_=source, to=target, parts=parts, **options)
    if target == "local":
        return list(zip(found[0].tolist(), found[1].tolist(), strict=True))
    return found.tolist()


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("store", STORES, ids=lambda store: store.parent.name)
def test_every_space_to_every_other(store, edges):
    if edges and "no_edge_ids" in str(store):
        pytest.skip("no edge IDs")
    for name, table in naive_tables(store, edges=edges).items():
        order = np.random.default_rng(0).permutation(len(table)).tolist()
        for source in EDGE_SPACES if edges else SPACES_OF_ALL:
            for target in EDGE_SPACES if edges else SPACES_OF_ALL:
                given, wanted = [[table[i][space] for i in order] for space in (source, target)]
                assert convert(store, given, source, target, type_=name, edges=edges) == wanted, (source, target)


@pytest.fixture
def shop(tmp_path):
    return sample_store().write(tmp_path / "shop")


def test_ids_that_are_not_there_are_marked(shop):
    def marked(values, source, **options):
        return graphprep.ids(str(shop), values, from_=source, to="typed", missing="mark", **options).tolist()

    assert marked([2, 3, 4, 8, 9, 10, 20, 21], "raw", type_="user") == [-1, 0, -1, 2, -1, 3, 4, -1]
    assert marked([0, 4, 5, 2**63], "typed", type_="user") == [0, 4, -1, -1]
    assert marked([0, 7, 8], "homo") == [0, 2, -1]
    assert marked([0, 5, 7], "homo", type_="item") == [-1, 0, 2]
    assert marked([0, 3, 7, 8], "part", type_="item") == [-1, 0, 2, -1]
    assert marked([0, 0, 0], "local", type_="item", parts=[0, 1, 2]) == [0, 2, -1]
    assert marked([1, 2, 1], "local", type_="item", parts=[0, 0, 1]) == [1, -1, -1]
    assert graphprep.ids(str(shop), [9], from_="homo", to="raw", missing="mark").tolist() == [-1]
    parts, local = graphprep.ids(str(shop), [0, 9], from_="homo", to="local", missing="mark")
    assert (parts.tolist(), local.tolist()) == ([0, -1], [0, -1])


def test_a_missing_id_is_an_error(shop):
    with pytest.raises(DataError) as caught:
        graphprep.ids(str(shop), [3, 4], from_="raw", to="typed", type_="user")
    assert str(caught.value) == f"{shop}: there is no raw ID 4 (position 1)"


def test_edges_of_the_tiny_store(shop):
    """buys: rows of item 0 (edges 0, 2, 4), item 1 (3, 6), then item 2 in partition 1 (1, 5)."""
    options = {"type_": "user:buys:item", "edges": True}
    assert convert(shop, [0, 1, 2, 3, 4, 5, 6], "id", "row", **options) == [0, 5, 1, 3, 2, 6, 4]
    assert convert(shop, [5, 6], "row", "local", **options) == [(1, 0), (1, 1)]
    assert convert(shop, [1, 1, 0], "raw", "typed", **options) == [5, 5, 0]  # other names of the same


@pytest.mark.parametrize(
    ("options", "message", "fix"),
    [
        (
            {"from_": "rau", "to": "typed"},
            "--from 'rau' is no ID space of nodes",
            "did you mean 'raw'? use one of raw, typed, homo, part, local, previous",
        ),
        (
            {"from_": "id", "to": "nothing", "edges": True},
            "--to 'nothing' is no ID space of edges",
            "use one of id, row, homo, part, local",
        ),
        ({"from_": "raw", "to": "homo"}, "raw IDs do not tell their type", "add --type, one of user, item"),
        (
            {"from_": "raw", "to": "homo", "type_": "usr"},
            "unknown node type 'usr'",
            "did you mean 'user'? use one of user, item",
        ),
        (
            {"from_": "id", "to": "row", "edges": True, "type_": "buys"},
            "--type: expected 'source:relation:destination', found 'buys'",
            "did you mean 'user:buys:item'? use one of user:buys:item, user:likes:user",
        ),
    ],
)
def test_what_cannot_be_asked(shop, options, message, fix):
    with pytest.raises(UsageError) as caught:
        graphprep.ids(str(shop), [0], **options)
    assert (caught.value.message, caught.value.fix) == (message, fix)


def test_a_store_without_edge_ids():
    store = GOLDEN / "karate_tsv_no_edge_ids" / "store"
    with pytest.raises(UsageError) as caught:
        graphprep.ids(str(store), [0], from_="id", to="row", edges=True)
    assert caught.value.message.startswith("the store holds no edge IDs of ")
    assert graphprep.ids(str(store), [3], from_="row", to="homo", edges=True).tolist() == [3]


def test_ids_must_be_whole_numbers(shop):
    for values in ([-1], [0.5], ["x"], np.array([-1])):
        with pytest.raises(UsageError) as caught:
            graphprep.ids(str(shop), values, from_="homo", to="typed")
        assert caught.value.message == "ids must be integers >= 0"


def test_no_ids_at_all(shop):
    assert graphprep.ids(str(shop), [], from_="homo", to="typed").tolist() == []
    assert graphprep.ids(str(shop), [], from_="id", to="row", edges=True, type_="user:likes:user").tolist() == []


def test_a_store_in_memory(shop):
    import fsspec

    fs = fsspec.filesystem("memory")
    for path in shop.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"/lookup/{path.relative_to(shop)}", path.read_bytes())
    url = "memory://lookup"
    assert convert(url, [3, 20, 8], "raw", "local", type_="user") == [(0, 0), (1, 1), (0, 2)]
    assert convert(url, [4, 0], "typed", "raw", type_="user") == [20, 3]
    assert convert(url, [1, 6], "id", "row", edges=True, type_="user:buys:item") == [5, 4]


# ------------------------------------------------------------------------------------------ strings and signed integers


def put_in_memory(folder):
    """Copy a store to fsspec's memory, which is remote to us; return its URL."""
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.rm("/names", recursive=True) if fs.exists("/names") else None
    for path in folder.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"/names/{path.relative_to(folder)}", path.read_bytes())
    return "memory://names"


NAMES_OF_NODES = ["a", "b", "ab", "é", "z" * 40, " x ", '"q"', "\n", "0", "-1", "日本", "A", "a\0", "\U0001f600"]
SIGNED = [-(2**63), -7, -1, 0, 3, 2**63 - 1]


METHODS = [(NAMES_OF_NODES, name) for name in ("range", "hash", "random")]
METHODS += [(SIGNED, name) for name in ("range", "hash", "random", "modulo")]


@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize("num_parts", [1, 3, 20])
@pytest.mark.parametrize(("raw_ids", "method"), METHODS)
def test_raw_ids_of_any_kind_there_and_back(tmp_path, raw_ids, num_parts, method, remote):
    store, typed = raw_store(raw_ids, num_parts, method)
    url = str(store.write(tmp_path / "names"))
    url = put_in_memory(tmp_path / "names") if remote else url
    given = typed[::-1] + typed[:1]
    found = graphprep.ids(url, given, from_="raw", to="typed")
    assert found.tolist() == [typed.index(raw) for raw in given]
    back = graphprep.ids(url, found, from_="typed", to="raw")
    assert (back.tolist(), back.dtype) == (given, object if isinstance(given[0], str) else np.int64)
    lost = ["nobody", "", "zz", "\uffff"] if isinstance(given[0], str) else [5, -2, 2, 2**62]
    assert graphprep.ids(url, lost, from_="raw", to="typed", missing="mark").tolist() == [-1] * 4
    assert graphprep.ids(url, lost[:0], from_="raw", to="typed").tolist() == []


@settings(deadline=None, max_examples=30)
@given(names=st.sets(st.text(min_size=1, max_size=6), min_size=1, max_size=60), data=st.data())
def test_any_strings_are_found_where_they_are(tmp_path_factory, names, data):
    num_parts = data.draw(st.integers(1, 4))
    method = data.draw(st.sampled_from(["range", "hash", "random"]))
    store, typed = raw_store(sorted(names), num_parts, method)
    folder = store.write(tmp_path_factory.mktemp("names"))
    wanted = data.draw(st.lists(st.sampled_from(typed) | st.text(max_size=6), max_size=30))
    found = graphprep.ids(str(folder), wanted, from_="raw", to="typed", missing="mark").tolist()
    assert found == [typed.index(name) if name in names else -1 for name in wanted]


@pytest.mark.parametrize("search_bytes", [0, 1 << 30])
def test_remote_texts_are_searched_in_blocks(monkeypatch, tmp_path, search_bytes):
    """Few texts go down a tree of blocks, many make it read all; both with tiny blocks and pieces."""
    small = {"_BLOCK_ROWS": 2, "_SCAN_ROWS": 7, "_MOST_BYTES": 9, "_BATCH_BLOCKS": 3, "_SEARCH_BYTES": search_bytes}
    for name, size in small.items():
        monkeypatch.setattr(f"graphprep.store.text_source.{name}", size)
    names = sorted({f"{i * i % 997}" for i in range(300)})
    store, typed = raw_store(names)
    store.write(tmp_path / "names")
    url = put_in_memory(tmp_path / "names")
    for wanted in (typed[:1], typed[-1:], typed[17:90:31], ["0a", typed[40], "zzz", ""], [*typed[::-1], "x"]):
        found = graphprep.ids(url, wanted, from_="raw", to="typed", missing="mark").tolist()
        assert found == [typed.index(name) if name in names else -1 for name in wanted]


def test_what_is_no_raw_id(tmp_path, shop):
    store, _ = raw_store(NAMES_OF_NODES)
    folder = str(store.write(tmp_path / "names"))
    with pytest.raises(DataError) as missing:
        graphprep.ids(folder, ["a", "x'y"], from_="raw", to="typed")
    assert str(missing.value) == f'{folder}: there is no raw ID "x\'y" (position 1)'
    for value in (5, None, b"a", "\ud800"):
        with pytest.raises(UsageError) as caught:
            graphprep.ids(folder, ["a", value], from_="raw", to="typed")
        assert str(caught.value) == f"ids must be str, found {value!r}\n  fix: the raw IDs of this node type are strings"
    with pytest.raises(UsageError, match="ids must all fit int64, or all uint64"):
        graphprep.ids(str(shop), [-1, 2**63], from_="raw", to="typed", type_="user")
    assert graphprep.ids(folder, [99], from_="typed", to="raw", missing="mark").tolist() == [None]
