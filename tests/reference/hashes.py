"""Hashes and partition functions, word for word from the description of the store format."""

from __future__ import annotations

MASK = 2**64 - 1


def splitmix64(x: int) -> int:
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def hash_id(raw_id: int | str) -> int:
    """h: of an integer its 64 bits, of a string its length and its 8-byte little-endian words."""
    if isinstance(raw_id, int):
        return splitmix64(raw_id & MASK)
    data = raw_id.encode()
    h = splitmix64(len(data))
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8].ljust(8, b"\0"), "little")
        h = splitmix64(h ^ word)
    return h


def edge_checksum(edges) -> str:
    """Sum over (raw source, raw destination), the same for any order."""
    total = 0
    for src, dst in edges:
        total = (total + splitmix64(hash_id(src) ^ splitmix64(hash_id(dst)))) & MASK
    return f"{total:016x}"


def feistel(rank: int, n: int, seed: int, type_number: int) -> int:
    """perm(rank): a 4-round Feistel network on 2b bits, repeated until the result is < n."""
    b = 1
    while 4**b < n:
        b += 1
    low = 2**b - 1
    keys = [splitmix64(splitmix64(seed & MASK) ^ (256 * type_number + r)) for r in range(4)]
    x = rank
    while True:
        left, right = x >> b, x & low
        for key in keys:
            left, right = right, left ^ (splitmix64(key ^ right) & low)
        x = (left << b) | right
        if x < n:
            return x


def cut(position: int, n: int, num_parts: int) -> int:
    """The run that a position falls into when 0..n-1 is cut into runs, the first n mod P one longer."""
    start = 0
    for part in range(num_parts):
        stop = start + n // num_parts + (1 if part < n % num_parts else 0)
        if start <= position < stop:
            return part
        start = stop
    raise ValueError((position, n, num_parts))
