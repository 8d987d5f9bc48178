"""Typed, homogeneous, part and local IDs, converted by arithmetic on the counts in metadata.

Four spaces, for nodes and for edges alike (an edge's typed ID is its edge row):

- typed: 0..n-1 within a type; partitions own consecutive ranges of it;
- homo: type after type, ``offset[type] + typed`` (what DGL's guide calls homogeneous);
- part: partition after partition, inside it type after type (what DGL calls shuffled, and its partition book "homo");
- local: 0..n-1 within one partition and type.

Every function takes scalars and arrays of integers. A scalar in gives Python ints out, an array int64 arrays of its shape.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.counts import TypeCounts, read_counts
from graphprep.model.errors import DataError, InvalidIdError, UnknownIdError, one_of
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import EdgeType, edge_type_text, parse_edge_type

Ids = NDArray[np.int64]
IdLike = int | np.integer[Any] | NDArray[np.integer[Any]] | Sequence[int]
NodeTypeLike = str | int
EdgeTypeLike = str | int | EdgeType


# ------------------------------------------------------------------------------------------------ checking what comes in


def as_ids(value: object, what: str = "ids") -> Ids:
    """Return IDs as int64, in their shape; what does not fit becomes -1, which no space has. ``what`` names them in messages.

    Raises InvalidIdError for what is no integer: floats, bools, texts, objects.
    """
    try:
        array = np.asarray(value)
    except ValueError:  # lists of unequal length
        raise InvalidIdError(f"{what} must be integers, found nested lists") from None
    if isinstance(value, list | tuple) and not value:
        return np.zeros(0, np.int64)
    if array.dtype == object and all(type(item) is int for item in array.flat):  # Python ints beyond 64 bits
        return np.array([item if 0 <= item < 2**63 else -1 for item in array.flat], np.int64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise InvalidIdError(f"{what} must be integers, found {array.dtype}", fix="convert them to int64 first")
    # uint64 from 2^63 on wraps to negative numbers, which are refused as well.
    return array.astype(np.int64, copy=False)


def _checked(value: object, stop: int | Ids, what: str, of: str = "") -> tuple[Ids, bool]:
    """Return the IDs as int64, and whether they came as a scalar; ``stop`` is their end, or one end for each.

    ``what`` and ``of`` name them in messages, before and after the number.

    Raises UnknownIdError for the first that is not in ``[0, stop)``.
    """
    ids = as_ids(value)
    bad = (ids < 0) | (ids >= stop)
    if np.any(bad):
        at = int(np.argmax(bad))
        found = np.broadcast_to(np.asarray(value, dtype=object), bad.shape).flat[at]
        end = int(np.broadcast_to(stop, bad.shape).flat[at])
        valid = f"valid ids are in [0, {end})" if end else "there is none"
        where = f" (position {at})" if bad.ndim else ""
        raise UnknownIdError(f"{what} {found}{of} is out of range: {valid}{where}")
    return ids, ids.ndim == 0


def _out(array: Any, is_scalar: bool) -> Any:
    return int(array) if is_scalar else np.asarray(array)


# ------------------------------------------------------------------------------------------------ types by name


@dataclass(frozen=True)
class TypeNames:
    """Names of the types of one side; their positions are the type IDs. ``word`` is what messages call them."""

    names: tuple[str, ...]
    word: str

    @classmethod
    def of_nodes(cls, names: Sequence[str]) -> TypeNames:
        """Number node types."""
        return cls(tuple(names), "node type")

    @classmethod
    def of_edges(cls, edge_types: Sequence[EdgeType]) -> TypeNames:
        """Number canonical edge types, by their text ``src:rel:dst``."""
        return cls(tuple(edge_type_text(edge_type) for edge_type in edge_types), "edge type")

    def id(self, name: str | EdgeType | int) -> int:
        """Return the ID of a type given by name (edge types: text or triple) or, checked, by ID.

        Raises UnknownIdError that names the known types.
        """
        if isinstance(name, int | np.integer) and not isinstance(name, bool):
            _checked(int(name), len(self.names), f"{self.word} id")
            return int(name)
        text = self._text(name)
        if text not in self._numbers:
            raise UnknownIdError(f"unknown {self.word} {text!r}", fix=one_of(self.names, found=text))
        return self._numbers[text]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def _text(self, name: object) -> str:
        """Return an edge type's canonical text, so that a name may come percent-encoded or not."""
        if self.word == "edge type":
            if isinstance(name, tuple | list) and len(name) == 3 and all(isinstance(part, str) for part in name):
                return edge_type_text((name[0], name[1], name[2]))
            if isinstance(name, str) and name.count(":") == 2 and all(name.split(":")):
                return edge_type_text(parse_edge_type(name))
        if not isinstance(name, str):
            raise InvalidIdError(f"expected the name of a type, found {name!r}")
        return name

    def ids(self, names: Any) -> Any:
        """Return the ID of one type, or an int64 array for a list or array of names or IDs."""
        if isinstance(names, np.ndarray) and names.dtype.kind in "iufb":
            return _out(*_checked(names, len(self.names), f"{self.word} id"))
        if not isinstance(names, list | np.ndarray):
            return self.id(names)
        return np.array([self.id(name) for name in names], np.int64)

    def of(self, type_ids: Any) -> str:
        """Return `` of type 'x'`` for messages, where there is one type."""
        return f" of type {self.names[type_ids]!r}" if isinstance(type_ids, int) else ""

    def name(self, type_id: Any) -> Any:
        """Return the name of a type ID, or a list of names for an array.

        Raises UnknownIdError for an ID out of range.
        """
        ids, is_scalar = _checked(type_id, len(self.names), f"{self.word} id")
        return self.names[int(ids)] if is_scalar else [self.names[i] for i in ids.ravel()]


