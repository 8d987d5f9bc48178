"""graphprep prepares graph data for graph learning: raw dumps in, CSR/CSC partitions out.

One function per command: ``convert``, ``info``, ``validate``, ``ids``, ``reorder``, ``generate``; and what they work with. All
are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphprep.api import convert, generate, ids, info, open_store, reorder, validate
    from graphprep.model.errors import GraphprepError
    from graphprep.model.generate import GenerateOptions, GenerateSummary
    from graphprep.model.ids import IDConverter, PartitionBook
    from graphprep.model.options import ConvertOptions, ConvertSummary, RunOptions
    from graphprep.model.reorder import ReorderOptions, ReorderSummary

__version__ = "0.1.0"

__all__ = [
    "ConvertOptions",
    "ConvertSummary",
    "GenerateOptions",
    "GenerateSummary",
    "GraphprepError",
    "IDConverter",
    "PartitionBook",
    "ReorderOptions",
    "ReorderSummary",
    "RunOptions",
    "__version__",
    "convert",
    "generate",
    "ids",
    "info",
    "open_store",
    "reorder",
    "validate",
]

_HOMES = {
    "ConvertOptions": "graphprep.model.options",
    "ConvertSummary": "graphprep.model.options",
    "GenerateOptions": "graphprep.model.generate",
    "GenerateSummary": "graphprep.model.generate",
    "GraphprepError": "graphprep.model.errors",
    "IDConverter": "graphprep.model.ids",
    "PartitionBook": "graphprep.model.ids",
    "ReorderOptions": "graphprep.model.reorder",
    "ReorderSummary": "graphprep.model.reorder",
    "RunOptions": "graphprep.model.options",
    "convert": "graphprep.api",
    "generate": "graphprep.api",
    "ids": "graphprep.api",
    "info": "graphprep.api",
    "open_store": "graphprep.api",
    "reorder": "graphprep.api",
    "validate": "graphprep.api",
}


def __getattr__(name: str) -> Any:
    """Load a name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted({*globals(), *__all__})
