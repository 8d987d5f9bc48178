"""What a user can ask of ``sample``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphprep.model.errors import UsageError
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult
from graphprep.model.shown.texts import count, duration, size

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

    seeds: tuple[str, ...] = ()
    fanouts: tuple[str, ...] = ()
    full: int | None = None
    layer_sizes: tuple[str, ...] = ()
    layer_method: LayerMethod = "ladies"
    direction: Direction = "in"
    sampler: Literal["neighbor", "random-walk"] = "neighbor"
    walks: int = 10
    walk_length: int = 2
    restart_prob: float = 0.5
    metapath: tuple[str, ...] = ()
    replace: bool = False
    weight_column: str | None = None
    time_column: str | None = None
    seed_times: tuple[str, ...] = ()
    missing_time: str = "refuse"
    untimed: Literal["include", "exclude"] = "include"
    add_self_loop: bool = False
    batch_size: int = 1024
    epochs: int = 1
    shuffle: bool = True
    seed: int = 0
    typed_ids: bool = False
    copy_columns: tuple[str, ...] = ()
    format: Literal["npz", "parquet"] = "npz"
    overwrite: bool = False
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
