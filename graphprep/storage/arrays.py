"""Reading a store: metadata, manifests and arrays, each checked against what names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.model.errors import DataError, StorageError
from graphprep.model.metadata import MANIFEST_NAME, METADATA_NAME, STORE_FORMAT, ArrayEntry, GraphMetadata, Manifest
from graphprep.model.schema import parse_edge_type
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.npy import MAX_HEADER_BYTES, parse_npy_header
from graphprep.storage.urls import Storage

_HEADER_BYTES = 128  # what the headers of ordinary arrays take
_AGAIN = "convert the graph again, or copy the store again"


class ArrayReader:
    """Reads one array, in rows. ``dtype`` and ``shape`` are those of its manifest, which the file is held against."""

    def __init__(self, storage: Storage, url: str, entry: ArrayEntry) -> None:
        self.url = url
        self.entry = entry
        self.dtype: np.dtype[Any] = np.dtype(entry.dtype)
        self.shape = entry.shape
        self._storage = storage
        self._mapped: NDArray[Any] | None = None
        self._data_start: int | None = None

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return rows [start, stop), clipped to the array, as an array of one's own.

        Raises DataError where the file is not what the manifest says, StorageError where it cannot be read.
        """
        start, stop, _ = slice(start, stop).indices(self.shape[0])
        if self._storage.is_local(self.url):
            return np.array(self.map()[start:stop])
        return self._read_range(start, max(start, stop))

    def map(self) -> NDArray[Any]:
        """Return the whole array: a read-only memory map of a local file, else a copy."""
        path = self._storage.local_path(self.url)
        if path is None:
            return self._read_range(0, self.shape[0])
        if self._mapped is None:
            at = self._check()
            if 0 in self.shape:
                self._mapped = np.empty(self.shape, self.dtype)
            else:
                with plain_words(self.url):
                    self._mapped = np.memmap(path, self.dtype, "r", offset=at, shape=self.shape)
        return self._mapped

    def _read_range(self, start: int, stop: int) -> NDArray[Any]:
        at = self._check()
        rows = np.empty((stop - start, *self.shape[1:]), self.dtype)
        if rows.size:
            row_bytes = rows.nbytes // rows.shape[0]
            data = self._storage.read_range(self.url, at + start * row_bytes, at + stop * row_bytes)
            if len(data) != rows.nbytes:
                raise self._fault(f"the file ends after {at + start * row_bytes + len(data)} bytes")
            rows.reshape(-1).view(np.uint8)[:] = np.frombuffer(data, np.uint8)
        return rows

    def _check(self) -> int:
        """Hold the file's size and header against the manifest, once; return where the array begins."""
        if self._data_start is None:
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
        return DataError(message, place=display_url(self.url), fix=_AGAIN)


class StoreReader:
    """Opens a store. ``metadata`` is its metadata.json, held against the JSON Schema and its own counts.

    Raises StorageError where there is none, DataError where it is faulty.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = url
        self._storage = storage
        self._manifests: dict[int, Manifest] = {}
        self._entries: dict[int, dict[str, ArrayEntry]] = {}
        metadata_url = storage.join(url, METADATA_NAME)
        if not storage.exists(metadata_url):
            fix = "convert the graph again; metadata.json is written last" if storage.exists(url) else "check the path"
            raise StorageError(f"there is no store: {METADATA_NAME} is missing", place=display_url(url), fix=fix)
        self.metadata = read_metadata(storage.read_bytes(metadata_url), display_url(metadata_url))

    def part_url(self, part: int) -> str:
        """Return the folder of a partition."""
        return self._storage.join(self.url, self.metadata.parts[part].path)

    def manifest(self, part: int) -> Manifest:
        """Return a partition's manifest, once its size and hash are what metadata.json says."""
        if part not in self._manifests:
            url = self._storage.join(self.part_url(part), MANIFEST_NAME)
            data = self._storage.read_bytes(url)
            entry, place = self.metadata.parts[part], display_url(url)
            found = xxhash.xxh3_64_hexdigest(data)
            if len(data) != entry.manifest_bytes or found != entry.manifest_xxh3:
                message = (
                    f"the file has {len(data)} bytes and xxh3 {found}, "
                    f"{METADATA_NAME} says {entry.manifest_bytes} and {entry.manifest_xxh3}"
                )
                raise DataError(message, place=place, fix=_AGAIN)
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
            raise DataError(f"the array {path} is missing", place=place, fix=_AGAIN)
        return ArrayReader(self._storage, self._storage.join(self.part_url(part), path), self._entries[part][path])


def read_metadata(data: bytes, place: str) -> GraphMetadata:
    """Read metadata.json: strict JSON, held against its schema, and its lists against each other.

    Raises DataError ``place: key.path[3]: …``.
    """
    from graphprep.storage.schemas import check_json, parse_json

    value = parse_json(data, place)
    if isinstance(value, dict) and value.get("format", STORE_FORMAT) != STORE_FORMAT:
        raise DataError("not the metadata of a store", place=place, fix="name a folder that graphprep convert wrote")
    check_json(value, "metadata", place)
    for path, message in _find_contradictions(value):
        raise DataError(message, place=f"{place}: {path}", fix=_AGAIN)
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
    from graphprep.storage.schemas import check_json, parse_json

    value = parse_json(data, place)
    check_json(value, "manifest", place)
    manifest = Manifest.from_json(value)
    if manifest.part != part:
        raise DataError(f"expected {part}, found {manifest.part}", place=f"{place}: part", fix=_AGAIN)
    return manifest
