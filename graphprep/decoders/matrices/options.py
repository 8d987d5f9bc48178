"""What decoders of matrices in text have in common: their options, and that spans are read by their own readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Self

from graphprep.model.errors import UsageError
from graphprep.model.graph_config import EdgeTable, TableConfig
from graphprep.model.protocols import DeclaredColumn, DeclaredNodes, Sources, Span, SpanReader, TextBlock
from graphprep.model.rows import RawRows, Relation
from graphprep.model.schema import parse_edge_type

MAX_LINE_BYTES = 1 << 16  # of a line of the header


@dataclass(frozen=True)
class MatrixOptions:
    """Options of matrices in text. ``relation`` is ``REL`` or ``SRC:REL:DST``. What makes no sense raises UsageError."""

    relation: str | None = None
    drop_columns: tuple[str, ...] = ()
    weight_dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        parse_relation(self.relation)

    @property
    def table(self) -> EdgeTable:
        """Return the options as those of a table."""
        return EdgeTable(None, None, None, TableConfig(dropped=self.drop_columns))

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines. Raises DecodeError or DataError for the first that is faulty."""
        reader: SpanReader = block.span.detail
        return reader.decode(block, places)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Refuse a table: the file is text."""
        raise NotImplementedError

    def widen(self, columns: Mapping[str, str]) -> Self:
        """Return the decoder: the file's head says the dtypes."""
        return dataclasses.replace(self)


_NODES, EDGES = "_N", "_E"  # names of the only node type and relation where none are given
_ROWS, _COLUMNS = "row", "col"  # names of the node types of a matrix that is not square


@dataclass(frozen=True)
class EdgePlan:
    """What the files of one edge type hold.

    ``detail`` of every span is a ``SpanReader``; ``spans`` stand in input order. ``num_src`` and ``num_dst`` are the numbers of
    nodes that the files state (raw IDs are then 0..n-1, and checked), None where they state none; ``nodes_by`` is the place
    that states them. ``columns`` are settled.
    """

    spans: tuple[Span, ...]
    relation: Relation
    num_src: int | None = None
    num_dst: int | None = None
    nodes_by: str = ""
    num_edges: int | None = None
    columns: tuple[DeclaredColumn, ...] = ()
    messages: tuple[str, ...] = ()


def parse_relation(text: str | None) -> tuple[str | None, str, str | None]:
    """Read ``REL`` or ``SRC:REL:DST``: (source type, name, destination type), types None where they are not given.

    Raises UsageError.
    """
    if text is None:
        return None, EDGES, None
    if text and ":" not in text:
        return None, text, None
    try:
        return parse_edge_type(text)
    except ValueError as error:
        raise UsageError(f"--relation: {error}", fix="write NAME or SRC:REL:DST; a ':' inside a name is %3A") from None


def matrix_relation(text: str | None, shape: tuple[int, int] | None) -> Relation:
    """Return the edge type of a matrix's entries: where no types are given, a matrix that is not square has two."""
    src, name, dst = parse_relation(text)
    if src is None and shape is not None and shape[0] != shape[1]:
        return Relation(name, _ROWS, _COLUMNS)
    return Relation(name, src or _NODES, dst or _NODES)


def matrix_sources(
    plan: EdgePlan, spans: Sequence[Span] = (), columns: Sequence[DeclaredColumn] = (), messages: Sequence[str] = ()
) -> Sources:
    """Put a graph of one edge type together; ``spans`` and ``columns`` are those of its nodes."""
    relation = plan.relation
    numbers = {relation.src_type or _NODES: plan.num_src}
    dst = relation.dst_type or _NODES
    numbers[dst] = plan.num_dst if numbers.get(dst) is None else numbers[dst]
    known = [number is not None for number in numbers.values()]
    return Sources(
        spans=(*plan.spans, *spans),
        nodes="identity" if all(known) else "tables" if any(known) else "ends",
        node_types=tuple(DeclaredNodes(name, number, stated_by=plan.nodes_by) for name, number in numbers.items()),
        edge_types=(relation,),
        columns=(*plan.columns, *columns),
        num_edges=(plan.num_edges,) if all(known) else None,
        messages=(*plan.messages, *messages),
    )
