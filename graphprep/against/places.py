"""Where rows stand in the input: it is decoded once more, and searched for the hashes of their raw IDs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.against.compare import InputRow
from graphprep.convert.decoded.rows import Batch, Decoded, RawBatchEdges, wide_ids
from graphprep.convert.read.locate import Locator
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.ids.sums import Hashes, mix_hashes
from graphprep.model.metadata import GraphMetadata

Found = dict[int, list[tuple[int, str]]]  # hash: records, and which end of them is meant
_MOST_FOUND = 1000  # records of one hash


def find_places(
    decoded: Decoded, locator: Locator, metadata: GraphMetadata, rows: Sequence[InputRow]
) -> Mapping[InputRow, str]:
    """Return ``file:line:column`` of rows of the input, of those that are found.

    ``metadata`` is that of the store which was made of the input. A node that no record declares is where an edge first
    names it.
    """
    if decoded.text_seed:  # keys of texts are no hashes then
        return {}
    places: dict[InputRow, str] = {}
    for key in dict.fromkeys((row.edges, row.type_number) for row in rows):
        own = [row for row in rows if (row.edges, row.type_number) == key]
        wanted = np.array(sorted({row.hash for row in own}), np.uint64)
        found = _find_edges(decoded, metadata, key[1], wanted) if key[0] else _find_nodes(decoded, metadata, key[1], wanted)
        for row in own:
            records = found.get(row.hash, [])
            if records:
                record, end = records[row.rank if len(records) == row.num else 0]
                places[row] = locator.edge_place(record, end) if end else locator.node_place(record)
    return places


def _find_nodes(decoded: Decoded, metadata: GraphMetadata, number: int, wanted: Hashes) -> Found:
    name, found = metadata.node_types[number], Found()
    space = decoded.spaces.of_type(name)
    for batch, (ids, codes, _) in decoded.node_batches():
        hashes = _hash(decoded, space, ids)
        for row in np.flatnonzero(np.isin(hashes, wanted)).tolist():
            if decoded.node_types[int(codes[row])] == name:
                _add(found, int(hashes[row]), batch.first_node + row, "")
    for batch, edges in decoded.edge_batches() if len(found) < wanted.size else ():
        for side, end in enumerate(("src", "dst")):
            if decoded.end_spaces(batch.codes)[side][0] == space:
                hashes = _hash(decoded, space, edges.dst if side else edges.src)
                for row in np.flatnonzero(np.isin(hashes, wanted)).tolist():
                    if int(hashes[row]) not in found:
                        _add(found, int(hashes[row]), batch.first_edge + row, end)
    return found


def _find_edges(decoded: Decoded, metadata: GraphMetadata, number: int, wanted: Hashes) -> Found:
    edge_type, found = metadata.edge_types[number], Found()
    for batch, edges in decoded.edge_batches():
        ends = decoded.end_spaces(batch.codes)
        src, dst = _hash(decoded, ends[0][0], edges.src), _hash(decoded, ends[1][0], edges.dst)
        hashes = mix_hashes(src, dst)
        for row in np.flatnonzero(np.isin(hashes, wanted)).tolist():
            relation = decoded.relations[_code(batch, edges, row)]
            said = relation.src_type, relation.name, relation.dst_type
            if all(name is None or name == own for name, own in zip(said, edge_type, strict=True)):
                _add(found, int(hashes[row]), batch.first_edge + row, "src")
    return found


def _code(batch: Batch, edges: RawBatchEdges, row: int) -> int:
    return batch.codes[0] if edges.relations is None else int(edges.relations[row])


def _hash(decoded: Decoded, space: str, ids: NDArray[Any]) -> Hashes:
    """Return h of raw IDs; those of texts are their keys."""
    return wide_ids(ids) if space in decoded.texts else np.asarray(hash_ints(wide_ids(ids)))


def _add(found: Found, value: int, record: int, end: str) -> None:
    records = found.setdefault(value, [])
    if len(records) < _MOST_FOUND:
        records.append((record, end))
