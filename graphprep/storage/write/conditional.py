"""Objects that are put where there is none, or in the place of one, with their folders where a file system has these."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from graphprep.storage.faults import error_code


def with_folders(fs: Any, work: Any, paths: Sequence[str]) -> None:
    """Do work that writes files; make their folders first where that turns out to be needed. Object stores have none."""
    try:
        work()
    except (FileNotFoundError, NotADirectoryError) as error:
        if error_code(error):  # an object store, which misses something else
            raise
        for folder in dict.fromkeys(posixpath.dirname(path) for path in paths):
            fs.makedirs(folder, exist_ok=True)
        work()


def create_object(fs: Any, path: str, data: bytes) -> None:
    """Put an object where there is none. Raises FileExistsError where there is one, as far as the store can tell."""
    if "s3" not in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)):
        if fs.exists(path):
            raise FileExistsError
        with_folders(fs, lambda: fs.pipe_file(path, data), [path])
        return
    try:
        fs.pipe_file(path, data, mode="create")
    except OSError as error:
        code = error_code(error)
        if isinstance(error, FileExistsError) or code in ("PreconditionFailed", "412", "ConditionalRequestConflict"):
            raise FileExistsError from error
        if code not in ("NotImplemented", "501"):
            raise
        fs.pipe_file(path, data)  # a server without conditions: it is a guard, not what correctness rests on


def replace_object(fs: Any, path: str, data: bytes) -> None:
    """Put an object, in the place of one that may be there."""
    with_folders(fs, lambda: fs.pipe_file(path, data), [path])
