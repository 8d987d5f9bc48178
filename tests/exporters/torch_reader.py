"""Files of torch read without it, as their format says: ZIP archives, and pickles with tensors beside them."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np


def read_naively(data, stem="archive"):
    """Read a .pt file as its format says: a pickle whose tensors are calls with storages beside it."""
    archive = zipfile.ZipFile(io.BytesIO(data))
    types = {
        "ByteStorage": "u1", "CharStorage": "i1", "ShortStorage": "i2", "IntStorage": "i4", "LongStorage": "i8",
        "HalfStorage": "f2", "FloatStorage": "f4", "DoubleStorage": "f8", "BoolStorage": "?", "BFloat16Storage": "u2",
        "ComplexFloatStorage": "c8", "ComplexDoubleStorage": "c16", "UntypedStorage": "u1",
    }  # fmt: skip

    def rebuild(storage, offset, size, stride, grad, hooks, dtype=None):
        assert (offset, grad, hooks) == (0, False, OrderedDict())
        array = storage if dtype is None else storage.view(dtype)
        values = np.lib.stride_tricks.as_strided(array, size, [step * array.itemsize for step in stride])
        assert array.size == values.size
        return values.copy()

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if module == "torch._utils":
                return rebuild
            if module.startswith("torch"):
                assert module == ("torch.storage" if name == "UntypedStorage" else "torch")
                return types.get(name, name)
            assert (module, name) == ("collections", "OrderedDict")
            return OrderedDict

        def persistent_load(self, identity):
            kind, dtype, key, place, size = identity
            assert (kind, place) == ("storage", "cpu")
            array = np.frombuffer(archive.read(f"{stem}/data/{key}"), dtype)
            assert array.size == size
            return array

    return Reader(io.BytesIO(archive.read(f"{stem}/data.pkl"))).load()


def read_chunks(data):
    """Read the tensors of pickles one after another."""

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            assert (module, name) == ("torch.storage", "_load_from_bytes")
            return read_naively

    found, stream = [], io.BytesIO(data)
    while stream.tell() < len(data):
        found.append(Reader(stream).load())
    return found
