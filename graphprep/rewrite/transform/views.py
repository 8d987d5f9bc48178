"""Stores that are not there: several types of a store read as one, and what was computed read as a store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.kernels.cpu.text.texts import concat_texts
from graphprep.model.errors import DataError, UsageError
from graphprep.model.ids import PartSpace, TypeNames
from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema, EdgeType, EdgeTypeSchema, NodeTypeSchema, edge_type_text
from graphprep.rewrite.transform.edge_ops import sorted_edges
from graphprep.rewrite.transform.names import MadeNames
from graphprep.rewrite.transform.recipe import (
    NO_ROW,
    EdgeRecipe,
    Ids,
    Ints,
    MadeColumn,
    NodeRecipe,
    Origin,
    Recipe,
    narrow,
    read_edges,
    slices,
)
from graphprep.store.items import FIX, StoredArray, StoredArrays
from graphprep.store.paths import ColumnPaths, LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_ids import RawIds, raw_numbers
from graphprep.store.single import ConcatenatedArray, ConcatenatedOffsets

HOMO = "_N"
RAW_ID = "raw_id"
HOMO_EDGE: EdgeType = ("_N", "_E", "_N")
_LINE_BYTES = 64  # of an edge of a line graph while it is made


class MemoryArray:
    """An array in memory as a stored one."""

    is_local = False

    def __init__(self, path: str, values: NDArray[Any]) -> None:
        self.url = path
        self._values = values
        self.dtype = values.dtype
        self.shape = values.shape
        self.entry = ArrayEntry(path, values.dtype.name, values.shape, values.nbytes, "")

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self._values[start:stop].copy()

    def take(self, rows: Ints) -> NDArray[Any]:
        """See ``StoredArray``."""
        return np.asarray(self._values[rows])

    def gather(self, starts: Ints, stops: Ints) -> NDArray[Any]:
        """See ``StoredArray``."""
        counts = stops - starts
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.take(np.repeat(starts, counts) + inner)

    def map(self) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self._values


@dataclass
class MemoryStore:
    """Arrays in memory as a store of one partition."""

    metadata: GraphMetadata
    arrays: Mapping[str, NDArray[Any]]

    def has(self, part: int, path: str) -> bool:
        """See ``StoredArrays``."""
        return path in self.arrays

    def array(self, part: int, path: str) -> StoredArray:
        """See ``StoredArrays``."""
        if path not in self.arrays:
            raise DataError(f"the array {path} is missing", fix=FIX)
        return MemoryArray(path, self.arrays[path])


class WithoutNegatives:
    """A store whose edges have no negatives."""

    def __init__(self, store: StoredArrays) -> None:
        self.metadata, _ = store.metadata.without_negatives()
        self.has, self.array = store.has, store.array


@dataclass(frozen=True)
class TypeGroup:
    """Types that are one: the numbers of the old ones, and their common columns."""

    name: str | EdgeType
    numbers: tuple[int, ...]
    columns: tuple[ColumnSchema, ...]

    @property
    def folder(self) -> str:
        """Return the folder of the new type."""
        return node_folder(self.name) if isinstance(self.name, str) else edge_folder(self.name)


def common_columns(schemas: Sequence[NodeTypeSchema | EdgeTypeSchema]) -> tuple[tuple[ColumnSchema, ...], list[str]]:
    """Return the columns that all types have, alike but for being optional, and the names of the others."""
    first, *others = [{column.name: column for column in schema.columns} for schema in schemas]
    kept, left = [], {name for columns in (first, *others) for name in columns}
    for name, column in first.items():
        same = [columns.get(name) for columns in others]
        if all(one is not None and replace(one, optional=column.optional) == column for one in same):
            kept.append(replace(column, optional=column.optional or any(one is not None and one.optional for one in same)))
            left.discard(name)
    return tuple(kept), sorted(left)


class JoinedStore:
    """A store in which groups of types are one type each, type after type in every partition.

    ``made`` are arrays of groups that no type has, by partition and path.
    """

    def __init__(
        self,
        store: StoredArrays,
        metadata: GraphMetadata,
        groups: Sequence[TypeGroup],
        made: Mapping[tuple[int, str], NDArray[Any]],
    ) -> None:
        self.metadata = metadata
        self._store = store
        self._groups = groups
        self._made = made

    def has(self, part: int, path: str) -> bool:
        """See ``StoredArrays``."""
        return (part, path) in self._made or any(path.startswith(f"{group.folder}/") for group in self._groups)

    def array(self, part: int, path: str) -> StoredArray:
        """See ``StoredArrays``."""
        if (part, path) in self._made:
            return MemoryArray(path, self._made[part, path])
        for group in self._groups:
            if path.startswith(f"{group.folder}/"):
                open_one = partial(self._of_type, part, group, path.removeprefix(group.folder))
                join = ConcatenatedOffsets if path.endswith("offsets.npy") else ConcatenatedArray
                return open_one(0) if len(group.numbers) == 1 else join(open_one, len(group.numbers))
        return self._store.array(part, path)

    def _of_type(self, part: int, group: TypeGroup, path: str, at: int) -> StoredArray:
        """Open the array of one of the types of a group; what all its rows have is present."""
        old, number = self._store.metadata, group.numbers[at]
        is_node = isinstance(group.name, str)
        folder = node_folder(old.node_types[number]) if is_node else edge_folder(old.edge_types[number])
        schema = old.node_schemas[number] if is_node else old.edge_schemas[number]
        for column in schema.columns:
            if path == f"/{ColumnPaths(column.path).present}" and not column.optional:
                counts = old.num_nodes_per_chunk if is_node else old.num_edges_per_chunk
                return MemoryArray(path, np.ones(counts[number][part], np.bool_))
        return self._store.array(part, f"{folder}{path}")


def _coded(names: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    """Return names as categories, ascending, and the code of each."""
    categories = tuple(sorted(set(names), key=str.encode))
    return categories, np.array([categories.index(name) for name in names], np.int64)


# ---- homogeneous and flattened stores


def to_homogeneous(
    store: StoredArrays,
    room: Workspace,
    layouts: Any,
    names: MadeNames,
    edge_type: EdgeType = HOMO_EDGE,
    relations: Sequence[str] | None = None,
    *,
    with_raw_ids: bool = False,
) -> tuple[Recipe, list[str]]:
    """Make one node type and one edge type of all, as DGL's ``to_homogeneous`` does; of edges, with these relations alone.

    Raw IDs are the homogeneous IDs: type after type. Columns tell ``node_type``, ``node_id`` (the typed ID), ``edge_type``
    and ``edge_id``, and ``raw_id`` (the raw ID of before) if asked; of other columns those stay that all types have.
    Returns also what was left.
    """
    old, made = store.metadata, {}
    columns, left = common_columns(old.node_schemas)
    kind_name, id_name = (names.of(name, HOMO, columns) for name in ("node_type", "node_id"))
    nodes = TypeGroup(HOMO, tuple(range(len(old.node_types))), columns)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(old.num_nodes_per_type)])
    categories, codes = _coded(old.node_types)
    own = (
        ColumnSchema(kind_name, "dense", "int64", categories=categories),
        ColumnSchema(id_name, "dense", "int64"),
    )
    raw = (_raw_column(store, names.of(RAW_ID, HOMO, columns)),) if with_raw_ids else ()
    ids, kinds = (np.zeros(int(offsets[-1]), np.int64) for _ in range(2))
    stop = 0
    for part in range(old.num_parts):
        sizes = [counts[part] for counts in old.num_nodes_per_chunk]
        firsts = [sum(counts[:part]) for counts in old.num_nodes_per_chunk]
        at = slice(stop, stop := stop + sum(sizes))
        ids[at] = np.concatenate([np.arange(first, first + size) for first, size in zip(firsts, sizes, strict=True)])
        kinds[at] = np.repeat(np.arange(len(sizes)), sizes)
        for column, values in zip(own, (codes[kinds[at]], ids[at]), strict=True):
            made[part, f"{nodes.folder}/{column.path}.npy"] = values
        for column in raw:
            made |= {(part, path): values for path, values in _raw_arrays(store, part, column, nodes.folder)}
        made[part, NodePaths(nodes.folder).raw_ids] = ids[at] + offsets[kinds[at]]
    metadata = replace(
        old,
        node_types=(HOMO,),
        num_nodes_per_chunk=(tuple(map(sum, zip(*old.num_nodes_per_chunk, strict=True))),),
        node_schemas=(NodeTypeSchema("int64", (*columns, *own, *raw)),),
        partition_by="range" if old.num_parts == 1 else "file",
    )
    if old.num_parts == 1:
        metadata = replace(metadata, node_schemas=(NodeTypeSchema("identity", (*columns, *own, *raw)),))
    space = PartSpace.of(TypeNames.of_nodes(old.node_types), old.num_nodes_per_chunk, old.num_parts, "node")
    chosen = tuple(at for at, (_, name, _) in enumerate(old.edge_types) if relations is None or name in relations)
    groups = {edge_type: chosen} if chosen else {}
    recipe, left = _join_edges(store, metadata, [nodes], groups, {edge_type}, made, room, layouts, left, space, names)
    was = Origin(ids, tuple(range(len(old.node_types))), kinds, is_node=True)
    return replace(recipe, origins=([was], recipe.origins[1])), left


def _raw_column(store: StoredArrays, name: str) -> ColumnSchema:
    """Return the column of the raw IDs of all types: numbers, or texts where those of a type are, or no dtype holds all."""
    old = store.metadata
    used = [number for number, size in enumerate(old.num_nodes_per_type) if size]
    kinds = {old.node_schemas[number].raw_ids for number in used}
    if "string" in kinds:
        return ColumnSchema(name, "binary", "uint8")
    numbers = [piece for number in used for piece in raw_numbers(store, number) if piece.size] if "uint64" in kinds else []
    if not any(int(piece.max()) >= 2**63 for piece in numbers):
        return ColumnSchema(name, "dense", "int64")
    is_signed = any(int(piece.min()) < 0 for piece in numbers)
    return ColumnSchema(name, "binary", "uint8") if is_signed else ColumnSchema(name, "dense", "uint64")


def _raw_arrays(store: StoredArrays, part: int, column: ColumnSchema, folder: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of the column of raw IDs in a partition, by path."""
    pieces = [piece for number in range(len(store.metadata.node_types)) for piece in RawIds(store, number, part).pieces()]
    if column.kind == "dense":
        numbers = [piece.astype(column.dtype) for piece in pieces if not isinstance(piece, RawTexts)]
        yield f"{folder}/{column.path}.npy", np.concatenate([np.zeros(0, column.dtype), *numbers])
        return
    texts = [one if isinstance(one, RawTexts) else RawTexts.of([b"%d" % value for value in one.tolist()]) for one in pieces]
    offsets, values = concat_texts([(one.offsets, one.values) for one in texts or [RawTexts.of([])]])
    paths = ColumnPaths(f"{folder}/{column.path}")
    yield paths.offsets, offsets
    yield paths.values, values


