"""What ``graphprep.kernels.edges.Kernels`` promises, of every device: against loops, NumPy and SciPy, never against a twin.

On the CPU, on a CUDA device where there is one, and on CUDA's simulator, in a process of its own: ``simulated.py pytest`` runs
this file there. With GRAPHPREP_REQUIRE_GPU=1 a device that is missing is a failure.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from devices import check_device, is_simulated

from graphprep.kernels.cpu.edges import kernels as cpu_kernels
from graphprep.kernels.edges import (
    Packing,
    Relabeling,
    Rows,
    ScatteredKeys,
    Segments,
    bits_below,
    one_segment,
    pack_bits,
)
from graphprep.model.buffers import hold_buffers

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
DEVICES = [CUDA] if is_simulated() else ["cpu", CUDA]
TILE = 48 if is_simulated() else 1792  # what a block sorts at a time: one item less or more are other ways through the kernels
SIZES = [0, 1, TILE, 3 * TILE + 5]
LAYOUTS = [(), ("id",), ("key",), ("id", "key", "edge_row")]


@pytest.fixture(params=DEVICES)
def kernels(request, record_property):
    check_device(request.param, "kernels", record_property)
    return cpu_kernels if request.param == "cpu" else make_cuda()


@pytest.fixture(params=[CUDA])
def small_kernels(request, record_property, monkeypatch):
    """Kernels that have room for little: what they are given does not fit. The CPU takes what memory it needs."""
    check_device(request.param, "kernels", record_property)
    return make_cuda(cap_bytes=5000, count=1)


def make_cuda(**options):
    from graphprep.kernels.cuda.kernels import make_kernels
    from graphprep.kernels.cuda.slots import Slots

    return make_kernels(Slots(**options), cpu_kernels)


def random(seed: int):
    return np.random.default_rng(seed)


# ---- count


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("counted", [np.uint32, np.int64])
@pytest.mark.parametrize("size", SIZES)
def test_ids_are_counted(kernels, dtype, counted, size):
    ids = random(size).integers(0, 40, size).astype(dtype)
    counts = np.full(40, 3, counted)
    assert kernels.count_ids(ids, counts) == -1
    assert counts.tolist() == (3 + np.bincount(ids, minlength=40)).tolist()


@pytest.mark.parametrize("bad", [-1, 40, 2**31 - 1])
@pytest.mark.parametrize("at", [0, 7, TILE + 3])
def test_counting_ends_at_the_first_id_that_is_out_of_range(kernels, bad, at):
    ids = random(1).integers(0, 40, 2 * TILE).astype(np.int32)
    ids[[at, -1]] = bad
    counts = np.zeros(40, np.int64)
    assert kernels.count_ids(ids, counts) == at
    assert counts.tolist() == np.bincount(ids[:at], minlength=40).tolist()


@pytest.mark.parametrize("ids", [[], [5], [3, -2, 9], list(range(TILE + 2))])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_limits(kernels, ids, dtype):
    assert kernels.find_limits(np.array(ids, dtype)) == ((min(ids), max(ids)) if ids else (0, -1))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("highest", [0, 3, 2**32 - 1, 2**40])
def test_values_descend_and_ties_keep_their_order(kernels, size, highest):
    values = random(size).choice(np.unique([0, 1, highest // 2, highest]), size).astype(np.int64)
    order, spare = np.empty((2, size), np.int64)
    found = kernels.order_descending(values, order, spare)
    assert found.dtype == np.int64
    assert found.tolist() == sorted(range(size), key=lambda i: -values[i])


@pytest.mark.parametrize("rows", [[], [[]], [[1, 1]], [[1], [1]], [[1, 2], [], [2, 3, 3]], [[0, 1, 0]]])
def test_repeats_are_found_within_rows_alone(kernels, rows):
    counts = np.array([len(row) for row in rows], np.int64)
    others = np.array([value for row in rows for value in row], np.int32)
    assert kernels.has_repeats(counts, others) == any(a == b for row in rows for a, b in itertools.pairwise(row))


# ---- scatter


def words_of(rows, others, numbers, more, packing):
    """Pack edges with Python's integers."""
    mask = 2**64 - 1
    for row, other, number, behind in zip(rows, others, numbers, more, strict=True):
        if packing.id_bits:
            word = ((row << packing.other_bits | other) << packing.id_bits | number & (1 << packing.id_bits) - 1) & mask
            yield [word, *behind]
        else:
            yield [(row << packing.other_bits | other) & mask, number, *behind]


