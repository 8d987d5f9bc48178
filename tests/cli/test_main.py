"""The command line as a whole: help, exit codes, errors, signals, pipes."""

import dataclasses
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from datetime import datetime
from pathlib import Path

import pytest
from processes import started, wait_for

import graphprep
from graphprep import api
from graphprep.cli import main
from graphprep.cli.main import build_app, run
from graphprep.decoders.registry import find_decoder
from graphprep.model.errors import DataError, MemoryLimitError, StorageError, UsageError
from graphprep.model.option import flag_of
from graphprep.model.options.decoding import DecoderOptions

SAMPLES = Path(__file__).resolve().parent.parent.parent / "sample_data"
COMMANDS = (
    *("convert", "merge", "plan", "info", "validate", "stats", "ids", "partition", "reorder", "transform", "split"),
    *("sample", "export", "generate", "clean", "doctor", "kernels"),
)


def graphprep_command(*args, **options):
    return subprocess.run(
        [sys.executable, "-m", "graphprep", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        **options,
    )


# ------------------------------------------------------------------------------------------------ help


PAGES = [
    *((*command, "--help") for command in [(), *((name,) for name in COMMANDS)]),
    *((name, "--help-all") for name in ("convert", "plan", "info", "validate", "stats")),
]


@pytest.mark.parametrize("args", PAGES, ids=" ".join)
def test_help_fits_80_columns_and_says_how(args, capsys):
    assert run(args) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"Usage: {' '.join(('graphprep', *args[:-1]))} [OPTIONS]")
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "\n  Example: graphprep " in out or "\n  Examples:\n    graphprep " in out


def options_on_page(capsys, *args):
    assert run(args) == 0
    return re.findall(r"^  (?:-\w, )?(--[a-z-]+)", capsys.readouterr().out, re.M)


