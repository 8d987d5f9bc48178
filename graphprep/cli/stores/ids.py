"""``graphprep ids``: IDs from one space to another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_MEMORY
from graphprep.model.option import Option
from graphprep.model.run_options import RunOptions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from graphprep.ids.lookup import FoundIds, GivenIds, IdLookup

_of_conversion = partial(Option, "Conversion")
_BLOCK = 1 << 16  # IDs converted at once
_SCAN_BLOCK = 1 << 22  # where every block costs a pass over all edge IDs
_SHOWN = 40
_MAX_ID = 2**64 - 1
_DIGITS = 1000  # longer numbers take Python long to read, and no store has them
_CONTROL = re.compile("[\x00-\x1f]")


@with_groups(without=OF_MEMORY, has_config=False)
def ids(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to look into.", show_default=False)],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ID...]", help="IDs to convert; none or - reads them from stdin, one a line.", show_default=False
        ),
    ] = None,
    *,
    from_space: Annotated[
        str,
        _of_conversion(
            "Space of the IDs: raw, typed, homo, part, local, previous; edges: id, row, homo, part, local.",
            flags="--from",
            metavar="SPACE",
        ),
    ],
    to_space: Annotated[str, _of_conversion("Space to convert to. Local IDs are PART:LOCAL.", flags="--to", metavar="SPACE")],
    type_name: Annotated[
        str | None,
        _of_conversion("Node type, or edge type SRC:REL:DST; needed where IDs do not tell it.", flags="--type", metavar="TYPE"),
    ] = None,
    edge: Annotated[bool, _of_conversion("Convert edges: edge ID (id), edge row (row), homo, part, local.")] = False,
    file: Annotated[str | None, _of_conversion("File of IDs, one a line.", metavar="FILE")] = None,
    missing: Annotated[
        Literal["error", "skip", "mark"],
        _of_conversion(
            "At an ID that the store does not have: fail, leave it out, or print -1 (an empty line for string IDs)."
        ),
    ] = "error",
    as_json: Annotated[bool, _of_conversion("Print one JSON object an ID, for machines.", flags="--json")] = False,
    run_options: RunOptions,
) -> None:
    """Convert IDs between raw, typed, homo, part and local.

    In a store that graphprep reorder wrote, previous IDs are the typed ones from before any reorder.

    Prints one line an ID, in the order of the input; with the type in front, after a tab, where IDs of several types may come.
    String IDs are lines as they are; one that begins with a double quote, or holds a line break, is a JSON string.

    Example: graphprep ids karate-store 0 33 --from raw --to local
    """
    from graphprep import api

    with api.open_ids(
        store, from_=from_space, to=to_space, type_=type_name, edges=edge, storage_options=run_options.storage_options
    ) as lookup:
        printer = Printer(lookup, missing, as_json=as_json)
        for lines in _read_lines(lookup, values or [], file, run_options.storage_options):
            typer.echo(printer.convert(lines), nl=False)


@dataclass(frozen=True)
class Lines:
    """IDs as text, and where they stand: ``name`` with a number for each (lines of a file, positions of arguments)."""

    name: str
    texts: list[str]
    numbers: list[int]

    def place(self, i: int) -> str:
        """Return ``ids.txt:3``, ``-:3`` or ``argument 3``."""
        return f"{self.name}{self.numbers[i]}"


def _read_lines(lookup: IdLookup, values: list[str], file: str | None, storage_options: Mapping[str, str]) -> Iterator[Lines]:
    """Yield blocks of IDs from the arguments, the file or stdin; blank lines are passed over.

    Raises UsageError where IDs are given in two ways.
    """
    import sys

    from graphprep import api
    from graphprep.model.errors import UsageError
    from graphprep.storage.faults import display_url

    size = _SCAN_BLOCK if lookup.scans else _BLOCK
    if file is not None and values:
        raise UsageError("IDs are given as arguments and by --file", fix="leave out one of them")
    read = _read_text if lookup.given_kind == "string" else _read_number
    if values and values != ["-"]:
        texts = [read(value.encode(errors="surrogateescape"), f"argument {i}") for i, value in enumerate(values, 1)]
        yield Lines("argument ", texts, list(range(1, len(values) + 1)))
    elif file is not None and file != "-":
        with api.open_file(file, storage_options) as handle:
            yield from _blocks(handle, f"{display_url(file)}:", size, read)
    else:
        yield from _blocks(sys.stdin.buffer, "-:", size, read)


def _read_number(line: bytes, place: str) -> str:
    return line.decode("utf-8", "backslashreplace").strip()


def _read_text(line: bytes, place: str) -> str:
    """Return a string ID, as it is or as a JSON string; "" for a blank line.

    Raises DataError for what is no text.
    """
    import json

    from graphprep.model.errors import DataError

    line = line.removesuffix(b"\n").removesuffix(b"\r")
    try:
        text = line.decode()
        if not text.strip(" \t"):
            return ""
        if not text.startswith('"'):
            return text
        text = json.loads(text)
        text.encode()
        return str(text)
    except (json.JSONDecodeError, RecursionError):
        fix = 'double the backslashes in it, and write \\" for a double quote'
        raise DataError("what begins with a double quote must be a JSON string", place=place, fix=fix) from None
    except UnicodeError:
        raise DataError("an ID must be UTF-8", place=place, fix="convert the file to UTF-8") from None


def _write_text(text: str) -> str:
    """Write a string ID as ``_read_text`` reads it."""
    import json

    return json.dumps(text, ensure_ascii=False) if text[:1] == '"' or _CONTROL.search(text) else text


def _blocks(handle: BinaryIO, name: str, size: int, read: Callable[[bytes, str], str]) -> Iterator[Lines]:
    texts: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate(handle, 1):
        text = read(line, f"{name}{number}")
        if not text:
            continue
        texts.append(text)
        numbers.append(number)
        if len(texts) == size:
            yield Lines(name, texts, numbers)
            texts, numbers = [], []
    if texts:
        yield Lines(name, texts, numbers)


class Printer:
    """Converts lines and words the result."""

    def __init__(self, lookup: IdLookup, missing: str, *, as_json: bool) -> None:
        self._lookup = lookup
        self._missing = missing
        self._as_json = as_json

    def convert(self, lines: Lines) -> str:
        """Return the output for a block of lines.

        Raises DataError with the line for what is no ID and, unless it is to be skipped or marked, for an ID that is not there.
        """
        import numpy as np

        values, parts, fits = self._parse(lines)
        result = self._lookup.convert(values, parts)
        found = result.found & fits
        if self._missing == "error" and not found.all():
            self._refuse(lines, int(np.argmin(found)))
        texts = self._json(lines, result, found) if self._as_json else self._plain(result, found)
        return "".join(f"{text}\n" for text in texts)

    def _parse(self, lines: Lines) -> tuple[GivenIds, NDArray[np.int64] | None, NDArray[np.bool_]]:
        """Return (IDs, partitions of local IDs, which fit 64 bits at all)."""
        import numpy as np

        if self._lookup.given_kind == "string":
            from graphprep.model.rows import RawTexts

            return RawTexts.of([text.encode() for text in lines.texts]), None, np.ones(len(lines.texts), np.bool_)
        if self._lookup.given_kind == "int64" and any(text[:1] == "-" for text in lines.texts):
            signed, fits = _parse_signed(lines)
            return signed, None, fits
        if self._lookup.from_ != "local":
            values, fits = _parse_numbers(lines, lines.texts, "an ID of decimal digits")
            return values, None, fits
        pairs = [text.partition(":") for text in lines.texts]
        what = "PART:LOCAL, two numbers"
        for i, (_, colon, _) in enumerate(pairs):
            if not colon:
                raise _not_an_id(lines, i, what)
        parts, parts_fit = _parse_numbers(lines, [pair[0] for pair in pairs], what)
        values, fits = _parse_numbers(lines, [pair[2] for pair in pairs], what)
        small = parts < np.uint64(2**62)
        return values, np.where(small, parts, 2**62).astype(np.int64), fits & parts_fit

    def _refuse(self, lines: Lines, i: int) -> None:
        from graphprep.model.errors import DataError

        lookup = self._lookup
        of = f" of type {lookup.type_names[lookup.type_number]!r}" if lookup.type_number is not None else ""
        what = f"{lookup.from_} {'edge' if lookup.edges else 'node'} ID" if lookup.from_ != "id" else "edge ID"
        what = "edge row" if lookup.from_ == "row" else what
        text = lines.texts[i] if len(lines.texts[i]) <= _SHOWN else f"{lines.texts[i][:_SHOWN]}…"
        text = repr(text) if lookup.given_kind == "string" else text
        raise DataError(
            f"there is no {what} {text}{of}", place=lines.place(i), fix="leave it out, or add --missing skip or mark"
        )

    def _plain(self, result: FoundIds, found: NDArray[np.bool_]) -> Iterator[str]:
        names = [None if self._lookup.one_type else name for name in self._lookup.type_names]
        for i, (value, here) in enumerate(zip(result.ids.tolist(), found.tolist(), strict=True)):
            if not here:
                if self._missing == "mark":
                    yield "" if result.ids.dtype.kind == "O" else "-1"
                continue
            text = _write_text(value) if isinstance(value, str) else str(value)
            text = text if result.parts is None else f"{result.parts[i]}:{value}"
            name = names[int(result.types[i])]
            yield text if name is None else f"{name}\t{text}"

    def _json(self, lines: Lines, result: FoundIds, found: NDArray[np.bool_]) -> Iterator[str]:
        import json

        for i, (value, here) in enumerate(zip(result.ids.tolist(), found.tolist(), strict=True)):
            if not here and self._missing == "skip":
                continue
            answer: dict[str, Any] = {"from": lines.texts[i], "to": value if here else None}
            if here:
                answer["type"] = self._lookup.type_names[int(result.types[i])]
            if here and result.parts is not None:
                answer["part"] = int(result.parts[i])
            yield json.dumps(answer, ensure_ascii=False)


def _parse_numbers(lines: Lines, texts: list[str], what: str) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    """Read decimal numbers; those of more than 64 bits are told, since no store has such an ID."""
    import numpy as np

    if not all(map(str.isdecimal, texts)) or not all(map(str.isascii, texts)):
        raise _not_an_id(lines, next(i for i, text in enumerate(texts) if not (text.isascii() and text.isdecimal())), what)
    numbers = [int(text) if len(text) <= _DIGITS else _MAX_ID + 1 for text in texts]
    if max(numbers, default=0) <= _MAX_ID:
        return np.array(numbers, np.uint64), np.ones(len(numbers), np.bool_)
    fits = np.array([number <= _MAX_ID for number in numbers], np.bool_)
    return np.array([min(number, _MAX_ID) for number in numbers], np.uint64), fits


def _parse_signed(lines: Lines) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Read decimal numbers, some of them negative; those beyond int64 are told."""
    import numpy as np

    digits = [text.removeprefix("-") for text in lines.texts]
    if not all(text.isascii() and text.isdecimal() for text in digits):
        wrong = next(i for i, text in enumerate(digits) if not (text.isascii() and text.isdecimal()))
        raise _not_an_id(lines, wrong, "an ID of decimal digits")
    numbers = [int(text) if len(text) <= _DIGITS else _MAX_ID for text in lines.texts]
    fits = np.array([-(2**63) <= number < 2**63 for number in numbers], np.bool_)
    return np.array([number if fit else 0 for number, fit in zip(numbers, fits, strict=True)], np.int64), fits


def _not_an_id(lines: Lines, i: int, what: str) -> Exception:
    from graphprep.model.errors import DataError

    text = lines.texts[i]
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return DataError(f"expected {what}, found {shown!r}", place=lines.place(i), fix="write one ID a line")
