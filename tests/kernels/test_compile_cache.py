"""Kernels are compiled once: kept, found again without Numba, never found where they would be wrong."""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphprep.kernels.cpu
from graphprep.kernels.compiler import jit
from graphprep.kernels.compiler import kept as files
from graphprep.kernels.compiler.kept import read_private, write_private
from graphprep.model.shown import compilation

FOLDER = Path(graphprep.kernels.cpu.__file__).parent
KERNELS = '''
import numpy as np
from graphprep.kernels.compiler.jit import njit

FACTOR = 2

@njit(cache=True, nogil=True)
def scale(values, factor, out):
    """Multiply, and return (sum, whether anything is negative, count)."""
    total = 0.0
    for i in range(values.size):
        out[i] = values[i] * factor * FACTOR
        total += values[i]
    return total, (values < 0).any() if False else total < 0, values.size

@njit(cache=True, nogil=True)
def double(number):
    return FACTOR * number

@njit(cache=True, nogil=True)
def choose(number, other):
    return number if other is None else other

@njit(cache=True, nogil=True)
def rows_by_columns(grid):
    return grid.shape[0] * 1000 + grid.shape[1]

@njit(cache=True, nogil=True)
def last(flags):
    return flags[flags.size - 1]

@njit(cache=True, nogil=True)
def fill(values, number):
    values[:] = number

@njit(cache=True, nogil=True)
def allocate(number):
    return np.ones(number).sum()
'''
CALL = "import sys; import {name}; print({name}.double(21)); assert ('numba' in sys.modules) == {compiles}"


