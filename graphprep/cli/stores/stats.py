"""``graphprep stats``: what a graph is like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.convert import DeepGnnFlags, EdgesFlags, ErrorFlags, InputFlags
from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags, RunFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import print_result
from graphprep.cli.tables import TableFlags

if TYPE_CHECKING:
    from graphprep.model.options.stats import StatsReport

_of_stats = partial(option, "Statistics")


@dataclass(frozen=True, eq=False, repr=False)
class StatsFlags:
    """What is looked at."""

    triangles: Annotated[
        Literal["auto", "exact", "sampled"] | None,
        _of_stats(
            "Find triangles and clustering: count them, estimate them from a sample, or (auto) count them where memory holds "
            "the graph.",
            default=False,
        ),
    ] = None
    top: Annotated[int, _of_stats("Name the N nodes of the most edges.", metavar="N")] = 10
    seed: Annotated[int, _of_stats("Seed of the sample.", metavar="N")] = 0
    plot: Annotated[
        str | None,
        _of_stats(
            "Write pictures to a file: .svg, .png, or .html, a report by itself. Needs the extra plots.",
            metavar="FILE",
            default=False,
        ),
    ] = None
    overwrite: Annotated[bool, _of_stats("Replace the file of pictures.", default=False)] = False


@with_groups(
    later=(InputFlags, ErrorFlags, TableFlags, EdgesFlags, DeepGnnFlags, ReportFlags, RunFlags, StorageFlags),
)
def stats(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STORE|INPUT...",
            help="A store, or raw files, which become one in a temporary folder; - is stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    stats_flags: StatsFlags,
    input_flags: InputFlags,
    error_flags: ErrorFlags,
    table_flags: TableFlags,
    edges_flags: EdgesFlags,
    deepgnn_flags: DeepGnnFlags,
    run_flags: RunFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say what a graph is like: degrees, components, columns.

    Within the memory limit, however large the graph is; with --plot also in pictures.

    Example: graphprep stats karate-store --triangles exact
    """
    from graphprep import api
    from graphprep.cli.convert import check_inputs, given_decoder_options, make_input_options
    from graphprep.cli.progress import reporting
    from graphprep.model.options.stats import StatsOptions

    decoder_flags = given_decoder_options(input_flags, edges_flags, deepgnn_flags)
    urls = check_inputs(inputs, table_flags, "STORE or INPUT is needed: what to look at")
    run = run_flags.to_options(storage_flags)
    reading = make_input_options(input_flags, table_flags, decoder_flags, run, error_flags)
    options = StatsOptions(**values_of(stats_flags), run=run)
    with reporting(report_flags) as reporter:
        report = api.stats(urls, options, reporter, reading=reading)
    print_result(report, report_json, _text, report_flags, as_json=as_json)


def _text(report: StatsReport, *, every: bool) -> str:
    import shutil
    import sys

    from graphprep.cli.printed.stats import MOST_COLUMNS, report_text

    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else MOST_COLUMNS
    encoding = (getattr(sys.stdout, "encoding", None) or "ascii").lower().replace("-", "")
    return report_text(report, width=width, bar="█" if encoding.startswith("utf") else "#", every=every)


def report_json(report: StatsReport) -> str:
    """Write the report for machines; numbers that JSON lacks (inf) become texts."""
    import dataclasses

    from graphprep.model.shown.texts import hide_secrets, json_text, strict_numbers

    value = dataclasses.asdict(report)
    return json_text(strict_numbers(value | {name: hide_secrets(value[name]) for name in ("path", "plot")}))
