"""``edges``: Python's csv module reads the graph, and our own decoder makes the same store of it again."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges
from clients.graphs import GRAPHS, make_store

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.testing.export_contract import ExporterContract

GOLDEN = Path(__file__).resolve().parent.parent / "golden"


class TestEdgesContract(ExporterContract):
    target = "edges"


def store_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "provenance.json"
    }


def ids_like(texts: list[str], ids: list) -> np.ndarray:
    return np.array(texts, object) if ids and isinstance(ids[0], str) else np.array([int(text) for text in texts], np.int64)


@pytest.mark.parametrize(
    ("delimiter", "ending", "character", "options"),
    [("comma", "csv", ",", {"partitions": 3, "partition_by": "hash"}), ("tab", "tsv", "\t", {})],
    ids=str,
)
@pytest.mark.parametrize("name", GRAPHS)
def test_files_are_the_graph(name, delimiter, ending, character, options, tmp_path):
    graph, out = GRAPHS[name](**options), tmp_path / "out"
    store = make_store(graph, tmp_path)
    graphprep.export(str(store), str(out), "edges", delimiter=delimiter, header=True, drop_unsupported=True)
    for edge_type in graph.edges:
        with (out / f"{'__'.join(edge_type)}.{ending}").open(newline="") as file:
            head, *rows = csv.reader(file, delimiter=character)
        wanted = graph_edges(graph, edge_type)
        names = [one for one, values in wanted.columns.items() if values.ndim == 1]
        assert head[:2] == ["src", "dst"] and sorted(head[2:]) == sorted(names)
        src, dst = (ids_like([row[end] for row in rows], graph.nodes[edge_type[2 * end]].ids) for end in (0, 1))
        columns = {one: np.array([row[head.index(one)] for row in rows], wanted.columns[one].dtype) for one in names}
        found = Rows(src, dst, np.arange(len(rows)), columns)
        assert checksum(edge_type, found) == checksum(edge_type, wanted.only(names))


@pytest.mark.parametrize(
    ("text", "options", "given"),
    [
        ("0 1\n2 1\n0 1\n1 0\n", {}, {}),
        ("0 1 0.1\n2 1 1e-7\n0 1 16777216\n", {"decoder_options": {"weight_col": "2"}}, {}),
        ("0,1,0.5,7,\n2,1,nan,-8,red\n0,1,3,9223372036854775807,\"a, b\"\n", {"decoder_options": {"weight_col": "2"}}, {}),
        ("18446744073709551615 3\n3 9\n", {"ids": "sparse", "partitions": 2, "partition_by": "hash"}, {}),
        ("-5 3\n3 -9\n", {"decoder_options": {"id_type": "int"}}, {}),
        ("ann,#bob\n\"#bob\",\"Zoë, jr\"\n\"say \"\"hi\"\"\", x \n", {"decoder_options": {"id_type": "string"}, "header": "no"}, {}),
        ("ann\t#bob\n\"%bob\"\tZoë, jr\n", {"decoder_options": {"id_type": "string"}, "header": "no"}, {"delimiter": "tab"}),
        ("src,dst,stars,at\n5,6,2.5,100\n6,7,,200\n", {"decoder_options": {"weight_col": "stars", "time_col": "at"}}, {}),
        ("", {}, {}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"partitions": 2, "layout": "both"}], ids=str)
def test_a_store_of_edges_comes_back(text, options, given, more, tmp_path):
    options = {**more, **options, "format": "edges"}
    header = options.pop("header", None)
    (tmp_path / "first.txt").write_text(text)
    first, again = tmp_path / "first", tmp_path / "again"
    decoder = {**options.pop("decoder_options", {}), **({"header": header} if header else {})}
    graphprep.convert(str(tmp_path / "first.txt"), str(first), decoder_options=decoder, **options)
    has_names = text.startswith("src")
    graphprep.export(str(first), str(tmp_path / "out"), "edges", header=has_names, **given)
    (path,) = [one for one in (tmp_path / "out").iterdir() if one.suffix != ".json"]
    if has_names:
        decoder = {"weight_col": "weight", "time_col": "time"}
    graphprep.convert(str(path), str(again), decoder_options=decoder, **options)
    assert store_files(again) == store_files(first), path.read_text()


def test_blanks_stand_where_all_cells_are_numbers(tmp_path):
    graphprep.export(str(GOLDEN / "karate_csv" / "store"), str(tmp_path / "out"), "edges")
    (path,) = (tmp_path / "out").glob("*.txt")
    lines = path.read_text().splitlines()
    raw = graphprep.load(str(GOLDEN / "karate_csv" / "store"))
    src, dst, _ = raw.edges()
    assert [line.split()[:2] for line in lines] == [[str(u), str(v)] for u, v in zip(src, dst, strict=True)]
    assert lines[0] == "0 1 4.0"


def test_names_of_columns_that_are_taken(tmp_path):
    store = tmp_path / "store"
    (tmp_path / "e.csv").write_text("a,b,src,_src\n1,2,7,9\n2,1,8,10\n")
    graphprep.convert(str(tmp_path / "e.csv"), str(store), format="edges", decoder_options={"src_col": "a", "dst_col": "b"})
    graphprep.export(str(store), str(tmp_path / "out"), "edges", header=True)
    (path,) = (tmp_path / "out").glob("*.txt")
    assert path.read_text() == "__src dst src _src\n1 2 7 9\n2 1 8 10\n"


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("a b\n", {"id_type": "string"}, "raw IDs are texts"),
        ("0,1,red\n", {}, "column 'col_2' holds texts"),
        ("0,1,\n0,2,5\n", {}, "some edges have no value in column 'col_2'"),
    ],
)
def test_why_blanks_cannot_separate(text, options, reason, tmp_path):
    (tmp_path / "e.txt").write_text(text)
    graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "store"), format="edges", decoder_options=options)
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "edges", delimiter="blank")
    assert str(caught.value) == f"option delimiter=blank: {reason}\n  fix: use tab or comma"


# ------------------------------------------------------------------------------------------- texts that look like something else

AWKWARD = (
    *(
        "a",
        '"',
        '"a"',
        'a"b',
        "a,b",
        "a\tb",
        "a;b",
        "a|b",
        "a;b;c|d",
        "a b",
        " a",
        "a ",
        "#a",
        "%a",
        "a#b",
        "\\",
        "a\\b",
        "'",
        "`",
    ),
    *(
        "\ufeffa",
        "a\ufeff",
        "\ufeff",
        "\ufeff#",
        '\ufeff"x',
        "\u2028",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\xa0x",
        "\u3000x",
        "é",
        "e\u0301",
    ),
    *(
        "007",
        "1",
        "-1",
        "1e5",
        "+5",
        "nan",
        "null",
        "NA",
        "true",
        "0x10",
        "1_0",
        "٣",
        "src",
        "id",
        "dst",
        "#",
        "%",
        "//",
        "--",
        "a\nb",
        "\r",
        "\r\n",
    ),
)


def awkward_store(folder, names):
    pa = pytest.importorskip("pyarrow")
    edges = pa.table({"src": names, "dst": names[1:] + names[:1]})
    graphprep.convert([], str(folder / "store"), edges={"n:to:n": edges}, decoder_options={"id_type": "string"})
    return str(folder / "store")


def named_edges(store):
    graph = graphprep.load(store)
    src, dst, _ = graph.edges(graph.edge_types[0])
    names = graph.ids(graph.edge_types[0][0])
    return [(names[u], names[v]) for u, v in zip(src.tolist(), dst.tolist(), strict=True)]


@pytest.mark.long
@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize("delimiter", ["comma", "tab"])
def test_raw_ids_are_read_back_as_they_were(tmp_path, delimiter, header):
    """First of the file, last of a line, and among all others."""
    cases = [
        [name for name in AWKWARD if name.strip()],
        *([name, "zz"] for name in AWKWARD[19:24]),
        ["zz", "a,b"],
        ["a;b", "b|c"],
    ]
    for number, names in enumerate(cases):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = awkward_store(folder, names)
        summary = graphprep.export(store, str(folder / "out"), "edges", delimiter=delimiter, header=header)
        (file,) = (folder / "out").glob("n__to__n.*")
        breaks = any("\n" in name or "\r" in name for name in names)
        assert any("have line breaks" in note for note in summary.notes) == breaks
        options = {"id_type": "string", "header": "yes" if header else "no"} | ({"quote": True} if breaks else {})
        graphprep.convert(str(file), str(folder / "again"), format="edges", decoder_options=options)
        assert named_edges(str(folder / "again")) == named_edges(store)


def test_a_null_byte_is_no_text(tmp_path):
    with pytest.raises(DataError, match="has a null byte, which lines of text cannot hold"):
        graphprep.export(awkward_store(tmp_path, ["a\0b", "c"]), str(tmp_path / "out"), "edges")
    assert not (tmp_path / "out").exists()


def test_names_of_relations_and_categories_are_written(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tlikes\tb\nb\thates, a lot\tc\nc\tlikes\ta\n")
    options = {"relation_as": "column"}
    graphprep.convert(str(tmp_path / "x.tsv"), str(tmp_path / "store"), format="triples", decoder_options=options)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "edges", delimiter="tab")
    (file,) = (tmp_path / "out").glob("_N*")
    assert file.read_text() == 'a\tb\tlikes\nb\tc\t"hates, a lot"\nc\ta\tlikes\n'
    (tmp_path / "e.csv").write_text("src,dst,color\n1,0,red\n0,1,\n1,1,blue\n")
    graphprep.convert([], str(tmp_path / "colors"), edges={"n:to:n": str(tmp_path / "e.csv")}, categories=["n:to:n:color"])
    graphprep.export(str(tmp_path / "colors"), str(tmp_path / "text"), "edges")
    assert (tmp_path / "text/n__to__n.csv").read_text() == "1,0,red\n0,1,\n1,1,blue\n"
