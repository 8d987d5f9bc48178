"""What a run takes of the disk at least, found in samples of the input."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphprep.convert.read.plan import Planned, is_packed
from graphprep.convert.read.samples import first_records, is_compressed, records_at, table_rows
from graphprep.model.errors import GraphprepError
from graphprep.model.protocols import Reporter, Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawRows
from graphprep.storage.write.places import find_folders, free_bytes
from graphprep.store.room import DiskNeed, compare_with

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_SAMPLE_BYTES = 1 << 16
_SAMPLE_ROWS = 1 << 12
_SAMPLES = 8  # spans of a kind that are looked into
_SURE = 0.5  # of what samples promise: the rest of the input may be another
_EDGE_BYTES = 5  # of an edge in a run, at least
_INDEX_BYTES = 4
_VALUE_BYTES = 4  # wider numbers may be stored as float32


class DiskRules(NamedTuple):
    """Where a run writes to and what: ``pool_bytes`` of its runs stay in memory, ``num_layouts`` of the edges are stored.

    ``is_kept``: its runs outlive it, so that none stay in memory. ``has_copy``: the store lies with the temporary files, too.
    """

    out: str
    tmp_dir: str | None
    pool_bytes: int
    num_layouts: int
    edge_ids: bool
    may_drop_edges: bool
    is_kept: bool = False
    has_copy: bool = False


def check_disk(planned: Planned, storage: Storage, rules: DiskRules, reporter: Reporter) -> None:
    """Compare what the run takes at least with what is free; tell it to who wants details.

    Of remote places nothing is said. Raises StorageError where there is too little.
    """
    folders = find_folders(rules.out, rules.tmp_dir)
    free = {folder: free_bytes(folder) for folder in folders if folder is not None}
    if any(one is not None for one in free.values()):
        compare_with(folders, free, estimate_disk(planned, storage, rules), reporter)


def estimate_disk(planned: Planned, storage: Storage, rules: DiskRules) -> DiskNeed:
    """Estimate what a run takes at least: half of what samples of the input promise."""
    groups: dict[tuple[str, str, bool], list[Span]] = {}
    for span in planned.sources.spans:
        groups.setdefault((span.kind, span.role, is_packed(span.url)), []).append(span)
    runs = output = 0.0
    for spans in groups.values():
        step = -(-len(spans) // _SAMPLES)
        found = [_sample(planned, storage, span, rules) for span in spans[::step]]
        sizes = sum(_amount(storage, span) for span in spans)
        runs += sizes * min(share.runs for share in found)
        output += sizes * min(share.output for share in found)
    temporary = max(0, int(runs * _SURE) - (0 if rules.is_kept else rules.pool_bytes))
    store = int(output * _SURE)
    return DiskNeed(temporary + (store if rules.has_copy else 0), store, is_kept=rules.is_kept)


# ---- samples


class _Share(NamedTuple):
    """Bytes in runs and in the store, for each byte of a text or each row of a table."""

    runs: float = 0.0
    output: float = 0.0


def _amount(storage: Storage, span: Span) -> int:
    """Return the bytes of a text as stored, the rows of a table; 0 where nobody knows."""
    if span.kind == "table":
        return _num_rows(span)
    return max(0, storage.size(span.url))


def _num_rows(span: Span) -> int:
    if span.stop >= 0:
        return max(0, span.stop - max(span.start, 0))
    return span.expect_rows or 0


def _sample(planned: Planned, storage: Storage, span: Span, rules: DiskRules) -> _Share:
    """Return the least share of some pieces of a span; nothing where they cannot be decoded, which will be told later."""
    try:
        if span.kind == "text":
            return _least(planned, list(_pieces(storage, span)), rules)
        found = (
            table_rows(planned.decoder, storage, span, (0,), _SAMPLE_ROWS, rules.pool_bytes) if _num_rows(span) else iter(())
        )
        rows = next(found, None)
    except (GraphprepError, OSError, ValueError):
        return _Share()
    number = rows.num_records or _aligned_rows(rows) if rows is not None else 0
    share = _Share() if rows is None or not number else _share(rows, number, rules)
    return share if span.array is None else share._replace(runs=0.0)  # it may stay in its file


def _least(planned: Planned, pieces: list[TextBlock], rules: DiskRules) -> _Share:
    shares = [_share(planned.decoder.decode(piece), len(piece.data), rules) for piece in pieces]
    return _Share(min(share.runs for share in shares), min(share.output for share in shares)) if shares else _Share()


def _pieces(storage: Storage, span: Span) -> Iterator[TextBlock]:
    """Yield whole lines from the beginning of a text and, where that is easy, from its middle and its end."""
    head = first_records(storage, span, _SAMPLE_BYTES)
    if head is None:
        return
    yield head
    size = storage.size(span.url)
    if size < 4 * _SAMPLE_BYTES or storage.local_path(span.url) is None or span.record_ends is not None:
        return
    if not is_compressed(storage, span.url):
        yield from records_at(storage, span, (size // 2, size - _SAMPLE_BYTES), _SAMPLE_BYTES)


def _aligned_rows(rows: RawRows) -> int:
    return max((aligned.num_rows for aligned in rows.aligned), default=0)


def _share(rows: RawRows, number: int, rules: DiskRules) -> _Share:
    """Return the share of decoded rows; ``number``: the bytes or rows that they were."""
    chunks = [aligned.chunk for aligned in rows.aligned]
    chunks += [chunk for owner in (rows.nodes, rows.edges) if owner is not None for chunk in owner.columns]
    columns = sum(_stored_bytes(chunk) for chunk in chunks)
    num_edges = rows.edges.num_rows if rows.edges is not None else 0
    edge_bytes = rules.num_layouts * _INDEX_BYTES * (2 if rules.edge_ids else 1)
    output = 0 if rules.may_drop_edges else num_edges * edge_bytes + columns
    return _Share((num_edges * _EDGE_BYTES + columns) / number, output / number)


def _stored_bytes(chunk: ColumnChunk) -> int:
    return int(chunk.values.size) * min(chunk.values.itemsize, _VALUE_BYTES)
