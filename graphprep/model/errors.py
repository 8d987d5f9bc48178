"""What can go wrong, in the user's words. Every class carries the exit code of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphprep.model.shown.texts import shown

EXIT_DATA = 1
EXIT_USAGE = 2
EXIT_STORAGE = 3
EXIT_MEMORY = 4
_MOST_NAMES, _FIRST_NAMES = 20, 12  # in a list of choices: a longer one is cut
_ALIKE = 0.6  # of difflib's ratio


class GraphprepError(Exception):
    """Something that a user can act on: what is wrong, where, and how to fix it.

    ``place`` is the front of the message (``shop.csv:3:5``, ``metadata.json: num_parts``); ``items`` are what the message
    lists, one a line; ``fix`` is one sentence in the imperative, without a final full stop.
    """

    exit_code = EXIT_DATA

    def __init__(self, message: str, *, place: str = "", fix: str = "", items: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.place = place
        self.fix = fix
        self.items = tuple(items)

    def __str__(self) -> str:
        return error_text(self.message, self.place, self.fix, self.items)

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), dict(self.__dict__), self.args))


def error_text(message: str, place: str = "", fix: str = "", items: Iterable[str] = ()) -> str:
    """Put an error into lines, none of which a name from outside can break."""
    head = f"{place}: {message}" if place else message
    return "\n".join(map(shown, [head, *(f"  {item}" for item in items), *([f"  fix: {fix}"] if fix else [])]))


def one_of(names: Iterable[str], verb: str = "use one of", *, found: object = "") -> str:
    """Return the fix for a name that is not there: ``use one of a, b``; with ``found`` it begins with those like it."""
    every = list(names)
    near = _alike(found, every) if found else []
    if len(every) == 1 and near:
        return f"did you mean {near[0]!r}?"
    listed = every
    if len(every) > _MOST_NAMES:
        first = [*near, *(name for name in every if name not in near)][:_FIRST_NAMES]
        listed = [*first, f"... and {len(every) - len(first)} more"]
    known = f"{verb} {', '.join(listed)}" if every else "leave it out: there is none to name"
    return f"did you mean {near[0]!r}? {known}" if near else known


def did_you_mean(found: object, names: Iterable[str], otherwise: str = "") -> str:
    """Return the fix for a name that is like another: ``did you mean 'pyg'?``."""
    near = _alike(found, list(names))
    return f"did you mean {near[0]!r}?" if near else otherwise


def _alike(found: object, names: list[str]) -> list[str]:
    """Return the names that are like what was found, in capitals or not; also by a part, as an edge type's relation."""
    from difflib import get_close_matches

    whole = {name.lower(): name for name in reversed(names)}
    parts = {part.lower(): name for name in reversed(names) for part in name.replace("[", ":").split(":")}
    near = get_close_matches(str(found).lower(), parts | whole, 3, _ALIKE)
    return list(dict.fromkeys((parts | whole)[one] for one in near))


def _rebuild(cls: type[GraphprepError], state: dict[str, object], args: tuple[object, ...]) -> GraphprepError:
    error = cls.__new__(cls)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class DataError(GraphprepError):
    """The data is wrong."""


class UsageError(GraphprepError):
    """The command line or the arguments are wrong."""

    exit_code = EXIT_USAGE


class UnknownIdError(DataError, ValueError):
    """There is no such ID, or type of IDs; also a ValueError, as DGL's guide has it."""


class InvalidIdError(UsageError, ValueError):
    """What came is no ID; also a ValueError, as DGL's guide has it."""


class StorageError(GraphprepError):
    """Input or output failed: missing file, permission, disk full, network."""

    exit_code = EXIT_STORAGE


class DeviceError(GraphprepError):
    """A device failed: it is lost, or its memory does not suffice. What it was to compute is as it was before."""

    exit_code = EXIT_STORAGE


class MemoryLimitError(GraphprepError):
    """The memory limit cannot be met."""

    exit_code = EXIT_MEMORY


class DecodeError(DataError):
    """A record of a block is faulty. A decoder raises it; the decode stage turns it into a ``DataError`` with a place.

    ``at`` says where inside what was handed to the decoder: for text, the byte offset in the block of the field
    to blame; for tables, the row in the batch. ``column`` names a table's column.
    """

    def __init__(self, message: str, *, at: int, fix: str = "", column: str = "") -> None:
        super().__init__(message, fix=fix)
        self.at = at
        self.column = column


@dataclass(frozen=True)
class BadRecord:
    """One rejected record: where it stands (``file:line:column``) and why."""

    place: str
    reason: str
