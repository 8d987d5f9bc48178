"""Where a run may write: nowhere in, around or over what it reads. One check for all commands, before anything is read.

And the folders that it writes to: what is free there, and what runs leave beside an output.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import posixpath
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphprep.model.errors import UsageError
from graphprep.storage.drivers import protocol_of
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import STDIN, local_path

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_NOT_READ = ("run", "bad_records", "plot", "maps", "graph_name", "scheduler")  # fields of options that name no input


def refuse_overlap(storage: Storage, outs: Iterable[str], reads: Mapping[str, Iterable[str]], *options: object) -> None:
    """Refuse outputs that contain, are, or lie in what is read: ``reads`` by what it is called, and files that options name.

    Links count as what they lead to, too. Of folders and patterns the files are looked at as well. Nor may a folder for
    temporary files lie in an output. Raises UsageError.
    """
    known: dict[str, tuple[int, int] | None] = {}
    given = [(what, url) for what, urls in reads.items() for url in urls if url and url != STDIN]
    given += [("input", url) for url in named_files(options)]
    for out in outs:
        if not out or out == STDIN:
            continue
        for tmp_dir in (getattr(getattr(one, "run", None), "tmp_dir", None) for one in options):
            _refuse_tmp_dir(tmp_dir, out)
        there = storage.exists(out)
        for what, url in dict.fromkeys(given):
            if lies_in(out, url, known):
                words = f"is the {what} itself" if lies_in(url, out, known) else f"lies in the {what}"
                named = "" if what == "store" else f" {display_url(url)}"
                raise UsageError(f"the output {words}{named}", place=display_url(out), fix="choose another name")
            for file in (url, *(_files_of(storage, url) if there else ())):
                if lies_in(file, out, known):
                    words = f"the {what} {display_url(file)} lies in the output"
                    raise UsageError(words, place=display_url(out), fix="choose another name, or move the input")


def refuse_read(storage: Storage, out: str) -> None:
    """Refuse to replace an output in which a file lies that this run has read, however it was named. Raises UsageError."""
    known: dict[str, tuple[int, int] | None] = {}
    lost = next((url for url in sorted(storage.opened) if lies_in(url, out, known)), None)
    if lost is not None:
        words = f"the input {display_url(lost)} lies in the output"
        raise UsageError(words, place=display_url(out), fix="choose another name, or move the input")


def _refuse_tmp_dir(tmp_dir: str | None, out: str) -> None:
    """Refuse a folder for temporary files in the output, with which it would go. Raises UsageError."""
    if tmp_dir and lies_in(tmp_dir, out):
        words = f"the folder for temporary files, {display_url(tmp_dir)}, lies in the output"
        raise UsageError(words, place=display_url(out), fix="name another folder with --tmp-dir")


def named_files(value: object) -> Iterator[str]:
    """Yield the files and URLs that options name: a text, or what stands in it behind ``=`` or ``:``, if it is there."""
    if isinstance(value, str | os.PathLike):
        text = os.fspath(value)
        ends = (text, *(text.partition(mark)[2] for mark in "=:"), text.rpartition("=")[2])
        yield from (end for end in dict.fromkeys(ends) if isinstance(end, str) and end and _is_named(end))
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from named_files(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from named_files(one)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            if field.name not in _NOT_READ:
                yield from named_files(getattr(value, field.name))


def _is_named(text: str) -> bool:
    path = local_path(text)
    if path is None:
        return True
    return os.path.isfile(path) or ("/" in path and os.path.isdir(path))  # noqa: PTH112, PTH113 - a NUL is no error


def _files_of(storage: Storage, url: str) -> Iterator[str]:
    """Yield the files that a pattern or a local folder stands for."""
    path = local_path(url)
    is_dir = path is not None and Path(path).is_dir()
    if is_dir:
        yield from (one.url for one in storage.list_dir(url) if os.path.islink(one.url))  # noqa: PTH114 - others lie in it
    elif any(mark in url for mark in "*?[") and protocol_of(url) != "http" and not storage.exists(url):
        yield from storage.match(url)


def lies_in(url: str, folder: str, known: dict[str, tuple[int, int] | None] | None = None) -> bool:
    """Return whether a path or URL is a folder, or lies in it, by name or by what links lead to.

    ``known`` keeps what was asked of the file system.
    """
    inner, outer = local_path(url), local_path(folder)
    if inner is None or outer is None:
        same = inner is None and outer is None and protocol_of(url) == protocol_of(folder)
        return same and f"{_plain(url)}/".startswith(f"{_plain(folder)}/")
    identity = partial(_identity, {} if known is None else known)
    marks = {os.path.abspath(outer), os.path.realpath(outer)}  # noqa: PTH100 - unlike resolve, it raises nothing for loops
    marked = {identity(mark) for mark in marks} - {None}
    around = _around(os.path.abspath(inner)) | _around(os.path.realpath(inner))  # noqa: PTH100
    return not marks.isdisjoint(around) or any(identity(one) in marked for one in around)


def _around(path: str) -> set[str]:
    """Return a path and the folders that it lies in."""
    return {path, *map(str, Path(path).parents)}


def _identity(known: dict[str, tuple[int, int] | None], path: str) -> tuple[int, int] | None:
    """Return what tells that two names are those of one file, also where case does not count."""
    if path not in known:
        try:
            found = os.stat(path)  # noqa: PTH116 - many
            known[path] = (found.st_dev, found.st_ino)
        except (OSError, ValueError):
            known[path] = None
    return known[path]


def _plain(url: str) -> str:
    rest: Any = url.partition("://")[2]
    return posixpath.normpath(f"/{rest.lstrip('/')}").rstrip("/")


# ---- folders


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


def is_copied(out: str, tmp_dir: str | None) -> bool:
    """Return whether what is kept with the temporary files cannot be the store's by another name: that lies elsewhere."""
    folder, tmp = find_folders(out, tmp_dir)
    with contextlib.suppress(OSError):
        return folder is None or Path(folder).stat().st_dev != Path(tmp).stat().st_dev
    return True


def is_roomy(out: str, tmp_dir: str | None, most_bytes: int) -> bool:
    """Return whether so much is free on the disks of a run, as far as these say what they have."""
    free = [free_bytes(folder) for folder in find_folders(out, tmp_dir) if folder is not None]
    return all(one is None or most_bytes <= one for one in free)


def resume_folder(out: str, tmp_dir: str | None) -> Path:
    """Return the folder in which a run with this OUT keeps what ``--resume`` goes on with, which need not be there."""
    path = local_path(out)
    place = str(Path(path).absolute()) if path is not None else out.rstrip("/")
    digest = hashlib.sha256(place.encode(errors="surrogateescape")).hexdigest()[:16]
    return Path(tmp_dir or tempfile.gettempdir()) / f".graphprep-resume-{digest}"


def workers_folder(out: str) -> str:
    """Return the folder beside an output that workers share, which need not be there."""
    path = local_path(out)
    folder, name = posixpath.split(out if path is None else str(Path(path).absolute()))
    return posixpath.join(folder, f".{name}.graphprep-workers")