def flatten(
    store: StoredArrays, relations: Sequence[str], room: Workspace, layouts: Any, names: MadeNames
) -> tuple[Recipe, list[str]]:
    """Make one edge type of those with these relations, for each pair of node types; its relation is ``a+b``.

    Raises UsageError where another relation is called so.
    """
    old, relation = store.metadata, "+".join(relations)
    groups: dict[EdgeType, list[int]] = {}
    for number, (src, name, dst) in enumerate(old.edge_types):
        if name == relation and name not in relations:
            raise UsageError(
                f"there is an edge type {edge_type_text(old.edge_types[number])!r} already",
                place="flatten",
                fix=f"name {relation} among the relations, too, or make one edge type of a name of yours, with --into NAME",
            )
        groups.setdefault((src, relation if name in relations else name, dst), []).append(number)
    flat = {name for name in groups if name[1] == relation}
    named = {name: tuple(numbers) for name, numbers in groups.items()}
    return _join_edges(store, old, [], named, flat, {}, room, layouts, [], None, names)


def _join_edges(
    store: StoredArrays,
    metadata: GraphMetadata,
    nodes: list[TypeGroup],
    named: Mapping[EdgeType, tuple[int, ...]],
    told: Collection[EdgeType],
    made: dict[tuple[int, str], NDArray[Any]],
    room: Workspace,
    layouts: Any,
    left: list[str],
    space: PartSpace | None,
    names: MadeNames,
) -> tuple[Recipe, list[str]]:
    """Join the edge types of each group; nodes get their part IDs of ``space``, None: they stay as they are.

    Columns of those in ``told`` say of which type each edge was, and its edge ID there.
    """
    old, groups = store.metadata, list(nodes)
    recipes: list[EdgeRecipe] = []
    schemas: list[EdgeTypeSchema] = []
    counts: list[tuple[int, ...]] = []
    origins: list[Origin] = []
    for name, numbers in named.items():
        columns, others = common_columns([old.edge_schemas[number] for number in numbers])
        own: tuple[ColumnSchema, ...] = ()
        if name in told:
            kind_name, id_name = (names.of(one, edge_type_text(name), columns) for one in ("edge_type", "edge_id"))
            left += others
            categories, codes = _coded([edge_type_text(old.edge_types[number]) for number in numbers])
            own = (
                ColumnSchema(kind_name, "dense", "int64", categories=categories),
                ColumnSchema(id_name, "dense", "int64"),
            )
        group = TypeGroup(name, numbers, columns)
        groups.append(group)
        recipe, kinds, ids = _join_type(store, group, space, room)
        recipe = replace(recipe, number=len(recipes))
        types = numbers
        if own:
            for at in slices(kinds.size):
                kinds[at] = codes[kinds[at]]
            types = tuple(numbers[kind] for kind in np.argsort(codes))
            recipe = replace(recipe, made=(MadeColumn(own[0], kinds), MadeColumn(own[1], ids)))
        recipes.append(recipe)
        origins.append(Origin(ids, types, kinds))
        first = old.edge_schemas[numbers[0]]
        has_slots = all(old.edge_schemas[number].num_slots for number in numbers)
        has_ids = all(old.edge_schemas[number].edge_id_dtype for number in numbers)
        order = first.neighbor_order if len({old.edge_schemas[number].neighbor_order for number in numbers}) == 1 else "input"
        schema = replace(first, columns=columns, num_slots=has_slots, neighbor_order=order)
        schemas.append(schema if has_ids else replace(schema, edge_id_dtype=None))
        counts.append(tuple(map(sum, zip(*(old.num_edges_per_chunk[number] for number in numbers), strict=True))))
    metadata = replace(
        metadata,
        edge_types=tuple(named),
        num_edges_per_chunk=tuple(counts),
        edge_schemas=tuple(schemas),
    )
    joined = JoinedStore(store, metadata, groups, made)
    kept = tuple(NodeRecipe() for _ in metadata.node_types)
    return Recipe(kept, tuple(recipes), layouts, store=joined, origins=(None, origins)), sorted(set(left))


