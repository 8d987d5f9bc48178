"""The edges of one type in buckets of consecutive rows, as records: on their way from dealing out to building."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.bucket_plan import BucketPlan, Desk
from graphprep.edges.record_tags import KEYED, WITH_ROWS, packed_tag
from graphprep.kernels.cpu.edges.records import OTHER, OWNER, Block, Packing, carried, deal_packed, deal_records
from graphprep.model.dataclass import dataclass
from graphprep.storage.spill.records import RecordRuns
from graphprep.storage.spill.runs import SpillPool

Ints = NDArray[np.int64]
Words = NDArray[Any]  # uint32 or uint64
_LEAST_DEALT = 1 << 15  # fewer edges wait for others: each segment costs some numbers for every bucket


@dataclass(frozen=True)
class EdgeRows:
    """Edges of one type, one after another: owners and other ends of one dtype, uint32 or uint64, and what goes with them.

    ``ids`` are their edge IDs (uint64); an int is the first of IDs that count up. ``keys`` (uint64) are those of the neighbour
    order, ``edge_rows`` (int64) the places in the primary layout; None where there are none.
    """

    owners: Words
    others: Words
    ids: int | NDArray[np.uint64] = 0
    keys: NDArray[np.uint64] | None = None
    edge_rows: Ints | None = None

    @property
    def tag(self) -> int:
        """Say what the edges carry."""
        return (0 if self.keys is None else KEYED) | (0 if self.edge_rows is None else WITH_ROWS)

    @property
    def num_bytes(self) -> int:
        """Return the size in bytes."""
        return self.owners.nbytes * 2 + self.owners.size * (8 * self.tag.bit_count() + 8)


@dataclass(frozen=True)
class DealtRows:
    """Edges of one type in the order of their buckets: ``offsets`` are the borders of these. Edge IDs count from ``base``."""

    records: Words
    offsets: Ints
    tag: int


def deal_rows(pieces: Sequence[EdgeRows], plan: BucketPlan, packing: Packing | None) -> DealtRows:
    """Deal out edges that carry the same and whose IDs, where they count up, go on from piece to piece.

    ``packing`` is used where they carry nothing and there is room for their IDs.
    """
    first = pieces[0]
    if packing is not None and not first.tag and isinstance(first.ids, int):
        ends = [(piece.owners, piece.others) for piece in pieces]
        if sum(owners.size for owners, _ in ends) <= packing.most_records:
            words, borders = deal_packed(ends, packing, plan.num_buckets)
            return DealtRows(words, borders, packed_tag(packing))
    extra = []
    if first.keys is not None:
        extra.append(np.concatenate([piece.keys for piece in pieces if piece.keys is not None]))
    if first.edge_rows is not None:
        extra.append(np.concatenate([one.edge_rows.view(np.uint64) for one in pieces if one.edge_rows is not None]))
    stated = [piece.ids for piece in pieces if not isinstance(piece.ids, int)]
    ends = [(piece.owners, piece.others) for piece in pieces]
    ids = np.concatenate(stated) if stated else None
    records, offsets = deal_records(ends, extra, ids, plan.shift, plan.num_buckets)
    return DealtRows(records, offsets, first.tag)


class EdgeBuckets:
    """Takes edges of one type, in the order in which they are to lie within a bucket."""

    def __init__(
        self,
        pool: SpillPool,
        plan: BucketPlan,
        desk: Desk,
        dtype: np.dtype[Any] | type[np.unsignedinteger[Any]],
        packing: Packing | None = None,
        runs: RecordRuns | None = None,
    ) -> None:
        """Take edges to ``runs`` (None: to new ones), which may hold some."""
        self.plan = plan
        self.packing = packing
        self.runs = RecordRuns(pool, plan.num_buckets) if runs is None else runs
        self.dtype = np.dtype(dtype)
        self._desk = desk
        self._held: list[EdgeRows] = []
        desk.dealers.append(self)

    def add(self, edges: EdgeRows) -> None:
        """Take edges; few of them wait for more."""
        if not edges.owners.size:
            return
        if self._held and not self._goes_on(self._held[-1], edges):
            self.flush()
        self._held.append(edges)
        self._desk.hold(edges.num_bytes)

    def add_dealt(self, dealt: DealtRows, first_id: int) -> None:
        """Take edges that were dealt out; their edge IDs count from ``first_id``."""
        self.flush()
        self.runs.append(dealt.records, dealt.offsets, first_id, dealt.tag)

    def flush(self) -> None:
        """Deal out what was held back."""
        held, self._held = self._held, []
        if held:
            dealt = deal_rows(held, self.plan, self.packing)
            first = held[0].ids
            self.runs.append(dealt.records, dealt.offsets, first if isinstance(first, int) else 0, dealt.tag)

    @staticmethod
    def _goes_on(last: EdgeRows, edges: EdgeRows) -> bool:
        if last.tag != edges.tag or isinstance(last.ids, int) != isinstance(edges.ids, int):
            return False
        return not isinstance(last.ids, int) or last.ids + last.owners.size == edges.ids


def is_enough(num_edges: int, plan: BucketPlan) -> bool:
    """Return whether so many edges are worth being dealt out without waiting for more."""
    return num_edges >= max(_LEAST_DEALT, 64 * plan.num_buckets)


@dataclass(frozen=True)
class EdgeFields:
    """The fields of some records, as arrays; None where they carry no such thing."""

    owners: Words
    others: Words
    ids: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None
    edge_rows: Ints | None

    def take(self, chosen: Any) -> EdgeFields:
        """Return some edges."""
        keys = None if self.keys is None else self.keys[chosen]
        edge_rows = None if self.edge_rows is None else self.edge_rows[chosen]
        return EdgeFields(self.owners[chosen], self.others[chosen], self.ids[chosen], keys, edge_rows)


def fields_of(block: Block, tag: int, missing_key: int | None) -> EdgeFields:
    """Take records that are not packed apart; without keys of their own they get ``missing_key`` (None: none)."""
    records = block.records
    keys = carried(records, 0) if tag & KEYED else None
    if keys is None and missing_key is not None:
        keys = np.full(len(records), missing_key, np.uint64)
    edge_rows = carried(records, int(bool(tag & KEYED))).view(np.int64) if tag & WITH_ROWS else None
    return EdgeFields(records[:, OWNER], records[:, OTHER], block.edge_ids().view(np.uint64), keys, edge_rows)


def join_fields(parts: Iterator[EdgeFields], *, keyed: bool, with_rows: bool) -> EdgeFields:
    """Put edges one after another."""
    every = list(parts)
    none = np.zeros(0, np.uint64)
    return EdgeFields(
        np.concatenate([none.astype(np.uint32), *(part.owners for part in every)]) if every else none,
        np.concatenate([part.others for part in every]) if every else none,
        np.concatenate([part.ids for part in every]) if every else none,
        (np.concatenate([part.keys for part in every if part.keys is not None]) if every else none) if keyed else None,
        (np.concatenate([part.edge_rows for part in every if part.edge_rows is not None]) if every else none.view(np.int64))
        if with_rows
        else None,
    )
