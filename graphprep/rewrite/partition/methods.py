"""The method that a user names: a partition function, a file or folder of assignments, or a partitioner of graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from graphprep.convert.index.partition_file import find_partition_function
from graphprep.model.errors import UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.partition import PartitionOptions
from graphprep.storage.read.urls import Storage
from graphprep.store.assign import GRAPH_METHODS, PartitionFunction

_STREAMING = ("ldg", "fennel")
_INSTALL = "pip install 'graphprep[metis]'; or export --to metis, run gpmetis, and give --by its file"


@dataclass(frozen=True)
class GraphMethod:
    """A partitioner that looks at edges; the fields are those of ``PartitionOptions``."""

    method: str
    num_parts: int
    seed: int
    passes: int
    balance: tuple[str, ...]
    max_imbalance: float


def load_pymetis() -> Any:
    """Import pymetis. Raises UsageError where it is not installed."""
    try:
        import pymetis
    except ImportError as error:
        raise UsageError(f"the method metis needs pymetis: {error}", fix=_INSTALL) from None
    return pymetis


def find_method(metadata: GraphMetadata, storage: Storage, options: PartitionOptions) -> PartitionFunction | GraphMethod:
    """Return what assigns a store's nodes, to as many partitions as it has if none are given.

    Raises UsageError for options that the method does not have, what ``find_partition_function`` raises.
    """
    name, num_parts = options.by, options.partitions or metadata.num_parts
    given = {"--passes": options.passes, "--balance": options.balance or None, "--max-imbalance": options.max_imbalance}
    for flag, value in given.items():
        takers = _STREAMING if flag == "--passes" else GRAPH_METHODS
        if value is not None and name not in takers:
            raise UsageError(f"{flag} belongs to --by {', '.join(takers[:-1])} and {takers[-1]}", fix="leave it out")
    if name == "metis":
        load_pymetis()
    if name in GRAPH_METHODS:
        wanted = options.max_imbalance or 1.05
        if wanted < 1:
            raise UsageError(
                f"--max-imbalance must be 1 or more, found {wanted:g}", fix="give the largest partition over the mean"
            )
        return GraphMethod(name, num_parts, options.seed, options.passes or 5, options.balance or ("nodes",), wanted)
    types = metadata.node_types
    found = find_partition_function(storage, name, types, options.partitions, metadata.num_parts, options.seed)
    return found.with_sizes(types, metadata.num_nodes_per_type)
