"""Which arrays a store has, where they lie in a partition, and their dtypes and shapes: docs/store.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, Layout, edge_type_path, path_name

Shape = tuple[int | None, ...]


class ExpectedArray(NamedTuple):
    """What an array must be; None in ``shape``: any length."""

    dtype: str
    shape: Shape

    def agrees(self, entry: ArrayEntry) -> bool:
        """Return whether the manifest's entry says the same."""
        return (
            self.dtype == entry.dtype
            and len(self.shape) == len(entry.shape)
            and all(want is None or want == found for want, found in zip(self.shape, entry.shape, strict=True))
        )

    def __str__(self) -> str:
        lengths = ", ".join("any" if length is None else str(length) for length in self.shape)
        return f"{self.dtype}[{lengths}]"


def node_folder(name: str) -> str:
    """Return a node type's folder in a partition."""
    return f"nodes/{path_name(name)}"


def edge_folder(edge_type: tuple[str, str, str]) -> str:
    """Return an edge type's folder in a partition."""
    return f"edges/{edge_type_path(edge_type)}"


class LayoutPaths:
    """Where the arrays of a layout of an edge type lie, in ``folder``; ``edge_rows`` leads from the second to the columns."""

    def __init__(self, folder: str) -> None:
        self.indptr = f"{folder}/indptr.npy"
        self.indices = f"{folder}/indices.npy"
        self.edge_ids = f"{folder}/edge_ids.npy"
        self.edge_rows = f"{folder}/edge_rows.npy"


class ColumnPaths:
    """Where the arrays of a column lie, of which each kind has some; ``stem`` is the path that they share."""

    def __init__(self, stem: str) -> None:
        self.values = f"{stem}.values.npy"
        self.offsets = f"{stem}.offsets.npy"
        self.coords = f"{stem}.coords.npy"
        self.entry_offsets = f"{stem}.entry_offsets.npy"
        self.start = f"{stem}.start.npy"
        self.end = f"{stem}.end.npy"
        self.present = f"{stem}.present.npy"


class NodePaths:
    """Where the arrays of a node type lie that are no columns, in ``folder``; raw IDs that are texts are like a column's."""

    def __init__(self, folder: str) -> None:
        self.raw_ids = f"{folder}/raw_ids.npy"
        self.texts = ColumnPaths(f"{folder}/raw_ids")
        self.raw_order = f"{folder}/raw_order.npy"
        self.previous_ids = f"{folder}/previous_ids.npy"
        self.id2index = f"{folder}/id2index.npy"


def num_slots_path(folder: str) -> str:
    """Return where the numbers of slots of a type lie."""
    return f"{folder}/num_slots.npy"


def expected_arrays(metadata: GraphMetadata, part: int) -> dict[str, ExpectedArray]:
    """Return every array that a partition must have, by path."""
    arrays: dict[str, ExpectedArray] = {}
    for t, (name, schema) in enumerate(zip(metadata.node_types, metadata.node_schemas, strict=True)):
        folder, n = node_folder(name), metadata.num_nodes_per_chunk[t][part]
        arrays |= _expected_raw_ids(folder, schema.raw_ids, n)
        if schema.node_order is not None:
            paths = NodePaths(folder)
            arrays |= {path: ExpectedArray("int64", (n,)) for path in (paths.previous_ids, paths.raw_order)}
        if schema.num_hot is not None:
            arrays[NodePaths(folder).id2index] = ExpectedArray("int64", (n,))
        arrays |= _expected_columns(folder, schema.columns, n, num_slots=schema.num_slots)
    numbers = {name: t for t, name in enumerate(metadata.node_types)}
    for t, (edge_type, edge_schema) in enumerate(zip(metadata.edge_types, metadata.edge_schemas, strict=True)):
        folder, m = edge_folder(edge_type), metadata.num_edges_per_chunk[t][part]
        for layout in metadata.layouts:
            end = numbers.get(edge_type[2 if layout == "csc" else 0])
            rows = metadata.num_nodes_per_chunk[end][part] if end is not None else 0
            arrays |= _expected_layout(metadata, edge_schema, f"{folder}/{layout}", layout, rows, m)
        arrays |= _expected_columns(folder, edge_schema.columns, m, num_slots=edge_schema.num_slots)
    return arrays


def _expected_raw_ids(folder: str, kind: str, n: int) -> dict[str, ExpectedArray]:
    if kind == "identity":
        return {}
    if kind == "string":
        return {
            NodePaths(folder).texts.offsets: ExpectedArray("int64", (n + 1,)),
            NodePaths(folder).texts.values: ExpectedArray("uint8", (None,)),
        }
    return {NodePaths(folder).raw_ids: ExpectedArray(kind, (n,))}


def _expected_layout(
    metadata: GraphMetadata, schema: EdgeTypeSchema, folder: str, layout: Layout, rows: int, num_edges: int
) -> dict[str, ExpectedArray]:
    entries = num_edges if layout == metadata.primary_layout else None
    arrays = {
        LayoutPaths(folder).indptr: ExpectedArray("int64", (rows + 1,)),
        LayoutPaths(folder).indices: ExpectedArray(schema.index_dtype, (entries,)),
    }
    if schema.edge_id_dtype is not None:
        arrays[LayoutPaths(folder).edge_ids] = ExpectedArray(schema.edge_id_dtype, (entries,))
    if layout != metadata.primary_layout and has_edge_rows(schema):
        arrays[LayoutPaths(folder).edge_rows] = ExpectedArray("int64", (entries,))
    return arrays


def has_edge_rows(schema: EdgeTypeSchema) -> bool:
    """Return whether the second layout has ``edge_rows.npy``: where there is something that it leads to."""
    return bool(schema.columns) or schema.num_slots


def _expected_columns(folder: str, columns: tuple[ColumnSchema, ...], n: int, *, num_slots: bool) -> dict[str, ExpectedArray]:
    arrays: dict[str, ExpectedArray] = {}
    for column in columns:
        arrays |= {f"{folder}/{column.path}{suffix}.npy": array for suffix, array in _column_files(column, n)}
    if num_slots:
        arrays[num_slots_path(folder)] = ExpectedArray("int32", (n,))
    return arrays


def _column_files(column: ColumnSchema, n: int) -> Iterator[tuple[str, ExpectedArray]]:
    if column.kind == "dense":
        yield "", ExpectedArray(column.dtype, (n, *column.item_shape))
    else:
        yield ".values", ExpectedArray(column.dtype, (None,))
        yield ".offsets", ExpectedArray("int64", (None if column.kind == "temporal" else n + 1,))
    if column.kind == "sparse":
        yield ".coords", ExpectedArray("int64", (None, *column.item_shape))
    if column.kind == "temporal":
        yield ".entry_offsets", ExpectedArray("int64", (n + 1,))
        yield ".start", ExpectedArray("int64", (None,))
        if column.end:
            yield ".end", ExpectedArray("int64", (None,))
    if column.optional:
        yield ".present", ExpectedArray("bool", (n,))
