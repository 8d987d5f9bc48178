"""A device with hardly any memory, simulated: stores are the CPU's, what fits in parts is computed there, what does not is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.heavy
def test_hardly_any_memory_changes_no_byte(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRAPHPREP_DEVICE")}
    tests = Path(__file__).resolve().parent.parent
    environment["PYTHONPATH"] = str(tests)
    program = [str(tests / "kernels" / "simulated.py"), str(tests / "edges" / "simulated_tight.py"), str(tmp_path)]
    run = [sys.executable, *program]
    done = subprocess.run(run, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert (done.stdout, done.returncode) == ("", 0), done.stderr
