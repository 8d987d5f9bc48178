"""How texts and numbers are shown.

Texts from outside: in one line, without what a terminal would obey, and without secrets. Sizes, durations and counts: in the
user's words.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

# A password may hold a slash, as secret keys do; a port before one is no password.
_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):(?:[^/\s]*|(?!\d+/)[^\s'\"]*)@")
_TOKEN = re.compile(r"(?<=http://|ttps://)[^/@:\s]+@")  # of HTTP a user without a password is one
_QUERY = re.compile(r"(https?://[^\s?'\"]*)\?[^\s'\"]*")
_SIGNED = re.compile(  # up to a colon that a message goes on with
    r"([?&](?:X-Amz-[A-Za-z-]+|AWSAccessKeyId|Signature|sig|token|key|password)=)[^&\s'\"]+?(?=:?(?:[&\s'\"]|$))",
    re.IGNORECASE,
)
_LONG_WORD = re.compile(r"([^ ]{300})[^ ]{701,}")  # a name that floods the terminal; paths are shorter
_LEAST_SECRET = 4  # shorter values would hide ordinary words
_SECRET_VARIABLES = (
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_CONNECTION_STRING",
)
_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")
_QUANTITIES = ("", "k", "M", "G", "T")
_secrets: set[str] = set()  # of this process: whoever prints must hide them, wherever they came from


def keep_secret(text: str) -> None:
    """Let no message print ``text`` from now on."""
    if len(text) >= _LEAST_SECRET:
        _secrets.add(text)


def without_secrets(text: str) -> str:
    """Return a message without what must not be printed: secret options, credentials, passwords and signatures in URLs."""
    secrets = set(_secrets)
    for name in _SECRET_VARIABLES:
        if len(os.environ.get(name, "")) >= _LEAST_SECRET:
            secrets.add(os.environ[name])
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    if "://" not in text and "=" not in text:
        return text
    return _SIGNED.sub(r"\1…", _QUERY.sub(r"\1", _TOKEN.sub("…@", _PASSWORD.sub(r"\1:…@", text))))


def hide_secrets(value: Any) -> Any:
    """Return a value of JSON whose texts hold no secrets; keys stay as they are."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {key: hide_secrets(item) for key, item in value.items()}
    return [hide_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def printable(text: str) -> str:
    """Write characters that a terminal would obey or not show (line ends, escape sequences) as Python writes them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def shown(text: str) -> str:
    """Return one line of what a run says: printable, without secrets, and with words of a thousand characters at most."""
    return _LONG_WORD.sub(lambda found: f"{found[1]}… ({len(found[0]):,} characters)", printable(without_secrets(text)))


display_url = shown  # of a path or URL: without passwords and the query of an HTTP URL (signatures)


def lines_text(lines: Iterable[str]) -> str:
    """Join lines; a name in one of them cannot break it."""
    return "\n".join(map(printable, lines))


def json_text(value: Any, indent: int | None = 2) -> str:
    """Write JSON in which non-ASCII letters stand as they are, and what does not print as an escape."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)


def strict_numbers(value: Any) -> Any:
    """Return a value of JSON in which numbers that JSON lacks (NaN, inf) are texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: strict_numbers(item) for key, item in value.items()}
    return [strict_numbers(item) for item in value] if isinstance(value, list | tuple) else value


def _scale(value: float, units: Sequence[str]) -> tuple[float, str]:
    for unit in units[:-1]:
        if abs(value) < 999.5:
            return value, unit
        value /= 1000
    return value, units[-1]


def size(num_bytes: float) -> str:
    """Write a size in powers of 1000: ``12 B``, ``3.4 MB``."""
    value, unit = _scale(num_bytes, _SIZES)
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"


def quantity(number: float) -> str:
    """Write a number for reading at a glance: ``812``, ``3.4M``."""
    value, unit = _scale(number, _QUANTITIES)
    return f"{value:.0f}{unit}" if not unit or value >= 99.95 else f"{value:.1f}{unit}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Write an exact number and its noun: ``1 node``, ``12,345 nodes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Write a duration: ``0.12 s``, ``45 s``, ``3:07``, ``2:03:07``."""
    if seconds < 59.5:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
