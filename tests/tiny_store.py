"""A tiny writer of stores, straight from docs/store.md with NumPy, json and xxhash: nothing of the product is used.

``TinyStore`` holds arrays and metadata as plain values, so that a test can spoil any of them before ``write`` puts them on disk
with sizes and hashes that fit (or, with ``seal`` switched off afterwards, on top of what was written).
"""

import io
import itertools
import json
from pathlib import Path

import numpy as np
import xxhash

MASK = 2**64 - 1


def splitmix64(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def checksum(pairs):
    total = sum(splitmix64(splitmix64(src) ^ splitmix64(splitmix64(dst))) for src, dst in pairs)
    return f"{total & MASK:016x}"


def npy_bytes(array):
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(array), version=(1, 0), allow_pickle=False)
    return out.getvalue()


def json_bytes(value):
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


class TinyStore:
    """A store of users, items and two edge types in two partitions, with both layouts and a column of every kind."""

    def __init__(self):
        self.metadata = {}
        self.parts = [{}, {}]

    def write(self, folder):
        folder = Path(folder)
        self.metadata["parts"] = []
        for p, arrays in enumerate(self.parts):
            part = folder / f"part-{p:05d}"
            entries = []
            for path in sorted(arrays):
                data = npy_bytes(arrays[path])
                target = part / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
                entries.append(
                    {
                        "path": path,
                        "dtype": arrays[path].dtype.name,
                        "shape": list(arrays[path].shape),
                        "bytes": len(data),
                        "xxh3": xxhash.xxh3_64_hexdigest(data),
                    }
                )
            self.write_manifest(folder, p, {"format": "graphprep-manifest", "format_version": 1, "part": p, "arrays": entries})
        (folder / "metadata.json").write_bytes(json_bytes(self.metadata))
        return folder

    def write_manifest(self, folder, p, manifest):
        """Write a manifest and bind it in the metadata (which ``write`` puts on disk)."""
        part = Path(folder) / f"part-{p:05d}"
        part.mkdir(parents=True, exist_ok=True)
        data = json_bytes(manifest)
        (part / "manifest.json").write_bytes(data)
        entry = {"path": part.name, "manifest_bytes": len(data), "manifest_xxh3": xxhash.xxh3_64_hexdigest(data)}
        self.metadata["parts"][p : p + 1] = [entry]


def build_layouts(edges, row_of, other_of, ranges, order_key):
    """Sort edges (src, dst, id) into rows; return per partition (indptr, others, ids)."""
    out = []
    for low, high in ranges:
        indptr, others, ids = [0], [], []
        for row in range(low, high):
            mine = sorted((edge for edge in edges if row_of(edge) == row), key=order_key)
            others += [other_of(edge) for edge in mine]
            ids += [edge[2] for edge in mine]
            indptr.append(len(others))
        out.append((np.array(indptr, np.int64), np.array(others, np.int32), np.array(ids, np.int32)))
    return out


USERS = [[3, 7, 8], [10, 20]]
ITEMS = [[100, 200], [300]]
BUYS = [(0, 0), (4, 2), (1, 0), (0, 1), (2, 0), (4, 2), (3, 1)]  # typed (user, item), by edge ID
WEIGHTS = [1.0, 2.0, 3.0, 4.0, 0.0, 6.0, 7.0]
LIKES = [(0, 1), (1, 2), (4, 0)]  # user likes user


