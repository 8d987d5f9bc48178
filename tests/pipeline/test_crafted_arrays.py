"""Crafted headers of .npy files: every command that reads an array says what is wrong with it, in a line of bounded length."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from graphprep.cli.main import run

HUGE = "0x" + "f" * 6000  # Python reads it, and writes no decimals of so many digits
FIELDS = {
    "shape": f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({HUGE},)}}",
    "item": f"{{'descr': '<i8', 'fortran_order': False, 'shape': (0, {HUGE})}}",
    "product": "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 2305843009213693952, 4)}",
    "dtype": f"{{'descr': '{'x' * 60000}', 'fortran_order': False, 'shape': (2,)}}",
    "text": "{'descr': '<S4611686018427387904', 'fortran_order': False, 'shape': (2,)}",
    "number": f"{{'descr': {HUGE}, 'fortran_order': False, 'shape': (2,)}}",
}
MEMBERS = {
    "row": np.array([0, 1]),
    "col": np.array([1, 0]),
    "data": np.ones(2),
    "shape": np.array([2, 2]),
    "format": np.array(b"coo"),
}


@pytest.fixture(params=FIELDS)
def crafted(request: pytest.FixtureRequest) -> bytes:
    fields = FIELDS[request.param]
    return b"\x93NUMPY\x01\x00" + len(fields).to_bytes(2, "little") + fields.encode() + bytes(16)


def check(capsys: pytest.CaptureFixture[str], *commands: list[str], code: int = 1) -> None:
    for command in commands:
        capsys.readouterr()
        assert run(command) == code, command
        said = capsys.readouterr().err
        assert "error: " in said and len(said) < 1000, command


def test_a_file(crafted, tmp_path, capsys):
    path, edges, out = tmp_path / "a.npy", tmp_path / "e.txt", str(tmp_path / "out")
    path.write_bytes(crafted)
    edges.write_text("0 1\n1 0\n")
    attached = ["convert", str(edges), out, "--format", "edges", "--node-data", f"x={path}"]
    check(capsys, ["info", str(path)], ["validate", str(path)], ["convert", str(path), out], attached)


@pytest.mark.parametrize("member", MEMBERS)
def test_a_member_of_an_archive(crafted, member, tmp_path, capsys):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in MEMBERS.items():
            file = io.BytesIO()
            np.save(file, array)
            archive.writestr(f"{name}.npy", crafted if name == member else file.getvalue())
    check(capsys, ["info", str(path)], ["validate", str(path)], ["convert", str(path), str(tmp_path / "out")])


def test_a_feature_of_a_chunked_graph(crafted, tmp_path, capsys):
    metadata = {
        "graph_name": "g",
        "node_type": ["u"],
        "num_nodes_per_chunk": [[2]],
        "edge_type": ["u:r:u"],
        "num_edges_per_chunk": [[2]],
        "edges": {"u:r:u": {"format": {"name": "csv", "delimiter": " "}, "data": ["e.txt"]}},
        "node_data": {"u": {"x": {"format": {"name": "numpy"}, "data": ["x.npy"]}}},
        "edge_data": {},
    }
    folder = tmp_path / "chunked"
    folder.mkdir()
    (folder / "metadata.json").write_text(json.dumps(metadata))
    (folder / "e.txt").write_text("0 1\n1 0\n")
    (folder / "x.npy").write_bytes(crafted)
    check(capsys, ["info", str(folder)], ["validate", str(folder)], ["convert", str(folder), str(tmp_path / "out")])


def test_an_array_of_a_store(crafted, tmp_path, capsys):
    edges, store, out = tmp_path / "e.txt", str(tmp_path / "store"), str(tmp_path / "out")
    edges.write_text("0 1\n1 0\n")
    assert run(["convert", str(edges), store, "--format", "edges"]) == 0
    for path in Path(store).rglob("indices.npy"):
        path.write_bytes(crafted[: path.stat().st_size].ljust(path.stat().st_size))
    commands = (
        ["info", store, "--head", "2"],
        ["validate", store],
        ["reorder", store, out, "--by", "degree"],
        ["partition", store, out, "--by", "ldg", "-p", "2"],
    )
    check(capsys, *commands, *(["export", store, out, "--to", target] for target in ("npy", "glt", "scipy")))
