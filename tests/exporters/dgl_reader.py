"""DGL's binary files, read by a naive parser that was written from their layout alone."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

_KINDS = {0: "i", 1: "u", 2: "f"}


@dataclass
class ReadGraph:
    """What a ``graph.dgl`` holds; ``matrices``: coo as (rows, cols, data), csr and csc as (indptr, indices, data)."""

    num_nodes: int
    matrices: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
    node_data: dict[str, np.ndarray] = field(default_factory=dict)
    edge_data: dict[str, np.ndarray] = field(default_factory=dict)


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, form: str) -> Any:
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values if len(values) > 1 else values[0]

    def expect(self, form: str, wanted: Any) -> None:
        found = self.take(form)
        assert found == wanted, f"byte {self.at}: {found!r}, not {wanted!r}"

    def text(self) -> str:
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size : self.at].decode()

    def array(self) -> np.ndarray:
        self.expect("QQ", (0xDD5E40F096B4A13F, 0))
        self.expect("ii", (1, 0))
        ndim, kind, bits, lanes = self.take("iBBH")
        shape = tuple(self.take("q") for _ in range(ndim))
        dtype = np.dtype(f"<{_KINDS[kind]}{bits // 8}")
        size = self.take("q")
        assert (lanes, size) == (1, int(np.prod(shape)) * dtype.itemsize)
        self.at += size
        return np.frombuffer(self.data[self.at - size : self.at], dtype).reshape(shape)

    def arrays(self) -> dict[str, np.ndarray]:
        return {self.text(): self.array() for _ in range(self.take("Q"))}

    def meta_graph(self) -> None:
        self.expect("Q", 0xDD3C5FFE20046ABF)
        indptr, indices, data = self.compressed(1)
        assert (indptr.tolist(), indices.tolist(), data.tolist()) == ([0, 1], [0], [0])

    def compressed(self, num_nodes: int | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.expect("Q", 0xDD6CD31205DFF127)
        cols, rows = self.take("qq")
        assert cols == rows == (cols if num_nodes is None else num_nodes)
        indptr, indices, data = self.array(), self.array(), self.array()
        neighbors_ascend = self.take("B")  # DGL searches them then
        assert neighbors_ascend <= all(np.all(np.diff(indices[start:stop]) >= 0) for start, stop in pairwise(indptr.tolist()))
        return indptr, indices, data

    def coo(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.expect("Q", 0xDD61FFD305DFF127)
        cols, rows = self.take("qq")
        assert cols == rows
        rows, cols, data = self.array(), self.array(), self.array()
        rows_ascend, cols_ascend = self.take("BB")  # the latter within rows
        assert rows_ascend <= np.all(np.diff(rows) >= 0)
        assert cols_ascend <= np.all(np.diff(np.lexsort((cols, rows))) == 1)
        return rows, cols, data


def read_tensors(data: bytes) -> dict[str, np.ndarray]:
    """Read a file of tensors, to its last byte."""
    file = _Bytes(data)
    file.expect("Q", 0xDD5A9FBE3FA2443F)
    count = file.take("Q")
    tensors = file.arrays()
    assert (len(tensors), file.at) == (count, len(data))
    return tensors


def read_graph(data: bytes) -> ReadGraph:
    """Read a file of one graph, to its last byte."""
    file = _Bytes(data)
    file.expect("QQQQ", (0xDD2E4FF046B4A13F, 2, 2, 1))
    assert not any(data[file.at : 4096])
    file.at = 4096
    file.expect("QQ", (4112, 0))
    file.expect("Q", 0xDD589FBE35224ABF)
    file.meta_graph()
    file.expect("Q", 1)
    file.expect("Q", 0xDD2E60F0F6B4A127)
    saved = file.take("q") - (1 << 32)
    file.expect("q", 7 | 1 << 32)
    matrices = {}
    for bit, name in ((1, "coo"), (2, "csr"), (4, "csc")):
        if saved & bit:
            file.meta_graph()
            matrices[name] = file.coo() if name == "coo" else file.compressed()
    file.expect("Q", 1)
    graph = ReadGraph(file.take("q"), matrices)
    file.expect("Q", 1)
    graph.node_data = file.arrays()
    file.expect("Q", 1)
    graph.edge_data = file.arrays()
    for name in ("_N", "_E"):
        file.expect("Q", 1)
        assert file.text() == name
    file.expect("QQQQ", (16, 1, 4112, 16))
    assert file.at == len(data)
    return graph