# ------------------------------------------------------------------------------------------------ typed <-> homo


@dataclass(frozen=True)
class TypedSpace:
    """Typed and homogeneous IDs of one side. ``offsets`` (int64[types + 1]) is where each type begins."""

    types: TypeNames
    offsets: Ids
    word: str

    @classmethod
    def of(cls, types: TypeNames, per_type: Sequence[int], word: str) -> TypedSpace:
        """Lay the types one after another."""
        return cls(types, _offsets(per_type, word), word)

    def check(self, type_: NodeTypeLike | EdgeTypeLike, ids: IdLike) -> tuple[Ids, bool]:
        """Return typed IDs of one type as int64, and whether they came as a scalar. Raises DataError for one out of range."""
        number = self.types.id(type_)
        return _checked(ids, int(np.diff(self.offsets)[number]), f"{self.word} id", self.types.of(number))

    def has(self, type_: NodeTypeLike | EdgeTypeLike, ids: IdLike) -> NDArray[np.bool_]:
        """Return which typed IDs one type has, in the shape of ``ids``."""
        asked, number = as_ids(ids), self.types.id(type_)
        return np.asarray((asked >= 0) & (asked < self.offsets[number + 1] - self.offsets[number]))

    def to_homo(self, type_: Any, ids: IdLike) -> Any:
        """Return homogeneous IDs of typed ones; ``type_`` is one type, or an array of type IDs, one an ID."""
        type_ids = self.types.ids(type_)
        typed, is_scalar = _checked(ids, np.diff(self.offsets)[type_ids], f"{self.word} id", self.types.of(type_ids))
        return _out(self.offsets[type_ids] + typed, is_scalar and isinstance(type_ids, int))

    def from_homo(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (type IDs, typed IDs) of homogeneous IDs. An ID at a border belongs to the first type that has it."""
        homo, is_scalar = _checked(ids, int(self.offsets[-1]), f"homogeneous {self.word} id")
        # side="right" skips types without members: their offset equals the next one's.
        type_ids = np.searchsorted(self.offsets, homo, side="right") - 1
        return _out(type_ids, is_scalar), _out(homo - self.offsets[type_ids], is_scalar)


def _offsets(sizes: Sequence[int], word: str) -> Ids:
    total = sum(sizes)
    if total >= 2**63:
        raise DataError(f"{total} {word}s are more than 63 bits can number")
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(np.array(sizes, np.int64), dtype=np.int64)])


@dataclass(frozen=True)
class _GraphTypes:
    """What the classes below read from metadata."""

    nodes: TypeNames
    edges: TypeNames
    node_counts: TypeCounts
    edge_counts: TypeCounts


def _read_types(metadata: Mapping[str, Any] | GraphMetadata) -> _GraphTypes:
    """Read types and counts of a store or of a chunked graph.

    Raises DataError for missing keys and for counts that disagree. Missing edge counts are an error here, since no
    edge ID can be converted without them.
    """
    if isinstance(metadata, GraphMetadata):
        return _GraphTypes(
            TypeNames.of_nodes(metadata.node_types),
            TypeNames.of_edges(metadata.edge_types),
            TypeCounts(metadata.num_nodes_per_type, metadata.num_nodes_per_chunk, "num_nodes_per_chunk"),
            TypeCounts(metadata.num_edges_per_type, metadata.num_edges_per_chunk, "num_edges_per_chunk"),
        )
    nodes = TypeNames.of_nodes(_names(metadata, "node_type"))
    edges = TypeNames.of_edges(_edge_types(_names(metadata, "edge_type")))
    for types, key in ((nodes, "node_type"), (edges, "edge_type")):
        seen: set[str] = set()
        for i, name in enumerate(types.names):
            if name in seen:
                raise DataError(f"{name!r} is listed twice", place=f"metadata: {key}[{i}]")
            seen.add(name)
    found = (read_counts(metadata, "nodes", len(nodes.names)), read_counts(metadata, "edges", len(edges.names)))
    node_counts, edge_counts = (
        _required(counts, side, types) for counts, side, types in zip(found, ("nodes", "edges"), (nodes, edges), strict=True)
    )
    return _GraphTypes(nodes, edges, node_counts, edge_counts)


def _required(counts: TypeCounts | None, side: str, types: TypeNames) -> TypeCounts:
    if counts is not None:
        return counts
    if not types.names:
        return TypeCounts((), (), f"num_{side}_per_chunk")
    raise DataError(f"neither num_{side}_per_type nor num_{side}_per_chunk is there", place="metadata")


def _names(metadata: Mapping[str, Any], key: str) -> list[str]:
    if key not in metadata:
        raise DataError(f"key {key!r} is missing", place="metadata")
    value = metadata[key]
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) and name for name in value):
        raise DataError("expected a list of names", place=f"metadata: {key}")
    return list(value)


def _edge_types(texts: Sequence[str]) -> list[EdgeType]:
    out = []
    for i, text in enumerate(texts):
        try:
            out.append(parse_edge_type(text))
        except ValueError as error:
            raise DataError(str(error), place=f"metadata: edge_type[{i}]") from None
    return out


class IDConverter:
    """Converts between typed and homogeneous IDs, of nodes and of edges.

    ``metadata`` is the value of a chunked graph's or a store's metadata.json, or a ``GraphMetadata``; both spellings of
    the counts are read. Types are given by name (edge types: ``src:rel:dst`` or a triple), by ID, or, together with an
    array of IDs, as an array of type IDs. Source: the chunked format of DGL's guide, whose converter these names are from.
    """

    def __init__(self, metadata: Mapping[str, Any] | GraphMetadata) -> None:
        types = _read_types(metadata)
        self.nodes = TypedSpace.of(types.nodes, types.node_counts.per_type, "node")
        self.edges = TypedSpace.of(types.edges, types.edge_counts.per_type, "edge")

    @property
    def node_type(self) -> list[str]:
        """Return the node types, by their IDs."""
        return list(self.nodes.types.names)

    @property
    def edge_type(self) -> list[str]:
        """Return the edge types, ``src:rel:dst``, by their IDs."""
        return list(self.edges.types.names)

    @property
    def ntype2id_map(self) -> dict[str, int]:
        """Return the ID of each node type."""
        return {name: number for number, name in enumerate(self.nodes.types.names)}

    @property
    def etype2id_map(self) -> dict[str, int]:
        """Return the ID of each edge type."""
        return {name: number for number, name in enumerate(self.edges.types.names)}

    @property
    def nid_offset(self) -> Ids:
        """Return where each node type begins among homogeneous IDs, and their number: int64[types + 1]."""
        return self.nodes.offsets.copy()

    @property
    def eid_offset(self) -> Ids:
        """Return where each edge type begins among homogeneous IDs, and their number: int64[types + 1]."""
        return self.edges.offsets.copy()

    @property
    def num_nodes(self) -> list[int]:
        """Return the number of nodes of each type, by its ID."""
        return list(map(int, np.diff(self.nodes.offsets)))

    @property
    def num_edges(self) -> list[int]:
        """Return the number of edges of each type, by its ID."""
        return list(map(int, np.diff(self.edges.offsets)))

    def ntype2id(self, ntype: Any) -> Any:
        """Return the ID of a node type; an int64 array for several."""
        return self.nodes.types.ids(ntype)

    def id2ntype(self, type_id: Any) -> Any:
        """Return the node type of an ID; a list for several."""
        return self.nodes.types.name(type_id)

    def etype2id(self, etype: Any) -> Any:
        """Return the ID of a canonical edge type; an int64 array for several."""
        return self.edges.types.ids(etype)

    def id2etype(self, type_id: Any) -> Any:
        """Return the edge type of an ID, as ``src:rel:dst``; a list for several."""
        return self.edges.types.name(type_id)

    def nid_het2hom(self, ntype: Any, ids: IdLike) -> Any:
        """Return homogeneous node IDs of typed ones."""
        return self.nodes.to_homo(ntype, ids)

    def nid_hom2het(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (node type, typed ID) of a homogeneous node ID; for arrays (type IDs, typed IDs)."""
        return self._named(self.nodes, ids)

    def eid_het2hom(self, etype: Any, ids: IdLike) -> Any:
        """Return homogeneous edge IDs of typed ones."""
        return self.edges.to_homo(etype, ids)

    def eid_hom2het(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (edge type as ``src:rel:dst``, typed ID) of a homogeneous edge ID; for arrays (type IDs, typed IDs)."""
        return self._named(self.edges, ids)

    def _named(self, space: TypedSpace, ids: IdLike) -> tuple[Any, Any]:
        type_ids, typed = space.from_homo(ids)
        return (space.types.names[type_ids], typed) if isinstance(type_ids, int) else (type_ids, typed)


# ------------------------------------------------------------------------------------------------ typed <-> part <-> local


@dataclass(frozen=True)
class PartSpace:
    """Typed, part and local IDs of one side of a partitioned graph.

    ``typed_starts`` (int64[types, parts + 1]): where each partition begins within its type. ``part_starts``
    (int64[parts * types + 1], partition after partition, inside it type after type): the same in the part ID space.
    """

    types: TypeNames
    typed_starts: Ids
    part_starts: Ids
    word: str

    @classmethod
    def of(cls, types: TypeNames, per_chunk: Sequence[Sequence[int]], num_parts: int, word: str) -> PartSpace:
        """Lay out counts of [types][parts]."""
        sizes = np.array(per_chunk, np.int64).reshape(len(types.names), num_parts)
        typed_starts = np.zeros((len(types.names), num_parts + 1), np.int64)
        np.cumsum(sizes, axis=1, out=typed_starts[:, 1:])
        return cls(types, typed_starts, _offsets(sizes.T.ravel().tolist(), word), word)

    @property
    def num_parts(self) -> int:
        """Return the number of partitions."""
        return int(self.typed_starts.shape[1]) - 1

    def typed_range(self, part: int, type_: Any) -> tuple[int, int]:
        """Return [start, stop) of a partition's typed IDs."""
        type_id, part = self.types.id(type_), self._part(part)
        return int(self.typed_starts[type_id, part]), int(self.typed_starts[type_id, part + 1])

    def part_range(self, part: int, type_: Any) -> tuple[int, int]:
        """Return [start, stop) of a partition's part IDs of one type: an entry of DGL's ``node_map`` and ``edge_map``."""
        cell = self._part(part) * len(self.types.names) + self.types.id(type_)
        return int(self.part_starts[cell]), int(self.part_starts[cell + 1])

    def partition_of(self, type_: Any, ids: IdLike) -> Any:
        """Return the partitions of typed IDs."""
        return self.to_local(type_, ids)[0]

    def partition_of_part(self, ids: IdLike) -> Any:
        """Return the partitions of part IDs."""
        part_ids, is_scalar = _checked(ids, int(self.part_starts[-1]), f"part {self.word} id")
        return _out(self._cell(part_ids) // max(1, len(self.types.names)), is_scalar)

    def to_local(self, type_: Any, ids: IdLike) -> tuple[Any, Any]:
        """Return (partitions, local IDs) of typed IDs; ``type_`` is one type, or an array of type IDs, one an ID."""
        type_ids = self.types.ids(type_)
        parts, typed, is_scalar = self._parts(type_ids, ids)
        return _out(parts, is_scalar), _out(typed - self.typed_starts[type_ids, parts], is_scalar)

    def from_local(self, type_: Any, parts: IdLike, ids: IdLike) -> Any:
        """Return typed IDs of (partition, local ID) pairs; one partition for all IDs, or one for each."""
        type_ids = self.types.ids(type_)
        checked_parts, one_part = _checked(parts, self.num_parts, "partition")
        sizes = np.diff(self.typed_starts, axis=1)[type_ids, checked_parts]
        local, one_id = _checked(ids, sizes, f"local {self.word} id", self.types.of(type_ids))
        is_scalar = one_part and one_id and isinstance(type_ids, int)
        return _out(self.typed_starts[type_ids, checked_parts] + local, is_scalar)

    def to_part(self, type_: Any, ids: IdLike) -> Any:
        """Return part IDs of typed IDs."""
        type_ids = self.types.ids(type_)
        parts, typed, is_scalar = self._parts(type_ids, ids)
        cells = parts * len(self.types.names) + type_ids
        return _out(self.part_starts[cells] + typed - self.typed_starts[type_ids, parts], is_scalar)

    def from_part(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (type IDs, typed IDs) of part IDs."""
        part_ids, is_scalar = _checked(ids, int(self.part_starts[-1]), f"part {self.word} id")
        cells = self._cell(part_ids)
        parts, type_ids = np.divmod(cells, max(1, len(self.types.names)))
        typed = part_ids - self.part_starts[cells] + self.typed_starts[type_ids, parts]
        return _out(type_ids, is_scalar), _out(typed, is_scalar)

    def _part(self, part: int) -> int:
        checked, _ = _checked(part, self.num_parts, "partition")
        return int(checked)

    def _cell(self, part_ids: Ids) -> Any:
        # side="right" skips empty ranges, which repeat the next one's start.
        return np.searchsorted(self.part_starts, part_ids, side="right") - 1

    def _parts(self, type_ids: Any, ids: IdLike) -> tuple[Any, Ids, bool]:
        """Return (partitions, checked typed IDs, whether both came as scalars)."""
        one_type = isinstance(type_ids, int)
        typed, is_scalar = _checked(ids, self.typed_starts[type_ids, -1], f"{self.word} id", self.types.of(type_ids))
        if one_type:
            parts = np.searchsorted(self.typed_starts[type_ids, 1:], typed, side="right")
            return parts, typed, is_scalar
        types, typed = np.broadcast_arrays(type_ids, typed)
        parts = np.zeros(typed.shape, np.int64)
        for type_id in np.unique(types).tolist():
            mine = types == type_id
            parts[mine] = np.searchsorted(self.typed_starts[type_id, 1:], typed[mine], side="right")
        return parts, typed, False


class PartitionBook:
    """Converts between typed, part and local IDs of a store: typed ↔ part ↔ (partition, local), nodes and edges.

    ``metadata`` is a store's metadata.json or a ``GraphMetadata`` (or a chunked graph's with one chunk a partition, the
    same number for all types). Typed edge IDs are edge rows. The four names ``map_to_*``, their arguments and the order
    of their results are those of DGL's partition book, where "homo" means the part ID space.
    """

    def __init__(self, metadata: Mapping[str, Any] | GraphMetadata) -> None:
        types = _read_types(metadata)
        self.num_parts = _num_parts(metadata, types)
        self.nodes = _part_space(types.nodes, types.node_counts, self.num_parts, "node")
        self.edges = _part_space(types.edges, types.edge_counts, self.num_parts, "edge")

    def map_to_per_ntype(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (node type IDs, typed IDs) of part IDs of nodes."""
        return self.nodes.from_part(ids)

    def map_to_per_etype(self, ids: IdLike) -> tuple[Any, Any]:
        """Return (edge type IDs, typed IDs) of part IDs of edges."""
        return self.edges.from_part(ids)

    def map_to_homo_nid(self, ids: IdLike, ntype: Any) -> Any:
        """Return part IDs of typed node IDs."""
        return self.nodes.to_part(ntype, ids)

    def map_to_homo_eid(self, ids: IdLike, etype: Any) -> Any:
        """Return part IDs of edge rows."""
        return self.edges.to_part(etype, ids)

    def node_range(self, part: int, ntype: Any) -> tuple[int, int]:
        """Return [start, stop) of the typed node IDs that a partition owns."""
        return self.nodes.typed_range(part, ntype)

    def edge_range(self, part: int, etype: Any) -> tuple[int, int]:
        """Return [start, stop) of the edge rows that a partition owns."""
        return self.edges.typed_range(part, etype)


def _num_parts(metadata: Mapping[str, Any] | GraphMetadata, types: _GraphTypes) -> int:
    """Return the number of partitions: what the metadata says, else the common number of chunks."""
    if isinstance(metadata, GraphMetadata):
        return metadata.num_parts
    stated = metadata.get("num_parts")
    if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
        return stated
    if stated is not None:
        raise DataError(f"expected an integer >= 1, found {stated!r}", place="metadata: num_parts")
    lists = (*(types.node_counts.per_chunk or ()), *(types.edge_counts.per_chunk or ()))
    return max((len(chunk) for chunk in lists), default=1)


def _part_space(types: TypeNames, counts: TypeCounts, num_parts: int, word: str) -> PartSpace:
    if counts.per_chunk is None:
        raise DataError(
            f"num_{word}s_per_chunk is missing: a partition book needs the counts of every partition", place="metadata"
        )
    for i, chunk in enumerate(counts.per_chunk):
        if len(chunk) != num_parts:
            message = f"expected one count for each of {num_parts} partitions, found {len(chunk)}"
            raise DataError(message, place=f"metadata: {counts.key}[{i}]")
    return PartSpace.of(types, counts.per_chunk, num_parts, word)
