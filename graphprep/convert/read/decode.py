"""Decode spans into raw rows, batch by batch, in input order; keep what comes in runs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.aligned import AlignedRuns, column_share
from graphprep.convert.decoded.early_edges import EarlyEdges, EarlyRules, Segment, plain_ends, without_edges
from graphprep.convert.decoded.file_columns import FileColumn, find_plain
from graphprep.convert.decoded.keys import KeyedRows, KeyedTexts
from graphprep.convert.decoded.rows import (
    Batch,
    BatchCells,
    BatchColumn,
    BatchNodes,
    Decoded,
    EndHashes,
    IdColumns,
    IdRange,
    RawBatchEdges,
    ShapeList,
)
from graphprep.convert.decoded.texts import UNKNOWN, KeyCollisionError, TextIndexer
from graphprep.convert.read.blocks import BlockDecoder, FoundRows, raw_bytes, read_table
from graphprep.convert.read.plan import Plan, decoded_bytes, is_packed
from graphprep.convert.run import Run
from graphprep.edges.device.find import find_kernels
from graphprep.engine.budget import DECODED_FACTOR
from graphprep.engine.ledger import MemoryPlan, Need
from graphprep.engine.local import Engine, Threads, chain_ordered, map_ordered, num_in_flight
from graphprep.kernels.cpu.text.texts import take_texts
from graphprep.model.errors import BadRecord, DataError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Decoder, SettlesIds, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, RawEdges, RawNodes, RawRows, Relation
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.spans import StoredBlock, text_blocks
from graphprep.storage.spill.runs import Runs
from graphprep.storage.spill.segments import Segment as StoredSegment
from graphprep.store.columns.cells import cells_of

if TYPE_CHECKING:
    from graphprep.convert.read.apart import FoundBlock
    from graphprep.storage.read.urls import Storage


_MOST_TYPES = 1 << 16
_MOST_GROUP = 16 << 20  # of text whose edges are scattered at once: some 2^20, a thousand for every bucket
_LEAST_EARLY = 1 << 15  # edges
_AHEAD_BYTES = 64 << 20  # of ``text_bytes``; with less, one table is read at a time
_TEXT_SHARDS = 16  # so many threads add texts without waiting; a shard of a few million texts fits the cache
_PATIENCE_S = 0.1  # of blocks that are to be scattered together, with a stream
_FEW_TYPES = 8  # with more, shards take too much memory
_LEAST_SHARDED_BYTES = 4 << 20  # of texts that may be held: empty shards take 1 MiB a type


class WidenError(Exception):
    """Columns turned out to hold text: decoding must start again with these dtypes."""

    def __init__(self, columns: dict[str, str]) -> None:
        super().__init__(columns)
        self.columns = columns


class _IntegersError(Exception):
    """Texts of these ID spaces turned out to be integers throughout: decoding must start again with them as such."""

    def __init__(self, spaces: list[str]) -> None:
        super().__init__(spaces)
        self.spaces = spaces


@dataclass(eq=False)
class DecodeSettings:
    """How the decode stage works. ``text_bytes`` bounds what is held of texts that are raw IDs, before they are sorted.

    ``early`` says how plain edges are scattered at once; None: not at all. Blocks of text are decoded by ``engine``.
    """

    block_bytes: int
    limit_bytes: int
    max_rows: int
    threads: int
    skip: bool
    text_bytes: int = 1 << 26
    early: EarlyRules | None = None
    engine: Engine = field(default_factory=Threads)

    @property
    def room_bytes(self) -> int:
        """Return what the reader of a table may hold, of which as many may read as there are threads."""
        return self.text_bytes // self.threads if self.text_bytes >= _AHEAD_BYTES else self.text_bytes


def decode_needs(settings: DecodeSettings, most_bytes: int) -> Iterator[Need]:
    """Declare what decoding takes of an input that takes ``most_bytes`` decoded.

    Of the blocks under way, those whose rows are there already take half.
    """
    threads, block = settings.threads, DECODED_FACTOR * settings.block_bytes
    why = f"{threads} at work, of {{}}: {DECODED_FACTOR} times that; of {threads + 1} more half"
    yield Need("blocks", min(most_bytes, threads * block + (threads + 1) * block // 2), why, (settings.block_bytes,))
    if settings.early is not None:
        group = settings.early.group_bytes
        why = "plain edges scattered at once, of {} of text each"
        yield Need("segments", min(most_bytes, num_in_flight(threads) * group), why, (group,))
        yield Need("marks", min(most_bytes, settings.early.mark_bytes), "a bit for each ID that occurs")
    yield Need("texts", min(most_bytes, settings.text_bytes), "raw IDs that are texts, before they are sorted")


def decode_settings(run: Run, plan: Plan) -> DecodeSettings:
    """Say how an input is decoded under the memory limit, and read as others did where they decode it."""
    options, memory = run.options, run.memory
    settings = DecodeSettings(
        block_bytes=memory.block_bytes,
        limit_bytes=max(memory.block_bytes, run.storage.record_bytes),
        max_rows=max(1 << 10, memory.block_bytes // 16),
        threads=memory.threads,
        skip=options.on_error == "skip",
        text_bytes=memory.cap_bytes,
        early=None if plan.flags or plan.schema is not None else _early_rules(options, memory, plan.input.total_bytes),
        engine=run.engine,
    )
    return settings if plan.elsewhere is None else replace(settings, **plan.elsewhere.reading._asdict())


def _early_rules(options: ConvertOptions, memory: MemoryPlan, total_bytes: int | None) -> EarlyRules | None:
    """Say how edges may be scattered as soon as they are decoded; None where that is of no use."""
    if options.layout == "both" or options.ids == "sparse" or options.partition_by != "range":
        return None
    if total_bytes is not None and total_bytes < _LEAST_EARLY:  # not even one group of edges
        return None
    group = max(memory.block_bytes, min(_MOST_GROUP, memory.cap_bytes // 3))
    side = 1 if options.layout == "csc" else 0
    return EarlyRules(find_kernels(), side, group, max(_LEAST_EARLY, group // 8), memory.cap_bytes // 2, total_bytes or 0)


class _Kind(NamedTuple):
    """Whether the raw IDs of a space are texts, and the first file that says so."""

    are_texts: bool
    url: str


class Portions(Protocol):
    """Keeps what was decoded so far, portion by portion of the input, for a run that goes on where this one was killed."""

    @property
    def portion_bytes(self) -> int:
        """Return about how many bytes of input are a portion."""

    def last(self) -> Collector | None:
        """Return what an earlier run kept last, None where it kept nothing."""

    def keep(self, collector: Collector) -> None:
        """Keep what was decoded so far: no thread changes it meanwhile."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What decoding made, and the settings with which a block of it can be decoded again."""

    plan: Plan
    decoded: Decoded
    settings: DecodeSettings


