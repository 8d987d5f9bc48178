"""``graphprep merge``: the store of what workers decoded."""

from __future__ import annotations

from typing import Annotated

import typer

from graphprep.cli.convert import summary_text
from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.printed.summaries import print_result, summary_json
from graphprep.model.option import Option
from graphprep.model.run_options import RunOptions


@with_groups()
def merge(
    *,
    out: Annotated[
        str, typer.Argument(metavar="OUT", help="Folder or URL of the store that the workers named.", show_default=False)
    ],
    resume: Annotated[
        bool,
        Option("Store", "Go on where an interrupted merge stopped."),
    ] = False,
    run_options: RunOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Make the store of what the workers of convert decoded.

    Inputs and options are those that the workers were given.

    Examples:
      graphprep convert edges.csv store --worker-index 0 --worker-count 2
      graphprep convert edges.csv store --worker-index 1 --worker-count 2
      graphprep merge store

    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.merge(out, run_options, reporter, resume=resume)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)
