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
from graphprep.model.protocols import QuietReporter

cuda.find_device = functools.partial(probe.find_device, simulated=True)
cuda.LEAST_BYTES = 1
TIGHT = "12KiB"  # of the device's memory: in a slot, which has a third of it, the longest row of karate has room
rooms = []  # one for every time that the device computed


class CountingSlots(slots.Slots):
    """Slots that count how often they are used."""

    def room(self):
        rooms.append(1)
        return super().room()


slots.Slots = CountingSlots


class Listener(QuietReporter):
    """Keeps what it is told."""

    details = True

    def __init__(self):
        self.messages = []

    def message(self, text):
        self.messages.append(text)


def main(folder: Path) -> None:
    karate = SAMPLE_DATA / "karate" / "karate.csv"
    store = folder / "store-cpu"
    convert = functools.partial(graphprep.convert, karate, layout="csr", neighbor_order="id")
    reorder = functools.partial(graphprep.reorder, store, by="degree")
    for name, make in {
        "store": convert,
        "hot": reorder,
        "graphbolt": functools.partial(graphprep.export, store, target="graphbolt"),
        "tight-store": functools.partial(convert, device_memory_limit=TIGHT),
        "tight-hot": functools.partial(reorder, device_memory_limit=TIGHT),
    }.items():
        listener = Listener()
        for device in ("cpu", "cuda"):
            make(out=folder / f"{name}-{device}", device=device, threads=2, reporter=listener)
        files = {device: read_store(folder / f"{name}-{device}") for device in ("cpu", "cuda")}
        print("" if rooms else f"{name}: nothing was computed on the device\n", end="")
        rooms.clear()
        told = "\n".join(text for text in listener.messages if text.startswith("device: "))
        is_halved = " too large at once" in told
        print(f"{name}: {told}\n" if is_halved != name.startswith("tight") or "left to the CPU" in told else "", end="")
        print("".join(f"{name}/{path}\n" for path in files["cpu"] if files["cpu"][path] != files["cuda"].get(path)), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