def decode(run: Run, plan: Plan, portions: Portions | None = None, again: Decoded | None = None) -> Rows:
    """Decode every span, starting again where a column turns out to hold text, or names to be integers.

    Rejected records are added to those of the run; where it has none, DataError is raised with file, line and column of the
    first. Where there are ``portions``, decoding goes on behind the last one that was kept. What others decode is taken over,
    all but columns that stay in their files; where decoding starts again, it is done here. ``again`` is what was decoded with
    other keys of texts, of which two had the same one.
    """
    settings, planned, most = decode_settings(run, plan), plan.input, decoded_bytes(plan.input)
    run.ledger.begin("decode", (*decode_needs(settings, most), run.memory.runs(most)), total_bytes=planned.total_bytes)
    decoder, sources, seed = planned.decoder, planned.sources, 0
    elsewhere = None if plan.elsewhere is None else plan.elsewhere.blocks
    if again is not None:
        decoder, sources, seed, elsewhere = again.decoder, again.sources, again.text_seed + 1, None
    collector = None if portions is None else portions.last()
    while True:
        if collector is None:
            if run.rejects is not None:
                run.rejects.clear()
            collector = _new_collector(run, settings, decoder, sources, seed)
        decoded = collector.decoded
        decoder, sources, seed = decoded.decoder, decoded.sources, decoded.text_seed
        try:
            collector.collect(portions, elsewhere)
            return Rows(plan, decoded, collector.settings)
        except WidenError as error:
            decoder = decoder.widen(error.columns)
            run.reporter.message(f"column {', '.join(map(repr, error.columns))} holds text: decoding again with it as text")
            stale = sources.nodes == "tables" or sources.replans
        except _IntegersError as error:
            decoder = cast(SettlesIds, decoder).settle_ids(error.spaces)
            named = ", ".join(repr(space) if space else "all types" for space in error.spaces)
            run.reporter.message(f"all raw IDs of {named} are integers: decoding again with them as integers")
            stale = True
        except KeyCollisionError:
            seed += 1
            stale = False
        decoded.close()
        collector = elsewhere = None
        sources = planned.replan(decoder) if stale else sources


def _new_collector(run: Run, settings: DecodeSettings, decoder: Decoder, sources: Sources, seed: int) -> Collector:
    runs = partial(Runs[Any], run.pool, 1, coalesce=False)
    hashes = runs() if seed else None
    decoded = Decoded(sources, decoder, runs(), runs(), runs(), runs(), text_seed=seed, hashes=hashes)
    return Collector(run, decoded, settings)


