"""Find the partition of every node of a store, by whatever method."""

from __future__ import annotations

from graphprep.edges.moves import Workspace
from graphprep.model.protocols import Reporter
from graphprep.rewrite.partition.assignment import Assignment, ask_function
from graphprep.rewrite.partition.methods import GraphMethod
from graphprep.rewrite.partition.multilevel import run_metis
from graphprep.rewrite.partition.streaming import stream_nodes
from graphprep.store.assign import PartitionFunction
from graphprep.store.items import StoredArrays


def assign_nodes(
    store: StoredArrays, method: PartitionFunction | GraphMethod, room: Workspace, reporter: Reporter
) -> Assignment:
    """Find the partition of every node.

    Raises DataError where the store's arrays are faulty or the method cannot say, UsageError for options that do not fit.
    """
    if isinstance(method, PartitionFunction):
        return ask_function(store, method, room)
    if method.method == "metis":
        return run_metis(store, method, room)
    return stream_nodes(store, method, room, reporter)
