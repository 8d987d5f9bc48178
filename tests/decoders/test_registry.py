"""Decoders by name and class, their options, and the choice of a format."""

from __future__ import annotations

import dataclasses
import json
import shlex
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphprep
from graphprep.cli.main import run
from graphprep.convert.read.plan import plan_input
from graphprep.decoders import registry
from graphprep.decoders.adapter import LineDecoderAdapter
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.registry import (
    find_decoder,
    known_decoders,
    load_class,
    load_options,
    make_decoder,
    option_types,
    sniff,
)
from graphprep.model.errors import DataError, UsageError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Sniffed, Sources
from graphprep.storage.read.schemas import load_schema
from graphprep.storage.read.urls import Storage

SAMPLES = Path(__file__).parents[2] / "sample_data"
OURS = tuple(registry._BUILT_IN)


@dataclasses.dataclass(frozen=True)
class Mine:
    """A decoder that another package registers."""

    size: int = 3
    ratio: float | None = None
    loud: bool = False
    tags: tuple[str, ...] = ()
    name: ClassVar[str] = "mine"

    def plan(self, storage, urls):
        return Sources(())

    def decode(self, block, places=False):
        raise NotImplementedError

    @staticmethod
    def sniff(file):
        return Sniffed("mine", 0.97) if file.head.startswith(b"MINE") else None


class Foreign:
    """A decoder as people write them for DeepGNN."""

    def __init__(self, separator: str = ",", base: int = 0):
        self.separator, self.base = separator, base

    def decode(self, line):
        yield int(line) + self.base, -1, 0, 1.0, None, None, []


class NoDecoder:
    pass


HERE = f"{__name__}:"


@pytest.fixture
def registered(monkeypatch):
    points = []
    monkeypatch.setattr(registry, "_registered", lambda: points)

    def add(name, value):
        points.append(EntryPoint(name, value, registry.GROUP))

    return add


def message(function, *args) -> str:
    with pytest.raises(UsageError) as caught:
        function(*args)
    assert caught.value.exit_code == 2
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ names


def test_ours_are_known_and_found(registered):
    assert known_decoders() == OURS
    assert [find_decoder(name).name for name in OURS] == list(OURS)


def test_ours_are_registered_like_a_strangers():
    assert set(OURS) <= {point.name for point in registry._registered()}


def test_a_strangers_decoder_is_found(registered, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "strange", __import__("types").SimpleNamespace(Mine=Mine))
    registered("mine", "strange:Mine")
    registered("json", "graphprep.decoders.deepgnn.json_lines:JsonDecoder")
    assert known_decoders() == (*OURS, "mine")
    assert find_decoder("mine") is Mine
    assert find_decoder("json") is JsonDecoder


def test_unknown_name(registered):
    registered("mine", "strange:Mine")
    assert message(find_decoder, "tvs") == (
        "no decoder named 'tvs'\n  fix: did you mean 'tsv'? use one of " + ", ".join(OURS) + ", mine, "
        "or install a package that registers it under 'graphprep.decoders'"
    )


def test_two_decoders_of_one_name(registered):
    registered("json", "strange:Json")
    assert message(find_decoder, "json") == (
        "several decoders are named 'json': graphprep.decoders.deepgnn.json_lines:JsonDecoder, strange:Json\n"
        "  fix: choose one with --decoder package.module:Class"
    )


def test_a_decoder_that_cannot_be_loaded(registered):
    registered("mine", "no_such_module:Mine")
    assert message(find_decoder, "mine") == (
        "decoder 'mine' cannot be loaded: No module named 'no_such_module'\n"
        "  fix: install what it needs, or reinstall its package"
    )


# ------------------------------------------------------------------------------------------------ classes


def test_load_class():
    assert load_class("graphprep.decoders.deepgnn.json_lines:JsonDecoder") is JsonDecoder


