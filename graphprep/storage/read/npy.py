"""Headers of ``.npy`` files, read without trusting them."""

from __future__ import annotations

import ast
import math
import re
import warnings
from typing import NamedTuple

import numpy as np

from graphprep.model.errors import DataError
from graphprep.model.syntax import PARSER

MAGIC = b"\x93NUMPY"
MAX_HEADER_BYTES = 1 << 16  # what format 1.0 can hold; those of numbers take 128 bytes
_MAX_TEXT_BYTES = 1 << 16  # of one text, as wide as the longest
_MAX_DIMENSIONS = 32  # NumPy 1's limit
_MAX_BYTES = 1 << 63
_DESCR = re.compile(r"[<>|=]?[?a-zA-Z][0-9]{0,8}")  # nothing else can be a dtype that is read
_SHOWN = 60  # characters of what a header holds, in a message


class NpyHeader(NamedTuple):
    """What a header says. ``data_start`` is the byte where the array begins."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran_order: bool
    data_start: int

    @property
    def num_bytes(self) -> int:
        """Return the size of the whole file."""
        return self.data_start + math.prod(self.shape) * self.dtype.itemsize


def parse_npy_header(head: bytes, place: str, *, texts: bool = False) -> NpyHeader:
    """Read a header (format 1.0, 2.0 or 3.0) from a file's first bytes; ``MAX_HEADER_BYTES`` and 12 more always suffice.

    Raises DataError where it is not one, for object and structured arrays, which are never loaded, and unless ``texts`` for
    texts of a fixed width.
    """
    if not head.startswith(MAGIC) or len(head) < 10 or head[6] not in (1, 2, 3):
        raise DataError("not a .npy file", place=place, fix="write it with numpy.save")
    width = 2 if head[6] == 1 else 4
    begin = 8 + width
    length = int.from_bytes(head[8:begin], "little")
    if length > MAX_HEADER_BYTES or len(head) < begin + length:
        raise DataError("the .npy header is truncated or absurdly long", place=place, fix="write the file again")
    descr, fortran_order, shape = _read_fields(head[begin : begin + length], place)
    header = NpyHeader(_read_dtype(descr, place, texts), shape, fortran_order, begin + length)
    if math.prod(size or 1 for size in shape) * max(header.dtype.itemsize, 1) >= _MAX_BYTES:
        raise DataError(
            f"the .npy header has shape {_show(shape)}, which no file can hold",
            place=place,
            fix="write the file with numpy.save",
        )
    return header


def _read_fields(text: bytes, place: str) -> tuple[object, bool, tuple[int, ...]]:
    try:
        with PARSER, warnings.catch_warnings(action="ignore"):  # Python's, of odd literals in damaged headers
            fields = ast.literal_eval(text.decode("latin1").strip())
        descr, fortran_order, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise DataError("the .npy header cannot be read", place=place, fix="write the file with numpy.save") from error
    valid = isinstance(shape, tuple) and len(shape) <= _MAX_DIMENSIONS and all(map(_is_length, shape))
    if not valid or not isinstance(fortran_order, bool):
        raise DataError(f"the .npy header has shape {_show(shape)}", place=place, fix="write the file with numpy.save")
    return descr, fortran_order, shape


def _is_length(size: object) -> bool:
    return type(size) is int and 0 <= size < _MAX_BYTES


def _show(value: object) -> str:
    """Write what a header holds as Python does, cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # Python writes no integer of thousands of digits
        return "that is absurdly long"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _read_dtype(descr: object, place: str, texts: bool) -> np.dtype[np.generic]:
    if isinstance(descr, str) and _DESCR.fullmatch(descr):
        try:
            with warnings.catch_warnings(action="ignore"):  # NumPy's, of old names
                dtype = np.dtype(descr)
        except (TypeError, ValueError, OverflowError):
            dtype = np.dtype(object)
        if dtype.kind in "biufc" and dtype.itemsize <= 16 and dtype not in (np.longdouble, np.clongdouble):
            return dtype
        if texts and dtype.kind in "US" and 0 < dtype.itemsize <= _MAX_TEXT_BYTES:
            return dtype
    what = "numbers, booleans or texts of a fixed width" if texts else "numbers or booleans"
    raise DataError(
        f"the array has dtype {_show(descr)}, which is not read",
        place=place,
        fix=f"store {what}{'' if texts else ' of at most 64 bits'}",
    )