def _join_type(
    store: StoredArrays, group: TypeGroup, space: PartSpace | None, room: Workspace
) -> tuple[EdgeRecipe, NDArray[Any], Ints]:
    """Put the edges of types one behind the other; return also the position of each edge's type, and its edge ID there."""
    old, scratch = store.metadata, room.scratch
    assert not isinstance(group.name, str)
    types = [old.edge_types[number] for number in group.numbers]
    chunks = [old.num_edges_per_chunk[number] for number in group.numbers]
    row_space = PartSpace.of(TypeNames.of_edges(types), chunks, old.num_parts, "edge")
    size = sum(map(sum, chunks))
    src, dst, rows, ids, kinds = (scratch.zeros(size, np.int64) for _ in range(5))
    first = 0
    for kind, number in enumerate(group.numbers):
        edges = read_edges(store, number, room, with_rows=True)
        assert edges.rows is not None
        for at in slices(edges.size):
            out = slice(first + at.start, first + at.stop)
            for own, name, target in ((edges.src, types[kind][0], src), (edges.dst, types[kind][2], dst)):
                target[out] = own[at] if space is None else space.to_part(name, own[at])
            rows[out] = row_space.to_part(kind, edges.rows[at])
            ids[out], kinds[out] = edges.ids(at), kind
        first += edges.size
    return EdgeRecipe(group.name, 0, src, dst, rows, None), kinds, ids


