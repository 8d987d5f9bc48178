"""Which kernels a conversion still has to compile. Those of decoding are compiled by the time samples are decoded."""

from __future__ import annotations

from graphprep.kernels.compiler import ahead, shipped

COMPILE_S = 0.8  # a kernel, roughly: see docs/plan.md
IMPORT_S = 0.7  # Numba


def missing_kernels(format: str) -> tuple[str, ...]:
    """Return the names of the kernels that most conversions of a format need, and that no cache has."""
    uses = shipped.read_list().items()
    return tuple(
        dict.fromkeys(one.kernel for one, (mostly, _) in uses if f"convert-{format}" in mostly and ahead.is_missing(one))
    )
