r"""DeepGNN's EdgeList: a line per node (``id,-1,type,weight,features``) and per edge (``src,type,dst,weight,features``)."""

from __future__ import annotations

import functools
import string
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
    code_types,
    dtype_code,
    first_of_lines,
    raise_first,
    show,
    side_chunk,
)
from graphprep.kernels.cpu.deepgnn import edgelist as kernels
from graphprep.kernels.cpu.deepgnn import plain_edgelist as plain
from graphprep.kernels.cpu.deepgnn.slots import DTYPES, EDGE, FLOAT_LIMITS, NODE, NOT_SPARSE
from graphprep.kernels.cpu.deepgnn.walk import BAD_FIELD, EDGES, MAX_TYPE, NODES, Words
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.option import flag_of
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import RawRows

_MAX_LENGTH = 2**31 - 1
_DTYPE_WORDS = (*DTYPES, "binary")
_OF_NUMBERS = frozenset(string.digits + string.ascii_letters + "+-.")  # what may stand in a number

_RULES = {
    kernels.NODE_ID: ("node_id", "an integer from 0 to 18446744073709551615"),
    kernels.SRC: ("src", "an integer from 0 to 18446744073709551615"),
    kernels.DST: ("dst", "an integer from 0 to 18446744073709551615"),
    kernels.NODE_TYPE: ("node_type", "an integer from 0 to 2147483647"),
    kernels.EDGE_TYPE: ("edge_type", "an integer from 0 to 2147483647"),
    kernels.NODE_WEIGHT: ("node_weight", "a number"),
    kernels.EDGE_WEIGHT: ("edge_weight", "a number"),
    kernels.CREATED_AT: ("created_at", "an integer"),
    kernels.REMOVED_AT: ("removed_at", "an integer"),
}


