"""Splits by docs/split.md, row by row in Python: nothing of the product is used."""

from fractions import Fraction

from reference.hashes import splitmix64

SALT = 0x1FE6A04E179FD32E
NONE = 3


def key_of(x, seed=0):
    return splitmix64(x ^ splitmix64(splitmix64(seed % 2**64) ^ SALT))


def node_key(raw_hash, seed=0):
    return key_of(raw_hash, seed)


def edge_key(src_hash, dst_hash, seed=0, *, symmetric=False):
    if symmetric:
        src_hash, dst_hash = sorted((src_hash, dst_hash))
    return key_of(splitmix64(src_hash ^ splitmix64(dst_hash)), seed)


def ends_of(shares, size):
    """Return behind how many rows each part ends."""
    if all(number.isdigit() for number in shares.split("/")):
        counts = [int(number) for number in shares.split("/")]
        return [sum(counts[: at + 1]) for at in range(len(counts))]
    fractions = [Fraction(number) for number in shares.split("/")]
    return [int(sum(fractions[: at + 1]) * size + Fraction(1, 2)) for at in range(len(fractions))]


def cut(keys, ends):
    """Return the part of each key; None is in no part. Rows of one key stay together, in the part of the first of them."""
    codes = [0, 1, 2, NONE] if len(ends) == 3 else [0, 2, NONE]
    first = {}
    for rank, key in enumerate(sorted(key for key in keys if key is not None)):
        first.setdefault(key, rank)
    return [NONE if key is None else codes[sum(first[key] >= end for end in ends)] for key in keys]


def split_keys(keys, shares):
    return cut(keys, ends_of(shares, sum(key is not None for key in keys)))


def split_classes(keys, labels, shares):
    """Split each class by itself; shares only."""
    out = [NONE] * len(keys)
    for label in {label for label in labels if label is not None}:
        rows = [row for row, own in enumerate(labels) if own == label]
        for row, part in zip(rows, split_keys([keys[row] for row in rows], shares), strict=True):
            out[row] = part
    return out


def edge_part(*ends):
    return max(ends, key=[0, NONE, 1, 2].index)
