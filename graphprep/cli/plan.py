"""``graphprep plan``: what a conversion will be like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from graphprep.cli.convert import DeepGnnFlags, EdgesFlags, EngineFlags, ErrorFlags, InputFlags, StoreFlags
from graphprep.cli.export import LastStageFlags
from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags, StorageFlags
from graphprep.cli.tables import TableFlags


@dataclass(frozen=True, eq=False, repr=False)
class PlannedStoreFlags(StoreFlags):
    """What the store would look like; ``--overwrite`` says nothing of that, but a command of ``convert`` may have it."""

    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Taken as by convert: nothing is written.", rich_help_panel="Store", hidden=True)
    ] = False


@with_groups(
    later=(
        *(InputFlags, PlannedStoreFlags, ErrorFlags, TableFlags, EdgesFlags, DeepGnnFlags),
        *(LastStageFlags, EngineFlags, StorageFlags, ReportFlags),
    )
)
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
    input_flags: InputFlags,
    store_flags: PlannedStoreFlags,
    error_flags: ErrorFlags,
    table_flags: TableFlags,
    edges_flags: EdgesFlags,
    deepgnn_flags: DeepGnnFlags,
    last_flags: LastStageFlags,
    run_flags: EngineFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say what a conversion will be like: sizes, memory, time.

    From samples, headers and footers; nothing is written. Takes the options of convert.

    Example: graphprep plan sample_data/karate/karate.csv --partitions 2
    """
    from graphprep import api
    from graphprep.cli.convert import check_inputs, given_decoder_options, make_input_options, targets_of, with_store_options
    from graphprep.cli.printed.plan import report_json, report_text
    from graphprep.cli.printed.summaries import print_result
    from graphprep.cli.progress import reporting

    decoder_flags = given_decoder_options(input_flags, edges_flags, deepgnn_flags)
    urls = check_inputs(inputs, table_flags, "INPUT is needed: what is to be converted")
    run = run_flags.to_options(storage_flags)
    options = make_input_options(input_flags, table_flags, decoder_flags, run, error_flags)
    targets = targets_of(last_flags.folders("store"), last_flags, False, run, store_flags.edge_id_col)
    with reporting(report_flags) as reporter:
        report = api.plan(urls, with_store_options(options, store_flags), reporter, export=targets)
    print_result(report, report_json, report_text, report_flags, as_json=as_json)
