"""Run by an environment that has GraphBolt: reads what the export wrote with DGL's loaders, samples from it, saves what it saw.

``graphbolt_client.py OUT.npz EXPORT…``: datasets (folders with ``preprocessed``) and partitions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

os.environ["DGLBACKEND"] = "pytorch"

import dgl.graphbolt as gb
import numpy as np
import torch
from dgl.data.utils import load_tensors
from dgl.distributed import load_partition
from dgl.distributed.partition import load_partition_book

Seen = dict[str, torch.Tensor]


# ---------------------------------------------------------------------------------------------------------- datasets


def read_dataset(folder: Path) -> Seen:
    """Open a dataset, and read edges with their attributes, features, and sets; IDs are those within a type."""
    how = {} if (folder / "preprocessed/dataset_hash_value.txt").exists() else {"force_preprocess": False}
    dataset = gb.OnDiskDataset(str(folder), include_original_edge_id=True, **how).load()
    assert (folder / "preprocessed/metadata.yaml").exists()  # GraphBolt removes what it takes for stale
    found = read_edges(dataset)
    for (domain, kind, name), feature in dataset.feature._features.items():
        found[f"{domain.value if hasattr(domain, 'value') else domain} {kind} {name}"] = feature.read()
    for task in dataset.tasks:
        for key in ("train_set", "validation_set", "test_set"):
            found |= read_set(getattr(task, key), f"set {task.metadata['name']} {key}")
    sample(dataset)
    return found


def read_edges(dataset) -> Seen:
    """Read the edges of each type."""
    graph = dataset.graph
    dst = torch.repeat_interleave(torch.arange(graph.total_num_nodes), graph.csc_indptr.diff())
    names = graph.edge_type_to_id or {"None": 0}
    kinds = torch.zeros_like(dst) if graph.type_per_edge is None else graph.type_per_edge
    found = {}
    for name, number in names.items():
        mine = kinds == number
        ends = (graph.indices[mine].long(), dst[mine])
        if graph.node_type_to_id is not None:
            numbers = (graph.node_type_to_id[name.split(":")[end]] for end in (0, 2))
            ends = (some - graph.node_type_offset[number] for some, number in zip(ends, numbers, strict=True))
        found |= {f"edge {name} {key}": some for key, some in zip(("src", "dst"), ends, strict=True)}
        for key, values in graph.edge_attributes.items():
            found[f"edge {name} {'id' if key == '_ORIGINAL_EDGE_ID' else f'graph-{key}'}"] = values[mine]
    return found


def read_set(items, name: str) -> Seen:
    """Read a training, validation or test set."""
    if items is None:
        return {}
    kinds = items._itemsets if isinstance(items, gb.ItemSetDict) else {"None": items}
    return {
        f"{name} {kind} {key}": some for kind, one in kinds.items() for key, some in zip(one.names, one._items, strict=True)
    }


def sample(dataset) -> None:
    """Sample all in-edges of all nodes, then one of each type, and hold them against the graph; then load mini-batches."""
    graph = dataset.graph
    kinds = graph.edge_type_to_id or {None: 0}
    counts = graph.num_nodes
    nodes = (
        {name: torch.arange(size, dtype=graph.indices.dtype) for name, size in counts.items()}
        if isinstance(counts, dict)
        else torch.arange(counts, dtype=graph.indices.dtype)
    )
    known = edge_sets(read_edges(dataset), kinds)
    for fanout in (-1, 1):
        subgraph = graph.sample_neighbors(nodes, torch.LongTensor([fanout] * len(kinds)))
        for name in kinds:
            csc = subgraph.sampled_csc[name] if name is not None else subgraph.sampled_csc
            ids = subgraph.original_edge_ids[name] if name is not None else subgraph.original_edge_ids
            dst = torch.repeat_interleave(torch.arange(len(csc.indptr) - 1), csc.indptr.diff())
            edges = list(zip(csc.indices.tolist(), dst.tolist(), ids.tolist(), strict=True))
            assert set(edges) <= known[name]
            wanted = len(known[name]) if fanout < 0 else len({to for _, to, _ in known[name]})
            assert len(edges) == wanted, (name, fanout, len(edges), wanted)
    if "weight" in (graph.edge_attributes or {}):
        graph.sample_neighbors(nodes, torch.LongTensor([1]), probs_name="weight")
    for task in dataset.tasks:
        load_batches(dataset, task)


def edge_sets(found: Seen, kinds) -> dict:
    """Return the (source, destination, edge ID) of each type."""
    return {
        name: set(zip(*(found[f"edge {name} {key}"].tolist() for key in ("src", "dst", "id")), strict=True)) for name in kinds
    }


def load_batches(dataset, task) -> None:
    """Run GraphBolt's own pipeline over the training set."""
    if task.train_set is None:
        return
    pipe = gb.ItemSampler(task.train_set, batch_size=4).sample_neighbor(dataset.graph, [2, 2])
    domain_kinds: dict = {}
    for domain, kind, name in dataset.feature._features:
        if getattr(domain, "value", domain) == "node":
            domain_kinds.setdefault(kind, []).append(name)
    kinds = task.train_set._itemsets if isinstance(task.train_set, gb.ItemSetDict) else ()
    names = domain_kinds.get(None) or {kind: domain_kinds[kind] for kind in kinds}  # others need not be in a batch
    pipe = pipe.fetch_feature(dataset.feature, node_feature_keys=names)
    batches = list(gb.DataLoader(pipe))
    assert batches
    for batch in batches:
        assert batch.node_features


