"""Triples of knowledge graphs: lines ``head relation tail`` of names or numbers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from graphprep.decoders.edges import EdgesDecoder
from graphprep.model.protocols import Sniffed, SniffedFile

_LINES = 200
_LEAST_LINES = 3
_WORD = re.compile(rb"[^\t]*[A-Za-z_/][^\t]*")
_MOST_RELATIONS = 0.5  # of the lines, before the middle column looks like names of their own


@dataclass(frozen=True)
class TriplesDecoder(EdgesDecoder):
    """Decodes triples: the ``edges`` decoder with columns 0, 1 and 2 for head, relation and tail, and IDs of any kind.

    Source: the text files of FB15k, WN18, UMLS and the like.
    """

    dst_col: str | None = "2"
    relation_col: str | None = "1"
    id_type: Literal["int", "uint", "string", "auto"] | None = "auto"

    name: ClassVar[str] = "triples"

    @staticmethod
    def sniff(file: SniffedFile) -> Sniffed | None:
        """Bid for lines of three columns between tabs, of which the middle one repeats and is made of words."""
        lines = file.head.splitlines()[: _LINES + 1]
        if not file.complete and len(lines) <= _LINES:
            lines = lines[:-1]
        rows = [line.split(b"\t") for line in lines[:_LINES] if line.strip()]
        if len(rows) < _LEAST_LINES or any(len(row) != 3 or not all(row) for row in rows):
            return None
        heads, relations, tails = ({row[i] for row in rows} for i in range(3))
        if len(relations) > min(_MOST_RELATIONS * len(rows), len(tails)) or not all(map(_WORD.fullmatch, relations)):
            return None
        if any(map(_WORD.fullmatch, heads)) and not any(map(_WORD.fullmatch, tails)):
            return None  # names of both ends, and a weight
        return Sniffed("triples", 0.85, ("--format", "triples"))


__all__ = ["TriplesDecoder"]
