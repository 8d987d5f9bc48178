"""Types of nodes, edges and columns, as metadata.json states them and as the data is found to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Literal

Role = Literal[
    "weight", "time", "created_at", "removed_at", "created", "label", "split", "seeds", "negative_src", "negative_dst"
]
Kind = Literal["dense", "ragged", "sparse", "binary", "temporal"]
RawIdKind = Literal["identity", "int64", "uint64", "string"]
NeighborOrder = Literal["input", "id", "time", "weight"]
DegreeOrder = Literal["degree", "in-degree", "out-degree", "hub-sort", "hub-cluster", "dbg"]
NodeOrder = Literal[DegreeOrder, "bfs", "rcm", "llp", "random", "score", "permutation"]
Layout = Literal["csc", "csr"]
EdgeType = tuple[str, str, str]

_ESCAPES = str.maketrans({"%": "%25", ":": "%3A"})
FLAG_ESCAPES = _ESCAPES | str.maketrans({",": "%2C", "=": "%3D"})  # in the flags for labels and splits

# Roles whose files lie beside data/, in the order in which schemas list them.
SIDE_ROLES: tuple[Role, ...] = ("weight", "time", "created_at", "removed_at")
# Roles of columns that hold typed IDs of an edge type's sources or destinations.
NEGATIVE_ROLES: tuple[Role, ...] = ("negative_src", "negative_dst")


def escape_name(name: str, escapes: Mapping[int, str] = _ESCAPES) -> str:
    """Percent-encode ``%`` and ``:`` in a name, or other signs."""
    return name.translate(escapes)


def unescape_name(text: str) -> str:
    """Read a name in which ``:`` and ``%`` are percent-encoded."""
    return text.replace("%3A", ":").replace("%3a", ":").replace("%25", "%")


def edge_type_text(edge_type: EdgeType) -> str:
    """Write a canonical edge type as ``src:rel:dst``; ``:`` and ``%`` inside names are percent-encoded."""
    return ":".join(map(methodcaller("translate", _ESCAPES), edge_type))


def parse_edge_type(text: str) -> EdgeType:
    """Read ``src:rel:dst``.

    Raises ValueError where there are not three non-empty parts.
    """
    parts = text.split(":")
    if len(parts) != 3 or not all(parts):
        raise ValueError(f"expected 'source:relation:destination', found {text!r}")
    src, rel, dst = map(unescape_name, parts)
    return src, rel, dst


_SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def path_name(name: str, *, column: bool = False) -> str:
    """Encode a type's, relation's or column's name for a path, one to one.

    Outside ``A-Za-z0-9._-`` everything is percent-encoded, also a leading dot, a trailing ``_`` and every ``_`` of a ``__``;
    in column names every dot.
    """
    out = []
    for i, char in enumerate(name):
        plain = char in _SAFE
        if char == ".":
            plain = i > 0 and not column
        elif char == "_":
            plain = i + 1 < len(name) and name[i + 1] != "_" and (i == 0 or name[i - 1] != "_")
        out.append(char if plain else "".join(f"%{byte:02X}" for byte in char.encode()))
    return "".join(out)


def edge_type_path(edge_type: EdgeType) -> str:
    """Return the folder of an edge type: ``src__rel__dst``, each part encoded."""
    return "__".join(map(path_name, edge_type))


@dataclass(frozen=True)
class ColumnSchema:
    """A stored column, as ``columns`` in metadata.json lists it.

    ``unit`` is that of dates and times (``day``, ``s``, ``ms``, ``us``, ``ns``). ``categories`` are the names of the values
    0..k-1 of a column that was text.
    """

    name: str
    kind: Kind
    dtype: str
    item_shape: tuple[int, ...] = ()
    optional: bool = False
    slot: int | None = None
    role: str | None = None
    end: bool | None = None
    unit: str | None = None
    categories: tuple[str, ...] | None = None

    @property
    def path(self) -> str:
        """Return the column's path stem inside its type's folder: ``weight`` or ``data/<name>``."""
        return self.name if self.role in SIDE_ROLES else f"data/{path_name(self.name, column=True)}"

    def to_json(self) -> dict[str, Any]:
        """Return the column as metadata.json states it."""
        value: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "item_shape": list(self.item_shape),
            "optional": self.optional,
        }
        for key in ("slot", "role", "end", "unit"):
            if getattr(self, key) is not None:
                value[key] = getattr(self, key)
        if self.categories is not None:
            value["categories"] = list(self.categories)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ColumnSchema:
        """Read what ``to_json`` wrote; the JSON Schema was checked before."""
        return cls(
            name=value["name"],
            kind=value["kind"],
            dtype=value["dtype"],
            item_shape=tuple(value["item_shape"]),
            optional=value["optional"],
            slot=value.get("slot"),
            role=value.get("role"),
            end=value.get("end"),
            unit=value.get("unit"),
            categories=None if "categories" not in value else tuple(value["categories"]),
        )


@dataclass(frozen=True)
class NodeTypeSchema:
    """What the store says of a node type. ``node_order`` is how a partition's nodes are ordered; None: by raw ID.

    ``num_hot``: how many of each partition's first nodes are hot; where that is said, ``id2index.npy`` is there.
    """

    raw_ids: RawIdKind
    columns: tuple[ColumnSchema, ...] = ()
    num_slots: bool = False
    node_order: NodeOrder | None = None
    num_hot: tuple[int, ...] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``node_schema``."""
        value: dict[str, Any] = {"raw_ids": self.raw_ids}
        if self.node_order is not None:
            value["node_order"] = self.node_order
        if self.num_hot is not None:
            value["num_hot"] = list(self.num_hot)
        if self.num_slots:
            value["num_slots"] = True
        value["columns"] = list(map(ColumnSchema.to_json, self.columns))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> NodeTypeSchema:
        """Read an entry of ``node_schema``."""
        columns = tuple(ColumnSchema.from_json(column) for column in value["columns"])
        num_hot = None if "num_hot" not in value else tuple(value["num_hot"])
        return cls(value["raw_ids"], columns, bool(value.get("num_slots", False)), value.get("node_order"), num_hot)


