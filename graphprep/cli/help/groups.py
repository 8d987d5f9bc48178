"""Option groups: dataclasses whose fields become the options of a command, which shows them in its help."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from graphprep.cli import config
from graphprep.cli.help.pages import LATER, PAGE_OPTIONS, format_of_page, write_format_text, write_options
from graphprep.cli.printed.colors import painted
from graphprep.model.option import Declared, Option, declared, from_json

_TEXTS = (str, str | None)
_TEXT_LISTS = (list[str], list[str] | None)
_NUMBERS = (int, int | None)
_NUMBER = re.compile("[0-9]{1,18}")


def with_groups(
    *, later: tuple[type, ...] = (), without: Collection[str] = (), hidden: Collection[str] = (), has_config: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Spread every parameter that is a dataclass of options into its fields, and those of dataclasses in these.

    ``def info(path: Path, *, run: RunOptions)`` thus gets ``--memory-limit``, ``--threads`` and so on, which are declared once;
    none of the names ``without``, and those ``hidden`` are not in the help. Of the groups ``later`` the first screen of the
    help shows what ``is_first``; other options show the other pages. With ``has_config`` options may come from a file.
    """

    def wrap(command: Callable[..., Any]) -> Callable[..., Any]:
        hints = get_type_hints(command, include_extras=True)
        groups = {name: _Group(hint, later, without) for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            group = groups.get(parameter.name)
            parameters += group.parameters(hidden) if group else [_own(parameter, hints[parameter.name], bool(later))]
        file = config.PARAMETER.replace(annotation=Annotated[config.PARAMETER.annotation, LATER]) if later else config.PARAMETER
        pages = (*([file] if has_config else []), *(PAGE_OPTIONS if later else ()))

        @functools.wraps(command)
        def spread(**given: Any) -> Any:
            for page in pages:
                given.pop(page.name)
            told = config.told.get()
            config.told.set({})
            given |= {name: told[name] for name in given if name in told}
            for name, group in groups.items():
                given[name] = group.make(given, told)
            return command(**{name: _own_value(name, hints[name], value) for name, value in given.items()})

        del spread.__wrapped__  # else its signature hides ours
        spread.__signature__ = inspect.Signature([*parameters, *pages])  # type: ignore[attr-defined]
        spread.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *pages)}
        spread.bare_options = [name for group in groups.values() for name in group.bare()]  # type: ignore[attr-defined]
        return spread

    return wrap


class _Group:
    """A dataclass of options as parameters of a command, and made of their values again."""

    def __init__(self, kind: Any, later: tuple[type, ...], without: Collection[str]) -> None:
        self._kind = kind
        self._is_later = kind in later
        self._options = [one for name, one in declared(kind).items() if name not in without]
        self._hints = hints = get_type_hints(kind)
        inner = [one.name for one in dataclasses.fields(kind) if dataclasses.is_dataclass(hints[one.name])]
        self._inner = {name: _Group(hints[name], later, without) for name in inner}

    def parameters(self, hidden: Collection[str]) -> list[inspect.Parameter]:
        """Return a keyword parameter for each option."""
        own = [_parameter(one, is_later=self._is_later, is_hidden=one.name in hidden) for one in self._options]
        return own + [parameter for group in self._inner.values() for parameter in group.parameters(hidden)]

    def bare(self) -> list[str]:
        """Return the fields that are options without flags."""
        own = [name for name in self._hints if name not in self._inner and name not in declared(self._kind)]
        return own + [name for group in self._inner.values() for name in group.bare()]

    def make(self, given: dict[str, Any], told: Mapping[str, config.Told]) -> Any:
        """Take what was given for the options, and what a file tells of others; return the dataclass. Raises UsageError."""
        values = {one.name: _value(one, given.pop(one.name)) for one in self._options}
        values |= {name: _bare_value(self._hints[name], told[name]) for name in self.bare() if name in told}
        return self._kind(**values, **{name: group.make(given, told) for name, group in self._inner.items()})


