"""The exporter ``deepgnn``: what its files say, read back here with NumPy alone; DeepGNN's own code is asked in tests/clients."""

from __future__ import annotations

import dataclasses
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from clients.deepgnn_graphs import edgelist, json_lines, random_graph
from clients.graphs import GRAPHS, make_store
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.exporters.deepgnn.ids import feature_slots
from graphprep.exporters.deepgnn.slots import pack_slots, slot_contents
from graphprep.exporters.deepgnn.times import time_columns
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells
from graphprep.testing.export_contract import ExporterContract

pytestmark = pytest.mark.usefixtures("flags_named")

NODE = np.dtype([("id", "<u8"), ("row", "<u8"), ("type", "<i4")])
EDGE = np.dtype([("dst", "<u8"), ("slot", "<u8"), ("type", "<i4"), ("weight", "<f4")])


class TestDeepGnn(ExporterContract):
    target = "deepgnn"


def read_rows(folder: Path, part: int = 0) -> list[tuple]:
    """Read (ID, type, slots, edges) of every row, an edge being (type, destination, weight, slots)."""

    def load(name, dtype):
        return np.frombuffer((folder / name.format(part)).read_bytes(), dtype)

    def slots(first, stop, index, data):
        return [data[index[i] : index[i + 1]] for i in range(first, stop)]

    nodes, edges = load("node_{}_0.map", NODE), load("edge_{}_0.index", EDGE)
    first_slot, first_edge = load("node_{}_0.index", "<u8"), load("neighbors_{}_0.index", "<u8")
    index, edge_index = load("node_features_{}_0.index", "<u8"), load("edge_features_{}_0.index", "<u8")
    data, edge_data = ((folder / f"{one}_features_{part}_0.data").read_bytes() for one in ("node", "edge"))
    assert nodes["row"].tolist() == list(range(nodes.size))
    assert edges[-1].tolist() == (0, edge_index.size - 1, 0, -1)
    found = []
    for row, node in enumerate(nodes):
        own = []
        for at in range(int(first_edge[row]), int(first_edge[row + 1])):
            edge = edges[at]
            features = slots(int(edge["slot"]), int(edges[at + 1]["slot"]), edge_index, edge_data)
            own.append((int(edge["type"]), int(edge["dst"]), float(edge["weight"]), features))
        found.append(
            (int(node["id"]), int(node["type"]), slots(int(first_slot[row]), int(first_slot[row + 1]), index, data), own)
        )
    return found


def export(folder: Path, text: str, convert: dict | None = None, **given) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "input").write_text(text, encoding="utf-8")
    graphprep.convert(str(folder / "input"), str(folder / "store"), **(convert or {}))
    graphprep.export(str(folder / "store"), str(folder / "out"), "deepgnn", **given)
    return folder / "out"


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------------------------------------------- slots


MORE_EDGE_TYPES = "0,-1,0,1\n0,0,0,1\n0,1,0,1,float32,0\n"  # one node type, and the second edge type has an empty slot


def test_an_edge_type_states_slots_whatever_its_number_among_node_types(tmp_path):
    out = export(tmp_path, MORE_EDGE_TYPES, {"format": "edgelist"})
    assert read_rows(out) == [(0, 0, [], [(0, 0, 1.0, []), (1, 0, 1.0, [b""])])]


@pytest.mark.parametrize("target", ["deepgnn-edgelist", "deepgnn-json"])
def test_slots_of_an_edge_type_beyond_the_node_types_come_back(tmp_path, target):
    wanted = files(export(tmp_path, MORE_EDGE_TYPES, {"format": "edgelist"}))
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "text"), target)
    [text] = (tmp_path / "text").glob("graph.*")
    again = export(tmp_path / "again", text.read_text(), {"format": target.removeprefix("deepgnn-")})
    assert {**files(again), "export.json": b""} == {**wanted, "export.json": b""}


# ---------------------------------------------------------------------------------------------------- order


