"""What the manifest of samples says, as it is written and read: docs/sample.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphprep.model.errors import DataError
from graphprep.model.schema import EdgeType, parse_edge_type
from graphprep.store.made import SAMPLES_FORMAT

FORMAT = SAMPLES_FORMAT
VERSION = 1


@dataclass(frozen=True)
class ShardEntry:
    """A file of samples: how many flows it has, and their nodes and edges."""

    path: str
    num_flows: int
    num_nodes: int
    num_edges: int
    num_bytes: int
    xxh3: str

    def to_json(self) -> dict[str, Any]:
        """Return the shard as the manifest has it."""
        return {
            "path": self.path,
            "num_flows": self.num_flows,
            "num_nodes": self.num_nodes,
            "num_edges": self.num_edges,
            "bytes": self.num_bytes,
            "xxh3": self.xxh3,
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> ShardEntry:
        """Read what ``to_json`` wrote. Raises KeyError where a key is missing."""
        counts = (value["num_flows"], value["num_nodes"], value["num_edges"], value["bytes"])
        return cls(value["path"], *counts, value["xxh3"])


@dataclass(frozen=True)
class ColumnEntry:
    """A column that was copied: the member of shards that has it, and what it holds; ``is_code``: codes of categories."""

    member: str
    dtype: str
    item_shape: tuple[int, ...]
    optional: bool
    role: str | None
    unit: str | None = None
    is_code: bool = False

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> ColumnEntry:
        """Read what the manifest says. Raises KeyError where a key is missing."""
        shape, about = tuple(value["item_shape"]), (value.get("role"), value.get("unit"), value.get("is_code", False))
        return cls(value["member"], value["dtype"], shape, value["optional"], *about)


@dataclass(frozen=True)
class SamplesManifest:
    """See docs/sample.md. ``block_types``: edge types, and whether their edges are met against their direction."""

    store: Mapping[str, Any]
    options: Mapping[str, Any]
    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]
    direction: str
    block_types: tuple[tuple[EdgeType, bool], ...]
    num_layers: int
    num_flows: int
    num_batches: int
    num_epochs: int
    columns: tuple[ColumnEntry, ...]
    file_format: str
    shards: tuple[ShardEntry, ...]

    @property
    def is_walked(self) -> bool:
        """Return whether edges are visits of random walks."""
        return bool(self.options.get("sampler") == "random-walk")


def parse_manifest(data: bytes, place: str) -> SamplesManifest:
    """Read a manifest. Raises DataError where it is none, or not whole."""
    try:
        value = json.loads(data)
        if value["format"] != FORMAT:
            raise ValueError
    except (ValueError, KeyError, TypeError):
        raise DataError(
            "this is no manifest of samples", place=place, fix="name a folder that graphprep sample wrote"
        ) from None
    if value.get("format_version") != VERSION:
        found = value.get("format_version")
        raise DataError(f"samples of version {found}, this graphprep reads {VERSION}", place=place, fix="sample again")
    try:
        manifest = _manifest(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"the manifest is not whole: {type(error).__name__}: {error}"
        raise DataError(message, place=place, fix="sample again, or copy the samples again") from None
    if sum(shard.num_flows for shard in manifest.shards) != manifest.num_flows:
        total = sum(shard.num_flows for shard in manifest.shards)
        raise DataError(f"the shards have {total} flows, num_flows says {manifest.num_flows}", place=place, fix="sample again")
    return manifest


def _manifest(value: Mapping[str, Any]) -> SamplesManifest:
    store = value["store"]
    return SamplesManifest(
        store,
        value["options"],
        tuple(store["node_type"]),
        tuple(map(parse_edge_type, store["edge_type"])),
        value["direction"],
        tuple((parse_edge_type(one["edge_type"]), bool(one["reversed"])) for one in value["block_types"]),
        value["num_layers"],
        value["num_flows"],
        value["num_batches"],
        value["num_epochs"],
        tuple(map(ColumnEntry.parse, value["columns"])),
        value["file_format"],
        tuple(map(ShardEntry.parse, value["shards"])),
    )
