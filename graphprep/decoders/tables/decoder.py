"""Node and edge tables to a heterogeneous graph, as a graph config or ``--nodes`` and ``--edges`` list them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar

from graphprep.decoders.cells.columns import IdKind, name_two_kinds
from graphprep.decoders.tables.columns import NodeOwner, TableLayout
from graphprep.decoders.tables.ids import IdSpaces, KeyUse
from graphprep.decoders.tables.plan import PlannedTable, check_mentioned, look_at_table, settle_group, spans_of
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.protocols import DeclaredColumn, DeclaredNodes, FindsFaults, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import RawRows, Relation
from graphprep.model.schema import edge_type_text

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_GLOBAL = "global"  # the ID space that all types share
_NODES = "nodes"  # that of types which only the data names
_ARRAYS = ("npy", "npz", "mtx", "metis")


@dataclass(frozen=True)
class TablesDecoder:
    """Decodes the tables that a ``GraphConfig`` lists: CSV and its like, Parquet, Arrow, JSON lines, arrays.

    Every span brings the reader of its file. ``widened`` are dtypes that were decided late, by ``role/name`` or by name;
    ``settled`` the ID spaces that turned out to hold integers: ``plan_graph`` heeds both.
    """

    weight_dtype: str = "float32"
    widened: Mapping[str, str] = field(default_factory=dict, init=False)
    settled: tuple[str, ...] = field(default=(), init=False)

    name: ClassVar[str] = "tables"

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Refuse files without a config: they do not say which table is what.

        Raises UsageError.
        """
        raise UsageError(
            "tables need to be told which type each of them holds",
            fix="pass --nodes TYPE=FILE and --edges SRC:REL:DST=FILE, or a graph config",
        )

    def plan_graph(self, storage: Storage, config: GraphConfig) -> Sources:
        """Look at the beginning of every file, and make a span of each, node tables first.

        Raises DataError where files of a table disagree, UsageError for columns that are not there.
        """
        return _GraphPlan(storage, config, self).sources()

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Let the span's reader decode whole records."""
        rows: RawRows = block.span.detail.decode(block, places)
        return rows

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Let the span's reader find all faulty records, where it can: see ``EdgesDecoder.find_faults``."""
        reader = block.span.detail
        return reader.find_faults(block) if isinstance(reader, FindsFaults) else []

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Let the span's reader read its rows."""
        rows: Iterator[RawRows] = span.detail.read(handle, span, max_rows, places)
        return rows

    def widen(self, columns: Mapping[str, str]) -> TablesDecoder:
        """Return the decoder with the dtypes of these columns decided, by ``role/name``, or by name for all tables."""
        return self._with(widened={**self.widened, **columns})

    def settle_ids(self, spaces: Sequence[str]) -> TablesDecoder:
        """Return the decoder that reads the IDs of these spaces as int64."""
        return self._with(settled=tuple(dict.fromkeys((*self.settled, *spaces))))

    def _with(self, **changes: object) -> TablesDecoder:
        other = copy.copy(self)
        for name, value in changes.items():
            object.__setattr__(other, name, value)
        return other


