"""Naive readers: a few lines of json, csv, NumPy and PyArrow a format, one record at a time.

``read_graph(format, paths, options)`` returns the decoded records. A record that is faulty raises ValueError, or is
counted and left out under ``on_error: skip``. They accept well-formed input; what a faulty one must say is tested elsewhere.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from reference.peers import READERS
from reference.records import Declared, Edge, Graph, Node, Numbers, Sparse, Temporal, Text


def read_graph(format: str, paths: list[Path], options: dict) -> Graph:
    if format in READERS:
        return READERS[format](paths[0], options.get("decoder_options", {}))
    readers = {"edgelist": read_edgelist, "json": read_json, "tsv": read_tsv, "chunked": read_chunked, "edges": read_edges}
    reader = {**readers, "graph": read_tables}[format]
    return reader(expand(paths), options.get("decoder_options", {}), options.get("on_error") == "skip")


def expand(paths: list[Path]) -> list[Path]:
    """Folders become their files, by UTF-8 path; hidden ones and subfolders are left out."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir() and not (path / "metadata.json").exists():
            inside = [one for one in path.iterdir() if one.is_file() and one.name[0] not in "._"]
            found += sorted(inside, key=lambda one: str(one).encode())
        else:
            found.append(path)
    return found


def plain_bytes(path: Path) -> bytes:
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        return gzip.decompress(data)
    if data[:3] == b"BZh":
        return bz2.decompress(data)
    if data[:6] == b"\xfd7zXZ\0":
        return lzma.decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True).read()
    return data


def lines_of(path: Path) -> list[str]:
    data = plain_bytes(path).removeprefix(b"\xef\xbb\xbf")
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.removesuffix(b"\r").decode() for line in lines]


def collect(paths, decode_line, graph: Graph, skip: bool, is_blank=lambda line: line.strip(" \t") == "") -> Graph:
    """Decode every line of every file into nodes and edges of ``graph``."""
    for path in paths:
        for line in lines_of(path):
            if is_blank(line):
                continue
            try:
                nodes, edges = decode_line(line)
            except (ValueError, KeyError, IndexError, TypeError):
                if not skip:
                    raise
                graph.num_skipped += 1
                continue
            graph.nodes += nodes
            graph.edges += edges
    return graph


# -------------------------------------------------------------------------------------------------------------- numbers

_INT = re.compile(r"[+-]?[0-9]+")


def to_int(text: str, low=-(2**63), high=2**64 - 1) -> int:
    text = text.strip(" \t")
    if not _INT.fullmatch(text):
        raise ValueError(f"not an integer: {text!r}")
    value = int(text)
    if not low <= value <= high:
        raise ValueError(f"out of range: {text!r}")
    return value


def to_id(text: str) -> int:
    return to_int(text, 0)


def to_type(text: str) -> str:
    return str(to_int(text, 0, 2**31 - 1))


def to_float(text: str) -> float:
    text = text.strip(" \t")
    if "_" in text or not text.isascii():
        raise ValueError(f"not a number: {text!r}")
    return float(text)


