"""The disks on which a run writes: which these are, what is free, and whether that is enough."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from graphprep.engine.budget import format_size
from graphprep.model.errors import StorageError
from graphprep.model.protocols import Reporter
from graphprep.storage.private import TMP_DIR_OPTION
from graphprep.storage.read.urls import local_path


class DiskNeed(NamedTuple):
    """Bytes that a run takes at least: of temporary files at one time, and of the store.

    ``under_limit``: with more memory it would take fewer temporary files.
    """

    temporary_bytes: int = 0
    output_bytes: int = 0
    under_limit: bool = True


class _Place(NamedTuple):
    """A folder, what a run takes there, and what to do where it does not fit."""

    folder: str
    words: str
    fix: str
    need_bytes: int
    free_bytes: int

    @property
    def text(self) -> str:
        return f"{self.words} at least {format_size(self.need_bytes)} in {self.folder}, {format_size(self.free_bytes)} are free"


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


def folder_beside(out: str) -> str | None:
    """Return the folder of a local OUT, where there is room for it and so for temporary files; None: the system's place."""
    path = local_path(out)
    folder = None if path is None else Path(path).absolute().parent
    return str(folder) if folder is not None and folder.is_dir() and os.access(folder, os.W_OK) else None


def compare_disk(out: str, tmp_dir: str | None, need: DiskNeed, reporter: Reporter) -> None:
    """Compare what a run takes at least with what is free, where its need is known.

    Nothing is said of remote places. Raises StorageError where there is too little.
    """
    folders = find_folders(out, tmp_dir)
    compare_with(folders, {folder: free_bytes(folder) for folder in folders if folder is not None}, need, reporter)


def compare_with(folders: tuple[str | None, str], free: dict[str, int | None], need: DiskNeed, reporter: Reporter) -> None:
    """Compare what a run takes in its folders with what is ``free`` there. Raises StorageError where that is too little."""
    wordy = bool(getattr(reporter, "details", False))
    for place in _places(folders, free, need):
        if wordy and place.need_bytes:
            reporter.message(f"disk: {place.text}")
        if place.need_bytes > place.free_bytes:
            raise StorageError(
                f"{place.words} at least {format_size(place.need_bytes)}, and {format_size(place.free_bytes)} are free",
                place=place.folder,
                fix=place.fix,
            )


def _places(folders: tuple[str | None, str], free: dict[str, int | None], need: DiskNeed) -> Iterator[_Place]:
    out, tmp = folders
    fix = "free some space, or choose another disk"
    if out is not None and (there := free[out]) is not None:
        yield _Place(out, "the store takes", fix, need.output_bytes, there)
    if (there := free[tmp]) is not None:
        words, fix = "temporary files take", f"{fix} with {TMP_DIR_OPTION}"
        if need.under_limit:
            words, fix = f"under this memory limit {words}", f"{fix}, or raise --memory-limit"
        yield _Place(tmp, words, fix, need.temporary_bytes, there)
