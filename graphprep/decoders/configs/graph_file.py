"""Graph configs in files: ``graph.yaml`` (or JSON) to a ``GraphConfig``, and back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from graphprep.model.errors import DataError, MemoryLimitError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.schema import edge_type_text, parse_edge_type
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
_YES_NO = {"yes": True, "no": False, True: True, False: False, None: None}
# Fields of the config's classes that are called otherwise in the file.
_TABLE_KEYS = {"nulls": "null", "renamed": "rename", "dropped": "drop", "kept": "keep"}


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
    return GraphConfig(
        nodes=nodes,
        edges=edges,
        node_data=_data_arrays(value, "node_data", place),
        edge_data=_data_arrays(value, "edge_data", place),
        graph_name=_text(value.get("graph_name")),
        id_space=value.get("id_space", "per-type"),
        id_type=value.get("id_type"),
        columns=_pairs(value.get("columns")),
        dropped=_texts(value.get("drop")),
        labels=_texts(value.get("labels")),
        splits=_texts(value.get("splits")),
        categories=_texts(value.get("categories")),
        seeds=_texts(value.get("seeds")),
        base=base,
        place=place,
    )


def _table(item: Mapping[str, Any], place: str) -> TableConfig:
    header = item.get("header", "auto")
    names, kept = item.get("names"), item.get("keep")
    return TableConfig(
        files=_texts(item.get("files")),
        format=item.get("format"),
        delimiter=item.get("delimiter"),
        header=_HEADERS.get(header, header),
        names=None if names is None else _texts(names),
        quote=item.get("quote"),
        escape=item.get("escape"),
        comment=item.get("comment"),
        nulls=_texts(item.get("null")),
        columns=_pairs(item.get("columns")),
        renamed=_pairs(item.get("rename")),
        dropped=_texts(item.get("drop")),
        kept=None if kept is None else _texts(kept),
        id_type=item.get("id_type"),
        list_delimiter=item.get("list_delimiter"),
        place=place,
    )


def _node_table(item: Mapping[str, Any], place: str) -> NodeTable:
    if ("type" in item) == (item.get("type_col") is not None):
        raise DataError("exactly one of the keys 'type' and 'type_col' must be there", place=place, fix="name the node type")
    if item.get("num_nodes") is not None and "files" in item:
        raise DataError("'num_nodes' is for types without files", place=place, fix="leave out one of 'files' and 'num_nodes'")
    return NodeTable(
        type=_text(item.get("type")),
        table=_table(item, place),
        type_col=_text(item.get("type_col")),
        type_delimiter=item.get("type_delimiter"),
        id_col=_text(item.get("id_col")),
        row_ids=bool(item.get("row_ids")),
        num_nodes=item.get("num_nodes"),
        num_nodes_by=f"{place}.num_nodes",
        space=_text(item.get("id_space")),
        weight_col=_text(item.get("weight_col")),
        declares=_YES_NO[item.get("declares")],
    )


def _edge_table(item: Mapping[str, Any], place: str) -> EdgeTable:
    src, relation, dst = _edge_type_of(item, place)
    relation_col = _text(item.get("relation_col"))
    if (relation is None) == (relation_col is None):
        raise DataError(
            "exactly one of a relation's name and 'relation_col' must be there",
            place=place,
            fix="write 'type: src:rel:dst', or 'src_type', 'relation_col' and 'dst_type'",
        )
    return EdgeTable(
        src_type=src,
        relation=relation,
        dst_type=dst,
        table=_table(item, place),
        relation_col=relation_col,
        src_col=_text(item.get("src_col")),
        dst_col=_text(item.get("dst_col")),
        src_space=_text(item.get("src_id_space")),
        dst_space=_text(item.get("dst_id_space")),
        weight_col=_text(item.get("weight_col")),
        time_col=_text(item.get("time_col")),
        time_unit=item.get("time_unit"),
        layout=item.get("input_layout", "coo"),
    )


def _edge_type_of(item: Mapping[str, Any], place: str) -> tuple[str | None, str | None, str | None]:
    parts = ("src_type", "relation", "dst_type")
    if "type" not in item:
        src, relation, dst = (_text(item.get(key)) for key in parts)
        return src, relation, dst
    clash = [key for key in parts if key in item]
    if clash:
        raise DataError(f"'type' and {clash[0]!r} say the same thing", place=place, fix="leave out one of the two")
    try:
        return parse_edge_type(item["type"])
    except ValueError as error:
        raise DataError(str(error), place=f"{place}.type", fix="write src:rel:dst; a ':' inside a name is %3A") from None


def _data_arrays(value: Mapping[str, Any], key: str, place: str) -> tuple[DataArray, ...]:
    return tuple(
        DataArray(
            owner=str(item["type"]),
            name=str(item["name"]),
            file=item["file"],
            id_col=_text(item.get("id_col")),
            column=_text(item.get("column")),
            place=at_path(place, (key, i)),
        )
        for i, item in enumerate(value.get(key, ()))
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return tuple(map(str, value)) if isinstance(value, list) else (str(value),)


def _pairs(value: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(item)) for name, item in (value or {}).items())


# ---------------------------------------------------------------------------------------------------- to YAML


def dump_graph(config: GraphConfig, comments: Mapping[str, Sequence[str]] | None = None) -> str:
    """Write a config as YAML that ``load_graph`` reads back as the same; what holds by default is left out.

    ``comments`` are lines to stand before an entry, by its path (``nodes[0]``, ``edges[2]``); under ``""`` those at the top.
    """
    comments = comments or {}
    lines = [f"# {text}".rstrip() for text in comments.get("", ())]
    for key, value in graph_to_json(config).items():
        if not isinstance(value, list) or not isinstance(value[0], dict):
            lines.append(f"{key}: {_flow(value)}")
            continue
        lines += ["", f"{key}:"] if lines else [f"{key}:"]
        for i, item in enumerate(value):
            lines += [f"  # {text}".rstrip() for text in comments.get(f"{key}[{i}]", ())]
            for number, (name, inner) in enumerate(item.items()):
                lines.append(f"  {' ' if number else '-'} {name}: {_flow(inner)}")
    return "\n".join(lines) + "\n"


def graph_to_json(config: GraphConfig) -> dict[str, Any]:
    """Return what stands in a config's file, keys in the order of the schema, without what holds by default."""
    value = {
        "graph_name": config.graph_name,
        "id_space": None if config.id_space == "per-type" else config.id_space,
        "id_type": config.id_type,
        "columns": dict(config.columns),
        "drop": list(config.dropped),
        "nodes": [_node_json(node) for node in config.nodes],
        "edges": [_edge_json(edge) for edge in config.edges],
        "node_data": [_data_json(item) for item in config.node_data],
        "edge_data": [_data_json(item) for item in config.edge_data],
        "labels": list(config.labels),
        "splits": list(config.splits),
        "categories": list(config.categories),
        "seeds": list(config.seeds),
    }
    return _without_defaults(value)


