"""``--config``: options of a command from a file; those of the command line win."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import typer

FLAG = "--config"
PARAMETER = inspect.Parameter(
    "config",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        str | None,
        typer.Option(
            FLAG,
            help="File of options, YAML or JSON; those of the command line win. A provenance.json repeats its convert.",
            metavar="FILE",
            rich_help_panel="Resources",
        ),
    ],
)


class Told(NamedTuple):
    """A value that a file has for an option, and where."""

    value: Any
    place: str


told: ContextVar[Mapping[str, Told]] = ContextVar("graphprep.told", default=MappingProxyType({}))  # of the command that begins


def config_of(args: Sequence[str]) -> str | None:
    """Return the file that a command line names; None without."""
    for at, word in enumerate(args):
        if word == "--":
            return None
        if word == FLAG and at + 1 < len(args):
            return args[at + 1]
        if word.startswith(f"{FLAG}="):
            return word.partition("=")[2]
    return None


def read_config(path: str) -> Mapping[str, Told]:
    """Read a file of options by their names in Python, or their flags without dashes.

    Raises StorageError, DataError, UsageError.
    """
    from graphprep.model.errors import DataError
    from graphprep.storage.faults import display_url
    from graphprep.storage.read.schemas import parse_json
    from graphprep.storage.read.urls import Storage
    from graphprep.storage.read.yaml_files import parse_yaml

    with Storage({}) as storage:
        data = storage.read_bytes(path)
    place = display_url(path)
    value = (parse_json if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else parse_yaml)(data, place) or {}
    if not isinstance(value, Mapping):
        raise DataError(f"expected options, found {value!r}", place=place, fix="write 'name: value' lines, or a JSON object")
    lineage = value.get("convert")
    if isinstance(lineage, Mapping) and isinstance(lineage.get("options"), Mapping):  # a provenance.json
        value = {"inputs": lineage.get("inputs"), **lineage["options"]}
    return {key.replace("-", "_"): Told(one, f"{place}: {key}") for key, one in value.items() if one is not None}


def by_parameter(found: Mapping[str, Told], params: Iterable[Any], bare: Collection[str], command: str) -> dict[str, Told]:
    """Return what a file tells by the names of a command's parameters; ``bare`` are options without flags.

    Raises UsageError for a name that no option has.
    """
    from graphprep.model.errors import UsageError, one_of

    own = [one for one in params if not one.name.startswith("help") and one.name != PARAMETER.name]
    names = {word.lstrip("-").replace("-", "_"): one.name for one in own for word in (*one.opts, one.name)}
    for name, one in found.items():
        if name not in names and name not in bare:
            fix = one_of(sorted({*names.values(), *bare}), found=name)
            raise UsageError(f"graphprep {command} has no option {name!r}", place=one.place.rpartition(": ")[0], fix=fix)
    is_bare = {name for name, one in found.items() if name in bare and not isinstance(one.value, str)}
    return {name if name in is_bare else names.get(name, name): one for name, one in found.items()}
