"""Matrix Market files (``.mtx``): the entries of a sparse matrix as edges.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, The Matrix Market Exchange Formats (NISTIR 5935).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import edge_rows
from graphprep.decoders.cells.faults import Wording, weight_words
from graphprep.decoders.cells.text import Fields, after_header
from graphprep.decoders.looks.text_head import MATRIX_MARKET
from graphprep.decoders.matrices.options import MAX_LINE_BYTES, EdgePlan, MatrixOptions, matrix_relation, matrix_sources
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.model.counts import parse_count
from graphprep.model.errors import DataError, DecodeError, UsageError, one_of
from graphprep.model.graph_config import EdgeTable
from graphprep.model.protocols import DeclaredColumn, InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawRows, Relation
from graphprep.storage.faults import display_url
from graphprep.storage.read.spans import BLOCK_BYTES

Ints = NDArray[np.int64]
Symmetry = Literal["general", "symmetric", "skew-symmetric"]

_BOM = b"\xef\xbb\xbf"
_FIELDS = ("pattern", "real", "integer", "double", "unsigned-integer")
_WEIGHT = "weight"  # the name of the values' column, and of the flag's word to leave it out


@dataclass(frozen=True)
class Banner:
    """What the lines before the entries say. ``size_line`` counts from 1."""

    place: str
    pattern: bool
    symmetry: Symmetry
    shape: tuple[int, int]
    num_entries: int
    size_line: int


@dataclass(frozen=True)
class MtxReader:
    """Reads the entries of one file: entry (i, j) is an edge from node i - 1 to node j - 1.

    In a symmetric matrix the mirrored edge follows each entry that is not on the diagonal, in a skew-symmetric one with the
    negated value. ``weight_dtype`` None leaves the values out.
    """

    relation: Relation
    banner: Banner
    weight_dtype: str | None

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Refuse a table: the file is text."""
        raise NotImplementedError

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines; comments and blank lines are skipped.

        Raises DecodeError for a wrong number of fields, an index outside the matrix, a value that is no number or does not fit,
        a diagonal entry of a skew-symmetric matrix.
        """
        buf = np.frombuffer(block.data, np.uint8)
        at = after_header(block, self.banner.size_line)
        _refuse_hash(block.data, at)
        weighted = not self.banner.pattern
        found = None if places else delimited.parse_plain(buf, at, np.zeros(0, np.uint8), weighted)
        if found is not None:
            rows, columns, values = found
            if self._fits(rows, columns) and not self._has_diagonal(rows, columns):
                weights, bad = numbers.round_to(values, np.dtype(self.weight_dtype or "float64"))
                if bad < 0:
                    return self._edges(rows, columns, weights, None)
        return self._decode_slowly(buf, at, places)

    def _fits(self, rows: NDArray[np.uint64], columns: NDArray[np.uint64]) -> bool:
        if not rows.size:
            return True
        low = min(int(rows.min()), int(columns.min()))
        return low >= 1 and int(rows.max()) <= self.banner.shape[0] and int(columns.max()) <= self.banner.shape[1]

    def _has_diagonal(self, rows: NDArray[np.uint64], columns: NDArray[np.uint64]) -> bool:
        return self.banner.symmetry == "skew-symmetric" and bool((rows == columns).any())

    def _decode_slowly(self, buf: NDArray[np.uint8], at: int, places: bool) -> RawRows:
        """Find the first fault, or the places of all fields."""
        width = 2 if self.banner.pattern else 3
        start, stop, bad = delimited.split_fields(buf, at, np.zeros(0, np.uint8), False, np.arange(width))
        cells = Fields(buf, start, stop, np.arange(width))
        for _, fault, found in bad.tolist():
            words = f"expected {width} fields{' (row, column, value)' if width == 3 else ' (row, column)'}, found {found}"
            fix = "give every entry a row, a column" + (" and a value" if width == 3 else "")
            cells.faults.add(cells.num_rows, fault, -1, Wording(words, fix))
        rows, columns = self._indices(cells, 0), self._indices(cells, 1)
        weights: NDArray[np.generic] = np.zeros(0)
        if width == 3:
            weights = self._weights(cells)
        if self.banner.symmetry == "skew-symmetric" and (rows == columns).any():
            row = int((rows == columns).argmax())
            words = f"a skew-symmetric matrix has no entries on its diagonal, found ({rows[row]}, {columns[row]})"
            cells.blame(0, row, Wording(words, "remove the entry"))
        cells.faults.raise_first()
        return self._edges(rows, columns, weights, (start[0], start[1]) if places else None)

    def _indices(self, cells: Fields, axis: int) -> NDArray[np.uint64]:
        ids, codes = delimited.parse_ids(*cells.cells(axis), 0)
        size = self.banner.shape[axis]
        codes[(codes == numbers.OK) & ((ids < 1) | (ids > np.uint64(size)))] = numbers.OVERFLOW
        name = ("row", "column")[axis]

        def say(row: int, code: int, _: str) -> Wording:
            text = _text(cells, axis, row)
            if code in (numbers.OVERFLOW, numbers.NEGATIVE):
                return Wording(f"the {name} must be from 1 to {size}, found {text}", "correct the entry, or the size line")
            return Wording(f"the {name} must be an integer, found {text!r}", "write indices as decimal digits")

        cells.blame_coded(axis, codes, say)
        return ids

    def _weights(self, cells: Fields) -> NDArray[np.generic]:
        dtype = self.weight_dtype or "float64"
        weights, codes = delimited.parse_numbers(dtype, *cells.cells(2))

        def say(row: int, code: int, _: str) -> Wording:
            text = _text(cells, 2, row)
            if code == numbers.OVERFLOW:
                return weight_words(code, text, dtype)
            return Wording(f"the value must be a number, found {text!r}", "correct the value")

        cells.blame_coded(2, codes, say)
        return weights

    def _edges(
        self,
        rows: NDArray[np.uint64],
        columns: NDArray[np.uint64],
        weights: NDArray[np.generic],
        places: tuple[Ints, Ints] | None,
    ) -> RawRows:
        """Make edges of entries, and mirror those of a symmetric matrix."""
        src, dst, values = rows - np.uint64(1), columns - np.uint64(1), weights
        if self.banner.symmetry != "general":
            src, dst, values, places = self._mirrored(src, dst, values, places)
        chunks: tuple[ColumnChunk, ...] = ()
        if self.weight_dtype is not None:
            key = ColumnKey(_WEIGHT, "numbers", self.weight_dtype, role="weight")
            chunks = (ColumnChunk(key, np.arange(src.size), np.ones(src.size, np.int64), values, ()),)
        found = edge_rows(self.relation, src, dst, chunks, places)
        return dataclasses.replace(found, num_records=rows.size)

    def _mirrored(
        self,
        src: NDArray[np.uint64],
        dst: NDArray[np.uint64],
        values: NDArray[np.generic],
        places: tuple[Ints, Ints] | None,
    ) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.generic], tuple[Ints, Ints] | None]:
        """Put its mirror behind every edge that is no loop."""
        entries = np.repeat(np.arange(src.size), 1 + (src != dst))
        mirrored = np.zeros(entries.size, np.bool_)
        mirrored[1:] = entries[1:] == entries[:-1]

        def ends(first: NDArray[Any], second: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            return np.where(mirrored, second[entries], first[entries]), np.where(mirrored, first[entries], second[entries])

        if values.size:
            values = values[entries]
            if self.banner.symmetry == "skew-symmetric":
                values = np.where(mirrored, -cast("NDArray[np.floating]", values), values)
        return *ends(src, dst), values, None if places is None else ends(*places)


def _refuse_hash(data: bytes, at: int) -> None:
    """Raise DecodeError for a line that begins with ``#``, which is no comment here."""
    while (at := data.find(b"#", at)) >= 0:
        if not data[data.rfind(b"\n", 0, at) + 1 : at].strip(b" \t"):
            raise DecodeError("the row must be an integer, found '#'", at=at, fix="begin comments with '%'")
        at += 1