@dataclass(frozen=True)
class EdgeTypeSchema:
    """What the store says of an edge type. ``checksum`` is 16 hex digits (docs/store.md, "Hashes").

    ``reverse_of``: the edges are those of that edge type turned round, perhaps of itself; None: nothing is known.
    """

    neighbor_order: NeighborOrder
    index_dtype: str
    edge_id_dtype: str | None
    multigraph: bool | None
    checksum: str
    columns: tuple[ColumnSchema, ...] = ()
    num_slots: bool = False
    reverse_of: EdgeType | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``edge_schema``."""
        value: dict[str, Any] = {
            "neighbor_order": self.neighbor_order,
            "index_dtype": self.index_dtype,
            "edge_id_dtype": self.edge_id_dtype,
            "multigraph": self.multigraph,
            "checksum": self.checksum,
        }
        if self.reverse_of is not None:
            value["reverse_of"] = edge_type_text(self.reverse_of)
        if self.num_slots:
            value["num_slots"] = True
        value["columns"] = list(map(ColumnSchema.to_json, self.columns))
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EdgeTypeSchema:
        """Read an entry of ``edge_schema``."""
        return cls(
            neighbor_order=value["neighbor_order"],
            index_dtype=value["index_dtype"],
            edge_id_dtype=value["edge_id_dtype"],
            multigraph=value["multigraph"],
            checksum=value["checksum"],
            columns=tuple(ColumnSchema.from_json(column) for column in value["columns"]),
            num_slots=bool(value.get("num_slots", False)),
            reverse_of=parse_edge_type(value["reverse_of"]) if "reverse_of" in value else None,
        )
