"""Options that mean the same for every command. Declared once, here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from graphprep.model.run_options import RunOptions


def option(
    section: str, help: str, names: str = "", *, metavar: str | None = None, default: str | bool = True
) -> typer.models.OptionInfo:
    """Declare an option: the section of the help in which it stands, its help, and its flags, if not those of its field."""
    info: typer.models.OptionInfo = typer.Option(
        *names.split(), help=help, metavar=metavar, rich_help_panel=section, show_default=default
    )
    return info


_REPORT = "Output of the command"
_of_resources = partial(option, "Resources")
of_report = partial(option, _REPORT)

OverwriteStore = Annotated[
    bool,
    option(
        "Store", "Replace OUT if it is a store; the old one stays until the new one is whole.", "--overwrite", default=False
    ),
]
Quiet = Annotated[bool, of_report("Print nothing but errors, and what --json asks for.", "--quiet -q", default=False)]
Threads = Annotated[int, _of_resources("Threads to work with; 0 means one a core.", "--threads", metavar="N")]


@dataclass(frozen=True, eq=False, repr=False)
class RunFlags:
    """What a command may use of the machine."""

    memory_limit: Annotated[str, _of_resources("Memory to use, all workers together: 8GiB, 50% or auto.", metavar="SIZE")] = (
        "auto"
    )
    threads: Threads = 0
    tmp_dir: Annotated[
        str | None, _of_resources("Folder for temporary files.  [default: beside OUT, else the system's]", metavar="DIR")
    ] = None

    def to_options(self, storage: StorageFlags) -> RunOptions:
        """Return the library's form.

        Raises UsageError where a storage option is no ``KEY=VALUE``.
        """
        from graphprep.model.run_options import RunOptions

        return RunOptions(self.memory_limit, self.threads, self.tmp_dir, storage.to_mapping())


@dataclass(frozen=True, eq=False, repr=False)
class DeviceFlags(RunFlags):
    """What a command that builds arrays may use of the machine."""

    device: Annotated[
        str | None,
        _of_resources(
            "Where arrays are built: auto, cpu, cuda or cuda:N.  [default: GRAPHPREP_DEVICE, else auto]", metavar="NAME"
        ),
    ] = None
    device_memory_limit: Annotated[
        str, _of_resources("Memory to use on a GPU: 8GiB, 50% of what is free there, or auto.", metavar="SIZE")
    ] = "auto"

    def to_options(self, storage: StorageFlags) -> RunOptions:
        """See ``RunFlags.to_options``."""
        options = super().to_options(storage)
        return replace(options, device=self.device, device_memory_limit=self.device_memory_limit)


@dataclass(frozen=True, eq=False, repr=False)
class StorageFlags:
    """How remote files are reached."""

    storage_option: Annotated[
        list[str],
        _of_resources("Option of the remote file system, such as anon=true for s3://; may be repeated.", metavar="KEY=VALUE"),
    ] = field(default_factory=list)

    def to_mapping(self) -> Mapping[str, str]:
        """Return the options by key.

        Raises UsageError where one is no ``KEY=VALUE``.
        """
        return parse_pairs("--storage-option", self.storage_option)


@dataclass(frozen=True, eq=False, repr=False)
class ReportFlags:
    """What a command says while it works, on stderr."""

    progress: Annotated[
        Literal["auto", "plain", "none"], of_report("Progress: a bar on a terminal (auto), plain lines, or none.")
    ] = "auto"
    log_format: Annotated[
        Literal["text", "json"], of_report("Progress, messages and errors as text or as one JSON object a line.")
    ] = "text"
    no_color: Annotated[bool, of_report("Write no colors on a terminal, as with NO_COLOR=1.", "--no-color", default=False)] = (
        False
    )
    quiet: Quiet = False
    verbose: Annotated[
        int,
        typer.Option(
            "--verbose",
            "-v",
            count=True,
            help="Say more: the time of each stage; -vv shows the traceback of an internal error.",
            rich_help_panel=_REPORT,
            show_default=False,
            metavar="",
        ),
    ] = 0


AsJson = Annotated[bool, of_report("Print the result as JSON, for machines.", "--json", default=False)]

DryRun = Annotated[
    bool,
    of_report("Say what the run would take, as graphprep plan does, and write nothing.", "--dry-run", default=False),
]


def values_of(*groups: Any) -> dict[str, Any]:
    """Return flags by their fields' names, as the library's options take them: lists are tuples."""
    found = {one.name: getattr(group, one.name) for group in groups for one in fields(group)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def parse_pairs(flag: str, pairs: list[str]) -> Mapping[str, str]:
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
