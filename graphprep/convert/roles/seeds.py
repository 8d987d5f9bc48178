"""Files of seeds: raw IDs in text, JSON lines, ``.npy`` or Parquet, and the nodes that they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.search import find_texts
from graphprep.kernels.cpu.text.texts import concat_texts, count_up_to, sort_texts, take_texts
from graphprep.model.errors import DataError
from graphprep.model.protocols import Span
from graphprep.model.rows import RawTexts
from graphprep.model.schema import RawIdKind
from graphprep.storage.faults import display_url
from graphprep.storage.read.npy import MAGIC
from graphprep.storage.read.spans import places_of, text_blocks
from graphprep.store.assign import RawBatch

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

Ints = NDArray[np.int64]
IdKind = Literal["uint", "int", "string"]

_MAX_ROWS = 1 << 17
_ROW_BYTES = 48  # of a seed beside its text, while nodes are looked up: ID, order, result
_JSON = re.compile(r"\.(?:json|jsonl|ndjson)(?:\.(?:gz|bz2|xz|zst))?")
_LINES = "write one raw ID a line"
_COLUMN = "give the file one column of raw IDs, or call it id"


@dataclass(frozen=True)
class SeedIds:
    """Some of a file's IDs, in its order, and where each of them stands."""

    ids: RawBatch
    place: Callable[[int], str]


class RawIndex(Protocol):
    """Raw IDs of nodes and what they are in a store: ``NodeIndex``, and that of a store."""

    @property
    def raw_kinds(self) -> Sequence[RawIdKind]:
        """Return how the raw IDs of each type are stored."""

    @property
    def type_names(self) -> Sequence[str]:
        """Return the names of the types."""

    @property
    def num_nodes(self) -> Sequence[int]:
        """Return the number of nodes of each type."""

    def raw(self, number: int) -> Iterator[tuple[RawBatch, Ints]]:
        """Yield the nodes of a type, ascending by raw ID, with their typed IDs."""


def find_seeds(storage: Storage, url: str, index: RawIndex, number: int, cap_bytes: int, what: str = "seed") -> Iterator[Ints]:
    """Yield the typed IDs of the seeds in a file, a folder or a glob: int64[k], in the order of the file.

    ``what`` they are is said of one that is no node. Raises DataError for what is no ID, and for an ID that is no node of
    the type; StorageError where there is no file.
    """
    kind = id_kind(index, number)
    for file in storage.expand([url]).files:
        held: list[SeedIds] = []
        num_bytes = 0
        for seeds in read_ids(storage, file, kind):
            held.append(seeds)
            num_bytes += _ROW_BYTES * seeds.ids.size + (0 if seeds.ids.texts is None else seeds.ids.texts[1].nbytes)
            if num_bytes > cap_bytes // 4:
                yield _look_up(held, index, number, what)
                held, num_bytes = [], 0
        if held:
            yield _look_up(held, index, number, what)


def id_kind(index: RawIndex, number: int) -> IdKind:
    """Return what the raw IDs of a type are."""
    if index.raw_kinds[number] == "string":
        return "string"
    batch, _ = next(index.raw(number), (RawBatch(np.zeros(0, np.uint64)), None))
    return "int" if batch.is_signed else "uint"


# ------------------------------------------------------------------------------------------------------- reading


def read_ids(storage: Storage, url: str, kind: IdKind) -> Iterator[SeedIds]:
    """Yield the IDs in a file, in its order. Raises DataError for what is none."""
    head = storage.head(url, len(MAGIC))
    if head.startswith(MAGIC):
        return _read_array(storage, url, kind)
    if head.startswith(b"PAR1"):
        return _read_parquet(storage, url, kind)
    return _read_lines(storage, url, kind)


def _fault(code: int, found: str, kind: IdKind, place: str, fix: str) -> DataError:
    from graphprep.decoders.cells.faults import id_words

    return DataError(id_words("seed", code, found, 0, kind).message, place=place, fix=fix)


