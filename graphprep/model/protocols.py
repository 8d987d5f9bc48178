"""What a decoder and an exporter are, and what the layers hand each other. Types only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, BinaryIO, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DecodeError
from graphprep.model.graph_config import GraphConfig, IdType
from graphprep.model.rows import ColumnKey, RawRows, Relation


class RecordEnds(Protocol):
    """Where the records of a text span end, in formats where a line feed may stand inside one. Picklable and without state."""

    def scan(self, piece: bytes, state: int) -> tuple[int, int]:
        """Return the end of the last record that is complete in a file's next piece (0: none), and the state behind it.

        A state holds what must be known of the pieces before; at a file's beginning it is 0.
        """

    def ends(self, data: bytes) -> NDArray[np.int64]:
        """Return the position behind every record of a block (lines that are none count, too), the last one its size."""

    def open_quote(self, data: bytes) -> int:
        """Return the position of the quote that opens the field in which the beginning of a record ends, -1 without one."""


@dataclass(frozen=True)
class PlainArray:
    """Rows of one dense column as they lie in a file, uncompressed: native, in C order, from byte ``data_start`` on.

    Row r belongs to the node with raw ID ``first_row + r``, or to that edge; ``owner`` is as in ``AlignedColumn``. ``magic``
    is what such a file begins with.
    """

    owner: str | Relation
    key: ColumnKey
    item_shape: tuple[int, ...]
    first_row: int
    num_rows: int
    data_start: int
    magic: bytes


@dataclass(frozen=True)
class ReadingRoom:
    """What a table's reader may hold beside the rows that it gives, in bytes, and the folder for what it has no room for."""

    most_bytes: int
    folder: str


@dataclass(frozen=True)
class Span:
    """A piece of the input that is decoded as one: a whole text file, or rows [start, stop) of a table.

    ``url`` is the name that messages use (``-`` for stdin) and that storage opens. ``role`` and ``detail`` belong to the
    decoder (``edges``, ``node_data`` …; which type, which column, which file format): it finds there what to do with the
    span. ``kind``: ``text`` spans are cut into blocks of whole lines and given to ``decode``; ``table`` spans are given to
    ``read`` with an open handle. ``start`` is the number of the span's first row in what it belongs to (chunked formats).
    ``expect_rows`` is the number of rows that something outside the file says it has, and ``expect_by`` who says so
    (``metadata.json: num_edges_per_chunk[0][2]``); the decode stage compares. ``record_ends`` is for text whose records may
    hold line feeds; None: every line feed ends a record. ``array``, for table spans, says where all that ``read`` would give
    lies as an array: then the stages may leave it there until it is written. Spans of one column stand in the order of rows,
    and where one of them with rows has no ``array``, none has. ``id_columns`` names the columns of sources and destinations
    that are read as one ID space although their names speak of two kinds of things; the decode stage then looks whether their
    ranges differ, too. ``key_columns`` names the columns of a table's raw IDs, as messages call them (None: one without a
    name). ``room`` is what ``read`` may hold; None: no limit is known. ``piece``, for text that is not compressed and whose
    records are lines: only those that begin in bytes [start, stop) of the file.
    """

    url: str
    kind: Literal["text", "table"] = "text"
    role: str = "records"
    start: int = 0
    stop: int = -1
    detail: Any = None
    expect_rows: int | None = None
    expect_by: str = ""
    record_ends: RecordEnds | None = None
    array: PlainArray | None = None
    id_columns: tuple[str, str] | None = None
    key_columns: tuple[str | None, ...] = ()
    room: ReadingRoom | None = None
    piece: tuple[int, int] | None = None


@dataclass(frozen=True)
class TextBlock:
    """Whole records of one text span, so whole lines.

    ``data`` ends with a line feed, except perhaps in the last block. A UTF-8 BOM is already gone; CR before LF is still there
    (decoders take one CR off). ``first_line`` counts from 1. ``is_first`` says that the block begins its file (headers).
    Storage hands out blocks that read ``data``, and count the lines before them, only when asked.
    """

    data: bytes
    span: Span
    first_line: int = 1
    is_first: bool = True

    @property
    def num_bytes(self) -> int:
        """Return the size of ``data``, which need not be read for it."""
        return len(self.data)

    def begins_behind(self, line: int) -> bool:
        """Return whether the block begins behind a line of its file; cheaper than ``first_line`` where that is near the top."""
        return self.first_line > line

    def held(self) -> AbstractContextManager[NDArray[np.uint8]]:
        """Hold ``data`` as an array that cannot be written. It may be a buffer that another block gets after the context."""
        return nullcontext(np.frombuffer(self.data, np.uint8))


