"""The contract of decoders of tables, over every reader that we ship, and over broken ones."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tables_read import node_config

from graphprep.decoders.arrays.decoder import ArraysDecoder
from graphprep.decoders.chunked.decoder import ChunkedDecoder
from graphprep.decoders.configs.data_arrays import DataDecoder, attach_data
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.decoders.edges.triples import TriplesDecoder
from graphprep.decoders.tables.decoder import TablesDecoder
from graphprep.model.errors import DecodeError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.testing.table_contract import TableContract


def nulls(numbers, make=int, kind=None):
    """The values that numbers stand for, integers if nothing else; None where they are faulty."""
    return pa.array([None if number < 0 else make(number) for number in numbers], kind or pa.int64())


def beside(numbers):
    """Columns of numbers and texts, some of them absent."""
    return {
        "score": pa.array([number / 4 for number in numbers], pa.float64()),
        "word": pa.array([None if number % 3 == 0 else f"word {number}" for number in numbers], pa.string()),
    }


def write_parquet(path, columns):
    """Write a Parquet file of row groups that no batch fits."""
    pq.write_table(pa.table(columns), path, row_group_size=5)
    return [str(path)]


class TestParquetEdges(TableContract):
    message = "field 'dst' is empty"
    column = "dst"

    def make(self):
        return EdgesDecoder(weight_col="score")

    def write(self, folder, numbers):
        src = [number % 4 for number in numbers]
        return write_parquet(folder / "e.parquet", {"src": pa.array(src, pa.int64()), "dst": nulls(numbers), **beside(numbers)})


class TestParquetNames(TestParquetEdges):
    message = "field 'dst' is not UTF-8"
    column = "b"

    def make(self):
        return EdgesDecoder(src_col="a", dst_col="b", id_type="string")

    def write(self, folder, numbers):
        names = [b"\xff" if number < 0 else b"n%d" % number for number in numbers]
        return write_parquet(
            folder / "e.parquet", {"a": pa.array(["x"] * len(numbers), pa.string()), "b": pa.array(names, pa.binary())}
        )


class TestParquetTriples(TableContract):
    message = "relation"
    column = "rel"

    def make(self):
        return TriplesDecoder(id_type="string")

    def write(self, folder, numbers):
        names = pa.array([f"n{number}" for number in numbers], pa.string())
        return write_parquet(
            folder / "t.parquet", {"head": names, "rel": nulls(numbers, lambda n: f"r{n % 3}", pa.string()), "tail": names}
        )


class OfGraph(TableContract):
    """Tables of a graph config."""

    def make(self):
        return TablesDecoder()

    def config(self, urls):
        edges = EdgeTable("n", "e", "n", TableConfig(files=tuple(urls)))
        return GraphConfig(nodes=(NodeTable("n", TableConfig(), None),), edges=(edges,))

    def plan(self, storage, urls):
        decoder = self.make()
        return decoder, decoder.plan_graph(storage, self.config(urls))


class TestParquetTable(OfGraph):
    message = "field 'dst' is empty"
    column = "dst"

    def write(self, folder, numbers):
        src = [number % 4 for number in numbers]
        return write_parquet(folder / "e.parquet", {"src": pa.array(src, pa.int64()), "dst": nulls(numbers), **beside(numbers)})


class TestParquetNodes(TestParquetTable):
    message = "field 'id' is empty"
    column = "id"

    def config(self, urls):
        return node_config(*urls)

    def write(self, folder, numbers):
        return write_parquet(folder / "n.parquet", {"id": nulls(numbers), **beside(numbers)})


class TestArrowFile(TestParquetTable):
    def write(self, folder, numbers):
        src = [number % 4 for number in numbers]
        table = pa.table({"src": pa.array(src, pa.int64()), "dst": nulls(numbers), **beside(numbers)})
        with pa.ipc.new_file(str(folder / "e.arrow"), table.schema) as writer:
            writer.write_table(table, max_chunksize=6)
        return [str(folder / "e.arrow")]


class TestArrowStream(TestParquetTable):
    def write(self, folder, numbers):
        src = [number % 4 for number in numbers]
        table = pa.table({"src": pa.array(src, pa.int64()), "dst": nulls(numbers), **beside(numbers)})
        with pa.ipc.new_stream(str(folder / "e.arrows"), table.schema) as writer:
            writer.write_table(table, max_chunksize=6)
        return [str(folder / "e.arrows")]


class TestArchiveOfColumns(OfGraph):
    message = "must not be negative, found -1"
    column = "id"

    def config(self, urls):
        return node_config(*urls)

    def write(self, folder, numbers):
        ids = np.array(numbers, np.int64)
        np.savez(folder / "n.npz", id=ids, x=np.stack([ids, ids * 2], axis=1).astype(np.float32))
        return [str(folder / "n.npz")]


class TestChunkedNumpyEdges(TableContract):
    message = "destination id -1 of type 'n' is out of range: valid ids are in [0, 20)"
    column = "1"
    test_all_other_rows_are_left_where_faults_are_skipped = None  # metadata.json says how many there are

    def make(self):
        return ChunkedDecoder()

    def edges(self, folder, pairs):
        np.save(folder / "edges.npy", pairs)
        return "numpy", "edges.npy"

    def write(self, folder, numbers):
        pairs = np.array([[number % 4 if number >= 0 else 3, number] for number in numbers], np.int64).reshape(-1, 2)
        name, file = self.edges(folder, pairs)
        metadata = {
            "node_type": ["n"],
            "num_nodes_per_type": [20],
            "edge_type": ["n:e:n"],
            "num_edges_per_type": [len(numbers)],
            "edges": {"n:e:n": {"format": {"name": name}, "data": [file]}},
        }
        (folder / "metadata.json").write_text(json.dumps(metadata))
        return [str(folder)]


class TestChunkedParquetEdges(TestChunkedNumpyEdges):
    column = "d"

    def edges(self, folder, pairs):
        write_parquet(folder / "edges.parquet", {"s": pairs[:, 0], "d": pairs[:, 1]})
        return "parquet", "edges.parquet"


class TestChunkedFeature(TestChunkedNumpyEdges):
    """A Parquet feature, of lists."""

    message = "a list holds a null"
    column = "x"

    def is_mine(self, url):
        return url.endswith(".parquet")

    def write(self, folder, numbers):
        lists = [[1.5, None] if number < 0 else [number, -number] for number in numbers]
        write_parquet(folder / "x.parquet", {"x": pa.array(lists, pa.list_(pa.float32()))})
        feature = {"format": {"name": "parquet"}, "data": ["x.parquet"]}
        metadata = {"node_type": ["n"], "num_nodes_per_type": [len(numbers)], "edge_type": [], "edges": {}}
        (folder / "metadata.json").write_text(json.dumps({**metadata, "node_data": {"n": {"x": feature}}}))
        return [str(folder)]


class TestPairs(TableContract):
    message = "field 'dst' must not be negative, found -1"

    def make(self):
        return ArraysDecoder()

    def write(self, folder, numbers):
        np.save(folder / "pairs.npy", np.array([[number % 4, number] for number in numbers], np.int64).reshape(-1, 2))
        return [str(folder / "pairs.npy")]


class TestRows(TestPairs):
    def write(self, folder, numbers):
        np.save(folder / "pairs.npy", np.array([[number % 4 for number in numbers], numbers], ">i4"))
        return [str(folder / "pairs.npy")]


class TestTwoArraysAndWeights(TestPairs):
    message = "weight"

    def write(self, folder, numbers):
        weights = [1e300 if number < 0 else number / 4 for number in numbers]
        ids = np.abs(np.array(numbers, np.int64))
        np.savez_compressed(folder / "edges.npz", src=ids, dst=ids % 3, weight=np.array(weights, np.float64))
        return [str(folder / "edges.npz")]


class TestMatrix(TestPairs):
    """Faults of a matrix stand among the entries: a column that it does not have."""

    message = "field 'indices' must be below 20"

    def write(self, folder, numbers):
        rows = np.maximum.accumulate([0, *numbers])[1:]
        indptr = np.cumsum(np.bincount(rows + 1, minlength=21))
        columns = np.array([20 if number < 0 else number for number in numbers], np.int32)
        data = np.array(numbers, np.float32)
        np.savez(folder / "m.npz", format=b"csr", shape=(20, 20), data=data, indices=columns, indptr=indptr)
        return [str(folder / "m.npz")]


class TestColumns(TestPairs):
    """CSC, in files of their own: entry after entry of a column, its sources in ``indices``."""

    message = "field 'indices' must be below 20"

    def make(self):
        return ArraysDecoder(input_layout="csc")

    def write(self, folder, numbers):
        columns = np.maximum.accumulate([0, *numbers])[1:]
        np.save(folder / "indptr.npy", np.cumsum(np.bincount(columns + 1, minlength=21)))
        np.save(folder / "indices.npy", np.array([20 if number < 0 else number for number in numbers], np.uint16))
        return [str(folder / name) for name in ("indices.npy", "indptr.npy")]


class TestAttachedByRow(TableContract):
    """A table whose rows are numbered: none of them can be skipped."""

    message = "expected 2 columns, found 3"
    test_all_other_rows_are_left_where_faults_are_skipped = None

    def make(self):
        return DataDecoder(EdgesDecoder())

    def plan(self, storage, urls):
        decoder = self.make()
        data = DataArray("", "x", urls[1])
        return decoder, attach_data(storage, decoder.plan(storage, urls[:1]), [data], [])

    def write(self, folder, numbers):
        (folder / "edges.txt").write_text("0 1\n")
        lines = ["1,2,3" if number < 0 else f"{number},{number / 4}" for number in numbers]
        (folder / "x.csv").write_text("x,y\n" + "".join(f"{line}\n" for line in lines))
        return [str(folder / "edges.txt"), str(folder / "x.csv")]

    def ends_of_places(self, rows):
        return [f"x.csv:{row + 2}:5" for row in rows]


class TestRowsOfIds(TableContract):
    """An array whose rows belong to the IDs in another."""

    message = "field 'seed' must not be negative, found -1"

    def make(self):
        return DataDecoder(EdgesDecoder())

    def plan(self, storage, urls):
        decoder = self.make()
        sources = decoder.plan(storage, urls[:1])
        data = DataArray("", "x", urls[1], ids_file=urls[2])
        return decoder, attach_data(storage, sources, [data], [])

    def write(self, folder, numbers):
        (folder / "edges.txt").write_text("0 1\n")
        np.save(folder / "ids.npy", np.array(numbers, np.int64))
        np.save(folder / "values.npy", np.array([[number, -number] for number in numbers], np.float32).reshape(-1, 2))
        return [str(folder / name) for name in ("edges.txt", "values.npy", "ids.npy")]


class _ForgetsItsStop(EdgesDecoder):
    """Violates the contract: reads a span to the end of the file, wherever it is said to stop."""

    def read(self, handle, span, max_rows, places=False):
        return super().read(handle, replace(span, stop=-1), max_rows, places)


@pytest.mark.parametrize("faults", [(7,), (3, 11, 12)])
def test_contract_catches_a_decoder_that_breaks_it(tmp_path, faults):
    class Broken(TestParquetEdges):
        def make(self):
            return _ForgetsItsStop(weight_col="score")

    with pytest.raises((AssertionError, DecodeError)):
        Broken().test_all_other_rows_are_left_where_faults_are_skipped(tmp_path, faults)
