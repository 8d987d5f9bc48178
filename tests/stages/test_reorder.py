"""Reordered stores: every byte against the slow reference, graphs against SciPy, and what must not change."""

from __future__ import annotations

import contextlib

import pytest
from golden.golden_cases import load_cases, read_store
from reference.build import file_bytes
from reference.reorder import read_files, reorder_reference

import graphprep
from graphprep.stages.reorder import StoreReorderer
from graphprep.stages.reorder_moves import Room
from graphprep.stages.reorder_order import OrderRules
from graphprep.storage.arrays import StoreReader
from graphprep.storage.publish import StoreWriter
from graphprep.storage.runs import SpillPool
from graphprep.storage.scratch import Scratch
from graphprep.storage.urls import Storage

CASES = [case for case in load_cases() if (case.store / "metadata.json").exists()]
ORDERS = ("degree", "in-degree", "out-degree")


class Quiet:
    """A reporter that tells nothing."""

    def stage(self, name, *, total_bytes=None):
        pass

    def advance(self, *, records=0, num_bytes=0):
        pass

    def message(self, text):
        pass


def reorder_in(room_bytes, store, out, by, *, threads=1, held=0, **rules):
    """Reorder with so little room that everything goes through buckets, and through files."""
    with contextlib.ExitStack() as stack:
        storage = stack.enter_context(Storage())
        reader = StoreReader(storage, str(store))
        writer = stack.enter_context(StoreWriter(storage, str(out)))
        pool = stack.enter_context(SpillPool(room_bytes))
        scratch = stack.enter_context(Scratch(room_bytes))
        numbers = tuple(range(len(reader.metadata.edge_types)))
        room = Room(room_bytes, held, held, threads, pool, scratch)
        step = StoreReorderer(reader, writer, OrderRules(by, numbers, **rules), room, Quiet())
        step.order()
        step.write_nodes()
        step.write_edges()
        step.finish(dict)


def assert_files(out, expected):
    got, wanted = read_store(out), {path: file_bytes(value) for path, value in expected.items()}
    assert sorted(got) == sorted(wanted)
    different = [path for path in wanted if got[path] != wanted[path]]
    assert not different


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_every_byte_is_that_of_the_reference(number, tmp_path):
    store, by = CASES[number].store, ORDERS[number % 3]
    graphprep.reorder(str(store), str(tmp_path / "out"), by=by)
    assert_files(tmp_path / "out", reorder_reference(read_files(store), by))
    report = graphprep.validate(str(tmp_path / "out"))
    assert report.sound, report.faults


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_little_room_gives_the_same_bytes(number, tmp_path):
    store, by = CASES[number].store, ORDERS[(number + 1) % 3]
    room_bytes, threads = ((8, 1), (40, 2), (200, 4))[number % 3]
    reorder_in(room_bytes, store, tmp_path / "out", by, threads=threads)
    assert_files(tmp_path / "out", reorder_reference(read_files(store), by))