def to_value(text: str, dtype: str):
    kind = np.dtype(dtype).kind
    if kind == "b":
        return {"0": False, "1": True, "false": False, "true": True}[text.strip(" \t").lower()]
    if kind in "iu":
        return to_int(text, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    if kind == "c":
        return complex(text.strip(" \t"))
    return to_float(text)


# ------------------------------------------------------------------------------------------------------------- edgelist


def read_edgelist(paths, options: dict, skip: bool) -> Graph:
    temporal = options.get("temporal", False)
    created, removed = options.get("default_created_at"), options.get("default_removed_at")
    graph = Graph("records", weighted=True, dated=temporal or created is not None or removed is not None)
    return collect(paths, lambda line: edgelist_line(line, options), graph, skip)


def edgelist_line(line: str, options: dict):
    columns = line.split(options.get("delimiter", ","))
    first = to_id(columns.pop(0))
    is_node = parses(to_int, columns[0]) and to_int(columns[0]) == -1
    owner = "node" if is_node else "edge"

    def take(name, parse):
        default = options.get(f"default_{name}")
        return parse(str(default)) if default is not None else parse(columns.pop(0))

    if is_node:
        columns.pop(0)
        given_type, dst = take("node_type", to_type), 0
    else:
        given_type = take("edge_type", to_type)
        dst = to_id(columns.pop(0))
    weight = take(f"{owner}_weight", to_float)
    created, removed = (edgelist_time(columns, options, name) for name in ("created_at", "removed_at"))
    slots, num_slots = edgelist_features(columns, options, owner)
    if is_node:
        return [Node(first, given_type, weight, created, removed, slots, num_slots)], []
    edge = Edge(first, dst, given_type, None, None, weight, None, created, removed, slots, num_slots)
    return [], [edge]


def edgelist_time(columns: list[str], options: dict, name: str) -> int | None:
    if options.get(f"default_{name}") is not None:
        return int(options[f"default_{name}"])
    return to_int(columns.pop(0)) if options.get("temporal") else None


def as_list(value) -> list[str]:
    if value is None:
        return []
    return [str(one).strip() for one in (value.split(",") if isinstance(value, str) else value)]


def edgelist_features(columns: list[str], options: dict, owner: str) -> tuple[dict, int]:
    types = as_list(options.get(f"default_{owner}_feature_types"))
    lens = as_list(options.get(f"default_{owner}_feature_lens"))
    slots, slot = {}, 0
    while columns or slot < len(types):
        in_line = slot >= len(types) or types[slot] == "-"
        if in_line and not columns:
            break
        dtype = columns.pop(0).strip(" \t") if in_line else types[slot]
        if dtype == "":
            if columns:
                raise ValueError("columns after a blank dtype")
            break
        length = lens[slot] if slot < len(lens) and lens[slot] != "-" else columns.pop(0)
        value = edgelist_value(columns, dtype, length, options)
        if value is not None:
            slots[slot] = value
        slot += 1
    return slots, slot


def edgelist_value(columns: list[str], dtype: str, length: str, options: dict):
    first, slash, second = length.partition(options.get("length_delimiter", "/"))
    count = to_int(first, 0)
    if count == 0:
        return None
    if dtype == "binary":
        if slash or count != 1:
            raise ValueError("binary has length 0 or 1")
        return Text(binary_text(columns, options).encode())
    dtype = np.dtype(dtype).name
    if not slash:
        return Numbers(dtype, (count,), tuple(to_value(columns.pop(0), dtype) for _ in range(count)))
    width = to_int(second, 0)
    coords = tuple(to_int(columns.pop(0), high=2**63 - 1) for _ in range(count * max(width, 1)))
    return Sparse(dtype, width, coords, tuple(to_value(columns.pop(0), dtype) for _ in range(count)))


def binary_text(columns: list[str], options: dict) -> str:
    """One column; one that ends with the escape, once every doubled escape is taken out, goes on in the next."""
    escape, delimiter = options.get("binary_escape", "\\"), options.get("delimiter", ",")
    text = columns.pop(0)
    while text.replace(escape * 2, "").endswith(escape):
        text = text.removesuffix(escape)
        if not columns:
            break
        text += delimiter + columns.pop(0)
    return text


# ----------------------------------------------------------------------------------------------------------------- json

_JSON_DTYPES = {"float": "float32", "double": "float64"} | {
    name: name
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}


def read_json(paths, options: dict, skip: bool) -> Graph:
    graph = collect(paths, json_line, Graph("records", weighted=True), skip)
    stated = [one for one in (*graph.nodes, *graph.edges) if one.created_at is not None or one.removed_at is not None]
    graph.dated = bool(stated)
    return graph


def json_line(line: str):
    record = json.loads(line)
    node_id = json_int(record["node_id"], 0)
    created, removed = json_times(record)
    slots, num_slots = json_features(record)
    kind = str(json_int(record["node_type"], 0, 2**31 - 1))
    node = Node(node_id, kind, float(record["node_weight"]), created, removed, slots, num_slots)
    if "edge" not in record and "neighbor" in record:
        old = [
            {"src_id": node_id, "dst_id": int(dst), "edge_type": int(edge_type), "weight": weight}
            for edge_type, ends in record["neighbor"].items()
            for dst, weight in ends.items()
        ]
        return [node], [json_edge(one, node) for one in old]
    return [node], [json_edge(one, node) for one in record["edge"]]


def json_edge(one: dict, node: Node) -> Edge:
    created, removed = json_times(one)
    slots, num_slots = json_features(one)
    return Edge(
        json_int(one["src_id"], 0),
        json_int(one["dst_id"], 0),
        str(json_int(one["edge_type"], 0, 2**31 - 1)),
        weight=float(one["weight"]),
        created_at=created if created is not None else node.created_at,
        removed_at=removed if removed is not None else node.removed_at,
        slots=slots,
        num_slots=num_slots,
    )


def json_int(value, low=-(2**63), high=2**64 - 1) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"not an integer in range: {value!r}")
    return value


