"""Whether a JSON value fits a JSON Schema: fast, by the few keywords that ours use. What is wrong, jsonschema tells.

A check may refuse what jsonschema takes, never the other way round.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import getitem
from typing import Any

Check = Callable[[Any], bool]
Schema = Mapping[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "array": (list,),
    "object": (dict,),
    "boolean": (bool,),
    "null": (type(None),),
}
_WORDS = frozenset({"$schema", "$id", "$defs", "title", "description", "x-expected"})  # which check nothing
_OF_OBJECTS = frozenset({"properties", "required", "additionalProperties", "propertyNames"})
_NOT_ALONE = _WORDS | _OF_OBJECTS | {"$ref"}
_OF_INTEGERS = _WORDS | {"type", "minimum", "maximum"}
_NUMBERS = (int, float)
_MANY = 64  # objects of one kind, most of which will look the same


def make_check(root: Schema, load: Callable[[str], Schema]) -> Check:
    """Make the check of a schema. ``load`` returns the other files that refs name; refs lead to no loop.

    Raises KeyError for a keyword that is not known here.
    """
    made: dict[str, Check] = {}

    def make(home: Schema, schema: Schema) -> Check:
        if schema.get("type") == "integer" and schema.keys() <= _OF_INTEGERS:
            return _check_integer(schema.get("minimum", -math.inf), schema.get("maximum", math.inf))
        make_inner = partial(make, home)
        checks = [_KEYWORDS[name](schema[name], make_inner) for name in schema if name not in _NOT_ALONE]
        if "$ref" in schema:
            checks.append(refer(home, schema["$ref"]))
        if not _OF_OBJECTS.isdisjoint(schema):
            checks.append(_check_object(schema, make_inner))
        return _check_all(checks)

    def refer(home: Schema, ref: str) -> Check:
        name, _, path = ref.partition("#/")
        home = load(name) if name else home
        key = f"{home['$id']}#/{path}"
        if key not in made:
            made[key] = make(home, reduce(getitem, path.split("/"), home))
        return made[key]

    return make(root, root)


def _check_all(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    first, rest = checks[0], _check_all(checks[1:])
    return lambda value: first(value) and rest(value)


def _check_integer(least: float, most: float) -> Check:
    return lambda value: type(value) is int and least <= value <= most


def _check_type(kinds: str | list[str], make: Callable[[Schema], Check]) -> Check:
    wanted = frozenset(one for kind in ([kinds] if isinstance(kinds, str) else kinds) for one in _TYPES[kind])
    return lambda value: type(value) in wanted


def _check_enum(items: list[Any], make: Callable[[Schema], Check]) -> Check:
    known = {(type(item), item) for item in items}
    return lambda value: not isinstance(value, list | dict) and (type(value), value) in known


def _check_pattern(pattern: str, make: Callable[[Schema], Check]) -> Check:
    search = re.compile(pattern).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _check_items(schema: Schema, make: Callable[[Schema], Check]) -> Check:
    check = make(schema)
    return lambda value: not isinstance(value, list) or all(map(check, value))


def _check_unique(wanted: bool, make: Callable[[Schema], Check]) -> Check:
    return lambda value: (
        not (wanted and isinstance(value, list)) or (all(type(one) is str for one in value) and len(set(value)) == len(value))
    )


def _check_object(schema: Schema, make: Callable[[Schema], Check]) -> Check:
    required = schema.get("required", ())
    known = {name: make(one) for name, one in schema.get("properties", {}).items()}
    names = make(schema["propertyNames"]) if "propertyNames" in schema else None
    more = schema.get("additionalProperties", True)
    others = make(more) if isinstance(more, Mapping) else None

    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            return True
        if any(name not in value for name in required) or (names is not None and not all(map(names, value))):
            return False
        if others is not None and not known and len(value) > _MANY:
            return all(map(others, {repr(item): item for item in value.values()}.values()))
        for name, item in value.items():
            own = known.get(name, others)
            if not (more if own is None else own(item)):
                return False
        return True

    return check


_KEYWORDS: dict[str, Callable[[Any, Callable[[Schema], Check]], Check]] = {
    "type": _check_type,
    "enum": _check_enum,
    "const": lambda item, make: _check_enum([item], make),
    "pattern": _check_pattern,
    "items": _check_items,
    "uniqueItems": _check_unique,
    "minLength": lambda least, _: lambda value: not isinstance(value, str) or len(value) >= least,
    "minItems": lambda least, _: lambda value: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most, _: lambda value: not isinstance(value, list) or len(value) <= most,
    "minimum": lambda least, _: lambda value: type(value) not in _NUMBERS or value >= least,
    "maximum": lambda most, _: lambda value: type(value) not in _NUMBERS or value <= most,
}
