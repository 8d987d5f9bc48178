"""Node tables in .npz archives: against numpy.load, and every error to the letter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables_read import node_config, read

from graphprep.model.errors import DataError

relaxed = settings(deadline=None, max_examples=40)


def write(tmp_path, arrays, name="t.npz", save=np.savez):
    path = tmp_path / name
    save(path, **arrays)
    return path


@relaxed
@given(
    num_rows=st.integers(0, 6),
    dtype=st.sampled_from(["int8", "uint64", "float16", "float64", "bool"]),
    shape=st.sampled_from([(), (3,), (2, 2), (1,)]),
    order=st.sampled_from("CF"),
    save=st.sampled_from([np.savez, np.savez_compressed]),
    max_rows=st.integers(1, 7),
    with_ids=st.booleans(),
)
def test_values_are_those_that_numpy_reads(tmp_path_factory, num_rows, dtype, shape, order, save, max_rows, with_ids):
    values = np.random.default_rng(0).integers(0, 2, (num_rows, *shape)).astype(dtype)
    arrays = {"x": np.asarray(values, order=order), "n": np.arange(num_rows) - 3}
    if with_ids:
        arrays["id"] = np.arange(num_rows) * 7
    path = write(tmp_path_factory.mktemp("npz"), arrays, save=save)
    found = read(node_config(path), max_rows=max_rows, places=True)
    assert found.nodes == [
        (
            "user",
            row * 7 if with_ids else row,
            {"x": values[row].reshape(-1).tolist() if shape else values[row].item(), "n": row - 3},
        )
        for row in range(num_rows)
    ]


TEXTS = st.lists(st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=4), min_size=1)


@relaxed
@given(
    texts=TEXTS,
    kind=st.sampled_from(["<U5", ">U5", "S20"]),
    save=st.sampled_from([np.savez, np.savez_compressed]),
    max_rows=st.integers(1, 7),
)
def test_texts_are_those_that_numpy_reads(tmp_path_factory, texts, kind, save, max_rows):
    values = np.array([text.encode() if kind == "S20" else text for text in texts], kind)
    keys = np.array([f"k{row}é" if kind != "S20" else f"k{row}".encode() for row in range(len(texts))])
    path = write(tmp_path_factory.mktemp("npz"), {"id": keys, "name": values}, save=save)
    with np.load(path) as archive:
        plain = [
            [text if isinstance(text, bytes) else text.encode() for text in archive[key].tolist()] for key in ("id", "name")
        ]
    found = read(node_config(path), max_rows=max_rows)
    assert [(key.encode(), cells.get("name", b"")) for _, key, cells in found.nodes] == list(zip(*plain, strict=True))


def test_arrays_of_lists_of_texts_are_refused(tmp_path):
    path = write(tmp_path, {"a": np.array([["x", "y"]])})
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert str(caught.value) == (
        f"{path}: column 'a': a column must hold numbers, bools, texts, dates, times, or lists of numbers, "
        "found fixed_size_list<item: string>[2]\n  fix: join the texts of a row to one, or pass --drop-column a"
    )


def test_damaged_texts(tmp_path):
    path = write(tmp_path, {"id": np.array([65, 0xD800], np.uint32).view("<U1")})
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert str(caught.value) == f"{path}: id: the array holds bytes that are no text\n  fix: write the file again"
    path = write(tmp_path, {"id": np.array([b"a", b"\xff"])})
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert "UTF-8" in str(caught.value)


def test_numbered_rows_go_on_from_file_to_file(tmp_path):
    one = write(tmp_path, {"a": np.array([5, 6])}, "1.npz")
    two = write(tmp_path, {"a": np.array([7])}, "2.npz")
    assert [(key, cells["a"]) for _, key, cells in read(node_config(one, two)).nodes] == [(0, 5), (1, 6), (2, 7)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"a": np.zeros(2), "b": np.zeros(3)},
            ": array 'b' has 3 rows, but 'a' has 2\n  fix: give all columns one length, or pass --drop-column b",
        ),
        (
            {"a": np.zeros(2), "b": np.zeros(())},
            ": b: the array is a scalar, not a column\n  fix: pass --drop-column b",
        ),
        (
            {"id": np.array([0.5]), "b": np.zeros(1)},
            ": column 'id': IDs must be integers or strings, found double\n  fix: cast it to int64 or string",
        ),
        (
            {"id": np.array([1, -1])},
            ": row 1, column 'id': field 'id' must not be negative, found -1\n"
            "  fix: pass --id-type int where IDs may be negative",
        ),
    ],
)
def test_bad_archives(tmp_path, arrays, message):
    path = write(tmp_path, arrays)
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert str(caught.value) == f"{path}{message}"


def test_arrays_that_are_no_columns_can_be_dropped(tmp_path):
    path = write(tmp_path, {"a": np.arange(2), "names": np.array([0, 1], "M8[s]")})
    assert read(node_config(path, dropped=("names",))).nodes == [("user", 0, {"a": 0}), ("user", 1, {"a": 1})]
    with pytest.raises(DataError) as caught:
        read(node_config(path))
    assert str(caught.value).startswith(f"{path}: names: ")
    assert str(caught.value).endswith(", or pass --drop-column names")
