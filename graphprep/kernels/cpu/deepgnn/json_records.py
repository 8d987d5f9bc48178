"""Walk the tape of DeepGNN's JSON records: nodes, edges, and where their features stand. A kernel never raises.

Faults come back as ``(code, token, name)``: what is wrong, the token to blame, and the number of the field or group that it
belongs to. Features are only located and measured here; ``json_values`` reads them, one column after the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.json_keys import (
    BINARY_GROUP,
    DENSE_GROUP,
    KEY_COORDINATES,
    KEY_CREATED_AT,
    KEY_DST_ID,
    KEY_EDGE,
    KEY_EDGE_TYPE,
    KEY_NEIGHBOR,
    KEY_NODE_ID,
    KEY_NODE_TYPE,
    KEY_NODE_WEIGHT,
    KEY_REMOVED_AT,
    KEY_SRC_ID,
    KEY_VALUES,
    KEY_WEIGHT,
    SPARSE_GROUP,
    UNKNOWN_GROUP,
    find_duplicate,
    find_duplicate_within,
    name_of,
    spelling_room,
)
from graphprep.kernels.cpu.deepgnn.json_tape import (
    ARRAY,
    ESCAPED,
    HUGE,
    NEGATIVE,
    NESTED,
    NULL,
    OBJECT,
    OK,
    TEXT,
    UINT,
    Tokens,
    after,
    bits_of,
    float_of,
    kind_of,
    start_of,
    unescape,
)
from graphprep.kernels.cpu.text.numbers import parse_uint

# Faults; they go on where those of json_tape end.
(NOT_RECORD, DUPLICATE_KEY, MISSING_KEY, BAD_GROUP_NAME, NOT_ID, NOT_TYPE, NOT_NUMBER, TOO_LARGE, NOT_TIME) = range(20, 29)
(NOT_EDGE_LIST, NOT_EDGE, NOT_NEIGHBOR, NOT_TYPE_KEY, NOT_DST_KEY, NOT_GROUP, NOT_SLOT, SAME_SLOT) = range(29, 37)
(NOT_FEATURE, UNEVEN, TOO_MANY_DIMENSIONS, NOT_TEXT, NOT_SPARSE, NOT_COORDINATES, NOT_FLAT, MISMATCH) = range(37, 45)
(NOT_DATED, DATED_SPARSE) = range(45, 47)

# Columns of ``Found``. STATED has bit 1 where created_at is stated, bit 2 where removed_at is; SLOTS is the number of slots.
NODE_ROW = (ID, TYPE, WEIGHT, CREATED, REMOVED, STATED, SLOTS, ID_TOKEN, EDGE_TOKEN, NEIGHBOR_TOKEN) = range(10)
EDGE_ROW = (SRC, _, _, _, _, _, _, SRC_TOKEN, DST, DST_TOKEN, RECORD) = range(11)  # from TYPE to SLOTS like a node's
NEIGHBOR_ROW = (NEIGHBOR_RECORD, NEIGHBOR_TYPE, NEIGHBOR_DST, NEIGHBOR_WEIGHT) = range(4)
# SECOND is the place of a nested feature's dimensions, or the token of a sparse one's coordinates; EXTENT the number of
# dimensions, or the width of the coordinates. A temporal feature's TOKEN is its first row of ``Found.dated``.
FEATURE_ROW = (ON_EDGE, ROW, GROUP, SLOT, FAMILY, TOKEN, COUNT, EXTENT, SECOND) = range(9)
DATED_ROW = (START, END, DATED_TOKEN, DATED_COUNT) = range(4)
NUMBERS, SPARSE, BINARY, DATED_NUMBERS, DATED_BINARY = range(5)  # families
# What ``Found.sizes`` counts.
NUM_NODES, NUM_EDGES, NUM_FEATURES, NUM_DATED, NUM_DIMENSIONS, NUM_UNKNOWN, NUM_NEIGHBORS, NUM_OWNERS = range(8)

MAX_TYPE = 2**31 - 1
MAX_SLOT = 2**31 - 2
MAX_DIMENSIONS = 31  # one less than NumPy 1 takes, for the rows

_GROUPS = ((1 << BINARY_GROUP + 1) - 1) ^ ((1 << DENSE_GROUP) - 1)
_TIMES = 1 << KEY_CREATED_AT | 1 << KEY_REMOVED_AT
_NODE_NAMES = ((1 << KEY_SRC_ID) - 1) | _GROUPS
_NODE_NEEDS = 1 << KEY_NODE_ID | 1 << KEY_NODE_TYPE | 1 << KEY_NODE_WEIGHT
_EDGE_NEEDS = 1 << KEY_SRC_ID | 1 << KEY_DST_ID | 1 << KEY_EDGE_TYPE | 1 << KEY_WEIGHT
_EDGE_NAMES = _EDGE_NEEDS | _TIMES | _GROUPS
_SPARSE_NAMES = 1 << KEY_COORDINATES | 1 << KEY_VALUES
_DATED_NAMES = 1 << KEY_VALUES | _TIMES
_NUM_NAMES = 64  # that there can be
_FEW_SLOTS = 4096  # slots below are looked up, those above compared


class Found(NamedTuple):
    """What stands on a tape, int64 all of it; ``sizes`` says how many rows of each array are filled.

    The columns of ``nodes``, ``edges``, ``neighbors`` (those that are to be compared with ``edge``), ``features`` and ``dated``
    are named above. IDs are the bits of a uint64, weights those of a float64. ``dimensions`` holds the lengths of nested
    features, ``unknown`` the tokens of keys that mean nothing here.
    """

    sizes: NDArray[np.int64]
    nodes: NDArray[np.int64]
    edges: NDArray[np.int64]
    neighbors: NDArray[np.int64]
    features: NDArray[np.int64]
    dated: NDArray[np.int64]
    dimensions: NDArray[np.int64]
    unknown: NDArray[np.int64]


def find_records(tokens: Tokens, weight_limit: float, every: bool = False) -> tuple[Found, NDArray[np.int64]]:
    """Walk the records of a tape, up to the first that is faulty unless ``every`` one is wanted.

    ``weight_limit`` is the least magnitude that is infinite in the dtype of weights. Returns what was found, and int64[k, 4]:
    record, code, token and name of each fault. With one, only what was found before it is to be used.
    """
    num_nodes = tokens.roots.size
    size = 0 if num_nodes == 0 else _last_token(tokens.tape.words, tokens.tape.extra, tokens.roots[-1])
    # Room for the worst case: memory that is not written to costs nothing. Edges of ``neighbor``, features and unknown keys
    # take a key and a value at least.
    pairs = size // 2 + 1
    columns = (NODE_ROW, EDGE_ROW, NEIGHBOR_ROW, FEATURE_ROW, DATED_ROW)
    rows = [np.empty((num_nodes if row is NODE_ROW else pairs, len(row)), np.int64) for row in columns]
    found = Found(np.zeros(8, np.int64), *rows, np.empty(size + 1, np.int64), np.empty(pairs, np.int64))
    buf, words, extra = tokens.tape
    scratch = (
        spelling_room(tokens.tape),
        np.empty(1 << (size + 64).bit_length(), np.int64),
        np.empty(_NUM_NAMES + MAX_DIMENSIONS, np.int64),
        np.empty(_NUM_NAMES, np.int64),
        np.full(_FEW_SLOTS, -1, np.int64),
    )
    faults = np.empty((num_nodes if every else min(num_nodes, 1), 4), np.int64)
    num_faults = _walk_on(buf, words, extra, tokens.roots, weight_limit, *found, *scratch, faults)
    return found, faults[:num_faults]


@njit(cache=True, nogil=True)
def _last_token(words, extra, token):
    return after(words, extra, token)


@njit(cache=True, nogil=True)
def _walk_on(
    buf, words, extra, roots, limit, sizes, nodes, edges, neighbors, features, dated, dimensions, unknown,
    spelled, table, inner, member, slots_seen, faults,
):  # fmt: skip
    """Walk, and go on behind faulty records until ``faults`` is full. Returns the number of faults."""
    node = 0
    for i in range(faults.shape[0]):
        node, code, token, name = _walk(
            buf, words, extra, roots, limit, sizes, nodes, edges, neighbors, features, dated, dimensions, unknown,
            spelled, table, inner, member, slots_seen, node,
        )  # fmt: skip
        if code == OK:
            return i
        faults[i, 0] = node
        faults[i, 1] = code
        faults[i, 2] = token
        faults[i, 3] = name
        node += 1
    return faults.shape[0]


@njit(cache=True, nogil=True)
def _walk(
    buf, words, extra, roots, limit, sizes, nodes, edges, neighbors, features, dated, dimensions, unknown,
    spelled, table, inner, member, slots_seen, first,
):  # fmt: skip
    """Walk the records from ``first`` on. Returns the record, code, token and name of the first fault."""
    # Arrays, not tuples of arrays: taking one out of a tuple counts references, and that would take half of the time.
    for node in range(first, roots.size):
        code, token, name, edge_mask = _node(
            buf, spelled, table, words, extra, roots[node], node, limit, sizes, nodes, unknown, member
        )
        if code != OK:
            return node, code, token, name
        sizes[NUM_NODES] = node + 1
        code, token, name, nodes[node, SLOTS] = _features(
            buf, spelled, table, inner, words, extra, edge_mask, member, False, node, sizes, features, dated, dimensions,
            unknown, slots_seen,
        )  # fmt: skip
        if code != OK:
            return node, code, token, name
        edge = nodes[node, EDGE_TOKEN]
        if edge >= 0:
            code, token, name = _edges(
                buf, spelled, table, inner, words, extra, edge, node, limit, sizes, nodes, edges, features, dated, dimensions,
                unknown, slots_seen, member,
            )  # fmt: skip
            if code != OK:
                return node, code, token, name
        if nodes[node, NEIGHBOR_TOKEN] >= 0:
            code, token, name = _neighbors(buf, spelled, table, words, extra, node, limit, sizes, nodes, edges, neighbors)
            if code != OK:
                return node, code, token, name
    return roots.size, OK, 0, 0


@njit(cache=True, nogil=True)
def _members(buf, spelled, table, words, extra, token, allowed, sizes, unknown, member):
    """Fill ``member`` with the values of an object's known keys: ``(code, token, mask of names)``."""
    mask = 0
    num_unknown = 0
    key = token + 1
    end = extra[token]
    while key < end:
        name = name_of(buf, words, extra, spelled, key)
        value = key + 1
        if name >= 0 and allowed >> name & 1:
            if mask >> name & 1:
                return DUPLICATE_KEY, key, mask
            mask |= 1 << name
            member[name] = value
        elif name == UNKNOWN_GROUP and allowed & _GROUPS:
            return BAD_GROUP_NAME, key, mask
        else:
            num_unknown += 1
            unknown[sizes[NUM_UNKNOWN]] = key
            sizes[NUM_UNKNOWN] += 1
            if OBJECT <= kind_of(words, value) <= NESTED:
                twice = find_duplicate_within(buf, words, extra, spelled, table, value)
                if twice >= 0:
                    return DUPLICATE_KEY, twice, mask
        key = after(words, extra, value)
    if num_unknown > 1:
        twice = find_duplicate(buf, words, extra, spelled, table, token)
        if twice >= 0:
            return DUPLICATE_KEY, twice, mask
    return OK, token, mask


