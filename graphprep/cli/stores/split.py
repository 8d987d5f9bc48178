"""``graphprep split``: a store that says which rows are train, valid and test."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, OverwriteStore, ReportFlags, RunFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import (
    kind_lines,
    note_lines,
    print_result,
    summary_json,
    types_lines,
    work_line,
    wrapped_text,
)
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.split import SplitSummary

_of_split = partial(option, "Split")
_of_negatives = partial(option, "Negatives")


@dataclass(frozen=True, eq=False, repr=False)
class SplitFlags:
    """What is split, and by what."""

    by: Annotated[
        str,
        _of_split(
            "What says where a row goes: a hash of its IDs (random); its time, oldest first (time, time:COL); a hash in each "
            "class of its label (label, label:COL); hashes of nodes, edges going with their ends (nodes); or nothing: splits "
            "stay as they are, and get --negatives (keep).",
            metavar="RULE",
            default=False,
        ),
    ]
    of: Annotated[
        list[str],
        _of_split(
            "What is split: nodes, edges, a node type or an edge type; may be repeated.  [default: nodes; by time edges]",
            metavar="TYPE",
        ),
    ] = field(default_factory=list)
    at: Annotated[
        str | None,
        _of_split(
            "Borders in time, in place of SHARES: what is older than the first is train, what is not older than the last test.",
            metavar="TIME[/TIME]",
        ),
    ] = None
    symmetric: Annotated[
        bool,
        _of_split("Keep u -> v and v -> u together, in edge types between nodes of one type.", "--symmetric", default=False),
    ] = False
    reverse_types: Annotated[
        list[str],
        _of_split(
            "Keep the edges of a type together with their reverses, which are a type of their own; may be repeated.",
            metavar="SRC:REL:DST=DST:REV:SRC",
        ),
    ] = field(default_factory=list)
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
            default=False,
        ),
    ] = None
    negatives_by: Annotated[
        str,
        _of_negatives(
            "All alike (uniform); by degree to the power of 0.75 (degree), or another one (degree:A); hard ones, the ends of "
            "random walks of K steps at most (khop:K).",
            metavar="RULE",
        ),
    ] = "uniform"
    corrupt: Annotated[
        Literal["tail", "head", "both"],
        _of_negatives("In place of the destination (tail), of the source (head), or K of each (both)."),
    ] = "tail"
    overwrite_column: Annotated[
        bool,
        _of_split(
            "Replace a split or negatives, or a column of their names, that is there.", "--overwrite-column", default=False
        ),
    ] = False


@with_groups()
def split(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    shares: Annotated[
        str,
        typer.Argument(
            metavar="[SHARES]",
            help="TRAIN/VALID/TEST or TRAIN/TEST: shares such as 0.8/0.1/0.1, or counts such as 140/500/1000.",
            show_default=False,
        ),
    ] = "",
    *,
    split_flags: SplitFlags,
    overwrite: OverwriteStore = False,
    run_flags: RunFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say which rows of a store are train, valid and test.

    The store is written again with a column, split, which exports turn into masks and sets; everything else stays.

    Example: graphprep split karate-store karate-split 0.8/0.1/0.1 --by random --of edges --symmetric
    """
    from graphprep import api
    from graphprep.cli.progress import reporting
    from graphprep.model.options.split import SplitOptions

    options = SplitOptions(**values_of(split_flags), overwrite=overwrite, run=run_flags.to_options(storage_flags))
    with reporting(report_flags) as reporter:
        summary = api.split(store, out, shares, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: SplitSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}, split by {summary.by}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every), work_line(summary)]
    lines += kind_lines(summary.split_lines(), "split", every=every)
    return wrapped_text(lines + note_lines(summary.notes, every=every))
