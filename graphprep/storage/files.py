"""Write a small file at a URL, whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from graphprep.storage.faults import plain_words
from graphprep.storage.urls import local_path

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage


def write_bytes(storage: Storage, url: str, data: bytes) -> None:
    """Write ``data`` to a path or URL, replacing what is there; missing folders are made.

    Raises StorageError where that fails.
    """
    path = local_path(url)  # not the storage's: that reads what can be read once only
    with plain_words(url):
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(data)
            return
        fs, target = storage.filesystem(url)
        fs.pipe_file(target, data)
