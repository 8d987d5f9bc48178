"""Commands and functions over arrays on CUDA's simulator, in a process of its own: it is no GPU, and shows no races."""

from __future__ import annotations

import re

import pytest
from kernels.run_simulated import run_simulated

SUITES = {
    "tests/test_golden.py": 80,
    "tests/rewrite/test_reorder.py": 3,
    "tests/rewrite/test_partition.py": 3,
    "tests/edges/test_device_commands.py": 32,
    "tests/edges/test_device_graphs.py": 100,
}


@pytest.mark.slow
@pytest.mark.parametrize("suite", SUITES)
def test_what_is_computed_on_the_simulator_is_what_the_cpu_computes(suite, record_property):
    printed = run_simulated("pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", suite)
    (passed,) = re.findall(r"^commands and functions over arrays: simulated (\d+) passed$", printed, re.M)
    record_property("simulated device", passed)
    assert int(passed) >= SUITES[suite]
