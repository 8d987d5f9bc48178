"""``validate`` of stores that are sound, and of stores that are spoiled in every way."""

import sys
from pathlib import Path

import pytest

from graphprep.model.options import RunOptions
from graphprep.stages.check import check_store
from graphprep.storage.urls import Storage

sys.path.insert(0, str(Path(__file__).parent))
from tiny_store import sample_store


class Silent:
    def stage(self, name, *, total_bytes=None): ...
    def advance(self, *, records=0, num_bytes=0): ...
    def message(self, text): ...


def check(folder, *, limit="64MiB", max_faults=20):
    return check_store(Storage(), str(folder), Silent(), RunOptions(memory_limit=limit, threads=2), max_faults=max_faults)


def faults_of(store, folder, **options):
    return [str(fault) for fault in check(store.write(folder), **options).faults]


@pytest.mark.parametrize("layouts", [("csc",), ("csr",), ("csc", "csr")])
@pytest.mark.parametrize("order", ["input", "id", "weight"])
def test_a_sound_store_has_no_faults(tmp_path, layouts, order):
    report = check(sample_store(layouts, order).write(tmp_path))
    assert [str(fault) for fault in report.faults] == []
    assert report.sound
    assert (report.num_nodes, report.num_edges, report.num_parts) == (
        {"user": 5, "item": 3},
        {"user:buys:item": 7, "user:likes:user": 3},
        2,
    )
    assert report.num_bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.npy"))
    assert report.num_arrays == len(list(tmp_path.rglob("*.npy")))
