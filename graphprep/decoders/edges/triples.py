"""Triples of knowledge graphs: lines ``head relation tail`` of names or numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, ClassVar, Literal

import numpy as np

from graphprep.decoders.cells.chunks import dense_chunk
from graphprep.decoders.cells.columns import EdgeLayout
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.model.protocols import InputStorage, Sources, Span, TextBlock
from graphprep.model.rows import ColumnKey, RawRows
from graphprep.storage.faults import display_url

_PARTS = {"train": 0, "valid": 1, "test": 2}  # by a file's name up to its first dot
_SPLIT = ColumnKey("split", "numbers", "int8")


@dataclass(frozen=True)
class PartLayout(EdgeLayout):
    """The layout of a file whose edges are all in one part: 0 train, 1 valid, 2 test."""

    part: int = 0


@dataclass(frozen=True)
class TriplesDecoder(EdgesDecoder):
    """Decodes triples: the ``edges`` decoder with column 1 for the relation, those beside it for the ends, and IDs of any kind.

    Three files called train, valid and test, and no others, make the column ``split``.

    Source: the text files of FB15k, WN18, UMLS and the like.
    """

    relation_col: str | None = "1"
    id_type: Literal["int", "uint", "string", "auto"] | None = "auto"

    name: ClassVar[str] = "triples"

    def plan(self, storage: InputStorage, urls: Sequence[str]) -> Sources:
        """Cut spans as ``EdgesDecoder`` does, and note the part that each file is.

        Raises what ``EdgesDecoder`` raises.
        """
        sources = super().plan(storage, urls)
        parts = [_PARTS.get(_stem(url)) for url in urls]
        own = {column.name for span in sources.spans for column in span.detail.further}
        if len(parts) != len(_PARTS) or set(parts) != set(_PARTS.values()) or _SPLIT.name in own:
            return sources
        spans = tuple(_with_part(span, part or 0) for span, part in zip(sources.spans, parts, strict=True))
        names = ", ".join(display_url(url).rpartition("/")[2] for url in urls)
        told = f"{names}: column {_SPLIT.name!r} says in which file an edge stands"
        return dataclasses.replace(sources, spans=spans, messages=(*sources.messages, told), edge_split=_SPLIT.name)

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Parse whole lines. Raises DecodeError."""
        return _in_part(super().decode(block, places), block.span)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a Parquet file in batches of at most ``max_rows`` rows. Raises DecodeError."""
        return (_in_part(rows, span) for rows in super().read(handle, span, max_rows, places))


def _stem(url: str) -> str:
    return display_url(url).rpartition("/")[2].partition(".")[0].lower()


def _with_part(span: Span, part: int) -> Span:
    held = {field.name: getattr(span.detail, field.name) for field in dataclasses.fields(EdgeLayout)}
    return dataclasses.replace(span, detail=PartLayout(**held, part=part))


def _in_part(rows: RawRows, span: Span) -> RawRows:
    """Add the column of the part to the edges of a file that is one."""
    if rows.edges is None or not isinstance(span.detail, PartLayout):
        return rows
    chunk = dense_chunk(_SPLIT, np.full(rows.edges.num_rows, span.detail.part, np.int8))
    return dataclasses.replace(rows, edges=dataclasses.replace(rows.edges, columns=(*rows.edges.columns, chunk)))


__all__ = ["TriplesDecoder"]
