"""Progress and messages."""

import io
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from graphprep.cli import progress
from graphprep.cli.options import ReportFlags
from graphprep.cli.printed.words import count, duration, quantity, size, table
from graphprep.model.shown import compilation

KARATE = Path(__file__).resolve().parents[2] / "sample_data" / "karate" / "karate.csv"


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(progress.time, "monotonic", found)
    return found


def work(reporter, clock):
    """A stage of five seconds, then one that is over at once, then a message."""
    reporter.stage("decode", total_bytes=10_000_000)
    for _ in range(5):
        clock.now += 1
        reporter.advance(records=100_000, num_bytes=2_000_000)
    reporter.stage("index")
    reporter.advance(records=3)
    reporter.message("all is well")
    reporter.close()


def test_plain_lines(clock):
    out = io.StringIO()
    work(progress.PlainReporter(out), clock)
    assert out.getvalue().splitlines() == [
        "decode: 200k records, 4.0 MB of 10.0 MB (40%), 100k records/s, 2.0 MB/s, 3.00 s left",
        "decode: 400k records, 8.0 MB of 10.0 MB (80%), 100k records/s, 2.0 MB/s, 1.00 s left",
        "decode: 500k records, 10.0 MB, 100k records/s, 2.0 MB/s, took 5.00 s",
        "all is well",
    ]


def test_verbose_tells_short_stages_too(clock):
    out = io.StringIO()
    work(progress.PlainReporter(out, verbose=True), clock)
    assert out.getvalue().splitlines()[-1] == "index: 3 records, 3.0k records/s, took 0.00 s"


def test_json_lines(clock):
    out = io.StringIO()
    work(progress.JsonReporter(out, verbose=True), clock)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    times = [datetime.fromisoformat(line.pop("time")) for line in lines]
    assert times == sorted(times) and all(one.tzinfo for one in times)
    assert [line["event"] for line in lines] == ["progress", "progress", "stage", "message", "stage"]
    assert lines[0] == {
        "event": "progress",
        "stage": "decode",
        "records": 200_000,
        "bytes": 4_000_000,
        "total_bytes": 10_000_000,
        "elapsed_s": 2.0,
    }
    assert lines[3] == {"event": "message", "text": "all is well"}


def test_messages_without_progress(clock):
    out = io.StringIO()
    work(progress.MessageReporter(out), clock)
    assert out.getvalue() == "all is well\n"


def test_lines_of_a_log_have_a_time_and_those_of_a_terminal_none(tmp_path):
    command = [sys.executable, "-m", "graphprep", "convert", str(KARATE), str(tmp_path / "out"), "--progress", "plain"]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stderr
    (line,) = (line for line in piped.splitlines() if "format: edges" in line)
    stamp, _, text = line.partition(" format: ")
    assert abs((datetime.now() - datetime.fromisoformat(stamp)).total_seconds()) < 120
    assert text == "edges (sniffed; --format edges repeats this choice)"
    out = Terminal()
    progress.MessageReporter(out).message("all is well")
    assert out.getvalue() == "all is well\n"
    failed = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stderr
    assert failed.startswith(f"error: {tmp_path}/out: the output exists\n")


def test_nothing_at_all(clock, capsys):
    work(progress.QuietReporter(), clock)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("flags", "stream", "kind"),
    [
        (ReportFlags(), io.StringIO(), progress.PlainReporter),
        (ReportFlags(), Terminal(), progress.BarReporter),
        (ReportFlags(progress="plain"), Terminal(), progress.PlainReporter),
        (ReportFlags(progress="none"), Terminal(), progress.MessageReporter),
        (ReportFlags(quiet=True), Terminal(), progress.QuietReporter),
        (ReportFlags(log_format="json"), Terminal(), progress.JsonReporter),
    ],
)
def test_which_reporter(flags, stream, kind):
    reporter = progress.make_reporter(flags, stream)
    assert type(reporter) is kind
    reporter.close()


def test_the_bar(monkeypatch, capsys, clock):
    """What a terminal gets: a bar with rates, messages above it, and nothing left in the end but them."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    reporter = progress.BarReporter(verbose=True)
    work(reporter, clock)
    err = capsys.readouterr().err
    assert "decode: 500k records, 10.0 MB, 100k records/s, 2.0 MB/s, took 5.00 s" in err
    assert "all is well" in err


def test_the_bar_tells_the_time_left_where_a_total_is_known_and_kernels_that_are_compiled(clock, monkeypatch):
    monkeypatch.setattr(compilation, "done", compilation.Compilations())
    reporter = progress.BarReporter()
    bar = reporter._progress

    def told():
        (task,) = bar.tasks
        return str(bar.columns[-2].render(task))

    reporter.stage("index")
    clock.now += 2
    reporter.advance(records=6)
    assert told() == "3 records/s"
    reporter.stage("decode", total_bytes=100)
    clock.now += 2
    reporter.advance(num_bytes=10)
    assert told() == "5 B/s, 18 s left"
    with compilation.compiling():
        clock.now += 60
        assert told() == "compiling kernels 1 of 1, 60 s"
    clock.now += 2
    reporter.advance(num_bytes=10)
    assert told() == "5 B/s, 16 s left"  # the minute does not count
    reporter.close()


def test_kernels_that_are_compiled_for_their_own_sake(clock, monkeypatch):
    monkeypatch.setattr(compilation, "done", compilation.Compilations())
    out = io.StringIO()
    reporter = progress.PlainReporter(out, interval_s=5)
    reporter.stage("compile")
    with compilation.compiling_all() as tell:
        for num, seconds in ((1, 4), (6, 8), (21, 2)):
            clock.now += seconds
            tell(num, 21)
            reporter.advance()
    reporter.close()
    assert out.getvalue() == "compile; compiling kernels 7 of 21, 12 s\ncompile: took 14 s\n"


def test_a_stage_of_a_second_is_not_worth_a_line(clock):
    out = io.StringIO()
    reporter = progress.PlainReporter(out)
    reporter.stage("decode")
    clock.now += 1.9
    reporter.close()
    assert out.getvalue() == ""


def test_a_reader_of_stderr_that_went_away(clock):
    class Gone(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    work(progress.PlainReporter(Gone()), clock)


def test_words():
    assert [size(number) for number in (0, 999, 1000, 12_345, 999_950, 1e6, 123e9, 5e15)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "12.3 KB",
        "1.0 MB",
        "1.0 MB",
        "123 GB",
        "5.0 PB",
    ]
    assert [quantity(number) for number in (0, 812, 1000, 3_400_000, 250e6)] == ["0", "812", "1.0k", "3.4M", "250M"]
    assert [count(number, "node") for number in (0, 1, 12_345)] == ["0 nodes", "1 node", "12,345 nodes"]
    assert count(2, "entry", "entries") == "2 entries"
    assert [duration(seconds) for seconds in (0, 0.123, 9.99, 12, 59.4, 59.6, 187, 7387)] == [
        "0.00 s",
        "0.12 s",
        "9.99 s",
        "12 s",
        "59 s",
        "1:00",
        "3:07",
        "2:03:07",
    ]
    assert table([("a", "1"), ("bcd", "22")], right=(1,)) == ["  a     1", "  bcd  22"]
    assert table([]) == []
