"""The end of every store: a manifest for each partition, provenance.json, and metadata.json, which publishes it."""

from __future__ import annotations

import os
import platform
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import xxhash

from graphprep.model.metadata import (
    MANIFEST_NAME,
    PROVENANCE_NAME,
    ArrayEntry,
    GraphMetadata,
    Manifest,
    PartEntry,
    dump_json,
    dump_store_json,
    part_name,
)
from graphprep.model.shown.texts import without_secrets
from graphprep.model.version import __version__
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.publish import StoreWriter


def finish_store(
    writer: StoreWriter,
    entries: Sequence[Sequence[ArrayEntry]],
    metadata: GraphMetadata,
    provenance: Callable[[], object],
) -> GraphMetadata:
    """Write what stands beside the arrays, and publish the store; ``entries`` are its arrays, by partition.

    Returns ``metadata`` with the manifests. ``provenance`` is asked last.
    """
    parts = []
    for part, arrays in enumerate(entries):
        path = part_name(part, metadata.num_parts)
        data = dump_store_json(Manifest(part, tuple(arrays)).to_json())
        writer.write_file(f"{path}/{MANIFEST_NAME}", data)
        parts.append(PartEntry(path, len(data), xxhash.xxh3_64_hexdigest(data)))
    metadata = replace(metadata, parts=tuple(parts))
    writer.write_file(PROVENANCE_NAME, dump_json(provenance()))
    writer.publish(dump_store_json(metadata.to_json()))
    return metadata


def provenance(urls: Sequence[str], storage: Storage, elapsed_s: float, device: str = "") -> dict[str, Any]:
    """Tell how a store was made; the only file in which the time, the host and the command line occur.

    ``device`` is what computed beside the CPU.
    """
    return {
        "version": __version__,
        "command": _without_secrets(sys.argv),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": round(elapsed_s, 3),
        "host": socket.gethostname(),
        "device": device or f"cpu ({platform.machine()}, {os.cpu_count()} cores)",
        "inputs": [_provenance_of(url, storage) for url in urls],
    }


def _provenance_of(url: str, storage: Storage) -> dict[str, Any]:
    """Tell of an input its URL, or what was in memory, and its size."""
    origin = storage.origins.get(url)
    return {"url": without_secrets(url), **({} if origin is None else {"in_memory": origin}), "bytes": storage.size(url)}


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the values of storage options and without passwords in URLs."""
    shown = []
    is_value = False
    for argument in arguments:
        flag, equals, rest = argument.partition("=")
        if is_value:
            shown.append(f"{flag}=***")
        elif flag == "--storage-option" and equals:
            shown.append(f"{flag}={rest.partition('=')[0]}=***")
        else:
            shown.append(display_url(argument) if "://" in argument else argument)
        is_value = argument == "--storage-option"
    return shown