@pytest.mark.parametrize("dtype", [np.uint32, np.int64])
@pytest.mark.parametrize(("travels", "stated"), [((), False), ((), True), (("id",), False), (("id", "key", "edge_row"), True)])
@pytest.mark.parametrize("shift", [0, 9])
def test_edges_are_scattered_to_their_buckets_in_order(kernels, dtype, travels, stated, shift):
    rng, num_rows = random(shift), 300
    packing = Packing(20, 0 if "id" in travels else 28, travels)
    sizes = (TILE + 9, 0, 21)
    pieces = [(rng.integers(0, num_rows, size).astype(dtype), rng.integers(0, 2**20, size).astype(dtype)) for size in sizes]
    num_buckets = (num_rows - 1 >> shift) + 1
    starts = np.empty(num_buckets + 2, np.uint32)
    kernels.start_buckets([rows for rows, _ in pieces], shift, starts)
    num_more = packing.words - 1 - ("id" in travels)
    records, first, wanted = np.zeros((sum(sizes), packing.words), np.uint64), 0, []
    for rows, others in pieces:
        ids = rng.integers(0, 2**27, rows.size).astype(np.uint64) if stated else None
        more = rng.integers(0, 2**64, (rows.size, num_more), np.uint64) if num_more else None
        kernels.scatter_edges(rows, others, packing, shift, starts, records, first, ids, more)
        numbers = range(first, first + rows.size) if ids is None else ids.tolist()
        behind = [[]] * rows.size if more is None else more.tolist()
        words = words_of(rows.tolist(), others.tolist(), numbers, behind, packing)
        wanted += zip(rows.tolist(), words, strict=True)
        first += rows.size
    wanted.sort(key=lambda edge: edge[0] >> shift)
    assert records.tolist() == [word for _, word in wanted]
    borders = np.searchsorted([row >> shift for row, _ in wanted], np.arange(num_buckets + 1))
    assert starts[:-1].tolist() == borders.tolist()


def test_rows_may_lose_bits_that_their_bucket_tells(kernels):
    packing, shift = Packing(30, 30), 4  # four bits for the row
    rows = np.array([37, 5, 21, 33, 5], np.uint32)
    starts, records = np.empty(4 + 1, np.uint32), np.empty((5, 1), np.uint64)
    kernels.start_buckets([rows], shift, starts)
    kernels.scatter_edges(rows, np.arange(5, dtype=np.uint32), packing, shift, starts, records, 7)
    wanted = [(5, 1), (5, 4), (21, 2), (37, 0), (33, 3)]
    assert records.tolist() == [[((row & 15) << 30 | edge) << 30 | edge + 7] for row, edge in wanted]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(("travels", "stated"), [((), False), (("id",), True)])
@pytest.mark.parametrize(("first", "size"), [(0, 100), (13, 61), (100, 0)])
def test_entries_are_scattered_by_column(kernels, dtype, travels, stated, first, size):
    rng, shift = random(first), 2
    lengths = rng.integers(0, 9, 60)
    lengths[[3, 4, 5]] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = rng.integers(0, 30, size).astype(dtype)
    packing = Packing(20, 0 if travels else 20, travels)
    ids = rng.integers(0, 2**19, size).astype(dtype) if stated else None
    starts, records = np.empty(8 + 2, np.uint32), np.empty((size, packing.words), np.uint64)
    kernels.start_buckets([columns], shift, starts)
    kernels.scatter_entries(indptr, columns, first, packing, shift, starts, records, ids)
    rows = np.repeat(np.arange(60), lengths)[first : first + size].tolist()
    numbers = range(size) if ids is None else ids.tolist()
    words = words_of(columns.tolist(), rows, numbers, [[]] * size, packing)
    wanted = sorted(zip(columns.tolist(), words, strict=True), key=lambda edge: edge[0] >> shift)
    assert records.tolist() == [word for _, word in wanted]