@dataclass(frozen=True)
class DeclaredNodes:
    """What is known beforehand of one node type: its name and, where raw IDs are 0..n-1, their number.

    ``has_records``: the data declares the type's nodes, so that an end without a record is a fault; else, without
    ``num_nodes``, its nodes are the IDs that occur as ends. ``space`` names the ID space that it shares with other types;
    None: it has its own. Both are for ``Sources.nodes == "tables"`` only. ``stated_by`` is the place that states ``num_nodes``.
    """

    name: str
    num_nodes: int | None = None
    has_records: bool = False
    space: str | None = None
    stated_by: str = field(default="", compare=False)


@dataclass(frozen=True)
class DeclaredColumn:
    """A column known beforehand: its key, per-row shape, and the type that owns it (``src:rel:dst`` triple for edges).

    ``settled`` False: only that there is such a column, and its place among the others, is known; dtype and shape are found
    in the data, and what stands here holds where there is none.
    """

    owner: str | tuple[str, str, str]
    key: ColumnKey
    item_shape: tuple[int, ...]
    settled: bool = True


@dataclass(frozen=True)
class Sources:
    """What ``plan`` found.

    ``spans`` stand in input order: edge IDs count in this order. ``node_types`` and ``edge_types`` list declared types in their
    order (empty: types are found in the data and ordered by name, integers by value). ``nodes``:

    - ``records``: nodes are declared by records in the data (the DeepGNN formats); one ID space for all types;
    - ``ends``: nodes are what occurs as an end of an edge, an ID space per node type (plain edge lists);
    - ``identity``: raw IDs are 0..n-1 per type, n declared (chunked);
    - ``tables``: each type as its ``DeclaredNodes`` says. Types that only the data names (``type_col``) have records, and the
      ID space ``default_space``.

    ``has_times``: created_at and removed_at exist for all types even if no row states one.
    ``always_weighted``: every type has a weight column, also where no node or edge occurs.
    ``num_edges``: how many edges of each declared type there must be, None where nobody says; ``num_edges_by`` names the files
    whose rows say so, empty where it is the metadata. ``signed_ids`` lists the
    ID spaces (a space's name, or that of a type with its own) whose integer raw IDs are the bits of int64. ``auto_ids`` lists
    those that are decoded as texts although they may turn out to be integers of int64 throughout: then decoding starts again
    with ``settle_ids``, and ``plan`` is called again. ``edge_split`` names the column that is the split of every edge type,
    ``edge_category`` that whose texts become numbers of categories; None: there is none. ``created_weight`` is the weight of
    nodes that have no record. ``named_columns`` are types with the names of columns that headers say they have, so that flags
    may name a column alone. ``replans``: spans depend on the dtypes of columns, so that ``plan`` is called again when these are
    decided; it is for ``tables`` in any case.
    """

    spans: tuple[Span, ...]
    nodes: Literal["records", "ends", "identity", "tables"] = "records"
    node_types: tuple[DeclaredNodes, ...] = ()
    edge_types: tuple[Relation, ...] = ()
    columns: tuple[DeclaredColumn, ...] = ()
    graph_name: str | None = None
    num_edges: tuple[int | None, ...] | None = None
    num_edges_by: tuple[str, ...] = ()
    has_times: bool = False
    always_weighted: bool = False
    messages: tuple[str, ...] = ()
    default_space: str | None = None
    signed_ids: tuple[str, ...] = ()
    auto_ids: tuple[str, ...] = ()
    edge_split: str | None = None
    edge_category: str | None = None
    created_weight: float = 0.0
    named_columns: tuple[tuple[str | tuple[str, str, str], str], ...] = ()
    replans: bool = False


class InputStorage(Protocol):
    """The part of storage that decoders may use while planning and reading. See ``graphprep.storage.Storage``.

    ``record_bytes`` is what one record of text may have.
    """

    record_bytes: int

    def open(self, url: str, ahead_bytes: int | None = None) -> BinaryIO:
        """Open for reading, seekable, decompressed where the content is compressed.

        Of a remote file up to ``ahead_bytes`` are fetched ahead of who reads on and on.
        """

    def size(self, url: str) -> int:
        """Return the size in bytes as stored."""

    def head(self, url: str, num_bytes: int) -> bytes:
        """Return the first bytes, decompressed, without a UTF-8 BOM."""

    def join(self, base: str, path: str) -> str:
        """Resolve a relative path (or absolute path, or URL) against the folder ``base``."""

    def exists(self, url: str) -> bool:
        """Return whether there is a file."""


