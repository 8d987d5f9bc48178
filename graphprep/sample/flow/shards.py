"""The files of samples as arrays: shards in ``.npz`` (mapped where they are local) or Parquet, held against the manifest."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.graph.columns import Column
from graphprep.model.errors import DataError
from graphprep.model.export import Side
from graphprep.model.schema import ColumnSchema
from graphprep.sample.arrays import BlockType, FlowArrays
from graphprep.sample.manifest import ShardEntry
from graphprep.storage.faults import display_url
from graphprep.storage.read.maps import map_file
from graphprep.storage.read.npy import MAX_HEADER_BYTES, parse_npy_header
from graphprep.storage.read.urls import Storage

Ints = NDArray[np.int64]
Arrays = Mapping[str, NDArray[Any]]
AGAIN = "sample again, or copy the samples again"
_LOCAL_HEADER_BYTES = 30  # of a member of a zip file, before its name


def read_shard(storage: Storage, url: str, entry: ShardEntry, file_format: str) -> Arrays:
    """Return the arrays of a shard by name, once its size and hash are what the manifest says: read-only, maps where local.

    Raises DataError where it is not what the manifest says.
    """
    place, path = display_url(url), storage.local_path(url)
    size = storage.size(url)
    if size not in (-1, entry.num_bytes):
        raise DataError(f"the file has {size} bytes, the manifest says {entry.num_bytes}", place=place, fix=AGAIN)
    data: Any = np.frombuffer(storage.read_bytes(url), np.uint8) if path is None else map_file(path, np.uint8).view(np.ndarray)
    found = xxhash.xxh3_64_hexdigest(data)
    if data.size != entry.num_bytes or found != entry.xxh3:
        wanted = f"{entry.num_bytes} and {entry.xxh3}"
        message = f"the file has {data.size} bytes and xxh3 {found}, the manifest says {wanted}"
        raise DataError(message, place=place, fix=AGAIN)
    if file_format == "parquet":
        return _read_parquet(data)
    with nullcontext(io.BytesIO(data)) if path is None else Path(path).open("rb") as file, zipfile.ZipFile(file) as archive:
        members = {one.filename.removesuffix(".npy"): one.header_offset for one in archive.infolist()}
    return {name: _member(data, start, f"{place}: {name}") for name, start in members.items()}


def _member(data: NDArray[np.uint8], start: int, place: str) -> NDArray[Any]:
    """Return the array of a member, which is stored and not compressed; ``start``: where its header lies."""
    head = data[start : start + _LOCAL_HEADER_BYTES].tobytes()
    start += _LOCAL_HEADER_BYTES + int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little")
    header = parse_npy_header(data[start : start + MAX_HEADER_BYTES + 12].tobytes(), place)
    return data[start + header.data_start : start + header.num_bytes].view(header.dtype).reshape(header.shape)


def _read_parquet(data: NDArray[np.uint8]) -> Arrays:
    """Return the arrays of a table with a row for each flow: lists one after another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(pa.BufferReader(pa.py_buffer(data)))
    found = {}
    for name in table.column_names:
        lists = table[name].combine_chunks()
        values = lists.flatten().to_numpy(zero_copy_only=False)
        values.flags.writeable = False
        found[name] = values.reshape(len(lists), -1) if name in ("layer_offsets", "block_offsets") else values
    return found


@dataclass(frozen=True)
class CopiedColumn:
    """A column of ``--copy-column``: of which type, and how it is stored in shards."""

    side: Side
    number: int
    schema: ColumnSchema
    member: str


