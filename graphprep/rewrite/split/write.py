"""Write a store again with other splits: arrays are copied as they are, and held against their manifest on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphprep.convert.columns.roles import NO_PART
from graphprep.edges.moves import Workspace
from graphprep.engine.local import map_ordered
from graphprep.model.errors import DataError
from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.schema import ColumnSchema
from graphprep.rewrite.move_parts import CutFiles, PartFiles
from graphprep.rewrite.split.parts import SplitRows
from graphprep.rewrite.split.rules import COLUMN, is_replaced
from graphprep.rewrite.stored_edges import EdgeSpan, map_edges
from graphprep.rewrite.transform.recipe import MadeColumn, narrow, slices
from graphprep.rewrite.transform.write import write_made
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import AGAIN, StoreReader
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.files import column_files
from graphprep.store.items import StoredItems
from graphprep.store.paths import ColumnPaths, LayoutPaths, edge_folder, has_edge_rows
from graphprep.store.write import finish_store


class SplitWriter:
    """Writes the store: ``copy``, ``write_splits``, ``finish``."""

    def __init__(
        self,
        store: StoreReader,
        writer: StoreWriter,
        splits: Sequence[SplitRows],
        made: Mapping[str, Sequence[MadeColumn]],
        room: Workspace,
        reporter: Reporter,
    ) -> None:
        """``made`` are the negatives of edge types, by edge row."""
        self._store = store
        self._writer = writer
        self._splits = splits
        self._room = room
        self._reporter = reporter
        self._files = PartFiles(writer, store.metadata.num_parts)
        self._made = {split.owner: made.get(split.owner.name, ()) for split in splits}
        self._columns = {split.owner: _new_columns(split, self._made[split.owner]) for split in splits}

    # ---- what stays

    def copy(self) -> None:
        """Copy all arrays but those of columns that are replaced. Raises DataError where one is not as the manifest says."""
        dropped = {
            file.path
            for split in self._splits
            for file in column_files(split.owner.folder, filter(split.replaces, split.owner.columns), num_slots=False)
        }
        parts = range(self._store.metadata.num_parts)
        tasks = ((part, entry) for part in parts for entry in self._store.manifest(part).arrays if entry.path not in dropped)
        for part, entry in map_ordered(self._copy, tasks, self._room.threads):
            self._files.entries[part].append(entry)

    def _copy(self, task: tuple[int, ArrayEntry]) -> tuple[int, ArrayEntry]:
        part, entry = task
        source = self._store.array(part, entry.path)
        target = self._files.open(part, entry.path, source.dtype, source.shape)
        rows = self._room.fit(StoredItems(source).item_bytes)
        for low in range(0, source.shape[0], rows):
            target.append(source.read(low, low + rows))
        written = target.close()
        if written.xxh3 != entry.xxh3:
            raise DataError(
                f"the bytes are not those that were written: expected xxh3 {entry.xxh3} (manifest), found {written.xxh3}",
                place=display_url(source.url),
                fix=AGAIN,
            )
        return part, written

    # ---- what is new

    def write_splits(self) -> None:
        """Write the column of every type that is split, and what leads from a second layout to its first column."""
        metadata = self._store.metadata
        for split in self._splits:
            owner = split.owner
            chunks = metadata.num_nodes_per_chunk if owner.is_node else metadata.num_edges_per_chunk
            files = CutFiles(self._files, np.array(chunks[owner.number], np.int64))
            if split.is_new:
                self._write_codes(split, files)
            for made in self._made[owner]:
                write_made(files, owner.folder, made, None)
            if not owner.is_node and not has_edge_rows(metadata.edge_schemas[owner.number]) and len(metadata.layouts) > 1:
                self._write_edge_rows(owner.number)
            self._reporter.advance(records=owner.size)

    def _write_codes(self, split: SplitRows, files: CutFiles) -> None:
        parts, column = split.parts, next(one for one in self._columns[split.owner] if one.role == "split")
        stem = f"{split.owner.folder}/{column.path}"
        codes = (np.where(parts[at] == NO_PART, 0, parts[at]).astype(np.int8) for at in slices(parts.size))
        files.write(f"{stem}.npy", "int8", parts.shape, codes)
        if column.optional:
            files.write(ColumnPaths(stem).present, "bool", parts.shape, (parts[at] != NO_PART for at in slices(parts.size)))

    def _write_edge_rows(self, number: int) -> None:
        """Write where the entries of the second layout have their columns: the edges of their IDs."""
        metadata = self._store.metadata
        folder, num_edges = edge_folder(metadata.edge_types[number]), metadata.num_edges_per_type[number]
        other = next(layout for layout in metadata.layouts if layout != metadata.primary_layout)
        paths = LayoutPaths(f"{folder}/{other}")
        with self._room.scratch.inner() as scratch:
            rows = scratch.zeros(num_edges, narrow(num_edges))

            def place(span: EdgeSpan) -> None:
                rows[span.ids] = span.edge_rows

            for _ in map_edges(self._store, number, self._room, scratch, place, num_edges):
                pass
            for part in range(metadata.num_parts):
                ids = self._store.array(part, paths.edge_ids)
                pieces = (rows[ids.read(at.start, at.stop)].astype(np.int64) for at in slices(ids.shape[0]))
                self._files.write(part, paths.edge_rows, "int64", ids.shape, pieces)

    def finish(self, provenance: Callable[[], object]) -> GraphMetadata:
        """Write the manifests, provenance.json and metadata.json; that publishes the store."""
        metadata = self._store.metadata
        nodes, edges = list(metadata.node_schemas), list(metadata.edge_schemas)
        for owner, columns in self._columns.items():
            if owner.is_node:
                nodes[owner.number] = replace(nodes[owner.number], columns=columns)
            else:
                edges[owner.number] = replace(edges[owner.number], columns=columns)
        metadata = replace(metadata, node_schemas=tuple(nodes), edge_schemas=tuple(edges), parts=())
        return finish_store(self._writer, self._files.entries, metadata, provenance)


def _new_columns(split: SplitRows, negatives: Sequence[MadeColumn]) -> tuple[ColumnSchema, ...]:
    """Return the columns of a type: the split in the place of what it replaces, else before the seeds; negatives are last."""
    drawn = [one.schema for one in negatives]
    if not split.is_new:
        return (*(one for one in split.owner.columns if not split.replaces(one)), *drawn)
    is_optional = any((split.parts[at] == NO_PART).any() for at in slices(split.parts.size))
    made = ColumnSchema(COLUMN, "dense", "int8", optional=is_optional, role="split")
    columns = split.owner.columns
    old = [at for at, one in enumerate(columns) if is_replaced(one)]
    seeds = [at for at, one in enumerate(columns) if one.role == "seeds"]
    at = min(old or seeds or [len(columns)])
    before, behind = ([one for one in some if not is_replaced(one)] for some in (columns[:at], columns[at:]))
    return (*before, made, *behind, *drawn)
