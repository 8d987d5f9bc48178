"""What a chunked graph's metadata.json says, checked against itself and against the files it lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from graphprep.decoders.cells.arrays_files import ArraySource, plain_arrays
from graphprep.decoders.cells.chunks import PARQUET_MAGIC, TableInfo, inspect_npy, inspect_parquet
from graphprep.model.counts import TypeCounts, read_counts
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.protocols import DeclaredColumn, DeclaredNodes, InputStorage, PlainArray, Sources, Span
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import EdgeType, edge_type_text, parse_edge_type
from graphprep.storage.faults import display_url
from graphprep.storage.read.npy import MAGIC
from graphprep.storage.read.schemas import at_path, check_json, parse_json
from graphprep.storage.read.spans import BLOCK_BYTES

METADATA_NAME = "metadata.json"
_MAX_METADATA_BYTES = 1 << 28
_MAX_LINE_BYTES = 1 << 26
_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r\n"

Format = Literal["csv", "numpy", "parquet"]


@dataclass(frozen=True)
class Chunk:
    """What the decoder needs to know of one file; ``Span.detail``.

    ``column`` is a feature's name, None for edges. ``first_row`` is the number of the file's first row in its type.
    ``num_rows`` is the file's number of rows (-1 for csv edges, where it is not known); ``rows_by`` is the place in the
    metadata that says so, empty where the file itself was asked.
    ``num_ends`` and ``end_types`` are the node counts and types of an edge type's source and destination.
    """

    owner: str | Relation
    column: str | None
    format: Format
    first_row: int = 0
    num_rows: int = -1
    rows_by: str = ""
    delimiter: bytes = b""
    width: int = 1
    array: ArraySource | None = None
    key: ColumnKey | None = None
    item_shape: tuple[int, ...] | None = None
    num_ends: tuple[int, int] = (0, 0)
    end_types: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class _Rows:
    """How many rows a type's files must have together and, where that is said, each; ``by`` names who says so.

    ``total`` None: nobody says. ``per_chunk_by`` is what ``[i]`` is put behind.
    """

    total: int | None
    by: str
    per_chunk: tuple[int, ...] | None = None
    per_chunk_by: str = ""


@dataclass(frozen=True)
class _Block:
    """A ``{"format": …, "data": …}`` of the metadata: the files that together hold one thing of a type."""

    owner: str | EdgeType
    column: str | None
    format: Format
    delimiter: bytes | None
    urls: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class _Graph:
    """The metadata, read and checked."""

    name: str | None
    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]
    node_rows: tuple[_Rows, ...]
    edge_rows: tuple[_Rows, ...]
    blocks: tuple[_Block, ...]

    @cached_property
    def num_nodes(self) -> dict[str, int]:
        """Return the number of nodes by type."""
        return {name: rows.total or 0 for name, rows in zip(self.node_types, self.node_rows, strict=True)}


@dataclass
class _Planned:
    """What is gathered from block to block."""

    spans: list[Span] = field(default_factory=list)
    columns: list[DeclaredColumn] = field(default_factory=list)


def plan_chunked(storage: InputStorage, urls: Sequence[str]) -> Sources:
    """Plan a chunked graph given as its folder or its metadata.json. See ``ChunkedDecoder.plan``."""
    if len(urls) != 1:
        raise UsageError(
            f"a chunked graph is one folder, found {len(urls)} inputs", fix=f"name the folder, or its {METADATA_NAME}"
        )
    url, folder = _find_metadata(storage, urls[0])
    graph = read_graph(storage, url, folder)
    rows: dict[str | EdgeType, _Rows] = dict(zip(graph.node_types, graph.node_rows, strict=True))
    rows |= dict(zip(graph.edge_types, graph.edge_rows, strict=True))
    planned = _Planned()
    for block in graph.blocks:
        rows[block.owner] = _plan_block(storage, graph, block, rows[block.owner], planned)
    return Sources(
        spans=tuple(planned.spans),
        nodes="identity",
        node_types=tuple(DeclaredNodes(name, rows[name].total, stated_by=rows[name].by) for name in graph.node_types),
        edge_types=tuple(_relation(edge_type) for edge_type in graph.edge_types),
        columns=tuple(planned.columns),
        graph_name=graph.name,
        num_edges=tuple(rows[edge_type].total for edge_type in graph.edge_types),
        num_edges_by=tuple(rows[edge_type].by or display_url(url) for edge_type in graph.edge_types),
    )


def _find_metadata(storage: InputStorage, url: str) -> tuple[str, str]:
    """Return the URLs of metadata.json and of the folder that relative paths start from."""
    inside = storage.join(url, METADATA_NAME)
    if storage.exists(inside):
        return inside, url
    head, slash, _ = url.rpartition("/")
    if not slash:
        return url, ""
    return url, head if head and not head.endswith("/") else f"{head}/"


def _relation(edge_type: EdgeType) -> Relation:
    return Relation(edge_type[1], edge_type[0], edge_type[2])


# ---------------------------------------------------------------------------------------------------------- metadata


def read_graph(storage: InputStorage, url: str, folder: str) -> _Graph:
    """Read metadata.json, against its JSON Schema and against itself. Raises DataError with the key path."""
    place = display_url(url)
    with storage.open(url) as handle:
        data = handle.read(_MAX_METADATA_BYTES + 1)
    if len(data) > _MAX_METADATA_BYTES:
        raise DataError(f"the metadata is larger than {_MAX_METADATA_BYTES >> 20} MiB", place=place)
    value = parse_json(data, place)
    check_json(value, "chunked", place)
    node_types = tuple(value["node_type"])
    edge_types = tuple(parse_edge_type(text) for text in value["edge_type"])
    _check_types(node_types, edge_types, place)
    nodes = read_counts(value, "nodes", len(node_types), place)
    edges = read_counts(value, "edges", len(edge_types), place)
    if nodes is None and node_types:
        message = "neither num_nodes_per_type nor num_nodes_per_chunk is there"
        raise DataError(message, place=place, fix="state the number of nodes of each type in num_nodes_per_type")
    return _Graph(
        name=value.get("graph_name"),
        node_types=node_types,
        edge_types=edge_types,
        node_rows=_rows_of(nodes, len(node_types), place),
        edge_rows=_rows_of(edges, len(edge_types), place),
        blocks=tuple(_read_blocks(storage, value, node_types, edge_types, (place, folder))),
    )


def _check_types(node_types: Sequence[str], edge_types: Sequence[EdgeType], place: str) -> None:
    known: set[str] = set()
    for i, name in enumerate(node_types):
        if name in known:
            raise DataError(f"node type {name!r} is listed twice", place=at_path(place, ("node_type", i)))
        known.add(name)
    seen: set[EdgeType] = set()
    for i, edge_type in enumerate(edge_types):
        here = at_path(place, ("edge_type", i))
        if edge_type in seen:
            raise DataError(f"edge type {edge_type_text(edge_type)!r} is listed twice", place=here)
        seen.add(edge_type)
        for name in (edge_type[0], edge_type[2]):
            if name not in known:
                raise DataError(f"unknown node type {name!r}", place=here, fix=one_of(node_types, found=name))


def _rows_of(counts: TypeCounts | None, num_types: int, place: str) -> tuple[_Rows, ...]:
    """Turn counts into what a type's files must have."""
    if counts is None:
        return (_Rows(None, ""),) * num_types
    out = []
    for i, total in enumerate(counts.per_type):
        by = at_path(place, (counts.key, i))
        chunks = None if counts.per_chunk is None else counts.per_chunk[i]
        out.append(_Rows(total, by, chunks, by))
    return tuple(out)