def test_load_class_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_own_decoder.py").write_text("class Mine:\n    def decode(self, line): ...\nclass Other: ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(__import__("sys").path))
    assert load_class("my_own_decoder:Mine").__name__ == "Mine"
    assert message(load_class, "my_own_decoder:Nobody") == (
        "--decoder my_own_decoder:Nobody: module 'my_own_decoder' has no class 'Nobody'\n  fix: use one of Mine"
    )


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("json", "--decoder must be package.module:Class, found 'json'\n  fix: name the module and the class"),
        (
            "no_such_module:A",
            "--decoder no_such_module:A: module 'no_such_module' cannot be imported: No module named 'no_such_module'\n"
            "  fix: install it, or run in the folder that holds it",
        ),
        (
            "graphprep.decoders.deepgnn.json_lines:decode",
            "--decoder graphprep.decoders.deepgnn.json_lines:decode: module 'graphprep.decoders.deepgnn.json_lines' has no class 'decode'\n"
            "  fix: did you mean 'JsonDecoder'?",
        ),
        ("math:pi", "--decoder math:pi: module 'math' has no class 'pi'\n  fix: name a class with a method decode"),
    ],
)
def test_classes_that_cannot_be_loaded(path, text):
    assert message(load_class, path) == text


# ------------------------------------------------------------------------------------------------ options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Mine()),
        ({"size": "5", "ratio": "0.5", "loud": "true", "tags": ["a", "b"]}, Mine(5, 0.5, True, ("a", "b"))),
        ({"size": 5, "ratio": 1, "loud": False, "tags": "a"}, Mine(5, 1.0, False, ("a",))),
        ({"size": None, "ratio": None}, Mine()),
        ({"mine": {"size": 7, "ratio": 2}, "ratio": 3, "json": {"strict": True}}, Mine(7, 3.0)),
    ],
)
def test_options_are_turned_into_what_fields_say(options, expected):
    assert make_decoder(Mine, options) == expected


@pytest.mark.parametrize(
    ("cls", "options", "text"),
    [
        (Mine, {"size": "x"}, "--size must be an integer, found 'x'\n  fix: correct the value"),
        (Mine, {"size": 1.5}, "--size must be an integer, found 1.5\n  fix: correct the value"),
        (Mine, {"size": True}, "--size must be an integer, found True\n  fix: correct the value"),
        (Mine, {"ratio": "much"}, "--ratio must be a number, found 'much'\n  fix: correct the value"),
        (Mine, {"loud": "maybe"}, "--loud must be true or false, found 'maybe'\n  fix: correct the value"),
        (
            Mine,
            {"sise": 1},
            "decoder 'mine' has no option 'sise'\n  fix: did you mean 'size'? its options are: size, ratio, loud, tags",
        ),
        (
            JsonDecoder,
            {"temporal": True},
            "--temporal belongs to edgelist, not to json\n  fix: leave it out, or choose --format edgelist",
        ),
        (
            JsonDecoder,
            {"drop_column": ["a"]},
            "--drop-column belongs to tables (--nodes, --edges), edges, arrays, mtx, metis and triples, not to json\n  fix: leave it out, or choose --format edges",
        ),
        (
            JsonDecoder,
            {"delimiter": ";"},
            "--delimiter belongs to tables (--nodes, --edges), edgelist, edges, triples and neo4j, not to json\n  fix: leave it out, or choose --format edgelist",
        ),
        (JsonDecoder, {"id_col": "k"}, "--id-col belongs to --nodes and --edges, not to json\n  fix: leave it out"),
        (
            JsonDecoder,
            {"weight_dtype": "float16"},
            "--weight-dtype must be one of float32, float64, found 'float16'\n  fix: did you mean 'float64'?",
        ),
    ],
)
def test_options_that_do_not_fit(cls, options, text):
    assert message(make_decoder, cls, options) == text


def test_singular_names_and_lists():
    edges = make_decoder(find_decoder("edges"), {"column": ["a=int8", "b=binary"], "drop_column": "c", "src_col": 1})
    assert (edges.columns, edges.drop_columns, edges.src_col) == (("a=int8", "b=binary"), ("c",), "1")
    lists = {"default_node_feature_types": ["int32", None, "float32"], "default_node_feature_lens": [[3], None, [3, 0]]}
    edgelist = make_decoder(find_decoder("edgelist"), lists)
    assert edgelist.default_node_feature_types == "int32,-,float32"
    assert edgelist.default_node_feature_lens == "3,-,3/0"


def test_a_class_for_deepgnn_is_adapted():
    decoder = make_decoder(Foreign, {"base": "5", "weight_dtype": "float64"})
    assert isinstance(decoder, LineDecoderAdapter)
    assert (decoder.decoder.base, decoder.decoder.separator, decoder.weight_dtype) == (5, ",", "float64")
    name = registry.decoder_name(Foreign)
    assert message(make_decoder, Foreign, {"foo": 1}) == (
        f"decoder {name!r} has no option 'foo'\n  fix: its options are: separator, base, weight_dtype"
    )
    assert message(make_decoder, NoDecoder, {}) == (
        f"{registry.decoder_name(NoDecoder)} is no decoder: it has neither decode nor read\n"
        "  fix: see graphprep.model.protocols.Decoder"
    )


