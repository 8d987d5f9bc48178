"""Part of ``validate``: offsets, which begin at 0, never fall, and end at the number of values."""

from __future__ import annotations

import numpy as np

from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray

_SLICE = 1 << 19  # offsets read at once: 4 MiB


def check_offsets(offsets: CheckedArray, num_values: int, faults: Faults) -> bool:
    """Check that offsets begin at 0, never fall, and end at the number of values. Returns whether they do."""
    before = faults.num
    previous = 0
    for start in range(0, offsets.num_rows, _SLICE):
        values = offsets.read(start, min(start + _SLICE, offsets.num_rows))
        if start == 0 and values[0] != 0:
            faults.add(f"{offsets.path}[0]", f"expected 0, found {values[0]}")
        earlier = np.concatenate([np.array([previous if start else values[0]], np.int64), values[:-1]])
        words = "expected at least {}, the one before, found {}"
        faults.add_rows(offsets.path, values < earlier, start, words, earlier, values)
        previous = int(values[-1])
    if faults.num == before and previous != num_values:
        last = offsets.num_rows - 1
        faults.add(f"{offsets.path}[{last}]", f"expected {num_values}, the number of values, found {previous}")
    return faults.num == before
