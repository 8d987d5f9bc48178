"""Files that nobody but the user (or root) can have written: machine code is loaded from no others.

A folder or file belongs to the user or to root, and neither its group nor others may write to it; all else is refused with a
PermissionError. Whoever may write to a folder may exchange its files, so it is opened first, and looked at once it is open.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def read_private(path: Path) -> bytes:
    """Return what is in a file. Raises OSError where it cannot be read or somebody else may have written it."""
    with _opened(path.parent) as folder:
        # O_NONBLOCK: opening a FIFO must not wait for its writer
        number = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(number, "rb") as file:
            _check(number, stat.S_ISREG)
            return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Write a file for the user alone, so that nobody sees half of it, whoever else writes it now.

    Makes the folder where there is none. Raises OSError where that fails or somebody else may write to the folder.
    """
    _make_folder(path.parent)
    part = f"{path.name}.{os.urandom(6).hex()}"
    with _opened(path.parent) as folder:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(number, "wb") as file:
                os.fchmod(number, 0o600)  # whatever the umask
                file.write(content)
            os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise


def is_private_folder(path: Path) -> bool:
    """Return whether a folder is there and nobody else may write to it."""
    try:
        with _opened(path):
            return True
    except OSError:
        return False


def _make_folder(path: Path) -> None:
    """Make a folder, and those above that are not there, for the user alone."""
    missing = [folder for folder in (*reversed(path.parents), path) if not folder.exists()]
    for folder in missing:
        with contextlib.suppress(FileExistsError):  # another process was quicker
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # whatever the umask


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _check(number, stat.S_ISDIR)
        yield number
    finally:
        os.close(number)


def _check(number: int, is_kind: Callable[[int], bool]) -> None:
    found = os.fstat(number)
    is_ours = found.st_uid in {0, os.geteuid()} and not found.st_mode & _OTHERS_WRITE
    if not (is_kind(found.st_mode) and is_ours):
        raise PermissionError("others may write here")
