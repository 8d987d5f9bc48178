"""Build CSC and CSR, one bucket at a time, and put every array in its place in the partitions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.group import group_by_key
from graphprep.kernels.cpu.sort import stable_order
from graphprep.model.errors import UsageError
from graphprep.model.schema import Layout, NeighborOrder
from graphprep.stages.leaves import EdgeRuns, Leaf, cut_leaves
from graphprep.stages.parted import PartedArray, PartedOffsets, PartList
from graphprep.stages.shuffle import (
    MOST_HELD_BYTES,
    Dealer,
    Desk,
    EdgeRoute,
    FlatRows,
    missing_order_key,
    order_role,
    plan_buckets,
)
from graphprep.storage.runs import Runs, SpillPool

Ints = NDArray[np.int64]
_ROW_BYTES = 64  # what building holds for each edge of a leaf
_DEALT_ROWS = 1 << 18  # of a built leaf, so many are dealt out at a time: they fit the cache


@dataclass(frozen=True)
class BuildRules:
    """How layouts are built."""

    bucket_bytes: int
    threads: int


@dataclass(frozen=True)
class BuiltLeaf:
    """A built piece: lengths of its rows, then for each entry the other end, its edge ID and, in a second layout, its edge row.

    ``arrival`` (edge IDs, ascending) and ``position`` say where in the piece each edge ID lies.
    """

    leaf: Leaf
    counts: Ints
    others: Ints
    edge_ids: Ints
    arrival: Ints
    position: Ints
    rows: Ints
    keys: NDArray[np.uint64] | None
    edge_rows: Ints | None
    repeated: bool


@dataclass(frozen=True)
class LayoutBuilder:
    """Builds one layout of one edge type.

    ``by_arrival`` says that edges come in the order of their edge IDs, ``edge_rows`` that they bring their edge rows.
    """

    edges: EdgeRuns
    by_arrival: bool
    edge_rows: bool = False

    def build(self, leaf: Leaf, *, positions: bool = True) -> BuiltLeaf:
        """Sort a leaf's edges by row, inside a row by the neighbour order, ties by edge ID."""
        rows, others, ids, keys, edge_rows = self._read(leaf)
        first = None if self.by_arrival else stable_order(ids)
        if first is not None:
            rows, others, ids = rows[first], others[first], ids[first]
            keys = None if keys is None else keys[first]
            edge_rows = None if edge_rows is None else edge_rows[first]
        counts, order = self._sort(leaf, rows, others, keys)
        position = np.empty(order.size if positions else 0, np.int64)
        if positions:
            position[order] = np.arange(order.size)
        sorted_rows, sorted_others = rows[order], others[order]
        repeated = self.edges.order == "id" and bool(
            ((sorted_rows[1:] == sorted_rows[:-1]) & (sorted_others[1:] == sorted_others[:-1])).any()
        )
        return BuiltLeaf(
            leaf=leaf,
            counts=counts if leaf.row_counts is None else leaf.row_counts,
            others=sorted_others,
            edge_ids=ids[order],
            arrival=ids,
            position=position,
            rows=sorted_rows,
            keys=None if keys is None else keys[order],
            edge_rows=None if edge_rows is None else edge_rows[order],
            repeated=repeated,
        )

    def _read(self, leaf: Leaf) -> list[Any]:
        """Return rows, others, edge IDs, keys and edge rows of a leaf, the last two None where there are none."""
        whole = self.edges.is_whole(leaf)
        pieces: list[list[NDArray[np.generic]]] = [[] for _ in range(5)]
        for chunk in self.edges.chunks(leaf.bucket):
            mask = None if whole else self.edges.inside(leaf, chunk)
            for number, array in enumerate(chunk):
                if array is not None:
                    pieces[number].append(array if mask is None else array[mask])
        empty = (np.int64, np.int64, np.int64, np.uint64, np.int64)
        wanted = (True, True, True, self.edges.missing_key is not None, self.edge_rows)
        return [
            (np.concatenate(some) if some else np.zeros(0, dtype)) if want else None
            for some, dtype, want in zip(pieces, empty, wanted, strict=True)
        ]

    def _sort(self, leaf: Leaf, rows: Ints, others: Ints, keys: NDArray[np.uint64] | None) -> tuple[Ints, Ints]:
        key = others if self.edges.order == "id" else keys
        if key is None:
            indptr, order = group_by_key(rows - leaf.low, leaf.high - leaf.low)
        else:
            by_key = stable_order(key)
            indptr, grouped = group_by_key(rows[by_key] - leaf.low, leaf.high - leaf.low)
            order = by_key[grouped]
        return np.diff(indptr), order


@dataclass(frozen=True)
class LayoutFiles:
    """What a layout's arrays are called and typed like."""

    folder: str
    index_dtype: str
    edge_id_dtype: str | None
    edge_rows: bool = False


