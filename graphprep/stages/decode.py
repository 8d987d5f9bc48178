"""Decode spans into raw rows, batch by batch, in input order; skip bad records; keep what comes in runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.texts import take_texts
from graphprep.model.errors import BadRecord, DataError, DecodeError
from graphprep.model.protocols import Decoder, Reporter, SettlesIds, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows, RawTexts, Relation
from graphprep.stages.cells import cells_of
from graphprep.stages.keys import IdSpaces, KeyedRows, KeyedTexts, ids_of, key_rows
from graphprep.stages.rejects import Rejects
from graphprep.stages.texts import UNKNOWN, KeyCollisionError, TextIndexer
from graphprep.storage.faults import display_url
from graphprep.storage.runs import Runs, SpillPool
from graphprep.storage.spans import place_of, places_of, record_ends_of, text_blocks

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
    has_values: bool = True


@dataclass(frozen=True)
class Batch:
    """Where a batch came from and what it holds. Node and edge numbers count all records of the input.

    ``relation`` is the code of the only relation, None where there are several; ``codes`` are those of all. ``declares``: its
    nodes are declared by it.
    """

    span: int
    block: int
    first_node: int
    num_nodes: int
    first_edge: int
    num_edges: int
    node_columns: tuple[BatchColumn, ...]
    edge_columns: tuple[BatchColumn, ...]
    relation: int | None
    codes: tuple[int, ...] = ()
    declares: bool = True


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


class _IntegersError(Exception):
    """Texts of these ID spaces turned out to be integers throughout: decoding must start again with them as such."""

    def __init__(self, spaces: list[str]) -> None:
        super().__init__(spaces)
        self.spaces = spaces


@dataclass
class DecodeSettings:
    """How the decode stage works. ``text_bytes`` bounds what is held of texts that are raw IDs, before they are sorted."""

    block_bytes: int
    limit_bytes: int
    max_rows: int
    threads: int
    skip: bool
    text_bytes: int = 1 << 26


@dataclass(frozen=True)
class _Kind:
    """Whether the raw IDs of a space are texts, and the first file that says so."""

    are_texts: bool
    url: str


@dataclass
class Decoded:
    """All rows of the input, as decoded.

    ``nodes`` holds (ids, types, num_slots) a batch, ``edges`` (src, dst, relations or None, num_slots); the column runs
    hold for each ``BatchColumn`` its rows (None: all of the batch) followed by ``Cells.arrays()``. ``aligned`` holds
    (rows, cells) by owner and key.

    Raw IDs that are texts stand as keys; ``texts`` has them by ID space. With a ``text_seed`` the keys are not h of STORE.md:
    then ``hashes`` holds (of sources, of destinations) a batch, None where the keys are numbers.
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
    text_seed: int = 0
    texts: dict[str, TextIndexer] = field(default_factory=dict)
    hashes: Runs | None = None
    num_nodes: int = 0
    num_edges: int = 0
    num_records: int = 0
    input_bytes: int = 0
    warnings: dict[str, int] = field(default_factory=dict)

    @cached_property
    def spaces(self) -> IdSpaces:
        """Return the ID spaces of types and relations."""
        return IdSpaces(self.sources)

    def close(self) -> None:
        """Drop all rows."""
        for runs in (self.nodes, self.edges, self.node_columns, self.edge_columns, *self.aligned.values()):
            runs.close()
        if self.hashes is not None:
            self.hashes.close()
        for texts in self.texts.values():
            texts.close()


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
    replan: Callable[[Decoder], Sources] | None = None,
    text_seed: int = 0,
) -> Decoded:
    """Decode every span, starting again where a column turns out to hold text, or names to be integers.

    ``replan`` deals out spans for the decoder that then takes over (None: the same ones do). Rejected records are added to
    ``rejects``. Raises DataError with file, line and column for the first faulty record, unless ``settings.skip``.
    """
    while True:
        rejects.clear()
        decoded = Decoded(sources, decoder, _run(pool), _run(pool), _run(pool), _run(pool), text_seed=text_seed)
        decoded.hashes = _run(pool) if text_seed else None
        try:
            _Collector(decoded, pool, settings, reporter, rejects).run(storage)
            return decoded
        except WidenError as error:
            decoder = decoder.widen(error.columns)
            reporter.message(f"column {', '.join(map(repr, error.columns))} holds text: decoding again with it as text")
            stale = sources.nodes == "tables" or getattr(decoder, "replans", False)
        except _IntegersError as error:
            decoder = cast(SettlesIds, decoder).settle_ids(error.spaces)
            named = ", ".join(repr(space) if space else "all types" for space in error.spaces)
            reporter.message(f"all raw IDs of {named} are integers: decoding again with them as integers")
            stale = True
        except KeyCollisionError:
            text_seed += 1
            stale = False
        decoded.close()
        sources = replan(decoder) if stale and replan is not None else sources


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
    keyed: KeyedRows | None
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
        self.families: dict[tuple[str, str], set[str]] = {}
        self.span_rows: dict[int, int] = {}
        self.kinds: dict[str, _Kind] = {}
        self.integers = dict.fromkeys(decoded.sources.auto_ids, True)
        self.text_bytes = settings.text_bytes // max(1, len({node.space or node.name for node in decoded.sources.node_types}))
        for declared in decoded.sources.node_types:
            self._type_code(declared.name)
        for relation in decoded.sources.edge_types:
            self._relation_code(relation)

    def run(self, storage: Storage) -> None:
        """Decode everything."""
        settings = self.settings
        decoder = self.decoded.decoder

        seed = self.decoded.text_seed

        def work(item: _Work) -> _Done:
            rows, bad = item.rows, item.bad
            if item.data is not None:
                decoded, faults = decode_block(decoder, item.data, settings.skip)
                rows, bad = decoded.rows, tuple(faults)
            return _Done(item, None if rows is None else key_rows(rows, seed), bad)

        for done in map_ordered(work, self._items(storage), settings.threads):
            self._collect(done)
        check_counts(self.decoded, self.span_rows)
        settled = [space for space, are_integers in self.integers.items() if are_integers and space in self.kinds]
        if settled and isinstance(decoder, SettlesIds):
            raise _IntegersError(settled)

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
        records = 0 if done.keyed is None else done.keyed.rows.num_records
        if done.keyed is not None:
            self._store(done.work, done.keyed)
        decoded.num_records += records
        decoded.input_bytes += done.work.num_bytes
        for record in done.bad:
            self.rejects.add(record)
        self.reporter.advance(records=records, num_bytes=done.work.num_bytes)

    def _store(self, work: _Work, keyed: KeyedRows) -> None:
        decoded = self.decoded
        rows = keyed.rows
        for text, count in rows.warnings.items():
            decoded.warnings[text] = decoded.warnings.get(text, 0) + count
        for aligned in rows.aligned:
            self._store_aligned(aligned)
            self.span_rows[work.span] = self.span_rows.get(work.span, 0) + aligned.num_rows
        # In tables, columns of one name in different types have nothing to do with each other.
        group = decoded.sources.spans[work.span].role if decoded.sources.nodes == "tables" else ""
        node_columns = self._store_nodes(rows.nodes, group)
        edge_columns, codes = self._store_edges(rows.edges, group)
        self._store_texts(work, keyed)
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
                relation=codes[0] if len(codes) == 1 else None,
                codes=codes,
                declares=rows.nodes is None or rows.nodes.declares,
            )
        )
        decoded.num_nodes += num_nodes
        decoded.num_edges += num_edges

    def _store_nodes(self, nodes: RawNodes | None, group: str) -> tuple[BatchColumn, ...]:
        if nodes is None:
            self.decoded.nodes.append(0, (np.zeros(0, np.uint64), np.zeros(0, np.int32), None))
            self.decoded.node_columns.append(0, ())
            return ()
        codes = np.array([self._type_code(name) for name in nodes.type_names], np.int32)
        self.decoded.nodes.append(0, (ids_of(nodes), codes[nodes.types], nodes.num_slots))
        return self._store_columns(self.decoded.node_columns, nodes.columns, nodes.num_rows, group)

    def _store_edges(self, edges: RawEdges | None, group: str) -> tuple[tuple[BatchColumn, ...], tuple[int, ...]]:
        if edges is None:
            none = np.zeros(0, np.uint64)
            self.decoded.edges.append(0, (none, none, None, None))
            self.decoded.edge_columns.append(0, ())
            return (), ()
        codes = tuple(self._relation_code(relation) for relation in edges.relation_names)
        relations = None if len(codes) == 1 else np.array(codes, np.int32)[edges.relations]
        self.decoded.edges.append(0, (ids_of(edges, 0), ids_of(edges, 1), relations, edges.num_slots))
        return self._store_columns(self.decoded.edge_columns, edges.columns, edges.num_rows, group), codes

    def _store_texts(self, work: _Work, keyed: KeyedRows) -> None:
        """Keep the texts of a batch in its ID spaces, and note whether these hold texts or numbers."""
        nodes, edges = keyed.rows.nodes, keyed.rows.edges
        if nodes is not None and nodes.num_rows:
            self._store_node_texts(work, nodes, keyed.nodes)
        if edges is not None and edges.num_rows:
            relations = edges.relation_names
            for side, texts in enumerate((keyed.src, keyed.dst)):
                space = self.decoded.spaces.of_end(relations[0], side)
                self._note_kind(work, space, texts)
                if texts is not None:
                    types = {relation.dst_type if side else relation.src_type for relation in relations}
                    name = types.pop() if len(types) == 1 else None
                    code = UNKNOWN if name is None else self._type_code(name)
                    self._texts(space).add_ends(texts.keys, texts.offsets, texts.values, code)
        if self.decoded.hashes is not None:
            hashes = tuple(None if texts is None else texts.hashes for texts in (keyed.src, keyed.dst))
            self.decoded.hashes.append(0, hashes)

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
            self.decoded.texts[space] = TextIndexer(self.pool, self.text_bytes)
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

    def _store_columns(self, runs: Runs, chunks: tuple[ColumnChunk, ...], num_rows: int, group: str) -> tuple[BatchColumn, ...]:
        arrays: list[NDArray[np.generic] | None] = []
        found = []
        for chunk in chunks:
            self._check_family(chunk, group)
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
        return BatchColumn(key, code, chunk.item_shape == (), bool(chunk.rows.size))

    def _check_family(self, chunk: ColumnChunk, group: str) -> None:
        """Ask for another start where an input column of a group holds numbers here and text there."""
        key = chunk.key
        if key.slot is None and key.role is None and chunk.rows.size:
            families = self.families.setdefault((group, key.name), set())
            families.add(key.family)
            if len(families) > 1:
                mixed = [(role, name) for (role, name), seen in self.families.items() if len(seen) > 1]
                raise WidenError({f"{role}/{name}" if role else name: "binary" for role, name in mixed})

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
    said = sources.num_edges_by or [""] * len(sources.num_edges)
    for relation, promised, found, by in zip(sources.edge_types, sources.num_edges, counts, said, strict=False):
        if promised is not None and found != promised:
            name = f"{relation.src_type}:{relation.name}:{relation.dst_type}"
            if by:
                words = f"{promised} rows, but edge type {name!r} has {found} edges"
                raise DataError(words, place=by, fix="give every edge a row, in the order of the input")
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
    """Find the faulty records of a block. Returns the pieces [start, stop) between them, and the reasons."""
    good: list[tuple[int, int]] = []
    bad: list[BadRecord] = []
    place = places_of(block)
    ends = record_ends_of(block)
    at, size = 0, _MOST_TRY_BYTES
    line = block.first_line
    while at < len(block.data):
        stop = _record_end(ends, min(at + size, len(block.data)) - 1)
        part = TextBlock(block.data[at:stop], block.span, line, block.is_first and at == 0)
        size = min(4 * size, _MOST_TRY_BYTES)
        try:
            decoder.decode(part)
            good.append((at, stop))
        except DecodeError as error:
            stop = _record_end(ends, min(at + error.at, stop - 1))
            start = _record_start(ends, stop)
            bad.append(BadRecord(place(at + error.at), error.message))
            if start > at:
                good.append((at, start))
            size = _LEAST_TRY_BYTES
        line += block.data.count(b"\n", at, stop)
        at = stop
    return good, bad


def _record_end(ends: NDArray[np.int64], at: int) -> int:
    """Return the position behind the record that holds a byte."""
    return int(ends[np.searchsorted(ends, at, side="right")])


def _record_start(ends: NDArray[np.int64], end: int) -> int:
    """Return where the record begins that ends at ``end``."""
    number = int(np.searchsorted(ends, end))
    return int(ends[number - 1]) if number else 0


def _placed(block: TextBlock, error: DecodeError) -> DataError:
    return DataError(error.message, place=place_of(block, error.at), fix=error.fix)


def _raw_bytes(rows: RawRows | None) -> int:
    if rows is None:
        return 0
    arrays: list[NDArray[np.generic]] = []
    ids = [] if rows.edges is None else [rows.edges.src, rows.edges.dst]
    ids += [] if rows.nodes is None else [rows.nodes.ids]
    arrays += [one.values if isinstance(one, RawTexts) else one for one in ids]
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