@njit(cache=True, nogil=True)
def _missing(mask, needed):
    """Return the lowest name of ``needed`` that is not in ``mask``."""
    name = 0
    while not (needed & ~mask) >> name & 1:
        name += 1
    return name


@njit(cache=True, nogil=True)
def _node(buf, spelled, table, words, extra, token, node, limit, sizes, nodes, unknown, member):
    """Read a node's own fields: ``(code, token, name, mask of its names)``."""
    if kind_of(words, token) != OBJECT:
        return NOT_RECORD, token, 0, 0
    code, blame, mask = _members(buf, spelled, table, words, extra, token, _NODE_NAMES, sizes, unknown, member)
    if code != OK:
        return code, blame, 0, 0
    if mask & _NODE_NEEDS != _NODE_NEEDS:
        return MISSING_KEY, token, _missing(mask, _NODE_NEEDS), 0
    if not mask & (1 << KEY_EDGE | 1 << KEY_NEIGHBOR):
        return MISSING_KEY, token, KEY_EDGE, 0
    code, nodes[node, ID] = _id(words, extra, member[KEY_NODE_ID])
    if code != OK:
        return code, member[KEY_NODE_ID], KEY_NODE_ID, 0
    code, nodes[node, TYPE] = _type(words, extra, member[KEY_NODE_TYPE])
    if code != OK:
        return code, member[KEY_NODE_TYPE], KEY_NODE_TYPE, 0
    code, nodes[node, WEIGHT] = _weight(words, extra, member[KEY_NODE_WEIGHT], limit)
    if code != OK:
        return code, member[KEY_NODE_WEIGHT], KEY_NODE_WEIGHT, 0
    code, name, nodes[node, CREATED], nodes[node, REMOVED], nodes[node, STATED] = _times(words, extra, mask, member)
    if code != OK:
        return code, member[name], name, 0
    nodes[node, ID_TOKEN] = member[KEY_NODE_ID]
    nodes[node, EDGE_TOKEN] = member[KEY_EDGE] if mask >> KEY_EDGE & 1 else -1
    nodes[node, NEIGHBOR_TOKEN] = member[KEY_NEIGHBOR] if mask >> KEY_NEIGHBOR & 1 else -1
    return OK, 0, 0, mask


