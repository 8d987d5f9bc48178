"""Which arrays a type has in a partition, and how their items belong to its nodes or edges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from graphprep.model.schema import ColumnSchema, RawIdKind
from graphprep.store.paths import ColumnPaths, NodePaths, num_slots_path

Chain = tuple[str, ...]


@dataclass(frozen=True)
class StoredFile:
    """An array: ``chain`` are the offsets that lead from a row to its items, none where row r is item r.

    ``is_offsets``: it holds offsets itself, so that what moves are the counts that these stand for.
    """

    path: str
    chain: Chain = ()
    is_offsets: bool = False


def raw_id_files(folder: str, kind: RawIdKind) -> Iterator[StoredFile]:
    """Yield the arrays of a node type's raw IDs."""
    if kind == "string":
        yield from _ragged_files(f"{folder}/raw_ids")
    elif kind != "identity":
        yield StoredFile(NodePaths(folder).raw_ids)


def column_files(folder: str, columns: Iterable[ColumnSchema], *, num_slots: bool) -> Iterator[StoredFile]:
    """Yield the arrays of a type's columns."""
    for column in columns:
        yield from _files_of(f"{folder}/{column.path}", column)
    if num_slots:
        yield StoredFile(num_slots_path(folder))


def _files_of(stem: str, column: ColumnSchema) -> Iterator[StoredFile]:
    if column.optional:
        yield StoredFile(ColumnPaths(stem).present)
    if column.kind == "dense":
        yield StoredFile(f"{stem}.npy")
    elif column.kind == "temporal":
        entries, values = ColumnPaths(stem).entry_offsets, ColumnPaths(stem).offsets
        yield StoredFile(entries, is_offsets=True)
        yield StoredFile(values, (entries,), is_offsets=True)
        for name in ("start", "end") if column.end else ("start",):
            yield StoredFile(f"{stem}.{name}.npy", (entries,))
        yield StoredFile(ColumnPaths(stem).values, (entries, values))
    else:
        yield from _ragged_files(stem)
        if column.kind == "sparse":
            yield StoredFile(ColumnPaths(stem).coords, (ColumnPaths(stem).offsets,))


def _ragged_files(stem: str) -> Iterator[StoredFile]:
    offsets = ColumnPaths(stem).offsets
    yield StoredFile(offsets, is_offsets=True)
    yield StoredFile(ColumnPaths(stem).values, (offsets,))
