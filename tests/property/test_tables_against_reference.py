"""Random tables of two node types and three edge types: convert against the slow reference builder, byte by byte."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from golden.golden_cases import read_store
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions

letters = st.characters(exclude_characters="\r", exclude_categories=["Cs", "Cc"])
names = st.sampled_from(["a", "A", "é", "a b", "7", "-7", 'q"', "x,y", "two\nlines"]) | st.text(letters, min_size=1, max_size=5)
names = names.filter(lambda name: name.strip(" \t"))
numbers = st.integers(-3, 12) | st.sampled_from([-(2**63), 2**40, 2**63 - 1])
cells = {
    "int": st.none() | st.integers(-5, 5),
    "float": st.none() | st.sampled_from([0.5, -1.25, 1e30]),
    "text": st.none() | st.sampled_from(["x", "1", "é", "a,b", 'q"', " b"]),
}
options = st.fixed_dictionaries(
    {
        "partitions": st.integers(1, 3),
        "partition_by": st.sampled_from(["range", "hash", "random"]),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "neighbor_order": st.sampled_from(["input", "id", "weight"]),
        "on_missing_node": st.sampled_from(["drop", "create"]),
        "block_bytes": st.sampled_from([0, 1, 40]),
    }
)


def write_table(path: Path, columns: dict[str, list]) -> None:
    """Write a table in the format that the suffix names."""
    if path.suffix == ".parquet":
        kinds = {int: pa.int64(), float: pa.float64(), str: pa.string()}
        found = {name: next((kinds[type(v)] for v in given if v is not None), pa.int64()) for name, given in columns.items()}
        pq.write_table(
            pa.table({name: pa.array(given, found[name]) for name, given in columns.items()}), path, row_group_size=3
        )
        return
    rows = list(zip(*columns.values(), strict=True))
    if path.suffix == ".jsonl":
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        path.write_bytes("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode())
        return
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([tuple(columns), *rows])
    path.write_bytes(out.getvalue().encode())


@st.composite
def tables(draw):
    """Draw the columns of every table by name: (file without suffix, columns)."""
    users = draw(st.lists(names, min_size=1, max_size=8, unique=True))
    ends = st.sampled_from(users) | names
    size = st.integers(1, 10)

    def column(kind, n):
        return draw(st.lists(cells[kind], min_size=n, max_size=n))

    def several(strategy, n):
        return draw(st.lists(strategy, min_size=n, max_size=n))

    kinds = draw(st.lists(st.sampled_from(sorted(cells)), max_size=3))
    user = {"key": users, **{f"c{i}_{kind}": column(kind, len(users)) for i, kind in enumerate(kinds)}}
    n, m, k = draw(size), draw(size), draw(size)
    follows = {"src": several(ends, n), "dst": several(ends, n), "score": column("float", n), "why": column("text", n)}
    buys = {"src": several(ends, m), "dst": several(numbers, m), "n": column("int", m)}
    near = {"src": several(numbers, k), "dst": several(numbers, k)}
    return {"user": user, "follows": follows, "buys": buys, "near": near}


# Shrinking whole conversions takes minutes and says little more.
@settings(max_examples=25, deadline=None, phases=[Phase.reuse, Phase.generate])
@given(tables=tables(), options=options, suffixes=st.tuples(*[st.sampled_from([".csv", ".parquet", ".jsonl"])] * 4))
def test_tables_equal_the_reference(tables, options, suffixes):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for (table, columns), suffix in zip(tables.items(), suffixes, strict=True):
            write_table(folder / f"{table}{suffix}", columns)
        files = dict(zip(tables, (f"{table}{suffix}" for table, suffix in zip(tables, suffixes, strict=True)), strict=True))
        config = {
            "nodes": [
                {"type": "item", "id_type": "int"},
                {"type": "user", "files": files["user"], "id_col": "key", "id_type": "string", "quote": True},
            ],
            "edges": [
                {"type": "user:follows:user", "files": files["follows"], "weight_col": "score", "quote": True},
                {"type": "user:buys:item", "files": files["buys"], "quote": True},
                {"type": "item:near:item", "files": files["near"]},
            ],
        }
        (folder / "graph.json").write_text(json.dumps(config))
        given_options = {"format": "graph", **options}
        pipeline.convert([str(folder / "graph.json")], str(folder / "store"), ConvertOptions(**given_options))
        graph = read_graph("graph", [folder / "graph.json"], given_options)
        expected = {path: file_bytes(value) for path, value in build_reference(graph, given_options).items()}
        got = read_store(folder / "store")
        if got != expected:  # metadata.json first: it says most
            assert got["metadata.json"].decode().splitlines() == expected["metadata.json"].decode().splitlines()
        assert sorted(got) == sorted(expected)
        assert [path for path in got if got[path] != expected[path]] == []
