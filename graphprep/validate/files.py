"""First part of ``validate``: metadata.json, the manifests, and every array file as a file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.engine.local import map_ordered
from graphprep.model.errors import DataError, GraphprepError, StorageError
from graphprep.model.metadata import MANIFEST_NAME, METADATA_NAME, ArrayEntry, GraphMetadata, Manifest, part_name
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema, EdgeTypeSchema, edge_type_text
from graphprep.storage.read.arrays import HASH_BYTES, ArrayReader, file_digest, parse_metadata
from graphprep.storage.read.npy import MAX_HEADER_BYTES, parse_npy_header
from graphprep.storage.read.schemas import find_json_errors, parse_json
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.publish import npy_header
from graphprep.store.assign import cut_sizes
from graphprep.store.paths import expected_arrays
from graphprep.validate.faults import Faults

_COLUMN_ORDER = ("weight", "time", "created_at", "removed_at", "created")
_ROLE_DTYPES = {"weight": ("float32", "float64"), "created": ("bool",), "split": ("int8",), "seeds": ("bool",)}


@dataclass(frozen=True, eq=False)
class CheckedArray:
    """An array whose file is sound: read slices of it. ``path`` is the path in the store."""

    storage: Storage
    url: str
    path: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def num_rows(self) -> int:
        """Return the length of the first axis."""
        return self.shape[0]

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Read rows [start, stop)."""
        row_bytes = self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))
        data = self.storage.read_range(self.url, self.offset + start * row_bytes, self.offset + stop * row_bytes)
        return np.frombuffer(data, self.dtype).reshape(stop - start, *self.shape[1:])

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Read the rows at these positions, in any order."""
        return self.gather(rows, rows + 1)

    def gather(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
        """Read runs of rows [start, stop), in any order; a file does not stay open, as there is one for every partition."""
        found = self._reader.gather(starts, stops)
        self._reader.release()
        return found

    @cached_property
    def _reader(self) -> ArrayReader:
        num_bytes = self.offset + self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        return ArrayReader(self.storage, self.url, ArrayEntry(self.path, self.dtype.name, self.shape, num_bytes, ""))


@dataclass(frozen=True)
class CheckedStore:
    """A store whose metadata is sound, and those of its arrays whose files are. ``arrays``: one mapping a partition."""

    metadata: GraphMetadata
    arrays: tuple[Mapping[str, CheckedArray], ...]

    def array(self, part: int, path: str) -> CheckedArray | None:
        """Return an array of a partition; None where a fault of its file was reported."""
        return self.arrays[part].get(path)


# ---------------------------------------------------------------------------------------------------- metadata.json


def file_needs(threads: int) -> Iterator[Need]:
    """Declare what checking files takes."""
    yield Need("files", threads * 2 * HASH_BYTES, f"two pieces of {format_size(HASH_BYTES)} of each that is hashed")


def read_metadata(storage: Storage, url: str, faults: Faults) -> GraphMetadata | None:
    """Read and check metadata.json; None where it is so wrong that nothing else can be checked."""
    try:
        value = parse_metadata(storage.read_bytes(storage.join(url, METADATA_NAME)), METADATA_NAME)
    except DataError as error:
        faults.add(error.place, error.message)
        return None
    found = list(find_json_errors(value, "metadata", METADATA_NAME))
    for fault in found:
        faults.add(fault.place, fault.message)
    if found or not _check_lists(value, faults):
        return None
    metadata = GraphMetadata.from_json(value)
    _check_counts(metadata, value, faults)
    _check_schemas(metadata, faults)
    return metadata


def _check_lists(value: Any, faults: Faults) -> bool:
    """Check that everything that is listed per type or partition has the right number of entries."""
    before = faults.num
    num_parts = value["num_parts"]
    if len(value["parts"]) != num_parts:
        faults.add(f"{METADATA_NAME}: parts", f"expected {num_parts} entries (num_parts), found {len(value['parts'])}")
    for kind in ("node", "edge"):
        names = value[f"{kind}_type"]
        for key in (f"num_{kind}s_per_type", f"num_{kind}s_per_chunk"):
            if len(value[key]) != len(names):
                faults.add(f"{METADATA_NAME}: {key}", f"expected {len(names)} entries ({kind}_type), found {len(value[key])}")
        for t, chunks in enumerate(value[f"num_{kind}s_per_chunk"]):
            if len(chunks) != num_parts:
                place = f"{METADATA_NAME}: num_{kind}s_per_chunk[{t}]"
                faults.add(place, f"expected {num_parts} entries (num_parts), found {len(chunks)}")
        if list(value[f"{kind}_schema"]) != names:
            place = f"{METADATA_NAME}: {kind}_schema"
            faults.add(place, f"expected the types of {kind}_type in their order, found {list(value[f'{kind}_schema'])}")
    return faults.num == before


def _check_counts(metadata: GraphMetadata, value: Any, faults: Faults) -> None:
    """Check sums over partitions, how ``range`` and ``random`` cut, the folders' names, and the ends of edge types."""
    for kind, sums in (("node", metadata.num_nodes_per_type), ("edge", metadata.num_edges_per_type)):
        for t, (stated, total) in enumerate(zip(value[f"num_{kind}s_per_type"], sums, strict=True)):
            if stated != total:
                place = f"{METADATA_NAME}: num_{kind}s_per_type[{t}]"
                faults.add(place, f"expected {total}, the sum of num_{kind}s_per_chunk[{t}], found {stated}")
    if metadata.partition_by in ("range", "random"):
        for t, chunks in enumerate(metadata.num_nodes_per_chunk):
            sizes = cut_sizes(sum(chunks), metadata.num_parts).tolist()
            for p, (size, found) in enumerate(zip(sizes, chunks, strict=True)):
                if size != found:
                    place = f"{METADATA_NAME}: num_nodes_per_chunk[{t}][{p}]"
                    faults.add(place, f"expected {size}, as partition_by {metadata.partition_by} cuts, found {found}")
    for p, part in enumerate(metadata.parts):
        if part.path != part_name(p, metadata.num_parts):
            faults.add(
                f"{METADATA_NAME}: parts[{p}].path", f"expected {part_name(p, metadata.num_parts)!r}, found {part.path!r}"
            )
    node_types = set(metadata.node_types)
    for t, edge_type in enumerate(metadata.edge_types):
        for end in (edge_type[0], edge_type[2]):
            if end not in node_types:
                faults.add(f"{METADATA_NAME}: edge_type[{t}]", f"{end!r} is not among the node types")


