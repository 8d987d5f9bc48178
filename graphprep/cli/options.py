"""Options of the command line alone: what it says, and how."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from graphprep.model.option import Option

of_report = partial(Option, "Output of the command")
Quiet = Annotated[bool, of_report("Print nothing but errors, and what --json asks for.", flags="--quiet -q")]
AsJson = Annotated[bool, of_report("Print the result as JSON, for machines.", flags="--json", is_first=True)]
DryRun = Annotated[bool, of_report("Say what the run would take, as graphprep plan does, and write nothing.")]
# Of RunOptions: what builds nothing on a device leaves these out, and what reads little all but the last.
OF_DEVICES = ("device", "device_memory_limit")
OF_MEMORY = ("memory_limit", "threads", "tmp_dir", *OF_DEVICES)


@dataclass(frozen=True, eq=False, repr=False)
class ReportFlags:
    """What a command says while it works, on stderr."""

    progress: Annotated[
        Literal["auto", "plain", "none"], of_report("Progress: a bar on a terminal (auto), plain lines, or none.")
    ] = "auto"
    log_format: Annotated[
        Literal["text", "json"], of_report("Progress, messages and errors as text or as one JSON object a line.")
    ] = "text"
    no_color: Annotated[bool, of_report("Write no colors on a terminal, as with NO_COLOR=1.")] = False
    quiet: Quiet = False
    verbose: Annotated[
        int,
        of_report(
            "Say more: the time of each stage; -vv shows the traceback of an internal error.",
            flags="--verbose -v",
            is_counted=True,
        ),
    ] = 0
