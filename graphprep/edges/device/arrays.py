"""Arrays that lie on a device: taken from whoever made them and handed on, without a copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.device import dlpack
from graphprep.model.errors import UsageError

SIGNED = ("int32", "int64")
INTEGERS = (*SIGNED, "uint32", "uint64")


class DeviceArray:
    """Numbers on a device, in one dimension. PyTorch, CuPy, Numba and JAX take it as it lies; ``copy_to_host`` copies it.

    It has ``__cuda_array_interface__`` (version 3) and ``__dlpack__``; what was asked of the device is done.
    """

    def __init__(self, held: Any, index: int) -> None:
        """``held`` is an array of Numba's on device ``index``."""
        self.held = held
        self.dtype: np.dtype[Any] = held.dtype
        self.shape: tuple[int, ...] = held.shape
        self.size: int = held.size
        self.ndim = 1
        self._index = index

    def __len__(self) -> int:
        """Return how many there are."""
        return self.size

    def __repr__(self) -> str:
        """Say what and where it is."""
        return f"DeviceArray({self.size:,} {self.dtype.name} on cuda:{self._index})"

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return where it lies, as CUDA's array interface has it."""
        return {**self.held.__cuda_array_interface__, "stream": None}  # of its stream there is nothing left to wait for

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return on which device it lies, as DLPack has it."""
        return dlpack.CUDA, self._index

    def __dlpack__(self, **given: Any) -> object:
        """Return a capsule for ``from_dlpack``; nothing is left to wait for."""
        address = self.__cuda_array_interface__["data"][0]
        return dlpack.give(self.held, address, self.size, self.dtype, self.__dlpack_device__())

    def copy_to_host(self) -> NDArray[Any]:
        """Return a copy in the host's memory."""
        copy: NDArray[Any] = self.held.copy_to_host()
        return copy

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        """Refuse to be copied unasked."""
        raise TypeError(f"{self!r} is not in the host's memory: copy_to_host() copies it")


class _Lent:
    """What somebody lends by DLPack, under CUDA's array interface; given back when nobody uses it any more."""

    def __init__(self, lent: dlpack.Lent) -> None:
        self._release = lent.release
        self.__cuda_array_interface__ = {
            "shape": (lent.size,),
            "typestr": lent.dtype.str,
            "data": (lent.address, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self._release()


def lies_on_device(value: object) -> bool:
    """Return whether an array lies on a CUDA device; nothing of CUDA is imported to find out."""
    if isinstance(value, np.ndarray | list | tuple):
        return False
    if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__cuda_ndarray__") or isinstance(value, DeviceArray):
        return True
    where = getattr(value, "__dlpack_device__", None)
    return where is not None and where()[0] == dlpack.CUDA


def device_of(arrays: Sequence[object], device: str | None) -> int | None:
    """Return the number of the device on which the arrays of a call lie, None where that is the host.

    Raises UsageError where some lie elsewhere than others, or than ``device`` says.
    """
    given = [one for one in arrays if one is not None]
    lying = [one for one in given if lies_on_device(one)]
    if not lying:
        return None
    numbers = {number for one in lying if (number := _number_of(one)) is not None}
    said = device if device is not None and device.startswith("cuda:") else "cuda:0"  # of arrays that hold nothing
    names = [f"cuda:{number}" for number in sorted(numbers)] or [said]
    if len(lying) < len(given) or len(names) > 1:
        raise UsageError(f"arrays lie on {' and '.join(names)}{' and the host' * (len(lying) < len(given))}", fix="move them")
    if device is not None and device not in (names[0], "cuda" * (names[0] == "cuda:0")):
        raise UsageError(f"the arrays lie on {names[0]}", place=f'device="{device}"', fix="leave device out, or move them")
    return int(names[0].removeprefix("cuda:"))


def _number_of(array: Any) -> int | None:
    """Return the number of the device on which an array lies, None of one that holds nothing and does not say.

    Raises UsageError where neither the array nor the driver knows.
    """
    where = getattr(array, "__dlpack_device__", None)
    if where is not None:
        return int(where()[1])
    address = array.__cuda_array_interface__["data"][0]
    if not address:
        return None
    from graphprep.kernels.cuda.driver import device_at

    number = device_at(address)
    if number is None:
        fix = "pass arrays that have __dlpack_device__, or arrays of the host"
        raise UsageError("an array does not say on which device it lies, and the driver does not know its address", fix=fix)
    return number


def held_array(value: Any, name: str, kinds: tuple[str, ...]) -> Any:
    """Return integers on a device as an array of Numba's, of one of some dtypes, without a copy.

    Raises UsageError for what is no such array.
    """
    from graphprep.kernels.cuda.resident import as_resident

    if isinstance(value, DeviceArray):
        value = value.held
    elif not hasattr(value, "__cuda_array_interface__") and not hasattr(value, "__cuda_ndarray__"):
        value = _Lent(dlpack.take(value.__dlpack__(stream=1)))  # 1: the stream that all others wait for
    held = as_resident(value)
    check_held(held, name, kinds)
    return held


def check_held(held: Any, name: str, kinds: tuple[str, ...]) -> None:
    """Raise UsageError for an array that is none of integers of these dtypes, in one dimension."""
    has_gaps = held.size > 1 and held.strides != (held.dtype.itemsize,)
    if held.ndim != 1 or np.dtype(held.dtype).name not in kinds or has_gaps:
        raise UsageError(
            f"{name} must be {' or '.join(kinds)} in one dimension, without gaps, found {held.dtype} of shape {held.shape}",
            fix="pass such an array, or one of the host",
        )
