"""What of a need a store does not have already, and what making it takes of the disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np

from graphprep.model.errors import UsageError
from graphprep.model.export import HELD_OUT, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.partition import PartitionOptions
from graphprep.model.protocols import Reporter
from graphprep.model.schema import Layout
from graphprep.rewrite.partition.methods import GraphMethod, find_method
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.store.assign import GRAPH_METHODS, PARTITION_METHODS, ROUND_ROBIN, PartitionFunction
from graphprep.store.paths import edge_folder
from graphprep.store.room import DiskNeed, compare_disk

_LAYOUTS: tuple[Layout, ...] = ("csc", "csr")


def wanted_layouts(need: StoreNeed) -> set[Layout]:
    """Return the layouts that are read."""
    return {*need.layouts, *(layout for layout in _LAYOUTS if layout == need.edge_columns)}


def missing_layouts(metadata: GraphMetadata, need: StoreNeed) -> list[Layout]:
    """Return the layouts that are read and not there."""
    return [layout for layout in _LAYOUTS if layout in wanted_layouts(need) and layout not in metadata.layouts]


def has_split(metadata: GraphMetadata, number: int) -> bool:
    """Return whether the edges of a type have a split."""
    return any(column.role == "split" for column in metadata.edge_schemas[number].columns)


def is_held_out(metadata: GraphMetadata, need: StoreNeed, number: int) -> bool:
    """Return whether the layouts of an edge type are to be without some parts of its split, or edges without a time."""
    return number in need.timed_edges or (bool(HELD_OUT[need.message_edges]) and has_split(metadata, number))


def made_layouts(metadata: GraphMetadata, need: StoreNeed, number: int) -> list[Layout]:
    """Return the layouts of an edge type that are made of the primary one: those that are missing, or have too many edges."""
    others = [layout for layout in _LAYOUTS if layout in wanted_layouts(need) and layout != metadata.primary_layout]
    return others if is_held_out(metadata, need, number) else missing_layouts(metadata, need)


def kept_layouts(metadata: GraphMetadata, need: StoreNeed) -> list[Layout]:
    """Return the stored layouts that another partitioning is made of: the primary one, and what is read."""
    wanted = {metadata.primary_layout, *wanted_layouts(need)}
    return [layout for layout in metadata.layouts if layout in wanted]


def reads_columns(metadata: GraphMetadata, need: StoreNeed, number: int) -> bool:
    """Return whether the columns of an edge type are read: by the exporter, or to make a layout, or for the split."""
    by_column = metadata.edge_schemas[number].neighbor_order in ("time", "weight")
    by_split = has_split(metadata, number) and (need.split_edges or need.message_edges != "all")
    by_split = by_split or number in need.timed_edges
    return need.edge_columns is not None or by_split or (by_column and bool(made_layouts(metadata, need, number)))


def reads_by_id(metadata: GraphMetadata, need: StoreNeed, number: int) -> bool:
    """Return whether the ends of all edges of a type are read by edge ID."""
    return need.input_order or reads_split(metadata, need, number)


def reads_split(metadata: GraphMetadata, need: StoreNeed, number: int) -> bool:
    """Return whether the edges of a type are read as those of a split."""
    return need.split_edges and has_split(metadata, number)


def moves_columns(metadata: GraphMetadata, need: StoreNeed) -> bool:
    """Return whether edge columns are read in the row order of a layout in which they do not lie."""
    return need.edge_columns in ("csc", "csr") and need.edge_columns != metadata.primary_layout


def is_partitioned(metadata: GraphMetadata, need: StoreNeed) -> bool:
    """Return whether a store is partitioned as needed. What seed or file another method took is not known."""
    if need.num_parts is None and need.partition_by is None:
        return True
    method = need.partition_by or metadata.partition_by
    is_same = method == metadata.partition_by and need.num_parts in (None, metadata.num_parts)
    return is_same and (need.partition_by is None or method in ("range", "hash", "modulo"))


def may_stay(metadata: GraphMetadata, need: StoreNeed) -> bool:
    """Return whether nodes may keep their order in another partitioning, so that only the cuts are other ones."""
    in_order = metadata.partition_by == "range" or metadata.num_parts == 1
    if not in_order or any(schema.node_order is not None for schema in metadata.node_schemas):
        return False
    method = need.partition_by or metadata.partition_by
    return (
        method not in ("hash", "modulo", "random", ROUND_ROBIN, *GRAPH_METHODS) or (need.num_parts or metadata.num_parts) == 1
    )


def partition_method(metadata: GraphMetadata, need: StoreNeed, storage: Storage) -> PartitionFunction | GraphMethod:
    """Return the method that makes the partitioning that is needed.

    Raises UsageError where the store does not say how, what ``find_method`` raises.
    """
    method = need.partition_by or metadata.previous_partition_by or metadata.partition_by
    if need.partition_by is None and method not in (*PARTITION_METHODS, *GRAPH_METHODS):
        raise UsageError(
            f"the store is partitioned by a {'function' if method == 'python' else 'file'}, "
            "which says nothing about another number of partitions",
            fix=f"give --partition-by: {', '.join((*PARTITION_METHODS, *GRAPH_METHODS))}, or a file",
        )
    return find_method(metadata, storage, PartitionOptions(method, need.num_parts, need.seed))


def check_room(store: StoreReader, need: StoreNeed, tmp_dir: str | None, reporter: Reporter) -> None:
    """Compare what is surely made with what is free in the folder of temporary files.

    Raises StorageError where there is too little.
    """
    num_bytes = sum(_made_bytes(store, need))
    compare_disk(tmp_dir or tempfile.gettempdir(), tmp_dir, DiskNeed(temporary_bytes=num_bytes, under_limit=False), reporter)


def _made_bytes(store: StoreReader, need: StoreNeed) -> Iterator[int]:
    """Yield the bytes of what is surely made. Whether an order is not there already is seen only later."""
    metadata = store.metadata
    is_moved = not is_partitioned(metadata, need) and not may_stay(metadata, need)
    if is_moved:
        yield _stored_bytes(store, "nodes/")
    for number, edge_type in enumerate(metadata.edge_types):
        folder, schema = edge_folder(edge_type), metadata.edge_schemas[number]
        num_edges = metadata.num_edges_per_type[number]
        layouts = sum(_stored_bytes(store, f"{folder}/{layout}/") for layout in metadata.layouts)
        columns = _stored_bytes(store, f"{folder}/") - layouts
        if is_moved:
            yield sum(_stored_bytes(store, f"{folder}/{layout}/") for layout in kept_layouts(metadata, need))
            yield columns if reads_columns(metadata, need, number) else 0
        sizes = [np.dtype(name).itemsize for name in (schema.index_dtype, schema.edge_id_dtype) if name is not None]
        rows = 8 if schema.columns or schema.edge_id_dtype is None else 0
        yield len(made_layouts(metadata, need, number)) * num_edges * (sum(sizes) + rows)
        yield columns if moves_columns(metadata, need) else 0
        yield num_edges * sizes[0] if reads_by_id(metadata, need, number) else 0


def _stored_bytes(store: StoreReader, prefix: str) -> int:
    """Return the bytes of all arrays whose paths begin so, in all partitions."""
    parts = range(store.metadata.num_parts)
    return sum(entry.num_bytes for part in parts for entry in store.manifest(part).arrays if entry.path.startswith(prefix))
