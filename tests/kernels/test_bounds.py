"""Whole conversions, and partitions by edges, with Numba's bounds checks: every kernel that they call stays inside its arrays."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from golden.golden_cases import load_cases, read_store

CODE = """
import json, sys
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.partition import PartitionOptions
from graphprep.convert.pipeline import convert
from graphprep.rewrite.partition.command import partition
for inputs, out, options in json.loads(sys.argv[1]):
    convert(inputs, out, ConvertOptions(**options))
    for by in ("ldg", "fennel"):
        partition(out, f"{out}-{by}", PartitionOptions(by, 3, balance=("nodes", "edges", "type")))
"""
NAMES = [
    "shop_temporal_json",
    "town_neighbor",
    "shop_chunked_random",
    "edges_wide_ids",
    "edges_tsv_hash",
    "davis_bipartite",
    "edges_roles",
]


@pytest.mark.heavy
def test_conversions_stay_inside_their_arrays(tmp_path, pytestconfig):
    """In a process and with a cache of its own: kernels compiled without the checks have none."""
    cases = [case for case in load_cases() if case.name in NAMES]
    assert len(cases) == len(NAMES)
    work = [
        ([str(path) for path in case.input_paths], str(tmp_path / case.name), case.resolved_options() | {"block_bytes": 300})
        for case in cases
    ]
    cache = pytestconfig.cache.mkdir("numba-bounds")
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(cache)}
    done = subprocess.run([sys.executable, "-c", CODE, json.dumps(work)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for case in cases:
        assert read_store(tmp_path / case.name) == read_store(case.store), case.name