def _check_schemas(metadata: GraphMetadata, faults: Faults) -> None:
    for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True):
        _check_columns(schema.columns, f"{METADATA_NAME}: node_schema.{name}", faults, is_edge=False)
        if schema.node_order is not None and schema.raw_ids == "identity":
            what = "expected a file of raw IDs, as nodes are not in their order, found 'identity'"
            faults.add(f"{METADATA_NAME}: node_schema.{name}.raw_ids", what)
    counts = metadata.num_nodes_by_type()
    edges = zip(metadata.edge_types, metadata.num_edges_per_type, metadata.edge_schemas, strict=True)
    for edge_type, num_edges, edge_schema in edges:
        place = f"{METADATA_NAME}: edge_schema.{edge_type_text(edge_type)}"
        _check_columns(edge_schema.columns, place, faults, is_edge=True)
        _check_order(edge_schema, place, faults)
        ends = [counts.get(edge_type[0 if layout == "csc" else 2], 0) for layout in metadata.layouts]
        _check_dtypes(edge_schema, ends, num_edges, place, faults)


def _check_order(schema: EdgeTypeSchema, place: str, faults: Faults) -> None:
    if (schema.neighbor_order == "id") != (schema.multigraph is not None):
        wanted = "true or false" if schema.neighbor_order == "id" else "null"
        found = {None: "null", True: "true", False: "false"}[schema.multigraph]
        faults.add(f"{place}.multigraph", f"expected {wanted} where neighbor_order is {schema.neighbor_order}, found {found}")
    if schema.neighbor_order in ("time", "weight") and order_column(schema) is None:
        faults.add(
            f"{place}.neighbor_order", f"expected 'input', since there is no such column, found {schema.neighbor_order!r}"
        )


