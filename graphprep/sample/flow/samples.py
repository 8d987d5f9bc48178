"""Samples on disk or at a URL as a sequence of ``NodeFlow``: ``graphprep.open_samples``."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from typing import Any, overload
from urllib.parse import unquote

import numpy as np

from graphprep.graph.graph import Graph
from graphprep.model.errors import StorageError, UsageError
from graphprep.model.schema import ColumnSchema, edge_type_path, path_name
from graphprep.model.shown.results import Card, Showable
from graphprep.model.shown.texts import count
from graphprep.sample.arrays import block_types, visit_type
from graphprep.sample.flow.node_flow import NodeFlow
from graphprep.sample.flow.parent import check_parent
from graphprep.sample.flow.sequence import FlowSequence
from graphprep.sample.flow.shards import CopiedColumn, FlowTypes, Shard, read_shard
from graphprep.sample.manifest import SamplesManifest, parse_manifest
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage

MANIFEST = "manifest.json"
_MOST_HELD = 2  # shards in memory, of those that are not mapped


class Samples(FlowSequence, Showable):
    """The flows of a folder of samples, mini-batch after mini-batch, epoch after epoch; each is read when it is asked for.

    ``samples[i]`` is a flow, ``samples[i:j]`` are some of them, ``epoch(e)`` those of an epoch. The hash of a shard is checked
    when it is first read. ``graph`` is the parent, for columns. Raises DataError where files are not what the manifest says.
    """

    def __init__(self, source: SampleFiles, graph: Graph | None, numbers: range) -> None:
        self._source, self.graph, self._numbers = source, graph, numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, key: int) -> NodeFlow: ...
    @overload
    def __getitem__(self, key: slice) -> Samples: ...
    def __getitem__(self, key: int | slice) -> NodeFlow | Samples:
        if isinstance(key, slice):
            return Samples(self._source, self.graph, self._numbers[key])
        if not -len(self) <= key < len(self):
            raise IndexError(f"flow {key} of {len(self)}")
        return self._source.flow(self._numbers[key], self.graph)

    @property
    def manifest(self) -> SamplesManifest:
        """Return what was sampled: types, options, numbers of flows."""
        return self._source.manifest

    @property
    def num_epochs(self) -> int:
        """Return how often the seeds were gone through."""
        return self.manifest.num_epochs

    def epoch(self, epoch: int) -> Samples:
        """Return the flows of an epoch, from 0 on."""
        size = self.manifest.num_batches
        if not 0 <= epoch < self.num_epochs or len(self) != self.manifest.num_flows:
            raise UsageError(f"there is no epoch {epoch}: there are {self.num_epochs} in all samples", fix="count from 0")
        return self[epoch * size : (epoch + 1) * size]

    def card(self) -> Card:
        """See ``Showable``."""
        manifest = self.manifest
        title = f"Samples({display_url(self._source.url)!r}): {count(len(self), 'flow')}"
        layers, batches = count(manifest.num_layers, "layer"), count(manifest.num_batches, "batch", "batches")
        return Card(title, (), (f"{layers}; {batches} in each of {count(manifest.num_epochs, 'epoch')}",))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Samples, (self._source, self.graph, self._numbers))


class SampleFiles:
    """A folder of samples: its manifest, and shards as they are asked for."""

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = url
        self._storage = storage
        self._shards: OrderedDict[int, Shard] = OrderedDict()
        self._checked: Graph | None = None
        manifest_url = storage.join(url, MANIFEST)
        if not storage.exists(manifest_url):
            raise StorageError(
                f"there are no samples: {MANIFEST} is missing",
                place=display_url(url),
                fix="name a folder that graphprep sample wrote; the manifest is written last",
            )
        self.manifest = parse_manifest(storage.read_bytes(manifest_url), display_url(manifest_url))
        self._starts = [0, *accumulate(shard.num_flows for shard in self.manifest.shards)]

    def __reduce__(self) -> tuple[Any, ...]:
        return (SampleFiles, (self._storage, self.url))

    @cached_property
    def types(self) -> FlowTypes:
        """Return what all flows have in common."""
        manifest = self.manifest
        known = block_types(manifest.node_types, manifest.edge_types, manifest.direction)
        known += tuple(visit_type(manifest.node_types, name) for name in manifest.node_types if manifest.is_walked)
        wanted = [next(one for one in known if (one.edge_type, one.is_reversed) == name) for name in manifest.block_types]
        folders = {f"nodes/{path_name(name)}/": ("node", number) for number, name in enumerate(manifest.node_types)}
        for number, one in enumerate(wanted):
            side = "reversed" if one.is_reversed else "edges"
            folders[f"{side}/{edge_type_path(one.edge_type)}/"] = ("edge", number)
        columns = []
        for entry in manifest.columns:
            folder, _, name = entry.member.rpartition("/")
            codes = () if entry.is_code else None
            schema = ColumnSchema(
                *(unquote(name), "dense", entry.dtype, entry.item_shape, entry.optional),
                role=entry.role,
                unit=entry.unit,
                categories=codes,
            )
            columns.append(CopiedColumn(*folders[f"{folder}/"], schema, entry.member))  # type: ignore[arg-type]
        return FlowTypes(manifest.node_types, tuple(wanted), manifest.direction, tuple(columns))

    def flow(self, number: int, graph: Graph | None) -> NodeFlow:
        """Read a flow."""
        shard = int(np.searchsorted(self._starts, number, side="right")) - 1
        arrays, columns = self._shard(shard).flow(number - self._starts[shard])
        return NodeFlow(arrays, graph, columns if graph is None else None, self)

    def check_parent(self, graph: Graph) -> None:
        """Refuse a store whose IDs are not those of the samples."""
        if graph is not self._checked:
            check_parent(self.manifest.store, graph, self.manifest.direction)
            self._checked = graph

    def _shard(self, number: int) -> Shard:
        if number not in self._shards:
            entry, is_mapped = (
                self.manifest.shards[number],
                self.manifest.file_format == "npz" and self._storage.is_local(self.url),
            )
            while not is_mapped and len(self._shards) >= _MOST_HELD:
                self._shards.popitem(last=False)
            arrays = read_shard(self._storage, self._storage.join(self.url, entry.path), entry, self.manifest.file_format)
            self._shards[number] = Shard(arrays, self.types)
        self._shards.move_to_end(number)
        return self._shards[number]


def open_samples(
    path: str | os.PathLike[str],
    graph: Graph | str | os.PathLike[str] | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> Samples:
    """Open what ``graphprep sample`` wrote, as a sequence of ``NodeFlow``.

    ``graph`` is the store that was sampled, or its path: then flows have all of its columns, else those that were copied with
    them. Raises StorageError where there are no samples, DataError where the store is another one, or has the graph's nodes or
    edges in another order.
    """
    source = SampleFiles(Storage(storage_options), os.fspath(path))
    if graph is not None and not isinstance(graph, Graph):
        graph = Graph(Storage(storage_options), os.fspath(graph))
    if graph is not None:
        source.check_parent(graph)
    return Samples(source, graph, range(source.manifest.num_flows))
