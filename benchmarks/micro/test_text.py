"""Text to columns and columns to text, a block at a time on one thread."""

from __future__ import annotations

import numpy as np
import pytest

from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.kernels.cpu.text.pairs import parse_pairs, parse_weighted_pairs
from graphprep.kernels.cpu.text.write_text import INTEGER, SLACK_BYTES, Template, write_rows
from graphprep.model.protocols import Span, TextBlock

DECODERS = {"edgelist": EdgeListDecoder, "json": JsonDecoder, "tsv": TsvDecoder}


def test_parse_pairs(timed, text, ends):
    buf = np.frombuffer(text, np.uint8)
    src, dst = (np.empty(end.size, np.uint32) for end in ends)
    rows, _, at = timed(lambda: parse_pairs(buf, 0, buf.size, b" ", src, dst), src.size)
    assert (rows, at) == (src.size, buf.size)
    assert (src == ends[0]).all()
    assert (dst == ends[1]).all()


def test_parse_weighted_pairs(timed, weighted_text, ends):
    buf = np.frombuffer(weighted_text, np.uint8)
    src, dst = (np.empty(end.size, np.uint32) for end in ends)
    weight = np.empty(src.size)
    rows, _, at = timed(lambda: parse_weighted_pairs(buf, 0, buf.size, b" ", src, dst, weight), src.size)
    assert (rows, at) == (src.size, buf.size)
    assert weight[:100].tolist() == [float(line.split()[2]) for line in weighted_text.splitlines()[:100]]


@pytest.mark.parametrize("format", DECODERS)
def test_decode_lines(timed, deepgnn_text, format):
    data = deepgnn_text(format)
    block = TextBlock(data, Span(format))
    rows = timed(lambda: DECODERS[format]().decode(block), len(data))
    assert rows is not None


def test_write_rows(timed, ends, text):
    template = Template.parse("<src> <dst>\n", {"src": (INTEGER, 0), "dst": (INTEGER, 1)})
    columns = np.stack(ends)
    out = np.empty(columns.shape[1] * template.row_bytes + SLACK_BYTES, np.uint8)
    count = timed(lambda: write_rows(template, columns, columns.shape[1], out), columns.shape[1])
    assert out[:count].tobytes() == text
