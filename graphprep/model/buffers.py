"""Arrays that stay where they are, so that a place in one of them is a handle: the array's number and an offset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Buffers:
    """Contiguous arrays of uint64, kept alive; None stands for one that is not in memory."""

    arrays: tuple[NDArray[Any] | None, ...]

    @cached_property
    def addresses(self) -> NDArray[np.int64]:
        """Return where each array begins, for kernels of the host: int64[k], 0 for None."""
        import numpy as np

        addresses = np.zeros(len(self.arrays), np.int64)
        for number, array in enumerate(self.arrays):
            if array is not None:
                addresses[number] = array.ctypes.data
        return addresses

    def with_one_more(self, array: NDArray[Any]) -> Buffers:
        """Return the same arrays, and another behind them."""
        import numpy as np

        more = Buffers((*self.arrays, array))
        more.__dict__["addresses"] = np.append(self.addresses, array.ctypes.data)
        return more
