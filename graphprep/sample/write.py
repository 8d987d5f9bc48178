"""Shards of flows, ``.npz`` or Parquet, and the manifest that says what they hold: docs/sample.md, "Files"."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_64

from graphprep.derived.store import DerivedStore
from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.model.errors import MemoryLimitError
from graphprep.model.metadata import MANIFEST_NAME, dump_json
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.sample.flows import GrownFlow
from graphprep.sample.manifest import FORMAT, VERSION, ShardEntry
from graphprep.sample.plan import CopiedColumn, SampleAsked, member_name
from graphprep.sample.rows import layout_of
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FileOutput, FolderOutput
from graphprep.storage.write.publish import npy_header
from graphprep.store.items import StoredArray
from graphprep.store.single import WholeStore

SHARD_BYTES = 16 << 20  # a shard is closed when it holds as much
_ZIP64_VERSION = 45  # of the archive format
_LIST_BYTES = 36  # of a value of a list while Parquet is written: levels, the page, and what these grow by (measured)
_ARRAYS = (
    "layer_offsets", "node_mapping", "block_offsets", "sources", "indptr", "edge_mapping", "node_times", "edge_weights",
)  # fmt: skip
_BY_FLOW = ("layer_offsets", "block_offsets")  # have a row for each flow
Array = NDArray[Any]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Member:
    """What a shard has of every flow: ``pieces`` gives rows of ``item_shape``, ``size`` how many; ``column`` is copied.

    ``is_copied``: of a column, or of which rows of it are present.
    """

    name: str
    dtype: np.dtype[Any]
    item_shape: tuple[int, ...]
    size: Callable[[GrownFlow], int]
    pieces: Callable[[GrownFlow], Iterator[Array]]
    column: ColumnSchema | None = None
    is_copied: bool = False

    def num_values(self, flow: GrownFlow) -> int:
        """Return how many numbers that are."""
        return self.size(flow) * int(np.prod(self.item_shape, dtype=np.int64))


class ShardWriter:
    """Writes flows in their order, and in the end the manifest."""

    def __init__(
        self, folder: FolderOutput, asked: SampleAsked, store: DerivedStore, room: Workspace, file_format: str
    ) -> None:
        self._folder = folder
        self._format = file_format
        self._asked = asked
        self._room = room
        self._columns = list(column_members(asked, store, room))
        self._flows: list[GrownFlow] = []
        self._num_bytes = 0
        self.shards: list[ShardEntry] = []
        self._digits = 5

    def add(self, flow: GrownFlow) -> None:
        """Take a flow; a shard that is large enough is written."""
        self._flows.append(flow)
        members = [*_array_members(flow), *self._columns]
        self._check_list(flow, members)
        self._num_bytes += sum(one.num_values(flow) * one.dtype.itemsize for one in members)
        if self._num_bytes >= SHARD_BYTES:
            self.flush()

    def _check_list(self, flow: GrownFlow, members: Sequence[Member]) -> None:
        """Raise MemoryLimitError where one list of a flow has no room in the writer of Parquet."""
        largest = max(members, key=lambda one: one.num_values(flow))
        need, room = largest.num_values(flow) * _LIST_BYTES, self._room.pool.cap_bytes + self._room.held_bytes
        if self._format == "parquet" and need > room:
            words = (
                f"{largest.name!r} of a flow has {largest.num_values(flow):,} values, which take {format_size(need)} to write"
            )
            raise MemoryLimitError(
                f"{words} to Parquet, and the memory limit leaves {format_size(room)}",
                fix="raise --memory-limit, lower --batch-size or the fan-outs, or take --format npz",
            )

    def flush(self) -> None:
        """Write what is held."""
        if not self._flows:
            return
        flows, self._flows, self._num_bytes = self._flows, [], 0
        name = f"samples-{len(self.shards):0{self._digits}d}.{self._format}"
        members = [*_array_members(flows[0]), *self._columns]
        with self._folder.open(name) as file:
            hashed = _Hashed(file)
            if self._format == "npz":
                _write_npz(hashed, flows, members)
            else:
                with self._room.scratch.inner() as scratch:
                    _write_parquet(hashed, flows, members, scratch)
        self.shards.append(
            ShardEntry(
                path=name,
                num_flows=len(flows),
                num_nodes=sum(one.arrays.node_mapping.size for one in flows),
                num_edges=sum(one.arrays.sources.size for one in flows),
                num_bytes=hashed.num_bytes,
                xxh3=hashed.digest.hexdigest(),
            )
        )

    def finish(self, parent: dict[str, Any], options: dict[str, Any], num_epochs: int, num_batches: int) -> None:
        """Write the last shard and the manifest; ``parent`` describes the store."""
        self.flush()
        plan = self._asked.flows
        value = {
            "format": FORMAT,
            "format_version": VERSION,
            "store": parent,
            "options": options,
            "direction": plan.direction,
            "block_types": [
                {"edge_type": edge_type_text(one.edge_type), "reversed": one.is_reversed} for one in plan.block_types
            ],
            "num_layers": plan.num_hops + 1,
            "num_flows": num_epochs * num_batches,
            "num_batches": num_batches,
            "num_epochs": num_epochs,
            "columns": [
                {
                    "member": one.name,
                    "dtype": one.dtype.name,
                    "item_shape": list(one.item_shape),
                    "optional": one.column.optional,
                    **({} if one.column.role is None else {"role": one.column.role}),
                    **({} if one.column.unit is None else {"unit": one.column.unit}),
                    **({} if one.column.categories is None else {"is_code": True}),
                }
                for one in self._columns
                if one.column is not None
            ],
            "file_format": self._format,
            "shards": [one.to_json() for one in self.shards],
        }
        self._folder.write(MANIFEST_NAME, dump_json(value))


def _array_members(first: GrownFlow) -> Iterator[Member]:
    for name in _ARRAYS:
        like = getattr(first.arrays, name)
        if like is not None:
            by_flow = name in _BY_FLOW
            yield Member(
                name,
                like.dtype,
                like.shape if by_flow else (),
                (lambda flow: 1) if by_flow else (lambda flow, name=name: int(getattr(flow.arrays, name).size)),  # type: ignore[misc]
                lambda flow, name=name: iter([getattr(flow.arrays, name)]),  # type: ignore[misc]
            )


def column_members(asked: SampleAsked, store: DerivedStore, room: Workspace) -> Iterator[Member]:
    """Yield the members of copied columns, in the order in which they were asked for."""
    whole = WholeStore(store)
    for copied in asked.columns:
        if copied.owner.is_node:
            stem, rows = f"{copied.owner.folder}/{copied.column.path}", _node_rows(copied.owner.number)
            yield from _column(whole, copied, stem, member_name(copied, is_reversed=False), rows, room)
        for at in copied.block_types:
            block_type = asked.flows.block_types[at]
            stem = store.edge_column_stem(block_type.number, layout_of(block_type), copied.column)
            name = member_name(copied, is_reversed=block_type.is_reversed)
            yield from _column(whole, copied, stem, name, _edge_rows(at), room)


def _column(
    store: WholeStore, copied: CopiedColumn, stem: str, name: str, rows: Callable[[GrownFlow], Ints], room: Workspace
) -> Iterator[Member]:
    arrays = {name: f"{stem}.npy"}
    if copied.column.optional:
        arrays[f"{name}.present"] = f"{stem}.present.npy"
    for member, path in arrays.items():
        array = store.array(0, path)
        item_shape = array.shape[1:]
        step = room.fit(array.dtype.itemsize * int(np.prod(item_shape, dtype=np.int64)))
        yield Member(
            member,
            array.dtype,
            item_shape,
            lambda flow: rows(flow).size,
            lambda flow, array=array, step=step: _taken(array, rows(flow), step),  # type: ignore[misc]
            copied.column if member == name else None,
            is_copied=True,
        )


def _node_rows(number: int) -> Callable[[GrownFlow], Ints]:
    """Return what gives the nodes of a type in a flow, layer after layer."""

    def rows(flow: GrownFlow) -> Ints:
        arrays = flow.arrays
        num_types = len(arrays.node_types)
        starts = [int(arrays.layer_offsets[layer * num_types + number]) for layer in range(arrays.num_layers)]
        stops = [int(arrays.layer_offsets[layer * num_types + number + 1]) for layer in range(arrays.num_layers)]
        return np.concatenate([arrays.node_mapping[start:stop] for start, stop in zip(starts, stops, strict=True)])

    return rows


def _edge_rows(at: int) -> Callable[[GrownFlow], Ints]:
    """Return what gives where the edges of a block type stand, block after block; -1 for loops."""

    def rows(flow: GrownFlow) -> Ints:
        arrays, positions = flow.arrays, flow.positions
        starts = arrays.block_offsets[at : -1 : len(arrays.block_types)].tolist()
        stops = arrays.block_offsets[at + 1 :: len(arrays.block_types)].tolist()
        if positions is None:
            raise RuntimeError("positions of edges were not kept")
        return np.concatenate([positions[start:stop] for start, stop in zip(starts, stops, strict=True)])

    return rows


def _taken(array: StoredArray, rows: Ints, step: int) -> Iterator[Array]:
    for start in range(0, rows.size, step):
        some = rows[start : start + step]
        found = array.take(np.maximum(some, 0)) if array.shape[0] else np.zeros((some.size, *array.shape[1:]), array.dtype)
        found[some < 0] = 0
        yield found


# ---- files


class _Hashed(io.RawIOBase):
    """A file that is hashed as it is written, front to back."""

    def __init__(self, file: FileOutput) -> None:
        self._file = file
        self.digest = xxh3_64()
        self.num_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._file.write(data)
        self.digest.update(data)
        self.num_bytes += len(data)
        return len(data)


class _Entry(zipfile.ZipInfo):
    """An entry of an archive whose header is the same in all Pythons: 3.11.4 and later mark it as what needs ZIP64."""

    def FileHeader(self, zip64: bool | None = None) -> bytes:  # noqa: N802 - its name there
        """Return the header, with the version that is needed, and no sizes, which stand behind the data."""
        self.create_version = self.extract_version = _ZIP64_VERSION
        header = super().FileHeader(zip64)
        return header[:4] + _ZIP64_VERSION.to_bytes(2, "little") + header[6:18] + b"\xff" * 8 + header[26:]


def _write_npz(file: _Hashed, flows: Sequence[GrownFlow], members: Sequence[Member]) -> None:
    """Write members front to back: sizes and checksums stand behind them, and in the directory at the end."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for member in members:
            size = sum(map(member.size, flows))
            with archive.open(_Entry(f"{member.name}.npy"), "w", force_zip64=True) as entry:
                entry.write(npy_header(member.dtype, (size, *member.item_shape)))
                for flow in flows:
                    for piece in member.pieces(flow):
                        if piece.size:
                            entry.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


def _write_parquet(file: _Hashed, flows: Sequence[GrownFlow], members: Sequence[Member], scratch: Scratch) -> None:
    """Write a row for each flow, with a list for each member.

    Arrays of flows are not copied, columns lie in ``scratch``. The writer holds one list at a time, several times over.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    for member in members:
        lists = []
        for flow in flows:
            values = _values(member, flow, scratch)
            lists.append(pa.LargeListArray.from_arrays(pa.array([0, values.size], pa.int64()), pa.array(values)))
        columns[member.name] = pa.chunked_array(lists)
    table, options = pa.table(columns), {"compression": "NONE", "use_dictionary": False}
    pq.write_table(table, pa.PythonFile(file, "w"), row_group_size=len(flows), **options)
    pa.default_memory_pool().release_unused()


def _values(member: Member, flow: GrownFlow, scratch: Scratch) -> Array:
    """Return what a member has of a flow, in one dimension."""
    if not member.is_copied:
        return next(member.pieces(flow)).reshape(-1)
    out, at = scratch.zeros(member.num_values(flow), member.dtype), 0
    for piece in member.pieces(flow):
        out[at : at + piece.size] = piece.reshape(-1)
        at += piece.size
    return out