# --------------------------------------------------------------------------------------------------------- partitions


def read_partitions(folder: Path) -> Seen:
    """Read all partitions of a graph: nodes and edges by type, ends in original IDs."""
    config = str(folder / "metadata.json")
    book, _, node_types, edge_types = load_partition_book(config, 0)
    parts = range(book.num_partitions())
    raw = [load_tensors(str(folder / f"part{part}" / "orig_nids.dgl")) for part in parts]
    raw = {name: torch.cat([some[name] for some in raw]) for name in raw[0]}
    original = [load_tensors(str(folder / f"part{part}" / "orig_eids.dgl")) for part in parts]
    original = {name: torch.cat([some[name] for some in original]) for name in original[0]}
    found: dict[str, list[torch.Tensor]] = {}
    for part in parts:
        has_edges = any(len(book.partid2eids(part, kind)) for kind in edge_types)
        with mock.patch.dict(os.environ, {"DGL_DIST_DEBUG": "1"} if has_edges else {}):
            # DGL verifies what it loads then; of a partition without edges it cannot.
            graph, _, _, book, _, _, _ = load_partition(config, part, use_graphbolt=True)
        ids = graph.node_attributes["_ID"]
        assert len(graph.csc_indptr) == len(ids) + 1
        dst = torch.repeat_interleave(torch.arange(len(ids)), graph.csc_indptr.diff())
        edges, kinds = graph.edge_attributes, book.map_to_per_etype(graph.edge_attributes["_ID"])
        assert torch.equal(edges["_gb_dst_id"], dst)
        inner = edges["inner_edge"].bool()
        assert torch.equal(inner, graph.node_attributes["inner_node"].bool()[dst])
        in_order = torch.cat([edges["_ID"][inner].sort().values, edges["_ID"][~inner].sort().values])
        assert torch.equal(edges["_ID"][edges["_dgl2gb_eid"]], in_order)
        for edge_type, number in edge_types.items():
            mine = (kinds[0] == number) & inner
            name = ":".join(edge_type)
            for end, local, kind in (("src", graph.indices, edge_type[0]), ("dst", dst, edge_type[2])):
                types_, typed = book.map_to_per_ntype(ids[local[mine]])
                assert (types_ == node_types[kind]).all()
                found.setdefault(f"edge {name} {end}", []).append(raw[kind][typed])
            found.setdefault(f"edge {name} id", []).append(original[name][kinds[1][mine]])
        sample_partition(graph, len(edge_types))
    return {name: torch.cat(some) for name, some in found.items()}


def sample_partition(graph, num_types: int) -> None:
    """Sample one in-edge of each type of all nodes, as DistGraph does, and look at the types."""
    nodes = torch.arange(graph.total_num_nodes, dtype=graph.indices.dtype)
    found = graph._sample_neighbors(nodes, torch.LongTensor([1] * num_types), return_eids=True)
    if graph.type_per_edge is not None:
        kinds = graph.type_per_edge
        dst = torch.repeat_interleave(torch.arange(graph.total_num_nodes), graph.csc_indptr.diff())
        wanted = len(set(zip(dst.tolist(), kinds.tolist(), strict=True)))
        assert len(found.indices) == wanted
        assert torch.equal(found.type_per_edge, kinds[found.original_edge_ids])


def main(out: str, folders: list[str]) -> None:
    """Read every export."""
    found = {}
    for folder in map(Path, folders):
        seen = read_dataset(folder) if (folder / "preprocessed").exists() else read_partitions(folder)
        found |= {f"{folder.name}|{name}": values.numpy() for name, values in seen.items()}
    np.savez(out, **found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
