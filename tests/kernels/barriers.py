"""Takes out or moves one barrier of the device kernels after the other, and prints which of these mistakes nothing showed.

Runs on the simulator: ``python simulated.py barriers.py``. A barrier may be moved before the statement above it or behind the one
below where that touches shared memory; elsewhere nothing changes.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from graphprep.kernels.cuda import radix, rows, scan
from graphprep.kernels.cuda.frontend import RADIX, TILE, blocks_for, launch
from graphprep.kernels.cuda.slots import Room

MODULES = (scan, radix, rows)  # in the order in which they import each other
BARRIER = "cuda.syncthreads()"
HARMLESS = ("total = sums[U(now + thread)]",)  # a thread reads what it wrote itself
SHARED = re.compile(r"\b(sums|held|held_payload|counters|counts|cursors|begins|partial|low_of|high_of|first_of)\b")


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield (what was done, the source with it)."""
    lines = source.splitlines(keepends=True)
    for body in (body for node in ast.walk(ast.parse(source)) for _, body in ast.iter_fields(node) if isinstance(body, list)):
        for at, node in enumerate(body):
            if not isinstance(node, ast.Expr) or ast.unparse(node) != BARRIER:
                continue
            line, end = node.lineno - 1, node.end_lineno
            yield f"line {line + 1}: no barrier", "".join([*lines[:line], *lines[end:]])
            if at and touches(body[at - 1]):
                start = body[at - 1].lineno - 1
                yield (
                    f"line {line + 1}: barrier too early",
                    "".join([*lines[:start], lines[line], *lines[start:line], *lines[end:]]),
                )
            if at + 1 < len(body) and touches(body[at + 1]):
                stop = body[at + 1].end_lineno
                yield (
                    f"line {line + 1}: barrier too late",
                    "".join([*lines[:line], *lines[end:stop], lines[line], *lines[stop:]]),
                )


def touches(node: ast.stmt) -> bool:
    text = ast.unparse(node)
    return BARRIER not in text and text not in HARMLESS and SHARED.search(text) is not None


def check() -> None:
    """Run every kernel that has a barrier. Raises where something is wrong."""
    rng, room = np.random.default_rng(1), Room()
    for size in (TILE - 1, 9 * TILE + 5):
        values = rng.integers(-9, 9, size)
        there = room.upload("values", values)
        scan.exclusive_scan(room, there, there)
        same(room, there, np.cumsum(values) - values)
    sums = rng.integers(0, 9, 3 * TILE)
    there = room.upload("values", sums)
    launch(scan.scan_sums, 1, room.stream, there)
    same(room, there, np.cumsum(sums) - sums)
    for size, high in ((TILE - 1, RADIX), (7 * TILE + 5, RADIX), (4 * TILE, 2)):
        keys = rng.integers(0, high, size).astype(np.uint32)
        numbers = np.arange(size, dtype=np.uint64)
        sorted_keys, order = radix.sort_pairs(
            room, room.upload("keys", keys), room.upload("order", numbers), (0, (high - 1).bit_length())
        )
        same(room, sorted_keys, np.sort(keys))
        same(room, order, np.argsort(keys, kind="stable").astype(np.uint64))
    ids = rng.permutation(4 * TILE)
    blocks = blocks_for(ids.size)
    lows, highs = room.take("lows", blocks, np.int64), room.take("highs", blocks, np.int64)
    for at in range(0, 4 * TILE, TILE // 2 + 1):
        there = room.upload("ids", np.where(ids == ids[at], 4 * TILE, ids))
        launch(rows.find_limits, blocks, room.stream, there, lows, highs)
        assert (lows.copy_to_host().min(), highs.copy_to_host().max()) == (int(not ids[at]), 4 * TILE)
        launch(rows.find_outside, blocks, room.stream, room.upload("ids", np.where(ids == ids[at], -1, ids)), ids.size, lows)
        assert lows.copy_to_host().min() == at


def same(room: Room, there, wanted) -> None:
    found = np.empty_like(wanted)
    room.download(there, found)
    room.finish()
    assert (found == wanted).all()


def load(sources: dict) -> None:
    """Run the modules' sources again, where they are."""
    for module in MODULES:
        exec(compile(sources[module], module.__file__, "exec"), module.__dict__)


def main() -> int:
    sources = {module: Path(module.__file__).read_text() for module in MODULES}
    check()
    tried, missed = 0, []
    for module in MODULES:
        for what, source in mutants(sources[module]):
            ast.parse(source)
            load(sources | {module: source})
            start = time.monotonic()
            with contextlib.suppress(Exception):
                check()
                missed.append(f"{Path(module.__file__).name}, {what}")
            tried += 1
            print(f"{Path(module.__file__).name}, {what}: {time.monotonic() - start:.2f} s", flush=True)
    print(f"{tried} mistakes, {len(missed)} not seen", *missed, sep="\n")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
