"""How delimited text is cut into fields, and where its records end if fields may hold line breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

_CLOSING = re.compile(rb'[^"]*+(?:""[^"]*+)*+"')

if TYPE_CHECKING:
    from graphprep.kernels.cpu.text.record_ends import RecordRules


@dataclass(frozen=True)
class Dialect:
    """How text is cut into fields: the delimiter (empty: runs of blanks), and what quotes, comments and escapes mean.

    ``comments`` are the characters that begin a comment line, blanks before them; ``escape`` (empty: none) makes text of the
    character behind it, in quotes or without. With ``keep_tabs``, tabs that separate are no blanks.
    """

    delimiter: bytes
    quoted: bool
    across_lines: bool = False
    comments: bytes = b"#%"
    keep_tabs: bool = False
    escape: bytes = b""

    @property
    def record_ends(self) -> FieldRecords | None:
        """Return where records end, None where that is at each line feed."""
        return FieldRecords(self) if self.escape or (self.quoted and self.across_lines) else None


@dataclass(frozen=True)
class FieldRecords:
    """The ``RecordEnds`` of delimited text whose fields may hold line breaks: quoted by RFC 4180, or escaped."""

    grammar: Dialect

    def scan(self, piece: bytes, state: int) -> tuple[int, int]:
        """See ``RecordEnds.scan``."""
        from graphprep.kernels.cpu.text.record_ends import scan_records

        return scan_records(piece, self._rules(), state)

    def ends(self, data: bytes) -> NDArray[np.int64]:
        """See ``RecordEnds.ends``."""
        from graphprep.kernels.cpu.text.record_ends import list_record_ends

        return list_record_ends(data, self._rules())

    def open_quote(self, data: bytes) -> int:
        """See ``RecordEnds.open_quote``. The cost is a step for each quote."""
        grammar, at = self.grammar, 0
        if not grammar.quoted:
            return -1
        opening = re.compile(rb"(?:\A|\n|" + (re.escape(grammar.delimiter) or rb"[ \t]") + rb')(")')
        while (found := opening.search(data, at)) is not None:
            closing = _CLOSING.match(data, found.end())
            if closing is None:
                return found.start(1)
            at = closing.end()
        return -1

    def _rules(self) -> RecordRules:
        from graphprep.kernels.cpu.text.record_ends import RecordRules

        grammar = self.grammar
        return RecordRules(grammar.delimiter, grammar.comments, grammar.keep_tabs, grammar.escape, grammar.quoted)
