"""Whether what was read is what was meant: enough nodes and edges, few enough faults, and something where a store stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from graphprep.model.errors import DataError
from graphprep.model.options.checks import parse_error_limit
from graphprep.model.options.convert import ConvertOptions


class Outcome(NamedTuple):
    """What an input held: nodes and edges of all types, records, and what of them was skipped or dropped."""

    place: str
    num_nodes: int
    num_edges: int
    num_records: int
    num_skipped: int
    num_dropped_edges: int = 0

    @property
    def is_empty(self) -> bool:
        """Return whether nothing was read. Nodes there may be by --num-nodes alone; not every format counts records."""
        return not self.num_nodes or not (self.num_edges or self.num_records)


def check_outcome(found: Outcome, options: ConvertOptions, replaced: Mapping[str, Any] | None = None) -> None:
    """Refuse a result that is smaller, or has more faults, than the options allow.

    ``replaced`` is the metadata.json of a store that would be replaced. Raises DataError.
    """
    _, share = parse_error_limit(options.max_errors)
    total = found.num_records + found.num_skipped
    if share is not None and found.num_skipped * 100 > share * total:
        raise DataError(
            f"{found.num_skipped:,} of {total:,} records are bad ({100 * found.num_skipped / total:.3g}%), more than "
            f"--max-errors {options.max_errors}",
            place=found.place,
            fix="repair the input, or raise --max-errors",
        )
    for flag, least, number, noun in (
        ("--min-nodes", options.min_nodes, found.num_nodes, "nodes"),
        ("--min-edges", options.min_edges, found.num_edges, "edges"),
    ):
        if number < least:
            raise DataError(
                f"the graph has {number:,} {noun}, fewer than {flag} {least}",
                place=found.place,
                fix=f"see whether the input is whole, or lower {flag}",
            )
    if replaced is not None and not options.allow_empty and (found.is_empty or not found.num_edges):
        _refuse_to_empty(found, _count(replaced, "num_nodes"), _count(replaced, "num_edges"))


def _refuse_to_empty(found: Outcome, num_nodes: int, num_edges: int) -> None:
    """Refuse to put nothing, or nodes without edges, in the place of a store that has some."""
    if found.is_empty or num_edges > 0:
        fix = "see whether what makes the input works, or give --allow-empty"
        what = "has no edges" if not found.is_empty else "has no good record" if found.num_skipped else "is empty"
        if found.num_dropped_edges and not found.num_edges:
            what = f"has no edges but {found.num_dropped_edges:,} that are dropped, for want of a node"
            fix = "see whether its ends are IDs of the nodes, or give --allow-empty"
        raise DataError(
            f"the input {what}, and would replace a store of {num_nodes:,} nodes and {num_edges:,} edges",
            place=found.place,
            fix=fix,
        )


def _count(metadata: Mapping[str, Any], name: str) -> int:
    """Return how many nodes or edges a metadata.json states; 0 where it does not say it in our words."""
    counts = metadata.get(f"{name}_per_type")
    return sum(one for one in counts if isinstance(one, int)) if isinstance(counts, list) else 0
