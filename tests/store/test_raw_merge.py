"""Nodes of all partitions by raw ID: against Python's own sort, however little is held of each partition."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import pytest

from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.model.schema import NodeTypeSchema
from graphprep.store import raw_merge
from graphprep.store.assign import RawBatch
from graphprep.store.raw_merge import nodes_by_raw_id


class Held:
    """A stored array in memory."""

    is_local = True
    url = "held"

    def __init__(self, array):
        self.array, self.dtype, self.shape = array, array.dtype, array.shape
        self.entry = ArrayEntry("held.npy", array.dtype.name, array.shape, array.nbytes, "")

    def read(self, start=0, stop=None):
        return self.array[start:stop].copy()

    def take(self, rows):
        return self.array[rows]

    def map(self):
        return self.array


@dataclass
class Nodes:
    """A store of one node type; its raw IDs by partition, in typed order."""

    parts: list[list]
    kind: str
    node_order: str | None = None
    arrays: dict = field(default_factory=dict)

    def __post_init__(self):
        sizes = tuple(len(part) for part in self.parts)
        schema = NodeTypeSchema(self.kind, (), node_order=self.node_order)
        self.metadata = GraphMetadata("g", ("n",), (), (sizes,), (), len(sizes), "file", ("csc",), (schema,), (), ())
        for number, raw in enumerate(self.parts):
            if self.node_order is not None:
                order = sorted(range(len(raw)), key=raw.__getitem__)
                self.arrays[number, "nodes/n/raw_order.npy"] = np.array(order, np.int64)
            if self.kind == "string":
                self.arrays[number, "nodes/n/raw_ids.offsets.npy"] = np.cumsum([0, *map(len, raw)], dtype=np.int64)
                self.arrays[number, "nodes/n/raw_ids.values.npy"] = np.frombuffer(b"".join(raw), np.uint8)
            else:
                self.arrays[number, "nodes/n/raw_ids.npy"] = np.array(raw, self.kind)

    def array(self, part, path):
        return Held(self.arrays[part, path])


def values_of(raw: RawBatch):
    if raw.texts is None:
        return raw.numbers.view(np.int64 if raw.is_signed else np.uint64).tolist()
    offsets, values = raw.texts
    return [values[offsets[i] : offsets[i + 1]].tobytes() for i in range(raw.size)]


def make_ids(kind, count, rng):
    """Distinct raw IDs, near the borders of what the kind holds."""
    if kind == "string":
        letters = ("a", "ab", "é", "z", "0", "\x7f", "日")
        return [*{"".join(rng.choices(letters, k=rng.randrange(5))).encode() for _ in range(count)}]
    low, high = (-(2**63), 2**63 - 1) if kind == "int64" else (0, 2**64 - 1)
    ids = {rng.randrange(low, high) for _ in range(count)} | {low, high, *range(count // 2)}
    return [*ids]


@pytest.mark.parametrize("kind", ["int64", "uint64", "string"])
@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("num_parts", "least"), [(1, 2), (3, 1), (3, 4), (7, 2), (2, 1 << 10)])
def test_all_nodes_by_raw_id(kind, ordered, num_parts, least, monkeypatch):
    monkeypatch.setattr(raw_merge, "_LEAST_ROWS", least)
    rng = random.Random(num_parts * 10 + least)
    ids = make_ids(kind, 60, rng)
    parts = [[] for _ in range(num_parts + 1)]  # at least one is likely to be empty, or has few
    for one in ids:
        parts[rng.randrange(num_parts)].append(one)
    for part in parts:
        part.sort()
        if not ordered:
            rng.shuffle(part)
    store = Nodes(parts, kind, None if ordered else "degree")
    every = [one for part in parts for one in part]
    pieces = list(nodes_by_raw_id(store, 0, 64 * 8))
    assert [value for piece in pieces for value in values_of(piece.raw)] == sorted(every)
    assert [every[typed] for piece in pieces for typed in piece.typed.tolist()] == sorted(every)
    if least < 8:
        assert max(piece.typed.size for piece in pieces) <= 8 * (num_parts + 1)


def test_raw_ids_that_are_typed_ones_are_not_read():
    store = Nodes([[0, 1, 2], [3]], "int64")
    store.metadata = store.metadata.__class__.from_json(
        {**store.metadata.to_json(), "node_schema": {"n": {"raw_ids": "identity", "columns": []}}}
    )
    store.arrays.clear()
    pieces = list(nodes_by_raw_id(store, 0, 64 * 3))
    assert [piece.typed.tolist() for piece in pieces] == [[0, 1, 2], [3]]
