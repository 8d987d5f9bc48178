"""Machine code that comes with the package, and what is compiled in processes: ahead of need, or by ``graphprep kernels``."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from graphprep.cli.main import run
from graphprep.kernels.compiler import ahead, build, kept, levels, manage, shipped
from graphprep.kernels.compiler.shipped import Signature
from graphprep.model.shown import compilation

TESTS = Path(__file__).resolve().parent
GOLDEN = [str(TESTS.parent / name) for name in ("test_golden.py", "rewrite/test_golden_rewritten.py")]


@pytest.fixture
def signature() -> Signature:
    """Return a small kernel that the package names."""
    return Signature("edges.degree._limits", "i4[1]")


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """Nothing is kept yet, and no command of an earlier test compiles on, and keeps it here."""
    for thread in threading.enumerate():
        if thread.name == build.THREADS:
            thread.join(120)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(shipped, "FOLDER", tmp_path / "shipped")
    return tmp_path


def place_of(signature: Signature) -> str:
    function = signature.load().py_func
    folder = kept.find_folder(function, signature.kinds)
    return str(folder) if folder else "shipped" if shipped.read_code(function, signature.kinds) else "missing"


def test_every_kernel_of_the_list_is_there_with_as_many_arguments():
    found = shipped.read_list()
    assert len(found) > 200
    for one in found:
        code = one.load().py_func.__code__
        assert code.co_argcount == len(one.kinds), one
        assert str(one) == f"{one.kernel} {kept.text_of(one.kinds)}".rstrip()


@pytest.mark.timeout(1800)  # from nothing it compiles all of them, beside other tests
@pytest.mark.xdist_group("signatures")
@pytest.mark.heavy
def test_every_kernel_that_commands_call_is_on_the_list():
    """Over every sample, option and format."""
    words = [sys.executable, str(TESTS / "signatures.py"), "--print"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=1700)
    assert done.returncode == 0, done.stderr
    called = {line.strip().partition(" : ")[0]: line for line in done.stdout.splitlines() if not line.startswith("#")}
    assert len(called) > 150
    listed = {str(one) for one in shipped.read_list()}
    lacking = "\n".join(line for name, line in sorted(called.items()) if name not in listed)
    assert not lacking, f"commands call these, and {shipped.LIST.name} lacks them; make signatures adds them:\n{lacking}"


@pytest.mark.heavy
@pytest.mark.parametrize("level", levels.of_this_processor())
def test_golden_bytes_are_the_same_at_every_level(level):
    """Of a handful, with numbers in floating point; ``make test-levels`` has all."""
    some = "lesmis_weight or dtypes_defaults or (karate_csv and (sum or fennel)) or (partition_file and llp)"
    words = [
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *GOLDEN,
        "-k",
        f"(writes_the_golden or digest) and cpu and ({some})",
    ]
    environment = {**os.environ, levels.VARIABLE: level}
    done = subprocess.run(
        [sys.executable, *words],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        cwd=TESTS.parents[1],
        timeout=850,
    )
    assert done.returncode == 0, done.stdout


# ---- levels


def test_code_of_the_package_runs_without_numba(own_cache, signature):
    names = levels.of_this_processor()
    told = []
    num = manage.build_levels(names, shipped.FOLDER, 2, lambda *numbers: told.append(numbers), [signature])
    assert num == len(names)
    assert told == [(at + step, len(names)) for at in range(len(names)) for step in (0, 1)]
    assert place_of(signature) == "shipped"
    code = (
        "import sys; from pathlib import Path; import numpy as np; from graphprep.kernels.compiler import shipped;"
        f"shipped.FOLDER = Path({str(shipped.FOLDER)!r}); from graphprep.kernels.cpu.edges import degree;"
        "print(degree._limits(np.array([3, -5, 9], np.int32)), 'numba' in sys.modules)"
    )
    for name in names:
        environment = {**os.environ, levels.VARIABLE: name}
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
        assert done.stdout == "(-5, 9) False\n", name
    assert not (own_cache / "kept").exists()


def test_code_of_other_sources_or_damaged_is_not_loaded(own_cache, signature, monkeypatch):
    manage.build_levels(levels.of_this_processor()[:1], shipped.FOLDER, 1, lambda *_: None, [signature])
    (path,) = shipped.FOLDER.rglob("*.kernel")
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert place_of(signature) == "missing"
    path.write_bytes(content)
    path.chmod(0o666)  # whoever owns it: it is one with the sources beside it
    assert place_of(signature) == "shipped"
    monkeypatch.setattr(kept, "_digest_of_sources", lambda _: "newer")
    assert place_of(signature) == "missing"


def test_levels_are_those_of_the_processor_best_first(monkeypatch):
    from llvmlite import binding

    def features_of(*names):
        have = {feature: True for name in names for feature in levels._FEATURES[name]}
        monkeypatch.setattr(binding, "get_host_cpu_features", lambda: have)
        levels.of_this_processor.cache_clear()
        return levels.of_this_processor()

    monkeypatch.setattr(binding, "get_process_triple", lambda: "x86_64-unknown-linux-gnu")
    try:
        assert features_of() == ()
        assert features_of("x86-64-v2") == ("x86-64-v2",)
        assert features_of("x86-64-v2", "x86-64-v3") == ("x86-64-v3", "x86-64-v2")
        assert features_of("x86-64-v2", "x86-64-v4") == ("x86-64-v2",)
        monkeypatch.setenv(levels.VARIABLE, "x86-64-v3")
        assert (levels.chosen(), levels.usable()) == (None, ("x86-64-v2",))
        monkeypatch.setenv(levels.VARIABLE, "x86-64-v2")
        assert levels.target() == ("x86-64-v2", "")
        monkeypatch.setattr(binding, "get_process_triple", lambda: "aarch64-unknown-linux-gnu")
        levels.of_this_processor.cache_clear()
        monkeypatch.delenv(levels.VARIABLE)
        assert levels.usable() == ("aarch64",)
    finally:
        levels.of_this_processor.cache_clear()


# ---- processes


def test_a_process_compiles_what_it_is_asked_for_and_outlives_what_is_not_there(signature):
    made = {}
    unknown = Signature("edges.degree._unknown", "i8")
    wrong = Signature(signature.kernel, "f8")
    for thread in build.compile_behind([unknown, wrong, signature], 1, made.__setitem__):
        thread.join()
    assert (made[unknown], made[wrong]) == (None, None)
    assert made[signature].data.startswith(b"\x7fELF")


def test_a_process_that_is_killed_costs_one_kernel(signature, monkeypatch):
    start, started = build._start, []

    def start_and_kill(level):
        started.append(start(level))
        if len(started) == 1:
            started[0].kill()
        return started[-1]

    monkeypatch.setattr(build, "_start", start_and_kill)
    made = []
    for thread in build.compile_behind([signature, signature], 1, lambda one, code: made.append(code)):
        thread.join()
    assert made[0] is None
    assert made[1] is not None
    assert len(started) == 2


@pytest.mark.slow
def test_what_lies_in_the_folder_of_a_run_is_not_ours(own_cache, signature, monkeypatch):
    """Neither other sources of graphprep, nor modules that are called like what Python or Numba import."""
    for name in ("numba.py", "random.py", "graphprep/__init__.py"):
        path = own_cache / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("import os; os._exit(3)")
    monkeypatch.chdir(own_cache)
    made = {}
    for thread in build.compile_behind([signature], 1, made.__setitem__):
        thread.join()
    assert made[signature].data.startswith(b"\x7fELF")


@pytest.mark.slow
@pytest.mark.long
def test_code_of_other_sources_than_these_is_not_taken(signature, monkeypatch):
    made = []
    monkeypatch.setattr(build, "symbol_of", lambda *_: "graphprep_of_newer_sources")
    for thread in build.compile_behind([signature], 1, lambda one, code: made.append(code)):
        thread.join()
    assert made == [None]


def test_code_that_was_cut_is_not_taken(signature):
    whole = f"{kept.symbol_of(signature.load().py_func, signature.kinds)} i 4\n".encode()

    def ask(answer):
        with tempfile.TemporaryFile() as said:
            said.write(answer)
            said.seek(0)
            worker = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            monkeyed = SimpleNamespace(stdin=worker.stdin, stdout=said, kill=worker.kill, wait=worker.wait)
            try:
                return build._ask(monkeyed, signature, None)
            finally:
                worker.communicate()

    assert ask(whole + b"code").data == b"code"
    assert ask(whole + b"cod") is None
    assert ask(whole[:-3]) is None
    assert ask(b"") is None


def test_where_no_process_can_be_started_the_run_compiles(own_cache, monkeypatch):
    some = [one for one in shipped.read_list() if one.kernel.startswith("edges.degree.")][:4]
    monkeypatch.setattr(shipped, "read_list", lambda: dict.fromkeys(some, (frozenset({"it"}), frozenset())))
    monkeypatch.setattr(compilation.done, "most_jobs", lambda: 2)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    called = [(some[0].load().py_func, some[0].kinds)]
    found = []
    waiting = threading.Thread(target=lambda: found.append(ahead.Foresight().compile(*called[0], called)), daemon=True)
    waiting.start()
    waiting.join(60)
    assert found == [None]
    assert run(["kernels", "build", "--quiet"]) != 0
    assert {place_of(one) for one in some} == {"missing"}


def test_what_a_run_needs_is_foreseen_of_what_it_called():
    text = [("a", "convert-json convert-tsv"), ("b", "convert-json"), ("c", "convert-json? convert-tsv"), ("d", "stats")]
    listed = {
        Signature(name, ""): (
            frozenset(tag for tag in uses.split() if "?" not in tag),
            frozenset(tag[:-1] for tag in uses.split() if "?" in tag),
        )
        for name, uses in text
    }
    a, b, c, d = listed

    def foreseen(*called):
        return ahead.foreseen(called, listed)

    assert foreseen() == []
    assert foreseen(a) == [a]  # of either
    assert foreseen(a, b) == [a, b]
    assert foreseen(c) == [a]
    assert foreseen(a, b, d) == [d]  # another command of the same process
    assert foreseen(Signature("elsewhere", "")) == []


def test_kernels_are_compiled_beside_the_one_that_is_waited_for(own_cache, monkeypatch):
    some = [one for one in shipped.read_list() if one.kernel.startswith("edges.degree.")][:4]
    assert len(some) >= ahead._MIN_BATCH
    monkeypatch.setattr(shipped, "read_list", lambda: dict.fromkeys(some, (frozenset({"it"}), frozenset())))
    monkeypatch.setattr(compilation.done, "most_jobs", lambda: 2)
    foresight = ahead.Foresight()
    called = [(some[0].load().py_func, some[0].kinds)]
    for one in some:
        assert foresight.compile(one.load().py_func, one.kinds, called).data
    assert {place_of(one) for one in some} == {str(own_cache / "kept")}
    monkeypatch.setattr(compilation.done, "most_jobs", lambda: 1)
    other = ahead.Foresight()
    assert other.compile(*called[0], called) is None  # one process alone: this one


# ---- commands


def test_kernels_are_built_listed_and_removed(own_cache, monkeypatch, capsys, signature):
    other = next(one for one in shipped.read_list() if one.kernel == signature.kernel and one != signature)
    uses = frozenset({"stats"}), frozenset({"split"})
    monkeypatch.setattr(shipped, "read_list", lambda: {signature: uses, other: (frozenset(), frozenset())})
    folder = own_cache / "kept"

    def told(*words):
        assert run(["kernels", *words]) == 0
        return re.sub(r" in \d+\.\d+ s$", "", capsys.readouterr().out, flags=re.MULTILINE)

    assert told("list") == "2 kernels missing\n"
    assert told("build", "--for", "split") == "compiled 0 kernels\n"  # of some of its runs
    assert told("build", "--for", "split", "--for", "stats") == "compiled 1 kernel\n"
    assert told("list") == f"1 kernel {folder}\n1 kernel missing\n"
    assert told("build", "--jobs", "1") == "compiled 1 kernel\n"
    assert told("build") == "compiled 0 kernels\n"
    assert told("list", "-v") == "".join(f"{one.kernel}({one.types}): {folder}\n" for one in (signature, other)) + (
        f"2 kernels {folder}\n"
    )
    assert json.loads(told("list", "--json"))[0] == {"kernel": signature.kernel, "types": signature.types, "place": str(folder)}
    num_bytes = sum(path.stat().st_size for path in folder.iterdir())
    assert json.loads(told("clean", "--json")) == {"removed": 2, "bytes": num_bytes}
    assert told("list") == "2 kernels missing\n"


@pytest.mark.slow
def test_what_is_removed_is_ours_alone(own_cache, signature, monkeypatch, capsys):
    monkeypatch.setattr(shipped, "read_list", lambda: {signature: (frozenset(), frozenset())})
    folder = own_cache / "kept"
    assert run(["kernels", "build", "--quiet"]) == 0
    (code,) = folder.iterdir()
    (folder / f"{code.name}.0123456789ab").write_bytes(code.read_bytes()[:100])  # of a process that was killed
    others = [
        folder / name for name in ("my.kernel_matrix.npy", "linux.kernel", f"{code.name}.old", "x-0123456789abcdeg.kernel")
    ]
    for path in others:
        path.write_text("mine")
    (folder / "folder-0123456789abcdef.kernel").mkdir()
    capsys.readouterr()
    assert run(["kernels", "clean", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 2
    assert sorted(folder.iterdir()) == sorted([*others, folder / "folder-0123456789abcdef.kernel"])


@pytest.mark.slow
@pytest.mark.long
def test_how_many_are_to_be_built_is_told_before_the_first_is_made(own_cache, signature):
    other = next(one for one in shipped.read_list() if one.kernel == signature.kernel and one != signature)
    told = []
    manage.build_levels(levels.of_this_processor()[:1], own_cache, 1, lambda *numbers: told.append(numbers), [signature, other])
    assert told == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.slow
@pytest.mark.long
def test_building_is_timed_as_what_it_is(own_cache, signature, monkeypatch, capsys):
    monkeypatch.setattr(shipped, "read_list", lambda: {signature: (frozenset(), frozenset())})
    assert run(["kernels", "build", "--log-format", "json"]) == 0
    done = [one for one in map(json.loads, capsys.readouterr().err.splitlines()) if one["event"] == "stage"]
    assert [one["stage"] for one in done] == ["compile"]
    assert done[0]["elapsed_s"] > 0.2  # Numba alone takes longer to be imported


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--jobs", "2"], "error: kernels list compiles nothing\n  fix: leave out --jobs, --cpu and --for\n"),
        (["clean", "--for", "stats"], "error: kernels clean compiles nothing\n  fix: leave out --jobs, --cpu and --for\n"),
        (["build", "--for", "stats", "--cpu", "x86-64-v2"], "error: --for with --cpu: a wheel brings all kernels\n"),
        (
            ["build", "--for", "jason"],
            "error: --for jason: nothing of this name\n  fix: choose of convert-arrays, convert-chunked, ",
        ),
        (
            ["build", "--jobs", "-3"],
            "error: --jobs -3: there is no such number of processes\n  fix: give 0 for one a core, or more\n",
        ),
        (["build", "--cpu", "pentium"], "error: --cpu pentium: this machine does not run code for it\n  fix: choose of "),
    ],
)
def test_what_kernels_refuses(words, said, capsys):
    assert run(["kernels", *words]) == 2
    assert capsys.readouterr().err.startswith(said)


def test_nothing_is_built_where_nothing_can_be_kept(own_cache, monkeypatch, capsys, signature):
    monkeypatch.setattr(shipped, "read_list", lambda: {signature: (frozenset(), frozenset())})
    for name in ("kept", "home"):
        (own_cache / name).write_text("a file")
    monkeypatch.setattr(build, "compile_behind", None)  # nothing is compiled for nothing
    assert run(["kernels", "build"]) == 3
    places = f"{own_cache / 'kept'}, {own_cache / 'home'}/graphprep"
    assert capsys.readouterr().err == (
        f"error: {places}: no folder takes compiled kernels\n"
        "  fix: set NUMBA_CACHE_DIR to a folder of your own, which nobody else may write to\n"
    )
