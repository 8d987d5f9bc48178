"""The command ``graphprep``: finds the command, runs it, and turns what goes wrong into a message and an exit code.

Commands import what they need when they run, so that ``--help`` loads neither NumPy nor Numba, pyarrow or fsspec.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import importlib
import io
import itertools
import os
import re
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from graphprep import __version__
from graphprep.cli.help.groups import Commands, GroupedCommand, near_option
from graphprep.cli.printed.colors import painted, turn_off
from graphprep.engine.budget import count_memory
from graphprep.model.options.words import flags_in_messages
from graphprep.storage.read import maps

if TYPE_CHECKING:
    from types import FrameType

    from graphprep.model.errors import GraphprepError

EXIT_MEMORY = 4
EXIT_INTERNAL = 70  # EX_SOFTWARE: our mistake, not the user's
EXIT_INTERRUPTED = 130
_EXIT_SIGNAL = 128
_EXIT_PIPE = _EXIT_SIGNAL + 13  # SIGPIPE, which Windows lacks
# Functions in modules of their names, here or in ``stores``, and how their docstrings begin: the list of all loads none.
_COMMANDS = {
    "convert": "Convert raw graph data into a store of CSC or CSR arrays.",
    "merge": "Make the store of what the workers of convert decoded.",
    "plan": "Say what a conversion will be like: sizes, memory, time.",
    "info": "Describe a store, raw files, samples or an export.",
    "validate": "Check a store against its schema and its invariants.",
    "stats": "Say what a graph is like: degrees, components, columns.",
    "ids": "Convert IDs between raw, typed, homo, part and local.",
    "partition": "Put a store's nodes, and all else, into other partitions.",
    "reorder": "Relabel each partition's nodes: by degree, or in another order.",
    "transform": "Make a store of another: turn, merge, add, choose.",
    "split": "Say which rows of a store are train, valid and test.",
    "sample": "Draw neighbourhoods of seeds, mini-batch after mini-batch.",
    "export": "Write a store as the files that a trainer loads.",
    "generate": "Generate a test graph: R-MAT, a grid, or users and items.",
    "clean": "Remove what runs that failed or were killed left.",
    "doctor": "Tell what graphprep finds here: versions, kernels, devices.",
    "kernels": "List, compile or remove the machine code of kernels.",
}
_OVER_STORES = frozenset({"info", "validate", "stats", "ids", "partition", "reorder", "transform", "split", "sample"})
_ANSWERED_BY_PAGE = ("--help", "-h", "--version")
_EXPECTED = {"Input should be a valid integer": "an integer", "Input should be a valid number": "a number"}
_NO_CHOICE = re.compile(r"'([^']*)' is not one of ('.*')")  # typer's words
_COMPLETE = "_GRAPHPREP_COMPLETE"  # variable with which the script of --install-completion asks for words
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))  # as far as there
_AGAIN_S = 0.01
# Usage errors are in click or in typer's own copy of it, depending on typer's version; both derive BadParameter from it.
_UsageError = typer.BadParameter.__mro__[1]


class Signalled(BaseException):
    """A signal asks the process to end. Not an Exception, so that only clean-up code sees it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = _EXIT_SIGNAL + number


