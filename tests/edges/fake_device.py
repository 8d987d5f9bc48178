"""A device that is none: the CPU's kernels behind its interface, which count their calls and can fail in any of them."""

from __future__ import annotations

import threading

import numpy as np

from graphprep.edges.device.find import find_kernels
from graphprep.edges.device.guard import OpenDevice
from graphprep.engine.ledger import Need
from graphprep.kernels.edges import Kernels, Rows
from graphprep.model.errors import DeviceError

NAMES = [name for name in vars(Kernels) if not name.startswith("_")]
FREE = 10 << 30
REASON = "CUDA_ERROR_ILLEGAL_ADDRESS"
SCATTERED = {
    "scatter_edges": (4, 5),
    "scatter_entries": (5, 6),
    "scatter_blocks": (4, 5),
}  # where buckets end, and what is moved
# What other kernels fill, by position; of ``place_edges`` below.
FILLED = {
    "order_descending": (1, 2),
    "start_buckets": (2,),
    "unpack_edges": (4, 5, 6),
    "gather_edges": (4, 5),
    "scatter_keys": (4, 5, 6),
    "gather_bucket": (2, 3),
    "first_of_runs": (2,),
    "invert": (1,),
    "relabel_ids": (2,),
    "fill_lengths": (2,),
    "copy_blocks": (3,),
    "sort_rows": (2, 3, 4),
}


def scribble(array):
    """Fill an array with nonsense."""
    array.view(np.uint8).reshape(-1)[:] = 0xA5


class LostError(Exception):
    """What a driver raises."""


class FakeDevice:
    """A device that is found; its call number ``fail_at``, counted from 0, fails, and so do all later ones."""

    name = "cuda:0 Fake 3000"
    free_bytes = FREE

    def __init__(self, fail_at=None):
        self.fail_at = fail_at
        self.num_calls = 0
        self.given = []
        self._lock = threading.Lock()
        self._cpu = find_kernels()

    def open(self, device_bytes, pinned_bytes, cpu):
        """See ``FoundDevice``."""
        self.given.append((device_bytes, pinned_bytes))
        needs = Need("slots", device_bytes, "three of them"), Need("pinned", pinned_bytes, "on their way")
        return OpenDevice(self, lambda error: DeviceError(str(error)) if isinstance(error, LostError) else None, *needs)

    def __getattr__(self, name):
        if name not in NAMES:
            raise AttributeError(name)
        kernel = getattr(self._cpu, name)

        def call(*given, **named):
            with self._lock:
                number, self.num_calls = self.num_calls, self.num_calls + 1
            if self.fail_at is not None and number >= self.fail_at:
                self._leave_nonsense(name, given, named)
                raise LostError(REASON)
            return kernel(*given, **named)

        return call

    def _leave_nonsense(self, name, given, named):
        """Leave in what the call was to fill what a device might have left there."""
        for at in FILLED.get(name, ()):
            if len(given) > at and given[at].size:
                scribble(given[at])
        if name in SCATTERED:
            self._scatter_nonsense(name, list(given), named)
        if name == "place_edges":
            self._place_nonsense(given, named)

    def _scatter_nonsense(self, name, given, named):
        """Records of other calls lie between those of this one."""
        ends_at, out_at = SCATTERED[name]
        ends, out = given[ends_at], given[out_at]
        given[ends_at], given[out_at] = ends.copy(), out.copy()
        getattr(self._cpu, name)(*given, **named)
        for first, stop in zip(ends.tolist(), given[ends_at].tolist(), strict=True):
            scribble(out[first:stop])

    def _place_nonsense(self, given, named):
        segments, first, stop, rows = given
        copy = Rows(rows.indptr.copy(), rows.indices.copy(), rows.edge_ids.copy())
        places = {key: np.zeros_like(named[key]) for key in ("arrival", "position") if named.get(key) is not None}
        self._cpu.place_edges(segments, first, stop, copy, **{**named, **places})
        at = named.get("at", 0)
        size = int(copy.indptr[-1]) - at if copy.indptr.size > 1 else 0
        scribble(rows.indptr[1:])
        scribble(rows.indices[at : at + size])
        scribble(rows.edge_ids[at : at + size])
        for key in places:
            scribble(named[key])
