"""DGL's binary files, written from front to back without DGL: tensors by name (``*_feat.dgl``), and a graph (``graph.dgl``).

Everything is little-endian and unaligned. Source: ``save_tensors`` and ``save_graphs`` of DGL 2.1, whose files these equal byte
for byte, except that what DGL leaves uninitialised in a header is zero here.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor
from graphprep.storage.write.outputs import FileOutput, FolderOutput

_TENSORS_MAGIC = 0xDD5A9FBE3FA2443F
_GRAPHS_MAGIC = 0xDD2E4FF046B4A13F
_ARRAY_MAGIC = 0xDD5E40F096B4A13F
_HETEROGRAPH_MAGIC = 0xDD589FBE35224ABF
_UNIT_GRAPH_MAGIC = 0xDD2E60F0F6B4A127
_META_GRAPH_MAGIC = 0xDD3C5FFE20046ABF
_COO_MAGIC = 0xDD61FFD305DFF127
_CSR_MAGIC = 0xDD6CD31205DFF127

_GRAPHS_VERSION = 2
_HETEROGRAPHS = 2  # the class of what is saved
_HEADER_BYTES = 4096
_CPU = 1
_SET = 1 << 32  # beside a set of formats: it is given
_ALL_FORMATS = 7
_KINDS = {"i": 0, "u": 1, "b": 1, "f": 2}

GraphFormat = Literal["coo", "csr", "csc"]
_FORMAT_BITS: dict[GraphFormat, int] = {"coo": 1, "csr": 2, "csc": 4}  # in the order in which a file has them
GRAPH_FORMATS: tuple[GraphFormat, ...] = ("coo", "csr", "csc")


Parts = Iterator[bytes | TensorPieces]  # what a file consists of, in order


@dataclass(frozen=True)
class CooMatrix:
    """The edges of a graph in the order of their IDs: ``rows`` are sources, ``cols`` destinations, int32 or int64."""

    num_nodes: int
    rows: TensorPieces
    cols: TensorPieces


@dataclass(frozen=True)
class CompressedMatrix:
    """The edges of a graph by source (CSR) or by destination (CSC).

    ``edge_ids`` tells each entry's edge; None: entry i is edge i. All arrays are int32, or all int64.
    """

    num_nodes: int
    indptr: TensorPieces
    indices: TensorPieces
    edge_ids: TensorPieces | None = None


Matrix = CooMatrix | CompressedMatrix


class _File(ABC):
    """A file that consists of parts, whose sizes are known beforehand."""

    @property
    def num_bytes(self) -> int:
        """Return the size of the file."""
        return sum(part.num_bytes if isinstance(part, TensorPieces) else len(part) for part in self._parts())

    def write(self, out: FolderOutput, path: str) -> None:
        """Write the file; every array's pieces are asked for once."""
        with out.open(path, self.num_bytes) as file:
            for part in self._parts():
                if isinstance(part, TensorPieces):
                    _write_values(file, part)
                else:
                    file.write(part)

    @abstractmethod
    def _parts(self) -> Parts:
        """Yield what the file consists of."""


@dataclass(frozen=True)
class GraphFile(_File):
    """A file of one homogeneous graph, as ``dgl.load_graphs`` reads it.

    ``matrices``: the formats that are stored, one at least. ``node_data`` and ``edge_data``: one row a node or an edge, in the
    order of their IDs.
    """

    num_nodes: int
    matrices: Mapping[GraphFormat, Matrix]
    node_data: Mapping[str, TensorPieces]
    edge_data: Mapping[str, TensorPieces]

    def _parts(self) -> Parts:
        head = _u64(_GRAPHS_MAGIC, _GRAPHS_VERSION, _HETEROGRAPHS, 1)
        start = _HEADER_BYTES + 16  # of the graph, behind where that is told
        yield head + bytes(_HEADER_BYTES - len(head)) + _u64(start, 0)
        yield _u64(_HETEROGRAPH_MAGIC)
        yield from _meta_graph()
        yield _u64(1)
        yield from self._relation()
        yield _u64(1)
        yield from _named_arrays(self.node_data)
        yield _u64(1)
        yield from _named_arrays(self.edge_data)
        yield _u64(1) + _text("_N") + _u64(1) + _text("_E")
        yield _u64(16, 1, start, 16)  # where the graphs begin, and how long this index is

    def _relation(self) -> Parts:
        saved = sum(_FORMAT_BITS[name] for name in self.matrices)
        yield _u64(_UNIT_GRAPH_MAGIC) + _i64(saved | _SET, _ALL_FORMATS | _SET)
        for name in GRAPH_FORMATS:
            if name in self.matrices:
                yield from _meta_graph()
                yield from _matrix(self.matrices[name])
        yield _u64(1) + _i64(self.num_nodes)


@dataclass(frozen=True)
class TensorFile(_File):
    """A file of named tensors, as ``dgl.data.utils.load_tensors`` reads it."""

    tensors: Mapping[str, TensorPieces]

    def _parts(self) -> Parts:
        yield _u64(_TENSORS_MAGIC, len(self.tensors))
        yield from _named_arrays(self.tensors)


# ------------------------------------------------------------------------------------------------------------- parts


def _meta_graph() -> Parts:
    """Yield the graph of one node type and one edge type; without a format, as those of a relation's matrices are."""
    yield _u64(_META_GRAPH_MAGIC)
    zero = np.zeros(1, np.int64)
    yield from _compressed(CompressedMatrix(1, tensor(np.arange(2)), tensor(zero), tensor(zero)))


def _matrix(matrix: Matrix) -> Parts:
    return _compressed(matrix) if isinstance(matrix, CompressedMatrix) else _coo(matrix)


def _coo(matrix: CooMatrix) -> Parts:
    yield _u64(_COO_MAGIC) + _i64(matrix.num_nodes, matrix.num_nodes)
    yield from _array(matrix.rows)
    yield from _array(matrix.cols)
    yield from _array(_nothing(matrix.rows.dtype))
    yield bytes(2)  # neither rows nor columns are said to ascend


def _compressed(matrix: CompressedMatrix) -> Parts:
    yield _u64(_CSR_MAGIC) + _i64(matrix.num_nodes, matrix.num_nodes)
    yield from _array(matrix.indptr)
    yield from _array(matrix.indices)
    yield from _array(matrix.edge_ids or _nothing(matrix.indices.dtype))
    yield bytes(1)  # the neighbours of a node are not said to ascend


def _nothing(dtype: str) -> TensorPieces:
    """Return the array that stands for none."""
    return tensor(np.zeros(0, dtype))


def _named_arrays(arrays: Mapping[str, TensorPieces]) -> Parts:
    yield _u64(len(arrays))
    for name, array in arrays.items():
        yield _text(name)
        yield from _array(array)


def _array(array: TensorPieces) -> Parts:
    dtype = array.file_dtype
    kind = struct.pack("<iiiBBH", _CPU, 0, len(array.shape), _KINDS[dtype.kind], dtype.itemsize * 8, 1)
    yield _u64(_ARRAY_MAGIC, 0) + kind + _i64(*array.shape, array.num_bytes)
    yield array


def _text(text: str) -> bytes:
    data = text.encode()
    return _u64(len(data)) + data


def _u64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}Q", *values)


def _i64(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}q", *values)


def _write_values(file: FileOutput, array: TensorPieces) -> None:
    written = 0
    for data in array.data():
        file.write(data)
        written += data.nbytes
    if written != array.num_bytes:
        raise RuntimeError(f"{written} bytes written, {array.num_bytes} expected for {array.dtype} {array.shape}")