def main() -> NoReturn:
    """Run the command line of the process and exit."""
    _open_standard_streams()
    _tell_of_lost_files()
    code = run(sys.argv[1:])
    _ignore_signals(_SIGNALS)  # all is said and done, and one would kill the process on its way out
    gc.freeze()  # else the interpreter looks through all modules once more on its way out: a fifth of a small run
    sys.exit(code)


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit code. Results go to stdout, everything else to stderr."""
    report = _ErrorReport.for_args(args)
    turn_off(args)
    _print_any_text()
    try:
        # A command answers for all that its process holds, and its messages name flags.
        with _raise_on_signals(), count_memory(0), flags_in_messages():
            return _invoke(list(args) or ["--help"])
    except KeyboardInterrupt:  # raised by hand, or where signals are not ours to catch
        report.say("interrupted", fix=_resume_fix(args))
        return EXIT_INTERRUPTED
    except Signalled as ended:
        report.say("interrupted" if ended.exit_code == EXIT_INTERRUPTED else "terminated", fix=_resume_fix(args))
        return ended.exit_code
    except BrokenPipeError:
        _discard_stdout()
        return _EXIT_PIPE
    except Exception as error:
        code = report.explain(error)
        _discard_unwritable()
        return code


def _resume_fix(args: Sequence[str]) -> str:
    """Say which command goes on where an interrupted one stopped; nothing for those that cannot."""
    if not args or args[0] not in ("convert", "merge") or {"-", "--worker-index"} & set(args):
        return ""
    command = f"graphprep {shlex.join(args)}"
    if "--resume" in args:
        return f"run the same command again, to go on from here: {command}"
    return f"with --resume from the start, what is done is kept, and the next run goes on: {command} --resume"


def build_app(args: Sequence[str] = ()) -> typer.Typer:
    """Return the application with the command that ``args`` begin with, or with all where they begin with none.

    Where ``args`` ask for what no command has a part in, the commands are there by name only.
    """
    app = typer.Typer(
        name="graphprep",
        cls=Commands,
        help="Turn raw graph dumps into the binary arrays that graph-learning systems load.\n\n"
        "Example: graphprep convert sample_data/karate/karate.csv karate-store",
        epilog="Exit codes: 0 done; 1 the data is wrong; 2 the command line is wrong; 3 input or output failed; 4 the memory "
        "limit cannot be met; 70 a mistake of graphprep (GRAPHPREP_DEBUG=1 shows the traceback); 130, 143 interrupted.",
        add_completion=not args or args[0] not in _COMMANDS,  # of no use to a command, and slow to load
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_version_option)
    if args and args[0] in _ANSWERED_BY_PAGE:
        for name, title in _COMMANDS.items():
            app.command(name, help=title)(_only_named)
        return app
    for name in args[:1] if args and args[0] in _COMMANDS else _COMMANDS:
        module = importlib.import_module(f"graphprep.cli.{'stores.' if name in _OVER_STORES else ''}{name}")
        app.command(name, cls=GroupedCommand)(getattr(module, name))
    return app


def _only_named() -> None:
    """Stand for a command that is listed, and not run."""


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"graphprep {__version__}")
        raise typer.Exit


def _version_option(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True, show_default=False)
    ] = False,
) -> None:
    """Take the options of the command itself."""


def _invoke(args: list[str]) -> int:
    """Parse and run; click's own error handling is left out, since ours fits all commands alike."""
    if os.environ.get(_COMPLETE):  # the shell asks
        args = []
    command = typer.main.get_command(build_app(args))
    try:
        if os.environ.get(_COMPLETE):
            command.main(args, "graphprep")
        with command.make_context("graphprep", args) as context:
            command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except SystemExit as done:  # of what installs or answers completion
        return int(done.code or 0)
    sys.stdout.flush()
    return 0


class _ErrorReport:
    """Writes errors to stderr, as text or as JSON lines."""

    def __init__(self, *, as_json: bool, traceback: bool) -> None:
        self._as_json = as_json
        self._traceback = traceback

    @classmethod
    def for_args(cls, args: Sequence[str]) -> _ErrorReport:
        """Look for the flags that matter, also in a command line that cannot be parsed."""
        as_json = "--log-format=json" in args or ("--log-format", "json") in itertools.pairwise(args)
        loud = any(arg.startswith("-vv") for arg in args) or list(args).count("-v") + list(args).count("--verbose") > 1
        return cls(as_json=as_json, traceback=loud or os.environ.get("GRAPHPREP_DEBUG", "0") not in ("", "0"))

    def say(self, message: str, *, place: str = "", fix: str = "", items: Sequence[str] = ()) -> None:
        """Write one error."""
        from graphprep.model.errors import error_text
        from graphprep.model.shown.texts import json_text, shown, without_secrets

        if self._as_json:
            from graphprep.cli.printed.words import iso_time

            values = {"message": without_secrets(message), "place": shown(place), "fix": without_secrets(fix)}
            told: dict[str, Any] = {key: value for key, value in values.items() if value}
            told |= {"items": list(map(without_secrets, items))} if items else {}
            text = json_text({"time": iso_time(), "event": "error", **told}, indent=None)
        else:
            text = painted(f"error: {error_text(message, place, fix, items)}", sys.stderr)
        with contextlib.suppress(OSError):
            typer.echo(text, err=True, color=True)

    def explain(self, error: Exception) -> int:
        """Write what went wrong and return the exit code."""
        if isinstance(error, _UsageError):
            return self._explain_usage(error)
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            self.say("out of memory", fix="lower --memory-limit or --threads, or use a machine with more memory")
            return EXIT_MEMORY
        from graphprep.model.errors import GraphprepError

        if isinstance(error, OSError):  # one that storage did not meet, such as a full disk behind stdout
            from graphprep.storage.faults import storage_error

            error = storage_error(error, str(error.filename or ""))
        if isinstance(error, GraphprepError):
            return self._explain_known(error)
        return self._explain_internal(error)

    def _explain_known(self, error: GraphprepError) -> int:
        self.say(error.message, place=error.place, fix=error.fix, items=error.items)
        return error.exit_code

    def _explain_usage(self, error: Exception) -> int:
        message = str(error.format_message()).rstrip(".")  # type: ignore[attr-defined]
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "graphprep"
        fix = f"see {path} --help"
        option = getattr(error, "option_name", "")
        if option[1:2].isdigit():
            fix = "write -- in front of negative numbers, behind all options"
        elif context and context.info_name == "transform" and not option.startswith("--"):
            fix = "write -- in front of an expression that begins with -, behind all options"
        elif hasattr(error, "possibilities"):
            message, fix = f"no such option: {option}", near_option(option, context, fix)
        elif choice := _NO_CHOICE.search(message):
            from graphprep.model.errors import did_you_mean

            fix = did_you_mean(choice[1], choice[2].strip("'").split("', '"), fix)
        self.say(_usage_words(error, message), fix=fix)
        return int(error.exit_code)  # type: ignore[attr-defined]

    def _explain_internal(self, error: Exception) -> int:
        self.say(
            f"internal error: {type(error).__name__}: {error} (graphprep {__version__})",
            fix="this is a mistake of graphprep: please report it with the command line and what GRAPHPREP_DEBUG=1 prints",
        )
        if self._traceback:
            import traceback

            from graphprep.model.shown.texts import lines_text, without_secrets

            text = without_secrets("".join(traceback.format_exception(error)))
            typer.echo(lines_text(text.splitlines()), err=True)
        return EXIT_INTERNAL


