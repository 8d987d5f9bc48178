"""Open files as byte streams: decompressed by content, with every failure in plain words."""

from __future__ import annotations

import bz2
import errno
import io
import lzma
import re
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, NamedTuple, Protocol

from graphprep.model.errors import DataError
from graphprep.storage.faults import display_url, plain_words, raise_plain

_INPUT_BYTES = 1 << 18  # compressed bytes read at a time
_OUTPUT_BYTES = 1 << 20  # most decompressed bytes at a time
_ZSTD_INPUT_BYTES = 1 << 12  # zstandard has no limit of output: four bytes can become 128 KiB
_MAGIC_BYTES = 10  # a bzip2 stream is told from text by its first block's mark


class _Decompressor(Protocol):
    """What bz2, lzma and isal share. ``eof``: the end of one stream; ``unused_data``: what follows it."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes:
        """Return the next bytes, at most about ``max_length``."""


class Codec(NamedTuple):
    """A compression: its name in messages, what its streams begin with, how to undo it."""

    name: str
    magic: re.Pattern[bytes]
    open: Callable[[], _Decompressor]


def _open_gzip() -> _Decompressor:
    try:
        from isal import igzip_lib
    except ImportError:  # isal has no wheel for every platform
        return _ZlibStream()
    decompressor: _Decompressor = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    return decompressor


class _ZlibStream:
    """A gzip member through the standard library."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)


class _ZstdStream:
    """A zstd frame, fed in small bites so that the output stays bounded."""

    def __init__(self) -> None:
        import zstandard

        self._stream: Any = zstandard.ZstdDecompressor().decompressobj()
        self._waiting = b""

    @property
    def eof(self) -> bool:
        return bool(self._stream.eof)

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return bytes(self._stream.unused_data) + self._waiting

    def decompress(self, data: bytes, max_length: int) -> bytes:
        view = memoryview(self._waiting + data)
        pieces, produced, at = [], 0, 0
        while at < len(view) and produced < max_length and not self.eof:
            piece = self._stream.decompress(view[at : at + _ZSTD_INPUT_BYTES])
            at += _ZSTD_INPUT_BYTES
            pieces.append(piece)
            produced += len(piece)
        self._waiting = bytes(view[at:])
        return b"".join(pieces)


CODECS = (
    Codec("gzip", re.compile(rb"\x1f\x8b"), _open_gzip),
    # The first block's mark, or that of the end of an empty stream.
    Codec("bzip2", re.compile(rb"(?s)BZh.(?:\x31\x41\x59\x26\x53\x59|\x17\x72\x45\x38\x50\x90)"), bz2.BZ2Decompressor),
    Codec("xz", re.compile(rb"\xfd7zXZ\x00"), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)),
    Codec("zstd", re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"), _ZstdStream),  # pzstd begins with a skippable frame
)


def find_codec(head: bytes) -> Codec | None:
    """Return the compression of a file that begins with ``head`` (10 bytes suffice), None when plain."""
    for codec in CODECS:
        if codec.magic.match(head):
            return codec
    return None


