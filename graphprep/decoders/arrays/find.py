"""Which array is what: the edges among the arrays of a file, and the columns of nodes and edges beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from graphprep.decoders.arrays.read import (
    Beside,
    ColumnReader,
    CompressedReader,
    EndArrays,
    Form,
    IdKind,
    PairsReader,
    SparseReader,
)
from graphprep.decoders.cells.arrays_files import Arrays, ArraySource, plain_arrays, read_small
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.protocols import DeclaredColumn, InputStorage, Span
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.faults import display_url

PAIR_KEYS = ("edge_index", "edges", "edge_list", "edgelist")
END_KEYS = (
    ("src", "dst"),
    ("source", "target"),
    ("source", "destination"),
    ("sources", "targets"),
    ("senders", "receivers"),
    ("row", "col"),
    ("u", "v"),
)
WEIGHT_KEYS = ("edge_weight", "edge_weights", "weight", "weights", "data", "values")
NODE_KEYS = ("x", "y", "feat", "feats", "features", "label", "labels", "train_mask", "val_mask", "valid_mask", "test_mask")
_EDGE_ID_KEYS = ("edge_id", "edge_ids", "edge_eid")
_SHAPE_FIX = "give edges as one array of 2 x E or E x 2 integers"


@dataclass(frozen=True)
class ArrayRules:
    """What flags say.

    ``layout`` is the meaning of ``indptr`` and ``indices``, ``shape`` that of a 2 x 2 array, ``base`` the first node's number;
    ``dropped`` are arrays to leave out.
    """

    layout: Literal["csr", "csc"] | None = None
    shape: Literal["auto", "2xe", "ex2"] = "auto"
    base: int = 0
    dropped: tuple[str, ...] = ()

    @staticmethod
    def is_set(names: Sequence[str]) -> bool:
        """Return whether files of these names are the arrays of one graph, rather than a graph each."""
        given = set(names)
        wanted = [{"indptr", "indices"}, *(set(pair) for pair in END_KEYS)]
        return any(keys <= given for keys in wanted) or (
            bool(given & set(PAIR_KEYS))
            and all(name in (*PAIR_KEYS, *WEIGHT_KEYS, *NODE_KEYS) or _is_owned(name) for name in names)
        )


def _is_owned(key: str) -> bool:
    return key.startswith(("edge_", "node_"))


@dataclass(frozen=True)
class FoundEdges:
    """The edges among some arrays.

    ``first`` and ``second`` are the two arrays of ends (the same one for pairs), or ``indptr`` and ``indices`` where ``by`` is
    not None (0: CSR, 1: CSC). ``shape`` is what the file states: numbers of sources and destinations. ``weight`` and ``edge``
    are columns of edges, ``node`` columns of nodes, ``sparse`` a matrix of nodes.
    """

    place: str
    first: ArraySource
    second: ArraySource
    num_edges: int
    form: Form = "two"
    by: int | None = None
    shape: tuple[int, int] | None = None
    base: int = 0
    weight: ArraySource | None = None
    edge: tuple[ArraySource, ...] = ()
    node: tuple[ArraySource, ...] = ()
    sparse: tuple[FoundEdges, ...] = ()
    messages: tuple[str, ...] = ()

    @property
    def kind(self) -> tuple[object, ...]:
        """Return what must agree between the files of one edge type."""
        return self.shape, [(beside.key, beside.source.shape[1:]) for beside in self.beside("float32")]

    def num_nodes(self, *, same_type: bool) -> tuple[int | None, int | None]:
        """Return the numbers of sources and destinations that the file states; of one type, the larger for both."""
        if self.shape is None:
            rows = self.first.shape[0] - 1 if self.by is not None else self.node[0].shape[0] if self.node else None
            if rows is None or same_type or self.by is None:
                return rows, rows
            return (rows, None) if self.by == 0 else (None, rows)
        return (max(self.shape),) * 2 if same_type else self.shape

    def beside(self, weight_dtype: str) -> tuple[Beside, ...]:
        """Return the columns of edges."""
        weight = (Beside(ColumnKey("weight", "numbers", weight_dtype, role="weight"), self.weight),) if self.weight else ()
        return (*weight, *(Beside(ColumnKey(s.key, "numbers", s.dtype.name), s) for s in self.edge))

    def span(
        self,
        storage: InputStorage,
        relation: Relation,
        num_nodes: tuple[int | None, int | None],
        ids: tuple[IdKind, IdKind],
        weight_dtype: str,
    ) -> Span:
        """Scatter the edges' span."""
        stated = self.shape or num_nodes
        names = self._end_names()
        src, dst = (
            EndArrays(names[i], (relation.src_type, relation.dst_type)[i] or "", stated[i], ids[i], self.base) for i in range(2)
        )
        columns = self.beside(weight_dtype)
        urls = {self.first.url, self.second.url, *(beside.source.url for beside in columns)}
        opener = storage if len(urls) > 1 else None
        reader: PairsReader | CompressedReader
        if self.by is None:
            reader = PairsReader(relation, self.first, self.second, self.form, (src, dst), columns, opener)
        else:
            reader = CompressedReader(relation, self.first, self.second, self.by, (src, dst), columns, opener)
        return Span(self.second.url, "table", "edges", 0, self.num_edges, reader)

    def _end_names(self) -> tuple[str, str]:
        if self.by is not None:
            return (self.first.key, self.second.key) if self.by == 0 else (self.second.key, self.first.key)
        return (self.first.key, self.second.key) if self.form == "two" else ("src", "dst")

    def node_spans(self, storage: InputStorage, relation: Relation) -> tuple[list[Span], list[DeclaredColumn], list[str]]:
        """Scatter the spans of node columns, which are those of the sources' type."""
        owner = relation.src_type or ""
        if (self.node or self.sparse) and owner != relation.dst_type:
            left = ", ".join(source.key for source in self.node)
            return [], [], [f"{self.place}: arrays {left} are left out: two node types could own them; see --node-data"]
        spans, columns = [], []
        for source in self.node:
            key = ColumnKey(source.key, "numbers", source.dtype.name)
            [array] = plain_arrays(owner, key, [None if source.member else source.header])
            reader = ColumnReader(owner, key, source)
            spans.append(Span(source.url, "table", "node_data", 0, source.shape[0], reader, array=array))
            columns.append(DeclaredColumn(owner, key, source.shape[1:]))
        for matrix in self.sparse:
            spans.append(matrix._sparse_span(storage, owner))
            columns.append(DeclaredColumn(owner, spans[-1].detail.key, ()))
        return spans, columns, []

    def _sparse_span(self, storage: InputStorage, owner: str) -> Span:
        assert self.weight is not None
        assert self.shape is not None
        name = self.second.key.removesuffix("_indices")
        ends = (EndArrays(self.first.key), EndArrays(self.second.key, "column", self.shape[1]))
        urls = {self.first.url, self.second.url, self.weight.url}
        matrix = CompressedReader(Relation(name), self.first, self.second, 0, ends, storage=storage if len(urls) > 1 else None)
        reader = SparseReader(owner, ColumnKey(name, "sparse", self.weight.dtype.name), matrix, self.weight)
        return Span(self.second.url, "table", "node_data", 0, self.shape[0], reader)