def order_column(schema: EdgeTypeSchema) -> ColumnSchema | None:
    """Return the column that orders neighbours by time or weight."""
    roles = {"time": ("time", "created_at"), "weight": ("weight",)}.get(schema.neighbor_order, ())
    by_role = {column.role: column for column in schema.columns}
    return next((by_role[role] for role in roles if role in by_role), None)


def _check_dtypes(schema: EdgeTypeSchema, ends: list[int], num_edges: int, place: str, faults: Faults) -> None:
    """Check that IDs fit their dtypes; ``ends`` are the nodes at the other end of each layout.

    Wider dtypes than needed are fine: ``--index-dtype`` asks for them.
    """
    if schema.index_dtype == "int32" and max(ends) > 2**31:
        faults.add(f"{place}.index_dtype", f"int32 cannot hold the IDs of {max(ends)} nodes")
    if schema.edge_id_dtype == "int32" and num_edges > 2**31:
        faults.add(f"{place}.edge_id_dtype", f"int32 cannot hold the IDs of {num_edges} edges")


def _check_columns(columns: tuple[ColumnSchema, ...], place: str, faults: Faults, *, is_edge: bool) -> None:
    """Check that names differ, and the rules for roles, shapes and order (docs/store.md, "Columns")."""
    seen: set[str] = set()
    ranks = []
    for role in ("split", "seeds"):
        if sum(column.role == role for column in columns) > 1:
            faults.add(f"{place}.columns", f"expected one column with the role {role} at most")
    for i, column in enumerate(columns):
        here = f"{place}.columns[{i}]"
        if column.path in seen:
            faults.add(f"{here}.name", f"{column.name!r} is there twice")
        seen.add(column.path)
        if column.role in _COLUMN_ORDER and column.name != column.role:
            faults.add(f"{here}.name", f"expected {column.role!r}, as the role, found {column.name!r}")
        if column.kind in ("ragged", "binary", "temporal") and column.item_shape:
            faults.add(f"{here}.item_shape", f"expected [] for kind {column.kind}, found {list(column.item_shape)}")
        if column.kind == "sparse" and len(column.item_shape) > 1:
            faults.add(f"{here}.item_shape", f"expected [] or [width] for kind sparse, found {list(column.item_shape)}")
        if column.kind == "binary" and column.dtype != "uint8":
            faults.add(f"{here}.dtype", f"expected uint8 for kind binary, found {column.dtype}")
        _check_role(column, here, faults, is_edge=is_edge)
        _check_categories(column, here, faults)
        ranks.append(_column_rank(column))
        if ranks[-1] < max(ranks):
            faults.add(here, f"column {column.name!r} stands out of order")


def _check_role(column: ColumnSchema, here: str, faults: Faults, *, is_edge: bool) -> None:
    if column.role is None:
        return
    if column.role == "label":
        if column.kind not in ("dense", "ragged"):
            faults.add(here, f"expected kind dense or ragged for role label, found {column.kind}")
        return
    if column.role in NEGATIVE_ROLES:
        if not is_edge or column.name != column.role or column.kind != "ragged" or column.dtype not in ("int32", "int64"):
            what = f"expected a ragged edge column {column.role!r} of int32 or int64 for role {column.role}"
            faults.add(here, f"{what}, found {column.kind} {column.name!r} of {column.dtype}")
        return
    dtypes = _ROLE_DTYPES.get(column.role, ("int64",))
    if column.kind != "dense" or column.item_shape or column.dtype not in dtypes:
        found = f"{column.kind} {column.dtype} {list(column.item_shape)}"
        faults.add(here, f"expected a dense scalar of {' or '.join(dtypes)} for role {column.role}, found {found}")


