"""Part of ``validate``: raw IDs that are strings: UTF-8, order, uniqueness, and the partition that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.check import find_not_above, find_not_utf8
from graphprep.kernels.cpu.text.search import rank_texts
from graphprep.kernels.cpu.text.texts import concat_texts, hash_texts, repeats_of_sorted, sort_texts, take_texts
from graphprep.model.metadata import METADATA_NAME
from graphprep.model.rows import RawTexts
from graphprep.store.paths import NodePaths, node_folder
from graphprep.validate.faults import Faults, check_ranges
from graphprep.validate.files import CheckedArray, CheckedStore
from graphprep.validate.offsets import check_offsets

_ROWS = 1 << 17  # texts read at once: 1 MiB of offsets
_BYTES = 4 << 20  # of texts read at once, where one alone is not longer
_LEAST_BYTES = 1 << 16
_SHOWN = 40

TextSlice = tuple[int, RawTexts]


@dataclass(frozen=True)
class TextArrays:
    """A partition's raw IDs of a type, whose offsets are sound. ``path`` and a row is a text's place.

    With ``raw_order``, rows are counted along it, so that texts ascend; without, as they stand.
    """

    path: str
    offsets: CheckedArray
    values: CheckedArray
    raw_order: CheckedArray | None = None

    @classmethod
    def open(cls, store: CheckedStore, node_type: int, part: int, *, ascending: bool = False) -> TextArrays | None:
        """Open the files; None where one is faulty."""
        paths = NodePaths(node_folder(store.metadata.node_types[node_type]))
        offsets, values = store.array(part, paths.texts.offsets), store.array(part, paths.texts.values)
        if offsets is None or values is None:
            return None
        if not ascending or store.metadata.node_schemas[node_type].node_order is None:
            return cls(offsets.path, offsets, values)
        raw_order = store.array(part, paths.raw_order)
        return None if raw_order is None else cls(raw_order.path, offsets, values, raw_order)

    @property
    def size(self) -> int:
        """Return the number of texts."""
        return self.offsets.num_rows - 1

    def read(self, start: int, stop: int, most_bytes: int | None = None) -> Iterator[TextSlice]:
        """Yield (row of the first, texts) over rows [start, stop), of at most ``most_bytes`` or one text each.

        Ends at offsets that are not sound.
        """
        most_bytes = _BYTES if most_bytes is None else most_bytes
        if self.raw_order is not None:
            yield from self._read_along(self.raw_order, start, stop, most_bytes)
            return
        for low in range(start, stop, _ROWS):
            offsets = self.offsets.read(low, min(low + _ROWS, stop) + 1)
            if offsets[0] < 0 or offsets[-1] > self.values.num_rows or (np.diff(offsets) < 0).any():
                return
            at = 0
            while at < offsets.size - 1:
                end = int(np.searchsorted(offsets, offsets[at] + most_bytes, side="right")) - 1
                end = max(end, at + 1)
                values = self.values.read(
                    int(offsets[at]), int(offsets[end])
                ).copy()  # kernels are compiled for arrays to write
                yield low + at, RawTexts(offsets[at : end + 1] - offsets[at], values)
                at = end

    def _read_along(self, raw_order: CheckedArray, start: int, stop: int, most_bytes: int) -> Iterator[TextSlice]:
        for low in range(start, stop, _ROWS):
            rows = raw_order.read(low, min(low + _ROWS, stop))
            starts, stops = self.offsets.take(rows), self.offsets.take(rows + 1)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])
            at = 0
            while at < rows.size:
                end = max(int(np.searchsorted(ends, ends[at] + most_bytes, side="right")) - 1, at + 1)
                values = self.values.gather(starts[at:end], stops[at:end])
                yield low + at, RawTexts(ends[at : end + 1] - ends[at], values)
                at = end

    def text(self, row: int) -> bytes:
        """Return one text."""
        return next(self.read(row, row + 1))[1].tolist()[0]


def check_text_ids(store: CheckedStore, node_type: int, faults: Faults, *, window_bytes: int) -> None:
    """Check a node type's raw IDs: ascending in each partition, each once in the type, each where ``partition_by`` puts it."""
    metadata, before = store.metadata, faults.num
    if metadata.partition_by == "modulo" and metadata.num_parts > 1:
        place = f"{METADATA_NAME}: node_schema.{metadata.node_types[node_type]}.raw_ids"
        faults.add(place, "expected integers, as partition_by modulo places them, found string")
    opened = [TextArrays.open(store, node_type, part, ascending=True) for part in range(metadata.num_parts)]
    sound = [texts for texts in opened if texts is not None and check_offsets(texts.offsets, texts.values.num_rows, faults)]
    if len(sound) < len(opened) or faults.num > before:
        return
    for part, texts in enumerate(sound):
        _check_part(store, part, texts, faults)
    if faults.num > before:
        return  # too much is wrong to compare partitions
    if metadata.partition_by == "range":
        check_ranges(((one.path, one.text(0), one.text(one.size - 1)) for one in sound if one.size), _show, faults)
    elif metadata.num_parts > 1 and metadata.partition_by != "hash":
        _check_unique(sound, faults, window_bytes)


