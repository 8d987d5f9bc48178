"""What one process takes over from the workers of a run: their options, and the blocks that they decoded."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphprep.convert.read.apart import FoundBlock, read_found
from graphprep.convert.read.plan import Elsewhere, Plan
from graphprep.convert.resume import about_files
from graphprep.convert.run import Run
from graphprep.convert.units.cut import cut_input
from graphprep.convert.units.folder import SharedRun, UnitFolder
from graphprep.convert.units.work import missing_workers, workers_words
from graphprep.engine.budget import used_bytes
from graphprep.model.errors import StorageError, UsageError
from graphprep.model.metadata import METADATA_NAME, STORE_FORMAT
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.recorded import options_of
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.texts import count
from graphprep.model.version import __version__
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import read_metadata
from graphprep.storage.spill.journal import refuse_other
from graphprep.storage.spill.segments import BrokenSegmentError
from graphprep.store.write import read_lineage

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_WORKERS = "workers"  # in provenance.json


class WorkersRun(NamedTuple):
    """A run of workers: what it was asked for, and the options of the process that goes on with it."""

    shared: SharedRun
    options: ConvertOptions


def num_merged(folder: UnitFolder, storage: Storage) -> int:
    """Return how many workers decoded what the store at the output was made of, so that the folder is of no more use.

    0 where there is none, where it was made otherwise, or where workers have begun another run since.
    """
    if not storage.exists(storage.join(folder.out, METADATA_NAME)):
        return 0
    workers, shared = read_lineage(storage, folder.out).get("convert", {}).get(_WORKERS), folder.find()
    if workers is None or (shared is not None and shared.token != workers["token"]):
        return 0
    return int(workers["count"])


def merged_before(folder: UnitFolder, storage: Storage) -> ConvertSummary | None:
    """Return what the store at the output holds, where an earlier call made it of what workers decoded; see ``num_merged``.

    Batch systems do jobs again that were done.
    """
    begin, url = time.perf_counter(), storage.join(folder.out, METADATA_NAME)
    num_workers = num_merged(folder, storage)
    if not num_workers:
        return None
    metadata = read_metadata(storage.read_bytes(url), display_url(url))
    return ConvertSummary(
        out=folder.out,
        format=STORE_FORMAT,
        format_flags=(),
        num_nodes=metadata.num_nodes_by_type(),
        num_edges=metadata.num_edges_by_type(),
        num_parts=metadata.num_parts,
        elapsed_s=time.perf_counter() - begin,
        peak_memory_bytes=used_bytes(),
        notes=(f"{count(num_workers, 'worker')} decoded what this store was made of before: nothing is left to do",),
    )


def find_run(folder: UnitFolder, run: RunOptions, *, resume: bool) -> WorkersRun:
    """Find the run whose workers decoded what is in a folder; ``run`` is for the process that goes on with it.

    Raises UsageError where there is nothing, or where it is of another version of graphprep.
    """
    shared = folder.find()
    if shared is None:
        raise UsageError(
            "no worker has decoded anything for this output",
            place=display_url(folder.out),
            fix="run graphprep convert with --worker-index and --worker-count first",
        )
    version = {"version": __version__}
    refuse_other(version, {"version": shared.about.get("version", "")}, folder.removal, "merge")
    options = replace(options_of(shared.options), run=run, resume=resume, worker_index=None, worker_count=None)
    return WorkersRun(shared, options)


class TakenOver:
    """Takes the blocks of an input from the workers' segments. Called with the run and its plan."""

    def __init__(self, out: str, shared: SharedRun) -> None:
        self._out = out
        self._shared = shared

    def __call__(self, run: Run, known: Plan) -> Plan:
        """Hold the input against what the workers read.

        Raises UsageError where a file is another, or while units are missing.
        """
        shared, storage, folder = self._shared, run.storage, UnitFolder(run.storage, self._out)
        now = about_files(run, known, "merge")
        refuse_other(now, {url: shared.about.get(url, "") for url in now}, folder.removal, "merge")
        cut = cut_input(known, storage, shared.reading, shared.worker_count)
        done = folder.done(shared)
        missing = missing_workers(cut.units, done, shared.worker_count)
        if missing:
            raise UsageError(
                f"workers are not done: {workers_words(missing)} of {shared.worker_count}",
                place=display_url(self._out),
                fix="let them end, or start them again, then merge",
            )
        for url in {span.url for span in cut.known.input.sources.spans}:
            storage.watch(url)

        def blocks() -> Iterator[FoundBlock]:
            for unit in cut.units:
                try:
                    yield from read_found(storage, folder.url, done[unit.number])
                except BrokenSegmentError as error:
                    folder.drop(done[unit.number])
                    index = next(iter(missing_workers(cut.units, done.keys() - {unit.number}, shared.worker_count)))
                    raise StorageError(
                        "is not what was written", place=display_url(str(error)), fix=f"start worker {index} again, then merge"
                    ) from None

        lineage = {_WORKERS: {"count": shared.worker_count, "token": shared.token}}
        return replace(cut.known, elsewhere=Elsewhere(shared.reading, blocks, lineage))
