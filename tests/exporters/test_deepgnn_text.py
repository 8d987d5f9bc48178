"""The exporters of DeepGNN's text formats: a store, its lines, and the store of these are the same bytes."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from clients.deepgnn_graphs import edgelist, json_lines, random_graph, tsv
from clients.graphs import GRAPHS, make_store
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.exporters.deepgnn.texts import Texts, find_odd_escapes, join_texts, number_texts
from graphprep.model.errors import DataError
from graphprep.testing.export_contract import ExporterContract

FILES = {"edgelist": "graph.csv", "json": "graph.json", "tsv": "graph.tsv"}


class TestEdgeListExport(ExporterContract):
    target = "deepgnn-edgelist"


class TestJsonExport(ExporterContract):
    target = "deepgnn-json"


class TestTsvExport(ExporterContract):
    target = "deepgnn-tsv"


def arrays(store: Path) -> dict[str, bytes]:
    files = (path for path in store.rglob("*") if path.is_file() and path.name != "provenance.json")
    return {str(path.relative_to(store)): path.read_bytes() for path in files}


def round_trip(folder: Path, name: str, text: str, options: dict | None = None, **export) -> tuple[Path, str]:
    """Convert, export and convert again; the stores must be the same. Returns the first, and the lines."""
    folder.mkdir(parents=True, exist_ok=True)
    options = options or {}
    (folder / "input").write_text(text, encoding="utf-8", newline="")
    graphprep.convert(str(folder / "input"), str(folder / "store"), format=name, **options)
    graphprep.export(str(folder / "store"), str(folder / "out"), f"deepgnn-{name}", **export)
    file = folder / "out" / FILES[name]
    graphprep.convert(str(file), str(folder / "again"), format=name, **options)
    found, wanted = arrays(folder / "again"), arrays(folder / "store")
    assert sorted(found) == sorted(wanted)
    assert [path for path in wanted if found[path] != wanted[path]] == []
    assert len(wanted) > 3
    return folder / "store", file.read_text(encoding="utf-8")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("name", "write", "kinds"), [("edgelist", edgelist, "dst"), ("json", json_lines, "dstmh"), ("tsv", tsv, "dt")]
)
def test_stores_come_back(name, write, kinds, seed, tmp_path):
    round_trip(tmp_path, name, write(random_graph(seed, kinds, dyadic=seed % 2 == 0)))


@pytest.mark.parametrize(("name", "write"), [("edgelist", edgelist), ("json", json_lines)])
def test_times_and_partitions(name, write, tmp_path):
    options = {"partitions": 3, "partition_by": "hash"} | (
        {"decoder_options": {"temporal": True}} if name == "edgelist" else {}
    )
    graph = random_graph(5, "dst", dated=True)
    for node in graph:
        node.edges.sort(key=lambda edge: (edge.type, edge.dst))
    round_trip(tmp_path, name, write(graph, dated=True), options)


@pytest.mark.parametrize("name", ["shop.edgelist", "shop.jsonl", "shop.tsv", "town.jsonl"])
def test_edges_keep_their_order_if_asked(name, sample_data, tmp_path):
    """Nodes of the samples are sorted, the edges of some are not."""
    text = (sample_data / name.split(".")[0] / name).read_text(encoding="utf-8")
    format_name = {"edgelist": "edgelist", "jsonl": "json", "tsv": "tsv"}[name.split(".")[1]]
    round_trip(tmp_path, format_name, text, edge_order="stored")


def test_edgelist_of_all_dtypes(tmp_path):
    """Bools, complex numbers, blanks at the ends of texts, commas, double backslashes, empty slots and texts."""
    text = "1,-1,0,1,bool,3,0,1,1,complex64,2,1+2j,-0.5-1e-7j,complex128,1,nanj,binary,1, a\\,\\,b \n"
    text += "2,-1,0,2.5,bool,0,float32,0,binary,1,,binary,1,c:\\\\\n2,0,1,-0.0,float16,2,0.1,-0\n2,0,2,nan,float16,1,inf,int8,0,int8,0\n"
    _, lines = round_trip(tmp_path, "edgelist", text)
    assert lines.splitlines()[0] == "1,-1,0,1,bool,3,0,1,1,complex64,2,1+2j,-0.5-1e-7j,complex128,1,0+nanj,binary,1, a\\,\\,b "
    assert lines.splitlines()[-1] == "2,0,2,nan,float16,1,inf,int8,0,int8,0"


def test_json_of_all_shapes(tmp_path):
    """Texts with anything in them, numbers in three dimensions, ends of dates, slots that are only stated."""
    record = {
        "node_id": 3, "node_type": 0, "node_weight": 0.1, "created_at": 5, "removed_at": 0,
        "binary_feature": {"0": 'a"\\\n\t\u0001é\x85\u2028\u2029\u2027', "9": ""},
        "double_feature": {"1": [[[1.5, -0.0], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [1e300, 1]]], "4": [1e22]},
        "float_feature": {"2": [{"values": [1, 2], "created_at": 7, "removed_at": 9}, {"values": [], "created_at": 8}]},
        "sparse_int8_feature": {"3": {"coordinates": [[1, 2], [3, 4]], "values": [-1, 1]}, "12": {"coordinates": [], "values": []}},
        "sparse_float_feature": {"11": {"coordinates": [7, 2**62], "values": [0.5, 1]}},
        "edge": [{"src_id": 3, "dst_id": 3, "edge_type": 1, "weight": 2, "removed_at": 8, "float16_feature": {"5": [1, None]}}],
    }  # fmt: skip
    store, lines = round_trip(tmp_path, "json", json.dumps(record, ensure_ascii=True))
    assert np.load(store / "part-00000/nodes/0/num_slots.npy").tolist() == [13]
    written = json.loads(lines)
    assert written["binary_feature"]["0"] == record["binary_feature"]["0"]
    assert len(lines.splitlines()) == 1  # Python, too, cuts at the line ends of Unicode


def test_tsv_skips_slots(tmp_path):
    _, lines = round_trip(tmp_path, "tsv", "1\t0\t1\t;;f:1 2;;\t1,0,1,;b: x y \n2\t0\t0.5\t\t\n")
    assert lines == "1\t0\t1\t;;f:1 2;;\t1,0,1,;b: x y \n2\t0\t0.5\t\t\n"


def test_created_nodes(tmp_path):
    """EdgeList has edges of nodes without a line; in the others the node gets one."""
    create = {"on_missing_node": "create", "missing_node_type": "0"}
    text = "1,-1,0,1\n1,0,2,1\n1,0,9,1\n7,0,1,1\n"
    _, lines = round_trip(tmp_path / "a", "edgelist", text, create)
    assert lines == text
    for name in ("json", "tsv"):
        summary = graphprep.export(str(tmp_path / "a" / "store"), str(tmp_path / name), f"deepgnn-{name}")
        assert any("created" in note for note in summary.notes)
        ids = [
            line.replace("\t", ",").split(",")[0].removeprefix('{"node_id": ')
            for line in (tmp_path / name / FILES[name]).open()
        ]
        assert ids == ["1", "7"]


@pytest.mark.parametrize(
    ("name", "write", "kinds"), [("edgelist", edgelist, "dst"), ("json", json_lines, "dstmh"), ("tsv", tsv, "dt")]
)
def test_long_rows(name, write, kinds, tmp_path, monkeypatch):
    """Rows of three edges are long ones, and give the same lines."""
    from graphprep.rewrite import run as store_run

    graph = random_graph(6, kinds)
    for node in graph:
        random.Random(node.id).shuffle(node.edges)
        node.edges.sort(key=lambda edge: edge.type)
    (tmp_path / "input").write_text(write(graph), encoding="utf-8")
    graphprep.convert(str(tmp_path / "input"), str(tmp_path / "store"), format=name)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "whole"), f"deepgnn-{name}")
    real = store_run.room_for
    monkeypatch.setattr(store_run, "room_for", lambda *given: dataclasses.replace(real(*given), piece_bytes=128, held_bytes=0))
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "pieces"), f"deepgnn-{name}")
    assert (tmp_path / "pieces" / FILES[name]).read_bytes() == (tmp_path / "whole" / FILES[name]).read_bytes()


@pytest.mark.parametrize("name", FILES)
def test_names_go_by_homo_ids(name, tmp_path):
    store = make_store(GRAPHS["string_ids"](), tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), f"deepgnn-{name}", drop_unsupported=True)
    assert json.loads((tmp_path / "out" / "types.json").read_text())["node_types"]["shop"]["first_id"] == 20
    names = {kind: pq.read_table(tmp_path / f"out/id_map/{kind}.parquet").column(1).to_pylist() for kind in ("user", "shop")}
    for kind, size in (("user", 20), ("shop", 4)):
        found = graphprep.ids(str(store), list(range(size)), type_=kind, from_="typed", to="raw")
        assert names[kind] == list(found)
    summary = graphprep.convert(str(tmp_path / "out" / FILES[name]), str(tmp_path / "again"), format=name)
    assert (dict(summary.num_nodes), sum(summary.num_edges.values())) == ({"0": 20, "1": 4}, 105)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("tsv", "a:b", "a character that TSV cannot hold"),
        ("tsv", "a\tb", "a character that TSV cannot hold"),
        ("edgelist", "a\nb", "a character that EdgeList cannot hold"),
        ("edgelist", "a\u2028b", "a character that EdgeList cannot hold"),
        ("edgelist", "a\\", "a backslash before a comma or at its end"),
        ("edgelist", "a\\\\\\,", "a backslash before a comma or at its end"),
    ],
)
def test_texts_that_a_format_cannot_hold(name, text, message, tmp_path):
    records = [
        {"node_id": 4, "node_type": 0, "node_weight": 1, "binary_feature": {"0": "fine"}, "edge": []},
        {"node_id": 8, "node_type": 0, "node_weight": 1, "binary_feature": {"0": text}, "edge": []},
    ]
    (tmp_path / "input").write_text("".join(json.dumps(record) + "\n" for record in records))
    graphprep.convert(str(tmp_path / "input"), str(tmp_path / "store"), format="json")
    with pytest.raises(DataError) as caught:
        graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), f"deepgnn-{name}")
    assert caught.value.message == f"column 'feat_0' has {message}"
    assert caught.value.place == "node 8"
    assert not (tmp_path / "out").exists()


def test_bytes_that_are_no_text(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table({"src": [1, 2], "dst": [2, 1], "blob": pa.array([b"ok", b"\xff"], pa.binary())}), tmp_path / "e.parquet"
    )
    graphprep.convert(str(tmp_path / "e.parquet"), str(tmp_path / "store"))
    with pytest.raises(DataError, match="bytes that are not UTF-8") as caught:
        graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "deepgnn-json")
    assert caught.value.place == "edge from 2 to 1"


def test_what_is_not_carried(tmp_path):
    (tmp_path / "input").write_text("1,-1,0,1,3,4,bool,1,1,complex64,1,2,int8,1/0,5,6\n")
    graphprep.convert(str(tmp_path / "input"), str(tmp_path / "store"), format="edgelist", decoder_options={"temporal": True})
    dropped = {
        name: [one.split(":")[0] for one in graphprep.export(str(tmp_path / "store"), str(tmp_path / name), f"deepgnn-{name}", drop_unsupported=True).dropped]
        for name in FILES
    }  # fmt: skip
    features = ["node column 0 'feat_0'", "node column 0 'feat_1'"]
    times = ["node column 0 'created_at'", "node column 0 'removed_at'"]
    assert dropped == {"edgelist": [], "json": features, "tsv": [*times, *features, "node column 0 'feat_2'"]}


def test_the_time_of_an_edge_is_its_creation(tmp_path):
    """A missing one is what is asked for; TSV has none."""
    (tmp_path / "edges.csv").write_text("src,dst,at\n1,0,30\n1,0,\n1,1,-7\n")
    graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "store"), format="edges", decoder_options={"time_col": "at"})
    for name in FILES:
        options = {"drop_unsupported": True, "missing_time": "0"}
        found = graphprep.export(str(tmp_path / "store"), str(tmp_path / name), f"deepgnn-{name}", **options)
        assert found.dropped == (("edge column _N:_E:_N 'time': TSV has no times",) if name == "tsv" else ())
        assert any("is_temporal=True" in note for note in found.notes) == (name == "edgelist")
        assert json.loads((tmp_path / name / "types.json").read_text())["edge_types"]["_N:_E:_N"]["slots"] == {}
    lines = (tmp_path / "edgelist" / "graph.csv").read_text()
    assert lines == "0,-1,0,1,0,-1\n1,-1,0,1,0,-1\n1,0,0,1,30,-1\n1,0,0,1,0,-1\n1,0,1,1,-7,-1\n"
    node = json.loads((tmp_path / "json" / "graph.json").read_text().splitlines()[1])
    assert [(edge["dst_id"], edge["created_at"], edge["removed_at"]) for edge in node["edge"]] == [
        (0, 30, -1), (0, 0, -1), (1, -7, -1),
    ]  # fmt: skip
    assert (tmp_path / "tsv" / "graph.tsv").read_text() == "0\t0\t1\t\t\n1\t0\t1\t\t0,0,1,|0,0,1,|1,0,1,\n"


# ---------------------------------------------------------------------------------------------------- texts


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_numbers_come_back(data):
    dtype = data.draw(
        st.sampled_from(["float16", "float32", "float64", "int8", "int64", "uint64", "complex64", "complex128", "bool"])
    )
    raw = data.draw(st.binary(max_size=200))
    kind = np.dtype(dtype)
    values = np.frombuffer(raw[: len(raw) // kind.itemsize * kind.itemsize], kind)
    if dtype == "bool":
        values = values.view(np.uint8) % 2 == 1
    found = number_texts(values)
    texts = [
        found.source[start : start + size].tobytes().decode() for start, size in zip(found.starts, found.sizes, strict=True)
    ]
    again = np.array(
        [complex(text) if kind.kind == "c" else float(text) if kind.kind == "f" else int(text) for text in texts], kind
    )
    assert np.array_equal(again, values, equal_nan=kind.kind in "fc")
    if kind.kind == "f":
        assert (np.signbit(again) == np.signbit(values))[~np.isnan(values)].all()
        assert [json.loads(text) for text in _decoded(number_texts(values, as_json=True))] == pytest.approx(
            values.tolist(), nan_ok=True
        )


def _decoded(texts: Texts) -> list[str]:
    return [
        texts.source[start : start + size].tobytes().decode() for start, size in zip(texts.starts, texts.sizes, strict=True)
    ]


@given(
    fields=st.lists(st.lists(st.text("ab,é", max_size=4), min_size=3, max_size=3), max_size=4),
    counts=st.sampled_from([(3,), (0, 2, 1), (1, 1, 1)]),
)
def test_joins(fields, counts):
    texts = [
        Texts.packed(np.frombuffer("".join(field).encode(), np.uint8), np.array([len(one.encode()) for one in field], np.int64))
        for field in fields
    ]
    found = join_texts(b"<", *texts, b">", size=3)
    wanted = ["<" + "".join(field[i] for field in fields) + ">" for i in range(3)]
    assert _decoded(found) == wanted
    assert _decoded(found.take(np.array([2, 0]))) == [wanted[2], wanted[0]]
    ends = np.cumsum(counts)
    assert _decoded(found.grouped(np.array(counts))) == [
        "".join(wanted[end - count : end]) for count, end in zip(counts, ends, strict=True)
    ]


@given(texts=st.lists(st.text("\\,a", max_size=6), max_size=5))
def test_odd_escapes(texts):
    """What a reader makes of a text whose commas were escaped: the first that does not come back."""
    packed = Texts.packed(np.frombuffer("".join(texts).encode(), np.uint8), np.array([len(text) for text in texts], np.int64))

    def comes_back(text: str) -> bool:
        pieces = [*text.replace(",", "\\,").split(","), "behind"]
        out = pieces.pop(0)
        while out and out.replace("\\\\", "")[-1:] == "\\":
            out = out[:-1] + "," + pieces.pop(0)
        return out == text and pieces == ["behind"]

    bad = [i for i, text in enumerate(texts) if not comes_back(text)]
    assert find_odd_escapes(packed, ord("\\"), ord(",")) == (bad[0] if bad else -1)
