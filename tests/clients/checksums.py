"""Order-free checksums of graphs in raw IDs: once of what a client read, once of the store, once of the graph itself.

``from clients.checksums import checksum, store_nodes, store_edges, graph_nodes, graph_edges``. A ``Rows`` holds what belongs to
the nodes or edges of a type, in any order; ``checksum`` is the same for the same rows in another order. Nothing here asks
graphprep for more than the arrays of a store.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

EdgeType = tuple[str, str, str]
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


@dataclass(frozen=True)
class Rows:
    """Nodes (``ids``) or edges (``ids`` are sources, ``dst`` destinations) of a type, with columns by name.

    IDs are raw: an int64 or uint64 array, or an object array of texts. ``edge_ids`` are int64.
    """

    ids: np.ndarray
    dst: np.ndarray | None = None
    edge_ids: np.ndarray | None = None
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)

    def only(self, names: Iterable[str], *, edge_ids: bool = True) -> Rows:
        """Return the rows with these columns alone."""
        kept = {name: self.columns[name] for name in names}
        return Rows(self.ids, self.dst, self.edge_ids if edge_ids else None, kept)

    def cast(self, dtypes: Mapping[str, Any]) -> Rows:
        """Return the rows with other dtypes of columns."""
        columns = {name: values.astype(dtypes.get(name, values.dtype)) for name, values in self.columns.items()}
        return Rows(self.ids, self.dst, self.edge_ids, columns)

    def trained(self) -> Rows:
        """Return the rows as trainers get them: floats are float32."""
        return self.cast({name: np.float32 for name, values in self.columns.items() if values.dtype.kind == "f"})


def checksum(name: str | EdgeType, rows: Rows) -> str:
    """Return 16 hex digits of a type's name and its rows in any order: the sum of the rows' hashes.

    Columns count by name and by the bytes of their values, -0.0 and 0.0 and the dtypes being different.
    """
    total = np.full(rows.ids.size, _text_hash(":".join((name,) if isinstance(name, str) else name)), np.uint64)
    for part in (rows.ids, rows.dst):
        if part is not None:
            total = _mix(total ^ hash_ids(part))
    if rows.edge_ids is not None:
        total = _mix(total ^ hash_ids(rows.edge_ids))
    for column in sorted(rows.columns):
        values = np.asarray(rows.columns[column])
        assert len(values) == rows.ids.size, f"{column}: {len(values)} rows, not {rows.ids.size}"
        total = _mix(total ^ np.uint64(_text_hash(f"{column} {values.dtype.str}")) ^ hash_rows(values))
    return f"{int(total.sum(dtype=np.uint64)):016x}"


def hash_ids(ids: np.ndarray) -> np.ndarray:
    """Return a number for each raw ID: uint64[k]."""
    if ids.dtype == object:
        return np.array([_text_hash(str(one)) for one in ids.tolist()], np.uint64)
    return _mix(ids.astype(ids.dtype if ids.dtype == np.uint64 else np.int64).view(np.uint64))


def hash_rows(values: np.ndarray) -> np.ndarray:
    """Return a number for the bytes of each row of an array: uint64[k]."""
    rows = np.ascontiguousarray(values).reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))
    data = rows.view(np.uint8).reshape(len(rows), rows.shape[1] * rows.itemsize)
    padded = np.zeros((len(data), -(-data.shape[1] // 8) * 8), np.uint8)
    padded[:, : data.shape[1]] = data
    total = np.full(len(data), data.shape[1], np.uint64)
    for word in padded.view(np.uint64).T:
        total = _mix(total ^ word)
    return total


def _mix(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        mixed = values + _MIX[0]
        mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[1]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[2]
        return mixed ^ (mixed >> np.uint64(31))


def _text_hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


# ---------------------------------------------------------------------------------------------- of a graph of graphs.py


def graph_nodes(graph: Any, name: str) -> Rows:
    """Return the nodes of a type as the graph was made."""
    some = graph.nodes[name]
    return Rows(_raw(some.ids), columns={key: _filled(values) for key, values in some.columns.items()})


def graph_edges(graph: Any, name: EdgeType) -> Rows:
    """Return the edges of a type as the graph was made; weight and time are called so."""
    some = graph.edges[name]
    names = {some.weight: "weight", some.time: "time"}
    columns = {names.get(key, key): _filled(values) for key, values in some.columns.items()}
    return Rows(_raw(some.src), _raw(some.dst), np.arange(len(some.src)), columns)


def _filled(values: np.ndarray) -> np.ndarray:
    return values.filled(0) if isinstance(values, np.ma.MaskedArray) else values


def _raw(ids: list[Any]) -> np.ndarray:
    return np.array(ids, dtype=object if ids and isinstance(ids[0], str) else np.int64)


# ---------------------------------------------------------------------------------------------- of a store


def store_nodes(store: str | Path, name: str) -> Rows:
    """Return the nodes of a type in typed order, with their raw IDs and dense columns; absent cells are 0."""
    with _opened(store) as reader:
        number = reader.metadata.node_types.index(name)
        schema = reader.metadata.node_schemas[number]
        folder = f"nodes/{_path(name)}"
        columns = {
            column.name: _whole(reader, f"{folder}/{column.path}.npy") for column in schema.columns if column.kind == "dense"
        }
        return Rows(raw_ids(reader, name), columns=columns)


def store_edges(store: str | Path, name: EdgeType) -> Rows:
    """Return the edges of a type in the row order of the primary layout, with raw ends, edge IDs and dense columns."""
    with _opened(store) as reader:
        metadata = reader.metadata
        number, layout = metadata.edge_types.index(name), metadata.primary_layout
        folder = f"edges/{'__'.join(map(_path, name))}"
        source, destination = raw_ids(reader, name[0]), raw_ids(reader, name[2])
        others = _whole(reader, f"{folder}/{layout}/indices.npy")
        degrees = np.concatenate(
            [np.diff(reader.array(part, f"{folder}/{layout}/indptr.npy").read()) for part in range(metadata.num_parts)]
        )
        owners = np.repeat(np.arange(degrees.size), degrees)
        src, dst = (others, owners) if layout == "csc" else (owners, others)
        schema = metadata.edge_schemas[number]
        columns = {
            column.name: _whole(reader, f"{folder}/{column.path}.npy") for column in schema.columns if column.kind == "dense"
        }
        has_ids = schema.edge_id_dtype is not None
        edge_ids = _whole(reader, f"{folder}/{layout}/edge_ids.npy").astype(np.int64) if has_ids else None
        return Rows(source[src], destination[dst], edge_ids, columns)


def raw_ids(reader: Any, name: str) -> np.ndarray:
    """Return the raw ID of every typed one: int64[n], uint64[n], or object[n] of texts."""
    metadata = reader.metadata
    number = metadata.node_types.index(name)
    kind, path = metadata.node_schemas[number].raw_ids, f"nodes/{_path(name)}/raw_ids"
    if kind == "identity":
        return np.arange(metadata.num_nodes_per_type[number])
    if kind != "string":
        return _whole(reader, f"{path}.npy")
    texts: list[str] = []
    for part in range(metadata.num_parts):
        offsets = reader.array(part, f"{path}.offsets.npy").read().tolist()
        values = reader.array(part, f"{path}.values.npy").read().tobytes()
        texts += [values[low:high].decode() for low, high in itertools.pairwise(offsets)]
    return np.array(texts, dtype=object)


def id_map(out: str | Path, store: str | Path, name: str) -> np.ndarray:
    """Return the raw ID of every ID that a trainer sees: by ``id_map/`` of an export where there is one, else by the store.

    Where an export has no map of a type, its IDs are the raw ones.
    """
    import pyarrow.parquet as pq

    path = Path(out) / "id_map" / _path(name)
    if path.with_name(path.name + ".npy").exists():
        return np.load(path.with_name(path.name + ".npy"))
    if path.with_name(path.name + ".parquet").exists():
        table = pq.read_table(path.with_name(path.name + ".parquet"))
        assert table["id"].to_pylist() == list(range(table.num_rows))
        return np.array(table["raw"].to_pylist(), dtype=object)
    with _opened(store) as reader:
        return np.arange(reader.metadata.num_nodes_per_type[reader.metadata.node_types.index(name)])


def _opened(store: str | Path) -> Any:
    import graphprep

    return graphprep.open_store(str(store))


def _whole(reader: Any, path: str) -> np.ndarray:
    return np.concatenate([reader.array(part, path).read() for part in range(reader.metadata.num_parts)])


def _path(name: str) -> str:
    from graphprep.model.schema import path_name

    return path_name(name)
