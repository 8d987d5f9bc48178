"""DeepGNN's JSON: one object a line, a node with its edges."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.row_numbers import ranges
from graphprep.decoders.deepgnn import json_faults
from graphprep.decoders.deepgnn.plain import PlainFormat, PlainRows, decode_plainly
from graphprep.decoders.deepgnn.slots import FixedColumns, check_weight, code_types, side_chunk
from graphprep.decoders.looks.formats import RECORD_ARRAY, RECORD_OVER_LINES
from graphprep.kernels.cpu.deepgnn import json_keys as keys
from graphprep.kernels.cpu.deepgnn import json_records as records
from graphprep.kernels.cpu.deepgnn import json_values as values
from graphprep.kernels.cpu.deepgnn import plain_json as plain
from graphprep.kernels.cpu.deepgnn.json_tape import Tape, positions, tokenize
from graphprep.kernels.cpu.deepgnn.plain_rows import Room
from graphprep.kernels.cpu.deepgnn.slots import FLOAT_LIMITS
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows
from graphprep.model.schema import Role
from graphprep.storage.faults import display_url

Ints = NDArray[np.int64]
_Unread = tuple[Ints, int]  # the faults of a column as ``json_values`` tells them, and the number of the field or group

_HEAD_BYTES = 1 << 12  # that tell how the records are written
_DIFFER = "'edge' and 'neighbor' of a record differ; 'edge' is used"


@dataclass(frozen=True)
class JsonDecoder:
    """Decodes lines of ``{"node_id": …, "node_type": …, "node_weight": …, "edge": […], "float_feature": {…}, …}``.

    ``strict`` makes an error of records whose ``edge`` and ``neighbor`` differ. ``default_node_weight`` (None: 0) is the weight
    of nodes that have no record. Edges keep the order in which they are written. Source: DeepGNN, ``JsonDecoder``;
    docs/formats/json.md lists where we differ.
    """

    strict: bool = False
    weight_dtype: Literal["float32", "float64"] = "float32"
    default_node_weight: float | None = None

    name: ClassVar[str] = "json"

    def __post_init__(self) -> None:
        check_weight("--default-node-weight", self.default_node_weight, self.weight_dtype)

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Take every file as lines of records.

        Raises DataError for one that is written as a single document, or in which a record goes over several lines.
        """
        for url in urls:
            _refuse_documents(display_url(url), storage.head(url, _HEAD_BYTES))
        spans, weight = tuple(Span(url) for url in urls), float(self.default_node_weight or 0.0)
        return Sources(spans, nodes="records", always_weighted=True, created_weight=weight)

    def widen(self, columns: Mapping[str, str]) -> JsonDecoder:
        """Return the decoder as it is: the groups name the dtypes."""
        return self

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines, blank ones left out.

        Raises DecodeError for the first faulty record, at the value or key to blame.
        """
        if places:
            return self._decode_any(block.data, places)
        form = PlainFormat(
            scan=self._scan, build=self._build, walk=self._decode_any, node_bytes=64, edge_bytes=12, value_bytes=8
        )
        return decode_plainly(block.data, form)

    def _scan(self, buf: NDArray[np.uint8], last: int, room: Room, progress: Ints) -> int:
        """Scan plain records."""
        neighbors = _scratch.take(room.edge_src.size)
        return plain.scan(buf, last, FLOAT_LIMITS[self.weight_dtype], room, neighbors, progress)

    def _build(self, found: PlainRows) -> RawRows:
        """Copy what was scanned."""
        return RawRows(*found.owners(self.weight_dtype), num_records=found.num_nodes)

    def _decode_any(self, data: bytes, places: bool = False) -> RawRows:
        """Decode lines however they are written."""
        data = data if data.endswith(b"\n") else data + b"\n"
        tokens = tokenize(data)
        found, bad = records.find_records(tokens, FLOAT_LIMITS[self.weight_dtype])
        reading = _Reading(data, tokens.tape, found)
        faults = [json_faults.fault(data, code, at) for code, at in tokens.faults.tolist()]
        faults += [reading.fault(*fault) for _, *fault in bad.tolist()]
        node_features, edge_features, unread = reading.features()
        faults += [reading.fault(*fault) for _, fault in reading.first_of_records(unread, tokens.roots)[:1]]
        differing = reading.differing_records()
        if self.strict and differing.size:
            faults.append(reading.neighbor_fault(int(differing[0])))
        if faults:
            raise min(faults, key=lambda fault: _line_start(data, fault.at))
        warnings = reading.unknown_keys()
        if differing.size:
            warnings[_DIFFER] = int(differing.size)
        return RawRows(
            nodes=reading.nodes(self.weight_dtype, node_features, places),
            edges=reading.edges(self.weight_dtype, edge_features, places),
            num_records=int(tokens.roots.size),
            warnings=warnings,
        )

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty record on its own, in input order."""
        data = block.data if block.data.endswith(b"\n") else block.data + b"\n"
        tokens = tokenize(data, every=True)
        malformed = [json_faults.fault(data, code, at) for code, at in tokens.faults.tolist()]
        limit = FLOAT_LIMITS[self.weight_dtype]
        found, bad = records.find_records(tokens, limit, every=True)
        reading = _Reading(data, tokens.tape, found)
        faulty = [reading.fault(*fault) for _, *fault in bad.tolist()]
        roots = np.delete(tokens.roots, bad[:, 0])
        reading = _Reading(data, tokens.tape, records.find_records(tokens._replace(roots=roots), limit)[0])
        unread = reading.first_of_records(reading.features()[2], roots)
        later = {record: reading.fault(*fault) for record, fault in unread}
        if self.strict:
            for record in reading.differing_records().tolist():
                later.setdefault(record, reading.neighbor_fault(record))
        return sorted([*malformed, *faulty, *later.values()], key=lambda fault: fault.at)


