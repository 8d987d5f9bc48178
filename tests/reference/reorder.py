"""What ``graphprep reorder`` must write, the slow way: cell by cell, in Python lists, from the arrays of a store."""

from __future__ import annotations

import io
import json
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np

from reference.build import add_manifests, encoded, part_folder
from reference.hashes import splitmix64

BY_END = {"degree": (0, 1), "out-degree": (0,), "in-degree": (1,)}


def read_files(folder: Path) -> dict[str, np.ndarray | dict]:
    """Every file of a store but provenance.json and the manifests, by its path."""
    files: dict[str, np.ndarray | dict] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name.endswith(".npy"):
            files[name] = np.load(io.BytesIO(path.read_bytes()))
        elif name == "metadata.json":
            files[name] = json.loads(path.read_text())
    return files


def permute(rank: int, size: int, seed: int, number: int) -> int:
    """The seeded permutation of docs/store.md, "Partition functions"."""
    bits = next(b for b in range(1, 33) if 4**b >= size)
    low = 2**bits - 1
    while True:
        left, right = rank >> bits, rank & low
        for r in range(4):
            key = splitmix64(splitmix64(seed) ^ (256 * number + r))
            left, right = right, left ^ splitmix64(key ^ right) & low
        rank = left << bits | right
        if rank < size:
            return rank


class Store:
    """The arrays of a store, taken apart."""

    def __init__(self, files: dict[str, np.ndarray | dict]) -> None:
        self.files = files
        self.metadata = files["metadata.json"]
        self.num_parts = self.metadata["num_parts"]
        self.types = self.metadata["node_type"]
        self.sizes = dict(zip(self.types, self.metadata["num_nodes_per_chunk"], strict=True))

    def array(self, part: int, path: str) -> np.ndarray:
        return self.files[f"{part_folder(part, self.num_parts)}/{path}"]

    def offset(self, name: str, part: int) -> int:
        return sum(self.sizes[name][:part])

    def ends(self, text: str) -> tuple[str, str]:
        src, _, dst = (word.replace("%3A", ":").replace("%25", "%") for word in text.split(":"))
        return src, dst

    def folder(self, text: str) -> str:
        return "edges/" + "__".join(encoded(word.replace("%3A", ":").replace("%25", "%")) for word in text.split(":"))

    def rows(self, text: str, layout: str, part: int) -> list[range]:
        """The entries of each row."""
        indptr = self.array(part, f"{self.folder(text)}/{layout}/indptr.npy").tolist()
        return [range(start, stop) for start, stop in pairwise(indptr)]

    def edges(self, text: str) -> list[tuple[int, int]]:
        """All edges as (source, destination), typed."""
        src, dst = self.ends(text)
        layout = self.metadata["layouts"][0]
        found = []
        for part in range(self.num_parts):
            others = self.array(part, f"{self.folder(text)}/{layout}/indices.npy").tolist()
            for row, entries in enumerate(self.rows(text, layout, part)):
                own = row + self.offset(dst if layout == "csc" else src, part)
                found += [(others[i], own) if layout == "csc" else (own, others[i]) for i in entries]
        return found


def keys_of(store: Store, name: str, part: int, by: str, degrees: list[int], given: list | None) -> dict[int, float]:
    """What the nodes of a partition (old typed IDs) are ordered by, ascending; ties by ID."""
    low = store.offset(name, part)
    own = range(low, low + store.sizes[name][part])
    mean = sum(degrees[node] for node in own) / max(1, len(own))
    if by in BY_END:
        return {node: -degrees[node] for node in own}
    if by == "hub-sort":
        return {node: -degrees[node] if degrees[node] >= mean else 1 for node in own}
    if by == "hub-cluster":
        return {node: degrees[node] < mean for node in own}
    if by == "dbg":
        bounds = [mean * times for times in (32, 16, 8, 4, 2, 1, 0.5, 0)]
        return {node: next(i for i, bound in enumerate(bounds) if degrees[node] >= bound) for node in own}
    if by == "score" and given is not None:
        return {node: -given[node] for node in own}
    if by == "permutation" and given is not None:
        return {node: given.index(node) for node in own}
    if by == "previous" and store.metadata["node_schema"][name].get("node_order"):
        return dict(zip(own, store.array(part, f"nodes/{encoded(name)}/previous_ids.npy").tolist(), strict=True))
    return dict.fromkeys(own, 0)


