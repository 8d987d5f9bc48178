"""What commands print of a graph of many types: the ten largest, and all where that is asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from graphprep.cli.main import run


@pytest.fixture(scope="module")
def triples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirteen relations, of which r00 to r02 have one triple, the others as many as their number."""
    path = tmp_path_factory.mktemp("triples") / "kg.txt"
    lines = [f"a{i}\tr{number:02d}\tb{number}" for number in range(13) for i in range(max(1, number))]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def store(triples: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("store") / "store"
    assert run(["convert", str(triples), str(out), "-q"]) == 0
    return out


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    capsys.readouterr()
    assert run([str(word) for word in words]) == 0
    return capsys.readouterr().out.splitlines()


LARGEST = [f"  edges  _N:r{number:02d}:_N  {number:>2}" for number in range(3, 13)]
MORE = "  edges  ... and 3 more; -v shows all"


@pytest.mark.parametrize("command", ["convert", "reorder", "validate", "validate the input"])
def test_summaries_show_the_ten_largest_types(command, triples, store, tmp_path, capsys):
    words = {
        "convert": ["convert", triples, tmp_path / "out"],
        "reorder": ["reorder", store, tmp_path / "out", "--by", "degree"],
        "validate": ["validate", store],
        "validate the input": ["validate", triples],
    }[command]
    lines = printed(capsys, *words)
    edges = [line for line in lines if line.startswith("  edges")]
    assert [line.split() for line in edges] == [line.split() for line in [*LARGEST, MORE]]
    more = ["--overwrite"] if command in ("convert", "reorder") else []
    every = [line for line in printed(capsys, *words, *more, "-v") if line.startswith("  edges")]
    assert [line.split()[1] for line in every] == [f"_N:r{number:02d}:_N" for number in range(13)]
    assert len(json.loads("\n".join(printed(capsys, *words, *more, "--json")))["num_edges"]) == 13


def test_info_shows_the_ten_largest_types(store, capsys):
    edges = [line for line in printed(capsys, "info", store) if line.startswith("edges")]
    assert [line.split(":")[1] for line in edges[:-1]] == [f"r{number:02d}" for number in range(3, 13)]
    assert edges[-1] == "edges  ... and 3 more; -v shows all"
    assert len([line for line in printed(capsys, "info", store, "-v") if line.startswith("edges")]) == 13
    assert len(json.loads("\n".join(printed(capsys, "info", store, "--json")))["edge_types"]) == 13


def test_notes_take_three_lines_and_the_others_are_counted(triples, tmp_path, capsys):
    folder = tmp_path / "kg"
    folder.mkdir()
    for part in ("train", "valid", "test"):
        (folder / f"{part}.txt").write_bytes(triples.read_bytes())
    words = ["convert", folder, tmp_path / "out", "--format", "triples"]
    lines = printed(capsys, *words)
    first = next(number for number, line in enumerate(lines) if line.startswith("  note: "))
    *told, more = lines[first:]
    assert len(told) <= 3 and re.fullmatch(r"  note: \.\.\. and (\d+) more; -v shows all", more)
    notes = json.loads("\n".join(printed(capsys, *words, "--overwrite", "--json")))["notes"]
    assert len([line for line in told if line.startswith("  note: ")]) + int(more.split()[3]) == len(notes)
    said = [line for line in printed(capsys, *words, "--overwrite", "-v") if line.startswith("  note: ")]
    assert len(said) == len(notes)


def test_what_an_export_leaves_out_is_told_ten_times(tmp_path, capsys):
    lines = [f"a{i}\t{letter}\tb\tword" for letter in "abcdefghijklm" for i in range(3)]
    (tmp_path / "kg.txt").write_text("\n".join(lines) + "\n")
    assert run(["convert", str(tmp_path / "kg.txt"), str(tmp_path / "store"), "--format", "triples", "-q"]) == 0
    words = ["export", tmp_path / "store", tmp_path / "out", "--to", "pyg", "--drop-unsupported"]
    told = [line for line in printed(capsys, *words) if "left out" in line]
    assert len(told) == 11 and told[-1] == "  left out: ... and 3 more like these; -v shows all"
    assert len([line for line in printed(capsys, *words, "--overwrite", "-v") if "left out" in line]) == 13
