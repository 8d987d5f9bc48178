"""Flows as DGL's blocks, in a process of DGL's."""

from __future__ import annotations

import sysconfig

import pytest
from clients.dgl_environment import DGL, ROOT
from clients.graphs import shared_store

NAMES = ("homogeneous", "heterogeneous", "multi_edge", "empty_type")


@pytest.mark.client("dgl")
@pytest.mark.xdist_group("dgl")
def test_dgl_takes_flows_as_blocks():
    DGL.find_python()
    stores = [shared_store(name)[1] for name in NAMES]
    printed = DGL.run("dgl_flow_client.py", ROOT, sysconfig.get_paths()["purelib"], *stores)
    assert len([line for line in printed.splitlines() if line.startswith('"/')]) == len(NAMES)  # DGL may say more