@pytest.fixture
def kernels(tmp_path, monkeypatch, request):
    """Return a module of kernels, kept in a folder of their own."""
    name = "kernels_" + re.sub(r"\W", "_", request.node.name)
    (tmp_path / f"{name}.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for variable in set(os.environ) - {"NUMBA_CACHE_DIR"}:
        if variable.startswith("NUMBA_"):
            monkeypatch.delenv(variable)
    module = importlib.import_module(name)
    yield module
    del sys.modules[name]


def kept(tmp_path):
    return sorted(path.name.split("-")[0].split(".")[-1] for path in (tmp_path / "kept").glob("*.kernel"))


def anew(kernel):
    """Return a kernel as a new process finds it."""
    return jit.Kernel(kernel.py_func, kernel._options)


def run(tmp_path, kernels, *, compiles):
    code = CALL.format(name=kernels.__name__, compiles=compiles)
    path = os.pathsep.join((str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=environment, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


# ---- results


def test_numbers_come_back_as_python_s(kernels, tmp_path):
    for number in (-3, 2**62 - 1, True, 2.5, np.int8(-4), np.uint64(6), np.float32(0.5)):
        found = kernels.double(number)
        assert found == 2 * number
        assert type(found) is (float if isinstance(number, float | np.floating) else int), number
    assert kept(tmp_path) == ["double"] * 6
    assert kernels.choose(2**63, None) == 2**63


@pytest.mark.parametrize("dtype", ["i1", "u8", "f4"])
def test_arrays_go_in_and_results_come_out(kernels, dtype):
    values = np.arange(5).astype(dtype)
    out = np.zeros(5, dtype)
    assert kernels.scale(values, 3, out) == (10.0, False, 5)
    assert out.tolist() == [0, 6, 12, 18, 24]
    assert kernels.scale(values[:0], 3, out) == (0.0, False, 0)


def test_nothing_two_axes_flags_and_none(kernels):
    assert kernels.choose(3, None) == 3
    assert kernels.choose(3, 4) == 4
    assert kernels.rows_by_columns(np.zeros((3, 7), np.uint8)) == 3007
    assert kernels.last(np.array([True, False])) is False
    assert kernels.last(np.array([False, True])) is True
    values = np.zeros(3, np.int16)
    assert kernels.fill(values, 7) is None
    assert values.tolist() == [7, 7, 7]


def test_arrays_that_may_not_be_written_to_are_no_other_type(kernels, tmp_path):
    values, out = np.arange(4.0), np.zeros(4)
    kernels.scale(values, 1.0, out)
    values.flags.writeable = False
    kernels.scale(values, 1.0, out)
    np.save(tmp_path / "values.npy", values)
    assert kernels.scale(np.load(tmp_path / "values.npy", mmap_mode="r"), 1.0, out)[0] == 6
    assert kept(tmp_path) == ["scale"]
    assert len(kernels.scale._calls) == 1


def test_arrays_with_gaps_and_of_the_other_byte_order_are_numba_s_matter(kernels, tmp_path):
    out = np.zeros(3)
    assert kernels.scale(np.arange(6.0)[::2], 1.0, out)[0] == 6
    assert kernels.rows_by_columns(np.zeros((3, 7), order="F")) == 3007
    assert kept(tmp_path) == []
    assert [jit._kind_of(one) for one in (np.arange(3, dtype=">i4"), np.array(3), np.array(["a"]), "a", (1, 2))] == [None] * 5


# ---- what is kept


def test_the_next_process_needs_no_numba(kernels, tmp_path):
    assert run(tmp_path, kernels, compiles=True) == 42
    assert kept(tmp_path) == ["double"]
    assert run(tmp_path, kernels, compiles=False) == 42


def test_a_newer_source_is_compiled_anew(kernels, tmp_path):
    assert run(tmp_path, kernels, compiles=True) == 42
    source = Path(kernels.__file__)
    source.write_text(KERNELS.replace("FACTOR = 2", "FACTOR = 3"))
    os.utime(source, (source.stat().st_atime, source.stat().st_mtime + 2))  # Python's own cache knows seconds and sizes only
    assert run(tmp_path, kernels, compiles=True) == 63
    assert kept(tmp_path) == ["double"]  # in the place of the old one
    assert run(tmp_path, kernels, compiles=False) == 63


@pytest.mark.parametrize(
    "module", sorted(".".join(path.relative_to(FOLDER).with_suffix("").parts) for path in FOLDER.rglob("[!_]*.py"))
)
def test_sources_of_what_a_module_imports_count_too(module):
    """Or a change of how numbers are read would not reach the parsers."""
    name = f"graphprep.kernels.cpu.{module}"
    importlib.import_module(name)
    expected, pending = set(), [name]
    while pending:  # as Python itself sees it: by the modules of what a module names
        one = sys.modules[pending.pop()]
        expected.add(one.__name__)
        of_ours = {getattr(item, "__module__", None) or getattr(item, "__name__", "") for item in vars(one).values()}
        of_ours |= {item.__name__ for item in vars(one).values() if inspect.ismodule(item)}
        of_ours = {found for found in of_ours if str(found).startswith("graphprep.")} - expected
        pending += [found for found in of_ours if not found.startswith("graphprep.kernels.compiler.")]
    expected |= {f"graphprep.kernels.compiler.{name}" for name in ("jit", "levels", "machine_code")}
    assert expected <= set(files._sources_of(name))


@pytest.mark.parametrize(
    "line",
    [
        "import graphprep.kernels.cpu.bytes.words",
        "import graphprep.kernels.cpu.bytes.words as w, sys",
        "from graphprep.kernels.cpu.bytes import words",
        "from graphprep.kernels.cpu.bytes import (\n    memory,\n    words as w,\n)",
        "from graphprep.kernels.cpu.bytes import memory, \\\n    words",
        "from graphprep.kernels.cpu.bytes.words import word_at",
        "from .bytes import words",
        "from .bytes.words import word_at as at",
        "def late():\n    from graphprep.kernels.cpu.bytes import words",
        "if True: from graphprep.kernels.cpu.bytes import words",
    ],
)
def test_a_module_is_found_in_any_form_of_import(line, tmp_path, monkeypatch):
    (tmp_path / "importing.py").write_text(line)
    name = f"graphprep.kernels.cpu.{tmp_path.name}"  # one of its own for each line: what a name stands for is kept
    spec = importlib.util.spec_from_file_location(name, tmp_path / "importing.py")
    monkeypatch.setitem(sys.modules, name, importlib.util.module_from_spec(spec))
    sources = files._sources_of(name)
    assert sources[name].decode() == line
    assert "graphprep.kernels.cpu.bytes.words" in sources
    assert "graphprep.kernels.cpu.text.numbers" not in sources


@pytest.mark.parametrize("change", ["cut", "flip", "empty", "other"])
def test_damaged_and_foreign_code_is_not_loaded(kernels, tmp_path, change):
    kernels.double(21)
    (path,) = (tmp_path / "kept").glob("*.kernel")
    content = path.read_bytes()
    if change == "other":  # whole and well, but of another kernel
        kernels.last(np.array([True]))
        (other,) = set((tmp_path / "kept").glob("*.kernel")) - {path}
        other.replace(path)
    else:
        path.write_bytes({"cut": content[:-1], "flip": content[:-9] + b"?" + content[-8:], "empty": b""}[change])
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is None
    before = compilation.done.num_kernels
    assert anew(kernels.double)(21) == 42
    assert compilation.done.num_kernels == before + 1
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is not None


@pytest.mark.parametrize("what", ["numba 0.1", "a processor"])
def test_code_for_another_machine_is_not_loaded(kernels, tmp_path, monkeypatch, what):
    kernels.double(21)
    machine = files._machine()
    monkeypatch.setattr(files, "_machine", lambda *_: f"{what}\n{machine}")
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is None
    assert anew(kernels.double)(21) == 42
    assert kept(tmp_path) == ["double", "double"]  # both stay: a home may be shared by several machines


def test_what_allocates_is_left_to_numba(kernels, tmp_path):
    assert kernels.allocate(3) == 3.0
    assert files.read_code(kernels.allocate.py_func, (jit._INT,)) == files.Code(*_symbol_and(kernels.allocate), b"")
    before = compilation.done.num_kernels
    assert anew(kernels.allocate)(4) == 4.0
    assert compilation.done.num_kernels == before


def _symbol_and(kernel):
    code = files.read_code(kernel.py_func, (jit._INT,))
    return code.symbol, code.results


def test_special_builds_are_left_to_numba(kernels, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert kernels.double(21) == 42
    assert kept(tmp_path) == []


# ---- where it is kept


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EROFS])
def test_code_that_cannot_be_kept_runs_all_the_same(kernels, tmp_path, monkeypatch, number):
    tries = []

    def full(path, content):
        tries.append(path.parent)
        raise OSError(number, "no")

    monkeypatch.setattr(files, "write_private", full)
    assert kernels.double(21) == 42
    assert tries == [tmp_path / "kept", tmp_path / "home" / "graphprep"]
    assert kept(tmp_path) == []


def test_numba_s_own_cache_may_be_full_too(kernels, monkeypatch):
    from numba.core import caching

    tries = []

    def full(self, key, data):
        tries.append(key)
        raise OSError(errno.ENOSPC, "no")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    assert kernels.double.outer(21) == 42
    assert len(tries) == 1


def test_code_is_kept_beside_the_sources_or_else_in_the_user_s_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    beside = Path(jit.__file__).parent / "__pycache__"
    assert list(files.folders()) == [beside, tmp_path / "graphprep"]
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert list(files.folders()) == [beside, tmp_path / ".cache" / "graphprep"]
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "chosen"))
    assert list(files.folders()) == [tmp_path / "chosen", tmp_path / ".cache" / "graphprep"]
    monkeypatch.delenv("NUMBA_CACHE_DIR")

    def nobody():
        raise RuntimeError

    monkeypatch.setattr(Path, "home", nobody)
    assert list(files.folders()) == [beside]


