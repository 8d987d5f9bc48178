"""What tests need beyond ``make test``, and the trainers whose own code they run. GRAPHPREP_REQUIRE_CLIENTS=1: CI has them all."""

from __future__ import annotations

import os
from importlib.metadata import distribution, requires

import pytest
from clients.dgl_environment import ROOT
from packaging.requirements import Requirement

REQUIRED = os.environ.get("GRAPHPREP_REQUIRE_CLIENTS", "0") not in ("", "0")
pytestmark = pytest.mark.skipif(not REQUIRED, reason="GRAPHPREP_REQUIRE_CLIENTS is not set")
TRAINERS = ["torch", "torch-geometric", "graphlearn-torch", "deepgnn-ge"]


def packages(extra):
    """Name what an extra of graphprep installs."""
    found = [Requirement(text) for text in requires("graphprep")]
    chosen = [one for one in found if one.marker and one.marker.evaluate({"extra": extra})]
    chosen = [one for one in chosen if not one.marker.evaluate({"extra": ""})]
    of_extras = [name for one in chosen if one.name == "graphprep" for other in one.extras for name in packages(other)]
    return {one.name for one in chosen if one.name != "graphprep"}.union(of_extras)


@pytest.mark.parametrize("name", [*TRAINERS, *sorted(packages("test-all"))])
def test_ci_has_the_package(name):
    assert distribution(name).version


@pytest.mark.parametrize("name", ["dgl", "deepgnn"])
def test_ci_has_the_environment(name):
    assert (ROOT / f".venv/clients/{name}/bin/python").exists(), "make clients says why"
