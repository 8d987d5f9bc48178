"""Edges and their reverses, of one edge type or of two: which types are split together, as one edge tells of the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.split import SplitOptions
from graphprep.rewrite.split.keys import HashKeys, type_words
from graphprep.rewrite.split.rules import SplitRules, check_targets
from graphprep.rewrite.transform.select import Owner, all_owners
from graphprep.store.items import StoredArrays

Keys = NDArray[np.uint64]

_MOST = 1 << 18  # pairs of an edge type that are compared: where there are more, some that their hashes choose
_TOGETHER = 0.5  # of the edges have a reverse: more, and the types are split together


def with_reverses(store: StoredArrays, rules: SplitRules, options: SplitOptions, room: Workspace) -> SplitRules:
    """Return the rules by which edges and their reverses are split together, unless ``options`` want them apart.

    Raises DataError where the store's arrays are faulty, UsageError where a reverse type cannot get a split.
    """
    if options.reverses == "apart" or rules.by in ("nodes", "keep"):
        return rules
    with room.scratch.inner() as scratch:
        finder = _Finder(store, rules, replace(room, scratch=scratch))
        pairs = list(finder.pairs())
    found = _joined(rules, pairs)
    check_targets(store.metadata, found, overwrite=options.overwrite_column)
    return found


@dataclass(frozen=True)
class _Pair:
    """An edge type and one that has reverses of its edges, perhaps itself; ``share`` of the fewer edges, None: it is known."""

    first: Owner
    second: Owner
    share: float | None

    @property
    def is_together(self) -> bool:
        """Return whether the types are split together, unless it is said otherwise."""
        return self.share is None or self.share >= _TOGETHER

    @property
    def words(self) -> str:
        """Say which edges are reverses of which."""
        share = "" if self.share in (None, 1.0) else f"{math.floor(100 * (self.share or 0))}% of "
        if self.first == self.second:
            return f"{share}its edges stand in both directions"
        return f"{self.second.name!r} has its reverses" + (f", {share}the edges of the smaller type" if share else "")


@dataclass
class _Finder:
    store: StoredArrays
    rules: SplitRules
    room: Workspace
    _samples: dict[int, tuple[Keys, Keys]] = field(default_factory=dict)

    def pairs(self) -> Iterator[_Pair]:
        """Yield pairs of edge types of which some edges are reverses of one another, of the owners that are split."""
        metadata, split = self.store.metadata, [owner for owner in self.rules.owners if not owner.is_node]
        given = {owner for pair in self.rules.reverses for owner in pair}
        every = [owner for owner in all_owners(metadata) if not owner.is_node]
        hashes = HashKeys(self.store, self.room, 0)
        for at, first in enumerate(split):
            src, _, dst = metadata.edge_types[first.number]
            for second in every:
                back, is_self = metadata.edge_types[second.number], second == first
                if (back[2], back[0]) != (src, dst) or (second in split[:at]) or (not is_self and second in given):
                    continue
                is_settled = first.number in self.rules.symmetric or self.rules.by == "time"  # of one time, of one part
                if not (is_self and is_settled):
                    share = self._share(hashes, first.number, second.number)
                    if share is None or share > 0:
                        yield _Pair(first, second, share)

    def _share(self, hashes: HashKeys, first: int, second: int) -> float | None:
        metadata = self.store.metadata
        if _is_known(metadata, first, second):
            return None
        ours, theirs = (self._sample(hashes, number)[side] for side, number in enumerate((first, second)))
        fewer = min(ours.size, theirs.size)
        return np.intersect1d(ours, theirs, assume_unique=True).size / fewer if fewer else 0.0

    def _sample(self, hashes: HashKeys, number: int) -> tuple[Keys, Keys]:
        if number not in self._samples:
            most = max(self.store.metadata.num_edges_per_type)
            self._samples[number] = hashes.sample(number, min(1.0, _MOST / most) if most else 1.0)
        return self._samples[number]


def _is_known(metadata: GraphMetadata, first: int, second: int) -> bool:
    """Return whether the store says that one type has the reverses of the other's edges."""
    types, schemas = metadata.edge_types, metadata.edge_schemas
    return schemas[second].reverse_of == types[first] or schemas[first].reverse_of == types[second]


def _joined(rules: SplitRules, pairs: list[_Pair]) -> SplitRules:
    """Return the rules with the pairs that are split together; notes tell of these, and of the others."""
    notes, symmetric, reverses = list(rules.notes), set(rules.symmetric), list(rules.reverses)
    for pair in sorted(pairs, key=lambda one: -1.0 if one.share is None else -one.share):
        first, second = pair.first, pair.second
        words = f"{type_words(first)}: {pair.words}"
        seconds, taken = {two[1] for two in reverses}, {owner for two in reverses for owner in two}
        is_free = first == second or (second not in taken and first not in seconds)
        if not pair.is_together or not is_free:
            flag = "--symmetric" if first == second else f"--reverse-types {first.name}={second.name}"
            notes.append(f"{words}, and these are split apart: {flag} keeps them together")
        elif first == second:
            symmetric.add(first.number)
            where = ", where their labels agree" if rules.by == "label" else ""
            notes.append(f"{words}, which are split together{where} (--reverses apart: each by itself)")
        elif rules.by != "random" and rules.column_like(first, second) is None:
            column = rules.columns[rules.owners.index(first)]
            notes.append(f"{words}, and has no {column.name if column else ''!r} to be split by: leave it out of training")
        else:
            reverses.append((first, second))
            notes.append(f"{words}, and both are split together (--reverses apart: each by itself)")
    for first, second in reverses:
        if {first.number, second.number} & symmetric:
            symmetric |= {first.number, second.number}
    seconds = {second for _, second in reverses} if rules.by == "random" else set[Owner]()
    kept = [at for at, owner in enumerate(rules.owners) if owner not in seconds]
    return replace(
        rules,
        owners=tuple(rules.owners[at] for at in kept),
        columns=tuple(rules.columns[at] for at in kept),
        reverses=tuple(reverses),
        symmetric=frozenset(symmetric),
        notes=tuple(notes),
    )
