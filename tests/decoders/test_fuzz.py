"""Random and mutated bytes through every decoder: rows or the documented error come out, nothing else."""

from __future__ import annotations

import gzip
import io
import random

import decoders.test_contract as contracts
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoders.chunked_graphs import CSV, NPY, PARQUET, rows_of, shop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphprep.decoders.registry import find_decoder, known_decoders, make_decoder, sniff
from graphprep.decoders.tables.decoder import TablesDecoder
from graphprep.model.errors import GraphprepError
from graphprep.model.protocols import ReadsConfig
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows, mutations

CONTRACTS = {
    name.removeprefix("Test"): value()
    for name, value in vars(contracts).items()
    if isinstance(value, type) and name[:4] == "Test"
}
QUICK = settings(deadline=None, max_examples=70, suppress_health_check=[HealthCheck.too_slow])
ALL = pytest.mark.parametrize("contract", CONTRACTS.values(), ids=CONTRACTS)

# What means something in one format or another, so that random texts get past the first byte.
_WORDS = [
    *(
        b"\n",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b",",
        b";",
        b":",
        b"|",
        b"/",
        b"\\",
        b'"',
        b"#",
        b"%",
        b"-",
        b"+",
        b".",
        b"e",
        b"_",
    ),
    *(b"0", b"1", b"-1", b"007", b"255", b"256", b"2147483648", b"18446744073709551615", b"18446744073709551616", b"-0"),
    *(b"0.5", b"1e400", b"-1e-400", b"nan", b"inf", b"NaN", b"Infinity", b"null", b"true", b"False", b"1_0", b"0x1"),
    *(b"float32", b"int8", b"uint64", b"bool", b"binary", b"complex64", b"U3", b"object", b"3/2", b"1/0", b"0/0"),
    *(b"f:", b"i8:", b"b:", b"d:1 2", b"{", b"}", b"[", b"]", b"{}", b"[]", b'"edge": [', b'"node_id": 1', b'"0": [1]'),
    *(
        b"\x00",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xc3\xa9",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0031",
    ),
]


@ALL
@QUICK
@given(data=st.binary(max_size=200))
def test_random_bytes(contract, data):
    contract.check_any(data)


@ALL
@QUICK
@given(words=st.lists(st.sampled_from(_WORDS), max_size=40))
def test_random_words(contract, words):
    contract.check_any(b"".join(words))


@ALL
@QUICK
@given(data=st.data())
def test_lines_with_words_in_them(contract, data):
    lines = [bytearray(line) for line in contract.lines]
    for _ in range(data.draw(st.integers(1, 3))):
        line = data.draw(st.sampled_from(lines))
        at = data.draw(st.integers(0, len(line)))
        stop = min(len(line), at + data.draw(st.sampled_from([0, 0, 1, 3, 10])))
        line[at:stop] = data.draw(st.sampled_from(_WORDS))
    contract.check_any(b"\n".join(lines))


@ALL
def test_lines_of_other_formats(contract):
    for other in CONTRACTS.values():
        contract.check_any(other.text)
        contract.check_any(contract.text + other.text)


@ALL
@pytest.mark.parametrize("size", [1, 7, 64])
def test_every_cut(contract, size):
    text = contract.text
    for at in range(0, len(text), size):
        contract.check_any(text[:at])
        contract.check_any(text[at:])


@ALL
def test_long_fields(contract):
    for filler in (
        b"9",
        b"[",
        b"{",
        b'"',
        b"a",
        b",",
        b"1,",
        b"\\",
        b"\t",
        b" ",
        b"\x00",
        b"\xc3\xa9",
        b"-",
        b"0.",
        b";",
        b"|",
    ):
        for count in (300, 5000):
            contract.check_any(filler * count)
            contract.check_any(contract.lines[0] + filler * count + b"\n" + contract.text)


# ------------------------------------------------------------------------------------------------ files


def read_all(url: str, format: str | None) -> None:
    """Sniff, plan and decode a file as convert does, without its stages."""
    with Storage() as storage:
        name = format or sniff(storage, [url]).decoder
        decoder = make_decoder(find_decoder(name), {})
        if isinstance(decoder, ReadsConfig):
            config = decoder.read_config(storage, [url])
            decoder = TablesDecoder()
            sources = decoder.plan_graph(storage, config)
        else:
            sources = decoder.plan(storage, [url])
        for span in sources.spans:
            if span.kind == "table":
                with storage.open(span.url) as handle:
                    for rows in decoder.read(handle, span, 1000):
                        check_rows(rows)
            else:
                for block in text_blocks(storage, span, 1 << 16):
                    check_rows(decoder.decode(block))


@pytest.mark.parametrize("format", [None, *(name for name in known_decoders() if name != "chunked")])
def test_mutated_files(tmp_path, format):
    path = tmp_path / "input"
    rng = random.Random(1)
    texts = [contract.text for contract in CONTRACTS.values()]
    for i, data in enumerate(mutations(rng.choice(texts), 60, seed=3)):
        path.write_bytes(gzip.compress(data)[: rng.choice([None, None, -3, 20])] if i % 3 == 0 else data)
        try:
            read_all(str(path), format)
        except GraphprepError as error:
            assert error.message


def parquet_edges() -> bytes:
    table = pa.table(
        {"src": np.arange(50), "dst": np.arange(50)[::-1], "w": np.linspace(0, 1, 50), "t": [f"x{i}" for i in range(50)]}
    )
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def test_mutated_parquet(tmp_path):
    path = tmp_path / "input.parquet"
    for data in mutations(parquet_edges(), 80, seed=5):
        path.write_bytes(data)
        try:
            read_all(str(path), "edges")
        except GraphprepError as error:
            assert error.message


def chunked_graph(folder) -> None:
    """Write a graph whose edges and features lie in files of every kind."""
    shop(
        folder,
        edges={"user:buys:item": {"format": PARQUET, "data": ["buys.parquet"]}},
        edge_data={"user:buys:item": {"stars": {"format": CSV, "data": ["stars.csv"]}}},
        node_data={
            "user": {"age": {"format": NPY, "data": ["age.npy"]}, "name": {"format": PARQUET, "data": ["name.parquet"]}}
        },
    )
    pq.write_table(pa.table({"src": [0, 1], "dst": [2, 0]}), folder / "buys.parquet")
    pq.write_table(pa.table({"name": pa.array([[1.5, 2], [3, 4]], pa.list_(pa.float32(), 2))}), folder / "name.parquet")
    (folder / "stars.csv").write_text("1,2.5\n4,5\n")


def test_mutated_chunked_graphs(tmp_path):
    chunked_graph(tmp_path)
    assert sum(rows.num_records for _, rows in rows_of(tmp_path)) > 0
    for path in sorted(one for one in tmp_path.iterdir() if one.is_file()):
        whole = path.read_bytes()
        for data in mutations(whole, 25, seed=7):
            path.write_bytes(data)
            try:
                for _, rows in rows_of(tmp_path):
                    check_rows(rows)
            except GraphprepError as error:
                assert error.message
        path.write_bytes(whole)
