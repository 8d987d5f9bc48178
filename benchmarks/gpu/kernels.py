"""Each kernel by itself: what it is measured on, what NumPy says that it returns, what peers do in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bench import MAIN, TOY, Bench
from inputs import DEGREE, TYPES, draw_ids, own_kernels
from peers import as_peer, from_peer

from graphprep.kernels.cuda import elements, resident, rows
from graphprep.kernels.cuda.frontend import blocks_for, cuda, launch
from graphprep.kernels.cuda.radix import sort_pairs
from graphprep.kernels.cuda.scan import exclusive_scan

CHECKED = 1 << 20  # items that are compared with NumPy's


@dataclass
class Kernel:
    """A kernel over its input: ``run`` returns arrays of the device, or fills ``out``; ``wanted`` is what NumPy says they hold.

    ``inputs`` makes what peers get, ``num_bytes`` what must move at least; ``prepare`` makes the input anew, untimed.
    """

    run: Callable[[], Sequence[Any] | None]
    wanted: Callable[[], Sequence[Any]]
    out: Sequence[Any] = ()
    inputs: Callable[[], Sequence[Any]] = tuple
    num_bytes: int | None = None
    prepare: Callable[[], Any] | None = None


class Input:
    """What kernels are measured on: edges with random ends, on the device."""

    def __init__(self, room: Any, size: int, dtype: Any) -> None:
        self.room, self.size, self.dtype = room, size, np.dtype(dtype)
        self.count, self.width = max(2, size // DEGREE), self.dtype.itemsize
        self.bits, self.unsigned = (self.count - 1).bit_length(), np.dtype(f"u{self.width}")

    def ids(self, seed: int, count: int = 0, dtype: Any = None) -> Any:
        """Return random IDs."""
        return draw_ids(self.room, seed, self.size, count or self.count, dtype or self.dtype)

    def array(self, dtype: Any, size: int | None = None) -> Any:
        """Return room for a result."""
        return cuda.device_array(self.size if size is None else size, dtype)

    def launch(self, kernel: Any, *args: Any) -> None:
        """Run a kernel over all items."""
        launch(kernel, blocks_for(self.size), self.room.stream, *args)

    def positions(self, dtype: Any = np.uint32) -> Any:
        """Return 0, 1, …."""
        there = self.array(dtype)
        self.launch(rows.count_up, there)
        return there

    def rows(self) -> tuple[Any, Any]:
        """Return CSR rows of edges, and their edges on the host once that is asked for."""
        ends = self.ids(1), self.ids(2)
        return resident.build_rows(self.room, *ends, self.count, self.count), lambda: [end.copy_to_host() for end in ends]


def _count_up(of: Input) -> Kernel:
    out = of.array(np.uint32)
    run = functools.partial(of.launch, rows.count_up, out)
    return Kernel(run, lambda: [np.arange(of.size)], [out], num_bytes=4 * of.size)


def _gather(of: Input, *, at_random: bool) -> Kernel:
    values, order, out = of.ids(1).view(of.unsigned), of.positions(), of.array(of.unsigned)
    if at_random:
        of.launch(own_kernels().draw, 7, of.size, order)
    return Kernel(
        functools.partial(of.launch, elements.gather, values, order, out),
        lambda: [values.copy_to_host()[order.copy_to_host()]],
        [out],
        lambda: (values.view(of.dtype), order.view(np.int32)),
        (4 + 2 * of.width) * of.size,
    )


def _scan(of: Input) -> Kernel:
    lengths, out = of.ids(1, 9, np.int64), of.array(np.int64)

    def wanted() -> list[Any]:
        here = lengths.copy_to_host()
        return [np.cumsum(here) - here]

    run = functools.partial(exclusive_scan, of.room, lengths, out)
    return Kernel(run, wanted, [out], lambda: (lengths,), 24 * of.size)


def _pack(of: Input) -> Kernel:
    ends, words, none = [of.ids(k).view(of.unsigned) for k in (1, 2)], of.array(np.uint64), of.room.none(of.unsigned)

    def wanted() -> list[Any]:
        src, dst = (end.copy_to_host().astype(np.uint64) for end in ends)
        return [src << np.uint64(of.bits) | dst]

    run = functools.partial(of.launch, elements.pack_edges, *ends, none, 0, of.bits, 0, words)
    return Kernel(run, wanted, [words], num_bytes=(2 * of.width + 8) * of.size)


def _unpack(of: Input) -> Kernel:
    words, out, none = of.ids(3, 1 << min(31, 2 * of.bits), np.uint64), of.array(of.unsigned), of.room.none(of.unsigned)
    run = functools.partial(of.launch, elements.unpack_words, words, of.bits, 0, none, out, none)
    mask = np.uint64((1 << of.bits) - 1)
    return Kernel(run, lambda: [words.copy_to_host() & mask], [out], num_bytes=(of.width + 8) * of.size)


def _sort(of: Input, *, carried: int) -> Kernel:
    keys, payload = of.ids(1).view(of.unsigned), of.room.none(np.uint8) if not carried else of.positions(f"u{carried}")

    def prepare() -> None:  # what is sorted already would be sorted faster
        of.launch(own_kernels().draw, 1, of.count, keys)
        if carried:
            of.launch(rows.count_up, payload)

    def wanted() -> list[Any]:
        prepare()
        of.room.stream.synchronize()
        here = keys.copy_to_host()
        order = np.argsort(here, kind="stable")
        return [here[order], order] if carried else [here[order]]

    num_bytes = (of.width + -(-of.bits // 8) * (3 * of.width + 2 * carried)) * of.size
    run = functools.partial(sort_pairs, of.room, keys, payload, (0, of.bits))
    inputs = lambda: (of.ids(1),)  # noqa: E731
    return Kernel(lambda: run()[: 2 if carried else 1], wanted, inputs=inputs, num_bytes=num_bytes, prepare=prepare)


def _starts(of: Input) -> Kernel:
    keys, _ = sort_pairs(of.room, of.ids(1).view(of.unsigned), of.room.none(np.uint8), (0, of.bits))
    indptr = of.array(np.int64, of.count + 1)
    return Kernel(
        functools.partial(resident.fill_indptr, of.room, keys, 0, indptr),
        lambda: [np.searchsorted(keys.copy_to_host(), np.arange(of.count + 1))],
        [indptr],
        lambda: (keys.view(of.dtype), of.positions(np.uint64 if of.width == 8 else np.uint32)[: of.count + 1].view(of.dtype)),
        of.width * of.size + 8 * of.count,
    )


def _expand(of: Input) -> Kernel:
    built, edges = of.rows()
    owners = of.array(np.uint64 if of.width == 8 else np.uint32)
    run = functools.partial(of.launch, rows.expand_rows, built.indptr, owners)
    return Kernel(run, lambda: [np.sort(edges()[0])], [owners], num_bytes=owners.dtype.itemsize * of.size)


def _degrees(of: Input) -> Kernel:
    built, edges = of.rows()
    wanted = lambda: [np.bincount(edges()[0], minlength=of.count)]  # noqa: E731
    return Kernel(lambda: [resident.count_degrees(of.room, built.indptr)], wanted, num_bytes=16 * of.count)


def _transpose(of: Input) -> Kernel:
    built, edges = of.rows()

    def run() -> list[Any]:
        new = resident.transpose(of.room, built, of.count)
        return [new.indptr, new.indices, new.edge_ids]

    def wanted() -> list[Any]:
        src, dst = edges()
        order = np.lexsort((np.arange(of.size), src, dst))
        return [np.searchsorted(dst[order], np.arange(of.count + 1)), src[order], order]

    return Kernel(run, wanted)


def _order(of: Input) -> Kernel:
    values = of.ids(4, 1 << 20, np.int64)
    wanted = lambda: [np.argsort(-values.copy_to_host(), kind="stable")]  # noqa: E731
    return Kernel(lambda: [resident.order_descending(of.room, values)], wanted, inputs=lambda: (values,))


def _relabel(of: Input) -> Kernel:
    built, _ = of.rows()
    order = resident.order_descending(of.room, resident.count_degrees(of.room, built.indptr))
    inverse = resident.invert(of.room, order)

    def run() -> list[Any]:
        new = resident.relabel_rows(of.room, built, order, inverse)
        return [new.indptr, new.indices, new.edge_ids]

    def wanted() -> list[Any]:
        indptr, indices, ids, rows, new_ids = (
            one.copy_to_host() for one in (built.indptr, built.indices, built.edge_ids, order, inverse)
        )
        new_indptr = np.concatenate([[0], np.cumsum(np.diff(indptr)[rows])])
        at = np.arange(of.size) + np.repeat(indptr[rows] - new_indptr[:-1], np.diff(new_indptr))
        return [new_indptr, new_ids[indices[at]], ids[at]]

    return Kernel(run, wanted)


def _dedup(of: Input) -> Kernel:
    ends = of.ids(1), of.ids(2, max(2, of.count >> 3))

    def wanted() -> list[Any]:
        src, dst = (end.copy_to_host().astype(np.int64) for end in ends)
        words, firsts = np.unique(src * of.count + dst, return_index=True)
        return [words // of.count, words % of.count, firsts]

    return Kernel(lambda: resident.drop_repeats(of.room, *ends, of.count, of.count), wanted)


def _split(of: Input) -> Kernel:
    parts, num_parts = of.ids(5, 64), 64

    def wanted() -> list[Any]:
        here = parts.copy_to_host()
        return [np.searchsorted(np.sort(here), np.arange(num_parts + 1)), np.argsort(here, kind="stable")]

    return Kernel(lambda: resident.split(of.room, parts, num_parts), wanted)


KERNELS: dict[str, Callable[[Input], Kernel]] = {
    "sort, payload of 8 B": functools.partial(_sort, carried=8),
    "sort, payload of 4 B": functools.partial(_sort, carried=4),
    "sort, no payload": functools.partial(_sort, carried=0),
    "exclusive scan": _scan,
    "starts": _starts,
    "expand": _expand,
    "transpose": _transpose,
    "order": _order,
    "relabel": _relabel,
    "dedup": _dedup,
    "split": _split,
    "degrees": _degrees,
    "pack": _pack,
    "unpack": _unpack,
    "gather": functools.partial(_gather, at_random=False),
    "gather at random": functools.partial(_gather, at_random=True),
    "count up": _count_up,
}

# What peers do in one call, and how their result reads as ours. Their arrays have no unsigned types.
_TORCH: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "sort, payload of 4 B": (lambda lib, keys: lib.sort(keys, stable=True), lambda found, *_: list(found)),
    "exclusive scan": (lambda lib, lengths: lib.cumsum(lengths, 0), lambda sums, lengths: [sums - lengths]),
    "starts": (lambda lib, keys, rows: lib.searchsorted(keys, rows), lambda found, *_: [found]),
    "order": (lambda lib, values: lib.sort(values, descending=True, stable=True)[1], lambda found, *_: [found]),
    "gather at random": (lambda lib, values, order: values[order], lambda found, *_: [found]),
}
_CUPY = {
    **_TORCH,
    "sort, payload of 4 B": (lambda lib, keys: lib.argsort(keys, kind="stable"), lambda order, keys: [keys[order], order]),
    "exclusive scan": (lambda lib, lengths: lib.cumsum(lengths), lambda sums, lengths: [sums - lengths]),
    "order": (lambda lib, values: lib.argsort(-values, kind="stable"), lambda found, *_: [found]),
}
PEER_KERNELS = {"torch": _TORCH, "cupy": _CUPY}


def measure_kernel(bench: Bench, room: Any, name: str, size: int, type_name: str) -> None:
    """Check a kernel over fewer items, then measure it by itself; at the main size, peers too."""

    def measure() -> dict[str, Any]:
        if (name, type_name) not in bench.checked:
            check_kernel(Input(room, min(size, CHECKED), TYPES[type_name]), name)
            bench.checked.add((name, type_name))
        kernel = KERNELS[name](Input(room, size, TYPES[type_name]))
        seconds = ours[0] = bench.median(kernel.run, room.stream.synchronize, prepare=kernel.prepare)
        found = {"ms": 1000 * seconds, "g_items_s": size / seconds / 1e9}
        moved = {} if kernel.num_bytes is None else {"gb_s": kernel.num_bytes / seconds / 1e9}
        return {**found, **moved, "result": f"checked over {min(size, CHECKED)} items"}

    ours = [float("nan")]
    bench.run(name, measure, items=size, type=type_name)
    room.clear()
    for library in PEER_KERNELS if size in (MAIN, TOY) and name in _TORCH else ():
        run = functools.partial(compare_kernel, bench, room, library, name, size, type_name, ours)
        bench.run(f"{name}, {library}", run, items=size, type=type_name)
        room.clear()


def check_kernel(of: Input, name: str) -> None:
    """Raise AssertionError where a kernel's results are not NumPy's."""
    kernel = KERNELS[name](of)
    of.room.stream.synchronize()
    wanted = kernel.wanted()
    found = kernel.run() or kernel.out
    of.room.stream.synchronize()
    compare_arrays(found, wanted)
    of.room.clear()


def compare_arrays(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Raise AssertionError where arrays hold other values."""
    for there, one in zip(found, wanted, strict=True):
        here = there.copy_to_host() if hasattr(there, "copy_to_host") else np.asarray(there)
        if not np.array_equal(here, one):
            raise AssertionError("the result is wrong")


def compare_kernel(
    bench: Bench, room: Any, library: str, name: str, size: int, type_name: str, ours: Sequence[float]
) -> dict[str, Any]:
    """Measure how long a peer takes for what a kernel does, and check that it does that."""
    lib, take, wait, free = as_peer(library, bench.is_toy)
    call, shown = PEER_KERNELS[library][name]
    few = Input(room, min(size, CHECKED), TYPES[type_name])
    kernel = KERNELS[name](few)
    inputs = [take(one) for one in kernel.inputs()]
    result = shown(call(lib, *inputs), *inputs)
    wait()
    compare_arrays([from_peer(one) for one in result], kernel.wanted())
    inputs = [take(one) for one in KERNELS[name](Input(room, size, TYPES[type_name])).inputs()]
    try:
        seconds = bench.median(lambda: call(lib, *inputs), wait, rounds=3)
    finally:
        free()
    found = {"ms": 1000 * seconds, "g_items_s": size / seconds / 1e9, "ours_is_faster_by": seconds / ours[0]}
    return {**found, "result": f"checked over {few.size} items"}
