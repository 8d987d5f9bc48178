"""What stands in for CUB on the simulator."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np


class ToyCompute:
    """Does on the host what is asked of cuda.compute, to see that this script and ``cccl`` ask rightly."""

    SortOrder, OpKind = SimpleNamespace(ASCENDING=0), SimpleNamespace(PLUS=0)

    class DoubleBuffer:
        """Two arrays, and which of them is in use."""

        def __init__(self, first: Any, second: Any) -> None:
            self.arrays = [first, second]

        def current(self) -> Any:
            """Return the array in use."""
            return self.arrays[0]

    def radix_sort(self, *, d_in_keys: Any, d_in_values: Any, begin_bit: int, end_bit: int, **given: Any) -> int:
        """Sort to the other buffers, or to ``d_out_keys`` and ``d_out_values``."""
        if given.get("temp_storage", self) is None:
            return 1
        is_double = isinstance(d_in_keys, self.DoubleBuffer)
        keys = (d_in_keys.current() if is_double else d_in_keys).copy_to_host()
        order = np.argsort(
            keys >> np.array(begin_bit, keys.dtype) & np.array((1 << end_bit) - 1 >> begin_bit, keys.dtype), kind="stable"
        )
        for one, out in ((d_in_keys, given["d_out_keys"]), (d_in_values, given["d_out_values"])):
            if is_double and one is not None:
                one.arrays[1].copy_to_device(one.current().copy_to_host()[order])
                one.arrays.reverse()
            elif not is_double:
                out.copy_to_device(one.copy_to_host()[order])
        return 1

    def scan(self, *, temp_storage: Any, d_in: Any, d_out: Any, **_: Any) -> int:
        """Scan."""
        if temp_storage is not None:
            values = d_in.copy_to_host()
            d_out.copy_to_device(np.cumsum(values) - values)
        return 1

    def make_radix_sort(self, **_: Any) -> Callable[..., int]:
        """Return what sorts."""
        return self.radix_sort

    def make_exclusive_scan(self, **_: Any) -> Callable[..., int]:
        """Return what scans."""
        return self.scan

    def serialize(self, _: Any) -> bytes:
        """Keep nothing."""
        raise RuntimeError
