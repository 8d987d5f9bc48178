"""What the beginning of a table's file tells: its format, its delimiter, and the names of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from graphprep.decoders.looks.magic import refuse_binary
from graphprep.decoders.looks.quoted_records import Dialect
from graphprep.decoders.looks.text_head import (
    PARQUET_MAGIC,
    HeadLine,
    guess_header,
    header_doubt,
    more_of_head,
    refuse_lone_returns,
    refuse_quoted_blanks,
    refuse_wide,
    split_line,
    without_quoted,
)
from graphprep.decoders.tables.columns import Header
from graphprep.engine.budget import format_size
from graphprep.model.errors import DataError, GraphprepError, UsageError
from graphprep.model.graph_config import TableConfig
from graphprep.model.protocols import InputStorage, SniffedFile
from graphprep.storage.faults import display_url

FileKind = Literal["text", "jsonl", "parquet", "arrow", "arrays"]
_HEAD_BYTES = 1 << 16
_MOST_RECORDS = 1 << 14  # that tell whether the first one is a header: as many as 64 KiB hold where they are short
_ARROW_MAGICS = (b"ARROW1", b"\xff\xff\xff\xff")
_FEATHER_MAGIC = b"FEA1"
_ARRAY_MAGICS = (b"\x93NUMPY", b"PK\x03\x04", b"PK\x05\x06")
_MATRIX_MARKET = b"%%matrixmarket"
_DELIMITERS = (b",", b"\t", b";", b"|")
_MARKS = {"escape": "\\", "comment": "#"}


@dataclass(frozen=True)
class TableHead:
    """The beginning of a file of delimited text.

    ``header`` has the names of its columns, None where the file has no record. ``header_line`` is the last line of a header,
    0 where there is none; ``first_line`` that of the first record. ``doubt`` is a sentence for the user where a guess was made.
    """

    grammar: Dialect
    header: Header | None
    header_line: int = 0
    first_line: int = 1
    doubt: str = ""


@dataclass(frozen=True)
class Record:
    """A record of a file's beginning: the numbers of its first and last line, and its fields."""

    line: int
    last_line: int
    fields: list[bytes]


def kind_of(storage: InputStorage, url: str, table: TableConfig) -> FileKind:
    """Tell a file's format from its first bytes; of text, ``table`` may say which.

    Raises DataError where it is another one than ``table`` says.
    """
    head = storage.head(url, _HEAD_BYTES)
    found: FileKind = "text"
    if head.startswith(PARQUET_MAGIC):
        found = "parquet"
    elif head.startswith(_ARROW_MAGICS):
        found = "arrow"
    elif head.startswith(_ARRAY_MAGICS) or head[: len(_MATRIX_MARKET)].lower() == _MATRIX_MARKET or table.format == "metis":
        refuse_binary(display_url(url), head)
        found = "arrays"
    elif head.startswith(_FEATHER_MAGIC):
        raise DataError(
            "this is a Feather file of version 1", place=display_url(url), fix="write it again as Feather version 2 or Parquet"
        )
    elif table.format == "jsonl" or (table.format is None and table.delimiter is None and head.lstrip()[:1] == b"{"):
        found = "jsonl"
    kinds: dict[str | None, tuple[FileKind, ...]] = {
        None: (found,),
        "csv": ("text",),
        "tsv": ("text",),
        "jsonl": ("jsonl",),
        "parquet": ("parquet",),
        "arrow": ("arrow",),
    }
    if found not in kinds.get(table.format, ("arrays",)):
        names = {"text": "text", "jsonl": "JSON lines", "parquet": "Parquet", "arrow": "Arrow", "arrays": "an array"}
        raise DataError(
            f"the format is said to be {table.format}, but this file holds {names[found]}",
            place=display_url(url),
            fix="correct the format, or leave it out: it is told from the content",
        )
    return found


