"""What ``--overwrite`` may replace: an output of ours, file by file; never what is read, never what somebody else put there."""

import json
from pathlib import Path

import fsspec
import numpy as np
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import UsageError
from graphprep.storage.write.places import lies_in

EDGES = "0 1\n1 2\n2 0\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Work in a folder with an edge list and a store, ``s``."""
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text(EDGES)
    graphprep.convert("e.txt", "s", format="edges")
    return tmp_path


def _bytes(folder="."):
    return {str(path): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def _refused(capsys, line, *words):
    """Run a command that must refuse, and change no file."""
    before = _bytes()
    assert run(line.split()) == 2, capsys.readouterr().err
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert _bytes() == before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("convert s/e.txt s --format edges --overwrite", "the input s/e.txt lies in the output"),
        ("convert s/../s/e.txt ./s/ --format edges --overwrite", "lies in the output"),
        ("convert link.txt s --format edges --overwrite", "the input link.txt lies in the output"),
        ("convert s link --format edges --overwrite", "the output is the input itself"),
        ("convert linked s --format edges --overwrite", "linked/e.txt lies in the output"),
        ("convert s/raw s --format edges --overwrite", "the input s/raw lies in the output"),
        ("convert s/*.txt s --format edges --overwrite", "lies in the output"),
        ("convert file://{}/s/e.txt s --format edges --overwrite", "lies in the output"),
        ("convert e.txt . --format edges --overwrite", "the input e.txt lies in the output"),
        ("convert raw raw/s --format edges", "the output lies in the input raw"),
        ("convert e.txt s --format edges --overwrite --schema s/e.txt", "the input s/e.txt lies in the output"),
        ("convert e.txt s --format edges --overwrite --partition-by s/e.txt", "the input s/e.txt lies in the output"),
        ("convert e.txt s --format edges --overwrite --node-data _N:x=s/p.npy", "the input s/p.npy lies in the output"),
        ("convert s/e.txt s -p 2 --partition-by ldg --format edges --overwrite", "the input s/e.txt lies in the output"),
        ("convert e.txt s --format edges --overwrite --tmp-dir s/raw", "temporary files, s/raw, lies in the output"),
        ("reorder t s --by permutation:s/p.npy --overwrite", "the input s/p.npy lies in the output"),
        ("reorder s/t s --by degree --overwrite", "the store s/t lies in the output"),
        ("reorder s s --by degree --overwrite", "the output is the store itself"),
        ("transform s/t s transpose --overwrite", "the store s/t lies in the output"),
        ("transform t s edge-subgraph _N:_E:_N=s/e.txt --overwrite", "the input s/e.txt lies in the output"),
        ("partition s/t s --by hash -p 2 --overwrite", "the store s/t lies in the output"),
        ("partition t s --by s/e.txt --overwrite", "the input s/e.txt lies in the output"),
        ("split s/t s 0.8/0.1/0.1 --by random --overwrite", "the store s/t lies in the output"),
        ("sample s/t s --seeds e.txt --overwrite", "the store s/t lies in the output"),
        ("sample t s --seeds s/e.txt --overwrite", "the input s/e.txt lies in the output"),
        ("export s/t s --to npy --overwrite", "the store s/t lies in the output"),
        ("export t . --to npy --overwrite", "the store t lies in the output"),
    ],
)
def test_what_is_read_is_not_replaced(line, words, here, capsys):
    graphprep.convert("e.txt", "t", format="edges")
    graphprep.convert("e.txt", "u", format="edges")
    for folder in ("raw", "linked"):
        Path(folder).mkdir()
    Path("raw/e.txt").write_text(EDGES)
    Path("s/raw").mkdir()
    for name in ("s/e.txt", "s/raw/e.txt"):
        Path(name).write_text(EDGES)
    np.save("s/p.npy", np.array([2, 1, 0]))
    Path("u").rename("s/t")
    Path("link.txt").symlink_to("s/e.txt")
    Path("linked/e.txt").symlink_to("../s/e.txt")
    Path("link").symlink_to("s")
    _refused(capsys, line.format(here), words)


def test_what_a_graph_file_names_is_not_replaced(here, capsys):
    Path("s/part-00000/t.csv").write_text("a,b\n1,2\n")
    table = {"edges": {"n:e:n": {"files": "s/part-00000/t.csv", "src": "a", "dst": "b"}}}
    Path("graph.yaml").write_text(json.dumps(table))
    _refused(capsys, "convert graph.yaml s --overwrite", "part-00000/t.csv")


def test_an_array_of_the_old_store_is_not_replaced_while_it_is_read(here, capsys):
    """It is one of the files that may go, so that only the check of what is read keeps it."""
    array = next(Path("s").rglob("indices.npy"))
    Path("graph.yaml").write_text(json.dumps({"edges": {"n:e:n": {"src": str(array), "dst": str(array)}}}))
    before = _bytes("s")
    assert run(["convert", "graph.yaml", "s", "--overwrite"]) in (1, 2)
    assert _bytes("s") == before


@pytest.mark.parametrize("kind", ["convert", "reorder", "export", "sample", "assignment", "generate"])
def test_files_of_others_are_named_and_kept(kind, here, capsys):
    line = {
        "convert": "convert e.txt o --format edges",
        "reorder": "reorder s o --by degree",
        "export": "export s o --to npy",
        "sample": "sample s o --seeds seeds.txt --full 1",
        "assignment": "partition s o --by hash --assignment-only -p 2",
        "generate": "generate grid o --format npy",
    }[kind]
    Path("seeds.txt").write_text("0\n1\n")
    assert run(line.split()) == 0
    assert run([*line.split(), "--overwrite"]) == 0  # its own files only
    for name in ("notes.txt", "part-00000/notes.npy", "deep/er/x.npy", "_M.txt"):
        Path("o", name).parent.mkdir(parents=True, exist_ok=True)
        Path("o", name).write_text("mine")
        capsys.readouterr()
        _refused(capsys, f"{line} --overwrite", name, "--overwrite replaces nothing else")
        Path("o", name).unlink()


