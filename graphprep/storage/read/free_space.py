"""Which disks a run writes to, and what is free there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from graphprep.storage.read.urls import local_path


def find_folders(out: str, tmp_dir: str | None) -> tuple[str | None, str]:
    """Return the folders of what is written to ``out`` (None: it is remote) and of the temporary files."""
    path = local_path(out)
    folder = None if path is None else Path(path).absolute().parent
    while folder is not None and not folder.exists():
        folder = folder.parent
    return None if folder is None else str(folder), tmp_dir or tempfile.gettempdir()


def free_bytes(folder: str) -> int | None:
    """Return what this user may still write to a folder's disk; None where the system does not say."""
    try:
        found = os.statvfs(folder)
    except (OSError, AttributeError):
        return None
    return found.f_bavail * found.f_frsize if found.f_blocks else None
