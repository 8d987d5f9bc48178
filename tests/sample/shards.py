"""Reads shards by docs/sample.md alone, and turns flows into layers and edges of parent IDs."""

import json

import numpy as np
import pyarrow.parquet as pq


def read_flows(folder):
    """Yield the arrays of every flow, by their names."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["format"], manifest["format_version"]) == ("graphprep-samples", 1)
    for shard in manifest["shards"]:
        read = read_npz if manifest["file_format"] == "npz" else read_parquet
        yield from read(folder / shard["path"], manifest)


def read_npz(path, manifest):
    with np.load(path) as file:
        members = {name: file[name] for name in file}
    types, blocks = manifest["store"]["node_type"], manifest["block_types"]
    at = dict.fromkeys(members, 0)
    for layers, edges in zip(members["layer_offsets"], members["block_offsets"], strict=True):
        by_layer = np.diff(layers).reshape(-1, len(types))
        ends = [
            [types.index(one["edge_type"].split(":")[i]) for i in ((2, 0) if not one["reversed"] else (0, 2))] for one in blocks
        ]
        sizes = {"node_mapping": layers[-1], "node_times": layers[-1]}
        sizes |= dict.fromkeys(("sources", "edge_mapping", "edge_weights"), edges[-1])
        sizes["indptr"] = sum(by_layer[b + 1][end[0]] + 1 for b in range(len(by_layer) - 1) for end in ends)
        for name in members:
            folder, _, rest = name.partition("/")
            if folder == "nodes":
                sizes[name] = by_layer[:, types.index(rest.split("/")[0])].sum()
            if folder in ("edges", "reversed"):
                which = [
                    (one["edge_type"].replace(":", "__"), "reversed" if one["reversed"] else "edges") for one in blocks
                ].index((rest.split("/")[0], folder))
                sizes[name] = np.diff(edges).reshape(-1, len(blocks))[:, which].sum()
        flow = {"layer_offsets": layers, "block_offsets": edges}
        for name, size in sizes.items():
            if name in members:
                flow[name] = members[name][at[name] : at[name] + size]
                at[name] += size
        yield flow
    for name, end in at.items():
        assert name in ("layer_offsets", "block_offsets") or end == len(members[name]), name


def read_parquet(path, manifest):
    for row in pq.read_table(path).to_pylist():
        yield {name: np.array(value) for name, value in row.items()}


def layers_of(arrays, types):
    """Return layers of {type: [(node, time)]}, the outermost first."""
    nodes = arrays["node_mapping"].tolist()
    times = arrays["node_times"].tolist() if "node_times" in arrays else [None] * len(nodes)
    offsets, both = arrays["layer_offsets"].tolist(), list(zip(nodes, times, strict=True))
    num = len(types)
    return [
        {
            types[t]: both[offsets[layer + t] : offsets[layer + t + 1]]
            for t in range(num)
            if offsets[layer + t] < offsets[layer + t + 1]
        }
        for layer in range(0, len(offsets) - 1, num)
    ]


def blocks_of(arrays, types, ends):
    """Return for each block and block type the edges ((source, time), (destination, time), edge ID); ``ends`` are types."""
    layers = layers_of(arrays, types)
    flat = [[node for name in types for node in layer.get(name, ())] for layer in layers]
    sources, ids, indptr = (arrays[name].tolist() for name in ("sources", "edge_mapping", "indptr"))
    found, edge, offset = [], 0, 0
    for block in range(len(layers) - 1):
        found.append([])
        for _, destination_type in ends:
            edges = []
            destinations = layers[block + 1].get(destination_type, [])
            counts = np.diff(indptr[offset : offset + len(destinations) + 1]).tolist()
            assert indptr[offset] == 0
            offset += len(destinations) + 1
            for node, count in zip(destinations, counts, strict=True):
                for _ in range(count):
                    edges.append((flat[block][sources[edge]], node, ids[edge]))
                    edge += 1
            found[-1].append(edges)
            assert edge == arrays["block_offsets"][block * len(ends) + len(found[-1])]
    return found
