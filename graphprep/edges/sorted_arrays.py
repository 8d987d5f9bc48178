"""Sort, rank and deduplicate arrays in memory, on all cores. The output is the same for any number of threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphprep.edges.array_rows import CHUNK, count_parts, count_threads, even_pieces, index_dtype, run_tasks
from graphprep.edges.arrays import as_ends, as_ids, limits
from graphprep.edges.device.find import compute_there, find_kernels
from graphprep.engine.ledger import scratch_array
from graphprep.kernels.cpu.ids.rank_ids import ScatteredIds, collect_ranks, number_bucket, rank_bucket, scatter_ids
from graphprep.kernels.edges import Kernels, ScatteredKeys, as_input, bits_below
from graphprep.model.errors import UsageError

Ints = NDArray[Any]
Keys = NDArray[np.uint64]

_BUCKET_BITS = 16  # of 64 k keys: twice that fits L2
_MOST_BUCKETS_BITS = 10  # see ``partition``
_LARGE_BUCKET = 1 << 21  # keys: beyond, and far beyond the others, a bucket is scattered again, by all threads
_MOST_DEPTH = 8


def sort_keys(keys: ArrayLike, *, threads: int | None = None, device: str | None = None) -> Ints:
    """Return integers in ascending order: [m], of the same type."""
    if (there := compute_there(lambda graphs: graphs.sort_keys(keys), (keys,), device)) is not None:
        return there  # type: ignore[no-any-return]
    array, as_bits, low, high, threads = *_as_bits(keys, "keys"), count_threads(threads)
    sorted_bits, _ = _sort(find_kernels(device), as_bits, low, high, with_order=False, threads=threads)
    return _like(sorted_bits, array)


def sort_edges(
    src: ArrayLike, dst: ArrayLike, *, threads: int | None = None, device: str | None = None
) -> tuple[Ints, Ints, Ints]:
    """Sort edges by (source, destination).

    ``src`` and ``dst``: integers [m], 0 or more. Returns (sources, destinations, order): ``order``, int32[m] or int64[m], is
    where each edge stood; equal edges stay in order.
    """
    there = compute_there(lambda graphs: graphs.sort_edges(src, dst, drop_repeats=False), (src, dst), device)
    if there is not None:
        return there  # type: ignore[no-any-return]
    kernels, threads = find_kernels(device), count_threads(threads)
    pairs = _pack(kernels, src, dst, threads)
    keys, order = _sort(kernels, pairs.keys, 0, pairs.high, with_order=True, threads=threads)
    return *_unpack(pairs, keys, threads), order


def dedup_edges(
    src: ArrayLike, dst: ArrayLike, *, threads: int | None = None, device: str | None = None
) -> tuple[Ints, Ints, Ints]:
    """Keep one of equal edges, the first, and sort them by (source, destination).

    Returns (sources, destinations, first): ``first``, int32[k] or int64[k], is where each stood first.
    """
    there = compute_there(lambda graphs: graphs.sort_edges(src, dst, drop_repeats=True), (src, dst), device)
    if there is not None:
        return there  # type: ignore[no-any-return]
    kernels, threads = find_kernels(device), count_threads(threads)
    pairs = _pack(kernels, src, dst, threads)
    keys, order = _sort(kernels, pairs.keys, 0, pairs.high, with_order=True, threads=threads)
    firsts = _first_of_equal(kernels, keys, threads)
    return *_unpack(pairs, keys[firsts], threads), order[firsts]


def rank_ids(ids: ArrayLike, *, threads: int | None = None, device: str | None = None) -> tuple[Ints, Ints]:
    """Give any integers the ranks 0..k-1 of their values.

    Returns (distinct [k] of the same type, ascending; ranks [m], int32 up to 2^31 distinct IDs, else int64), so that
    ``distinct[ranks]`` is ``ids``. Takes no search for each ID.
    """
    if (there := compute_there(lambda graphs: graphs.rank_ids(ids), (ids,), device)) is not None:
        return there  # type: ignore[no-any-return]
    return _rank(find_kernels(device), ids, count_threads(threads))


def split_by_partition(
    parts: ArrayLike, num_parts: int | None = None, *, threads: int | None = None, device: str | None = None
) -> tuple[Ints, Ints]:
    """Group items by their partition.

    ``parts``: integers [m], the partition of each item; ``num_parts``: how many there are, None: the highest and one. Returns
    (offsets int64[num_parts + 1], order [m], int32 up to 2^31 items, else int64): the items of partition p are
    ``order[offsets[p]:offsets[p + 1]]``, ascending. Raises DataError for a partition out of range.
    """
    there = compute_there(lambda graphs: graphs.split_by_partition(parts, num_parts), (parts,), device)
    if there is not None:
        return there  # type: ignore[no-any-return]
    kernels, threads, ids = find_kernels(device), count_threads(threads), as_ids(parts, "parts")
    count = count_parts(*limits(kernels, ids, threads), num_parts)
    _, bits, low, high = _as_bits(ids, "parts")
    keys, order = _sort(kernels, bits, low, high, with_order=True, threads=threads)
    return np.searchsorted(keys, np.arange(count + 1, dtype=np.uint64)), order


def _rank(kernels: Kernels, ids: ArrayLike, threads: int) -> tuple[Ints, Ints]:
    array, values, low, high = _as_bits(ids, "ids")
    hash_bits = _bucket_bits(values.size)
    scattered = _scatter_ids(values, hash_bits, threads)
    sizes = np.diff(scattered.starts[:, :-1].astype(np.int64).sum(axis=0))
    found: list[Keys] = [values[:0]] * sizes.size

    def number(bucket: int) -> None:
        found[bucket] = number_bucket(scattered, bucket, int(sizes[bucket]))

    run_tasks(number, range(sizes.size), threads)
    offsets = np.concatenate([[0], np.cumsum([each.size for each in found])])
    distinct, order = _sort(kernels, np.concatenate(found), low, high, with_order=True, threads=threads)
    rank_of = np.empty(distinct.size, index_dtype(distinct.size))
    kernels.invert(as_input(order), rank_of)

    def rank(bucket: int) -> None:
        rank_bucket(scattered, bucket, rank_of[offsets[bucket] : offsets[bucket + 1]])

    run_tasks(rank, range(sizes.size), threads)
    ranks = np.empty(values.size, rank_of.dtype)

    def collect(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        collect_ranks(values[at], hash_bits, scattered.ids[at], scattered.starts[chunk], ranks[at])

    run_tasks(collect, range(len(scattered.starts)), threads)
    return _like(distinct, array), ranks


@dataclass(frozen=True)
class _Pairs:
    """Edges as keys, ``src << dst_bits | dst``; of IDs too wide for that, their ranks among ``distinct``."""

    keys: Keys
    dst_bits: int
    high: int
    dtype: Any
    distinct: Ints | None


def _as_bits(values: ArrayLike, name: str) -> tuple[Ints, Keys, int, int]:
    """Return integers as an array, as bits of int64 or uint64, and the lowest and highest as such bits."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        found = f"{array.dtype} of shape {array.shape}"
        raise UsageError(f"{name} must be integers in one dimension, found {found}", fix="pass an array of int64 or uint64")
    wide = array.astype(np.uint64 if array.dtype.kind == "u" else np.int64, copy=False)
    if not array.size:
        return array, as_input(wide.view(np.uint64)), 0, 0
    low, high = (int(value) & (2**64 - 1) for value in (wide.min(), wide.max()))
    return array, as_input(np.ascontiguousarray(wide).view(np.uint64)), low, high