class _Work(NamedTuple):
    """A block to decode, rows that a table's reader already made, or what was decoded elsewhere."""

    span: int
    block: int
    data: TextBlock | None
    rows: RawRows | None = None
    num_bytes: int = 0
    bad: tuple[BadRecord, ...] = ()
    found: FoundRows | None = None


@dataclass(frozen=True, eq=False)
class _Done:
    """A block that was decoded, with ``num_edges`` edges whose IDs lie in ``ranges`` (of sources, of destinations).

    Where they were scattered, ``segment`` has them, and those of the blocks behind it; it is that of the first of them.
    """

    work: _Work
    keyed: KeyedRows | None
    bad: tuple[BadRecord, ...]
    num_edges: int = 0
    ranges: tuple[IdRange, IdRange] | None = None
    is_scattered: bool = False
    segment: Segment | None = None


class _Group(NamedTuple):
    """Blocks that were decoded one after another, and what failed behind them."""

    done: tuple[_Done, ...]
    failure: Exception | None = None


class _Portion:
    """Groups of about so many bytes. ``is_last`` afterwards says that there are no more."""

    def __init__(self, groups: Iterator[list[_Work]], most_bytes: int) -> None:
        self.is_last = False
        self._groups = groups
        self._left_bytes = most_bytes

    def __iter__(self) -> Iterator[list[_Work]]:
        for group in self._groups:
            yield group
            self._left_bytes -= sum(item.num_bytes for item in group)
            if self._left_bytes <= 0:
                return
        self.is_last = True


