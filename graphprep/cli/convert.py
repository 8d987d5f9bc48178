"""``graphprep convert``: raw inputs to a store."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.last_stage import LastStageFlags
from graphprep.cli.options import AsJson, DryRun, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.cli.printed.words import count
from graphprep.cli.tables import TableFlags, make_graph
from graphprep.model.option import Option, flag_of
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.errors import GraphprepError
    from graphprep.model.export import ExportOptions, ExportSummary
    from graphprep.model.graph_config import GraphConfig
    from graphprep.model.options.convert import ConvertSummary
    from graphprep.model.protocols import Reporter

_LISTS = ("columns", "drop_columns", "null")  # options of decoders that are lists without tables, too
_NAMES = ("missing_node_type", "graph_name", "node_data", "edge_data", "labels", "splits", "seeds", "categories")
FailIfSkipped = Annotated[bool, Option("Faulty input", "Exit with 1 where records were skipped; OUT is written.")]


@with_groups(later=(ConvertOptions, RunOptions, TableFlags, DecoderOptions, LastStageFlags, ReportFlags))
def convert(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...",
            help="Files, folders, globs or URLs; - is stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the store.", show_default=False)],
    given: ConvertOptions,
    fail_if_skipped: FailIfSkipped = False,
    table_flags: TableFlags,
    decoding: DecoderOptions,
    last_flags: LastStageFlags,
    report_flags: ReportFlags,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Convert raw graph data into a store of CSC or CSR arrays.

    Examples:
      graphprep convert sample_data/karate/karate.csv karate-store
      graphprep convert --nodes user=user.csv --edges user:buys:item=buys.csv shop
      zcat edges.txt.gz | graphprep convert - store --weight-col 2 --export pyg

    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    urls = check_inputs(
        inputs, table_flags, "INPUT and OUT are both needed: what to convert, and the folder or URL of the store", given.graph
    )
    options = with_tables(given, table_flags, decoding)
    exports = last_flags.folders(out)
    refuse_exports(options, exports)
    targets = targets_of(exports, last_flags, options)
    if dry_run:
        from graphprep.cli.printed.plan import report_json, report_text

        with reporting(report_flags) as reporter:
            planned = api.plan(urls, options, reporter, out=out, export=targets)
        print_result(planned, report_json, report_text, report_flags, as_json=as_json)
        return
    exported: list[ExportSummary] = []
    failure: GraphprepError | None = None
    if not exports:
        with reporting(report_flags) as reporter:
            summary = api.convert(urls, out, options, reporter)
    else:
        export_options = last_flags.to_options(options)
        with reporting(report_flags) as reporter, api.claim_exports(out, exports, export_options) as release:
            summary = api.convert(urls, out, options, reporter, targets=targets)
            exported, failure = run_exports(out, exports, targets, reporter, release)
    to_text = share_text if options.worker_index is not None else summary_text
    print_result(summary, lambda one: summary_json(one, exported), to_text, report_flags, as_json=as_json)
    for one in exported if not as_json else []:
        from graphprep.cli import export

        print_result(one, summary_json, export.summary_text, report_flags, as_json=False)
    if failure is not None:
        raise failure
    if fail_if_skipped:
        refuse_skipped(summary.num_skipped)


def refuse_exports(options: ConvertOptions, exports: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError where a worker is to export, which has no store."""
    from graphprep.model.errors import UsageError

    if exports and options.worker_index is not None:
        raise UsageError("a worker makes no store that could be exported", fix="drop --export; graphprep export follows merge")


def share_text(summary: ConvertSummary, *, every: bool = False) -> str:
    """Write what a worker did, for people."""
    own, *others = summary.notes
    return "\n".join([f"{display_url(summary.out)}: {own}", f"  {summary.work_words()}", *(f"  {one}" for one in others)])


def refuse_skipped(num_skipped: int) -> None:
    """Raise DataError where records were skipped."""
    from graphprep.model.errors import DataError

    if num_skipped:
        raise DataError(
            f"{count(num_skipped, 'faulty record')} skipped, and --fail-if-skipped is given",
            fix="repair the input; --bad-records FILE lists what was skipped",
        )


def targets_of(
    exports: Sequence[tuple[str, str]], flags: LastStageFlags, converted: ConvertOptions
) -> dict[str, ExportOptions]:
    """Return the targets with their options; the columns of edge IDs are for those that take them."""
    if not exports:
        return {}  # and nothing of exporters is loaded
    from graphprep.exporters.registry import find_exporter
    from graphprep.model.options.checks import option_types

    options, ids = flags.to_options(converted), converted.edge_id_col
    own = dataclasses.replace(options, target_options={"edge_id_col": ids}) if ids else options
    return {target: own if "edge_id_col" in option_types(find_exporter(target)) else options for target, _ in exports}


