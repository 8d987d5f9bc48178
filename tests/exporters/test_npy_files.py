"""``npy``: NumPy reads the graph, whatever its IDs, partitions and layouts, and columns of every kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes
from clients.graphs import GRAPHS, make_store

import graphprep
from graphprep.model.errors import UsageError
from graphprep.testing.export_contract import ExporterContract

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
HASHED, BY_SOURCE = {"partitions": 3, "partition_by": "hash"}, {"layout": "csr", "partitions": 2}


class TestNpyContract(ExporterContract):
    target = "npy"
    options: ClassVar = {"layouts": "coo,csc,csr"}


class Read:
    """What an export holds, found through its graph.json alone."""

    def __init__(self, out: Path) -> None:
        self.out, self.index = out, json.loads((out / "graph.json").read_text())

    def array(self, entry) -> np.ndarray:
        found = np.load(self.out / entry["path"], mmap_mode="r")
        assert (found.dtype.name, list(found.shape)) == (entry["dtype"], entry["shape"])
        return found

    def columns(self, entry) -> dict[str, np.ndarray]:
        return {one["name"]: self.array(one["arrays"]["values"]) for one in entry["columns"] if one["kind"] == "dense"}

    def raw(self, name: str) -> np.ndarray:
        path = self.out / "id_map" / f"{name}.npy"
        if path.exists():
            return np.load(path)
        path = path.with_suffix(".parquet")
        if path.exists():
            pandas = pytest.importorskip("pandas", reason="pandas is not installed")

            table = pandas.read_parquet(path)
            assert table["id"].tolist() == list(range(len(table)))
            return np.array(table["raw"].tolist(), object)
        return np.arange(self.index["nodes"][name]["num_nodes"])


NO_IDS = {"edge_ids": False, **HASHED}
CASES = [(name, *case) for name in GRAPHS for case in (("coo,csc,csr", HASHED), ("coo", BY_SOURCE))]


@pytest.mark.parametrize(("name", "layouts", "options"), [*CASES, ("homogeneous", "coo,csr", NO_IDS)], ids=str)
def test_numpy_has_the_graph(name, layouts, options, tmp_path):
    graph = GRAPHS[name](**options)
    graphprep.export(str(make_store(graph, tmp_path)), str(tmp_path / "out"), "npy", layouts=layouts)
    read = Read(tmp_path / "out")
    has_ids = options.get("edge_ids", True)
    for edge_type in graph.edges:
        wanted, entry = graph_edges(graph, edge_type), read.index["edges"][":".join(edge_type)]
        src, dst = (read.array(entry["coo"][end]) for end in ("src", "dst"))
        raw = [read.raw(end) for end in edge_type[::2]]
        found = Rows(raw[0][src], raw[1][dst], np.arange(src.size), read.columns(entry))
        assert checksum(edge_type, found if has_ids else found.only(found.columns, edge_ids=False)) == checksum(
            edge_type, wanted if has_ids else wanted.only(wanted.columns, edge_ids=False)
        )
        for layout in {"csc", "csr"} & set(layouts.split(",")):
            arrays = {key: read.array(one) for key, one in entry[layout].items()}
            owners = np.repeat(np.arange(arrays["indptr"].size - 1), np.diff(arrays["indptr"]))
            ends = (arrays["indices"], owners) if layout == "csc" else (owners, arrays["indices"])
            assert (ends[0] == src[arrays["edge_ids"]]).all() and (ends[1] == dst[arrays["edge_ids"]]).all()
            assert sorted(arrays["edge_ids"].tolist()) == list(range(src.size))
    for node_type, nodes in graph.nodes.items():
        wanted, entry = graph_nodes(graph, node_type), read.index["nodes"][node_type]
        names = [one for one in wanted.columns if one != nodes.split]
        found = Rows(read.raw(node_type), columns={one: read.columns(entry)[one] for one in names})
        assert checksum(node_type, found) == checksum(node_type, wanted.only(names))


@pytest.mark.parametrize("case", ["shop_temporal_json", "shop_edgelist_both_parts", "people_tables", "shop_json_roles"])
def test_columns_of_every_kind_are_those_of_the_store(case, tmp_path):
    store, out = GOLDEN / case / "store", tmp_path / "out"
    graphprep.export(str(store), str(out), "npy", ids="typed")
    read, graph = Read(out), graphprep.load(str(store))
    kinds = set()
    for name, entry in read.index["nodes"].items():
        for column in entry["columns"]:
            kinds.add(column["kind"])
            arrays = {key: read.array(one) for key, one in column["arrays"].items()}
            present = graph.present(name, column["name"])
            assert arrays.pop("present", None) is None if present is None else (arrays.pop("present") == present).all()
            stored = graph.column(name, column["name"])
            if column.get("role") == "label" and present is not None:
                stored = np.where(present, stored, -1)  # what trainers take for no label
            for key, array in arrays.items():
                wanted = stored if column["kind"] == "dense" else getattr(stored, key)
                np.testing.assert_array_equal(array, wanted, err_msg=f"{name} {column['name']} {key}")
    for name, entry in read.index["edges"].items():
        order = np.argsort(graph.edges(name, order="rows")[2])
        for column in entry["columns"]:
            stored = graph.column(name, column["name"])
            arrays = {key: read.array(one) for key, one in column["arrays"].items()}
            if column["kind"] == "dense":
                if column.get("role") == "label" and (present := graph.present(name, column["name"])) is not None:
                    stored = np.where(present, stored, -1)
                np.testing.assert_array_equal(arrays["values"], stored[order])
            elif column["kind"] in ("ragged", "binary"):
                offsets = arrays["offsets"]
                for at, row in enumerate(order.tolist()):
                    wanted = stored.values[stored.offsets[row] : stored.offsets[row + 1]]
                    assert arrays["values"][offsets[at] : offsets[at + 1]].tolist() == wanted.tolist()
    if case == "shop_temporal_json":
        assert kinds == {"dense", "ragged", "sparse", "binary", "temporal"}


def test_layouts_that_are_none(tmp_path):
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(GOLDEN / "karate_csv" / "store"), str(tmp_path / "out"), "npy", layouts="coo,dense")
    assert str(caught.value) == "option layouts: found 'coo,dense'\n  fix: use some of coo, csc, csr"


@pytest.mark.parametrize("name", ["heterogeneous", "empty_type", "few_nodes", "multi_edge"])
def test_rows_without_edges_are_left_out(name, tmp_path, monkeypatch):
    monkeypatch.setattr("graphprep.exporters.plain.npy_files._STEP", 5)
    store = make_store(GRAPHS[name](), tmp_path)
    for folder, given in (("all", {}), ("some", {"hypersparse": True})):
        graphprep.export(store, tmp_path / folder, "npy", layouts="csc,csr", **given)
    every, some = Read(tmp_path / "all"), Read(tmp_path / "some")
    assert every.index["edges"].keys() == some.index["edges"].keys()
    for edge_type, entry in some.index["edges"].items():
        for layout in ("csc", "csr"):
            rows, indptr = some.array(entry[layout]["rows"]), some.array(entry[layout]["indptr"])
            counts = np.diff(every.array(every.index["edges"][edge_type][layout]["indptr"]))
            assert rows.tolist() == np.flatnonzero(counts).tolist()
            assert indptr.tolist() == [0, *np.cumsum(counts[counts > 0]).tolist()]
            for array in ("indices", "edge_ids"):
                assert (
                    some.array(entry[layout][array]).tolist()
                    == every.array(every.index["edges"][edge_type][layout][array]).tolist()
                )
    with pytest.raises(UsageError, match="option hypersparse is of csc and csr"):
        graphprep.export(store, tmp_path / "none", "npy", hypersparse=True)
