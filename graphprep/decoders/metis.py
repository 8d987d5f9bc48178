"""METIS graph files (``.graph``): a header, then a line of neighbours for each node.

Source: METIS 5.1 manual, section 4.1; KaHIP's user guide, section 3.1, has the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.arrays import EdgePlan, matrix_relation, matrix_sources
from graphprep.decoders.chunked_tables import dense_chunk
from graphprep.decoders.matrices import MatrixOptions
from graphprep.model.counts import parse_count
from graphprep.model.dataclass import dataclass
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.graph_config import EdgeTable
from graphprep.model.protocols import DeclaredColumn, InputStorage, Sniffed, SniffedFile, Sources, Span, TextBlock
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawEdges, RawRows, Relation
from graphprep.storage.faults import display_url
from graphprep.storage.spans import place_of

if TYPE_CHECKING:
    from graphprep.kernels.cpu.adjacency import Adjacency, Fault

_BOM = b"\xef\xbb\xbf"
_PIECE_BYTES = 1 << 20
_MAX_LINE_BYTES = 1 << 16
_MAX_VALUES = 1 << 10  # weights of one node; METIS' own limit is far below
_SIZE, _WEIGHT, _NODE_WEIGHT = "node_size", "weight", "node_weight"
_ENDINGS = (".graph", ".metis", ".graph.gz", ".metis.gz")


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
        from graphprep.kernels.cpu.adjacency import Fault, parse_adjacency

        header = self.header
        skipped = max(0, header.line + 1 - block.first_line)
        at = _after_lines(block.data, skipped)
        line = block.first_line + skipped
        first = line - header.line - 1 - self.comments.before(line)
        buf = np.frombuffer(block.data, np.uint8)[at:]
        found = parse_adjacency(buf, first, header.num_nodes, header.num_values, header.weighted)
        if isinstance(found, Fault):
            raise self._error(block, found, at)
        places_of = found.at + at if places else None
        edges = RawEdges(
            found.src,
            found.dst,
            np.zeros(found.src.size, np.int32),
            (self.relation,),
            self._weights(found, at),
            at_src=places_of,
            at_dst=places_of,
            record=np.full(found.src.size, -1, np.int64) if places else None,
        )
        return RawRows(edges=edges, aligned=tuple(self._aligned(found.values, first)), num_records=found.values.shape[0])

    def _weights(self, found: Adjacency, at: int) -> tuple[ColumnChunk, ...]:
        """Make the column of edge weights. Raises DecodeError for one that does not fit its dtype."""
        from graphprep.kernels.cpu import numbers

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
        from graphprep.kernels.cpu import adjacency as codes

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


def _after_lines(data: bytes, count: int) -> int:
    at = 0
    for _ in range(count):
        at = data.find(b"\n", at) + 1
        if at == 0:
            return len(data)
    return at


# ------------------------------------------------------------------------------------------------------------- plan


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
                fix=f"use one of {_SIZE}, {_NODE_WEIGHT}, {_WEIGHT}",
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
    from graphprep.kernels.cpu.line_scan import LineScan

    place = display_url(url)
    scan = LineScan(records=False)
    last = b"\n"
    with storage.open(url) as handle:
        header = _read_header(handle, place)
        while piece := handle.read(_PIECE_BYTES):
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
    header, messages = _settle(header, scan.num_words)
    return header, CommentRuns.of(scan.runs, header.line + 1), messages


def _read_header(handle: BinaryIO, place: str) -> Header:
    number = 0
    while True:
        line = handle.readline(_MAX_LINE_BYTES)
        number += 1
        if not line:
            raise DataError("there is no header", place=f"{place}:{number}:1", fix="begin the file with 'nodes edges'")
        line = line.removeprefix(_BOM) if number == 1 else line
        if line.strip() and not line.lstrip(b" \t").startswith(b"%"):
            return parse_header(line, place, number)


def _settle(header: Header, num_words: int) -> tuple[Header, tuple[str, ...]]:
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

    @staticmethod
    def sniff(file: SniffedFile) -> Sniffed | None:
        """Bid for files that are called so, and for whole files whose counts are those of their header."""
        return sniff(file)


def sniff(file: SniffedFile) -> Sniffed | None:
    """Bid where the first line is a header; how sure depends on the file's name, and on whether the counts are right."""
    lines = file.head.splitlines() if file.complete else file.head.splitlines()[:-1]
    numbers = [i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(b"%")]
    if not numbers:
        return None
    is_named = file.url.lower().endswith(_ENDINGS)
    try:
        header = parse_header(lines[numbers[0]], file.url, numbers[0] + 1)
    except DataError:
        return None
    if not header.num_nodes:
        return None
    if file.complete and not _counts_are_right(header, lines[numbers[0] + 1 :]):
        return Sniffed("metis", 0.55) if is_named else None  # reading says what is wrong, unless an edge list is called so
    return Sniffed("metis", 1.0 if is_named else 0.7) if file.complete or is_named else None


def _counts_are_right(header: Header, lines: Sequence[bytes]) -> bool:
    """Return whether as many nodes and edges follow as the header says."""
    rows = [line for line in lines if not line.lstrip().startswith(b"%")]
    if len(rows) < header.num_nodes or any(line.strip() for line in rows[header.num_nodes :]):
        return False
    try:
        _settle(header, sum(len(line.split()) for line in rows))
    except DataError:
        return False
    return True
