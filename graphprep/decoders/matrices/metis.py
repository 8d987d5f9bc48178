"""METIS graph files (``.graph``): a header, then a line of neighbours for each node.

Source: METIS 5.1 manual, section 4.1; KaHIP's user guide, section 3.1, has the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.chunks import dense_chunk
from graphprep.decoders.cells.columns import edge_rows
from graphprep.decoders.cells.text import after_header
from graphprep.decoders.looks.metis_header import Header, parse_header, settle_header
from graphprep.decoders.matrices.options import MAX_LINE_BYTES, EdgePlan, MatrixOptions, matrix_relation, matrix_sources
from graphprep.model.errors import DataError, DecodeError, UsageError, one_of
from graphprep.model.graph_config import EdgeTable
from graphprep.model.protocols import DeclaredColumn, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawRows, Relation
from graphprep.storage.faults import display_url
from graphprep.storage.read.spans import BLOCK_BYTES, place_of

if TYPE_CHECKING:
    from graphprep.kernels.cpu.text.adjacency import Adjacency, Fault

_BOM = b"\xef\xbb\xbf"
_SIZE, _WEIGHT, _NODE_WEIGHT = "node_size", "weight", "node_weight"


@dataclass(frozen=True)
class CommentRuns:
    """Runs of comment lines: int64[k, 3] of their first line, from 1, the line behind them, and the comments up to there."""

    table: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))

    @classmethod
    def of(cls, runs: Sequence[tuple[int, int]], first_line: int) -> CommentRuns:
        """Take (first line, number of lines) pairs that count from 0 at ``first_line``."""
        pairs = np.array(runs, np.int64).reshape(-1, 2)
        starts = pairs[:, 0] + first_line
        return cls(np.stack([starts, starts + pairs[:, 1], np.cumsum(pairs[:, 1])], axis=1))

    def before(self, line: int) -> int:
        """Return the number of comment lines before a line."""
        run = int(np.searchsorted(self.table[:, 0], line)) - 1  # the last run that begins before the line
        return 0 if run < 0 else int(self.table[run, 2] - max(0, self.table[run, 1] - line))


@dataclass(frozen=True)
class MetisReader:
    """Reads one file: each neighbour in the line of a node is an edge from the node to it.

    ``comments`` are the runs of comment lines behind the header. ``weight_dtype`` None leaves edge weights out.
    """

    relation: Relation
    header: Header
    weight_dtype: str | None
    node_columns: tuple[str, ...] = ()
    comments: CommentRuns = CommentRuns()

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Refuse a table: the file is text."""
        raise NotImplementedError

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines of nodes.

        Raises DataError for a neighbour that is no node, a value or weight that is no number or is missing, and for a line
        behind that of the last node; no line can be skipped, as those behind it would change their nodes.
        """
        try:
            return self._decode(block, places)
        except DecodeError as error:
            raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from None

    def _decode(self, block: TextBlock, places: bool) -> RawRows:
        from graphprep.kernels.cpu.text.adjacency import Fault, parse_adjacency

        header = self.header
        at = after_header(block, header.line)
        line = max(block.first_line, header.line + 1)
        first = line - header.line - 1 - self.comments.before(line)
        buf = np.frombuffer(block.data, np.uint8)[at:]
        found = parse_adjacency(buf, first, header.num_nodes, header.num_values, header.weighted)
        if isinstance(found, Fault):
            raise self._error(block, found, at)
        at_neighbors = found.at + at if places else None
        found_edges = edge_rows(
            self.relation,
            found.src,
            found.dst,
            self._weights(found, at),
            None if at_neighbors is None else (at_neighbors, at_neighbors),
        )
        aligned = tuple(self._aligned(found.values, first))
        return dataclasses.replace(found_edges, aligned=aligned, num_records=found.values.shape[0])

    def _weights(self, found: Adjacency, at: int) -> tuple[ColumnChunk, ...]:
        """Make the column of edge weights. Raises DecodeError for one that does not fit its dtype."""
        from graphprep.kernels.cpu.text import numbers

        if self.weight_dtype is None:
            return ()
        weights, bad = numbers.round_to(found.weights, np.dtype(self.weight_dtype))
        if bad >= 0:
            words = f"the weight is too large for {self.weight_dtype}, found {found.weights[bad]}"
            raise DecodeError(words, at=int(found.at[bad]) + at, fix="pass --weight-dtype float64")
        return (dense_chunk(ColumnKey(_WEIGHT, "numbers", self.weight_dtype, role="weight"), weights),)

    def _aligned(self, values: NDArray[np.int64], first: int) -> Iterator[AlignedColumn]:
        if not values.shape[0]:
            return
        owner = self.relation.src_type or ""
        columns: dict[str, NDArray[np.int64]] = {_SIZE: values[:, 0]} if self.header.sized else {}
        if self.header.num_weights:
            weights = values[:, self.header.sized :]
            columns[_NODE_WEIGHT] = weights[:, 0] if self.header.num_weights == 1 else weights
        for name in self.node_columns:
            chunk = dense_chunk(ColumnKey(name, "numbers", "int64"), np.ascontiguousarray(columns[name]))
            yield AlignedColumn(owner, first, values.shape[0], chunk)

    def _error(self, block: TextBlock, fault: Fault, at: int) -> DecodeError:
        """Word the first fault of a block."""
        from graphprep.kernels.cpu.text import adjacency as codes

        start, stop = fault.start + at, fault.stop + at
        text = block.data[start:stop].decode(errors="replace")
        text = text if len(text) <= 40 else f"{text[:40]}…"
        header = self.header
        if fault.code == codes.OUT_OF_RANGE:
            message = f"the neighbour must be from 1 to {header.num_nodes}, found {text}"
            fix = f"correct the line, or the number of nodes in line {header.line}"
        elif fault.code == codes.NO_WEIGHT:
            message = f"neighbour {text} has no weight, but the header's format says that each has one"
            fix = f"add the weight, or correct the format in line {header.line}"
        elif fault.code == codes.NO_VALUE:
            message = f"the line must begin with {header.num_values} number{'s' if header.num_values > 1 else ''} of its node"
            fix = f"add what is missing, or correct the format in line {header.line}"
        elif fault.code == codes.SURPLUS:
            message = f"a line follows that of the last node: line {header.line} says {header.num_nodes} nodes"
            fix = "correct the number of nodes, or remove the line"
        elif fault.code == codes.BAD_WEIGHT:
            message, fix = f"the weight must be a number, found {text!r}", "correct the weight"
        else:
            message, fix = f"expected a whole number, found {text!r}", "write numbers as decimal digits"
        return DecodeError(message, at=start, fix=fix)


# ------------------------------------------------------------------------------------------------------------- plan


def plan_metis(
    storage: InputStorage,
    urls: Sequence[str],
    table: EdgeTable,
    *,
    weight_dtype: str = "float32",
    relation_text: str | None = None,
) -> EdgePlan:
    """Plan a METIS file. Counts its lines and numbers, and notes where comments stand.

    ``columns`` has the nodes' columns, too. Raises DataError where the counts are not those of the header, UsageError for
    several files.
    """
    if len(urls) > 1:
        raise UsageError(f"a METIS graph is one file, found {len(urls)}", fix="convert the files on their own")
    header, comments, messages = _scan(storage, urls[0])
    relation = matrix_relation(relation_text, None)
    if table.src_type is not None or table.dst_type is not None:
        relation = Relation(table.relation or "_E", table.src_type, table.dst_type, table.src_space, table.dst_space)
    if relation.src_type != relation.dst_type:
        raise UsageError(
            f"a METIS graph has one node type, but its edges go from {relation.src_type!r} to {relation.dst_type!r}",
            place=header.place,
            fix="name one type for both ends",
        )
    dropped = _check_dropped(table.table.dropped, header)
    dtype = weight_dtype if header.weighted and _WEIGHT not in dropped else None
    names = [name for name, is_there in ((_SIZE, header.sized), (_NODE_WEIGHT, header.num_weights)) if is_there]
    kept = tuple(name for name in names if name not in dropped)
    reader = MetisReader(relation, header, dtype, kept, comments)
    return EdgePlan(
        spans=(Span(urls[0], role="edges", detail=reader),),
        relation=relation,
        num_src=header.num_nodes,
        num_dst=header.num_nodes,
        nodes_by=f"{header.place}:{header.line}:1",
        columns=tuple(_declare(relation, header, dtype, kept)),
        messages=messages,
    )


def _check_dropped(dropped: Sequence[str], header: Header) -> frozenset[str]:
    for name in dropped:
        if name not in (_SIZE, _WEIGHT, _NODE_WEIGHT):
            raise UsageError(
                f"--drop-column {name}: there is no such column",
                place=header.place,
                fix=one_of((_SIZE, _NODE_WEIGHT, _WEIGHT), found=name),
            )
    return frozenset(dropped)


def _declare(relation: Relation, header: Header, dtype: str | None, kept: Sequence[str]) -> Iterator[DeclaredColumn]:
    if dtype is not None:
        owner = (relation.src_type or "", relation.name, relation.dst_type or "")
        yield DeclaredColumn(owner, ColumnKey(_WEIGHT, "numbers", dtype, role="weight"), ())
    for name in kept:
        shape = (header.num_weights,) if name == _NODE_WEIGHT and header.num_weights > 1 else ()
        yield DeclaredColumn(relation.src_type or "", ColumnKey(name, "numbers", "int64"), shape)


def _scan(storage: InputStorage, url: str) -> tuple[Header, CommentRuns, tuple[str, ...]]:
    """Read the header, and count what follows it."""
    from graphprep.kernels.cpu.text.line_scan import LineScan

    place = display_url(url)
    scan = LineScan(records=False)
    last = b"\n"
    with storage.open(url) as handle:
        header = _read_header(handle, place)
        while piece := handle.read(BLOCK_BYTES):
            scan.feed(piece)
            last = piece[-1:]
    if scan.is_full:
        raise DataError("comments stand in more than a million places", place=place, fix="remove them")
    num_comments = sum(size for _, size in scan.runs)
    num_lines = scan.num_lines + (last != b"\n") - num_comments
    if num_lines < header.num_nodes:
        raise DataError(
            f"{num_lines} lines of nodes follow, but the header says {header.num_nodes}",
            place=f"{place}:{header.line}:1",
            fix="write a line for every node, an empty one where it has no neighbour; the file may be cut off",
        )
    header, messages = settle_header(header, scan.num_words)
    return header, CommentRuns.of(scan.runs, header.line + 1), messages


def _read_header(handle: BinaryIO, place: str) -> Header:
    number = 0
    while True:
        line = handle.readline(MAX_LINE_BYTES)
        number += 1
        if not line:
            raise DataError("there is no header", place=f"{place}:{number}:1", fix="begin the file with 'nodes edges'")
        line = line.removeprefix(_BOM) if number == 1 else line
        if line.strip() and not line.lstrip(b" \t").startswith(b"%"):
            return parse_header(line, place, number)


@dataclass(frozen=True)
class MetisDecoder(MatrixOptions):
    """Decodes METIS graph files, as METIS, ParMETIS, KaHIP and NetworKit read them.

    Both directions of an edge stand in the file, and both become edges. ``relation`` is ``REL`` or ``TYPE:REL:TYPE``.
    ``drop_columns`` leaves out ``weight`` (of edges), ``node_weight`` or ``node_size``.
    """

    name: ClassVar[str] = "metis"

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Read the header, and count lines and numbers. Raises DataError where they are not the header's."""
        return matrix_sources(
            plan_metis(storage, urls, self.table, weight_dtype=self.weight_dtype, relation_text=self.relation)
        )
