"""What decoders of matrices in text have in common: their options, and that spans are read by their own readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import BinaryIO, Self

from graphprep.decoders.arrays import parse_relation
from graphprep.model.dataclass import dataclass
from graphprep.model.graph_config import EdgeTable, TableConfig
from graphprep.model.protocols import Span, SpanReader, TextBlock
from graphprep.model.rows import RawRows


@dataclass(frozen=True)
class MatrixOptions:
    """Options of matrices in text. ``relation`` is ``REL`` or ``SRC:REL:DST``. What makes no sense raises UsageError."""

    relation: str | None = None
    drop_columns: tuple[str, ...] = ()
    weight_dtype: str = "float32"

    def __post_init__(self) -> None:
        """Refuse options that make no sense."""
        parse_relation(self.relation)

    @property
    def table(self) -> EdgeTable:
        """Return the options as those of a table."""
        return EdgeTable(None, None, None, TableConfig(dropped=self.drop_columns))

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines. Raises DecodeError or DataError for the first that is faulty."""
        reader: SpanReader = block.span.detail
        return reader.decode(block, places)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Refuse a table: the file is text."""
        raise NotImplementedError

    def widen(self, columns: Mapping[str, str]) -> Self:
        """Return the decoder: the file's head says the dtypes."""
        return dataclasses.replace(self)