def _read_lines(storage: Storage, url: str, kind: IdKind) -> Iterator[SeedIds]:
    from graphprep.decoders.cells.faults import show
    from graphprep.decoders.cells.text import parse_ids

    is_json = _JSON.search(url.rpartition("/")[2].lower()) is not None
    for block in text_blocks(storage, Span(url)):
        buf = np.frombuffer(block.data, np.uint8)
        start, stop = _lines(buf)
        cells = _unquoted(buf, start, stop) if is_json else (buf, start, stop)
        ids, codes = parse_ids(kind, *cells, 0)
        place = places_of(block)
        for row in np.flatnonzero(codes)[:1].tolist():
            found = show(buf[start[row] : stop[row]].tobytes())
            raise _fault(int(codes[row]), found, kind, place(int(start[row])), _LINES)
        yield SeedIds(_batch(ids, kind), partial(_line_place, place, start))


def _line_place(place: Callable[[int], str], start: Ints, row: int) -> str:
    return place(int(start[row]))


def _lines(buf: NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return where every line begins and ends, without its line end; blank lines are left out."""
    ends = np.flatnonzero(buf == ord("\n"))
    if not ends.size or ends[-1] != buf.size - 1:
        ends = np.append(ends, buf.size)
    start = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1])
    stop = ends - ((ends > start) & (buf[np.maximum(ends - 1, 0)] == ord("\r")))
    words = np.concatenate([np.zeros(1, np.int64), np.cumsum((buf != ord(" ")) & (buf != ord("\t")))])
    kept = words[stop] > words[start]
    return start[kept], stop[kept]


def _unquoted(buf: NDArray[np.uint8], start: Ints, stop: Ints) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """Take JSON's quotes off the texts in lines; lines with escapes are written anew, behind the others."""
    quoted = (stop - start >= 2) & (buf[start] == ord('"')) & (buf[stop - 1] == ord('"'))
    start, stop = start + quoted, stop - quoted
    escapes = np.flatnonzero(buf == ord("\\"))
    rows = np.unique(np.searchsorted(start, escapes, side="right") - 1)
    texts, size = [buf], buf.size
    for row in rows[quoted[rows]].tolist():
        try:
            text = json.loads(b'"' + buf[start[row] : stop[row]].tobytes() + b'"').encode()
        except ValueError:
            continue  # it names no node as it is
        start[row], stop[row] = size, size + len(text)
        texts.append(np.frombuffer(text, np.uint8))
        size += len(text)
    return np.concatenate(texts), start, stop


def _read_array(storage: Storage, url: str, kind: IdKind) -> Iterator[SeedIds]:
    from graphprep.decoders.cells.arrays_files import find_array, read_rows

    source = find_array(storage, url)
    if source.dtype.kind not in "iu" or len(source.shape) not in (1, 2) or source.shape[1:] not in ((), (1,)):
        raise DataError(
            f"seeds must be one list of integers, found {source.dtype} {list(source.shape)}", place=source.place, fix=_LINES
        )
    first = 0
    with storage.open(url) as handle:
        for rows in read_rows(handle, source, 0, _MAX_ROWS):
            yield _from_integers(rows.reshape(-1), kind, partial(_row_place, display_url(url), first))
            first += len(rows)


def _row_place(url: str, first: int, row: int) -> str:
    return f"{url}: row {first + row}"


def _from_integers(values: NDArray[Any], kind: IdKind, place: Callable[[int], str]) -> SeedIds:
    """Take integers as IDs; for strings, their decimal digits."""
    from graphprep.kernels.cpu.text.numbers import NEGATIVE, OVERFLOW

    if kind == "string":
        digits = values.astype("S20")
        sizes = np.char.str_len(digits).astype(np.int64)
        cells = digits.view(np.uint8).reshape(values.size, 20)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return SeedIds(
            RawBatch(np.zeros(values.size, np.uint64), texts=(offsets, cells[np.arange(20) < sizes[:, None]])), place
        )
    bad = values < 0 if kind == "uint" else values > np.uint64(2**63 - 1) if values.dtype == np.uint64 else np.zeros(0, bool)
    if bad.any():
        row = int(np.argmax(bad))
        raise _fault(NEGATIVE if kind == "uint" else OVERFLOW, str(values[row]), kind, place(row), "write raw IDs of the type")
    bits = values.astype(np.int64 if kind == "int" else np.uint64).view(np.uint64)
    return SeedIds(RawBatch(bits, kind == "int"), place)


def _read_parquet(storage: Storage, url: str, kind: IdKind) -> Iterator[SeedIds]:
    import pyarrow.parquet as pq

    from graphprep.decoders.cells.arrow import ArrowCells, is_key, parquet_batches
    from graphprep.decoders.cells.faults import Wording, id_words
    from graphprep.model.errors import DecodeError

    def say(code: int, found: str) -> Wording:
        return Wording(id_words("seed", code, found, 0, kind).message, "write raw IDs of the type")

    first = 0
    with storage.open(url) as handle:
        file = pq.ParquetFile(handle)
        names = file.schema_arrow.names
        name = names[0] if len(names) == 1 else "id"
        if name not in names or not is_key(file.schema_arrow.field(name).type):
            found = ", ".join(f"{field.name} ({field.type})" for field in file.schema_arrow)
            raise DataError(f"no column of raw IDs among {found}", place=display_url(url), fix=_COLUMN)
        for batch in parquet_batches(handle, Span(url, "table"), _MAX_ROWS, [name]):
            cells = ArrowCells(batch, [name])
            ids = cells.ids(0, kind, 0, say)
            try:
                cells.faults.raise_first()
            except DecodeError as error:
                place = f"{_row_place(display_url(url), first, error.at)}, column {name!r}"
                raise DataError(error.message, place=place, fix=error.fix) from None
            yield SeedIds(_batch(ids, kind), partial(_row_place, display_url(url), first))
            first += batch.num_rows


def _batch(ids: NDArray[np.uint64] | RawTexts, kind: IdKind) -> RawBatch:
    if isinstance(ids, RawTexts):
        return RawBatch(np.zeros(ids.size, np.uint64), texts=(ids.offsets, ids.values))
    return RawBatch(ids, kind == "int")


# ---------------------------------------------------------------------------------------------------- looking up


def _look_up(held: list[SeedIds], index: RawIndex, number: int, what: str) -> Ints:
    """Return the typed IDs of seeds.

    Raises DataError for the first that is no node of the type.
    """
    first = held[0].ids
    typed = _find_numbers(held, index, number) if first.texts is None else _find_texts(held, index, number)
    missing = np.flatnonzero(typed < 0)
    if missing.size:
        row = int(missing[0])
        for seeds in held:
            if row < seeds.ids.size:
                raise DataError(
                    f"{what} {seeds.ids.words(row)} is no node of type {index.type_names[number]!r}",
                    place=seeds.place(row),
                    fix="correct the ID, or leave it out",
                )
            row -= seeds.ids.size
    return typed


def _find_numbers(held: list[SeedIds], index: RawIndex, number: int) -> Ints:
    """Return the typed ID of every seed, -1 where there is none, by one pass over the nodes in raw order."""
    bits = np.concatenate([seeds.ids.numbers for seeds in held])
    if index.raw_kinds[number] == "identity":
        found = bits.view(np.int64)
        return np.where(bits < np.uint64(index.num_nodes[number]), found, -1)
    wanted: NDArray[Any] = bits.view(np.int64) if held[0].ids.is_signed else bits
    order = np.argsort(wanted, kind="stable")
    ascending = wanted[order]
    typed = np.full(wanted.size, -1, np.int64)
    for batch, own in index.raw(number):
        ids: NDArray[Any] = batch.numbers.view(np.int64) if batch.is_signed else batch.numbers
        low, high = np.searchsorted(ascending, ids[0]), np.searchsorted(ascending, ids[-1], side="right")
        at = np.searchsorted(ids, ascending[low:high])
        typed[order[low:high]] = np.where(ids[at] == ascending[low:high], own[at], -1)
    return typed


def _find_texts(held: list[SeedIds], index: RawIndex, number: int) -> Ints:
    """Return the typed ID of every seed that is a text, -1 where there is none; texts are compared."""
    offsets, values = concat_texts([seeds.ids.texts for seeds in held if seeds.ids.texts is not None])
    order = sort_texts(offsets, values)
    offsets, values = take_texts(offsets, values, order)
    typed = np.full(order.size, -1, np.int64)
    low = 0
    for batch, own in index.raw(number):
        assert batch.texts is not None
        of_nodes, bytes_of_nodes = batch.texts
        high = count_up_to(offsets, values, bytes(bytes_of_nodes[of_nodes[-2] : of_nodes[-1]]))
        some = offsets[low : high + 1]
        at = find_texts(of_nodes, bytes_of_nodes, some, values)
        typed[order[low:high]] = np.where(at >= 0, own[at], -1)
        low = high
    return typed
