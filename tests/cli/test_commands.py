"""``convert``, ``info``, ``validate`` and ``ids`` from the command line."""

import dataclasses
import io
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep import api
from graphprep.cli.convert import summary_text
from graphprep.cli.main import run
from graphprep.cli.stores.info import info_text
from graphprep.info.inspect import GraphInfo, Head, TypeInfo, _plain
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportOptions
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.generate import GenerateOptions
from graphprep.model.options.partition import PartitionOptions
from graphprep.model.options.reorder import ReorderOptions
from graphprep.model.options.split import SplitOptions
from graphprep.model.protocols import QuietReporter
from graphprep.model.run_options import RunOptions
from graphprep.model.shown import compilation
from graphprep.model.shown.compilation import announcing

ROOT = Path(__file__).resolve().parent.parent.parent
KARATE = ROOT / "sample_data" / "karate" / "karate.csv"
GOLDEN = ROOT / "tests" / "golden"
STORE = GOLDEN / "shop_edgelist_both_parts" / "store"

# ------------------------------------------------------------------------------------------------ convert

SUMMARY = ConvertSummary(
    out="shop",
    format="edges",
    format_flags=("--format", "edges"),
    num_nodes={"user": 12_345, "item": 1},
    num_edges={"user:buys:item": 50_000},
    num_parts=2,
    num_records=50_000,
    num_skipped=3,
    num_dropped_edges=0,
    num_created_nodes=7,
    input_bytes=10_000_000,
    output_bytes=2_500_000,
    elapsed_s=2.0,
    peak_memory_bytes=300_000_000,
    stage_s={"decode": 1.5},
    notes=("item 0 has no edge",),
)


@pytest.fixture
def converted(monkeypatch):
    """Catch what the command asks of the library."""
    calls = []

    def convert(inputs, out, options, reporter):
        calls.append((inputs, out, options))
        return SUMMARY

    monkeypatch.setattr("graphprep.api.convert", convert)
    return calls


def test_convert_with_no_flags_asks_for_the_defaults(converted, capsys):
    assert run(["convert", "a", "b", "out"]) == 0
    assert converted == [(["a", "b"], "out", ConvertOptions())]
    assert capsys.readouterr().out == (
        "shop: 12,346 nodes, 50,000 edges, 2 partitions\n"
        "  nodes  user            12,345\n"
        "  nodes  item                 1\n"
        "  edges  user:buys:item  50,000\n"
        "  3 faulty records skipped\n"
        "  7 nodes created\n"
        "  read 10.0 MB, wrote 2.5 MB in 2.00 s: 25.0k edges/s, 5.0 MB/s, peak memory\n"
        "      300 MB\n"
        "  note: item 0 has no edge\n"
    )


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        (["info", "a"], ConvertOptions()),
        (["validate", "a"], ConvertOptions()),
        (["generate", "rmat", "out"], GenerateOptions()),
        (["partition", "store", "out", "--by", "range"], PartitionOptions()),
        (["reorder", "store", "out", "--by", "degree"], ReorderOptions()),
        (["split", "store", "out", "0.8/0.2", "--by", "random"], SplitOptions()),
        (["export", "store", "out", "--to", "npy"], ExportOptions()),
    ],
)
def test_other_commands_do_so_too(command, defaults, monkeypatch, capsys):
    asked = []

    def call(*args, **more):
        asked.extend(one for one in (*args, *more.values()) if type(one) is type(defaults))
        raise UsageError("seen enough")

    monkeypatch.setattr(f"graphprep.api.{command[0]}", call)
    assert run(command) == 2
    assert asked == [defaults]
    assert capsys.readouterr().err == "error: seen enough\n"


def test_convert_counts_one_thing_as_one():
    text = summary_text(dataclasses.replace(SUMMARY, num_skipped=1, num_dropped_edges=1, num_created_nodes=1))
    assert text.splitlines()[4:7] == [
        "  1 faulty record skipped",
        "  1 edge dropped, for want of a node",
        "  1 node created",
    ]


@pytest.mark.parametrize(("flags", "said"), [([], True), (["--quiet"], False), (["--progress", "none"], False)])
def test_a_run_says_that_it_compiles_kernels(monkeypatch, capsys, flags, said):
    def convert(*_):
        for _ in range(2):
            with compilation.compiling():
                pass
        return SUMMARY

    monkeypatch.setattr("graphprep.api.convert", convert)
    monkeypatch.setattr(compilation, "announcing", announcing)  # see conftest.py
    assert run(["convert", "a", "out", *flags]) == 0
    told = "compiling kernels: once, a second or two each\ncompiled 2 kernels in 0.00 s\n"
    assert capsys.readouterr().err == (told if said else "")


