"""How large exports become: bytes an edge and a node, columns apart, of files that graphs of 2^13 and 2^14 nodes became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphprep.model.options.plan import PlannedExport
from graphprep.plan.sizes import GraphSizes

# Texts grow with the digits of IDs, and Parquet with how little these repeat: of those it is about that.
_BYTES: Mapping[str, tuple[float, float]] = {
    "deepgnn": (60.0, 56.0),
    "deepgnn-edgelist": (14.7, 27.4),
    "deepgnn-json": (63.6, 78.5),
    "deepgnn-tsv": (10.3, 18.6),
    "dgl-chunked": (16.0, 0.0),
    "distdgl": (37.0, 21.0),
    "edges": (10.7, 14.7),
    "glt": (32.0, 8.0),
    "graphbolt": (8.0, 4.0),
    "metis": (8.0, 27.6),
    "mtx": (10.7, 14.7),
    "npy": (16.0, 0.0),
    "parquet": (4.8, 3.6),
    "pyg": (24.0, 0.0),
    "scipy": (12.0, 4.0),
}


def plan_exports(targets: Sequence[str], sizes: GraphSizes, left_out: Mapping[str, Sequence[str]]) -> tuple[PlannedExport, ...]:
    """Estimate the files of each target, from which columns are ``left_out``; those of other packages are not known."""
    columns = sum(sizes.store_bytes.get(f"{owner} columns", 0) for owner in ("node", "edge"))
    num_nodes, num_edges = sizes.amounts.num_nodes, sizes.amounts.num_edges
    return tuple(
        PlannedExport(target, about_bytes(target, num_nodes, num_edges, columns), tuple(left_out.get(target, ())))
        for target in targets
    )


def about_bytes(target: str, num_nodes: int, num_edges: int, column_bytes: int) -> int | None:
    """Estimate the files of a target; None for one of another package."""
    rates = _BYTES.get(target)
    return None if rates is None else round(rates[0] * num_edges + rates[1] * num_nodes) + column_bytes
