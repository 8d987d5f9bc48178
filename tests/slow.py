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
LONG_S = 0.5  # and more: make test does, but for these, which nothing shorter stands for
KEPT = {
    "tests/cli/test_other_systems.py::test_every_module_is_imported_without_posix",
    "tests/engine/test_engine_processes.py::test_workers_that_die_and_die_end_the_run",
    "tests/kernels/test_shipped.py::test_kernels_are_built_listed_and_removed",
    "tests/kernels/test_stats_kernels.py::test_kernels_of_stats_stay_inside_their_arrays",
    "tests/pipeline/test_memory_limit.py::test_the_limit_holds_for_inputs_larger_than_it",
    "tests/pipeline/test_resume.py::test_killed_runs_go_on_to_the_same_bytes",
    "tests/property/test_tables_against_reference.py::test_tables_equal_the_reference",
}


def marks() -> Iterator[tuple[str, str]]:
    """Yield the name of every test in slow.txt, once with each mark that it gets."""
    for line in SLOW.read_text().splitlines():
        seconds, name = line.split(maxsplit=1)
        yield name, "slow"
        if float(seconds) >= LONG_S and name not in KEPT:
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
