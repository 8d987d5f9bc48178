"""Scratch arrays: in memory up to the cap, in files beyond, and gone at the end."""

import numpy as np
import pytest

from graphprep.model.errors import StorageError
from graphprep.storage.spill.scratch import Scratch


def test_arrays_beyond_the_cap_lie_in_files(tmp_path):
    with Scratch(100, str(tmp_path)) as scratch:
        small, large, empty = scratch.zeros(10, np.int64), scratch.zeros(11, np.int64), scratch.zeros(0, np.int32)
        folder = next(tmp_path.iterdir())
        assert [path.stat().st_size for path in folder.iterdir()] == [88]
        for array in (small, large, empty):
            assert array.sum() == 0
            array[:] = np.arange(array.size)
        assert (small.dtype, large.tolist(), empty.size) == (np.int64, list(range(11)), 0)
    assert not list(tmp_path.iterdir())
    assert large.tolist() == list(range(11))


def test_an_inner_one_gets_what_is_left(tmp_path):
    with Scratch(100, str(tmp_path)) as scratch:
        scratch.zeros(10, np.int64)
        with scratch.inner() as inner:
            inner.zeros(20, np.uint8)
            assert not list(tmp_path.iterdir())
            inner.zeros(1, np.uint8)
            (folder,) = tmp_path.iterdir()
            assert len(list(folder.iterdir())) == 1
        assert not list(folder.iterdir())
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StorageError) as caught, Scratch(0, str(tmp_path / "none")) as scratch:
        scratch.zeros(1, np.int64)
    assert str(tmp_path / "none") in str(caught.value)


def test_a_file_that_finds_no_room_is_an_error(tmp_path):
    with pytest.raises(StorageError), Scratch(0, str(tmp_path)) as scratch:
        scratch.zeros(2**60, np.int64)
    assert not list(tmp_path.iterdir())
