"""Texts of many rows as arrays, put together row by row: how lines are made of columns without a loop over records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.bytes.place import place_bytes, replace_bytes
from graphprep.kernels.cpu.text.check import find_not_utf8
from graphprep.kernels.cpu.text.write_text import write_integers
from graphprep.storage.read.arrow_arrays import arrow_array

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Texts:
    """Text i is ``source[starts[i]:starts[i] + sizes[i]]``: uint8, int64[k], int64[k]."""

    source: Bytes
    starts: Ints
    sizes: Ints

    @classmethod
    def packed(cls, source: Bytes, sizes: Ints) -> Texts:
        """Return texts that lie one behind the other."""
        return cls(source, np.cumsum(sizes) - sizes, sizes)

    @classmethod
    def repeated(cls, text: bytes, count: int) -> Texts:
        """Return one text many times."""
        return cls(np.frombuffer(text, np.uint8), np.zeros(count, np.int64), np.full(count, len(text), np.int64))

    @classmethod
    def chosen(cls, texts: Sequence[bytes], which: Ints) -> Texts:
        """Return text ``which[i]`` for every i."""
        found = cls.packed(np.frombuffer(b"".join(texts), np.uint8), np.array([len(text) for text in texts], np.int64))
        return found.take(which)

    def take(self, rows: Ints) -> Texts:
        """Return the texts of some rows, in any order."""
        return Texts(self.source, self.starts[rows], self.sizes[rows])

    def where(self, mask: NDArray[np.bool_]) -> Texts:
        """Return the texts for which ``mask`` holds, and nothing in place of the others."""
        return Texts(self.source, self.starts, self.sizes * mask)

    def grouped(self, counts: Ints) -> Texts:
        """Join ``counts[i]`` texts, which lie one behind the other, to text i."""
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])
        bounds = ends[np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])]
        return Texts(self.source, bounds[:-1], np.diff(bounds))

    @property
    def data(self) -> Bytes:
        """Return all texts one behind the other; they lie so."""
        return self.source[: int(self.sizes.sum())]


def join_texts(*fields: Texts | bytes, size: int) -> Texts:
    """Join texts row by row; bytes stand in every one of the ``size`` rows."""
    columns = [Texts.repeated(field, size) if isinstance(field, bytes) else field for field in fields]
    sizes = np.zeros(size, np.int64)
    for column in columns:
        sizes += column.sizes
    ats = np.cumsum(sizes) - sizes
    out = np.empty(int(sizes.sum()), np.uint8)
    found = Texts(out, ats.copy(), sizes)
    for column in columns:
        place_bytes(column.source, column.starts, column.sizes, out, ats)
        ats += column.sizes
    return found


def number_texts(values: NDArray[Any], *, as_json: bool = False) -> Texts:
    """Write numbers as the shortest texts that read back the same; bools as 0 and 1, complex ones as ``1+2j``.

    JSON has other words for what is not finite, and would read ``-0`` as an integer.
    """
    if values.dtype.kind == "c":
        return _complex_texts(values)
    if values.dtype.kind == "b":
        values = values.view(np.uint8)
    if values.dtype == np.float16:
        values = values.astype(np.float32)
    if values.dtype.kind in "iu" and (not values.size or (int(values.min()) >= 0 and int(values.max()) < 2**63)):
        return Texts.packed(*write_integers(values.astype(np.uint64)))
    found = _arrow_texts(values)
    if as_json and values.dtype.kind == "f":
        return _json_numbers(values, found)
    return found


def _json_numbers(values: NDArray[Any], texts: Texts) -> Texts:
    words = (b"NaN", b"Infinity", b"-Infinity", b"-0.0")
    masks = (np.isnan(values), values == np.inf, values == -np.inf, (values == 0) & np.signbit(values))
    odd = np.flatnonzero(np.logical_or.reduce(masks))
    if not odd.size:
        return texts
    which = np.select([mask[odd] for mask in masks], [0, 1, 2, 3])
    spelled = Texts.chosen(words, which)
    source = np.concatenate([texts.source, spelled.source])
    starts, sizes = texts.starts.copy(), texts.sizes.copy()
    starts[odd], sizes[odd] = spelled.starts + texts.source.size, spelled.sizes
    return join_texts(Texts(source, starts, sizes), size=values.size)


def _complex_texts(values: NDArray[Any]) -> Texts:
    signs = Texts.chosen((b"+", b""), (np.signbit(values.imag) & ~np.isnan(values.imag)).astype(np.int64))
    return join_texts(number_texts(values.real), signs, number_texts(values.imag), b"j", size=values.size)


def _arrow_texts(values: NDArray[Any]) -> Texts:
    import pyarrow as pa

    array = arrow_array(values).cast(pa.large_string())
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[: len(array) + 1] if len(array) else np.zeros(1, np.int64)
    source = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)[: int(ends[-1])]
    return Texts(source, ends[:-1].copy(), np.diff(ends))


def find_other_bytes(texts: Texts) -> int:
    """Return the first text (of those one behind the other) that is not UTF-8; -1: none."""
    import pyarrow as pa

    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(texts.sizes)])
    source = np.ascontiguousarray(texts.data)
    try:
        pa.LargeStringArray.from_buffers(texts.sizes.size, pa.py_buffer(offsets), pa.py_buffer(source)).validate(full=True)
    except pa.ArrowInvalid:
        return int(np.argmax(find_not_utf8(offsets, source)))
    return -1


class Replacements:
    """What single bytes are written as; ``line_ends``: and U+0085, U+2028 and U+2029, in six bytes each."""

    def __init__(self, replaced: dict[bytes, bytes], line_ends: Sequence[bytes] = ()) -> None:
        self._table = np.zeros((256, 6), np.uint8)
        self._table[:, 0] = np.arange(256)
        self._widths = np.ones(256, np.int64)
        for one, text in replaced.items():
            self._table[one[0], : len(text)] = np.frombuffer(text, np.uint8)
            self._widths[one[0]] = len(text)
        self._line_ends = np.array([list(text) for text in line_ends], np.uint8).reshape(-1, 6)

    def write(self, texts: Texts) -> Texts:
        """Return texts with the bytes replaced."""
        offsets, out = replace_bytes(texts.source, texts.starts, texts.sizes, self._table, self._widths, self._line_ends)
        return Texts(out, offsets[:-1].copy(), np.diff(offsets))


def find_bytes(texts: Texts, wanted: bytes) -> int:
    """Return the first text (of those one behind the other) with one of some bytes, or with a line end of Unicode; -1: none."""
    mask = np.zeros(256, bool)
    mask[list(wanted)] = True
    source = texts.data
    hits = mask[source]
    two, three = source[:-1] == 0xC2, source[:-2] == 0xE2
    if two.any():
        hits[:-1] |= two & (source[1:] == 0x85)
    if three.any():
        hits[:-2] |= three & (source[1:-1] == 0x80) & ((source[2:] == 0xA8) | (source[2:] == 0xA9))
    if not hits.any():
        return -1
    return int(np.searchsorted(np.cumsum(texts.sizes), int(np.argmax(hits)), side="right"))


def find_odd_escapes(texts: Texts, escape: int, delimiter: int) -> int:
    """Return the first text with an odd number of escapes before a delimiter or at its end; -1: none.

    The texts lie one behind the other.
    """
    source = texts.data
    is_escape = source == escape
    if not is_escape.any():
        return -1
    places = np.arange(source.size)
    ends = np.cumsum(texts.sizes)
    begins = np.repeat(ends - texts.sizes, texts.sizes)
    last_other = np.maximum.accumulate(np.where(is_escape, -1, places))
    runs = places - np.maximum(last_other, begins - 1)  # escapes up to a place, in its text
    odd = is_escape & (runs % 2 == 1)
    is_last = np.zeros(source.size, bool)
    is_last[ends[texts.sizes > 0] - 1] = True
    before = np.append(source[1:] == delimiter, False)
    bad = odd & (is_last | before)
    return int(np.searchsorted(ends, int(np.argmax(bad)), side="right")) if bad.any() else -1
