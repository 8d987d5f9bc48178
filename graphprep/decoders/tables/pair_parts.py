"""Splits that name the edges of each part by their ends: pairs of raw IDs in arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.arrays_files import ArraySource, find_array, read_rows
from graphprep.decoders.cells.text import number_chunk
from graphprep.model.errors import DataError
from graphprep.model.graph_config import PairFile
from graphprep.model.protocols import InputStorage, Span, SpanReader, TextBlock
from graphprep.model.rows import ColumnKey, RawRows

MOST_PAIRS = 1 << 22  # of all parts: they stay in memory, 36 MiB of keys and parts, three times that while they are sorted
SPLIT = ColumnKey("split", "numbers", "int8")
_ROWS = 1 << 16
_NAMES = ("train", "valid", "test")


@dataclass(frozen=True)
class PairParts:
    """The parts of pairs: keys (uint64[k], ascending, source << 32 | destination), and the part of each (int8[k])."""

    keys: NDArray[np.uint64]
    parts: NDArray[np.int8]

    def find(self, src: NDArray[np.uint64], dst: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        """Return the rows of the pairs that are in a part, and their parts."""
        if not self.keys.size:
            return np.zeros(0, np.int64), self.parts
        keys = _pack(src, dst)
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        rows = np.flatnonzero(self.keys[at] == keys)
        return rows, self.parts[at[rows]]


def load_parts(storage: InputStorage, files: Sequence[PairFile | None]) -> PairParts:
    """Read the pairs of the train, valid and test parts; a file has the pairs whose label is not 0, where it has labels.

    Raises DataError for arrays that are no pairs of IDs below 2^32, and for a pair in two parts.
    """
    keys, parts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int8)]
    for part, file in enumerate(files):
        for found in () if file is None else _read(storage, file):
            keys.append(found)
            parts.append(np.full(found.size, part, np.int8))
    all_keys, all_parts = np.concatenate(keys), np.concatenate(parts)
    order = np.argsort(all_keys, kind="stable")
    all_keys, all_parts = all_keys[order], all_parts[order]
    is_same = all_keys[1:] == all_keys[:-1]
    clash = np.flatnonzero(is_same & (all_parts[1:] != all_parts[:-1]))
    if clash.size:
        _refuse(int(all_keys[clash[0]]), int(all_parts[clash[0]]), int(all_parts[clash[0] + 1]), files)
    kept = np.concatenate([np.ones(min(1, all_keys.size), bool), ~is_same])
    return PairParts(all_keys[kept], all_parts[kept])


def _refuse(key: int, one: int, other: int, files: Sequence[PairFile | None]) -> None:
    """Raise DataError for a pair in two parts."""
    file = files[other]
    raise DataError(
        f"the pair {key >> 32}, {key & 0xFFFFFFFF} is in two parts, {_NAMES[one]} and {_NAMES[other]}",
        place="" if file is None else file.place,
        fix="keep it in one of them",
    )


def pairs_in(storage: InputStorage, url: str) -> ArraySource | None:
    """Return an array of pairs, None where it has another shape. Raises DataError."""
    source = find_array(storage, url)
    return source if len(source.shape) == 2 and source.shape[1] == 2 and source.dtype.kind in "iu" else None


def _read(storage: InputStorage, file: PairFile) -> Iterator[NDArray[np.uint64]]:
    source = pairs_in(storage, file.pairs)
    labels = None if file.labels is None else find_array(storage, file.labels)
    if source is None or (labels is not None and labels.shape != source.shape[:1]):
        raise DataError("expected integers of shape [n, 2], and n labels", place=file.place, fix="write one pair a row")
    with storage.open(file.pairs) as handle:
        kept = None
        if labels is not None and file.labels is not None:
            with storage.open(file.labels) as beside:
                kept = np.concatenate([np.zeros(0, bool), *(rows != 0 for rows in read_rows(beside, labels, 0, _ROWS))])
        first = 0
        for rows in read_rows(handle, source, 0, _ROWS):
            if rows.size and (rows.min() < 0 or rows.max() >= 2**32):
                at = int(np.flatnonzero(((rows < 0) | (rows >= 2**32)).any(axis=1))[0])
                words = f"IDs of pairs must lie in 0..2^32 - 1, found {rows[at].tolist()}"
                raise DataError(words, place=f"{source.place}: row {first + at}", fix="correct the pair")
            own = rows if kept is None else rows[kept[first : first + len(rows)]]
            yield _pack(own[:, 0].astype(np.uint64), own[:, 1].astype(np.uint64))
            first += len(rows)


def _pack(src: NDArray[np.uint64], dst: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return (src << np.uint64(32)) | dst


@dataclass(frozen=True)
class PartsReader:
    """Adds the column ``split`` to the edges that another reader reads. Raises what that raises."""

    reader: SpanReader
    parts: PairParts

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines."""
        return self._split(self.reader.decode(block, places))

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows in batches of at most ``max_rows``."""
        return map(self._split, self.reader.read(handle, span, max_rows, places))

    def _split(self, rows: RawRows) -> RawRows:
        edges = rows.edges
        if edges is None:
            return rows
        assert isinstance(edges.src, np.ndarray) and isinstance(edges.dst, np.ndarray)
        chunk = number_chunk(SPLIT, *self.parts.find(edges.src, edges.dst))
        return dataclasses.replace(rows, edges=dataclasses.replace(edges, columns=(*edges.columns, chunk)))


__all__ = ["MOST_PAIRS", "SPLIT", "PairParts", "PartsReader", "load_parts", "pairs_in"]
