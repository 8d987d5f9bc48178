"""Print the lowest versions that pyproject.toml allows of what graphprep needs, as constraints for pip: ``make test-lowest``."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent / "pyproject.toml"

for requirement in tomllib.loads(PROJECT.read_text())["project"]["dependencies"]:
    name, lowest = requirement.split(">=")
    print(f"{name}=={lowest}")
