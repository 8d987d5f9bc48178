"""Runs on storage that fails by a seed: each ends with the right bytes, or in one clear error that leaves nothing half done.

GRAPHPREP_FAULT_SCHEDULES says how many seeds there are: ``make test-faults`` takes 500, other runs a tenth.
"""

from __future__ import annotations

import functools
import os
import sys
from importlib import import_module
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from everywhere import Folder
from faulty import FaultyHdfs, FaultyStore, Schedule

import graphprep
from graphprep.model.errors import GraphprepError, StorageError
from graphprep.storage.read import ranges
from graphprep.storage.write import objects

SCHEDULES = int(os.environ.get("GRAPHPREP_FAULT_SCHEDULES", "50"))
ENDS = {"right bytes": 0, "a clear error": 0}


def edges(seed):
    """Text of 4,000 edges."""
    return b"".join(b"%d %d\n" % (i * (seed + 2) % 997, i * 7 % 991) for i in range(4000))


INPUTS = {"in/a.txt": edges(0), "in/b.txt": edges(1), "old.txt": edges(2)}


def convert(root, overwrite):
    graphprep.convert(f"{root}/in", f"{root}/out", format="edges", partitions=2, threads=2, overwrite=overwrite)


def reorder(root, overwrite):
    graphprep.reorder(f"{root}/store", f"{root}/out", by="in-degree", overwrite=overwrite)


def export(root, overwrite):
    graphprep.export(f"{root}/store", f"{root}/out", "npy", overwrite=overwrite)


RUNS = {"convert": convert, "reorder": reorder, "export": export}


@functools.cache
def expected(name):
    """What lies at OUT after a local run, what lay there before, and the store that is read."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        local = Folder(Path(folder))
        local.put_all(INPUTS)
        root = Path(folder)
        graphprep.convert(f"{folder}/in", f"{folder}/store", format="edges", partitions=2)
        if name == "export":
            graphprep.convert(f"{folder}/old.txt", f"{folder}/old-store", format="edges")
            graphprep.export(f"{folder}/old-store", f"{folder}/old", "npy")
        else:
            graphprep.convert(f"{folder}/old.txt", f"{folder}/old", format="edges")
        RUNS[name](folder, False)
        return tuple(Folder(root / one).files() for one in ("out", "old", "store"))


def same(found, wanted):
    """Whether two folders are one, but for what says how they were made, and a claim that could not be given up."""
    skipped = ("provenance.json", ".graphprep-claim")
    return {k: v for k, v in found.items() if k not in skipped} == {k: v for k, v in wanted.items() if k not in skipped}


class ObjectPlace:
    """A folder of the object store."""

    url = "faulty://bucket/x"

    def __init__(self, monkeypatch, tmp_path, schedule):
        monkeypatch.setattr(FaultyStore, "objects", {})
        monkeypatch.setattr(FaultyStore, "schedule", schedule)
        monkeypatch.setitem(import_module("fsspec.registry")._registry, "faulty", FaultyStore)

    def put_all(self, files):
        for name, data in files.items():
            FaultyStore().put(f"bucket/x/{name}", data)

    def files(self):
        return {name.removeprefix("bucket/x/"): data for name, (data, _) in FaultyStore.objects.items()}


class HdfsPlace(Folder):
    """A folder of HDFS."""

    def __init__(self, monkeypatch, tmp_path, schedule):
        (tmp_path / "root").mkdir()
        monkeypatch.setattr(FaultyHdfs, "root", tmp_path / "root", raising=False)
        monkeypatch.setattr(FaultyHdfs, "schedule", schedule)
        monkeypatch.setitem(import_module("fsspec.registry")._registry, "hdfs", FaultyHdfs)
        super().__init__(tmp_path / "root/x")
        self.url = "hdfs://namenode:8020/x"


@pytest.mark.parametrize("seed", range(SCHEDULES))
def test_a_schedule_ends_in_the_right_bytes_or_a_clear_error(seed, monkeypatch, tmp_path):
    monkeypatch.setattr(ranges, "_LEAST_PIECE", 2000)
    monkeypatch.setattr(ranges, "_MOST_PIECE", 8000)
    monkeypatch.setattr(objects, "PART_BYTES", 3000)
    schedule = Schedule(seed)
    name = list(RUNS)[seed % len(RUNS)]
    new, old, store = expected(name)
    place = (ObjectPlace, HdfsPlace)[seed // 3 % 2](monkeypatch, tmp_path, schedule)
    place.put_all(INPUTS | {f"store/{path}": data for path, data in store.items()})
    overwrite = seed // 6 % 2 == 1
    if overwrite:
        place.put_all({f"out/{path}": data for path, data in old.items()})
    schedule.is_on, failure = True, None
    try:
        RUNS[name](place.url, overwrite)
    except GraphprepError as error:
        failure = error
    schedule.is_on = False
    files = place.files()
    out = {path.removeprefix("out/"): data for path, data in files.items() if path.startswith("out/")}
    if failure is None:
        assert same(out, new)
        ENDS["right bytes"] += 1
    else:
        assert schedule.num_faults, failure
        assert isinstance(failure, StorageError), failure
        assert failure.place and failure.message and failure.fix and "internal" not in failure.message
        marks = [path for path in ("metadata.json", "export.json", "provenance.json") if path in out and name != "export"]
        assert "metadata.json" not in marks or same(out, new) or (overwrite and same(out, old)), (
            failure,
            sorted(out),
            [k for k in old if out.get(k) != old[k]],
            schedule.down_after,
        )
        ENDS["a clear error"] += 1
    for path, data in (INPUTS | {f"store/{path}": data for path, data in store.items()}).items():
        assert files[path] == data


def test_schedules_end_both_ways():
    if SCHEDULES >= 30 and sum(ENDS.values()) == SCHEDULES:  # else another process had some
        assert min(ENDS.values()) >= SCHEDULES // 20, ENDS
