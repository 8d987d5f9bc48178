"""Folders of the Open Graph Benchmark: ``raw/`` with its compressed CSV files, homogeneous or heterogeneous."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from graphprep.model.counts import parse_count
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig, split_files
from graphprep.model.schema import EdgeType, edge_type_text, escape_name
from graphprep.storage.faults import display_url

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_NODES, _EDGES = "_N", "_E"  # names of the only node type and relation where none are given
_BETWEEN = "___"  # in the names of folders of relations
_SUFFIXES = (".csv.gz", ".csv")
_SPECIES = ("node", "species")  # ogbn-proteins has its column of nodes under this name
_COLUMN_BYTES = 1 << 16  # of a file of labels that is looked at


@dataclass(frozen=True)
class OgbFolder:
    """Reads the folder of a data set of the Open Graph Benchmark, or its ``raw`` folder: one graph for nodes or edges.

    Features, labels and what ``node_*`` and ``edge_*`` files hold become columns: ``node-feat`` is ``feat``, ``node_year`` is
    ``year``. The files of the first split make it a column. Inverse edges are not added.

    Source: snap-stanford/ogb, ``ogb/io/README.md`` and ``read_graph_raw.py``.
    """

    name: ClassVar[str] = "ogb"
    takes_folder: ClassVar[bool] = True

    def read_config(self, storage: Storage, urls: Sequence[str]) -> GraphConfig:
        """Look at what is there.

        Raises UsageError where it is no such folder, DataError where it holds several graphs, or its lists do not fit.
        """
        if len(urls) != 1:
            raise UsageError(f"an OGB data set is one folder, found {len(urls)} inputs", fix="name its folder")
        folder = _Folder(storage, urls[0])
        if folder.find("num-node-dict") is not None:
            return folder.heterogeneous()
        if folder.find("edge") is None or folder.find("num-node-list") is None:
            raise folder.misfit()
        return folder.homogeneous()


class _Folder:
    """A data set's folder; paths are relative to it. ``raw`` is ``raw/``, or empty where the folder is that itself."""

    def __init__(self, storage: Storage, url: str) -> None:
        self.storage = storage
        self.url = url.rstrip("/") or "/"
        self.shown = display_url(self.url)
        self.raw = "raw/" if storage.is_dir(storage.join(self.url, "raw")) else ""

    def find(self, name: str, folder: str | None = None) -> str | None:
        """Return the path of a CSV file, compressed or not; None where there is none."""
        paths = [f"{self.raw if folder is None else folder}{name}{suffix}" for suffix in _SUFFIXES]
        return next((path for path in paths if self.storage.exists(self.storage.join(self.url, path))), None)

    def misfit(self) -> UsageError:
        """Word what this is instead."""
        if self.storage.exists(self.storage.join(self.url, f"{self.raw}data.npz")):
            return UsageError(
                "this is OGB's binary form",
                place=self.shown,
                fix=f"convert {self.raw}data.npz with --format arrays",
            )
        return UsageError(
            "this is no OGB folder: raw/edge.csv.gz is missing", place=self.shown, fix="name the data set's folder"
        )

    def homogeneous(self) -> GraphConfig:
        """Return the config of a graph of one node type."""
        [[count]] = self._rows("num-node-list", width=1)
        kind = (_NODES, _EDGES, _NODES)
        splits, messages = self._splits({_NODES: ""})
        labels = self._label(_NODES, self.raw)
        return GraphConfig(
            nodes=(self._nodes(_NODES, count, "num-node-list"),),
            edges=(self._edges(kind, self.raw),),
            node_data=(*self._data("node", _NODES, self.raw), *labels),
            edge_data=tuple(self._data("edge", edge_type_text(kind), self.raw)),
            labels=self._label_flags(labels),
            splits=splits,
            base=self.url,
            place=self.shown,
            messages=messages,
        )

    def heterogeneous(self) -> GraphConfig:
        """Return the config of a graph of several types: those of num-node-dict, and of triplet-type-list, in their order."""
        names, counts = self._rows("num-node-dict", width=None, lines=2)
        kinds = [(row[0], row[1], row[2]) for row in self._rows("triplet-type-list", width=3, lines=None)]
        folders = {kind: f"{self.raw}relations/{_BETWEEN.join(kind)}/" for kind in kinds}
        splits, messages = self._splits({name: f"{name}/" for name in names})
        data = [array for name in names for array in self._data("node", name, f"{self.raw}node-feat/{name}/")]
        labels = [array for name in names for array in self._label(name, f"{self.raw}node-label/{name}/")]
        edges = [array for kind in kinds for array in self._data("edge", edge_type_text(kind), folders[kind])]
        tables = [self._nodes(name, number, "num-node-dict") for name, number in zip(names, counts, strict=True)]
        return GraphConfig(
            nodes=tuple(tables),
            edges=tuple(self._edges(kind, folders[kind]) for kind in kinds),
            node_data=(*data, *labels),
            edge_data=tuple(edges),
            labels=self._label_flags(labels),
            splits=splits,
            base=self.url,
            place=self.shown,
            messages=messages,
        )

    def _edges(self, kind: EdgeType, folder: str) -> EdgeTable:
        path = self.find("edge", folder)
        if path is None:
            raise StorageError("there is no such file", place=f"{self.shown}/{folder}edge.csv.gz", fix="complete the data set")
        table = TableConfig((path,), "csv", delimiter=",", header="no", names=("src", "dst"), place=f"{self.shown}/{path}")
        return EdgeTable(*kind, table, src_col="0", dst_col="1")

    def _data(self, side: str, owner: str, folder: str) -> Iterator[DataArray]:
        """Yield the features, then the other columns, by name."""
        path = self.find(f"{side}-feat", folder)
        if path is not None:
            yield DataArray(owner, "feat", path, place=f"{self.shown}/{path}")
        where = self.storage.join(self.url, folder) if folder else self.url
        entries = self.storage.list_dir(where) if self.storage.is_dir(where) else ()
        for entry in entries:
            suffix = next((suffix for suffix in _SUFFIXES if entry.name.endswith(suffix)), None)
            stem = entry.name.removesuffix(suffix or "")
            if suffix is not None and (stem.startswith(f"{side}_") or (side, stem) == _SPECIES) and not entry.is_dir:
                name = stem.removeprefix(f"{side}_")
                yield DataArray(owner, name, f"{folder}{entry.name}", place=f"{self.shown}/{folder}{entry.name}")

    def _label(self, owner: str, folder: str) -> list[DataArray]:
        path = self.find("node-label", folder)
        return [] if path is None else [DataArray(owner, "label", path, place=f"{self.shown}/{path}")]

    def _label_flags(self, arrays: Sequence[DataArray]) -> tuple[str, ...]:
        """Return the flags of labels that are one number a node; those of several tasks are ordinary columns."""
        flags = []
        for array in arrays:
            first = self.storage.head(self.storage.join(self.url, array.file), _COLUMN_BYTES).partition(b"\n")[0]
            if b"," not in first:
                flags.append(f"{escape_name(array.owner)}:{array.name}")
        return tuple(flags)

    def _splits(self, folders: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the flags that name the files of the first split, and what of the splits a store does not hold."""
        top = self.storage.join(self.url, "split")
        if not self.raw or not self.storage.is_dir(top):
            return (), ()
        schemes = [entry.name for entry in self.storage.list_dir(top) if entry.is_dir and not entry.name.startswith((".", "_"))]
        splits = []
        for scheme in schemes[:1]:
            for owner, inside in folders.items():
                paths = [self.find(part, f"split/{scheme}/{inside}") or "" for part in ("train", "valid", "test")]
                if any(paths):
                    splits.append(split_files(owner, paths))
        messages = [f"{self.shown}/split/{scheme} is not read: only one split is" for scheme in schemes[1:]]
        if schemes and not splits:
            what = "it holds files of torch" if self._holds_torch(f"split/{schemes[0]}") else "it holds no CSV files of nodes"
            messages.append(f"{self.shown}/split/{schemes[0]} is not stored: {what}")
        return tuple(splits), tuple(messages)

    def _holds_torch(self, folder: str) -> bool:
        return any(entry.name.endswith(".pt") for entry in self.storage.list_dir(self.storage.join(self.url, folder)))

    def _rows(self, name: str, *, width: int | None, lines: int | None = 1) -> list[list[str]]:
        """Read a small file whole.

        Raises DataError where it has another number of lines or columns; several lines of counts are several graphs.
        """
        path = self.find(name)
        if path is None:
            raise StorageError(
                "there is no such file", place=f"{self.shown}/{self.raw}{name}.csv.gz", fix="complete the data set"
            )
        text = self.storage.read_bytes(self.storage.join(self.url, path)).decode("utf-8-sig", "surrogateescape")
        rows = [line.split(",") for line in text.splitlines() if line.strip()]
        place = f"{self.shown}/{path}"
        if lines is not None and len(rows) > lines:
            raise DataError(
                f"{len(rows) - lines + 1} graphs: a store holds one", place=place, fix="convert data sets of one graph only"
            )
        if (lines is not None and len(rows) < lines) or not rows:
            raise DataError("lines are missing", place=place, fix="complete the data set")
        for number, row in enumerate(rows, 1):
            if len(row) != (width or len(rows[0])):
                raise DataError(
                    f"expected {width or len(rows[0])} columns, found {len(row)}", place=f"{place}:{number}:1", fix="correct it"
                )
        return rows

    def _nodes(self, node_type: str, text: str, name: str) -> NodeTable:
        """Declare a node type by the number of its nodes, a text of the file ``name``."""
        place = f"{self.shown}/{self.find(name)}"
        count = parse_count(text)
        if count is None:
            raise DataError(f"expected a number of nodes, found {text!r:.60}", place=place, fix="correct it")
        return NodeTable(node_type, TableConfig(place=self.shown), num_nodes=count, num_nodes_by=place)


__all__ = ["OgbFolder"]
