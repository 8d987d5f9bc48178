"""Graphs whose arrays lie on a device: rows of edges, transposes, orders, relabeling, sorted keys, ranks and partitions.

Arrays come from anyone, through ``__cuda_array_interface__`` (``as_resident``); what is returned has it, too, and is there once
the room is finished: one upload serves CSR, CSC, degrees, order and split. IDs are int32 or int64, at least 0 and in range: the
caller checks, ``find_limits`` helps. There are less than 2^31 edges, and at most 2^32 nodes a side. Results are the CPU's,
bit for bit; ``room`` holds what is needed beside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphprep.kernels.cuda import elements, rows
from graphprep.kernels.cuda.frontend import blocks_for, cuda, launch
from graphprep.kernels.cuda.radix import sort_pairs
from graphprep.kernels.cuda.scan import exclusive_scan
from graphprep.kernels.cuda.slots import Room
from graphprep.kernels.edges import WORD_BITS, bits_below

_HALF_WORD = 32


@dataclass(frozen=True)
class ResidentRows:
    """Rows on a device: ``indptr`` int64[n + 1], ``indices`` and ``edge_ids`` int32[m] or int64[m]; None: there are no IDs."""

    indptr: Any
    indices: Any
    edge_ids: Any = None


def as_resident(array: Any) -> Any:
    """Return an array of a device as Numba's; it is not copied."""
    return array if getattr(array, "__cuda_ndarray__", False) else cuda.as_cuda_array(array)


def find_limits(room: Room, ids: Any) -> tuple[int, int]:
    """Return the lowest and the highest ID of int32[n] or int64[n], (0, -1) where there is none."""
    if not ids.size:
        return 0, -1
    blocks = blocks_for(ids.size)
    found, host = [room.take(name, blocks, np.int64) for name in ("lows", "highs")], np.empty((2, blocks), np.int64)
    launch(rows.find_limits, blocks, room.stream, ids, *found)
    for there, here in zip(found, host, strict=True):
        room.download(there, here)
    room.finish()
    return int(host[0].min()), int(host[1].max())


def build_rows(
    room: Room,
    owners: Any,
    others: Any,
    num_rows: int,
    num_others: int,
    *,
    ids: Any = None,
    with_ids: bool = True,
    sort_neighbors: bool = False,
    out: ResidentRows | None = None,
) -> ResidentRows:
    """Build rows of edges; in a row they keep their order, or ascend by neighbour, ties in order.

    Edge IDs are ``ids``, None: their positions. ``out``: arrays as they would be returned, to be filled: where many are built,
    for taking device memory makes everything wait.
    """
    size, blocks = owners.size, blocks_for(owners.size)
    row_bits, other_bits = bits_below(num_rows), max(1, bits_below(num_others))
    id_bits = bits_below(size) if with_ids else 0
    heads = _narrow(room, "heads", owners), _narrow(room, "tails", others)
    new = out or empty_rows(num_rows, num_others, size, with_ids=with_ids)
    if row_bits + other_bits + id_bits <= WORD_BITS:
        words = room.take("words", size, np.uint64)
        launch(elements.pack_edges, blocks, room.stream, *heads, room.none(np.uint32), 0, other_bits, id_bits, words)
        row_at = other_bits + id_bits
        words, _ = sort_pairs(room, words, room.none(np.uint8), (id_bits if sort_neighbors else row_at, row_at + row_bits))
        fill_indptr(room, words, row_at, new.indptr)
        _unpack(room, words, other_bits, id_bits, new)
    elif sort_neighbors:
        words, order = room.take("words", size, np.uint64), _positions(room, size)
        launch(elements.pack_edges, blocks, room.stream, *heads, room.none(np.uint32), 0, other_bits, 0, words)
        words, order = sort_pairs(room, words, order, (0, other_bits + row_bits))
        fill_indptr(room, words, other_bits, new.indptr)
        _unpack(room, words, other_bits, 0, ResidentRows(new.indptr, new.indices))
        if with_ids:
            _copy(room, order, new.edge_ids)
    else:
        pairs = room.take("pairs", size, np.uint64)
        launch(elements.pair_up, blocks, room.stream, heads[1], pairs)
        keys, pairs = sort_pairs(room, heads[0], pairs, (0, row_bits))
        fill_indptr(room, keys, 0, new.indptr)
        _unpack(room, pairs, _HALF_WORD, _HALF_WORD, new)
    if ids is None or not with_ids:
        return new
    edge_ids = cuda.device_array(size, ids.dtype)
    launch(elements.gather, blocks, room.stream, _unsigned(ids), _unsigned(new.edge_ids), _unsigned(edge_ids))
    return ResidentRows(new.indptr, new.indices, edge_ids)


