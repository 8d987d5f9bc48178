"""Every device kernel with every combination of types that it is run with: what is compiled ahead, and nothing else is used."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from graphprep.kernels.cuda import elements, radix, rows, scan

_KEYS = ("u4[]", "u8[]")
_PAYLOADS = ("u1[]", *_KEYS)  # of bytes: there is none

# One row for each argument: the types that it takes.
SHIPPED: dict[Any, list[tuple[str, ...]]] = {
    radix.count_digits: [(key, "i8", "i8", "i8[]") for key in _KEYS],
    radix.move_by_digit: [
        (key, payload, "i8", "i8", "i8[]", key, payload) for key, payload in itertools.product(_KEYS, _PAYLOADS)
    ],
    scan.sum_shares: [("i8[]", "i8[]")],
    scan.scan_sums: [("i8[]",)],
    scan.scan_shares: [("i8[]", "i8[]", "i8[]")],
    rows.fill_value: [("i8[]", "i8")],
    rows.count_up: [(key,) for key in _KEYS],
    rows.find_starts: [(key, "i8", "i8[]") for key in _KEYS],
    rows.fill_gaps: [(key, "i8", "i8[]") for key in _KEYS],
    rows.expand_rows: [("i8[]", key) for key in _KEYS],
    rows.count_rows: [("i8[]", "i8[]")],
    rows.mark_lasts: [(key, "i8[]") for key in _KEYS],
    rows.take_firsts: [
        (key, payload, "i8[]", key, payload) for key, payload in (("u4[]", "u1[]"), ("u8[]", "u1[]"), ("u8[]", "u4[]"))
    ],
    rows.find_limits: [(ids, "i8[]", "i8[]") for ids in ("i4[]", "i8[]")],
    rows.find_outside: [(ids, "i8", "i8[]") for ids in ("i4[]", "i8[]")],
    elements.flip_bit: [(key, "i8") for key in _KEYS],
    elements.add: [("u8[]", "i8")],
    elements.pack_edges: [
        (ends, ends, ids, "i8", "i8", "i8", "u8[]") for ends, ids in (("u4[]", "u4[]"), ("u4[]", "u8[]"), ("u8[]", "u8[]"))
    ],
    elements.gather_records: [("i8[]", "u8[]", "i8", "i8", "i8", "u8[]", "u8[]")],
    elements.unpack_words: [
        ("u8[]", "i8", "i8", ends, ends, ids) for ends, ids in (("u4[]", "u4[]"), ("u4[]", "u8[]"), ("u8[]", "u4[]"))
    ],
    elements.pair_up: [("u4[]", "u8[]")],
    elements.gather: [(values, order, values) for values, order in itertools.product(_KEYS, _KEYS)],
    elements.gather_words: [("u8[]", "i8", "u4[]", "u8[]")],
    elements.take_column: [("u8[]", "i8", "i8", "u8[]")],
    elements.invert: [("u4[]", "u4[]"), ("u4[]", "u8[]"), ("u8[]", "u8[]")],
    elements.descending_keys: [("i8[]", "i8", key) for key in _KEYS],
    elements.shift_keys: [(values, "i8", "u4[]") for values in _KEYS],
    elements.find_inner: [("u4[]", "u8[]", "i8", "i8[]", inner) for inner in _KEYS],
    elements.find_lengths: [("i8[]", old_rows, "i8[]") for old_rows in _KEYS],
    elements.find_sources: [("i8[]", old_rows, "i8[]", "u4[]") for old_rows in _KEYS],
}


def shipped() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield every kernel and Numba's types of its arguments."""
    from numba import types

    numbers = {"u1": types.uint8, "u4": types.uint32, "u8": types.uint64, "i4": types.int32, "i8": types.int64}
    for kernel, signatures in SHIPPED.items():
        for signature in signatures:
            yield kernel, tuple(numbers[one[:2]][::1] if one.endswith("[]") else numbers[one] for one in signature)
