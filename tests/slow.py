"""Write slow.txt: the tests that make test-fast leaves out, because one of them takes more than 0.08 seconds on average.

``make test PYTEST_FLAGS=--durations=0 > LOG; .venv/bin/python tests/slow.py LOG``, on a machine with nothing else to do.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = Path(__file__).with_suffix(".txt")
MOST_S = 0.08  # on average over the parametrisations of a test


def main(log: str) -> None:
    seconds: dict[str, float] = defaultdict(float)
    for taken, test in re.findall(r"^([\d.]+)s (?:call|setup) +(tests/.*?)(?:@[\w ]+)?$", Path(log).read_text(), re.MULTILINE):
        seconds[test] += float(taken)
    found = defaultdict(list)
    for test, taken in seconds.items():
        found[test.partition("[")[0]].append(taken)
    names = sorted(name for name, times in found.items() if sum(times) > MOST_S * len(times))
    SLOW.write_text("".join(f"{name}\n" for name in names))


if __name__ == "__main__":
    main(sys.argv[1])
