"""Columns to text, against Python's own formatting."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text.write_text import (
    EDGES,
    EIGHTHS,
    FEATURE_BYTES,
    FEATURES,
    INTEGER,
    MICRO,
    SLACK_BYTES,
    Template,
    write_integers,
    write_nodes,
    write_rows,
)

FIELDS = {"a": (INTEGER, 0), "b": (INTEGER, 1), "w": (MICRO, 2), "e": (EIGHTHS, 3), "f": (FEATURES, 0), "n": (EDGES, 0)}
BORDERS = sorted({abs(10**power + step) for power in range(19) for step in (-1, 0, 1)} | {2**63 - 1})
INTEGERS = st.one_of(st.sampled_from(BORDERS), st.integers(0, 2**63 - 1), st.integers(0, 10**8))
ROWS = st.lists(st.tuples(INTEGERS, INTEGERS, st.integers(0, 10**6 - 1), st.integers(0, 64)), max_size=20)
LITERAL = st.text(st.sampled_from('x,:{}" ['), max_size=20)


def columns_of(rows):
    return np.array(rows, np.int64).reshape(-1, 4).T.copy()


def filled(size):
    """An array of exactly ``size`` bytes in front of bytes that must stay."""
    memory = np.full(size + 64, 7, np.uint8)
    return memory, memory[:size]


@settings(deadline=None, max_examples=150)
@given(rows=ROWS, literals=st.tuples(LITERAL, LITERAL, LITERAL, LITERAL, LITERAL))
def test_rows_are_written_as_python_writes_them(rows, literals):
    one, two, three, four, five = literals
    template = Template.parse(f"{one}<a>{two}<b>{three}<w>{four}<e>{five}", FIELDS)
    size = len(rows) * template.row_bytes + SLACK_BYTES
    memory, out = filled(size)
    count = write_rows(template, columns_of(rows), len(rows), out)
    wanted = "".join(f"{one}{a}{two}{b}{three}{w / 1e6:.6f}{four}{e / 8:g}{five}" for a, b, w, e in rows)
    assert out[:count].tobytes() == wanted.encode()
    assert (memory[size:] == 7).all()


def test_every_integer_below_a_hundred_thousand_and_at_every_power_of_ten():
    template = Template.parse("<a>\n", FIELDS)
    values = np.concatenate([np.arange(100_000), np.array(BORDERS)])
    out = np.empty(values.size * template.row_bytes + SLACK_BYTES, np.uint8)
    count = write_rows(template, np.tile(values, (4, 1)), values.size, out)
    assert out[:count].tobytes() == "".join(f"{value}\n" for value in values.tolist()).encode()


@settings(deadline=None, max_examples=50)
@given(
    nodes=st.lists(
        st.tuples(st.integers(0, 10**9), st.lists(st.tuples(INTEGERS, INTEGERS), max_size=4)), min_size=1, max_size=6
    ),
    width=st.integers(1, 5),
    separators=st.tuples(st.sampled_from(["", ",", ", ", "|"]), st.sampled_from(["", ";", "||/"])),
    seed=st.integers(0, 99),
)
def test_nodes_are_written_with_their_features_and_edges(nodes, width, separators, seed):
    node = Template.parse(f"<a>[<f:{separators[0]}>](<n:{separators[1]}>)\n", FIELDS)
    edge = Template.parse("<a>-<b>", FIELDS)
    features = np.random.default_rng(seed).integers(0, 10**5, (len(nodes), width))
    edges = [one for _, own in nodes for one in own]
    offsets = np.cumsum([0, *(len(own) for _, own in nodes)])
    columns = np.array([[number for number, _ in nodes]], np.int64)
    ends = np.array(edges, np.int64).reshape(-1, 2).T.copy()
    size = columns.size * (node.row_bytes + width * (FEATURE_BYTES + 2)) + len(edges) * (edge.row_bytes + 3) + SLACK_BYTES
    memory, out = filled(size)
    count = write_nodes(node, columns, features, edge, ends, offsets, out)
    wanted = ""
    for row, (number, own) in enumerate(nodes):
        texts = separators[0].join(f"{value / 1e5:.5f}" for value in features[row].tolist())
        wanted += f"{number}[{texts}]({separators[1].join(f'{a}-{b}' for a, b in own)})\n"
    assert out[:count].tobytes().decode() == wanted
    assert (memory[size:] == 7).all()


@settings(deadline=None)
@given(numbers=st.lists(INTEGERS, max_size=20))
def test_integers_alone(numbers):
    data, sizes = write_integers(np.array(numbers, np.uint64))
    ends = np.cumsum(sizes).tolist()
    assert [data[a:b].tobytes().decode() for a, b in zip([0, *ends], ends, strict=False)] == list(map(str, numbers))
    assert data.size == sizes.sum()