def _text(cells: Fields, position: int, row: int) -> str:
    start, stop = cells.of(position)
    text = bytes(cells.buf[start[row] : stop[row]]).decode(errors="replace")
    return text if len(text) <= 40 else f"{text[:40]}…"


# ------------------------------------------------------------------------------------------------------------- plan


def read_banner(handle: BinaryIO, place: str) -> Banner:
    """Read the banner, the comments and the size line; the handle then stands behind them.

    Raises DataError for what is no Matrix Market file, and for arrays, complex and hermitian matrices.
    """
    words = handle.readline(MAX_LINE_BYTES).removeprefix(_BOM).decode("latin1").split()
    if len(words) != 5 or words[0].lower().encode("latin1") != MATRIX_MARKET:
        raise DataError(
            "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'", place=f"{place}:1:1", fix="write the file again"
        )
    what, layout, field, symmetry = (word.lower() for word in words[1:])
    _check_banner(what, layout, field, symmetry, f"{place}:1:1")
    number = 1
    while True:
        line = handle.readline(MAX_LINE_BYTES)
        number += 1
        if not line:
            raise DataError("the file ends before its size line", place=f"{place}:{number}:1", fix="copy the file again")
        if line.strip() and not line.lstrip(b" \t").startswith(b"%"):
            break
    fields = line.split()
    numbers = [count for field in fields if (count := parse_count(field)) is not None]
    if len(fields) != 3 or len(numbers) != 3:
        found = line.decode("latin1").strip()
        raise DataError(
            f"expected the numbers of rows, columns and entries, found {found!r:.60}",
            place=f"{place}:{number}:1",
            fix="write the size line with three whole numbers below 2^63",
        )
    rows, columns, entries = numbers
    if symmetry != "general" and rows != columns:
        raise DataError(
            f"a {symmetry} matrix must be square, found {rows} x {columns}",
            place=f"{place}:{number}:1",
            fix="correct the size line, or the banner",
        )
    return Banner(place, field == "pattern", cast(Symmetry, symmetry), (rows, columns), entries, number)


