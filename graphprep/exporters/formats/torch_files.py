"""Files of torch, written without it, front to back: ``.pt`` archives, and pickles of tensors one after another.

A ``.pt`` file is an uncompressed ZIP archive: ``<stem>/data.pkl`` says what it holds, ``<stem>/data/<k>`` are the bytes of its
tensors. ``torch.load`` reads it, with ``weights_only=True`` (plain values and tensors) and with ``mmap=True``, too.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from graphprep.exporters.formats.torch_pickle import (
    Pickler,
    TensorPieces,
)
from graphprep.exporters.formats.torch_zip import ZipEntry, zip_pieces, zip_size
from graphprep.storage.write.outputs import FolderOutput


class TorchFile:
    """A value as the bytes of a ``.pt`` file; ``num_bytes`` is their number.

    ``value`` is nested plain Python with tensors inside, see ``Pickler``. ``stem`` is the folder inside the archive; torch
    names it after the file, and reads any.
    """

    def __init__(self, value: Any, stem: str = "archive") -> None:
        pickler = Pickler()
        data = pickler.dump(value)
        self._entries = [
            _small(f"{stem}/data.pkl", data),
            _small(f"{stem}/byteorder", b"little"),
            *(ZipEntry(f"{stem}/data/{key}", values.num_bytes, values.data) for key, values in enumerate(pickler.tensors)),
            _small(f"{stem}/version", b"3\n"),
        ]
        self.num_bytes = zip_size(self._entries)

    def pieces(self) -> Iterator[bytes | memoryview]:
        """Yield the bytes, front to back.

        Raises RuntimeError where the pieces of a tensor do not add up to its size.
        """
        return zip_pieces(self._entries)


def write_pt(out: FolderOutput, path: str, value: Any) -> None:
    """Write a value as ``torch.save`` does."""
    file = TorchFile(value, path.rpartition("/")[2].removesuffix(".pt"))
    with out.open(path, file.num_bytes) as sink:
        for piece in file.pieces():
            sink.write(piece)


def write_tensor_chunks(out: FolderOutput, path: str, chunks: Iterable[TensorPieces], num_bytes: int = 0) -> None:
    """Write one pickle after another, each of a tensor, as ``pickle.load`` reads them until the file ends.

    A chunk is a call of ``torch.storage._load_from_bytes`` with the bytes of a ``.pt`` file: no NumPy in the stream, whose
    pickles tie a reader to the writer's version. ``num_bytes`` is the file's size where it is known, see ``chunk_bytes``.
    """
    with out.open(path, num_bytes) as sink:
        for chunk in chunks:
            file = TorchFile(chunk)
            sink.write(_chunk_head(file.num_bytes))
            for piece in file.pieces():
                sink.write(piece)
            sink.write(_CHUNK_TAIL)


def chunk_bytes(chunk: TensorPieces) -> int:
    """Return how many bytes ``write_tensor_chunks`` writes for a chunk."""
    size = TorchFile(chunk).num_bytes
    return len(_chunk_head(size)) + size + len(_CHUNK_TAIL)


_CHUNK_TAIL = b"\x85R."


def _chunk_head(num_bytes: int) -> bytes:
    """Return a pickle up to its bytes: protocol 4, the first whose bytes may be longer than 4 GiB."""
    return b"\x80\x04" + b"ctorch.storage\n_load_from_bytes\n" + b"\x8e" + struct.pack("<Q", num_bytes)


def _small(name: str, data: bytes) -> ZipEntry:
    return ZipEntry(name, len(data), lambda: (data,))