@dataclass(frozen=True)
class EdgeListDecoder:
    """Decodes node and edge lines, in any order.

    A ``default_*`` means that its column is absent from every line. ``*_feature_types`` and ``*_feature_lens`` are comma lists
    for the first slots; ``-`` stands in the line, and without lens every length does (an options file may have them as lists:
    ``["int8", null]``, ``[[3], [3, 2]]``). ``temporal``: lines have created_at and removed_at. The delimiters may be longer
    than one character.

    Raises UsageError for options that contradict each other. Source: ``EdgeListDecoder`` of DeepGNN.
    """

    name: ClassVar[str] = "edgelist"

    delimiter: str = ","
    length_delimiter: str = "/"
    binary_escape: str = "\\"
    temporal: bool = False
    default_node_type: int | None = None
    default_node_weight: float | None = None
    default_node_feature_types: str | None = None
    default_node_feature_lens: str | None = None
    default_edge_type: int | None = None
    default_edge_weight: float | None = None
    default_edge_feature_types: str | None = None
    default_edge_feature_lens: str | None = None
    default_created_at: int | None = None
    default_removed_at: int | None = None
    weight_dtype: str = "float32"

    def __post_init__(self) -> None:
        self._check_delimiters()
        if self.weight_dtype not in ("float32", "float64"):
            raise UsageError(f"--weight-dtype must be float32 or float64, found {self.weight_dtype!r}")
        for owner in ("node", "edge"):
            _check_int(f"default_{owner}_type", getattr(self, f"default_{owner}_type"), 0, MAX_TYPE)
            check_weight(flag_of(f"default_{owner}_weight"), getattr(self, f"default_{owner}_weight"), self.weight_dtype)
            for name in (f"default_{owner}_feature_types", f"default_{owner}_feature_lens"):
                object.__setattr__(self, name, _list_text(getattr(self, name)))
            self._default_slots(owner)
        for name in ("default_created_at", "default_removed_at"):
            _check_int(name, getattr(self, name), -(2**63), 2**63 - 1)

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Scatter one span a file."""
        spans, weight = tuple(Span(url) for url in urls), float(self.default_node_weight or 0.0)
        return Sources(spans, nodes="records", has_times=self.has_times, always_weighted=True, created_weight=weight)

    def widen(self, columns: Mapping[str, str]) -> EdgeListDecoder:
        """Return the decoder itself: EdgeList states its dtypes."""
        return self

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines.

        Raises DecodeError for the first field that is wrong.
        """
        grammar = None if places else self._plain_grammar
        if grammar is None:
            return self._decode_any(block.data, places)
        form = PlainFormat(
            scan=lambda buf, last, room, progress: plain.scan(buf, last, grammar, room, progress),
            build=self._build,
            walk=self._decode_any,
            node_bytes=32,
            edge_bytes=10,
            value_bytes=6,
            has_times=self._has_time_columns,
        )
        return decode_plainly(block.data, form)

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty line on its own, in input order."""
        walk = _Walk(self, block.data, every=True)
        walk.run()
        while walk.learn_words():
            walk.run()
        return first_of_lines(block.data, [*walk.faults(), *walk.found().faults()])

    def _build(self, found: PlainRows) -> RawRows:
        """Copy what was scanned."""
        room, nodes, edges = found.room, slice(found.num_nodes), slice(found.num_edges)
        fixed = self._fixed(
            "node", room.node_types[nodes], room.node_weights[nodes], room.node_times[nodes], room.node_num_slots[nodes]
        )
        edge_fixed = self._fixed(
            "edge", room.edge_types[edges], room.edge_weights[edges], room.edge_times[edges], room.edge_num_slots[edges]
        )
        return RawRows(
            nodes=fixed.nodes(room.node_ids[nodes], found.node_columns) if found.num_nodes else None,
            edges=edge_fixed.edges(room.edge_src[edges], room.edge_dst[edges], found.edge_columns) if found.num_edges else None,
            num_records=found.num_nodes + found.num_edges,
        )

    def _decode_any(self, data: bytes, places: bool = False) -> RawRows:
        """Decode lines however they are written."""
        walk = _Walk(self, data)
        walk.run()
        while walk.learn_words():
            walk.run()
        node_slots, edge_slots, slot_fault = walk.found().columns()
        raise_first((*walk.faults(), slot_fault))
        num_nodes, num_edges = int(walk.progress[NODES]), int(walk.progress[EDGES])
        owners, some, others = walk.owners, (NODE, slice(num_nodes)), (EDGE, slice(num_edges))
        at, ends, at_ends = owners.at[some], owners.ids[others], owners.at[others]
        fixed = self._fixed("node", owners.types[some], owners.weights[some], owners.times[some], owners.num_slots[some])
        nodes = fixed.nodes(owners.ids[some][:, 0], node_slots)
        fixed = self._fixed(
            "edge", owners.types[others], owners.weights[others], owners.times[others], owners.num_slots[others]
        )
        edges = fixed.edges(ends[:, 0], ends[:, 1], edge_slots)
        if places:
            nodes = replace(nodes, at=at[:, 0].copy())
            edges = replace(
                edges,
                at_src=at_ends[:, 0].copy(),
                at_dst=at_ends[:, 1].copy(),
                record=np.full(num_edges, -1, np.int64),
            )
        return RawRows(
            nodes=nodes if num_nodes else None, edges=edges if num_edges else None, num_records=num_nodes + num_edges
        )

    @property
    def has_times(self) -> bool:
        """Return whether nodes and edges have created_at and removed_at."""
        return self.temporal or self.default_created_at is not None or self.default_removed_at is not None

    def grammar(self) -> kernels.Grammar:
        """Return what the kernel must know of the lines."""
        words = _known_words()
        return kernels.Grammar(
            delimiter=_bytes(self.delimiter),
            length_delimiter=_bytes(self.length_delimiter),
            escape=_bytes(self.binary_escape),
            words=words.words,
            word_stops=words.stops,
            word_dtypes=words.dtypes,
            node_slots=self._default_slots("node"),
            edge_slots=self._default_slots("edge"),
            has_node_type=self.default_node_type is None,
            has_node_weight=self.default_node_weight is None,
            has_edge_type=self.default_edge_type is None,
            has_edge_weight=self.default_edge_weight is None,
            has_created_at=self.temporal and self.default_created_at is None,
            has_removed_at=self.temporal and self.default_removed_at is None,
            weight_limit=FLOAT_LIMITS[self.weight_dtype],
        )

    def _fixed(
        self,
        owner: str,
        types: NDArray[np.int32],
        weights: NDArray[np.float64],
        times: NDArray[np.int64],
        num_slots: NDArray[np.int32],
    ) -> FixedColumns:
        """Take the fixed columns of nodes or edges; where lines state no times, ``times`` may lack rows."""
        default_type, default_weight = getattr(self, f"default_{owner}_type"), getattr(self, f"default_{owner}_weight")
        size = types.size
        coded = code_types(types) if default_type is None else (np.zeros(size, np.int32), (str(default_type),))
        weights = weights if default_weight is None else np.full(size, default_weight)
        side = [side_chunk("weight", self.weight_dtype, weights.astype(self.weight_dtype))]
        if self.has_times:
            created = self._times(times[:, 0], size, self.default_created_at, 0)
            removed = self._times(times[:, 1], size, self.default_removed_at, -1)
            side += [side_chunk("created_at", "int64", created), side_chunk("removed_at", "int64", removed)]
        return FixedColumns(coded, side, num_slots)

    def _times(self, times: NDArray[np.int64], size: int, default: int | None, missing: int) -> NDArray[np.int64]:
        if self.temporal and default is None:
            return times.copy()
        return np.full(size, missing if default is None else default, np.int64)

    @property
    def _has_time_columns(self) -> bool:
        return self.temporal and (self.default_created_at is None or self.default_removed_at is None)

    @functools.cached_property
    def _plain_grammar(self) -> plain.PlainGrammar | None:
        """Return what the scanner of plain lines must know of them, None where no line is plain."""
        if (
            len(self.delimiter.encode()) > 1
            or self.delimiter in _OF_NUMBERS
            or not set(self.length_delimiter) - _OF_NUMBERS - {" ", "\t"}
        ):
            return None
        grammar = self.grammar()
        ends = np.zeros(256, np.uint8)
        ends[[ord("\n"), ord(self.delimiter)]] = 1
        words = [(word + self.delimiter.encode(), code) for word, code in _word_table() if len(word) < plain.MOST_WORD]
        words.sort(key=lambda one: not one[0].startswith(b"float"))  # the usual ones are compared first
        columns = (
            (grammar.has_node_type, plain.NODE_TYPE),
            (grammar.has_node_weight, plain.NODE_WEIGHT),
            (grammar.has_edge_type, plain.EDGE_TYPE),
            (grammar.has_edge_weight, plain.EDGE_WEIGHT),
            (grammar.has_created_at, plain.CREATED_AT),
            (grammar.has_removed_at, plain.REMOVED_AT),
        )
        return plain.PlainGrammar(
            delimiter=ord(self.delimiter),
            escape=self.binary_escape.encode()[0],
            ends=ends,
            columns=sum(bit for is_there, bit in columns if is_there),
            words=np.array([_plain_word(word, code) for word, code in words], np.uint64),
            node_slots=grammar.node_slots,
            edge_slots=grammar.edge_slots,
            weight_limit=grammar.weight_limit,
        )

    def _check_delimiters(self) -> None:
        flags = {
            "--delimiter": self.delimiter,
            "--length-delimiter": self.length_delimiter,
            "--binary-escape": self.binary_escape,
        }
        for flag, text in flags.items():
            if not text or "\n" in text or "\r" in text:
                raise UsageError(f"{flag} must be one or more characters without line breaks, found {text!r}")
        if len(set(flags.values())) < len(flags):
            raise UsageError(
                f"--delimiter {self.delimiter!r}, --length-delimiter {self.length_delimiter!r} and --binary-escape "
                f"{self.binary_escape!r} must differ from each other"
            )

    def _default_slots(self, owner: str) -> NDArray[np.int64]:
        """Read an owner's default feature types and lens to int64[k, 3]: dtype, length, width."""
        types_name, lens_name = f"default_{owner}_feature_types", f"default_{owner}_feature_lens"
        types, lens = getattr(self, types_name), getattr(self, lens_name)
        if types is None:
            if lens is not None:
                raise UsageError(
                    f"{flag_of(lens_name)} needs {flag_of(types_name)}",
                    fix=f"give {flag_of(types_name)} a list of the same length, '-' for a dtype that stands in the line",
                )
            return np.empty((0, 3), np.int64)
        type_items = [item.strip() for item in types.split(",")]
        len_items = [item.strip() for item in lens.split(",")] if lens is not None else ["-"] * len(type_items)
        if len(type_items) != len(len_items):
            raise UsageError(
                f"{flag_of(types_name)} has {len(type_items)} entries and {flag_of(lens_name)} has {len(len_items)}",
                fix="give both one entry for each slot, '-' for what stands in the line",
            )
        rows = [
            (_default_dtype(flag_of(types_name), dtype), *_default_length(flag_of(lens_name), dtype, length))
            for dtype, length in zip(type_items, len_items, strict=True)
        ]
        return np.array(rows, np.int64)


