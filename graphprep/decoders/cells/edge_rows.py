"""Edges that are records of their own, put together from their ends, relations and columns."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.rows import ColumnChunk, RawEdges, RawIds, RawRows, RawTexts, Relation

Ints = NDArray[np.int64]


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
