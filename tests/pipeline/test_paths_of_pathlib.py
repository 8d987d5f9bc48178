"""Every function of the library takes ``pathlib.Path`` where it takes a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden.golden_cases import SAMPLE_DATA

import graphprep
from graphprep.api import open_file
from graphprep.model.errors import DataError, UsageError

KARATE = Path(SAMPLE_DATA) / "karate" / "karate.csv"


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("paths") / "store"
    assert graphprep.convert(KARATE, out, format="edges").num_nodes == {"_N": 34}
    return out


def test_what_is_written(store, tmp_path):
    assert graphprep.convert([KARATE, str(KARATE)], tmp_path / "twice", format="edges").num_edges == {"_N:_E:_N": 156}
    assert graphprep.reorder(store, tmp_path / "hot", by="degree").out == str(tmp_path / "hot")
    assert graphprep.export(store, tmp_path / "npy", "npy").out == str(tmp_path / "npy")
    assert graphprep.generate("grid", tmp_path / "grid.txt", rows=2, cols=2).out == str(tmp_path / "grid.txt")
    assert {path.name for path in tmp_path.iterdir()} == {"twice", "hot", "npy", "grid.txt"}


def test_an_input_without_a_name(tmp_path):
    for inputs in ("", [KARATE, ""]):
        with pytest.raises(UsageError, match="an input has no name"):
            graphprep.convert(inputs, tmp_path / "out")


def test_what_is_read(store):
    assert graphprep.info(store).kind == "store"
    assert graphprep.info(KARATE).kind == "raw"
    assert graphprep.validate(store).sound
    assert graphprep.ids(store, [33], from_="raw", to="typed").tolist() == [33]
    with pytest.raises(DataError, match="there is no raw ID 34") as caught:
        graphprep.ids(store, [34], from_="raw", to="typed")
    assert caught.value.place == str(store)
    assert graphprep.export_targets(store)[0].name == "deepgnn"
    assert graphprep.load(store).in_degrees([33]).tolist() == [17]
    with graphprep.open_store(store) as reader:
        assert reader.metadata.num_nodes_per_type == (34,)
    with open_file(KARATE) as file:
        assert file.readline() == b"source,target,weight\n"
