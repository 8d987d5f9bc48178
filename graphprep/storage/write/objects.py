"""Stores on object stores: every object put whole, metadata.json last."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.metadata import MANIFEST_NAME, METADATA_NAME, PROVENANCE_NAME
from graphprep.storage.drivers import protocol_of
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.claims import RemoteClaim
from graphprep.storage.write.conditional import create_object, with_folders
from graphprep.storage.write.owned import refuse_foreign

PART_BYTES = 5 << 20  # the least that S3 takes as a part of an upload
_MOST_PARTS = 9_000  # of S3's 10,000
_BATCH_BYTES = 4 << 20  # of small objects, which are put together
_BATCH_OBJECTS = 64
_BUCKETS = ("s3", "gcs", "abfs")
CLAIM_NAME = ".graphprep-claim"
_PART = rf"part-\d{{5,}}/({re.escape(MANIFEST_NAME)}|(nodes|edges)/.*\.npy)"
OWN_NAME = re.compile(rf"{_PART}|{re.escape(PROVENANCE_NAME)}|{re.escape(CLAIM_NAME)}")


def is_unfinished(storage: Storage, out: str) -> bool:
    """Return whether at a URL lies nothing but what a run that was killed had written of its output, perhaps all of it."""
    fs, path = storage.filesystem(out)
    prefix = path.rstrip("/") + "/"
    found = [name.removeprefix(prefix) for name in fs.find(path)]
    told = RemoteClaim(fs, prefix + CLAIM_NAME, out, takes_over=False).read() or {} if CLAIM_NAME in found else {}
    return bool(found) and all(is_own_name(name, told) for name in found)


def is_own_name(name: str, told: Mapping[str, Any]) -> bool:
    """Return whether an object of an output has a name that only a run gives, or one of which its claim ``told``."""
    return OWN_NAME.fullmatch(name) is not None or name in (told.get("last"), *told.get("names", ()))


class ObjectTarget:
    """A prefix: the target's own where it is free, else one beside it whose objects are moved at the end.

    ``last`` is the object that is put after all others. While the run lasts, an object in the target claims it; ``takes_over``:
    see ``RemoteClaim``.
    """

    def __init__(
        self,
        storage: Storage,
        out: str,
        *,
        replaces: frozenset[str] | None,
        last: str = METADATA_NAME,
        takes_over: bool = False,
    ) -> None:
        self._last = last
        self._storage = storage
        self._out = out.rstrip("/")
        self._fs, path = storage.filesystem(self._out)
        self._path = path.rstrip("/")
        if protocol_of(out) in _BUCKETS and "/" not in self._path.strip("/"):
            raise UsageError("a store needs a name in its bucket", place=display_url(out), fix=f"write {self._out}/NAME")
        self._stage, self._stage_url = self._path, self._out
        self._replaces = replaces
        if replaces is not None:
            token = secrets.token_hex(4)
            self._stage, self._stage_url = _hidden_beside(self._path, token), _hidden_beside(self._out, token)
        self._paths: list[str] = []
        self._batch: dict[str, bytes] = {}
        self._claim = RemoteClaim(self._fs, f"{self._path}/{CLAIM_NAME}", self._out, takes_over=takes_over, last=last)
        self._num_noted = 0

    def begin(self) -> None:
        """Find out now whether objects can be put here, not when the first one is finished, perhaps hours later.

        The claim comes first: a run that is killed has left nothing without one.
        """
        self._claim.take()
        try:
            check_can_put(self._out, self._fs, f"{self._stage}/{self._last}")
        except BaseException:
            self._claim.restore()
            raise

    @property
    def dead_host(self) -> str | None:
        """See ``Target.dead_host``."""
        return self._claim.dead_host

    def open(self, path: str, num_bytes: int) -> ObjectSink:
        """See ``Target.open``."""
        self._paths.append(path)
        return ObjectSink(self, f"{self._stage}/{path}", max(PART_BYTES, -(-num_bytes // _MOST_PARTS)))

    def link(self, path: str, source: str, *, own: bool = False) -> bool:
        """See ``Target.link``."""
        return False

    def url(self, path: str) -> str:
        """See ``Target.url``."""
        self._flush()
        return f"{self._stage_url}/{path}"

    def show(self) -> None:
        """Move what lies beside to its place: the old last object goes first, the new one comes last."""
        self._flush()
        self._storage.forget(self._out)
        if self._stage == self._path:
            self._claim.release()
            return
        self._check_claim()
        refuse_foreign(self._storage, self._out, self._replaces or ())  # hours may have gone by
        self._fs.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):  # the store was not finished
            self._fs.rm_file(f"{self._path}/{self._last}")
        try:
            kept = {self._claim.path, *(f"{self._path}/{path}" for path in self._paths)}
            old = {f"{self._path}/{name}" for name in self._replaces or ()}
            _delete(self._fs, [path for path in self._fs.find(self._path) if path in old - kept])
            last = self._last if self._last in self._paths else self._paths[-1]
            self._storage.fetchers.run_all(self._move, [path for path in self._paths if path != last])
            self._move(last)
        except Exception as error:
            raise self._half_moved(error) from error
        self._claim.release()
        self.remove()

    def remove(self) -> None:
        """Remove the objects of this run, and nothing else."""
        self._batch.clear()
        self._claim.restore()
        if self._stage:
            self._fs.invalidate_cache()
            _delete(self._fs, [f"{self._stage}/{path}" for path in self._paths])
            if self._stage != self._path:
                with contextlib.suppress(Exception):  # file systems with folders
                    self._fs.rm(self._stage, recursive=True)

    # ---- for its sinks

    @property
    def fs(self) -> Any:
        """Return the file system."""
        return self._fs

    def note(self) -> None:
        """Let the claim name the objects that are put from now on, where their names do not tell whose they are."""
        names = [path for path in self._paths if not OWN_NAME.fullmatch(path) and path != self._last]
        if self._stage == self._path and len(names) > self._num_noted:
            self._claim.note(names)
            self._num_noted = len(names)

    def put(self, full: str, data: bytes) -> None:
        """Put a small object, soon and together with others; the last one after all of them."""
        if full != f"{self._path}/{self._last}":
            self._batch[full] = data
            if len(self._batch) >= _BATCH_OBJECTS or sum(map(len, self._batch.values())) >= _BATCH_BYTES:
                self._flush()
            return
        self._flush()
        self._check_claim()
        try:
            create_object(self._fs, full, data)
        except FileExistsError:
            self._stage = ""  # another run's store now: the same paths, so nothing can be taken away
            raise

    def _check_claim(self) -> None:
        """Raise StorageError where another run took the output over: what lies there is that one's, then."""
        try:
            self._claim.check()
        except StorageError:
            if self._stage == self._path:
                self._stage = ""
            raise

    def _flush(self) -> None:
        batch, self._batch = self._batch, {}
        if batch:
            self.note()
            with_folders(self._fs, lambda: self._fs.pipe(batch), list(batch))

    def _move(self, path: str) -> None:
        source, target = f"{self._stage}/{path}", f"{self._path}/{path}"
        with_folders(self._fs, lambda: self._fs.cp_file(source, target), [target])

    def _half_moved(self, error: Exception) -> StorageError:
        stage, self._stage = self._stage, ""  # keep it: it is all that there is now
        return StorageError(
            f"the old store is gone, and moving the new one to its place failed ({display_url(str(error))})",
            place=display_url(self._out),
            fix=f"copy the objects of {display_url(self._stage_url)} there, {self._last} last" if stage else "",
        )