@pytest.mark.parametrize("travels", [(), ("id",)])
def test_records_are_taken_apart(kernels, travels):
    rng, shift, packing = random(4), 3, Packing(12, 0 if travels else 30, travels)
    rows, others = np.sort(rng.integers(0, 40, 70)), rng.integers(0, 2**12, 70)
    ids = rng.permutation(70)
    records = np.array(list(words_of(rows.tolist(), others.tolist(), ids.tolist(), [[]] * 70, packing)), np.uint64)
    starts = np.searchsorted(rows >> shift, np.arange(6)).astype(np.uint32)
    found = np.empty((3, 70), np.uint64)
    kernels.unpack_edges(records, packing, shift, starts, *found)
    assert found.tolist() == [rows.tolist(), others.tolist(), ids.tolist()]
    if not travels:
        ends = np.empty((2, 70), np.uint32)
        kernels.gather_edges(records, packing, shift, starts, *ends)
        by_id = np.argsort(ids)
        assert ends.tolist() == [rows[by_id].tolist(), others[by_id].tolist()]
    counts = np.zeros(10, np.int64)
    kernels.count_rows(records[starts[2] : starts[4]], packing, 5, 17, counts)
    inside = rows[starts[2] : starts[4]]
    assert counts.tolist() == [int((inside == row).sum()) for row in range(17, 27)]


# ---- sort and place


@pytest.mark.parametrize("words", [1, 3])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("word", "low", "high"), [(0, 0, 6), (0, 58, 64), (0, 30, 41), (-1, 3, 5), (0, 9, 9)])
def test_sorting_records_by_some_bits_is_stable(kernels, words, size, word, low, high):
    records = random(size).integers(0, 2**64, (size, words), np.uint64)
    wanted = sorted(records.tolist(), key=lambda record: record[word] >> low & (1 << high - low) - 1)
    assert kernels.sort_records(records, word % words, low, high).tolist() == wanted


def scattered_segments(seed, shift, sizes, other_bits, num_rows, *, wide=False):
    """Return segments that are packed differently and lie in several buffers, and their edges as (row, other, id)."""
    every, edges = [], []
    for number, size in enumerate(sizes):
        rng = random(seed + number)
        owners = rng.integers(0, num_rows, size).astype(np.uint32)
        others = rng.integers(0, 2**other_bits, size).astype(np.uint32)
        travels = LAYOUTS[number % 4]
        packing = Packing(other_bits + number, 0 if "id" in travels else 16, travels)
        more = [np.zeros((size, packing.words - 1 - ("id" in travels)), np.uint64)]
        starts = np.empty((num_rows - 1 >> shift) + 3, np.uint32)
        records = np.empty((size, packing.words), np.uint64)
        cpu_kernels.start_buckets([owners], shift, starts)
        cpu_kernels.scatter_edges(
            owners, others, packing, shift, starts, records, 0, None, more[0] if more[0].shape[1] else None
        )
        every.append((np.concatenate([np.zeros(number, np.uint64), records.reshape(-1)]), number, starts[:-1], packing))
        base = 1000 * number + (2**50 if wide else 0)
        edges += [(int(o), int(t), base + i) for i, (o, t) in enumerate(zip(owners, others, strict=True))]
    num_buckets = (num_rows - 1 >> shift) + 1
    segments = Segments(
        hold_buffers(words for words, *_ in every),
        np.arange(len(every)),
        np.array([offset for _, offset, *_ in every], np.int64),
        np.array([starts for _, _, starts, _ in every], np.uint32).reshape(len(every), num_buckets + 1),
        1000 * np.arange(len(every)) + (2**50 if wide else 0),
        np.concatenate([np.zeros((0, 3), np.int64), *(pack_bits(packing, 1) for *_, packing in every)]),
        shift,
    )
    return segments, edges


