"""What a user can ask of ``transform``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from graphprep.model.option import OVERWRITE, Option
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult

_of_store = partial(Option, "Store")


@dataclass(frozen=True)
class TransformOptions:
    """Options of ``transform``.

    ``ids``: where nodes go, whether the IDs of those that stay close up (``compact``), or all nodes stay and only edges go
    (``preserved``). ``other_types``: what ``node-subgraph`` and ``edge-subgraph`` do with what is of a type that is not named.
    ``into``: ``flatten`` makes one edge type of this name, all nodes of one type. ``as_``: what columns that operations make
    are called: ``"times"``, where they make one, else ``("edge_id=eid",)``. ``maps`` is a folder for the maps from old edge IDs
    to new ones.
    """

    ids: Annotated[
        Literal["compact", "preserved"],
        _of_store("Where nodes go: the IDs of the others close up (compact), or all nodes stay and only edges go (preserved)."),
    ] = "compact"
    other_types: Annotated[
        Literal["keep", "drop"], _of_store("What node-subgraph and edge-subgraph do with what is of a type that is not named.")
    ] = "drop"
    into: Annotated[
        str | None,
        _of_store("flatten makes one edge type of this name, all nodes of one type, as to-homogeneous does.", metavar="NAME"),
    ] = None
    as_: Annotated[
        tuple[str, ...],
        _of_store(
            "Call a column that an operation makes NAME; COLUMN says which, where it makes several. Repeatable.",
            flags="--as",
            metavar="[COLUMN=]NAME",
            words=r"[^\s,;]+=NAME",
        ),
    ] = ()
    maps: Annotated[
        str | None,
        _of_store(
            "Also write, for every type, where each old node and edge is now: .npy files of IDs, -1 for what is gone.",
            metavar="DIR",
        ),
    ] = None
    overwrite: Annotated[bool, OVERWRITE] = False
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, repr=False)
class TransformSummary(RunResult):
    """What ``transform`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user."""

    out: str
    operations: tuple[str, ...]
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
        return self.card_of(f"{self.out}: {self.graph_words()}; {', '.join(self.operations)}", self.work_words())
