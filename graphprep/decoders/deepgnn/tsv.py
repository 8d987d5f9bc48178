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
    FixedColumns,
    FoundSlots,
    Noted,
    Walk,
    check_weight,
    dtype_code,
    first_of_lines,
    raise_first,
    show,
)
from graphprep.kernels.cpu.deepgnn import plain_tsv as plain
from graphprep.kernels.cpu.deepgnn import tsv as kernels
from graphprep.kernels.cpu.deepgnn.plain_rows import Room
from graphprep.kernels.cpu.deepgnn.slots import FLOAT_LIMITS
from graphprep.kernels.cpu.deepgnn.walk import BAD_FIELD, EDGES, NODES, POS, Words
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import RawRows

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
        walk = _Walk(self, block.data, every=True)
        walk.run()
        return first_of_lines(block.data, [*walk.faults(), *map(walk.at_raw, walk.found().faults())])

    def _no_weight(self) -> float:
        return float(self.default_node_weight or 0.0)

    def _scan(self, buf: NDArray[np.uint8], last: int, room: Room, progress: NDArray[np.int64]) -> int:
        """Scan plain rows."""
        return plain.scan(buf, last, FLOAT_LIMITS[self.weight_dtype], self._no_weight(), _plain_grammar(), room, progress)

    def _build(self, found: PlainRows) -> RawRows:
        """Copy what was scanned."""
        nodes, edges = found.owners(self.weight_dtype)
        return RawRows(nodes, edges if found.num_edges else None, num_records=found.num_nodes)

    def _decode_any(self, data: bytes, places: bool = False) -> RawRows:
        """Decode rows however they are written."""
        walk = _Walk(self, data)
        walk.run()
        node_slots, edge_slots, slot_fault = walk.found().columns()
        raise_first((*walk.faults(), slot_fault and walk.at_raw(slot_fault)))
        num_nodes, num_edges = int(walk.progress[NODES]), int(walk.progress[EDGES])
        ours, some, their, others = walk.nodes, slice(num_nodes), walk.edges, slice(num_edges)
        record = their.record[others].copy()
        fixed = FixedColumns.of(ours.types[some], ours.weights[some], ours.num_slots[some], self.weight_dtype)
        nodes = fixed.nodes(ours.ids[some], node_slots)
        fixed = FixedColumns.of(their.types[others], their.weights[others], their.num_slots[others], self.weight_dtype)
        edges = fixed.edges(ours.ids[record], their.dst[others], edge_slots)
        if places:
            at_dst = np.array([walk.raw_offset(at) for at in their.at[others].tolist()], np.int64)
            nodes = replace(nodes, at=ours.at[some].copy())
            edges = replace(edges, at_src=ours.at[record], at_dst=at_dst, record=record)
        return RawRows(nodes=nodes if num_nodes else None, edges=edges if num_edges else None, num_records=num_nodes)


class _Walk(Walk):
    """One block on its way through the kernel: the arrays it fills, and how far it is."""

    def __init__(self, decoder: TsvDecoder, data: bytes, every: bool = False) -> None:
        super().__init__(data, np.frombuffer(data, np.uint8).copy(), every)  # the kernel closes ranks in quoted cells
        self.decoder = decoder
        num_lines = data.count(b"\n") + 1
        self.nodes = _node_room(num_lines)
        self.edges = _edge_room(num_lines + data.count(b"|"))

    def step(self) -> int:
        """See ``kernels.walk``."""
        limit, no_weight = FLOAT_LIMITS[self.decoder.weight_dtype], self.decoder._no_weight()
        return kernels.walk(self.buf, limit, no_weight, self.nodes, self.edges, self.slots, _known_words(), self.progress)

    def grow(self) -> None:
        """Double what is full; the row is read again."""
        super().grow()
        pos = int(self.progress[POS])
        self.buf[pos:] = np.frombuffer(self.data, np.uint8)[pos:]

    def faults(self) -> list[DecodeError]:
        """Word what is wrong with rows."""
        return [_Fault(self, noted).worded() for noted in self.noted]

    def found(self) -> FoundSlots:
        """Return what was noted so far."""
        return self.found_slots(_SEPARATOR, _NO_ESCAPE)

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


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a row, as the kernel noted it."""

    walk: _Walk
    noted: Noted

    def worded(self) -> DecodeError:
        """Say what the kernel found wrong."""
        code, at, end = self.noted.code, self.noted.at, self.noted.end
        if code in (kernels.OPEN_QUOTE, kernels.AFTER_QUOTE, kernels.EXTRA_COLUMN):
            return self._cell_fault(code, at, show(self.walk.data[at:end]))
        found = show(self._blamed())
        at = self.walk.raw_offset(at)
        if code == BAD_FIELD:
            name, rule = _RULES[self.noted.field]
            rule += f" that fits {self.walk.decoder.weight_dtype}" if name.endswith("weight") else ""
            return DecodeError(f"field {name!r} must be {rule}, found {found}", at=at, fix="correct the field")
        if code in (kernels.NO_COLON, kernels.UNKNOWN_CODE, kernels.NO_VALUES):
            return self._slot_fault(code, at, found)
        return self._neighbor_fault(code, at, found)

    def _blamed(self) -> bytes:
        return self.walk.buf[self.noted.at : self.noted.end].tobytes()

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
        return DecodeError(f"feature slot {self.noted.slot} {problem}", at=at, fix=fix)

    def _neighbor_fault(self, code: int, at: int, found: str) -> DecodeError:
        form = "write neighbours as dst_id,edge_type,edge_weight,features"
        count = self.noted.count
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
