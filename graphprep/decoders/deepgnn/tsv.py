"""DeepGNN's TSV: a row per node, ``id<TAB>type<TAB>weight<TAB>features<TAB>neighbours``."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.deepgnn.plain import PlainFormat, PlainRows, decode_plainly
from graphprep.decoders.deepgnn.slots import (
    FoundSlots,
    Words,
    check_weight,
    code_types,
    dtype_code,
    first_of_lines,
    float_limit,
    make_more_room,
    make_room,
    raise_first,
    show,
    side_chunk,
)
from graphprep.kernels.cpu.deepgnn import plain_tsv as plain
from graphprep.kernels.cpu.deepgnn import tsv as kernels
from graphprep.kernels.cpu.deepgnn.plain_rows import Room
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawEdges, RawNodes, RawRows, Relation

_CODES = {
    "f": "float32",
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "d": "float64",
    "double": "float64",
    "i": "int64",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    "u": "uint64",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "b": "binary",
    "binary": "binary",
}
_RULES = {
    kernels.NODE_ID: ("node_id", "an integer from 0 to 18446744073709551615"),
    kernels.NODE_TYPE: ("node_type", "an integer from 0 to 2147483647"),
    kernels.NODE_WEIGHT: ("node_weight", "a number"),
    kernels.DST: ("dst_id", "an integer from 0 to 18446744073709551615"),
    kernels.EDGE_TYPE: ("edge_type", "an integer from 0 to 2147483647"),
    kernels.EDGE_WEIGHT: ("edge_weight", "a number"),
}
_MANUAL_NEIGHBOR = re.compile(rb" *([0-9]+) *, *[0-9]+ *,[^,]*, *[0-9]+ *,[^,]*")  # as DeepGNN's manual has it
_SEPARATOR = np.frombuffer(b" ", np.uint8)
_NO_ESCAPE = np.frombuffer(b"", np.uint8)


@dataclass(frozen=True)
class TsvDecoder:
    """Decodes rows of five cells; the last four may be empty or missing.

    Features are ``code:values`` separated by ``;``, the slot is the position; neighbours are
    ``dst,type,weight,features``, separated by ``|``; edges keep their order. Source: ``TsvDecoder`` of DeepGNN, and its manual
    for the codes ``i`` and ``u`` and for neighbours of five fields. ``default_node_weight`` (None: 0) is the weight of a node
    that states none, or has no row.
    """

    name: ClassVar[str] = "tsv"

    weight_dtype: str = "float32"
    default_node_weight: float | None = None

    def __post_init__(self) -> None:
        if self.weight_dtype not in ("float32", "float64"):
            raise UsageError(f"--weight-dtype must be float32 or float64, found {self.weight_dtype!r}")
        check_weight("--default-node-weight", self.default_node_weight, self.weight_dtype)

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Scatter one span a file."""
        spans, weight = tuple(Span(url) for url in urls), float(self.default_node_weight or 0.0)
        return Sources(spans, nodes="records", always_weighted=True, created_weight=weight)

    def widen(self, columns: Mapping[str, str]) -> TsvDecoder:
        """Return the decoder itself: TSV states its dtypes."""
        return self

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole rows.

        Raises DecodeError for the first field that is wrong.
        """
        if places:
            return self._decode_any(block.data, places)
        form = PlainFormat(
            scan=self._scan, build=self._build, walk=self._decode_any, node_bytes=32, edge_bytes=8, value_bytes=6
        )
        return decode_plainly(block.data, form)

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty line on its own, in input order."""
        walk = _Walk(self, block.data, num_faults=block.data.count(b"\n") + 2)
        walk.run()
        return first_of_lines(block.data, [*walk.faults(), *map(walk.at_raw, walk.found_slots().faults())])

    def _no_weight(self) -> float:
        return float(self.default_node_weight or 0.0)

    def _scan(self, buf: NDArray[np.uint8], last: int, room: Room, progress: NDArray[np.int64]) -> int:
        """Scan plain rows."""
        return plain.scan(buf, last, float_limit(self.weight_dtype), self._no_weight(), _plain_grammar(), room, progress)

    def _build(self, found: PlainRows) -> RawRows:
        """Copy what was scanned."""
        room, nodes, edges = found.room, slice(found.num_nodes), slice(found.num_edges)
        node_fixed = _Fixed(room.node_types[nodes], room.node_weights[nodes], room.node_num_slots[nodes])
        edge_fixed = _Fixed(room.edge_types[edges], room.edge_weights[edges], room.edge_num_slots[edges])
        src, dst = room.edge_src[edges].copy(), room.edge_dst[edges]
        return RawRows(
            nodes=self._nodes(room.node_ids[nodes], node_fixed, found.node_columns),
            edges=self._edges(src, dst, edge_fixed, found.edge_columns) if found.num_edges else None,
            num_records=found.num_nodes,
        )

    def _decode_any(self, data: bytes, places: bool = False) -> RawRows:
        """Decode rows however they are written."""
        walk = _Walk(self, data)
        walk.run()
        node_slots, edge_slots, slot_fault = walk.found_slots().columns()
        raise_first((*walk.faults(), slot_fault and walk.at_raw(slot_fault)))
        num_nodes, num_edges = int(walk.progress[kernels.NODES]), int(walk.progress[kernels.EDGES])
        found, found_edges = walk.nodes, walk.edges
        record = found_edges.record[:num_edges].copy()
        node_fixed = _Fixed(found.types[:num_nodes], found.weights[:num_nodes], found.num_slots[:num_nodes])
        edge_fixed = _Fixed(found_edges.types[:num_edges], found_edges.weights[:num_edges], found_edges.num_slots[:num_edges])
        nodes = self._nodes(found.ids[:num_nodes], node_fixed, node_slots)
        edges = self._edges(found.ids[record], found_edges.dst[:num_edges], edge_fixed, edge_slots)
        if places:
            at_dst = [walk.raw_offset(at) for at in found_edges.at[:num_edges].tolist()]
            nodes = replace(nodes, at=found.at[:num_nodes].copy())
            edges = replace(edges, at_src=found.at[record], at_dst=np.array(at_dst, np.int64), record=record)
        return RawRows(nodes=nodes if num_nodes else None, edges=edges if num_edges else None, num_records=num_nodes)

    def _nodes(self, ids: NDArray[np.uint64], fixed: _Fixed, slots: tuple[ColumnChunk, ...]) -> RawNodes:
        types, names = code_types(fixed.types)
        weights = fixed.weights.astype(self.weight_dtype)
        return RawNodes(
            ids=ids.copy(),
            types=types,
            type_names=names,
            columns=(side_chunk("weight", self.weight_dtype, weights), *slots),
            num_slots=fixed.num_slots.copy(),
        )

    def _edges(
        self, src: NDArray[np.uint64], dst: NDArray[np.uint64], fixed: _Fixed, slots: tuple[ColumnChunk, ...]
    ) -> RawEdges:
        """Make edges; ``src`` is theirs to keep."""
        types, names = code_types(fixed.types)
        weights = fixed.weights.astype(self.weight_dtype)
        return RawEdges(
            src=src,
            dst=dst.copy(),
            relations=types,
            relation_names=tuple(Relation(name) for name in names),
            columns=(side_chunk("weight", self.weight_dtype, weights), *slots),
            num_slots=fixed.num_slots.copy(),
        )


