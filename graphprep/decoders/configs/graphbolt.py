"""Inputs of GraphBolt's ``OnDiskDataset``: ``metadata.yaml``, and the files that it names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from graphprep.decoders.configs.graph_file import folder_of, read_document
from graphprep.decoders.looks.formats import GRAPHBOLT_METADATA
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, PairFile, TableConfig, split_files
from graphprep.model.schema import EdgeType, edge_type_text, escape_name, parse_edge_type
from graphprep.storage.faults import display_url
from graphprep.storage.read.schemas import at_path, check_json

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_NODES, _EDGES = "_N", "_E"  # names of the only node type and relation where none are given
_TORCH_FIX = "write it as .npy: numpy.save(path, torch.load(path).numpy())"
_NEGATIVE = ("labels", "indexes")  # together they say which pairs are made up
_SETS = ("train_set", "validation_set", "test_set")


@dataclass(frozen=True)
class GraphBoltDataset:
    """Reads ``metadata.yaml`` of an ``OnDiskDataset`` that is not preprocessed yet, or the folder that holds it.

    Edges are CSV without a header or ``.npy`` of 2 x E; features ``.npy``, row r of which belongs to node or edge r. The
    nodes or edges of the first task's sets make a split, and labels of nodes a label.

    Source: DGL, "YAML specification" of ``OnDiskDataset``.
    """

    name: ClassVar[str] = "graphbolt"
    takes_folder: ClassVar[bool] = True

    def read_config(self, storage: Storage, urls: Sequence[str]) -> GraphConfig:
        """Read the only file.

        Raises DataError at the key that does not fit, or that asks for what cannot be read.
        """
        if len(urls) != 1:
            raise UsageError(
                f"a GraphBolt dataset is one folder, found {len(urls)} inputs", fix=f"name one {GRAPHBOLT_METADATA}"
            )
        url = storage.join(urls[0], GRAPHBOLT_METADATA) if storage.is_dir(urls[0]) else urls[0]
        place = display_url(url)
        value = read_document(storage, url)
        _refuse_preprocessed(value, place)
        check_json(value, "graphbolt", place)
        graph = value["graph"]
        nodes = tuple(_node_table(item, at_path(place, ("graph", "nodes", i))) for i, item in enumerate(graph["nodes"]))
        data = [*_features(value, place, ()), *_features(graph, place, ("graph",))]
        tasks = _Tasks(storage, url, {(array.owner, array.name) for _, array in data})
        tasks.read(value)
        return GraphConfig(
            nodes=nodes,
            edges=tuple(
                tasks.with_parts(_edge_table(item, at_path(place, ("graph", "edges", i))))
                for i, item in enumerate(graph["edges"])
            ),
            node_data=(*(array for domain, array in data if domain == "node"), *tasks.labels),
            edge_data=tuple(array for domain, array in data if domain == "edge"),
            graph_name=value.get("dataset_name"),
            labels=tuple(dict.fromkeys(f"{escape_name(array.owner)}:{array.name}" for array in tasks.labels)),
            splits=(
                *(split_files(owner, paths) for owner, paths in tasks.files.items() if any(paths)),
                *(f"{edge_type_text(kind)}:split" for kind in tasks.pairs),
            ),
            base=folder_of(url),
            place=place,
            messages=tuple(tasks.messages),
        )


def _refuse_preprocessed(value: Any, place: str) -> None:
    if isinstance(value, dict) and "graph" not in value and "graph_topology" in value:
        raise DataError(
            "this is the metadata of a preprocessed dataset, whose graph is a torch file",
            place=place,
            fix="name the metadata.yaml of the folder above",
        )


def _node_table(item: Mapping[str, Any], place: str) -> NodeTable:
    return NodeTable(_type(item) or _NODES, TableConfig(place=place), num_nodes=item["num"], num_nodes_by=f"{place}.num")


def _edge_table(item: Mapping[str, Any], place: str) -> EdgeTable:
    _refuse_torch(item, place)
    src, relation, dst = _edge_type(item, place)
    if item["format"] == "csv":
        table = TableConfig((item["path"],), "csv", delimiter=",", header="no", names=("src", "dst"), place=place)
        return EdgeTable(src, relation, dst, table, src_col="0", dst_col="1")
    return EdgeTable(src, relation, dst, TableConfig((item["path"],), "npy", place=place))


def _features(value: Mapping[str, Any], place: str, path: tuple[str, ...]) -> Iterator[tuple[str, DataArray]]:
    """Yield the domain and the array of every feature."""
    for i, item in enumerate(value.get("feature_data") or ()):
        at = at_path(place, (*path, "feature_data", i))
        _refuse_torch(item, at)
        owner = (_type(item) or _NODES) if item["domain"] == "node" else edge_type_text(_edge_type(item, at))
        yield item["domain"], DataArray(owner, str(item["name"]), item["path"], place=at)


@dataclass
class _Tasks:
    """What the first task says: the files of its sets by node type and edge type, and the labels of nodes beside them.

    ``url`` is that of the metadata, ``taken`` are the names of features, by type. ``messages`` say what a store does not hold.
    """

    storage: Storage
    url: str
    taken: set[tuple[str, str]]

    def __post_init__(self) -> None:
        self.place = display_url(self.url)
        self.files: dict[str, list[str]] = {}
        self.pairs: dict[EdgeType, list[PairFile | None]] = {}
        self.labels: list[DataArray] = []
        self.messages: list[str] = []
        self.num_pairs = 0

    def read(self, value: Mapping[str, Any]) -> None:
        """Read all tasks."""
        for number, task in enumerate(value.get("tasks") or ()):
            at = at_path(self.place, ("tasks", number))
            if number:
                self.messages.append(f"{at} is not stored: only the first task is")
                continue
            further = [key for key in task if key not in (*_SETS, "name")]
            if further:
                self.messages.append(f"{at}: {', '.join(map(repr, further))} not stored")
            for k, name in enumerate(_SETS):
                for i, part in enumerate(task.get(name) or ()):
                    self._part(part, k, at_path(self.place, ("tasks", number, name, i)))

    def _part(self, part: Mapping[str, Any], k: int, at: str) -> None:
        """Take the nodes of one type in a set, and their labels."""
        owner = _type(part) or _NODES
        items = {item.get("name"): item for item in part.get("data") or ()}
        seeds = items.get("seeds", items.get("seed_nodes", items.get("node_pairs")))
        if seeds is not None and seeds.get("format") == "numpy" and (":" in owner or self._width(seeds["path"]) > 1):
            self._edge_part(part, k, at, items)
            return
        paths = self.files.setdefault(owner, ["", "", ""])
        if seeds is None or seeds.get("format") != "numpy" or paths[k]:
            self.messages.append(f"{at} is not stored: only seeds in one .npy file are")
            return
        paths[k] = seeds["path"]
        for name, item in items.items():
            if name == "labels" and item.get("format") == "numpy":
                column = "labels" if (owner, "label") in self.taken else "label"
                self.labels.append(DataArray(owner, column, item["path"], place=at, ids_file=seeds["path"]))
            elif item is not seeds:
                self.messages.append(f"{at}: {name!r} is not stored")

    def _edge_part(self, part: Mapping[str, Any], k: int, at: str, items: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the edges of one type in a set; beside ``indexes``, labels say which of the pairs are edges."""
        from graphprep.decoders.tables.pair_parts import MOST_PAIRS, SPLIT, pairs_in

        kind = _edge_type(part, at)
        seeds = items.get("seeds", items.get("node_pairs")) or {}
        source = pairs_in(self.storage, self._url(seeds["path"]))
        count = 0 if source is None else source.shape[0]
        files = self.pairs.get(kind, [None, None, None])
        taken = (edge_type_text(kind), SPLIT.name) in self.taken or files[k] is not None
        if source is None or taken or self.num_pairs + count > MOST_PAIRS:
            why = "a split is there already" if taken else f"more than {MOST_PAIRS:,} pairs" if source else "no pairs of IDs"
            self.messages.append(f"{at} is not stored: {why}")
            return
        self.num_pairs += count
        has_negative = "indexes" in items and items.get("labels", {}).get("format") == "numpy"
        labels = self._url(items["labels"]["path"]) if has_negative else None
        files[k] = PairFile(source.url, labels, at)
        self.pairs[kind] = files
        self.messages.append(f"{at}: pairs that are no edges of the graph are not stored")
        unread = [name for name, item in items.items() if item is not seeds and not (has_negative and name in _NEGATIVE)]
        self.messages += [f"{at}: {name!r} is not stored" for name in unread]

    def with_parts(self, table: EdgeTable) -> EdgeTable:
        """Add to a table of edges the parts that name some of them."""
        found = self.pairs.get((table.src_type or "", table.relation or "", table.dst_type or ""))
        return table if found is None else replace(table, parts=(found[0], found[1], found[2]))

    def _url(self, path: str) -> str:
        return self.storage.join(folder_of(self.url), path)

    def _width(self, path: str) -> int:
        """Return how many numbers a row of an array has, 1 where there is no such file (what reads it says so)."""
        from graphprep.decoders.cells.arrays_files import find_array

        url = self._url(path)
        shape = find_array(self.storage, url).shape if self.storage.exists(url) else ()
        return shape[1] if len(shape) == 2 else 1


def _type(item: Mapping[str, Any]) -> str | None:
    return None if item.get("type") is None else str(item["type"])


def _edge_type(item: Mapping[str, Any], place: str) -> tuple[str, str, str]:
    name = _type(item)
    if name is None:
        return _NODES, _EDGES, _NODES
    try:
        return parse_edge_type(name)
    except ValueError as error:
        raise DataError(str(error), place=f"{place}.type", fix="write src:rel:dst") from None


def _refuse_torch(item: Mapping[str, Any], place: str) -> None:
    if item["format"] == "torch":
        raise DataError("files of torch cannot be read", place=f"{place}.format", fix=_TORCH_FIX)


__all__ = ["GraphBoltDataset"]
