"""cupy, torch and cuda.compute, where they can be imported: how they build rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
from toy import ToyCompute

from graphprep.kernels.cuda.frontend import cuda
from graphprep.kernels.cuda.resident import as_resident


def as_peer(library: str, is_toy: bool) -> tuple[Any, Callable[[Any], Any], Callable[[], Any], Callable[[], Any]]:
    """Return a library, what gives it an array of the device, what waits for it, and what gives its memory back.

    On the simulator torch works on the host, and NumPy takes cupy's place.
    """
    if library == "torch":
        import torch

        if is_toy:
            return torch, lambda array: torch.as_tensor(array.copy_to_host()), lambda: None, lambda: None
        if not torch.cuda.is_available():
            raise RuntimeError("this torch has no CUDA, or there is no device")
        return torch, lambda array: torch.as_tensor(array, device="cuda"), torch.cuda.synchronize, torch.cuda.empty_cache
    if is_toy:
        return np, lambda array: array.copy_to_host(), lambda: None, lambda: None
    import cupy

    return cupy, cupy.asarray, cupy.cuda.Device().synchronize, cupy.get_default_memory_pool().free_all_blocks


def from_peer(array: Any) -> Any:
    """Return a peer's array as Numba's, on the device; the simulator gets a copy of what lies on the host."""
    if hasattr(array, "__cuda_array_interface__"):
        return as_resident(array)
    return cuda.to_device(np.ascontiguousarray(array))


def peers(is_toy: bool) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the peers: what makes of arrays on the device what to run, wait for, check and give memory back by."""

    def of_arrays(library: str, rows: Any, others: Any, count: int) -> Any:
        """Sort, gather, and look up where rows begin."""
        lib, take, wait, free_memory = as_peer(library, is_toy)
        rows, others, kept = take(rows), take(others), {}

        def go() -> None:
            if library == "torch":
                sorted_rows, order = lib.sort(rows, stable=True)
                wanted = lib.arange(count + 1, device=rows.device, dtype=rows.dtype)
            else:
                order = lib.argsort(rows, kind="stable")
                sorted_rows, wanted = rows[order], lib.arange(count + 1, dtype=rows.dtype)
            kept["indices"], kept["edge_ids"], kept["indptr"] = others[order], order, lib.searchsorted(sorted_rows, wanted)

        def free() -> None:
            kept.clear()
            free_memory()

        return go, wait, lambda: SimpleNamespace(**{key: from_peer(one) for key, one in kept.items()}), free

    def of_compute(rows: Any, others: Any, count: int) -> Any:
        """The sort alone: keys and positions."""
        if is_toy:
            compute: Any = ToyCompute()
        else:
            import cuda.compute as compute  # type: ignore[no-redef]
        keys, positions = rows.view(f"u{rows.dtype.itemsize}"), cuda.to_device(np.arange(rows.size, dtype=np.uint32))
        out, order = cuda.device_array_like(keys), cuda.device_array_like(positions)

        def go() -> None:
            compute.radix_sort(
                d_in_keys=keys,
                d_out_keys=out,
                d_in_values=positions,
                d_out_values=order,
                num_items=rows.size,
                order=compute.SortOrder.ASCENDING,
                begin_bit=0,
                end_bit=(count - 1).bit_length(),
            )

        return go, cuda.synchronize, lambda: order, lambda: None

    for library in ("torch", "cupy"):
        yield library, functools.partial(of_arrays, library)
    yield "cuda.compute (sort alone)", of_compute
