"""Graph configs in files: ``graph.yaml`` (or JSON) to a ``GraphConfig``, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from graphprep.model.errors import DataError, MemoryLimitError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.schema import edge_type_text, parse_edge_type
from graphprep.model.shown.texts import printable
from graphprep.storage.faults import display_url
from graphprep.storage.read.schemas import at_path, check_json, parse_json
from graphprep.storage.read.yaml_files import parse_yaml, yaml_text

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_SCHEMA = "graph"
# A byte of YAML takes 245 bytes of memory while it is parsed, one of JSON 32, and one of a record 24.
_YAML_FACTOR, _JSON_FACTOR = 10, 2
_POSITION = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)
_HEADERS = {True: "yes", False: "no", None: "auto"}
_YES_NO = {"yes": True, "no": False, True: True, False: False}


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _pairs(value: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(item)) for name, item in value.items())


# The fields of the config's classes that stand in the file, in the order in which they are written.
_TABLE = (
    *("format", "delimiter", "header", "names", "quote", "escape", "comment", "nulls", "columns", "renamed", "dropped", "kept"),
    *("id_type", "list_delimiter"),
)
_NODE = ("type", "type_col", "type_delimiter")
_NODE_BEHIND_FILES = ("id_col", "row_ids", "declares", "num_nodes", "space", "weight_col")
_ENDS = ("src_type", "relation", "dst_type")
_EDGE = ("relation_col", "src_col", "dst_col", "src_space", "dst_space", "weight_col", "time_col", "time_unit", "layout")
_DATA = ("owner", "name", "file", "id_col", "column")
_GRAPH = ("graph_name", "id_space", "id_type", "columns", "dropped")
_ROLES = ("labels", "splits", "categories", "seeds")
# Those that are called otherwise there.
_KEYS = {"nulls": "null", "renamed": "rename", "dropped": "drop", "kept": "keep", "layout": "input_layout", "owner": "type"}
_KEYS |= {"space": "id_space", "src_space": "src_id_space", "dst_space": "dst_id_space"}
# What makes their values of what stands there.
_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("files", "names", "nulls", "dropped", "kept", *_ROLES), _texts),
    **dict.fromkeys(("columns", "renamed"), _pairs),
    **dict.fromkeys(("type", "type_col", "id_col", "weight_col", "relation_col", "src_col", "dst_col", "time_col"), str),
    **dict.fromkeys(("space", "src_space", "dst_space", "graph_name", "owner", "name", "column", *_ENDS), str),
    "header": lambda value: _HEADERS.get(value, value),
    "declares": _YES_NO.__getitem__,
}


@dataclass(frozen=True)
class GraphFile:
    """Reads a graph config: YAML or JSON by schemas/graph.schema.json."""

    name: ClassVar[str] = "graph"

    def read_config(self, storage: Storage, urls: Sequence[str]) -> GraphConfig:
        """Read the only file.

        Raises UsageError where there are several, DataError at its key where it does not fit.
        """
        if len(urls) != 1:
            raise UsageError(f"a graph config is one file, found {len(urls)}", fix="name one file")
        return load_graph(storage, urls[0])


def load_graph(storage: Storage, url: str) -> GraphConfig:
    """Read a graph config. Relative paths in it start from its folder.

    Raises DataError with the key's path where it does not fit, StorageError where it cannot be read.
    """
    place = display_url(url)
    value = read_document(storage, url)
    check_json(value, _SCHEMA, place)
    return graph_from_json(value, base=folder_of(url), place=place)


def read_document(storage: Storage, url: str) -> Any:
    """Read a JSON object, or else YAML.

    Raises DataError, and MemoryLimitError where its values would take more memory than the limit leaves.
    """
    place, data = display_url(url), storage.head(url, storage.record_bytes)
    is_json = data.lstrip(b" \t\r\n").startswith(b"{")
    most = storage.record_bytes // (_JSON_FACTOR if is_json else _YAML_FACTOR)
    if len(data) > most:
        fix = "raise --memory-limit" if is_json else "write it as JSON, which takes less, or raise --memory-limit"
        raise MemoryLimitError(
            f"the document has more than the {most} bytes that the memory limit leaves", place=place, fix=fix
        )
    return parse_json(data, place) if is_json else parse_yaml(data, place)


def folder_of(url: str) -> str:
    """Return the folder of a file, such that relative paths can be joined to it; empty for the current one."""
    head, slash, _ = url.rpartition("/")
    return head or slash


# ---------------------------------------------------------------------------------------------------- from JSON


def graph_from_json(value: Mapping[str, Any], *, base: str, place: str) -> GraphConfig:
    """Make a config of what a file holds; the JSON Schema was checked before.

    Raises DataError with the key's path.
    """
    nodes = tuple(_node_table(item, at_path(place, ("nodes", i))) for i, item in enumerate(value.get("nodes", ())))
    edges = tuple(_edge_table(item, at_path(place, ("edges", i))) for i, item in enumerate(value.get("edges", ())))
    if not nodes and not edges:
        raise DataError("neither nodes nor edges are listed", place=place, fix="list tables below 'nodes' and 'edges'")
    data: dict[str, Any] = {key: _data_arrays(value, key, place) for key in ("node_data", "edge_data")}
    return GraphConfig(nodes, edges, **data, **_fields(value, (*_GRAPH, *_ROLES)), base=base, place=place)


def _fields(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return the fields of these names that stand in a mapping of the file."""
    found = {name: item.get(_KEYS.get(name, name)) for name in names}
    return {name: _READERS.get(name, _as_it_is)(value) for name, value in found.items() if value is not None}


def _as_it_is(value: Any) -> Any:
    return value


