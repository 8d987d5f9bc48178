"""Commands and functions over arrays on CUDA's simulator, in a process of its own: it is no GPU, and shows no races.

Which kernels they launch, with which types, is held against what is compiled ahead.
"""

from __future__ import annotations

import re

import pytest
from kernels.run_simulated import LARGE, run_simulated, shipped_names

pytestmark = pytest.mark.xdist_group("simulated")  # one process: the last test is about all others
SUITES = {
    "tests/test_golden.py": 80,
    "tests/rewrite/test_reorder.py": 3,
    "tests/rewrite/test_partition.py": 3,
    "tests/edges/test_device_commands.py": 32,
    "tests/edges/test_device_graphs.py": 100,
}
LAUNCHED: dict[str, set[str]] = {}


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.heavy
def test_what_is_computed_on_the_simulator_is_what_the_cpu_computes(suite, record_property, monkeypatch, tmp_path):
    monkeypatch.setenv("GRAPHPREP_LAUNCHES", str(tmp_path / "launches"))
    printed = run_simulated("pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", suite)
    (passed,) = re.findall(r"^commands and functions over arrays: simulated (\d+) passed$", printed, re.M)
    record_property("simulated device", passed)
    assert int(passed) >= SUITES[suite]
    LAUNCHED[suite] = set((tmp_path / "launches").read_text().splitlines())
    assert LAUNCHED[suite] - shipped_names() == set()


@pytest.mark.heavy
def test_every_signature_is_reached_by_these_or_by_large_graphs():
    if set(LAUNCHED) != set(SUITES):
        pytest.skip("not all of the suites ran here")
    assert shipped_names() - set().union(*LAUNCHED.values()) == set(LARGE)