def _read_blocks(
    storage: InputStorage,
    value: Mapping[str, Any],
    node_types: Sequence[str],
    edge_types: Sequence[EdgeType],
    where: tuple[str, str],
) -> Iterator[_Block]:
    """Yield all blocks: edges first, since node counts are known and edge counts may follow from them; then features."""
    place, folder = where

    def block(owner: str | EdgeType, column: str | None, path: tuple[str, ...], entry: Mapping[str, Any]) -> _Block:
        style = entry["format"]
        delimiter = style["delimiter"].encode() if "delimiter" in style else None
        if delimiter is not None and not delimiter.strip(b" "):
            delimiter = b""
        urls = tuple(storage.join(folder, text) for text in entry["data"])
        return _Block(owner, column, style["name"], delimiter, urls, at_path(place, path))

    edges = _by_edge_type(value["edges"], edge_types, at_path(place, ("edges",)))
    for edge_type in edge_types:
        if edge_type not in edges:
            raise DataError(f"no files of edge type {edge_type_text(edge_type)!r}", place=at_path(place, ("edges",)))
        key, entry = edges[edge_type]
        yield block(edge_type, None, ("edges", key), entry)
    node_data = value.get("node_data", {})
    for name in node_data:
        if name not in node_types:
            message = f"unknown node type {name!r}"
            raise DataError(message, place=at_path(place, ("node_data",)), fix=one_of(node_types, found=name))
    for node_type in node_types:
        for name, entry in node_data.get(node_type, {}).items():
            yield block(node_type, name, ("node_data", node_type, name), entry)
    edge_data = _by_edge_type(value.get("edge_data", {}), edge_types, at_path(place, ("edge_data",)))
    for edge_type in edge_types:
        key, features = edge_data.get(edge_type, ("", {}))
        for name, entry in features.items():
            yield block(edge_type, name, ("edge_data", key, name), entry)


