"""Runs something on CUDA's simulator, in this process: ``python simulated.py pytest ...`` or ``python simulated.py SCRIPT ...``.

The simulator must be chosen before ``numba.cuda`` is imported; the variable goes again at once, for with it the CPU's kernels
would be compiled anew.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from pathlib import Path


def simulate() -> None:
    """Let ``numba.cuda`` be the simulator."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    from graphprep.kernels.cuda.frontend import IS_SIMULATED

    assert IS_SIMULATED
    del os.environ["NUMBA_ENABLE_CUDASIM"]


def note_launches(path: str) -> None:
    """Let every kernel that is launched be noted with the types of its arguments, a line each, in a file at the end."""
    from graphprep.kernels.cuda import frontend

    launched, launch = set(), frontend.launch

    def noting(kernel, blocks, stream, *args):
        launched.add(f"{kernel.fn.__name__} {' '.join(map(type_of, args))}\n")
        launch(kernel, blocks, stream, *args)

    frontend.launch = noting  # other modules take it from there when they are imported
    atexit.register(lambda: Path(path).write_text("".join(sorted(launched))))


def type_of(argument: object) -> str:
    """Return the type of an argument as ``signatures`` writes it, where Numba would see the same."""
    if hasattr(argument, "dtype"):
        return argument.dtype.str[1:] + "[]" * (getattr(argument, "ndim", 0) > 0)
    return "i8" if type(argument) is int and -(2**63) <= argument < 2**63 else f"{type(argument).__name__} {argument}"


if __name__ == "__main__":
    simulate()
    if "GRAPHPREP_LAUNCHES" in os.environ:
        note_launches(os.environ["GRAPHPREP_LAUNCHES"])
    what, *sys.argv[1:] = sys.argv[1:]
    if what == "pytest":
        import pytest

        sys.exit(pytest.main(sys.argv[1:]))
    sys.path.insert(0, str(Path(what).parent))
    runpy.run_path(what, run_name="__main__")
