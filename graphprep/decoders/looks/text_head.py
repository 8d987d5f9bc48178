"""What the first lines of delimited text tell: whether they are edges, their delimiter, and whether the first names columns.

What names columns is one rule for edge lists, triples and tables.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, repeat
from operator import attrgetter, methodcaller
from typing import NamedTuple

from graphprep.engine.budget import format_size
from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.protocols import InputStorage, Sniffed, SniffedFile
from graphprep.storage.faults import display_url

PARQUET_MAGIC = b"PAR1"
_HEAD_BYTES = 1 << 16
_MAX_HEAD_BYTES = 1 << 28  # of comments before the first record, or of one line
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
MATRIX_MARKET = b"%%matrixmarket"
_DATA_DICT = re.compile(rb"[ \t,;|](\{(?:\}|['\"0-9].*\}))[ \t]*\Z", re.DOTALL)
_QUOTED_FIELD = re.compile(rb'(?:^|[ \t])("[^"]*")(?=[ \t]|$)')
_COLUMN_BYTES = 512  # of what a record may have: 21,845 columns under 256 MiB, which then takes 220
_FEW_COLUMNS = 1000  # which no limit forbids
_EDGE_LINES = 50
_INTEGER = re.compile(rb"[ \t]*\+?[0-9]+[ \t]*")
_NUMBER = re.compile(rb"[ \t+\-]*[0-9.]")
_NAME = re.compile(rb"[A-Za-z_\x80-\xff][^\[\](){}<>:;=\"]{0,99}")  # that may be a node's, and nothing else's in another format
_MOSTLY_EDGES = 0.55  # four numbers or more between commas: EdgeList has such lines, too, but hardly without a node's
_READ_AS_DATA = "read as an edge; where this line names the columns, pass --header yes"


class HeadLine(NamedTuple):
    """A line that is neither blank nor a comment; ``number`` counts from 1. Line breaks may stand in quotes."""

    number: int
    text: bytes


@dataclass(frozen=True)
class TextHead:
    """What is known of a text file before it is decoded.

    ``names`` come from its header; where the first line holds data, they are ``col_<position>``. ``doubt`` is a sentence for
    the user where that was guessed, ``triples`` one where the lines look like triples.
    """

    delimiter: bytes
    names: tuple[str, ...]
    first: HeadLine
    is_headed: bool = True
    doubt: str = ""
    triples: str = ""


def read_head(storage: InputStorage, url: str, shown: str) -> bytes:
    """Read as much of a file as holds its first two records, all of it where there are fewer. Messages call it ``shown``.

    Raises DataError for binary data, and where no record comes for very long.
    """
    size = _HEAD_BYTES
    while True:
        head = storage.head(url, size)
        if head.startswith(PARQUET_MAGIC):
            return head
        refuse_foreign(shown, head)
        if len(head) < size or len(list(islice(iter_lines(head, complete=False), 2))) == 2:
            return head
        size = more_of_head(storage, url, size, "write a record a line; of data that is no edge list, name the --format")


def more_of_head(storage: InputStorage, url: str, size: int, fix: str) -> int:
    """Return how much of a file to look at where its first ``size`` bytes do not hold two records.

    Raises MemoryLimitError where that is all that the memory limit leaves for a record, DataError where it is very long.
    """
    most = min(_MAX_HEAD_BYTES, storage.record_bytes)
    if size < most:
        return min(16 * size, most)
    words = f"no two records in the first {format_size(size)}"
    if most == _MAX_HEAD_BYTES:
        raise DataError(words, place=display_url(url), fix=fix)
    words += ", which is all that the memory limit leaves for one"
    raise MemoryLimitError(words, place=display_url(url), fix=f"{fix}, or raise --memory-limit")


def refuse_wide(storage: InputStorage, place: str, num_columns: int) -> None:
    """Raise MemoryLimitError for more columns than a memory limit leaves: each has buffers, and a file, of its own."""
    most = max(storage.record_bytes // _COLUMN_BYTES, _FEW_COLUMNS)
    if num_columns > most:
        raise MemoryLimitError(
            f"{num_columns:,} columns, but the memory limit leaves {most:,}",
            place=place,
            fix="raise --memory-limit; or keep many numbers as one array, for --node-data or --edge-data NAME=FILE.npy",
        )


def refuse_foreign(url: str, head: bytes) -> None:
    """Raise DataError for data that is no edge list: a control byte, a Matrix Market header, lines that end with CR alone."""
    if head[: len(MATRIX_MARKET)].lower() == MATRIX_MARKET:
        raise DataError(
            "this is a Matrix Market file, not an edge list",
            place=f"{url}:1:1",
            fix="convert it with --format mtx",
        )
    refuse_lone_returns(url, head)
    control = _CONTROL.search(head)
    if control:
        at = control.start()
        line = head.count(b"\n", 0, at) + 1
        column = at - head.rfind(b"\n", 0, at)
        raise DataError(
            f"this is binary data, found byte 0x{head[at]:02x}",
            place=f"{url}:{line}:{column}",
            fix="give text or Parquet, or name the format with --format",
        )


def find_data_dict(line: bytes) -> int:
    """Return where the dictionary begins that networkx's ``write_edgelist`` puts behind both ends, -1 where there is none."""
    if not line.endswith((b"}", b" ", b"\t")) or not line.rstrip(b" \t").endswith(b"}"):
        return -1
    found = _DATA_DICT.search(line)
    between = b"" if found is None else line[: found.start()].strip(b" \t")
    return found.start(1) if found is not None and len(re.findall(rb"[^ \t,;|]+", between)) == 2 else -1


