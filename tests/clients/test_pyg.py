"""Graphs as PyTorch Geometric reads them: ``from_dict``, its graph stores, and its local stores, against the store."""

from __future__ import annotations

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map, store_edges, store_nodes
from clients.graphs import GRAPHS, make_store, shared_store

import graphprep
from graphprep.model.errors import UsageError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")

from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.distributed import LocalFeatureStore, LocalGraphStore  # noqa: E402
from torch_geometric.loader.utils import filter_data  # noqa: E402
from torch_geometric.sampler import NeighborSampler  # noqa: E402
from torch_geometric.testing import MyGraphStore  # noqa: E402

pytestmark = pytest.mark.client("torch-geometric")

# Columns of the graphs by the names that PyG has for them. x is made of feat and age.
NODE_NAMES = {"y": "y"}
EDGE_NAMES = {"weight": "edge_weight", "time": "edge_time", "feat": "edge_attr"}
MASKS = ("train_mask", "val_mask", "test_mask")


def export(store, out, **given):
    return graphprep.export(str(store), str(out), "pyg", **given)


def is_homo(graph):
    return (len(graph.nodes), len(graph.edges)) == (1, 1)


def store_of(name, by="hash"):
    return shared_store(name, partitions=3, partition_by=by)


def edge_rows(out, store, name, values, src, dst):
    """Return edges with raw ends, and the columns that they have by the graph's own names."""
    src_ids, dst_ids = (id_map(out, store, end) for end in (name[0], name[2]))
    columns = {column: values[key].numpy() for column, key in EDGE_NAMES.items() if key in values}
    return Rows(src_ids[src.numpy()], dst_ids[dst.numpy()], values["edge_id"].numpy(), columns)


def check_edges(name, found, graph, store):
    wanted = graph_edges(graph, name)
    columns = [column for column in wanted.columns if column in EDGE_NAMES]
    assert sorted(found.columns) == sorted(columns)
    assert checksum(name, found) == checksum(name, wanted.only(columns).trained())
    assert checksum(name, found) == checksum(name, store_edges(store, name).only(columns).trained())


def check_nodes(name, ids, values, graph, store):
    """Compare x, y and masks of nodes (raw IDs) with those of the graph; x holds what the graph has in one or two columns."""
    wanted = graph_nodes(graph, name)
    columns = {"y": values["y"].numpy()} if "y" in values else {}
    if "x" in values:
        width = wanted.columns["feat"].shape[1]
        columns["feat"] = values["x"].numpy()[:, :width]
        if "age" in wanted.columns:
            columns["age"] = values["x"].numpy()[:, width]
            assert values["x"].shape[1] == width + 1
    found = Rows(ids, columns=columns)
    kept = [column for column in wanted.columns if column != "part"]
    assert sorted(columns) == sorted(kept)
    assert checksum(name, found) == checksum(name, wanted.only(kept).trained())
    assert checksum(name, found) == checksum(name, store_nodes(store, name).only(kept).trained())
    if "part" in wanted.columns:
        splits = dict(zip(graph.nodes[name].ids, graph.nodes[name].columns["part"].tolist(), strict=True))
        for part, mask in enumerate(MASKS):
            assert values[mask].dtype == torch.bool
            assert values[mask].tolist() == [splits[raw] == part for raw in ids.tolist()]


# ---------------------------------------------------------------------------------------------- one file


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_data_holds_the_graph(name, mmap, tmp_path):
    (graph, store), out = store_of(name), tmp_path / "out"
    export(store, out, form="data")
    data = (Data if is_homo(graph) else HeteroData).from_dict(torch.load(out / "data.pt", mmap=mmap))
    data.validate(raise_on_error=True)
    for edge_type in graph.edges:
        values = data if is_homo(graph) else data[edge_type]
        src, dst = values["edge_index"]
        assert bool((dst[1:] >= dst[:-1]).all())
        found = edge_rows(out, store, edge_type, values, src, dst)
        check_edges(edge_type, found, graph, store)
        if "edge_time" in values:
            order = np.lexsort((values["edge_id"], values["edge_time"], dst))
            np.testing.assert_array_equal(order, np.arange(dst.numel()))
    for node_type, some in graph.nodes.items():
        values = data if is_homo(graph) else data[node_type]
        assert values.num_nodes == len(some.ids)
        if some.ids:
            check_nodes(node_type, id_map(out, store, node_type), values, graph, store)
        if some.seeds:
            ids = id_map(out, store, node_type)
            assert sorted(ids[values["seed_mask"].numpy()].tolist()) == sorted(some.seeds)