class _GraphPlan:
    """A config on its way to spans."""

    def __init__(self, storage: Storage, config: GraphConfig, decoder: TablesDecoder) -> None:
        self.storage = storage
        self.config = config
        self.decoder = decoder
        self.spaces = _Spaces(config)
        self.ids = IdSpaces(config.id_type, decoder.settled)
        self.messages: list[str] = []

    def sources(self) -> Sources:
        """Scatter the spans."""
        nodes = self._settled([self._look(table, self._node_role(table)) for table in self.config.nodes if table.table.files])
        plain = [table for table in self.config.edges if not self._holds_arrays(table)]
        edges = self._settled([self._look(table, self._edge_role(table)) for table in plain])
        check_mentioned([*nodes, *edges], self._everywhere() if len(plain) == len(self.config.edges) else {})
        self._note_keys([*nodes, *edges])
        kinds = self.ids.kinds()
        spans = [span for table in nodes for span in self._node_spans(table, nodes, kinds)]
        found = {id(table.table): table for table in edges}
        parts = [self._edge_part(table, found.get(id(table)), kinds) for table in self.config.edges]
        spans += [span for part in parts for span in part.spans]
        relations = [part.relation for part in parts if part.relation is not None]
        return Sources(
            tuple(spans),
            nodes="tables",
            node_types=self._node_types(parts),
            edge_types=tuple(dict.fromkeys(relations)),
            columns=tuple(column for part in parts for column in part.columns),
            graph_name=self.config.graph_name,
            messages=tuple(dict.fromkeys(self.messages)),
            default_space=self.spaces.default,
            signed_ids=self.ids.signed_spaces(kinds),
            auto_ids=self.ids.open_spaces(),
            named_columns=tuple(dict.fromkeys(_named_columns(spans))),
        )

    def _everywhere(self) -> dict[str, list[str]]:
        """Return the columns that options of all tables name, by option."""
        flags = not self.config.place
        columns = [name for name, _ in self.config.columns]
        return {"--column" if flags else "columns": columns, "--drop-column" if flags else "drop": list(self.config.dropped)}

    # ------------------------------------------------------------------------------------------------ looking

    def _look(self, table: NodeTable | EdgeTable, role: str) -> PlannedTable:
        config = dataclasses.replace(
            table.table,
            columns=(*self.config.columns, *table.table.columns),
            dropped=(*self.config.dropped, *table.table.dropped),
        )
        found = look_at_table(self.storage, table, config, role, self.config.base, self.decoder.weight_dtype)
        self.messages += found.messages
        return dataclasses.replace(found, config=table.table)

    def _settled(self, tables: Sequence[PlannedTable]) -> list[PlannedTable]:
        """Settle dtypes role by role; the order of the tables stays."""
        done: dict[int, PlannedTable] = {}
        for role in dict.fromkeys(table.role for table in tables):
            group = [(number, table) for number, table in enumerate(tables) if table.role == role]
            settled = settle_group([table for _, table in group], self._widened(role, [table for _, table in group]))
            done.update((number, table) for (number, _), table in zip(group, settled, strict=True))
        return [done[number] for number in range(len(tables))]

    def _widened(self, role: str, tables: Sequence[PlannedTable]) -> dict[str, str]:
        names = {column.name for table in tables for layout in table.layouts for column in layout.features}
        told = self.decoder.widened
        found = {name: told.get(f"{role}/{name}", told.get(name)) for name in names}
        return {name: dtype for name, dtype in found.items() if dtype is not None}

    def _node_role(self, table: NodeTable) -> str:
        """Return the role of a node table: one for all of them where types stand in a column."""
        return "nodes" if self.spaces.has_type_col else f"nodes {table.type}"

    def _edge_role(self, table: EdgeTable) -> str:
        is_named = all(edges.relation is not None and edges.src_type and edges.dst_type for edges in self.config.edges)
        return f"edges {edge_type_text(_names(table))}" if is_named else "edges"

    def _holds_arrays(self, table: EdgeTable) -> bool:
        """Return whether an edge table's files are arrays or matrices."""
        from graphprep.decoders.tables.head import kind_of

        if table.layout != "coo" or table.table.format in _ARRAYS:
            return True
        first = self._urls(table.table)[0]
        return kind_of(self.storage, first, table.table) == "arrays"

    def _urls(self, config: TableConfig) -> tuple[str, ...]:
        base = self.config.base
        expanded = self.storage.expand([url if url == "-" else self.storage.join(base, url) for url in config.files])
        return expanded.files

    # ------------------------------------------------------------------------------------------------ raw IDs

    def _note_keys(self, tables: Sequence[PlannedTable]) -> None:
        for table in tables:
            given = table.config.id_type
            for number, space in enumerate(self._key_spaces(table.table)):
                self.ids.add(space, KeyUse(given, place=table.config.place))
                for file in table.files:
                    if file.layout is not None:
                        is_numbered = file.layout.ids[number].position is None
                        held = None if is_numbered else file.held[number]
                        self.ids.add(space, KeyUse(None, held, is_numbered, file.shown, table.config.place))
        for nodes in self.config.nodes:
            if nodes.type is not None and not nodes.table.files:
                use = KeyUse(nodes.table.id_type, is_numbered=nodes.num_nodes is not None, place=nodes.table.place)
                self.ids.add(self.spaces.of_type(nodes.type), use)
        for edges in self.config.edges:
            for space in self._key_spaces(edges):
                self.ids.add(space, KeyUse(None, place=edges.table.place))

    def _key_spaces(self, table: NodeTable | EdgeTable) -> tuple[str, ...]:
        if isinstance(table, NodeTable):
            return (self.spaces.of_table(table),)
        return self.spaces.of_end(table, 0), self.spaces.of_end(table, 1)

    # ------------------------------------------------------------------------------------------------ spans

    def _node_spans(self, table: PlannedTable, nodes: Sequence[PlannedTable], kinds: Mapping[str, IdKind]) -> Iterator[Span]:
        own = [kinds[space] for space in self._key_spaces(table.table)]
        yield from spans_of(self.storage, table, own, declares=_declares(table, nodes))

    def _edge_part(self, table: EdgeTable, found: PlannedTable | None, kinds: Mapping[str, IdKind]) -> _EdgePart:
        own = [kinds[space] for space in self._key_spaces(table)]
        relation = self._relation(table)
        if found is not None:
            layouts = [_with_owner(file, relation) for file in found.files]
            named = dataclasses.replace(found, files=tuple(layouts))
            with_ids = map(_with_id_columns, spans_of(self.storage, named, own, declares=True))
            spans = self._with_parts(table, with_ids)
            return _EdgePart(spans, relation if table.relation is not None else None)
        from graphprep.decoders.arrays.decoder import plan_edge_files

        named_table = dataclasses.replace(table, src_space=relation.src_space, dst_space=relation.dst_space)
        plan = plan_edge_files(
            self.storage,
            self._urls(table.table),
            named_table,
            weight_dtype=self.decoder.weight_dtype,
            ids=(own[0], own[1]),
        )
        self.messages += plan.messages
        spans = self._with_parts(table, (dataclasses.replace(span, role=self._edge_role(table)) for span in plan.spans))
        return _EdgePart(spans, plan.relation, plan.columns, (plan.num_src, plan.num_dst), plan.nodes_by)

    def _with_parts(self, table: EdgeTable, spans: Iterable[Span]) -> tuple[Span, ...]:
        """Let the readers of a table's edges add the split that pairs of ends make."""
        if table.parts is None:
            return tuple(spans)
        from graphprep.decoders.tables.pair_parts import PartsReader, load_parts

        parts = load_parts(self.storage, table.parts)
        return tuple(dataclasses.replace(span, detail=PartsReader(span.detail, parts)) for span in spans)

    def _relation(self, table: EdgeTable) -> Relation:
        """Return the relation of an edge table; an end without a type names the space in which it is found."""
        src_space = None if table.src_type else self.spaces.of_end(table, 0)
        dst_space = None if table.dst_type else self.spaces.of_end(table, 1)
        return Relation(table.relation or "", table.src_type, table.dst_type, src_space, dst_space)

    def _node_types(self, parts: Sequence[_EdgePart]) -> tuple[DeclaredNodes, ...]:
        """List the node types: those of node tables, then those that edges name."""
        counts: dict[str, tuple[int, str]] = {}
        for table, part in zip(self.config.edges, parts, strict=True):
            for name, count in zip((table.src_type, table.dst_type), part.num_nodes, strict=True):
                if name is not None and count is not None:
                    counts[name] = max((count, part.nodes_by), counts.get(name, (0, "")))
        declared = []
        for name in self.spaces.types:
            tables = [table for table in self.config.nodes if table.type == name]
            files = [table for table in tables if table.table.files and table.declares is not False]
            has_records = bool(files) or (not tables and self.spaces.has_type_col)
            stated = [(table.num_nodes, table.num_nodes_by) for table in tables if table.num_nodes is not None]
            number, by = (None, "") if has_records else stated[0] if stated else counts.get(name, (None, ""))
            space = self.spaces.of_type(name)
            declared.append(DeclaredNodes(name, number, has_records, None if space == name else space, by))
        return tuple(declared)


