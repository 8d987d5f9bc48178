"""Last part of ``validate``: negatives are nodes, as many for each edge of a part, and no edge of the type is among them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.check import hash_pairs
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema
from graphprep.store.paths import ColumnPaths, edge_folder
from graphprep.validate.edges import CheckedEdges, EdgeArrays, open_edges, read_edges
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray, CheckedStore

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
_KEY_BYTES = 16  # of an edge: its key, and a copy while keys are sorted
_MOST_VALUES = 1 << 18  # negatives looked at at once
_PART_NAMES = ("train", "valid", "test")


def check_negatives(store: CheckedStore, number: int, faults: Faults, *, window_bytes: int) -> None:
    """Check the negatives of an edge type whose arrays and columns are sound.

    Keys of pairs of nodes are held for as many edges at a time as fit ``window_bytes``, and all edges are read anew for each.
    """
    schema = store.metadata.edge_schemas[number]
    columns = [column for column in schema.columns if column.role in NEGATIVE_ROLES]
    split = next((column for column in schema.columns if column.role == "split"), None)
    if not columns:
        return
    edges = open_edges(store, number, faults)
    negatives = [_Negatives(edges, column) for column in columns]
    for one in negatives:
        one.check_values(split, faults)
    num_windows = max(1, -(-edges.num_edges * _KEY_BYTES // max(1, window_bytes)))
    for window in range(num_windows):
        keys = _edge_keys(edges, window, num_windows)
        for one in negatives:
            one.check_edges(keys, window, num_windows, faults)


def _edge_keys(edges: CheckedEdges, window: int, num_windows: int) -> Keys:
    """Return the keys of the edges of a window, ascending."""
    found = [np.zeros(0, np.uint64)]
    for arrays in edges.arrays[edges.store.metadata.primary_layout]:
        for piece in read_edges(arrays):
            keys = _keys(edges, *arrays.ends(piece))
            found.append(keys[keys % np.uint64(num_windows) == window])
    return np.sort(np.concatenate(found))


def _keys(edges: CheckedEdges, src: Ints, dst: Ints) -> Keys:
    """Return a number for each pair of nodes: one of its own, or a hash where numbers of 64 bits are too few."""
    counts = edges.store.metadata.num_nodes_by_type()
    num_src, num_dst = counts[edges.edge_type[0]], counts[edges.edge_type[2]]
    if num_src * num_dst < 2**63:
        return np.asarray(src * num_dst + dst).view(np.uint64)
    return np.asarray(hash_pairs(src, dst)).view(np.uint64)


@dataclass(frozen=True)
class _Negatives:
    """A column of negatives."""

    edges: CheckedEdges
    column: ColumnSchema

    @property
    def _stem(self) -> str:
        return f"{edge_folder(self.edges.edge_type)}/{self.column.path}"

    def _read(self) -> Iterator[tuple[EdgeArrays, CheckedArray, int, Ints, Ints, Ints, Ints]]:
        """Yield (arrays, values, first value, sources, destinations, counts, negatives) of some edges, in row order."""
        paths, store = ColumnPaths(self._stem), self.edges.store
        for arrays in self.edges.arrays[store.metadata.primary_layout]:
            offsets, values = store.array(arrays.part, paths.offsets), store.array(arrays.part, paths.values)
            if offsets is None or values is None:
                continue
            for piece in read_edges(arrays):
                src, dst = arrays.ends(piece)
                bounds = offsets.read(piece.start, piece.start + src.size + 1)
                low = 0
                while low < src.size:
                    high = int(np.searchsorted(bounds, bounds[low] + _MOST_VALUES, side="right")) - 1
                    high = min(max(low + 1, high), src.size)
                    some = values.read(int(bounds[low]), int(bounds[high])).astype(np.int64)
                    counts = np.diff(bounds[low : high + 1])
                    yield arrays, values, int(bounds[low]), src[low:high], dst[low:high], counts, some
                    low = high

    def check_values(self, split: ColumnSchema | None, faults: Faults) -> None:
        """Check that negatives are typed IDs, or -1, and that each edge of a part has as many, others none."""
        end = self.edges.edge_type[0 if self.column.role == "negative_src" else 2]
        num_nodes = self.edges.store.metadata.num_nodes_by_type()[end]
        for _, values, first, *_, found in self._read():
            bad = (found < -1) | (found >= num_nodes)
            faults.add_rows(values.path, bad, first, "expected a typed ID in [0, {}), or -1, found {}", num_nodes, found)
        self._check_counts(split, faults)

    def _check_counts(self, split: ColumnSchema | None, faults: Faults) -> None:
        store = self.edges.store
        known: dict[int, int] = {}
        for arrays in self.edges.arrays[store.metadata.primary_layout]:
            offsets = store.array(arrays.part, ColumnPaths(self._stem).offsets)
            if offsets is None:
                continue
            for start in range(0, offsets.num_rows - 1, _MOST_VALUES):
                stop = min(start + _MOST_VALUES, offsets.num_rows - 1)
                counts, parts = np.diff(offsets.read(start, stop + 1)), self._parts(split, arrays.part, start, stop)
                for part in range(4):
                    rows = np.flatnonzero(parts == part)
                    if rows.size:
                        wanted = known.setdefault(part, 0 if part == 3 else int(counts[rows[0]]))
                        bad = (parts == part) & (counts != wanted)
                        name = "in no part" if part == 3 else f"of the part {_PART_NAMES[part]}"
                        words = "expected {} negatives, as other edges {} have, found {}"
                        faults.add_rows(offsets.path, bad, start, words, wanted, name, counts)

    def _parts(self, split: ColumnSchema | None, part: int, start: int, stop: int) -> NDArray[np.int8]:
        """Return the parts of edges, 3 for none."""
        out = np.full(stop - start, 3, np.int8)
        stem = "" if split is None else f"{edge_folder(self.edges.edge_type)}/{split.path}"
        values = None if split is None else self.edges.store.array(part, f"{stem}.npy")
        if split is None or values is None:
            return out
        out[:] = values.read(start, stop)
        present = self.edges.store.array(part, ColumnPaths(stem).present) if split.optional else None
        if present is not None:
            out[~present.read(start, stop)] = 3
        return out

    def check_edges(self, keys: Keys, window: int, num_windows: int, faults: Faults) -> None:
        """Check that no pair of a negative is an edge; ``keys`` are those of the edges of a window."""
        is_src = self.column.role == "negative_src"
        for _, values, first, src, dst, counts, found in self._read():
            ends = (found, np.repeat(dst, counts)) if is_src else (np.repeat(src, counts), found)
            wanted = _keys(self.edges, *ends)
            at = np.minimum(np.searchsorted(keys, wanted), max(0, keys.size - 1))
            bad = (found >= 0) & (wanted % np.uint64(num_windows) == window)
            bad &= (keys[at] == wanted) if keys.size else False
            faults.add_rows(values.path, bad, first, "expected no edge, found that from {} to {}", *ends)
