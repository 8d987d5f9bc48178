"""``--by metis``: what pymetis itself says of the same matrix, made by SciPy."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from golden.golden_cases import SAMPLE_DATA, read_store

import graphprep
from graphprep.model.errors import MemoryLimitError, UsageError
from graphprep.model.schema import edge_type_path
from graphprep.rewrite.partition import multilevel
from graphprep.rewrite.partition.neighbors import Neighbors

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

pytestmark = pytest.mark.usefixtures("flags_named")

KARATE = SAMPLE_DATA / "karate" / "karate.csv"
SHOP = SAMPLE_DATA / "shop" / "shop.jsonl"


@pytest.fixture
def pymetis():
    return pytest.importorskip("pymetis", reason="pymetis is not installed: pip install pymetis")


def read_matrix(store):
    """Edges between homogeneous IDs, as often as they are there, in both directions, no loops; and their owners' counts."""
    metadata = json.loads((store / "metadata.json").read_text())
    first = dict(zip(metadata["node_type"], np.cumsum([0, *metadata["num_nodes_per_type"]]).tolist(), strict=False))
    size = sum(metadata["num_nodes_per_type"])
    matrix, owned = scipy.sparse.csr_matrix((size, size), dtype=np.int64), np.zeros(size, np.int64)
    for text in metadata["edge_type"]:
        src, rel, dst = text.split(":")
        folder = store / "part-00000" / "edges" / edge_type_path((src, rel, dst)) / "csc"
        indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr)) + first[dst]
        np.add.at(owned, rows, 1)
        matrix += scipy.sparse.csr_matrix((np.ones(rows.size, np.int64), (rows, indices + first[src])), (size, size))
    matrix = (matrix + matrix.T).tocsr()
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return metadata["node_type"], matrix, owned


@pytest.mark.parametrize(("balance", "seed", "most"), [((), 0, None), (("edges",), 3, 1.2)])
@pytest.mark.parametrize("num_parts", [2, 5])
@pytest.mark.parametrize("path", [KARATE, SHOP], ids=["karate", "shop"])
def test_nodes_are_where_metis_puts_them(path, num_parts, balance, seed, most, pymetis, tmp_path):
    graphprep.convert(path, tmp_path / "store")
    names, matrix, owned = read_matrix(tmp_path / "store")
    _, wanted = pymetis.part_graph(
        num_parts,
        pymetis.CSRAdjacency(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)),
        vweights=owned if balance else None,
        eweights=matrix.data.astype(np.int64),
        recursive=False,
        options=pymetis.Options(seed=seed, ufactor=round(1000 * ((most or 1.05) - 1))),
    )
    options = {"by": "metis", "partitions": num_parts, "balance": balance, "seed": seed, "max_imbalance": most}
    graphprep.partition(tmp_path / "store", tmp_path / "parts", **options, assignment_only=True)
    found = np.concatenate([np.loadtxt(tmp_path / "parts" / f"{name}.txt", np.int64, ndmin=1) for name in names])
    assert found.tolist() == list(wanted)


def test_the_same_bytes_from_everywhere(pymetis, tmp_path):
    graphprep.convert(SHOP, tmp_path / "want", partitions=3, partition_by="metis")
    graphprep.convert(SHOP, tmp_path / "store", partitions=2, partition_by="hash")
    graphprep.reorder(tmp_path / "store", tmp_path / "hot", by="degree")
    graphprep.partition(tmp_path / "hot", tmp_path / "out", by="metis", partitions=3)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")
    for name in ("out", "want"):
        told = json.loads((tmp_path / name / "provenance.json").read_text())
        assert told["partitioner"] == {"pymetis": ".".join(map(str, pymetis.version_tuple))}
    assert graphprep.validate(tmp_path / "out").sound


