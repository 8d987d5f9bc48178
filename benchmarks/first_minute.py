"""What a newcomer waits for: a wheel in an empty environment, and in it the first conversion of each format beside the second.

``python benchmarks/first_minute.py dist/graphprep-….whl [--rounds N]``. Before each first run nothing is kept: HOME is empty,
and what was compiled is removed. Medians of so many rounds; ``compiled`` counts the kernels that the first run had to compile.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from golden.golden_cases import Case, load_cases

CONVERT = "import graphprep, json, sys; paths, out, options = json.loads(sys.argv[1]); graphprep.convert(paths, out, **options)"


def first_cases() -> dict[str, Case]:
    """Return a golden case of each format."""
    found: dict[str, Case] = {}
    for case in load_cases():
        if "skip" not in case.options.values() and case.name != "edges_empty":
            found.setdefault(case.options["format"], case)
    return found


def run_timed(command: list[str], environment: dict[str, str], folder: Path) -> float:
    """Return the seconds that a command took, in a folder: Python puts it on its path."""
    start = time.perf_counter()
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=folder)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return time.perf_counter() - start


def measure(python: str, home: Path, name: str, case: Case, rounds: int) -> dict[str, object]:
    """Convert one sample, first and again."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    options = case.resolved_options() | {"overwrite": True}
    command = [python, "-c", CONVERT, json.dumps([[str(path) for path in case.input_paths], str(home / "store"), options])]
    first, second, compiled = [], [], 0
    for _ in range(rounds):
        clean = [python, "-m", "graphprep", "kernels", "clean", "--json"]
        subprocess.run(clean, check=True, capture_output=True, env=environment, cwd=home)
        first.append(run_timed(command, environment, home))
        second.append(run_timed(command, environment, home))
        removed = subprocess.run(clean, check=True, capture_output=True, env=environment, cwd=home)
        compiled = json.loads(removed.stdout)["removed"]
    one, two = statistics.median(first), statistics.median(second)
    return {
        "format": name,
        "first_s": round(one, 2),
        "second_s": round(two, 2),
        "ratio": round(one / two, 2),
        "compiled": compiled,
    }


def main() -> None:
    """Install, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        venv.create(Path(folder) / "venv", with_pip=True)
        python = str(Path(folder) / "venv" / "bin" / "python")
        install = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", str(asked.wheel)]
        seconds = run_timed(install, dict(os.environ), Path.cwd())
        print(f"{asked.wheel.name}: {asked.wheel.stat().st_size / 1e6:.1f} MB, installed in {seconds:.0f} s\n")
        print("| format | first, s | second, s | ratio | compiled |\n| --- | ---: | ---: | ---: | ---: |", flush=True)
        found = []
        for name, case in first_cases().items():
            found.append(measure(python, home, name, case, asked.rounds))
            print("| " + " | ".join(map(str, found[-1].values())) + " |", flush=True)
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
