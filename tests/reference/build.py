"""From decoded records to every array and JSON file of the store, by slow and obvious loops.

``build_reference`` returns {path in the store: array or JSON value}; ``file_bytes`` writes either as the store holds it.
"""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import numpy as np
import xxhash

from reference.hashes import cut, edge_checksum, feistel, hash_id
from reference.records import Declared, Edge, Graph, Node, Numbers, Sparse, Text
from reference.roles import with_roles

DEFAULTS = {
    "partitions": None,
    "partition_by": "range",
    "layout": "csc",
    "neighbor_order": "input",
    "edge_ids": True,
    "index_dtype": "auto",
    "weight_dtype": "float32",
    "ids": None,
    "num_nodes": {},
    "on_missing_node": "error",
    "missing_node_type": None,
    "graph_name": None,
    "seed": 0,
    "decoder_options": {},
}


class ReferenceError(ValueError):
    """The input is wrong."""


# ---------------------------------------------------------------------------------------------------------------- names


def encoded(name: str, column: bool = False) -> str:
    """A name in a path: everything but A-Za-z0-9._- is percent-encoded, and some dots and underscores too."""
    plain = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
    in_double = set()
    for i in range(len(name) - 1):
        if name[i : i + 2] == "__":
            in_double |= {i, i + 1}
    out = ""
    for i, char in enumerate(name):
        keep = char in plain
        if char == "." and (i == 0 or column):
            keep = False
        if char == "_" and (i == len(name) - 1 or i in in_double):
            keep = False
        out += char if keep else "".join(f"%{byte:02X}" for byte in char.encode())
    return out


def colon_text(edge_type: tuple[str, str, str]) -> str:
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in edge_type)


def sorted_names(names: set[str]) -> list[str]:
    """Ascending by name; names that are all integers by value."""
    if all(name.isascii() and name.isdigit() for name in names):
        return sorted(names, key=int)
    return sorted(names, key=lambda name: name.encode())


def part_folder(part: int, num_parts: int) -> str:
    return f"part-{str(part).zfill(max(5, len(str(num_parts - 1))))}"


# ---------------------------------------------------------------------------------------------------------------- nodes


def by_raw_id(raw_id: int | str):
    """What raw IDs of a type are ordered by: integers by value, strings by their UTF-8 bytes."""
    return raw_id if isinstance(raw_id, int) else raw_id.encode()


def gather_nodes(graph: Graph, options: dict) -> tuple[dict[str, list[Node]], list[Edge], set[int]]:
    """Nodes of each type in the order of types, the edges that are kept, and the IDs of created nodes."""
    if graph.nodes_from == "identity":
        stated: dict[str, dict[int, Node]] = {name: {} for name in graph.node_types}
        for node in graph.nodes:
            stated[node.type][node.id] = node
        return (
            {name: [stated[name].get(i, Node(i, name)) for i in range(graph.num_nodes[name])] for name in graph.node_types},
            graph.edges,
            set(),
        )
    if graph.nodes_from == "tables":
        return gather_table_nodes(graph, options)
    if graph.nodes_from == "ends":
        return {name: [Node(i, name) for i in end_ids(graph, name, options)] for name in graph.node_types}, graph.edges, set()
    return gather_recorded_nodes(graph, options)


def end_ids(graph: Graph, name: str, options: dict) -> list[int] | list[str]:
    """The node IDs of a type whose nodes are what occurs in edges."""
    seen = set()
    for edge in graph.edges:
        if edge.src_type == name:
            seen.add(edge.src)
        if edge.dst_type == name:
            seen.add(edge.dst)
    if any(isinstance(i, str) or i < 0 for i in seen):
        return sorted(seen, key=by_raw_id)
    num_nodes = options["num_nodes"].get(name, options["num_nodes"].get(""))
    how = options["ids"] or "auto"
    if how == "auto":
        highest = max(seen, default=-1)
        how = "dense" if num_nodes is not None or highest + 1 <= 2 * len(graph.edges) else "sparse"
    if how == "sparse":
        return sorted(seen)
    return list(range(num_nodes if num_nodes is not None else max(seen, default=-1) + 1))


