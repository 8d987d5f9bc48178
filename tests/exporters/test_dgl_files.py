"""DGL's binary files against a parser that was written from the layout; tests/clients has DGL's own."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from exporters.dgl_reader import read_graph, read_tensors

from graphprep.exporters.formats.dgl_files import CompressedMatrix, CooMatrix, GraphFile, TensorFile
from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor


class _Folder:
    """A file in memory, which must have the size that it says beforehand."""

    def __init__(self):
        self.data = b""

    @contextlib.contextmanager
    def open(self, path, num_bytes):
        buffer = io.BytesIO()
        yield buffer
        self.data = buffer.getvalue()
        assert (path, num_bytes) == ("file.dgl", len(self.data))


def _written(file):
    folder = _Folder()
    file.write(folder, "file.dgl")
    return folder.data


def _random_graph(num_nodes, num_edges, dtype):
    rng = np.random.default_rng(0)
    src, dst = (rng.integers(0, max(1, num_nodes), num_edges).astype(dtype) for _ in range(2))
    matrices = {"coo": CooMatrix(num_nodes, tensor(src), tensor(dst))}
    for name, rows, others in (("csr", src, dst), ("csc", dst, src)):
        order = np.argsort(rows, kind="stable")
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_nodes))]).astype(dtype)
        matrices[name] = CompressedMatrix(num_nodes, tensor(indptr), tensor(others[order]), tensor(order.astype(dtype)))
    return src, dst, matrices


@pytest.mark.parametrize("formats", ["coo", "csr", "csc", "coo csc", "coo csr csc"])
@pytest.mark.parametrize(
    ("num_nodes", "num_edges", "dtype"), [(7, 30, "int64"), (7, 30, "int32"), (3, 0, "int64"), (0, 0, "int64")]
)
def test_graphs_come_back(formats, num_nodes, num_edges, dtype):
    src, dst, matrices = _random_graph(num_nodes, num_edges, dtype)
    node_data = {"_ID": np.arange(num_nodes), "x": np.ones((num_nodes, 2, 3), np.float16)}
    edge_data = {"_TYPE": np.zeros(num_edges, np.int32), "inner_edge": np.ones(num_edges, np.uint8)}
    chosen = {name: matrices[name] for name in reversed(formats.split())}
    file = GraphFile(
        num_nodes, chosen, *({name: tensor(some) for name, some in data.items()} for data in (node_data, edge_data))
    )
    found = read_graph(_written(file))
    assert found.num_nodes == num_nodes
    assert set(found.matrices) == set(chosen)
    for name, (first, second, data) in found.matrices.items():
        assert first.dtype == second.dtype == data.dtype == dtype
        ends = [first, second]
        if name != "coo":
            ends = [np.repeat(np.arange(num_nodes), np.diff(first)), second]
            ends = [some[np.argsort(data)] for some in (ends if name == "csr" else ends[::-1])]
        assert [some.tolist() for some in ends] == [src.tolist(), dst.tolist()]
    for wanted, data in ((node_data, found.node_data), (edge_data, found.edge_data)):
        assert list(data) == list(wanted)
        assert all(data[name].dtype == some.dtype and np.array_equal(data[name], some) for name, some in wanted.items())


def test_tensors_come_back():
    rng = np.random.default_rng(1)
    wanted = {
        name: (rng.random((5, 3)) * 100).astype(name) for name in ("float16", "float32", "float64", "int8", "uint8", "int64")
    }
    wanted |= {"paper/名": np.arange(4), "none": np.zeros((0, 4), np.float32), "empty": np.zeros((3, 0), np.int16)}
    found = read_tensors(_written(TensorFile({name: tensor(some) for name, some in wanted.items()})))
    assert list(found) == list(wanted)
    assert all(found[name].dtype == some.dtype and np.array_equal(found[name], some) for name, some in wanted.items())
    assert read_tensors(_written(TensorFile({}))) == {}


def test_bools_are_stored_as_bytes():
    found = read_tensors(_written(TensorFile({"mask": tensor(np.array([True, False, True]))})))
    assert (found["mask"].dtype, found["mask"].tolist()) == (np.uint8, [1, 0, 1])


def test_pieces_are_written_one_after_another():
    pieces = TensorPieces("float32", (5, 2), lambda: (np.full((size, 2), size) for size in (2, 0, 3)))
    assert read_tensors(_written(TensorFile({"x": pieces})))["x"].tolist() == [[2, 2]] * 2 + [[3, 3]] * 3


def test_pieces_that_do_not_add_up_are_refused():
    with pytest.raises(RuntimeError, match="8 bytes written, 16 expected"):
        _written(TensorFile({"x": TensorPieces("int64", (2,), lambda: (np.zeros(1, np.int64),))}))