def _by_edge_type(entries: Mapping[str, Any], edge_types: Sequence[EdgeType], place: str) -> dict[EdgeType, tuple[str, Any]]:
    """Return (key as written, value) by edge type, so that percent-encoding need not be the same everywhere."""
    listed = set(edge_types)
    out: dict[EdgeType, tuple[str, Any]] = {}
    for key, entry in entries.items():
        try:
            edge_type = parse_edge_type(key)
        except ValueError as error:
            raise DataError(str(error), place=place) from None
        if edge_type not in listed:
            known = [edge_type_text(known) for known in edge_types]
            raise DataError(f"unknown edge type {key!r}", place=place, fix=one_of(known, found=key))
        if edge_type in out:
            raise DataError(f"edge type {key!r} is there twice", place=place)
        out[edge_type] = (key, entry)
    return out


# ------------------------------------------------------------------------------------------------------------- files


@dataclass(frozen=True)
class _File:
    """What is known of one file before its rows are read. ``num_rows`` None: csv, not counted."""

    url: str
    num_rows: int | None
    table: TableInfo | None = None
    delimiter: bytes = b""
    width: int | None = None

    @property
    def kind(self) -> tuple[object, ...] | None:
        """Return what must agree between the files of a feature; None where the file has no row."""
        if self.table is not None:
            return (self.table.family, self.table.dtype, self.table.item_shape) if self.table.num_rows else None
        return None if self.width is None else ("csv", self.width)


def _plan_block(storage: InputStorage, graph: _Graph, block: _Block, rows: _Rows, planned: _Planned) -> _Rows:
    """Plan the files of a block; return what is known of the type's rows afterwards."""
    files = [_inspect(storage, block, url) for url in block.urls]
    expected = _expected_rows(files, rows)
    if block.column is not None:
        files = [_count(storage, file, want) for file, want in zip(files, expected, strict=True)]
        _check_agreement(files)
    for file, want in zip(files, expected, strict=True):
        if want is not None and file.num_rows is not None and file.num_rows != want[0]:
            raise _count_error(_rows_words(file.num_rows), want, display_url(file.url))
    found = [file.num_rows for file in files]
    known = None if None in found else sum(number for number in found if number is not None)
    if known is not None and rows.total is not None and known != rows.total:
        raise _count_error(f"the files have {_rows_words(known)}", (rows.total, rows.by), block.place)
    kind = next((file for file in files if file.kind is not None), files[0] if files else None)
    _add_spans(graph, block, files, expected, planned)
    if block.column is not None:
        planned.columns.append(_declare(block, kind))
    return rows if rows.total is not None or known is None else _Rows(known, f"{block.place} (its files)")


def _count_error(found: str, want: tuple[int, str], place: str) -> DataError:
    return DataError(
        f"{found}, but {want[1]} says {want[0]}", place=place, fix="correct the counts in the metadata, or the file"
    )


