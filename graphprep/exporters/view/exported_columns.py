"""Which columns an export carries, and with which dtypes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.export import ExportPlan, Side, Unsupported
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, NodeTypeSchema, edge_type_text
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.features import as_feature, for_trainer, why_no_feature
from graphprep.store.columns.trainers import all_types

Schema = TypeVar("Schema", NodeTypeSchema, EdgeTypeSchema)

ALL = "*"  # stands for all features in ``feature_dtypes``
_OWN = ("parent_id", "node_id", "raw_id", "node_type", "edge_id", "edge_type", "created")  # columns that our own commands make
_DTYPE_FIX = "name a NumPy dtype, such as float16 or int64"


@dataclass(frozen=True)
class ExportedColumns:
    """The columns of each node and edge type that are written, with the dtypes in which they are; ``metadata`` has all.

    ``negatives`` of each edge type are not among them: they name nodes, and are written as those that a trainer sees.
    ``times`` are what edges of some types (by number) get that have none. ``rounded`` (side, type, name) are whole numbers that
    are floats unasked, which may be rounded.
    """

    metadata: GraphMetadata
    nodes: tuple[tuple[ColumnSchema, ...], ...]
    edges: tuple[tuple[ColumnSchema, ...], ...]
    negatives: tuple[tuple[ColumnSchema, ...], ...]
    times: Mapping[int, float] = field(default_factory=dict)
    rounded: frozenset[tuple[Side, str, str]] = frozenset()


def without_columns(metadata: GraphMetadata, dropped: Sequence[str]) -> tuple[GraphMetadata, tuple[str, ...]]:
    """Return the metadata of a graph without some columns (``name``, or ``type:name``), and what to say of each.

    Raises UsageError for a name that no column has.
    """
    found: dict[str, list[str]] = {name: [] for name in dropped}

    def is_kept(side: Side, type_name: str, column: ColumnSchema) -> bool:
        names = [key for key in (column.name, f"{type_name}:{column.name}") if key in found]
        for key in names:
            found[key].append(f"{side} column {type_name} {column.name!r}: left out as asked")
        return not names

    def kept(side: Side, type_name: str, schema: Schema) -> Schema:
        return replace(schema, columns=tuple(one for one in schema.columns if is_kept(side, type_name, one)))

    nodes = zip(metadata.node_types, metadata.node_schemas, strict=True)
    edges = zip(map(edge_type_text, metadata.edge_types), metadata.edge_schemas, strict=True)
    reduced = replace(
        metadata,
        node_schemas=tuple(kept("node", name, schema) for name, schema in nodes),
        edge_schemas=tuple(kept("edge", name, schema) for name, schema in edges),
    )
    for name, texts in found.items():
        if not texts:
            raise UsageError(f"--drop-column: there is no column {name!r}", fix=_name_one_of(metadata, name))
    return reduced, tuple(dict.fromkeys(text for texts in found.values() for text in texts))


def _name_one_of(metadata: GraphMetadata, found: str) -> str:
    return one_of(sorted({column.name for *_, columns in all_types(metadata) for column in columns}), found=found)


def choose_columns(
    metadata: GraphMetadata, plan: ExportPlan, feature_dtypes: Mapping[str, str], *, target: str, drop: bool
) -> ExportedColumns:
    """Leave out what the target does not support, and give columns their dtypes; negatives are none of them.

    Texts never stop an export. Raises UsageError that names other columns which would be lost where ``drop`` does not say that
    they may be, and for dtypes of columns that are not there.
    """
    metadata, negatives = metadata.without_negatives()
    refusefind_lost(metadata, () if drop else plan.unsupported, target)
    lost = {(one.side, one.type, one.column) for one in (*plan.unsupported, *plan.left_out)}
    dtypes = _Dtypes(plan, dict(feature_dtypes), metadata.node_types)

    def chosen(side: Side, name: str, columns: tuple[ColumnSchema, ...]) -> tuple[ColumnSchema, ...]:
        return tuple(dtypes.of(side, name, one) for one in columns if (side, name, one.name) not in lost)

    nodes = zip(metadata.node_types, metadata.node_schemas, strict=True)
    edges = zip(map(edge_type_text, metadata.edge_types), metadata.edge_schemas, strict=True)
    found = ExportedColumns(
        metadata,
        tuple(chosen("node", name, schema.columns) for name, schema in nodes),
        tuple(chosen("edge", name, schema.columns) for name, schema in edges),
        negatives,
        rounded=frozenset(dtypes.rounded),
    )
    if missing := sorted(set(feature_dtypes) - dtypes.used - {ALL}):
        if any(missing[0] in (name, f"{type_name}:{name}") for _, type_name, name in lost):
            raise UsageError(f"--feature-dtype: target {target!r} leaves out column {missing[0]!r}", fix="leave it out")
        raise UsageError(f"--feature-dtype: there is no column {missing[0]!r}", fix=_name_one_of(metadata, missing[0]))
    return found


def refusefind_lost(metadata: GraphMetadata, unsupported: Sequence[Unsupported], target: str) -> None:
    """Raise UsageError that names columns which the target does not support; texts, and those of our own, stop nothing."""
    kinds = {(side, name, one.name): one.kind for side, name, columns in all_types(metadata) for one in columns}
    stopping = [
        one for one in unsupported if kinds.get((one.side, one.type, one.column)) != "binary" and one.column not in _OWN
    ]
    if stopping:
        fix = "leave them out with --drop-unsupported"
        if sparse := next((one.column for one in stopping if kinds.get((one.side, one.type, one.column)) == "sparse"), ""):
            fix = f"write sparse ones as dense ones with --densify {sparse}, or {fix}"
        raise UsageError(f"target {target!r} does not support all columns:", items=[one.text for one in stopping], fix=fix)


@dataclass(frozen=True)
class _Dtypes:
    """The dtypes of columns: as users ask, else as the plan has them. ``used`` are the names that users gave of some column."""

    plan: ExportPlan
    given: Mapping[str, str]
    node_types: tuple[str, ...]
    used: set[str] = field(default_factory=set)
    rounded: set[tuple[Side, str, str]] = field(default_factory=set)

    def of(self, side: Side, name: str, column: ColumnSchema) -> ColumnSchema:
        """Return a column with the dtype in which it is written."""
        for key in (f"{name}:{column.name}", column.name):
            if key in self.given:
                self.used.add(key)
                return replace(column, dtype=_checked_dtype(column, self.given[key]))
        found = self._by_default(side, name, column)
        if np.dtype(column.dtype).kind in "iu" and np.dtype(found.dtype).kind == "f":
            self.rounded.add((side, name, column.name))
        return found

    def _by_default(self, side: Side, name: str, column: ColumnSchema) -> ColumnSchema:
        in_matrix = column.name in self.plan.features.get((side, name), ()) and column.kind == "dense"
        is_float = column.role is None and np.dtype(column.dtype).kind == "f"
        if ALL in self.given and (in_matrix or is_float or not why_no_feature(column, self.node_types)):
            return replace(column, dtype=_checked_dtype(column, self.given[ALL]))
        if self.plan.dtypes == "stored" or (self.plan.dtypes != "trainer" and np.dtype(column.dtype).kind == "f"):
            return column
        return as_feature(column) if in_matrix else for_trainer(column)


def _checked_dtype(column: ColumnSchema, text: str) -> str:
    """Return a dtype's name.

    Raises UsageError where it is none, or the column holds no numbers.
    """
    if column.kind == "binary":
        raise UsageError(f"--feature-dtype: column {column.name!r} holds texts", fix="leave it out")
    try:
        dtype = np.dtype(text)
    except TypeError:
        dtype = np.dtype(object)
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise UsageError(f"--feature-dtype: column {column.name!r} cannot be {text!r}", fix=_DTYPE_FIX)
    return dtype.name


def cast_cells(cells: Cells, dtype: str, place: str, first: int | None = None, *, rounds: bool = False) -> Cells:
    """Return cells with values of another dtype; ``first`` is the row at ``place`` where they begin, if that is known.

    Raises DataError where one does not fit: infinite where it was not, or a whole number that becomes another one, unless it
    ``rounds`` these.
    """
    with np.errstate(all="ignore"):
        cast = cells.cast(dtype)
    bad = np.isinf(cast.values).reshape(-1) if rounds else find_lost(cells.values, cast.values)
    if bad.any():
        at = int(np.argmax(bad))
        if first is not None:
            place += f" [{first + int(np.searchsorted(np.cumsum(cells.value_counts), at, side='right'))}]"
        fix = "choose a wider --feature-dtype, such as float64"
        raise DataError(f"{cells.flat[at]} does not fit {dtype}", place=place, fix=fix)
    return cast


def find_lost(values: NDArray[Any], cast: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which numbers became others. Signs change where unsigned numbers have the same width.

    Floats may be rounded; whole numbers only in float64, beyond which there is nothing wider.
    """
    with np.errstate(all="ignore"):
        if cast.dtype.kind == "f" and cast.dtype.itemsize < 8 and values.dtype.kind in "iu":
            wide, limit = cast.astype(np.float64), float(np.iinfo(values.dtype).max) + 1  # casts from there on are undefined
            return np.asarray((wide >= limit) | (wide.astype(values.dtype) != values)).reshape(-1)
        if cast.dtype.kind == "f":
            return np.asarray((np.isinf(cast) & np.isfinite(values)) | (values.imag != 0)).reshape(-1)
        return np.asarray((cast.astype(values.dtype) != values) | ((cast < 0) != (values.real < 0))).reshape(-1)
