"""The outermost keys of a YAML or JSON document, of which perhaps only the beginning is there."""

from __future__ import annotations

import json

from graphprep.model.protocols import SniffedFile


def document_keys(file: SniffedFile) -> list[str]:
    """List the outermost keys of what may be a YAML or JSON document, as far as its beginning shows them."""
    if file.head.lstrip()[:1] == b"{":
        return _json_keys(file.head.decode(errors="replace"))
    keys = []
    for line in file.head.decode(errors="replace").splitlines():
        if not line or line[0] in " \t#-":
            continue
        if line.startswith("---"):
            continue
        key, colon, rest = line.partition(":")
        if not colon or (rest and not rest[0].isspace()):
            return []
        keys.append(key.strip().strip("'\""))
    return keys


def _json_keys(text: str) -> list[str]:
    """List the keys of the outermost object; a document that is cut off shows those that come before the cut."""
    keys: list[str] = []
    decoder, depth, at = json.JSONDecoder(), 0, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            try:
                word, at = decoder.raw_decode(text, at)
            except ValueError:
                return keys
            if depth == 1 and text[at:].lstrip()[:1] == ":":
                keys.append(word)
            continue
        depth += (char in "{[") - (char in "}]")
        at += 1
        if depth == 0 and char == "}":
            return keys if not text[at:].strip() else []  # several documents: JSON lines
    return keys


__all__ = ["document_keys"]
