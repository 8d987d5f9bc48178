"""JSON that others wrote: strict parsing, and checks against the JSON Schemas that the wheel carries."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphprep.model.errors import DataError, did_you_mean
from graphprep.storage.read.fitting import make_check

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

_PLAIN_KEY = re.compile(r"[\w:%/-]+")
_SHOWN = 60  # characters of a found value in a message
_UTF8_BOM = b"\xef\xbb\xbf"


# ---------------------------------------------------------------------------------------------------- parsing


class _Fault:
    """Stands in a parsed value where something was wrong that the JSON module lets through."""

    def __init__(self, message: str) -> None:
        self.message = message


def parse_json(data: bytes, place: str) -> Any:
    """Parse a JSON document strictly: UTF-8, no duplicate keys, no NaN or Infinity, nothing behind it.

    A BOM is taken off. ``place`` names the file. Raises DataError with line and column (syntax, encoding) or with the
    key path (``metadata.json: node_data.user``).

    The standard library's parser says where a fault stands, and shows every key of an object. orjson takes the last of two
    equal keys, and makes floats of long integers: with checks for both it takes twice as long.
    """
    data = data.removeprefix(_UTF8_BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line, column = _line_column(data, error.start)
        raise DataError(f"invalid UTF-8 byte 0x{data[error.start]:02x}", place=f"{place}:{line}:{column}") from None
    if not text.strip():
        raise DataError("expected JSON, found an empty file", place=place)
    faults: list[_Fault] = []
    try:
        value = json.loads(text, object_pairs_hook=_object_hook(faults), parse_constant=_constant_hook(faults))
    except json.JSONDecodeError as error:
        message = f"invalid JSON: {error.msg.removesuffix(' starting at')}"
        raise DataError(message, place=f"{place}:{error.lineno}:{error.colno}") from None
    except RecursionError:
        raise DataError("JSON is nested too deeply", place=place) from None
    except ValueError:  # Python converts no integer of so many digits
        raise DataError("an integer has too many digits", place=place) from None
    if faults or "\\u" in text:
        _raise_first_fault(value, place)
    return value


def _line_column(data: bytes, at: int) -> tuple[int, int]:
    return data.count(b"\n", 0, at) + 1, at - (data.rfind(b"\n", 0, at) + 1) + 1


def _object_hook(faults: list[_Fault]) -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    value[key] = _Fault("the key stands twice in its object")
                    faults.append(value[key])
                seen.add(key)
        return value

    return build


def _constant_hook(faults: list[_Fault]) -> Callable[[str], _Fault]:
    def build(text: str) -> _Fault:
        faults.append(_Fault(f"{text} is not a JSON number"))
        return faults[-1]

    return build


def _raise_first_fault(value: Any, place: str) -> None:
    """Walk a parsed value for faults and for texts that UTF-8 cannot write, and raise the first with its key path."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, _Fault):
            raise DataError(item.message, place=at_path(place, path))
        if isinstance(item, str):
            _check_text(item, place, path)
        elif isinstance(item, dict):
            for key in item:
                _check_text(key, place, path)
            stack.extend(((*path, key), below) for key, below in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend(((*path, i), item[i]) for i in reversed(range(len(item))))


def _check_text(text: str, place: str, path: tuple[str | int, ...]) -> None:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise DataError("a text holds half a surrogate pair", place=at_path(place, path))


# ---------------------------------------------------------------------------------------------------- places


def key_path(path: Sequence[str | int]) -> str:
    """Write a path into JSON: ``num_nodes_per_chunk[1][2]``, ``edges.user:buys:item.data[0]``, ``node_data["a b"]``."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif _PLAIN_KEY.fullmatch(step):
            out += f".{step}" if out else step
        else:
            out += f"[{json.dumps(step, ensure_ascii=False)}]"
    return out


def at_path(place: str, path: Sequence[str | int]) -> str:
    """Return the place of a value inside a JSON file: ``file: key.path[3]``; the file alone for its whole value."""
    return f"{place}: {key_path(path)}" if path else place


# ---------------------------------------------------------------------------------------------------- schemas


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Load a JSON Schema (``metadata``, ``manifest``, ``chunked`` …) from the wheel, or from the repository.

    The value is shared: do not change it.
    """
    packed = files("graphprep") / "schemas" / f"{name}.schema.json"
    source = packed if packed.is_file() else Path(__file__).parents[3] / "schemas" / f"{name}.schema.json"
    value: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return value


def check_json(value: Any, schema_name: str, place: str) -> None:
    """Check a parsed JSON value against a schema.

    Raises DataError for the first fault, in the order of the schema, at ``file: key.path[3]``.
    """
    for error in find_json_errors(value, schema_name, place):
        raise error


def find_json_errors(value: Any, schema_name: str, place: str) -> Iterator[DataError]:
    """Yield every fault of a parsed JSON value, each with its place; that of another format version alone."""
    if (error := _other_version(value, schema_name, place)) is not None:
        yield error
        return
    with contextlib.suppress(RecursionError):
        if _check(schema_name)(value):
            return
    for error in _validator(schema_name).iter_errors(value):
        for path, message in _explain(error):
            yield DataError(message, place=at_path(place, path), fix=_near_key(error, message))


def _other_version(value: Any, schema_name: str, place: str) -> DataError | None:
    """Return what is to be said of a document whose format version is another than the schema's."""
    read = load_schema(schema_name).get("properties", {}).get("format_version", {}).get("const")
    found = value.get("format_version") if isinstance(value, dict) else None
    if read is None or type(found) is not int or found == read:
        return None
    newer = found > read
    writer = "a newer" if newer else "an older"
    return DataError(
        f"this graphprep reads format version {read}; {writer} one wrote version {_show(found)}",
        place=at_path(place, ("format_version",)),
        fix="install the graphprep that wrote it, or a newer one" if newer else "convert the graph again",
    )


@cache
def _check(schema_name: str) -> Callable[[Any], bool]:
    """Return what tells of nearly all values that they fit, without loading jsonschema, which takes 0.1 s."""
    return make_check(load_schema(schema_name), lambda file: load_schema(file.removesuffix(".schema.json")))


@cache
def _validator(schema_name: str) -> Any:
    """Build a validator for which ``1.0`` is no integer. jsonschema takes a moment to import, so it comes late."""
    from jsonschema import Draft202012Validator, validators
    from referencing import Registry, Resource

    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, item: isinstance(item, int) and not isinstance(item, bool)
    )
    strict: Any = validators.extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]

    def retrieve(uri: str) -> Resource[Any]:
        return Resource.from_contents(load_schema(uri.removesuffix(".schema.json")))

    return strict(load_schema(schema_name), registry=Registry(retrieve=retrieve))  # type: ignore[call-arg]


