"""Whether kernels are compiled already, told without compiling or running them."""

from __future__ import annotations

import importlib

import numpy as np

from graphprep.kernels.compiler.jit import Kernel, Kinds, read_code

_PREFIX = "graphprep.kernels.cpu."


def is_kept(name: str, types: str) -> bool:
    """Return whether a kernel's code is kept: ``is_kept("ids.group._mark", "u1[1] u4[1]")``, as ``text_of`` writes types."""
    module, _, function = name.rpartition(".")
    kernel: Kernel = getattr(importlib.import_module(_PREFIX + module), function)
    return read_code(kernel.py_func, _kinds_of(types)) is not None


def _kinds_of(types: str) -> Kinds:
    """Read what ``text_of`` writes."""
    kinds = []
    for word in types.split():
        dtype, _, axes = word.partition("[")
        kinds.append((np.dtype(dtype.replace("b1", "?")), int(axes.rstrip("]") or 0)))
    return tuple(kinds)
