"""Raw IDs that are texts to 64-bit keys, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.kernels.cpu.text.texts import distinct_texts, first_non_integer, hash_texts
from graphprep.model.rows import RawIds, RawRows, RawTexts

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class KeyedTexts:
    """Texts with their keys, a row each; ``rows`` are those that are still to be kept (None: all).

    ``hashes`` are h of docs/store.md for each row, None where the keys are that.
    """

    keys: RawIds
    offsets: Ints
    values: NDArray[np.uint8]
    are_integers: bool
    hashes: RawIds | None
    rows: Ints | None = None

    def kept(self) -> KeyedTexts:
        """Return this without any text, all having been kept."""
        none = np.zeros(0, np.int64)
        return replace(self, keys=self.keys[:0], offsets=none, values=self.values[:0].copy(), rows=none)


@dataclass(frozen=True, eq=False)
class KeyedRows:
    """Rows whose raw IDs are numbers now: keys stand for texts.

    ``nodes`` holds the texts of all nodes; ``src`` and ``dst`` those of the ends. None where they were numbers.
    """

    rows: RawRows
    nodes: KeyedTexts | None = None
    src: KeyedTexts | None = None
    dst: KeyedTexts | None = None


def key_rows(rows: RawRows, seed: int, may_be_integers: bool) -> KeyedRows:
    """Replace texts by keys, which depend on ``seed`` (0: h of docs/store.md); look for integers where there ``may_be`` any.

    Raises KeyCollisionError for two ends of one batch that differ and have one key.
    """
    nodes, edges = rows.nodes, rows.edges
    of_nodes = src = dst = None
    if nodes is not None and isinstance(nodes.ids, RawTexts):
        of_nodes = _key_all(nodes.ids, seed, may_be_integers)
        nodes = replace(nodes, ids=of_nodes.keys)
    if edges is not None and isinstance(edges.src, RawTexts):
        src = _key_distinct(edges.src, seed, may_be_integers)
        edges = replace(edges, src=src.keys)
    if edges is not None and isinstance(edges.dst, RawTexts):
        dst = _key_distinct(edges.dst, seed, may_be_integers)
        edges = replace(edges, dst=dst.keys)
    return KeyedRows(replace(rows, nodes=nodes, edges=edges), of_nodes, src, dst)


def _key_all(texts: RawTexts, seed: int, may_be_integers: bool) -> KeyedTexts:
    keys = hash_texts(texts.offsets, texts.values, seed)
    hashes = hash_texts(texts.offsets, texts.values) if seed else None
    are_integers = may_be_integers and first_non_integer(texts.offsets, texts.values) < 0
    return KeyedTexts(keys, texts.offsets, texts.values, are_integers, hashes)


def _key_distinct(texts: RawTexts, seed: int, may_be_integers: bool) -> KeyedTexts:
    keyed = _key_all(texts, seed, may_be_integers)
    rows, collision = distinct_texts(keyed.keys, texts.offsets, texts.values)
    if collision >= 0:
        raise KeyCollisionError
    return replace(keyed, rows=rows)


__all__ = ["KeyedRows", "KeyedTexts", "key_rows"]
