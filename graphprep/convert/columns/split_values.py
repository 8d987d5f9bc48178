"""What the cells of a split column and of masks say: parts and booleans."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import OwnerRoles
from graphprep.convert.columns.schema_guard import Misfit
from graphprep.kernels.cpu.text.dictionary import TextDictionary
from graphprep.model.rows import ColumnKey
from graphprep.store.columns.cells import Cells

Codes = NDArray[np.int8]
BAD = -1  # a code for what is neither

_PARTS = {b"0": 0, b"train": 0, b"1": 1, b"valid": 1, b"val": 1, b"validation": 1, b"2": 2, b"test": 2}
_BOOLS = {b"0": 0, b"false": 0, b"1": 1, b"true": 1}
_SHOWN = 40  # characters of a value in a message


def find_split_misfit(roles: OwnerRoles, key: ColumnKey, cells: Cells) -> Misfit | None:
    """Return the first row whose value is no part of a split, or no value of a mask, where the column is one."""
    if roles.split is None or key.role is not None or key.name not in roles.split.columns or not cells.num_rows:
        return None
    is_mask = len(roles.split.columns) > 1
    if not is_mask and key.dtype == "bool":
        return None  # no row is to blame: it is a mask
    codes = mask_codes(key, cells) if is_mask else split_codes(key, cells)
    bad = np.flatnonzero(codes == BAD)
    if not bad.size:
        return None
    row = int(bad[0])
    return Misfit(row, bad_value(key, cells, row, is_mask), "correct the value, or leave it out where the row is in no part")


def bad_value(key: ColumnKey, cells: Cells, row: int, is_mask: bool) -> str:
    """Word what is wrong with one row's value."""
    wanted = "a mask must be 0, 1, true or false" if is_mask else "a split must be 0, 1, 2, train, valid or test"
    return f"column {key.name!r}: {wanted}, found {_shown(key, cells.take(np.array([row])))}"


def _shown(key: ColumnKey, cell: Cells) -> str:
    if key.family == "binary":
        text = cell.flat.tobytes().decode("utf-8", "backslashreplace")
        return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "…")
    if key.family != "numbers":
        return f"a {key.family} value"
    values = cell.flat.tolist()
    return str(values[0]) if len(values) == 1 else f"{len(values)} values"


def split_codes(key: ColumnKey, cells: Cells) -> Codes:
    """Return the part of every row: 0 (train), 1 (valid), 2 (test), or BAD."""
    return _codes(key, cells, _PARTS, 3)


def mask_codes(key: ColumnKey, cells: Cells) -> Codes:
    """Return what a mask says of every row: 0, 1, or BAD."""
    return _codes(key, cells, _BOOLS, 2)


def _codes(key: ColumnKey, cells: Cells, names: dict[bytes, int], limit: int) -> Codes:
    """Return whole numbers below ``limit``, and the codes of names; BAD where a row has anything else, or not one value."""
    if key.family == "binary":
        return _text_codes(cells, names)
    codes = np.full(cells.num_rows, BAD, np.int8)
    if key.family != "numbers" or cells.values.dtype.kind not in "biuf":
        return codes
    counts = cells.value_counts
    single = np.flatnonzero(counts == 1)
    values = cells.flat if single.size == counts.size else cells.flat[(np.cumsum(counts) - counts)[single]]
    sound = np.isin(values, np.arange(limit))
    codes[single[sound]] = values[sound].astype(np.int8)
    return codes


def _text_codes(cells: Cells, names: dict[bytes, int]) -> Codes:
    """Look texts up, in any case."""
    values = cells.flat.view(np.uint8)
    lower = np.where((values >= ord("A")) & (values <= ord("Z")), values | 0x20, values).astype(np.uint8)
    offsets = np.zeros(cells.num_rows + 1, np.int64)
    np.cumsum(cells.item_counts, out=offsets[1:])
    dictionary, codes = _dictionary(tuple(names.items()))
    found: Codes = codes[dictionary.find(offsets, lower)]
    return found


@cache
def _dictionary(names: tuple[tuple[bytes, int], ...]) -> tuple[TextDictionary, Codes]:
    """Return the names, and their codes with BAD at the end: a name that is not there has the number -1."""
    return TextDictionary.of([name for name, _ in names]), np.array([code for _, code in names] + [BAD], np.int8)
