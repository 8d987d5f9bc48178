"""What is handed over in memory in place of files: who reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphprep.convert.memory.folder import InMemory
from graphprep.convert.memory.tables import INPUTS, MemoryGraph, find_source, owner_of, read_tables, unreadable
from graphprep.model.errors import UsageError


def read_memory(inputs: Any, options: Mapping[str, Any], num_nodes: Mapping[str, int]) -> MemoryGraph | None:
    """Return what is in memory; None where ``inputs`` are paths.

    ``options`` are ``decoder_options``, and ``num_nodes`` those of a dict of tables. Raises UsageError for objects that cannot
    be read.
    """
    if _is_of(inputs, "networkx") and hasattr(inputs, "adjacency"):
        _refuse_options(("num_nodes",) if num_nodes else (), "a graph of networkx, which has its nodes")
        from graphprep.convert.memory.networkx import read_networkx

        return read_networkx(inputs, options)
    if _is_of(inputs, "torch_geometric") and hasattr(inputs, "indices") and hasattr(inputs, "get"):
        inputs = _only_graph(inputs)
    if _is_of(inputs, "torch_geometric") and hasattr(inputs, "edge_stores"):
        given = {"num_nodes": num_nodes, "decoder_options": options}
        _refuse_options([name for name, value in given.items() if value], "data of PyG, which has its nodes and columns")
        from graphprep.convert.memory.pyg import PygGraph

        return PygGraph(inputs).read()
    if isinstance(inputs, Mapping):
        keys = {key: owner_of(key) for key in inputs}
        nodes, edges = ({key: inputs[key] for key, owner in keys.items() if isinstance(owner, kind)} for kind in (str, tuple))
        return read_tables(nodes, edges, options, num_nodes, INPUTS)
    if _is_path(inputs):
        return None
    is_list = isinstance(inputs, list | tuple)
    found = [find_source(one) for one in (inputs if is_list else [inputs])]
    if not any(found) and isinstance(inputs, Iterable) and not hasattr(inputs, "shape"):
        for at, one in enumerate(inputs if is_list else ()):
            if _is_of(one, "torch_geometric") or _is_of(one, "networkx"):
                raise UsageError("graphs are not taken in a list", place=INPUTS, fix="give each to a store of its own")
            if not _is_path(one):
                raise unreadable(one, f"{INPUTS}[{at}]")
        return None
    sources = {}
    for at, source in enumerate(found):
        name = f"{INPUTS}[{at}]" if is_list else INPUTS
        if source is None:
            raise unreadable(inputs[at] if is_list else inputs, name)
        sources[name] = source
    return MemoryGraph(InMemory(sources), tuple(sources))


def _only_graph(dataset: Any) -> Any:
    """Return the graph of a dataset of PyG. Raises UsageError where it has several, or none."""
    if len(dataset) != 1:
        what = f"this dataset of PyG has {len(dataset)} graphs"
        raise UsageError(what, place=INPUTS, fix="give one of them, such as dataset[0], each to a store of its own")
    return dataset[0]


def _is_path(value: object) -> bool:
    return isinstance(value, str | bytes) or hasattr(value, "__fspath__")


def _refuse_options(names: Sequence[str], what: str) -> None:
    if names:
        raise UsageError(f"{names[0]} does not go with {what}", fix=f"leave out {names[0]}")


def _is_of(value: object, package: str) -> bool:
    """Return whether an object's class is of a package, or inherits from one that is, without importing it."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(value).__mro__)


__all__ = ["MemoryGraph", "read_memory", "read_tables"]
