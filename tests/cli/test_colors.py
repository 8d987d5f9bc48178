"""Colors: on a terminal, and nowhere else."""

import io
import sys

import pytest

from graphprep.cli.main import run
from graphprep.cli.printed.colors import painted, wants_color


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("stream", "variables", "wanted"),
    [
        (Terminal(), {}, True),
        (io.StringIO(), {}, False),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
        (io.StringIO(), {"FORCE_COLOR": "0"}, False),
        (Terminal(), {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_who_gets_colors(stream, variables, wanted, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert wants_color(stream) == wanted


def test_what_is_marked():
    text = "error: a.csv:3:1: wrong\n  fix: mend it"
    assert painted(text, Terminal()) == "\x1b[1;31merror:\x1b[0m a.csv:3:1: wrong\n\x1b[32m  fix:\x1b[0m mend it"
    text = "shop: 3 nodes\n  nodes  a  3\n  note: so it is\n  note: ... and 2 more; -v shows all"
    assert painted(text, Terminal(), has_head=True) == (
        "\x1b[1mshop\x1b[0m: 3 nodes\n  nodes  a  3\n\x1b[33m  note:\x1b[0m so it is\n"
        "\x1b[33m  note:\x1b[0m ... \x1b[2mand 2 more; -v shows all\x1b[0m"
    )
    assert painted("Usage: graphprep\n\n  It is.\n\nOptions:\n  --a", Terminal(), is_help=True) == (
        "\x1b[1mUsage:\x1b[0m graphprep\n\n  It is.\n\n\x1b[1mOptions:\x1b[0m\n  --a"
    )


@pytest.mark.parametrize("flags", [[], ["--no-color"]])
def test_commands_on_a_terminal(flags, monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, Terminal())
    assert run(["info", "sample_data/nothing.csv", *flags]) == 3
    assert ("\x1b[1;31merror:\x1b[0m " in sys.stderr.getvalue()) is not bool(flags)
    assert run(["info", "--help"]) == 0
    assert "\x1b[1mUsage:\x1b[0m graphprep info" in sys.stdout.getvalue()


def test_no_colors_in_a_pipe(capfd):
    assert run(["info", "sample_data/nothing.csv"]) == 3
    assert run(["--help"]) == 0
    assert "\x1b" not in "".join(capfd.readouterr())
