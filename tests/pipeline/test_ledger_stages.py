"""Every stage declares what it takes of memory, and all of it together keeps within the limit."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from golden.golden_cases import SAMPLE_DATA

import graphprep
from graphprep import context
from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.read import decode
from graphprep.engine.ledger import Ledger

SHOP = SAMPLE_DATA / "shop" / "shop.jsonl"
STAGES = {
    "convert": ["plan", "decode", "index", "shuffle", "build", "publish"],
    "partition": ["assign", "report", "nodes", "edges", "publish"],
    "reorder": ["order", "gaps", "nodes", "edges", "publish"],
    "validate": ["files", "nodes", "edges"],
    "export": ["prepare", "export"],
}


@pytest.fixture
def ledgers(monkeypatch):
    """The ledgers that are kept."""
    kept = []

    class Kept(Ledger):
        def __init__(self, *given):
            super().__init__(*given)
            kept.append(self)

    monkeypatch.setattr(context, "Ledger", Kept)
    return kept


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("limit", ["192MiB", "256MiB", "1GiB", "2GiB", "64GiB"])
def test_what_a_plain_edge_list_takes_keeps_within_the_limit(limit, threads, ledgers, tmp_path, monkeypatch):
    """Of input so large that nothing is bounded by it."""
    (tmp_path / "in").write_text("0 1\n1 2\n")
    monkeypatch.setattr(decode, "decoded_bytes", lambda planned: 1 << 50)
    monkeypatch.setattr(Amounts, "most_bytes", 1 << 50)
    graphprep.convert(tmp_path / "in", tmp_path / "out", memory_limit=limit, threads=threads, layout="both")
    (ledger,) = ledgers
    assert list(ledger.stages) == STAGES["convert"]
    always = sum(need.num_bytes for need in ledger.always)
    for stage in STAGES["convert"]:
        assert always + ledger.own_bytes(stage) <= ledger.limit_bytes, stage


CHECKED = {**os.environ, "GRAPHPREP_CHECK_MEMORY": "1"}


def run(*args):
    """Run a command with -v, every stage held to what it declares; return what it says on stderr."""
    command = [sys.executable, "-m", "graphprep", *map(str, args), "-v"]
    for _ in range(2):  # where kernels are compiled, nothing is checked
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=CHECKED)
        assert done.returncode == 0, done.stderr
    return done.stderr


def test_every_command_tells_what_its_stages_take(tmp_path):
    store = tmp_path / "store"
    told = {
        "convert": run("convert", SHOP, store, "--overwrite"),
        "validate": run("validate", store),
        "partition": run("partition", store, tmp_path / "parts", "--by", "ldg", "-p", "2", "--overwrite"),
        "reorder": run("reorder", store, tmp_path / "reordered", "--by", "degree", "--overwrite"),
        "export": run("export", store, tmp_path / "pyg", "--to", "pyg", "--drop-unsupported", "--overwrite"),
    }
    for command, text in told.items():
        stages = re.findall(r"memory: (.+?): \d+\.\d [MG]iB at most: (?:.+ \d+(?:\.\d)? [KMG]?i?B \(.+\))$", text, re.MULTILINE)
        assert stages == STAGES[command], text
        always = re.findall(r"memory: all stages: process \d+\.\d MiB \(.+\); code 64.0 MiB \(.+\)$", text, re.MULTILINE)
        assert len(always) == 1


def test_a_stage_that_declares_too_little_ends_the_run(tmp_path):
    """Loading pyarrow or kernels takes memory, which nobody declares here."""
    script = (
        "from graphprep.engine import ledger; ledger._KERNEL_BYTES = 0; ledger.kept_bytes = lambda limit: 0\n"
        f"import graphprep; graphprep.convert({str(SHOP)!r}, {str(tmp_path / 'out')!r}, memory_limit='4GiB', overwrite=True)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True, env=CHECKED)
    assert re.search(r"^AssertionError: stage '\w+' held \d+\.\d MiB of memory, and declares ", done.stderr, re.MULTILINE), (
        done.stderr
    )
