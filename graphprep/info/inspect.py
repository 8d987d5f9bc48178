"""Say what is at a path: a store, a chunked graph or a raw file; its schema, counts and first rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import memory_limit, record_bytes
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.metadata import FORMAT_VERSION, STORE_FORMAT
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import DeclaredColumn, Reporter, Sources
from graphprep.model.rows import ColumnChunk, RawIds, RawRows, RawTexts, Relation
from graphprep.model.schema import ColumnSchema, Kind, edge_type_text
from graphprep.model.shown import texts as words
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.storage.read.arrays import StoreReader, is_store
from graphprep.storage.read.urls import STDIN, Storage
from graphprep.store.items import check_arrays
from graphprep.store.paths import ColumnPaths, LayoutPaths, edge_folder, node_folder

if TYPE_CHECKING:
    from graphprep.convert.read.plan import Planned
    from graphprep.info.guess import GuessedGraph

_BLOCK_ROWS = 1 << 14  # of a raw table that is looked at
_MAX_SPANS = 64  # files that are looked at
_MAX_HEAD = 1 << 16
_MAX_SHOWN = 8  # values of one cell in the head

Value = int | float | str | bool | list[Any] | None


@dataclass(frozen=True)
class ColumnInfo:
    """A column: as stored, or as the first blocks of raw data show it (``kind`` None: dense or ragged is open).

    ``num_categories`` counts the names of a label that was text.
    """

    name: str
    kind: Kind | None
    dtype: str
    item_shape: tuple[int, ...]
    optional: bool = False
    role: str | None = None
    unit: str | None = None
    num_categories: int | None = None


@dataclass(frozen=True)
class Head:
    """First rows: names of the columns, and a tuple of values a row. Lists of values are cut after eight."""

    names: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class TypeInfo:
    """A node type, or an edge type (``src:rel:dst``).

    ``count`` is the number of nodes or edges, None where only the whole input tells; ``seen`` how many the first blocks had.
    ``per_part`` are counts by partition (of a chunked graph: by chunk). ``node_order`` is set where nodes were reordered.
    """

    name: str
    count: int | None
    seen: int | None = None
    per_part: tuple[int, ...] = ()
    raw_ids: str | None = None
    node_order: str | None = None
    neighbor_order: str | None = None
    index_dtype: str | None = None
    edge_id_dtype: str | None = None
    columns: tuple[ColumnInfo, ...] = ()
    head: Head | None = None


@dataclass(frozen=True, repr=False)
class GraphInfo(Showable):
    """What is at a path. ``flags`` convert a raw file; ``num_bytes`` is the size as stored, None where a server is silent."""

    path: str
    kind: Literal["store", "chunked", "raw", "samples", "export"]
    format: str
    num_bytes: int | None
    num_files: int
    graph_name: str | None = None
    num_parts: int | None = None
    partition_by: str | None = None
    layouts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    node_types: tuple[TypeInfo, ...] = ()
    edge_types: tuple[TypeInfo, ...] = ()
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        nodes, edges = ({one.name: one.count for one in types} for types in (self.node_types, self.edge_types))
        columns = {one.name: [column.name for column in one.columns] for one in (*self.node_types, *self.edge_types)}
        bulk = "" if self.num_bytes is None else f", {words.size(self.num_bytes)}"
        title = f"{self.path}: {self.format}, {words.count(self.num_files, 'file')}{bulk}"
        return Card(title, type_rows(nodes, edges, columns), tuple(f"note: {one}" for one in self.notes))


def inspect(
    storage: Storage,
    inputs: Sequence[str],
    options: ConvertOptions,
    reporter: Reporter,
    *,
    head: int = 0,
    check: Callable[[Sources], None],
) -> GraphInfo | GuessedGraph:
    """Look at a store, a chunked graph or raw files; ``head`` is how many nodes and edges of each type to show.

    Of raw files only the beginning is read; ``check`` refuses what they state and nothing has room for. Of a folder of tables
    that says nothing of them, the graph is guessed. Raises DataError where the data is faulty, StorageError where nothing is
    there, and what ``check`` raises.
    """
    count = max(0, min(head, _MAX_HEAD))
    if len(inputs) == 1 and is_store(storage, inputs[0]):
        return _inspect_store(storage, inputs[0], count)
    from graphprep.convert.read.plan import plan_input

    storage.record_bytes = record_bytes(memory_limit(options.run.memory_limit))
    try:
        planned = plan_input(inputs, options, storage, reporter)
    except (UsageError, DataError) as error:
        return _guess(storage, inputs, options, error)
    check(planned.sources)
    try:
        return _inspect_input(storage, inputs, planned, count)
    except (UsageError, DataError) as error:
        return _guess(storage, inputs, options, error)


def _guess(storage: Storage, inputs: Sequence[str], options: ConvertOptions, error: UsageError | DataError) -> GuessedGraph:
    """Guess the graph of tables that cannot be read as they are; raise the error where they are none."""
    from graphprep.info.guess import guess_graph

    guessed = guess_graph(storage, inputs[0]) if _may_be_tables(storage, inputs, options, error) else None
    if guessed is None:
        raise error
    return guessed


def _may_be_tables(storage: Storage, inputs: Sequence[str], options: ConvertOptions, error: UsageError | DataError) -> bool:
    """Return whether an input that cannot be read as it is may be a table, or a folder of tables.

    What is wrong with a text that looks like an edge list is told; a Parquet file may be anything.
    """
    if options.graph is not None or options.format is not None or options.decoder is not None or len(inputs) != 1:
        return False
    from graphprep.decoders.registry import NodeTableError, TablesError, UnknownFormatError

    if isinstance(error, NodeTableError | TablesError | UnknownFormatError):
        return inputs[0] != STDIN
    if inputs[0] == STDIN or storage.is_dir(inputs[0]):
        return False
    return isinstance(error, UsageError) or storage.head(inputs[0], 4) == b"PAR1"


# ---------------------------------------------------------------------------------------------------- stores


def _inspect_store(storage: Storage, url: str, head: int) -> GraphInfo:
    store = StoreReader(storage, url)
    metadata = store.metadata
    for part in range(metadata.num_parts):
        check_arrays(store, part)
    entries = [entry for part in range(metadata.num_parts) for entry in store.manifest(part).arrays]
    return GraphInfo(
        path=url,
        kind="store",
        format=f"{STORE_FORMAT} {FORMAT_VERSION}",
        num_bytes=sum(entry.num_bytes for entry in entries) + sum(part.manifest_bytes for part in metadata.parts),
        num_files=len(entries) + metadata.num_parts + 1,
        graph_name=metadata.graph_name,
        num_parts=metadata.num_parts,
        partition_by=metadata.partition_by,
        layouts=metadata.layouts,
        node_types=tuple(_store_nodes(store, number, head) for number in range(len(metadata.node_types))),
        edge_types=tuple(_store_edges(store, number, head) for number in range(len(metadata.edge_types))),
    )


def _store_nodes(store: StoreReader, number: int, head: int) -> TypeInfo:
    metadata, schema = store.metadata, store.metadata.node_schemas[number]
    return TypeInfo(
        name=metadata.node_types[number],
        count=metadata.num_nodes_per_type[number],
        per_part=metadata.num_nodes_per_chunk[number],
        raw_ids=schema.raw_ids,
        node_order=schema.node_order,
        columns=tuple(_column_info(column) for column in schema.columns),
        head=_node_head(store, number, head) if head else None,
    )


def _store_edges(store: StoreReader, number: int, head: int) -> TypeInfo:
    metadata, schema = store.metadata, store.metadata.edge_schemas[number]
    return TypeInfo(
        name=edge_type_text(metadata.edge_types[number]),
        count=metadata.num_edges_per_type[number],
        per_part=metadata.num_edges_per_chunk[number],
        neighbor_order=schema.neighbor_order,
        index_dtype=schema.index_dtype,
        edge_id_dtype=schema.edge_id_dtype,
        columns=tuple(_column_info(column) for column in schema.columns),
        head=_edge_head(store, number, head) if head else None,
    )


def _column_info(column: ColumnSchema) -> ColumnInfo:
    count = None if column.categories is None else len(column.categories)
    return ColumnInfo(
        column.name, column.kind, column.dtype, column.item_shape, column.optional, column.role, column.unit, count
    )


def _runs(per_part: Sequence[int], count: int) -> Iterator[tuple[int, int, int]]:
    """Yield (partition, rows of it, number of rows before) until ``count`` rows."""
    before = 0
    for part, size in enumerate(per_part):
        rows = min(size, count - before)
        if rows > 0:
            yield part, rows, before
            before += rows


def _node_head(store: StoreReader, number: int, head: int) -> Head:
    metadata, schema = store.metadata, store.metadata.node_schemas[number]
    folder = node_folder(metadata.node_types[number])
    rows: list[tuple[Value, ...]] = []
    for part, count, _ in _runs(metadata.num_nodes_per_chunk[number], head):
        offset = sum(metadata.num_nodes_per_chunk[number][:part])
        raw = _raw_ids(store, number, np.arange(offset, offset + count))
        columns = [_read_column(store, part, f"{folder}/{column.path}", column, count) for column in schema.columns]
        rows += zip(raw, *columns, strict=True)
    return Head(("raw ID", *(column.name for column in schema.columns)), tuple(rows))


def _edge_head(store: StoreReader, number: int, head: int) -> Head:
    metadata, schema = store.metadata, store.metadata.edge_schemas[number]
    src_type, _, dst_type = metadata.edge_types[number]
    layout, folder = metadata.primary_layout, edge_folder(metadata.edge_types[number])
    own_type = metadata.node_types.index(dst_type if layout == "csc" else src_type)
    other_type = metadata.node_types.index(src_type if layout == "csc" else dst_type)
    has_ids = schema.edge_id_dtype is not None
    rows: list[tuple[Value, ...]] = []
    for part, count, _ in _runs(metadata.num_edges_per_chunk[number], head):
        own = _rows_of_head(store, part, LayoutPaths(f"{folder}/{layout}").indptr, count)
        own_offset = sum(metadata.num_nodes_per_chunk[own_type][:part])
        raw_own = _raw_ids(store, own_type, own + own_offset)
        raw_other = _raw_ids(store, other_type, store.array(part, LayoutPaths(f"{folder}/{layout}").indices).read(0, count))
        ends = (raw_other, raw_own) if layout == "csc" else (raw_own, raw_other)
        ids = [store.array(part, LayoutPaths(f"{folder}/{layout}").edge_ids).read(0, count).tolist()] if has_ids else []
        columns = [_read_column(store, part, f"{folder}/{column.path}", column, count) for column in schema.columns]
        rows += zip(*ends, *ids, *columns, strict=True)
    names = ("source", "destination", *(("edge ID",) if has_ids else ()), *(column.name for column in schema.columns))
    return Head(names, tuple(rows))


def _rows_of_head(store: StoreReader, part: int, path: str, count: int) -> NDArray[np.int64]:
    """Return the rows of the first entries, reading no more of indptr than needed."""
    indptr, size = store.array(part, path), 1 << 12
    while True:
        found = indptr.read(0, size)
        if found.size < size or found[-1] >= count:
            return np.asarray(np.searchsorted(found, np.arange(count), side="right") - 1, np.int64)
        size *= 4


def _raw_ids(store: StoreReader, number: int, typed: NDArray[Any]) -> list[Value]:
    """Return the raw IDs of some nodes."""
    metadata = store.metadata
    if metadata.node_schemas[number].raw_ids == "identity":
        return list(typed.tolist())
    if typed.size and (typed.min() < 0 or typed.max() >= metadata.num_nodes_per_type[number]):
        raise DataError("an edge's end is out of range", place=store.url, fix="run graphprep validate on the store")
    from graphprep.store.raw_ids import RawLookup

    found = RawLookup(store, number).of(typed)
    texts = [text.decode("utf-8", "backslashreplace") for text in found.tolist()] if isinstance(found, RawTexts) else None
    return list(found.tolist() if texts is None else texts)


def _read_column(store: StoreReader, part: int, stem: str, column: ColumnSchema, count: int) -> list[Value]:
    """Return the first rows of a stored column, None where a row lacks it."""
    if column.kind == "dense":
        values: list[Value] = [_plain(value) for value in store.array(part, f"{stem}.npy").read(0, count)]
    else:
        values = [_list_cell(store, part, stem, column, row) for row in range(count)]
    if column.optional:
        present = store.array(part, ColumnPaths(stem).present).read(0, count).tolist()
        values = [value if here else None for value, here in zip(values, present, strict=True)]
    return values


def _list_cell(store: StoreReader, part: int, stem: str, column: ColumnSchema, row: int) -> Value:
    """Return one row of a column whose rows differ in length."""
    if column.kind == "temporal":
        first, last = store.array(part, ColumnPaths(stem).entry_offsets).read(row, row + 2).tolist()
        stop = min(last, first + _MAX_SHOWN)
        starts = store.array(part, ColumnPaths(stem).start).read(first, stop).tolist()
        has_ends = any(entry.path == ColumnPaths(stem).end for entry in store.manifest(part).arrays)
        ends = store.array(part, ColumnPaths(stem).end).read(first, stop).tolist() if has_ends else [-1] * len(starts)
        entries: list[Any] = [
            [start, end, _values(store, part, stem, column, first + i)]
            for i, (start, end) in enumerate(zip(starts, ends, strict=True))
        ]
        return [*entries, "..."] if stop < last else entries
    found = _values(store, part, stem, column, row)
    if column.kind != "sparse" or not isinstance(found, list):
        return found
    first, last = store.array(part, ColumnPaths(stem).offsets).read(row, row + 2).tolist()
    coords = store.array(part, ColumnPaths(stem).coords).read(first, min(last, first + _MAX_SHOWN)).tolist()
    pairs: list[Any] = [[at, value] for at, value in zip(coords, found, strict=False)]
    return [*pairs, "..."] if last - first > _MAX_SHOWN else pairs


def _values(store: StoreReader, part: int, stem: str, column: ColumnSchema, row: int) -> Value:
    first, last = store.array(part, ColumnPaths(stem).offsets).read(row, row + 2).tolist()
    limit = _MAX_SHOWN * 8 if column.kind == "binary" else _MAX_SHOWN
    values = store.array(part, ColumnPaths(stem).values).read(first, min(last, first + limit + 1))
    return _text(values) if column.kind == "binary" else _plain(values)


def _plain(values: Any) -> Value:
    """Return JSON's form of a value or of the first of several."""
    array = np.asarray(values)
    if array.dtype.kind == "c":
        return str(array.tolist()) if array.ndim == 0 else [str(value) for value in array.ravel()[:_MAX_SHOWN].tolist()]
    if array.ndim == 0:
        return _number(array[()])
    flat = [_number(value) for value in array.ravel()[:_MAX_SHOWN]]
    return [*flat, "..."] if array.size > _MAX_SHOWN else flat


