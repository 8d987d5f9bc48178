"""Decode most of a block in one go: plain lines by a scanner, the others by the walker of any line; joined in input order.

A scanner (``kernels/cpu/plain_*``) reads lines as they are mostly written and stops before one that it does not know. That line
and some behind it go to the walker, which knows every spelling and words every fault; then the scanner goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.deepgnn.pieces import join_rows
from graphprep.decoders.deepgnn.slots import FixedColumns, invalid_texts
from graphprep.kernels.cpu.deepgnn import plain_rows as kernels
from graphprep.kernels.cpu.deepgnn.plain_rows import PADDING, Room, gather_texts, gather_values, make_room, scatter_slots
from graphprep.kernels.cpu.deepgnn.slots import DTYPE, DTYPES, EDGE, NODE, OWNER, SLOT, TEXT_DTYPE
from graphprep.model.errors import DecodeError
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows

# What is walked at a line that is not plain; more each time in a block, so that a block has few pieces.
_FIRST_WALK_BYTES = 1 << 15
_WALK_GROWTH = 4
_SLACK = 8  # blocks differ by a line or two, and a room should do for all

Columns = tuple[ColumnChunk, ...]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PlainRows:
    """What a scanner found: the first ``num_nodes`` and ``num_edges`` rows of ``room``, which is filled anew afterwards."""

    room: Room
    num_nodes: int
    num_edges: int
    node_columns: Columns
    edge_columns: Columns

    def owners(self, weight_dtype: str) -> tuple[RawNodes, RawEdges]:
        """Copy nodes and edges whose types and weights are those that were scanned, and that have no times."""
        room, some = self.room, slice(self.num_nodes)
        fixed = FixedColumns.of(room.node_types[some], room.node_weights[some], room.node_num_slots[some], weight_dtype)
        nodes = fixed.nodes(room.node_ids[some], self.node_columns)
        some = slice(self.num_edges)
        fixed = FixedColumns.of(room.edge_types[some], room.edge_weights[some], room.edge_num_slots[some], weight_dtype)
        return nodes, fixed.edges(room.edge_src[some], room.edge_dst[some], self.edge_columns)


@dataclass(frozen=True)
class PlainFormat:
    """What is special about a format.

    ``scan(buf, last, room, progress)``: see ``plain_edgelist.scan``. ``build`` copies rows out of the room. ``walk`` decodes
    lines however they are written; it raises DecodeError for the first fault. ``node_bytes``, ``edge_bytes`` and
    ``value_bytes`` are how much text a node, an edge and a number take at least in most files: room is made for as many.
    """

    scan: Callable[[NDArray[np.uint8], int, Room, NDArray[np.int64]], int]
    build: Callable[[PlainRows], RawRows]
    walk: Callable[[bytes], RawRows]
    node_bytes: int
    edge_bytes: int
    value_bytes: int
    has_times: bool = False


def decode_plainly(data: bytes, form: PlainFormat) -> RawRows:
    """Decode whole lines.

    Raises DecodeError for the first fault.
    """
    block = _Block(data, form)
    pieces: list[RawRows] = []
    start, walk_bytes = 0, _FIRST_WALK_BYTES
    while True:
        code, at, rows = block.scan(start)
        if rows is not None:
            pieces.append(rows)
        if code == kernels.DONE:
            break
        if code == kernels.ODD or at == start:  # one line that is larger than the room is left to the walker, too
            start, at = at, _line_end(data, at + walk_bytes)
            pieces.append(block.walk(start, at))
            walk_bytes *= _WALK_GROWTH
        start = at
    return join_rows(pieces) if pieces else form.walk(b"")


def _line_end(data: bytes, at: int) -> int:
    """Return the position behind the line that byte ``at`` is in, the data's end where it lies beyond."""
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end + 1