class Collector:
    """Pulls blocks, decodes them on threads, and stores the rows in input order. ``num_done`` are collected."""

    def __init__(self, run: Run, decoded: Decoded, settings: DecodeSettings) -> None:
        self.run = run
        self.decoded = decoded
        self.settings = settings
        self.type_codes: dict[str, int] = {}
        self.relation_codes: dict[Relation, int] = {}
        self.families: dict[tuple[str, str], set[str]] = {}
        self.span_rows: dict[int, int] = {}
        self.num_done = 0
        self.kinds: dict[str, _Kind] = {}
        self.plain: dict[int, FileColumn] = {}
        self.columns: dict[BatchColumn, BatchColumn] = {}
        self.blocks = BlockDecoder.of(decoded.decoder, decoded.sources, settings.skip, decoded.text_seed)
        self.integers = dict.fromkeys(decoded.sources.auto_ids, True)
        spaces = set()
        for node in decoded.sources.node_types:
            spaces.add(node.space or node.name)
            self._type_code(node.name)
        self.text_bytes = settings.text_bytes // max(1, len(spaces))
        for relation in decoded.sources.edge_types:
            self._relation_code(relation)

    def collect(self, portions: Portions | None, elsewhere: Callable[[], Iterator[FoundBlock]] | None) -> None:
        """Decode everything, or what is left; see ``decode``."""
        settings = self.settings
        decoder = self.decoded.decoder
        for span in self.decoded.sources.spans:
            if span.array is not None:
                self.plain = find_plain(self.run.storage, self.decoded.sources.spans)
                break
        if settings.early is not None and not self.num_done:
            self.decoded.early = self._begin_early(settings.early)
        items = self._items() if elsewhere is None else self._found_items(elsewhere())
        with contextlib.closing(self._groups(items)) as groups:
            is_all = False
            while not is_all:
                portion = _Portion(groups, sys.maxsize if portions is None else portions.portion_bytes)
                for group in map_ordered(self._work, portion, settings.threads):
                    for done in group.done:
                        self._collect(done)
                    self.num_done += len(group.done)
                    if group.failure is not None:
                        raise group.failure
                is_all = portion.is_last
                if portions is not None and not is_all:
                    portions.keep(self)
        if {"nulls"} in self.families.values():
            self._widen(lambda families: families == {"nulls"})
        check_counts(self.decoded, self.span_rows)
        if self.integers and isinstance(decoder, SettlesIds):
            settled = [space for space, are_integers in self.integers.items() if are_integers and space in self.kinds]
            if settled:
                raise _IntegersError(settled)

    def _begin_early(self, rules: EarlyRules) -> EarlyEdges | None:
        """Get ready to scatter edges at once, where they may turn out to need no more than that."""
        sources = self.decoded.sources
        if sources.nodes != "ends" or len(sources.edge_types) != 1 or sources.auto_ids or sources.signed_ids:
            return None
        if any(span.kind == "table" for span in sources.spans):
            return None
        relation = sources.edge_types[0]
        return EarlyEdges.begin(rules, self.run.pool, is_one_type=relation.src_type == relation.dst_type)

    def _groups(self, all_items: Generator[_Work]) -> Generator[list[_Work]]:
        """Yield what there is to do, several blocks at a time once edges are scattered at once: fewer, larger segments."""
        group: list[_Work] = []
        num_bytes = 0
        with contextlib.closing(all_items) as items:
            try:
                for item in islice(items, self.num_done, None):
                    group.append(item)
                    num_bytes += item.num_bytes
                    early, least = self.decoded.early, 0
                    if early is not None and early.notes and not early.scatterer.is_stopped:
                        least = early.scatterer.rules.group_bytes
                    rests = least > 0 and not _goes_on(item, self.run.storage, self.decoded.sources)
                    if rests or num_bytes >= least:
                        yield group
                        group, num_bytes = [], 0
                    if rests:  # what was begun is collected meanwhile: a fault is not to wait for more input
                        yield from [[]] * (2 * self.settings.threads)
            except Exception:  # of what comes first, one thing may be at fault in the blocks before it
                if group:
                    yield group
                raise
        if group:
            yield group

    def _work(self, items: Sequence[_Work]) -> _Group:
        """Decode some blocks, and scatter their edges where that is enough. Threads share it."""
        done: list[_Done] = []
        held: list[_Done] = []
        early = self.settings.early
        num_edges = 0  # of those held
        try:
            for item in items:
                held.append(self._decode(item))
                num_edges += held[-1].num_edges
                if early is not None and num_edges >= early.most_edges:
                    done += self._scatter(held)
                    held, num_edges = [], 0
        except Exception as error:  # raised behind what is wrong with the blocks before
            return _Group((*done, *held), error)
        return _Group((*done, *(held if early is None else self._scatter(held))))

    def _decode(self, item: _Work) -> _Done:
        block = item.data
        if item.found is not None:
            found = item.found
        elif block is not None:
            found = self.settings.engine.run(partial(self.blocks.decode, block))
        else:
            found = self.blocks.look(item.rows, item.bad)
        keyed, edges = found.keyed, None if found.keyed is None else found.keyed.rows.edges
        if keyed is not None and edges is not None and found.num_edges and (keyed.src is not None or keyed.dst is not None):
            # The texts of ends go to their ID spaces, once these have some: it is work for threads.
            keyed = replace(keyed, src=self._add_side(edges, 0, keyed.src), dst=self._add_side(edges, 1, keyed.dst))
        return _Done(item, keyed, found.bad, found.num_edges, found.ranges)

    def _scatter(self, done: list[_Done]) -> list[_Done]:
        """Scatter the edges of some blocks, where they are nothing but pairs of numbers."""
        early = self.decoded.early
        if early is None or early.scatterer.is_stopped or not done:
            return done
        ends = [plain_ends(one.keyed, self.decoded.sources.edge_types[0]) for one in done]
        filled = [one for one in ends if one is not None]
        if len(filled) < len(ends):
            early.scatterer.is_stopped = True
            return done
        ranges = [one.ranges for one in done if one.ranges is not None]
        highs = (max([src.high for src, _ in ranges], default=-1), max([dst.high for _, dst in ranges], default=-1))
        segment = early.scatterer.scatter(filled, highs, sum(one.work.num_bytes for one in done))
        if segment is None:
            return done
        scattered = [replace(one, keyed=without_edges(one.keyed), is_scattered=True) for one in done]
        return [replace(scattered[0], segment=segment), *scattered[1:]]

    def _add_side(self, edges: RawEdges, side: int, texts: KeyedTexts | None) -> KeyedTexts | None:
        indexer = self.decoded.texts.get(self.decoded.spaces.of_end(edges.relation_names[0], side))
        name = _end_type(edges, side)
        code = UNKNOWN if name is None else self.type_codes.get(name)
        if texts is None or indexer is None or code is None:  # the first of its kind is for the thread that collects
            return texts
        indexer.add_ends(texts.keys, texts.offsets, texts.values, code, texts.rows)
        return texts.kept()

    def _items(self) -> Generator[_Work]:
        """Yield what there is to do, span after span; tables that follow each other are read at once, and compressed texts."""
        settings = self.settings
        spans = enumerate(self.decoded.sources.spans)
        for kind, group in groupby(spans, self._kind_of):
            if kind == "table" and settings.engine.is_apart:
                yield from self._apart_items(list(group))
                continue
            if kind == "packed":
                yield from self._packed_items(list(group))
                continue
            if kind == "table":
                tables = [partial(self._table_items, *one) for one in group]
                yield from chain_ordered(tables, settings.threads if self._may_read_ahead() else 1)
                continue
            for number, span in group:
                if number in self.plain:
                    yield _Work(number, 0, None)
                    continue
                blocks = text_blocks(self.run.storage, span, settings.block_bytes, settings.limit_bytes)
                for index, block in enumerate(blocks):
                    yield _Work(number, index, block, num_bytes=block.num_bytes)

    def _kind_of(self, one: tuple[int, Span]) -> str:
        """Return whether spans beside each other are read several at a time, and how."""
        number, span = one
        if span.kind == "table":
            return "" if number in self.plain else "table"
        # A stream, or in an archive whose files share a handle.
        is_alone = self.run.storage.is_spooled(span.url) or "::" in span.url
        return "packed" if is_packed(span.url) and not is_alone else ""

    def _packed_items(self, group: Sequence[tuple[int, Span]]) -> Generator[_Work]:
        """Read compressed texts, several at a time where memory and threads are enough for that."""
        settings = self.settings
        from graphprep.convert.read.ahead import num_readers, read_several

        readers = min(num_readers(self.run.pool, settings.threads), len(group))
        texts = [partial(text_blocks, self.run.storage, span, settings.block_bytes, settings.limit_bytes) for _, span in group]
        counts = [0] * len(group)
        one_by_one = ((at, block) for at, text in enumerate(texts) for block in text())
        with contextlib.closing(one_by_one if readers < 2 else read_several(texts, self.run.pool, readers)) as blocks:
            for at, block in blocks:
                yield _Work(group[at][0], counts[at], block, num_bytes=block.num_bytes)
                counts[at] += 1

    def _apart_items(self, tables: Sequence[tuple[int, Span]]) -> Generator[_Work]:
        """Let other processes read tables, each into a file of its own, and yield what they found; streams are read here."""
        from graphprep.convert.read.apart import ApartTask, Reading, read_found

        settings, folder = self.settings, PrivateFolder(self.run.storage.tmp_dir)
        reading = Reading(settings.block_bytes, settings.limit_bytes, settings.max_rows)

        def decode(table: tuple[int, Span]) -> tuple[tuple[int, Span], StoredSegment | None]:
            if self.run.storage.is_spooled(table[1].url):
                return table, None
            name = f"table-{table[0]}"
            task = ApartTask((table,), self.blocks, reading, settings.room_bytes, self.run.storage, folder.make(), name)
            return table, settings.engine.run(task)

        try:
            for table in tables:
                self.run.storage.watch(table[1].url)
            folder.make()  # once, before threads ask for it
            for table, segment in map_ordered(decode, tables, settings.engine.num_workers):
                if segment is None:
                    yield from self._table_items(*table)
                    continue
                for block in read_found(self.run.storage, folder.make(), segment):
                    yield _Work(block.span, block.block, None, num_bytes=block.num_bytes, found=block.found)
                Path(folder.make(), segment.name).unlink()
        finally:
            folder.remove()

    def _found_items(self, blocks: Iterator[FoundBlock]) -> Generator[_Work]:
        """Yield what was decoded elsewhere, and the columns that stay in their files where these come in the input."""
        left = sorted(self.plain, reverse=True)
        for block in blocks:
            while left and left[-1] < block.span:
                yield _Work(left.pop(), 0, None)
            yield _Work(block.span, block.block, None, num_bytes=block.num_bytes, found=block.found)
        yield from (_Work(number, 0, None) for number in reversed(left))

    def _may_read_ahead(self) -> bool:
        """Return whether several tables may be read at a time: each takes memory, and remote ones are fetched ahead anyway."""
        spans = self.decoded.sources.spans
        return self.settings.text_bytes >= _AHEAD_BYTES and all(self.run.storage.is_local(span.url) for span in spans)

    def _table_items(self, number: int, span: Span) -> Iterator[_Work]:
        settings = self.settings
        room_bytes = settings.room_bytes
        tables = read_table(
            self.decoded.decoder, self.run.storage, span, settings.max_rows, settings.skip, room_bytes=room_bytes
        )
        for index, (rows, bad, _) in enumerate(tables):
            yield _Work(number, index, None, rows, num_bytes=raw_bytes(rows), bad=tuple(bad))

    def _collect(self, done: _Done) -> None:
        decoded, work = self.decoded, done.work
        records, num_bytes = 0, work.num_bytes
        if done.segment is not None and decoded.early is not None:
            decoded.early.add(done.segment, decoded.num_edges)
        if done.keyed is not None:
            records = done.keyed.rows.num_records
            self._store(done, done.keyed)
        elif work.span in self.plain:
            records, num_bytes = self._leave(work.span)
        decoded.num_records += records
        decoded.input_bytes += num_bytes
        if done.bad and self.run.rejects is not None:
            self.run.rejects.add(done.bad)
        self.run.reporter.advance(records=records, num_bytes=num_bytes)

    def _store(self, done: _Done, keyed: KeyedRows) -> None:
        decoded, work, rows = self.decoded, done.work, keyed.rows
        span = decoded.sources.spans[work.span]
        for text, count in rows.warnings.items():
            decoded.warnings[text] = decoded.warnings.get(text, 0) + count
        for aligned in rows.aligned:
            self._store_aligned(aligned)
            self.span_rows[work.span] = self.span_rows.get(work.span, 0) + aligned.num_rows
        if done.ranges is not None and span.id_columns is not None:
            self._note_ranges(span.id_columns, keyed.src is not None, done.ranges)
        # In tables, columns of one name in different types have nothing to do with each other.
        group = span.role if decoded.sources.nodes == "tables" else ""
        node_columns = () if rows.nodes is None else self._store_nodes(rows.nodes, group)
        codes: tuple[int, ...] = (0,) if done.is_scattered else ()  # then all are of the only relation
        edge_columns: tuple[BatchColumn, ...] = ()
        if rows.edges is not None:
            codes = tuple(map(self._relation_code, rows.edges.relation_names))
            edge_columns = self._store_edges(rows.edges, codes, group)
        num_nodes = rows.nodes.ids.size if rows.nodes else 0
        if rows.nodes is not None and num_nodes:
            self._store_node_texts(work, rows.nodes, keyed.nodes)
        if done.num_edges:
            self._store_end_texts(work, rows.edges, keyed)
        if not rows.aligned:
            self.span_rows[work.span] = self.span_rows.get(work.span, 0) + done.num_edges
        decoded.batches.append(
            Batch(
                span=work.span,
                block=work.block,
                first_node=decoded.num_nodes,
                num_nodes=num_nodes,
                first_edge=decoded.num_edges,
                num_edges=done.num_edges,
                node_columns=node_columns,
                edge_columns=edge_columns,
                relation=codes[0] if len(codes) == 1 else None,
                codes=codes,
                declares=rows.nodes is None or rows.nodes.declares,
                is_scattered=done.is_scattered,
                ranges=done.ranges,
            )
        )
        decoded.num_nodes += num_nodes
        decoded.num_edges += done.num_edges

    def _note_ranges(self, names: tuple[str, str], are_texts: bool, ranges: tuple[IdRange, IdRange]) -> None:
        """Note the ranges of IDs in columns that are read as one ID space, block by block."""
        known = self.decoded.id_columns.get(names)
        if known is not None:
            ranges = known.ranges[0].join(ranges[0]), known.ranges[1].join(ranges[1])
        self.decoded.id_columns[names] = IdColumns(names, are_texts if known is None else known.are_texts, ranges)

    def _store_nodes(self, nodes: RawNodes, group: str) -> tuple[BatchColumn, ...]:
        ids = cast("NDArray[np.uint64]", nodes.ids)
        codes = np.array([self._type_code(name) for name in nodes.type_names], np.int32)
        if ids.size:
            self.decoded.nodes.append(0, BatchNodes(ids, codes[nodes.types], nodes.num_slots))
        return self._store_columns(self.decoded.node_columns, nodes.columns, ids.size, group)

    def _store_edges(self, edges: RawEdges, codes: tuple[int, ...], group: str) -> tuple[BatchColumn, ...]:
        src, dst = cast("tuple[NDArray[Any], NDArray[Any]]", (edges.src, edges.dst))
        num_slots = edges.num_slots
        if num_slots is not None and not num_slots.any():
            num_slots = None  # as of most edges: then they need not travel
        if src.size:
            relations = None if len(codes) == 1 else np.array(codes, np.int32)[edges.relations]
            self.decoded.edges.append(0, RawBatchEdges(src, dst, relations, num_slots))
        return self._store_columns(self.decoded.edge_columns, edges.columns, src.size, group) if edges.columns else ()

    def _store_end_texts(self, work: _Work, edges: RawEdges | None, keyed: KeyedRows) -> None:
        """Keep the texts of ends in their ID spaces, and note whether these hold texts or, as scattered edges do, numbers."""
        relation = self.decoded.relations[0] if edges is None else edges.relation_names[0]
        spaces = self.decoded.spaces.of_end(relation, 0), self.decoded.spaces.of_end(relation, 1)
        for side, (space, texts) in enumerate(zip(spaces, (keyed.src, keyed.dst), strict=True)):
            self._note_kind(work, space, texts)
            if texts is not None and edges is not None and texts.keys.size:
                name = _end_type(edges, side)
                code = UNKNOWN if name is None else self._type_code(name)
                self._texts(space).add_ends(texts.keys, texts.offsets, texts.values, code, texts.rows)
        if self.decoded.hashes is not None:
            hashes = (None if texts is None else texts.hashes for texts in (keyed.src, keyed.dst))
            self.decoded.hashes.append(0, EndHashes(*hashes))

    def _store_node_texts(self, work: _Work, nodes: RawNodes, texts: KeyedTexts | None) -> None:
        """Keep the texts of nodes, by the ID spaces of their types."""
        records = np.arange(self.decoded.num_nodes, self.decoded.num_nodes + nodes.num_rows, dtype=np.int64)
        if not nodes.declares:
            records[:] = -1
        codes = np.array([self._type_code(name) for name in nodes.type_names], np.int32)[nodes.types]
        spaces: dict[str, list[int]] = {}
        for code in np.flatnonzero(np.bincount(codes)).tolist():
            spaces.setdefault(self.decoded.spaces.of_type(self.decoded.node_types[code]), []).append(code)
        for space, own in spaces.items():
            self._note_kind(work, space, texts)
            if texts is None:
                continue
            rows = np.arange(codes.size) if len(spaces) == 1 else np.flatnonzero(np.isin(codes, own))
            offsets, values = take_texts(texts.offsets, texts.values, rows)
            self._texts(space).add_declared(texts.keys[rows], offsets, values, codes[rows], records[rows])

    def _texts(self, space: str) -> TextIndexer:
        if space not in self.decoded.texts:
            is_roomy = self.text_bytes >= _LEAST_SHARDED_BYTES and len(self.decoded.sources.node_types) <= _FEW_TYPES
            shards = _TEXT_SHARDS if is_roomy else 1
            self.decoded.texts[space] = TextIndexer(self.run.pool, self.text_bytes, shards, self.settings.threads)
        return self.decoded.texts[space]

    def _note_kind(self, work: _Work, space: str, texts: KeyedTexts | None) -> None:
        """Note whether a space holds texts.

        Raises DataError where it holds numbers as well.
        """
        kind = self.kinds.get(space)
        if kind is None:
            kind = self.kinds[space] = _Kind(texts is not None, self.decoded.sources.spans[work.span].url)
        if kind.are_texts != (texts is not None):
            words = ("numbers", "strings")
            raise DataError(
                f"raw IDs of {f'node type {space!r}' if space else 'all types'} are {words[texts is not None]} here, "
                f"but {words[kind.are_texts]} in {display_url(kind.url)}",
                place=display_url(self.decoded.sources.spans[work.span].url),
                fix="read them all as strings with --id-type string, or make them alike in the files",
            )
        if texts is not None and space in self.integers:
            self.integers[space] = self.integers[space] and texts.are_integers

    def _store_columns(
        self, runs: Runs[BatchCells], chunks: tuple[ColumnChunk, ...], num_rows: int, group: str
    ) -> tuple[BatchColumn, ...]:
        held = []
        found = []
        for chunk in chunks:
            if chunk.key.slot is None and chunk.key.role is None:
                self._check_family(chunk, group)
            column = self._observe(chunk)
            found.append(column)
            held.append((None if chunk.rows.size == num_rows else chunk.rows, cells_of(chunk, column.shape_code)))
        if held and num_rows:
            runs.append(0, BatchCells(tuple(held)))
        return tuple(found)

    def _store_aligned(self, aligned: AlignedColumn) -> None:
        owner = aligned.owner if isinstance(aligned.owner, Relation) else str(aligned.owner)
        key = (owner, aligned.chunk.key)
        runs = self.decoded.aligned.get(key)
        if runs is None:
            share = column_share(self.settings.text_bytes, len(self.decoded.sources.spans))
            runs = self.decoded.aligned[key] = AlignedRuns(self.run.pool, share)
        assert isinstance(runs, AlignedRuns)
        column = self._observe(aligned.chunk)
        if column.scalar:
            self.decoded.aligned_scalars.add(key)
        runs.append(aligned, column.shape_code)

    def _leave(self, number: int) -> tuple[int, int]:
        """Note a span whose rows stay in their file; return their number, and their size in bytes."""
        column, array = self.plain[number], self.decoded.sources.spans[number].array
        assert array is not None
        key = (array.owner, array.key)
        column.shape_code = self.decoded.shapes.setdefault(array.key, ShapeList()).code(array.item_shape)
        self.decoded.aligned[key] = column
        if array.item_shape == ():
            self.decoded.aligned_scalars.add(key)
        num_bytes = array.num_rows * column.row_bytes
        self.decoded.column_bytes[array.key] = self.decoded.column_bytes.get(array.key, 0) + num_bytes
        self.span_rows[number] = array.num_rows
        return array.num_rows, num_bytes

    def _observe(self, chunk: ColumnChunk) -> BatchColumn:
        key = chunk.key
        code = 0
        if chunk.item_shape is not None and len(chunk.item_shape) > 1:
            code = self.decoded.shapes.setdefault(key, ShapeList()).code(chunk.item_shape)
        size = self.decoded.column_bytes.get(key, 0)
        for array in (chunk.values, chunk.counts, chunk.coords, chunk.rows):
            size += 0 if array is None else array.nbytes
        self.decoded.column_bytes[key] = size
        column = BatchColumn(key, code, chunk.item_shape == (), bool(chunk.rows.size))
        return self.columns.setdefault(column, column)  # all batches share it: there may be thousands of columns

    def _check_family(self, chunk: ColumnChunk, group: str) -> None:
        """Ask for another start where an input column of a group holds numbers here and text there."""
        key = chunk.key
        if chunk.rows.size or chunk.guess is not None:
            families = self.families.setdefault((group, key.name), set())
            families.add(chunk.guess or key.family)
            if chunk.nulls:
                families.add("nulls")
            if _is_text(families):
                self._widen(_is_text)

    def _widen(self, are_text: Callable[[set[str]], bool]) -> None:
        """Start again where there are columns whose cells ``are_text``, with these as text."""
        mixed = [f"{role}/{name}" if role else name for (role, name), seen in self.families.items() if are_text(seen)]
        if mixed:
            raise WidenError(dict.fromkeys(mixed, "binary"))

    def _type_code(self, name: str) -> int:
        if name not in self.type_codes:
            if len(self.type_codes) >= _MOST_TYPES:
                raise _too_many("node types", name, "--type-col")
            self.type_codes[name] = len(self.decoded.node_types)
            self.decoded.node_types.append(name)
        return self.type_codes[name]

    def _relation_code(self, relation: Relation) -> int:
        if relation not in self.relation_codes:
            if len(self.relation_codes) >= _MOST_TYPES:
                raise _too_many("relations", relation.name, "--relation-col")
            self.relation_codes[relation] = len(self.decoded.relations)
            self.decoded.relations.append(relation)
        return self.relation_codes[relation]


