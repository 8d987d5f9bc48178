"""``graphprep info``: what is at a path."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_MEMORY, AsJson, ReportFlags
from graphprep.cli.printed.summaries import more_line, note_lines, print_result
from graphprep.cli.tables import TableFlags, flag_words
from graphprep.model.options.convert import HEAD, InputOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import largest_types
from graphprep.model.shown.texts import (
    display_url,
    hide_secrets,
    json_text,
    lines_text,
    printable,
    shown,
    strict_numbers,
    without_secrets,
)

if TYPE_CHECKING:
    from graphprep.info.guess import GuessedGraph
    from graphprep.info.inspect import ColumnInfo, GraphInfo, Head, TypeInfo

_NAMED_ROLES = ("weight", "time", "created_at", "removed_at", "created")  # columns of these names need no mention of them
_MAX_PARTS = 8  # partitions whose counts stand in the table
_HEAD_INDENT = "    "
_LEAST_CELL = 24  # characters: IDs and numbers are never cut


@with_groups(later=(InputOptions, TableFlags, DecoderOptions, ReportFlags, RunOptions), without=OF_MEMORY)
def info(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH...",
            help="A store, a folder of tables, or raw files; - is stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    given: InputOptions,
    table_flags: TableFlags,
    decoding: DecoderOptions,
    run_options: RunOptions,
    report_flags: ReportFlags,
    head: Annotated[int, HEAD] = 0,
    as_json: AsJson = False,
) -> None:
    """Describe a store, raw files, samples or an export.

    Of raw files only the beginning is read; the flags that convert them are printed. For a folder of tables a graph config is
    printed, guessed from their names and values: graphprep info tables/ > graph.yaml

    Example: graphprep info sample_data/karate/karate.csv --head 3
    """
    from graphprep import api
    from graphprep.cli.convert import check_inputs, reading_of
    from graphprep.cli.progress import reporting
    from graphprep.info.inspect import GraphInfo

    urls = check_inputs(inputs, table_flags, "PATH is needed: what to describe", given.graph)
    options = reading_of(table_flags, decoding, given, run=run_options)
    with reporting(report_flags) as reporter:
        found = api.info(urls, head=head, options=options, reporter=reporter)
    if table_flags.named:
        found = with_flags(found, flag_words(table_flags, decoding, given))
    as_data = as_json or not isinstance(found, GraphInfo)  # a graph config is made for a file
    to_text = partial(found_text, inputs=urls, as_json=as_json)
    print_result(found, to_text, to_text, report_flags, as_json=as_data)


def with_flags(found: GraphInfo | GuessedGraph, words: Sequence[str]) -> GraphInfo | GuessedGraph:
    """Name the flags that were given as those that convert the tables."""
    import dataclasses

    from graphprep.info.inspect import GraphInfo

    return dataclasses.replace(found, flags=tuple(words)) if isinstance(found, GraphInfo) else found


def found_text(found: GraphInfo | GuessedGraph, inputs: Sequence[str], *, as_json: bool, every: bool = False) -> str:
    """Write what was found; a guessed graph as a config that ``convert`` takes."""
    from graphprep.info.inspect import GraphInfo

    if isinstance(found, GraphInfo):
        return info_json(found) if as_json else info_text(found, inputs, every=every)
    if as_json:
        from graphprep.decoders.configs.graph_file import graph_to_json

        return json_text(hide_secrets({**graph_to_json(found.config), "comments": found.comments}))
    return without_secrets(found.yaml().removesuffix("\n"))


def info_json(found: GraphInfo) -> str:
    """Write what was found for machines; numbers that JSON lacks (NaN, inf) become texts."""
    import dataclasses

    told = {name: hide_secrets(getattr(found, name)) for name in ("path", "flags", "notes")}
    return json_text(strict_numbers(dataclasses.asdict(found) | told))


def info_text(found: GraphInfo, inputs: Sequence[str] = (), *, every: bool = False) -> str:
    """Write what was found for people, of many types the largest unless ``every``; ``inputs`` are the paths as given."""
    import shlex

    from graphprep.cli.printed.words import count, size, table

    bytes_text = "unknown size" if found.num_bytes is None else size(found.num_bytes)
    lines = [f"{display_url(found.path)}: {found.format}, {count(found.num_files, 'file')}, {bytes_text}"]
    facts = [
        ("graph", found.graph_name),
        ("partitions", None if found.num_parts is None else f"{found.num_parts} by {found.partition_by}"),
        ("layouts", ", ".join(found.layouts) or None),
    ]
    lines += table([(name, value) for name, value in facts if value is not None])
    for title, types in (("nodes", found.node_types), ("edges", found.edge_types)):
        names = {one.name for one in types} if every else largest_types({one.name: one.count or one.seen for one in types})
        for one in types:
            lines += _type_lines(title, one) if one.name in names else []
        lines += [more_line(title, len(types) - len(names)).strip()] if len(names) < len(types) else []
    lines += note_lines(found.notes, every=every or found.kind == "samples")
    if found.kind in ("chunked", "raw"):
        words = inputs or ([] if found.format == "tables" else [found.path])
        words = [*map(without_secrets, words), "OUT", *map(without_secrets, found.flags)]
        lines.append(f"convert with: graphprep convert {shlex.join(words)}")
    return lines_text(lines)


def _type_lines(title: str, one: TypeInfo) -> list[str]:
    from graphprep.cli.printed.words import table

    facts = []
    if one.count is not None:
        facts.append(f"{one.count:,}")
    elif one.seen is not None:
        facts.append(f"{one.seen:,} in the first block")
    if len(one.per_part) > 1:
        shown = " + ".join(f"{number:,}" for number in one.per_part[:_MAX_PARTS])
        facts.append(f"by partition {shown}" + (" + ..." if len(one.per_part) > _MAX_PARTS else ""))
    facts += [f"raw IDs {one.raw_ids}"] if one.raw_ids is not None else []
    facts += [f"ordered by {one.node_order}"] if one.node_order is not None else []
    if one.index_dtype is not None:
        facts.append(f"neighbours {one.index_dtype} ordered by {one.neighbor_order}")
        facts.append(f"edge IDs {one.edge_id_dtype or 'not stored'}")
    lines = [f"{title} {one.name}: {', '.join(facts)}".rstrip(": ")]
    lines += table([_column_row(column) for column in one.columns])
    return lines + (_head_lines(one.head) if one.head is not None else [])


def _column_row(column: ColumnInfo) -> tuple[str, ...]:
    from graphprep.cli.printed.words import count

    shape = f"[{', '.join(map(str, column.item_shape))}]" if column.item_shape else ""
    is_own = column.role not in _NAMED_ROLES or column.role != column.name
    notes = [column.role] if column.role is not None and is_own else []
    notes += [count(column.num_categories, "category", "categories")] if column.num_categories is not None else []
    notes += [f"in {column.unit}"] if column.unit is not None else []
    notes += ["optional"] if column.optional else []
    return (shown(column.name), column.kind or "numbers", f"{column.dtype}{shape}", ", ".join(notes))


def _head_lines(head: Head) -> list[str]:
    import shutil

    from graphprep.cli.printed.words import cut_cells, table

    rows = [tuple(map(printable, head.names)), *(tuple(_cell(value) for value in row) for row in head.rows)]
    width = shutil.get_terminal_size().columns - len(_HEAD_INDENT)
    return table(cut_cells(rows, width, least=_LEAST_CELL), indent=_HEAD_INDENT)


def _cell(value: Any) -> str:
    """Write a value in one line; a float in the shortest text that reads back as the same."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return "[" + ", ".join(_cell(item) for item in value) + "]"
    return repr(value).removesuffix(".0") if isinstance(value, float) else printable(str(value))