# ---- line graphs and metagraphs


class LineStore:
    """The edges of a type, in the order of their rows, as the nodes of a store: raw IDs are edge IDs."""

    def __init__(self, store: StoredArrays, number: int) -> None:
        old = store.metadata
        schema = old.edge_schemas[number]
        self._store = store
        self._old_folder, self._folder = edge_folder(old.edge_types[number]), node_folder(HOMO)
        self._ids = LayoutPaths(f"{self._old_folder}/{old.primary_layout}").edge_ids if schema.edge_id_dtype else None
        self._counts = old.num_edges_per_chunk[number]
        nodes = NodeTypeSchema("int64", schema.columns, schema.num_slots)
        edges = replace(schema, columns=(), num_slots=False, neighbor_order="input")
        self.metadata = replace(
            old,
            node_types=(HOMO,),
            num_nodes_per_chunk=(self._counts,),
            node_schemas=(nodes,),
            edge_types=(HOMO_EDGE,),
            num_edges_per_chunk=((0,) * old.num_parts,),
            edge_schemas=(edges,),
            partition_by="range" if old.num_parts == 1 else "file",
        )

    def has(self, part: int, path: str) -> bool:
        """See ``StoredArrays``."""
        return self._store.has(part, self._rename(path))

    def array(self, part: int, path: str) -> StoredArray:
        """See ``StoredArrays``."""
        if path == NodePaths(self._folder).raw_ids:
            first, size = sum(self._counts[:part]), self._counts[part]
            ids = np.arange(first, first + size) if self._ids is None else self._store.array(part, self._ids).read()
            return MemoryArray(path, ids.astype(np.int64))
        return self._store.array(part, self._rename(path))

    def _rename(self, path: str) -> str:
        return self._old_folder + path.removeprefix(self._folder) if path.startswith(self._folder) else path