def _usage_words(error: Exception, message: str) -> str:
    """Word what click and pydantic say of a command line: the flag, what it takes, and what was found."""
    message = (message[:1].lower() + message[1:]).replace("\n\t", " ")  # lists of choices come on lines of their own
    command = getattr(getattr(error, "ctx", None), "info_name", "")
    if message == "missing argument 'OUT'" and command == "convert":
        return "INPUT and OUT are both needed: what to convert, and the folder or URL of the store"
    if not message.startswith("invalid value for "):
        return message
    flag, _, reason = message.partition(": ")
    expected = _EXPECTED.get(reason.partition(",")[0])
    if expected is None:
        return f"{flag}: {reason.removeprefix('Value error, ')}"
    found = [str(one["input"]) for one in getattr(error.__cause__, "errors", list)()]
    return f"{flag}: expected {expected}" + (f", found {found[0]!r}" if found else "")


@contextlib.contextmanager
def _raise_on_signals() -> Iterator[None]:
    """Turn the first signal that asks for the end into an exception in the main thread, so that temporary files are removed.

    Where it is raised in what cannot raise (the callback of a weak reference, which imports have), it is raised again soon.
    """

    def end(number: int, frame: FrameType | None) -> None:
        _ignore_signals(before)  # a second Ctrl-C would break the clean-up
        raise Signalled(number)

    def raise_again(lost: sys.UnraisableHookArgs) -> None:
        if isinstance(lost.exc_value, Signalled):
            number = lost.exc_value.exit_code - _EXIT_SIGNAL
            before[signal.SIGALRM] = signal.signal(signal.SIGALRM, lambda _, frame: end(number, frame))
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            hook(lost)

    before: dict[signal.Signals, Any] = {}
    hook = sys.unraisablehook
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays in force
                before[number] = signal.signal(number, end)
        sys.unraisablehook = raise_again
    try:
        yield
    finally:
        if before:
            sys.unraisablehook = hook
        for caught, handler in before.items():
            signal.signal(caught, handler)


def _ignore_signals(numbers: Iterable[signal.Signals]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _tell_of_lost_files() -> None:
    """End with a message, and without temporary files, where a mapped file is cut short: the system would end it otherwise."""

    def end(path: str) -> None:
        from graphprep.storage.private import let_go

        if sys.stderr.isatty():
            sys.stderr.write("\x1b[?25h\r\x1b[K")  # the cursor, which the bar has hidden
        _ErrorReport.for_args(sys.argv[1:]).say(
            "the file became shorter while it was read" if path else "a mapped file could not be read",
            place=path,
            fix="run again when nothing writes to it" if path else "check the disk, then run again",
        )
        let_go()

    maps.on_loss = end


def _open_standard_streams() -> None:
    """Put the null device where the caller closed stdin, stdout or stderr.

    Else the first files that are opened would take their numbers, and get what libraries print.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w")


def _print_any_text() -> None:
    """Print what stdout's encoding cannot write (names of files that are no UTF-8, locale C) as escapes, as stderr does."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_unwritable() -> None:
    """Let go of what stdout still holds where it cannot be written: Python would try again on exit, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()


def _discard_stdout() -> None:
    """Point stdout at nothing: its reader is gone, and Python would complain about that on exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
