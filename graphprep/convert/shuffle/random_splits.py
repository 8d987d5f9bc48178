"""Random splits of nodes and edges: the part follows from the seed and the hashes of raw IDs alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import NO_PART, SplitRule
from graphprep.convert.columns.routes import ColumnRoute, EdgeRoute
from graphprep.convert.shuffle.route import Routing
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.model.rows import ColumnKey
from graphprep.store.columns.cells import scalar_cells

Ints = NDArray[np.int64]
SPLIT_KEY = ColumnKey("split", "numbers", "int8", role="split")


def add_parts(route: ColumnRoute, parts: NDArray[np.int8], rows: Ints, ids: Ints | None, counts: Ints) -> None:
    """Scatter the parts of some rows; those in no part have no cell."""
    counts[:NO_PART] += np.bincount(parts, minlength=NO_PART + 1)[:NO_PART]
    if (parts == NO_PART).any():
        kept = np.flatnonzero(parts != NO_PART)
        parts, rows, ids = parts[kept], rows[kept], None if ids is None else ids[kept]
    route.scatter(rows, ids, scalar_cells(parts))


def split_edges(
    routing: Routing,
    route: EdgeRoute,
    rule: SplitRule,
    hashes: tuple[NDArray[np.uint64], NDArray[np.uint64]],
    owners: Ints,
    ids: Ints,
) -> None:
    """Scatter the random parts of some edges; ``hashes`` are h of their sources and destinations.

    An edge's hash is that of the edge checksum, so that parallel edges fall into one part.
    """
    counts = routing.edge_parts.setdefault(routing.edge_type(route), np.zeros(NO_PART, np.int64))
    pairs = hash_ints(hashes[0] ^ hash_ints(hashes[1]))
    add_parts(routing.edge_column(route, SPLIT_KEY), rule.parts(pairs), owners, ids, counts)
