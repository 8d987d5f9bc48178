"""The edge engine's kernels on the CPU, all of them: this module is a ``graphprep.kernels.edges.Kernels``."""

from graphprep.kernels.cpu.bytes.blocks import copy_blocks, count_blocks, scatter_blocks
from graphprep.kernels.cpu.edges.degree import count_ids, find_limits, order_descending
from graphprep.kernels.cpu.edges.generate import fill_draws, first_edge, grid_edges, rmat_edges, user_edges
from graphprep.kernels.cpu.edges.place import (
    count_rows,
    gather_edges,
    has_repeats,
    place_edges,
    scatter_edges,
    scatter_entries,
    sort_records,
    start_buckets,
    unpack_edges,
)
from graphprep.kernels.cpu.edges.relabel import fill_lengths, invert, relabel_ids, relabel_rows, relabel_sorted_rows
from graphprep.kernels.cpu.edges.rows import sort_rows
from graphprep.kernels.cpu.edges.sort_keys import first_of_runs, gather_bucket, scatter_keys, sort_buckets

__all__ = [
    "copy_blocks",
    "count_blocks",
    "count_ids",
    "count_rows",
    "fill_draws",
    "fill_lengths",
    "find_limits",
    "first_edge",
    "first_of_runs",
    "gather_bucket",
    "gather_edges",
    "grid_edges",
    "has_repeats",
    "invert",
    "order_descending",
    "place_edges",
    "relabel_ids",
    "relabel_rows",
    "relabel_sorted_rows",
    "rmat_edges",
    "scatter_blocks",
    "scatter_edges",
    "scatter_entries",
    "scatter_keys",
    "sort_buckets",
    "sort_records",
    "sort_rows",
    "start_buckets",
    "unpack_edges",
    "user_edges",
]