class _Walk(Walk):
    """One block on its way through the kernel: the arrays it fills, and how far it is."""

    def __init__(self, decoder: EdgeListDecoder, data: bytes, every: bool = False) -> None:
        super().__init__(data, np.frombuffer(data, np.uint8), every)
        self.decoder = decoder
        self.grammar = decoder.grammar()
        self.owners = _owners(data.count(b"\n") + 1)
        self.words: dict[bytes, int] = {}

    def step(self) -> int:
        """See ``kernels.walk``."""
        return kernels.walk(self.buf, self.grammar, self.owners, self.slots, self.progress)

    def faults(self) -> list[DecodeError]:
        """Word what is wrong with lines."""
        return [_Fault(self, noted).worded() for noted in self.noted]

    def learn_words(self) -> bool:
        """Learn words that the kernel does not know but NumPy does, as dtypes. Returns whether all is to be read again."""
        unknown = [noted for noted in self.noted if noted.code == kernels.UNKNOWN_DTYPE]
        words = {self.data[noted.at : noted.end] for noted in unknown}
        codes = {word: dtype_code(word.decode("ascii", "replace")) for word in sorted(words)}
        learned = {word: code for word, code in codes.items() if code >= 0}
        if not learned:
            return False
        self.words |= learned
        table = Words.of([*_word_table(), *self.words.items()])
        self.grammar = self.grammar._replace(words=table.words, word_stops=table.stops, word_dtypes=table.dtypes)
        self.begin()
        return True

    def found(self) -> FoundSlots:
        """Return what was noted so far."""
        return self.found_slots(self.grammar.delimiter, self.grammar.escape)


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a line, as the kernel noted it."""

    walk: _Walk
    noted: Noted

    def worded(self) -> DecodeError:
        """Say what the kernel found wrong."""
        code, field = self.noted.code, self.noted.field
        found = show(self.walk.data[self.noted.at : self.noted.end])
        if code == BAD_FIELD:
            return self._field_fault(field, f"must be {self._rule(field)}, found {found}")
        if code == kernels.MISSING_FIELD and field not in (kernels.LENGTH, kernels.TEXT):
            return self._missing_fault(field)
        return self._slot_fault(code, field, found)

    def _rule(self, field: int) -> str:
        is_weight = field in (kernels.NODE_WEIGHT, kernels.EDGE_WEIGHT)
        return _RULES[field][1] + (f" that fits {self.walk.decoder.weight_dtype}" if is_weight else "")

    def _field_fault(self, field: int, problem: str) -> DecodeError:
        name = _RULES[field][0]
        fix = "correct the field"
        if field not in (kernels.NODE_ID, kernels.SRC, kernels.DST):
            fix += f", or name {flag_of(f'default_{name}')} where the lines have no such column"
        return DecodeError(f"field {name!r} {problem}", at=self.noted.at, fix=fix)

    def _missing_fault(self, field: int) -> DecodeError:
        at = self.noted.at
        if field == kernels.SECOND:
            return DecodeError(
                "the line has only one column",
                at=at,
                fix=f"separate columns by {self.walk.decoder.delimiter!r}, or name the delimiter with --delimiter",
            )
        if field == kernels.DST:
            return DecodeError("field 'dst' is missing: the line ends before it", at=at, fix="complete the line")
        return self._field_fault(field, "is missing: the line ends before it")

    def _slot_fault(self, code: int, field: int, found: str) -> DecodeError:
        slot = f"feature slot {self.noted.slot}"
        if code not in (kernels.UNKNOWN_DTYPE, kernels.AFTER_LAST_SLOT):
            slot += f" ({_DTYPE_WORDS[self.noted.dtype]})"
        problem, fix = {
            kernels.UNKNOWN_DTYPE: (
                f": unknown dtype {found}",
                f"use one of {', '.join(_DTYPE_WORDS)}, and check the length of the slot before",
            ),
            kernels.MISSING_FIELD: (
                f": its {'text' if field == kernels.TEXT else 'length'} is missing: the line ends before it",
                "complete the line",
            ),
            kernels.BAD_LENGTH: (
                f": length must be n, or n{self.walk.decoder.length_delimiter}d for sparse values, found {found}",
                "write the number of values, 0 for a missing slot",
            ),
            kernels.BAD_TEXT_LENGTH: (
                f": length must be 1, or 0 for a missing slot, found {self._length()!r}",
                "write each text as binary,1,text".replace(",", self.walk.decoder.delimiter),
            ),
            kernels.TOO_FEW_VALUES: (
                f" needs {_columns(self._num_needed())} for its length {self._length()}, the line has "
                f"{self.noted.columns} left",
                "write as many values as the length says",
            ),
            kernels.AFTER_LAST_SLOT: (
                f": a blank dtype ends the features, but {found} follows",
                "remove what follows, or write length 0 to skip a slot",
            ),
            kernels.OPEN_ESCAPE: (
                f": the text ends with an open escape {self.walk.decoder.binary_escape!r}",
                "double the escape, or remove it",
            ),
        }[code]
        return DecodeError(slot + problem, at=self.noted.at, fix=fix)

    def _length(self) -> str:
        count, width = self.noted.count, self.noted.width
        return str(count) if width == NOT_SPARSE else f"{count}{self.walk.decoder.length_delimiter}{width}"

    def _num_needed(self) -> int:
        count, width = self.noted.count, self.noted.width
        return count if width == NOT_SPARSE else count * (max(width, 1) + 1)


def _owners(num_lines: int) -> kernels.Owners:
    """Allocate room for as many nodes and as many edges as there are lines; what is not written is never touched."""
    return kernels.Owners(
        ids=np.empty((2, num_lines, 2), np.uint64),
        at=np.empty((2, num_lines, 2), np.int64),
        types=np.empty((2, num_lines), np.int32),
        weights=np.empty((2, num_lines), np.float64),
        times=np.empty((2, num_lines, 2), np.int64),
        num_slots=np.empty((2, num_lines), np.int32),
    )


def _word_table() -> list[tuple[bytes, int]]:
    return [(word.encode(), code) for code, word in enumerate(_DTYPE_WORDS)]


def _plain_word(word: bytes, code: int) -> tuple[int, int, int, int]:
    """Return a row of ``PlainGrammar.words`` for a dtype and the delimiter behind it."""
    return int.from_bytes(word, "little"), (1 << 8 * len(word)) - 1, len(word) - 1, code


@functools.cache
def _known_words() -> Words:
    return Words.of(_word_table())


def _bytes(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode(), np.uint8)


def _list_text(value: object) -> str | None:
    """Write a list of dtypes or lengths, as DeepGNN's own decoder takes it, as the comma list of the command line."""
    if value is None or isinstance(value, str):
        return value
    items = value if isinstance(value, list | tuple) else [value]
    parts = (item if isinstance(item, list | tuple) else ["-" if item is None else item] for item in items)
    return ",".join("/".join(map(str, part)) for part in parts)


