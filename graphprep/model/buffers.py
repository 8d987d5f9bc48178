"""Arrays that stay where they are, so that a place in one of them is a handle: the array's number and an offset."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Buffers(NamedTuple):
    """Contiguous arrays of uint64, kept alive; None stands for one that is not in memory.

    ``addresses`` (int64[k]) are where they begin, for kernels of the host, 0 for None.
    """

    arrays: tuple[NDArray[Any] | None, ...]
    addresses: NDArray[np.int64]

    def with_one_more(self, array: NDArray[Any]) -> Buffers:
        """Return the same arrays, and another behind them."""
        import numpy as np

        return Buffers((*self.arrays, array), np.append(self.addresses, array.ctypes.data))


def hold_buffers(arrays: Iterable[NDArray[Any]]) -> Buffers:
    """Hold arrays that are all in memory."""
    import numpy as np

    held = tuple(arrays)
    return Buffers(held, np.array([array.ctypes.data for array in held], np.int64))
