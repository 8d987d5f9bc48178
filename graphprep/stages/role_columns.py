"""Make columns labels, splits and seeds, once they are dealt out and settled, before they are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text_dictionary import TextDictionary
from graphprep.model.errors import DataError, MemoryLimitError, UsageError
from graphprep.model.graph_schema import GraphSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.stages.cells import Cells, cells_from, scalar_cells
from graphprep.stages.observe import StoredColumn
from graphprep.stages.random_splits import SPLIT_KEY, add_parts
from graphprep.stages.roles import (
    NO_PART,
    PART_NAMES,
    Owner,
    OwnerRoles,
    RoleFlag,
    Roles,
    SplitRule,
    check_edge_types,
    missing_column,
    owner_words,
)
from graphprep.stages.route import Routing
from graphprep.stages.seeds import find_seeds
from graphprep.stages.shuffle import BucketPlan, ColumnRoute, FlatRows, plan_buckets
from graphprep.stages.split_values import BAD, bad_value, mask_codes, split_codes
from graphprep.stages.write import TypedEdges, TypedNodes
from graphprep.storage.runs import Runs

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage

Ints = NDArray[np.int64]
SEEDS_KEY = ColumnKey("seeds", "numbers", "bool", role="seeds")

_MOST_CATEGORIES = 1 << 20
_MOST_NAME_BYTES = 64 << 20
_NAME_BYTES = 200  # what a category takes beside its name, in the dictionary, as Python's text and in metadata.json
_NAME_COPIES = 6  # of its bytes, on that way
_ROW_BYTES = 18  # of a row of a split in its bucket: row, part, and their sorted copies


@dataclass(frozen=True)
class Parts:
    """How many rows of a type's split lie in which part: train, valid, test, none."""

    owner: Owner
    counts: tuple[int, int, int, int]


@dataclass
class _OwnerColumns:
    """The columns of one node or edge type, while roles are given to them."""

    owner: Owner
    roles: OwnerRoles
    routes: dict[ColumnKey, ColumnRoute]
    num_rows: int
    offsets: Ints
    plan: BucketPlan
    columns: list[StoredColumn]
    row_words: Callable[[int, int], str]

    @property
    def words(self) -> str:
        """Name the type."""
        return owner_words(self.owner)


