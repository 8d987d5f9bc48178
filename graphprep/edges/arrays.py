"""Graphs in memory: arrays in, arrays out, on all cores. The output is the same for any number of threads."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphprep.edges.adjacency import Adjacency
from graphprep.edges.array_rows import (
    build_rows,
    count_threads,
    even_pieces,
    index_dtype,
    plan_records,
    run_tasks,
    scatter_edges,
    scatter_entries,
)
from graphprep.edges.device.find import compute_there, find_kernels
from graphprep.engine.ledger import scratch_array
from graphprep.kernels.edges import Kernels, Relabeling, Rows, as_input
from graphprep.model.errors import DataError, UsageError, did_you_mean
from graphprep.model.schema import Layout

DegreeKind = Literal["degree", "in-degree", "out-degree"]
Ints = NDArray[Any]

_LAYOUTS = ("csc", "csr")
_DEGREES = ("degree", "in-degree", "out-degree")
_SLICE = 1 << 20  # IDs looked at by one call
_SORT_EDGES = 1 << 14  # of rows sorted together: their records fit L2, twice
_MOST_NODES = 2**62


def build_adjacency(
    src: ArrayLike,
    dst: ArrayLike,
    num_nodes: int | tuple[int, int] | None = None,
    layout: Layout = "csc",
    *,
    sort_neighbors: bool = False,
    edge_ids: bool = True,
    threads: int | None = None,
    device: str | None = None,
) -> Adjacency:
    """Build CSC or CSR of the edges ``src[i] -> dst[i]``.

    ``src`` and ``dst``: integers [m], 0 or more. ``num_nodes``: of both sides, or (of sources, of destinations); None: the
    highest ID and one. Neighbours of a row stand in input order; with ``sort_neighbors`` they ascend, equal ones in input
    order. The ID of an edge is its position. Raises DataError for an ID out of range.
    """
    given = (src, dst, num_nodes, check_layout(layout), sort_neighbors, edge_ids)
    if (there := compute_there(lambda graphs: graphs.build_adjacency(*given), (src, dst), device)) is not None:
        return there
    kernels, threads, is_csc = find_kernels(device), count_threads(threads), layout == "csc"
    ends = as_ends(src, dst)
    num_src, num_dst = check_ends(kernels, *ends, num_nodes, threads)
    rows, others, num_rows, num_others = (*ends[::-1], num_dst, num_src) if is_csc else (*ends, num_src, num_dst)
    plan = plan_records(num_rows, num_others, rows.size, rows.size if edge_ids else 0)
    with scratch_array(plan.num_words(rows.size), np.uint64) as words:
        segments = scatter_edges(kernels, rows, others, plan, words, threads)
        built = build_rows(kernels, segments, plan, num_rows, num_others, sort_neighbors=sort_neighbors, threads=threads)
    return as_adjacency(layout, built, num_others, edge_ids=edge_ids)


def transpose(
    adjacency: Adjacency,
    *,
    edge_ids: Literal["keep", "rows", "drop"] = "keep",
    threads: int | None = None,
    device: str | None = None,
) -> Adjacency:
    """Turn CSR into CSC, or CSC into CSR. Neighbours of the result ascend, equal ones stay in order.

    ``edge_ids``: ``keep`` those of ``adjacency``, where it has some; ``rows``: each edge's position there; ``drop`` them.
    Raises DataError for arrays that do not fit each other.
    """
    _one_of("edge_ids", edge_ids, ("keep", "rows", "drop"))
    layout: Layout = "csr" if check_layout(adjacency.layout) == "csc" else "csc"
    there = compute_there(lambda graphs: graphs.transpose(adjacency, layout, edge_ids), _arrays_of(adjacency), device)
    if there is not None:
        return there
    kernels, threads = find_kernels(device), count_threads(threads)
    indptr, indices, ids = _checked(kernels, adjacency, threads)
    carry = edge_ids == "rows" or (edge_ids == "keep" and adjacency.edge_ids is not None)
    ids = ids if edge_ids == "keep" else ids[:0]
    num_ids = _num_ids(kernels, ids, threads) if ids.size else indices.size
    num_columns, num_rows = adjacency.num_neighbors, adjacency.num_rows
    plan = plan_records(num_columns, num_rows, indices.size, num_ids if carry else 0, count_up=not ids.size)
    with scratch_array(plan.num_words(indices.size), np.uint64) as words:
        segments = scatter_entries(kernels, indptr, indices, ids if carry else ids[:0], plan, words, threads)
        built = build_rows(kernels, segments, plan, num_columns, num_rows, sort_neighbors=False, threads=threads)
    return as_adjacency(layout, built, adjacency.num_rows, edge_ids=carry)


def degrees(
    src: ArrayLike,
    dst: ArrayLike,
    num_nodes: int | tuple[int, int] | None = None,
    *,
    threads: int | None = None,
    device: str | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the edges that leave and that enter every node.

    Arguments are those of ``build_adjacency``. Returns (out-degrees int64[sources], in-degrees int64[destinations]).
    """
    if (there := compute_there(lambda graphs: graphs.degrees(src, dst, num_nodes), (src, dst), device)) is not None:
        return there  # type: ignore[no-any-return]
    kernels, threads = find_kernels(device), count_threads(threads)
    ends = as_ends(src, dst)
    num_src, num_dst = check_ends(kernels, *ends, num_nodes, threads)
    counted = _count_all(kernels, [(ends[0], num_src), (ends[1], num_dst)], threads)
    return counted[0], counted[1]


