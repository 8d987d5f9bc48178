"""Decode spans into raw rows, batch by batch, in input order; skip bad records; keep what comes in runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.model.errors import BadRecord, DataError, DecodeError
from graphprep.model.protocols import Decoder, Reporter, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows, Relation
from graphprep.stages.cells import cells_of
from graphprep.stages.rejects import Rejects
from graphprep.storage.faults import display_url
from graphprep.storage.runs import Runs, SpillPool
from graphprep.storage.spans import place_of, places_of, text_blocks

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage

# Around faults a block is tried in pieces, small ones where faults are close to each other: each costs a piece, not a block.
_LEAST_TRY_BYTES = 1 << 10
_MOST_TRY_BYTES = 1 << 16


@dataclass(frozen=True)
class BatchColumn:
    """One column chunk of a batch: its key, the code of its N-D shape (0: 0-D or 1-D), and whether its values are 0-D."""

    key: ColumnKey
    shape_code: int
    scalar: bool = False


@dataclass(frozen=True)
class Batch:
    """Where a batch came from and what it holds. Node and edge numbers count all records of the input."""

    span: int
    block: int
    first_node: int
    num_nodes: int
    first_edge: int
    num_edges: int
    node_columns: tuple[BatchColumn, ...]
    edge_columns: tuple[BatchColumn, ...]
    relation: int | None


@dataclass
class ShapeList:
    """The N-D shapes that a column's values take, in the order in which they were met."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def code(self, shape: tuple[int, ...] | None) -> int:
        """Return 0 for a scalar or a list, else 1 + the shape's position."""
        if shape is None or len(shape) < 2:
            return 0
        if shape not in self.shapes:
            self.shapes.append(shape)
        return 1 + self.shapes.index(shape)


class WidenError(Exception):
    """Columns turned out to hold text: decoding must start again with these dtypes."""

    def __init__(self, columns: dict[str, str]) -> None:
        super().__init__(columns)
        self.columns = columns


@dataclass
class DecodeSettings:
    """How the decode stage works."""

    block_bytes: int
    limit_bytes: int
    max_rows: int
    threads: int
    skip: bool


@dataclass
class Decoded:
    """All rows of the input, as decoded.

    ``nodes`` holds (ids, types, num_slots) a batch, ``edges`` (src, dst, relations or None, num_slots); the column runs
    hold for each ``BatchColumn`` its rows (None: all of the batch) followed by ``Cells.arrays()``. ``aligned`` holds
    (rows, cells) by owner and key.
    """

    sources: Sources
    decoder: Decoder
    nodes: Runs
    edges: Runs
    node_columns: Runs
    edge_columns: Runs
    aligned: dict[tuple[str | Relation, ColumnKey], Runs] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    node_types: list[str] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    shapes: dict[ColumnKey, ShapeList] = field(default_factory=dict)
    column_bytes: dict[ColumnKey, int] = field(default_factory=dict)
    aligned_scalars: set[tuple[str | Relation, ColumnKey]] = field(default_factory=set)
    num_nodes: int = 0
    num_edges: int = 0
    num_records: int = 0
    input_bytes: int = 0
    warnings: dict[str, int] = field(default_factory=dict)


def _run(pool: SpillPool) -> Runs:
    """Open runs whose chunks must come back as they went in."""
    return Runs(pool, 1, coalesce=False)


def decode_all(
    decoder: Decoder,
    sources: Sources,
    storage: Storage,
    pool: SpillPool,
    settings: DecodeSettings,
    reporter: Reporter,
    rejects: Rejects,
) -> Decoded:
    """Decode every span, restarting where a column turns out to hold text. Rejected records are added to ``rejects``.

    Raises DataError with file, line and column for the first faulty record, unless ``settings.skip``.
    """
    widened: dict[str, str] = {}
    while True:
        rejects.clear()
        decoded = Decoded(sources, decoder, _run(pool), _run(pool), _run(pool), _run(pool))
        try:
            _Collector(decoded, pool, settings, reporter, rejects).run(storage)
            return decoded
        except WidenError as error:
            widened.update(error.columns)
            decoder = decoder.widen(error.columns)
            reporter.message(f"column {', '.join(map(repr, error.columns))} holds text: decoding again with it as text")
            for runs in (decoded.nodes, decoded.edges, decoded.node_columns, decoded.edge_columns, *decoded.aligned.values()):
                runs.close()


@dataclass(frozen=True)
class _Work:
    """A block to decode, or rows that a table's reader already made."""

    span: int
    block: int
    data: TextBlock | None
    rows: RawRows | None = None
    num_bytes: int = 0
    bad: tuple[BadRecord, ...] = ()


@dataclass(frozen=True)
class _Done:
    work: _Work
    rows: RawRows | None
    bad: tuple[BadRecord, ...]


