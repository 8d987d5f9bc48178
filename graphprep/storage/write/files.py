"""Write a file at a URL, front to back."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphprep.storage.drivers import renames_folders
from graphprep.storage.faults import plain_words
from graphprep.storage.read.urls import local_path
from graphprep.storage.write.folders import write_beside
from graphprep.storage.write.objects import PART_BYTES, ObjectSink, SingleObject, check_can_put

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage


def check_writable(storage: Storage, url: str) -> None:
    """Raise StorageError where a file cannot be written, before the work that fills it. A FIFO's readers see nothing."""
    path = local_path(url)
    with plain_words(url):
        if path is None:
            check_can_put(url, *storage.filesystem(url))
        elif not Path(path).exists() or Path(path).is_file():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).open("ab").close()


def check_place(storage: Storage, url: str) -> None:
    """Raise StorageError where a folder cannot be made, before the work that fills it."""
    path = local_path(url)
    if path is None:
        check_writable(storage, url)
        return
    with plain_words(url):
        parent = next(one for one in Path(path).absolute().parents if one.exists())
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(parent))
        if not os.access(parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(parent))


def write_pieces(storage: Storage, url: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Write ``pieces`` one after another to a path or URL, replacing what is there; missing folders are made.

    At a URL the file is there whole or not at all. Raises StorageError where writing fails.
    """
    path = local_path(url)  # not the storage's: that reads what can be read once only
    with plain_words(url):
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with Path(path).open("wb") as file:
                file.writelines(pieces)
            return
        fs, target = storage.filesystem(url)
        if renames_folders(url):
            write_beside(fs, target, pieces)
        else:
            _put_pieces(fs, target, pieces)


def _put_pieces(fs: Any, target: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Put an object. An exception on the way leaves none: fsspec's own ``with`` would put what there is of it."""
    sink = ObjectSink(SingleObject(fs), target, PART_BYTES)
    try:
        for piece in pieces:
            sink.write(piece)
        sink.commit()
    except BaseException:
        sink.discard()
        raise