def test_a_run_that_compiles_nothing_says_nothing_of_it(converted, monkeypatch, capsys):
    monkeypatch.setattr(compilation, "announcing", announcing)
    assert run(["convert", "a", "out"]) == 0
    assert capsys.readouterr().err == ""


class Heard(QuietReporter):
    def __init__(self):
        self.told = []

    def message(self, text):
        self.told.append(re.sub(r" in \S+ s$", "", text))


def test_python_hears_that_kernels_are_compiled_from_its_reporter_or_the_log(monkeypatch, caplog):
    monkeypatch.setattr(compilation, "announcing", announcing)
    reporter, told = Heard(), ["compiling kernels: once, a second or two each", "compiled 1 kernel"]
    with api._reporting(reporter), api._reporting(reporter), compilation.compiling():
        pass
    assert reporter.told == told
    assert caplog.messages == []
    with api._reporting(None), compilation.compiling():
        pass
    assert [re.sub(r" in \S+ s$", "", text) for text in caplog.messages] == told
    with api._reporting(reporter), api._reporting(None):
        pass
    assert reporter.told == told


def test_lines_of_summaries_break_between_words():
    words = "node type 'a-very-long-name': " + " ".join(["something-that-has-hyphens"] * 6)
    out = "x" * 90
    summary = dataclasses.replace(SUMMARY, out=out, notes=(words, "short", "y" * 100 + " z"))
    lines = summary_text(summary, every=True).splitlines()
    assert lines[0] == f"{out}: 12,346 nodes, 50,000 edges, 2 partitions"  # a path, and what scripts read
    at = next(i for i, line in enumerate(lines) if "note:" in line)
    assert all(len(line) <= 80 for line in lines[1:-2])
    told = "\n".join(lines[at:]).replace("\n      ", " ")
    assert told == f"  note: {words}\n  note: short\n  note: {'y' * 100} z"


