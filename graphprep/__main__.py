"""Where ``graphprep`` and ``python -m graphprep`` begin. An interrupt while modules are loaded leaves no traceback, either."""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

_GARBAGE_AFTER = 150_000  # objects; loading modules makes a hundred thousand, and no garbage. By default, 700


def main() -> NoReturn:
    """Run the command line of the process and exit."""
    gc.set_threshold(_GARBAGE_AFTER)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's BLAS has no work here, but its threads spin: 0.1 s of CPU
    try:
        from graphprep.cli.main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)
    run()


if __name__ == "__main__":
    main()
