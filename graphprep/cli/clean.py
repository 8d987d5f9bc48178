"""``graphprep clean``: what dead runs left."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_MEMORY, AsJson, Quiet
from graphprep.model.option import Option
from graphprep.model.run_options import RunOptions

if TYPE_CHECKING:
    from graphprep.model.options.clean import CleanReport

_of_removal = partial(Option, "Removal")


@with_groups(without=OF_MEMORY, has_config=False)
def clean(
    *,
    places: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="An output that a run was to write, or a folder of outputs or temporary files, here or at a URL.",
            show_default=False,
        ),
    ],
    run_options: RunOptions,
    dry_run: Annotated[bool, _of_removal("Tell what would be removed.")] = False,
    all_dead: Annotated[
        bool,
        _of_removal(
            "Take runs of which nobody here can tell, such as those of other machines, for dead: be sure of it.",
        ),
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Remove what runs that failed or were killed left.

    Hidden folders, claims, temporary files and journals of --resume; on object stores the objects and uploads of an output that
    was never finished. Whole stores, runs that are alive and what graphprep did not write are left alone.

    Example: graphprep clean karate-store --dry-run
    """
    from graphprep import api
    from graphprep.cli.printed.summaries import wrapped_text

    report = api.clean(*places, dry_run=dry_run, all_dead=all_dead, storage_options=run_options.storage_options)
    for failure in report.failures:
        typer.echo(f"error: {failure}", err=True)
    if as_json or not quiet:
        typer.echo(report_json(report) if as_json else wrapped_text(report.lines()))
    if report.failures:
        raise typer.Exit(report.failures[0].exit_code)


def report_json(report: CleanReport) -> str:
    """Write the report for machines."""
    import dataclasses

    from graphprep.model.shown.texts import json_text

    told = dataclasses.asdict(dataclasses.replace(report, failures=()))
    failures = [{"place": one.place, "message": one.message, "fix": one.fix} for one in report.failures]
    return json_text(told | {"failures": failures, "num_bytes": report.num_bytes})
