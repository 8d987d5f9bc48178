"""Any rows of any kind of stored column, as cells: against the values that the arrays were made of."""

from __future__ import annotations

import numpy as np
import pytest

from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import concat_cells
from graphprep.store.columns.stored import read_cells, read_present

SIZE = 5
DENSE = np.arange(20, dtype=np.float32).reshape(5, 2, 2)
OFFSETS = np.array([0, 2, 2, 5, 5, 6])
ENTRIES = np.array([0, 1, 1, 4, 5, 5])
ARRAYS = {
    "dense": DENSE,
    "scalar": np.arange(5, dtype=np.int16),
    "ragged.offsets": OFFSETS,
    "ragged.values": np.arange(6, dtype=np.float64),
    "sparse.offsets": OFFSETS,
    "sparse.values": np.arange(6, dtype=np.float64),
    "sparse.coords": np.arange(12).reshape(6, 2),
    "flat.offsets": OFFSETS,
    "flat.values": np.arange(6, dtype=np.float64),
    "flat.coords": np.arange(6),
    "binary.offsets": OFFSETS,
    "binary.values": np.frombuffer(b"abcdef", np.uint8),
    "binary.present": np.array([True, False, True, True, True]),
    "temporal.entry_offsets": ENTRIES,
    "temporal.offsets": np.array([0, 1, 1, 3, 4, 6]),
    "temporal.values": np.arange(6, dtype=np.int32),
    "temporal.start": np.array([5, 1, 2, 3, 7]),
    "temporal.end": np.array([9, -1, 4, -1, 8]),
}
COLUMNS = {
    "dense": ColumnSchema("dense", "dense", "float32", (2, 2)),
    "scalar": ColumnSchema("scalar", "dense", "int16"),
    "ragged": ColumnSchema("ragged", "ragged", "float64"),
    "sparse": ColumnSchema("sparse", "sparse", "float64", (2,)),
    "flat": ColumnSchema("flat", "sparse", "float64"),
    "binary": ColumnSchema("binary", "binary", "uint8", optional=True),
    "temporal": ColumnSchema("temporal", "temporal", "int32", end=True),
}
RANGES = [(0, SIZE), (1, 3), (2, 2), (4, 5), (0, 1), (5, 5)]


class Arrays:
    """A store that has the arrays above, as columns of one partition."""

    def array(self, part, path):
        return Array(ARRAYS[path.removeprefix("stem/").removesuffix(".npy")])


class Array:
    def __init__(self, array):
        self._array = array

    def read(self, start=0, stop=None):
        return self._array[start:stop].copy()


def rows_of(cells):
    """The rows of cells as Python values."""
    if cells.entry_counts is None:
        ends = np.cumsum(cells.item_counts)
        spans = [slice(end - count, end) for count, end in zip(cells.item_counts, ends, strict=True)]
        width = 0 if cells.coords is None or not cells.flat.size else cells.coords.size // cells.flat.size
        coords = [[] if not width else cells.coords.reshape(-1, width)[span].tolist() for span in spans]
        return [(cells.flat[span].tolist(), some) for span, some in zip(spans, coords, strict=True)]
    rows, entry, value = [], 0, 0
    for count in cells.entry_counts.tolist():
        found = []
        for at in range(entry, entry + count):
            size = int(cells.item_counts[at])
            found.append((int(cells.start[at]), int(cells.end[at]), cells.flat[value : value + size].tolist()))
            value += size
        rows.append(found)
        entry += count
    return rows


SIMPLE = [([0.0, 1.0], 0), ([], 2), ([2.0, 3.0, 4.0], 2), ([], 5), ([5.0], 5)]
EXPECTED = {
    "dense": [(row.reshape(-1).tolist(), []) for row in DENSE],
    "scalar": [([i], []) for i in range(5)],
    "ragged": [(values, []) for values, _ in SIMPLE],
    "sparse": [(values, [[2 * (at + i), 2 * (at + i) + 1] for i in range(len(values))]) for values, at in SIMPLE],
    "flat": [(values, [[at + i] for i in range(len(values))]) for values, at in SIMPLE],
    "binary": [(list(text), []) for text in (b"ab", b"", b"cde", b"", b"f")],
    "temporal": [[(5, 9, [0])], [], [(1, -1, []), (2, 4, [1, 2]), (3, -1, [3])], [(7, 8, [4, 5])], []],
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(("low", "high"), RANGES)
def test_rows_of_a_column(name, low, high):
    cells = read_cells(Arrays(), 0, f"stem/{name}", COLUMNS[name], low, high)
    assert cells.num_rows == high - low
    assert rows_of(cells) == EXPECTED[name][low:high]
    assert cells.values.dtype == COLUMNS[name].dtype


@pytest.mark.parametrize("name", COLUMNS)
def test_pieces_join_to_the_whole(name):
    read = [read_cells(Arrays(), 0, f"stem/{name}", COLUMNS[name], low, high) for low, high in ((0, 2), (2, 2), (2, 5))]
    assert rows_of(concat_cells(read)) == EXPECTED[name]
    assert rows_of(read[2].take(np.array([2, 0]))) == [EXPECTED[name][4], EXPECTED[name][2]]


def test_which_rows_have_the_column():
    assert read_present(Arrays(), 0, "stem/dense", COLUMNS["dense"], 0, 5) is None
    assert read_present(Arrays(), 0, "stem/binary", COLUMNS["binary"], 1, 3).tolist() == [False, True]


def test_entries_without_stored_ends_have_none():
    column = ColumnSchema("temporal", "temporal", "int32", end=False)
    assert read_cells(Arrays(), 0, "stem/temporal", column, 0, 5).end.tolist() == [-1] * 5