def test_any_order_of_lines_gives_the_files_of_the_sorted_ones(tmp_path):
    """Records and edges in any order; parallel edges are told apart by their place, so there are none."""
    graph = random_graph(1, "dst", nodes=60)
    for node in graph:
        node.edges = list({(edge.type, edge.dst): edge for edge in node.edges}.values())
    lines = edgelist(graph).splitlines(keepends=True)
    rng = np.random.default_rng(1)
    options = {"format": "edgelist"}
    wanted = export(tmp_path / "sorted", "".join(lines), options)
    found = export(tmp_path / "any", "".join(rng.permutation(lines)), options)
    assert {**files(found), "export.json": b""} == {**files(wanted), "export.json": b""}


@pytest.fixture
def starved(monkeypatch):
    """Let pieces be so small that a row of three edges is a long one."""
    from graphprep.rewrite import run as store_run

    real = store_run.room_for
    monkeypatch.setattr(store_run, "room_for", lambda *given: dataclasses.replace(real(*given), piece_bytes=256, held_bytes=0))


@pytest.mark.parametrize("order", ["destination", "time", "stored"])
def test_long_rows_in_pieces(order, tmp_path, request):
    """Several relations, several types of ends, any order, all kinds of columns: as rows that are read at once."""
    graph = random_graph(2, "dst", nodes=40, dated=True)
    for node in graph:
        np.random.default_rng(node.id % 1000).shuffle(node.edges)
        node.edges.sort(key=lambda edge: edge.type)
    text = edgelist(graph, dated=True)
    options = {"format": "edgelist", "decoder_options": {"temporal": True}}
    given = {"target_options": {"watermark": 3, "edge_order": order}, "drop_unsupported": True}
    wanted = export(tmp_path / "whole", text, options, **given)
    request.getfixturevalue("starved")
    found = export(tmp_path / "pieces", text, options, **given)
    assert files(found) == files(wanted)
    rows = read_rows(wanted)
    assert any(len(edges) > 8 for *_, edges in rows)
    if order == "destination":
        assert all([edge[:2] for edge in edges] == sorted(edge[:2] for edge in edges) for *_, edges in rows)


def test_times_order_edges(tmp_path):
    lines = "1,-1,0,1,0,-1\n1,0,9,1,5,7\n1,0,8,1,5,-1\n1,0,7,1,5,0\n1,0,6,1,4,9\n1,0,5,1,5,6\n" + "".join(
        f"{i},-1,0,1,0,-1\n" for i in range(5, 10)
    )
    options = {"format": "edgelist", "decoder_options": {"temporal": True}}
    out = export(tmp_path, lines, options, target_options={"watermark": 1}, drop_unsupported=True)
    assert [edge[1] for edge in read_rows(out)[0][3]] == [6, 5, 9, 7, 8]
    times = np.frombuffer((out / "edge_0_0.timestamp").read_bytes(), "<i8")
    assert times.tolist() == [1, 4, 9, 5, 6, 5, 7, 5, -1, 5, -1]


def test_reordered_stores_have_the_same_rows(tmp_path):
    graph = random_graph(3, "dt", nodes=50)
    plain = export(tmp_path, json_lines(graph), {"format": "json"})
    graphprep.reorder(str(tmp_path / "store"), str(tmp_path / "reordered"), by="degree")
    graphprep.export(str(tmp_path / "reordered"), str(tmp_path / "other"), "deepgnn")
    assert sorted(read_rows(tmp_path / "other"), key=repr) == sorted(read_rows(plain), key=repr)


# ---------------------------------------------------------------------------------------------------- IDs, types


def test_names_become_homo_ids_with_a_map(tmp_path):
    store = make_store(GRAPHS["string_ids"](), tmp_path)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "deepgnn")
    document = json.loads((tmp_path / "out" / "types.json").read_text())
    assert document["node_types"]["shop"]["first_id"] == 20
    assert document["node_types"]["user"] == {
        "number": 0,
        "first_id": 0,
        "slots": {"feat": 0, "age": 1, "y": 2, "part": 3},
    }
    assert (tmp_path / "out" / "id_map" / "user.parquet").exists()
    rows = read_rows(tmp_path / "out")
    assert [row[0] for row in rows] == list(range(24))
    assert [row[1] for row in rows] == [0] * 20 + [1] * 4
    assert any("types.json" in note for note in summary.notes)


