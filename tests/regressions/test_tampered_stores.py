"""Stores whose arrays were changed, and bound again by new checksums: every command ends with words, or with sound results."""

import json
import os

import numpy as np
import pytest
import xxhash

import graphprep
from graphprep.cli.main import run

ARRAYS = {
    "nodes/user/data/name.offsets.npy": ("npy", "parquet", "hash"),
    "nodes/user/raw_ids.offsets.npy": ("hash", "raw", "npy"),
    "nodes/user/raw_order.npy": ("hash", "raw", "npy"),
    "edges/user__likes__item/data/note.offsets.npy": ("npy", "simple"),
    "edges/user__likes__item/csc/indptr.npy": ("simple", "hash"),
}
CHANGES = {
    "descending": lambda values: values[::-1].copy(),
    "negative": lambda values: np.where(np.arange(values.size) == values.size // 2, -7, values).astype(values.dtype),
    "zeros": np.zeros_like,
    "huge": lambda values: np.where(np.arange(values.size) >= values.size // 2, 1 << 30, values).astype(values.dtype),
}
COMMANDS = {
    "validate": "validate {store}",
    "npy": "export {store} {out} --to npy --drop-unsupported",
    "parquet": "export {store} {out} --to parquet --drop-unsupported",
    "hash": "partition {store} {out} --by hash -p 3",
    "raw": "ids {store} --from raw --to typed --type user u1 u2 u3",
    "simple": "transform {store} {out} to-simple first",
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tampered")
    for name, rows in {
        "user": [{"id": f"u{i}", "name": "n" * (i % 4)} for i in range(20)],
        "item": [{"id": 7 * i} for i in range(9)],
        "likes": [{"src": f"u{i % 20}", "dst": 7 * (i % 9), "note": "x" * (i % 3)} for i in range(70)],
    }.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    graphprep.convert(
        nodes={"user": folder / "user.jsonl", "item": folder / "item.jsonl"},
        edges={"user:likes:item": folder / "likes.jsonl"},
        out=folder / "first",
        partitions=2,
        partition_by="hash",
    )
    graphprep.reorder(folder / "first", folder / "store", by="degree")
    return folder / "store"


def _tamper(whole, store, path, change):
    """Copy a store by links, change an array of its first partition, and bind it by new checksums."""
    for file in whole.rglob("*"):
        if file.is_file():
            (store / file.relative_to(whole)).parent.mkdir(parents=True, exist_ok=True)
            os.link(file, store / file.relative_to(whole))
    array, manifest, metadata = store / "part-00000" / path, store / "part-00000/manifest.json", store / "metadata.json"
    values = change(np.load(array))
    told, graph = json.loads(manifest.read_text()), json.loads(metadata.read_text())
    for file in (array, manifest, metadata):
        file.unlink()
    np.save(array, values)
    for entry in told["arrays"]:
        if entry["path"] == path:
            entry["xxh3"] = xxhash.xxh3_64_hexdigest(array.read_bytes())
    manifest.write_text(json.dumps(told))
    graph["parts"][0]["manifest_bytes"] = manifest.stat().st_size
    graph["parts"][0]["manifest_xxh3"] = xxhash.xxh3_64_hexdigest(manifest.read_bytes())
    metadata.write_text(json.dumps(graph))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("path", ARRAYS)
def test_commands_end_with_the_name_of_the_file(path, change, whole, tmp_path, capsys):
    if change == "zeros" and "raw_order" not in path:
        return  # other texts, as far as anybody can tell who does not ask for all
    run(COMMANDS["raw"].format(store=whole).split())
    wanted = capsys.readouterr().out.split()
    _tamper(whole, tmp_path / "store", path, CHANGES[change])
    for name in ("validate", *ARRAYS[path]):
        code = run(COMMANDS[name].format(store=tmp_path / "store", out=tmp_path / name).split())
        said = capsys.readouterr()
        if name == "raw" and code == 0:  # it has looked at other rows
            assert said.out.split() == wanted
        else:
            assert code == 1, (name, code, said.err)
            assert name == "raw" or path in said.err + said.out, (name, said.err)


def test_previous_ids_that_are_permuted_within_a_partition(whole, tmp_path, capsys):
    _tamper(whole, tmp_path / "store", "nodes/user/previous_ids.npy", lambda values: np.roll(values, 1))
    assert run(["validate", str(tmp_path / "store")]) == 1
    assert "nodes/user/previous_ids.npy[" in capsys.readouterr().err


def test_partition_by_is_one_of_the_methods(whole, tmp_path, capsys):
    _tamper(whole, tmp_path / "store", "nodes/user/raw_order.npy", lambda values: values)
    metadata = tmp_path / "store/metadata.json"
    metadata.write_text(metadata.read_text().replace('"partition_by": "hash"', '"partition_by": "../../x"'))
    assert run(["validate", str(tmp_path / "store")]) == 1
    assert "partition_by" in capsys.readouterr().err


@pytest.mark.parametrize("balance", ["edges", "type", "nodes"])
@pytest.mark.parametrize("method", ["ldg", "fennel"])
def test_a_store_without_nodes_is_balanced(method, balance, tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\n")
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges")
    line = f"partition {tmp_path}/store {tmp_path}/out --by {method} -p 2 --balance {balance}"
    assert run(line.split()) == 0


@pytest.mark.parametrize("value", ["[7]", "null", '"x"', "{}", "[null]"])
def test_a_provenance_whose_inputs_are_none(value, tmp_path, capsys):
    (tmp_path / "e.csv").write_text("src,dst\n0,1\n")
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges")
    record = tmp_path / "provenance.json"
    record.write_text(f'{{"convert": {{"inputs": {value}, "options": {{}}}}}}')
    assert run(["validate", str(tmp_path / "store"), "--against", str(record)]) == 1
    assert "no input is recorded here" in capsys.readouterr().err


def test_a_watermark_beyond_64_bits(tmp_path, capsys):
    (tmp_path / "e.csv").write_text("src,dst\n0,1\n")
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges")
    line = f"export {tmp_path}/store {tmp_path}/out --to deepgnn --watermark {10**30}"
    assert run(line.split()) == 2
    assert "--watermark must be a whole number of 64 bits" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["info", "validate", "stats"])
def test_an_endless_name_of_a_graph_is_told_at_once(whole, tmp_path, capsys, command):
    _tamper(whole, tmp_path / "store", "nodes/user/raw_order.npy", lambda values: values)
    metadata = tmp_path / "store/metadata.json"
    value = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**value, "graph_name": "x" * (20 << 20)}))
    assert run([command, str(tmp_path / "store")]) == 1
    said = capsys.readouterr().err
    assert "graph_name: expected a name of at most 4,096 bytes" in said
    assert len(said) < 1000