class _Collector:
    """Pulls blocks, decodes them on threads, and stores the rows in input order."""

    def __init__(
        self, decoded: Decoded, pool: SpillPool, settings: DecodeSettings, reporter: Reporter, rejects: Rejects
    ) -> None:
        self.decoded = decoded
        self.rejects = rejects
        self.pool = pool
        self.settings = settings
        self.reporter = reporter
        self.type_codes: dict[str, int] = {}
        self.relation_codes: dict[Relation, int] = {}
        self.families: dict[str, set[str]] = {}
        self.span_rows: dict[int, int] = {}
        for declared in decoded.sources.node_types:
            self._type_code(declared.name)
        for relation in decoded.sources.edge_types:
            self._relation_code(relation)

    def run(self, storage: Storage) -> None:
        """Decode everything."""
        settings = self.settings
        decoder = self.decoded.decoder

        def work(item: _Work) -> _Done:
            if item.data is None:
                return _Done(item, item.rows, item.bad)
            decoded, bad = decode_block(decoder, item.data, settings.skip)
            return _Done(item, decoded.rows, tuple(bad))

        for done in map_ordered(work, self._items(storage), settings.threads):
            self._collect(done)
        check_counts(self.decoded, self.span_rows)

    def _items(self, storage: Storage) -> Iterator[_Work]:
        for number, span in enumerate(self.decoded.sources.spans):
            if span.kind == "table":
                yield from self._table_items(storage, number, span)
                continue
            blocks = text_blocks(storage, span, self.settings.block_bytes, self.settings.limit_bytes)
            for index, block in enumerate(blocks):
                yield _Work(number, index, block, num_bytes=len(block.data))

    def _table_items(self, storage: Storage, number: int, span: Span) -> Iterator[_Work]:
        settings = self.settings
        tables = read_table(self.decoded.decoder, storage, span, settings.max_rows, settings.skip)
        for index, (rows, bad, _) in enumerate(tables):
            yield _Work(number, index, None, rows, num_bytes=_raw_bytes(rows), bad=tuple(bad))

    def _collect(self, done: _Done) -> None:
        decoded = self.decoded
        records = 0 if done.rows is None else done.rows.num_records
        if done.rows is not None:
            self._store(done.work, done.rows)
        decoded.num_records += records
        decoded.input_bytes += done.work.num_bytes
        for record in done.bad:
            self.rejects.add(record)
        self.reporter.advance(records=records, num_bytes=done.work.num_bytes)

    def _store(self, work: _Work, rows: RawRows) -> None:
        decoded = self.decoded
        for text, count in rows.warnings.items():
            decoded.warnings[text] = decoded.warnings.get(text, 0) + count
        for aligned in rows.aligned:
            self._store_aligned(aligned)
            self.span_rows[work.span] = self.span_rows.get(work.span, 0) + aligned.num_rows
        node_columns = self._store_nodes(rows.nodes)
        edge_columns, relation = self._store_edges(rows.edges)
        num_nodes = rows.nodes.num_rows if rows.nodes else 0
        num_edges = rows.edges.num_rows if rows.edges else 0
        if not rows.aligned:
            self.span_rows[work.span] = self.span_rows.get(work.span, 0) + num_edges
        decoded.batches.append(
            Batch(
                span=work.span,
                block=work.block,
                first_node=decoded.num_nodes,
                num_nodes=num_nodes,
                first_edge=decoded.num_edges,
                num_edges=num_edges,
                node_columns=node_columns,
                edge_columns=edge_columns,
                relation=relation,
            )
        )
        decoded.num_nodes += num_nodes
        decoded.num_edges += num_edges

    def _store_nodes(self, nodes: RawNodes | None) -> tuple[BatchColumn, ...]:
        if nodes is None:
            self.decoded.nodes.append(0, (np.zeros(0, np.uint64), np.zeros(0, np.int32), None))
            self.decoded.node_columns.append(0, ())
            return ()
        codes = np.array([self._type_code(name) for name in nodes.type_names], np.int32)
        self.decoded.nodes.append(0, (nodes.ids, codes[nodes.types], nodes.num_slots))
        return self._store_columns(self.decoded.node_columns, nodes.columns, nodes.num_rows)

    def _store_edges(self, edges: RawEdges | None) -> tuple[tuple[BatchColumn, ...], int | None]:
        if edges is None:
            none = np.zeros(0, np.uint64)
            self.decoded.edges.append(0, (none, none, None, None))
            self.decoded.edge_columns.append(0, ())
            return (), None
        codes = [self._relation_code(relation) for relation in edges.relation_names]
        relation = codes[0] if len(codes) == 1 else None
        relations = None if relation is not None else np.array(codes, np.int32)[edges.relations]
        self.decoded.edges.append(0, (edges.src, edges.dst, relations, edges.num_slots))
        return self._store_columns(self.decoded.edge_columns, edges.columns, edges.num_rows), relation

    def _store_columns(self, runs: Runs, chunks: tuple[ColumnChunk, ...], num_rows: int) -> tuple[BatchColumn, ...]:
        arrays: list[NDArray[np.generic] | None] = []
        found = []
        for chunk in chunks:
            self._check_family(chunk)
            column = self._observe(chunk)
            found.append(column)
            arrays.append(None if chunk.rows.size == num_rows else chunk.rows)
            arrays.extend(cells_of(chunk, column.shape_code).arrays())
        runs.append(0, tuple(arrays))
        return tuple(found)

    def _store_aligned(self, aligned: AlignedColumn) -> None:
        owner = aligned.owner if isinstance(aligned.owner, Relation) else str(aligned.owner)
        key = (owner, aligned.chunk.key)
        runs = self.decoded.aligned.get(key)
        if runs is None:
            runs = self.decoded.aligned[key] = _run(self.pool)
        column = self._observe(aligned.chunk)
        if column.scalar:
            self.decoded.aligned_scalars.add(key)
        runs.append(0, (aligned.chunk.rows + aligned.start, *cells_of(aligned.chunk, column.shape_code).arrays()))

    def _observe(self, chunk: ColumnChunk) -> BatchColumn:
        key = chunk.key
        shapes = self.decoded.shapes.setdefault(key, ShapeList())
        code = shapes.code(chunk.item_shape)
        size = sum(a.nbytes for a in (chunk.values, chunk.counts, chunk.coords, chunk.rows) if a is not None)
        self.decoded.column_bytes[key] = self.decoded.column_bytes.get(key, 0) + size
        return BatchColumn(key, code, scalar=chunk.item_shape == ())

    def _check_family(self, chunk: ColumnChunk) -> None:
        """Ask for another start where an input column holds numbers here and text there."""
        key = chunk.key
        if key.slot is None and key.role is None and chunk.rows.size:
            families = self.families.setdefault(key.name, set())
            families.add(key.family)
            if len(families) > 1:
                raise WidenError({name: "binary" for name, seen in self.families.items() if len(seen) > 1})

    def _type_code(self, name: str) -> int:
        if name not in self.type_codes:
            self.type_codes[name] = len(self.decoded.node_types)
            self.decoded.node_types.append(name)
        return self.type_codes[name]

    def _relation_code(self, relation: Relation) -> int:
        if relation not in self.relation_codes:
            self.relation_codes[relation] = len(self.decoded.relations)
            self.decoded.relations.append(relation)
        return self.relation_codes[relation]


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
    for relation, promised, found in zip(sources.edge_types, sources.num_edges, counts, strict=False):
        if promised is not None and found != promised:
            name = f"{relation.src_type}:{relation.name}:{relation.dst_type}"
            raise DataError(f"edge type {name!r} has {found} edges, but {promised} were promised", fix=fix)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Cuts:
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
        if not skip:
            raise _placed(block, error) from None
    good, bad = _sound_pieces(decoder, block)
    joined = replace(block, data=b"".join(block.data[start:stop] for start, stop in good))
    try:
        rows = decoder.decode(joined, places) if joined.data else RawRows()
    except DecodeError as error:  # the decoder does not keep its promise: sound lines are not sound together
        raise _placed(joined, error) from None
    origin = np.array([start for start, _ in good], np.int64)
    sizes = np.array([stop - start for start, stop in good], np.int64)
    return DecodedBlock(block, rows, Cuts(np.cumsum(sizes) - sizes, origin)), bad