# ------------------------------------------------------------------------------------------------ option files


def test_options_of_a_file(tmp_path):
    value = {"delimiter": ";", "edgelist": {"temporal": True, "delimiter": "|"}, "json": {"strict": True}}
    texts = {
        "a.json": json.dumps(value),
        "b.yaml": "delimiter: ;\nedgelist:\n  temporal: true\n  delimiter: '|'\njson: {strict: true}\n",
    }
    with Storage() as storage:
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
            url = str(tmp_path / name)
            assert load_options(storage, url) == value
            assert load_options(storage, url, "edgelist") == {"delimiter": ";", "temporal": True}
            assert load_options(storage, url, "json") == {"delimiter": ";", "strict": True}
        (tmp_path / "empty.yaml").write_text("# nothing\n")
        assert load_options(storage, str(tmp_path / "empty.yaml"), "json") == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"temporal": 1}', "PATH: temporal: expected true or false or null, found 1"),
        ('{"json": {"temporal": true}}', "PATH: json: unknown key 'temporal'"),
        ("edges: {index_base: 2}", "PATH: edges.index_base: expected one of 0, 1, null, found 2"),
        ("default_node_type: -1", "PATH: default_node_type: expected an integer from 0 to 2147483647, found -1"),
        ("[1]", "PATH: expected an object or null, found a list"),
        ('{"json": }', "PATH:1:10: invalid JSON: Expecting value"),
        ('{"json": 1, "json": 2}', "PATH: json: the key stands twice in its object"),
        ("a: [1\nb", "PATH:2:2: invalid YAML: expected ',' or ']', but got '<stream end>'\n  fix: write 'key: value' lines, or a JSON object"),
    ],
)  # fmt: skip
def test_option_files_that_do_not_fit(tmp_path, text, expected):
    path = tmp_path / "options"
    path.write_text(text)
    with Storage() as storage, pytest.raises(DataError) as caught:
        load_options(storage, str(path))
    assert str(caught.value).replace(str(path), "PATH") == expected


def test_the_schema_lists_every_option():
    schema = load_schema("decoder-options")["properties"]
    flat = set()
    for name in OURS:
        listed = set(schema[name]["properties"]) - {"column", "drop_column"}
        assert listed == set(option_types(find_decoder(name))), name
        flat |= set(schema[name]["properties"])
    assert flat - {"float_columns"} == set(schema) - set(OURS)


# ------------------------------------------------------------------------------------------------ sniffing


def sniffed(tmp_path, data: bytes, name="input") -> Sniffed:
    path = tmp_path / name
    path.write_bytes(data)
    with Storage() as storage:
        return sniff(storage, [str(path)])


@pytest.mark.parametrize(
    ("data", "decoder"),
    [
        (b'{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": []}\n', "json"),
        (b"0,-1,1,.5,int32,3,1,1,1\n0,0,1,.5\n", "edgelist"),
        (b"0\t0\t1.0\tf:1 2\t1,0,0.5|2,0,1\n", "tsv"),
        (b"# a graph\n1 2\n2 3\n", "edges"),
        (b"\xef\xbb\xbf1\t2\n2\t3\n", "edges"),
        (b"src,dst\n1,2\n", "edges"),
        (b"1,0,2,0.5\n3,0,4,0.5\n", "edges"),
        (b"1,0,2,0.5\n" * 60 + b"1,-1,0,0.5\n", "edgelist"),
        (b"alice bob\nbob carol\n", "edges"),
        (b"", "edges"),
        (b"\n \n", "edges"),
        (b"src,dst\n", "edges"),
        (b"# made by a job\n\nhead\trelation\ttail", "edges"),
    ],
)
def test_sniff_files(tmp_path, data, decoder):
    found = sniffed(tmp_path, data)
    assert found.decoder == decoder
    assert " ".join(found.flags).startswith(f"--format {decoder}")


