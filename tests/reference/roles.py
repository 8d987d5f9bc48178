"""Labels, splits and seeds, word for word from docs/labels.md, on the columns of one type."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from reference.hashes import hash_id, splitmix64
from reference.records import Declared, Edge, Numbers, Text

PARTS = {"0": 0, "1": 1, "2": 2, "train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2}


def with_roles(columns: list, rows: list, owner: str, options: dict, make) -> list:
    """The columns of a type after labels, then the split, then seeds; ``make`` is the class of columns."""
    columns = list(columns)
    for text in options.get("labels", ()):
        place, _, name = text.rpartition(":")
        if place == owner:
            at = [column.name for column in columns].index(name)
            columns[at] = label(columns[at], make)
    for place, lists in options.get("listed_splits", {}).items():
        if place == owner:
            found = [next((part for part, ids in enumerate(lists) if str(row.id) in ids), None) for row in rows]
            columns.append(split(make, "split", found))
    for text in options.get("splits", ()):
        if "=" in text and text.partition("=")[0] == owner:
            lists = [read_ids(path) for path in text.partition("=")[2].split(",")]
            found = [next((part for part, ids in enumerate(lists) if str(row.id) in ids), None) for row in rows]
            columns.append(split(make, "split", found))
        elif "=" not in text and text.rpartition(":")[0] == owner:
            columns = split_columns(columns, rows, text.rpartition(":")[2], options.get("seed", 0), make)
    seeds = [text.partition("=")[2] for text in options.get("seeds", ()) if text.partition("=")[0] == owner]
    if seeds:
        ids = {one for path in seeds for one in read_ids(path)}
        columns.append(make("seeds", [Numbers("bool", (), (str(row.id) in ids,)) for row in rows], role="seeds"))
    return columns


def read_ids(path: str) -> set[str]:
    return set(Path(path).read_text().split("\n")) - {""} if path else set()


def label(column, make):
    """A column of texts becomes numbers, any other keeps its values."""
    if column.kind != "binary":
        column.role = "label"
        return column
    names = sorted({value.data for value in column.values if value is not None})
    values = [None if value is None else Numbers("int64", (), (names.index(value.data),)) for value in column.values]
    made = make(column.name, values, declared=Declared(column.name, Numbers, "int64"), slot=column.slot, role="label")
    plain = made.schema
    made.schema = lambda: plain() | {"categories": [name.decode() for name in names]}
    return made


def split(make, name: str, parts: list, slot=None):
    values = [None if part is None else Numbers("int8", (), (part,)) for part in parts]
    return make(name, values, declared=Declared(name, Numbers, "int8"), slot=slot, role="split")


def plain(value):
    """What a cell says: a text in lower case, or a number."""
    return value.data.decode().lower() if isinstance(value, Text) else value.values[0]


def split_columns(columns: list, rows: list, text: str, seed: int, make) -> list:
    names = [column.name for column in columns]
    if "/" in text:
        fractions = [Fraction(one) for one in text.split("/")]
        return [*columns, split(make, "split", [random_part(row, fractions, seed) for row in rows])]
    if "," not in text:
        column = columns[names.index(text)]
        parts = [None if value is None else PARTS[str(plain(value))] for value in column.values]
        columns[names.index(text)] = split(make, text, parts, column.slot)
        return columns
    masks = [[] if not name else columns[names.index(name)].values for name in text.split(",")]
    parts = [None] * len(rows)
    for part, mask in enumerate(masks):
        for row, value in enumerate(mask):
            if value is not None and str(plain(value)).lower() in ("1", "true"):
                assert parts[row] is None
                parts[row] = part
    taken = [name for name in text.split(",") if name]
    first = min(names.index(name) for name in taken)
    kept = [column for column in columns if column.name not in taken]
    return [*kept[:first], split(make, "split", parts), *kept[first:]]


def random_part(row, fractions: list[Fraction], seed: int):
    hashed = hash_id(row.id) if not isinstance(row, Edge) else splitmix64(hash_id(row.src) ^ splitmix64(hash_id(row.dst)))
    key = splitmix64(splitmix64(seed % 2**64) ^ hash_id("split"))
    bounds = [int(sum(fractions[: i + 1]) * 2**64) for i in range(3)]
    part = sum(splitmix64(hashed ^ key) >= bound for bound in bounds)
    return part if part < 3 else None
