"""What a user can ask of every command that works on large data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from graphprep.model.option import Option, read_pairs

_of_resources = partial(Option, "Resources")


@dataclass(frozen=True)
class RunOptions:
    """Options that mean the same for every command that works on large data.

    ``memory_limit`` is ``auto``, a size (``8GiB``) or a share (``50%``). ``threads`` 0 means one a core. ``device`` is
    ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; None: what GRAPHPREP_DEVICE says, else ``auto``. ``device_memory_limit`` is
    written like ``memory_limit``; a share is one of what is free there.
    """

    memory_limit: Annotated[str, _of_resources("Memory to use, all workers together: 8GiB, 50% or auto.", metavar="SIZE")] = (
        "auto"
    )
    threads: Annotated[
        int,
        _of_resources(
            "Threads to work with; 0 means one a core.", metavar="N", least=0, most=4096, hint="use 0 for one thread a core"
        ),
    ] = 0
    tmp_dir: Annotated[
        str | None, _of_resources("Folder for temporary files.  [default: beside OUT, else the system's]", metavar="DIR")
    ] = None
    storage_options: Annotated[
        Mapping[str, str],
        _of_resources(
            "Option of the remote file system, such as anon=true for s3://; may be repeated.",
            metavar="KEY=VALUE",
            flags="--storage-option",
            read=read_pairs,
        ),
    ] = field(default_factory=dict)
    device: Annotated[
        str | None,
        _of_resources(
            "Where arrays are built: auto, cpu, cuda or cuda:N.  [default: GRAPHPREP_DEVICE, else auto]",
            metavar="NAME",
            words="auto|cpu|cuda(?::[0-9]+)?",
        ),
    ] = None
    device_memory_limit: Annotated[
        str, _of_resources("Memory to use on a GPU: 8GiB, 50% of what is free there, or auto.", metavar="SIZE")
    ] = "auto"
