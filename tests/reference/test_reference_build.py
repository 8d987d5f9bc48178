"""The reference builder against stores worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from reference.build import ReferenceError, build_reference, encoded, file_bytes
from reference.readers import edgelist_line, has_header, json_line, read_graph, tsv_line
from reference.records import Edge, Graph, Node, Numbers, Sparse, Temporal, Text


def edge_graph(pairs, **fields) -> Graph:
    edges = [Edge(src, dst, "_E", "_N", "_N") for src, dst in pairs]
    return Graph("ends", edges=edges, node_types=["_N"], edge_types=[("_N", "_E", "_N")], **fields)


def arrays_of(files, folder) -> dict[str, list]:
    inside = {path.removeprefix(folder): value for path, value in files.items() if path.startswith(folder)}
    return {path: value.tolist() for path, value in inside.items() if not isinstance(value, dict)}


def test_a_graph_in_two_partitions_worked_out_by_hand():
    # Nodes 0 1 | 2. In-edges, as (source, edge ID): 0: -, 1: (0, 0) (0, 3), 2: (1, 1) (2, 2).
    files = build_reference(edge_graph([(0, 1), (1, 2), (2, 2), (0, 1)]), {"partitions": 2})
    first = arrays_of(files, "part-00000/")
    second = arrays_of(files, "part-00001/")
    folder = "edges/_N___E___N/csc"
    assert first == {
        f"{folder}/indptr.npy": [0, 0, 2],
        f"{folder}/indices.npy": [0, 0],
        f"{folder}/edge_ids.npy": [0, 3],
    }
    assert second[f"{folder}/indptr.npy"] == [0, 2]
    assert second[f"{folder}/indices.npy"] == [1, 2]
    assert second[f"{folder}/edge_ids.npy"] == [1, 2]
    metadata = files["metadata.json"]
    assert metadata["num_nodes_per_chunk"] == [[2, 1]]
    assert metadata["num_edges_per_chunk"] == [[2, 2]]
    assert metadata["node_schema"] == {"_N": {"raw_ids": "identity", "columns": []}}


@pytest.mark.parametrize(
    ("name", "path", "column_path"),
    [
        ("a", "a", "a"),
        ("_N", "_N", "_N"),
        ("N_", "N%5F", "N%5F"),
        ("a__b", "a%5F%5Fb", "a%5F%5Fb"),
        ("a___b", "a%5F%5F%5Fb", "a%5F%5F%5Fb"),
        (".a.b", "%2Ea.b", "%2Ea%2Eb"),
        ("é/", "%C3%A9%2F", "%C3%A9%2F"),
        ("__", "%5F%5F", "%5F%5F"),
    ],
)
def test_names_in_paths(name, path, column_path):
    assert (encoded(name), encoded(name, column=True)) == (path, column_path)


def test_neighbor_order_by_weight_puts_nan_then_absent_last():
    graph = edge_graph([(0, 0)] * 5, weighted=True)
    weights = [1.0, None, math.nan, 2.0, 1.0]
    graph.edges = [Edge(0, 0, "_E", "_N", "_N", weight=w) for w in weights]
    files = build_reference(graph, {"neighbor_order": "weight"})
    folder = "part-00000/edges/_N___E___N"
    assert files[f"{folder}/csc/edge_ids.npy"].tolist() == [3, 0, 4, 2, 1]
    assert files[f"{folder}/weight.present.npy"].tolist() == [True, True, True, True, False]
    np.testing.assert_array_equal(files[f"{folder}/weight.npy"], np.array([2, 1, 1, np.nan, 0], np.float32))


def test_edge_rows_point_into_the_primary_layout():
    graph = edge_graph([(1, 0), (0, 1), (0, 0)], weighted=True)
    graph.edges = [Edge(e.src, e.dst, "_E", "_N", "_N", weight=1.0) for e in graph.edges]
    files = build_reference(graph, {"layout": "both"})
    folder = "part-00000/edges/_N___E___N"
    assert files[f"{folder}/csc/edge_ids.npy"].tolist() == [0, 2, 1]
    assert files[f"{folder}/csr/edge_ids.npy"].tolist() == [1, 2, 0]
    assert files[f"{folder}/csr/edge_rows.npy"].tolist() == [2, 1, 0]


def node(i, value, num_slots=1) -> Node:
    return Node(i, "0", 1.0, slots={0: value}, num_slots=num_slots)


def columns_of(*values):
    graph = Graph("records", [node(i, value) for i, value in enumerate(values)], weighted=True)
    files = build_reference(graph, {})
    return files, files["metadata.json"]["node_schema"]["0"]["columns"][1:]


def test_several_kinds_in_one_slot_get_suffixes():
    sparse = (Sparse("float32", 0, (4,), (1.0,)), Sparse("float32", 2, (4, 5), (1.0,)))
    _, columns = columns_of(Numbers("float32", (2,), (1, 2)), Numbers("int8", (1,), (1,)), Text(b"x"), *sparse)
    assert [column["name"] for column in columns] == [
        "feat_0_binary_uint8",
        "feat_0_dense_float32",
        "feat_0_dense_int8",
        "feat_0_sparse_float32_w0",
        "feat_0_sparse_float32_w2",
    ]
    assert all(column["optional"] and column["slot"] == 0 for column in columns)


def test_groups_of_several_lengths_are_ragged_and_of_one_length_dense():
    files, columns = columns_of(Numbers("int8", (2,), (1, 2)), Numbers("int8", (1,), (3,)))
    assert [(c["kind"], c["item_shape"]) for c in columns] == [("ragged", [])]
    assert files["part-00000/nodes/0/data/feat_0.offsets.npy"].tolist() == [0, 2, 3]
    _, columns = columns_of(Numbers("int8", (2, 1), (1, 2)), Numbers("int8", (2, 1), (3, 4)))
    assert [(c["kind"], c["item_shape"]) for c in columns] == [("dense", [2, 1])]
    _, columns = columns_of(Numbers("int8", (2, 1), (1, 2)), Numbers("int8", (1, 2), (3, 4)))
    assert [(c["kind"], c["item_shape"]) for c in columns] == [("dense", [2])]


def test_temporal_entries_are_sorted_by_start():
    files, columns = columns_of(Temporal("int8", ((5, None, (1,)), (3, 0, (2, 3)), (5, None, (4,)))))
    assert columns[0]["end"] is True
    stem = "part-00000/nodes/0/data/feat_0"
    assert files[f"{stem}.entry_offsets.npy"].tolist() == [0, 3]
    assert files[f"{stem}.start.npy"].tolist() == [3, 5, 5]
    assert files[f"{stem}.end.npy"].tolist() == [0, -1, -1]
    assert files[f"{stem}.offsets.npy"].tolist() == [0, 2, 3, 4]
    assert files[f"{stem}.values.npy"].tolist() == [2, 3, 1, 4]


def test_num_slots_is_there_where_a_row_states_more_than_it_has():
    graph = Graph("records", [node(0, Text(b"x")), node(1, Text(b"y"), num_slots=3)], weighted=True)
    files = build_reference(graph, {})
    assert files["part-00000/nodes/0/num_slots.npy"].tolist() == [1, 3]
    assert files["metadata.json"]["node_schema"]["0"]["num_slots"] is True


def test_missing_nodes_are_created_dropped_or_refused():
    graph = Graph("records", [Node(5, "0", 2.0)], [Edge(5, 9, "1", weight=1.0), Edge(5, 5, "1", weight=2.0)], weighted=True)
    with pytest.raises(ReferenceError, match="missing node 9"):
        build_reference(graph, {})
    dropped = build_reference(graph, {"on_missing_node": "drop"})["metadata.json"]
    assert (dropped["edge_type"], dropped["num_edges_per_type"]) == (["0:1:0"], [1])
    created = build_reference(graph, {"on_missing_node": "create", "missing_node_type": "3"})
    assert created["metadata.json"]["edge_type"] == ["0:1:0", "0:1:3"]
    assert created["part-00000/nodes/3/raw_ids.npy"].tolist() == [9]
    assert created["part-00000/nodes/3/weight.npy"].tolist() == [0.0]
    assert created["part-00000/nodes/3/data/created.npy"].tolist() == [True]


def test_json_files_are_indented_and_end_with_a_line_feed():
    assert file_bytes({"é": [1]}) == '{\n  "é": [\n    1\n  ]\n}\n'.encode()


def test_edgelist_escapes_join_columns():
    nodes, _ = edgelist_line(r"0,-1,0,1.0,binary,1,a\,b\\,binary,1,c\\\,d\x", {})
    assert nodes[0].slots == {0: Text(rb"a,b\\"), 1: Text(rb"c\\,d\x")}


def test_json_edges_take_missing_times_from_their_node():
    line = (
        '{"node_id": 1, "node_type": 0, "node_weight": 1, "created_at": 5, "edge": '
        '[{"src_id": 1, "dst_id": 1, "edge_type": 0, "weight": 1, "removed_at": 9}]}'
    )
    nodes, edges = json_line(line)
    assert (nodes[0].created_at, nodes[0].removed_at) == (5, None)
    assert (edges[0].created_at, edges[0].removed_at) == (5, 9)


def test_tsv_neighbors_in_the_manuals_form():
    _, edges = tsv_line("7\t0\t1.0\t\t7,3,0.5,2,i8:1 2")
    assert (edges[0].src, edges[0].dst, edges[0].relation, edges[0].weight) == (7, 3, "2", 0.5)
    assert edges[0].slots == {0: Numbers("int8", (2,), (1, 2))}


def test_headers_are_lines_without_numbers():
    assert has_header(("src", "dst"), {})
    assert not has_header(("src", "nan"), {})
    assert not has_header(("src", ".5"), {})
    assert not has_header(("src", "dst"), {"id_type": "string"})
    assert not has_header(("src", "dst"), {"id_type": "auto", "src_col": "1", "columns": ["col_2=int8"]})
    assert has_header(("src", "dst"), {"id_type": "string", "src_col": "src"})


def test_strings_are_ordered_by_their_bytes():
    edges = [Edge("Z", "a", "e", "n", "n"), Edge("é", "", "e", "n", "n"), Edge("\U0001f600", "\uffff", "e", "n", "n")]
    files = build_reference(Graph("ends", edges=edges, node_types=["n"], edge_types=[("n", "e", "n")]), {})
    folder = "part-00000/nodes/n/raw_ids"
    assert bytes(files[f"{folder}.values.npy"]).decode() == "Zaé\uffff\U0001f600"
    assert files[f"{folder}.offsets.npy"].tolist() == [0, 0, 1, 2, 4, 7, 11]
    assert files["metadata.json"]["node_schema"] == {"n": {"raw_ids": "string", "columns": []}}
    assert files["part-00000/edges/n__e__n/csc/indices.npy"].tolist() == [3, 1, 5]


def test_auto_decides_by_node_type(tmp_path):
    (tmp_path / "e.txt").write_text("1 a\n-02 7\n")
    options = {"decoder_options": {"id_type": "auto", "relation": "x:y:z"}}
    graph = read_graph("edges", [tmp_path / "e.txt"], options)
    assert [(edge.src, edge.dst) for edge in graph.edges] == [(1, "a"), (-2, "7")]
