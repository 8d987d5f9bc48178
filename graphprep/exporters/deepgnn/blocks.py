"""A batch of rows and its edges as blocks of DeepGNN's files, with their slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.edges import EdgeBatch
from graphprep.exporters.deepgnn.files import EdgeBlock, RowBlock
from graphprep.exporters.deepgnn.ids import NodeIds, feature_slots
from graphprep.exporters.deepgnn.part import PartReader
from graphprep.exporters.deepgnn.rows import PLACEHOLDER, RowBatch, Run
from graphprep.exporters.deepgnn.slots import Contents, PackedSlots, pack_slots, slot_contents
from graphprep.model.errors import DataError
from graphprep.model.export import Side
from graphprep.storage.spill.scratch import Scratch

Ints = NDArray[np.int64]
_FIX = "the engine's weights are float32: scale them"


def read_blocks(reader: PartReader, batch: RowBatch, *, dated: bool) -> tuple[RowBatch, RowBlock, EdgeBlock | None]:
    """Read a batch: its rows and its edges, unless it is long. ``dated``: with the times of edges."""
    edges = None if reader.is_long(batch) else _edge_block(reader, batch, reader.edges(batch), dated=dated)
    return batch, _row_block(reader, batch), edges


def read_long(reader: PartReader, batch: RowBatch, scratch: Scratch, *, dated: bool) -> Iterator[EdgeBlock]:
    """Read the edges of a long row."""
    with scratch.inner() as inner:
        for edges in reader.long_edges(batch, inner):
            yield _edge_block(reader, batch, edges, dated=dated)


def _row_block(reader: PartReader, batch: RowBatch) -> RowBlock:
    size = batch.ids.size
    weights = _checked(reader.weights("node", batch.runs, size), batch.ids)
    weights[batch.types == PLACEHOLDER] = 0
    return RowBlock(batch.ids, batch.types, batch.degrees, weights, _slots(reader, "node", _declared(batch), size))


def _declared(batch: RowBatch) -> list[Run]:
    """Return the nodes of a batch without placeholders, which have no slots."""
    if (batch.types != PLACEHOLDER).all():
        return list(batch.runs)
    types = np.append(batch.types, PLACEHOLDER)  # what is left out has no type either: it is number -1
    return [Run(run.number, run.low, run.high, np.where(types[run.at] == PLACEHOLDER, -1, run.at)) for run in batch.runs]


def _edge_block(reader: PartReader, batch: RowBatch, edges: EdgeBatch, *, dated: bool) -> EdgeBlock:
    """Return edges of rows of a batch as they are written."""
    size, src = edges.dst.size, batch.ids[edges.rows]
    return EdgeBlock(
        src=src,
        dst=edges.dst,
        types=edges.types,
        weights=_checked(reader.weights("edge", edges.runs, size), src),
        slots=_slots(reader, "edge", edges.runs, size),
        times=_times(reader, edges.runs, size) if dated else None,
    )


def _checked(weights: NDArray[np.float64], ids: NodeIds) -> NDArray[np.float64]:
    """Return weights that are finite in float32, or were infinite.

    Raises DataError for another one.
    """
    bad = (np.abs(weights) > np.finfo(np.float32).max) & np.isfinite(weights)
    if bad.any():
        at = int(np.argmax(bad))
        raise DataError(f"weight {weights[at]} does not fit float32", place=f"node {ids[at]}, or an edge from it", fix=_FIX)
    return weights


def _times(reader: PartReader, runs: Sequence[Run], size: int) -> Ints:
    out = np.empty((size, 2), np.int64)
    for run in runs:
        out[run.target] = reader.times(run)
    return out


def _slots(reader: PartReader, side: Side, runs: Sequence[Run], size: int) -> PackedSlots:
    """Read the features of all elements of a batch."""
    contents: list[Contents] = []
    for run in runs:
        for one in feature_slots(reader.columns(side, run.number)):
            chosen = reader.chosen(side, run, one.column)
            found = slot_contents(one.column, one.slot, reader.cells(side, run, one.column))
            contents.append(found.at(chosen, run.at[chosen]))
    return pack_slots(size, contents, reader.stated(side, runs, size))