@pytest.mark.parametrize("name", GRAPHS)
def test_stores_take_csc_as_it_is(name, tmp_path):
    """``csc()``, by which PyG's samplers get a graph, hands back the very tensors, and edges in the order of the features."""
    (graph, store), out = store_of(name, "random"), tmp_path / "out"
    export(store, out, form="data", layout="CSC", graph_class="hetero")
    values = torch.load(out / "data.pt")
    graph_store = MyGraphStore()
    for edge_type in graph.edges:
        one = values[edge_type]
        size = tuple(values[end]["num_nodes"] for end in (edge_type[0], edge_type[2]))
        graph_store.put_edge_index((one["row"], one["colptr"]), edge_type=edge_type, layout="csc", size=size, is_sorted=True)
    for edge_type in graph.edges:
        row, colptr, perm = (one[edge_type] for one in graph_store.csc())
        one = values[edge_type]
        assert (row.data_ptr(), colptr.data_ptr(), perm) == (one["row"].data_ptr(), one["colptr"].data_ptr(), None)
        assert colptr.numel() == values[edge_type[2]]["num_nodes"] + 1
        dst = torch.repeat_interleave(torch.arange(colptr.numel() - 1), colptr.diff())
        check_edges(edge_type, edge_rows(out, store, edge_type, one, row, dst), graph, store)


@pytest.mark.filterwarnings("ignore:Using '.*' without a 'pyg-lib' installation")
@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "multi_edge", "empty_type", "temporal"])
def test_samplers_need_not_sort(name, tmp_path):
    """What PyG's neighbour sampler samples from is the same graph, sorted by us or by it."""
    (graph, store), out = shared_store(name, partitions=3, partition_by="hash"), tmp_path / "out"
    export(store, out, form="data", graph_class="hetero")
    data = HeteroData.from_dict(torch.load(out / "data.pt"))
    ours, theirs = (NeighborSampler(data, num_neighbors=[2], is_sorted=is_sorted) for is_sorted in (True, False))
    for edge_type in graph.edges:
        key = "__".join(edge_type)
        assert ours.perm[edge_type] is None
        assert torch.equal(ours.colptr_dict[key], theirs.colptr_dict[key])
        dst = torch.repeat_interleave(torch.arange(ours.colptr_dict[key].numel() - 1), ours.colptr_dict[key].diff())
        found = edge_rows(out, store, edge_type, data[edge_type], ours.row_dict[key], dst)
        check_edges(edge_type, found, graph, store)


def test_a_graph_without_types_has_attributes_of_nodes_and_edges(tmp_path):
    store, out = make_store(GRAPHS["temporal"](), tmp_path), tmp_path / "out"
    export(store, out)
    data = Data.from_dict(torch.load(out / "data.pt"))
    assert sorted(data.node_attrs()) == ["test_mask", "train_mask", "val_mask", "x", "y"]
    assert sorted(data.edge_attrs()) == ["edge_attr", "edge_id", "edge_index", "edge_time", "edge_weight"]
    assert data.num_nodes == 25
    assert data.is_sorted(sort_by_row=False)


# ---------------------------------------------------------------------------------------------- partitions


@pytest.mark.parametrize("by", ["range", "hash"])
@pytest.mark.parametrize("name", GRAPHS)
def test_local_stores_hold_the_graph(name, by, tmp_path):
    (graph, store), out = store_of(name, by), tmp_path / "out"
    export(store, out, form="parts")
    homo, num_parts = is_homo(graph), graph.options.get("partitions", 3)
    graphs = [LocalGraphStore.from_partition(str(out), part) for part in range(num_parts)]
    features = [LocalFeatureStore.from_partition(str(out), part) for part in range(num_parts)]
    assert all(one.num_partitions == num_parts and one.is_sorted for one in graphs)
    for edge_type in graph.edges:
        book, ends = ((one if homo else one[edge_type]) for one in (graphs[0].edge_pb, graphs[0].node_pb)) if homo else (
            graphs[0].edge_pb[edge_type], graphs[0].node_pb[edge_type[2]],
        )  # fmt: skip
        found = []
        for part in range(num_parts):
            found.append(_part_edges(graphs[part], features[part], None if homo else edge_type))
            _, colptr, _ = graphs[part].csc()  # by which samplers get the graph
            last = colptr if homo else colptr.get(edge_type, torch.zeros(1, dtype=torch.int64))
            assert last[-1] == found[-1]["src"].numel()
            assert (book[found[-1]["edge_id"]] == part).all()
            assert (ends[found[-1]["dst"]] == part).all()
            assert bool((found[-1]["dst"].diff() >= 0).all())
        joined = {key: torch.cat([one[key] for one in found if key in one]) for key in set().union(*found)}
        rows = edge_rows(out, store, edge_type, joined, joined["src"], joined["dst"])
        if not graph.edges[edge_type].src:
            assert rows.ids.size == 0
            continue
        check_edges(edge_type, rows, graph, store)
    for node_type, some in graph.nodes.items():
        if some.ids and some.columns:
            ids = id_map(out, store, node_type)
            values = _all_nodes(graphs[0].node_pb if homo else graphs[0].node_pb[node_type], features, homo, node_type)
            check_nodes(node_type, ids, values, graph, store)


