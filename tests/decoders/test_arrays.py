"""Arrays of edges and matrices against NumPy and SciPy reading the same files; every error to the letter."""

import io
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.decoders.arrays.decoder import ArraysDecoder, plan_edge_files
from graphprep.decoders.arrays.read import decimal_texts
from graphprep.model.errors import DataError, DecodeError, GraphprepError
from graphprep.model.graph_config import EdgeTable, TableConfig
from graphprep.model.rows import Relation
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows

sp = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")

relaxed = settings(deadline=None, max_examples=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("arrays")


def read(paths, max_rows=1000, *, places=False, **options):
    """Plan files and read all spans: (sources, src, dst, {column: values}, {node column: list of rows})."""
    paths = [str(path) for path in (paths if isinstance(paths, list) else [paths])]
    with Storage() as storage:
        decoder = ArraysDecoder(**options)
        sources = decoder.plan(storage, paths)
        src, dst, columns, aligned = [], [], {}, {}
        for span in sources.spans:
            with storage.open(span.url) as handle:
                for rows in decoder.read(handle, span, max_rows, places):
                    check_rows(rows, places=places)
                    if rows.edges is not None:
                        assert rows.edges.num_rows <= max_rows
                        src.append(rows.edges.src)
                        dst.append(rows.edges.dst)
                        for chunk in rows.edges.columns:
                            columns.setdefault(chunk.key.name, []).append(chunk.values.reshape(rows.num_records, -1))
                    for part in rows.aligned:
                        aligned.setdefault(part.chunk.key.name, []).append(part)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    none = np.zeros(0, np.uint64)
    return sources, np.concatenate(src or [none]), np.concatenate(dst or [none]), joined, aligned


def check_pairs(path, edges, **options):
    for max_rows in (1, 3, 1000):
        _, src, dst, _, _ = read(path, max_rows, places=True, **options)
        assert src.dtype == dst.dtype == np.uint64
        assert src.tolist() == edges[0].tolist()
        assert dst.tolist() == edges[1].tolist()


def message(function, *args, **options):
    with pytest.raises(GraphprepError) as caught:
        function(*args, **options)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------ edge arrays


@relaxed
@given(
    edges=st.integers(0, 9).flatmap(
        lambda n: st.lists(st.integers(0, 2**31 - 1), min_size=2 * n, max_size=2 * n).map(
            lambda v: np.array(v, np.int64).reshape(2, -1)
        )
    ),
    dtype=st.sampled_from(["<i4", ">i4", "<i8", ">i8", "<u4", ">u8"]),
    fortran=st.booleans(),
    transposed=st.booleans(),
    kind=st.sampled_from(["npy", "npz", "deflated"]),
)
def test_pairs_are_what_numpy_loads(folder, edges, dtype, fortran, transposed, kind):
    array = (edges.T if transposed else edges).astype(dtype, order="F" if fortran else "C")
    path = folder / ("pairs.npy" if kind == "npy" else "pairs.npz")
    if kind == "npy":
        np.save(path, array)
        loaded = np.load(path)
    else:
        (np.savez if kind == "npz" else np.savez_compressed)(path, edge_index=array)
        loaded = np.load(path)["edge_index"]
    shape = {} if array.shape != (2, 2) else {"array_shape": "ex2" if transposed else "2xe"}
    check_pairs(path, loaded.T if transposed else loaded, **shape)


@pytest.mark.parametrize("keys", [("src", "dst"), ("row", "col"), ("senders", "receivers"), ("source", "target")])
def test_two_arrays_in_one_file_or_in_two(tmp_path, keys):
    edges = np.array([[5, 1, 1], [2, 2, 0]])
    np.savez(tmp_path / "g.npz", **dict(zip(keys, edges, strict=True)))
    check_pairs(tmp_path / "g.npz", edges)
    for key, ends in zip(keys, edges, strict=True):
        np.save(tmp_path / f"{key}.npy", ends)
    check_pairs([tmp_path / f"{key}.npy" for key in keys], edges)


def test_several_files_of_edges_follow_each_other(tmp_path):
    first, second = np.array([[1, 2, 3], [4, 5, 6]]), np.array([[7], [8]])
    np.save(tmp_path / "a.npy", first)
    np.save(tmp_path / "b.npy", second)
    check_pairs([tmp_path / "a.npy", tmp_path / "b.npy"], np.hstack([first, second]))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_columns_beside_edges(tmp_path, save, order):
    rng = np.random.default_rng(3)
    arrays = {
        "edge_index": rng.integers(0, 6, (2, 50)),
        "edge_weight": rng.random(50),
        "edge_attr": np.asarray(rng.random((50, 3)), order=order),
        "x": np.asarray(rng.random((6, 2)).astype(np.float32), order=order),
        "y": np.arange(6, dtype=np.int8),
    }
    save(tmp_path / "g.npz", **arrays)
    for max_rows in (1, 7, 100):
        sources, src, _, columns, aligned = read(tmp_path / "g.npz", max_rows)
        assert sources.nodes == "identity"
        assert [(node.name, node.num_nodes) for node in sources.node_types] == [("_N", 6)]
        assert src.tolist() == arrays["edge_index"][0].tolist()
        np.testing.assert_array_equal(columns["weight"][:, 0], arrays["edge_weight"].astype(np.float32))
        np.testing.assert_array_equal(columns["edge_attr"], arrays["edge_attr"])
        for name in ("x", "y"):
            parts = aligned[name]
            assert [part.start for part in parts] == np.cumsum([0, *(part.num_rows for part in parts)])[:-1].tolist()
            values = np.concatenate([part.chunk.values.reshape(part.num_rows, *part.chunk.item_shape) for part in parts])
            np.testing.assert_array_equal(values, arrays[name])
            assert values.dtype == arrays[name].dtype


def test_a_2x2_array_is_taken_as_two_rows_and_told_so(tmp_path):
    path = tmp_path / "e.npy"
    edges = np.array([[1, 2], [3, 4]])
    np.save(path, edges)
    assert read(path)[0].messages == (
        f"{path}: 2 x 2 may be two rows of ends or two pairs: taken as two rows, all sources first (--array-shape ex2 takes pairs)",
    )
    check_pairs(path, edges)
    check_pairs(path, edges.T, array_shape="ex2")
    assert read(path, array_shape="2xe")[0].messages == ()


def test_index_base(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[1, 2, 3], [3, 2, 1]], np.uint16))
    check_pairs(tmp_path / "e.npy", np.array([[0, 1, 2], [2, 1, 0]]), index_base=1)


