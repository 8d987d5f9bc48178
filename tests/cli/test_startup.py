"""Commands start quickly: they load no package that they do not need. Benchmarks time them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from graphprep.cli.main import build_app, run

EDGES = Path(__file__).resolve().parent.parent.parent / "sample_data" / "edges"
HEAVY = ("numpy", "numba", "llvmlite", "pyarrow", "fsspec", "scipy", "pandas", "jsonschema", "yaml", "rich")
OF_OTHERS = ("pydantic", "graphprep.exporters", "graphprep.validate.files", "graphprep.cli.stores.ids")  # no work of convert's
PROBE = """
import sys
from graphprep.cli.main import main
sys.argv = ["graphprep", *{arguments!r}]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
print("loaded:", *sorted(set({heavy!r}) & set(sys.modules)))
"""


def loaded(arguments, heavy=HEAVY):
    """Run a command and return which of the heavy packages it loads."""
    probe = PROBE.format(arguments=arguments, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", probe], check=False, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].removeprefix("loaded:").split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["convert", "--help-all"],
        *([name, "--help"] for name in ("convert", "info", "validate", "ids", "partition", "reorder", "split", "generate")),
    ],
    ids=" ".join,
)
def test_help_loads_no_heavy_package(arguments):
    assert loaded(arguments) == set()


def test_the_page_of_all_commands_loads_none_and_says_what_each_says_of_itself(capsys):
    assert loaded(["--help"], ("graphprep.cli.convert", "graphprep.cli.export", "graphprep.cli.help.groups")) == {
        "graphprep.cli.help.groups"
    }
    with typer.main.get_command(build_app()).make_context("graphprep", ["info"]) as context:
        page = context.command.get_help(context)
    assert run(["--help"]) == 0
    assert capsys.readouterr().out == f"{page}\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return a store, converted once so that the kernels are compiled."""
    if any(name.startswith("NUMBA_") and name != "NUMBA_CACHE_DIR" for name in os.environ):
        pytest.skip("a special build of the kernels is not kept")
    path = str(tmp_path_factory.mktemp("stores") / "store")
    loaded(["convert", str(EDGES / "plain.txt"), path])
    loaded(["validate", path])
    return path


@pytest.mark.parametrize("name", ["plain.txt", "plain.tsv", "plain.txt.gz"])
def test_text_is_converted_without_numba_pyarrow_and_fsspec(store, name):
    assert loaded(["convert", str(EDGES / name), store, "--overwrite"], HEAVY + OF_OTHERS) == {"numpy", "llvmlite"}


def test_an_export_at_once_needs_no_schemas_and_plain_values_no_converter(store, tmp_path):
    flags = ["--layout", "csr", "--partitions", "2", "--export", f"scipy={tmp_path / 'out'}", "--overwrite", "--quiet"]
    command = ["convert", str(EDGES / "plain.txt"), str(tmp_path / "store"), *flags]
    loaded(command)  # kernels are compiled
    assert loaded(command, (*HEAVY, "pydantic")) <= {"numpy", "llvmlite"}


def test_blas_starts_no_threads():
    probe = "import os; from graphprep.__main__ import main; main(); "
    probe = f"import atexit, os; atexit.register(lambda: print(os.environ['OPENBLAS_NUM_THREADS'])); {probe}"
    done = subprocess.run([sys.executable, "-c", probe, "--version"], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == os.environ.get("OPENBLAS_NUM_THREADS", "1"), done.stderr


@pytest.mark.parametrize(
    ("arguments", "packages"),
    [
        (["info", "STORE"], {"numpy", "jsonschema"}),
        (["info", str(EDGES / "plain.txt")], {"numpy", "llvmlite"}),
        (["ids", "STORE", "0", "--from", "typed", "--to", "homo", "--type", "_N"], {"numpy", "jsonschema"}),
        (["validate", "STORE"], {"numpy", "llvmlite", "jsonschema"}),
    ],
    ids=["info store", "info text", "ids", "validate"],
)
def test_commands_that_compile_nothing_load_no_compiler(store, arguments, packages):
    assert loaded([store if word == "STORE" else word for word in arguments]) <= packages


def test_the_package_itself_loads_no_heavy_package():
    probe = f"import sys, graphprep; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", probe], check=False, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stderr


def test_module_and_version():
    done = subprocess.run(
        [sys.executable, "-m", "graphprep", "--version"], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "0." in done.stdout


def test_an_interrupt_while_modules_are_loaded_prints_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    command = [sys.executable, "-m", "graphprep", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
