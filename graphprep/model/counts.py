"""How many nodes and edges there are of each type: two spellings of one thing, checked against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from graphprep.model.errors import DataError

MOST_COUNT = 2**63 - 1  # IDs are int64
_MOST_DIGITS = 19


class TypeCounts(NamedTuple):
    """Counts of one side, nodes or edges, in the order of the types.

    ``per_chunk`` ([types][chunks]; the numbers of chunks may differ) is None where only totals are known. ``key`` is the
    metadata's key for the most detailed of them, which messages name.
    """

    per_type: tuple[int, ...]
    per_chunk: tuple[tuple[int, ...], ...] | None
    key: str


def parse_count(text: str | bytes) -> int | None:
    """Return a number that is written in digits, None where it is none, or more than 2^63 - 1."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _MOST_DIGITS:
        return None
    count = int(digits)
    return count if count <= MOST_COUNT else None


def read_counts(
    metadata: Mapping[str, Any], side: Literal["nodes", "edges"], num_types: int, place: str = "metadata"
) -> TypeCounts | None:
    """Read ``num_<side>_per_type`` and ``num_<side>_per_chunk``; return None where both are missing.

    Raises DataError, at ``<place>: <key path>``, for values that are no counts, lists that do not have one entry a type,
    and spellings that disagree.
    """
    type_key, chunk_key = f"num_{side}_per_type", f"num_{side}_per_chunk"
    per_type = _per_type(metadata[type_key], f"{place}: {type_key}", num_types) if type_key in metadata else None
    per_chunk = _per_chunk(metadata[chunk_key], f"{place}: {chunk_key}", num_types) if chunk_key in metadata else None
    if per_chunk is None:
        return None if per_type is None else TypeCounts(per_type, None, type_key)
    totals = tuple(sum(chunk) for chunk in per_chunk)
    for i, total in enumerate(totals):
        if total > MOST_COUNT:
            raise DataError(f"the sum {total} is above {MOST_COUNT}", place=f"{place}: {chunk_key}[{i}]")
        if per_type is not None and per_type[i] != total:
            message = f"says {per_type[i]}, but {chunk_key}[{i}] adds up to {total}"
            raise DataError(message, place=f"{place}: {type_key}[{i}]", fix="correct one of the two, or leave one out")
    return TypeCounts(totals, per_chunk, chunk_key)


def _per_type(value: Any, place: str, num_types: int) -> tuple[int, ...]:
    return tuple(_count(item, f"{place}[{i}]") for i, item in enumerate(_list(value, place, num_types)))


def _per_chunk(value: Any, place: str, num_types: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(_count(item, f"{place}[{i}][{j}]") for j, item in enumerate(_list(chunk, f"{place}[{i}]")))
        for i, chunk in enumerate(_list(value, place, num_types))
    )


def _list(value: Any, place: str, length: int | None = None) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise DataError(f"expected a list, found {value!r:.60}", place=place)
    if length is not None and len(value) != length:
        raise DataError(f"expected one entry for each of {length} types, found {len(value)}", place=place)
    return value


def _count(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNT:
        raise DataError(f"expected an integer >= 0, found {value!r:.60}", place=place)
    return value
