"""What only some runs want is neither imported nor entered by the others."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from golden.golden_cases import SAMPLE_DATA

SCRIPT = """if True:
    import json, sys, graphprep
    graphprep.convert(sys.argv[1], sys.argv[2], **json.loads(sys.argv[3]))
    print(json.dumps([name.removeprefix("graphprep.") for name in sys.modules if name.startswith("graphprep.")]))
"""
OF_OPTIONS = {
    "resume": ["convert.resume", "storage.spill.journal"],
    "rejects": ["convert.decoded.rejects"],
    "units": ["convert.units.folder", "convert.units.work", "convert.units.cluster", "convert.read.apart"],
    "engines": ["engine.processes", "engine.cluster", "engine.worker"],
    "disk": ["convert.disk_need", "convert.read.samples"],
    "roles": ["convert.roles.role_columns", "convert.columns.role_schema"],
    "memory": ["convert.memory.folder", "convert.memory.tables"],
    "packed": ["convert.read.ahead"],
    "operations": ["rewrite.run"],
}


def loaded(tmp_path, **options):
    command = [sys.executable, "-c", SCRIPT, str(SAMPLE_DATA / "karate/karate.csv"), str(tmp_path / "out"), json.dumps(options)]
    return set(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


@pytest.mark.long
def test_a_plain_run_imports_nothing_that_it_did_not_ask_for(tmp_path):
    found = loaded(tmp_path)
    assert "convert.pipeline" in found
    assert [name for names in OF_OPTIONS.values() for name in names if name in found] == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "kinds"),
    [({"resume": True}, ["resume"]), ({"on_error": "skip"}, ["rejects"]), ({"undirected": True}, ["operations"])],
)
def test_an_option_imports_what_it_installs(options, kinds, tmp_path):
    found = loaded(tmp_path, **options)
    assert [kind for kind, names in OF_OPTIONS.items() if found & set(names)] == kinds