def gather_table_nodes(graph: Graph, options: dict) -> tuple[dict[str, list[Node]], list[Edge], set]:
    """Each node type has an ID space of its own, and nodes from records, 0..n-1, or what occurs in edges."""
    by_id: dict[str, dict] = {name: {} for name in graph.node_types}
    for node in graph.nodes:
        if node.id in by_id[node.type]:
            raise ReferenceError(f"duplicate node {node.id}")
        by_id[node.type][node.id] = node
    created, kept = set(), []
    for edge in graph.edges:
        ends = ((edge.src_type, edge.src), (edge.dst_type, edge.dst))
        missing = [(name, end) for name, end in ends if name in graph.recorded and end not in by_id[name]]
        if missing and options["on_missing_node"] == "error":
            raise ReferenceError(f"missing node {missing[0]}")
        if missing and options["on_missing_node"] == "drop":
            continue
        for name, end in missing:
            by_id[name][end] = Node(end, name)
            created.add((name, end))
        kept.append(edge)
    for name in graph.node_types:
        if name in graph.num_nodes:
            by_id[name] = {i: Node(i, name) for i in range(graph.num_nodes[name])}
        elif name not in graph.recorded:
            ends = {edge.src for edge in graph.edges if edge.src_type == name}  # dropped edges name nodes, too
            ends |= {edge.dst for edge in graph.edges if edge.dst_type == name}
            by_id[name] = {end: Node(end, name) for end in ends}
    nodes = {name: sorted(rows.values(), key=lambda node: by_raw_id(node.id)) for name, rows in by_id.items()}
    return nodes, kept, created


def gather_recorded_nodes(graph: Graph, options: dict) -> tuple[dict[str, list[Node]], list[Edge], set[int]]:
    by_id: dict[int, Node] = {}
    for node in graph.nodes:
        if node.id in by_id:
            raise ReferenceError(f"duplicate node {node.id}")
        by_id[node.id] = node
    created: set[int] = set()
    kept = []
    for edge in graph.edges:
        missing = [end for end in (edge.src, edge.dst) if end not in by_id]
        if missing and options["on_missing_node"] == "error":
            raise ReferenceError(f"missing node {missing[0]}")
        if missing and options["on_missing_node"] == "drop":
            continue
        for end in missing:
            weight = options["decoder_options"].get("default_node_weight") or 0.0
            by_id[end] = Node(end, str(options["missing_node_type"]), weight=float(weight), created_at=0, removed_at=-1)
            created.add(end)
        kept.append(edge)
    types = sorted_names({node.type for node in by_id.values()})
    nodes = {name: sorted((n for n in by_id.values() if n.type == name), key=lambda n: n.id) for name in types}
    return nodes, kept, created


def assign_parts(nodes: dict[str, list[Node]], options: dict) -> tuple[dict[str, list[int]], int, str]:
    """The partition of each node (nodes in raw order), the number of partitions, and the method's name."""
    method = options["partition_by"]
    num_parts = options["partitions"] or 1
    if method not in ("range", "hash", "modulo", "random"):
        given = {name: read_assignment(Path(method), name, [n.id for n in nodes[name]]) for name in nodes}
        highest = max((part for parts in given.values() for part in parts), default=-1)
        return given, options["partitions"] or highest + 1, "file"
    parts: dict[str, list[int]] = {}
    for number, (name, rows) in enumerate(nodes.items()):
        parts[name] = []
        for rank, node in enumerate(rows):
            if method == "range":
                part = cut(rank, len(rows), num_parts)
            elif method == "hash":
                part = hash_id(node.id) % num_parts
            elif method == "modulo":
                part = node.id % num_parts
            else:
                part = cut(feistel(rank, len(rows), options["seed"], number), len(rows), num_parts)
            parts[name].append(part)
    return parts, num_parts, method