@pytest.mark.parametrize("name", ["heterogeneous", "sparse_ids"])
def test_ids_that_types_share_become_homo_ids(name, tmp_path):
    """Each type has a node 0; or there are negative IDs."""
    store = make_store(GRAPHS[name](), tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "deepgnn")
    rows = read_rows(tmp_path / "out")
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert len({row[1] for row in rows}) > 1


def test_ids_that_types_do_not_share_stay(tmp_path):
    """Also where the ranges of two types overlap, and the same ID could be in different partitions."""
    text = "5,-1,0,1\n9,-1,1,1\n1,-1,1,1\n7,-1,0,1\n7,0,9,1\n5,3,1,1\n"
    out = export(tmp_path, text, {"format": "edgelist", "partitions": 2})
    rows = [read_rows(out, part) for part in (0, 1)]
    assert [[(row[0], row[1]) for row in some] for some in rows] == [[(1, 1), (5, 0)], [(7, 0), (9, 1)]]
    assert [edge[:2] for some in rows for row in some for edge in row[3]] == [(3, 1), (0, 9)]
    meta = json.loads((out / "meta.json").read_text())
    assert (meta["edge_type_count"], meta["edge_count_per_type"]) == (4, [1, 0, 0, 1])
    assert meta["partitions"]["1"] == {"node_weight": [1.0, 1.0], "edge_weight": [1.0, 0, 0, 0]}
    assert (out / "edge_2_1.alias").read_bytes() == b""


def test_types_with_huge_numbers_go_by_position(tmp_path):
    out = export(tmp_path, "1,-1,2000000000,1\n2,-1,3,1\n1,5,2,1\n", {"format": "edgelist"})
    assert [row[1] for row in read_rows(out)] == [1, 0]
    assert json.loads((out / "types.json").read_text())["node_types"]["2000000000"]["number"] == 1


# ---------------------------------------------------------------------------------------------------- slots


def test_columns_without_slots_come_last(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "deepgnn")
    for row in read_rows(tmp_path / "out"):
        sizes = [len(slot) for slot in row[2]]
        assert sizes[:3] == [16, 4, 8]
        assert len(sizes) == 5
        assert sizes[3] in (0, 1) and sizes[4] == 1
    assert {len(edge[3][0]) for row in read_rows(tmp_path / "out") for edge in row[3]} == {12}


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_packed_slots_are_those_of_a_loop(data):
    """Contents of any kinds for some rows each, against bytes joined one by one."""
    num_rows = data.draw(st.integers(0, 6))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    stated = rng.integers(0, 3, num_rows)
    wanted: list[dict[int, bytes]] = [{} for _ in range(num_rows)]
    contents = []
    for slot in data.draw(st.lists(st.integers(0, 4), max_size=3, unique=True)):
        kind = data.draw(st.sampled_from(["dense", "ragged", "binary", "sparse", "temporal"]))
        column, cells, texts = _cells(rng, kind, num_rows)
        rows = np.flatnonzero(rng.random(num_rows) < 0.7)
        contents.append(slot_contents(column, slot, cells).at(rows, rows))
        for row in rows:
            wanted[row][slot] = texts[row]
    found = pack_slots(num_rows, contents, stated)
    counts = [max([given, *(slot + 1 for slot in own)]) for given, own in zip(stated.tolist(), wanted, strict=True)]
    assert found.counts.tolist() == counts
    ends = [*found.begins.tolist()[1:], found.data.size]
    slots = [found.data[a:b].tobytes() for a, b in zip(found.begins.tolist(), ends, strict=False)]
    assert slots == [own.get(slot, b"") for own, count in zip(wanted, counts, strict=True) for slot in range(count)]


