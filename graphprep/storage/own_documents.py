"""Which JSON documents this process has written: holding its own ones against their schema takes 0.1 s of loading."""

from __future__ import annotations

import xxhash

_written: set[bytes] = set()


def remember(data: bytes) -> None:
    """Note a document that is being written."""
    _written.add(xxhash.xxh3_128_digest(data))


def is_own(data: bytes) -> bool:
    """Return whether this process has written the same bytes."""
    return xxhash.xxh3_128_digest(data) in _written
