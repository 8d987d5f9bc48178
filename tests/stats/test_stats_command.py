"""``graphprep stats`` on the command line: what is printed, exit codes, signals, and what is left behind."""

import importlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import started, wait_for

import graphprep
from graphprep.cli.main import run
from graphprep.cli.printed.stats import report_text
from graphprep.model.options.stats import Bin, Distribution, Hub, NodeTypeStats

pd = pytest.importorskip("pandas", reason="pandas is not installed")

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
KARATE = GOLDEN / "karate_csv" / "store"
SHOP = GOLDEN / "shop_chunked_parts" / "store"

KARATE_TEXT = """\
{path}: 34 nodes, 78 edges, 1 partition
  nodes      isolated
  _N     34         0

  edges            self-loops  repeated  returned  log2 gap
  _N:knows:_N  78           0         0      0.0%      2.38

  degrees          min  mean  50%  90%  99%  max  alpha  from     KS
  _N                 1  4.59    3   10   17   17   2.16     2  0.100
  _N:knows:_N in     0  2.29    2    4   17   17   2.61     2  0.075
  _N:knows:_N out    0  2.29    2    5   16   16   2.64     2  0.081

  degree  nodes of _N
  1                 1  ##
  2-3              17  ####################################
  4-7              11  #######################
  8-15              3  ######
  16-31             2  ####
  hubs: 33 (17), 0 (16), 32 (12)

  1 weakly connected component, the largest of 34 nodes (100.0%)

  45 triangles in 528 paths of two edges
  clustering 0.2557, average by node 0.5706
"""


@pytest.mark.parametrize("graph", [KARATE, GOLDEN.parent.parent / "sample_data/karate/karate.csv"])
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ([], "without --triangles"),
        (["--triangles", "exact"], "with --triangles exact, which draws no sample"),
    ],
)
def test_a_seed_without_a_sample_is_refused(graph, flags, words, capsys):
    assert run(["stats", str(graph), "--seed", "3", *flags]) == 2
    said = f"error: --seed does nothing {words}\n  fix: leave it out, or give --triangles sampled\n"
    assert capsys.readouterr() == ("", said)


def test_the_report_is_printed(capsys):
    from graphprep import stats

    assert run(["stats", str(KARATE), "--top", "3", "--triangles", "auto"]) == 0
    out = capsys.readouterr().out
    assert out.replace("█", "#").startswith(KARATE_TEXT.format(path=KARATE))
    assert max(map(len, out.splitlines()[1:])) <= 80
    report = stats(KARATE, top=3, triangles="auto")
    assert report_text(report, bar="#").startswith(KARATE_TEXT.format(path=KARATE))


def test_json_holds_all(capsys):
    assert run(["stats", str(SHOP), "--json", "--triangles", "sampled", "--seed", "3"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["path"] == str(SHOP)
    assert {one["name"] for one in value["edges"]} == set(json.loads((SHOP / "metadata.json").read_text())["edge_type"])
    assert len(value["parts"]["cut_matrix"]) == value["num_parts"]
    assert not value["triangles"]["exact"]


def test_every_line_fits(capsys):
    """Several types, partitions and columns, piped."""
    assert run(["stats", str(SHOP), "--triangles", "exact"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[1:])) <= 80
    assert "partitions by" in out
    assert "columns of" in out


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["nowhere"], 3, "error: nowhere: no such file or folder\n  fix: check the spelling of the path\n"),
        (
            [],
            2,
            "error: STORE or INPUT is needed: what to look at\n  fix: name the input, or its tables with --nodes and --edges\n",
        ),
        ([str(KARATE), "--top", "-1"], 2, "error: --top must be 0 or more, found -1\n  fix: give the number of hubs to name\n"),
        (
            [str(KARATE), "--format", "edges"],
            2,
            "error: metadata.json says that this is a store: raw input only takes --format\n  fix: leave that out\n",
        ),
        ([str(KARATE), "--memory-limit", "8MiB"], 4, "leaves 0 MiB to work with"),
        ([str(KARATE), "--triangles", "all"], 2, "'all' is not one of 'auto', 'exact', 'sampled'"),
        (["bad.csv", "--format", "edges", "--id-type", "int"], 1, "error: bad.csv:2:3: "),
    ],
)
def test_what_is_wrong_is_told(args, code, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("bad.csv").write_text("1,2\n3,x\n")
    assert run(["stats", *args]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.usefixtures("hears_signals")
def test_signals_remove_the_temporary_store(tmp_path, number, code):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    command = [sys.executable, "-m", "graphprep", "stats", "-", "--format", "edges", "--tmp-dir", str(tmp)]
    with started(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_for(lambda: any(tmp.iterdir()))
        process.send_signal(number)
        assert process.wait(30) == code
    assert list(tmp.iterdir()) == []


def test_numbers_are_never_cut_and_names_are(monkeypatch):
    """A name of 200 characters with what a terminal obeys, and degrees of ten digits."""
    from graphprep import stats

    report = stats(KARATE)
    name, high = "n\x1b" + "x" * 200, 2**33
    found = Distribution(2, 1, 4.5, high, dict.fromkeys(("25", "50", "75", "90", "99", "99.9"), high), (Bin(1, 1, 2),))
    node = NodeTypeStats(name, high, high, found, found, found, (Hub(name, 0, high),))
    import dataclasses

    text = report_text(dataclasses.replace(report, nodes=(node,)))
    assert "\x1b" not in text
    assert "8,589,934,592" in text
    assert "…" in text


def test_long_names_are_cut_and_numbers_beside_them_are_whole(tmp_path, capsys):
    """Piped, in 80 columns; in and out are told apart, and a line end in a name breaks no line."""
    one, other = "institution_of_authors", "field of\nstudy"
    graphprep.convert(
        nodes={one: pd.DataFrame({"id": range(3)}), other: pd.DataFrame({"id": [0]})},
        edges={(one, "is_affiliated_with", other): pd.DataFrame({"src": [0, 1, 1], "dst": [0, 0, 0]})},
        out=tmp_path / "s",
    )
    assert run(["stats", str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines()[1:])) <= 80
    for line in (
        "  institution_of_authors:is_af…tudy  3           0         1         -      0.33\n",
        "  degrees                      min  mean  50%  90%  99%  max  alpha  from     KS\n",
        "  institution_of_authors…y in    3  3.00    3    3    3    3      -     -      -\n",
        "  institution_of_authors… out    0  1.00    1    2    2    2   2.35     1  0.212\n",
        "  degree  nodes of field of\\nstudy\n",
    ):
        assert line in out


def test_samples_of_no_path_are_exact(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("1 2\n3 3\n")
    assert run(["stats", str(tmp_path / "a.csv"), "--triangles", "sampled"]) == 0
    assert "  0 triangles in 0 paths of two edges\n  clustering 0.0000, average by node 0.0000\n" in capsys.readouterr().out


def test_more_hubs_than_memory_holds_are_refused(capsys, monkeypatch):
    """Before anything is counted; the default number always goes."""
    monkeypatch.setattr(importlib.import_module("graphprep.stats.command"), "_HUB_BYTES", 1 << 40)
    assert run(["stats", str(KARATE), "--top", "1000000000"]) == 4
    assert capsys.readouterr().err == (
        "error: --top 1,000,000,000 names 102 nodes in 3 lists, which take 102.0 TiB\n"
        "  fix: ask for 10 or fewer, or raise --memory-limit\n"
    )
    assert run(["stats", str(KARATE), "--top", "10"]) == 0
