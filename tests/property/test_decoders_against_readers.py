"""The decoders against the naive readers, record by record, on the sample files cut into blocks of lines."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from golden.golden_cases import Case, load_cases
from reference.build import to_numpy
from reference.readers import plain_bytes, read_graph
from reference.records import Numbers, Sparse, Temporal, Text

from graphprep.model.protocols import Span, TextBlock

CLASSES = {"edgelist": "edgelist:EdgeListDecoder", "json": "json_lines:JsonDecoder", "tsv": "tsv:TsvDecoder"}
CASES = [
    case
    for case in load_cases()
    if case.options["format"] in CLASSES
    and len(case.inputs) == 1
    and case.input_paths[0].is_file()
    and "on_error" not in case.options
]


def make_decoder(case: Case):
    module, _, name = CLASSES[case.options["format"]].partition(":")
    module = import_module(f"graphprep.decoders.deepgnn.{module}")
    return getattr(module, name)(**case.options.get("decoder_options", {}), weight_dtype="float64")


def decode(case: Case, lines_per_block: int):
    """The raw rows of each block of so many lines."""
    lines = plain_bytes(case.input_paths[0]).splitlines(keepends=True)
    decoder = make_decoder(case)
    for at in range(0, len(lines), lines_per_block):
        data = b"".join(lines[at : at + lines_per_block])
        yield decoder.decode(TextBlock(data, Span("input"), at + 1, at == 0))


def column_values(column) -> list:
    """What each row of a chunk has: (family, dtype, width, shape, values)."""
    key, found, at = column.key, [], 0
    if key.family == "temporal":
        entry = 0
        for num_entries in column.entry_counts:
            entries = []
            for number in range(entry, entry + num_entries):
                stop = at + column.counts[number]
                end = None if column.end is None or column.end[number] == -1 else int(column.end[number])
                entries.append((int(column.start[number]), end, repr(column.values[at:stop].tolist())))
                at = stop
            entry += num_entries
            found.append(("temporal", key.dtype, 0, entries))
        return found
    for row, count in enumerate(column.counts):
        values = column.values[at : at + count]
        if key.family == "binary":
            found.append(("binary", "uint8", 0, values.tobytes()))
        elif key.family == "sparse":
            width = max(key.width, 1)
            coords = column.coords.reshape(-1)[at * width : (at + count) * width].tolist()
            found.append(("sparse", key.dtype, key.width, coords, repr(values.tolist())))
        else:
            found.append(("numbers", key.dtype, 0, repr(values.tolist())))
        assert values.dtype.name == key.dtype, (key, row)
        at += count
    assert at == column.values.shape[0]
    return found


def reader_value(value) -> tuple:
    if isinstance(value, Text):
        return ("binary", "uint8", 0, value.data)
    if isinstance(value, Temporal):
        entries = [(start, end, repr(to_numpy(given, value.dtype).tolist())) for start, end, given in value.entries]
        return ("temporal", value.dtype, 0, entries)
    values = repr(to_numpy(value.values, value.dtype).tolist())
    if isinstance(value, Sparse):
        return ("sparse", value.dtype, value.width, list(value.coords), values)
    assert isinstance(value, Numbers)
    return ("numbers", value.dtype, 0, values)


def unpack(rows, num_rows: int) -> list[dict]:
    """For each row its weight, times and slots."""
    out: list[dict] = [{"slots": {}} for _ in range(num_rows)]
    for column in rows.columns:
        for row, value in zip(column.rows, column_values(column), strict=True):
            if column.key.role is not None:
                out[row][column.key.role] = value[-1]
            else:
                out[row]["slots"][column.key.slot] = value
    for row, one in enumerate(out):
        one["num_slots"] = 0 if rows.num_slots is None else int(rows.num_slots[row])
    return out


def expected_row(record, dated: bool) -> dict:
    slots = {slot: reader_value(value) for slot, value in record.slots.items()}
    row = {"slots": slots, "weight": repr([float(record.weight)]), "num_slots": record.num_slots}
    if dated:
        row["created_at"] = repr([0 if record.created_at is None else record.created_at])
        row["removed_at"] = repr([-1 if record.removed_at is None else record.removed_at])
    return row


@pytest.mark.parametrize("lines_per_block", [1, 3, 10_000])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_records_are_the_readers(case, lines_per_block):
    graph = read_graph(case.options["format"], case.input_paths, case.options)
    nodes, edges = [], []
    for raw in decode(case, lines_per_block):
        if raw.nodes is not None:
            found = unpack(raw.nodes, raw.nodes.num_rows)
            names = np.array(raw.nodes.type_names)[raw.nodes.types] if raw.nodes.num_rows else []
            nodes += [(int(i), str(name), row) for i, name, row in zip(raw.nodes.ids, names, found, strict=True)]
        if raw.edges is not None:
            found = unpack(raw.edges, raw.edges.num_rows)
            names = [raw.edges.relation_names[code].name for code in raw.edges.relations]
            ends = zip(raw.edges.src.tolist(), raw.edges.dst.tolist(), names, found, strict=True)
            edges += [(src, dst, name, row) for src, dst, name, row in ends]
    for *_, row in nodes + edges:
        if graph.dated:
            row.setdefault("created_at", repr([0]))
            row.setdefault("removed_at", repr([-1]))
    assert nodes == [(node.id, node.type, expected_row(node, graph.dated)) for node in graph.nodes]
    assert edges == [(edge.src, edge.dst, edge.relation, expected_row(edge, graph.dated)) for edge in graph.edges]
