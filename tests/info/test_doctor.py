"""What ``graphprep doctor`` tells of a machine, and what mends it."""

import json
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphprep.cli.main import run
from graphprep.edges.device import cuda
from graphprep.engine.budget import MemoryLimit
from graphprep.info import doctor
from graphprep.info.doctor import Finding, examine
from graphprep.kernels.compiler import levels
from graphprep.kernels.cuda.probe import NoDevice
from graphprep.model.errors import UsageError


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
    assert processor.text.startswith(f"{platform.machine()}; code is made for ")


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


@pytest.mark.parametrize(
    ("made_for", "names", "told_of_it"),
    [
        ("znver4", ("x86-64-v3", "x86-64-v2"), "code is made for znver4; levels: x86-64-v3, x86-64-v2"),
        ("x86-64-v2", ("x86-64-v3", "x86-64-v2"), "code is made for x86-64-v2; levels: x86-64-v3, x86-64-v2"),
        ("power10", (), "code is made for power10; levels: none of which graphprep ships code"),
    ],
)
def test_what_code_is_made_for_is_told_apart_from_the_levels(made_for, names, told_of_it, monkeypatch):
    monkeypatch.setattr(levels, "target", lambda: (made_for, ""))
    monkeypatch.setattr(levels, "of_this_processor", lambda: names)
    monkeypatch.delenv("GRAPHPREP_CPU", raising=False)
    monkeypatch.setattr(doctor, "default_threads", lambda: 8)
    monkeypatch.setattr(doctor, "compiling_jobs", lambda: 3)
    assert told("processor") == [Finding("processor", f"{platform.machine()}; {told_of_it}; threads: 8, compiling: 3")]


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


def test_a_file_in_place_of_a_folder_of_kernels_is_told(tmp_path, monkeypatch):
    file = tmp_path / "kernels"
    file.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(file))
    wanted = Finding("kernels", f"{file} is not used: it is no folder", "set NUMBA_CACHE_DIR to a folder of your own")
    assert wanted in told("kernels")


@pytest.mark.slow
def test_few_files_at_a_time_are_told():
    found = in_a_process("sh", "-c", 'ulimit -S -n 200 && exec "$@"', "sh")
    (one,) = [one for one in found if one.topic == "open files"]
    assert one.text == "at most 200"
    assert one.fix.startswith("ulimit -n ")


@pytest.mark.parametrize(
    ("soft", "hard", "fix"),
    [
        (256, 256, ""),
        (255, 256, "ulimit -n 256"),
        (100, 1 << 20, "ulimit -n 65536"),
        (100, -1, "ulimit -n 65536"),
        (100, 100, "let the administrator raise the hard limit, which is 100, too"),
        (-1, -1, ""),
    ],
)
def test_what_allows_more_files_at_a_time_depends_on_the_hard_limit(soft, hard, fix, monkeypatch):
    resource = pytest.importorskip("resource")
    real = resource.getrlimit
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (soft, hard) if kind == resource.RLIMIT_NOFILE else real(kind))
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    assert told("open files") == [Finding("open files", f"at most {soft}", fix)]


# ---- memory


@pytest.fixture
def memory(monkeypatch):
    """Return a function that says what memory the system has, in all, and which limits."""

    def put(total, *limits):
        monkeypatch.setattr(doctor, "available_memory", lambda: 3 << 29)
        monkeypatch.setattr(doctor, "memory_limit", lambda text: {"auto": 3 << 28}[text])
        monkeypatch.setattr(doctor, "total_memory", lambda: total)
        monkeypatch.setattr(doctor, "memory_limits", lambda: list(limits))
        return [one.text for one in told("memory")]

    return put


def test_what_limits_memory_is_told_of_each_kind_what_leaves_least(memory):
    auto = "--memory-limit auto is 768.0 MiB"
    assert memory(0) == [f"1.5 GiB may be taken; {auto}"]
    assert memory(32 << 30) == [f"1.5 GiB may be taken, of 32.0 GiB in all; {auto}"]
    limits = [
        MemoryLimit("cgroup", "/c/a/memory.max", 4 << 30, 2 << 30),
        MemoryLimit("cgroup", "/c/memory.max", 16 << 30, 3 << 29),
        MemoryLimit("ulimit -v", "", 8 << 30, 7 << 30),
    ]
    assert memory(32 << 30, *limits) == [
        f"1.5 GiB may be taken, of 32.0 GiB in all; limits: cgroup 16.0 GiB (/c/memory.max), ulimit -v 8.0 GiB; {auto}"
    ]


@pytest.mark.slow
def test_a_limit_of_this_process_is_told():
    found = in_a_process("sh", "-c", 'ulimit -v 33554432 && exec "$@"', "sh")
    (one,) = [one for one in found if one.topic == "memory"]
    assert "ulimit -v 32.0 GiB" in one.text


# ---- GPUs


@pytest.mark.parametrize(
    ("reason", "fix", "told_fix"),
    [
        ("no NVIDIA driver is installed here", "install it, or use --device cpu", ""),
        ("the driver sees no device", "check nvidia-smi", "check nvidia-smi"),
        ("the extra for CUDA is not installed (x)", "pip install x", "pip install x"),
    ],
)
def test_no_driver_is_no_fault_but_a_driver_without_what_else_it_takes_is(reason, fix, told_fix, monkeypatch):
    monkeypatch.setattr(cuda, "find_device", lambda index: NoDevice(reason, fix))
    assert told("GPU") == [Finding("GPU", f"none that can be used: {reason}; graphprep needs none", told_fix)]


def test_every_gpu_is_told(monkeypatch):
    there = [SimpleNamespace(name=f"cuda:{index} X", free_bytes=index << 30) for index in (1, 2)]

    def look(choice):
        if choice.index == 2:
            raise UsageError("there is no device 2", fix="use another")
        return there[choice.index]

    monkeypatch.setattr(doctor, "look", look)
    assert told("GPU") == [Finding("GPU", "cuda:1 X, 1.0 GiB free"), Finding("GPU", "cuda:2 X, 2.0 GiB free")]


# ---- how it is printed


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
