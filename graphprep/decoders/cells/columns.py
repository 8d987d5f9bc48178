"""Which column of an edge list is what: settled for each file from the flags and its own columns; and rows made of them."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.looks.quoted_records import Dialect
from graphprep.decoders.looks.text_head import find_ends
from graphprep.model.errors import DataError, UsageError
from graphprep.model.rows import ColumnChunk, RawEdges, RawIds, RawRows, RawTexts, Relation

IdKind = Literal["uint", "int", "string"]  # 0..2^64-1, int64, texts
HeldIds = Literal["integers", "texts", "open"]  # columns of integers, of texts; text files, whose cells may be either
RelationAs = Literal["types", "column"]
Ints = NDArray[np.int64]
RELATION = "relation"  # the column's name
_WORD = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![a-z])")
_WAYS = re.compile(
    r"from|to|src|dst|source|target|orig|origin|dest|destination|start|end|head|tail|subject|object|parent|child|sender|receiver"
)
_DOER = re.compile(r"(?:ing|er|ee|ed|or)$")  # a follower and a followee, citing and cited: both are of one kind
_POSITION = re.compile(r"(?:col_)?([0-9]+)", re.ASCII)


class FurtherColumn(NamedTuple):
    """A column that becomes an edge feature. ``dtype`` is NumPy's name, ``binary``, or None: found in the data."""

    name: str
    position: int
    dtype: str | None


@dataclass(frozen=True)
class Reading:
    """How cells are read where that is settled for all files, perhaps late.

    ``src_ids`` and ``dst_ids`` say what raw IDs are; ``declared`` gives dtypes of columns that a layout leaves open.
    """

    src_ids: IdKind = "uint"
    dst_ids: IdKind = "uint"
    declared: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EdgeLayout:
    """Where everything stands in one file, and what applies to it. Positions count from 0.

    ``delimiter`` is empty where runs of blanks separate; ``header_line`` counts from 1, 0 means none, and ``header`` is what
    stands there. They are for text only, as is ``quote`` (None: where the delimiter is one character). ``names`` are the
    file's own names, which tables are read by.
    ``relation_col`` names the relation of each edge, else all are of ``relation``; ``relation_as`` says whether it becomes
    the edge's type or its column ``relation``. ``held_ids`` says what all files
    hold as IDs of sources and of destinations.
    """

    src: int
    dst: int
    weight: int | None
    time: int | None
    further: tuple[FurtherColumn, ...]
    names: tuple[str, ...]
    relation: Relation
    index_base: int
    weight_dtype: str
    time_unit: str | None
    relation_col: int | None = None
    relation_as: RelationAs = "types"
    delimiter: bytes = b""
    header_line: int = 0
    header: bytes = b""
    quote: bool | None = None
    held_ids: tuple[HeldIds, HeldIds] = ("open", "open")

    @cached_property
    def dialect(self) -> Dialect:
        """Return how its lines are cut. A quoted field may hold line breaks where quotes were asked for."""
        is_quoted = self.quote is not False and can_quote(self.delimiter)
        return Dialect(self.delimiter, is_quoted, across_lines=is_quoted and bool(self.quote))

    @cached_property
    def is_plain(self) -> bool:
        """Return whether lines are ``src dst``, or that with a weight or one further column, and nothing else."""
        num_values = len(self.further) + (self.weight is not None)
        is_known = self.time is None and self.relation_col is None and len(self.names) == 2 + num_values <= 3
        return is_known and {self.src, self.dst} == {0, 1} and len(self.delimiter) < 2


def can_quote(delimiter: bytes) -> bool:
    """Return whether double quotes can mean something: where the delimiter is one character."""
    return len(delimiter.decode()) == 1


@dataclass(frozen=True)
class ColumnFlags:
    """What the command line says of columns: a name or a position for each, None where it says nothing."""

    src: str | None
    dst: str | None
    weight: str | None
    time: str | None
    declared: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]
    relation: str | None = None
    relation_as: RelationAs = "types"

    @property
    def names(self) -> list[str]:
        """Return the names by which flags call columns; where there are any, there must be a header."""
        named = [self.src, self.dst, self.weight, self.time, self.relation, *self.dropped, *dict(self.declared)]
        return [text for text in named if text is not None and position_of(text) is None]


def position_of(selector: str | None) -> int | None:
    """Return the position that a selector such as ``2`` or ``col_2`` states, None where it is a name."""
    found = None if selector is None else _POSITION.fullmatch(selector)
    return None if found is None else int(found[1])


def parse_declared(text: str) -> tuple[str, str]:
    """Read ``NAME=dtype``: the name, and NumPy's name of the dtype or ``binary``.

    Raises UsageError.
    """
    name, equals, dtype = text.rpartition("=")
    if not name or not equals:
        raise UsageError(f"--column: expected NAME=dtype, found {text!r}", fix="write, for example, --column age=float32")
    if dtype == "binary":
        return name, dtype
    try:
        found = np.dtype(dtype)
    except (TypeError, ValueError):
        found = np.dtype(object)
    if found.kind not in "biuf" or found.itemsize > 8:
        raise UsageError(
            f"--column {name}: no dtype named {dtype!r}",
            fix="use bool, int8 to int64, uint8 to uint64, float16 to float64, or binary for text",
        )
    return name, found.name