@dataclass(frozen=True)
class _EdgePart:
    """The spans of one edge table; ``relation`` is None where rows name theirs. Matrices state ``num_nodes``: ``nodes_by``."""

    spans: tuple[Span, ...]
    relation: Relation | None
    columns: tuple[DeclaredColumn, ...] = ()
    num_nodes: tuple[int | None, int | None] = (None, None)
    nodes_by: str = ""


class _Spaces:
    """Which ID space each type and table has."""

    def __init__(self, config: GraphConfig) -> None:
        self.is_global = config.id_space == "global"
        self.by_column = [table for table in config.nodes if table.type is None]
        self.has_type_col = bool(self.by_column)
        self.default: str | None = None
        if self.has_type_col or self.is_global:
            named = [table.space for table in self.by_column if table.space is not None]
            self.default = named[0] if named else _GLOBAL if self.is_global else _NODES
        self.given = {table.type: table.space for table in config.nodes if table.type is not None and table.space is not None}
        self.with_table = {table.type for table in config.nodes if table.type is not None}
        ends = [name for table in config.edges for name in (table.src_type, table.dst_type)]
        listed = [*(table.type for table in config.nodes), *ends]
        self.types = tuple(dict.fromkeys(name for name in listed if name is not None))

    def of_type(self, name: str) -> str:
        """Return the space of a type; its own has its name."""
        if name in self.given:
            return self.given[name]
        if self.is_global or (self.has_type_col and name not in self.with_table):
            return self.default or _GLOBAL
        return name

    def of_table(self, table: NodeTable) -> str:
        """Return the space of a node table."""
        if table.type is not None:
            return self.of_type(table.type)
        return table.space or self.default or _NODES

    def of_end(self, table: EdgeTable, end: int) -> str:
        """Return the space of an edge table's sources (0) or destinations (1).

        Raises UsageError where neither a type nor a space is named, and there are several.
        """
        name, given = ((table.src_type, table.src_space), (table.dst_type, table.dst_space))[end]
        if name is not None:
            return self.of_type(name)
        known = [space for space in (given, self.default) if space is not None] or list({*map(self.of_type, self.types)})
        if given is None and self.default is None and len(known) != 1:
            raise UsageError(
                f"the node type of the {('source', 'destination')[end]} is not named",
                place=table.table.place,
                fix="write SRC:REL:DST, or give all types one ID space with --id-space global",
            )
        return known[0]


