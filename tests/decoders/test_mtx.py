"""Matrix Market files against scipy.io.mmread; every error to the letter; any cut into blocks gives the same edges."""

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.pipeline import check_input
from graphprep.decoders.matrices.mtx import MtxDecoder
from graphprep.kernels.cpu.text.line_scan import LineScan
from graphprep.model.errors import GraphprepError
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

relaxed = settings(deadline=None, max_examples=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("mtx")


def read(path, block_bytes=1 << 20, *, places=False, **options):
    """Read a file in blocks: (sources, [(src, dst)], weights or None, places of sources)."""
    with Storage() as storage:
        decoder = MtxDecoder(**options)
        sources = decoder.plan(storage, [str(path)])
        edges, weights, at = [], [], []
        for span in sources.spans:
            for block in text_blocks(storage, span, block_bytes):
                rows = decoder.decode(block, places)
                check_rows(rows, places=places)
                edges += zip(rows.edges.src.tolist(), rows.edges.dst.tolist(), strict=True)
                for chunk in rows.edges.columns:
                    weights += chunk.values.tolist()
                if places:
                    at += [(block.first_line, int(byte)) for byte in rows.edges.at_src]
    return sources, edges, weights if weights or sources.columns else None, at


def message(function, *args, **options):
    with pytest.raises(GraphprepError) as caught:
        function(*args, **options)
    return str(caught.value)


def entries_of(matrix):
    coo = matrix.tocoo()
    return sorted(zip(coo.row.tolist(), coo.col.tolist(), np.asarray(coo.data, float).tolist(), strict=True))


def check(path):
    """Compare with SciPy, as multisets of entries, and for every cut into blocks."""
    expected = entries_of(scipy.io.mmread(path, spmatrix=False))
    whole = read(path, weight_dtype="float64")
    weights = whole[2] if whole[2] is not None else [1.0] * len(whole[1])
    assert sorted((*edge, weight) for edge, weight in zip(whole[1], weights, strict=True)) == expected
    for block_bytes in (1, 9, 40):
        for places in (False, True):
            assert read(path, block_bytes, places=places, weight_dtype="float64")[1:3] == whole[1:3]
    return whole


matrices = st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from(["general", "symmetric", "skew-symmetric"])).flatmap(
    lambda s: st.tuples(
        st.just((s[0], s[1] if s[2] == "general" else s[0], s[2])),
        st.lists(
            st.tuples(
                st.integers(1, s[0]),
                st.integers(1, s[1] if s[2] == "general" else s[0]),
                st.floats(-100, 100, width=32) | st.integers(-5, 5),
            ),
            max_size=12,
        ),
    )
)


@relaxed
@given(
    matrix=matrices,
    field=st.sampled_from(["pattern", "real", "integer"]),
    comments=st.lists(st.sampled_from(["% comment", "%", "", "%%GraphBLAS type bool"]), max_size=3),
    end=st.sampled_from(["\n", "\r\n"]),
    compress=st.booleans(),
    tail=st.sampled_from(["", "\n", "\n\n  \n"]),
)
def test_any_matrix_is_what_scipy_reads(folder, matrix, field, comments, end, compress, tail):
    (rows, columns, symmetry), entries = matrix
    if symmetry != "general":
        entries = [(max(i, j), min(i, j), v) for i, j, v in entries if symmetry == "symmetric" or i != j]
    if field == "pattern" and symmetry == "skew-symmetric":
        field = "real"
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}", *comments, f"{rows} {columns} {len(entries)}"]
    for i, j, value in entries:
        text = "" if field == "pattern" else f" {int(value)}" if field == "integer" else f" {value!r}"
        lines.append(f"{i}  {j}{text}")
    data = (end.join(lines) + tail.replace("\n", end)).encode()
    path = folder / ("m.mtx.gz" if compress else "m.mtx")
    path.write_bytes(gzip.compress(data) if compress else data)
    sources, *_ = check(path)
    names = {node.name: node.num_nodes for node in sources.node_types}
    assert names == ({"_N": rows} if rows == columns else {"row": rows, "col": columns})
    assert sources.num_edges == ((len(entries),) if symmetry == "general" else (None,))


