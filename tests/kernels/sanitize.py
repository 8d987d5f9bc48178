"""The kernels' tests on a GPU under NVIDIA's compute-sanitizer: ``make sanitize-gpu``; it tells of races and stray accesses.

``python tests/kernels/sanitize.py [--tools memcheck racecheck synccheck initcheck] [--seconds N] [-- PYTEST ARGUMENTS]``. The
exit code is 0 where all tools find nothing and all tests pass, 1 where not, 2 where there is no GPU or no sanitizer.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from graphprep.kernels.cuda.probe import NoDevice, find_device

ROOT = Path(__file__).resolve().parent.parent.parent
SUITES = tuple(f"tests/kernels/test_{name}.py" for name in ("kernels_contract", "resident", "halved"))
TOOLS = ("memcheck", "racecheck", "synccheck")
FOUND = 99  # the exit code that the sanitizer is to give where it found something
SUMMARY = re.compile(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (.*)$", re.M)
TESTS = re.compile(r"^the contract of kernels: (.*)$", re.M)


def find_sanitizer() -> str | None:
    """Return where compute-sanitizer lies: in PATH, or in a toolkit."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [
        os.environ.get("PATH", ""),
        *(f"{home}/{where}" for home in homes if home for where in ("bin", "compute-sanitizer")),
    ]
    return shutil.which("compute-sanitizer", path=os.pathsep.join(folders))


def run_tool(sanitizer: str, tool: str, given: list[str], seconds: float) -> bool:
    """Run the tests under one tool and say what it found; return whether that is nothing."""
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--target-processes", "all"]
    command += [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "gpu", *(given or SUITES)]
    environment = {**os.environ, "GRAPHPREP_REQUIRE_GPU": "1"}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        print(f"{tool}: not done after {seconds:.0f} s", flush=True)
        return False
    summaries, tests = SUMMARY.findall(done.stdout + done.stderr), TESTS.findall(done.stdout)
    print(f"{tool}: {'; '.join(summaries) or 'no summary'}; tests: {'; '.join(tests) or 'none ran'}", flush=True)
    is_clean = done.returncode == 0 and bool(summaries) and any(" passed" in one for one in tests)
    if not is_clean:
        print(f"{tool} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}", flush=True)
    return is_clean


def main() -> int:
    """Run all tools."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tools", nargs="+", default=TOOLS, help=f"which  [default: {' '.join(TOOLS)}]")
    parser.add_argument("--seconds", type=float, default=3600, help="for each tool  [default: 3600]")
    parser.add_argument("given", nargs="*", help="what pytest gets  [default: the kernels' suites]")
    options = parser.parse_args()
    found, sanitizer = find_device(), find_sanitizer()
    if isinstance(found, NoDevice):
        print(f"error: no CUDA device: {found.reason}\n  fix: {found.fix}", file=sys.stderr)
        return 2
    if sanitizer is None:
        fix = "install the CUDA toolkit, and put its bin folder into PATH or set CUDA_HOME"
        print(f"error: compute-sanitizer is not installed\n  fix: {fix}", file=sys.stderr)
        return 2
    clean = [run_tool(sanitizer, tool, options.given, options.seconds) for tool in options.tools]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