@pytest.mark.parametrize(("id_type", "signed"), [("int", ("_N",)), ("auto", ("_N",)), ("uint", ()), (None, ())])
def test_integers_may_be_signed(tmp_path, id_type, signed):
    pairs = np.array([[5, 2, 1], [3, 2**40, 0]])
    pairs[0, 1] -= 9 * bool(signed)
    np.save(tmp_path / "e.npy", pairs)
    sources, src, dst, _, _ = read(tmp_path / "e.npy", id_type=id_type)
    assert sources.signed_ids == signed
    assert np.array_equal(np.stack([src, dst]).view(np.int64), pairs)


def test_integers_as_texts(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[-5, 20], [7, 7]]))
    with Storage() as storage:
        (span,) = ArraysDecoder(id_type="string").plan(storage, [str(tmp_path / "e.npy")]).spans
        with storage.open(span.url) as handle:
            (rows,) = ArraysDecoder(id_type="string").read(handle, span, 1000)
    assert (rows.edges.src.values.tobytes(), rows.edges.src.offsets.tolist()) == (b"-520", [0, 2, 4])


def test_the_nodes_of_a_matrix_are_positions(tmp_path):
    sp.save_npz(tmp_path / "m.npz", sp.eye(3, format="csr"))
    assert message(read, tmp_path / "m.npz", id_type="string") == (
        f"{tmp_path / 'm.npz'}: --id-type string is for lists of edges; the nodes of a matrix are its positions\n"
        "  fix: leave out --id-type"
    )


