"""Columns that lie in files of their own: ``--node-data`` and ``--edge-data``, beside any format.

A file goes by row, row r belonging to raw ID r or edge ID r; or, where a column of IDs is named, by ID.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.arrays.read import ColumnReader, KeyedReader
from graphprep.decoders.cells.arrays_files import ArraySource, find_array, find_arrays, is_npz, plain_arrays
from graphprep.decoders.cells.chunks import dense_chunk
from graphprep.decoders.cells.columns import EdgeLayout
from graphprep.model.errors import DataError, DecodeError, UsageError, one_of
from graphprep.model.graph_config import DataArray, GraphConfig, IdType, NodeTable, TableConfig
from graphprep.model.protocols import (
    DeclaredColumn,
    Decoder,
    FindsFaults,
    InputStorage,
    SettlesIds,
    Sources,
    Span,
    SpanReader,
    TextBlock,
)
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey, RawRows, Relation
from graphprep.model.schema import EdgeType, edge_type_text, parse_edge_type, unescape_name
from graphprep.storage.faults import display_url
from graphprep.storage.read.npy import MAGIC

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_ALL = "*"  # the name that stands for every column of a file
_SCAN_ROWS = 1 << 16

Kind = Literal["node", "edge"]


def parse_data(texts: Sequence[str], kind: Kind) -> tuple[DataArray, ...]:
    """Read ``[OWNER:]NAME=FILE`` and ``[OWNER:]NAME=FILE@ID`` as the flags have them.

    OWNER is a node type, or ``SRC:REL:DST``. What follows the last ``@`` of the file's own name is its column of IDs; a file
    whose name has one is written with an ``@`` behind it. Raises UsageError.
    """
    flag = f"--{kind}-data"
    wanted = "[TYPE:]NAME=FILE" if kind == "node" else "[SRC:REL:DST:]NAME=FILE"
    out = []
    for text in texts:
        target, equals, file = text.partition("=")
        owner, _, name = target.rpartition(":")
        file, id_col = _split_file(file)
        if not equals or not name or not file or (kind == "edge" and owner.count(":") not in (0, 2)):
            raise UsageError(f"{flag}: expected {wanted}, found {text!r}", fix="a ':' inside a name is %3A")
        if kind == "edge" and owner.count(":") == 0 and owner:
            raise UsageError(f"{flag}: expected {wanted}, found {text!r}", fix="write the edge type as SRC:REL:DST")
        if kind == "edge" and id_col is not None:
            raise UsageError(
                f"{flag} {text}: edges have no IDs to go by", fix="give a row for each edge, in the order of the input"
            )
        out.append(DataArray(owner, name.replace("%3A", ":"), file, id_col, place=f"{flag} {text}"))
    return tuple(out)


def _split_file(text: str) -> tuple[str, str | None]:
    """Take the column of IDs off a file's name."""
    folder, slash, name = text.rpartition("/")
    stem, at, id_col = name.rpartition("@")
    return (f"{folder}{slash}{stem}", id_col or None) if at else (text, None)


# ---------------------------------------------------------------------------------------------------------- readers


@dataclass(frozen=True)
class DataReader:
    """Reads a span of data through another reader. Its own type tells such spans from those of the graph's decoder."""

    reader: SpanReader

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines. Raises what the reader raises."""
        return self.reader.decode(block, places)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows. Raises what the reader raises."""
        return self.reader.read(handle, span, max_rows, places)


@dataclass(frozen=True)
class NumberedReader:
    """Reads a table whose rows are numbered, as columns that go by row. ``joined`` makes one dense column of all of them."""

    reader: SpanReader
    owner: str | Relation
    joined: str | None = None

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Refuse text: only reading front to back numbers the rows."""
        raise NotImplementedError

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows in batches of at most ``max_rows``. Raises what the reader raises."""
        for rows in self.reader.read(handle, span, max_rows, places):
            if rows.nodes is None or not rows.nodes.num_rows:
                continue
            nodes = rows.nodes
            assert isinstance(nodes.ids, np.ndarray)
            chunks = nodes.columns if self.joined is None else (_join(self.joined, nodes.columns, nodes.num_rows, span),)
            first = int(nodes.ids[0])
            aligned = tuple(AlignedColumn(self.owner, first, nodes.num_rows, chunk) for chunk in chunks)
            yield RawRows(aligned=aligned, num_records=rows.num_records)


