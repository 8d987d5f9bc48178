"""What columns of text become: bools, numbers with cells that spell nothing, texts; the same for any cut into blocks."""

import contextlib
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.cli.main import run
from graphprep.decoders.cells.text import NULLS
from graphprep.kernels.cpu.text.lists import EMPTY, NO_WORD, find_words

CELLS = [
    "",
    " ",
    "1",
    "-2",
    "0",
    "1.5",
    "nan",
    "True",
    "false",
    " TRUE",
    "NA",
    "na ",
    "null",
    "None",
    "?",
    "\\N",
    "n/a",
    "x",
    "NAN",
]


def naive(cells):
    """Return the dtype and, for each row, its value or None."""
    words = [cell.strip().lower() for cell in cells]
    absent = {"", *(word.lower() for word in NULLS)}
    given = [word for word in words if word not in absent]
    has_nulls = any(word in absent and word for word in words)
    if given and all(word in ("true", "false") for word in given):
        return "bool", [None if word in absent else word == "true" for word in words]
    try:
        numbers = [None if word in absent else float(word) for word in words]
    except ValueError:
        numbers = None
    if numbers is None or (has_nulls and not given):
        return "text", [cell if cell.strip() else None for cell in cells]
    is_int = all(word in absent or word.lstrip("-").isdigit() for word in words)
    return "int64" if is_int else "float64", numbers


def read_column(store, name, folder="nodes/n"):
    """Return the dtype and the values of a column."""
    path = store / "part-00000" / folder / "data"
    present = path / f"{name}.present.npy"
    if (path / f"{name}.npy").exists():
        values = np.load(path / f"{name}.npy")
        there = np.load(present) if present.exists() else np.full(len(values), True)
        return values.dtype.name, [value if ok else None for value, ok in zip(values.tolist(), there, strict=True)]
    values, offsets = (np.load(path / f"{name}.{part}.npy") for part in ("values", "offsets"))
    there = np.load(present) if present.exists() else np.full(len(offsets) - 1, True)
    data = values.tobytes()
    texts = [data[offsets[i] : offsets[i + 1]].decode() for i in range(len(offsets) - 1)]
    return "text", [text if ok else None for text, ok in zip(texts, there, strict=True)]


def same(one, other):
    return one == other or (isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other))


def files_of(store):
    return {path.relative_to(store): path.read_bytes() for path in sorted(store.rglob("*.npy"))}


