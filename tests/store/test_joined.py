"""Arrays of partitions read as one, cut and counted: against NumPy's own concatenation and slices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphprep.model.metadata import ArrayEntry
from graphprep.store import single as joined
from graphprep.store.single import ConcatenatedArray, ConcatenatedOffsets, CountingArray, SlicedArray, SlicedOffsets


class Held:
    """A stored array in memory, far away or not."""

    url = "held"

    def __init__(self, array, is_local):
        self._array = array
        self.is_local = is_local
        self.dtype, self.shape = array.dtype, array.shape
        self.entry = ArrayEntry("held.npy", array.dtype.name, array.shape, array.nbytes, "")

    def read(self, start=0, stop=None):
        return self._array[start:stop].copy()

    def take(self, rows):
        return self._array[rows]

    def gather(self, starts, stops):
        return np.concatenate([self._array[:0], *(self._array[a:b] for a, b in zip(starts, stops, strict=True))])

    def map(self):
        return self._array


PARTS = st.lists(st.integers(0, 5), min_size=1, max_size=6)
RUNS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=8)


@pytest.fixture(autouse=True)
def _few_stay_open(monkeypatch):
    monkeypatch.setattr(joined, "_MOST_OPEN", 2)


def runs_of(runs, size):
    """Runs of rows, of which some go over several parts."""
    starts = np.array([start % size for start, _ in runs if size], np.int64)
    lengths = np.array([length for _, length in runs], np.int64)[: starts.size]
    return starts, np.minimum(starts + lengths, size)


@given(
    sizes=PARTS,
    width=st.sampled_from([None, 2]),
    runs=RUNS,
    bounds=st.tuples(st.integers(0, 30), st.integers(0, 30)),
    near=st.booleans(),
)
def test_joined_arrays(sizes, width, runs, bounds, near):
    shape = () if width is None else (width,)
    whole = np.arange(sum(sizes) * (width or 1), dtype=np.int32).reshape(-1, *shape)
    parts = np.split(whole, np.cumsum(sizes)[:-1])
    array = ConcatenatedArray(lambda part: Held(parts[part], near), len(sizes))
    assert (array.shape, array.dtype, array.entry.num_bytes) == (whole.shape, whole.dtype, whole.nbytes)
    start, stop = min(bounds), max(bounds)
    np.testing.assert_array_equal(array.read(start, stop), whole[start:stop])
    np.testing.assert_array_equal(array.map(), whole)
    starts, stops = runs_of(runs, sum(sizes))
    expected = np.concatenate([whole[:0], *(whole[a:b] for a, b in zip(starts, stops, strict=True))])
    np.testing.assert_array_equal(array.gather(starts, stops), expected)
    np.testing.assert_array_equal(array.take(starts), whole[starts])
    low, high = min(start, whole.shape[0]), min(stop, whole.shape[0])
    for base in (array, Held(whole, near)):
        cut = SlicedArray(base, low, high)
        assert cut.shape == whole[low:high].shape
        np.testing.assert_array_equal(cut.read(), whole[low:high])
        np.testing.assert_array_equal(cut.map(), whole[low:high])
        np.testing.assert_array_equal(cut.read(1, 3), whole[low:high][1:3])


@given(
    counts=st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=5),
    rows=st.lists(st.integers(0, 30), max_size=6),
)
def test_joined_offsets(counts, rows):
    parts = [np.cumsum([0, *some], dtype=np.int64) for some in counts]
    whole = np.cumsum([0, *(count for some in counts for count in some)], dtype=np.int64)
    array = ConcatenatedOffsets(lambda part: Held(parts[part], True), len(parts))
    assert array.shape == whole.shape
    np.testing.assert_array_equal(array.read(), whole)
    for start in range(whole.size):
        np.testing.assert_array_equal(array.read(start, start + 3), whole[start : start + 3])
    rows = np.array([row % whole.size for row in rows], np.int64)
    np.testing.assert_array_equal(array.take(rows), whole[rows])
    inner = np.array([row for row in rows if row + 1 < whole.size], np.int64)
    expected = np.concatenate([whole[:0], *(whole[row : row + 2] for row in inner)])
    np.testing.assert_array_equal(array.gather(inner, inner + 2), expected)
    low, high = (0, 0) if whole.size == 1 else (whole.size // 3, whole.size - 1)
    cut = SlicedOffsets(array, low, high)
    np.testing.assert_array_equal(cut.read(), whole[low : high + 1] - whole[low])
    np.testing.assert_array_equal(cut.take(np.array([high - low])), whole[[high]] - whole[low])


def test_numbers_that_count_up():
    array = CountingArray("order.npy", 7)
    assert (array.shape, array.read().tolist(), array.read(2, 9).tolist()) == ((7,), [*range(7)], [2, 3, 4, 5, 6])
    assert array.gather(np.array([4, 0, 2]), np.array([6, 1, 2])).tolist() == [4, 5, 0]
    assert array.take(np.array([6, 6, 1])).tolist() == [6, 6, 1]