def _number(value: Any) -> Value:
    """Return a NumPy scalar as Python's; a float narrower than Python's by its shortest text (0.1, not 0.10000000149011612)."""
    if value.dtype.kind == "f" and value.dtype.itemsize < 8:
        return float(str(value))
    plain: Value = value.item()
    return plain


def _text(values: NDArray[Any]) -> str:
    return values.tobytes().decode("utf-8", "backslashreplace")


# ---------------------------------------------------------------------------------------------------- chunked and raw


def _inspect_input(storage: Storage, inputs: Sequence[str], planned: Planned, head: int) -> GraphInfo:
    sources = planned.sources
    looked = _look(storage, planned)
    nodes, edges = _SeenTypes(head), _SeenTypes(head)
    for rows in looked:
        nodes.add_nodes(rows, sources)
        edges.add_edges(rows)
    relations = [_relation_name(relation) for relation in sources.edge_types]
    num_edges: dict[str, int | None] = dict.fromkeys(relations)
    num_edges.update(zip(relations, sources.num_edges or (), strict=False))
    counts = {declaration.name: declaration.num_nodes for declaration in sources.node_types}
    for column in sources.columns:
        owner, side = (column.owner, nodes) if isinstance(column.owner, str) else (edge_type_text(column.owner), edges)
        seen = side.columns(owner)
        seen[column.key.name] = _declared_info(column, seen.get(column.key.name))
    return GraphInfo(
        path=(inputs[0] if len(inputs) == 1 else ", ".join(inputs)) or "tables",
        kind="chunked" if planned.format == "chunked" else "raw",
        format=planned.format,
        num_bytes=planned.total_bytes,
        num_files=len({span.url for span in sources.spans}),
        graph_name=sources.graph_name,
        flags=planned.flags or (("--format", planned.format) if inputs else ()),
        node_types=nodes.infos(counts),
        edge_types=edges.infos(num_edges),
        notes=sources.messages,
    )


