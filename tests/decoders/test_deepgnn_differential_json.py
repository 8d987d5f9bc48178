"""DeepGNN's own JsonDecoder and ours, line by line, where they agree.

They differ where the peer drops or corrupts something (docs/formats/json.md); those cases are not generated here.
"""

from __future__ import annotations

import importlib.util
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from graphprep.decoders.adapter import LineDecoderAdapter
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import ColumnChunk

GROUPS = {
    "float": "float32", "double": "float64", "float16": "float16", "float32": "float32", "float64": "float64", "int8": "int8",
    "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64",
}  # fmt: skip


@pytest.fixture(scope="module")
def peer():
    """The peer's decoder. Its module is loaded alone: the package asks for more than a decoder needs."""
    found = importlib.util.find_spec("deepgnn")
    if found is None or not found.submodule_search_locations:
        pytest.skip("deepgnn-ge is not installed")
    path = next(Path(found.submodule_search_locations[0]).rglob("decoders.py"), None)
    if path is None:
        pytest.skip("deepgnn-ge has no decoders.py")
    spec = importlib.util.spec_from_file_location("deepgnn_decoders", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.JsonDecoder()


# ------------------------------------------------------------------------------------------------ lines


def number(rng: random.Random, dtype: str):
    if dtype.startswith("float"):
        return rng.choice([rng.uniform(-9, 9), rng.randint(-99, 99), None, math.inf, -0.0, 1e-7, 12345.678])
    bounds = np.iinfo(dtype)
    return rng.choice([bounds.min, bounds.max, rng.randint(0, 100), int(bounds.max) // 3])


def dense(rng, dtype):
    if rng.random() < 0.2:
        return [[number(rng, dtype) for _ in range(3)] for _ in range(rng.randint(1, 3))]
    if rng.random() < 0.1:
        return number(rng, dtype)
    return [number(rng, dtype) for _ in range(rng.randint(1, 6))]


def sparse(rng, dtype):
    size, width = rng.randint(0, 4), rng.randint(0, 3)
    coordinates = [
        [rng.randint(-9, 99) for _ in range(width)] if width else rng.randint(-(2**63), 2**63 - 1) for _ in range(size)
    ]
    return {"coordinates": coordinates, "values": [number(rng, dtype) for _ in range(size)]}


def text(rng):
    return "".join(rng.choice('ab "\\,/\n\té€😀\x00') for _ in range(rng.randint(0, 8)))


def features(rng) -> dict:
    found: dict[str, dict] = {}
    for slot in rng.sample(range(12), rng.randint(0, 5)):
        group = rng.choice(list(GROUPS))
        kind = rng.random()
        key = str(slot) if rng.random() < 0.9 else f"0{slot}"
        if kind < 0.5:
            found.setdefault(f"{group}_feature", {})[key] = dense(rng, GROUPS[group])
        elif kind < 0.75:
            found.setdefault(f"sparse_{group}_feature", {})[key] = sparse(rng, GROUPS[group])
        elif kind < 0.9:
            found.setdefault("binary_feature", {})[key] = text(rng)
        else:
            dates = rng.sample(range(-50, 50), rng.randint(1, 3))
            entries = [{"values": [number(rng, GROUPS[group]) for _ in range(2)], "created_at": date} for date in dates]
            found.setdefault(f"{group}_feature", {})[key] = entries
    if rng.random() < 0.1:
        found.setdefault("double_feature", None)
    return found


def times(rng) -> dict:
    return {key: rng.randint(0, 99) for key in ("created_at", "removed_at") if rng.random() < 0.3}


def record(rng) -> dict:
    node_id = rng.choice([rng.randint(0, 50), 2**63, 2**64 - 1])
    edges = [
        {
            "src_id": node_id,
            "dst_id": rng.choice([rng.randint(0, 9), 2**64 - 1]),
            "edge_type": rng.randint(0, 3),
            "weight": rng.choice([1, 0.25, -3.5, 1e-3]),
            **features(rng),
            **times(rng),
        }
        for _ in range(rng.randint(0, 4))
    ]
    return {
        "node_id": node_id,
        "node_type": rng.randint(0, 2),
        "node_weight": rng.random(),
        **features(rng),
        **times(rng),
        "edge": edges,
    }


# ------------------------------------------------------------------------------------------------ what both say


def theirs(peer, line: str) -> list[tuple]:
    """(src, dst or None, type, weight, created, removed, features by slot); a node first, then its edges, sorted."""
    out = []
    for src, dst, kind, weight, created, removed, given in peer.decode(line):
        slots = {slot: value for slot, one in enumerate(given) if (value := their_value(one)) is not None}
        out.append((src, None if dst == -1 else dst, str(kind), float(weight), created, removed, len(given), slots))
    return out[:1] + sorted(out[1:], key=repr)


def their_value(value):
    if value is None:
        return None
    if isinstance(value, str):
        return ("binary", value.encode())
    if isinstance(value, tuple):
        coordinates, values = value
        return ("sparse", values.dtype.name, coordinates.tolist(), values.tobytes()) if values.size else None
    if value.dtype == np.byte and value.size >= 20 and value.tobytes()[-8:] == bytes(8):
        dated = their_dates(value.tobytes())
        if dated is not None:
            return dated
    return ("numbers", value.dtype.name, np.atleast_1d(value).shape, value.tobytes())


def their_dates(data: bytes):
    """Read the layout of a temporal feature, None where it is none: n, n starts, n + 1 offsets, values, 8 zero bytes."""
    count = int(np.frombuffer(data, np.int32, 1)[0])
    header = 4 + 8 * (2 * count + 1)
    if not 0 < count < 10 or len(data) < header + 8:
        return None
    starts, offsets = np.split(np.frombuffer(data, np.int64, 2 * count + 1, 4), [count])
    if offsets[0] != header or offsets[-1] != len(data) - 8:
        return None
    return ("temporal", [(int(start), data[a:b]) for start, a, b in zip(starts, offsets, offsets[1:], strict=False)])


def ours(line: str) -> list[tuple]:
    rows = JsonDecoder(weight_dtype="float64").decode(TextBlock(line.encode(), Span("x")))
    nodes, edges = rows.nodes, rows.edges
    node_columns, edge_columns = by_row(nodes.columns, nodes.num_rows), by_row(edges.columns, edges.num_rows)
    out = [as_tuple(nodes.ids[0], None, nodes.type_names[nodes.types[0]], nodes.num_slots[0], node_columns[0])]
    found = []
    for i in range(edges.num_rows):
        name = edges.relation_names[edges.relations[i]].name
        found.append(as_tuple(edges.src[i], int(edges.dst[i]), name, edges.num_slots[i], edge_columns[i]))
    return out + sorted(found, key=repr)


def as_tuple(src, dst, kind, num_slots, columns) -> tuple:
    side = {key: value for key, value in columns.items() if isinstance(key, str)}
    slots = {key: value for key, value in sorted(columns.items(), key=repr) if not isinstance(key, str)}
    created, removed = side.get("created_at", 0), side.get("removed_at", -1)
    return (int(src), dst, kind, side["weight"], created, removed, int(num_slots), dict(sorted(slots.items())))


def by_row(columns, num_rows) -> list[dict]:
    out: list[dict] = [{} for _ in range(num_rows)]
    for chunk in columns:
        values = chunk.values.tolist() if chunk.key.role else list(our_values(chunk))
        for row, value in zip(chunk.rows.tolist(), values, strict=True):
            out[row][chunk.key.role or chunk.key.slot] = value
    return out


def our_values(chunk: ColumnChunk):
    at = entry = 0
    for i in range(chunk.rows.size):
        if chunk.key.family == "temporal":
            dated = []
            for j in range(entry, entry + int(chunk.entry_counts[i])):
                stop = at + int(chunk.counts[j])
                dated.append((int(chunk.start[j]), chunk.values[at:stop].tobytes()))
                at = stop
            entry += int(chunk.entry_counts[i])
            yield ("temporal", sorted(dated, key=lambda one: one[0]))
            continue
        stop = at + int(chunk.counts[i])
        values, width = chunk.values[at:stop], chunk.key.width
        if chunk.key.family == "binary":
            yield ("binary", values.tobytes())
        elif chunk.key.family == "sparse":
            coordinates = chunk.coords[at * max(width, 1) : stop * max(width, 1)]
            shape = (-1, width) if width else (-1,)
            yield ("sparse", chunk.key.dtype, coordinates.reshape(shape).tolist(), values.tobytes())
        else:
            yield ("numbers", chunk.key.dtype, chunk.item_shape or (values.size,), values.tobytes())
        at = stop


@pytest.mark.parametrize("seed", range(6))
def test_every_line_says_the_same(peer, seed):
    rng = random.Random(seed)
    for _ in range(60):
        line = json.dumps(record(rng), ensure_ascii=rng.random() < 0.5)
        assert repr(ours(line)) == repr(theirs(peer, line)), line


def test_the_peer_runs_through_the_adapter(peer):
    rng = random.Random(7)
    records = []
    for _ in range(40):
        one = record(rng)
        for owner in (one, *one["edge"]):
            for group, slots in owner.items():
                if group.endswith("_feature") and not group.startswith("sparse") and slots is not None:
                    owner[group] = {slot: value for slot, value in slots.items() if not _is_dated(value)}
        one["edge"].sort(
            key=lambda edge: (edge["edge_type"], edge.get("created_at", 0), edge.get("removed_at", 0), edge["dst_id"])
        )
        records.append(one)
    block = TextBlock("\n".join(json.dumps(one) for one in records).encode(), Span("x"))
    mine, adapted = JsonDecoder().decode(block), LineDecoderAdapter(peer).decode(block)
    assert mine.nodes.ids.tolist() == adapted.nodes.ids.tolist()
    assert mine.edges.src.tolist() == adapted.edges.src.tolist()
    assert mine.edges.dst.tolist() == adapted.edges.dst.tolist()
    assert mine.edges.relations.tolist() == adapted.edges.relations.tolist()
    for one, two in ((mine.nodes, adapted.nodes), (mine.edges, adapted.edges)):
        keys = {chunk.key for chunk in one.columns if chunk.key.role is None}
        assert keys == {chunk.key for chunk in two.columns if chunk.key.role is None}
        for key in keys:
            assert cells(one, key) == cells(two, key)


def _is_dated(value) -> bool:
    return isinstance(value, list) and isinstance(value[0], dict)


def cells(rows, key) -> dict:
    found = {}
    for chunk in rows.columns:
        if chunk.key == key:
            found.update(zip(chunk.rows.tolist(), map(repr, our_values(chunk)), strict=True))
    return found
