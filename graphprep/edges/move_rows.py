"""Rows whose entries are ordered by the other end's ID: these IDs are new, so rows are sorted again as they move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Array, Blocks, Ints, MovePiece, Workspace, copy_spans
from graphprep.engine.local import map_ordered
from graphprep.store.items import Items


class MovedRows(Protocol):
    """Entries in a new order."""

    @property
    def blocks(self) -> Blocks:
        """Return the rows in which they stand."""

    def old_positions(self, piece: MovePiece) -> Ints:
        """Return where a piece's entries stood in the old array."""


@dataclass(frozen=True)
class SortedRows:
    """Entries in their final order.

    ``others`` [m] are their other ends, ``inner`` (int32 or int64 [m]) is where in its old row each entry stood.
    """

    blocks: Blocks
    others: NDArray[Any]
    inner: NDArray[np.int32] | NDArray[np.int64]

    def old_positions(self, piece: MovePiece) -> Ints:
        """Return where a piece's entries stood in the old array."""
        blocks = self.blocks
        assert blocks.bounds is not None
        assert blocks.new_bounds is not None
        starts, stops = blocks.spans(piece)
        first = int(blocks.new_bounds[piece.low]) + piece.skip
        if piece.size >= 0:
            return np.asarray(starts[0] + self.inner[first : first + piece.size], np.int64) - piece.skip
        counts = stops - starts
        return np.asarray(np.repeat(starts, counts) + self.inner[first : first + int(counts.sum())], np.int64)

    def first_entry(self, piece: MovePiece) -> int:
        """Return the first of a piece's entries."""
        assert self.blocks.new_bounds is not None
        return int(self.blocks.new_bounds[piece.low]) + piece.skip


def sort_entries(moved: Iterator[Array], blocks: Blocks, dtype: str, room: Workspace) -> SortedRows:
    """Sort the entries of every row by their new other ends, which come in the order of the new rows; stable."""
    assert blocks.new_bounds is not None
    bounds = blocks.new_bounds
    size, longest = int(bounds[-1]), _longest(bounds)
    make = room.scratch.zeros
    found = SortedRows(blocks, make(size, dtype), make(size, np.int32 if longest < 2**31 else np.int64))
    at = 0
    for others in moved:
        found.others[at : at + others.size] = others
        at += others.size
    most = room.fit(4 * found.others.itemsize)

    def sort(rows: tuple[int, int]) -> None:
        start, stop = int(bounds[rows[0]]), int(bounds[rows[1]])
        with room.scratch.inner() as spare:
            make = np.zeros if stop - start <= most else spare.zeros
            spares = (make(min(longest, stop - start), array.dtype) for array in (found.others, found.inner))
            local = bounds[rows[0] : rows[1] + 1] - start
            room.kernels.sort_rows(found.others[start:stop], local, found.inner[start:stop], *spares)

    for _ in map_ordered(sort, blocks.cut(most), room.threads):
        pass
    return found


def _longest(bounds: Ints) -> int:
    step = 1 << 18
    return max((int(np.diff(bounds[start : start + step + 1]).max()) for start in range(0, bounds.size - 1, step)), default=0)


def move_entries(items: Items, rows: MovedRows, chain: Sequence[Ints], room: Workspace) -> Iterator[Array]:
    """Yield what belongs to the entries in their final order; ``chain`` leads from an entry to its items, if not one each.

    Each of ``chain`` is offsets (int64[k + 1]) among the items of the next.
    """
    spans = _spans(items, rows, chain, room)
    if not items.is_mapped and items.num_bytes > room.held_bytes:
        return map_ordered(lambda span: items.gather(*span), spans, room.threads)
    values = items.whole()
    return map_ordered(lambda span: copy_spans(room.kernels, values, *span), spans, room.threads)


def _spans(items: Items, rows: MovedRows, chain: Sequence[Ints], room: Workspace) -> Iterator[tuple[Ints, Ints]]:
    most = room.fit(max(8, items.item_bytes))
    for piece in rows.blocks.pieces(most):
        starts = rows.old_positions(piece)
        stops = starts + 1
        for offsets in chain:
            starts, stops = offsets[starts], offsets[stops]
        ends = np.cumsum(stops - starts)
        low = 0
        while low < starts.size:
            before = int(ends[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + most, side="right")))
            yield starts[low:high], stops[low:high]
            low = high