def test_a_folder_that_takes_nothing_passes_it_to_the_next(kernels, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setattr(files, "folders", lambda: iter([tmp_path / "file", tmp_path / "kept"]))
    assert kernels.double(21) == 42
    assert kept(tmp_path) == ["double"]
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is not None


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_may_write_to_is_passed_over(kernels, tmp_path, mode):
    """Neither read nor written: the user's own cache is."""
    kernels.double(21)
    (path,) = (tmp_path / "kept").glob("*.kernel")
    (tmp_path / "kept").chmod(mode)
    before = compilation.done.num_kernels
    assert anew(kernels.double)(21) == 42
    assert compilation.done.num_kernels == before + 1
    assert [one.name for one in (tmp_path / "home" / "graphprep").iterdir()] == [path.name]
    kernels.fill(np.zeros(1), 1.0)
    assert kept(tmp_path) == ["double"]
    before = compilation.done.num_kernels
    assert anew(kernels.double)(21) == 42
    assert compilation.done.num_kernels == before


@pytest.mark.parametrize("what", ["group may write", "others may write", "link", "pipe", "folder"])
def test_a_file_that_another_may_have_made_is_not_loaded(kernels, tmp_path, what):
    kernels.double(21)
    (path,) = (tmp_path / "kept").glob("*.kernel")
    if what.endswith("may write"):
        path.chmod(0o620 if what.startswith("group") else 0o602)
    else:
        path.rename(tmp_path / "elsewhere")
        if what == "link":
            path.symlink_to(tmp_path / "elsewhere")
        elif what == "pipe":
            os.mkfifo(path)
        else:
            path.mkdir()
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is None
    assert anew(kernels.double)(21) == 42
    code = files.read_code(kernels.double.py_func, (jit._INT,))
    assert code is not None
    if what != "folder":  # in its place lies what the user compiled
        assert stat.S_ISREG(path.lstat().st_mode)
        assert path.lstat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give files to another user: run as root")
@pytest.mark.parametrize("whose", ["folder", "file"])
def test_what_belongs_to_another_user_is_not_loaded(kernels, tmp_path, whose):
    kernels.double(21)
    (path,) = (tmp_path / "kept").glob("*.kernel")
    os.chown(path if whose == "file" else path.parent, 65534, 65534)
    assert files.read_code(kernels.double.py_func, (jit._INT,)) is None


@pytest.mark.parametrize("umask", [0, 0o777])
def test_files_and_folders_are_the_user_s_alone(tmp_path, umask):
    before = os.umask(umask)
    try:
        write_private(tmp_path / "a" / "b" / "file", b"code")
    finally:
        os.umask(before)
    modes = [path.stat().st_mode & 0o777 for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "file")]
    assert modes == [0o700, 0o700, 0o600]
    assert read_private(tmp_path / "a" / "b" / "file") == b"code"
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    def fail(*args, **options):
        raise OSError(errno.EXDEV, "no")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_private(tmp_path / "file", b"code")
    assert list(tmp_path.iterdir()) == []