def _part_edges(graph_store, feature_store, edge_type):
    attr = next((one for one in graph_store.get_all_edge_attrs() if one.edge_type == edge_type), None)
    if attr is None:  # the partition has no edge of the type
        return {name: torch.zeros(0, dtype=torch.int64) for name in ("src", "dst", "edge_id")}
    src, dst = graph_store.get_edge_index(attr)
    ids = graph_store.get_edge_id(edge_type=edge_type, layout="coo")
    found = {"src": src, "dst": dst, "edge_id": ids}
    group = (None, None) if edge_type is None else edge_type
    if ids.numel() == 0:
        return found
    for one in feature_store.get_all_tensor_attrs():
        if one.group_name == group and one.attr_name in EDGE_NAMES.values():
            kwargs = {"group_name": group, "attr_name": one.attr_name}
            found[one.attr_name] = feature_store.get_tensor_from_global_id(index=ids, **kwargs)
    return found


def _all_nodes(book, features, homo, node_type):
    """Look all nodes up by ID, each in the partition that owns it, as the loaders do: type-local IDs for every type."""
    values = {}
    group = None if homo else node_type
    for part, feature_store in enumerate(features):
        mine = torch.where(book == part)[0]
        if not mine.numel():
            continue
        for one in feature_store.get_all_tensor_attrs():
            if one.group_name == group:
                found = feature_store.get_tensor_from_global_id(index=mine, group_name=group, attr_name=one.attr_name)
                out = values.setdefault(one.attr_name, torch.zeros((book.numel(), *found.shape[1:]), dtype=found.dtype))
                out[mine] = found
    return values


def test_partitions_are_in_time_order(tmp_path):
    store, out = make_store(GRAPHS["temporal"](), tmp_path, partitions=2), tmp_path / "out"
    export(store, out)
    for part in range(2):
        graph = torch.load(out / f"part_{part}" / "graph.pt")
        times = LocalFeatureStore.from_partition(str(out), part).get_tensor(group_name=(None, None), attr_name="edge_time")
        order = np.lexsort((graph["edge_id"], times, graph["col"]))
        np.testing.assert_array_equal(order, np.arange(times.numel()))


def test_partitions_of_a_reordered_store_are_sorted_by_pyg(tmp_path):
    """With raw IDs, destinations do not ascend; META.json says so, and PyG sorts."""
    graph = GRAPHS["homogeneous"]()
    store, out = make_store(graph, tmp_path, partitions=2), tmp_path / "out"
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="in-degree")
    export(tmp_path / "hot", out, ids="raw")
    edge_type, found = ("paper", "cites", "paper"), []
    for part in range(2):
        graph_store = LocalGraphStore.from_partition(str(out), part)
        assert not graph_store.is_sorted
        found.append(_part_edges(graph_store, LocalFeatureStore.from_partition(str(out), part), None))
        assert bool((found[-1]["dst"].diff() >= 0).all())
    joined = {key: torch.cat([one[key] for one in found]) for key in found[0]}
    check_edges(edge_type, edge_rows(out, tmp_path / "hot", edge_type, joined, joined["src"], joined["dst"]), graph, store)


def test_edges_without_ids_are_numbered(tmp_path):
    """In a store without edge IDs: features belong to the edges by the numbers that these get."""
    graph, edge_type = GRAPHS["homogeneous"](), ("paper", "cites", "paper")
    store, out = make_store(graph, tmp_path, partitions=2, edge_ids=False), tmp_path / "out"
    export(store, out)
    found = []
    for part in range(2):
        local = LocalFeatureStore.from_partition(str(out), part)
        found.append(_part_edges(LocalGraphStore.from_partition(str(out), part), local, None))
    joined = {key: torch.cat([one[key] for one in found]) for key in found[0]}
    assert sorted(joined["edge_id"].tolist()) == list(range(200))
    rows = edge_rows(out, store, edge_type, joined, joined["src"], joined["dst"])
    columns = ["weight", "feat"]
    wanted = graph_edges(graph, edge_type).only(columns, edge_ids=False)
    assert checksum(edge_type, rows.only(columns, edge_ids=False)) == checksum(edge_type, wanted)


