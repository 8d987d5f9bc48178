"""How rows are cut into buckets, and the write buffer in which few rows wait for more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.group import group_by_key

if TYPE_CHECKING:
    pass

Ints = NDArray[np.int64]
ROW_BYTES = 8  # what building holds for each row of a bucket, whether it has edges or not
MOST_HELD_BYTES = 8 << 20  # beyond that, scattering what was held back misses the cache: twice the time


@dataclass(frozen=True)
class BucketPlan:
    """How a type's rows are cut: bucket b holds rows [b * width, (b + 1) * width); ``width`` is 2^shift."""

    num_rows: int
    shift: int

    @property
    def width(self) -> int:
        """Return the number of rows of a bucket."""
        return 1 << self.shift

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets, at least one."""
        return max(1, -(-self.num_rows // self.width))

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return the rows [low, high) of a bucket."""
        return bucket * self.width, min((bucket + 1) * self.width, self.num_rows)

    def split(self, rows: Ints) -> Iterator[tuple[int, Ints | None]]:
        """Yield (bucket, positions in ``rows``) for every bucket that occurs; None stands for all positions."""
        if self.num_buckets == 1 or not rows.size:
            yield 0, None
            return
        buckets = rows >> self.shift
        if buckets[0] == buckets[-1] and (buckets == buckets[0]).all():
            yield int(buckets[0]), None
            return
        indptr, order = group_by_key(buckets, self.num_buckets)
        for bucket in np.flatnonzero(np.diff(indptr)):
            yield int(bucket), order[indptr[bucket] : indptr[bucket + 1]]


def plan_buckets(num_rows: int, num_bytes: int, bucket_bytes: int, most: int = 1024) -> BucketPlan:
    """Cut rows so that their data, if spread evenly, takes at most ``bucket_bytes`` a bucket.

    At most 1024 buckets: beyond that scattered writes cost more than a second pass over the few that are too big.
    """
    wanted = max(1, min(most, -(-num_bytes // max(1, bucket_bytes)), max(1, num_rows)))
    shift = (max(1, num_rows) // wanted).bit_length() - 1 if wanted > 1 else max(0, num_rows - 1).bit_length()
    plan = BucketPlan(num_rows, shift)
    return plan if plan.num_buckets <= most else BucketPlan(num_rows, shift + 1)


class HoldsBack(Protocol):
    """What holds rows back until there are enough of them."""

    def flush(self) -> None:
        """Scatter them."""


class WriteBuffer:
    """What scatterers hold back, together: at most about ``cap_bytes``."""

    def __init__(self, cap_bytes: int) -> None:
        self.cap_bytes = cap_bytes
        self.held_bytes = 0
        self.scatterers: list[HoldsBack] = []

    def hold(self, num_bytes: int) -> None:
        """Count bytes that are held back; scatter everything where it is too much."""
        self.held_bytes += num_bytes
        if self.held_bytes > self.cap_bytes:
            self.clear()

    def clear(self) -> None:
        """Scatter all that is held back."""
        for scatterer in self.scatterers:
            scatterer.flush()
        self.held_bytes = 0
