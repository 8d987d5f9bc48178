"""A process that compiles kernels: signatures, a line each, come in on stdin; their code goes out on stdout. See ``build``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from graphprep.kernels.compiler.shipped import Signature


def main() -> None:
    """Answer each line with ``SYMBOL RESULTS NUM_BYTES`` and the code; ``- - 0`` where the kernel cannot be had by itself."""
    from graphprep.kernels.compiler.shipped import Signature

    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not come between answers
    for line in sys.stdin:
        kernel, _, types = line.rstrip("\n").partition(" ")
        try:
            _answer(Signature(kernel, types), out)
        except BrokenPipeError:  # who asked is no more
            os._exit(0)


def _answer(signature: Signature, out: BinaryIO) -> None:
    from numba.core.errors import NumbaError

    head, data = "- - 0", b""
    try:
        code = signature.load().compile(signature.kinds)
        head, data = f"{code.symbol} {code.results or '-'} {len(code.data)}", code.data
    except (ImportError, AttributeError, NumbaError):
        pass  # a list of other sources than these: the kernel is compiled where it is called, or fails there
    out.write(f"{head}\n".encode() + data)
    out.flush()


if __name__ == "__main__":
    main()