def _like(values: Keys, array: Ints) -> Ints:
    """Return bits as integers of the type that was given."""
    wide = values if array.dtype.kind == "u" else values.view(np.int64)
    return wide.astype(array.dtype if array.dtype.kind in "iu" else np.int64, copy=False)


def _bucket_bits(size: int) -> int:
    return min(_MOST_BUCKETS_BITS, max(0, bits_below(size) - _BUCKET_BITS))


def _sort(
    kernels: Kernels, values: Keys, low: int, high: int, *, with_order: bool, threads: int, depth: int = 0
) -> tuple[Keys, Ints]:
    """Sort values less ``low``, as integers of 64 bits without a sign. Returns them and, if wanted, where they stood."""
    with scratch_array(values.size, np.uint64) as room:
        scattered, offsets = _scatter(kernels, values, low, high, room, with_order, threads)
        return _sort_scattered(kernels, scattered, offsets, threads, depth)


def _sort_scattered(
    kernels: Kernels, scattered: ScatteredKeys, offsets: NDArray[np.int64], threads: int, depth: int
) -> tuple[Keys, Ints]:
    """Sort every bucket."""
    keys, order = np.empty_like(scattered.keys), np.empty_like(scattered.payload)
    sizes = np.diff(offsets)
    large = sizes > max(_LARGE_BUCKET, 8 * keys.size // sizes.size)
    with_order = order.size > 0
    if depth == _MOST_DEPTH or sizes.size == 1:
        large[:] = False

    def sort(piece: tuple[int, int]) -> None:
        buckets = [bucket for bucket in range(*piece) if sizes[bucket] and not large[bucket]]
        kernels.sort_buckets(scattered, buckets, offsets, keys, order)

    run_tasks(sort, even_pieces(offsets, threads), threads)
    for bucket in np.flatnonzero(large).tolist():
        at = slice(offsets[bucket], offsets[bucket + 1])
        some, their_order = keys[at], order[at]
        kernels.gather_bucket(scattered, bucket, some, their_order)
        low, high = int(some.min()), int(some.max())
        again, order_again = _sort(kernels, as_input(some), low, high, with_order=with_order, threads=threads, depth=depth + 1)
        np.add(again, np.uint64(scattered.low), out=some)
        if with_order:
            their_order[:] = their_order[order_again]
    return keys, order


def _scatter(
    kernels: Kernels, values: Keys, low: int, high: int, room: Keys, with_order: bool, threads: int
) -> tuple[ScatteredKeys, NDArray[np.int64]]:
    """Scatter keys to buckets by their highest bits, into ``room``. Returns them, and where buckets begin in the output."""
    span = (high - low) & (2**64 - 1)
    shift = min(63, max(0, span.bit_length() - _bucket_bits(values.size)))  # no processor shifts by 64
    num_buckets = (span >> shift) + 1
    num_chunks = -(-values.size // CHUNK)
    payload = np.empty(values.size if with_order else 0, index_dtype(values.size))
    starts = np.empty((num_chunks, num_buckets + 2), np.int32)
    chunk_at = np.arange(num_chunks, dtype=np.int64) * CHUNK
    scattered = ScatteredKeys(low, room, payload, chunk_at, starts)

    def scatter(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        kernels.scatter_keys(values[at], chunk * CHUNK, low, shift, scattered.keys[at], payload[at], starts[chunk])

    run_tasks(scatter, range(num_chunks), threads)
    return scattered, starts[:, :-1].astype(np.int64).sum(axis=0)


def _scatter_ids(values: Keys, hash_bits: int, threads: int) -> ScatteredIds:
    num_chunks = -(-values.size // CHUNK)
    starts = np.empty((num_chunks, (1 << hash_bits) + 2), np.int32)
    scattered = ScatteredIds(np.empty(values.size, np.uint64), hash_bits, np.arange(num_chunks, dtype=np.int64) * CHUNK, starts)

    def scatter(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        scatter_ids(values[at], hash_bits, scattered.ids[at], starts[chunk])

    run_tasks(scatter, range(num_chunks), threads)
    return scattered


def _pack(kernels: Kernels, src: ArrayLike, dst: ArrayLike, threads: int) -> _Pairs:
    """Make one key of both ends."""
    ends, distinct = as_ends(src, dst), None
    dtype = ends[0].dtype
    (low_src, high_src), (low_dst, high_dst) = (limits(kernels, end, threads) for end in ends)
    if low_src < 0 or low_dst < 0 or bits_below(high_src + 1) + bits_below(high_dst + 1) > 64:
        distinct, ranks = _rank(kernels, np.concatenate(ends), threads)
        ends = as_input(ranks[: ends[0].size]), as_input(ranks[ends[0].size :])
        high_src = high_dst = distinct.size - 1
    dst_bits = bits_below(high_dst + 1)
    keys = np.empty(ends[0].size, np.uint64)

    def pack(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        np.left_shift(ends[0][at], np.uint64(dst_bits), out=keys[at], dtype=np.uint64, casting="unsafe")
        keys[at] |= ends[1][at].astype(np.uint64)

    run_tasks(pack, range(-(-keys.size // CHUNK)), threads)
    high = (max(high_src, 0) << dst_bits) | max(high_dst, 0)
    return _Pairs(as_input(keys), dst_bits, high, dtype, distinct)


def _unpack(pairs: _Pairs, keys: Keys, threads: int) -> tuple[Ints, Ints]:
    """Return the ends of keys."""
    src, dst = np.empty(keys.size, pairs.dtype), np.empty(keys.size, pairs.dtype)
    mask = np.uint64((1 << pairs.dst_bits) - 1)

    def unpack(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        ends = keys[at] >> np.uint64(pairs.dst_bits), keys[at] & mask
        src[at], dst[at] = ends if pairs.distinct is None else (pairs.distinct[ends[0]], pairs.distinct[ends[1]])

    run_tasks(unpack, range(-(-keys.size // CHUNK)), threads)
    return src, dst


def _first_of_equal(kernels: Kernels, keys: Keys, threads: int) -> NDArray[np.int64]:
    """Return where sorted keys differ from the one before."""
    found: list[NDArray[np.int64]] = [np.zeros(0, np.int64)] * -(-keys.size // CHUNK)

    def find(chunk: int) -> None:
        start = chunk * CHUNK
        some = as_input(keys[start : start + CHUNK])
        firsts = np.empty(some.size, np.int64)
        count = kernels.first_of_runs(some, int(keys[start - 1]) if start else None, firsts)
        found[chunk] = firsts[:count] + start

    run_tasks(find, range(len(found)), threads)
    return np.concatenate(found) if found else np.zeros(0, np.int64)
