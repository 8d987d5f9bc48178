"""Every sample to every byte of its store, against golden files and against the slow reference builder."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from golden.golden_cases import FEW, SAMPLE_DATA, Case, load_cases, read_store
from jsonschema import Draft202012Validator
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

SCHEMAS = SAMPLE_DATA.parent / "schemas"
CASES = load_cases()
by_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def make_reference(case: Case) -> dict[str, np.ndarray | dict]:
    options = case.resolved_options()
    return build_reference(read_graph(options["format"], case.input_paths, options), options)


def describe(path: str, data: bytes) -> str:
    """A file's content in words, for the message of a failed comparison."""
    if path.endswith(".json"):
        return data.decode()
    array = np.load(io.BytesIO(data))
    return f"{array.dtype}{list(array.shape)} {array.tolist()}"


def assert_same_files(got: dict[str, bytes], expected: dict[str, bytes]) -> None:
    """Compare two stores; JSON and arrays are shown where they differ. metadata.json comes last: it follows from the rest."""
    assert sorted(got) == sorted(expected)
    for path in sorted(expected, key=lambda path: (path.endswith(".json"), path)):
        if got[path] != expected[path]:
            assert describe(path, got[path]) == describe(path, expected[path]), path
            raise AssertionError(f"{path}: same content, other bytes")


def test_there_are_cases():
    assert len(CASES) >= 40


def test_the_few_have_every_format_and_choice():
    few = [case for case in CASES if case.name in FEW]
    assert len(few) == len(FEW)
    for option in ("format", "ids", "layout", "edge_ids", "neighbor_order", "on_error", "on_missing_node"):
        assert {case.options.get(option) for case in few} == {case.options.get(option) for case in CASES}, option


@by_case
def test_reference_builder_writes_the_golden_bytes(case):
    reference = {path: file_bytes(value) for path, value in make_reference(case).items()}
    assert_same_files(reference, read_store(case.store))


@by_case
def test_convert_writes_the_golden_bytes(case, device, request, tmp_path):
    options = ConvertOptions(**case.resolved_options(), run=RunOptions(device=device))
    pipeline.convert([str(path) for path in case.input_paths], str(tmp_path / "store"), options)
    assert_same_files(read_store(tmp_path / "store"), read_store(case.store))
    assert device == "cpu" or request.getfixturevalue("gpu"), "nothing was computed there"


@by_case
def test_arrays_equal_the_reference(case):
    """Array by array, so that a wrong value is shown as such and not as a wrong checksum."""
    for path, expected in make_reference(case).items():
        data = (case.store / path).read_bytes()
        if isinstance(expected, dict):
            assert json.loads(data) == expected, path
            continue
        array = np.load(io.BytesIO(data))
        assert (array.dtype, array.shape) == (expected.dtype, expected.shape), path
        np.testing.assert_array_equal(array, expected, err_msg=path)


@by_case
def test_golden_json_files_fit_the_schemas(case):
    for name, schema in (("metadata.json", "metadata"), ("*/manifest.json", "manifest")):
        checker = Draft202012Validator(json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
        for path in case.store.glob(name):
            assert [error.message for error in checker.iter_errors(json.loads(path.read_text()))] == [], path


def test_one_graph_in_three_formats_is_one_store():
    """EdgeList, JSON and TSV of the town hold the same graph."""
    stores = [read_store(case.store) for case in CASES if case.name in ("town_edgelist", "town_json", "town_tsv")]
    assert len(stores) == 3
    assert stores[0] == stores[1] == stores[2]
