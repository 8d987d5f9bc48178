"""Arrays that lie on a device, passed on without a copy as DLPack has it. Source: dlpack.h, version 0.8."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphprep.model.errors import UsageError

CUDA = 2  # kDLCUDA
_KINDS = {"i": 0, "u": 1, "f": 2}  # kDLInt, kDLUInt, kDLFloat
_NAME, _USED = b"dltensor", b"used_dltensor"


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.argtypes = [ctypes.py_object, ctypes.c_char_p]

_CapsuleEnd = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_raw_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_raw_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


@dataclass(frozen=True)
class Lent:
    """Integers in one dimension that somebody else's memory holds, until ``release`` is called."""

    address: int
    size: int
    dtype: np.dtype[Any]
    device: tuple[int, int]
    release: Callable[[], None]


def take(capsule: object) -> Lent:
    """Take what a capsule holds; nobody else can then.

    Raises UsageError for what is no array of integers in one dimension without gaps.
    """
    managed = ctypes.cast(_pointer_of(capsule, _NAME), ctypes.POINTER(_Managed))
    tensor = managed.contents.tensor
    kind = next((kind for kind, code in _KINDS.items() if code == tensor.code and kind != "f"), None)
    has_gaps = tensor.ndim == 1 and bool(tensor.strides) and tensor.shape[0] > 1 and tensor.strides[0] != 1
    if kind is None or tensor.lanes != 1 or tensor.ndim != 1 or has_gaps:
        raise UsageError("expected integers in one dimension, one beside the other", fix="pass a contiguous array of int64")
    _rename(capsule, _USED)

    def release() -> None:
        if managed.contents.deleter:
            managed.contents.deleter(managed)

    return Lent(
        (tensor.data or 0) + tensor.byte_offset,
        tensor.shape[0],
        np.dtype(f"{kind}{tensor.bits // 8}"),
        (tensor.device_type, tensor.device_id),
        release,
    )


_given: dict[int, tuple[object, ...]] = {}  # what capsules need to live, by the address of what they hold


def give(owner: object, address: int, size: int, dtype: np.dtype[Any], device: tuple[int, int]) -> object:
    """Return a capsule of integers that lie at an address; ``owner`` lives as long as somebody uses them."""
    shape = (ctypes.c_int64 * 1)(size)
    tensor = _Tensor(address, *device, 1, _KINDS[dtype.kind], dtype.itemsize * 8, 1, shape, None, 0)
    managed = _Managed(tensor, None, _on_delete)
    key = ctypes.addressof(managed)
    _given[key] = (owner, shape, managed)
    return _new_capsule(key, _NAME, ctypes.cast(_on_end, ctypes.c_void_p))


def _delete(managed: Any) -> None:
    _given.pop(ctypes.addressof(managed.contents), None)


def _end(capsule: int) -> None:
    """Free what a capsule holds that nobody took."""
    if _raw_is_valid(capsule, _NAME):
        _given.pop(_raw_pointer(capsule, _NAME), None)


_on_delete, _on_end = _Deleter(_delete), _CapsuleEnd(_end)  # C calls these: they live as long as the module
