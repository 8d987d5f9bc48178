"""CUB's radix sort and scan in place of ours, by NVIDIA's ``cuda-cccl`` where that loads; nothing needs it.

It compiles an algorithm for seconds when it is first asked for. What it made is kept with the user's caches, a file for each
version, architecture, algorithm and types. Not tried on a GPU yet.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from xxhash import xxh3_128_digest

from graphprep.kernels.compiler.kept import read_private, write_private
from graphprep.kernels.cuda.probe import Device

_DIGEST_BYTES = 16


def find_fast(device: Device) -> Callable[[], Fast] | None:
    """Return what makes a room's ``Fast`` for a device; None where ``cuda-cccl`` does not load, and for the simulator."""
    if device.is_simulated:
        return None
    try:
        compute, release = import_module("cuda.compute"), version("cuda-cccl")
    except (ImportError, OSError, PackageNotFoundError):
        return None
    if not getattr(compute, "_BINDINGS_AVAILABLE", False):
        return None
    major, minor = device.capability
    return lambda: Fast(compute, f"{release}-sm_{major}{minor}")


class FastError(Exception):
    """An algorithm of ``cuda.compute`` failed while it ran."""


class _NotKeptError(Exception):
    """An algorithm cannot be written down."""


class Fast:
    """Algorithms of one room: a thread at a time may use them."""

    def __init__(self, compute: Any, build: str) -> None:
        self._compute = compute
        self._build = build
        self.fault = ""
        self._made: dict[str, Any] = {}

    def sort(self, room: Any, keys: Any, payload: Any, more: tuple[Any, Any], ranges: Any) -> tuple[Any, Any] | None:
        """Sort as ``radix.sort_pairs`` does; ``more`` are arrays like keys and payload.

        None: it cannot be compiled here, and nothing was done. Raises FastError.
        """
        both = self._compute.DoubleBuffer
        buffers = both(keys, more[0]), both(payload, more[1]) if payload.size else None
        given = {"d_in_keys": buffers[0], "d_out_keys": None, "d_in_values": buffers[1], "d_out_values": None}
        name = f"sort-{keys.dtype.str[1:]}-{payload.dtype.str[1:] if payload.size else 'none'}"
        order = self._compute.SortOrder.ASCENDING
        sort = self._find(room, name, lambda: self._compute.make_radix_sort(**given, order=order))
        if sort is None:
            return None
        for low, high in ranges:
            if high > low:
                bits = {"num_items": keys.size, "begin_bit": low, "end_bit": high}
                self._run(room, sort, **given, **bits)
        return buffers[0].current(), payload if buffers[1] is None else buffers[1].current()

    def scan(self, room: Any, values: Any, out: Any) -> bool:
        """Scan as ``scan.exclusive_scan`` does. Returns whether it can be compiled here. Raises FastError."""
        given = {"d_in": values, "d_out": out, "op": self._compute.OpKind.PLUS, "init_value": np.zeros(1, np.int64)}
        scan = self._find(room, "scan", lambda: self._compute.make_exclusive_scan(**given))
        if scan is not None:
            self._run(room, scan, **given, num_items=values.size)
        return scan is not None

    def _run(self, room: Any, algorithm: Any, **given: Any) -> None:
        stream = _Stream(room.stream)
        try:
            num_bytes = algorithm(temp_storage=None, **given, stream=stream)
            temporary = room.take("temporary", max(1, num_bytes), np.uint8)
            algorithm(temp_storage=temporary, **given, stream=stream)
        except RuntimeError as error:  # what it makes of any failure of the device
            room.stream.synchronize()  # raises what that is, where the device is lost
            raise FastError(str(error)) from error

    def _find(self, room: Any, name: str, make: Callable[[], Any]) -> Any:
        """Return an algorithm that no other thread uses now; None: it cannot be compiled here, and ``fault`` says why."""
        if name not in self._made:
            try:
                self._made[name] = self._load(name) or self._keep(name, make())
            except _NotKeptError:
                return make()  # the thread's own, however often
            except Exception as error:  # of whichever part of the toolkit is missing; nothing needs it
                self.fault = f"CUB's {name} does not compile here ({' '.join(str(error).split())[:120]})"
                self._made[name] = None
                if room.tally is not None:
                    room.tally.note(self.fault)
        return self._made[name]

    def _path(self, name: str) -> Path:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return caches / "graphprep" / f"cccl-{self._build}-{name}.bin"

    def _load(self, name: str) -> Any:
        """Return what was kept; None where nothing was, or somebody else may have written it, or it is damaged."""
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            content = read_private(self._path(name))
            blob = content[_DIGEST_BYTES:]
            if content[:_DIGEST_BYTES] == xxh3_128_digest(blob):
                return self._compute.deserialize(blob)
        return None

    def _keep(self, name: str, made: Any) -> Any:
        """Keep what was made, which is its thread's in all rooms, and return the room's own. Raises _NotKeptError."""
        try:
            blob = self._compute.serialize(made)
        except RuntimeError as error:
            raise _NotKeptError from error
        with contextlib.suppress(OSError, RuntimeError):  # no folder takes it
            write_private(self._path(name), xxh3_128_digest(blob) + blob)
        return self._compute.deserialize(blob)


class _Stream:
    """A stream of Numba, as ``cuda.compute`` wants it."""

    def __init__(self, stream: Any) -> None:
        self._handle = getattr(stream, "handle", 0)

    def __cuda_stream__(self) -> tuple[int, int]:
        """Return (version, handle)."""
        return 0, int(getattr(self._handle, "value", self._handle) or 0)