def test_gzipped(tmp_path):
    import gzip

    edges = np.array([[1, 2, 3], [4, 5, 6]])
    file = io.BytesIO()
    np.save(file, edges)
    (tmp_path / "e.npy.gz").write_bytes(gzip.compress(file.getvalue()))
    check_pairs(tmp_path / "e.npy.gz", edges)


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
@relaxed
def test_decimal_texts(values):
    texts = decimal_texts(np.array(values, np.int64))
    assert [texts.text(row) for row in range(texts.size)] == [str(value) for value in values]


# ---------------------------------------------------------------------------------------------------------- matrices


@relaxed
@given(
    matrix=st.tuples(st.integers(0, 7), st.integers(0, 7)).flatmap(
        lambda shape: st.lists(
            st.tuples(st.integers(0, max(0, shape[0] - 1)), st.integers(0, max(0, shape[1] - 1)), st.integers(-3, 3)),
            max_size=0 if 0 in shape else 30,
        ).map(lambda entries: (shape, entries))
    ),
    kind=st.sampled_from(["csr", "csc", "coo"]),
    compressed=st.booleans(),
    array=st.booleans(),
)
def test_matrices_are_what_scipy_loads(folder, matrix, kind, compressed, array):
    shape, entries = matrix
    rows, columns, values = (np.array([entry[i] for entry in entries], int) for i in range(3))
    made = (sp.coo_array if array else sp.coo_matrix)((values.astype(float), (rows, columns)), shape=shape).asformat(kind)
    path = folder / "m.npz"
    sp.save_npz(path, made, compressed=compressed)
    loaded = sp.load_npz(path)
    coo = loaded.tocoo()
    for max_rows in (1, 4, 1000):
        sources, src, dst, found, _ = read(path, max_rows, places=True)
        assert (src.tolist(), dst.tolist()) == (coo.row.tolist(), coo.col.tolist())
        if coo.nnz:
            np.testing.assert_array_equal(found["weight"][:, 0], coo.data)
        names = {node.name: node.num_nodes for node in sources.node_types}
        assert names == ({"_N": shape[0]} if shape[0] == shape[1] else {"row": shape[0], "col": shape[1]})
        assert sources.num_edges == (coo.nnz,)


def test_an_explicit_zero_is_an_edge(tmp_path):
    sp.save_npz(tmp_path / "m.npz", sp.csr_matrix(([0.0, 1.0], [1, 0], [0, 1, 2]), shape=(2, 2)))
    _, src, dst, columns, _ = read(tmp_path / "m.npz")
    assert (src.tolist(), dst.tolist(), columns["weight"][:, 0].tolist()) == ([0, 1], [1, 0], [0.0, 1.0])


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("apart", [False, True])
def test_bare_matrices(tmp_path, layout, apart):
    matrix = sp.random(9, 9, 0.4, format=layout, random_state=1)
    parts = {"indptr": matrix.indptr, "indices": matrix.indices, "data": matrix.data}
    if apart:
        for name, part in parts.items():
            np.save(tmp_path / f"{name}.npy", part)
        paths = [tmp_path / f"{name}.npy" for name in sorted(parts)]
    else:
        np.savez(tmp_path / "m.npz", **parts)
        paths = [tmp_path / "m.npz"]
    coo = matrix.tocoo()
    for max_rows in (1, 5, 100):
        sources, src, dst, columns, _ = read(paths, max_rows, input_layout=layout)
        assert (src.tolist(), dst.tolist()) == (coo.row.tolist(), coo.col.tolist())
        np.testing.assert_array_equal(columns["weight"][:, 0], coo.data.astype(np.float32))
        assert sources.node_types[0].num_nodes == 9


def test_dropped_values_and_named_types(tmp_path):
    sp.save_npz(tmp_path / "m.npz", sp.csr_matrix(np.eye(2, 3)))
    sources, _, _, columns, _ = read(tmp_path / "m.npz", drop_columns=("data",), relation="user:rates:item")
    assert columns == {}
    assert sources.edge_types == (Relation("rates", "user", "item"),)
    sources = read(tmp_path / "m.npz", relation="u:r:u")[0]
    assert [(node.name, node.num_nodes) for node in sources.node_types] == [("u", 3)]


