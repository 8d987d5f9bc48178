"""The Python files of graphlearn_torch on any machine: small stand-ins for its compiled module and for torch_sparse.

``load_glt()`` returns the package. Its compiled module needs the CUDA build of one torch version, and torch_sparse is to be
compiled; nothing of either is needed to load partitions, but for a sort and a graph that holds what it is given.
"""

from __future__ import annotations

import functools
import sys
import types
from unittest import mock

import pytest


@functools.cache
def load_glt():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    # Where others look whether these are there, a stand-in would mislead them: PyG looks before.
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    for name in ("loader", "distributed", "sampler", "nn.conv"):
        __import__(f"torch_geometric.{name}")
    sys.modules.setdefault("torch_sparse", _torch_sparse(torch))
    sys.modules.setdefault("graphlearn_torch.py_graphlearn_torch", _compiled())
    with mock.patch.object(torch, "device", _device(torch.device)):
        return pytest.importorskip("graphlearn_torch", reason="graphlearn-torch is not installed")


def _device(real):
    """Stand in for torch.device where the package is imported: it says ``torch.device(0)``, which needs an accelerator."""

    class Device:
        def __new__(cls, *given):
            return real(*(("cpu",) if given == (0,) else given))

    return Device


def _torch_sparse(torch):
    module = types.ModuleType("torch_sparse")

    class SparseTensor:
        """Sorted by (row, column), as the real one is; ties in the order given."""

        def __init__(self, row, col, value, sparse_sizes):
            order = torch.argsort(row * sparse_sizes[1] + col, stable=True)
            counts = torch.bincount(row, minlength=sparse_sizes[0])
            rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
            found = {"rowptr": rowptr, "col": col[order], "value": value[order]}
            self.storage = types.SimpleNamespace(**{key: (lambda one=one: one) for key, one in found.items()})

    module.SparseTensor = SparseTensor
    return module


def _compiled():
    module = types.ModuleType("graphlearn_torch.py_graphlearn_torch")

    class Graph:
        def init_cpu_from_csr(self, indptr, indices, edge_ids, edge_weights):
            assert indptr.dtype == indices.dtype
            assert indices.numel() == edge_ids.numel()
            self.arrays = indptr, indices, edge_ids, edge_weights

    module.Graph = Graph
    module.QueueTimeoutError = type("QueueTimeoutError", (Exception,), {})
    module.__getattr__ = _any_class
    return module


def _any_class(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
