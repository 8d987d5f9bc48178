"""Bytes at URLs: the only package that imports fsspec."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphprep.storage.arrays import ArrayReader, StoreReader
    from graphprep.storage.publish import ArrayWriter, StoreWriter
    from graphprep.storage.runs import Runs, SpillPool
    from graphprep.storage.spans import block_at, place_of, text_blocks
    from graphprep.storage.urls import Storage

__all__ = [
    "ArrayReader",
    "ArrayWriter",
    "Runs",
    "SpillPool",
    "Storage",
    "StoreReader",
    "StoreWriter",
    "block_at",
    "place_of",
    "text_blocks",
]

# Loaded when first asked for: `Storage` alone needs no NumPy.
_HOMES = {
    "ArrayReader": "arrays",
    "ArrayWriter": "publish",
    "Runs": "runs",
    "SpillPool": "runs",
    "Storage": "urls",
    "StoreReader": "arrays",
    "StoreWriter": "publish",
    "block_at": "spans",
    "place_of": "spans",
    "text_blocks": "spans",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"graphprep.storage.{_HOMES[name]}"), name)