def check_placing(kernels, *, shift, sizes, wide, ascending, dtypes, buckets, seed=0, other_bits=9, at=0):
    num_rows = 90
    segments, edges = scattered_segments(seed, shift, sizes, other_bits, num_rows, wide=wide)
    first, stop = (min(bucket, (num_rows - 1 >> shift) + 1) for bucket in buckets)
    low, high = first << shift, min(stop << shift, num_rows)
    inside = [(row - low, other, edge) for row, other, edge in edges if low <= row < high]
    wanted = sorted(inside, key=(lambda edge: edge[:2]) if ascending else lambda edge: edge[0])
    size, (index_dtype, id_dtype) = len(inside), dtypes
    noted = not ascending
    arrival, position = (np.empty((2, size), np.int64)) if noted else (None, None)
    ids = np.empty(at + size if id_dtype else 0, id_dtype or "int32")
    rows = Rows(np.full(high - low + 1, -7), np.full(at + size + 2, -5, index_dtype), ids)
    kernels.place_edges(
        segments,
        first,
        stop,
        rows,
        most=int(segments.sizes(first, stop).max(initial=0)),
        most_ids=2**55 if wide else 5000,
        at=at,
        sort_bits=other_bits if ascending else None,
        arrival=arrival,
        position=position,
    )
    counts = np.bincount([row for row, *_ in wanted], minlength=high - low)
    assert rows.indptr.tolist() == [-7, *(at + np.cumsum(counts)).tolist()]
    assert rows.indices.tolist() == [-5] * at + [other for _, other, _ in wanted] + [-5] * 2
    if id_dtype:
        assert ids[at:].tolist() == [edge for *_, edge in wanted]
    if noted:
        by_bucket = sorted(inside, key=lambda edge: edge[0] >> shift)
        assert arrival.tolist() == [edge for *_, edge in by_bucket]
        assert [wanted[to - at] for to in position.tolist()] == by_bucket


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtypes", [("int32", "int64"), ("int64", None)])
@pytest.mark.parametrize(("shift", "sizes", "buckets"), [(7, [70], (0, 1)), (3, [60, 0, 33, 51], (2, 9)), (2, [], (0, 3))])
def test_buckets_are_placed_from_where_they_lie(kernels, wide, ascending, dtypes, shift, sizes, buckets):
    """IDs that are ``wide`` do not fit beside row and other end."""
    options = {"wide": wide, "ascending": ascending, "dtypes": dtypes, "buckets": buckets}
    check_placing(kernels, shift=shift, sizes=sizes, **options, other_bits=12 if wide else 5, at=3)


@pytest.mark.parametrize("ascending", [False, True])
def test_what_does_not_fit_is_halved(small_kernels, ascending):
    """Buckets, then rows, and in the end the CPU sorts a row that is too long."""
    for shift, buckets in ((3, (0, 4)), (7, (0, 1))):
        options = {"wide": False, "ascending": ascending, "dtypes": ("int32", "int32"), "buckets": buckets}
        check_placing(small_kernels, shift=shift, sizes=[40, 20], **options, at=2, other_bits=4)


def test_some_rows_of_a_bucket_are_placed(kernels):
    packing, edges = Packing(8, 20), [(20 + i * 7 % 30, i % 256, i) for i in range(60)]
    records = np.array(list(words_of(*zip(*edges, strict=True), [[]] * 60, packing)), np.uint64)
    rows = Rows(np.zeros(31, np.int64), np.empty(60, np.int32), np.empty(60, np.int32))
    kernels.place_edges(one_segment(records, packing, 7), 0, 1, rows, most=60, most_ids=60, low=20)
    wanted = sorted(edges, key=lambda edge: edge[0])
    assert list(zip(rows.indices.tolist(), rows.edge_ids.tolist(), strict=True)) == [edge[1:] for edge in wanted]
    assert np.diff(rows.indptr).tolist() == [sum(edge[0] == row for edge in edges) for row in range(20, 50)]


# ---- sort keys


