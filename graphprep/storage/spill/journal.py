"""The journal of a run: the tasks that are finished, and what they made, in a folder that outlives the run."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import shutil
import stat
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from graphprep.model.errors import UsageError
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.private import TMP_DIR_OPTION, hold, is_own
from graphprep.storage.spill.segments import Appender, BrokenSegmentError, Segment, SegmentFile, open_private

JOURNAL_NAME = "journal.json"
_LOCKS: dict[type, Callable[[], Any]] = {type(threading.Lock()): threading.Lock, type(threading.RLock()): threading.RLock}


class KeptFolder:
    """A folder of segments that stays until ``is_done``, unless a journal names none of them; locked meanwhile.

    ``named`` are those that the journal names; None until it was opened, so that the folder may be another run's. What is
    dropped stays while it is named: what is told of it may be read again after a kill.
    """

    is_kept = True

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.is_done = False
        self.named: frozenset[str] | None = None
        self._dropped: set[Path] = set()
        self._num_files = 0
        self._lock: int | None = None

    def make(self) -> None:
        """Make the folder where it is not there.

        Raises UsageError where somebody else could have written to it: what it holds is believed. Raises StorageError.
        """
        with plain_words(str(self.path.parent), TMP_DIR_OPTION):
            with contextlib.suppress(FileExistsError):
                self.path.mkdir(mode=0o700)
            self.check()

    def check(self) -> None:
        """Raise UsageError where somebody else could have written to the folder, FileNotFoundError where there is none."""
        found = self.path.lstat()
        if not (stat.S_ISDIR(found.st_mode) and is_own(found) and not found.st_mode & 0o077):
            raise UsageError(
                "is not a folder of yours alone, so that nothing in it can be trusted",
                place=display_url(str(self.path)),
                fix="remove it, or name another folder with --tmp-dir",
            )
        if self._lock is None:
            with contextlib.suppress(BlockingIOError):  # whoever cleans up, for a moment
                self._lock = hold(str(self.path), shared=True)

    def has_journal(self) -> bool:
        """Return whether an earlier run has left its journal."""
        return (self.path / JOURNAL_NAME).exists()

    def new_path(self) -> Path:
        """See ``SegmentFolder``."""
        self.make()
        self._num_files += 1
        return self.path / f"segment-{self._num_files:06}"

    def path_of(self, name: str) -> Path:
        """See ``SegmentFolder``."""
        return self.path / name

    def drop(self, path: Path) -> None:
        """See ``SegmentFolder``."""
        if self.named and path.name in self.named:
            self._dropped.add(path)
        else:
            with contextlib.suppress(OSError):
                path.unlink()

    def name(self, names: frozenset[str]) -> None:
        """Take the names that a journal has from now on, and remove what was dropped and is named no more."""
        self.named = names
        dropped, self._dropped = self._dropped, set()
        for path in dropped:
            self.drop(path)

    def keep_named(self) -> None:
        """Remove all files that are not named."""
        named = self.named or frozenset()
        for path in self.path.iterdir():
            if path.name != JOURNAL_NAME and path.name not in named:
                with contextlib.suppress(OSError):
                    path.unlink()
            number = path.name.rpartition("-")[2]
            self._num_files = max(self._num_files, int(number) if number.isdecimal() else 0)

    def finish(self) -> None:
        """Remove the folder, whatever an interrupted run left in it: nothing will go on."""
        self.is_done = True
        self.remove()

    def remove(self) -> None:
        """Remove the folder where it is of no more use."""
        if self.is_done or self.named == frozenset():
            shutil.rmtree(self.path, ignore_errors=True)
        elif self._lock is not None:
            with contextlib.suppress(OSError):  # it holds something
                self.path.rmdir()
        self.release()

    def release(self) -> None:
        """Give the lock up."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class _Task(NamedTuple):
    """What a finished task made: its state, and the segments that this names."""

    state: Segment
    segments: tuple[Segment, ...]


