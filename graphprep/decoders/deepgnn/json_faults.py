"""What is wrong with a JSON record, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from graphprep.decoders.deepgnn.slots import show
from graphprep.kernels.cpu.deepgnn import json_keys as keys
from graphprep.kernels.cpu.deepgnn import json_records as records
from graphprep.kernels.cpu.deepgnn import json_tape as tape
from graphprep.kernels.cpu.deepgnn import json_values as values
from graphprep.model.errors import DecodeError

_ONE_DOCUMENT = "write one JSON document a line, strictly as RFC 8259 has it"
_GROUPS = "use int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float, float32, double or float64"

_SHOWN_CHARS = 60
_SCALAR = re.compile(rb'"(?:[^"\\]|\\.)*"|[^ \t\r,:\]}\[{"]*(?=[ \t\r,:\]}])', re.DOTALL)  # that ends before the data does

# Message and remedy by code. {found} is what stands in the data, {name} the field or group, {dtype} the group's dtype.
_WORDS: dict[int, tuple[str, str]] = {
    tape.EXPECTED_VALUE: ("expected a JSON value, found {byte}", _ONE_DOCUMENT),
    tape.EXPECTED_KEY: ("expected a key in double quotes, found {byte}", _ONE_DOCUMENT),
    tape.EXPECTED_COLON: ("expected ':' after a key, found {byte}", _ONE_DOCUMENT),
    tape.EXPECTED_IN_OBJECT: ("expected ',' or '}}', found {byte}", _ONE_DOCUMENT),
    tape.EXPECTED_IN_ARRAY: ("expected ',' or ']', found {byte}", _ONE_DOCUMENT),
    tape.OPEN_DOCUMENT: ("the line ends inside a JSON document", "write one document a line, and check that the file is whole"),
    tape.OPEN_TEXT: (
        "the line ends inside a text",
        "close the text, write line breaks inside as \\n, and check that the file is whole",
    ),
    tape.CONTROL: ("a text holds the control character {byte}", "write it as an escape such as \\t or \\u0001"),
    tape.BAD_ESCAPE: ("a text holds the invalid escape {escape}", "write a backslash as \\\\"),
    tape.BAD_UTF8: ("a text holds the invalid UTF-8 byte {byte}", "write the file in UTF-8"),
    tape.BAD_NUMBER: ("malformed number {found}", "write numbers without leading zeros, with digits on both sides of a point"),
    tape.TOO_DEEP: (f"the document is nested beyond {tape.MAX_DEPTH} levels", "flatten it"),
    tape.TRAILING: ("expected the end of the line behind the document, found {byte}", _ONE_DOCUMENT),
    records.NOT_RECORD: ("a record must be a JSON object, found {found}", "write one node as an object a line"),
    records.DUPLICATE_KEY: ("key {found} stands twice in one object", "keep one of them"),
    records.MISSING_KEY: ("key '{name}' is missing", "add it: {needed}"),
    records.BAD_GROUP_NAME: (
        "unknown feature group {found}",
        f"{_GROUPS} before '_feature', or 'binary_feature'; put 'sparse_' before the numeric ones for sparse features",
    ),
    records.NOT_ID: ("field '{name}' must be an integer from 0 to 2^64-1, found {found}", "write IDs as JSON integers"),
    records.NOT_TYPE: ("field '{name}' must be an integer from 0 to 2147483647, found {found}", "number the types"),
    records.NOT_NUMBER: ("field '{name}' must be a number, found {found}", "write weights as JSON numbers"),
    records.TOO_LARGE: (
        "field '{name}' is too large for its dtype, found {found}",
        "use --weight-dtype float64, or a smaller weight",
    ),
    records.NOT_TIME: (
        "field '{name}' must be a time as an integer that fits int64, found {found}",
        "write whole numbers, or leave the key out",
    ),
    records.NOT_EDGE_LIST: ("field 'edge' must be a list, found {found}", "write [] for a node without edges"),
    records.NOT_EDGE: ("an edge must be a JSON object, found {found}", "give it src_id, dst_id, edge_type and weight"),
    records.NOT_NEIGHBOR: ("field 'neighbor' must hold objects, found {found}", 'write {{"<edge type>": {{"<dst>": weight}}}}'),
    records.NOT_TYPE_KEY: ("a key of 'neighbor' must be an edge type from 0 to 2147483647, found {found}", "number the types"),
    records.NOT_DST_KEY: (
        "a key below 'neighbor' must be a node ID from 0 to 2^64-1, found {found}",
        "write IDs as decimal digits",
    ),
    records.NOT_GROUP: (
        "group '{name}' must be an object of slots, found {found}",
        'write {{"<slot>": value}}, or null for no features',
    ),
    records.NOT_SLOT: ("group '{name}' must have slots from 0 to 2147483646 as keys, found {found}", "number the features"),
    records.SAME_SLOT: (
        "feature slot {found} stands twice, the second time in group '{name}'",
        "give every feature a slot of its own",
    ),
    records.NOT_FEATURE: (
        "group '{name}' must hold numbers or lists of numbers, found {found}",
        "write a feature as [1, 2, 3]",
    ),
    records.UNEVEN: (
        "the nested lists of a feature in group '{name}' differ in length at {found}",
        "fill them up, or write one flat list",
    ),
    records.TOO_MANY_DIMENSIONS: (
        f"a feature in group '{{name}}' has more than {records.MAX_DIMENSIONS} dimensions",
        "flatten it",
    ),
    records.NOT_TEXT: ("group '{name}' must hold texts, found {found}", 'write a text as "…", or use a group of numbers'),
    records.NOT_SPARSE: (
        "group '{name}' must hold objects with coordinates and values, found {found}",
        'write {{"coordinates": [0, 5], "values": [1, 2]}}',
    ),
    records.NOT_COORDINATES: (
        "sparse coordinates must be a list of integers or of lists of integers, found {found}",
        'write "coordinates": [0, 5] or [[0, 5], [1, 7]]',
    ),
    records.NOT_FLAT: ("sparse values must be a list of numbers, found {found}", "write one value for each coordinate"),
    records.MISMATCH: (
        "a sparse feature in group '{name}' has another number of values than of coordinates",
        "write one value for each coordinate",
    ),
    records.NOT_DATED: (
        "a temporal feature must hold objects with values and created_at, found {found}",
        'write [{{"values": [1, 2], "created_at": 0}}]',
    ),
    records.DATED_SPARSE: ("group '{name}' cannot hold temporal features", "only dense and binary features can be temporal"),
    values.NOT_INTEGER: (
        "group '{name}' must hold integers, found {found}",
        "use a group of floats, or whole numbers without a fraction",
    ),
    values.BELOW: ("{found} is negative, which {what} cannot be", "use a signed group, or correct the value"),
    values.SURROGATE: (
        "a text holds half a surrogate pair, which UTF-8 cannot write: {found}",
        "write both halves, or drop it",
    ),
}
_VALUE_WORDS: dict[int, tuple[str, str]] = {
    records.NOT_NUMBER: ("group '{name}' must hold numbers, found {found}", "write a feature as [1, 2, 3]"),
    records.TOO_LARGE: ("{found} does not fit {what}", "use a group of a wider dtype, or correct the value"),
    records.NOT_TIME: (
        "created_at and removed_at of a temporal feature must be integers that fit int64, found {found}",
        "write whole numbers",
    ),
}
_COORDINATE_WORDS: dict[int, tuple[str, str]] = {
    records.TOO_LARGE: ("{found} does not fit a coordinate (-9223372036854775808 to 9223372036854775807)", "correct the value"),
    values.NOT_INTEGER: ("a sparse coordinate must be an integer, found {found}", "write whole numbers"),
}

_EDGE_NEEDS = "an edge has src_id, dst_id, edge_type and weight"
STRICT_NEIGHBORS = "fields 'edge' and 'neighbor' of a record differ"


def fault(data: bytes, code: int, at: int, name: int = 0) -> DecodeError:
    """Word a fault.

    ``at`` is the position of what is to blame in ``data``; ``name`` the number of the field or group (``json_keys``).
    """
    words = _VALUE_WORDS if name >= keys.DENSE_GROUP else _COORDINATE_WORDS if name == keys.KEY_COORDINATES else _WORDS
    message, fix = words.get(code) or _WORDS[code]
    if code in (tape.EXPECTED_KEY, tape.EXPECTED_VALUE) and data[at : at + 1] in (b"}", b"]"):
        line = data.rfind(b"\n", 0, at) + 1
        if data[line:at].rstrip(b" \t\r").endswith(b","):
            message, fix = "a comma stands before {byte}", "leave the comma out"
    facts = _Facts(data, at, name)
    return DecodeError(message.format_map(facts), at=at, fix=fix.format_map(facts))


class _Facts(dict[str, str]):
    """What messages name, made when it is asked for."""

    def __init__(self, data: bytes, at: int, name: int) -> None:
        super().__init__(name=keys.NAMES[name])
        self._where = (data, at, name)

    def __missing__(self, key: str) -> str:
        data, at, name = self._where
        if key == "found":
            return found_at(data, at)
        if key == "byte":
            return _byte(data, at)
        if key == "escape":
            return show(data[at : at + 2])
        if key == "needed":
            is_of_edge = keys.KEY_SRC_ID <= name <= keys.KEY_WEIGHT
            return _EDGE_NEEDS if is_of_edge else "a record has node_id, node_type, node_weight and edge"
        return _what(name)


def _what(name: int) -> str:
    """Name what the values of a group must fit: a dtype with its range, or coordinates."""
    if name < keys.DENSE_GROUP:
        return "a coordinate"
    if name == keys.BINARY_GROUP:
        return "uint8"
    dtype = np.dtype(group_dtype(name))
    if dtype.kind == "f":
        return dtype.name
    bounds = np.iinfo(dtype)
    return f"{dtype.name} ({bounds.min} to {bounds.max})"


def group_dtype(name: int) -> str:
    """Return the dtype of a feature group's values, uint8 for texts."""
    if name == keys.BINARY_GROUP:
        return "uint8"
    return keys.GROUP_DTYPES[(name - keys.DENSE_GROUP) % len(keys.GROUP_DTYPES)][1]