@runtime_checkable
class Decoder(Protocol):
    """Decodes one format.

    ``plan`` looks at what is there: spans. ``decode`` turns whole lines into rows, ``read`` reads a table's rows
    from an open handle; a decoder needs only the one that its spans name. Both are pure: no files opened, no state kept.
    They raise ``DecodeError`` for the first faulty record.
    """

    name: ClassVar[str]

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Cut files into spans (folders and globs are already expanded)."""

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines. ``places`` asks for the ``at`` arrays."""

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a table span in batches of at most ``max_rows`` rows."""

    def widen(self, columns: Mapping[str, str]) -> Decoder:
        """Return the decoder with the dtypes of these further columns decided.

        Where a column's dtype is found in the data, a block yields the narrowest that holds its own cells (bool, int64,
        float64, binary). Numbers widen without loss; when a later block turns out to hold text, decoding starts again with
        ``widen({name: "binary"})``. Tables get ``<the span's role>/<name>``, and are planned again.
        """


class SpanReader(Protocol):
    """What a span's ``detail`` is where one decoder deals with files of several kinds: it decodes its own span.

    Picklable and without state. Errors as in ``Decoder``. A reader needs only the method that its span's ``kind`` names.
    """

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines of a text span."""

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows [span.start, span.stop) of a table span in batches of at most ``max_rows`` rows."""


@runtime_checkable
class FindsFaults(Protocol):
    """A decoder, or a span's reader, that tells all faulty records of a block at once: skipping them takes less long."""

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty record on its own, in input order; nothing where it cannot."""


@runtime_checkable
class StatesIdType(Protocol):
    """A decoder whose option ``id_type`` says what raw IDs are; columns from files of their own then go by the same."""

    id_type: IdType | None


@runtime_checkable
class TakesFolders(Protocol):
    """The class of a decoder that is given folders and globs as they are, where ``takes_folder`` is True."""

    takes_folder: bool


@runtime_checkable
class SettlesIds(Protocol):
    """A decoder that can be told late that the raw IDs of some ID spaces are integers (``--id-type auto``)."""

    def settle_ids(self, spaces: Sequence[str]) -> Decoder:
        """Return the decoder that reads these ID spaces as int64. Its ``plan`` is called again and gives the same spans."""


@runtime_checkable
class ReadsConfig(Protocol):
    """A format that says which files are the tables of which types: it makes a config, and the tables decoder does the rest.

    Registered as a decoder is; see ``TakesFolders``, too.
    """

    name: ClassVar[str]

    def read_config(self, storage: Any, urls: Sequence[str]) -> GraphConfig:
        """Read what the files (a ``graphprep.storage.Storage`` opens them) say of the graph."""


@dataclass(frozen=True)
class SniffedFile:
    """The beginning of an input file: its URL, and its first bytes, decompressed and without a BOM."""

    url: str
    head: bytes
    complete: bool


@dataclass(frozen=True)
class Sniffed:
    """A format's bid for a file: how sure it is (0..1), and the flags that repeat the choice.

    ``options`` are the decoder's options that those flags set; the user's win. ``other`` tells the user, in a few words, of
    another reading that is possible.
    """

    decoder: str
    confidence: float
    flags: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    other: str = ""


@runtime_checkable
class SniffsFiles(Protocol):
    """The class of a decoder of another package that bids for files whose format nobody named."""

    @staticmethod
    def sniff(file: SniffedFile) -> Sniffed | None:
        """Bid, or return None."""


@runtime_checkable
class SniffsFolders(Protocol):
    """The class of a decoder of another package that bids for whole folders."""

    @staticmethod
    def sniff_folder(storage: Any, url: str) -> Sniffed | None:
        """Bid, or return None. A ``graphprep.storage.Storage`` opens what is in the folder."""


class Reporter(Protocol):
    """Where a run tells what it does: progress and messages (on stderr, for the command line)."""

    def stage(self, name: str, *, total_bytes: int | None = None, total_records: int | None = None) -> None:
        """Begin a stage; the one before it is over. The totals are what it has before it, exact or about."""

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """Count work of the current stage."""

    def message(self, text: str) -> None:
        """Tell the user something: a choice that was made, a warning."""


class QuietReporter:
    """Tells nothing to anybody. ``is_quiet`` says so: what it would be told belongs into the summary."""

    is_quiet = True

    def stage(self, name: str, *, total_bytes: int | None = None, total_records: int | None = None) -> None:
        """See ``Reporter.stage``."""

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """See ``Reporter.advance``."""

    def message(self, text: str) -> None:
        """See ``Reporter.message``."""
