"""What does not fit on a device at once: cut until it does, and computed there; what is left to the CPU, and what is said.

On the simulator and on a CUDA device, like the contract; the CPU's kernels are put out of reach.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from devices import check_device
from test_kernels_contract import TILE, random

from graphprep.kernels.cpu.edges import kernels as cpu_kernels
from graphprep.kernels.edges import Packing, Rows, ScatteredKeys, one_segment

pytestmark = pytest.mark.gpu
SIZE = 5 * TILE + 3
CAP_BYTES = 28 * 3 * TILE  # for a part of that


@pytest.fixture
def slots(record_property, monkeypatch):
    check_device("cuda", "kernels", record_property)
    monkeypatch.setattr("graphprep.kernels.cuda.kernels._FEW_ITEMS", 2)
    from graphprep.kernels.cuda.slots import Slots

    return Slots(count=1, cap_bytes=CAP_BYTES)


def kernels_of(slots, *helpers):
    """Return the device's kernels, with those of the CPU that they may call."""
    from graphprep.kernels.cuda.kernels import make_kernels

    return make_kernels(slots, SimpleNamespace(**{name: getattr(cpu_kernels, name) for name in helpers}))


def said(slots):
    """Return what was counted."""
    told = slots.tally.tell()
    assert slots.tally.tell() == ""
    return {what: int(count) for count, what in (one.split(" x ", 1) for one in told.split("; "))}


def check_halved(slots, name):
    """See that only some of it fitted, and the device computed all of it."""
    counts = said(slots)
    assert set(counts) == {name, f"{name} too large at once"}
    assert counts[name] > 1


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("bits", [(0, 64), (5, 9), (60, 64), (0, 1)])
def test_records_are_sorted_in_parts(slots, width, bits):
    records = random(width).integers(0, 2**64, (SIZE, width), np.uint64)
    word, (low, high) = width - 1, bits
    wanted = sorted(records.tolist(), key=lambda record: record[word] >> low & (1 << high - low) - 1)
    assert kernels_of(slots).sort_records(records, word, low, high).tolist() == wanted
    check_halved(slots, "sort_records")


def test_records_of_one_key_stay_where_they_are(slots):
    records = random(1).integers(0, 2**10, (SIZE, 2), np.uint64)
    assert kernels_of(slots).sort_records(records, 0, 20, 30).tolist() == records.tolist()
    assert not [what for what in said(slots) if "left" in what]


@pytest.mark.parametrize("highest", [1, 2**40])
def test_values_are_ordered_in_parts(slots, highest):
    values = random(3).integers(0, highest, SIZE, endpoint=True)
    order, spare = np.empty((2, SIZE), np.int64)
    found = kernels_of(slots).order_descending(values, order, spare)
    assert found.tolist() == np.argsort(-values, kind="stable").tolist()
    check_halved(slots, "order_descending")


@pytest.mark.parametrize("payload", [None, np.int32, np.int64])
@pytest.mark.parametrize("num_buckets", [1, 4, 64])
def test_buckets_are_sorted_in_parts(slots, payload, num_buckets):
    shift, low = 20, 7
    less = random(num_buckets).integers(0, num_buckets << shift, SIZE, np.uint64)
    less[:TILE] = less[0]  # many alike in one of them
    kernels = kernels_of(slots, "gather_bucket")
    scattered, starts = np.empty(SIZE, np.uint64), np.empty((1, num_buckets + 2), np.int32)
    along = np.empty(SIZE if payload else 0, payload or np.int32)
    cpu_kernels.scatter_keys(less + np.uint64(low), 0, low, shift, scattered, along, starts[0])
    of = ScatteredKeys(low, scattered, along, np.zeros(1, np.int64), starts)
    out, order = np.full(SIZE, 3, np.uint64), np.full_like(along, 3)
    chosen = [bucket for bucket in range(num_buckets) if num_buckets < 64 or bucket != 2]  # with a gap, so two runs
    kernels.sort_buckets(of, chosen, starts[0].astype(np.int64)[: num_buckets + 1], out, order)
    wanted = np.argsort(less, kind="stable")
    left_out = (less[wanted] >> np.uint64(shift) == 2) & (num_buckets == 64)
    assert out.tolist() == np.where(left_out, 3, less[wanted] + np.uint64(low)).tolist()
    assert order.tolist() == (np.where(left_out, 3, wanted).tolist() if payload else [])
    check_halved(slots, "sort_buckets")