def read_assignment(path: Path, name: str, ids: list[int]) -> list[int]:
    """Partition numbers from a file, or from the type's file in a folder: text, or Parquet with ``id`` and ``part``."""
    if path.is_dir():
        text, table = path / f"{encoded(name)}.txt", path / f"{encoded(name)}.parquet"
        path = text if text.exists() else table
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        columns = pq.read_table(path).to_pydict()
        by_id = dict(zip(columns["id"], columns["part"], strict=True))
        return [by_id[i] for i in ids]
    parts = [int(line) for line in path.read_text().split("\n") if line]
    if len(parts) != len(ids):
        raise ReferenceError(f"{path}: {len(parts)} lines for {len(ids)} nodes")
    return parts


# ---------------------------------------------------------------------------------------------------------------- values


def to_numpy(values, dtype: str) -> np.ndarray:
    """Numbers as the store holds them: floats through float64, NaN positive and quiet."""
    kind = np.dtype(dtype).kind
    if kind == "f":
        with np.errstate(over="ignore"):
            return np.array([math.nan if v != v else float(v) for v in values], np.float64).astype(dtype)
    if kind == "c":
        return np.array([complex(v) for v in values], np.complex128).astype(dtype)
    return np.array(list(values), dtype=dtype)


class Column:
    """One column of a type: its entry in the schema, and a value or None for each row in typed (or row) order."""

    def __init__(self, name, values, *, declared=None, slot=None, role=None, side=False):
        self.name, self.values, self.slot, self.role = name, values, slot, role
        self.unit = declared.unit if declared else None
        self.stem = name if side else f"data/{encoded(name, column=True)}"
        present = [value for value in values if value is not None]
        self.optional = len(present) < len(values)
        self.describe(present, declared)

    def describe(self, present, declared):
        family = type(present[0]) if present else declared.family
        self.dtype = "uint8" if family is Text else (present[0].dtype if present else declared.dtype)
        self.item_shape: tuple[int, ...] = ()
        self.end = None
        if family is Numbers:
            self.describe_numbers(present, declared)
        elif family is Sparse:
            self.kind = "sparse"
            width = present[0].width
            self.item_shape = (width,) if width else ()
        elif family is Text:
            self.kind = "binary"
        else:
            self.kind = "temporal"
            if any(end is not None for value in present for _, end, _ in value.entries):
                self.end = True

    def describe_numbers(self, present, declared):
        shapes = {value.shape for value in present} or {declared.item_shape}
        lengths = {len(value.values) for value in present}
        self.kind = "dense" if len(lengths) <= 1 else "ragged"
        if self.kind == "dense":
            self.item_shape = shapes.pop() if len(shapes) == 1 else (lengths.pop(),)

    def schema(self) -> dict:
        entry = {
            "name": self.name,
            "kind": self.kind,
            "dtype": self.dtype,
            "item_shape": list(self.item_shape),
            "optional": self.optional,
        }
        for key in ("slot", "role", "end", "unit"):
            if getattr(self, key) is not None:
                entry[key] = getattr(self, key)
        return entry

    def arrays(self, rows: range) -> dict[str, np.ndarray]:
        """The column's files for some rows, by path below the type's folder."""
        values = [self.values[row] for row in rows]
        made = getattr(self, f"{self.kind}_arrays")(values)
        if self.optional:
            made[".present"] = np.array([value is not None for value in values], bool)
        return {f"{self.stem}{suffix}.npy": array for suffix, array in made.items()}

    def dense_arrays(self, values):
        array = np.zeros((len(values), *self.item_shape), self.dtype)
        for row, value in enumerate(values):
            if value is not None:
                array[row] = to_numpy(value.values, self.dtype).reshape(self.item_shape)
        return {"": array}

    def ragged_arrays(self, values):
        lists = [() if value is None else value.values for value in values]
        return {".offsets": offsets(lists), ".values": to_numpy([x for row in lists for x in row], self.dtype)}

    def binary_arrays(self, values):
        texts = [b"" if value is None else value.data for value in values]
        return {".offsets": offsets(texts), ".values": np.array(list(b"".join(texts)), np.uint8)}

    def sparse_arrays(self, values):
        lists = [() if value is None else value.values for value in values]
        coords = np.array([c for value in values if value is not None for c in value.coords], np.int64)
        if self.item_shape:
            coords = coords.reshape(-1, self.item_shape[0])
        return {
            ".offsets": offsets(lists),
            ".coords": coords,
            ".values": to_numpy([x for row in lists for x in row], self.dtype),
        }

    def temporal_arrays(self, values):
        rows = [[] if value is None else sorted(value.entries, key=lambda entry: entry[0]) for value in values]
        entries = [entry for row in rows for entry in row]
        made = {
            ".entry_offsets": offsets(rows),
            ".start": np.array([start for start, _, _ in entries], np.int64),
            ".offsets": offsets([given for _, _, given in entries]),
            ".values": to_numpy([x for _, _, given in entries for x in given], self.dtype),
        }
        if self.end:
            made[".end"] = np.array([-1 if end is None else end for _, end, _ in entries], np.int64)
        return made


