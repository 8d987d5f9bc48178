"""States of input files: one that changes while it is read ends the run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from graphprep.model.errors import StorageError
from graphprep.storage.faults import display_url

CHANGED = "the file changed while it was read"
AGAIN = "run again when it is complete"
_TAGS = (
    *("ETag", "etag", "md5Hash", "generation", "LastModified", "Last-Modified", "last_modified"),
    *("modification_time", "mtime", "updated", "created"),
)


class Pin(NamedTuple):
    """The state of a file: its size, and what changes with its content (ETag, time of change)."""

    size: int
    tag: str

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Pin:
        """Take the state from what a driver says of a file. Raises IsADirectoryError where it is none."""
        if info.get("type") == "directory":
            raise IsADirectoryError
        tag = next((info[name] for name in _TAGS if info.get(name)), "")
        return cls(int(info.get("size") or 0), str(tag))

    @classmethod
    def of_local(cls, found: os.stat_result) -> Pin:
        """Take the state of a local file. Its number does not count: some file systems give another one each time."""
        return cls(found.st_size, str(found.st_mtime_ns))


def check_same(old: Pin, new: Pin, url: str) -> None:
    """Raise StorageError where a file is not what it was."""
    if old != new:
        sizes = f" ({old.size} bytes, now {new.size})" if old.size != new.size else ""
        raise StorageError(f"{CHANGED}{sizes}", place=display_url(url), fix=AGAIN)
