"""Samples of an input: whole records of pieces of texts, and rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphprep.model.protocols import Decoder, ReadingRoom, Span, TextBlock
from graphprep.model.rows import RawRows
from graphprep.storage.read.streams import find_codec

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_MAGIC_BYTES = 16


def is_compressed(storage: Storage, url: str) -> bool:
    """Return whether a file is a compressed stream."""
    return find_codec(storage.read_range(url, 0, _MAGIC_BYTES)) is not None


def first_records(storage: Storage, span: Span, num_bytes: int) -> TextBlock | None:
    """Return the whole records among the first bytes of a text; None where one is longer than that."""
    head = storage.head(span.url, num_bytes)
    stop = head.rfind(b"\n") + 1 if span.record_ends is None else span.record_ends.scan(head, 0)[0]
    return TextBlock(head[:stop], span) if stop else None


def records_at(storage: Storage, span: Span, starts: Sequence[int], num_bytes: int) -> Iterator[TextBlock]:
    """Yield the whole lines among so many bytes from each place on, of a text that is not compressed."""
    size = storage.size(span.url)
    for data in storage.read_ranges(span.url, [(start, min(size, start + num_bytes)) for start in starts]):
        low, high = data.find(b"\n") + 1, data.rfind(b"\n") + 1
        if low < high:
            yield TextBlock(data[low:high], span, first_line=2, is_first=False)


def table_rows(
    decoder: Decoder, storage: Storage, span: Span, starts: Sequence[int], num_rows: int, room_bytes: int
) -> Iterator[RawRows]:
    """Yield so many rows of a table from each place on; where nobody knows how many it has, the first ones."""
    span = replace(span, room=ReadingRoom(room_bytes, storage.tmp_dir))
    with storage.open(span.url) as handle:
        for start in starts if span.stop >= 0 else (0,):
            first = max(span.start, 0) + start
            part = replace(span, start=first, stop=min(span.stop, first + num_rows)) if span.stop >= 0 else span
            yield from [rows for rows in (next(iter(decoder.read(handle, part, num_rows)), None),) if rows is not None]