def offsets(lists) -> np.ndarray:
    out = [0]
    for row in lists:
        out.append(out[-1] + len(row))
    return np.array(out, np.int64)


# ---------------------------------------------------------------------------------------------------------------- columns


def scalar(dtype: str, value) -> Numbers | None:
    return None if value is None else Numbers(dtype, (), (value,))


def holds(flag: bool | set, owner) -> bool:
    """Whether a type has weights or times: all of them, or those in a set."""
    return owner in flag if isinstance(flag, set) else flag


def side_columns(graph: Graph, rows, options: dict, owner, of_edges: bool) -> list[Column]:
    """weight, time, created_at, removed_at: what lies beside data/."""

    def column(role, dtype, values):
        return Column(role, [scalar(dtype, v) for v in values], declared=Declared(role, Numbers, dtype), role=role, side=True)

    made = []
    if holds(graph.weighted, owner) and (of_edges or graph.nodes_from in ("records", "tables")):
        made.append(column("weight", options["weight_dtype"], [row.weight for row in rows]))
    if holds(graph.timed, owner) and of_edges:
        made.append(column("time", "int64", [row.time for row in rows]))
    if graph.dated:
        made.append(column("created_at", "int64", [0 if row.created_at is None else row.created_at for row in rows]))
        made.append(column("removed_at", "int64", [-1 if row.removed_at is None else row.removed_at for row in rows]))
    return made


def slot_columns(rows) -> list[Column]:
    """Columns of features that have only numbers; several kinds in one slot get suffixes."""
    made: list[Column] = []
    for slot in sorted({slot for row in rows for slot in row.slots}):
        variants: dict[tuple, list] = {}
        for at, row in enumerate(rows):
            if slot in row.slots:
                value = row.slots[slot]
                key = (type(value), getattr(value, "dtype", "uint8"), getattr(value, "width", None))
                variants.setdefault(key, [None] * len(rows))[at] = value
        several_kinds = len({key[:2] for key in variants}) > 1
        several_widths = len({key[2] for key in variants if key[0] is Sparse}) > 1
        of_slot = []
        for (family, _, width), values in variants.items():
            column = Column(f"feat_{slot}", values, slot=slot)
            name = f"feat_{slot}"
            if several_kinds:
                name += f"_{column.kind}_{column.dtype}"
            if several_widths and family is Sparse:
                name += f"_w{width}"
            of_slot.append(Column(name, values, slot=slot))
        made += sorted(of_slot, key=lambda column: column.name.encode())
    return made


def named_columns(rows, declared: list[Declared]) -> list[Column]:
    return [Column(one.name, [row.columns.get(one.name) for row in rows], declared=one) for one in declared]


def needs_num_slots(rows) -> bool:
    return any(row.num_slots > max(row.slots, default=-1) + 1 for row in rows)


# ---------------------------------------------------------------------------------------------------------------- edges


