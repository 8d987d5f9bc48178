"""The test vectors that the description of the store format gives."""

from __future__ import annotations

import pytest

from reference.hashes import cut, edge_checksum, feistel, hash_id


@pytest.mark.parametrize(
    ("raw_id", "expected"),
    [(0, 0xE220A8397B1DCDAF), (1, 0x910A2DEC89025CC1), ("a", 0x5E025F9ADE9EAF3E), ("abcdefghi", 0xCBE0B0512E86AB3B)],
)
def test_hash_vectors(raw_id, expected):
    assert hash_id(raw_id) == expected


def test_edge_checksum_vector():
    assert edge_checksum([(0, 1), (0, 1), (2, "a")]) == "5c07fa9c1a48080f"
    assert edge_checksum([(2, "a"), (0, 1), (0, 1)]) == "5c07fa9c1a48080f"


def test_feistel_vector():
    assert [feistel(rank, 10, 0, 0) for rank in range(10)] == [5, 3, 8, 4, 6, 2, 9, 7, 1, 0]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 16, 17, 100])
def test_feistel_is_a_permutation(n):
    assert sorted(feistel(rank, n, 7, 3) for rank in range(n)) == list(range(n))


def test_cut_makes_the_first_runs_longer():
    assert [cut(i, 7, 3) for i in range(7)] == [0, 0, 0, 1, 1, 2, 2]
    assert [cut(i, 2, 3) for i in range(2)] == [0, 1]
