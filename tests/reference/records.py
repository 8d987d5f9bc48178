"""Decoded records: what the naive readers yield and the reference builder takes."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Numbers:
    """A group of numbers: ``values`` in C order, of the given ``shape`` (() for a scalar)."""

    dtype: str
    shape: tuple[int, ...]
    values: tuple


@dataclass(frozen=True)
class Sparse:
    """Values at coordinates. ``width`` is 0 when the coordinates are flat; ``coords`` are then plain numbers in a row."""

    dtype: str
    width: int
    coords: tuple[int, ...]
    values: tuple


@dataclass(frozen=True)
class Text:
    """A binary value."""

    data: bytes


@dataclass(frozen=True)
class Temporal:
    """Dated values: ``entries`` are (start, end or None, values), in input order."""

    dtype: str
    entries: tuple[tuple[int, int | None, tuple], ...]


Value = Numbers | Sparse | Text | Temporal


@dataclass(frozen=True)
class Node:
    """A node as written. ``slots`` are features with only a number, ``columns`` those with a name."""

    id: int | str
    type: str
    weight: float | None = None
    created_at: int | None = None
    removed_at: int | None = None
    slots: dict[int, Value] = field(default_factory=dict)
    num_slots: int = 0
    columns: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Edge:
    """An edge as written. The types of its ends are None where only the nodes' own records tell them."""

    src: int | str
    dst: int | str
    relation: str
    src_type: str | None = None
    dst_type: str | None = None
    weight: float | None = None
    time: int | None = None
    created_at: int | None = None
    removed_at: int | None = None
    slots: dict[int, Value] = field(default_factory=dict)
    num_slots: int = 0
    columns: dict[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class Declared:
    """A named column that exists even if no row has it: its name, an example of its dtype and shape, a unit of times."""

    name: str
    family: type
    dtype: str
    item_shape: tuple[int, ...] = ()
    unit: str | None = None


@dataclass
class Graph:
    """All records of an input.

    ``nodes_from``: ``records`` (nodes are declared by records, one ID space), ``ends`` (what occurs in edges),
    ``identity`` (0..n-1 per type, ``num_nodes``) or ``tables`` (records for the types in ``recorded``, 0..n-1 for those in
    ``num_nodes``, else what occurs in edges; an ID space a type). ``node_types`` and ``edge_types`` list the declared ones in order.
    ``weighted``, ``timed`` and ``dated`` say whether the columns weight, time, and created_at with removed_at exist; the first
    two may be the set of types that have them. ``roles`` are options that the input itself gives: ``labels``, and
    ``listed_splits``, for a type the three sets of IDs, as texts, that are in a part.
    """

    nodes_from: str
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    node_types: list[str] = field(default_factory=list)
    edge_types: list[tuple[str, str, str]] = field(default_factory=list)
    num_nodes: dict[str, int] = field(default_factory=dict)
    graph_name: str | None = None
    weighted: bool | set = False
    timed: bool | set = False
    dated: bool = False
    node_columns: dict[str, list[Declared]] = field(default_factory=dict)
    edge_columns: dict[tuple[str, str, str], list[Declared]] = field(default_factory=dict)
    recorded: set[str] = field(default_factory=set)
    roles: dict = field(default_factory=dict)
    num_skipped: int = 0