def reorder_by_degree(
    adjacency: Adjacency,
    *,
    by: DegreeKind = "degree",
    sort_neighbors: bool = False,
    threads: int | None = None,
    device: str | None = None,
) -> tuple[Adjacency, NDArray[np.int64]]:
    """Give nodes new IDs by descending degree, ties by ID, and rebuild the rows.

    ``by``: ``degree`` (in and out), ``in-degree`` or ``out-degree``. Returns (adjacency, int64[n] the new ID of every node).
    Neighbours of a row stay in order, or ascend with ``sort_neighbors``. Edges keep their IDs. Raises UsageError where rows
    and neighbours are not the same nodes.
    """
    _one_of("by", by, _DEGREES)
    if adjacency.num_rows != adjacency.num_neighbors:
        raise UsageError(
            f"{adjacency.num_rows} rows with neighbors among {adjacency.num_neighbors} nodes are of two node types",
            fix="reorder the adjacency of one node type",
        )
    there = compute_there(
        lambda graphs: graphs.reorder_by_degree(adjacency, by, sort_neighbors=sort_neighbors), _arrays_of(adjacency), device
    )
    if there is not None:
        return there  # type: ignore[no-any-return]
    kernels, threads = find_kernels(device), count_threads(threads)
    indptr, indices, ids = _checked(kernels, adjacency, threads)
    degrees = _degrees_of(kernels, adjacency, indptr, indices, by, threads)
    order = kernels.order_descending(degrees, np.empty_like(degrees), np.empty_like(degrees))
    narrow = index_dtype(order.size)
    new_ids = np.empty(order.size, narrow)
    kernels.invert(order, new_ids)
    old = Relabeling(indptr, indices, ids, as_input(order.astype(narrow)), as_input(new_ids))
    built = _rebuild(kernels, old, sort_neighbors=sort_neighbors, threads=threads)
    return as_adjacency(adjacency.layout, built, order.size, edge_ids=adjacency.edge_ids is not None), new_ids.astype(np.int64)


def _arrays_of(adjacency: Adjacency) -> tuple[object, ...]:
    return adjacency.indptr, adjacency.indices, adjacency.edge_ids


def as_adjacency(layout: Layout, rows: Rows, num_neighbors: int, *, edge_ids: bool) -> Adjacency:
    """Return built rows as the library's users see them."""
    return Adjacency(layout, rows.indptr, rows.indices, rows.edge_ids if edge_ids else None, num_neighbors)