def test_the_first_screen_of_convert_has_what_most_people_need(capsys):
    assert run(["convert", "--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 45
    assert re.findall(r"^    (?:zcat .* \| )?graphprep convert ", out, re.M) == [
        *["    graphprep convert "] * 2,
        "    zcat edges.txt.gz | graphprep convert ",
    ]
    wanted = "format partitions layout overwrite on-error nodes edges weight-col id-type export json help-all help-for help"
    assert options_on_page(capsys, "convert", "--help") == [f"--{name}" for name in wanted.split()]


@pytest.mark.parametrize(
    ("command", "own"),
    [("info", {"--head", "--json"}), ("validate", {"--against", "--on-error", "--max-faults", "--json"})],
)
def test_the_first_screens_of_info_and_validate_have_only_theirs(command, own, capsys):
    shared = {"--format", "--nodes", "--edges", "--weight-col", "--id-type", "--help-all", "--help-for", "--help"}
    assert set(options_on_page(capsys, command, "--help")) == own | shared


@pytest.mark.parametrize("command", ["convert", "info", "validate"])
def test_help_all_has_every_option_once(command, capsys):
    import typer

    params = typer.main.get_command(build_app()).commands[command].params
    options = sorted(max(param.opts, key=len) for param in params if param.param_type_name == "option")
    assert sorted(options_on_page(capsys, command, "--help-all")) == sorted([*options, "--help"])


@pytest.mark.parametrize("name", ["edges", "arrays", "edgelist", "json", "graphbolt"])
def test_help_for_a_format_has_what_its_decoder_takes(name, capsys):
    fields = {flag_of(field.name, DecoderOptions) for field in dataclasses.fields(find_decoder(name)) if field.init} - {
        "--weight-dtype"
    }
    shown = set(options_on_page(capsys, "convert", "--help-for", name))
    assert shown - {"--ids", "--num-nodes"} == fields
    assert ("--ids" in shown) == (name in ("edges", "arrays"))


def test_help_for_tables_has_what_tables_take(capsys):
    shown = set(options_on_page(capsys, "convert", "--help-for", "tables"))
    assert {"--nodes", "--edges", "--id-col", "--node-data", "--src-col", "--header", "--input-layout", "--num-nodes"} <= shown
    assert not {"--ids", "--partitions", "--length-delimiter", "--index-base", "--help"} & shown


def test_help_for_no_format_names_them(capsys):
    assert run(["convert", "--help-for", "tvs"]) == 2
    assert capsys.readouterr().err.startswith(
        "error: no decoder named 'tvs'\n  fix: did you mean 'tsv'? use one of edgelist, json, tsv, "
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_group_and_a_help(command):
    import typer

    (found,) = (one for name, one in typer.main.get_command(build_app()).commands.items() if name == command)
    for param in found.params:
        assert param.help, param.name
        assert param.help.rstrip("]").endswith(
            (".", "1", "0", "cores", "_N", "input", "input's", "written", "graph", "edges")
        ) or ("[default" in param.help), param.help
        if param.param_type_name == "option" and not param.name.startswith("help"):
            assert param.rich_help_panel, param.name


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("graphprep re", ["reorder"]),
        ("graphprep convert --lay", ["--layout"]),
        ("graphprep convert --layout c", ["csc", "csr"]),
        ("graphprep export --to", ["--to"]),
        ("graphprep --install", ["--install-completion"]),
    ],
)
def test_the_shell_completes_commands_options_and_values(line, words):
    environment = {"_GRAPHPREP_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    done = graphprep_command(env={**os.environ, **environment})
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, words, "")


def test_completion_is_installed(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = graphprep_command("--install-completion", "bash", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    script = tmp_path / ".bash_completions" / "graphprep.sh"
    assert f"bash completion installed in {script}" in done.stdout
    assert "_GRAPHPREP_COMPLETE=complete_bash" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()


def test_the_list_of_commands_is_not_cut(capsys):
    run(["--help"])
    commands = capsys.readouterr().out.partition("Commands:\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in commands.splitlines()] == list(COMMANDS)
    assert "..." not in commands


def test_no_arguments_print_the_help(capsys):
    assert run([]) == 0
    assert capsys.readouterr().out.startswith("Usage: graphprep ")


def test_version(capsys):
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"graphprep {graphprep.__version__}\n"


def test_help_and_version_load_nothing_heavy():
    code = (
        "import sys; from graphprep.cli.main import run; run(['convert', '--help']); run(['--version']);"
        "found = {'numpy', 'numba', 'pyarrow', 'fsspec', 'rich', 'jsonschema', 'orjson'} & set(sys.modules);"
        "print(*found, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.strip() == ""


def test_import_graphprep_loads_nothing_and_knows_its_names():
    code = (
        "import sys, graphprep; heavy = {'numpy', 'typer'} & set(sys.modules); print(*heavy);"
        "[getattr(graphprep, name) for name in dir(graphprep)];"
        "assert not any(name.startswith('_') and name != '__version__' for name in dir(graphprep))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""
    with pytest.raises(AttributeError, match="module 'graphprep' has no attribute 'nothing'"):
        _ = graphprep.nothing


# ------------------------------------------------------------------------------------------------ usage errors


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["frobnicate"], "error: no such command 'frobnicate'\n  fix: see graphprep --help\n"),
        (["convert", "a", "b", "--nope"], "error: no such option: --nope\n  fix: see graphprep convert --help-all\n"),
        (["reorder", "a", "b", "--nope"], "error: no such option: --nope\n  fix: see graphprep reorder --help\n"),
        (
            ["convert", "a", "b", "--bidirected"],
            "error: no such option: --bidirected\n"
            "  fix: leave it out: edges are stored as they are given; convert --undirected adds the reverse of each\n",
        ),
        (["convert", "a", "b", "--fromat", "tsv"], "error: no such option: --fromat\n  fix: did you mean --format?\n"),
        (
            ["partition", "a", "b", "--partition-by", "hash"],
            "error: no such option: --partition-by\n  fix: did you mean --by?\n",
        ),
        (["convert", "a", "b", "--by", "hash"], "error: no such option: --by\n  fix: did you mean --partition-by?\n"),
        (["convert", "a", "b", "--sep", ","], "error: no such option: --sep\n  fix: did you mean --delimiter?\n"),
        (
            ["convert", "a", "--output", "b"],
            "error: no such option: --output\n  fix: the output is no option, but the last arg",
        ),
        (["--versoin"], "error: no such option: --versoin\n  fix: did you mean --version?\n"),
        (
            ["ids", "a", "-3", "--from", "raw", "--to", "typed"],
            "error: no such option: -3\n  fix: write -- in front of negative numbers, behind all options\n",
        ),
        (
            ["transform", "a", "b", "filter", "-u < 0"],
            "error: no such option: -u\n  fix: write -- in front of an expression that begins with -, behind all options\n",
        ),
        (
            ["convert", "tiny.txt"],
            "error: INPUT and OUT are both needed: what to convert, and the folder or URL of the store\n"
            "  fix: name the input, or its tables with --nodes and --edges\n",
        ),
        (
            ["convert"],
            "error: INPUT and OUT are both needed: what to convert, and the folder or URL of the store\n"
            "  fix: see graphprep convert --help\n",
        ),
        (
            ["convert", "tiny.txt", "out", "--nodes", "a=b"],
            "error: --nodes and --edges name the whole input, but there is 'tiny.txt' too\n"
            "  fix: name that file with --nodes or --edges, or leave these out\n",
        ),
        (
            ["convert", "a", "b", "--src-col", "1", "--src-col", "2"],
            "error: --src-col is given 2 times\n  fix: give it once; for tables, name them with --nodes and --edges\n",
        ),
        (["info", "a", "--head", "x"], "error: invalid value for '--head': expected an integer, found 'x'\n"),
        (["convert", "a", "b", "--seed", "x"], "error: invalid value for '--seed': expected an integer, found 'x'\n"),
        (
            ["convert", "a", "b", "--default-edge-weight", "x"],
            "error: invalid value for '--default-edge-weight': expected a number, found 'x'\n",
        ),
        (
            ["convert", "a", "b", "--layout", "csx"],
            "error: invalid value for '--layout': 'csx' is not one of 'csc', 'csr', 'both'\n",
        ),
        (
            ["convert", "a", "b", "--threads", "-1"],
            "error: --threads must be 0 or more, found -1\n  fix: use 0 for one thread a core\n",
        ),
        (
            ["convert", "a", "b", "--storage-option", "anon"],
            "error: --storage-option must be KEY=VALUE, found 'anon'\n  fix: write --storage-option key=value\n",
        ),
        (
            ["convert", "a", "b", "--num-nodes", "user=x"],
            "error: --num-nodes must be N or TYPE=N, found 'user=x'\n  fix: write N as decimal digits\n",
        ),
        (
            ["convert", "a", "b", "--num-nodes", "3", "--num-nodes", "4"],
            "error: --num-nodes is given twice\n  fix: give it once\n",
        ),
        (
            ["convert", "a", "b", "-q", "-v"],
            "error: --quiet and --verbose contradict each other\n  fix: leave out one of them\n",
        ),
        (["info", "a", "--head", "-1"], "error: --head must be 0 or more, found -1\n  fix: give the number of rows to show\n"),
        (
            ["validate", "a", "--max-faults", "-1"],
            "error: --max-faults must be 0 or more, found -1\n  fix: give the number of faults to print\n",
        ),
    ],
)
def test_usage_errors(args, message, capsys):
    assert run(args) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(message)
    assert "Traceback" not in err


# ------------------------------------------------------------------------------------------------ exit codes


def failing(monkeypatch, error):
    def fail(*args, **options):
        raise error

    monkeypatch.setattr(api, "info", fail)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (DataError("bad", place="a.csv:3:5", fix="do it"), 1, "error: a.csv:3:5: bad\n  fix: do it\n"),
        (UsageError("bad"), 2, "error: bad\n"),
        (StorageError("gone", place="a"), 3, "error: a: gone\n"),
        (MemoryLimitError("too small"), 4, "error: too small\n"),
        (
            MemoryError(),
            4,
            "error: out of memory\n  fix: lower --memory-limit or --threads, or use a machine with more memory\n",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "/tmp/x"),
            3,
            "error: /tmp/x: no space left on device\n  fix: free some space, or choose another place\n",
        ),
        (KeyboardInterrupt(), 130, "error: interrupted\n"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), 141, ""),
        (
            ValueError("oops"),
            70,
            f"error: internal error: ValueError: oops (graphprep {graphprep.__version__})\n"
            "  fix: this is a mistake of graphprep: please report it with the command line and what GRAPHPREP_DEBUG=1 prints\n",
        ),
    ],
)
def test_exit_codes(monkeypatch, capsys, error, code, text):
    monkeypatch.delenv("GRAPHPREP_DEBUG", raising=False)
    monkeypatch.setattr("graphprep.cli.main._discard_stdout", lambda: None)
    failing(monkeypatch, error)
    assert run(["info", "a"]) == code
    assert capsys.readouterr() == ("", text)


