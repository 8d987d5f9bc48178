"""Naive readers of other tools' formats: arrays, Matrix Market, METIS, neo4j-admin, the Open Graph Benchmark and GraphBolt.

As in ``reference.readers``: a few lines of NumPy, csv and yaml a format, for input without faults.
"""

from __future__ import annotations

import csv
import datetime
import io
from pathlib import Path

import numpy as np
import yaml

from reference.records import Declared, Edge, Graph, Node, Numbers, Text


def relation_of(options: dict, is_square: bool = True) -> tuple[str, str, str]:
    """The canonical edge type of a format with one of them; matrices that are not square have two node types."""
    text = options.get("relation") or ("_E" if is_square else "row:_E:col")
    return ("_N", text, "_N") if ":" not in text else tuple(text.split(":"))  # type: ignore[return-value]


def matrix_graph(shape: tuple[int, int], entries: list, options: dict, weighted: bool) -> Graph:
    """A graph whose nodes are the rows and columns of a matrix; ``entries`` are (row, column, value)."""
    src_type, relation, dst_type = relation_of(options, shape[0] == shape[1])
    counts = {src_type: max(shape)} if src_type == dst_type else {src_type: shape[0], dst_type: shape[1]}
    graph = Graph("identity", node_types=list(counts), edge_types=[(src_type, relation, dst_type)], num_nodes=counts)
    graph.weighted = weighted
    graph.edges = [
        Edge(int(src), int(dst), relation, src_type, dst_type, float(value) if weighted else None)
        for src, dst, value in entries
    ]
    return graph


def add_node_column(graph: Graph, type_name: str, name: str, values: np.ndarray, rows=None) -> None:
    """Give nodes a column: row r of ``values`` to node r, or to that which ``rows`` names."""
    by_id = {node.id: node for node in graph.nodes if node.type == type_name}
    shape = values.shape[1:]
    for node_id, value in zip(range(len(values)) if rows is None else rows.tolist(), values, strict=True):
        if node_id not in by_id:
            by_id[node_id] = Node(node_id, type_name)
            graph.nodes.append(by_id[node_id])
        by_id[node_id].columns[name] = Numbers(values.dtype.name, shape, tuple(np.ravel(value).tolist()))
    graph.node_columns.setdefault(type_name, []).append(Declared(name, Numbers, values.dtype.name, shape))


# --------------------------------------------------------------------------------------------------------------- arrays


