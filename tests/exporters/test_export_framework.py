"""``export`` itself, with an exporter that writes what it reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import graphprep
from graphprep.exporters import registry
from graphprep.exporters.view.column_rows import Rows
from graphprep.model.errors import DataError, UsageError
from graphprep.model.export import ExportPlan, StoreNeed, Unsupported
from graphprep.model.schema import path_name
from graphprep.testing.export_contract import ExporterContract, make_store

pytestmark = pytest.mark.usefixtures("flags_named")


@dataclass(frozen=True)
class Everything:
    """Writes edges and dense columns as arrays, in any order."""

    name: ClassVar[str] = "everything"
    loads_in: ClassVar[str] = "numpy.load"
    carries: ClassVar[str] = "edges and dense columns"
    needs: ClassVar[str] = "edges by source (csr), by destination (csc) or by edge ID"
    root_file: ClassVar[str] = "done.json"
    node_ids: ClassVar[str] = "dense"

    order: str = "csc"

    def plan(self, metadata: Any) -> ExportPlan:
        named = zip(metadata.node_types, metadata.node_schemas, strict=True)
        lost = [
            Unsupported("node", name, one.name, "it holds texts")
            for name, schema in named
            for one in schema.columns
            if one.kind != "dense"
        ]
        by_id = self.order == "input"
        layouts = () if by_id else (self.order,)
        return ExportPlan(StoreNeed(layouts, self.order, by_id), tuple(lost), ("a note",))

    def export(self, graph: Any, out: Any) -> None:
        for number, name in enumerate(graph.metadata.node_types):
            for part in range(graph.metadata.num_parts):
                shape = (graph.metadata.num_nodes_per_chunk[number][part],)
                out.write_npy(f"{part}/{path_name(name)}/ids.npy", "int64", shape, graph.ids_in_part(number, part))
                for column in graph.node_columns(number):
                    path = f"{part}/{path_name(name)}/{path_name(column.name)}.npy"
                    values = Rows.of_nodes(graph, number, part).tensor(column.dtype, column.item_shape, _reader(column))
                    out.write_npy(path, column.dtype, values.shape, values.pieces())
        for edge in range(len(graph.metadata.edge_types)):
            for part in range(1 if self.order == "input" else graph.metadata.num_parts):
                self._write_edges(graph, out, edge, part)
        out.write("done.json", b"{}")

    def _write_edges(self, graph: Any, out: Any, edge: int, part: int) -> None:
        by_id = self.order == "input"
        size = graph.metadata.num_edges_per_type[edge] if by_id else graph.num_edges(edge, self.order, part)
        src_type, dst_type = graph.ends_of(edge)

        def pieces(field: str) -> Iterator[Any]:
            for piece in graph.input_edges(edge) if by_id else graph.edges(edge, self.order, part):
                number = {"src": src_type, "dst": dst_type}.get(field)
                values = getattr(piece, field)
                yield values if number is None else graph.to_ids(number, values)

        for field in ("src", "dst", "edge_ids"):
            out.write_npy(f"{part}/edges-{edge}/{field}.npy", "int64", (size,), pieces(field))
        for column in graph.edge_columns(edge):
            values = Rows.of_edges(graph, edge, self.order, part).tensor(column.dtype, column.item_shape, _reader(column))
            out.write_npy(f"{part}/edges-{edge}/{path_name(column.name)}.npy", column.dtype, values.shape, values.pieces())


def _reader(column: Any) -> Any:
    """Return what reads rows of a dense column."""
    return lambda rows, low, high: rows.cells(column, low, high).values.reshape(high - low, *column.item_shape)


@pytest.fixture(autouse=True)
def register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BUILT_IN, "everything", f"{__name__}:Everything")
    monkeypatch.setattr(registry, "find_exporter", _find(registry.find_exporter))


def _find(real: Any) -> Any:
    return lambda name: Everything if name == "everything" else real(name)


class TestInRows(ExporterContract):
    target = "everything"


class TestBySource(ExporterContract):
    target = "everything"
    options: ClassVar[dict[str, str]] = {"order": "csr"}


class TestByEdgeId(ExporterContract):
    target = "everything"
    options: ClassVar[dict[str, str]] = {"order": "input"}


def edges_of(out: Path, edge: int = 0) -> list[tuple[int, int, int, float]]:
    found = []
    for folder in sorted(out.glob(f"*/edges-{edge}")):
        arrays = [np.load(folder / f"{name}.npy").tolist() for name in ("src", "dst", "edge_ids", "weight")]
        found += list(zip(*arrays, strict=True))
    return found


@pytest.mark.parametrize("order", ["csc", "csr", "input"])
@pytest.mark.parametrize("graph", ["homogeneous", "several"])
def test_edges_are_those_of_the_input(graph: str, order: str, tmp_path: Path) -> None:
    store = make_store(graph, tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "everything", order=order)
    lines = [line.split() for line in (tmp_path / f"{graph}.txt").read_text().splitlines()]
    wanted = [(int(src), int(dst), number, float(weight)) for number, (src, dst, weight) in enumerate(lines)]
    found = edges_of(tmp_path / "out")
    assert sorted(found, key=lambda edge: edge[2]) == wanted
    if order == "input":
        assert found == wanted
    elif graph == "homogeneous":
        key = 1 if order == "csc" else 0
        assert found == sorted(wanted, key=lambda edge: (edge[key], edge[2]))


def test_another_partitioning_is_made_on_the_way(tmp_path: Path) -> None:
    store = make_store("homogeneous", tmp_path)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "everything", partitions=3, partition_by="modulo")
    assert summary.num_parts == 3
    ids = [np.load(tmp_path / "out" / str(part) / "_N" / "ids.npy").tolist() for part in range(3)]
    assert ids == [[0, 3, 6], [1, 4], [2, 5]]
    for part in range(3):
        assert set(np.load(tmp_path / "out" / str(part) / "edges-0" / "dst.npy") % 3) <= {part}


def test_raw_ids_that_are_no_positions_become_typed_with_a_map(tmp_path: Path) -> None:
    store = make_store("texts", tmp_path)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "everything")
    assert summary.ids == {"_N": "typed"}
    assert any("id_map/_N.parquet" in note for note in summary.notes)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "out" / "id_map" / "_N.parquet")
    assert table.to_pydict() == {"id": [0, 1, 2], "raw": ["ada", "bob", "eve"]}
    with pytest.raises(UsageError, match="--ids raw: the raw IDs of node type '_N' are texts"):
        graphprep.export(str(store), str(tmp_path / "other"), "everything", ids="raw")


def test_dtypes_of_columns(tmp_path: Path) -> None:
    store = make_store("homogeneous", tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "everything", feature_dtypes={"weight": "float16"})
    weight = np.load(tmp_path / "out" / "0" / "edges-0" / "weight.npy")
    assert weight.dtype == np.float16
    assert sorted(weight.tolist()) == [i / 4 for i in range(40)]
    with pytest.raises(UsageError, match="there is no column 'wieght'") as caught:
        graphprep.export(str(store), str(tmp_path / "b"), "everything", feature_dtypes={"wieght": "float16"})
    assert caught.value.fix == "did you mean 'weight'?"
    with pytest.raises(UsageError, match="target 'metis' leaves out column 'weight'"):
        graphprep.export(str(store), str(tmp_path / "b"), "metis", feature_dtypes={"weight": "int32"}, drop_unsupported=True)
    with pytest.raises(UsageError, match="column 'weight' cannot be 'thing'"):
        graphprep.export(str(store), str(tmp_path / "b"), "everything", feature_dtypes={"weight": "thing"})
    with pytest.raises(DataError, match=r"0\.25 does not fit int8|does not fit int8"):
        graphprep.export(str(store), str(tmp_path / "b"), "everything", feature_dtypes={"weight": "int8"})
    assert not (tmp_path / "b").exists()


def test_the_record_says_what_was_exported(tmp_path: Path) -> None:
    store = make_store("heterogeneous", tmp_path)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "everything", drop_unsupported=True)
    record = json.loads((tmp_path / "out" / "export.json").read_text())
    assert record["num_nodes_per_type"] == [9, 4]
    assert record["edge_type"] == ["user:buys:item", "user:knows:user"]
    assert record["ids"] == {"user": "raw", "item": "typed"}
    assert record["id_maps"] == ["id_map/item.npy"]
    assert np.load(tmp_path / "out" / "id_map" / "item.npy").tolist() == [100, 101, 102, 103]
    assert record["options"] == {"order": "csc"}
    assert record["dropped"] == list(summary.dropped) == ["node column user 'name': it holds texts"]
    assert summary.notes[0] == "a note"


def test_an_unknown_target_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no target named 'gtl'") as caught:
        graphprep.export(str(make_store("homogeneous", tmp_path)), str(tmp_path / "out"), "gtl")
    assert caught.value.fix.startswith("did you mean 'glt'? use one of deepgnn, ")


def test_a_store_is_not_replaced(tmp_path: Path) -> None:
    store = make_store("homogeneous", tmp_path)
    with pytest.raises(UsageError, match="is not what graphprep exported"):
        graphprep.export(str(store), str(make_store("several", tmp_path)), "everything", overwrite=True)
