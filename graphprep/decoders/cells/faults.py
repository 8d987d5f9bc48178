"""What is wrong with a field of delimited text, in words: a kernel's code to a message and a remedy."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from graphprep.decoders.cells.columns import IdKind
from graphprep.kernels.cpu.text import delimited, numbers

_SHOWN_BYTES = 60


class Wording(NamedTuple):
    """A message, and how to fix what it says."""

    message: str
    fix: str


def show(value: bytes) -> str:
    """Quote a value as found, shortened where it is long."""
    text = value[:_SHOWN_BYTES].decode(errors="replace")
    return repr(text + "…" if len(value) > _SHOWN_BYTES else text)


_DATE = re.compile(r"'(?:[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4})(?![0-9])")
NAME_ENDS = "name the columns of both ends with --src-col and --dst-col"


def ends_for_date(found: str) -> str:
    """Say how to go on where a date is read as an ID; "" where the field, as quoted, is none."""
    return f"this is a date: {NAME_ENDS}" if _DATE.match(found) else ""


_STRINGS = "declare string IDs with --id-type string"


def id_words(field: str, code: int, found: str, base: int, kind: IdKind = "uint", *, may_be_header: bool = False) -> Wording:
    """Say what is wrong with an ID; ``may_be_header`` where it stands on the first line of a file without a header."""
    words = {
        numbers.EMPTY: ("is empty", "give every edge a source and a destination"),
        delimited.NOT_UTF8: (f"is not UTF-8, found {found}", "convert the file to UTF-8"),
        numbers.NEGATIVE: (
            f"must not be negative, found {found}",
            "give every node an ID of 0 or more, or declare signed IDs with --id-type int",
        ),
        numbers.OVERFLOW: (f"must be below 2^64, found {found}", f"give every node an ID below 2^64, or {_STRINGS}"),
        delimited.BELOW_BASE: (f"must be at least {base}, found {found}", "leave out --index-base where IDs count from 0"),
        numbers.INVALID: (f"must be an integer, found {found}", f"write IDs as decimal digits, or {_STRINGS}"),
    }
    message, fix = words[code]
    if code == numbers.OVERFLOW and kind == "int":
        message = f"must be from -2^63 to 2^63-1, found {found}"
        fix = f"declare IDs from 0 to 2^64-1 with --id-type uint, or {_STRINGS}"
    if code == numbers.INVALID and ends_for_date(found):
        fix = ends_for_date(found)
    elif code == numbers.INVALID and may_be_header:
        fix += "; where this line names the columns, pass --header yes"
    return Wording(f"field {field!r} {message}", fix)


HEADER_AGAIN = Wording(
    "the header of the file stands here again",
    "take the line out, or pass --on-error skip; where the file's first line is an edge, too, pass --header no",
)


def relation_words(code: int, found: str) -> Wording:
    """Say what is wrong with the name of a relation."""
    if code == numbers.EMPTY:
        return Wording("field 'relation' is empty", "give every edge a relation, or leave out --relation-col")
    return Wording(f"field 'relation' is not UTF-8, found {found}", "convert the file to UTF-8")


def weight_words(code: int, found: str, dtype: str) -> Wording:
    """Say what is wrong with a weight."""
    if code == numbers.OVERFLOW and dtype == "float32":
        return Wording(f"field 'weight' is too large for float32, found {found}", "pass --weight-dtype float64")
    if code == numbers.OVERFLOW:
        return Wording(f"field 'weight' is too large for {dtype}, found {found}", "scale the weights")
    return Wording(f"field 'weight' must be a number, found {found}", "repair the field, or leave it empty")


TEXT_TIMES = "times that are text are read in tables: --edges SRC:REL:DST=FILE, with --time-col COL --column 'COL=timestamp[s]'"


def time_words(code: int, found: str, unit: str | None, column: str | None = None) -> Wording:
    """Say what is wrong with a time; ``column`` is its name in a table, None in an edge list."""
    if code == numbers.OVERFLOW:
        return Wording(f"field 'time' does not fit int64, found {found}", "take a coarser --time-unit, or repair the field")
    if code == numbers.FRACTION and unit is None:
        return Wording(
            f"field 'time' must be a whole number, found {found}", "pass --time-unit ms, us or ns to multiply times in seconds"
        )
    if code == numbers.FRACTION:
        return Wording(f"field 'time' is finer than one {unit}, found {found}", "take a finer --time-unit: ms, us or ns")
    as_text = TEXT_TIMES if column is None else f"where times are text, add --column '{column}=timestamp[s]' or {column}=date"
    return Wording(f"field 'time' must be a number, found {found}", f"repair the field or leave it empty; {as_text}")


def column_words(field: str, code: int, found: str, dtype: str) -> Wording:
    """Say what is wrong with a further column's cell."""
    if code == delimited.NOT_UTF8:
        return Wording(f"field {field!r} is not UTF-8, found {found}", "convert the file to UTF-8, or leave the column out")
    if code == numbers.OVERFLOW:
        return Wording(f"field {field!r} does not fit {dtype}, found {found}", f"declare a wider dtype: --column {field}=…")
    what = {"b": "0, 1, true or false", "f": "a number"}.get(np.dtype(dtype).kind, "an integer")
    return Wording(
        f"field {field!r} must be {what}, found {found}",
        "repair the field, or declare another dtype with --column",
    )


def record_words(code: int, expected: int, found: int, across_lines: bool = False) -> Wording:
    """Say what is wrong with a whole record."""
    if code == delimited.UNCLOSED_QUOTE and across_lines:
        return Wording("a quote does not close", "close it; double the quotes inside a quoted field")
    if code == delimited.UNCLOSED_QUOTE:
        return Wording(
            "a quote does not close on its line",
            "close it and double the quotes inside it; --quote allows line breaks, --no-quote takes quotes as they are",
        )
    if code == delimited.AFTER_QUOTE:
        return Wording("text follows a closing quote", "write the whole field in double quotes and double those inside it")
    if code == delimited.STRAY_QUOTE:
        return Wording("a quote inside an unquoted field", "write the whole field in double quotes and double those inside it")
    if code == delimited.ESCAPED_END:
        return Wording("the file ends behind an escape", "take the escape off, or escape it")
    return Wording(
        f"expected {expected} {'column' if expected == 1 else 'columns'}, found {found}",
        "give every line as many columns as the first, empty ones where there is no value",
    )