@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(data=st.data())
def test_columns_agree_with_the_naive_loop_for_any_blocks(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("columns")
    kinds = st.lists(st.sampled_from(CELLS), min_size=1, max_size=4, unique=True)
    columns = data.draw(st.lists(kinds.flatmap(lambda kind: st.lists(st.sampled_from(kind), min_size=8, max_size=8)),
                                 min_size=20, max_size=20))  # fmt: skip
    names = [f"c{i}" for i in range(len(columns))]
    lines = [["id", *names], *([str(row), *(column[row] for column in columns)] for row in range(8))]
    (folder / "n.csv").write_text("".join(",".join(line) + "\n" for line in lines))
    (folder / "e.csv").write_text("src,dst\n0,1\n")
    config = {"nodes": [{"type": "n", "files": "n.csv", "header": "yes"}], "edges": [{"type": "n:e:n", "files": "e.csv"}]}
    (folder / "graph.yaml").write_text(json.dumps(config))
    whole = graphprep.convert(folder / "graph.yaml", folder / "whole")
    cut = graphprep.convert(folder / "graph.yaml", folder / "cut", block_bytes=32)
    assert files_of(folder / "whole") == files_of(folder / "cut")
    assert whole.notes == cut.notes
    for name, cells in zip(names, columns, strict=True):
        dtype, wanted = naive(cells)
        found_dtype, found = read_column(folder / "whole", name)
        assert (name, cells, found_dtype) == (name, cells, dtype)
        assert all(map(same, found, wanted)), (cells, found, wanted)
        noted = sum(1 for cell in cells if cell.strip().lower() in {word.lower() for word in NULLS}) if dtype != "text" else 0
        counted = [note for note in whole.notes if f"column {name!r}:" in note]
        assert sum(int(note.rpartition("(")[2].split()[0]) if note.endswith("times)") else 1 for note in counted) == noted


def test_edge_lists_and_what_is_said(tmp_path, capsys):
    (tmp_path / "e.csv").write_text("src,dst,ok,age,name\n1,2,True,3,NA\n2,1,,NA,x\n1,1,False,NA,NA\n")
    assert run(["convert", str(tmp_path / "e.csv"), str(tmp_path / "store"), "--json"]) == 0
    notes = [note for note in json.loads(capsys.readouterr().out)["notes"] if "column" in note]
    said = "column 'age': 'NA' read as absent, as the column is no text; --column age=binary makes it one (2 times)"
    assert notes == [said]
    columns = {name: read_column(tmp_path / "store", name, "edges/_N___E___N") for name in ("ok", "age", "name")}
    assert columns == {  # in the order of destinations
        "ok": ("bool", [None, False, True]),
        "age": ("int64", [None, None, 3]),
        "name": ("text", ["x", "NA", "NA"]),
    }
    assert run(["convert", str(tmp_path / "e.csv"), str(tmp_path / "kept"), "--column", "age=binary", "--json"]) == 0
    assert not any("absent" in note for note in json.loads(capsys.readouterr().out)["notes"])
    assert read_column(tmp_path / "kept", "age", "edges/_N___E___N") == ("text", ["NA", "NA", "3"])


def test_ids_are_never_absent(tmp_path, capsys):
    (tmp_path / "n.csv").write_text("id,x\nNA,1\nbob,NA\n")
    (tmp_path / "e.csv").write_text("src,dst\nNA,bob\n")
    tables = [f"--nodes=n={tmp_path / 'n.csv'}", f"--edges=n:e:n={tmp_path / 'e.csv'}"]
    assert run(["convert", str(tmp_path / "store"), *tables, "--id-type", "string"]) == 0
    said = "note: node type 'n', column 'x': 'NA' read as absent, as the column is no text; --column x=binary makes it one"
    assert said in capsys.readouterr().out.replace("\n      ", " ")  # lines break at 80 columns
    assert graphprep.ids(tmp_path / "store", ["NA", "bob"], from_="raw", to="typed", type_="n").tolist() == [0, 1]
    (tmp_path / "m.csv").write_text("src,dst\n1,NA\n")
    assert run(["convert", str(tmp_path / "m.csv"), str(tmp_path / "other"), "--format", "edges"]) == 1
    assert "m.csv:2:3: field 'dst' must be an integer, found 'NA'" in capsys.readouterr().err


def test_a_faulty_line_that_is_skipped_says_nothing_of_its_column(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,age\n1,2,3\n1,x,NA\n2,2,NA\n")
    summary = graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges", on_error="skip")
    notes = [note for note in summary.notes if "absent" in note]
    assert len(notes) == 1
    assert not notes[0].endswith("times)")


def test_columns_of_declared_dtypes_and_of_a_schema(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst,age,on,ok\n1,2,3,2024-05-01,1\n2,1,NA,null,None\n1,1,x,?,true\n")
    given = {"decoder_options": {"columns": ["ok=bool"]}, "partitions": 1}
    with pytest.raises(graphprep.GraphprepError, match=r"e\.csv:4:5: field 'age' must be a number, found 'x'"):
        graphprep.convert(tmp_path / "e.csv", tmp_path / "a", decoder_options={"columns": ["age=float32"]})
    (tmp_path / "e.csv").write_text("src,dst,age,on,ok\n1,2,3,2024-05-01,1\n2,1,NA,null,None\n1,1,4,?,true\n")
    graphprep.convert(tmp_path / "e.csv", tmp_path / "a", **given)
    found = {name: read_column(tmp_path / "a", name, "edges/_N___E___N") for name in ("age", "ok")}
    assert found == {"age": ("int64", [None, 4, 3]), "ok": ("bool", [None, True, True])}
    graphprep.convert(tmp_path / "e.csv", tmp_path / "b", schema=str(tmp_path / "a/metadata.json"))
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")
    tables = ["--nodes", f"n={tmp_path / 'n.csv'}", "--edges", f"n:e:n={tmp_path / 'e.csv'}", "--column", "on=date"]
    (tmp_path / "n.csv").write_text("id\n1\n2\n")
    assert run(["convert", str(tmp_path / "c"), *tables]) == 0
    assert read_column(tmp_path / "c", "on", "edges/n__e__n") == ("int64", [None, None, 19844])


def test_times_that_are_text_get_a_remedy_that_works(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("src,dst,when\n1,2,2024-05-01\n")
    (tmp_path / "e.jsonl").write_text('{"src": 1, "dst": 2, "when": "2024-05-01"}\n')
    assert run(["convert", "e.csv", "a", "--time-col", "when"]) == 1
    assert (
        "error: e.csv:2:5: field 'time' must be a number, found '2024-05-01'\n"
        "  fix: repair the field or leave it empty; times that are text are read in tables: --edges SRC:REL:DST=FILE, with "
        "--time-col COL --column 'COL=timestamp[s]'\n"
    ) in capsys.readouterr().err
    files = ["e.csv", "e.jsonl"]
    with contextlib.suppress(ImportError):
        import pyarrow as pa
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"src": [1], "dst": [2], "when": ["2024-05-01"]}), "e.parquet")
        files.append("e.parquet")
    for file in files:
        tables = ["--edges", f"n:e:n={file}", "--time-col", "when"]
        assert run(["convert", "b", "--overwrite", *tables]) == 1
        assert "where times are text, add --column 'when=timestamp[s]' or when=date\n" in capsys.readouterr().err
        for dtype, value in (("timestamp[s]", 1714521600), ("date", 19844)):
            assert run(["convert", "b", "--overwrite", *tables, "--column", f"when={dtype}"]) == 0
            assert np.load("b/part-00000/edges/n__e__n/time.npy").tolist() == [value]
            capsys.readouterr()


def test_an_option_of_tables_beside_a_config_is_sent_there(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.csv").write_text("src,dst,x\n1,2,3\n")
    (tmp_path / "graph.yaml").write_text("edges: [{type: 'n:e:n', files: e.csv, columns: {x: float32}, drop: []}]\n")
    for flag, value, key in (
        ("--column", "x=float32", "columns"),
        ("--drop-column", "x", "drop"),
        ("--src-col", "src", "src_col"),
    ):
        assert run(["convert", "graph.yaml", "store", flag, value]) == 2
        err = capsys.readouterr().err
        assert f"error: {flag} belongs to tables (--nodes, --edges), " in err
        assert f", not to graph\n  fix: write it in the config, as {key!r} of a table: docs/graph-config.md\n" in err
    assert run(["convert", "graph.yaml", "store"]) == 0
    assert np.load("store/part-00000/edges/n__e__n/data/x.npy").dtype == np.float32


def test_trainers_get_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    (tmp_path / "n.csv").write_text("id,age,ok,w\n1,20,True,0.5\n2,NA,False,1.5\n3,7,N/A,2\n")
    (tmp_path / "e.csv").write_text("src,dst,ok\n1,2,True\n2,3,False\n")
    tables = [f"--nodes=n={tmp_path / 'n.csv'}", f"--edges=n:e:n={tmp_path / 'e.csv'}"]
    assert run(["convert", str(tmp_path / "store"), *tables]) == 0
    graphprep.export(tmp_path / "store", tmp_path / "joined", "pyg")
    assert torch.load(tmp_path / "joined/data.pt", weights_only=False)["x"].tolist() == [[20, 1, 0.5], [0, 0, 1.5], [7, 0, 2]]
    graphprep.export(tmp_path / "store", tmp_path / "pyg", "pyg", features="w")  # the others by their names
    data = torch.load(tmp_path / "pyg/data.pt", weights_only=False)
    found = {name: data[name].tolist() for name in ("age", "age_present", "ok", "ok_present")}
    assert found == {"age": [20, 0, 7], "age_present": [True, False, True], "ok": [True, False, False],
                     "ok_present": [True, True, False]}  # fmt: skip
    graphprep.export(tmp_path / "store", tmp_path / "glt", "glt", features="age,ok", message_edges="all")
    feats = next((tmp_path / "glt/part0").rglob("node_feat/feats.pkl"))
    assert pickle.loads(feats.read_bytes()).tolist() == [[20, 1], [0, 0], [7, 0]]
    graphprep.export(tmp_path / "store", tmp_path / "dgl", "graphbolt")
    folder = tmp_path / "dgl/preprocessed"
    assert np.load(folder / "node_data/n/age.npy").tolist() == [[20], [0], [7]]
    assert np.load(folder / "node_data/n/ok.npy").tolist() == [[1], [0], [0]]
    assert np.load(folder / "edge_data/n__e__n/ok.npy").tolist() == [[1], [0]]


@given(st.lists(st.text("nNaA/?\\ tTrRuUeE|.", max_size=6), max_size=9))
@example(["na", "\\N", "|N", "\\n", " NA\t", "N A", "nan", "TrUe", "truex", ""])
def test_words_agree_with_the_naive_loop(cells):
    words = (b"true", b"na", b"n/a", b"\\n", b"?")
    data = "".join(cells).encode()
    stop = np.cumsum([len(cell) for cell in cells], dtype=np.int64)
    start = np.concatenate([np.zeros(1, np.int64), stop[:-1]])[: len(cells)]
    plain = [cell.strip(" \t").lower().encode() for cell in cells]
    wanted = [EMPTY if not cell else words.index(cell) if cell in words else NO_WORD for cell in plain]
    assert find_words(np.frombuffer(data, np.uint8), start, stop, words).tolist() == wanted
