"""The benchmarks that work inside one process, with libraries and kernels loaded: scripts of their own, which run.py starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Each prints its tables, and with --json writes its results. Arguments by size.
SCRIPTS: dict[str, dict[str, list[str]]] = {}


def run_script(name: str, size: str, rounds: int, scratch: Path) -> object:
    """Run a script, and return its results."""
    results = scratch / f"{name}.json"
    command = [sys.executable, str(HERE / f"{name}.py"), *SCRIPTS[name][size], "--rounds", str(rounds), "--json", str(results)]
    print(f"\n## {name}: in process\n", flush=True)
    subprocess.run(command, check=True)
    return json.loads(results.read_text())