def test_bfloat16_features_load(tmp_path):
    graph = GRAPHS["homogeneous"]()
    store = make_store(graph, tmp_path)
    for ids in ("raw", "typed"):
        export(store, tmp_path / ids, bfloat16=True, features="feat", ids=ids)
        found = torch.load(tmp_path / ids / "data.pt")
        nodes = graph.nodes["paper"]
        wanted = torch.from_numpy(np.asarray(nodes.columns["feat"])[np.argsort(nodes.ids)]).bfloat16()
        assert torch.equal(found["x"], wanted)
        assert found["edge_attr"].dtype == torch.bfloat16
        assert found["age"].dtype == torch.float32


# ---------------------------------------------------------------------------------------------- sparse columns


def sparse_store(folder, **options):
    """Convert nodes and edges with sparse features: ``s`` [8, 12] and ``pair`` [8, 3, 4], which the last node lacks, and ``e``."""
    rng = np.random.default_rng(5)
    lines, values = [], {"s": np.zeros((8, 12), np.float32), "pair": np.zeros((8, 3, 4), np.int32), "e": np.zeros((24, 6))}
    values["s"][:, 11] = values["pair"][:7, 2, 3] = values["e"][:, 5] = 1
    for name, chance in (("s", 0.3), ("pair", 0.2), ("e", 0.4)):
        own = values[name][:7] if name == "pair" else values[name]
        own[rng.random(own.shape) < chance] = 3
    for node in range(8):
        lines.append(f"{node},-1,0,1,{listed(values['s'][node], 'float32')}")
        lines[-1] += f",{listed(values['pair'][node], 'int32')}" if node < 7 else ""
        lines += [f"{node},0,{(node + k + 1) % 8},1,{listed(values['e'][3 * node + k], 'float64')}" for k in range(3)]
    (folder / "graph.csv").write_text("".join(f"{line}\n" for line in lines))
    graphprep.convert(str(folder / "graph.csv"), str(folder / "store"), format="edgelist", **options)
    return folder / "store", values


def listed(values, dtype):
    """Write a sparse feature of an edge list: its type, how many values, their coordinates and they themselves."""
    at = np.argwhere(values)
    width = at.shape[1] if at.shape[1] > 1 else 0
    return ",".join(map(str, [dtype, f"{len(at)}/{width}", *at.reshape(-1), *values[tuple(at.T)].tolist()]))


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("options", [{}, {"layout": "csr", "partitions": 2, "partition_by": "hash"}], ids=str)
def test_sparse_columns_are_sparse_tensors(tmp_path, options, mmap):
    store, values = sparse_store(tmp_path, **options)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "pyg", form="data")
    assert not summary.dropped
    read = torch.load(tmp_path / "out/data.pt", mmap=mmap)
    loaded = graphprep.load(str(store))
    typed = loaded.ids("0")
    for data, order in ((Data.from_dict(read), slice(None)), (loaded.to_pyg(()), typed)):
        assert data["feat_0"].layout == data["edge_attr"].layout == torch.sparse_coo
        assert np.array_equal(data["feat_0"].to_dense().numpy(), values["s"][order])
        assert np.array_equal(data["feat_1"].to_dense().numpy(), values["pair"][order])
        assert data["feat_1_present"].tolist() == (np.arange(8)[order] < 7).tolist()
        assert np.array_equal(data["edge_attr"].to_dense().numpy(), values["e"][data["edge_id"].numpy()])


def test_loaders_take_sparse_features(tmp_path):
    """The only feature is ``x``: layers multiply it, and a loader in one process takes rows of it."""
    store, values = sparse_store(tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "pyg", drop_columns=["feat_1"])
    data = Data.from_dict(torch.load(tmp_path / "out/data.pt"))
    data.validate(raise_on_error=True)
    wanted = torch.from_numpy(values["s"])
    layer = torch.nn.Linear(12, 3)
    torch.testing.assert_close(layer(data.x), layer(wanted))
    nodes, rows, columns, edges = (torch.tensor(some) for some in ([5, 1], [0], [1], [4]))
    batch = filter_data(data, nodes, rows, columns, edges)
    assert torch.equal(batch.x.to_dense(), wanted[nodes])
    assert torch.equal(batch.edge_attr.to_dense(), data.edge_attr.to_dense()[edges])


def test_partitions_take_sparse_features_as_dense_ones(tmp_path):
    store, values = sparse_store(tmp_path, partitions=2)
    with pytest.raises(UsageError, match="does not support all columns:\n  node column 0 'feat_0': PyG takes numbers only"):
        graphprep.export(str(store), str(tmp_path / "out"), "pyg")
    graphprep.export(str(store), str(tmp_path / "out"), "pyg", densify=["feat_0"], drop_unsupported=True)
    features = [LocalFeatureStore.from_partition(str(tmp_path / "out"), part) for part in range(2)]
    found = _all_nodes(torch.load(tmp_path / "out/node_map.pt"), features, True, "0")
    assert np.array_equal(found["x"].numpy(), values["s"])
