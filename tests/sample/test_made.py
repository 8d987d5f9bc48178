"""``info`` and ``validate`` of what graphprep wrote that is no store: samples, and exports."""

from __future__ import annotations

import json
import shutil

import pytest
from clients.graphs import shared_store

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder, store = tmp_path_factory.mktemp("made"), shared_store("heterogeneous")[1]
    (folder / "seeds.txt").write_text("0\n1\n2\n")
    options = {"seeds": f"user={folder}/seeds.txt", "typed_ids": True, "fanouts": [3, 2], "batch_size": 2, "epochs": 2}
    graphprep.sample(store, folder / "flows", **options, copy_columns=["user:feat"])
    graphprep.export(store, folder / "pyg", target="pyg")
    return folder


def test_info_tells_what_samples_hold(made, capsys):
    assert run(["info", str(made / "flows"), "--head", "1"]) == 0
    found = capsys.readouterr()
    manifest = json.loads((made / "flows" / "manifest.json").read_text())
    shard = manifest["shards"][0]
    size = shard["bytes"] / 1000
    lines = found.out.splitlines()
    assert lines[0] == f"{made}/flows: samples (npz), 2 files, {size:.1f} KB"
    assert "nodes user: 30" in lines
    assert any(line.startswith("edges user:buys:item: ") for line in lines)
    words = f"4 flows of 3 layers: 2 batches in each of 2 epochs; {shard['num_nodes']} nodes, {shard['num_edges']} edges"
    assert f"  note: {words}" in lines
    assert f"  note: samples-00000.npz: 4 flows, {shard['num_nodes']} nodes, {shard['num_edges']} edges" in lines
    assert "convert with" not in found.out
    told = graphprep.info(made / "flows")
    assert (told.kind, told.num_bytes, told.num_files) == ("samples", shard["bytes"], 2)


def test_info_tells_what_an_export_is(made, capsys):
    assert run(["info", str(made / "pyg")]) == 0
    lines = capsys.readouterr().out.splitlines()
    files = [path for path in (made / "pyg").rglob("*") if path.is_file()]
    assert lines[0].startswith(f"{made}/pyg: export for pyg, {len(files)} files, ")
    known = [size for size in json.loads((made / "pyg/export.json").read_text())["files"].values() if size is not None]
    assert graphprep.info(made / "pyg").num_bytes == sum(known) > 0
    assert "nodes user: 30" in lines
    assert any(line.startswith("  note: nodes are numbered by (user: ") for line in lines)


def test_whole_ones_are_sound(made, capsys):
    assert run(["validate", str(made / "flows")]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{made}/flows: sound\n")
    assert "checked 1 shard, sizes and hashes" in text
    assert run(["validate", str(made / "pyg")]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{made}/pyg: sound, as far as names and sizes tell\n")
    assert f"checked {sum(path.is_file() for path in (made / 'pyg').rglob('*'))} files, names and sizes" in text
    assert graphprep.validate(made / "flows").sound


def test_what_is_not_whole_is_told_with_its_place(made, tmp_path, capsys):
    flows = tmp_path / "flows"
    shutil.copytree(made / "flows", flows)
    shard, manifest = flows / "samples-00000.npz", flows / "manifest.json"
    good, value = shard.read_bytes(), json.loads(manifest.read_text())

    def fault():
        assert run(["validate", str(flows)]) == 1
        return capsys.readouterr().err

    shard.write_bytes(good[:-1])
    assert fault() == f"error: samples-00000.npz: the file has {len(good) - 1} bytes, manifest.json says {len(good)}\n"
    shard.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    assert fault().startswith("error: samples-00000.npz: the file has xxh3 ")
    shard.unlink()
    assert fault() == "error: samples-00000.npz: the file is missing\n"
    shard.write_bytes(good)
    for changes, words in (
        ({"num_flows": 9}, "manifest.json: the shards have 4 flows, num_flows says 9"),
        ({"shards": 3}, "manifest.json: shards is no list"),
        ({"shards": [7]}, "manifest.json: shards[0]: TypeError"),
        ({"shards": [{**value["shards"][0], "path": "../x"}]}, "../x: the file is missing"),
        ({"store": []}, "manifest.json: node_type and num_nodes_per_type: TypeError"),
    ):
        manifest.write_text(json.dumps({**value, **changes}))
        assert f"error: {words}" in fault()
    with pytest.raises(DataError, match="what the folder says of itself is not whole: TypeError"):
        graphprep.info(flows)
    manifest.write_text(json.dumps({"format": "graphprep-samples"}))
    assert "error: manifest.json: store is missing" in fault()


def test_files_of_an_export_that_are_not_whole_are_told(made, tmp_path, capsys):
    out = tmp_path / "pyg"
    shutil.copytree(made / "pyg", out)
    data, record = out / "data.pt", out / "export.json"
    good, value = data.read_bytes(), json.loads(record.read_text())

    def fault():
        assert run(["validate", str(out)]) == 1
        return capsys.readouterr().err

    data.write_bytes(good[:-1])
    assert fault() == f"error: data.pt: the file has {len(good) - 1} bytes, export.json says {len(good)}\n"
    data.unlink()
    assert fault() == "error: data.pt: the file is missing\n"
    data.write_bytes(good)
    record.write_text(json.dumps({**value, "files": {**value["files"], "../pyg/data.pt": None}}))
    assert fault() == "error: ../pyg/data.pt: the file is missing\n"
    record.write_text(json.dumps({**value, "files": ["data.pt"]}))
    assert fault() == "error: export.json: files is no object of names and sizes\n"


def test_a_manifest_of_others_is_still_input(tmp_path, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").write_text('{"format": "other"}')
    assert run(["info", str(tmp_path / "folder")]) == 2
    assert "cannot tell the format" in capsys.readouterr().err