def _relation_name(relation: Relation) -> str:
    if relation.src_type is None or relation.dst_type is None:
        return relation.name
    return edge_type_text((relation.src_type, relation.name, relation.dst_type))


def _declared_info(column: DeclaredColumn, seen: ColumnInfo | None) -> ColumnInfo:
    """Describe a column that is declared; where its dtype and shape are found in the data, as that was ``seen``."""
    name, family, dtype = column.key.name, column.key.family, column.key.dtype
    if not column.settled and column.item_shape == (0,):  # lists
        return ColumnInfo(name, "ragged", dtype, ())
    if not column.settled and seen is not None:
        return seen
    return ColumnInfo(name, "dense" if family == "numbers" else family, dtype, column.item_shape, unit=column.key.unit)


def _look(storage: Storage, planned: Planned) -> Iterator[RawRows]:
    """Decode the beginning of the first files."""
    from graphprep.storage.read.spans import place_of, text_blocks

    decoder = planned.decoder
    for span in planned.sources.spans[:_MAX_SPANS]:
        if span.kind == "text":
            for block in text_blocks(storage, span):
                try:
                    yield decoder.decode(block)
                except DecodeError as error:
                    raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from None
                break
            continue
        with storage.open(span.url) as handle:
            try:
                yield from _first(decoder.read(handle, span, _BLOCK_ROWS))
            except DecodeError as error:
                column = f", column {error.column!r}" if error.column else ""
                raise DataError(error.message, place=f"{span.url}: row {error.at}{column}", fix=error.fix) from None


