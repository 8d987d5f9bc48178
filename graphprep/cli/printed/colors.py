"""Colors on a terminal: what of a text they mark, and whether anybody wants them.

Written by hand: rich, which could, takes a third of a second to load.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TextIO

_BOLD, _DIM, _RED, _GREEN, _YELLOW = "1", "2", "1;31", "32", "33"
_MARKED = (
    (re.compile(r"^(error:)", re.M), _RED),
    (re.compile(r"^(  fix:)", re.M), _GREEN),
    (re.compile(r"^(  (?:note|left out):)", re.M), _YELLOW),
    (re.compile(r"((?<=\.\.\. )and [\d,]+ more.*)$", re.M), _DIM),
)
_HEAD = re.compile(r"^(?!error:)(\S[^\n]*?)(?=: |$)")  # of a result: what it is about
_TITLE = re.compile(r"^(Usage:|[A-Z][^.\n]*:$)", re.M)  # of a part of a help page
_off: list[bool] = []


def turn_off(args: Sequence[str]) -> None:
    """Leave colors out for the command line ``args`` if it says so; what another one said is forgotten."""
    _off[:] = [True] * ("--no-color" in args)


def wants_color(stream: TextIO) -> bool:
    """Return whether a stream gets colors: a terminal that nobody asked to stay without, or what FORCE_COLOR names."""
    if _off or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def painted(text: str, stream: TextIO, *, has_head: bool = False, is_help: bool = False) -> str:
    """Mark errors, fixes and notes of a text, and its head or the titles of a help page, where the stream gets colors."""
    if not wants_color(stream):
        return text
    marked = (*_MARKED, *([(_HEAD, _BOLD)] if has_head else ()), *([(_TITLE, _BOLD)] if is_help else ()))
    for pattern, style in marked:
        text = pattern.sub(f"\x1b[{style}m\\1\x1b[0m", text)
    return text