@njit(cache=True, nogil=True)
def _id(words, extra, token):
    """Read an ID: ``(code, bits of a uint64)``."""
    if kind_of(words, token) == UINT or (kind_of(words, token) == NEGATIVE and extra[token] == 0):
        return OK, extra[token]
    return NOT_ID, 0


@njit(cache=True, nogil=True)
def _type(words, extra, token):
    code, value = _id(words, extra, token)
    if code != OK or value < 0 or value > MAX_TYPE:  # the bits of 2^63 and more are negative
        return NOT_TYPE, 0
    return OK, value


@njit(cache=True, nogil=True)
def read_float(words, extra, token):
    """Return the value of a number's token as float64."""
    kind = kind_of(words, token)
    if kind == UINT:
        return np.float64(np.uint64(extra[token]))
    if kind == NEGATIVE:
        return -np.float64(np.uint64(extra[token]))
    return float_of(extra, token)


@njit(cache=True, nogil=True)
def _weight(words, extra, token, limit):
    """Read a weight: ``(code, bits of a float64)``."""
    kind = kind_of(words, token)
    if kind < UINT:
        return NOT_NUMBER, 0
    value = read_float(words, extra, token)
    if kind <= HUGE and abs(value) >= limit:
        return TOO_LARGE, 0
    return OK, bits_of(value)


