"""Texts among sorted texts, against Python's bisect."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text.search import copy_ranges, find_texts, rank_texts
from graphprep.model.rows import RawTexts

texts = st.sampled_from([b"", b"a", b"ab", b"b", b"a\0", b"\xff", b"\x80"]) | st.binary(max_size=12)


@settings(deadline=None, max_examples=150)
@given(entries=st.sets(texts, max_size=40), wanted=st.lists(texts, max_size=40))
def test_found_where_bisect_finds_them(entries, wanted):
    entries, wanted = sorted(entries), sorted(wanted)
    a, b = RawTexts.of(entries), RawTexts.of(wanted)
    args = (a.offsets, a.values, b.offsets, b.values)
    assert find_texts(*args).tolist() == [entries.index(text) if text in entries else -1 for text in wanted]
    assert rank_texts(*args).tolist() == [bisect_right(entries, text) for text in wanted]


@settings(deadline=None, max_examples=50)
@given(entries=st.lists(texts, min_size=1, max_size=20), data=st.data())
def test_ranges_are_copied(entries, data):
    held = RawTexts.of(entries)
    rows = np.array(data.draw(st.lists(st.integers(0, len(entries) - 1))), np.int64)
    found = RawTexts(*copy_ranges(held.values, held.offsets[rows], held.offsets[rows + 1]))
    assert found.tolist() == [entries[row] for row in rows]