def as_ends(src: ArrayLike, dst: ArrayLike) -> tuple[Ints, Ints]:
    """Return both ends of edges as arrays for kernels, both int32 or both int64. Raises UsageError."""
    ends = [as_ids(src, "src"), as_ids(dst, "dst")]
    if ends[0].size != ends[1].size:
        raise UsageError(f"src has {ends[0].size} IDs, dst has {ends[1].size}", fix="pass one of each for every edge")
    if ends[0].dtype != ends[1].dtype:
        ends = [as_input(end.astype(np.int64)) for end in ends]
    return ends[0], ends[1]


def as_ids(values: ArrayLike, name: str) -> Ints:
    """Return integers [m] as int32 or int64 for kernels, without a copy where that can be."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise UsageError(
            f"{name} must be integers in one dimension, found {array.dtype} of shape {array.shape}",
            fix="pass an array of int64",
        )
    if array.dtype == np.uint64:
        array = array.view(np.int64)  # past 2^63 they are below 0, which is refused
    elif array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    return as_input(array)


def check_ends(
    kernels: Kernels, src: Ints, dst: Ints, num_nodes: int | tuple[int, int] | None, threads: int
) -> tuple[int, int]:
    """Return how many nodes either side has. Raises DataError for an ID out of range."""
    lows, highs = zip(limits(kernels, src, threads), limits(kernels, dst, threads), strict=True)
    if num_nodes is None:
        counts = (max(highs) + 1, max(highs) + 1)
    else:
        counts = num_nodes if isinstance(num_nodes, tuple) else (num_nodes, num_nodes)
    if not all(0 <= count <= _MOST_NODES for count in counts):
        raise UsageError(f"num_nodes must be 0 to 2^62, found {num_nodes}", fix="leave it out: the highest ID and one")
    for name, ids, low, high, count in zip(("src", "dst"), (src, dst), lows, highs, counts, strict=True):
        if ids.size and (low < 0 or high >= count):
            at = int(np.argmax((ids < 0) | (ids >= count)))
            wanted = f"expected an ID in 0..{count - 1}" if count else "there are no nodes"
            raise DataError(
                f"{name}[{at}]: {wanted}, found {ids[at]}" + " (or past int64)" * bool(ids[at] < 0),
                fix="raise num_nodes" if low >= 0 else "count nodes from 0; graphprep.rank_ids makes such IDs of any integers",
            )
    return counts


def limits(kernels: Kernels, ids: Ints, threads: int) -> tuple[int, int]:
    """Return the lowest and highest ID, (0, -1) where there is none."""
    found: list[tuple[int, int]] = [(0, -1)] * -(-ids.size // _SLICE)

    def look(piece: int) -> None:
        found[piece] = kernels.find_limits(ids[piece * _SLICE : (piece + 1) * _SLICE])

    run_tasks(look, range(len(found)), threads)
    return min((low for low, _ in found), default=0), max((high for _, high in found), default=-1)


def check_layout(layout: Layout) -> Layout:
    """Return ``layout``. Raises UsageError where it is none."""
    if str(layout) == "coo":
        raise UsageError(
            "layout 'coo' has no rows: it is src and dst themselves",
            fix="keep these; read_edges reads them from a file, sort_edges orders them",
        )
    _one_of("layout", layout, _LAYOUTS)
    return layout


def _one_of(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise UsageError(
            f"{name} must be one of {', '.join(known)}, found {value!r}",
            fix=did_you_mean(value, known, f"pass {name}={known[0]!r}"),
        )


def _checked(kernels: Kernels, adjacency: Adjacency, threads: int) -> tuple[Ints, Ints, Ints]:
    """Return indptr, indices and edge IDs (empty: none) for kernels. Raises DataError where they lead out of an array."""
    indptr = as_input(np.asarray(adjacency.indptr).astype(np.int64, copy=False))
    indices = as_ids(adjacency.indices, "indices")
    ids = indices[:0] if adjacency.edge_ids is None else as_ids(adjacency.edge_ids, "edge_ids")
    if indptr.ndim != 1 or not indptr.size or indptr[0] != 0 or indptr[-1] != indices.size or (indptr[1:] < indptr[:-1]).any():
        raise DataError(f"indptr must ascend from 0 to {indices.size}", fix="pass what graphprep.build_adjacency returned")
    low, high = limits(kernels, indices, threads)
    if low < 0 or high >= adjacency.num_neighbors:
        raise DataError(
            f"indices must be in 0..{adjacency.num_neighbors - 1}, found {low if low < 0 else high}",
            fix="say in num_neighbors how many nodes the neighbors' side has",
        )
    if adjacency.edge_ids is not None and ids.size != indices.size:
        raise DataError(f"there are {indices.size} edges and {ids.size} edge IDs", fix="pass one for every edge, or None")
    return indptr, indices, ids


def _num_ids(kernels: Kernels, ids: Ints, threads: int) -> int:
    """Return what edge IDs are below. Raises DataError where one is negative."""
    low, high = limits(kernels, ids, threads)
    if low < 0:
        raise DataError(f"edge_ids must be at least 0, found {low}", fix="pass positions of edges")
    return high + 1


def _count_all(kernels: Kernels, ends: list[tuple[Ints, int]], threads: int) -> list[NDArray[np.int64]]:
    """Count each array's IDs below its number: each in as many shares as there are threads for it and memory is worth it."""
    tables: list[list[NDArray[Any]]] = []
    tasks: list[tuple[Ints, NDArray[Any]]] = []
    for ids, count in ends:
        shares = max(1, min(threads // len(ends), ids.size // max(count, 1)))
        cuts = np.linspace(0, ids.size, shares + 1).astype(np.int64)
        dtype = np.uint32 if ids.size < 2**32 else np.int64
        tables.append([np.zeros(count, dtype) for _ in range(shares)])
        tasks += [(ids[low:high], table) for low, high, table in zip(cuts[:-1], cuts[1:], tables[-1], strict=True)]
    run_tasks(lambda task: kernels.count_ids(*task), tasks, threads)
    counted = []
    for shares_of_end in tables:
        total = shares_of_end[0].astype(np.int64)
        for table in shares_of_end[1:]:
            total += table
        counted.append(total)
    return counted


def _degrees_of(
    kernels: Kernels, adjacency: Adjacency, indptr: Ints, indices: Ints, by: DegreeKind, threads: int
) -> NDArray[np.int64]:
    of_rows = "in-degree" if adjacency.layout == "csc" else "out-degree"
    if by == of_rows:
        return np.diff(indptr)
    (of_neighbors,) = _count_all(kernels, [(indices, adjacency.num_neighbors)], threads)
    if by == "degree":
        of_neighbors += np.diff(indptr)
    return of_neighbors


def _rebuild(kernels: Kernels, old: Relabeling, *, sort_neighbors: bool, threads: int) -> Rows:
    """Rebuild rows in their new order."""
    num_rows, num_edges = old.old_rows.size, old.indices.size
    new = Rows(np.empty(num_rows + 1, np.int64), np.empty(num_edges, index_dtype(num_rows)), np.empty_like(old.edge_ids))
    kernels.fill_lengths(old.indptr, old.old_rows, new.indptr)
    if not sort_neighbors:
        pieces = even_pieces(new.indptr, threads)
        run_tasks(lambda piece: kernels.relabel_rows(old, *piece, new), pieces, threads)
        return new
    num_ids = _num_ids(kernels, old.edge_ids, threads) if old.edge_ids.size else 0

    def sort(piece: tuple[int, int]) -> None:
        kernels.relabel_sorted_rows(old, np.array(_runs_of_rows(new.indptr, *piece)), num_rows, num_ids, new)

    run_tasks(sort, even_pieces(new.indptr, threads), threads)
    return new


def _runs_of_rows(indptr: NDArray[np.int64], first: int, stop: int) -> list[tuple[int, int]]:
    """Cut rows [first, stop) into runs of at most ``_SORT_EDGES`` edges and as many rows, or one row."""
    runs = []
    while first < stop:
        end = int(np.searchsorted(indptr, indptr[first] + _SORT_EDGES, "right")) - 1
        end = min(max(end, first + 1), first + _SORT_EDGES, stop)
        runs.append((first, end))
        first = end
    return runs