def json_times(record: dict):
    return tuple(None if record.get(key) is None else json_int(record[key]) for key in ("created_at", "removed_at"))


def json_features(record: dict) -> tuple[dict, int]:
    slots, num_slots = {}, 0
    for key, group in record.items():
        if not key.endswith("_feature") or group is None:
            continue
        for text, given in group.items():
            slot = int(text)
            num_slots = max(num_slots, slot + 1)
            value = json_value(key.removesuffix("_feature"), given)
            if value is not None:
                if slot in slots:
                    raise ValueError(f"slot {slot} is in two groups")
                slots[slot] = value
    return slots, num_slots


def json_value(group: str, given):
    if given is None and group not in _JSON_DTYPES:
        return None
    if group == "binary":
        if not isinstance(given, str):
            raise ValueError("a binary feature is a text")
        return Text(given.encode())
    if group.startswith("sparse_"):
        return json_sparse(_JSON_DTYPES[group.removeprefix("sparse_")], given)
    dtype = _JSON_DTYPES[group]
    if isinstance(given, list) and given and isinstance(given[0], dict):
        return json_temporal(dtype, given)
    values = json_numbers(given, dtype)
    shape = np.shape(given) if isinstance(given, list) else (1,)
    return Numbers(dtype, tuple(shape), values) if values else None


def json_numbers(given, dtype) -> tuple:
    if isinstance(given, list):
        return tuple(x for one in given for x in json_numbers(one, dtype))
    if np.dtype(dtype).kind == "f":
        if given is None:
            return (math.nan,)
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise ValueError(f"not a number: {given!r}")
        return (float(given),)
    return (json_int(given, int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)),)


def json_sparse(dtype: str, given: dict):
    coordinates, values = given["coordinates"], json_numbers(given["values"], dtype)
    if not values:
        return None
    width = len(coordinates[0]) if isinstance(coordinates[0], list) else 0
    coords = tuple(c for one in coordinates for c in one) if width else tuple(coordinates)
    if len(coords) != len(values) * max(width, 1):
        raise ValueError("coordinates and values differ")
    return Sparse(dtype, width, coords, values)


def json_temporal(dtype: str, given: list[dict]) -> Temporal:
    """Dated values; an end of -1 is none."""
    ends = [None if one.get("removed_at") == -1 else one.get("removed_at") for one in given]
    entries = ((one["created_at"], end, json_numbers(one["values"], dtype)) for one, end in zip(given, ends, strict=True))
    return Temporal(dtype, tuple(entries))


# ------------------------------------------------------------------------------------------------------------------ tsv

_TSV_DTYPES = {"f": "float32", "d": "float64", "i": "int64", "u": "uint64"} | {
    f"{letter}{bits}": f"{name}{bits}"
    for letter, name, widths in (("f", "float", (16, 32, 64)), ("i", "int", (8, 16, 32, 64)), ("u", "uint", (8, 16, 32, 64)))
    for bits in widths
}


def read_tsv(paths, options: dict, skip: bool) -> Graph:
    return collect(paths, tsv_line, Graph("records", weighted=True), skip)


