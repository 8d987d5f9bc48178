"""The helpers of client tests: stores hold the graphs that they were made of, and checksums tell rows apart."""

from __future__ import annotations

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, store_edges, store_nodes
from clients.graphs import GRAPHS, make_store, shared_store

import graphprep


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("name", GRAPHS)
def test_stores_hold_what_graphs_hold(name, layout, tmp_path):
    graph = GRAPHS[name]()
    store = make_store(graph, tmp_path, layout=layout)
    for edge_type in graph.edges:
        wanted = graph_edges(graph, edge_type)
        assert checksum(edge_type, store_edges(store, edge_type)) == checksum(edge_type, wanted)
    for node_type, some in graph.nodes.items():
        wanted = graph_nodes(graph, node_type)
        found = store_nodes(store, node_type)
        names = [column for column in wanted.columns if column != some.split]
        assert checksum(node_type, found.only(names)) == checksum(node_type, wanted.only(names))
        if some.split:
            assert checksum(node_type, found.only(["part"])) == checksum(
                node_type, wanted.only(["part"]).cast({"part": "int8"})
            )


def test_a_shared_store_that_failed_is_made_again(monkeypatch):
    real = graphprep.convert

    def fail(*given, **options):
        raise MemoryError

    monkeypatch.setattr(graphprep, "convert", fail)
    with pytest.raises(MemoryError):
        shared_store("multi_edge", partitions=7)
    monkeypatch.setattr(graphprep, "convert", real)
    _, store = shared_store("multi_edge", partitions=7)
    assert graphprep.load(str(store)).metadata.num_parts == 7


def test_checksums_tell_rows_apart():
    ids, dst = np.array([3, 1, 2]), np.array([0, 0, 5])
    rows = Rows(ids, dst, np.arange(3), {"w": np.array([0.5, 1.5, 2.5])})
    order = np.array([2, 0, 1])
    again = Rows(ids[order], dst[order], order, {"w": rows.columns["w"][order]})
    assert checksum(("a", "b", "c"), rows) == checksum(("a", "b", "c"), again)
    others = [
        checksum(("a", "b", "d"), rows),
        checksum(("a", "b", "c"), Rows(dst, ids, np.arange(3), rows.columns)),
        checksum(("a", "b", "c"), Rows(ids, dst, order, rows.columns)),
        checksum(("a", "b", "c"), Rows(ids, dst, np.arange(3), {"w": rows.columns["w"][order]})),
        checksum(("a", "b", "c"), rows.cast({"w": np.float32})),
        checksum(("a", "b", "c"), rows.only([])),
        checksum(("a", "b", "c"), Rows(ids[:2], dst[:2], np.arange(2), {"w": rows.columns["w"][:2]})),
    ]
    assert len({checksum(("a", "b", "c"), rows), *others}) == len(others) + 1
