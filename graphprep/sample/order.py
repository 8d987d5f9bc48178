"""Which graph samples are of, and in which order its IDs stand: what binds them to their store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from xxhash import xxh3_64, xxh3_64_hexdigest

from graphprep.derived.store import DerivedStore
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import edge_type_text
from graphprep.sample.arrays import block_types
from graphprep.sample.rows import BlockArrays, open_rows
from graphprep.storage.write.publish import npy_header
from graphprep.store.files import raw_id_files
from graphprep.store.items import StoredArray
from graphprep.store.single import CountingArray, WholeStore

_STEP = 1 << 18  # rows that are read and hashed at once


def describe_store(metadata: GraphMetadata, store: DerivedStore, direction: str) -> dict[str, Any]:
    """Return what manifests of samples say of their store: names, counts, and the order of nodes and edges.

    An order is the xxh3 of those of the arrays' files, were there one partition: where there is one it costs nothing, where
    there are several a pass over the arrays. ``store`` has the layout of the direction.
    """
    kinds = block_types(metadata.node_types, metadata.edge_types, "out" if direction == "out" else "in")
    return {
        "graph_name": metadata.graph_name,
        "node_type": list(metadata.node_types),
        "num_nodes_per_type": list(metadata.num_nodes_per_type),
        "edge_type": list(map(edge_type_text, metadata.edge_types)),
        "num_edges_per_type": list(metadata.num_edges_per_type),
        "checksums": [schema.checksum for schema in metadata.edge_schemas],
        "node_order": [_order_of_nodes(store, number) for number in range(len(metadata.node_types))],
        "edge_order": [_order_of_edges(open_rows(store, one, None, None)) for one in kinds],
    }


def find_difference(stated: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Return in words how a store differs from the one that is stated, empty where it does not."""
    for name in ("node_type", "num_nodes_per_type", "edge_type", "num_edges_per_type", "checksums"):
        if stated.get(name) != found[name]:
            return f"{name} was {stated.get(name)}, and is {found[name]}"
    for name, types, what in (("node_order", "node_type", "nodes"), ("edge_order", "edge_type", "edges")):
        if name not in stated:
            return f"their manifest lacks {name}, which says how its {what} are numbered"
        for kind, one, other in zip(found[types], stated[name], found[name], strict=True):
            if one != other:
                return f"its {what} of type {kind!r} stand in another order"
    return ""


def _order_of_nodes(store: DerivedStore, number: int) -> str:
    kind = store.metadata.node_schemas[number].raw_ids
    files = [one.path for one in raw_id_files(store.node_folder(number), kind)]
    return _joined([_digest(WholeStore(store).array(0, path)) for path in files]) if files else kind


def _order_of_edges(rows: BlockArrays) -> str:
    """Return the order of an edge type; where no edge IDs are stored, an edge is its row."""
    arrays = (rows.indptr, rows.indices, rows.edge_ids)
    return _joined([_digest(one) for one in arrays if not isinstance(one, CountingArray)])


def _joined(digests: list[str]) -> str:
    return xxh3_64_hexdigest(" ".join(digests).encode())


def _digest(array: StoredArray) -> str:
    """Return the xxh3 of an array's file; of one that is made of several, that of the file that it would be."""
    if array.entry.xxh3:
        return array.entry.xxh3
    digest = xxh3_64(npy_header(array.dtype, array.shape))
    for start in range(0, array.shape[0], _STEP):
        digest.update(np.ascontiguousarray(array.read(start, start + _STEP)).data)
    return digest.hexdigest()
