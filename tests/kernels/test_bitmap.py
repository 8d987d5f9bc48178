"""Ranks in bitmaps, against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.bitmap import Ranks, members
from graphprep.kernels.cpu.ids.group import mark_bits


def _bits(ids, num_bytes):
    bits = np.zeros(num_bytes, np.uint8)
    mark_bits(bits, np.array(sorted(ids), np.uint64))
    return bits


@settings(deadline=None, max_examples=100)
@given(ids=st.sets(st.integers(0, 1023)), wanted=st.lists(st.one_of(st.integers(0, 1100), st.integers(0, 2**64 - 1))))
def test_ranks_agree_with_index(ids, wanted):
    ranks = Ranks(_bits(ids, 128))
    ordered = sorted(ids)
    wanted += ordered
    assert ranks.count == len(ids)
    assert ranks.find(np.array(wanted, np.uint64)).tolist() == [ordered.index(one) if one in ids else -1 for one in wanted]


@pytest.mark.parametrize("num_words", [0, 1, 7, 8, 9, 17])
def test_borders_of_blocks(num_words):
    ids = range(0, 64 * num_words, 63)
    ranks = Ranks(_bits(ids, 8 * num_words))
    wanted = np.arange(64 * num_words + 5, dtype=np.uint64)
    assert ranks.find(wanted).tolist() == [one // 63 if one in ids else -1 for one in wanted.tolist()]
    assert ranks.num_bytes >= 8 * num_words


@settings(deadline=None, max_examples=60)
@given(ids=st.sets(st.integers(0, 511)), step=st.integers(1, 70))
def test_members_come_back_in_order(ids, step):
    bits = _bits(ids, 64)
    found = [one for start in range(0, 64, step) for one in members(bits, start, min(start + step, 64)).tolist()]
    assert found == sorted(ids)
