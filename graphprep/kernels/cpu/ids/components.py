"""Weakly connected components by union and find: every node's parent is a node of its component that is not above it."""

from __future__ import annotations

from graphprep.kernels.compiler.jit import njit


@njit(cache=True, nogil=True)
def join_ends(parents, src, dst):
    """Join the components of both ends of edges (int64[k] each) in ``parents`` (int64[n], at first every node itself).

    The lower root becomes the root of both; paths are halved on the way. Source: Tarjan and van Leeuwen, JACM 1984.
    """
    for i in range(src.size):
        a, b = src[i], dst[i]
        while parents[a] != a:
            parents[a] = parents[parents[a]]
            a = parents[a]
        while parents[b] != b:
            parents[b] = parents[parents[b]]
            b = parents[b]
        if a < b:
            parents[b] = a
        elif b < a:
            parents[a] = b


@njit(cache=True, nogil=True)
def find_root(parents):
    """Set every node's parent (int64[n]) to the root of its component, which is its lowest node."""
    for i in range(parents.size):
        parents[i] = parents[parents[i]]
