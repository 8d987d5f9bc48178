"""The tokens of JSON lines against Python's own parser."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.deepgnn import json_tape as tape
from graphprep.testing.contract import mutations

MANY = settings(deadline=None, max_examples=150)

TEXTS = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from('"\\/\b\f\n\r\t\x00\x1f\u2028é€😀')), max_size=12)
NUMBERS = st.one_of(
    st.integers(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from([2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 0, -0.0, 1e22, 1e23, 5e-324, 1.7976931348623157e308, 0.1]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(TEXTS, inner, max_size=5)),
    max_leaves=30,
)


def rebuild(tokens: tape.Tokens, token: int):
    """The value at a token, and the token behind it."""
    buf, words, extra = tokens.tape
    kind, start, more = int(words[token]) >> tape.KIND_SHIFT, int(tape.positions(tokens.tape, token)), int(extra[token])
    if kind in (tape.NULL, tape.FALSE, tape.TRUE):
        return (None, False, True)[kind], token + 1
    if kind in (tape.TEXT, tape.ESCAPED):
        out = np.empty(more - start, np.uint8)
        size, lone = tape.unescape(buf, start + 1, more, out, 0)
        text = out[:size].tobytes().decode("utf-8", "surrogatepass")
        assert lone == any("\ud800" <= char <= "\udfff" for char in text)
        return text, token + 1
    if kind == tape.UINT:
        return more % 2**64, token + 1
    if kind == tape.NEGATIVE:
        return -(more % 2**64) if more else -0.0, token + 1
    if kind in (tape.BIG, tape.FLOAT, tape.HUGE, tape.NAN, tape.INFINITE):
        return float(tape.float_of(extra, token)), token + 1
    values, token = [], token + 1
    while token < more:
        value, token = rebuild(tokens, token)
        values.append(value)
    if kind == tape.OBJECT:
        return dict(zip(values[::2], values[1::2], strict=True)), token
    assert (kind == tape.NESTED) == any(isinstance(value, (list, dict)) for value in values)
    return values, token


def plain(value):
    """A value as the tape holds it: integers that no 64 bits hold, and -0, are floats."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return math.copysign(math.inf, value)
    return value


@MANY
@given(st.lists(VALUES, min_size=1, max_size=4), st.booleans(), st.sampled_from([None, (", ", ": "), (" ,\t", " :\r ")]))
def test_tokens_are_the_parsers_values(values, ascii_only, separators):
    lines = [json.dumps(value, ensure_ascii=ascii_only, separators=separators).encode() for value in values]
    tokens = tape.tokenize(b"\n \r\n".join(lines) + b"\n")
    assert (tokens.faults.size, tokens.roots.size) == (0, len(values))
    found = [rebuild(tokens, int(root))[0] for root in tokens.roots]
    assert repr(found) == repr([plain(json.loads(line)) for line in lines])


@MANY
@given(st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_numbers_are_rounded_as_python_rounds_them(text):
    tokens = tape.tokenize(f"{text}\n".encode())
    value = plain(json.loads(text))
    if isinstance(value, int) and text.startswith("-") and value == 0:
        value = -0.0
    assert repr(rebuild(tokens, 0)[0]) == repr(value)


def is_json(line: bytes) -> bool:
    try:
        text = line.decode()
        json.loads(text)
    except ValueError:
        return False
    return True


SEED = json.dumps(
    {"a": [1, -2.5e-3, None, True, [], {}], "b\n\\é😀": {"": "x", "y": [[1], [2, 3]]}, "n": 123456789012345678901234567890}
).encode() + b'  {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80": NaN, "c": [false, -Infinity, 0.0]}'  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_accepts_what_the_parser_accepts(seed):
    for line in mutations(SEED.partition(b"  ")[2 * (seed % 2)], 400, seed):
        if b"\n" not in line and line.strip(b" \t\r"):
            tokens = tape.tokenize(line + b"\n")
            assert (tokens.faults.size == 0) == is_json(line), line
            assert all(0 <= at <= len(line) for _, at in tokens.faults.tolist())


@MANY
@given(st.binary(max_size=60))
def test_random_bytes_are_refused_or_are_json(data):
    tokens = tape.tokenize(data + b"\n")
    lines = [line for line in (data + b"\n").split(b"\n") if line.strip(b" \t\r")]
    good = 0
    while good < len(lines) and is_json(lines[good]):
        good += 1
    assert (tokens.faults.size == 0, tokens.roots.size) == (good == len(lines), good)


@pytest.mark.parametrize("depth", [1, 99, 100, 101, 5000])
def test_depth_is_bounded(depth):
    for line in (b"[" * depth + b"]" * depth, b'{"a":' * (depth - 1) + b"{}" + b"}" * (depth - 1)):
        tokens = tape.tokenize(line + b"\n")
        if depth <= 100:
            assert (tokens.faults.size, tokens.roots.size) == (0, 1)
        else:
            assert tokens.faults[0, 0] == tape.TOO_DEEP
            assert tokens.faults[0, 1] == (100 if line[:1] == b"[" else 500)


@pytest.mark.parametrize(
    ("raw", "good"),
    [
        (b"\xc2\x80", True),
        (b"\xc1\x80", False),
        (b"\xe0\xa0\x80", True),
        (b"\xe0\x9f\x80", False),
        (b"\xed\x9f\xbf", True),
        (b"\xed\xa0\x80", False),
        (b"\xf0\x90\x80\x80", True),
        (b"\xf0\x8f\x80\x80", False),
        (b"\xf4\x8f\xbf\xbf", True),
        (b"\xf4\x90\x80\x80", False),
        (b"\xf5\x80\x80\x80", False),
        (b"\x80", False),
        (b"\xe2\x82", False),
        (b"\xf0\x9f\x98", False),
    ],
)
def test_utf8_is_checked(raw, good):
    assert is_json(b'"' + raw + b'"') is good
    tokens = tape.tokenize(b'"' + raw + b'"\n')
    assert tokens.faults[:, 0].tolist() == ([] if good else [tape.BAD_UTF8])
