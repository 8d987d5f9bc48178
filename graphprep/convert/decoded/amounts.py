"""How much an input holds once it is decoded: what the needs of all later stages go by."""

from __future__ import annotations

from dataclasses import dataclass

from graphprep.convert.decoded.rows import Decoded
from graphprep.engine.ledger import EDGE_BYTES

NODE_BYTES = 64  # of a node on its way, beside its columns: raw and typed ID, type, partition, and their rows in buckets


@dataclass(frozen=True)
class Amounts:
    """Rows and bytes of a decoded input: counted, or estimated before anything is read.

    ``num_node_rows`` are rows of nodes, ``num_nodes`` the nodes of all types, 0 before they are indexed; ``raw_id_bytes`` are
    those of raw IDs that are kept. ``column_bytes`` are those of columns as they were decoded. ``has_texts``: raw IDs are
    texts; ``by_ends``: nodes are the ends of edges; ``has_aligned``: columns stand apart from the rows that they belong to.
    """

    num_node_rows: int
    num_edges: int
    column_bytes: int = 0
    num_nodes: int = 0
    raw_id_bytes: int = 0
    has_texts: bool = False
    by_ends: bool = False
    has_aligned: bool = False

    @classmethod
    def of(cls, decoded: Decoded) -> Amounts:
        """Count what was decoded."""
        return cls(
            num_node_rows=decoded.num_nodes,
            num_edges=decoded.num_edges,
            column_bytes=sum(decoded.column_bytes.values()),
            has_texts=bool(decoded.texts),
            by_ends=decoded.sources.nodes == "ends",
            has_aligned=bool(decoded.aligned),
        )

    @property
    def most_bytes(self) -> int:
        """Return the most that rows may take on their way: twice what one stage holds, as they go from one to the next."""
        return 2 * (EDGE_BYTES * self.num_edges + NODE_BYTES * self.num_nodes + 2 * self.column_bytes + self.raw_id_bytes)