def find_edges(storage: InputStorage, arrays: Arrays, rules: ArrayRules) -> FoundEdges:
    """Tell which arrays are the edges, and which are columns.

    Raises DataError where none are edges, or arrays do not fit each other; UsageError where a flag must decide.
    """
    found = _Found(storage, arrays, rules)
    if "format" in arrays:
        return found.scipy()
    if {"adj_indptr", "adj_indices"} <= arrays.keys():
        return found.benchmark()
    if {"indptr", "indices"} <= arrays.keys():
        return found.bare()
    for pair in END_KEYS:
        if set(pair) <= arrays.keys():
            return found.two(*pair)
    return found.pairs()


@dataclass
class _Found:
    """Arrays on the way to being told apart; ``used`` are those that have a meaning."""

    storage: InputStorage
    arrays: Arrays
    rules: ArrayRules
    used: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Return what messages call the whole."""
        return display_url(self._url)

    @property
    def _url(self) -> str:
        first = next((array for array in self.arrays.values() if isinstance(array, ArraySource)), None)
        if first is None:
            raise next(array for array in self.arrays.values() if isinstance(array, DataError))
        return first.url

    # ---- kinds ----

    def scipy(self) -> FoundEdges:
        """Take what ``scipy.sparse.save_npz`` wrote. Source: ``scipy/sparse/_matrix_io.py``."""
        value = read_small(self.storage, self._url, "format")
        kind = value.item() if value.ndim == 0 and value.dtype.kind in "SU" else None
        kind = kind.decode("latin1") if isinstance(kind, bytes) else kind
        self.used |= {"format", "shape", "_is_array"}
        if kind not in ("csr", "csc", "coo") or "coords" in self.arrays:
            what = "of more or less than two dimensions" if kind == "coo" else f"of format {kind!r}"
            raise DataError(
                f"a SciPy matrix {what} is not read", place=self.place, fix="save it as CSR: save_npz(path, matrix.tocsr())"
            )
        shape = self._shape("shape")
        if kind == "coo":
            return self._two("row", "col", shape, "data")
        return self._compressed("", 0 if kind == "csr" else 1, shape, "data")

    def benchmark(self) -> FoundEdges:
        """Take the layout of gnn-benchmark: ``adj_*`` is CSR, ``attr_*`` CSR or dense, ``labels`` a number a node.

        Source: shchur/gnn-benchmark, ``SparseGraph.to_flat_dict``.
        """
        edges = self._compressed("adj_", 0, self._shape("adj_shape"), "adj_data")
        self.used |= {"adj_shape"}
        num_nodes = edges.first.shape[0] - 1
        sparse = []
        if {"attr_indptr", "attr_indices", "attr_data", "attr_shape"} <= self.arrays.keys():
            shape = self._shape("attr_shape")
            self.used |= {"attr_indptr", "attr_indices", "attr_data", "attr_shape"}
            if "attr" not in self.rules.dropped:
                sparse.append(_Found(self.storage, self.arrays, ArrayRules())._compressed("attr_", 0, shape, "attr_data"))
                if shape[0] != num_nodes:
                    raise self._misfit("attr_shape", f"states {shape[0]} rows, but there are {num_nodes} nodes")
        node = [self._source(key) for key in ("attr_matrix", "labels") if self._is_kept(key, num_nodes)]
        return self._finish(edges, node, sparse=sparse)

    def bare(self) -> FoundEdges:
        """Take ``indptr`` and ``indices``, whose meaning a flag tells."""
        if self.rules.layout is None:
            raise UsageError(
                "arrays indptr and indices do not say whether a row holds the edges that leave a node or those that enter it",
                place=self.place,
                fix="add --input-layout csr (rows are sources) or csc (rows are destinations)",
            )
        shape = self._shape("shape") if "shape" in self.arrays else None
        weight = next((key for key in WEIGHT_KEYS if key in self.arrays), None)
        edges = self._compressed("", 0 if self.rules.layout == "csr" else 1, shape, weight)
        return self._finish(edges, self._node_columns(), self._edge_columns(edges.num_edges))

    def two(self, src: str, dst: str) -> FoundEdges:
        """Take two arrays of ends."""
        weight = next((key for key in WEIGHT_KEYS if key in self.arrays), None)
        edges = self._two(src, dst, None, weight)
        return self._finish(edges, self._node_columns(), self._edge_columns(edges.num_edges))

    def pairs(self) -> FoundEdges:
        """Take one array of 2 x E or E x 2."""
        source = self._pair_source()
        self.used.add(source.key)
        _check_integers(source)
        self._refuse_layout()
        form, num_edges = self._form(source)
        weight = self._weight(next((key for key in WEIGHT_KEYS if key in self.arrays), None), num_edges)
        edges = FoundEdges(self.place, source, source, num_edges, form, base=self.rules.base, weight=weight)
        return self._finish(edges, self._node_columns(), self._edge_columns(num_edges))

    # ---- parts ----

    def _pair_source(self) -> ArraySource:
        named = [key for key in PAIR_KEYS if key in self.arrays]
        if named:
            return self._source(named[0])
        if len(self.arrays) == 1:
            return self._source(next(iter(self.arrays)))
        fits = [
            array
            for array in self.arrays.values()
            if isinstance(array, ArraySource) and array.dtype.kind in "iu" and len(array.shape) == 2 and 2 in array.shape
        ]
        if len(fits) == 1:
            return fits[0]
        raise DataError(
            f"none of the arrays {', '.join(self.arrays)} is known to be the edges",
            place=self.place,
            fix="call them edge_index, or src and dst, or indptr and indices",
        )

    def _form(self, source: ArraySource) -> tuple[Form, int]:
        """Tell 2 x E from E x 2, and how they lie."""
        shape = source.shape
        if len(shape) != 2 or 2 not in shape:
            raise DataError(f"edges must have shape (2, E) or (E, 2), found {shape}", place=source.place, fix=_SHAPE_FIX)
        rows_first = shape[0] == 2
        if shape == (2, 2):
            rows_first = self.rules.shape != "ex2"
            if self.rules.shape == "auto":
                self.messages.append(
                    f"{source.place}: 2 x 2 may be two rows of ends or two pairs: taken as two rows, all sources first "
                    "(--array-shape ex2 takes pairs)"
                )
        elif self.rules.shape != "auto" and rows_first != (self.rules.shape == "2xe"):
            wanted = "(2, E)" if self.rules.shape == "2xe" else "(E, 2)"
            raise DataError(f"edges must have shape {wanted}, found {shape}", place=source.place, fix="drop --array-shape")
        return ("rows" if rows_first != source.header.fortran_order else "pairs"), shape[1] if rows_first else shape[0]

    def _two(self, src: str, dst: str, shape: tuple[int, int] | None, weight: str | None) -> FoundEdges:
        self._refuse_layout()
        first, second = self._ends(src), self._ends(dst)
        if first.shape != second.shape:
            raise self._misfit(dst, f"has {second.shape[0]} items, but {src} has {first.shape[0]}")
        num_edges = first.shape[0]
        base = 0 if shape is not None else self.rules.base
        return FoundEdges(
            self.place,
            first,
            second,
            num_edges,
            shape=shape,
            base=base,
            weight=self._weight(weight, num_edges),
            messages=tuple(self._left_out()) if shape is not None else (),
        )

    def _compressed(self, prefix: str, by: int, shape: tuple[int, int] | None, weight: str | None) -> FoundEdges:
        indptr, indices = self._ends(f"{prefix}indptr"), self._ends(f"{prefix}indices")
        num_rows = indptr.shape[0] - 1
        if num_rows < 0:
            raise self._misfit(indptr.key, "is empty: it must have one number more than there are rows")
        if shape is not None and shape[by] != num_rows:
            what = "rows" if by == 0 else "columns"
            raise self._misfit(indptr.key, f"has {num_rows + 1} numbers, but the shape states {shape[by]} {what}")
        base = 0 if shape is not None else self.rules.base
        found = self._weight(weight, indices.shape[0])
        return FoundEdges(self.place, indptr, indices, indices.shape[0], by=by, shape=shape, base=base, weight=found)

    def _finish(
        self,
        edges: FoundEdges,
        node: Iterable[ArraySource],
        edge: Iterable[ArraySource] = (),
        sparse: Iterable[FoundEdges] = (),
    ) -> FoundEdges:
        columns = tuple(edge)
        nodes = tuple(node)
        for key in (one.key for one in columns if one.key in _EDGE_ID_KEYS):
            words = (
                f"array {key} becomes a column: edge IDs are positions; exports take it as edge IDs with --edge-id-col {key}"
            )
            self.messages.append(f"{self.place}: {words}")
        return replace(edges, node=nodes, edge=columns, sparse=tuple(sparse), messages=(*self.messages, *self._left_out()))

    def _left_out(self) -> list[str]:
        """Say which arrays have no meaning here. Raises UsageError for a name to leave out that is not there."""
        for name in self.rules.dropped:
            if name not in self.arrays and name not in ("attr", "weight"):
                raise UsageError(
                    f"--drop-column {name}: there is no such array",
                    place=self.place,
                    fix=one_of(self.arrays, found=name),
                )
        left = [key for key in self.arrays if key not in self.used and key not in self.rules.dropped]
        if not left:
            return []
        words = f"array {left[0]} is" if len(left) == 1 else f"arrays {', '.join(left)} are"
        return [f"{self.place}: {words} left out; --node-data and --edge-data take arrays of any name"]

    def _source(self, key: str) -> ArraySource:
        found = self.arrays[key]
        if isinstance(found, DataError):
            raise found
        self.used.add(key)
        return found

    def _ends(self, key: str) -> ArraySource:
        if key not in self.arrays:
            raise DataError(f"there is no array {key!r}", place=self.place, fix="write the file again")
        source = self._source(key)
        _check_integers(source)
        if len(source.shape) != 1:
            raise DataError(f"expected a vector, found shape {source.shape}", place=source.place, fix="store it as a vector")
        return source

    def _shape(self, key: str) -> tuple[int, int]:
        if key not in self.arrays:
            raise DataError(f"there is no array {key!r}", place=self.place, fix="write the file again")
        source = self._source(key)
        value = read_small(self.storage, source.url, key)
        if value.shape != (2,) or value.dtype.kind not in "iu" or (value < 0).any():
            raise DataError(
                f"expected the number of rows and of columns, found {value.tolist()!r:.60}",
                place=source.place,
                fix="write the matrix again",
            )
        return int(value[0]), int(value[1])

    def _weight(self, key: str | None, num_edges: int) -> ArraySource | None:
        if key is None or key not in self.arrays:
            return None
        self.used.add(key)
        if key in self.rules.dropped or "weight" in self.rules.dropped:
            return None
        source = self._source(key)
        if source.shape not in ((num_edges,), (num_edges, 1)):
            raise self._misfit(key, f"has shape {source.shape}, but there are {num_edges} edges")
        if source.dtype.kind == "c":
            raise DataError("weights must be real, found complex numbers", place=source.place, fix=f"add --drop-column {key}")
        return source

    def _edge_columns(self, num_edges: int) -> list[ArraySource]:
        """Take the arrays that are called ``edge_…``."""
        keys = [key for key in self.arrays if key.startswith("edge_") and key not in self.used and self._is_kept(key, None)]
        found = [self._source(key) for key in keys]
        for source in found:
            if source.shape[:1] != (num_edges,):
                raise self._misfit(source.key, f"has shape {source.shape}, but there are {num_edges} edges")
        return found

    def _node_columns(self) -> list[ArraySource]:
        """Take the arrays that are called ``node_…``, or as features and labels of nodes often are."""
        keys = [key for key in self.arrays if key.startswith("node_") or key in NODE_KEYS]
        found = [self._source(key) for key in keys if key not in self.used and self._is_kept(key, None)]
        for source in found[1:]:
            if source.shape[:1] != found[0].shape[:1]:
                raise self._misfit(
                    source.key, f"has shape {source.shape}, but {found[0].key} has {(found[0].shape or ('no',))[0]} rows"
                )
        return found

    def _is_kept(self, key: str, num_rows: int | None) -> bool:
        """Return whether an array is there, readable and wanted. Raises DataError where it has another number of rows."""
        found = self.arrays.get(key)
        if key in self.rules.dropped or not isinstance(found, ArraySource) or found.dtype.kind == "c":
            return False
        if num_rows is not None and found.shape[:1] != (num_rows,):
            raise self._misfit(key, f"has shape {found.shape}, but there are {num_rows} nodes")
        return bool(found.shape)

    def _refuse_layout(self) -> None:
        if self.rules.layout is not None:
            raise UsageError(
                "--input-layout is for arrays indptr and indices, which are not there", place=self.place, fix="drop it"
            )

    def _misfit(self, key: str, words: str) -> DataError:
        fix = f"correct the array, or add --drop-column {key}"
        return DataError(f"array {key!r} {words}", place=self.place, fix=fix)


def _check_integers(source: ArraySource) -> None:
    if source.dtype.kind not in "iu":
        raise DataError(f"IDs must be integers, found {source.dtype.name}", place=source.place, fix="store them as int64")
