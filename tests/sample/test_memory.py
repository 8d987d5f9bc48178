"""Batches of many seeds, whose flows have few edges: what they take is counted, too."""

from __future__ import annotations

import numpy as np
import pytest

import graphprep
from graphprep.model.errors import MemoryLimitError
from graphprep.sample import write


@pytest.fixture(scope="module")
def star(tmp_path_factory):
    """Return a store of 300,000 edges that lead to node 0, and a file of all of its nodes."""
    folder = tmp_path_factory.mktemp("star")
    size = 300_000
    np.savez(folder / "star.npz", edge_index=np.stack([np.arange(1, size + 1), np.zeros(size, np.int64)]))
    np.save(folder / "seeds.npy", np.arange(size + 1))
    graphprep.convert(folder / "star.npz", folder / "store")
    return folder / "store", folder / "seeds.npy"


def test_seeds_count_where_they_have_no_edges(star, tmp_path):
    store, seeds = star
    options = {"memory_limit": "200MiB", "batch_size": 500_000, "fanouts": [1, 1], "add_self_loop": True}
    with pytest.raises(MemoryLimitError, match=r"a flow takes at least .*, and the memory limit leaves .* for one") as error:
        graphprep.sample(store, tmp_path / "out", seeds=str(seeds), **options)
    assert error.value.exit_code == 4
    assert error.value.fix == "raise memory_limit, or lower batch_size or the fan-outs"
    assert not (tmp_path / "out").exists()


@pytest.mark.long
@pytest.mark.parametrize("file_format", ["npz", "parquet"])
def test_the_same_seeds_in_smaller_batches_keep_to_the_limit(star, tmp_path, file_format):
    store, seeds = star
    summary = graphprep.sample(
        store, tmp_path / file_format, seeds=str(seeds), full=1, batch_size=30_000, format=file_format, memory_limit="200MiB"
    )
    assert summary.num_flows == 11
    assert summary.num_sampled_edges == 300_000


def test_a_list_that_parquet_has_no_room_for_is_told_with_its_size(star, tmp_path, monkeypatch):
    store, seeds = star
    monkeypatch.setattr(write, "_LIST_BYTES", 1 << 20)
    with pytest.raises(
        MemoryLimitError, match=r"'indptr' of a flow has [\d,]+ values, which take .* to write to Parquet"
    ) as error:
        graphprep.sample(
            store, tmp_path / "out", seeds=str(seeds), fanouts=[1], batch_size=1000, format="parquet", memory_limit="200MiB"
        )
    assert error.value.fix == 'raise memory_limit, lower batch_size or the fan-outs, or take format="npz"'
    assert not (tmp_path / "out").exists()


def test_seeds_that_lie_in_files_are_shuffled_alike(star, tmp_path, monkeypatch):
    """Held in memory and in mapped files, in one epoch and the next."""
    store, _ = star
    (tmp_path / "seeds.txt").write_text("".join(f"{node}\n" for node in range(5000)))
    options = {"seeds": f"{tmp_path}/seeds.txt", "fanouts": [1], "batch_size": 900, "epochs": 2, "seed": 3}
    graphprep.sample(store, tmp_path / "held", **options)
    monkeypatch.setattr("graphprep.storage.spill.scratch.Scratch.zeros", _in_a_file(tmp_path))
    graphprep.sample(store, tmp_path / "mapped", **options)
    files = sorted(path.name for path in (tmp_path / "held").iterdir())
    assert files == ["manifest.json", "samples-00000.npz"]
    assert all((tmp_path / "held" / name).read_bytes() == (tmp_path / "mapped" / name).read_bytes() for name in files)
    drawn = graphprep.neighbor_sampling(graphprep.load(store), range(5000), fanouts=[1], batch_size=900, epochs=2, seed=3)
    for one, two in zip(graphprep.open_samples(tmp_path / "held"), drawn, strict=True):
        assert one.layer_parent_nid(-1).tolist() == two.layer_parent_nid(-1).tolist()


def _in_a_file(folder):
    names = iter(range(1000))
    return lambda _, size, dtype: np.memmap(folder / f"array-{next(names)}", dtype, "w+", shape=(max(1, size),))[:size]
