"""Raw IDs to ranks, in process: ``python benchmarks/index.py [--rows N] [--rounds N]``; see README.md beside this file.

Each side gets the same column of keys in memory and returns the distinct ones in ascending order (where it can) and the rank of
every row. Every run is a fresh process with its libraries and kernels loaded; the sides take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ROWS = 8_000_000
SHARE = 0.35  # distinct keys that are drawn from, over rows
KINDS = ("int64", "dense", "string")
SIDES = ("graphprep", "np.unique", "pandas.factorize", "pandas.factorize sorted", "pyarrow dictionary_encode", "polars")
_MIB = 1 << 20


def make_keys(kind: str, rows: int) -> Any:
    """Make keys: random int64, integers up to four times their number, or ASCII strings of 25 bytes (an Arrow array)."""
    import pyarrow as pa

    rng = np.random.default_rng(7)
    num_distinct = max(1, int(rows * SHARE))
    if kind == "dense":
        return rng.permutation(4 * num_distinct)[:num_distinct][rng.integers(0, num_distinct, rows)]
    distinct = rng.integers(0, 2**62, num_distinct)
    drawn = distinct[rng.integers(0, num_distinct, rows)]
    if kind == "int64":
        return drawn
    digits = np.char.mod("user-%020d", drawn).astype("S25") if rows < 1000 else _texts(drawn)
    offsets = np.arange(0, 25 * (rows + 1), 25, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(digits.tobytes()))


def _texts(numbers: np.ndarray) -> np.ndarray:
    """Write numbers as ``user-`` and 20 digits: uint8[n, 25]."""
    out = np.empty((numbers.size, 25), np.uint8)
    out[:, :5] = np.frombuffer(b"user-", np.uint8)
    rest = numbers.copy()
    for column in range(24, 4, -1):
        out[:, column] = rest % 10 + 48
        rest //= 10
    return out


def by_graphprep(keys: Any) -> tuple[int, Any]:
    from graphprep.convert.decoded.texts import TextIndexer
    from graphprep.convert.index.node_spaces import SortedSpace
    from graphprep.convert.index.ranks import SpaceIndexer
    from graphprep.convert.index.resolve import NodeMap
    from graphprep.kernels.cpu.text.texts import distinct_texts, hash_texts, take_texts
    from graphprep.storage.spill.runs import Runs, SpillPool

    step = 1 << 18
    with SpillPool(1 << 31) as pool:
        if isinstance(keys, np.ndarray):
            ids = keys.view(np.uint64)
            indexer = SpaceIndexer(pool, 1 << 30)
            for start in range(0, ids.size, step):
                indexer.add_ends(ids[start : start + step], 0)
            chunks = [chunk.ids for chunk in indexer.sorted()]
        else:
            offsets = np.frombuffer(keys.buffers()[1], np.int64)
            values = np.frombuffer(keys.buffers()[2], np.uint8)
            ids = hash_texts(offsets, values)
            texts = TextIndexer(pool, 1 << 30)
            for start in range(0, ids.size, step):
                own = offsets[start : start + step + 1]
                part = own - own[0], values[own[0] : own[-1]]
                rows, collision = distinct_texts(ids[start : start + step], *part)
                assert collision < 0
                texts.add_ends(ids[start : start + step][rows], *take_texts(*part, rows), 0)
            space = SortedSpace("", Runs(pool, 1, coalesce=False))
            for rows in texts.sorted():
                space.append(rows.keys, rows.types, np.diff(rows.offsets), rows.values)
            chunks = [chunk[0] for chunk in space.runs.read(0)]
        sizes = np.cumsum([0, *map(len, chunks)])
        zeros = [np.zeros(chunk.size, np.int32) for chunk in chunks]
        ranks = [np.arange(start, stop) for start, stop in itertools.pairwise(sizes)]
        rows = list(zip(chunks, zeros, ranks, strict=True))
        if not isinstance(keys, np.ndarray):
            by_key = SpaceIndexer(pool, 1 << 30)
            for row in rows:
                by_key.add_rows(*row)
            rows = list(by_key.sorted_rows())
            assert sum(row[0].size for row in rows) == sizes[-1], "two texts have one key"
        highest = int(chunks[-1][-1]) if isinstance(keys, np.ndarray) else -1
        find = NodeMap(int(sizes[-1]), rows=lambda: iter(rows), highest=highest).finder(1 << 31)
        assert find is not None
        return int(sizes[-1]), np.concatenate([find(ids[start : start + step]).typed for start in range(0, ids.size, step)])


def by_numpy(keys: Any) -> tuple[int, Any]:
    found, ranks = np.unique(keys if isinstance(keys, np.ndarray) else _as_bytes(keys), return_inverse=True)
    return found.size, ranks


def _as_bytes(keys: Any) -> Any:
    return np.frombuffer(keys.buffers()[2], "S25")


def by_pandas(keys: Any, sort: bool = False) -> tuple[int, Any]:
    import pandas as pd

    column = keys if isinstance(keys, np.ndarray) else pd.array(keys, dtype="str").astype(object)
    ranks, found = pd.factorize(column, sort=sort)
    return len(found), ranks


def by_pandas_sorted(keys: Any) -> tuple[int, Any]:
    return by_pandas(keys, sort=True)


def by_pyarrow(keys: Any) -> tuple[int, Any]:
    import pyarrow as pa

    encoded = (pa.array(keys) if isinstance(keys, np.ndarray) else keys).dictionary_encode()
    return len(encoded.dictionary), encoded.indices.to_numpy()


def by_polars(keys: Any) -> tuple[int, Any]:
    import polars as pl

    column = pl.Series("key", keys) if isinstance(keys, np.ndarray) else pl.Series("key", pl.from_arrow(keys))
    found = column.unique().sort()
    frame = pl.DataFrame({"key": found, "rank": np.arange(len(found))})
    ranks = column.to_frame().join(frame, on="key", how="left", maintain_order="left")["rank"]
    return len(found), ranks.to_numpy()


RUN: dict[str, Callable[[Any], tuple[int, Any]]] = dict(
    zip(SIDES, (by_graphprep, by_numpy, by_pandas, by_pandas_sorted, by_pyarrow, by_polars), strict=True)
)
IN_ORDER = ("graphprep", "np.unique", "pandas.factorize sorted", "polars")


def work(side: str, kind: str, rows: int) -> None:
    """Run one side once and print what it took, as JSON."""
    RUN[side](make_keys(kind, 5000))  # loads libraries and kernels
    keys = make_keys(kind, rows)
    before = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    count, ranks = RUN[side](keys)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    sample = np.asarray(ranks[:: max(1, rows // 1000)])
    answer = {
        "wall": wall,
        "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peak": (after.ru_maxrss - before.ru_maxrss) / 1024,
        "count": count,
        "sample": sample.tolist() if side in IN_ORDER else None,
    }
    print(json.dumps(answer))


def main() -> None:
    """Run all sides in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=KINDS)
    parser.add_argument("--worker", nargs=2, metavar=("SIDE", "KIND"))
    args = parser.parse_args()
    if args.worker:
        work(*args.worker, args.rows)
        return
    print("| keys | side | wall s | CPU s | M rows/s | memory MiB | wall x |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind in args.kinds:
        found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for _ in range(args.rounds):
            for side in SIDES:
                command = [sys.executable, __file__, "--rows", str(args.rows), "--worker", side, kind]
                found[side].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
        own = found["graphprep"][0]
        base = statistics.median(run["wall"] for run in found["graphprep"])
        for side, runs in found.items():
            assert runs[0]["count"] == own["count"], f"{side} finds another number of distinct keys"
            assert runs[0]["sample"] in (None, own["sample"]), f"{side} gives other ranks"
            wall, cpu, peak = (statistics.median(run[key] for run in runs) for key in ("wall", "cpu", "peak"))
            rate = args.rows / wall / 1e6
            print(f"| {kind} | {side} | {wall:.2f} | {cpu:.2f} | {rate:.1f} | {peak:.0f} | {wall / base:.2f} |", flush=True)


if __name__ == "__main__":
    main()
