"""Find where a row came from, by decoding its block again: the words for faults that are found late."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.model.rows import RawRows
from graphprep.stages.decode import Batch, Decoded, DecodedBlock, DecodeSettings, decode_block, read_table
from graphprep.storage.faults import display_url
from graphprep.storage.spans import block_at

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage


@dataclass(frozen=True)
class Located:
    """A batch, decoded again with places. ``decoded`` is None for tables, whose batch begins at ``first_row`` of the file."""

    rows: RawRows
    decoded: DecodedBlock | None
    url: str
    first_row: int = 0

    def place(self, at: int) -> str:
        """Return ``file:line:column``, or ``file: row R``."""
        return f"{self.url}: row {self.first_row + at}" if self.decoded is None else self.decoded.place(at)


class Locator:
    """Decodes batches again."""

    def __init__(self, decoded: Decoded, storage: Storage, settings: DecodeSettings) -> None:
        self.decoded = decoded
        self.storage = storage
        self.settings = settings
        self._first_nodes = np.array([batch.first_node for batch in decoded.batches], np.int64)
        self._first_edges = np.array([batch.first_edge for batch in decoded.batches], np.int64)

    def locate(self, batch: Batch) -> Located:
        """Decode a batch again, with places."""
        span = self.decoded.sources.spans[batch.span]
        if span.kind == "table":
            return self._locate_rows(batch)
        block = block_at(self.storage, span, self.settings.block_bytes, batch.block)
        decoded, _ = decode_block(self.decoded.decoder, block, self.settings.skip, places=True)
        return Located(decoded.rows, decoded, display_url(span.url))

    def _locate_rows(self, batch: Batch) -> Located:
        span = self.decoded.sources.spans[batch.span]
        tables = read_table(self.decoded.decoder, self.storage, span, self.settings.max_rows, self.settings.skip, places=True)
        for number, (rows, _, first_row) in enumerate(tables):
            if number == batch.block and rows is not None:
                return Located(rows, None, display_url(span.url), first_row)
        raise AssertionError("a batch that was read once cannot be read again")

    def first_end_beyond(self, type_name: str, num_nodes: int) -> tuple[str, int]:
        """Return the place and the ID of the first end of a node type that is not below ``num_nodes``."""
        for batch, (src, dst, *_) in zip(self.decoded.batches, self.decoded.edges.read(0), strict=True):
            beyond = []
            for end, ids in (("src", src), ("dst", dst)):
                relation = self.decoded.relations[batch.relation or 0]
                if getattr(relation, f"{end}_type") == type_name and ids is not None:
                    rows = np.flatnonzero(ids >= np.uint64(num_nodes))
                    beyond += [(int(row), end, int(ids[row])) for row in rows[:1]]
            if beyond:
                row, end, found = min(beyond, key=lambda item: (item[0], item[1] == "dst"))
                return self.edge_place(batch.first_edge + row, end), found
        raise AssertionError("an ID that was seen must stand somewhere")

    def batch_of_node(self, record: int) -> Batch:
        """Return the batch that holds a node record."""
        return self.decoded.batches[int(np.searchsorted(self._first_nodes, record, side="right")) - 1]

    def batch_of_edge(self, record: int) -> Batch:
        """Return the batch that holds an edge record."""
        return self.decoded.batches[int(np.searchsorted(self._first_edges, record, side="right")) - 1]

    def node_place(self, record: int) -> str:
        """Return the place of a node record's ID."""
        return self.node_places(np.array([record], np.int64))[record]

    def node_places(self, records: NDArray[np.int64]) -> dict[int, str]:
        """Return the places of the IDs of some node records, which ascend; every batch is decoded once."""
        places: dict[int, str] = {}
        at = 0
        while at < records.size:
            batch = self.batch_of_node(int(records[at]))
            stop = int(np.searchsorted(records, batch.first_node + batch.num_nodes))
            found = self.locate(batch)
            starts = found.rows.nodes.at if found.rows.nodes is not None else None
            for record in records[at:stop].tolist():
                places[record] = found.url if starts is None else found.place(int(starts[record - batch.first_node]))
            at = stop
        return places

    def edge_place(self, record: int, end: str) -> str:
        """Return the place of an edge's ``src`` or ``dst``."""
        batch = self.batch_of_edge(record)
        found = self.locate(batch)
        edges = found.rows.edges
        at = None if edges is None else edges.at_src if end == "src" else edges.at_dst
        return found.place(int(at[record - batch.first_edge])) if at is not None else found.url