def refuse_data_dict(url: str, line: HeadLine) -> None:
    """Raise DataError for a line with a dictionary behind both ends."""
    at = find_data_dict(line.text)
    if at >= 0:
        raise DataError(
            "a dictionary stands behind the ends of the edge, as networkx.write_edgelist writes its data",
            place=f"{url}:{line.number}:{len(line.text[:at].decode(errors='replace')) + 1}",
            fix="name the attributes: networkx.write_edgelist(graph, path, data=['weight']), or data=False for none",
        )


def refuse_lone_returns(url: str, head: bytes) -> None:
    """Raise DataError for lines that end with CR alone: they would be one line."""
    lone = head.find(b"\r")
    if 0 <= lone < len(head) - 1 and b"\n" not in head and b'"' not in head:
        raise DataError(
            "lines end with CR alone",
            place=f"{url}:1:{lone + 1}",
            fix="write LF or CR LF; tr '\\r' '\\n' repairs the file",
        )


def iter_lines(head: bytes, *, complete: bool, across_lines: bool = False) -> Iterator[HeadLine]:
    """Yield the lines of ``head`` that are neither blank nor a comment, without their ends.

    The last line counts only where it ends with a line feed or ``complete`` says that the file ends there. ``across_lines``: a
    line goes on as long as a quote is open.
    """
    at = 0
    number = 1
    while at < len(head):
        end = head.find(b"\n", at)
        is_comment = head[at : len(head) if end < 0 else end].lstrip(b" \t")[:1] in (b"#", b"%")
        while across_lines and not is_comment and end >= 0 and head.count(b'"', at, end) % 2:
            end = head.find(b"\n", end + 1)
        if end < 0 and not complete:
            return
        end = len(head) if end < 0 else end
        text = head[at:end].removesuffix(b"\r")
        if text.strip(b" \t") and not is_comment:
            yield HeadLine(number, text)
        number += text.count(b"\n") + 1
        at = end + 1


def look_at_text(
    url: str, lines: Sequence[HeadLine], delimiter: bytes | None, guess: HeaderGuess, *, quoted: bool = True
) -> TextHead:
    """Settle the delimiter and the columns' names from the first two records, of which the first is what ``guess`` says.

    ``delimiter`` None means: found in the first data line. Without ``quoted``, double quotes are characters like others.
    Raises DataError.
    """
    first, second = lines[0], lines[min(1, len(lines) - 1)]
    own = find_delimiter(first.text, quoted) if delimiter is None else delimiter
    if not guess.is_header:
        columns = tuple(f"col_{i}" for i in range(len(split_line(url, first, own, quoted))))
        doubt = "" if guess.is_sure else f"{url}:{first.number}: {_READ_AS_DATA}"
        return TextHead(own, columns, first, is_headed=False, doubt=doubt)
    found = find_delimiter(second.text, quoted) if delimiter is None else delimiter
    names = _names(url, first, found, quoted)
    if found != own and len(names) != len(split_line(url, second, found, quoted)):
        names = _names(url, first, own, quoted)  # a header may be written with another delimiter than the data
    return TextHead(found, names, first, doubt="" if guess.is_sure else header_doubt(url, first.number, names))


