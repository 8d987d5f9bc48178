"""The benchmarks that work inside one process, with libraries and kernels loaded: scripts of their own, which run.py starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Each prints its tables, and with --json writes its results. The arguments of its runs, by size.
SCRIPTS: dict[str, dict[str, list[list[str]]]] = {
    "arrays": {
        "tiny": [["--scale", "10"]],
        "quick": [["--scale", "18"]],
        "full": [["--scale", "22"], ["--scale", "20", "--rows", "text", "text-weighted"]],
    },
    "plan": {"tiny": [["--scale", "10"]], "quick": [["--scale", "16"]], "full": [[]]},
    "decoders": {"tiny": [["--nodes", "800"]], "quick": [[]], "full": [[]]},
}


def run_script(name: str, size: str, rounds: int, scratch: Path) -> list[object]:
    """Run a script, and return the results of its runs."""
    found = []
    for args in SCRIPTS[name][size]:
        results = scratch / "in-process.json"
        print(f"\n## {name}: in process\n", flush=True)
        command = [sys.executable, str(HERE / f"{name}.py"), *args, "--rounds", str(rounds), "--json", str(results)]
        subprocess.run(command, check=True)
        found.append(json.loads(results.read_text()))
    return found
