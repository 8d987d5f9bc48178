"""Python processes of ours: they run these sources, whatever lies in the folder where they begin."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_SOURCES = str(Path(__file__).parents[2])


def python_command(module: str) -> list[str]:
    """Return the command that runs a module. ``-P``: a ``numpy.py`` among somebody's data is none of ours."""
    return [sys.executable, "-P", "-m", module]


def python_environment() -> dict[str, str]:
    """Return the environment for it, with these sources first."""
    path = [_SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)}
