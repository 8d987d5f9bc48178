"""The pages of a command's help: a first screen, all of it, and what is of one format, in plain text."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer

from graphprep.model.option import Option

LATER = "later"  # behind an option in its annotation: it is not on the first screen
_PAGE = "graphprep.help"  # where a context says which page is asked for
_ALL = "*"
_LATE = ("Tables", "Columns from", "Columns and", "DeepGNN", "Export", "Resources", "Output of", "Help")  # how titles begin
_OF_STORES = ("weight_dtype",)  # decoders are told it, but it holds for every format


def _show_all(context: typer.Context, asked: bool) -> None:
    if asked:
        _show(context, _ALL)


def _show_format(context: typer.Context, name: str | None) -> None:
    if name is not None:
        _show(context, name)


def _show(context: typer.Context, page: str) -> None:
    context.meta[_PAGE] = page
    typer.echo(context.get_help())
    raise typer.Exit


PAGE_OPTIONS = (
    inspect.Parameter(
        "help_all",
        inspect.Parameter.KEYWORD_ONLY,
        default=False,
        annotation=Annotated[
            bool,
            typer.Option(
                "--help-all", help="Show all options and exit.", callback=_show_all, is_eager=True, show_default=False
            ),
        ],
    ),
    inspect.Parameter(
        "help_for",
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[
            str | None,
            typer.Option(
                "--help-for",
                help="Show the options of a format, or of tables (--nodes, --edges), and exit.",
                callback=_show_format,
                is_eager=True,
                metavar="FORMAT",
            ),
        ],
    ),
)
_ABOUT_HELP = ("help", *(option.name for option in PAGE_OPTIONS))


def format_of_page(context: Any) -> str:
    """Return the format whose options are asked for; "" for another page."""
    page = context.meta.get(_PAGE, "")
    return "" if page == _ALL else page


def write_format_text(context: Any, formatter: Any) -> None:
    """Say what a format's page has."""
    formatter.write_paragraph()
    with formatter.indentation():
        name = format_of_page(context)
        formatter.write_text(f"What {name} takes beside the options of every format, which --help-all shows.")


def write_options(context: Any, formatter: Any, params: Iterable[Any], marks: Mapping[str, tuple[Any, ...]]) -> None:
    """Write the arguments and options of the page that is asked for.

    ``marks`` are the annotations of options by their names. All options are written by group, groups in the order of their
    first; those of the first screen together, in short, where there are others.
    """
    name, page = format_of_page(context), context.meta.get(_PAGE, "")
    is_short = not page and any(LATER in found for found in marks.values())
    sections: dict[str, list[tuple[str, str]]] = {}
    if name:
        params = _of_format(name, params, marks)
        sections[f"Options of {name}"] = []
    for param in params:
        if param.param_type_name == "argument":
            sections.setdefault("Arguments", []).append((str(param.metavar), getattr(param, "help", "") or ""))
        elif (record := param.get_help_record(context)) is not None and not (is_short and LATER in marks.get(param.name, ())):
            group = "Help" if param.name in _ABOUT_HELP else getattr(param, "rich_help_panel", None)
            title = f"Options of {name}" if name else "Options" if is_short else group or "Other options"
            sections.setdefault(title, []).append(_shortened(record) if is_short else record)
    for title, records in sorted(sections.items(), key=lambda one: _rank(one[0])):
        with formatter.section(title):
            formatter.write_dl(records or [("none", "")], col_max=28)


def _rank(title: str) -> int:
    """Return where a section stands: behind those of the command what is of some inputs alone, and what all commands have."""
    return next((rank for rank, begin in enumerate(_LATE, 1) if title.startswith(begin)), 0)


def _shortened(record: tuple[str, str]) -> tuple[str, str]:
    """Leave out the paragraphs of a help behind its first, save the default."""
    first, *rest = record[1].split("  ")
    return record[0], "  ".join([first, *(text for text in rest if text.lstrip().startswith("[default"))])


def _of_format(name: str, params: Iterable[Any], marks: Mapping[str, tuple[Any, ...]]) -> list[Any]:
    """Return the options that a format takes, and not every one.

    Raises UsageError for a format that is not there.
    """
    fields: Iterable[str] = ()
    if name != "tables":
        from graphprep.decoders.registry import find_decoder
        from graphprep.model.options.checks import option_types

        fields = option_types(find_decoder(name))
    return [
        param
        for param in params
        if (param.name in fields and param.name not in _OF_STORES)
        or any(isinstance(one, Option) and name in one.formats for one in marks.get(param.name, ()))
    ]
