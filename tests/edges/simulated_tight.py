"""Commands on the simulator with hardly any memory on the device: prints what is not as it should be, or nothing.

``python tests/kernels/simulated.py tests/edges/simulated_tight.py FOLDER``, with tests/ among the folders of modules.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from golden.golden_cases import SAMPLE_DATA, read_store

import graphprep
from graphprep.edges.device import cuda
from graphprep.kernels.cuda import frontend, probe
from graphprep.model.protocols import QuietReporter

assert frontend.IS_SIMULATED
cuda.find_device = functools.partial(probe.find_device, simulated=True)
cuda.LEAST_BYTES = 1
# Of the device's memory, of which a slot has a third: what is said then, and what is not.
LIMITS = {
    "1MiB": ([" x place_edges"], ["too large at once", "left to the CPU"]),
    "12KiB": ([" x place_edges", " x place_edges too large at once"], ["left to the CPU"]),  # the longest row of karate fits
    "3KiB": (["place_edges too large at once", "place_edges left to the CPU (a row does not fit by itself)"], []),
}


class Listener(QuietReporter):
    """Keeps what it is told."""

    details = True

    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


def main(folder: Path) -> None:
    karate, store = SAMPLE_DATA / "karate" / "karate.csv", folder / "convert-cpu"
    commands = {
        "convert": functools.partial(graphprep.convert, karate, layout="csr", neighbor_order="id"),
        "reorder": functools.partial(graphprep.reorder, store, by="degree"),
    }
    for name, make in commands.items():
        make(out=folder / f"{name}-cpu", device="cpu")
        wanted = read_store(folder / f"{name}-cpu")
        for limit, (said, unsaid) in LIMITS.items():
            listener, out = Listener(), folder / f"{name}-{limit}"
            make(out=out, device="cuda", threads=2, reporter=listener, device_memory_limit=limit)
            found = read_store(out)
            print("".join(f"{name} {limit}: {path}\n" for path in wanted if wanted[path] != found.get(path)), end="")
            told = "\n".join(text for text in listener.messages if text.startswith("device: "))
            is_right = name != "convert" or all(text in told for text in said)
            if not is_right or any(text in told for text in unsaid):
                print(f"{name} {limit}: {told}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
