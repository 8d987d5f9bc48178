"""Notes which tests reach which mutants: Python imports a module of this name first, where its folder is on the path.

``marks`` in the folder above the copied tree says where the mutants stand, a line each: number, place. There, calls are put into
the syntax trees of our modules as these are imported; no file changes, so that what is kept of compiled kernels stays valid.
``reached`` beside it gets the lines ``number test``.
"""

from __future__ import annotations

import ast
import builtins
import os
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

HOME = Path(__file__).resolve().parents[3]
PLACES: dict[str, list[str]] = {}  # file:line or module.kernel -> numbers of mutants
FILES: set[str] = set()
SEEN: set[tuple[str, str]] = set()
_open, _write, _close = os.open, os.write, os.close  # tests put others in their place
_compile = SourceFileLoader.source_to_code


def note(place: str) -> None:
    """Write down that the current test reached a place."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "")  # children inherit it
    if test and (place, test) not in SEEN:
        SEEN.add((place, test))
        text = "".join(f"{number} {test.rpartition(' (')[0]}\n" for number in PLACES.get(place, ()))
        with suppress(OSError):
            file = _open(HOME / "reached", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            _write(file, text.encode())
            _close(file)


def marked(tree: ast.Module, path: str) -> ast.Module:
    """Put calls of ``note`` before the statements where mutants stand, and into ``Kernel.__call__``."""
    for node in list(ast.walk(tree)):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            for statement in list(body) if isinstance(body, list) else ():
                if f"{path}:{statement.lineno}" in PLACES:
                    call = ast.parse(f"note_mutants({f'{path}:{statement.lineno}'!r})").body[0]
                    body.insert(body.index(statement), at_place_of(statement, call))
        if isinstance(node, ast.FunctionDef) and node.name == "__call__" and path.endswith("/jit.py"):
            call = ast.parse("note_mutants(f'{self.__module__}.{self.__name__}')").body[0]
            node.body.insert(1, at_place_of(node.body[1], call))
    return tree


def at_place_of(statement: ast.stmt, new: ast.stmt) -> ast.stmt:
    for node in ast.walk(new):
        ast.copy_location(node, statement)
    return new


def source_to_code(self: SourceFileLoader, data: Any, path: Any, **options: Any) -> Any:
    if path in FILES:
        data = marked(ast.parse(data), path)
    return _compile(self, data, path, **options)


if (HOME / "marks").is_file():
    for line in (HOME / "marks").read_text().splitlines():
        number, place = line.split(" ", 1)
        PLACES.setdefault(place, []).append(number)
    FILES |= {place.rpartition(":")[0] for place in PLACES if ":" in place}
    FILES |= {str(path) for path in HOME.glob("tree/graphprep/**/jit.py")}
    builtins.note_mutants = note  # type: ignore[attr-defined]
    SourceFileLoader.source_to_code = source_to_code  # type: ignore[method-assign,assignment]
