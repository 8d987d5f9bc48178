"""Records in buckets against lists, in memory and spilled."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from graphprep.model.errors import StorageError
from graphprep.storage.spill.records import BucketRange, RecordRuns
from graphprep.storage.spill.runs import Runs, SpillPool


def _segment(rng, num_buckets: int, most: int, words: int):
    sizes = rng.integers(0, most, num_buckets)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return rng.integers(0, 2**31, (int(offsets[-1]), words)).astype(np.uint64), offsets


def _segments(runs: RecordRuns, bucket: int, **chosen) -> list[tuple[list[list[int]], int, int]]:
    return [
        (piece.records[start:stop].tolist(), int(base), piece.layout)
        for piece in runs.read(bucket, **chosen)
        for start, stop, base in zip(piece.starts, piece.starts[1:], piece.bases, strict=False)
    ]


def _contents(runs: RecordRuns) -> list[list[tuple[list[list[int]], int, int]]]:
    return [_segments(runs, bucket) for bucket in range(runs.num_buckets)]


@pytest.mark.parametrize("cap_bytes", [0, 5_000, 1 << 30])
def test_pieces_come_back_in_append_order(tmp_path, cap_bytes):
    rng = np.random.default_rng(1)
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 5)
        other = Runs(pool, 1)
        wanted: list[list[tuple[list[list[int]], int, int]]] = [[] for _ in range(5)]
        for number in range(8):
            words = 3 + number % 2
            records, offsets = _segment(rng, 5, 40, words)
            for bucket in range(5):
                part = records[offsets[bucket] : offsets[bucket + 1]]
                if len(part):
                    wanted[bucket].append((part.tolist(), 100 * number, number % 2))
            runs.append(records, offsets, 100 * number, number % 2)
            other.append(0, (np.arange(number * 100),))
            assert pool.in_memory_bytes <= cap_bytes
        assert _contents(runs) == wanted
        assert _contents(runs) == wanted  # as often as asked
        assert runs.num_records.tolist() == [sum(len(piece[0]) for piece in bucket) for bucket in wanted]
        assert sum(chunk[0].size for chunk in other.read(0)) == sum(number * 100 for number in range(8))
        assert bool(pool.spilled_bytes) == (cap_bytes < 1 << 30)
        runs.close()
        other.close()
        assert pool.in_memory_bytes == 0
    assert not list(tmp_path.iterdir())


def _words(some: BucketRange, segment: int, bucket: int, words: int = 1) -> list[int]:
    """Return the words of a bucket's records in a segment."""
    buffer = some.buffers.arrays[some.numbers[segment]]
    assert buffer.ctypes.data == some.buffers.addresses[some.numbers[segment]]
    start, stop = (some.offsets[segment] + words * int(some.starts[segment, bucket + more]) for more in (0, 1))
    return buffer.reshape(-1)[start:stop].tolist()


@pytest.mark.parametrize("cap_bytes", [0, 2_000, 1 << 30])
def test_words_of_some_buckets_are_held_where_they_lie(tmp_path, cap_bytes):
    rng = np.random.default_rng(2)
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 7)
        every: list[tuple[np.ndarray, np.ndarray]] = []
        for number in range(6):
            every.append(_segment(rng, 7, 20, 1 + number % 2))
            runs.append(every[-1][0].copy(), every[-1][1], 100 * number, number % 3)
            for first, stop in ((0, 7), (2, 4), (6, 7), (3, 3)):
                with runs.bucket_range(first, stop) as some, runs.bucket_range(0, 7) as _:
                    assert some.bases.tolist() == [100 * k for k in range(len(every))]
                    for k, (records, offsets) in enumerate(every):
                        for at in range(first, stop):
                            wanted = records[offsets[at] : offsets[at + 1]].reshape(-1)
                            assert _words(some, k, at, 1 + k % 2) == wanted.tolist()
        assert runs.layouts == [0, 1, 2, 0, 1, 2]
        assert runs.num_ids == max(100 * k + len(records) for k, (records, _) in enumerate(every))
        runs.close()
        with RecordRuns(pool, 2).bucket_range(0, 2) as nothing:
            assert nothing.starts.shape == (0, 3)