def read_arrays(path: Path, options: dict) -> Graph:
    arrays = load_arrays(path)
    if "indptr" in arrays:
        return compressed_graph(arrays, options)
    pairs = next((arrays[name] for name in ("edge_index", "edges") if name in arrays), next(iter(arrays.values())))
    pairs = pairs.T if pairs.shape[0] == 2 else pairs
    src_type, relation, dst_type = relation_of(options)
    weights = arrays.get("edge_weight")
    graph = Graph("ends", node_types=[src_type], edge_types=[(src_type, relation, dst_type)], weighted=weights is not None)
    graph.edges = [
        Edge(int(src), int(dst), relation, src_type, dst_type, None if weights is None else float(weights[at]))
        for at, (src, dst) in enumerate(pairs)
    ]
    for name in ("x", "y"):
        if name in arrays:
            graph.nodes_from, graph.num_nodes = "identity", {src_type: len(arrays[name])}
            add_node_column(graph, src_type, name, arrays[name])
    return graph


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Every array by name, in native byte order."""
    if path.is_dir():
        found = {file.stem: np.load(file) for file in sorted(path.glob("*.npy"))}
    else:
        loaded = np.load(path)
        found = {path.stem: loaded} if isinstance(loaded, np.ndarray) else dict(loaded.items())
    return {
        name: array.astype(array.dtype.newbyteorder("=")) if array.dtype.kind != "S" else array for name, array in found.items()
    }


def compressed_graph(arrays: dict[str, np.ndarray], options: dict) -> Graph:
    """A CSR or CSC matrix: its entries in the order of the file."""
    form = arrays["format"].item().decode() if "format" in arrays else options["input_layout"]
    num_rows = len(arrays["indptr"]) - 1
    shape = tuple(arrays["shape"].tolist()) if "shape" in arrays else (num_rows, num_rows)
    entries = []
    for row in range(num_rows):
        for at in range(arrays["indptr"][row], arrays["indptr"][row + 1]):
            pair = (row, arrays["indices"][at])
            entries.append((*(pair if form == "csr" else pair[::-1]), arrays["data"][at] if "data" in arrays else None))
    return matrix_graph(shape, entries, options, "data" in arrays)


# ------------------------------------------------------------------------------------------------------- matrices in text


def read_mtx(path: Path, options: dict) -> Graph:
    lines = path.read_text().splitlines()
    field, symmetry = lines[0].lower().split()[3:]
    (rows, columns, _), *entries = (line.split() for line in lines[1:] if line.strip() and not line.startswith("%"))
    found = []
    for row, column, *value in entries:
        entry = (int(row) - 1, int(column) - 1, float(value[0]) if value else None)
        found.append(entry)
        if symmetry != "general" and entry[0] != entry[1]:
            found.append((entry[1], entry[0], -entry[2] if symmetry == "skew-symmetric" else entry[2]))
    return matrix_graph((int(rows), int(columns)), found, options, field != "pattern")


def read_metis(path: Path, options: dict) -> Graph:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("%")]
    head = lines[0].split()
    has_sizes, has_weights, has_edge_weights = (digit == "1" for digit in (head[2] if len(head) > 2 else "0").zfill(3))
    num_weights = (int(head[3]) if len(head) > 3 else 1) if has_weights else 0
    entries, sizes, weights = [], [], []
    for node, line in enumerate(lines[1:]):
        fields = line.split()
        sizes += [int(fields.pop(0))] if has_sizes else []
        weights.append([int(fields.pop(0)) for _ in range(num_weights)])
        step = 2 if has_edge_weights else 1
        entries += [(node, int(fields[at]) - 1, fields[at + 1] if step == 2 else None) for at in range(0, len(fields), step)]
    graph = matrix_graph((len(lines) - 1, len(lines) - 1), entries, options, has_edge_weights)
    name = graph.node_types[0]
    if has_sizes:
        add_node_column(graph, name, "node_size", np.array(sizes, np.int64))
    if has_weights:
        values = np.array(weights, np.int64)
        add_node_column(graph, name, "node_weight", values[:, 0] if num_weights == 1 else values)
    return graph


# ---------------------------------------------------------------------------------------------------------------- neo4j

_NEO4J = {"int": "int32", "long": "int64", "short": "int16", "byte": "int8", "float": "float32", "double": "float64"}


def read_neo4j(path: Path, options: dict) -> Graph:
    """A folder; a header may lie in a file of its own, called as those that it is for, up to the last hyphen."""
    tables = [list(csv.reader(io.StringIO(file.read_text(), newline=""))) for file in sorted(path.glob("*.csv"))]
    names = [file.stem.rpartition("-")[0] for file in sorted(path.glob("*.csv"))]
    heads = {name: rows[0] for name, rows in zip(names, tables, strict=True) if len(rows) == 1 and is_neo4j_header(rows[0])}
    graph = Graph("records")
    for name, rows in zip(names, tables, strict=True):
        head = rows.pop(0) if is_neo4j_header(rows[0]) else heads[name]
        for row in rows:
            add_neo4j_row(graph, dict(zip(head, row, strict=True)))
    graph.edge_types = []
    owners = {node.id: node.type for node in graph.nodes}
    for edge in graph.edges:
        edge_type = (owners[edge.src], edge.relation, owners[edge.dst])
        graph.edge_columns[edge_type] = graph.edge_columns.pop(edge.relation, graph.edge_columns.get(edge_type, []))
    return graph


def is_neo4j_header(row: list[str]) -> bool:
    return any(field.partition(":")[2] in ("ID", "START_ID") for field in row)


def add_neo4j_row(graph: Graph, cells: dict[str, str]) -> None:
    columns, declared, keys = {}, [], {}
    for field, cell in cells.items():
        name, _, kind = field.partition(":")
        if kind in ("ID", "LABEL", "START_ID", "END_ID", "TYPE"):
            keys[kind] = cell
            continue
        value, unit = neo4j_value(cell, kind or "string")
        declared.append(Declared(name, type(value), getattr(value, "dtype", "uint8"), unit=unit))
        if cell:
            columns[name] = value
    if "ID" in keys:
        label = keys["LABEL"].split(";")[0]
        graph.nodes.append(Node(keys["ID"], label, columns=columns))
        graph.node_columns.setdefault(label, declared)
    else:
        graph.edges.append(Edge(keys["START_ID"], keys["END_ID"], keys["TYPE"], columns=columns))
        graph.edge_columns.setdefault(keys["TYPE"], declared)  # type: ignore[call-overload]


def neo4j_value(cell: str, kind: str):
    """A cell's value (that of an empty one only shows its kind), and the unit of times."""
    if kind == "date":
        days = datetime.date.fromisoformat(cell or "1970-01-01") - datetime.date(1970, 1, 1)
        return Numbers("int64", (), (days.days,)), "day"
    if kind.removesuffix("[]") not in _NEO4J:
        return Text(cell.encode()), None
    values = tuple(float(one) if "." in one else int(one) for one in (cell or "0").split(";"))
    return Numbers(_NEO4J[kind.removesuffix("[]")], (len(values),) if kind.endswith("[]") else (), values), None


# ------------------------------------------------------------------------------------------------------------------ ogb


def rows_of(path: Path) -> list[list[str]]:
    from reference.readers import plain_bytes

    return [line.split(",") for line in plain_bytes(path).decode().splitlines() if line]


def table_of(path: Path) -> np.ndarray:
    """A CSV file of numbers: int64 where all are integers, else float64; one column is a vector."""
    rows = rows_of(path)
    is_int = all(cell.lstrip("-").isdigit() for row in rows for cell in row)
    table = np.array([[int(cell) if is_int else float(cell) for cell in row] for row in rows])
    return table[:, 0] if table.shape[1] == 1 else table