def _named_columns(spans: Sequence[Span]) -> Iterator[tuple[str | tuple[str, str, str], str]]:
    """Yield the types and names of columns, of tables whose type is known."""
    for span in spans:
        layout = getattr(span.detail, "layout", None)
        if isinstance(layout, TableLayout):
            owner = layout.owner
            name: str | tuple[str, str, str] | None = None
            if isinstance(owner, NodeOwner):
                name = owner.type
            elif owner.src_type and owner.dst_type:
                name = (owner.src_type, owner.name, owner.dst_type)
            if name is not None:
                yield from ((name, column.name) for column in layout.features)


def _names(table: EdgeTable) -> tuple[str, str, str]:
    return table.src_type or "", table.relation or "", table.dst_type or ""


def _with_owner(file: Any, relation: Relation) -> Any:
    layout = file.layout
    return file if layout is None else dataclasses.replace(file, layout=dataclasses.replace(layout, owner=relation))


def _with_id_columns(span: Span) -> Span:
    """Name the columns of both ends where they are of one node type, but called otherwise."""
    layout: TableLayout = span.detail.layout
    names = layout.ids[0].name, layout.ids[1].name
    is_one_type = isinstance(layout.owner, Relation) and layout.owner.src_type == layout.owner.dst_type is not None
    is_headed = not all(name.startswith("col_") for name in names)
    return dataclasses.replace(span, id_columns=names) if is_one_type and is_headed and name_two_kinds(*names) else span


def _declares(table: PlannedTable, nodes: Sequence[PlannedTable]) -> bool:
    """Return whether a node table's rows declare nodes: unless an earlier table of the type does, and this one brings columns.

    Where it says so itself, that holds; else rows that name their types always do. Raises DataError where it has some of the
    earlier table's columns and some of its own.
    """
    if isinstance(table.table, NodeTable) and (table.table.declares is not None or table.table.type is None):
        return table.table.declares is not False
    earlier = []
    for other in nodes:
        if other is table:
            break
        if isinstance(other.table, NodeTable) and isinstance(table.table, NodeTable) and other.table.type == table.table.type:
            earlier.append(other)
    known = {column.name for other in earlier for layout in other.layouts for column in layout.features}
    own = {column.name for layout in table.layouts for column in layout.features}
    if not earlier or not own or own <= known:
        return True
    if own & known:
        shared = sorted(own & known)[0]
        raise DataError(
            f"column {shared!r} is in an earlier table of this type, but {sorted(own - known)[0]!r} is not",
            place=table.files[0].shown,
            fix="give both the same columns, or columns of their own; or say 'declares: yes' or 'no' in a graph config",
        )
    return False