class Journal:
    """The finished tasks of a run, which ``about`` describes: words by words.

    What a task makes is any object that can be pickled but None, runs of rows included. ``known`` objects in it go by name: the
    run that goes on has its own. A task that made something else cannot be recorded, which is told.
    """

    def __init__(self, folder: KeptFolder, about: Mapping[str, str], tell: Callable[[str], None]) -> None:
        """Open the journal in a folder, or begin one.

        Raises UsageError where it is of another run, StorageError where it cannot be read or written.
        """
        self._folder = folder
        self._tell = tell
        self._about = dict(about)
        self._tasks: dict[str, _Task] = {}
        folder.make()
        found = _read(folder.path / JOURNAL_NAME)
        if found is not None:
            refuse_other(self._about, found["about"], f"remove {display_url(str(folder.path))}")
            for name, (state, segments) in found["tasks"].items():
                self._tasks[name] = _Task(Segment(*state), tuple(Segment(*one) for one in segments))
            tell(f"resume: done before: {', '.join(self._tasks)}")
        self._note_names()
        folder.keep_named()

    def last(self, name: str, known: Mapping[str, object]) -> Any:
        """Return what a task made in an earlier run; None where there is nothing, or nothing that can be used."""
        try:
            return self._load(self._tasks[name], known) if name in self._tasks else None
        except BrokenSegmentError as error:
            what = "is not what was written" if os.path.lexists(str(error)) else "is not there any more"
            self._tell(f"resume: {error} {what}, so that {name} is done again")
            return None

    def keep(self, name: str, made: object, known: Mapping[str, object], ends: tuple[str, ...] = ()) -> None:
        """Record what a task made, in the place of what it made before.

        What it ``ends`` are tasks whose results it has taken over.
        """
        task = self._store(name, made, known)
        ended = [self._tasks.pop(one) for one in (name, *ends) if one in self._tasks]
        if task is not None:
            self._tasks[name] = task
        self._write()
        self._note_names()
        for old in ended:
            self._folder.drop(self._folder.path_of(old.state.name))

    def _note_names(self) -> None:
        names = {segment.name for task in self._tasks.values() for segment in (task.state, *task.segments)}
        self._folder.name(frozenset(names))

    def _store(self, name: str, made: object, known: Mapping[str, object]) -> _Task | None:
        file = SegmentFile(self._folder)
        try:
            with file.appending() as appender:
                pickler = _Pickler(_Bytes(appender), known)
                pickler.dump(made)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            self._tell(f"resume: what {name} made cannot be kept, so that it would be done again: {error}")
            return None
        assert file.segment is not None
        return _Task(file.segment, tuple(pickler.segments))

    def _load(self, task: _Task, known: Mapping[str, object]) -> Any:
        file = SegmentFile.open(self._folder, task.state)
        assert file.path is not None
        with plain_words(str(file.path)), file.path.open("rb") as handle:
            try:
                return _Unpickler(handle, known).load()
            except BrokenSegmentError as error:
                broken = error
        raise broken  # not from within ``plain_words``, which tells any other error of a file as StorageError

    def _write(self) -> None:
        """Write the journal whole, or not at all."""
        path = self._folder.path / JOURNAL_NAME
        text = json.dumps({"about": self._about, "tasks": self._tasks}, indent=1)
        with plain_words(str(path.parent), TMP_DIR_OPTION):
            part = path.with_suffix(".part")
            with open_private(part, "wb") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    """Read a journal; None where there is none that is whole."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.keys() >= {"about", "tasks"} else None


def refuse_other(wanted: Mapping[str, str], found: Mapping[str, str], removal: str, flag: str = "--resume") -> None:
    """Raise UsageError where what was begun is another run than the one that is to go on; ``removal`` gives that up."""
    for key in sorted(wanted.keys() | found.keys()):
        now, then = wanted.get(key), found.get(key)
        if now != then:
            raise UsageError(
                f"{flag}: {key} was {then or 'not there'} when the run began, and is {now or 'not there'} now",
                fix=f"make it what it was, or {removal} to begin anew",
            )


class _Bytes:
    """Takes a pickle's bytes."""

    def __init__(self, appender: Appender) -> None:
        self._appender = appender

    def write(self, data: Any) -> None:
        self._appender.write(np.frombuffer(data, np.uint8))


class _Pickler(pickle.Pickler):
    """Notes the segments that an object has, and lets known objects go by name."""

    def __init__(self, file: Any, known: Mapping[str, object]) -> None:
        super().__init__(file, protocol=5)
        self.segments: list[Segment] = []
        self._names = {id(one): name for name, one in known.items() if one is not None}

    def persistent_id(self, obj: object) -> str | None:
        return self._names.get(id(obj))

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Segment):
            self.segments.append(obj)
        elif isinstance(obj, ModuleType):  # kernels
            return importlib.import_module, (obj.__name__,)
        elif type(obj) in _LOCKS:
            return _LOCKS[type(obj)], ()
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    """Puts known objects in the place of their names."""

    def __init__(self, file: Any, known: Mapping[str, object]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, name: str) -> object:
        return self._known[name]