def _node_json(node: NodeTable) -> dict[str, Any]:
    value = {
        "type": node.type,
        "type_col": node.type_col,
        "type_delimiter": node.type_delimiter,
        "files": _one_or_list(node.table.files),
        "id_col": node.id_col,
        "row_ids": node.row_ids or None,
        "declares": None if node.declares is None else _HEADERS[node.declares],
        "num_nodes": node.num_nodes,
        "id_space": node.space,
        "weight_col": node.weight_col,
    }
    return _without_defaults(value | _table_json(node.table))


def _edge_json(edge: EdgeTable) -> dict[str, Any]:
    value: dict[str, Any] = {}
    if edge.src_type is not None and edge.relation is not None and edge.dst_type is not None:
        value["type"] = edge_type_text((edge.src_type, edge.relation, edge.dst_type))
    else:
        value |= {"src_type": edge.src_type, "relation": edge.relation, "dst_type": edge.dst_type}
    value |= {
        "files": _one_or_list(edge.table.files),
        "relation_col": edge.relation_col,
        "src_col": edge.src_col,
        "dst_col": edge.dst_col,
        "src_id_space": edge.src_space,
        "dst_id_space": edge.dst_space,
        "weight_col": edge.weight_col,
        "time_col": edge.time_col,
        "time_unit": edge.time_unit,
        "input_layout": None if edge.layout == "coo" else edge.layout,
    }
    return _without_defaults(value | _table_json(edge.table))


def _table_json(table: TableConfig) -> dict[str, Any]:
    value: dict[str, Any] = {
        "format": table.format,
        "delimiter": table.delimiter,
        "header": None if table.header == "auto" else table.header,
        "names": table.names,
        "quote": table.quote,
        "escape": table.escape,
        "comment": table.comment,
        "nulls": table.nulls,
        "columns": dict(table.columns),
        "renamed": dict(table.renamed),
        "dropped": table.dropped,
        "kept": table.kept,
        "id_type": table.id_type,
        "list_delimiter": table.list_delimiter,
    }
    kept = {"keep": list(table.kept)} if table.kept is not None else {}  # an empty list says something
    return {_TABLE_KEYS.get(key, key): list(item) if isinstance(item, tuple) else item for key, item in value.items()} | kept


def _data_json(item: DataArray) -> dict[str, Any]:
    value = {"type": item.owner, "name": item.name, "file": item.file, "id_col": item.id_col, "column": item.column}
    return _without_defaults(value)


def _one_or_list(texts: tuple[str, ...]) -> Any:
    return texts[0] if len(texts) == 1 else list(texts)


def _without_defaults(value: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what holds by default; write columns that are positions as numbers."""
    value = {
        key: int(item) if key.endswith("_col") and isinstance(item, str) and _POSITION.fullmatch(item) else item
        for key, item in value.items()
    }
    return {key: item for key, item in value.items() if item is not None and (item not in ([], {}, ()) or key == "keep")}


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