def tsv_line(line: str):
    cells = next(csv.reader([line], delimiter="\t"))
    cells += [""] * (5 - len(cells))
    node_id = to_id(cells[0])
    slots, num_slots = tsv_features(cells[3])
    node = Node(
        node_id,
        to_type(cells[1]) if cells[1].strip(" ") else "0",
        to_float(cells[2]) if cells[2].strip(" ") else 0.0,
        slots=slots,
        num_slots=num_slots,
    )
    return [node], [tsv_edge(one, node_id) for one in cells[4].split("|")] if cells[4] else []


def tsv_edge(text: str, node_id: int) -> Edge:
    fields = text.split(",", 3)
    if text.count(",") == 4 and to_int(fields[0]) == node_id and _INT.fullmatch(text.split(",")[3].strip()):
        _, dst, weight, edge_type, features = text.split(",")
        fields = [dst, edge_type, weight, features]
    slots, num_slots = tsv_features(fields[3].lstrip(" ") if len(fields) > 3 else "")
    weight = to_float(fields[2]) if len(fields) > 2 and fields[2].strip(" ") else 0.0
    return Edge(node_id, to_id(fields[0]), to_type(fields[1]), weight=weight, slots=slots, num_slots=num_slots)


def tsv_features(cell: str) -> tuple[dict, int]:
    if cell == "":
        return {}, 0
    slots = {}
    entries = cell.split(";")
    for slot, entry in enumerate(entries):
        if entry == "":
            continue
        code, content = entry.split(":", 1)
        if code == "b":
            slots[slot] = Text(content.encode())
        else:
            dtype = _TSV_DTYPES[code]
            values = tuple(to_value(one, dtype) for one in content.removeprefix(" ").split(" "))
            slots[slot] = Numbers(dtype, (len(values),), values)
    return slots, len(entries)


# -------------------------------------------------------------------------------------------------------------- chunked


def read_chunked(paths, options: dict, skip: bool) -> Graph:
    path = paths[0] / "metadata.json" if paths[0].is_dir() else paths[0]
    folder, meta = path.parent, json.loads(path.read_text())

    def counts(owner):
        if f"num_{owner}_per_type" in meta:
            return meta[f"num_{owner}_per_type"]
        return [sum(chunk) for chunk in meta[f"num_{owner}_per_chunk"]]

    types = meta["node_type"]
    edge_types = [tuple(p.replace("%3A", ":").replace("%25", "%") for p in text.split(":")) for text in meta["edge_type"]]
    graph = Graph(
        "identity",
        node_types=types,
        edge_types=edge_types,
        num_nodes=dict(zip(types, counts("nodes"), strict=True)),
        graph_name=meta.get("graph_name"),
    )
    for name, features in meta.get("node_data", {}).items():
        rows = [Node(i, name) for i in range(graph.num_nodes[name])]
        graph.node_columns[name] = [read_feature(folder, feature, block, rows) for feature, block in features.items()]
        graph.nodes += rows
    for text, edge_type in zip(meta["edge_type"], edge_types, strict=True):
        src_type, relation, dst_type = edge_type
        pairs = [pair for path in meta["edges"][text]["data"] for pair in edge_pairs(folder / path, meta["edges"][text])]
        edges = [Edge(src, dst, relation, src_type, dst_type) for src, dst in pairs]
        features = meta.get("edge_data", {}).get(text, {})
        graph.edge_columns[edge_type] = [read_feature(folder, feature, block, edges) for feature, block in features.items()]
        graph.edges += edges
    return graph


def csv_rows(path: Path, block: dict) -> list[list[str]]:
    delimiter = block["format"].get("delimiter", ",")
    lines = [line for line in lines_of(path) if line.strip(" \t")]
    return [line.split() if delimiter == " " else next(csv.reader([line], delimiter=delimiter)) for line in lines]


def edge_pairs(path: Path, block: dict) -> list[tuple[int, int]]:
    name = block["format"]["name"]
    if name == "csv":
        return [(to_id(src), to_id(dst)) for src, dst in csv_rows(path, block)]
    if name == "numpy":
        return [(int(src), int(dst)) for src, dst in np.load(path)]
    src, dst = pq.read_table(path).columns
    return list(zip(src.to_pylist(), dst.to_pylist(), strict=True))


