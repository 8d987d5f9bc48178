"""Keyword arguments of graphprep's functions, as type checkers see them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALLS = """
import graphprep
graphprep.convert("a.csv", "b", partitions=2, layout="both", threads=2, num_nodes=3, by="hash", decoder_options={"id_type": "int"})
graphprep.sample("a", "b", seeds="s.txt", fanouts=[10, 5])
graphprep.export("a", "b", "glt", partitions=4, features="age", cache_ratio=0.1)
graphprep.stats("a.txt", triangles="exact", format="edges")
"""
WRONG = """
graphprep.convert("a.csv", "b", partitons=2)
graphprep.convert("a.csv", "b", layout="cscc")
graphprep.reorder("a", "b", by=3)
graphprep.split("a", "b", corrupt="middle")
"""


def test_types_of_keywords_are_those_that_are_declared():
    done = subprocess.run([sys.executable, "docs/generated.py", "--check"], cwd=ROOT, timeout=120, check=False)
    assert done.returncode == 0, "run make docs"


@pytest.mark.heavy
def test_mypy_finds_options_that_are_not_there(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "calls.py").write_text(CALLS + WRONG)
    given = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", str(tmp_path / "calls.py")]
    done = subprocess.run(given, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    lines = [line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line]
    first = CALLS.count("\n") + 2
    assert lines == [str(first + one) for one in range(4)], done.stdout
