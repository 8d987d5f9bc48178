"""Pieces of an input, spread over it, as decoded: what its records are like, and how long decoding takes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphprep.convert.read.blocks import decode_block
from graphprep.convert.read.plan import Planned
from graphprep.convert.read.samples import first_records, is_compressed, records_at, table_rows
from graphprep.convert.run import Run
from graphprep.engine.budget import peak_resident, reset_peak, trim_heap
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import RawRows
from graphprep.storage.faults import display_url
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.streams import find_codec
from graphprep.storage.read.urls import Storage

_PIECE_BYTES = 1 << 16
_MOST_PIECE_BYTES = 16 << 20  # a longer record is left to those who convert
_PIECES = 64  # of all texts, and as many of all tables
_PIECE_ROWS = 1 << 12
_TABLE_PIECES = 8  # of one kind of table
_WHOLE_BYTES = 4 << 20  # as much of an input of texts is read as a whole
_PACKED_BYTES = 1 << 20  # of a compressed text, as stored
_PACKED_FILES = 4
_TAIL_BYTES = 4
_HEAD_FILES = 4
_HEAD_ROWS = 1 << 8
_TIMED = 3
_TIMED_ROWS = 1 << 18


class Piece(NamedTuple):
    """Rows of a piece of ``amount`` bytes of text or rows of a table, decoded in ``elapsed_s``; ``num_bad`` were faulty.

    ``block`` is the text.
    """

    rows: RawRows
    amount: int
    elapsed_s: float
    num_bad: int = 0
    block: TextBlock | None = None


@dataclass
class Stratum:
    """Spans of one kind and pieces of them.

    ``amount`` is that of all of them: bytes of text, decompressed, or rows. ``is_whole``: the pieces are all of it. ``unit_s``
    is what decoding takes of each unit of it, on one thread; ``work_share`` and ``row_share`` are the memory that it takes on
    the way and that its rows take, for each byte of text. ``is_packed``: it is compressed.
    """

    role: str
    kind: str
    stored_bytes: int
    amount: float = 0.0
    read_bytes: int = 0
    is_whole: bool = False
    pieces: list[Piece] = field(default_factory=list)
    unit_s: float = 0.0
    work_share: float = 0.0
    row_share: float = 0.0
    is_packed: bool = False

    @property
    def sampled(self) -> int:
        """Return the amount that was looked at."""
        return sum(piece.amount for piece in self.pieces)

    @property
    def times(self) -> float:
        """Return how much larger all of it is than what was looked at."""
        return 1.0 if self.is_whole or not self.sampled else max(1.0, self.amount / self.sampled)

    @property
    def text_bytes(self) -> float:
        """Return the bytes that go through decoding: of a table those that are stored."""
        return self.amount if self.kind == "text" else float(self.stored_bytes)


def take_samples(run: Run, planned: Planned) -> list[Stratum]:
    """Look at pieces of an input.

    Raises DataError where one cannot be decoded, as ``convert`` does, unless faulty records are skipped.
    """
    groups = _groups(run, planned)
    sampler = _Sampler(run, planned)
    sizes = {url: max(0, run.storage.size(url)) for url in {span.url for span in planned.sources.spans}}
    of_texts = sum(sizes[span.url] for span in planned.sources.spans if span.kind == "text")
    strata = []
    for (kind, role, packed), spans in groups.items():
        stratum = Stratum(role, kind, sum(sizes[url] for url in {span.url for span in spans}))
        if kind == "table":
            sampler.tables(stratum, spans)
        elif packed:
            stratum.is_packed = True
            sampler.packed(stratum, spans, sizes)
        elif of_texts <= _WHOLE_BYTES:
            sampler.whole(stratum, spans)
        else:
            wanted = max(4, round(_PIECES * stratum.stored_bytes / max(1, of_texts)))
            sampler.spread(stratum, spans, sizes, wanted)
        sampler.time_decoding(stratum, spans[0])
        strata.append(stratum)
    return strata


def take_heads(run: Run, planned: Planned, whole: list[bool]) -> Iterator[Stratum]:
    """Look at the beginnings of some files of each kind, for what they hold and not how much; say in ``whole`` where it is all.

    Raises what ``take_samples`` raises.
    """
    sampler = _Sampler(run, planned)
    for (kind, role, packed), spans in _groups(run, planned).items():
        stratum = Stratum(role, kind, 0)
        is_whole = len(spans) <= _HEAD_FILES and not packed
        for span in spans[:: -(-len(spans) // _HEAD_FILES)]:
            is_whole = sampler.head(stratum, span) and is_whole
        whole.append(is_whole)
        yield stratum


def _groups(run: Run, planned: Planned) -> dict[tuple[str, str, bool], list[Span]]:
    groups: dict[tuple[str, str, bool], list[Span]] = {}
    for span in planned.sources.spans:
        packed = span.kind == "text" and is_compressed(run.storage, span.url)
        groups.setdefault((span.kind, span.role, packed), []).append(span)
    return groups


class _Sampler:
    """Decodes pieces of spans."""

    def __init__(self, run: Run, planned: Planned) -> None:
        self.storage: Storage = run.storage
        self.decoder = planned.decoder
        self.skip = run.options.on_error == "skip"
        self.room_bytes = run.memory.pool_bytes
        self._is_warm = False

    def head(self, stratum: Stratum, span: Span) -> bool:
        """Decode the beginning of a file, without asking for the time; return whether that is all of it."""
        self._is_warm = True
        if span.kind == "table":
            number = _num_rows(span)
            self._read(stratum, span, [0], min(number, _HEAD_ROWS) or _HEAD_ROWS)
            return 0 < number <= _HEAD_ROWS
        is_whole = not self.storage.is_arriving(span.url) and 0 <= self.storage.size(span.url) <= _PIECE_BYTES
        self._decode(stratum, TextBlock(self.storage.head(span.url, _PIECE_BYTES), span) if is_whole else self._first(span))
        return is_whole

    def whole(self, stratum: Stratum, spans: Sequence[Span]) -> None:
        """Decode all of some texts."""
        for span in spans:
            for block in text_blocks(self.storage, span, _PIECE_BYTES, self.storage.record_bytes):
                self._decode(stratum, block)
        stratum.amount, stratum.read_bytes, stratum.is_whole = stratum.sampled, stratum.stored_bytes, True

    def spread(self, stratum: Stratum, spans: Sequence[Span], sizes: dict[str, int], wanted: int) -> None:
        """Decode pieces of texts at the same distances, the last one at the end; and, for its faults, the beginning."""
        stratum.amount = float(stratum.stored_bytes)
        borders = np.cumsum([0, *(sizes[span.url] for span in spans)])
        places = (np.arange(wanted) + 0.5) * (stratum.amount / wanted)
        places[-1] = max(places[-1], stratum.amount - _PIECE_BYTES)
        owners = np.searchsorted(borders, places, side="right") - 1
        head = next((span for span in spans if sizes[span.url]), None)
        first = None if head is None else self._first(head)
        if first is not None:
            self._decode_once(first)
        for number in np.unique(owners).tolist():
            span, size = spans[number], sizes[spans[number].url]
            starts = [min(int(place - borders[number]), max(0, size - _PIECE_BYTES)) for place in places[owners == number]]
            if size <= 2 * _PIECE_BYTES:  # of small files, as many as there are places in them
                self._decode(stratum, self._first(span))
                continue
            for block in self._longer(partial(records_at, self.storage, span, starts)):
                self._decode(stratum, block)
        stratum.read_bytes = stratum.sampled

    def packed(self, stratum: Stratum, spans: Sequence[Span], sizes: dict[str, int]) -> None:
        """Decode the beginnings of compressed texts; what the whole of them holds is told by their ratio, or their ends."""
        chosen = spans[:: -(-len(spans) // _PACKED_FILES)]
        grown, stored = 0.0, 0
        for span in chosen:
            data, ratio = self._unpack(span.url, sizes[span.url])
            grown, stored = grown + ratio * sizes[span.url], stored + sizes[span.url]
            stratum.read_bytes += min(sizes[span.url], _PACKED_BYTES)
            for block in _cut(data, span, is_whole=sizes[span.url] <= _PACKED_BYTES):
                self._decode(stratum, block)
        stratum.amount = grown / max(1, stored) * stratum.stored_bytes
        is_all = len(chosen) == len(spans) and all(sizes[span.url] <= _PACKED_BYTES for span in spans)
        stratum.is_whole, stratum.amount = is_all, float(stratum.sampled) if is_all else stratum.amount

    def tables(self, stratum: Stratum, spans: Sequence[Span]) -> None:
        """Decode some rows of tables, from the same distances; their number is in headers and footers."""
        counts = [_num_rows(span) for span in spans]
        known = [span for span, number in zip(spans, counts, strict=True) if number]
        each = max(1, _TABLE_PIECES // max(1, len(known)))
        for span in known[:: -(-len(known) // _TABLE_PIECES) or 1]:
            number = _num_rows(span)
            is_short = number <= each * _PIECE_ROWS
            starts = [0] if is_short else [int(number * (k + 0.5) / each) for k in range(each)]
            self._read(stratum, span, starts, number if is_short else _PIECE_ROWS)
        stratum.amount = float(sum(counts))
        for span in (span for span in spans if span.stop < 0 and not span.expect_rows):
            stratum.amount += self._unnumbered(stratum, span)
        stratum.is_whole = stratum.sampled >= stratum.amount
        stratum.read_bytes = stratum.stored_bytes if stratum.is_whole else min(stratum.read_bytes, stratum.stored_bytes)

    def time_decoding(self, stratum: Stratum, span: Span) -> None:
        """Find out what decoding takes, of time and memory: of a block as large as those of a conversion, after others."""
        if stratum.kind == "table":
            self._time_rows(stratum, span)
            return
        blocks = [piece.block for piece in stratum.pieces if piece.block is not None and not piece.num_bad]
        if not blocks:
            return
        first = blocks[0]
        joined = TextBlock(b"".join(block.data for block in blocks), first.span, first.first_line, first.is_first)
        took: list[float] = []
        trim_heap()
        try:
            for _ in range(_TIMED):
                before, begin = reset_peak(), time.perf_counter()
                rows = self.decoder.decode(joined)
                took.append(time.perf_counter() - begin)
                most = max(0, peak_resident() - before)
                stratum.work_share = max(stratum.work_share, most / len(joined.data))
                stratum.row_share = _bytes_of(rows) / len(joined.data)
        except DecodeError:  # what is faulty where it stands now
            took.append(sum(piece.elapsed_s for piece in stratum.pieces))
        stratum.unit_s = min(took) / len(joined.data)

    def _time_rows(self, stratum: Stratum, span: Span) -> None:
        """Read the first rows of a table, as many as a conversion takes at once."""
        number = min(_TIMED_ROWS, max(1, _num_rows(span)))
        took = []
        for _ in range(_TIMED - 1):
            begin = time.perf_counter()
            rows = next(table_rows(self.decoder, self.storage, span, (0,), number, self.room_bytes), None)
            took.append(time.perf_counter() - begin)
        if rows is not None:
            stratum.unit_s = min(took) / max(1, rows.num_records or max((one.num_rows for one in rows.aligned), default=1))

    def _unnumbered(self, stratum: Stratum, span: Span) -> float:
        """Read the first rows of a table of which nobody knows how many it has; return an estimate, by its lines."""
        before = stratum.sampled
        self._read(stratum, span, [0], _PIECE_ROWS)
        size, head = self.storage.size(span.url), self.storage.head(span.url, _PACKED_BYTES)
        lines = head.count(b"\n")
        return max(stratum.sampled - before, lines * max(1.0, size / max(1, len(head))))

    def _read(self, stratum: Stratum, span: Span, starts: Sequence[int], num_rows: int) -> None:
        rows = table_rows(self.decoder, self.storage, span, starts, num_rows, self.room_bytes)
        while True:
            begin = time.perf_counter()
            try:
                found = next(rows, None)
            except DecodeError as error:
                if self.skip:
                    return
                column = f", column {error.column!r}" if error.column else ""
                raise DataError(
                    error.message, place=f"{display_url(span.url)}: row {error.at}{column}", fix=error.fix
                ) from None
            if found is None:
                return
            amount = found.num_records or max((one.num_rows for one in found.aligned), default=0)
            stratum.pieces.append(Piece(found, amount, time.perf_counter() - begin))
            stratum.read_bytes += _bytes_of(found)

    def _first(self, span: Span) -> TextBlock | None:
        return next(self._longer(lambda num_bytes: filter(None, [first_records(self.storage, span, num_bytes)])), None)

    def _longer(self, look: Callable[[int], Iterator[TextBlock]]) -> Iterator[TextBlock]:
        """Look at pieces, at longer ones where no record ends in any of them."""
        num_bytes, found = _PIECE_BYTES, list(look(_PIECE_BYTES))
        while not found and num_bytes < min(_MOST_PIECE_BYTES, self.storage.record_bytes):
            num_bytes *= 8
            found = list(look(num_bytes))
        return iter(found)

    def _decode(self, stratum: Stratum, block: TextBlock | None) -> None:
        """Decode a block, the first one twice: what loads and compiles is not what decoding takes."""
        if block is None:
            return
        if not self._is_warm:
            self._decode_once(block)
            self._is_warm = True
        begin = time.perf_counter()
        found = self._decode_once(block)
        if found is not None:
            stratum.pieces.append(Piece(found[0], len(block.data), time.perf_counter() - begin, found[1], block))

    def _decode_once(self, block: TextBlock) -> tuple[RawRows, int] | None:
        """Return rows and the number of faulty records; None where a piece began inside a quoted field."""
        try:
            decoded, bad = decode_block(self.decoder, block, self.skip)
        except DataError as error:
            if block.is_first or block.first_line > 2:
                raise
            if block.span.record_ends is not None:
                return None
            place = f"{display_url(block.span.url)}: in a sample"  # of which nobody knows the line
            raise DataError(error.message, place=place, fix=error.fix) from None
        return decoded.rows, len(bad)

    def _unpack(self, url: str, size: int) -> tuple[bytes, float]:
        """Return the beginning of a compressed file, decompressed, and how many times larger all of it becomes."""
        stored = self.storage.read_range(url, 0, _PACKED_BYTES)
        codec = find_codec(stored)
        assert codec is not None
        pieces, left = [], stored
        while left:
            stream = codec.open()
            pieces.append(stream.decompress(left, 64 * len(left)))
            while not stream.eof and not stream.needs_input and (more := stream.decompress(b"", 64 * len(left))):
                pieces.append(more)
            left = stream.unused_data if stream.eof else b""
        data = b"".join(pieces).removeprefix(b"\xef\xbb\xbf")
        ratio = len(data) / max(1, len(stored))
        if codec.name == "gzip" and size > len(stored):
            told = int.from_bytes(self.storage.read_range(url, size - _TAIL_BYTES, size), "little")
            guess = ratio * size
            told += round((guess - told) / 2**32) * 2**32  # what stands there is a remainder
            ratio = told / size if 0.5 < told / guess < 2 and guess < 2**32 else ratio
        return data, ratio


def _cut(data: bytes, span: Span, *, is_whole: bool) -> Iterator[TextBlock]:
    """Cut the beginning of a text into pieces of whole records."""
    at, line = 0, 1
    while at < len(data):
        piece = data[at : at + _PIECE_BYTES]
        stop = piece.rfind(b"\n") + 1 if span.record_ends is None else span.record_ends.scan(piece, 0)[0]
        if not stop:
            longer = data.find(b"\n", at) + 1 - at if span.record_ends is None else 0
            stop = longer if longer > 0 else len(data) - at if is_whole else 0
        elif is_whole and at + len(piece) == len(data):
            stop = len(piece)
        if not stop:
            return
        yield TextBlock(data[at : at + stop], span, first_line=line, is_first=at == 0)
        line += data.count(b"\n", at, at + stop)
        at += stop


def _num_rows(span: Span) -> int:
    if span.stop >= 0:
        return max(0, span.stop - max(span.start, 0))
    return span.expect_rows or 0


def _bytes_of(rows: RawRows) -> int:
    """Return about how many bytes of a table rows were."""
    chunks = [aligned.chunk for aligned in rows.aligned]
    chunks += [chunk for owner in (rows.nodes, rows.edges) if owner is not None for chunk in owner.columns]
    ids = [] if rows.nodes is None else [rows.nodes.ids]
    ids += [] if rows.edges is None else [rows.edges.src, rows.edges.dst]
    values: list[Any] = [one.values for one in chunks] + [getattr(one, "values", one) for one in ids]
    return sum(int(one.nbytes) for one in values)
