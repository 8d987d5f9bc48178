"""How large a graph becomes: nodes and edges by type, and the bytes of rows on their way and of the store's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from graphprep.convert.build.write import StoreShape
from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.decoded.rows import IdRange, IdSpaces
from graphprep.convert.index.nodes import BeyondError, settle_range
from graphprep.convert.index.resolve import NodeMap
from graphprep.convert.read.decode import DecodeSettings
from graphprep.convert.run import Run
from graphprep.edges.build import settle_index_dtype
from graphprep.model.errors import DataError
from graphprep.model.options.plan import Estimate
from graphprep.model.protocols import DeclaredNodes, Sources
from graphprep.model.rows import ColumnKey, Relation
from graphprep.plan.tally import ColumnTally, IdTally, Owner, Tally
from graphprep.store.assign import order_types

_INDPTR_BYTES = 8
_MANIFEST_BYTES = 220  # an array
_METADATA_BYTES = 1500
_HEADER_BYTES = 128  # of an array
_NARROW = 2**32
_EARLY_HIGH = 2**31
_RECORD_BYTES = 8  # of a packed edge on its way to its bucket
_WIDE_RECORD_BYTES = 16
_ROW_BYTES = 4  # of a column's value on its way, beside it

Columns = Mapping[tuple[Owner, ColumnKey], ColumnTally]


@dataclass(frozen=True)
class GraphSizes:
    """What a store will hold. ``raw_ids``: how raw IDs are stored, by node type. ``maps`` are what raw IDs are looked up in.

    ``decode_runs``, ``shuffle_runs`` are the bytes of rows behind these stages; ``is_early``: edges are scattered as they are
    decoded. ``store_bytes`` are those of files, by kind.
    """

    num_nodes: Mapping[str, Estimate]
    num_edges: Mapping[str, Estimate]
    distinct_ids: Mapping[str, Estimate]
    raw_ids: Mapping[str, str]
    amounts: Amounts
    shape: StoreShape
    maps: Mapping[str, NodeMap]
    decode_runs: int
    shuffle_runs: int
    text_runs: int
    is_early: bool
    store_bytes: Mapping[str, int]
    notes: tuple[str, ...] = ()


def measure(run: Run, sources: Sources, found: Tally, settings: DecodeSettings, num_parts: int) -> GraphSizes:
    """Work out how large things become from what samples hold.

    Raises what ``convert`` raises for IDs that flags do not allow.
    """
    work = _Sizes(run, sources, found, settings, num_parts)
    work.find_nodes()
    return work.finish()


@dataclass
class _Sizes:
    run: Run
    sources: Sources
    found: Tally
    settings: DecodeSettings
    num_parts: int
    nodes: dict[str, Estimate] = field(default_factory=dict)
    distinct: dict[str, Estimate] = field(default_factory=dict)
    raw_ids: dict[str, str] = field(default_factory=dict)
    maps: dict[str, NodeMap] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def total_nodes(self) -> int:
        return sum(one.value for one in self.nodes.values())

    # ---- nodes

    def find_nodes(self) -> None:
        """Find the node types, their numbers and how their raw IDs are stored."""
        if self.sources.nodes == "records":
            kind, own = "string" if self.found.node_ids.are_texts else "int64", self.found.node_ids
            listed = [node.name for node in self.sources.node_types]
            for name in [*listed, *order_types(sorted(set(self.found.node_rows) - set(listed)))]:
                self._add(name, self.found.count(name, self.found.node_rows.get(name, 0.0)), kind)
            self.maps[""] = self._map(own, self.total_nodes, kind)
            return
        for node in self.sources.node_types:
            self._declared(node)
        for name in order_types(sorted(set(self.found.node_rows) - set(self.nodes))):
            self._add(name, self.found.count(name, self.found.node_rows[name]), "int64")

    def _declared(self, node: DeclaredNodes) -> None:
        numbers, space = self.run.options.num_nodes, IdSpaces(self.sources).of_type(node.name)
        given = numbers.get(node.name, numbers.get("", node.num_nodes))
        own = self.found.ids.get(space) or self.found.ids.get(node.name) or IdTally()
        if own.pieces:
            self.distinct[node.name] = self.found.distinct(space if space in self.found.ids else node.name)
        if self.sources.nodes == "identity" or (node.num_nodes is not None and node.has_records):
            self._add(node.name, Estimate.exactly(node.num_nodes or 0), "identity")
        elif node.has_records:
            rows = self.found.node_rows.get(node.name, 0.0)
            texts = own.are_texts or self.found.node_ids.are_texts
            kind = "string" if texts else "identity" if self._counts(node.name) else "int64"
            self._add(node.name, self.found.count(node.name, rows), kind)
            self.maps[space] = self._map(own, round(rows), kind)
        else:
            self._ends(node, space, own, given)

    def _counts(self, name: str) -> bool:
        """Return whether the records of a type are 0..n-1 in order, so that raw IDs are typed IDs."""
        return self.found.are_counted(name) and self.run.options.partition_by == "range"

    def _ends(self, node: DeclaredNodes, space: str, own: IdTally, given: int | None) -> None:
        """Settle a type whose nodes are the ends of its edges, or 0..n-1."""
        none = Estimate.exactly(0)
        is_text = own.are_texts and not (own.are_integers and space in self.sources.auto_ids)
        if is_text:
            self._add(node.name, self.distinct.get(node.name, none), "string")
        elif self.sources.nodes == "tables":
            known = self.distinct.get(node.name, none) if given is None else Estimate.exactly(given)
            self._add(node.name, known, "int64" if given is None else "identity")
        else:
            self._ranged(node.name, space, own, given)
        count = self.nodes[node.name].value
        self.maps[space] = self._map(own, count, self.raw_ids[node.name])

    def _ranged(self, name: str, space: str, own: IdTally, given: int | None) -> None:
        options, limit = self.run.options, self.run.memory.limit_bytes
        reach = IdRange(own.low, own.high if given is not None else own.highest)
        try:
            settled = settle_range(name, space, reach, given, round(self.found.num_edges), options, limit)
        except BeyondError as error:
            raise DataError(
                f"node {error.highest} is outside [0, {error.num_nodes})",
                fix=f"raise --num-nodes to {error.highest + 1} or more, or correct the ID",
            ) from None
        if settled.num_nodes is None:
            self._add(name, self.distinct.get(name, Estimate.exactly(0)), "int64")
            return
        least = given if given is not None else own.high + 1
        most = settled.num_nodes + (settled.num_nodes - least)
        self._add(name, Estimate(settled.num_nodes, least, most), "identity")

    def _add(self, name: str, number: Estimate, kind: str) -> None:
        self.nodes[name] = number
        self.raw_ids[name] = kind
        if kind != "identity" or name in self.distinct:
            self.distinct.setdefault(name, number)

    def _map(self, own: IdTally, number: int, kind: str) -> NodeMap:
        if kind == "identity" and self.run.options.partition_by == "range":
            return NodeMap(number)
        highest = -1 if kind == "string" or len(self.nodes) > 1 else own.highest
        return NodeMap(number, rows=lambda: iter(()), highest=highest)

    # ---- bytes

    def finish(self) -> GraphSizes:
        """Work out the bytes."""
        found, sources = self.found, self.sources
        edges = {}
        stated = dict(zip(sources.edge_types, sources.num_edges or (), strict=False))
        for relation in [*sources.edge_types, *(one for one in found.edges if one not in sources.edge_types)]:
            said = stated.get(relation)
            number = found.count(relation, found.edges.get(relation, 0.0)) if said is None else Estimate.exactly(said)
            edges[_name_of(relation)] = number
        num_edges = sum(one.value for one in edges.values())
        has_texts = "string" in self.raw_ids.values()
        columns = {key: one for key, one in found.columns.items() if one.rows}
        of_edges = [one for (owner, _), one in columns.items() if isinstance(owner, Relation)]
        raw_bytes = sum(self._raw_bytes(name) for name in self.nodes)
        amounts = Amounts(
            num_node_rows=round(found.num_node_rows),
            num_edges=num_edges,
            column_bytes=round(sum(one.decoded_bytes for one in columns.values())),
            num_nodes=self.total_nodes,
            raw_id_bytes=raw_bytes,
            has_texts=has_texts,
            by_ends=sources.nodes == "ends",
            has_aligned=found.has_aligned,
        )
        shape = StoreShape(self.num_parts, len(self.nodes), len(edges), len(columns) - len(of_edges), len(of_edges))
        is_early = self._is_early(bool(columns), has_texts)
        return GraphSizes(
            self.nodes,
            edges,
            self.distinct,
            self.raw_ids,
            amounts,
            shape,
            self.maps,
            decode_runs=self._decode_runs(columns, num_edges, is_early),
            shuffle_runs=self._shuffle_runs(columns, num_edges),
            text_runs=raw_bytes if has_texts else 0,
            is_early=is_early,
            store_bytes=self._store_bytes(columns, edges, shape),
            notes=tuple(self.notes),
        )

    def _is_early(self, has_columns: bool, has_texts: bool) -> bool:
        """Return whether edges are scattered while they are decoded."""
        sources = self.sources
        plain = sources.nodes == "ends" and len(sources.edge_types) == 1 and not (sources.auto_ids or sources.signed_ids)
        is_text = all(span.kind == "text" for span in sources.spans)
        low = all(one.high < _EARLY_HIGH for one in self.found.ids.values()) and set(self.raw_ids.values()) == {"identity"}
        return self.settings.early is not None and plain and is_text and low and not has_columns and not has_texts

    def _raw_bytes(self, name: str) -> int:
        """Return the bytes of a type's raw IDs in the store."""
        number, kind = self.nodes[name].value, self.raw_ids[name]
        if kind != "string":
            return 0 if kind == "identity" else 8 * number
        own = self.found.ids.get(IdSpaces(self.sources).of_type(name)) or self.found.node_ids
        mean = own.mean_text_bytes or self.found.node_ids.mean_text_bytes
        return round(number * (mean + 8))

    def _decode_runs(self, columns: Columns, num_edges: int, is_early: bool) -> int:
        if is_early:
            return _RECORD_BYTES * num_edges
        wide = self.found.ids and max(one.high for one in self.found.ids.values()) >= _NARROW
        end = 8 if wide or any(one.are_texts for one in self.found.ids.values()) else 4
        edge = 2 * end + (4 if len(self.found.edges) > 1 and self.sources.nodes == "records" else 0)
        cells = sum(_value_bytes(key, one) for (_, key), one in columns.items())
        return num_edges * edge + round(self.found.num_node_rows) * 12 + round(cells)

    def _shuffle_runs(self, columns: Columns, num_edges: int) -> int:
        bits = max(1, self.total_nodes).bit_length() + max(1, num_edges).bit_length()
        record = _RECORD_BYTES if bits <= 64 else _WIDE_RECORD_BYTES
        cells = sum(_value_bytes(key, one) + _ROW_BYTES * one.rows for (_, key), one in columns.items())
        return num_edges * record * len(self.run.options.layouts) + round(cells)

    def _store_bytes(
        self,
        columns: Columns,
        edges: Mapping[str, Estimate],
        shape: StoreShape,
    ) -> dict[str, int]:
        options = self.run.options
        sizes = dict.fromkeys(("indptr", "indices", "edge_ids", "raw_ids", "node columns", "edge columns", "metadata"), 0)
        for name, number in edges.items():
            src, _, dst = _ends_of(name)
            for layout in options.layouts:
                owner, other = (dst, src) if layout == "csc" else (src, dst)
                rows = self.nodes[owner].value if owner in self.nodes else self.total_nodes // max(1, len(self.nodes))
                others = self.nodes[other].value if other in self.nodes else self.total_nodes
                sizes["indptr"] += _INDPTR_BYTES * (rows + self.num_parts)
                sizes["indices"] += number.value * _width(options.index_dtype, others)
                sizes["edge_ids"] += number.value * _width(options.index_dtype, number.value) if options.edge_ids else 0
        sizes["raw_ids"] = sum(map(self._raw_bytes, self.nodes))
        for (of, key), column in columns.items():
            kind = "edge columns" if isinstance(of, Relation) else "node columns"
            total = edges[_name_of(of)] if isinstance(of, Relation) else self.nodes.get(of, Estimate.exactly(0))
            sizes[kind] += self._column_bytes(key, column, total.value)
        arrays = self.num_parts * (sum(kind != "identity" for kind in self.raw_ids.values()) + len(columns))
        arrays += self.num_parts * (2 + options.edge_ids) * len(options.layouts) * len(edges)
        sizes["metadata"] = _METADATA_BYTES + arrays * (_MANIFEST_BYTES + _HEADER_BYTES)
        return {name: number for name, number in sizes.items() if number}

    def _column_bytes(self, key: ColumnKey, column: ColumnTally, total: int) -> int:
        dtype = self.run.options.weight_dtype if key.role == "weight" else key.dtype
        values = column.values * np.dtype(dtype).itemsize
        if key.family == "numbers" and column.width is not None:
            return round(total * column.width * np.dtype(dtype).itemsize)
        return round(max(values, column.decoded_bytes - 16 * column.rows)) + 8 * total


def _value_bytes(key: ColumnKey, column: ColumnTally) -> float:
    """Return what a column's values take on their way."""
    if key.family == "numbers" and column.width is not None:
        return column.values * np.dtype(key.dtype).itemsize
    return column.decoded_bytes


def _width(asked: str, most: int) -> int:
    dtype: Callable[[str, int], str] = settle_index_dtype  # type: ignore[assignment]
    return np.dtype(dtype(asked, most)).itemsize


def _name_of(relation: Relation) -> str:
    """Name an edge type; ``*`` stands for types of ends that only the whole input tells."""
    return f"{relation.src_type or '*'}:{relation.name}:{relation.dst_type or '*'}"


def _ends_of(name: str) -> tuple[str, str, str]:
    src, _, rest = name.partition(":")
    relation, _, dst = rest.rpartition(":")
    return src, relation, dst


def spills(sizes: GraphSizes, pool_bytes: int) -> Iterator[int]:
    """Yield the bytes that go to temporary files behind each stage."""
    for runs in (sizes.decode_runs + sizes.text_runs, sizes.shuffle_runs):
        yield max(0, runs - pool_bytes)
