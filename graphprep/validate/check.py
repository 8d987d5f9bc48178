"""Check a store: metadata, manifests, files, raw IDs, columns, adjacency. All faults with their places, in bounded memory."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from graphprep.engine.budget import PeakSampler, count_memory, default_threads, memory_limit, used_bytes
from graphprep.engine.ledger import Ledger
from graphprep.model.errors import StorageError
from graphprep.model.metadata import METADATA_NAME, GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, duration, size
from graphprep.storage.read.urls import Storage
from graphprep.store.paths import edge_folder, node_folder
from graphprep.validate.columns import check_columns, column_needs
from graphprep.validate.edges import check_edges, edge_needs
from graphprep.validate.faults import Fault, Faults
from graphprep.validate.files import CheckedStore, check_files, file_needs, read_manifest, read_metadata
from graphprep.validate.negatives import check_negatives
from graphprep.validate.nodes import check_raw_ids, node_needs
from graphprep.validate.order import check_agreement, check_order

DEFAULT_MAX_FAULTS = 20
_WINDOW_SHARE = 4  # of the memory limit, for the largest table held at a time


@dataclass(frozen=True, repr=False)
class StoreReport(Showable):
    """What checking a store found: ``num_faults`` in all, the first of them in ``faults``. Times in seconds."""

    store: str
    num_faults: int
    faults: tuple[Fault, ...]
    num_nodes: dict[str, int] = field(default_factory=dict)
    num_edges: dict[str, int] = field(default_factory=dict)
    num_parts: int = 0
    num_arrays: int = 0
    num_bytes: int = 0
    elapsed_s: float = 0.0

    @property
    def sound(self) -> bool:
        """Return whether nothing is wrong."""
        return self.num_faults == 0

    def card(self) -> Card:
        """See ``Showable``."""
        found = "sound" if self.sound else count(self.num_faults, "fault")
        work = f"{count(self.num_arrays, 'array')}, {size(self.num_bytes)}, checked in {duration(self.elapsed_s)}"
        faults = [str(fault) for fault in self.faults]
        return Card(f"{self.store}: {found}", type_rows(self.num_nodes, self.num_edges), (work, *faults))


def check_store(
    storage: Storage,
    url: str,
    reporter: Reporter,
    run: RunOptions | None = None,
    *,
    max_faults: int = DEFAULT_MAX_FAULTS,
) -> StoreReport:
    """Check the store at ``url`` against its schema and its invariants (docs/store.md).

    Keeps the first ``max_faults`` faults and counts all. Raises StorageError where there is no store, or reading fails for
    another reason than the store's content.
    """
    if not storage.exists(storage.join(url, METADATA_NAME)):
        raise StorageError(f"there is no {METADATA_NAME}, so this is no whole store", place=url, fix="check the path")
    began_s = time.monotonic()
    run = run or RunOptions()
    faults = Faults(max_faults)
    metadata = read_metadata(storage, url, faults)
    if metadata is None:
        return StoreReport(url, faults.num, tuple(faults.kept), elapsed_s=time.monotonic() - began_s)
    counted = _CountingReporter(reporter)
    with count_memory(), PeakSampler() as sampler:
        ledger = Ledger(memory_limit(run.memory_limit), used_bytes(), reporter, sampler)
        num_arrays = _check_contents(storage, url, metadata, faults, counted, run.threads or default_threads(), ledger)
    return StoreReport(
        store=url,
        num_faults=faults.num,
        faults=tuple(faults.kept),
        num_nodes=metadata.num_nodes_by_type(),
        num_edges=metadata.num_edges_by_type(),
        num_parts=metadata.num_parts,
        num_arrays=num_arrays,
        num_bytes=counted.num_bytes,
        elapsed_s=time.monotonic() - began_s,
    )


class _CountingReporter:
    """Counts the bytes that it passes on."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.num_bytes = 0

    def advance(self, num_bytes: int) -> None:
        """Count bytes that were read."""
        self.num_bytes += num_bytes
        self.reporter.advance(num_bytes=num_bytes)

    def checked(self, records: int) -> None:
        """Count edges that were checked."""
        self.reporter.advance(records=records)


def _check_contents(
    storage: Storage,
    url: str,
    metadata: GraphMetadata,
    faults: Faults,
    counted: _CountingReporter,
    threads: int,
    ledger: Ledger,
) -> int:
    """Check what the metadata leads to; return the number of arrays."""
    window_bytes = max(ledger.limit_bytes // _WINDOW_SHARE, 1)
    manifests = [read_manifest(storage, url, metadata, part, faults) for part in range(metadata.num_parts)]
    entries = [entry for manifest in manifests if manifest is not None for entry in manifest.arrays]
    ledger.begin("files", file_needs(threads), total_bytes=sum(entry.num_bytes for entry in entries))
    store = check_files(storage, url, metadata, manifests, faults, threads=threads, advance=counted.advance)
    most_nodes, most_edges = (max(each, default=0) for each in (metadata.num_nodes_per_type, metadata.num_edges_per_type))
    totals = sum(metadata.num_nodes_per_type), sum(metadata.num_edges_per_type) * (len(metadata.layouts) + 1)
    ledger.begin("nodes", (*node_needs(most_nodes, window_bytes), *column_needs()), total_records=totals[0])
    for number, name in enumerate(metadata.node_types):
        before = faults.num
        if check_order(store, number, faults, window_bytes=window_bytes):
            check_raw_ids(store, number, faults, window_bytes=window_bytes)
        if faults.num == before:
            check_agreement(store, number, faults)
        counted.reporter.advance(records=metadata.num_nodes_per_type[number])
        _check_type_columns(store, node_folder(name), number, faults, edges=False)
    ledger.begin("edges", (*edge_needs(most_nodes, most_edges, window_bytes), *column_needs()), total_records=totals[1])
    for number, edge_type in enumerate(metadata.edge_types):
        before = faults.num
        check_edges(store, number, faults, window_bytes=window_bytes, advance=counted.checked)
        _check_type_columns(store, edge_folder(edge_type), number, faults, edges=True)
        if faults.num == before:
            check_negatives(store, number, faults, window_bytes=window_bytes)
    ledger.end()
    return len(entries)


def _check_type_columns(store: CheckedStore, folder: str, number: int, faults: Faults, *, edges: bool) -> None:
    schema = store.metadata.edge_schemas[number] if edges else store.metadata.node_schemas[number]
    for part in range(store.metadata.num_parts):
        check_columns(store, part, folder, schema.columns, num_slots=schema.num_slots, faults=faults)
