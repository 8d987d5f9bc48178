"""Find where a row came from, by decoding its block again: the words for faults that are found late."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.rows import Batch, Decoded
from graphprep.convert.read.blocks import DecodedBlock, decode_block, read_table
from graphprep.convert.read.decode import DecodeSettings
from graphprep.model.rows import RawEdges, RawNodes, RawRows, RawTexts
from graphprep.storage.faults import display_url
from graphprep.storage.read.spans import block_at

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage


_MOST_CHARACTERS = 100  # of a raw ID in a message


class Located(NamedTuple):
    """A batch, decoded again with places. ``decoded`` is None for tables, whose batch begins at ``first_row`` of the file.

    ``keys`` are the names of a table's columns of IDs, None for those that are not stored.
    """

    rows: RawRows
    decoded: DecodedBlock | None
    url: str
    first_row: int = 0
    keys: tuple[str | None, ...] = ()

    def place(self, at: int, side: int = 0) -> str:
        """Return ``file:line:column``, or ``file: row R, column 'C'`` of an ID: an edge's source (0) or destination (1)."""
        if self.decoded is not None:
            return self.decoded.place(at)
        key = self.keys[side] if side < len(self.keys) else None
        return f"{self.url}: row {self.first_row + at}" + ("" if key is None else f", column {key!r}")


def id_words(keys: NDArray[np.uint64], part: RawNodes | RawEdges | None, row: int, side: int, is_signed: bool) -> str:
    """Return a raw ID as messages show it. ``part`` is where it was decoded again: texts stand there."""
    if part is not None:
        ids = part.ids if isinstance(part, RawNodes) else part.dst if side else part.src
        if isinstance(ids, RawTexts):
            return repr(ids.text(row)[:_MOST_CHARACTERS])
    return str(int(keys.view(np.int64)[row] if is_signed else keys[row]))


@dataclass(eq=False)
class Locator:
    """Decodes batches again."""

    decoded: Decoded
    storage: Storage
    settings: DecodeSettings

    @cached_property
    def _first_nodes(self) -> NDArray[np.int64]:
        return np.array([batch.first_node for batch in self.decoded.batches], np.int64)

    @cached_property
    def _first_edges(self) -> NDArray[np.int64]:
        return np.array([batch.first_edge for batch in self.decoded.batches], np.int64)

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
        decoder, settings = self.decoded.decoder, self.settings
        tables = read_table(
            decoder, self.storage, span, settings.max_rows, settings.skip, places=True, room_bytes=settings.room_bytes
        )
        for number, (rows, _, first_row) in enumerate(tables):
            if number == batch.block and rows is not None:
                return Located(rows, None, display_url(span.url), first_row, span.key_columns)
        raise AssertionError("a batch that was read once cannot be read again")

    def first_end_beyond(self, type_name: str, num_nodes: int) -> tuple[str, int]:
        """Return the place and the ID of the first end of a node type that is not below ``num_nodes``."""
        for batch, edges in self.decoded.edge_batches():
            beyond = []
            for end, ids in (("src", edges.src), ("dst", edges.dst)):
                relation = self.decoded.relations[batch.codes[0] if batch.codes else 0]
                if getattr(relation, f"{end}_type") == type_name:
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
        return {record: place for record, (place, _) in self.describe_nodes(records).items()}

    def describe_nodes(self, records: NDArray[np.int64]) -> dict[int, tuple[str, str]]:
        """Return (place, raw ID) of some node records, which ascend; every batch is decoded once."""
        places: dict[int, tuple[str, str]] = {}
        at = 0
        while at < records.size:
            batch = self.batch_of_node(int(records[at]))
            stop = int(np.searchsorted(records, batch.first_node + batch.num_nodes))
            found = self.locate(batch)
            nodes = found.rows.nodes
            starts = None if nodes is None else nodes.at
            for record in records[at:stop].tolist():
                row = record - batch.first_node
                place = found.url if starts is None else found.place(int(starts[row]))
                places[record] = place, "" if nodes is None else self._node_words(nodes, row)
            at = stop
        return places

    def _node_words(self, nodes: RawNodes, row: int) -> str:
        space = self.decoded.spaces.of_type(nodes.type_names[int(nodes.types[row])])
        none = np.zeros(0, np.uint64)
        keys = none if isinstance(nodes.ids, RawTexts) else nodes.ids
        return id_words(keys, nodes, row, 0, is_signed=space in self.decoded.sources.signed_ids)

    def edge_place(self, record: int, end: str) -> str:
        """Return the place of an edge's ``src`` or ``dst``."""
        batch = self.batch_of_edge(record)
        found = self.locate(batch)
        edges = found.rows.edges
        at = None if edges is None else edges.at_src if end == "src" else edges.at_dst
        return found.place(int(at[record - batch.first_edge]), int(end == "dst")) if at is not None else found.url
