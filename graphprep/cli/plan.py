"""``graphprep plan``: what a conversion will be like."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from graphprep.cli.convert import FailIfSkipped
from graphprep.cli.help.groups import with_groups
from graphprep.cli.last_stage import LastStageFlags
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.tables import TableFlags
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.run_options import RunOptions


# A command of convert may have --overwrite, which says nothing of what the store would look like.
@with_groups(later=(ConvertOptions, RunOptions, TableFlags, DecoderOptions, LastStageFlags, ReportFlags), hidden=("overwrite",))
def plan(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...",
            help="Files, folders, globs or URLs, but not stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    given: ConvertOptions,
    fail_if_skipped: FailIfSkipped = False,
    table_flags: TableFlags,
    decoding: DecoderOptions,
    last_flags: LastStageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say what a conversion will be like: sizes, memory, time.

    From samples, headers and footers; nothing is written. Takes the options of convert.

    Example: graphprep plan sample_data/karate/karate.csv --partitions 2
    """
    from graphprep import api
    from graphprep.cli.convert import check_inputs, targets_of, with_tables
    from graphprep.cli.printed.plan import report_json, report_text
    from graphprep.cli.printed.summaries import print_result
    from graphprep.cli.progress import reporting

    urls = check_inputs(inputs, table_flags, "INPUT is needed: what is to be converted", given.graph)
    options = dataclasses.replace(with_tables(given, table_flags, decoding), overwrite=False)
    targets = targets_of(last_flags.folders("store"), last_flags, options)
    with reporting(report_flags) as reporter:
        report = api.plan(urls, options, reporter, export=targets)
    print_result(report, report_json, report_text, report_flags, as_json=as_json)
