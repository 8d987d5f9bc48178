"""Options of decoders and exporters: which ones a class has, and their values from what a user wrote."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from graphprep.model.errors import UsageError


def option_types(cls: type) -> dict[str, Any]:
    """Return the options of a class with their annotations: its fields, else the parameters of ``__init__``."""
    if dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        target: Any = cls
    else:
        target = inspect.getattr_static(cls, "__init__")
        keywords = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        parameters = list(inspect.signature(target).parameters.values())[1:]
        names = [parameter.name for parameter in parameters if parameter.kind in keywords]
    hints = _type_hints(target)
    return {name: hints.get(name, Any) for name in names}


def option_meanings(cls: type) -> dict[str, str]:
    """Return what the fields of a dataclass mean, where their annotations say it: ``Annotated[int, "number of files"]``."""
    hints = _type_hints(cls, include_extras=True)
    texts = {name: get_args(hint)[1:] for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {name: next((text for text in given if isinstance(text, str)), "") for name, given in texts.items()}


def describe_values(hint: Any) -> str:
    """Say in a word which values an option takes, by its annotation: ``COO|CSR``, ``N``; "" where nobody knows."""
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return describe_values(kinds[0]) if len(kinds) == 1 else ""
    if origin is Literal:
        return "|".join(map(str, get_args(hint)))
    return "A,B,..." if origin in (tuple, list) else _VALUE_WORDS.get(hint, "")


def _type_hints(target: Any, *, include_extras: bool = False) -> dict[str, Any]:
    try:
        return get_type_hints(target, include_extras=include_extras)
    except (NameError, TypeError):
        return {}


def coerce_option(flag: str, value: Any, hint: Any) -> Any:
    """Turn a value, often a text, into what the annotation ``hint`` says; ``flag`` is what messages call the option.

    Raises UsageError.
    """
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return coerce_option(flag, value, kinds[0]) if len(kinds) == 1 else value
    if origin is Literal:
        return _one_of(flag, value, get_args(hint))
    if origin in (tuple, list, Sequence):
        items = [value] if isinstance(value, str) or not isinstance(value, (list, tuple)) else list(value)
        return (list if origin is list else tuple)(str(item) for item in items)
    if hint is str:
        return _text(flag, value)
    convert = _CONVERTERS.get(hint)
    if convert is None:
        return value
    wanted, function = convert
    try:
        return function(value)
    except (ValueError, TypeError, OverflowError):
        raise UsageError(f"{flag} must be {wanted}, found {value!r}", fix="correct the value") from None


def _one_of(flag: str, value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if value == choice or str(value) == str(choice):
            return choice
    words = ", ".join(str(choice) for choice in choices)
    raise UsageError(f"{flag} must be one of {words}, found {value!r}", fix="use one of them")


def _text(flag: str, value: Any) -> str:
    """Take a text or a number; write a list as the comma list that flags have (``[[3], null, [3, 0]]`` as ``3,-,3/0``)."""
    if isinstance(value, (list, tuple)):
        return ",".join(
            "-" if item is None else "/".join(map(str, item)) if isinstance(item, (list, tuple)) else str(item)
            for item in value
        )
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise UsageError(f"{flag} must be a text, found {value!r}", fix="correct the value")
    return str(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError
    return int(value) if isinstance(value, str) else operator.index(value)


def _float(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value)


def _bool(value: Any) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in words:
        return words[value.lower()]
    raise TypeError


_VALUE_WORDS = {int: "N", float: "X", bool: "true|false", str: "TEXT"}
_CONVERTERS = {int: ("an integer", _integer), float: ("a number", _float), bool: ("true or false", _bool)}
