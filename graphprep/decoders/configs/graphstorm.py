"""Configs of GraphStorm's graph construction (``gconstruct``), read as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from graphprep.decoders.configs.graph_file import folder_of
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.graph_config import (
    DataArray,
    EdgeTable,
    GraphConfig,
    IdType,
    NodeTable,
    TableConfig,
    TableFormat,
    split_files,
)
from graphprep.model.schema import FLAG_ESCAPES, edge_type_text, escape_name
from graphprep.storage.faults import display_url
from graphprep.storage.read.schemas import at_path, check_json, parse_json

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_FORMATS: Mapping[str, TableFormat] = {"csv": "csv", "parquet": "parquet", "json": "jsonl"}
_KEPT_TRANSFORMS = (None, "", "noop")
_NO_SPLIT = (0.8, 0.1, 0.1)  # what GraphStorm takes where split_pct is not given


@dataclass(frozen=True)
class GraphStormConfig:
    """Reads GraphStorm's JSON config: ``nodes`` and ``edges`` with their files, features and labels.

    Features are stored as they are, transforms are left to the trainer; only columns that the config lists are read. Entries of
    edges without IDs go by row, and so do those of nodes where no entry of their type has any. ``id_type`` is that of all raw
    IDs.

    Source: GraphStorm, "Single Machine Graph Construction", version gconstruct-v0.1.
    """

    id_type: Literal["int", "uint", "string", "auto"] = "auto"

    name: ClassVar[str] = "graphstorm"

    def read_config(self, storage: Storage, urls: Sequence[str]) -> GraphConfig:
        """Read the only file.

        Raises DataError at the key that does not fit, or that asks for what cannot be read.
        """
        if len(urls) != 1:
            raise UsageError(f"a GraphStorm config is one file, found {len(urls)}", fix="name one JSON file")
        place = display_url(urls[0])
        value = parse_json(storage.read_bytes(urls[0]), place)
        check_json(value, "graphstorm", place)
        reader = _Reader(place, self.id_type)
        nodes = tuple(reader.node_table(item, i) for i, item in enumerate(value.get("nodes", ())))
        edges = tuple(reader.edge_table(item, i) for i, item in enumerate(value.get("edges", ())))
        nodes = _by_row(nodes)
        edges, edge_data = _take_edge_data(edges)
        return GraphConfig(
            nodes=nodes,
            edges=edges,
            edge_data=edge_data,
            id_type=self.id_type,
            labels=tuple(reader.labels),
            splits=tuple(reader.splits.values()),
            base=_base(storage, urls[0], (*nodes, *edges)),
            place=place,
            messages=tuple(reader.messages),
        )


@dataclass
class _Reader:
    """Makes tables of the config's entries; collects labels, splits (by owner), and what there is to tell."""

    place: str
    id_type: IdType

    def __post_init__(self) -> None:
        self.labels: list[str] = []
        self.splits: dict[str, str] = {}
        self.messages: list[str] = []

    def node_table(self, item: Mapping[str, Any], i: int) -> NodeTable:
        """Return the table of an entry of ``nodes``."""
        place = at_path(self.place, ("nodes", i))
        owner = escape_name(item["node_type"])
        table = self._table(item, place, owner)
        id_col = item.get("node_id_col")
        return NodeTable(item["node_type"], table, id_col=id_col, row_ids=id_col is None)

    def edge_table(self, item: Mapping[str, Any], i: int) -> EdgeTable:
        """Return the table of an entry of ``edges``."""
        src, relation, dst = item["relation"]
        table = self._table(item, at_path(self.place, ("edges", i)), edge_type_text((src, relation, dst)))
        keys = [item.get(key) for key in ("source_id_col", "dest_id_col")]
        if keys.count(None) == 1:
            missing = "source_id_col" if keys[0] is None else "dest_id_col"
            raise DataError(f"key {missing!r} is missing", place=table.place, fix="name both columns of IDs, or none")
        return EdgeTable(src, relation, dst, table, src_col=keys[0], dst_col=keys[1])

    def _table(self, item: Mapping[str, Any], place: str, owner: str) -> TableConfig:
        kept: dict[str, str] = {}
        for column, name in self._features(item, place):
            if kept.get(column, name) != name:
                self.messages.append(f"{place}: column {column!r} is stored once, as {kept[column]!r}, not as {name!r} too")
            kept.setdefault(column, name)
        for k, label in enumerate(item.get("labels", ())):
            target = self._label(label, f"{place}.labels[{k}]", owner, item.get("node_type"))
            if target is not None:
                kept.setdefault(target, target)
                self.labels.append(f"{owner}:{escape_name(kept[target], FLAG_ESCAPES)}")
        files = item["files"]
        return TableConfig(
            files=tuple(files) if isinstance(files, list) else (files,),
            format=_format(item["format"], place),
            delimiter=item["format"].get("separator"),
            kept=tuple(kept),
            renamed=tuple((column, name) for column, name in kept.items() if column != name),
            place=place,
        )

    def _features(self, item: Mapping[str, Any], place: str) -> Iterator[tuple[str, str]]:
        """Yield the columns of the features, and their names in the store."""
        for k, feature in enumerate(item.get("features", ())):
            at = f"{place}.features[{k}]"
            columns = feature["feature_col"] if isinstance(feature["feature_col"], list) else [feature["feature_col"]]
            name = feature.get("feature_name")
            if name is None and len(columns) != 1:
                raise DataError("several columns make one feature, which has no name", place=at, fix="add 'feature_name'")
            transform = (feature.get("transform") or {}).get("name")
            if transform not in _KEPT_TRANSFORMS:
                what = ", ".join(repr(column) for column in columns)
                self.messages.append(f"{at}: {what} is stored as it is, without the transform {transform!r}")
            for column in columns:
                yield column, (name or column) if len(columns) == 1 else f"{name}_{column}"

    def _label(self, label: Mapping[str, Any], at: str, owner: str, node_type: str | None) -> str | None:
        """Note a label's split and return its column; None where the task has none (link prediction)."""
        files = label.get("custom_split_filenames")
        paths = [_one_file((files or {}).get(part)) for part in ("train", "valid", "test")]
        if files and (":" in owner or None in paths):
            self.messages.append(f"{at}: custom_split_filenames is not read: only one file of node IDs a part is")
        else:
            shares = label.get("split_pct", label.get("split_type", _NO_SPLIT))
            text = f"{owner}:{'/'.join(str(share) for share in shares)}"
            text = split_files(node_type or "", [path or "" for path in paths]) if files else text
            if self.splits.setdefault(owner, text) != text:
                self.messages.append(f"{at}: {owner} has a split already")
        column: str | None = label.get("label_col")
        return column