class RoleGiver:
    """Gives roles to the columns of all types."""

    def __init__(
        self,
        routing: Routing,
        storage: Storage,
        nodes: Sequence[TypedNodes],
        edges: Sequence[TypedEdges],
        schema: GraphSchema | None = None,
    ) -> None:
        """``schema``: that of the store, where it is fixed beforehand."""
        self.routing = routing
        self.storage = storage
        self.schema = schema
        self.nodes = list(nodes)
        self.edges = list(edges)
        self.notes: list[str] = []
        self.parts: list[Parts] = []

    def give(self, roles: Roles) -> None:
        """Give all roles.

        Raises UsageError for types and columns that are not there, or not fit for the role; DataError for values that are not.
        """
        check_edge_types(roles, [edge.edge_type for edge in self.edges])
        for i, node in enumerate(self.nodes):
            if node.name in roles.owners:
                own = self._of_nodes(node, roles.of(node.name))
                self._give(own)
                self.nodes[i] = replace(node, columns=tuple(own.columns))
        for i, edge in enumerate(self.edges):
            if edge.edge_type in roles.owners:
                own = self._of_edges(edge, roles.of(edge.edge_type))
                self._give(own)
                self.edges[i] = replace(edge, columns=tuple(own.columns))
        self.routing.factory.desk.clear()

    def _of_nodes(self, node: TypedNodes, roles: OwnerRoles) -> _OwnerColumns:
        index, rules = self.routing.index, self.routing.rules
        plan = plan_buckets(node.route.num_rows, node.route.num_rows * _ROW_BYTES, rules.bucket_bytes)

        def row_words(row: int, _: int) -> str:
            return f"node {raw_id(self.routing, node.number, row)} of type {node.name!r}"

        offsets = index.part_offsets[node.number]
        return _OwnerColumns(
            node.name, roles, node.route.columns, node.route.num_rows, offsets, plan, list(node.columns), row_words
        )

    def _of_edges(self, edge: TypedEdges, roles: OwnerRoles) -> _OwnerColumns:
        route = edge.route
        owner_type = route.dst_type if self.routing.rules.primary == "csc" else route.src_type

        def row_words(_: int, edge_id: int) -> str:
            return f"edge {edge_id} of type {edge_type_text(edge.edge_type)!r}"

        offsets = self.routing.index.part_offsets[owner_type]
        columns = list(edge.columns)
        return _OwnerColumns(edge.edge_type, roles, route.columns, route.num_edges, offsets, route.plan, columns, row_words)

    def _give(self, own: _OwnerColumns) -> None:
        for flag in own.roles.labels:
            self._label(own, flag)
        split = own.roles.split
        if split is not None and split.rule is not None:
            self._random_split(own, split, split.rule)
        elif split is not None and split.files:
            self._split_by_files(own, split)
        elif split is not None and len(split.columns) == 1:
            self._split(own, split)
        elif split is not None:
            self._masks(own, split)
        if own.roles.seeds:
            self._seeds(own)

    # Finding columns

    def _find(self, own: _OwnerColumns, flag: RoleFlag, name: str) -> int:
        """Return the position of a column.

        Raises UsageError where there is none, or it has a role already.
        """
        for i, column in enumerate(own.columns):
            if column.schema.name == name and column.schema.role is None:
                return i
        taken = [column for column in own.columns if column.schema.name == name]
        if taken:
            raise UsageError(
                f"column {name!r} of {own.words} is its {taken[0].schema.role} already", place=flag.place, fix="use another one"
            )
        there = [column.schema.name for column in own.columns if column.schema.role is None]
        raise missing_column(flag, own.owner, name, there, self._elsewhere(own.owner, name))

    def _elsewhere(self, owner: Owner, name: str) -> Iterator[str]:
        """Yield how a flag would name a column of that name of other types."""
        types = [(node.name, node.columns) for node in self.nodes]
        types += [(edge_type_text(edge.edge_type), edge.columns) for edge in self.edges]
        own = owner if isinstance(owner, str) else edge_type_text(owner)
        for other, columns in types:
            if other != own and any(column.schema.name == name and column.schema.role is None for column in columns):
                yield f"{other}:{name}"

    def _refuse_name(self, own: _OwnerColumns, flag: RoleFlag, name: str) -> None:
        if any(column.schema.name == name for column in own.columns):
            raise UsageError(
                f"{own.words} has a column {name!r} already",
                place=flag.place,
                fix=f"drop or rename that column, or use it: --{flag.role} with its name",
            )

    # Labels

    def _label(self, own: _OwnerColumns, flag: RoleFlag) -> None:
        at = self._find(own, flag, flag.columns[0])
        column = own.columns[at]
        if column.schema.kind in ("sparse", "temporal"):
            raise UsageError(
                f"column {column.schema.name!r} of {own.words} is {column.schema.kind}",
                place=flag.place,
                fix="a label must be numbers or a text",
            )
        own.columns[at] = replace(column, schema=replace(column.schema, role="label"))
        if column.schema.kind == "binary":
            own.columns[at] = self._categories(own, flag, column)

    def _categories(self, own: _OwnerColumns, flag: RoleFlag, column: StoredColumn) -> StoredColumn:
        """Replace texts by the numbers of their categories, in name order."""
        schema = column.schema
        fixed = schema.categories
        met = TextDictionary() if fixed is None else TextDictionary.of([name.encode() for name in fixed])
        plan = own.routes[column.keys[0]].plan
        numbered = _Stream(self.routing, plan)
        for _, rows, ids, cells in _drain(own, column):
            codes = met.add(_offsets(cells), cells.flat.view(np.uint8))
            self._check_categories(own, flag, schema.name, met)
            numbered.add(rows, ids, codes)
        names = met.texts()
        order = sorted(range(len(names)), key=names.__getitem__) if fixed is None else list(range(len(names)))
        ranks = np.empty(len(names), np.int64)
        ranks[order] = np.arange(len(names))
        key = ColumnKey(schema.name, "numbers", "int64", schema.slot, "label")
        route = self.routing.factory.column(own.routes, key, plan.num_rows, plan)
        for rows, ids, codes in numbered.drain():
            route.add(rows, ids, scalar_cells(ranks[codes]), own.offsets)
        texts = tuple(_utf8(own, flag, schema.name, names[i]) for i in order)
        count = f"{len(texts):,} categories" if len(texts) != 1 else "1 category"
        self.notes.append(f"{own.words}: label {schema.name!r} has {count}")
        stored = ColumnSchema(schema.name, "dense", "int64", (), schema.optional, schema.slot, "label", categories=texts)
        return StoredColumn(stored, (key,))

    def _check_categories(self, own: _OwnerColumns, flag: RoleFlag, name: str, met: TextDictionary) -> None:
        if met.count > _MOST_CATEGORIES or met.num_bytes > _MOST_NAME_BYTES:
            raise DataError(
                f"label {name!r} of {own.words} has more than {_MOST_CATEGORIES:,} different texts, "
                f"or {_MOST_NAME_BYTES >> 20} MiB of them",
                place=flag.place,
                fix="number the labels in the data, or leave out the flag: then the column stays text",
            )
        need = _NAME_BYTES * met.count + _NAME_COPIES * met.num_bytes
        if need > 2 * self.routing.rules.cap_bytes:
            raise MemoryLimitError(
                f"the {met.count:,} or more categories of label {name!r} of {own.words} do not fit the memory limit",
                place=flag.place,
                fix="raise --memory-limit, or number the labels in the data",
            )

    # Splits

    def _split(self, own: _OwnerColumns, flag: RoleFlag) -> None:
        """Replace the values of a column by 0, 1 and 2."""
        at = self._find(own, flag, flag.columns[0])
        column = own.columns[at]
        if column.schema.dtype == "bool":
            raise UsageError(
                f"column {column.schema.name!r} of {own.words} is bool, so a mask",
                place=flag.place,
                fix="name three masks: TYPE:train_mask,valid_mask,test_mask",
            )
        key = ColumnKey(column.schema.name, "numbers", "int8", column.schema.slot, "split")
        route = self._new_route(own, key, own.routes[column.keys[0]].plan)
        counts = np.zeros(4, np.int64)
        for from_key, rows, ids, cells in _drain(own, column):
            codes = split_codes(from_key, cells)
            _refuse_bad(own, flag, from_key, rows, ids, cells, codes, is_mask=False)
            counts[:3] += np.bincount(codes, minlength=3)
            route.add(rows, ids, scalar_cells(codes), own.offsets)
        own.columns[at] = self._stored_split(own, key, counts, slot=column.schema.slot)

    def _masks(self, own: _OwnerColumns, flag: RoleFlag) -> None:
        """Make one split of three masks."""
        found = [(part, self._find(own, flag, name)) for part, name in enumerate(flag.columns) if name]
        taken = [own.columns[at] for _, at in found]
        route = self._new_route(own, SPLIT_KEY, own.plan)
        counts = np.zeros(4, np.int64)
        for (part, _), column in zip(found, taken, strict=True):
            for key, rows, ids, cells in _drain(own, column):
                codes = mask_codes(key, cells)
                _refuse_bad(own, flag, key, rows, ids, cells, codes, is_mask=True)
                chosen = np.flatnonzero(codes)
                counts[part] += chosen.size
                some = None if ids is None else ids[chosen]
                route.add(rows[chosen], some, scalar_cells(np.full(chosen.size, part, np.int8)), own.offsets)
        self.routing.factory.desk.clear()
        self._check_overlap(own, flag, route)
        first = min(at for _, at in found)
        own.columns[:] = [column for column in own.columns if column not in taken]
        self._refuse_name(own, flag, SPLIT_KEY.name)
        own.columns.insert(first, self._stored_split(own, SPLIT_KEY, counts))

    def _check_overlap(self, own: _OwnerColumns, flag: RoleFlag, route: ColumnRoute) -> None:
        """Raise DataError for the first node or edge that is in two parts."""
        found = []
        for bucket in range(route.plan.num_buckets):
            size = route.runs.num_bytes(bucket)
            passes = max(1, -(-2 * size // max(1, self.routing.rules.cap_bytes)))
            for number in range(passes):
                found += list(_overlaps(route, bucket, number, passes))
        if found:
            row, edge_id, one, other = min(found)
            raise DataError(
                f"{own.row_words(row, edge_id)} is in two parts, {PART_NAMES[one]} and {PART_NAMES[other]}",
                place=flag.place,
                fix="keep it in one of them",
            )

    def _random_split(self, own: _OwnerColumns, flag: RoleFlag, rule: SplitRule) -> None:
        self._refuse_name(own, flag, SPLIT_KEY.name)
        counts = np.zeros(4, np.int64)
        if isinstance(own.owner, str):
            route = self._new_route(own, SPLIT_KEY, own.plan)
            number = self.routing.index.type_names.index(own.owner)
            for hashes, typed in self.routing.index.hashes(number):
                add_parts(route, rule.parts(hashes), typed, None, own.offsets, counts)
        else:  # dealt out with the edges
            counts[:3] = self.routing.edge_parts.get(own.owner, np.zeros(3, np.int64))
            if SPLIT_KEY not in own.routes:
                self._new_route(own, SPLIT_KEY, own.plan)
        own.columns.append(self._stored_split(own, SPLIT_KEY, counts))

    def _split_by_files(self, own: _OwnerColumns, flag: RoleFlag) -> None:
        """Make a split of three files of nodes."""
        self._refuse_name(own, flag, SPLIT_KEY.name)
        dealer = self.routing.factory.dealer(own.plan)
        for part, file in enumerate(flag.files):
            for typed in self._listed(own, flag, file) if file else ():
                dealer.add(FlatRows((typed, np.full(typed.size, part, np.int8))))
        dealer.flush()
        route = self._new_route(own, SPLIT_KEY, own.plan)
        counts = np.zeros(4, np.int64)
        for bucket in range(own.plan.num_buckets):
            for rows, parts in _distinct(dealer.runs, bucket):
                add_parts(route, parts, rows, None, own.offsets, counts)
        dealer.runs.close()
        self.routing.factory.desk.clear()
        self._check_overlap(own, flag, route)
        own.columns.append(self._stored_split(own, SPLIT_KEY, counts))

    # Files of nodes

    def _listed(self, own: _OwnerColumns, flag: RoleFlag, file: str) -> Iterator[Ints]:
        """Yield the typed IDs of the nodes that a file names."""
        index = self.routing.index
        url = self.storage.join(flag.base, file) if flag.base else file
        number = index.type_names.index(str(own.owner))
        return find_seeds(self.storage, url, index, number, self.routing.rules.cap_bytes)

    def _seeds(self, own: _OwnerColumns) -> None:
        """Mark the nodes that the files name."""
        self._refuse_name(own, own.roles.seeds[0], SEEDS_KEY.name)
        dealer = self.routing.factory.dealer(own.plan)
        for flag in own.roles.seeds:
            for typed in self._listed(own, flag, flag.files[0]):
                dealer.add(FlatRows((typed,)))
        dealer.flush()
        route = self._new_route(own, SEEDS_KEY, own.plan)
        for bucket in range(own.plan.num_buckets):
            found = [rows for (rows,) in dealer.runs.read(bucket)]
            rows = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
            route.add(rows, None, scalar_cells(np.ones(rows.size, bool)), own.offsets)
        dealer.runs.close()
        count = int(route.stats.rows.sum())
        self.notes.append(f"{own.words}: {count:,} seed{'' if count == 1 else 's'}")
        own.columns.append(StoredColumn(ColumnSchema(SEEDS_KEY.name, "dense", "bool", role="seeds"), (SEEDS_KEY,)))

    def _new_route(self, own: _OwnerColumns, key: ColumnKey, plan: BucketPlan) -> ColumnRoute:
        return self.routing.factory.column(own.routes, key, plan.num_rows, plan)

    def _stored_split(self, own: _OwnerColumns, key: ColumnKey, counts: Ints, slot: int | None = None) -> StoredColumn:
        """Note the parts and return the column."""
        counts[NO_PART] = own.num_rows - counts[:NO_PART].sum()
        train, valid, test, none = counts.tolist()
        self.parts.append(Parts(own.owner, (train, valid, test, none)))
        fixed = self._fixed(own.owner, key.name)
        if fixed is not None and none and not fixed.optional:
            raise DataError(
                f"column {key.name!r} of {own.words} is missing from {none} of {own.num_rows} rows",
                place="" if self.schema is None else self.schema.place,
                fix='add the values, or say "optional": true in the schema',
            )
        optional = bool(none) or (fixed is not None and fixed.optional)
        rest = f", {none:,} in no part" if none else ""
        self.notes.append(f"{own.words}: split {key.name!r}: {train:,} train, {valid:,} valid, {test:,} test{rest}")
        return StoredColumn(ColumnSchema(key.name, "dense", "int8", (), optional, slot, "split"), (key,))

    def _fixed(self, owner: Owner, name: str) -> ColumnSchema | None:
        """Return what the schema says of a column."""
        if self.schema is None:
            return None
        columns = self.schema.nodes[owner] if isinstance(owner, str) else self.schema.edges[owner]
        return next((column for column in columns.columns if column.name == name), None)


class _Stream:
    """Chunks of (rows, edge IDs, codes) that are held back until their codes are known."""

    def __init__(self, routing: Routing, plan: BucketPlan) -> None:
        self._runs = Runs(routing.pool, plan.num_buckets)
        self._plan = plan

    def add(self, rows: Ints, ids: Ints | None, codes: NDArray[np.int32]) -> None:
        """Keep a chunk; all its rows lie in one bucket."""
        bucket = int(rows[0] // self._plan.width) if rows.size else 0
        self._runs.append(bucket, (rows, ids, codes))

    def drain(self) -> Iterator[tuple[Ints, Ints | None, NDArray[np.int32]]]:
        """Yield all chunks, and drop them."""
        for bucket in range(self._plan.num_buckets):
            yield from self._runs.read(bucket)
            self._runs.free(bucket)
        self._runs.close()


def _drain(own: _OwnerColumns, column: StoredColumn) -> Iterator[tuple[ColumnKey, Ints, Ints | None, Cells]]:
    """Yield (key, rows, edge IDs, cells) of a column, bucket after bucket, and drop them."""
    routes = [(key, own.routes.pop(key)) for key in column.keys]
    for bucket in range(routes[0][1].plan.num_buckets):
        for key, route in routes:
            for rows, ids, *parts in route.runs.read(bucket):
                yield key, rows, ids, cells_from(parts)
            route.runs.free(bucket)
    for _, route in routes:
        route.runs.close()


def _distinct(runs: Runs, bucket: int) -> Iterator[tuple[Ints, NDArray[np.int8]]]:
    """Yield a bucket's (rows, parts), each pair once."""
    found = [rows * 4 + parts for rows, parts in runs.read(bucket)]
    if found:
        pairs = np.unique(np.concatenate(found))
        yield pairs >> 2, (pairs & 3).astype(np.int8)


def _offsets(cells: Cells) -> Ints:
    offsets = np.zeros(cells.num_rows + 1, np.int64)
    np.cumsum(cells.item_counts, out=offsets[1:])
    return offsets


def _utf8(own: _OwnerColumns, flag: RoleFlag, name: str, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise DataError(
            f"label {name!r} of {own.words} has a text that is not UTF-8: {text[:40]!r}",
            place=flag.place,
            fix="write the labels in UTF-8, or as numbers",
        ) from None


def _refuse_bad(
    own: _OwnerColumns,
    flag: RoleFlag,
    key: ColumnKey,
    rows: Ints,
    ids: Ints | None,
    cells: Cells,
    codes: NDArray[np.int8],
    *,
    is_mask: bool,
) -> None:
    """Raise DataError for the first row without a part."""
    bad = np.flatnonzero(codes == BAD)
    if bad.size:
        at = int(bad[np.argmin(rows[bad] if ids is None else ids[bad])])
        who = own.row_words(int(rows[at]), -1 if ids is None else int(ids[at]))
        raise DataError(
            f"{who}: {bad_value(key, cells, at, is_mask)}",
            place=flag.place,
            fix="correct the value, or leave it out where the row is in no part",
        )


def _overlaps(route: ColumnRoute, bucket: int, number: int, passes: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (row, edge ID, part, other part) of the first row of a bucket that is there twice, of every ``passes``-th."""
    pieces = []
    for rows, ids, *parts in route.runs.read(bucket):
        names = rows if ids is None else ids
        own = np.flatnonzero(names % passes == number)
        pieces.append((names[own].astype(np.int64), rows[own].astype(np.int64), cells_from(parts).flat[own]))
    if not pieces:
        return
    names, rows, codes = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(names, kind="stable")
    again = np.flatnonzero(names[order][1:] == names[order][:-1])
    if again.size:
        one, other = order[again[0]], order[again[0] + 1]
        yield int(rows[one]), int(names[one]), int(codes[one]), int(codes[other])


def raw_id(routing: Routing, number: int, typed: int) -> str:
    """Return a node's raw ID, for messages."""
    for batch, found in routing.index.raw(number):
        at = np.flatnonzero(found == typed)
        if at.size:
            return batch.words(int(at[0]))
    raise AssertionError("a node without a raw ID")


__all__ = ["Parts", "RoleGiver"]
