"""Which tensors PyG and DGL have of a type's columns: their names, dtypes and shapes, and how their rows are read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from graphprep.model.errors import UsageError, one_of
from graphprep.model.export import Side
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.store.columns.features import (
    KINDS,
    as_feature,
    can_be_feature,
    choose_features,
    for_trainer,
    is_number,
    why_no_feature,
)
from graphprep.store.columns.torch_rows import (
    ColumnRows,
    Matrix,
    in_part,
    label_dtype,
    read_labels,
    read_present,
    read_values,
    torch_dtype,
)

MASKS = ("train_mask", "val_mask", "test_mask")  # of the parts 0, 1, 2 of a split
EDGE_SETS = ("train", "val", "test")  # the same parts, as names of sets of edges begin
_PYG_NAMES = ("edge_index", "edge_id", "num_nodes", "row", "colptr")


@dataclass(frozen=True)
class Attribute:
    """A tensor with a row for each node or edge; ``read(rows, low, high)`` returns some of them: [k, *item_shape].

    ``is_matrix``: it is the feature matrix, not a column by itself.
    """

    name: str
    dtype: str
    item_shape: tuple[int, ...]
    read: Callable[[ColumnRows, int, int], NDArray[Any]]
    is_matrix: bool = False


# ---------------------------------------------------------------------------------------------- features


def all_types(metadata: GraphMetadata) -> Iterator[tuple[Side, str, tuple[ColumnSchema, ...]]]:
    """Yield every node type, then every edge type (``src:rel:dst``), with its columns."""
    for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True):
        yield "node", name, schema.columns
    for edge_type, edge_schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True):
        yield "edge", edge_type_text(edge_type), edge_schema.columns


def is_homo(metadata: GraphMetadata, graph_class: str = "auto") -> bool:
    """Return whether a graph is to be one without types; ``graph_class`` is auto (where it can be), homo or hetero."""
    return graph_class != "hetero" and (len(metadata.node_types), len(metadata.edge_types)) == (1, 1)


def check_wanted(wanted: Sequence[str], types: Iterable[tuple[str, Sequence[ColumnSchema]]]) -> None:
    """Raise UsageError where a name of ``choose_features`` is that of no type's feature."""
    known = {
        key
        for name, columns in types
        for column in columns
        if can_be_feature(column)
        for key in (column.name, f"{name}:{column.name}")
    }
    for key in wanted:
        if key not in known:
            fix = one_of(sorted(key for key in known if ":" not in key), "use some of", found=key)
            raise UsageError(f"option features: there is no feature {key!r}", fix=fix)


def trainer_columns(columns: Sequence[ColumnSchema], chosen: Sequence[str]) -> list[ColumnSchema]:
    """Return columns with the dtypes that trainers get by default; ``chosen`` are the names of the features."""
    return [as_feature(one) if one.name in chosen else for_trainer(one) for one in columns]


def feature_names(
    name: str, columns: Sequence[ColumnSchema], wanted: Sequence[str], node_types: Collection[str]
) -> tuple[str, ...]:
    """Return the names of the columns that ``choose_features`` chooses."""
    return tuple(one.name for one in choose_features(name, columns, wanted, node_types))


def tell_features(
    side: Side, name: str, columns: Sequence[ColumnSchema], chosen: Sequence[str], node_types: Collection[str]
) -> str:
    """Say which columns make a type's feature matrix, in their order, which numbers do not, and how they would; or nothing."""
    others = [one for one in columns if can_be_feature(one) and one.role is None and one.name not in chosen]
    if not others and len(chosen) < 2:
        return ""
    have = f"its features are {', '.join(chosen)}, side by side" if chosen else "it has no features"
    if not others:
        return f"{side} type {name!r}: {have}"
    reasons = ((one.name, why_no_feature(one, node_types)) for one in others)
    listed = ", ".join(f"{column} ({reason})" if reason else column for column, reason in reasons)
    named = ",".join((*chosen, *(one.name for one in others)))
    return f"{side} type {name!r}: {have}; left out: {listed}; --option features={named} takes them in"


def named(columns: Sequence[ColumnSchema], names: Sequence[str]) -> tuple[ColumnSchema, ...]:
    """Return the columns of some names, in the order of these."""
    by_name = {one.name: one for one in columns if can_be_feature(one)}
    return tuple(by_name[name] for name in names if name in by_name)


