"""Places of many bytes of a block, against the place of one."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.protocols import Span, TextBlock
from graphprep.storage.read.spans import place_of, places_of


@settings(deadline=None, max_examples=60)
@given(data=st.binary(max_size=30) | st.text("aé\n\r,", max_size=30).map(str.encode), first_line=st.integers(1, 9))
def test_many_places_of_a_block_are_the_single_ones(data, first_line):
    block = TextBlock(data, Span("f"), first_line)
    place = places_of(block)
    assert [place(at) for at in range(len(data) + 1)] == [place_of(block, at) for at in range(len(data) + 1)]