def test_what_is_found_is_what_is_read(tmp_path):
    """Options that a bid states hold for the run, too; the user's win."""
    for data, flags, options in (
        ("1;-1;0;1.0\n2;-1;0;1\n1;0;2;1\n", "--format edgelist --delimiter ';'", {}),
        ("ann bob\nbob cy\n", "--format edges --id-type string", {}),
        ("ann bob\nbob cy\n", "--format edges --id-type string", {"id_type": "auto"}),
    ):
        path = tmp_path / "input"
        path.write_text(data)
        told = Told()
        found = plan_input([str(path)], ConvertOptions(decoder_options=options), Storage(), told)
        assert told.texts[0] == f"format: {found.format} (sniffed; {flags} repeats this choice)"
        wanted = {"delimiter": ";"} if "edgelist" in flags else {"id_type": "string", **options}
        assert {name: getattr(found.decoder, name) for name in wanted} == wanted


def test_what_every_format_states_is_an_option_of_its_decoder(tmp_path):
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "e.parquet")
    for url in (tmp_path / "e.parquet", *(path for path in SAMPLES.rglob("*") if path.is_file())):
        with Storage() as storage:
            try:
                found = sniff(storage, [str(url)])
            except (UsageError, DataError):
                continue
        if not hasattr(find_decoder(found.decoder), "read_config"):
            make_decoder(find_decoder(found.decoder), found.options)


def test_four_numbers_are_edges_and_may_be_an_edgelist(tmp_path):
    path = tmp_path / "input"
    path.write_text("1,0,2,0.5\n3,0,4,0.5\n")
    told = Told()
    plan_input([str(path)], ConvertOptions(), Storage(), told)
    assert told.texts == [
        "format: edges (sniffed; --format edges repeats this choice; --format edgelist reads src,type,dst,weight)"
    ]


@dataclasses.dataclass
class Told:
    """A reporter that keeps what it is told."""

    texts: list[str] = dataclasses.field(default_factory=list)

    def message(self, text):
        self.texts.append(text)


def test_sniff_looks_at_the_first_file_that_holds_something(tmp_path):
    sniffed(tmp_path, b"", "a")
    sniffed(tmp_path, b"0\t0\t1.0\tf:1 2\n", "b")
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path)]).decoder == "tsv"
        assert sniff(storage, [str(tmp_path / "a"), str(tmp_path / "b")]).decoder == "tsv"
        assert sniff(storage, [str(tmp_path / "*")]).decoder == "tsv"


def test_sniff_looks_beyond_files_with_a_header_alone(tmp_path):
    """As jobs write them where a part of the table has no row."""
    for name in ("a", "b"):
        sniffed(tmp_path, b"head\trelation\ttail\n", name)
    assert sniffed(tmp_path, b"head\trelation\ttail\n" + b"x\tknows\ty\n" * 9, "c").decoder == "triples"
    with Storage() as storage:
        assert sniff(storage, [str(tmp_path)]).decoder == "triples"
        assert sniff(storage, [str(tmp_path / "a"), str(tmp_path / "b")]).decoder == "edges"


def test_sniff_a_chunked_graph(tmp_path):
    metadata = {"graph_name": "g", "node_type": ["a"], "edge_type": [], "num_nodes_per_type": [3], "edges": {}}
    (tmp_path / "metadata.json").write_text(json.dumps(metadata))
    (tmp_path / "a.csv").write_text("1 2\n")
    with Storage() as storage:
        for url in (str(tmp_path), str(tmp_path / "metadata.json")):
            assert sniff(storage, [url]).decoder == "chunked"
            assert sniff(storage, [url]).flags == ("--format", "chunked")


def test_telling_formats_loads_no_decoder():
    """What tells all samples apart is light: the modules of the table, and none that decode."""
    script = """
import sys
from pathlib import Path
from graphprep.decoders.registry import sniff
from graphprep.model.errors import GraphprepError
from graphprep.storage.read.urls import Storage
found = set()
with Storage() as storage:
    for path in filter(Path.is_file, Path(sys.argv[1]).rglob("*")):
        try:
            found.add(sniff(storage, [str(path)]).decoder)
        except GraphprepError:
            pass
prefix = "graphprep.decoders."
print(*sorted(name.removeprefix(prefix) for name in sys.modules if name.startswith(prefix)))
print(*({"numba", "pyarrow", "graphprep.kernels"} & sys.modules.keys()))
print(*sorted(found))
"""
    run = subprocess.run([sys.executable, "-c", script, str(SAMPLES)], capture_output=True, text=True, check=True)
    decoders, libraries, found = run.stdout.splitlines()
    assert set(found.split()) >= {"edgelist", "json", "tsv", "edges", "chunked", "graph", "neo4j"}
    assert {name.partition(".")[0] for name in decoders.split()} == {"looks", "registry"}
    assert libraries == ""