def order_key(graph: Graph, order: str, options: dict):
    """The sort key of (edge, edge ID, typed ID of the other end) inside a row."""

    def by_weight(entry):
        weight = entry[0].weight
        if weight is None:
            return (2, 0.0, entry[1])
        stored = float(to_numpy([weight], options["weight_dtype"])[0])
        return (1, 0.0, entry[1]) if stored != stored else (0, -stored, entry[1])

    def by_time(entry):
        edge = entry[0]
        if holds(graph.timed, (edge.src_type, edge.relation, edge.dst_type)):
            return (edge.time is None, edge.time or 0, entry[1])
        return (edge.created_at or 0, entry[1])

    return {"input": lambda e: e[1], "id": lambda e: (e[2], e[1]), "time": by_time, "weight": by_weight}[order]


def order_done(graph: Graph, order: str, edge_type) -> str:
    """The neighbour order that an edge type gets: one without the column keeps its input order."""
    if order == "time" and not (holds(graph.timed, edge_type) or graph.dated):
        return "input"
    if order == "weight" and not holds(graph.weighted, edge_type):
        return "input"
    return order


def compressed_rows(edges, layout, num_rows, key) -> list[list]:
    """For each node of the layout's own end its (edge, edge ID, other end), ordered. ``edges``: (edge, src, dst)."""
    rows: list[list] = [[] for _ in range(num_rows)]
    for edge_id, (edge, src, dst) in enumerate(edges):
        own, other = (dst, src) if layout == "csc" else (src, dst)
        rows[own].append((edge, edge_id, other))
    return [sorted(row, key=key) for row in rows]


# ---------------------------------------------------------------------------------------------------------------- build


def build_reference(graph: Graph, options: dict) -> dict[str, np.ndarray | dict]:
    """Every file of the store but provenance.json, by its path."""
    options = {**DEFAULTS, **options, **graph.roles}
    raw_nodes, edges, created = gather_nodes(graph, options)
    parts, num_parts, method = assign_parts(raw_nodes, options)
    files: dict[str, np.ndarray | dict] = {}
    node_schema, nodes_per_part, typed = {}, {}, {}
    for name, rows in raw_nodes.items():
        order = sorted(range(len(rows)), key=lambda i: (parts[name][i], by_raw_id(rows[i].id)))
        ordered = [rows[i] for i in order]
        typed[name] = {node.id: i for i, node in enumerate(ordered)}
        nodes_per_part[name] = [parts[name].count(part) for part in range(num_parts)]
        node_schema[name] = add_node_files(files, graph, options, name, ordered, nodes_per_part[name], created)
    edge_schema, edges_per_part = {}, {}
    for edge_type, of_type in group_edges(graph, edges, typed).items():
        edge_schema[edge_type], edges_per_part[edge_type] = add_edge_files(
            files, graph, options, edge_type, of_type, nodes_per_part
        )
    metadata = {
        "format": "graphprep-store",
        "format_version": 1,
        "graph_name": options["graph_name"] or graph.graph_name or "graph",
        "node_type": list(raw_nodes),
        "num_nodes_per_type": [len(rows) for rows in raw_nodes.values()],
        "num_nodes_per_chunk": list(nodes_per_part.values()),
        "edge_type": [colon_text(edge_type) for edge_type in edge_schema],
        "num_edges_per_type": [sum(counts) for counts in edges_per_part.values()],
        "num_edges_per_chunk": list(edges_per_part.values()),
        "num_parts": num_parts,
        "partition_by": method,
        "layouts": ["csc", "csr"] if options["layout"] == "both" else [options["layout"]],
        "node_schema": node_schema,
        "edge_schema": {colon_text(edge_type): schema for edge_type, schema in edge_schema.items()},
        "parts": add_manifests(files, num_parts),
    }
    files["metadata.json"] = metadata
    return files


