"""Keys of objects on a tape: which known name a key is, and whether a key stands twice."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphprep.kernels.cpu.json_tape import ESCAPED, OBJECT, TEXT, after, kind_of, start_of, unescape

# Names of DeepGNN's JSON format. A name's number is its position here; a set of names is a mask of 64 bits.
(KEY_NODE_ID, KEY_NODE_TYPE, KEY_NODE_WEIGHT, KEY_EDGE, KEY_NEIGHBOR, KEY_CREATED_AT, KEY_REMOVED_AT) = range(7)
(KEY_SRC_ID, KEY_DST_ID, KEY_EDGE_TYPE, KEY_WEIGHT, KEY_COORDINATES, KEY_VALUES) = range(7, 13)
FIELDS = (
    *("node_id", "node_type", "node_weight", "edge", "neighbor", "created_at", "removed_at"),
    *("src_id", "dst_id", "edge_type", "weight", "coordinates", "values"),
)
# A group's prefix and the dtype of its values.
GROUP_DTYPES = (
    *(("float", "float32"), ("double", "float64"), ("float16", "float16"), ("float32", "float32"), ("float64", "float64")),
    *((name, name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
)
DENSE_GROUP = len(FIELDS)
SPARSE_GROUP = DENSE_GROUP + len(GROUP_DTYPES)
BINARY_GROUP = SPARSE_GROUP + len(GROUP_DTYPES)
NAMES = (
    *FIELDS,
    *(f"{name}_feature" for name, _ in GROUP_DTYPES),
    *(f"sparse_{name}_feature" for name, _ in GROUP_DTYPES),
    "binary_feature",
)
UNKNOWN, UNKNOWN_GROUP = -1, -2  # what a key is that has no number; the second ends with _feature

_SUFFIX = np.frombuffer(b"_feature", np.uint8)
_MAX_NAME = max(len(name) for name in NAMES)
_NUM_SLOTS = 256
_FEW_KEYS = 16  # compared pair by pair; more go through a hash table


def _perfect_hash() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Search factors that send every name to a slot of its own.

    Returns the factors, each slot's name (-1: none), and the names' bytes, [names, longest], with their lengths.
    """
    spelled = [name.encode() for name in NAMES]
    marks = [(len(name), name[0], name[len(name) // 2], name[-9]) if len(name) > 8 else
             (len(name), name[0], name[len(name) // 2], name[0]) for name in spelled]  # fmt: skip
    generator = np.random.default_rng(0)
    while True:
        factors = generator.integers(1, 1 << 16, 4)
        slots = [sum(int(f) * mark for f, mark in zip(factors, row, strict=True)) % _NUM_SLOTS for row in marks]
        if len(set(slots)) == len(slots):
            break
    table = np.full(_NUM_SLOTS, -1, np.int64)
    table[slots] = np.arange(len(slots))
    letters = np.zeros((len(spelled), _MAX_NAME), np.uint8)
    for i, name in enumerate(spelled):
        letters[i, : len(name)] = np.frombuffer(name, np.uint8)
    return factors, table, letters, np.array([len(name) for name in spelled])


_FACTORS, _TABLE, _LETTERS, _LENGTHS = _perfect_hash()


@njit(cache=True, nogil=True)
def name_of(buf, words, extra, token):
    """Return the number of the known name that a key spells, UNKNOWN_GROUP or UNKNOWN."""
    start, stop = start_of(words, token) + 1, extra[token]
    if kind_of(words, token) == TEXT:
        return _lookup(buf, start, stop)
    spelled = np.empty(stop - start, np.uint8)
    stop, _ = unescape(buf, start, stop, spelled, 0)
    return _lookup(spelled, 0, stop)


@njit(cache=True, nogil=True)
def _lookup(buf, start, stop):
    size = stop - start
    if 0 < size <= _MAX_NAME:
        mark = buf[stop - 9] if size > 8 else buf[start]
        slot = _FACTORS[0] * size + _FACTORS[1] * buf[start] + _FACTORS[2] * buf[start + size // 2] + _FACTORS[3] * mark
        name = _TABLE[slot % _NUM_SLOTS]
        if name >= 0 and _LENGTHS[name] == size:
            i = 0
            while i < size and _LETTERS[name, i] == buf[start + i]:
                i += 1
            if i == size:
                return name
    if size >= _SUFFIX.size:
        for i in range(_SUFFIX.size):
            if buf[stop - _SUFFIX.size + i] != _SUFFIX[i]:
                return UNKNOWN
        return UNKNOWN_GROUP
    return UNKNOWN


@njit(cache=True, nogil=True)
def same_text(buf, words, extra, one, two):
    """Compare what two texts stand for, escapes resolved."""
    start, stop = start_of(words, one) + 1, extra[one]
    start_2, stop_2 = start_of(words, two) + 1, extra[two]
    if kind_of(words, one) == TEXT and kind_of(words, two) == TEXT:
        if stop - start != stop_2 - start_2:
            return False
        for i in range(stop - start):
            if buf[start + i] != buf[start_2 + i]:
                return False
        return True
    letters = np.empty(stop - start, np.uint8)
    letters_2 = np.empty(stop_2 - start_2, np.uint8)
    size, _ = unescape(buf, start, stop, letters, 0)
    size_2, _ = unescape(buf, start_2, stop_2, letters_2, 0)
    if size != size_2:
        return False
    for i in range(size):
        if letters[i] != letters_2[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def hash_text(buf, words, extra, token):
    """Hash what a text stands for, escapes resolved (FNV-1a)."""
    start, stop = start_of(words, token) + 1, extra[token]
    if kind_of(words, token) == ESCAPED:
        letters = np.empty(stop - start, np.uint8)
        size, _ = unescape(buf, start, stop, letters, 0)
        return _hash_bytes(letters, 0, size)
    return _hash_bytes(buf, start, stop)


@njit(cache=True, nogil=True)
def _hash_bytes(buf, start, stop):
    value = np.uint64(0xCBF29CE484222325)
    for i in range(start, stop):
        value = (value ^ np.uint64(buf[i])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(32))


@njit(cache=True, nogil=True)
def find_duplicate(buf, words, extra, token):
    """Return the first key of an object that stands there a second time, -1 if none does."""
    end = extra[token]
    num_keys = 0
    key = token + 1
    while key < end and num_keys <= _FEW_KEYS:
        num_keys += 1
        key = after(words, extra, key + 1)
    if num_keys > _FEW_KEYS:
        return _find_duplicate_hashed(buf, words, extra, token)
    key = token + 1
    while key < end:
        other = token + 1
        while other < key:
            if same_text(buf, words, extra, other, key):
                return key
            other = after(words, extra, other + 1)
        key = after(words, extra, key + 1)
    return -1


@njit(cache=True, nogil=True)
def _find_duplicate_hashed(buf, words, extra, token):
    end = extra[token]
    num_slots = 64
    while num_slots < end - token:  # at least two tokens a key
        num_slots *= 2
    seen = np.full(num_slots, -1, np.int64)
    key = token + 1
    while key < end:
        slot = np.int64(hash_text(buf, words, extra, key) & np.uint64(num_slots - 1))
        while seen[slot] >= 0:
            if same_text(buf, words, extra, seen[slot], key):
                return key
            slot = (slot + 1) & (num_slots - 1)
        seen[slot] = key
        key = after(words, extra, key + 1)
    return -1


@njit(cache=True, nogil=True)
def find_duplicate_within(buf, words, extra, token):
    """Return the first key that stands twice in one of the objects in a value, at any depth; -1 if none does."""
    for inner in range(token, after(words, extra, token)):
        if kind_of(words, inner) == OBJECT:
            key = find_duplicate(buf, words, extra, inner)
            if key >= 0:
                return key
    return -1


@njit(cache=True, nogil=True)
def tally_texts(buf, words, extra, tokens):
    """Count equal texts: ``(firsts, counts)``, int64 each, in the order of their first occurrence."""
    num_slots = 16
    while num_slots < 2 * tokens.size:
        num_slots *= 2
    slots = np.full(num_slots, -1, np.int64)
    firsts = np.empty(tokens.size, np.int64)
    counts = np.zeros(tokens.size, np.int64)
    num_texts = 0
    for i in range(tokens.size):
        slot = np.int64(hash_text(buf, words, extra, tokens[i]) & np.uint64(num_slots - 1))
        while slots[slot] >= 0 and not same_text(buf, words, extra, firsts[slots[slot]], tokens[i]):
            slot = (slot + 1) & (num_slots - 1)
        if slots[slot] < 0:
            slots[slot] = num_texts
            firsts[num_texts] = tokens[i]
            num_texts += 1
        counts[slots[slot]] += 1
    return firsts[:num_texts], counts[:num_texts]