def hash_window(store: CheckedStore, node_type: int, part: int, start: int, stop: int) -> NDArray[np.uint64] | None:
    """Return h of a partition's raw IDs [start, stop); None where a file is faulty, or its offsets are."""
    texts = TextArrays.open(store, node_type, part)
    if texts is None:
        return None
    pieces = [hash_texts(piece.offsets, piece.values) for _, piece in texts.read(start, stop)]
    hashes = np.concatenate([np.empty(0, np.uint64), *pieces])
    return hashes if hashes.size == stop - start else None


def _show(text: bytes) -> str:
    shown = text[:_SHOWN].decode(errors="replace")
    return repr(shown + "…" if len(text) > _SHOWN else shown)


def _show_row(texts: RawTexts, row: int) -> str:
    return _show(texts.values[texts.offsets[row] : texts.offsets[row + 1]].tobytes())


def _check_part(store: CheckedStore, part: int, texts: TextArrays, faults: Faults) -> None:
    previous: RawTexts | None = None
    for start, piece in texts.read(0, texts.size):
        shown = partial(_show_row, piece)
        faults.add_rows(texts.path, find_not_utf8(piece.offsets, piece.values), start, "expected UTF-8, found {}", shown)
        _check_above(texts.path, start, piece, previous, faults)
        if store.metadata.partition_by == "hash":
            parts = hash_texts(piece.offsets, piece.values) % np.uint64(store.metadata.num_parts)
            words = "raw ID {} belongs to partition {} (partition_by hash), found in {}"
            faults.add_rows(texts.path, parts != part, start, words, shown, parts, part)
        previous = RawTexts.of(piece.tolist()[-1:])


def _check_above(path: str, start: int, texts: RawTexts, previous: RawTexts | None, faults: Faults) -> None:
    if previous is not None:
        texts = RawTexts(*concat_texts([(previous.offsets, previous.values), (texts.offsets, texts.values)]))
        start -= 1
    bad, words = find_not_above(texts.offsets, texts.values), "expected a raw ID above {}, the one before, found {}"
    faults.add_rows(path, bad, start, words, lambda i: _show_row(texts, i - 1), partial(_show_row, texts))


def _check_unique(parts: list[TextArrays], faults: Faults, window_bytes: int) -> None:
    """Merge the partitions' sorted texts piece by piece and look for one that stands in two of them."""
    most_bytes = min(max(window_bytes // (4 * len(parts)), _LEAST_BYTES), _BYTES)
    streams = [_MergeStream(texts, most_bytes) for texts in parts]
    while streams := [stream for stream in streams if stream.fill()]:
        limit = min(stream.last for stream in streams)
        taken = [stream.take(limit) for stream in streams]
        joined = concat_texts([(texts.offsets, texts.values) for _, _, texts in taken])
        order = sort_texts(*joined)
        repeated = order[repeats_of_sorted(*take_texts(*joined, order))]
        if repeated.size:
            held = RawTexts(*joined).tolist()
            for at in repeated.tolist():
                path, row = _place(taken, at)
                faults.add(f"{path}[{row}]", f"raw ID {_show(held[at])} stands in another partition too")


def _place(taken: list[tuple[str, int, RawTexts]], at: int) -> tuple[str, int]:
    """Return path and row of text ``at`` of those that were taken, one behind the other."""
    for path, start, texts in taken:
        if at < texts.size:
            return path, start + at
        at -= texts.size
    raise AssertionError(at)


class _MergeStream:
    """The texts of one partition that were read and not yet merged."""

    def __init__(self, arrays: TextArrays, most_bytes: int) -> None:
        self._path = arrays.path
        self._slices = arrays.read(0, arrays.size, most_bytes)
        self._start = 0
        self._texts = RawTexts.of([])

    @property
    def last(self) -> bytes:
        """Return the last text held."""
        return self._texts.values[self._texts.offsets[-2] : self._texts.offsets[-1]].tobytes()

    def fill(self) -> bool:
        """Read on if nothing is left; return whether there is something."""
        if not self._texts.size:
            self._start, self._texts = next(self._slices, (0, self._texts))
        return self._texts.size > 0

    def take(self, limit: bytes) -> tuple[str, int, RawTexts]:
        """Take the texts up to ``limit``: (path, row of the first, texts)."""
        bound, held = RawTexts.of([limit]), self._texts
        cut = int(rank_texts(held.offsets, held.values, bound.offsets, bound.values)[0])
        border = int(held.offsets[cut])
        start, self._start = self._start, self._start + cut
        self._texts = RawTexts(held.offsets[cut:] - border, held.values[border:])
        return self._path, start, RawTexts(held.offsets[: cut + 1], held.values[:border])
