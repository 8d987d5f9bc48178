"""Reading a store: metadata, manifests and arrays, each checked against what names it."""

from __future__ import annotations

import contextlib
import math
import os
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.model.errors import DataError, StorageError
from graphprep.model.metadata import (
    MANIFEST_NAME,
    METADATA_NAME,
    RECORD_NAME,
    STORE_FORMAT,
    ArrayEntry,
    GraphMetadata,
    Manifest,
)
from graphprep.model.schema import parse_edge_type
from graphprep.storage.drivers import protocol_of
from graphprep.storage.faults import display_url, lost_file, plain_words
from graphprep.storage.read.maps import map_file
from graphprep.storage.read.npy import MAX_HEADER_BYTES, parse_npy_header
from graphprep.storage.read.urls import STDIN, Storage

_HEADER_BYTES = 128  # what the headers of ordinary arrays take
_BLOCK_BYTES = 1 << 16  # of a remote array, about what a request costs anyway
_BATCH_BLOCKS = 128  # held at a time: 8 MiB
_MOST_JOINED = 16  # neighbouring blocks that one request brings
_CACHE_BYTES = 16 << 20
_BATCH_ROWS = 1 << 18  # gathered at a time: their positions take 8 MiB
_SCAN_BYTES = 16 << 20
_FAN_OUT = 16  # ways that a search in a remote array takes at each level
HASH_BYTES = 4 << 20  # read at once while hashing: large enough for object stores, small beside any limit
_LOOK_BYTES = 1 << 12  # of metadata.json: the format is its first key
AGAIN = "convert the graph again, or copy the store again"
_LARGE_BYTES = 1 << 20  # of metadata.json: what takes long to parse is looked at before
_SHORT_NAME = re.compile(rb'"graph_name"\s*:\s*"(?:[^"\\]|\\.){0,4096}"')
VALIDATE = "graphprep validate tells more about the store"
_POINTERS = (  # arrays that say where values stand in others: the ends of both paths, and what the highest is below their size
    (".entry_offsets.npy", ".offsets.npy", 1),
    (".offsets.npy", ".values.npy", 0),
    ("/indptr.npy", "/indices.npy", 0),
    ("/raw_order.npy", "/raw_order.npy", 1),
)


def is_store(storage: Storage, url: str) -> bool:
    """Return whether a folder is a store: its metadata.json names the format, or partitions lie in it."""
    if url == STDIN or (storage.is_local(url) and not storage.is_dir(url)):  # servers know no folders
        return False
    if protocol_of(url) == "http" and "?" in url:  # a query is asked for one file, whatever is written behind it
        return False
    if not storage.is_local(url):
        storage.filesystem(url)  # a driver that is missing is told of the URL, not of a file in it
    metadata_url = storage.join(url, METADATA_NAME)
    storage.refuse_stream(metadata_url)
    if storage.exists(metadata_url) and f'"{STORE_FORMAT}"'.encode() in storage.head(metadata_url, _LOOK_BYTES):
        return True
    return any(storage.exists(storage.join(url, f"part-{0:0{digits}d}")) for digits in (5, 6, 7))


def file_digest(storage: Storage, url: str, advance: Callable[[int], None] | None = None) -> str:
    """Return the xxh3 of a file as manifests have it; ``advance`` is told how many bytes were read."""
    digest = xxhash.xxh3_64()
    with storage.open_stored(url) as handle:
        while chunk := handle.read(HASH_BYTES):
            digest.update(chunk)
            if advance is not None:
                advance(len(chunk))
    return digest.hexdigest()