def look_at_text(storage: InputStorage, url: str, table: TableConfig, named: Sequence[str], known: Header | None) -> TableHead:
    """Settle delimiter and header of a text file. ``named`` are the columns that options call by name.

    ``known`` are the columns of the table's first file that has a header. Raises DataError for binary data, and for a first
    record that cannot be split; UsageError for a delimiter that cannot be one.
    """
    shown = display_url(url)
    grammar, records = _read_records(storage, url, table)
    if not records:
        return TableHead(grammar, None)
    first = records[0]
    names = _names(shown, first)
    is_headed, doubt = _has_header(shown, records, names, table, named, known)
    line = first.last_line if is_headed else 0
    if table.names is not None:
        _check_width(shown, first, len(table.names), "the names that are given")
        return TableHead(grammar, Header(shown, table.names, True), line, first.line)
    if is_headed:
        return TableHead(grammar, Header(shown, names, True), line, first.line, doubt)
    if known is not None:
        _check_width(shown, first, len(known.names), f"the columns of {known.url}")
        return TableHead(grammar, Header(shown, known.names, True), 0, first.line, doubt)
    columns = tuple(f"col_{i}" for i in range(len(first.fields)))
    return TableHead(grammar, Header(shown, columns, False), 0, first.line, doubt)


def _check_width(url: str, first: Record, expected: int, what: str) -> None:
    if len(first.fields) != expected:
        raise DataError(
            f"{len(first.fields)} columns, but {what} are {expected}",
            place=f"{url}:{first.line}:1",
            fix="convert files with other columns on their own",
        )


def _names(url: str, record: Record) -> tuple[str, ...]:
    """Return the fields of a record as names, without the blanks around them.

    Raises DataError where they are not UTF-8.
    """
    try:
        return tuple(field.decode().strip(" \t") for field in record.fields)
    except UnicodeDecodeError as error:
        raise DataError(
            f"the first line is not UTF-8: {error.reason}", place=f"{url}:{record.line}:1", fix="convert the file to UTF-8"
        ) from None


def _has_header(
    url: str,
    records: Sequence[Record],
    names: tuple[str, ...],
    table: TableConfig,
    named: Sequence[str],
    known: Header | None,
) -> tuple[bool, str]:
    """Return whether the first record is a header, and a sentence where that was guessed.

    It is one where it holds the names that options use, or those of the table's first file, else where ``guess_header`` says
    so. Raises DataError where it may be another header than that of the first file.
    """
    if table.header != "auto" or table.names is not None:
        return table.header == "yes", ""
    if (known is not None and set(names) == set(known.names)) or (named and set(named) <= set(names)):
        return True, ""
    texts = [[field.decode(errors="replace") for field in record.fields] for record in records]
    guess = guess_header(texts, if_open=True, ends=range(len(texts[0])))
    line = records[0].line
    if known is not None and guess.is_header:
        raise DataError(
            f"the first line is not the header of {known.url}",
            place=f"{url}:{line}:1",
            fix="give all files of a table the same columns, or say --header yes or no",
        )
    if guess.is_sure or known is not None:
        return guess.is_header, ""
    if guess.is_header:
        return True, header_doubt(url, line, names)
    return False, f"{url}:{line}: read as data; where this line names the columns, pass --header yes"


# ------------------------------------------------------------------------------------------------------ records


def _read_records(storage: InputStorage, url: str, table: TableConfig) -> tuple[Dialect, list[Record]]:
    """Read as much of a file as holds its first two records, all of it where there are fewer, and split it."""
    size = _HEAD_BYTES
    while True:
        head = storage.head(url, size)
        is_whole = len(head) < size
        _refuse_binary(display_url(url), head)
        grammar = _find_grammar(display_url(url), head, is_whole, table)
        for first in islice(_split(display_url(url), head, is_whole, grammar), 1):
            refuse_wide(storage, f"{display_url(url)}:{first.line}:1", len(first.fields))
        records = list(islice(_split(display_url(url), head, is_whole, grammar), _MOST_RECORDS))
        if is_whole or len(records) > 1:
            return grammar, records
        try:
            size = more_of_head(storage, url, size, "write a record a line, or name the format of the table")
        except GraphprepError as error:
            raise _open_quote(display_url(url), head, table) or error from None


