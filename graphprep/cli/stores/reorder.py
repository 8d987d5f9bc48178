"""``graphprep reorder``: a store with its nodes in another order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, DeviceFlags, OverwriteStore, ReportFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.reorder import ReorderSummary

_of_order = partial(option, "Order")


@dataclass(frozen=True, eq=False, repr=False)
class OrderFlags:
    """What nodes are ordered by."""

    by: Annotated[
        str,
        _of_order(
            "What comes first: nodes of the most edges (degree), in-edges (in-degree) or out-edges (out-degree); hubs, by "
            "degree (hub-sort) or as they stand (hub-cluster); groups of like degree (dbg); what a search "
            "meets first, breadth first (bfs) or from the lowest degrees on and reversed (rcm); one community after another "
            "(llp); any, by the seed (random); the highest scores (score:FILE); what a file says (permutation:FILE); what did "
            "before any reorder (previous).",
            metavar="ORDER",
            default=False,
        ),
    ]
    scope: Annotated[
        Literal["partition", "graph"],
        _of_order("Keep nodes in their partitions, or order them across partitions, which keep their numbers of nodes."),
    ] = "partition"
    edge_type: Annotated[
        list[str],
        _of_order("Count the edges of this type only; may be repeated.  [default: all edge types]", metavar="SRC:REL:DST"),
    ] = field(default_factory=list)
    shuffle_ratio: Annotated[
        float, _of_order("Shuffle the first R x n of a partition's n nodes of a type, those that come first.", metavar="R")
    ] = 0.0
    split_ratio: Annotated[float, _of_order("Call the first R x n nodes of a partition hot, for --id2index.", metavar="R")] = (
        0.0
    )
    id2index: Annotated[
        bool,
        _of_order(
            "Write id2index.npy, where each node went, and the number of hot nodes, for GraphLearn-for-PyTorch.",
            "--id2index",
            default=False,
        ),
    ] = False
    seed: Annotated[int, _of_order("Seed of --shuffle-ratio, random and llp.", metavar="N")] = 0


@with_groups()
def reorder(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    *,
    order_flags: OrderFlags,
    overwrite: OverwriteStore = False,
    run_flags: DeviceFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Relabel each partition's nodes: by degree, or in another order.

    Every type for itself, ties by ID. Everything follows: edges, columns, raw IDs. graphprep ids converts between old and new
    IDs (previous, typed).

    Example: graphprep reorder karate-store karate-hot --by degree
    """
    from graphprep import api
    from graphprep.cli.progress import reporting
    from graphprep.model.options.reorder import ReorderOptions

    given, run = values_of(order_flags), run_flags.to_options(storage_flags)
    options = ReorderOptions(edge_types=given.pop("edge_type"), **given, overwrite=overwrite, run=run)
    with reporting(report_flags) as reporter:
        summary = api.reorder(store, out, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: ReorderSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}, nodes by {summary.by}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every)]
    lines += [work_line(summary), f"  {summary.gaps_line()}"]
    lines += [f"  hot nodes of type {name!r}: {number:,}" for name, number in summary.num_hot.items() if number]
    return wrapped_text(lines + note_lines(summary.notes, every=every))
