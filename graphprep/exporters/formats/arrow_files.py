"""Files of an export that pyarrow writes."""

from __future__ import annotations

import io
from typing import Any

from graphprep.storage.write.outputs import FileOutput


class ArrowSink(io.RawIOBase):
    """A file of an export in the shape in which pyarrow takes files: written front to back."""

    def __init__(self, file: FileOutput) -> None:
        self._file = file

    def writable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return how much was written."""
        return self._file.num_bytes

    def write(self, data: Any) -> int:
        """Write all of it."""
        view = memoryview(data).cast("B")
        self._file.write(view)
        return len(view)
