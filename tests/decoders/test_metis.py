"""METIS files against a naive parser and networkx; every error to the letter; any cut into blocks gives the same rows."""

import gzip

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.pipeline import check_input
from graphprep.decoders.matrices.metis import MetisDecoder
from graphprep.decoders.registry import find_decoder, sniff
from graphprep.model.errors import DataError, GraphprepError
from graphprep.model.graph_config import EdgeTable, GraphConfig, TableConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows

relaxed = settings(deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("metis")


def read(path, block_bytes=1 << 20, *, places=False, **options):
    """Read a file in blocks: (sources, edges with weights, {column: values}, places)."""
    with Storage() as storage:
        decoder = MetisDecoder(**options)
        sources = decoder.plan(storage, [str(path)])
        (span,) = sources.spans
        edges, columns, at = [], {}, []
        for block in text_blocks(storage, span, block_bytes):
            rows = decoder.decode(block, places)
            check_rows(rows, places=places)
            weights = rows.edges.columns[0].values.tolist() if rows.edges.columns else [None] * rows.edges.num_rows
            edges += zip(rows.edges.src.tolist(), rows.edges.dst.tolist(), weights, strict=True)
            for part in rows.aligned:
                have = columns.setdefault(part.chunk.key.name, [])
                assert part.start == len(have)
                have += part.chunk.values.reshape(part.num_rows, *part.chunk.item_shape).tolist()
            if places:
                at += [block.data[byte : byte + 1] for byte in rows.edges.at_dst]
    return sources, edges, columns, at


def parse_naively(text):
    """Return (number of nodes, edges with weights, weights of nodes, sizes), as the manual says."""
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    head, rows = lines[0].split(), lines[1:]
    fmt = (head[2] if len(head) > 2 else "0").zfill(3)
    ncon = int(head[3]) if len(head) > 3 else int(fmt[1])
    edges, weights, sizes = [], [], []
    for node, line in enumerate(rows[: int(head[0])]):
        numbers = line.split()
        if fmt[0] == "1":
            sizes.append(int(numbers.pop(0)))
        weights.append([int(numbers.pop(0)) for _ in range(ncon)])
        step = 2 if fmt[2] == "1" else 1
        edges += [
            (node, int(numbers[i]) - 1, float(numbers[i + 1]) if step == 2 else None) for i in range(0, len(numbers), step)
        ]
    return int(head[0]), edges, weights, sizes


def message(function, *args, **options):
    with pytest.raises(GraphprepError) as caught:
        function(*args, **options)
    return str(caught.value)


graphs = st.integers(1, 8).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=12),
    )
)


@relaxed
@given(
    graph=graphs,
    fmt=st.sampled_from([None, "0", "1", "10", "011", "100", "111"]),
    ncon=st.integers(1, 3),
    comments=st.lists(st.integers(0, 9), max_size=4),
    compress=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
    data=st.data(),
)
def test_any_graph_is_what_a_naive_parser_reads(folder, graph, fmt, ncon, comments, compress, end, data):
    num_nodes, pairs = graph
    digits = (fmt or "0").zfill(3)
    weight = {pair: data.draw(st.integers(1, 99)) for pair in pairs}
    head = f"{num_nodes} {len(pairs)}" + ("" if fmt is None else f" {fmt}") + (f" {ncon}" if digits[1] == "1" else "")
    lines = []
    for node in range(num_nodes):
        numbers = [5] * (digits[0] == "1") + [node * 10 + i for i in range(ncon)] * (digits[1] == "1")
        for pair in sorted(pairs):
            if node in pair:
                numbers += [sum(pair) - node + 1] + [weight[pair]] * (digits[2] == "1")
        lines.append(" ".join(map(str, numbers)) + (" " if numbers else ""))
    for at in comments:
        lines.insert(min(at, len(lines)), "% a comment 1 2 3")
    text = end.join(["% first", head, *lines]) + end
    path = folder / "g.graph"
    path.write_bytes(gzip.compress(text.encode()) if compress else text.encode())
    _, edges, weights, sizes = parse_naively(text.replace("\r\n", "\n"))
    for block_bytes in (1, 7, 30, 1 << 20):
        sources, found, columns, at = read(path, block_bytes, places=True)
        assert found == edges
        assert sources.node_types[0].num_nodes == num_nodes
        assert columns.get("node_size", []) == sizes
        expected = weights if digits[1] == "1" else []
        assert columns.get("node_weight", []) == ([row[0] for row in expected] if ncon == 1 else expected)
        assert at == [str(dst + 1)[:1].encode() for _, dst, _ in edges]