def _open_quote(url: str, head: bytes, table: TableConfig) -> DataError | None:
    """Return what to raise where a quote of the first records does not close in all that was looked at."""
    given = () if table.delimiter is None else (_given_delimiter(table),)
    for delimiter in given or _DELIMITERS:
        records = _grammar(delimiter, table).record_ends
        at = -1 if records is None else records.open_quote(head)
        if at >= 0:
            line, column = head.count(b"\n", 0, at) + 1, at - head.rfind(b"\n", 0, at)
            words = f"a quote does not close in the first {format_size(len(head))}"
            fix = "close it; double the quotes inside a quoted field"
            return DataError(words, place=f"{url}:{line}:{column}", fix=fix)
    return None


def _refuse_binary(url: str, head: bytes) -> None:
    """Raise DataError for a NUL byte, lines that end with CR alone, RDF, and what is known by its first bytes."""
    refuse_binary(url, head)
    if head.lstrip().startswith((b"<", b"_:", b"@prefix", b"#")):
        from graphprep.decoders.looks.formats import tell_rdf

        if (foreign := tell_rdf(SniffedFile(url, head, complete=False))) is not None:
            raise foreign.refusal(url)
    refuse_lone_returns(url, head)
    at = head.find(b"\0")
    if at >= 0:
        line, column = head.count(b"\n", 0, at) + 1, at - head.rfind(b"\n", 0, at)
        place = f"{url}:{line}:{column}"
        raise DataError("this is binary data, found byte 0x00", place=place, fix="give text, Parquet, Arrow or JSON lines")


def _find_grammar(url: str, head: bytes, is_whole: bool, table: TableConfig) -> Dialect:
    """Settle the delimiter: the one that is given, else the first of ``, tab ; |`` that cuts two records alike, else blanks."""
    if table.delimiter is not None:
        return _grammar(_given_delimiter(table), table)
    if table.format in ("csv", "tsv"):
        return _grammar(b"," if table.format == "csv" else b"\t", table)
    first = ""
    for delimiter in _DELIMITERS:
        if delimiter.decode() in (table.escape, table.comment):
            continue
        grammar = _grammar(delimiter, table)
        try:
            two = [record.fields for record in islice(_split(url, head, is_whole, grammar), 2)]
        except DataError:
            continue
        if two and len(two[0]) == len(two[-1]) > 1:
            return grammar
        first = first or (delimiter.decode() if two and len(two[0]) > 1 else "")
    if first or table.quote:  # a table of one column, quoted as CSV is
        return _grammar((first or ",").encode(), table)
    return _blanks_or_none(url, head, is_whole, table)


def _blanks_or_none(url: str, head: bytes, is_whole: bool, table: TableConfig) -> Dialect:
    """Return that blanks separate, where some stand outside quotes, else that of a table of one column.

    Raises DataError for quoted fields between blanks.
    """
    blank, quoted = _grammar(b"", table), table.quote is not False
    lines = [HeadLine(record.line, b" ".join(record.fields)) for record in islice(_split(url, head, is_whole, blank), 2)]
    if not lines or not re.search(rb"[ \t]", without_quoted(lines[0].text) if quoted else lines[0].text):
        return _grammar(b",", table)
    if quoted:
        refuse_quoted_blanks(url, lines)
    return blank


def _given_delimiter(table: TableConfig) -> bytes:
    """Return the delimiter's bytes, none for blanks.

    Raises UsageError.
    """
    given = table.delimiter or ""
    text = given.replace("\\t", "\t")
    if not text or any(char in text for char in '\r\n"'):
        raise UsageError(
            f"delimiter {given!r} cannot separate columns", place=table.place, fix="give characters such as ',' or '\\t'"
        )
    return b"" if text == " " else text.encode()


