"""Write every file of sample_data. Seeded: the same bytes each time, for the same versions of the libraries.

Run ``python sample_data/make.py``; it needs networkx, pyarrow and zstandard. README.md says what each file shows.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

HERE = Path(__file__).resolve().parent


# ---------------------------------------------------------------------------------------------------------------- model


@dataclass(frozen=True)
class Feature:
    """A feature of a node or an edge: ``kind`` is dense, sparse, binary or temporal.

    ``values`` are numbers, a text, or (start, end or None, numbers) entries; ``coords`` belong to sparse ones.
    """

    kind: str
    dtype: str
    values: Any
    coords: Any = None


@dataclass
class Thing:
    """A node (``dst`` is None) or an edge, with its features by slot; None is a slot that is skipped."""

    id: int
    type: int
    weight: float
    dst: int | None = None
    created_at: int | None = None
    removed_at: int | None = None
    features: list[Feature | None] = field(default_factory=list)


@dataclass
class Graph:
    """Nodes in order, each followed by its own edges."""

    rows: list[tuple[Thing, list[Thing]]]


def dense(dtype: str, *values: float) -> Feature:
    """Make a group of numbers."""
    return Feature("dense", dtype, list(values))


def sparse(dtype: str, coords: list[Any], values: list[float]) -> Feature:
    """Make values at coordinates, which are numbers (flat) or lists of equal length."""
    return Feature("sparse", dtype, values, coords)


def text(value: str) -> Feature:
    """Make a binary feature."""
    return Feature("binary", "binary", value)


# ---------------------------------------------------------------------------------------------------------------- formats


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Write text lines, each ended by a line feed."""
    target = HERE / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes("".join(f"{line}\n" for line in lines).encode())


def edgelist_lines(graph: Graph, temporal: bool = False) -> Iterator[str]:
    """DeepGNN EdgeList: a node's line, then its edges' lines."""
    for node, edges in graph.rows:
        for thing in (node, *edges):
            columns = [thing.id, -1, thing.type] if thing.dst is None else [thing.id, thing.type, thing.dst]
            columns.append(thing.weight)
            if temporal:
                columns += [thing.created_at or 0, -1 if thing.removed_at is None else thing.removed_at]
            for feature in thing.features:
                columns += edgelist_feature(feature)
            yield ",".join(str(column) for column in columns)


def edgelist_feature(feature: Feature | None) -> list[Any]:
    """The columns ``dtype, length, values…`` of one feature."""
    if feature is None:
        return ["float32", 0]
    if feature.kind == "binary":
        return ["binary", 1, feature.values.replace(",", "\\,")]
    if feature.kind == "dense":
        return [feature.dtype, len(feature.values), *feature.values]
    flat = not isinstance(feature.coords[0], list)
    width = 0 if flat else len(feature.coords[0])
    coords = feature.coords if flat else [c for one in feature.coords for c in one]
    return [feature.dtype, f"{len(feature.values)}/{width}", *coords, *feature.values]


def json_lines(graph: Graph) -> Iterator[str]:
    """DeepGNN JSON: one object a node, with its edges."""
    for node, edges in graph.rows:
        record = {"node_id": node.id, "node_type": node.type, "node_weight": node.weight, **json_extras(node)}
        record["edge"] = [
            {"src_id": edge.id, "dst_id": edge.dst, "edge_type": edge.type, "weight": edge.weight, **json_extras(edge)}
            for edge in edges
        ]
        yield json.dumps(record, ensure_ascii=False)


def json_extras(thing: Thing) -> dict[str, Any]:
    """Times and feature groups of a node or an edge."""
    out: dict[str, Any] = {}
    for key in ("created_at", "removed_at"):
        if getattr(thing, key) is not None:
            out[key] = getattr(thing, key)
    for slot, feature in enumerate(thing.features):
        if feature is None:
            out.setdefault("float_feature", {})[str(slot)] = []
            continue
        group = {"float32": "float", "float64": "double"}.get(feature.dtype, feature.dtype)
        value: Any = feature.values
        if feature.kind == "sparse":
            group, value = f"sparse_{group}", {"coordinates": feature.coords, "values": feature.values}
        if feature.kind == "temporal":
            value = [
                {"values": values, "created_at": start} | ({} if end is None else {"removed_at": end})
                for start, end, values in feature.values
            ]
        out.setdefault(f"{group}_feature", {})[str(slot)] = value
    return out


def tsv_lines(graph: Graph) -> Iterator[str]:
    """DeepGNN TSV: id, type, weight, features, neighbours."""
    for node, edges in graph.rows:
        neighbors = "|".join(tsv_neighbor(edge) for edge in edges)
        yield "\t".join([str(node.id), str(node.type), str(node.weight), tsv_features(node), neighbors])


def tsv_neighbor(edge: Thing) -> str:
    """The neighbour ``dst,type,weight[,features]``."""
    features = tsv_features(edge)
    return ",".join([str(edge.dst), str(edge.type), str(edge.weight), *([features] if features else [])])


def tsv_features(thing: Thing) -> str:
    """The cell ``code:values;code:values``."""
    cells = []
    for feature in thing.features:
        if feature is None:
            cells.append("")
        elif feature.kind == "binary":
            cells.append(f"b:{feature.values}")
        else:
            short = feature.dtype.replace("uint", "u").replace("int", "i").replace("float", "f")
            code = {"float32": "f", "float64": "d"}.get(feature.dtype, short)
            cells.append(f"{code}:{' '.join(str(value) for value in feature.values)}")
    return ";".join(cells)