@dataclass(frozen=True)
class FileColumns:
    """The columns of one file: their names, and whether these are the file's own or only ``col_<position>``."""

    url: str
    names: tuple[str, ...]
    named: bool

    def find(self, flag: str, selector: str) -> int:
        """Return the position of the column that a flag names.

        Raises UsageError where there is none.
        """
        if self.named and self.names.count(selector) == 1:
            return self.names.index(selector)
        if self.names.count(selector) > 1:
            raise UsageError(
                f"{flag} {selector}: {self.url} has several columns of this name", fix="give the column's position, from 0"
            )
        position = _POSITION.fullmatch(selector)
        if position and int(position[1]) < len(self.names):
            return int(position[1])
        known = ", ".join(self.names) if self.named else "no names"
        raise UsageError(
            f"{flag} {selector}: {self.url} has no such column",
            fix=f"its columns have positions 0 to {len(self.names) - 1}, and {known}"
            + ("" if self.named else "; where its first line names them, pass --header yes"),
        )


def settle_columns(file: FileColumns, flags: ColumnFlags, base: EdgeLayout, place: str) -> EdgeLayout:
    """Find the columns of a file that the flags name; what is left becomes further columns.

    Without flags, the ends are the columns that the header calls so (``find_ends``), else the first two.
    ``base`` carries the rest of the layout. Raises UsageError for a column that is not there or is used twice, DataError for
    too few columns and for two of one name.
    """
    num_needed = 2 if flags.relation is None else 3
    if len(file.names) < num_needed and flags.src is None and flags.dst is None:
        raise _too_few(file, num_needed, place)
    used: dict[int, str] = {}
    relation = None if flags.relation is None else _take(file, used, "--relation-col", flags.relation, "the relation")
    ends = find_ends(file.names) if file.named else None
    first, second = ends or sorted({0, 1, 2} - {relation})[:2]
    src = _take(file, used, "--src-col", flags.src or str(first), "the source")
    dst = _take(file, used, "--dst-col", flags.dst or str(second), "the destination")
    weight = None if flags.weight is None else _take(file, used, "--weight-col", flags.weight, "the weight")
    time = None if flags.time is None else _take(file, used, "--time-col", flags.time, "the time")
    declared: dict[int, str] = {}
    for name, dtype in flags.declared:
        declared[_take(file, used, "--column", name, "a feature")] = dtype
    for selector in flags.dropped:
        _take(file, used, "--drop-column", selector, "left out")
    further: list[FurtherColumn] = []
    names = [RELATION] * (flags.relation is not None and flags.relation_as == "column")
    for position, name in enumerate(file.names):
        if position not in used or position in declared:
            further.append(FurtherColumn(name, position, declared.get(position)))
            names.append(name)
    names += ["weight"] * (weight is not None) + ["time"] * (time is not None)
    refuse_twins(names, place)
    return dataclasses.replace(
        base, src=src, dst=dst, weight=weight, time=time, relation_col=relation, further=tuple(further), names=file.names
    )


def name_two_kinds(src: str, dst: str) -> bool:
    """Return whether two columns of IDs are called like two kinds of things, as ``userId`` and ``movieId`` are."""
    return _kind(src) != _kind(dst)


def _kind(name: str) -> list[str]:
    """Return the words of a name that say what it names: not the end of an edge, a number, or a letter."""
    words = map(str.lower, _WORD.findall(name))
    return [_DOER.sub("", word) for word in words if len(word) > 1 and not _WAYS.fullmatch(word)]


def _too_few(file: FileColumns, num_needed: int, place: str) -> DataError:
    count = "1 column" if len(file.names) == 1 else f"{len(file.names)} columns"
    found = f", found {', '.join(map(repr, file.names))}" if file.named else ""
    needs = "an edge needs two" if num_needed == 2 else "an edge with a relation needs three"
    return DataError(
        f"{count}{found}; {needs}",
        place=place,
        fix="name the character between the columns with --delimiter, or the format with --format",
    )


def _take(file: FileColumns, used: dict[int, str], flag: str, selector: str, use: str) -> int:
    """Find a column and note what it is used for.

    Raises UsageError where it is not there, or used already.
    """
    position = file.find(flag, selector)
    if position in used:
        raise UsageError(
            f"{flag} {selector}: this column of {file.url} is {used[position]} already",
            fix="use each column once; without flags, column 0 is the source and column 1 the destination",
        )
    used[position] = use
    return position


def refuse_twins(names: list[str], place: str) -> None:
    """Raise DataError for two columns of one name, or one without."""
    counts = Counter(names)
    for name in names:
        if not name:
            raise DataError("a column has no name", place=place, fix="name it, or pass --drop-column with its position")
        if counts[name] > 1:
            raise DataError(
                f"two columns are called {name!r}",
                place=place,
                fix="rename one, or pass --drop-column with its position",
            )


class Relations(NamedTuple):
    """The relation of every edge (int32[m], into ``names``)."""

    codes: NDArray[np.int32]
    names: tuple[Relation, ...]

    @classmethod
    def named(cls, texts: RawTexts, relation: Relation) -> Relations:
        """Give every edge the relation that its text names, between the node types of ``relation``."""
        from graphprep.kernels.cpu.text.dictionary import TextDictionary

        names = TextDictionary()
        codes = names.add(texts.offsets, texts.values)
        return cls(codes, tuple(dataclasses.replace(relation, name=name.decode()) for name in names.texts()))


def edge_rows(
    relation: Relation | Relations,
    src: RawIds | RawTexts,
    dst: RawIds | RawTexts,
    columns: tuple[ColumnChunk, ...] = (),
    places: tuple[Ints, Ints] | None = None,
) -> RawRows:
    """Put edges together, all of one relation or each of its own; ``places`` are those of the sources and destinations."""
    if isinstance(relation, Relation):
        relation = Relations(np.zeros(src.size, np.int32), (relation,))
    edges = RawEdges(src, dst, relation.codes, relation.names, columns)
    if places is not None:
        record = np.full(src.size, -1, np.int64)
        edges = dataclasses.replace(edges, at_src=places[0], at_dst=places[1], record=record)
    return RawRows(edges=edges, num_records=src.size)
