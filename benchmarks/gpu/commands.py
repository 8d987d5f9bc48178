"""Whole commands on both devices, and whether their stores are the same bytes."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from bench import Bench
from inputs import DEGREE
from stores import compare_stores

# A simulated device is none for commands: the toy lets them take it.
_TOY_COMMAND = """
import functools, os, sys
os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
import numba.cuda
from graphprep.kernels.cuda import probe, slots
del os.environ["NUMBA_ENABLE_CUDASIM"]
sys.setswitchinterval(5e-5)
from graphprep.edges.device import cuda
cuda.find_device = functools.partial(probe.find_device, simulated=True)
from graphprep.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def measure_commands(bench: Bench, size: int) -> None:
    """Measure whole commands on both devices, a process each, and compare the stores that they write byte by byte."""
    with tempfile.TemporaryDirectory() as folder:
        rng, count = np.random.default_rng(1), max(2, size // DEGREE)
        np.save(f"{folder}/edges.npy", rng.integers(0, count, (2, size), np.int32))
        for name, args in {
            "convert": ["convert", f"{folder}/edges.npy", "OUT"],
            "reorder": ["reorder", f"{folder}/convert-cpu", "OUT", "--by", "in-degree"],
        }.items():
            for device in ("cpu", "cuda"):
                out = Path(folder, f"{name}-{device}")
                given = [str(out) if one == "OUT" else one for one in args]
                run = functools.partial(run_command, bench, [*given, "--device", device], out)
                bench.run(name, run, items=size, device=device)


def run_command(bench: Bench, args: list[str], out: Path) -> dict[str, Any]:
    """Run a command in a process of its own; on a GPU it must write what it wrote on the CPU."""
    program = ["-c", _TOY_COMMAND] if bench.is_toy else ["-m", "graphprep"]
    start, left = time.perf_counter(), max(1.0, bench.deadline - time.monotonic())
    found = subprocess.run([sys.executable, *program, *args], capture_output=True, text=True, check=False, timeout=left)
    seconds = time.perf_counter() - start
    if found.returncode:
        raise RuntimeError(found.stderr)
    device = json.loads((out / "provenance.json").read_text())["device"]
    if not out.name.endswith("cuda"):
        return {"seconds": seconds, "computed_on": device}
    if not device.startswith("cuda:"):
        raise AssertionError(f"it was computed on {device}")
    compared = compare_stores(out.with_name(out.name.replace("cuda", "cpu")), out)
    return {"seconds": seconds, "computed_on": device, "result": f"the same bytes in {compared} files"}