@njit(cache=True, nogil=True)
def _times(words, extra, mask, member):
    """Read created_at and removed_at, 0 and -1 where they are absent: ``(code, name, created, removed, stated)``."""
    stated = mask >> KEY_CREATED_AT & 3
    created, removed = 0, -1
    if stated & 1:
        token = member[KEY_CREATED_AT]
        created = _signed(words, extra, token)
        if not _fits_int64(words, extra, token):
            return NOT_TIME, KEY_CREATED_AT, 0, 0, 0
    if stated & 2:
        token = member[KEY_REMOVED_AT]
        removed = _signed(words, extra, token)
        if not _fits_int64(words, extra, token):
            return NOT_TIME, KEY_REMOVED_AT, 0, 0, 0
    return OK, 0, created, removed, stated


@njit(cache=True, nogil=True)
def _fits_int64(words, extra, token):
    kind = kind_of(words, token)
    return kind == NEGATIVE or (kind == UINT and extra[token] >= 0)


@njit(cache=True, nogil=True)
def _signed(words, extra, token):
    """Return the value of an integer's token that fits int64."""
    return -extra[token] if kind_of(words, token) == NEGATIVE else extra[token]


@njit(cache=True, nogil=True)
def _edges(
    buf, spelled, table, inner, words, extra, token, node, limit, sizes, nodes, edges, features, dated, dimensions, unknown,
    slots_seen, member,
):  # fmt: skip
    """Read the list of edges on a node's record."""
    if kind_of(words, token) != ARRAY and kind_of(words, token) != NESTED:
        return NOT_EDGE_LIST, token, KEY_EDGE
    edge = token + 1
    end = extra[token]
    while edge < end:
        if kind_of(words, edge) != OBJECT:
            return NOT_EDGE, edge, KEY_EDGE
        code, blame, mask = _members(buf, spelled, table, words, extra, edge, _EDGE_NAMES, sizes, unknown, member)
        if code != OK:
            return code, blame, 0
        if mask & _EDGE_NEEDS != _EDGE_NEEDS:
            return MISSING_KEY, edge, _missing(mask, _EDGE_NEEDS)
        row = sizes[NUM_EDGES]
        code, name = _edge(words, extra, mask, limit, row, edges, member)
        if code != OK:
            return code, member[name], name
        _inherit_times(nodes, node, edges, row)
        sizes[NUM_EDGES] = row + 1
        edges[row, SLOTS] = 0
        if mask & _GROUPS:  # a call with so many arrays costs as much as reading an edge
            code, blame, name, edges[row, SLOTS] = _features(
                buf, spelled, table, inner, words, extra, mask, member, True, row, sizes, features, dated, dimensions, unknown,
                slots_seen,
            )  # fmt: skip
            if code != OK:
                return code, blame, name
        edge = after(words, extra, edge)
    return OK, 0, 0


