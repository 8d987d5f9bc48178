"""``--by metis``: what pymetis itself says of the same matrix, made by SciPy."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse
from golden.golden_cases import SAMPLE_DATA, read_store

import graphprep
from graphprep.model.errors import MemoryLimitError, UsageError
from graphprep.model.schema import edge_type_path
from graphprep.rewrite.partition import multilevel

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


def test_what_metis_does_not_take(pymetis, tmp_path, monkeypatch):
    graphprep.convert(SHOP, tmp_path / "store")
    for balance in ("type", ("nodes", "edges")):
        with pytest.raises(UsageError) as error:
            graphprep.partition(tmp_path / "store", tmp_path / "out", by="metis", partitions=2, balance=balance)
        assert error.value.message.endswith(": pymetis takes one: nodes, edges, or a column of numbers")
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
