"""The dictionary of texts against Python's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text import dictionary as text_dictionary
from graphprep.kernels.cpu.text.dictionary import TextDictionary


def joined(texts):
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(texts), np.uint8)


@settings(deadline=None, max_examples=60)
@given(
    lists=st.lists(st.lists(st.binary(max_size=10) | st.sampled_from([b"", b"a", b"a\0", b"ab" * 9]), max_size=30), max_size=5)
)
def test_numbers_texts_as_a_dict_does(lists):
    found, expected = TextDictionary(), {}
    for texts in lists:
        codes = found.add(*joined(texts))
        assert codes.tolist() == [expected.setdefault(text, len(expected)) for text in texts]
    assert found.texts() == list(expected)
    assert found.num_bytes == sum(map(len, expected))
    asked = [text for texts in lists for text in texts] + [b"not there", b"\0"]
    assert found.find(*joined(asked)).tolist() == [expected.get(text, -1) for text in asked]


def test_grows_in_rows_and_in_bytes():
    texts = [f"{i:04x}".encode() + b"-" * (i % 7) for i in range(5000)] + [b"x" * 100_000, b"y"]
    found = TextDictionary()
    assert found.add(*joined(texts)).tolist() == list(range(len(texts)))
    assert found.find(*joined(texts[::-1])).tolist() == list(range(len(texts)))[::-1]
    assert found.texts() == texts


def test_texts_of_one_hash_stay_apart(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(text_dictionary, "hash_texts", lambda offsets, values: np.full(offsets.size - 1, 7, np.uint64))
    texts = [f"t{i % 700}".encode() for i in range(2000)]
    found = TextDictionary()
    assert found.add(*joined(texts)).tolist() == [i % 700 for i in range(2000)]
    assert found.find(*joined([b"t699", b"t700"])).tolist() == [699, -1]


def test_a_list_of_known_texts_keeps_its_numbers():
    assert TextDictionary.of([b"b", b"", b"a"]).find(*joined([b"a", b"b", b"", b"c"])).tolist() == [2, 0, 1, -1]
