"""What stands in for ``cuda.compute``: it sorts and scans with NumPy, as CUB does; arrays of the host, or of the simulator."""

from __future__ import annotations

import pickle
import threading
from enum import Enum
from types import SimpleNamespace

import numpy as np


def here(array):
    """Return what holds an array's items."""
    return getattr(array, "_ary", array)


class DoubleBuffer:
    def __init__(self, current, alternate):
        self.buffers, self.selector = [current, alternate], 0

    def current(self):
        return self.buffers[self.selector]


class Sort:
    """Sorts; the result lies in the other buffer."""

    def __init__(self, handle):
        self.handle = handle

    def __call__(self, *, temp_storage, d_in_keys, d_in_values, num_items, begin_bit, end_bit, stream, **_):
        assert stream.__cuda_stream__() == (0, self.handle)
        if temp_storage is None:
            return 100
        assert temp_storage.size == 100
        keys = here(d_in_keys.current())
        part = keys >> np.uint64(begin_bit) & np.uint64((1 << end_bit - begin_bit) - 1)
        order = np.argsort(part[:num_items], kind="stable")
        for buffer in (d_in_keys, d_in_values):
            if buffer is not None:
                here(buffer.buffers[1 - buffer.selector])[:] = here(buffer.current())[order]
                buffer.selector ^= 1
        return 100


class Scan:
    def __init__(self, handle):
        self.handle = handle

    def __call__(self, *, temp_storage, d_in, d_out, op, init_value, num_items, stream):
        assert (op, init_value.tolist()) == ("plus", [0])
        if temp_storage is not None:
            values = here(d_in)[:num_items]
            here(d_out)[:] = np.cumsum(values) - values
        return 0


def stand_in(handle=0):
    """Return the module; it notes in ``compiled`` what it is asked for. ``handle`` is that of the stream that it is to run on.

    As there, a thread that asks again for an algorithm over the same types gets the same object.
    """
    compiled, own = [], threading.local()

    def type_of(value):
        return str(getattr(value.current() if isinstance(value, DoubleBuffer) else value, "dtype", value))

    def make(kind):
        def build(**given):
            compiled.append(kind)
            return vars(own).setdefault(f"{kind} {[type_of(one) for one in given.values()]}", kind(handle))

        return build

    return SimpleNamespace(
        _BINDINGS_AVAILABLE=True,
        DoubleBuffer=DoubleBuffer,
        SortOrder=Enum("SortOrder", "ASCENDING"),
        OpKind=SimpleNamespace(PLUS="plus"),
        make_radix_sort=make(Sort),
        make_exclusive_scan=make(Scan),
        serialize=pickle.dumps,
        deserialize=pickle.loads,
        compiled=compiled,
    )
