"""Whole numbers that no run can mean: beyond 64 bits, and as large as 64 bits hold. None ends in an internal error."""

from __future__ import annotations

import inspect

import pytest
import typer
from clients.graphs import shared_store

import graphprep
from graphprep.cli.main import build_app, run
from graphprep.model.errors import UsageError
from graphprep.model.options.sample import SampleOptions

ARGUMENTS = {
    "convert": ["none.csv", "out"],
    "merge": ["out", "none"],
    "plan": ["none.csv"],
    "info": ["none.csv"],
    "validate": ["none"],
    "stats": ["none"],
    "partition": ["none", "out", "--by", "hash"],
    "reorder": ["none", "out", "--by", "degree"],
    "transform": ["none", "out", "to-simple"],
    "split": ["none", "out", "0.8/0.2"],
    "sample": ["none", "out", "--seeds", "none.txt"],
    "export": ["none", "out", "--to", "pyg"],
    "generate": ["out", "--format", "rmat"],
    "kernels": ["list"],
}


def whole_numbers():
    """Yield each command's options of whole numbers."""
    for command, one in typer.main.get_command(build_app()).commands.items():
        declared = inspect.signature(one.callback).parameters
        for param in one.params:
            kind = getattr(declared[param.name].annotation, "__origin__", None) if param.name in declared else None
            kind = kind or getattr(declared.get(param.name), "annotation", None)
            if kind in (int, int | None) and param.opts[0] != "--verbose":
                yield command, param.opts[0]


@pytest.mark.long
def test_no_option_ends_in_an_internal_error_for_a_number_beyond_64_bits(tmp_path, monkeypatch, capsys):
    """What else is wrong with the call, which names no file, may be told in its place."""
    monkeypatch.chdir(tmp_path)
    told = set()
    for command, flag in whole_numbers():
        code = run([command, *ARGUMENTS[command], flag, str(10**30)])
        error = capsys.readouterr().err
        assert code in (1, 2, 3), (command, flag, error)
        told |= {flag} if "64 bits" in error else set()
    assert {"--full", "--batch-size", "--epochs", "--top", "--threads", "--head", "--halo-hops", "--max-faults"} <= told


@pytest.mark.parametrize(
    ("flag", "number", "words"),
    [
        ("--full", 10**18, "--full must be 10,000 or less, found 1000000000000000000\n  fix: correct the value"),
        ("--full", 2**63, f"--full must be 10,000 or less, found {2**63}\n  fix: correct the value"),
        ("--full", 10**30, f"--full must fit 64 bits, found {10**30}\n  fix: give a smaller number"),
        ("--full", -1, "--full must be 1 or more, found -1\n  fix: correct the value"),
        ("--epochs", 2**63, f"--epochs must be 4,294,967,296 or less, found {2**63}\n  fix: correct the value"),
        ("--threads", 2**31, f"--threads must be 4,096 or less, found {2**31}\n  fix: use 0 for one thread a core"),
    ],
)
def test_numbers_of_sample_are_refused_in_words(flag, number, words, tmp_path, capsys):
    (tmp_path / "seeds.txt").write_text("0\n")
    flags = ["--seeds", f"{tmp_path}/seeds.txt", *([] if flag == "--full" else ["--full", "1"]), flag, str(number)]
    assert run(["sample", str(shared_store("homogeneous")[1]), str(tmp_path / "out"), *flags]) == 2
    assert capsys.readouterr().err.removeprefix("error: ").strip() == words
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", [2**63, 10**30])
def test_a_watermark_is_a_time_of_64_bits(number, tmp_path, capsys):
    store = str(shared_store("homogeneous")[1])
    flags = ["--to", "deepgnn", "--drop-unsupported", "--watermark", str(number)]
    assert run(["export", store, str(tmp_path / "out"), *flags]) == 2
    assert f"{number}" in capsys.readouterr().err


def test_large_batches_are_one_flow():
    graph = graphprep.load(shared_store("homogeneous")[1])
    drawn = graphprep.neighbor_sampling(graph, full=1, batch_size=2**63)
    assert len(drawn) == 1
    assert drawn[0].layer_size(-1) == 40
    with pytest.raises(UsageError, match="batch_size must fit 64 bits"):
        graphprep.neighbor_sampling(graph, full=1, batch_size=2**64)
    assert SampleOptions(seed=2**70).seed == 2**70  # seeds count modulo 2^64
