"""Part of ``validate``: numbers that must be a permutation, each there once, over one array or several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphprep.kernels.cpu.ids.check import find_unset, mark_ids
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray

_SLICE = 1 << 18  # numbers read at once: 2 MiB


def check_permutation(
    arrays: Sequence[CheckedArray],
    size: int,
    what: str,
    faults: Faults,
    window_bytes: int,
    *,
    lowest: int = 0,
    missing: tuple[str, str] = ("", "{} is missing"),
) -> bool:
    """Check that arrays hold ``lowest`` to ``lowest + size - 1``, each once, with a bitmap of as many at a time as fit.

    ``missing``: the place of those that are not there, that of the only array by default, and what is said of them. Returns
    whether all is well.
    """
    before, window = faults.num, max(_SLICE, window_bytes * 8 // 64 * 64)
    outside = f"expected {'an' if what[0] == 'e' else 'a'} {what} in [{lowest}, {lowest + size}), found {{}}"
    for first in range(0, size, window):
        count = min(window, size - first)
        bits = np.zeros((count + 63) // 64, np.uint64)
        for array in arrays:
            for start in range(0, array.num_rows, _SLICE):
                found = array.read(start, min(start + _SLICE, array.num_rows)).astype(np.int64, copy=False)
                if first == 0:
                    faults.add_rows(array.path, (found < lowest) | (found >= lowest + size), start, outside, found)
                repeats = np.zeros(found.size, np.bool_)
                repeats[mark_ids(found - lowest, first, count, bits)] = True
                faults.add_rows(array.path, repeats, start, "{} {} was there before", what, found)
        num_missing, some = find_unset(bits, count, faults.limit)
        for number in some.tolist():
            faults.add(missing[0] or arrays[0].path, missing[1].format(f"{what} {lowest + first + number}"))
        faults.num += num_missing - some.size
    return faults.num == before