def _is_text(families: set[str]) -> bool:
    """Return whether cells of these kinds make a column text that is not text alone."""
    return len(families - {"nulls"}) > 1 or families == {"binary", "nulls"}


def _goes_on(item: _Work, storage: Storage, sources: Sources) -> bool:
    """Return whether nobody has to wait for the block behind a block: a stream may be at rest for long."""
    if isinstance(item.data, StoredBlock):
        return item.data.next_comes(_PATIENCE_S)
    return not storage.is_arriving(sources.spans[item.span].url)


def _end_type(edges: RawEdges, side: int) -> str | None:
    """Return the type of all sources (side 0) or destinations (1); None where they may have several, or none is known."""
    types = {relation.dst_type if side else relation.src_type for relation in edges.relation_names}
    return types.pop() if len(types) == 1 else None


def _too_many(words: str, name: str, flag: str) -> DataError:
    """Refuse what can only be a mistake: each type has folders and files of its own."""
    return DataError(
        f"more than {_MOST_TYPES} {words}; one too many is {name[:100]!r}",
        fix=f"each becomes a type with files of its own: is this the right column ({flag}), the right format?",
    )


def check_counts(decoded: Decoded, span_rows: dict[int, int]) -> None:
    """Compare the rows of every span, and the edges of every type, with what the metadata promised."""
    sources = decoded.sources
    fix = "correct the counts in the metadata, or supply the missing rows"
    for number, span in enumerate(sources.spans):
        found = span_rows.get(number, 0)
        if span.expect_rows is not None and found != span.expect_rows:
            by = f" ({span.expect_by})" if span.expect_by else ""
            place = display_url(span.url)
            raise DataError(f"{found} rows, but {span.expect_rows} were promised{by}", place=place, fix=fix)
    if sources.num_edges is None:
        return
    counts = [0] * len(decoded.relations)
    for batch in decoded.batches:
        if batch.num_edges:
            counts[batch.relation or 0] += batch.num_edges
    said = sources.num_edges_by or [""] * len(sources.num_edges)
    for relation, promised, found, by in zip(sources.edge_types, sources.num_edges, counts, said, strict=False):
        if promised is not None and found != promised:
            name = f"{relation.src_type}:{relation.name}:{relation.dst_type}"
            if by:
                words = f"{promised} rows, but edge type {name!r} has {found} edges"
                raise DataError(words, place=by, fix="give every edge a row, in the order of the input")
            raise DataError(f"edge type {name!r} has {found} edges, but {promised} were promised", fix=fix)
