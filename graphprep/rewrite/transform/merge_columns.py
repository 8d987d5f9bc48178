"""Columns of edges that are merged: sums, and the highest values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.errors import DataError
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.rewrite.transform.recipe import EdgeRecipe, Ids, MadeColumn, slices
from graphprep.rewrite.transform.write import PARENT, column_values
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays
from graphprep.store.paths import edge_folder
from graphprep.store.single import WholeStore

EDGE_ID = "edge_id"
_HALF = np.uint8(32)  # bits
_LOW = 2**32 - 1
_FIX = "use first, last or max, convert the column with a wider dtype, or drop it first, with drop-columns"


def is_merged(column: ColumnSchema, merge: str) -> bool:
    """Return whether ``sum`` or ``max`` is taken of a column: of numbers that are no codes, times, labels or IDs."""
    if column.kind != "dense" or column.dtype == "bool" or column.role not in (None, "weight") or column.categories:
        return False
    if column.name in (EDGE_ID, PARENT):
        return False
    return not (column.unit if merge == "sum" else column.dtype.startswith("complex"))


def merged_columns(
    store: StoredArrays, edges: EdgeRecipe, merge: str, new_ids: Ids, size: int, room: Workspace
) -> Iterator[MadeColumn]:
    """Yield the columns of merged edges, of which there are ``size``; ``new_ids`` are by old edge.

    Raises DataError where a sum is more than the column's dtype holds.
    """
    whole, edge_type = WholeStore(store), store.metadata.edge_types[edges.number]
    for column in store.metadata.edge_schemas[edges.number].columns:
        if is_merged(column, merge):
            with room.scratch.inner() as inner:
                held = _Held(column, column_values(whole, edge_folder(edge_type), column, inner), edges, new_ids)
                try:
                    yield held.highest(size, room.scratch) if merge == "max" else held.sums(size, room.scratch)
                except OverflowError as error:
                    words = f"a sum of column {column.name!r} is {error}"
                    raise DataError(words, place=edge_type_text(edge_type), fix=_FIX) from None


class _Held:
    """The values of a column, and where each goes."""

    def __init__(
        self, column: ColumnSchema, held: tuple[NDArray[Any], NDArray[np.bool_] | None], edges: EdgeRecipe, new_ids: Ids
    ) -> None:
        self._column, (self._values, self._present), self._edges, self._new_ids = column, held, edges, new_ids
        kind = self._values.dtype.kind
        self._wide: Any = {"f": np.float64, "c": np.complex128, "u": np.uint64}.get(kind, np.int64)

    def highest(self, size: int, scratch: Scratch) -> MadeColumn:
        """Return the highest of the values that are there."""
        out, seen = self._zeros(size, scratch), scratch.zeros(size, np.bool_)
        for some, target in self._pieces():
            fresh = np.flatnonzero(~seen[target])
            fresh = fresh[np.unique(target[fresh], return_index=True)[1]]
            out[target[fresh]] = some[fresh]
            np.maximum.at(out, target, some)
            seen[target] = True
        return MadeColumn(self._column, out, seen if self._column.optional else None)

    def sums(self, size: int, scratch: Scratch) -> MadeColumn:
        """Return the sums of the values that are there. Raises OverflowError, with what the dtype cannot hold."""
        out, seen = self._zeros(size, scratch), scratch.zeros(size, np.bool_)
        with scratch.inner() as inner:
            high = self._zeros(size, inner) if self._values.dtype.kind in "iu" and self._values.dtype.itemsize == 8 else None
            for some, target in self._pieces():
                with np.errstate(all="ignore"):
                    np.add.at(out, target, some if high is None else some & out.dtype.type(_LOW))
                if high is not None:
                    np.add.at(high, target, some >> _HALF)
                seen[target] = True
            if high is not None:
                self._join(out, high)
        if self._values.dtype.kind in "fc":
            self._check_floats(out)
        else:
            self._check_integers(out)
        return MadeColumn(self._column, out, seen if self._column.optional else None)

    def _join(self, low: NDArray[Any], high: NDArray[Any]) -> None:
        """Make sums of 64 bits of those of their lower and upper halves, in ``low``."""
        bounds = np.iinfo(low.dtype)
        for at in slices(len(low)):
            high[at] += low[at] >> _HALF
            low[at] &= low.dtype.type(_LOW)
            bad = (high[at] > bounds.max >> 32) | (high[at] < bounds.min >> 32)
            if bad.any():
                place = np.unravel_index(int(np.argmax(bad)), bad.shape)
                raise OverflowError(f"{(int(high[at][place]) << 32) + int(low[at][place])}, more than 64 bits hold")
            low[at] |= high[at] << _HALF

    def _check_integers(self, sums: NDArray[Any]) -> None:
        bounds = np.iinfo(self._values.dtype)
        low, high = (int(sums.min()), int(sums.max())) if sums.size else (0, 0)
        if low < bounds.min or high > bounds.max:
            raise OverflowError(f"{high if high > bounds.max else low}, which {self._values.dtype} cannot hold")

    def _check_floats(self, sums: NDArray[Any]) -> None:
        """Raise OverflowError where a sum of finite numbers is infinite in the column's dtype."""
        bad = np.zeros(sums.shape, np.bool_)
        for at in slices(len(sums)):
            with np.errstate(all="ignore"):
                bad[at] = np.isinf(sums[at].astype(self._values.dtype))
        if bad.any():
            for some, target in self._pieces():
                np.logical_and.at(bad, target, ~np.isinf(some))
        if bad.any():
            found = sums[bad][0]
            words = f"{found:g}" if np.isfinite(found) else "more than float64 holds"
            raise OverflowError(f"{words}, which {self._values.dtype} cannot hold")

    def _pieces(self) -> Iterator[tuple[NDArray[Any], Ids]]:
        """Yield values, in 64 bits, and the new IDs of their edges."""
        rows = self._edges.rows
        assert rows is not None
        for at in slices(self._new_ids.size):
            own, target = rows[at], self._new_ids[at]
            if self._present is not None:
                own, target = own[self._present[own]], target[self._present[own]]
            yield self._values[own].astype(self._wide), target

    def _zeros(self, size: int, scratch: Scratch) -> NDArray[Any]:
        shape = self._column.item_shape
        return scratch.zeros(size * int(np.prod(shape, dtype=np.int64)), self._wide).reshape(size, *shape)
