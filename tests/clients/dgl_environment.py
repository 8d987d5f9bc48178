"""The environment in which DGL's own loaders run: an older NumPy than ours, so a Python of its own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_PYTHON = "GRAPHPREP_DGL_PYTHON"


def find_python() -> str:
    """Return the Python that has DGL; without one the test is skipped, with the remedy, and in CI it fails."""
    path = os.environ.get(_PYTHON) or str(ROOT / ".venv/clients/dgl/bin/python")
    if not Path(path).exists():
        reason = f"no DGL: make clients installs it, or {_PYTHON} names a Python that has it"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def run_client(script: str, *arguments: str | Path) -> str:
    """Run a script of this folder there, and return what it printed."""
    command = [find_python(), str(Path(__file__).with_name(script)), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
