"""Negatives behind the edges of a part, as ``torch_geometric.transforms.RandomLinkSplit`` puts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.negatives import Negatives

Array = NDArray[Any]
_STEP = 1 << 18


def with_negatives(tensors: Mapping[str, TensorPieces], stem: str, negatives: Negatives) -> dict[str, TensorPieces]:
    """Return the ends, labels and times of a part's edges, of ``tensors``, with those of their negatives behind them.

    The label of an edge is 1.0, or, where edges have whole numbers, one more than its own; that of a negative is 0. A negative
    has its edge's time.
    """
    num_edges, num_negatives = tensors[f"{stem}_id"].shape[0], negatives.num_pairs()
    behind = partial(_behind, num_edges + num_negatives)
    found = {f"{stem}_index": TensorPieces("int64", (2, num_edges + num_negatives), partial(_ends, negatives))}
    ones = TensorPieces("float32", (num_edges,), lambda: _filled(num_edges, (), "float32", 1))
    labels = tensors.get(stem, ones)
    counted = labels if stem not in tensors or np.dtype(labels.dtype).kind == "f" else _one_more(labels)
    found[stem] = behind(counted, lambda: _filled(num_negatives, labels.shape[1:], labels.dtype, 0))
    if (times := tensors.get(f"{stem}_time")) is not None:
        found[f"{stem}_time"] = behind(times, lambda: _repeated(times, negatives))
    return found


def _ends(negatives: Negatives) -> Iterator[Array]:
    for end in (0, 1):
        yield from ((some.src, some.dst)[end] for some in negatives.queries())
        yield from (pairs[:, end] for pairs, _ in negatives.pairs())


def _behind(size: int, first: TensorPieces, second: Callable[[], Iterator[Array]]) -> TensorPieces:
    """Put what ``second`` yields behind a tensor."""

    def pieces() -> Iterator[Array]:
        yield from first.pieces()
        yield from second()

    return TensorPieces(first.dtype, (size, *first.shape[1:]), pieces)


def _one_more(labels: TensorPieces) -> TensorPieces:
    """Return labels plus 1; what is below 0, and so no label, stays."""
    return TensorPieces(labels.dtype, labels.shape, lambda: (some + (some >= 0) for some in labels.pieces()))


def _filled(size: int, item_shape: tuple[int, ...], dtype: str, value: int) -> Iterator[Array]:
    for start in range(0, size, _STEP):
        yield np.full((min(_STEP, size - start), *item_shape), value, dtype)


def _repeated(values: TensorPieces, negatives: Negatives) -> Iterator[Array]:
    """Yield the value of each negative's edge."""
    left: Array = np.zeros(0, values.dtype)
    pieces = iter(values.pieces())
    for _, counts in negatives.pairs():
        while len(left) < counts.size:
            left = np.concatenate([left, next(pieces)])
        yield np.repeat(left[: counts.size], counts, axis=0)
        left = left[counts.size :]
