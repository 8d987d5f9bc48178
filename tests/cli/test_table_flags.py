"""``--nodes``, ``--edges`` and the flags that go with them: the graph config that they make."""

import pytest

from graphprep.cli.main import run
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.options.convert import ConvertOptions


class Asked(Exception):
    """Ends the command where the library would begin."""


@pytest.fixture
def asked(monkeypatch):
    """Return what a command line asks of the library."""
    calls = []

    def catch(*given, **named):
        calls.append([*given, *named.values()])
        raise Asked

    for name in ("convert", "info", "validate"):
        monkeypatch.setattr(f"graphprep.api.{name}", catch)

    def ask(*args):
        assert run([*args]) == 70
        return calls.pop()

    return ask


def graph_of(asked, *args) -> GraphConfig:
    call = asked("convert", "out", *args)
    assert call[:2] == [[], "out"]
    return call[2].graph


def test_tables_by_type(asked):
    found = graph_of(
        asked,
        *("--nodes", "user=users.csv", "--nodes", "item=items/*.parquet", "--nodes", "user=more=users.csv"),
        *("--edges", "user:buys:item=buys.csv", "--edges", "user:buys:shop=s.csv"),
    )
    assert found == GraphConfig(
        nodes=(
            NodeTable("user", TableConfig(("users.csv", "more=users.csv"), place="--nodes user=users.csv")),
            NodeTable("item", TableConfig(("items/*.parquet",), place="--nodes item=items/*.parquet")),
            NodeTable("shop", TableConfig(place="node type 'shop'")),
        ),
        edges=(
            EdgeTable("user", "buys", "item", TableConfig(("buys.csv",), place="--edges user:buys:item=buys.csv")),
            EdgeTable("user", "buys", "shop", TableConfig(("s.csv",), place="--edges user:buys:shop=s.csv")),
        ),
    )


def test_names_are_percent_encoded(asked):
    found = graph_of(asked, "--nodes", "a%3Ab%25=f.csv", "--edges", "a%3Ab%25:r%3A:x=e.csv")
    assert [node.type for node in found.nodes] == ["a:b%", "x"]
    assert (found.edges[0].src_type, found.edges[0].relation, found.edges[0].dst_type) == ("a:b%", "r:", "x")
    assert found.edges[0].table.place == "--edges a%3Ab%25:r%3A:x=e.csv"


def test_flags_hold_for_all_or_for_a_type(asked):
    found = graph_of(
        asked,
        *(
            "--nodes",
            "user=u.csv",
            "--nodes",
            "item=i.csv",
            "--edges",
            "user:buys:item=b.csv",
            "--edges",
            "user:likes:item=l.csv",
        ),
        *("--id-col", "key", "--id-col", "user=user_id", "--src-col", "from", "--src-col", "user:likes:item=who"),
        *("--dst-col", "user:buys:item=a=b", "--weight-col", "w", "--weight-col", "user=importance"),
        *("--time-col", "user:buys:item=when", "--time-unit", "ms", "--id-type", "auto", "--id-type", "user=string"),
        *("--input-layout", "user:likes:item=csr", "--null", "NA", "--null", "", "--no-quote", "--delimiter", ";"),
        *("--escape", "\\", "--comment", "#"),
        *("--header", "yes", "--column", "age=int8", "--column", "user:age=float32", "--column", "user:buys:item:n=int16"),
        *("--column", "a:b=bool", "--drop-column", "x", "--drop-column", "item:y", "--id-space", "global"),
    )
    user, item = found.nodes
    buys, likes = found.edges
    assert (found.id_type, found.id_space, found.columns) == ("auto", "global", (("age", "int8"), ("a:b", "bool")))
    assert found.dropped == ("x",)
    assert (user.id_col, user.weight_col, user.table.id_type, item.id_col, item.weight_col) == (
        *("user_id", "importance", "string", "key", None),
    )
    assert (user.table.columns, item.table.dropped, buys.table.columns) == ((("age", "float32"),), ("y",), (("n", "int16"),))
    assert (buys.src_col, buys.dst_col, buys.weight_col, buys.time_col, buys.time_unit) == ("from", "a=b", "w", "when", "ms")
    assert (likes.src_col, likes.dst_col, likes.time_col, likes.time_unit, likes.layout) == ("who", None, None, None, "csr")
    for table in (user.table, item.table, buys.table, likes.table):
        assert (table.nulls, table.quote, table.delimiter, table.header) == (("NA", ""), False, ";", "yes")
        assert (table.escape, table.comment) == ("\\", "#")


def test_types_that_the_data_names(asked):
    found = graph_of(
        asked,
        *(
            "--nodes",
            "*=n.csv",
            "--type-col",
            "label",
            "--edges",
            "*:*:*=e.csv",
            "--relation-col",
            "kind",
            "--id-space",
            "global",
        ),
    )
    assert [(node.type, node.type_col) for node in found.nodes] == [(None, "label")]
    edge = found.edges[0]
    assert (edge.src_type, edge.relation, edge.dst_type, edge.relation_col) == (None, None, None, "kind")