def test_convert_json(converted, capsys):
    assert run(["convert", "a", "out", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["num_nodes"] == {"user": 12_345, "item": 1}
    assert found["peak_memory_bytes"] == 300_000_000
    assert found["format_flags"] == ["--format", "edges"]


def test_every_flag_of_convert_arrives(converted):
    text = """convert in out --format edges --decoder-options options.json --schema schema.json --ids sparse
        --num-nodes user=5 --num-nodes item=3 --strict --partitions 4 --partition-by hash --layout both
        --neighbor-order weight --no-edge-ids --index-dtype int64 --weight-dtype float64 --graph-name g --seed 7 --overwrite
        --on-error skip --bad-records bad.txt --max-errors 9 --min-nodes 5 --min-edges 6 --allow-empty --on-missing-node create --missing-node-type 3
        --delimiter ; --header no --src-col 1 --dst-col to --weight-col w --time-col t --time-unit ms --column a=int8
        --column b=float32 --drop-column c --index-base 1 --relation u:r:v --id-type auto
        --relation-col rel --no-quote --input-layout csr --array-shape ex2 --id-space global --null NA --id-col k --length-delimiter / --binary-escape x --temporal
        --default-node-type 1 --default-node-weight 0.5 --default-node-feature-types a,b --default-node-feature-lens 1,2
        --default-edge-type 2 --default-edge-weight 1.5 --default-edge-feature-types c --default-edge-feature-lens 3/0
        --default-created-at 11 --default-removed-at -1 --memory-limit 1GiB --threads 3 --tmp-dir /x --storage-option anon=true
        --storage-option s3.key=a=b"""
    assert run(text.split()) == 0
    decoder_options = {
        "decoder_options_file": "options.json",
        "strict": True,
        "delimiter": ";",
        "header": "no",
        "src_col": "1",
        "dst_col": "to",
        "weight_col": "w",
        "time_col": "t",
        "time_unit": "ms",
        "columns": ["a=int8", "b=float32"],
        "drop_columns": ["c"],
        "index_base": 1,
        "relation": "u:r:v",
        "id_type": "auto",
        "relation_col": "rel",
        "quote": False,
        "input_layout": "csr",
        "array_shape": "ex2",
        "id_space": "global",
        "null": ["NA"],
        "id_col": "k",
        "length_delimiter": "/",
        "binary_escape": "x",
        "temporal": True,
        "default_node_type": 1,
        "default_node_weight": 0.5,
        "default_node_feature_types": "a,b",
        "default_node_feature_lens": "1,2",
        "default_edge_type": 2,
        "default_edge_weight": 1.5,
        "default_edge_feature_types": "c",
        "default_edge_feature_lens": "3/0",
        "default_created_at": 11,
        "default_removed_at": -1,
    }
    assert converted == [
        (
            ["in"],
            "out",
            ConvertOptions(
                format="edges",
                decoder_options=decoder_options,
                partitions=4,
                partition_by="hash",
                layout="both",
                neighbor_order="weight",
                edge_ids=False,
                index_dtype="int64",
                weight_dtype="float64",
                ids="sparse",
                num_nodes={"user": 5, "item": 3},
                on_missing_node="create",
                missing_node_type="3",
                graph_name="g",
                schema="schema.json",
                on_error="skip",
                bad_records="bad.txt",
                max_errors=9,
                min_nodes=5,
                min_edges=6,
                allow_empty=True,
                overwrite=True,
                seed=7,
                run=RunOptions("1GiB", 3, "/x", {"anon": "true", "s3.key": "a=b"}),
            ),
        )
    ]


def test_a_decoder_class_arrives(converted):
    assert run(["convert", "in", "out", "--decoder", "mine:Decoder"]) == 0
    assert converted[0][2] == ConvertOptions(decoder="mine:Decoder")


def test_decoder_flags_are_the_decoders_fields():
    """Every decoder flag is a field of one of our decoders, and every field (but what all share) has a flag."""
    from graphprep.decoders.registry import _BUILT_IN, find_decoder
    from graphprep.model.options.checks import option_types
    from graphprep.model.options.decoding import DECODER_OPTIONS, OF_TABLES_ALONE

    fields = set().union(*(option_types(find_decoder(name)) for name in _BUILT_IN))
    assert set(DECODER_OPTIONS) - {"decoder_options_file", *OF_TABLES_ALONE} == fields - {"weight_dtype"}


def test_convert_info_validate_ids_in_a_row(tmp_path, capsys):
    """The way of a new user."""
    out = tmp_path / "karate"
    assert run(["convert", str(KARATE), str(out), "--weight-col", "weight", "--partitions", "2"]) == 0
    captured = capsys.readouterr()
    assert captured.out.splitlines()[0] == f"{out}: 34 nodes, 78 edges, 2 partitions"
    assert "format: edges (sniffed; --format edges repeats this choice)" in captured.err
    assert run(["validate", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"{out}: sound", "  nodes  _N        34", "  edges  _N:_E:_N  78"]
    assert lines[3].startswith("  checked 8 arrays in 2 partitions, ")
    assert run(["info", str(out)]) == 0
    assert f"{out}: graphprep-store 1, " in capsys.readouterr().out
    assert run(["ids", str(out), "16", "17", "--from", "raw", "--to", "local"]) == 0
    assert capsys.readouterr().out == "0:16\n1:0\n"
    assert run(["convert", str(KARATE), str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------ info


def test_info_of_a_store(capsys):
    assert run(["info", str(GOLDEN / "karate_csv" / "store"), "--head", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = out.splitlines()
    assert lines[0].startswith(f"{GOLDEN / 'karate_csv' / 'store'}: graphprep-store 1, 6 files, ")
    assert lines[1:] == [
        "  graph       graph",
        "  partitions  1 by range",
        "  layouts     csc",
        "nodes _N: 34, raw IDs identity",
        "    raw ID",
        "    0",
        "    1",
        "edges _N:knows:_N: 78, neighbours int64 ordered by input, edge IDs int64",
        "  weight  dense  float32",
        "    source  destination  edge ID  weight",
        "    0       1            0        4",
        "    0       2            1        5",
    ]


def test_info_of_a_raw_file(capsys):
    assert run(["info", str(KARATE), "--head", "1"]) == 0
    out, err = capsys.readouterr()
    assert err == "format: edges (sniffed; --format edges repeats this choice)\n"
    assert out.splitlines() == [
        f"{KARATE}: edges, 1 file, {KARATE.stat().st_size} B",
        "nodes _N",
        "edges _N:_E:_N: 78 in the first block",
        "  weight  dense  int64",
        "    source  destination  weight",
        "    0       1            4",
        f"convert with: graphprep convert {shlex.quote(str(KARATE))} OUT --format edges",
    ]


def test_info_of_tables_prints_the_command_that_converts_them(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("u.csv").write_text("name,age\nann,30\nbob,40\n")
    Path("e.csv").write_text("b,a,cost\nann,bob,0.5\n")
    words = "--nodes user=u.csv --edges user:likes:user=e.csv --id-col user=name --src-col a --dst-col b --id-type string"
    assert run(["info", *words.split()]) == 0
    told = capsys.readouterr().out.rpartition("convert with: ")[2]
    assert " ".join(told.split()) == f"graphprep convert OUT {words}"
    assert run(shlex.split(told)[1:]) == 0
    with graphprep.load("OUT") as graph:
        names, (src, dst, _) = graph.ids("user"), graph.edges()
        assert ([names[src[0]], names[dst[0]]]) == ["bob", "ann"]


def test_info_json_is_strict(capsys, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("0,1,nan\n1,2,inf\n")
    assert run(["info", str(path), "--head", "2", "--json", "--format", "edges", "--weight-col", "2"]) == 0

    def refuse(text):
        raise AssertionError(text)

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["format"] == "edges"
    assert found["edge_types"][0]["head"]["rows"] == [[0, 1, "nan"], [1, 2, "inf"]]


@pytest.mark.parametrize("command", ["info", "validate"])
@pytest.mark.parametrize(
    ("args", "flags"),
    [
        (["--ids", "dense"], "--ids"),
        (["--num-nodes", "3", "--column", "a=int8", "--format", "edges"], "--format, --num-nodes, --column"),
        (["--schema", "s.json", "--strict"], "--schema, --strict"),
    ],
)
def test_a_store_takes_no_options_of_raw_input(capsys, command, args, flags):
    assert run([command, str(STORE), *args]) == 2
    assert capsys.readouterr().err == (
        f"error: metadata.json says that this is a store: raw input only takes {flags}\n  fix: leave that out\n"
    )


def test_convert_takes_no_store(capsys, tmp_path):
    assert run(["convert", str(STORE), str(tmp_path / "out"), "--quiet"]) == 2
    assert capsys.readouterr().err == (
        f"error: {STORE}: this is a graphprep store, not raw input\n"
        "  fix: give its folder to graphprep info, which shows what is in it, or to graphprep validate, which checks it\n"
    )


@pytest.mark.parametrize(
    ("target", "fix"),
    [
        ("glt", "give raw files; see export.json in it"),
        ("distdgl", "give raw files; see export.json in it"),
        ("npy", "give raw files; see export.json in it"),
        ("parquet", "name a file in it: OUT/graph.yaml"),
        ("mtx", "name a file in it: OUT/_N___E___N.mtx"),
        ("deepgnn-tsv", "name a file in it: OUT/graph.tsv"),
    ],
)
def test_an_export_is_no_raw_input(capsys, tmp_path, target, fix):
    """Unless it is one: dgl-chunked. What can be converted of others is named."""
    store, out = str(tmp_path / "store"), str(tmp_path / "out")
    assert (
        run(["convert", str(ROOT / "sample_data" / "karate" / "karate.csv"), store, "--weight-col", "weight", "--quiet"]) == 0
    )
    assert run(["export", store, out, "--to", target, "--quiet"]) == 0
    capsys.readouterr()
    wanted = f"error: {out}: this is what graphprep exported, not raw input\n  fix: {fix.replace('OUT', out)}\n"
    for options in ([], ["--id-type", "string"], ["--format", "edges"]):
        assert run(["convert", out, f"{out}-again", "--quiet", *options]) == 2
        assert capsys.readouterr().err == wanted
        assert run(["convert", store, f"{out}-again", "--quiet", *options]) == 2
        assert f"{store}: this is a graphprep store, not raw input" in capsys.readouterr().err


def test_info_quotes_paths(capsys, tmp_path):
    path = tmp_path / "a b;c.csv"
    path.write_text("0;1;2;0.5;x\n")
    assert run(["info", str(path), "--format", "edges", "--delimiter", ";"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"convert with: graphprep convert '{path}' OUT --format edges"


def test_info_shows_lists_and_dated_values(capsys):
    assert run(["info", str(ROOT / "sample_data" / "shop" / "chunked")]) == 0
    row = next(line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["history"])
    assert row.split() == ["history", "ragged", "int64"]


def test_info_prints_any_value_in_a_line_that_fits(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    rows = ((2**64 - 1, "a\x1b[31m\nb" + "x" * 90, 0.1234567890123), (3, "\u00e9", 1.0))
    nodes = TypeInfo("t\n", 2, head=Head(("raw ID", "te\txt", "f"), rows))
    text = info_text(GraphInfo("g", "store", "f", 1, 1, node_types=(nodes,))).splitlines()
    assert text[1:] == [
        "nodes t\\n: 2",
        "    raw ID                te\\txt                    f",
        "    18446744073709551615  a\\x1b[31m\\nbxxxxxxxxx...  0.1234567890123",
        "    3                     é                         1",
    ]


def test_info_writes_narrow_floats_as_they_were_given():
    assert _plain(np.array([0.1, np.inf], np.float32)) == [0.1, np.inf]
    assert _plain(np.float32(0.1)) == 0.1
    assert _plain(np.float64(0.1234567890123456)) == 0.1234567890123456


# ------------------------------------------------------------------------------------------------ validate


@pytest.fixture
def spoiled(tmp_path):
    """A copy of a golden store with a neighbour out of range."""
    import shutil

    folder = tmp_path / "store"
    shutil.copytree(STORE, folder)
    path = next(path for path in sorted(folder.rglob("csc/indices.npy")) if np.load(path).size > 2)
    array = np.load(path)
    array[-1] = 99
    np.save(path, array)
    return folder, f"{path.relative_to(folder).as_posix()}", array.size - 1


def test_validate_tells_every_fault(spoiled, capsys):
    folder, place, at = spoiled
    assert run(["validate", str(folder), "--progress", "none"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"{folder}: 2 faults"
    lines = err.splitlines()
    assert lines[0].startswith(f"error: {place}: expected xxh3 ")
    assert lines[1].startswith(f"error: {place}[{at}]: expected a typed ID in [0, ")
    assert len(lines) == 2


def test_validate_prints_some_and_counts_all(spoiled, capsys):
    folder, _, _ = spoiled
    assert run(["validate", str(folder), "--max-faults", "1"]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == f"{folder}: 2 faults"
    assert err.splitlines()[1] == "error: 1 more fault; --max-faults 2 prints them all"


def test_validate_json(spoiled, capsys):
    folder, place, at = spoiled
    assert run(["validate", str(folder), "--json", "--quiet"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["num_faults"] == 2
    assert found["faults"][1]["place"] == f"{place}[{at}]"


def test_validate_a_raw_input(capsys):
    assert run(["validate", str(KARATE)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [f"{KARATE}: sound, edges, 78 records", "  nodes  _N        34", "  edges  _N:_E:_N  78"]


def test_validate_a_raw_input_json(capsys):
    assert run(["validate", str(KARATE), "--quiet", "--json", "--weight-col", "weight"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["format"], found["num_nodes"], found["num_edges"]) == ("edges", {"_N": 34}, {"_N:_E:_N": 78})
    weight = {"name": "weight", "kind": "dense", "dtype": "float32", "item_shape": [], "optional": False, "role": "weight"}
    assert found["edge_columns"] == {"_N:_E:_N": [weight]}


def test_a_store_in_memory(tmp_path, capsys):
    import fsspec

    fs = fsspec.filesystem("memory")
    for path in STORE.rglob("*"):
        if path.is_file():
            fs.pipe_file(f"/commands/{path.relative_to(STORE)}", path.read_bytes())
    assert run(["validate", "memory://commands"]) == 0
    assert capsys.readouterr().out.startswith("memory://commands: sound\n")
    assert run(["info", "memory://commands", "--head", "1"]) == 0
    assert capsys.readouterr().out.startswith("memory://commands: graphprep-store 1, ")


def test_validate_a_faulty_input(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("0,1\n2,x\n")
    assert run(["validate", str(path), "--format", "edges"]) == 1
    assert f"error: {path}:2:3: " in capsys.readouterr().err  # a first run may say before how long kernels took


def test_validate_a_store_takes_no_format(capsys):
    assert run(["validate", str(STORE), "--format", "edges"]) == 2
    assert capsys.readouterr().err == (
        "error: metadata.json says that this is a store: raw input only takes --format\n  fix: leave that out\n"
    )


def test_convert_takes_no_store_that_lost_its_metadata(tmp_path, capsys):
    half = tmp_path / "half"
    shutil.copytree(STORE, half)
    (half / "metadata.json").unlink()
    assert run(["convert", str(half), str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == (
        f"error: {half}: this is no whole store: it has no metadata.json\n  fix: convert its raw input again\n"
    )


@pytest.mark.parametrize("command", ["info", "validate"])
def test_a_store_among_several_paths(command, tmp_path, capsys):
    store, raw = str(STORE), str(tmp_path / "raw.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "raw.csv").write_text("0,1\n")
    (tmp_path / "half" / "part-00000").mkdir(parents=True)
    for paths, message in (
        (
            [tmp_path / "half", store],
            f"{tmp_path}/half: is no whole store: it has no metadata.json, and {store} is\n  fix: name one",
        ),
        ([tmp_path / "folder", store], f"{tmp_path}/folder: is no store, and {store} is\n  fix: name one store, or raw input"),
        ([raw, store], f"{raw}: is no store, and {store} is\n"),
        ([store, store], f"{store} and {store} are stores\n  fix: name one at a time"),
    ):
        assert run([command, *map(str, paths)]) == 2
        assert capsys.readouterr().err.startswith(f"error: {message}")
    assert run([command, "nowhere", store]) == 3
    assert capsys.readouterr().err == "error: nowhere: no such file or folder\n  fix: check the spelling of the path\n"


def test_validate_a_store_that_lost_its_metadata(tmp_path, spoiled, capsys):
    folder, _, _ = spoiled
    (folder / "metadata.json").unlink()
    assert run(["validate", str(folder)]) == 3
    assert capsys.readouterr().err == (
        f"error: {folder}: there is no metadata.json, so this is no whole store\n  fix: check the path\n"
    )


# ------------------------------------------------------------------------------------------------ ids


def ids(capsys, *args, stdin=None, monkeypatch=None):
    if stdin is not None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    code = run(["ids", str(STORE), *args])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.fixture
def raw_ids():
    """The raw IDs of the first node type, by typed ID."""
    metadata = json.loads((STORE / "metadata.json").read_text())
    name = metadata["node_type"][0]
    parts = [np.load(STORE / part["path"] / "nodes" / name / "raw_ids.npy") for part in metadata["parts"]]
    return name, np.concatenate(parts).tolist(), len(metadata["node_type"])


def test_ids_from_arguments_stdin_and_file(capsys, monkeypatch, tmp_path, raw_ids):
    name, raw, _ = raw_ids
    flags = ("--from", "raw", "--to", "typed", "--type", name)
    texts = [str(one) for one in reversed(raw)]
    wanted = (0, "".join(f"{i}\n" for i in reversed(range(len(raw)))), "")
    assert ids(capsys, *texts, *flags) == wanted
    assert ids(capsys, *flags, stdin="\n".join(texts), monkeypatch=monkeypatch) == wanted
    assert ids(capsys, "-", *flags, stdin="\r\n\r\n".join(texts) + "\n", monkeypatch=monkeypatch) == wanted
    file = tmp_path / "ids.txt"
    file.write_text("\n".join(texts) + "\n")
    assert ids(capsys, *flags, "--file", str(file)) == wanted


def test_ids_tell_the_type_where_several_may_come(capsys, raw_ids):
    name, raw, num_types = raw_ids
    assert num_types > 1
    assert ids(capsys, "0", "--from", "homo", "--to", "raw") == (0, f"{name}\t{raw[0]}\n", "")
    assert ids(capsys, "0", "--from", "homo", "--to", "raw", "--type", name) == (0, f"{raw[0]}\n", "")
    assert ids(capsys, "0", "--from", "homo", "--to", "local") == (0, f"{name}\t0:0\n", "")


def test_ids_from_local(capsys, raw_ids):
    name, raw, _ = raw_ids
    assert ids(capsys, "0:0", "0:1", "--from", "local", "--to", "raw", "--type", name) == (0, f"{raw[0]}\n{raw[1]}\n", "")


def test_ids_missing(capsys, monkeypatch, raw_ids):
    name, raw, _ = raw_ids
    flags = ("--from", "raw", "--to", "typed", "--type", name)
    text = f"{raw[0]}\n\n987654321\n{raw[1]}\n99999999999999999999999\n"
    code, out, err = ids(capsys, *flags, stdin=text, monkeypatch=monkeypatch)
    assert (code, out) == (1, "")
    assert err == (
        f"error: -:3: there is no raw node ID 987654321 of type '{name}'\n  fix: leave it out, or add --missing skip or mark\n"
    )
    assert ids(capsys, *flags, "--missing", "skip", stdin=text, monkeypatch=monkeypatch) == (0, "0\n1\n", "")
    assert ids(capsys, *flags, "--missing", "mark", stdin=text, monkeypatch=monkeypatch) == (0, "0\n-1\n1\n-1\n", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["1", "x2", "--from", "homo"], "argument 2: expected an ID of decimal digits, found 'x2'"),
        (["-5", "--from", "homo"], None),
        (["--from", "local", "--type", "0", "--", "3"], "argument 1: expected PART:LOCAL, two numbers, found '3'"),
        (["--from", "local", "--type", "0", "--", "3:"], "argument 1: expected PART:LOCAL, two numbers, found '3:'"),
        (["\u0663", "--from", "homo"], "argument 1: expected an ID of decimal digits, found '\u0663'"),
    ],
)
def test_ids_that_are_none(capsys, args, message, raw_ids):
    args = [raw_ids[0] if arg == "0" else arg for arg in args]
    code, out, err = ids(capsys, "--to", "typed", *args)
    assert out == ""
    if message is None:
        assert code == 2
    else:
        assert code == 1
        assert err == f"error: {message}\n  fix: write one ID a line\n"


def test_ids_json(capsys, raw_ids):
    name, raw, _ = raw_ids
    code, out, _ = ids(
        capsys, str(raw[0]), "5555555", "--from", "raw", "--to", "local", "--type", name, "--json", "--missing", "mark"
    )
    assert code == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"from": str(raw[0]), "to": 0, "type": name, "part": 0},
        {"from": "5555555", "to": None},
    ]


def test_ids_of_edges(capsys):
    metadata = json.loads((STORE / "metadata.json").read_text())
    number, name = next((t, name) for t, name in enumerate(metadata["edge_type"]) if metadata["num_edges_per_chunk"][t][0])
    path = STORE / "part-00000" / "edges" / name.replace(":", "__") / "csc" / "edge_ids.npy"
    edge_id = int(np.load(path)[0])
    offset = sum(metadata["num_edges_per_type"][:number])
    flags = ("--edge", "--type", name, "--from", "id")
    assert ids(capsys, str(edge_id), *flags, "--to", "row") == (0, "0\n", "")
    assert ids(capsys, str(edge_id), *flags, "--to", "homo") == (0, f"{offset}\n", "")
    code, _, err = ids(capsys, "77777", *flags, "--to", "row")
    assert code == 1
    assert err.startswith(f"error: argument 1: there is no edge ID 77777 of type '{name}'\n")


def test_ids_of_no_edge_type_name_the_types(capsys):
    code, _, err = ids(capsys, "1", "--edge", "--type", "0:1", "--from", "id", "--to", "row")
    names = ", ".join(json.loads((STORE / "metadata.json").read_text())["edge_type"])
    assert code == 2
    assert (
        err
        == f"error: --type: expected 'source:relation:destination', found '0:1'\n  fix: did you mean '0:1:1'? use one of {names}\n"
    )


def test_ids_given_twice(capsys):
    code, _, err = ids(capsys, "3", "--file", "x", "--from", "homo", "--to", "typed")
    assert (code, err) == (2, "error: IDs are given as arguments and by --file\n  fix: leave out one of them\n")


def test_ids_in_blocks(capsys, monkeypatch):
    monkeypatch.setattr("graphprep.cli.stores.ids._BLOCK", 3)
    text = "\n".join(["0"] * 10)
    code, out, _ = ids(capsys, "--from", "homo", "--to", "homo", stdin=text, monkeypatch=monkeypatch)
    assert (code, len(out.splitlines())) == (0, 10)


# ------------------------------------------------------------------------------------------------ ids that are strings


@pytest.fixture(scope="module")
def names_store(tmp_path_factory):
    """Two edges between names, among them ones that a line cannot hold as they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = tmp_path_factory.mktemp("names")
    table = pa.table({"s": ["alice", ' b"', '"q"', "line\nbreak", "-1"], "d": ["bob", "é", "alice", "tab\there", "bob"]})
    pq.write_table(table, folder / "e.parquet")
    assert run(["convert", str(folder / "e.parquet"), str(folder / "store"), "--format", "edges", "--quiet"]) == 0
    return folder / "store"


def test_string_ids_there_and_back(capsys, monkeypatch, names_store):
    """What ``--to raw`` prints, ``--from raw`` reads."""

    texts = sorted(["alice", ' b"', '"q"', "line\nbreak", "-1", "bob", "é", "tab\there"], key=str.encode)
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"".join(b"%d\n" % i for i in range(8)))))
    assert run(["ids", str(names_store), "--from", "typed", "--to", "raw"]) == 0
    out = capsys.readouterr().out
    assert out.split("\n") == [
        json.dumps(text, ensure_ascii=False) if text[0] == '"' or not text.isprintable() else text for text in texts
    ] + [""]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(out.replace("\n", "\r\n\r\n").encode())))
    assert run(["ids", str(names_store), "--from", "raw", "--to", "typed"]) == 0
    assert capsys.readouterr().out == "".join(f"{i}\n" for i in range(8))


def test_string_ids_missing_and_json(capsys, names_store):
    base = ["ids", str(names_store)]
    capsys.readouterr()
    assert run([*base, "alice", "nobody", "--from", "raw", "--to", "typed"]) == 1
    assert capsys.readouterr().err == (
        "error: argument 2: there is no raw node ID 'nobody' of type '_N'\n  fix: leave it out, or add --missing skip or mark\n"
    )
    assert run([*base, "nobody", "--from", "raw", "--to", "local", "--missing", "mark"]) == 0
    assert capsys.readouterr().out == "-1\n"
    assert run([*base, "9", "2", "--from", "typed", "--to", "raw", "--missing", "mark"]) == 0
    assert capsys.readouterr().out == "\n-1\n"
    assert run([*base, '"line\\u000abreak"', "--from", "raw", "--to", "typed", "--json"]) == 0
    assert capsys.readouterr().out == '{"from": "line\\nbreak", "to": 5, "type": "_N"}\n'


@pytest.mark.parametrize(
    ("line", "message", "fix"),
    [
        (
            b'"a',
            "what begins with a double quote must be a JSON string",
            'double the backslashes in it, and write \\" for a double quote',
        ),
        (b"\xff", "an ID must be UTF-8", "convert the file to UTF-8"),
        (b'"\\ud800"', "an ID must be UTF-8", "convert the file to UTF-8"),
    ],
)
def test_string_ids_that_are_none(capsys, tmp_path, names_store, line, message, fix):
    (tmp_path / "ids.txt").write_bytes(b"alice\n" + line)
    capsys.readouterr()
    assert run(["ids", str(names_store), "--file", str(tmp_path / "ids.txt"), "--from", "raw", "--to", "typed"]) == 1
    assert capsys.readouterr().err == f"error: {tmp_path}/ids.txt:2: {message}\n  fix: {fix}\n"


def test_negative_ids(capsys, tmp_path):
    (tmp_path / "e.txt").write_text("-5 7\n7 -9\n")
    store = str(tmp_path / "store")
    assert run(["convert", str(tmp_path / "e.txt"), store, "--format", "edges", "--id-type", "int", "--quiet"]) == 0
    capsys.readouterr()
    assert run(["ids", store, "--from", "raw", "--to", "typed", "--", "-5", "7", "-9"]) == 0
    assert capsys.readouterr().out == "1\n2\n0\n"
    assert run(["ids", store, "0", "2", "--from", "typed", "--to", "raw"]) == 0
    assert capsys.readouterr().out == "-9\n7\n"
    flags = ["--from", "raw", "--to", "typed", "--missing", "mark"]
    assert run(["ids", store, *flags, "--", "-6", "-99999999999999999999", "9223372036854775808"]) == 0
    assert capsys.readouterr().out == "-1\n-1\n-1\n"
    assert run(["ids", store, *flags, "--", "-5", "--5"]) == 1
    assert capsys.readouterr().err.startswith("error: argument 2: expected an ID of decimal digits, found '--5'")


def test_large_counts_have_separators_in_notes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("sparse.txt").write_text("".join(f"{i * 1000} {i * 1000 + 1}\n" for i in range(600)))
    Path("dense.txt").write_text("".join(f"0 {i}\n" for i in range(1200)) + "1 3199\n")
    Path("names.txt").write_text("".join(f"a{i} b{i}\n" for i in range(600)))
    notes = []
    for name, flags in (("sparse", []), ("dense", ["--ids", "dense"]), ("names", ["--id-type", "string"])):
        assert run(["convert", f"{name}.txt", name, "--format", "edges", *flags]) == 0
        notes.append(capsys.readouterr().out.rstrip().replace("\n      ", " ").splitlines()[-1].split(": ", 2)[2])
    assert notes == [
        "the 1,200 IDs that occur are its nodes: --ids sparse (chosen by --ids auto)",
        "0..3199 are its nodes: --ids dense; 1,999 of them have no edge",
        "the 1,200 names that occur are its nodes",
    ]


def test_a_new_delivery_says_that_it_renumbers(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = "a raw ID may have another typed ID than in the store that was replaced"
    command = ["convert", "--nodes", "p=p.csv", "--edges", "p:r:p=e.csv", "store", "--overwrite"]

    def deliver(nodes, edges):
        Path("p.csv").write_text("id\n" + "".join(f"{node}\n" for node in nodes))
        Path("e.csv").write_text("src,dst\n" + "".join(f"{src},{dst}\n" for src, dst in edges))
        assert run(command) == 0
        return " ".join(capsys.readouterr().out.split())

    assert words not in deliver([5, 7, 9], [(5, 7)])
    assert words not in deliver([5, 7, 9], [(5, 7)])  # the same again
    assert f"node type 'p': {words}; what is to last goes by raw IDs" in deliver([3, 5, 7, 9], [(5, 7)])
    assert words in deliver([3, 5, 7, 11], [(7, 11)])  # as many, but others
    assert words in deliver([0, 1, 2], [(0, 1)])
    assert words not in deliver([0, 1, 2, 3], [(0, 1)])  # raw IDs are the typed ones, before and after
