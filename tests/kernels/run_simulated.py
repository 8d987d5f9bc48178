"""Runs something in a process of its own, in which CUDA is simulated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def run_simulated(*args: str) -> str:
    """Run ``simulated.py`` with these arguments; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GRAPHPREP_DEVICE"))}
    command = [sys.executable, str(ROOT / "tests/kernels/simulated.py"), *args]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=800)
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-5000:]
    return found.stdout
