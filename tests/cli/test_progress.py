"""Progress and messages."""

import io
import json
import subprocess
import sys
import time
from datetime import datetime
from pathlib import Path

import pytest

from graphprep.cli import main, progress
from graphprep.cli.options import ReportFlags
from graphprep.cli.printed.words import count, duration, quantity, size, table
from graphprep.model.shown import compilation
from graphprep.model.shown.stage_progress import StageProgress

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
        "total_records": None,
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


class Screen(Terminal):
    """A terminal of some columns."""

    def lines(self):
        """Return what stays, and what stood in the last line meanwhile."""
        stays, drawn = [], []
        for piece in self.getvalue().split("\r\x1b[K"):
            *whole, last = piece.split("\n")
            stays += whole
            drawn += [last] if last else []
        return stays, drawn


def test_the_bar(clock):
    """What a terminal gets: messages and, at length, stages that are over; the last line is empty in the end."""
    screen = Screen()
    reporter = progress.BarReporter(screen, verbose=True, interval_s=0.01)
    reporter.stage("decode", total_bytes=10_000_000)
    reporter.advance(records=100_000, num_bytes=2_000_000)
    while "decode" not in screen.getvalue():
        time.sleep(0.01)
    work(reporter, clock)
    stays, drawn = screen.lines()
    assert "decode: 500k records, 10.0 MB, 100k records/s, 2.0 MB/s, took 5.00 s" in stays
    assert "all is well" in stays
    assert screen.getvalue().endswith("\r\x1b[K")
    assert any(line.startswith("decode   20%  ") and line.endswith("#####-------------------") for line in drawn)


def test_the_line_of_the_bar_fits_and_says_what_matters_most(clock, monkeypatch):
    monkeypatch.setattr(compilation, "done", compilation.Compilations())
    stage = StageProgress("decode", total_bytes=10_000_000)
    clock.now += 2
    stage.records, stage.num_bytes = 100_000, 2_000_000
    assert progress.bar_line(stage, 79) == ("decode   20%  8.00 s left  1.0 MB/s  50.0k records/s  ━━━━━───────────────────")
    assert progress.bar_line(stage, 50) == "decode   20%  8.00 s left  1.0 MB/s  ━━━──────────"
    assert progress.bar_line(stage, 24) == "decode   20%  1.0 MB/s"
    assert progress.bar_line(stage, 4) == "deco"
    for width in range(90):
        assert len(progress.bar_line(stage, width, "#-")) <= width
    with compilation.compiling():
        clock.now += 60
        assert progress.bar_line(stage, 60).startswith("decode   20%  compiling kernels 1 of 1, 60 s  ━━")
    clock.now += 2
    assert "16 s left" in progress.bar_line(stage, 79)  # the minute does not count


def test_a_stage_tells_a_share_of_records_or_the_time_where_the_total_is_unknown(clock):
    stage = StageProgress("edges", total_records=400)
    clock.now += 2
    stage.records = 100
    assert progress.bar_line(stage, 60) == "edges   25%  6.00 s left  50 records/s  ━━━━━───────────────"
    assert stage.describe(done=False) == "edges: 100 of 400 (25%) records, 50 records/s, 6.00 s left"
    stage.records = 500  # a total was an estimate
    assert progress.bar_line(stage, 12) == "edges   99%"
    assert progress.bar_line(StageProgress("gaps"), 60) == "gaps  0.00 s"


def test_the_bar_of_a_terminal_whose_encoding_lacks_it():
    screen = Screen()
    assert progress._marks(screen) == "#-"
    assert progress._columns(screen) == 80


def test_no_bar_on_a_terminal_that_cannot_go_back(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert type(progress.make_reporter(ReportFlags(), Terminal())) is progress.PlainReporter


@pytest.mark.parametrize(
    ("command", "stages"),
    [
        (["export", "big", "out", "--to", "npy"], {"export"}),
        (["reorder", "big", "out", "--by", "degree"], {"order", "edges"}),
        (["partition", "big", "out", "--by", "fennel", "--partitions", "2"], {"assign", "report", "edges"}),
        (["transform", "big", "out", "reverse"], {"edges"}),
        (["split", "big", "out", "0.8/0.2", "--by", "random"], {"copy"}),
        (["validate", "big"], {"files", "nodes", "edges"}),
        (["stats", "big"], {"degrees", "pairs", "locality", "columns"}),
        (["sample", "big", "out", "--seeds", "seeds.txt", "--fanouts", "2"], {"sample"}),
    ],
)
@pytest.mark.long
def test_commands_over_stores_tell_a_share_and_a_rate(command, stages, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("seeds.txt").write_text("".join(f"{node}\n" for node in range(100)))
    assert main.run(["generate", "rmat", "big.txt", "--scale", "8", "--weights", "-q"]) == 0
    assert main.run(["convert", "big.txt", "big", "--weight-col", "2", "-q", "--ids", "dense"]) == 0
    capfd.readouterr()
    assert main.run([*command, "--log-format", "json"]) == 0
    told = {one["stage"]: one for one in map(json.loads, capfd.readouterr().err.splitlines()) if one["event"] == "stage"}
    for name in stages:
        found = told[name]
        done, total = ("bytes", "total_bytes") if found["total_bytes"] else ("records", "total_records")
        assert found[total] and 0.5 <= found[done] / found[total] <= 2, found


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