def _first(batches: Iterator[RawRows]) -> Iterator[RawRows]:
    for batch in batches:
        yield batch
        return


class _SeenTypes:
    """Collects what the first blocks show of node types or of edge types, by name."""

    def __init__(self, head: int) -> None:
        self._head = head
        self._seen: dict[str, int] = {}
        self._columns: dict[str, dict[str, ColumnInfo]] = {}
        self._rows: dict[str, list[dict[str, Value]]] = {}

    def columns(self, name: str) -> dict[str, ColumnInfo]:
        """Return the columns of a type, by name."""
        return self._columns.setdefault(name, {})

    def add_nodes(self, rows: RawRows, sources: Sources) -> None:
        """Add the nodes of a block; those of formats without node records are the ends of its edges."""
        nodes = rows.nodes
        if nodes is not None:
            names = [nodes.type_names[code] for code in nodes.types[: nodes.num_rows].tolist()]
            self._add(names, {"raw ID": nodes.ids}, nodes.columns)
        for aligned in rows.aligned:
            if isinstance(aligned.owner, str):
                self._add_aligned(aligned.owner, aligned.chunk)
        if sources.nodes in ("ends", "tables"):
            for relation in rows.edges.relation_names if rows.edges is not None else ():
                for end in (relation.src_type, relation.dst_type):
                    if end is not None:
                        self._seen.setdefault(end, 0)

    def add_edges(self, rows: RawRows) -> None:
        """Add the edges of a block."""
        edges = rows.edges
        if edges is not None:
            texts = [_relation_name(relation) for relation in edges.relation_names]
            names = [texts[code] for code in edges.relations.tolist()]
            self._add(names, {"source": edges.src, "destination": edges.dst}, edges.columns)
        for aligned in rows.aligned:
            if isinstance(aligned.owner, Relation):
                self._add_aligned(_relation_name(aligned.owner), aligned.chunk)

    def infos(self, counts: dict[str, int | None]) -> tuple[TypeInfo, ...]:
        """Return what is known of each type; those with counts that are known beforehand first."""
        names = list(dict.fromkeys([*counts, *self._seen, *self._columns]))
        return tuple(self._info(name, counts.get(name)) for name in names)

    def _info(self, name: str, count: int | None) -> TypeInfo:
        rows = self._rows.get(name, [])
        heading = tuple(dict.fromkeys(key for row in rows for key in row))
        head = Head(heading, tuple(tuple(row.get(key) for key in heading) for row in rows)) if rows else None
        seen = self._seen.get(name) or None
        return TypeInfo(name, count, seen, columns=tuple(self.columns(name).values()), head=head)

    def _add(self, names: list[str], ids: dict[str, RawIds | RawTexts], columns: tuple[ColumnChunk, ...]) -> None:
        first: dict[int, dict[str, Value]] = {}  # rows that the head shows, by their number in the block
        for i, name in enumerate(names):
            self._seen[name] = self._seen.get(name, 0) + 1
            shown = self._rows.setdefault(name, [])
            if len(shown) < self._head:
                first[i] = {key: _id_cell(values, i) for key, values in ids.items()}
                shown.append(first[i])
        for chunk in columns:
            for name in {names[row] for row in chunk.rows.tolist()}:
                self.columns(name).setdefault(chunk.key.name, _observed_info(chunk))
            for i, row in first.items():
                row[chunk.key.name] = _cell(chunk, i)

    def _add_aligned(self, name: str, chunk: ColumnChunk) -> None:
        self.columns(name).setdefault(chunk.key.name, _observed_info(chunk))
        shown = self._rows.setdefault(name, [])
        while len(shown) < min(self._head, chunk.rows.size):
            shown.append({"raw ID": len(shown)})
        for i, row in enumerate(shown):
            row[chunk.key.name] = _cell(chunk, i)