@pytest.mark.parametrize("travels", [(), ("id",)])
@pytest.mark.parametrize("stated", [False, True])
def test_entries_are_scattered_in_parts(slots, travels, stated):
    packing = Packing(20, 0 if travels else 28, travels)
    indptr = np.sort(np.append(random(4).integers(0, SIZE + 50, 40), [0, 50, SIZE + 50]))
    columns, first = random(5).integers(0, 300, SIZE).astype(np.int32), 50
    ids = random(6).permutation(SIZE) if stated else None
    starts, records = np.empty(300 // 16 + 3, np.uint32), np.empty((SIZE, packing.words), np.uint64)
    cpu_kernels.start_buckets([columns], 4, starts)
    kernels_of(slots).scatter_entries(indptr, columns, first, packing, 4, starts, records, ids)
    wanted = []
    for at in np.argsort(columns >> 4, kind="stable").tolist():
        row, number = int(np.searchsorted(indptr, first + at, "right")) - 1, int(ids[at]) if stated else at
        pair = int(columns[at]) << 20 | row
        wanted.append([pair, number] if travels else [(pair << 28 | number) & 2**64 - 1])
    assert records.tolist() == wanted
    assert starts[1:].tolist() == [*np.searchsorted(np.sort(columns >> 4), range(1, starts.size - 1)), SIZE]
    check_halved(slots, "scatter_entries")


def test_a_row_that_does_not_fit_goes_to_the_cpu(slots):
    packing = Packing(8, 20)
    words = (random(7).integers(0, 256, SIZE, np.uint64) << np.uint64(20)) + np.arange(SIZE, dtype=np.uint64)
    rows = Rows(np.zeros(2, np.int64), np.empty(SIZE, np.int32), np.empty(SIZE, np.int32))
    segments = one_segment(words.reshape(-1, 1), packing, 0)
    kernels_of(slots, "place_edges").place_edges(segments, 0, 1, rows, most=SIZE, most_ids=SIZE, sort_bits=8)
    assert rows.edge_ids.tolist() == np.argsort(words >> np.uint64(20), kind="stable").tolist()
    assert rows.indptr.tolist() == [0, SIZE]
    assert said(slots) == {
        "place_edges too large at once": 1,
        "place_edges left to the CPU (a row does not fit by itself)": 1,
    }


def test_a_few_items_that_find_no_room_go_to_the_cpu(slots, monkeypatch):
    from graphprep.kernels.cuda import kernels as module

    monkeypatch.setattr(module, "_FEW_ITEMS", SIZE + 1)
    keys = random(8).integers(0, 50, SIZE, np.uint64)
    wanted = sorted(([key] for key in keys.tolist()), key=lambda record: record[0] & 15)
    assert kernels_of(slots).sort_records(keys.reshape(-1, 1), 0, 0, 4).tolist() == wanted
    columns, starts, records = keys.astype(np.int32), np.empty(8, np.uint32), np.empty((SIZE, 1), np.uint64)
    cpu_kernels.start_buckets([columns], 3, starts)
    kernels = kernels_of(slots, "scatter_entries")
    kernels.scatter_entries(np.array([0, SIZE]), columns, 0, Packing(8, 20), 3, starts, records)
    assert (records[:, 0] & np.uint64(2**20 - 1)).tolist() == np.argsort(columns >> 3, kind="stable").tolist()
    why = "left to the CPU (there is no room for a few items)"
    assert {what for what in said(slots) if "left" in what} == {f"sort_records {why}", f"scatter_entries {why}"}


@pytest.mark.parametrize("name", ["scatter_entries", "sort_records", "order_descending"])
def test_a_call_whose_second_part_fails_can_be_made_again(slots, monkeypatch, name):
    """What is moved on or sorted where it lies is as it was."""
    from graphprep.kernels.cuda import kernels as module

    helper = "_scatter" if name == "scatter_entries" else "_sort_keys"
    work, done = getattr(module, helper), []

    def fail(*args):
        if done:
            raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS")
        work(*args)
        done.append(1)

    monkeypatch.setattr(module, helper, fail)
    keys = random(9).integers(0, 300, (SIZE, 1), np.uint64)
    columns, starts, kernels = keys[:, 0].astype(np.int32), np.empty(8, np.uint32), kernels_of(slots)
    cpu_kernels.start_buckets([columns], 6, starts)
    before = keys.copy(), starts.copy()
    with pytest.raises(RuntimeError, match="ILLEGAL_ADDRESS"):
        if name == "scatter_entries":
            kernels.scatter_entries(np.array([0, SIZE]), columns, 0, Packing(8, 20), 6, starts, np.empty_like(keys))
        elif name == "sort_records":
            kernels.sort_records(keys, 0, 0, 9)
        else:
            kernels.order_descending(keys[:, 0].astype(np.int64), *np.empty((2, SIZE), np.int64))
    assert done
    assert keys.tolist() == before[0].tolist()
    assert starts.tolist() == before[1].tolist()


def test_memory_that_cannot_be_pinned_is_used_all_the_same(slots, monkeypatch):
    from graphprep.kernels.cuda import slots as module

    class NoPins:
        def __getattr__(self, name):
            return getattr(real, name)

        def pinned_array(self, *_):
            raise RuntimeError("[2] Call to cuMemHostAlloc results in\nCUDA_ERROR_OUT_OF_MEMORY")

    real = module.cuda
    monkeypatch.setattr(module, "cuda", NoPins())
    records = random(10).integers(0, 2**64, (TILE, 1), np.uint64)
    wanted = sorted(records.tolist(), key=lambda record: record[0] & 255)
    assert kernels_of(slots).sort_records(records, 0, 0, 8).tolist() == wanted
    why = "[2] Call to cuMemHostAlloc results in CUDA_ERROR_OUT_OF_MEMORY"
    assert said(slots) == {"sort_records": 1, f"buffer not pinned, so slower to copy ({why})": 2}


def test_memory_that_the_device_lacks_is_told_in_bytes(slots, monkeypatch):
    from graphprep.kernels.cuda import probe
    from graphprep.kernels.cuda import slots as module

    class Full:
        def __getattr__(self, name):
            return getattr(real, name)

        def device_array(self, *_):
            raise RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")

    real = module.cuda
    monkeypatch.setattr(module, "cuda", Full())
    monkeypatch.setattr(probe, "memory_of", lambda cuda: (3 << 20, 80 << 20))
    with slots.room() as room, pytest.raises(module.NoRoomError, match=r"^256 bytes are needed, 3.0 MiB of 80.0 MiB are free$"):
        room.take("words", 9, np.uint64)
