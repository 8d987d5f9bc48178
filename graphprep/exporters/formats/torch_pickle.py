"""Values as pickles that torch reads: plain Python, tensors, and objects of named classes. Protocol 2, nothing memoized."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

BFLOAT16 = "bfloat16"  # NumPy has no such dtype: its bits travel as uint16

# What torch calls the storage of a dtype. Of those that came later (None) it keeps bytes, and the dtype beside.
_STORAGES: dict[str, str | None] = {
    "bool": "BoolStorage",
    "uint8": "ByteStorage",
    "int8": "CharStorage",
    "int16": "ShortStorage",
    "int32": "IntStorage",
    "int64": "LongStorage",
    "float16": "HalfStorage",
    BFLOAT16: "BFloat16Storage",
    "float32": "FloatStorage",
    "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
    "uint16": None,
    "uint32": None,
    "uint64": None,
}


@dataclass(frozen=True, eq=False)
class TensorPieces:
    """A tensor whose values come one after another.

    ``dtype`` is a name of NumPy's that torch has, or ``bfloat16``. ``pieces`` is called once when the file is written and
    yields arrays of any shape whose values, put one behind the other in C order, are the tensor's. Those of another dtype are
    cast; of a bfloat16 tensor, uint16 are its bits and anything else is rounded by ``to_bfloat16``. In a value that holds the
    same object twice, both tensors share their memory.
    """

    dtype: str
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray[Any]]]

    @property
    def file_dtype(self) -> np.dtype[Any]:
        """Return the dtype of the bytes in the file, little-endian."""
        return np.dtype("uint16" if self.dtype == BFLOAT16 else self.dtype).newbyteorder("<")

    @property
    def size(self) -> int:
        """Return the number of values."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Return the size of the values in bytes."""
        return self.size * self.file_dtype.itemsize

    def data(self) -> Iterator[memoryview]:
        """Yield the bytes of the pieces that have values, as the file has them."""
        for piece in self.pieces():
            if piece.size:
                rounded = to_bfloat16(piece) if self.dtype == BFLOAT16 and piece.dtype != np.uint16 else piece
                yield np.ascontiguousarray(rounded, self.file_dtype).reshape(-1).view(np.uint8).data


def tensor(values: Any, dtype: DTypeLike | None = None) -> TensorPieces:
    """Return a tensor of an array (or of what ``numpy.asarray`` takes) that is in memory, or mapped."""
    array = np.asarray(values, dtype)
    return TensorPieces(array.dtype.name, array.shape, lambda: (array,))


def to_bfloat16(values: NDArray[Any]) -> NDArray[np.uint16]:
    """Round numbers to bfloat16, to nearest, ties to even: the upper halves of float32, as uint16 of the same shape.

    NaN stays NaN. Source: torch, ``Tensor.bfloat16``.
    """
    single = np.asarray(values, np.float32)
    bits = single.view(np.uint32)
    upper = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(single), 0x7FC0, upper).astype(np.uint16)


@dataclass(frozen=True)
class Global:
    """A function or class by its name."""

    module: str
    name: str


@dataclass(frozen=True)
class Call:
    """What ``function(*args)`` returns; with ``state``, after ``__setstate__(state)`` or, of a dict, ``__dict__.update``."""

    function: Global
    args: tuple[Any, ...] = ()
    state: Any = None


@dataclass(frozen=True)
class Instance:
    """What ``cls.__new__(cls, *args)`` returns, ``state`` as in ``Call``. Its ``__init__`` is not called."""

    cls: Global
    args: tuple[Any, ...] = ()
    state: Any = None


def script_object(class_name: str, state: Any) -> Instance:
    """Return an object of a class that is registered with torch (``__torch__.torch.classes.<library>.<name>``).

    ``state`` is what its own ``__getstate__`` returns.
    """
    return Instance(Global("torch", "ScriptObject"), (), (state, class_name))