_Explained = Iterator[tuple[tuple[str | int, ...], str]]


def _explain(error: ValidationError) -> _Explained:
    """Yield (path, message) for what a validation error says, in words."""
    path = tuple(error.absolute_path)
    rule, schema, found = str(error.validator), error.schema, cast("Any", error.instance)
    if rule == "required":
        # One error a key, and its message begins with the key's repr; ask the data instead.
        yield path, f"key {error.message.removesuffix(' is a required property')} is missing"
    elif rule == "additionalProperties" and isinstance(schema, Mapping):
        yield from ((path, f"unknown key {key!r}") for key in found if key not in schema.get("properties", {}))
    elif rule == "uniqueItems":
        i = next(i for i, item in enumerate(found) if item in found[:i])
        yield (*path, i), f"{_show(found[i])} is listed twice"
    elif rule == "maximum":
        yield path, f"expected an integer <= {error.validator_value}, found {_show(found)}"
    else:
        yield path, f"expected {_expected(schema)}, found {_show(found)}"


def _near_key(error: ValidationError, message: str) -> str:
    """Return the fix for an unknown key that looks like a known one."""
    if error.validator != "additionalProperties" or not message.startswith("unknown key "):
        return ""
    key = message.removeprefix("unknown key ")[1:-1]
    return did_you_mean(key, cast("Any", error.schema).get("properties", {}))


def _expected(schema: Any) -> str:
    """Say what a schema wants: its own words where it has some, else its keywords'."""
    if "x-expected" in schema:
        return str(schema["x-expected"])
    if "const" in schema:
        return _show(schema["const"])
    if "enum" in schema:
        return f"one of {', '.join('null' if item is None else str(item) for item in schema['enum'])}"
    kinds = schema.get("type", "something else")
    if kinds == "integer" and "minimum" in schema:
        return f"an integer >= {schema['minimum']}"
    if kinds == "array" and "minItems" in schema:
        return "a list that is not empty"
    return " or ".join(_KIND_WORDS.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))


_KIND_WORDS = {
    "integer": "an integer",
    "number": "a number",
    "string": "a text",
    "array": "a list",
    "object": "an object",
    "boolean": "true or false",
    "null": "null",
}


def _show(value: Any) -> str:
    """Show a found value as it stands in the file, shortened; lists and objects by what they are."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