def test_a_link_in_an_output_is_not_followed(here, capsys):
    Path("other").mkdir()
    Path("other/mine.txt").write_text("mine")
    Path("s/part-00001").symlink_to("../other")
    _refused(capsys, "convert e.txt s --format edges --overwrite", "part-00001")


def test_a_false_metadata_json_is_no_store(here, capsys):
    for number, text in enumerate(('{"format": "graphprep-store"}', '{"format": "graphprep-store", "parts": [{"path": "x"}]}')):
        Path(f"f{number}").mkdir()
        Path(f"f{number}/metadata.json").write_text(text)
        _refused(capsys, f"convert e.txt f{number} --format edges --overwrite", "has no manifests that list its files")


def test_a_file_that_comes_meanwhile_stops_the_replacement(here, monkeypatch):
    from graphprep.storage.write.publish import StoreWriter

    real = StoreWriter.publish

    def publish(self, metadata):
        Path("s/late.txt").write_text("mine")
        real(self, metadata)

    monkeypatch.setattr(StoreWriter, "publish", publish)
    before = _bytes("s")
    with pytest.raises(UsageError, match=r"late\.txt"):
        graphprep.convert("e.txt", "s", format="edges", overwrite=True)
    assert _bytes("s") == {**before, "s/late.txt": b"mine"}
    assert sorted(map(str, Path().iterdir())) == ["e.txt", "s"]


def test_a_file_that_comes_at_the_last_moment_is_kept(here, monkeypatch):
    from graphprep.storage.write import publish

    real = publish._exchange

    def exchange(left, right):
        Path("s/late.txt").write_text("mine")
        return real(left, right)

    monkeypatch.setattr(publish, "_exchange", exchange)
    graphprep.convert("e.txt", "s", format="edges", overwrite=True)
    kept = [str(path) for path in Path().iterdir() if path.name.startswith("s-kept-")]
    assert _bytes(kept[0]) == {f"{kept[0]}/late.txt": b"mine"}


def test_our_own_temporary_files_may_go(here):
    Path("s/.graphprep-tmp-0123-4567").mkdir()
    Path("s/.graphprep-tmp-0123-4567/run").write_text("x")
    graphprep.convert("e.txt", "s", format="edges", overwrite=True)
    assert not Path("s/.graphprep-tmp-0123-4567").exists()


def test_urls_are_compared_by_prefix(here, capsys):
    fs = fsspec.filesystem("memory")
    fs.pipe_file("/b29/s/e.txt", EDGES.encode())
    with pytest.raises(UsageError, match="lies in the output"):
        graphprep.convert("memory://b29/s/e.txt", "memory://b29/s/", format="edges", overwrite=True)
    with pytest.raises(UsageError, match="lies in the output"):
        graphprep.convert("memory://b29/*/e.txt", "memory://b29/s", format="edges", overwrite=True)
    fs.mv("/b29/s/e.txt", "/b29/e.txt")
    graphprep.convert("memory://b29/e.txt", "memory://b29/s", format="edges")
    graphprep.convert("memory://b29/e.txt", "memory://b29/s", format="edges", overwrite=True)
    fs.pipe_file("/b29/s/part-00000/notes.txt", b"mine")
    before = {name: fs.cat_file(name) for name in fs.find("/b29")}
    with pytest.raises(UsageError, match=r"part-00000/notes\.txt"):
        graphprep.convert("memory://b29/e.txt", "memory://b29/s", format="edges", overwrite=True)
    with pytest.raises(UsageError, match="lies in the output"):
        graphprep.transform("memory://b29/s", "memory://b29", "transpose", overwrite=True)
    assert {name: fs.cat_file(name) for name in fs.find("/b29")} == before


def test_lies_in_goes_by_links_and_borders(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    (tmp_path / "l").symlink_to(tmp_path / "a")
    for inner, outer, is_in in (
        ("a/x", "a", True),
        ("l/x", "a", True),
        ("a/x", "l", True),
        ("ab", "a", False),
        ("a/../ab/x", "a", False),
        ("a", "a/x", False),
    ):
        assert lies_in(f"{tmp_path}/{inner}", f"{tmp_path}/{outer}") is is_in, (inner, outer)
    assert lies_in("memory://x/a/b", "memory://x/a/")
    assert not lies_in("memory://x/ab", "memory://x/a")
    assert not lies_in("memory://x/a", str(tmp_path))


def test_bad_records_replace_no_file_unasked(here, capsys):
    Path("bad.jsonl").write_text("mine")
    line = "convert e.txt o --format edges --on-error skip --bad-records bad.jsonl"
    _refused(capsys, line, "--bad-records bad.jsonl: the file exists")
    _refused(capsys, "validate e.txt --format edges --on-error skip --bad-records bad.jsonl", "the file exists")
    assert run([*line.split(), "--overwrite"]) == 0
    assert Path("bad.jsonl").read_bytes() == b""


def test_pictures_do_not_replace_their_input(here, capsys):
    pytest.importorskip("matplotlib")
    Path("e.svg").write_text(EDGES)
    _refused(capsys, "stats e.svg --format edges --plot e.svg --overwrite", "the output is the input itself e.svg")