def test_what_is_held_stays_while_it_is_spilled(tmp_path):
    with SpillPool(1 << 30, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 1)
        runs.append(np.arange(50, dtype=np.uint64).reshape(-1, 1), np.array([0, 50]))
        with runs.bucket_range(0, 1) as some:
            runs.spill()
            assert _words(some, 0, 0) == list(range(50))
        with runs.bucket_range(0, 1) as some:
            assert _words(some, 0, 0) == list(range(50))


def test_a_spill_file_that_became_shorter_is_told(tmp_path):
    with SpillPool(0, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 1)
        runs.append(np.arange(50, dtype=np.uint64).reshape(-1, 1), np.array([0, 50]))
        (file,) = Path(tmp_path).rglob("runs-*")
        os.truncate(file, 80)
        with pytest.raises(StorageError, match="shorter"), runs.bucket_range(0, 1):
            pass


@pytest.mark.parametrize("cap_bytes", [0, 1 << 30])
def test_segments_without_wanted_ids_are_left_out(tmp_path, cap_bytes):
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 2)
        for base in (0, 10, 20):
            records = np.arange(30, dtype=np.uint64).reshape(10, 3)
            runs.append(records, np.array([0, 4, 10]), base)
        for ids, bases in (((10, 11), [10]), ((9, 21), [0, 10, 20]), ((25, 1 << 64), [20])):
            assert [base for _, base, _ in _segments(runs, 1, ids=ids)] == bases


def test_a_full_disk_is_told_and_loses_nothing(tmp_path, monkeypatch):
    with SpillPool(1 << 30, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 1)
        records = np.arange(30, dtype=np.uint64).reshape(10, 3)
        runs.append(records, np.array([0, 10]))

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("graphprep.storage.spill.segments.Appender.write", full)
        with pytest.raises(StorageError, match="space"):
            runs.spill()
        assert _contents(runs) == [[(records.tolist(), 0, None)]]


def test_closing_removes_the_file(tmp_path):
    with SpillPool(0, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 1)
        runs.append(np.zeros((4, 3), np.uint64), np.array([0, 4]))
        assert list(Path(tmp_path).rglob("runs-*"))
        runs.close()
        assert not list(Path(tmp_path).rglob("runs-*"))


@pytest.mark.parametrize("cap_bytes", [0, 1 << 30])
def test_pieces_are_joined_up_to_a_size(tmp_path, cap_bytes):
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        runs = RecordRuns(pool, 1)
        for number, size in enumerate((3, 4, 5, 20, 1)):
            runs.append(np.full((size, 1), number, np.uint64), np.array([0, size]), 100 * number)
        for most, sizes in ((1 << 62, [33]), (12, [12, 20, 1]), (7, [7, 5, 20, 1]), (0, [3, 4, 5, 20, 1])):
            pieces = list(runs.read(0, most_records=most))
            assert [len(piece.records) for piece in pieces] == sizes
            assert [int(base) for piece in pieces for base in piece.bases] == [0, 100, 200, 300, 400]


@pytest.mark.parametrize("cap_bytes", [2_000, 1 << 30])
def test_chunks_that_are_consumed_are_forgotten_one_by_one(tmp_path, cap_bytes):
    """Also while others ask for memory: they must spill their own."""
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        runs, other = Runs(pool, 1, coalesce=False), Runs(pool, 1)
        for number in range(6):
            runs.append(0, (np.full(20, number),))
        of_each = runs.in_memory_bytes // 6
        found = []
        for number, (chunk,) in enumerate(runs.read(0, consume=True)):
            found.append(int(chunk[0]))
            other.append(0, (np.zeros(10 * number),))
            assert runs.in_memory_bytes == 0  # nobody is to spill what is about to be read
            assert pool.in_memory_bytes == (5 - number) * of_each + other.in_memory_bytes
        assert found == list(range(6))
        runs.close()
        other.close()
        assert pool.in_memory_bytes == 0


def test_consuming_stops_at_any_point(tmp_path):
    with SpillPool(1 << 30, str(tmp_path)) as pool:
        runs = Runs(pool, 1, coalesce=False)
        for number in range(3):
            runs.append(0, (np.full(20, number),))
        chunks = runs.read(0, consume=True)
        next(chunks)
        runs.close()
        assert pool.in_memory_bytes == 0
        assert len(list(chunks)) == 2
        assert pool.in_memory_bytes == 0
