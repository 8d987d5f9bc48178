"""The suite that every decoder of text passes: ours, and yours.

Inherit it in a test module, say how to make your decoder, and give it five lines::

    class TestMine(DecoderContract):
        lines = (b"1 2", b"2 3", b"3 1", b"5 1", b"1 1")
        bad_lines = ((b"1 x", "field 'dst' must be an integer, found 'x'"),)

        def make(self):
            return MyDecoder()
"""

from __future__ import annotations

import dataclasses
import pickle
import random
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from graphprep.decoders.registry import make_decoder
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawEdges, RawIds, RawNodes, RawRows, RawTexts
from graphprep.storage.read.spans import record_ends_of

_NUM_MUTATIONS = 300
_FAMILIES = ("numbers", "sparse", "binary", "temporal")


class DecoderContract:
    """Inherit, and define ``make`` and ``lines``; the rest is optional.

    ``lines``: five valid records without line ends, together with every feature of the format. ``bad_lines``: a faulty line
    and a part of the message. ``skipped``: lines that are no records (comments). ``skips_blank``: blank lines are none either.
    ``at_ids``: the text of an ID stands at the position that ``places`` gives for it (perhaps quoted or signed).
    """

    lines: ClassVar[Sequence[bytes]]
    bad_lines: ClassVar[Sequence[tuple[bytes, str]]] = ()
    skipped: ClassVar[Sequence[bytes]] = ()
    skips_blank: ClassVar[bool] = True
    at_ids: ClassVar[bool] = True

    def make(self) -> Any:
        """Return the decoder."""
        raise NotImplementedError

    def span(self) -> Span:
        """Return the span that blocks belong to."""
        return Span("input")

    # ------------------------------------------------------------------------------------------ helpers

    def decode(self, data: bytes, *, places: bool = False, is_first: bool = True) -> RawRows:
        """Decode bytes with a fresh decoder."""
        rows: RawRows = self.make().decode(TextBlock(data, self.span(), 1, is_first), places)
        return rows

    @property
    def text(self) -> bytes:
        """Return all lines as a file."""
        return b"".join(line + b"\n" for line in self.lines)

    # ------------------------------------------------------------------------------------------ what must hold

    def test_decodes_its_lines(self) -> None:
        """Every line is a record, and together they have rows."""
        rows = self.decode(self.text)
        assert rows.num_records == len(self.lines)
        assert len(_records(rows)) > 0

    def test_rows_are_consistent(self) -> None:
        """Arrays have the dtypes and sizes that ``graphprep.model.rows`` promises."""
        check_rows(self.decode(self.text))
        check_rows(self.decode(self.text, places=True), places=True)

    def test_any_split_gives_the_same_rows(self) -> None:
        """Blocks of one line, of two parts, and of everything yield the same records in the same order."""
        whole = merge_rows([self.decode(self.text)])
        singles = [self.decode(line + b"\n", is_first=i == 0) for i, line in enumerate(self.lines)]
        assert merge_rows(singles) == whole
        for cut in range(1, len(self.lines)):
            halves = [b"".join(line + b"\n" for line in some) for some in (self.lines[:cut], self.lines[cut:])]
            pieces = [self.decode(half, is_first=i == 0) for i, half in enumerate(halves)]
            assert merge_rows(pieces) == whole

    def test_line_ends_do_not_matter(self) -> None:
        """CR before LF is taken off, and the last line may lack its line feed."""
        whole = merge_rows([self.decode(self.text)])
        assert merge_rows([self.decode(self.text.replace(b"\n", b"\r\n"))]) == whole
        assert merge_rows([self.decode(self.text.removesuffix(b"\n"))]) == whole
        assert merge_rows([self.decode(self.text.replace(b"\n", b"\r\n").removesuffix(b"\n"))]) == whole

    def test_no_records_give_no_rows(self) -> None:
        """Nothing, and lines that are no records, decode to no rows."""
        empties = [b"", *(line + b"\n" for line in self.skipped)]
        if self.skips_blank:
            empties += [b"\n", b"\r\n", b"\n\n\n"]
        for data in empties:
            rows = self.decode(data)
            check_rows(rows)
            assert (rows.num_records, _records(rows)) == (0, [])

    def test_lines_that_are_no_records_change_nothing(self) -> None:
        """Comments and blank lines may stand between records."""
        between = b"".join(line + b"\n" for line in self.skipped) + (b"\n" if self.skips_blank else b"")
        data = b"".join(line + b"\n" + between for line in self.lines)
        assert merge_rows([self.decode(data)]) == merge_rows([self.decode(self.text)])

    def test_places_point_to_the_ids(self) -> None:
        """With ``places``, rows are the same, and each position is that of the ID in the block."""
        rows = self.decode(self.text, places=True)
        assert merge_rows([rows]) == merge_rows([self.decode(self.text)])
        for ids, at in _placed_ids(rows):
            assert at is not None
            assert (at.dtype, at.size) == (np.dtype(np.int64), ids.size)
            for value, start in zip(ids.tolist(), at.tolist(), strict=True):
                assert 0 <= start < len(self.text)
                if self.at_ids and isinstance(value, bytes):
                    found = self.text[start:].replace(b'""', b'"')
                    assert found.startswith((value, b'"' + value)), (value, self.text[start : start + 24])
                elif self.at_ids:
                    found = self.text[start : start + 24].lstrip(b' \t"+0')
                    assert found.startswith(str(value).encode().lstrip(b"0")), (value, self.text[start : start + 24])

    def test_records_of_edges_are_nodes(self) -> None:
        """With ``places``, the record of an edge is a node of the batch, or -1."""
        rows = self.decode(self.text, places=True)
        if rows.edges is not None and rows.edges.record is not None:
            num_nodes = rows.nodes.num_rows if rows.nodes is not None else 0
            assert rows.edges.record.size == rows.edges.num_rows
            assert ((rows.edges.record >= -1) & (rows.edges.record < num_nodes)).all()

    def test_faults_are_reported(self) -> None:
        """A bad line raises DecodeError, inside that line, wherever it stands."""
        for line, part in self.bad_lines:
            for before in (b"", self.text):
                with pytest.raises(DecodeError) as caught:
                    self.decode(before + line + b"\n" + self.text)
                assert part in caught.value.message
                assert len(before) <= caught.value.at <= len(before) + len(line), (line, caught.value.at)

    def test_the_first_fault_is_reported(self) -> None:
        """Of two faulty records, the first in input order is blamed, whatever is wrong with them."""
        for first, part in self.bad_lines:
            for second, _ in self.bad_lines:
                with pytest.raises(DecodeError) as caught:
                    self.decode(self.text + first + b"\n" + second + b"\n")
                assert part in caught.value.message
                assert caught.value.at <= len(self.text) + len(first)

    def test_mutated_bytes_raise_only_decode_errors(self) -> None:
        """Whatever stands in a block: rows, or a DecodeError inside the block, before which all lines are fine."""
        for data in mutations(self.text, _NUM_MUTATIONS):
            self.check_any(data)

    def check_any(self, data: bytes) -> None:
        """Assert that bytes decode to consistent rows, or to a DecodeError at the first faulty line."""
        try:
            rows = self.decode(data, places=True)
        except DecodeError as error:
            assert 0 <= error.at <= len(data)
            assert error.message
            ends = record_ends_of(TextBlock(data, self.span()))
            number = int(np.searchsorted(ends, min(error.at, len(data) - 1), side="right"))
            start = int(ends[number - 1]) if number else 0
            check_rows(self.decode(data[:start], places=True), places=True)
        else:
            check_rows(rows, places=True)

    def test_nothing_is_kept_between_blocks(self) -> None:
        """A decoder that has failed decodes the next block as if nothing had been."""
        decoder = self.make()
        block = TextBlock(self.text, self.span())
        first = merge_rows([decoder.decode(block)])
        for line, _ in self.bad_lines:
            with pytest.raises(DecodeError):
                decoder.decode(TextBlock(line + b"\n", self.span()))
        assert merge_rows([decoder.decode(block)]) == first

    def test_pickles(self) -> None:
        """Decoders travel to other processes."""
        copy = pickle.loads(pickle.dumps(self.make()))
        block = TextBlock(self.text, self.span())
        assert merge_rows([copy.decode(block)]) == merge_rows([self.decode(self.text)])

    def test_refuses_unknown_options(self) -> None:
        """An option that the class does not have is named."""
        decoder = self.make()
        if dataclasses.is_dataclass(decoder) and hasattr(type(decoder), "plan"):
            with pytest.raises(UsageError, match="no_such_option"):
                make_decoder(type(decoder), {"no_such_option": 1})