def look_for_edges(file: SniffedFile) -> Sniffed | None:
    """Bid for Parquet, and for text whose lines all begin with two IDs; the bid is low where other formats look the same."""
    if file.head.startswith(PARQUET_MAGIC):
        return Sniffed("edges", 0.7)
    if file.head[: len(MATRIX_MARKET)].lower() == MATRIX_MARKET:
        return Sniffed("edges", 0.5)  # its plan says what this is
    lines = list(islice(iter_lines(file.head, complete=file.complete), _EDGE_LINES))
    if not lines:
        return None
    if find_data_dict(lines[0].text) >= 0:
        return Sniffed("edges", 0.9)  # and of this
    try:
        refuse_foreign(file.url, file.head)
        first = split_text(file.url, lines[0], find_delimiter(lines[0].text))
        head = look_at_text(file.url, lines, None, HeaderGuess(is_words(first)))
        rows = list(map(split_line, repeat(file.url), lines, repeat(head.delimiter)))
    except DataError:
        return None
    bids = (_bid_for_numbers(file, lines[0], head, rows[head.is_headed :]), _bid_for_names(head.delimiter, rows))
    return max(filter(None, bids), key=attrgetter("confidence"), default=None) if len(head.names) > 1 else None


def _bid_for_numbers(file: SniffedFile, first: HeadLine, head: TextHead, rows: list[list[bytes]]) -> Sniffed | None:
    """Say how sure these rows are an edge list's."""
    width = len(head.names)
    if first.text.lstrip()[:1] in (b"{", b"["):
        return None
    for row in rows:
        if len(row) != width or not all(map(_INTEGER.fullmatch, row[:2])):
            return None
    if not rows:
        confidence = 0.6 if is_header_alone(file) else 0.2
    elif file.head.lstrip()[:1] in (b"#", b"%") or width == 2 or head.is_headed or head.delimiter == b"":
        confidence = 0.9  # none of the DeepGNN formats has comments, headers, blanks, or records so short
    else:
        confidence = _confidence_of_numbers(head, rows)
    other = "--format edgelist reads src,type,dst,weight" if confidence == _MOSTLY_EDGES else ""
    return Sniffed("edges", confidence, other=other)


def _bid_for_names(delimiter: bytes, rows: list[list[bytes]]) -> Sniffed | None:
    """Bid for lines of two names between blanks, or tabs where one name stands on both sides: else they may be a table's.

    Commas mostly are, and three columns may be a triple.
    """
    if delimiter == b"\t" and {row[0] for row in rows}.isdisjoint(row[-1] for row in rows):
        return None
    if delimiter == b"," or not all(len(row) == 2 and all(map(_NAME.fullmatch, row)) for row in rows):
        return None
    return Sniffed("edges", 0.6, ("--format", "edges", "--id-type", "string"), {"id_type": "string"})


def _confidence_of_numbers(head: TextHead, rows: list[list[bytes]]) -> float:
    """Return the confidence for lines that an EdgeList (``src,type,dst,weight…``) or a TSV could hold as well."""
    if head.delimiter == b"\t":
        marks = any(mark in cell for row in rows for cell in row[3:] for mark in (b"|", b":", b","))
        return 0.1 if marks and len(head.names) >= 4 else 0.8
    if any(parse is None for row in rows for parse in map(_NUMBER.match, row[2:4])):
        return 0.8  # in an EdgeList, a destination and a weight stand there
    return 0.6 if len(head.names) == 3 else _MOSTLY_EDGES


def look_for_triples(url: str, line: int, records: Sequence[Sequence[str]]) -> str:
    """Tell the user that lines without a header look like triples of names, which are read as edges; "" where they do not.

    Their second field is a relation where it repeats more than the others do, and never stands in their place.
    """
    if any(len(record) != 3 for record in records):
        return ""
    first, second, third = (dict.fromkeys(column) for column in zip(*records, strict=True))
    is_text = not any(re.fullmatch(r"[-+0-9.eE]*", name) for name in (*second, *third))
    if not is_text or len(second) >= min(len(first), len(third)) or not second.keys().isdisjoint({*first, *third}):
        return ""
    return (
        f"{url}:{line}: read as an edge from column 0 to column 1, and column 2 as its text; "
        f"where column 1 names relations, as {next(iter(second))!r} may, pass --format triples"
    )


def header_doubt(url: str, line: int, names: Sequence[str]) -> str:
    """Tell the user that a first line was taken for a header."""
    return f"{url}:{line}: read as a header ({', '.join(names)}); where this line is data, pass --header no"