def line_graph(
    store: StoredArrays,
    number: int,
    room: Workspace,
    layouts: Any,
    check: Callable[[int, int], None],
    *,
    backtracking: bool,
) -> Recipe:
    """Make a node of every edge, and an edge from each to those that begin where it ends. Source: DGL's ``line_graph``.

    Without ``backtracking`` none leads to an edge that goes back. They stand by the first edge, then by the second's end.
    ``check`` is told how many edges there will be at most, and the bytes of an end, before any is made.
    """
    metadata, scratch = store.metadata, room.scratch
    edges = read_edges(store, number, room, with_rows=True)
    num_nodes = metadata.num_nodes_per_type[metadata.node_types.index(edges.edge_type[0])]
    assert edges.rows is not None
    offsets, size = scratch.zeros(num_nodes + 1, np.int64), 0
    for some in slices(edges.size):
        room.kernels.count_ids(np.ascontiguousarray(edges.src[some]), offsets[1:])
    np.cumsum(offsets, out=offsets)
    for some in slices(edges.size):  # a loop does not follow itself
        size += int(_followers(edges, offsets, some).sum()) - int(np.count_nonzero(edges.src[some] == edges.dst[some]))
    check(size, edges.rows.dtype.itemsize)
    order, at = scratch.zeros(edges.size, narrow(edges.size)), 0
    for _, _, ids in sorted_edges(store, edges, room, lambda *piece: piece):
        order[at : at + ids.size] = ids
        at += ids.size
    src, dst = (scratch.zeros(size, edges.rows.dtype) for _ in range(2))
    at = 0
    for some in _cut_followed(edges, offsets, room.fit(_LINE_BYTES)):
        first, second = _line_edges(edges, order, offsets, some, backtracking=backtracking)
        src[at : at + first.size], dst[at : at + first.size] = edges.rows[first], edges.rows[second]
        at += first.size
    kept, ids_by_row = scratch.zeros(edges.size, np.int64), scratch.zeros(edges.size, narrow(edges.size))
    for some in slices(edges.size):
        ids_by_row[edges.rows[some]] = edges.ids(some)
    borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(metadata.num_edges_per_chunk[number])])
    for low, high in itertools.pairwise(borders.tolist()):
        kept[low:high] = low + np.argsort(ids_by_row[low:high], kind="stable")
    made = EdgeRecipe(HOMO_EDGE, 0, src[:at], dst[:at], None, None)
    origins = [Origin(ids_by_row, (number,))], [_no_origin(at)]
    return Recipe((NodeRecipe(kept),), (made,), layouts, store=LineStore(store, number), origins=origins)


