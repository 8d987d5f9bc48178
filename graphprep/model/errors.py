"""What can go wrong, in the user's words. Every class carries the exit code of the command line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from graphprep.model.shown.texts import shown

EXIT_DATA = 1
EXIT_USAGE = 2
EXIT_STORAGE = 3
EXIT_MEMORY = 4


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


def one_of(names: Iterable[str], verb: str = "use one of") -> str:
    """Return the fix for a name that is not there: ``use one of a, b``."""
    listed = ", ".join(names)
    return f"{verb} {listed}" if listed else "leave it out: there is none to name"


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