def sample_store(layouts=("csc", "csr"), order="input"):
    """Build the sample: range partitions, raw IDs stored for users and items, ``buys`` with weights and features."""
    store = TinyStore()
    user_ranges, item_ranges = [(0, 3), (3, 5)], [(0, 2), (2, 3)]
    _add_nodes(store)
    schemas = {}
    for name, pairs, dst_type, dst_ranges in (
        ("user:buys:item", BUYS, "item", item_ranges),
        ("user:likes:user", LIKES, "user", user_ranges),
    ):
        folder = "edges/" + name.replace(":", "__")
        edges = [(src, dst, i) for i, (src, dst) in enumerate(pairs)]
        weights = WEIGHTS if name == "user:buys:item" else [0.0] * len(pairs)
        csc = build_layouts(edges, lambda e: e[1], lambda e: e[0], dst_ranges, order_key(order, weights, 0))
        csr = build_layouts(edges, lambda e: e[0], lambda e: e[1], user_ranges, order_key(order, weights, 1))
        for layout, parts in (("csc", csc), ("csr", csr)):
            if layout in layouts:
                for p, (indptr, others, ids) in enumerate(parts):
                    store.parts[p] |= {
                        f"{folder}/{layout}/indptr.npy": indptr,
                        f"{folder}/{layout}/indices.npy": others,
                        f"{folder}/{layout}/edge_ids.npy": ids,
                    }
        primary = csc if "csc" in layouts else csr
        raw_users = [raw for part in USERS for raw in part]
        raw_dst = [raw for part in (ITEMS if dst_type == "item" else USERS) for raw in part]
        schemas[name] = {
            "neighbor_order": order if name == "user:buys:item" or order != "weight" else "input",
            "index_dtype": "int32",
            "edge_id_dtype": "int32",
            "multigraph": len(set(pairs)) < len(pairs) if order == "id" else None,
            "checksum": checksum((raw_users[src], raw_dst[dst]) for src, dst in pairs),
            "columns": [],
        }
        if name == "user:buys:item":
            schemas[name]["columns"] = _add_edge_columns(store, folder, primary)
            if len(layouts) == 2:
                rows = {int(i): row for row, i in enumerate(np.concatenate([ids for _, _, ids in csc]))}
                for p, (_, _, ids) in enumerate(csr):
                    store.parts[p][f"{folder}/csr/edge_rows.npy"] = np.array([rows[int(i)] for i in ids], np.int64)
            per_chunk = [len(ids) for _, _, ids in primary]
        else:
            likes_per_chunk = [len(ids) for _, _, ids in primary]
    store.metadata = {
        "format": "graphprep-store",
        "format_version": 1,
        "graph_name": "shop",
        "node_type": ["user", "item"],
        "num_nodes_per_type": [5, 3],
        "num_nodes_per_chunk": [[3, 2], [2, 1]],
        "edge_type": ["user:buys:item", "user:likes:user"],
        "num_edges_per_type": [7, 3],
        "num_edges_per_chunk": [per_chunk, likes_per_chunk],
        "num_parts": 2,
        "partition_by": "range",
        "layouts": list(layouts),
        "node_schema": {
            "user": {"raw_ids": "int64", "num_slots": True, "columns": NODE_COLUMNS},
            "item": {"raw_ids": "int64", "columns": []},
        },
        "edge_schema": schemas,
        "parts": [],
    }
    return store


def order_key(order, weights, end):
    if order == "id":
        return lambda edge: (edge[end], edge[2])
    if order == "weight":
        return lambda edge: (edge[2] == 4, -weights[edge[2]], edge[2])  # edge 4 has no weight
    return lambda edge: edge[2]


def column(name, kind, dtype, item_shape=(), *, optional=False, **more):
    return {"name": name, "kind": kind, "dtype": dtype, "item_shape": list(item_shape), "optional": optional, **more}


NODE_COLUMNS = [
    column("weight", "dense", "float32", role="weight"),
    column("feat_0", "dense", "float32", (2,), optional=True, slot=0),
    column("feat_1", "ragged", "int64", optional=True, slot=1),
    column("feat_2", "sparse", "float32", (2,), optional=True, slot=2),
    column("feat_3", "binary", "uint8", slot=3),
    column("feat_4", "temporal", "float64", slot=4, end=True),
    column("label", "dense", "bool"),
]


