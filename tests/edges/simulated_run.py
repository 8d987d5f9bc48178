"""Commands on the simulator: prints what differs from what the CPU writes, or nothing.

``python tests/kernels/simulated.py tests/edges/simulated_run.py FOLDER``, with tests/ among the folders of modules.
"""

from __future__ import annotations

import functools
import sys
from pathlib import Path

from golden.golden_cases import SAMPLE_DATA, read_store

import graphprep
from graphprep.edges.device import cuda
from graphprep.kernels.cuda import probe, slots

cuda.find_device = functools.partial(probe.find_device, simulated=True)
rooms = []  # one for every time that the device computed


class CountingSlots(slots.Slots):
    """Slots that count how often they are used."""

    def room(self):
        rooms.append(1)
        return super().room()


slots.Slots = CountingSlots


def main(folder: Path) -> None:
    karate = SAMPLE_DATA / "karate" / "karate.csv"
    store = folder / "store-cpu"
    for name, make in {
        "store": functools.partial(graphprep.convert, karate, layout="csr", neighbor_order="id"),
        "hot": functools.partial(graphprep.reorder, store, by="degree"),
        "graphbolt": functools.partial(graphprep.export, store, target="graphbolt"),
    }.items():
        for device in ("cpu", "cuda"):
            make(out=folder / f"{name}-{device}", device=device, threads=2)
        files = {device: read_store(folder / f"{name}-{device}") for device in ("cpu", "cuda")}
        print("" if rooms else f"{name}: nothing was computed on the device\n", end="")
        rooms.clear()
        print("".join(f"{name}/{path}\n" for path in files["cpu"] if files["cpu"][path] != files["cuda"].get(path)), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