def test_a_mirrored_edge_follows_its_own(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 0.5\n3 2 -2\n")
    assert read(path)[1:3] == ([(1, 0), (0, 1), (2, 1), (1, 2)], [0.5, -0.5, -2, 2])
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n3 1\n2 1\n")
    assert read(path)[1:3] == ([(0, 0), (2, 0), (0, 2), (1, 0), (0, 1)], None)


def test_a_mirrored_edge_has_its_entrys_places(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n 3 1\n")
    *_, at = read(path, places=True)
    assert at == [(1, 58), (1, 60)]


@pytest.mark.parametrize(
    "name", ["matrix_market/A.mtx", "matrix_market/karate.mtx", "matrix_market/west0067.mtx", "gapbs/4.mtx"]
)
def test_real_files(real_samples, name):
    check(real_samples / name)


def test_types_and_values(tmp_path):
    path = tmp_path / "m.mtx"
    path.write_text("%%MatrixMarket matrix coordinate integer general\n2 3 1\n1 3 7\n")
    sources, edges, weights, _ = read(path, relation="user:rates:item", drop_columns=("weight",))
    assert (edges, weights, sources.columns) == ([(0, 2)], None, ())
    assert [(node.name, node.num_nodes) for node in sources.node_types] == [("user", 2), ("item", 3)]
    sources, *_ = read(path, relation="u:r:u")
    assert [(node.name, node.num_nodes) for node in sources.node_types] == [("u", 3)]
    assert read(path)[0].columns[0].key.dtype == "float32"


HEAD = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ":1:1: expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'\n  fix: write the file again"),
        (
            "%%MatrixMarket matrix\n",
            ":1:1: expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'\n  fix: write the file again",
        ),
        (
            "%%MatrixMarket matrix array real general\n1 1\n0\n",
            ":1:1: a dense matrix (format 'array') is not read as a graph\n"
            "  fix: write the matrix again as coordinate, with pattern, real or integer values (scipy.io.mmwrite does)",
        ),
        (
            "%%MatrixMarket matrix coordinate complex hermitian\n1 1 0\n",
            ":1:1: complex values are not read\n"
            "  fix: write the matrix again as coordinate, with pattern, real or integer values (scipy.io.mmwrite does)",
        ),
        (
            "%%MatrixMarket matrix coordinate real odd\n1 1 0\n",
            ":1:1: unknown symmetry 'odd'\n  fix: use one of general, symmetric, skew-symmetric",
        ),
        (
            "%%MatrixMarket matrix coordinate pattern skew-symmetric\n1 1 0\n",
            ":1:1: a pattern cannot be skew-symmetric: it has no values to negate\n"
            "  fix: write the matrix again as coordinate, with pattern, real or integer values (scipy.io.mmwrite does)",
        ),
        (
            "%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n",
            ":2:1: a symmetric matrix must be square, found 2 x 3\n  fix: correct the size line, or the banner",
        ),
        (HEAD + "% nothing\n", ":3:1: the file ends before its size line\n  fix: copy the file again"),
        (
            HEAD + "2 2\n1 1 1\n",
            ":2:1: expected the numbers of rows, columns and entries, found '2 2'\n"
            "  fix: write the size line with three whole numbers below 2^63",
        ),
        (
            HEAD + "2 2 2\n1 1 1\n% end\n",
            ":3:1: the file ends after 1 entries, but the size line says 2\n  fix: copy the file again; it may be cut off",
        ),
        (
            HEAD + "2 2 1\n1 1 1\n\n2 2 2\n",
            ":5:1: the size line says 1 entries, but more follow\n  fix: correct line 2, or remove the surplus",
        ),
        (
            HEAD + "2 2 1\n1 1\n",
            ":3:4: expected 3 fields (row, column, value), found 2\n  fix: give every entry a row, a column and a value",
        ),
        (
            HEAD + "2 2 1\n1 3 1\n",
            ":3:3: the column must be from 1 to 2, found 3\n  fix: correct the entry, or the size line",
        ),
        (HEAD + "2 2 1\n0 2 1\n", ":3:1: the row must be from 1 to 2, found 0\n  fix: correct the entry, or the size line"),
        (HEAD + "2 2 1\n-1 2 1\n", ":3:1: the row must be from 1 to 2, found -1\n  fix: correct the entry, or the size line"),
        (
            HEAD + "2 2 2\n0 2 1\nx 2 1\n",
            ":3:1: the row must be from 1 to 2, found 0\n  fix: correct the entry, or the size line",
        ),
        (HEAD + "2 2 1\n1 x 1\n", ":3:3: the column must be an integer, found 'x'\n  fix: write indices as decimal digits"),
        (HEAD + "2 2 1\n1 1 x\n", ":3:5: the value must be a number, found 'x'\n  fix: correct the value"),
        (
            HEAD + "2 2 1\n1 1 1e99\n",
            ":3:5: field 'weight' is too large for float32, found 1e99\n  fix: pass --weight-dtype float64",
        ),
        (HEAD + "2 2 1\n#1 1 1\n", ":3:1: the row must be an integer, found '#'\n  fix: begin comments with '%'"),
        (
            "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n",
            ":3:1: a skew-symmetric matrix has no entries on its diagonal, found (2, 2)\n  fix: remove the entry",
        ),
    ],
)
def test_bad_files(tmp_path, text, expected):
    path = tmp_path / "bad.mtx"
    path.write_text(text)
    assert message(check_input, [str(path)], options_of("mtx")) == f"{path}{expected}"