def _check_banner(what: str, layout: str, field: str, symmetry: str, place: str) -> None:
    fix = "write the matrix again as coordinate, with pattern, real or integer values (scipy.io.mmwrite does)"
    if what != "matrix":
        raise DataError(f"an object of kind {what!r} is not read, only a matrix", place=place, fix=fix)
    if layout == "array":
        raise DataError("a dense matrix (format 'array') is not read as a graph", place=place, fix=fix)
    if field == "complex" or symmetry == "hermitian":
        raise DataError("complex values are not read", place=place, fix=fix)
    for word, known, name in (
        (layout, ("coordinate",), "format"),
        (field, _FIELDS, "field"),
        (symmetry, ("general", "symmetric", "skew-symmetric"), "symmetry"),
    ):
        if word not in known:
            raise DataError(f"unknown {name} {word!r}", place=place, fix=one_of(known, found=word))
    if field == "pattern" and symmetry == "skew-symmetric":
        raise DataError("a pattern cannot be skew-symmetric: it has no values to negate", place=place, fix=fix)


def plan_mtx(
    storage: InputStorage,
    urls: Sequence[str],
    table: EdgeTable,
    *,
    weight_dtype: str = "float32",
    relation_text: str | None = None,
) -> EdgePlan:
    """Plan Matrix Market files of one shape, whose edges follow each other. Counts the entries of every file.

    ``relation_text`` is ``--relation``, which names the types where ``table`` does not. Raises DataError with the line where a
    file has more or fewer entries than its size line says, and for files of different kinds.
    """
    banners = [_scan(storage, url) for url in urls]
    first = banners[0]
    for banner in banners[1:]:
        if (banner.shape, banner.pattern) != (first.shape, first.pattern):
            raise DataError(
                f"{_words(banner)}, but {first.place} is {_words(first)}",
                place=f"{banner.place}:{banner.size_line}:1",
                fix="convert the files on their own",
            )
    relation = matrix_relation(relation_text, first.shape)
    if table.src_type is not None or table.dst_type is not None:
        relation = Relation(table.relation or "_E", table.src_type, table.dst_type, table.src_space, table.dst_space)
    dtype = None if first.pattern or _is_dropped(table.table.dropped, first) else weight_dtype
    spans = [
        Span(url, role="edges", detail=MtxReader(relation, banner, dtype)) for url, banner in zip(urls, banners, strict=True)
    ]
    general = all(banner.symmetry == "general" for banner in banners)
    owner = (relation.src_type or "", relation.name, relation.dst_type or "")
    key = ColumnKey(_WEIGHT, "numbers", weight_dtype, role="weight")
    square = relation.src_type is not None and relation.src_type == relation.dst_type
    return EdgePlan(
        spans=tuple(spans),
        relation=relation,
        num_src=max(first.shape) if square else first.shape[0],
        num_dst=max(first.shape) if square else first.shape[1],
        nodes_by=f"{first.place}:{first.size_line}:1",
        num_edges=sum(banner.num_entries for banner in banners) if general else None,
        columns=() if dtype is None else (DeclaredColumn(owner, key, ()),),
    )


def _is_dropped(dropped: Sequence[str], banner: Banner) -> bool:
    for name in dropped:
        if name not in (_WEIGHT, "data"):
            raise UsageError(f"--drop-column {name}: there is no such column", place=banner.place, fix=f"use {_WEIGHT}")
    return bool(dropped)


def _words(banner: Banner) -> str:
    return f"a {banner.shape[0]} x {banner.shape[1]} matrix with{'out' if banner.pattern else ''} values"


def _scan(storage: InputStorage, url: str) -> Banner:
    """Read what stands before the entries, and count them."""
    from graphprep.kernels.cpu.text.line_scan import LineScan

    with storage.open(url) as handle:
        banner = read_banner(handle, display_url(url))
        scan = LineScan(most_records=banner.num_entries)
        while piece := handle.read(BLOCK_BYTES):
            scan.feed(piece)
    line = banner.size_line + 1
    if scan.surplus >= 0:
        raise DataError(
            f"the size line says {banner.num_entries} entries, but more follow",
            place=f"{banner.place}:{line + scan.surplus}:1",
            fix=f"correct line {banner.size_line}, or remove the surplus",
        )
    if scan.num_records < banner.num_entries:
        raise DataError(
            f"the file ends after {scan.num_records} entries, but the size line says {banner.num_entries}",
            place=f"{banner.place}:{line + max(scan.last_record, -1)}:1",
            fix="copy the file again; it may be cut off",
        )
    return banner


@dataclass(frozen=True)
class MtxDecoder(MatrixOptions):
    """Decodes Matrix Market files in coordinate format: pattern, real, integer; general, symmetric, skew-symmetric.

    ``relation`` is ``REL`` or ``SRC:REL:DST``; without it the node types of a matrix that is not square are ``row`` and
    ``col``. Values become weights, unless ``drop_columns`` has ``weight``.
    """

    name: ClassVar[str] = "mtx"

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Read the banner and the size line of every file, and count its entries.

        Raises DataError for other files and other matrices, and for a wrong number of entries.
        """
        return matrix_sources(plan_mtx(storage, urls, self.table, weight_dtype=self.weight_dtype, relation_text=self.relation))