def walk_places(store: Store, by: str, edge_types, seed: int) -> dict[str, list[int]]:
    """For every node type the place at which a walk over all node types meets each node."""
    offsets, total = {}, 0
    for name in store.types:
        offsets[name], total = total, total + sum(store.sizes[name])
    neighbors: list[list[int]] = [[] for _ in range(total)]
    for text in edge_types or store.metadata["edge_type"]:
        src, dst = store.ends(text)
        for left, right in store.edges(text):
            neighbors[offsets[src] + left].append(offsets[dst] + right)
            neighbors[offsets[dst] + right].append(offsets[src] + left)
    if by == "llp":
        places = layered_labels([sorted(some) for some in neighbors], seed)
    else:
        keys = [(len(neighbors[node]) if by == "rcm" else 0, node) for node in range(total)]
        places = dict[int, int]()
        for start in sorted(range(total), key=keys.__getitem__):
            waiting = [] if start in places else [start]
            while waiting:
                for node in waiting:
                    places.setdefault(node, len(places))
                waiting = list(
                    dict.fromkeys(
                        other
                        for node in waiting
                        for other in sorted(neighbors[node], key=keys.__getitem__)
                        if other not in places
                    )
                )
        if by == "rcm":
            places = {node: -place for node, place in places.items()}
    return {name: [places[low + i] for i in range(sum(store.sizes[name]))] for name, low in offsets.items()}


