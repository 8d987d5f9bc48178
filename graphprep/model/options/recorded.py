"""Options as provenance.json records them: those that are not the default, as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, cast

from graphprep.model.option import declared, from_json
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.shown.texts import hide_secrets


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
    return cast(ConvertOptions, from_json(ConvertOptions, value))


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
