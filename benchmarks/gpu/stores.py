"""Whether two stores are the same bytes."""

from __future__ import annotations

import filecmp
from pathlib import Path


def compare_stores(one: Path, other: Path) -> int:
    """Return how many files of two stores are the same bytes; all must be but provenance.json.

    Raises AssertionError.
    """
    files = [
        sorted(path.relative_to(store) for path in store.rglob("*") if path.is_file() and path.name != "provenance.json")
        for store in (one, other)
    ]
    different = set(files[0]) ^ set(files[1])
    different |= {path for path in set(files[0]) & set(files[1]) if not filecmp.cmp(one / path, other / path, shallow=False)}
    if different:
        raise AssertionError(f"{', '.join(sorted(map(str, different)))} differ")
    return len(files[0])
