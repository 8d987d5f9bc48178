"""Graphs as arrays: ``.npy`` and ``.npz`` files of edges, of CSR and CSC matrices, and SciPy's, read without SciPy."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, Literal

from graphprep.decoders.arrays.find import ArrayRules, FoundEdges, find_edges
from graphprep.decoders.arrays.read import IdKind
from graphprep.decoders.cells.arrays_files import Arrays, find_arrays
from graphprep.decoders.looks.formats import ZIP_MAGICS
from graphprep.decoders.matrices.options import EDGES, EdgePlan, matrix_relation, matrix_sources, parse_relation
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import EdgeTable
from graphprep.model.protocols import DeclaredColumn, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import RawRows, Relation
from graphprep.storage.faults import display_url
from graphprep.storage.read.npy import MAGIC


def plan_edge_files(
    storage: InputStorage,
    urls: Sequence[str],
    table: EdgeTable,
    *,
    weight_dtype: str = "float32",
    ids: tuple[IdKind, IdKind] = ("uint", "uint"),
) -> EdgePlan:
    """Plan an edge table whose files are arrays (``.npy``, ``.npz``), Matrix Market or METIS files: the content decides.

    ``table`` gives the names of the types, the layout of bare ``indptr`` and ``indices`` arrays, and the columns to leave out;
    ``ids`` says how the integers of arrays become the raw IDs of sources and destinations (Matrix Market and METIS files count
    nodes, theirs are always 0..n-1). Raises DataError for files of several kinds, and as the planning of each kind does.
    """
    kinds = {_kind_of(storage, url) for url in urls}
    if len(kinds) > 1:
        raise DataError(
            f"the files are of several kinds: {', '.join(sorted(kinds))}",
            place=table.table.place or display_url(urls[0]),
            fix="give each kind an edge type of its own",
        )
    kind = kinds.pop()
    if kind == "mtx":
        from graphprep.decoders.matrices.mtx import plan_mtx

        return plan_mtx(storage, urls, table, weight_dtype=weight_dtype)
    if kind == "metis":
        from graphprep.decoders.matrices.metis import plan_metis

        return plan_metis(storage, urls, table, weight_dtype=weight_dtype)
    return plan_edge_arrays(storage, urls, table, weight_dtype=weight_dtype, ids=ids)


def _kind_of(storage: InputStorage, url: str) -> str:
    head = storage.head(url, 16)
    if head.startswith(MAGIC) or head[:4] in ZIP_MAGICS:
        return "arrays"
    return "mtx" if head[:14].lower() == b"%%matrixmarket" else "metis"


def plan_edge_arrays(
    storage: InputStorage,
    urls: Sequence[str],
    table: EdgeTable,
    *,
    weight_dtype: str = "float32",
    ids: tuple[IdKind, IdKind] = ("uint", "uint"),
    rules: ArrayRules | None = None,
) -> EdgePlan:
    """Plan the ``.npy`` and ``.npz`` files of one edge type.

    Raises DataError for arrays that are no edges or disagree, UsageError where a flag must say what they mean.
    """
    rules = rules or ArrayRules(layout=None if table.layout == "coo" else table.layout, dropped=table.table.dropped)
    found = [find_edges(storage, arrays, rules) for arrays in _array_sets(storage, urls)]
    return _plan_found(storage, found, _relation_of(table), ids, weight_dtype)


def _relation_of(table: EdgeTable) -> Relation:
    return Relation(table.relation or EDGES, table.src_type, table.dst_type, table.src_space, table.dst_space)


def _array_sets(storage: InputStorage, urls: Sequence[str]) -> Iterator[Arrays]:
    """Yield what belongs together: an archive, or all ``.npy`` files where their names say what each is, else one file."""
    found = [find_arrays(storage, url) for url in urls]
    names = [next(iter(arrays)) for arrays in found]
    if len(set(names)) == len(names) > 1 and ArrayRules.is_set(names):
        yield {key: array for arrays in found for key, array in arrays.items()}
        return
    yield from found


def _plan_found(
    storage: InputStorage,
    found: Sequence[FoundEdges],
    relation: Relation,
    ids: tuple[IdKind, IdKind],
    weight_dtype: str,
) -> EdgePlan:
    """Scatter a span for each set of arrays. Raises DataError where sets disagree."""
    first = found[0]
    for other in found[1:]:
        _refuse_other(first, other)
    num_src, num_dst = first.num_nodes(same_type=relation.src_type is not None and relation.src_type == relation.dst_type)
    spans = [edges.span(storage, relation, (num_src, num_dst), ids, weight_dtype) for edges in found]
    owner = (relation.src_type or "", relation.name, relation.dst_type or "")
    keys = [(beside.key, beside.source.shape[1:]) for beside in first.beside(weight_dtype)]
    return EdgePlan(
        spans=tuple(spans),
        relation=relation,
        num_src=num_src,
        num_dst=num_dst,
        nodes_by=first.place if first.shape is None else f"{first.place}: shape",
        num_edges=sum(edges.num_edges for edges in found),
        columns=tuple(DeclaredColumn(owner, key, () if key.role == "weight" else shape) for key, shape in keys),
        messages=tuple(dict.fromkeys(text for edges in found for text in edges.messages)),
    )


def _refuse_other(first: FoundEdges, other: FoundEdges) -> None:
    if first.kind != other.kind:
        raise DataError(
            f"its shape or its columns are not those of {first.place}", place=other.place, fix="convert the files on their own"
        )


@dataclass(frozen=True)
class ArraysDecoder:
    """Decodes graphs that are arrays.

    A ``.npy`` file of edges has shape 2 x E or E x 2 (``array_shape`` says which for 2 x 2). An ``.npz`` archive, or a folder
    of ``.npy`` files, has one of: ``edge_index`` (or ``edges``); ``src`` and ``dst`` (or ``row`` and ``col`` …); ``indptr`` and
    ``indices``, whose meaning ``input_layout`` tells; what ``scipy.sparse.save_npz`` writes; gnn-benchmark's ``adj_*``,
    ``attr_*`` and ``labels``. ``relation`` is ``REL`` or ``SRC:REL:DST``; without it the node types of a matrix that is not
    square are ``row`` and ``col``. ``id_type`` is for lists of edges, not for matrices, whose nodes are positions.
    ``drop_columns`` leaves arrays out.
    """

    input_layout: Literal["csr", "csc"] | None = None
    array_shape: Literal["auto", "2xe", "ex2"] = "auto"
    relation: str | None = None
    index_base: int = 0
    id_type: Literal["int", "uint", "string", "auto"] | None = None
    drop_columns: tuple[str, ...] = ()
    weight_dtype: str = "float32"

    name: ClassVar[str] = "arrays"

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        if self.index_base not in (0, 1):
            raise UsageError(f"--index-base: no choice named {self.index_base!r}", fix="use one of 0, 1")
        if self.id_type == "string" and self.index_base:
            raise UsageError("--index-base is for integer IDs", fix="leave out --index-base")
        parse_relation(self.relation)

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Read the headers of all arrays, and make a span for the edges and one for each column of nodes.

        Raises DataError for arrays that are no edges or disagree, UsageError where a flag must say what they mean.
        """
        rules = ArrayRules(self.input_layout, self.array_shape, self.index_base, self.drop_columns)
        found = [find_edges(storage, arrays, rules) for arrays in _array_sets(storage, urls)]
        relation = matrix_relation(self.relation, found[0].shape)
        kind: IdKind = "int" if self.id_type == "auto" else self.id_type or "uint"
        plan = _plan_found(storage, found, relation, (kind, kind), self.weight_dtype)
        if kind != "uint" and (plan.num_src, plan.num_dst) != (None, None):
            raise UsageError(
                f"--id-type {self.id_type} is for lists of edges; the nodes of a matrix are its positions",
                place=found[0].place,
                fix="leave out --id-type",
            )
        sources = matrix_sources(plan, *found[0].node_spans(storage, relation))
        names = tuple(nodes.name for nodes in sources.node_types)
        return dataclasses.replace(sources, signed_ids=names if kind == "int" else ())

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Refuse text: arrays are tables."""
        raise NotImplementedError

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a span in batches of at most ``max_rows`` rows. Raises DecodeError for an ID that is none, or out of range."""
        rows: Iterator[RawRows] = span.detail.read(handle, span, max_rows, places)
        return rows

    def widen(self, columns: Mapping[str, str]) -> ArraysDecoder:
        """Return the decoder: arrays say their dtypes."""
        return dataclasses.replace(self)


__all__ = [
    "ArraysDecoder",
    "EdgePlan",
    "matrix_relation",
    "matrix_sources",
    "parse_relation",
    "plan_edge_arrays",
    "plan_edge_files",
]