def _grammar(delimiter: bytes, table: TableConfig) -> Dialect:
    """Return how text is cut. Raises UsageError for quotes beside a delimiter that does not go with them."""
    can_quote = len(delimiter.decode()) == 1
    if table.quote and not can_quote:
        raise UsageError(
            f"quotes need a delimiter of one character, found {delimiter.decode() or ' '!r}",
            place=table.place,
            fix="give such a delimiter, or leave out quote",
        )
    quoted = can_quote and table.quote is not False
    comments = b"#%" if table.comment is None and not delimiter else _mark("comment", table.comment, table, delimiter)
    escape = _mark("escape", table.escape, table, delimiter + comments) if table.escape != '"' else b""
    if escape and len(delimiter) != 1:
        raise UsageError(
            f"an escape needs a delimiter of one ASCII character, found {delimiter.decode() or ' '!r}",
            place=table.place,
            fix="give such a delimiter, or leave out escape",
        )
    return Dialect(delimiter, quoted, across_lines=quoted, comments=comments, keep_tabs=True, escape=escape)


def _mark(option: str, given: str | None, table: TableConfig, others: bytes) -> bytes:
    """Return a character that an option names, as bytes.

    Raises UsageError where it is none, or means something else.
    """
    if given is None:
        return b""
    if len(given) != 1 or not given.isascii() or given.isalnum() or given in ' \t\r\n"+-.' or given.encode() in others:
        raise UsageError(
            f"{option} {given!r} cannot be told from data, quotes or delimiters",
            place=table.place,
            fix=f"give one character such as '{_MARKS[option]}'",
        )
    return given.encode()


def _split(url: str, head: bytes, is_whole: bool, grammar: Dialect) -> Iterator[Record]:
    """Yield the complete records of a file's beginning.

    Raises DataError where the first one cannot be split; a later one ends the records.
    """
    line, at, is_first = 1, 0, True
    for stop in _ends(head, is_whole, grammar):
        data = head[at:stop]
        text = data.removesuffix(b"\n").removesuffix(b"\r")
        num_lines = data.count(b"\n") or 1
        if not _is_skipped(text, grammar):
            try:
                if grammar.escape:
                    fields = _split_escaped(url, line, data, grammar)
                else:
                    fields = split_line(url, HeadLine(line, text), grammar.delimiter, grammar.quoted)
            except DataError:
                if is_first:
                    raise
                return
            yield Record(line, line + num_lines - 1, fields)
            is_first = False
        line += num_lines
        at = stop


def _split_escaped(url: str, line: int, record: bytes, grammar: Dialect) -> list[bytes]:
    """Split a record of text with escapes into its fields.

    Raises DataError where it cannot be split.
    """
    from graphprep.decoders.cells.text import split_record

    fields, fault = split_record(record, grammar)
    if fault is not None:
        at, words = fault
        line, column = line + record.count(b"\n", 0, at), at - record.rfind(b"\n", 0, at)
        raise DataError(words.message, place=f"{url}:{line}:{column}", fix=words.fix)
    return fields


def _ends(head: bytes, is_whole: bool, grammar: Dialect) -> Sequence[int]:
    """Return the positions behind the complete records."""
    records = grammar.record_ends
    if records is None or (b'"' not in head and not grammar.escape):
        ends = [match.end() for match in re.finditer(rb"\n", head)]
        return [*ends, len(head)] if is_whole and head and not head.endswith(b"\n") else ends
    found: list[int] = records.ends(head).tolist()
    return found if is_whole else found[:-1]


def _is_skipped(text: bytes, grammar: Dialect) -> bool:
    """Return whether a line is no record: blank, or a comment."""
    blanks = b" " if grammar.delimiter == b"\t" else b" \t"
    return not text.strip(blanks) or text.lstrip(blanks)[:1] in {bytes([mark]) for mark in grammar.comments}
