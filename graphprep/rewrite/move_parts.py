"""Move the arrays of one type, and write them: those of a partition as one, or those of all, cut into new partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

import numpy as np

from graphprep.edges.move_rows import SortedRows, move_entries
from graphprep.edges.moves import Array, Blocks, Ints, Then, Workspace, move
from graphprep.store.files import Chain, StoredFile
from graphprep.store.items import Items, StoredArrays, StoredCounts, StoredItems, compose_offsets, read_offsets
from graphprep.store.write import PartedArray, PartedOffsets, PartList

_STEP = 1 << 17  # rows of an array that is held


class RowFiles(Protocol):
    """Writes arrays that belong to rows; ``chain`` are the offsets that lead from a row to an array's items."""

    def write(self, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterable[Array], chain: Chain = ()) -> None:
        """Write an array, piece by piece."""

    def write_offsets(self, path: str, size: int, counts: Iterable[Ints], chain: Chain = ()) -> None:
        """Write offsets (int64[size + 1]) from the counts between them."""

    def below(self, path: str) -> RowFiles:
        """Return what writes arrays that belong to the items of offsets, which are written."""


class PartFiles(PartList):
    """Writes arrays of partitions, and keeps their manifest entries."""

    def write(self, part: int, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterable[Array]) -> None:
        """Write an array of a partition, piece by piece."""
        array = self.open(part, path, np.dtype(dtype), shape)
        for piece in pieces:
            array.append(piece)
        self.entries[part].append(array.close())


class OnePart:
    """Writes the arrays of one partition."""

    def __init__(self, files: PartFiles, part: int) -> None:
        self._files = files
        self._part = part

    def write(self, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterable[Array], chain: Chain = ()) -> None:
        """See ``RowFiles``."""
        self._files.write(self._part, path, dtype, shape, pieces)

    def write_offsets(self, path: str, size: int, counts: Iterable[Ints], chain: Chain = ()) -> None:
        """See ``RowFiles``."""
        self._files.write(self._part, path, "int64", (size + 1,), _offsets(counts))

    def below(self, path: str) -> OnePart:
        """See ``RowFiles``."""
        return self


class CutFiles:
    """Writes the arrays of rows of which ``sizes`` (int64[P]) belong to each partition."""

    def __init__(self, files: PartList, sizes: Ints) -> None:
        self._files = files
        self._sizes: dict[Chain, Ints] = {(): sizes}

    def write(self, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterable[Array], chain: Chain = ()) -> None:
        """See ``RowFiles``."""
        array = PartedArray(self._files, path, dtype, self._sizes[chain], shape[1:])
        for piece in pieces:
            array.append(piece)
        array.close()

    def write_offsets(self, path: str, size: int, counts: Iterable[Ints], chain: Chain = ()) -> None:
        """See ``RowFiles``."""
        sizes = self._sizes[chain]
        offsets, borders = PartedOffsets(self._files, path, sizes), np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        totals, first = np.zeros(sizes.size, np.int64), 0
        for some in counts:
            offsets.append(some)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(some)])
            totals += np.diff(ends[np.clip(borders - first, 0, some.size)])
            first += some.size
        offsets.close()
        self._sizes[*chain, path] = totals

    def below(self, path: str) -> CutFiles:
        """See ``RowFiles``."""
        return CutFiles(self._files, self._sizes[path,])


def array_pieces(array: Array) -> Iterator[Array]:
    """Yield an array in pieces."""
    for start in range(0, len(array), _STEP):
        yield array[start : start + _STEP]


def _same(items: Array) -> Array:
    return items


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

    ``blocks`` are the rows' places, ``sorted_rows`` those of their entries where these change theirs inside the row, too. What
    begins with the first of ``folders`` begins with the second where it is written.
    """

    def __init__(
        self,
        store: StoredArrays,
        files: RowFiles,
        part: int,
        blocks: Blocks,
        room: Workspace,
        sorted_rows: SortedRows | None = None,
        folders: tuple[str, str] = ("", ""),
    ) -> None:
        self._store = store
        self._files = files
        self._part = part
        self._room = room
        self._sorted_rows = sorted_rows
        self._old, self._new = folders
        self._offsets: dict[str, Ints] = {}
        self._blocks: dict[Chain, Blocks] = {(): blocks}

    def write(self, files: Iterable[StoredFile], then: Mapping[str, Then] | None = None) -> None:
        """Write arrays under the paths where they stood; ``then``, by path, is what their items become."""
        for file in files:
            reader = self._store.array(self._part, file.path)
            items: Items = StoredCounts(reader) if file.is_offsets else StoredItems(reader)
            pieces, path, chain = self.move(items, file.chain), self._rename(file.path), tuple(map(self._rename, file.chain))
            if file.is_offsets:
                self._files.write_offsets(path, items.size, pieces, chain)
            else:
                pieces = map((then or {}).get(file.path, _same), pieces)
                self._files.write(path, reader.entry.dtype, reader.shape, pieces, chain)

    def move(self, items: Items, chain: Chain = ()) -> Iterator[Array]:
        """Yield items in their new order; ``chain`` are the offsets that lead to them.

        Raises DataError where there are not as many as the offsets say.
        """
        offsets = [self._read_offsets(path) for path in chain]
        items.check_size(int(offsets[-1][-1]) if offsets else self._blocks[()].num_items)
        if self._sorted_rows is not None:
            return move_entries(items, self._sorted_rows, offsets, self._room)
        return move(items, self._blocks_at(chain), self._room)

    def _rename(self, path: str) -> str:
        assert path.startswith(self._old)
        return self._new + path[len(self._old) :]

    def _blocks_at(self, chain: Chain) -> Blocks:
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
