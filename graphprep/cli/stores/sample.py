"""``graphprep sample``: neighbourhoods of seeds, drawn beforehand."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags, RunFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, wrapped_text
from graphprep.cli.printed.words import peak_memory, quantity
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.sample import SampleSummary

_of_seeds = partial(option, "Seeds")
_of_draws = partial(option, "Draws")
_of_files = partial(option, "Files")


@dataclass(frozen=True, eq=False, repr=False)
class SeedFlags:
    """Whose neighbourhoods are drawn."""

    seeds: Annotated[
        list[str],
        _of_seeds(
            "Raw IDs: text, JSON lines, .npy or Parquet; - is stdin; or split:train, valid, test. May be repeated.",
            metavar="[TYPE=]FILE",
            default=False,
        ),
    ] = field(default_factory=list)
    typed_ids: Annotated[bool, _of_seeds("The files hold typed IDs.", "--typed-ids", default=False)] = False
    batch_size: Annotated[int, _of_seeds("Seeds of a flow.", metavar="N")] = 1024
    epochs: Annotated[int, _of_seeds("How often all seeds are gone through.", metavar="N")] = 1
    shuffle: Annotated[bool, _of_seeds("Shuffle seeds in each epoch, or keep their order.", "--shuffle/--keep-order")] = True
    seed: Annotated[int, _of_seeds("Seed of all that is random.", metavar="N")] = 0


@dataclass(frozen=True, eq=False, repr=False)
class DrawFlags:
    """What is drawn."""

    fanouts: Annotated[
        list[str],
        _of_draws(
            "Neighbours a node, for each hop from the seeds on; -1: all. SRC:REL:DST=10,5 for one edge type; may be repeated.",
            metavar="N,N,...",
            default=False,
        ),
    ] = field(default_factory=list)
    full: Annotated[int | None, _of_draws("All neighbours of K hops.", metavar="K")] = None
    layer_sizes: Annotated[
        list[str],
        _of_draws("Nodes a layer and type, for each hop, drawn by importance.", metavar="N,N,...", default=False),
    ] = field(default_factory=list)
    layer_method: Annotated[Literal["ladies", "fastgcn"], _of_draws("Whose importance: of the layer, or by degree.")] = "ladies"
    direction: Annotated[
        Literal["in", "out", "both"], _of_draws("Neighbours from which edges come (in), to which they go (out), or both.")
    ] = "in"
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
        list[str],
        _of_draws(
            "random-walk: steps of a traversal; ~ in front goes against the edges.", metavar="SRC:REL:DST,...", default=False
        ),
    ] = field(default_factory=list)
    replace: Annotated[bool, _of_draws("Draw with replacement.", "--replace", default=False)] = False
    weight_column: Annotated[
        str | None, _of_draws("Draw edges by this column, in proportion.", metavar="COL", default=False)
    ] = None
    time_column: Annotated[
        str | None,
        _of_draws("Draw only edges whose time, in this column, is before that of the seed.", metavar="COL", default=False),
    ] = None
    seed_times: Annotated[
        list[str],
        _of_draws("Times of the seeds, one each, in their order; one file for each of --seeds.", metavar="FILE", default=False),
    ] = field(default_factory=list)
    missing_time: Annotated[
        str,
        _of_draws(
            "Edges without a time: refuse ends, drop never draws them, a time is what they get.", metavar="refuse|drop|TIME"
        ),
    ] = "refuse"
    untimed: Annotated[
        Literal["include", "exclude"], _of_draws("Draw from edge types without --time-column at any time, or not at all.")
    ] = "include"
    add_self_loop: Annotated[
        bool, _of_draws("Add a loop at each node, so that it is in the next layer, too.", "--add-self-loop", default=False)
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class SampleFileFlags:
    """What is written."""

    copy_column: Annotated[
        list[str],
        _of_files("Copy this column of nodes or edges, too; may be repeated.", metavar="[TYPE:]COL", default=False),
    ] = field(default_factory=list)
    format: Annotated[Literal["npz", "parquet"], _of_files("Format of the shards.")] = "npz"
    overwrite: Annotated[
        bool,
        _of_files("Replace OUT if it holds samples; they stay until the new ones are whole.", "--overwrite", default=False),
    ] = False


@with_groups()
def sample(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the samples.", show_default=False)],
    *,
    seed_flags: SeedFlags,
    draw_flags: DrawFlags,
    file_flags: SampleFileFlags,
    run_flags: RunFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Draw neighbourhoods of seeds, mini-batch after mini-batch.

    Each becomes a flow (NodeFlow): layers of nodes, blocks of edges between them, and where both stand in the store. The same
    --seed gives the same files, whatever the threads, the memory limit and the number of range partitions.

    Example: graphprep sample karate-store flows --seeds ids.txt --fanouts 10,5
    """
    from graphprep import api
    from graphprep.cli.progress import reporting
    from graphprep.model.options.sample import SampleOptions

    given = values_of(seed_flags, draw_flags, file_flags)
    copied = given.pop("copy_column")
    options = SampleOptions(copy_columns=copied, **given, run=run_flags.to_options(storage_flags))
    with reporting(report_flags) as reporter:
        summary = api.sample(store, out, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: SampleSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all notes, however many."""
    lines = [f"{display_url(summary.out)}: {summary.flows_words()}"]
    rate = f"{quantity(summary.sampled_edges_per_s)} sampled edges/s"
    lines.append(f"  {summary.work_words()}: {rate}, {peak_memory(summary.peak_memory_bytes)}")
    return wrapped_text(lines + note_lines(summary.notes, every=every))
