"""Decode one block of text, or the rows of a table; cut what is faulty out of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.keys import KeyedRows, key_rows
from graphprep.convert.decoded.rows import IdRange, IdSpaces
from graphprep.model.errors import BadRecord, DataError, DecodeError
from graphprep.model.protocols import Decoder, FindsFaults, ReadingRoom, Sources, Span, TextBlock
from graphprep.model.rows import RawEdges, RawRows, RawTexts
from graphprep.storage.faults import display_url
from graphprep.storage.read.spans import place_of, places_of, record_ends_of

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_NARROW = np.uint64(2**32 - 1)
# Around faults a block is tried in pieces, small ones where faults are close to each other: each costs a piece, not a block.
_LEAST_TRY_BYTES = 1 << 10
_MOST_TRY_BYTES = 1 << 16


class FoundRows(NamedTuple):
    """What a block holds: its rows, what is at fault, and the ranges of the ends of its edges."""

    keyed: KeyedRows | None
    bad: tuple[BadRecord, ...] = ()
    num_edges: int = 0
    ranges: tuple[IdRange, IdRange] | None = None


@dataclass(frozen=True, eq=False)
class BlockDecoder:
    """Decodes blocks, and looks at what is in them. Picklable, and depends on nothing else, so that any process can.

    ``signed`` are the ID spaces of signed numbers.
    """

    decoder: Decoder
    skip: bool
    text_seed: int
    may_be_integers: bool
    signed: frozenset[str]
    spaces: IdSpaces

    @classmethod
    def of(cls, decoder: Decoder, sources: Sources, skip: bool, text_seed: int = 0) -> BlockDecoder:
        """Return what decodes the blocks of an input."""
        return cls(decoder, skip, text_seed, bool(sources.auto_ids), frozenset(sources.signed_ids), IdSpaces(sources))

    def decode(self, block: TextBlock) -> FoundRows:
        """Decode a block. Raises DataError for its first fault, unless faults are skipped."""
        try:
            return self.look(self.decoder.decode(block))
        except DecodeError as error:
            found, faults = after_fault(self.decoder, block, error, skip=self.skip)
            return self.look(found.rows, tuple(faults))

    def look(self, rows: RawRows | None, bad: tuple[BadRecord, ...] = ()) -> FoundRows:
        """Put keys in the place of texts, and look for the ranges of IDs."""
        if rows is None:
            return FoundRows(None, bad)
        are_texts = rows.nodes is not None and isinstance(rows.nodes.ids, RawTexts)
        are_texts |= rows.edges is not None and RawTexts in (type(rows.edges.src), type(rows.edges.dst))
        keyed = key_rows(rows, self.text_seed, self.may_be_integers) if are_texts else KeyedRows(rows)
        edges = keyed.rows.edges
        if edges is None or not edges.src.size:
            return FoundRows(keyed, bad)
        src, src_range = self._look_at_ids(edges, 0)
        dst, dst_range = self._look_at_ids(edges, 1)
        keyed = replace(keyed, rows=replace(keyed.rows, edges=replace(edges, src=src, dst=dst)))
        return FoundRows(keyed, bad, src.size, (src_range, dst_range))

    def _look_at_ids(self, edges: RawEdges, side: int) -> tuple[NDArray[Any], IdRange]:
        """Return the IDs of one end and their range, uint32 where all fit: half of the memory, on the longest way of all."""
        ids, signed = cast("NDArray[Any]", edges.dst if side else edges.src), self.signed
        low, high = ids.min(), ids.max()
        if ids.dtype == np.uint64 and high <= _NARROW:
            ids = ids.astype(np.uint32)
        elif ids.dtype == np.uint64 and signed and self.spaces.of_end(edges.relation_names[0], side) in signed:
            low, high = ids.view(np.int64).min(), ids.view(np.int64).max()
        return ids, IdRange(int(low), int(high))


@dataclass(frozen=True, eq=False)
class DecodedBlock:
    """The rows of a block. Where faulty lines were cut out of it, ``cuts`` says from where on places moved, and how far."""

    block: TextBlock
    rows: RawRows
    cuts: Cuts | None = None

    def place(self, at: int) -> str:
        """Return ``file:line:column`` of a place in the rows."""
        return self._block_place(at if self.cuts is None else self.cuts.original(at))

    @cached_property
    def _block_place(self) -> Callable[[int], str]:
        return places_of(self.block)


class Cuts(NamedTuple):
    """Pieces of a block that were joined: where each begins in what they were joined to, and where it began in the block."""

    joined: NDArray[np.int64]
    origin: NDArray[np.int64]

    def original(self, at: int) -> int:
        """Return the position in the block of a position in the joined pieces."""
        piece = int(np.searchsorted(self.joined, at, side="right")) - 1
        return at - int(self.joined[piece]) + int(self.origin[piece])


def decode_block(decoder: Decoder, block: TextBlock, skip: bool, places: bool = False) -> tuple[DecodedBlock, list[BadRecord]]:
    """Decode a block; with ``skip``, cut faulty lines out of it and report them."""
    try:
        return DecodedBlock(block, decoder.decode(block, places)), []
    except DecodeError as error:
        return after_fault(decoder, block, error, skip=skip, places=places)


def after_fault(
    decoder: Decoder, block: TextBlock, error: DecodeError, *, skip: bool, places: bool = False
) -> tuple[DecodedBlock, list[BadRecord]]:
    """Raise DataError for what is wrong with a block; with ``skip``, cut faulty lines out of it and report them instead."""
    if not skip:
        raise _placed(block, error) from None
    with contextlib.suppress(DecodeError):  # a class that decodes more than the one that finds all faults at once
        return _without_faults(decoder, block, places, at_once=True)
    try:
        return _without_faults(decoder, block, places, at_once=False)
    except DecodeError as other:  # the decoder does not keep its promise: sound lines are not sound together
        raise _placed(block, other) from None


def _without_faults(decoder: Decoder, block: TextBlock, places: bool, *, at_once: bool) -> tuple[DecodedBlock, list[BadRecord]]:
    """Cut faulty records out of a block and decode the rest.

    Raises DecodeError where that is at fault, too.
    """
    good, bad = _sound_pieces(decoder, block, at_once=at_once)
    data = b"".join(block.data[start:stop] for start, stop in good)
    joined = TextBlock(data, block.span, block.first_line, block.is_first)
    origin = np.array([start for start, _ in good], np.int64)
    sizes = np.array([stop - start for start, stop in good], np.int64)
    cuts = Cuts(np.cumsum(sizes) - sizes, origin)
    try:
        rows = decoder.decode(joined, places) if data else RawRows()
    except DecodeError as error:
        raise DecodeError(error.message, at=cuts.original(error.at), fix=error.fix) from None
    return DecodedBlock(block, rows, cuts), bad


def _sound_pieces(decoder: Decoder, block: TextBlock, *, at_once: bool) -> tuple[list[tuple[int, int]], list[BadRecord]]:
    """Find the faulty records of a block. Returns the pieces [start, stop) between them, and the reasons.

    ``at_once``: a decoder that can tell all faulty records is asked for them.
    """
    good: list[tuple[int, int]] = []
    bad: list[BadRecord] = []
    place = places_of(block)
    ends = record_ends_of(block)
    at, size = 0, _MOST_TRY_BYTES
    line = block.first_line
    faults: list[DecodeError] = []
    is_all = False
    while at < len(block.data):
        stop = int(ends[np.searchsorted(ends, min(at + size, len(block.data)) - 1, side="right")])
        part = TextBlock(block.data[at:stop], block.span, line, block.is_first and at == 0)
        size = min(4 * size, _MOST_TRY_BYTES)
        faults, is_all = _faults_of(decoder, part, at_once=at_once, likely=is_all and bool(faults))
        if not faults:
            good.append((at, stop))
        else:
            records = np.searchsorted(ends, [min(at + fault.at, stop - 1) for fault in faults], side="right")
            starts = np.where(records > 0, ends[records - 1], 0)
            bad += [BadRecord(place(at + fault.at), fault.message) for fault in faults]
            stop = stop if is_all else int(ends[records[-1]])
            borders = [at, *np.stack([starts, ends[records]], axis=1).ravel().tolist(), stop]
            good += [(first, last) for first, last in zip(borders[::2], borders[1::2], strict=True) if first < last]
            size = _MOST_TRY_BYTES if is_all else _LEAST_TRY_BYTES
        line += block.data.count(b"\n", at, stop)
        at = stop
    return good, bad


def _faults_of(decoder: Decoder, part: TextBlock, *, at_once: bool, likely: bool) -> tuple[list[DecodeError], bool]:
    """Return what is wrong with a part: all faulty records and True where the decoder tells them, or the first and False.

    ``likely``: it told those of the part before, and is asked straight away; what is left is decoded later anyway.
    """
    first = None if likely else _first_fault(decoder, part)
    if first is None and not likely:
        return [], True
    found = decoder.find_faults(part) if at_once and isinstance(decoder, FindsFaults) else []
    return (found, True) if found or first is None else ([first], False)


def _first_fault(decoder: Decoder, part: TextBlock) -> DecodeError | None:
    try:
        decoder.decode(part)
    except DecodeError as error:
        return error
    return None


def _placed(block: TextBlock, error: DecodeError) -> DataError:
    return DataError(error.message, place=place_of(block, error.at), fix=error.fix)


def read_table(
    decoder: Decoder,
    storage: Storage,
    span: Span,
    max_rows: int,
    skip: bool,
    places: bool = False,
    room_bytes: int | None = None,
) -> Iterator[tuple[RawRows | None, list[BadRecord], int]]:
    """Read a table span in batches: (rows, rejected records, first row). With ``skip``, faulty rows are read around.

    Beside a batch its reader holds about ``room_bytes`` (None: what it takes), the rest of it lies in temporary files.
    """
    if room_bytes is not None:
        span = replace(span, room=ReadingRoom(room_bytes, storage.tmp_dir))
    with storage.open(span.url) as handle:
        row = max(span.start, 0)
        while True:
            part = replace(span, start=row) if row else span
            try:
                for rows in decoder.read(handle, part, max_rows, places):
                    yield rows, [], row
                    row += rows.num_records
                return
            except DecodeError as error:
                faulty = row + error.at
                column = f", column {error.column!r}" if error.column else ""
                place = f"{display_url(span.url)}: row {faulty}{column}"
                if not skip:
                    raise DataError(error.message, place=place, fix=error.fix) from None
                bad = BadRecord(place, error.message)
            if faulty > row:
                yield next(iter(decoder.read(handle, replace(span, start=row, stop=faulty), max_rows, places))), [], row
            yield None, [bad], faulty
            row = faulty + 1


def raw_bytes(rows: RawRows | None) -> int:
    """Return the size of a table's rows: of their IDs, and of columns that stand apart."""
    if rows is None:
        return 0
    arrays: list[NDArray[np.generic]] = []
    ids = [] if rows.edges is None else [rows.edges.src, rows.edges.dst]
    ids += [] if rows.nodes is None else [rows.nodes.ids]
    arrays += [one.values if isinstance(one, RawTexts) else one for one in ids]
    arrays += [aligned.chunk.values for aligned in rows.aligned]
    return sum(array.nbytes for array in arrays)