def test_a_span_can_be_read_from_any_row(tmp_path):
    matrix = sp.random(20, 20, 0.3, format="csr", random_state=2)
    sp.save_npz(tmp_path / "m.npz", matrix)
    np.save(tmp_path / "e.npy", np.stack(matrix.nonzero()))
    import dataclasses

    coo = matrix.tocoo()
    with Storage() as storage:
        for name in ("m.npz", "e.npy"):
            span = ArraysDecoder().plan(storage, [str(tmp_path / name)]).spans[0]
            for start, stop in ((0, 7), (5, 5), (7, coo.nnz), (coo.nnz - 1, coo.nnz)):
                with storage.open(span.url) as handle:
                    part = dataclasses.replace(span, start=start, stop=stop)
                    found = [rows.edges.src for rows in span.detail.read(handle, part, 4)]
                assert np.concatenate([[], *found]).tolist() == coo.row[start:stop].tolist()


def test_the_layout_of_gnn_benchmark(real_samples):
    path = real_samples / "gnnbench_npz/cora.npz"
    with np.load(path) as file:
        adjacency = sp.csr_matrix((file["adj_data"], file["adj_indices"], file["adj_indptr"]), file["adj_shape"]).tocoo()
        attr = sp.csr_matrix((file["attr_data"], file["attr_indices"], file["attr_indptr"]), file["attr_shape"])
        labels = file["labels"]
    for max_rows in (100, 10**6):
        sources, src, dst, columns, aligned = read(path, max_rows)
        assert (src.tolist(), dst.tolist()) == (adjacency.row.tolist(), adjacency.col.tolist())
        np.testing.assert_array_equal(columns["weight"][:, 0], adjacency.data)
        assert [(node.name, node.num_nodes) for node in sources.node_types] == [("_N", 2708)]
        np.testing.assert_array_equal(np.concatenate([part.chunk.values for part in aligned["labels"]]), labels)
        parts = aligned["attr"]
        np.testing.assert_array_equal(np.concatenate([part.chunk.counts for part in parts]), np.diff(attr.indptr))
        np.testing.assert_array_equal(np.concatenate([part.chunk.coords for part in parts]), attr.indices)
        np.testing.assert_array_equal(np.concatenate([part.chunk.values for part in parts]), attr.data)
        assert [part.start for part in parts] == np.cumsum([0, *(part.num_rows for part in parts)])[:-1].tolist()
    assert sources.messages == (
        f"{path}: arrays node_names, class_names are left out; --node-data and --edge-data take arrays of any name",
    )


# ------------------------------------------------------------------------------------------------------------ errors


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def objects():
    file = io.BytesIO()
    np.save(file, np.array([{}, {}], object), allow_pickle=True)
    return file.getvalue()


def csr(indptr, indices, shape=None, data=None, fmt=b"csr"):
    parts = {"indptr": np.array(indptr), "indices": np.array(indices), "format": np.array(fmt)}
    parts |= {"shape": np.array(shape)} if shape is not None else {}
    return npz(**parts, data=np.ones(len(indices)) if data is None else data)


