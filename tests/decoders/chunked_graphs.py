"""Chunked graphs for tests: a naive writer, and a naive stand-in for the decode stage."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphprep.decoders.chunked.decoder import ChunkedDecoder
from graphprep.model.errors import DataError, DecodeError
from graphprep.storage.read.spans import place_of, text_blocks
from graphprep.storage.read.urls import Storage


def parquet_keeps(array):
    """Return whether Parquet of this pyarrow gives an array back: 22 and older cannot read nulls of fixed-size lists."""
    table = pa.table({"x": array})
    sink = io.BytesIO()
    try:
        pq.write_table(table, sink)
        return pq.read_table(sink).equals(table)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False


NULL_VECTOR = pa.array([None, [5, 6]], pa.list_(pa.int64(), 2))
null_vectors = pytest.mark.skipif(not parquet_keeps(NULL_VECTOR), reason="Parquet of this pyarrow keeps no null vectors")


def rows_of(folder, block_bytes=1 << 20, max_rows=1 << 20, places=False):
    """Yield (span, rows) of a whole graph; decode errors become DataErrors as the decode stage words them."""
    decoder = ChunkedDecoder()
    with Storage() as storage:
        for span in decoder.plan(storage, [str(folder)]).spans:
            if span.kind == "text":
                for block in text_blocks(storage, span, block_bytes):
                    try:
                        yield span, decoder.decode(block, places)
                    except DecodeError as error:
                        raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from error
            else:
                with storage.open(span.url) as handle:
                    before = 0
                    try:
                        for rows in decoder.read(handle, span, max_rows, places):
                            before += rows.num_records
                            yield span, rows
                    except DecodeError as error:
                        place = f"{span.url}: row {before + error.at}, column {error.column!r}"
                        raise DataError(error.message, place=place, fix=error.fix) from error


def load(folder, block_bytes=1 << 20, max_rows=1 << 20):
    """Return ({relation: [m, 2]}, {(owner, column): list of one array (or None) a row})."""
    with Storage() as storage:
        sources = ChunkedDecoder().plan(storage, [str(folder)])
    edges = {relation: [np.zeros((0, 2), np.uint64)] for relation in sources.edge_types}
    features: dict[tuple[object, str], dict[int, np.ndarray]] = {}
    for _, rows in rows_of(folder, block_bytes, max_rows):
        if rows.edges is not None:
            assert rows.edges.relations.tolist() == [0] * rows.edges.num_rows
            assert rows.num_records == rows.edges.num_rows
            edges[rows.edges.relation_names[0]].append(np.stack([rows.edges.src, rows.edges.dst], axis=1))
        for aligned in rows.aligned:
            chunk = aligned.chunk
            column = features.setdefault((aligned.owner, chunk.key.name), {})
            ends = np.cumsum(chunk.counts)
            assert chunk.values.dtype == chunk.key.dtype
            assert rows.num_records == aligned.num_rows
            for row, count, end in zip(chunk.rows.tolist(), chunk.counts.tolist(), ends.tolist(), strict=True):
                shape = (count,) if chunk.item_shape is None else chunk.item_shape
                assert aligned.start + row not in column
                column[aligned.start + row] = chunk.values[end - count : end].reshape(shape)
    return {relation: np.concatenate(pieces) for relation, pieces in edges.items()}, features


def write(folder: Path, metadata: dict, name: str = "metadata.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(metadata, indent=1))
    return folder


CSV = {"name": "csv", "delimiter": ","}
NPY = {"name": "numpy"}
PARQUET = {"name": "parquet"}


def shop(folder: Path, **changes: object) -> dict:
    """Write a small graph: two users, three items, two edges; returns its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "buys.csv").write_text("0,2\n1,0\n")
    np.save(folder / "age.npy", np.array([30, 40], np.int8))
    metadata = {
        "graph_name": "shop",
        "node_type": ["user", "item"],
        "num_nodes_per_type": [2, 3],
        "edge_type": ["user:buys:item"],
        "num_edges_per_type": [2],
        "edges": {"user:buys:item": {"format": CSV, "data": ["buys.csv"]}},
        "node_data": {"user": {"age": {"format": NPY, "data": ["age.npy"]}}},
        "edge_data": {},
    }
    metadata = {key: value for key, value in {**metadata, **changes}.items() if value is not None}
    write(folder, metadata)
    return metadata


def edges_of(format_: object, *paths: str) -> dict:
    return {"user:buys:item": {"format": format_, "data": list(paths)}}


def feature_of(format_: object, *paths: str) -> dict:
    return {"user": {"age": {"format": format_, "data": list(paths)}}}


def error_of(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        for _ in rows_of(folder):
            pass
    return str(caught.value).replace(f"{folder}/", "")
