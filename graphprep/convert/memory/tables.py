"""Tables in memory, by type, as a graph config; and what all that is in memory has in common."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphprep.convert.memory.folder import InMemory, Source, array_source, matrix_source, table_source
from graphprep.model.errors import UsageError, one_of
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.schema import EdgeType, edge_type_text, parse_edge_type, unescape_name

Owner = str | EdgeType
INPUTS = "inputs"
NODE, EDGE = "_N", ("_N", "_E", "_N")  # the only types of a graph that names none
_TABLES = "a path, a DataFrame or an Arrow table"
_READABLE = (
    "paths, a DataFrame, an Arrow table, a scipy.sparse matrix, an array or tensor [2, edges], a dict of them, "
    "a networkx graph, or PyG's Data or HeteroData"
)
_NODE_OPTIONS = ("id_col", "weight_col", "id_type")
_EDGE_OPTIONS = ("src_col", "dst_col", "weight_col", "time_col", "time_unit", "id_type")
_TABLE_OPTIONS = ("columns", "drop_columns")


@dataclass(frozen=True)
class MemoryGraph:
    """An input in memory. ``inputs`` are names of sources that are read as files of their kind are; else ``graph`` has them."""

    in_memory: InMemory
    inputs: tuple[str, ...] = ()
    graph: GraphConfig | None = None


def read_tables(
    nodes: Mapping[Any, Any],
    edges: Mapping[Any, Any],
    options: Mapping[str, Any],
    num_nodes: Mapping[str, int],
    place: str = "",
) -> MemoryGraph:
    """Return tables by type as a graph: ``nodes`` by name, ``edges`` by triple or ``src:rel:dst``; a list is several tables.

    ``place`` is what holds both, where that is one dict. Raises UsageError.
    """
    given: dict[str, tuple[str, Any]] = {}
    kinds = {kind: (f"{place or 'edges'}[{key!r}]", value) for kind, (key, value) in _kinds(edges).items()}
    for name, (key, value) in _names(nodes, {end for kind in kinds for end in (kind[0], kind[2])}).items():
        given[name] = f"{place or 'nodes'}[{key!r}]", value
    names = tuple(dict.fromkeys((*given, *(end for kind in kinds for end in (kind[0], kind[2])))))
    _check_num_nodes(num_nodes, names, given)
    settings = Settings(options, (*names, *kinds))
    sources: dict[str, Source] = {}
    node_tables = [_node_table(sources, settings, name, *given.get(name, ("", [])), num_nodes.get(name)) for name in names]
    edge_tables = [_edge_table(sources, settings, kind, *named) for kind, named in kinds.items()]
    columns, dropped = settings.everywhere()
    id_type = settings.all("id_type")
    config = GraphConfig(tuple(node_tables), tuple(edge_tables), id_type=id_type, columns=columns, dropped=dropped)
    return MemoryGraph(InMemory(sources), graph=config)


def _names(nodes: Mapping[Any, Any], ends: Container[str]) -> dict[str, tuple[Any, Any]]:
    """Return (key, value) by node type; ``ends`` are those of edges, which a key may name as it is. Raises UsageError.

    That is for edge types, and for a type that is there under two keys.
    """
    found: dict[str, tuple[Any, Any]] = {}
    for key, value in nodes.items():
        owner = key if isinstance(key, str) and key in ends else owner_of(key)
        if isinstance(owner, tuple):
            raise UsageError(f"{key!r} is an edge type", fix="put it into edges")
        if owner in found:
            raise UsageError(
                f"{key!r} and {found[owner][0]!r} are one node type", fix="give its tables as a list, under one key"
            )
        found[owner] = key, value
    return found


def _kinds(edges: Mapping[Any, Any]) -> dict[EdgeType, tuple[Any, Any]]:
    """Return (key, value) by edge type. Raises UsageError for node types."""
    found: dict[EdgeType, tuple[Any, Any]] = {}
    for key, value in edges.items():
        owner = owner_of(key)
        if isinstance(owner, str):
            if ":" in str(key):
                raise UsageError(f"{key!r} is no type of edges", fix="name an edge type ('user', 'buys', 'item')")
            raise UsageError(f"{key!r} is a node type", fix="put it into nodes")
        found[owner] = key, value
    return found


def _check_num_nodes(num_nodes: Mapping[str, int], names: Sequence[str], tables: Mapping[str, Any]) -> None:
    for name in sorted(num_nodes):
        if name not in names:
            raise UsageError(f"num_nodes: there is no node type {name!r}", fix=one_of(names, found=name))
        if name in tables:
            raise UsageError(f"num_nodes is for types without a table, not for {name!r}", fix="leave out one of the two")


def _node_table(
    sources: dict[str, Source], settings: Settings, name: str, place: str, value: Any, num_nodes: int | None
) -> NodeTable:
    files = _add(sources, place, value, name)
    return NodeTable(
        name,
        settings.table(name, files, place or f"node type {name!r}"),
        id_col=settings.of("id_col", name) if files else None,
        num_nodes=num_nodes,
        weight_col=settings.of("weight_col", name, alone=True),
    )


def _edge_table(sources: dict[str, Source], settings: Settings, kind: EdgeType, place: str, value: Any) -> EdgeTable:
    names = ("src_col", "dst_col", "weight_col", "time_col", "time_unit")
    return EdgeTable(
        *kind,
        settings.table(kind, _add(sources, place, value, kind), place),
        **{name: settings.of(name, kind) for name in names},
    )


def owner_of(key: object) -> Owner:
    """Return a node type's name, or an edge type: a triple of names, or ``src:rel:dst``. Raises UsageError.

    In texts ``%3A`` stands for ``:``, which may also stand as it is in the name of a node type, unless there are two.
    """
    if isinstance(key, tuple) and len(key) == 3 and all(isinstance(one, str) and one for one in key):
        return key
    if isinstance(key, str) and key:
        try:
            return parse_edge_type(key) if key.count(":") == 2 else unescape_name(key)
        except ValueError:
            pass
    raise UsageError(f"{key!r} is no type", fix="name a node type 'user', an edge type ('user', 'buys', 'item')")


def _add(sources: dict[str, Source], name: str, value: Any, owner: Owner) -> tuple[str, ...]:
    """Add a table, or several of one type; return their names, of files their paths."""
    several = isinstance(value, list | tuple)
    names = []
    for at, one in enumerate(value if several else [value]):
        own = f"{name}[{at}]" if several else name
        if isinstance(one, str | os.PathLike):
            names.append(os.fspath(one))
            continue
        is_node = isinstance(owner, str)
        source = table_source(one) if is_node else find_source(one)
        if source is None:
            raise unreadable(
                one, own, _TABLES if is_node else f"{_TABLES}, a scipy.sparse matrix, or an array or tensor [2, edges]"
            )
        sources[own] = source
        names.append(own)
    return tuple(names)


class Settings:
    """``decoder_options`` of tables: a value for all types, or a dict of values by type."""

    def __init__(self, given: Mapping[str, Any], types: Sequence[Owner], without: Sequence[str] = ()) -> None:
        options = dict.fromkeys((*_NODE_OPTIONS, *_EDGE_OPTIONS, *_TABLE_OPTIONS))
        known = [name for name in options if name not in without]
        for name in given:
            if name not in known:
                raise UsageError(
                    f"decoder_options: there is no option {name!r} for what is in memory", fix=one_of(known, found=name)
                )
        self._types = types
        self._given = {name: self._by_type(name, given[name]) for name in given if name not in _TABLE_OPTIONS}
        self._columns = list(self._dtypes(given.get("columns", {})))
        dropped = given.get("drop_columns", ())
        self._dropped = [self._owned(name) for name in ([dropped] if isinstance(dropped, str) else dropped)]

    def of(self, option: str, owner: Owner, *, alone: bool = False) -> Any:
        """Return an option's value for a type; ``alone``: what holds for all does not count."""
        values = self._given.get(option, {})
        return values.get(owner, None if alone else values.get(None))

    def all(self, option: str) -> Any:
        """Return what holds for all types."""
        return self._given.get(option, {}).get(None)

    def table(self, owner: Owner, files: tuple[str, ...], place: str) -> TableConfig:
        """Return what is asked of the tables of a type."""
        return TableConfig(
            files,
            columns=tuple((name, dtype) for whose, name, dtype in self._columns if whose == owner),
            dropped=tuple(name for whose, name in self._dropped if whose == owner),
            id_type=self.of("id_type", owner, alone=True),
            place=place,
        )

    def everywhere(self) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return dtypes of columns, and columns to leave out, of every table that has them."""
        columns = tuple((name, dtype) for whose, name, dtype in self._columns if whose is None)
        return columns, tuple(name for whose, name in self._dropped if whose is None)

    def _by_type(self, option: str, value: Any) -> dict[Owner | None, Any]:
        if not isinstance(value, Mapping):
            return {None: _text(option, value)}
        found: dict[Owner | None, Any] = {}
        for key, one in value.items():
            owner = owner_of(key)
            if owner not in self._types:
                listed = [edge_type_text(one) if isinstance(one, tuple) else one for one in self._types]
                raise UsageError(f"decoder_options: {option}: no table is of type {key!r}", fix=one_of(listed, found=key))
            found[owner] = _text(option, one)
        return found

    def _dtypes(self, given: Any) -> Iterator[tuple[Owner | None, str, str]]:
        """Read ``{NAME: dtype}``, or texts ``NAME=dtype``."""
        if isinstance(given, str):
            given = [given]
        pairs: Iterable[tuple[str, str]] = given.items() if isinstance(given, Mapping) else (_cut(text) for text in given)
        for name, dtype in pairs:
            yield *self._owned(name), dtype

    def _owned(self, text: str) -> tuple[Owner | None, str]:
        """Read ``[TYPE:]NAME``: a type in front counts where there is one of that name."""
        name, _, column = text.rpartition(":")
        owner = owner_of(name) if name.count(":") in (0, 2) and name else None
        return (owner, column) if owner in self._types and column else (None, text)


def _cut(text: str) -> tuple[str, str]:
    name, _, dtype = text.rpartition("=")
    if not name or not dtype:
        raise UsageError(f"decoder_options: columns: expected NAME=dtype, found {text!r}", fix="write 'age=float32'")
    return name, dtype


def find_source(value: Any) -> Source | None:
    """Return a matrix, a table or an array as a source; None for all else."""
    return matrix_source(value) or table_source(value) or array_source(value)


def unreadable(value: object, place: str, readable: str = _READABLE) -> UsageError:
    """Say that an object cannot be read, and what can."""
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return UsageError(f"cannot read {name}", place=place, fix=f"give {readable}")


def _text(option: str, value: Any) -> str | None:
    """Return an option's value, a text or the number of a column. Raises UsageError."""
    if value is None or isinstance(value, str) or type(value) is int:
        return None if value is None else str(value)
    raise UsageError(f"decoder_options: {option} must be a text, found {value!r}", fix="correct the value")
