"""Order keys: what neighbours are ordered by, as integers that ascend."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.model.schema import NeighborOrder

if TYPE_CHECKING:
    pass


def order_role(order: NeighborOrder, roles: Collection[str]) -> str | None:
    """Return the role of the column that a neighbour order goes by: weight; time, else created_at. None: there is none."""
    wanted = {"weight": ("weight",), "time": ("time", "created_at")}.get(order, ())
    return next((role for role in wanted if role in roles), None)


def missing_order_key(role: str) -> int:
    """Return the order key of an edge without a value: a missing creation is 0, anything else that is missing comes last."""
    return 1 << 63 if role == "created_at" else 2**64 - 1


def time_keys(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Map int64 times to uint64 so that ascending keys are oldest first."""
    return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def weight_keys(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Map weights to uint64 so that ascending keys are heaviest first, then NaN; the highest key is left for absent ones."""
    weights = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0: the two are equal
    bits = weights.view(np.uint64)
    ascending = np.where(bits >> np.uint64(63), ~bits, bits ^ np.uint64(1 << 63))
    keys = ~ascending
    keys[np.isnan(weights)] = np.uint64(2**64 - 2)
    return keys


def order_keys(role: str, values: NDArray[np.generic], present: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
    """Return the order keys of edges (uint64[k], ascending) by a column of this role; ``present``: which have a value."""
    keys = weight_keys(values) if role == "weight" else time_keys(values)
    return keys if present is None else np.where(present, keys, np.uint64(missing_order_key(role)))
