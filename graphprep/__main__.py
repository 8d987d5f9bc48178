"""Where ``graphprep`` and ``python -m graphprep`` begin. An interrupt while modules are loaded leaves no traceback, either."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import signal
from typing import NoReturn

_INTERRUPTED, _TERMINATED = 130, 143
_GARBAGE_AFTER = 150_000  # objects; loading modules makes a hundred thousand, and no garbage. By default, 700


def main() -> NoReturn:
    """Run the command line of the process and exit."""
    for number, code in ((signal.SIGINT, _INTERRUPTED), (signal.SIGTERM, _TERMINATED)):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays in force
            signal.signal(number, functools.partial(_end, code))
    gc.set_threshold(_GARBAGE_AFTER)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # NumPy's BLAS has no work here, but its threads spin: 0.1 s of CPU
    try:
        from graphprep.cli.main import main as run
    except KeyboardInterrupt:  # raised where it is not a signal that asks for the end
        _end(_INTERRUPTED)
    run()


def _end(code: int, *_: object) -> NoReturn:
    """End at once, before and after what has something to clean up."""
    with contextlib.suppress(OSError):
        os.write(2, b"error: interrupted\n" if code == _INTERRUPTED else b"error: terminated\n")
    os._exit(code)


if __name__ == "__main__":
    main()