def test_sniff_a_strangers_format(tmp_path, registered, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "strange", __import__("types").SimpleNamespace(Mine=Mine))
    registered("mine", "strange:Mine")
    registered("gone", "no_such_module:Gone")
    assert sniffed(tmp_path, b"MINE 1").decoder == "mine"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            b"a b c\nd e f\n",
            "PATH: cannot tell the format\n  fix: if these are edges of names, such as 'a' to 'b' (and 'c'), add --id-type string; "
            f"else name it with --format: {', '.join(OURS)}; a list of triples takes --format triples, a table --nodes or --edges",
        ),
        (
            b"2024-01-31,7,9\n2024-02-01,9,7\n",
            "PATH: cannot tell the format\n  fix: name the columns of both ends with --src-col and --dst-col, by position "
            f"(0: '2024-01-31' 1: '7' 2: '9'); else name it with --format: {', '.join(OURS)}; "
            "a list of triples takes --format triples, a table --nodes or --edges",
        ),
        (
            b"hello\n",
            f"PATH: cannot tell the format\n  fix: name it with --format: {', '.join(OURS)}; an edge list of names takes "
            "--format edges --id-type string, a list of triples --format triples, a table --nodes or --edges",
        ),
        (
            b"# made by hand\nsrc;dst;w\n1;2;0.5\n",
            f"PATH: cannot tell the format\n  fix: name it with --format: {', '.join(OURS)}; an edge list of names takes "
            "--format edges --id-type string, a list of triples --format triples, a table --nodes or "
            "--edges; columns between ';' take --format edges --delimiter ';'",
        ),
        (b"x,y,z\n", "PATH: cannot tell the format: it may be edges\n  fix: name it with --format: edges"),
        (
            b"1 2\n\x00\x01",
            "PATH:2:1: this is binary data: found byte 0x00\n"
            "  fix: name text files, Parquet files of edges, or the folder of a chunked graph",
        ),
    ],
)
def test_what_cannot_be_sniffed(tmp_path, data, text):
    with pytest.raises((UsageError, DataError)) as caught:
        sniffed(tmp_path, data)
    assert str(caught.value).replace(str(tmp_path / "input"), "PATH") == text


def test_two_formats_that_are_equally_likely(tmp_path, monkeypatch):
    monkeypatch.setattr(Mine, "sniff", staticmethod(lambda file: Sniffed("mine", 0.9)))
    monkeypatch.setattr("graphprep.decoders.registry.known_decoders", lambda: ("json", "mine"))
    monkeypatch.setattr("graphprep.decoders.registry.find_decoder", {"json": JsonDecoder, "mine": Mine}.get)
    with pytest.raises(UsageError) as caught:
        sniffed(tmp_path, b'{"node_id": 0}')
    assert str(caught.value).replace(str(tmp_path / "input"), "PATH") == (
        "PATH: cannot tell the format: it may be json or mine\n  fix: name it with --format: json, mine"
    )


@pytest.mark.parametrize(("directed", "flags"), [("true", ""), ("false", " --undirected")])
def test_a_folder_of_graphalytics_is_told_its_flags(tmp_path, directed, flags):
    (tmp_path / "g.v").write_text("1\n2\n7\n")
    (tmp_path / "g.e").write_text("1 2 0.5\n2 7 1.5\n")
    properties = f"# made by hand\ngraph.g.directed = {directed}\ngraph.g.edge-properties.names = weight\n"
    (tmp_path / "g.properties").write_text(properties)
    nodes, edges = tmp_path / "g.v", tmp_path / "g.e"
    with Storage() as storage, pytest.raises(UsageError) as caught:
        sniff(storage, [str(tmp_path)])
    assert caught.value.fix == (
        f"give --nodes v={nodes} --edges v:e:v={edges} --delimiter ' ' --header no --weight-col 2{flags}"
    )
    command = shlex.split(caught.value.fix.removeprefix("give "))
    assert run(["convert", *command, str(tmp_path / "out")]) == 0
    graph = graphprep.load(tmp_path / "out")
    assert (graph.num_nodes(), graph.num_edges()) == (3, 4 if flags else 2)
    assert sorted(set(graph.column("v:e:v", "weight").tolist())) == [0.5, 1.5]