def empty_rows(num_rows: int, num_others: int, size: int, *, with_ids: bool = True) -> ResidentRows:
    """Return arrays for the rows of so many edges, not filled."""
    return ResidentRows(_new(num_rows + 1, 2**40), _new(size, num_others), _new(size, size) if with_ids else None)


def fill_indptr(room: Room, keys: Any, shift: int, indptr: Any) -> None:
    """Write where each row of sorted keys begins; a key's row is what is left without ``shift`` low bits."""
    launch(rows.fill_value, blocks_for(indptr.size), room.stream, indptr, -1)
    launch(rows.find_starts, blocks_for(keys.size + 1), room.stream, keys, shift, indptr)
    launch(rows.fill_gaps, blocks_for(indptr.size), room.stream, keys, shift, indptr)


def transpose(room: Room, old: ResidentRows, num_others: int) -> ResidentRows:
    """Turn rows into those of the neighbours; in a row, entries stand in the order of the old rows."""
    owners = room.take("owners", old.indices.size, np.uint32)
    launch(rows.expand_rows, blocks_for(owners.size), room.stream, old.indptr, owners)
    return build_rows(room, old.indices, owners, num_others, old.indptr.size - 1, ids=old.edge_ids)


def sort_rows(room: Room, old: ResidentRows, num_others: int) -> ResidentRows:
    """Sort every row by neighbour; equal ones keep their order."""
    owners, num_rows = room.take("owners", old.indices.size, np.uint32), old.indptr.size - 1
    launch(rows.expand_rows, blocks_for(owners.size), room.stream, old.indptr, owners)
    options = {"ids": old.edge_ids, "with_ids": old.edge_ids is not None}
    return build_rows(room, owners, old.indices, num_rows, num_others, sort_neighbors=True, **options)


def count_degrees(room: Room, indptr: Any) -> Any:
    """Return how many entries each row has: int64[n]."""
    degrees = _new(indptr.size - 1, 2**40)
    launch(rows.count_rows, blocks_for(degrees.size), room.stream, indptr, degrees)
    return degrees


def order_descending(room: Room, values: Any) -> Any:
    """Return the positions of ``values`` (int64[n], at least 0) in the order of descending values, ties ascending."""
    highest = max(0, find_limits(room, values)[1])
    keys = room.take("keys", values.size, np.uint32 if highest < 2**_HALF_WORD else np.uint64)
    launch(elements.descending_keys, blocks_for(keys.size), room.stream, values, highest, keys)
    _, there = sort_pairs(room, keys, _positions(room, keys.size), (0, highest.bit_length()))
    order = _new(values.size, values.size)
    _copy(room, there, order)
    return order


def invert(room: Room, order: Any) -> Any:
    """Return where each number of ``order`` stands."""
    inverse = cuda.device_array(order.size, order.dtype)
    launch(elements.invert, blocks_for(order.size), room.stream, _unsigned(order), _unsigned(inverse))
    return inverse


def relabel_rows(room: Room, old: ResidentRows, old_rows: Any, new_ids: Any) -> ResidentRows:
    """Put rows in a new order, row r is ``old_rows[r]``, and give neighbours new IDs: ``new_ids`` by old ID; one dtype."""
    size, num_rows = old.indices.size, old_rows.size
    indptr, lengths = _new(num_rows + 1, 2**40), room.take("lengths", num_rows + 1, np.int64)
    launch(rows.fill_value, 1, room.stream, lengths[num_rows:], 0)
    launch(elements.find_lengths, blocks_for(num_rows), room.stream, old.indptr, _unsigned(old_rows), lengths[:num_rows])
    exclusive_scan(room, lengths, indptr)
    blocks, sources = blocks_for(size), room.take("sources", size, np.uint32)
    launch(elements.find_sources, blocks, room.stream, old.indptr, _unsigned(old_rows), indptr, sources)
    moved, indices = room.take("moved", size, old.indices.dtype), cuda.device_array(size, new_ids.dtype)
    launch(elements.gather, blocks, room.stream, _unsigned(old.indices), sources, _unsigned(moved))
    launch(elements.gather, blocks, room.stream, _unsigned(new_ids), _unsigned(moved), _unsigned(indices))
    if old.edge_ids is None:
        return ResidentRows(indptr, indices)
    ids = cuda.device_array(size, old.edge_ids.dtype)
    launch(elements.gather, blocks, room.stream, _unsigned(old.edge_ids), sources, _unsigned(ids))
    return ResidentRows(indptr, indices, ids)


