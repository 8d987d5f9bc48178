"""Run by an environment that has DGL: reads what the export wrote with DGL's own loaders, and saves what it saw as .npz.

``dgl_client.py OUT.npz EXPORT…``. GraphBolt's compiled part wants another torch; partitions load without it.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

os.environ |= {"DGLBACKEND": "pytorch", "DGL_DIST_DEBUG": "1"}  # the second: DGL verifies every partition that it loads
graphbolt = types.ModuleType("dgl.graphbolt")
graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = graphbolt

import dgl  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from dgl.data.utils import load_tensors  # noqa: E402
from dgl.distributed import load_partition  # noqa: E402
from dgl.distributed.partition import load_partition_book, load_partition_feats  # noqa: E402


def read_partitions(folder: Path) -> dict[str, np.ndarray]:
    """Read all partitions: nodes and edges by type, ends in original IDs, as DGL's partition book tells them."""
    config = str(folder / "metadata.json")
    num_parts = load_partition_book(config, 0)[0].num_partitions()
    raw = [load_tensors(str(folder / f"part{part}" / "orig_nids.dgl")) for part in range(num_parts)]
    raw = {name: torch.cat([some[name] for some in raw]) for name in raw[0]}
    found: dict[str, list[np.ndarray]] = {}
    for part in range(num_parts):
        for name, values in read_partition(folder, config, part, raw).items():
            found.setdefault(name, []).append(values.numpy())
    if (folder / "edge_sets.dgl").exists():
        found |= {name: [values.numpy()] for name, values in read_edge_sets(folder, config, raw)}
    return {name: np.concatenate(values) for name, values in found.items()}


def read_edge_sets(folder: Path, config: str, raw: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the edges of each part of a split, ends in original IDs."""
    book = load_partition_book(config, 0)[0]
    for name, pairs in load_tensors(str(folder / "edge_sets.dgl")).items():
        src_type, _, dst_type = name.rpartition("/")[0].split(":")
        for end, kind, ids in zip(("src", "dst"), (src_type, dst_type), pairs, strict=True):
            yield f"set {name} {end}", raw[kind][book.map_to_per_ntype(ids)[1]]


def read_partition(folder: Path, config: str, part: int, raw: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Read a partition, and hold what DGL says of it against what its files say."""
    graph, node_feats, edge_feats, book, _, node_types, edge_types = load_partition(config, part)
    again = load_partition_feats(config, part)
    assert [set(one) for one in again] == [set(node_feats), set(edge_feats)]
    found = {}
    inner = graph.ndata["inner_node"].bool()
    assert torch.equal(inner, torch.arange(graph.num_nodes()) < inner.sum())
    own, others = (graph.ndata["_ID"][mask] for mask in (inner, ~inner))
    assert torch.equal(book.nid2partid(own), torch.full_like(own, part))
    assert not (book.nid2partid(others) == part).any()
    assert torch.equal(others, torch.unique(others))
    kinds, typed = book.map_to_per_ntype(graph.ndata["_ID"])
    assert torch.equal(kinds, graph.ndata["_TYPE"].long())
    for number, name in enumerate(node_types):
        mine = typed[inner & (kinds == number)]
        assert torch.equal(mine, book.partid2nids(part, name))
        assert torch.equal(book.map_to_homo_nid(mine, name), own[kinds[inner] == number])
        found[f"node {name} raw"] = raw[name][mine]
        for key, values in node_feats.items():
            if key.partition("/")[0] == name:
                assert len(values) == len(mine)
                found[f"node {name} {key.partition('/')[2]}"] = values
    found |= read_edges(folder, part, (graph, edge_feats, book, node_types, edge_types), (kinds, typed, raw))
    return found


def read_edges(folder, part, loaded, nodes):
    """Read the edges of a partition, type by type in the order of DGL's edge IDs."""
    graph, edge_feats, book, node_types, edge_types = loaded
    kinds, typed, raw = nodes
    edge_ids = load_tensors(str(folder / f"part{part}" / "orig_eids.dgl"))
    found = {}
    src, dst, order = graph.edges(form="all", order="eid")
    assert torch.equal(order, torch.arange(graph.num_edges()))
    inner = graph.edata["inner_edge"].bool()
    assert torch.equal(inner, graph.ndata["inner_node"].bool()[dst])
    assert torch.equal(graph.in_degrees(), torch.bincount(dst, minlength=graph.num_nodes()))
    for number, edge_type in enumerate(edge_types):
        name = ":".join(edge_type)
        mine = (graph.edata["_TYPE"] == number) & inner
        types_, rows = book.map_to_per_etype(graph.edata["_ID"][mine])
        assert (types_ == number).all()
        assert torch.equal(rows, book.partid2eids(part, edge_type))
        for end, ids, node_type in (("src", src[mine], edge_type[0]), ("dst", dst[mine], edge_type[2])):
            assert (kinds[ids] == node_types.index(node_type)).all()
            found[f"edge {name} {end}"] = raw[node_type][typed[ids]]
        found[f"edge {name} id"] = edge_ids[name]
        for key, values in edge_feats.items():
            if key.partition("/")[0] == name:
                assert len(values) == len(rows)
                found[f"edge {name} {key.partition('/')[2]}"] = values
    return found


def check_sorted_columns(folder: Path) -> None:
    """Sample in-edges by type, which is right only where each node's in-edges lie by type."""
    for file in folder.glob("part*/graph.dgl"):
        graph = dgl.load_graphs(str(file))[0][0]
        if "csc" in graph.formats()["created"] and graph.num_edges():
            kinds = graph.edata["_TYPE"]
            indptr, _, edges = (some.long() for some in graph.adj_tensors("csc"))
            edges = edges if len(edges) else torch.arange(graph.num_edges())
            row = torch.repeat_interleave(torch.arange(graph.num_nodes()), indptr.diff())
            assert (torch.diff(row * (int(kinds.max()) + 1) + kinds[edges]) >= 0).all()


def sample_all(folder: Path) -> None:
    """Sample all in-edges of nodes of a graph in one partition, in DGL's standalone mode."""
    client = dgl.distributed.kvstore.get_kvstore()  # one a process, which would keep features of the graph before
    client._data.clear(), client._gdata_name_list.clear(), client._all_possible_part_policy.clear()
    graph = dgl.distributed.DistGraph("graph", part_config=str(folder / "metadata.json"))
    is_homogeneous = graph.get_partition_book().is_homogeneous
    for number, name in enumerate(graph.ntypes):
        nodes = torch.arange(graph.num_nodes(name))
        if is_homogeneous:
            found = dgl.distributed.sample_neighbors(graph, nodes, -1)
        else:
            found = dgl.distributed.sample_etype_neighbors(graph, {name: nodes}, -1)
        leading = [edge_type for edge_type in graph.canonical_etypes if edge_type[2] == graph.ntypes[number]]
        wanted = {edge_type: graph.num_edges(edge_type) for edge_type in leading}
        assert found.num_edges() == sum(wanted.values())
        for edge_type in () if is_homogeneous else found.canonical_etypes:
            assert found.num_edges(edge_type) == wanted.get(edge_type, 0), (folder, name, edge_type)


def main(out: str, folders: list[str]) -> None:
    """Read every export."""
    found = {}
    dgl.distributed.initialize("none")
    for folder in map(Path, folders):
        found |= {f"{folder.name}|{name}": values for name, values in read_partitions(folder).items()}
        check_sorted_columns(folder)
        if len(list(folder.glob("part*"))) == 1:
            sample_all(folder)
    np.savez(out, **found)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
