"""A cache of kernels that cannot be written does not stop a run."""

from __future__ import annotations

import errno
import importlib.util
from pathlib import Path

import pytest
from numba.core import caching

import graphprep.kernels.cpu  # noqa: F401 - what is tested happens on import

KERNEL = """
from numba import njit

@njit(cache=True)
def double(number):
    return 2 * number
"""


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS])
def test_a_kernel_that_cannot_be_kept_runs_all_the_same(number, monkeypatch, tmp_path):
    tries = []

    def full(self, key, data):
        tries.append(key)
        raise OSError(number, "no")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    path = Path(tmp_path) / "kernel.py"
    path.write_text(KERNEL)
    spec = importlib.util.spec_from_file_location(f"kernel_{number}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.double(21) == 42
    assert len(tries) == 1
