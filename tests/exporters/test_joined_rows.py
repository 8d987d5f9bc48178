"""Rows of several tables as one, against lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.exporters.view.joined_rows import JoinedBlock, JoinedRows, SingleGraph

NUM_ROWS = 5
_TABLE = st.lists(st.integers(0, 4), min_size=NUM_ROWS, max_size=NUM_ROWS)


def _offsets(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _whole(pieces):
    return np.concatenate([np.zeros(0, np.int64), *pieces]).tolist()


@settings(deadline=None, max_examples=150)
@given(
    blocks=st.lists(st.lists(_TABLE, max_size=3), min_size=1, max_size=3),
    step=st.integers(1, 9),
    threads=st.sampled_from([1, 3]),
)
def test_joined_rows_agree_with_lists(blocks, step, threads):
    """Items are numbered by block, table and position; a step of few items cuts long rows."""
    graph = SingleGraph(
        tuple(
            JoinedBlock(
                part, tuple(range(10, 10 + len(tables))), JoinedRows(NUM_ROWS, [_offsets(one) for one in tables], step, threads)
            )
            for part, tables in enumerate(blocks)
        )
    )
    wanted, ends = [], [0]
    for part, tables in enumerate(blocks):
        for row in range(NUM_ROWS):
            for table, sizes in enumerate(tables):
                first = sum(sizes[:row])
                wanted += [part * 10000 + (10 + table) * 100 + item for item in range(first, first + sizes[row])]
            ends.append(len(wanted))
    pieces = list(graph.items(lambda part, edge, low, high: np.arange(low, high) + part * 10000 + edge * 100))
    assert _whole(pieces) == wanted
    assert all(piece.size <= step for piece in pieces)
    assert _whole(graph.indptr()) == ends
    assert (graph.num_items, graph.num_rows) == (len(wanted), NUM_ROWS * len(blocks))
    for part, (block, tables) in enumerate(zip(graph.blocks, blocks, strict=True)):
        own = [one % 10000 for one in wanted if one // 10000 == part]
        for table, sizes in enumerate(tables):
            mine = [at for at, one in enumerate(own) if one // 100 == 10 + table]
            assert block.rows.positions(table, 0, sum(sizes)).tolist() == mine
