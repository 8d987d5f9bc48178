"""Plain text edge lists to arrays, against Python's own reading of lines."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphprep.edges import array_rows, plain_text
from graphprep.edges import files as edge_files
from graphprep.edges.arrays import build_adjacency
from graphprep.edges.files import read_adjacency, read_edges
from graphprep.model.errors import DataError, StorageError, UsageError

THREADS = (1, 2, 4)


@pytest.fixture
def small(monkeypatch):
    """Blocks, samples and buckets of a few lines, so that small texts have many."""
    monkeypatch.setattr(plain_text, "BLOCK_BYTES", 64)
    monkeypatch.setattr(edge_files, "_SAMPLE_BYTES", 32)
    monkeypatch.setattr(array_rows, "_BUCKET_BITS", 3)


def by_python(text, delimiter=None):
    """Read the lines that hold edges."""
    rows = [line.split(delimiter) for line in text.split("\n") if line.strip() and line.strip()[0] not in "#%"]
    return [[column(row[at]) for row in rows] for at, column in enumerate((int, int, float)) if rows and at < len(rows[0])]


def same_adjacency(found, expected):
    assert found.layout == expected.layout
    assert found.indptr.tolist() == expected.indptr.tolist()
    assert found.indices.dtype == expected.indices.dtype
    assert found.indices.tolist() == expected.indices.tolist()
    assert (found.edge_ids is None) == (expected.edge_ids is None)
    if found.edge_ids is not None:
        assert found.edge_ids.tolist() == expected.edge_ids.tolist()


ids = st.one_of(st.integers(0, 30), st.integers(0, 100_000))
lines = st.one_of(
    st.tuples(ids, ids).map(lambda pair: f"{pair[0]} {pair[1]}"),
    st.tuples(ids, ids).map(lambda pair: f" {pair[0]}\t {pair[1]} \r"),
    st.sampled_from(["", "# 1 2", "  % comment", "\r"]),
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    some=st.lists(lines, max_size=60),
    ends=st.booleans(),
    layout=st.sampled_from(["csc", "csr"]),
    sort_neighbors=st.booleans(),
    threads=st.sampled_from(THREADS),
)
def test_lines_are_read_as_python_reads_them(tmp_path, small, some, ends, layout, sort_neighbors, threads):
    text = "\n".join(some) + "\n" * ends
    path = tmp_path / "edges.txt"
    path.write_bytes(text.encode())
    src, dst = by_python(text) or ([], [])
    found = read_edges(path, threads=threads)
    assert [each.dtype for each in found] == [np.int64, np.int64]
    assert [each.tolist() for each in found] == [src, dst]
    for num_nodes in (None, 100_001):
        for edge_ids in (False, True):
            options = {"sort_neighbors": sort_neighbors, "edge_ids": edge_ids, "threads": threads}
            expected = build_adjacency(src, dst, num_nodes, layout, **options)
            same_adjacency(read_adjacency(path, num_nodes, layout, **options), expected)


@pytest.mark.parametrize("growing", [False, True])
def test_ids_that_grow_beyond_what_was_seen(tmp_path, small, growing):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 20, (2, 3000))
    if growing:
        src += np.arange(3000) ** 2 // 100
        dst[1500] = 2**22
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{a} {b}\n" for a, b in zip(src, dst, strict=True)))
    for layout in ("csc", "csr"):
        for threads in THREADS:
            expected = build_adjacency(src, dst, None, layout, edge_ids=False, sort_neighbors=True)
            found = read_adjacency(path, None, layout, edge_ids=False, sort_neighbors=True, threads=threads)
            same_adjacency(found, expected)


def test_more_edges_than_were_expected(tmp_path, small, monkeypatch):
    monkeypatch.setattr(edge_files, "_MORE_EDGES", 0)
    monkeypatch.setattr(edge_files, "_SAMPLES", 2)
    path = tmp_path / "edges.txt"
    comments = "# a long comment, and nothing else\n" * 20
    path.write_text(comments + "1 2\n3 1\n" * 500 + comments)
    found = read_adjacency(path, edge_ids=False)
    same_adjacency(found, build_adjacency([1, 3] * 500, [2, 1] * 500, edge_ids=False))


def test_ids_past_int32(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text(f"{2**31} 0\n{2**40} 1\n")
    for edge_ids in (False, True):
        found = read_adjacency(path, (2**40 + 1, 2), edge_ids=edge_ids)
        assert found.indices.dtype == np.int64
        assert found.indices.tolist() == [2**31, 2**40]


@pytest.mark.parametrize("weight", ["0.1", "1e-3", "-7", "3", "123456789.123456789123", "1e308", "inf", "NaN"])
def test_weights_are_those_of_float(tmp_path, small, weight):
    path = tmp_path / "edges.txt"
    text = "".join(
        f"{row} {row * row} {weight if row % 3 else row / 7}\n" + "# a comment\n" * (row % 5 == 0) for row in range(50)
    )
    path.write_text(text)
    for threads in THREADS:
        src, dst, weights = read_edges(path, weights=True, threads=threads)
        expected = by_python(text)
        assert [src.tolist(), dst.tolist()] == expected[:2]
        assert weights.dtype == np.float64
        assert weights.tobytes() == np.array(expected[2]).tobytes()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_types_of_ids(tmp_path, dtype):
    most = np.iinfo(dtype).max
    path = tmp_path / "edges.txt"
    path.write_text(f"0 {most}\n{most} 1\n")
    src, dst = read_edges(path, dtype=dtype)
    assert src.dtype == dst.dtype == dtype
    assert [src.tolist(), dst.tolist()] == [[0, most], [most, 1]]
    for weights, behind in ((False, ""), (True, " 0.5")):
        path.write_text(f"# ids\n0 1{behind}\n0 {most + 1}{behind}\n")
        with pytest.raises(DataError) as caught:
            read_edges(path, dtype=dtype, weights=weights)
        assert str(caught.value).startswith(f"{path}:3: an ID does not fit {dtype}")


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [("1,2\n3,4", None), ("1\t2\n3\t4", None), ("1 , 2\n3,4\n", None), ("1;2\n3;4", ";"), ("1  2\n3 4", " ")],
)
def test_delimiters(tmp_path, text, delimiter):
    path = tmp_path / "edges.csv"
    path.write_text("# first\n" * (delimiter is None) + text)
    assert [each.tolist() for each in read_edges(path, delimiter=delimiter)] == [[1, 3], [2, 4]]


def test_headers_byte_order_marks_and_compression(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_bytes(b"\xef\xbb\xbfsrc,dst\n1,2\n")
    assert [each.tolist() for each in read_edges(path, skip_lines=1)] == [[1], [2]]
    packed = tmp_path / "edges.gz"
    packed.write_bytes(gzip.compress(b"5 6\n7 8\n"))
    assert [each.tolist() for each in read_edges(packed)] == [[5, 7], [6, 8]]
    assert [each.tolist() for each in read_edges(str(packed), skip_lines=9)] == [[], []]
    assert read_adjacency(packed, layout="csr").indices.tolist() == [6, 8]


def test_an_empty_file(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("")
    assert [each.size for each in read_edges(path, weights=True)] == [0, 0, 0]
    for edge_ids in (False, True):
        assert read_adjacency(path, 3, edge_ids=edge_ids).indptr.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize(
    "bad", ["1 x", "1", "1 2 3", "-1 2", "1,2", "a line that is far longer than what a message should show"]
)
def test_a_line_that_is_no_edge(tmp_path, small, bad):
    path = tmp_path / "edges.txt"
    path.write_text("".join(f"{row} {row}\n" for row in range(70)) + f"{bad}\n1 2\n")
    for read in (read_edges, lambda path: read_adjacency(path, edge_ids=False)):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}:71: expected two IDs, blanks between them, found '{bad[:40]}'")


def test_an_id_that_is_no_node(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n1 5\n")
    for edge_ids in (False, True):
        with pytest.raises(DataError) as caught:
            read_adjacency(path, 5, edge_ids=edge_ids)
        assert str(caught.value).startswith(f"{path}: dst[1]: expected an ID in 0..4, found 5")


def test_wrong_arguments(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("0 1\n")
    for options in ({"delimiter": "::"}, {"delimiter": "1"}, {"dtype": "float32"}, {"threads": 0}):
        with pytest.raises(UsageError):
            read_edges(path, **options)
    with pytest.raises(UsageError, match="layout 'coo' has no rows"):
        read_adjacency(path, layout="coo")
    with pytest.raises(StorageError):
        read_edges(tmp_path / "none.txt")