@njit(cache=True, nogil=True)
def _edge(words, extra, mask, limit, row, edges, member):
    """Read an edge's own fields: ``(code, name)``."""
    code, edges[row, SRC] = _id(words, extra, member[KEY_SRC_ID])
    if code != OK:
        return code, KEY_SRC_ID
    code, edges[row, DST] = _id(words, extra, member[KEY_DST_ID])
    if code != OK:
        return code, KEY_DST_ID
    code, edges[row, TYPE] = _type(words, extra, member[KEY_EDGE_TYPE])
    if code != OK:
        return code, KEY_EDGE_TYPE
    code, edges[row, WEIGHT] = _weight(words, extra, member[KEY_WEIGHT], limit)
    if code != OK:
        return code, KEY_WEIGHT
    code, name, edges[row, CREATED], edges[row, REMOVED], edges[row, STATED] = _times(words, extra, mask, member)
    edges[row, SRC_TOKEN] = member[KEY_SRC_ID]
    edges[row, DST_TOKEN] = member[KEY_DST_ID]
    return code, name


@njit(cache=True, nogil=True)
def _inherit_times(nodes, node, edges, row):
    """Note an edge's record, and give it the times that it does not state but its record's node does."""
    edges[row, RECORD] = node
    absent = nodes[node, STATED] & ~edges[row, STATED]
    if absent & 1:
        edges[row, CREATED] = nodes[node, CREATED]
    if absent & 2:
        edges[row, REMOVED] = nodes[node, REMOVED]
    edges[row, STATED] |= absent


@njit(cache=True, nogil=True)
def _neighbors(buf, spelled, table, words, extra, node, limit, sizes, nodes, edges, neighbors):
    """Read ``{"<edge type>": {"<dst>": weight}}``: as edges where there is no ``edge``, else to be compared with it."""
    token = nodes[node, NEIGHBOR_TOKEN]
    used = nodes[node, EDGE_TOKEN] < 0
    if kind_of(words, token) != OBJECT:
        return NOT_NEIGHBOR, token, KEY_NEIGHBOR
    twice = find_duplicate(buf, words, extra, spelled, table, token)
    if twice >= 0:
        return DUPLICATE_KEY, twice, KEY_NEIGHBOR
    relation = token + 1
    while relation < extra[token]:
        code, number = _key_number(buf, spelled, words, extra, relation)
        if code != OK or number > np.uint64(MAX_TYPE):
            return NOT_TYPE_KEY, relation, KEY_NEIGHBOR
        ends = relation + 1
        if kind_of(words, ends) != OBJECT:
            return NOT_NEIGHBOR, ends, KEY_NEIGHBOR
        twice = find_duplicate(buf, words, extra, spelled, table, ends)
        if twice >= 0:
            return DUPLICATE_KEY, twice, KEY_NEIGHBOR
        key = ends + 1
        while key < extra[ends]:
            code, dst = _key_number(buf, spelled, words, extra, key)
            if code != OK:
                return NOT_DST_KEY, key, KEY_NEIGHBOR
            code, weight = _weight(words, extra, key + 1, limit)
            if code != OK:
                return code, key + 1, KEY_NEIGHBOR
            if used:
                row = sizes[NUM_EDGES]
                edges[row, SRC] = nodes[node, ID]
                edges[row, DST] = np.int64(dst)
                edges[row, TYPE] = np.int64(number)
                edges[row, WEIGHT] = weight
                edges[row, CREATED] = 0
                edges[row, REMOVED] = -1
                edges[row, STATED] = 0
                edges[row, SLOTS] = 0
                edges[row, SRC_TOKEN] = nodes[node, ID_TOKEN]
                edges[row, DST_TOKEN] = key
                _inherit_times(nodes, node, edges, row)
                sizes[NUM_EDGES] = row + 1
            else:
                row = sizes[NUM_NEIGHBORS]
                neighbors[row, NEIGHBOR_RECORD] = node
                neighbors[row, NEIGHBOR_TYPE] = np.int64(number)
                neighbors[row, NEIGHBOR_DST] = np.int64(dst)
                neighbors[row, NEIGHBOR_WEIGHT] = weight
                sizes[NUM_NEIGHBORS] = row + 1
            key += 2
        relation = after(words, extra, ends)
    return OK, 0, 0


