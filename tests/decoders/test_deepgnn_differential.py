"""EdgeList and TSV against the decoders of the PyPI package deepgnn-ge, line by line.

Only what both read alike: not bool (theirs is always true), not what theirs refuses or drops and docs/ list. Its package
needs a cloud's libraries to be imported, its decoders' file only NumPy: so that file is loaded alone.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.decoded import edges_of, nodes_of

from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.model.protocols import Span, TextBlock

_PACKAGE = importlib.util.find_spec("deepgnn")
if _PACKAGE is None or not _PACKAGE.submodule_search_locations:
    pytest.skip("deepgnn-ge is not installed", allow_module_level=True)


def load_decoders():
    path = Path(_PACKAGE.submodule_search_locations[0], "graph_engine", "snark", "decoders.py")
    spec = importlib.util.spec_from_file_location("deepgnn_decoders", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


peer = load_decoders()
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")


def theirs(decoder, line: str, dated: bool = False) -> tuple[list, list]:
    """Nodes and edges of a line as their decoder yields them, in our tests' form."""
    nodes, edges = [], []
    for src, dst, kind, weight, created, removed, features in decoder.decode(line):
        one = {"type": str(kind), "weight": np.array([weight], np.float32).tobytes(), "num_slots": len(features)}
        one["slots"] = {slot: their_value(value) for slot, value in enumerate(features) if value is not None}
        if dated:
            one |= {"created_at": np.int64(created).tobytes(), "removed_at": np.int64(removed).tobytes()}
        if dst == -1:
            nodes.append(one | {"id": src})
        else:
            edges.append(one | {"src": src, "dst": dst})
    return nodes, edges


def their_value(value) -> tuple:
    if isinstance(value, str):
        return ("binary", "uint8", 0, None, value.encode())
    if isinstance(value, tuple):
        coords, values = value
        width = 0 if coords.ndim == 1 else coords.shape[1]
        return ("sparse", values.dtype.name, width, coords.ravel().tolist(), values.tobytes())
    return ("numbers", value.dtype.name, 0, None, value.tobytes())


def ours(decoder, text: str) -> tuple[list, list]:
    found = decoder.decode(TextBlock(text.encode(), Span("x")))
    return nodes_of(found.nodes), edges_of(found.edges)


def check_lines(decoder, their_decoder, lines: list[str], dated: bool = False, key=None) -> None:
    nodes, edges = ours(decoder, "".join(line + "\n" for line in lines))
    expected = [theirs(their_decoder, line, dated) for line in lines]
    assert nodes == [one for found, _ in expected for one in found]
    if key is not None:  # their TSV sorts the edges of a row
        edges = sorted(edges, key=key)
    expected_edges = [one for _, found in expected for one in found]
    assert edges == (sorted(expected_edges, key=key) if key is not None else expected_edges)


ids = st.integers(0, 2**64 - 1)
types = st.integers(0, 2**31 - 1)


def number(dtype: str):
    if dtype in INTS:
        info = np.iinfo(dtype)
        texts = st.sampled_from(["{}", "{:+}", "{:05}"])
        return st.tuples(st.integers(int(info.min), int(info.max)), texts).map(lambda one: one[1].format(one[0]))
    return st.floats(width=np.dtype(dtype).itemsize * 8, allow_nan=False).map(repr) | st.sampled_from(
        ["nan", "inf", "-inf", "-0"]
    )


characters = st.characters(exclude_characters="\n\r\x00", exclude_categories=["Cs"])


@st.composite
def edgelist_features(draw) -> list[str]:
    columns: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        dtype = draw(st.sampled_from((*INTS, *FLOATS, "binary", "float", "f4")))
        if dtype == "binary":
            pieces = draw(st.lists(st.text(characters | st.just("\\"), max_size=5), min_size=1, max_size=2))
            # Behind an odd number of escapes a comma belongs to the text, behind an even number it ends it.
            text = re.sub(r"(\\*),", lambda found: found[1] + "\\" * (1 - len(found[1]) % 2) + ",", ",".join(pieces))
            columns += [dtype, "1", text + "\\" * ((len(text) - len(text.rstrip("\\"))) % 2)]
            continue
        values = draw(st.lists(number(np.dtype(dtype).name), max_size=3))
        if not values or draw(st.booleans()):
            columns += [f" {dtype}", str(len(values)), *values]
            continue
        width = draw(st.integers(0, 2))
        coords = draw(
            st.lists(st.integers(0, 2**63 - 1), min_size=len(values) * max(width, 1), max_size=len(values) * max(width, 1))
        )
        columns += [dtype, f"{len(values)}/{width}", *map(str, coords), *values]
    return columns + draw(st.sampled_from([[], [""]]))