class _Block:
    """The lines of a block. The last ones are copied, with bytes behind them that the scanner may look at."""

    def __init__(self, data: bytes, form: PlainFormat) -> None:
        self.data = data
        self.form = form
        self.buf = np.frombuffer(data, np.uint8)
        self.last = data.rfind(b"\n", 0, max(0, len(data) - len(PADDING))) + 1
        self.tail = np.frombuffer(data[self.last :] + PADDING, np.uint8)
        size = len(data)
        self.room = _rooms.take(
            size // form.node_bytes, size // form.edge_bytes, size // form.value_bytes, size // 4, form.has_times
        )

    def scan(self, start: int) -> tuple[int, int, RawRows | None]:
        """Scan from a line on: why it ended, at which line, and what was found."""
        progress = np.zeros(kernels.NUM_PROGRESS, np.int64)
        self.room.buckets.fill(-1)
        progress[kernels.POS] = start
        code = kernels.DONE
        if start < self.last:
            code = self.form.scan(self.buf, self.last, self.room, progress)
        if code == kernels.DONE:
            progress[kernels.POS] -= self.last
            code = self.form.scan(self.tail, len(self.data) - self.last, self.room, progress)
            progress[kernels.POS] += self.last
        at = int(progress[kernels.POS])
        num_nodes, num_edges = int(progress[kernels.NODES]), int(progress[kernels.EDGES])
        if not num_nodes and not num_edges:
            return code, at, None
        columns = _columns(self.room, progress)
        if columns is None:
            return code, at, self.walk(start, min(at, len(self.data)))
        return code, at, self.form.build(PlainRows(self.room, num_nodes, num_edges, *columns))

    def walk(self, start: int, stop: int) -> RawRows:
        """Walk the lines from ``start`` to ``stop``."""
        try:
            return self.form.walk(self.data[start:stop])
        except DecodeError as error:
            error.at += start
            raise


class _Rooms(threading.local):
    """Each thread's room, kept from block to block: fresh memory is slower than all the scanning."""

    def __init__(self) -> None:
        self.room = make_room(0, 0, 0, 0, False)

    def take(self, num_nodes: int, num_edges: int, num_values: int, num_texts: int, has_times: bool) -> Room:
        """Return a room of this size at least."""
        room = self.room
        wanted = (num_nodes, num_edges, num_values, num_texts)
        sizes = (room.node_ids.size, room.edge_src.size, room.values.size, room.texts.size)
        lacks_times = has_times and not room.node_times.size
        if lacks_times or any(size < want for size, want in zip(sizes, wanted, strict=True)):
            nodes, edges, values, texts = (want + want // _SLACK for want in wanted)
            self.room = make_room(nodes, edges, values, texts, has_times)
        return self.room


_rooms = _Rooms()


def _columns(room: Room, progress: NDArray[np.int64]) -> tuple[Columns, Columns] | None:
    """Gather all features by column: those of nodes and those of edges. None where a text is not UTF-8."""
    by_owner: tuple[list[ColumnChunk], list[ColumnChunk]] = ([], [])
    num_groups = int(progress[kernels.GROUPS])
    indptr, rows, counts, starts = scatter_slots(room.slots[: progress[kernels.SLOTS]], num_groups)
    for number, group in enumerate(room.groups[:num_groups].tolist()):
        mine = slice(indptr[number], indptr[number + 1])
        if rows[mine].size:  # a line that was not plain left an empty group
            chunk = _chunk(room, group, rows[mine], counts[mine], starts[mine])
            if chunk is None:
                return None
            by_owner[group[OWNER]].append(chunk)
    return tuple(by_owner[NODE]), tuple(by_owner[EDGE])


def _chunk(room: Room, group: list[int], rows: Ints, counts: Ints, starts: Ints) -> ColumnChunk | None:
    """Gather one column. None where a text is not UTF-8."""
    is_text = group[DTYPE] == TEXT_DTYPE
    dtype = np.dtype("uint8" if is_text else DTYPES[group[DTYPE]])
    values = gather_texts(room.texts, starts, counts) if is_text else gather_values(room.values, starts, counts, dtype)
    if is_text and invalid_texts(values, counts):
        return None
    is_dense = not is_text and bool((counts == counts[0]).all())
    return ColumnChunk(
        key=ColumnKey(f"feat_{group[SLOT]}", "binary" if is_text else "numbers", dtype.name, slot=group[SLOT]),
        rows=rows,
        counts=counts,
        values=values,
        item_shape=(int(counts[0]),) if is_dense else None,
    )
