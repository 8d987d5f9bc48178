"""Every golden store holds what its input says, also in other partitions, in another order and within little memory."""

from __future__ import annotations

import pytest
from golden.golden_cases import Case, load_cases, load_rewritten

import graphprep

CASES = load_cases()


def compare(store, case: Case, **given):
    options = case.resolved_options() | given
    return graphprep.validate(str(store), against=case.input_paths, **options)


def said(report) -> list[str]:
    return [*map(str, report.store.faults), *map(str, report.differences)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_golden_stores_hold_what_their_inputs_say(case):
    report = compare(case.store, case)
    assert said(report) == []
    assert report.equal


@pytest.mark.parametrize("folder", ["reordered", "partitioned"])
def test_so_do_those_that_were_reordered_or_partitioned(folder):
    cases = load_rewritten(folder)
    assert cases
    for case, store, _ in cases:
        assert said(compare(store, case)) == [], store
