"""Documents say what the code does: examples run, tables hold, links lead somewhere, and nothing is left out."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from graphprep.cli.main import build_app
from graphprep.decoders.registry import find_decoder, known_decoders
from graphprep.exporters.registry import find_exporter, known_targets
from graphprep.model.option import flag_of
from graphprep.model.options.decoding import DecoderOptions

ROOT = Path(__file__).resolve().parents[2]


def _load_sessions():
    """Import docs/sessions.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("sessions", ROOT / "docs" / "sessions.py")
    module = sys.modules["sessions"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sessions = _load_sessions()
# Pages most of whose examples need what make test-all installs.
NEEDED = {"docs/python.md": ("pandas", "scipy"), "docs/stats.md": ("matplotlib",), "docs/export-files.md": ("scipy",)}
DOCUMENTS = {str(path.relative_to(ROOT)): path for path in sessions.documents()}
_BUILT_IN = (
    *("edgelist", "json", "tsv", "chunked", "edges", "arrays", "mtx", "metis"),
    *("triples", "neo4j", "graphstorm", "graphbolt", "ogb"),
)


@pytest.fixture
def memory():
    """Forget what examples put under memory://, which all tests of a process share."""
    from fsspec.implementations.memory import MemoryFileSystem

    before = dict(MemoryFileSystem.store), list(MemoryFileSystem.pseudo_dirs)
    yield
    MemoryFileSystem.store.clear()
    MemoryFileSystem.store.update(before[0])
    MemoryFileSystem.pseudo_dirs[:] = before[1]


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("name", DOCUMENTS)
def test_examples_do_what_the_document_says(name, tmp_path):
    for module in NEEDED.get(name, ()):
        pytest.importorskip(module, reason=f"{module} is not installed: make test-all does")
    runner = sessions.Runner(DOCUMENTS[name])
    with sessions.workplace(tmp_path):
        runner.run()
    assert not runner.mismatches, "\n\n".join([*map(str, runner.mismatches), "make docs rewrites what sessions print"])
    if runner.left_out:
        pytest.skip(f"{name}: all other examples hold; left out: {'; '.join(runner.left_out)}")


# ---------------------------------------------------------------------------------------------- tables of deviations

_TABLE = re.compile(r"^<!-- table: (?P<flags>.*) -->\n(?P<rows>(?:\|.*\n)+)", re.M)
_RECORD = '"node_id": 0, "node_type": 0, "node_weight": 1, "edge": []'


def _deviations():
    """Yield (document, flags, input, error or None) for the rows of marked tables whose input is given to the letter."""
    for name, path in DOCUMENTS.items():
        for table in _TABLE.finditer(path.read_text()):
            for row in table["rows"].splitlines()[2:]:
                given, _, ours = (cell.strip() for cell in re.split(r"(?<!\\)\|", row.strip("|")))
                literal = re.match(r"`([^`]*)`", given)
                if literal:
                    error = re.match(r"error: `([^`]*)`", ours)
                    text = literal[1].replace("\\|", "|").replace("⏎", "\n").replace("→", "\t").replace("…", _RECORD)
                    text = text.replace(" ", "\u2028") if "U+2028" in given and "json" not in name else text
                    yield pytest.param(table["flags"], text + "\n", error and error[1], id=f"{Path(name).stem}-{literal[1]}")


@pytest.mark.parametrize(("flags", "text", "error"), list(_deviations()))
def test_deviations_are_as_told(flags, text, error, tmp_path):
    (tmp_path / "input").write_text(text)
    shell = sessions.Shell()
    with sessions.workplace(tmp_path):
        said = shell.run(f"graphprep validate input {flags}")
    assert (shell.exit_code, error in said if error else True) == (1 if error else 0, True), said


# ---------------------------------------------------------------------------------------------- nothing is left out


def _options():
    """Return the options of every command: {command: flags}."""
    group = typer.main.get_command(build_app())
    return {
        name: {
            flag
            for param in command.params
            if param.param_type_name == "option"
            for flag in (*param.opts, *param.secondary_opts)
        }
        for name, command in group.commands.items()
    }


@pytest.mark.parametrize("page", ["docs/cli.md", "docs/python.md"])
def test_generated_pages_are_current(page, monkeypatch, capsys):
    from cogapp import Cog

    monkeypatch.chdir(ROOT)
    code = Cog().main(["cog", "-I", "docs", "--check", page])
    assert code == 0, f"run make docs: {capsys.readouterr().out}"


def test_every_command_and_option_is_documented():
    page = DOCUMENTS["docs/cli.md"].read_text()
    for command, flags in _options().items():
        section = re.search(rf"^## graphprep {command}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
        assert section, f"docs/cli.md says nothing of {command}"
        assert not [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", section[1])], command


def test_every_decoder_and_its_options_are_documented():
    assert set(_BUILT_IN) <= set(known_decoders())
    for name in _BUILT_IN:
        page = DOCUMENTS[f"docs/formats/{name}.md"].read_text()
        for field in filter(lambda field: field.init, dataclasses.fields(find_decoder(name))):
            assert f"`{flag_of(field.name, DecoderOptions)}" in page, (
                f"docs/formats/{name}.md does not mention {flag_of(field.name, DecoderOptions)}"
            )
        assert f"docs/formats/{name}.md" in DOCUMENTS["README.md"].read_text()


def test_every_target_and_its_options_are_documented():
    for name in known_targets():
        link = re.search(rf"^\| [^|]*`{name}`.*\((export-[a-z]+\.md)\)", DOCUMENTS["docs/export.md"].read_text(), re.M)
        assert link, f"docs/export.md does not mention {name}"
        page = DOCUMENTS[f"docs/{link[1]}"].read_text()
        for field in dataclasses.fields(find_exporter(name)):
            assert re.search(rf"`(--option )?{field.name}\b|`--{field.name.replace('_', '-')}", page), (
                f"{link[1]}: {field.name}"
            )
        assert f"docs/{link[1]}" in DOCUMENTS["README.md"].read_text()


def test_every_public_name_is_documented():
    import graphprep

    text = "".join(path.read_text() for path in DOCUMENTS.values())
    assert not [name for name in dir(graphprep) if not re.search(rf"graphprep\.{name}\b|`{name}`", text)]


def test_every_exit_code_is_documented():
    from graphprep.cli import main
    from graphprep.model import errors

    codes = {getattr(errors, name) for name in dir(errors) if name.startswith("EXIT_")}
    codes |= {getattr(main, name) for name in dir(main) if name.startswith("EXIT_")}
    page = DOCUMENTS["docs/errors.md"].read_text()
    assert not [code for code in sorted(codes) if not re.search(rf"^\| (\d+, )?{code}\b", page, re.M)]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_flags_that_documents_name_exist(name):
    known = {flag for flags in _options().values() for flag in flags} | {
        "--version",
        "--help",
        "--install-completion",
        "--show-completion",
    }
    foreign = {"--exclude", "--use-graphbolt", "--array", "--cpus-per-task", "--mem", "--requeue", "--parsable", "--wrap"}
    foreign.add("--dependency")
    text = re.sub(r"<!--.*?-->", "", DOCUMENTS[name].read_text(), flags=re.S)
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z]", text))
    prefixes = {flag for flag in named if any(other.startswith(flag + "-") for other in known)}
    assert named - known - foreign - prefixes == set()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_command_line_is_run(name):
    """A line that begins with graphprep or make stands in a session, or says why it is not run."""
    for block in sessions.blocks(DOCUMENTS[name].read_text()):
        if block.mark is None and block.kind != "console":
            lines = [line for line in block.body.splitlines() if re.match(r"(\$ )?(graphprep|make) ", line)]
            assert not lines, f"{name}: {lines}"


def test_make_demo_prints_what_the_readme_shows(tmp_path):
    """Run the script of make demo with commands that do nothing: it tells what it would run."""
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "sample_data").mkdir()
    fake = tmp_path / ".venv" / "bin" / "graphprep"
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    script = tmp_path / "sample_data" / "demo.sh"
    script.write_text((ROOT / "sample_data" / "demo.sh").read_text())
    printed = subprocess.run(["sh", script], capture_output=True, text=True, check=True).stdout
    block = next(block for block in sessions.blocks(DOCUMENTS["README.md"].read_text()) if "$ make demo" in block.body)
    for command in sessions.commands(block.body)[1:]:
        assert f"$ {command.line}\n" in printed


# ---------------------------------------------------------------------------------------------- links


def _anchors(path):
    """Return the anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    heads = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_folders_and_targets_that_contributing_names_are_there():
    page = DOCUMENTS["CONTRIBUTING.md"].read_text()
    named = set(re.findall(r"(?<![\w(/])((?:graphprep|tests|docs)/[\w/.-]*\w)", page))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []
    rooms = {path.name for path in (ROOT / "graphprep").iterdir() if path.is_dir() and path.name[0] != "_"} - {"testing"}
    assert rooms - {name.split("/")[1] for name in named if name.startswith("graphprep/")} == set()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M))
    assert set(re.findall(r"(?:\$ |`)make ([\w-]+)", page)) <= targets


@pytest.mark.parametrize("name", [*DOCUMENTS, "CHANGELOG.md", "sample_data/README.md"])
def test_links_lead_somewhere(name):
    path = ROOT / name
    text = re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+://", target):
            continue
        file, _, anchor = target.partition("#")
        found = (path.parent / file).resolve() if file else path
        assert found.exists(), f"{name}: {target}"
        if anchor:
            assert anchor in _anchors(found), f"{name}: {target}"


# ---------------------------------------------------------------------------------------------- the tool itself


def test_sessions_are_taken_apart_and_compared():
    body = "$ one \\\n  more\nout\n$ two\n"
    assert sessions.commands(body) == [sessions.Command("one \\\n  more", "out\n"), sessions.Command("two", "")]
    assert sessions.same("a\n...\nz\n", "a\nb\nc\nz\n")
    assert not sessions.same("a\n...\nz\n", "a\nb\n")
    assert sessions.same(
        "  read 1 B, wrote 2 B in 1 s: 1 edges/s, peak memory 3 MB", "  read 1 B, wrote 9 B in 0.2 s: x, peak memory 7 GB"
    )
    assert not sessions.same(
        "  read 1 B, wrote 2 B in 1 s: 1 edges/s, peak memory 3 MB", "  read 7 B, wrote 2 B in 1 s: 1, peak memory 3 MB"
    )


def test_a_wrong_example_is_told_and_rewritten(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# T\n\n```console\n$ graphprep --version\ngraphprep 9.9\n$ echo $?\n0\n```\n\n```pycon\n>>> 1 + 1\n3\n```\n"
    )
    runner = sessions.Runner(page)
    (tmp_path / "work").mkdir()
    with sessions.workplace(tmp_path / "work"):
        text = runner.run()
    assert [(mismatch.line, mismatch.what) for mismatch in runner.mismatches] == [(4, "$ graphprep --version"), (11, "doctest")]
    assert "$ graphprep --version\ngraphprep 0." in text


def test_the_tests_that_hold_two_parsers_equal_are_there():
    """Every row of the table names its own, or those of the row above."""
    held = re.findall(r"`(tests/[\w/]+\.py)`:((?: `test_\w+`,?)+|\n`test_\w+`)", DOCUMENTS["docs/fast-parsers.md"].read_text())
    assert len(held) == 7
    for path, names in held:
        source = (ROOT / path).read_text()
        assert all(f"def {name}(" in source for name in re.findall(r"test_\w+", names)), path