def _check_categories(column: ColumnSchema, here: str, faults: Faults) -> None:
    if column.categories is None:
        return
    if column.role not in ("label", None) or column.kind != "dense" or column.dtype != "int64" or column.item_shape:
        faults.add(f"{here}.categories", "expected none, as this is no dense scalar of int64, or has another role than label")
    names = [name.encode() for name in column.categories]
    unordered = next((i for i in range(1, len(names)) if names[i - 1] >= names[i]), None)
    if unordered is not None:
        what = f"expected a name behind {column.categories[unordered - 1]!r}, found {column.categories[unordered]!r}"
        faults.add(f"{here}.categories[{unordered}]", what)


def _column_rank(column: ColumnSchema) -> tuple[int, int, str]:
    """Return where a column stands in the schema; input columns keep their own order."""
    if column.role in _COLUMN_ORDER:
        return (_COLUMN_ORDER.index(column.role), 0, "")
    if column.slot is not None:
        return (len(_COLUMN_ORDER), column.slot, column.name)
    return (len(_COLUMN_ORDER) + 1, 0, "")


# ---------------------------------------------------------------------------------------------------- manifests


def read_manifest(storage: Storage, url: str, metadata: GraphMetadata, part: int, faults: Faults) -> Manifest | None:
    """Read and check a partition's manifest; None where it cannot be used."""
    entry = metadata.parts[part]
    place = f"{entry.path}/{MANIFEST_NAME}"
    manifest_url = storage.join(storage.join(url, entry.path), MANIFEST_NAME)
    try:
        storage.refuse_stream(manifest_url)
        data = storage.read_bytes(manifest_url)
    except GraphprepError as error:
        _raise_unreadable(storage, manifest_url, error)
        faults.add(place, error.message)
        return None
    if len(data) != entry.manifest_bytes:
        faults.add(place, f"expected {entry.manifest_bytes} bytes (metadata.json), found {len(data)}")
    elif xxhash.xxh3_64_hexdigest(data) != entry.manifest_xxh3:
        faults.add(place, f"expected xxh3 {entry.manifest_xxh3} (metadata.json), found {xxhash.xxh3_64_hexdigest(data)}")
    try:
        value = parse_json(data, place)
    except DataError as error:
        faults.add(error.place, error.message)
        return None
    found = list(find_json_errors(value, "manifest", place))
    for fault in found:
        faults.add(fault.place, fault.message)
    if found:
        return None
    manifest = Manifest.from_json(value)
    if manifest.part != part:
        faults.add(f"{place}: part", f"expected {part}, found {manifest.part}")
    for i, (before, after) in enumerate(zip(manifest.arrays, manifest.arrays[1:], strict=False), 1):
        if not before.path < after.path:
            faults.add(f"{place}: arrays[{i}].path", f"expected a path after {before.path!r}, found {after.path!r}")
    return manifest


def _raise_unreadable(storage: Storage, url: str, error: GraphprepError) -> None:
    """Raise an error that is none of the store's: a file that stands there and cannot be read. A missing one is a fault."""
    if isinstance(error, StorageError) and storage.is_file(url):
        raise error


# ---------------------------------------------------------------------------------------------------- wanted arrays


# ---------------------------------------------------------------------------------------------------- array files


def check_files(
    storage: Storage,
    url: str,
    metadata: GraphMetadata,
    manifests: list[Manifest | None],
    faults: Faults,
    *,
    threads: int,
    advance: Callable[[int], None],
) -> CheckedStore:
    """Check that every array is there as the schema and the manifest say, header and checksum included.

    Reads every byte once, on ``threads`` threads; ``advance`` is told how many bytes were read.
    """
    lock = threading.Lock()

    def advance_locked(num_bytes: int) -> None:
        with lock:
            advance(num_bytes)

    def check(file: ArrayFile) -> tuple[ArrayFile, list[str], CheckedArray | None]:
        return file, *file.check(advance_locked)

    arrays: list[dict[str, CheckedArray]] = [{} for _ in manifests]
    for file, found, checked in map_ordered(check, _array_files(storage, url, metadata, manifests, faults), threads):
        for message in found:
            faults.add(file.path, message)
        if checked is not None:
            arrays[file.part][file.entry.path] = checked
    return CheckedStore(metadata, tuple(arrays))


