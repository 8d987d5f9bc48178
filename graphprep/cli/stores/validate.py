"""``graphprep validate``: whether a store is sound, or an input decodes."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.convert import FailIfSkipped
from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_DEVICES, AsJson, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, print_told, types_lines, wrapped_text
from graphprep.cli.tables import TableFlags
from graphprep.model.option import Option
from graphprep.model.options.convert import MAX_FAULTS, FaultOptions, InputOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.texts import display_url, hide_secrets, json_text, shown

if TYPE_CHECKING:
    from graphprep.against.report import AgainstReport
    from graphprep.convert.pipeline import InputReport
    from graphprep.validate.check import StoreReport

EXIT_FAULTS = 1


@with_groups(later=(InputOptions, FaultOptions, RunOptions, TableFlags, DecoderOptions, ReportFlags), without=OF_DEVICES)
def validate(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="A store, a chunked graph, or raw files; - is stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    given: InputOptions,
    faults: FaultOptions,
    fail_if_skipped: FailIfSkipped = False,
    table_flags: TableFlags,
    decoding: DecoderOptions,
    run_options: RunOptions,
    report_flags: ReportFlags,
    against: Annotated[
        list[str] | None,
        Option(
            "Comparison",
            "Compare a store with the input that it was made of, or with what its provenance.json says was read: nodes, edges "
            "and columns. Read with the options recorded there, and those given. Further PATHs are of the input.",
            metavar="INPUT",
            is_first=True,
        ),
    ] = None,
    max_faults: Annotated[int, MAX_FAULTS] = 20,
    as_json: AsJson = False,
) -> None:
    """Check a store against its schema and its invariants.

    A raw input is decoded, indexed and resolved without writing anything. A store is compared, with --against, with what an
    input says. Samples are held against their manifest, an export against its record.

    Exits with 1 where something is wrong; every fault is told with its place.

    Examples:
      graphprep validate karate-store
      graphprep validate karate-store --against sample_data/karate/karate.csv

    """
    from graphprep import api
    from graphprep.against.report import AgainstReport
    from graphprep.cli.convert import check_inputs, reading_of, refuse_skipped
    from graphprep.cli.progress import reporting
    from graphprep.validate.check import StoreReport

    urls = check_inputs(inputs, table_flags, "PATH is needed: what to check", given.graph)
    compared = _compared(urls, against)
    options = reading_of(table_flags, decoding, given, faults, run=run_options)
    with reporting(report_flags) as reporter:
        report = api.validate(urls[:1] if against else urls, options, reporter, max_faults=max_faults, against=compared)
    if not as_json:
        _print_faults(report, report_flags)
    to_text = partial(report_text, path=", ".join(map(display_url, urls)) or "tables")
    print_result(report, report_json, to_text, report_flags, as_json=as_json)
    if isinstance(report, AgainstReport | StoreReport):
        if not (report.sound if isinstance(report, StoreReport) else report.equal):
            raise typer.Exit(EXIT_FAULTS)
    elif fail_if_skipped:
        refuse_skipped(report.num_skipped)


def _compared(urls: list[str], against: list[str] | None) -> list[str] | None:
    """Return what the store, the first of ``urls``, is compared with: the values of --against, and the other PATHs.

    Raises UsageError where tables are named in place of PATH, or where both are several.
    """
    from graphprep.model.errors import UsageError

    if not against:
        return None
    if not urls:
        raise UsageError(
            "--against goes with a store, and --nodes and --edges name no store",
            fix="name the store, and the tables in a graph config: --against graph.yaml",
        )
    if len(against) > 1 and len(urls) > 1:
        raise UsageError(
            f"{urls[1]!r} stands beside {len(against)} values of --against",
            fix="name the store first, then every input with --against, or all of them behind one",
        )
    return [*against, *urls[1:]]


def report_json(report: StoreReport | InputReport | AgainstReport) -> str:
    """Write the report for machines; columns as metadata.json states them."""
    import dataclasses

    from graphprep.against.report import AgainstReport
    from graphprep.validate.check import StoreReport

    if isinstance(report, AgainstReport):
        own = {field.name: getattr(report, field.name) for field in dataclasses.fields(report) if field.name != "store"}
        own |= {"inputs": hide_secrets(list(report.inputs)), "equal": report.equal}
        own["differences"] = [dataclasses.asdict(one) for one in report.differences]
        return json_text({**json.loads(report_json(report.store)), "against": own})
    value = {field.name: getattr(report, field.name) for field in dataclasses.fields(report)}
    if isinstance(report, StoreReport):
        value["store"] = hide_secrets(report.store)
        value["faults"] = [dataclasses.asdict(fault) for fault in report.faults]
    else:
        value["notes"] = hide_secrets(report.notes)
        for key in ("node_columns", "edge_columns"):
            value[key] = {name: [column.schema.to_json() for column in columns] for name, columns in value[key].items()}
    return json_text(value)


def _print_faults(report: StoreReport | InputReport | AgainstReport, flags: ReportFlags) -> None:
    """Print what is wrong on stderr, as errors are."""
    from graphprep.against.report import AgainstReport
    from graphprep.cli.printed.words import count
    from graphprep.validate.check import StoreReport

    if isinstance(report, AgainstReport):
        _print_faults(report.store, flags)
        found, total, noun = report.differences, report.num_differences, "difference"
    elif isinstance(report, StoreReport):
        found, total, noun = report.faults, report.num_faults, "fault"
    else:
        return
    for one in found:
        print_told(str(one), flags, event="error")
    if hidden := total - len(found):
        print_told(f"{count(hidden, f'more {noun}')}; --max-faults {total} prints them all", flags, event="error")


def report_text(report: StoreReport | InputReport | AgainstReport, *, path: str, every: bool = False) -> str:
    """Write the outcome for people; ``every``: with all types, however many. ``path`` names an input."""
    from graphprep.against.report import AgainstReport
    from graphprep.cli.printed.words import duration
    from graphprep.validate.check import StoreReport

    if isinstance(report, AgainstReport):
        place, took = display_url(report.store.store), duration(report.elapsed_s)
        outcome = f"{place}: {shown(report.words())}; compared in {took}"
        return f"{report_text(report.store, path=path, every=every)}\n{outcome}"
    return _store_text(report, every=every) if isinstance(report, StoreReport) else _input_text(path, report, every=every)


def _store_text(report: StoreReport, *, every: bool) -> str:
    from graphprep.cli.printed.words import count, duration, size
    from graphprep.validate.made import MadeReport

    outcome = "sound" if report.sound else count(report.num_faults, "fault")
    checked = f"{count(report.num_arrays, 'array')} in {count(report.num_parts, 'partition')}"
    if isinstance(report, MadeReport):
        checked, outcome = report.what, f"{outcome}{report.far if report.sound else ''}"
    return "\n".join(
        [
            f"{display_url(report.store)}: {outcome}",
            *types_lines(report.num_nodes, report.num_edges, every=every),
            f"  checked {checked}, {size(report.num_bytes)}, in {duration(report.elapsed_s)}",
        ]
    )


def _input_text(path: str, report: InputReport, *, every: bool) -> str:
    from graphprep.cli.printed.words import count

    lines = [f"{path}: sound, {report.format}, {count(report.num_records, 'record')}"]
    lines += types_lines(report.num_nodes, report.num_edges, every=every)
    if report.num_skipped:
        lines.append(f"  {count(report.num_skipped, 'faulty record')} skipped")
    return wrapped_text(lines + note_lines(report.notes, every=every))
