"""Edge columns in the row order of the layout that is not the primary one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.store import DerivedFiles, DerivedStore
from graphprep.edges.moves import Blocks, Workspace
from graphprep.model.schema import Layout
from graphprep.rewrite.move_parts import CutFiles, PartMover
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.files import column_files
from graphprep.store.items import StoredItems, check_ids
from graphprep.store.paths import LayoutPaths
from graphprep.store.single import WholeStore

Ints = NDArray[np.int64]
_STEP = 1 << 18


def move_edge_columns(ready: DerivedStore, files: DerivedFiles, number: int, layout: Layout, room: Workspace) -> None:
    """Write an edge type's columns in the row order of a layout that names edge rows.

    Raises DataError where the store's arrays are faulty.
    """
    schema, folder = ready.metadata.edge_schemas[number], ready.edge_folder(number)
    if not schema.columns and not schema.num_slots:
        return
    with room.scratch.inner() as scratch:
        path, whole = LayoutPaths(f"{folder}/{layout}").edge_rows, WholeStore(ready)
        sizes = [ready.array(part, path).shape[0] for part in range(ready.metadata.num_parts)]
        num_edges = ready.metadata.num_edges_per_type[number]
        order = read_order(StoredItems(whole.array(0, path)), num_edges, "edge row", scratch)
        target, folders = CutFiles(files, np.array(sizes, np.int64)), (folder, f"{folder}/{layout}")
        mover = PartMover(whole, target, 0, Blocks(order), replace(room, scratch=scratch), folders=folders)
        mover.write(column_files(folder, schema.columns, num_slots=schema.num_slots))
    files.show(ready)


def read_order(items: StoredItems, size: int, what: str, scratch: Scratch) -> Ints:
    """Return stored numbers, each of which must be one of 0..size-1: mapped where they are local, as int64.

    Raises DataError where one is not.
    """
    items.check_size(size)
    is_mapped = items.is_mapped and items.reader.dtype == np.int64
    order = np.asarray(items.whole()) if is_mapped else scratch.zeros(size, np.int64)
    for start in range(0, size, _STEP):
        some = items.read(start, min(start + _STEP, size))
        check_ids(items, start, some, size, what)
        if not is_mapped:
            order[start : start + some.size] = some
    return order