def _cells(rng: np.random.Generator, kind: str, size: int) -> tuple[ColumnSchema, Cells, list[bytes]]:
    """Make a column of random values, and what its slots are to hold."""
    if kind == "dense":
        values = rng.random((size, 3)).astype(np.float32)
        return ColumnSchema("x", "dense", "float32", (3,)), Cells(None, values), [row.tobytes() for row in values]
    counts = rng.integers(0, 4, size)
    values = rng.integers(0, 200, int(counts.sum())).astype(np.uint8 if kind == "binary" else np.int16)
    pieces = np.split(values, np.cumsum(counts)[:-1]) if size else []
    if kind in ("ragged", "binary"):
        return ColumnSchema("x", kind, values.dtype.name), Cells(counts, values), [piece.tobytes() for piece in pieces]
    if kind == "sparse":
        coords = rng.integers(0, 99, 2 * values.size)
        own = np.split(coords, 2 * np.cumsum(counts)[:-1]) if size else []
        texts = [
            struct.pack("=II", c.size, 2) + c.tobytes() + v.tobytes() if v.size else b""
            for c, v in zip(own, pieces, strict=True)
        ]
        return ColumnSchema("x", "sparse", "int16", (2,)), Cells(counts, values, coords), texts
    entries = rng.integers(0, 3, size)
    counts = rng.integers(0, 3, int(entries.sum()))
    values = rng.random(int(counts.sum()))
    starts = rng.integers(0, 99, counts.size)
    texts, at, first = [], 0, 0
    for count in entries.tolist():
        own, sizes = [], counts[first : first + count].tolist()
        for one in sizes:
            own.append(values[at : at + one].tobytes())
            at += one
        head = 4 + 8 * (2 * count + 1)
        offsets = [head + sum(map(len, own[:i])) for i in range(count + 1)]
        text = struct.pack(f"=i{count}q{count + 1}q", count, *starts[first : first + count].tolist(), *offsets)
        texts.append(text + b"".join(own) + bytes(8) if count else b"")
        first += count
    cells = Cells(counts, values, entry_counts=entries, start=starts, end=np.full(starts.size, -1))
    return ColumnSchema("x", "temporal", "float64"), cells, texts


@pytest.mark.parametrize("counts", [[3, 2], [5, -1]])
def test_counts_of_other_values_are_refused(counts):
    column = ColumnSchema("x", "binary", "uint8")
    with pytest.raises(DataError, match="column 'x' has 4 numbers"):
        slot_contents(column, 0, Cells(np.array(counts), np.zeros(4, np.uint8)))


def test_two_columns_in_one_slot_are_refused():
    one = slot_contents(ColumnSchema("x", "dense", "int8"), 1, Cells(None, np.zeros((2, 1), np.int8)))
    with pytest.raises(DataError, match="two columns fill slot 1 of one row"):
        pack_slots(2, [one, one])


def test_weights_beyond_float32_are_refused(tmp_path):
    with pytest.raises(DataError, match="weight 1e\\+39 does not fit float32") as caught:
        export(tmp_path, "1,-1,0,1\n3,-1,0,inf\n3,0,1,1e39\n", {"format": "edgelist", "weight_dtype": "float64"})
    assert caught.value.place == "node 3, or an edge from it"


def test_slots_with_huge_numbers(tmp_path):
    line = '{"node_id": %d, "node_type": 0, "node_weight": 1, "float_feature": {"%d": [1]}, "edge": []}\n'
    out = export(tmp_path / "a", line % (1, 70_000) + line % (2, 3), {"format": "json"})
    assert [len(row[2]) for row in read_rows(out)] == [70_001, 4]
    with pytest.raises(DataError, match="a row has 100000001 feature slots"):
        export(tmp_path / "b", line % (1, 100_000_000), {"format": "json"})
    graphprep.export(str(tmp_path / "a" / "store"), str(tmp_path / "text"), "deepgnn-edgelist")
    assert (
        tmp_path / "text" / "graph.csv"
    ).read_text() == f"1,-1,0,1{',int8,0' * 70_000},float32,1,1\n2,-1,0,1{',int8,0' * 3},float32,1,1\n"


@pytest.mark.parametrize("found", [-1, 1000])
def test_edges_that_lead_beyond_the_nodes(found, tmp_path):
    store = make_store(GRAPHS["string_ids"](), tmp_path, layout="csr")
    path = next(store.glob("part-*/edges/user__visits__shop/csr/indices.npy"))
    indices = np.load(path)
    indices[7] = found
    np.save(path, indices)
    with pytest.raises(DataError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "deepgnn")
    assert caught.value.place == f"{path}[7]"
    assert str(found) in caught.value.message


