"""Measures a GPU: ``make bench-gpu``, or ``python benchmarks/gpu [--seconds 440] [--json FILE] [--toy]``.

One device, less than 8 minutes, what matters most first: transfer rates; COO to CSR with edge IDs in device memory, and
streamed from pinned memory through three slots; ``convert`` of binary edges and ``reorder`` on both devices, whose stores must
be the same bytes; then each kernel by itself over 100 M, 1 G and 10 M edges of 32 and 64 bits. Beside them cupy, torch and
cuda.compute, where they can be imported. Results are checked: rows edge by edge on the device, kernels against NumPy over a
million items, stores byte by byte; a wrong one makes the exit code 1. What there was no time or memory for is named with its
reason. The JSON ends with what was to be reached, and whether it was. ``--toy`` runs all of it on CUDA's simulator, over a few
edges and with stand-ins for what needs a GPU, to see that it works: its times mean nothing.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
MOST_SECONDS = 475  # then it ends, whatever runs


def main() -> int:
    """Measure everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--toy", action="store_true", help="a few edges on the simulator, to see that this script works")
    parser.add_argument("--seconds", type=float, default=440, help="begin nothing new after so many seconds")
    parser.add_argument("--json", type=Path, default=ROOT / ".benchmarks/gpu.json", help="where results are written")
    options = parser.parse_args()
    begin = time.monotonic()
    if options.toy:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
        sys.setswitchinterval(5e-5)
        print("SIMULATION: this shows that the script works. Its times mean nothing.")
    from graphprep.kernels.cuda.probe import NoDevice, find_device

    found = find_device(simulated=options.toy)
    os.environ.pop("NUMBA_ENABLE_CUDASIM", None)
    if isinstance(found, NoDevice):
        print(f"error: no CUDA device: {found.reason}\n  fix: {found.fix}", file=sys.stderr)
        return 2
    from bench import Bench, verdicts
    from plan import measure_all
    from toy import ToyCompute

    from graphprep.kernels.cuda.cccl import Fast, find_fast
    from graphprep.kernels.cuda.slots import Slots

    bench = Bench(options.toy, begin + options.seconds, options.json, about_device(found, options.toy))
    make_fast = (lambda: Fast(ToyCompute(), "toy")) if options.toy else find_fast(found)
    if not options.toy:
        last = threading.Timer(max(0.0, MOST_SECONDS - (time.monotonic() - begin)), give_up, [bench])
        last.daemon = True
        last.start()
    measure_all(bench, Slots(), make_fast)
    for told in verdicts(bench):
        print(f"{told['target']}: wanted {told['wanted']}, found {told['found']}: {told['verdict']}")
    print(f"written: {options.json}")
    return int(any("wrong" in one for one in bench.results))


def give_up(bench: Any) -> None:
    """End in the middle of something, when 8 minutes are nearly over; what was found is written."""
    bench.note("the rest", skipped=f"{MOST_SECONDS} s are over")
    os._exit(0)


def about_device(device: Any, is_toy: bool) -> dict[str, Any]:
    """Return what it is measured on."""
    import numba

    from graphprep.kernels.cuda import frontend

    free, total = (0, 0) if is_toy else device.memory()
    return {
        "simulated": is_toy,
        "device": asdict(device),
        "memory": {"free": free, "total": total},
        "block": {"threads": frontend.THREADS, "items": frontend.ITEMS, "blocks": frontend.MOST_BLOCKS},
        "numba": numba.__version__,
        "numba.cuda": numba.cuda.__file__,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    sys.exit(main())
