"""Decoders written for DeepGNN, as decoders of ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DecodeError
from graphprep.model.protocols import Decoder, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows, Relation
from graphprep.model.schema import Role

_MAX_ID = 2**64 - 1
_MAX_TYPE = 2**31 - 1
_LIMITS: dict[str, float] = {"float32": (2.0 - 2.0**-24) * 2.0**127, "float64": np.inf}  # from here on, a weight is infinite
_KINDS = "biufc"  # NumPy's kinds that a column can have: bool, int, uint, float, complex


class LineDecoder(Protocol):
    """What DeepGNN calls a decoder: a line in, nodes (destination -1) and edges out."""

    def decode(self, line: str) -> Iterator[tuple[Any, ...]]:
        """Yield (src, dst, type, weight, created_at, removed_at, features); features stand by slot."""


@dataclass(frozen=True)
class LineDecoderAdapter:
    """Runs a decoder class written for DeepGNN.

    It gets every line that is not blank, without its line end, and yields
    (src, dst, type, weight, created_at, removed_at, features). ``features`` is a list by slot of None, a NumPy array, a pair
    (coordinates, values) or a text. Times may be None. What it raises becomes an error at its line. One line at a time in
    Python: right for anything small, slow for the rest.
    """

    decoder: LineDecoder
    weight_dtype: str = "float32"

    name: ClassVar[str] = "adapter"

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Take every file as lines."""
        cls = type(self.decoder)
        message = f"{cls.__module__}:{cls.__qualname__} is written for DeepGNN: it runs through an adapter, a line at a time"
        return Sources(tuple(Span(url) for url in urls), nodes="records", always_weighted=True, messages=(message,))

    def widen(self, columns: Mapping[str, str]) -> Decoder:
        """Return the decoder as it is."""
        return self  # type: ignore[return-value]

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines, blank ones left out.

        Raises DecodeError at the first line that the decoder refuses, or for which it yields what cannot be stored.
        """
        rows = _Rows(weight_limit=_LIMITS[self.weight_dtype])
        at = num_records = 0
        for line in block.data.split(b"\n"):
            if line.strip(b" \t\r"):
                rows.at = at
                rows.add(self._decode_line(line.removesuffix(b"\r"), at))
                num_records += 1
            at += len(line) + 1
        return RawRows(rows.nodes.to_nodes(self.weight_dtype, places), rows.edges.to_edges(self.weight_dtype, places),
                       num_records=num_records)  # fmt: skip

    def _decode_line(self, line: bytes, at: int) -> list[tuple[Any, ...]]:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise DecodeError(
                f"invalid UTF-8 byte 0x{line[error.start]:02x}", at=at + error.start, fix="write the file in UTF-8"
            ) from None
        try:
            # No record of DeepGNN's is endless; an adapter that runs for ever is not for us to stop.
            return list(self.decoder.decode(text))
        except Exception as error:
            cls = type(self.decoder).__qualname__
            raise DecodeError(
                f"{cls} failed: {type(error).__name__}: {error}", at=at, fix="correct the line or the decoder"
            ) from error


@dataclass
class _Owners:
    """Nodes or edges, and their features by column, while lines are read."""

    ends: tuple[list[int], list[int]] = field(default_factory=lambda: ([], []))
    types: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    times: tuple[list[int | None], list[int | None]] = field(default_factory=lambda: ([], []))
    num_slots: list[int] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    record: list[int] = field(default_factory=list)
    features: dict[tuple[ColumnKey, tuple[int, ...] | None], list[tuple[int, Any, Any]]] = field(default_factory=dict)

    def to_nodes(self, weight_dtype: str, places: bool) -> RawNodes:
        """Make rows of nodes."""
        codes, names = self._codes()
        at = np.array(self.at, np.int64) if places else None
        return RawNodes(_ids(self.ends[0]), codes, names, self._columns(weight_dtype), np.array(self.num_slots, np.int32), at)

    def to_edges(self, weight_dtype: str, places: bool) -> RawEdges:
        """Make rows of edges."""
        codes, names = self._codes()
        return RawEdges(
            src=_ids(self.ends[0]),
            dst=_ids(self.ends[1]),
            relations=codes,
            relation_names=tuple(Relation(name) for name in names),
            columns=self._columns(weight_dtype),
            num_slots=np.array(self.num_slots, np.int32),
            at_src=np.array(self.at, np.int64) if places else None,
            at_dst=np.array(self.at, np.int64) if places else None,
            record=np.array(self.record, np.int64) if places else None,
        )

    def _codes(self) -> tuple[NDArray[np.int32], tuple[str, ...]]:
        numbers, codes = np.unique(np.array(self.types, np.int32), return_inverse=True)
        return codes.astype(np.int32), tuple(str(number) for number in numbers)

    def _columns(self, weight_dtype: str) -> tuple[ColumnChunk, ...]:
        chunks = [_side_chunk("weight", weight_dtype, list(self.weights))]
        roles: tuple[Role, Role] = ("created_at", "removed_at")
        chunks += [_side_chunk(role, "int64", self.times[i]) for i, role in enumerate(roles)]
        chunks += [_feature_chunk(key, shape, cells) for (key, shape), cells in self.features.items()]
        return tuple(chunk for chunk in chunks if chunk.rows.size or chunk.key.role == "weight")


def _ids(values: list[int]) -> NDArray[np.uint64]:
    return np.array(values, np.uint64)


def _side_chunk(role: Role, dtype: str, values: Sequence[float | None]) -> ColumnChunk:
    rows = [row for row, value in enumerate(values) if value is not None]
    kept = np.array([values[row] for row in rows], dtype)
    return ColumnChunk(
        ColumnKey(role, "numbers", dtype, role=role),
        np.array(rows, np.int64),
        np.ones(len(rows), np.int64),
        kept,
        item_shape=(),
    )


def _feature_chunk(key: ColumnKey, shape: tuple[int, ...] | None, cells: list[tuple[int, Any, Any]]) -> ColumnChunk:
    """Put the cells (row, values, coordinates) of one column together."""
    counts = np.array([values.size for _, values, _ in cells], np.int64)
    if key.family == "numbers" and shape is None and (counts == counts[0]).all():
        shape = (int(counts[0]),)
    coords = None
    if key.family == "sparse":
        coords = np.concatenate([coordinates.ravel() for _, _, coordinates in cells])
    return ColumnChunk(
        key=key,
        rows=np.array([row for row, _, _ in cells], np.int64),
        counts=counts,
        values=np.concatenate([values.ravel() for _, values, _ in cells]),
        item_shape=shape,
        coords=coords,
    )


@dataclass
class _Rows:
    """What lines have yielded so far. ``at`` is where the line at hand begins."""

    nodes: _Owners = field(default_factory=_Owners)
    edges: _Owners = field(default_factory=_Owners)
    at: int = 0
    weight_limit: float = np.inf

    def add(self, records: list[tuple[Any, ...]]) -> None:
        """Take the records of one line."""
        node = -1
        for record in records:
            try:
                src, dst, kind, weight, created_at, removed_at, features = record
            except (TypeError, ValueError):
                raise self._fault("must yield (src, dst, type, weight, created_at, removed_at, features)", record) from None
            is_node = _is_integer(dst) and dst == -1
            owners = self.nodes if is_node else self.edges
            row = len(owners.types)
            owners.ends[0].append(self._integer("src", src, 0, _MAX_ID))
            owners.ends[1].append(0 if is_node else self._integer("dst", dst, 0, _MAX_ID))
            owners.types.append(self._integer("type", kind, 0, _MAX_TYPE))
            owners.weights.append(self._weight(weight))
            for times, name, time in zip(owners.times, ("created_at", "removed_at"), (created_at, removed_at), strict=True):
                times.append(None if time is None else self._integer(name, time, -(2**63), 2**63 - 1))
            owners.num_slots.append(len(features) if features is not None else 0)
            owners.at.append(self.at)
            owners.record.append(node)
            if is_node:
                node = row
            for slot, value in enumerate(features or ()):
                self._add_feature(owners, row, slot, value)

    def _add_feature(self, owners: _Owners, row: int, slot: int, value: Any) -> None:
        name = f"feat_{slot}"
        if value is None:
            return
        shape: tuple[int, ...] | None = None
        coords = None
        if isinstance(value, str):
            values: NDArray[Any] = np.frombuffer(self._utf8(value), np.uint8)
            key = ColumnKey(name, "binary", "uint8", slot=slot)
        elif isinstance(value, tuple):
            coords, values, width = self._sparse(value)
            key = ColumnKey(name, "sparse", self._dtype(values), slot=slot, width=width)
        else:
            values = np.asarray(value)
            key = ColumnKey(name, "numbers", self._dtype(values), slot=slot)
            shape = values.shape if values.ndim > 1 else None
        if values.size or key.family == "binary":
            owners.features.setdefault((key, shape), []).append((row, np.atleast_1d(values), coords))

    def _sparse(self, value: tuple[Any, ...]) -> tuple[NDArray[np.int64], NDArray[Any], int]:
        """Check a pair (coordinates, values) and return it with the width of the coordinates, 0 for flat ones."""
        if len(value) != 2:
            raise self._fault("must yield sparse features as (coordinates, values)", value)
        coords, values = np.asarray(value[0]), np.atleast_1d(np.asarray(value[1]))
        width = coords.shape[1] if coords.ndim == 2 else 0
        if coords.size == 0 and values.size == 0:
            return coords.astype(np.int64), values, 0
        if coords.dtype.kind not in "iu" or coords.ndim not in (1, 2) or values.ndim != 1:
            raise self._fault("must yield coordinates as integers in one or two dimensions, and flat values", value)
        if len(coords) != values.size or coords.size == 0:
            raise self._fault("must yield one value for each coordinate", value)
        return coords.astype(np.int64), values, width

    def _dtype(self, values: NDArray[Any]) -> str:
        dtype = values.dtype.newbyteorder("=")
        if dtype.kind not in _KINDS or dtype.itemsize > (16 if dtype.kind == "c" else 8):
            raise self._fault("must yield features of numbers", values.dtype)
        return dtype.name

    def _utf8(self, text: str) -> bytes:
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise self._fault("yields a text with half a surrogate pair", text) from None

    def _integer(self, what: str, value: Any, low: int, high: int) -> int:
        if not _is_integer(value) or not low <= int(value) <= high:
            raise self._fault(f"must yield {what} as an integer from {low} to {high}", value)
        return int(value)

    def _weight(self, value: Any) -> float:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
            raise self._fault("must yield weight as a number", value)
        if np.isfinite(value) and abs(float(value)) >= self.weight_limit:
            raise self._fault("must yield weights that fit their dtype", value)
        return float(value)

    def _fault(self, rule: str, found: object) -> DecodeError:
        shown = repr(found)
        return DecodeError(f"the decoder {rule}, found {shown[:80]}", at=self.at, fix="correct the line or the decoder")


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
