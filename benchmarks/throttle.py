"""Write a file to stdout at a given rate: ``python benchmarks/throttle.py edges.txt 0.4 | graphprep convert - store``.

The rate is in GB/s (10^9 bytes). At the end stderr gets one line of JSON: bytes, the seconds that the source by itself takes
at this rate, and the seconds that it took, which are more where the reader holds it up. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import sys
import time

_PIECE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux


def main() -> None:
    """Do what the command line says."""
    if len(sys.argv) != 3:
        sys.exit("usage: throttle.py FILE GB_PER_S")
    path, rate = sys.argv[1], float(sys.argv[2]) * 1e9
    begin = time.perf_counter()
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123
        num_bytes = send(file.fileno(), 1, rate)
    took = time.perf_counter() - begin
    print(json.dumps({"bytes": num_bytes, "source_s": num_bytes / rate, "took_s": round(took, 3)}), file=sys.stderr)


def send(source: int, target: int, rate: float) -> int:
    """Copy one descriptor to another at ``rate`` bytes a second; return the number of bytes."""
    if stat.S_ISFIFO(os.fstat(target).st_mode):
        fcntl.fcntl(target, _SET_PIPE_SIZE, _PIECE_BYTES)
    begin = time.perf_counter()
    sent = 0
    while piece := os.pread(source, _PIECE_BYTES, sent):
        ahead = sent / rate - (time.perf_counter() - begin)
        if ahead > 0:
            time.sleep(ahead)
        view = memoryview(piece)
        while view:
            view = view[os.write(target, view) :]
        sent += len(piece)
    return sent


if __name__ == "__main__":
    main()
