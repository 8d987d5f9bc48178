"""What macOS and Windows lack is not needed to import graphprep, and what cannot be measured there is said to be so."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from graphprep.cli.printed.words import peak_memory

SCRIPT = Path(__file__).resolve().parent / "on_another_system.py"
KARATE = SCRIPT.parent.parent.parent / "sample_data" / "karate" / "karate.csv"
UNMEASURED = "this system does not tell what memory is in use: the limit bounds what is planned for\n"


def run_on(platform: str, *commands: list[str]) -> tuple[str, str]:
    words = [sys.executable, str(SCRIPT), platform, *map(json.dumps, commands)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_a_system_without_proc_converts_and_says_that_memory_is_not_measured(tmp_path):
    store = str(tmp_path / "store")
    convert = ["convert", str(KARATE), store, "--memory-limit", "1GiB"]
    out, err = run_on("darwin", convert, ["validate", store])
    assert "\nconvert 0\n" in out
    assert "\nvalidate 0\n" in out
    assert "peak memory unknown on this system\n" in " ".join(out.split("\n      "))
    assert err.count(UNMEASURED) == 2


def test_every_module_is_imported_without_posix():
    out, _ = run_on("win32", ["--version"], ["kernels", "list"], ["convert", "--help"])
    assert int(out.split()[0]) > 500
    for command in ("--version", "kernels", "convert"):
        assert f"\n{command} 0\n" in out


def test_memory_that_was_measured_is_told():
    assert peak_memory(2_500_000) == "peak memory 2.5 MB"
    assert peak_memory(0) == "peak memory unknown on this system"
