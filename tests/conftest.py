"""Fixtures and paths for all tests. The reference builder is imported as ``reference``."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS))


@pytest.fixture(autouse=True)
def warm_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no command say that kernels are compiled: only the first test of a fresh checkout would see it."""
    monkeypatch.setattr("graphprep.cli.progress.kernels_are_cold", lambda: False)


@pytest.fixture
def hears_signals():
    """Let children hear signals that this process ignores, as under nohup or in the background of a shell."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if before[number] is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def sample_data() -> Path:
    """The folder of sample graphs that the repository ships."""
    return TESTS.parent / "sample_data"


@pytest.fixture(scope="session")
def real_samples() -> Path:
    """The folder that GRAPHPREP_SAMPLES names; the test is skipped where it is unset or absent."""
    folder = os.environ.get("GRAPHPREP_SAMPLES", "")
    if not folder:
        pytest.skip("GRAPHPREP_SAMPLES is not set")
    if not Path(folder).is_dir():
        pytest.skip(f"GRAPHPREP_SAMPLES: no folder {folder}")
    return Path(folder)
