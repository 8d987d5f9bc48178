"""Uncompressed ZIP archives as a stream: sizes are known beforehand, nothing is sought back for, checksums follow the data."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

ALIGNMENT = 64  # torch maps tensors from a file where their bytes begin at a multiple of this
_FLAGS = 0x0808  # UTF-8 names; checksum and sizes stand behind the data
_DATE = 0x0021  # 1980-01-01, the first that ZIP knows: the same bytes at any time of day
_MOST_32 = 0xFFFFFFFF
_MOST_16 = 0xFFFF
_VERSION, _VERSION_64 = 20, 45
_ZIP64, _PADDING = 1, 0x4246  # tags of extra fields; the second is the one of torch, "FB"
_LOCAL_BYTES, _CENTRAL_BYTES = 30, 46


@dataclass(frozen=True)
class ZipEntry:
    """A file of an archive. ``pieces`` yields its ``num_bytes`` bytes, front to back; it is called once."""

    name: str
    num_bytes: int
    pieces: Callable[[], Iterable[memoryview | bytes]]

    @property
    def is_large(self) -> bool:
        """Return whether its size needs ZIP64."""
        return self.num_bytes >= _MOST_32

    def head(self, offset: int) -> bytes:
        """Return what stands at ``offset`` in front of the data, padded so that this begins at a multiple of ``ALIGNMENT``."""
        name = self.name.encode()
        sizes = struct.pack("<HHQQ", _ZIP64, 16, 0, 0) if self.is_large else b""
        padding = -(offset + _LOCAL_BYTES + len(name) + len(sizes) + 4) % ALIGNMENT
        extra = sizes + struct.pack("<HH", _PADDING, padding) + bytes(padding)
        version, size = (_VERSION_64, _MOST_32) if self.is_large else (_VERSION, 0)
        fields = (b"PK\3\4", version, _FLAGS, 0, 0, _DATE, 0, size, size, len(name), len(extra))
        return struct.pack("<4sHHHHHIIIHH", *fields) + name + extra

    def tail(self, crc: int) -> bytes:
        """Return what stands behind the data."""
        return struct.pack("<4sIQQ" if self.is_large else "<4sIII", b"PK\7\10", crc, self.num_bytes, self.num_bytes)

    @property
    def tail_bytes(self) -> int:
        """Return the size of ``tail``."""
        return 24 if self.is_large else 16

    def listing(self, offset: int, crc: int) -> bytes:
        """Return the entry in the directory at the end of the archive."""
        name = self.name.encode()
        large = ([self.num_bytes] * 2 if self.is_large else []) + ([offset] if offset >= _MOST_32 else [])
        extra = struct.pack(f"<HH{len(large)}Q", _ZIP64, 8 * len(large), *large) if large else b""
        version = _VERSION_64 if large else _VERSION
        size = min(self.num_bytes, _MOST_32)
        fields = (b"PK\1\2", version, version, _FLAGS, 0, 0, _DATE, crc, size, size, len(name), len(extra), 0, 0, 0, 0)
        return struct.pack("<4sHHHHHHIIIHHHHHII", *fields, min(offset, _MOST_32)) + name + extra


def zip_size(entries: Iterable[ZipEntry]) -> int:
    """Return the number of bytes that ``zip_pieces`` yields."""
    offset = listed = count = 0
    for entry in entries:
        listed += len(entry.listing(offset, 0))
        count += 1
        offset += len(entry.head(offset)) + entry.num_bytes + entry.tail_bytes
    return offset + listed + len(_end(count, offset, listed))


def zip_pieces(entries: Iterable[ZipEntry]) -> Iterator[memoryview | bytes]:
    """Yield an archive, front to back.

    Raises RuntimeError where an entry's pieces do not add up to its size.
    """
    from isal.isal_zlib import crc32

    offset = 0
    listings: list[bytes] = []
    for entry in entries:
        head = entry.head(offset)
        yield head
        crc = found = 0
        for piece in entry.pieces():
            crc = crc32(piece, crc)
            found += memoryview(piece).nbytes
            yield piece
        if found != entry.num_bytes:
            raise RuntimeError(f"{entry.name}: {found} bytes written, {entry.num_bytes} expected")
        yield entry.tail(crc)
        listings.append(entry.listing(offset, crc))
        offset += len(head) + found + entry.tail_bytes
    directory = b"".join(listings)
    yield directory + _end(len(listings), offset, len(directory))


def _end(count: int, offset: int, num_bytes: int) -> bytes:
    """Return what stands behind the directory, which has ``count`` entries in ``num_bytes`` bytes at ``offset``."""
    large = b""
    if offset >= _MOST_32 or count >= _MOST_16:
        fields = (44, _VERSION_64, _VERSION_64, 0, 0, count, count, num_bytes, offset)
        large = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", *fields)
        large += struct.pack("<4sIQI", b"PK\6\7", 0, offset + num_bytes, 1)
    count, offset = min(count, _MOST_16), min(offset, _MOST_32)
    return large + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, count, count, num_bytes, offset, 0)