def layered_labels(neighbors: list[list[int]], seed: int) -> dict[int, int]:
    """The places that docs/reorder.md gives nodes by label propagation, layer after layer."""
    total = len(neighbors)
    num_blocks = -(-total // 64)
    blocks = [permute(i, num_blocks, seed, 0) for i in range(num_blocks)]
    visits = [node for block in blocks for node in range(64 * block, min(64 * block + 64, total))]
    places = {node: node for node in range(total)}
    for inverse in (1, 4, 16, 64, 256):
        labels = list(range(total))
        for _ in range(8):
            changed = 0
            for node in visits:
                others = [labels[other] for other in neighbors[node] if other != node]
                own, worth = labels[node], {}
                for label in [own, *others]:
                    count = others.count(label)
                    worth[label] = count - Fraction(labels.count(label) - (label == own) - count, inverse)
                labels[node] = max(worth, key=worth.__getitem__)
                changed += labels[node] != own
            if changed * 1000 < total:
                break
        found = sorted(places, key=lambda node: (places[labels[node]], places[node]))
        places = {node: place for place, node in enumerate(found)}
    return places


def new_order(store: Store, by: str, edge_types, ratio: float, seed: int, given: dict[str, list]) -> dict[str, list[int]]:
    """For every node type the old typed ID of each new one."""
    degrees = {name: [0] * sum(store.sizes[name]) for name in store.types}
    for text in edge_types or store.metadata["edge_type"]:
        for edge in store.edges(text):
            for end in BY_END.get(by, (0, 1)):
                degrees[store.ends(text)[end]][edge[end]] += 1
    walked = walk_places(store, by, edge_types, seed) if by in ("bfs", "rcm", "llp") else {}
    order = {}
    for number, name in enumerate(store.types):
        order[name] = []
        for part, size in enumerate(store.sizes[name]):
            keys = keys_of(store, name, part, by, degrees[name], given.get(name))
            if walked:
                keys = {node: walked[name][node] for node in keys}
            own = sorted(keys, key=lambda node: (keys[node], node))
            hot = own[: int(size * (1.0 if by == "random" else ratio))]
            for i, node in enumerate(hot):
                own[permute(i, len(hot), seed, number + part * len(store.types))] = node
            order[name] += own
    return order


def cells(store: Store, part: int, stem: str, schema: dict) -> list[dict[str, list]]:
    """A column's rows: what stands for each of them in each of its files."""
    present = store.array(part, f"{stem}.present.npy").tolist() if schema["optional"] else None
    if schema["kind"] == "dense":
        found = [{"": [value]} for value in store.array(part, f"{stem}.npy")]
    elif schema["kind"] == "temporal":
        names = ["start", "end"] if schema.get("end") else ["start"]
        entries, offsets = (store.array(part, f"{stem}.{name}.npy").tolist() for name in ("entry_offsets", "offsets"))
        values = store.array(part, f"{stem}.values.npy")
        found = []
        for low, high in pairwise(entries):
            row = {name: list(store.array(part, f"{stem}.{name}.npy")[low:high]) for name in names}
            row["offsets"] = [list(values[offsets[i] : offsets[i + 1]]) for i in range(low, high)]
            found.append(row)
    else:
        offsets = store.array(part, f"{stem}.offsets.npy").tolist()
        names = ["values", "coords"] if schema["kind"] == "sparse" else ["values"]
        found = [
            {name: list(store.array(part, f"{stem}.{name}.npy")[low:high]) for name in names} for low, high in pairwise(offsets)
        ]
    for i, row in enumerate(found):
        if present is not None:
            row["present"] = [present[i]]
    return found


def put_cells(store: Store, out: dict, part: int, stem: str, schema: dict, rows: list[dict[str, list]]) -> None:
    """Write a column's rows."""

    def put(name: str, values: list) -> None:
        path = f"{part_folder(part, store.num_parts)}/{stem}{'.' if name else ''}{name}.npy"
        old = store.files[path]
        out[path] = np.array(values, old.dtype).reshape(old.shape)

    def sums(lists: list) -> list[int]:
        return [0, *np.cumsum([len(one) for one in lists]).tolist()] if lists else [0]

    if schema["optional"]:
        put("present", [row["present"][0] for row in rows])
    if schema["kind"] == "dense":
        put("", [row[""][0] for row in rows])
    elif schema["kind"] == "temporal":
        entries = [one for row in rows for one in row["offsets"]]
        put("entry_offsets", sums([row["offsets"] for row in rows]))
        put("offsets", sums(entries))
        put("values", [value for one in entries for value in one])
        for name in ("start", "end") if schema.get("end") else ("start",):
            put(name, [value for row in rows for value in row[name]])
    else:
        put("offsets", sums([row["values"] for row in rows]))
        for name in ("values", "coords") if schema["kind"] == "sparse" else ("values",):
            put(name, [value for row in rows for value in row[name]])


def columns_of(schema: dict, folder: str) -> list[tuple[str, dict]]:
    """(path stem, schema) of a type's columns, and of what lies beside them."""
    sides = ("weight", "time", "created_at", "removed_at")
    found = []
    for column in schema["columns"]:
        stem = column["name"] if column.get("role") in sides else f"data/{encoded(column['name'], column=True)}"
        found.append((f"{folder}/{stem}", column))
    if schema.get("num_slots"):
        found.append((f"{folder}/num_slots", {"kind": "dense", "optional": False}))
    return found


def reorder_nodes(store: Store, out: dict, name: str, order: list[int], by: str) -> dict:
    """The files of a node type, and its new schema."""
    schema = store.metadata["node_schema"][name]
    folder = f"nodes/{encoded(name)}"
    kind = schema["raw_ids"]
    columns = columns_of(schema, folder)
    was_reordered = "node_order" in schema
    found: dict[str, list[int]] = {"first": [], "raw": []}
    places: dict[str, np.ndarray] = {}
    if kind == "string":
        columns.append((f"{folder}/raw_ids", {"kind": "binary", "optional": False}))
    elif kind != "identity":
        columns.append((f"{folder}/raw_ids", {"kind": "dense", "optional": False}))
    for part, size in enumerate(store.sizes[name]):
        low = store.offset(name, part)
        own = order[low : low + size]
        base = f"{part_folder(part, store.num_parts)}/{folder}"
        for stem, column in columns:
            old = cells(store, part, stem, column)
            put_cells(store, out, part, stem, column, [old[node - low] for node in own])
        if kind == "identity":
            raw = own
        elif kind == "string":
            raw = [bytes(cell["values"]) for cell in cells(store, part, f"{folder}/raw_ids", columns[-1][1])]
            raw = [raw[node - low] for node in own]
        else:
            raw = [int(store.array(part, f"{folder}/raw_ids.npy")[node - low]) for node in own]
        first = own
        if was_reordered:
            first = [int(store.array(part, f"{folder}/previous_ids.npy")[node - low]) for node in own]
        found["first"] += first
        found["raw"] += raw
        if kind == "identity":
            places[f"{base}/raw_ids.npy"] = np.array(own, np.int64)
        places[f"{base}/previous_ids.npy"] = np.array(first, np.int64)
        places[f"{base}/raw_order.npy"] = np.array(sorted(range(size), key=lambda i: raw[i]), np.int64)
    rest = {key: value for key, value in schema.items() if key not in ("raw_ids", "node_order")}
    count = list(range(sum(store.sizes[name])))
    if found["first"] == count:
        if was_reordered and kind == "int64" and found["raw"] == count:
            kind = "identity"
            for part in range(store.num_parts):
                out.pop(f"{part_folder(part, store.num_parts)}/{folder}/raw_ids.npy")
        return {"raw_ids": kind, **rest}
    out |= places
    by = schema["node_order"] if was_reordered and order == count else by
    return {"raw_ids": "int64" if kind == "identity" else kind, "node_order": by, **rest}


def reorder_edges(store: Store, out: dict, text: str, order: dict[str, list[int]]) -> None:
    """The files of an edge type: rows go to their new places, entries stay as they are or are sorted by the new IDs."""
    schema = store.metadata["edge_schema"][text]
    folder, (src, dst) = store.folder(text), store.ends(text)
    layouts = store.metadata["layouts"]
    went: dict[int, int] = {}  # old edge rows
    for layout in layouts:
        owner, other = (dst, src) if layout == "csc" else (src, dst)
        new_ids = {old: new for new, old in enumerate(order[other])}
        first = 0
        for part, size in enumerate(store.sizes[owner]):
            low = store.offset(owner, part)
            base = f"{part_folder(part, store.num_parts)}/{folder}/{layout}"
            others = [new_ids[one] for one in store.files[f"{base}/indices.npy"].tolist()]
            old_rows = store.rows(text, layout, part)
            rows = [list(old_rows[node - low]) for node in order[owner][low : low + size]]
            if schema["neighbor_order"] == "id":
                rows = [sorted(row, key=lambda entry: others[entry]) for row in rows]
            entries = [entry for row in rows for entry in row]
            out[f"{base}/indptr.npy"] = np.array([0, *np.cumsum([len(row) for row in rows], dtype=int)], np.int64)
            out[f"{base}/indices.npy"] = np.array([others[one] for one in entries], schema["index_dtype"])
            if schema["edge_id_dtype"] is not None:
                out[f"{base}/edge_ids.npy"] = store.files[f"{base}/edge_ids.npy"][np.array(entries, int)]
            if layout == layouts[0]:
                went |= {first + old: first + new for new, old in enumerate(entries)}
                for stem, column in columns_of(schema, folder):
                    old = cells(store, part, stem, column)
                    put_cells(store, out, part, stem, column, [old[one] for one in entries])
            elif f"{base}/edge_rows.npy" in store.files:
                old = store.files[f"{base}/edge_rows.npy"].tolist()
                out[f"{base}/edge_rows.npy"] = np.array([went[old[one]] for one in entries], np.int64)
            first += len(entries)


def reorder_reference(
    files: dict[str, np.ndarray | dict], by: str, edge_types=(), shuffle_ratio: float = 0.0, seed: int = 0, given=None
) -> dict[str, np.ndarray | dict]:
    """Every file of the reordered store but provenance.json, by its path."""
    store = Store(files)
    order = new_order(store, by, edge_types, shuffle_ratio, seed, given or {})
    out: dict[str, np.ndarray | dict] = {}
    node_schema = {name: reorder_nodes(store, out, name, order[name], by) for name in store.types}
    for text in store.metadata["edge_type"]:
        reorder_edges(store, out, text, order)
    metadata = {**store.metadata, "node_schema": node_schema, "parts": add_manifests(out, store.num_parts)}
    return {**out, "metadata.json": metadata}
