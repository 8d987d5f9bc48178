"""What commands print and write: no secret of a URL, and no name that a terminal would obey."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.exporters.registry import known_targets
from graphprep.model.errors import GraphprepError
from graphprep.model.shown.texts import display_url

SECRET = "SENTINELpassw0rd@x"  # passwords may hold an @
PLACE = f"memory://me:{SECRET}@host"
SIGNATURE = "SENTINELsignature"


@pytest.fixture
def memory() -> Iterator[None]:
    """The folder of a file system in memory whose URLs hold a password."""
    fs = fsspec.filesystem("memory")
    fs.pipe(f"{PLACE}/edges.csv", b"src,dst\n0,1\n1,2\n2,0\n0,2\n")
    fs.pipe(f"{PLACE}/bad.csv", b"src,dst\n0,1\n1,x\n")
    fs.pipe(f"{PLACE}/graph.edgelist", b"0,-1,0,1.0\n1,-1,0,1.0\n0,0,1,0.5\n")
    fs.pipe(f"{PLACE}/tables/user.csv", b"id,age\n1,30\n2,40\n3,50\n")
    fs.pipe(f"{PLACE}/tables/follows.csv", b"user_id,other_user_id\n1,2\n2,3\n3,1\n")
    fs.pipe(f"{PLACE}/no.bin", bytes(range(256)))
    yield
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The URL of a server of files that asks nobody who he is."""
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "edges.csv").write_text("src,dst\n0,1\n1,2\n2,0\n0,2\n")
    handler = partial(_Silent, directory=str(tmp_path / "served"))
    served = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=served.serve_forever)
    thread.start()
    yield f"127.0.0.1:{served.server_port}"
    served.shutdown()
    thread.join()
    served.server_close()


class _Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


DONE = [
    "convert {}/edges.csv {}/out",
    "convert {}/edges.csv {}/out --export npy,pyg={}/pyg",
    "convert {}/bad.csv {}/out --format edges --on-error skip --bad-records {}/bad.jsonl",
    "info {}/edges.csv --head 2",
    "info {}/graph.edgelist",
    "info {}/store",
    "info {}/tables",
    "validate {}/store",
    "validate {}/edges.csv",
    "ids {}/store 0 1 --from raw --to typed",
    "partition {}/store {}/parts --by ldg -p 2",
    "reorder {}/store {}/hot --by degree",
    "split {}/store {}/parted 0.5/0.5 --by random",
    "generate grid {}/grid.txt --rows 3 --cols 3",
    "export {}/store --list",
    *(f"export {{}}/store {{}}/out --to {name}" for name in known_targets() if name != "ogb"),
]
FAILING = [
    "convert {}/bad.csv {}/out --format edges",
    "convert {}/edges.csv {}/store",
    "convert {}/missing.csv {}/out",
    "convert {}/*.none {}/out",
    "convert {}/no.bin {}/out",
    "convert {}/tables {}/out",
    "convert {}/edges.csv {}/out --schema {}/missing.yaml",
    "convert {}/edges.csv {}/out --partitions 2 --partition-by {}/missing.txt",
    "convert {}/edges.csv {}/out --node-data x={}/missing.npy",
    "info {}/missing",
    "info {}/no.bin",
    "validate {}/bad.csv --format edges",
    "validate {}/faulty",
    "validate {}/missing",
    "ids {}/store --file {}/missing.txt --from raw --to typed",
    "ids {}/missing 0 --from raw --to typed",
    "partition {}/store {}/parts --by {}/missing.txt",
    "reorder {}/store {}/store --by degree",
    "reorder {}/missing {}/hot --by degree",
    "split {}/missing {}/parted 0.5/0.5 --by random",
    "split {}/store {}/parted 0.5/0.5 --by time",
    "generate grid {}/edges.csv",
    "export {}/missing {}/out --to npy",
    "export {}/store {}/store --to npy",
    "export {}/store {}/out --to ogb",
]
WAYS = ([], ["--json"], ["--log-format", "json"], ["-vv", "--progress", "plain"])


@pytest.mark.parametrize(("is_done", "command"), [(True, one) for one in DONE] + [(False, one) for one in FAILING])
def test_no_command_prints_the_password_of_a_url(is_done, command, memory, capfd):
    fs = fsspec.filesystem("memory")
    assert run(["convert", f"{PLACE}/edges.csv", f"{PLACE}/store", "-q"]) == 0
    fs.cp(f"{PLACE}/store", f"{PLACE}/faulty", recursive=True)
    fs.pipe_file(f"{PLACE}/faulty/part-00000/manifest.json", b"{}")
    before = set(fs.find(PLACE))
    for more in WAYS[: 2 if command.startswith("ids") else None]:
        capfd.readouterr()
        code = run([*command.format(*[PLACE] * command.count("{}")).split(), *more])
        said = "".join(capfd.readouterr())
        assert (code == 0) == is_done and code != 70, said
        assert "SENTINEL" not in said and "w0rd" not in said
        new = set(fs.find(PLACE)) - before
        for path in new:
            assert b"SENTINEL" not in fs.cat_file(path), path
            fs.rm_file(path)


