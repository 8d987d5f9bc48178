"""Columns in files of their own: against NumPy, pandas-like readings by hand, and every error to the letter."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphprep.convert.pipeline import convert
from graphprep.decoders.configs.data_arrays import parse_data
from graphprep.model.errors import GraphprepError, UsageError
from graphprep.model.graph_config import DataArray
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import ColumnSchema
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage

MTX = "%%MatrixMarket matrix coordinate pattern general\n4 4 5\n1 2\n2 3\n3 1\n4 4\n1 4\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a graph of 4 nodes and 5 edges, and data beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.mtx").write_text(MTX)
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 0\n3 3\n0 3\n")
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(4, 3))
    np.save("y.npy", np.array([3, 1, 2, 0], np.int8))
    np.save("w.npy", np.arange(5) / 2)
    return tmp_path


def run(graph="g.mtx", **options):
    convert([graph], "out", ConvertOptions(overwrite=True, run=RunOptions(threads=1), **options))
    return Stored()


class Stored:
    """The columns of a store of one partition, by type and name."""

    def __init__(self):
        with Storage() as storage:
            store = StoreReader(storage, "out")
            self.columns = {}
            metadata = store.metadata.to_json()
            for kind in ("node", "edge"):
                for name, schema in metadata[f"{kind}_schema"].items():
                    for column in map(ColumnSchema.from_json, schema["columns"]):
                        self.columns[name, column.name] = (column, self._values(store, f"{kind}s", name, column))
            self.num_nodes = metadata["num_nodes_per_type"]

    @staticmethod
    def _values(store, kind, name, column):
        folder = name if kind == "nodes" else "__".join(name.split(":"))
        paths = [entry.path for entry in store.manifest(0).arrays if f"/{folder}/" in f"/{entry.path}"]
        mine = {path.rpartition(f"{column.path}.")[2]: path for path in paths if f"{column.path}." in path}
        arrays = {ending: store.array(0, path).read() for ending, path in mine.items()}
        if "npy" in arrays:
            values = arrays["npy"].tolist()
        else:
            flat, offsets = arrays["values.npy"], arrays["offsets.npy"]
            pieces = [flat[offsets[i] : offsets[i + 1]] for i in range(offsets.size - 1)]
            values = [bytes(piece).decode() if column.kind == "binary" else piece.tolist() for piece in pieces]
        present = arrays.get("present.npy")
        return values if present is None else [v if p else None for v, p in zip(values, present, strict=True)]

    def of(self, name, owner="_N"):
        return self.columns[owner, name][1]


def message(function, *args, **options):
    with pytest.raises(GraphprepError) as caught:
        function(*args, **options)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------------- flags


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("node", "x=f.npy", ("", "x", "f.npy", None)),
        ("node", "user:x=f.npy", ("user", "x", "f.npy", None)),
        ("node", "x=a@b/f.csv@id", ("", "x", "a@b/f.csv", "id")),
        ("node", "x=f@home.npy@", ("", "x", "f@home.npy", None)),
        ("node", "*=s3://me@host/f.parquet@user_id", ("", "*", "s3://me@host/f.parquet", "user_id")),
        ("node", "a=b=c.npy", ("", "a", "b=c.npy", None)),
        ("edge", "w=f.npy", ("", "w", "f.npy", None)),
        ("edge", "a:b:c:w=f.npy", ("a:b:c", "w", "f.npy", None)),
    ],
)
def test_flags(kind, text, expected):
    (found,) = parse_data([text], kind)
    assert found == DataArray(*expected, place=f"--{kind}-data {text}")


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("node", "x", "--node-data: expected [TYPE:]NAME=FILE, found 'x'\n  fix: a ':' inside a name is %3A"),
        ("node", "=f", "--node-data: expected [TYPE:]NAME=FILE, found '=f'\n  fix: a ':' inside a name is %3A"),
        (
            "edge",
            "a:w=f",
            "--edge-data: expected [SRC:REL:DST:]NAME=FILE, found 'a:w=f'\n  fix: write the edge type as SRC:REL:DST",
        ),
        (
            "edge",
            "w=f.csv@id",
            "--edge-data w=f.csv@id: edges have no IDs to go by\n  fix: give a row for each edge, in the order of the input",
        ),
    ],
)
def test_bad_flags(kind, text, expected):
    assert message(parse_data, [text], kind) == expected


# ------------------------------------------------------------------------------------------------------------ by row


def test_arrays_by_row(here):
    np.savez("all.npz", z=np.arange(8).reshape(4, 2, 1), other=np.zeros(3))
    np.save("f.npy", np.asfortranarray(np.arange(20.0).reshape(4, 5)))
    found = run(node_data=("x=x.npy", "_N:y=y.npy", "z=all.npz", "f=f.npy"), edge_data=("w=w.npy", "_N:_E:_N:v=w.npy"))
    assert found.of("x") == np.load("x.npy").tolist()
    assert found.of("y") == [3, 1, 2, 0]
    assert found.of("z") == np.load("all.npz")["z"].tolist()
    assert found.of("f") == np.load("f.npy").tolist()
    assert (found.columns["_N", "y"][0].dtype, found.columns["_N", "x"][0].item_shape) == ("int8", (3,))
    # In CSC order: edges by destination, then by edge ID.
    order = np.lexsort((np.arange(5), [1, 2, 0, 3, 3]))
    for name in ("w", "v"):
        assert found.of(name, "_N:_E:_N") == (np.arange(5) / 2)[order].tolist()


def test_rows_say_how_many_nodes_an_edge_list_has(here):
    np.save("more.npy", np.arange(7))
    found = run("e.txt", format="edges", node_data=("n=more.npy",), edge_data=("w=w.npy",))
    assert found.num_nodes == [7]
    assert found.of("n") == list(range(7))


def test_a_folder_of_arrays_follows_by_name(here):
    (here / "parts").mkdir()
    np.save("parts/0.npy", np.array([5, 6, 7]))
    np.save("parts/1.npy", np.array([8]))
    assert run(node_data=("p=parts",)).of("p") == [5, 6, 7, 8]
    np.save("parts/1.npy", np.array([8.0]))
    assert message(run, node_data=("p=parts",)) == (
        "parts/1.npy: float64 rows of shape (), but parts/0.npy has int64 rows of shape ()\n"
        "  fix: store all files of a column in one dtype and shape"
    )


def test_tables_by_row(here):
    pq.write_table(
        pa.table({"age": [1.5, None, 3, 4], "name": ["a", "b", "", "d"], "v": pa.array([[1, 2], [3, 4], [5, 6], [7, 8]])}),
        "t.parquet",
    )
    (here / "head.csv").write_text("age,name\n1,x\n2,\n,y y\n4,z\n")
    (here / "matrix.csv").write_text("1,2\n3,4.5\n5,6\n7,8\n")
    (here / "one.txt").write_text("4\n3\n2\n1\n")
    found = run(
        node_data=("age=t.parquet", "name=t.parquet", "v=t.parquet", "_N:a=one.txt", "m=matrix.csv", "b=one.txt"),
    )
    assert found.of("age") == [1.5, None, 3.0, 4.0]
    assert found.of("name") == ["a", "b", "", "d"]
    assert found.of("v") == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert found.of("m") == [[1, 2], [3, 4.5], [5, 6], [7, 8]]
    assert found.of("a") == found.of("b") == [4, 3, 2, 1]
    found = run(node_data=("*=head.csv",))
    assert (found.of("age"), found.of("name")) == ([1, 2, None, 4], ["x", None, "y y", "z"])


def test_text_by_row_may_begin_as_numbers(here):
    nodes = 3000
    (here / "big.mtx").write_text(f"%%MatrixMarket matrix coordinate pattern general\n{nodes} {nodes} 1\n1 2\n")
    texts = [str(i) for i in range(nodes - 1)] + ["end"]
    (here / "t.csv").write_text("t\n" + "\n".join(texts) + "\n")
    found = run("big.mtx", node_data=("t=t.csv",), block_bytes=1 << 12)
    assert found.of("t") == texts


def test_edges_by_row_from_a_table(here):
    (here / "w.csv").write_text("w,tag\n1,a\n2,b\n3,c\n4,d\n5,e\n")
    found = run(edge_data=("w=w.csv", "tag=w.csv"))
    order = np.lexsort((np.arange(5), [1, 2, 0, 3, 3]))
    assert found.of("w", "_N:_E:_N") == (np.arange(5) + 1)[order].tolist()
    assert found.of("tag", "_N:_E:_N") == [("abcde")[i] for i in order]


# -------------------------------------------------------------------------------------------------------------- by ID


def test_tables_by_id_in_any_order_and_partial(here):
    (here / "u.csv").write_text("id,age,name\n3,30,ann\n0,20.5,bo\n")
    pq.write_table(pa.table({"key": [2, 1, 0, 3], "s": ["c", "b", "a", "d"], "n": [2, 1, 0, 3]}), "u.parquet")
    found = run(node_data=("age=u.csv@id", "name=u.csv@id", "s=u.parquet@key"))
    assert found.of("age") == [20.5, None, None, 30.0]
    assert found.of("name") == ["bo", None, None, "ann"]
    assert found.of("s") == ["a", "b", "c", "d"]
    assert not found.columns["_N", "s"][0].optional
    found = run(node_data=("*=u.parquet@key",))
    assert (found.of("s"), found.of("n")) == (["a", "b", "c", "d"], [0, 1, 2, 3])


def test_by_name(here):
    (here / "names.txt").write_text("ann bo\nbo cy\n")
    (here / "u.csv").write_text("who,age\ncy,3\nann,1\n")
    found = run("names.txt", format="edges", decoder_options={"id_type": "string"}, node_data=("age=u.csv@who",))
    assert found.of("age") == [1, None, 3]


def test_the_same_for_any_block_and_number_of_threads(here):
    rng = np.random.default_rng(1)
    ids = rng.permutation(500)
    (here / "big.mtx").write_text("%%MatrixMarket matrix coordinate pattern general\n500 500 1\n1 2\n")
    (here / "u.csv").write_text("id,v\n" + "".join(f"{i},{i * 2}\n" for i in ids))
    for block_bytes in (1 << 10, 1 << 20):
        for threads in (1, 3):
            options = ConvertOptions(
                overwrite=True, node_data=("v=u.csv@id",), block_bytes=block_bytes, run=RunOptions(threads=threads)
            )
            convert(["big.mtx"], "out", options)
            assert Stored().of("v") == [2 * i for i in range(500)]


# ------------------------------------------------------------------------------------------------------------- errors


BAD = [
    (
        {"node_data": ("x=w.npy",)},
        "w.npy: 5 rows, but node type '_N' has 4 nodes\n  fix: give every node a row, or name a column of IDs: NAME=FILE@ID",
    ),
    (
        {"edge_data": ("x=x.npy",)},
        "x.npy: 4 rows, but edge type '_N:_E:_N' has 5 edges\n  fix: give every edge a row, in the order of the input",
    ),
    (
        {"node_data": ("u:x=x.npy",)},
        "--node-data u:x=x.npy: there is no node type 'u'\n  fix: write TYPE:NAME=FILE with one of _N",
    ),
    (
        {"edge_data": ("a:b:c:x=w.npy",)},
        "--edge-data a:b:c:x=w.npy: there is no edge type 'a:b:c'\n  fix: write SRC:REL:DST:NAME=FILE with one of _N:_E:_N",
    ),
    (
        {"node_data": ("x=x.npy", "x=y.npy")},
        "--node-data x=y.npy: '_N' has a column 'x' already\n  fix: give one of them another name",
    ),
    (
        {"node_data": ("x=x.npy@id",)},
        "--node-data x=x.npy@id: an array has no column of IDs\n  fix: leave out the @ and what follows it, or give a table",
    ),
    (
        {"node_data": ("x=scalar.npy",)},
        "scalar.npy: the array is a scalar; expected one row a node or edge\n  fix: give a vector",
    ),
    ({"node_data": ("x=complex.npy",)}, "complex.npy: complex numbers are not read\n  fix: split them into two columns"),
    (
        {"node_data": ("x=two.npz",)},
        "two.npz: 2 arrays, none called 'x'\n  fix: name the column as the array is called: a, b",
    ),
    (
        {"node_data": ("x=t.csv",)},
        "t.csv: there is no column 'x' among 2: id, v\n"
        "  fix: name the column as the file does, or * for all columns under their own names",
    ),
    (
        {"node_data": ("v=t.csv@id",)},
        "t.csv:3:1: 9 is not a node of type '_N'\n  fix: declare the node, drop the row, or use --on-missing-node drop",
    ),
    ({"node_data": ("v=twice.csv@id",)}, "twice.csv:3:1: node 1 has two values of 'v'\n  fix: keep one row for each node"),
    (
        {"node_data": ("m=gap.csv",)},
        "gap.csv: columns that become one, 'm', must hold a number in every row; column 'col_1' does not\n"
        "  fix: supply the values, NaN for instance, or take the column by its own name",
    ),
]


@pytest.mark.parametrize(("options", "expected"), BAD)
def test_bad_data(here, options, expected):
    np.save("scalar.npy", np.float64(3))
    np.save("complex.npy", np.zeros(4, complex))
    np.savez("two.npz", a=np.zeros(4), b=np.zeros(4))
    (here / "t.csv").write_text("id,v\n1,2\n9,3\n")
    (here / "twice.csv").write_text("id,v\n1,2\n1,3\n")
    (here / "gap.csv").write_text("1,2\n3,\n4,5\n6,7\n")
    assert message(run, **options) == expected
    assert not (here / "out").exists()


def test_edges_whose_number_is_found_late(here):
    np.save("six.npy", np.arange(6))
    assert message(run, "e.txt", format="edges", edge_data=("w=six.npy",)) == (
        "six.npy: 6 rows, but edge type '_N:_E:_N' has 5 edges\n  fix: give every edge a row, in the order of the input"
    )
    np.save("three.npy", np.arange(3))
    assert message(run, "e.txt", format="edges", node_data=("w=three.npy",)).startswith("e.txt:4:1: node 3 is outside [0, 3)")


def test_a_name_that_the_edges_have(here):
    (here / "c.csv").write_text("src,dst,w\n0,1,2\n")
    np.save("one.npy", np.zeros(1))
    with pytest.raises(UsageError) as caught:
        run("c.csv", format="edges", edge_data=("w=one.npy",))
    assert str(caught.value) == (
        "--edge-data w=one.npy: '_N:_E:_N' has a column 'w' already\n  fix: give one of them another name"
    )
