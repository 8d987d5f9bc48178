"""``graphprep --help`` and ``--version`` stay quick: they load none of the heavy packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "numba", "pyarrow", "fsspec", "scipy", "pandas", "jsonschema")
PROBE = """
import sys
from graphprep.cli.main import main
sys.argv = ["graphprep", *{arguments!r}]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print("loaded:", *sorted(set({heavy!r}) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["convert", "--help"],
        ["info", "--help"],
        ["validate", "--help"],
        ["ids", "--help"],
        ["generate", "--help"],
    ],
    ids=" ".join,
)
def test_help_loads_no_heavy_package(arguments):
    pytest.importorskip("graphprep.cli.main")
    probe = PROBE.format(arguments=arguments, heavy=HEAVY)
    done = subprocess.run([sys.executable, "-c", probe], check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded:"


def test_the_package_itself_loads_no_heavy_package():
    probe = f"import sys, graphprep; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_module_and_version():
    done = subprocess.run(
        [sys.executable, "-m", "graphprep", "--version"], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "0." in done.stdout
