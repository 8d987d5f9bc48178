"""Commands on a GPU, where there is one, against what they write on the CPU; ``test_simulated_device.py`` runs this file simulated.

Goldens of convert, reorder and partition are compared in their own tests, which take ``--device``, too.
"""

from __future__ import annotations

import functools

import pytest
from golden.golden_cases import load_cases, read_store

import graphprep

pytestmark = pytest.mark.gpu
NAMES = ("karate_csv", "shop_edgelist_both_parts", "town_csr_parts", "people_tables_hash")
STORES = {case.name: case.store for case in load_cases() if case.name in NAMES}
COMMANDS = {
    "reorder": functools.partial(graphprep.reorder, by="in-degree"),
    "reorder by groups": functools.partial(graphprep.reorder, by="dbg"),
    "partition": functools.partial(graphprep.partition, by="hash", partitions=3),
    "partition by edges": functools.partial(graphprep.partition, by="ldg", partitions=2),
    "transform": functools.partial(graphprep.transform, operations="reverse layout both"),
    "export glt": functools.partial(graphprep.export, target="glt", partitions=2, drop_unsupported=True),
    "export graphbolt": functools.partial(graphprep.export, target="graphbolt", drop_unsupported=True),
    "export pyg": functools.partial(graphprep.export, target="pyg", drop_unsupported=True),
}

MAY_ONLY_MOVE = ("partition", "export glt", "export pyg")  # rows as they are, where no other order or layout is wanted


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("store", STORES)
def test_the_bytes_are_the_cpus(command, store, gpu, tmp_path):
    run = COMMANDS[command]
    run(STORES[store], out=tmp_path / "cpu", device="cpu", threads=2)
    gpu.clear()
    run(STORES[store], out=tmp_path / "gpu", device="cuda", threads=2)
    assert gpu or command in MAY_ONLY_MOVE
    assert read_store(tmp_path / "gpu") == read_store(tmp_path / "cpu")