def sort_edges(room: Room, owners: Any, others: Any, num_rows: int, num_others: int) -> tuple[Any, Any, Any]:
    """Return edges in ascending order, and where each stood; equal ones keep their order."""
    words, order, other_bits = _sorted_words(room, owners, others, num_rows, num_others)
    chosen = _new(words.size, words.size)
    _copy(room, order, chosen)
    return *_ends_of(room, words, other_bits, num_rows, num_others), chosen


def drop_repeats(room: Room, owners: Any, others: Any, num_rows: int, num_others: int) -> tuple[Any, Any, Any]:
    """Return the distinct edges in ascending order, and the first position of each."""
    words, order, other_bits = _sorted_words(room, owners, others, num_rows, num_others)
    places, count = _number_runs(room, words)
    kept, firsts = room.take("kept", count, np.uint64), _new(count, words.size)
    launch(rows.take_firsts, blocks_for(words.size), room.stream, words, order, places, kept, _unsigned(firsts))
    return *_ends_of(room, kept, other_bits, num_rows, num_others), firsts


def sort_keys(room: Room, keys: Any) -> Any:
    """Return integers in ascending order. These may be uint32 and uint64, too, and below 0."""
    out = cuda.device_array(keys.size, keys.dtype)
    ordered, _, flipped = _sorted_bits(room, keys, room.none(np.uint8))
    _copy_bits(room, ordered, flipped, out)
    return out


def rank_ids(room: Room, ids: Any) -> tuple[Any, Any]:
    """Return the distinct integers in ascending order, and the rank of each. These may be as in ``sort_keys``."""
    size, blocks = ids.size, blocks_for(ids.size)
    keys, order, flipped = _sorted_bits(room, ids, _positions(room, size))
    places, count = _number_runs(room, keys)
    kept, none, distinct = room.take("kept", count, keys.dtype), room.none(np.uint8), cuda.device_array(count, ids.dtype)
    launch(rows.take_firsts, blocks, room.stream, keys, none, places, kept, none)
    _copy_bits(room, kept, flipped, distinct)
    stood, ranks = room.take("stood", size, np.uint32), _new(size, count)
    launch(elements.invert, blocks, room.stream, order, stood)
    wide = room.take("words", size, np.uint64)
    launch(elements.gather, blocks, room.stream, places.view(np.uint64), stood, wide)
    launch(elements.shift_keys, blocks, room.stream, wide, 0, _unsigned(ranks))
    return distinct, ranks


def split(room: Room, parts: Any, num_parts: int) -> tuple[Any, Any]:
    """Return where each partition begins (int64[num_parts + 1]), and the positions of its items, ascending.

    ``parts``: int32[n] or int64[n], each item's partition.
    """
    offsets, chosen = _new(num_parts + 1, 2**40), _new(parts.size, parts.size)
    keys, order = sort_pairs(room, _narrow(room, "heads", parts), _positions(room, parts.size), (0, bits_below(num_parts)))
    fill_indptr(room, keys, 0, offsets)
    _copy(room, order, chosen)
    return offsets, chosen


def _new(size: int, count: int) -> Any:
    """Return a device array of integers below ``count``."""
    return cuda.device_array(size, np.int32 if count <= 2**31 else np.int64)


def _unsigned(array: Any) -> Any:
    """Return the bits of IDs as the unsigned integers that kernels take."""
    return array.view(np.uint32 if array.dtype.itemsize == 4 else np.uint64)


def _narrow(room: Room, name: str, ids: Any) -> Any:
    """Return a copy of IDs in 32 bits."""
    copy = room.take(name, ids.size, np.uint32)
    launch(elements.shift_keys, blocks_for(ids.size), room.stream, _unsigned(ids), 0, copy)
    return copy


