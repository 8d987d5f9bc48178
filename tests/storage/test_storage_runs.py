"""Runs give back what was appended, in order, whatever was spilled."""

import errno
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import StorageError
from graphprep.storage.spill import runs as runs_module
from graphprep.storage.spill import segments
from graphprep.storage.spill.runs import Runs, SpillPool

DTYPES = [np.uint8, np.bool_, np.int32, np.float64, np.dtype(">i8")]


def joined(chunks):
    """Concatenate neighbours of one layout: what may be joined is the same then."""
    out = []
    for chunk in chunks:
        layout = tuple(None if array is None else (array.dtype, array.shape[1:]) for array in chunk)
        if out and out[-1][0] == layout:
            out[-1][1].append(chunk)
        else:
            out.append((layout, [chunk]))
    return [
        (
            layout,
            [None if kind is None else np.concatenate([chunk[i] for chunk in group]).tolist() for i, kind in enumerate(layout)],
        )
        for layout, group in out
    ]


def make_chunk(draw):
    arrays = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.integers(0, 3))
        size = draw(st.integers(0, 20))
        dtype = DTYPES[draw(st.integers(0, len(DTYPES) - 1))]
        values = np.arange(size * 2) % 127
        arrays.append(
            None
            if kind == 0
            else values[:size].astype(dtype)
            if kind == 1
            else values.reshape(size, 2).astype(dtype)
            if kind == 2
            else values.astype(dtype)[::2]
        )
    return tuple(arrays)


