"""What a user can ask of every command that works on large data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunOptions:
    """Options that mean the same for every command that works on large data.

    ``memory_limit`` is ``auto``, a size (``8GiB``) or a share (``50%``). ``threads`` 0 means one a core. ``device`` is
    ``auto``, ``cpu``, ``cuda`` or ``cuda:N``; None: what GRAPHPREP_DEVICE says, else ``auto``. ``device_memory_limit`` is
    written like ``memory_limit``; a share is one of what is free there.
    """

    memory_limit: str = "auto"
    threads: int = 0
    tmp_dir: str | None = None
    storage_options: Mapping[str, str] = field(default_factory=dict)
    device: str | None = None
    device_memory_limit: str = "auto"
