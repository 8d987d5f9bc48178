"""How delimited text is cut into fields, and where its records end if quoted fields may hold line breaks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Grammar:
    """How text is cut into fields: the delimiter (empty: runs of blanks), and what quotes and comments mean."""

    delimiter: bytes
    quoted: bool
    across_lines: bool = False
    comments: bool = True


@dataclass(frozen=True)
class QuotedRecords:
    """The ``RecordEnds`` of delimited text with quotes by RFC 4180. The delimiter is one character.

    ``comments``: lines that begin with ``#`` or ``%`` are none, so that quotes in them mean nothing.
    """

    delimiter: bytes
    comments: bool = False

    def scan(self, piece: bytes, state: int) -> tuple[int, int]:
        """See ``RecordEnds.scan``."""
        from graphprep.kernels.cpu.record_ends import scan_records

        return scan_records(piece, self.delimiter, self.comments, state)

    def ends(self, data: bytes) -> NDArray[np.int64]:
        """See ``RecordEnds.ends``."""
        from graphprep.kernels.cpu.record_ends import list_record_ends

        return list_record_ends(data, self.delimiter, self.comments)