def _join(name: str, chunks: Sequence[ColumnChunk], num_rows: int, span: Span) -> ColumnChunk:
    """Make one dense column of scalars."""
    for chunk in chunks:
        if chunk.key.family != "numbers" or chunk.rows.size != num_rows or chunk.item_shape != ():
            raise DataError(
                f"columns that become one, {name!r}, must hold a number in every row; column {chunk.key.name!r} does not",
                place=display_url(span.url),
                fix="supply the values, NaN for instance, or take the column by its own name",
            )
    values: NDArray[Any] = np.stack([chunk.values for chunk in chunks], axis=1)
    return dense_chunk(ColumnKey(name, "numbers", values.dtype.name), values)


# ------------------------------------------------------------------------------------------------------------- plan


@dataclass
class _Plan:
    """Sources while data is attached to them."""

    storage: Storage
    sources: Sources
    tables: Callable[[], Any]
    base: str
    id_type: IdType | None
    names: set[tuple[str, str]] = field(default_factory=set)
    keyed: dict[tuple[str, str], ArraySource] = field(default_factory=dict)  # the first of the arrays that make a column

    def attach(self, data: DataArray, kind: Kind) -> None:
        """Add the spans and columns of one file."""
        owner = self._node_type(data) if kind == "node" else self._edge_type(data)
        url = self.storage.join(self.base, data.file) if self.base else data.file
        files = self.storage.expand([url]).files
        if _is_array(self.storage.head(files[0], 8)):
            if data.id_col is not None:
                raise UsageError(
                    "an array has no column of IDs",
                    place=data.place,
                    fix="leave out the @ and what follows it, or give a table",
                )
            if data.ids_file is None:
                self._attach_arrays(data, files, owner)
            else:
                self._attach_keyed(data, url, owner)
        else:
            self._attach_table(data, url, owner)

    # ---- owners ----

    def _node_type(self, data: DataArray) -> str:
        known = [node.name for node in self.sources.node_types]
        name = unescape_name(data.owner)
        if not name and len(known) == 1:
            return known[0]
        if name and (name in known or not known):
            return name
        words = f"there is no node type {name!r}" if name else "the node type is missing"
        fix = one_of(known, "write TYPE:NAME=FILE with one of", found=name) if known else "write TYPE:NAME=FILE"
        raise UsageError(words, place=data.place, fix=fix)

    def _edge_type(self, data: DataArray) -> Relation:
        known = self.sources.edge_types
        if not data.owner and len(known) == 1:
            return known[0]
        texts = [edge_type_text(_triple(relation)) for relation in known]
        if data.owner:
            try:
                wanted = parse_edge_type(data.owner)
            except ValueError as error:
                raise UsageError(str(error), place=data.place, fix="write SRC:REL:DST") from None
            for relation in known:
                if _triple(relation) == wanted:
                    return relation
        if not known:
            raise UsageError(
                "edge types of this format are known only when all of it is read, so no file can go by edge ID",
                place=data.place,
                fix="put the column into the edges' own files",
            )
        words = f"there is no edge type {data.owner!r}" if data.owner else "the edge type is missing"
        raise UsageError(
            words, place=data.place, fix=one_of(texts, "write SRC:REL:DST:NAME=FILE with one of", found=data.owner)
        )

    def _claim(self, owner: str | Relation, name: str, place: str) -> None:
        """Refuse a second column of one name."""
        of = owner if isinstance(owner, str) else edge_type_text(_triple(owner))
        taken = [column.key.name for column in self.sources.columns if column.owner == _owner_key(owner)]
        taken += [name for role, name in self._further_names() if role == ("node" if isinstance(owner, str) else "edge")]
        if (of, name) in self.names or name in taken:
            raise UsageError(f"{of!r} has a column {name!r} already", place=place, fix="give one of them another name")
        self.names.add((of, name))

    def _further_names(self) -> Iterator[tuple[str, str]]:
        """Yield the columns that edge lists bring, which are not declared."""
        for span in self.sources.spans:
            for column in span.detail.further if isinstance(span.detail, EdgeLayout) else ():
                yield "edge", column.name

    # ---- files ----

    def _attach_arrays(self, data: DataArray, urls: Sequence[str], owner: str | Relation) -> None:
        """Attach one array, or several whose rows follow each other."""
        self._claim(owner, data.name, data.place)
        sources = [_choose_array(find_arrays(self.storage, url), data, url) for url in urls]
        for source in sources:
            _check_array(source, sources[0])
        key = ColumnKey(data.name, "numbers", sources[0].dtype.name)
        arrays = plain_arrays(owner, key, [None if source.member else source.header for source in sources])
        first = 0
        for source, array in zip(sources, arrays, strict=True):
            detail = DataReader(ColumnReader(owner, key, source, first))
            self._add([Span(source.url, "table", _role(owner), 0, source.shape[0], detail, array=array)])
            first += source.shape[0]
        self._count(owner, first, sources[0].place)
        self._declare(DeclaredColumn(_owner_key(owner), key, sources[0].shape[1:]))

    def _attach_keyed(self, data: DataArray, url: str, owner: str | Relation) -> None:
        """Attach an array whose rows belong to the IDs in another."""
        if not isinstance(owner, str) or data.ids_file is None:
            raise UsageError("edges have no IDs to go by", place=data.place, fix="give a row for each edge")
        source = _choose_array(find_arrays(self.storage, url), data, url)
        ids = find_array(self.storage, self.storage.join(self.base, data.ids_file) if self.base else data.ids_file)
        if ids.dtype.kind not in "iu" or ids.shape != source.shape[:1]:
            raise DataError(
                f"expected {source.shape[0] if source.shape else 0} integers, one for each row of {source.place}, found "
                f"{ids.dtype.name} {list(ids.shape)}",
                place=ids.place,
                fix="give every row an ID",
            )
        first = self.keyed.get((owner, data.name))
        if first is None:
            self._claim(owner, data.name, data.place)
        first = self.keyed.setdefault((owner, data.name), source)
        _check_array(source, first)
        detail = DataReader(KeyedReader(owner, ColumnKey(data.name, "numbers", source.dtype.name), source, ids, self.storage))
        self._add([Span(source.url, "table", f"nodes {owner}", 0, source.shape[0], detail)])

    def _attach_table(self, data: DataArray, url: str, owner: str | Relation) -> None:
        type_name = owner if isinstance(owner, str) else owner.name
        table = TableConfig(files=(url,), id_type=None if data.id_col is None else self.id_type, place=data.place)
        nodes = NodeTable(type_name, table, id_col=data.id_col, row_ids=data.id_col is None)
        found: Sources = self.tables().plan_graph(self.storage, GraphConfig(nodes=(nodes,), place=data.place))
        self.sources = dataclasses.replace(
            self.sources,
            auto_ids=tuple(dict.fromkeys((*self.sources.auto_ids, *found.auto_ids))),
            messages=(*self.sources.messages, *found.messages),
        )
        total = 0
        for number, span in enumerate(found.spans):
            chosen = self._table_span(span, data, owner, is_first=number == 0)
            if data.id_col is None:
                total += self._num_rows(chosen)
            self._add([chosen])
        if data.id_col is None:
            self._count(owner, total, display_url(url))

    def _num_rows(self, span: Span) -> int:
        if span.stop >= 0:
            return span.stop - span.start
        with self.storage.open(span.url) as handle:
            return int(span.detail.reader.reader.count(handle, span))

    def _table_span(self, span: Span, data: DataArray, owner: str | Relation, *, is_first: bool) -> Span:
        """Choose the columns of a table's span."""
        reader: Any = span.detail
        layout = reader.layout
        features, joined = _choose_columns(layout.features, data, display_url(span.url))
        for name in [feature.name for feature in features] if joined is None else [joined]:
            if is_first:
                self._claim(owner, name, data.place)
        if data.id_col is None:
            inner = dataclasses.replace(reader, layout=dataclasses.replace(layout, features=features))
            inner = self._settled(inner, span)
            numbered = DataReader(NumberedReader(inner, owner, joined))
            return dataclasses.replace(span, role=_role(owner), detail=numbered, key_columns=())
        own = dataclasses.replace(layout.owner, declares=False)
        inner = dataclasses.replace(reader, layout=dataclasses.replace(layout, features=features, owner=own))
        return dataclasses.replace(span, detail=DataReader(inner))

    def _settled(self, reader: Any, span: Span) -> Any:
        """Read a file once to see which columns hold text, where its format does not say: columns by row have one dtype."""
        from graphprep.decoders.tables.arrow import ArrowReader

        if isinstance(reader, ArrowReader):
            return reader
        families: dict[str, set[str]] = {}
        with self.storage.open(span.url) as handle:
            for rows in reader.read(handle, span, _SCAN_ROWS):
                for chunk in rows.nodes.columns if rows.nodes is not None else ():
                    families.setdefault(chunk.key.name, set()).update([chunk.key.family] if chunk.rows.size else [])
        from graphprep.decoders.tables.columns import ColumnType

        texts = {name: ColumnType("binary") for name, seen in families.items() if "binary" in seen}
        return dataclasses.replace(reader, layout=reader.layout.with_types(texts)) if texts else reader

    # ---- what is known of the whole ----

    def _add(self, spans: Sequence[Span]) -> None:
        self.sources = dataclasses.replace(self.sources, spans=(*self.sources.spans, *spans))

    def _declare(self, column: DeclaredColumn) -> None:
        if isinstance(column.owner, str) and column.owner not in [node.name for node in self.sources.node_types]:
            return  # types of such formats are known only when all is read
        self.sources = dataclasses.replace(self.sources, columns=(*self.sources.columns, column))

    def _count(self, owner: str | Relation, num_rows: int, place: str) -> None:
        if isinstance(owner, str):
            self._count_nodes(owner, num_rows, place)
        else:
            self._count_edges(owner, num_rows, place)

    def _count_nodes(self, owner: str, num_rows: int, place: str) -> None:
        """Hold the rows against the number of nodes; where nobody says how many there are, the rows do."""
        nodes = []
        for node in self.sources.node_types:
            if node.name == owner and node.num_nodes is not None and node.num_nodes != num_rows:
                raise DataError(
                    f"{_rows(num_rows)}, but node type {owner!r} has {node.num_nodes} nodes",
                    place=place,
                    fix="give every node a row, or name a column of IDs: NAME=FILE@ID",
                )
            states = node.name == owner and not node.has_records and self.sources.nodes != "records"
            nodes.append(dataclasses.replace(node, num_nodes=num_rows, stated_by=place) if states else node)
        self.sources = dataclasses.replace(self.sources, node_types=tuple(nodes))

    def _count_edges(self, owner: Relation, num_rows: int, place: str) -> None:
        known = list(self.sources.num_edges or [None] * len(self.sources.edge_types))
        at = self.sources.edge_types.index(owner)
        promised = known[at]
        if promised is not None and promised != num_rows:
            raise DataError(
                f"{_rows(num_rows)}, but edge type {edge_type_text(_triple(owner))!r} has {promised} edges",
                place=place,
                fix="give every edge a row, in the order of the input",
            )
        known[at] = num_rows
        said = list(self.sources.num_edges_by or [""] * len(known))
        said[at] = said[at] if promised is not None else place
        self.sources = dataclasses.replace(self.sources, num_edges=tuple(known), num_edges_by=tuple(said))


