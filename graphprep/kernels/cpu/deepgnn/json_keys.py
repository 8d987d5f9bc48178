"""Keys of objects on a tape: which known name a key is, and whether a key stands twice."""

from __future__ import annotations

import random

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import WORD, address_of, load_word
from graphprep.kernels.cpu.deepgnn.json_tape import ESCAPED, OBJECT, TEXT, Tape, after, kind_of, start_of, unescape

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

_FEATURE = np.uint64(int.from_bytes(b"_feature", "little"))
_NUM_SLOTS = 512
_HASH_SHIFT = np.uint64(64 - 9)  # its upper 9 bits number the slots
_FEW_KEYS = 16  # compared pair by pair; more go through a hash table


def _marks(name: bytes) -> tuple[int, int]:
    """Return what tells a name from the others: its first eight bytes, and eight more.

    Those are the last ones, or where the name is longer than both together, the eight before the last eight.
    """
    head = int.from_bytes(name[:8], "little")
    size = len(name)
    tail = b"" if size <= 8 else name[size - 8 :] if size <= 16 else name[size - 16 : size - 8]
    return head, int.from_bytes(tail, "little")


def _perfect_hash() -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64], NDArray[np.int64]]:
    """Search a factor that sends every name to a slot of its own.

    Returns the factor, each slot's name (-1: none), and the names' marks, [names, 2], with their lengths.
    """
    spelled = [name.encode() for name in NAMES]
    assert all(name.endswith(b"_feature") for name in spelled if len(name) > 16)  # so that the marks tell all
    generator = random.Random(0)  # NumPy's takes 15 ms to import
    marks = np.array([_marks(name) for name in spelled], np.uint64)
    lengths = np.array([len(name) for name in spelled])
    while True:
        factor = np.array([generator.getrandbits(63) * 2 + 1], np.uint64)
        slots = ((marks[:, 0] ^ (marks[:, 1] >> np.uint64(1)) ^ lengths.astype(np.uint64)) * factor) >> _HASH_SHIFT
        if len(set(slots.tolist())) == slots.size:
            break
    table = np.full(_NUM_SLOTS, -1, np.int64)
    table[slots.astype(np.int64)] = np.arange(slots.size)
    return factor, table, marks, lengths


_FACTOR, _TABLE, _MARKS, _LENGTHS = _perfect_hash()


def spelling_room(tape: Tape) -> NDArray[np.uint8]:
    """Allocate room for what two keys spell: uint8. What is not written to costs nothing."""
    return np.empty(2 * tape.buf.size + WORD, np.uint8)


# Below, ``spelled`` is that room, and ``table`` (int64) has one for every token, rounded up to a power of two.


@njit(cache=True, nogil=True)
def name_of(buf, words, extra, spelled, token):
    """Return the number of the known name that a key spells, UNKNOWN_GROUP or UNKNOWN."""
    start, stop = start_of(words, token) + 1, extra[token]
    if kind_of(words, token) == TEXT and start + WORD <= buf.size:
        base = address_of(buf)
        return name_between(base + start, base + stop)
    size, _ = unescape(buf, start, stop, spelled, 0)  # or merely copy what no eight bytes follow
    base = address_of(spelled)
    return name_between(base, base + size)


@njit(cache=True, nogil=True)
def name_between(start, stop):
    """Return the number of the known name between two addresses, UNKNOWN_GROUP or UNKNOWN; 8 bytes follow ``start``."""
    size = stop - start
    head = load_word(start)
    if size < 8:
        return _known_name(size, head & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)), np.uint64(0), np.uint64(0))
    last = load_word(stop - 8)
    tail = np.uint64(0)
    if size > 8:
        tail = last if size <= 16 else load_word(stop - 16)
    return _known_name(size, head, tail, last)


@njit(cache=True, nogil=True)
def _known_name(size, head, tail, last):
    """Look a name up by its size, its marks and its last eight bytes."""
    slot = np.int64(((head ^ (tail >> np.uint64(1)) ^ np.uint64(size)) * _FACTOR[0]) >> _HASH_SHIFT)
    name = _TABLE[slot]
    is_group = size >= 8 and last == _FEATURE
    if (
        name >= 0
        and _LENGTHS[name] == size
        and _MARKS[name, 0] == head
        and _MARKS[name, 1] == tail
        and (size <= 16 or is_group)
    ):
        return name
    return UNKNOWN_GROUP if is_group else UNKNOWN


