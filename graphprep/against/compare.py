"""Compare two stores row by row, whatever the order of their rows: counts and sums first, then the rows that differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.against.cells import HashedColumn, match_columns
from graphprep.against.rows import HashedRows, OwnerRows
from graphprep.edges.moves import Workspace
from graphprep.engine.ledger import Need
from graphprep.kernels.cpu.ids.sums import RowSums, mix_hashes
from graphprep.model.errors import DataError
from graphprep.model.metadata import METADATA_NAME, GraphMetadata, part_name
from graphprep.model.rows import RawTexts
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema, edge_type_text
from graphprep.model.shown.texts import count
from graphprep.rewrite.split.rules import is_replaced
from graphprep.store.items import StoredArrays
from graphprep.store.paths import LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_ids import RawLookup

Ints = NDArray[np.int64]
_RANGE_BYTES = 24  # of a range of hashes: its sums and its count
_MOST_BITS = 16  # of ranges: what is counted of them stays in the cache
_FEW_ROWS = 1 << 10  # in a range: so many are looked at to name one that differs
_MOST_NAMED = 1 << 16  # rows that are looked at one by one
_SHOWN = 60  # characters of a raw ID


class InputRow(NamedTuple):
    """A row of the input that is to be found there: the ``rank``-th of ``num`` rows of a type with a hash."""

    type_number: int
    edges: bool
    hash: int
    rank: int
    num: int


@dataclass(frozen=True)
class Difference:
    """What is wrong: ``place`` in the store, "" where the row is not there; ``row`` of the input, None where none is meant."""

    place: str
    message: str
    row: InputRow | None = None


@dataclass(frozen=True)
class _Owner:
    """The nodes or edges of one type in both stores."""

    folder: str
    here: OwnerRows
    there: OwnerRows
    room: Workspace

    @property
    def stores(self) -> tuple[OwnerRows, OwnerRows]:
        return self.here, self.there


class Comparison:
    """Compares ``store`` with ``other``, a store of the input.

    ``found`` has the first ``most`` differences, ``num`` is how many there are, or at least: those of ranges that were not
    looked into count as one each. Types in ``split`` got a split that is none of the input.
    """

    def __init__(
        self, store: StoredArrays, other: StoredArrays, room: Workspace, most: int, split: Collection[str] = ()
    ) -> None:
        self._store = store
        self._other = other
        self._room = room
        self._most = most
        self._split = split
        self.found: list[Difference] = []
        self.num = 0

    def compare(self) -> Iterator[int]:
        """Compare all types, one after another; yield how many rows each has."""
        here, there = self._store.metadata, self._other.metadata
        for name in self._common("node", here.num_nodes_by_type(), there.num_nodes_by_type()):
            numbers = here.node_types.index(name), there.node_types.index(name)
            kinds = [metadata.node_schemas[at].raw_ids == "string" for metadata, at in zip((here, there), numbers, strict=True)]
            if kinds[0] != kinds[1]:
                words = ("numbers", "strings")
                self._add(node_folder(name), f"raw IDs are {words[kinds[0]]}, in the input {words[kinds[1]]}")
            else:
                yield from self._compare_owner(name, node_folder(name), numbers, edges=False)
        of_edges = [
            {edge_type_text(edge_type): number for number, edge_type in enumerate(metadata.edge_types)}
            for metadata in (here, there)
        ]
        for name in self._common("edge", here.num_edges_by_type(), there.num_edges_by_type()):
            numbers = of_edges[0][name], of_edges[1][name]
            yield from self._compare_owner(name, edge_folder(here.edge_types[numbers[0]]), numbers, edges=True)

    def _common(self, noun: str, here: dict[str, int], there: dict[str, int]) -> list[str]:
        """Return the types that are in both, and note the others, and those of which there are more in one."""
        for name, num in here.items():
            if name not in there:
                self._add(f"{METADATA_NAME}: {noun}_type", f"{noun} type {name!r} ({count(num, noun)}) is not in the input")
        for name, num in there.items():
            if name not in here:
                words = f"{noun} type {name!r} of the input ({count(num, noun)}) is not in the store"
                self._add(f"{METADATA_NAME}: {noun}_type", words)
            elif num != here[name]:
                words = f"{noun} type {name!r} has {count(here[name], noun)}, in the input {num:,}"
                self._add(f"{METADATA_NAME}: num_{noun}s_per_type", words)
        return [name for name in here if name in there]

    def _compare_owner(self, name: str, folder: str, numbers: tuple[int, int], *, edges: bool) -> Iterator[int]:
        metadata = self._store.metadata, self._other.metadata
        schemas = [
            (one.edge_schemas if edges else one.node_schemas)[number] for one, number in zip(metadata, numbers, strict=True)
        ]
        num_slots = schemas[0].num_slots, schemas[1].num_slots
        own, its = (self._of_input(name, schema.columns) for schema in schemas)
        pairs, said = match_columns(folder, own, its, num_slots=num_slots)
        for text in said:
            self._add(folder, text)
        here = OwnerRows(self._store, numbers[0], edges, [one for one, _ in pairs])
        there = OwnerRows(self._other, numbers[1], edges, [one for _, one in pairs])
        counts = [
            (one.num_edges_per_type if edges else one.num_nodes_per_type)[number]
            for one, number in zip(metadata, numbers, strict=True)
        ]
        few = max(counts) <= _FEW_ROWS  # a thread takes longer to start, and there may be thousands of such types
        owner = _Owner(folder, here, there, replace(self._room, threads=1) if few else self._room)
        bits = self._num_bits(max(counts), 1 + len(pairs))
        sums = [_sum(one, bits, owner.room) for one in owner.stores]
        if edges:
            _check_kept(folder, sums[1][0], metadata[1].edge_schemas[numbers[1]].checksum)
        yield sum(counts)
        differs = np.stack([mine.differs(its) for mine, its in zip(*sums, strict=True)])
        if differs.any():
            most = np.maximum(sums[0][0].counts, sums[1][0].counts)
            self._name(owner, np.flatnonzero(differs.any(axis=0)), most)

    def _of_input(self, name: str, columns: Sequence[ColumnSchema]) -> list[ColumnSchema]:
        """Return the columns of a type but for those that ``graphprep split`` gave it, or took."""
        drawn = [one for one in columns if one.role in NEGATIVE_ROLES or (name in self._split and is_replaced(one))]
        return [one for one in columns if one not in drawn]

    def _num_bits(self, num_rows: int, num_sums: int) -> int:
        """Return the logarithm of the number of ranges, of which each has a thousand rows or so, as far as memory allows."""
        most = self._room.piece_bytes // (2 * _RANGE_BYTES * num_sums)
        return max(1, min(_MOST_BITS, (num_rows // _FEW_ROWS).bit_length(), most.bit_length() - 1))

    # ---- which rows differ

    def _name(self, owner: _Owner, ranges: Ints, sizes: Ints) -> None:
        """Look into the ranges that differ, as many as is worth it, and note each row; ``sizes`` are those of all ranges."""
        looked = ranges[np.cumsum(sizes[ranges]) <= _MOST_NAMED]
        wanted = np.zeros(sizes.size, np.bool_)
        wanted[looked] = True
        here, there = (_Held(one, list(one.read(owner.room, wanted))) for one in owner.stores)
        lost = [value for value in there.by_hash if value not in here.by_hash]
        for value in (*sorted(here.by_hash, key=here.first), *sorted(lost, key=there.first)):
            self._match(owner, here, there, value)
        if ranges.size > looked.size:
            noun = "edge" if owner.here.edges else "node"
            more = f"more {noun}" if looked.size else noun
            self._add(owner.folder, f"at least {count(ranges.size - looked.size, more)} differ")

    def _match(self, owner: _Owner, here: _Held, there: _Held, value: int) -> None:
        """Note in what the rows of one hash, which are those of one node or of the same ends, differ."""
        own, its = here.by_hash.get(value, []), there.by_hash.get(value, [])
        more = _surplus(own, its, here, there)
        lost = _surplus(its, own, there, here)
        for mine, other in zip(more, lost, strict=False):
            self._note_change(owner, here, there, mine, other, self._input_row(owner, there, its, other, value))
        for mine in more[len(lost) :]:
            words = "is not in the input" if not its else f"is {_times(own)} in the store, in the input {_times(its)}"
            self._add(here.place(mine), lambda mine=mine, words=words: f"{here.words(mine)} {words}")
        for other in lost[len(more) :]:
            words = "is not in the store" if not own else f"is {_times(own)} in the store, in the input {_times(its)}"
            row = self._input_row(owner, there, its, other, value)
            self._add("", lambda other=other, words=words: f"{there.words(other)} {words}", row)

    def _note_change(self, owner: _Owner, here: _Held, there: _Held, mine: int, other: int, row: InputRow) -> None:
        for number, (own, its) in enumerate(zip(here.cells(mine), there.cells(other), strict=True)):
            if own != its:
                columns = owner.here.columns[number], owner.there.columns[number]

                def words(columns: tuple[HashedColumn, HashedColumn] = columns) -> str:
                    shown = here.show(mine, columns[0]), there.show(other, columns[1])
                    return f"{columns[0].name!r} of {here.words(mine)} is {shown[0]}, in the input {shown[1]}"

                self._add(here.place(mine, columns[0]), words, row)

    def _input_row(self, owner: _Owner, there: _Held, rows: Sequence[int], row: int, value: int) -> InputRow:
        ordered = sorted(rows, key=there.order)
        return InputRow(owner.there.number, owner.there.edges, value, ordered.index(row), len(rows))

    def _add(self, place: str, message: object, row: InputRow | None = None) -> None:
        """Note a difference; a message that is a function is asked where it is kept."""
        self.num += 1
        if len(self.found) < self._most:
            self.found.append(Difference(place, message() if callable(message) else str(message), row))


def _sum(owner: OwnerRows, bits: int, room: Workspace) -> list[RowSums]:
    """Sum the rows of one store, and the cells of each column."""
    sums = [RowSums(bits) for _ in range(1 + len(owner.columns))]
    for some in owner.read(room):
        sums[0].add(some.hashes, some.hashes)
        for column, (cells, present) in zip(sums[1:], some.cells, strict=True):
            hashes = some.hashes if present is None else some.hashes[present]
            column.add(hashes, mix_hashes(hashes, cells if present is None else cells[present]))
    return sums


def _surplus(these: Sequence[int], those: Sequence[int], here: _Held, there: _Held) -> list[int]:
    """Return the rows of these whose cells none of those has; of several that are alike the last."""
    left = Counter(map(there.cells, those))
    more = []
    for row in these:
        cells = here.cells(row)
        left[cells] -= 1
        if left[cells] < 0:
            more.append(row)
    return more


def _times(rows: Sequence[int]) -> str:
    return "once" if len(rows) == 1 else f"{len(rows)} times"


class _Held:
    """Rows of one store that are looked at one by one; they go by their position among these."""

    def __init__(self, owner: OwnerRows, pieces: Sequence[HashedRows]) -> None:
        self._owner = owner
        self._pieces = pieces
        self._metadata: GraphMetadata = owner.store.metadata
        self._firsts = np.concatenate([[0], np.cumsum([piece.rows.size for piece in pieces])]).astype(np.int64)
        self.by_hash: dict[int, list[int]] = {}
        row = 0
        for piece in pieces:
            for value in piece.hashes.tolist():
                self.by_hash.setdefault(value, []).append(row)
                row += 1

    def _at(self, row: int) -> tuple[HashedRows, int]:
        number = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return self._pieces[number], row - int(self._firsts[number])

    def cells(self, row: int) -> tuple[int | None, ...]:
        """Return the hashes of a row's cells, None for those it lacks."""
        piece, at = self._at(row)
        return tuple(int(cells[at]) if present is None or present[at] else None for cells, present in piece.cells)

    def order(self, row: int) -> tuple[int, int]:
        """Return a number by which a store of the input has its rows in the order of that: edges by ID, nodes as they stand."""
        piece, at = self._at(row)
        return (0, int(piece.ids[at])) if piece.ids is not None else (piece.part, int(piece.rows[at]))

    def first(self, value: int) -> tuple[int, int]:
        """Return where the first row of a hash stands among the others."""
        return min(map(self.order, self.by_hash[value]))

    def show(self, row: int, column: HashedColumn) -> str:
        """Return a row's cell as messages show it."""
        piece, at = self._at(row)
        return column.show(self._owner.store, piece.part, int(piece.rows[at]))

    def place(self, row: int, column: HashedColumn | None = None) -> str:
        """Return where a row stands in the store, or its cell."""
        piece, at = self._at(row)
        number = self._owner.number
        if column is not None:
            path = column.rows_path
        elif self._owner.edges:
            folder = edge_folder(self._metadata.edge_types[number])
            path = LayoutPaths(f"{folder}/{self._metadata.primary_layout}").indices
        else:
            folder = node_folder(self._metadata.node_types[number])
            kind = self._metadata.node_schemas[number].raw_ids
            paths = {"identity": folder, "string": NodePaths(folder).texts.offsets}
            path = paths.get(kind, NodePaths(folder).raw_ids)
        return f"{part_name(piece.part, self._metadata.num_parts)}/{path}[{int(piece.rows[at])}]"

    def words(self, row: int) -> str:
        """Return a node or edge as messages show it, by raw IDs."""
        piece, at = self._at(row)
        if piece.ends is None:
            first = sum(self._metadata.num_nodes_per_chunk[self._owner.number][: piece.part])
            return f"node {self._raw(self._owner.number, first + int(piece.rows[at]))}"
        src, _, dst = self._metadata.edge_types[self._owner.number]
        ends = zip((src, dst), piece.ends, strict=True)
        shown = [self._raw(self._metadata.node_types.index(name), int(ids[at])) for name, ids in ends]
        return f"edge {' -> '.join(shown)}"

    def _raw(self, number: int, typed: int) -> str:
        found = RawLookup(self._owner.store, number).of(np.array([typed], np.int64))
        return repr(found.text(0)[:_SHOWN]) if isinstance(found, RawTexts) else str(int(found[0]))


class LostEdgesError(DataError):
    """The temporary store of the input has other edges than were decoded: nothing can be said of the store by it."""


def _check_kept(folder: str, found: RowSums, decoded: str) -> None:
    """Hold the edges of the store of the input against their checksum, which was summed as they were decoded.

    Raises LostEdgesError where they are others.
    """
    if f"{found.checksum:016x}" != decoded:
        raise LostEdgesError(
            f"edges of the input were lost or changed in the temporary store: their checksum is {found.checksum:016x}, and was "
            f"{decoded} as they were decoded, so nothing can be said of the store",
            place=folder,
            fix="run again, with --tmp-dir on another disk; report it if it says so again",
        )


def compare_needs(room: Workspace) -> Iterator[Need]:
    """Declare what comparing takes."""
    yield from room.needs()
    yield Need("sums", room.piece_bytes, "of both stores, by ranges of hashes")
    yield Need("rows", 512 * _MOST_NAMED, f"{_MOST_NAMED:,} of each store, looked at one by one where sums differ")
