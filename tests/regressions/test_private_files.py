"""What a run has not shown yet is readable by its user alone; what it shows has the permissions that the umask leaves."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import graphprep
from graphprep.cli.main import _resume_fix
from graphprep.storage.write.publish import StoreWriter


def _modes(folder):
    return {stat.S_IMODE(path.stat().st_mode) for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.parametrize("resume", [False, True])
def test_hidden_files_are_private_and_shown_ones_are_not(resume, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.txt").write_text("0 1\n1 2\n")
    real, found = StoreWriter.publish, []

    def publish(self, metadata):
        found.extend(folder for folder in Path().glob(".*graphprep*") if folder.is_dir())
        assert all(stat.S_IMODE(folder.stat().st_mode) == 0o700 and _modes(folder) == {0o600} for folder in found)
        real(self, metadata)

    monkeypatch.setattr(StoreWriter, "publish", publish)
    before = os.umask(0o022)
    try:
        graphprep.convert("e.txt", "store", format="edges", resume=resume)
    finally:
        os.umask(before)
    assert len(found) == 1 + resume
    assert _modes("store") == {0o644}
    assert stat.S_IMODE(Path("store").stat().st_mode) == 0o755


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("when", ["import graphprep.cli.main", "sys.exit"])
def test_a_signal_before_and_after_the_command(when, number, code, tmp_path):
    """While modules are loaded it ends the process with its own code; once all is said, it changes nothing."""
    is_first = when.startswith("import")
    script = (
        "import os, sys, graphprep.__main__ as begin\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if {is_first} and name == 'graphprep.cli.main': os.kill(os.getpid(), {int(number)})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "leave = sys.exit\n"
        f"def exit(code):\n    os.kill(os.getpid(), {int(number)})\n    leave(code)\n"
        f"if not {is_first}: sys.exit = exit\n"
        "sys.argv = ['graphprep', '--version']\n"
        "begin.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == (code if is_first else 0), done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_names_the_command_that_goes_on():
    assert _resume_fix(["convert", "a b.csv", "out", "--resume"]).endswith(": graphprep convert 'a b.csv' out --resume")
    assert _resume_fix(["convert", "a.csv", "out"]).endswith(": graphprep convert a.csv out --resume")
    assert [_resume_fix(args.split()) for args in ("convert - out", "export a b", "")] == ["", "", ""]


def test_metis_prints_nothing(tmp_path):
    pytest.importorskip("pymetis")
    (tmp_path / "e.csv").write_text("src,dst\n0,1\n")
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges")
    line = [sys.executable, "-m", "graphprep", "partition", "store", "out", "--by", "metis", "-p", "5", "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.startswith("{")
    assert "***" not in done.stdout
