"""The environments in which DGL's own loaders run: they want an older NumPy than ours, and GraphBolt an older torch."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Environment:
    """A Python of its own: where it is, what installs it, and whether CI has it."""

    name: str
    variable: str
    command: str
    in_ci: bool

    @property
    def _python(self) -> str:
        return os.environ.get(self.variable) or str(ROOT / f".venv/clients/{self.name}/bin/python")

    def is_there(self) -> bool:
        """Return whether the Python is there."""
        return Path(self._python).exists()

    def find_python(self) -> str:
        """Return the Python; without one the test is skipped, with the remedy, and fails in CI if that is to have it."""
        if not self.is_there():
            reason = f"no {self.name}: {self.command} installs it, or {self.variable} names a Python that has it"
            if self.in_ci and os.environ.get("GRAPHPREP_REQUIRE_CLIENTS", "0") not in ("", "0"):
                pytest.fail(reason)
            pytest.skip(reason)
        return self._python

    def run(self, script: str, *arguments: str | Path) -> str:
        """Run a script of this folder there, and return what it printed."""
        command = [self.find_python(), str(Path(__file__).with_name(script)), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


DGL = Environment("dgl", "GRAPHPREP_DGL_PYTHON", "make clients", in_ci=True)
GRAPHBOLT = Environment("graphbolt", "GRAPHPREP_GRAPHBOLT_PYTHON", "make test-clients", in_ci=False)  # 5 GB