def _own(parameter: inspect.Parameter, hint: Any, is_later: bool) -> inspect.Parameter:
    """Return an option that is a parameter itself, as typer takes it; an argument as it is."""
    option = next((one for one in get_args(hint)[1:] if isinstance(one, Option)), None)
    if option is None:
        return parameter.replace(annotation=hint)
    made = _parameter(
        Declared(parameter.name, get_args(hint)[0], option, parameter.default, option.flag(parameter.name)), is_later=is_later
    )
    return made.replace(kind=parameter.kind)


def _parameter(one: Declared, *, is_later: bool, is_hidden: bool = False) -> inspect.Parameter:
    """Return an option as typer takes it: texts where values are made of texts, and a switch that is off."""
    option, kind, default = one.option, one.kind, one.default
    is_switch = _is_switch(one)
    if get_origin(kind) in (tuple, Mapping):
        kind, default = list[str], []
    elif option.read is not None:
        kind = str | None
    elif is_switch:
        kind, default = bool, False
    flags = option.flags.split() or ([one.flag] if is_switch else [])
    made = typer.Option(
        *flags,
        help=option.help,
        metavar="" if option.is_counted else option.metavar,
        rich_help_panel=option.panel,
        show_default=not (is_switch or option.is_counted or one.default is None),
        hidden=is_hidden,
        count=option.is_counted,
    )
    marks = (made, option, LATER) if is_later and not option.is_first else (made, option)
    default = inspect.Parameter.empty if option.is_required else default
    return inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, *marks])


def _is_switch(one: Declared) -> bool:
    """Return whether an option is given by its flag alone."""
    return one.kind in (bool, bool | None) and "/" not in one.option.flags


def _value(one: Declared, given: Any) -> Any:
    """Return the value of an option. Raises UsageError."""
    option, origin = one.option, get_origin(one.kind)
    if isinstance(given, config.Told):
        return _told_value(one, given)
    if origin is tuple:
        return tuple(given)
    if option.read is not None:
        texts = given if origin is Mapping else [] if given is None else [given]
        return option.read(one.flag, texts) if texts else one.default
    if _is_switch(one):
        return not option.flags.startswith("--no-") if given else one.default
    return given


def _own_value(name: str, hint: Any, value: Any) -> Any:
    """Return the value of a parameter, which a file may have given. Raises UsageError."""
    if not isinstance(value, config.Told):
        return value
    kind, *marks = get_args(hint)
    option = next((one for one in marks if isinstance(one, Option)), Option("", ""))
    return _told_value(Declared(name, kind, option, None, option.flag(name)), value)


def _told_value(one: Declared, told: config.Told) -> Any:
    """Return the value that a file has for an option. Raises UsageError with its place."""
    from graphprep.model.errors import UsageError
    from graphprep.model.options.checks import check_value

    try:
        return check_value(one.name, told.value, one.kind, one.option)
    except UsageError as error:
        error.place = error.place or told.place
        raise


def _bare_value(kind: Any, told: config.Told) -> Any:
    """Return the value that a file has for an option without a flag. Raises UsageError with its place."""
    from graphprep.model.errors import UsageError

    try:
        return from_json(kind, told.value)
    except (AttributeError, TypeError, ValueError):
        fix = "write it as provenance.json has it"
        raise UsageError("this is of another form than graphprep writes", place=told.place, fix=fix) from None


def _spare_conversions(command: Any, context: Any) -> None:
    """Let values that need no conversion, defaults and texts, be taken as they are: what converts takes long to load."""
    declared = inspect.signature(command.callback).parameters if command.callback else {}
    for param in command.get_params(context):
        param.process_value = _sparing(param, declared.get(param.name))


def _sparing(param: Any, declared: inspect.Parameter | None) -> Callable[[Any, Any], Any]:
    """Return what makes the value of a parameter, of which ``declared`` says what ours are; None: it is typer's own."""
    convert, default = param.process_value, declared.default if declared else None
    kind = getattr(declared.annotation, "__origin__", declared.annotation) if declared else None
    words = _words(kind)

    def process(context: Any, value: Any) -> Any:
        if context.get_parameter_source(param.name).name == "DEFAULT":
            return convert(context, value) if param.required else default  # with the former, it is missing
        if param.callback is None and isinstance(value, str) and (kind in _TEXTS or value in words):
            return value
        if param.callback is None and kind in _NUMBERS and isinstance(value, str) and _NUMBER.fullmatch(value):
            return int(value)
        if param.callback is None and kind in _TEXT_LISTS and isinstance(value, list | tuple) and value:
            return list(value)
        return convert(context, value)

    return process


