"""How DeepGNN's three text formats write features, nodes and edges: columns of a batch to texts of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.ids import NodeIds
from graphprep.exporters.deepgnn.slots import Contents, Part, pack_slots
from graphprep.exporters.deepgnn.texts import (
    Replacements,
    Texts,
    find_bytes,
    find_odd_escapes,
    find_other_bytes,
    join_texts,
    number_texts,
)
from graphprep.model.errors import DataError
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Places = Callable[[int], str]  # what has the cell of a row, in words

_LINE_ENDS = b"\n\r\x0b\x0c\x1c\x1d\x1e"  # where DeepGNN cuts lines, beside those of Unicode
_OTHER_TEXT = "export to deepgnn-json, which escapes such texts, or leave the column out"


@dataclass(frozen=True)
class SlotTexts:
    """The texts of a column in the rows that have it (int64[j], each once)."""

    column: ColumnSchema
    slot: int
    rows: Ints
    texts: Texts


@dataclass(frozen=True)
class Nodes:
    """What lines say of nodes. ``is_declared``: the others have edges alone, where a format can say that."""

    ids: NodeIds
    types: NDArray[np.int32]
    weights: NDArray[Any]
    times: Ints | None
    features: Texts
    is_declared: Flags


@dataclass(frozen=True)
class Edges:
    """What lines say of edges. ``is_first``: no edge of its row stands before it."""

    src: NodeIds
    dst: NodeIds
    types: NDArray[np.int32]
    weights: NDArray[Any]
    times: Ints | None
    features: Texts
    is_first: Flags


class LineFormat(Protocol):
    """One of the formats. A row is its head, its edges and ``tail``, one behind the other."""

    tail: bytes

    def why_not(self, column: ColumnSchema) -> str | None:
        """Say why a feature cannot be written; None where it can."""

    def cells(self, column: ColumnSchema, cells: Cells, place: Places) -> Texts:
        """Write the values of a column. Raises DataError for a text that the format cannot hold."""

    def features(self, size: int, slots: Sequence[SlotTexts], stated: Ints) -> Texts:
        """Put the features of rows together; ``stated`` is the number of slots that each has at least."""

    def heads(self, nodes: Nodes) -> Texts:
        """Write what stands before the edges of each node."""

    def edges(self, edges: Edges) -> Texts:
        """Write edges."""


class EdgeListLines:
    """A line for every node and every edge; columns separated by commas."""

    tail = b""
    _escapes = Replacements({b",": b"\\,"})

    def why_not(self, column: ColumnSchema) -> str | None:
        """See ``LineFormat``."""
        return "EdgeList has no features with dates" if column.kind == "temporal" else None

    def cells(self, column: ColumnSchema, cells: Cells, place: Places) -> Texts:
        """See ``LineFormat``."""
        counts, size = cells.item_counts, cells.num_rows
        if column.kind == "binary":
            texts = _checked_texts(column, cells, _LINE_ENDS, "EdgeList", place)
            _raise_at(find_odd_escapes(texts, ord("\\"), ord(",")), column, "a backslash before a comma or at its end", place)
            return join_texts(b",binary,1,", self._escapes.write(texts), size=size)
        values = _separated(cells.flat, b",").grouped(counts)
        if column.kind != "sparse":
            return join_texts(f",{column.dtype},".encode(), number_texts(counts), values, size=size)
        assert cells.coords is not None
        width = column.item_shape[0] if column.item_shape else 0
        coords = _separated(cells.coords, b",").grouped(counts * max(width, 1))
        head = f",{column.dtype},".encode()
        return join_texts(head, number_texts(counts), f"/{width}".encode(), coords, values, size=size)

    def features(self, size: int, slots: Sequence[SlotTexts], stated: Ints) -> Texts:
        """See ``LineFormat``."""
        counts, missing, rows = _missing_slots(slots, stated)
        return _packed(size, [*map(_contents, slots), _fill(missing, rows, b",int8,0")], counts)

    def heads(self, nodes: Nodes) -> Texts:
        """See ``LineFormat``."""
        ids, types, weights = number_texts(nodes.ids), number_texts(nodes.types), number_texts(nodes.weights)
        rest = *_times(nodes.times, b",", b","), nodes.features, b"\n"
        return join_texts(ids, b",-1,", types, b",", weights, *rest, size=nodes.ids.size).where(nodes.is_declared)

    def edges(self, edges: Edges) -> Texts:
        """See ``LineFormat``."""
        src, types, dst = number_texts(edges.src), number_texts(edges.types), number_texts(edges.dst)
        rest = number_texts(edges.weights), *_times(edges.times, b",", b","), edges.features, b"\n"
        return join_texts(src, b",", types, b",", dst, b",", *rest, size=edges.dst.size)


class TsvLines:
    """A line for every node: ID, type, weight, features and neighbours between tabs."""

    tail = b"\n"
    _codes = {"float16": "f16", "float32": "f", "float64": "d"}  # noqa: RUF012

    def why_not(self, column: ColumnSchema) -> str | None:
        """See ``LineFormat``."""
        if column.kind in ("sparse", "temporal"):
            return f"TSV has no {'sparse features' if column.kind == 'sparse' else 'features with dates'}"
        return None if column.kind == "binary" or _is_plain(column.dtype) else f"TSV has no features of {column.dtype}"

    def cells(self, column: ColumnSchema, cells: Cells, place: Places) -> Texts:
        """See ``LineFormat``."""
        if column.kind == "binary":
            return join_texts(b"b:", _checked_texts(column, cells, _LINE_ENDS + b"\t;:,|", "TSV", place), size=cells.num_rows)
        code = self._codes.get(column.dtype) or column.dtype.replace("uint", "u").replace("int", "i")
        counts = cells.item_counts
        values = _separated(cells.flat, b" ", _is_first(counts)).grouped(counts)
        return join_texts(f"{code}:".encode(), values, size=cells.num_rows).where(counts > 0)  # no values: a missing slot

    def features(self, size: int, slots: Sequence[SlotTexts], stated: Ints) -> Texts:
        """See ``LineFormat``."""
        counts, missing, rows = _missing_slots(slots, stated)
        behind = [_contents(one, b";" if one.slot else b"") for one in slots]
        return _packed(size, [*behind, _fill(missing[missing > 0], rows[missing > 0], b";")], counts)

    def heads(self, nodes: Nodes) -> Texts:
        """See ``LineFormat``."""
        ids, types, weights = number_texts(nodes.ids), number_texts(nodes.types), number_texts(nodes.weights)
        return join_texts(ids, b"\t", types, b"\t", weights, b"\t", nodes.features, b"\t", size=nodes.ids.size)

    def edges(self, edges: Edges) -> Texts:
        """See ``LineFormat``."""
        behind = Texts.chosen((b"|", b""), edges.is_first.astype(np.int64))
        dst, types, weights = number_texts(edges.dst), number_texts(edges.types), number_texts(edges.weights)
        return join_texts(behind, dst, b",", types, b",", weights, b",", edges.features, size=edges.dst.size)


class JsonLines:
    """An object for every node, with a list of its edges."""

    tail = b"]}\n"
    _groups = {"float32": "float", "float64": "double"}  # noqa: RUF012
    _escapes = Replacements(
        {bytes([code]): f"\\u{code:04x}".encode() for code in range(32)} | {b'"': b'\\"', b"\\": b"\\\\"},
        (b"\\u0085", b"\\u2028", b"\\u2029"),
    )

    def why_not(self, column: ColumnSchema) -> str | None:
        """See ``LineFormat``."""
        return None if column.kind == "binary" or _is_plain(column.dtype) else f"JSON has no features of {column.dtype}"

    def cells(self, column: ColumnSchema, cells: Cells, place: Places) -> Texts:
        """See ``LineFormat``."""
        size = cells.num_rows
        if column.kind == "binary":
            texts = self._escapes.write(_checked_texts(column, cells, b"", "JSON", place))
            return join_texts(b'"', texts, b'"', size=size)
        if column.kind == "temporal":
            return self._dated(cells)
        if column.kind == "sparse":
            return self._sparse(column, cells)
        if column.kind == "dense":
            return _json_arrays(cells.flat, cells.item_counts, column.item_shape)
        return _json_arrays(cells.flat, cells.item_counts).where(cells.item_counts > 0)  # [] is refused there

    def features(self, size: int, slots: Sequence[SlotTexts], stated: Ints) -> Texts:
        """See ``LineFormat``."""
        contents: list[Contents] = []
        groups: dict[str, list[SlotTexts]] = {}
        for one in slots:
            kept = np.flatnonzero(one.texts.sizes)
            groups.setdefault(self._group(one.column), []).append(
                SlotTexts(one.column, one.slot, one.rows[kept], one.texts.take(kept))
            )
        for name, members in groups.items():
            some = np.zeros(size, bool)
            first = len(contents)
            for number, one in enumerate(members, 1):
                behind = Texts.chosen((b"", b", "), some[one.rows].astype(np.int64))
                texts = join_texts(behind, f'"{one.slot}": '.encode(), one.texts, size=one.rows.size)
                contents.append(_contents(SlotTexts(one.column, first + number, one.rows, texts)))
                some[one.rows] = True
            rows = np.flatnonzero(some)
            contents.append(_fill(first, rows, f', "{name}": {{'.encode()))
            contents.append(_fill(first + len(members) + 1, rows, b"}"))
        return _packed(size, [*contents, *self._stated(len(contents), slots, stated)])

    def heads(self, nodes: Nodes) -> Texts:
        """See ``LineFormat``."""
        fields: list[Texts | bytes] = [b'{"node_id": ', number_texts(nodes.ids), b', "node_type": ', number_texts(nodes.types)]
        fields += [b', "node_weight": ', number_texts(nodes.weights, as_json=True)]
        times = _times(nodes.times, b', "created_at": ', b', "removed_at": ')
        return join_texts(*fields, *times, nodes.features, b', "edge": [', size=nodes.ids.size)

    def edges(self, edges: Edges) -> Texts:
        """See ``LineFormat``."""
        begin = Texts.chosen((b', {"src_id": ', b'{"src_id": '), edges.is_first.astype(np.int64))
        fields: list[Texts | bytes] = [begin, number_texts(edges.src), b', "dst_id": ', number_texts(edges.dst)]
        fields += [b', "edge_type": ', number_texts(edges.types), b', "weight": ', number_texts(edges.weights, as_json=True)]
        times = _times(edges.times, b', "created_at": ', b', "removed_at": ')
        return join_texts(*fields, *times, edges.features, b"}", size=edges.dst.size)

    def _group(self, column: ColumnSchema) -> str:
        if column.kind == "binary":
            return "binary_feature"
        prefix = "sparse_" if column.kind == "sparse" else ""
        return f"{prefix}{self._groups.get(column.dtype, column.dtype)}_feature"

    def _stated(self, first: int, slots: Sequence[SlotTexts], stated: Ints) -> list[Contents]:
        """State slots behind the last one that is filled: sparse features without values say no more than that."""
        filled = np.zeros(stated.size, np.int64)
        for one in slots:
            filled[one.rows] = np.maximum(filled[one.rows], (one.slot + 1) * (one.texts.sizes > 0))
        rows = np.flatnonzero(stated > filled)
        head, tail = b', "sparse_float32_feature": {"', b'": {"coordinates": [], "values": []}}'
        texts = join_texts(head, number_texts(stated[rows] - 1), tail, size=rows.size)
        return [Contents(first, rows, texts.sizes, (_part(texts),))]

    def _sparse(self, column: ColumnSchema, cells: Cells) -> Texts:
        assert cells.coords is not None
        counts = cells.item_counts
        width = column.item_shape[0] if column.item_shape else 0
        coords = _json_arrays(cells.coords, counts * max(width, 1), (-1, width) if width else None)
        values = _json_arrays(cells.flat, counts)
        return join_texts(b'{"coordinates": ', coords, b', "values": ', values, b"}", size=cells.num_rows).where(counts > 0)

    def _dated(self, cells: Cells) -> Texts:
        assert cells.entry_counts is not None
        assert cells.start is not None
        assert cells.end is not None
        entries, size = cells.entry_counts, cells.start.size
        begin = Texts.chosen((b', {"values": ', b'{"values": '), _is_first(entries).astype(np.int64))
        removed = join_texts(b', "removed_at": ', number_texts(cells.end), size=size).where(cells.end != -1)
        values, created = _json_arrays(cells.flat, cells.item_counts), number_texts(cells.start)
        dated = join_texts(begin, values, b', "created_at": ', created, removed, b"}", size=size)
        return join_texts(b"[", dated.grouped(entries), b"]", size=entries.size).where(entries > 0)


# ---------------------------------------------------------------------------------------------------- cells


def _is_plain(dtype: str) -> bool:
    """Return whether all three formats have numbers of a dtype."""
    return np.dtype(dtype).kind in "iuf"


def _checked_texts(column: ColumnSchema, cells: Cells, refused: bytes, format_name: str, place: Places) -> Texts:
    """Return the texts of a column.

    Raises DataError where one is no UTF-8, or has a byte that the format has no way to write.
    """
    texts = Texts.packed(np.ascontiguousarray(cells.flat).view(np.uint8), cells.item_counts)
    _raise_at(find_other_bytes(texts), column, "bytes that are not UTF-8", place)
    if refused:
        _raise_at(find_bytes(texts, refused), column, f"a character that {format_name} cannot hold", place)
    return texts


def _raise_at(at: int, column: ColumnSchema, what: str, place: Places) -> None:
    if at >= 0:
        raise DataError(f"column {column.name!r} has {what}", place=place(at), fix=_OTHER_TEXT)


def _is_first(counts: Ints) -> Flags:
    """Return which items are the first ones of their rows."""
    found = np.zeros(int(counts.sum()), bool)
    found[(np.cumsum(counts) - counts)[counts > 0]] = True
    return found


def _separated(values: NDArray[Any], separator: bytes, is_first: Flags | None = None) -> Texts:
    """Write numbers, each behind a separator, unless it is the first one of its row."""
    before: Texts | bytes = separator
    if is_first is not None:
        before = Texts.chosen((separator, b""), is_first.astype(np.int64))
    return join_texts(before, number_texts(values), size=values.size)


def _json_arrays(values: NDArray[Any], counts: Ints, shape: tuple[int, ...] | None = None) -> Texts:
    """Write the values of each row as an array, nested as ``shape`` says, of which the first number may be anything."""
    inner = shape[1:] if shape else ()
    steps = [prod(inner[at:]) for at in range(len(inner))]  # a bracket opens every so many values
    period = steps[0] if steps else 1
    depths = np.array([sum(at % step == 0 for step in steps) for at in range(period)], np.int64)
    is_first = _is_first(counts)
    within = np.arange(values.size) - np.repeat(np.cumsum(counts) - counts, counts)
    words = [b"]" * depth + b", " + b"[" * depth for depth in range(len(inner) + 1)] + [b"[" * len(inner)]
    which = np.where(is_first, len(inner) + 1, depths[within % period])
    texts = join_texts(Texts.chosen(words, which), number_texts(values, as_json=True), size=values.size).grouped(counts)
    return join_texts(b"[", texts, b"]" * (len(inner) + 1) if inner else b"]", size=counts.size)


def _times(times: Ints | None, created: bytes, removed: bytes) -> tuple[Texts | bytes, ...]:
    if times is None:
        return ()
    first, last = np.ascontiguousarray(times[:, 0]), np.ascontiguousarray(times[:, 1])
    return created, number_texts(first), removed, number_texts(last)


# ---------------------------------------------------------------------------------------------------- slots


def _part(texts: Texts) -> Part:
    return Part(texts.source, texts.starts, texts.sizes, np.zeros(texts.sizes.size, np.int64))


def _contents(one: SlotTexts, behind: bytes = b"") -> Contents:
    texts = join_texts(behind, one.texts, size=one.rows.size) if behind else one.texts
    return Contents(one.slot, one.rows, texts.sizes, (_part(texts),))


def _fill(slot: int | Ints, rows: Ints, text: bytes) -> Contents:
    texts = Texts.repeated(text, rows.size)
    return Contents(slot, rows, texts.sizes, (_part(texts),))


def _missing_slots(slots: Sequence[SlotTexts], stated: Ints) -> tuple[Ints, Ints, Ints]:
    """Return how many slots each row has, and those that it does not fill: slots, rows."""
    counts = stated.copy()
    for one in slots:
        counts[one.rows] = np.maximum(counts[one.rows], one.slot + 1)
    firsts = np.cumsum(counts) - counts
    is_missing = np.ones(int(counts.sum()), bool)
    for one in slots:
        is_missing[firsts[one.rows] + one.slot] = False
    missing = np.flatnonzero(is_missing)
    rows = np.repeat(np.arange(counts.size), counts)[missing]
    return counts, missing - firsts[rows], rows


def _packed(size: int, contents: Sequence[Contents], counts: Ints | None = None) -> Texts:
    """Join the slots of each row."""
    packed = pack_slots(size, contents, counts)
    bounds = np.append(packed.begins, packed.data.size)
    starts = bounds[packed.firsts]
    return Texts(packed.data, starts, bounds[packed.firsts + packed.counts] - starts)
