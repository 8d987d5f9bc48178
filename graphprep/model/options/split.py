"""What a user can ask of ``split``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, get_args

from graphprep.model.errors import UsageError, one_of
from graphprep.model.option import OVERWRITE, Option
from graphprep.model.options.negatives import Corrupt
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult

_of_split = partial(Option, "Split")
_of_negatives = partial(Option, "Negatives")

SplitBy = Literal["random", "time", "label", "nodes", "keep"]
_WITH_COLUMN = ("time", "label")


@dataclass(frozen=True)
class SplitOptions:
    """Options of ``split``.

    ``by``: ``random``, ``time``, ``label``, ``nodes``, or ``keep``, the splits that are there; ``time:COL`` and ``label:COL``
    name the column. ``of`` names what is split: ``nodes``, ``edges``, node types, edge types (``src:rel:dst``); none: nodes, by
    time edges. ``at``: borders in time, in place of shares. ``symmetric``: u -> v and v -> u of an edge type between nodes of
    one type are in one part.
    ``reverse_types`` (``src:rel:dst=dst:rev:src``): so are edges of the first type and their reverses in the second.
    ``reverses``: types of which half the edges or more turn out to be reverses are split ``together`` unasked, or ``apart``.
    ``negatives``: how many are drawn for an edge, or for one of some parts (``train=1,val=50``); ``negatives_by``: ``uniform``,
    ``degree``, ``degree:EXPONENT`` or ``khop:K``; ``corrupt``: in place of its ``tail``, its ``head``, or as many of ``both``.
    ``overwrite_column``: replace a split or negatives, or a column of their names, that is there.
    """

    by: Annotated[
        str,
        _of_split(
            "What says where a row goes: a hash of its IDs (random); its time, oldest first (time, time:COL); a hash in "
            "each class of its label (label, label:COL); hashes of nodes, edges going with their ends (nodes); or nothing: "
            "splits stay as they are, and get --negatives (keep).",
            metavar="RULE",
            is_required=True,
        ),
    ] = "random"
    of: Annotated[
        tuple[str, ...],
        _of_split(
            "What is split: nodes, edges, a node type or an edge type; may be repeated.  [default: nodes; by time edges]",
            metavar="TYPE",
        ),
    ] = ()
    at: Annotated[
        str | None,
        _of_split(
            "Borders in time, in place of SHARES: what is older than the first is train, what is not older than the last test.",
            metavar="TIME[/TIME]",
        ),
    ] = None
    symmetric: Annotated[bool, _of_split("Keep u -> v and v -> u together, in edge types between nodes of one type.")] = False
    reverse_types: Annotated[
        tuple[str, ...],
        _of_split(
            "Keep the edges of a type together with their reverses, which are a type of their own; may be repeated.",
            metavar="SRC:REL:DST=DST:REV:SRC",
        ),
    ] = ()
    reverses: Annotated[
        Literal["together", "apart"],
        _of_split("Edge types, or directions of one, of which half the edges or more turn out to be reverses of others."),
    ] = "together"
    seed: Annotated[int, _of_split("Seed of the hashes.", metavar="N")] = 0
    negatives: Annotated[
        str | None,
        _of_negatives(
            "Draw K other nodes for each edge of the split, to which it has no edge; or as many for each part.",
            metavar="K|train=K,val=K,test=K",
        ),
    ] = None
    negatives_by: Annotated[
        str,
        _of_negatives(
            "All alike (uniform); by degree to the power of 0.75 (degree), or another one (degree:A); hard ones, the ends "
            "of random walks of K steps at most (khop:K).",
            metavar="RULE",
        ),
    ] = "uniform"
    corrupt: Annotated[
        Corrupt, _of_negatives("In place of the destination (tail), of the source (head), or K of each (both).")
    ] = "tail"
    overwrite_column: Annotated[bool, _of_split("Replace a split or negatives, or a column of their names, that is there.")] = (
        False
    )
    overwrite: Annotated[bool, OVERWRITE] = False
    run: RunOptions = field(default_factory=RunOptions)


def parse_by(text: str) -> tuple[SplitBy, str | None]:
    """Return by what is split, and the column, where one is named.

    Raises UsageError.
    """
    name, colon, column = text.partition(":")
    forms = {one: f"{one}[:COL]" if one in _WITH_COLUMN else one for one in get_args(SplitBy)}
    for one in get_args(SplitBy):
        if one == name:
            if colon and (one not in _WITH_COLUMN or not column):
                raise UsageError(f"--by {name} is written {forms[one]}, found {text!r}", fix=one_of(forms.values()))
            return one, column or None
    raise UsageError(f"--by: nothing is split by {text!r}", fix=one_of(forms.values(), found=name))


@dataclass(frozen=True, repr=False)
class SplitSummary(RunResult):
    """What ``split`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``node_splits`` and ``edge_splits``: how many rows of each type that was split are in ``train``, ``valid``, ``test`` and in
    no part (``none``). ``negatives``: how many were drawn, by edge type.
    """

    out: str
    by: str
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    node_splits: Mapping[str, Mapping[str, int]]
    edge_splits: Mapping[str, Mapping[str, int]]
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    negatives: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        return self.card_of(f"{self.out}: {self.graph_words()}, split by {self.by}", self.work_words(), *self.split_lines())

    def split_lines(self) -> list[str]:
        """Say what is in which part: a line for each type."""
        kinds = (("node", self.node_splits), ("edge", self.edge_splits))
        return [_split_line(kind, name, parts) for kind, splits in kinds for name, parts in splits.items()]


def _split_line(kind: str, name: str, parts: Mapping[str, int]) -> str:
    counts = [f"{number:,} {part}" for part, number in parts.items() if part != "none"]
    rest = [f"{parts['none']:,} in no part"] if parts["none"] else []
    return f"{kind} type {name!r}: {', '.join([*counts, *rest])}"
