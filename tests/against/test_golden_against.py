"""Every golden store holds what its input says, also in other partitions, in another order and within little memory."""

from __future__ import annotations

import pytest
from golden.golden_cases import Case, load_cases, load_rewritten

import graphprep
from graphprep.against import rows
from graphprep.edges.moves import Workspace

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


@pytest.mark.heavy
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_so_do_they_in_other_partitions_and_another_order_a_few_rows_at_a_time(case, tmp_path, monkeypatch):
    with graphprep.open_store(case.store) as store:
        are_texts = any(schema.raw_ids == "string" for schema in store.metadata.node_schemas)
    graphprep.partition(case.store, tmp_path / "parts", by="hash" if are_texts else "modulo", partitions=3)
    graphprep.reorder(tmp_path / "parts", tmp_path / "hot", by="degree", scope="graph")
    windows = rows.other_windows
    monkeypatch.setattr(rows, "other_windows", lambda store, number, _: windows(store, number, 20))
    monkeypatch.setattr(Workspace, "fit", lambda *_: 30)
    for store in ("parts", "hot"):
        assert said(compare(tmp_path / store, case, threads=1)) == [], store