def _names(url: str, line: HeadLine, delimiter: bytes, quoted: bool) -> tuple[str, ...]:
    """Split a header into names, without the blanks around them.

    Raises DataError where it is not UTF-8.
    """
    try:
        return tuple(map(STRIP, map(bytes.decode, split_line(url, line, delimiter, quoted))))
    except UnicodeDecodeError as error:
        raise DataError(
            f"the header is not UTF-8: {error.reason}", place=f"{url}:{line.number}:1", fix="convert the file to UTF-8"
        ) from None


def is_header_alone(file: SniffedFile) -> bool:
    """Return whether a file has one line that is neither blank nor a comment, and that line names columns."""
    lines = list(islice(iter_lines(file.head, complete=file.complete), 2))
    if len(lines) != 1 or not file.complete:
        return False
    names = split_text(file.url, lines[0], find_delimiter(lines[0].text))
    return guess_header([names], if_open=False).is_header


def find_delimiter(line: bytes, quoted: bool = True) -> bytes:
    """Return the delimiter of a line, quoted text aside: a comma where there is one, else a tab, else blanks (empty)."""
    bare = without_quoted(line) if quoted else line
    return b"," if b"," in bare else b"\t" if b"\t" in bare else b""


def without_quoted(line: bytes) -> bytes:
    """Return a line without the texts between double quotes, in which no delimiter counts."""
    return re.sub(rb'"[^"]*"', b"", line)


def refuse_quoted_blanks(url: str, lines: Sequence[HeadLine]) -> None:
    """Raise DataError for a field in double quotes where blanks are found to separate: quotes mean nothing there."""
    for line in lines:
        found = _QUOTED_FIELD.search(line.text)
        if found is not None:
            column = len(line.text[: found.start(1)].decode(errors="replace")) + 1
            raise DataError(
                f"blanks separate the columns, but this field is quoted: {found[1].decode(errors='replace')}",
                place=f"{url}:{line.number}:{column}",
                fix="write tabs or commas between the columns, or take quotes as they are with --no-quote",
            )


def split_text(url: str, line: HeadLine, delimiter: bytes, quoted: bool = True) -> list[str]:
    """Split one line as ``split_line`` does, into texts; bytes that are not UTF-8 are replaced."""
    return list(map(methodcaller("decode", errors="replace"), split_line(url, line, delimiter, quoted)))


def split_line(url: str, line: HeadLine, delimiter: bytes, quoted: bool = True) -> list[bytes]:
    """Split one line into its fields: at the delimiter, quotes by RFC 4180 where that is one character and ``quoted``.

    Raises DataError for quotes that do not close, or stand where none may. The kernel ``split_fields`` agrees with it.
    """
    if not delimiter:
        return re.split(rb"[ \t]+", line.text.strip(b" \t"))
    if not quoted or len(delimiter.decode()) != 1 or b'"' not in line.text:
        return line.text.split(delimiter)
    fields: list[bytes] = []
    field = rb'"([^"]*(?:""[^"]*)*)"|([^"]*?)'  # a step for each quote: one for each byte would take 100 bytes of memory
    pattern = re.compile(rb"(?:" + field + rb")(?:(" + re.escape(delimiter) + rb")|\Z)", re.DOTALL)
    at = 0
    while True:
        match = pattern.match(line.text, at)
        if match is None:
            raise DataError(
                "a quote does not close, or stands inside a field",
                place=f"{url}:{line.number}:{at + 1}",
                fix="write the whole field in double quotes and double those inside it; "
                "--quote allows line breaks, --no-quote takes quotes as they are",
            )
        fields.append(match[2] if match[1] is None else match[1].replace(b'""', b'"'))
        if match[3] is None:
            return fields
        at = match.end()


MAX_RECORDS = 1_000  # that are looked at behind the first: a millisecond