def _refuse_documents(url: str, head: bytes) -> None:
    """Raise DataError for an array of records, and for a record that goes over several lines."""
    for pattern, problem, query in (
        (RECORD_ARRAY, "the records stand in one array", "'.[]'"),
        (RECORD_OVER_LINES, "a record goes over several lines", "."),
    ):
        found = pattern.match(head)
        if found is not None:
            line = head.count(b"\n", 0, found.end()) + 1
            raise DataError(
                problem,
                place=f"{url}:{line}:1",
                fix=f"write one record a line; jq -c {query} FILE does, where the JSON is valid",
            )


def _line_start(data: bytes, at: int) -> int:
    return data.rfind(b"\n", 0, at) + 1


class _Scratch(threading.local):
    """What scans of a thread note on the way."""

    def __init__(self) -> None:
        self.neighbors = plain.make_neighbors(0)

    def take(self, num_edges: int) -> plain.Neighbors:
        """Return room for as many neighbours as there are edges."""
        if self.neighbors.dst.size != num_edges:
            self.neighbors = plain.make_neighbors(num_edges)
        return self.neighbors


_scratch = _Scratch()


@dataclass(frozen=True)
class _Reading:
    """One block while it is read: its bytes, their tape, and what was found there."""

    data: bytes
    tape: Tape
    found: records.Found

    def fault(self, code: int, token: int, name: int) -> DecodeError:
        """Word a fault at a token."""
        at = int(positions(self.tape, np.array([token]))[0])
        return json_faults.fault(self.data, code, at, name)

    # ------------------------------------------------------------------------------------------------ rows

    def nodes(self, weight_dtype: str, features: list[ColumnChunk], places: bool) -> RawNodes:
        """Make the nodes out of what was found."""
        rows = self.found.nodes
        made = _fixed(rows, weight_dtype).nodes(rows[:, records.ID].view(np.uint64), features)
        return replace(made, at=positions(self.tape, rows[:, records.ID_TOKEN])) if places else made

    def edges(self, weight_dtype: str, features: list[ColumnChunk], places: bool) -> RawEdges:
        """Make the edges out of what was found."""
        rows = self.found.edges[: self.found.sizes[records.NUM_EDGES]]
        src, dst = (rows[:, column].view(np.uint64) for column in (records.SRC, records.DST))
        made = _fixed(rows, weight_dtype).edges(src, dst, features)
        if not places:
            return made
        at_src, at_dst = (positions(self.tape, rows[:, token]) for token in (records.SRC_TOKEN, records.DST_TOKEN))
        return replace(made, at_src=at_src, at_dst=at_dst, record=rows[:, records.RECORD].copy())

    # ------------------------------------------------------------------------------------------------ warnings

    def unknown_keys(self) -> dict[str, int]:
        """Count the keys that are ignored, as messages."""
        unknown = self.found.unknown[: self.found.sizes[records.NUM_UNKNOWN]]
        if not unknown.size:
            return {}
        firsts, counts = keys.tally_texts(self.tape, unknown)
        starts, stops = positions(self.tape, firsts).tolist(), self.tape.extra[firsts].tolist()
        names = [json.loads(self.data[start : stop + 1]) for start, stop in zip(starts, stops, strict=True)]
        return {f"unknown key {name!r} ignored": count for name, count in zip(names, counts.tolist(), strict=True)}

    def differing_records(self) -> Ints:
        """Return the records whose ``neighbor`` does not hold the edges of ``edge``, in any order."""
        sizes = self.found.sizes
        nodes = self.found.nodes[: sizes[records.NUM_NODES]]
        both = np.flatnonzero((nodes[:, records.EDGE_TOKEN] >= 0) & (nodes[:, records.NEIGHBOR_TOKEN] >= 0))
        if not both.size:
            return both
        edges = self.found.edges[: sizes[records.NUM_EDGES]]
        edges = edges[np.isin(edges[:, records.RECORD], both)]
        ours = _sorted_edges(edges[:, (records.RECORD, records.SRC, records.DST, records.TYPE, records.WEIGHT)])
        others = self.found.neighbors[: sizes[records.NUM_NEIGHBORS]]
        owner = others[:, records.NEIGHBOR_RECORD]
        parts = (records.NEIGHBOR_DST, records.NEIGHBOR_TYPE, records.NEIGHBOR_WEIGHT)
        other = _sorted_edges(np.column_stack((owner, nodes[owner, records.ID], others[:, parts])))
        return both[_segments_differ(ours, other, both)]

    def neighbor_fault(self, record: int) -> DecodeError:
        """Word the fault of a record whose ``neighbor`` differs, under ``strict``."""
        at = int(positions(self.tape, self.found.nodes[record, records.NEIGHBOR_TOKEN :][:1])[0])
        return DecodeError(json_faults.STRICT_NEIGHBORS, at=at, fix="drop 'neighbor', or convert without --strict")

    # ------------------------------------------------------------------------------------------------ features

    def features(self) -> tuple[list[ColumnChunk], list[ColumnChunk], list[_Unread]]:
        """Read all features, a column at a time: those of nodes, those of edges, and the faults of each column."""
        chunks: tuple[list[ColumnChunk], list[ColumnChunk]] = ([], [])
        faults: list[_Unread] = []
        for on_edge, family, column in self._columns():
            chunks[on_edge].append(column.read(family, faults))
        return *chunks, faults

    def first_of_records(self, faults: Sequence[_Unread], roots: Ints) -> list[tuple[int, tuple[int, int, int]]]:
        """Return the first fault of every record that has one, by the number of the record: code, token and name."""
        first: dict[int, tuple[int, int, int]] = {}
        for bad, name in faults:
            owners = np.searchsorted(roots, bad[:, 2], side="right") - 1
            for record, (_, code, token) in zip(owners.tolist(), bad.tolist(), strict=True):
                first.setdefault(record, (code, token, name))
        return sorted(first.items())

    def _columns(self) -> Iterator[tuple[int, int, _Column]]:
        """Yield the columns in their order: whether it is one of edges, its family, and where it stands."""
        rows = self.found.features[: self.found.sizes[records.NUM_FEATURES]]
        if not rows.shape[0]:
            return
        identity, shapes = self._identities(rows)
        labels, firsts = values.label_columns(identity)
        indptr, order = group_by_key(labels, firsts.size)
        for label in np.lexsort(identity[firsts].T[::-1]):
            on_edge, slot, family, _, extent = identity[firsts[label]].tolist()
            column = rows[order[indptr[label] : indptr[label + 1]]]
            yield on_edge, family, _Column(self, slot, column, extent, shapes.get(extent))

    def _identities(self, rows: Ints) -> tuple[Ints, dict[int, tuple[int, ...]]]:
        """Say for each feature which column it belongs to: owner, slot, family, dtype, and width or shape.

        Nested numbers get a column for each shape, so that what a type's rows have in common does not depend on the others.
        Their number stands where sparse ones have their width; the shapes are returned by it.
        """
        dtypes = np.array(
            [_DTYPE_NUMBERS[json_faults.group_dtype(name)] for name in range(keys.DENSE_GROUP, keys.BINARY_GROUP + 1)]
        )
        extents = rows[:, records.EXTENT].copy()
        numbers = rows[:, records.FAMILY] == records.NUMBERS
        nested = np.flatnonzero(numbers & (extents > 1))
        extents[numbers] = 0
        shapes: dict[int, tuple[int, ...]] = {}
        if nested.size:
            depths, starts = rows[nested, records.EXTENT], rows[nested, records.SECOND]
            padded = np.full((nested.size, int(depths.max())), -1, np.int64)
            for depth in range(padded.shape[1]):
                deep = depths > depth
                padded[deep, depth] = self.found.dimensions[starts[deep] + depth]
            distinct, inverse = np.unique(padded, axis=0, return_inverse=True)
            extents[nested] = inverse.ravel() + 1
            shapes = {i + 1: tuple(n for n in shape if n >= 0) for i, shape in enumerate(distinct.tolist())}
        dtype = dtypes[rows[:, records.GROUP] - keys.DENSE_GROUP]
        parts = (rows[:, records.ON_EDGE], rows[:, records.SLOT], rows[:, records.FAMILY], dtype, extents)
        return np.stack(parts, axis=1), shapes


