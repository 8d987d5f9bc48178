"""What ``graphprep doctor`` tells of a machine, and what mends it."""

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from graphprep.cli.main import run
from graphprep.info import doctor
from graphprep.info.doctor import Finding, examine


@pytest.fixture(autouse=True)
def no_kernels(monkeypatch):
    """Look for none in this process: other tests do."""
    monkeypatch.setattr(doctor, "list_kernels", list)


def told(topic):
    return [one for one in examine() if one.topic == topic]


def in_a_process(*words, **environment):
    done = subprocess.run(
        [*words, sys.executable, "-m", "graphprep", "doctor", "--json"],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | environment,
    )
    return [Finding(**one) for one in json.loads(done.stdout)]


def test_every_part_of_the_machine_is_told():
    found = [one.topic for one in examine()]
    assert [one for one in found if not one.startswith("extra ")] == [
        *("version", "packages", "processor", "kernels", "GPU", "memory", "temporary files", "open files")
    ]
    (version,) = told("version")
    assert version.text == f"graphprep {metadata.version('graphprep')}, Python {platform.python_version()} ({sys.executable})"
    (packages,) = told("packages")
    assert f"numpy {metadata.version('numpy')}, " in packages.text
    (processor,) = told("processor")
    assert processor.text.startswith(f"{platform.machine()}, ")


def test_extras_are_found_or_said_to_be_missing_and_those_of_developers_are_left_out(monkeypatch):
    lines = ["numpy>=2", *(f"{name}>=1; extra == '{extra}'" for name, extra in WANTED)]
    monkeypatch.setattr(metadata, "requires", lambda _: lines)
    extras = {one.topic: one.text for one in examine() if one.topic.startswith("extra ")}
    assert extras == {
        "extra here": f"pytest {metadata.version('pytest')}",
        "extra partly": "nowhere-one, nowhere-two not installed",
    }


WANTED = [
    ("pytest", "here"),
    ("nowhere-one", "partly"),
    ("pytest", "partly"),
    ("nowhere-two", "partly"),
    *(("nowhere-three", extra) for extra in ("dev", "docs", "bench", "test-all")),
    ("graphprep[s3]", "here"),
]


@pytest.mark.slow
def test_a_level_that_the_processor_does_not_have_is_told():
    found = [one for one in in_a_process(GRAPHPREP_CPU="x86-64-v9") if one.topic == "processor"]
    assert found[1:] == [
        Finding("processor", "GRAPHPREP_CPU=x86-64-v9 is not one of them, and has no effect", "unset GRAPHPREP_CPU")
    ]


@pytest.mark.slow
def test_a_folder_of_kernels_that_others_may_write_to_is_told(tmp_path):
    tmp_path.chmod(0o777)
    found = [one for one in in_a_process(NUMBA_CACHE_DIR=str(tmp_path)) if one.topic == "kernels"]
    assert found[0].text.endswith(" missing")
    assert found[0].fix == "they are compiled when they are first needed; graphprep kernels build does it now"
    assert (
        Finding(
            "kernels",
            f"{tmp_path} is not used: others may write to it",
            f"chmod go-w {tmp_path}, or set NUMBA_CACHE_DIR to a folder of your own",
        )
        in found
    )


@pytest.mark.slow
def test_few_files_at_a_time_are_told():
    found = in_a_process("sh", "-c", 'ulimit -S -n 200 && exec "$@"', "sh")
    (one,) = [one for one in found if one.topic == "open files"]
    assert one.text == "at most 200"
    assert one.fix.startswith("ulimit -n ")


def test_lines_fit_80_columns_and_words_that_are_wider_are_whole(monkeypatch, capsys):
    wide = "/a/long/path" * 10
    numbered = ", ".join(f"package-{number} {number}.0" for number in range(30))
    monkeypatch.setattr(
        doctor,
        "examine",
        lambda: iter([Finding("packages", numbered), Finding("kernels", f"{wide} is not used", "chmod " * 20)]),
    )
    assert run(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == [f"kernels   {wide}"]
    first = lines[: next(at for at, line in enumerate(lines) if line.startswith("kernels"))]
    assert first[0].startswith("packages  package-0 0.0, package-1 1.0,")
    assert [line[:10] for line in first[1:]] == [" " * 10] * (len(first) - 1)
    assert " ".join(line[10:] for line in first) == numbered
    assert all(line[10:].startswith("package-") for line in first)
    assert lines[-1].startswith(" " * 12)


def test_as_json_it_is_what_is_found(capsys):
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["topic"] for one in found] == [one.topic for one in examine()]
    assert Path(next(one["text"] for one in found if one["topic"] == "temporary files").partition(",")[0]).is_dir()
