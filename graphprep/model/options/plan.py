"""What ``plan`` answers. ``docs/plan.md`` says how each number is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, display_url, duration, size


@dataclass(frozen=True)
class Estimate:
    """A number that was estimated: likely ``value``, hardly outside [low, high]; all three are the same where it is known."""

    value: int
    low: int
    high: int

    @classmethod
    def exactly(cls, number: int) -> Estimate:
        """Return a number that is known."""
        return cls(number, number, number)

    @property
    def is_exact(self) -> bool:
        """Return whether the number is known."""
        return self.low == self.high


@dataclass(frozen=True)
class PlannedNeed:
    """An entry of the memory ledger: the most that something takes, in bytes, and why; ``likely_bytes`` is what is expected."""

    name: str
    most_bytes: int
    likely_bytes: int
    why: str


@dataclass(frozen=True)
class PlannedStage:
    """A stage: its time, and the memory that the process holds in it: at most, as the ledger has it, and likely."""

    name: str
    elapsed_s: float
    most_bytes: int
    likely_bytes: int
    needs: tuple[PlannedNeed, ...] = ()


@dataclass(frozen=True)
class Guess:
    """What nobody said and ``convert`` will assume; ``flags`` fix it."""

    what: str
    value: str
    flags: str


@dataclass(frozen=True)
class PlannedExport:
    """An export: the bytes of its files, about; None where only the target knows. ``left_out`` are columns, with reasons."""

    target: str
    num_bytes: int | None
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class DiskRoom:
    """What is written to a folder, and what is free there; None where the system does not say, or the place is remote."""

    folder: str
    need_bytes: int
    free_bytes: int | None


@dataclass(frozen=True, repr=False)
class PlanReport(Showable):
    """What a conversion will be like.

    ``read_bytes`` of ``input_bytes`` were looked at. ``distinct_ids``: how many IDs occur, by node type; ``num_nodes`` differs
    where all of 0..n-1 are nodes. ``parts_at_least``: a file of assignments, of which only the beginning was looked at, may ask
    for more than ``num_parts``. ``store_bytes`` are those of files, by kind. ``missing_kernels`` are to be compiled, which
    takes ``compile_s``; ``compiled_s`` is what compiling took while samples were decoded.
    """

    inputs: tuple[str, ...]
    format: str
    format_flags: tuple[str, ...]
    num_files: int
    input_bytes: int
    text_bytes: int
    read_bytes: int
    num_nodes: Mapping[str, Estimate]
    num_edges: Mapping[str, Estimate]
    distinct_ids: Mapping[str, Estimate]
    num_parts: int
    parts_at_least: bool
    raw_ids: Mapping[str, str]
    stages: tuple[PlannedStage, ...]
    memory_limit_bytes: int
    threads: int
    store_bytes: Mapping[str, int]
    spill_bytes: int
    disks: tuple[DiskRoom, ...]
    missing_kernels: tuple[str, ...]
    compile_s: float
    compiled_s: float
    guesses: tuple[Guess, ...]
    exports: tuple[PlannedExport, ...] = ()
    notes: tuple[str, ...] = ()
    elapsed_s: float = field(default=0.0, compare=False)

    @property
    def total_nodes(self) -> int:
        """Return the number of nodes of all types."""
        return sum(one.value for one in self.num_nodes.values())

    @property
    def total_edges(self) -> int:
        """Return the number of edges of all types."""
        return sum(one.value for one in self.num_edges.values())

    @property
    def output_bytes(self) -> int:
        """Return the size of the store."""
        return sum(self.store_bytes.values())

    @property
    def convert_s(self) -> float:
        """Return how long the conversion takes once its kernels are compiled."""
        return sum(one.elapsed_s for one in self.stages)

    @property
    def peak_stage(self) -> PlannedStage:
        """Return the stage that takes most memory."""
        return max(self.stages, key=lambda one: one.likely_bytes)

    @property
    def most_memory_bytes(self) -> int:
        """Return the most memory that any stage declares."""
        return max(one.most_bytes for one in self.stages)

    def title(self) -> str:
        """Say in one line how large the graph is: about, unless all of the input was looked at."""
        about = "" if self.read_bytes >= self.input_bytes else "about "
        parts = f"{'at least ' * self.parts_at_least}{count(self.num_parts, 'partition')}"
        shown = ", ".join(map(display_url, self.inputs)) or "tables"
        return f"{shown}: {about}{count(self.total_nodes, 'node')}, {count(self.total_edges, 'edge')}, {parts}"

    def card(self) -> Card:
        """See ``Showable``."""
        nodes, edges = ({name: one.value for name, one in counts.items()} for counts in (self.num_nodes, self.num_edges))
        peak = size(self.peak_stage.likely_bytes)
        work = f"about {duration(self.convert_s)}, peak memory {peak}, store {size(self.output_bytes)}"
        return Card(self.title(), type_rows(nodes, edges), (work, *(f"note: {one}" for one in self.notes)))