E3 = np.array([[0, 1, 2], [1, 2, 0]])
BAD = [
    (objects(), {}, "PLACE: the array has dtype '|O', which is not read\n  fix: store numbers or booleans of at most 64 bits"),
    (npy(E3)[:-1], {}, "PLACE: the array is truncated: 175 bytes of 176\n  fix: write the file again"),
    (npy(E3) + b"xx", {}, "PLACE: 2 bytes follow the array\n  fix: write the file again"),
    (npy(E3)[:60], {}, "PLACE: the .npy header is truncated or absurdly long\n  fix: write the file again"),
    (b"hello", {}, "PLACE: neither a .npy nor a .npz file\n  fix: write it with numpy.save or numpy.savez"),
    (
        npy(np.zeros((3, 3), int)),
        {},
        "PLACE: edges must have shape (2, E) or (E, 2), found (3, 3)\n  fix: give edges as one array of 2 x E or E x 2 integers",
    ),
    (npy(E3 / 2), {}, "PLACE: IDs must be integers, found float64\n  fix: store them as int64"),
    (
        npy(E3),
        {"array_shape": "ex2"},
        "PLACE: edges must have shape (E, 2), found (2, 3)\n  fix: drop --array-shape",
    ),
    (
        npy(E3),
        {"input_layout": "csr"},
        "PLACE: --input-layout is for arrays indptr and indices, which are not there\n  fix: drop it",
    ),
    (npz(edge_index=E3)[:200], {}, None),
    (
        npz(a=E3, b=E3),
        {},
        "PLACE: none of the arrays a, b is known to be the edges\n"
        "  fix: call them edge_index, or src and dst, or indptr and indices",
    ),
    (
        npz(src=np.arange(3), dst=np.arange(4)),
        {},
        "PLACE: array 'dst' has 4 items, but src has 3\n  fix: correct the array, or add --drop-column dst",
    ),
    (
        npz(edge_index=E3, edge_weight=np.zeros(4)),
        {},
        "PLACE: array 'edge_weight' has shape (4,), but there are 3 edges\n"
        "  fix: correct the array, or add --drop-column edge_weight",
    ),
    (
        npz(edge_index=E3, edge_weight=np.zeros(3, complex)),
        {},
        "PLACE: edge_weight: weights must be real, found complex numbers\n  fix: add --drop-column edge_weight",
    ),
    (
        npz(edge_index=E3),
        {"drop_columns": ("w",)},
        "PLACE: --drop-column w: there is no such array\n  fix: use one of edge_index",
    ),
    (
        npz(indptr=np.array([0, 1]), indices=np.array([0])),
        {},
        "PLACE: arrays indptr and indices do not say whether a row holds the edges that leave a node or those that enter it\n"
        "  fix: add --input-layout csr (rows are sources) or csc (rows are destinations)",
    ),
    (
        csr([0, 1], [0], (1, 1), fmt=b"bsr"),
        {},
        "PLACE: a SciPy matrix of format 'bsr' is not read\n  fix: save it as CSR: save_npz(path, matrix.tocsr())",
    ),
    (
        csr([0, 1], [0], (2, 1)),
        {},
        "PLACE: array 'indptr' has 2 numbers, but the shape states 2 rows\n"
        "  fix: correct the array, or add --drop-column indptr",
    ),
    (csr([0, 1], [0], None), {}, "PLACE: there is no array 'shape'\n  fix: write the file again"),
    (
        csr([1, 1], [0], (1, 1)),
        {},
        "PLACE: indptr: offset 0 must be 0, found 1\n  fix: write the matrix again",
    ),
    (
        csr([0, 2, 1], [0, 0], (2, 2)),
        {},
        "PLACE: indptr: offset 2 must not be below the one before it, 2, found 1\n  fix: write the matrix again",
    ),
    (
        csr([0, 1, 3], [0, 0], (2, 2)),
        {},
        "PLACE: indptr: offset 2 must not exceed 2, the number of entries, found 3\n  fix: write the matrix again",
    ),
    (
        csr([0, 1, 1], [0, 0], (2, 2)),
        {},
        "PLACE: indptr: offset 2 must be 2, the number of entries, found 1\n  fix: write the matrix again",
    ),
]


@pytest.mark.parametrize(("data", "options", "expected"), BAD)
def test_bad_files(tmp_path, data, options, expected):
    path = tmp_path / "bad"
    path.write_bytes(data)
    found = message(read, path, **options)
    if expected is None:
        expected = f"{path}: the archive cannot be read: File is not a zip file\n  fix: write the file again, or copy it again"
    assert found == expected.replace("PLACE", str(path))