@pytest.mark.parametrize(
    ("low", "span", "shift", "payload"), [(5, 40, 3, np.int64), (2**64 - 20, 500, 5, None), (0, 2**64, 60, np.int32)]
)
def test_keys_are_sorted_through_buckets(kernels, payload, low, span, shift):
    rng, sizes = random(shift), (TILE + 30, 20)
    keys = [(np.uint64(low) + rng.integers(0, span - 1, size, np.uint64, endpoint=True)).astype(np.uint64) for size in sizes]
    num_buckets = (span - 1 >> shift) + 1
    scattered, starts = np.empty(sum(sizes), np.uint64), np.empty((2, num_buckets + 2), np.int32)
    along, chunk_at = np.empty(sum(sizes) if payload else 0, payload or np.int32), np.array([0, sizes[0]])
    for chunk, some in enumerate(keys):
        at = slice(chunk_at[chunk], chunk_at[chunk] + some.size)
        kernels.scatter_keys(some, int(chunk_at[chunk]), low, shift, scattered[at], along[at], starts[chunk])
    less = [(int(key) - low) % 2**64 for some in keys for key in some]
    parts = [less[: sizes[0]], less[sizes[0] :]]
    assert scattered.tolist() == [key for part in parts for key in sorted(part, key=lambda key: key >> shift)]
    of = ScatteredKeys(low, scattered, along, chunk_at, starts)
    offsets = np.searchsorted(np.sort(np.array(less, np.uint64) >> np.uint64(shift)), np.arange(num_buckets + 1)).astype(
        np.int64
    )
    for bucket in range(0, num_buckets, 2):
        wanted = [i for i in range(len(less)) if less[i] >> shift == bucket]
        found, its = np.empty(len(wanted), np.uint64), np.empty(len(wanted) if payload else 0, along.dtype)
        kernels.gather_bucket(of, bucket, found, its)
        assert found.tolist() == [less[i] for i in wanted]
        assert its.tolist() == (wanted if payload else [])
    out, order = np.empty(len(less), np.uint64), np.empty_like(along)
    kernels.sort_buckets(of, list(range(num_buckets)), offsets, out, order)
    wanted = sorted(range(len(less)), key=lambda i: less[i])
    assert out.tolist() == [(less[i] + low) % 2**64 for i in wanted]
    assert order.tolist() == (wanted if payload else [])


@pytest.mark.parametrize("before", [None, 3, 7])
def test_first_of_runs(kernels, before):
    keys, firsts = np.array([3, 3, 5, 5, 9, 3], np.uint64), np.empty(6, np.int64)
    count = kernels.first_of_runs(keys, before, firsts)
    assert firsts[:count].tolist() == ([] if before == 3 else [0]) + [2, 4, 5]


# ---- relabel


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_orders_are_inverted_and_ids_relabeled(kernels, dtype):
    order = random(3).permutation(TILE + 5).astype(dtype)
    inverse = np.empty_like(order)
    kernels.invert(order, inverse)
    assert inverse[order].tolist() == list(range(order.size))
    ids, out = random(4).integers(0, order.size, 2 * TILE).astype(dtype), np.empty(2 * TILE, dtype)
    assert kernels.relabel_ids(ids, order, out) == -1
    assert out.tolist() == [order[one] for one in ids]
    ids[[9, 70]] = (order.size, -1)
    assert kernels.relabel_ids(ids, order, out) == 9