_NUMBER_LIKE = re.compile(r"[ \t]*(?:[0-9+\-.]|(?:nan|inf|infinity)[ \t]*\Z)", re.IGNORECASE)
NULLS = ("NA", "N/A", "None", "null", "nil", "?", r"\N")  # spellings, in any case, of cells that are absent
_ABSENT = frozenset(("", *map(str.lower, NULLS)))  # cells that say nothing of their column
_KEY = re.compile(r"(?:.*[a-z0-9](?:Id|ID)|(?:.*[_\-])?(?:id|ID|Id))")  # id, user_id, FromNodeId
# What headers call the columns of the ends, in small letters and digits; nobody calls two nodes of one edge so.
_ENDS = (("src", "dst"), ("source", "target"), ("source", "destination"))
_TRIPLES = (("head", "relation", "tail"), ("subject", "predicate", "object"))
# And so, too; but these may be words like others.
_FROM_TO = ("from", "to")
_PAIRS = (
    ("head", "tail"),
    ("subject", "object"),
    ("start", "end"),
    ("u", "v"),
    ("user", "item"),
    ("id1", "id2"),
    ("node1", "node2"),
    ("parent", "child"),
    ("sender", "receiver"),
    ("follower", "followee"),
    ("citing", "cited"),
)
# Of columns that count or date rows, and of times.
_OF_ROWS = ("id", "edgeid", "eid", "rowid", "row", "index", "idx", "time", "timestamp", "date")
_OF_TIMES = ("from", "to", "start", "end")
_ENDS_OF_KEYS = (  # src_id, FromNodeId
    *_ENDS,
    *(("srcid", "dstid"), ("sourceid", "targetid"), ("sourceid", "destinationid")),
    *(("srcnode", "dstnode"), ("sourcenode", "targetnode"), ("sourcenode", "destinationnode")),
    *(("srcnodeid", "dstnodeid"), ("sourcenodeid", "targetnodeid"), ("sourcenodeid", "destinationnodeid")),
)
_FROM_TO_KEYS = (("fromid", "toid"), ("fromnode", "tonode"), ("fromnodeid", "tonodeid"))
# First words of names that say which end a column is: source_id, to_name.
_END_WORDS = frozenset(("src", "source", "from", "dst", "dest", "destination", "target", "to"))
STRIP = methodcaller("strip", " \t")  # blanks around a name
# Last words of names that say what something is like, never which node: no end of an edge is called so.
_TRAIT = re.compile(
    r"age|name|names|firstname|lastname|surname|fullname|username|nickname|title|city|town|"
    r"country|state|region|address|street|zip|zipcode|postcode|phone|email|mail|url|website|"
    r"gender|sex|birthday|birthdate|birthyear|dob|born|date|day|month|year|time|timestamp|"
    r"datetime|created|updated|modified|price|cost|amount|salary|income|revenue|budget|balance|"
    r"score|rating|rank|weight|height|width|length|size|count|total|mean|avg|value|label|"
    r"category|type|kind|status|description|text|bio|comment|abstract|summary|keywords|"
    r"language|lang|color|colour|brand|version|population|area|lat|latitude|lon|lng|longitude|"
    r"job|occupation|profession"
)
_TRAIT_BEGINNINGS = ("is", "has", "num", "n", "avg", "total")
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


class HeaderGuess(NamedTuple):
    """Whether the first record is a header; ``is_sure`` False: it may as well be the other, and the user is told."""

    is_header: bool
    is_sure: bool = True


def is_words(fields: Sequence[str]) -> bool:
    """Return whether no field begins with a digit, sign or point, and none is nan or inf."""
    return not any(map(_NUMBER_LIKE.match, fields))


def names_columns(fields: Sequence[str]) -> bool:
    """Return whether fields are called as headers call the columns of IDs."""
    return _name_ends(fields) or any(map(_is_key, fields))


def _name_ends(fields: Sequence[str]) -> bool:
    plain = _plain(fields)
    return any(set(known) <= set(plain) for known in (*_ENDS, *_TRIPLES))


def _is_key(field: str) -> bool:
    return _KEY.fullmatch(field.strip(" \t")) is not None


def find_ends(names: Sequence[str]) -> tuple[int, int] | None:
    """Return which columns a header calls source and destination, None where it does not say.

    ``from`` and ``to`` may be times where the first two columns are called like IDs, or like another pair of ends.
    """
    plain = _plain(names)
    known = [*_ENDS_OF_KEYS]
    for head, relation, tail in _TRIPLES:
        if relation in plain:
            known.append((head, tail))
    if not (_are_likely(plain[:2]) or all(map(_is_key, names[:2]))):
        known.append(_FROM_TO)
    for src, dst in (*known, *_FROM_TO_KEYS):
        if plain.count(src) == 1 and plain.count(dst) == 1:
            return plain.index(src), plain.index(dst)
    return None