@pytest.mark.parametrize(
    ("data", "options", "row", "expected"),
    [
        (
            npy(np.array([[0, 1, 2], [1, -5, 0]])),
            {},
            1,
            "field 'dst' must not be negative, found -5\n  fix: use --id-type int, or correct the ID",
        ),
        (
            npy(np.array([[1, 1, 0], [1, 0, 1]])),
            {"index_base": 1},
            1,
            "field 'dst' must be at least 1, found 0\n  fix: leave out --index-base",
        ),
        (
            csr([0, 1, 2], [0, 2], (2, 2)),
            {},
            1,
            "field 'indices' must be below 2, the number of nodes of type '_N', found 2\n"
            "  fix: correct the index, or the shape that the file states",
        ),
        (
            csr([0, 1, 2], [0, -1], (2, 2)),
            {},
            1,
            "field 'indices' must not be negative, found -1\n  fix: correct the index",
        ),
        (
            csr([0, 1, 2], [0, 1], (2, 2), data=np.array([1, 1e300])),
            {},
            1,
            "field 'weight' is too large for float32, found 1e+300\n  fix: pass --weight-dtype float64",
        ),
    ],
)
def test_bad_ids_have_a_row(tmp_path, data, options, row, expected):
    (tmp_path / "bad").write_bytes(data)
    with pytest.raises(DecodeError) as caught:
        read(tmp_path / "bad", **options)
    assert (str(caught.value), caught.value.at) == (expected, row)


def test_a_corrupt_member(tmp_path):
    path = tmp_path / "bad.npz"
    np.savez_compressed(path, edge_index=np.arange(4000).reshape(2, -1))
    with zipfile.ZipFile(path) as archive:
        crc = archive.infolist()[0].CRC.to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(crc, b"abcd"))
    assert message(read, path) == (
        f"{path}: edge_index: the archive cannot be read: Bad CRC-32 for file 'edge_index.npy'\n"
        "  fix: write the file again, or copy it again"
    )


def test_twin_members_and_none(tmp_path):
    path = tmp_path / "twins.npz"
    with zipfile.ZipFile(path, "w") as archive, pytest.warns(UserWarning):
        archive.writestr("e.npy", npy(E3))
        archive.writestr("e.npy", npy(E3))
    assert message(read, path) == f"{path}: two arrays are called 'e'\n  fix: write the file again with numpy.savez"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", b"")
    assert message(read, path) == f"{path}: the archive holds no array\n  fix: write it with numpy.savez"


# ----------------------------------------------------------------------------------------------------------- tables


def test_edge_tables_of_arrays_and_their_ids(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[-1, 7], [10, 3], [0, 1]]))
    table = EdgeTable("user", "buys", "item", TableConfig())
    with Storage() as storage:
        plan = plan_edge_files(storage, [str(tmp_path / "e.npy")], table, ids=("int", "string"))
        assert (plan.num_src, plan.num_dst, plan.num_edges) == (None, None, 3)
        (span,) = plan.spans
        with storage.open(span.url) as handle:
            (rows,) = span.detail.read(handle, span, 100)
    assert rows.edges.relation_names == (Relation("buys", "user", "item"),)
    assert rows.edges.src.view(np.int64).tolist() == [-1, 10, 0]
    assert [rows.edges.dst.text(row) for row in range(3)] == ["7", "3", "1"]


def test_an_edge_table_has_files_of_one_kind(tmp_path):
    np.save(tmp_path / "e.npy", E3)
    (tmp_path / "m.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n1 1 0\n")
    with Storage() as storage, pytest.raises(DataError) as caught:
        table = EdgeTable("a", "b", "c", TableConfig(place="--edges a:b:c=*"))
        plan_edge_files(storage, [str(tmp_path / "e.npy"), str(tmp_path / "m.mtx")], table)
    assert str(caught.value) == (
        "--edges a:b:c=*: the files are of several kinds: arrays, mtx\n  fix: give each kind an edge type of its own"
    )


def test_edge_ids_beside_rows_are_told_to_be_a_column(tmp_path):
    np.savez(tmp_path / "g.npz", indptr=[0, 1, 3], indices=[1, 0, 1], edge_ids=[70, 50, 30])
    summary = graphprep.convert(tmp_path / "g.npz", tmp_path / "store", decoder_options={"input_layout": "csr"})
    told = "array edge_ids becomes a column: edge IDs are positions; exports take it as edge IDs with edge_id_col edge_ids"
    assert told in " ".join(summary.notes)
    graph = graphprep.load(tmp_path / "store")
    assert sorted(graph.column(graph.edge_types[0], "edge_ids").tolist()) == [30, 50, 70]