class BlockCache:
    """Blocks of remote arrays that were read lately, up to a number of bytes."""

    def __init__(self, most_bytes: int | None = None) -> None:
        self._most_bytes = _CACHE_BYTES if most_bytes is None else most_bytes
        self._num_bytes = 0
        self._blocks: OrderedDict[tuple[str, int], NDArray[Any]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: tuple[str, int]) -> NDArray[Any] | None:
        """Return a block, None where it is not held."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def put(self, key: tuple[str, int], block: NDArray[Any]) -> None:
        """Keep a copy of a block, in place of those that were not asked for the longest."""
        with self._lock:
            old = self._blocks.pop(key, None)
            self._num_bytes += block.nbytes - (0 if old is None else old.nbytes)
            self._blocks[key] = block.copy()
            while self._num_bytes > self._most_bytes:
                self._num_bytes -= self._blocks.popitem(last=False)[1].nbytes


class Bounds(NamedTuple):
    """What the values of an array must be, for who follows them: in [0, high], and where they are offsets, not descending."""

    high: int
    ascends: bool


class ArrayReader:
    """Reads one array, in rows. ``dtype`` and ``shape`` are those of its manifest, which the file is held against.

    So are values against ``bounds`` as they are read, but for those that are mapped.
    """

    def __init__(
        self, storage: Storage, url: str, entry: ArrayEntry, cache: BlockCache | None = None, bounds: Bounds | None = None
    ) -> None:
        self.url = url
        self.entry = entry
        self._cache = cache or BlockCache()
        self._bounds = bounds
        self.dtype: np.dtype[Any] = np.dtype(entry.dtype)
        self.shape = entry.shape
        self._storage = storage
        self._row_bytes = self.dtype.itemsize * math.prod(self.shape[1:])
        self._mapped: NDArray[Any] | None = None
        self._data_start: int | None = None

    @property
    def is_local(self) -> bool:
        """Return whether ``map`` maps a local file."""
        return self._mapped is not None or self._storage.is_local(self.url)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return rows [start, stop), clipped to the array, as an array of one's own.

        Raises DataError where the file is not what the manifest says, StorageError where it cannot be read.
        """
        start, stop, _ = slice(start, stop).indices(self.shape[0])
        found = (self._read_file if self.is_local else self._read_range)(start, max(start, stop))
        if self._bounds is not None:
            self._check_bounds(found, start, ascends=self._bounds.ascends)
        return found

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows at these positions, in their order, which may be any. See ``gather``."""
        return self.gather(rows, rows + 1)

    def gather(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
        """Return many runs of rows [start, stop), one behind the other, as an array of one's own.

        The runs must lie in the array; they may come in any order and overlap. Of a remote array only the blocks that hold
        them are read, each about once, many at a time, in bounded memory beside the result; blocks read lately are kept.
        Raises what ``read`` raises.
        """
        counts = stops - starts
        offsets = np.cumsum(counts) - counts
        out = np.empty((int(counts.sum()), *self.shape[1:]), self.dtype)
        order = np.argsort(starts, kind="stable")
        for runs in _split(order, counts[order], _BATCH_ROWS):
            inner = np.arange(int(counts[runs].sum())) - np.repeat(np.cumsum(counts[runs]) - counts[runs], counts[runs])
            if runs.size == 1 and inner.size > self.rows_per_block:
                first = int(starts[runs[0]])
                out[offsets[runs[0]] : offsets[runs[0]] + inner.size] = self.read(first, first + inner.size)
                continue
            rows = np.repeat(starts[runs], counts[runs]) + inner
            out[np.repeat(offsets[runs], counts[runs]) + inner] = self._take(rows)
        if self._bounds is not None:
            self._check_bounds(out, None, ascends=False)
        return out

    def check_all(self) -> None:
        """Hold all values against their bounds, for who follows those of a map. Raises DataError."""
        step = max(1, _SCAN_BYTES // self.dtype.itemsize)
        for start in range(0, self.shape[0], step):
            self.read(start, start + step + 1)

    def _check_bounds(self, values: NDArray[Any], start: int | None, *, ascends: bool) -> None:
        """Raise DataError for the first value that is not what the bounds say; ``start`` is where values stand, if known."""
        assert self._bounds is not None
        high = self._bounds.high
        if not values.size:
            return
        bad = (values < 0) | (values > high) if values.min() < 0 or values.max() > high else np.zeros(0, np.bool_)
        words = f"expected a number in [0, {high}]"
        if not bad.size and ascends and (values[1:] < values[:-1]).any():
            bad, words = np.concatenate([[False], values[1:] < values[:-1]]), "offsets must not descend"
        if bad.size:
            at = int(np.argmax(bad))
            place = display_url(self.url) + ("" if start is None else f"[{start + at}]")
            raise DataError(f"{words}, found {values[at]}", place=place, fix=VALIDATE)

    def _take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        if self._storage.is_local(self.url):
            return np.asarray(self.map()[rows])
        out = np.empty((rows.size, *self.shape[1:]), self.dtype)
        blocks = rows // self.rows_per_block
        order = np.argsort(blocks, kind="stable")
        numbers, firsts = np.unique(blocks[order], return_index=True)
        for at in range(0, numbers.size, _BATCH_BLOCKS):
            batch = numbers[at : at + _BATCH_BLOCKS]
            last = firsts[at + _BATCH_BLOCKS] if at + _BATCH_BLOCKS < numbers.size else rows.size
            mine = order[firsts[at] : last]
            base = np.searchsorted(batch, blocks[mine]) * self.rows_per_block
            out[mine] = self._read_blocks(batch)[base + rows[mine] % self.rows_per_block]
        return out

    @property
    def rows_per_block(self) -> int:
        """Return how many rows a remote array is read in at least."""
        return max(1, _BLOCK_BYTES // max(1, self._row_bytes))

    def find_sorted(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Return the position of each wanted value among the rows, which ascend; -1 where it is not there.

        ``wanted`` ascends and has the array's dtype. Of a remote array the search goes down all ways at once, a level a round
        of requests, to the blocks where the values must be.
        """
        if self._storage.is_local(self.url):
            return _find(self.map(), wanted)
        num_blocks = -(-self.shape[0] // self.rows_per_block)
        return self._find_by_scan(wanted) if wanted.size * 4 > num_blocks else self._find_by_search(wanted, num_blocks)

    def _find_by_scan(self, wanted: NDArray[Any]) -> NDArray[np.int64]:
        """Find values so many that nearly every block holds one: read the array once."""
        out = np.full(wanted.size, -1, np.int64)
        step = max(1, _SCAN_BYTES // self.dtype.itemsize)
        done = 0
        for start in range(0, self.shape[0], step):
            if done == wanted.size:
                break
            rows = self.read(start, start + step)
            stop = done + int(np.searchsorted(wanted[done:], rows[-1], side="right"))
            at = _find(rows, wanted[done:stop])
            out[done:stop] = np.where(at >= 0, at + start, -1)
            done = stop
        return out

    def _find_by_search(self, wanted: NDArray[Any], num_blocks: int) -> NDArray[np.int64]:
        """Find a few values: narrow down the blocks [low, high) where each must be, then read those."""
        size, rows = self.shape[0], self.rows_per_block
        out = np.full(wanted.size, -1, np.int64)
        low, high = np.zeros(wanted.size, np.int64), np.full(wanted.size, num_blocks, np.int64)
        while (wide := np.flatnonzero(high - low > 1)).size:
            probes = _probes(low[wide], high[wide])
            at = np.searchsorted(self.take(probes * rows), wanted[wide], side="right")
            fences = np.concatenate(([0], probes, [num_blocks]))
            low[wide] = np.maximum(low[wide], fences[at])
            high[wide] = np.minimum(high[wide], fences[at + 1])
        numbers, firsts = np.unique(low, return_index=True)
        edges = [*firsts.tolist(), wanted.size]
        for i in range(0, numbers.size, _BATCH_BLOCKS):
            batch = numbers[i : i + _BATCH_BLOCKS]
            mine = slice(edges[i], edges[i + batch.size])
            at = _find(self.gather(batch * rows, np.minimum((batch + 1) * rows, size)), wanted[mine])
            out[mine] = np.where(at >= 0, batch[np.maximum(at, 0) // rows] * rows + at % rows, -1)
        return out

    def _read_blocks(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return blocks (ascending) one behind the other, each of ``rows_per_block`` rows; the array's last may be padded."""
        rows, size = self.rows_per_block, self.shape[0]
        out = np.zeros((numbers.size * rows, *self.shape[1:]), self.dtype)
        missing = []
        for i, number in enumerate(numbers.tolist()):
            kept = self._cache.get((self.url, number))
            if kept is None:
                missing.append(i)
            else:
                out[i * rows : i * rows + len(kept)] = kept
        runs = _join(numbers[missing], _MOST_JOINED)
        found = self._read_ranges([(int(first) * rows, min((int(last) + 1) * rows, size)) for first, last in runs])
        places = dict(zip(numbers[missing].tolist(), missing, strict=True))
        for (first, last), data in zip(runs, found, strict=True):
            for number in range(int(first), int(last) + 1):
                block = data[(number - first) * rows : (number - first + 1) * rows]
                out[places[number] * rows : places[number] * rows + len(block)] = block
                self._cache.put((self.url, number), block)
        return out

    def map(self) -> NDArray[Any]:
        """Return the whole array: a read-only memory map of a local file, else a copy."""
        if self._mapped is None:
            at = self._check()  # first of all: looking at a pipe would read it
            path = self._storage.local_path(self.url)
            if path is None:
                return self._read_range(0, self.shape[0])
            if 0 in self.shape:
                self._mapped = np.empty(self.shape, self.dtype)
            else:
                with plain_words(self.url):
                    self._mapped = map_file(path, self.dtype, offset=at, shape=self.shape)
        return self._mapped

    def release(self) -> None:
        """Let go of the map, which holds a file descriptor, until it is asked for again."""
        self._mapped = None

    def _read_file(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows of a local file, which may become shorter meanwhile: of a mapped one that would end the process."""
        at = self._check() + start * self._row_bytes  # first of all: looking at a pipe would read it
        path = self._storage.local_path(self.url)
        if path is None:
            return self._read_range(start, stop)
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        if out.nbytes:
            view, done = out.reshape(-1).view(np.uint8).data, 0
            with plain_words(self.url), Path(path).open("rb", buffering=0) as file:
                while done < len(view):
                    count = os.preadv(file.fileno(), [view[done:]], at + done)
                    if not count:
                        raise lost_file(self.url)
                    done += count
        return out

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        if stop - start <= self.rows_per_block // 2 and stop > start:  # looked at here and there: its surroundings come along
            return self.gather(np.array([start]), np.array([stop]))
        return self._read_ranges([(start, stop)])[0]

    def _read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[NDArray[Any]]:
        """Read runs of rows [start, stop) of a remote array, several at a time."""
        at, width = self._check(), self._row_bytes
        if not width or not ranges:
            return [np.empty((stop - start, *self.shape[1:]), self.dtype) for start, stop in ranges]
        found = self._storage.read_ranges(self.url, [(at + start * width, at + stop * width) for start, stop in ranges])
        for (start, stop), data in zip(ranges, found, strict=True):
            if len(data) != (stop - start) * width:
                raise self._fault(f"the file ends after {at + start * width + len(data)} bytes")
        return [np.frombuffer(bytearray(data), self.dtype).reshape(-1, *self.shape[1:]) for data in found]

    def _check(self) -> int:
        """Hold the file's size and header against the manifest, once; return where the array begins."""
        if self._data_start is None:
            self._storage.refuse_stream(self.url)
            size = self._storage.size(self.url)
            if size not in (-1, self.entry.num_bytes):
                raise self._fault(f"the file has {size} bytes, the manifest says {self.entry.num_bytes}")
            head = self._storage.read_range(self.url, 0, _HEADER_BYTES)
            if len(head) == _HEADER_BYTES and int.from_bytes(head[8:10], "little") + 10 > _HEADER_BYTES:
                head = self._storage.read_range(self.url, 0, MAX_HEADER_BYTES)
            header = parse_npy_header(head, display_url(self.url))
            if header.dtype != self.dtype or header.shape != self.shape or header.fortran_order:
                raise self._fault(
                    f"the file holds {header.dtype}{list(header.shape)}, the manifest says {self.dtype}{list(self.shape)}"
                )
            if header.num_bytes != self.entry.num_bytes:
                raise self._fault(f"the array takes {header.num_bytes} bytes, the manifest says {self.entry.num_bytes}")
            self._data_start = header.data_start
        return self._data_start

    def _fault(self, message: str) -> DataError:
        return DataError(message, place=display_url(self.url), fix=AGAIN)


def _find(rows: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.int64]:
    """Return the position of each wanted value among rows that ascend, -1 where it is not there."""
    if not rows.size:
        return np.full(wanted.size, -1, np.int64)
    at = np.searchsorted(rows, wanted)
    at[at == rows.size] = 0
    return np.where(rows[at] == wanted, at, -1)


def _split(order: NDArray[np.int64], counts: NDArray[np.int64], most: int) -> list[NDArray[np.int64]]:
    """Split runs into pieces of at most ``most`` rows, or of one run; ``counts`` are those of ``order``."""
    if not order.size:
        return []
    long = counts > most
    groups = np.cumsum(counts) // most + np.cumsum(long) + np.cumsum(np.concatenate(([False], long[:-1])))
    return np.split(order, np.flatnonzero(np.diff(groups)) + 1)


def _probes(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the blocks to look at next: evenly spread in each of the ranges [low, high), ascending, without repeats."""
    ranges = np.unique(np.stack([low, high], axis=1), axis=0)
    steps = np.arange(1, _FAN_OUT, dtype=np.int64)
    inner = ranges[:, :1] + (ranges[:, 1:] - ranges[:, :1]) * steps // _FAN_OUT
    inner = np.where(inner > ranges[:, :1], inner, ranges[:, :1] + 1)  # the first block of a range says nothing
    return np.unique(inner)


def _join(numbers: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Return runs (first, last) of consecutive numbers (ascending), of at most ``most`` each."""
    runs: list[tuple[int, int]] = []
    for number in numbers.tolist():
        if runs and number == runs[-1][1] + 1 and number - runs[-1][0] < most:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


class StoreReader:
    """Opens a store. ``metadata`` is its metadata.json, held against the JSON Schema and its own counts.

    Raises StorageError where there is none, DataError where it is faulty.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = url
        self._storage = storage
        self._manifests: dict[int, Manifest] = {}
        self._entries: dict[int, dict[str, ArrayEntry]] = {}
        self._cache = BlockCache()
        metadata_url = storage.join(url, METADATA_NAME)
        if not storage.exists(metadata_url):
            raise StorageError(
                f"there is no store: {METADATA_NAME} is missing", place=display_url(url), fix=_where(storage, url)
            )
        storage.refuse_stream(metadata_url)
        self.metadata = read_metadata(storage.read_bytes(metadata_url), display_url(metadata_url))

    def part_url(self, part: int) -> str:
        """Return the folder of a partition."""
        return self._storage.join(self.url, self.metadata.parts[part].path)

    def manifest(self, part: int) -> Manifest:
        """Return a partition's manifest, once its size and hash are what metadata.json says."""
        if part not in self._manifests:
            url = self._storage.join(self.part_url(part), MANIFEST_NAME)
            self._storage.refuse_stream(url)
            data = self._storage.read_bytes(url)
            entry, place = self.metadata.parts[part], display_url(url)
            found = xxhash.xxh3_64_hexdigest(data)
            if len(data) != entry.manifest_bytes or found != entry.manifest_xxh3:
                message = (
                    f"the file has {len(data)} bytes and xxh3 {found}, "
                    f"{METADATA_NAME} says {entry.manifest_bytes} and {entry.manifest_xxh3}"
                )
                raise DataError(message, place=place, fix=AGAIN)
            self._manifests[part] = _read_manifest(data, part, place)
            self._entries[part] = {array.path: array for array in self._manifests[part].arrays}
        return self._manifests[part]

    def has(self, part: int, path: str) -> bool:
        """Return whether the partition has an array of this path."""
        self.manifest(part)
        return path in self._entries[part]

    def array(self, part: int, path: str) -> ArrayReader:
        """Open an array of a partition. Raises DataError where its manifest has none of this path."""
        if not self.has(part, path):
            place = display_url(self._storage.join(self.part_url(part), MANIFEST_NAME))
            raise DataError(f"the array {path} is missing", place=place, fix=AGAIN)
        return self._open(self._storage.join(self.part_url(part), path), self._entries[part][path], self._bounds_of(part, path))

    def _open(self, url: str, entry: ArrayEntry, bounds: Bounds | None) -> ArrayReader:
        return ArrayReader(self._storage, url, entry, self._cache, bounds)

    def _bounds_of(self, part: int, path: str) -> Bounds | None:
        """Return what values that say where others stand must be; None for other arrays."""
        for end, target, more in _POINTERS:
            if path.endswith(end):
                entry = self._entries[part].get(path.removesuffix(end) + target)
                ascends = not end.endswith("order.npy")
                return Bounds(entry.shape[0] - more, ascends) if entry is not None and entry.shape else None
        return None


def _where(storage: Storage, url: str) -> str:
    """Return how to come to a store, where at ``url`` there is none."""
    if not storage.exists(url):
        return "check the path"
    if storage.is_local(url) and not storage.is_dir(url):
        return "make a store of it with graphprep convert"
    if storage.exists(storage.join(url, RECORD_NAME)):
        return "name the store that was exported"
    return f"convert the graph again; {METADATA_NAME} is written last"


def parse_metadata(data: bytes, place: str) -> Any:
    """Parse metadata.json, as strict JSON. Raises DataError, also where the name of the graph alone is endless."""
    from graphprep.storage.read.schemas import parse_json

    if len(data) > _LARGE_BYTES and not _SHORT_NAME.search(data):
        raise DataError("expected a name of at most 4,096 bytes", place=f"{place}: graph_name")
    return parse_json(data, place)


def read_metadata(data: bytes, place: str) -> GraphMetadata:
    """Read metadata.json: strict JSON, held against its schema, and its lists against each other.

    Raises DataError ``place: key.path[3]: …``.
    """
    from graphprep.storage.read.schemas import check_json

    with _repeated():
        value = parse_metadata(data, place)
        if isinstance(value, dict) and value.get("format", STORE_FORMAT) != STORE_FORMAT:
            raise DataError("not the metadata of a store", place=place, fix="name a folder that graphprep convert wrote")
        check_json(value, "metadata", place)
    for path, message in _find_contradictions(value):
        raise DataError(message, place=f"{place}: {path}", fix=AGAIN)
    return GraphMetadata.from_json(value)


def _find_contradictions(value: dict[str, Any]) -> list[tuple[str, str]]:
    """Find what a JSON Schema cannot say: lists of one length, sums that add up, schemas of the listed types."""
    faults = []
    for kind in ("node", "edge"):
        names, totals, chunks = value[f"{kind}_type"], value[f"num_{kind}s_per_type"], value[f"num_{kind}s_per_chunk"]
        for key, items in ((f"num_{kind}s_per_type", totals), (f"num_{kind}s_per_chunk", chunks)):
            if len(items) != len(names):
                faults.append((key, f"expected one entry for each of {len(names)} types, found {len(items)}"))
        for i, chunk in enumerate(chunks):
            if len(chunk) != value["num_parts"]:
                message = f"expected one number for each of {value['num_parts']} partitions, found {len(chunk)}"
                faults.append((f"num_{kind}s_per_chunk[{i}]", message))
            elif i < len(totals) and sum(chunk) != totals[i]:
                faults.append((f"num_{kind}s_per_type[{i}]", f"{totals[i]} is not the sum of the partitions, {sum(chunk)}"))
        missing = [name for name in names if name not in value[f"{kind}_schema"]]
        if missing or len(value[f"{kind}_schema"]) != len(names):
            faults.append((f"{kind}_schema", f"expected the types {', '.join(names)}"))
    if len(value["parts"]) != value["num_parts"]:
        faults.append(("parts", f"expected {value['num_parts']} partitions, found {len(value['parts'])}"))
    node_types = set(value["node_type"])
    for i, text in enumerate(value["edge_type"]):
        src, _, dst = parse_edge_type(text)
        unknown = [end for end in (src, dst) if end not in node_types]
        faults += [(f"edge_type[{i}]", f"there is no node type {end!r}") for end in unknown]
    return faults


def _read_manifest(data: bytes, part: int, place: str) -> Manifest:
    from graphprep.storage.read.schemas import check_json, parse_json

    with _repeated():
        value = parse_json(data, place)
        check_json(value, "manifest", place)
    manifest = Manifest.from_json(value)
    if manifest.part != part:
        raise DataError(f"expected {part}, found {manifest.part}", place=f"{place}: part", fix=AGAIN)
    return manifest


@contextlib.contextmanager
def _repeated() -> Iterator[None]:
    """Give errors of documents that no user writes a fix."""
    try:
        yield
    except DataError as error:
        error.fix = error.fix or AGAIN
        raise