def _is_array(head: bytes) -> bool:
    return head.startswith(MAGIC) or is_npz(head)


def _rows(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"


def _role(owner: str | Relation) -> str:
    return "node_data" if isinstance(owner, str) else "edge_data"


def _triple(relation: Relation) -> EdgeType:
    return relation.src_type or "", relation.name, relation.dst_type or ""


def _owner_key(owner: str | Relation) -> str | EdgeType:
    return owner if isinstance(owner, str) else _triple(owner)


def _check_array(source: ArraySource, first: ArraySource) -> None:
    """Refuse arrays that are no column, or not the column that the first is."""
    if not source.shape:
        raise DataError("the array is a scalar; expected one row a node or edge", place=source.place, fix="give a vector")
    if source.dtype.kind == "c":
        raise DataError("complex numbers are not read", place=source.place, fix="split them into two columns")
    if (source.dtype, source.shape[1:]) != (first.dtype, first.shape[1:]):
        raise DataError(
            f"{source.dtype.name} rows of shape {source.shape[1:]}, but {first.place} has {first.dtype.name} rows of shape "
            f"{first.shape[1:]}",
            place=source.place,
            fix="store all files of a column in one dtype and shape",
        )


def _choose_array(arrays: Mapping[str, ArraySource | DataError], data: DataArray, url: str) -> ArraySource:
    """Take the array that is named, or the only one. Raises DataError."""
    wanted = data.column or data.name
    found = arrays.get(wanted) if len(arrays) > 1 or data.column is not None else next(iter(arrays.values()))
    if found is None:
        raise DataError(
            f"{len(arrays)} arrays, none called {wanted!r}",
            place=display_url(url),
            fix=f"name the column as the array is called: {', '.join(arrays)}",
        )
    if isinstance(found, DataError):
        raise found
    return found


def _choose_columns(features: Sequence[Any], data: DataArray, place: str) -> tuple[tuple[Any, ...], str | None]:
    """Choose a table's columns: (columns, the name of what they are joined to; None where they stay apart).

    Raises DataError where none is named so.
    """
    wanted = data.column or data.name
    if data.name == _ALL:
        return tuple(features), None
    named = [feature for feature in features if wanted in (feature.source, feature.name)]
    if not named and len(features) == 1 and data.column is None:
        named = list(features)
    if named:
        return (dataclasses.replace(named[0], name=data.name),), None
    if features and data.column is None and all(_is_number(feature.source) for feature in features):
        return tuple(features), data.name
    names = ", ".join(feature.source for feature in features) or "none"
    raise DataError(
        f"there is no column {wanted!r} among {len(features)}: {names}",
        place=place,
        fix="name the column as the file does, or * for all columns under their own names",
    )


def _is_number(name: str) -> bool:
    """Return whether a column has no name but its position (``0`` or ``col_0``)."""
    return name.removeprefix("col_").isdigit()


def _new_tables() -> Any:
    from graphprep.decoders.tables.decoder import TablesDecoder

    return TablesDecoder()


def attach_data(
    storage: Storage,
    sources: Sources,
    node_data: Sequence[DataArray],
    edge_data: Sequence[DataArray],
    *,
    tables: Callable[[], Any] = _new_tables,
    base: str = "",
    id_type: IdType | None = None,
) -> Sources:
    """Add to planned sources the columns that lie in files of their own.

    ``tables`` makes the ``TablesDecoder`` that plans tables among the files; relative paths start from the folder ``base``.
    ``id_type`` is that of columns of IDs. Numbers of nodes and edges that nobody states are those of the rows. The spans'
    details are ``DataReader``. Raises UsageError for owners that are not there and names that are taken, DataError for numbers
    of rows that do not fit and files without the column.
    """
    plan = _Plan(storage, sources, tables, base, id_type)
    for data in node_data:
        plan.attach(data, "node")
    for data in edge_data:
        plan.attach(data, "edge")
    return dataclasses.replace(plan.sources, replans=True)


@dataclass(frozen=True)
class DataDecoder:
    """Decodes what another decoder does, and the columns that were attached to it.

    ``widened`` and ``settled`` are what was decided late, of columns and of ID spaces.
    """

    inner: Decoder
    widened: Mapping[str, str] = field(default_factory=dict)
    settled: tuple[str, ...] = ()

    name: ClassVar[str] = "data"

    def tables(self) -> Any:
        """Make what plans the tables among the files."""
        return _new_tables().widen(self.widened).settle_ids(self.settled)

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Let the inner decoder plan."""
        return self.inner.plan(storage, urls)

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines. Raises DecodeError."""
        detail = block.span.detail
        return detail.decode(block, places) if isinstance(detail, DataReader) else self.inner.decode(block, places)

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return all faulty records of a block, where its decoder can tell them."""
        detail = block.span.detail
        finder = detail if isinstance(detail, DataReader) else self.inner
        return finder.find_faults(block) if isinstance(finder, FindsFaults) else []

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a table span. Raises DecodeError."""
        reader = span.detail if isinstance(span.detail, DataReader) else self.inner
        return reader.read(handle, span, max_rows, places)

    def widen(self, columns: Mapping[str, str]) -> DataDecoder:
        """Return the decoder with the dtypes of columns decided, wherever they stand."""
        return DataDecoder(self.inner.widen(columns), {**self.widened, **columns}, self.settled)

    def settle_ids(self, spaces: Sequence[str]) -> DataDecoder:
        """Return the decoder that reads these ID spaces as integers."""
        inner = self.inner.settle_ids(spaces) if isinstance(self.inner, SettlesIds) else self.inner
        return DataDecoder(inner, self.widened, (*self.settled, *spaces))


__all__ = ["DataDecoder", "DataReader", "attach_data", "parse_data"]