class _Putter(Protocol):
    """What an object's sink belongs to."""

    @property
    def fs(self) -> Any:
        """Return the file system."""

    def note(self) -> None:
        """Get to know that an object is about to be put in parts."""

    def put(self, full: str, data: bytes) -> None:
        """Put a small object."""


class SingleObject:
    """An object that belongs to no store."""

    def __init__(self, fs: Any) -> None:
        self.fs = fs

    def note(self) -> None:
        """Nobody is told."""

    def put(self, full: str, data: bytes) -> None:
        """Put the object now."""
        with_folders(self.fs, lambda: self.fs.pipe_file(full, data), [full])


def check_can_put(url: str, fs: Any, path: str) -> None:
    """Raise what the store says where objects cannot be put; only S3 can be asked without putting one."""
    if protocol_of(url) != "s3":
        return
    file = fs.open(path, "wb", block_size=PART_BYTES, autocommit=False)
    try:
        file.write(b" ")
        file.flush(force=True)  # begins an upload, which is then aborted: nothing is ever seen of it
    finally:
        _abort(fs, file)


class ObjectSink:
    """An object that is put whole: at once where it is small, else in parts.

    fsspec completes an upload also when an exception passes through its ``with``; so uploads are opened uncommitted where the
    driver knows that, and an unfinished one is never closed the ordinary way.
    """

    def __init__(self, target: _Putter, full: str, part_bytes: int) -> None:
        self._target = target
        self._full = full
        self._part_bytes = part_bytes
        self._data = bytearray()
        self._file: Any = None
        self._is_seen = False  # also before commit: the driver knows no other way

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes; whole parts are uploaded."""
        view = memoryview(data)
        while len(self._data) + len(view) > self._part_bytes:
            room = self._part_bytes - len(self._data)
            self._data += view[:room]
            view = view[room:]
            self._upload()
        self._data += view

    def commit(self) -> None:
        """Finish the object."""
        if self._file is None:
            self._target.put(self._full, bytes(self._data))
            self._data = bytearray()
            return
        self._upload()
        self._file.close()
        if hasattr(self._file, "commit"):
            self._file.commit()

    def discard(self) -> None:
        """Abort the upload; nothing was to be seen of it."""
        self._data = bytearray()
        if self._file is not None:
            _abort(self._target.fs, self._file)
            if self._is_seen:
                with contextlib.suppress(Exception):
                    self._target.fs.rm_file(self._full)

    def _upload(self) -> None:
        if self._file is None:
            self._target.note()
            with_folders(self._target.fs, self._open, [self._full])
        data, self._data = self._data, bytearray()
        self._file.write(data)

    def _open(self) -> None:
        try:
            self._file = self._target.fs.open(self._full, "wb", block_size=self._part_bytes, autocommit=False)
        except TypeError:
            self._file = self._target.fs.open(self._full, "wb")
            self._is_seen = True
        _leave_transaction(self._target.fs, self._file)


def _abort(fs: Any, file: Any) -> None:
    """End an upload without an object."""
    _leave_transaction(fs, file)
    with contextlib.suppress(Exception):
        file.discard()
    with contextlib.suppress(Exception):
        file.closed = True  # else its destructor uploads the rest


def _leave_transaction(fs: Any, file: Any) -> None:
    """Take an uncommitted file off the driver's list, which it would never leave."""
    with contextlib.suppress(AttributeError, ValueError):
        fs.transaction.files.remove(file)


def _delete(fs: Any, paths: Sequence[str]) -> None:
    """Remove objects, as far as that can be done."""
    if not _delete_at_once(fs, paths):
        for path in paths:
            with contextlib.suppress(Exception):
                fs.rm_file(path)


def delete_objects(fs: Any, paths: Sequence[str]) -> None:
    """Remove objects; what is not there is passed over. Raises what the store says where one cannot be removed."""
    if not _delete_at_once(fs, paths):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                fs.rm_file(path)


def _delete_at_once(fs: Any, paths: Sequence[str]) -> bool:
    """Remove many objects; False where the store refuses that, and some may still be there."""
    if not paths or any(char in path for path in paths for char in "*?["):  # drivers take these for patterns
        return not paths
    with contextlib.suppress(Exception):
        fs.rm(list(paths))
        return True
    return False


def _hidden_beside(path: str, token: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.graphprep-{token}"
