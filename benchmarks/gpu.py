"""Measures the kernels of a GPU: ``make bench-gpu``, or ``python benchmarks/gpu.py [--seconds 460] [--json FILE] [--toy]``.

One device, less than 8 minutes: transfer rates; sort, scan, pack, unpack and gather over 10 M, 100 M and 1 G edges of 32 and
64 bits; COO to CSR with edge IDs in device memory, and streamed from pinned memory through three slots; cupy, torch and
cuda.compute beside it, where they can be imported; ``convert`` of binary edges and ``reorder`` on both devices. Rows are
checked edge by edge. What there was no time or memory for is named with its reason. ``--toy`` runs all of it on CUDA's
simulator, over a few edges, to see that it works: its times mean nothing.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
DEGREE = 16  # edges a node
STREAMED_CHUNK = 32 << 20  # edges
TYPES = {"int32": np.int32, "int64": np.int64}


@dataclass
class Bench:
    """What is measured, until the time is over."""

    is_toy: bool
    deadline: float
    results: list[dict[str, Any]] = field(default_factory=list)

    def note(self, name: str, **values: Any) -> None:
        """Keep and print a result."""
        self.results.append({"case": name, **values})
        shown = "  ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in values.items()
        )
        print(f"{name:34} {shown}", flush=True)

    def run(self, name: str, measure: Callable[[], dict[str, Any]], **values: Any) -> None:
        """Measure something, if there is time; what fails is noted with its reason."""
        if time.monotonic() > self.deadline:
            self.note(name, **values, skipped="out of time")
            return
        try:
            self.note(name, **values, **measure())
        except Exception as error:
            self.note(name, **values, skipped=" ".join(str(error).split())[:160] or type(error).__name__)

    def guard(self, name: str, measure: Callable[[], Any], **values: Any) -> None:
        """Go on with the next cases where the input of these cannot be made."""
        try:
            measure()
        except Exception as error:
            self.note(name, **values, skipped=" ".join(str(error).split())[:160] or type(error).__name__)

    def median(self, run: Callable[[], Any], wait: Callable[[], Any], rounds: int = 5) -> float:
        """Return the median of the seconds that something takes, after a first go that compiles."""
        run()
        wait()
        seconds = []
        for _ in range(1 if self.is_toy else rounds):
            start = time.perf_counter()
            run()
            wait()
            seconds.append(time.perf_counter() - start)
        return statistics.median(seconds)


# ---- inputs and checks, on the device


@functools.cache
def own_kernels() -> tuple[Any, Any]:
    """Return kernels that draw IDs and check rows."""
    from graphprep.kernels.cuda.frontend import U, cuda
    from graphprep.kernels.cuda.rows import last_at_most

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

    return draw, check


def draw_ids(room: Any, seed: int, size: int, count: int, dtype: Any) -> Any:
    """Return random IDs on the device."""
    from graphprep.kernels.cuda.frontend import blocks_for, cuda, launch

    there = cuda.device_array(size, dtype)
    launch(own_kernels()[0], blocks_for(size), room.stream, seed, count, there)
    room.stream.synchronize()
    return there


def check_rows(room: Any, built: Any, rows: Any, others: Any, ascending: bool) -> str:
    """Say whether rows are what they should be."""
    from graphprep.kernels.cuda.frontend import blocks_for, cuda, launch

    room.stream.synchronize()
    wrong, ends = cuda.to_device(np.zeros(1, np.int64)), built.indptr[built.indptr.size - 1 :].copy_to_host()
    arrays = (built.indptr, built.indices, built.edge_ids, rows, others)
    launch(own_kernels()[1], blocks_for(rows.size), room.stream, *arrays, ascending, wrong)
    room.stream.synchronize()
    if wrong.copy_to_host()[0] or ends[0] != rows.size:
        raise AssertionError(f"{wrong.copy_to_host()[0]} entries are wrong")
    return "checked"


# ---- cases


def measure_transfers(bench: Bench, num_bytes: int) -> None:
    """Measure what the link carries: pageable, pinned, and both ways at once."""
    from graphprep.kernels.cuda.frontend import cuda

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
        "pageable to device": (lambda: there.copy_to_device(pageable), 1),
        "pageable to host": (lambda: there.copy_to_host(pageable), 1),
        "pinned to device": (lambda: there.copy_to_device(pinned[0], stream=streams[0]), 1),
        "pinned to host": (lambda: there.copy_to_host(pinned[0], stream=streams[0]), 1),
        "pinned both ways": (both, 2),
        "in device memory": (lambda: more.copy_to_device(there), 2),
    }
    for name, (run, times) in ways.items():
        bench.run(name, lambda run=run, times=times: {"gb_s": times * num_bytes / bench.median(run, cuda.synchronize) / 1e9})


def measure_kernels(bench: Bench, room: Any, size: int, name: str) -> None:
    """Measure each kernel by itself: what it reads and writes, over its time."""
    from graphprep.kernels.cuda import elements, rows
    from graphprep.kernels.cuda.frontend import blocks_for, launch
    from graphprep.kernels.cuda.radix import sort_pairs
    from graphprep.kernels.cuda.scan import exclusive_scan

    width, blocks, count = np.dtype(TYPES[name]).itemsize, blocks_for(size), max(2, size // DEGREE)
    unsigned, bits = np.dtype(f"u{width}"), (max(2, size // DEGREE) - 1).bit_length()

    def case(kernel: str, num_bytes: int, run: Callable[[], Any]) -> None:
        def measure() -> dict[str, Any]:
            seconds = bench.median(run, room.stream.synchronize)
            return {"ms": 1000 * seconds, "g_items_s": size / seconds / 1e9, "gb_s": num_bytes / seconds / 1e9}

        bench.run(kernel, measure, items=size, type=name)

    def start(kernel: Any, *args: Any) -> Callable[[], None]:
        return lambda: launch(kernel, blocks, room.stream, *args)

    keys = draw_ids(room, 1, size, count, unsigned)
    out, order = room.take("bench out", size, unsigned), room.take("bench order", size, np.uint32)
    case("count_up", 4 * size, start(rows.count_up, order))
    case("gather", (2 * width + 4) * size, start(elements.gather, keys, order, out))
    case("gather at random", (4 + 2 * width) * size, start(elements.gather, order, keys, order))
    lengths = room.take("bench lengths", size, np.int64)
    case("exclusive_scan", 24 * size, lambda: exclusive_scan(room, lengths, lengths))
    words = room.take("bench words", size, np.uint64)
    none = room.none(unsigned)
    case("pack_edges", (2 * width + 8) * size, start(elements.pack_edges, keys, keys, none, 0, bits, 0, words))
    case("unpack_words", (width + 8) * size, start(elements.unpack_words, words, bits, 0, none, out, none))
    for along in (np.uint8, np.uint32, np.uint64):
        payload = room.take("bench payload", 0 if along is np.uint8 else size, along)
        carried = 0 if along is np.uint8 else np.dtype(along).itemsize
        passes = -(-bits // 8)

        def sort(payload: Any = payload) -> None:
            launch(own_kernels()[0], blocks, room.stream, 1, count, keys)  # what is sorted already would be sorted faster
            sort_pairs(room, keys, payload, (0, bits))

        num_bytes = (width + passes * (3 * width + 2 * carried)) * size
        case(f"draw and sort, payload of {carried} B", num_bytes, sort)
    room.clear()


def measure_csr(bench: Bench, room: Any, size: int, name: str, make_fast: Any) -> None:
    """Measure COO to CSR with edge IDs, in device memory: with our sort, with CUB's, and as peers do it."""
    from graphprep.kernels.cuda import resident

    count = max(2, size // DEGREE)
    rows, others = (draw_ids(room, seed, size, count, TYPES[name]) for seed in (1, 2))
    out, found = resident.empty_rows(count, count, size), [float("nan")]
    for ascending in (False, True):

        def build(ascending: bool = ascending) -> Any:
            return resident.build_rows(room, rows, others, count, count, out=out, sort_neighbors=ascending)

        def measure(build: Any = build, ascending: bool = ascending) -> dict[str, Any]:
            seconds = bench.median(build, room.stream.synchronize)
            if not ascending:
                found[0] = seconds
            checked = check_rows(room, build(), rows, others, ascending)
            return {"ms": 1000 * seconds, "g_edges_s": size / seconds / 1e9, "result": checked}

        bench.run("COO to CSR" + ", ascending" * ascending, measure, edges=size, type=name)
    room.clear()
    room.fast = make_fast and make_fast()

    def measure_fast() -> dict[str, Any]:
        if room.fast is None:
            raise RuntimeError("cuda.compute does not load here")
        seconds = bench.median(build_plain, room.stream.synchronize)
        checked = check_rows(room, build_plain(), rows, others, False)
        return {"ms": 1000 * seconds, "g_edges_s": size / seconds / 1e9, "result": checked}

    def build_plain() -> Any:
        return resident.build_rows(room, rows, others, count, count, out=out)

    bench.run("COO to CSR, with CUB's sort", measure_fast, edges=size, type=name)
    room.fast = None
    room.clear()
    for peer, run in peers():
        bench.run(
            f"COO to CSR, {peer}", lambda run=run: compare(bench, run, rows, others, count, found[0]), edges=size, type=name
        )


def compare(bench: Bench, run: Callable[..., Any], rows: Any, others: Any, count: int, ours: float) -> dict[str, Any]:
    """Measure a peer."""
    go, wait, results, free = run(rows, others, count)
    try:
        seconds = bench.median(go, wait, rounds=3)
        found = results()
    finally:
        free()
    if found is not None and int(found) != rows.size:
        raise AssertionError(f"its rows have {found} entries")
    return {"ms": 1000 * seconds, "g_edges_s": rows.size / seconds / 1e9, "ours_is_faster_by": seconds / ours}


def peers() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the peers: what makes of arrays on the device what to run, wait for, count and give memory back by."""

    def of_torch(rows: Any, others: Any, count: int) -> Any:
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("this torch has no CUDA, or there is no device")
        rows, others = (torch.as_tensor(array, device="cuda") for array in (rows, others))
        kept: dict[str, Any] = {}

        def go() -> None:
            sorted_rows, order = torch.sort(rows, stable=True)
            kept["indices"], kept["order"] = others[order], order
            kept["indptr"] = torch.searchsorted(sorted_rows, torch.arange(count + 1, device="cuda", dtype=rows.dtype))

        def free() -> None:
            kept.clear()
            torch.cuda.empty_cache()

        return go, torch.cuda.synchronize, lambda: int(kept["indptr"][-1]), free

    def of_cupy(rows: Any, others: Any, count: int) -> Any:
        import cupy

        rows, others = cupy.asarray(rows), cupy.asarray(others)
        kept: dict[str, Any] = {}

        def go() -> None:
            order = cupy.argsort(rows, kind="stable")
            kept["indices"], kept["order"] = others[order], order
            kept["indptr"] = cupy.searchsorted(rows[order], cupy.arange(count + 1, dtype=rows.dtype))

        def free() -> None:
            kept.clear()
            cupy.get_default_memory_pool().free_all_blocks()

        return go, cupy.cuda.Device().synchronize, lambda: int(kept["indptr"][-1]), free

    def of_compute(rows: Any, others: Any, count: int) -> Any:
        """The sort alone: keys and positions."""
        import cuda.compute as compute

        from graphprep.kernels.cuda.frontend import cuda

        keys, positions = rows.view(f"u{rows.dtype.itemsize}"), cuda.to_device(np.arange(rows.size, dtype=np.uint32))
        out, order = cuda.device_array_like(keys), cuda.device_array_like(positions)
        ascending, bits = compute.SortOrder.ASCENDING, (count - 1).bit_length()

        def go() -> None:
            compute.radix_sort(
                d_in_keys=keys,
                d_out_keys=out,
                d_in_values=positions,
                d_out_values=order,
                num_items=rows.size,
                order=ascending,
                begin_bit=0,
                end_bit=bits,
            )

        return go, cuda.synchronize, lambda: None, lambda: None

    yield "torch", of_torch
    yield "cupy", of_cupy
    yield "cuda.compute (sort alone)", of_compute


def measure_streamed(bench: Bench, slots: Any, size: int, name: str) -> None:
    """Measure COO to CSR of chunks that come from pinned memory and go there, three at a time."""
    from graphprep.kernels.cuda import resident
    from graphprep.kernels.cuda.frontend import cuda

    chunk, dtype = min(size, STREAMED_CHUNK), TYPES[name]
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
        moved = size * (2 * np.dtype(dtype).itemsize + 8)
        return {"seconds": seconds, "g_edges_s": size / seconds / 1e9, "gb_s": moved / seconds / 1e9, "result": "checked"}

    bench.run("COO to CSR, streamed", measure, edges=size, type=name)


def measure_commands(bench: Bench, size: int) -> None:
    """Measure whole commands on both devices; a process each."""
    with tempfile.TemporaryDirectory() as folder:
        rng, count = np.random.default_rng(1), max(2, size // DEGREE)
        np.save(f"{folder}/edges.npy", rng.integers(0, count, (2, size), np.int32))
        for device in ("cpu", "cuda"):
            store = f"{folder}/{device}"
            commands = {
                "convert": ["convert", f"{folder}/edges.npy", store],
                "reorder": ["reorder", store, f"{store}-ordered", "--by", "in-degree"],
            }
            for name, args in commands.items():
                bench.run(name, functools.partial(run_command, [*args, "--device", device]), edges=size, device=device)


def run_command(args: list[str]) -> dict[str, Any]:
    """Run a command in a process of its own."""
    start = time.perf_counter()
    found = subprocess.run([sys.executable, "-m", "graphprep", *args], capture_output=True, text=True, check=False)
    if found.returncode:
        raise RuntimeError(found.stderr)
    return {"seconds": time.perf_counter() - start}


def main() -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="a few edges on the simulator, to see that this script works")
    parser.add_argument("--seconds", type=float, default=460, help="begin nothing new after so many seconds")
    parser.add_argument("--json", type=Path, default=ROOT / ".benchmarks/gpu.json", help="where results are written")
    options = parser.parse_args()
    if options.toy:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
        sys.setswitchinterval(5e-5)
        print("SIMULATION: this shows that the script works. Its times mean nothing.")
    from graphprep.kernels.cuda.probe import NoDevice, find_device
    from graphprep.kernels.cuda.slots import Slots

    found = find_device(simulated=options.toy)
    os.environ.pop("NUMBA_ENABLE_CUDASIM", None)
    if isinstance(found, NoDevice):
        print(f"error: no CUDA device: {found.reason}\n  fix: {found.fix}", file=sys.stderr)
        return 2
    from graphprep.kernels.cuda.cccl import find_fast

    bench, slots = Bench(options.toy, time.monotonic() + options.seconds), Slots()
    make_fast = None if options.toy else find_fast(found.capability)
    sizes = [60] if options.toy else [10_000_000, 100_000_000, 1_000_000_000]
    with slots.room() as room:
        bench.guard("transfers", lambda: measure_transfers(bench, 1 << 12 if options.toy else 1 << 30))
        for size, name in itertools.product(sizes, TYPES):
            measure = functools.partial(measure_csr, bench, room, size, name, make_fast)
            bench.guard("COO to CSR", measure, edges=size, type=name)
            room.fast = None
            room.clear()
    for name in TYPES:
        size = 100 if options.toy else 256 << 20
        bench.guard(
            "COO to CSR, streamed", functools.partial(measure_streamed, bench, slots, size, name), edges=size, type=name
        )
    with slots.room() as room:
        for size, name in itertools.product(sizes, TYPES):
            bench.guard("kernels", functools.partial(measure_kernels, bench, room, size, name), items=size, type=name)
            room.clear()
    measure_commands(bench, 1000 if options.toy else 100_000_000)
    write(options.json, bench, found)
    return 0


def write(path: Path, bench: Bench, device: Any) -> None:
    """Write what was found, and where."""
    import numba

    from graphprep.kernels.cuda import frontend

    free, total = (0, 0) if bench.is_toy else device.memory()
    about = {
        "simulated": bench.is_toy,
        "device": asdict(device),
        "memory": {"free": free, "total": total},
        "block": {"threads": frontend.THREADS, "items": frontend.ITEMS, "blocks": frontend.MOST_BLOCKS},
        "numba": numba.__version__,
        "numba.cuda": numba.cuda.__file__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"about": about, "results": bench.results}, indent=1) + "\n")
    print(f"written: {path}")


if __name__ == "__main__":
    sys.exit(main())
