"""One value changed in any array of a golden store, under manifests that say nothing of it: ``--against`` finds each."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from golden.golden_cases import Case, load_cases
from refinished import refinish

import graphprep
from graphprep.against import command
from graphprep.api import _converter

CASES = {case.name: case for case in load_cases()}
LARGE = ("dtypes_json", "shop_temporal_json")  # 79 and 152 arrays
# What is derived of other arrays, which validate holds it against.
DERIVED = ("indptr.npy", "edge_ids.npy", "edge_rows.npy", "offsets.npy", "num_slots.npy")


def flipped(array: np.ndarray) -> np.ndarray:
    """The array with another last value."""
    out = array.copy()
    last = out.reshape(-1)[-1:]
    last[:] = (
        ~last if out.dtype == bool else last + 1 if out.dtype.kind != "f" else np.where(np.isfinite(last), last / 2 + 3, 1)
    )
    return out


@pytest.mark.parametrize(
    "name", ["names_lesmis", "edges_roles", *(pytest.param(name, marks=pytest.mark.heavy) for name in LARGE)]
)
def test_every_changed_value_is_found(name, tmp_path, monkeypatch):
    case: Case = CASES[name]
    store = tmp_path / "store"
    shutil.copytree(case.store, store)
    made = tmp_path / "made"

    def convert(options):
        """Convert once, and copy that."""

        def run(urls, out, options, reporter):
            summary = _converter(options)(urls, str(made), options, reporter) if not made.exists() else summaries[0]
            summaries.append(summary)
            shutil.copytree(made, out)
            return summary

        return run

    summaries: list[object] = []
    monkeypatch.setattr("graphprep.api._converter", convert)
    monkeypatch.setattr(command, "_with_places", lambda found, *_: found)  # places are tested elsewhere
    arrays = [path for path in sorted(store.rglob("*.npy")) if not path.name.endswith(DERIVED) and np.load(path).size]
    assert len(arrays) > 3
    missed = []
    for path in arrays:
        data = path.read_bytes()
        np.save(path, flipped(np.load(path)))
        refinish(store)
        report = graphprep.validate(store, against=case.input_paths, threads=1, **case.resolved_options())
        column = path.name.split(".")[0] if "data" in path.parts or path.name.startswith(("weight", "time")) else ""
        words = " ".join(one.message for one in report.differences)
        # Values in rows without the column, and those of the second layout, are none of the graph: validate itself names them.
        if report.equal or (report.store.sound and not (words and column in words)):
            missed.append((str(path.relative_to(store)), words))
        path.write_bytes(data)
    assert missed == []
    refinish(store)
    assert graphprep.validate(store, against=case.input_paths, **case.resolved_options()).equal
