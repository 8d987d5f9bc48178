"""Convert over real graph files, from the folder that GRAPHPREP_SAMPLES names; skipped where it is unset."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions


def convert(path: Path, out: Path, **options) -> Path:
    pipeline.convert([str(path)], str(out), ConvertOptions(**options))
    return out


def load_edges(store: Path) -> tuple[np.ndarray, np.ndarray]:
    """Raw ends of all edges of a store of one partition and one node type, in edge-ID order."""
    (folder,) = store.glob("part-00000/edges/*/csc")
    indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
    src, dst = indices.astype(np.int64), np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    order = np.argsort(np.load(folder / "edge_ids.npy"))
    maps = list(store.glob("part-00000/nodes/*/raw_ids.npy"))
    raw = np.load(maps[0]) if maps else np.arange(indptr.size - 1)
    return raw[src[order]], raw[dst[order]]


def naive_edges(path: Path, delimiter: str | None = None) -> list[list[str]]:
    lines = [line for line in path.read_text().split("\n") if line.strip() and line[0] not in "#%"]
    return [line.split(delimiter) for line in lines]


@pytest.mark.parametrize(
    ("name", "delimiter"),
    [
        ("gapbs/4.el", None),
        ("gapbs/4.wel", None),
        ("text_dialects/example.edgelist", None),
        ("text_dialects/comments.edgelist", None),
        ("text_dialects/spaceseparated.edgelist", None),
        ("text_dialects/foodweb-baydry.konect", None),
        ("bitcoin_otc/edges.csv", ","),
        ("ldbc_graphalytics/example-directed.e", None),
        ("ldbc_graphalytics/example-undirected.e", None),
        ("ldbc_graphalytics/test-sssp-directed.e", None),
        ("ldbc_graphalytics/test-wcc-undirected.e", None),
    ],
)
def test_edges_come_out_as_they_went_in(name, delimiter, real_samples, tmp_path):
    rows = naive_edges(real_samples / name, delimiter)
    store = convert(real_samples / name, tmp_path / "store", format="edges", ids="sparse")
    src, dst = load_edges(store)
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [(int(row[0]), int(row[1])) for row in rows]


def test_bitcoin_otc_ratings_and_times(real_samples, tmp_path):
    """Signed weights, times with a fraction of a second, no header, gaps in the IDs."""
    path = real_samples / "bitcoin_otc/edges.csv"
    store = convert(
        path,
        tmp_path / "store",
        format="edges",
        ids="sparse",
        decoder_options={"weight_col": "2", "time_col": "3", "time_unit": "us"},
        neighbor_order="time",
    )
    (folder,) = store.glob("part-00000/edges/*")
    with path.open() as handle:
        rows = list(csv.reader(handle))
    order = np.argsort(np.load(folder / "csc/edge_ids.npy"))
    assert np.load(folder / "weight.npy")[order].tolist() == [float(row[2]) for row in rows]
    seconds = [row[3].split(".") for row in rows]
    assert np.load(folder / "time.npy")[order].tolist() == [
        int(whole) * 10**6 + int(part.ljust(6, "0")) for whole, part in seconds
    ]
    indptr, times = np.load(folder / "csc/indptr.npy"), np.load(folder / "time.npy")
    assert all((np.diff(times[start:stop]) >= 0).all() for start, stop in itertools.pairwise(indptr))


def test_bitcoin_otc_counts(real_samples, tmp_path):
    store = convert(real_samples / "bitcoin_otc/edges.csv", tmp_path / "store", format="edges", ids="sparse")
    src, dst = load_edges(store)
    assert (len(set(src.tolist()) | set(dst.tolist())), src.size) == (5881, 35592)


def test_foodweb_weights(real_samples, tmp_path):
    """KONECT: a ``%`` header, 1-based IDs, weights."""
    path = real_samples / "text_dialects/foodweb-baydry.konect"
    options = {"index_base": 1, "weight_col": "2"}
    store = convert(path, tmp_path / "store", format="edges", ids="dense", decoder_options=options, weight_dtype="float64")
    rows = naive_edges(path)
    src, dst = load_edges(store)
    (folder,) = store.glob("part-00000/edges/*")
    weights = np.load(folder / "weight.npy")[np.argsort(np.load(folder / "csc/edge_ids.npy"))]
    found = Counter(zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True))
    assert found == Counter((int(row[0]) - 1, int(row[1]) - 1, float(row[2])) for row in rows)


def test_snb_parquet(real_samples, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    path = real_samples / "snb_person_parquet/person_knows_person.parquet"
    table = pq.read_table(path)
    options = {"src_col": "Person1Id", "dst_col": "Person2Id", "time_col": "creationDate"}
    store = convert(path, tmp_path / "store", format="edges", ids="sparse", decoder_options=options)
    src, dst = load_edges(store)
    assert src.tolist() == table["Person1Id"].to_pylist()
    assert dst.tolist() == table["Person2Id"].to_pylist()
    (folder,) = store.glob("part-00000/edges/*")
    times = np.load(folder / "time.npy")[np.argsort(np.load(folder / "csc/edge_ids.npy"))]
    assert times.tolist() == table["creationDate"].cast("int64").to_pylist()


def test_letters_as_ids_are_an_error_with_a_place(real_samples, tmp_path):
    from graphprep.model.errors import DataError

    path = real_samples / "text_dialects/alphabet.edgelist"
    with pytest.raises(DataError) as caught:
        convert(path, tmp_path / "store", format="edges", decoder_options={"header": "no"})
    assert caught.value.place == f"{path}:2:1"
    assert not (tmp_path / "store").exists()


def test_matrix_market_is_refused_with_a_pointer(real_samples, tmp_path):
    from graphprep.model.errors import GraphprepError

    with pytest.raises(GraphprepError, match="Matrix Market"):
        convert(real_samples / "matrix_market/karate.mtx", tmp_path / "store", format="edges")