@njit(cache=True, nogil=True)
def _key_number(buf, spelled, words, extra, token):
    """Read a key as an unsigned integer: ``(code of numbers, uint64)``."""
    start, stop = start_of(words, token) + 1, extra[token]
    if stop == start + 1 and 48 <= buf[start] <= 57:  # one digit: most slots and types
        return OK, np.uint64(buf[start] - 48)
    if kind_of(words, token) == TEXT:
        return parse_uint(buf, start, stop)
    size, _ = unescape(buf, start, stop, spelled, 0)
    return parse_uint(spelled, 0, size)


@njit(cache=True, nogil=True)
def _features(
    buf, spelled, table, inner, words, extra, mask, member, on_edge, row, sizes, features, dated, dimensions, unknown,
    slots_seen,
):  # fmt: skip
    """Locate all features of a node or edge: ``(code, token, name, number of slots)``."""
    owner = sizes[NUM_OWNERS]
    sizes[NUM_OWNERS] += 1
    num_slots = 0
    first_large = -1
    groups = mask >> DENSE_GROUP
    name = DENSE_GROUP - 1
    while groups:
        name += 1
        is_stated = groups & 1
        groups >>= 1
        if not is_stated:
            continue
        group = member[name]
        if kind_of(words, group) == NULL:
            continue
        if kind_of(words, group) != OBJECT:
            return NOT_GROUP, group, name, 0
        key = group + 1
        while key < extra[group]:
            code, number = _key_number(buf, spelled, words, extra, key)
            if code != OK or number > np.uint64(MAX_SLOT):
                return NOT_SLOT, key, name, 0
            slot = np.int64(number)
            if slot < _FEW_SLOTS:
                if slots_seen[slot] == owner:
                    return SAME_SLOT, key, name, 0
                slots_seen[slot] = owner
            elif first_large < 0:
                first_large = slot
            num_slots = max(num_slots, slot + 1)
            at = sizes[NUM_FEATURES]
            features[at, ON_EDGE] = on_edge
            features[at, ROW] = row
            features[at, GROUP] = name
            features[at, SLOT] = slot
            if name == BINARY_GROUP:
                code, blame = _binary(
                    buf, spelled, table, inner, words, extra, key + 1, sizes, features, dated, dimensions, unknown
                )
            elif name >= SPARSE_GROUP:
                code, blame = _sparse(buf, spelled, table, inner, words, extra, key + 1, sizes, features, dimensions, unknown)
            elif kind_of(words, key + 1) == ARRAY:  # most features are a flat list of numbers
                features[at, FAMILY] = NUMBERS
                features[at, TOKEN] = key + 1
                features[at, COUNT] = extra[key + 1] - key - 2
                features[at, EXTENT] = 1
                code, blame = OK, 0
            else:
                code, blame = _dense(
                    buf, spelled, table, inner, words, extra, key + 1, sizes, features, dated, dimensions, unknown
                )
            if code != OK:
                return code, blame, name, 0
            if features[at, COUNT] > 0:
                sizes[NUM_FEATURES] = at + 1
            key = after(words, extra, key + 1)
    if first_large >= 0:
        return _check_large_slots(buf, spelled, table, words, extra, mask, member, num_slots)
    return OK, 0, 0, num_slots


