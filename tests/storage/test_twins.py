"""Arrays that stand in a store already become links to it, whatever the pieces in which they are written."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphprep.storage.read.urls import Storage
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.twins import TwinFinder


def write(folder, array, steps, twins, out="out", **given_options):
    with Storage() as storage, FolderOutput(storage, str(folder / out), replaces=None, last="x.npy", **given_options) as files:
        files.twins = twins
        cuts = np.cumsum([0, *steps])
        pieces = [array[low:high] for low, high in itertools.pairwise(cuts)] + [array[cuts[-1] :]]
        files.write_npy("x.npy", array.dtype, array.shape, iter(pieces))
        files.publish()
        return files


@given(
    stored=st.lists(st.lists(st.integers(0, 1), min_size=6, max_size=6), max_size=4),
    wanted=st.lists(st.integers(0, 1), min_size=6, max_size=6),
    steps=st.lists(st.integers(0, 2), max_size=3),
)
def test_an_array_is_linked_iff_a_file_has_its_bytes(tmp_path_factory, stored, wanted, steps):
    folder = tmp_path_factory.mktemp("twins")
    paths = []
    for number, values in enumerate(stored):
        paths.append(str(folder / f"{number}.npy"))
        np.save(paths[-1], np.array(values, np.int32))
    array = np.array(wanted, np.int32)
    files = write(folder, array, steps, TwinFinder({("int32", (6,)): paths}))
    assert np.load(folder / "out" / "x.npy").tolist() == wanted
    assert files.num_linked == (wanted in stored)
    links = {(folder / f"{number}.npy").stat().st_ino for number, values in enumerate(stored) if values == wanted}
    assert ((folder / "out" / "x.npy").stat().st_ino in links) == (wanted in stored)


@pytest.mark.parametrize("other", [np.arange(6, dtype=np.int64), np.arange(6, dtype=np.int32).reshape(2, 3)])
def test_other_dtypes_and_shapes_are_no_twins(tmp_path, other):
    np.save(tmp_path / "a.npy", np.arange(6, dtype=np.int32))
    files = write(tmp_path, other, [], TwinFinder({("int32", (6,)): [str(tmp_path / "a.npy")]}))
    assert files.num_linked == 0
    assert np.array_equal(np.load(tmp_path / "out" / "x.npy"), other)


def test_a_file_that_is_shorter_than_it_says_is_no_twin(tmp_path):
    array = np.arange(6, dtype=np.int32)
    np.save(tmp_path / "a.npy", array)
    data = (tmp_path / "a.npy").read_bytes()
    (tmp_path / "a.npy").write_bytes(data[:-4])
    files = write(tmp_path, array, [2, 2], TwinFinder({("int32", (6,)): [str(tmp_path / "a.npy")]}))
    assert files.num_linked == 0
    assert (tmp_path / "out" / "x.npy").read_bytes() == data


def test_where_links_cannot_be_the_array_is_written(tmp_path, monkeypatch):
    array = np.arange(6, dtype=np.int32)
    np.save(tmp_path / "a.npy", array)
    twins = TwinFinder({("int32", (6,)): [str(tmp_path / "a.npy")]})
    monkeypatch.setattr("os.link", lambda *paths: (_ for _ in ()).throw(OSError("another disk")))
    files = write(tmp_path, array, [1, 2], twins)
    assert files.num_linked == 0
    assert (tmp_path / "out" / "x.npy").read_bytes() == (tmp_path / "a.npy").read_bytes()


def test_linked_files_have_digests_too(tmp_path):
    array = np.arange(6, dtype=np.int32)
    np.save(tmp_path / "a.npy", array)
    twins = TwinFinder({("int32", (6,)): [str(tmp_path / "a.npy")]})
    files = write(tmp_path, array, [], twins, digest="md5")
    assert files.num_linked == 1
    assert files.digests == {"x.npy": hashlib.md5((tmp_path / "a.npy").read_bytes()).hexdigest()}