def read_feature(folder: Path, name: str, block: dict, rows: list) -> Declared:
    """Put a feature's values into ``rows`` (nodes or edges of one type, in order); returns how the column is declared."""
    values, item_shape, dtype = [], (), "int64"
    family: type = Numbers
    if block["format"]["name"] == "csv":
        cells = [row for path in block["data"] for row in csv_rows(folder / path, block)]
        dtype = "int64" if all(_INT.fullmatch(cell.strip()) for row in cells for cell in row) else "float64"
        item_shape = (len(cells[0]),) if cells and len(cells[0]) > 1 else ()
        values = [Numbers(dtype, item_shape, tuple(to_value(cell, dtype) for cell in row)) for row in cells]
    else:
        for path in block["data"]:
            reader = npy_values if block["format"]["name"] == "numpy" else parquet_values
            found, family, dtype, item_shape = reader(folder / path)
            values += found
    for row, value in zip(rows, values, strict=True):
        if value is not None:
            row.columns[name] = value
    return Declared(name, family, dtype, item_shape)


def npy_values(path: Path):
    array = np.load(path)
    dtype, shape = array.dtype.newbyteorder("=").name, array.shape[1:]
    values = [Numbers(dtype, shape, tuple(np.ravel(row).tolist())) for row in array]
    return values, Numbers, dtype, shape


def parquet_values(path: Path):
    """One column of numbers, lists or texts; or columns "0", "1", … that make up the items of ``shape``."""
    table = pq.read_table(path)
    if table.num_columns == 1 and not is_number(table.schema.types[0]):
        return column_values(table.column(0))
    metadata = table.schema.metadata or {}
    dtype = np.dtype(table.schema.types[0].to_pandas_dtype()).name
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    shape = (len(table.columns),)
    if b"shape" in metadata:
        shape = tuple(int(n) for n in re.findall(r"\d+", metadata[b"shape"].decode()))[1:]
    elif len(table.columns) == 1:
        shape = ()
    return [Numbers(dtype, shape, row) for row in rows], Numbers, dtype, shape


def is_number(kind) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)