@pytest.mark.parametrize("name", ["karate.graph", "lesmis.graph", "tiny_01.graph", "example_weighted.graph"])
def test_real_files(real_samples, name):
    path = real_samples / "metis" / name
    num_nodes, edges, weights, _ = parse_naively(path.read_text())
    for block_bytes in (10, 200, 1 << 20):
        sources, found, columns, _ = read(path, block_bytes)
        assert found == edges
        assert sources.node_types[0].num_nodes == num_nodes
        assert columns.get("node_weight", []) == [row[0] for row in weights if row]
    with Storage() as storage:
        assert sniff(storage, [str(path)]).decoder == "metis"


def test_karate_is_networkx_own(real_samples):
    _, edges, *_ = read(real_samples / "metis/karate.graph")
    club = nx.karate_club_graph()
    assert {(src, dst) for src, dst, _ in edges} == {*club.edges, *((dst, src) for src, dst in club.edges)}


def test_headers_that_count_directed_edges(real_samples):
    path = real_samples / "gapbs/4w.graph"
    sources, edges, *_ = read(path)
    assert edges == parse_naively(path.read_text())[1]
    assert sources.messages == (
        f"{path}:1:1: the header counts each of the 53 neighbours, not pairs of them: taken as directed edges",
    )
    path = real_samples / "gapbs/4.graph"
    sources, plain, *_ = read(path)
    assert [edge[:2] for edge in plain] == [edge[:2] for edge in edges]
    assert sources.messages == (
        f"{path}:1:1: the format says that nodes have sizes, but the numbers add up without: taken as neighbours only",
    )


def test_dropped_columns_and_types(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("2 1 11\n7 2 3\n8 1 3\n")
    sources, edges, columns, _ = read(path, drop_columns=("weight", "node_weight"), relation="atom:bond:atom")
    assert (edges, columns, sources.columns) == ([(0, 1, None), (1, 0, None)], {}, ())
    assert sources.edge_types[0].src_type == "atom"
    assert message(read, path, drop_columns=("w",)) == (
        f"{path}: --drop-column w: there is no such column\n  fix: use one of node_size, node_weight, weight"
    )
    assert message(read, path, relation="a:b:c") == (
        f"{path}: a METIS graph has one node type, but its edges go from 'a' to 'c'\n  fix: name one type for both ends"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1:1: there is no header\n  fix: begin the file with 'nodes edges'"),
        ("% only\n", ":2:1: there is no header\n  fix: begin the file with 'nodes edges'"),
        ("2\n", ":1:1: expected 'nodes edges [format [weights]]', found '2'\n  fix: write the header's line again"),
        (
            "2 1 2\n2\n1\n",
            ":1:1: the format must be three digits 0 or 1, found '2'\n"
            "  fix: write 1 for edge weights, 10 for node weights, 100 for node sizes, or their sum",
        ),
        ("2 1 1 2\n2 1\n1 1\n", ":1:1: 2 weights a node, but format 1 says there are none\n  fix: write format 011"),
        (
            "2 1 10 0\n2\n1\n",
            ":1:1: format 10 says that nodes have weights, but their number is 0\n  fix: correct the header",
        ),
        (
            "%\n3 1\n2\n1\n",
            ":2:1: 2 lines of nodes follow, but the header says 3\n"
            "  fix: write a line for every node, an empty one where it has no neighbour; the file may be cut off",
        ),
        (
            "2 2\n2\n1\n1\n",
            ":1:1: 3 neighbours follow, but 2 edges have 4: each stands in the lines of both its ends\n"
            "  fix: correct the header's number of edges, or its format; the file may be cut off",
        ),
        (
            "2 1 1\n2 1\n1\n",
            ":1:1: 3 numbers follow, but 1 edges have 2: each stands in the lines of both its ends\n"
            "  fix: correct the header's number of edges, or its format; the file may be cut off",
        ),
        (
            "2 1\n3\n1\n",
            ":2:1: the neighbour must be from 1 to 2, found 3\n  fix: correct the line, or the number of nodes in line 1",
        ),
        (
            "2 1\n 0\n1\n",
            ":2:2: the neighbour must be from 1 to 2, found 0\n  fix: correct the line, or the number of nodes in line 1",
        ),
        ("2 1\nx\n1\n", ":2:1: expected a whole number, found 'x'\n  fix: write numbers as decimal digits"),
        ("2 1 1\n2 x\n1 1\n", ":2:3: the weight must be a number, found 'x'\n  fix: correct the weight"),
        (
            "2 1 1\n2 1 1\n1\n",
            ":2:5: neighbour 1 has no weight, but the header's format says that each has one\n"
            "  fix: add the weight, or correct the format in line 1",
        ),
        (
            "2 1 11\n\n1 1 1 1 1 1\n",
            ":2:1: the line must begin with 1 number of its node\n  fix: add what is missing, or correct the format in line 1",
        ),
        ("2 1 10\n-1 2\n3 1\n", ":2:1: expected a whole number, found '-1'\n  fix: write numbers as decimal digits"),
        (
            "2 1\n2\n\n1\n",
            ":4:1: a line follows that of the last node: line 1 says 2 nodes\n"
            "  fix: correct the number of nodes, or remove the line",
        ),
        ("2 1 1\n2 1e99\n1 1\n", ":2:1: the weight is too large for float32, found 1e+99\n  fix: pass --weight-dtype float64"),
    ],
)
def test_bad_files(tmp_path, text, expected):
    path = tmp_path / "bad.graph"
    path.write_text(text)
    assert message(check_input, [str(path)], ConvertOptions(format="metis")) == f"{path}{expected}"


