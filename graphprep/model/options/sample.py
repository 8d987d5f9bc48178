"""What a user can ask of ``sample``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from graphprep.model.errors import UsageError
from graphprep.model.option import MISSING_TIME, Option
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult
from graphprep.model.shown.texts import count, duration, size

_of_seeds = partial(Option, "Seeds")
_of_draws = partial(Option, "Draws")
_of_files = partial(Option, "Files")

Direction = Literal["in", "out", "both"]
LayerMethod = Literal["ladies", "fastgcn"]
_FANOUTS_FIX = "write numbers with commas, one a hop, the seeds' first: 15,10,5 (-1: all), or src:rel:dst=10,5,5"


@dataclass(frozen=True)
class SampleOptions:
    """Options of ``sample``.

    ``seeds``: files, ``[TYPE=]FILE``, or ``[TYPE=]split:train``; with ``time_column``, ``seed_times`` are files of their times.
    One of three says how far and how many: ``fanouts``, a number for each hop from the seeds on, -1 for all (``15,10,5``, and
    ``src:rel:dst=10,5,5`` for an edge type); ``full``, all of so many hops; ``layer_sizes``, nodes of each type a layer, drawn
    by ``layer_method``. With the ``sampler`` ``random-walk``, ``fanouts`` are how many neighbours a node has, of those that
    ``walks`` of at most ``walk_length`` traversals of ``metapath`` visit most often; before each but the first of these, a walk
    ends with ``restart_prob``. ``missing_time``: where an edge has no time, ``refuse``, ``drop`` it, or the time that it gets;
    ``untimed``: whether edge types without the column are drawn from. ``copy_columns`` are ``[TYPE:]COLUMN``.
    """

    seeds: Annotated[
        tuple[str, ...],
        _of_seeds(
            "Raw IDs: text, JSON lines, .npy or Parquet; - is stdin; or split:train, valid, test. May be repeated.",
            metavar="[TYPE=]FILE",
        ),
    ] = ()
    fanouts: Annotated[
        tuple[str, ...],
        _of_draws(
            "Neighbours a node, for each hop from the seeds on; -1: all. SRC:REL:DST=10,5 for one edge type; may be repeated.",
            metavar="N,N,...",
        ),
    ] = ()
    full: Annotated[int | None, _of_draws("All neighbours of K hops.", metavar="K")] = None
    layer_sizes: Annotated[
        tuple[str, ...], _of_draws("Nodes a layer and type, for each hop, drawn by importance.", metavar="N,N,...")
    ] = ()
    layer_method: Annotated[LayerMethod, _of_draws("Whose importance: of the layer, or by degree.")] = "ladies"
    direction: Annotated[Direction, _of_draws("Neighbours from which edges come (in), to which they go (out), or both.")] = "in"
    sampler: Annotated[
        Literal["neighbor", "random-walk"],
        _of_draws("Draw edges, or make edges of what random walks visit most: --fanouts says how many of a node (PinSAGE)."),
    ] = "neighbor"
    walks: Annotated[int, _of_draws("random-walk: walks from each node.", metavar="N")] = 10
    walk_length: Annotated[int, _of_draws("random-walk: traversals of a walk at most.", metavar="N")] = 2
    restart_prob: Annotated[
        float, _of_draws("random-walk: chance that a walk ends before each traversal but the first.", metavar="P")
    ] = 0.5
    metapath: Annotated[
        tuple[str, ...],
        _of_draws("random-walk: steps of a traversal; ~ in front goes against the edges.", metavar="SRC:REL:DST,..."),
    ] = ()
    replace: Annotated[bool, _of_draws("Draw with replacement.")] = False
    weight_column: Annotated[str | None, _of_draws("Draw edges by this column, in proportion.", metavar="COL")] = None
    time_column: Annotated[
        str | None, _of_draws("Draw only edges whose time, in this column, is before that of the seed.", metavar="COL")
    ] = None
    seed_times: Annotated[
        tuple[str, ...],
        _of_draws("Times of the seeds, one each, in their order; one file for each of --seeds.", metavar="FILE"),
    ] = ()
    missing_time: Annotated[
        str,
        _of_draws(
            "Edges without a time: refuse ends, drop never draws them, a time is what they get.",
            metavar="refuse|drop|TIME",
            words=MISSING_TIME,
        ),
    ] = "refuse"
    untimed: Annotated[
        Literal["include", "exclude"], _of_draws("Draw from edge types without --time-column at any time, or not at all.")
    ] = "include"
    add_self_loop: Annotated[bool, _of_draws("Add a loop at each node, so that it is in the next layer, too.")] = False
    batch_size: Annotated[int, _of_seeds("Seeds of a flow.", metavar="N")] = 1024
    epochs: Annotated[int, _of_seeds("How often all seeds are gone through.", metavar="N")] = 1
    shuffle: Annotated[bool, _of_seeds("Shuffle seeds in each epoch, or keep their order.", flags="--shuffle/--keep-order")] = (
        True
    )
    seed: Annotated[int, _of_seeds("Seed of all that is random.", metavar="N")] = 0
    typed_ids: Annotated[bool, _of_seeds("The files hold typed IDs.")] = False
    copy_columns: Annotated[
        tuple[str, ...],
        _of_files("Copy this column of nodes or edges, too; may be repeated.", metavar="[TYPE:]COL", flags="--copy-column"),
    ] = ()
    format: Annotated[Literal["npz", "parquet"], _of_files("Format of the shards.")] = "npz"
    overwrite: Annotated[bool, _of_files("Replace OUT if it holds samples; they stay until the new ones are whole.")] = False
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, repr=False)
class SampleSummary(RunResult):
    """What ``sample`` did. Sizes in bytes, times in seconds; ``num_nodes`` and ``num_edges`` are those of the store.

    ``num_sampled_nodes`` and ``num_sampled_edges`` are those of all flows, ``sampled_edges_per_s`` counts the time of drawing
    and writing alone.
    """

    out: str
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    num_seeds: int
    num_flows: int
    num_layers: int
    num_sampled_nodes: int
    num_sampled_edges: int
    sampled_edges_per_s: float
    num_files: int
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        work = f"wrote {size(self.output_bytes)} in {count(self.num_files, 'file')} in {duration(self.elapsed_s)}"
        return Card(f"{self.out}: {self.flows_words()}", (), (work, *(f"note: {one}" for one in self.notes)))

    def flows_words(self) -> str:
        """Say what was drawn."""
        flows = f"{count(self.num_flows, 'flow')} of {count(self.num_layers, 'layer')}"
        return f"{flows}, {count(self.num_sampled_nodes, 'node')}, {count(self.num_sampled_edges, 'edge')}"


def parse_fanouts(texts: tuple[str, ...]) -> tuple[tuple[int, ...] | None, dict[str, tuple[int, ...]]]:
    """Return the numbers of all edge types, None where there are none, and those of some, by ``src:rel:dst``.

    Raises UsageError.
    """
    every: tuple[int, ...] | None = None
    own: dict[str, tuple[int, ...]] = {}
    if len(texts) > 1 and not any("=" in text or "," in text for text in texts):
        texts = (",".join(texts),)
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        found = _numbers("--fanouts", numbers, -1)
        if (equals and name in own) or (not equals and every is not None):
            raise UsageError(f"--fanouts is given twice{f' for {name!r}' if equals else ''}", fix="leave one out")
        if equals:
            own[name] = found
        else:
            every = found
    lengths = {len(one) for one in [*own.values(), *([every] if every is not None else [])]}
    if len(lengths) > 1:
        raise UsageError(
            f"--fanouts have {' and '.join(map(str, sorted(lengths)))} hops", fix="give each the same number of hops"
        )
    return every, own


def parse_layer_sizes(texts: tuple[str, ...]) -> tuple[int, ...]:
    """Return the sizes of layers, that next to the seeds first. Raises UsageError."""
    return _numbers("--layer-sizes", ",".join(texts), 1)


def _numbers(flag: str, text: str, least: int) -> tuple[int, ...]:
    try:
        found = tuple(map(int, text.split(",")))
    except ValueError:
        found = ()
    if not found or min(found) < least or max(found) >= 2**31:
        fix = (
            _FANOUTS_FIX
            if flag == "--fanouts"
            else "write numbers with commas, one a hop, that next to the seeds first: 512,256"
        )
        raise UsageError(f"{flag} must be numbers of {least} or more, found {text!r}", fix=fix)
    return found