def name_later_ends(names: Sequence[str]) -> bool:
    """Return whether the first two columns are called less like ends of edges than later ones: ``edge_id,user_id,item_id``."""
    plain = [re.sub(r"(?<=.)(?:node)?id$", "", name) for name in _plain(names)]
    if all(map(_is_key, names[:2])):
        plain = [name for name in plain if name not in _OF_TIMES]
    if _are_likely(plain):
        return not _are_likely(plain[:2])
    return _plain(names[:1])[0] in _OF_ROWS and sum(map(_is_key, names[1:])) > 1


def name_nodes(names: Sequence[str]) -> bool:
    """Return whether the first column is called like an ID, and the second like a trait: ``id,age``, not ``child,parent``."""
    if len(names) < 2 or not _is_key(names[0]) or find_ends(names) is not None:
        return False
    ends, words = ([*map(str.lower, _WORDS.findall(name))] for name in names[:2])
    return (
        bool(words)
        and _END_WORDS.isdisjoint((*ends[:1], *words[:1]))
        and (_TRAIT.fullmatch(words[-1]) is not None or (len(words) > 1 and words[0] in _TRAIT_BEGINNINGS))
        and words[-1] != "id"
    )


def later_keys(names: Sequence[str]) -> list[str]:
    """Return the columns behind the first two that are called like IDs."""
    return list(filter(_is_key, map(STRIP, names[2:])))


def guess_header(records: Sequence[Sequence[str]], *, if_open: bool, ends: Collection[int] = ()) -> HeaderGuess:
    """Tell whether the first of a file's ``records`` is a header where any field may be text, raw IDs too.

    A field that looks like a number speaks against it, names such as ``src`` and ``dst`` for it: nobody calls nodes so; nor
    ``user_id``, unless that comes again in its column. Then: a field that comes again in its column (in any of ``ends``, for a
    column among them), or is spelled like another but for its digits, is data, and so are two fields that are the same; a word
    that headers have, and one above numbers, are names. ``if_open`` holds where nothing tells.
    """
    first, later = records[0], records[1 : MAX_RECORDS + 1]
    changes = any(_changes(field, _column(later, at)) for at, field in enumerate(first))
    if not is_words(first):
        return HeaderGuess(False, is_sure=not changes)
    if _name_ends(first):
        return HeaderGuess(True)
    keys = [at for at, field in enumerate(first) if _is_key(field) and (if_open or field.strip(" \t").lower() != "id")]
    if keys and not any(_recurs(first[at], *_spelled(_column(later, at))) for at in keys):
        return HeaderGuess(True)
    is_likely = _are_likely(_plain(first)) or any(map(_is_key, first))
    of_ends = _spelled({cell for at in ends for cell in _column(later, at)})
    for at, field in enumerate(first):
        if _recurs(field, *(of_ends if at in ends else _spelled(_column(later, at)))):
            return HeaderGuess(False, is_sure=not (is_likely or changes))
    if is_likely or changes:
        return HeaderGuess(True, is_sure=is_likely and changes)
    words = [field.strip(" \t") for field in first if field.strip(" \t")]
    has_twins = len(set(words)) < len(words)  # no two columns have one name
    return HeaderGuess(if_open and not has_twins, is_sure=has_twins)


def _plain(fields: Sequence[str]) -> list[str]:
    return list(map(partial(re.sub, r"[^a-z0-9]", ""), map(str.lower, fields)))


def _are_likely(plain: Sequence[str]) -> bool:
    return any(map(set(plain).issuperset, (_FROM_TO, *_PAIRS)))


def _column(records: Sequence[Sequence[str]], at: int) -> list[str]:
    return [record[at] for record in records if at < len(record)]


def _changes(field: str, cells: Sequence[str]) -> bool:
    """Return whether a word stands above numbers, and nothing but numbers."""
    if field.strip().lower() in _ABSENT or _NUMBER_LIKE.match(field):
        return False
    given = [cell for cell in cells if cell.strip().lower() not in _ABSENT]
    return bool(given) and all(map(_NUMBER_LIKE.match, given))


def _spelled(cells: Collection[str]) -> tuple[Collection[str], set[str]]:
    """Return cells, and how they are spelled but for their digits."""
    return cells, {re.sub("[0-9]+", "#", cell) for cell in cells}


def _recurs(field: str, cells: Collection[str], spellings: set[str]) -> bool:
    """Return whether a field is among later cells, or one with digits is spelled like one of them but for the digits."""
    if field in cells:
        return bool(field)
    mask = re.sub("[0-9]+", "#", field)
    return mask != field and mask in spellings