def _check_int(name: str, value: int | None, low: int, high: int) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise UsageError(f"{flag_of(name)} must be an integer from {low} to {high}, found {value!r}")


def _default_dtype(flag: str, text: str) -> int:
    if text == "-":
        return kernels.IN_LINE
    code = dtype_code(text)
    if code < 0:
        raise UsageError(f"{flag}: unknown dtype {text!r}", fix=f"use '-' or one of {', '.join(_DTYPE_WORDS)}")
    return code


def _default_length(flag: str, dtype: str, text: str) -> tuple[int, int]:
    """Read ``3``, ``3/2``, ``3/0`` or ``-`` to (length, width)."""
    if text == "-":
        return kernels.IN_LINE, NOT_SPARSE
    parts = text.split("/")
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and int(part) <= _MAX_LENGTH for part in parts):
        raise UsageError(f"{flag}: {text!r} is no feature length", fix="write 3, 3/2 (sparse), 3/0 (flat sparse) or '-'")
    if dtype == "binary" and text not in ("0", "1"):
        raise UsageError(f"{flag}: {text!r} is no length of a binary feature", fix="write 1, 0 or '-'")
    return int(parts[0]), int(parts[1]) if len(parts) == 2 else NOT_SPARSE


def _columns(number: int) -> str:
    return f"{number} column{'' if number == 1 else 's'}"
