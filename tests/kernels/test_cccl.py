"""What ``cuda.compute`` would sort and scan, with a stand-in for it: that it is used, what is kept, and what is not loaded.

The real one needs a driver even to be imported.
"""

from __future__ import annotations

import importlib.metadata
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from cub_stand_in import stand_in

from graphprep.edges.device.cuda import failure_of
from graphprep.kernels.cuda.cccl import Fast, FastError, find_fast
from graphprep.kernels.cuda.probe import Device as Found
from graphprep.kernels.cuda.tally import Tally

SM_90 = Found(0, "", (9, 0))


class Device(SimpleNamespace):
    """A room of host arrays."""

    tally = None

    def take(self, name, size, dtype):
        return np.empty(size, dtype)


@pytest.fixture
def compute(monkeypatch, tmp_path):
    """The stand-in, which counts what it compiles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    module = stand_in(handle=77)
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(compute=module))
    monkeypatch.setitem(sys.modules, "cuda.compute", module)
    monkeypatch.setattr("graphprep.kernels.cuda.cccl.version", lambda name: "1.2.1")
    return module


def sort(fast, keys, payload, *ranges):
    room = Device(stream=SimpleNamespace(handle=SimpleNamespace(value=77)))
    return fast.sort(room, keys.copy(), payload.copy(), (np.empty_like(keys), np.empty_like(payload)), ranges)


@pytest.mark.parametrize("payload", [None, np.uint32, np.uint64])
def test_ranges_are_sorted_one_after_the_other(compute, payload):
    keys = np.random.default_rng(1).integers(0, 2**40, 90, np.uint64)
    along = np.arange(90, dtype=payload) if payload else np.empty(0, np.uint8)
    found, moved = sort(find_fast(SM_90)(), keys, along, (3, 5), (7, 7), (20, 26))
    order = sorted(range(90), key=lambda i: (int(keys[i]) >> 20 & 63, int(keys[i]) >> 3 & 3))
    assert found.tolist() == keys[order].tolist()
    assert moved.tolist() == (order if payload else [])


def test_sums_are_scanned(compute):
    values = np.arange(7)
    find_fast(SM_90)().scan(Device(stream=SimpleNamespace(handle=77)), values, values)
    assert values.tolist() == [0, 0, 1, 3, 6, 10, 15]


def test_what_was_compiled_is_kept_by_version_architecture_and_types(compute, tmp_path, monkeypatch):
    keys, none = np.array([3, 1, 2], np.uint64), np.empty(0, np.uint8)
    for expected in (1, 1):  # the second comes from the file
        assert sort(find_fast(SM_90)(), keys, none, (0, 2))[0].tolist() == [1, 2, 3]
        assert len(compute.compiled) == expected
    sort(find_fast(Found(0, "", (10, 0)))(), keys, none, (0, 2))
    sort(find_fast(SM_90)(), keys, np.arange(3, dtype=np.uint32), (0, 2))
    monkeypatch.setattr("graphprep.kernels.cuda.cccl.version", lambda name: "1.3.0")
    sort(find_fast(SM_90)(), keys, none, (0, 2))
    assert len(compute.compiled) == 4
    names = sorted(path.name for path in (tmp_path / "graphprep").iterdir())
    assert names == [
        "cccl-1.2.1-sm_100-sort-u8-none.bin",
        "cccl-1.2.1-sm_90-sort-u8-none.bin",
        "cccl-1.2.1-sm_90-sort-u8-u4.bin",
        "cccl-1.3.0-sm_90-sort-u8-none.bin",
    ]


@pytest.mark.parametrize("harm", ["cut", "changed", "writable"])
def test_a_file_that_is_damaged_or_not_the_users_is_not_loaded(compute, tmp_path, harm):
    keys, none = np.array([3, 1, 2], np.uint64), np.empty(0, np.uint8)
    sort(find_fast(SM_90)(), keys, none, (0, 2))
    (path,) = (tmp_path / "graphprep").iterdir()
    content = path.read_bytes()
    if harm == "writable":
        path.chmod(0o666)
    else:
        path.write_bytes(content[:10] if harm == "cut" else content[:-1] + bytes([content[-1] ^ 1]))
    assert sort(find_fast(SM_90)(), keys, none, (0, 2))[0].tolist() == [1, 2, 3]
    assert len(compute.compiled) == 2
    assert path.read_bytes() == content


@pytest.mark.parametrize("kept", [True, False])
def test_rooms_that_a_thread_uses_in_turn_share_no_algorithm(compute, tmp_path, monkeypatch, kept):
    """Two threads may use the rooms at once, and an algorithm holds the arrays that it is called with."""
    if not kept:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keys, used = np.array([3, 1, 2], np.uint64), []
    monkeypatch.setattr(Fast, "_run", lambda self, room, algorithm, **given: used.append(algorithm))
    for fast in [make() for make in [find_fast(SM_90)] * 2]:
        sort(fast, keys, np.empty(0, np.uint8), (0, 2))
        fast.scan(Device(stream=SimpleNamespace(handle=77)), np.arange(3), np.arange(3))
    assert len(set(map(id, used))) == 4
    assert len(compute.compiled) == (2 if kept else 4)


def test_what_cannot_be_written_down_is_asked_for_by_each_thread(compute, monkeypatch):
    def refuse(made):
        raise NotImplementedError("this build does not serialize")

    monkeypatch.setattr(compute, "serialize", refuse)
    keys, used, fast = np.array([3, 1, 2], np.uint64), [], find_fast(SM_90)()
    monkeypatch.setattr(Fast, "_run", lambda self, room, algorithm, **given: used.append(algorithm))
    for _ in range(2):
        thread = threading.Thread(target=sort, args=(fast, keys, np.empty(0, np.uint8), (0, 2)))
        thread.start()
        thread.join()
    assert used[0] is not used[1]


def test_what_does_not_compile_is_left_to_our_own(compute, monkeypatch):
    def fail(**given):
        raise RuntimeError("Failed building\nradix_sort")

    monkeypatch.setattr(compute, "make_radix_sort", fail)
    fast, tally = find_fast(SM_90)(), Tally()
    room = Device(stream=SimpleNamespace(handle=77), tally=tally)
    keys, none = np.array([3, 1, 2], np.uint64), np.empty(0, np.uint8)
    for _ in range(2):
        assert fast.sort(room, keys, none, (keys.copy(), none), [(0, 2)]) is None
    assert keys.tolist() == [3, 1, 2]
    assert tally.tell() == "1 x CUB's sort-u8-none does not compile here (Failed building radix_sort)"
    assert fast.scan(room, keys.astype(np.int64), np.empty(3, np.int64))


def test_what_fails_as_it_runs_is_a_failure_of_the_device(compute, monkeypatch):
    def fail(self, **given):
        raise RuntimeError("Failed executing radix_sort, error code: 700")

    monkeypatch.setattr(type(compute.make_exclusive_scan(a=1)), "__call__", fail)
    waited = []
    stream = SimpleNamespace(handle=77, synchronize=lambda: waited.append(1))
    with pytest.raises(FastError) as caught:
        find_fast(SM_90)().scan(Device(stream=stream), np.arange(3), np.arange(3))
    assert waited == [1]
    assert failure_of(caught.value).message == "Failed executing radix_sort, error code: 700"


def test_without_it_nothing_is_fast(compute, monkeypatch):
    compute._BINDINGS_AVAILABLE = False  # no driver
    assert find_fast(SM_90) is None
    compute._BINDINGS_AVAILABLE = True

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr("graphprep.kernels.cuda.cccl.version", missing)
    assert find_fast(SM_90) is None
    monkeypatch.setitem(sys.modules, "cuda.compute", None)
    assert find_fast(SM_90) is None
