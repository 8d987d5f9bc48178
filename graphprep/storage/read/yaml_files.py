"""YAML that people write: plain values by the rules of YAML 1.2, and no key twice."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from graphprep.model.errors import DataError

_SAFE = re.compile(r"[\w./](?:[\w./*%+@-]|:(?=\w))*", re.ASCII)  # texts that need no quotes in lists, objects and values
_INT_DIGITS = 40  # of a number that some message may show: none of more than 20 fits 64 bits
_SURROGATE = re.compile("[\ud800-\udfff]")
_FIX = "write 'key: value' lines, or a JSON object"
# YAML 1.1, which PyYAML speaks, reads `no` as false, `1:2:3` as 3723 and 2020-01-01 as a date.
_PLAIN = (
    ("null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("int", re.compile(r"-?(?:0|[1-9][0-9]*)"), list("-0123456789")),
    (
        "float",
        re.compile(
            r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|-?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
        ),
        list("-.0123456789"),
    ),
)


def parse_yaml(data: bytes, place: str) -> Any:
    """Parse one YAML document into what JSON has: null, bool, numbers, texts, lists, objects with texts as keys.

    Plain values are typed as YAML 1.2 does (``yes``, ``1:2:3`` and dates are texts); ``007`` is a text, too. ``place`` names
    the file. Raises DataError with line and column, also for a key that stands twice, for anchors and for tags.
    """
    import yaml

    try:
        return yaml.load(data.decode("utf-8-sig"), _loader())
    except UnicodeDecodeError:
        raise DataError("invalid YAML: it is not UTF-8 text", place=place, fix=_FIX) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{place}:{mark.line + 1}:{mark.column + 1}" if mark else place
        raise DataError(f"invalid YAML: {error.problem or error.context}", place=at, fix=_FIX) from None
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError) as error:  # the latter two for \U00110000 in quotes
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise DataError(f"invalid YAML: {problem}", place=place, fix=_FIX) from None


@cache
def _loader() -> Any:
    """Make the loader's class; PyYAML comes late."""
    import yaml

    def peek(loader: Any) -> Any:
        return loader.peek_event()

    class Loader(yaml.SafeLoader):
        """Reads YAML 1.2's plain values and refuses a key that stands twice."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = peek(self)
            if isinstance(event, yaml.AliasEvent) or event.tag is not None:
                what = "aliases" if isinstance(event, yaml.AliasEvent) else "tags"
                raise yaml.constructor.ConstructorError(None, None, f"{what} are not read", event.start_mark)
            node = super().compose_node(parent, index)
            if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
                raise yaml.constructor.ConstructorError(None, None, "an escape stands for no character", node.start_mark)
            return node

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            seen: set[str] = set()
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    raise yaml.constructor.ConstructorError(None, None, "a key must be a text", key.start_mark)
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"key {key.value!r} stands twice in its object", key.start_mark
                    )
                seen.add(key.value)
            return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}

        def construct_yaml_int(self, node: Any) -> int:
            if len(node.value) > _INT_DIGITS:
                raise yaml.constructor.ConstructorError(None, None, "an integer has too many digits", node.start_mark)
            return int(node.value)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    Loader.yaml_implicit_resolvers = {}
    for tag, pattern, first in _PLAIN:
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern.pattern})$"), first)
    return Loader


def yaml_text(value: Any, *, width: int = 100, indent: str = "") -> str:
    """Write a value as ``parse_yaml`` reads it back: lists and objects in lines of about ``width`` characters."""
    if isinstance(value, str):
        return value if _SAFE.fullmatch(value) and not _is_typed(value) else _quoted(value)
    if isinstance(value, Mapping):
        items, brackets = [f"{yaml_text(key)}: {yaml_text(item)}" for key, item in value.items()], "{}"
    elif isinstance(value, Sequence):
        items, brackets = [yaml_text(item) for item in value], "[]"
    else:
        return json.dumps(value)
    lines = [""]
    for number, item in enumerate(items):
        piece = item + ("," if number + 1 < len(items) else "")
        if lines[-1] and len(lines[-1]) + len(piece) + 1 > width:
            lines.append(piece)
        else:
            lines[-1] += f" {piece}" if lines[-1] else piece
    return brackets[0] + f"\n{indent}".join(lines) + brackets[1]


def _is_typed(text: str) -> bool:
    return any(pattern.fullmatch(text) for _, pattern, _ in _PLAIN)


def _quoted(text: str) -> str:
    """Write a text in double quotes; what does not print stands as an escape."""
    if text.isprintable():
        return json.dumps(text, ensure_ascii=False)
    plain = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(plain.get(char, char if char.isprintable() else f"\\U{ord(char):08x}") for char in text) + '"'


__all__ = ["parse_yaml", "yaml_text"]
