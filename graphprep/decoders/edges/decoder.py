"""Plain edge lists: ``src dst [weight …]`` lines of text, and Parquet files of edges."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from operator import attrgetter
from typing import Any, BinaryIO, ClassVar, Literal

from graphprep.decoders.cells.columns import (
    RELATION,
    ColumnFlags,
    EdgeLayout,
    FileColumns,
    HeldIds,
    IdKind,
    Reading,
    RelationAs,
    can_quote,
    name_two_kinds,
    parse_declared,
    position_of,
    settle_columns,
)
from graphprep.decoders.looks.text_head import (
    MAX_RECORDS,
    PARQUET_MAGIC,
    STRIP,
    HeaderGuess,
    HeadLine,
    TextHead,
    find_delimiter,
    find_ends,
    guess_header,
    is_words,
    iter_lines,
    look_at_text,
    look_for_triples,
    name_later_ends,
    names_columns,
    read_head,
    refuse_data_dict,
    refuse_foreign,
    refuse_quoted_blanks,
    refuse_wide,
    split_text,
)
from graphprep.model.errors import DataError, DecodeError, UsageError, one_of
from graphprep.model.protocols import DeclaredNodes, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import RawRows, Relation
from graphprep.model.schema import parse_edge_type
from graphprep.storage.faults import display_url

_NODES, _EDGES = "_N", "_E"  # names of the only node type and relation where none are given
_APART = "convert files with other columns on their own"
_BASE_FIX = "leave it out: string IDs are stored as they are written"
_QUOTE_FIX = "give one with --delimiter, or leave --quote out"


@dataclass(frozen=True)
class EdgesDecoder:
    """Decodes plain edge lists.

    ``delimiter`` None means found in the data: comma, tab or runs of blanks (a blank); ``header`` says whether a file's first
    line names its columns. The ``*_col`` and ``drop_columns`` name columns by name or by position from 0 (also ``col_2``);
    what they leave becomes edge columns, whose dtypes ``columns`` (``NAME=dtype``) may fix. ``time_unit`` multiplies times
    that are written in seconds. ``relation`` is ``REL`` or ``SRC:REL:DST``; with ``relation_col`` each edge names its own, and
    ``relation`` only gives the types of the ends; with ``relation_as`` ``column`` all edges are of ``relation``, and what each
    names is its column ``relation``. ``id_type`` says what raw IDs are: None stands for integers from 0 in text,
    and for what the column holds in Parquet; ``auto`` for int64 where all IDs of a node type are such, else texts. ``quote``
    None means that double quotes count where the delimiter is one character. Options that make no sense raise UsageError.

    Source: SNAP and KONECT files, GAPBS ``.el`` and ``.wel``, and the triples of knowledge graphs.
    """

    delimiter: str | None = None
    header: Literal["auto", "yes", "no"] = "auto"
    src_col: str | None = None
    dst_col: str | None = None
    weight_col: str | None = None
    time_col: str | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    columns: tuple[str, ...] = ()
    drop_columns: tuple[str, ...] = ()
    index_base: int = 0
    relation: str | None = None
    weight_dtype: str = "float32"
    id_type: Literal["int", "uint", "string", "auto"] | None = None
    relation_col: str | None = None
    relation_as: RelationAs = "types"
    quote: bool | None = None
    settled: tuple[str, ...] = field(default=(), init=False)  # node types whose IDs turned out to be integers

    name: ClassVar[str] = "edges"

    def __post_init__(self) -> None:
        """Refuse options that make no sense, and set lists of options right."""
        for option in ("columns", "drop_columns"):
            given = getattr(self, option)
            object.__setattr__(self, option, (given,) if isinstance(given, str) else tuple(map(str, given)))
        for option in ("src_col", "dst_col", "weight_col", "time_col", "relation_col"):
            given = getattr(self, option)
            object.__setattr__(self, option, None if given is None else str(given))
        for flag, choice, choices in (
            ("--header", self.header, ("auto", "yes", "no")),
            ("--time-unit", self.time_unit, (None, "s", "ms", "us", "ns")),
            ("--index-base", self.index_base, (0, 1)),
            ("--relation-as", self.relation_as, ("types", "column")),
            ("--weight-dtype", self.weight_dtype, ("float32", "float64")),
            ("--id-type", self.id_type, (None, "int", "uint", "string", "auto")),
        ):
            if choice not in choices or isinstance(choice, bool):
                named = (str(one) for one in choices if one is not None)
                raise UsageError(f"{flag}: no choice named {choice!r}", fix=one_of(named, found=choice))
        if self.id_type == "string" and self.index_base:
            raise UsageError("--index-base is for integer IDs", fix=_BASE_FIX)
        if self.time_unit is not None and self.time_col is None:
            raise UsageError("--time-unit needs --time-col", fix="name the column of the time with --time-col")
        if self.relation_as == "column" and self.relation_col is None:
            raise UsageError("--relation-as column needs --relation-col", fix="name the column of the relation")
        _ = self._delimiter, self._relation, self._flags  # which refuse what makes no sense

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Look at the first lines or the Parquet footer of every file, and make a span of each.

        Raises UsageError for columns that flags name and that are not there, DataError for what is no edge list.
        """
        files: list[_File] = []
        headed: list[str] | None = None  # the columns of the first text file with a header
        known: FileColumns | None = None  # of the first file whose columns have names
        for url in urls:
            file = self._look(storage, url, headed)
            files.append(file)
            if file.columns is not None and file.columns.named:
                known = known or file.columns
                headed = headed or (None if file.head is None else list(file.columns.names))
        if len(files) > 1:
            _refuse_other_headers(files)
        spans = list(map(partial(self._span, known=known), files))
        if len(files) > 1:
            _refuse_other_columns(files, spans)
        held = self._held_ids(files)
        if self.id_type is None and self.index_base and "texts" in held:
            raise UsageError("--index-base is for integer IDs", fix=_BASE_FIX)
        for number, span in enumerate(spans):
            spans[number] = dataclasses.replace(span, detail=dataclasses.replace(span.detail, held_ids=held))
        heads: list[TextHead] = list(filter(None, map(attrgetter("head"), files)))
        triples = list(filter(None, map(attrgetter("triples"), heads)))
        return Sources(
            tuple(spans),
            nodes="ends",
            node_types=tuple(map(DeclaredNodes, dict.fromkeys(self._types))),
            edge_types=(self._relation,) if self.relation_col is None or self.relation_as == "column" else (),
            messages=(*_doubts(heads), *triples[:1], *self._doubtful_ends(known)),
            signed_ids=self._spaces_of(held, "int") if self.id_type in ("int", "auto") else (),
            auto_ids=self._spaces_of(held, "string") if self.id_type == "auto" else (),
            edge_category=RELATION if self.relation_as == "column" else None,
        )

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines. A span without a layout gets one from the block itself.

        Raises DecodeError for the first faulty record: a wrong number of columns, quotes that do not close, an end that is no
        ID, a weight, time or declared column that is no such number or does not fit its dtype, text that is not UTF-8.
        """
        layout = block.span.detail or self._layout_of(block)
        reading = self._reading(layout)
        from graphprep.decoders.edges.text import decode_text

        return decode_text(block, layout, reading, places)

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty record on its own, in input order."""
        from graphprep.decoders.edges.text import find_text_faults

        layout = block.span.detail or self._layout_of(block)
        return find_text_faults(block, layout, self._reading(layout))

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a Parquet file in batches of at most ``max_rows`` rows.

        Raises DecodeError for the first row whose end is null, empty or no ID, or whose value fits no dtype.
        """
        from graphprep.decoders.edges.table import read_table

        return read_table(handle, span, self._reading(span.detail), max_rows=max_rows, places=places)

    def widen(self, columns: Mapping[str, str]) -> EdgesDecoder:
        """Return the decoder with the dtypes of these further columns decided."""
        return self._with(self.settled, columns=self.columns + tuple(f"{name}={dtype}" for name, dtype in columns.items()))

    def settle_ids(self, spaces: Sequence[str]) -> EdgesDecoder:
        """Return the decoder that reads the IDs of these node types as int64."""
        return self._with(tuple(dict.fromkeys((*self.settled, *spaces))))

    def _with(self, settled: tuple[str, ...], **changes: Any) -> EdgesDecoder:
        """Return a copy with other values of some fields."""
        other = dataclasses.replace(self, **changes)
        object.__setattr__(other, "settled", settled)
        return other

    @cached_property
    def _delimiter(self) -> bytes | None:
        """Return the delimiter's bytes, none for blanks, None where it is to be found.

        Raises UsageError.
        """
        if self.delimiter is None:
            return None
        text = self.delimiter.replace("\\t", "\t")
        if not text or any(char in text for char in '\r\n"'):
            raise UsageError(
                f"--delimiter {self.delimiter!r} cannot separate columns",
                fix="give characters such as ',' or '\\t'",
            )
        return b"" if text == " " else text.encode()

    @cached_property
    def _relation(self) -> Relation:
        """Return the canonical edge type of all edges; where each has its own, one between the same types.

        Raises UsageError.
        """
        if (
            self.relation_col is not None
            and self.relation_as == "types"
            and self.relation is not None
            and ":" not in self.relation
        ):
            raise UsageError(
                f"--relation {self.relation} names the relation of all edges, but --relation-col that of each",
                fix="leave out one of them; --relation SRC:REL:DST beside --relation-col gives the types of the ends, and "
                "--relation-as column makes a column of that",
            )
        if self.relation is None:
            return Relation(_EDGES, _NODES, _NODES)
        if self.relation and ":" not in self.relation:
            return Relation(self.relation, _NODES, _NODES)
        try:
            src, name, dst = parse_edge_type(self.relation)
        except ValueError as error:
            raise UsageError(f"--relation: {error}", fix="write NAME or SRC:REL:DST; a ':' inside a name is %3A") from None
        return Relation(name, src, dst)

    @cached_property
    def _flags(self) -> ColumnFlags:
        return ColumnFlags(
            src=self.src_col,
            dst=self.dst_col,
            weight=self.weight_col,
            time=self.time_col,
            declared=tuple(map(parse_declared, self.columns)),
            dropped=self.drop_columns,
            relation=self.relation_col,
            relation_as=self.relation_as,
        )

    @cached_property
    def _types(self) -> tuple[str, str]:
        """Return the node types of sources and destinations; their ID spaces have these names."""
        relation = self._relation
        return relation.src_type or _NODES, relation.dst_type or _NODES

    def _id_kind(self, end: int, held: HeldIds) -> IdKind:
        """Return how the IDs of an end (0: sources) are read."""
        if self.id_type is None:
            return "string" if held == "texts" else "uint"
        if self.id_type == "auto":
            return "int" if held == "integers" or self._types[end] in self.settled else "string"
        return self.id_type

    def _reading(self, layout: EdgeLayout) -> Reading:
        src, dst = layout.held_ids
        return Reading(self._id_kind(0, src), self._id_kind(1, dst), dict(self._flags.declared))

    def _held_ids(self, files: list[_File]) -> tuple[HeldIds, HeldIds]:
        """Return what all files hold as IDs of the sources' type and of the destinations'; "open" where they differ.

        Raises DataError where integers and strings would be read as IDs of one type.
        """
        types = self._types
        held: dict[str, HeldIds] = {}
        for name in types:
            found: dict[HeldIds, str] = {}  # and where each was met first
            for file in files:
                for end, words in enumerate(("sources", "destinations")):
                    if file.columns is not None and types[end] == name:
                        found.setdefault(file.held[end], f"{file.place}: the {words}")
            if self.id_type is None and "texts" in found and len(found) > 1:
                texts = found.pop("texts")
                raise DataError(
                    f"IDs of node type {name!r} are strings, but integers in {next(iter(found.values()))}",
                    place=texts,
                    fix="read all of them as strings with --id-type string, or as integers with --id-type uint",
                )
            held[name] = next(iter(found)) if len(found) == 1 else "open"
        return held[types[0]], held[types[1]]

    def _spaces_of(self, held: Sequence[HeldIds], kind: IdKind) -> tuple[str, ...]:
        """Return the node types whose IDs are read as a kind."""
        return tuple(dict.fromkeys(self._types[end] for end in (0, 1) if self._id_kind(end, held[end]) == kind))

    def _look_at_lines(self, url: str, start: bytes, known: list[str] | None = None) -> TextHead | None:
        """Settle delimiter and header of a text file, given its beginning; ``known`` are the columns of a file before it.

        Raises DataError, UsageError for quotes that the delimiter does not allow.
        """
        are_numbers = self.id_type not in ("string", "auto")  # then no names can be ends
        most = 2 if are_numbers else MAX_RECORDS + 1
        lines = list(islice(iter_lines(start, complete=True, across_lines=bool(self.quote)), most))
        if not lines:
            return None
        if len(lines) > 2 and not start.endswith(b"\n"):
            lines.pop()  # it may be cut off
        if not self.drop_columns:
            refuse_data_dict(url, lines[0])
        quoted = self.quote is not False
        guess = self._guess_header(url, lines, known)
        head = look_at_text(url, lines, self._delimiter, guess, quoted=quoted)
        if self.quote is None and self.delimiter is None and not head.delimiter:
            refuse_quoted_blanks(url, lines)
        told = (self.src_col, self.dst_col, self.relation_col, self.weight_col, self.time_col)
        is_told = bool(self.columns or self.drop_columns) or told != (None,) * len(told)
        if not are_numbers and not head.is_headed and not is_told:
            head = dataclasses.replace(head, triples=look_for_triples(url, lines[0].number, self._records(url, lines)))
        if self.quote and not can_quote(head.delimiter):
            named = f"{head.delimiter.decode()!r} separates" if head.delimiter else "blanks separate"
            raise UsageError(f"--quote needs a delimiter of one character, but {named} the columns of {url}", fix=_QUOTE_FIX)
        return head

    def _guess_header(self, url: str, lines: Sequence[HeadLine], known: list[str] | None) -> HeaderGuess:
        """Tell whether the first line is a header. Raises DataError where it cannot be split."""
        if self.header != "auto":
            return HeaderGuess(self.header == "yes")
        records = self._records(url, lines)
        names = list(map(STRIP, records[0]))
        wanted = self._flags.names
        if (wanted and set(wanted) <= set(names)) or names == known:
            return HeaderGuess(True)
        if self.id_type not in ("string", "auto"):  # an edge between words would be at fault
            return HeaderGuess(is_words(names), is_sure=len(lines) > 1 or names_columns(names) or not is_words(names))
        guess = guess_header(records, if_open=bool(wanted), ends=self._end_places())
        return guess if known is None or guess.is_header else HeaderGuess(False)

    def _records(self, url: str, lines: Sequence[HeadLine]) -> list[list[str]]:
        """Split lines as far as that is possible. Raises DataError where the first cannot be split."""
        quoted, given = self.quote is not False, self._delimiter
        own = find_delimiter(lines[0].text, quoted) if given is None else given
        later = find_delimiter(lines[min(1, len(lines) - 1)].text, quoted) if given is None else given
        records = [split_text(url, lines[0], own, quoted)]
        for line in lines[1:]:
            try:
                records.append(split_text(url, line, later, quoted))
            except DataError:  # decoding says where
                break
        if later != own and len(records) > 1:  # a header may be written with another delimiter than the data
            again = split_text(url, lines[0], later, quoted)
            records[0] = again if len(again) == len(records[1]) else records[0]
        return records

    def _end_places(self) -> tuple[int, int]:
        """Return the positions of both ends in a file whose columns have no names."""
        relation = position_of(self.relation_col)
        free = [place for place in range(3) if place != relation]
        src, dst = position_of(self.src_col), position_of(self.dst_col)
        return free[0] if src is None else src, free[1] if dst is None else dst

    def _base(self, head: TextHead | None = None) -> EdgeLayout:
        """Return what holds for the layouts of all files; alone it is the layout of a file without records."""
        header = head.first if head and head.is_headed else HeadLine(0, b"")
        return EdgeLayout(
            src=0,
            dst=1,
            weight=None,
            time=None,
            further=(),
            names=("col_0", "col_1"),
            relation=self._relation,
            relation_as=self.relation_as,
            index_base=self.index_base,
            weight_dtype=self.weight_dtype,
            time_unit=self.time_unit,
            delimiter=head.delimiter if head else b"",
            header_line=header.number + header.text.count(b"\n"),  # the last of its lines
            header=header.text,
            quote=self.quote,
        )

    def _look(self, storage: InputStorage, url: str, known: list[str] | None) -> _File:
        """Find out what a file is and which columns it has; ``known`` are those of a text file with a header before it."""
        shown = display_url(url)
        start = read_head(storage, url, shown)
        if not start.startswith(PARQUET_MAGIC):
            head = self._look_at_lines(shown, start, known)
            if head is not None:
                refuse_wide(storage, f"{shown}:{head.first.number}:1", len(head.names))
            return _text_file(url, shown, head)
        from graphprep.decoders.cells.arrow import read_schema
        from graphprep.decoders.edges.table import check_schema

        with storage.open(url) as handle:
            schema, num_rows = read_schema(handle, shown, parquet=True)
        refuse_wide(storage, shown, len(schema.names))
        columns = FileColumns(shown, tuple(schema.names), True)
        layout = settle_columns(columns, self._flags, self._base(), shown)
        return _File(url, shown, columns, None, num_rows, held=check_schema(schema, layout, shown))

    def _span(self, file: _File, known: FileColumns | None) -> Span:
        """Settle the layout of a file; one without a header takes the names that others have."""
        if file.columns is None:
            return Span(file.url, role="edges", detail=self._base())
        columns = file.columns
        if not columns.named and known is not None:
            if len(known.names) != len(columns.names):
                raise DataError(
                    f"{len(columns.names)} columns, but {known.url} has {len(known.names)}",
                    place=file.place,
                    fix=_APART,
                )
            columns = dataclasses.replace(columns, names=known.names, named=True)
        layout = settle_columns(columns, self._flags, self._base(file.head), file.place)
        ends = columns.names[layout.src], columns.names[layout.dst]
        src_type, dst_type = self._types
        are_doubtful = columns.named and src_type == dst_type and name_two_kinds(*ends)
        span = Span(file.url, role="edges", detail=layout, id_columns=ends if are_doubtful else None)
        if file.num_rows is not None:
            return dataclasses.replace(span, kind="table", stop=file.num_rows)
        return dataclasses.replace(span, record_ends=layout.dialect.record_ends) if self.quote else span

    def _doubtful_ends(self, columns: FileColumns | None) -> tuple[str, ...]:
        """Say which columns are the ends where nothing but their place speaks for them, and others are called so."""
        is_told = (self.src_col, self.dst_col, self.relation_col) != (None, None, None)
        if columns is None or is_told or find_ends(columns.names) is not None or not name_later_ends(columns.names):
            return ()
        first = " and ".join(map(repr, columns.names[:2]))
        return (f"{columns.url}: columns {first} are read as source and destination; --src-col and --dst-col name others",)

    def _layout_of(self, block: TextBlock) -> EdgeLayout:
        """Settle a layout from a block alone, as the beginning of its file."""
        shown = display_url(block.span.url)
        refuse_foreign(shown, block.data[: 1 << 16])
        head = self._look_at_lines(shown, block.data)
        layout: EdgeLayout = self._span(_text_file(block.span.url, shown, head), None).detail
        return layout


@dataclass(frozen=True)
class _File:
    """A file that was looked at. ``columns`` is None where it has no records; ``num_rows`` is known of tables.

    ``place`` is where its columns are said: its header or first line.
    ``held`` says what it holds as IDs of sources and of destinations.
    """

    url: str
    place: str
    columns: FileColumns | None
    head: TextHead | None
    num_rows: int | None
    held: tuple[HeldIds, HeldIds] = ("open", "open")


def _text_file(url: str, shown: str, head: TextHead | None) -> _File:
    if head is None:
        return _File(url, shown, None, None, None)
    return _File(url, f"{shown}:{head.first.number}:1", FileColumns(shown, head.names, head.is_headed), head, None)


def _doubts(heads: list[TextHead]) -> tuple[str, ...]:
    """Return what was guessed of first lines; those of files without a header stand to reason where one surely has none."""
    is_bare = (False, "") in map(attrgetter("is_headed", "doubt"), heads)
    told: tuple[str, ...] = ()
    for head in heads:
        told += (head.doubt,) if head.doubt and (head.is_headed or not is_bare) else ()
    return told


def _refuse_other_headers(files: list[_File]) -> None:
    """Raise DataError where two text files have different headers."""
    headed = [file for file in files if file.head is not None and file.head.is_headed]
    for file in headed[1:]:
        if file.columns and headed[0].columns and file.columns.names != headed[0].columns.names:
            raise DataError(f"the header differs from that of {display_url(headed[0].url)}", place=file.place, fix=_APART)


def _refuse_other_columns(files: list[_File], spans: list[Span]) -> None:
    """Raise DataError where files that are converted together have other further columns."""
    found = [(file, [column.name for column in span.detail.further]) for file, span in zip(files, spans, strict=True)]
    found = [(file, names) for file, names in found if file.columns is not None]
    for file, names in found[1:]:
        first, expected = found[0]
        if sorted(names) != sorted(expected):
            raise DataError(
                f"its further columns are {_listed(names)}, but those of {display_url(first.url)} are {_listed(expected)}",
                place=file.place,
                fix=_APART + ", or leave columns out with --drop-column",
            )


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
