"""Flags that say which files are the tables and arrays of which types, and what becomes of them: a graph config."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from graphprep.model.option import TABLES, Option, declared

if TYPE_CHECKING:
    from graphprep.model.errors import UsageError
    from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

_PANEL = "Tables and arrays of several types (--nodes, --edges)"
_ANY = "*"  # stands for a type or relation that the data names
_ID_TYPES = ("int", "uint", "string", "auto")
_LAYOUTS = ("coo", "csr", "csc")


@dataclass(frozen=True, eq=False, repr=False)
class TableFlags:
    """Which files are tables of which types."""

    nodes: Annotated[
        list[str],
        Option(
            _PANEL,
            "Table of the nodes of TYPE: CSV, TSV, Parquet, Arrow, JSON lines, npy; a file, folder or glob.  "
            "Repeat it for more types, or more files of one; '*' for TYPE: --type-col names it.",
            metavar="TYPE=FILE",
            formats=TABLES,
            is_first=True,
        ),
    ] = field(default_factory=list)
    edges: Annotated[
        list[str],
        Option(
            _PANEL,
            "Table or matrix of edges, likewise; SRC, REL and DST are the types of source, edge and destination.  '*' for REL: "
            "--relation-col names it.  In names, : is %3A and % is %25.",
            metavar="SRC:REL:DST=FILE",
            formats=TABLES,
            is_first=True,
        ),
    ] = field(default_factory=list)

    @property
    def named(self) -> bool:
        """Return whether tables are named here, so that there is no other input."""
        return bool(self.nodes or self.edges)


def flag_words(*groups: Any) -> list[str]:
    """Return the words of a command line that give these groups of options again."""
    words: list[str] = []
    for group in groups:
        for name, one in declared(type(group)).items():
            value, flag = getattr(group, name), one.flag
            if value == one.default:
                continue
            if isinstance(value, bool):
                words.append(flag if value else flag.replace("--", "--no-", 1))
            elif isinstance(value, Mapping):
                words += [word for key, each in value.items() for word in (flag, f"{key}={each}".removeprefix("="))]
            else:
                texts = map(str, value if isinstance(value, list | tuple) else [value])
                words += [word for text in texts for word in (flag, text)]
    return words


def make_graph(flags: TableFlags, shared: dict[str, Any], num_nodes: Mapping[str, int]) -> GraphConfig:
    """Make the graph config that the flags describe.

    ``shared`` are options of decoders, by their names, as given; those of tables are taken out. Raises UsageError for types
    that no table has, and for flags that contradict each other.
    """
    from graphprep.model.graph_config import GraphConfig

    tables = _Tables(flags, shared, num_nodes)
    columns, dropped = tables.take_columns()
    return GraphConfig(
        nodes=tables.nodes(),
        edges=tables.edges(),
        id_space=tables.id_space or "per-type",
        id_type=tables.id_types.get(None),
        columns=columns,
        dropped=dropped,
    )


class _Tables:
    """Puts every flag to the table it is meant for."""

    def __init__(self, flags: TableFlags, shared: dict[str, Any], num_nodes: Mapping[str, int]) -> None:
        self.id_space, self.type_col = shared.pop("id_space", None), shared.pop("type_col", None)
        self.nulls, self.escape = tuple(shared.pop("null", ())), shared.pop("escape", None)
        self.comment = shared.pop("comment", None)
        self.node_files = _files_by_type("--nodes", flags.nodes, _node_type)
        self.edge_files = _files_by_type("--edges", flags.edges, _edge_type)
        ends = (end for src, _, dst in self.edge_files for end in (src, dst))
        self.node_types = tuple(dict.fromkeys(name for name in (*self.node_files, *ends) if name != _ANY))
        self.edge_types = tuple(self.edge_files)
        self.id_types = self._choice("--id-type", shared.pop("id_type", []), _ID_TYPES, both=True)
        self.layouts = self._choice("--input-layout", shared.pop("input_layout", []), _LAYOUTS)
        self.id_cols = self._by_type("--id-col", shared.pop("id_col", []), nodes=True)
        self.src_cols = self._by_type("--src-col", shared.pop("src_col", []), edges=True)
        self.dst_cols = self._by_type("--dst-col", shared.pop("dst_col", []), edges=True)
        self.weight_cols = self._by_type("--weight-col", shared.pop("weight_col", []), nodes=True, edges=True)
        self.time_cols = self._by_type("--time-col", shared.pop("time_col", []), edges=True)
        self.relation_cols = self._by_type("--relation-col", shared.pop("relation_col", []), edges=True)
        self.time_unit = shared.pop("time_unit", None)
        self.dialect = {name: shared.pop(name) for name in ("delimiter", "header", "quote") if name in shared}
        self.num_nodes = {_decoded(name): number for name, number in num_nodes.items()}
        self.columns = [self._column(text) for text in shared.pop("columns", [])]
        self.dropped = [self._owned(text) for text in shared.pop("drop_columns", [])]
        self._check()

    def nodes(self) -> tuple[NodeTable, ...]:
        """Return a table for every node type, in the order in which the types are named; some have no files."""
        from graphprep.model.graph_config import NodeTable

        found = []
        for name in (*self.node_types, *([_ANY] if _ANY in self.node_files else [])):
            texts = self.node_files.get(name, ())
            found.append(
                NodeTable(
                    type=None if name == _ANY else name,
                    table=self._table(name, texts, "--nodes", self.id_types.get(name)),
                    type_col=self.type_col if name == _ANY else None,
                    id_col=self.id_cols.get(name, self.id_cols.get(None)) if texts else None,
                    num_nodes=self.num_nodes.get(name),
                    weight_col=self.weight_cols.get(name),
                )
            )
        return tuple(found)

    def edges(self) -> tuple[EdgeTable, ...]:
        """Return a table for every edge type, in the order in which they are named."""
        from graphprep.model.graph_config import EdgeTable

        found = []
        for kind, texts in self.edge_files.items():
            src, relation, dst = (None if name == _ANY else name for name in kind)
            time_col = self.time_cols.get(kind, self.time_cols.get(None))
            found.append(
                EdgeTable(
                    src_type=src,
                    relation=relation,
                    dst_type=dst,
                    table=self._table(kind, texts, "--edges", self.id_types.get(kind)),
                    relation_col=self.relation_cols.get(kind, self.relation_cols.get(None)) if relation is None else None,
                    src_col=self.src_cols.get(kind, self.src_cols.get(None)),
                    dst_col=self.dst_cols.get(kind, self.dst_cols.get(None)),
                    weight_col=self.weight_cols.get(kind, self.weight_cols.get(None)),
                    time_col=time_col,
                    time_unit=self.time_unit if time_col is not None else None,
                    layout=self.layouts.get(kind, self.layouts.get(None, "coo")),
                )
            )
        return tuple(found)

    def take_columns(self) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """Return the dtypes of columns, and the columns to leave out, that hold for every table."""
        columns = tuple((name, dtype) for owner, name, dtype in self.columns if owner is None)
        return columns, tuple(name for owner, name in self.dropped if owner is None)

    def _table(self, owner: Any, texts: tuple[str, ...], flag: str, id_type: Any) -> TableConfig:
        from graphprep.model.graph_config import TableConfig

        return TableConfig(
            files=texts,
            nulls=self.nulls,
            escape=self.escape,
            comment=self.comment,
            columns=tuple((name, dtype) for whose, name, dtype in self.columns if whose == owner),
            dropped=tuple(name for whose, name in self.dropped if whose == owner),
            id_type=id_type,
            place=f"{flag} {_owner_text(owner)}={texts[0]}" if texts else f"node type {owner!r}",
            **self.dialect,
        )

    def _check(self) -> None:
        """Refuse flags that contradict each other, and numbers of nodes for types that are not there or have tables."""
        some = any(name == _ANY for kind in self.edge_files for name in (kind[0], kind[2]))
        if some and self.id_space != "global":
            raise _usage("--edges: '*' for an end's type needs IDs that are unique among all types", "add --id-space global")
        if (_ANY in self.node_files) != (self.type_col is not None):
            raise _usage("--nodes '*=FILE' and --type-col belong together", "give both, or neither")
        found = [kind for kind in self.edge_files if kind[1] == _ANY]
        lacking = [kind for kind in found if kind not in self.relation_cols and None not in self.relation_cols]
        if lacking or (self.relation_cols and not found):
            raise _usage("--edges 'SRC:*:DST=FILE' and --relation-col belong together", "give both, or neither")
        if self.time_unit is not None and not self.time_cols:
            raise _usage("--time-unit needs --time-col", "name the column of the time with --time-col")
        for name in self.num_nodes:
            if name not in self.node_types:
                raise self._unknown("--num-nodes", name, self.node_types)
            if name in self.node_files:
                raise _usage(f"--num-nodes is for types without --nodes, not for {name!r}", "leave out one of the two")

    def _by_type(self, flag: str, given: Sequence[str] | str, *, nodes: bool = False, edges: bool = False) -> dict[Any, str]:
        """Read repeated ``[TYPE=]VALUE``; under None stands what holds for all."""
        values: dict[Any, str] = {}
        for text in [given] if isinstance(given, str) else given:
            name, equals, value = text.partition("=")
            owner = self._owner(flag, name, nodes=nodes, edges=edges) if equals else None
            if owner in values:
                raise _usage(f"{flag} is given twice" + (f" for {name!r}" if equals else ""), "give it once")
            values[owner] = value if equals else text
        return values

    def _choice(self, flag: str, given: Sequence[str] | str, choices: tuple[str, ...], *, both: bool = False) -> dict[Any, Any]:
        from graphprep.model.errors import one_of

        values = self._by_type(flag, given, nodes=both, edges=True)
        for value in values.values():
            if value not in choices:
                raise _usage(f"{flag}: no choice named {value!r}", one_of(choices, found=value))
        return values

    def _owner(self, flag: str, name: str, *, nodes: bool, edges: bool) -> Any:
        """Return the node type or edge type that a flag names.

        Raises UsageError.
        """
        if nodes and (name == _ANY or _decoded(name) in self.node_types):
            return _decoded(name)
        if edges and name.count(":") == 2 and (kind := _edge_type(flag, name)) in self.edge_types:
            return kind
        raise self._unknown(flag, name, (*(self.node_types if nodes else ()), *(self.edge_types if edges else ())))

    def _unknown(self, flag: str, name: str, known: Iterable[Any]) -> UsageError:
        from graphprep.model.errors import one_of

        return _usage(f"{flag}: no table is of type {name!r}", one_of(map(_owner_text, known), found=name))

    def _owned(self, text: str) -> tuple[Any, str]:
        """Read ``[TYPE:]NAME``: a type in front counts where there is one of that name."""
        name, colon, column = text.rpartition(":")
        if colon and column:
            if _decoded(name) in self.node_types:
                return _decoded(name), column
            if name.count(":") == 2 and (kind := _edge_type("--column", name)) in self.edge_types:
                return kind, column
        return None, text

    def _column(self, text: str) -> tuple[Any, str, str]:
        """Read ``[TYPE:]NAME=dtype``."""
        name, equals, dtype = text.rpartition("=")
        if not name or not equals:
            raise _usage(f"--column: expected NAME=dtype, found {text!r}", "write, for example, --column age=float32")
        return *self._owned(name), dtype


def _files_by_type(flag: str, texts: Sequence[str], parse: Any) -> dict[Any, tuple[str, ...]]:
    """Read repeated ``TYPE=FILE``; the files of one type keep their order."""
    files: dict[Any, tuple[str, ...]] = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            wanted = "TYPE=FILE" if flag == "--nodes" else "SRC:REL:DST=FILE"
            raise _usage(f"{flag} must be {wanted}, found {text!r}", f"write {flag} {wanted.lower()}")
        kind = parse(flag, name)
        files[kind] = (*files.get(kind, ()), file)
    return files


def _node_type(flag: str, name: str) -> str:
    if ":" in name:
        raise _usage(f"{flag}: {name!r} is no node type", "write an edge type with --edges; a ':' inside a name is %3A")
    return _decoded(name)


def _edge_type(flag: str, name: str) -> tuple[str, str, str]:
    from graphprep.model.schema import parse_edge_type

    try:
        return parse_edge_type(name)
    except ValueError as error:
        raise _usage(f"{flag}: {error}", "write SRC:REL:DST; a ':' inside a name is %3A") from None


def _decoded(name: str) -> str:
    from graphprep.model.schema import unescape_name

    return unescape_name(name)


def _owner_text(owner: str | tuple[str, str, str]) -> str:
    from graphprep.model.schema import edge_type_text, escape_name

    return escape_name(owner) if isinstance(owner, str) else edge_type_text(owner)


def _usage(message: str, fix: str) -> UsageError:
    from graphprep.model.errors import UsageError

    return UsageError(message, fix=fix)


__all__ = ["TableFlags", "flag_words", "make_graph"]
