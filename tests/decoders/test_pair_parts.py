"""Splits of edges by pairs of ends, against a dict."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.decoders.tables.pair_parts import load_parts
from graphprep.model.errors import DataError
from graphprep.model.graph_config import PairFile
from graphprep.storage.read.urls import Storage

ENDS = st.sampled_from([0, 1, 2, 7, 2**31, 2**32 - 1])
PAIRS = st.lists(st.tuples(ENDS, ENDS), max_size=12)


def save(folder, name, values, dtype=np.int64) -> str:
    np.save(folder / f"{name}.npy", np.array(values, dtype))
    return str(folder / f"{name}.npy")


def load(folder, *parts):
    files = [None if pairs is None else PairFile(pairs, None, f"part {k}") for k, pairs in enumerate(parts)]
    with Storage() as storage:
        return load_parts(storage, files)


@settings(deadline=None, max_examples=60)
@given(parts=st.tuples(PAIRS, PAIRS, PAIRS), edges=PAIRS)
def test_pairs_are_found_as_in_a_dict(tmp_path_factory, parts, edges):
    folder = tmp_path_factory.mktemp("pairs")
    files = [save(folder, str(k), np.array(pairs, np.int64).reshape(-1, 2)) for k, pairs in enumerate(parts)]
    known = {}
    clashes = {pair for k, pairs in enumerate(parts) for pair in pairs if known.setdefault(pair, k) != k}
    if clashes:
        with pytest.raises(DataError, match="is in two parts, ") as caught:
            load(folder, *files)
        assert any(f"the pair {src}, {dst} is" in str(caught.value) for src, dst in clashes)
        return
    ends = np.array(edges, np.uint64).reshape(-1, 2)
    rows, found = load(folder, *files).find(ends[:, 0], ends[:, 1])
    expected = [(row, known[pair]) for row, pair in enumerate(edges) if pair in known]
    assert list(zip(rows.tolist(), found.tolist(), strict=True)) == expected


def test_labels_choose_pairs(tmp_path):
    pairs = PairFile(save(tmp_path, "p", [[0, 1], [2, 3], [4, 5]]), save(tmp_path, "l", [1, 0, 2.5], np.float32))
    with Storage() as storage:
        assert load_parts(storage, (None, pairs, None)).keys.tolist() == [1, (4 << 32) + 5]


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([[0, 1], [2, -3]], "DIR/p.npy: row 1: IDs of pairs must lie in 0..2^32 - 1, found [2, -3]\n  fix: correct the pair"),
        (
            [[2**32, 1]],
            "DIR/p.npy: row 0: IDs of pairs must lie in 0..2^32 - 1, found [4294967296, 1]\n  fix: correct the pair",
        ),
        ([[0, 1, 2]], "part 0: expected integers of shape [n, 2], and n labels\n  fix: write one pair a row"),
    ],
)
def test_what_is_no_pair_has_its_place(tmp_path, pairs, text):
    with pytest.raises(DataError) as caught:
        load(tmp_path, save(tmp_path, "p", pairs))
    assert str(caught.value).replace(str(tmp_path), "DIR") == text
