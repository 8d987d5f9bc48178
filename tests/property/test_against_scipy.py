"""Random graphs: CSC and CSR against scipy.sparse, and heterogeneous graphs against the naive reference."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
from golden.golden_cases import read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep.model.options import ConvertOptions

pipeline = pytest.importorskip("graphprep.pipeline")
quick = settings(max_examples=30, deadline=None)


def convert_text(text: str, **options) -> tuple[Path, tempfile.TemporaryDirectory]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "input"
    path.write_text(text)
    pipeline.convert([str(path)], str(Path(folder.name) / "store"), ConvertOptions(**options))
    return Path(folder.name) / "store", folder


def load_layout(store: Path, layout: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The concatenation over all partitions of indptr, indices and edge IDs of the only edge type."""
    indptr, indices, edge_ids = [np.zeros(1, np.int64)], [], []
    for part in sorted(store.glob("part-*")):
        (folder,) = part.glob(f"edges/*/{layout}")
        own = np.load(folder / "indptr.npy")
        assert own[0] == 0
        indptr.append(own[1:] + indptr[-1][-1])
        indices.append(np.load(folder / "indices.npy"))
        edge_ids.append(np.load(folder / "edge_ids.npy"))
    return np.concatenate(indptr), np.concatenate(indices), np.concatenate(edge_ids)


@st.composite
def edge_lists(draw):
    """Edges over up to 40 nodes with many parallel edges, loops, and sometimes a hub; some nodes have no edge."""
    num_nodes = draw(st.integers(1, 40))
    node = st.integers(0, num_nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=120))
    hub = draw(st.none() | node)
    return num_nodes, edges if hub is None else [(src, hub) if i % 2 else (hub, src) for i, (src, _) in enumerate(edges)]


@quick
@given(graph=edge_lists(), partitions=st.integers(1, 5), block_bytes=st.sampled_from([0, 1, 50]))
def test_layouts_equal_scipy(graph, partitions, block_bytes):
    num_nodes, edges = graph
    text = "".join(f"{src} {dst}\n" for src, dst in edges)
    store, folder = convert_text(
        text,
        format="edges",
        ids="dense",
        num_nodes={"": num_nodes},
        layout="both",
        partitions=partitions,
        block_bytes=block_bytes,
    )
    with folder:
        src, dst = np.array(edges).T
        # Values are edge IDs + 1: scipy keeps duplicates apart as long as nothing asks it to sum them.
        ids = np.arange(1, len(edges) + 1)
        for layout, rows, others in (("csr", src, dst), ("csc", dst, src)):
            indptr, indices, edge_ids = load_layout(store, layout)
            assert indptr.tolist() == np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_nodes))]).tolist()
            theirs = scipy.sparse.coo_matrix((np.ones(len(edges), np.int64), (rows, others)), (num_nodes, num_nodes)).tocsr()
            ours = scipy.sparse.csr_matrix((np.ones(len(edges), np.int64), indices, indptr), (num_nodes, num_nodes))
            ours.sum_duplicates()
            assert (ours != theirs).nnz == 0
            order = np.argsort(rows, kind="stable")
            assert (edge_ids + 1).tolist() == ids[order].tolist()
            assert indices.tolist() == others[order].tolist()


def assert_equals_reference(format_name: str, text: str, **options) -> None:
    store, folder = convert_text(text, format=format_name, **options)
    with folder:
        graph = read_graph(format_name, [Path(folder.name) / "input"], options)
        expected = {path: file_bytes(value) for path, value in build_reference(graph, options).items()}
        got = read_store(store)
        assert sorted(got) == sorted(expected)
        assert [path for path in got if got[path] != expected[path]] == []


partitioning = st.fixed_dictionaries(
    {
        "partitions": st.integers(1, 4),
        "partition_by": st.sampled_from(["range", "hash", "modulo", "random"]),
        "seed": st.integers(0, 3),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "neighbor_order": st.sampled_from(["input", "id", "weight"]),
        "edge_ids": st.booleans(),
        "block_bytes": st.sampled_from([0, 1, 40]),
    }
)
raw_ids = st.sampled_from([0, 1, 2, 3, 5, 9, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
weights = st.sampled_from(["0", "1", "-2.5", "0.1", "nan", "inf", "1e-50", "3"])


@quick
@given(edges=st.lists(st.tuples(raw_ids, raw_ids, weights), min_size=1, max_size=40), options=partitioning)
def test_sparse_ids_equal_the_reference(edges, options):
    text = "".join(f"{src},{dst},{weight}\n" for src, dst, weight in edges)
    assert_equals_reference("edges", text, ids="sparse", decoder_options={"weight_col": "2"}, **options)


@st.composite
def heterogeneous(draw):
    """DeepGNN JSON: nodes of up to three types in any order; features that are missing, ragged, text or sparse."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=8, unique=True))
    dense = st.lists(st.integers(-5, 5), min_size=0, max_size=3)
    sparse = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=3).map(
        lambda pairs: {"coordinates": [c for c, _ in pairs], "values": [v for _, v in pairs]}
    )
    groups = {
        "int8_feature": dense,
        "float_feature": dense,
        "binary_feature": st.text(max_size=4),
        "sparse_uint8_feature": sparse,
    }

    def features() -> dict:
        slots = draw(
            st.lists(st.tuples(st.sampled_from(sorted(groups)), st.integers(0, 4)), max_size=3, unique_by=lambda s: s[1])
        )
        out: dict = {}
        for group, slot in slots:
            out.setdefault(group, {})[str(slot)] = draw(groups[group])
        return out

    lines = []
    for i in ids:
        edges = [
            {"src_id": i, "dst_id": dst, "edge_type": draw(st.sampled_from([0, 2, 10])), "weight": draw(st.integers(-3, 3))}
            | features()
            for dst in draw(st.lists(st.sampled_from(ids), max_size=5))
        ]
        record = {"node_id": i, "node_type": draw(st.sampled_from([0, 1, 12])), "node_weight": 1.5, "edge": edges} | features()
        if draw(st.booleans()):
            record["created_at"] = draw(st.integers(0, 9))
        lines.append(json.dumps(record, ensure_ascii=False))
    return "\n".join(lines)


@quick
@given(text=heterogeneous(), options=partitioning)
def test_heterogeneous_json_equals_the_reference(text, options):
    assert_equals_reference("json", text, **options)


@st.composite
def edgelist_texts(draw):
    """DeepGNN EdgeList: node and edge lines in any order, over at most six nodes of two types."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=6, unique=True))
    tails = st.sampled_from(
        ["", ",int8,2,1,2", ",int8,1,-7", ",float32,0,binary,1,x", ",float64,1/2,3,4,0.1", ",bool,2,0,TRUE"]
    )
    nodes = [f"{i},-1,{draw(st.integers(0, 1))},{draw(weights)}{draw(tails)}" for i in ids]
    ends = st.tuples(st.sampled_from(ids), st.integers(0, 1), st.sampled_from(ids))
    edges = [f"{src},{kind},{dst},{draw(weights)}{draw(tails)}" for src, kind, dst in draw(st.lists(ends, max_size=20))]
    return "\n".join(draw(st.permutations(nodes + edges)))


@quick
@given(text=edgelist_texts(), options=partitioning)
def test_edgelist_equals_the_reference(text, options):
    assert_equals_reference("edgelist", text, **options)