@dataclass(frozen=True)
class _Fixed:
    """The fixed cells of nodes, or the fixed fields of neighbours, besides their IDs."""

    types: NDArray[np.int32]
    weights: NDArray[np.float64]
    num_slots: NDArray[np.int32]


class _Walk:
    """One block on its way through the kernel, up to so many faults: the arrays it fills, and how far it is."""

    def __init__(self, decoder: TsvDecoder, data: bytes, num_faults: int = 1) -> None:
        self.decoder = decoder
        self.data = data
        self.buf = np.frombuffer(data, np.uint8).copy()  # the kernel closes ranks in quoted cells
        num_lines = data.count(b"\n") + 1
        self.nodes = _node_room(num_lines)
        num_edges = num_lines + data.count(b"|")
        self.edges = _edge_room(num_edges)
        words = _known_words()
        self.slots = kernels.Slots(
            *make_room(len(data)),
            words=words.words,
            word_stops=words.stops,
            word_dtypes=words.codes,
        )
        self.progress = np.zeros(kernels.NUM_PROGRESS, np.int64)
        self.noted = np.empty((num_faults, kernels.NUM_PROGRESS), np.int64)

    def run(self) -> None:
        """Walk to the end, or to the last fault that there is room for."""
        limit, no_weight = float_limit(self.decoder.weight_dtype), self.decoder._no_weight()
        rows = (self.nodes, self.edges)
        while kernels.walk(self.buf, limit, no_weight, *rows, self.slots, self.progress, self.noted) == kernels.FULL:
            self._grow()

    def faults(self) -> list[DecodeError]:
        """Word what is wrong with rows."""
        return [_Fault(self, noted).worded() for noted in self.noted[: self.progress[kernels.FAULTS]].tolist()]

    def found_slots(self) -> FoundSlots:
        """Return what was noted so far."""
        buf = self.buf.view()
        buf.flags.writeable = False  # as EdgeList's: one compiled signature serves both
        return FoundSlots(
            buf=buf,
            delimiter=_SEPARATOR,
            escape=_NO_ESCAPE,
            slots=self.slots.slots[: self.progress[kernels.SLOTS]],
            groups=self.slots.groups[: self.progress[kernels.GROUPS]],
        )

    def raw_offset(self, at: int) -> int:
        """Return where in the block a byte of the walked text stands: cells with doubled quotes have closed ranks."""
        line = self.data.rfind(b"\n", 0, at) + 1
        if b'""' not in self.data[line:at]:
            return at
        while line < at:  # cell after cell
            if self.data[line : line + 1] != b'"':
                stop = self.data.find(b"\t", line)
                if stop < 0 or stop >= at:
                    return at
                line = stop + 1
                continue
            wanted = at - line - 1
            line += 1
            while wanted > 0 and not (self.data[line] == 0x22 and self.data[line + 1 : line + 2] != b'"'):
                line += 2 if self.data[line] == 0x22 else 1
                wanted -= 1
            if wanted == 0:
                return line
            line += 2  # the closing quote and the tab
        return at

    def at_raw(self, fault: DecodeError) -> DecodeError:
        """Move a fault to where it stands in the block."""
        fault.at = self.raw_offset(fault.at)
        return fault

    def _grow(self) -> None:
        num_slots, num_groups = int(self.progress[kernels.SLOTS]), int(self.progress[kernels.GROUPS])
        slots, groups, buckets = make_more_room(self.slots[:3], num_slots, num_groups)
        self.slots = self.slots._replace(slots=slots, groups=groups, buckets=buckets)
        pos = int(self.progress[kernels.POS])
        self.buf[pos:] = np.frombuffer(self.data, np.uint8)[pos:]  # the row is read again


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a row, as the kernel noted it."""

    walk: _Walk
    noted: list[int]

    def worded(self) -> DecodeError:
        """Say what the kernel found wrong."""
        code, at, end = (self.noted[i] for i in (kernels.FAULT, kernels.FAULT_AT, kernels.FAULT_END))
        if code in (kernels.OPEN_QUOTE, kernels.AFTER_QUOTE, kernels.EXTRA_COLUMN):
            return self._cell_fault(code, at, show(self.walk.data[at:end]))
        found = show(self._blamed())
        at = self.walk.raw_offset(at)
        if code == kernels.BAD_FIELD:
            name, rule = _RULES[self.noted[kernels.FAULT_FIELD]]
            rule += f" that fits {self.walk.decoder.weight_dtype}" if name.endswith("weight") else ""
            return DecodeError(f"field {name!r} must be {rule}, found {found}", at=at, fix="correct the field")
        if code in (kernels.NO_COLON, kernels.UNKNOWN_CODE, kernels.NO_VALUES):
            return self._slot_fault(code, at, found)
        return self._neighbor_fault(code, at, found)

    def _blamed(self) -> bytes:
        return self.walk.buf[self.noted[kernels.FAULT_AT] : self.noted[kernels.FAULT_END]].tobytes()

    def _cell_fault(self, code: int, at: int, found: str) -> DecodeError:
        problem, fix = {
            kernels.OPEN_QUOTE: (
                f"a quoted cell is not closed on its line: {found}",
                "close the quote, or double it and quote the cell; a cell has no line breaks",
            ),
            kernels.AFTER_QUOTE: (
                f"a tab or the end of the line must follow a closing quote, found {found}",
                "double the quotes inside a quoted cell",
            ),
            kernels.EXTRA_COLUMN: (f"a row has five columns, found a sixth: {found}", "quote a cell that holds tabs"),
        }[code]
        return DecodeError(problem, at=at, fix=fix)

    def _slot_fault(self, code: int, at: int, found: str) -> DecodeError:
        problem, fix = {
            kernels.NO_COLON: (
                f"must be 'code:values', found {found}",
                "write a code such as f or b and a colon before the values; a text holds no ';'",
            ),
            kernels.UNKNOWN_CODE: (f"has an unknown code {found}", f"use one of {', '.join(_CODES)}"),
            kernels.NO_VALUES: (f"has no values: {found}", "leave the entry empty to skip the slot"),
        }[code]
        return DecodeError(f"feature slot {self.noted[kernels.FAULT_SLOT]} {problem}", at=at, fix=fix)

    def _neighbor_fault(self, code: int, at: int, found: str) -> DecodeError:
        form = "write neighbours as dst_id,edge_type,edge_weight,features"
        count = self.noted[kernels.FAULT_COUNT]
        if code == kernels.MANY_NEIGHBOR_FIELDS and (manual := _MANUAL_NEIGHBOR.fullmatch(self._blamed())):
            problem = "a neighbour of five fields (source, destination, weight, type, features) must name its row's node first"
            return DecodeError(f"{problem}, found {manual[1].decode()!r}", at=at, fix=form)
        problem, fix = {
            kernels.EMPTY_NEIGHBOR: ("a neighbour is empty", "remove the '|' that is too many"),
            kernels.FEW_NEIGHBOR_FIELDS: (f"a neighbour needs dst_id and edge_type, found {found}", form),
            kernels.MANY_NEIGHBOR_FIELDS: (
                f"a neighbour has up to four fields, found {count}: {found}",
                f"{form}; a text holds no ','",
            ),
        }[code]
        return DecodeError(problem, at=at, fix=fix)


def _node_room(num_rows: int) -> kernels.Nodes:
    """Allocate; what is not written is never touched."""
    return kernels.Nodes(
        ids=np.empty(num_rows, np.uint64),
        at=np.empty(num_rows, np.int64),
        types=np.empty(num_rows, np.int32),
        weights=np.empty(num_rows, np.float64),
        num_slots=np.empty(num_rows, np.int32),
    )


def _edge_room(num_rows: int) -> kernels.Edges:
    """Allocate; what is not written is never touched."""
    return kernels.Edges(
        dst=np.empty(num_rows, np.uint64),
        at=np.empty(num_rows, np.int64),
        types=np.empty(num_rows, np.int32),
        weights=np.empty(num_rows, np.float64),
        num_slots=np.empty(num_rows, np.int32),
        record=np.empty(num_rows, np.int64),
    )


@functools.cache
def _known_words() -> Words:
    return Words.of([(code.encode(), dtype_code(dtype)) for code, dtype in _CODES.items()])


@functools.cache
def _plain_grammar() -> plain.PlainGrammar:
    return plain.make_grammar({code: dtype_code(dtype) for code, dtype in _CODES.items()})
