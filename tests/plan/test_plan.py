"""``plan``: what it says of an input, against what ``convert`` then makes of it."""

import gzip
import json
import shlex
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphprep
from graphprep.convert.index import partition_file
from graphprep.model.errors import DataError, GraphprepError, StorageError, UsageError
from graphprep.plan import command

SAMPLES = Path(__file__).parents[2] / "sample_data"
KARATE = SAMPLES / "karate/karate.csv"


def both(path, out, **options):
    """Return what is planned, and what is done."""
    return graphprep.plan(path, **options), graphprep.convert(path, out, **options)


def files_bytes(store):
    return sum(file.stat().st_size for file in Path(store).rglob("*") if file.is_file())


@pytest.mark.parametrize(
    ("path", "options"),
    [
        ("karate/karate.csv", {"decoder_options": {"weight_col": "weight"}}),
        ("lesmis/lesmis.jsonl", {}),
        ("shop/shop.jsonl", {"partitions": 3, "layout": "both"}),
        ("karate/chunked", {}),
        ("shop/shop.tsv", {"format": "tsv"}),
        ("people/graph.json", {}),
        ("edges/plain.txt.gz", {}),
        ("edges/columns.parquet", {}),
        ("names/awkward.csv", {"format": "edges", "decoder_options": {"id_type": "string"}}),
    ],
)
def test_of_small_inputs_the_numbers_are_exact(path, options, tmp_path):
    planned, done = both(SAMPLES / path, tmp_path / "out", **options)
    assert planned.total_edges == sum(done.num_edges.values())
    assert {name: one.value for name, one in planned.num_nodes.items()} == done.num_nodes
    assert all(one.is_exact for one in (*planned.num_nodes.values(), *planned.num_edges.values()))
    assert (planned.format, planned.format_flags, planned.num_parts) == (done.format, done.format_flags, done.num_parts)
    assert planned.read_bytes == planned.input_bytes


def skewed_edges(num_edges, seed=0):
    rng = np.random.default_rng(seed)
    src = (200_000 * rng.random(num_edges) ** 2).astype(np.int64)
    return np.stack([src, rng.integers(0, 150_000, num_edges)], axis=1)


def write_lines(path, edges):
    path.write_text("".join(f"{src} {dst}\n" for src, dst in edges.tolist()))


def test_a_large_text_is_looked_at_in_places(tmp_path):
    edges = skewed_edges(900_000)
    edges = edges[np.argsort(edges[:, 0], kind="stable")]  # so that lines become longer
    write_lines(tmp_path / "edges.txt", edges)
    planned, done = both(tmp_path / "edges.txt", tmp_path / "out")
    assert planned.read_bytes < 0.5 * planned.input_bytes
    assert planned.total_edges == pytest.approx(900_000, rel=0.01)
    assert planned.num_nodes["_N"].value == pytest.approx(done.num_nodes["_N"], rel=0.001)
    assert planned.output_bytes == pytest.approx(files_bytes(tmp_path / "out"), rel=0.02)
    ids = planned.distinct_ids["_N"]
    assert ids.low <= np.unique(edges).size <= ids.high
    assert ids.value == pytest.approx(np.unique(edges).size, rel=0.2)


def test_a_compressed_text_is_told_by_its_beginning_and_its_end(tmp_path):
    write_lines(tmp_path / "edges.txt", skewed_edges(600_000))
    (tmp_path / "edges.txt.gz").write_bytes(gzip.compress((tmp_path / "edges.txt").read_bytes(), 1))
    planned = graphprep.plan(tmp_path / "edges.txt.gz")
    assert planned.text_bytes == (tmp_path / "edges.txt").stat().st_size
    assert planned.total_edges == pytest.approx(600_000, rel=0.01)
    assert planned.notes == ("compressed files were looked at from their beginning only: what comes later may be another",)


