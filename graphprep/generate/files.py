"""Generated graphs of one type to files: text, Parquet or NumPy arrays."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.generate.edges import EdgeGraph
from graphprep.kernels.cpu.text import write_text
from graphprep.kernels.cpu.text.write_text import INTEGER, MICRO, Template
from graphprep.storage.read.arrow_arrays import arrow_array
from graphprep.storage.write.outputs import FileOutput, FolderOutput
from graphprep.storage.write.publish import npy_header

Ints = NDArray[np.int64]
Pieces = Iterator[memoryview]
Advance = Callable[[int, int], None]  # (edges or nodes, bytes) that were made

_GROUP_EDGES = 1 << 20
_GROUP_BYTES = 8 << 20
NPY_NAMES = {"src": "src.npy", "dst": "dst.npy", "weight": "weight.npy", "time": "edge_time.npy"}


def edge_text(graph: EdgeGraph, delimiter: str, header: bool, threads: int, advance: Advance) -> Pieces:
    """Yield the lines of all edges. A piece is overwritten once the next ones are asked for."""
    fields = {name: (MICRO if name == "weight" else INTEGER, row) for row, name in enumerate(graph.names)}
    template = Template.parse(delimiter.join(f"<{name}>" for name in graph.names) + "\n", fields)
    window = 2 * threads if threads > 1 else 1
    size = graph.block_edges * template.row_bytes + write_text.SLACK_BYTES
    buffers = [(_empty_columns(graph), np.empty(size, np.uint8)) for _ in range(window)]

    def write(block: int) -> tuple[int, memoryview]:
        columns, out = buffers[block % window]
        count = graph.fill(block, columns)
        return count, out[: write_text.write_rows(template, columns, count, out)].data

    if header:
        yield memoryview((delimiter.join(graph.names) + "\n").encode())
    for count, piece in map_ordered(write, range(graph.num_blocks), threads, window):
        yield piece
        advance(count, len(piece))


def edge_parquet(graph: EdgeGraph, threads: int, advance: Advance) -> Pieces:
    """Yield a Parquet file, a row group of 2^20 edges (of a grid at most so many) after the other."""
    writer = ParquetPieces()
    none = {name: stored_column(name, np.empty(0, np.int64)) for name in graph.names}
    for columns in itertools.chain([none], edge_columns(replace(graph, block_edges=_GROUP_EDGES), threads)):
        num_bytes = 0
        for piece in writer.add(columns):
            num_bytes += len(piece)
            yield piece
        advance(columns["src"].size, num_bytes)
    yield from writer.close()


def write_npy(graph: EdgeGraph, folder: FolderOutput, threads: int, advance: Advance) -> None:
    """Write an array a column: IDs and times int64, weights float32."""
    files: dict[str, FileOutput] = {}
    for name in graph.names:
        dtype = stored_column(name, np.empty(0, np.int64)).dtype
        files[name] = folder.open(NPY_NAMES[name], graph.num_edges * dtype.itemsize)
        files[name].write(npy_header(dtype, (graph.num_edges,)))
    for columns in edge_columns(graph, threads):
        for name, values in columns.items():
            files[name].write(values.view(np.uint8).data)
        advance(columns["src"].size, sum(values.nbytes for values in columns.values()))
    for file in files.values():
        file.commit()


def edge_columns(graph: EdgeGraph, threads: int) -> Iterator[dict[str, NDArray[Any]]]:
    """Yield the columns of all edges as they are stored, block by block."""

    def fill(block: int) -> dict[str, NDArray[Any]]:
        columns = _empty_columns(graph)
        count = graph.fill(block, columns)
        return {name: stored_column(name, columns[row, :count]) for row, name in enumerate(graph.names)}

    return map_ordered(fill, range(graph.num_blocks), threads, threads + 1)


def stored_column(name: str, values: Ints) -> NDArray[Any]:
    """Return a column as binary formats hold it: weights as the float32 that is nearest to the decimal."""
    return (values / 1e6).astype(np.float32) if name == "weight" else values


def _empty_columns(graph: EdgeGraph) -> Ints:
    return np.empty((len(graph.names), graph.block_edges), np.int64)


class ParquetPieces:
    """Writes a Parquet file into pieces that are handed on as they come; a row group is what fills some megabytes."""

    def __init__(self) -> None:
        self._written = _Collector()
        self._writer: Any = None
        self._tables: list[Any] = []

    def add(self, columns: dict[str, Any]) -> Pieces:
        """Write rows, sooner or later; a column is an array, of which one of two dimensions holds lists of one length."""
        import pyarrow as pa

        self._tables.append(pa.table({name: _arrow_column(values) for name, values in columns.items()}))
        if sum(table.nbytes for table in self._tables) >= _GROUP_BYTES:
            yield from self._flush()

    def close(self) -> Pieces:
        """Write the rest and the footer."""
        yield from self._flush()
        self._writer.close()
        yield from self._written.take()

    def _flush(self) -> Pieces:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._tables:
            return
        table = pa.concat_tables(self._tables)
        self._tables.clear()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._written, table.schema, compression="snappy", use_dictionary=False)
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))
        yield from self._written.take()


class _Collector(io.RawIOBase):
    """A file for pyarrow to write to, whose bytes are taken from time to time."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[memoryview] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        piece = memoryview(bytes(data))  # pyarrow's memory is gone afterwards
        self._pieces.append(piece)
        self._at += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._at

    def take(self) -> list[memoryview]:
        """Return what was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return pieces


def _arrow_column(values: NDArray[Any]) -> Any:
    import pyarrow as pa

    if values.ndim == 1:
        return arrow_array(values)
    return pa.FixedSizeListArray.from_arrays(arrow_array(values.reshape(-1)), values.shape[1])