def _table(item: Mapping[str, Any], place: str) -> TableConfig:
    return TableConfig(**_fields(item, ("files", *_TABLE)), place=place)


def _node_table(item: Mapping[str, Any], place: str) -> NodeTable:
    if ("type" in item) == (item.get("type_col") is not None):
        raise DataError("exactly one of the keys 'type' and 'type_col' must be there", place=place, fix="name the node type")
    if item.get("num_nodes") is not None and "files" in item:
        raise DataError("'num_nodes' is for types without files", place=place, fix="leave out one of 'files' and 'num_nodes'")
    found = {"type": None, **_fields(item, (*_NODE, *_NODE_BEHIND_FILES))}
    return NodeTable(**found, table=_table(item, place), num_nodes_by=f"{place}.num_nodes")


def _edge_table(item: Mapping[str, Any], place: str) -> EdgeTable:
    ends, found = _edge_type_of(item, place), _fields(item, _EDGE)
    if (ends[1] is None) == ("relation_col" not in found):
        raise DataError(
            "exactly one of a relation's name and 'relation_col' must be there",
            place=place,
            fix="write 'type: src:rel:dst', or 'src_type', 'relation_col' and 'dst_type'",
        )
    return EdgeTable(*ends, _table(item, place), **found)


def _edge_type_of(item: Mapping[str, Any], place: str) -> tuple[str | None, str | None, str | None]:
    if "type" not in item:
        src, relation, dst = map(_fields(item, _ENDS).get, _ENDS)
        return src, relation, dst
    clash = [key for key in _ENDS if key in item]
    if clash:
        raise DataError(f"'type' and {clash[0]!r} say the same thing", place=place, fix="leave out one of the two")
    try:
        return parse_edge_type(item["type"])
    except ValueError as error:
        raise DataError(str(error), place=f"{place}.type", fix="write src:rel:dst; a ':' inside a name is %3A") from None


def _data_arrays(value: Mapping[str, Any], key: str, place: str) -> tuple[DataArray, ...]:
    items = enumerate(value.get(key, ()))
    return tuple(DataArray(**_fields(item, _DATA), place=at_path(place, (key, i))) for i, item in items)


# ---------------------------------------------------------------------------------------------------- to YAML


def dump_graph(config: GraphConfig, comments: Mapping[str, Sequence[str]] | None = None) -> str:
    """Write a config as YAML that ``load_graph`` reads back as the same; what holds by default is left out.

    ``comments`` are lines to stand before an entry, by its path (``nodes[0]``, ``edges[2]``); under ``""`` those at the top.
    """
    comments = comments or {}
    lines = [f"# {printable(text)}".rstrip() for text in comments.get("", ())]
    for key, value in graph_to_json(config).items():
        if not isinstance(value, list) or not isinstance(value[0], dict):
            lines.append(f"{key}: {_flow(value)}")
            continue
        lines += ["", f"{key}:"] if lines else [f"{key}:"]
        for i, item in enumerate(value):
            lines += [f"  # {printable(text)}".rstrip() for text in comments.get(f"{key}[{i}]", ())]
            for number, (name, inner) in enumerate(item.items()):
                lines.append(f"  {' ' if number else '-'} {name}: {_flow(inner)}")
    return "\n".join(lines) + "\n"


def graph_to_json(config: GraphConfig) -> dict[str, Any]:
    """Return what stands in a config's file, keys in the order of the schema, without what holds by default."""
    tables = {"nodes": list(map(_node_json, config.nodes)), "edges": list(map(_edge_json, config.edges))}
    tables |= {key: [_json(item, _DATA) for item in getattr(config, key)] for key in ("node_data", "edge_data")}
    return {**_json(config, _GRAPH), **{key: items for key, items in tables.items() if items}, **_json(config, _ROLES)}


def _node_json(node: NodeTable) -> dict[str, Any]:
    return {**_json(node, _NODE), **_files_json(node), **_json(node, _NODE_BEHIND_FILES), **_json(node.table, _TABLE)}


def _edge_json(edge: EdgeTable) -> dict[str, Any]:
    ends = _json(edge, _ENDS)
    if edge.src_type is not None and edge.relation is not None and edge.dst_type is not None:
        ends = {"type": edge_type_text((edge.src_type, edge.relation, edge.dst_type))}
    return {**ends, **_files_json(edge), **_json(edge, _EDGE), **_json(edge.table, _TABLE)}


def _files_json(owner: NodeTable | EdgeTable) -> dict[str, Any]:
    files = owner.table.files
    return {"files": files[0] if len(files) == 1 else list(files)} if files else {}


def _json(one: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return fields by their keys in the file, those left out that hold by default; an empty ``keep`` says something."""
    defaults = {field.name: field.default for field in fields(one)}
    values = {name: getattr(one, name) for name in names}
    told = {
        name: value
        for name, value in values.items()
        if value not in (None, (), defaults[name]) or (name, value) == ("kept", ())
    }
    return {_KEYS.get(name, name): _value_json(name, value) for name, value in told.items()}


def _value_json(name: str, value: Any) -> Any:
    """Return a field as the file has it: columns that are positions are numbers."""
    if _READERS.get(name) is _pairs:
        return dict(value)
    if name == "declares":
        return _HEADERS[value]
    if name.endswith("_col") and _POSITION.fullmatch(value):
        return int(value)
    return list(value) if isinstance(value, tuple) else value


def _flow(value: Any) -> str:
    return yaml_text(value, indent="      ")


__all__ = [
    "GraphFile",
    "dump_graph",
    "folder_of",
    "graph_from_json",
    "graph_to_json",
    "load_graph",
    "read_document",
]
