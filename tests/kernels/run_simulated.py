"""Runs something in a process of its own, in which CUDA is simulated; what kernels may be launched there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Of the signatures that are shipped those that only large graphs reach, and which.
LARGE = {
    "find_lengths i8[] u8[] i8[]": "more than 2^31 nodes: old rows are int64",
    "find_sources i8[] u8[] i8[] u4[]": "the same",
    "gather u8[] u8[] u8[]": "the same: new IDs are int64",
    "invert u8[] u8[]": "the same",
    "descending_keys i8[] i8 u8[]": "a node of 2^32 edges",
    "find_inner u4[] u8[] i8 i8[] u8[]": "a row of 2^31 entries",
    "move_by_digit u8[] u8[] i8 i8 i8[] u8[] u8[]": "more than 2^31 keys that are sorted with where they stood",
    "move_by_digit u4[] u8[] i8 i8 i8[] u4[] u8[]": "row, other end and edge ID are more than 64 bits",
    "pair_up u4[] u8[]": "the same",
    "count_up u8[]": "the same",
}


def shipped_names() -> set[str]:
    """Return the kernels that are compiled ahead and their types, as ``simulated.py`` notes what is launched."""
    from graphprep.kernels.cuda.signatures import SHIPPED

    return {f"{kernel.py_func.__name__} {' '.join(types)}" for kernel, signatures in SHIPPED.items() for types in signatures}


def run_simulated(*args: str) -> str:
    """Run ``simulated.py`` with these arguments; return what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "GRAPHPREP_DEVICE"))}
    command = [sys.executable, str(ROOT / "tests/kernels/simulated.py"), *args]
    found = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=800)
    assert found.returncode == 0, found.stdout[-5000:] + found.stderr[-5000:]
    return found.stdout
