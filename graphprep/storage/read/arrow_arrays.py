"""Arrays and scalars of Arrow, made of buffers.

``pyarrow.array`` and ``pyarrow.scalar`` first import pandas where it is installed, to ask whether what they are given is of its
making: 0.2 s of CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def arrow_array(values: NDArray[Any], kind: Any = None, missing: NDArray[np.bool_] | None = None) -> Any:
    """Return numbers or booleans, one axis, as an array of Arrow; nulls where ``missing``. Copies only what is not contiguous.

    ``kind``: another type of the same width, as dates are.
    """
    import pyarrow as pa

    kind = pa.from_numpy_dtype(values.dtype) if kind is None else kind
    data = np.packbits(values, bitorder="little") if values.dtype.kind == "b" else np.ascontiguousarray(values)
    valid = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    return pa.Array.from_buffers(kind, values.size, [valid, pa.py_buffer(data)])


def arrow_text(text: str, kind: Any) -> Any:
    """Return a text as a scalar of a type of texts or bytes, large or not."""
    import pyarrow as pa

    data = text.encode()
    width = np.int64 if "large" in str(kind) else np.int32
    offsets = np.array([0, len(data)], width)
    return pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])[0]


def arrow_null(kind: Any) -> Any:
    """Return the scalar of a type that is no value."""
    import pyarrow as pa

    return pa.nulls(1, kind)[0]
