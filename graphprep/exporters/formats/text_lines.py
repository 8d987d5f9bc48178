"""Columns as lines of text, for formats of one record a line. Numbers read back as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.write_text import INTEGER, SLACK_BYTES, Template, write_rows
from graphprep.model.errors import DataError
from graphprep.model.rows import RawTexts
from graphprep.storage.read.arrow_arrays import arrow_array, arrow_null, arrow_text
from graphprep.store.columns.arrow import text_array

Array = NDArray[Any]

_WHOLE = r"^-?[0-9]+$"  # how whole floats come out


@dataclass(frozen=True)
class TextColumn:
    """A column of a block: numbers [k] or texts, and which rows have a value (bool[k], None: all)."""

    values: Array | RawTexts
    present: NDArray[np.bool_] | None = None

    @property
    def is_count(self) -> bool:
        """Return whether all are integers from 0 to 2^63 - 1."""
        if self.present is not None or isinstance(self.values, RawTexts) or self.values.dtype.kind not in "iub":
            return False
        return not self.values.size or (int(self.values.min()) >= 0 and int(self.values.max()) < 2**63)


class LineWriter:
    """Makes lines of columns: cells separated by ``separator`` (one ASCII character), a line feed behind each line.

    With ``quoting``, a regular expression, texts that match it stand in double quotes, those inside doubled; then a text with a
    null byte is a DataError, as readers take such files for binary data. A missing value is an empty cell. Floats are the
    shortest texts that read back the same, with a point or an exponent; bools are 0 and 1.
    """

    def __init__(self, separator: str, quoting: str | None = None) -> None:
        self._separator = separator
        self._quoting = quoting
        self.has_breaks = False  # within texts that were written

    def lines(self, columns: Sequence[TextColumn]) -> memoryview:
        """Return the lines of a block of rows."""
        if all(column.is_count for column in columns):
            return self._count_lines([np.asarray(column.values, np.int64) for column in columns])
        return self._other_lines(columns)

    def _count_lines(self, columns: Sequence[NDArray[np.int64]]) -> memoryview:
        line, fields = count_fields(len(columns), self._separator)
        template = Template.parse(f"{line}\n", fields)
        rows = columns[0].size
        out = np.empty(rows * template.row_bytes + SLACK_BYTES, np.uint8)
        return out[: write_rows(template, np.stack(columns), rows, out)].data

    def _other_lines(self, columns: Sequence[TextColumn]) -> memoryview:
        cells = [self._cells(column) for column in columns]
        joined = _join(*cells, by=self._separator)
        ended = _join(joined, _text(""), by="\n")
        _, offsets, data = ended.buffers()
        if data is None:
            return memoryview(b"")
        return memoryview(data)[: int(np.frombuffer(offsets, np.int64)[len(ended)])]

    def _cells(self, column: TextColumn) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        values, missing = column.values, None if column.present is None else ~column.present
        if isinstance(values, RawTexts):
            texts = text_array(values)
            if self._quoting is not None:
                texts = self._quoted(texts, self._quoting)
            return texts if missing is None else pc.if_else(arrow_array(missing), arrow_null(texts.type), texts)
        if values.dtype.kind == "b":
            values = values.view(np.uint8)
        if values.dtype == np.float16:
            values = values.astype(np.float32)
        texts = pc.cast(arrow_array(values, missing=missing), pa.large_string())
        if values.dtype.kind != "f":
            return texts
        return pc.if_else(pc.match_substring_regex(texts, _WHOLE), _join(texts, _text(".0")), texts)

    def _quoted(self, texts: Any, pattern: str) -> Any:
        import pyarrow.compute as pc

        wanted = pc.match_substring_regex(texts, pattern)
        if not pc.any(wanted).as_py():
            return texts
        if pc.any(found := pc.match_substring(texts, "\0")).as_py():
            text = texts.filter(found)[0].as_py()
            raise DataError(f"{text!r} has a null byte, which lines of text cannot hold", fix="export to parquet or npy")
        self.has_breaks = self.has_breaks or bool(pc.any(pc.match_substring_regex(texts, "[\r\n]")).as_py())
        inside = pc.replace_substring(texts, '"', '""')
        return pc.if_else(wanted, _join(_text('"'), inside, _text('"')), texts)


def count_fields(width: int, separator: str) -> tuple[str, dict[str, tuple[int, int]]]:
    """Return the template of so many integers between separators, and its fields."""
    fields = {chr(ord("a") + at // 26) + chr(ord("a") + at % 26): (INTEGER, at) for at in range(width)}
    return separator.join(f"<{name}>" for name in fields), fields


def _join(*cells: Any, by: str = "") -> Any:
    """Join texts row by row; a missing one counts as empty."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise(*cells, _text(by), null_handling="replace", null_replacement="")


def _text(text: str) -> Any:
    import pyarrow as pa

    return arrow_text(text, pa.large_string())