def test_numbers_of_nodes_declare_types(asked):
    call = asked("convert", "out", "--edges", "u:r:v=e.npy", "--num-nodes", "v=5")
    assert [(node.type, node.num_nodes) for node in call[2].graph.nodes] == [("u", None), ("v", 5)]
    assert call[2].num_nodes == {}


def test_roles_and_arrays_go_with_every_input(asked):
    call = asked(
        *("convert", "in.csv", "out", "--label", "y", "--split", "0.8/0.1/0.1", "--seeds", "_N=s.txt"),
        *("--node-data", "_N:x=x.npy", "--edge-data", "_N:_E:_N:w=w.npy"),
    )
    assert call == [
        ["in.csv"],
        "out",
        ConvertOptions(
            labels=("y",),
            splits=("0.8/0.1/0.1",),
            seeds=("_N=s.txt",),
            node_data=("_N:x=x.npy",),
            edge_data=("_N:_E:_N:w=w.npy",),
        ),
        call[3],
    ]


def test_info_and_validate_take_the_same_flags(asked):
    for command in ("info", "validate"):
        call = asked(command, "--nodes", "user=u.csv", "--edges", "user:r:user=e.csv", "--id-col", "k")
        assert call[0] == []
        options = next(value for value in call if isinstance(value, ConvertOptions))
        assert options.graph is not None
        assert options.graph.nodes[0].id_col == "k"


def test_flags_of_other_formats_are_left_to_be_refused(asked):
    call = asked("convert", "out", "--nodes", "user=u.csv", "--relation", "a:b:c", "--default-node-type", "1")
    assert call[2].decoder_options == {"relation": "a:b:c", "default_node_type": 1}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--nodes", "u.csv"], "--nodes must be TYPE=FILE, found 'u.csv'\n  fix: write --nodes type=file\n"),
        (["--edges", "a=b"], "--edges: expected 'source:relation:destination', found 'a'\n"
                             "  fix: write SRC:REL:DST; a ':' inside a name is %3A\n"),
        (["--nodes", "a:b:c=f"], "--nodes: 'a:b:c' is no node type\n"
                                 "  fix: write an edge type with --edges; a ':' inside a name is %3A\n"),
        (["--nodes", "user=f", "--id-col", "usr=k"], "--id-col: no table is of type 'usr'\n  fix: did you mean 'user'?\n"),
        (["--nodes", "user=f", "--id-col", "x=k"], "--id-col: no table is of type 'x'\n  fix: use one of user\n"),
        (["--edges", "a:r:b=f", "--src-col", "a=k"], "--src-col: no table is of type 'a'\n  fix: did you mean 'a:r:b'?\n"),
        (["--nodes", "user=f", "--id-col", "k", "--id-col", "l"], "--id-col is given twice\n  fix: give it once\n"),
        (["--nodes", "u=f", "--id-col", "u=k", "--id-col", "u=l"], "--id-col is given twice for 'u'\n  fix: give it once\n"),
        (["--nodes", "u=f", "--id-type", "number"], "--id-type: no choice named 'number'\n"
                                                   "  fix: use one of int, uint, string, auto\n"),
        (["--nodes", "u=f", "--num-nodes", "u=3"], "--num-nodes is for types without --nodes, not for 'u'\n"
                                                   "  fix: leave out one of the two\n"),
        (["--nodes", "u=f", "--num-nodes", "3"], "--num-nodes: no table is of type ''\n  fix: use one of u\n"),
        (["--nodes", "u=f", "--column", "a"], "--column: expected NAME=dtype, found 'a'\n"
                                              "  fix: write, for example, --column age=float32\n"),
        (["--edges", "u:*:v=f"], "--edges 'SRC:*:DST=FILE' and --relation-col belong together\n  fix: give both, or neither\n"),
        (["--nodes", "*=f"], "--nodes '*=FILE' and --type-col belong together\n  fix: give both, or neither\n"),
        (["--edges", "*:r:v=f"], "--edges: '*' for an end's type needs IDs that are unique among all types\n"
                                 "  fix: add --id-space global\n"),
        (["--edges", "u:r:v=f", "--time-unit", "ms"], "--time-unit needs --time-col\n"
                                                      "  fix: name the column of the time with --time-col\n"),
        (["--nodes", "u=f", "--label", "\udcff"], "--label '\\udcff' is not UTF-8\n  fix: use a UTF-8 locale, such as LANG=C.UTF-8\n"),
    ],
)  # fmt: skip
def test_what_is_refused(args, message, capsys):
    assert run(["convert", "out", *args]) == 2
    assert capsys.readouterr().err == f"error: {message}"


def test_rejected_records_replace_no_table(tmp_path, capsys):
    table = tmp_path / "u.csv"
    table.write_text("id\n1\n")
    args = ["convert", str(tmp_path / "out"), "--nodes", f"u={table}", "--on-error", "skip", "--bad-records", str(table)]
    assert run(args) == 2
    assert "this file is an input, and would be lost" in capsys.readouterr().err
    assert table.read_text() == "id\n1\n"
