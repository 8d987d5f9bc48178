"""Outputs that are no stores: a file, or a folder of files, there whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import os
import secrets
import sys
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import UsageError
from graphprep.model.metadata import METADATA_NAME
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.private import LocalClaim
from graphprep.storage.read.urls import STDIN, Storage, local_path
from graphprep.storage.write.files import write_pieces
from graphprep.storage.write.owned import find_files, refuse_foreign
from graphprep.storage.write.places import refuse_read
from graphprep.storage.write.publish import is_left_over, npy_header, target_for
from graphprep.storage.write.targets import Sink
from graphprep.storage.write.twins import TwinFinder, Twins

STDOUT = STDIN


def check_output(
    storage: Storage,
    url: str,
    overwrite: bool,
    owned: Callable[[], Collection[str] | None] | None,
    command: str = "generate",
) -> frozenset[str] | None:
    """Return the files at ``url`` that are to be replaced, None where nothing stands there.

    ``owned`` tells which files of the folder are those of an earlier run, None where there was none; without it a file is to be
    written. Raises UsageError where something stands there without ``overwrite``, or something else.
    """
    if url == STDOUT or not (storage.exists(url) if owned is None else storage.is_taken(url)):
        return None
    place = display_url(url)
    if not overwrite and not _is_device(url):
        raise UsageError("the output exists", place=place, fix="choose another name, or give --overwrite")
    if owned is None and storage.is_dir(url):
        raise UsageError("is a folder, and a file is to be written", place=place, fix="choose another name")
    if owned is None:
        return frozenset()
    if is_left_over(storage, url):
        return frozenset(find_files(storage, url))
    names = owned() if storage.is_dir(url) else None
    if names is None:
        raise UsageError(
            f"holds files that {command} does not write; --overwrite replaces nothing else",
            place=place,
            fix="choose another name, or remove it by hand",
        )
    refuse_foreign(storage, url, names)
    return frozenset(names)


def write_output(storage: Storage, url: str, pieces: Iterable[bytes | memoryview]) -> int:
    """Write ``pieces`` to a path, a URL or stdout (``-``), and return the number of bytes.

    A piece may change once the next one is asked for. What has the name is replaced when the new file is whole; devices and
    FIFOs are written to as it comes. Raises StorageError where writing fails.
    """
    counted = _Counted(pieces)
    path = local_path(url)
    if url == STDOUT:
        for piece in counted:
            sys.stdout.buffer.write(piece)
    elif path is not None and not _is_device(url):
        with plain_words(url):
            _write_beside(Path(path), counted)
    else:
        write_pieces(storage, url, counted)
    return counted.num_bytes


class FolderOutput:
    """A folder of files as a context manager: not to be seen before ``publish``, removed without it.

    ``replaces`` are the files that stand there and may go, None where nothing does. ``sizes`` has the bytes of finished files,
    and with ``digest``, the name of a hash of hashlib, ``digests`` their hashes. ``last`` is the file whose presence says that
    all others are there: on object stores it is put after them; ``before_last`` is called, once, before it is begun.
    ``takes_over``: see ``target_for``.
    """

    def __init__(
        self,
        storage: Storage,
        url: str,
        *,
        replaces: frozenset[str] | None,
        last: str = METADATA_NAME,
        digest: str | None = None,
        takes_over: bool = False,
    ) -> None:
        self._url = url.rstrip("/") or url
        self._storage = storage
        with plain_words(url):
            self._target = target_for(storage, self._url, replaces, last, takes_over=takes_over)
        self._sinks: set[Sink] = set()
        self._published = False
        self._replaces = replaces is not None
        self._last = last
        self.sizes: dict[str, int] = {}
        self.before_last: Callable[[tuple[str, ...]], None] | None = None
        self._lock = threading.Lock()
        self._digest = digest
        self.digests: dict[str, str] = {}
        self.twins: TwinFinder | None = None
        self.on_write: Callable[[int], None] | None = None  # told of bytes as they are written
        self.num_bytes = 0
        self.num_files = 0
        self.num_linked = 0

    def __enter__(self) -> FolderOutput:
        with plain_words(self._url):
            self._target.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._published:
            for sink in self._sinks:
                with contextlib.suppress(Exception):
                    sink.discard()
            self._target.remove()

    def open(self, name: str, num_bytes: int = 0) -> FileOutput:
        """Begin a file, front to back; ``num_bytes`` is its size, where that is known."""
        if name == self._last:
            self.tell_rest()
        with plain_words(self._url):
            sink = self._target.open(name, num_bytes)
        with self._lock:
            self._sinks.add(sink)
            self.num_files += 1
        return FileOutput(self, sink, name, None if self._digest is None else hashlib.new(self._digest, usedforsecurity=False))

    def tell_rest(self, *names: str) -> None:
        """Call ``before_last``, once, as only ``names`` and ``last`` are left to write."""
        if self.before_last is not None:
            call, self.before_last = self.before_last, None
            call(names)

    def write(self, name: str, pieces: bytes | Iterable[bytes | memoryview]) -> None:
        """Write a file, whole or piece by piece."""
        with self.open(name, len(pieces) if isinstance(pieces, bytes) else 0) as file:
            for piece in (pieces,) if isinstance(pieces, bytes) else pieces:
                file.write(piece)

    def write_npy(self, name: str, dtype: np.dtype[Any] | str, shape: tuple[int, ...], pieces: Iterable[NDArray[Any]]) -> None:
        """Write an array as ``numpy.save`` does, little-endian, from pieces along its first axis.

        Raises RuntimeError where the pieces do not add up to ``shape``.
        """
        little = np.dtype(dtype).newbyteorder("<")
        header = npy_header(little, shape)
        size = len(header) + math.prod(shape) * little.itemsize
        views: Iterator[NDArray[np.uint8]] = (_bytes_of(piece, little, name) for piece in pieces)
        if self.twins is not None:
            twins = self.twins.start(little, shape, header)
            views = self._follow(twins, views)
            begun = next(views, None)
            if begun is None and twins and twins.size == size and self._link(name, twins):
                return
            views = itertools.chain([begun] if begun is not None else [], views)
            if twins.size > len(header):
                views = itertools.chain(twins.pieces(len(header)), views)
        with self.open(name, size) as file:
            file.write(header)
            for view in views:
                file.write(view)
            if file.num_bytes != size:
                raise RuntimeError(f"{name}: {file.num_bytes} bytes written, {size} expected for {shape}")

    def _follow(self, twins: Twins, views: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
        """Yield pieces from the first on with which no twin goes on."""
        for view in views:
            if not twins or not twins.follow(view):
                yield view
                break
        yield from views

    def _link(self, name: str, twins: Twins) -> bool:
        """Let a file of the folder be another name of a local one; False where that cannot be."""
        with plain_words(self._url):
            linked = self._target.link(name, twins.path)
        if linked and self._digest is not None:
            digest = hashlib.new(self._digest, usedforsecurity=False)
            for piece in twins.pieces(0):
                digest.update(piece.data)
            self.digests[name] = digest.hexdigest()
        if linked:
            self.sizes[name] = twins.size
        self.num_files += linked
        self.num_linked += linked
        return linked

    def publish(self) -> None:
        """Show the folder, in the place of what stands there. Raises StorageError where a file that was read has changed."""
        if self._replaces:
            refuse_read(self._storage, self._url)
        self._storage.check_unchanged()
        with plain_words(self._url):
            self._target.show()
        self._published = True

    def add(self, sink: Sink, data: bytes | memoryview) -> None:
        """Write to one of its files."""
        with plain_words(self._url):
            sink.write(data)
        with self._lock:
            self.num_bytes += len(data)
        if self.on_write is not None:
            self.on_write(len(data))

    def finish(self, sink: Sink, name: str, num_bytes: int, digest: str | None) -> None:
        """Finish one of its files."""
        with plain_words(self._url):
            sink.commit()
        with self._lock:
            self._sinks.remove(sink)
            self.sizes[name] = num_bytes
            if digest is not None:
                self.digests[name] = digest


class FileOutput:
    """A file of a folder, while it is written; as a context manager it is finished on leaving, unless that is by an error."""

    def __init__(self, folder: FolderOutput, sink: Sink, name: str, digest: Any) -> None:
        self._folder = folder
        self._sink = sink
        self._name = name
        self._digest = digest
        self.num_bytes = 0

    def __enter__(self) -> FileOutput:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None:
            self.commit()

    def write(self, data: bytes | memoryview | NDArray[Any]) -> None:
        """Add bytes, or those of an array in C order."""
        if isinstance(data, np.ndarray):
            data = np.ascontiguousarray(data).reshape(-1).view(np.uint8).data
        self._folder.add(self._sink, data)
        if self._digest is not None:
            self._digest.update(data)
        self.num_bytes += len(data)

    def commit(self) -> None:
        """Finish the file."""
        self._folder.finish(self._sink, self._name, self.num_bytes, None if self._digest is None else self._digest.hexdigest())


def _bytes_of(piece: NDArray[Any], dtype: np.dtype[Any], name: str) -> NDArray[np.uint8]:
    if piece.dtype != dtype:
        raise RuntimeError(f"{name}: {piece.dtype} written to an array of {dtype}")
    return np.ascontiguousarray(piece).reshape(-1).view(np.uint8)


class _Counted:
    """Counts the bytes that go by."""

    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = iter(pieces)
        self.num_bytes = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> bytes | memoryview:
        piece = next(self._pieces)
        self.num_bytes += len(piece)
        return piece


def _is_device(url: str) -> bool:
    """Return whether there is something local that is neither a file nor a folder."""
    path = local_path(url)
    return path is not None and os.path.lexists(path) and not Path(path).is_file() and not Path(path).is_dir()


def _write_beside(path: Path, pieces: Iterable[bytes | memoryview]) -> None:
    target = path.resolve() if path.is_symlink() else path.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{target.name[:100]}.graphprep-{secrets.token_hex(4)}")
    claim = LocalClaim(target)
    claim.take()
    try:
        with beside.open("xb", buffering=0) as file:
            for piece in pieces:
                _write_all(file.fileno(), memoryview(piece))
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    finally:
        claim.release()


def _write_all(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