def labels_of(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
    """Return the labels among columns."""
    return tuple(one for one in columns if one.role == "label" and is_number(one))


# ---------------------------------------------------------------------------------------------- PyG


def pyg_attributes(
    side: Side,
    columns: Sequence[ColumnSchema],
    chosen: Sequence[str],
) -> list[Attribute]:
    """Return the tensors of a type: its feature matrix, labels, masks of split and seeds, other columns by name.

    ``x`` and ``y`` of nodes; of edges ``edge_attr``, ``edge_label``, ``edge_weight`` and so on: in a graph without types, names
    that begin with ``edge`` are how PyG tells them from those of nodes. ``chosen`` are the names of the columns that make the
    feature matrix; columns are such that PyG can hold, with the dtypes that they are to have.
    """
    matrix_name, label_name, prefix = ("x", "y", "") if side == "node" else ("edge_attr", "edge_label", "edge_")
    features = named(columns, chosen)
    found = [_matrix(matrix_name, features)] if features else []
    labels = labels_of(columns)
    has_label = False
    for column in columns:
        own = pyg_name(column, prefix)
        if column.role == "label":
            found.append(_label(column, own if has_label else label_name))
            has_label = True
        elif column.role == "split":
            found += [_mask(column, f"{prefix}{mask}", value, labels) for value, mask in enumerate(MASKS)]
        elif column.role == "seeds":
            found.append(_mask(column, f"{prefix}seed_mask", 1))
        else:
            found += [] if column in features and column.role is None else [_plain(column, own)]
            found += [_present(column, f"{own}_present")] if column.optional else []
    return found


def pyg_name(column: ColumnSchema, prefix: str = "") -> str:
    """Return what a column is called in PyG. ``edge_id``, which our own commands make, gives way to the edges' numbers."""
    own = column.name if column.name.startswith(prefix) else f"{prefix}{column.name}"
    return "edge_id_column" if own == "edge_id" else own


@dataclass(frozen=True)
class SparseAttribute:
    """A sparse tensor of a type: what it is called, and the column that it is."""

    name: str
    column: ColumnSchema

    @property
    def present(self) -> Attribute | None:
        """Return who has the column; None: all."""
        return _present(self.column, f"{self.name}_present") if self.column.optional else None


def pyg_sparse(side: Side, columns: Sequence[ColumnSchema], chosen: Sequence[str]) -> list[SparseAttribute]:
    """Return the sparse tensors of a type: ``x`` or ``edge_attr`` where it has no other feature, else columns by name."""
    matrix_name, prefix = ("x", "") if side == "node" else ("edge_attr", "edge_")
    found = [column for column in columns if is_sparse(column)]
    if len(found) == 1 and not chosen:
        return [SparseAttribute(matrix_name, found[0])]
    named = (column.name if column.name.startswith(prefix) else f"{prefix}{column.name}" for column in found)
    return [SparseAttribute(own, column) for own, column in zip(named, found, strict=True)]


def is_sparse(column: ColumnSchema) -> bool:
    """Return whether a column is a sparse one that PyG takes as a sparse tensor."""
    return column.kind == "sparse" and not column.name.startswith("_")


def why_not_pyg(column: ColumnSchema) -> str:
    """Say why PyG cannot hold a column; empty where it can."""
    if not is_number(column):
        return f"PyG takes numbers only, and {KINDS[column.kind]}"
    return "PyG keeps names that begin with '_' to itself" if column.name.startswith("_") else ""


def check_pyg_names(types: Sequence[tuple[str, Sequence[Attribute | SparseAttribute]]], *, homo: bool) -> None:
    """Raise UsageError where two tensors of a type, or of a graph without types, would have one name.

    So where PyG's loaders would not choose the rows of a tensor by the nodes or edges of a batch, as they go by names.
    """
    for name, some in types:
        for one in some:
            if "index" in one.name and isinstance(one, Attribute) and one.item_shape:
                raise UsageError(
                    f"column {one.name!r} of {name!r}: PyG's loaders look for the rows of an index in its last dimension",
                    fix=f"rename it in the input, or leave it out with --drop-column {one.name}",
                )
    if homo:
        types = [(types[0][0], [one for _, some in types for one in some])]
    for name, some in types:
        check_names(name, some, "PyG", _PYG_NAMES)


def check_pyg_nodes(attributes: Sequence[Attribute | SparseAttribute], num_nodes: int, num_edges: int) -> None:
    """Raise UsageError where a graph without types has as many nodes as edges, and PyG takes a tensor of nodes for edges'."""
    wrong = [one.name for one in attributes if "edge" in one.name]
    if wrong and num_nodes == num_edges:
        raise UsageError(
            f"column {wrong[0]!r} of nodes: PyG's loaders take it for one of edges, of which there are as many, by its name",
            fix=f"rename it in the input, leave it out with --drop-column {wrong[0]}, or give --option graph_class=hetero",
        )


# ---------------------------------------------------------------------------------------------- DGL


def dgl_attributes(columns: Sequence[ColumnSchema]) -> list[Attribute]:
    """Return the tensors of a type: each column of numbers by its name, who has it, and a split as its masks."""
    found: list[Attribute] = []
    labels = labels_of(columns)
    for column in map(for_trainer, filter(is_number, columns)):
        if column.role == "split":
            found += [_mask(column, mask, value, labels) for value, mask in enumerate(MASKS)]
        else:
            found.append((_label if column.role == "label" else _plain)(column, column.name))
            found += [_present(column, f"{column.name}_present")] if column.optional else []
    return found


def check_names(
    type_name: str, attributes: Sequence[Attribute | SparseAttribute], system: str, taken: Iterable[str] = ()
) -> None:
    """Raise UsageError where two tensors of a type would have one name, or one that is ``taken``."""
    known = set(taken)
    for one in attributes:
        if one.name in known:
            raise UsageError(
                f"type {type_name!r} has a column {one.name!r}, a name that {system} or another column has",
                fix="rename it in the input, or leave it out with --drop-column",
            )
        known.add(one.name)


# ---------------------------------------------------------------------------------------------- what they share


def _matrix(name: str, columns: tuple[ColumnSchema, ...]) -> Attribute:
    matrix = Matrix(columns)
    return Attribute(name, matrix.array_dtype.name, matrix.item_shape, matrix.read, is_matrix=True)


def _plain(column: ColumnSchema, name: str) -> Attribute:
    return Attribute(name, torch_dtype(column), column.item_shape, lambda rows, *cut: read_values(rows, column, *cut))


def _label(column: ColumnSchema, name: str) -> Attribute:
    return Attribute(name, label_dtype(column), column.item_shape, lambda rows, *cut: read_labels(rows, column, *cut))


def _mask(column: ColumnSchema, name: str, value: int, labels: Sequence[ColumnSchema] = ()) -> Attribute:
    return Attribute(name, "bool", (), lambda rows, *cut: in_part(rows, column, value, labels, *cut))


def _present(column: ColumnSchema, name: str) -> Attribute:
    return Attribute(name, "bool", (), lambda rows, *cut: read_present(rows, column, *cut))