@dataclass
class BuiltEdges:
    """What building the primary layout leaves for the edge columns: per leaf (arrival, position).

    Under neighbour order ``id``, ``repeated`` says whether two edges have the same ends; ``last`` are those of the last edge.
    """

    leaves: list[Leaf]
    positions: Runs | None
    repeated: bool = False
    last: tuple[int, int] = (-1, -1)

    def note_repeats(self, piece: BuiltLeaf) -> None:
        """Note whether two edges have the same ends, also where the cut between two pieces of a row parts them."""
        if piece.rows.size:
            first = (int(piece.rows[0]), int(piece.others[0]))
            self.repeated = self.repeated or piece.repeated or first == self.last
            self.last = (int(piece.rows[-1]), int(piece.others[-1]))


def write_layout(
    builder: LayoutBuilder,
    files: LayoutFiles,
    parts: PartList,
    row_sizes: Ints,
    edge_sizes: Ints,
    rules: BuildRules,
    pool: SpillPool,
    keep_positions: bool,
    second: SecondLayout | None = None,
) -> BuiltEdges:
    """Build a layout bucket by bucket and write its arrays; ``row_sizes`` and ``edge_sizes`` (int64[P]) are by partition."""
    leaves = cut_leaves(builder.edges, max(1, rules.bucket_bytes // _ROW_BYTES))
    built = BuiltEdges(leaves, Runs(pool, max(1, len(leaves))) if keep_positions else None)
    indptr = PartedOffsets(parts, f"{files.folder}/indptr.npy", row_sizes)
    indices = PartedArray(parts, f"{files.folder}/indices.npy", files.index_dtype, edge_sizes)
    ids = PartedArray(parts, f"{files.folder}/edge_ids.npy", files.edge_id_dtype, edge_sizes) if files.edge_id_dtype else None
    rows = PartedArray(parts, f"{files.folder}/edge_rows.npy", "int64", edge_sizes) if files.edge_rows else None
    row = 0

    def build(leaf: Leaf) -> BuiltLeaf:
        return builder.build(leaf, positions=keep_positions)

    for number, piece in enumerate(map_ordered(build, leaves, rules.threads)):
        indptr.append(piece.counts)
        indices.append(piece.others)
        if ids is not None:
            ids.append(piece.edge_ids)
        if rows is not None and piece.edge_rows is not None:
            rows.append(piece.edge_rows)
        built.note_repeats(piece)
        if built.positions is not None:
            built.positions.append(number, (piece.arrival, piece.position))
        if second is not None:
            second.add(piece, row)
        row += piece.others.size
    for array in (indptr, indices, ids, rows):
        if array is not None:
            array.close()
    return built


class SecondLayout:
    """Collects the edges of the finished primary layout for the other one, with their edge rows where these are wanted."""

    def __init__(self, route: EdgeRoute, num_rows: int, pool: SpillPool, bucket_bytes: int, *, edge_rows: bool) -> None:
        self.plan = plan_buckets(num_rows, route.num_edges * _ROW_BYTES, bucket_bytes)
        self.runs = Runs(pool, self.plan.num_buckets)
        self._edge_rows = edge_rows
        self._desk = Desk(min(bucket_bytes, MOST_HELD_BYTES))
        self._dealer: Dealer[FlatRows] = Dealer(self.runs, self.plan, self._desk)

    def add(self, piece: BuiltLeaf, first_row: int) -> None:
        """Deal out a finished piece, whose first entry is edge row ``first_row``."""
        for start in range(0, piece.others.size, _DEALT_ROWS):
            some = slice(start, min(start + _DEALT_ROWS, piece.others.size))
            edge_rows = np.arange(first_row + start, first_row + some.stop) if self._edge_rows else None
            keys = None if piece.keys is None else piece.keys[some]
            self._dealer.add(FlatRows((piece.others[some], piece.rows[some], piece.edge_ids[some], keys, edge_rows)))

    def finish(self) -> None:
        """Deal out the last pieces."""
        self._desk.clear()


def layout_folder(edge_path: str, layout: Layout) -> str:
    """Return the folder of a layout's arrays inside a partition."""
    return f"edges/{edge_path}/{layout}"


def effective_order(route: EdgeRoute, wanted: NeighborOrder) -> tuple[NeighborOrder, int | None]:
    """Return the order that an edge type gets, and the key of edges without a value; None where order needs no keys.

    An edge type without the column keeps ``input``.
    """
    if wanted not in ("time", "weight"):
        return wanted, None
    role = order_role(wanted, {key.role for key in route.columns if key.role is not None})
    return ("input", None) if role is None else (wanted, missing_order_key(role))


def settle_index_dtype(wanted: Literal["auto", "int32", "int64"], size: int) -> str:
    """Return int32 where ``size`` is below 2^31, else int64, unless one is asked for.

    Raises UsageError where int32 is asked for and cannot hold 0..size-1.
    """
    if wanted == "int32" and size > 2**31:
        raise UsageError(f"--index-dtype int32 cannot hold IDs up to {size - 1}", fix="use --index-dtype auto or int64")
    if wanted != "auto":
        return wanted
    return "int32" if size < 2**31 else "int64"
