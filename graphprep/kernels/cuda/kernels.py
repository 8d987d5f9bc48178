"""The edge engine's kernels on a CUDA device, over arrays of the host: see ``graphprep.kernels.edges``.

A call copies its input to the device, computes there and copies the result back, in a room of its own, so that a few threads
overlap copies with each other's work. What does not fit is halved: edges, buckets and rows by their positions, keys by the
highest bit in which they differ. To the CPU goes a row that does not fit by itself, and a few items that find no room.

On the CPU stays what touches every byte once, or less often than the link to the device would carry it: ``find_limits``,
``has_repeats``, ``start_buckets``, ``count_rows``, ``unpack_edges``, ``gather_edges``, ``copy_blocks``, ``count_blocks`` and
``scatter_blocks``; ``first_of_runs``, ``gather_bucket`` and ``scatter_keys``, which prepare for or look through what is in the
cache; what looks up IDs in a table that each call would carry along, for a share of the rows (``invert``, ``relabel_ids``,
``fill_lengths``, ``relabel_rows``); and generating, of which docs/generate.md defines every bit with float64: compilers for
devices contract a product and a sum into one operation, which rounds differently.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cuda import elements
from graphprep.kernels.cuda import rows as row_kernels
from graphprep.kernels.cuda.frontend import IS_SIMULATED, blocks_for, launch
from graphprep.kernels.cuda.radix import sort_pairs
from graphprep.kernels.cuda.slots import NoRoomError, Room, Slots
from graphprep.kernels.edges import (
    WORD_BITS,
    Ids,
    Ints,
    Kernels,
    Packing,
    Records,
    Relabeling,
    Rows,
    ScatteredKeys,
    Segments,
    as_input,
    bits_below,
)
from graphprep.model.buffers import hold_buffers

_MOST_ITEMS = 2**32 - 1  # of a call: positions are uint32
_FEW_ITEMS = 2 if IS_SIMULATED else 1 << 13  # so many less are not halved any more: the CPU is done before
_STEP = 5 if IS_SIMULATED else 1 << 20  # items that are moved at a time
_ROW_ALONE = "a row does not fit by itself"
_FEW = "there is no room for a few items"
_FEW_PER_COUNT = 8  # counts that come back from the device for each ID that goes there: more, and the CPU is done before


class CudaKernels:
    """The kernels of one device. Those that are not here are the CPU's."""

    def __init__(self, slots: Slots, cpu: Kernels) -> None:
        self._slots = slots
        self._cpu = cpu

    def __getattr__(self, name: str) -> Any:
        """Return a kernel of the CPU."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._cpu, name)

    @contextlib.contextmanager
    def _room(self, name: str, num_items: int) -> Iterator[Room]:
        """Yield a room for a call of a kernel. Raises NoRoomError where so many items have none."""
        try:
            if num_items > _MOST_ITEMS:
                raise NoRoomError
            with self._slots.room() as room:
                yield room
        except NoRoomError:
            self._slots.tally.note(f"{name} too large at once")
            raise
        self._slots.tally.note(name)

    def _left(self, name: str, why: str) -> Kernels:
        """Return the CPU's kernels for a call that cannot be halved."""
        self._slots.tally.note(f"{name} left to the CPU ({why})")
        return self._cpu

    # ---- count

    def count_ids(self, ids: Ids, counts: NDArray[Any]) -> int:
        """See ``Kernels.count_ids``."""
        if ids.size * _FEW_PER_COUNT < counts.size or not ids.size:
            return self._cpu.count_ids(ids, counts)
        try:
            with self._room("count_ids", 0) as room:
                return _count_ids(room, ids, counts)
        except NoRoomError:
            half = _half_of(ids.size)
            if half * _FEW_PER_COUNT < counts.size:
                return self._left("count_ids", _FEW).count_ids(ids, counts)
            before, fault = counts.copy(), self.count_ids(ids[:half], counts)
            if fault < 0:
                with _restoring(counts, before):
                    fault = self.count_ids(ids[half:], counts)
                fault += half * (fault >= 0)
            return fault

    def order_descending(self, values: Ints, order: Ints, spare: Ints) -> Ints:
        """See ``Kernels.order_descending``."""
        if values.size:
            try:
                with self._room("order_descending", values.size) as room:
                    _order_descending(room, values, order)
            except NoRoomError:
                for start in range(0, order.size, _STEP):
                    order[start : start + _STEP] = np.arange(start, min(start + _STEP, order.size))
                np.subtract(values.max(), values, out=spare)
                self._sort_apart("order_descending", spare.view(np.uint64), order)
        return order

    # ---- scatter

    def scatter_edges(
        self,
        rows: Ids,
        others: Ids,
        packing: Packing,
        shift: int,
        starts: NDArray[np.uint32],
        records: Records,
        first: int,
        ids: Ids | None = None,
        more: Records | None = None,
    ) -> None:
        """See ``Kernels.scatter_edges``."""
        num_edges = rows.size
        try:
            with self._room("scatter_edges", num_edges) as room:
                ends = _upload_ends(room, rows, others)
                their_ids = None if ids is None else room.upload("ids", ids.astype(np.uint64, copy=False))
                _scatter(room, *ends, their_ids, more, packing, shift, starts, records, first)
        except NoRoomError:
            half = _half_of(num_edges)
            if not half:
                cpu = self._left("scatter_edges", _FEW)
                cpu.scatter_edges(rows, others, packing, shift, starts, records, first, ids, more)
                return
            with _restoring(starts, starts.copy()):
                for at in (slice(0, half), slice(half, num_edges)):
                    some = (None if ids is None else ids[at], None if more is None else more[at])
                    self.scatter_edges(rows[at], others[at], packing, shift, starts, records, first + at.start, *some)

    def scatter_entries(
        self,
        indptr: Ints,
        columns: Ids,
        first: int,
        packing: Packing,
        shift: int,
        starts: NDArray[np.uint32],
        records: Records,
        ids: Ids | None = None,
    ) -> None:
        """See ``Kernels.scatter_entries``."""
        num_entries = columns.size
        if not num_entries:
            return
        try:
            with self._room("scatter_entries", num_entries) as room:
                there_columns = room.upload("rows", columns.astype(np.uint64, copy=False))
                their_ids = None if ids is None else room.upload("ids", ids.astype(np.uint64, copy=False))
                owners = _owners_of(room, indptr, first, num_entries)
                _scatter(room, there_columns, owners, their_ids, None, packing, shift, starts, records, 0)
        except NoRoomError:
            half = _half_of(num_entries)
            if not half:
                cpu = self._left("scatter_entries", _FEW)
                cpu.scatter_entries(indptr, columns, first, packing, shift, starts, records, ids)
                return
            if ids is None:
                ids = as_input(np.arange(num_entries, dtype=np.int64))
            with _restoring(starts, starts.copy()):
                for at in (slice(0, half), slice(half, num_entries)):
                    where = (packing, shift, starts, records)
                    self.scatter_entries(indptr, columns[at], first + at.start, *where, ids[at])

    # ---- sort and place

    def sort_records(self, records: Records, word: int, low: int, high: int) -> Records:
        """See ``Kernels.sort_records``."""
        if len(records) < 2 or high <= low:
            return records
        try:
            with self._room("sort_records", len(records)) as room:
                _sort_records(room, records, word, low, high)
            return records
        except NoRoomError:
            order = np.arange(len(records), dtype=np.uint32 if len(records) <= _MOST_ITEMS else np.int64)
            above = np.uint64(WORD_BITS - high)
            self._sort_apart("sort_records", records[:, word] << above >> above + np.uint64(low), order)
            return records[order]

    def place_edges(
        self,
        segments: Segments,
        first: int,
        stop: int,
        rows: Rows,
        *,
        most: int,
        most_ids: int,
        at: int = 0,
        low: int = 0,
        sort_bits: int | None = None,
        arrival: Ints | None = None,
        position: Ints | None = None,
    ) -> None:
        """See ``Kernels.place_edges``."""
        sizes = segments.sizes(first, stop)
        options: dict[str, Any] = {"most_ids": most_ids, "sort_bits": sort_bits}
        try:
            with self._room("place_edges", int(sizes.sum())) as room:
                _place(room, segments, first, stop, rows, at=at, low=low, arrival=arrival, position=position, **options)
            return
        except NoRoomError:
            pass
        num_rows = rows.indptr.size - 1
        is_row = stop - first == 1 and num_rows <= 1
        if is_row or not _half_of(int(sizes.sum())):
            self._left("place_edges", _ROW_ALONE if is_row else _FEW).place_edges(
                segments, first, stop, rows, most=most, at=at, low=low, arrival=arrival, position=position, **options
            )
            return
        parts = _halve_buckets if stop - first > 1 else _halve_rows
        for some, its_first, its_stop, its_rows, its_low, chosen in parts(segments, first, stop, low, num_rows):
            its_sizes = some.sizes(its_first, its_stop)
            count = int(its_sizes.sum())
            noted = [None if array is None else np.empty(count, np.int64) for array in (arrival, position)]
            self.place_edges(
                some,
                its_first,
                its_stop,
                Rows(rows.indptr[its_rows.start : its_rows.stop + 1], rows.indices, rows.edge_ids),
                most=int(its_sizes.max(initial=0)),
                at=at,
                low=its_low,
                arrival=noted[0],
                position=noted[1],
                **options,
            )
            for array, found in zip((arrival, position), noted, strict=True):
                if array is not None:
                    array[chosen] = found
            at += count

    # ---- sort keys

    def sort_buckets(
        self, scattered: ScatteredKeys, buckets: Sequence[int], offsets: Ints, keys: NDArray[np.uint64], payload: Ids
    ) -> None:
        """See ``Kernels.sort_buckets``."""
        for run in _runs_of(buckets):
            at = slice(int(offsets[run[0]]), int(offsets[run[-1] + 1]))
            for bucket in run:
                some = slice(int(offsets[bucket]), int(offsets[bucket + 1]))
                self._cpu.gather_bucket(scattered, bucket, keys[some], payload[some])
            self._sort_apart("sort_buckets", keys[at], payload[at])
            keys[at] += np.uint64(scattered.low)

    def _sort_apart(self, name: str, keys: NDArray[np.uint64], payload: Ids) -> None:
        """Sort keys where they lie, and let the payload, if there is one, go along; what does not fit is cut in two.

        The cut is at the highest bit in which keys differ. What lies in buckets is not moved until a cut is within one.
        """
        if keys.size < 2:
            return
        try:
            with self._room(name, keys.size) as room:
                _sort_keys(room, keys, payload)
        except NoRoomError:
            low, high = int(keys.min()), int(keys.max())
            if low == high:
                return
            arrays = [array for array in (keys, payload) if array.size]
            if not _half_of(keys.size):
                self._left(name, _FEW)
                order = np.argsort(keys, kind="stable")
                for array in arrays:
                    array[:] = array[order]
                return
            bit = (low ^ high).bit_length() - 1
            is_high = keys >= np.uint64(high >> bit << bit)
            cut = keys.size - int(np.count_nonzero(is_high))
            if is_high[:cut].any():
                for array in arrays:
                    _part(array, is_high, cut)
            for some in (slice(0, cut), slice(cut, keys.size)):
                self._sort_apart(name, keys[some], payload[some])

    # ---- relabel, gather

    def relabel_sorted_rows(self, old: Relabeling, runs: Ints, num_others: int, num_ids: int, new: Rows) -> None:
        """See ``Kernels.relabel_sorted_rows``. The CPU gathers and relabels, for the table of IDs is there; a device sorts."""
        for first, stop in runs.tolist():
            self._cpu.relabel_rows(old, first, stop, new)
        first, stop = int(runs[0, 0]), int(runs[-1, 1])
        if not (runs[1:, 0] == runs[:-1, 1]).all() or not self._sort_rows_of(new, first, stop, num_others):
            self._cpu.relabel_sorted_rows(old, runs, num_others, num_ids, new)

    def _sort_rows_of(self, new: Rows, first: int, stop: int, num_others: int) -> bool:
        """Sort the neighbours of rows [first, stop), and let edge IDs go along. Returns whether that went well."""
        at = slice(int(new.indptr[first]), int(new.indptr[stop]))
        bounds = new.indptr[first : stop + 1] - at.start
        try:
            with self._room("relabel_sorted_rows", max(at.stop - at.start, stop - first)) as room:
                ids = new.edge_ids[at] if new.edge_ids.size else None
                _sort_rows(room, new.indices[at], bounds, num_others, ids=ids)
            return True
        except NoRoomError:
            if stop - first < 2 or not _half_of(at.stop - at.start):
                self._left("relabel_sorted_rows", _ROW_ALONE if stop - first < 2 else _FEW)
                return False
            middle = (first + stop) // 2
            return self._sort_rows_of(new, first, middle, num_others) and self._sort_rows_of(new, middle, stop, num_others)

    def sort_rows(self, values: Ids, bounds: Ints, inner: Ids, spare_values: Ids, spare_inner: Ids) -> None:
        """See ``Kernels.sort_rows``."""
        num_rows = bounds.size - 1
        num_others = int(values.max(initial=0)) + 1
        try:
            with self._room("sort_rows", max(values.size, num_rows)) as room:
                _sort_rows(room, values, bounds, num_others, inner=inner)
            return
        except NoRoomError:
            pass
        if num_rows < 2 or not _half_of(values.size):
            cpu = self._left("sort_rows", _ROW_ALONE if num_rows < 2 else _FEW)
            cpu.sort_rows(values, bounds, inner, spare_values, spare_inner)
            return
        with _restoring(values, values.copy()):
            for some in (bounds[: num_rows // 2 + 1], bounds[num_rows // 2 :]):
                at = slice(int(some[0]), int(some[-1]))
                self.sort_rows(values[at], some - some[0], inner[at], spare_values, spare_inner)


@contextlib.contextmanager
def _restoring(array: NDArray[Any], before: NDArray[Any]) -> Iterator[None]:
    """Let an array be as it was where the device fails in the second half: then the whole call is made again elsewhere."""
    try:
        yield
    except BaseException:
        array[:] = before
        raise


def _part(array: NDArray[Any], is_last: NDArray[np.bool_], cut: int) -> None:
    """Put what is to come last behind the ``cut`` items that are not; both keep their order, and only the last are copied."""
    last, at = array[is_last], 0
    for start in range(0, array.size, _STEP):
        some = array[start : start + _STEP]
        first = some[~is_last[start : start + _STEP]]
        array[at : at + first.size] = first
        at += first.size
    array[cut:] = last


def _half_of(num_items: int) -> int:
    """Return how many items are half of some that do not fit; 0: so few are left to the CPU."""
    return num_items // 2 if num_items >= _FEW_ITEMS else 0


def _as_unsigned(array: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of IDs, which are not negative, as the unsigned integers that kernels take."""
    return array.view(np.uint32 if array.itemsize == 4 else np.uint64)


def _upload_ends(room: Room, rows: Ids, others: Ids) -> tuple[Any, Any]:
    if rows.itemsize != others.itemsize:
        rows, others = rows.astype(np.uint64), others.astype(np.uint64)
    return room.upload("rows", _as_unsigned(rows)), room.upload("others", _as_unsigned(others))


def _owners_of(room: Room, indptr: Ints, first: int, num_entries: int) -> Any:
    """Return the row of each entry from ``first`` on: uint64[num_entries], on the device."""
    low = int(np.searchsorted(indptr, first, "right")) - 1
    high = int(np.searchsorted(indptr, first + num_entries, "left"))
    borders = np.clip(indptr[low : high + 1], first, first + num_entries) - first
    there = room.upload("borders", borders)
    owners = room.take("owners", num_entries, np.uint64)
    launch(row_kernels.expand_rows, blocks_for(num_entries), room.stream, there, owners)
    launch(elements.add, blocks_for(num_entries), room.stream, owners, low)
    return owners


def _find_starts(room: Room, keys: Any, shift: int, num_rows: int) -> Any:
    """Return where each row of sorted keys begins, and where the last ends: int64[num_rows + 1], on the device."""
    indptr = room.take("indptr", num_rows + 1, np.int64)
    launch(row_kernels.fill_value, blocks_for(indptr.size), room.stream, indptr, -1)
    launch(row_kernels.find_starts, blocks_for(keys.size + 1), room.stream, keys, shift, indptr)
    launch(row_kernels.fill_gaps, blocks_for(indptr.size), room.stream, keys, shift, indptr)
    return indptr


def _count_up(room: Room, size: int) -> Any:
    order = room.take("order", size, np.uint32)
    launch(row_kernels.count_up, blocks_for(size), room.stream, order)
    return order


def _count_ids(room: Room, ids: Ids, counts: NDArray[Any]) -> int:
    blocks = blocks_for(ids.size)
    there, firsts, host = room.upload("ids", ids), room.take("firsts", blocks, np.int64), np.empty(blocks, np.int64)
    launch(row_kernels.find_outside, blocks, room.stream, there, counts.size, firsts)
    room.download(firsts, host)
    room.finish()
    fault = int(host.min())
    size = fault if fault < ids.size else ids.size
    if size:
        keys = there.view(np.uint32 if ids.itemsize == 4 else np.uint64)[:size]
        keys, _ = sort_pairs(room, keys, room.none(np.uint8), (0, bits_below(counts.size)))
        indptr = _find_starts(room, keys, 0, counts.size)
        lengths, host = room.take("lengths", counts.size, np.int64), np.empty(counts.size, np.int64)
        launch(row_kernels.count_rows, blocks_for(counts.size), room.stream, indptr, lengths)
        room.download(lengths, host)
        room.finish()
        np.add(counts, host, out=counts, casting="unsafe")
    return -1 if size == ids.size else fault


def _order_descending(room: Room, values: Ints, order: Ints) -> None:
    highest = int(values.max())
    there = room.upload("values", values)
    keys = room.take("keys", values.size, np.uint32 if highest < 2**32 else np.uint64)
    launch(elements.descending_keys, blocks_for(keys.size), room.stream, there, highest, keys)
    _, there = sort_pairs(room, keys, _count_up(room, keys.size), (0, highest.bit_length()))
    room.download(there, order)
    room.finish()


def _scatter(
    room: Room,
    rows: Any,
    others: Any,
    ids: Any,
    more: Records | None,
    packing: Packing,
    shift: int,
    starts: NDArray[np.uint32],
    records: Records,
    first: int,
) -> None:
    """Pack edges whose ends and IDs lie on the device, sort them by bucket, and write each bucket's where it begins."""
    size, num_buckets = rows.size, starts.size - 2
    if not size:
        return
    blocks, bucket_bits = blocks_for(size), bits_below(num_buckets)
    words = room.take("words", size, np.uint64)
    none = room.none(np.uint64)
    bits = (packing.other_bits, packing.id_bits)
    launch(elements.pack_edges, blocks, room.stream, rows, others, none if ids is None else ids, first, *bits, words)
    row_at = packing.other_bits + packing.id_bits
    order = None
    if packing.words == 1 and shift + bucket_bits <= packing.row_bits:
        words, _ = sort_pairs(room, words, room.none(np.uint8), (row_at + shift, row_at + shift + bucket_bits))
        indptr = _find_starts(room, words, row_at + shift, num_buckets)
    else:
        buckets = room.take("buckets", size, np.uint32)
        launch(elements.shift_keys, blocks, room.stream, rows, shift, buckets)
        buckets, order = sort_pairs(room, buckets, _count_up(room, size), (0, bucket_bits))
        indptr = _find_starts(room, buckets, 0, num_buckets)
        sorted_words = room.take("sorted words", size, np.uint64)
        launch(elements.gather, blocks, room.stream, words, order, sorted_words)
        words = sorted_words
    borders, heads = np.empty(num_buckets + 1, np.int64), np.empty(size, np.uint64)
    room.download(indptr, borders)
    room.download(words, heads)
    columns = [heads]
    if packing.words > 1 and packing.id_bits == 0:
        if ids is None:
            ids = room.take("counted", size, np.uint64)
            launch(row_kernels.count_up, blocks, room.stream, ids)
            launch(elements.add, blocks, room.stream, ids, first)
        columns.append(_gathered(room, ids, order, "sorted ids"))
    for k in range(0 if more is None else more.shape[1]):
        assert more is not None
        column = room.upload(f"more {k}", np.ascontiguousarray(more[:, k]))
        columns.append(_gathered(room, column, order, f"sorted more {k}"))
    room.finish()
    _write_buckets(columns, borders, starts, records)


def _gathered(room: Room, values: Any, order: Any, name: str) -> NDArray[np.uint64]:
    """Return values in an order, on the host once the room finishes."""
    there, here = room.take(name, values.size, np.uint64), np.empty(values.size, np.uint64)
    launch(elements.gather, blocks_for(values.size), room.stream, values, order, there)
    room.download(there, here)
    return here


def _write_buckets(columns: list[NDArray[np.uint64]], borders: Ints, starts: NDArray[np.uint32], records: Records) -> None:
    """Write the words of each bucket from where it begins on, and move that to its end."""
    sizes, begins = np.diff(borders), starts[1:-1].astype(np.int64)
    filled = np.flatnonzero(sizes)
    runs = np.flatnonzero(np.append(True, begins[filled[1:]] != begins[filled[:-1]] + sizes[filled[:-1]]))
    for first, stop in zip(runs, np.append(runs[1:], filled.size), strict=True):
        low, high = borders[filled[first]], borders[filled[stop - 1] + 1]
        to = begins[filled[first]]
        for word, column in enumerate(columns):
            records[to : to + high - low, word] = column[low:high]
    starts[1:-1] += sizes.astype(np.uint32)


def _sort_records(room: Room, records: Records, word: int, low: int, high: int) -> None:
    size, num_words = records.shape
    there = room.upload("records", records)
    if num_words == 1:
        there, _ = sort_pairs(room, there, room.none(np.uint8), (low, high))
    else:
        keys = room.take("keys", size, np.uint64)
        launch(elements.take_column, blocks_for(size), room.stream, there, num_words, word, keys)
        _, order = sort_pairs(room, keys, _count_up(room, size), (low, high))
        moved = room.take("moved", records.size, np.uint64)
        launch(elements.gather_words, blocks_for(records.size), room.stream, there, num_words, order, moved)
        there = moved
    room.download(there, records)
    room.finish()


def _runs_of(buckets: Sequence[int]) -> list[list[int]]:
    """Return buckets that follow each other together: sorting them at once leaves each where it is."""
    runs: list[list[int]] = []
    for bucket in buckets:
        if runs and runs[-1][-1] + 1 == bucket:
            runs[-1].append(bucket)
        else:
            runs.append([bucket])
    return runs


def _sort_keys(room: Room, keys: NDArray[np.uint64], payload: Ids) -> None:
    """Sort keys, and let the payload go along; high bits that all of them share are not looked at."""
    bits = (int(keys.min()) ^ int(keys.max())).bit_length()
    there = room.upload("keys", keys)
    along = room.upload("along", _as_unsigned(payload)) if payload.size else room.none(np.uint8)
    there, along = sort_pairs(room, there, along, (0, bits))
    room.download(there, keys)
    room.download(along, payload)
    room.finish()


def _pieces_of(segments: Segments, first: int, stop: int) -> tuple[list[NDArray[np.uint64]], Ints, int]:
    """Return the words of buckets [first, stop), the pieces that they are in as kernels take them, and how many records."""
    borders = segments.starts[:, first : stop + 1].astype(np.int64)
    sizes = np.diff(borders, axis=1)
    words = segments.packings[:, 2]
    spans = (borders[:, -1] - borders[:, 0]) * words
    arrays = []
    for k in np.flatnonzero(spans):
        buffer = segments.buffers.arrays[segments.numbers[k]]
        assert buffer is not None
        begin = int(segments.offsets[k] + borders[k, 0] * words[k])
        arrays.append(buffer.reshape(-1)[begin : begin + int(spans[k])])
    bucket, k = np.nonzero(sizes.T)  # bucket after bucket, in a bucket segment after segment
    counts = sizes[k, bucket]
    other_bits, id_bits = segments.packings[k, 0], segments.packings[k, 1]
    row_bits = np.minimum(segments.shift, WORD_BITS - other_bits - id_bits)
    pieces = np.stack(
        [
            np.cumsum(counts) - counts,
            (np.cumsum(spans) - spans)[k] + (borders[k, bucket] - borders[k, 0]) * words[k],
            bucket << segments.shift,
            segments.bases[k],
            other_bits,
            id_bits,
            (np.int64(1) << row_bits) - 1,
            words[k],
        ]
    )
    return arrays, pieces.astype(np.int64), int(counts.sum())


def _place(
    room: Room,
    segments: Segments,
    first: int,
    stop: int,
    rows: Rows,
    *,
    at: int,
    low: int,
    most_ids: int,
    sort_bits: int | None,
    arrival: Ints | None,
    position: Ints | None,
) -> None:
    arrays, pieces, size = _pieces_of(segments, first, stop)
    num_rows = rows.indptr.size - 1
    if not size:
        rows.indptr[1:] = at
        return
    has_ids = rows.edge_ids.size > 0 or arrival is not None
    other_bits, row_bits = int(segments.packings[:, 0].max(initial=1)), bits_below(num_rows)
    id_bits = max(1, bits_below(most_ids)) if has_ids else 0
    if row_bits + other_bits > WORD_BITS:
        raise NoRoomError(f"rows of {row_bits} bits beside other ends of {other_bits}")
    is_apart = row_bits + other_bits + id_bits > WORD_BITS
    id_bits = 0 if is_apart else id_bits
    blocks = blocks_for(size)
    words = room.take("words", size, np.uint64)
    apart = room.take("apart", size if is_apart else 0, np.uint64)
    there = room.upload("pieces", pieces), room.upload("records", *arrays)
    launch(elements.gather_records, blocks, room.stream, *there, low, other_bits, id_bits, words, apart)
    if arrival is not None:
        room.download(apart if is_apart else _ids_of(room, words, other_bits, id_bits, np.uint64, "arrival"), arrival)
    order = _count_up(room, size) if is_apart or position is not None else room.none(np.uint8)
    row_at = id_bits + other_bits
    by_other = (id_bits, id_bits + min(sort_bits or 0, other_bits))
    by_row = (row_at, row_at + row_bits)
    ranges = [(by_other[0], by_row[1])] if by_other[1] == by_row[0] else [by_other, by_row]
    words, order = sort_pairs(room, words, order, *ranges)
    starts, at_slice = np.empty(num_rows + 1, np.int64), slice(at, at + size)
    room.download(_find_starts(room, words, row_at, num_rows), starts)
    others, unsigned = rows.indices[at_slice], np.uint32 if rows.indices.itemsize == 4 else np.uint64
    found, none = room.take("found", size, unsigned), room.none(unsigned)
    launch(elements.unpack_words, blocks, room.stream, words, other_bits, id_bits, none, found, room.none(np.uint32))
    room.download(found, others)
    if rows.edge_ids.size:
        if is_apart:
            ids = room.take("ids", size, np.uint64)
            launch(elements.gather, blocks, room.stream, apart, order, ids)
        else:
            ids = _ids_of(room, words, other_bits, id_bits, np.uint32 if rows.edge_ids.itemsize == 4 else np.uint64, "ids")
        room.download(ids, rows.edge_ids[at_slice])
    if position is not None:
        places = room.take("places", size, np.uint64)
        launch(elements.invert, blocks, room.stream, order, places)
        room.download(places, position)
    room.finish()
    rows.indptr[1:] = starts[1:] + at
    if position is not None:
        position += at


def _ids_of(room: Room, words: Any, other_bits: int, id_bits: int, dtype: Any, name: str) -> Any:
    ids, none = room.take(name, words.size, dtype), room.none(np.uint32)
    launch(elements.unpack_words, blocks_for(words.size), room.stream, words, other_bits, id_bits, none, none, ids)
    return ids


def _halve_buckets(segments: Segments, first: int, stop: int, low: int, num_rows: int) -> Any:
    """Yield the parts of a task in which half the buckets are, and which of its records these are."""
    middle, width, done = (first + stop) // 2, 1 << segments.shift, 0
    for begin, end in ((first, middle), (middle, stop)):
        size = int(segments.sizes(begin, end).sum())
        its_rows = slice(min((begin - first) * width, num_rows), min((end - first) * width, num_rows))
        yield segments, begin, end, its_rows, low, slice(done, done + size)
        done += size


def _halve_rows(segments: Segments, first: int, stop: int, low: int, num_rows: int) -> Any:
    """Yield the parts of a bucket in which half the rows are, and which of its records these are."""
    arrays, kept, middle = [], [], num_rows // 2
    for k in range(segments.numbers.size):
        begin, end = (int(border) for border in segments.starts[k, first : first + 2])
        other_bits, id_bits, words = segments.packings[k].tolist()
        buffer = segments.buffers.arrays[segments.numbers[k]] if end > begin else np.zeros(0, np.uint64)
        assert buffer is not None
        at = int(segments.offsets[k])
        its = buffer.reshape(-1)[at + begin * words : at + end * words].reshape(-1, words)
        mask = (1 << min(segments.shift, WORD_BITS - other_bits - id_bits)) - 1
        arrays.append(its)
        kept.append((its[:, 0] >> np.uint64(other_bits + id_bits) & np.uint64(mask)).astype(np.int64) < low + middle)
    for is_low, its_rows in ((True, slice(0, middle)), (False, slice(middle, num_rows))):
        chosen = [mask == is_low for mask in kept]
        buffers = hold_buffers(np.ascontiguousarray(its[mask]) for its, mask in zip(arrays, chosen, strict=True))
        starts = np.array([[0, int(mask.sum())] for mask in chosen], np.int64).reshape(-1, 2)
        numbers = np.arange(len(arrays), dtype=np.int64)
        part = replace(segments, buffers=buffers, numbers=numbers, offsets=numbers * 0, starts=starts)
        yield part, 0, 1, its_rows, low + its_rows.start, np.concatenate([np.zeros(0, np.bool_), *chosen])


def _sort_rows(
    room: Room, values: Ids, bounds: Ints, num_others: int, *, inner: Ids | None = None, ids: Ids | None = None
) -> None:
    """Sort the values of every row where they lie; tell where each stood in its row, or let IDs go along."""
    size, num_rows = values.size, bounds.size - 1
    if not size:
        return
    blocks, value_bits = blocks_for(size), bits_below(num_others)
    if value_bits + bits_below(num_rows) > WORD_BITS:
        raise NoRoomError(f"rows of {bits_below(num_rows)} bits beside values of {value_bits}")
    there = room.upload("values", _as_unsigned(values))
    unsigned = there.dtype
    its_bounds = room.upload("bounds", bounds)
    owners = room.take("owners", size, unsigned)
    launch(row_kernels.expand_rows, blocks, room.stream, its_bounds, owners)
    words, order = room.take("words", size, np.uint64), _count_up(room, size)
    launch(elements.pack_edges, blocks, room.stream, owners, there, room.none(unsigned), 0, value_bits, 0, words)
    words, order = sort_pairs(room, words, order, (0, value_bits + bits_below(num_rows)))
    launch(elements.unpack_words, blocks, room.stream, words, value_bits, 0, room.none(unsigned), there, room.none(np.uint32))
    room.download(there, values)
    if inner is not None:
        found = room.take("inner", size, np.uint32 if inner.itemsize == 4 else np.uint64)
        launch(elements.find_inner, blocks, room.stream, order, words, value_bits, its_bounds, found)
        room.download(found, inner)
    if ids is not None:
        old_ids = room.upload("ids", _as_unsigned(ids))
        found = room.take("found", size, old_ids.dtype)
        launch(elements.gather, blocks, room.stream, old_ids, order, found)
        room.download(found, ids)
    room.finish()


def make_kernels(slots: Slots, cpu: Kernels) -> Kernels:
    """Return the kernels of a device; the rest of them are the CPU's."""
    make: Callable[[Slots, Kernels], Any] = CudaKernels
    kernels: Kernels = make(slots, cpu)
    return kernels
