"""Runs the examples of README.md and docs/: shell sessions, Python code, and the files that they speak of.

``python docs/sessions.py [--fresh] [PAGE...]`` writes what commands print now into the documents, with ``--fresh`` also where
only times differ; tests/docs compares instead. A fenced block of

- ``console`` is a session: ``$ command`` lines, each followed by its output. A line ``...`` stands for any lines. Numbers that
  differ from run to run (times, rates, memory) are not compared.
- ``pycon`` is a doctest, ``python`` a program. The blocks of one document share their names.
- anything else is for the reader.

A comment in front of a block changes that: ``<!-- file: NAME -->`` writes it to a file, ``<!-- not run: why -->`` leaves it
alone, ``<!-- samples -->`` runs it beside the real graphs of the folder that GRAPHPREP_SAMPLES names, if there is one,
``<!-- needs: MODULE... -->`` runs it where these modules are installed, and ``<!-- in: dgl -->`` a session with the Python of
DGL's own environment, where ``make clients`` made it. All blocks of a document run in order, in one new folder that holds
``sample_data``. graphprep runs inside this process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent
_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>file|not run|samples|needs|in)(?:: (?P<what>[^\n]*?))? -->\n+)?"
    r"^```(?P<kind>[a-z]*)[^\n]*\n(?P<body>.*?)^```$",
    re.M | re.S,
)
_ANYTHING = "..."
_TIMES = "elapsed_s|peak_memory_bytes|output_bytes|plan|decode|index|shuffle|build|publish"
_VARIES = (
    (re.compile(r"wrote .*? in .*, peak memory .*"), "wrote SIZE in TIME"),
    (re.compile(r"(partitions?), .*, in [\d.:]+( s)?$", re.M), r"\1 in TIME"),
    (re.compile(r"raise --memory-limit to \d+MiB"), "raise --memory-limit to SIZE"),
    (re.compile(r"in [\d.]+s$", re.M), "in TIME"),
    (re.compile(r"^(accuracy .*): (0\.9\d|1\.00)$", re.M), r"\1: 0.9 or more"),
    (re.compile(r"compared in [\d.:]+( s)?$", re.M), "compared in TIME"),
    (re.compile(r'"time": "[^"]*"'), '"time": "T"'),
    (re.compile(rf'"({_TIMES})": [\d.e+-]+'), r'"\1": N'),
)


def documents() -> list[Path]:
    """List README.md, CONTRIBUTING.md and all pages of docs/."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and where this stands in the document."""

    kind: str
    body: str
    start: int
    mark: str | None = None
    what: str = ""


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a document."""
    for match in _FENCE.finditer(text):
        yield Block(match["kind"], match["body"], match.start("body"), match["mark"], match["what"] or "")


@dataclass(frozen=True)
class Command:
    """A command of a session, and the output that the document shows."""

    line: str
    shown: str


def commands(body: str) -> list[Command]:
    r"""Take a session apart. A command ends with its line, or goes on after a final backslash."""
    found: list[Command] = []
    lines = body.splitlines(keepends=True)
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            raise ValueError(f"a session begins with '$ ', found {line!r}")
        while line.endswith("\\\n"):
            line += lines.pop(0)
        shown = ""
        while lines and not lines[0].startswith("$ "):
            shown += lines.pop(0)
        found.append(Command(line[2:].rstrip("\n"), shown))
    return found


def same(shown: str, real: str) -> bool:
    """Compare output as shown with real output; ``...`` lines and varying numbers are free."""
    wanted, found = (_settle(text).rstrip() for text in (shown, real))
    pieces = [re.escape(piece) for piece in re.split(rf"^{re.escape(_ANYTHING)}$", wanted, flags=re.M)]
    return re.fullmatch("(?:.*)".join(pieces), found, re.S) is not None


def _settle(text: str) -> str:
    text = re.sub(r"\n {4,}(?=\S)", " ", text)  # lines of summaries, which break where numbers put the 80th column
    for pattern, fixed in _VARIES:
        text = pattern.sub(fixed, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@dataclass
class Shell:
    """Runs command lines; ``exit_code`` is that of the last one. It knows pipes, ``<``, ``>`` and ``$?``."""

    exit_code: int = 0
    python: Path = Path(sys.executable)  # what a session calls python

    def run(self, line: str) -> str:
        """Run a command line and return what it prints, on stdout and stderr."""
        line = line.replace("\\\n", " ").replace("$?", str(self.exit_code))
        output = io.BytesIO()
        piped = b""
        pieces = _split_pipe(line) if "graphprep" in line else [line]
        for number, piece in enumerate(pieces):
            stdout = output if number == len(pieces) - 1 else io.BytesIO()
            self._run_one(piece, piped, stdout, output)
            piped = stdout.getvalue()
        return output.getvalue().decode()

    def _run_one(self, piece: str, stdin: bytes, stdout: io.BytesIO, stderr: io.BytesIO) -> None:
        words = shlex.split(piece)
        if words[0] != "graphprep":
            path = f"{self.python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
            env = {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}
            if self.python == _dgl_python():
                env["PYTHONPATH"] = str(ROOT / "tests" / "clients" / "without_graphbolt")
            done = subprocess.run(["sh", "-c", piece], input=stdin, capture_output=True, check=False, env=env)
            stdout.write(done.stdout)
            stderr.write(done.stderr)
            self.exit_code = done.returncode
            return
        if "<" in words:
            at = words.index("<")
            stdin = Path(words[at + 1]).read_bytes()
            del words[at : at + 2]
        if ">" in words:
            at = words.index(">")
            own, target = io.BytesIO(), Path(words[at + 1])
            self.exit_code = run_graphprep(words[1:at] + words[at + 2 :], stdin, own, stderr)
            target.write_bytes(own.getvalue())
        else:
            self.exit_code = run_graphprep(words[1:], stdin, stdout, stderr)


def _split_pipe(line: str) -> list[str]:
    pieces, quote = [""], ""
    for char in line:
        if char == "|" and not quote:
            pieces.append("")
            continue
        if char in "'\"" and quote in ("", char):
            quote = "" if quote else char
        pieces[-1] += char
    return pieces


def run_graphprep(args: list[str], stdin: bytes, stdout: io.BytesIO, stderr: io.BytesIO) -> int:
    """Run the command line inside this process, as on a terminal of 80 columns that nobody looks at."""
    from graphprep.cli import progress
    from graphprep.cli.main import run
    from graphprep.model.shown import compilation

    streams = {}
    for name, raw in (("stdout", stdout), ("stderr", stderr)):
        streams[name] = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    streams["stdin"] = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with contextlib.ExitStack() as stack:
        # How long a stage takes, and so whether it is worth a line, differs from machine to machine.
        for method in ("advance", "_end"):
            stack.enter_context(mock.patch.object(progress.PlainReporter, method, _say_nothing))
        stack.enter_context(mock.patch.object(compilation, "announcing", lambda _: contextlib.nullcontext()))
        stack.enter_context(mock.patch.object(progress, "log_stamp", str))
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "80"}))
        for name, stream in streams.items():
            stack.enter_context(mock.patch.object(sys, name, stream))
        code = run(args)
    for name in ("stdout", "stderr"):
        streams[name].detach()
    return code


def _say_nothing(*given: object, **named: object) -> None:
    pass


@dataclass
class Mismatch:
    """An example that does not do what the document says."""

    line: int
    what: str
    shown: str
    real: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.what}\n--- the document says\n{self.shown}\n--- what happens\n{self.real}"


@dataclass
class Runner:
    """Runs the examples of one document, and rewrites its sessions."""

    path: Path
    fresh: bool = False
    shell: Shell = field(default_factory=Shell)
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})
    mismatches: list[Mismatch] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)  # why blocks were not run that would be run elsewhere

    def run(self) -> str:
        """Run everything in the current folder and return the document as it ought to be."""
        text = self.path.read_text()
        out, end = "", 0
        for block in blocks(text):
            out += text[end : block.start] + self._run_block(block, text.count("\n", 0, block.start) + 1)
            end = block.start + len(block.body)
        return out + text[end:]

    def _run_block(self, block: Block, line: int) -> str:
        if block.mark == "file":
            target = Path(block.what)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.body.replace("→", "\t") if target.suffix == ".tsv" else block.body)
        elif block.kind not in ("console", "python", "pycon") or block.mark == "not run":
            pass
        elif lack := _find_lack(block):
            self.left_out.append(f"line {line}: {lack}")
        elif block.kind == "console":
            with mock.patch.object(self.shell, "python", _dgl_python() if block.mark == "in" else self.shell.python):
                return self._run_session(block, line)
        elif block.kind == "python":
            with self._modules_here():
                exec(compile("\n" * (line - 1) + block.body, str(self.path), "exec"), self.names)
        else:
            with self._modules_here():
                self._run_doctest(block, line)
        return block.body

    @contextlib.contextmanager
    def _modules_here(self) -> Iterator[None]:
        """Let the document import the modules that it wrote."""
        with mock.patch.object(sys, "path", [str(Path.cwd()), *sys.path]):
            yield

    def _run_session(self, block: Block, line: int) -> str:
        body = ""
        for command in commands(block.body):
            shown = command.shown
            # What make does takes minutes; the commands that make demo prints stand below it, and are run.
            real = shown if command.line.startswith("make ") else self.shell.run(command.line)
            if "internal error" in real:
                raise RuntimeError(f"{self.path}: $ {command.line}\n{real}")
            if self.fresh and same(shown, real) and f"{_ANYTHING}\n" not in shown:
                shown = real
            if not same(shown, real):
                at = line + body.count("\n")
                self.mismatches.append(Mismatch(at, f"$ {command.line}", shown, real))
                shown = real if not real or real.endswith("\n") else real + "\n"
            body += f"$ {command.line}\n{shown}"
        return body

    def _run_doctest(self, block: Block, line: int) -> None:
        test = doctest.DocTestParser().get_doctest(block.body, self.names, self.path.name, str(self.path), line)
        said = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
        runner.run(test, out=said.write, clear_globs=False)
        self.names.update(test.globs)
        if said.getvalue():
            self.mismatches.append(Mismatch(line, "doctest", "", said.getvalue()))


def _find_lack(block: Block) -> str:
    """Return what a session or code needs and is not there, and how it would be; else an empty text."""
    if block.mark == "samples" and not _link_samples():
        return "GRAPHPREP_SAMPLES names no folder of real graphs"
    if block.mark == "needs":
        missing = [name for name in block.what.split() if importlib.util.find_spec(name) is None]
        return f"{', '.join(missing)} not installed: make test-all does" if missing else ""
    if block.mark == "in" and not _dgl_python().exists():
        return "no environment of DGL: make clients installs it, or GRAPHPREP_DGL_PYTHON names a Python that has it"
    return ""


def _dgl_python() -> Path:
    return Path(os.environ.get("GRAPHPREP_DGL_PYTHON") or ROOT / ".venv" / "clients" / "dgl" / "bin" / "python")


def _link_samples() -> bool:
    """Put the real graphs into the current folder; return whether there are any."""
    samples = os.environ.get("GRAPHPREP_SAMPLES", "")
    if not samples or not Path(samples).is_dir():
        return False
    for folder in Path(samples).iterdir():
        if folder.is_dir() and not Path(folder.name).exists():
            Path(folder.name).symlink_to(folder)
    return True


@contextlib.contextmanager
def workplace(folder: Path) -> Iterator[None]:
    """Work in a folder that holds the sample data."""
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    with contextlib.chdir(folder):
        yield


def help_text(*command: str, page: str = "--help") -> str:
    """Return what ``graphprep COMMAND --help`` prints at 80 columns."""
    output = io.BytesIO()
    run_graphprep([*command, page], b"", output, output)
    return output.getvalue().decode()


def fields_table(name: str) -> str:
    """Return the fields of one of graphprep's dataclasses as a table: name, type, default, and what options mean."""
    import graphprep
    from graphprep.model.option import declared

    options = declared(getattr(graphprep, name))
    rows = (
        ["| field | type | default | meaning |", "|---|---|---|---|"]
        if options
        else ["| field | type | default |", "|---|---|---|"]
    )
    for item in dataclasses.fields(getattr(graphprep, name)):
        if item.default_factory is not dataclasses.MISSING:
            default = f"`{item.default_factory()!r}`"
        else:
            default = "" if item.default is dataclasses.MISSING else f"`{item.default!r}`"
        kind = re.sub(r"^Annotated\[(.*?), (?:_of_\w+|[a-z.]*replace|OVERWRITE)\b.*", r"\1", str(item.type), flags=re.DOTALL)
        option = options.get(item.name)
        meaning = [] if not options else ["" if option is None else option.option.help.partition("  [default")[0]]
        cells = [f"`{item.name}`", f"`{kind}`", default, *meaning]
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return "\n".join(rows)


def main() -> int:
    """Rewrite the sessions of all documents; say what Python example no longer holds."""
    failed = 0
    fresh = "--fresh" in sys.argv
    given = [Path(word) for word in sys.argv[1:] if word != "--fresh"]
    for path in given or documents():
        runner = Runner(path.resolve(), fresh)
        with tempfile.TemporaryDirectory() as folder, workplace(Path(folder)):
            text = runner.run()
        path.write_text(text)
        for mismatch in runner.mismatches:
            failed += mismatch.what == "doctest"
            sys.stdout.write(f"{path}: {mismatch}\n" if mismatch.what == "doctest" else f"{path}: rewrote {mismatch.what}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
