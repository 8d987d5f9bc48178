"""Move the arrays of one type in one partition, and write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from graphprep.model.metadata import ArrayEntry, part_name
from graphprep.stages.move_rows import SortedRows, move_entries
from graphprep.stages.moves import Array, Blocks, Ints, Room, move
from graphprep.stages.stored_files import StoredFile
from graphprep.stages.stored_items import Items, StoredCounts, StoredItems, compose_offsets, read_offsets
from graphprep.storage.arrays import StoreReader
from graphprep.storage.publish import StoreWriter


class PartFiles:
    """Writes arrays of partitions, and keeps their manifest entries."""

    def __init__(self, writer: StoreWriter, num_parts: int) -> None:
        self.writer = writer
        self.entries: list[list[ArrayEntry]] = [[] for _ in range(num_parts)]

    def write(self, part: int, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterable[Array]) -> None:
        """Write an array of a partition, piece by piece."""
        array = self.writer.open_array(part_name(part, len(self.entries)), path, dtype, shape)
        for piece in pieces:
            array.append(piece)
        self.entries[part].append(array.close())

    def write_offsets(self, part: int, path: str, size: int, counts: Iterable[Ints]) -> None:
        """Write offsets (int64[size + 1]) from the counts between them."""
        self.write(part, path, "int64", (size + 1,), _offsets(counts))


def _offsets(counts: Iterable[Ints]) -> Iterator[Ints]:
    total = 0
    yield np.zeros(1, np.int64)
    for some in counts:
        if some.size:
            ends = np.cumsum(some) + total
            total = int(ends[-1])
            yield ends


class PartMover:
    """Moves arrays that belong to the rows of one partition.

    ``blocks`` are the rows' places, ``sorted_rows`` those of their entries where these change theirs inside the row, too.
    """

    def __init__(
        self, store: StoreReader, files: PartFiles, part: int, blocks: Blocks, room: Room, sorted_rows: SortedRows | None = None
    ) -> None:
        self._store = store
        self._files = files
        self._part = part
        self._room = room
        self._sorted_rows = sorted_rows
        self._offsets: dict[str, Ints] = {}
        self._blocks: dict[tuple[str, ...], Blocks] = {(): blocks}

    def write(self, files: Iterable[StoredFile]) -> None:
        """Write arrays under the paths where they stood."""
        for file in files:
            reader = self._store.array(self._part, file.path)
            items: Items = StoredCounts(reader) if file.is_offsets else StoredItems(reader)
            pieces = self.move(items, file.chain)
            if file.is_offsets:
                self._files.write_offsets(self._part, file.path, items.size, pieces)
            else:
                self._files.write(self._part, file.path, reader.entry.dtype, reader.shape, pieces)

    def move(self, items: Items, chain: tuple[str, ...] = ()) -> Iterator[Array]:
        """Yield items in their new order; ``chain`` are the offsets that lead to them.

        Raises DataError where there are not as many as the offsets say.
        """
        offsets = [self._read_offsets(path) for path in chain]
        items.check_size(int(offsets[-1][-1]) if offsets else self._blocks[()].num_items)
        if self._sorted_rows is not None:
            return move_entries(items, self._sorted_rows, offsets, self._room)
        return move(items, self._blocks_at(chain), self._room)

    def _blocks_at(self, chain: tuple[str, ...]) -> Blocks:
        """Return the rows' blocks among the items that a chain of offsets leads to."""
        if chain not in self._blocks:
            scratch = self._room.scratch
            bounds = compose_offsets(self._blocks_at(chain[:-1]).bounds, self._read_offsets(chain[-1]), scratch)
            self._blocks[chain] = Blocks.of(self._blocks[()].order, bounds, scratch)
        return self._blocks[chain]

    def _read_offsets(self, path: str) -> Ints:
        """Read offsets; the last is the length of the arrays that they belong to."""
        if path not in self._offsets:
            is_entries = path.endswith(".entry_offsets.npy")
            stem, values = path.removesuffix(".entry_offsets.npy" if is_entries else ".offsets.npy"), "values"
            num_items = self._store.array(self._part, f"{stem}.{'start' if is_entries else values}.npy").shape[0]
            self._offsets[path] = read_offsets(self._store.array(self._part, path), num_items, self._room.scratch)
        return self._offsets[path]
