"""Plain text edge lists to arrays in memory, on all cores. The output is the same for any number of threads."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.adjacency import Adjacency
from graphprep.edges.array_rows import (
    RecordPlan,
    build_rows,
    count_threads,
    plan_bucket_bits,
    run_tasks,
    segments_of,
)
from graphprep.edges.arrays import as_adjacency, build_adjacency, check_layout
from graphprep.edges.device.find import find_kernels
from graphprep.edges.plain_text import BLOCK_BYTES, PlainText, open_plain_text
from graphprep.engine.ledger import scratch_array
from graphprep.kernels.cpu.text.pairs import count_lines
from graphprep.kernels.edges import Kernels, Packing, Segments, bits_below
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import Layout

Ints = NDArray[Any]

_SHORTEST_LINE = 4  # ``1 2`` and its line feed
_SAMPLES = 16  # places of the text where its IDs are looked at beforehand
_SAMPLE_BYTES = 1 << 15
_MORE_EDGES = 1 << 16  # room beside half as many again as were expected
_LF = 10
_PACKING = Packing(32, 0)


def read_edges(
    path: str | os.PathLike[str],
    *,
    weights: bool = False,
    delimiter: str | None = None,
    skip_lines: int = 0,
    dtype: Literal["int64", "int32"] = "int64",
    threads: int | None = None,
) -> tuple[Any, ...]:
    """Read lines ``src dst`` or ``src dst weight`` into arrays.

    IDs are decimal digits. Blank lines and comments (``#``, ``%``) are skipped; ``delimiter`` is one character, "" for runs of
    blanks, None: as in the first line. ``skip_lines`` stand in front (a header). Compressed and remote files are read, too.
    Returns (src, dst), both [m] of ``dtype``, in the file's order; with ``weights`` (src, dst, weights): float64[m], correctly
    rounded. Raises DataError, with file and line, for another line and for an ID that does not fit.
    """
    threads, text = count_threads(threads), open_plain_text(path, delimiter, skip_lines)
    kind = np.dtype(dtype)
    if kind.name not in ("int64", "int32"):
        raise UsageError(f"dtype must be int64 or int32, found {dtype}", fix='pass dtype="int64"')
    spans = text.spans()
    lines, rows = np.zeros(len(spans), np.int64), np.zeros(len(spans), np.int64)

    def count(block: int) -> None:
        ends_line = text.buf[spans[block][1] - 1] == _LF  # all do but perhaps the last: rows of blocks then join without a gap
        lines[block] = count_lines(text.buf, *spans[block]) - int(ends_line)

    run_tasks(count, range(len(spans)), threads)
    offsets = np.concatenate([[0], np.cumsum(lines)])
    src, dst = (np.empty(int(offsets[-1]), kind) for _ in range(2))
    weight = np.empty(int(offsets[-1]) if weights else 0)

    def parse(block: int) -> None:
        at = slice(offsets[block], offsets[block + 1])
        rows[block] = _parse_block(text, spans[block], src[at], dst[at], weight[at] if weights else None)

    run_tasks(parse, range(len(spans)), threads)
    columns = (src, dst, weight) if weights else (src, dst)
    return tuple(_without_gaps(column, offsets, rows) for column in columns)


def read_adjacency(
    path: str | os.PathLike[str],
    num_nodes: int | tuple[int, int] | None = None,
    layout: Layout = "csc",
    *,
    sort_neighbors: bool = False,
    edge_ids: bool = True,
    delimiter: str | None = None,
    skip_lines: int = 0,
    threads: int | None = None,
    device: str | None = None,
) -> Adjacency:
    """Read lines ``src dst`` and build CSC or CSR: as ``read_edges`` and ``build_adjacency`` do.

    The ID of an edge is its number in the file. Without ``edge_ids``, edges are scattered to their rows while they are
    read, which takes less time and memory. Raises DataError.
    """
    threads, layout = count_threads(threads), check_layout(layout)
    if not edge_ids:
        text = open_plain_text(path, delimiter, skip_lines)
        kernels = find_kernels(device)
        found = _read_and_scatter(kernels, text, num_nodes, layout, sort_neighbors=sort_neighbors, threads=threads)
        if found is not None:
            return found
    src, dst = read_edges(path, delimiter=delimiter, skip_lines=skip_lines, threads=threads)
    try:
        how: Any = {"sort_neighbors": sort_neighbors, "edge_ids": edge_ids, "threads": threads, "device": device}
        return build_adjacency(src, dst, num_nodes, layout, **how)
    except DataError as error:
        raise DataError(error.message, place=str(path), fix=error.fix) from None


def _parse_block(text: PlainText, span: tuple[int, int], src: Ints, dst: Ints, weight: NDArray[np.float64] | None) -> int:
    """Parse a block into columns of any type. Raises DataError for an ID that does not fit."""
    unsigned = np.dtype(f"u{src.dtype.itemsize}")
    rows = text.parse(span, src.view(unsigned), dst.view(unsigned), weight)
    ends = (src[:rows], dst[:rows])
    if rows is None or any(find_kernels().find_limits(end)[0] < 0 for end in ends):
        raise DataError(
            f"an ID does not fit {src.dtype}",
            place=text.place(_first_wide(text, span, int(np.iinfo(src.dtype).max), weight is not None)),
            fix="graphprep convert reads such IDs" if src.dtype == np.int64 else 'pass dtype="int64"',
        )
    return rows


def _first_wide(text: PlainText, span: tuple[int, int], most: int, weighted: bool) -> int:
    """Return where the first line of a block begins that has an ID above ``most``."""
    at, stop = span
    src, dst = np.empty(1, np.uint64), np.empty(1, np.uint64)
    weight = np.empty(1) if weighted else None
    while at < stop:
        end = text.line_end(at)
        rows = text.parse((at, end), src, dst, weight)
        if rows is None or (rows and max(int(src[0]), int(dst[0])) > most):
            return at
        at = end
    return at


def _without_gaps(column: Ints, offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> Ints:
    """Move the rows of blocks together: a block has fewer than lines where some hold none."""
    at = int(rows[0]) if rows.size else 0
    for block in range(1, rows.size):
        if at != offsets[block]:
            column[at : at + rows[block]] = column[offsets[block] : offsets[block] + rows[block]]
        at += int(rows[block])
    return column[:at]


@dataclass(frozen=True)
class _ScatteredBlock:
    """A block's edges: records [at, at + starts[-1]), in buckets of 2^``shift`` rows; its highest row and neighbour."""

    at: int
    shift: int
    starts: NDArray[np.uint32]
    high_row: int
    high_other: int


@dataclass(frozen=True)
class _ScatteredText:
    """A text's edges, scattered block by block: the number of nodes is known only behind the last one."""

    bucket_bits: int
    blocks: list[_ScatteredBlock]


class _Scatterer:
    """Parses blocks, on any thread, and scatters their edges to buckets: into ``records``."""

    def __init__(self, kernels: Kernels, text: PlainText, is_csc: bool, high: int, records: NDArray[np.uint64]) -> None:
        self.bucket_bits = plan_bucket_bits(max(high, records.size))
        self._kernels, self._records = kernels, records
        self._shift = max(0, high.bit_length() - self.bucket_bits)
        self._text, self._is_csc = text, is_csc
        self._filled = 0
        self._lock = threading.Lock()
        self._scratch = threading.local()

    def scatter(self, span: tuple[int, int]) -> _ScatteredBlock | None:
        """Parse and scatter a block. None: an ID is past int32, or there are more edges than there is room for."""
        src, dst = self._columns((span[1] - span[0]) // _SHORTEST_LINE + 1)
        count = self._text.parse(span, src, dst)
        if count is None:
            return None
        rows, others = (end[:count].view(np.int32) for end in ((dst, src) if self._is_csc else (src, dst)))
        (low_row, high_row), (low_other, high_other) = map(self._kernels.find_limits, (rows, others))
        if min(low_row, low_other) < 0:
            return None
        with self._lock:
            at = self._filled
            self._filled += count
        if at + count > self._records.size:
            return None
        shift = max(self._shift, max(high_row, 0).bit_length() - self.bucket_bits)
        starts = np.empty((max(high_row, 0) >> shift) + 3, np.uint32)
        self._kernels.start_buckets([rows], shift, starts)
        self._kernels.scatter_edges(rows, others, _PACKING, shift, starts, self._records[at : at + count], 0)
        return _ScatteredBlock(at, shift, starts[:-1], high_row, high_other)

    def _columns(self, room: int) -> tuple[Ints, Ints]:
        """Return columns for a block: the thread's own, used again and again."""
        columns = getattr(self._scratch, "columns", None)
        if columns is None or columns[0].size < room:
            room = max(room, BLOCK_BYTES // _SHORTEST_LINE)
            columns = self._scratch.columns = (np.empty(room, np.uint32), np.empty(room, np.uint32))
        return columns


def _look(text: PlainText) -> tuple[int, int]:
    """Guess the highest ID and the number of edges from places all over the text."""
    src, dst = (np.empty(_SAMPLE_BYTES // _SHORTEST_LINE + 1, np.uint64) for _ in range(2))
    high, rows, seen = 0, 0, 1
    for place in np.linspace(text.start, max(text.start, text.buf.size - _SAMPLE_BYTES), _SAMPLES).astype(int).tolist():
        start = text.start if place == text.start else text.line_end(place)
        stop = text.line_end(min(start + _SAMPLE_BYTES // 2, text.buf.size))
        if stop - start > _SAMPLE_BYTES:
            continue
        count = text.parse((start, stop), src, dst) or 0
        high = max(high, int(src[:count].max(initial=0)), int(dst[:count].max(initial=0)))
        rows, seen = rows + count, seen + stop - start
    return high, text.num_bytes * rows // seen


def _read_and_scatter(
    kernels: Kernels,
    text: PlainText,
    num_nodes: int | tuple[int, int] | None,
    layout: Layout,
    *,
    sort_neighbors: bool,
    threads: int,
) -> Adjacency | None:
    """Scatter edges to their rows as they are read, and build these. None where that cannot be: see ``_Scatterer.scatter``."""
    high, num_edges = _look(text)
    room = min(text.num_bytes // _SHORTEST_LINE, num_edges + num_edges // 2 + _MORE_EDGES) + 1  # what is not filled takes none
    with scratch_array(room, np.uint64) as records:
        read = _scatter_text(text, _Scatterer(kernels, text, layout == "csc", high, records), threads)
        counts = None if read is None else _sides(read, layout == "csc", num_nodes)
        if read is None or counts is None:
            return None
        num_rows, num_others = counts
        segments, plan = _align(read, records, num_rows)
        built = build_rows(kernels, segments, plan, num_rows, num_others, sort_neighbors=sort_neighbors, threads=threads)
        return as_adjacency(layout, built, num_others, edge_ids=False)


def _scatter_text(text: PlainText, scatterer: _Scatterer, threads: int) -> _ScatteredText | None:
    """Scatter all blocks. None where one of them could not be."""
    spans = text.spans()
    blocks: list[_ScatteredBlock | None] = [None] * len(spans)

    def scatter(block: int) -> None:
        blocks[block] = scatterer.scatter(spans[block])

    run_tasks(scatter, range(len(spans)), threads)
    scattered = [block for block in blocks if block is not None]
    return _ScatteredText(scatterer.bucket_bits, scattered) if len(scattered) == len(blocks) else None


def _sides(read: _ScatteredText, is_csc: bool, num_nodes: int | tuple[int, int] | None) -> tuple[int, int] | None:
    """Return how many nodes have rows, and how many are neighbors; None where ``num_nodes`` is wrong."""
    high_row = max((block.high_row for block in read.blocks), default=-1)
    high_other = max((block.high_other for block in read.blocks), default=-1)
    if num_nodes is None:
        return max(high_row, high_other) + 1, max(high_row, high_other) + 1
    num_src, num_dst = num_nodes if isinstance(num_nodes, tuple) else (num_nodes, num_nodes)
    num_rows, num_others = (num_dst, num_src) if is_csc else (num_src, num_dst)
    return (num_rows, num_others) if high_row < num_rows and high_other < num_others else None


def _align(read: _ScatteredText, records: NDArray[np.uint64], num_rows: int) -> tuple[Segments, RecordPlan]:
    """Give all blocks the same buckets: those of most rows. A block with smaller ones has them side by side."""
    shift = max([bits_below(num_rows) - read.bucket_bits, 0, *(block.shift for block in read.blocks)])
    plan = RecordPlan(_PACKING, shift, (max(0, num_rows - 1) >> shift) + 1, num_ids=0)
    starts = np.empty((len(read.blocks), plan.num_buckets + 1), np.uint32)
    for row, block in zip(starts, read.blocks, strict=True):
        ends = np.minimum(np.arange(plan.num_buckets + 1) << (shift - block.shift), block.starts.size - 1)
        row[:] = block.starts[ends]
    offsets = np.array([block.at for block in read.blocks], np.int64)
    return segments_of(records, offsets, starts, np.zeros_like(offsets), plan), plan