def column_values(column):
    """A Parquet column: numbers and bool as stored, text binary, lists of numbers, times and dates their integers."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date64(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if pa.types.is_date32(kind):
        column, kind = column.cast(pa.int32()), pa.int32()
    given = column.to_pylist()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return [None if v is None else Text(v.encode()) for v in given], Text, "uint8", ()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return [None if v is None else Text(v) for v in given], Text, "uint8", ()
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        dtype = np.dtype(kind.value_type.to_pandas_dtype()).name
        return [None if v is None else Numbers(dtype, (len(v),), tuple(v)) for v in given], Numbers, dtype, ()
    dtype = np.dtype(kind.to_pandas_dtype()).name
    return [None if v is None else Numbers(dtype, (), (v,)) for v in given], Numbers, dtype, ()


# ---------------------------------------------------------------------------------------------------------------- edges


def read_edges(paths, options: dict, skip: bool) -> Graph:
    src_type, relation, dst_type = edge_relation(options.get("relation"))
    types = [src_type] if src_type == dst_type else [src_type, dst_type]
    graph = Graph("ends", node_types=types, edge_types=[(src_type, relation, dst_type)])
    graph.weighted = options.get("weight_col") is not None
    graph.timed = options.get("time_col") is not None
    tables = [edge_table(path, options) for path in paths]
    names = next((names for names, _ in tables if names), [])
    roles = edge_roles(options, names)
    dropped = {position(one, names) for one in as_list(options.get("drop_columns"))}
    further = [at for at in range(len(names)) if at not in {*roles.values(), *dropped}]
    rows = [row for _, table in tables for row in table]
    values = {names[at]: further_values([row[at] for row in rows], declared_dtype(options, names[at])) for at in further}
    units = {name: unit for path in paths for name, unit in column_units(path).items()}
    declared = [replace(declared_as(name, found), unit=units.get(name)) for name, found in values.items()]
    for number, row in enumerate(rows):
        try:
            src, dst = (to_raw(row[roles[end]], options) for end in ("src", "dst"))
            weight = None if roles["weight"] is None else as_weight(row[roles["weight"]])
            time = None if roles["time"] is None else as_time(row[roles["time"]], options.get("time_unit"))
            name = relation if roles["relation"] is None else to_text(row[roles["relation"]])
        except (ValueError, IndexError):
            if not skip:
                raise
            graph.num_skipped += 1
            continue
        columns = {key: found[number] for key, found in values.items() if found[number] is not None}
        graph.edges.append(Edge(src, dst, name, src_type, dst_type, weight, time, columns=columns))
    graph.edge_columns = dict.fromkeys(graph.edge_types, declared)
    if roles["relation"] is not None:  # types are found in the data, with those columns that they have values of
        graph.edge_types = []
        for edge_type in {(src_type, edge.relation, dst_type) for edge in graph.edges}:
            own = {name for edge in graph.edges if edge.relation == edge_type[1] for name in edge.columns}
            graph.edge_columns[edge_type] = [one for one in declared if one.name in own]
    return settle_auto(graph) if options.get("id_type") == "auto" else graph


def edge_roles(options: dict, names: list[str]) -> dict[str, int | None]:
    """Which column is what; the ends are the first two beside the relation."""
    relation = position(options.get("relation_col"), names)
    free = [at for at in range(3) if at != relation]
    return {
        "src": position(options.get("src_col", free[0]), names),
        "dst": position(options.get("dst_col", free[1]), names),
        "weight": position(options.get("weight_col"), names),
        "time": position(options.get("time_col"), names),
        "relation": relation,
    }


def to_text(cell) -> str:
    """A cell as a text: as it is written, an integer in decimal digits. A blank one is none."""
    text = cell if isinstance(cell, str) else cell.data.decode() if isinstance(cell, Text) else str(cell.values[0])
    if not text.strip(" \t"):
        raise ValueError("empty")
    return text


def to_raw(cell, options: dict) -> int | str:
    """A cell as a raw ID, by ``id_type``; ``auto`` is a text until all are known."""
    kind = options.get("id_type") or ("string" if isinstance(cell, Text) else "uint")
    text = to_text(cell)
    if kind in ("string", "auto"):
        return text
    raw_id = (to_int64(text) if kind == "int" else to_id(text)) - int(options.get("index_base", 0))
    if raw_id < 0 and options.get("index_base"):
        raise ValueError("an ID is below the index base")
    return raw_id


def settle_auto(graph: Graph) -> Graph:
    """Make the raw IDs of each node type integers where all of them are, over the whole input."""
    texts: dict[str, set[str]] = {name: set() for name in graph.node_types}
    for edge in graph.edges:
        texts[edge.src_type].add(edge.src)
        texts[edge.dst_type].add(edge.dst)
    integers = {name for name, found in texts.items() if all(parses(to_int64, text) for text in found)}
    graph.edges = [
        replace(
            edge,
            src=int(edge.src) if edge.src_type in integers else edge.src,
            dst=int(edge.dst) if edge.dst_type in integers else edge.dst,
        )
        for edge in graph.edges
    ]
    return graph


def edge_relation(text: str | None) -> tuple[str, str, str]:
    if not text:
        return "_N", "_E", "_N"
    return ("_N", text, "_N") if ":" not in text else tuple(text.split(":"))  # type: ignore[return-value]


def position(column, names: list[str]) -> int | None:
    """A column by name or 0-based position."""
    if column is None:
        return None
    return names.index(column) if column in names else int(column)


def edge_table(path: Path, options: dict) -> tuple[list[str], list[tuple]]:
    """Column names and rows of one file; cells are texts in text files, values in Parquet."""
    if plain_bytes(path)[:4] == b"PAR1":
        table = pq.read_table(path)
        return table.column_names, list(zip(*(parquet_cells(column) for column in table.columns), strict=True))
    lines = [line for line in lines_of(path) if line.strip(" \t") and line.lstrip(" \t")[0] not in "#%"]
    delimiter = options.get("delimiter") or next((d for d in (",", "\t") if lines and d in lines[0]), None)
    if delimiter in (None, " "):
        rows = [tuple(re.split("[ \t]+", line.strip(" \t"))) for line in lines]
    elif options.get("quote") is False:
        rows = [tuple(line.split(delimiter)) for line in lines]
    else:
        rows = [tuple(next(csv.reader([line], delimiter=delimiter))) for line in lines]
    if not rows:
        return [], []
    if has_header(rows[0], options):
        return list(rows[0]), rows[1:]
    return [f"col_{i}" for i in range(len(rows[0]))], rows


def has_header(row: tuple[str, ...], options: dict) -> bool:
    """The first line is a header if no cell looks like a number; looked at where IDs are numbers or a name is given."""
    if options.get("header", "auto") != "auto":
        return options["header"] == "yes"
    named = [options.get(f"{role}_col") for role in ("src", "dst", "weight", "time", "relation")]
    named += [*as_list(options.get("drop_columns")), *(one.split("=")[0] for one in as_list(options.get("columns")))]
    is_named = any(name is not None and not re.fullmatch("(col_)?[0-9]+", str(name)) for name in named)
    if options.get("id_type") in ("string", "auto") and not is_named:
        return False
    cells = [cell.strip(" \t").lower() for cell in row]
    return not any(cell[:1].isdigit() or cell[:1] in ("+", "-", ".") or cell in ("nan", "inf") for cell in cells if cell)


def parquet_cells(column) -> list:
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32()).cast(pa.int64())
    return column_values(column)[0]


def column_units(path: Path) -> dict[str, str]:
    """The units of the dates and times of a Parquet file, by column."""
    if plain_bytes(path)[:4] != b"PAR1":
        return {}
    found = {}
    for field in pq.read_schema(path):
        if pa.types.is_timestamp(field.type):
            found[field.name] = field.type.unit
        elif pa.types.is_date(field.type):
            found[field.name] = "day" if pa.types.is_date32(field.type) else "ms"
    return found


def as_weight(cell) -> float | None:
    if isinstance(cell, str):
        return to_float(cell) if cell else None
    return None if cell is None else float(cell.values[0])


def as_time(cell, unit: str | None) -> int | None:
    """A time as an integer: with a unit, seconds with a fraction are multiplied exactly."""
    if cell is None or cell == "":
        return None
    if not isinstance(cell, str):
        return int(cell.values[0])
    value = Decimal(cell.strip(" \t")) * {None: 1, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    if value != int(value):
        raise ValueError(f"not a whole number: {cell!r}")
    return int(value)


def declared_dtype(options: dict, name: str) -> str | None:
    return dict(one.split("=") for one in options.get("columns", [])).get(name)


def further_values(cells: list, dtype: str | None) -> list:
    """A further column: int64 if every non-empty cell is one, else float64 if every one is a number, else binary."""
    if any(not isinstance(cell, str | None) for cell in cells):
        return cells
    cells = [cell or "" for cell in cells]
    filled = [cell for cell in cells if cell.strip(" \t")]
    if dtype is None:
        dtype = "int64" if all(parses(to_int64, c) for c in filled) else "binary"
        if dtype == "binary" and all(parses(to_float, c) for c in filled):
            dtype = "float64"
    if dtype == "binary":
        return [Text(cell.encode()) if cell else None for cell in cells]
    return [Numbers(dtype, (), (to_value(cell, dtype),)) if cell.strip(" \t") else None for cell in cells]


def to_int64(text: str) -> int:
    return to_int(text, high=2**63 - 1)


def parses(parse, text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def declared_as(name: str, values: list) -> Declared:
    present = next((value for value in values if value is not None), None)
    if present is None:
        return Declared(name, Numbers, "int64")
    return Declared(name, type(present), getattr(present, "dtype", "uint8"))


# ---------------------------------------------------------------------------------------------------------------- tables


def read_tables(paths, options: dict, skip: bool) -> Graph:
    """Tables that a config joins: CSV, TSV (with headers), Parquet and JSON lines. A few keys of the config are known."""
    (path,) = paths
    config = json.loads(path.read_text())
    graph = Graph("tables", graph_name=config.get("graph_name"), weighted=set(), timed=set())
    graph.node_types = [table["type"] for table in config["nodes"]]
    id_types = {table["type"]: table.get("id_type", config.get("id_type")) for table in config["nodes"]}
    for table in config["nodes"]:
        name = table["type"]
        if "num_nodes" in table:
            graph.num_nodes[name] = table["num_nodes"]
        if "files" not in table:
            continue
        graph.recorded.add(name)
        columns, graph.node_columns[name] = table_columns(path.parent, table, [table["id_col"]])
        ids = columns.pop(table["id_col"])
        for number, cell in enumerate(ids):
            graph.nodes.append(Node(to_raw(cell, {"id_type": id_types[name]}), name, columns=present(columns, number)))
    for table in config["edges"]:
        add_edge_table(graph, path.parent, table, id_types)
    return graph


def add_edge_table(graph: Graph, folder: Path, table: dict, id_types: dict) -> None:
    edge_type = tuple(table["type"].split(":"))
    src_type, relation, dst_type = edge_type
    graph.edge_types.append(edge_type)
    keys = [table.get("src_col", "src"), table.get("dst_col", "dst"), table.get("weight_col"), table.get("time_col")]
    columns, graph.edge_columns[edge_type] = table_columns(folder, table, keys)
    src, dst, weights, times = (columns.pop(key) if key else None for key in keys)
    graph.weighted |= {edge_type} if weights else set()
    graph.timed |= {edge_type} if times else set()
    for number in range(len(src)):
        ends = (to_raw(src[number], {"id_type": id_types[src_type]}), to_raw(dst[number], {"id_type": id_types[dst_type]}))
        weight = as_weight(weights[number]) if weights else None
        time = as_time(times[number], table.get("time_unit")) if times else None
        more = {"weight": weight, "time": time, "columns": present(columns, number)}
        graph.edges.append(Edge(*ends, relation, src_type, dst_type, **more))


def present(columns: dict[str, list], number: int) -> dict:
    return {name: cells[number] for name, cells in columns.items() if cells[number] is not None}


def table_columns(folder: Path, table: dict, keys: list) -> tuple[dict[str, list], list[Declared]]:
    """The cells of every column over all files of a table, and what is declared by those that are not keys."""
    files = table["files"] if isinstance(table["files"], list) else [table["files"]]
    columns: dict[str, list] = {}
    units: dict[str, str] = {}
    num_rows = 0
    for path in expand([folder / file for file in files]):
        found = file_columns(path)
        size = len(next(iter(found.values()), []))
        for name, cells in found.items():
            columns.setdefault(name, [None] * num_rows).extend(cells)
        num_rows += size
        for cells in columns.values():
            cells.extend([None] * (num_rows - len(cells)))
        units.update(column_units(path))
    columns = {name: cells if name in keys else further_values(cells, None) for name, cells in columns.items()}
    declared = [replace(declared_as(name, columns[name]), unit=units.get(name)) for name in columns if name not in keys]
    return columns, declared


def file_columns(path: Path) -> dict[str, list]:
    """The cells of a file by column: texts of CSV and TSV, values of Parquet and JSON lines."""
    if plain_bytes(path)[:4] == b"PAR1":
        table = pq.read_table(path)
        return {name: parquet_cells(table[name]) for name in table.column_names}
    if path.suffix == ".jsonl":
        return json_columns([json.loads(line) for line in lines_of(path)])
    text = plain_bytes(path).decode()
    names, *rows = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ",")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def json_columns(records: list[dict]) -> dict[str, list]:
    names = list(dict.fromkeys(name for record in records for name in record))
    columns: dict[str, list] = {}
    for name in names:
        given = [record.get(name) for record in records]
        dtype = "float64" if any(isinstance(value, float) for value in given) else "int64"
        columns[name] = [
            None if v is None else Text(v.encode()) if isinstance(v, str) else Numbers(dtype, (), (v,)) for v in given
        ]
    return columns
