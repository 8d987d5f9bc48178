"""``graphprep export``: a store as the files of a trainer."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.printed.summaries import kind_lines, note_lines, print_result, summary_json, work_line, wrapped_text
from graphprep.model.export import ExportOptions
from graphprep.model.option import Option, read_pairs
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.texts import display_url, json_text, printable

if TYPE_CHECKING:
    from graphprep.model.export import ExportSummary, TargetInfo, TargetOption

_of_target = partial(Option, "Target")


@dataclass(frozen=True, eq=False, repr=False)
class TargetFlags:
    """What the files are for, and what is special about them."""

    to: Annotated[str | None, _of_target("Trainer or format; --list shows all.", metavar="TARGET")] = None
    target_option: Annotated[
        list[str],
        _of_target("Option of the target, as --list names them; may be repeated.", flags="--option", metavar="KEY=VALUE"),
    ] = field(default_factory=list)
    cache_ratio: Annotated[
        float | None, _of_target("glt: share of a type's nodes whose features every partition caches.", metavar="R")
    ] = None
    edge_id_col: Annotated[
        list[str],
        _of_target(
            "glt, distdgl: column that is the edges' IDs, where these are to be your own; may be repeated.",
            metavar="[SRC:REL:DST:]COL",
        ),
    ] = field(default_factory=list)
    skip_node_sampler: Annotated[bool, _of_target("deepgnn: write no alias tables of nodes.")] = False
    skip_edge_sampler: Annotated[bool, _of_target("deepgnn: write no alias tables of edges.")] = False
    watermark: Annotated[int | None, _of_target("deepgnn: write the times of edges, with this watermark.", metavar="N")] = None

    def to_mapping(self) -> dict[str, Any]:
        """Return the exporter's options that were given.

        Raises UsageError where one is no ``KEY=VALUE``.
        """
        given = {key: value for key in ("cache_ratio", "watermark") if (value := getattr(self, key)) is not None}
        given |= {"edge_id_col": tuple(self.edge_id_col)} if self.edge_id_col else {}
        given |= {key: True for key in ("skip_node_sampler", "skip_edge_sampler") if getattr(self, key)}
        return {**given, **read_pairs("--option", self.target_option)}


@with_groups()
def export(
    store: Annotated[str | None, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)] = None,
    out: Annotated[str | None, typer.Argument(metavar="OUT", help="Folder or URL of the files.", show_default=False)] = None,
    *,
    list_targets: Annotated[
        bool,
        _of_target(
            "Show all targets with their options, or that of --to; with STORE also what of it each would leave out.",
            flags="--list",
        ),
    ] = False,
    target_flags: TargetFlags,
    given: ExportOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Write a store as the files that a trainer loads.

    What the store lacks for it, another layout or number of partitions, is made on the way, under the memory limit. Nothing is
    left out unasked.

    Example: graphprep export karate-store karate-glt --to glt
    """
    from graphprep import api
    from graphprep.cli.progress import reporting
    from graphprep.model.errors import UsageError

    if list_targets:
        if out is not None:
            raise UsageError("--list shows targets, and writes nothing", place=out, fix="leave OUT or --list out")
        if dataclasses.replace(given, link=False, overwrite=False, run=RunOptions()) != ExportOptions():
            raise UsageError("--list tells of a store as it is", fix="leave --partitions and the like out")
        targets = api.export_targets(store, given.run.storage_options, target_flags.to, target_flags.to_mapping())
        print_result(targets, targets_json, lambda one, every: targets_text(one), report_flags, as_json=as_json)
        return
    if store is None or out is None:
        raise UsageError("STORE and OUT are both needed: what to export, and the folder or URL of the files", fix="name both")
    if target_flags.to is None:
        raise UsageError("--to is needed: what the files are for", fix="name a target; graphprep export --list shows all")
    if "," in target_flags.to:
        raise UsageError(f"--to {target_flags.to}: one target at a time", fix="export once for each")
    options = dataclasses.replace(given, target_options=target_flags.to_mapping())
    with reporting(report_flags) as reporter:
        summary = api.export(store, out, target_flags.to, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: ExportSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all notes, however many say the same."""
    from graphprep.cli.printed.words import count

    files = f"{summary.sizes_words()} for {summary.target}, {count(summary.num_files, 'file')}"
    links = f", {summary.num_linked} of them links to the store's" if summary.num_linked else ""
    lines = [f"{display_url(summary.out)}: {files}{links}", f"  loads in {summary.loads_in}"]
    lines.append(work_line(summary, input_rate=False))
    lines += kind_lines(summary.dropped, "left out", every=every)
    return wrapped_text(lines + note_lines(summary.notes, every=every))


def targets_json(targets: Sequence[TargetInfo]) -> str:
    """Write the targets for machines."""
    return json_text([dataclasses.asdict(target) for target in targets])


def targets_text(targets: Sequence[TargetInfo]) -> str:
    """Write the targets for people, in 80 columns."""
    lines = []
    for target in targets:
        told = [("loads in", target.loads_in), ("carries", target.carries), ("needs", target.needs)]
        told += [("makes", ", ".join(target.makes)), *(("leaves out", text) for text in target.unsupported)]
        told += [("cannot", target.refusal)]
        lines += [target.name, *(_wrapped(f"  {label:10} ", text) for label, text in told if text)]
        labels = ("options" if one is target.options[0] else "" for one in target.options)
        lines += [f"  {label:10} {_option_text(one)}" for label, one in zip(labels, target.options, strict=True)]
    return "\n".join(lines)


def _option_text(option: TargetOption) -> str:
    """Return an option as ``--help`` has it, what it means below."""
    values = f"={option.values}" if option.values else ""
    default = f"  [default: {option.default}]" if option.default else ""
    meaning = f"\n{_wrapped(' ' * 15, option.meaning)}" if option.meaning else ""
    return option.name + values + default + meaning


def _wrapped(label: str, text: str) -> str:
    """Return a text behind its label, in lines of 80 columns where its words are not longer."""
    import textwrap

    indent = " " * len(label)
    wrapper = textwrap.TextWrapper(
        80, initial_indent=label, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.fill(printable(text))