def _followers(edges: EdgeRecipe, offsets: Ints, some: slice) -> Ints:
    """Count the edges that begin where each of some edges ends."""
    return np.asarray(offsets[1:][edges.dst[some]] - offsets[edges.dst[some]])


def _cut_followed(edges: EdgeRecipe, offsets: Ints, most: int) -> Iterator[slice]:
    """Cut the edges so that of each cut about ``most`` edges of the line graph come, those of one edge more at most."""
    for some in slices(edges.size):
        sums, low = np.cumsum(_followers(edges, offsets, some)), 0
        while low < sums.size:
            before = int(sums[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(sums, before + most, side="right")))
            yield slice(some.start + low, some.start + high)
            low = high


def _line_edges(edges: EdgeRecipe, order: Ids, offsets: Ints, some: slice, *, backtracking: bool) -> tuple[Ints, Ids]:
    counts, begins = _followers(edges, offsets, some), offsets[edges.dst[some]]
    first = np.repeat(np.arange(some.start, some.stop), counts)
    second = order[np.arange(first.size) + np.repeat(begins - np.cumsum(counts) + counts, counts)]
    kept = first != second  # a loop does not follow itself
    if not backtracking:
        kept &= edges.dst[second] != edges.src[first]
    return first[kept], second[kept]


def metagraph(store: StoredArrays, layouts: Any) -> Recipe:
    """Make a node of every node type, and an edge of every edge type, with their names and numbers."""
    old = store.metadata
    names = sorted(old.node_types, key=str.encode)
    texts = [name.encode() for name in names]
    folder, edge_type = node_folder("type"), ("type", "relation", "type")
    relations, codes = _coded([relation for _, relation, _ in old.edge_types])
    sizes = old.num_nodes_by_type()
    arrays: dict[str, NDArray[Any]] = {
        ColumnPaths(f"{folder}/raw_ids").offsets: np.cumsum([0, *map(len, texts)], dtype=np.int64),
        ColumnPaths(f"{folder}/raw_ids").values: np.frombuffer(b"".join(texts), np.uint8),
        f"{folder}/data/num_nodes.npy": np.array([sizes[name] for name in names], np.int64),
    }
    src, dst = (np.array([names.index(one[side]) for one in old.edge_types], np.int64) for side in (0, 2))
    columns = (ColumnSchema("relation", "dense", "int64", categories=relations), ColumnSchema("num_edges", "dense", "int64"))
    made = (
        MadeColumn(columns[0], codes),
        MadeColumn(columns[1], np.array(old.num_edges_per_type, np.int64)),
    )
    schema = EdgeTypeSchema("input", "int32", "int32", None, "0" * 16)
    metadata = replace(
        old,
        node_types=("type",),
        num_nodes_per_chunk=((len(names),),),
        node_schemas=(NodeTypeSchema("string", (ColumnSchema("num_nodes", "dense", "int64"),)),),
        edge_types=(edge_type,),
        num_edges_per_chunk=((src.size,),),
        edge_schemas=(schema,),
        num_parts=1,
        partition_by="range",
    )
    ids = np.arange(src.size)
    recipe = EdgeRecipe(edge_type, 0, src, dst, ids, ids, made)
    origins = [_no_origin(len(names))], [_no_origin(src.size)]
    return Recipe((NodeRecipe(),), (recipe,), layouts, store=MemoryStore(metadata, arrays), origins=origins)


def _no_origin(size: int) -> Origin:
    """Say of nodes or edges that they are new: -1, of which only one is held."""
    return Origin(np.broadcast_to(np.int64(NO_ROW), size))
