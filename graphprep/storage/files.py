"""Write a file at a URL, front to back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from graphprep.storage.faults import plain_words
from graphprep.storage.urls import local_path

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage


def check_writable(url: str) -> None:
    """Raise StorageError where a local file cannot be written, before the work that fills it. A FIFO's readers see nothing."""
    path = local_path(url)
    if path is None or (Path(path).exists() and not Path(path).is_file()):
        return
    with plain_words(url):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).open("ab").close()


def write_pieces(storage: Storage, url: str, pieces: Iterable[bytes]) -> None:
    """Write ``pieces`` one after another to a path or URL, replacing what is there; missing folders are made.

    Raises StorageError where that fails.
    """
    path = local_path(url)  # not the storage's: that reads what can be read once only
    with plain_words(url):
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with Path(path).open("wb") as file:
                file.writelines(pieces)
            return
        fs, target = storage.filesystem(url)
        with fs.open(target, "wb") as file:
            file.writelines(pieces)