@pytest.mark.parametrize(("args", "environment"), [(["-vv"], {}), (["-v", "-v"], {}), ([], {"GRAPHPREP_DEBUG": "1"})])
def test_an_internal_error_shows_its_traceback_on_demand(monkeypatch, capsys, args, environment):
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    failing(monkeypatch, ValueError("oops"))
    assert run(["info", "a", *args]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.parametrize("flag", [["--log-format", "json"], ["--log-format=json"]])
def test_errors_as_json(monkeypatch, capsys, flag):
    failing(monkeypatch, DataError("bad", place="a.csv:3:5", fix="do it"))
    assert run(["info", "a", *flag]) == 1
    told = json.loads(capsys.readouterr().err)
    assert datetime.fromisoformat(told.pop("time")).tzinfo
    assert told == {
        "event": "error",
        "message": "bad",
        "place": "a.csv:3:5",
        "fix": "do it",
    }


# ------------------------------------------------------------------------------------------------ processes


def test_module_and_exit_code():
    done = graphprep_command("info", "/nothing/there")
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr == "error: /nothing/there: no such file or folder\n  fix: check the spelling of the path\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.usefixtures("hears_signals")
def test_signals_clean_up(tmp_path, number, code):
    """While stdin is awaited, a signal ends the command, and the folder of temporary files is gone."""
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    command = [
        sys.executable,
        "-m",
        "graphprep",
        "convert",
        "-",
        str(tmp_path / "out"),
        "--format",
        "edges",
        "--tmp-dir",
        str(tmp),
    ]
    with started(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: any(tmp.iterdir()))
        process.send_signal(number)
        assert process.wait(30) == code
        err = process.stderr.read()
    assert "Traceback" not in err
    assert err.endswith("terminated\n" if number == signal.SIGTERM else "interrupted\n")
    assert list(tmp.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["tmp"]


@pytest.mark.usefixtures("hears_signals")
def test_a_signal_in_what_cannot_raise_ends_the_command_nonetheless(monkeypatch, capsys):
    """An import calls back from weak references: what is raised there is dropped, and the command would go on for good."""

    def work(args):
        class Held:
            pass

        held = Held()
        reference = weakref.ref(held, lambda _: signal.raise_signal(signal.SIGTERM))
        del held
        assert reference() is None  # the signal was raised, and lost
        time.sleep(30)
        return 0

    monkeypatch.setattr(main, "_invoke", work)
    begin = time.monotonic()
    assert main.run(["info"]) == 143
    assert time.monotonic() - begin < 20
    assert capsys.readouterr().err == "error: terminated\n"


def test_a_reader_that_goes_away_is_no_trouble(tmp_path):
    """``graphprep ids … | head -1`` ends quietly, as other commands do."""
    store = Path(__file__).resolve().parent.parent / "golden" / "karate_csv" / "store"
    numbers = tmp_path / "ids.txt"
    numbers.write_text("0\n" * 300_000)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as pipe:
        command = [
            sys.executable,
            "-m",
            "graphprep",
            "ids",
            str(store),
            "--from",
            "raw",
            "--to",
            "homo",
            "--file",
            str(numbers),
        ]
        done = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_stdout_that_is_full(unbuffered):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "graphprep", "--version"],
            stdout=full,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
            text=True,
        )
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr


def test_stdin_of_a_terminal_is_not_needed_for_help(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert run(["ids", "--help"]) == 0
    assert "Usage: graphprep ids [OPTIONS] STORE [ID...]" in capsys.readouterr().out
