"""Which columns are features: one rule for exports, ``to_pyg``, ``to_dgl`` and samples, which docs/export.md has as a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from graphprep.model.schema import ColumnSchema

KINDS = {
    "dense": "it holds other things than numbers",
    "ragged": "rows differ in length",
    "sparse": "its values are sparse",
    "binary": "it holds texts or bytes",
    "temporal": "rows have several dated values",
}
# Roles whose columns have a place of their own, and yet are numbers that users may name as features, too.
_NAMEABLE = (None, "weight", "time", "created_at", "removed_at", "created")

_MATRICES = ("x", "edge_attr", "attr")  # what PyG's Data calls them; the last one as convert names edge_attr
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+")
_IDS = {"id", "ids", "nid", "eid", "uid", "gid", "uuid", "guid", "key", "fk", "pk"}
_CODES = {"code", "codes", "type", "category", "zip", "zipcode", "postcode"}
_TIMES = {"timestamp", "date", "datetime"}
_LABELS = {"label", "labels", "target", "class"}
_SPLITS = {"train_mask", "val_mask", "valid_mask", "test_mask", "split"}
_ONLY = {  # what the whole name of a column of whole numbers says, in lower case
    **dict.fromkeys(("index", "idx", "src", "dst", "source", "destination", "parent", "hash"), "it is named like an ID"),
    **dict.fromkeys(("time", "ts", "epoch"), "it is named like a time"),
    "y": "it is named like a label",
}


def is_number(column: ColumnSchema) -> bool:
    """Return whether a column is a dense one that torch has tensors for."""
    return column.kind == "dense" and np.dtype(column.dtype).kind in "biufc"


def can_be_feature(column: ColumnSchema) -> bool:
    """Return whether users may name a column as a feature: it is of numbers, and is no label, split, seeds or negatives."""
    return column.role in _NAMEABLE and is_number(column)


def why_no_feature(column: ColumnSchema, node_types: Collection[str] = ()) -> str:
    """Say why a column is no feature unless users name it; empty where it is one.

    ``node_types`` are those of the graph: a column that is called as one of them is taken for a foreign key.
    """
    if not is_number(column):
        return KINDS[column.kind]
    if column.role is not None:
        return f"its role is {column.role}"
    if column.categories is not None:
        return "it holds codes of categories"
    if column.unit is not None:
        return "it holds dates or times"
    kind = np.dtype(column.dtype).kind
    if kind == "c":
        return "its numbers are complex"
    return _why_by_name(column.name, kind, node_types)


def _why_by_name(name: str, kind: str, node_types: Collection[str]) -> str:
    """Say for what a column is taken by its name; numbers of text formats have nothing else that tells."""
    low, is_whole = name.lower(), kind in "iu"
    if kind == "b" or (is_whole and low in _SPLITS):
        return "it is named like a split" if low in _SPLITS else ""
    words = [word.lower() for word in _WORD.findall(name)] or [""]
    if words[-1] in _IDS or words[0] in ("id", "fk", "pk"):
        return "it is named like an ID or key"
    if is_whole and low in {f"{one.lower()}{end}" for one in node_types for end in ("", "s", "id", "key")}:
        return "it is named like a node type, so it is taken for a key"
    if is_whole and (low in _ONLY or words[-1] in _CODES):
        return _ONLY.get(low, "it is named like a code")
    is_time = words[-1] in _TIMES or (words[-1] == "at" and len(words) > 1)
    return "it is named like a time" if is_time else "it is named like a label" if words[-1] in _LABELS else ""


def choose_features(
    name: str, columns: Sequence[ColumnSchema], wanted: Sequence[str], node_types: Collection[str] = ()
) -> tuple[ColumnSchema, ...]:
    """Choose the columns of a type that make its feature matrix, in the order in which they stand side by side.

    ``wanted`` are names, perhaps of other types' columns (``column`` or ``type:column``). Where none of them is of this type,
    it is the vectors that are called as PyG calls such a matrix, else every feature in the order of the schema.
    """
    named = [one for key in wanted for one in columns if key in (one.name, f"{name}:{one.name}") and can_be_feature(one)]
    matrix = [one for one in columns if one.name in _MATRICES and one.item_shape and can_be_feature(one)]
    return tuple(dict.fromkeys(named or matrix or [one for one in columns if not why_no_feature(one, node_types)]))


def as_feature(column: ColumnSchema) -> ColumnSchema:
    """Return a column with the dtype that a feature matrix has by default: float32; complex numbers stay so."""
    return column if np.dtype(column.dtype).kind == "c" else replace(column, dtype="float32")


def for_trainer(column: ColumnSchema) -> ColumnSchema:
    """Return a column with the dtype in which trainers get it under its name: floats are float32, whole labels int64."""
    kind = np.dtype(column.dtype).kind
    if column.kind == "dense" and column.role == "label" and kind in "biu":
        return replace(column, dtype="int64")
    return replace(column, dtype="float32") if kind == "f" else column