@settings(deadline=None, max_examples=120)
@given(data=st.data())
def test_runs_equal_plain_lists(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("spill")
    cap = data.draw(st.sampled_from([0, 1, 100, 700, 10**9]))
    with SpillPool(cap, str(folder)) as pool:
        stores = [Runs(pool, 3), Runs(pool, 1), Runs(pool, 5)]
        plain = [[[] for _ in range(store.num_buckets)] for store in stores]
        for _ in range(data.draw(st.integers(0, 40))):
            which = data.draw(st.integers(0, 2))
            bucket = data.draw(st.integers(0, stores[which].num_buckets - 1))
            action = data.draw(st.integers(0, 9))
            if action == 0:
                stores[which].free(bucket)
                plain[which][bucket] = []
            elif action == 1:
                assert joined(stores[which].read(bucket)) == joined(plain[which][bucket])
            else:
                chunk = make_chunk(data.draw)
                plain[which][bucket].append(chunk)
                stores[which].append(bucket, chunk)
            assert pool.in_memory_bytes <= cap
            assert pool.in_memory_bytes == sum(store.in_memory_bytes for store in stores)
        for store, expected in zip(stores, plain, strict=True):
            for bucket, chunks in enumerate(expected):
                for _ in range(2):
                    assert joined(store.read(bucket)) == joined(chunks)
                assert store.num_bytes(bucket) == sum(array.nbytes for chunk in chunks for array in chunk if array is not None)
                assert store.num_chunks(bucket) == len(list(store.read(bucket))) <= len(chunks)
    assert list(folder.iterdir()) == []
    assert pool.in_memory_bytes == 0


def test_nothing_is_written_while_it_fits(tmp_path):
    with SpillPool(1000, str(tmp_path)) as pool:
        runs = Runs(pool)
        array = np.arange(100, dtype=np.uint8)
        runs.append(0, (array,))
        assert next(iter(runs.read(0)))[0] is array
        assert (pool.in_memory_bytes, pool.spilled_bytes) == (100 + runs_module._ARRAY_BYTES, 0)
        assert list(tmp_path.iterdir()) == []


def test_the_largest_runs_go_first(tmp_path):
    each = runs_module._ARRAY_BYTES
    with SpillPool(1000 + 3 * each, str(tmp_path)) as pool:
        small, large = Runs(pool), Runs(pool)
        small.append(0, (np.zeros(300, np.uint8),))
        large.append(0, (np.zeros(800, np.uint8),))
        small.append(0, (np.zeros(200, np.uint8),))
        assert (small.in_memory_bytes, large.in_memory_bytes, pool.spilled_bytes) == (500 + 2 * each, 0, 800)
        small.append(0, (np.zeros(500, np.uint8),))
        assert (small.in_memory_bytes, pool.spilled_bytes) == (1000 + 3 * each, 800)


def test_small_chunks_are_joined_large_ones_are_not(tmp_path, monkeypatch):
    monkeypatch.setattr(runs_module, "_EXTENT_BYTES", 100)
    monkeypatch.setattr(runs_module, "_LEAST_EXTENT_BYTES", 100)
    with SpillPool(0, str(tmp_path)) as pool:
        runs = Runs(pool)
        pool.cap_bytes = 10**6
        for i in range(25):
            runs.append(0, (np.full(10, i, np.uint8),))
        pool.cap_bytes = 0
        runs.append(0, (np.zeros(300, np.uint8),))
        assert [len(chunk[0]) for chunk in runs.read(0)] == [100, 100, 50, 300]
        assert runs.num_chunks(0) == 4


def test_a_thousand_buckets_are_written_in_bucket_order(tmp_path, monkeypatch):
    with SpillPool(10**9, str(tmp_path)) as pool:
        runs = Runs(pool, 1000)
        for i in range(5000):
            runs.append(i * 7 % 1000, (np.array([i]),))
        pool.cap_bytes = 0
        runs.append(0, (np.array([-1]),))
        written = np.fromfile(next(tmp_path.rglob("runs-*")), np.int64)
        expected = [[i for i in range(5000) if i * 7 % 1000 == bucket] for bucket in range(1000)]
        expected[0].append(-1)
        assert written.tolist() == [value for bucket in expected for value in bucket]
        assert next(iter(runs.read(3)))[0].tolist() == expected[3]


def test_free_removes_the_file_with_its_last_bucket(tmp_path):
    with SpillPool(0, str(tmp_path)) as pool:
        runs = Runs(pool, 2)
        for bucket in (0, 1):
            runs.append(bucket, (np.arange(5),))
        runs.free(0)
        assert len(list(tmp_path.rglob("runs-*"))) == 1
        assert list(runs.read(0)) == []
        assert next(iter(runs.read(1)))[0].tolist() == [0, 1, 2, 3, 4]
        runs.free(1)
        assert list(tmp_path.rglob("runs-*")) == []
        runs.append(1, (np.arange(3),))
        assert next(iter(runs.read(1)))[0].tolist() == [0, 1, 2]
        runs.close()
        assert list(tmp_path.rglob("runs-*")) == []
        assert pool.in_memory_bytes == 0


def test_a_full_disk_keeps_what_is_in_memory(tmp_path, monkeypatch):
    with SpillPool(10, str(tmp_path)) as pool:
        runs = Runs(pool, 2)
        runs.append(0, (np.arange(5),))
        spilled = pool.spilled_bytes
        whole = segments.open_private

        class Full:
            def __init__(self, file):
                self.file = file

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.file.close()

            def truncate(self, size):
                self.file.truncate(size)

            def write(self, data):
                self.file.write(bytes(data)[:3])
                raise OSError(errno.ENOSPC, "injected")

        monkeypatch.setattr(segments, "open_private", lambda *args, **kwargs: Full(whole(*args, **kwargs)))
        with pytest.raises(StorageError) as caught:
            runs.append(1, (np.arange(7),))
        monkeypatch.undo()
        assert caught.value.message == "no space left on device"
        assert caught.value.place.startswith(str(tmp_path))
        assert caught.value.fix == "free some space, or choose another place with --tmp-dir"
        assert pool.spilled_bytes == spilled
        runs.append(0, (np.arange(3),))
        assert joined(runs.read(0))[0][1] == [[0, 1, 2, 3, 4, 0, 1, 2]]
        assert joined(runs.read(1))[0][1] == [[0, 1, 2, 3, 4, 5, 6]]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path):
    with SpillPool(0, str(tmp_path / "no")) as pool, pytest.raises(StorageError) as caught:
        Runs(pool).append(0, (np.arange(3),))
    assert str(caught.value) == f"{tmp_path}/no: no such file or folder\n  fix: check the spelling of the path"


def test_more_runs_than_file_descriptors(tmp_path):
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    number = 300 if soft > 5000 else soft + 50
    before = len(list(Path("/proc/self/fd").iterdir()))
    with SpillPool(0, str(tmp_path)) as pool:
        many = [Runs(pool) for _ in range(number)]
        for i, runs in enumerate(many):
            runs.append(0, (np.array([i]),))
        readers = [next(iter(runs.read(0)))[0].tolist() for runs in many]
        assert readers == [[i] for i in range(number)]
        assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_runs_may_join_the_pool_while_another_thread_looks_for_the_largest(tmp_path):
    class Joined:
        """Runs whose size another thread's runs do not wait for."""

        @property
        def in_memory_bytes(self):
            thread = threading.Thread(target=Runs, args=(pool,))
            thread.start()
            thread.join(0.05)
            threads.append(thread)
            return 0

        def close(self):
            pass

    threads = []
    with SpillPool(10, str(tmp_path)) as pool:
        pool.runs.add(Joined())
        with pool.lock:
            pool.account(11)  # looks at every size
        for thread in threads:
            thread.join()
    assert threads