_DTYPE_NUMBERS = {dtype: i for i, dtype in enumerate(sorted({dtype for _, dtype in keys.GROUP_DTYPES}))}


@dataclass(frozen=True)
class _Column:
    """One column: its slot and its rows of ``Found.features``, with the width of its coordinates or its nested shape."""

    reading: _Reading
    slot: int
    rows: Ints
    extent: int
    shape: tuple[int, ...] | None

    def read(self, family: int, faults: list[_Unread]) -> ColumnChunk:
        """Read the values; faults are added to ``faults``, and the chunk then is not to be used."""
        if family == records.NUMBERS:
            return self._numbers(faults)
        if family == records.SPARSE:
            return self._sparse(faults)
        if family == records.BINARY:
            sizes, data = self._texts(self.rows[:, records.TOKEN].copy(), faults)
            return ColumnChunk(self._key("binary"), self._owners(), sizes, data)
        return self._temporal(family == records.DATED_BINARY, faults)

    def _key(self, family: Literal["numbers", "sparse", "binary", "temporal"], width: int = 0) -> ColumnKey:
        dtype = json_faults.group_dtype(int(self.rows[0, records.GROUP]))
        return ColumnKey(f"feat_{self.slot}", family, dtype, slot=self.slot, width=width)

    def _owners(self) -> Ints:
        return self.rows[:, records.ROW].copy()

    def _numbers(self, faults: list[_Unread]) -> ColumnChunk:
        counts = self.rows[:, records.COUNT].copy()
        numbers = self._values(self.rows[:, records.TOKEN].copy(), int(counts.sum()), faults)
        shape = self.shape
        if shape is None and (counts == counts[0]).all():
            shape = (int(counts[0]),)
        return ColumnChunk(self._key("numbers"), self._owners(), counts, numbers, item_shape=shape)

    def _sparse(self, faults: list[_Unread]) -> ColumnChunk:
        counts = self.rows[:, records.COUNT].copy()
        size = int(counts.sum())
        places = self.rows[:, records.SECOND].copy()
        coords, bad = values.read_numbers(self.reading.tape, places, size * max(self.extent, 1), "int64")
        faults.append((bad, keys.KEY_COORDINATES))
        numbers = self._values(self.rows[:, records.TOKEN].copy(), size, faults)
        return ColumnChunk(self._key("sparse", self.extent), self._owners(), counts, numbers, coords=coords)

    def _temporal(self, is_binary: bool, faults: list[_Unread]) -> ColumnChunk:
        dated = self.reading.found.dated
        entry_counts = self.rows[:, records.COUNT].copy()
        entries = ranges(self.rows[:, records.TOKEN], entry_counts)
        tokens = dated[entries, records.DATED_TOKEN]
        data: NDArray[np.generic]
        if is_binary:
            counts, data = self._texts(tokens, faults)
        else:
            counts = dated[entries, records.DATED_COUNT]
            data = self._values(tokens, int(counts.sum()), faults)
        return ColumnChunk(
            self._key("temporal"),
            self._owners(),
            counts,
            data,
            entry_counts=entry_counts,
            start=dated[entries, records.START],
            end=dated[entries, records.END],
        )

    def _values(self, tokens: Ints, size: int, faults: list[_Unread]) -> NDArray[np.generic]:
        group = int(self.rows[0, records.GROUP])
        numbers, bad = values.read_numbers(self.reading.tape, tokens, size, json_faults.group_dtype(group))
        faults.append((bad, group))
        return numbers

    def _texts(self, tokens: Ints, faults: list[_Unread]) -> tuple[Ints, NDArray[np.uint8]]:
        sizes, data, bad = values.read_texts(self.reading.tape, tokens)
        faults.append((bad, keys.BINARY_GROUP))
        return sizes, data