def relabeling(seed, dtype, *, with_ids, num_rows=37):
    rng = random(seed)
    lengths = rng.integers(0, 7, num_rows)
    lengths[5:8] = 0
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = rng.integers(0, num_rows, indptr[-1]).astype(dtype)
    ids = rng.permutation(indptr[-1]).astype(dtype) if with_ids else indices[:0]
    old_rows = rng.permutation(num_rows).astype(dtype)
    return Relabeling(indptr, indices, ids, old_rows, np.argsort(old_rows).astype(dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("ascending", [False, True])
def test_rows_are_relabeled(kernels, dtype, with_ids, ascending):
    old = relabeling(1, dtype, with_ids=with_ids)
    num_rows, size = old.old_rows.size, old.indices.size
    new = Rows(np.empty(num_rows + 1, np.int64), np.empty(size, dtype), np.empty_like(old.edge_ids))
    kernels.fill_lengths(old.indptr, old.old_rows, new.indptr)
    for first, stop in ((0, 11), (11, num_rows)):
        if ascending:
            cuts = np.array([first, (first + stop) // 2, stop])
            kernels.relabel_sorted_rows(old, np.column_stack([cuts[:-1], cuts[1:]]), num_rows, size, new)
        else:
            kernels.relabel_rows(old, first, stop, new)
    wanted = []
    for row in old.old_rows:
        at = range(old.indptr[row], old.indptr[row + 1])
        entries = [(int(old.new_ids[old.indices[i]]), int(old.edge_ids[i]) if with_ids else 0) for i in at]
        wanted.append(sorted(entries, key=lambda entry: entry[0]) if ascending else entries)
    assert np.diff(new.indptr).tolist() == [len(row) for row in wanted]
    assert new.indptr[0] == 0
    assert new.indices.tolist() == [entry[0] for row in wanted for entry in row]
    if with_ids:
        assert new.edge_ids.tolist() == [entry[1] for row in wanted for entry in row]


# ---- gather


@pytest.mark.parametrize(("dtype", "shape"), [("float32", (3,)), ("uint8", (5,)), ("int64", ()), ("float16", (2, 2))])
def test_blocks_are_copied_and_scattered(kernels, dtype, shape):
    rng = random(6)
    values = rng.integers(0, 99, (50, *shape)).astype(dtype)
    starts = rng.integers(0, 40, 12)
    stops = starts + rng.integers(0, 9, 12)
    out = np.empty((int((stops - starts).sum()), *shape), dtype)
    kernels.copy_blocks(values, starts, stops, out)
    assert out.tobytes() == b"".join(values[a:b].tobytes() for a, b in zip(starts, stops, strict=True))
    lengths, first, stop = rng.integers(0, 5, 20), 4, 31
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.arange(np.searchsorted(bounds, first, "right") - 1, np.searchsorted(bounds, stop))
    some = np.append(bounds[rows], bounds[rows[-1] + 1])
    buckets, counts = rng.integers(0, 4, rows.size).astype(np.int32), np.zeros(4, np.int64)
    kernels.count_blocks(first, stop, some, buckets, counts)
    items = [
        (int(buckets[k]), i) for k, row in enumerate(rows) for i in range(bounds[row], bounds[row + 1]) if first <= i < stop
    ]
    assert counts.tolist() == [sum(bucket == b for b, _ in items) for bucket in range(4)]
    cursors, out = np.cumsum(counts) - counts, np.empty((stop - first, *shape), dtype)
    kernels.scatter_blocks(values[first:stop], first, some, buckets, cursors, out)
    assert out.tobytes() == b"".join(values[i].tobytes() for _, i in sorted(items))
    assert cursors.tolist() == np.cumsum(counts).tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("inner_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("highest", [3, 2**30])
def test_rows_are_sorted_where_they_lie(kernels, dtype, inner_dtype, highest):
    check_sorting(kernels, dtype, inner_dtype, highest)


def check_sorting(kernels, dtype, inner_dtype, highest):
    rng = random(8)
    lengths = np.array([0, 3, 1, 0, 0, 60, 20, 9])
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.integers(0, highest, bounds[-1]).astype(dtype)
    wanted = [sorted(range(b - a), key=lambda i, a=a: values[a + i]) for a, b in itertools.pairwise(bounds)]
    old, inner = values.copy(), np.empty(values.size, inner_dtype)
    kernels.sort_rows(values, bounds, inner, np.empty(60, dtype), np.empty(60, inner_dtype))
    assert inner.tolist() == [i for row in wanted for i in row]
    assert values.tolist() == [int(old[a + i]) for a, row in zip(bounds, wanted, strict=False) for i in row]


def test_everything_works_with_little_room(small_kernels):
    kernels = small_kernels
    check_sorting(kernels, np.int32, np.int32, 9)
    ids = random(2).integers(0, 40, 3 * TILE)
    ids[-1], counts = -1, np.zeros(40, np.int64)
    assert kernels.count_ids(ids, counts) == ids.size - 1
    assert counts.tolist() == np.bincount(ids[:-1], minlength=40).tolist()
    order, spare = np.empty((2, ids.size), np.int64)
    assert kernels.order_descending(ids + 1, order, spare).tolist() == np.argsort(-ids, kind="stable").tolist()
    rows, starts, records = ids[:-1].astype(np.uint32), np.empty(12, np.uint32), np.empty((ids.size - 1, 1), np.uint64)
    kernels.start_buckets([rows], 2, starts)
    kernels.scatter_edges(rows, rows, Packing(8, 20), 2, starts, records, 0)
    by_bucket = np.argsort(rows >> 2, kind="stable")
    assert (records[:, 0] & np.uint64(2**20 - 1)).tolist() == by_bucket.tolist()


@pytest.mark.parametrize("name", ["count_ids", "scatter", "sort_rows"])
def test_a_call_whose_second_half_fails_can_be_made_again(small_kernels, monkeypatch, name):
    """What is added to, moved on or sorted where it lies is as it was."""
    from graphprep.kernels.cuda import kernels as module

    work, done = getattr(module, f"_{name}"), []

    def fail(*args, **named):
        if done:
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        work(*args, **named)
        done.append(1)
        return -1

    monkeypatch.setattr(module, f"_{name}", fail)
    ids = random(2).integers(0, 40, 6 * TILE)
    counts, starts, values = np.zeros(40, np.int64), np.empty(12, np.uint32), ids.copy()
    small_kernels.start_buckets([ids], 2, starts)
    before = starts.copy()
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        if name == "count_ids":
            small_kernels.count_ids(ids, counts)
        elif name == "scatter":
            records = np.empty((ids.size, 1), np.uint64)
            small_kernels.scatter_edges(ids, ids, Packing(8, 20), 2, starts, records, 0)
        else:
            bounds, inner = np.arange(0, ids.size + 1, TILE), np.empty_like(ids)
            small_kernels.sort_rows(values, bounds, inner, np.empty(TILE, np.int64), np.empty(TILE, np.int64))
    assert done
    assert not counts.any()
    assert starts.tolist() == before.tolist()
    assert values.tolist() == ids.tolist()


def test_threads_compute_at_once(kernels):
    """More of them than there are slots."""

    def sort(seed: int) -> bool:
        records = random(seed).integers(0, 2**64, (60, 1), np.uint64)
        wanted = sorted(records.tolist(), key=lambda record: record[0] & 31)
        return kernels.sort_records(records, 0, 0, 5).tolist() == wanted

    with ThreadPoolExecutor(5) as threads:
        assert all(threads.map(sort, range(8)))


# ---- generate: see tests/generate for the rest


def test_draws_and_grids(kernels):
    golden, mask = 0x9E3779B97F4A7C15, 2**64 - 1

    def splitmix(state: int) -> int:
        state = (state + golden) & mask
        state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & mask
        state = (state ^ state >> 27) * 0x94D049BB133111EB & mask
        return state ^ state >> 31

    out = np.empty(20, np.int64)
    kernels.fill_draws(5, 3, 100, out, 7)
    assert out.tolist() == [7 + ((splitmix(5 + (3 + i) * golden & mask) >> 32) * 100 >> 32) for i in range(20)]
    for torus in (False, True):
        ends = np.empty((2, 60), np.int64)
        count = kernels.grid_edges(2, 13, 5, 3, torus, *ends)
        wanted = []
        for node in range(2, 13):
            for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0)):
                row, col = node // 3 + down, node % 3 + right
                if torus or (0 <= row < 5 and 0 <= col < 3):
                    wanted.append((node, row % 5 * 3 + col % 3))
        assert list(zip(*ends[:, :count].tolist(), strict=True)) == wanted


def test_bits():
    assert [bits_below(count) for count in (0, 1, 2, 3, 2**32)] == [0, 0, 1, 2, 32]