def write_chunked(folder: str, metadata: dict[str, Any], files: dict[str, Any]) -> None:
    """DGL chunked graph: metadata.json and its chunk files, which are text, arrays or Arrow tables by their suffix."""
    for path, content in files.items():
        target = HERE / folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            target.write_text(content)
        elif isinstance(content, np.ndarray):
            np.save(target, content)
        else:
            pq.write_table(content, target)
    (HERE / folder / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")


def block(form: str, *paths: str, delimiter: str | None = None) -> dict[str, Any]:
    """An entry of ``edges``, ``node_data`` or ``edge_data``."""
    name: dict[str, Any] = {"name": form}
    if delimiter is not None:
        name["delimiter"] = delimiter
    return {"format": name, "data": list(paths)}


# ---------------------------------------------------------------------------------------------------------------- shop


USERS, ITEMS, TAGS = [101, 102, 105, 108, 113, 121], [200, 201, 203, 204, 290], [3001, 3002, 3007]
NAMES = ["Ada", "Bao, junior", "Chloë", "", "Đặng", "Eve \U0001f6d2"]
BUYS, LIKES = 0, 1


def shop_graph(*, plain: bool = False, times: bool = False) -> Graph:
    """Users (0), items (1) and tags (2); buys (0: user to item) and likes (1: user to user, user to item, item to tag).

    ``plain`` leaves out what TSV cannot hold (sparse features); ``times`` adds lifetimes and dated features.
    """
    draw = random.Random(17)
    rows = [(shop_user(draw, i, plain, times), shop_user_edges(draw, i, plain, times)) for i in range(len(USERS))]
    rows += [(shop_item(draw, i, plain), shop_item_edges(draw, i, times)) for i in range(len(ITEMS))]
    rows += [(Thing(id, 2, 1.0, features=[dense("float64", id / 7), None, dense("int8", -i)]), []) for i, id in enumerate(TAGS)]
    if times:
        for at, (node, _) in enumerate(rows):
            node.created_at = 1_600_000_000 + at if at % 4 else None
            node.removed_at = 1_700_000_000 if at % 5 == 0 else None
    return Graph(rows)


def shop_user(draw: random.Random, i: int, plain: bool, times: bool) -> Thing:
    """A user: four numbers, an age that some lack, a name, a ragged history and perhaps dated scores."""
    age = dense("int64", draw.randint(18, 80)) if i % 3 else None
    history = dense("uint8", *(draw.randrange(256) for _ in range(i))) if i else None
    name = NAMES[i].replace(",", "") if plain else NAMES[i]
    features = [dense("float32", *(round(draw.uniform(-1, 1), 3) for _ in range(4))), age, text(name), history]
    if times and i % 2 == 0:
        dated = [(1_600_000_000 + 10 * k, None if k else 1_600_000_009, [float(k), i / 8]) for k in (1, 0)]
        features.append(Feature("temporal", "float32", dated))
    return Thing(USERS[i], 0, round(draw.uniform(0, 2), 2), features=features)


def shop_user_edges(draw: random.Random, i: int, plain: bool, times: bool) -> list[Thing]:
    """What a user buys (with two numbers and a note) and likes (with a ragged or sparse feature)."""
    edges = []
    for item in draw.sample(ITEMS, 2) + ITEMS[:1]:
        note = text(f"note {item}") if item % 2 else None
        edges.append(Thing(USERS[i], BUYS, 1.5, item, features=[dense("float32", i / 4, float(item)), note]))
    for liked in [USERS[(i + 1) % 6], ITEMS[i % 5]]:
        features: list[Feature | None] = [dense("int16", *range(-i, 1)) if liked < 200 else None]
        if not plain:
            features.append(sparse("uint8", [1, 2 + i], [9, 9 + i]))
        edges.append(Thing(USERS[i], LIKES, -0.25 * i, liked, features=features))
    if times:
        for at, edge in enumerate(edges):
            edge.created_at = 1_650_000_000 - at if at % 2 else None
            edge.removed_at = 1_660_000_000 if at == 3 else None
    return edges


def shop_item(draw: random.Random, i: int, plain: bool) -> Thing:
    """An item: four numbers, sparse features of two widths, a description and a price in half precision."""
    pair: list[Feature | None] = [None, None]
    if not plain:
        pair = [
            sparse("float32", [3, 1, 40 + i], [0.5, -0.5, float(i)]),
            sparse("int32", [[0, i], [7, 7]], [i, -i]) if i % 2 else None,
        ]
    features = [dense("float32", *(round(draw.gauss(0, 1), 3) for _ in range(4))), *pair]
    return Thing(ITEMS[i], 1, i / 2, features=[*features, text(f"item {i}"), dense("float16", i + 0.25)])


def shop_item_edges(draw: random.Random, i: int, times: bool) -> list[Thing]:
    """The tags of an item."""
    edges = [Thing(ITEMS[i], LIKES, 0.5, tag) for tag in draw.sample(TAGS, 1 + i % 2)]
    if times:
        edges[0].created_at = 1_655_000_000 + i
    return edges


def write_shop() -> None:
    """Write the heterogeneous graph in every DeepGNN format, once scattered over files, once without its tags."""
    write_lines("shop/shop.edgelist", edgelist_lines(shop_graph()))
    write_lines("shop/shop.jsonl", json_lines(shop_graph()))
    write_lines("shop/shop.tsv", tsv_lines(shop_graph(plain=True)))
    timed = shop_graph(times=True)
    write_lines("shop/shop_temporal.jsonl", json_lines(timed))
    for node, _ in timed.rows:
        node.features = [None if one is not None and one.kind == "temporal" else one for one in node.features]
    write_lines("shop/shop_temporal.edgelist", edgelist_lines(timed, temporal=True))
    lines = list(edgelist_lines(shop_graph()))
    random.Random(5).shuffle(lines)
    for part in range(3):
        write_lines(f"shop/scattered/part-{part}.edgelist", lines[part::3])
    write_lines("shop/scattered/_SUCCESS", [])
    write_lines("shop/without_tags.edgelist", [line for line in edgelist_lines(shop_graph()) if not line.startswith("300")])


def write_shop_chunked() -> None:
    """Write a heterogeneous chunked graph: csv, numpy and parquet chunks, counts per chunk, an edge type without edges."""
    draw = np.random.default_rng(23)
    users, items, tags = 6, 5, 3
    buys = np.stack([draw.integers(0, users, 14), draw.integers(0, items, 14)], 1)
    follows = np.stack([draw.integers(0, users, 9), draw.integers(0, users, 9)], 1)
    has = np.stack([draw.integers(0, items, 7), draw.integers(0, tags, 7)], 1)
    names = ["user:buys:item", "user:follows:user", "item:has%3Atag:tag", "tag:unused:tag"]
    embedding = draw.normal(size=(users, 4)).astype(np.float32)
    metadata = {
        "graph_name": "shop",
        "node_type": ["user", "item", "tag"],
        "num_nodes_per_chunk": [[4, 2], [5], [1, 1, 1]],
        "edge_type": names,
        "num_edges_per_chunk": [[6, 8], [9], [3, 4], [0]],
        "edges": {
            names[0]: block("csv", "edges/buys-0.csv", "edges/buys-1.csv", delimiter=" "),
            names[1]: block("numpy", "edges/follows.npy"),
            names[2]: block("parquet", "edges/has-0.parquet", "edges/has-1.parquet"),
            names[3]: block("csv", "edges/unused.csv", delimiter=","),
        },
        "node_data": {
            "user": {
                "embedding": block("numpy", "nodes/embedding-0.npy", "nodes/embedding-1.npy"),
                "name": block("parquet", "nodes/name.parquet"),
                "age": block("csv", "nodes/age.csv", delimiter=","),
            },
            "item": {
                "shape.size": block("numpy", "nodes/shape.npy"),
                "history": block("parquet", "nodes/history.parquet"),
                "pair": block("csv", "nodes/pair.csv", delimiter=","),
            },
            "tag": {"mask": block("numpy", "nodes/mask.npy")},
        },
        "edge_data": {
            names[0]: {"price": block("parquet", "edges/price.parquet"), "at": block("numpy", "edges/at.npy")},
            names[3]: {"weight": block("numpy", "edges/unused_weight.npy")},
        },
    }
    wide = {str(i): pa.array(draw.normal(size=14).astype(np.float32)) for i in range(2)}
    files: dict[str, Any] = {
        "edges/buys-0.csv": "".join(f"{src} {dst}\n" for src, dst in buys[:6]),
        "edges/buys-1.csv": "".join(f"{src}  {dst}\n" for src, dst in buys[6:]),
        "edges/follows.npy": follows,
        "edges/has-0.parquet": pa.table({"src": has[:3, 0], "dst": has[:3, 1]}),
        "edges/has-1.parquet": pa.table({"src": has[3:, 0], "dst": has[3:, 1]}),
        "edges/unused.csv": "",
        "edges/price.parquet": pa.table(wide).replace_schema_metadata({"shape": "(14, 2)"}),
        "edges/at.npy": np.arange(14)[::-1].astype(np.int32),
        "edges/unused_weight.npy": np.zeros(0, np.float64),
        "nodes/embedding-0.npy": embedding[:4],
        "nodes/embedding-1.npy": embedding[4:],
        "nodes/name.parquet": pa.table({"name": pa.array(NAMES)}),
        "nodes/age.csv": "".join(f"{20 + i}\n" for i in range(users)),
        "nodes/shape.npy": draw.integers(0, 9, (items, 2, 3)).astype(np.uint16),
        "nodes/history.parquet": pa.table({"history": pa.array([[1, 2], [3], [4, 5, 6], [7], [8, 9]], pa.list_(pa.int64()))}),
        "nodes/pair.csv": "".join(f"{i},{i / 4}\n" for i in range(items)),
        "nodes/mask.npy": np.array([True, False, True]),
    }
    write_chunked("shop/chunked", metadata, files)


# ---------------------------------------------------------------------------------------------------------------- town


def town_graph() -> Graph:
    """One type of nodes 0..11 with three numbers, a label and a name; 30 edges with two numbers."""
    draw = random.Random(3)
    rows = []
    for i in range(12):
        numbers = dense("float32", *(round(draw.uniform(0, 1), 4) for _ in range(3)))
        node = Thing(i, 0, 1.0 + i, features=[numbers, dense("int64", i % 4), text(f"house {i}")])
        edges = [
            Thing(i, 0, round(draw.random(), 2), draw.randrange(12), features=[dense("float32", k / 2, -float(i))])
            for k in range(1 + i % 4)
        ]
        rows.append((node, edges))
    return Graph(rows)


def write_town() -> None:
    """Write the homogeneous graph in every DeepGNN format (the same graph, so the same store) and chunked."""
    graph = town_graph()
    write_lines("town/town.edgelist", edgelist_lines(graph))
    write_lines("town/town.jsonl", json_lines(graph))
    write_lines("town/town.tsv", tsv_lines(graph))
    write_lines("town/town_neighbor.jsonl", neighbor_lines(graph))
    edges = [(edge.id, edge.dst) for _, edges in graph.rows for edge in edges]
    metadata = {
        "node_type": ["house"],
        "num_nodes_per_type": [12],
        "edge_type": ["house:road:house"],
        "num_edges_per_type": [len(edges)],
        "edges": {"house:road:house": block("csv", "roads.csv", delimiter="|")},
        "node_data": {"house": {"numbers": block("numpy", "numbers.npy")}},
    }
    numbers = np.array([node.features[0].values for node, _ in graph.rows if node.features[0]], np.float32)
    files = {"roads.csv": "".join(f"{src}|{dst}\n" for src, dst in edges), "numbers.npy": np.asfortranarray(numbers)}
    write_chunked("town/chunked", metadata, files)


def neighbor_lines(graph: Graph) -> Iterator[str]:
    """The older JSON, with ``neighbor`` in place of ``edge``."""
    for node, edges in graph.rows:
        ends = {str(edge.dst): edge.weight for edge in edges}
        record = {"node_id": node.id, "node_type": 0, "node_weight": node.weight, "neighbor": {"0": ends}}
        yield json.dumps(record)


def write_dtypes() -> None:
    """Write one node per dtype, all in one slot, as EdgeList and as JSON; and the EdgeList defaults."""
    floats, ints = ["float16", "float32", "float64"], ["int8", "int16", "int32", "int64"]
    unsigned = ["uint8", "uint16", "uint32", "uint64"]
    limits = {name: (np.iinfo(name).min, np.iinfo(name).max) for name in ints + unsigned}
    features = [dense(name, 0.1, -2.5e-5, 65000.0) for name in floats]
    features += [dense(name, int(low), int(high)) for name, (low, high) in limits.items()]
    features += [sparse(name, [[0, 1], [5, 0]], [1, 2]) for name in ("float32", "uint64")]
    features += [sparse("float32", [4, 2], [0.5, 1e-3]), text("a \\ b"), text("x,y")]
    nodes = [Thing(i, 0, 1.0, features=[feature]) for i, feature in enumerate(features)]
    graph = Graph([(node, [Thing(node.id, 0, 1.0, 0, features=node.features)]) for node in nodes])
    write_lines("dtypes/dtypes.edgelist", edgelist_lines(graph))
    write_lines("dtypes/dtypes.jsonl", json_lines(graph))
    booleans = [f"{i},-1,0,1.0,bool,4,0,1,true,False" for i in range(3)] + ["0,0,1,1.0,bool,1,TRUE", "1,0,2,1.0,"]
    write_lines("dtypes/bool.edgelist", [*booleans, "9,-1,0,1.0,bool,0,float32,0,float32,1,nan,float32,0"])
    write_lines(
        "dtypes/defaults.edgelist",
        [
            "0;-1;1.5;int8;2#0;5;6;1;2",
            "1;-1;3.5;binary;1;left\\;right",
            "2;-1;5.5;float64;1#2;7;8;0.25",
            "0;1;2.5;3.5",
            "1;2;-1;-3.5;int64;1;9",
            "2;0;0;1e-3;",
        ],
    )


# ---------------------------------------------------------------------------------------------------------------- edges


def write_edges() -> None:
    """Write plain edge lists: every delimiter, compression and option."""
    draw = random.Random(11)
    edges = [(draw.randrange(20), draw.randrange(20)) for _ in range(40)] + [(7, 7), (7, 3), (7, 3)]
    lines = ["# a small graph", "% with both kinds of comments", "", *(f"{src} {dst}" for src, dst in edges)]
    write_lines("edges/plain.txt", lines)
    write_lines("edges/plain.tsv", (f"{src}\t{dst}" for src, dst in edges))
    write_lines("edges/one_based.txt", (f"  {src + 1}\t {dst + 1} " for src, dst in edges))
    write_lines("edges/weighted.wel", (f"{src} {dst} {i * 7 % 10 / 4}" for i, (src, dst) in enumerate(edges)))
    write_lines("edges/weighted.csv", edges_with_columns(edges))
    write_lines(
        "edges/timed.csv",
        (f"{src},{dst},{1_300_000_000 + i * 37 % 40}.{i * 25 % 100:02d}" for i, (src, dst) in enumerate(edges)),
    )
    wide = [0, 5, 2**31, 2**32 + 1, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    write_lines("edges/wide_ids.txt", (f"{wide[src % 8]} {wide[dst % 8]}" for src, dst in edges[:16]))
    for part in range(3):
        write_lines(f"edges/split/part-{part}.txt", (f"{src} {dst}" for src, dst in edges[part * 15 : part * 15 + 15]))
    (HERE / "edges/crlf.csv").write_bytes(b"\xef\xbb\xbf" + b"src,dst\r\n" + b"\r\n".join(b"%d,%d" % e for e in edges[:9]))
    (HERE / "edges/empty.txt").write_bytes(b"")
    data = (HERE / "edges/plain.txt").read_bytes()
    (HERE / "edges/plain.txt.gz").write_bytes(gzip.compress(data[:200], mtime=0) + gzip.compress(data[200:], mtime=0))
    (HERE / "edges/plain.txt.bz2").write_bytes(bz2.compress(data))
    (HERE / "edges/plain.txt.xz").write_bytes(lzma.compress(data))
    (HERE / "edges/plain.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(data))
    table = pa.table(
        {
            "from": pa.array([src for src, _ in edges], pa.int32()),
            "to": pa.array([dst for _, dst in edges], pa.uint64()),
            "score": pa.array([i / 8 if i % 5 else None for i in range(len(edges))], pa.float64()),
            "label": pa.array([f"edge {i}" for i in range(len(edges))]),
            "path": pa.array([list(range(i % 3)) for i in range(len(edges))], pa.list_(pa.int16())),
            "at": pa.array([i * 1000 for i in range(len(edges))], pa.timestamp("ms")),
        }
    )
    pq.write_table(table, HERE / "edges/columns.parquet", row_group_size=16)


def edges_with_columns(edges: list[tuple[int, int]]) -> Iterator[str]:
    """CSV with a header, a weight that is sometimes empty or nan, and further columns of every kind."""
    yield "source,target,w,count,ratio,label,nothing"
    for i, (src, dst) in enumerate(edges):
        weight = "" if i % 11 == 3 else "nan" if i % 11 == 7 else str(i * 7 % 10 / 4)
        count = "" if i % 6 == 1 else str(i - 5)
        label = f'"a ""quoted"", text {i}"' if i % 4 == 0 else "" if i % 4 == 1 else f" plain {i}"
        yield f"{src},{dst},{weight},{count},{i / 3:.4f},{label},"


def write_faulty() -> None:
    """Write files with faulty records between good ones, for --on-error skip."""
    write_lines("faulty/faulty.txt", ["0 1", "1 x", "2", "2 3", "-1 0", "3 0", "18446744073709551616 1", "1 3"])
    write_lines(
        "faulty/faulty.edgelist",
        ["0,-1,0,1.0", "1,-1,0,heavy", "2,-1,0,1.0,int8,1,300", "3,-1,0,1.0,float32,1,0.5", "0,0,3,1.0", "3,0,0", "3,0,0,2.0"],
    )
    good = {"node_id": 0, "node_type": 0, "node_weight": 1, "edge": [{"src_id": 0, "dst_id": 4, "edge_type": 0, "weight": 2}]}
    bad = [{"node_id": 1}, {**good, "node_id": "2"}, {**good, "node_id": 3, "float_feature": {"0": [True]}}]
    lines = [json.dumps(good), *(json.dumps(one) for one in bad), "[]", '{"node_id": 5', json.dumps({**good, "node_id": 4})]
    write_lines("faulty/faulty.jsonl", lines)
    write_lines(
        "faulty/faulty.tsv", ["0\t0\t1.0\tf:1.0\t1,0,1.0", "1\t0\t1.0", "2\tx\t1.0\t\t", "3\t0\t1.0\tq:1\t", "4\t0\t1.0\t\t1"]
    )


# ---------------------------------------------------------------------------------------------------------------- names

AWKWARD = [
    "Zoë",
    "zoe",
    "Zo",
    "Zoë Q.",
    "O'Neil, Pat",
    'the "Duke"',
    " padded ",
    "#1",
    "007",
    "7",
    "-7",
    "e\u0301",
    "日本",
    "🦊",
]


def quoted(cell: str) -> str:
    """Quote a CSV cell where it must be; also one that would make the line a comment."""
    return '"' + cell.replace('"', '""') + '"' if set(cell) & set(',"#') else cell


def write_names() -> None:
    """Write edge lists and triples whose IDs are names, and some whose IDs are integers that may be names."""
    rng = random.Random(20)
    pairs = [(rng.choice(AWKWARD), rng.choice(AWKWARD)) for _ in range(40)]
    rows = [(src, dst, str(rng.randint(1, 9)) if rng.random() < 0.8 else "") for src, dst in pairs]
    write_lines("names/awkward.csv", ["from,to,stars", *(",".join(map(quoted, row)) for row in rows)])
    plain = [name for name in AWKWARD if not set(name) & set(' #"')]
    write_lines("names/unquoted.tsv", [f'"{rng.choice(plain)}\t{rng.choice(plain)}"' for _ in range(12)])
    table = {"from": [src for src, _, _ in rows], "to": [dst for _, dst, _ in rows]}
    pq.write_table(pa.table({**table, "stars": [int(stars or 0) for _, _, stars in rows]}), HERE / "names/awkward.parquet")
    cities = ["Aix", "Bern", "Cork", "Delft", "Évora", "Florence", "Ghent"]
    relations = ["twin_of", "road", "rail to", "10"]
    triples = [(rng.choice(cities), rng.choice(relations), rng.choice(cities), str(rng.randint(1, 300))) for _ in range(45)]
    write_lines("names/cities.tsv", map("\t".join, triples))
    numbers = [rng.choice([-(2**63), -20, -3, -1, 0, 4, 9, 10, 2**63 - 1]) for _ in range(50)]
    write_lines("names/signed.txt", (f"{src} {dst}" for src, dst in zip(numbers[::2], numbers[1::2], strict=True)))
    codes = ["7", "007", "+7", "-1", "12"]
    write_lines("names/codes.csv", ["buyer,code", *(f"{rng.randint(1, 9)},{rng.choice([*codes, 'A7'])}" for _ in range(20))])


# ---------------------------------------------------------------------------------------------------------------- tables


def csv_line(*cells: object) -> str:
    """Write a record of CSV; a cell with a line break, a quote or a comma is quoted."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    return ",".join('"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') else text for text in texts)


def write_people() -> None:
    """Write tables of people, cities and clubs in CSV, TSV, Parquet and JSON lines, and the config that joins them."""
    rng = random.Random(21)
    people = ["Ada", "Bo", "Cyd", "Dee", "Eli", "Fay, Jr.", "Gus", "Hal", "Ivy", "Zoë"]
    notes = ["", "likes tea", 'called "Z"', "two\nlines", " kept blanks "]
    rows = [
        (name, rng.choice([None, rng.randint(20, 70)]), round(rng.uniform(1.5, 2), 2), rng.choice(notes)) for name in people
    ]
    write_lines("people/person.csv", ["name,age,height,note", *(csv_line(*row) for row in rows)])
    cities = {
        "code": pa.array(["ber", "osl", "rio", "zzz"]),
        "people": pa.array([3_700_000, None, 6_200_000, 0], pa.int64()),
        "founded": pa.array([-267_900, -338_000, -147_600, None], pa.int32()).cast(pa.date32()),
        "at": pa.array([[52.5, 13.4], [59.9, 10.8], [-22.9, -43.2], [0.0, 0.0]], pa.list_(pa.float32(), 2)),
    }
    pq.write_table(pa.table(cities), HERE / "people/city.parquet")
    lives = [(name, rng.choice(cities["code"].to_pylist()[:3]), rng.randint(1990, 2020)) for name in people]
    write_lines("people/lives.csv", ["who,where,since", *(csv_line(*row) for row in lives)])
    for part in range(2):
        pairs = [(rng.choice(people), rng.choice(people)) for _ in range(12)]
        records = [{"src": a, "dst": b, "how": rng.choice(["work", "école"]), "score": rng.randint(0, 9) / 4} for a, b in pairs]
        del records[3]["how"], records[5]["score"]
        lines = (json.dumps(record, ensure_ascii=False) for record in records)
        write_lines(f"people/knows/part-{part}.jsonl", lines)
    write_lines("people/knows/_SUCCESS", [])
    clubs = [(rng.choice(people), rng.choice([-3, 7, 40, 2**40]), rng.choice(["", "0.5", "2"])) for _ in range(15)]
    write_lines("people/member.tsv", ["person\tclub\tfee", *("\t".join(map(str, row)) for row in clubs)])
    write_lines("people/member_dangling.tsv", ["person\tclub\tfee", "Ada\t7\t1", "Nobody\t7\t2", "Zoë\t9\t"])
    config = {
        "graph_name": "people",
        "id_type": "string",
        "nodes": [
            {"type": "person", "files": "person.csv", "id_col": "name", "quote": True},
            {"type": "city", "files": "city.parquet", "id_col": "code"},
            {"type": "club", "id_type": "int"},
        ],
        "edges": [
            {"type": "person:lives:city", "files": "lives.csv", "src_col": "who", "dst_col": "where"},
            {"type": "person:knows:person", "files": "knows", "weight_col": "score"},
            {"type": "person:member:club", "files": "member.tsv", "src_col": "person", "dst_col": "club"},
        ],
    }
    (HERE / "people/graph.json").write_text(json.dumps(config, indent=2) + "\n")
    config["edges"][2]["files"] = "member_dangling.tsv"
    (HERE / "people/dangling.json").write_text(json.dumps(config, indent=2) + "\n")


# ---------------------------------------------------------------------------------------------------------------- real


def write_karate() -> None:
    """Zachary's karate club: 34 members, weights, the club that each joined."""
    graph = nx.karate_club_graph()
    edges = [(src, dst, data["weight"]) for src, dst, data in graph.edges(data=True)]
    write_lines("karate/karate.csv", ["source,target,weight", *(f"{src},{dst},{weight}" for src, dst, weight in edges)])
    rows = []
    for node, club in graph.nodes(data="club"):
        thing = Thing(node, 0, 1.0, features=[dense("int8", int(club == "Officer")), text(club)])
        rows.append((thing, [Thing(node, 0, float(graph[node][other]["weight"]), other) for other in sorted(graph[node])]))
    write_lines("karate/karate.edgelist", edgelist_lines(Graph(rows)))
    write_lines("karate/karate.jsonl", json_lines(Graph(rows)))
    write_lines("karate/karate.tsv", tsv_lines(Graph(rows)))
    parts = [int(club == "Officer") for _, club in graph.nodes(data="club")]
    write_lines("karate/partitions.txt", map(str, parts))
    pairs = np.array([(src, dst) for src, dst, _ in edges] + [(dst, src) for src, dst, _ in edges])
    weights = np.array([weight for _, _, weight in edges] * 2, np.float32)
    name = "member:knows:member"
    metadata = {
        "graph_name": "karate",
        "node_type": ["member"],
        "num_nodes_per_chunk": [[34]],
        "num_nodes_per_type": [34],
        "edge_type": [name],
        "num_edges_per_chunk": [[78, 78]],
        "num_edges_per_type": [156],
        "edges": {name: block("numpy", "knows-0.npy", "knows-1.npy")},
        "node_data": {"member": {"club": block("numpy", "club.npy")}},
        "edge_data": {name: {"weight": block("numpy", "weight.npy")}},
    }
    files = {"knows-0.npy": pairs[:78], "knows-1.npy": pairs[78:], "club.npy": np.array(parts), "weight.npy": weights}
    write_chunked("karate/chunked", metadata, files)


def write_les_miserables() -> None:
    """Les Misérables: 77 characters, how often two share a chapter."""
    graph = nx.les_miserables_graph()
    number = {name: i for i, name in enumerate(sorted(graph))}
    edges = sorted((number[a], number[b], data["weight"]) for a, b, data in graph.edges(data=True))
    write_lines("lesmis/lesmis.txt", (f"{src} {dst} {weight}" for src, dst, weight in edges))
    names = sorted(graph)
    write_lines("lesmis/lesmis.tsv", (f"{names[src]}\t{names[dst]}\t{weight}" for src, dst, weight in edges))
    rows = []
    for name, i in number.items():
        others = sorted(number[other] for other in graph[name])
        names = {i: name for name, i in number.items()}
        own = [Thing(i, 0, float(graph[name][names[other]]["weight"]), other) for other in others]
        rows.append((Thing(i, 0, float(len(own)), features=[text(name)]), own))
    write_lines("lesmis/lesmis.jsonl", json_lines(Graph(rows)))
    write_lines("lesmis/lesmis.edgelist", edgelist_lines(Graph(rows)))


def write_davis() -> None:
    """Davis' Southern women: 18 women at 14 events, two node types."""
    graph = nx.davis_southern_women_graph()
    women, events = graph.graph["top"], graph.graph["bottom"]
    edges = sorted((women.index(woman), events.index(event)) for woman in women for event in graph[woman])
    write_lines("davis/davis.tsv", ["# woman\tevent", *(f"{woman}\t{event}" for woman, event in edges)])
    rows = [
        (Thing(i, 0, 1.0, features=[text(woman)]), [Thing(i, 0, 1.0, 100 + event) for w, event in edges if w == i])
        for i, woman in enumerate(women)
    ]
    rows += [(Thing(100 + i, 1, 1.0, features=[text(event)]), []) for i, event in enumerate(events)]
    write_lines("davis/davis.edgelist", edgelist_lines(Graph(rows)))
    write_lines("davis/partitions/0.txt", (str(i % 3) for i in range(len(women))))
    numbers = {"id": [100 + i for i in reversed(range(len(events)))], "part": [i % 2 for i in range(len(events))]}
    pq.write_table(pa.table(numbers), HERE / "davis/partitions/1.parquet")
    name = "woman:attends:event"
    metadata = {
        "graph_name": "davis",
        "node_type": ["woman", "event"],
        "num_nodes_per_type": [len(women), len(events)],
        "edge_type": [name],
        "num_edges_per_chunk": [[len(edges)]],
        "edges": {name: block("parquet", "attends.parquet")},
        "node_data": {"woman": {"name": block("parquet", "names.parquet")}},
        "edge_data": {},
    }
    columns = np.array(edges)
    files = {"attends.parquet": pa.table({"0": columns[:, 0], "1": columns[:, 1]}), "names.parquet": pa.table({"name": women})}
    write_chunked("davis/chunked", metadata, files)


# ---------------------------------------------------------------------------------------------------------------- peers


def write_peers() -> None:
    """Write small graphs in the formats of other tools."""
    folder = HERE / "peers"
    folder.mkdir(parents=True, exist_ok=True)
    write_arrays(folder)
    lines = ["%%MatrixMarket matrix coordinate real symmetric", "% who calls whom, hours a week", "", "4 4 4"]
    write_lines("peers/friends.mtx", [*lines, "2 1 1.5", "3 2 .5", "3 3 -2", "% a comment", "2 1 1e-3"])
    lines = ["%%MatrixMarket MATRIX coordinate pattern general", "3 5 4"]
    write_lines("peers/ratings.mtx", [*lines, "1 5", "3 1", "3  2", "1 1"])
    write_lines("peers/flows.mtx", ["%%MatrixMarket matrix coordinate integer skew-symmetric", "3 3 2", "2 1 7", "3 1 -2"])
    write_lines("peers/town.graph", ["% nodes, edges, format", "5 3 011", "7 2 15 3 40", "2 1 15", "5 1 40 4 8", "1 3 8", "9"])
    write_lines("peers/sizes.graph", ["3 2 110 2", "10 1 2 2", "% a comment", "20 3 4 1 3", "30 5 6 2"])
    write_film()
    write_ogb()
    write_club()


def write_arrays(folder: Path) -> None:
    """Write edges and matrices as NumPy and SciPy write them."""
    edges = np.array([[0, 0, 1, 3, 3, 5], [1, 2, 2, 0, 0, 5]])
    features = np.arange(14, dtype=np.float32).reshape(7, 2) / 4
    np.savez(folder / "graph.npz", edge_index=edges, edge_weight=edges[0] / 2, x=features, y=np.arange(7) % 3)
    np.save(folder / "pairs.npy", np.asfortranarray(edges.T * 10, ">i4"))
    np.savez_compressed(
        folder / "rated.npz", indptr=[0, 2, 2, 5], indices=[1, 4, 0, 4, 4], data=[5.0, 0, 2, 1, 1], shape=[3, 5], format=b"csr"
    )
    (folder / "columns").mkdir(exist_ok=True)
    np.save(folder / "columns/indptr.npy", np.array([0, 0, 2, 3, 3], np.int32))
    np.save(folder / "columns/indices.npy", np.array([3, 0, 2], np.uint8))


def write_film() -> None:
    """Write files for neo4j-admin."""
    movies = ["movieId:ID,title,year:int,scores:double[],:LABEL", 'tt0133093,"The Matrix",1999,8.7;4.5,Movie']
    write_lines("peers/film/movies.csv", [*movies, 'tt0234215,"The Matrix, Reloaded",2003,7.2;3.5,Movie;Sequel'])
    write_lines("peers/film/actors-header.csv", ["personId:ID,name,born:date,:LABEL"])
    write_lines("peers/film/actors-1.csv", ['keanu,"Keanu Reeves",1964-09-02,Actor', "carrie,Carrie-Anne Moss,,Actor"])
    write_lines("peers/film/actors-2.csv", ["hugo,Hugo,1960-04-04,Actor"])
    roles = [":START_ID,role,:END_ID,:TYPE", "keanu,Neo,tt0133093,ACTED_IN", "hugo,Smith,tt0133093,ACTED_IN"]
    write_lines("peers/film/roles.csv", [*roles, "keanu,Neo,tt0234215,ACTED_IN", "carrie,Trinity,tt0133093,ACTED_IN"])


def write_ogb() -> None:
    """Write folders of the Open Graph Benchmark, of one node type and of two."""
    papers = {
        "raw/num-node-list": ["4"],
        "raw/num-edge-list": ["3"],
        "raw/edge": ["0,1", "1,2", "3,0"],
        "raw/node-feat": ["0.1,0.2", "0.3,-4", "5,0.6", "0.7,1e3"],
        "raw/node_year": ["2001", "2002", "2003", "2004"],
        "raw/edge-feat": ["1", "2", "3"],
        "raw/node-label": ["0", "1", "0", "2"],
        "split/time/train": ["0", "1"],
        "split/time/valid": ["2"],
        "split/time/test": ["3"],
    }
    academic = {
        "raw/num-node-dict": ["paper,author", "3,2"],
        "raw/triplet-type-list": ["author,writes,paper", "paper,cites,paper"],
        "raw/relations/author___writes___paper/edge": ["0,0", "1,0", "1,2"],
        "raw/relations/paper___cites___paper/edge": ["2,0"],
        "raw/node-feat/paper/node-feat": ["1", "2", "3"],
        "raw/node-label/paper/node-label": ["7", "7", "1"],
        "split/time/paper/train": ["2"],
        "split/time/paper/test": ["0"],
    }
    for name, files in (("papers", papers), ("academic", academic)):
        for path, lines in files.items():
            target = HERE / "peers" / name / f"{path}.csv.gz"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0))


def write_club() -> None:
    """Write a data set of GraphBolt."""
    text = """dataset_name: club
graph:
  nodes:
    - {type: person, num: 5}
    - {type: club, num: 2}
  edges:
    - {type: "person:joins:club", format: csv, path: joins.csv}
    - {type: "person:knows:person", format: numpy, path: knows.npy}
feature_data:
  - {domain: node, type: person, name: feat, format: numpy, in_memory: false, path: feat.npy}
  - {domain: edge, type: "person:joins:club", name: since, format: numpy, path: since.npy}
tasks:
  - name: node_classification
    train_set:
      - type: person
        data:
          - {name: seeds, format: numpy, path: train.npy}
          - {name: labels, format: numpy, path: train-labels.npy}
    test_set:
      - type: person
        data: [{name: seeds, format: numpy, path: test.npy}]"""
    write_lines("peers/club/metadata.yaml", text.splitlines())
    write_lines("peers/club/joins.csv", ["0,0", "1,0", "3,1"])
    arrays = {
        "knows": np.array([[0, 1, 2, 2], [1, 2, 3, 2]]),
        "feat": np.arange(10, dtype=np.float32).reshape(5, 2),
        "since": np.array([2001, 1999, 2020], np.int16),
        "train": np.array([4, 1]),
        "train-labels": np.array([7, 5]),
        "test": np.array([3], np.int32),
    }
    for name, values in arrays.items():
        np.save(HERE / "peers/club" / f"{name}.npy", values)


def main() -> None:
    """Write everything."""
    for write in (
        write_town,
        write_shop,
        write_shop_chunked,
        write_dtypes,
        write_edges,
        write_faulty,
        write_names,
        write_people,
        write_peers,
    ):
        write()
    for write in (write_karate, write_les_miserables, write_davis):
        write()


if __name__ == "__main__":
    main()
