"""Graphs on a device against NumPy and SciPy: on a CUDA device where there is one, and, by ``simulated.py``, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from devices import check_device
from test_kernels_contract import TILE, random

pytestmark = pytest.mark.gpu


@pytest.fixture
def room(record_property):
    check_device("cuda", "kernels", record_property)
    from graphprep.kernels.cuda.slots import Slots

    with Slots().room() as room:
        yield room


@pytest.fixture
def resident(room):
    """What the room is for: the module, and arrays to the device and back."""
    import graphprep.kernels.cuda.resident as module
    from graphprep.kernels.cuda.frontend import cuda

    def there(array):
        return cuda.to_device(np.ascontiguousarray(array))

    def here(array):
        room.finish()
        return array.copy_to_host()

    return module, there, here


def edges(seed, size, num_rows, num_others, dtype):
    rng = random(seed)
    return rng.integers(0, num_rows, size).astype(dtype), rng.integers(0, num_others, size).astype(dtype)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize(("num_rows", "num_others", "size"), [(30, 9, 2 * TILE + 7), (5, 2**31 + 2, 40), (2**9, 3, 0)])
@pytest.mark.parametrize("fits", [True, False])
def test_rows_are_built_of_edges(room, resident, monkeypatch, dtype, ascending, with_ids, num_rows, num_others, size, fits):
    """Where row, other end and ID fit a word, and where not, as of a large graph; rows without an edge, many in a line."""
    module, there, here = resident
    if not fits:
        monkeypatch.setattr(module, "WORD_BITS", 0)
    highest = min(num_others, 2**31 - 1 if dtype is np.int32 else 2**32 - 1)
    rows, others = edges(1, size, num_rows, highest, dtype)
    rows[rows > 9] = 9
    options = {"with_ids": with_ids, "sort_neighbors": ascending}
    built = module.build_rows(room, there(rows), there(others), num_rows, min(num_others, 2**32), **options)
    order = np.lexsort((others, rows)) if ascending else np.argsort(rows, kind="stable")
    assert here(built.indptr).tolist() == np.searchsorted(rows[order], np.arange(num_rows + 1)).tolist()
    assert here(built.indices).tolist() == others[order].tolist()
    assert (built.edge_ids is not None) == with_ids
    if with_ids:
        assert here(built.edge_ids).tolist() == order.tolist()


def rows_of(num_rows=25, num_others=40, size=90, seed=3):
    rows, others = edges(seed, size, num_rows, num_others, np.int32)
    order = np.argsort(rows, kind="stable")
    return np.searchsorted(rows[order], np.arange(num_rows + 1)), others[order], order.astype(np.int64) + 7


@pytest.mark.parametrize("sort", [False, True])
def test_rows_are_transposed_and_sorted(room, resident, sort):
    module, there, here = resident
    indptr, indices, ids = rows_of()
    old = module.ResidentRows(there(indptr), there(indices), there(ids))
    found = module.sort_rows(room, old, 40) if sort else module.transpose(room, old, 40)
    rows = np.repeat(np.arange(25), np.diff(indptr))
    order = np.lexsort((indices, rows)) if sort else np.argsort(indices, kind="stable")
    assert here(found.indices).tolist() == (indices if sort else rows)[order].tolist()
    assert here(found.edge_ids).tolist() == ids[order].tolist()
    counts = np.bincount(rows if sort else indices, minlength=25 if sort else 40)
    assert here(found.indptr).tolist() == [0, *np.cumsum(counts).tolist()]


@pytest.mark.parametrize(("highest", "width"), [(5, np.int32), (2**40, np.int64)])
def test_one_upload_serves_degrees_order_and_relabeling(room, resident, highest, width):
    """Orders of more than 2^31 nodes are int64."""
    module, there, here = resident
    indptr, indices, ids = rows_of(num_rows=40)
    old = module.ResidentRows(there(indptr), there(indices), there(ids))
    degrees = module.count_degrees(room, old.indptr)
    assert here(degrees).tolist() == np.diff(indptr).tolist()
    order = module.order_descending(room, degrees)
    wanted = np.argsort(-np.diff(indptr), kind="stable")
    assert here(order).tolist() == wanted.tolist()
    order, old = there(here(order).astype(width)), module.ResidentRows(old.indptr, there(indices.astype(width)), old.edge_ids)
    new_ids = module.invert(room, order)
    assert here(new_ids).tolist() == np.argsort(wanted).tolist()
    new = module.relabel_rows(room, old, order, new_ids)
    rows = [range(indptr[row], indptr[row + 1]) for row in wanted]
    assert here(new.indptr).tolist() == [0, *np.cumsum([len(row) for row in rows]).tolist()]
    assert here(new.indices).tolist() == [np.argsort(wanted)[indices[i]] for row in rows for i in row]
    assert here(new.edge_ids).tolist() == [ids[i] for row in rows for i in row]
    values = random(5).choice([0, 3, highest], 60)
    assert here(module.order_descending(room, there(values))).tolist() == np.argsort(-values, kind="stable").tolist()


@pytest.mark.parametrize("size", [0, 1, 2 * TILE + 3])
def test_repeats_are_dropped(room, resident, size):
    module, there, here = resident
    rows, others = edges(6, size, 7, 5, np.int64)
    found = [here(array).tolist() for array in module.drop_repeats(room, there(rows), there(others), 7, 5)]
    pairs, firsts = np.unique(np.column_stack([rows, others]), axis=0, return_index=True)
    assert found == [pairs[:, 0].tolist(), pairs[:, 1].tolist(), firsts.tolist()]


@pytest.mark.parametrize("size", [0, 2 * TILE + 3])
def test_items_are_split_by_partition(room, resident, size):
    module, there, here = resident
    parts = random(7).integers(0, 5, size).astype(np.int32)
    parts[parts == 3] = 4
    offsets, order = module.split(room, there(parts), 6)
    assert here(offsets).tolist() == np.searchsorted(np.sort(parts), np.arange(7)).tolist()
    assert here(order).tolist() == np.argsort(parts, kind="stable").tolist()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("ids", [[], [4], [5, -3, 8], list(range(2 * TILE))])
def test_limits(room, resident, dtype, ids):
    module, there, _ = resident
    assert module.find_limits(room, there(np.array(ids, dtype))) == ((min(ids), max(ids)) if ids else (0, -1))


@pytest.mark.parametrize("key", [np.uint32, np.uint64])
@pytest.mark.parametrize("payload", [None, np.uint32, np.uint64])
def test_pairs_are_sorted_by_ranges_of_bits(room, resident, key, payload):
    """The second range counts more; equal keys keep their order."""
    from graphprep.kernels.cuda.radix import sort_pairs

    _, _, here = resident
    keys = random(9).integers(0, 2 ** (8 * np.dtype(key).itemsize), 3 * TILE + 5, np.uint64).astype(key)
    order = np.arange(keys.size, dtype=payload or np.uint8)
    along = room.upload("along", order) if payload else room.none(np.uint8)
    found, moved = sort_pairs(room, room.upload("keys", keys), along, (1, 3), (20, 29))
    wanted = sorted(range(keys.size), key=lambda i: (int(keys[i]) >> 20 & 511, int(keys[i]) >> 1 & 3))
    assert here(found).tolist() == keys[wanted].tolist()
    if payload:
        assert here(moved).tolist() == wanted


@pytest.mark.parametrize("size", [0, 1, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, 40 * TILE])
def test_exclusive_scan(room, size):
    from graphprep.kernels.cuda.scan import exclusive_scan

    values, found = random(size).integers(-(2**40), 2**40, size), np.empty(size, np.int64)
    there = room.upload("values", values)
    exclusive_scan(room, there, there)
    room.download(there, found)
    room.finish()
    assert found.tolist() == (np.cumsum(values) - values).tolist()
