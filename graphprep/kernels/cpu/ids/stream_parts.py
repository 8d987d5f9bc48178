"""Place nodes one after another in the partition that suits their neighbors best. The caller allocates; the kernel fills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import Intrinsic, ir, njit, types

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class StreamState:
    """What a stream of nodes knows. ``parts``: int32[n], -1 for those that have none yet.

    Each of G balances puts a node into one of C classes, all balances' together, with a weight: ``classes`` (int32[G, n]) and
    ``weights`` (int64[G, n]), or [G, 1] where all nodes have the same. ``loads`` (int64[C, P]) are the weights of partitions by
    class, ``caps`` (int64[C]) what they are to be at most, ``means`` (float64[C]) what they are on average, ``rates``
    (float64[C]) what a weight of 1 costs in ``fennel``. ``counts`` (int64[P]) are zeros.
    """

    parts: NDArray[np.int32]
    classes: NDArray[np.int32]
    weights: Ints
    loads: Ints
    caps: Ints
    means: NDArray[np.float64]
    rates: NDArray[np.float64]
    counts: Ints


def place_nodes(state: StreamState, indptr: Ints, indices: Any, low: int, high: int, *, fennel: bool) -> int:
    """Place nodes [low, high) in turn; return how many changed their partition.

    ``indptr`` (int64[n + 1]) and ``indices`` (int32 or int64, below n) are the nodes' neighbors. A node leaves its partition
    before it is placed. Of the partitions where no load goes beyond its cap it gets the one with the best score: with c of its
    neighbors there, fill the largest load / cap of its classes, cost the largest rate · weight · sqrt(load / mean):
    ``ldg`` c · (1 − fill), ``fennel`` c − cost. Ties go to the least fill, then to the lowest number. Where every partition is
    full, it gets the one with the least fill.
    """
    return int(
        _place(
            state.parts,
            state.classes,
            state.weights,
            state.loads,
            state.caps,
            state.means,
            state.rates,
            state.counts,
            indptr,
            indices,
            low,
            high,
            fennel,
        )
    )


@Intrinsic
def _root(typing_context, number):
    """Return the square root of a float64, by the processor's instruction: that of the C library would have to be found."""

    def generate(context, builder, signature, values):
        function = builder.module.declare_intrinsic("llvm.sqrt", [ir.DoubleType()])
        return builder.call(function, values)

    return types.float64(types.float64), generate


@njit(cache=True, nogil=True, error_model="numpy")
def _place(parts, classes, weights, loads, caps, means, rates, counts, indptr, indices, low, high, fennel):
    num_balances = classes.shape[0]
    class_step = np.int64(classes.shape[1] > 1)
    weight_step = np.int64(weights.shape[1] > 1)
    num_moved = np.int64(0)
    for node in range(low, high):
        at, weight_at = node * class_step, node * weight_step
        old = np.int64(parts[node])
        if old >= 0:
            for g in range(num_balances):
                loads[classes[g, at], old] -= weights[g, weight_at]
        for entry in range(indptr[node], indptr[node + 1]):
            part = parts[indices[entry]]
            if part >= 0:
                counts[part] += 1
        best, best_score, best_fill = np.int64(-1), 0.0, 0.0
        least, least_fill = np.int64(0), np.inf
        for part in range(counts.size):
            fill, cost, fits = 0.0, 0.0, True
            for g in range(num_balances):
                one, weight = classes[g, at], weights[g, weight_at]
                load = loads[one, part]
                fits = fits and (weight == 0 or load + weight <= caps[one])
                if caps[one] > 0:
                    fill = max(fill, load / caps[one])
                    if fennel:
                        cost = max(cost, rates[one] * weight * _root(load / means[one]))
            if fill < least_fill:
                least, least_fill = part, fill
            if not fits:
                continue
            score = counts[part] - cost if fennel else counts[part] * (1.0 - fill)
            if best < 0 or score > best_score or (score == best_score and fill < best_fill):
                best, best_score, best_fill = part, score, fill
        if best < 0:
            best = least
        for g in range(num_balances):
            loads[classes[g, at], best] += weights[g, weight_at]
        num_moved += best != old
        parts[node] = best
        for part in range(counts.size):
            counts[part] = 0
    return num_moved
