"""The tables from which DeepGNN's engine draws elements by weight: one a type and partition, in the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.alias import fill_alias, scale_weights, write_table
from graphprep.storage.spill.scratch import Scratch

Ints = NDArray[np.int64]
_ROWS = 1 << 16  # of a table written at a time: 2.3 MiB at most


class Sampler:
    """The elements of a type, IDs (uint64) of ``width`` numbers, with weights (float32), in arrays of ``scratch``."""

    def __init__(self, most: int, width: int, scratch: Scratch) -> None:
        self._width = width
        self._scratch = scratch
        self._ids = scratch.zeros(most * width, np.uint64).reshape(most, width)
        self._weights = scratch.zeros(most, np.float32)
        self.size = 0

    def add(self, ids: tuple[NDArray[np.uint64], ...], weights: NDArray[Any]) -> None:
        """Add elements: each number of their IDs, and weights, which are rounded to float32."""
        end = self.size + weights.size
        for column, numbers in enumerate(ids):
            self._ids[self.size : end, column] = numbers
        with np.errstate(over="ignore"):
            self._weights[self.size : end] = weights
        self.size = end

    def table(self) -> Iterator[NDArray[Any]]:
        """Yield the table in pieces: IDs, those of the alias (0 where there is none), and the probability of the former.

        The arrays are the caller's until the next piece; the weights are lost.
        """
        scaled = self._weights[: self.size]
        scale_weights(scaled)
        index = np.int32 if self.size < 2**31 else np.int64
        aliases = self._scratch.zeros(self.size, index)
        fill_alias(scaled, aliases, self._scratch.zeros(self.size, index))
        words = self._ids.view(np.uint32)
        for low in range(0, self.size, _ROWS):
            records = np.empty((min(_ROWS, self.size - low), 2 * words.shape[1] + 1), np.uint32)
            write_table(words, scaled, aliases, low, records)
            yield records