def _expected_rows(files: Sequence[_File], rows: _Rows) -> list[tuple[int, str] | None]:
    """Return for each file how many rows it must have and who says so: its own chunk's count, or the total of one file."""
    if rows.per_chunk is not None and len(rows.per_chunk) == len(files):
        return [(count, f"{rows.per_chunk_by}[{i}]") for i, count in enumerate(rows.per_chunk)]
    if len(files) == 1 and rows.total is not None:
        return [(rows.total, rows.by)]
    return [None] * len(files)


def _inspect(storage: InputStorage, block: _Block, url: str) -> _File:
    """Look into a file: the header, the footer, or the first line."""
    if block.format == "csv":
        return _inspect_csv(storage, block, url)
    edges = block.column is None
    table = inspect_npy(storage, url) if block.format == "numpy" else inspect_parquet(storage, url, edges=edges)
    if edges and table.array is not None and table.num_rows:
        _check_npy_edges(table.array)
    return _File(url, table.num_rows, table)


def _check_npy_edges(array: ArraySource) -> None:
    shape, place = array.shape, array.place
    if len(shape) != 2 or shape[1] != 2:
        fix = "transpose the array" if len(shape) == 2 and shape[0] == 2 else "store one row an edge: source, destination"
        raise DataError(f"edges must have shape (m, 2), found {shape}", place=place, fix=fix)
    if array.dtype.kind not in "iu":
        raise DataError(f"ids must be integers, found {array.header.dtype.name}", place=place, fix="store them as int64")


def _inspect_csv(storage: InputStorage, block: _Block, url: str) -> _File:
    """Find the delimiter and the number of columns from the first line that is not blank."""
    place = display_url(url)
    line = _first_line(storage, url, place)
    for magic, name in ((MAGIC, "numpy"), (PARQUET_MAGIC, "parquet")):
        if line.startswith(magic):
            found = "a .npy" if name == "numpy" else "a Parquet"
            fix = f"set format.name to {name}"
            raise DataError(f"format.name is csv, but this is {found} file", place=place, fix=fix)
    delimiter = block.delimiter
    if delimiter is None:
        delimiter = next((mark for mark in (b",", b"\t") if mark in line), b"")
    width = None if not line else line.count(delimiter) + 1 if delimiter else len(line.split())
    return _File(url, None, None, delimiter, width)


def _first_line(storage: InputStorage, url: str, place: str) -> bytes:
    """Return the first line that is not blank, without its end; empty where there is none."""
    with storage.open(url) as handle:
        head = handle.readline(_MAX_LINE_BYTES).removeprefix(_BOM)
        while head and not head.strip(_BLANKS):
            head = handle.readline(_MAX_LINE_BYTES)
    if len(head) == _MAX_LINE_BYTES and not head.endswith(b"\n"):
        raise DataError(f"a line is longer than {_MAX_LINE_BYTES >> 20} MiB; this is no csv file of numbers", place=place)
    return head.rstrip(b"\r\n")


def _count(storage: InputStorage, file: _File, want: tuple[int, str] | None) -> _File:
    """Settle the number of rows of a csv feature: what the metadata says, else its lines."""
    if file.num_rows is not None:
        return file
    num_rows = want[0] if want is not None else count_rows(storage, file.url)
    return _File(file.url, num_rows, file.table, file.delimiter, file.width)


def count_rows(storage: InputStorage, url: str) -> int:
    """Count the lines of a text file up to the last that is not blank."""
    rows = line_feeds = 0
    with storage.open(url) as handle:
        piece = handle.read(BLOCK_BYTES).removeprefix(_BOM)
        while piece:
            filled = piece.rstrip(_BLANKS)
            if filled:
                rows = line_feeds + filled.count(b"\n") + 1
            line_feeds += piece.count(b"\n")
            piece = handle.read(BLOCK_BYTES)
    return rows