def _array_files(
    storage: Storage, url: str, metadata: GraphMetadata, manifests: list[Manifest | None], faults: Faults
) -> Iterator[ArrayFile]:
    """Yield the files whose entries in the manifests are what the schema wants."""
    for part, manifest in enumerate(manifests):
        folder = metadata.parts[part].path
        base = storage.join(url, folder)
        for entry in _match(metadata, part, manifest, faults) if manifest is not None else ():
            yield ArrayFile(storage, storage.join(base, entry.path), f"{folder}/{entry.path}", part, entry)


def _match(metadata: GraphMetadata, part: int, manifest: Manifest, faults: Faults) -> list[ArrayEntry]:
    """Compare the manifest with what the schema wants; return the entries whose files can be checked further."""
    folder = metadata.parts[part].path
    place = f"{folder}/{MANIFEST_NAME}"
    wanted = expected_arrays(metadata, part)
    listed = {entry.path: entry for entry in manifest.arrays}
    for path in sorted(wanted.keys() - listed.keys()):
        faults.add(place, f"array {path!r} is missing")
    usable = []
    for i, entry in enumerate(manifest.arrays):
        expected = wanted.get(entry.path)
        if expected is None:
            faults.add(f"{place}: arrays[{i}]", f"array {entry.path!r} is not part of the schema")
        elif not expected.agrees(entry):
            found = f"{entry.dtype}{list(entry.shape)}"
            faults.add(f"{place}: arrays[{i}]", f"expected {expected} for {entry.path!r}, found {found}")
        else:
            usable.append(entry)
    return usable


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """The file of an array that a manifest lists."""

    storage: Storage
    url: str
    path: str
    part: int
    entry: ArrayEntry

    def check(self, advance: Callable[[int], None]) -> tuple[list[str], CheckedArray | None]:
        """Return what is wrong with the file, and the array if its values can be read all the same."""
        faults: list[str] = []
        try:
            self.storage.refuse_stream(self.url)
            size = self.storage.size(self.url)
            if size >= 0 and size != self.entry.num_bytes:
                return [f"expected {self.entry.num_bytes} bytes (manifest), found {size}"], None
            digest = file_digest(self.storage, self.url, advance)
            if digest != self.entry.xxh3:
                faults.append(f"expected xxh3 {self.entry.xxh3} (manifest), found {digest}")
            return faults, self._open(faults)
        except GraphprepError as error:
            _raise_unreadable(self.storage, self.url, error)
            return [*faults, error.message], None

    def _open(self, faults: list[str]) -> CheckedArray | None:
        """Read the header; a fault where it is not what the manifest says, byte for byte as NumPy writes it."""
        header = parse_npy_header(self.storage.read_range(self.url, 0, MAX_HEADER_BYTES), self.path)
        found = f"{header.dtype.name}{list(header.shape)}"
        found += " in Fortran order" if header.fortran_order and len(header.shape) > 1 else ""
        found += " (big-endian)" if header.dtype.byteorder == ">" else ""
        wanted = f"{self.entry.dtype}{list(self.entry.shape)}"
        if found != wanted:
            faults.append(f"expected {wanted} (manifest), found {found}")
            return None
        if header.num_bytes != self.entry.num_bytes:
            faults.append(f"expected {header.num_bytes} bytes for {wanted}, found {self.entry.num_bytes}")
            return None
        expected = npy_header(header.dtype, header.shape)
        if self.storage.read_range(self.url, 0, len(expected)) != expected:
            faults.append("the header is not the one of .npy format 1.0 that NumPy writes")
        return CheckedArray(self.storage, self.url, self.path, header.dtype, header.shape, header.data_start)