@st.composite
def edgelist_lines(draw, temporal: bool):
    head = [draw(ids), -1, draw(types)] if draw(st.booleans()) else [draw(ids), draw(types), draw(ids)]
    times = draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2)) if temporal else []
    return ",".join([*map(str, head), draw(number("float32")), *map(str, times), *draw(edgelist_features())])


@pytest.mark.parametrize("temporal", [False, True])
@given(data=st.data())
@settings(deadline=None, max_examples=120)
def test_edgelist(temporal, data):
    lines = data.draw(st.lists(edgelist_lines(temporal), max_size=6))
    check_lines(EdgeListDecoder(temporal=temporal), peer.EdgeListDecoder(is_temporal=temporal), lines, dated=temporal)


@pytest.mark.parametrize(
    ("mine", "their", "line"),
    [
        ({"default_node_type": 5}, {"default_node_type": 5}, "1,-1,0.5,int8,1,3"),
        ({"default_node_weight": 2.0}, {"default_node_weight": 2.0}, "1,-1,0,int8,1,3"),
        ({"default_edge_type": 5}, {"default_edge_type": 5}, "1,2,0.5,int8,1,3"),
        ({"default_edge_weight": 2.0}, {"default_edge_weight": 2.0}, "1,0,2,int8,1,3"),
        ({"delimiter": "\t"}, {"delimiter": "\t"}, "1\t0\t2\t1.5\tbinary\t1\ta\\\tb,c"),
        (
            {"delimiter": "||", "length_delimiter": "::"},
            {"delimiter": "||", "length_delimiter": "::"},
            "1||0||2||1||int8||1::1||3||4",
        ),
        ({"binary_escape": "^"}, {"binary_escape": "^"}, "1,0,2,1,binary,1,a^,b\\,int8,1,3"),
        (
            {"default_node_feature_types": "int8,-,float32,binary", "default_node_feature_lens": "2,2/0,-,1"},
            {
                "default_node_feature_types": ["int8", None, "float32", "binary"],
                "default_node_feature_lens": [[2], [2, 0], None, [1]],
            },
            "1,-1,0,1,4,5,uint8,6,7,8,9,1,0.5,text,int8,1,3",
        ),
        (
            {"default_edge_feature_types": "-,int8", "default_edge_feature_lens": "-,1"},
            {"default_edge_feature_types": [None, "int8"], "default_edge_feature_lens": [None, [1]]},
            "1,0,2,1",
        ),
    ],
)
def test_edgelist_options(mine, their, line):
    check_lines(EdgeListDecoder(**mine), peer.EdgeListDecoder(**their), [line])


TSV_CODES = {"f": "float32", "f16": "float16", "f32": "float32", "f64": "float64", "d": "float64", "double": "float64"}
TSV_CODES |= {f"{letter}{bits}": f"{name}{bits}" for letter, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}


@st.composite
def tsv_features(draw, refused: str) -> str:
    entries = []
    for _ in range(draw(st.integers(0, 4))):
        code = draw(st.sampled_from(("", "b", "binary", *TSV_CODES)))
        if code == "":
            entries.append("")
        elif code in TSV_CODES:
            entries.append(f"{code}:" + " ".join(draw(st.lists(number(TSV_CODES[code]), min_size=1, max_size=3))))
        else:
            text = st.text(
                st.characters(exclude_characters="\n\r\x00:;" + refused, exclude_categories=["Cs"]), min_size=1, max_size=5
            )
            entries.append(f"{code}:{draw(text)}")
    return ";".join(entries)


@st.composite
def tsv_lines(draw):
    weight = number("float32") | st.just("")
    ends = [
        f"{draw(ids)},{draw(types)},{draw(weight)},{draw(tsv_features(refused='|,'))}" for _ in range(draw(st.integers(0, 3)))
    ]
    cells = [str(draw(ids)), draw(st.just("") | types.map(str)), draw(weight), draw(tsv_features("")), "|".join(ends)]
    return "\t".join(
        '"' + cell.replace('"', '""') + '"' if "\t" in cell or cell.startswith('"') or draw(st.booleans()) else cell
        for cell in cells[: draw(st.integers(3, 5))]
    )


@given(lines=st.lists(tsv_lines(), max_size=5))
@settings(deadline=None, max_examples=100)
def test_tsv(lines):
    for line in lines:  # one by one: their edges are sorted by type and destination, row by row
        check_lines(TsvDecoder(), peer.TsvDecoder(), [line], key=lambda one: (int(one["type"]), one["dst"]))
