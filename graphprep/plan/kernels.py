"""Which kernels a conversion runs behind decoding. Those of decoding are compiled by the time samples are decoded."""

from __future__ import annotations

from collections.abc import Iterator

from graphprep.kernels.compiler.kept import is_kept
from graphprep.model.options.convert import ConvertOptions
from graphprep.plan.sizes import GraphSizes

COMPILE_S = 0.8  # a kernel, roughly: see docs/plan.md
IMPORT_S = 0.7  # Numba

_EDGES = (
    ("ids.hash._edge_checksum", "u4[1] u4[1]"),
    ("edges.place._count", "u4[1] i8 u4[1]"),
    ("edges.place._scatter", "u4[1] u4[1] u8[1] i8 i8 i8 i8 u4[1] u8[1]"),
    (
        "edges.place._place",
        "i8[1] u4[2] i8[1] i8[2] i8 i8 i8 i8 i8 i8 i8 i8 u4[2] u8[2] u8[2] i8[1] i4[1] i4[1] i8[1] i8[1]",
    ),
)
_DENSE = (("ids.group._mark", "u1[1] u4[1]"),)
_SPARSE = (
    ("ids.group._mark", "u1[1] u8[1]"),
    ("ids.bitmap._count_blocks", "u8[1] i8[1]"),
    ("ids.bitmap._find_members", "u8[1] i8[1] u4[1] u4[1]"),
)
_RECORDS = (
    ("ids.lookup._take_dense", "u8 u8[1] u8 i4[1] i8[1] i4[1] i8[1]"),
    ("ids.group._count", "i8[1] i8[1]"),
    ("ids.group._scatter", "i8[1] i8[1] i8[1]"),
)
_HASHED = (("ids.hash._hash_ints", "u8[1] u8[1]"), ("ids.intervals._count_all", "u4[1] i8[1] i8[1]"))
_TEXTS = (
    ("text.texts._probe", "u8[2] u8[1] i8[1] u8[1]"),
    ("text.texts._compare_found", "u8[1] i8[1] u1[1] i8[1] u1[1] i8[1]"),
    ("text.texts._rehash_texts", "u8[2] u8[1] i8[1]"),
    ("text.texts._insert_texts", "u8[2] u8[1] i8[1] u1[1] i8 i8[1] u8[1] i8[1] u1[1]"),
    ("text.texts._sort", "i8[1] u1[1] i8[1] u8[1] i8[2]"),
    ("ids.lookup._count_buckets", "u8[1] u8 i4[1]"),
    ("ids.lookup._fill_slots", "u8[2] u8[1] i8[1]"),
    ("ids.lookup._find_slots", "u8[2] u8[1] u4[1]"),
    ("ids.hash._pair_checksum", "u8[1] u8[1]"),
    ("bytes.blocks._copy_blocks", "u1[1] i8[1] i8[1] i8 u1[1]"),
)


def missing_kernels(sizes: GraphSizes, options: ConvertOptions) -> tuple[str, ...]:
    """Return the names of the kernels that are not compiled yet, of those that graphs of this kind usually need."""
    return tuple(dict.fromkeys(name for name, types in _needed(sizes, options) if not is_kept(name, types)))


def _needed(sizes: GraphSizes, options: ConvertOptions) -> Iterator[tuple[str, str]]:
    if sizes.amounts.num_edges:
        yield from _EDGES if not sizes.amounts.has_texts else _EDGES[1:]
    kinds = set(sizes.raw_ids.values())
    if sizes.amounts.has_texts:
        yield from _TEXTS
    elif sizes.amounts.by_ends:
        yield from _DENSE if kinds == {"identity"} else _SPARSE
    elif "identity" not in kinds:
        yield from _RECORDS
    if options.partition_by == "hash":
        yield from _HASHED