def add_node_files(files, graph, options, name, ordered, counts, created) -> dict:
    """Raw IDs and columns of a node type; returns its schema."""
    ids = [node.id for node in ordered]
    if ids == list(range(len(ids))):
        raw_ids = "identity"
    elif isinstance(ids[0], str):
        raw_ids = "string"
    else:
        raw_ids = "uint64" if max(ids) >= 2**63 else "int64"
    columns = side_columns(graph, ordered, options, name, of_edges=False)
    made = [node.id in created or (name, node.id) in created for node in ordered]
    if any(made):
        columns.append(Column("created", [Numbers("bool", (), (one,)) for one in made], role="created"))
    columns += slot_columns(ordered) + named_columns(ordered, graph.node_columns.get(name, []))
    columns = with_roles(columns, ordered, name, options, Column)
    with_slots = needs_num_slots(ordered)
    start = 0
    for part, count in enumerate(counts):
        rows = range(start, start + count)
        folder = f"{part_folder(part, len(counts))}/nodes/{encoded(name)}"
        if raw_ids == "string":
            texts = [ids[row].encode() for row in rows]
            files[f"{folder}/raw_ids.offsets.npy"] = offsets(texts)
            files[f"{folder}/raw_ids.values.npy"] = np.array(list(b"".join(texts)), np.uint8)
        elif raw_ids != "identity":
            files[f"{folder}/raw_ids.npy"] = np.array([ids[row] for row in rows], raw_ids)
        if with_slots:
            files[f"{folder}/num_slots.npy"] = np.array([ordered[row].num_slots for row in rows], np.int32)
        for column in columns:
            for path, array in column.arrays(rows).items():
                files[f"{folder}/{path}"] = array
        start += count
    schema: dict = {"raw_ids": raw_ids}
    if with_slots:
        schema["num_slots"] = True
    return {**schema, "columns": [column.schema() for column in columns]}


def group_edges(graph: Graph, edges, typed) -> dict[tuple[str, str, str], list]:
    """Edges (edge, typed source, typed destination) of each canonical edge type, in edge-ID order; types in their order."""
    types = list(typed)
    owner = {i: name for name in types for i in typed[name]} if graph.nodes_from == "records" else {}
    groups: dict[tuple[str, str, str], list] = {edge_type: [] for edge_type in graph.edge_types}
    for edge in edges:
        src_type = edge.src_type if edge.src_type is not None else owner[edge.src]
        dst_type = edge.dst_type if edge.dst_type is not None else owner[edge.dst]
        entry = (edge, typed[src_type][edge.src], typed[dst_type][edge.dst])
        groups.setdefault((src_type, edge.relation, dst_type), []).append(entry)
    if graph.edge_types:
        return groups
    relations = sorted_names({relation for _, relation, _ in groups})
    order = sorted(groups, key=lambda t: (relations.index(t[1]), types.index(t[0]), types.index(t[2])))
    return {edge_type: groups[edge_type] for edge_type in order}


