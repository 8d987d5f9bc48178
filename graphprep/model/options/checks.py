"""One check of options, for the command line and for Python: every value is what its field's annotation says, or an error."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import operator
import os
import types
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from graphprep.model.errors import UsageError, did_you_mean
from graphprep.model.option import Option, declared
from graphprep.model.options.decoding import DECODER_OPTIONS
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import edge_type_text

T = TypeVar("T")
_hints = functools.cache(get_type_hints)


def make_options(kind: type[T], options: T | None, given: Mapping[str, Any], without: Sequence[str] = ()) -> T:
    """Return checked options: those given as an object, and fields of it, or of its ``run``, that are given one by one.

    ``without`` are fields that cannot be given. Raises UsageError for a name that is no option, and for a value that does not
    fit.
    """
    if options is None:
        options = kind()
    if not isinstance(options, kind):
        raise UsageError(f"options must be {kind.__name__}, found {options!r}", fix=f"make one: graphprep.{kind.__name__}()")
    names = set(map(attrgetter("name"), dataclasses.fields(kind))).difference(without)  # type: ignore[arg-type]
    of_run = set(map(attrgetter("name"), dataclasses.fields(RunOptions)))
    changes: dict[str, Any] = {}
    run: dict[str, Any] = {}
    for given_name, value in given.items():
        name = _name_here(given_name, names)
        if name not in names | of_run:
            raise _unknown(name, names | of_run)
        if name != given_name and name in given:
            raise UsageError(f"{given_name} and {name} are one option", fix=f"leave out {given_name}")
        (changes if name in names else run)[name] = value
    made: Any = dataclasses.replace(options, **changes)  # type: ignore[type-var]
    if run:
        made = dataclasses.replace(made, run=dataclasses.replace(made.run, **run))
    return cast(T, checked(made))


def _name_here(name: str, names: Collection[str]) -> str:
    """Return what the options call the method of partitioning: ``by`` or ``partition_by``, of which both are taken."""
    other = {"by": "partition_by", "partition_by": "by"}.get(name, name)
    return other if name not in names and {other, "partitions"}.issubset(names) else name


def checked(options: T) -> T:
    """Return options whose values are what their annotations say: one text stands for a tuple of it, a path for its text.

    Raises UsageError.
    """
    changes = {}
    for field in dataclasses.fields(cast(Any, options)):
        value = getattr(options, field.name)
        if value is field.default or (field.default_factory is dict and value == {}):
            continue
        one = declared(type(options)).get(field.name)
        hint = _hints(cast(Any, type(options)))[field.name]
        fitting = check_value(field.name, value, hint, None if one is None else one.option)
        if fitting is not value:
            changes[field.name] = fitting
    return dataclasses.replace(options, **changes) if changes else options  # type: ignore[type-var]


def check_value(name: str, value: Any, hint: Any, option: Option | None = None) -> Any:
    """Return an option's value as its annotation says, and what else is declared.

    Raises UsageError.
    """
    flag = f"--{name.replace('_', '-')}" if option is None else option.flag(name)
    flag = name if flag.startswith("--no-") else flag  # which says the opposite
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if value is None and type(None) in kinds:
        return None
    kind = kinds[0]  # None, where it may be, is the last
    if dataclasses.is_dataclass(kind):
        return _check_object(name, value, kind)
    if get_origin(kind) is Mapping:
        return _check_mapping(name, flag, value, get_args(kind))
    if name == "max_errors":
        parse_error_limit(value)
        return value
    if name == "edge_types":
        value = _edge_type_texts(value)
    value = coerce_option(flag, os.fspath(value) if isinstance(value, os.PathLike) else value, kind)
    if isinstance(value, int) and name != "seed" and not -(2**63) <= value < 2**64:
        raise UsageError(f"{flag} must fit 64 bits, found {value}", fix="give a smaller number")
    if option is not None and option.least is not None and value < option.least:
        raise UsageError(f"{flag} must be {option.least} or more, found {value}", fix=option.hint)
    if option is not None and option.most is not None and value > option.most:
        raise UsageError(f"{flag} must be {option.most:,} or less, found {value}", fix=option.hint)
    return value


def parse_error_limit(given: int | str | None) -> tuple[int | None, float | None]:
    """Return how many records may be skipped, and which share of all; ``"5%"`` is a share.

    Raises UsageError for another text, a number below 0, and a share that is not within 0% and 100%.
    """
    if given is None:
        return None, None
    text = str(given).strip()
    number = text.removesuffix("%").strip()
    try:
        share = float(number) if text.endswith("%") else None
        most = int(number) if share is None else None
    except ValueError:
        share = most = -1
    if isinstance(given, bool) or (share is not None and not 0 <= share <= 100) or (most is not None and most < 0):
        raise UsageError(
            f"--max-errors must be a number >= 0 or a percentage, found {given!r}", fix="write, for example, 100 or 0.5%"
        )
    return most, share


def _edge_type_texts(given: Any) -> Any:
    """Write edge types that are given as (source, relation, destination) as one text each."""
    many = given if isinstance(given, list | tuple) else [given]
    return [edge_type_text(one) if isinstance(one, tuple) and len(one) == 3 else one for one in many]


def _check_object(name: str, value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise UsageError(f"{name} must be {kind.__name__}, found {value!r}", fix=f"make one: graphprep.{kind.__name__}()")
    return checked(value) if kind is RunOptions else value


def _check_mapping(name: str, flag: str, value: Any, kinds: tuple[Any, ...]) -> Any:
    """Check a mapping's values. A number of nodes may be given without its type, where there is one."""
    if name == "num_nodes" and not isinstance(value, Mapping):
        value = {"": value}
    if not isinstance(value, Mapping):
        raise UsageError(f"{flag} must be a mapping, found {value!r}", fix=f"pass a dict, such as {name}={{}}")
    if kinds[1] is not int:
        return value
    numbers = {key: coerce_option(flag, one, int) for key, one in value.items()}
    for number in numbers.values():
        if number < 0:
            raise UsageError(f"{flag} must be 0 or more, found {number}", fix="give the number of nodes")
    return numbers if numbers != value else value


def _unknown(name: str, names: set[str]) -> UsageError:
    if name in DECODER_OPTIONS:
        fix = f"it is an option of decoders: pass decoder_options={{{name!r}: VALUE}}"
    else:
        fix = did_you_mean(name, names, f"the options are: {', '.join(sorted(names))}")
    return UsageError(f"there is no option {name!r}", fix=fix)


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
    raise UsageError(
        f"{flag} must be one of {words}, found {value!r}", fix=did_you_mean(value, map(str, choices), "use one of them")
    )


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
