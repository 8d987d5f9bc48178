"""Kernels of draws against plain Python, at sizes that no store of a test has."""

import numpy as np
import pytest

from graphprep.kernels.cpu.sample.draw import draw_uniform, find_bounds, stream_keys, take_entries
from graphprep.kernels.cpu.sample.number import Numbering


@pytest.mark.parametrize("num_nodes", [1000, 2**40], ids=["packed", "wide"])
@pytest.mark.parametrize("timed", [False, True])
def test_nodes_are_numbered_in_the_order_of_meeting(num_nodes, timed):
    random = np.random.default_rng(2)
    nodes = random.integers(0, num_nodes, 300)[random.integers(0, 300, 900)]
    times = random.integers(-3, 3, 900) if timed else None
    met = Numbering(900, num_nodes, timed=timed)
    numbers = np.empty(900, np.int32)
    for some in (slice(0, 400), slice(400, 900)):
        met.add(nodes[some], None if times is None else times[some], numbers[some])
    wanted = {}
    keys = list(zip(nodes.tolist(), times.tolist() if timed else [None] * 900, strict=True))
    assert numbers.tolist() == [wanted.setdefault(key, len(wanted)) for key in keys]
    assert met.nodes.tolist() == [node for node, _ in wanted]
    assert (met.times is None) != timed
    if timed:
        assert met.times.tolist() == [time for _, time in wanted]


def test_long_rows_are_drawn_from_without_repeats():
    """A row of nearly 2^32 entries: every number is rejected where it must be, and none is drawn twice."""
    degrees = np.array([2**32 - 1, 5, 3_000_000_000])
    starts = np.array([0, 2**32 - 1, 2**32 + 4])
    offsets = np.array([0, 200, 205, 405])
    positions = np.empty(405, np.int64)
    keys = stream_keys(1, [0], [0], 0, 0)
    draw_uniform(np.arange(3), None, None, keys, starts, degrees, offsets, False, positions)
    for row in range(3):
        found = positions[offsets[row] : offsets[row + 1]] - starts[row]
        assert (np.diff(found) > 0).all()
        assert found[0] >= 0
        assert found[-1] < degrees[row]
    assert positions[200:205].tolist() == list(range(2**32 - 1, 2**32 + 4))
    assert np.median(positions[:200]) == pytest.approx(2**31, rel=0.2)


@pytest.mark.parametrize(("indptr", "bad"), [([0, 2, 1, 4], 1), ([0, 2, 3, 9], 2), ([-1, 2, 3, 4], 0)])
def test_faulty_offsets_are_told(indptr, bad):
    starts, degrees = np.empty(3, np.int64), np.empty(3, np.int64)
    assert find_bounds(None, np.arange(3), np.array(indptr), 0, 4, starts, degrees) == bad
    assert find_bounds(None, np.arange(3), np.array([0, 2, 3, 4]), 0, 4, starts, degrees) == -1
    assert (starts.tolist(), degrees.tolist()) == ([0, 2, 3], [2, 1, 1])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_entries_are_taken_in_any_order(dtype):
    values, positions = np.arange(100, 120, dtype=dtype), np.array([1007, 1003, 1019, 1003])
    out = np.full(4, -1)
    take_entries(np.array([3, 0]), positions, values, 1000, out)
    assert out.tolist() == [107, -1, -1, 103]
    take_entries(None, positions, values, 1000, out)
    assert out.tolist() == [107, 103, 119, 103]
