"""Which device a run computes on: read from what the user says, found once it is known how much there is to do."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NoReturn, TypeVar

from graphprep.edges.device.guard import FoundDevice, OpenDevice, TooLargeError, guarded
from graphprep.engine.budget import parse_device_memory
from graphprep.engine.ledger import Ledger, MemoryPlan
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError, DeviceError, UsageError
from graphprep.model.options.words import python_words
from graphprep.model.protocols import Reporter
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.texts import count

if TYPE_CHECKING:
    from graphprep.edges.device.graphs import DeviceGraphs

DEVICE_VARIABLE = "GRAPHPREP_DEVICE"
LEAST_VARIABLE = "GRAPHPREP_DEVICE_MIN_EDGES"
_LEAST_EDGES = 200_000_000  # reckoned, not measured: with fewer, a GPU's start takes longer than the work of two cores
_CUDA = re.compile(r"cuda(?::([0-9]{1,4}))?")
_ARRAYS_PINNED = 1 << 30  # bytes
_PINNED_SHARE = 3  # of the memory for runs: a tenth of what a run may take
_GO_ON = "use --device auto, which goes on on the CPU, or --device cpu"
_ON_CPU = 'leave device out, or pass device="cpu"'

Kind = Literal["auto", "cpu", "cuda"]
T = TypeVar("T")


@dataclass(frozen=True)
class DeviceChoice:
    """What a user asks for, and in which words: ``--device cuda:1``. ``index`` says which GPU."""

    kind: Kind
    index: int
    place: str


def find_kernels(device: str | None = None) -> Kernels:
    """Return the kernels of ``cpu``, ``cuda`` or ``cuda:N`` for a function over arrays; None: those of the CPU.

    Raises UsageError for another word, and where there is no such GPU or it has no memory left.
    """
    from graphprep.kernels.cpu.edges import kernels

    if device is None or device == "cpu":
        return kernels
    with python_words():
        choice = _choice(device, f'device="{device}"', ("cpu", "cuda"))
        return guarded(_open(choice), partial(_give_up, choice.place, _ON_CPU))


def compute_there(compute: Callable[[DeviceGraphs], T], arrays: Sequence[object], device: str | None) -> T | None:
    """Compute on the device where the arrays of a call lie, or on that which is asked for and holds them all at once.

    None: they lie on the host and the CPU is to compute, or they are more than the device holds, or they are at fault: what
    goes through them piece by piece says where. Raises UsageError where they lie on several, or elsewhere than ``device`` says.
    """
    from graphprep.edges.device.arrays import device_of

    index = device_of(arrays, device)
    if index is not None:
        from graphprep.edges.device.graphs import graphs_of

        return compute(graphs_of(index))
    if device is None or device == "cpu":
        return None
    with python_words():
        choice = _choice(device, f'device="{device}"', ("cpu", "cuda"))
        number = _open(choice).number
        if number is None:
            return None
        from graphprep.edges.device.graphs import uploading_graphs_of

        try:
            return compute(uploading_graphs_of(number))
        except (TooLargeError, DataError, UsageError):
            return None
        except DeviceError as error:
            _give_up(choice.place, _ON_CPU, error)


def read_device(given: str | None) -> DeviceChoice:
    """Read ``--device``; None: what GRAPHPREP_DEVICE says, else ``auto``.

    Raises UsageError for what is neither ``auto``, ``cpu``, ``cuda`` nor ``cuda:N``.
    """
    said = os.environ.get(DEVICE_VARIABLE) or "auto" if given is None else given
    return _choice(said, f"{DEVICE_VARIABLE}={said}" if given is None else f"--device {said}", ("auto", "cpu", "cuda"))


def _choice(said: str, place: str, kinds: tuple[Kind, ...]) -> DeviceChoice:
    match = _CUDA.fullmatch(said)
    kind = "cuda" if match else said
    if kind not in kinds:
        fix = f"use {', '.join(kinds)} or cuda:N, such as cuda:1"
        raise UsageError("there is no such device", place=place, fix=fix)
    return DeviceChoice(kind, int(match[1] or 0) if match else 0, place)


@functools.cache
def _open(choice: DeviceChoice) -> OpenDevice:
    """Open a GPU for functions over arrays; it stays open."""
    found = look(choice)
    return found.open(parse_device_memory("auto", found.free_bytes), _ARRAYS_PINNED, find_kernels())


def _give_up(place: str, fix: str, error: DeviceError) -> NoReturn:
    raise DeviceError(error.message, place=place, fix=fix)


def look(choice: DeviceChoice) -> FoundDevice:
    """Look for a GPU. Raises UsageError, with reason and remedy, where there is none that can be used."""
    from graphprep.edges.device.cuda import find_cuda

    return find_cuda(choice.index, choice.place)


def least_edges() -> int:
    """Return from how many edges on ``auto`` looks for a GPU.

    Raises UsageError where GRAPHPREP_DEVICE_MIN_EDGES is no number.
    """
    text = os.environ.get(LEAST_VARIABLE) or str(_LEAST_EDGES)
    if not text.isascii() or not text.isdigit():
        raise UsageError("expected a number of edges", place=f"{LEAST_VARIABLE}={text}", fix="write it in digits, or unset it")
    return int(text)


class RunDevice:
    """The device of a run: asked for when it begins, opened when it is known how much there is to do.

    ``name`` is what provenance.json says of it: "" where only the CPU computes.
    """

    def __init__(self, options: RunOptions, reporter: Reporter) -> None:
        """Read the options. A GPU that is asked for by name is looked for at once.

        Raises UsageError for words that say nothing, and where there is no such GPU.
        """
        self.name = ""
        self._choice, self._least = read_device(options.device), least_edges()
        self._limit = options.device_memory_limit
        parse_device_memory(self._limit, 1)
        self._reporter = reporter
        self._found = look(self._choice) if self._choice.kind == "cuda" else None

    def kernels(self, num_edges: int, memory: MemoryPlan, ledger: Ledger) -> Kernels:
        """Return the kernels for so many edges; what they hold is entered into the ledger.

        Raises UsageError where the GPU that is asked for lacks the memory.
        """
        cpu, is_auto = find_kernels(), self._choice.kind == "auto"
        if self._choice.kind == "cpu":
            return cpu
        if is_auto and num_edges < self._least:
            self._tell(f"device: cpu: {count(num_edges, 'edge')}, and a GPU is looked for from {self._least:,} on")
            return cpu
        try:
            found = self._found or look(self._choice)
            room = parse_device_memory(self._limit, found.free_bytes)
            opened = found.open(room, memory.pool_bytes // _PINNED_SHARE, cpu)
        except UsageError as error:
            if not is_auto:
                raise
            self._tell(f"device: cpu: {error.message}")
            return cpu
        self.name = found.name
        self._tell(f"device: {found.name}: {count(num_edges, 'edge') if is_auto else self._choice.place}")
        ledger.take_device(opened.device_need, opened.pinned_need, opened.told)
        return guarded(opened, self._go_on if is_auto else partial(_give_up, self._choice.place, _GO_ON))

    def _go_on(self, error: DeviceError) -> Kernels:
        """Let the CPU do the rest, after a failure."""
        self._reporter.message(f"{self.name} failed: {error.message}; the CPU does the rest")
        self.name += ", until it failed, then cpu"
        return find_kernels()

    def _tell(self, text: str) -> None:
        """Tell those who want details."""
        if getattr(self._reporter, "details", False):
            self._reporter.message(text)
