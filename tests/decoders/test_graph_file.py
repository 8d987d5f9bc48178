"""Graph configs in files: what they say, what is refused, and that they can be written."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from graphprep.decoders.configs.graph_file import GraphFile, dump_graph, graph_to_json, load_graph
from graphprep.decoders.registry import bid_of, sniff
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.storage.read.schemas import find_json_errors, load_schema
from graphprep.storage.read.urls import Storage
from graphprep.storage.read.yaml_files import parse_yaml, yaml_text

SHOP = """
# A shop.
graph_name: shop
id_type: auto
nodes:
  - type: user
    files: users.csv        # relative to this file
    id_col: user_id
    columns: {age: float32}
    header: yes
  - type: item
    files: [items/a.parquet, items/b.parquet]
    keep: []
  - type: item
    files: more.csv
    declares: no
  - type: 7
    num_nodes: 3
edges:
  - type: user:buys:item
    files: buys/*.csv
    src_col: 0
    dst_col: item
    time_col: when
    time_unit: ms
    "null": [NA, -1]
  - {src_type: user, relation_col: kind, dst_type: user, files: "s3://bucket/likes.csv", quote: false}
node_data:
  - {type: user, name: feat, file: feat.npy}
labels: [user:class]
splits: user:0.8/0.1/0.1
"""


def load(tmp_path, text, name="graph.yaml"):
    path = tmp_path / name
    path.write_text(text)
    with Storage() as storage:
        return load_graph(storage, str(path))


def test_a_config_says_which_files_are_which_tables(tmp_path):
    place = str(tmp_path / "graph.yaml")
    assert load(tmp_path, SHOP) == GraphConfig(
        nodes=(
            NodeTable(
                "user",
                TableConfig(("users.csv",), header="yes", columns=(("age", "float32"),), place=f"{place}: nodes[0]"),
                id_col="user_id",
            ),
            NodeTable("item", TableConfig(("items/a.parquet", "items/b.parquet"), kept=(), place=f"{place}: nodes[1]")),
            NodeTable("item", TableConfig(("more.csv",), place=f"{place}: nodes[2]"), declares=False),
            NodeTable("7", TableConfig(place=f"{place}: nodes[3]"), num_nodes=3),
        ),
        edges=(
            EdgeTable(
                "user",
                "buys",
                "item",
                TableConfig(("buys/*.csv",), nulls=("NA", "-1"), place=f"{place}: edges[0]"),
                src_col="0",
                dst_col="item",
                time_col="when",
                time_unit="ms",
            ),
            EdgeTable(
                "user",
                None,
                "user",
                TableConfig(("s3://bucket/likes.csv",), quote=False, place=f"{place}: edges[1]"),
                relation_col="kind",
            ),
        ),
        node_data=(DataArray("user", "feat", "feat.npy", place=f"{place}: node_data[0]"),),
        graph_name="shop",
        id_type="auto",
        labels=("user:class",),
        splits=("user:0.8/0.1/0.1",),
        base=str(tmp_path),
        place=place,
    )


def test_json_says_the_same(tmp_path):
    as_json = load(tmp_path, json.dumps(parse_yaml(SHOP.encode(), "p")), "graph.json")
    assert graph_to_json(as_json)["edges"][0]["files"] == "buys/*.csv"
    assert as_json.nodes[0].table.columns == (("age", "float32"),)


@pytest.mark.parametrize(
    ("url", "base"),
    [("graph.yaml", ""), ("/graph.yaml", "/"), ("a/b/graph.yaml", "a/b"), ("s3://bucket/graph.yaml", "s3://bucket"), ("-", "")],
)
def test_relative_paths_start_from_the_configs_folder(url, base):
    from graphprep.decoders.configs.graph_file import folder_of

    assert folder_of(url) == base


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nodes: [", "PATH:1:9: invalid YAML: "),
        ("a: 1\n\na: 2\n", "PATH:3:1: invalid YAML: key 'a' stands twice in its object"),
        ("nodes: &x []\nedges: *x\n", "PATH:2:8: invalid YAML: aliases are not read"),
        ("{}", "PATH: neither nodes nor edges are listed\n  fix: list tables below 'nodes' and 'edges'"),
        ("- a\n", "PATH: expected an object, found a list"),
        ("nodse: []\n", "PATH: unknown key 'nodse'\n  fix: did you mean 'nodes'?"),
        ("nodes: [{type: a, file: b}]", "PATH: nodes[0]: unknown key 'file'\n  fix: did you mean 'files'?"),
        ("nodes: [{type: a, xyz: b}]", "PATH: nodes[0]: unknown key 'xyz'"),
        ("nodes: [{type: a, files: 3}]", "PATH: nodes[0].files: expected a path or a list of paths, found 3"),
        ("nodes: {a: b.csv}", "PATH: nodes: expected a list, found an object"),
        (
            "nodes: [{files: a}]",
            "PATH: nodes[0]: exactly one of the keys 'type' and 'type_col' must be there\n  fix: name the node type",
        ),
        (
            "nodes: [{type: a, files: b, num_nodes: 2}]",
            "PATH: nodes[0]: 'num_nodes' is for types without files\n  fix: leave out one of 'files' and 'num_nodes'",
        ),
        ("edges: [{type: a:b:c}]", "PATH: edges[0]: key 'files' is missing"),
        (
            "edges: [{type: a:b, files: x}]",
            "PATH: edges[0].type: expected 'source:relation:destination', found 'a:b'\n"
            "  fix: write src:rel:dst; a ':' inside a name is %3A",
        ),
        (
            "edges: [{type: a:b:c, src_type: a, files: x}]",
            "PATH: edges[0]: 'type' and 'src_type' say the same thing\n  fix: leave out one of the two",
        ),
        (
            "edges: [{src_type: a, dst_type: b, files: x}]",
            "PATH: edges[0]: exactly one of a relation's name and 'relation_col' must be there\n"
            "  fix: write 'type: src:rel:dst', or 'src_type', 'relation_col' and 'dst_type'",
        ),
        ("id_type: integer\nnodes: []", 'PATH: id_type: expected one of int, uint, string, auto, null, found "integer"'),
        ("node_data: [{type: a, name: b}]\nnodes: []", "PATH: node_data[0]: key 'file' is missing"),
    ],
)
def test_faults_have_a_place_and_a_remedy(tmp_path, text, message):
    with pytest.raises(DataError) as caught:
        load(tmp_path, text)
    assert str(caught.value).replace(str(tmp_path / "graph.yaml"), "PATH").startswith(message)


def test_several_configs_are_refused(tmp_path):
    with Storage() as storage, pytest.raises(UsageError, match="a graph config is one file, found 2"):
        GraphFile().read_config(storage, ("a.yaml", "b.yaml"))


@pytest.mark.parametrize(
    "text", [SHOP, '{"graph_name": "x",\n "edges": [\n{"type": "a:b:c", "files": "x"}]}', "---\nnodes:\n- type: a\n"]
)
def test_configs_are_known_by_their_keys(tmp_path, text):
    path = tmp_path / "anything"
    path.write_text(text)
    with Storage() as storage:
        assert sniff(storage, [str(path)]).decoder == "graph"


def test_every_key_of_the_schema_is_known():
    from graphprep.model.protocols import SniffedFile

    for key in load_schema("graph")["properties"]:
        found = bid_of("graph", SniffedFile("x", f"{key}: 1\nnodes: 2\n".encode(), True))
        assert found is not None
        assert found.confidence == 0.9
    other = bid_of("graph", SniffedFile("x", b"nodes: 1\nother: 2\n", True))
    assert other is not None
    assert other.confidence < 0.5


@pytest.mark.parametrize("text", ['{"nodes": 1}\n{"nodes": 2}\n', "nodes,edges\n1,2\n", "nodes:3\n", "x: 1\n"])
def test_other_files_are_not_taken_for_configs(text):
    from graphprep.model.protocols import SniffedFile

    assert bid_of("graph", SniffedFile("x", text.encode(), True)) is None


def test_every_key_of_the_schema_is_read_and_written():
    """A config with every field set has every key of the schema, and fits it."""
    table = TableConfig(
        ("f", "g"),
        "csv",
        ";",
        "no",
        ("a", "b"),
        True,
        "\\",
        "#",
        ("NA",),
        (("a", "int8"),),
        (("a", "c"),),
        ("b",),
        ("a",),
        "string",
        "|",
    )
    config = GraphConfig(
        nodes=(
            NodeTable("n", table, id_col="a", row_ids=True, space="s", weight_col="w", declares=True),
            NodeTable(None, table, type_col="t", type_delimiter=";"),
            NodeTable("m", num_nodes=3),
        ),
        edges=(
            EdgeTable("n", "r", "m", table, None, "a", "b", None, None, "w", "t", "s", "csr"),
            EdgeTable(None, None, None, table, "rel", src_space="s", dst_space="s2"),
            EdgeTable("n", None, "m", table, "rel"),
            EdgeTable(None, "r", None, table, None),
        ),
        node_data=(DataArray("n", "x", "f", "i", "c"),),
        edge_data=(DataArray("n:r:m", "x", "f", "i", "c"),),
        graph_name="g",
        id_space="global",
        id_type="auto",
        columns=(("a", "int8"),),
        dropped=("x",),
        labels=("n:a",),
        splits=("n:b",),
        categories=("n:a",),
        seeds=("n=f",),
    )
    value = graph_to_json(config)
    assert list(find_json_errors(value, "graph", "p")) == []
    schema = load_schema("graph")
    assert set(value) == set(schema["properties"]) - {"comments"}  # which the config itself has not
    for key, name in (("nodes", "nodes"), ("edges", "edges"), ("node_data", "data")):
        written = set().union(*value[key])
        assert written == set(schema["$defs"][name]["properties"])


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
tables = st.builds(
    TableConfig,
    files=st.lists(names, max_size=3).map(tuple),
    header=st.sampled_from(["auto", "yes", "no"]),
    names=st.none() | st.lists(names, min_size=1, max_size=3).map(tuple),
    quote=st.none() | st.booleans(),
    nulls=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    columns=st.dictionaries(names, names, max_size=3).map(lambda found: tuple(found.items())),
    kept=st.none() | st.lists(names, max_size=3).map(tuple),
)


@given(
    st.lists(st.builds(NodeTable, type=names, table=tables, id_col=st.none() | names), min_size=1, max_size=3),
    st.none() | names,
)
def test_what_is_dumped_reads_back(tmp_path_factory, nodes, name):
    config = GraphConfig(nodes=tuple(nodes), graph_name=name)
    text = dump_graph(config, {"": ["a comment: [", "b"], "nodes[0]": ["# ?"]})
    assert text.startswith("# a comment: [\n# b\n")
    folder = tmp_path_factory.mktemp("dump")
    (folder / "g.yaml").write_text(text, newline="")
    with Storage() as storage:
        found = load_graph(storage, str(folder / "g.yaml"))
    assert graph_to_json(found) == graph_to_json(config)
    assert found.graph_name == name


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
def test_any_value_reads_back(value):
    assert parse_yaml(f"key: {yaml_text(value, width=20, indent='   ')}\n".encode(), "p") == {"key": value}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_texts_are_texts_to_other_readers_too(text):
    assert yaml.safe_load(f"key: {yaml_text(text)}\n") == {"key": text} or yaml_text(text) == text


def test_plain_values_are_those_of_yaml_1_2():
    text = "{a: yes, b: 1:2:3, c: 2020-01-01, d: 007, e: 7, f: 1e3, g: true, h: ~, i: off, j: -0, k: 0x1f, l: 1_000}"
    assert parse_yaml(text.encode(), "p") == {
        "a": "yes", "b": "1:2:3", "c": "2020-01-01", "d": "007", "e": 7, "f": 1000.0, "g": True, "h": None, "i": "off", "j": 0,
        "k": "0x1f", "l": "1_000",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        *(
            (f"a: {tag} x", "p:1:4", "invalid YAML: tags are not read")
            for tag in ("!!int", "!!timestamp", "!!binary", "!!set", "!x")
        ),
        ("a: &b 1\nc: *b", "p:2:4", "invalid YAML: aliases are not read"),
        (f"a: {'9' * 5000}", "p:1:4", "invalid YAML: an integer has too many digits"),
        ('a: "\\uD800"', "p:1:4", "invalid YAML: an escape stands for no character"),
        ('"\\uD800": 1', "p:1:1", "invalid YAML: an escape stands for no character"),
        ('a: "\\U00110000"', "p", "invalid YAML: chr() arg not in range(0x110000)"),
    ],
)
def test_what_no_yaml_of_plain_values_has(text, place, message):
    with pytest.raises(DataError) as caught:
        parse_yaml(text.encode(), "p")
    assert (caught.value.place, caught.value.message) == (place, message)


def test_more_nodes_than_64_bits_count(tmp_path):
    text = f"nodes:\n- type: user\n  num_nodes: 1{'0' * 30}\nedges:\n- {{type: user:f:user, files: f.csv}}\n"
    with pytest.raises(DataError) as caught:
        load(tmp_path, text)
    assert caught.value.message == f"expected an integer <= {2**63 - 1}, found 1{'0' * 30}"
