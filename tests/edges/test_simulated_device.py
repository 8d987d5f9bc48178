"""Commands and functions over arrays on Numba's CUDA simulator, in a process of its own. A simulator is no GPU: it shows what is computed, not races."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.parametrize("program", ["simulated_run.py", "simulated_arrays.py"])
def test_what_is_computed_on_the_simulator_is_what_the_cpu_computes(program, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHPREP_DEVICE")}
    tests = Path(__file__).resolve().parent.parent
    environment["PYTHONPATH"] = str(tests)
    run = [sys.executable, str(tests / "kernels" / "simulated.py"), str(tests / "edges" / program), str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