def test_a_tables_footer_says_how_many_rows_it_has(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    edges = skewed_edges(300_000)
    pq.write_table(pa.table({"src": edges[:, 0], "dst": edges[:, 1], "w": edges[:, 0] / 2}), tmp_path / "e.parquet")
    planned, _ = both(tmp_path / "e.parquet", tmp_path / "out", decoder_options={"weight_col": "w"})
    (number,) = planned.num_edges.values()
    assert (number.value, number.is_exact) == (300_000, True)
    assert planned.output_bytes == pytest.approx(files_bytes(tmp_path / "out"), rel=0.02)


def test_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    graphprep.plan(KARATE, out=tmp_path / "store")
    assert not list(tmp_path.iterdir())


def test_stages_declare_what_convert_declares(tmp_path, monkeypatch):
    """The ledger's entries of a conversion, by stage, are those that were planned, byte for byte."""
    from graphprep import context

    kept = []

    class Kept(context.Ledger):
        def __init__(self, *args):
            super().__init__(*args)
            kept.append(self)

    monkeypatch.setattr(context, "Ledger", Kept)
    write_lines(tmp_path / "edges.txt", skewed_edges(30_000))
    options = {"memory_limit": "512MiB", "threads": 2, "partitions": 2}
    planned, _ = both(tmp_path / "edges.txt", tmp_path / "out", **options)
    done = kept[-1]
    for stage in planned.stages[1:]:
        own = {one.name: one.most_bytes for one in stage.needs if one.name not in ("process", "code", "heap")}
        declared = {one.name: one.num_bytes for one in done.stages[stage.name] if one.name != "heap"}
        for name, num_bytes in declared.items():  # shares of what the process leaves differ by what it holds
            assert own[name] == pytest.approx(num_bytes, rel=0.1), (stage.name, name)
        assert stage.likely_bytes <= stage.most_bytes <= planned.memory_limit_bytes


@pytest.mark.parametrize(
    ("text", "options", "error", "words"),
    [
        ("0 1\n1 x\n", {"format": "edges"}, DataError, "edges.txt:2:3"),
        ("0 1\n", {"partitions": -1}, UsageError, "partitions"),
        ("0 1\n1 7\n", {"num_nodes": {"": 3}}, DataError, "node 7 is outside [0, 3)"),
    ],
)
def test_what_is_wrong_is_told_as_convert_tells_it(text, options, error, words, tmp_path):
    (tmp_path / "edges.txt").write_text(text)
    with pytest.raises(error, match=None) as planned:
        graphprep.plan(tmp_path / "edges.txt", **options)
    with pytest.raises(error) as done:
        graphprep.convert(tmp_path / "edges.txt", tmp_path / "out", **options)
    assert words in str(planned.value)
    assert planned.value.message == done.value.message


def test_a_file_that_is_not_there():
    with pytest.raises(StorageError):
        graphprep.plan("nowhere.csv")


def test_stdin_cannot_be_sampled():
    with pytest.raises(UsageError) as told:
        graphprep.plan("-")
    assert str(told.value) == "-: stdin cannot be sampled: what is read of it is gone\n  fix: write it to a file first"


def test_a_remote_file(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    write_lines(tmp_path / "edges.txt", skewed_edges(500_000))
    with fsspec.open("memory://plan/edges.txt", "wb") as file:
        file.write((tmp_path / "edges.txt").read_bytes())
    remote, local = graphprep.plan("memory://plan/edges.txt"), graphprep.plan(tmp_path / "edges.txt")
    assert remote.num_edges == local.num_edges
    assert remote.distinct_ids == local.distinct_ids
    assert remote.read_bytes == local.read_bytes < remote.input_bytes


def test_guesses_are_what_the_flags_fix(tmp_path):
    planned = graphprep.plan(KARATE)
    flags = {one.what: one.flags for one in planned.guesses}
    assert flags["format"] == "--format edges"
    assert flags["delimiter"] == "--delimiter ,"
    assert flags["column of the sources"] == "--src-col source"
    again = graphprep.plan(KARATE, format="edges", partitions=1, ids="dense", memory_limit="1GiB", threads=1)
    assert {"format", "partitions", "nodes", "memory limit", "threads"}.isdisjoint(one.what for one in again.guesses)


@pytest.mark.parametrize(
    "path", ["lesmis/lesmis.jsonl", "shop/shop.tsv", "karate/chunked", "people/graph.json", "edges/plain.txt.gz"]
)
def test_convert_takes_the_flags_of_guesses(path, tmp_path):
    from graphprep.cli.main import run

    planned = graphprep.plan(SAMPLES / path)
    flags = [word for one in planned.guesses for word in shlex.split(one.flags)]
    assert run(["convert", str(SAMPLES / path), str(tmp_path / "out"), "--quiet", *flags]) == 0


def write_parts(path, parts, kind):
    if kind == "parquet":
        pq.write_table(pa.table({"id": np.arange(len(parts)), "part": parts}), path)
    elif kind == "parmetis":
        path.write_text("".join(f"{node} {part}\n" for node, part in reversed(list(enumerate(parts)))))
    else:
        path.write_text("".join(f"{part}\n" for part in parts))
    return path


@pytest.mark.parametrize("kind", ["lines", "parmetis", "parquet"])
def test_a_file_of_assignments_says_how_many_partitions_there_are(kind, tmp_path):
    parts = [node % 3 for node in range(34)]
    planned, done = both(KARATE, tmp_path / "out", partition_by=str(write_parts(tmp_path / "parts", parts, kind)))
    assert (planned.num_parts, planned.parts_at_least) == (3, False)
    assert len(list((tmp_path / "out").glob("part-*"))) == done.num_parts == 3
    assert "partitions" not in [one.what for one in planned.guesses]
    assert planned.card().title == planned.title() == f"{KARATE}: 34 nodes, 78 edges, 3 partitions"


def test_a_folder_of_assignments(tmp_path):
    for name, most in (("0", 2), ("1", 5), ("2", 1), ("another", 90)):
        (tmp_path / f"{name}.txt").write_text("0\n" * 3 + f"{most}\n")
    planned = graphprep.plan(SAMPLES / "shop/shop.jsonl", partition_by=str(tmp_path))
    assert (planned.num_parts, planned.parts_at_least) == (6, False)


def test_of_a_large_file_of_assignments_the_beginning_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(partition_file, "_LOOKED_AT", 32)
    file = write_parts(tmp_path / "parts", [0] * 8 + [1] + [0] * 24 + [3], "lines")
    planned, done = both(KARATE, tmp_path / "out", partition_by=str(file))
    assert (planned.num_parts, planned.parts_at_least, done.num_parts) == (2, True, 4)
    assert planned.title() == f"{KARATE}: 34 nodes, 78 edges, at least 2 partitions"
    pq.write_table(pa.table({"id": np.arange(34), "part": [0, 1] * 17}), file, write_statistics=False)
    planned = graphprep.plan(KARATE, partition_by=str(file))
    assert (planned.num_parts, planned.parts_at_least) == (2, True)


@pytest.mark.parametrize(("text", "partitions"), [("0\n" * 33 + "2\n", 2), ("0\nx\n", None), ("0\n" * 33 + "99999999\n", None)])
def test_a_file_of_assignments_that_convert_refuses(text, partitions, tmp_path):
    (tmp_path / "parts.txt").write_text(text)
    told = []
    for function, out in ((graphprep.plan, {}), (graphprep.convert, {"out": tmp_path / "store"})):
        with pytest.raises(GraphprepError) as error:
            function(KARATE, partition_by=str(tmp_path / "parts.txt"), partitions=partitions, memory_limit="512MiB", **out)
        told.append((type(error.value), str(error.value)))
    assert told[0] == told[1]


def test_json_has_everything(capsys):
    from graphprep.cli.main import run

    assert run(["plan", str(KARATE), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["total_nodes"], told["total_edges"]) == (34, 78)
    assert [one["name"] for one in told["stages"]] == ["plan", "decode", "index", "shuffle", "build", "publish"]


def test_a_dry_run_writes_nothing_and_says_the_same(tmp_path, capsys):
    from graphprep.cli.main import run

    out = tmp_path / "store"
    assert run(["convert", str(KARATE), str(out), "--dry-run", "--json", "--quiet"]) == 0
    dry = json.loads(capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
    assert [(one["folder"], one["need_bytes"]) for one in dry["disks"]] == [(str(tmp_path), dry["output_bytes"])]
    assert run(["plan", str(KARATE), "--json", "--quiet"]) == 0
    told = json.loads(capsys.readouterr().out)
    for name in ("num_nodes", "num_edges", "distinct_ids", "store_bytes", "format_flags", "raw_ids", "threads"):
        assert dry[name] == told[name], name
    assert run(["convert", "-", str(out), "--dry-run"]) == 2


def test_a_dry_run_refuses_the_place_that_a_run_would_refuse(tmp_path):
    (tmp_path / "mine").write_text("kept")
    told = []
    for function in (graphprep.plan, graphprep.convert):
        with pytest.raises(UsageError) as error:
            function(KARATE, out=tmp_path)
        told.append(str(error.value))
    assert (
        told[0]
        == told[1]
        == f"{tmp_path}: the output exists\n  fix: choose another name: it is no store, and is never replaced"
    )


def test_the_report_for_people(capsys):
    from graphprep.cli.main import run

    args = ["plan", str(KARATE), "--partitions", "2", "--threads", "2", "--memory-limit", "16GiB"]
    assert run(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{KARATE}: 34 nodes, 78 edges, 2 partitions"
    assert lines[1].strip().startswith("edges, 1 file, 582 B; looked at all of it in ")
    assert lines[2:4] == ["  nodes  _N        34", "  edges  _N:_E:_N  78"]
    assert "  temporary files: none" in lines
    assert [line.split()[-2:] for line in lines if "--ids" in line] == [["--ids", "dense"]]
    assert not any("--partitions" in line or "--threads" in line for line in lines)


def test_needs_of_one_file_system_are_added(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "spills", lambda *_: iter((100, 0)))
    (tmp_path / "tmp").mkdir()
    planned = graphprep.plan(KARATE, out=tmp_path / "out", tmp_dir=str(tmp_path / "tmp"))
    assert [(one.folder, one.need_bytes) for one in planned.disks] == [(str(tmp_path), planned.output_bytes + 100)]
    planned = graphprep.plan(KARATE, out="memory://plan/out", tmp_dir=str(tmp_path / "tmp"))
    assert [(one.folder, one.need_bytes) for one in planned.disks] == [(str(tmp_path / "tmp"), 100)]
    planned = graphprep.plan(KARATE, out="memory://plan/out", tmp_dir=str(tmp_path / "tmp"), resume=True)  # keeps a copy
    assert [(one.folder, one.need_bytes) for one in planned.disks] == [(str(tmp_path / "tmp"), planned.output_bytes + 100)]


def test_a_long_guess_breaks_its_own_line_only(tmp_path, capsys):
    from graphprep.cli.main import run

    long = "the_sources_of_all_edges_that_there_are"
    (tmp_path / "edges.csv").write_text(f"{long},target\n0,1\n")
    args = ["plan", str(tmp_path / "edges.csv"), "--threads", "2", "--memory-limit", "16GiB"]
    assert run(args) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[lines.index("  assumed, and what fixes it") + 1 :] == [
        "    format                            edges            --format edges",
        "    delimiter                         ','              --delimiter ,",
        "    header                            line 1           --header yes",
        f"    column of the sources             {long}",
        f"        --src-col {long}",
        "    column of the destinations        target           --dst-col target",
        "    raw IDs                           integers from 0  --id-type uint",
        "    nodes                             all of 0..max    --ids dense",
        "    partitions                        1 by range       --partitions 1",
        "    dtype of neighbours and edge IDs  int32            --index-dtype int32",
    ]


def test_options_of_convert_that_say_nothing_of_the_graph(capsys):
    from graphprep.cli.main import run

    assert run(["plan", str(KARATE), "--overwrite", "--engine", "processes", "--threads", "2", "--quiet"]) == 0
    for page in ("--help", "--help-all"):
        assert run(["plan", page]) == 0
    assert "--overwrite" not in capsys.readouterr().out.replace("With --overwrite", "")


def test_kernels_that_no_cache_has_are_named(monkeypatch):
    from graphprep.kernels.compiler import ahead

    monkeypatch.setattr(ahead, "is_missing", lambda _: False)
    planned = graphprep.plan(KARATE)
    assert (planned.missing_kernels, planned.compile_s) == ((), 0.0)
    monkeypatch.setattr(ahead, "is_missing", lambda _: True)
    planned = graphprep.plan(KARATE)
    assert any("_place" in name for name in planned.missing_kernels)
    assert planned.compile_s > len(planned.missing_kernels) / 2