def _check_agreement(files: Sequence[_File]) -> None:
    """Raise DataError, with both files, where dtype or item shape change from one file of a feature to another."""
    first = next((file for file in files if file.kind is not None), None)
    for file in files:
        if first is None or file.kind is None or file.kind == first.kind:
            continue
        message = f"{_kind_words(file)}, but {display_url(first.url)} has {_kind_words(first)}"
        raise DataError(message, place=display_url(file.url), fix="store all files of a feature in one dtype and shape")


def _rows_words(number: int) -> str:
    return f"{number} row{'' if number == 1 else 's'}"


def _kind_words(file: _File) -> str:
    if file.table is None:
        return f"{file.width} column{'' if file.width == 1 else 's'}"
    if file.table.family == "binary":
        return "texts"
    shape = file.table.item_shape
    return f"{file.table.dtype} lists" if shape is None else f"{file.table.dtype} rows of shape {shape}"


def _add_spans(
    graph: _Graph,
    block: _Block,
    files: Sequence[_File],
    expected: Sequence[tuple[int, str] | None],
    planned: _Planned,
) -> None:
    """Scatter one span a file. Row counts of csv files are still to be compared, by the decode stage."""
    owner = block.owner if isinstance(block.owner, str) else _relation(block.owner)
    role = "edges" if block.column is None else "node_data" if isinstance(owner, str) else "edge_data"
    chunk = Chunk(owner, block.column, block.format)
    if isinstance(owner, Relation) and block.column is None:
        src, dst = block.owner[0], block.owner[2]
        ends = (graph.num_nodes[src], graph.num_nodes[dst])
        chunk = Chunk(owner, None, block.format, num_ends=ends, end_types=(src, dst))
    first_row = 0
    for file, want, array in zip(files, expected, _plain_arrays(owner, block, files), strict=True):
        detail = _detail(chunk, file, first_row, want[1] if want else "")
        is_text = block.format == "csv"
        planned.spans.append(
            Span(
                file.url,
                "text" if is_text else "table",
                role,
                stop=-1 if is_text or file.num_rows is None else file.num_rows,
                detail=detail,
                expect_rows=want[0] if is_text and want is not None else None,
                expect_by=want[1] if is_text and want is not None else "",
                array=array,
            )
        )
        first_row += file.num_rows or 0


def _plain_arrays(owner: str | Relation, block: _Block, files: Sequence[_File]) -> list[PlainArray | None]:
    """Say where the rows of a feature lie in its files; None where they must be read."""
    if block.column is None or block.format != "numpy":
        return [None] * len(files)
    dtype = next((file.table.dtype for file in files if file.table is not None and file.table.num_rows), "int64")
    headers = [None if file.table is None or file.table.array is None else file.table.array.header for file in files]
    return plain_arrays(owner, ColumnKey(block.column, "numbers", dtype), headers)


def _detail(chunk: Chunk, file: _File, first_row: int, rows_by: str) -> Chunk:
    table = file.table
    key = None
    if chunk.column is not None and table is not None:
        key = ColumnKey(chunk.column, "binary" if table.family == "binary" else "numbers", table.dtype)
    return Chunk(
        chunk.owner,
        chunk.column,
        chunk.format,
        first_row=first_row,
        num_rows=-1 if file.num_rows is None else file.num_rows,
        rows_by=rows_by,
        delimiter=file.delimiter,
        width=file.width or 1,
        array=None if table is None else table.array,
        key=key,
        item_shape=None if table is None else table.item_shape,
        num_ends=chunk.num_ends,
        end_types=chunk.end_types,
    )


def _declare(block: _Block, file: _File | None) -> DeclaredColumn:
    """Declare a feature, with dtype and shape where headers say them; csv and lists leave them to the data."""
    assert block.column is not None
    if file is None or file.table is None:
        width = 1 if file is None or file.width is None else file.width
        shape = () if width == 1 else (width,)
        return DeclaredColumn(block.owner, ColumnKey(block.column, "numbers", "int64"), shape, settled=False)
    table = file.table
    key = ColumnKey(block.column, "binary" if table.family == "binary" else "numbers", table.dtype)
    settled = table.item_shape is not None or table.family == "binary"
    stated: tuple[int, ...] = (table.item_shape or ()) if settled else (0,)
    return DeclaredColumn(block.owner, key, stated, settled)
