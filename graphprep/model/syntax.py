"""Python's own parser, one thread at a time: in Python 3.11 two that build syntax trees at once may end with SystemError."""

from __future__ import annotations

import ast
import threading
from typing import Any

_LOCK = threading.Lock()


def parse_source(source: str) -> ast.Module:
    """Parse statements. Raises SyntaxError."""
    with _LOCK:
        return ast.parse(source)


def parse_literal(text: str) -> Any:
    """Evaluate a literal. Raises what ``ast.literal_eval`` does."""
    with _LOCK:
        return ast.literal_eval(text)
