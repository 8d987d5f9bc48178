"""Numbers of columns, computed as Python's are: integers exactly, in 64 bits or with an error, floats as float64."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

LOWEST, HIGHEST, MOST = -(2**63), 2**63 - 1, 2**64 - 1  # of int64 and uint64
_EXACT = 2**53  # integers up to here are floats, too


def negative(value: Any) -> Any:
    """Return a value with the other sign. Raises OverflowError where an integer is beyond 64 bits, TypeError for bools."""
    if _kind(value) == "b" and isinstance(value, np.ndarray):
        return np.negative(value)
    return computed(operator.sub, 0, value) if _kind(value) in "iu" else -_as_float(value)


def computed(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return what ``left + right``, or another sign of arithmetic, is: of arrays [n], and numbers.

    Raises OverflowError where an integer is beyond 64 bits, ZeroDivisionError for integers % 0, and what NumPy does.
    """
    if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
        return sign(left, right)
    kinds = _kind(left) + _kind(right)
    if sign is operator.sub and kinds == "bb":
        return np.subtract(left, right)  # which NumPy refuses, with what to write instead
    if sign is operator.truediv or set(kinds) & set("fc"):
        with np.errstate(all="ignore"):
            return sign(_as_float(left), _as_float(right))
    return _integers(sign, _as_integers(left), _as_integers(right))


def compared(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Return whether ``left < right``, or another comparison, holds, exactly, whatever the dtypes are.

    A float beside a column of narrower ones is rounded to their dtype: 0.7 is 0.7 as float32.
    """
    with np.errstate(invalid="ignore"):  # NaN beside integers of Python
        return sign(_beside(left, right), _beside(right, left))


def _beside(value: Any, other: Any) -> Any:
    """Return a side of a comparison as what NumPy compares exactly with the other one."""
    kinds = _kind(value) + _kind(other)
    if kinds in ("if", "uf"):
        if not _is_small(value):
            float(max(map(abs, _bounds(value))))  # OverflowError for what no float is near to
            return np.asarray(value).astype(object)
        return value if isinstance(value, np.ndarray) else np.float64(value)
    if kinds == "ff" and not isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        with np.errstate(over="ignore"):
            rounded = other.dtype.type(value)
        return np.float64(value) if np.isinf(rounded) and not np.isinf(value) else rounded
    return value


def _kind(value: Any) -> str:
    """Return the kind of a dtype: b, i, u, f or c; i also for integers of Python, and those that are exact."""
    if isinstance(value, np.ndarray):
        return "i" if value.dtype == object else value.dtype.kind
    return "b" if isinstance(value, bool | np.bool_) else "i" if isinstance(value, int) else "f"


def _is_small(value: Any) -> bool:
    """Return whether all integers are floats, too."""
    low, high = _bounds(value)
    return low >= -_EXACT and high <= _EXACT


def _as_float(value: Any) -> Any:
    """Return float64, or complex128. Raises OverflowError for a number that is no float."""
    if isinstance(value, np.ndarray):
        return value.astype(np.complex128 if value.dtype.kind == "c" else np.float64)
    return np.float64(float(value))


def _as_integers(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype == object:
        return value
    return value.astype(np.uint64 if value.dtype == np.uint64 else np.int64) if isinstance(value, np.ndarray) else int(value)


def _bounds(value: Any) -> tuple[int, int]:
    """Return the least and the greatest of some integers."""
    if not isinstance(value, np.ndarray):
        return int(value), int(value)
    return (int(value.min()), int(value.max())) if value.size else (0, 0)


def _integers(sign: Callable[[Any, Any], Any], left: Any, right: Any) -> NDArray[Any]:
    """Compute integers in int64 or uint64 where the bounds say that it can hold them, else one by one, in Python's."""
    (low, high), (least, most) = _bounds(left), _bounds(right)
    if sign is operator.mod:
        if least <= 0 <= most and np.any(np.asarray(right) == 0):
            raise ZeroDivisionError("division by zero")
        found = [min(0, least), max(0, most)]
    else:
        found = [sign(one, other) for one in (low, high) for other in (least, most)]
    lowest, highest = min(low, least, *found), max(high, most, *found)
    for dtype, from_, to in ((np.int64, LOWEST, HIGHEST), (np.uint64, 0, MOST)):
        if from_ <= lowest and highest <= to:
            return np.asarray(sign(_cast(left, dtype), _cast(right, dtype)))
    exact = np.asarray(sign(_cast(left, object), _cast(right, object)), object)
    low, high = _bounds(exact)
    if low < LOWEST or high > MOST:
        raise OverflowError(f"{high if high > MOST else low} is more than 64 bits hold")
    return exact


def _cast(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if isinstance(value, np.ndarray) else value if dtype is object else dtype(value)