def _fixed(rows: Ints, weight_dtype: str) -> FixedColumns:
    types, num_slots = (rows[:, column].astype(np.int32) for column in (records.TYPE, records.SLOTS))
    return FixedColumns(code_types(types), _side_chunks(rows, weight_dtype), num_slots)


def _side_chunks(rows: Ints, weight_dtype: str) -> list[ColumnChunk]:
    """Make the chunks of weight, created_at and removed_at; a time that no row states has none."""
    weights = rows[:, records.WEIGHT].copy().view(np.float64)
    chunks = [side_chunk("weight", weight_dtype, weights.astype(weight_dtype))]
    times: tuple[tuple[Role, int, int], ...] = (("created_at", records.CREATED, 1), ("removed_at", records.REMOVED, 2))
    for role, column, bit in times:
        owners = np.flatnonzero(rows[:, records.STATED] & bit)
        if owners.size:
            key = ColumnKey(role, "numbers", "int64", role=role)
            chunks.append(ColumnChunk(key, owners, np.ones(owners.size, np.int64), rows[owners, column], item_shape=()))
    return chunks


def _sorted_edges(edges: Ints) -> Ints:
    """Sort edges (record, src, dst, type, bits of the weight) by record, and inside it by all that they say."""
    edges[:, 4] = (edges[:, 4].copy().view(np.float64) + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    return edges[np.lexsort(edges.T[::-1])]


def _segments_differ(ours: Ints, other: Ints, owners: Ints) -> NDArray[np.bool_]:
    """Say for each owner whether its sorted edges differ."""
    bounds = [
        (np.searchsorted(edges[:, 0], owners), np.searchsorted(edges[:, 0], owners, side="right")) for edges in (ours, other)
    ]
    counts = [stop - start for start, stop in bounds]
    differ: NDArray[np.bool_] = counts[0] != counts[1]
    same = np.flatnonzero(~differ & (counts[0] > 0))
    if same.size:
        left, right = (ranges(start[same], counts[0][same]) for start, _ in bounds)
        unequal = (ours[left] != other[right]).any(axis=1)
        firsts = np.cumsum(counts[0][same]) - counts[0][same]
        differ[same] = np.logical_or.reduceat(unequal, firsts)
    return differ