def _one_file(given: Any) -> str | None:
    """Return the only file of a part, empty where there is none; None where there are several."""
    files = given if isinstance(given, list) else [given] if given else []
    return None if len(files) > 1 else str(files[0]) if files else ""


def _format(value: Mapping[str, Any], place: str) -> TableFormat:
    name = value["name"].lower()
    if name not in _FORMATS:
        fix = "write it as Parquet (pandas: to_parquet)" if name in ("hdf5", "h5") else one_of(_FORMATS, found=name)
        raise DataError(f"files of format {value['name']!r} cannot be read", place=f"{place}.format.name", fix=fix)
    return _FORMATS[name]


def _by_row(nodes: Sequence[NodeTable]) -> tuple[NodeTable, ...]:
    """Let the first of several tables of a type without IDs declare its nodes, and the others bring columns by row.

    Raises DataError for a table without IDs where another of its type has some: rows are not joined by their order.
    """
    seen: set[str | None] = set()
    tables = []
    for node in nodes:
        keyed = [other for other in nodes if other.type == node.type and not other.row_ids]
        if node.row_ids and keyed:
            raise DataError(
                f"node type {node.type!r} has IDs in {keyed[0].table.files[0]}, and this table has no 'node_id_col'",
                place=node.table.place,
                fix="add the column of IDs to its files, and name it",
            )
        tables.append(replace(node, declares=False) if node.row_ids and node.type in seen else node)
        seen.add(node.type)
    return tuple(tables)


def _take_edge_data(tables: Sequence[EdgeTable]) -> tuple[tuple[EdgeTable, ...], tuple[DataArray, ...]]:
    """Make columns by row of tables without IDs: row r belongs to edge r of the table that has them.

    Raises DataError where that table is not the only one of its type, or where rows lie in several files.
    """
    keyed = tuple(table for table in tables if table.src_col is not None)
    data = []
    for table in tables:
        if table.src_col is not None:
            continue
        kind = (table.src_type or "", table.relation or "", table.dst_type or "")
        same = [other for other in keyed if (other.src_type, other.relation, other.dst_type) == kind]
        if len(same) != 1 or len(table.table.files) != 1:
            words = f"edges of {edge_type_text(kind)!r} have {len(same)} tables with IDs" if len(same) != 1 else "several files"
            raise DataError(
                f"{words}, and this one has no 'source_id_col' and 'dest_id_col'",
                place=table.table.place,
                fix="put its columns into the files of the edges",
            )
        names = dict(table.table.renamed)
        for column in table.table.kept or ():
            file, place = table.table.files[0], table.table.place
            data.append(DataArray(edge_type_text(kind), names.get(column, column), file, column=column, place=place))
    return keyed, tuple(data)


def _base(storage: Storage, url: str, tables: Sequence[NodeTable | EdgeTable]) -> str:
    """Return where relative paths start: the config's folder, or the current one (GraphStorm's way) if the files are there."""
    folder = folder_of(url)
    files = [file for table in tables for file in table.table.files if not any(char in file for char in "*?[")]
    if folder and storage.is_local(url) and files:
        missing = [file for file in files if not storage.exists(storage.join(folder, file))]
        if missing and all(storage.exists(file) for file in files):
            return ""
    return folder


__all__ = ["GraphStormConfig"]
