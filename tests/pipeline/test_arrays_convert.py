"""Arrays and matrices from the first byte to the store: one command each, and the same bytes however it is run."""

import hashlib
import shutil

import numpy as np
import pytest

from graphprep.convert.pipeline import check_input, convert
from graphprep.model.errors import DataError
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")
sp = scipy.sparse


def digest(store):
    """Hash all arrays of a store."""
    total = hashlib.sha256()
    for path in sorted(store.rglob("*.npy")):
        total.update(str(path.relative_to(store)).encode() + path.read_bytes())
    return total.hexdigest()


def stored(store, layout="csc"):
    """Return the matrix of a store of one partition, edges counted, source by destination."""
    (folder,) = store.glob(f"part-00000/edges/*/{layout}")
    indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
    return indptr, indices


@pytest.mark.parametrize(
    "name",
    [
        "matrix_market/west0067.mtx",
        "metis/lesmis.graph",
        "metis/example_weighted.graph",
        "gnnbench_npz/cora.npz",
    ],
)
def test_one_command_and_the_same_bytes(real_samples, tmp_path, name):
    digests = set()
    for block_bytes, threads, limit in ((0, 1, "auto"), (64, 3, "auto"), (1 << 10, 2, "300MiB")):
        out = tmp_path / "out"
        options = ConvertOptions(
            partitions=3, layout="both", block_bytes=block_bytes, run=RunOptions(threads=threads, memory_limit=limit)
        )
        convert([str(real_samples / name)], str(out), options)
        digests.add(digest(out))
        shutil.rmtree(out)
    assert len(digests) == 1


def test_a_matrix_is_the_same_in_every_format(tmp_path):
    matrix = sp.random(30, 30, 0.2, format="csr", random_state=4)
    matrix.sort_indices()
    scipy.io.mmwrite(tmp_path / "m.mtx", matrix, precision=17, symmetry="general")
    sp.save_npz(tmp_path / "csr.npz", matrix)
    sp.save_npz(tmp_path / "coo.npz", matrix.tocoo())
    sp.save_npz(tmp_path / "csc.npz", matrix.tocsc())
    coo = matrix.tocoo()
    np.savez(tmp_path / "e.npz", edge_index=np.stack([coo.row, coo.col]), edge_weight=coo.data, node_x=np.zeros(30))
    (tmp_path / "bare").mkdir()
    for key in ("indptr", "indices", "data"):
        np.save(tmp_path / "bare" / f"{key}.npy", getattr(matrix, key))
    expected = matrix.tocsc()
    for name in ("m.mtx", "csr.npz", "coo.npz", "csc.npz", "e.npz", "bare"):
        flags = {"format": "arrays", "decoder_options": {"input_layout": "csr"}} if name == "bare" else {}
        options = ConvertOptions(neighbor_order="id", weight_dtype="float64", overwrite=True, **flags)
        convert([str(tmp_path / name)], str(tmp_path / "out"), options)
        indptr, indices = stored(tmp_path / "out")
        np.testing.assert_array_equal(indptr, expected.indptr)
        np.testing.assert_array_equal(indices, expected.indices)
        (weights,) = (tmp_path / "out").glob("part-00000/edges/*/weight.npy")
        np.testing.assert_array_equal(np.load(weights), expected.data)


def test_deflated_arrays_stream_under_a_limit(tmp_path):
    """Arrays that do not fit beside what the stages need are read in batches."""
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 1000, (2, 1_000_000), np.int64)
    np.savez_compressed(tmp_path / "e.npz", edge_index=edges, edge_attr=np.zeros((1_000_000, 8)))
    report = check_input([str(tmp_path / "e.npz")], ConvertOptions(run=RunOptions(threads=1, memory_limit="130MiB")))
    assert report.num_edges == {"_N:_E:_N": 1_000_000}


def test_matrices_as_tables_of_a_heterogeneous_graph(tmp_path):
    rates = sp.random(4, 6, 0.5, format="csr", random_state=1)
    sp.save_npz(tmp_path / "rates.npz", rates)
    (tmp_path / "friends.graph").write_text("4 2\n2\n1\n4\n3\n")
    (tmp_path / "like.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n6 6 1\n1 6\n")
    np.save(tmp_path / "buys.npy", np.array([[0, 3, 1], [5, 0, 2]]))

    def table(name, kind=None):
        return TableConfig(files=(str(tmp_path / name),), format=kind)

    graph = GraphConfig(
        nodes=(NodeTable("user", num_nodes=4), NodeTable("item", num_nodes=6)),
        edges=(
            EdgeTable("user", "rates", "item", table("rates.npz")),
            EdgeTable("user", "friend", "user", table("friends.graph", "metis")),
            EdgeTable("item", "like", "item", table("like.mtx")),
            EdgeTable("user", "buys", "item", table("buys.npy")),
        ),
    )
    report = check_input([], ConvertOptions(graph=graph))
    assert report.num_nodes == {"user": 4, "item": 6}
    assert report.num_edges == {
        "user:rates:item": rates.nnz,
        "user:friend:user": 4,
        "item:like:item": 1,
        "user:buys:item": 3,
    }


@pytest.mark.parametrize(
    ("ids", "words", "fix"),
    [
        (
            ["10", "20"],
            "column 'f': row 0 is for the node with raw ID 0, which is not a node of type 'n'",
            "give it a row for each raw ID 0..n-1, or attach it by the column of the file that holds IDs: "
            "--node-data n:f=FILE@COL",
        ),
        (
            ["ann", "bob"],
            "column 'f' goes by raw ID, but those of node type 'n' are strings",
            "attach it by the column of the file that holds IDs: --node-data n:f=FILE@COL",
        ),
    ],
)
def test_rows_for_ids_that_are_no_nodes(tmp_path, monkeypatch, ids, words, fix):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.csv").write_text("id\n" + "".join(f"{i}\n" for i in ids))
    (tmp_path / "e.csv").write_text("src,dst\n" + ",".join(ids) + "\n")
    np.save(tmp_path / "f.npy", np.zeros((2, 3), np.float32))
    nodes = NodeTable("n", TableConfig(files=("n.csv",)), id_col="id")
    edges = EdgeTable("n", "r", "n", TableConfig(files=("e.csv",)))
    config = GraphConfig(nodes=(nodes,), edges=(edges,), id_type="auto")
    with pytest.raises(DataError) as caught:
        convert([], "out", ConvertOptions(graph=config, node_data=("n:f=f.npy",)))
    assert str(caught.value) == f"{words}\n  fix: {fix}"
    assert not (tmp_path / "out").exists()