def _add_nodes(store):
    """Users with a column of every kind, items with none. User 1 of partition 0 lacks every optional column."""
    for p in range(2):
        n = len(USERS[p])
        present = np.array([True, False, True][:n])
        counts = np.where(present, 2, 0)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        total = int(offsets[-1])
        stem = "nodes/user/data/feat_"
        store.parts[p] |= {
            "nodes/user/raw_ids.npy": np.array(USERS[p], np.int64),
            "nodes/item/raw_ids.npy": np.array(ITEMS[p], np.int64),
            "nodes/user/weight.npy": np.ones(n, np.float32),
            "nodes/user/num_slots.npy": np.full(n, 6, np.int32),
            f"{stem}0.npy": np.where(present[:, None], np.float32(1.5), np.float32(0)).repeat(2, axis=1).astype(np.float32),
            f"{stem}0.present.npy": present,
            f"{stem}1.offsets.npy": offsets,
            f"{stem}1.values.npy": np.arange(total, dtype=np.int64),
            f"{stem}1.present.npy": present,
            f"{stem}2.offsets.npy": offsets,
            f"{stem}2.coords.npy": np.ones((total, 2), np.int64),
            f"{stem}2.values.npy": np.ones(total, np.float32),
            f"{stem}2.present.npy": present,
            f"{stem}3.offsets.npy": offsets,
            f"{stem}3.values.npy": np.full(total, 65, np.uint8),
            f"{stem}4.entry_offsets.npy": offsets,
            f"{stem}4.start.npy": np.tile(np.array([5, 9], np.int64), total // 2),
            f"{stem}4.end.npy": np.full(total, -1, np.int64),
            f"{stem}4.offsets.npy": np.arange(total + 1, dtype=np.int64) * 3,
            f"{stem}4.values.npy": np.zeros(total * 3),
            "nodes/user/data/label.npy": present,
        }


def _add_edge_columns(store, folder, primary):
    """Weights, of which edge 4 has none, in the primary layout's order."""
    for p, (_, _, ids) in enumerate(primary):
        store.parts[p] |= {
            f"{folder}/weight.npy": np.array([WEIGHTS[i] for i in ids], np.float32),
            f"{folder}/weight.present.npy": np.array([i != 4 for i in ids], np.bool_),
        }
    return [column("weight", "dense", "float32", optional=True, role="weight")]


def text_hash(text):
    """h of a string: its length, then its 8-byte little-endian words, the last one padded with zeros."""
    data = text if isinstance(text, bytes) else text.encode()
    h = splitmix64(len(data))
    for at in range(0, len(data), 8):
        h = splitmix64(h ^ int.from_bytes(data[at : at + 8].ljust(8, b"\0"), "little"))
    return h


def id_hash(raw):
    return text_hash(raw) if isinstance(raw, str) else splitmix64(raw & MASK)


def text_arrays(texts):
    """The two files of a list of strings."""
    data = [text.encode() for text in texts]
    offsets = np.array([0, *np.cumsum([len(part) for part in data])], np.int64)
    return offsets, np.frombuffer(b"".join(data), np.uint8)


def raw_store(raw_ids, num_parts=1, method="range", pairs=((0, 0),)):
    """Build a store of one node type ``name`` whose raw IDs are strings or integers, and edges between typed IDs."""
    in_order = sorted(raw_ids, key=lambda raw: raw.encode() if isinstance(raw, str) else raw)
    parts = [[] for _ in range(num_parts)]
    for rank, raw in enumerate(in_order):
        sizes = [len(in_order) // num_parts + (p < len(in_order) % num_parts) for p in range(num_parts)]
        bounds = np.cumsum(sizes)
        at = {"range": int(np.searchsorted(bounds, rank, side="right")), "random": rank * 7 % num_parts}
        if not isinstance(raw, str):
            at["modulo"] = raw % num_parts
        at["hash"] = id_hash(raw) % num_parts
        parts[at[method]].append(raw)
    typed = [raw for part in parts for raw in part]
    store = TinyStore()
    store.parts = [{} for _ in range(num_parts)]
    bounds = np.cumsum([0] + [len(part) for part in parts]).tolist()
    edges = [(src, dst, i) for i, (src, dst) in enumerate(pairs)]
    csc = build_layouts(edges, lambda e: e[1], lambda e: e[0], list(itertools.pairwise(bounds)), lambda e: e[2])
    for p, part in enumerate(parts):
        if isinstance(typed[0], str):
            offsets, values = text_arrays(part)
            store.parts[p] |= {"nodes/name/raw_ids.offsets.npy": offsets, "nodes/name/raw_ids.values.npy": values}
        else:
            dtype = np.uint64 if max(typed) >= 2**63 else np.int64
            store.parts[p]["nodes/name/raw_ids.npy"] = np.array(part, dtype)
        folder = "edges/name__to__name/csc"
        arrays = dict(zip(("indptr", "indices", "edge_ids"), csc[p], strict=True))
        store.parts[p] |= {f"{folder}/{name}.npy": array for name, array in arrays.items()}
    kind = "string" if isinstance(typed[0], str) else "uint64" if max(typed) >= 2**63 else "int64"
    total = sum(splitmix64(id_hash(typed[s]) ^ splitmix64(id_hash(typed[d]))) for s, d in pairs)
    store.metadata = {
        "format": "graphprep-store",
        "format_version": 1,
        "graph_name": "names",
        "node_type": ["name"],
        "num_nodes_per_type": [len(typed)],
        "num_nodes_per_chunk": [[len(part) for part in parts]],
        "edge_type": ["name:to:name"],
        "num_edges_per_type": [len(pairs)],
        "num_edges_per_chunk": [[len(ids) for _, _, ids in csc]],
        "num_parts": num_parts,
        "partition_by": method,
        "layouts": ["csc"],
        "node_schema": {"name": {"raw_ids": kind, "columns": []}},
        "edge_schema": {
            "name:to:name": {
                "neighbor_order": "input",
                "index_dtype": "int32",
                "edge_id_dtype": "int32",
                "multigraph": None,
                "checksum": f"{total & MASK:016x}",
                "columns": [],
            }
        },
        "parts": [],
    }
    return store, typed