def test_comments_in_too_many_places(tmp_path, monkeypatch):
    monkeypatch.setattr("graphprep.kernels.cpu.text.line_scan._MOST_RUNS", 2)
    path = tmp_path / "a.graph"
    path.write_text("3 2\n%\n2\n%\n%\n1 3\n2\n")
    assert read(path)
    path.write_text("3 2\n%\n2\n%\n%\n1 3\n%\n2\n")
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: comments stand in more than a million places\n  fix: remove them"


def test_one_file_only(tmp_path):
    with Storage() as storage:
        assert message(MetisDecoder().plan, storage, ["a", "b"]) == (
            "a METIS graph is one file, found 2\n  fix: convert the files on their own"
        )


def test_blank_lines_behind_the_last_node_are_nothing(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("3 1\n2\n1\n\n\n  \n% end\n")
    assert read(path)[1] == [(0, 1, None), (1, 0, None)]


@pytest.mark.parametrize(
    ("name", "text", "decoder"),
    [
        ("a.txt", "0 1\n1 2\n2 0\n", "edges"),
        ("g", "4 3\n2 3 4\n1\n1\n1\n", "metis"),
        ("g.graph", "4 3\n2 3 4\n1\n1\n1\n", "metis"),
        ("g.graph", "4 3\n2 3 4\n1\n1\n", "metis"),  # a line is missing: reading says so
        ("g.graph", "4 3\n2 3 4\n1\n1\n1 2\n", "metis"),  # a neighbour too many
        ("g.graph", "4 3\n2 3\n1 4\n", "edges"),  # an edge list that is called so
    ],
)
def test_sniffing(tmp_path, name, text, decoder):
    (tmp_path / name).write_text(text)
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path / name)]).decoder == decoder
    assert find_decoder("metis") is MetisDecoder


def test_rows_are_int64_and_weights_of_the_dtype_asked_for(tmp_path):
    path = tmp_path / "g.graph"
    path.write_text("2 1 111 2\n1 2 3 2 0.1\n4 5 6 1 0.1\n")
    _, edges, columns, _ = read(path, weight_dtype="float64")
    assert edges == [(0, 1, 0.1), (1, 0, 0.1)]
    assert columns == {"node_size": [1, 4], "node_weight": [[2, 3], [5, 6]]}
    assert read(path)[1][0][2] == np.float32(0.1)


def test_no_line_is_skipped_in_a_graph_of_several_tables(tmp_path):
    """Cutting a line out would give the lines behind it to other nodes."""
    path = tmp_path / "g.graph"
    path.write_text("3 1\n2\n1 x\n\n")
    table = TableConfig(files=(str(path),), format="metis")
    graph = GraphConfig(edges=(EdgeTable("a", "to", "a", table),))
    with pytest.raises(GraphprepError) as caught:
        check_input([], ConvertOptions(graph=graph, on_error="skip"))
    assert str(caught.value) == (
        f"{path}:1:1: 3 neighbours follow, but 1 edges have 2: each stands in the lines of both its ends\n"
        "  fix: correct the header's number of edges, or its format; the file may be cut off"
    )
    path.write_text("3 1\n2\nx\n\n")
    with pytest.raises(GraphprepError) as caught:
        check_input([], ConvertOptions(graph=graph, on_error="skip"))
    assert str(caught.value) == f"{path}:3:1: expected a whole number, found 'x'\n  fix: write numbers as decimal digits"
