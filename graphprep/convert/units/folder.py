"""The folder beside OUT that the workers of one run share: what the run is, and the units that are decoded."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import shlex
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphprep.convert.read.apart import Reading
from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.read.urls import local_path
from graphprep.storage.spill.journal import KeptFolder, refuse_other
from graphprep.storage.spill.segments import Segment
from graphprep.storage.write.conditional import replace_object
from graphprep.storage.write.files import write_pieces
from graphprep.storage.write.places import workers_folder
from graphprep.storage.write.publish import StoreWriter, check_store_place

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_RUN = "run.json"
_DONE = re.compile(r"(?P<name>unit-(?P<number>\d+)-[0-9a-f-]+)\.(?P<num_bytes>\d+)\.(?P<checksum>[0-9a-f]+)")
_ATTEMPTS = 25  # at beginning a run that others begin as well
_WAIT_S = 0.2


@dataclass(frozen=True)
class SharedRun:
    """What the first worker of a run wrote down: what must be the same for all, and what ``merge`` needs to know.

    ``about`` is compared word by word. ``inputs`` and ``options`` are as ``convert`` got them, the latter as JSON.
    """

    about: dict[str, str]
    worker_count: int
    inputs: list[str]
    options: dict[str, Any]
    reading: Reading
    since: str = field(default_factory=lambda: time.strftime("%Y-%m-%d %H:%M:%S %z"))
    token: str = field(default_factory=lambda: secrets.token_hex(4))

    def dump(self) -> bytes:
        """Write it as JSON."""
        return json.dumps({**self.__dict__, "reading": self.reading._asdict()}, indent=1).encode()

    @classmethod
    def load(cls, data: bytes) -> SharedRun:
        """Read what ``dump`` wrote. Raises ValueError, KeyError or TypeError for anything else."""
        value = json.loads(data)
        return cls(**{**value, "reading": Reading(**value["reading"])})


class UnitFolder:
    """A folder of segments, each with an empty file beside it that tells its size and checksum once it is whole.

    As a context manager it holds a local folder locked from when it finds a run there.
    """

    def __init__(self, storage: Storage, out: str) -> None:
        """Name the folder for an output; nothing is made."""
        self._storage = storage
        self.out = out.rstrip("/")
        path = local_path(self.out)
        self.url = workers_folder(self.out)
        self.removal = f"run graphprep clean {shlex.quote(display_url(self.out))} --all-dead"
        self._path = None if path is None else Path(self.url)
        self._told = self.out if path is None else self.url  # a server mostly refuses all, and a user knows OUT
        self._kept = KeptFolder(self.url)

    def __enter__(self) -> UnitFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._kept.release()

    # ---- the run

    def find(self) -> SharedRun | None:
        """Return the run that has the folder; None where none has."""
        data = self._read(_RUN)
        if not data:
            return None
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return SharedRun.load(data)
        raise StorageError("is damaged", place=display_url(f"{self.url}/{_RUN}"), fix=f"{self.removal}, and begin anew")

    def join(self, mine: SharedRun, overwrite: bool) -> SharedRun:
        """Begin a run, or join it where it was begun; what one that was killed left at OUT is no hindrance.

        Raises UsageError where another run has the output, or where that is to be something else.
        """
        check_store_place(self._storage, self.out, overwrite, resumes=True)
        left = _ATTEMPTS
        while (found := self.find()) is None:
            left -= 1
            try:
                with StoreWriter(self._storage, self.out, overwrite, resumes=True):  # nobody else writes there now
                    self._begin(mine.dump())
            except UsageError:  # of another run, or of another worker that begins this one
                if not left:
                    raise
                time.sleep(_WAIT_S)
        refuse_other(mine.about, found.about, self.removal, "--worker-index")
        return found

    # ---- units

    def done(self, run: SharedRun) -> dict[int, Segment]:
        """Return the units that are decoded, by number."""
        found: dict[int, Segment] = {}
        for name in sorted(self._names()):
            match = _DONE.fullmatch(name)
            if match is not None and match["name"].split("-")[2] == run.token:
                found[int(match["number"])] = Segment(match["name"], int(match["num_bytes"]), match["checksum"])
        return found

    def new_name(self, run: SharedRun, number: int) -> str:
        """Return a name for a unit's segment that nobody else has."""
        return f"unit-{number:06}-{run.token}-{secrets.token_hex(4)}"

    def add(self, segment: Segment) -> None:
        """Tell all that a unit is decoded."""
        write_pieces(self._storage, f"{self.url}/{_done_name(segment)}", [b"done\n"])

    def drop(self, segment: Segment) -> None:
        """Let a unit be decoded again."""
        for name in (_done_name(segment), segment.name):
            with contextlib.suppress(Exception):
                self._remove(name)

    def remove(self) -> None:
        """Remove the folder and all in it: what it holds is of no more use."""
        self._storage.forget(self.url)
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
            return
        with contextlib.suppress(Exception):
            self._remove(_RUN)  # first: what a kill leaves then is no run
        for name in self._names():
            with contextlib.suppress(Exception):
                self._remove(name)
        with contextlib.suppress(Exception):  # of file systems with folders
            fs, path = self._storage.filesystem(self.url)
            fs.rmdir(path)

    # ---- files

    def _begin(self, data: bytes) -> None:
        if self._path is not None:
            self._kept.make()
        if self.find() is None:
            with plain_words(self._told):
                if self._path is None:
                    fs, path = self._storage.filesystem(f"{self.url}/{_RUN}")
                    replace_object(fs, path, data)
                    return
                part = self._path / f".{secrets.token_hex(4)}"
                part.write_bytes(data)
                part.replace(self._path / _RUN)

    def _read(self, name: str) -> bytes:
        with plain_words(self._told):
            try:
                if self._path is not None:
                    self._kept.check()
                    return (self._path / name).read_bytes()
                fs, path = self._storage.filesystem(f"{self.url}/{name}")
                _forget_listing(fs)
                return bytes(fs.cat_file(path))
            except FileNotFoundError:
                return b""

    def _names(self) -> list[str]:
        if self._path is None:
            _forget_listing(self._storage.filesystem(self.url)[0])
        return [entry.name for entry in self._storage.list_dir(self.url)]

    def _remove(self, name: str) -> None:
        if self._path is not None:
            (self._path / name).unlink()
        else:
            fs, path = self._storage.filesystem(f"{self.url}/{name}")
            fs.rm_file(path)


def refuse_workers(storage: Storage, out: str) -> None:
    """Raise UsageError where workers decode for an output."""
    with UnitFolder(storage, out) as folder:
        found = folder.find()
    if found is not None:
        raise UsageError(
            f"{found.worker_count} workers decode for this output since {found.since}",
            place=display_url(folder.out),
            fix=f"merge it when they are done, or {folder.removal} to give them up",
        )


def _done_name(segment: Segment) -> str:
    return f"{segment.name}.{segment.num_bytes}.{segment.checksum}"


def _forget_listing(fs: Any) -> None:
    with contextlib.suppress(AttributeError):
        fs.invalidate_cache()
