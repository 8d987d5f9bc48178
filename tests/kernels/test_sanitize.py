"""``make sanitize-gpu`` with a stand-in for compute-sanitizer: what it is asked, and what is said of what it found."""

from __future__ import annotations

import shlex
import sys

import pytest
import sanitize

from graphprep.kernels.cuda.probe import Device, NoDevice

CLEAN = {"memcheck": "ERROR SUMMARY: 0 errors", "racecheck": "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"}
H100 = Device(0, "NVIDIA H100", (9, 0))
STAND_IN = """
import os, sys
tool = sys.argv[sys.argv.index("--tool") + 1]
with open({log!r}, "a") as log:
    log.write(" ".join(sys.argv[1:]).replace(sys.executable, "python") + " " + os.environ["GRAPHPREP_REQUIRE_GPU"] + "\\n")
print("the contract of kernels: cuda 3 passed")
print("========= " + {summaries!r}[tool])
sys.exit({code})
"""


@pytest.fixture
def machine(monkeypatch, tmp_path, capsys):
    """Return a function that runs the script where the stand-in says something, and returns what it printed and asked."""

    def run(*args, summaries=CLEAN, code=0, device=H100, installed=True):
        log = tmp_path / "log"
        log.write_text("")
        if installed:
            script, stand_in = tmp_path / "stand_in.py", tmp_path / "compute-sanitizer"
            script.write_text(STAND_IN.format(log=str(log), summaries={**CLEAN, **summaries}, code=code))
            stand_in.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(script))} "$@"\n')
            stand_in.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        for name in ("CUDA_HOME", "CUDA_PATH"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(sanitize, "find_device", lambda: device)
        monkeypatch.setattr(sys, "argv", ["sanitize.py", *args])
        ended = sanitize.main()
        told = capsys.readouterr()
        return ended, told.out, told.err, log.read_text().splitlines()

    return run


def test_all_tools_find_nothing(machine):
    ended, out, err, asked = machine("--tools", "memcheck", "racecheck")
    assert (ended, err) == (0, "")
    assert out == (
        "memcheck: 0 errors; tests: cuda 3 passed\n"
        "racecheck: 0 hazards displayed (0 errors, 0 warnings); tests: cuda 3 passed\n"
    )
    suites = " ".join(sanitize.SUITES)
    assert asked == [
        f"--tool {tool} --error-exitcode 99 --target-processes all python -m pytest -q -p no:cacheprovider -m gpu {suites} 1"
        for tool in ("memcheck", "racecheck")
    ]


def test_what_is_found_ends_with_1(machine):
    ended, out, _, _ = machine("--tools", "memcheck", summaries={"memcheck": "ERROR SUMMARY: 7 errors"}, code=99)
    assert ended == 1
    assert out.startswith("memcheck: 7 errors; tests: cuda 3 passed\nmemcheck ended with 99:\n")
    ended, out, _, _ = machine("--tools", "memcheck", summaries={"memcheck": "it did not start"})
    assert ended == 1
    assert out.startswith("memcheck: no summary; tests: cuda 3 passed\n")


def test_what_is_not_there_ends_with_2(machine, monkeypatch):
    ended, _, err, _ = machine(device=NoDevice("no NVIDIA driver is installed here", "install it, or use --device cpu"))
    assert ended == 2
    assert err == "error: no CUDA device: no NVIDIA driver is installed here\n  fix: install it, or use --device cpu\n"
    monkeypatch.setattr(sanitize.shutil, "which", lambda *_, **__: None)
    ended, _, err, _ = machine(installed=False)
    assert ended == 2
    assert err == (
        "error: compute-sanitizer is not installed\n"
        "  fix: install the CUDA toolkit, and put its bin folder into PATH or set CUDA_HOME\n"
    )


def test_the_suites_are_those_of_the_simulator():
    from test_cuda import SUITES

    assert sanitize.SUITES == SUITES
