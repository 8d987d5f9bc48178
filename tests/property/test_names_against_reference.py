"""Random edge lists of names and of integers of any sign: convert against the slow reference builder, byte by byte."""

from __future__ import annotations

import csv
import io
import random
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from golden.golden_cases import read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

import graphprep
from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

quick = settings(max_examples=20, deadline=None)

partitioning = st.fixed_dictionaries(
    {
        "partitions": st.integers(1, 4),
        "partition_by": st.sampled_from(["range", "hash", "random"]),
        "seed": st.integers(0, 3),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "neighbor_order": st.sampled_from(["input", "id"]),
        "block_bytes": st.sampled_from([0, 1, 40]),
    }
)
letters = st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"])
few = st.sampled_from(
    ["a", "A", "ab", "é", "e\u0301", "日本", "\U0001f600", " a", "a,b", 'a"', "7", "07", "-7", "+7", "\uffff"]
)
names = few | st.text(letters, min_size=1, max_size=12).filter(lambda name: name.strip(" \t"))
numbers = st.integers(-9, 9) | st.sampled_from([-(2**63), -(2**63) + 1, -(2**40), 2**31, 2**63 - 1])
numbers_or_not = st.sampled_from(["", "", "1", "-2", "0.5"])
cells = st.sampled_from(["", "", "", "x", "7"])


def as_csv(rows) -> str:
    """Quote everything: a name may look like a comment. So may the first row like a header, which the options deny."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows(rows)
    return out.getvalue()


def compare(path: Path, store: Path, options: dict) -> None:
    pipeline.convert([str(path)], str(store), ConvertOptions(**options))
    expected = {
        name: file_bytes(value) for name, value in build_reference(read_graph("edges", [path], options), options).items()
    }
    got = read_store(store)
    if got != expected:  # metadata.json first: it says most
        assert got["metadata.json"].decode() == expected["metadata.json"].decode()
    assert sorted(got) == sorted(expected)
    assert [name for name in got if got[name] != expected[name]] == []


def compare_text(text: str, decoder_options: dict, options: dict) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(text.encode())
        compare(path, Path(folder) / "store", {"format": "edges", "decoder_options": decoder_options, **options})


@quick
@given(rows=st.lists(st.tuples(names, names), min_size=1, max_size=30), options=partitioning)
def test_names_equal_the_reference(rows, options):
    compare_text(as_csv(rows), {"id_type": "string", "header": "no"}, options)


@quick
@given(
    rows=st.lists(st.tuples(names, few, names, numbers_or_not, cells), min_size=1, max_size=30),
    options=partitioning,
)
def test_triples_equal_the_reference(rows, options):
    compare_text(as_csv(rows), {"id_type": "string", "header": "no", "relation_col": "1", "relation": "a:_:b"}, options)


@quick
@given(rows=st.lists(st.tuples(numbers, numbers), min_size=1, max_size=30), options=partitioning, modulo=st.booleans())
def test_signed_ids_equal_the_reference(rows, options, modulo):
    options = {**options, "partition_by": "modulo"} if modulo else options
    compare_text("".join(f"{src} {dst}\n" for src, dst in rows), {"id_type": "int", "header": "no"}, options)


@quick
@given(
    src=st.lists(numbers.map(str) | st.sampled_from(["007", "+7"]), min_size=1, max_size=12),
    stranger=st.sampled_from(["", "x", "1.5", "9223372036854775808", "0x1"]),
    options=partitioning,
)
def test_auto_equals_the_reference(src, stranger, options):
    """Sources are integers; destinations too, but for perhaps the last of all."""
    rows = list(zip(src, src[::-1], strict=True))
    if stranger:
        rows.append((src[0], stranger))
    compare_text(as_csv(rows), {"id_type": "auto", "relation": "u:r:v"}, options)


@quick
@given(rows=st.lists(st.tuples(names, names), min_size=1, max_size=30), options=partitioning)
def test_names_of_parquet_equal_the_reference(rows, options):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.parquet"
        columns = zip(*rows, strict=True)
        pq.write_table(pa.table(dict(zip("sd", columns, strict=True))), path, row_group_size=3)
        compare(path, Path(folder) / "store", {"format": "edges", **options})


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_any_order_and_split_give_the_same_map(data):
    """Nodes do not depend on the order of edges; raw to typed to raw is the identity."""
    found = data.draw(st.lists(names, min_size=30, max_size=60))
    rows = list(zip(found, found[1:] + found[:1], strict=True))
    other = random.Random(data.draw(st.integers(0, 99))).sample(rows, len(rows))
    with tempfile.TemporaryDirectory() as folder:
        stores = []
        for i, given_rows in enumerate((rows, other)):
            path, store = Path(folder) / f"{i}.csv", Path(folder) / f"store{i}"
            path.write_bytes(as_csv(given_rows).encode())
            run = RunOptions(threads=1 + 2 * i)
            given_options = {
                "format": "edges",
                "decoder_options": {"id_type": "string"},
                "partitions": 3,
                "block_bytes": 64 * i,
            }
            pipeline.convert([str(path)], str(store), ConvertOptions(**given_options, run=run))
            stores.append({name: value for name, value in read_store(store).items() if "raw_ids" in name})
        assert stores[0] == stores[1]
        distinct = sorted(set(found), key=str.encode)
        typed = graphprep.ids(str(store), distinct, from_="raw", to="typed")
        assert typed.tolist() == list(range(len(distinct)))
        assert graphprep.ids(str(store), typed, from_="typed", to="raw").tolist() == distinct
