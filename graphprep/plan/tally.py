"""What the pieces of an input hold: rows by type, columns, and raw IDs; and from it what all of it holds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.keys import key_rows
from graphprep.convert.decoded.rows import IdRange
from graphprep.model.options.plan import Estimate
from graphprep.model.rows import ColumnChunk, ColumnKey, RawNodes, RawTexts, Relation
from graphprep.plan.distinct import estimate_distinct
from graphprep.plan.sample import Piece, Stratum

_SURE = 1.96  # standard errors
_NEAR = 0.02  # of the number of nodes, from which IDs may seem to be away
Owner = str | Relation


@dataclass
class ColumnTally:
    """A column of one type, in all of the input: rows that have it, values, and bytes as they were decoded.

    ``width`` is the number of values of every row that was seen, None where they differ. ``shapes`` and ``guesses`` are those
    of chunks, ``lengths`` the least and the most values of a row of numbers.
    """

    rows: float = 0.0
    values: float = 0.0
    decoded_bytes: float = 0.0
    width: float | None = None
    is_seen: bool = False
    shapes: set[tuple[int, ...] | None] = field(default_factory=set)
    lengths: set[int] = field(default_factory=set)
    guesses: set[str | None] = field(default_factory=set)

    def add(self, rows: int, values: float, num_bytes: float, times: float) -> None:
        """Add what a piece has, of an input that is ``times`` as large."""
        width = values / rows if rows else None
        self.width = width if not self.is_seen or self.width == width else None
        self.is_seen = True
        self.rows += rows * times
        self.values += values * times
        self.decoded_bytes += num_bytes * times


@dataclass
class IdTally:
    """The raw IDs of one ID space as they occurred: the different ones of each piece, with how many times larger all is."""

    pieces: list[NDArray[np.uint64]] = field(default_factory=list)
    times: float = 1.0
    ends: float = 0.0
    low: int = 0
    high: int = -1
    are_texts: bool = False
    are_integers: bool = True
    text_bytes: float = 0.0
    num_texts: int = 0

    def add_range(self, found: IdRange) -> None:
        """Take in a range of integers."""
        known = IdRange(self.low, self.high).join(found) if self.high >= self.low else found
        self.low, self.high = known

    @property
    def mean_text_bytes(self) -> float:
        """Return the mean length of a text."""
        return self.text_bytes / self.num_texts if self.num_texts else 0.0

    @property
    def highest(self) -> int:
        """Return the highest ID to be expected: beyond the highest that was seen, by one mean gap of those at the top."""
        if self.times <= 1 or self.high < 0:
            return self.high
        ids = np.unique(np.concatenate(self.pieces))
        top = ids[-min(ids.size, 32) :].astype(np.float64)
        gap = (top[-1] - top[0]) / max(1, top.size - 1)
        return self.high + int(gap * (1 - 1 / self.times))


@dataclass
class Tally:
    """All that pieces tell. Counts are those of the whole input.

    ``counted`` has the node types whose records seem to count: their IDs are consecutive in every piece.
    """

    node_rows: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    edges: dict[Relation, float] = field(default_factory=lambda: defaultdict(float))
    columns: dict[tuple[Owner, ColumnKey], ColumnTally] = field(default_factory=lambda: defaultdict(ColumnTally))
    ids: dict[str, IdTally] = field(default_factory=lambda: defaultdict(IdTally))
    node_ids: IdTally = field(default_factory=IdTally)
    counted: dict[str, IdTally] = field(default_factory=dict)
    num_records: float = 0.0
    num_bad: float = 0.0
    warnings: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    errors: dict[Owner, float] = field(default_factory=dict)
    has_aligned: bool = False

    @property
    def num_edges(self) -> float:
        """Return the number of edges."""
        return sum(self.edges.values())

    @property
    def num_node_rows(self) -> float:
        """Return the number of rows of nodes."""
        return sum(self.node_rows.values())

    def are_counted(self, name: str) -> bool:
        """Return whether the records of a node type seem to be 0..n-1, in order."""
        own, number = self.counted.get(name), self.node_rows.get(name, 0.0)
        if own is None or own.are_texts:
            return False
        error = self.errors.get(name, 0.0) * number
        return own.low <= error + _NEAR * number and abs(own.high + 1 - number) <= error + _NEAR * number

    def count(self, owner: Owner, number: float) -> Estimate:
        """Return a number of rows as an estimate, by how much the pieces differ."""
        error = self.errors.get(owner, 0.0)
        if not error:
            return Estimate.exactly(round(number))
        return Estimate(round(number), max(0, math.floor(number * (1 - error))), math.ceil(number * (1 + error)))

    def distinct(self, name: str) -> Estimate:
        """Estimate how many different IDs occur in an ID space."""
        found = self.ids[name]
        most = min(found.ends, math.inf if found.are_texts else found.highest - min(0, found.low) + 1)
        return estimate_distinct(found.pieces, found.times, most)


def tally(strata: Iterable[Stratum], space_of_end: Any) -> Tally:
    """Put together what pieces hold; ``space_of_end(relation, side)`` names the ID space of an end."""
    found = Tally()
    for stratum in strata:
        shares: dict[Owner, list[float]] = defaultdict(list)
        for number, piece in enumerate(stratum.pieces):
            _add_piece(found, stratum, piece, space_of_end, shares, number)
        _add_errors(found, stratum, shares)
    return found


def _add_piece(
    found: Tally, stratum: Stratum, piece: Piece, space_of_end: Any, shares: dict[Owner, list[float]], number: int
) -> None:
    rows, times = piece.rows, stratum.times
    found.num_bad += piece.num_bad * times
    found.num_records += rows.num_records * times
    for text, warned in rows.warnings.items():
        found.warnings[text] += warned
    for aligned in rows.aligned:
        found.has_aligned = True
        _add_column(
            found, [(aligned.owner if isinstance(aligned.owner, Relation) else str(aligned.owner), None)], aligned.chunk, times
        )
    keyed = key_rows(rows, 0, may_be_integers=True) if _has_texts(rows) else None
    nodes, edges = rows.nodes, rows.edges
    if nodes is not None and nodes.num_rows:
        counts = np.bincount(nodes.types, minlength=len(nodes.type_names)).tolist()
        for name, counted in zip(nodes.type_names, counts, strict=True):
            found.node_rows[name] += counted * times if nodes.declares else 0
            _share(shares, name, number, counted)
        _add_node_ids(found.node_ids, nodes, times)
        if len(nodes.type_names) == 1 and nodes.declares:
            _look_whether_counted(found, nodes)
        _add_columns(found, nodes.columns, nodes.types, nodes.type_names, times)
    if edges is None or not edges.src.size:
        return
    relations = edges.relation_names
    counts = np.bincount(edges.relations, minlength=len(relations)).tolist()
    for relation, counted in zip(relations, counts, strict=True):
        found.edges[relation] += counted * times
        _share(shares, relation, number, counted)
    _add_columns(found, edges.columns, edges.relations, relations, times)
    ends = edges if keyed is None or keyed.rows.edges is None else keyed.rows.edges
    by_space: dict[str, list[NDArray[np.uint64]]] = defaultdict(list)
    for side in (0, 1):
        space = space_of_end(relations[0], side)
        ids: Any = ends.dst if side else ends.src
        own, texts = found.ids[space], None if keyed is None else keyed.dst if side else keyed.src
        own.ends += ids.size * times
        by_space[space].append(np.unique(ids.astype(np.uint64, copy=False)))
        if texts is None:
            signed = ids.view(np.int64) if ids.dtype == np.uint64 and int(ids.max()) >= 1 << 63 else ids
            own.add_range(IdRange(int(signed.min()), int(signed.max())))
        else:
            raw: Any = edges.dst if side else edges.src
            own.are_texts, own.are_integers = True, own.are_integers and texts.are_integers
            own.text_bytes += float(raw.values.size)
            own.num_texts += raw.size
    for space, every in by_space.items():
        found.ids[space].pieces.append(np.unique(np.concatenate(every)))
        found.ids[space].times = max(found.ids[space].times, times)


def _add_node_ids(own: IdTally, nodes: RawNodes, times: float) -> None:
    own.times = max(own.times, times)
    own.ends += nodes.num_rows * times
    if isinstance(nodes.ids, RawTexts):
        own.are_texts = True
        own.text_bytes += float(nodes.ids.values.size)
        own.num_texts += nodes.num_rows
    else:
        own.add_range(IdRange(int(nodes.ids.min()), int(nodes.ids.max())))


def _look_whether_counted(found: Tally, nodes: RawNodes) -> None:
    name, ids = nodes.type_names[0], nodes.ids
    own = found.counted.setdefault(name, IdTally())
    own.are_texts = own.are_texts or isinstance(ids, RawTexts) or bool((np.diff(ids) != 1).any())
    if not isinstance(ids, RawTexts):
        own.add_range(IdRange(int(ids[0]), int(ids[-1])))


def _has_texts(rows: Any) -> bool:
    ids = [] if rows.nodes is None else [rows.nodes.ids]
    ids += [] if rows.edges is None else [rows.edges.src, rows.edges.dst]
    return any(isinstance(one, RawTexts) for one in ids)


def _add_columns(
    found: Tally, columns: Sequence[ColumnChunk], codes: NDArray[np.int32], owners: Sequence[Owner], times: float
) -> None:
    for chunk in columns:
        if len(owners) == 1:
            _add_column(found, [(owners[0], None)], chunk, times)
        else:
            own = codes[chunk.rows]
            _add_column(found, [(owner, own == code) for code, owner in enumerate(owners)], chunk, times)


def _add_column(found: Tally, owners: Sequence[tuple[Owner, Any]], chunk: ColumnChunk, times: float) -> None:
    num_bytes = sum(0 if one is None else one.nbytes for one in (chunk.values, chunk.counts, chunk.coords, chunk.rows))
    for owner, mask in owners:
        rows = chunk.rows.size if mask is None else int(mask.sum())
        if not rows:
            continue
        share = rows / max(1, chunk.rows.size)
        is_entries = chunk.entry_counts is not None
        values = chunk.values.size * share if mask is None or is_entries else float(chunk.counts[mask].sum())
        column = found.columns[owner, chunk.key]
        column.add(rows, values, num_bytes * share, times)
        column.shapes.add(chunk.item_shape)
        column.guesses.add(chunk.guess)
        if chunk.key.family == "numbers":
            counts = chunk.counts if mask is None else chunk.counts[mask]
            column.lengths |= {int(counts.min()), int(counts.max())}


def _share(shares: dict[Owner, list[float]], owner: Owner, number: int, counted: int) -> None:
    own = shares[owner]
    own += [0.0] * (number - len(own)) + [float(counted)]


def _add_errors(found: Tally, stratum: Stratum, shares: Mapping[Owner, list[float]]) -> None:
    """Note how uncertain the counts of a stratum are: the error of a ratio of sums, rows over bytes."""
    amounts = np.array([piece.amount for piece in stratum.pieces], float)
    for owner, counted in shares.items():
        counts = np.array(counted + [0.0] * (amounts.size - len(counted)))
        if stratum.is_whole or (stratum.kind == "table" and len(shares) == 1) or not counts.sum():
            continue
        if amounts.size < 2:
            found.errors[owner] = 1.0
            continue
        rest = counts - counts.sum() / amounts.sum() * amounts
        error = math.sqrt((rest**2).sum() / (amounts.size - 1) * amounts.size) / counts.sum()
        found.errors[owner] = max(found.errors.get(owner, 0.0), _SURE * error)
