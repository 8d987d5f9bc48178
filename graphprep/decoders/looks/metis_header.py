"""The header of a METIS graph file, and whether what follows has its counts."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from graphprep.model.counts import parse_count
from graphprep.model.errors import DataError

_MAX_VALUES = 1 << 10  # weights of one node; METIS' own limit is far below


@dataclass(frozen=True)
class Header:
    """The first line that is no comment: ``n m [fmt [ncon]]``. ``line`` counts from 1."""

    place: str
    line: int
    num_nodes: int
    num_edges: int
    sized: bool = False
    num_weights: int = 0
    weighted: bool = False

    @property
    def num_values(self) -> int:
        """Return the number of values before the neighbours of a node."""
        return self.sized + self.num_weights


def parse_header(line: bytes, place: str, number: int) -> Header:
    """Read ``n m [fmt [ncon]]``. Raises DataError."""
    fields = line.split()
    where = f"{place}:{number}:1"
    numbers = [count for field in fields if (count := parse_count(field)) is not None]
    if not 2 <= len(fields) <= 4 or len(numbers) < len(fields):
        found = line.decode("latin1").strip()
        raise DataError(
            f"expected 'nodes edges [format [weights]]', found {found!r:.60}", place=where, fix="write the header's line again"
        )
    fmt = fields[2].decode() if len(fields) > 2 else "0"
    if len(fmt) > 3 or set(fmt) - {"0", "1"}:
        raise DataError(
            f"the format must be three digits 0 or 1, found {fmt!r}",
            place=where,
            fix="write 1 for edge weights, 10 for node weights, 100 for node sizes, or their sum",
        )
    sized, has_weights, weighted = (digit == "1" for digit in fmt.zfill(3))
    num_weights = numbers[3] if len(fields) > 3 else int(has_weights)
    if not has_weights and num_weights > 0:
        raise DataError(
            f"{num_weights} weights a node, but format {fmt} says there are none",
            place=where,
            fix=f"write format {int(fmt) + 10:03}",
        )
    if has_weights and not 1 <= num_weights <= _MAX_VALUES:
        raise DataError(
            f"format {fmt} says that nodes have weights, but their number is {num_weights}",
            place=where,
            fix="correct the header",
        )
    return Header(place, number, numbers[0], numbers[1], sized, num_weights, weighted)


def settle_header(header: Header, num_words: int) -> tuple[Header, tuple[str, ...]]:
    """Hold the number of neighbours against the header's number of edges, which stand in the file twice."""
    each = 2 if header.weighted else 1
    neighbours, rest = divmod(num_words - header.num_nodes * header.num_values, each)
    place = f"{header.place}:{header.line}:1"
    if rest == 0 and neighbours == 2 * header.num_edges:
        return header, ()
    if rest == 0 and neighbours == header.num_edges:
        words = f"{place}: the header counts each of the {neighbours} neighbours, not pairs of them: taken as directed edges"
        return header, (words,)
    if header.sized and num_words in (header.num_edges, 2 * header.num_edges):
        plain = dataclasses.replace(header, sized=False, num_weights=0, weighted=False)
        words = f"{place}: the format says that nodes have sizes, but the numbers add up without: taken as neighbours only"
        return plain, (words,)
    found = f"{max(neighbours, 0)} neighbours" if rest == 0 else f"{num_words} numbers"
    raise DataError(
        f"{found} follow, but {header.num_edges} edges have {2 * header.num_edges}: each stands in the lines of both its ends",
        place=place,
        fix="correct the header's number of edges, or its format; the file may be cut off",
    )


__all__ = ["Header", "parse_header", "settle_header"]