def read_ogb(path: Path, options: dict) -> Graph:
    raw = path / "raw"
    if (raw / "num-node-list.csv.gz").exists():
        graph = Graph("identity", node_types=["_N"], edge_types=[("_N", "_E", "_N")])
        graph.num_nodes = {"_N": int(rows_of(raw / "num-node-list.csv.gz")[0][0])}
        folders = {"_N": (raw, raw, "")}
        edges = {("_N", "_E", "_N"): raw}
    else:
        names, counts = rows_of(raw / "num-node-dict.csv.gz")
        graph = Graph("identity", node_types=names, num_nodes=dict(zip(names, map(int, counts), strict=True)))
        graph.edge_types = [tuple(row) for row in rows_of(raw / "triplet-type-list.csv.gz")]  # type: ignore[misc]
        folders = {name: (raw / "node-feat" / name, raw / "node-label" / name, f"{name}/") for name in names}
        edges = {kind: raw / "relations" / "___".join(kind) for kind in graph.edge_types}
    labels = []
    for name, (features, label, inside) in folders.items():
        files = [features / "node-feat.csv.gz", *sorted(features.glob("node_*")), label / "node-label.csv.gz"]
        for file in filter(Path.exists, files):
            column = {"node-feat": "feat", "node-label": "label"}.get(file.name[:-7], file.name[:-7].removeprefix("node_"))
            add_node_column(graph, name, column, table_of(file))
            labels += [f"{name}:label"] if column == "label" else []
        split = [next(iter(path.glob(f"split/*/{inside}{part}.csv.gz")), None) for part in ("train", "valid", "test")]
        if any(split):
            listed = [set() if file is None else {row[0] for row in rows_of(file)} for file in split]
            graph.roles.setdefault("listed_splits", {})[name] = listed
    graph.roles["labels"] = tuple(labels)
    for kind, folder in edges.items():
        own = [Edge(int(src), int(dst), kind[1], kind[0], kind[2]) for src, dst in rows_of(folder / "edge.csv.gz")]
        for file in filter(Path.exists, [folder / "edge-feat.csv.gz"]):
            add_edge_column(graph, kind, "feat", table_of(file), own)
        graph.edges += own
    return graph


def add_edge_column(graph: Graph, edge_type, name: str, values: np.ndarray, edges: list[Edge]) -> None:
    for edge, value in zip(edges, values, strict=True):
        edge.columns[name] = Numbers(values.dtype.name, values.shape[1:], tuple(np.ravel(value).tolist()))
    graph.edge_columns.setdefault(edge_type, []).append(Declared(name, Numbers, values.dtype.name, values.shape[1:]))


# ------------------------------------------------------------------------------------------------------------ graphbolt


def read_graphbolt(path: Path, options: dict) -> Graph:
    """The nodes, edges and features, and of the first task the seeds and labels that are nodes."""
    meta = yaml.safe_load((path / "metadata.yaml").read_text())
    nodes = {one.get("type", "_N"): one["num"] for one in meta["graph"]["nodes"]}
    graph = Graph("identity", node_types=list(nodes), num_nodes=nodes, graph_name=meta["dataset_name"])
    listed: dict[str, list[set]] = {}
    labels: dict[str, tuple[list, list]] = {}
    for part, key in enumerate(("train_set", "validation_set", "test_set")):
        for one in meta.get("tasks", [{}])[0].get(key, []):
            data = {item["name"]: np.load(path / item["path"]) for item in one["data"]}
            name = one.get("type", "_N")
            listed.setdefault(name, [set(), set(), set()])[part] |= set(map(str, data["seeds"].tolist()))
            if "labels" in data:
                seeds, values = labels.setdefault(name, ([], []))
                seeds.append(data["seeds"])
                values.append(data["labels"])
    for name, (seeds, values) in labels.items():
        add_node_column(graph, name, "label", np.concatenate(values), np.concatenate(seeds))
    graph.roles = {"labels": tuple(f"{name}:label" for name in labels), "listed_splits": listed}
    own = {}
    for one in meta["graph"]["edges"]:
        kind = tuple(one.get("type", "_N:_E:_N").split(":"))
        file = path / one["path"]
        pairs = np.load(file).T.tolist() if one["format"] == "numpy" else rows_of(file)
        graph.edge_types.append(kind)  # type: ignore[arg-type]
        own[kind] = [Edge(int(src), int(dst), kind[1], kind[0], kind[2]) for src, dst in pairs]
        graph.edges += own[kind]
    for one in meta.get("feature_data", []):
        if one["domain"] == "node":
            add_node_column(graph, one.get("type", "_N"), one["name"], np.load(path / one["path"]))
        else:
            kind = tuple(one.get("type", "_N:_E:_N").split(":"))
            add_edge_column(graph, kind, one["name"], np.load(path / one["path"]), own[kind])
    return graph


READERS = {
    "arrays": read_arrays,
    "mtx": read_mtx,
    "metis": read_metis,
    "neo4j": read_neo4j,
    "ogb": read_ogb,
    "graphbolt": read_graphbolt,
}
