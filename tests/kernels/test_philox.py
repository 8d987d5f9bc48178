"""Random numbers by counter against the published test vectors, and a naive reading of the algorithm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.sample.philox import below, random_words

WORDS = st.integers(0, 2**64 - 1)


def naive(key, counter):
    """Philox4x32-10 as the paper writes it: four words of 32 bits, and two of the key."""
    words = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        one, other = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [other >> 32 ^ words[1] ^ keys[0], other & 0xFFFFFFFF, one >> 32 ^ words[3] ^ keys[1], one & 0xFFFFFFFF]
        keys = [(keys[0] + 0x9E3779B9) % 2**32, (keys[1] + 0xBB67AE85) % 2**32]
    return words


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        (0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**64 - 1, 2**128 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x299F31D0A4093822, 0x0370734413198A2E85A308D3243F6A88, "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_the_vectors_of_its_authors(key, counter, words):
    """Source: kat_vectors of Random123."""
    expected = [int(word, 16) for word in words.split()]
    assert naive(key, counter) == expected
    found = random_words(key, np.array([counter % 2**64], np.uint64), counter >> 64)
    assert found.tolist() == [expected[1] << 32 | expected[0]]


@settings(max_examples=60, deadline=None)
@given(key=WORDS, firsts=st.lists(WORDS, max_size=5), second=WORDS)
def test_words(key, firsts, second):
    found = random_words(key, np.array(firsts, np.uint64), second)
    assert found.tolist() == [low | high << 32 for low, high, *_ in (naive(key, second << 64 | first) for first in firsts)]


@settings(max_examples=60, deadline=None)
@given(random=WORDS, size=WORDS)
def test_numbers_below_a_size(random, size):
    assert int(below.py_func(np.uint64(random), np.uint64(size))) == random * size >> 64
