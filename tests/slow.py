"""Write slow.txt: the tests that take long, with their seconds, on average over the parameters of a test.

``make test PYTEST_FLAGS="--durations=0 -m 'not client and not heavy'" > LOG; .venv/bin/python tests/slow.py LOG``, on a machine
with nothing else to do. Who needs a package that is missing there, or a mark of its own, is not in the list.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SLOW = Path(__file__).with_suffix(".txt")
SLOW_S = 0.05  # and more: make test-fast leaves it out
LONG_S = 0.7  # and more: make test does


def marks() -> Iterator[tuple[str, str]]:
    """Yield the name of every test in slow.txt, once with each mark that it gets."""
    for line in SLOW.read_text().splitlines():
        seconds, name = line.split(maxsplit=1)
        yield name, "slow"
        if float(seconds) >= LONG_S:
            yield name, "long"


def main(log: str) -> None:
    seconds: dict[str, float] = defaultdict(float)
    for taken, test in re.findall(r"^([\d.]+)s (?:call|setup) +(tests/.*?)(?:@[\w ]+)?$", Path(log).read_text(), re.MULTILINE):
        seconds[test] += float(taken)
    found = defaultdict(list)
    for test, taken in seconds.items():
        found[test.partition("[")[0]].append(taken)
    means = {name: sum(times) / len(times) for name, times in sorted(found.items())}
    SLOW.write_text("".join(f"{mean:.2f} {name}\n" for name, mean in means.items() if mean >= SLOW_S))


if __name__ == "__main__":
    main(sys.argv[1])
