"""The plain way of decoding edge lists gives what the general way does: the same rows, the same columns, the same faults."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.kernels.cpu.text import delimited
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import Span, TextBlock

OPTIONS = [
    {},
    {"weight_col": "2"},
    {"weight_col": "2", "weight_dtype": "float64"},
    {"index_base": 1},
    {"src_col": "1", "dst_col": "0"},
    {"columns": ["col_2=float32"]},
    {"columns": ["col_2=int32"]},
    {"columns": ["col_2=binary"]},
    {"time_col": "2"},
]
VALUES = {
    "none": st.none(),
    "floats": st.floats(-1e6, 1e6).map(lambda value: f"{value:.5f}"),
    "ints": st.integers(-(10**6), 10**6).map(str),
    "any floats": st.floats(allow_nan=False).map(repr),
    "mixed": st.sampled_from(["1", "2.5", "-0", "1e3", "nan", "1e39", "x", "", "inf"]),
}
ODD = [
    "",
    "# comment",
    "% 1 2",
    "  ",
    "7",
    "1 2 3 4",
    "+1 2 0.5",
    "1 -2 0.5",
    '"1" "2" "3"',
    "a b c",
    "4294967296 1 0.5",
    "0 0 0.5",
]


@st.composite
def texts(draw):
    """Draw lines of a delimiter; sometimes one is odd."""
    delimiter = draw(st.sampled_from([" ", "\t", ","]))
    values = VALUES[draw(st.sampled_from(sorted(VALUES)))]
    rows = draw(st.lists(st.tuples(st.integers(1, 2**20), st.integers(1, 2**20), values), min_size=1, max_size=50))
    lines = [delimiter.join(str(field) for field in row if field is not None) for row in rows]
    if draw(st.booleans()):
        odd = draw(st.sampled_from(ODD)).replace(" ", delimiter)
        lines.insert(draw(st.integers(1, len(lines))), odd)
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from([end, ""]))).encode()


def outcome(decoder, block, *, places):
    """Return everything that a decoder says of a block, but the places."""
    try:
        edges = decoder.decode(block, places).edges
    except DecodeError as error:
        return error.at, error.message, error.fix
    columns = [(chunk.key, chunk.rows.tolist(), chunk.counts.tolist(), chunk.values.tobytes()) for chunk in edges.columns]
    return edges.src.tolist(), edges.dst.tolist(), edges.relations.tolist(), edges.relation_names, columns


@settings(deadline=None, max_examples=300)
@given(texts(), st.sampled_from(OPTIONS))
@example(b"1 2 0.5\n" * 60 + b"1 2 1\n" * 60, {})
@example(b"1 2 1\n" * 60 + b"1 2 0.5\n" * 60, {})
@example(b"1 2 0.5\n" * 60 + b"1 2 text\n" * 60, {})
@example(b"1 2\n" * 60 + b"0 2\n" * 60, {"index_base": 1})
@example(b"1 2 1e39\n" * 60, {"weight_col": "2"})
def test_the_plain_way_is_the_general_way(text, options):
    block = TextBlock(text, Span("edges.txt"))
    decoder = EdgesDecoder(**options)
    try:
        expected = outcome(decoder, block, places=True)
    except Exception as error:  # the options do not fit the file: no block is decoded
        with pytest.raises(type(error)) as caught:
            decoder.decode(block)
        assert str(caught.value) == str(error)
        return
    assert outcome(decoder, block, places=False) == expected


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (b"1 2\n", {}),
        (b"1\t2\r\n", {}),
        (b"1,2,0.5\n", {}),
        (b"1;2;0.5\n", {"weight_col": "2", "delimiter": ";"}),
        (b"1 2 nan\n", {"columns": ["col_2=float16"]}),
    ],
)
def test_plain_lines_are_not_split(monkeypatch, line, options):
    """One split of the first lines may be needed to know what the third column holds, no more."""
    sizes = []
    split = delimited.split_fields
    monkeypatch.setattr(
        delimited, "split_fields", lambda buf, *rest, **more: sizes.append(buf.size) or split(buf, *rest, **more)
    )
    rows = EdgesDecoder(**options).decode(TextBlock(line * 5000, Span("edges.txt")))
    assert rows.num_records == 5000
    assert rows.edges.src.dtype == rows.edges.dst.dtype == np.uint32
    assert sum(sizes) <= 4096