def options_of(name):
    from graphprep.model.options.convert import ConvertOptions

    return ConvertOptions(format=name)


def test_files_of_other_shapes_and_columns(tmp_path):
    for name, size in (("a", "2 2"), ("b", "3 3")):
        (tmp_path / f"{name}.mtx").write_text(f"{HEAD}{size} 0\n")
    with Storage() as storage:
        found = message(MtxDecoder().plan, storage, [str(tmp_path / "a.mtx"), str(tmp_path / "b.mtx")])
    assert found == (
        f"{tmp_path}/b.mtx:2:1: a 3 x 3 matrix with values, but {tmp_path}/a.mtx is a 2 x 2 matrix with values\n"
        "  fix: convert the files on their own"
    )
    assert message(read, tmp_path / "a.mtx", drop_columns=("x",)) == (
        f"{tmp_path}/a.mtx: --drop-column x: there is no such column\n  fix: use weight"
    )


# ------------------------------------------------------------------------------------------------------------ counting


def count_naively(text, most):
    words = records = 0
    last = surplus = -1
    comments = []
    lines = text.split(b"\n")
    for number, line in enumerate(lines):
        found = line.translate(bytes([32] * 33) + bytes(range(33, 256))).split()
        if found and found[0].startswith(b"%"):
            comments.append(number)
        elif found:
            words, records, last = words + len(found), records + 1, number
            surplus = number if records == most + 1 else surplus
    return len(lines) - 1, words, records, last, surplus, comments


@relaxed
@given(
    text=st.lists(st.sampled_from([b"1", b" ", b"\n", b"%", b"\r\n", b"\t", b"23"]), max_size=40).map(b"".join),
    sizes=st.lists(st.integers(1, 9), min_size=1),
    most=st.integers(0, 9),
)
def test_any_cut_counts_the_same(text, sizes, most):
    lines, words, records, last, surplus, comments = count_naively(text, most)
    for counted in (True, False):
        scan = LineScan(counted, most)
        at = turn = 0
        while at < len(text):
            size = sizes[turn % len(sizes)]
            scan.feed(text[at : at + size])
            at, turn = at + size, turn + 1
        assert (scan.num_lines, scan.num_words) == (lines, words)
        assert [line for first, size in scan.runs for line in range(first, first + size)] == comments
        if counted:
            assert (scan.num_records, scan.last_record, scan.surplus) == (records, last, surplus)