@njit(cache=True, nogil=True)
def same_text(buf, words, extra, spelled, one, two):
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
    size, _ = unescape(buf, start, stop, spelled, 0)
    end, _ = unescape(buf, start_2, stop_2, spelled, size)
    if end != 2 * size:
        return False
    for i in range(size):
        if spelled[i] != spelled[size + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def hash_text(buf, words, extra, spelled, token):
    """Hash what a text stands for, escapes resolved (FNV-1a)."""
    start, stop = start_of(words, token) + 1, extra[token]
    if kind_of(words, token) == ESCAPED:
        size, _ = unescape(buf, start, stop, spelled, 0)
        return _hash_bytes(spelled, 0, size)
    return _hash_bytes(buf, start, stop)


@njit(cache=True, nogil=True)
def _hash_bytes(buf, start, stop):
    value = np.uint64(0xCBF29CE484222325)
    for i in range(start, stop):
        value = (value ^ np.uint64(buf[i])) * np.uint64(0x100000001B3)
    return value ^ (value >> np.uint64(32))


@njit(cache=True, nogil=True)
def find_duplicate(buf, words, extra, spelled, table, token):
    """Return the first key of an object that stands there a second time, -1 if none does."""
    end = extra[token]
    num_keys = 0
    key = token + 1
    while key < end and num_keys <= _FEW_KEYS:
        num_keys += 1
        key = after(words, extra, key + 1)
    if num_keys > _FEW_KEYS:
        return _find_duplicate_hashed(buf, words, extra, spelled, table, token)
    key = token + 1
    while key < end:
        other = token + 1
        while other < key:
            if same_text(buf, words, extra, spelled, other, key):
                return key
            other = after(words, extra, other + 1)
        key = after(words, extra, key + 1)
    return -1


@njit(cache=True, nogil=True)
def _find_duplicate_hashed(buf, words, extra, spelled, table, token):
    end = extra[token]
    num_slots = 64
    while num_slots < end - token:  # at least two tokens a key
        num_slots *= 2
    table[:num_slots] = -1
    key = token + 1
    while key < end:
        slot = np.int64(hash_text(buf, words, extra, spelled, key) & np.uint64(num_slots - 1))
        while table[slot] >= 0:
            if same_text(buf, words, extra, spelled, table[slot], key):
                return key
            slot = (slot + 1) & (num_slots - 1)
        table[slot] = key
        key = after(words, extra, key + 1)
    return -1


@njit(cache=True, nogil=True)
def find_duplicate_within(buf, words, extra, spelled, table, token):
    """Return the first key that stands twice in one of the objects in a value, at any depth; -1 if none does."""
    for inner in range(token, after(words, extra, token)):
        if kind_of(words, inner) == OBJECT:
            key = find_duplicate(buf, words, extra, spelled, table, inner)
            if key >= 0:
                return key
    return -1


def tally_texts(tape: Tape, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count equal texts: ``(firsts, counts)``, int64 each, in the order of their first occurrence."""
    firsts, counts = np.empty(tokens.size, np.int64), np.zeros(tokens.size, np.int64)
    slots = np.full(max(16, 1 << (2 * tokens.size - 1).bit_length()), -1, np.int64)
    num_texts = _tally_texts(*tape, spelling_room(tape), tokens, slots, firsts, counts)
    return firsts[:num_texts], counts[:num_texts]


@njit(cache=True, nogil=True)
def _tally_texts(buf, words, extra, spelled, tokens, slots, firsts, counts):
    num_texts = 0
    for i in range(tokens.size):
        slot = np.int64(hash_text(buf, words, extra, spelled, tokens[i]) & np.uint64(slots.size - 1))
        while slots[slot] >= 0 and not same_text(buf, words, extra, spelled, firsts[slots[slot]], tokens[i]):
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot] < 0:
            slots[slot] = num_texts
            firsts[num_texts] = tokens[i]
            num_texts += 1
        counts[slots[slot]] += 1
    return num_texts