def _id_cell(ids: RawIds | RawTexts, row: int) -> Value:
    return ids.text(row) if isinstance(ids, RawTexts) else int(ids[row])


def _observed_info(chunk: ColumnChunk) -> ColumnInfo:
    key = chunk.key
    kind: Kind | None = None if key.family == "numbers" else key.family
    shape = chunk.item_shape or ()
    if key.family == "numbers" and chunk.item_shape is not None:
        kind = "dense"
    return ColumnInfo(key.name, kind, key.dtype, shape, role=key.role, unit=key.unit)


def _cell(chunk: ColumnChunk, row: int) -> Value:
    """Return the value of one row of a block; None where it lacks the column."""
    at = int(np.searchsorted(chunk.rows, row))
    if at == chunk.rows.size or chunk.rows[at] != row:
        return None
    if chunk.entry_counts is not None:
        return _dated_cell(chunk, at)
    start = int(chunk.counts[:at].sum())
    values = chunk.values[start : start + int(chunk.counts[at])]
    if chunk.key.family == "binary":
        return _text(values[: _MAX_SHOWN * 8])
    if chunk.key.family == "sparse" and chunk.coords is not None:
        width = max(chunk.key.width, 1)
        coords = chunk.coords.reshape(-1, width)[start : start + values.size]
        return [
            [_plain(at_[0] if chunk.key.width == 0 else at_), _plain(value)] for at_, value in zip(coords, values, strict=True)
        ][:_MAX_SHOWN]
    return _plain(values[0] if chunk.item_shape == () and values.size == 1 else values)


def _dated_cell(chunk: ColumnChunk, at: int) -> Value:
    """Return the entries of one row of a temporal column: start, end (-1: none) and values."""
    assert chunk.entry_counts is not None and chunk.start is not None and chunk.end is not None
    first = int(chunk.entry_counts[:at].sum())
    last = first + int(chunk.entry_counts[at])
    entries: list[Any] = []
    for entry in range(first, min(last, first + _MAX_SHOWN)):
        begin = int(chunk.counts[:entry].sum())
        values = _plain(chunk.values[begin : begin + int(chunk.counts[entry])])
        entries.append([int(chunk.start[entry]), int(chunk.end[entry]), values])
    return [*entries, "..."] if last - first > _MAX_SHOWN else entries


__all__ = ["ColumnInfo", "GraphInfo", "Head", "TypeInfo", "inspect"]
