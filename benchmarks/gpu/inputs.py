"""Random IDs on the device, and checks of rows and orders that lie there."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np

from graphprep.kernels.cuda.frontend import U, blocks_for, cuda, launch
from graphprep.kernels.cuda.rows import last_at_most

DEGREE = 16  # edges a node
TYPES = {"int32": np.int32, "int64": np.int64}


@functools.cache
def own_kernels() -> SimpleNamespace:
    """Return kernels that draw IDs, and check rows and orders."""

    @cuda.jit
    def draw(seed, count, out):
        for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
            state = U(seed) + U(i) * U(0x9E3779B97F4A7C15)
            state = (state ^ (state >> U(30))) * U(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> U(27))) * U(0x94D049BB133111EB)
            out[U(i)] = ((state ^ (state >> U(31))) >> U(33)) * U(count) >> U(31)

    @cuda.jit
    def check(indptr, indices, ids, rows, others, ascending, wrong):
        """Count entries that are not their edge's, or are out of order: none is wrong only in the one right order."""
        for i in range(cuda.grid(1), indices.size, cuda.gridsize(1)):
            row = last_at_most(indptr, indptr.size, i)
            edge = U(ids[U(i)])
            is_right = rows[edge] == row and others[edge] == indices[U(i)]
            if is_right and i > indptr[U(row)]:
                before, here = indices[U(i - 1)], indices[U(i)]
                is_right = ids[U(i - 1)] < ids[U(i)]
                if ascending:
                    is_right = before < here or (before == here and is_right)
            if not is_right:
                cuda.atomic.add(wrong, 0, 1)

    @cuda.jit
    def check_order(keys, order, wrong):
        """Count positions that do not come in the stable order of their keys."""
        for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
            if i > 0:
                before, here = order[U(i - 1)], order[U(i)]
                if keys[U(before)] > keys[U(here)] or (keys[U(before)] == keys[U(here)] and before >= here):
                    cuda.atomic.add(wrong, 0, 1)

    return SimpleNamespace(draw=draw, check=check, check_order=check_order)


def draw_ids(room: Any, seed: int, size: int, count: int, dtype: Any) -> Any:
    """Return random IDs on the device."""
    there = cuda.device_array(size, dtype)
    launch(own_kernels().draw, blocks_for(size), room.stream, seed, count, there)
    room.stream.synchronize()
    return there


def check_with(room: Any, kernel: Any, size: int, *given: Any) -> str:
    """Say that a kernel finds nothing wrong."""
    room.stream.synchronize()
    wrong = cuda.to_device(np.zeros(1, np.int64))
    launch(kernel, blocks_for(size), room.stream, *given, wrong)
    room.stream.synchronize()
    if wrong.copy_to_host()[0]:
        raise AssertionError(f"{wrong.copy_to_host()[0]} entries are wrong")
    return "checked"


def check_rows(room: Any, built: Any, rows: Any, others: Any, ascending: bool = False) -> str:
    """Say that rows are what they should be; ``built`` has indptr, indices and edge_ids on the device."""
    ends = built.indptr[built.indptr.size - 1 :].copy_to_host()
    if ends[0] != rows.size:
        raise AssertionError(f"the rows end at {ends[0]}")
    arrays = (built.indptr, built.indices, built.edge_ids, rows, others)
    return check_with(room, own_kernels().check, rows.size, *arrays, ascending)
