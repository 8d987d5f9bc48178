"""The exporter of docs/export.md is one: it passes what every exporter passes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep.exporters import registry
from graphprep.testing.export_contract import ExporterContract, make_store

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "export.md"
(_SOURCE,) = re.findall(r"^```python\n(.*?class PairsExporter.*?)^```$", _PAGE.read_text(), re.M | re.S)
exec(compile(_SOURCE, str(_PAGE), "exec"))


@pytest.fixture(autouse=True)
def register(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._BUILT_IN, "pairs", f"{__name__}:PairsExporter")


class TestPairs(ExporterContract):
    target = "pairs"


def test_it_writes_pairs(tmp_path):
    graphprep.export(make_store("homogeneous", tmp_path), tmp_path / "out", "pairs", drop_unsupported=True)
    pairs = np.fromfile(tmp_path / "out" / "_N___E___N.bin", np.int64).reshape(-1, 2)
    assert sorted(map(tuple, pairs.tolist())) == sorted((i % 7, (i * 5 + 1) % 7) for i in range(40))
