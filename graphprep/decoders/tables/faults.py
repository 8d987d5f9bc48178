"""What is wrong with a cell of a table, in words: a kernel's code to a message and a remedy."""

from __future__ import annotations

from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Wording, ends_for_date
from graphprep.decoders.tables.columns import ColumnType
from graphprep.kernels.cpu.text import delimited, numbers

_STRINGS = "pass --id-type string where IDs are names"
_TO_UTF8 = "convert the file to UTF-8"


def key_words(field: str, code: int, found: str, kind: IdKind, *, may_be_header: bool = False) -> Wording:
    """Say what is wrong with an ID; ``may_be_header`` where it stands on the first line of a file without a header."""
    words = {
        numbers.EMPTY: ("is empty", "give every row its keys, or leave the row out"),
        delimited.NOT_UTF8: (f"is not UTF-8, found {found}", _TO_UTF8),
        numbers.NEGATIVE: (f"must not be negative, found {found}", "pass --id-type int where IDs may be negative"),
        numbers.OVERFLOW: (f"must be below 2^64, found {found}", _STRINGS),
        numbers.INVALID: (f"must be an integer, found {found}", _STRINGS),
    }
    message, fix = words[code]
    if code == numbers.OVERFLOW and kind == "int":
        message = f"must be from -2^63 to 2^63-1, found {found}"
        fix = f"pass --id-type uint where IDs are at least 0, or {_STRINGS.removeprefix('pass ')}"
    if code == numbers.INVALID and ends_for_date(found):
        fix = "this is a date: name the column of the ID with --id-col, or of edges' ends with --src-col and --dst-col"
    elif code == numbers.INVALID and may_be_header:
        fix += ", or --header yes where this line names the columns"
    return Wording(f"field {field!r} {message}", fix)


def name_words(field: str, code: int, found: str) -> Wording:
    """Say what is wrong with the name of a type or a relation."""
    if code == numbers.EMPTY:
        return Wording(f"field {field!r} is empty", "name the type or relation of every row")
    return Wording(f"field {field!r} is not UTF-8, found {found}", _TO_UTF8)


def type_words(field: str, code: int, found: str, kind: ColumnType) -> Wording:
    """Say what is wrong with a date, a timestamp or a list."""
    if kind.unit == "day":
        return Wording(f"field {field!r} must be a date as YYYY-MM-DD, found {found}", _other(field))
    if kind.unit is not None and code == numbers.FRACTION:
        return Wording(f"field {field!r} is finer than one {kind.unit}, found {found}", "declare a finer unit: ms, us or ns")
    if kind.unit is not None and code == numbers.OVERFLOW:
        return Wording(
            f"field {field!r} does not fit int64 in {kind.unit}, found {found}", "declare a coarser unit: us, ms or s"
        )
    if kind.unit is not None:
        return Wording(f"field {field!r} must be a timestamp as YYYY-MM-DD hh:mm:ss, found {found}", _other(field))
    what = {"b": "0, 1, true or false", "f": "numbers"}.get(kind.dtype[0], "integers")
    if code == numbers.OVERFLOW:
        return Wording(
            f"field {field!r} does not fit list<{kind.dtype}>, found {found}", f"declare a wider dtype: --column {field}=…"
        )
    return Wording(f"field {field!r} must be a list of {what}, found {found}", _other(field))


def size_words(field: str, expected: int, found: int) -> Wording:
    """Say that a list has another length than declared."""
    return Wording(f"field {field!r} must hold {expected} values, found {found}", "repair the row, or declare list<dtype>")


def _other(field: str) -> str:
    return f"repair the field, or declare another dtype, such as --column {field}=binary"