def _sound_pieces(decoder: Decoder, block: TextBlock) -> tuple[list[tuple[int, int]], list[BadRecord]]:
    """Find the faulty lines of a block. Returns the pieces [start, stop) between them, and the reasons."""
    good: list[tuple[int, int]] = []
    bad: list[BadRecord] = []
    place = places_of(block)
    at, size = 0, _MOST_TRY_BYTES
    line = block.first_line
    while at < len(block.data):
        stop = _line_end(block.data, min(at + size, len(block.data)) - 1)
        part = TextBlock(block.data[at:stop], block.span, line, block.is_first and at == 0)
        size = min(4 * size, _MOST_TRY_BYTES)
        try:
            decoder.decode(part)
            good.append((at, stop))
        except DecodeError as error:
            start = part.data.rfind(b"\n", 0, min(error.at, len(part.data) - 1)) + 1
            bad.append(BadRecord(place(at + error.at), error.message))
            if start:
                good.append((at, at + start))
            stop = at + _line_end(part.data, start)
            size = _LEAST_TRY_BYTES
        line += block.data.count(b"\n", at, stop)
        at = stop
    return good, bad


def _line_end(data: bytes, at: int) -> int:
    """Return the position behind the line feed at or after ``at``."""
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end + 1


def _placed(block: TextBlock, error: DecodeError) -> DataError:
    return DataError(error.message, place=place_of(block, error.at), fix=error.fix)


def _raw_bytes(rows: RawRows | None) -> int:
    if rows is None:
        return 0
    arrays: list[NDArray[np.generic]] = []
    if rows.edges is not None:
        arrays += [rows.edges.src, rows.edges.dst]
    arrays += [aligned.chunk.values for aligned in rows.aligned]
    return sum(array.nbytes for array in arrays)


def read_table(
    decoder: Decoder, storage: Storage, span: Span, max_rows: int, skip: bool, places: bool = False
) -> Iterator[tuple[RawRows | None, list[BadRecord], int]]:
    """Read a table span in batches: (rows, rejected records, first row). With ``skip``, faulty rows are read around."""
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
