"""``graphprep stats``: what a graph is like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_DEVICES, AsJson, ReportFlags
from graphprep.cli.printed.summaries import print_result
from graphprep.cli.tables import TableFlags
from graphprep.model.options.convert import FaultOptions, InputOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.options.stats import StatsOptions
from graphprep.model.run_options import RunOptions

if TYPE_CHECKING:
    from graphprep.model.options.stats import StatsReport


@with_groups(later=(InputOptions, FaultOptions, RunOptions, TableFlags, DecoderOptions, ReportFlags), without=OF_DEVICES)
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
    options: StatsOptions,
    given: InputOptions,
    faults: FaultOptions,
    table_flags: TableFlags,
    decoding: DecoderOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say what a graph is like: degrees, components, columns.

    Within the memory limit, however large the graph is; with --plot also in pictures.

    Example: graphprep stats karate-store --triangles exact
    """
    from graphprep import api
    from graphprep.cli.convert import check_inputs, reading_of
    from graphprep.cli.progress import reporting

    urls = check_inputs(inputs, table_flags, "STORE or INPUT is needed: what to look at", given.graph)
    reading = reading_of(table_flags, decoding, given, faults, run=options.run)
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
