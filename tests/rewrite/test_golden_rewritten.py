"""What transform, reorder and partition make of golden stores: digests, and beside them what slow references make."""

import json

import pytest
from golden.golden_cases import DIGESTS, GOLDEN, REWRITES, digest
from reference.build import file_bytes
from reference.reorder import read_files, reorder_reference

import graphprep

WANTED = json.loads(DIGESTS.read_text())


def test_every_case_has_a_digest():
    assert [case.name for case in REWRITES] == list(WANTED)


@pytest.mark.parametrize("case", REWRITES, ids=lambda case: case.name)
def test_golden_digest(case, device, tmp_path):
    """Whatever the threads and the limit."""
    for number, run in enumerate(({"threads": 1}, {"threads": 3, "memory_limit": "256MiB"})):
        case.run(tmp_path / str(number), **run, device=device)
        assert digest(tmp_path / str(number)) == WANTED[case.name]
    if (tmp_path / "0/store/metadata.json").exists():
        report = graphprep.validate(str(tmp_path / "0/store"))
        assert report.sound, report.faults


OF_PARTITIONS = [case for case in REWRITES if dict(case.options).get("scope") == "partition"]


@pytest.mark.parametrize("case", OF_PARTITIONS, ids=lambda case: case.name)
def test_digests_of_orders_are_those_of_the_reference(case, tmp_path):
    files = reorder_reference(read_files(GOLDEN / case.store / "store"), case.how)
    for path, value in files.items():
        (tmp_path / "store" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "store" / path).write_bytes(file_bytes(value))
    assert digest(tmp_path) == WANTED[case.name]
