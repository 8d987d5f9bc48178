"""Kernels for the CPU, compiled by Numba on first use and kept in its cache."""

import contextlib
from typing import Any

from numba.core import caching


def _forgive_full_cache() -> None:
    """Let a kernel that cannot be kept (full disk, quota, file size limit) cost another compilation, not the run."""
    save = caching.Cache.save_overload

    def save_or_not(self: Any, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            save(self, sig, data)

    caching.Cache.save_overload = save_or_not


_forgive_full_cache()