@pytest.mark.parametrize("more", [[], ["--json"]], ids=" ".join)
@pytest.mark.parametrize(("command", "code"), [("info", 0), ("validate", 0), ("convert", 0), ("missing", 3)])
def test_no_command_prints_the_password_or_signature_of_an_http_url(command, code, more, server, tmp_path, capfd):
    url = f"http://me:{SECRET.replace('@', '%40')}@{server}/edges.csv?X-Amz-Signature={SIGNATURE}"
    if command == "missing":
        command, url = "info", url.replace("edges.csv", "none.csv")
    out = tmp_path / "out"
    assert run([command, url, *([str(out)] if command == "convert" else []), *more]) == code
    assert "SENTINEL" not in "".join(capfd.readouterr())
    for path in out.rglob("*"):
        assert path.is_dir() or b"SENTINEL" not in path.read_bytes()


def test_errors_in_python_hold_no_password(memory):
    for call in (
        lambda: graphprep.convert(f"{PLACE}/bad.csv", f"{PLACE}/out"),
        lambda: graphprep.convert(f"{PLACE}/missing", f"{PLACE}/out"),
        lambda: graphprep.info(f"{PLACE}/missing"),
        lambda: graphprep.validate(f"{PLACE}/missing"),
        lambda: graphprep.load(f"{PLACE}/missing"),
    ):
        with pytest.raises(GraphprepError) as caught:
            call()
        assert "SENTINEL" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("ftp://me:a@b@host/a@b.csv", "ftp://me:…@host/a@b.csv"),
        ("s3://key:a/b+c/d@box/a.csv", "s3://key:…@box/a.csv"),
        ("https://host:8080/a@b.csv", "https://host:8080/a@b.csv"),
        ("https://ghp_token@host/a.csv", "https://…@host/a.csv"),
        ("abfs://box@account.dfs.core.windows.net/a", "abfs://box@account.dfs.core.windows.net/a"),
        ("simplecache::https://me:b@host/a?x=1", "simplecache::https://me:…@host/a"),
        ("a\nb\x1b[31m\x9b\x00\u202e.csv", "a\\nb\\x1b[31m\\x9b\\x00\\u202e.csv"),
        ("ä b.csv", "ä b.csv"),
    ],
)
def test_how_a_place_is_shown(url, shown):
    assert display_url(url) == shown


# ---- names of files and of members of archives

AWKWARD = "a\nerror: b\x1b]0;c\x07\x9bd"


def _say(*args: str | Path) -> tuple[int, list[str]]:
    """Run a command and return its exit code and what it printed, by lines that end with LF."""
    done = subprocess.run([sys.executable, "-m", "graphprep", *map(str, args)], capture_output=True, check=False)
    return done.returncode, (done.stdout + done.stderr).decode().split("\n")


@pytest.mark.parametrize("more", [[], ["--json"]], ids=" ".join)
def test_names_of_files_reach_the_terminal_as_escapes(more, tmp_path):
    good, bad, folder = tmp_path / f"{AWKWARD}.csv", tmp_path / f"{AWKWARD}-bad.csv", tmp_path / f"{AWKWARD}-tables"
    good.write_text("0 1\n1 2\n")
    bad.write_text("0 1\n1 2\n1 x y\n")
    folder.mkdir()
    (folder / f"{AWKWARD}.csv").write_text("id,age\n1,30\n2,40\n")
    (folder / "b\x1b[2J.txt").write_text("")
    archive = tmp_path / "arrays.npz"
    np.savez(archive, **{f"{AWKWARD}": np.zeros(3)})
    for code, command in (
        (0, ["info", good]),
        (0, ["validate", good]),
        (0, ["convert", good, tmp_path / f"{AWKWARD}-store"]),
        (0, ["validate", tmp_path / f"{AWKWARD}-store"]),
        (0, ["info", tmp_path / f"{AWKWARD}-store"]),
        (0, ["export", tmp_path / f"{AWKWARD}-store", tmp_path / f"{AWKWARD}-npy", "--to", "npy"]),
        (1, ["convert", bad, tmp_path / "out", "--format", "edges"]),
        (1, ["validate", bad, "--format", "edges"]),
        (3, ["info", tmp_path / f"{AWKWARD}-none"]),
        (1, ["convert", archive, tmp_path / "out"]),
        (0, ["info", folder]),
        (2, ["convert", folder, tmp_path / f"{AWKWARD}-store"]),
    ):
        found, lines = _say(*command, *more)
        assert found == code, lines
        assert all(line.isprintable() for line in lines), lines
        assert not any(line.startswith("error: b") for line in lines)


def test_json_holds_awkward_names_whole(tmp_path):
    path = tmp_path / f"{AWKWARD}.csv"
    path.write_text("0 1\n1 2\n")
    done = subprocess.run([sys.executable, "-m", "graphprep", "info", path, "--json", "-q"], stdout=subprocess.PIPE, check=True)
    assert json.loads(done.stdout)["path"] == str(path)


def test_long_names_do_not_flood_the_terminal(tmp_path, capsys):
    name = "c" * 10_000
    (tmp_path / "in.csv").write_text(f"src,dst,{name}\n1,2,3\n")
    assert run(["info", str(tmp_path / "in.csv"), "--format", "edges"]) == 0
    assert f"  {'c' * 300}… (10,000 characters)" in capsys.readouterr().out
    assert run(["convert", str(tmp_path / "in.csv"), str(tmp_path / "out"), "--format", "edges", "--src-col", name + "d"]) == 2
    assert len(capsys.readouterr().err) < 1000
