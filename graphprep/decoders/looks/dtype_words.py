"""Dtypes of numbers by the words that lines of features name them with."""

from __future__ import annotations

import re

_WORD = re.compile(r"[<>=|]?[A-Za-z?][A-Za-z0-9_]*")
_MOST_BYTES = {"b": 1, "i": 8, "u": 8, "f": 8, "c": 16}  # of a dtype, by its kind


def dtype_name(text: str) -> str | None:
    """Return the name of a dtype as NumPy spells it (``float32``, ``float``, ``<f4`` …), None where no feature has such."""
    import numpy as np

    if not _WORD.fullmatch(text) or text.startswith("a"):  # 'a' is a deprecated name of texts
        return None
    try:
        dtype = np.dtype(text)
    except (TypeError, ValueError):
        return None
    return dtype.name if dtype.itemsize <= _MOST_BYTES.get(dtype.kind, -1) else None


__all__ = ["dtype_name"]
