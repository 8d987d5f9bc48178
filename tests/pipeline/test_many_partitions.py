"""More partitions than files may be open: 40 of them, where 30 more files may be opened than are open."""

import resource
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep.derived import store as derived_store
from graphprep.ids import lookup
from graphprep.store import raw_ids, single

NUM_PARTS = 40


@pytest.fixture(params=["int", "string"])
def store(request, tmp_path, monkeypatch):
    """Make a store whose nodes do not stand by raw ID, and let few files be open."""
    ends = np.random.default_rng(5).integers(0, 300, (500, 2))
    (tmp_path / "e.csv").write_text("".join(f"{src},{dst}\n" for src, dst in ends.tolist()))
    graphprep.convert(
        tmp_path / "e.csv", tmp_path / "parts", format="edges", partitions=NUM_PARTS, decoder_options={"id_type": request.param}
    )
    graphprep.reorder(tmp_path / "parts", tmp_path / "store", by="degree", id2index=True)
    for module in (derived_store, lookup, raw_ids, single):
        monkeypatch.setattr(module, "_MOST_OPEN", 4)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 30, hard))
    yield tmp_path / "store"
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_few_files_are_open(store, tmp_path):
    assert graphprep.validate(store).faults == ()
    raw = graphprep.ids(store, np.arange(200), from_="typed", to="raw")
    assert graphprep.ids(store, raw, from_="raw", to="typed").tolist() == list(range(200))
    graphprep.export(store, tmp_path / "out", "edges")
    found = next((tmp_path / "out").glob("_N*")).read_text().replace(" ", ",")
    assert sorted(found.split()) == sorted((tmp_path / "e.csv").read_text().split())
