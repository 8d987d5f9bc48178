"""Write what is made of the options' declarations: types of keywords, a schema for --config. ``make docs`` runs it."""

from __future__ import annotations

import collections.abc
import inspect
import json
import sys
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import graphprep
from graphprep.cli.main import build_app
from graphprep.exporters.registry import find_exporter, known_targets
from graphprep.model.option import Declared, Option, declared
from graphprep.model.options.checks import option_types

ROOT = Path(__file__).resolve().parents[1]
TYPES = ROOT / "graphprep" / "model" / "options" / "given.pyi"
SCHEMA = ROOT / "schemas" / "config.schema.json"
_COMMANDS = ("Convert", "Export", "Generate", "Partition", "Reorder", "Sample", "Split", "Stats", "Transform")
_HEAD = '''"""Keyword arguments of graphprep's functions, for type checkers and editors. docs/generated.py writes it."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypedDict

from graphprep.model.graph_config import GraphConfig

'''
_MORE = {
    "ConvertGiven": (
        "decoder_options: Mapping[str, Any]",
        "graph: GraphConfig | None",
        "block_bytes: int",
        "by: str | PathLike[str]",
    )
}
_MORE |= {"PartitionGiven": ("partition_by: str | PathLike[str]",), "StatsGiven": ("histograms: bool",)}
_MORE |= {"ExportGiven": ("target_options: Mapping[str, Any]",)}


def given_types() -> str:
    """Return the stub: a TypedDict for the options of each command, and one for those of a run."""
    classes = [_class("RunGiven", "TypedDict, total=False", declared(graphprep.RunOptions))]
    classes += [
        _class(f"{name}Given", "RunGiven, total=False", declared(getattr(graphprep, f"{name}Options"))) for name in _COMMANDS
    ]
    targets = {name: kind for one in known_targets() for name, kind in option_types(find_exporter(one)).items()}
    own = {name: kind for name, kind in targets.items() if name not in declared(graphprep.ExportOptions)}
    lines = "".join(f"    {name}: {_kind(kind)}\n" for name, kind in sorted(own.items()))
    classes.append(f"class TargetGiven(ExportGiven, total=False):\n{lines}")
    classes.append("class StatsCall(StatsGiven, ConvertGiven, total=False): ...\n")
    return _HEAD + "\n".join(classes)


def _class(name: str, bases: str, options: collections.abc.Mapping[str, Declared]) -> str:
    lines = [f"    {one.name}: {_given(one)}\n" for one in options.values()]
    return f"class {name}({bases}):\n" + "".join([*lines, *(f"    {line}\n" for line in _MORE.get(name, ()))])


def _given(one: Declared) -> str:
    """Return the type of what an option may be given as: one text for a tuple, a path for its text, a number for a mapping."""
    if one.name == "num_nodes":
        return "int | Mapping[str, int]"
    text = _kind(one.kind)
    is_path = any(word in (one.option.metavar or "") for word in ("FILE", "DIR", "METHOD", "ORDER"))
    return text.replace("str", "str | PathLike[str]", 1) if is_path and text.startswith("str") else text


def _kind(kind: Any) -> str:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_kind, inner))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]".replace("'", '"')
    if origin in (tuple, list, collections.abc.Sequence):
        return "str | Sequence[Any]"
    if origin is collections.abc.Mapping:
        return f"Mapping[{', '.join(map(_kind, inner))}]"
    return "None" if kind is types.NoneType else kind.__name__ if isinstance(kind, type) else "Any"


def config_schema() -> str:
    """Return the JSON Schema of files for ``--config``: an object for each command."""
    names = dict.fromkeys(("convert", "plan", "info", "validate", "stats", "merge", *(one.lower() for one in _COMMANDS)))
    commands = {name: {"type": "object", "properties": _properties(name), "additionalProperties": False} for name in names}
    value = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "config.schema.json",
        "title": "Options of a command of graphprep, for --config",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in commands],
        "$defs": commands,
    }
    return json.dumps(value, indent=1) + "\n"


def _properties(command: str) -> dict[str, Any]:
    """Return the options of a command, by their names in Python, as its function has them."""
    found = {}
    app = build_app([command])
    for parameter in inspect.signature(app.registered_commands[0].callback).parameters.values():  # type: ignore[arg-type]
        if parameter.name not in ("config", "help_all", "help_for"):
            kind, *marks = get_args(parameter.annotation)
            option = next((one for one in marks if isinstance(one, Option)), None)
            found[parameter.name] = {"description": option.help if option else marks[0].help, **_schema(kind)}
    bare = app.registered_commands[0].callback.bare_options  # type: ignore[union-attr]
    return {**found, **{name: {} for name in bare}}


def _schema(kind: Any) -> dict[str, Any]:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _schema(next(one for one in inner if one is not types.NoneType))
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is list:
        return {"type": ["string", "array", "object", "number"]}
    return {"type": {int: ["integer", "string"], float: ["number", "string"], bool: "boolean"}.get(kind, ["string", "number"])}


def main() -> int:
    """Write the files; with ``--check`` say only whether they are as they would be written."""
    texts = {TYPES: given_types(), SCHEMA: config_schema()}
    if "--check" in sys.argv:
        return 0 if all(path.is_file() and path.read_text() == text for path, text in texts.items()) else 1
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
