"""Raw IDs that are texts to 64-bit keys, batch by batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.kernels.cpu.text.texts import distinct_texts, first_non_integer, hash_texts
from graphprep.model.rows import RawEdges, RawIds, RawNodes, RawRows, RawTexts

Ints = NDArray[np.int64]
_NARROW = np.uint64(2**32 - 1)


@dataclass(frozen=True)
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


@dataclass(frozen=True)
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
        keys, of_nodes = _key_all(nodes.ids, seed, may_be_integers)
        nodes = replace(nodes, ids=keys)
    if edges is not None and isinstance(edges.src, RawTexts):
        keys, src = _key_distinct(edges.src, seed, may_be_integers)
        edges = replace(edges, src=keys)
    if edges is not None and isinstance(edges.dst, RawTexts):
        keys, dst = _key_distinct(edges.dst, seed, may_be_integers)
        edges = replace(edges, dst=keys)
    if of_nodes is None and src is None and dst is None:
        return KeyedRows(rows)
    return KeyedRows(replace(rows, nodes=nodes, edges=edges), of_nodes, src, dst)


def narrow_rows(keyed: KeyedRows) -> KeyedRows:
    """Let the ends of edges be uint32 where all of them fit: half of the memory, on the longest way that any data goes."""
    edges = keyed.rows.edges
    if edges is None:
        return keyed
    edges = replace(edges, src=_narrow(ids_of(edges, 0)), dst=_narrow(ids_of(edges, 1)))
    return replace(keyed, rows=replace(keyed.rows, edges=edges))


def _narrow(ids: NDArray[Any]) -> NDArray[Any]:
    fits = ids.dtype == np.uint64 and ids.size and ids.max() <= _NARROW
    return ids.astype(np.uint32) if fits else ids


def _key_all(texts: RawTexts, seed: int, may_be_integers: bool) -> tuple[RawIds, KeyedTexts]:
    keys = hash_texts(texts.offsets, texts.values, seed)
    hashes = hash_texts(texts.offsets, texts.values) if seed else None
    are_integers = may_be_integers and first_non_integer(texts.offsets, texts.values) < 0
    return keys, KeyedTexts(keys, texts.offsets, texts.values, are_integers, hashes)


def _key_distinct(texts: RawTexts, seed: int, may_be_integers: bool) -> tuple[RawIds, KeyedTexts]:
    keys, keyed = _key_all(texts, seed, may_be_integers)
    rows, collision = distinct_texts(keys, texts.offsets, texts.values)
    if collision >= 0:
        raise KeyCollisionError
    return keys, replace(keyed, rows=rows)


def ids_of(part: RawNodes | RawEdges, side: int = 0) -> RawIds:
    """Return the IDs of nodes, or of one end of edges, which are numbers by now."""
    ids = part.ids if isinstance(part, RawNodes) else part.dst if side else part.src
    assert not isinstance(ids, RawTexts)
    return ids


__all__ = ["KeyedRows", "KeyedTexts", "ids_of", "key_rows", "narrow_rows"]