def _copy(room: Room, values: Any, out: Any) -> None:
    """Copy positions of 32 bits to ``out``."""
    launch(elements.shift_keys, blocks_for(values.size), room.stream, values, 0, _unsigned(out))


def _copy_bits(room: Room, keys: Any, flipped: int | None, out: Any) -> None:
    """Copy keys of ``_sorted_bits`` to integers as they were."""
    if keys.size:
        bits = _unsigned(out)
        bits.copy_to_device(keys, stream=room.stream)
        if flipped is not None:
            launch(elements.flip_bit, blocks_for(keys.size), room.stream, bits, flipped)


def _sorted_bits(room: Room, values: Any, payload: Any) -> tuple[Any, Any, int | None]:
    """Return integers as keys in ascending order, the payload that goes along, and which bit is flipped, if one is.

    High bits that all of them share are not looked at.
    """
    keys, top = room.take("keys", values.size, _unsigned(values).dtype), 8 * values.dtype.itemsize - 1
    if not values.size:
        return keys, payload, None
    keys.copy_to_device(_unsigned(values), stream=room.stream)
    low, high = find_limits(room, values.view(np.int32 if top < _HALF_WORD else np.int64))
    is_mixed = low < 0 <= high
    flipped = top if is_mixed and values.dtype.kind == "i" else None
    if flipped is not None:
        launch(elements.flip_bit, blocks_for(keys.size), room.stream, keys, flipped)
    keys, payload = sort_pairs(room, keys, payload, (0, top + 1 if is_mixed else (low ^ high).bit_length()))
    return keys, payload, flipped


def _sorted_words(room: Room, owners: Any, others: Any, num_rows: int, num_others: int) -> tuple[Any, Any, int]:
    """Return both ends of edges as words in ascending order, where each stood (uint32), and the bits of the other ends."""
    words, other_bits = room.take("words", owners.size, np.uint64), max(1, bits_below(num_others))
    heads = _narrow(room, "heads", owners), _narrow(room, "tails", others)
    none = room.none(np.uint32)
    launch(elements.pack_edges, blocks_for(words.size), room.stream, *heads, none, 0, other_bits, 0, words)
    return *sort_pairs(room, words, _positions(room, words.size), (0, other_bits + bits_below(num_rows))), other_bits


def _ends_of(room: Room, words: Any, other_bits: int, num_rows: int, num_others: int) -> tuple[Any, Any]:
    """Take words of both ends apart."""
    ends, blocks = (_new(words.size, num_rows), _new(words.size, num_others)), blocks_for(words.size)
    for at, end in zip((other_bits, 0), ends, strict=True):
        none = room.none(_unsigned(end).dtype)
        launch(elements.unpack_words, blocks, room.stream, words, other_bits, 0, *_one_of(at, end, none))
    return ends


def _number_runs(room: Room, keys: Any) -> tuple[Any, int]:
    """Return the number of the run of equal keys that each sorted key is in (int64), and how many runs there are."""
    places, total = room.take("places", keys.size + 1, np.int64), np.empty(1, np.int64)
    launch(rows.fill_value, 1, room.stream, places[keys.size :], 0)
    if keys.size:
        launch(rows.mark_lasts, blocks_for(keys.size), room.stream, keys, places[: keys.size])
    exclusive_scan(room, places, places)
    room.download(places[keys.size :], total)
    room.finish()
    return places[: keys.size], int(total[0])


def _positions(room: Room, size: int) -> Any:
    order = room.take("order", size, np.uint32)
    launch(rows.count_up, blocks_for(size), room.stream, order)
    return order


def _unpack(room: Room, words: Any, other_bits: int, id_bits: int, new: ResidentRows) -> None:
    others = _unsigned(new.indices)
    ids = room.none(np.uint32) if new.edge_ids is None else _unsigned(new.edge_ids)
    none = room.none(others.dtype)
    launch(elements.unpack_words, blocks_for(words.size), room.stream, words, other_bits, id_bits, none, others, ids)


def _one_of(at: int, end: Any, none: Any) -> tuple[Any, Any, Any]:
    """Return what ``unpack_words`` fills: the rows where their bits lie above others, else these."""
    return (_unsigned(end), none, none) if at else (none, _unsigned(end), none)