def run_exports(
    store: str,
    exports: Sequence[tuple[str, str]],
    targets: Mapping[str, ExportOptions],
    reporter: Reporter,
    release: Callable[[str], None],
) -> tuple[list[ExportSummary], GraphprepError | None]:
    """Export a finished store to one target after another; stop at one that fails, and return its error with what is done.

    ``release`` gives up the claim on a place, which the export claims itself.
    """
    from graphprep import api
    from graphprep.model.errors import GraphprepError

    done: list[ExportSummary] = []
    for target, folder in exports:
        release(folder)
        try:
            done.append(api.export(store, folder, target, targets[target], reporter))
        except GraphprepError as error:
            drop = " --drop-unsupported" if "--drop-unsupported" in (error.fix or "") else ""
            again = f"graphprep export {shlex.quote(store)} {shlex.quote(folder)} --to {target}{drop}"
            error.fix = f"{error.fix or 'see to that'}; the store is whole, so go on with {again}"
            return done, error
    return done, None


def check_inputs(inputs: list[str] | None, tables: TableFlags, missing: str, graph: GraphConfig | None = None) -> list[str]:
    """Return the inputs as given: none where tables are named, or a file of options has a ``graph`` of them.

    Raises UsageError, with ``missing`` as the message where there is nothing to read.
    """
    from graphprep.model.errors import UsageError

    if tables.named and inputs:
        raise UsageError(
            f"--nodes and --edges name the whole input, but there is {inputs[0]!r} too",
            fix="name that file with --nodes or --edges, or leave these out",
        )
    if not tables.named and not inputs and graph is None:
        raise UsageError(missing, fix="name the input, or its tables with --nodes and --edges")
    return list(inputs or ())


def reading_of(tables: TableFlags, decoding: DecoderOptions, *groups: object, run: RunOptions) -> ConvertOptions:
    """Put the options that say how to read an input into the library's form."""
    given = {name: value for group in groups for name, value in vars(group).items()}
    return with_tables(ConvertOptions(**given, run=run), tables, decoding)


def with_tables(options: ConvertOptions, tables: TableFlags, decoding: DecoderOptions) -> ConvertOptions:
    """Add the decoder's options, and the tables that are named."""
    from graphprep.model.options.checks import checked

    given = decoding.given()
    names = {name: getattr(options, name) for name in _NAMES} | {"num_nodes": list(options.num_nodes)}
    check_words(given | dataclasses.asdict(tables) | names)
    if not tables.named:
        own = {name: _only(name, value) for name, value in given.items()}
        return checked(dataclasses.replace(options, decoder_options={**options.decoder_options, **own}))
    graph = make_graph(tables, given, options.num_nodes)
    return checked(dataclasses.replace(options, decoder_options=given, graph=graph, num_nodes={}))


def _only(name: str, value: Any) -> Any:
    """Return an option's only value where several are for tables.

    Raises UsageError.
    """
    from graphprep.model.errors import UsageError

    if name in _LISTS or not isinstance(value, list):
        return value
    if len(value) > 1:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{flag} is given {len(value)} times", fix="give it once; for tables, name them with --nodes and --edges"
        )
    return value[0]


def check_words(values: Mapping[str, Any]) -> None:
    """Refuse words that are no UTF-8: names end up in metadata.json. Paths may be any bytes.

    Raises UsageError.
    """
    from graphprep.model.errors import UsageError

    for name, value in values.items():
        for text in value if isinstance(value, list | tuple) else [value]:
            if isinstance(text, str) and not name.endswith("_file") and any("\ud800" <= char <= "\udfff" for char in text):
                flag = flag_of(name, ConvertOptions, DecoderOptions)
                raise UsageError(f"{flag} {text!r} is not UTF-8", fix="use a UTF-8 locale, such as LANG=C.UTF-8")


def summary_text(summary: ConvertSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    lines = [f"{display_url(summary.out)}: {summary.sizes_words()}"]
    lines += types_lines(summary.num_nodes, summary.num_edges, every=every)
    for number, noun, done in (
        (summary.num_skipped, "faulty record", "skipped"),
        (summary.num_dropped_edges, "edge", "dropped, for want of a node"),
        (summary.num_created_nodes, "node", "created"),
    ):
        if number:
            lines.append(f"  {count(number, noun)} {done}")
    lines.append(work_line(summary))
    return wrapped_text(lines + note_lines(summary.notes, every=every))
