"""What an option is called, means and takes: declared once, behind the type of its field.

Flags and their help, checks of values, the words of messages, and what provenance.json records are made of it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

PLAIN = ("edges", "triples", "arrays", "mtx", "metis")  # formats without records of nodes
TABLES = ("tables",)  # of --nodes and --edges


@dataclass(frozen=True, eq=False, repr=False)
class Option:
    """An option: the panel of the help in which it stands, and its help.

    ``flags`` are those of the command line, where they are not made of the field's name; ``metavar`` is what its value is
    called there, ``read`` makes the value of the flag and its texts, ``is_counted``: of how often it is given. ``formats``
    take it, beside those whose decoders have a field of its name. ``is_first``: the first screen of the help has it;
    ``is_required``: the command line must. A value is ``least`` or more, ``most`` or less; ``hint`` is the remedy. ``words`` is
    a pattern of values that messages name. ``is_recorded``: provenance.json has it, as it says what a store holds.
    """

    panel: str
    help: str
    flags: str = ""
    metavar: str | None = None
    read: Callable[[str, Sequence[str]], Any] | None = None
    formats: tuple[str, ...] = ()
    is_first: bool = False
    is_required: bool = False
    is_counted: bool = False
    is_recorded: bool = True
    least: int | None = None
    most: int | None = None
    hint: str = ""
    words: str = ""

    def flag(self, name: str) -> str:
        """Return the long flag of the field ``name``."""
        return self.flags.split()[0].partition("/")[0] if self.flags else f"--{name.replace('_', '-')}"


OVERWRITE = Option("Store", "Replace OUT if it is a store; the old one stays until the new one is whole.", is_recorded=False)
MISSING_TIME = "refuse|drop|-?[0-9][0-9T:.-]*"


class Declared(NamedTuple):
    """A field that is an option: its type, what is declared behind it, its default and its long flag."""

    name: str
    kind: Any
    option: Option
    default: Any
    flag: str


def declared(cls: Any) -> Mapping[str, Declared]:
    """Return the options of a dataclass, by field."""
    return _declared(cls)


@functools.cache
def _declared(cls: Any) -> Mapping[str, Declared]:
    hints, found = get_type_hints(cls, include_extras=True), {}
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        option = next((one for one in get_args(hint)[1:] if isinstance(one, Option)), None)
        if get_origin(hint) is Annotated and option is not None:
            default = None if field.default_factory is dataclasses.MISSING else field.default_factory()
            default = default if field.default is dataclasses.MISSING else field.default
            found[field.name] = Declared(field.name, get_args(hint)[0], option, default, option.flag(field.name))
    return found


def flag_of(name: str, *kinds: type) -> str:
    """Return the flag of an option of one of these dataclasses; of another name what a flag would be."""
    known = next((one for kind in kinds if (one := declared(kind).get(name)) is not None), None)
    return f"--{name.replace('_', '-')}" if known is None else known.flag


def read_pairs(flag: str, pairs: Sequence[str]) -> Mapping[str, str]:
    """Read repeated ``KEY=VALUE``.

    Raises UsageError where one has no ``=`` or no key.
    """
    from graphprep.model.errors import UsageError

    values: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"{flag} must be KEY=VALUE, found {pair!r}", fix=f"write {flag} key=value")
        values[key] = value
    return values


def from_json(kind: Any, value: Any) -> Any:
    """Return a value of JSON as an annotation says; what a dataclass has no field for is passed over.

    Raises TypeError or ValueError for a value of another form.
    """
    if dataclasses.is_dataclass(kind):
        hints, names = get_type_hints(kind), [field.name for field in dataclasses.fields(kind)]
        return kind(**{name: from_json(hints[name], one) for name, one in dict(value).items() if name in names})  # type: ignore[operator]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = [one for one in inner if one is not type(None)]
        return from_json(kinds[0], value) if value is not None and len(kinds) == 1 else value
    if origin is tuple and isinstance(value, list | tuple):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        return tuple(from_json(one, item) for one, item in zip(kinds, value, strict=True))
    wanted = (
        origin if origin in (Mapping, tuple) else float | int if kind is float else kind if isinstance(kind, type) else object
    )
    if not isinstance(value, wanted) or (origin is Literal and value not in inner):
        raise TypeError(f"expected {kind}, found {value!r}")
    return value
