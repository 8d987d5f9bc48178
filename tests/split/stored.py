"""What a store holds of edges and their negatives, by raw IDs, read with NumPy alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np


def raw_ids(store, name):
    """Return the raw IDs of a type by typed ID."""
    metadata = json.loads((store / "metadata.json").read_text())
    number, found = metadata["node_type"].index(name), []
    for part, size in enumerate(metadata["num_nodes_per_chunk"][number]):
        path = store / metadata["parts"][part]["path"] / "nodes" / name / "raw_ids.npy"
        first = sum(metadata["num_nodes_per_chunk"][number][:part])
        found += np.load(path).tolist() if path.exists() else range(first, first + size)
    return found


def edges_of(store, edge_type):
    """Return {edge ID: (raw source, raw destination, part or None, {role: raw negatives})}; csc must be there."""
    store = Path(store)
    metadata = json.loads((store / "metadata.json").read_text())
    src, relation, dst = edge_type.split(":")
    ids = {"src": raw_ids(store, src), "dst": raw_ids(store, dst)}
    columns = {one["name"]: one for one in metadata["edge_schema"][edge_type]["columns"]}
    found, first = {}, 0
    for part, entry in enumerate(metadata["parts"]):
        folder = store / entry["path"] / "edges" / f"{src}__{relation}__{dst}"
        indptr, indices, edge_ids = (np.load(folder / "csc" / f"{name}.npy") for name in ("indptr", "indices", "edge_ids"))
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) + first
        first += metadata["num_nodes_per_chunk"][metadata["node_type"].index(dst)][part]
        split = np.load(folder / "data/split.npy") if "split" in columns else np.zeros(rows.size)
        present = folder / "data/split.present.npy"
        present = np.load(present) if present.exists() else np.ones(rows.size, bool)
        values = {}
        for end in ("src", "dst"):
            if f"negative_{end}" in columns:
                offsets = np.load(folder / f"data/negative_{end}.offsets.npy")
                flat = np.load(folder / f"data/negative_{end}.values.npy")
                assert flat.dtype == np.int32 == np.dtype(columns[f"negative_{end}"]["dtype"])
                values[f"negative_{end}"] = [
                    [None if node < 0 else ids[end][node] for node in row] for row in np.split(flat, offsets[1:-1])
                ]
        for row, edge in enumerate(edge_ids.tolist()):
            own = {role: rows_[row] for role, rows_ in values.items()}
            given = int(split[row]) if present[row] else None
            found[edge] = ids["src"][indices[row]], ids["dst"][rows[row]], given, own
    return found
