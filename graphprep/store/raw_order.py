"""Raw IDs of nodes that stand in another order: found by the stored ranks, ``raw_order``, along which they ascend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.search import find_texts, rank_texts
from graphprep.kernels.cpu.text.texts import sort_texts
from graphprep.model.rows import RawTexts
from graphprep.storage.read.arrays import ArrayReader
from graphprep.store.text_source import TextSource, take_rows

Ints = NDArray[np.int64]

_SCAN_ROWS = 1 << 20
_SCAN_SHARE = 16  # so many rows for each wanted ID of a remote array are as quickly read as searched
_FAN_OUT = 16  # ways that a search in a remote array takes at each level


def find_numbers(ids: ArrayReader, raw_order: ArrayReader, wanted: NDArray[Any]) -> Ints:
    """Return the row of each wanted raw ID (ascending, of the array's dtype), -1 where it is not there."""
    if not ids.is_local and wanted.size * _SCAN_SHARE > ids.shape[0]:
        return _scan_numbers(ids, wanted)

    def rank(probes: Ints, chosen: Ints) -> Ints:
        return np.searchsorted(ids.take(raw_order.take(probes)), wanted[chosen], side="right")

    ranks, inverse = _search(ids.shape[0], wanted.size, rank, is_local=ids.is_local)
    rows = raw_order.take(ranks)
    return np.where(ids.take(rows)[inverse] == wanted, rows[inverse], -1)


def _scan_numbers(ids: ArrayReader, wanted: NDArray[Any]) -> Ints:
    """Find IDs so many that nearly every block holds one: read the array once."""
    out = np.full(wanted.size, -1, np.int64)
    for start in range(0, ids.shape[0], _SCAN_ROWS):
        held = ids.read(start, start + _SCAN_ROWS)
        order = np.argsort(held, kind="stable")
        at = np.minimum(np.searchsorted(held[order], wanted), held.size - 1)
        rows = order[at]
        out = np.where(held[rows] == wanted, rows + start, out)
    return out


def find_texts_by_order(texts: TextSource, raw_order: ArrayReader, wanted: RawTexts) -> Ints:
    """Return the row of each wanted text (ascending), -1 where it is not there."""
    if not raw_order.is_local and wanted.size * _SCAN_SHARE > texts.size:
        return _scan_texts(texts, wanted)

    def rank(probes: Ints, chosen: Ints) -> Ints:
        held, some = texts.take(raw_order.take(probes)), take_rows(wanted, chosen)
        return np.asarray(rank_texts(held.offsets, held.values, some.offsets, some.values), np.int64)

    ranks, _ = _search(texts.size, wanted.size, rank, is_local=raw_order.is_local)
    rows = raw_order.take(ranks)
    held = texts.take(rows)
    at = find_texts(held.offsets, held.values, wanted.offsets, wanted.values)
    return np.where(at >= 0, rows[at], -1)


def _scan_texts(texts: TextSource, wanted: RawTexts) -> Ints:
    out = np.full(wanted.size, -1, np.int64)
    for start, held in texts.pieces(0, texts.size):
        order = np.asarray(sort_texts(held.offsets, held.values), np.int64)
        ascending = take_rows(held, order)
        at = find_texts(ascending.offsets, ascending.values, wanted.offsets, wanted.values)
        out = np.where(at >= 0, order[at] + start, out)
    return out


def _search(size: int, num_wanted: int, rank: Callable[[Ints, Ints], Ints], *, is_local: bool) -> tuple[Ints, Ints]:
    """Find the rank where each of some IDs must be: (ranks, ascending, each once; which of them is whose).

    ``rank(probes, chosen)`` says for chosen IDs how many of the IDs with the ranks ``probes`` (ascending) are not above them.
    """
    low, high = np.zeros(num_wanted, np.int64), np.full(num_wanted, size, np.int64)
    while (wide := np.flatnonzero(high - low > 1)).size:
        probes = _probes(low[wide], high[wide], 2 if is_local else _FAN_OUT)
        at = rank(probes, wide)
        fences = np.concatenate([[0], probes, [size]])
        low[wide] = np.maximum(low[wide], fences[at])
        high[wide] = np.minimum(high[wide], fences[at + 1])
    ranks, inverse = np.unique(low, return_inverse=True)
    return ranks, inverse


def _probes(low: Ints, high: Ints, ways: int) -> Ints:
    """Return ranks at which to look, ascending: some inside of each range [low, high)."""
    steps = np.arange(1, ways)
    probes = low[:, None] + (high - low)[:, None] * steps // ways
    return np.unique(probes[(probes > low[:, None]) & (probes < high[:, None])])