def found_at(data: bytes, at: int) -> str:
    """Return the value at ``at`` as it is written, cut where it is long."""
    line_end = data.find(b"\n", at)
    stop = min(_value_end(data, at, line_end), at + 4 * _SHOWN_CHARS)
    text = data[at:stop].decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"


def _value_end(data: bytes, at: int, stop: int) -> int:
    """Return the position behind the value at ``at``, as far as it matters for showing it."""
    scalar = _SCALAR.match(data, at, min(stop, at + 4 * _SHOWN_CHARS))
    if scalar is not None:
        return scalar.end()
    depth = 0
    for i in _outside_texts(data, at, min(stop, at + 4 * _SHOWN_CHARS)):
        byte = data[i]
        if depth == 0 and byte in b" \t\r,:]}":
            return i
        depth += (byte in b"[{") - (byte in b"]}")
        if depth == 0 and byte in b'"]}':
            return i + 1
    return stop


def _outside_texts(data: bytes, at: int, stop: int) -> Iterator[int]:
    """Yield the positions that are outside of texts; of a text, its closing quote."""
    while at < stop:
        if data[at] == ord('"'):
            at += 1
            while at < stop and data[at] != ord('"'):
                at += 2 if data[at] == ord("\\") else 1
        if at < stop:
            yield at
        at += 1


def _byte(data: bytes, at: int) -> str:
    """Show the byte at ``at``: as a letter where it is one, else as a number."""
    byte = data[at]
    if byte == 10:
        return "the end of the line"
    return repr(chr(byte)) if 32 <= byte < 127 else f"0x{byte:02x}"
