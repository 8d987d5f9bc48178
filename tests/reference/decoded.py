"""Rows as decoders hand them over, and records as the naive readers do, in one form that can be compared."""

from __future__ import annotations

import numpy as np

from reference.build import to_numpy
from reference.records import Sparse, Text


def nodes_of(rows) -> list[dict]:
    """Unpack RawNodes: a dict a node."""
    if rows is None:
        return []
    assert (rows.ids.dtype, rows.types.dtype, rows.num_slots.dtype) == ("uint64", "int32", "int32")
    found = _unpack(rows, rows.ids.size)
    for i, one in enumerate(found):
        one |= {"id": int(rows.ids[i]), "type": rows.type_names[rows.types[i]]}
    return found


def edges_of(rows) -> list[dict]:
    """Unpack RawEdges: a dict an edge."""
    if rows is None:
        return []
    assert (rows.src.dtype, rows.dst.dtype, rows.relations.dtype) == ("uint64", "uint64", "int32")
    found = _unpack(rows, rows.src.size)
    for i, one in enumerate(found):
        one |= {"src": int(rows.src[i]), "dst": int(rows.dst[i]), "type": rows.relation_names[rows.relations[i]].name}
    return found


def _unpack(rows, num_rows: int) -> list[dict]:
    found: list[dict] = [{"slots": {}, "num_slots": int(count)} for count in rows.num_slots]
    assert len(found) == num_rows
    for column in rows.columns:
        key = column.key
        assert column.values.dtype.name == key.dtype and column.values.shape == (column.counts.sum(),)
        assert (column.rows.dtype, column.counts.dtype) == ("int64", "int64") and (np.diff(column.rows) > 0).all()
        equal = len(set(column.counts.tolist())) == 1
        shape = (int(column.counts[0]),) if key.family == "numbers" and equal else None
        assert column.item_shape == (() if key.role else shape)
        stops = np.cumsum(column.counts)
        for i, row in enumerate(column.rows):
            start, stop = stops[i] - column.counts[i], stops[i]
            if key.role:
                found[row][key.role] = column.values[start].tobytes()
                continue
            assert key.name == f"feat_{key.slot}" and key.slot not in found[row]["slots"]
            width = max(key.width, 1)
            coords = column.coords[start * width : stop * width].tolist() if key.family == "sparse" else None
            found[row]["slots"][key.slot] = (key.family, key.dtype, key.width, coords, column.values[start:stop].tobytes())
    return found


def as_found(record, weight_dtype: str = "float32", dated: bool = False) -> dict:
    """Bring a record of a naive reader into the same form."""
    ends = ("id",) if hasattr(record, "id") else ("src", "dst")
    one = {name: getattr(record, name) for name in ends}
    one["type"] = record.type if hasattr(record, "id") else record.relation
    one["weight"] = np.array([record.weight], weight_dtype).tobytes()
    one["num_slots"] = record.num_slots
    one["slots"] = {slot: _value(value) for slot, value in record.slots.items()}
    if dated:
        one["created_at"] = np.int64(0 if record.created_at is None else record.created_at).tobytes()
        one["removed_at"] = np.int64(-1 if record.removed_at is None else record.removed_at).tobytes()
    return one


def _value(value) -> tuple:
    if isinstance(value, Text):
        return ("binary", "uint8", 0, None, value.data)
    data = to_numpy(value.values, value.dtype).tobytes()
    if isinstance(value, Sparse):
        return ("sparse", value.dtype, value.width, list(value.coords), data)
    return ("numbers", value.dtype, 0, None, data)
