"""CI has the trainers whose own code tests run: none of them is passed over in silence there."""

from __future__ import annotations

import importlib.util
import os

import pytest
from clients.dgl_environment import ROOT

pytestmark = pytest.mark.skipif(os.environ.get("CI") != "true", reason="only CI has to have every trainer")


@pytest.mark.parametrize("name", ["torch", "torch_geometric", "graphlearn_torch", "deepgnn"])
def test_ci_has_the_package(name):
    assert importlib.util.find_spec(name), f"{name} is not installed: make clients says why"


@pytest.mark.parametrize("name", ["dgl", "deepgnn"])
def test_ci_has_the_environment(name):
    assert (ROOT / f".venv/clients/{name}/bin/python").exists(), "make clients says why"