@njit(cache=True, nogil=True)
def _check_large_slots(buf, spelled, table, words, extra, mask, member, num_slots):
    """Look for slots from _FEW_SLOTS on that stand twice; rows with such slots are rare."""
    num_keys = 0
    for name in range(DENSE_GROUP, BINARY_GROUP + 1):
        if mask >> name & 1 and kind_of(words, member[name]) != NULL:
            num_keys += extra[member[name]] - member[name]  # tokens: at least two a key
    size = 64
    while size < num_keys:
        size *= 2
    table[:size] = -1
    for name in range(DENSE_GROUP, BINARY_GROUP + 1):
        if not mask >> name & 1 or kind_of(words, member[name]) == NULL:
            continue
        key = member[name] + 1
        while key < extra[member[name]]:
            slot = np.int64(_key_number(buf, spelled, words, extra, key)[1])
            if slot >= _FEW_SLOTS:
                at = slot & (size - 1)
                while table[at] >= 0 and table[at] != slot:
                    at = (at + 1) & (size - 1)
                if table[at] == slot:
                    return SAME_SLOT, key, name, 0
                table[at] = slot
            key = after(words, extra, key + 1)
    return OK, 0, 0, num_slots


@njit(cache=True, nogil=True)
def _put(sizes, features, family, token, count, extent, second):
    """Describe the feature at hand; a count of 0 means that it is absent."""
    row = sizes[NUM_FEATURES]
    features[row, FAMILY] = family
    features[row, TOKEN] = token
    features[row, COUNT] = count
    features[row, EXTENT] = extent
    features[row, SECOND] = second


@njit(cache=True, nogil=True)
def _is_dated(words, token):
    """Return whether a list begins with an object: then it is a temporal feature."""
    return kind_of(words, token) == NESTED and kind_of(words, token + 1) == OBJECT


@njit(cache=True, nogil=True)
def _is_text(words, token):
    return kind_of(words, token) == TEXT or kind_of(words, token) == ESCAPED


@njit(cache=True, nogil=True)
def _binary(buf, spelled, table, inner, words, extra, token, sizes, features, dated, dimensions, unknown):
    if _is_dated(words, token):
        return _dated(
            buf, spelled, table, inner, words, extra, token, DATED_BINARY, sizes, features, dated, dimensions, unknown
        )
    if kind_of(words, token) == ARRAY and extra[token] == token + 1:
        _put(sizes, features, BINARY, token, 0, 0, 0)
        return OK, 0
    if not _is_text(words, token):
        return NOT_TEXT, token
    _put(sizes, features, BINARY, token, 1, 0, 0)
    return OK, 0


@njit(cache=True, nogil=True)
def _dense(buf, spelled, table, inner, words, extra, token, sizes, features, dated, dimensions, unknown):
    if _is_dated(words, token):
        return _dated(
            buf, spelled, table, inner, words, extra, token, DATED_NUMBERS, sizes, features, dated, dimensions, unknown
        )
    code, blame, count, depth = _measure(inner, words, extra, token, sizes, dimensions)
    if code != OK:
        return code, blame
    _put(sizes, features, NUMBERS, token, count, depth, sizes[NUM_DIMENSIONS])
    if depth > 1 and count > 0:
        sizes[NUM_DIMENSIONS] += depth
    return OK, 0


