"""CSC and CSR of random graphs against scipy.sparse."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

quick = settings(max_examples=20, deadline=None)


def convert_text(text: str, **options) -> tuple[Path, tempfile.TemporaryDirectory]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "input"
    path.write_text(text)
    pipeline.convert([str(path)], str(Path(folder.name) / "store"), ConvertOptions(**options))
    return Path(folder.name) / "store", folder


def load_layout(store: Path, layout: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The concatenation over all partitions of indptr, indices and edge IDs of the only edge type."""
    indptr, indices, edge_ids, num_edges = [np.zeros(1, np.int64)], [], [], 0
    for part in sorted(store.glob("part-*")):
        (folder,) = part.glob(f"edges/*/{layout}")
        own = np.load(folder / "indptr.npy")
        assert own[0] == 0
        indptr.append(own[1:] + num_edges)
        num_edges += own[-1]
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
        for layout, rows, others in (("csr", src, dst), ("csc", dst, src)):
            indptr, indices, edge_ids = load_layout(store, layout)
            assert indptr.tolist() == np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_nodes))]).tolist()
            ones, shape = np.ones(len(edges), np.int64), (num_nodes, num_nodes)
            theirs = scipy.sparse.coo_matrix((ones, (rows, others)), shape).tocsr()
            assert (scipy.sparse.csr_matrix((ones, indices, indptr), shape, copy=True) != theirs).nnz == 0
            order = np.argsort(rows, kind="stable")
            assert edge_ids.tolist() == order.tolist()
            assert indices.tolist() == others[order].tolist()
