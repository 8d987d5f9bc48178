"""Inputs of the kernel benchmarks: R-MAT of 2^18 nodes and a million edges, as arrays and as text; users and items as lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphprep

SCALE = 18
NUM_EDGES = 1 << 20


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of inputs, made on demand."""
    return tmp_path_factory.mktemp("inputs")


@pytest.fixture(scope="session")
def ends(folder):
    """Sources and destinations: int64[NUM_EDGES] each."""
    graphprep.generate("rmat", str(folder / "ends"), scale=SCALE, edges=NUM_EDGES, format="npy")
    return np.load(folder / "ends" / "src.npy"), np.load(folder / "ends" / "dst.npy")


@pytest.fixture(scope="session")
def text(folder):
    """Lines ``src dst``, of the same edges."""
    graphprep.generate("rmat", str(folder / "edges.txt"), scale=SCALE, edges=NUM_EDGES)
    return (folder / "edges.txt").read_bytes()


@pytest.fixture(scope="session")
def weighted_text(folder):
    """Lines ``src dst weight``."""
    graphprep.generate("rmat", str(folder / "weighted.txt"), scale=SCALE, edges=NUM_EDGES, weights=True)
    return (folder / "weighted.txt").read_bytes()


@pytest.fixture(scope="session")
def deepgnn_text(folder) -> Callable[[str], bytes]:
    """Lines of 5,000 nodes with 50,000 edges in one of DeepGNN's formats."""

    def make(format: str) -> bytes:
        path = folder / f"graph.{format}"
        if not path.exists():
            graphprep.generate("hetero", str(path), nodes=5000, edges=50_000, format=format)
        return path.read_bytes()

    return make


@pytest.fixture
def timed(benchmark: Any) -> Callable[..., Any]:
    """Time a call on one thread: ``timed(function, items)``, where ``items`` is how many a call deals with."""

    def run(function: Callable[[], Any], items: int) -> Any:
        result = benchmark(function)
        if benchmark.stats is not None:  # else with --benchmark-disable
            benchmark.extra_info["M items/s"] = round(items / benchmark.stats.stats.min / 1e6, 1)
        return result

    return run
