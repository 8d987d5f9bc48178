"""Runs something on CUDA's simulator, in this process: ``python simulated.py pytest ...`` or ``python simulated.py SCRIPT ...``.

The simulator must be chosen before ``numba.cuda`` is imported; the variable goes again at once, for with it the CPU's kernels
would be compiled anew.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path


def simulate() -> None:
    """Let ``numba.cuda`` be the simulator."""
    os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    import numba.cuda

    assert numba.config.ENABLE_CUDASIM
    del os.environ["NUMBA_ENABLE_CUDASIM"]
    sys.setswitchinterval(5e-5)  # threads of a block wait for each other: the sooner they take turns, the better


if __name__ == "__main__":
    simulate()
    what, *sys.argv[1:] = sys.argv[1:]
    if what == "pytest":
        import pytest

        sys.exit(pytest.main(sys.argv[1:]))
    sys.path.insert(0, str(Path(what).parent))
    runpy.run_path(what, run_name="__main__")
