"""Writing a store: beside its target, shown at the end, all or nothing."""

from __future__ import annotations

import contextlib
import ctypes
import io
import itertools
import json
import math
import os
import stat
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, cast

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.metadata import METADATA_NAME, STORE_FORMAT, ArrayEntry
from graphprep.storage.drivers import renames_folders
from graphprep.storage.faults import display_url, plain_words, raise_plain
from graphprep.storage.private import LocalClaim, PrivateFolder
from graphprep.storage.read.npy import MAGIC
from graphprep.storage.read.urls import STDIN, Storage, local_path
from graphprep.storage.spill.segments import Segment, SegmentFolder
from graphprep.storage.write.kept import KeptSink
from graphprep.storage.write.owned import find_files, refuse_foreign, remove_files, store_files
from graphprep.storage.write.places import refuse_read
from graphprep.storage.write.targets import Sink, Target

_BUFFER_BYTES = 1 << 20
_RENAME_EXCHANGE = 2
_ALIGNMENT = 64  # of what a ``.npy`` file holds
_GROWTH_DIGITS = 21  # NumPy leaves room to rewrite the first dimension in place


def npy_header(dtype: np.dtype[np.generic] | str, shape: tuple[int, ...]) -> bytes:
    """Write the header of a little-endian array in C order, format 1.0, byte for byte as ``numpy.save`` does."""
    descr = np.dtype(dtype).newbyteorder("<").str
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(map(int, shape))!r}, }}"
    if shape:
        text += " " * (_GROWTH_DIGITS - len(repr(int(shape[0]))))
    begin = len(MAGIC) + 4
    text += " " * (_ALIGNMENT - (begin + len(text) + 1) % _ALIGNMENT) + "\n"
    return MAGIC + b"\x01\x00" + struct.pack("<H", len(text)) + text.encode("latin1")