def test_numba_keeps_nothing_where_others_may_write(kernels, tmp_path, monkeypatch):
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    (tmp_path / "kept").mkdir(mode=0o700)
    assert type(anew(kernels.double).outer._cache).__name__ == "FunctionCache"
    (tmp_path / "kept").chmod(0o777)
    assert type(anew(kernels.double).outer._cache).__name__ == "NullCache"


def test_processes_that_compile_at_once_do_not_meet(kernels, tmp_path):
    code = CALL.format(name=kernels.__name__, compiles=True)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    racers = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for racer in racers:
        out, errors = racer.communicate(timeout=120)
        assert (racer.returncode, out.split()) == (0, [b"42"]), errors
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".kernel"]
    assert anew(kernels.double)(21) == 42


# ---- who waits is told


def test_whoever_waits_is_told_once(kernels):
    told = []
    compilation.announce(lambda: told.append("compiling"))
    kernels.double(1)
    kernels.double(1.0)
    assert told == ["compiling"]
    anew(kernels.double)(1)
    assert told == ["compiling"]


def test_no_kernel_file_imports_numba():
    """Or a process that needs no compiler would load one."""
    for path in FOLDER.glob("*.py"):
        found = re.findall(r"^(?:from|import) (?:numba|llvmlite).*", path.read_text(), re.MULTILINE)
        assert found == [], path.name


# ---- the kernels of all formats

# A kernel may have two signatures where IDs have 32 or 64 bits, or values are float32 or float64. These have more, and why:
SEVERAL = {
    "blocks._copy_blocks": 4,  # items by their size
    "intervals._count_all": 3,  # borders that are positions, and keys of 32 bits without a sign
    "plain_rows._gather": 4,  # features of any dtype
}


@pytest.fixture(scope="module")
def every_format(tmp_path_factory):
    """Return what converting all formats takes of kernels, in a process that finds all of them compiled."""
    if any(variable.startswith("NUMBA_") and variable not in jit._HARMLESS for variable in os.environ):
        pytest.skip("a special build of the kernels is not kept")
    command = [sys.executable, str(Path(__file__).with_name("every_format.py")), str(tmp_path_factory.mktemp("out") / "store")]
    for _ in range(2):  # the first may have to compile some
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        if not found["compiled"]:
            break
    return found


def test_a_second_process_compiles_nothing(every_format):
    assert every_format["compiled"] == 0


def test_no_kernel_is_compiled_twice_by_accident(every_format):
    """Where this fails: make the arrays of the calls alike, or say above why the kernel has several signatures."""
    assert len(every_format["kernels"]) > 40
    for name, (signatures, _) in every_format["kernels"].items():
        alike = {re.sub(r"\b([iuf])4\[", r"\g<1>8[", signature) for signature in signatures}
        assert len(signatures) <= SEVERAL.get(name, 2), f"{name}: {signatures}"
        assert len(alike) == 1 or name in SEVERAL, f"{name}: {signatures}"


def test_no_kernel_needs_numba(every_format):
    """Where this fails: pass arrays and numbers instead of tuples, let the public function allocate, and raise nothing.

    A warm run that calls a kernel that Numba must run imports Numba all the same. Numba's index of a tuple and its division by
    a variable may raise: look into an array, and state ``error_model="numpy"``.
    """
    assert [name for name, (_, by_numba) in every_format["kernels"].items() if by_numba] == []
