"""``validate --against``: every change of an input or of a store is found, and named with its place."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from refinished import refinish

import graphprep
from graphprep.cli.main import run
from graphprep.convert import pipeline
from graphprep.model.errors import DataError, UsageError

EDGES = """src,dst,weight,kind
1,2,0.5,a
2,3,1.5,b
3,1,2.5,a
1,2,0.5,a
7,1,4.5,c
"""
TYPE = "_N:_E:_N"
FLAGS = {"decoder_options": {"weight_col": "weight"}, "categories": (f"{TYPE}:kind",)}
FOLDER = "edges/_N___E___N"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("e.csv").write_text(EDGES)
    graphprep.convert("e.csv", "store", partitions=2, **FLAGS)
    return tmp_path


def said(report) -> list[str]:
    assert report.num_differences == len(report.differences)
    return list(map(str, report.differences))


def against(text: str, **given) -> list[str]:
    Path("m.csv").write_text(text)
    report = graphprep.validate("store", against="m.csv", **given)
    assert report.store.sound
    assert report.equal == (not report.differences)
    return said(report)


# ---------------------------------------------------------------------------------------------------- mutations of the input


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def test_the_order_of_the_input_does_not_count(here):
    head, *rest = lines(EDGES)
    assert against("".join([head, *reversed(rest)])) == []


def test_a_changed_end(here):
    assert against(EDGES.replace("2,3,", "2,1,")) == [
        f"part-00000/{FOLDER}/csc/indices.npy[4]: edge 2 -> 3 is not in the input",
        "m.csv:3:1: edge 2 -> 1 is not in the store",
    ]


def test_a_changed_weight(here):
    words = "'weight' of edge 3 -> 1 is 2.5, in the input 2.75 (m.csv:4:1)"
    assert against(EDGES.replace("2.5", "2.75")) == [f"part-00000/{FOLDER}/weight.npy[0]: {words}"]


def test_a_weight_that_is_the_same_once_it_is_rounded(here):
    assert against(EDGES.replace("2.5", "2.50000000001")) == []


def test_a_changed_category(here):
    words = "'kind' of edge 7 -> 1 is 'c', in the input 'b' (m.csv:6:1)"
    assert against(EDGES.replace(",c", ",b")) == [
        f"{FOLDER}: column 'kind' has the category 'c', which the input lacks",
        f"part-00000/{FOLDER}/data/kind.npy[1]: {words}",
    ]


def test_a_line_that_is_gone(here):
    assert against("".join(lines(EDGES)[:4] + lines(EDGES)[5:])) == [
        f"metadata.json: num_edges_per_type: edge type '{TYPE}' has 5 edges, in the input 4",
        f"part-00000/{FOLDER}/csc/indices.npy[3]: edge 1 -> 2 is 2 times in the store, in the input once",
    ]


def test_a_line_that_is_twice(here):
    assert against(EDGES + lines(EDGES)[-1]) == [
        f"metadata.json: num_edges_per_type: edge type '{TYPE}' has 5 edges, in the input 6",
        "m.csv:7:1: edge 7 -> 1 is once in the store, in the input 2 times",
    ]


def test_a_new_node(here):
    assert against(EDGES + "1,8,1,a\n")[:3] == [
        "metadata.json: num_nodes_per_type: node type '_N' has 8 nodes, in the input 9",
        "m.csv:7:3: node 8 is not in the store",
        f"metadata.json: num_edges_per_type: edge type '{TYPE}' has 5 edges, in the input 6",
    ]


def test_a_column_more_and_one_less(here):
    renamed = EDGES.replace("kind", "sort")
    assert against(renamed, categories=(f"{TYPE}:sort",)) == [
        f"{FOLDER}: column 'kind' is not in the input",
        f"{FOLDER}: column 'sort' of the input is not in the store",
    ]


def test_only_so_many_are_named_and_all_are_counted(here):
    Path("m.csv").write_text("src,dst,weight,kind\n" + "".join(f"{i},0,1,a\n" for i in range(100)))
    report = graphprep.validate("store", against="m.csv", max_faults=3)
    assert len(report.differences) == 3
    # two counts, 92 nodes, a category set, 100 edges and 5 of the store
    assert report.num_differences == 2 + 92 + 1 + 105


# ---------------------------------------------------------------------------------------------------- mutations of the store


def change(path: str, index: object, value: object) -> None:
    file = Path("store") / path
    array = np.load(file)
    array[index] = value
    np.save(file, array)
    refinish(Path("store"))


def test_a_store_whose_weight_was_changed(here):
    change(f"part-00000/{FOLDER}/weight.npy", 0, 9)
    report = graphprep.validate("store", against="e.csv")
    assert report.store.sound
    words = "'weight' of edge 3 -> 1 is 9.0, in the input 2.5 (e.csv:4:1)"
    assert said(report) == [f"part-00000/{FOLDER}/weight.npy[0]: {words}"]


def test_a_store_in_which_an_end_was_changed(here):
    indices = np.load(f"store/part-00000/{FOLDER}/csc/indices.npy")
    assert indices[0] == 3
    change(f"part-00000/{FOLDER}/csc/indices.npy", 0, 4)
    report = graphprep.validate("store", against="e.csv")
    assert not report.store.sound  # the checksum of the edges
    assert sorted(said(report)) == [
        "e.csv:4:1: edge 3 -> 1 is not in the store",
        f"part-00000/{FOLDER}/csc/indices.npy[0]: edge 4 -> 1 is not in the input",
    ]
    assert not report.equal


def test_a_store_that_cannot_be_read_is_not_compared(here):
    change(f"part-00000/{FOLDER}/csc/indices.npy", 0, 99)
    report = graphprep.validate("store", against="e.csv")
    assert not report.store.sound
    words = "not compared with the input, as the store is not sound: expected a typed ID in [0, 8), found 99"
    [found] = said(report)
    assert found.endswith(f"/{FOLDER}/csc/indices.npy[0]: {words}")


@pytest.fixture
def named(tmp_path, monkeypatch):
    """A store of names, and tables of both types."""
    monkeypatch.chdir(tmp_path)
    Path("user.csv").write_text("id,age,bio\nann,31,sings\nbob,25,\ncyd,,runs\n")
    Path("buys.csv").write_text("src,dst,price\nann,10,1.5\nbob,20,2.5\ncyd,10,\nann,20,4\n")
    Path("graph.yaml").write_text(
        "id_type: auto\nnodes:\n  - type: user\n    files: user.csv\nedges:\n  - type: user:buys:item\n    files: buys.csv\n"
    )
    graphprep.convert("graph.yaml", "store", partitions=2)
    return tmp_path


def test_raw_ids_that_were_exchanged(named):
    path = "part-00000/nodes/item/raw_ids.npy"
    items = [np.load(f"store/part-0000{part}/nodes/item/raw_ids.npy").tolist() for part in range(2)]
    assert items == [[10], [20]]
    change(path, 0, 20)
    change(path.replace("part-00000", "part-00001"), 0, 10)
    report = graphprep.validate("store", against="graph.yaml")
    buys = "edges/user__buys__item"
    assert said(report) == [
        f"part-00000/{buys}/data/price.npy[0]: 'price' of edge 'ann' -> 20 is 1.5, in the input 4.0 (buys.csv:5:1)",
        f"part-00001/{buys}/csc/indices.npy[0]: edge 'bob' -> 10 is not in the input",
        f"part-00000/{buys}/csc/indices.npy[1]: edge 'cyd' -> 20 is not in the input",
        f"part-00001/{buys}/data/price.npy[1]: 'price' of edge 'ann' -> 10 is 4.0, in the input 1.5 (buys.csv:2:1)",
        "buys.csv:3:1: edge 'bob' -> 20 is not in the store",
        "buys.csv:4:1: edge 'cyd' -> 10 is not in the store",
    ]


def test_names_and_cells_of_tables(named):
    assert said(graphprep.validate("store", against="graph.yaml")) == []
    Path("user.csv").write_text("id,age,bio\nann,31,sings\nbob,26,\ncyd,7,walks\n")
    assert sorted(said(graphprep.validate("store", against="graph.yaml"))) == [
        "part-00000/nodes/user/data/age.npy[1]: 'age' of node 'bob' is 25, in the input 26 (user.csv:3:1)",
        "part-00001/nodes/user/data/age.npy[0]: 'age' of node 'cyd' is absent, in the input 7 (user.csv:4:1)",
        "part-00001/nodes/user/data/bio.offsets.npy[0]: 'bio' of node 'cyd' is 'runs', in the input 'walks' (user.csv:4:1)",
    ]


def test_inputs_that_moved(named):
    Path("moved").mkdir()
    for name in ("graph.yaml", "user.csv", "buys.csv"):
        Path(name).rename(Path("moved") / name)
    assert said(graphprep.validate("store", against="moved/graph.yaml")) == []


# ---------------------------------------------------------------------------------------------------- options and rewrites


def test_what_provenance_records_is_read_again(here):
    assert json.loads(Path("store/provenance.json").read_text())["convert"] == {
        "inputs": ["e.csv"],
        "options": {"decoder_options": {"weight_col": "weight"}, "categories": [f"{TYPE}:kind"], "partitions": 2},
    }
    report = graphprep.validate("store", against="store/provenance.json")
    assert (report.inputs, report.equal) == (("e.csv",), True)


@pytest.mark.parametrize(
    "options",
    [
        {"dedup": True},
        {"drop_self_loops": True},
        {"undirected": True},
        {"largest_component": True},
        {"partition_by": "fennel", "partitions": 2},
        {"undirected": True, "partition_by": "hash", "partitions": 3, "layout": "both", "neighbor_order": "weight"},
        {"ids": "sparse", "edge_ids": False},
        {"splits": (f"{TYPE}:0.5/0.25/0.25",), "seed": 7},
        {"weight_dtype": "float64"},
    ],
)
def test_options_of_convert_are_honoured(here, options):
    graphprep.convert("e.csv", "other", **FLAGS, **options)
    report = graphprep.validate("other", against="e.csv")
    assert (said(report), report.equal) == ([], True)


def test_what_is_given_wins(here):
    assert against(EDGES, decoder_options={"weight_col": None, "drop_columns": ["weight"]}) != []


def test_reordered_and_partitioned_stores_hold_the_same(here):
    graphprep.reorder("store", "hot", by="in-degree", scope="graph")
    graphprep.partition("hot", "parts", by="hash", partitions=3)
    for store in ("hot", "parts"):
        report = graphprep.validate(store, against="e.csv")
        assert (said(report), report.equal) == ([], True)


def test_a_split_that_was_drawn_is_not_compared(here):
    graphprep.split("store", "parts", "0.5/0.25/0.25")
    report = graphprep.validate("parts", against="e.csv")
    assert (said(report), report.equal) == ([], True)
    Path("m.csv").write_text(EDGES.replace("2.5", "2.75"))
    words = "'weight' of edge 3 -> 1 is 2.5, in the input 2.75 (m.csv:4:1)"
    assert said(graphprep.validate("parts", against="m.csv")) == [f"part-00000/{FOLDER}/weight.npy[0]: {words}"]


def test_a_transformed_store_is_refused(here):
    graphprep.transform("store", "simple", ["to-simple", "first"])
    graphprep.partition("simple", "parts", by="hash", partitions=3)
    for store in ("simple", "parts"):
        with pytest.raises(UsageError) as caught:
            graphprep.validate(store, against="e.csv")
        assert str(caught.value).startswith(f"{store}: transform made this store (to-simple first), so it is not to hold")


def test_tables_of_flags_are_read_again(named, capsys):
    flags = ["--nodes", "user=user.csv", "--edges", "user:buys:item=buys.csv", "--id-type", "auto"]
    assert run(["convert", "again", *flags, "--quiet"]) == 0
    assert run(["validate", "again", "--against", "again/provenance.json", "--quiet"]) == 0
    Path("user.csv").write_text("id,age,bio\nann,31,sings\nbob,26,\ncyd,,runs\n")
    assert run(["validate", "again", "--against", "again/provenance.json", "--quiet"]) == 1
    words = "'age' of node 'bob' is 25, in the input 26 (user.csv:3:1)"
    assert capsys.readouterr().err == f"error: part-00000/nodes/user/data/age.npy[1]: {words}\n"


def test_tables_in_memory_are_not_recorded(here):
    graphprep.convert(edges={("a", "to", "b"): pyarrow.table({"src": [0, 1], "dst": [1, 0]})}, out="memory")
    with pytest.raises(DataError, match="no input is recorded here that could be read again"):
        graphprep.validate("memory", against="memory/provenance.json")


@pytest.mark.long
@pytest.mark.parametrize("key", ["convert", "operations", "split", "options", "decoder_options", "undirected", "format", 0])
def test_records_of_another_form_end_with_words(here, capsys, key):
    """Whatever stands in provenance.json, of the store or beside it: no command fails with a mistake of ours."""
    Path("a.txt").write_text("0 1\n1 2\n")
    assert run(["convert", "a.txt", "told", "--quiet"]) == 0
    path = Path("told/provenance.json")
    written = path.read_text()
    for value in (7, None, [["x"]], {"a": 7}, "\0"):
        told = json.loads(written)
        options = told["convert"]["options"]
        where = told if key in told or key in ("operations", "split") else options
        where = {"options": told["convert"], 0: told["convert"]["inputs"]}.get(key, where)
        where[key] = value
        path.write_text(json.dumps(told))
        for words in (["validate", "told", "--against", str(path)], ["validate", "told", "--against", "a.txt"]):
            assert run(words) in (0, 1, 2, 3), (value, capsys.readouterr().err)
        assert run(["transform", "told", "turned", "reverse", "--overwrite"]) == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("is_sound", [True, False])
def test_edges_that_the_temporary_store_lost_are_no_fault_of_the_store(here, monkeypatch, is_sound):
    convert = pipeline.convert

    def lose(urls, out, *others, **hooks):
        summary = convert(urls, out, *others, **hooks)
        path = Path(out) / f"part-00000/{FOLDER}/csr/indices.npy"
        indices = np.load(path)
        indices[0] ^= 1
        np.save(path, indices)
        refinish(Path(out))
        return summary

    if not is_sound:
        path = here / f"store/part-00000/{FOLDER}/weight.npy"
        np.save(path, -np.load(path))
    monkeypatch.setattr(pipeline, "convert", lose)
    with pytest.raises(DataError) as caught:
        graphprep.validate("store", against="e.csv")
    was = json.loads(Path("store/metadata.json").read_text())["edge_schema"][TYPE]["checksum"]
    words = (
        rf"{FOLDER}: edges of the input were lost or changed in the temporary store: their checksum is [0-9a-f]{{16}}, and was "
    )
    fix = "run again, with tmp_dir on another disk; report it if it says so again"
    tail = f"{was} as they were decoded, so nothing can be said of the store\n  fix: {fix}"
    assert re.fullmatch(words + re.escape(tail), str(caught.value))


def test_a_recorded_option_that_the_input_does_not_fit(here, capsys):
    Path("other.txt").write_text("1 2\n2 3\n")
    assert run(["validate", "store", "--against", "other.txt", "--quiet"]) == 2
    fix = "its columns have positions 0 to 1, and no names; where its first line names them, pass --header yes"
    assert capsys.readouterr().err == (
        "error: --weight-col weight: other.txt has no such column (--weight-col is recorded in provenance.json of store)\n"
        f"  fix: {fix}; options that are given, --weight-col too, go before those that are recorded\n"
    )
    assert run(["validate", "store", "--against", "other.txt", "--weight-col", "7", "--quiet"]) == 2
    assert capsys.readouterr().err == f"error: --weight-col 7: other.txt has no such column\n  fix: {fix}\n"
    Path("other.csv").write_text("src,dst,weight\n1,2,0.5\n")
    assert run(["validate", "store", "--against", "other.csv", "--quiet"]) == 2
    assert "no column 'kind' (--category is recorded in provenance.json of store)" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------------- the command


def test_the_command_says_that_they_are_equal(here, capsys):
    assert run(["validate", "store", "--against", "e.csv"]) == 0
    assert "\nstore: holds what e.csv says; compared in " in capsys.readouterr().out


def test_the_command_names_differences_and_exits_with_1(here, capsys):
    Path("m.csv").write_text(EDGES.replace("2.5", "2.75"))
    assert run(["validate", "store", "--against", "m.csv"]) == 1
    out, err = capsys.readouterr()
    assert "\nstore: 1 difference from m.csv; compared in " in out
    words = "'weight' of edge 3 -> 1 is 2.5, in the input 2.75 (m.csv:4:1)"
    assert err.endswith(f"\nerror: part-00000/{FOLDER}/weight.npy[0]: {words}\n")


def test_stdin_is_an_input(here, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(EDGES.replace("2.5", "2.75").encode())))
    assert run(["validate", "store", "--against", "-", "--quiet"]) == 1
    words = "'weight' of edge 3 -> 1 is 2.5, in the input 2.75"
    assert capsys.readouterr().err == f"error: part-00000/{FOLDER}/weight.npy[0]: {words}\n"


def test_differences_that_are_not_printed_are_counted(here, capsys):
    Path("m.csv").write_text("src,dst,weight,kind\n1,2,1,a\n")
    assert run(["validate", "store", "--against", "m.csv", "--max-faults", "1"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "error: 13 more differences; --max-faults 14 prints them all"


def test_further_paths_are_of_the_input(here, capsys):
    head, *rest = lines(EDGES)
    Path("a.csv").write_text("".join([head, *rest[:2]]))
    Path("b.csv").write_text("".join([head, *rest[2:]]))
    for arguments in (["store", "--against", "a.csv", "b.csv"], ["store", "--against", "a.csv", "--against", "b.csv"]):
        assert run(["validate", *arguments, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)["against"]
        assert (told["equal"], told["inputs"]) == (True, ["a.csv", "b.csv"])


def test_json_says_what_the_report_does(here, capsys):
    Path("m.csv").write_text(EDGES.replace("2.5", "2.75"))
    assert run(["validate", "store", "--against", "m.csv", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["store"], told["num_faults"]) == ("store", 0)
    own = told["against"]
    assert (own["inputs"], own["num_differences"], own["equal"]) == (["m.csv"], 1, False)
    [one] = own["differences"]
    assert one["place"] == f"part-00000/{FOLDER}/weight.npy[0]"
    assert own["elapsed_s"] > 0
    assert own["peak_memory_bytes"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["e.csv", "--against", "e.csv"], "e.csv: --against compares a store, and this is none"),
        (["store", "x", "--against", "a", "--against", "b"], "'x' stands beside 2 values of --against"),
        (["--edges", "a:b:c=e.csv", "--against", "e"], "--against goes with a store, and --nodes and --edges name no store"),
        (
            ["store", "--edges", "a:b:c=e.csv", "--against", "e"],
            "--nodes and --edges name the whole input, but there is 'store' too",
        ),
    ],
)
def test_faults_of_the_command_line(here, capsys, arguments, words):
    assert run(["validate", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"error: {words}\n")
