"""How long stages take: rates that were measured on one machine, and how this one compares with it just now.

Decoding is not among them: it is timed on a sample of the input itself.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from graphprep.convert.run import Run
from graphprep.plan.sample import Stratum
from graphprep.plan.sizes import GraphSizes

# Nanoseconds on one thread of the machine on which ``probe`` takes ``_PROBE_S``. docs/plan.md says how they were measured.
RATES: Mapping[str, float] = {
    "collect row": 2.0,  # an edge or a node that was decoded, on the thread that keeps it
    "unpack byte": 2.4,  # of a compressed text, decompressed
    "index text": 600.0,  # an end or a node that is a text, and its part in sorting them
    "index ID": 6.0,  # an end or a node whose raw ID is no typed ID
    "mark ID": 2.0,  # an end whose raw ID may be a typed ID
    "scatter edge": 9.0,  # whose ends need not be looked up
    "look up end": 12.0,
    "scatter value": 6.0,  # of a column
    "build edge": 14.0,  # in one layout
    "write value": 14.0,  # of a column
}
_START_S = 0.06  # of looking at the input, and of opening and closing what a run works with
_PUBLISH_S = 0.01
_FILE_S = 0.0005
_PROBE_S = 0.0115
_PROBE_ROWS = 1 << 20
_TRIES = 3
_SCALE = 0.9  # of a second thread, as far as it counts


def probe() -> float:
    """Return how many times longer this machine takes now than that of the rates for what stages do most: scattered reads."""
    rows = np.arange(_PROBE_ROWS, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(_PROBE_ROWS)
    places, values = rows.astype(np.int64), np.empty(_PROBE_ROWS, np.uint64)
    best = float("inf")
    for _ in range(_TRIES):
        begin = time.perf_counter()
        for _ in range(2):
            np.take(rows, places, out=values, mode="clip")
            np.cumsum(values, out=values)
        best = min(best, time.perf_counter() - begin)
    return best / _PROBE_S


def stage_seconds(run: Run, sizes: GraphSizes, strata: list[Stratum], slowness: float) -> dict[str, float]:
    """Return how long each stage takes, in seconds, on the threads of a run."""
    threads = 1 + _SCALE * (run.memory.threads - 1)
    amounts = sizes.amounts
    ends, rows = 2 * amounts.num_edges, amounts.num_edges + amounts.num_node_rows
    values = _num_values(sizes)
    needs_map = any(one.rows is not None for one in sizes.maps.values())

    def spent(number: float, rate: str, over: float = 1.0) -> float:
        return number * RATES[rate] * 1e-9 * slowness / over

    decode = sum(one.amount * one.unit_s for one in strata) / threads
    decode = max(decode, spent(sum(one.amount for one in strata if one.is_packed), "unpack byte"))
    decode += spent(rows, "collect row")
    texts = spent(ends + amounts.num_node_rows, "index text", threads) if amounts.has_texts else 0.0
    index = texts * 0.35
    decode += texts * 0.65
    shuffle = spent(values, "scatter value", threads)
    if not sizes.is_early:
        shuffle += spent(amounts.num_edges * len(run.options.layouts), "scatter edge", threads)
        shuffle += spent(ends, "look up end", threads) if needs_map else 0.0
        index += 0.0 if amounts.has_texts else spent(ends, "index ID" if needs_map else "mark ID", threads)
    build = spent(amounts.num_edges * len(run.options.layouts), "build edge", threads) + spent(values, "write value")
    files = sizes.shape.num_parts * (sizes.shape.num_edge_types + sizes.shape.num_node_types) * 3
    return {
        "plan": _START_S * slowness,
        "decode": decode,
        "index": index,
        "shuffle": shuffle,
        "build": build,
        "publish": (_PUBLISH_S + files * _FILE_S) * slowness,
    }


def _num_values(sizes: GraphSizes) -> float:
    """Return how many values of four bytes columns have."""
    return (sizes.store_bytes.get("edge columns", 0) + sizes.store_bytes.get("node columns", 0)) / 4