def add_edge_files(files, graph, options, edge_type, of_type, nodes_per_part) -> tuple[dict, list[int]]:
    """Adjacency and columns of a canonical edge type; returns its schema and its edges per partition."""
    layouts = ["csc", "csr"] if options["layout"] == "both" else [options["layout"]]
    order = order_done(graph, options["neighbor_order"], edge_type)
    rows_of = {}
    for layout in layouts:
        own_type = edge_type[2] if layout == "csc" else edge_type[0]
        rows_of[layout] = compressed_rows(of_type, layout, sum(nodes_per_part[own_type]), order_key(graph, order, options))
    primary = [entry for row in rows_of[layouts[0]] for entry in row]
    row_of_edge = {edge_id: row for row, (_, edge_id, _) in enumerate(primary)}
    in_row_order = [edge for edge, _, _ in primary]
    columns = side_columns(graph, in_row_order, options, edge_type, of_edges=True)
    columns += slot_columns(in_row_order) + named_columns(in_row_order, graph.edge_columns.get(edge_type, []))
    columns = with_roles(columns, in_row_order, colon_text(edge_type), options, Column)
    dtype, id_dtype = index_dtypes(options, edge_type, layouts, nodes_per_part, len(of_type))

    counts: list[int] = []
    for layout in layouts:
        own_counts = nodes_per_part[edge_type[2] if layout == "csc" else edge_type[0]]
        first = 0
        for part, count in enumerate(own_counts):
            rows = rows_of[layout][first : first + count]
            entries = [entry for row in rows for entry in row]
            folder = edge_folder(part, len(own_counts), edge_type) + f"/{layout}"
            files[f"{folder}/indptr.npy"] = offsets(rows)
            files[f"{folder}/indices.npy"] = np.array([other for _, _, other in entries], dtype)
            if id_dtype is not None:
                files[f"{folder}/edge_ids.npy"] = np.array([edge_id for _, edge_id, _ in entries], id_dtype)
            if layout == "csr" and len(layouts) == 2 and columns:
                files[f"{folder}/edge_rows.npy"] = np.array([row_of_edge[edge_id] for _, edge_id, _ in entries], np.int64)
            if layout == layouts[0]:
                counts.append(len(entries))
            first += count

    with_slots = needs_num_slots(in_row_order)
    start = 0
    for part, count in enumerate(counts):
        rows = range(start, start + count)
        folder = edge_folder(part, len(counts), edge_type)
        if with_slots:
            files[f"{folder}/num_slots.npy"] = np.array([in_row_order[row].num_slots for row in rows], np.int32)
        for column in columns:
            for path, array in column.arrays(rows).items():
                files[f"{folder}/{path}"] = array
        start += count

    schema: dict = {
        "neighbor_order": order,
        "index_dtype": dtype,
        "edge_id_dtype": id_dtype,
        "multigraph": has_parallel_edges(of_type) if order == "id" else None,
        "checksum": edge_checksum([(edge.src, edge.dst) for edge, _, _ in of_type]),
    }
    if with_slots:
        schema["num_slots"] = True
    return {**schema, "columns": [column.schema() for column in columns]}, counts


def edge_folder(part: int, num_parts: int, edge_type) -> str:
    return f"{part_folder(part, num_parts)}/edges/{'__'.join(encoded(name) for name in edge_type)}"


def has_parallel_edges(of_type) -> bool:
    pairs = [(src, dst) for _, src, dst in of_type]
    return len(set(pairs)) < len(pairs)


def index_dtypes(options, edge_type, layouts, nodes_per_part, num_edges) -> tuple[str, str | None]:
    others = [edge_type[0] if layout == "csc" else edge_type[2] for layout in layouts]
    dtype = "int32" if all(sum(nodes_per_part[name]) < 2**31 for name in others) else "int64"
    id_dtype = "int32" if num_edges < 2**31 else "int64"
    if options["index_dtype"] != "auto":
        dtype = id_dtype = options["index_dtype"]
    return dtype, id_dtype if options["edge_ids"] else None


# ---------------------------------------------------------------------------------------------------------------- files


def file_bytes(value: np.ndarray | dict) -> bytes:
    """A file of the store: .npy format 1.0, or JSON of two spaces with a final newline."""
    if isinstance(value, dict):
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    assert value.dtype.byteorder in "=|<", value.dtype
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(value), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def add_manifests(files, num_parts) -> list[dict]:
    """Add manifest.json of every partition; returns ``parts`` of metadata.json."""
    parts = []
    for part in range(num_parts):
        folder = part_folder(part, num_parts)
        arrays = []
        for path in sorted(path for path in files if path.startswith(folder + "/")):
            data = file_bytes(files[path])
            arrays.append(
                {
                    "path": path[len(folder) + 1 :],
                    "dtype": files[path].dtype.name,
                    "shape": list(files[path].shape),
                    "bytes": len(data),
                    "xxh3": xxhash.xxh3_64_hexdigest(data),
                }
            )
        manifest = {"format": "graphprep-manifest", "format_version": 1, "part": part, "arrays": arrays}
        files[f"{folder}/manifest.json"] = manifest
        data = file_bytes(manifest)
        parts.append({"path": folder, "manifest_bytes": len(data), "manifest_xxh3": xxhash.xxh3_64_hexdigest(data)})
    return parts
