"""Leftovers in local folders: their locks tell whether their runs are dead."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from graphprep.clean.leftovers import WORKERS_KIND, Found, Removal
from graphprep.model.metadata import METADATA_NAME
from graphprep.model.options.clean import Leftover
from graphprep.storage.faults import display_url
from graphprep.storage.private import LOCK_PREFIX, hold, is_of_this_machine, is_own, is_same

_HIDDEN = re.compile(r"\.(?P<name>.+)\.graphprep-(?P<run>[0-9a-f]{8})-[0-9a-f]{12}(?:-old)?", re.DOTALL)
_WORKERS = re.compile(r"\.(?P<name>.+)\.graphprep-workers", re.DOTALL)
_FILE = re.compile(r"\.(?P<name>.+)\.graphprep-[0-9a-f]{8}", re.DOTALL)
_TEMPORARY = re.compile(r"\.graphprep-tmp-(?P<run>[0-9a-f]{8})-[0-9a-f]{12}")
_JOURNAL = re.compile(r"\.graphprep-resume-[0-9a-f]{16}")
_IN_USE = "a run that is alive uses it"
_ELSEWHERE = "a run on another machine made it, which may be alive (--all-dead)"
_NO_LOCKS = "this disk knows no locks, so that nobody can tell whether its run is alive (--all-dead)"
_WHOLE = "it is a whole store, and there is none at {}: move it there, or remove it by hand"
_REPLACED = "it is what stood at {}, where nothing is: move it there, or remove it by hand"


def find_local(path: Path, removal: Removal) -> Iterator[Found]:
    """Find what was left of the output ``path``, and of temporary files beside it; if it is a folder, what was left in it.

    Runs write beside what a link leads to. Raises OSError where the folder of the output cannot be listed.
    """
    path = path.resolve() if path.is_symlink() or path.name == ".." else path.absolute()
    for one in sorted(path.parent.iterdir()):
        if _output_of(one.name) == path.name[:100] or _TEMPORARY.fullmatch(one.name):
            yield from find_temporary(one, removal)
    if path.is_dir():
        for one in sorted(path.iterdir()):
            yield from find_temporary(one, removal)


def _output_of(name: str) -> str | None:
    """Return the name of the output to which a hidden file or folder belongs."""
    found = _HIDDEN.fullmatch(name) or _WORKERS.fullmatch(name) or _FILE.fullmatch(name)
    if found is None:
        return name.removeprefix(LOCK_PREFIX) if name.startswith(LOCK_PREFIX) else None
    return found["name"]


def find_temporary(path: Path, removal: Removal) -> Iterator[Found]:
    """Yield a file or folder if its name and kind are those of what runs write while they run, and it is this user's."""
    try:
        info = path.lstat()
    except OSError:
        return
    kind, lock, run = _describe(path, is_folder=stat.S_ISDIR(info.st_mode))
    if not kind or not (stat.S_ISDIR(info.st_mode) or stat.S_ISREG(info.st_mode)):
        return
    if not is_own(info):
        return
    if lock == path and stat.S_ISREG(info.st_mode) and not _is_lock(path):
        return
    reason = ""
    out = path.parent / (_output_of(path.name) or "")
    if (path / METADATA_NAME).exists() and not (out / METADATA_NAME).exists():
        reason = _WHOLE.format(display_url(str(out)))
    elif path.name.endswith("-old") and not os.path.lexists(out):
        reason = _REPLACED.format(display_url(str(out)))
    elif kind == WORKERS_KIND:
        _, folders, files = next(os.walk(path), ("", [], []))
        reason = removal.why_workers_stay(str(out), [*folders, *files])
    elif run and not is_of_this_machine(run) and not removal.all_dead:
        reason = _ELSEWHERE
    num_files, num_bytes = _sizes(path) if stat.S_ISDIR(info.st_mode) else (1, info.st_size)
    yield Found(Leftover(display_url(str(path)), kind, num_files, num_bytes, reason), partial(_remove, path, lock, removal))


def _describe(path: Path, *, is_folder: bool) -> tuple[str, Path, str]:
    """Return what a file or folder is by its name (empty: not ours), what its run holds locked, and on which machine."""
    if is_folder:
        for pattern, kind in ((_TEMPORARY, "temporary files"), (_HIDDEN, "unfinished output")):
            found = pattern.fullmatch(path.name)
            if found is not None:
                return kind, path, found["run"]
        if _WORKERS.fullmatch(path.name):
            return WORKERS_KIND, path, ""
        return "journal of an interrupted run" if _JOURNAL.fullmatch(path.name) else "", path, ""
    if path.name.startswith(LOCK_PREFIX):
        return "lock", path, ""
    found = _FILE.fullmatch(path.name)
    return ("", path, "") if found is None else ("unfinished file", path.with_name(f"{LOCK_PREFIX}{found['name']}"), "")


def _is_lock(path: Path) -> bool:
    """Return whether a file holds what a run's lock does: nothing, or the number of a process."""
    with contextlib.suppress(OSError):
        return path.stat().st_size <= 20 and re.fullmatch(r"\d*", path.read_text(errors="replace")) is not None
    return False


def _sizes(folder: Path) -> tuple[int, int]:
    """Return the number of files in a folder, and of their bytes; a run that is alive may remove some meanwhile."""
    sizes = []
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                sizes.append(os.lstat(os.path.join(parent, name)).st_size)  # noqa: PTH118
    return len(sizes), sum(sizes)


def _remove(path: Path, lock: Path, removal: Removal) -> str:
    """Remove a file or folder while nobody else has its lock; return why it stays. Raises OSError."""
    try:
        held = hold(str(lock))
    except BlockingIOError:
        return _IN_USE
    if held is None and lock.exists() and not removal.all_dead:
        return _NO_LOCKS
    try:
        if held is not None and not is_same(str(lock), held):  # another run's by now
            return _IN_USE
        if removal.dry_run:
            return ""
        with contextlib.suppress(FileNotFoundError):  # it was shown meanwhile
            (shutil.rmtree if path.is_dir() else os.unlink)(path)
    finally:
        if held is not None:
            os.close(held)
    return ""
