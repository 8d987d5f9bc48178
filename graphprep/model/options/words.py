"""What messages call an option: a flag on the command line, a parameter in Python.

Messages are written with flags. Where a function was called from Python, its words are put in their place on the way out.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Collection, Iterable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import Literal, NamedTuple, get_args, get_origin

from graphprep.model.errors import GraphprepError

# What is no field of options: parameters of functions in Python, and words of the command line alone.
_NAMES = {"decoder-options": "decoder_options", "edge": "edges", "from": "from_", "to": "target", "type": "type_"}
_MISSING = "error|skip|mark"  # of --missing
_COMMANDS = {
    "graphprep export --list": "graphprep.export_targets()",
    "--nodes and --edges": "nodes and edges",
}
_CLEAN = re.compile(r"graphprep clean (?:'([^']*)'|(\S+)) --all-dead")
_NODE_TABLE = re.compile(r"--nodes ([\w%.-]+)=([^\s;,]+)")
_FLAG = re.compile(r"(?<![\w'\"-])--([a-z]+(?:-[a-z]+)*)\b")
_says_flags: ContextVar[bool] = ContextVar("graphprep.says_flags", default=False)


@contextlib.contextmanager
def flags_in_messages() -> Iterator[None]:
    """Let messages name flags: the command line calls."""
    token = _says_flags.set(True)
    try:
        yield
    finally:
        _says_flags.reset(token)


@contextlib.contextmanager
def python_words(*, decoder: bool = False) -> Iterator[None]:
    """Let an error that passes name parameters, unless the command line called; ``decoder``: those of decoders, too."""
    try:
        yield
    except GraphprepError as error:
        error.message, error.place, error.fix = in_words((error.message, error.place, error.fix), decoder=decoder)
        error.items = in_words(error.items, decoder=decoder)
        error.args = (error.message,)
        raise


def in_words(texts: Iterable[str], *, decoder: bool = False) -> tuple[str, ...]:
    """Return messages in the caller's words."""
    return tuple(texts if _says_flags.get() else map(partial(parameter_words, decoder=decoder), texts))


def parameter_words(text: str, *, decoder: bool = False) -> str:
    """Write parameters for the flags in a text: ``--on-error skip`` becomes ``on_error="skip"``."""
    for command, name in _COMMANDS.items():
        text = text.replace(command, name)
    text = _CLEAN.sub(lambda found: f'graphprep.clean("{found[1] or found[2]}", all_dead=True)', text)
    text = _NODE_TABLE.sub(r'nodes={"\1": "\2"}', text)
    done, at = [], 0
    for match in _FLAG.finditer(text):
        if match.start() < at:
            continue
        word, end = _parameter(text, match, decoder)
        done += [text[at : match.start()], word]
        at = end
    return "".join([*done, text[at:]])


class _Words(NamedTuple):
    """What options are called, and which words their values are, by their flags; which of them are keys of decoders."""

    names: dict[str, str]
    switches: dict[str, bool]  # what they make of the field
    choices: dict[str, str]
    of_decoders: Collection[str]


@functools.cache
def _words() -> _Words:
    """Read what all commands' options declare."""
    from graphprep.model.export import ExportOptions
    from graphprep.model.option import declared
    from graphprep.model.options.convert import ConvertOptions
    from graphprep.model.options.decoding import DECODER_OPTIONS, DecoderOptions
    from graphprep.model.options.generate import GenerateOptions
    from graphprep.model.options.partition import PartitionOptions
    from graphprep.model.options.reorder import ReorderOptions
    from graphprep.model.options.sample import SampleOptions
    from graphprep.model.options.split import SplitOptions
    from graphprep.model.options.stats import StatsOptions
    from graphprep.model.options.transform import TransformOptions
    from graphprep.model.run_options import RunOptions

    found = _Words({}, {}, {"missing": _MISSING}, DECODER_OPTIONS)
    kinds: tuple[type, ...] = (ConvertOptions, DecoderOptions, RunOptions, ExportOptions, PartitionOptions, ReorderOptions)
    kinds += (SampleOptions, GenerateOptions, SplitOptions, StatsOptions, TransformOptions)
    for one in (one for kind in kinds for one in declared(kind).values()):
        flag = one.flag.removeprefix("--")
        found.names[flag] = one.name
        if one.kind in (bool, bool | None):
            found.switches[flag] = not flag.startswith("no-")
            if "/" in one.option.flags:
                found.switches[f"no-{flag}"] = False
        kind = next((kind for kind in (one.kind, *get_args(one.kind)) if get_origin(kind) is Literal), None)
        if words := one.option.words or ("" if kind is None else "|".join(map(re.escape, map(str, get_args(kind))))):
            found.choices[flag] = f"{found.choices[flag]}|{words}" if flag in found.choices else words
    found.names.update(_NAMES)
    return found


def _parameter(text: str, match: re.Match[str], decoder: bool) -> tuple[str, int]:
    """Return a flag's parameter, with a value that follows it, and where both end."""
    flag, end = match[1], match.end()
    if flag == "option" and text.startswith(" ", end):  # of a target: a parameter of export
        return "", end + 1
    words = _words()
    name = words.names.get(flag, words.names.get(flag.removeprefix("no-"), flag)).replace("-", "_")
    shown = f"decoder_options[{name!r}]".replace("'", '"') if decoder and name in words.of_decoders else name
    if flag in words.switches and not text.startswith(" must be", end):
        return f"{shown}={words.switches[flag]}", end
    one_of = words.choices.get(flag)
    value = re.compile(rf" ((?:{one_of})(?: or (?:{one_of}))*)\b(?![\w-])").match(text, end) if one_of else None
    if value is None:
        return shown, end
    quoted = value[1].replace(" or ", '" or "')
    return f'{shown}="{quoted}"', value.end()
