"""GraphBolt's graphs as NumPy arrays: a torch file, unpickled with classes that stand in for torch's and DGL's."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

_DTYPES = {
    "ByteStorage": np.uint8, "CharStorage": np.int8, "ShortStorage": np.int16, "IntStorage": np.int32, "LongStorage": np.int64,
    "HalfStorage": np.float16, "FloatStorage": np.float32, "DoubleStorage": np.float64,
}  # fmt: skip


class FusedCSCSamplingGraph:
    """DGL's class: its only attribute is the object of its library."""

    _c_csc_graph: ScriptObject


class ScriptObject:
    """An object of a library of torch: the state that its own ``__setstate__`` would get, and the name of its class."""

    def __setstate__(self, state: tuple[Any, str]) -> None:
        self.state, self.class_name = state


def read_fused(path: Path) -> dict[str, Any]:
    """Return the state of a graph, tensors as arrays."""
    with zipfile.ZipFile(path) as archive:
        found = _Unpickler(archive).load()
    assert isinstance(found, FusedCSCSamplingGraph)
    assert set(vars(found)) == {"_c_csc_graph"}
    graph = found._c_csc_graph
    assert graph.class_name == "__torch__.torch.classes.graphbolt.FusedCSCSamplingGraph"
    return graph.state


class _Unpickler(pickle.Unpickler):
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive, self.stem = archive, archive.namelist()[0].partition("/")[0]
        super().__init__(io.BytesIO(archive.read(f"{self.stem}/data.pkl")))

    def find_class(self, module: str, name: str) -> Any:
        known = {
            ("dgl.graphbolt.impl.fused_csc_sampling_graph", "FusedCSCSamplingGraph"): FusedCSCSamplingGraph,
            ("torch", "ScriptObject"): ScriptObject,
            ("torch._utils", "_rebuild_tensor_v2"): _rebuild,
            ("collections", "OrderedDict"): OrderedDict,
        }
        return known.get((module, name)) or (name if module == "torch" else None)

    def persistent_load(self, identity: tuple[Any, ...]) -> np.ndarray:
        kind, storage, key, place, size = identity
        assert (kind, place) == ("storage", "cpu")
        values = np.frombuffer(self.archive.read(f"{self.stem}/data/{key}"), _DTYPES[storage])
        assert values.size == size
        return values


def _rebuild(values: np.ndarray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...], grad: bool, hooks: Any):
    assert (offset, grad, hooks) == (0, False, OrderedDict())
    return values.reshape(shape)
