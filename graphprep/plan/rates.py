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
    "collect row": 2.6,  # an edge or a node that was decoded, on the thread that keeps it
    "unpack byte": 1.9,  # of a compressed text, decompressed
    "keep text": 110.0,  # an end or a node that is a text: hashed, and found among those that are known
    "sort text": 50.0,
    "sort ID": 20.0,  # of a node with a record
    "mark ID": 2.2,  # of an end whose raw ID may be a typed ID
    "scatter edge": 6.3,
    "look up end": 18.0,  # whose raw ID is no typed ID
    "scatter value": 0.8,  # four bytes of a column
    "build edge": 12.0,  # in one layout
    "write edge value": 6.5,  # four bytes of a column, to the rows of the primary layout
    "write node value": 4.0,
}
_START_S = 0.06  # of looking at the input, and of opening and closing what a run works with
_OPEN_S = 0.05  # of decoding's threads, modules and files
_STAGE_S = 0.008
_PUBLISH_S = 0.02
_FILE_S = 0.0005
_FRESH = 1.4  # what decoding takes of bytes that no cache holds, over what it takes of a sample
_PROBE_S = 0.0042
_PROBE_ROWS = 1 << 20
_TRIES = 10
_VALUE_BYTES = 4
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
    amounts, num_layouts = sizes.amounts, len(run.options.layouts)
    ends, rows = 2 * amounts.num_edges, amounts.num_edges + amounts.num_node_rows
    of_edges, of_nodes = (sizes.store_bytes.get(f"{owner} columns", 0) / _VALUE_BYTES for owner in ("edge", "node"))
    looks_up = any(one.rows is not None for one in sizes.maps.values())

    def spent(number: float, rate: str, over: float = 1.0) -> float:
        return number * RATES[rate] * 1e-9 * slowness / over

    decode = _FRESH * sum(one.amount * one.unit_s for one in strata) / threads
    decode = max(decode, spent(sum(one.amount for one in strata if one.is_packed), "unpack byte"))
    decode += spent(rows, "collect row")
    index = spent(amounts.num_node_rows, "sort ID") if looks_up else 0.0
    if amounts.has_texts:
        decode += spent(ends + amounts.num_node_rows, "keep text", threads)
        index += spent(ends + amounts.num_node_rows, "sort text", threads)
    elif amounts.by_ends and not sizes.is_early:
        index += spent(ends, "mark ID", threads)
    shuffle = spent(of_edges + of_nodes, "scatter value", threads)
    if not sizes.is_early:
        shuffle += spent(amounts.num_edges * num_layouts, "scatter edge", threads)
        shuffle += spent(ends, "look up end", threads) if looks_up else 0.0
    build = spent(amounts.num_edges * num_layouts, "build edge", threads)
    build += spent(of_edges, "write edge value") + spent(of_nodes, "write node value")
    files = sizes.shape.num_parts * (sizes.shape.num_edge_types + sizes.shape.num_node_types) * 3
    return {
        "plan": _START_S * slowness,
        "decode": decode + _OPEN_S * slowness,
        "index": index + _STAGE_S * slowness,
        "shuffle": shuffle + _STAGE_S * slowness,
        "build": build + _STAGE_S * slowness,
        "publish": (_PUBLISH_S + files * _FILE_S) * slowness,
    }
