"""What a user can ask of ``reorder``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphprep.model.run_options import RunOptions
from graphprep.model.schema import NodeOrder
from graphprep.model.shown.numbers import count, duration, size
from graphprep.model.shown.results import Card, Showable, type_rows


@dataclass(frozen=True)
class ReorderOptions:
    """Options of ``reorder``.

    ``edge_types`` (``src:rel:dst``) are those whose edges count; none stands for all. ``shuffle_ratio`` is the share of a
    partition's nodes, those of the highest degrees, that change places among themselves.
    """

    by: NodeOrder = "degree"
    edge_types: tuple[str, ...] = ()
    shuffle_ratio: float = 0.0
    seed: int = 0
    overwrite: bool = False
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, repr=False)
class ReorderSummary(Showable):
    """What ``reorder`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``spilled_bytes`` is what went through temporary files, as it was beyond the memory limit.
    """

    out: str
    by: NodeOrder
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        nodes, edges = sum(self.num_nodes.values()), sum(self.num_edges.values())
        title = f"{self.out}: {count(nodes, 'node')}, {count(edges, 'edge')}, nodes by {self.by}"
        work = f"read {size(self.input_bytes)}, wrote {size(self.output_bytes)} in {duration(self.elapsed_s)}"
        return Card(title, type_rows(self.num_nodes, self.num_edges), (work, *(f"note: {one}" for one in self.notes)))
