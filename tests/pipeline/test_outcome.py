"""Runs that read less than they were meant to: empty inputs, too few nodes and edges, too many faults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphprep.cli.main import run
from graphprep.convert.pipeline import check_input, convert
from graphprep.model.errors import DataError, UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage


@pytest.fixture
def store(tmp_path):
    """Return the path of a store of four nodes and two edges."""
    (tmp_path / "good").write_text("0 1\n2 3\n")
    convert([str(tmp_path / "good")], str(tmp_path / "store"), ConvertOptions(format="edges"))
    return tmp_path / "store"


def files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("text", ["", "src,dst\n", "# none today\nuser_id\titem_id\ttime", "from,to\r\n"])
@pytest.mark.parametrize("format", [None, "edges"])
def test_an_input_without_a_record(format, text, store, tmp_path):
    """Nothing, or a header alone."""
    (tmp_path / "in").write_text(text)
    before = files(store)
    options = ConvertOptions(format=format, overwrite=True)
    with pytest.raises(DataError, match="in: the input is empty, and would replace a store of 4 nodes and 2 edges"):
        convert([str(tmp_path / "in")], str(store), options)
    assert files(store) == before
    for out, allowed in ((tmp_path / "new", options), (store, replace(options, allow_empty=True))):
        summary = convert([str(tmp_path / "in")], str(out), allowed)
        assert (summary.num_nodes, summary.num_edges) == ({"_N": 0}, {"_N:_E:_N": 0})
        assert "node type '_N': no ID occurs, so it has no nodes" in summary.notes


@pytest.mark.parametrize("num_nodes", [{}, {"": 9}])
def test_an_empty_input_replaces_no_store(store, tmp_path, num_nodes):
    (tmp_path / "in").write_text("")
    before = files(store)
    options = ConvertOptions(format="edges", num_nodes=num_nodes, overwrite=True)
    with pytest.raises(DataError) as caught:
        convert([str(tmp_path / "in")], str(store), options)
    assert str(caught.value) == (
        f"{tmp_path}/in: the input is empty, and would replace a store of 4 nodes and 2 edges\n"
        "  fix: see whether what makes the input works, or give --allow-empty"
    )
    assert files(store) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "in", "store"]


def test_an_empty_input_replaces_a_store_where_that_is_meant(store, tmp_path):
    (tmp_path / "in").write_text("")
    summary = convert([str(tmp_path / "in")], str(store), ConvertOptions(format="edges", overwrite=True, allow_empty=True))
    assert (summary.num_nodes, summary.num_edges) == ({"_N": 0}, {"_N:_E:_N": 0})


def test_an_empty_input_is_a_new_empty_store(tmp_path):
    (tmp_path / "in").write_text("")
    summary = convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(format="edges", overwrite=True))
    assert summary.num_nodes == {"_N": 0}
    assert "node type '_N': no ID occurs, so it has no nodes" in summary.notes


def test_nodes_alone_replace_no_store_with_edges(store, tmp_path):
    (tmp_path / "in").write_text("1,-1,0,1\n2,-1,0,1\n")
    options = ConvertOptions(format="edgelist", overwrite=True)
    with pytest.raises(DataError, match="the input has no edges, and would replace a store of 4 nodes and 2 edges"):
        convert([str(tmp_path / "in")], str(store), options)
    convert([str(tmp_path / "in")], str(tmp_path / "nodes"), options)
    convert([str(tmp_path / "in")], str(tmp_path / "nodes"), options)  # the store before had none, too


def test_dropping_all_edges_replaces_no_store(store, tmp_path):
    (tmp_path / "in").write_text("1,-1,0,1\n2,0,3,1\n1,0,4,1\n")
    options = ConvertOptions(format="edgelist", overwrite=True, on_missing_node="drop")
    with pytest.raises(DataError) as caught:
        convert([str(tmp_path / "in")], str(store), options)
    assert str(caught.value) == (
        f"{tmp_path}/in: the input has no edges but 2 that are dropped, for want of a node, and would replace a store of "
        "4 nodes and 2 edges\n  fix: see whether its ends are IDs of the nodes, or give --allow-empty"
    )


def test_skipping_all_records_replaces_no_store(store, tmp_path):
    (tmp_path / "in").write_text("x 1\ny 1\n")
    with pytest.raises(DataError, match="the input has no good record, and would replace a store"):
        convert([str(tmp_path / "in")], str(store), ConvertOptions(format="edges", overwrite=True, on_error="skip"))


@pytest.mark.parametrize(
    "work", [lambda path, options: convert([path], path + "-out", options), lambda *x: check_input([x[0]], x[1])]
)
def test_fewer_nodes_or_edges_than_asked_for(work, tmp_path):
    (tmp_path / "in").write_text("0 1\n2 3\n")
    path = str(tmp_path / "in")
    work(path, ConvertOptions(format="edges", min_nodes=4, min_edges=2))
    with pytest.raises(DataError) as caught:
        work(path, ConvertOptions(format="edges", min_nodes=4, min_edges=3, overwrite=True))
    assert str(caught.value) == (
        f"{path}: the graph has 2 edges, fewer than --min-edges 3\n  fix: see whether the input is whole, or lower --min-edges"
    )
    with pytest.raises(DataError, match="the graph has 4 nodes, fewer than --min-nodes 5"):
        work(path, ConvertOptions(format="edges", min_nodes=5, overwrite=True))
    assert StoreReader(Storage(), f"{path}-out").metadata.num_nodes_per_type == (4,) if (tmp_path / "in-out").exists() else True


@pytest.mark.parametrize("block_bytes", [8, 1 << 20])
def test_a_share_of_faulty_records(block_bytes, tmp_path):
    """Counted when all are read: the first of a file are no sample of it."""
    (tmp_path / "in").write_text("x 1\n" * 2 + "0 1\n" * 6)
    options = {"format": "edges", "on_error": "skip", "block_bytes": block_bytes}
    path = str(tmp_path / "in")
    assert convert([path], str(tmp_path / "out"), ConvertOptions(**options, max_errors="25%")).num_skipped == 2
    with pytest.raises(DataError) as caught:
        convert([path], str(tmp_path / "other"), ConvertOptions(**options, max_errors="24.9%"))
    assert str(caught.value) == (
        f"{path}: 2 of 8 records are bad (25%), more than --max-errors 24.9%\n  fix: repair the input, or raise --max-errors"
    )
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("given", ["x", "-1", "101%", "-1%", "%", "nan%", True])
def test_no_limit_of_faults(given, tmp_path):
    (tmp_path / "in").write_text("0 1\n")
    with pytest.raises(UsageError, match=f"--max-errors must be a number >= 0 or a percentage, found {given!r}"):
        convert([str(tmp_path / "in")], str(tmp_path / "o"), ConvertOptions(format="edges", on_error="skip", max_errors=given))


@pytest.mark.parametrize("command", ["convert", "validate"])
def test_fail_if_skipped(command, tmp_path, capsys):
    (tmp_path / "in").write_text("0 1\nx 1\n")
    places = [str(tmp_path / "in"), *([str(tmp_path / "out")] if command == "convert" else [])]
    args = [command, *places, "--format", "edges", "--on-error", "skip", "--fail-if-skipped", "--quiet"]
    assert run(args) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: 1 faulty record skipped, and --fail-if-skipped is given\n"
        "  fix: repair the input; --bad-records FILE lists what was skipped\n"
    )
    if command == "convert":
        assert run(["validate", places[1]]) == 0
    (tmp_path / "in").write_text("0 1\n")
    assert run([*args, *(["--overwrite"] if command == "convert" else [])]) == 0


def test_a_number_of_nodes_contradicts_sparse_ids(tmp_path):
    (tmp_path / "in").write_text("0 1\n")
    with pytest.raises(UsageError) as caught:
        convert([str(tmp_path / "in")], str(tmp_path / "out"), ConvertOptions(ids="sparse", num_nodes={"": 4}))
    assert str(caught.value) == (
        "--num-nodes contradicts --ids sparse, with which only IDs that occur are nodes\n"
        "  fix: leave out one of them, or use --ids dense"
    )
