"""An input cut into units of about the same size, and whose turn each of them is."""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from graphprep.convert.decoded.file_columns import find_plain
from graphprep.convert.read.apart import ApartTask, Reading
from graphprep.convert.read.blocks import BlockDecoder
from graphprep.convert.read.plan import Plan, is_packed
from graphprep.convert.read.samples import is_compressed
from graphprep.model.protocols import Span
from graphprep.storage.drivers import protocol_of

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_UNITS_EACH = 4  # at least, where there is so much, so that all workers end at about the same time
_MOST_BLOCKS = 64  # of text in a unit: a kill loses little, and a unit's request and file cost little
_COUNT_LINES = ("metis", "chunked")  # formats whose lines are numbers of nodes: each piece would count all lines before it
_WHOLE = "http"  # where a piece may cost the whole file


class Unit(NamedTuple):
    """Spans, by their numbers, that are decoded as one; ``num_bytes`` as stored, roughly where several share a file."""

    number: int
    spans: tuple[int, ...]
    num_bytes: int


@dataclass(frozen=True, eq=False)
class CutInput:
    """A plan whose long texts are cut into pieces, and its units in input order."""

    known: Plan
    units: tuple[Unit, ...]
    reading: Reading

    def task(self, unit: Unit, storage: Storage, folder: str, name: str, skip: bool, room_bytes: int) -> ApartTask:
        """Return what decodes a unit into a segment."""
        planned = self.known.input
        spans = tuple((number, planned.sources.spans[number]) for number in unit.spans)
        blocks = BlockDecoder.of(planned.decoder, planned.sources, skip)
        return ApartTask(spans, blocks, self.reading, room_bytes, storage, folder, name)


def cut_input(known: Plan, storage: Storage, reading: Reading, num_workers: int) -> CutInput:
    """Cut an input into units, several for each worker. The same files, reading and workers give the same, whoever cuts."""
    planned = known.input
    share = -(-(planned.total_bytes or 0) // (_UNITS_EACH * num_workers))
    most = max(reading.block_bytes, min(share, _MOST_BLOCKS * reading.block_bytes))
    may_cut = planned.format not in _COUNT_LINES
    spans: list[Span] = []
    for span in planned.sources.spans:
        spans += _pieces(span, storage, most) if may_cut else [span]
    sources = replace(planned.sources, spans=tuple(spans))
    return CutInput(replace(known, input=replace(planned, sources=sources)), tuple(_units(spans, storage, most)), reading)


def share_of(units: Sequence[Unit], index: int, count: int) -> list[Unit]:
    """Return the units of worker ``index`` of ``count``, in input order: the largest go first to who has least."""
    loads = [(0, worker) for worker in range(count)]
    own = []
    for unit in sorted(units, key=lambda one: (-one.num_bytes, one.number)):
        load, worker = heapq.heappop(loads)
        heapq.heappush(loads, (load + max(1, unit.num_bytes), worker))
        own += [unit] if worker == index else []
    return sorted(own)


def _pieces(span: Span, storage: Storage, most: int) -> Iterator[Span]:
    """Yield a text in pieces of about ``most`` bytes, where its lines can be told from anywhere in it; else the span itself."""
    is_plain = span.kind == "text" and span.record_ends is None and span.expect_rows is None and not is_packed(span.url)
    size = storage.size(span.url) if is_plain and protocol_of(span.url) != _WHOLE else 0
    if size <= most or is_compressed(storage, span.url):
        yield span
        return
    count = -(-size // most)
    borders = [size * number // count for number in range(count + 1)]
    yield from (replace(span, piece=piece) for piece in itertools.pairwise(borders))


def _units(spans: Sequence[Span], storage: Storage, most: int) -> Iterator[Unit]:
    """Yield all spans but those of columns that stay in their files, small ones together."""
    stays = find_plain(storage, spans) if any(span.array is not None for span in spans) else {}
    sharing = Counter(span.url for span in spans)
    sizes: dict[str, int] = {}
    own: list[int] = []
    number = held = 0
    for at, span in enumerate(spans):
        if at in stays:
            continue
        if span.piece is not None:
            size = span.piece[1] - span.piece[0]
        else:
            if span.url not in sizes:
                sizes[span.url] = max(0, storage.size(span.url))
            size = sizes[span.url] // sharing[span.url]
        if own and held + size > most:
            yield Unit(number, tuple(own), held)
            number, own, held = number + 1, [], 0
        own.append(at)
        held += size
    if own:
        yield Unit(number, tuple(own), held)
