"""Reads tables through the tables decoder as the decode stage does, to plain Python rows."""

from dataclasses import dataclass, field

import numpy as np

from graphprep.decoders.tables.decoder import TablesDecoder
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.graph_config import GraphConfig, NodeTable, TableConfig
from graphprep.model.rows import RawTexts
from graphprep.storage.read.spans import place_of, text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import check_rows


@dataclass
class Read:
    """What came out: rows in input order, the dtype of every column, and what was planned."""

    sources: object
    nodes: list = field(default_factory=list)  # (type, ID, {column: value})
    edges: list = field(default_factory=list)  # (relation, source, destination, {column: value})
    dtypes: dict = field(default_factory=dict)  # (role, column): set of dtypes; a unit is added in brackets


def node_config(*files, **options):
    """Return a config of one node table; ``id_col`` and the like belong to the node table."""
    own = {
        name: options.pop(name) for name in ("type_col", "type_delimiter", "id_col", "row_ids", "weight_col") if name in options
    }
    table = TableConfig(files=tuple(map(str, files)), **options)
    return GraphConfig(nodes=(NodeTable(None if "type_col" in own else "user", table, **own),))


def read(config, *, block_bytes=1 << 20, max_rows=1 << 16, places=False):
    """Read all tables, starting again where columns or IDs turn out to be others."""
    storage, decoder = Storage(), TablesDecoder()
    while True:
        sources = decoder.plan_graph(storage, config)
        found, families, texts = Read(sources), {}, {}
        for span in sources.spans:
            for rows in batches(storage, decoder, span, block_bytes, max_rows, places):
                _add(found, families, texts, span, rows)
        mixed = {f"{role}/{name}": "binary" for (role, name), seen in families.items() if len(seen) > 1}
        if not mixed:
            return found
        decoder = decoder.widen(mixed)


def batches(storage, decoder, span, block_bytes=1 << 20, max_rows=1 << 16, places=False):
    """Yield the raw rows of a span; faults get their places."""
    if span.kind == "text":
        for block in text_blocks(storage, span, block_bytes):
            try:
                rows = decoder.decode(block, places)
            except DecodeError as error:
                raise DataError(error.message, place=place_of(block, error.at), fix=error.fix) from None
            check_rows(rows, places=places)
            yield rows
        return
    row = max(span.start, 0)
    with storage.open(span.url) as handle:
        try:
            for rows in decoder.read(handle, span, max_rows, places):
                check_rows(rows, places=places)
                yield rows
                row += rows.num_records
        except DecodeError as error:
            column = f", column {error.column!r}" if error.column else ""
            raise DataError(error.message, place=f"{span.url}: row {row + error.at}{column}", fix=error.fix) from None


def _ids(part):
    return (part.ids,) if hasattr(part, "ids") else (part.src, part.dst)


def _add(found, families, texts, span, rows):
    part = rows.nodes if rows.nodes is not None else rows.edges
    cells = [{} for _ in range(part.num_rows)]
    for chunk in part.columns:
        if chunk.rows.size:
            families.setdefault((span.role, chunk.key.name), set()).add(chunk.key.family)
        name = chunk.key.name if chunk.key.role is None else f"<{chunk.key.role}>"
        dtype = chunk.key.dtype if chunk.key.family == "numbers" else chunk.key.family
        unit = f"[{chunk.key.unit}]" if chunk.key.unit else ""
        if chunk.rows.size:
            found.dtypes.setdefault((span.role, name), set()).add(dtype + unit)
        for row, value in zip(chunk.rows.tolist(), _values(chunk), strict=True):
            cells[row][name] = value
    ids = [_plain(span, ids, found.sources) for ids in _ids(part)]
    if rows.nodes is not None:
        names = [part.type_names[code] for code in part.types]
        found.nodes += zip(names, *ids, cells, strict=True)
    else:
        names = [part.relation_names[code] for code in part.relations]
        found.edges += zip(names, *ids, cells, strict=True)


def _plain(span, ids, sources):
    if isinstance(ids, RawTexts):
        return [ids.text(row) for row in range(ids.size)]
    signed = any(name in span.role.split() for name in sources.signed_ids)
    return (ids.view(np.int64) if signed else ids).tolist()


def _values(chunk):
    stops = np.cumsum(chunk.counts)
    for count, stop in zip(chunk.counts.tolist(), stops.tolist(), strict=True):
        values = chunk.values[stop - count : stop]
        if chunk.key.family == "binary":
            yield values.tobytes()
        elif chunk.item_shape == ():
            yield values[0].item()
        else:
            yield values.tolist()
