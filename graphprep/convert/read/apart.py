"""Spans that are decoded apart, by another process or machine: what they hold goes into a segment, and is read from there."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import xxhash

from graphprep.convert.read.blocks import BlockDecoder, FoundRows, raw_bytes, read_table
from graphprep.engine.local import Engine, Threads, map_ordered
from graphprep.engine.worker import pack, receive_parts, sizes_bytes, unpack
from graphprep.model.errors import BadRecord, StorageError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import RawRows
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.spill.segments import BrokenSegmentError, Segment
from graphprep.storage.write.files import write_pieces

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_MARK_BYTES = 8  # behind each block: the xxh3 of all before it


class FoundBlock(NamedTuple):
    """A block of a span, ``num_bytes`` of text or of a table's rows, and what it holds."""

    span: int
    block: int
    num_bytes: int
    found: FoundRows


class Reading(NamedTuple):
    """How files are cut into blocks, for all who decode an input alike."""

    block_bytes: int
    limit_bytes: int
    max_rows: int


class _Block(NamedTuple):
    """A block to decode, or rows of a table."""

    span: int
    block: int
    num_bytes: int
    data: TextBlock | None
    rows: RawRows | None = None
    bad: tuple[BadRecord, ...] = ()


@dataclass(frozen=True, eq=False)
class ApartTask:
    """Decodes spans, given with their numbers, into the segment ``name`` in the folder ``folder``, a path or URL.

    Picklable, and depends on nothing else; each call adds to the name what no other call does. The reader of a table may hold
    ``room_bytes``.
    """

    spans: tuple[tuple[int, Span], ...]
    blocks: BlockDecoder
    reading: Reading
    room_bytes: int
    storage: Storage
    folder: str
    name: str

    def __call__(self) -> Segment:
        """Decode in a process that this is all that came to."""
        with self.storage:
            return replace(self, name=f"{self.name}-{secrets.token_hex(4)}").write()

    def write(self, threads: int = 1, engine: Engine | None = None) -> Segment:
        """Decode on so many threads, text by ``engine``. Raises what decoding and writing raise; there is no segment then."""
        digest, num_bytes = xxhash.xxh3_64(), 0

        def pieces() -> Iterator[bytes | memoryview]:
            nonlocal num_bytes
            for found in map_ordered(partial(self._decode, engine or Threads()), self._blocks(), threads):
                for part in pack(found):
                    digest.update(part)
                    num_bytes += part.nbytes
                    yield part
                num_bytes += _MARK_BYTES
                yield digest.digest()

        write_pieces(self.storage, f"{self.folder}/{self.name}", pieces())
        return Segment(self.name, num_bytes, digest.hexdigest())

    def _blocks(self) -> Iterator[_Block]:
        reading, skip = self.reading, self.blocks.skip
        for number, span in self.spans:
            if span.kind == "table":
                decoder, room = self.blocks.decoder, self.room_bytes
                tables = read_table(decoder, self.storage, span, reading.max_rows, skip, room_bytes=room)
                for index, (rows, bad, _) in enumerate(tables):
                    yield _Block(number, index, raw_bytes(rows), None, rows, tuple(bad))
                continue
            for index, data in enumerate(text_blocks(self.storage, span, reading.block_bytes, reading.limit_bytes)):
                yield _Block(number, index, data.num_bytes, data)

    def _decode(self, engine: Engine, block: _Block) -> FoundBlock:
        if block.data is not None:
            found = engine.run(partial(self.blocks.decode, block.data))
        else:
            found = self.blocks.look(block.rows, block.bad)
        return FoundBlock(block.span, block.block, block.num_bytes, found)


def read_found(storage: Storage, folder: str, segment: Segment) -> Iterator[FoundBlock]:
    """Yield the blocks of a segment, each of which is held against its checksum before anything of it is used.

    Raises BrokenSegmentError where the segment is not what was written, StorageError where it cannot be read.
    """
    url = f"{folder}/{segment.name}"
    digest, at = xxhash.xxh3_64(), 0
    try:
        handle = storage.open_stored(url)
    except StorageError as error:
        if isinstance(error.__cause__, FileNotFoundError):
            raise BrokenSegmentError(url) from None
        raise
    with handle:
        while at < segment.num_bytes:
            try:
                parts = receive_parts(handle, segment.num_bytes - at - _MARK_BYTES)
            except EOFError:
                raise BrokenSegmentError(url) from None
            for part in (sizes_bytes(parts), *parts):
                digest.update(part)
                at += len(part)
            at += _MARK_BYTES
            if handle.read(_MARK_BYTES) != digest.digest():
                raise BrokenSegmentError(url)
            yield unpack(parts)
        if at != segment.num_bytes or digest.hexdigest() != segment.checksum or handle.read(1):
            raise BrokenSegmentError(url)
