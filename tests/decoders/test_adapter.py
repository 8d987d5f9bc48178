"""Decoders written for DeepGNN, through the adapter."""

from __future__ import annotations

import numpy as np
import pytest

from graphprep.decoders.adapter import LineDecoderAdapter
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import Span, TextBlock


class Yields:
    """Yields what a test gives it, one list of records a line."""

    def __init__(self, *lines):
        self.lines = lines

    def decode(self, line):
        yield from self.lines[int(line)]


def decode(*lines, places=False, **options):
    data = "".join(f"{i}\n" for i in range(len(lines))).encode()
    return LineDecoderAdapter(Yields(*lines), **options).decode(TextBlock(data, Span("x")), places)


def node(number=0, features=(), **more):
    values = {"type": 0, "weight": 1.0, "created": None, "removed": None} | more
    return (number, -1, *values.values(), list(features))


def columns(rows):
    return {(c.key.name, c.key.family, c.key.dtype, c.key.width, c.item_shape): c for c in rows.columns}


def test_rows():
    rows = decode(
        [node(5, created=3), (5, 2**64 - 1, 7, 0.1, None, None, None)],
        [(np.int64(1), np.uint64(2), np.int32(3), np.float32(0.5), 4, -1, [])],
        [node(9, type=2), node(8, removed=0), (8, 9, 0, 1, None, None, [None, None, "x"])],
        places=True,
    )
    assert (rows.nodes.ids.tolist(), rows.nodes.type_names, rows.nodes.types.tolist()) == ([5, 9, 8], ("0", "2"), [0, 1, 0])
    assert (rows.edges.src.tolist(), rows.edges.dst.tolist()) == ([5, 1, 8], [2**64 - 1, 2, 9])
    assert [rows.edges.relation_names[code].name for code in rows.edges.relations] == ["7", "3", "0"]
    assert (rows.nodes.at.tolist(), rows.edges.at_src.tolist(), rows.edges.record.tolist()) == (
        [0, 4, 4],
        [0, 2, 4],
        [0, -1, 2],
    )
    assert (rows.edges.num_slots.tolist(), rows.num_records) == ([0, 0, 3], 3)
    found = columns(rows.edges)
    assert found["weight", "numbers", "float32", 0, ()].values.tolist() == [np.float32(0.1), 0.5, 1]
    assert found["created_at", "numbers", "int64", 0, ()].rows.tolist() == [1]
    assert columns(rows.nodes)["removed_at", "numbers", "int64", 0, ()].values.tolist() == [0]


def test_features():
    rows = decode(
        [node(0, [np.array([1, 2], np.int8), None, "é", (np.array([[1, 2]]), np.array([0.5])), np.array([], np.int8)])],
        [node(1, [np.array([3, 4], np.int8), np.array([[1.0, 2]]), "", ([5, 6], [1, 2])])],
        [node(2, [np.array([5], ">i2"), np.bool_(True), None, (np.array([]), np.array([]))])],
    )
    found = columns(rows.nodes)
    assert found["feat_0", "numbers", "int8", 0, (2,)].values.tolist() == [1, 2, 3, 4]
    assert found["feat_0", "numbers", "int16", 0, (1,)].rows.tolist() == [2]
    assert found["feat_1", "numbers", "float64", 0, (1, 2)].values.tolist() == [1, 2]
    assert found["feat_1", "numbers", "bool", 0, (1,)].values.tolist() == [True]
    assert found["feat_2", "binary", "uint8", 0, None].counts.tolist() == [2, 0]
    assert found["feat_3", "sparse", "float64", 2, None].coords.tolist() == [1, 2]
    assert found["feat_3", "sparse", "int64", 0, None].coords.tolist() == [5, 6]
    assert rows.nodes.num_slots.tolist() == [5, 4, 4]
    assert len(found) == 1 + 7


def test_plan_says_that_it_adapts():
    sources = LineDecoderAdapter(Yields()).plan(None, ["a", "b"])
    assert [span.url for span in sources.spans] == ["a", "b"]
    assert (sources.nodes, sources.always_weighted) == ("records", True)
    name = f"{Yields.__module__}:Yields"
    assert sources.messages == (f"{name} is written for DeepGNN: it runs through an adapter, a line at a time",)


CORRECT = "\n  fix: correct the line or the decoder"


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (5, "the decoder must yield (src, dst, type, weight, created_at, removed_at, features), found 5"),
        ((1, 2), "the decoder must yield (src, dst, type, weight, created_at, removed_at, features), found (1, 2)"),
        (node(-1), "the decoder must yield src as an integer from 0 to 18446744073709551615, found -1"),
        (node("1"), "the decoder must yield src as an integer from 0 to 18446744073709551615, found '1'"),
        ((1, 2.0, 0, 1, 0, 0, []), "the decoder must yield dst as an integer from 0 to 18446744073709551615, found 2.0"),
        (node(type=2**31), "the decoder must yield type as an integer from 0 to 2147483647, found 2147483648"),
        (node(weight=None), "the decoder must yield weight as a number, found None"),
        (node(weight=1e39), "the decoder must yield weights that fit their dtype, found 1e+39"),
        (node(created=1.5), "the decoder must yield created_at as an integer from -9223372036854775808 to 9223372036854775807, found 1.5"),
        (node(features=[np.array(["x"])]), "the decoder must yield features of numbers, found dtype('<U1')"),
        (node(features=[([1, 2], [1])]), "the decoder must yield one value for each coordinate, found ([1, 2], [1])"),
        (node(features=[([0.5], [1])]), "the decoder must yield coordinates as integers in one or two dimensions, and flat values, found ([0.5], [1])"),
        (node(features=[(1,)]), "the decoder must yield sparse features as (coordinates, values), found (1,)"),
        (node(features=["\ud800"]), "the decoder yields a text with half a surrogate pair, found '\\ud800'"),
    ],
)  # fmt: skip
def test_records_that_cannot_be_stored(record, message):
    with pytest.raises(DecodeError) as caught:
        decode([node()], [record])
    assert (str(caught.value), caught.value.at) == (message + CORRECT, 2)


def test_what_the_decoder_raises_is_told():
    decoder = LineDecoderAdapter(Yields([node()]))
    with pytest.raises(DecodeError) as caught:
        decoder.decode(TextBlock(b"0\r\n\r\n 7\n", Span("x")))
    assert str(caught.value) == "Yields failed: IndexError: tuple index out of range\n  fix: correct the line or the decoder"
    assert caught.value.at == 5
    with pytest.raises(DecodeError) as caught:
        decoder.decode(TextBlock(b"0\n0\xff\n", Span("x")))
    assert (str(caught.value), caught.value.at) == ("invalid UTF-8 byte 0xff\n  fix: write the file in UTF-8", 3)
