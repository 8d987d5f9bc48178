"""Whether the first record of delimited text names its columns: the one rule of edge lists, triples and tables."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

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
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])")
_WAYS = re.compile(
    r"from|to|src|dst|source|target|orig|origin|dest|destination|start|end|head|tail|subject|object|parent|child|sender|receiver"
)
_DOER = re.compile(r"(?:ing|er|ee|ed|or)$")  # a follower and a followee, citing and cited: both are of one kind
# Of columns that count or date rows, and of times.
_OF_ROWS = ("id", "edgeid", "eid", "rowid", "row", "index", "idx", "time", "timestamp", "date")
_OF_TIMES = ("from", "to", "start", "end")
_OF_KEYS = ("id", "node", "nodeid")  # what may follow: src_id, FromNodeId
_ENDS_OF_KEYS = tuple((src + end, dst + end) for end in ("", *_OF_KEYS) for src, dst in _ENDS)
_FROM_TO_KEYS = tuple((_FROM_TO[0] + end, _FROM_TO[1] + end) for end in _OF_KEYS)


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


def name_two_kinds(src: str, dst: str) -> bool:
    """Return whether two columns of IDs are called like two kinds of things, as ``userId`` and ``movieId`` are."""
    return _kind(src) != _kind(dst)


def _kind(name: str) -> list[str]:
    """Return the words of a name that say what it names: not the end of an edge, a number, or a letter."""
    words = [word.lower() for word in _WORD.findall(name)]
    return [_DOER.sub("", word) for word in words if len(word) > 1 and not _WAYS.fullmatch(word)]


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
    if keys and not any(_recurs(first[at], _column(later, at)) for at in keys):
        return HeaderGuess(True)
    is_likely = _are_likely(_plain(first)) or any(map(_is_key, first))
    for at, field in enumerate(first):
        places = set(ends) if at in ends else {at}
        if _recurs(field, {cell for place in places for cell in _column(later, place)}):
            return HeaderGuess(False, is_sure=not (is_likely or changes))
    if is_likely or changes:
        return HeaderGuess(True, is_sure=is_likely and changes)
    words = [field.strip(" \t") for field in first if field.strip(" \t")]
    has_twins = len(set(words)) < len(words)  # no two columns have one name
    return HeaderGuess(if_open and not has_twins, is_sure=has_twins)


def _plain(fields: Sequence[str]) -> list[str]:
    return [re.sub(r"[^a-z0-9]", "", field.lower()) for field in fields]


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


def _recurs(field: str, cells: Collection[str]) -> bool:
    """Return whether a field is among later cells, or one with digits is spelled like one of them but for the digits."""
    if field in cells:
        return bool(field)
    mask = re.sub("[0-9]+", "#", field)
    return mask != field and mask in {re.sub("[0-9]+", "#", cell) for cell in cells}


__all__ = [
    "MAX_RECORDS",
    "NULLS",
    "HeaderGuess",
    "find_ends",
    "guess_header",
    "is_words",
    "name_later_ends",
    "name_two_kinds",
    "names_columns",
]
