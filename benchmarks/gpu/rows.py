"""What the link carries, and COO to CSR with edge IDs: in device memory, streamed, and as peers do it."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from bench import Bench
from inputs import DEGREE, TYPES, check_rows, check_with, draw_ids, own_kernels
from peers import peers

from graphprep.kernels.cuda import resident
from graphprep.kernels.cuda.frontend import cuda

STREAMED_CHUNK = 32 << 20  # edges


def measure_transfers(bench: Bench) -> None:
    """Measure what the link carries: pageable, pinned, and both ways at once."""
    num_bytes = 1 << 12 if bench.is_toy else 1 << 30
    there, more = (cuda.device_array(num_bytes, np.uint8) for _ in range(2))
    start = time.perf_counter()
    pinned = [cuda.pinned_array(num_bytes, np.uint8) for _ in range(2)]
    bench.note("pin memory", seconds_per_gib=(time.perf_counter() - start) / 2 / num_bytes * 2**30)
    pageable, streams = np.zeros(num_bytes, np.uint8), [cuda.stream(), cuda.stream()]
    for array in pinned:
        array[:] = 1

    def both() -> None:
        there.copy_to_device(pinned[0], stream=streams[0])
        more.copy_to_host(pinned[1], stream=streams[1])

    ways: dict[str, tuple[Callable[[], Any], int]] = {
        "pinned to device": (lambda: there.copy_to_device(pinned[0], stream=streams[0]), 1),
        "pinned to host": (lambda: there.copy_to_host(pinned[0], stream=streams[0]), 1),
        "pinned both ways": (both, 2),
        "pageable to device": (lambda: there.copy_to_device(pageable), 1),
        "pageable to host": (lambda: there.copy_to_host(pageable), 1),
        "in device memory": (lambda: more.copy_to_device(there), 2),
    }
    for name, (run, times) in ways.items():
        bench.run(name, lambda run=run, times=times: {"gb_s": times * num_bytes / bench.median(run, cuda.synchronize) / 1e9})


def measure_csr(bench: Bench, room: Any, size: int, name: str, make_fast: Any) -> None:
    """Measure COO to CSR with edge IDs, in device memory: with our sort, with CUB's, and as peers do it."""
    count = max(2, size // DEGREE)
    rows, others = (draw_ids(room, seed, size, count, TYPES[name]) for seed in (1, 2))
    out, ours = resident.empty_rows(count, count, size), [float("nan")]

    def build(ascending: bool = False) -> Any:
        return resident.build_rows(room, rows, others, count, count, out=out, sort_neighbors=ascending)

    def measure(ascending: bool = False) -> dict[str, Any]:
        seconds = bench.median(lambda: build(ascending), room.stream.synchronize)
        if not ascending and room.fast is None:
            ours[0] = seconds
        checked = check_rows(room, build(ascending), rows, others, ascending)
        return {"ms": 1000 * seconds, "g_items_s": size / seconds / 1e9, "result": checked}

    def measure_fast() -> dict[str, Any]:
        room.clear()
        if make_fast is None:
            raise RuntimeError("cuda.compute does not load here")
        room.fast = make_fast()
        try:
            found = measure()
            if room.fast.fault:
                raise RuntimeError(room.fast.fault)
            return found
        finally:
            room.fast = None
            room.clear()

    bench.run("COO to CSR", measure, items=size, type=name)
    bench.run("COO to CSR, with CUB's sort", measure_fast, items=size, type=name)
    room.clear()  # the memory is the peers'
    for peer, run in peers(bench.is_toy):
        go = functools.partial(compare, bench, room, run, rows, others, count, ours)
        bench.run(f"COO to CSR, {peer}", go, items=size, type=name)
    bench.run("COO to CSR, ascending", lambda: measure(True), items=size, type=name)


def compare(
    bench: Bench, room: Any, run: Callable[..., Any], rows: Any, others: Any, count: int, ours: Sequence[float]
) -> dict[str, Any]:
    """Measure a peer, and check what it made."""
    go, wait, results, free = run(rows, others, count)
    try:
        seconds = bench.median(go, wait, rounds=3)
        built = results()
        if hasattr(built, "indptr"):
            checked = check_rows(room, built, rows, others)
        else:
            checked = check_with(room, own_kernels().check_order, rows.size, rows, built)
    finally:
        free()
    found = {"ms": 1000 * seconds, "g_items_s": rows.size / seconds / 1e9, "ours_is_faster_by": seconds / ours[0]}
    return {**found, "result": checked}


def measure_streamed(bench: Bench, slots: Any, size: int, name: str) -> None:
    """Measure COO to CSR of chunks that come from pinned memory and go there, three at a time."""
    chunk, dtype = min(size, 20 if bench.is_toy else STREAMED_CHUNK), TYPES[name]
    count = max(2, chunk // DEGREE)
    pinned = [cuda.pinned_array(size, kind) for kind in (dtype, dtype, np.int32, np.int32)]
    rng = np.random.default_rng(1)
    for array in pinned[:2]:
        array[:chunk] = rng.integers(0, count, chunk)
        for start in range(chunk, size, chunk):
            array[start : start + chunk] = array[: min(chunk, size - start)]
    kept, lock = {}, threading.Lock()

    def build(start: int) -> None:
        at = slice(start, min(start + chunk, size))
        with slots.room() as room:
            ends = [room.take(f"ends {k}", at.stop - start, dtype) for k in range(2)]
            for there, here in zip(ends, pinned[:2], strict=True):
                there.copy_to_device(here[at], stream=room.stream)
            key = (id(room), at.stop - start)
            with lock:
                out = kept.get(key) or kept.setdefault(key, resident.empty_rows(count, count, at.stop - start))
            built = resident.build_rows(room, *ends, count, count, out=out)
            built.indices.copy_to_host(pinned[2][at], stream=room.stream)
            built.edge_ids.copy_to_host(pinned[3][at], stream=room.stream)
            room.stream.synchronize()

    def go() -> None:
        with ThreadPoolExecutor(3) as threads:
            list(threads.map(build, range(0, size, chunk)))

    def measure() -> dict[str, Any]:
        seconds = bench.median(go, lambda: None, rounds=3)
        for start in (0, (size - 1) // chunk * chunk):
            stop = min(start + chunk, size)
            order = np.argsort(pinned[0][start:stop], kind="stable")
            if (pinned[3][start:stop] != order).any() or (pinned[2][start:stop] != pinned[1][start:stop][order]).any():
                raise AssertionError(f"edges {start} to {stop} are wrong")
        there, back = size * 2 * np.dtype(dtype).itemsize, size * 8
        found = {"seconds": seconds, "g_items_s": size / seconds / 1e9, "gb_s": (there + back) / seconds / 1e9}
        return {**found, "share_of_pcie": pcie_seconds(bench, there, back) / seconds, "result": "checked"}

    bench.run("COO to CSR, streamed", measure, items=size, type=name)


def pcie_seconds(bench: Bench, to_device: int, to_host: int) -> float:
    """Return the least seconds in which the link carries so many bytes each way at once, by what was measured."""
    rates = [bench.rate(name) for name in ("pinned to device", "pinned to host", "pinned both ways")]
    if not all(rates):
        raise RuntimeError("what the link carries was not measured")
    return max(num_bytes / rate / 1e9 for num_bytes, rate in zip((to_device, to_host, to_device + to_host), rates, strict=True))
