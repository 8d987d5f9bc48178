"""``export`` with what users get wrong: values that do not fit, odd columns, places, partitionings, what fails half-way."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients.graphs import Edges, Graph, Nodes, make_store
from exporters.dgl_reader import read_tensors

import graphprep
from graphprep.cli.main import run
from graphprep.exporters.plain.metis import MetisExporter
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.storage.private import LocalClaim, PrivateFolder

pytestmark = pytest.mark.usefixtures("flags_named")

NO_EDGES = {("n", "to", "n"): Edges([0, 1], [1, 2])}


def _store(tmp_path: Path, columns: dict[str, np.ndarray] | None = None, **options: Any) -> Path:
    return make_store(Graph({"n": Nodes([0, 1, 2], columns or {})}, NO_EDGES), tmp_path, **options)


def _export(store: Path, target: str, **given: Any) -> Path:
    out = store.parent / f"out-{target}"
    graphprep.export(str(store), str(out), target, **given)
    return out


# ---------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("stored", "wanted", "row", "said"),
    [
        (np.array([1, 2, -1], np.int64), "uint64", 2, "-1 does not fit uint64"),
        (np.array([1, -1, 2], np.int8), "uint8", 1, "-1 does not fit uint8"),
        (np.array([2**63, 1, 2], np.uint64), "int64", 0, "9223372036854775808 does not fit int64"),
        (np.array([1, 300, 2], np.int64), "int8", 1, "300 does not fit int8"),
        (np.array([1, 2, np.nan]), "int32", 2, "nan does not fit int32"),
        (np.array([1, 2.5, 3]), "int32", 1, "2.5 does not fit int32"),
        (np.array([1, 1e5, 3]), "float16", 1, "100000.0 does not fit float16"),
        (np.array([[1, 2], [3, -4], [5, 6]], np.int16), "uint16", 1, "-4 does not fit uint16"),
        (np.array([2048, 2049, 2050], np.int16), "float16", 1, "2049 does not fit float16"),
        (np.array([1, 70_000, 2]), "float16", 1, "70000 does not fit float16"),
        (np.array([1, 2, -(2**24) - 1]), "float32", 2, "-16777217 does not fit float32"),
        (np.array([1, 2**63 - 1, 2]), "float32", 1, "9223372036854775807 does not fit float32"),
        (np.array([1, 2, 2**64 - 1], np.uint64), "float32", 2, "18446744073709551615 does not fit float32"),
    ],
)
def test_values_that_do_not_fit_another_dtype(stored, wanted, row, said, tmp_path):
    store = _store(tmp_path, {"some": stored})
    with pytest.raises(DataError, match=f"nodes/n/data/some .{row}.: {said}"):
        _export(store, "npy", feature_dtypes={"some": wanted})
    assert not (tmp_path / "out-npy").exists()


@pytest.mark.parametrize(
    ("stored", "wanted"),
    [
        (np.array([2048, -2050, 65504]), "float16"),
        (np.array([2**24, -(2**63), 2**62]), "float32"),
        (np.array([2**63, 2**63 + 2**40, 0], np.uint64), "float32"),
        (np.array([2**53 + 1, -(2**53) - 1, 2**63 - 1]), "float64"),
        (np.array([0.1, 1e-9, 65519.0]), "float16"),
        (np.array([True, False, True]), "float16"),
    ],
)
def test_values_that_another_dtype_holds_or_rounds(stored, wanted, tmp_path):
    """Floats may be rounded, whole numbers only in the widest dtype."""
    out = _export(_store(tmp_path, {"some": stored}), "npy", feature_dtypes={"some": wanted})
    found = np.load(out / "nodes/n/data/some.npy")
    assert found.dtype == wanted
    assert np.array_equal(found, stored.astype(wanted))


@pytest.mark.parametrize("target", ["pyg", "glt"])
def test_numbers_beyond_int64_are_not_wrapped(target, tmp_path):
    graph = Graph({"n": Nodes([0, 1, 2], {"some": np.array([1, 2**63 + 5, 2], np.uint64)}, "some")}, NO_EDGES)
    store = make_store(graph, tmp_path)
    with pytest.raises(DataError, match=r"some \[1\]: 9223372036854775813 does not fit int64"):
        _export(store, target)
    _export(store, target, feature_dtypes={"some": "float64"})


@pytest.mark.parametrize("target", ["pyg", "glt"])
def test_features_beyond_float32_are_told_to_be_rounded(target, tmp_path):
    graph = Graph({"n": Nodes([0, 1, 2], {"some": np.array([1, 2**63 + 5, 2], np.uint64)})}, NO_EDGES)
    summary = graphprep.export(make_store(graph, tmp_path), tmp_path / "out", target)
    assert any("some" in note and "round" in note for note in summary.notes), summary.notes


@pytest.mark.parametrize("target", ["pyg", "glt", "scipy", "npy", "parquet", "dgl-chunked", "distdgl", "graphbolt"])
def test_columns_without_items(target, tmp_path):
    """A type without nodes may have vectors of which no length is known."""
    nodes = {"n": Nodes([0, 1, 2]), "none": Nodes([], {"feat": np.zeros((0, 3), np.float32)})}
    store = make_store(Graph(nodes, NO_EDGES), tmp_path, partitions=2)
    _export(store, target, feature_dtypes={"feat": "float64"})


# ---------------------------------------------------------------------------------------------- places


def test_places_without_a_name(tmp_path):
    store = _store(tmp_path)
    with pytest.raises(UsageError, match="the output has no name"):
        graphprep.export(str(store), "", "npy")
    with pytest.raises(UsageError, match="the store has no name"):
        graphprep.export("", str(tmp_path / "out"), "npy")


def test_places_of_exports_after_convert_are_looked_at_before(tmp_path, capsys):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    out = tmp_path / "store"
    for exports, said in [
        (f"npy={out}", "the output is the store itself"),
        (f"npy={out}/npy", "the output lies in the store"),
        (f"npy={tmp_path}/a,mtx={tmp_path}/a", f"two exports go to {tmp_path}/a\n"),
        ("", "--export '' lacks a target"),
        ("npy,=x", "--export 'npy,=x' lacks a target"),
        (f"npy={tmp_path}/e.txt/npy", f"{tmp_path}/e.txt/npy: "),
        (f"npy={tmp_path}/a,mtx={tmp_path}/a/b", "two exports go to"),
        (f"npy={tmp_path}/a/b,mtx={tmp_path}/a", "two exports go to"),
    ]:
        code = run(["convert", str(tmp_path / "e.txt"), str(out), "--export", exports, "--overwrite", "--quiet"])
        stderr = capsys.readouterr().err
        assert (code in (2, 3), said in stderr, out.exists()) == (True, True, False), stderr


def test_exports_after_convert_may_be_listed_with_blanks(tmp_path):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    assert run(["convert", str(tmp_path / "e.txt"), str(tmp_path / "s"), "--export", "npy, mtx", "--quiet"]) == 0
    assert {one.name for one in tmp_path.iterdir()} == {"e.txt", "s", "s-npy", "s-mtx"}


def test_a_place_of_an_export_that_another_run_has_is_told_before_converting(tmp_path, capsys):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    words = ["convert", str(tmp_path / "e.txt"), str(tmp_path / "s"), "--export", "npy,mtx", "--quiet"]
    other = LocalClaim(tmp_path / "s-mtx")
    other.take()
    assert run(words) == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path}/s-mtx: process {os.getpid()} is writing this output\n  fix: wait for it, or choose another name\n"
    )
    other.release()
    assert {one.name for one in tmp_path.iterdir()} == {"e.txt"}
    assert run(words) == 0
    assert {one.name for one in tmp_path.iterdir()} == {"e.txt", "s", "s-npy", "s-mtx"}


def test_a_place_of_an_export_that_cannot_be_written_is_told_before_converting(tmp_path, capsys, monkeypatch):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "locked")  # root may write everywhere
    place = f"npy={tmp_path}/locked/deep/npy"
    assert run(["convert", str(tmp_path / "e.txt"), str(tmp_path / "s"), "--export", place, "--quiet"]) == 3
    assert "permission denied" in capsys.readouterr().err
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["convert", "IN", "OUT", "--drop-unsupported"], "--drop-unsupported is of --export, which is not given"),
        (["convert", "IN", "OUT", "--message-edges", "all"], "--message-edges is of --export, which is not given"),
        (
            ["convert", "IN", "OUT", "--export", "npy", "--message-edges", "train"],
            "--message-edges train: target 'npy' holds all edges, by edge ID",
        ),
        (
            ["export", "STORE", "OUT", "--to", "pyg", "--message-edges", "train"],
            "--message-edges train: no edge type has a split",
        ),
        (["export", "STORE", "OUT", "--to", "npy,mtx"], "--to npy,mtx: one target at a time"),
        (["export", "STORE", "-", "--to", "npy"], "-: an export is a folder, and cannot go to stdout"),
        (["export", "--list", "STORE", "OUT"], "OUT: --list shows targets, and writes nothing"),
        (["export", "--list", "--to", "nothing"], "no target named 'nothing'"),
        (["export", "--list", "--to", "glt", "--option", "layout=ELL"], "option layout must be one of COO, CSR, CSC"),
        (["export", "--list", "STORE", "--partitions", "2"], "--list tells of a store as it is"),
        (["export", "--list", "--cache-ratio", "0.5"], "options are of one target, and none is named"),
    ],
)
def test_commands_that_make_no_sense(args, said, tmp_path, capsys):
    (tmp_path / "e.txt").write_text("0 1\n1 2\n")
    places = {"IN": str(tmp_path / "e.txt"), "STORE": str(_store(tmp_path)), "OUT": str(tmp_path / "out")}
    assert run([places.get(one, one) for one in args]) == 2
    assert said.replace("OUT", places["OUT"]) in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_one_target_is_listed(capsys):
    assert run(["export", "--list", "--to", "glt", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)] == ["glt"]


@pytest.mark.parametrize("as_json", [False, True])
def test_a_store_whose_export_fails_is_told(as_json, tmp_path, capsys, monkeypatch):
    def fail(*_args):
        raise DataError("METIS takes no such rows")

    monkeypatch.setattr(MetisExporter, "export", fail)
    (tmp_path / "e.txt").write_text("0 1 2.5\n1 2 1.5\n")
    args = [
        "convert",
        str(tmp_path / "e.txt"),
        str(tmp_path / "store"),
        "--export",
        "npy,metis",
        "--drop-unsupported",
    ]
    assert run([*args, *(["--json"] if as_json else [])]) == 1
    stdout, stderr = capsys.readouterr()
    assert "METIS takes no such rows" in stderr
    assert f"; the store is whole, so go on with graphprep export {tmp_path}/store " in stderr
    if as_json:
        assert [one["target"] for one in json.loads(stdout)["exports"]] == ["npy"]
    else:
        assert f"{tmp_path}/store: 3 nodes" in stdout and f"{tmp_path}/store-npy: 3 nodes" in stdout
    assert (tmp_path / "store-npy" / "export.json").exists()
    assert not (tmp_path / "store-metis").exists()


def test_what_a_killed_run_left_is_removed(tmp_path):
    """Also by a run that makes no temporary files itself."""
    store = _store(tmp_path / "store")
    left = PrivateFolder(str(tmp_path))
    path = Path(left.make())
    (path / "ready.npy").write_bytes(b"much")
    left.release()  # its lock goes with the process
    graphprep.export(str(store), str(tmp_path / "out"), "scipy")
    assert not path.exists()


def test_a_full_disk_of_temporary_files_is_told_with_its_option(tmp_path, monkeypatch):
    from graphprep.storage.write import publish

    store = _store(tmp_path)

    def full(*given: Any) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(publish._LocalSink, "write", full)
    given = {"partition_by": "hash", "run": graphprep.RunOptions(tmp_dir=str(tmp_path))}
    with pytest.raises(StorageError, match="no space left") as caught:
        _export(store, "pyg", partitions=2, **given)
    assert caught.value.place == str(tmp_path)
    assert caught.value.fix == "free some space, or choose another place with --tmp-dir"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("target", ["glt", "graphbolt"])
def test_from_one_bucket_place_to_another(target, bucket, tmp_path, monkeypatch):
    """A store on S3 is partitioned on the way to S3; the objects are those of local files, and no upload is left open."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", bucket.endpoint)
    store = _store(tmp_path, {"feat": np.arange(6, dtype=np.float32).reshape(3, 2)})
    url, given = bucket.put_folder(store, "store"), {"partitions": 2, "partition_by": "hash", "ids": "typed"}
    out = _export(store, target, **given)
    graphprep.export(url, f"{bucket.url}/out", target, **given)
    assert bucket.files("out") == {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.export(url, f"{bucket.url}/out", target)
    with pytest.raises(UsageError, match="the output lies in the store"):
        graphprep.export(url, f"{url}/out", target)
    assert bucket.uploads() == []


# ---------------------------------------------------------------------------------------------- lists


def test_the_list_fits_80_columns(capsys):
    assert run(["export", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines.count("  options    layout=COO|CSR|CSC  [default: COO]") == 1
    assert "               round float features to bfloat16" in lines


def test_the_list_of_a_store_knows_the_options(tmp_path, capsys):
    store = _store(tmp_path, layout="csc")
    args = ["export", str(store), "--list", "--to", "glt"]
    assert run(args) == 0
    assert "  makes      csr arrays, edge columns in another order\n" in capsys.readouterr().out
    assert run([*args, "--option", "layout=CSC"]) == 0
    assert "  makes " not in capsys.readouterr().out
    assert run([*args, "--option", "layout=CSC", "--json"]) == 0
    (target,) = json.loads(capsys.readouterr().out)
    assert (target["makes"], target["needs"][:15]) == ([], "edges by source")
    assert target["options"][0] == {
        "name": "layout",
        "values": "COO|CSR|CSC",
        "default": "COO",
        "meaning": "what DistDataset.load(input_layout=...) is to be told; GLT sorts COO while it loads",
    }


# ---------------------------------------------------------------------------------------------- partitionings


def test_another_number_of_partitions_keeps_the_method(tmp_path):
    store = _store(tmp_path, partitions=2, partition_by="hash")
    record = json.loads((_export(store, "npy", partitions=3) / "export.json").read_text())
    assert (record["num_parts"], record["partition_by"]) == (3, "hash")


def test_the_same_number_of_partitions_keeps_them(tmp_path):
    """Also where nobody knows how they were made: of random ones the seed, of a file all."""
    (tmp_path / "parts.txt").write_text("1\n0\n1\n")
    store = _store(tmp_path, partition_by=str(tmp_path / "parts.txt"))
    record = json.loads((_export(store, "npy", partitions=2) / "export.json").read_text())
    assert (record["partition_by"], record["num_nodes_per_chunk"]) == ("file", [[1, 2]])
    with pytest.raises(UsageError, match="the store is partitioned by a file"):
        _export(store, "mtx", partitions=3)


def test_a_way_to_partition_that_is_none(tmp_path):
    with pytest.raises(UsageError, match="--partition-by 'nope' is neither a method nor a file"):
        _export(_store(tmp_path), "npy", partition_by="nope")


@pytest.mark.parametrize(("target", "options"), [("pyg", {"graph_class": "homo"})])
def test_one_type_is_counted_as_one(target, options, tmp_path):
    edges = {**NO_EDGES, ("n", "of", "n"): Edges([0], [1])}
    store = make_store(Graph({"n": Nodes([0, 1, 2])}, edges), tmp_path)
    with pytest.raises(UsageError, match="the graph has 1 node type and 2 edge types"):
        _export(store, target, **options)


# ---------------------------------------------------------------------------------------------- broken stores


def test_columns_are_refused_before_anything_is_made(tmp_path, monkeypatch):
    from graphprep.export import command as exporting

    def made(*given: Any) -> None:
        raise AssertionError("something was made")

    store = _store(tmp_path, {"is_new": np.array([True, False, True])})
    monkeypatch.setattr(exporting, "derived_store", made)
    with pytest.raises(UsageError, match="target 'deepgnn-tsv' does not support all columns"):
        _export(store, "deepgnn-tsv")


@pytest.fixture
def named(tmp_path):
    """Return a store whose nodes have names."""
    graph = Graph({"n": Nodes(["ada", "bob", "eve"])}, {("n", "to", "n"): Edges(["ada", "bob"], ["bob", "eve"])})
    return make_store(graph, tmp_path)


@pytest.mark.parametrize("offsets", [[0, 2**40, 6, 9], [0, -3, 6, 9], [0, 3, 6, 10], [5, 3, 6, 9], [0, 3, 2**63 - 1, 9]])
@pytest.mark.parametrize("target", ["npy", "parquet", "graphbolt"])
def test_offsets_of_names_that_lead_elsewhere(target, offsets, named):
    np.save(named / "part-00000/nodes/n/raw_ids.offsets.npy", np.array(offsets))
    with pytest.raises(DataError, match=r"raw_ids.offsets.npy.*: (expected a number in \[0, 9\]|offsets must not descend)"):
        _export(named, target)


@pytest.mark.parametrize("edge_id", [7, -1, 2**31 - 1])
@pytest.mark.parametrize("target", ["pyg", "glt", "npy", "parquet", "edges", "distdgl", "graphbolt", "dgl-chunked", "mtx"])
def test_edge_ids_beyond_the_edges(target, edge_id, tmp_path):
    """No kernel follows them, and where they are only copied, no error of ours is a mistake of ours."""
    store = _store(tmp_path, partitions=2)
    path = store / "part-00001/edges/n__to__n/csc/edge_ids.npy"
    np.save(path, np.full_like(np.load(path), edge_id))
    try:
        _export(store, target)
    except DataError as error:
        assert error.place and error.fix
    else:
        assert target in ("distdgl", "graphbolt", "glt")


def test_raw_ids_that_occur_twice(tmp_path):
    store = _store(tmp_path, partitions=2, partition_by="hash")
    path = next(path for path in sorted(store.glob("part-*/nodes/n/raw_ids.npy")) if np.load(path).size > 1)
    np.save(path, np.zeros_like(np.load(path)))
    with pytest.raises(DataError, match="raw IDs of node type 'n' occur twice"):
        _export(store, "scipy")


@pytest.mark.parametrize("target", ["pyg", "glt", "npy", "scipy", "parquet", "mtx", "edges", "metis", "distdgl", "graphbolt"])
def test_neighbours_beyond_the_nodes(target, tmp_path):
    store = _store(tmp_path, partitions=2, partition_by="hash")
    for path in store.glob("part-*/edges/n__to__n/csc/indices.npy"):
        np.save(path, np.full_like(np.load(path), 1000))
    with pytest.raises(DataError) as caught:
        _export(store, target)
    assert caught.value.place
    assert caught.value.fix


def test_original_ids_of_distdgl_are_permutations(tmp_path):
    """Rows of whole arrays are found by them. What is no such raw ID is a typed one, and looked up in the map."""
    (tmp_path / "near.csv").write_text("id\n0\n500\n7\n")
    (tmp_path / "far.csv").write_text(f"id\n1\n{2**63 + 1}\n")
    (tmp_path / "to.csv").write_text(f"src,dst\n0,1\n7,{2**63 + 1}\n")
    tables = ["--nodes", f"near={tmp_path}/near.csv", "--nodes", f"far={tmp_path}/far.csv"]
    assert run(["convert", *tables, "--edges", f"near:to:far={tmp_path}/to.csv", str(tmp_path / "store"), "--quiet"]) == 0
    out = _export(tmp_path / "store", "distdgl")
    found = read_tensors((out / "part0" / "orig_nids.dgl").read_bytes())
    assert {name: ids.tolist() for name, ids in found.items()} == {"near": [0, 1, 2], "far": [0, 1]}
    assert sorted(path.name for path in (out / "id_map").iterdir()) == ["far.npy", "near.npy"]
    assert np.load(out / "id_map" / "near.npy").tolist() == [0, 7, 500]
    assert np.load(out / "id_map" / "far.npy").tolist() == [1, 2**63 + 1]


@pytest.mark.parametrize(("ids", "wanted"), [("auto", [0, 2, 1, 3]), ("raw", [0, 2, 1, 3]), ("typed", [0, 1, 2, 3])])
def test_distdgl_takes_ids_raw_and_typed(ids, wanted, tmp_path):
    (tmp_path / "parts.txt").write_text("0\n1\n0\n1\n")
    (tmp_path / "e.csv").write_text("0,1\n1,2\n2,3\n3,0\n")
    options = {"partition_by": str(tmp_path / "parts.txt"), "partitions": 2}
    graphprep.convert(str(tmp_path / "e.csv"), str(tmp_path / "store"), format="edges", **options)
    out = _export(tmp_path / "store", "distdgl", ids=ids)
    found = [read_tensors((out / f"part{part}" / "orig_nids.dgl").read_bytes())["_N"].tolist() for part in range(2)]
    assert found[0] + found[1] == wanted
    assert (out / "id_map").exists() == (ids == "typed")


# ---------------------------------------------------------------------------------------------- columns left out by name


def test_columns_are_left_out_by_name(tmp_path):
    store = _store(tmp_path, {"a": np.arange(3.0), "b": np.arange(3)})
    for dropped, kept in [(["a"], ["b"]), (["n:b"], ["a"]), (["b", "n:a"], [])]:
        out = tmp_path / "-".join(dropped).replace(":", "_")
        summary = graphprep.export(str(store), str(out), "npy", drop_columns=dropped)
        record = json.loads((out / "export.json").read_text())
        assert [one["name"] for one in record["node_columns"]["n"]] == kept
        assert set(record["dropped"]) == set(summary.dropped)
        assert len(summary.dropped) == len(dropped)
        assert not any(name in path.name for path in out.rglob("*.npy") for name in {"a", "b"} - set(kept))
    with pytest.raises(UsageError, match=r"--drop-column: there is no column 'n:c'\n  fix: use one of a, b"):
        _export(store, "npy", drop_columns=["n:c"])


def test_a_column_left_out_is_no_hindrance(tmp_path):
    store = _store(tmp_path, {"is_new": np.array([True, False, True])})
    with pytest.raises(UsageError, match="does not support all columns"):
        _export(store, "deepgnn-tsv")
    out = tmp_path / "left-out"
    assert run(["export", str(store), str(out), "--to", "deepgnn-tsv", "--drop-column", "is_new", "--quiet"]) == 0
    assert json.loads((out / "export.json").read_text())["dropped"] == ["node column n 'is_new': left out as asked"]


# ---------------------------------------------------------------------------------------------- partitions asked for


def test_a_plan_knows_the_partitions_that_are_asked_for(tmp_path):
    one, three = _store(tmp_path / "one"), _store(tmp_path / "three", partitions=3)
    with pytest.raises(UsageError, match="option layout=CSC: partitions hold pairs of IDs"):
        _export(one, "pyg", partitions=2, layout="CSC")
    graphprep.export(str(three), str(tmp_path / "whole"), "pyg", partitions=1, layout="CSC")
    assert (tmp_path / "whole" / "data.pt").exists()


@pytest.mark.parametrize("target", ["deepgnn-edgelist", "deepgnn-json", "deepgnn-tsv"])
@pytest.mark.parametrize("given", [{"partitions": 2}, {"partition_by": "hash"}])
def test_sorted_text_has_one_partition(target, given, tmp_path):
    with pytest.raises(UsageError, match=f"target '{target}' has one partition, by ID"):
        _export(_store(tmp_path), target, **given)


@pytest.mark.parametrize("layout", ["csc", "csr", "both"])
def test_edges_are_counted_where_the_files_have_them(layout, tmp_path):
    edges = {("n", "to", "n"): Edges([0, 0, 0, 1], [2, 2, 1, 2])}
    store = make_store(Graph({"n": Nodes([0, 1, 2, 3])}, edges), tmp_path, layout=layout, partitions=2)
    for owner, counts in [("by_src", [4, 0]), ("by_dst", [1, 3])]:
        out = tmp_path / owner
        graphprep.export(str(store), str(out), "glt", edge_assign=owner)
        assert json.loads((out / "export.json").read_text())["num_edges_per_chunk"] == [counts], owner