@dataclass(frozen=True)
class CopiedColumns:
    """The columns that one flow has from its shard: see ``FlowColumns``. ``values`` and ``present``: the rows of one flow."""

    arrays: FlowArrays
    columns: tuple[CopiedColumn, ...]
    rows: Mapping[str, NDArray[Any]]

    def schemas(self, side: Side, number: int) -> tuple[ColumnSchema, ...]:
        """See ``FlowColumns``."""
        return tuple(one.schema for one in self.columns if (one.side, one.number) == (side, number))

    def values(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> Column:
        """See ``FlowColumns``."""
        return self.rows[self._member(side, number, column)][self._rows(side, number, at)]

    def present(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> NDArray[np.bool_] | None:
        """See ``FlowColumns``."""
        found = self.rows.get(f"{self._member(side, number, column)}.present")
        return None if found is None else np.asarray(found[self._rows(side, number, at)])

    def _member(self, side: Side, number: int, column: ColumnSchema) -> str:
        wanted = (side, number, column.name)
        return next(one.member for one in self.columns if (one.side, one.number, one.schema.name) == wanted)

    def _rows(self, side: Side, number: int, at: Ints) -> Ints:
        """Return where nodes or edges of a type, by IDs within the flow, stand among all of that type."""
        if side == "node":
            offsets, width = self.arrays.layer_offsets, len(self.arrays.node_types)
        else:
            offsets, width = self.arrays.block_offsets, len(self.arrays.block_types)
        counts = np.diff(offsets)[number::width]
        group = (np.searchsorted(offsets, at, side="right") - 1) // width
        rows: Ints = at - offsets[number + group * width] + (np.cumsum(counts) - counts)[group]
        return rows


class Shard:
    """The flows of one file."""

    def __init__(self, arrays: Arrays, types: FlowTypes) -> None:
        self._arrays, self._types = arrays, types
        layers, blocks = arrays["layer_offsets"], arrays["block_offsets"]
        self._nodes, self._edges = (np.cumsum([0, *some[:, -1]]) for some in (layers, blocks))
        sizes = np.diff(layers, axis=1).reshape(len(layers), -1, len(types.node_types))
        counts = sizes[:, 1:, [one.destination for one in types.block_types]] + 1
        self._indptr = np.cumsum([0, *counts.reshape(len(layers), -1).sum(axis=1)])
        self._node_sizes = sizes.sum(axis=1)
        edges = np.diff(blocks, axis=1).reshape(len(blocks), -1, max(1, len(types.block_types)))
        self._edge_sizes = edges.sum(axis=1)

    def flow(self, number: int) -> tuple[FlowArrays, CopiedColumns | None]:
        """Return the arrays of a flow, views, and its columns."""
        nodes, edges, indptr = (
            slice(*map(int, some[number : number + 2])) for some in (self._nodes, self._edges, self._indptr)
        )
        arrays, types = self._arrays, self._types
        made = FlowArrays(
            types.node_types,
            types.block_types,
            types.direction,
            arrays["layer_offsets"][number],
            arrays["node_mapping"][nodes],
            arrays["block_offsets"][number],
            arrays["sources"][edges],
            arrays["indptr"][indptr],
            arrays["edge_mapping"][edges],
            arrays["node_times"][nodes] if "node_times" in arrays else None,
            arrays["edge_weights"][edges] if "edge_weights" in arrays else None,
        )
        return made, self._columns(number, made) if types.columns else None

    def _columns(self, number: int, made: FlowArrays) -> CopiedColumns:
        rows = {}
        for one in self._types.columns:
            starts = self._column_rows[one.side, one.number]
            first, stop = starts[number : number + 2].tolist()
            rows[one.member] = self._arrays[one.member].reshape(starts[-1], *one.schema.item_shape)[first:stop]
            if one.schema.optional:
                rows[f"{one.member}.present"] = self._arrays[f"{one.member}.present"][first:stop]
        return CopiedColumns(made, self._types.columns, rows)

    @cached_property
    def _column_rows(self) -> dict[tuple[Side, int], Ints]:
        """Return where the rows of each flow begin in columns of a type: int64[F + 1]."""
        sizes: dict[Side, Any] = {"node": self._node_sizes, "edge": self._edge_sizes}
        return {
            (side, number): np.cumsum([0, *some[:, number]]) for side, some in sizes.items() for number in range(some.shape[1])
        }


@dataclass(frozen=True)
class FlowTypes:
    """What all flows of a set of samples have in common."""

    node_types: tuple[str, ...]
    block_types: tuple[BlockType, ...]
    direction: str
    columns: tuple[CopiedColumn, ...]