class LocalFile(io.FileIO):
    """A file on a disk whose failures name its URL."""

    def __init__(self, path: str, url: str) -> None:
        super().__init__(path)
        self._url = url

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes; 0 at the end."""
        try:
            return super().readinto(buffer) or 0
        except OSError as error:
            raise_plain(error, self._url)

    def readall(self) -> bytes:
        """Read to the end."""
        try:
            return super().readall() or b""
        except OSError as error:
            raise_plain(error, self._url)


class Source(io.RawIOBase):
    """An open file whose failures name its URL. Reads what the file holds, as stored."""

    def __init__(self, file: Any, url: str) -> None:
        super().__init__()
        self._file = file
        self._url = url

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return whether the file can seek."""
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes; 0 at the end."""
        try:
            if hasattr(self._file, "readinto"):
                return int(self._file.readinto(buffer) or 0)
            data = self._file.read(len(buffer))
        except Exception as error:
            raise_plain(error, self._url)
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte. Raises OSError for one before the start, which says more of the format than of the storage."""
        with plain_words(self._url):
            try:
                return int(self._file.seek(offset, whence))
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
        raise OSError(errno.EINVAL, f"there is no byte {offset} to move to")

    def tell(self) -> int:
        """Return the current byte."""
        return int(self._file.tell())

    def fileno(self) -> int:
        """Return the descriptor of a local file."""
        return int(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


class Decompressed(io.RawIOBase):
    """The content of a compressed stream, front to back.

    Several members (gzip), streams (bzip2, xz) or frames (zstd) are read as one; zeros may follow the last. Raises DataError
    where the stream is truncated or corrupt, or where anything else follows.
    """

    def __init__(self, source: BinaryIO, codec: Codec, url: str) -> None:
        super().__init__()
        self._source = source
        self._codec = codec
        self._url = url
        self._stream = codec.open()
        self._input = b""
        self._output = memoryview(b"")
        self._ended = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes; 0 at the end."""
        while not self._output and not self._ended:
            self._advance()
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def close(self) -> None:
        """Close the stream and the file under it."""
        if not self.closed:
            self._source.close()
        super().close()

    def _advance(self) -> None:
        """Decompress the next piece, or pass to the next member."""
        if self._stream.eof:
            self._next_member()
            return
        if self._stream.needs_input and not self._input:
            self._input = self._source.read(_INPUT_BYTES)
            if not self._input:
                raise self._fault("is truncated", "the file is incomplete: copy or download it again")
        data, self._input = self._input, b""
        try:
            self._output = memoryview(self._stream.decompress(data, _OUTPUT_BYTES))
        except MemoryError:
            raise
        except Exception as error:
            raise self._fault(f"is corrupt ({_one_line(error)})", "copy or download the file again") from error

    def _next_member(self) -> None:
        """Begin the next member; zeros up to the end of the file are padding."""
        rest = self._stream.unused_data + self._input
        while True:
            rest = rest.lstrip(b"\0") if rest[:1] == b"\0" else rest
            if len(rest) >= _MAGIC_BYTES:
                break
            more = self._source.read(_INPUT_BYTES)
            if not more:
                break
            rest += more
        if not rest:
            self._ended = True
            self._input = b""
        elif self._codec.magic.match(rest):
            self._stream, self._input = self._codec.open(), rest
        else:
            raise self._fault("is followed by bytes that do not belong to it", "cut off what follows, or copy the file again")

    def _fault(self, what: str, fix: str) -> DataError:
        return DataError(f"the {self._codec.name} stream {what}", place=display_url(self._url), fix=fix)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


class Sequential(io.RawIOBase):
    """A stream that only goes forward, with seeking added.

    ``begin`` opens the stream anew; ``settle`` returns the same content as a file that can seek (spooled to disk, or by ranged
    reads). Seeking to the beginning begins anew, seeking elsewhere settles.
    """

    def __init__(self, begin: Callable[[], Any], settle: Callable[[], BinaryIO]) -> None:
        super().__init__()
        self._begin = begin
        self._settle = settle
        self._file: Any = begin()
        self._at = 0
        self._settled = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes; 0 at the end."""
        count = int(self._file.readinto(buffer) or 0)
        self._at += count
        return count

    def tell(self) -> int:
        """Return the current byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        target = offset + self._at if whence == io.SEEK_CUR else offset
        if whence != io.SEEK_END and target == self._at:
            return self._at
        if not self._settled and whence != io.SEEK_END and target == 0:
            self._file.close()
            self._file = self._begin()
            self._at = 0
            return 0
        if not self._settled:
            self._file.close()
            self._file = self._settle()
            self._settled = True
        self._at = int(self._file.seek(offset, whence) if whence == io.SEEK_END else self._file.seek(target))
        return self._at

    def close(self) -> None:
        """Close the stream."""
        if not self.closed:
            self._file.close()
        super().close()
