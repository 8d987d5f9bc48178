"""Communities by label propagation. The caller allocates; the jitted function fills."""

from __future__ import annotations

from typing import Any

from graphprep.kernels.compiler.jit import njit


def choose_labels(
    indptr: Any, neighbors: Any, blocks: Any, block_nodes: int, shift: int, labels: Any, sizes: Any, counts: Any
) -> int:
    """Let each node once take the label that is worth most to it; return how many took another one.

    A label that k neighbours and v nodes have, the node itself not among them, is worth k - (v - k) / 2^``shift``; the node's
    own label wins ties, then the one that is met first. Nodes come block after block of ``block_nodes`` (``blocks``: int64,
    their order). ``labels``: int32[n] or int64[n], ``sizes``: int64[n], how many nodes have each; ``counts``: int32[n] or
    int64[n], all 0, before and after.
    Source: Boldi, Rosa, Santini, Vigna 2011, "Layered Label Propagation", section 4.
    """
    return int(_choose_labels(indptr, neighbors, blocks, block_nodes, shift, labels, sizes, counts))


@njit(cache=True, nogil=True)
def _choose_labels(indptr, neighbors, blocks, block_nodes, shift, labels, sizes, counts):
    changed = 0
    for b in range(blocks.size):
        first = blocks[b] * block_nodes
        for node in range(first, min(first + block_nodes, labels.size)):
            start, stop = indptr[node], indptr[node + 1]
            for i in range(start, stop):
                if neighbors[i] != node:
                    counts[labels[neighbors[i]]] += 1
            own = labels[node]
            sizes[own] -= 1
            best = own
            most = (counts[own] << shift) - (sizes[own] - counts[own])
            for i in range(start, stop):
                label = labels[neighbors[i]]
                count = counts[label]
                if count > 0:
                    worth = (count << shift) - (sizes[label] - count)
                    if worth > most:
                        best, most = label, worth
                    counts[label] = 0
            sizes[best] += 1
            labels[node] = best
            changed += best != own
    return changed