@njit(cache=True, nogil=True)
def _measure(inner, words, extra, token, sizes, dimensions):
    """Measure a scalar (one value in one dimension) or a list: ``(code, token, number of values, number of dimensions)``.

    The lengths of a nested list stand in ``dimensions`` from the number that ``sizes`` says, not counted there yet.
    """
    kind = kind_of(words, token)
    if kind == ARRAY:
        return OK, 0, extra[token] - token - 1, 1
    if kind != NESTED:
        return NOT_FEATURE if kind == OBJECT else OK, token, 1, 1
    first = sizes[NUM_DIMENSIONS]
    depth = 0
    count = 1
    at = token
    while ARRAY <= kind_of(words, at) <= NESTED:
        length = _num_elements(words, extra, at)
        dimensions[first + depth] = length
        depth += 1
        count *= length
        if length == 0:
            break
        at += 1
    if depth > MAX_DIMENSIONS:
        return TOO_MANY_DIMENSIONS, token, 0, 0
    level = 0
    for at in range(token, extra[token]):
        while level > 0 and at >= inner[_NUM_NAMES + level - 1]:
            level -= 1
        kind = kind_of(words, at)
        if kind == OBJECT:
            return NOT_FEATURE, at, 0, 0
        is_list = ARRAY <= kind <= NESTED
        if is_list != (level < depth) or (is_list and _num_elements(words, extra, at) != dimensions[first + level]):
            return UNEVEN, at, 0, 0
        if is_list:
            inner[_NUM_NAMES + level] = extra[at]
            level += 1
    return OK, 0, count, depth


@njit(cache=True, nogil=True)
def _num_elements(words, extra, token):
    if kind_of(words, token) == ARRAY:
        return extra[token] - token - 1
    count = 0
    inner = token + 1
    while inner < extra[token]:
        count += 1
        inner = after(words, extra, inner)
    return count


@njit(cache=True, nogil=True)
def _sparse(buf, spelled, table, inner, words, extra, token, sizes, features, dimensions, unknown):
    if _is_dated(words, token):
        return DATED_SPARSE, token
    if kind_of(words, token) != OBJECT:
        return NOT_SPARSE, token
    code, blame, mask = _members(buf, spelled, table, words, extra, token, _SPARSE_NAMES, sizes, unknown, inner)
    if code != OK:
        return code, blame
    if mask != _SPARSE_NAMES:
        return NOT_SPARSE, token
    coordinates, values = inner[KEY_COORDINATES], inner[KEY_VALUES]
    if not ARRAY <= kind_of(words, coordinates) <= NESTED:
        return NOT_COORDINATES, coordinates
    if kind_of(words, values) == NESTED or kind_of(words, values) == OBJECT:
        return NOT_FLAT, values
    count = extra[values] - values - 1 if kind_of(words, values) == ARRAY else 1
    code, blame, num_coordinates, depth = _measure(inner, words, extra, coordinates, sizes, dimensions)
    if code != OK:
        return code, blame
    if depth > 2:
        return NOT_COORDINATES, coordinates
    width = dimensions[sizes[NUM_DIMENSIONS] + 1] if depth == 2 else 0
    if num_coordinates != count * max(width, 1):
        return MISMATCH, values
    _put(sizes, features, SPARSE, values, count, width, coordinates)
    return OK, 0


@njit(cache=True, nogil=True)
def _dated(buf, spelled, table, inner, words, extra, token, family, sizes, features, dated, dimensions, unknown):
    """Read the dates of a temporal feature's entries and measure their values."""
    first = sizes[NUM_DATED]
    entry = token + 1
    while entry < extra[token]:
        if kind_of(words, entry) != OBJECT:
            return NOT_DATED, entry
        code, blame, mask = _members(buf, spelled, table, words, extra, entry, _DATED_NAMES, sizes, unknown, inner)
        if code != OK:
            return code, blame
        if not mask >> KEY_VALUES & 1 or not mask >> KEY_CREATED_AT & 1:
            return NOT_DATED, entry
        row = sizes[NUM_DATED]
        code, name, dated[row, START], dated[row, END], _ = _times(words, extra, mask, inner)
        if code != OK:
            return code, inner[name]
        values = inner[KEY_VALUES]
        count = 0
        if family == DATED_NUMBERS:
            code, blame, count, _ = _measure(inner, words, extra, values, sizes, dimensions)
            if code != OK:
                return code, blame
        elif not _is_text(words, values):
            return NOT_TEXT, values
        dated[row, DATED_TOKEN] = values
        dated[row, DATED_COUNT] = count
        sizes[NUM_DATED] = row + 1
        entry = after(words, extra, entry)
    _put(sizes, features, family, first, sizes[NUM_DATED] - first, 0, 0)
    return OK, 0