# ---------------------------------------------------------------------------------------------------- times


def dated_store(folder: Path) -> str:
    """Convert an edge list in which one edge has no time."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "edges.csv").write_text("src,dst,at,size\n1,2,30,5\n1,3,10,6\n1,2,,7\n2,1,20,8\n")
    options = {"format": "edges", "decoder_options": {"time_col": "at"}}
    graphprep.convert(str(folder / "edges.csv"), str(folder / "store"), **options)
    return str(folder / "store")


def test_the_time_of_an_edge_is_its_creation(tmp_path):
    """A missing one is what is asked for, none is removed, and it is no feature."""
    summary = graphprep.export(dated_store(tmp_path), str(tmp_path / "out"), "deepgnn", watermark=40, missing_time="0")
    assert summary.dropped == ()
    times = np.frombuffer((tmp_path / "out" / "edge_0_0.timestamp").read_bytes(), "<i8")
    assert times.tolist() == [40, 0, -1, 10, -1, 30, -1, 20, -1]
    edges = [edge for row in read_rows(tmp_path / "out") for edge in row[3]]
    assert [(dst, [np.frombuffer(one, np.int64).item() for one in slots]) for _, dst, _, slots in edges] == [
        (2, [7]), (3, [6]), (2, [5]), (1, [8]),
    ]  # fmt: skip
    slots = json.loads((tmp_path / "out" / "types.json").read_text())["edge_types"]["_N:_E:_N"]["slots"]
    assert slots == {"size": 0}


def test_times_are_not_lost_in_silence(tmp_path):
    reason = "times of edges are written with --watermark"
    with pytest.raises(UsageError) as caught:
        graphprep.export(dated_store(tmp_path), str(tmp_path / "out"), "deepgnn")
    assert caught.value.message == "target 'deepgnn' does not support all columns:"
    assert caught.value.items == (f"edge column _N:_E:_N 'time': {reason}",)
    summary = graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "deepgnn", drop_unsupported=True)
    assert summary.dropped == (f"edge column _N:_E:_N 'time': {reason}",)
    assert json.loads((tmp_path / "out" / "export.json").read_text())["dropped"] == list(summary.dropped)
    assert not (tmp_path / "out" / "edge_0_0.timestamp").exists()


def test_edges_go_by_times_that_are_left_out(tmp_path):
    graphprep.export(dated_store(tmp_path), str(tmp_path / "out"), "deepgnn", drop_unsupported=True, edge_order="time")
    assert [[edge[1] for edge in row[3]] for row in read_rows(tmp_path / "out")] == [[], [2, 3, 2], [1], []]


def test_times_of_nodes_are_not_lost_in_silence(tmp_path):
    (tmp_path / "input").write_text("1,-1,0,1,0,-1\n1,0,1,1,3,-1\n")
    options = {"format": "edgelist", "decoder_options": {"temporal": True}}
    graphprep.convert(str(tmp_path / "input"), str(tmp_path / "store"), **options)
    nodes = [f"node column 0 {name!r}: the engine has no times of nodes" for name in ("created_at", "removed_at")]
    edges = [
        f"edge column 0:0:0 {name!r}: times of edges are written with --watermark" for name in ("created_at", "removed_at")
    ]
    for watermark, wanted in ((None, [*nodes, *edges]), (3, nodes)):
        given = {"target_options": {"watermark": watermark}}
        with pytest.raises(UsageError) as caught:
            graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "deepgnn", **given)
        assert list(caught.value.items) == wanted
        summary = graphprep.export(
            str(tmp_path / "store"), str(tmp_path / f"out{watermark}"), "deepgnn", drop_unsupported=True, **given
        )
        assert summary.dropped == tuple(wanted)


def test_of_two_creations_one_is_written():
    """A decoder of someone else may give an edge both."""
    both = tuple(ColumnSchema(role, "dense", "int64", role=role) for role in ("time", "created_at"))
    assert time_columns(both) == (both[1], None)
    assert time_columns(both[:1]) == (both[0], None)
    assert feature_slots(both) == ()