def _words(kind: Any) -> tuple[Any, ...]:
    """Return the words that a parameter of this type takes: those of its Literal."""
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Literal:
            return get_args(one)
    return ()


# What options of other tools, and of other commands, are called here.
_ELSEWHERE = {
    "--by": "--partition-by",
    "--force": "--overwrite",
    "--jobs": "--threads",
    "--num-parts": "--partitions",
    "--num-partitions": "--partitions",
    "--num-workers": "--threads",
    "--partition-by": "--by",
    "--sep": "--delimiter",
    "--separator": "--delimiter",
    "--workers": "--threads",
}
_EDGES = "leave it out: edges are stored as they are given; convert --undirected adds the reverse of each"
_ADVICE = dict.fromkeys(("--directed", "--bidirected", "--symmetric", "--add-reverse"), _EDGES)
_ADVICE |= dict.fromkeys(("--output", "--out", "-o"), "the output is no option, but the last argument")
_ADVICE |= dict.fromkeys(("--input", "--inputs", "-i"), "inputs are no options, but arguments")
_LIKE = 0.75  # of a likeness of 1: --fromat is like --format, and --undirected not like --quiet


def near_option(name: str, context: Any, help: str) -> str:
    """Return the remedy for an option that a command does not have: one that is like it, else ``help``."""
    own = context.command if context is not None else None
    flags = [flag for param in own.params for flag in (*param.opts, *param.secondary_opts)] if own is not None else []
    if any(LATER in marks for marks in _marks(own).values()) if own is not None else False:
        help = f"{help}-all"
    if name in _ADVICE and own is not None and own.params:
        return _ADVICE[name]
    if _ELSEWHERE.get(name) in flags:
        return f"did you mean {_ELSEWHERE[name]}?"
    bare = {flag.lstrip("-"): flag for flag in flags if flag.startswith("--")}
    word = name.lstrip("-")
    found = difflib.get_close_matches(word, bare, 1, _LIKE) or [one for one in bare if word and one.startswith(word)][:1]
    return f"did you mean {bare[found[0]]}?" if found else help


def _marks(command: Any) -> dict[str, tuple[Any, ...]]:
    """Return what stands in the annotations of a command's parameters, by their names."""
    declared = inspect.signature(command.callback).parameters if command.callback else {}
    return {name: getattr(one.annotation, "__metadata__", ()) for name, one in declared.items()}


class Commands(TyperGroup):
    """The commands, with options of their own."""

    def get_help(self, ctx: Any) -> str:
        """Return the page of the help."""
        return painted(super().get_help(ctx), sys.stdout, is_help=True)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        _spare_conversions(self, ctx)
        return super().parse_args(ctx, args)


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by ``rich_help_panel``, in plain text that reads well when piped."""

    def get_help(self, ctx: Any) -> str:
        """Return the page of the help."""
        return painted(super().get_help(ctx), sys.stdout, is_help=True)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        _spare_conversions(self, ctx)
        bare, path = getattr(self.callback, "bare_options", None), config.config_of(args)
        if bare is None or path is None:
            return super().parse_args(ctx, args)
        params = self.get_params(ctx)
        told = config.by_parameter(config.read_config(path), params, bare, str(ctx.info_name))
        for param in params:
            param.required = param.required and param.name not in told
        rest = super().parse_args(ctx, args)
        given = {one.name for one in params if ctx.get_parameter_source(one.name).name == "COMMANDLINE"}
        config.told.set({name: one for name, one in told.items() if name not in given})
        return rest

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return ``[OPTIONS] INPUT... OUT``: the arguments as their metavars say."""
        return ["[OPTIONS]", *(str(param.metavar) for param in self.get_params(ctx) if param.param_type_name == "argument")]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command is for, or on a format's page what is on it."""
        if format_of_page(ctx):
            write_format_text(ctx, formatter)
            return
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.replace("Examples:\n", "\b\nExamples:\n"))  # lines that stay as they are

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options that the page of the help has."""
        write_options(ctx, formatter, self.get_params(ctx), _marks(self))