def test_metis_itself_is_called_as_pymetis_calls_it(pymetis, tmp_path):
    """With one weight a node both do the same."""
    graphprep.convert(SHOP, tmp_path / "store")
    _, matrix, owned = read_matrix(tmp_path / "store")
    graph = Neighbors(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    for seed, num_parts in ((1, 1), (1, 3), (7, 2)):
        options = pymetis.Options(seed=seed, ufactor=100)
        adjacency, weights = pymetis.CSRAdjacency(graph.indptr, graph.indices), matrix.data.astype(np.int64)
        given = {"vweights": owned, "eweights": weights, "recursive": False, "options": options}
        _, wanted = pymetis.part_graph(num_parts, adjacency, **given)
        assert multilevel.part_graph(graph, owned[:, None], weights, num_parts, options).tolist() == list(wanted)


def test_every_type_and_several_balances_have_their_share(pymetis, tmp_path):
    """Counted in the report and in the store; and METIS still cuts fewer edges than hash."""
    rng = np.random.default_rng(5)
    size = 600
    edges = {}
    for name in ("hub:to:hub", "hub:has:leaf", "leaf:of:leaf"):
        ends = rng.integers(0, size, (2, 1500))
        ends[1] = np.where(rng.random(1500) < 0.8, (ends[0] // 30 * 30 + ends[1] % 30) % size, ends[1])
        pa.csv.write_csv(pa.table({"src": ends[0], "dst": ends[1]}), tmp_path / f"{name.replace(':', '-')}.csv")
        edges[name] = tmp_path / f"{name.replace(':', '-')}.csv"
    is_train = rng.random(size) < 0.2
    ids = pa.array(np.arange(size))
    pa.csv.write_csv(pa.table({"id": ids, "train": pa.array(is_train)}), tmp_path / "hub.csv")
    pa.csv.write_csv(pa.table({"id": ids, "worth": pa.array(rng.integers(0, 9, size))}), tmp_path / "leaf.csv")
    graphprep.convert(nodes={"hub": tmp_path / "hub.csv", "leaf": tmp_path / "leaf.csv"}, edges=edges, out=tmp_path / "store")
    for balance in ("type", ("type", "edges"), ("train", "edges"), ("nodes", "worth", "train")):
        given = {"by": "metis", "partitions": 4, "balance": balance, "max_imbalance": 1.1}
        shares = graphprep.partition(tmp_path / "store", tmp_path / "out", **given, overwrite=True).report
        words = (balance,) if isinstance(balance, str) else balance
        assert shares.total.cut_edges < 0.8 * shares.hash.cut_edges
        counts = {
            "type": list(shares.nodes.values()),
            "nodes": [np.sum(list(shares.nodes.values()), axis=0)],
            "edges": [np.sum(list(shares.edges.values()), axis=0)],
        }
        with graphprep.load(tmp_path / "out") as graph:
            cuts = {kind: np.cumsum(graph.metadata.num_nodes_per_chunk[k])[:-1] for k, kind in enumerate(("hub", "leaf"))}
            train = np.split(graph.column("hub", "train"), cuts["hub"])
            counts["train"] = [[some.sum() for some in train], [(~some).sum() for some in train]]
            counts["worth"] = [[some.sum() for some in np.split(graph.column("leaf", "worth"), cuts["leaf"])]]
        for word in words:
            for some in counts[word]:
                assert max(some) <= 1.1 * np.mean(some) + 1, (balance, word, some)


def test_what_metis_does_not_take(pymetis, tmp_path, monkeypatch):
    graphprep.convert(SHOP, tmp_path / "store")
    with monkeypatch.context() as patched:
        patched.setattr("pymetis._internal.__file__", str(tmp_path / "not-there.so"))
        for balance in ("type", ("nodes", "edges")):
            with pytest.raises(UsageError) as error:
                graphprep.partition(tmp_path / "store", tmp_path / "out", by="metis", partitions=2, balance=balance)
            assert error.value.message == "this pymetis takes one --balance: nodes, edges, or a column of numbers"
    with pytest.raises(UsageError, match="--passes belongs to --by ldg and fennel"):
        graphprep.partition(tmp_path / "store", tmp_path / "out", by="metis", partitions=2, passes=3)
    monkeypatch.setattr(multilevel, "_COPIES", 1 << 40)
    with pytest.raises(MemoryLimitError, match="METIS holds the graph in memory, about "):
        graphprep.partition(tmp_path / "store", tmp_path / "out", by="metis", partitions=2)
    assert not (tmp_path / "out").exists()


def test_without_pymetis_there_is_advice(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    graphprep.convert(KARATE, tmp_path / "store")
    for call in (
        lambda: graphprep.partition(tmp_path / "store", tmp_path / "out", by="metis", partitions=2),
        lambda: graphprep.convert(KARATE, tmp_path / "out", partition_by="metis", partitions=2),
        lambda: graphprep.export(tmp_path / "store", tmp_path / "out", "npy", partition_by="metis", partitions=2),
    ):
        with pytest.raises(UsageError, match="the method metis needs pymetis") as error:
            call()
        assert error.value.fix == "pip install 'graphprep[metis]'; or export --to metis, run gpmetis, and give --by its file"
        assert not (tmp_path / "out").exists()
