"""Which partition each node of a store belongs to, and DGL's files of it: ``<type>.txt`` and ``partition_meta.json``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.metadata import dump_json
from graphprep.model.schema import path_name
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.assign import PartitionFunction
from graphprep.store.items import StoredArrays
from graphprep.store.raw_merge import nodes_by_raw_id

Parts = NDArray[np.int32]
META_NAME = "partition_meta.json"


@dataclass(frozen=True)
class Assignment:
    """The partition of every node. ``parts``: for each node type int32[n], by the store's typed IDs; ``method`` made it.

    ``versions`` are those of programs on which it depends.
    """

    method: str
    num_parts: int
    parts: tuple[Parts, ...]
    versions: Mapping[str, str] = field(default_factory=dict)


def ask_function(store: StoredArrays, function: PartitionFunction, room: Workspace) -> Assignment:
    """Ask a partition function about all nodes. Raises what it raises, and DataError where the store's arrays are faulty."""
    metadata = store.metadata
    found = []
    for number, (name, size) in enumerate(zip(metadata.node_types, metadata.num_nodes_per_type, strict=True)):
        parts, rank = room.scratch.zeros(size, np.int32), 0
        for nodes in nodes_by_raw_id(store, number, room.piece_bytes):
            parts[nodes.typed] = function.parts(nodes.raw, rank, size, number, name)
            rank += nodes.typed.size
        found.append(parts)
    return Assignment(function.method, function.num_parts, tuple(found))


def write_assignment(store: StoredArrays, assignment: Assignment, out: FolderOutput, room: Workspace) -> None:
    """Write line i of ``<type>.txt``: the partition of the i-th node by raw ID.

    DGL reads two names of methods: random, and metis, which stands for all others.
    """
    for number, name in enumerate(store.metadata.node_types):
        nodes = nodes_by_raw_id(store, number, room.piece_bytes)
        out.write(f"{path_name(name)}.txt", _lines(assignment.parts[number][some.typed] for some in nodes))
    algorithm = "random" if assignment.method == "random" else "metis"
    out.write(META_NAME, dump_json({"version": "1.0.0", "num_parts": assignment.num_parts, "algo_name": algorithm}))


def _lines(pieces: Iterable[Parts]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"\n".join(piece.astype("S10").tolist()) + b"\n"
