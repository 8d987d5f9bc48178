"""What ``export`` asks of a store, what a user can ask of it, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphprep.model.schema import Layout

EdgeOrder = Literal["csc", "csr", "input"]


@dataclass(frozen=True)
class StoreNeed:
    """What an exporter reads of a store.

    ``layouts`` are the adjacency layouts that must be there. ``edge_columns`` is the order in which edge columns are read: the
    rows of a layout, or ``input``, by edge ID; None: they are not read. ``input_order``: the ends of all edges are read by edge
    ID, and nodes with their columns by raw ID. ``num_parts``, ``partition_by`` (a method of ``convert``, or a file) and
    ``seed``: another partitioning; None stands for that of the store.
    """

    layouts: tuple[Layout, ...] = ()
    edge_columns: EdgeOrder | None = None
    input_order: bool = False
    num_parts: int | None = None
    partition_by: str | None = None
    seed: int = 0