class ArrayWriter:
    """Writes one array front to back, hashing what it writes. Can be pickled where its store's arrays are kept."""

    def __init__(
        self, sink: Sink, store: StoreWriter, *, url: str, path: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]
    ) -> None:
        self._sink = sink
        self._store = store
        store.sinks.add(sink)
        self._url = url
        self._hash = xxhash.xxh3_64()
        self._path = path
        self._dtype = dtype
        self._shape = shape
        self.num_bytes = 0
        header = npy_header(dtype, shape)
        self._num_expected = len(header) + math.prod(shape) * dtype.itemsize
        self._write(header)

    def append(self, array: NDArray[Any]) -> None:
        """Write the next elements, in C order. The dtype must be the array's own: nothing is cast."""
        if array.dtype != self._dtype:
            raise RuntimeError(f"{self._path}: {array.dtype} appended to an array of {self._dtype}")
        if array.size:
            self._write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)

    def close(self) -> ArrayEntry:
        """Finish the file and return its entry for the manifest.

        Raises RuntimeError where the pieces do not add up to the shape.
        """
        if self.num_bytes != self._num_expected:
            raise RuntimeError(f"{self._path}: {self.num_bytes} bytes written, {self._num_expected} expected for {self._shape}")
        try:
            self._sink.commit()
        except Exception as error:
            raise_plain(error, self._url)
        self._store.sinks.remove(self._sink)
        return ArrayEntry(self._path, self._dtype.name, self._shape, self.num_bytes, self._hash.hexdigest())

    def __getstate__(self) -> dict[str, Any]:
        """Leave the hash to the file."""
        return {name: value for name, value in self.__dict__.items() if name != "_hash"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Go on where another run was."""
        self.__dict__ |= state
        assert isinstance(self._sink, KeptSink)
        self._hash = self._sink.hash
        self._store.sinks.add(self._sink)
        self._store.num_bytes += self.num_bytes

    def _write(self, data: bytes | memoryview) -> None:
        try:
            self._sink.write(data)
        except Exception as error:
            raise_plain(error, self._url)
        self._hash.update(data)
        self.num_bytes += len(data)
        with self._store.lock:
            self._store.num_bytes += len(data)
        if self._store.on_write is not None:
            self._store.on_write(len(data))


class StoreWriter:
    """Writes a store to ``out``, a path or URL, as a context manager.

    Nothing is to be seen at ``out`` before ``publish``; leaving the context without it removes everything. A local store is
    written into a hidden folder beside ``out`` and renamed, one on HDFS as well; with ``overwrite`` the old store stays until
    then. On an object store objects are put whole and metadata.json last.

    ``on_write`` is told of the bytes of arrays as they are written.
    ``replaced`` is the metadata.json of the store that is to be replaced, None where there is none. ``sinks`` are the arrays
    that are not finished, ``num_bytes`` is what was written so far; threads write arrays, and hold ``lock``. Where a folder is
    ``kept``, arrays grow there, and ``placed`` are those that are in the store, by path. Raises UsageError where ``out``
    exists, unless ``overwrite`` is given and ``out`` is a store, or ``resumes`` and it is what a killed run
    began on an object store; StorageError where writing fails.
    """

    def __init__(
        self,
        storage: Storage,
        out: str,
        overwrite: bool = False,
        *,
        resumes: bool = False,
        kept: SegmentFolder | None = None,
    ) -> None:
        out = out.rstrip("/") or out
        replaces, self.replaced = check_store_place(storage, out, overwrite, resumes=resumes)
        self._replaces = replaces is not None
        self._out = out
        self._storage = storage
        self._published = False
        self.sinks: set[Sink] = set()
        self.num_bytes = 0
        self.on_write: Callable[[int], None] | None = None
        self.lock = threading.Lock()
        self.kept = kept
        self.placed: dict[str, Segment] = {}
        try:
            self._target: Target = target_for(storage, out, replaces, takes_over=overwrite)
        except Exception as error:
            raise_plain(error, out)

    def __enter__(self) -> StoreWriter:
        try:
            self._target.begin()
        except Exception as error:
            raise_plain(error, self._out)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._published:
            for sink in list(self.sinks):
                with contextlib.suppress(Exception):
                    sink.discard()
            self._target.remove()

    def open_array(
        self, part_path: str, path: str, dtype: np.dtype[Any] | type[np.generic] | str, shape: tuple[int, ...]
    ) -> ArrayWriter:
        """Begin the array ``path`` of the partition in folder ``part_path``; its shape is known from the start."""
        full = f"{part_path}/{path}"
        little = np.dtype(dtype).newbyteorder("<")
        sizes = tuple(map(int, shape))
        try:
            sink = self._open(full, math.prod(sizes) * little.itemsize)
        except Exception as error:
            raise_plain(error, self._out)
        return ArrayWriter(sink, self, url=self._out, path=path, dtype=little, shape=sizes)

    def _open(self, path: str, num_bytes: int) -> Sink:
        return self._target.open(path, num_bytes) if self.kept is None else KeptSink(self, self.kept, path)

    def place(self, path: str, segment: Segment) -> None:
        """Let a finished file of the folder that is kept be one of the store: another name of it, or a copy."""
        assert self.kept is not None
        file = self.kept.path_of(segment.name)
        if not self._target.link(path, str(file), own=True):
            with file.open("rb", buffering=0) as pieces:
                self._put(path, segment.num_bytes, iter(partial(pieces.read, _BUFFER_BYTES), b""))
        with self.lock:
            self.placed[path] = segment

    def go_on(self, placed: Mapping[str, Segment]) -> None:
        """Place what an earlier run had placed. Raises StorageError where writing fails."""
        for path, segment in placed.items():
            try:
                self.place(path, segment)
            except Exception as error:
                raise_plain(error, self._out)
            self.num_bytes += segment.num_bytes

    def write_file(self, path: str, data: bytes) -> None:
        """Write a file, whole. ``path`` is relative to the store."""
        try:
            self._put(path, len(data), (data,))
        except Exception as error:
            raise_plain(error, self._out)
        with self.lock:
            self.num_bytes += len(data)

    def _put(self, path: str, num_bytes: int, pieces: Iterable[bytes]) -> None:
        sink = self._target.open(path, num_bytes)
        try:
            for piece in pieces:
                sink.write(piece)
            sink.commit()
        except BaseException:
            with contextlib.suppress(Exception):
                sink.discard()
            raise

    @property
    def dead_host(self) -> str | None:
        """Return the machine of a dead run that had begun to write to a URL; None where there was none, or nobody knows."""
        return self._target.dead_host

    def url_of(self, path: str) -> str:
        """Return where a finished file of the store can be read before it is published."""
        return self._target.url(path)

    def publish(self, metadata: bytes) -> None:
        """Write metadata.json, and show the store. Raises StorageError where a file that was read has changed since."""
        if self._replaces:
            refuse_read(self._storage, self._out)
        self._storage.check_unchanged()
        self.write_file(METADATA_NAME, metadata)
        try:
            self._target.show()
        except Exception as error:
            raise_plain(error, self._out)
        self._published = True


def target_for(
    storage: Storage, out: str, replaces: frozenset[str] | None, last: str = METADATA_NAME, *, takes_over: bool = False
) -> Target:
    """Return what writes files at a path or URL: beside the files ``replaces`` that stand there, until it is shown.

    ``replaces`` are all that may go; None: nothing stands there. ``last`` is the file whose presence says that all
    others are there. ``takes_over``: also from a run on another machine that says it writes there, but may be dead.
    """
    path = local_path(out)
    if path is not None:
        return _LocalTarget(storage, path, replaces, last)
    if renames_folders(out):
        from graphprep.storage.write.folders import FolderTarget

        return FolderTarget(storage, out, replaces=replaces, takes_over=takes_over)
    from graphprep.storage.write.objects import ObjectTarget

    return ObjectTarget(storage, out, replaces=replaces, last=last, takes_over=takes_over)


def is_left_over(storage: Storage, out: str) -> bool:
    """Return whether what is at a path or URL is nothing but the beginning of an output whose run was killed."""
    if storage.is_local(out):  # there, and on HDFS, that has another name
        return False
    from graphprep.storage.write.objects import is_unfinished

    with plain_words(out):
        return is_unfinished(storage, out)


def _refuse_inside(out: str) -> None:
    """Raise UsageError where a local store would lie in another, which goes with all that is in it when it is replaced."""
    path = local_path(out)
    for folder in Path(path).absolute().parents if path is not None else ():
        value = None
        with contextlib.suppress(OSError, ValueError, RecursionError):
            file = folder / METADATA_NAME
            value = json.loads(file.read_bytes()) if file.is_file() else None
        if isinstance(value, dict) and value.get("format") == STORE_FORMAT:
            message = f"lies in the store {display_url(str(folder))}"
            raise UsageError(message, place=display_url(out), fix="name a folder beside that store")


def check_store_place(
    storage: Storage, out: str, overwrite: bool, *, resumes: bool = False
) -> tuple[frozenset[str] | None, Mapping[str, Any] | None]:
    """Return the files at ``out`` that may be replaced, and the metadata.json of a store there; write nothing.

    None and None where nothing is there.

    Without ``overwrite``, what ``resumes`` a run replaces what that had begun. Raises UsageError where a store cannot go there.
    """
    if not out:
        raise UsageError("the output has no name", fix="name the folder to write")
    if out == STDIN:
        raise UsageError("a store is a folder, and cannot go to stdout", place=out, fix="name the folder to write, or a URL")
    _refuse_inside(out)
    return _check_replaceable(storage, out, overwrite, resumes) if storage.is_taken(out) else (None, None)


def _check_replaceable(
    storage: Storage, out: str, overwrite: bool, resumes: bool
) -> tuple[frozenset[str], Mapping[str, Any] | None]:
    """Return the files of the store at ``out``, and its metadata.json; None for the latter where one was left unfinished.

    Raises UsageError where it may not be replaced, or holds other files.
    """
    metadata = storage.join(out, METADATA_NAME)
    try:
        storage.refuse_stream(metadata)
        value = json.loads(storage.read_aside(metadata))
    except (StorageError, ValueError, RecursionError) as error:
        is_told = isinstance(error.__cause__, FileNotFoundError | IsADirectoryError | NotADirectoryError)
        if isinstance(error, StorageError) and not is_told and not storage.is_local(out):  # nobody could look
            raise
        value = None
    is_left = value is None and is_left_over(storage, out)
    is_store = is_left or (isinstance(value, dict) and value.get("format") == STORE_FORMAT)
    if not (overwrite or (is_left and resumes)):
        fix = "choose another name" + (", or give --overwrite" if is_store else ": it is no store, and is never replaced")
        raise UsageError("the output exists", place=display_url(out), fix=fix)
    if is_left:
        return frozenset(find_files(storage, out)), None
    names = store_files(storage, out) if is_store else None
    if names is None:
        what = "has no manifests that list its files" if is_store else "is not a graphprep store"
        raise UsageError(
            f"{what}; --overwrite replaces nothing else",
            place=display_url(out),
            fix="choose another name, or remove it by hand",
        )
    refuse_foreign(storage, out, names)
    return names, cast("Mapping[str, Any]", value)


class _LocalSink(io.BufferedWriter):
    """A file in the hidden folder; durable after ``commit`` where ``sync`` asks for it."""

    def __init__(self, path: Path, sync: bool) -> None:
        super().__init__(io.FileIO(path, "xb", opener=_open_private), _BUFFER_BYTES)
        self._sync = sync

    def commit(self) -> None:
        self.flush()
        if self._sync:
            os.fsync(self.fileno())
        self.close()

    def discard(self) -> None:
        self.close()


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _LocalTarget:
    """A hidden folder beside the target, which nobody else may read until it is shown."""

    def __init__(self, storage: Storage, path: str, replaces: frozenset[str] | None, last: str) -> None:
        self._storage = storage
        self._replaces = replaces
        self._last = last
        target = Path(path)
        self._target = target.resolve() if target.is_symlink() else target.absolute()
        self._made: list[Path] = []
        name = self._target.name[:100]  # a name has 255 bytes at most
        self._folder = PrivateFolder(str(self._target.parent), f".{name}.graphprep-")
        self._own: list[Path] = []
        self._stage = self._target  # until there is a folder
        self._fills = self._target.stat() if replaces is None and self._target.is_dir() else None  # an empty folder
        if self._fills is not None and self._target.is_mount():
            raise UsageError(
                "is where a disk is mounted, which nothing can take the place of",
                place=display_url(path),
                fix="name a folder in it",
            )
        self._claim = LocalClaim(self._target)

    def begin(self) -> None:
        try:
            self._made += itertools.filterfalse(Path.exists, self._target.parents)
            for folder in reversed(self._made):
                folder.mkdir(exist_ok=True)
            self._claim.take()
            if self._replaces is None and self._fills is None and os.path.lexists(self._target):  # a run ended just now
                raise FileExistsError
            self._stage = Path(self._folder.create())
        except BaseException:
            self.remove()
            raise

    @property
    def dead_host(self) -> str | None:
        return None  # what it kept lies beside OUT, or where --tmp-dir says

    def open(self, path: str, num_bytes: int) -> Sink:
        full = self._stage / path
        full.parent.mkdir(parents=True, exist_ok=True)
        self._own.append(full)
        return _LocalSink(full, sync=path == self._last)

    def link(self, path: str, source: str, *, own: bool = False) -> bool:
        full = self._stage / path
        full.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, full)
        except OSError:  # another disk, or one without links
            return False
        if own:
            self._own.append(full)
        return True

    def _open_up(self) -> None:
        """Give what was written the permissions that the umask leaves, as other programs do."""
        umask = os.umask(0o077)
        os.umask(umask)
        for path in self._own:
            with contextlib.suppress(FileNotFoundError):
                path.chmod(0o666 & ~umask)
        self._stage.chmod(0o777 & ~umask if self._fills is None else stat.S_IMODE(self._fills.st_mode))

    def url(self, path: str) -> str:
        return str(self._stage / path)

    def show(self) -> None:
        """Rename the folder to its name; one that stands there is exchanged for it, and then removed."""
        self._open_up()
        if self._replaces is None:
            if self._fills is None and os.path.lexists(self._target):  # it was not there when the run began
                raise FileExistsError
            self._stage.rename(self._target)  # only a folder that is empty still gives way
            self._folder.release()
            self._claim.release()
            return
        refuse_foreign(self._storage, str(self._target), self._replaces)  # hours may have gone by
        if not _exchange(self._stage, self._target):
            aside = self._stage.with_name(self._stage.name + "-old")
            try:
                self._target.rename(aside)
                self._stage.rename(self._target)
            except BaseException:
                if aside.exists() and not self._target.exists():
                    aside.rename(self._target)
                raise
            self._stage = aside
        with contextlib.suppress(OSError):  # first: what a kill leaves then is no whole store, and goes with the next run
            (self._stage / self._last).unlink()
        if not remove_files(self._stage, self._replaces):  # somebody put a file there just now
            self._stage.rename(self._target.with_name(f"{self._target.name}-kept-{os.urandom(4).hex()}"))
        self._folder.release()
        self._claim.release()

    def remove(self) -> None:
        self._folder.remove()
        self._claim.release()
        for folder in self._made:
            with contextlib.suppress(OSError):  # someone else uses it
                folder.rmdir()


def _exchange(left: Path, right: Path) -> bool:
    """Swap two folders in one step, so that there is no moment without a store. False where the system cannot."""
    try:
        swap = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # AT_FDCWD
    return bool(swap(here, os.fsencode(left), here, os.fsencode(right), _RENAME_EXCHANGE) == 0)