# ---------------------------------------------------------------------------------------------- for tests of your own


def mutations(text: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """Yield texts with some bytes changed, dropped, repeated or swapped; the same for the same seed."""
    rng = random.Random(seed)
    telling = b"\n\r\t ,;:|/\\\"'{}[]()-+.eE0123456789aNIn\x00\x01\x7f\x80\xc3\xe2\xff"
    for _ in range(count):
        data = bytearray(text)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            stop = min(len(data), at + rng.randint(1, 8))
            kind = rng.randrange(5)
            if kind == 0:
                data[at:at] = bytes([rng.choice(telling)])
            elif kind == 1:
                del data[at:stop]
            elif kind == 2:
                data[at:stop] = bytes([rng.choice(telling)]) * (stop - at)
            elif kind == 3:
                data[at:at] = data[at:stop] * rng.randint(1, 30)
            else:
                data[at:stop] = bytes(rng.randrange(256) for _ in range(stop - at))
        yield bytes(data)


def check_rows(rows: RawRows, *, places: bool = False) -> None:
    """Assert that rows keep the promises of ``graphprep.model.rows``."""
    assert rows.num_records >= 0
    assert all(isinstance(text, str) and count > 0 for text, count in rows.warnings.items())
    if rows.nodes is not None:
        _check_nodes(rows.nodes, places=places)
    if rows.edges is not None:
        _check_edges(rows.edges, places=places)


def _check_nodes(nodes: RawNodes, *, places: bool) -> None:
    size = nodes.num_rows
    _check_ids(nodes.ids, size)
    _check_array(nodes.types, np.int32, size)
    _check_codes(nodes.types, len(nodes.type_names))
    assert len(set(nodes.type_names)) == len(nodes.type_names)
    if nodes.num_slots is not None:
        _check_array(nodes.num_slots, np.int32, size)
    if places:
        _check_array(nodes.at, np.int64, size)
    _check_columns(nodes.columns, size)


def _check_edges(edges: RawEdges, *, places: bool) -> None:
    size = edges.num_rows
    is_narrow = not isinstance(edges.src, RawTexts) and edges.src.dtype == np.uint32
    for ends in (edges.src, edges.dst):
        _check_ids(ends, size, np.uint32 if is_narrow else np.uint64)
    _check_array(edges.relations, np.int32, size)
    _check_codes(edges.relations, len(edges.relation_names))
    assert len(set(edges.relation_names)) == len(edges.relation_names)
    if edges.num_slots is not None:
        _check_array(edges.num_slots, np.int32, size)
    if places:
        _check_array(edges.at_src, np.int64, size)
        _check_array(edges.at_dst, np.int64, size)
        _check_array(edges.record, np.int64, size)
    _check_columns(edges.columns, size)


def _check_ids(ids: RawIds | RawTexts, size: int, dtype: type[np.unsignedinteger[Any]] = np.uint64) -> None:
    if not isinstance(ids, RawTexts):
        _check_array(ids, dtype, size)
        return
    _check_array(ids.offsets, np.int64, size + 1)
    _check_array(ids.values, np.uint8, int(ids.offsets[-1]))
    assert ids.offsets[0] == 0
    assert (np.diff(ids.offsets) >= 0).all()
    assert all(text.decode() for text in ids.tolist() if isinstance(text, bytes))


def _check_array(array: NDArray[Any] | None, dtype: type, size: int) -> None:
    assert array is not None
    assert (array.dtype, array.shape) == (np.dtype(dtype), (size,))


def _check_codes(codes: NDArray[np.int32], num_names: int) -> None:
    assert codes.size == 0 or 0 <= codes.min() <= codes.max() < num_names


def _check_columns(columns: Sequence[ColumnChunk], num_rows: int) -> None:
    for chunk in columns:
        assert chunk.key.family in _FAMILIES
        assert chunk.values.dtype == np.dtype(chunk.key.dtype)
        assert chunk.values.ndim == 1
        _check_array(chunk.rows, np.int64, chunk.rows.size)
        assert (np.diff(chunk.rows) > 0).all()
        assert chunk.rows.size == 0 or 0 <= chunk.rows[0] <= chunk.rows[-1] < num_rows
        assert int(chunk.counts.sum()) == chunk.values.size
        assert (chunk.counts >= 0).all()
        _check_family(chunk)


def _check_family(chunk: ColumnChunk) -> None:
    size = chunk.rows.size
    if chunk.key.family == "temporal":
        _check_array(chunk.entry_counts, np.int64, size)
        assert chunk.entry_counts is not None
        entries = int(chunk.entry_counts.sum())
        for array in (chunk.start, chunk.end, chunk.counts):
            _check_array(array, np.int64, entries)
        return
    _check_array(chunk.counts, np.int64, size)
    if chunk.key.family == "sparse":
        _check_array(chunk.coords, np.int64, chunk.values.size * max(chunk.key.width, 1))
        assert chunk.coords is not None
    if chunk.key.family == "numbers" and chunk.item_shape is not None:
        assert (chunk.counts == int(np.prod(chunk.item_shape, dtype=np.int64))).all()


def _placed_ids(rows: RawRows) -> Iterator[tuple[RawIds | RawTexts, NDArray[np.int64] | None]]:
    if rows.nodes is not None:
        yield rows.nodes.ids, rows.nodes.at
    if rows.edges is not None:
        yield rows.edges.src, rows.edges.at_src
        yield rows.edges.dst, rows.edges.at_dst


def _records(rows: RawRows) -> list[tuple[Any, ...]]:
    """Write rows as plain values: nodes, edges, each with what its columns say, then the rows of columns that stand apart."""
    out: list[tuple[Any, ...]] = []
    if rows.nodes is not None:
        nodes = rows.nodes
        types = [nodes.type_names[code] for code in nodes.types]
        slots = nodes.num_slots.tolist() if nodes.num_slots is not None else [None] * nodes.num_rows
        out += zip(
            ["node"] * nodes.num_rows, nodes.ids.tolist(), types, slots, _cells(nodes.columns, nodes.num_rows), strict=True
        )
    if rows.edges is not None:
        edges = rows.edges
        names = [edges.relation_names[code] for code in edges.relations]
        slots = edges.num_slots.tolist() if edges.num_slots is not None else [None] * edges.num_rows
        cells = _cells(edges.columns, edges.num_rows)
        ends = (edges.src.tolist(), edges.dst.tolist())
        out += zip(["edge"] * edges.num_rows, *ends, names, slots, cells, strict=True)
    for aligned in rows.aligned:
        cells = _cells([aligned.chunk], aligned.num_rows)
        out += [(str(aligned.owner), aligned.start + row, cell) for row, cell in enumerate(cells)]
    return out


def merge_rows(parts: Sequence[RawRows]) -> tuple[list[list[tuple[Any, ...]]], int, dict[str, int]]:
    """Put the records of several blocks together: nodes, edges and rows of columns that stand apart; their number; warnings."""
    records = [record for part in parts for record in _records(part)]
    warnings: dict[str, int] = {}
    for part in parts:
        for text, count in part.warnings.items():
            warnings[text] = warnings.get(text, 0) + count
    kinds = ("node", "edge")
    apart = [record for record in records if record[0] not in kinds]
    found = [[record for record in records if record[0] == kind] for kind in kinds]
    return [*found, apart], sum(part.num_records for part in parts), warnings


def _cells(columns: Sequence[ColumnChunk], num_rows: int) -> list[str]:
    """Write what each row's columns hold. Bytes and numbers are compared as text, so that NaN equals NaN."""
    cells: list[list[tuple[str, str]]] = [[] for _ in range(num_rows)]
    for chunk in columns:
        for row, text in zip(chunk.rows.tolist(), _cell_texts(chunk), strict=True):
            cells[row].append((repr(chunk.key), text))
    return [repr(sorted(cell)) for cell in cells]


def _cell_texts(chunk: ColumnChunk) -> Iterator[str]:
    width = max(chunk.key.width, 1)
    shape = chunk.item_shape if chunk.item_shape is not None and len(chunk.item_shape) > 1 else None
    entries = chunk.entry_counts.tolist() if chunk.entry_counts is not None else [1] * chunk.rows.size
    at = entry = 0
    for num_entries in entries:
        parts: list[object] = [shape]
        for i in range(entry, entry + num_entries):
            stop = at + int(chunk.counts[i])
            dates = (int(chunk.start[i]), int(chunk.end[i])) if chunk.start is not None and chunk.end is not None else None
            coords = chunk.coords[at * width : stop * width].tolist() if chunk.coords is not None else None
            parts.append((dates, coords, chunk.values[at:stop].tolist()))
            at = stop
        entry += num_entries
        yield repr(parts)
