"""Options as provenance.json records them: those that are not the default, as JSON."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from graphprep.model.option import declared
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.shown.texts import hide_secrets

_hints = functools.cache(get_type_hints)


def recorded(inputs: Sequence[str], options: ConvertOptions) -> dict[str, Any]:
    """Return what was read, and the options that say how: what ``options_of`` reads, without secrets."""
    known = {name for name, one in declared(ConvertOptions).items() if one.option.is_recorded} | {"graph", "decoder_options"}
    told = {name: value for name, value in _plain(options).items() if name in known}
    return {"inputs": hide_secrets(list(inputs)), "options": hide_secrets(told)}


def written(options: ConvertOptions) -> dict[str, Any]:
    """Return all options but those of the run, as ``options_of`` reads them."""
    return cast("dict[str, Any]", _plain(options))


def options_of(value: Mapping[str, Any]) -> ConvertOptions:
    """Read the options of what ``recorded`` returned; what other versions wrote beside it is passed over."""
    return cast(ConvertOptions, _made(ConvertOptions, value))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        found = {}
        for field in dataclasses.fields(value):
            own, default = getattr(value, field.name), field.default
            if default is dataclasses.MISSING and field.default_factory is not dataclasses.MISSING:
                default = field.default_factory()
            if own != default and field.name != "run":
                found[field.name] = _plain(own)
        return found
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _made(kind: Any, value: Any) -> Any:
    """Return a value of JSON as an annotation says."""
    if dataclasses.is_dataclass(kind):
        hints, names = _hints(cast(Any, kind)), [field.name for field in dataclasses.fields(kind)]
        return kind(**{name: _made(hints[name], one) for name, one in value.items() if name in names})  # type: ignore[operator]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = [one for one in inner if one is not type(None)]
        return _made(kinds[0], value) if value is not None and len(kinds) == 1 else value
    if origin is tuple and isinstance(value, list):
        kinds = [inner[0]] * len(value) if inner[-1] is Ellipsis else list(inner)
        return tuple(_made(one, item) for one, item in zip(kinds, value, strict=True))
    return value