class Pickler:
    """Turns values into opcodes; ``tensors`` are those found, in the order of their storages' numbers.

    Takes None, bool, int, float, str, list, tuple, mappings, NumPy scalars, ``TensorPieces``, ``Global``, ``Call`` and
    ``Instance``; raises TypeError for anything else.
    """

    def __init__(self) -> None:
        self.tensors: list[TensorPieces] = []
        self._keys: dict[int, int] = {}

    def dump(self, value: Any) -> bytes:
        """Return the pickle of a value."""
        return b"\x80\x02" + self._one(value) + b"."

    def _one(self, value: Any) -> bytes:
        if isinstance(value, np.generic):
            value = value.item()
        return _plain(value) or self._nested(value) or self._object(value)

    def _nested(self, value: Any) -> bytes:
        match value:
            case list():
                return b"]" + (b"(" + self._all(value) + b"e" if value else b"")
            case tuple():
                return self._tuple(value)
            case Mapping():
                items = (item for pair in value.items() for item in pair)
                return b"}" + (b"(" + self._all(items) + b"u" if value else b"")
            case _:
                return b""

    def _object(self, value: Any) -> bytes:
        match value:
            case TensorPieces():
                return self._one(self._rebuilt(value))
            case Call(function, args, state):
                return self._one(function) + self._tuple(args) + b"R" + self._state(state)
            case Instance(cls, args, state):
                return self._one(cls) + self._tuple(args) + b"\x81" + self._state(state)
            case _Storage(identity):
                return self._tuple(identity) + b"Q"
            case _:
                raise TypeError(f"cannot pickle {type(value).__name__} for torch")

    def _all(self, values: Iterable[Any]) -> bytes:
        return b"".join(self._one(value) for value in values)

    def _tuple(self, values: tuple[Any, ...]) -> bytes:
        inner = self._all(values)
        if len(values) > 3:
            return b"(" + inner + b"t"
        return inner + (b")", b"\x85", b"\x86", b"\x87")[len(values)]

    def _state(self, state: Any) -> bytes:
        return b"" if state is None else self._one(state) + b"b"

    def _rebuilt(self, value: TensorPieces) -> Call:
        """Say how torch makes the tensor of its storage."""
        key = self._keys.setdefault(id(value), len(self.tensors))
        if key == len(self.tensors):
            self.tensors.append(value)
        if value.dtype not in _STORAGES:
            raise TypeError(f"torch has no tensors of {value.dtype}")
        name = _STORAGES[value.dtype]
        storage = Global("torch", name) if name else Global("torch.storage", "UntypedStorage")
        identity = ("storage", storage, str(key), "cpu", value.size if name else value.num_bytes)
        hooks = Call(Global("collections", "OrderedDict"))
        layout = (_Storage(identity), 0, value.shape, _strides(value.shape), False, hooks)
        if name:
            return Call(Global("torch._utils", "_rebuild_tensor_v2"), layout)
        return Call(Global("torch._utils", "_rebuild_tensor_v3"), (*layout, Global("torch", value.dtype)))


@dataclass(frozen=True)
class _Storage:
    """Bytes that stand beside the pickle."""

    identity: tuple[Any, ...]


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return torch's strides of a tensor in C order, in values; of a tensor without values they count as if sizes were 1."""
    return tuple(math.prod(max(size, 1) for size in shape[axis + 1 :]) for axis in range(len(shape)))


def _plain(value: Any) -> bytes:
    """Return the opcodes of a value without others inside, none of another value."""
    match value:
        case None | bool():
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        case int():
            return _int(value)
        case float():
            return b"G" + struct.pack(">d", value)
        case str():
            data = value.encode("utf-8", "surrogatepass")
            return b"X" + struct.pack("<I", len(data)) + data
        case Global(module, name):
            return f"c{module}\n{name}\n".encode()
        case _:
            return b""


def _int(value: int) -> bytes:
    if 0 <= value <= 0xFF:
        return b"K" + struct.pack("<B", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    num_bytes = value.bit_length() // 8 + 1
    return b"\x8a" + struct.pack("<B", num_bytes) + value.to_bytes(num_bytes, "little", signed=True)
